"""An engine that answers from class counts by code, which somebody else has counted."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.engines import Group
from stair.engines.counting import n_cpus
from stair.engines.search import Gains, Split, best_cut, best_set, set_members
from stair.rules.clauses import Clause
from stair.rules.columns import Categories, Column, cut_once, tie_order
from stair.rules.objective import ComputedLogs, Counts, Logs, has_table, log_table, negentropy

_near_best: Any = None
with contextlib.suppress(ImportError, AttributeError):  # installed without a C compiler
    _near_best = import_module("stair.engines._route").near_best

# Cuts of a column that are compared exactly, and how near to the best they are: k·log2(k) is known
# to a part in 2⁵², and a gain is a sum of a few.
CANDIDATES: Final = 6
NEAR: Final = 2.0**-44
# Rows up to which a table of logarithms is held; beyond it they are computed, to equal numbers.
TABLE_ROWS: Final = 1 << 21


class NotCounted(Exception):  # noqa: N818 - no error: it is counted next
    """The counts of a rule are asked for that nobody has counted yet."""


@dataclass(frozen=True, slots=True)
class Division:
    """How a rule's rows are divided: plain numbers, which can be written down and read back."""

    split: Split
    below: int  # the codes on both sides of a cut; −1 where none is above
    above: int
    left: tuple[int, ...]  # the codes of the categories on both sides
    right: tuple[int, ...]
    has_missing: bool
    left_counts: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Cell:
    """What is known of the rows of one rule."""

    counts: Counts | None = None  # codes of all columns × classes, until it is not needed any more
    found: Gains | None = None
    division: Division | None = None
    is_counted: bool = False
    cuts: dict[int, tuple[float, int, int]] | None = None  # of columns that were searched ahead


