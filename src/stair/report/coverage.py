"""Which rules cover which rows, counted: what each adds, and how they overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.rules.counted import Counted, counted_of
from stair.rules.groups import Groups
from stair.rules.rule_set import RuleSet

MOST_PAIRED: Final = 60  # rules whose overlap is looked at pair by pair
MOST_PAIRS: Final = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rules and the rows that both cover."""

    first: int
    second: int
    rows: int
    outliers: int
    of_first: float
    of_second: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many rules cover a row: of outliers by outlier rules, or of all rows where there is no
    outlier class. The pairs that share the most rows are listed."""

    depths: tuple[tuple[int, int], ...]  # covered by so many rules, such rows
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Counts over all rows."""

    counted: Counted
    only: NDArray[np.int64]  # by rule: rows of its label that no other rule for that label covers
    overlap: Overlap | None

    @property
    def totals(self) -> NDArray[np.int64]:
        """The rows of each class."""
        return self.counted.totals

    @property
    def first(self) -> NDArray[np.int64]:
        """For each rule the rows of each class that it decides about."""
        found: NDArray[np.int64] = self.counted.decided[:-1]
        return found

    @property
    def rest(self) -> NDArray[np.int64]:
        """The rows of each class that no rule covers."""
        found: NDArray[np.int64] = self.counted.decided[-1]
        return found

    @property
    def wrong(self) -> int:
        """Rows whose label by the rules is another."""
        return self.counted.n_rows - int(np.trace(self.counted.predicted))


def coverage_of(rules: RuleSet, groups: Groups) -> Coverage:
    """From the rows by what covers them."""
    counted = counted_of(rules, groups)
    labels = np.array(counted.places, dtype=np.intp)
    return Coverage(counted, _only(groups, labels), _overlap(groups, labels, counted))


def _only(groups: Groups, labels: NDArray[np.intp]) -> NDArray[np.int64]:
    found = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        covered = groups.covered[np.ix_(groups.classes == label, own)]
        alone = covered & (covered.sum(axis=1) == 1)[:, None]
        found[own] = groups.counts[groups.classes == label] @ alone
    return found


def _overlap(groups: Groups, labels: NDArray[np.intp], counted: Counted) -> Overlap | None:
    """Of the rules whose overlap is shown: those of outliers, or all."""
    positive = counted.positive
    main = np.flatnonzero((labels == positive) | (positive is None))
    depth = groups.covered[:, main].sum(axis=1)
    if int(depth.max(initial=0)) < 2:
        return None
    is_own = (groups.classes == positive) | (positive is None)
    depths = np.zeros(len(main) + 1, dtype=np.int64)
    np.add.at(depths, depth[is_own], groups.counts[is_own])
    paired = main[:MOST_PAIRED]
    # Double precision is exact here: there are fewer rows than 2**53.
    deep = groups.covered[np.ix_(depth > 1, paired)].astype(np.float64)
    counts = groups.counts[depth > 1]
    both = (deep.T @ (deep * counts[:, None])).astype(np.int64)
    marked = np.zeros_like(both)
    if positive is not None:
        own = counts * is_own[depth > 1]
        marked = (deep.T @ (deep * own[:, None])).astype(np.int64)
    return Overlap(
        tuple((k, n) for k, n in enumerate(depths.tolist()) if k and n),
        _pairs(paired, counted.covered.sum(axis=1), both, marked),
    )


def _pairs(
    paired: NDArray[np.intp],
    rows: NDArray[np.int64],
    both: NDArray[np.int64],
    marked: NDArray[np.int64],
) -> tuple[Pair, ...]:
    found = [
        Pair(
            int(paired[i]) + 1, int(paired[j]) + 1, int(both[i, j]), int(marked[i, j]),
            float(both[i, j] / rows[paired[i]]), float(both[i, j] / rows[paired[j]]),
        )
        for i, j in zip(*np.nonzero(np.triu(both, 1)), strict=True)
    ]  # fmt: skip
    found.sort(key=lambda pair: (-pair.rows, pair.first, pair.second))
    return tuple(found[:MOST_PAIRS])
