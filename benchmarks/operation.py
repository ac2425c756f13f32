"""Rules in operation, many times over: `python -m benchmarks.operation [TRIAL...] [--seeds N]`.

Months of generated payments with a seed each. A trial says of how many seeds the right thing came
out, and what went wrong with the others. The tests hold a small version of each.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import stair
from benchmarks.scale import RESULTS
from stair.data import write_table
from stair.demo import GIFT_CARDS, KINDS_OF_FRAUD, USUAL, Planted, month
from stair.export import Rulebook, from_json, load
from stair.operation.mark import marked

NIGHT: Final = KINDS_OF_FRAUD[1]
FEATURES: Final = {NIGHT: ("hour", "merchant"), GIFT_CARDS: ("amount", "merchant")}
FLOOR: Final = 0.9
# So many seeds are checked by rules of the same January.
PER_BOOK: Final = 50


def january(seed: int) -> Rulebook:
    """The accepted rules of a January."""
    source = stair.Source(month(1, seed), name="january")
    found = stair.summarize(source, "flagged", min_score=FLOOR, validate=0)
    return marked(from_json(found.to_json()), [], status="accepted")


def _by_book(judge: Callable[[Rulebook, int], str], n_seeds: int) -> Counter[str]:
    found: Counter[str] = Counter()
    book = january(0)
    for seed in range(n_seeds):
        if seed % PER_BOOK == 0:
            book = january(10_000 + seed)
        found[judge(book, seed)] += 1
    return found


def unchanged(n_seeds: int) -> Counter[str]:
    """A month like the one that was learned from: exit code 0."""

    def judge(book: Rulebook, seed: int) -> str:
        return "alarm" if stair.check(book, month(1, seed), "flagged").has_decayed else "right"

    return _by_book(judge, n_seeds)


def unlabelled(n_seeds: int) -> Counter[str]:
    """The same where nobody says which rows are outliers."""

    def judge(book: Rulebook, seed: int) -> str:
        return "alarm" if stair.check(book, month(1, seed)).has_decayed else "right"

    return _by_book(judge, n_seeds)


def halved(n_seeds: int) -> Counter[str]:
    """One rule is right half as often, on at least 30 rows: it is named, exit code 1."""

    def judge(book: Rulebook, seed: int) -> str:
        planted = {**USUAL, NIGHT: Planted(30, 30)}
        found = stair.check(book, month(1, seed, planted=planted), "flagged")
        named = [each.rule.features for each in found.standings if each.is_alarm]
        if FEATURES[NIGHT] in named:
            return "right" if len(named) == 1 else "right, and another rule"
        return "not seen"

    return _by_book(judge, n_seeds)


def faded(n_seeds: int) -> Counter[str]:
    """Month 5: the rule of the kind that is gone is named and no other, exit code 1."""

    def judge(book: Rulebook, seed: int) -> str:
        found = stair.check(book, month(5, seed), "flagged")
        named = [each.rule.features for each in found.standings if each.is_alarm]
        return "right" if named == [FEATURES[NIGHT]] else f"named {len(named)} rules"

    return _by_book(judge, n_seeds)


def added(n_seeds: int) -> Counter[str]:
    """Month 2: accepted rules stay to the byte, and one rule is added, which names the new kind."""

    def judge(book: Rulebook, seed: int) -> str:
        found = stair.update(book, month(2, seed), "flagged", validate=0)
        before, after = (_rules_text(each) for each in (book, found.book))
        if not after.startswith(before):
            return "an accepted rule is another"
        new = [found.summary.rules[k - 1].features for k in found.added]
        if len(new) != 1:
            return f"{len(new)} rules were added"
        return "right" if set(new[0]) == set(FEATURES[GIFT_CARDS]) else "another rule was added"

    return _by_book(judge, n_seeds)


def _rules_text(book: Rulebook) -> str:
    """What the file says of its rules, up to where another one may follow."""
    text = book.to_json()
    start = text.index('\n "rules": [')
    return text[start : text.index("\n ],", start)]


def differing(n_seeds: int) -> Counter[str]:
    """Two tables, in one of which frauds with gift cards were planted: the first rule is theirs."""
    found: Counter[str] = Counter()
    for seed in range(n_seeds):
        planted = {**USUAL, GIFT_CARDS: Planted(60, 1)}
        tables = month(1, seed), month(1, 20_000 + seed, planted=planted)
        answer = stair.compare(*tables, exclude=["flagged"])
        first = answer.differences[0].rule if answer.differences else None
        if first is None:
            found["no difference"] += 1
        else:
            is_right = set(first.features) == set(FEATURES[GIFT_CARDS])
            found["right" if is_right and "gift cards" in str(first) else "another rule"] += 1
    return found


def same(n_seeds: int) -> Counter[str]:
    """Two samples of the same: no difference."""
    found: Counter[str] = Counter()
    for seed in range(n_seeds):
        answer = stair.compare(month(1, seed), month(1, 20_000 + seed))
        found["a difference" if answer.differs else "right"] += 1
    return found


def killed(n_seeds: int) -> Counter[str]:
    """`stair update` killed at any moment: the file is the old one or the new one, and opens."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        old = january(0).to_json()
        (folder / "rules.json").write_text(old)
        write_table(folder / "2.csv", month(2, n=2000))
        command = [sys.executable, "-m", "stair", "update", "rules.json", "2.csv", "--label",
                   "flagged", "--no-validate", "-q", "--on", "2026-03-01"]  # fmt: skip
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True)
        lasts = time.perf_counter() - started
        new = (folder / "rules.json").read_text()
        drawn = random.Random(0)
        for _ in range(n_seeds):
            (folder / "rules.json").write_text(old)
            process = subprocess.Popen(command, cwd=folder)
            # Most of them near the end, where the file is written.
            time.sleep(lasts * (1 - drawn.random() ** 3 / 2))
            process.send_signal(signal.SIGKILL)
            process.wait()
            text = (folder / "rules.json").read_text()
            load(folder / "rules.json")
            found[
                "the old file" if text == old else "the new file" if text == new else "BROKEN"
            ] += 1
        # And the one part of it that writes, killed as often while it does nothing else.
        write = (
            "from stair.export import load; book = load('rules.json'); print(flush=True)\n"
            "while True: book.to_json('rules.json')"
        )
        for _ in range(n_seeds):
            process = subprocess.Popen([sys.executable, "-c", write], cwd=folder,
                                       stdout=subprocess.PIPE)  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(drawn.uniform(0.0, 0.02))
            process.kill()
            process.wait()
            text = (folder / "rules.json").read_text()
            found["whole while written" if text in (old, new) else "BROKEN"] += 1
    return found


