"""Columns of codes, as the engines see them, and how a cut in them becomes a clause.

Numbers, times, categories, and the terms of a text: each kind knows what its codes mean. Each also
has what an attribute of it adds to the length of a rule, and the group of columns of which a rule
may use one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import ClassVar, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.decimals import LARGEST, shortest_between
from stair.data.frame import Integers, Value
from stair.data.names import name_order
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period

# A category that fewer rows than this have is rare: its name is a memory of these rows.
ROWS_A_VALUE: Final = 5
# The most values that one clause may list, by default.
MOST_VALUES: Final = 12
# A value is frequent from this share of the rows on.
OFTEN_SHARE: Final = 0.01
# Of many values one that would differ as much by chance, so often, tells nothing.
CHANCE: Final = 0.05
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


class Sides(IntFlag):
    """Which clauses a column with an order allows: those that go on to one of its ends, and those
    with a bound on either side."""

    UP_TO = 1
    MORE_THAN = 2
    BETWEEN = 4


ANY_SIDE: Final = Sides.UP_TO | Sides.MORE_THAN | Sides.BETWEEN
ONE_SIDE: Final = Sides.UP_TO | Sides.MORE_THAN


def _tell_something(n_rows: Integers, wanted: Integers, share: float) -> NDArray[np.bool_]:
    """Of many values those that are frequent, and those whose share of wanted rows is not what some
    of so many would have by chance (Chernoff's bound): 600 names with 7 rows each have a few that
    are all wanted rows, and these are other names next week."""
    own = np.clip(wanted / n_rows, 1e-12, 1 - 1e-12)
    all_ = min(max(share, 1e-12), 1 - 1e-12)
    apart = own * np.log(own / all_) + (1 - own) * np.log((1 - own) / (1 - all_))
    chance = np.exp(-n_rows * apart) * len(n_rows)
    frequent = n_rows >= OFTEN_SHARE * n_rows.sum()
    told: NDArray[np.bool_] = frequent | (chance < CHANCE)
    return told


# What the values are called that a clause may not name.
ANY_OTHER: Final = "any other (rare)"


def namable(n_rows: Integers, wanted: Integers | None, lists: Lists) -> NDArray[np.intp]:
    """The categories, by their places, that a clause may name, from the rows that have each and the
    wanted ones among them. A name that few rows have is a memory of these rows, and so is a long
    list: those are kept that differ most in their shares of the wanted rows and of the others; the
    most frequent ones where nobody knows the wanted rows."""
    own = np.arange(len(n_rows))
    if n_rows.sum() > FEW_ROWS:
        own = np.flatnonzero(n_rows >= lists.min_rows)
    if len(own) > lists.max_values:
        tells = n_rows
        if wanted is not None:
            others = n_rows - wanted
            own = own[_tell_something(n_rows[own], wanted[own], int(wanted.sum()) / n_rows.sum())]
            # In whole numbers, so that ties are ties: the value that sorts first is kept.
            tells = np.abs(
                wanted.astype(object) * int(others.sum())
                - others.astype(object) * int(wanted.sum())
            )
        first = sorted(own.tolist(), key=lambda k: (-tells[k], k))[: lists.max_values]
        own = np.array(sorted(first), dtype=np.intp)
    return own


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers, whose codes are the numbers themselves; infinite ones are ±`FAR`.

    `whole` where every number that is there is whole: then cuts are whole numbers too.
    """

    name: str
    attribute: int
    whole: bool = False
    sides: Sides = ANY_SIDE
    cost: int = 1
    group: str = ""
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
    sides: Sides = ANY_SIDE
    cost: int = 1
    group: str = ""
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
    """A column of categories, whose codes are places in `values`.

    With `has_others` the code after the last of them stands for any other value. It has no name, so
    that it is always on the side that is not listed.
    """

    name: str
    attribute: int
    values: tuple[Value, ...]
    has_others: bool = False
    of: str = ""  # the column of addresses, where the values are networks
    cost: int = 1
    group: str = ""
    is_ordered: ClassVar[bool] = False
    sides: ClassVar[Sides] = ANY_SIDE

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.values) + self.has_others

    @property
    def is_closed(self) -> bool:
        """Whether no other value can ever come."""
        return not self.has_others and all(isinstance(value, bool) for value in self.values)

    def divide(
        self, left: Sequence[int], right: Sequence[int], missing_left: bool | None
    ) -> tuple[Clause, Clause]:
        """The clauses for two sets of codes; the shorter list is written, the other negated, but
        for a list with values that cannot be named."""
        if self.is_closed:
            names = [tuple(self.values[k] for k in side) for side in (left, right)]
            if all(names):
                return (
                    self.among(names[0], missing=missing_left is True),
                    self.among(names[1], missing=missing_left is False),
                )
        left_is_named = len(left) <= len(right)
        if self.has_others and len(self.values) in (*left, *right):
            left_is_named = len(self.values) in right
        named = tuple(self.values[k] for k in (left if left_is_named else right))
        return (
            self.among(named, not left_is_named, missing_left is True),
            self.among(named, left_is_named, missing_left is False),
        )

    def among(
        self, values: tuple[Value, ...], negated: bool = False, missing: bool = False
    ) -> Among:
        """The clause that lists these values."""
        return Among(self.name, values, negated, missing, self.of)


