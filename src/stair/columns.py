"""Columns of codes, as the engines see them, and how a cut in them becomes a clause.

Numbers, times, categories, and the terms of a text: each kind knows what its codes mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.clauses import Among, Clause, Interval, Mentions, Period
from stair.decimals import LARGEST, shortest_between
from stair.names import name_order

# A category that fewer rows than this have is rare: its name is a memory of these rows.
ROWS_A_VALUE: Final = 5
# The most values that one clause may list, by default.
MOST_VALUES: Final = 12
# Up to so many rows nothing can be said of that.
FEW_ROWS: Final = 20


class Lists(NamedTuple):
    """Which values of a category rules may name, and how many at once."""

    min_rows: int = ROWS_A_VALUE
    max_values: int = MOST_VALUES


LISTS: Final = Lists()

# The code of what is infinite: beyond every other number, and still one to reckon with.
FAR: Final = LARGEST


def near(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers as codes: infinite ones as far as numbers go. The least of all doubles is no longer
    told apart from −∞ then, as no bound between them is a number either."""
    return np.clip(numbers, -FAR, FAR) if np.isinf(numbers).any() else numbers


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers, whose codes are the numbers themselves; infinite ones are ±`FAR`.

    `whole` where every number that is there is whole: then cuts are whole numbers too.
    """

    name: str
    attribute: int
    whole: bool = False
    is_ordered: ClassVar[bool] = True

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        """The clauses on the two sides of a cut between neighbouring values.

        `above` is ∞ where only missing values lie above; `missing_left` is None where the rows
        have no missing values, and then neither side speaks of them.
        """
        at = self.bound_between(below, above) if math.isfinite(above) else math.inf
        left = Interval(self.name, high=at, missing=missing_left is True, whole=self.whole)
        right = Interval(self.name, low=at, missing=missing_left is False, whole=self.whole)
        return left, right

    def bound_between(self, below: float, above: float) -> float:
        """The number in [below, above) that a person would choose."""
        at = shortest_between(below, above)
        if not self.whole or float(at).is_integer():
            return at
        return math.floor(at)  # what is below is whole, and stays below


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times, whose codes are microseconds since 1970."""

    name: str
    attribute: int
    whole_days: bool = False
    is_ordered: ClassVar[bool] = True

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        days = self.whole_days
        if math.isfinite(above):
            at = roundest_time(int(below), int(above))
            return (
                Period(self.name, until=at, missing=missing_left is True, whole_days=days),
                Period(self.name, after=at, missing=missing_left is False, whole_days=days),
            )
        nothing = Period(self.name, whole_days=days)
        only = Period(self.name, after=nothing.until, missing=True, whole_days=days)
        return nothing, only


@dataclass(frozen=True, slots=True)
class Categories:
    """A column of categories, whose codes are places in `values`."""

    name: str
    attribute: int
    values: tuple[Any, ...]
    is_ordered: ClassVar[bool] = False

    @property
    def is_closed(self) -> bool:
        """Whether no other value can ever come."""
        return all(isinstance(value, bool) for value in self.values)

    def divide(
        self, left: Sequence[int], right: Sequence[int], missing_left: bool | None
    ) -> tuple[Clause, Clause]:
        """The clauses for two sets of codes; the shorter list is written, the other negated."""
        if self.is_closed:
            names = [tuple(self.values[k] for k in side) for side in (left, right)]
            if all(names):
                return (
                    Among(self.name, names[0], missing=missing_left is True),
                    Among(self.name, names[1], missing=missing_left is False),
                )
        left_is_named = len(left) <= len(right)
        named = tuple(self.values[k] for k in (left if left_is_named else right))
        return (
            Among(self.name, named, not left_is_named, missing_left is True),
            Among(self.name, named, left_is_named, missing_left is False),
        )


@dataclass(frozen=True, slots=True)
class Term:
    """Whether a text mentions a term: 0 or 1."""

    name: str
    attribute: int
    term: str
    is_ordered: ClassVar[bool] = True

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        del below, above, missing_left  # there is only one cut
        return Mentions(self.name, self.term, False), Mentions(self.name, self.term, True)


@dataclass(frozen=True, slots=True)
class Absence:
    """Whether a text is missing: 0 or 1."""

    name: str
    attribute: int
    is_ordered: ClassVar[bool] = True

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        del below, above, missing_left
        return Among(self.name, negated=True), Among(self.name, missing=True)


@dataclass(frozen=True, slots=True)
class Binned:
    """A column of numbers or times in bins, whose codes are the numbers of the bins.

    Values in bin k are at most `tops[k]`, and those in the bins from k on are at least
    `bottoms[k]`. Where each bin is one value, cuts are as exact as without bins.
    """

    inner: Numbers | Times
    tops: tuple[float, ...]
    bottoms: tuple[float, ...]
    is_ordered: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def attribute(self) -> int:
        return self.inner.attribute

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        start = self.bottoms[int(above)] if math.isfinite(above) else math.inf
        return self.inner.cut(self.tops[int(below)], start, missing_left)


Column: TypeAlias = Numbers | Times | Categories | Term | Absence | Binned


def tie_order(columns: Sequence[Column]) -> NDArray[np.int64]:
    """Columns by name, and the terms of one text by theirs; its absence comes first."""
    texts = [column.term if isinstance(column, Term) else "" for column in columns]
    keys = [(name_order(c.name), name_order(text)) for c, text in zip(columns, texts, strict=True)]
    return np.array(sorted(range(len(columns)), key=keys.__getitem__), dtype=np.int64)


def roundest_time(below: int, above: int) -> np.datetime64:
    """The time in [below, above) that a person would name: a year's start, a day's, an hour's."""
    middle = np.datetime64(below + (above - below) // 2, "us")
    for unit in ("Y", "M", "D", "h", "m", "s", "ms"):
        start = middle.astype(f"datetime64[{unit}]")
        near = [
            int(candidate.astype("datetime64[us]").astype(np.int64))
            for candidate in (start, start + np.timedelta64(1, unit))
        ]
        inside = [at for at in near if below <= at < above]
        if inside:
            best = min(inside, key=lambda at: abs(2 * at - below - above))
            return np.datetime64(best, "us")
    return middle
