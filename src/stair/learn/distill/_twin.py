"""The hot loops of the box search in plain numpy: slower than `_boxes.pyx`, and equal to it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.rules.columns import Sides

NOTHING: Final = -(1 << 60)
CALL: Final = 25_000

Columns = NDArray[np.int32]
Allowed = NDArray[np.uint8]


class Boxes:
    """Rows as bins, each with a gain; boxes as columns and the bins that each allows."""

    def __init__(
        self,
        codes: NDArray[np.uint16],
        n_bins: NDArray[np.int32],
        is_ordered: NDArray[np.bool_],
        has_missing: NDArray[np.bool_],
        sides: NDArray[np.uint8],
        gains: NDArray[np.int64],
    ) -> None:
        self._codes = codes.astype(np.intp)
        self._sizes = n_bins.astype(np.intp)
        self._offsets = np.concatenate([[0], np.cumsum(self._sizes)])
        self._is_ordered, self._has_missing = is_ordered, has_missing
        self._sides = [Sides(each) for each in sides.tolist()]
        self._rows_in = [np.bincount(codes[:, j], minlength=n) for j, n in enumerate(n_bins)]
        self.price = 0  # of a bound, in thousandths of a gain
        self.work = 0
        self.load(gains)

    def load(self, gains: NDArray[np.int64]) -> None:
        self.row_gains = gains.copy()
        self.work += self._codes.size

    def change(self, rows: NDArray[np.int32], gains: NDArray[np.int64]) -> None:
        self.row_gains[rows] = gains
        self.work += len(rows) * self._codes.shape[1]

    def rows(self, columns: Columns, allowed: Allowed) -> NDArray[np.int32]:
        if len(columns):
            sizes = self._n_meeting(columns, allowed)
            self.work += min(sizes)
        inside = self._meets(columns, allowed).all(axis=0)
        order = np.flatnonzero(inside)
        if len(columns):  # by the bins of the smallest clause, as the kernel walks them
            first = columns[int(np.argmin(sizes))]
            order = order[np.argsort(self._codes[order, first], kind="stable")]
        return order.astype(np.int32)

    def covers_so_many(
        self, columns: Columns, allowed: Allowed, times: NDArray[np.int64], least: int
    ) -> bool:
        return int(times[self.rows(columns, allowed)].sum()) >= least

    def around(
        self, columns: Columns, allowed: Allowed, seed: int, permille: int, with_drops: bool
    ) -> tuple[Array, ...]:
        n_clauses, n_columns = len(columns), self._codes.shape[1]
        last = n_clauses if with_drops else 0
        misses = ~self._meets(columns, allowed)
        n_missed = misses.sum(axis=0)
        worth = np.where(self.row_gains > 0, 1000, permille) * self.row_gains
        counts = self.row_gains != 0
        inside = counts & (n_missed == 0)
        near = counts & (n_missed == 1)
        looked_at = 0
        if n_clauses:
            sizes = sorted(self._n_meeting(columns, allowed))
            looked_at += sum(sizes[: 2 if with_drops and n_clauses > 1 else 1])
            looked_at += int(inside.sum()) * n_columns
            if with_drops and n_clauses > 1:
                looked_at += int(near.sum()) * n_columns
        parts = [counts & (near & misses[k] | inside) for k in range(last)] + [inside]
        found = [self._best(worth, part, seed) for part in parts]
        totals = np.array([int(worth[part].sum()) for part in parts], dtype=np.int64)
        self.work += CALL + looked_at + (last + 1) * int(self._offsets[-1])
        sums, low, high, missing = (np.array(each) for each in zip(*found, strict=True))
        return (
            sums.astype(np.int64),
            low.astype(np.int32),
            high.astype(np.int32),
            missing.astype(np.uint8),
            totals,
        )

    def bins(self, columns: Columns, allowed: Allowed, column: int) -> NDArray[np.int64]:
        inside = self.rows(columns, allowed)
        found = np.zeros(self._sizes[column], dtype=np.int64)
        np.add.at(found, self._codes[inside, column], self.row_gains[inside])
        return found

    def _meets(self, columns: Columns, allowed: Allowed) -> NDArray[np.bool_]:
        """Which clause each row meets."""
        met = np.ones((len(columns), len(self._codes)), dtype=np.bool_)
        for k, column in enumerate(columns.tolist()):
            met[k] = allowed[k].astype(np.bool_)[self._codes[:, column]]
        return met

    def _n_meeting(self, columns: Columns, allowed: Allowed) -> list[int]:
        """How many rows meet each clause."""
        return [
            int(self._rows_in[column] @ allowed[k, : self._sizes[column]].astype(np.int64))
            for k, column in enumerate(columns.tolist())
        ]

    def _best(
        self, worth: NDArray[np.int64], part: NDArray[np.bool_], seed: int
    ) -> tuple[list[int], list[int], list[int], list[bool]]:
        """For each column the bins with the largest sum: a run, or for categories a set."""
        found: list[tuple[int, int, int, bool]] = []
        rows = np.flatnonzero(part)
        for j, size in enumerate(self._sizes.tolist()):
            bins = np.zeros(size, dtype=np.int64)
            np.add.at(bins, self._codes[rows, j], worth[rows])
            at = int(self._codes[seed, j]) if seed >= 0 else -1
            if not self._is_ordered[j]:
                chosen = bins > 0
                if at >= 0:
                    chosen[at] = True
                best = int(bins[chosen].sum()) if chosen.any() else NOTHING
                found.append((best - self.price, 0, 0, False))
                continue
            gone = None
            if self._has_missing[j]:
                bins, gone = bins[:-1], int(bins[-1])
            best_run = _best_run(bins, at, self.price, self._sides[j])
            run = _with_missing(best_run, gone, at == len(bins))
            paid = self.price * _n_bounds(run[:3], len(bins))
            found.append((run[0] - paid, *run[1:]))
        sums, low, high, missing = (list(each) for each in zip(*found, strict=True))
        return sums, low, high, missing


def _n_bounds(run: tuple[int, int, int], size: int) -> int:
    _, low, high = run
    return 2 if 0 < low <= high < size - 1 else 1


def _best_run(bins: NDArray[np.int64], at: int, price: int, sides: Sides) -> tuple[int, int, int]:
    """The run with the largest sum less the price of its bounds, and its ends; around the bin `at`
    where that is one, and among those that the sides allow. Where they are equal, the order is that
    of the kernel."""
    size = len(bins)
    if not size:
        return NOTHING, 1, 0
    before = np.concatenate([[0], np.cumsum(bins)])
    if 0 <= at < size:
        low = at - int((before[at] - before[: at + 1])[::-1].argmax())
        high = at + int((before[at + 1 :] - before[at + 1]).argmax())
        runs = [(0, high), (low, size - 1), (low, high)]
    else:
        least = np.minimum.accumulate(before[:-1])
        high = int((before[1:] - least).argmax())
        low = int(np.flatnonzero(before[: high + 1] == least[high])[-1])
        last = size - 1 - int((before[-1] - before[:-1])[::-1].argmax())
        runs = [(0, int(before[1:].argmax())), (last, size - 1), (low, high)]
    allowed = [run for run, side in zip(runs, Sides, strict=True) if side in sides]
    found = [(int(before[high + 1] - before[low]), low, high) for low, high in allowed]
    return max(found, key=lambda run: run[0] - price * _n_bounds(run, size))


def _with_missing(
    run: tuple[int, int, int], gone: int | None, is_seed: bool
) -> tuple[int, int, int, bool]:
    """Missing values belong where they gain, or where the seed is one."""
    if gone is None or not (gone > 0 or is_seed):
        return (*run, False)
    if run[0] <= 0:
        run = (0, 1, 0)
    return run[0] + gone, run[1], run[2], True


def distinct(cells: Array, labels: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that are equal in all cells and in class: the first of each, in the order of the table,
    and to which of these every row belongs."""
    columns = [*cells.T, labels]
    # A row as one number; the odds that unlike rows get the same are nil, and are looked at.
    keys = np.zeros(len(labels), dtype=np.uint64)
    for column, factor in zip(
        columns, np.random.default_rng(0).integers(0, 2**64, len(columns), np.uint64), strict=True
    ):
        keys += column.astype(np.uint64) * factor
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    same = first[places]
    if not all(np.array_equal(column, column[same]) for column in columns):
        table = np.column_stack([column.astype(np.uint64) for column in columns])
        _, first, places = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[places]
