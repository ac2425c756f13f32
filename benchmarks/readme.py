"""`python -m benchmarks.readme` puts the committed results into README.md.

With --check nothing is written; the exit code is 1 if the README is out of date.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.report import render

HERE = Path(__file__).resolve().parent
BEGIN = "<!-- benchmark:begin -->"
END = "<!-- benchmark:end -->"


def replaced(text: str, body: str) -> str:
    """The text with this body between the two marks, each of which must be there once."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before or END in after:
        raise ValueError(f"expected one {BEGIN} and, after it, one {END}")
    return f"{before}{BEGIN}\n\n{body.strip()}\n\n{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    """Bring the README up to date, or say whether it is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    parser.add_argument("--readme", type=Path, default=HERE.parent / "README.md")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "fit.json")
    chosen = parser.parse_args(arguments)
    try:
        results = json.loads(chosen.results.read_text(encoding="utf-8"))
        if results["settings"]["quick"]:
            raise ValueError(f"{chosen.results.name} is of a quick run, which leaves sets out")
        old = chosen.readme.read_text(encoding="utf-8")
        new = replaced(old, render(results))
    except (OSError, ValueError) as error:
        print(f"{chosen.readme.name} cannot be brought up to date: {error}", file=sys.stderr)
        return 1
    if old == new:
        return 0
    if chosen.check:
        print(
            f"{chosen.readme.name} is out of date; run python -m benchmarks.readme",
            file=sys.stderr,
        )
        return 1
    chosen.readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
