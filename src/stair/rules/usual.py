"""What is usual among the inliers that rules were learned from, field by field.

It travels with the rules, for who asks why a row stands out has the rules and one row and not the
table. Of numbers and times some values are kept with exactly how many inliers lie below each; of
categories the frequent ones with how many inliers have them. Whatever is said of a row follows
from these counts: "above 99.6% of inliers" is true of at least so many.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT
from stair.data.frame import Array, Value
from stair.rules.clauses import value_order
from stair.rules.schema import Field, Schema

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

# The ranks of the values that are kept of a number: finer where it is far from the middle.
TAIL: Final = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075)
FINE: Final = (*TAIL, *np.arange(0.01, 0.995, 0.01).round(2).tolist(), *(1 - p for p in TAIL[::-1]))
COARSE: Final = (0.001, 0.005, *np.arange(0.01, 0.1, 0.02).round(2).tolist(),
                 *np.arange(0.1, 0.95, 0.1).round(1).tolist(),
                 *(1 - p for p in np.arange(0.01, 0.1, 0.02).round(2).tolist()[::-1]),
                 0.995, 0.999)  # fmt: skip
MANY_FIELDS: Final = 50  # from here on fewer values are kept of each
MOST_FIELDS: Final = 400  # and beyond so many nothing: a rules file is read by people too
MOST_NAMED: Final = 100  # categories whose frequency is kept
FEWEST: Final = 3  # inliers that have a category whose name is kept: others could be anybody's
FEW_VALUES: Final = 40  # different numbers that are all kept
STEPS: Final = 10  # bins of equal width, and values that random cuts would have to set apart

# What a person calls unusual.
RARE: Final = 0.05
LARGEST: Final = float(np.finfo(np.float64).max)


@dataclass(frozen=True, slots=True)
class Figure:
    """How unusual a value is: the share of inliers that it lies above or below, or that have it; of
    a name that is not written down the share that has it at most.

    `as_rare` is the share of inliers whose value is as rare: one of a hundred codes that are all
    as frequent is nothing unusual.
    """

    side: str = ""  # above, below, equal, at most, or nothing where nothing is to be said
    share: float = math.nan
    as_rare: float = field(default=math.nan, compare=False)

    @property
    def is_rare(self) -> bool:
        if self.side in ("equal", "at most"):
            return (self.share if math.isnan(self.as_rare) else self.as_rare) <= RARE
        return bool(self.side) and self.share >= 1 - RARE

    def in_words(self, who: str) -> str:
        """Of so many inliers, or rows; empty where nothing is to be said."""
        if not self.side:
            return ""
        if self.side == "equal":
            return (
                f"no {who.removesuffix('s')} has it" if not self.share else _about(self.share, who)
            )
        if self.side == "at most":
            return f"at most {_no_more_than(self.share)} of {who}"
        if self.share >= 1:
            return f"{self.side} all {who}"
        return f"{self.side} {_at_least(self.share)} of {who}"


def _at_least(share: float) -> str:
    """A share in words that is not above it."""
    digits = 1 if share < 0.999 else 2
    floored = math.floor(share * 10 ** (digits + 2) + 1e-9) / 10**digits
    return f"{floored:.{digits}f}".rstrip("0").rstrip(".") + "%"


def _no_more_than(share: float) -> str:
    """A share in words that is not below it."""
    digits = _digits(share)
    raised = math.ceil(share * 10 ** (digits + 2) - 1e-9) / 10**digits
    return f"{raised:.{digits}f}".removesuffix(".0") + "%"


def _digits(share: float) -> int:
    return 0 if share >= 0.1 else 1 if share >= 0.001 else 2


def _about(share: float, who: str) -> str:
    if share < 0.0001:
        return f"less than 0.01% of {who}"
    digits = _digits(share)
    return f"{100 * share:.{digits}f}".removesuffix(".0") + f"% of {who}"


NOTHING: Final = Figure()


class Noted:
    """What is said of a value by its figure, worded once."""

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All that can be said of a value."""
        return (NOTHING,)

    @cached_property
    def _notes(self) -> dict[str, list[str]]:
        return {}

    def notes(self, who: str) -> list[str]:
        """Each figure in words."""
        if who not in self._notes:
            self._notes[who] = [figure.in_words(who) for figure in self.figures]
        return self._notes[who]

    @cached_property
    def documents(self) -> list[str]:
        """Each figure as the end of an object in JSON."""
        return [
            f', "side": "{f.side}", "share": {json.dumps(f.share)}}}' if f.side else "}"
            for f in self.figures
        ]


