"""The engine for data in memory: exact cuts, from columns that are sorted once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stair.data.weights import fixed_point
from stair.engines import Group, _twin
from stair.engines.counting import n_cpus
from stair.engines.search import Gains, Split, set_members
from stair.rules.clauses import Clause
from stair.rules.columns import Categories, Column, cut_once, tie_order
from stair.rules.objective import log_table

try:
    _compiled: Any = import_module("stair.engines._count")
except ImportError:  # installed without a C compiler
    _compiled = None

T = TypeVar("T")

HAS_KERNEL = _compiled is not None

# Values to look at (rows × columns) from which on a second thread pays.
WORTH_THREADS = 100_000
MOST_THREADS = 8
# Sorting needs room for each thread, so it takes this many times more to be worth it.
SORT_IS_CHEAP = 50


class MemoryEngine:
    """Rows as sorted columns; see `_count.pyx`, or `_twin.py` where it was not compiled."""

    def __init__(
        self,
        columns: Sequence[Column],
        values: NDArray[np.float64],
        labels: NDArray[np.int32],
        n_classes: int,
        weights: NDArray[np.float64] | None = None,
        *,
        times: NDArray[np.int64] | None = None,
        are_rows: bool = True,
        kernel: str = "auto",
    ) -> None:
        """`values` (rows × columns) are numbers or category codes, NaN where missing.

        `times` in place of weights says for how many equal rows each of them stands: all is then
        as if these were there. Where `are_rows` is false they were never there: times are weights,
        of which there may be any number.
        """
        module: Any = _twin if kernel == "numpy" or _compiled is None else _compiled
        self.n_classes = n_classes
        self.attributes = np.array([column.attribute for column in columns], dtype=np.int64)
        self.once = cut_once(columns)
        self.order = tie_order(columns)
        self.known = self._columns = columns
        self._values = values
        whole, self.unit = times, 0
        if times is None and weights is not None:
            whole, self.unit = fixed_point(weights)
        self.whole_weights = whole  # in units of 2**unit; None where every row counts once
        total = len(labels) if whole is None else int(whole.sum())
        table = log_table(total, len(labels) if times is None or not are_rows else total)
        self._n_threads = min(MOST_THREADS, n_cpus()) if module is _compiled else 1
        self._pool: ThreadPoolExecutor | None = None
        every = np.arange(len(columns))
        if values.size >= WORTH_THREADS * SORT_IS_CHEAP:
            parts = self._shared(every, lambda part: module.sort_columns(values, part, labels))
        else:
            parts = [module.sort_columns(values, every, labels)]
        found = list(chain.from_iterable(parts))
        entries = [column for column, _ in found]
        missing = np.array([code for _, code in found], dtype=np.int64)
        unordered = np.array([not column.is_ordered for column in columns], dtype=np.uint8)
        # The kernel numbers the categories that are there; these are their own codes.
        self._categories = {
            j: np.unique(values[~np.isnan(values[:, j]), j]).astype(np.int64)
            for j in np.flatnonzero(unordered).tolist()
        }
        self._entries = entries
        self._bits_below = module.bits_for(len(labels)) + 1  # a code, then a row, then a label
        self._kernel = module.Kernel(entries, labels, whole, table, n_classes, missing, unordered)

    def ranks(self, j: int) -> NDArray[np.uint32]:
        """The rank of each row's value among the values of a column, missing last. To be asked for
        before rows are divided, which moves them."""
        entries = self._entries[j]
        ranks = np.empty(len(entries), dtype=np.uint32)
        rows = entries >> entries.dtype.type(1)
        rows &= entries.dtype.type((1 << (self._bits_below - 1)) - 1)
        ranks[rows] = entries >> entries.dtype.type(self._bits_below)
        return ranks

    def root(self) -> Group:
        handle = self._kernel.root()
        return Group(handle, self._kernel.counts(handle))

    def find(self, group: Group, columns: NDArray[np.int64]) -> Gains:
        if not self._is_large(group, columns):
            return Gains(*self._kernel.scan(group.handle, columns, group.counts))
        parts = self._shared(
            columns, lambda part: self._kernel.scan(group.handle, part, group.counts)
        )
        return Gains(*(list(chain.from_iterable(each)) for each in zip(*parts, strict=True)))

    def divide(
        self, group: Group, split: Split, columns: NDArray[np.int64]
    ) -> tuple[tuple[Clause, Group], tuple[Clause, Group]]:
        column = self._columns[split.column]
        left_codes = None
        if isinstance(column, Categories):
            clauses, left_codes = self._divided_categories(group, split, column)
        counts, n_left, row_below, row_above, n_missing = self._kernel.mark(
            group.handle, split.column, split.cut, split.missing_left, left_codes
        )
        rest = tuple(all_ - part for all_, part in zip(group.counts, counts, strict=True))
        need = [max(side) < sum(side) for side in (counts, rest)]  # a pure side is done with
        if any(need):
            is_sorted = left_codes is None and not n_missing  # its own column is divided as it is
            others = columns[columns != split.column] if is_sorted else columns
            if self._is_large(group, columns):
                self._shared(
                    others, lambda part: self._kernel.partition(group.handle, part, n_left, *need)
                )
            else:
                self._kernel.partition(group.handle, others, n_left, *need)
        left, right = self._kernel.sides(group.handle, n_left)
        if not isinstance(column, Categories):
            clauses = column.cut(
                float(self._values[row_below, split.column]),
                float(self._values[row_above, split.column]) if row_above >= 0 else math.inf,
                split.missing_left if n_missing else None,
            )
        return (clauses[0], Group(left, counts)), (clauses[1], Group(right, rest))

    def _is_large(self, group: Group, columns: NDArray[np.int64]) -> bool:
        """Whether there is enough to look at that several threads pay."""
        n_values = sum(group.counts) * len(columns)
        return self._n_threads > 1 and n_values >= WORTH_THREADS

    def _shared(
        self, columns: NDArray[np.int64], work: Callable[[NDArray[np.int64]], T]
    ) -> list[T]:
        """Work on columns, shared among threads.

        Columns do not touch each other, so the result is the same for any number of threads.
        """
        n_threads = min(self._n_threads, len(columns))
        if n_threads < 2:
            return [work(columns)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_threads - 1)
        first, *others = np.array_split(columns, n_threads)
        waiting = [self._pool.submit(work, part) for part in others]
        return [work(first), *(future.result() for future in waiting)]

    def _divided_categories(
        self, group: Group, split: Split, column: Categories
    ) -> tuple[tuple[Clause, Clause], NDArray[np.uint8]]:
        """The clauses of a split by categories, and which of the kernel's codes go left."""
        counts, codes = self._kernel.codes_of(group.handle, split.column)
        is_left = set_members(counts, split.cut)
        left_codes = np.zeros(int(codes.max()) + 1, dtype=np.uint8)
        left_codes[codes[is_left]] = 1
        own = self._categories[split.column]
        is_value = codes < len(own)
        missing_left = None if is_value.all() else bool(is_left[~is_value][0])
        left, right = (own[codes[is_value & side]].tolist() for side in (is_left, ~is_left))
        return column.divide(left, right, missing_left), left_codes
