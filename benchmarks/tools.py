"""Rules in the tools that run them: many generated rule sets with hostile names, quotes, NULL, NaN,
infinities, empty strings, cases of letters, categories, times with zones, texts, partitions,
exceptions and several kinds of outlier. What each tool finds must be the rows that the rules flag,
or the export must have been refused in a sentence that names the rule and the reason.

    python tests/environments.py                    # the tools, each in an environment of its own
    make spark                                      # PySpark; Java must be there
    python -m benchmarks.tools                      # all of them, 1,000 rule sets each
    python -m benchmarks.tools dbt soda --sets 200  # some
    python -m benchmarks.tools spark --seed 7       # other rule sets than those of the tests

It ends with the first rule set about which a tool and the rules do not agree. With
STAIR_TEST_POSTGRES (.ci/postgres.sh starts a server) dbt is built there too. Counts go to
benchmarks/results/tools.json, and `python -m benchmarks.readme` puts them into docs/exports.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path("benchmarks/results/tools.json")
TOOLS = {
    "dbt": ("dbt-core", "dbt-duckdb", "dbt-postgres"),
    "great_expectations": ("great_expectations",),
    "soda": ("soda-core-duckdb",),
    "sigma": ("pysigma", "pysigma-backend-sqlite"),
    "spark": ("pyspark",),
}
"""The packages of each tool whose versions are kept with the counts."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tools")
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(TOOLS))
    parser.add_argument("--sets", type=int, default=1000, help="rule sets for each tool")
    parser.add_argument("--seed", type=int, help="draw other rule sets than the tests do")
    given = parser.parse_args(arguments)
    unknown = next((name for name in given.tools if name not in TOOLS), None)
    if unknown is not None:
        parser.error(f"no tool {unknown!r}; there are {', '.join(TOOLS)}")
    path = ROOT / RESULTS
    for tool in given.tools or TOOLS:
        found = [
            {"in": where, "sets": given.sets, "seed": given.seed, **trial}
            for where, trial in _tried(tool, given)
        ]
        kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
        kept[tool] = {"versions": _versions(tool), "trials": found}
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _tried(tool: str, given: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """What came of the rule sets wherever the tool ran them."""
    sys.path.insert(0, str(ROOT / "tests"))
    import target_trials as trials
    from environments import make

    def within(where: str, run: Callable[[Path], Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        with tempfile.TemporaryDirectory() as folder:
            found = run(Path(folder))
        several = found if isinstance(found[0], tuple) else (found,)
        for place, trial in zip(where.split(", "), several, strict=True):
            print(f"{tool} in {place}: {trial}", flush=True)
            yield place, trial._asdict()

    seed = given.seed
    if tool != "spark":
        make(tool)
    if tool == "dbt":
        yield from within("DuckDB", lambda folder: trials.try_dbt(given.sets, folder, seed=seed))
        if "STAIR_TEST_POSTGRES" in os.environ:
            postgres = lambda folder: trials.try_dbt(given.sets, folder, "postgres", seed)  # noqa: E731
            yield from within("PostgreSQL", postgres)
    elif tool == "great_expectations":
        run = lambda folder: trials.try_great_expectations(given.sets, folder, seed)  # noqa: E731
        yield from within("SQLite, pandas", run)
    elif tool == "soda":
        yield from within("DuckDB", lambda folder: trials.try_soda(given.sets, folder, seed))
    elif tool == "sigma":
        yield from within("SQLite", lambda folder: trials.try_sigma(given.sets, folder, seed))
    else:
        from spark_session import session

        yield from within("Spark", lambda _: trials.try_spark(given.sets, session(), seed))


def _versions(tool: str) -> dict[str, str]:
    own = ROOT / f".venv-{tool}" / "bin" / "python"
    asked = (
        f"from importlib.metadata import version as v; print({{n: v(n) for n in {TOOLS[tool]}}})"
    )
    command = [str(own) if own.exists() else sys.executable, "-c", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.replace("'", '"')))


if __name__ == "__main__":
    main(sys.argv[1:])
