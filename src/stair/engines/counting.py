"""The second seam, for data that does not fit: class counts by (rule, column, code).

A `Counter` is asked one thing: go over all rows once and count those of a set of rules. Rows are
codes, the tree that leads a row to its rule is a few small arrays, and the answer is an array of
whole numbers. So a counter may read a file, or ask a hundred machines and add up what they say:
sums of integers do not depend on who made them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array, Unsigned
from stair.rules.columns import Column
from stair.rules.objective import Counts

try:
    _compiled: Any = import_module("stair.engines._route")
except ImportError:  # installed without a C compiler
    _compiled = None

T = TypeVar("T")
Codes: TypeAlias = Unsigned  # 8 or 16 bits wide


class Paths(NamedTuple):
    """A tree as arrays, by which a row finds its rule; nodes are numbered from the root, 0.

    A row goes on while its node has a column: to the left where the code is at most `cut`, or
    where `left_of[table + code]` says so. It counts where the node that it ends in has a slot.
    """

    column: NDArray[np.int32]  # −1 where the way ends
    cut: NDArray[np.int32]
    table: NDArray[np.int64]  # −1 where the cut alone decides
    left_of: NDArray[np.uint8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    slot: NDArray[np.int32]  # −1 where nothing is counted
    n_slots: int


class Block(NamedTuple):
    """Some rows: the codes of each column, the classes, and what each row counts."""

    codes: Sequence[Codes]
    labels: NDArray[np.uint8]
    weights: NDArray[np.int64] | None = None


class Counter(Protocol):
    """What level-wise growth asks of any engine."""

    columns: Sequence[Column]
    sizes: Sequence[int]  # how many codes each column has; the last of them is "missing"
    totals: tuple[int, ...]  # rows of each class

    def count(self, paths: Paths, columns: Sequence[int]) -> Counts:
        """One pass: class counts (slots × codes of these columns × classes)."""


def n_cpus() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def code_type(size: int) -> Any:
    """The narrowest type for so many codes."""
    return np.uint8 if size <= 256 else np.uint16


def bin_numbers(
    values: Array,
    edges: Array,
    size: int,
    missing: NDArray[np.bool_] | None = None,
) -> Codes:
    """The first bin whose edge is not below each value; the last code where it is missing.

    Values and edges are of one type: floats, of which NaN is missing, or whole numbers.
    """
    codes: Codes = np.empty(len(values), dtype=code_type(size))
    if _compiled is not None and _as_floats_alike(values) and _as_floats_alike(edges):
        floats = np.ascontiguousarray(values, dtype=np.float64)
        _compiled.bin_numbers(floats, edges.astype(np.float64), size - 1, codes)
    else:
        codes[:] = np.searchsorted(edges, values, side="left")
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    if missing is not None:
        codes[missing] = size - 1
    return codes


def _as_floats_alike(values: Array) -> bool:
    """Whether comparisons are the same for these numbers as floats."""
    if values.dtype.kind == "f" or not len(values):
        return True
    return int(values.min()) >= -(2**53) and int(values.max()) <= 2**53


def no_counts(n_slots: int, sizes: Sequence[int], n_classes: int, columns: Sequence[int]) -> Counts:
    return np.zeros((n_slots, sum(sizes[j] for j in columns), n_classes), dtype=np.int64)


def only_root() -> Paths:
    """The tree without a split: every row counts."""
    nothing, zero = np.full(1, -1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    table = np.full(1, -1, dtype=np.int64)
    return Paths(nothing, nothing, table, np.zeros(1, np.uint8), nothing, nothing, zero, 1)


def count_block(
    block: Block,
    paths: Paths,
    sizes: Sequence[int],
    columns: Sequence[int],
    into: Counts,
    pool: ThreadPoolExecutor | None = None,
    *,
    kernel: str = "auto",
) -> None:
    """Add the rows of a block to the counts.

    Threads share rows while these look for their rule, and columns while they are counted: no two
    threads ever write to the same place, so that one array is enough for all of them.
    """
    if kernel == "numpy" or _compiled is None:
        _count_slowly(block, paths, sizes, columns, into)
        return
    n_rows, n_classes = len(block.labels), into.shape[2]
    per_slot = into.shape[1] * n_classes
    n_parts = 1 if pool is None else min(n_cpus(), max(1, n_rows >> 14))
    bounds = np.linspace(0, n_rows, n_parts + 1).astype(int).tolist()
    codes = [np.ascontiguousarray(column) for column in block.codes]
    flat = into.reshape(-1)

    def route(k: int) -> tuple[Array, Array]:
        """Rows, and where each of them is counted."""
        found: tuple[Array, Array] = _compiled.route(
            codes, block.labels, *paths[:-1], per_slot, bounds[k], bounds[k + 1]
        )
        return found

    parts = _shared(pool, route, range(n_parts))
    starts = np.cumsum([0, *(sizes[j] for j in columns)]).tolist()

    def tally(k: int) -> None:
        for rows, places in parts:
            _compiled.tally(codes[columns[k]], rows, places, starts[k] * n_classes, n_classes, flat)

    _shared(pool, tally, range(len(columns)))


def _shared(
    pool: ThreadPoolExecutor | None, work: Callable[[int], T], items: Iterable[int]
) -> list[T]:
    return list(map(work, items) if pool is None else pool.map(work, items))


def _count_slowly(
    block: Block, paths: Paths, sizes: Sequence[int], columns: Sequence[int], into: Counts
) -> None:
    """The same in plain numpy: where there was no compiler, and as the oracle of the tests."""
    slots = paths.slot[nodes_of(block, paths)]
    rows = np.flatnonzero(slots >= 0)
    n_slots, _, n_classes = into.shape
    start = 0
    for codes, size in ((block.codes[j], sizes[j]) for j in columns):
        place = (slots[rows].astype(np.int64) * size + codes[rows]) * n_classes + block.labels[rows]
        found = np.bincount(place, minlength=n_slots * size * n_classes)
        into[:, start : start + size] += found.reshape(n_slots, size, n_classes)
        start += size


def nodes_of(block: Block, paths: Paths) -> NDArray[np.int32]:
    """The node in which the way of each row ends."""
    node = np.zeros(len(block.labels), dtype=np.int32)
    walking = np.arange(len(node))
    while len(walking := walking[paths.column[node[walking]] >= 0]):
        for here in np.unique(node[walking]).tolist():
            rows = walking[node[walking] == here]
            codes = block.codes[paths.column[here]][rows].astype(np.int64)  # a place may be far
            table = int(paths.table[here])
            is_left = codes <= paths.cut[here] if table < 0 else paths.left_of[table + codes] > 0
            node[rows] = np.where(is_left, paths.left[here], paths.right[here])
    return node


class MemoryCounter:
    """Codes that fit in memory: the plainest counter."""

    def __init__(
        self,
        columns: Sequence[Column],
        sizes: Sequence[int],
        codes: Sequence[Codes],
        labels: NDArray[np.uint8],
        n_classes: int,
        *,
        kernel: str = "auto",
    ) -> None:
        self.columns = columns
        self.sizes = sizes
        self.totals = tuple(np.bincount(labels, minlength=n_classes).tolist())
        self._block = Block(codes, labels)
        self._kernel = kernel

    def count(self, paths: Paths, columns: Sequence[int]) -> Counts:
        counts = no_counts(paths.n_slots, self.sizes, len(self.totals), columns)
        count_block(self._block, paths, self.sizes, columns, counts, kernel=self._kernel)
        return counts
