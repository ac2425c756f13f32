"""Distilled rules: the shortest overlapping rules above the floor, and a default for the rest.

Pool, selection, polish: STAIR's rules and boxes give candidates, the search and an exact choice
among them the shortest set, and the bounds of what is left are set where they read and hold best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.engines.memory import MemoryEngine
from stair.learn.distill.cells import Cells, cells_of
from stair.learn.distill.clock import Clock
from stair.learn.distill.cover import Problem, problem_of
from stair.learn.distill.equal import distinct_rows, one_for_all
from stair.learn.distill.plan import EFFORTS, Chosen, Effort, shortest_set
from stair.learn.distill.polish import Reader, clauses_of
from stair.learn.distill.starts import boxes_of
from stair.learn.grow import Growth, grow, leaves_of
from stair.learn.known import length_with_costs
from stair.learn.wishes import Outcome, Reach, Wishes, kept
from stair.rules.clauses import Clause
from stair.rules.columns import ANY_SIDE, ONE_SIDE, Column, attribute_name
from stair.rules.match import first_covering
from stair.rules.objective import f1, least_outliers, reaches
from stair.rules.rule_set import Label, Leaf, Rule, RuleSet
from stair.rules.schema import Schema

__all__ = ["EFFORTS", "Distilled", "Effort", "Further", "distill", "least_outliers"]

# STAIR is grown past the floor by these shares of what is left above it, for a pool of rules.
PAST_THE_FLOOR: Final = (0.25, 0.5, 0.75)
# A rule has at most one clause for each column. Where there are few columns, this many are as good
# as no limit: the search takes its steps by the limit.
PLENTY: Final = 10
# No rule needs to cover more outliers, so that a weight beyond it says nothing more.
MOST_TIMES: Final = 2**40


@dataclass(frozen=True, slots=True)
class Further:
    """What one more rule would add: the rule, how many outliers more it explains, and the score of
    all rules with it."""

    rule: Rule
    outliers: float
    score: float


@dataclass(frozen=True, slots=True)
class Distilled:
    """The rules, and how far from the shortest they may be.

    No choice among the `n_candidates` rules that were looked at last is shorter than `bound`; 0
    where that was not solved.
    """

    rules: RuleSet
    score: float
    bound: int
    n_candidates: int
    min_outliers: int
    relaxed: bool  # whether fewer outliers to a rule than usual were needed for the floor
    cut_short: bool  # whether somebody or the clock ended the search before it was done
    further: Further | None = None
    most: float = 0.0  # no choice explains outliers of a larger weight, where that was asked
    outcomes: tuple[Outcome, ...] = ()  # of what was wished beside the floor on F1


def distill(
    columns: Sequence[Column],
    values: NDArray[np.float64],
    labels: NDArray[np.int32],
    rows: object,
    *,
    classes: tuple[Label, ...],
    schema: Schema,
    positive: int | None,
    weights: NDArray[np.float64] | None = None,
    repeated: bool = False,
    min_score: float = 0.8,
    max_rule_length: int = 10,
    max_total_length: int | None = None,
    min_outliers: int | None = None,
    effort: Effort = "normal",
    time_limit: float | None = None,
    seed: int = 0,
    decided: NDArray[np.int32] | None = None,
    say: Callable[[str], object] = lambda _: None,
    wishes: Wishes | None = None,
) -> Distilled:
    """The shortest rules above the floor for a table of codes.

    `rows` is the same table as rules read it: an array, or columns by feature name. `repeated` says
    that weights are how often each row is there, and that each time counts as one outlier more.
    With wishes beyond it, the floor on F1 only says where the search begins.
    Where there are rules already, `decided` is the class that they give each row, −1 for rows that
    they leave open: then these are the shortest additional rules, to which decided rows are worth
    nothing, and the score is that of all rules.
    """
    wishes = wishes or Wishes(min_score, length=max_total_length)
    clock = Clock(time_limit, say)
    max_rule_length = min(max_rule_length, max(len(columns), PLENTY))
    totals = np.bincount(labels, weights, len(classes))
    default = int(totals.argmax()) if positive is None else 1 - positive
    whole_rows = _Table(rows, labels, weights, decided)
    settled: NDArray[np.int64] | None = None
    read = _reader(columns, rows)
    if decided is not None:
        assert positive is not None and weights is None
        settled = _settled(decided, labels, positive)
        is_open = np.flatnonzero(decided < 0)
        values, labels, read = values[is_open], labels[is_open], _of_rows(read, is_open)
        if not (labels == positive).any():
            nothing = _Maker(whole_rows, classes, schema, positive, default, (positive,))(())
            return Distilled(*nothing, 0, 0, 1, relaxed=False, cut_short=False)
    equal = None if weights is not None else one_for_all(values, labels)
    if equal is not None:  # from here on a row stands for all that are equal to it
        first, n_equal = equal
        values, labels, read = values[first], labels[first], _of_rows(read, first)
        engine = MemoryEngine(columns, values, labels, len(classes), times=n_equal)
    else:
        engine = MemoryEngine(columns, values, labels, len(classes), weights)
    cells = cells_of(columns, values, labels != default, ranks=engine.ranks)
    cells = _with_costs(cells)
    costs = {attribute_name(column): column.cost for column in columns}
    if not wishes.is_plain:
        min_score = wishes.near_score(*_sizes(totals, positive))
    past = [min_score + (1 - min_score) * share for share in PAST_THE_FLOOR]
    growth = grow(
        engine, min_score=max(past), max_rule_length=max_rule_length, positive=positive,
        on_step=lambda _: clock.beat(),
    )  # fmt: skip
    grown = [
        _worth_most(leaves_of(growth, engine.unit, steps), positive, min_score, default)
        for steps in _steps_to(growth, past)
    ]
    first, places = distinct_rows(cells.codes, labels)
    times = np.bincount(places)
    sums = times
    if engine.whole_weights is not None:
        sums = np.zeros(len(first), dtype=np.int64)
        np.add.at(sums, places, engine.whole_weights)
    if equal is not None:
        times = sums
    n_alerts = times  # alerts are rows of the table, however often somebody says each was there
    if repeated and weights is not None:
        times = np.zeros(len(first), dtype=np.int64)
        np.add.at(times, places, np.minimum(weights, MOST_TIMES).astype(np.int64))
    wanted = int(times[labels[first] != default].sum())
    wanted += 0 if settled is None else int(settled[positive].sum())
    least = usual = least_outliers(min_outliers, wanted)
    first_chosen: Chosen | None = None
    while True:
        problem = problem_of(
            replace(cells, codes=cells.codes[first]), labels[first], len(classes), sums,
            default=default, positive=positive, min_score=min_score,
            max_rule_length=max_rule_length, min_outliers=least, times=times, wishes=wishes,
            settled=settled, alerts=n_alerts,
        )  # fmt: skip
        if settled is not None and problem.floor < 0:  # the other rules are enough
            chosen = Chosen([], is_enough=True)
        else:
            chosen = shortest_set(
                problem, grown, effort=effort, max_total_length=max_total_length,
                clock=clock, seed=seed, wants_most=wishes.wants_most,
            )  # fmt: skip
        first_chosen = first_chosen or chosen
        is_limited = max_total_length is not None and wishes.is_plain
        if chosen.is_enough or min_outliers is not None or is_limited:
            break
        if least == 1:  # of no use: then no rule should be a memory of a row or two
            least, chosen = usual, first_chosen
            break
        least = max(1, least // 2)  # nobody asked for so many: what reaches the floor goes first
    make = _Maker(whole_rows, classes, schema, positive, default, problem.labels)

    def polished(*, is_wide: bool) -> list[tuple[int, tuple[Clause, ...]]]:
        found = []
        for rule in chosen.rules:
            label = problem.labels[rule.label]
            is_foreign = labels != label if is_wide else np.ones_like(labels, dtype=np.bool_)
            found.append((label, clauses_of(cells, values, rule.box, is_foreign, read)))
        return found

    found = polished(is_wide=True)
    rules, score = make(found)
    if not wishes.is_plain and positive is not None:
        outcomes = make.outcomes(rules, wishes, costs)
        if not all(each.is_met for each in outcomes):
            # A wide bound wins outliers beyond it, and they are alerts too.
            tight, tight_score = make(polished(is_wide=False))
            narrow = make.outcomes(tight, wishes, costs)
            if kept(narrow) > kept(outcomes):
                rules, score, outcomes = tight, tight_score, narrow
        bound = min(chosen.bound, length_with_costs(rules, costs))
        most = float(np.ldexp(chosen.most, engine.unit)) * _grain(problem, sums)
        return Distilled(
            rules, score, bound, chosen.n_candidates, least, least < usual, clock.cut_short,
            most=most, outcomes=outcomes,
        )  # fmt: skip
    if not reaches(score, min_score) and max_total_length is None:
        # Bins that had to be put together, or weights that had to be rounded, may cost the floor.
        whole = [
            (leaf.label, leaf.clauses)
            for leaf in grown[-1]
            if leaf.clauses and _is_allowed(cells, leaf)
        ]
        plain, plain_score = make(whole)
        if min_outliers is None and reaches(plain_score, min_score):
            return Distilled(plain, plain_score, 0, 0, 1, relaxed=True, cut_short=clock.cut_short)
    relaxed = least < usual
    bound = min(chosen.bound, length_with_costs(rules, costs))  # the last touch may drop a clause
    further = None
    if chosen.further is not None and positive is not None:
        box = chosen.further.box
        clauses = clauses_of(cells, values, box, labels != positive, read)
        more, better = make([*found, (positive, clauses)])
        added = make.explained(more) - make.explained(rules)
        if better > score and added > 0:
            one = next((rule for rule in more if rule.clauses == clauses), None)
            further = None if one is None else Further(one, added, better)
    return Distilled(
        rules, score, bound, chosen.n_candidates, least, relaxed, clock.cut_short, further
    )


def _is_allowed(cells: Cells, leaf: Leaf) -> bool:
    """Whether a rule of STAIR's is one that columns allow: it may be taken as it is, whole."""
    is_free = cells.groups is None and all(
        column.sides in (ANY_SIDE, ONE_SIDE) for column in cells.columns
    )
    return is_free or bool(boxes_of(cells, [leaf]))


