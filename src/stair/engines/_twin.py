"""The numpy twin of the compiled kernel: the same answers, by the obvious way.

It serves where no C compiler was there at install time, and it is the oracle in the tests. A
group of rows is the array of its row numbers; every column is an array of integer codes.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Unsigned
from stair.engines.search import best_cut, best_set
from stair.rules.objective import Counts

Group: TypeAlias = NDArray[np.intp]


def sort_columns(
    X: NDArray[np.float64], columns: NDArray[np.int64], labels: NDArray[np.int32]
) -> list[tuple[Unsigned, int]]:
    """For each of these columns: entries (code, row, label) by value, and the code of missing."""
    n_rows = len(X)
    below = bits_for(n_rows) + 1
    found: list[tuple[Unsigned, int]] = []
    for j in columns.tolist():
        order = np.argsort(X[:, j], kind="stable")  # NaN comes last
        values = X[order, j]
        steps = (values[1:] != values[:-1]) & ~np.isnan(values[:-1])
        codes = np.concatenate([[0], np.cumsum(steps)])[:n_rows].astype(np.uint64)
        second = (labels[order] == 1).astype(np.uint64)
        entries = codes << np.uint64(below) | order.astype(np.uint64) << np.uint64(1) | second
        n_codes = int(codes[-1]) + 1 if n_rows else 0
        is_narrow = below + bits_for(n_codes) <= 32
        missing = n_codes - 1 if n_rows and np.isnan(values[-1]) else -1
        found.append((entries.astype(np.uint32 if is_narrow else np.uint64), missing))
    return found


def bits_for(n: int) -> int:
    """How many bits it takes to number n things from 0."""
    return max(1, (n - 1).bit_length())


class Kernel:
    """The same methods as the compiled one."""

    def __init__(
        self,
        columns: list[Unsigned],
        labels: NDArray[np.int32],
        weights: NDArray[np.int64] | None,
        table: NDArray[np.float64] | None,
        n_classes: int,
        missing: NDArray[np.int64],
        unordered: NDArray[np.uint8],
    ) -> None:
        n_rows = len(labels)
        below = np.uint64(bits_for(n_rows) + 1)
        self._codes = np.empty((len(columns), n_rows), dtype=np.int64)
        for j, entries in enumerate(columns):
            wide = entries.astype(np.uint64)
            rows = (wide & ((np.uint64(1) << below) - np.uint64(1))) >> np.uint64(1)
            self._codes[j, rows.astype(np.intp)] = wide >> below
        self._labels = labels
        self._weights = np.ones(n_rows, dtype=np.int64) if weights is None else weights
        self._table = table
        self._n_classes = n_classes
        self._missing = missing
        self._unordered = unordered
        self._left = np.empty(0, dtype=np.bool_)

    def root(self) -> Group:
        return np.arange(self._codes.shape[1])

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

    def mark(
        self,
        group: Group,
        column: int,
        cut: int,
        missing_left: bool,
        left_codes: NDArray[np.uint8] | None = None,
    ) -> tuple[tuple[int, ...], int, int, int, int]:
        """Left's counts and size, a row each side of the cut (or −1), how many miss the value."""
        codes = self._codes[column, group]
        row_below = row_above = -1
        is_missing = np.zeros(len(group), dtype=np.bool_)
        if left_codes is not None:
            self._left = left_codes[codes].astype(bool)
        else:
            is_missing = codes == self._missing[column]
            self._left = np.where(is_missing, missing_left, codes <= cut)
            below, above = group[(codes <= cut) & ~is_missing], group[(codes > cut) & ~is_missing]
            row_below = int(below[self._codes[column, below].argmax()]) if below.size else -1
            row_above = int(above[self._codes[column, above].argmin()]) if above.size else -1
        left = group[self._left]
        return self.counts(left), len(left), row_below, row_above, int(is_missing.sum())

    def partition(
        self,
        group: Group,
        columns: NDArray[np.int64],
        n_left: int,
        need_left: bool,
        need_right: bool,
    ) -> None:
        """Nothing to do: the twin keeps the rows of a group, not its columns."""

    def sides(self, group: Group, n_left: int) -> tuple[Group, Group]:
        assert n_left == self._left.sum()
        return group[self._left], group[~self._left]
