"""Exceptions: rows that get the default label even where a rule with another one covers them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from export_cases import LABELS, LOTS, SOME, Case, cases
from stair import Among, Interval, Rule, RuleSet, StairError
from stair.rules.counted import count
from stair.rules.schema import Field, Schema
from strategies import examples

BOUND = st.sampled_from([-1.0, 0.0, 0.5, 2.0])


def decided(case: Case, row: int) -> tuple[Any, int, int]:
    """The label, rule and exception of one row, clause by clause: the slow way."""
    rules = case.rules
    values = case.values.take(np.array([row]))
    place = int(rules.routing.of(values.__getitem__, 1)[0])
    start, stop = rules.spans[place]

    def covers(rule: Rule) -> bool:
        return all(clause.covers(values[clause.feature])[0] for clause in rule.clauses)

    covering = [k for k in range(start, stop) if covers(rules[k])]
    taking = [k for k, each in enumerate(rules.exceptions, start=1) if covers(each)]
    left = [k for k in covering if not taking or rules[k].label == rules.default]
    is_taken = bool(taking and covering) and rules[covering[0]].label != rules.default
    label = rules[left[0]].label if left else rules.default
    return label, left[0] + 1 if left else 0, taking[0] if is_taken else 0


@LOTS
@given(cases())
def test_an_exception_takes_rows_from_rules_with_other_labels(case: Case) -> None:
    n_rows = len(case.numbers)
    found = list(zip(case.labels, case.numbers, case.exceptions, strict=True))
    assert found == [decided(case, row) for row in range(n_rows)]
    bare = case.rules.with_exceptions(())
    matches = case.rules.matches(case.values)
    assert (case.rules.covers(case.values) == bare.covers(case.values)).all()
    assert (matches.would_be == bare.assign(case.values)).all()
    excepted = matches.excepted.any(axis=1)
    without = bare.predict(case.values)
    assert case.labels == np.where(excepted, case.rules.default, without).tolist()


@SOME
@given(cases())
def test_explain_says_what_predict_does(case: Case) -> None:
    for row, (label, number, exception) in enumerate(
        zip(case.labels, case.numbers, case.exceptions, strict=True)
    ):
        why = case.rules.explain(case.values.take(np.array([row])))
        assert (why.label, why.number or 0, why.exception or 0) == (label, number, exception)
        if exception:
            assert f", but exception {exception}: " in str(why)
            assert why.nearest is None


@LOTS
@given(cases(), st.data())
def test_every_figure_is_counted_with_exceptions(case: Case, data: st.DataObject) -> None:
    rules, n_rows = case.rules, len(case.numbers)
    one = st.integers(-1, 1)
    codes = np.array(data.draw(st.lists(one, min_size=n_rows, max_size=n_rows)), dtype=np.int32)
    counted = count(rules, case.values, codes)
    known = np.flatnonzero(codes >= 0)
    labels = np.array([LABELS.index(label) for label in case.labels], dtype=np.intp)
    for place in range(2):
        assert (
            counted.predicted[place].tolist()
            == np.bincount(codes[known][labels[known] == place], minlength=2).tolist()
        )
    matches = rules.matches(case.values)
    applies, lifted = matches.applies[known], matches.lifted[known]
    default = rules.classes.index(rules.default)
    for k, each in enumerate(counted.evidence()):
        assert each.rows == applies[:, k].sum()
    own = codes[known] == default
    n_wrong = (own & (rules.with_exceptions(()).predict(case.values)[known] != rules.default)).sum()
    for k, each in enumerate(counted.of_exceptions()):
        alone = lifted[:, k] & (lifted.sum(axis=1) == 1)
        assert (each.rows, each.hits) == (lifted[:, k].sum(), (lifted[:, k] & own).sum())
        assert each.alone == (alone & own).sum()
        assert each.rows == 0 or n_wrong == 0 or each.share == each.hits / n_wrong
    again = counted.recounted
    assert [rule.rows for rule in again.exceptions] == lifted.sum(axis=0).tolist()
    half = len(known) // 2
    parts = [count(rules, case.values.take(rows), codes[rows])
             for rows in (known[:half], known[half:])]  # fmt: skip
    both = parts[0] + parts[1]
    assert (both.lifted == counted.lifted).all()
    assert (both.all_lifted == counted.all_lifted).all()
    assert both.of_exceptions() == counted.of_exceptions() or n_wrong == 0


def _rules() -> RuleSet:
    rule = Rule((Interval("amount", low=4180.0),), 1)
    schema = Schema((Field("amount", "number", "amount"), Field("country", "category", "country")))
    return RuleSet((rule,), (0, 1), schema, 0, (5.0, 3.0), 1)


def test_an_exception_reads_as_one() -> None:
    country = Among("country", ("US",))
    rules = replace(_rules(), exceptions=(Rule((country,), 0),))
    row = {"amount": 5200.0, "country": "US"}
    assert str(rules.explain(row)) == (
        "Inlier: would be an outlier by rule 1 (amount 5200 > 4180), but exception 1: country = US."
    )
    assert str(rules) == ("amount > 4180 → outlier\notherwise → inlier\nbut country = US → inlier")
    assert repr(rules) == (
        "RuleSet(1 rule, total length 1, 1 bound, 1 exception; otherwise inlier)"
    )
    assert "but not where country = US" in rules._repr_html_()
    assert "but exception 1: country = US" in rules.explain(row)._repr_html_()
    assert str(rules.explain({"amount": 5200.0, "country": "DE"})).startswith("Outlier by rule 1")


def test_what_cannot_be_an_exception_gets_one_sentence() -> None:
    rules = _rules()
    with pytest.raises(StairError, match='no column "merchant"'):
        rules.with_exceptions([[Among("merchant", ("gym",))]])
    with pytest.raises(StairError, match="gets the default label, 0"):
        replace(rules, exceptions=(Rule((Interval("amount", low=1.0),), 1),))
    with pytest.raises(StairError, match="every row is an outlier unless"):
        replace(rules, default=1, exceptions=(Rule((Interval("amount", low=1.0),), 1),))


@settings(max_examples=examples(20))
@given(cases())
def test_rules_chosen_keep_their_exceptions(case: Case) -> None:
    numbers = list(range(0, len(case.rules), 2))
    assert case.rules.with_rules(numbers).exceptions == case.rules.exceptions