TRIALS: Final[dict[str, tuple[Callable[[int], Counter[str]], int]]] = {
    "unchanged": (unchanged, 1000),
    "unlabelled": (unlabelled, 1000),
    "halved": (halved, 100),
    "faded": (faded, 100),
    "added": (added, 100),
    "differing": (differing, 100),
    "same": (same, 100),
    "killed": (killed, 100),
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operation")
    parser.add_argument("trials", nargs="*", help=f"{', '.join(TRIALS)}; all of them")
    parser.add_argument("--seeds", type=int, help="so many, and nothing is written down")
    chosen = parser.parse_args(words)
    unknown = set(chosen.trials) - set(TRIALS)
    if unknown:
        parser.error(f"no trial {', '.join(sorted(unknown))}; there are {', '.join(TRIALS)}")
    path = RESULTS / "operation.json"
    for name in chosen.trials or TRIALS:
        trial, usual = TRIALS[name]
        seeds = chosen.seeds or usual
        found = trial(seeds)
        print(f"{name}: {dict(found)}", flush=True)
        if chosen.seeds is None:  # others may have written meanwhile
            results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
            results[name] = {
                "what": (trial.__doc__ or "").strip(), "seeds": seeds,
                "found": dict(sorted(found.items())), "numpy": np.__version__,
                "stair": stair.__version__,
            }  # fmt: skip
            path.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