@dataclass(frozen=True, slots=True)
class Term:
    """Whether a text mentions a term: 0 or 1."""

    name: str
    attribute: int
    term: str
    cost: int = 1
    group: str = ""
    is_ordered: ClassVar[bool] = True
    sides: ClassVar[Sides] = ANY_SIDE

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        del below, above, missing_left  # there is only one cut
        return Mentions(self.name, self.term, False), Mentions(self.name, self.term, True)


@dataclass(frozen=True, slots=True)
class OneOf:
    """Whether a category has a value: 0 or 1. For trees that divide nothing but numbers."""

    name: str
    attribute: int
    value: Value
    missing: bool = False  # whether some rows have no value at all
    of: str = ""  # the column of addresses, where the value is a network
    cost: int = 1
    group: str = ""
    is_ordered: ClassVar[bool] = True
    sides: ClassVar[Sides] = ANY_SIDE

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        del below, above, missing_left
        named = (self.value,)
        return (
            Among(self.name, named, negated=True, missing=self.missing, of=self.of),
            Among(self.name, named, of=self.of),
        )


@dataclass(frozen=True, slots=True)
class Absence:
    """Whether a text is missing: 0 or 1."""

    name: str
    attribute: int
    cost: int = 1
    group: str = ""
    is_ordered: ClassVar[bool] = True
    sides: ClassVar[Sides] = ANY_SIDE

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

    @property
    def sides(self) -> Sides:
        return self.inner.sides

    @property
    def cost(self) -> int:
        return self.inner.cost

    @property
    def group(self) -> str:
        return self.inner.group

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        start = self.bottoms[int(above)] if math.isfinite(above) else math.inf
        return self.inner.cut(self.tops[int(below)], start, missing_left)


Ordered: TypeAlias = Numbers | Times | OneOf | Term | Absence | Binned
Column: TypeAlias = Ordered | Categories


def network_order(column: Column) -> int:
    """Narrow networks before wide ones, after all that is no network."""
    if not isinstance(column, Categories) or not column.of:
        return 0
    widths = [int(str(network).partition("/")[2]) for network in column.values[:1]]
    return 33 - max(widths, default=0)


def cut_once(columns: Sequence[Column]) -> NDArray[np.bool_]:
    """The columns that a rule may cut once at most: a second cut would give it a second bound."""
    return np.array([Sides.BETWEEN not in column.sides for column in columns], dtype=np.bool_)


def allows(sides: Sides, clause: Clause) -> bool:
    """Whether a column with these sides allows a clause on it."""
    if clause.only_missing:
        return True
    low, high = (bound is not None for bound in clause.bounds)
    if low and high:
        return Sides.BETWEEN in sides
    return not ((low and Sides.MORE_THAN not in sides) or (high and Sides.UP_TO not in sides))


def attribute_name(column: Column) -> str:
    """What the attribute of a column is called: that of a network is the address."""
    return (column.of if isinstance(column, Categories | OneOf) else "") or column.name


def tie_order(columns: Sequence[Column]) -> NDArray[np.int64]:
    """Columns by name, and the terms of one text by theirs; its absence comes first, and so do the
    narrow networks of an address."""
    keys = []
    for column in columns:
        text = column.term if isinstance(column, Term) else ""
        is_network = isinstance(column, Categories) and column.of
        keys.append(
            (name_order(is_network or column.name), network_order(column), name_order(text))
        )
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
