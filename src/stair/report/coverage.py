"""Which rules cover which rows, counted: what each adds, and how they overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.rules.match import Bits, blocks_of_bits, first_of, unpacked
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Values

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

    totals: NDArray[np.int64]  # rows by class
    only: NDArray[np.int64]  # by rule: rows of its label that no other rule for that label covers
    first: NDArray[np.int64]  # rule × class: rows that the rule decides about
    rest: NDArray[np.int64]  # by class: rows that no rule covers
    wrong: int  # rows whose label by the rules is another
    overlap: Overlap | None
    examples: tuple[NDArray[np.intp], ...]  # by rule: the first rows that it covers


def coverage_of(
    rules: RuleSet,
    values: Values,
    codes: NDArray[np.int32],
    examples: int = 0,
) -> Coverage:
    """One pass over the rows."""
    tally = _Tally(rules, examples)
    every = np.arange(len(codes))
    for own, rows, here in rules.parts(values):
        part, numbers = rules.rules[own.start : own.stop], every[rows]
        for block, bits in blocks_of_bits(part, here.__getitem__, here.n_rows):
            tally.add(bits, codes[numbers[block]], numbers[block], own.start, len(part))
    return tally.done()


def coverage_of_counts(rules: RuleSet) -> Coverage:
    """The same from the rules' own counts, where no two rules cover a row."""
    first = np.array([[n for _, n in rule.counts] for rule in rules]).round().astype(np.int64)
    totals = np.array(rules.totals).round().astype(np.int64)
    rest = totals - first.sum(axis=0)
    hits = first[np.arange(len(first)), [rules.classes.index(rule.label) for rule in rules]]
    right = int(hits.sum() + rest[rules.classes.index(rules.default)])
    none = tuple(np.empty(0, dtype=np.intp) for _ in rules)
    return Coverage(totals, hits, first, rest, int(totals.sum()) - right, None, none)


class _Tally:
    """Counts that grow block by block."""

    def __init__(self, rules: RuleSet, examples: int) -> None:
        n_rules, n_classes = len(rules), len(rules.classes)
        place = rules.classes.index
        self.labels = np.array([place(rule.label) for rule in rules], dtype=np.intp)
        self.default = place(rules.default)
        self.positive = None if rules.positive is None else place(rules.positive)
        self.main = np.arange(n_rules)  # the rules whose overlap is shown
        if self.positive is not None:
            self.main = np.flatnonzero(self.labels == self.positive)
        self.is_main = np.isin(np.arange(n_rules), self.main)
        self.paired = self.main[:MOST_PAIRED]
        self.rows = np.zeros(n_rules, dtype=np.int64)
        self.only = np.zeros(n_rules, dtype=np.int64)
        self.first = np.zeros((n_rules + 1, n_classes), dtype=np.int64)  # the last is no rule
        self.depths = np.zeros(n_rules + 1, dtype=np.int64)
        self.deepest = 0
        self.both = np.zeros((len(self.paired), len(self.paired)), dtype=np.int64)
        self.marked = np.zeros_like(self.both)
        self.wanted = np.full(n_rules, examples)
        self.examples: list[list[int]] = [[] for _ in range(n_rules)]

    def add(
        self, bits: Bits, codes: NDArray[np.int32], rows: NDArray[np.intp], start: int, n: int
    ) -> None:
        """A block of rows and its bits, of the n rules from `start` on."""
        found = first_of(bits)
        first = np.where(found < 0, len(self.labels), found + start)
        np.add.at(self.first, (first, codes), 1)
        # Most rows are covered by one rule, and then the first is all there is.
        single = np.bitwise_count(bits).sum(axis=1) == 1
        own, truth = first[single], codes[single]
        self.rows += np.bincount(own, minlength=len(self.rows))
        right = own[self.labels[own] == truth]
        self.only += np.bincount(right, minlength=len(self.only))
        counted = self.is_main[own] & ((truth == self.positive) | (self.positive is None))
        self.depths[1:2] += int(counted.sum())
        self.deepest = max(self.deepest, int(self.is_main[own].any()))
        several = np.flatnonzero(~single & (found >= 0))
        if several.size:
            self._overlapping(unpacked(bits[several], n), codes[several], slice(start, start + n))
        if (self.wanted[start : start + n] > 0).any():
            self._examples(unpacked(bits, n), rows, start)

    def _overlapping(
        self, covered: NDArray[np.bool_], codes: NDArray[np.int32], rules: slice
    ) -> None:
        labels = self.labels[rules]
        self.rows[rules] += covered.sum(axis=0)
        for c in np.unique(labels):
            own = np.flatnonzero(labels == c)
            right = covered[np.ix_(codes == c, own)]
            self.only[rules.start + own] += right[right.sum(axis=1) == 1].sum(axis=0)
        depth = covered[:, self.is_main[rules]].sum(axis=1)
        counted = depth if self.positive is None else depth[codes == self.positive]
        self.depths += np.bincount(counted, minlength=len(self.depths))
        self.deepest = max(self.deepest, int(depth.max(initial=0)))
        among = np.flatnonzero((self.paired >= rules.start) & (self.paired < rules.stop))
        # Single precision is exact here: a block has fewer rows than 2^24.
        deep = covered[np.ix_(depth > 1, self.paired[among] - rules.start)].astype(np.float32)
        self.both[np.ix_(among, among)] += (deep.T @ deep).astype(np.int64)
        if self.positive is not None:
            deep = deep[codes[depth > 1] == self.positive]
            self.marked[np.ix_(among, among)] += (deep.T @ deep).astype(np.int64)

    def _examples(self, covered: NDArray[np.bool_], rows: NDArray[np.intp], start: int) -> None:
        for k in range(covered.shape[1]):
            number = start + k
            if self.wanted[number] > 0:
                found = rows[np.flatnonzero(covered[:, k])[: self.wanted[number]]].tolist()
                self.examples[number] += found
                self.wanted[number] -= len(found)

    def done(self) -> Coverage:
        decided = np.append(self.labels, self.default)
        right = int(self.first[np.arange(len(decided)), decided].sum())
        overlap = Overlap(
            tuple((k, n) for k, n in enumerate(self.depths.tolist()) if k and n),
            _pairs(self.paired, self.rows, self.both, self.marked),
        )
        totals = self.first.sum(axis=0)
        return Coverage(
            totals, self.only, self.first[:-1], self.first[-1], int(totals.sum()) - right,
            overlap if self.deepest > 1 else None,
            tuple(np.array(each, dtype=np.intp) for each in self.examples),
        )  # fmt: skip


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