class HistogramEngine:
    """The engine of `grow`, from counts: it never sees a row.

    The handle of a group is a `Cell`, which is filled in from outside. A cell that is not counted
    cannot be searched, and says so.
    """

    unit = 0

    def __init__(
        self,
        columns: Sequence[Column],
        sizes: Sequence[int],
        totals: tuple[int, ...],
        n_rows: int | None = None,
    ) -> None:
        """Totals are of rows, or of the weights of so many rows."""
        self.n_classes = len(totals)
        self.attributes = np.array([column.attribute for column in columns], dtype=np.int64)
        self.once = cut_once(columns)
        self.order = tie_order(columns)
        self.known = self.columns = columns
        self.sizes = sizes
        self._totals = totals
        self._starts = np.cumsum([0, *sizes]).tolist()
        self._logs = _logs(sum(totals), n_rows)

    def root(self) -> Group:
        return Group(Cell(), self._totals)

    def find(self, group: Group, columns: NDArray[np.int64]) -> Gains:
        cell: Cell = group.handle
        if cell.found is None:
            if cell.counts is None:
                raise NotCounted
            ahead = cell.cuts or {}
            counts = cell.counts
            each = [ahead.get(j) or self._best(counts, j) for j in columns.tolist()]
            cell.cuts = None
            cell.found = Gains(*(list(part) for part in zip(*each, strict=True)))
        return cell.found

    def search(self, cells: Sequence[Cell]) -> None:
        """Look for the best cuts of many rules at once, whose counts are there: `find` has them
        then. Where there is a kernel, it leaves few cuts of each column to be compared exactly."""
        if _near_best is None or not len(cells):
            return
        ordered = np.array([column.is_ordered for column in self.columns], dtype=np.uint8)
        starts = np.array(self._starts, dtype=np.int64)
        shape = (len(cells), len(self.columns), CANDIDATES)
        codes, sides = np.zeros(shape, dtype=np.int32), np.zeros(shape, dtype=np.uint8)
        lefts = np.zeros((*shape, self.n_classes), dtype=np.int64)
        found = np.zeros(shape[:2], dtype=np.int32)
        totals = np.zeros((len(cells), self.n_classes), dtype=np.int64)

        def near(k: int) -> None:
            counts = cells[k].counts
            assert counts is not None
            totals[k] = counts[: self._starts[1]].sum(axis=0)
            _near_best(counts, starts, ordered, NEAR, codes[k], sides[k], lefts[k], found[k])

        with ThreadPoolExecutor(n_cpus()) as pool:
            list(pool.map(near, range(len(cells))))
        whole = totals[:, None, None]
        gains = (negentropy(lefts, self._logs) + negentropy(whole - lefts, self._logs)) - (
            negentropy(whole, self._logs)
        )
        gains[np.arange(CANDIDATES) >= found[:, :, None]] = -np.inf
        best = gains.argmax(axis=2)
        for k, cell in enumerate(cells):
            cell.cuts = {}
            for j in np.flatnonzero(ordered & (found[k] >= 0)).tolist():
                at = int(best[k, j])
                gain = float(gains[k, j, at])
                none = gain == -math.inf
                cell.cuts[j] = (math.nan, 0, 0) if none else (
                    gain, int(codes[k, j, at]), int(sides[k, j, at])
                )  # fmt: skip

    def of_column(self, counts: Counts, column: int) -> Counts:
        """Class counts of the codes of one column; the last code is "missing"."""
        part: Counts = counts[self._starts[column] : self._starts[column + 1]]
        return part

    def _best(self, counts: Counts, column: int) -> tuple[float, int, int]:
        """Gain, cut and missing side of a column's best cut; the gain is NaN where there is none.

        Codes that the rule has no rows of are no places for a cut, as if they did not exist.
        """
        here = self.of_column(counts, column)
        codes = np.flatnonzero(here.any(axis=1))
        if not self.columns[column].is_ordered:
            found_set = best_set(here[codes], self._logs)
            return (math.nan, 0, 0) if found_set is None else (*found_set, 0)
        values = codes[codes < len(here) - 1]
        found = best_cut(here[values], here[-1], self._logs)
        if found is None:
            return math.nan, 0, 0
        return found.gain, int(values[found.last]), int(found.missing_left)

    def divide(
        self,
        group: Group,
        split: Split,
        columns: NDArray[np.int64],  # noqa: ARG002 - part of the seam
    ) -> tuple[tuple[Clause, Group], tuple[Clause, Group]]:
        cell: Cell = group.handle
        if cell.division is None:
            if cell.counts is None:
                raise NotCounted
            cell.division = self._division(cell.counts, split)
        return self.sides(group, cell.division)

    def _division(self, counts: Counts, split: Split) -> Division:
        here = self.of_column(counts, split.column)
        missing = len(here) - 1
        codes = np.flatnonzero(here.any(axis=1))
        values = codes[codes < missing]
        has_missing = len(values) < len(codes)
        below = above = -1
        left: tuple[int, ...] = ()
        right: tuple[int, ...] = ()
        if isinstance(self.columns[split.column], Categories):
            members = set_members(here[codes], split.cut)
            left, right = (tuple(codes[side].tolist()) for side in (members, ~members))
            is_left = np.isin(np.arange(len(here)), left)
        else:
            is_left = np.arange(len(here)) <= split.cut
            is_left[missing] = split.missing_left
            below = int(values[values <= split.cut].max())
            after = values[values > split.cut]
            above = int(after.min()) if len(after) else -1
        left_counts = tuple(here[is_left].sum(axis=0).tolist())
        return Division(split, below, above, left, right, has_missing, left_counts)

    def sides(
        self, group: Group, division: Division
    ) -> tuple[tuple[Clause, Group], tuple[Clause, Group]]:
        """Both sides of a division: it needs no counts but its own."""
        split = division.split
        column: Any = self.columns[split.column]
        if isinstance(column, Categories):
            missing = self.sizes[split.column] - 1
            named = [[k for k in side if k != missing] for side in (division.left, division.right)]
            missing_left = missing in division.left if division.has_missing else None
            clauses = column.divide(named[0], named[1], missing_left)
        else:
            above = math.inf if division.above < 0 else float(division.above)
            missing_left = split.missing_left if division.has_missing else None
            clauses = column.cut(float(division.below), above, missing_left)
        counts = division.left_counts
        rest = tuple(all_ - part for all_, part in zip(group.counts, counts, strict=True))
        return (clauses[0], Group(Cell(), counts)), (clauses[1], Group(Cell(), rest))


def _logs(total: int, n_rows: int | None) -> Logs:
    """Logarithms as the engine in memory has them: of weights that are much larger than rows are
    many, one by one."""
    if n_rows is not None and not has_table(total, n_rows):
        return None
    return log_table(total) if total <= TABLE_ROWS else ComputedLogs()