def _sizes(totals: Array, positive: int | None) -> tuple[float, float]:
    """The weight of outliers, and of all rows."""
    return float(totals[positive or 0]), float(totals.sum())


def _grain(problem: Problem, sums: NDArray[np.int64]) -> float:
    """By what the weights of rows were divided, in the problem."""
    return float(sums[0]) / float(problem.weights[0])


def _with_costs(cells: Cells) -> Cells:
    """Cells that know what columns cost, and which of them are one of a group."""
    names = [column.group for column in cells.columns]
    groups = {name: k for k, name in enumerate(sorted(set(names) - {""}))}
    if any(column.cost > 1 for column in cells.columns):
        cost = np.array([column.cost - 1 for column in cells.columns], dtype=np.int64)
        cells = replace(cells, further_cost=cost)
    if groups:
        of = np.array([groups.get(name, -1) for name in names], dtype=np.int64)
        cells = replace(cells, groups=of)
    return cells


def _reader(columns: Sequence[Column], rows: Any) -> Reader:
    """A column's values by its name, whether the table is an array or has names."""
    if not isinstance(rows, np.ndarray):
        return rows.__getitem__  # type: ignore[no-any-return]
    place = {column.name: column.attribute for column in columns}
    return lambda name: rows[:, place[name]]


def _of_rows(read: Reader, rows: NDArray[np.intp]) -> Reader:
    """The same for some of the rows."""
    return lambda name: read(name)[rows]


