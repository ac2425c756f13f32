"""Rules as values: what they cover, how they meet and how they read."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stair import Interval, Rule, RuleSet
from strategies import examples

BOUND = st.sampled_from([-math.inf, -1.0, 0.0, 0.5, 2.0, math.inf])
INTERVAL = st.builds(Interval, st.sampled_from("ab"), BOUND, BOUND, st.booleans())
POINTS = np.array([-5.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0, 3.0, math.nan])


@st.composite
def rule(draw: st.DrawFn) -> Rule:
    clauses = draw(st.lists(INTERVAL, max_size=2, unique_by=lambda c: c.feature))
    return Rule(tuple(clauses), draw(st.integers(0, 1)))


def _set(rules: list[Rule]) -> RuleSet:
    return RuleSet(tuple(rules), (0, 1), ("a", "b"), 0, (1.0, 1.0), 1)


@given(INTERVAL, INTERVAL)
def test_two_clauses_on_one_attribute_become_one(first: Interval, second: Interval) -> None:
    """The merged clause covers exactly what both cover, missing values included."""
    both = first & Interval(first.feature, second.low, second.high, second.missing)
    assert (both.covers(POINTS) == (first.covers(POINTS) & second.covers(POINTS))).all()


@settings(max_examples=examples(300))
@given(
    st.lists(rule(), max_size=70), st.lists(st.tuples(*[st.sampled_from(POINTS)] * 2), max_size=9)
)
def test_all_rules_at_once_match_what_each_covers(
    rules: list[Rule], rows: list[tuple[float, float]]
) -> None:
    """The packed look-up against the slow way: one comparison per row and clause."""
    X = np.array(rows).reshape(-1, 2)
    rule_set = _set(rules)
    slow = np.ones((len(X), len(rules)), dtype=bool)
    for number, each in enumerate(rules):
        for clause in each.clauses:
            slow[:, number] &= clause.covers(X[:, "ab".index(clause.feature)])
    assert (rule_set.covers(X) == slow).all()
    first = [int(np.flatnonzero(row)[0]) if row.any() else -1 for row in slow]
    assert rule_set.assign(X).tolist() == first
    labels = [rules[k].label if k >= 0 else 0 for k in first]
    assert rule_set.predict(X).tolist() == labels


def test_more_rows_than_a_block_are_matched() -> None:
    """Rows are handled in blocks; the seams between them must not show."""
    X = np.random.default_rng(0).normal(size=(40_000, 2))
    rule_set = _set([Rule((Interval("a", low=1.0),), 1), Rule((Interval("b", high=0.0),), 0)])
    expected = np.where(X[:, 0] > 1.0, 0, np.where(X[:, 1] <= 0.0, 1, -1))
    assert (rule_set.assign(X) == expected).all()


def test_length_counts_attributes_not_bounds() -> None:
    """Two bounds on one attribute are one clause; a rule without clauses is still true."""
    both = Rule((Interval("a", 1.0, 2.0), Interval("b", low=3.0)), 1)
    assert both.length == len(both) == 2
    assert Rule((), 0).length == 0
    assert bool(Rule((), 0))


def test_counts_precision_and_share() -> None:
    found = Rule((Interval("a", low=1.0),), 1, ((0, 1.0), (1, 3.0)))
    rule_set = RuleSet((found,), (0, 1), ("a",), 0, (10.0, 12.0), 1)
    assert (found.rows, found.hits, found.precision) == (4.0, 3.0, 0.75)
    assert rule_set.share(found) == 0.25
    assert math.isnan(Rule((), 1).precision)


def test_rules_are_values() -> None:
    """Equal when their fields are; hashable; not to be changed."""
    a = Rule((Interval("a", low=1.0),), 1, ((0, 1.0), (1, 3.0)))
    b = Rule((Interval("a", low=1.0),), 1, ((0, 1.0), (1, 3.0)))
    assert a == b
    assert len({a, b}) == 1
    with pytest.raises(AttributeError):
        a.label = 0  # type: ignore[misc]
    with pytest.raises(ValueError, match="NaN"):
        Interval("a", math.nan)


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        (Interval("amount", low=4180.0), "amount > 4180"),
        (Interval("amount", high=0.5), "amount ≤ 0.5"),
        (Interval("amount", 1.0, 2.5), "1 < amount ≤ 2.5"),
        (Interval("amount", low=4180.0, missing=True), "amount > 4180 or missing"),
        (Interval("amount", math.inf, math.inf, True), "amount is missing"),
        (Interval("amount"), "amount is not missing"),
        (Interval("my amount", high=1e-7), '"my amount" ≤ 1e-07'),
        (Interval('a" and b', low=1.0), '"a\\" and b" > 1'),
    ],
)
def test_how_a_clause_reads(clause: Interval, words: str) -> None:
    assert str(clause) == words


def test_explain_says_which_rule_and_why() -> None:
    rule_set = RuleSet(
        (
            Rule((Interval("amount", low=4180.0), Interval("hour", 1.0, 5.0)), 1),
            Rule((Interval("amount", math.inf, math.inf, True),), 1),
        ),
        (0, 1), ("amount", "hour"), 0, (1.0, 1.0), 1,
    )  # fmt: skip
    assert str(rule_set.explain([5200, 3])) == (
        "Outlier by rule 1: amount 5200 > 4180; hour 3 in (1, 5]."
    )
    assert str(rule_set.explain({"amount": None, "hour": 9})) == (
        "Outlier by rule 2: amount is missing."
    )
    assert str(rule_set.explain({"amount": 5200, "hour": 9})) == (
        "Inlier: no rule covers it. Nearest outlier rule 1: hour 9, not in (1, 5]."
    )
    assert rule_set.explain(pd.Series({"amount": 5200, "hour": 3})).number == 1
    assert rule_set.explain(np.array([5200.0, 3.0])).label == 1


def test_tables_of_every_kind_are_read_by_name() -> None:
    """Only the columns that the rules use have to be there, in any order."""
    rule_set = RuleSet((Rule((Interval("b", low=1.0),), 1),), (0, 1), ("a", "b"), 0, (1, 1), 1)
    columns = {"b": [0.0, 2.0, math.nan]}
    for table in (columns, pd.DataFrame(columns), pl.DataFrame(columns)):
        assert rule_set.predict(table).tolist() == [0, 1, 0]
    assert rule_set.predict([[9, 0], [9, 2]]).tolist() == [0, 1]


def test_a_table_that_does_not_fit_gets_a_plain_error() -> None:
    rule_set = RuleSet((Rule((Interval("b", low=1.0),), 1),), (0, 1), ("a", "b"), 0, (1, 1), 1)
    with pytest.raises(ValueError, match='need a column "b"'):
        rule_set.predict(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="1 × 3; these rules expect rows with 2 columns"):
        rule_set.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="shape 2; these rules expect rows"):
        rule_set.predict(np.zeros(2))
    with pytest.raises(ValueError, match="no column names"):
        rule_set[0].covers(np.zeros((1, 2)))
