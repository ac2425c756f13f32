"""What rules cover of rows, counted by class: every figure that is said of rules comes from it.

Counts are whole numbers, and those of two parts of the data add up to those of both. So rows in
memory, a batch of a file and the blocks of many workers are counted by the same few lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.weights import Unit
from stair.rules.clauses import Clause
from stair.rules.groups import Groups, groups_apart, groups_of_matches
from stair.rules.matches import Matches
from stair.rules.objective import f1
from stair.rules.rule_set import Label, Rule, RuleSet
from stair.rules.schema import Values

Counts: TypeAlias = NDArray[np.int64]  # a row for each rule or clause, a column for each class


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the rows that are said to be of a class, those that are; and all that there are. They may
    be weighed in place of counted."""

    rows: int
    hits: int
    total: int

    @property
    def precision(self) -> float:
        return self.hits / self.rows if self.rows else math.nan

    @property
    def recall(self) -> float:
        return self.hits / self.total if self.total else math.nan

    @property
    def f1(self) -> float:
        return f1(self.hits, self.rows, self.total)


@dataclass(frozen=True, slots=True)
class ClauseEvidence:
    """How unusual a clause is: the share of the inliers, and of the outliers, that meet it."""

    text: str
    of_inliers: float
    of_outliers: float


@dataclass(frozen=True, slots=True)
class RuleEvidence:
    """What speaks for one rule, counted on all rows. `rows` and `hits` are rows; where rows have
    weights, the share and the precision are of weight."""

    rule: Rule
    rows: int
    hits: int  # rows with the rule's own label
    share: float  # of all rows with that label
    alone: int  # rows with that label that no other rule covers
    clauses: tuple[ClauseEvidence, ...]
    weighed: Figures | None = None  # by weight

    @property
    def precision(self) -> float:
        if self.weighed is not None:
            return self.weighed.precision
        return self.hits / self.rows if self.rows else math.nan


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows that no rule covers, which get the default label; the precision is of weight where
    rows have some."""

    rows: int
    hits: int  # those that have that label
    weighed: Figures | None = None

    @property
    def precision(self) -> float:
        if self.weighed is not None:
            return self.weighed.precision
        return self.hits / self.rows if self.rows else math.nan


@dataclass(frozen=True, slots=True)
class Weighed:
    """All rules together by the weight of rows, which has this name; NaN where there is no class
    of outliers."""

    name: str
    total: float  # of all rows
    outliers: float
    alerts: float  # of the rows that rules call outliers
    hits: float
    score_of_rows: float

    @property
    def precision(self) -> float:
        return self.hits / self.alerts if self.alerts else math.nan

    @property
    def recall(self) -> float:
        return self.hits / self.outliers if self.outliers else math.nan


def by_weight(evidence: Sequence[RuleEvidence], heavy: Counted) -> tuple[RuleEvidence, ...]:
    """What speaks for rules, with their weights."""
    return tuple(
        replace(each, weighed=figures, share=figures.recall)
        for each, figures in zip(evidence, heavy.of_rules, strict=True)
    )


def rest_by_weight(rest: Rest, heavy: Counted) -> Rest:
    """The rows that no rule covers, with their weight."""
    left = heavy.rest
    return replace(rest, weighed=Figures(left.rows, left.hits, int(heavy.totals.sum())))


def weighed_of(unit: Unit, heavy: Counted, score: float) -> Weighed:
    """All rules together by weight, in the weights that were given."""
    total, nothing = unit.true(float(heavy.totals.sum())), math.nan
    if heavy.positive is None:
        return Weighed(unit.name, total, nothing, nothing, nothing, score)
    figures = heavy.of_class(heavy.positive)
    outliers, alerts, hits = map(unit.true, (figures.total, figures.rows, figures.hits))
    return Weighed(unit.name, total, outliers, alerts, hits, score)


@dataclass(frozen=True, eq=False)
class Counted:
    """The rows of each class that each rule covers, those that it decides about because it is the
    first, and those that it alone covers; the rows that meet each clause, rule by rule. Rows that
    an exception takes from a rule are none of its; exceptions have those that they take from any
    rule, and those that no other one takes."""

    rules: RuleSet
    covered: Counts
    decided: Counts  # one more at the end: the rows that no rule covers
    sole: Counts
    met: Counts
    lifted: Counts
    sole_lifted: Counts
    all_lifted: Counts  # one row: that all exceptions together take

    def __add__(self, other: Counted) -> Counted:
        """The counts of two parts of the data, which are those of both."""
        return replace(
            self,
            covered=self.covered + other.covered,
            decided=self.decided + other.decided,
            sole=self.sole + other.sole,
            met=self.met + other.met,
            lifted=self.lifted + other.lifted,
            sole_lifted=self.sole_lifted + other.sole_lifted,
            all_lifted=self.all_lifted + other.all_lifted,
        )

    @cached_property
    def places(self) -> list[int]:
        """The class of each rule."""
        return [self.rules.classes.index(rule.label) for rule in self.rules]

    @property
    def default(self) -> int:
        """The class of a row that no rule covers."""
        return self.rules.classes.index(self.rules.default)

    @property
    def positive(self) -> int | None:
        """The class of outliers."""
        rules = self.rules
        return None if rules.positive is None else rules.classes.index(rules.positive)

    @cached_property
    def totals(self) -> Counts:
        """The rows of each class."""
        found: Counts = self.decided.sum(axis=0)
        return found

    @property
    def n_rows(self) -> int:
        return int(self.totals.sum())

    @cached_property
    def predicted(self) -> Counts:
        """The rows of each class, by the class that the rules give them (rows of the table)."""
        found = np.zeros((len(self.totals), len(self.totals)), dtype=np.int64)
        np.add.at(found, [*self.places, self.default], self.decided)
        return found

    @property
    def rest(self) -> Rest:
        """What is left when every rule has spoken."""
        return Rest(int(self.decided[-1].sum()), int(self.decided[-1, self.default]))

    @property
    def accuracy(self) -> float:
        """The share of rows that get their own class; NaN where there is no row."""
        return int(np.trace(self.predicted)) / self.n_rows if self.n_rows else math.nan

    @property
    def score(self) -> float:
        """F1 of the outliers, or accuracy where there is no such class."""
        if self.positive is not None:
            return self.of_class(self.positive).f1
        return self.accuracy if self.n_rows else 0.0

    @property
    def unexplained(self) -> int:
        """Outliers that no rule calls so: of the outlier class, or of all but the default one that
        no rule calls anything else."""
        if self.positive is None:
            return int(self.predicted[self.default].sum() - self.predicted[(self.default,) * 2])
        return int(self.totals[self.positive] - self.predicted[(self.positive,) * 2])

    @property
    def recounted(self) -> RuleSet:
        """The rules with these counts."""
        return replace(
            self.rules,
            rules=self._with_counts(self.rules.rules, self.covered),
            totals=tuple(map(float, self.totals.tolist())),
            exceptions=self._with_counts(self.rules.exceptions, self.lifted),
        )

    def _with_counts(self, rules: Sequence[Rule], counts: Counts) -> tuple[Rule, ...]:
        classes = self.rules.classes
        return tuple(
            Rule(rule.clauses, rule.label, tuple(zip(classes, map(float, each), strict=True)))
            for rule, each in zip(rules, counts.tolist(), strict=True)
        )

    def of_class(self, place: int) -> Figures:
        """All rules together, about one class."""
        said = self.predicted[place]
        return Figures(int(said.sum()), int(said[place]), int(self.totals[place]))

    @property
    def of_labels(self) -> Mapping[Label, Figures]:
        """All rules together, about each class that they are there for: that of the outliers, or
        every one but the default."""
        classes = self.rules.classes
        places = range(len(classes)) if self.positive is None else [self.positive]
        return {
            classes[k]: self.of_class(k)
            for k in places
            if self.positive is not None or k != self.default
        }

    @property
    def of_rules(self) -> tuple[Figures, ...]:
        """Each rule by itself."""
        return tuple(
            Figures(int(counts.sum()), int(counts[place]), int(self.totals[place]))
            for counts, place in zip(self.covered, self.places, strict=True)
        )

    def evidence(self, *, decided: bool = False) -> tuple[RuleEvidence, ...]:
        """What speaks for each rule: of all rows that it covers, or of those alone that it has
        `decided` because no earlier rule covers them."""
        found = []
        met = iter(self.met)
        chosen = self.decided[:-1] if decided else self.covered
        for rule, place, counts, sole in zip(
            self.rules, self.places, chosen, self.sole, strict=True
        ):
            clauses = tuple(self._clause(clause, next(met), place) for clause in rule.clauses)
            rows, hits, total = int(counts.sum()), int(counts[place]), int(self.totals[place])
            share = hits / total if total else math.nan
            found.append(RuleEvidence(rule, rows, hits, share, int(sole[place]), clauses))
        return tuple(found)

    def of_exceptions(self) -> tuple[RuleEvidence, ...]:
        """What each exception does: the rows that it takes from the rules, those of them that have
        the default label, and which part that is of all that rules would be wrong about without
        exceptions. Clauses are counted for rules alone."""
        default = self.default
        places = [k for k in range(len(self.totals)) if k != default]
        wrong = int(self.predicted[places][:, default].sum() + self.all_lifted[0, default])
        found = []
        for rule, counts, sole in zip(
            self.rules.exceptions, self.lifted, self.sole_lifted, strict=True
        ):
            rows, hits = int(counts.sum()), int(counts[default])
            share = hits / wrong if wrong else math.nan
            found.append(RuleEvidence(rule, rows, hits, share, int(sole[default]), ()))
        return tuple(found)

    def _clause(self, clause: Clause, met: Counts, place: int) -> ClauseEvidence:
        """The shares within the rule's own class (at this place) and outside of it."""
        total, outside = self.totals[place], self.totals.sum() - self.totals[place]
        own = met[place] / total if total else 0.0
        others = (met.sum() - met[place]) / outside if outside else 0.0
        is_outlier = self.positive is None or place == self.positive
        inliers, outliers = (others, own) if is_outlier else (own, others)
        return ClauseEvidence(str(clause), float(inliers), float(outliers))