def _settled(
    decided: NDArray[np.int32], labels: NDArray[np.int32], positive: int
) -> NDArray[np.int64]:
    """The decided rows of each class: those that are called outliers in the second column."""
    found = np.zeros((2, 2), dtype=np.int64)
    rows = decided >= 0
    np.add.at(found, (labels[rows], (decided[rows] == positive).astype(np.intp)), 1)
    return found


def _steps_to(growth: Growth, scores: Sequence[float]) -> list[int]:
    """After how many steps each of these scores was reached; all steps where it was not."""
    seen = np.maximum.accumulate([step.score for step in growth.steps] or [0.0])
    return sorted({min(int(np.searchsorted(seen, s, "right")) + 1, growth.kept) for s in scores})


def _worth_most(
    leaves: Sequence[Leaf], positive: int | None, floor: float, default: int
) -> list[Leaf]:
    """The leaves that are worth a rule. At F1 = f that is from an outlier share of f/2 on."""
    found = []
    for leaf in leaves:
        if positive is not None:
            n_outliers = leaf.counts[positive]
            is_worth = (2 - floor) * n_outliers > floor * (sum(leaf.counts) - n_outliers)
            leaf = leaf._replace(label=positive if is_worth else default)
        if leaf.label != default:
            found.append(leaf)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """All rows: as rules read them, their classes and weights, and what other rules decide."""

    rows: object
    classes: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    decided: NDArray[np.int32] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Maker:
    """Clauses and classes as a rule set, everything counted from the rules on all rows."""

    table: _Table
    labels: tuple[Label, ...]
    schema: Schema
    positive: int | None
    default: int
    order: tuple[int, ...]  # where rules overlap, the first class wins

    def __call__(self, found: Sequence[tuple[int, tuple[Clause, ...]]]) -> tuple[RuleSet, float]:
        bare = self._set(Rule(clauses, self.labels[k]) for k, clauses in dict.fromkeys(found))
        covered = bare.covers(self.table.rows)
        kept = self._that_add(bare.rules, covered)
        bare, covered = self._set(bare.rules[k] for k in kept), covered[:, kept]
        rules = [
            Rule(rule.clauses, rule.label, tuple(zip(self.labels, self._counts(rows), strict=True)))
            for rule, rows in zip(bare.rules, covered.T, strict=True)
        ]
        place = {self.labels[k]: n for n, k in enumerate(self.order)}
        order = sorted(
            range(len(rules)),
            key=lambda k: (place[rules[k].label], -rules[k].hits, str(rules[k])),
        )
        result = self._set(rules[k] for k in order)
        return result, self._score(result, covered[:, order])

    def _that_add(self, rules: Sequence[Rule], covered: NDArray[np.bool_]) -> list[int]:
        """The rules less those all of whose rows others with their label cover: wider bounds, or an
        end before the floor, may leave one within another."""
        kept = list(range(len(rules)))
        for k in sorted(kept, key=lambda k: sum(self._counts(covered[:, k]))):
            others = [j for j in kept if j != k and rules[j].label == rules[k].label]
            if others and covered[covered[:, k]][:, others].any(axis=1).all():
                kept.remove(k)
        return kept

    def _set(self, rules: Iterable[Rule]) -> RuleSet:
        totals = self._counts(np.ones(len(self.table.classes), dtype=np.bool_))
        outlier = None if self.positive is None else self.labels[self.positive]
        return RuleSet(
            tuple(rules), self.labels, self.schema, self.labels[self.default], totals, outlier
        )

    def _counts(self, rows: NDArray[np.bool_]) -> tuple[float, ...]:
        weights = None if self.table.weights is None else self.table.weights[rows]
        counts = np.bincount(self.table.classes[rows], weights, len(self.labels))
        return tuple(map(float, counts))

    def explained(self, rules: RuleSet) -> float:
        """The outliers (or their weight) that are called so."""
        assert self.positive is not None
        return self._counts(self._predicted(rules) == self.positive)[self.positive]

    def outcomes(
        self, rules: RuleSet, wishes: Wishes, costs: Mapping[str, int]
    ) -> tuple[Outcome, ...]:
        """What became of the wishes, by the finished rules on all rows."""
        assert self.positive is not None
        inside = self._predicted(rules) == self.positive
        counts = self._counts(inside)
        hits, alerts, n_rows = counts[self.positive], int(inside.sum()), len(inside)
        found = Reach(
            hits, sum(counts) - hits, alerts, rules.totals[self.positive], n_rows,
            tuple(rule.precision for rule in rules), length_with_costs(rules, costs), len(rules),
        )  # fmt: skip
        return wishes.outcomes(found)

    def _score(self, rules: RuleSet, covered: NDArray[np.bool_]) -> float:
        predicted = self._called(rules, first_covering(covered))
        if self.positive is None:
            right = self._counts(predicted == self.table.classes)
            return sum(right) / sum(rules.totals)
        called = self._counts(predicted == self.positive)
        return f1(called[self.positive], sum(called), rules.totals[self.positive])

    def _predicted(self, rules: RuleSet) -> NDArray[np.intp]:
        """The class of each row by these rules, where no other rule has decided."""
        return self._called(rules, rules.assign(self.table.rows))

    def _called(self, rules: RuleSet, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """The same from the number of the first rule that covers each row."""
        place = {label: k for k, label in enumerate(self.labels)}
        named = [place[rule.label] for rule in rules.rules] + [self.default]
        predicted: NDArray[np.intp] = np.array(named)[numbers]
        decided = self.table.decided
        return predicted if decided is None else np.where(decided < 0, predicted, decided)
