"""The last pass over all rows: every figure that is said of distilled rules in the end.

It counts the rules that are chosen, what one more would add, and rules that were learned from
folds of a sample, each on the rows that it was not learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.data.weights import Unit
from stair.errors import StairError
from stair.learn.distill import Further
from stair.learn.frontier import frontier_of
from stair.learn.kinds import Kind, join_kinds
from stair.learn.method import most_further
from stair.learn.validation import Check, check_of
from stair.rules.counted import by_weight, counted_of, rest_by_weight, weighed_of
from stair.rules.groups import Groups
from stair.rules.objective import f1
from stair.rules.rule_set import Label, Rule, RuleSet
from stair.rules.schema import Schema
from stair.scale.census import Census, worded
from stair.scale.coding import Coder
from stair.scale.draw import ONE_FOLD, Folds
from stair.scale.rules import Learned
from stair.verdict.labels import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class About:
    """What rules are about: the fields of a table, and its classes."""

    schema: Schema
    coder: Coder
    verdict: Verdict
    default: int  # the class of a row that no rule covers

    @property
    def unit(self) -> Unit | None:
        """Of the weights of rows, where these have some."""
        return None if self.coder.scale is None else self.coder.scale.unit

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.verdict.classes

    @property
    def wanted(self) -> dict[int, str]:
        """The classes of outliers, and what to call them."""
        if self.verdict.negative is not None:
            return {k: str(c) for k, c in enumerate(self.classes) if k != self.verdict.negative}
        positive = self.verdict.positive
        return {} if positive is None else {positive: "the outliers"}

    def place(self, rule: Rule) -> int:
        """The class of a rule."""
        return self.classes.index(rule.label)

    def order(self, totals: NDArray[np.int64]) -> dict[Label, int]:
        """The rarer a class, the more a rule of its own says: its rules come first."""
        order = sorted(range(len(totals)), key=lambda k: (k == self.default, totals[k], k))
        return {self.classes[k]: place for place, k in enumerate(order)}


class Chosen(NamedTuple):
    """Rules that are chosen: of one kind of outlier, or of all classes."""

    rules: tuple[Rule, ...]
    kind: int | None = None
    one_more: Rule | None = None
    seen: tuple[tuple[int, int], ...] = ()  # of each rule, the rows and hits that are known of it

    def worded(self, fractions: Collection[str]) -> Chosen:
        """The same, where columns that are whole in a sample have fractions elsewhere."""
        more = None if self.one_more is None else worded(self.one_more, fractions)
        rules = tuple(worded(rule, fractions) for rule in self.rules)
        return self._replace(rules=rules, one_more=more)


class Aside(NamedTuple):
    """Rules learned from a sample without one fold, for each fold; or why there are none."""

    folds: Folds = ONE_FOLD
    rules: tuple[RuleSet, ...] = ()
    why_not: str = ""


def figures_of(
    found: Sequence[Chosen],
    aside: Aside,
    about: About,
    gather: Callable[[Census], Census],
    floor: float,
) -> Learned:
    """All that is said of the rules that are chosen, from one pass over all rows."""
    shown = [Rule(rule.clauses, rule.label) for each in found for rule in each.rules]
    more = [each.one_more for each in found if each.one_more is not None]
    kept_aside = [rule for rules in aside.rules for rule in rules]
    n_classes = len(about.classes)
    census = gather(
        Census(
            (*shown, *more, *kept_aside), about.schema, about.coder, n_classes, about.default,
            sample=None, n_shown=len(shown), folds=aside.folds,
        )
    )  # fmt: skip
    groups, heavy = census.table(), census.table(by_weight=True)
    again = [rows_and_hits(heavy, k, about.place(rule)) for k, rule in enumerate(shown)]
    if again != [each for chosen in found for each in chosen.seen]:
        raise StairError("two passes over the data disagree; was it changed meanwhile? Run again")
    rules, kinds = _in_one_set(found, shown, heavy, about, floor)
    number = {(rule.clauses, rule.label): k for k, rule in enumerate(shown)}
    numbers = [number[rule.clauses, rule.label] for rule in rules]
    own, own_heavy = groups.with_rules(numbers), heavy.with_rules(numbers)
    starts = np.cumsum([0, *(len(rule.clauses) for rule in shown)])
    by_clause = [census.by_clause[starts[k] : starts[k + 1]] for k in numbers]
    counted = counted_of(rules, own, np.concatenate([*by_clause, census.by_clause[:0]]))
    further = most_further(_further(found, len(shown), heavy, about))
    evidence, rest, weighed = counted.evidence(decided=bool(kinds)), counted.rest, None
    score = min((kind.score for kind in kinds), default=0.0) if kinds else counted.score
    if about.unit is not None:  # the rules have the counts of rows, and weights stand beside them
        weights = counted_of(rules, own_heavy)
        rules = counted.recounted
        counted = replace(counted, rules=rules)
        evidence = by_weight(counted.evidence(), weights)
        rest, score = rest_by_weight(rest, weights), weights.score
        weighed = weighed_of(about.unit, weights, counted.score)
        if further is not None:
            further = replace(further, outliers=about.unit.true(further.outliers))
    check: Check | str = aside.why_not
    if aside.rules:
        of_kinds = [about.classes.index(kind.label) for kind in kinds]
        check = _check(aside, len(shown) + len(more), numbers, of_kinds, census, about)
    return Learned(
        # Which rule is the first matters where there are several kinds.
        rules, (), score, evidence, (),
        missed=counted.unexplained if about.wanted else 0,
        rest=rest,
        weighed=weighed,
        check=check,
        kinds=kinds,
        further=further,
        frontier=frontier_of(rules, own_heavy, about.wanted, further),
        counted=counted,
    )  # fmt: skip


def rows_and_hits(groups: Groups, number: int, place: int) -> tuple[int, int]:
    """The rows that a rule covers, and those of its own class."""
    covered = groups.covered[:, number]
    is_own = covered & (groups.classes == place)
    return int(groups.counts[covered].sum()), int(groups.counts[is_own].sum())


def _in_one_set(
    found: Sequence[Chosen], shown: Sequence[Rule], groups: Groups, about: About, floor: float
) -> tuple[RuleSet, tuple[Kind, ...]]:
    """The rules in their order, with their counts; and how each kind of outlier does."""
    classes, positive = about.classes, about.verdict.positive
    totals = tuple(map(float, groups.totals(len(classes)).tolist()))
    outlier = None if positive is None else classes[positive]
    whole = RuleSet(tuple(shown), classes, about.schema, classes[about.default], totals, outlier)
    if about.verdict.negative is not None:
        by_kind = {each.kind: each.rules for each in found if each.kind is not None}
        return join_kinds(by_kind, groups.with_rules(range(len(shown))), whole, floor)
    counted = []
    for k, rule in enumerate(shown):
        counts = map(float, groups.of_rule(k, len(classes)).tolist())
        counted.append(replace(rule, counts=tuple(zip(classes, counts, strict=True))))
    order = about.order(groups.totals(len(classes)))
    counted.sort(key=lambda rule: (order[rule.label], -rule.hits, str(rule)))
    return replace(whole, rules=tuple(counted)), ()


def _further(
    found: Sequence[Chosen], n_shown: int, groups: Groups, about: About
) -> Iterator[Further]:
    """What one more rule would add to those that are chosen, for each kind of outlier."""
    start, at = 0, n_shown
    for each in found:
        own = range(start, start + len(each.rules))
        start += len(each.rules)
        rule = each.one_more
        if rule is None:
            continue
        place, before = about.place(rule), groups.covered[:, own].any(axis=1)
        names = about.classes if each.kind is None else (about.classes[about.default], rule.label)
        rows, hits = rows_and_hits(groups, at, place)
        after = before | groups.covered[:, at]
        at += 1
        counts = groups.of_rule(at - 1, len(about.classes)).tolist()
        if each.kind is not None:
            counts = [rows - hits, hits]
        is_own = groups.classes == place
        n_own = int(groups.counts[is_own].sum())
        told = [int(groups.counts[which].sum()) for which in (before, after)]
        right = [int(groups.counts[which & is_own].sum()) for which in (before, after)]
        scores = [f1(*pair, n_own) for pair in zip(right, told, strict=True)]
        if scores[1] > scores[0] and right[1] > right[0]:
            counted = tuple(zip(names, map(float, counts), strict=True))
            yield Further(replace(rule, counts=counted), float(right[1] - right[0]), scores[1])


def _check(
    aside: Aside,
    start: int,
    numbers: Sequence[int],
    kinds: Sequence[int],
    census: Census,
    about: About,
) -> Check:
    """What rules learned without a fold say of its rows. Their rules stand from `start` on among
    those that were counted; the rules that are shown have the `numbers`."""
    fold, groups = census.by_fold(by_weight=True)
    predicted = np.empty(len(fold), dtype=np.intp)
    for k, rules in enumerate(aside.rules):
        own = groups.with_rules(range(start, start + len(rules)))
        start += len(rules)
        default = about.classes.index(rules.default)
        predicted[fold == k] = own.given(list(map(about.place, rules)), default)[fold == k]
    places = [about.place(census.rules[k]) for k in numbers]
    right = [
        groups.covered[:, k] & (groups.classes == place)
        for k, place in zip(numbers, places, strict=True)
    ]
    return check_of(
        predicted,
        [np.flatnonzero(fold == k) for k in range(aside.folds.number)],
        groups.classes,
        groups.with_rules(numbers).given(places, about.default),
        about.verdict.positive,
        right,
        places,
        kinds,
        groups.counts,
    )
