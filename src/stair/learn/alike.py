"""Rows that are equal in all cells and in class, as one row that stands for so many.

Whoever learns from such rows gets the same as from all of them, and pays for the distinct ones. A
row with a weight is as many rows, in the lowest terms that all weights have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ldexp
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.data.weights import fixed_point, percentiles
from stair.learn.table import Table

Rows: TypeAlias = NDArray[np.intp]

# Rows become one where there are at least this many times fewer then: counting rows is faster than
# adding up weights.
WORTH_MERGING: Final = 2
# Rows of which weights make at most so many times as many are written out where sums are taken.
# Otherwise they are weighed, and sums of distances agree but for rounding.
MOST_WRITTEN: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """How many rows each row is worth: whole numbers without a common divisor (None: one each), in
    units of `factor` · 2**`unit`."""

    times: NDArray[np.int64] | None = None
    factor: int = 1
    unit: int = 0

    @property
    def are_few(self) -> bool:
        """Whether these are not too many rows to be written out."""
        return self.times is None or int(self.times.sum()) <= MOST_WRITTEN * len(self.times)

    def true(self, count: float) -> float:
        """Such a count as the weights that were given."""
        return ldexp(count * self.factor, self.unit)

    def written(self, values: Array) -> tuple[Array, NDArray[np.int64] | None]:
        """Values as often as there are such rows; or once, with how often, where that is much."""
        if self.times is None or not self.are_few:
            return values, self.times
        return np.repeat(values, self.times, axis=0), None


def shares_of(weights: NDArray[np.float64] | None) -> Shares:
    """Weights in their lowest terms: those that are all alike are none."""
    if weights is None:
        return Shares()
    whole, unit = fixed_point(weights)
    factor = int(np.gcd.reduce(whole))
    times = whole // factor
    return Shares(None if (times == 1).all() else times, factor, unit)


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """A table with a class for each row, and how many rows each stands for (None: one)."""

    table: Table
    codes: NDArray[np.int32]
    times: NDArray[np.int64] | None
    is_written: bool = True  # whether rows are written out as often as they are there

    def every(self, values: Array, rows: Rows | None = None) -> Array:
        """What belongs to rows, as often as there are such rows: sums are then theirs, to the
        last bit."""
        values = values if rows is None else values[rows]
        times = self.times_of(rows)
        return values if times is None else np.repeat(values, times, axis=0)

    def written(
        self, values: Array, rows: Rows | None = None
    ) -> tuple[Array, NDArray[np.int64] | None]:
        """What belongs to rows, as often as there are such rows; or once, with how often."""
        if self.is_written:
            return self.every(values, rows), None
        return values if rows is None else values[rows], self.times_of(rows)

    def sum(self, values: NDArray[np.float64]) -> float:
        values, times = self.written(values)
        return float(values.sum() if times is None else (values * times).sum())

    def mean(self, values: NDArray[np.float64], rows: Rows) -> NDArray[np.float64]:
        values, times = self.written(values, rows)
        found: NDArray[np.float64] = np.average(values, axis=0, weights=times)
        return found

    def median(self, values: NDArray[np.float64]) -> float:
        values, times = self.written(values)
        return float(np.median(values) if times is None else percentiles(values, times, [50])[0])

    def times_of(self, rows: Rows | None) -> NDArray[np.int64] | None:
        return self.times if rows is None or self.times is None else self.times[rows]

    def count(self, numbers: Array, n: int, rows: Rows | None = None) -> list[int]:
        """How many rows there are of each number from 0 to n − 1; `rows` are those to look at."""
        numbers = numbers if rows is None else numbers[rows]
        return [int(count) for count in np.bincount(numbers, self.times_of(rows), n)]

    def size(self, rows: Rows) -> int:
        times = self.times_of(rows)
        return len(rows) if times is None else int(times.sum())


def merged(
    table: Table,
    codes: NDArray[np.int32],
    apart: Iterable[NDArray[np.intp]] = (),
    shares: Shares = Shares(),
) -> Alike:
    """Rows in which equal ones stand next to each other, as one each where that pays.

    `apart` are numbers for each row that tell rows apart beside their codes; `shares` how many rows
    each is worth.
    """
    above, below = table.codes[:-1], table.codes[1:]
    is_other = codes[:-1] != codes[1:]
    for numbers in apart:
        is_other |= numbers[:-1] != numbers[1:]
    for j in range(table.codes.shape[1]):
        one, two = above[:, j], below[:, j]
        is_other |= (one != two) & ~(np.isnan(one) & np.isnan(two))
    first = np.flatnonzero(np.r_[True, is_other])
    if len(first) * WORTH_MERGING > len(codes):
        return Alike(table, codes, shares.times, shares.are_few)
    if shares.times is None:
        times = np.diff(np.r_[first, len(codes)]).astype(np.int64)
    else:
        times = np.add.reduceat(shares.times, first)
    table = Table(table.schema, table.columns, table.codes[first], table.values.take(first))
    return Alike(table, codes[first], times, shares.are_few)
