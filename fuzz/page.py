"""`python -m fuzz.page` puts fuzz/results.json into docs/reliability.md; --check writes nothing."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.readme import replaced

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path("fuzz/results.json")
PAGE = Path("docs/reliability.md")

# What is shown of a run: the checks whose names begin like this, under these words.
SHOWN = {
    "saved": "rules saved and loaded",
    "predict": "predict: loaded, in batches, explained, by the second opinion",
    "figures": "figures counted anew",
    "wishes": "wishes, and what is known of columns",
    "reasons": "reasons of rows",
    "training": "exports on the table learned from",
    "exceptions": "exceptions and retired rules",
    "new predict": "rules on a new table, by the second opinion",
    "new": "exports on a new table",
    "containers": "the same rows in another container",
    "order": "rules for another order of rows or columns",
    "twin": "rules with another hash seed, thread count and kernel",
    "engine": "engines for large data",
}
OUTCOMES = ("compared", "refused", "loud", "found")


def split(name: str) -> tuple[str, str, str]:
    """The check, the target and the outcome of a tally."""
    check, _, rest = name.partition(" / ")
    target, _, outcome = rest.rpartition(": ")
    return check, target, outcome


def record(path: Path, kind: str, found: Mapping[str, Any]) -> None:
    """Keep a run's figures among the results, in place of the last ones of its kind."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    results[kind] = found
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def table_of(tallies: Mapping[str, int]) -> str:
    rows: dict[tuple[str, str], Counter[str]] = {}
    for name, count in tallies.items():
        check, target, outcome = split(name)
        for start, words in SHOWN.items():
            if f"{check} ".startswith(f"{start} ") and not check.endswith("reference"):
                rows.setdefault((words, target), Counter())[outcome] += count
                break
    lines = ["| what is compared | with | " + " | ".join(OUTCOMES) + " |"]
    lines.append("|---|---|" + "---:|" * len(OUTCOMES))
    order = list(dict.fromkeys(SHOWN.values()))
    for (words, target), counts in sorted(rows.items(), key=lambda r: (order.index(r[0][0]), r[0])):
        cells = [f"{counts[outcome]:,}" for outcome in OUTCOMES]
        lines.append(f"| {words} | {target} | {' | '.join(cells)} |")
    return "\n".join(lines)


def in_words(run: Mapping[str, Any]) -> str:
    """How long a run was, and what it found."""
    n_found, n_kinds = sum(run["kinds"].values()), len(run["kinds"])
    found = f"{n_found:,} findings of {n_kinds:,} kinds" if n_found else "no findings"
    found = "1 finding" if n_found == 1 else found
    minutes, note = run["seconds"] / 60, f" {run['note']}" if "note" in run else ""
    return f"{run['cases']:,} tables of seed {run['seed']} in {minutes:.0f} minutes, {found}.{note}"


def asked_in_words(tallies: Mapping[str, int]) -> list[str]:
    """Of what the rules spoke, the most frequent first."""
    forms = {split(name)[1]: count for name, count in tallies.items() if split(name)[0] == "rules"}
    ordered = sorted(forms.items(), key=lambda each: (-each[1], each[0]))
    listed = ", ".join(f"{form} ({count:,})" for form, count in ordered)
    return [f"Clauses of the rules, by what they speak of: {listed}."] if listed else []


def render(results: Mapping[str, Any]) -> str:
    """All that was recorded, as Markdown."""
    earlier = results.get("earlier", {})
    told = [
        ("With the first columns of every kind, before", earlier.get("before")),
        ("And after", earlier.get("after")),
        ("With zones, networks and several kinds of outlier, before", results.get("before")),
        ("After", results.get("after")),
        ("And since", results.get("since")),
    ]
    parts = [f"{title}: {in_words(run)}" for title, run in told if run is not None]
    after = results.get("after") or results.get("before")
    if after is not None:
        parts += [*asked_in_words(after["tallies"]), table_of(after["tallies"])]
    if "mutations" in results:
        parts.append(_mutations(results["mutations"]))
    return "\n\n".join(parts)


def _mutations(tallies: Mapping[str, int]) -> str:
    rows: dict[str, Counter[str]] = {}
    for name, count in tallies.items():
        check, target, outcome = split(name)
        # A folder is damaged whole, and read where it leads to the rules that it led to before.
        is_whole = target in ("all", "read") or target.endswith("damaged") or outcome == "folders"
        place = {"folders": "files", "equal": "read"}.get(outcome, outcome) if is_whole else ""
        rows.setdefault(check, Counter())["anything else" if outcome == "found" else place] += count
    columns = ("files", "read", "refused", "anything else")
    lines = ["| damaged | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for check, counts in sorted(rows.items()):
        lines.append(f"| {check} | {' | '.join(f'{counts[c]:,}' for c in columns)} |")
    return "\n".join(lines)


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    results = json.loads((ROOT / RESULTS).read_text(encoding="utf-8"))
    page = ROOT / PAGE
    old = page.read_text(encoding="utf-8")
    new = replaced(old, "fuzz", render(results))
    if new != old and not chosen.check:
        page.write_text(new, encoding="utf-8")
    return int(new != old and chosen.check)


if __name__ == "__main__":
    sys.exit(main())
