"""A table cut into bins: the space in which boxes are looked for.

The best interval for an outlier rule begins and ends at an outlier's value. So all neighbouring
values without an outlier fall into one bin, and nothing is lost by it. A missing value has a bin
of its own, the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Integers, Unsigned
from stair.rules.columns import Categories, Column, Sides

# Past this many bins, neighbours with few outliers are put together.
MOST_BINS: Final = 4096

# So many values of a list count as one attribute, so many more as another, and so on.
VALUES_AN_ATTRIBUTE: Final = 4

Run: TypeAlias = tuple[int, int, bool]  # first and last bin, and whether missing values belong
Bins: TypeAlias = Run | frozenset[int]  # a run of an ordered column, a set of categories
Box: TypeAlias = dict[int, Bins]  # by column; never changed once made


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rows as bin numbers, and what the bins mean."""

    columns: tuple[Column, ...]
    codes: NDArray[np.uint16]  # rows × columns
    n_bins: NDArray[np.int32]
    has_missing: NDArray[np.bool_]
    # The least and the largest value of each bin, missing left out; NaN for unlike categories.
    smallest: tuple[NDArray[np.float64], ...]
    largest: tuple[NDArray[np.float64], ...]
    # What is wished of columns: what an attribute costs beyond 1, and the group that it is of.
    further_cost: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None  # −1: of none
    # The last bin of each column that is not that of missing values, and the most bins of any.
    last: tuple[int, ...] = field(init=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        last = (self.n_bins - self.has_missing - 1).tolist()
        object.__setattr__(self, "last", tuple(last))
        object.__setattr__(self, "width", max(self.n_bins.tolist(), default=0))

    @property
    def is_ordered(self) -> NDArray[np.bool_]:
        return np.array([column.is_ordered for column in self.columns])

    @property
    def sides(self) -> NDArray[np.uint8]:
        return np.array([column.sides for column in self.columns], dtype=np.uint8)

    def allows(self, j: int, bins: Bins) -> bool:
        """Whether a column's sides allow these bins."""
        sides = self.columns[j].sides
        if isinstance(bins, frozenset) or bins[0] > bins[1] or Sides.BETWEEN in sides:
            return True
        last = self.last[j]
        return (Sides.UP_TO in sides and bins[0] == 0) or (
            Sides.MORE_THAN in sides and bins[1] == last
        )

    def length(self, box: Box) -> int:
        """How many attributes the box speaks of; a long list of values counts as several, and an
        attribute that costs more as much as it costs."""
        attributes = {self.columns[j].attribute: j for j in box}
        further = sum(self._further(j, bins) for j, bins in box.items())
        if self.further_cost is not None:
            further += int(self.further_cost[list(attributes.values())].sum())
        return len(attributes) + further

    def rivals(self, j: int) -> NDArray[np.bool_]:
        """The columns that no rule with column j may use: others of its group."""
        if self.groups is None or self.groups[j] < 0:
            return np.zeros(len(self.columns), dtype=np.bool_)
        attributes = np.array([column.attribute for column in self.columns])
        found: NDArray[np.bool_] = (self.groups == self.groups[j]) & (attributes != attributes[j])
        return found

    def is_one_of_each_group(self, box: Box) -> bool:
        """Whether the box uses one column of a group at most."""
        return self.groups is None or not any(self.rivals(j)[list(box)].any() for j in box)

    def _further(self, j: int, bins: Bins) -> int:
        """What a list of values counts beyond the attribute itself."""
        if not isinstance(bins, frozenset):
            return 0
        has_shared = bool(np.isnan(self.smallest[j][-1:]).any())
        n_own = len(self.smallest[j]) - has_shared
        n_inside = sum(k < n_own for k in bins)
        if has_shared:  # which cannot be named, so that it is on the side that is not listed
            n_named = n_own - n_inside if n_own in bins else n_inside
        else:
            n_named = min(n_inside, n_own - n_inside)
        return max(0, -(-n_named // VALUES_AN_ATTRIBUTE) - 1)

    def n_bounds(self, j: int, bins: Bins) -> int:
        """How many bounds a clause has; a list or a word counts as one."""
        if isinstance(bins, frozenset):
            return 1
        return 2 if 0 < bins[0] <= bins[1] < self.last[j] else 1

    def table(self, box: Box) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """A box as the kernel reads it: its columns, and the bins that each allows."""
        allowed = np.zeros((len(box), self.width), dtype=np.uint8)
        for row, (j, bins) in zip(allowed, box.items(), strict=True):
            if isinstance(bins, frozenset):
                row[list(bins)] = 1
            else:
                low, high, missing = bins
                row[low : high + 1] = 1
                if self.has_missing[j]:
                    row[self.n_bins[j] - 1] = missing
        return np.fromiter(box, np.int32, len(box)), allowed


def all_bins(cells: Cells, j: int, most: int) -> list[Bins] | None:
    """All that a clause on a column may allow; None where that is more than so much."""
    n_bins = int(cells.n_bins[j])
    found: list[Bins] = []
    if not cells.columns[j].is_ordered:
        if 2**n_bins - 2 > most:
            return None
        every = range(1, 2**n_bins - 1)
        return [frozenset(k for k in range(n_bins) if code >> k & 1) for code in every]
    has_missing = bool(cells.has_missing[j])
    last = n_bins - has_missing - 1
    if (last + 1) * (last + 2) > most:
        return None
    for low in range(last + 1):
        for high in range(low, last + 1):
            for missing in (False, True)[: 1 + has_missing]:
                run: Bins = (low, high, missing)
                if (low > 0 or high < last or (has_missing and not missing)) and cells.allows(
                    j, run
                ):
                    found.append(run)
    if has_missing and last >= 0:
        found.append((1, 0, True))
    return found


def cells_of(
    columns: Sequence[Column],
    values: NDArray[np.float64],
    is_wanted: NDArray[np.bool_],
    most_bins: int = MOST_BINS,
    ranks: Callable[[int], Unsigned] | None = None,
) -> Cells:
    """Bins for a table of codes (NaN where missing); `is_wanted` marks the rows to be covered.

    `ranks` gives the rank of each row's value in a column, missing last, where that is known.
    """
    n_rows, n_columns = values.shape
    codes = np.empty((n_rows, n_columns), dtype=np.uint16, order="F")
    n_bins = np.empty(n_columns, dtype=np.int32)
    has_missing = np.zeros(n_columns, dtype=np.bool_)
    smallest, largest = [], []
    for j, column in enumerate(columns):
        places = _ranks(values[:, j]) if ranks is None else ranks(j)
        n_places = int(places.max()) + 1 if n_rows else 0
        distinct = np.empty(n_places)
        distinct[places] = values[:, j]
        has_missing[j] = n_places > 0 and np.isnan(distinct[-1])
        distinct = distinct[: n_places - has_missing[j]]
        wanted = np.bincount(places[is_wanted], minlength=n_places)[: len(distinct)]
        if column.is_ordered:
            bins = _bins(wanted, most_bins)
            first = np.flatnonzero(np.diff(bins, prepend=-1))
            smallest.append(distinct[first])
            largest.append(
                distinct[np.append(first[1:] - 1, len(distinct) - 1)] if len(first) else distinct
            )
        else:
            bins = np.arange(len(distinct))
            smallest.append(distinct.copy())
            if isinstance(column, Categories) and column.has_others:  # the last, without a name
                smallest[-1][distinct == len(column.values)] = np.nan
            largest.append(smallest[-1])
        n_bins[j] = len(smallest[-1]) + has_missing[j]
        codes[:, j] = np.append(bins, len(smallest[-1])).astype(np.uint16)[places]
    return Cells(tuple(columns), codes, n_bins, has_missing, tuple(smallest), tuple(largest))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.unique(values, return_inverse=True)[1]


def _bins(wanted: Integers, most: int) -> NDArray[np.intp]:
    """The bin of each distinct value, from the wanted rows that have it."""
    begins = np.ones(len(wanted), dtype=np.bool_)
    begins[1:] = (wanted[1:] > 0) | (wanted[:-1] > 0)
    bins = np.cumsum(begins) - 1
    if len(bins) and bins[-1] >= most:
        share = np.cumsum(wanted) * (most - 1) / wanted.sum()
        bins = np.unique(share.astype(np.intp), return_inverse=True)[1]
    return bins
