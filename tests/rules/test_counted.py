"""Counts of rules: beside a slow twin that looks at every row, and as parts that add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from export_cases import Case, cases
from stair.report.coverage import coverage_of
from stair.rules.counted import Counted, count, counted_of, groups_of_disjoint
from stair.rules.groups import groups_of
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Values
from strategies import examples

SOME = settings(max_examples=examples(60), deadline=None)


class Drawn:
    """Rules of some classes over all kinds of columns; rows with classes and weights."""

    def __init__(self, case: Case, data: st.DataObject) -> None:
        n_classes = data.draw(st.integers(2, 4))
        classes = tuple(f"c{k}" for k in range(n_classes))
        one_of = st.sampled_from(classes)
        rules = tuple(Rule(rule.clauses, data.draw(one_of)) for rule in case.rules)
        is_about_one = data.draw(st.booleans())
        self.rules = RuleSet(
            rules, classes, case.rules.schema, data.draw(one_of), (0.0,) * n_classes,
            data.draw(one_of) if is_about_one else None, case.rules.routing,
        )  # fmt: skip
        self.values: Values = self.rules.read(case.table)
        n = self.values.n_rows
        codes = data.draw(st.lists(st.integers(-1, n_classes - 1), min_size=n, max_size=n))
        self.codes = np.array(codes, dtype=np.int32)
        weights = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
        self.weights = np.array(weights, dtype=np.int64) if data.draw(st.booleans()) else None

    def part(self, rows: Any) -> Counted:
        weights = None if self.weights is None else self.weights[rows]
        return count(self.rules, self.values.take(rows), self.codes[rows], weights)

    def times(self, row: int) -> int:
        return 1 if self.weights is None else int(self.weights[row])


def _is_covered(drawn: Drawn, rule: int, row: int) -> bool:
    one = drawn.values.take(np.array([row]))
    if drawn.rules.route(one)[0] != drawn.rules.partition_of[rule]:
        return False
    return all(bool(c.covers(one[c.feature])[0]) for c in drawn.rules[rule].clauses)


def _twin(drawn: Drawn) -> dict[str, list[list[int]]]:
    """Row by row, rule by rule."""
    rules = drawn.rules
    n, k = len(rules), len(rules.classes)
    clauses = [clause for rule in rules for clause in rule.clauses]
    found = {
        name: [[0] * k for _ in range(size)]
        for name, size in (("covered", n), ("decided", n + 1), ("sole", n), ("met", len(clauses)))
    }
    for row, code in enumerate(drawn.codes.tolist()):
        if code < 0:
            continue
        times = drawn.times(row)
        covering = [rule for rule in range(n) if _is_covered(drawn, rule, row)]
        for rule in covering:
            found["covered"][rule][code] += times
        found["decided"][covering[0] if covering else n][code] += times
        if len(covering) == 1:
            found["sole"][covering[0]][code] += times
        one = drawn.values.take(np.array([row]))
        for number, clause in enumerate(clauses):
            found["met"][number][code] += times * bool(clause.covers(one[clause.feature])[0])
    return found


@SOME
@given(cases(), st.data())
def test_counts_are_those_of_every_row_by_itself(case: Case, data: st.DataObject) -> None:
    """All kinds of columns, rules that overlap, partitions, several classes, weights, rows without
    a class."""
    drawn = Drawn(case, data)
    counted = drawn.part(np.arange(drawn.values.n_rows))
    for name, expected in _twin(drawn).items():
        assert getattr(counted, name).tolist() == expected, name


@SOME
@given(cases(), st.data())
def test_counts_of_parts_add_up(case: Case, data: st.DataObject) -> None:
    """However the rows are divided, a part without any row included."""
    drawn = Drawn(case, data)
    n = drawn.values.n_rows
    is_first = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=np.bool_)
    parts = drawn.part(np.flatnonzero(is_first)) + drawn.part(np.flatnonzero(~is_first))
    whole = drawn.part(np.arange(n))
    for name in ("covered", "decided", "sole", "met", "totals", "predicted"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist(), name
    assert repr(parts.evidence()) == repr(whole.evidence())
    assert (parts.rest, parts.score, parts.unexplained) == (
        whole.rest, whole.score, whole.unexplained,
    )  # fmt: skip


@SOME
@given(cases(), st.data())
def test_figures_are_those_of_the_labels_given(case: Case, data: st.DataObject) -> None:
    """Score, rest, what is not explained and the figures of each class, from `predict` alone."""
    drawn = Drawn(case, data)
    rules = drawn.rules
    counted = drawn.part(np.arange(drawn.values.n_rows))
    rows = [
        (rules.classes[code], label, number, drawn.times(row))
        for row, (code, label, number) in enumerate(
            zip(
                drawn.codes.tolist(), rules.predict(drawn.values).tolist(),
                rules.assign(drawn.values).tolist(), strict=True,
            )
        )
        if code >= 0
    ]  # fmt: skip
    n_rows = sum(times for *_, times in rows)
    right = sum(times for actual, label, _, times in rows if actual == label)
    assert counted.n_rows == n_rows
    assert math.isnan(counted.accuracy) if not n_rows else counted.accuracy == right / n_rows
    assert counted.rest.rows == sum(times for *_, number, times in rows if number < 0)
    for place, name in enumerate(rules.classes):
        found = counted.of_class(place)
        assert found.rows == sum(times for _, label, _, times in rows if label == name)
        assert found.total == sum(times for actual, _, _, times in rows if actual == name)
        assert found.hits == sum(t for actual, label, _, t in rows if actual == label == name)
    if rules.positive is not None:
        assert counted.score == counted.of_class(rules.classes.index(rules.positive)).f1
        assert list(counted.of_labels) == [rules.positive]
        assert counted.unexplained == sum(
            times for actual, label, _, times in rows if actual == rules.positive != label
        )
    else:
        assert counted.score == (right / n_rows if n_rows else 0.0)
        assert rules.default not in counted.of_labels
        assert counted.unexplained == sum(
            t for actual, label, _, t in rows if actual != label == rules.default
        )


@SOME
@given(cases(), st.data())
def test_evidence_is_counted_from_the_rows(case: Case, data: st.DataObject) -> None:
    """Rows and hits of what a rule covers, or of what it decides; and the rules with new counts."""
    drawn = Drawn(case, data)
    counted, twin = drawn.part(np.arange(drawn.values.n_rows)), _twin(drawn)
    for is_decided, name in ((False, "covered"), (True, "decided")):
        for k, each in enumerate(counted.evidence(decided=is_decided)):
            own = drawn.rules.classes.index(each.rule.label)
            assert (each.rows, each.hits) == (sum(twin[name][k]), twin[name][k][own])
            assert each.alone == twin["sole"][k][own]
            assert len(each.clauses) == len(each.rule.clauses)
    again = counted.recounted
    assert [[int(n) for _, n in rule.counts] for rule in again] == twin["covered"]
    assert again.totals == tuple(map(float, np.sum(twin["decided"], axis=0)))


@SOME
@given(cases(local=False), st.data())
def test_rules_that_do_not_overlap_need_their_counts_alone(case: Case, data: st.DataObject) -> None:
    """What an engine for large data has of disjoint rules is as much as the rows say."""
    drawn = Drawn(case, data)
    covered = drawn.rules.covers(drawn.values)
    known = drawn.codes >= 0
    apart = covered & (np.cumsum(covered, axis=1) == 1)  # as if each row had its first rule alone
    groups = groups_of(apart[known], drawn.codes[known])
    rows = counted_of(drawn.rules, groups)
    counts = counted_of(rows.recounted, groups_of_disjoint(rows.recounted))
    for name in ("covered", "decided", "sole", "predicted"):
        assert getattr(counts, name).tolist() == getattr(rows, name).tolist(), name
    assert coverage_of(drawn.rules, groups).overlap is None
