"""`python -m fuzz`: draw tables for some minutes and tell what does not hold."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fuzz.page import RESULTS, ROOT, record
from fuzz.run import SHRINK_SECONDS, Run, State

WORK = Path("fuzz-work")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long (10)")
    parser.add_argument("--cases", type=int, help="stop after so many tables")
    parser.add_argument("--seed", type=int, default=0, help="which tables (0)")
    parser.add_argument("--only", help="one check alone, such as 'new sqlite'")
    parser.add_argument("--work", type=Path, default=WORK, help=f"where it remembers ({WORK})")
    parser.add_argument("--no-shrink", action="store_true", help="keep findings as they are")
    parser.add_argument("--replay", type=Path, nargs="+", help="look at files of findings again")
    parser.add_argument("--mutations", type=int, help="damage so many rules files instead")
    parser.add_argument(
        "--record", choices=("before", "after", "since"), help=f"keep the figures in {RESULTS}"
    )
    chosen = parser.parse_args(arguments)
    if chosen.replay:
        return replay(chosen.replay)
    if chosen.mutations is not None:
        return mutate(chosen.mutations, chosen.seed, chosen.work, chosen.record is not None)
    state = State.opened(chosen.work / f"seed-{chosen.seed}", chosen.seed)
    run = Run(state, chosen.only, 0.0 if chosen.no_shrink else SHRINK_SECONDS)
    try:
        run.go(60 * chosen.minutes, chosen.cases)
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
    tell(state)
    if chosen.record:
        record(ROOT / RESULTS, chosen.record, state.figures())
    return int(bool(state.kinds))


def tell(state: State) -> None:
    """The tallies, and what was found."""
    cases = state.tallies["drawn / all: cases"]
    for name, count in sorted(state.tallies.items()):
        if not name.startswith("said / "):
            print(f"{count:10,}  {name}")
    for kind, count in state.kinds.most_common():
        print(f"FOUND {count:,} times: {kind}")
    print(f"{cases:,} tables in {state.seconds:,.0f} s ({cases / max(state.seconds, 1e-9):.1f}/s)")


def replay(paths: list[Path]) -> int:
    """Look at cases again; 1 where any check fails."""
    from fuzz.case import load_case
    from fuzz.targets import targets
    from fuzz.worker import look_at

    failed = 0
    with tempfile.TemporaryDirectory() as name, targets(Path(name)) as endings:
        for path in paths:
            case, was = load_case(path)
            found = look_at(case, Path(name), endings).findings
            for finding in found:
                print(f"{path.name}: {' | '.join(finding.key)} | {finding.story}")
                print(f"  expected {finding.expected}\n  got      {finding.got}")
            if not found:
                print(f"{path.name}: holds ({was.get('story', 'nothing was found')})")
            failed |= bool(found)
    return int(failed)


def mutate(n: int, seed: int, work: Path, keep: bool) -> int:
    """Damaged files of every format; those on which something failed are kept."""
    from fuzz import mutations

    tallies, found = mutations.run(n, seed)
    for name, count in sorted(tallies.items()):
        print(f"{count:10,}  {name}")
    folder = work / "mutations"
    folder.mkdir(parents=True, exist_ok=True)
    for number, (finding, text) in enumerate(found):
        words = "".join(c if c.isalnum() else "-" for c in "-".join(finding.key))[:80]
        (folder / f"{words}-{number}.txt").write_text(text, encoding="utf-8", errors="replace")
    if keep:
        record(ROOT / RESULTS, "mutations", dict(sorted(tallies.items())))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
