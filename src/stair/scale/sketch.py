"""What the values of a column are like, from parts that are put together in any number.

While a column has few different values they are all known, with their counts. Besides, a summary
of equally weighted quantiles is kept for each power of two of parts: two of one size make one of
the next, as in counting. Each such step moves a rank by at most 1 / (2·8,192) of the rows it
covers, so that ten thousand parts leave a quantile within one of 1,024 bins.

Values are float64; times, and whole numbers that are not all exact so, are int64 or uint64.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT
from stair.data.frame import Array, DType
from stair.learn.identifiers import expected_pairs

SUMMARY: Final = 8192  # quantiles in a summary
MOST_DISTINCT: Final = 10_000  # different values that are known one by one

Numbers = Array
_FLOAT: Final = np.dtype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Summary:
    values: Numbers  # in order, each standing for the same number of rows
    n_rows: int


@dataclass(slots=True, eq=False)
class Sketch:
    """The values of a column without the missing ones."""

    n_rows: int = 0
    lowest: float = np.inf  # Python's own numbers: whole ones are exact
    highest: float = -np.inf
    whole: bool = True  # all of them are whole numbers
    distinct: Numbers | None = field(default_factory=lambda: np.empty(0))  # None: too many
    counts: NDArray[np.int64] | None = field(default_factory=lambda: np.empty(0, np.int64))
    n_repeats: int = 0  # rows that repeat another one of their part
    pairs: float = 0.0  # of whole numbers, that chance would make equal within the parts
    dtype: DType = _FLOAT
    _levels: list[_Summary | None] = field(default_factory=list)

    @property
    def in_steps(self) -> bool:
        """Whether values are held as whole numbers, so that the next one is one more."""
        return self.dtype.kind in "iu"

    @classmethod
    def of_whole(
        cls,
        picked: Numbers,
        n_rows: int,
        lowest: float,
        highest: float,
        whole: bool,
        distinct: Numbers | None,
        counts: NDArray[np.int64] | None,
        n_repeats: int,
        pairs: float,
    ) -> Sketch:
        """Of a column that somebody else has gone over: `picked` are the values at `places_at`
        of all of its values in order, or of rows drawn evenly from it."""
        return cls(
            n_rows, lowest, highest, whole, distinct, counts, n_repeats, pairs, picked.dtype,
            [_Summary(picked, n_rows)],
        )  # fmt: skip

    def add(self, values: Numbers) -> None:
        """One more part; no NaN."""
        if not len(values):
            return
        ordered = np.sort(values)
        if ordered.dtype.kind == "f":
            ordered += 0.0  # no negative zero
        is_whole = ordered.dtype.kind in "iu" or bool(
            self.whole and (ordered == np.rint(ordered)).all()
        )
        dtype = self._extend(ordered.dtype, ordered[0].item(), ordered[-1].item(), is_whole)
        ordered = ordered.astype(dtype, copy=False)
        self.n_rows += len(ordered)
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self.n_repeats += len(ordered) - len(starts)
        if self.whole and np.isfinite(ordered[[0, -1]]).all():
            self.pairs += expected_pairs(len(ordered), int(ordered[0]), int(ordered[-1]))
        if self.distinct is not None:
            self._add_distinct(ordered[starts], np.diff(np.append(starts, len(ordered))))
        self._carry(_thinned(ordered, None, len(ordered)), 0)

    def merge(self, other: Sketch) -> None:
        """All of another sketch's values."""
        if not other.n_rows:
            return
        dtype = self._extend(other.dtype, other.lowest, other.highest, other.whole)
        self.n_rows += other.n_rows
        self.n_repeats += other.n_repeats
        self.pairs += other.pairs
        if other.distinct is None or other.counts is None:
            self.distinct = self.counts = None
        else:
            self._add_distinct(other.distinct.astype(dtype, copy=False), other.counts)
        for level, summary in enumerate(other._levels):
            if summary is not None:
                self._carry(_as(summary, dtype), level)

    def _extend(self, dtype: DType, low: float, high: float, whole: bool) -> DType:
        """Make room for values of another type; the type that holds all values from now on."""
        if self.n_rows and dtype != self.dtype:
            dtype = self._common(dtype, low, high, whole)
        self.lowest, self.highest = min(self.lowest, low), max(self.highest, high)
        self.whole = self.whole and whole
        if dtype != self.dtype:
            self.dtype = dtype
            if self.distinct is not None:
                self.distinct = self.distinct.astype(dtype)
            self._levels = [each and _as(each, dtype) for each in self._levels]
        return dtype

    def _common(self, dtype: DType, low: float, high: float, whole: bool) -> DType:
        """As any table has it: whole numbers of at most 64 bits, else floats."""
        ranges = ((self.dtype, self.lowest, self.highest), (dtype, low, high))
        exact = all(d.kind in "iu" or max(-a, b) <= EXACT for d, a, b in ranges)
        if self.whole and whole and exact:
            least, most = min(self.lowest, low), max(self.highest, high)
            if most < 2**63:
                return np.dtype(np.int64)
            if least >= 0:
                return np.dtype(np.uint64)
        return _FLOAT

    def _add_distinct(self, values: Numbers, counts: NDArray[np.int64]) -> None:
        if self.distinct is None or self.counts is None:
            return
        if len(values) > MOST_DISTINCT:
            self.distinct = self.counts = None
            return
        known = self.distinct.astype(values.dtype, copy=False)
        merged, places = np.unique(np.append(known, values), return_inverse=True)
        if len(merged) > MOST_DISTINCT:
            self.distinct = self.counts = None
            return
        both = np.append(self.counts, counts)
        self.distinct = merged
        self.counts = np.zeros(len(merged), dtype=np.int64)
        np.add.at(self.counts, places, both)

    def _carry(self, summary: _Summary, level: int) -> None:
        while True:
            if level >= len(self._levels):
                self._levels += [None] * (level + 1 - len(self._levels))
            there = self._levels[level]
            if there is None:
                self._levels[level] = summary
                return
            self._levels[level] = None
            summary = _joined([there, summary])
            level += 1

    def quantiles(self, n: int) -> Numbers:
        """n values in order that divide the rows into n + 1 parts of about equal size."""
        whole = _joined([summary for summary in self._levels if summary is not None])
        return _picked(whole.values, None, n, inner=True)