class _Unknown(Noted):
    """Where nothing is known of a field."""


UNKNOWN: Final = _Unknown()


@dataclass(frozen=True, eq=False)
class Spread(Noted):
    """A field of numbers or times. `below` and `upto` are how many of the `n` inliers that have a
    value have a smaller one than each point, and one that is at most it.

    The rest is of all rows, outliers too: in how wide a range they lie, how many in each of its
    equal steps, a value in the middle of each tenth of them, and on which side the long tail is.
    """

    points: tuple[float, ...]
    below: tuple[int, ...]
    upto: tuple[int, ...]
    n: int
    missing: int  # inliers
    low: float
    high: float
    steps: tuple[int, ...]
    tenths: tuple[float, ...]
    side: int  # 1: the long tail is above, −1: below

    @cached_property
    def is_complete(self) -> bool:
        """Whether every value that inliers have is among the points, none of which may be several
        whole numbers that floats cannot tell apart."""
        listed = sum(self.upto) - sum(self.below) == self.n and self.n > 0
        return listed and max(map(abs, self.points)) < EXACT

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """For each place among the points: before the first, at it, after it, at the second …; the
        last is that of a missing value."""
        counts = [(b, self.n - u) for b, u in zip(self.below, self.upto, strict=True)]
        between = zip((0, *self.upto), (*(self.n - b for b in self.below), 0), strict=True)
        places = [*chain.from_iterable(zip(between, counts, strict=False)), (self.n, 0)]
        found = [self._figure(under, over) for under, over in places]
        return (*found, _share(self.missing, self.n + self.missing))

    @cached_property
    def _each(self) -> list[int]:
        """How many inliers have each of the points."""
        return [u - b for b, u in zip(self.below, self.upto, strict=True)]

    def _figure(self, under: int, over: int) -> Figure:
        """Where so many inliers at least are smaller, and so many larger."""
        if not self.n:
            return NOTHING
        above, beneath = under / self.n, over / self.n
        if self.is_complete:
            equal = (self.n - under - over) / self.n
            if equal <= RARE and max(above, beneath) < 1 - RARE:
                count = self.n - under - over
                return Figure("equal", equal, sum(k for k in self._each if k <= count) / self.n)
        side, share = max(("above", above), ("below", beneath), key=lambda pair: pair[1])
        return Figure(side, share) if share >= 0.5 else NOTHING

    @cached_property
    def _edges(self) -> Floats:
        return np.array(self.points, dtype=np.float64)

    def places(self, x: Floats) -> NDArray[np.intp]:
        """The figure of each value."""
        points = self._edges
        near = np.clip(x, -LARGEST, LARGEST)
        left, right = np.searchsorted(points, near), np.searchsorted(points, near, "right")
        place = left + right
        place[np.isnan(x)] = 2 * len(points) + 1
        return place

    def surprise(self, x: Floats) -> Floats:
        """How unusual each value is, to be compared with other fields: how far out it lies, how
        few rows are around it, and how soon random cuts would set it apart. These are the three
        things that detectors look at, each as the logarithm of a share."""
        gone = np.isnan(x)
        near = np.clip(np.where(gone, 0.0, x), -LARGEST, LARGEST)
        found = self._far_out(near) + self._alone(near) - self._cuts(near)
        found[gone] = _named_surprise(self.missing, self.missing, self.n + self.missing)
        return found

    def _far_out(self, x: Floats) -> Floats:
        n, points = self.n, self._edges
        if not n:
            return np.zeros(len(x))
        left, right = np.searchsorted(points, x), np.searchsorted(points, x, "right")
        below, upto = np.array([*self.below, n]), np.array([0, *self.upto])
        is_point = right > left
        under, over = upto[left], below[right]  # at least smaller; at most at most it, in between
        middle = (under + over) / 2.0
        edges = np.array([x.min(initial=0.0), *points, x.max(initial=0.0)])
        with np.errstate(all="ignore"):
            part = (x / 2 - edges[left] / 2) / (edges[left + 1] / 2 - edges[left] / 2)
        inside = (left > 0) & (left < len(points)) & np.isfinite(part)
        middle = np.where(inside, under + np.clip(part, 0, 1) * (over - under), middle)
        at_most = np.where(is_point, np.append(self.upto, n)[left], middle)
        at_least = n - np.where(is_point, below[left], middle)
        low, high = (-np.log((k + 1) / (n + 1)) for k in (at_most, at_least))
        long = high if self.side >= 0 else low
        return np.asarray(np.maximum(long, (low + high) / 2))

    def _alone(self, x: Floats) -> Floats:
        n_all = sum(self.steps)
        width = self.high / STEPS - self.low / STEPS
        with np.errstate(all="ignore"):
            step = np.floor(x / width - self.low / width) if width > 0 else np.zeros(len(x))
        is_in = (x >= self.low) & (x <= self.high)
        place = np.clip(np.nan_to_num(step), 0, STEPS - 1).astype(np.intp)
        here = np.where(is_in, np.array(self.steps)[place], 0)
        return np.asarray(-np.log((here + 0.5) / max(n_all, 1)))

    def _cuts(self, x: Floats) -> Floats:
        """How many cuts at random places it takes on average until no tenth is on the value's side:
        of the cuts beyond a neighbour, the share that its gap has of the way is one."""
        tenths, size = np.array(self.tenths), LARGEST / 8
        away = np.clip(x, -size, size)[:, None] - np.clip(tenths, -size, size)[None, :]
        found = np.zeros(len(x))
        for way in (np.maximum(away, 0.0), np.maximum(-away, 0.0)[:, ::-1]):
            nearer = np.concatenate([way[:, 1:], np.zeros((len(x), 1))], axis=1)
            with np.errstate(all="ignore"):
                found += np.where(way > 0, 1 - nearer / way, 0.0).sum(axis=1)
        whole: Floats = found + _cuts_within((away == 0).sum(axis=1) + 1.0)
        return whole


