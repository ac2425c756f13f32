"""How an attribute is distributed where a clause cuts it: exact counts of two groups of rows.

The groups are outliers and inliers. Where there are more than two classes they are a rule's own
class and all other rows. Each column is sorted once for each class, or was counted where the rows
are, and any number of clauses is then counted by looking up bounds.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array, Value
from stair.evidence.chart_axis import Axis, Scale, unit_of
from stair.evidence.charts import Bar, Bars, Bin, Chart, Histogram, Mark
from stair.evidence.tallies import Ranked, Tally
from stair.rules.clauses import (
    Among,
    Clause,
    Interval,
    Mentions,
    Period,
    Visitor,
    number_in_words,
    separated,
    value_in_words,
    value_order,
)

Counts: TypeAlias = NDArray[np.int64]  # rows of each class

FEW_VALUES: Final = 8  # numbers with no more distinct values are drawn one by one
SHOWN_VALUES: Final = 5  # categories that are drawn by name on either side of a clause
# The axis leaves out this share of each group at either end; the outer bins hold what is beyond.
TAIL: Final = 0.005
LARGEST: Final = sys.float_info.max
# Numbers whose median is nearer to an end of the axis than this share of it are skewed, and drawn
# by their logarithm where the largest is so many times the smallest.
SKEWED: Final = 0.12
WIDE: Final = 100
SMALL: Final = 0.05  # this share of the numbers may be too small to be told from zero
WHOLE: Final = 2**53  # beyond it doubles are not all the whole numbers


class Distributions:
    """The columns of some rows, read once each when they are first asked for."""

    def __init__(
        self,
        column: Callable[[str], Array | Tally],
        codes: NDArray[np.int32],
        n_classes: int,
    ) -> None:
        self._column = column
        self._codes = codes
        self._n_classes = n_classes
        self._known: dict[tuple[str, ...], _Ordered | _Named] = {}
        self.totals: Counts = np.bincount(codes, minlength=n_classes)

    @classmethod
    def of_tallies(cls, tallies: Mapping[str, Tally], totals: Sequence[int]) -> Distributions:
        """Of rows that are elsewhere. Counts are as exact as from the rows themselves: where
        columns were counted in bins, what is drawn ends where bins end."""
        made = cls(tallies.__getitem__, np.empty(0, np.int32), len(totals))
        made.totals = np.array(totals, dtype=np.int64)
        return made

    def met(self, clause: Clause) -> Counts:
        """The rows of each class that the clause covers."""
        return self._of(clause).met(clause)

    def chart(self, clause: Clause, group: int) -> Chart:
        """The clause's attribute; `group` is the class that is set against the others."""
        return self._of(clause).chart(clause, group)

    def distance(self, clause: Clause, group: int) -> float:
        """How far the group is from the other rows: the largest difference of their shares.

        For numbers and times that is of the rows up to any value (Kolmogorov and Smirnov), for
        categories of the rows with any one value.
        """
        return self._of(clause).distance(group)

    def _of(self, clause: Clause) -> _Ordered | _Named:
        key = clause.group
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(clause)
        return found

    def _read(self, clause: Clause) -> _Ordered | _Named:
        column = self._column(clause.feature)
        if isinstance(column, Tally):
            return (_Ordered if clause.is_ordered else _Named).of_tally(column)
        rows: Visitor[_Ordered | _Named] = _Rows(column, self._codes, self._n_classes)
        return clause.accept(rows)


