"""Which partition a row belongs to: the one whose center is nearest, by columns of any kind.

Distances need comparable attributes, so numbers and times are scaled robustly, by their median and
interquartile range, for distances only; the rules stay in the user's own units. Two different
categories are as far apart as one such range, and so are two texts that share no term. The squared
distance is divided by the number of attributes: it means the same at 6 and at 57 of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array, Value
from stair.data.weights import percentiles
from stair.rules.clauses import Among, Mentions, value_order

Matrix: TypeAlias = NDArray[np.float64]

# A category that few rows have tells little about where rows lie.
MOST_CATEGORIES = 50
# Numbers from here on are not centred: the difference of two may be infinite.
LARGE = 1e307
# The farthest that a row may lie from the center: squares of it still add up.
FAR = 1e140
# A range of less than this is none.
TINY = 1e-300
# Rows whose distances are computed at once: what is in between stays in the processor's cache.
BLOCK = 1 << 14


@dataclass(frozen=True, slots=True)
class Dimension:
    """One attribute's part in a distance.

    `values` are the categories or terms that count; numbers and times have a center and a scale.
    """

    feature: str
    kind: str
    center: float = 0.0
    scale: float = 1.0
    values: tuple[Value, ...] = ()

    @property
    def width(self) -> int:
        return len(self.values) if self.kind in ("category", "text") else 1

    def place(self, array: Array) -> Matrix:
        """Coordinates (rows × width); a missing number lies at the center, and so does an infinite
        one, from which nothing else is nearer than another."""
        if self.kind == "category":
            clauses = [Among(self.feature, (value,)) for value in self.values]
            cell, allowed = Among.cells(clauses, array)
            return allowed.T.astype(np.float64)[cell] * math.sqrt(0.5)
        if self.kind == "text":
            found = [Mentions(self.feature, term).covers(array) for term in self.values]
            return np.column_stack(found).astype(np.float64) / math.sqrt(len(found))
        if self.kind == "time":
            times = np.asarray(array, dtype="datetime64[us]")
            numbers = times.astype(np.int64).astype(np.float64)
            numbers[np.isnat(times)] = math.nan
        else:
            numbers = np.asarray(array, dtype=np.float64)
        with np.errstate(over="ignore"):  # as far as numbers go is far enough
            placed = np.nan_to_num((numbers - self.center) / self.scale)
        placed[np.isinf(numbers)] = 0.0
        return placed[:, None]


@dataclass(frozen=True, slots=True)
class Space:
    """All attributes together."""

    dimensions: tuple[Dimension, ...]

    def place(self, column: Callable[[str], Array]) -> Matrix:
        """The coordinates of rows, such that squared distances are means over the attributes."""
        parts = [dimension.place(column(dimension.feature)) for dimension in self.dimensions]
        return np.column_stack(parts) / math.sqrt(len(self.dimensions))

    def distances(self, places: Matrix, centers: Matrix) -> Matrix:
        """Squared, from each row to each center, added up attribute by attribute.

        The order of the sum is part of its meaning: SQL and the other endings add up in the same
        order, and so find the same nearest center to the last bit, ties included.
        """
        found = np.zeros((len(places), len(centers)))
        for k, center in enumerate(centers):
            start = 0
            for dimension in self.dimensions:
                part = np.zeros(len(places))
                with np.errstate(over="ignore"):  # beyond 1e154 every center is infinitely far
                    for j in range(start, start + dimension.width):
                        part += (places[:, j] - center[j]) ** 2
                found[:, k] += part
                start += dimension.width
        return found


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the data: its center, its training rows, how many rules are its own."""

    center: tuple[float, ...]  # coordinates in the space; none where all rows are here
    rows: float
    n_rules: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class Routing:
    """Which partition a row belongs to: that of the nearest center, the first of equals.

    Two scores are kept apart: `routed` is what a new row gets, by its nearest center; `assigned`
    is the paper's, in which training knew the label of a row when it chose the row's partition.
    """

    space: Space
    partitions: tuple[Partition, ...]
    assigned: float = 0.0
    routed: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.partitions)

    def of(self, column: Callable[[str], Array], n_rows: int) -> NDArray[np.intp]:
        """The number of the partition of each row."""
        if not self:
            return np.zeros(n_rows, dtype=np.intp)
        centers = np.array([partition.center for partition in self.partitions])
        nearest: NDArray[np.intp] = self.space.distances(self.space.place(column), centers).argmin(
            axis=1
        )
        return nearest

    def with_rows(self, column: Callable[[str], Array], n_rows: int) -> Routing:
        """The same with the rows of each partition counted among these."""
        if not self:
            return self
        counts = np.bincount(self.of(column, n_rows), minlength=len(self.partitions)).tolist()
        partitions = zip(self.partitions, counts, strict=True)
        return replace(self, partitions=tuple(replace(p, rows=float(n)) for p, n in partitions))

    def heading(self, number: int) -> str:
        """What a partition is called; nothing where there is no other."""
        if not self:
            return ""
        words = self.partitions[number].description
        return f"partition {number + 1}{f' ({words})' if words else ''}"


