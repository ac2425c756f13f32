"""`python -m experiments.page` puts the committed results into docs/experiments.md, and what λ does
into docs/paper.md.

With --check nothing is written; the exit code is 1 if a page is out of date.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from experiments.run import RESULTS
from experiments.settings import read
from experiments.write import reached, table

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    chosen = parser.parse_args(arguments)
    pages = (("experiments.md", "results", found), ("paper.md", "lambda", what_locality_does))
    done = [_put(DOCS / name, word, text(RESULTS), chosen.check) for name, word, text in pages]
    return 0 if all(done) else 1


def _put(page: Path, word: str, text: str, check: bool) -> bool:
    """Text into its place on a page; whether all is well then."""
    begin, end = f"<!-- {word}:begin -->", f"<!-- {word}:end -->"
    old = page.read_text(encoding="utf-8")
    before, has_begin, rest = old.partition(begin)
    _, has_end, after = rest.partition(end)
    if not has_begin or not has_end:
        print(f"{page.name} has no place for the results: {begin} … {end}", file=sys.stderr)
        return False
    new = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    if old != new and check:
        print(f"{page.name} is out of date; run python -m experiments.page", file=sys.stderr)
        return False
    if old != new:
        page.write_text(new, encoding="utf-8")
    return True


def what_locality_does(folder: Path) -> str:
    """Two sentences, from the file of a full run."""
    each = reached(_rows(folder / "lambda.csv"), read()["floor"])
    short = [(one.first, one.short) for one in each if one.short is not None]
    places = "; ".join(
        f"{row['data']} {row['length']} (paper {row['paper length']}) at λ = {row['λ']}, assigned "
        f"F1 {float(row['assigned score']):.2f} and routed {float(row['routed score']):.2f}, where "
        f"λ = {first['λ']} gives {first['length']}"
        for first, row in short
    )
    n_honest, n_short = (sum(getattr(one, n) for one in each) for n in ("n_honest", "n_short"))
    text = (
        "**λ decides whether they are reached.** From the paper's own n, and where rows may go "
        "farther for a tree that is right about them, rules are as short as the paper's on "
        f"{len(short)} of these {len(each)} sets: {places} "
        "([all λ](../experiments/results/lambda.md)). But of the "
        f"{n_short} runs that are as short, many of them alike, {n_honest or 'none'} "
        f"{'has' if n_honest < 2 else 'have'} a routed F1 above the floor: in our runs such "
        "lengths belong to trees that are told the answer, and a new row, which goes to its "
        "nearest center, is not judged as they say; which λ the paper used it does not print."
    )
    return textwrap.fill(text, 105, break_long_words=False, break_on_hyphens=False)


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
