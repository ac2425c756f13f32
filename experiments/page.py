"""`python -m experiments.page` puts the committed results into docs/experiments.md.

With --check nothing is written; the exit code is 1 if the page is out of date.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

from experiments.run import RESULTS
from experiments.settings import read
from experiments.write import table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "experiments.md"
BEGIN = "<!-- results:begin -->"
END = "<!-- results:end -->"
FOLDER = "../experiments/results"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    chosen = parser.parse_args(arguments)
    old = PAGE.read_text(encoding="utf-8")
    before, begin, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{PAGE.name} has no place for the results: {BEGIN} … {END}", file=sys.stderr)
        return 1
    new = f"{before}{BEGIN}\n\n{found(RESULTS)}\n\n{END}{after}"
    if old == new:
        return 0
    if chosen.check:
        print(f"{PAGE.name} is out of date; run python -m experiments.page", file=sys.stderr)
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


def found(folder: Path) -> str:
    """What was found, from the files of a full run."""
    claims = _rows(folder / "claims.csv")
    parts = ["## What was found", *_claims(claims)]
    parts += ["## Total length (Q1, and Q7 in the last row)", _lengths(folder)]
    parts += [_seconds(folder), "## Settings", _settings()]
    return "\n\n".join(parts)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _claims(claims: list[dict[str, str]]) -> list[str]:
    parts = []
    for by, title in (("paper", "The paper's claims"), ("ours", "Ours")):
        mine = [c for c in claims if c["by"] == by]
        passed = sum(c["verdict"] == "pass" for c in mine)
        parts.append(
            f"**{title}**: {passed} of {len(mine)} hold everywhere in our runs. Where not, "
            "the table says where."
        )
        body = [
            [c["verdict"], c["question"].upper(), c["claim"], f"{c['holds']} of {c['of']}",
             c["fails on"] or None]
            for c in mine
        ]  # fmt: skip
        parts.append(table(["", "question", "claim", "holds on", "does not hold on"], body))
    return parts


def _lengths(folder: Path) -> str:
    rows = [*_rows(folder / "q1.csv"), *_rows(folder / "q7.csv")]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    at = {(row["data"], row["method"]): row for row in rows}

    def shown(data: str, method: str) -> str | None:
        row = at.get((data, method))
        if row is None:
            return None
        ours = row["length"] or row["status"]
        ours += "*" if row["above the floor"] == "no" else ""
        return f"{ours} ({row['paper length']})" if row["paper length"] else ours

    body: list[list[Any]] = [
        [data, *(shown(data, method) for method in methods)]
        for data in dict.fromkeys(row["data"] for row in rows)
    ]
    text = "In brackets the paper's figure; a star marks rules that did not get above the floor."
    return f"{text}\n\n{table(['data', *methods], body)}"


def _seconds(folder: Path) -> str:
    last = _rows(folder / "seconds.csv")[-1]
    made = json.loads((folder / "q1.json").read_text(encoding="utf-8"))["versions"]
    which = "; ".join(", ".join(f"{k} {v}" for k, v in each.items()) for each in made)
    minutes = float(last["cpu seconds"]) / 60
    return f"All of it took {minutes:.0f} minutes of CPU time, made by {which}."


def _settings() -> str:
    known = read()
    body = [[f"`{name}`", json.dumps(known[name]), known.source(name)] for name in known.constants]
    return table(["constant", "value", "source"], body)


if __name__ == "__main__":
    sys.exit(main())
