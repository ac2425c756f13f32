"""Iguanas, in an environment of its own; and the shortest rules above F1 0.8 that it finds.

    python -m experiments.with_iguanas --install .venv-iguanas
    python -m experiments.with_iguanas --python .venv-iguanas/bin/python --sets Pima PageBlock

LOF labels; of all settings that are tried the rules that are shortest together and above the floor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from experiments.datasets import load, lof_labels, names
from stair.data import atomic_write

RESULTS: Final = Path(__file__).parent / "results"
WORKER: Final = Path(__file__).parent / "iguanas_fit.py"
IGUANAS: Final = "iguanas==1.5.0"
FLOOR: Final = 0.8
NEIGHBORS: Final = 80
Setting: TypeAlias = dict[str, Any]
# How rules are made: of boosted trees or of a forest's, deep or flat; all leaves that speak for an
# outlier or one of each tree; and how much more an outlier weighs, as powers of how many more
# inliers there are. Last as its own benchmark had it, with weights that follow a column.
EIGHT: Final = [k / 7 for k in range(8)]
TREES: Final[tuple[Setting, ...]] = tuple(
    {"model": model, "depth": depth, "trees": trees, "powers": powers, "steered": steered,
     "leaves": leaves}
    for depth in (1, 2, 3, 4, 5)
    for model, trees, powers, steered, leaves in (
        ("boosted", 50, [0.0], 0, "all_positive"),
        ("boosted", 25, EIGHT, 0, "max_gain"),
        ("boosted", 25, EIGHT, 0, "all_positive"),
        ("boosted", 25, EIGHT, 6, "max_gain"),
        ("boosted", 50, EIGHT, 6, "max_gain"),
        ("forest", 25, EIGHT, 0, "all_positive"),
    )
)  # fmt: skip
# And which of them are taken: how precise and frequent, how long and how many there may be. Its
# search keeps one set of rules or eight as it goes, and stops where none gets better.
CHOICES: Final[tuple[Setting, ...]] = tuple(
    {"precision": precision, "recall": recall, "longest": longest, "top": top, "max_corr": most,
     "max_rules": 60, "budget": None, "floor": FLOOR, "beam": beam, "step": 1e-9}
    for precision in (0.5, 0.6, 0.7, 0.8, 0.9)
    for recall in (0.0, 0.01, 0.05)
    for longest in (2, 3, 4, 5)
    for top in (300, 1000)
    for most in (0.9, 0.99)
    for beam in (1, 8)
)  # fmt: skip
# Of the settings, in an order drawn by chance, as many are tried as are done in so many seconds of
# a processor.
MOST_SECONDS: Final = 360


def install(folder: Path) -> None:
    """An environment with Iguanas."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", IGUANAS], check=True)


class Asked(NamedTuple):
    """Rows to learn from, their labels, other rows, and what chance is drawn from."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    test: NDArray[np.float64]
    seed: int


def grid(trees: Iterable[Setting], choices: Iterable[Setting]) -> list[Setting]:
    """Each way to make rules with each way to take some of them."""
    return [{**made, **taken} for made, taken in itertools.product(trees, choices)]


def values(settings: Iterable[Setting]) -> dict[str, list[Any]]:
    """The values that each of them has in any of these."""
    found: dict[str, list[Any]] = {}
    for setting in settings:
        for name, value in setting.items():
            if value not in found.setdefault(name, []):
                found[name].append(value)
    return found


def ask(
    asked: Mapping[str, Asked], settings: Sequence[Setting], python: Path,
    seconds: float = math.inf,
) -> tuple[list[dict[str, Any]], dict[str, str]]:  # fmt: skip
    """Rules by each setting for each part, as many as are done in so many seconds of a processor.
    What fails is told of, and left out."""
    given: dict[str, Any] = {"settings": json.dumps(list(settings)), "seconds": seconds}
    for name, part in asked.items():
        given |= {f"{name}.{what}": value for what, value in part._asdict().items()}
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder) / "task.npz", Path(folder) / "answer.json"
        np.savez(task, parts=np.array(list(asked)), **given)
        alone = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
        subprocess.run([python, WORKER, task, answer], check=True, env=alone)
        told = json.loads(answer.read_text(encoding="utf-8"))
    for each in told["found"]:
        if "error" in each:
            print(f"stair: Iguanas, {each['part']}: {each['error']}", file=sys.stderr)
    return [each for each in told["found"] if "error" not in each], told["versions"]


def shortest(answers: list[dict[str, Any]], y: NDArray[np.int64]) -> dict[str, Any] | None:
    """Of rules above the floor, counted anew, those that are shortest together."""
    found = []
    for each in answers:
        alerts = np.zeros(len(y), dtype=int)
        alerts[each["train"]] = 1
        score = float(f1_score(y, alerts, zero_division=0))
        if score > FLOOR:
            found.append(
                {"length": each["length"], "rules": each["rules"], "score": score,
                 "conditions": each["conditions"], "setting": each["setting"]}
            )  # fmt: skip
    return min(found, key=lambda each: each["length"], default=None)


def main() -> None:
    known = [name for name in names() if name not in ("Thursday-01-03", "WineQuality")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", type=Path, help="make an environment in this folder")
    parser.add_argument("--python", type=Path, help="the Python that has Iguanas")
    parser.add_argument("--sets", nargs="+", default=known, choices=known)
    parser.add_argument("--seconds", type=float, default=MOST_SECONDS,
                        help="of a processor for each set")  # fmt: skip
    parser.add_argument("--data", help="where the data sets are")
    given = parser.parse_args()
    if given.install is not None:
        install(given.install)
        return
    if given.python is None:
        parser.error("name the Python that has Iguanas, or make one with --install FOLDER")
    path = RESULTS / "iguanas.json"
    record: dict[str, Any] = {"sets": {}}
    if path.is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
    for name in given.sets:
        data = load(name, given.data)
        y = lof_labels(data.X, data.n_outliers, NEIGHBORS)
        part = {name: Asked(data.X, y, data.X[:1], 0)}
        settings = grid(TREES, CHOICES)
        random.Random(0).shuffle(settings)
        answers, versions = ask(part, settings, given.python, given.seconds)
        record["sets"][name] = {
            "tried": len(answers), "seconds": given.seconds, "found": shortest(answers, y)
        }  # fmt: skip
        record["sets"] = {each: record["sets"][each] for each in known if each in record["sets"]}
        record = {
            "sets": record["sets"], "floor": FLOOR, "trees": TREES, "choices": values(CHOICES),
            "versions": versions,
        }  # fmt: skip
        atomic_write(path, json.dumps(record, indent=1) + "\n")
        print(name, record["sets"][name], flush=True)


if __name__ == "__main__":
    main()