def counted_of(rules: RuleSet, groups: Groups, met: Counts | None = None) -> Counted:
    """From rows by what covers them. Clauses are about rows of all groups, so what meets them is
    counted elsewhere; nothing is said of them where it is not given."""
    n_classes, n_rules = _classes_among(rules, groups.classes), len(rules)
    shape = (n_rules + 1, n_classes)
    first = groups.first()
    decided = np.zeros(shape, dtype=np.int64)
    np.add.at(decided, (np.where(first < 0, n_rules, first), groups.classes), groups.counts)
    alone = groups.covered.sum(axis=1) == 1
    sole = np.zeros(shape, dtype=np.int64)
    np.add.at(sole, (first[alone], groups.classes[alone]), groups.counts[alone])
    n_clauses = sum(len(rule.clauses) for rule in rules)
    lifted = groups.lifted
    if lifted is None:
        lifted = np.zeros((len(groups.counts), len(rules.exceptions)), dtype=np.bool_)
    n_taking = lifted.sum(axis=1, keepdims=True)
    return Counted(
        rules,
        groups.by_class_and_rule(groups.covered, n_classes),
        decided,
        sole[:-1],
        np.zeros((n_clauses, n_classes), dtype=np.int64) if met is None else met,
        groups.by_class_and_rule(lifted, n_classes),
        groups.by_class_and_rule(lifted & (n_taking == 1), n_classes),
        groups.by_class_and_rule(n_taking > 0, n_classes),
    )


