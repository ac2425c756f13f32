"""A flagged row that no rule covers, by itself: the shortest rule that is true of it and of as few
inliers as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import NETWORKS
from stair.data.decimals import shortest_between
from stair.data.frame import Array, Value
from stair.rules.clauses import (
    END,
    Among,
    Clause,
    Interval,
    Period,
    clause_in_words,
    side_by_side,
)
from stair.rules.schema import Field, Values
from stair.rules.usual import RARE, as_floats

MOST_ATTRIBUTES: Final = 3
LOOKED_AT: Final = 6  # the attributes in which a row is most unusual
COMMON: Final = 0.2  # an attribute that so many inliers share says nothing of one row
# Values that are common each are rare together by chance alone. They set a row apart where so many
# inliers at least were to be expected with all of them, and a fourth of these at most are there.
EXPECTED: Final = 8.0
FEWER: Final = 4
WORTH: Final = 0.001  # of inliers: an attribute more must be worth its while


@dataclass(frozen=True, slots=True)
class Own:
    """What sets one row apart: clauses, and how many flagged rows and inliers meet all of them."""

    clauses: tuple[Clause, ...]
    flagged: int  # the row itself included
    inliers: int
    of_inliers: int
    is_apart: bool  # whether it tells the row apart from inliers, by more than chance

    def in_words(self) -> str:
        """True of how many rows."""
        flagged = f"{self.flagged:,} flagged row{'s' * (self.flagged != 1)}"
        if not self.inliers:
            return f"true of {flagged} and no other"
        inliers = f"{self.inliers:,} inlier{'s' * (self.inliers != 1)}"
        return f"true of {flagged} and {inliers}"

    def __str__(self) -> str:
        return " and ".join(side_by_side([*map(clause_in_words, self.clauses)]))


@dataclass(slots=True, eq=False)
class Reference:
    """The rows that a row is held against: those that are flagged, and inliers."""

    values: Values
    is_flagged: NDArray[np.bool_]
    _columns: dict[str, _Column] = field(default_factory=dict)

    @property
    def n_inliers(self) -> int:
        return int(len(self.is_flagged) - np.count_nonzero(self.is_flagged))

    def column(self, each: Field) -> _Column:
        if each.name not in self._columns:
            has_names = each.kind in ("category", "text")
            self._columns[each.name] = _Column(self.values[each.name], ~self.is_flagged, has_names)
        return self._columns[each.name]

    def own(self, fields: Sequence[Field], values: Values, row: int) -> Own:
        """The shortest rule for one row, by its most unusual fields in order: of those that cover
        fewest inliers the shortest, where one attribute more is worth its while."""
        singles = [
            found
            for each in fields[:LOOKED_AT]
            if each.name in self.values
            and (found := self._single(each, values[each.name][row])) is not None
            and found.clause.covers(values[each.name][row : row + 1])[0]
        ]
        singles = [single for single in singles if single.n <= COMMON * self.n_inliers]
        best: tuple[int, tuple[_Single, ...]] | None = None
        for size in range(1, MOST_ATTRIBUTES + 1):
            shorter = None if best is None else best[0]
            for chosen in combinations(singles, size):
                n = self._covered(chosen)
                is_worth = shorter is None or 2 * n <= shorter
                if is_worth and (best is None or n < best[0]):
                    best = n, chosen
            if best is not None and best[0] <= WORTH * self.n_inliers:
                break
        if best is None:
            return Own((), 0, self.n_inliers, self.n_inliers, is_apart=False)
        clauses = tuple(single.clause for single in best[1])
        flagged, inliers = (
            self._met(clauses, np.flatnonzero(which))
            for which in (self.is_flagged, ~self.is_flagged)
        )
        is_apart = self._is_apart(best[1], inliers)
        return Own(clauses, flagged, inliers, self.n_inliers, is_apart)

    def _is_apart(self, chosen: tuple[_Single, ...], inliers: int) -> bool:
        n = max(self.n_inliers, 1)
        if any(single.n <= RARE * n for single in chosen):
            return inliers <= RARE * n
        expected = n * float(np.prod([single.n / n for single in chosen]))
        return len(chosen) > 1 and expected >= EXPECTED and FEWER * inliers <= expected

    def _met(self, clauses: Sequence[Clause], rows: NDArray[np.intp]) -> int:
        """How many of these rows meet all clauses."""
        for clause in clauses:
            rows = rows[clause.covers(self.values[clause.feature][rows])]
        return len(rows)

    def _single(self, each: Field, value: Value) -> _Single | None:
        """What one attribute says of a value, so that it covers few inliers."""
        column = self.column(each)
        if each.kind == "text":
            return column.named(Among(each.name, (), missing=True), None) if value is None else None
        if each.kind == "category":
            of = each.source if each.part in NETWORKS else ""
            if value is None:
                return column.named(Among(each.name, (), missing=True, of=of), None)
            return column.named(Among(each.name, (value,), of=of), value)
        return column.bounded(each, value)

    def _covered(self, chosen: tuple[_Single, ...]) -> int:
        """The inliers that meet all of these clauses."""
        fewest = min(chosen, key=lambda single: single.n)
        if len(chosen) == 1:
            return fewest.n
        rows = fewest.rows()
        for single in chosen:
            if single is not fewest:
                rows = rows[single.clause.covers(self.values[single.clause.feature][rows])]
        return len(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Single:
    """A clause, and the inliers that meet it."""

    clause: Clause
    n: int
    order: NDArray[np.intp]  # inliers by value
    start: int

    def rows(self) -> NDArray[np.intp]:
        return self.order[self.start : self.start + self.n]


class _Column:
    """The inliers in the order of their values, those without one at the end."""

    def __init__(self, array: Array, is_inlier: NDArray[np.bool_], has_names: bool) -> None:
        inliers = np.flatnonzero(is_inlier)
        self._place: dict[Value, int] = {}
        if has_names:
            listed = array[inliers].tolist()
            keys = [self._place.setdefault(v, len(self._place)) for v in listed]
            codes = np.array(keys, dtype=np.float64)
        else:
            codes = as_floats(array[inliers])
        self._order = inliers[np.argsort(codes, kind="stable")]
        self._sorted = np.sort(codes)
        self._n = int(np.count_nonzero(~np.isnan(codes)))

    def named(self, clause: Clause, value: Value) -> _Single:
        code = float(self._place.get(value, -1))
        start = int(np.searchsorted(self._sorted, code))
        stop = int(np.searchsorted(self._sorted, code, "right"))
        return _Single(clause, stop - start, self._order, start)

    def bounded(self, each: Field, value: Value) -> _Single:
        """On the side on which fewer inliers are; the bound is between the value and the next."""
        is_time = each.kind == "time"
        x = float(as_floats(np.array([value]))[0])
        if np.isnan(x):
            if is_time:
                clause: Clause = Period(each.name, END, END, True)
            else:
                clause = Interval(each.name, np.inf, np.inf, True, each.is_whole)
            return _Single(clause, len(self._sorted) - self._n, self._order, self._n)
        known = self._sorted[: self._n]
        below, upto = int(np.searchsorted(known, x)), int(np.searchsorted(known, x, "right"))
        if upto - below > 0 and each.is_whole and upto - below < min(self._n - below, upto) / 2:
            exactly = Interval(each.name, x - 1, x, whole=True)
            return _Single(exactly, upto - below, self._order, below)
        if self._n - below <= upto:  # as few above as below
            low = _bound(float(known[below - 1]), x, is_time) if below else -np.inf
            return _Single(_beyond(each, low, np.inf), self._n - below, self._order, below)
        high = _bound(x, float(known[upto]), is_time) if upto < self._n else np.inf
        return _Single(_beyond(each, -np.inf, high), upto, self._order, 0)


def _bound(low: float, high: float, is_time: bool) -> float:
    """A bound with low on the one side (or at it) and high on the other."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return low if np.isfinite(low) else -float(np.finfo(np.float64).max)
    return low if is_time else shortest_between(low, high)


def _beyond(each: Field, low: float, high: float) -> Clause:
    if each.kind != "time":
        return Interval(each.name, low, high, False, each.is_whole)
    if np.isfinite(low):
        return Period(each.name, after=np.datetime64(int(low), "us"))
    return (
        Period(each.name, until=np.datetime64(int(high), "us"))
        if np.isfinite(high)
        else Period(each.name)
    )