def _cuts_within(n: object) -> Floats:
    """The cuts that it would take on average to tell n rows apart."""
    n = np.maximum(np.asarray(n, dtype=np.float64), 1.0)
    many = 2 * (np.log(np.maximum(n - 1, 1)) + np.euler_gamma) - 2 * (n - 1) / n
    found: Floats = np.where(n > 2, many, n - 1)
    return found


def _named_surprise(n_such: int, n_rarer: int, n: int) -> float:
    """As that of a number: for a name that so many of n have, where so many have one as rare. Those
    are a step as of numbers: with a hundred codes that are all as frequent, none is alone."""
    around = max(n_such, n_rarer / STEPS)
    share = around / n if n else 1.0
    far_out, alone = -math.log((n_rarer + 1) / (n + 1)), -math.log((around + 0.5) / max(n, 1))
    return far_out + alone - float(_cuts_within(1 + STEPS * share))


def _share(n_such: int, n: int) -> Figure:
    return Figure("equal", n_such / n) if n and n_such <= RARE * n else NOTHING


@dataclass(frozen=True, eq=False)
class Shares(Noted):
    """A field of categories: the inliers that have each of the frequent ones, those of all others,
    and of how many others at most any of these has."""

    values: tuple[object, ...]
    counts: tuple[int, ...]
    others: int
    most: int
    missing: int

    @property
    def n(self) -> int:
        return sum(self.counts) + self.others + self.missing

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Of each value, of one that is not among them, and of a missing one."""
        if not self.n:
            return (NOTHING,) * (len(self.counts) + 2)
        *rare, rare_other, rare_missing = (k / self.n for k in self._as_rare)
        other = Figure("at most" if self.most else "equal", self.most / self.n, rare_other)
        named = [Figure("equal", k / self.n, r) for k, r in zip(self.counts, rare, strict=True)]
        return (*named, other, Figure("equal", self.missing / self.n, rare_missing))

    @cached_property
    def _as_rare(self) -> list[int]:
        """In the same order: how many inliers have a value that is as rare as this one."""
        counts = (*self.counts, self.most, self.missing)
        held = (*self.counts, self.others, self.missing)
        return [sum(h for c, h in zip(counts, held, strict=True) if c <= k) for k in counts]

    @cached_property
    def _place(self) -> dict[Value, int]:
        places = {value: k for k, value in enumerate(self.values)}
        return {**places, None: len(self.values) + 1}

    def places(self, array: Array) -> NDArray[np.intp]:
        other, listed = len(self.values), array.tolist()
        return np.fromiter(
            (self._place.get(v if v == v else None, other) for v in listed), np.intp, len(listed)
        )

    def surprise(self, array: Array) -> Floats:
        counts = (*self.counts, self.most, self.missing)
        own = [_named_surprise(k, r, self.n) for k, r in zip(counts, self._as_rare, strict=True)]
        return np.array(own)[self.places(array)]


@dataclass(frozen=True, eq=False)
class Presence(Noted):
    """A field of texts: how many inliers have none."""

    n: int
    missing: int

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        return NOTHING, _share(self.missing, self.n + self.missing)

    def places(self, array: Array) -> NDArray[np.intp]:
        listed = array.tolist()
        return np.fromiter((v is None or v != v for v in listed), np.intp, len(listed))

    def surprise(self, array: Array) -> Floats:
        n = self.n + self.missing
        return np.where(self.places(array) == 1, _named_surprise(self.missing, self.missing, n), -9)


Habit: TypeAlias = Spread | Shares | Presence


@dataclass(frozen=True, eq=False)
class Usual:
    """What is usual of each field, by its name; `who` is what is counted: inliers, or rows where
    no class is that of inliers."""

    fields: Mapping[str, Habit]
    who: str = "inliers"


def usual_of(
    schema: Schema,
    values: Mapping[str, Array],
    is_inlier: NDArray[np.bool_],
    first: Iterable[str] = (),
    weights: Counts | None = None,
    who: str = "inliers",
) -> Usual:
    """What is usual of rows; where there are too many fields, of the `first` ones before others.
    Weights say how many rows each of them stands for."""
    names = [*dict.fromkeys([*first, *schema.names])][:MOST_FIELDS]
    wanted = {f.name: f for f in schema.fields}
    ranks = FINE if len(names) <= MANY_FIELDS else COARSE
    every = np.ones(len(is_inlier), np.int64) if weights is None else weights
    found = {
        name: _habit(wanted[name], values[name], is_inlier, every, ranks)
        for name in names
        if name in wanted and name in values
    }
    return Usual(found, who)


def _habit(
    each: Field,
    array: Array,
    is_inlier: NDArray[np.bool_],
    weights: Counts,
    ranks: Sequence[float],
) -> Habit:
    if each.kind in ("number", "time"):
        return spread_of(as_floats(array), is_inlier, weights, ranks)
    listed = array.tolist()
    if each.kind == "text":
        gone = np.fromiter((v is None for v in listed), np.bool_, len(listed))
        missing = int(weights[gone & is_inlier].sum())
        return Presence(int(weights[is_inlier].sum()) - missing, missing)
    counts: dict[Value, int] = {}
    for value, n, inside in zip(listed, weights.tolist(), is_inlier.tolist(), strict=True):
        if inside:
            counts[value] = counts.get(value, 0) + n
    return shares_of(counts)


def shares_of(counts: dict[Value, int]) -> Shares:
    """Of how many inliers have each value, None where it is missing."""
    missing = counts.pop(None, 0)
    ordered = sorted(counts, key=lambda v: (-counts[v], value_order(v)))
    kept = [v for v in ordered[:MOST_NAMED] if counts[v] >= FEWEST]
    left = [counts[v] for v in ordered[len(kept) :]]
    return Shares(tuple(kept), tuple(counts[v] for v in kept), sum(left), max(left, default=0),
                  missing)  # fmt: skip


def spread_of(
    x: Floats, is_inlier: NDArray[np.bool_], weights: Counts, ranks: Sequence[float]
) -> Spread:
    there = ~np.isnan(x)
    missing = int(weights[~there & is_inlier].sum())
    near = np.clip(x, -LARGEST, LARGEST)
    points, below, upto = _points(near[there & is_inlier], weights[there & is_inlier], ranks)
    known = there & np.isfinite(x)
    every, n_each = _counted(near[known], weights[known])
    n = upto[-1] if upto else 0
    if not len(every):
        return Spread(points, below, upto, n, missing, 0.0, 0.0, (0,) * STEPS, (), 1)
    low, high = float(every[0]), float(every[-1])
    width = high / STEPS - low / STEPS
    place = np.zeros(len(every), np.intp)
    if width > 0:
        with np.errstate(all="ignore"):
            place = np.clip(np.floor(every / width - low / width), 0, STEPS - 1).astype(np.intp)
    steps = np.zeros(STEPS, np.int64)
    np.add.at(steps, place, n_each)
    ends = np.cumsum(n_each)
    at = np.searchsorted(ends, (np.arange(STEPS) + 0.5) / STEPS * ends[-1])
    tenths = every[np.minimum(at, len(every) - 1)]
    return Spread(points, below, upto, n, missing, low, high, tuple(steps.tolist()),
                  tuple(tenths.tolist()), _long_side(every, n_each))  # fmt: skip


def _counted(values: Floats, weights: Counts) -> tuple[Floats, Counts]:
    """The different values in order, and how many rows have each."""
    order = np.argsort(values, kind="stable")
    ordered = values[order] + 0.0  # no negative zero
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)])
    if not len(starts):
        return ordered, np.zeros(0, np.int64)
    return ordered[starts], np.add.reduceat(weights[order], starts)


def _points(
    values: Floats, weights: Counts, ranks: Sequence[float]
) -> tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]]:
    """The values at these ranks, the least and the largest; all where they are few."""
    every, n_each = _counted(values, weights)
    ends = np.cumsum(n_each)
    kept = np.arange(len(every))
    if len(every) > FEW_VALUES:
        n = int(ends[-1])
        # So that what lies above one of the upper ones is above that share at least.
        wanted = [math.ceil(p * n) if p > 0.5 else math.floor(p * n) + 1 for p in ranks]
        at = np.searchsorted(ends, np.clip(wanted, 1, n))
        kept = np.unique(np.concatenate([[0], at, [len(every) - 1]]))
    points, upto = every[kept].tolist(), ends[kept].tolist()
    below = (ends[kept] - n_each[kept]).tolist()
    return tuple(points), tuple(below), tuple(upto)


def _long_side(values: Floats, counts: Counts) -> int:
    """On which side of the mean the long tail is, by the third moment."""
    scale = max(abs(float(values[0])), abs(float(values[-1])), 1e-300)
    small = values / scale
    mean = float(np.average(small, weights=counts))
    third = float(np.dot(counts.astype(np.float64), (small - mean) ** 3))
    return -1 if third < 0 else 1


def as_floats(array: Array) -> Floats:
    """Numbers and times (in microseconds) as float64, NaN where missing. A larger one never becomes
    a smaller one, so that what is strictly above stays true."""
    if array.dtype.kind == "M":
        found = array.astype("datetime64[us]").astype(np.int64).astype(np.float64)
        found[np.isnat(array)] = np.nan
        return found
    if array.dtype.kind == "O":
        return np.array([np.nan if v is None else float(v) for v in array.tolist()])
    return array.astype(np.float64, copy=False)
