"""Where two groups of rows differ: the shortest rules for rows that one of them has more of.

A box is as good as its likelihood ratio says (how surely its share differs), less what its length
costs: more clauses differ somewhere by chance. That ratio is convex in the two counts, so that the
best box is best for some price of a row of the other group, too; for a price it is a box with the
largest sum, which the search for distilled rules finds. A few prices are tried.

Rules are found on one half of the rows. Whether they hold is asked of the other half, and of all
rules that are asked at most `LEVEL` are wrong together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.learn.distill.boxes import EASES, NOTHING, around, begun, improved, with_clause
from stair.learn.distill.cells import Box, cells_of
from stair.learn.distill.cover import Candidate, Cover, Problem
from stair.learn.distill.polish import clauses_of
from stair.learn.table import Table, encode
from stair.progress import Progress, quiet
from stair.rules.clauses import Clause
from stair.rules.columns import LISTS, Lists
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Schema, Values

# What a row of the other group costs, as a part of what a row of one's own is worth: a share of 1%
# there against 3% here is found by 1, 2 and 3.
PRICES: Final = (1.0, 1.5, 2.5, 5.0, 12.0, 30.0)
# Boxes of two clauses that are drawn anew for each price, and how finely columns are cut.
TRIES: Final = 6
# Beginnings: these parts of an ordered column from both ends, and no more of all columns together.
ENDS: Final = (0.5, 0.25, 0.1, 0.05, 0.02)
MOST_STARTS: Final = 300
MOST_BINS: Final = 128
# More rows do not find more: those that are shown are counted on all.
MOST_ROWS: Final = 100_000
# Rules that are looked for in each of the two groups: so many at least, and at most.
FEWEST_RULES: Final = 3
MOST_RULES: Final = 8
# Worths are whole numbers.
_UNIT: Final = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """How to look for rows that one group has more of."""

    max_rule_length: int = 3
    min_rows: int = 5  # of that group, in the half that is learned from
    lists: Lists = LISTS
    seed: int = 0
    say: Progress = quiet

    def rules(
        self, schema: Schema, values: Values, is_own: NDArray[np.bool_]
    ) -> tuple[tuple[Clause, ...], ...]:
        """The clauses of rules for rows of this group, the surest difference first. Each is looked
        for among the rows that no earlier one covers."""
        random = np.random.default_rng(self.seed)
        if len(is_own) > MOST_ROWS:
            rows = np.sort(random.choice(len(is_own), MOST_ROWS, replace=False))
            values, is_own = values.take(rows), is_own[rows]
        if not is_own.any() or is_own.all():
            return ()
        table = encode(schema, values, is_own.astype(np.int32), lists=self.lists, list_codes=True)
        search = _Search(self, table, values, is_own, random)
        found: list[tuple[Clause, ...]] = []
        for number in range(MOST_RULES):
            self.say(f"looking for differences: rule {number + 1}")
            best = search.next_rule()
            if best is None or (best.score < 0 and number >= FEWEST_RULES):
                break
            if best.clauses not in found:
                found.append(best.clauses)
        return tuple(found)


class _Best(NamedTuple):
    """A rule, and how sure it is beyond what is so by chance."""

    clauses: tuple[Clause, ...]
    score: float


class _Search:
    """The rows of two groups, and the boxes of each price."""

    def __init__(
        self,
        how: Contrast,
        table: Table,
        values: Values,
        is_own: NDArray[np.bool_],
        random: np.random.Generator,
    ) -> None:
        self.how, self.table, self.values, self.is_own = how, table, values, is_own
        self.random = random
        self.cells = cells_of(table.columns, table.codes, is_own, MOST_BINS)
        self.left = np.ones(len(is_own), dtype=np.bool_)
        self.covers = [Cover(self._problem(price)) for price in PRICES]
        self.starts = self._starts()

    def _problem(self, price: float) -> Problem:
        """A row of one's own is worth as much as all others together divided by their price, so
        that shares are compared and not counts."""
        classes = self.is_own.astype(np.int32)
        n_own = int(self.is_own.sum())
        n_others = len(classes) - n_own
        scale = _UNIT * max(n_own, n_others)
        worth = np.array([[-max(1, round(price * scale / n_others)), 0],
                          [max(1, round(scale / n_own)), 0]], dtype=np.int64)  # fmt: skip
        ones = np.ones(len(classes), dtype=np.int64)
        return Problem(
            self.cells, classes, (1,), 0, worth, ones, ones, 2**60, self.how.max_rule_length,
            self.how.min_rows,
        )  # fmt: skip

    def cost(self, box: Box) -> float:
        """What a box costs of a likelihood ratio: of so many boxes like it one is so good by
        chance. Every attribute is as likely to be spoken of, however many columns it has."""
        cells, found = self.cells, 0.0
        columns = Counter(column.attribute for column in cells.columns)
        for j, bins in box.items():
            n_bins = int(cells.n_bins[j])
            if isinstance(bins, frozenset):
                n_chosen = min(len(bins), n_bins - len(bins))
                n_alike = comb(n_bins, max(1, n_chosen))
            else:
                n_alike = 2 * n_bins if cells.n_bounds(j, bins) == 1 else n_bins * n_bins // 2
            found += 2 * log(max(1, n_alike) * len(columns) * columns[cells.columns[j].attribute])
        return found

    def next_rule(self) -> _Best | None:
        best: tuple[float, Candidate] | None = None
        for rule in self._boxes():
            score = self._score(rule)
            if score is not None and (best is None or score > best[0]):
                best = score, rule
        if best is None:
            return None
        rule = best[1]
        for cover in self.covers:
            cover.add(rule)
        self.left[rule.rows] = False
        clauses = clauses_of(
            self.cells, self.table.codes, rule.box, ~self.is_own, self.values.__getitem__
        )
        return _Best(clauses, best[0])

    def _boxes(self) -> Iterator[Candidate]:
        """For each price the best boxes of one clause, and of two and more from many beginnings."""
        for cover in self.covers:
            longest = self.how.max_rule_length
            for ease in EASES:
                for rule, _ in begun(cover, longest, ease, self.random):
                    yield rule
            if longest == 1:
                continue
            nexts = []
            for start in self.starts:
                found = around(cover, start, drops=False)
                sums = found.sums[-1]
                sums[list(start)] = NOTHING
                column = int(sums.argmax())
                nexts.append((int(sums[column]), start, column, found))
            nexts.sort(key=lambda each: -each[0])
            for gain, start, column, found in nexts[:TRIES]:
                if gain <= 0:
                    break
                box = with_clause(cover, start, column, found, -1)
                rule, gain = improved(cover, box)
                if gain > 0 and cover.allows(rule):
                    yield rule
                if longest > 2:
                    yield from self._longer(cover, rule)

    def _longer(self, cover: Cover, rule: Candidate) -> Iterator[Candidate]:
        """The same box with one more clause, where that is worth something."""
        if not 0 < len(rule.box) < self.how.max_rule_length:
            return
        found = around(cover, rule.box, drops=False)
        sums = found.sums[-1]
        sums[list(rule.box)] = NOTHING
        column = int(sums.argmax())
        if sums[column] > found.totals[-1]:
            better, _ = improved(cover, with_clause(cover, rule.box, column, found, -1))
            if cover.allows(better):
                yield better
                yield from self._longer(cover, better)

    def _starts(self) -> list[Box]:
        """Boxes of one clause: each value of a category, and ends of ordered columns."""
        cells = self.cells
        found: list[Box] = []
        for j, column in enumerate(cells.columns):
            n_bins = int(cells.n_bins[j])
            if not column.is_ordered:
                found += [{j: frozenset({k})} for k in range(n_bins)]
                continue
            last = n_bins - int(cells.has_missing[j]) - 1
            if cells.has_missing[j]:
                found.append({j: (1, 0, True)})
            for share in ENDS:
                cut = round(share * (last + 1))
                ends: list[Box] = [{j: (0, cut - 1, False)}, {j: (last + 1 - cut, last, False)}]
                found += [end for end in ends if 0 < cut <= last]
        if len(found) > MOST_STARTS:
            chosen = self.random.choice(len(found), MOST_STARTS, replace=False)
            found = [found[k] for k in sorted(chosen.tolist())]
        return found

    def _score(self, rule: Candidate) -> float | None:
        """How surely the box differs, less what it costs; None where it has too few rows, or not
        more than its part."""
        rows = rule.rows[self.left[rule.rows]]
        inside = np.bincount(self.is_own[rows], minlength=2)
        whole = np.bincount(self.is_own[self.left], minlength=2)
        if inside[1] < self.how.min_rows or inside[1] * whole[0] <= inside[0] * whole[1]:
            return None
        return likelihood_ratio(inside, whole) - self.cost(rule.box)


def likelihood_ratio(inside: NDArray[np.int64], whole: NDArray[np.int64]) -> float:
    """Twice the logarithm of how much likelier the counts of two groups are with a share for each
    than with one for both."""
    outside = whole - inside
    found = 0.0
    for part in (inside, outside):
        expected = whole * (part.sum() / whole.sum())
        is_there = part > 0
        found += 2 * float((part[is_there] * np.log(part[is_there] / expected[is_there])).sum())
    return found


def halves(n_rows: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows to look at, and those that are kept aside."""
    order = np.random.default_rng([seed, 2]).permutation(n_rows)
    return np.sort(order[: n_rows // 2]), np.sort(order[n_rows // 2 :])


def covered_first(
    rules: Sequence[tuple[Clause, ...]], schema: Schema, values: Values
) -> NDArray[np.bool_]:
    """Which rows each rule covers that no earlier one does (rows × rules)."""
    whole = RuleSet(tuple(Rule(clauses, 1) for clauses in rules), (0, 1), schema, 0, (0.0, 0.0))
    covered = whole.covers(values)
    first = covered.argmax(axis=1)
    alone: NDArray[np.bool_] = covered & (np.arange(covered.shape[1]) == first[:, None])
    return alone