# Nobody asked for partitions: all rows are in one.
NO_ROUTING: Final = Routing(Space(()), ())


def space_of(
    features: Sequence[tuple[str, str]],
    column: Callable[[str], Array],
    terms: Callable[[str], tuple[str, ...]],
    times: NDArray[np.int64] | None = None,
) -> Space:
    """The space of some features (name and kind), scaled by the rows that are there, each of them
    so many times."""
    dimensions: list[Dimension] = []
    for name, kind in features:
        if kind == "category":
            listed = column(name).tolist()
            counts: dict[object, int] = {}
            often = [1] * len(listed) if times is None else times.tolist()
            for value, n in zip(listed, often, strict=True):
                if value is not None:
                    counts[value] = counts.get(value, 0) + n
            common = sorted(counts, key=lambda v: (-counts[v], value_order(v)))[:MOST_CATEGORIES]
            if common:
                dimensions.append(Dimension(name, kind, values=tuple(common)))
        elif kind == "text":
            if terms(name):
                dimensions.append(Dimension(name, kind, values=terms(name)))
        else:
            dimensions.append(_scaled(name, kind, column(name), times))
    return Space(tuple(dimensions))


def _scaled(name: str, kind: str, array: Array, times: NDArray[np.int64] | None) -> Dimension:
    """A number or time by its median and interquartile range; one that is as good as zero scales
    by 1: libraries divide by multiplying with the inverse, which is infinite for the least ones."""
    plain = Dimension(name, kind).place(array)[:, 0]
    if kind == "time":
        gone = np.isnat(array)
    else:
        gone = ~np.isfinite(np.asarray(array, dtype=np.float64))
    seen, times = plain[~gone], None if times is None else times[~gone]
    if not seen.size:
        return Dimension(name, kind)
    peak = float(np.abs(seen).max())
    if peak > LARGE:  # no difference may be infinite, and no square of one
        low, high = 2.0 * percentiles(seen / 4.0, times, [25, 75])
        center = 0.0
    else:
        low, center, high = percentiles(seen, times, [25, 50, 75])
    scale = float(high - low)
    return Dimension(name, kind, float(center), max(scale if scale > TINY else 1.0, peak / FAR))


def squared_distances(places: Matrix, centers: Matrix) -> Matrix:
    """From each row to each center; fastest where the coordinates lie column by column."""
    found = np.empty((len(centers), len(places)))
    for start in range(0, len(places), BLOCK):
        block = places[start : start + BLOCK]
        for k, center in enumerate(centers):
            found[k, start : start + BLOCK] = _sum_of_squares(block, center, 0, len(center))
    return found.T


def _sum_of_squares(places: Matrix, center: Matrix, start: int, stop: int) -> Matrix:
    """Of the differences in some coordinates, added up as NumPy adds up a row of numbers: in eight
    parts, halved where there are many. The order shows in the last digit, which may decide."""

    def square(j: int) -> Matrix:
        difference: Matrix = places[:, j] - center[j]
        difference *= difference
        return difference

    n = stop - start
    if n > 128:
        half = start + n // 2 - n // 2 % 8
        return _sum_of_squares(places, center, start, half) + _sum_of_squares(
            places, center, half, stop
        )
    if n < 8:
        rest = start
        total = np.zeros(len(places))
    else:
        parts = [square(j) for j in range(start, start + 8)]
        rest = start + n // 8 * 8
        for j in range(start + 8, rest):
            parts[(j - start) % 8] += square(j)
        while len(parts) > 1:
            parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
        (total,) = parts
    for j in range(rest, stop):
        total += square(j)
    return total
