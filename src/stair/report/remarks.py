"""What is said of all rules together, in the sentences of the terminal: whether they hold, what
should be looked at twice, what one more rule would add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stair.evidence.findings import Findings
from stair.export.text import (
    check_in_words,
    falling_in_words,
    further_in_words,
    kinds_in_words,
)
from stair.export.wished import wished_in_words

Point: TypeAlias = tuple[int, float]  # total length and score
Points: TypeAlias = Sequence[Point]


@dataclass(frozen=True, slots=True)
class Remarks:
    """Sentences. `conclusion` is hold, hold partly or describe these rows only, and empty where
    that is not known."""

    conclusion: str = ""
    holds: str = ""
    falling: str = ""
    missed_kinds: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()
    further: str = ""
    wished: tuple[str, ...] = ()  # under which wishes they were learned, and what became of these

    @property
    def lines(self) -> tuple[str, ...]:
        """All of them, one after the other."""
        looked = (f"Look twice: {suspect}" for suspect in self.suspects)
        found = (*self.wished, *self.missed_kinds, self.holds, self.falling, *looked, self.further)
        return tuple(line for line in found if line)


def remarks_of(summary: Findings) -> Remarks:
    falling = falling_in_words(summary)
    holds = [line for line in check_in_words(summary) if line not in falling]
    return Remarks(
        conclusion=summary.check.conclusion if summary.check and summary.evidence else "",
        holds=" ".join(holds),
        falling=" ".join(line.removeprefix("* ") for line in falling),
        missed_kinds=tuple(kinds_in_words(summary)),
        suspects=tuple(f"{suspect[:1].upper()}{suspect[1:]}." for suspect in summary.suspects),
        further=" ".join(further_in_words(summary)),
        wished=tuple(wished_in_words(summary)),
    )


def on_the_frontier(summary: Findings) -> Point | None:
    """The point at which all rules are taken; what one more would give comes after it."""
    if not summary.frontier:
        return None
    # All rules of several kinds are of outliers, and of several classes all are taken.
    length = sum(rule.length for rule in summary.rules.outlier_rules)
    found = [point for point in summary.frontier if point[0] <= length]
    return found[-1] if found else None


def taken(points: Points, chosen: Point | None) -> list[Point]:
    """The points of a frontier up to the rules that there are."""
    return [point for point in points if chosen is None or point[0] <= chosen[0]]


def beyond(points: Points, chosen: Point | None) -> Point | None:
    """What one more rule would give, where that is known."""
    return points[-1] if chosen is not None and points[-1][0] > chosen[0] else None
