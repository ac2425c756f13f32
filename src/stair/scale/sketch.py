"""What the values of a column are like, from parts that are put together in any number.

While a column has few different values they are all known, with their counts. Besides, a summary
of equally weighted quantiles is kept for each power of two of parts: two of one size make one of
the next, as in counting. Each such step moves a rank by at most 1 / (2·8,192) of the rows it
covers, so that ten thousand parts leave a quantile within one of 1,024 bins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

SUMMARY: Final = 8192  # quantiles in a summary
MOST_DISTINCT: Final = 10_000  # different values that are known one by one

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Summary:
    values: Floats  # in order, each standing for the same number of rows
    n_rows: int


@dataclass(slots=True, eq=False)
class Sketch:
    """The values of a column without the missing ones."""

    n_rows: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    distinct: Floats | None = field(default_factory=lambda: np.empty(0))  # None: too many
    counts: NDArray[np.int64] | None = field(default_factory=lambda: np.empty(0, np.int64))
    _levels: list[_Summary | None] = field(default_factory=list)

    def add(self, values: Floats) -> None:
        """One more part; no NaN."""
        if not len(values):
            return
        ordered = np.sort(values) + 0.0  # no negative zero
        self.n_rows += len(ordered)
        self.lowest = min(self.lowest, float(ordered[0]))
        self.highest = max(self.highest, float(ordered[-1]))
        if self.distinct is not None:
            starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
            self._add_distinct(ordered[starts], np.diff(np.append(starts, len(ordered))))
        self._carry(_thinned(ordered, None, len(ordered)), 0)

    def merge(self, other: Sketch) -> None:
        """All of another sketch's values."""
        self.n_rows += other.n_rows
        self.lowest = min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        if other.distinct is None or other.counts is None:
            self.distinct = self.counts = None
        else:
            self._add_distinct(other.distinct, other.counts)
        for level, summary in enumerate(other._levels):
            if summary is not None:
                self._carry(summary, level)

    def _add_distinct(self, values: Floats, counts: NDArray[np.int64]) -> None:
        if self.distinct is None or self.counts is None:
            return
        if len(values) > MOST_DISTINCT:
            self.distinct = self.counts = None
            return
        merged, places = np.unique(np.append(self.distinct, values), return_inverse=True)
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

    def quantiles(self, n: int) -> Floats:
        """n values in order that divide the rows into n + 1 parts of about equal size."""
        whole = _joined([summary for summary in self._levels if summary is not None])
        return _picked(whole.values, None, n, inner=True)


def _joined(summaries: list[_Summary]) -> _Summary:
    values = np.concatenate([s.values for s in summaries])
    weights = np.concatenate([np.full(len(s.values), s.n_rows / len(s.values)) for s in summaries])
    order = np.argsort(values, kind="stable")
    return _thinned(values[order], weights[order], sum(s.n_rows for s in summaries))


def _thinned(ordered: Floats, weights: Floats | None, n_rows: int) -> _Summary:
    return _Summary(_picked(ordered, weights, SUMMARY, inner=False), n_rows)


def _picked(ordered: Floats, weights: Floats | None, n: int, *, inner: bool) -> Floats:
    """n values at even ranks: in the middles of n parts, or at the n inner bounds of n + 1."""
    shares = np.arange(1, n + 1) / (n + 1) if inner else (np.arange(n) + 0.5) / n
    if weights is None:
        places = (shares * len(ordered)).astype(np.int64)
    else:
        upto = np.cumsum(weights)
        places = np.searchsorted(upto, shares * upto[-1], side="left")
    picked: Floats = ordered[np.minimum(places, len(ordered) - 1)]
    return picked
