"""Which rules cover which rows, all at once: the same as one clause and one row after the other."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from export_cases import LABELS, LOTS, Case, cases
from stair.rules import match
from stair.rules.clauses import Interval
from stair.rules.match import Repeated, all_matches, first_covering, first_match
from stair.rules.rule_set import Rule

# No hour is that late: with many of it in front, the first rule of a row is not in the first word.
NEVER = Rule((Interval("hour of", low=99.0),), LABELS[0])


def slowly(case: Case, rules: list[Any]) -> NDArray[np.bool_]:
    """A (rows × rules) matrix, clause by clause."""
    values = case.values
    covered = np.ones((values.n_rows, len(rules)), dtype=np.bool_)
    for number, rule in enumerate(rules):
        for clause in rule.clauses:
            covered[:, number] &= clause.covers(values[clause.feature])
    return covered


def _repeated(case: Case, name: str) -> Repeated:
    """Each row's value by its place, in a column that has all of them backwards."""
    values = case.values[name]
    return Repeated(values[::-1], np.arange(len(values))[::-1])


@LOTS
@given(
    case=cases(local=False), times=st.sampled_from([1, 1, 13, 64, 90]), is_repeated=st.booleans()
)
def test_all_at_once_is_one_after_the_other(case: Case, times: int, is_repeated: bool) -> None:
    """With clauses of every kind, more rules than a word has bits, blocks of a few rows, and
    columns that are given by the places of their values."""
    rules = [NEVER] * (times - 1) + list(case.rules.rules) * times
    column = partial(_repeated, case) if is_repeated else case.values.__getitem__
    n_rows = case.values.n_rows
    expected = slowly(case, rules)
    first = [next((k for k, each in enumerate(row) if each), -1) for row in expected]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match, "BLOCK", 5)
        np.testing.assert_array_equal(all_matches(rules, column, n_rows), expected)
        assert first_match(rules, column, n_rows).tolist() == first
    assert first_covering(expected).tolist() == first