class _Rows:
    """A column of rows and their classes, read as a clause of each kind needs it."""

    def __init__(self, array: Array, codes: NDArray[np.int32], n_classes: int) -> None:
        self._array, self._codes, self._n_classes = array, codes, n_classes

    def _count(self, rows: NDArray[np.bool_]) -> Counts:
        return np.bincount(self._codes[rows], minlength=self._n_classes)

    def interval(self, clause: Interval) -> _Ordered:
        del clause
        numbers = np.asarray(self._array, dtype=np.float64)
        return self._ordered(numbers, np.isnan(numbers), is_time=False, whole_days=False)

    def period(self, clause: Period) -> _Ordered:
        del clause
        array, gone = self._array, np.isnat(self._array)
        whole_days = bool((array == array.astype("datetime64[D]"))[~gone].all())
        numbers = array.astype("datetime64[us]").astype(np.int64)
        return self._ordered(numbers, gone, is_time=True, whole_days=whole_days)

    def _ordered(
        self, numbers: Array, gone: NDArray[np.bool_], *, is_time: bool, whole_days: bool
    ) -> _Ordered:
        classes = range(self._n_classes)
        return _Ordered(
            [Ranked(np.sort(numbers[(self._codes == c) & ~gone])) for c in classes],
            self._count(gone),
            is_time=is_time,
            whole_days=whole_days,
        )

    def among(self, clause: Among) -> _Named:
        del clause
        rows: dict[object, Counts] = {}
        missing = np.zeros(self._n_classes, dtype=np.int64)
        for c in range(self._n_classes):
            for value, n in Counter(self._array[self._codes == c].tolist()).items():
                if value is None or value != value:
                    missing[c] += n
                else:
                    rows.setdefault(value, np.zeros_like(missing))[c] += n
        ordered = sorted(rows, key=value_order)
        return _Named({value: rows[value] for value in ordered}, missing)

    def mentions(self, clause: Mentions) -> _Named:
        found = Mentions(clause.feature, clause.term).covers(self._array)
        gone = np.array([v is None or v != v for v in self._array.tolist()], dtype=np.bool_)
        rows = {clause.term: self._count(found), "": self._count(~found & ~gone)}
        return _Named(rows, self._count(gone), {clause.term: "mentions it", "": "does not"})