def _as(summary: _Summary, dtype: DType) -> _Summary:
    return _Summary(summary.values.astype(dtype, copy=False), summary.n_rows)


def _joined(summaries: list[_Summary]) -> _Summary:
    values = np.concatenate([s.values for s in summaries])
    weights = np.concatenate([np.full(len(s.values), s.n_rows / len(s.values)) for s in summaries])
    order = np.argsort(values, kind="stable")
    return _thinned(values[order], weights[order], sum(s.n_rows for s in summaries))


def _thinned(ordered: Numbers, weights: NDArray[np.float64] | None, n_rows: int) -> _Summary:
    return _Summary(_picked(ordered, weights, SUMMARY, inner=False), n_rows)


def places_at(n_rows: int, n: int = SUMMARY, *, inner: bool = False) -> NDArray[np.int64]:
    """n places at even ranks: in the middles of n parts, or at the n inner bounds of n + 1."""
    return np.minimum((_shares(n, inner) * n_rows).astype(np.int64), n_rows - 1)


def _shares(n: int, inner: bool) -> NDArray[np.float64]:
    return np.arange(1, n + 1) / (n + 1) if inner else (np.arange(n) + 0.5) / n


def _picked(
    ordered: Numbers, weights: NDArray[np.float64] | None, n: int, *, inner: bool
) -> Numbers:
    """n values at even ranks."""
    if weights is None:
        whole: Numbers = ordered[places_at(len(ordered), n, inner=inner)]
        return whole
    upto = np.cumsum(weights)
    places = np.searchsorted(upto, _shares(n, inner) * upto[-1], side="left")
    picked: Numbers = ordered[np.minimum(places, len(ordered) - 1)]
    return picked
