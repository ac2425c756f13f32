"""Rows that are equal in all cells and in class, as one row that stands for so many.

Whoever learns from such rows gets the same as from all of them, and pays for the distinct ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.learn.table import Table

Rows: TypeAlias = NDArray[np.intp]

# Rows become one where there are at least this many times fewer then: counting rows is faster than
# adding up weights.
WORTH_MERGING: Final = 2


@dataclass(frozen=True, slots=True, eq=False)
class Alike:
    """A table with a class for each row, and how many rows each stands for (None: one)."""

    table: Table
    codes: NDArray[np.int32]
    times: NDArray[np.int64] | None

    def every(self, values: Array, rows: Rows | None = None) -> Array:
        """What belongs to rows, as often as there are such rows: sums are then theirs, to the
        last bit."""
        values = values if rows is None else values[rows]
        times = self.times_of(rows)
        return values if times is None else np.repeat(values, times, axis=0)

    def times_of(self, rows: Rows | None) -> NDArray[np.int64] | None:
        return self.times if rows is None or self.times is None else self.times[rows]

    def count(self, numbers: Array, n: int, rows: Rows | None = None) -> list[int]:
        """How many rows there are of each number from 0 to n − 1; `rows` are those to look at."""
        numbers = numbers if rows is None else numbers[rows]
        return [int(count) for count in np.bincount(numbers, self.times_of(rows), n)]

    def size(self, rows: Rows) -> int:
        times = self.times_of(rows)
        return len(rows) if times is None else int(times.sum())


def merged(table: Table, codes: NDArray[np.int32], apart: Iterable[NDArray[np.intp]] = ()) -> Alike:
    """Rows in which equal ones stand next to each other, as one each where that pays.

    `apart` are numbers for each row that tell rows apart beside their codes.
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
        return Alike(table, codes, None)
    times = np.diff(np.r_[first, len(codes)]).astype(np.int64)
    table = Table(table.schema, table.columns, table.codes[first], table.values.take(first))
    return Alike(table, codes[first], times)