def count(
    rules: RuleSet,
    values: Values,
    codes: NDArray[np.int32],
    weights: NDArray[np.int64] | None = None,
    matches: Matches | None = None,
) -> Counted:
    """The rules on rows with these classes; those without one (−1) are left out. Weights say how
    many rows each of them stands for, and `matches` what covers what, where that is known."""
    known = np.flatnonzero(codes >= 0)
    matches = rules.matches(values) if matches is None else matches
    times = None if weights is None else weights[known]
    n_clauses = sum(len(rule.clauses) for rule in rules)
    met = np.zeros((n_clauses, _classes_among(rules, codes)), dtype=np.int64)
    clauses = (clause for rule in rules for clause in rule.clauses)
    for row, clause in zip(met, clauses, strict=True):
        here = known[clause.covers(values[clause.feature])[known]]
        if weights is None:
            row += np.bincount(codes[here], minlength=len(row))
        else:
            np.add.at(row, codes[here], weights[here])
    return counted_of(rules, groups_of_matches(matches.take(known), codes[known], times), met)


def _classes_among(rules: RuleSet, codes: NDArray[np.int32]) -> int:
    """How many classes are counted: those of the rules, and one that came later, which no rule
    can give."""
    return max(len(rules.classes), int(codes.max(initial=-1)) + 1)


def groups_of_disjoint(rules: RuleSet) -> Groups:
    """The rows by what covers them, from the rules' own counts, where no two rules cover a row."""
    counts = [[round(n) for _, n in rule.counts] for rule in rules]
    totals = np.array([round(n) for n in rules.totals], dtype=np.int64)
    return groups_apart(np.array(counts, dtype=np.int64).reshape(-1, len(totals)), totals)
