"""The paper's claims, and ours, counted on our own runs: how many of how many, pass or fail.

A claim passes if it holds everywhere it can be checked. A method that did not reach the floor
counts as not shorter, whatever its length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from experiments.plan import NAMES, budgets, fit_task, local_tasks, map_task, same_labels
from experiments.plan import sweep_tasks as points_of
from experiments.results import Results
from experiments.tables import Row, chosen, q2_rows


@dataclass(frozen=True)
class Claim:
    """One claim: where it was looked at, and whether it held there."""

    question: str
    by: str  # "paper" or "ours"
    text: str
    looked_at: tuple[tuple[str, bool], ...]

    @property
    def holds(self) -> int:
        return sum(held for _, held in self.looked_at)

    @property
    def passes(self) -> bool:
        return bool(self.looked_at) and self.holds == len(self.looked_at)

    @property
    def fails_on(self) -> str:
        return ", ".join(where for where, held in self.looked_at if not held)

    @property
    def verdict(self) -> str:
        return "pass" if self.passes else "fail" if self.looked_at else "not run here"

    def __str__(self) -> str:
        line = f"{self.verdict:>4}  {self.question}  {self.text}: "
        line += f"{self.holds} of {len(self.looked_at)}"
        return f"{line} (not {self.fails_on})" if self.fails_on else line

    def row(self) -> Row:
        return {
            "question": self.question,
            "by": self.by,
            "claim": self.text,
            "holds": self.holds,
            "of": len(self.looked_at),
            "verdict": self.verdict,
            "fails on": self.fails_on,
        }


def claims(results: Results, asked: list[str], names: dict[str, list[str]]) -> list[Claim]:
    """All claims about the questions that were asked; `names` are the data sets of each."""
    found: list[Claim] = []
    for question in asked:
        here = [n for n in names[question] if n in results.shapes]
        if question == "q1":
            found += _lengths(results, "q1", here)
        elif question == "q2":
            found += _curves(results, here)
        elif question == "q3":
            found += _sweeps(results, "q3", here)
        elif question == "q4":
            found += _starts(results, "q4", here)
        elif question == "q5":
            found += _maps(results, "q5", here)
        elif question == "q6":
            found += _stabilizer(results, "q6", here)
        elif question == "q7":
            for part in (_lengths, _sweeps, _starts, _maps, _stabilizer):
                found += part(results, "q7", here)
    return found


def _length(result: Any) -> float:
    """The length, or infinity for rules that are below the floor."""
    return float(result["length"]) if result is not None and result["reached"] else math.inf


def _shorter(results: Results, names: Iterable[str], one: str, other: str) -> tuple[Any, ...]:
    return tuple(
        (data, _length(chosen(results, data, one)) < _length(chosen(results, data, other)))
        for data in names
    )


def _lengths(results: Results, question: str, names: list[str]) -> list[Claim]:
    def claim(by: str, text: str, looked_at: Iterable[tuple[str, bool]]) -> Claim:
        return Claim(question, by, text, tuple(looked_at))

    found = [
        claim("paper", "STAIR is shorter than ID3", _shorter(results, names, "stair", "id3")),
        claim("paper", "STAIR is shorter than CART", _shorter(results, names, "stair", "cart")),
        claim(
            "paper", "L-STAIR is shorter than STAIR", _shorter(results, names, "l-stair", "stair")
        ),
        claim(
            "ours", "L-STAIR with the routed floor is shorter than STAIR",
            _shorter(results, names, "l-stair-routed", "stair"),
        ),
        claim(
            "ours", "refined rules are shorter than STAIR's",
            _shorter(results, names, "refined", "stair"),
        ),
    ]  # fmt: skip
    for published in () if results.known.quick else ("stair", "l-stair"):
        lengths = {n: results.known.paper_length(n, published) or 0 for n in names}
        found.append(
            claim(
                "ours", f"distilled rules are shorter than the paper's {NAMES[published]}",
                ((n, _length(chosen(results, n, "distilled")) < lengths[n]) for n in names),
            )
        )  # fmt: skip
    return found


def _curves(results: Results, names: list[str]) -> list[Claim]:
    found = []
    scores = {
        (row["data"], row["method"], row["budget"]): row["score"] for row in q2_rows(results, names)
    }
    for other in ("ID3", "CART"):
        looked_at = tuple(
            (f"{n} at {b}", scores[n, "STAIR", b] >= scores[n, other, b])
            for n in names
            for b in budgets(results.known, n)
        )
        text = f"STAIR's F1 is at least {other}'s at the same total length"
        found.append(Claim("q2", "paper", text, looked_at))
    return found


def _sweeps(results: Results, question: str, names: list[str]) -> list[Claim]:
    known = results.known
    by_length: dict[tuple[str, str], list[tuple[float, float]]] = {}
    by_floor: dict[tuple[str, str, float], float] = {}
    for data in names:
        for method, value, each in points_of(known, data, "length"):
            by_length.setdefault((data, method), []).append((value, _length(results.get(each))))
        for method, value, each in points_of(known, data, "floor"):
            by_floor[data, method, value] = _length(results.get(each))
    found = []
    for method in ("stair", "l-stair"):
        steps: list[tuple[str, bool]] = []
        ends: list[tuple[str, bool]] = []
        for data in names:
            points = sorted(by_length.get((data, method), []))
            reached = [length for _, length in points if length < math.inf]
            if not reached:
                continue
            pairs = pairwise(points)
            steps.append((data, all(later[1] <= earlier[1] for earlier, later in pairs)))
            ends.append((data, points[-1][1] <= reached[0]))
        text = f"{NAMES[method]} is never longer at a larger L_m"
        found.append(Claim(question, "paper", text, tuple(steps)))
        text = f"{NAMES[method]} at the largest L_m is not longer than at the least that is enough"
        found.append(Claim(question, "paper", text, tuple(ends)))
    for method in ("stair", "l-stair"):
        others = ("id3", "cart") if method == "stair" else ("id3", "cart", "stair")
        looked_at = []
        for data, which, value in by_floor:
            if which != method:
                continue
            rivals = [by_floor[data, other, value] for other in others]
            if min(rivals) < math.inf or by_floor[data, method, value] < math.inf:
                looked_at.append(
                    (f"{data} at {value:g}", by_floor[data, method, value] < min(rivals))
                )
        text = f"{NAMES[method]} is shorter than {' and '.join(NAMES[o] for o in others)}"
        found.append(Claim(question, "paper", f"{text} at each floor", tuple(looked_at)))
    return found


def _starts(results: Results, question: str, names: list[str]) -> list[Claim]:
    known = results.known
    found = []
    for method, by, text in (
        ("l-stair", "paper", "L-STAIR is shorter than STAIR from any n"),
        ("l-stair-routed", "ours", "L-STAIR routed is shorter than STAIR from any n"),
    ):  # fmt: skip
        looked_at = tuple(
            (
                f"{data} from {n}",
                _length(results.get(each)) < _length(results.get(fit_task(known, data, "stair"))),
            )
            for data in names
            for n, each in zip(known["starts"], local_tasks(known, data, method), strict=True)
        )
        found.append(Claim(question, by, text, looked_at))
    if not known.quick:
        text = "L-STAIR from its best n is at most 10% longer than the paper's"
        best = {n: _length(chosen(results, n, "l-stair")) for n in names}
        paper = {n: known.paper_length(n, "l-stair") or 0 for n in names}
        looked_at = tuple((n, best[n] <= 1.1 * paper[n]) for n in names)
        found.append(Claim(question, "ours", text, looked_at))
    if question == "q4":
        looked_at = tuple(
            (
                f"{data} from {n}",
                _length(results.get(each)) < _length(results.get(same_labels(known, data))),
            )
            for data in names
            for n, each in zip(known["starts"], local_tasks(known, data, "l-stair"), strict=True)
        )
        text = "L-STAIR is shorter than STAIR on its own labels from any n"
        found.append(Claim(question, "ours", text, looked_at))
    looked_at = tuple(
        (f"{data} from {n}", results.get(each)["score"] > known["floor"])
        for data in names
        for n, each in zip(known["starts"], local_tasks(known, data, "l-stair"), strict=True)
    )
    text = "by the paper's protocol the routed score is above the floor too"
    found.append(Claim(question, "ours", text, looked_at))
    return found


def _maps(results: Results, question: str, names: list[str]) -> list[Claim]:
    looked_at = []
    for data in names:
        result = results.get(map_task(results.known, data))
        looked_at.append((data, result["like neighbour"] > result["by chance"]))
    text = "neighbours on the map share a partition more often than by chance"
    return [Claim(question, "paper", text, tuple(looked_at))]


def _stabilizer(results: Results, question: str, names: list[str]) -> list[Claim]:
    looked_at = []
    for data in names:
        trace = results.get(fit_task(results.known, data, "stair"))["trace"]
        values = [step[1] for step in trace]
        looked_at.append((data, all(a <= b for a, b in pairwise(values))))
    return [Claim(question, "paper", "M never decreases", tuple(looked_at))]