class _Ordered:
    """Numbers or times (as microseconds), sorted for each class."""

    def __init__(
        self,
        classes: list[Ranked],
        missing: Counts,
        *,
        is_time: bool,
        whole_days: bool,
        ends: Array | None = None,
    ) -> None:
        """`ends` are those of bins, where values within a bin cannot be told apart."""
        self.classes, self.missing = classes, missing
        self.is_time, self.whole_days = is_time, whole_days
        self._ends = None if ends is None else ends[np.isfinite(ends)]
        seen = [each for each in classes if each.size]
        # An axis ends at finite numbers; infinite ones are counted in its outermost bins.
        self._finite = classes if is_time else [x.between(-LARGEST, LARGEST) for x in classes]
        self._few = _distinct(seen) if ends is None else []
        whole = ends is None and all(_are_whole(x.values) for x in self._finite if x.size)
        self._whole = is_time or whole
        self._extents: dict[int, tuple[float, float, float]] = {}
        # Of the largest class, and the lower of two in the middle: their mean could overflow.
        self._most = max((x for x in self._finite if x.size), key=lambda x: x.size, default=None)

    @classmethod
    def of_tally(cls, tally: Tally) -> _Ordered:
        values = np.array(tally.values, dtype=np.int64 if tally.is_time else np.float64)
        return cls(
            [Ranked(values, counts) for counts in tally.counts[:-1].T],
            tally.counts[-1],
            is_time=tally.is_time,
            whole_days=tally.whole_days,
            ends=None if tally.exact else values,
        )

    def met(self, clause: Clause) -> Counts:
        low, high = clause.limits
        found = np.zeros(len(self.classes), dtype=np.int64)
        if low < high:
            found += self._between([low, high])[0]
        return found + self.missing if clause.missing else found

    def chart(self, clause: Clause, group: int) -> Chart:
        missing = _bar("missing", self.missing, group, clause.missing)
        seen = sum(x.size for x in self.classes)
        if not seen or self._few:
            bars = [self._value_bar(clause, value, group) for value in self._few]
            return Bars((*_in_order(bars), *((missing,) if self.missing.any() or not seen else ())))
        limits = clause.limits
        start, stop = self._range(group, limits)
        if not self.is_time:  # beyond 2**53 one more or less is the same number
            start = _beyond(start, -math.inf) if start == limits[0] else start
            stop = _beyond(stop, math.inf) if stop == limits[1] else stop
        in_steps = self._whole and not self.is_time
        smallest = min([self._extent(group)[2], *(abs(b) for b in limits if b)])
        scale = self._scale(start, stop, smallest)
        unit = unit_of(smallest, start, stop)
        axis = Axis(start, stop, scale, in_steps=in_steps, is_time=self.is_time, unit=unit)
        edges = self._at_ends(axis.edges(limits), limits)
        if not self.is_time:  # beyond a bound at the end of all numbers are infinite ones alone
            edges = [*[start] * (start == limits[0]), *edges, *[stop] * (stop == limits[1])]
        outer = [-math.inf, *edges[1:-1], math.inf]
        places = [round(axis.place(edge), 4) for edge in edges]
        bins = [
            Bin(
                low=outer[k],
                high=outer[k + 1],
                start=places[k],
                stop=places[k + 1],
                outliers=int(row[group]),
                inliers=int(row.sum() - row[group]),
                covered=limits[0] <= outer[k] and outer[k + 1] <= limits[1],
            )
            for k, row in enumerate(self._between(outer))
        ]
        said = [self._bound(b, is_low=in_steps and k == 0) for k, b in enumerate(limits)]
        said[0] *= said[0] != said[1]  # one number has two bounds, and is named once
        marks = [
            Mark(round(axis.place(b), 4), text)
            for b, text in zip(limits, said, strict=True)
            if start < b < stop
        ]
        # Whole numbers are drawn in steps that end at them, so the axis starts just below.
        low, high = self._end(start + 1 if in_steps else start), self._end(stop)
        return Histogram(
            tuple(bins),
            missing if self.missing.any() else None,
            tuple(marks),
            low,
            high,
            scale,
        )

    def distance(self, group: int) -> float:
        mine = self.classes[group]
        rest = self._others(group)
        n_mine = mine.size + int(self.missing[group])
        n_rest = rest.size + int(self.missing.sum() - self.missing[group])
        if not n_mine or not n_rest:
            return 0.0
        # The difference is largest at a value of the group, or just before one; missing values
        # come last, as if they were larger than all others.
        gaps = [abs(mine.size / n_mine - rest.size / n_rest)]
        for side in ("left", "right"):
            up_to = mine.up_to(mine.values, side) / n_mine
            others_up_to = rest.up_to(mine.values, side) / n_rest
            gaps.append(float(np.abs(up_to - others_up_to).max(initial=0.0)))
        return max(gaps)

    def _between(self, edges: Sequence[float]) -> Counts:
        """Rows of each class (columns) in each step between neighbouring edges (rows)."""
        finite = [edge for edge in edges if math.isfinite(edge)]
        found = np.empty((len(edges), len(self.classes)), dtype=np.int64)
        for c, x in enumerate(self.classes):
            inner = x.up_to(finite)
            found[:, c] = [
                *(0 for edge in edges if edge == -math.inf),
                *inner,
                *(x.size for edge in edges if edge == math.inf),
            ]
        counts: Counts = np.diff(found, axis=0)
        return counts

    def _value_bar(self, clause: Clause, value: Value, group: int) -> Bar:
        rows = np.array([x.up_to(value) - x.up_to(value, "left") for x in self.classes])
        low, high = clause.limits
        is_covered = (low < value or low == -math.inf) and value <= high
        return _bar(self._words(value), rows, group, is_covered)

    def _range(self, group: int, limits: tuple[float, float]) -> tuple[float, float]:
        """The ends of the axis: where most of either group is, and the clause's bounds."""
        least = min(x.at(0) for x in self._finite if x.size)
        most = max(x.at(x.size - 1) for x in self._finite if x.size)
        start, stop, _ = self._extent(group)
        margin = (stop / 2 - start / 2) / 5 or abs(start) / 10 or 1.0
        for bound in (b for b in limits if math.isfinite(b)):
            if bound <= start:
                start = max(least, bound - margin) if least < bound else bound - margin
            if bound >= stop:
                stop = min(most, bound + margin) if most > bound else bound + margin
        start, stop = max(start, -LARGEST), min(stop, LARGEST)
        if self._whole:
            start, stop = math.floor(start), math.ceil(stop)
            start -= 0 if self.is_time else 1  # the step of the least value ends at it
        if not start < stop:
            step = max(abs(start) * 1e-6, 1.0 if self._whole else 1e-12)
            start, stop = start - step, stop + step
        return start, stop

    def _extent(self, group: int) -> tuple[float, float, float]:
        """Where either group has all its rows but the tails; and the size of the numbers next to
        zero that a person wants to see apart from it."""
        if group not in self._extents:
            rest = Ranked.together([x for c, x in enumerate(self._finite) if c != group])
            seen = [x for x in (self._finite[group], rest) if x.size]
            lows = [x.at(int(TAIL * (x.size - 1))) for x in seen]
            highs = [x.at(math.ceil((1 - TAIL) * (x.size - 1))) for x in seen]
            sizes = [math.inf]
            for below, above in (_sides(x) for x in seen if not self.is_time):
                sizes += [-below.at(int((1 - SMALL) * (below.size - 1)))] if below.size else []
                sizes += [above.at(int(SMALL * (above.size - 1)))] if above.size else []
            self._extents[group] = (min(lows), max(highs), min(sizes))
        return self._extents[group]

    def _others(self, group: int) -> Ranked:
        return Ranked.together([x for c, x in enumerate(self.classes) if c != group])

    def _scale(self, start: float, stop: float, smallest: float) -> Scale:
        if self.is_time or self._most is None:
            return "linear"
        if start > 0:
            median = self._most.at((self._most.size - 1) // 2)
            skewed = stop / start >= WIDE and median < start + (stop - start) * SKEWED
            return "log" if skewed else "linear"
        far = max(abs(start), abs(stop))
        sides = [side for side in _sides(self._most) if side.size]
        if not sides or not far / WIDE >= smallest > 0:
            return "linear"
        most = max(sides, key=lambda side: side.size)
        middle = abs(most.at((most.size - 1) // 2))
        return "symlog" if middle < far * SKEWED else "linear"

    def _at_ends(self, edges: list[float], limits: tuple[float, float]) -> list[float]:
        """Edges where bins end, for within a bin nobody has counted; a clause's bounds are there
        already."""
        if self._ends is None:
            return edges
        places = np.searchsorted((self._ends[1:] / 2 + self._ends[:-1] / 2), edges[1:-1])
        near = self._ends[places].tolist()
        moved = {e if e in limits else n for e, n in zip(edges[1:-1], near, strict=True)}
        return [edges[0], *sorted(e for e in moved if edges[0] < e < edges[-1]), edges[-1]]

    def _words(self, value: float) -> str:
        if not self.is_time:
            return number_in_words(value)
        time = np.datetime64(int(value), "us")
        return Period("", whole_days=self.whole_days).time_in_words(time)

    def _bound(self, value: float, *, is_low: bool) -> str:
        """As the clause says it: whole numbers above 9999 are those from 10,000 on."""
        if not math.isfinite(value):
            return ""
        if self.is_time:
            return self._words(value)
        return separated(value + 1 if is_low and value == math.floor(value) else value)

    def _end(self, value: float) -> str:
        """An end of the axis, rounded: it is no bound of anything."""
        if self.is_time:
            return str(np.datetime64(int(value), "us").astype("datetime64[D]"))
        return separated(value if self._whole else float(f"{value:.3g}"))


class _Named:
    """Values that have names: categories, or a text with and without a term."""

    def __init__(
        self, rows: dict[Value, Counts], missing: Counts, names: Mapping[object, str] | None = None
    ) -> None:
        """`names` say what values are called that stand for others: they keep their order."""
        self._rows = rows
        self._missing = missing
        self._names = names

    @classmethod
    def of_tally(cls, tally: Tally) -> _Named:
        rows = {v: n for v, n in zip(tally.values, tally.counts[:-1], strict=True) if n.any()}
        return cls({v: rows[v] for v in sorted(rows, key=value_order)}, tally.counts[-1])

    def met(self, clause: Clause) -> Counts:
        met = [rows for rows, covered in self._covered(clause) if covered]
        return sum(met, start=self._missing * clause.missing)

    def chart(self, clause: Clause, group: int) -> Chart:
        gone = _bar("missing", self._missing, group, clause.missing)
        if not clause.n_bounds:  # about missing values alone
            there = sum(self._rows.values(), start=np.zeros_like(self._missing))
            return Bars((_bar("there", there, group, clause.negated), gone))
        names = map(value_in_words, self._rows) if self._names is None else self._names.values()
        bars = [
            _bar(name, rows, group, covered)
            for name, (rows, covered) in zip(names, self._covered(clause), strict=True)
        ]
        shown = _in_order(bars) if self._names is None else bars
        return Bars((*shown, *([gone] if self._missing.any() or not bars else [])))

    def distance(self, group: int) -> float:
        table = np.array([*self._rows.values(), self._missing])
        mine, rest = table[:, group], table.sum(axis=1) - table[:, group]
        if not mine.sum() or not rest.sum():
            return 0.0
        return float(np.abs(mine / mine.sum() - rest / rest.sum()).max())

    def _covered(self, clause: Clause) -> list[tuple[Counts, bool]]:
        """The rows of each value, and whether the clause covers it."""
        values = np.empty(len(self._rows), dtype=object)
        values[:] = list(self._rows)
        return list(zip(self._rows.values(), clause.covers(values).tolist(), strict=True))


def _beyond(number: float, end: float) -> float:
    """The next number towards an end, if there is one."""
    found = math.nextafter(number, end)
    return found if math.isfinite(found) else number


def _bar(name: str, rows: Counts, group: int, covered: bool) -> Bar:
    return Bar(name, int(rows[group]), int(rows.sum() - rows[group]), covered)


def _in_order(bars: list[Bar]) -> list[Bar]:
    """What is covered first; where there are many, the commonest by name and the rest as one."""
    totals = (sum(b.outliers for b in bars) or 1, sum(b.inliers for b in bars) or 1)

    def weight(bar: Bar) -> float:
        return max(bar.outliers / totals[0], bar.inliers / totals[1])

    found: list[Bar] = []
    for covered in (True, False):
        side = [bar for bar in bars if bar.covered is covered]
        if len(side) > SHOWN_VALUES + 1:
            common = sorted(side, key=weight, reverse=True)[:SHOWN_VALUES]
            rest = [bar for bar in side if bar not in common]
            outliers, inliers = sum(b.outliers for b in rest), sum(b.inliers for b in rest)
            side = [*common, Bar(f"{len(rest):,} more", outliers, inliers, covered)]
        found += side
    return found


def _sides(x: Ranked) -> tuple[Ranked, Ranked]:
    """The numbers below zero, and those above it."""
    least = math.ulp(0.0)
    return x.between(-math.inf, -least), x.between(least, math.inf)


def _are_whole(values: Array) -> bool:
    return bool((values == np.floor(values)).all()) and max(-values[0], values[-1]) < WHOLE


def _distinct(classes: Sequence[Ranked]) -> list[Value]:
    """The distinct values in order where there are few, else none."""
    found: set[object] = set()
    for x in (each.values for each in classes):
        here = 0
        while here < x.size:
            found.add(x[here].item())
            if len(found) > FEW_VALUES:
                return []
            here = int(np.searchsorted(x, x[here], side="right"))
    return sorted(found)
