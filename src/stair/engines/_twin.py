"""The numpy twin of the compiled kernel: the same answers, by the obvious way.

It serves where no C compiler was there at install time, and it is the oracle in the tests. A
group of rows is the array of its row numbers; every column is an array of integer codes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.objective import Counts
from stair.search import best_cut, best_set

Group: TypeAlias = NDArray[np.intp]


def sort_columns(X: NDArray[np.float64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Entries code << 32 | row of every column by value, and the code of missing (−1 if none)."""
    n_rows, n_columns = X.shape
    entries = np.empty((n_columns, n_rows), dtype=np.uint64)
    missing = np.full(n_columns, -1, dtype=np.int64)
    for j in range(n_columns):
        order = np.argsort(X[:, j], kind="stable")  # NaN comes last
        values = X[order, j]
        steps = (values[1:] != values[:-1]) & ~np.isnan(values[:-1])
        codes = np.concatenate([[0], np.cumsum(steps)])[:n_rows].astype(np.uint64)
        entries[j] = codes << np.uint64(32) | order.astype(np.uint64)
        if n_rows and np.isnan(values[-1]):
            missing[j] = int(codes[-1])
    return entries, missing


class Kernel:
    """The same methods as the compiled one."""

    def __init__(
        self,
        entries: NDArray[np.uint64],
        labels: NDArray[np.int32],
        weights: NDArray[np.int64] | None,
        table: NDArray[np.float64] | None,
        n_classes: int,
        missing: NDArray[np.int64],
        unordered: NDArray[np.uint8],
    ) -> None:
        n_columns, n_rows = entries.shape
        self._codes = np.empty((n_columns, n_rows), dtype=np.int64)
        for j in range(n_columns):
            rows = (entries[j] & np.uint64(0xFFFFFFFF)).astype(np.intp)
            self._codes[j, rows] = entries[j] >> np.uint64(32)
        self._labels = labels
        self._weights = np.ones(n_rows, dtype=np.int64) if weights is None else weights
        self._table = table
        self._n_classes = n_classes
        self._missing = missing
        self._unordered = unordered

    def root(self) -> Group:
        return np.arange(self._codes.shape[1])

    def rows(self, group: Group, column: int = 0) -> NDArray[np.intp]:
        return group[np.argsort(self._codes[column, group], kind="stable")]

    def counts(self, group: Group) -> tuple[int, ...]:
        counts = np.zeros(self._n_classes, dtype=np.int64)
        np.add.at(counts, self._labels[group], self._weights[group])
        return tuple(counts.tolist())

    def codes_of(self, group: Group, column: int) -> tuple[Counts, NDArray[np.int64]]:
        """Class counts of each code that the group has, and those codes."""
        codes, places = np.unique(self._codes[column, group], return_inverse=True)
        counts = np.zeros((len(codes), self._n_classes), dtype=np.int64)
        np.add.at(counts, (places, self._labels[group]), self._weights[group])
        return counts, codes

    def scan(
        self,
        group: Group,
        columns: NDArray[np.int64],
        totals: tuple[int, ...],  # noqa: ARG002 - the kernel needs it
    ) -> tuple[list[float], list[int], list[int]]:
        """For each column: the gain of its best cut (NaN if none), the cut, the missing side."""
        gains = np.full(len(columns), np.nan)
        cuts = np.zeros(len(columns), dtype=np.int64)
        missing_left = np.zeros(len(columns), dtype=np.uint8)
        for k, column in enumerate(columns):
            counts, codes = self.codes_of(group, int(column))
            if self._unordered[column]:
                found_set = best_set(counts, self._table)
                if found_set is not None:
                    gains[k], cuts[k] = found_set
                continue
            is_missing = codes == self._missing[column]
            found = best_cut(counts[~is_missing], counts[is_missing].sum(axis=0), self._table)
            if found is not None:
                gains[k], cuts[k], missing_left[k] = (
                    found.gain,
                    codes[found.last],
                    found.missing_left,
                )
        return gains.tolist(), cuts.tolist(), missing_left.tolist()

    def divide(
        self,
        group: Group,
        columns: NDArray[np.int64],  # noqa: ARG002 - the kernel needs it
        column: int,
        cut: int,
        missing_left: bool,
        left_codes: NDArray[np.uint8] | None = None,
    ) -> tuple[Group, Group, tuple[int, ...], int, int, int]:
        """Two groups, the left's counts, a row each side of the cut (or −1), how many miss it."""
        codes = self._codes[column, group]
        if left_codes is not None:
            left = left_codes[codes].astype(bool)
            return group[left], group[~left], self.counts(group[left]), -1, -1, 0
        is_missing = codes == self._missing[column]
        left = np.where(is_missing, missing_left, codes <= cut)
        below, above = group[(codes <= cut) & ~is_missing], group[(codes > cut) & ~is_missing]
        row_below = int(below[self._codes[column, below].argmax()]) if below.size else -1
        row_above = int(above[self._codes[column, above].argmin()]) if above.size else -1
        sides = group[left], group[~left]
        return *sides, self.counts(sides[0]), row_below, row_above, int(is_missing.sum())
