"""`python -m benchmarks` measures everything in one run and writes fit.json and fit.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from experiments.datasets import DataNotFound

from benchmarks import data, memory, timing
from benchmarks.contenders import SKLEARN, STAIR, rival_options, versions
from benchmarks.report import render
from benchmarks.targets import targets
from stair.engines.memory import HAS_KERNEL

RESULTS = Path(__file__).resolve().parent / "results"
START = time.monotonic()


def say(text: str) -> None:
    """Progress goes to stderr, so that stdout has the results alone."""
    print(f"[{time.monotonic() - START:5.0f} s] {text}", file=sys.stderr, flush=True)


def settings(quick: bool) -> dict[str, Any]:
    """What was chosen for this run."""
    return {
        "quick": quick,
        "lof_neighbors": data.NEIGHBORS,
        "generated": {**data.GENERATED_SETTINGS, "leaves": data.LEAVES},
        "compiled_kernel": HAS_KERNEL,
    }


def peaks(task: data.Task) -> list[dict[str, Any]]:
    """Peak memory of Stair and of scikit-learn on one set.

    Stair is measured three times, because its threads do not always peak together. scikit-learn's
    figure does not vary. It gets two leaves here, which saves most of a minute: all that it
    needs is there before its first split, and with all leaves its peak is not 0.3 % higher.
    """
    stair = [memory.measure(task, STAIR, task.stair_options) for _ in range(3)]
    return [*stair, memory.measure(task, SKLEARN, rival_options(2)[SKLEARN])]


def run(data_dir: str | None, quick: bool) -> dict[str, Any]:
    """Everything that is measured, and what it was measured with."""
    results: dict[str, Any] = {
        "settings": settings(quick),
        "versions": versions(),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
        "skipped": [],
        "fit": [],
        "memory": [],
    }
    timing.warm_up()
    for name in data.names(quick):
        say(f"{name}: data and labels")
        try:
            task = data.task(name, data_dir)
        except DataNotFound as error:
            say(f"{name}: skipped. {error}")
            results["skipped"].append(name)
            continue
        say(f"{name}: fit time, {task.rounds} rounds")
        results["fit"].append(timing.measure(task))
        if name not in data.SMALL and memory.can_measure():
            say(f"{name}: peak memory")
            results["memory"] += peaks(task)
    say("done")
    return results


def write(results: dict[str, Any], folder: Path) -> None:
    """Leave fit.json, and fit.md that is made from it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1)
    (folder / "fit.json").write_text(text + "\n", encoding="utf-8")
    (folder / "fit.md").write_text(render(json.loads(text)), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Measure, write, and print the tables and whether the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data-dir", help="where the data is (else as for stair reproduce)")
    parser.add_argument("--quick", action="store_true", help="leave out the two large sets")
    parser.add_argument(
        "--output",
        type=Path,
        help="folder for the results (default: benchmarks/results; with --quick nothing is "
        "written by default, so that no full results are lost)",
    )
    chosen = parser.parse_args(arguments)
    results = run(chosen.data_dir, chosen.quick)
    if chosen.output is not None or not chosen.quick:
        write(results, chosen.output or RESULTS)
    print(render(results))
    for target in targets(results):
        print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
