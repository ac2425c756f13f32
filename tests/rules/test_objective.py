"""The paper's equations, each against its definition written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from stair.rules import objective

COUNTS = st.lists(st.integers(0, 1000), min_size=2, max_size=5).filter(any)


@given(COUNTS)
def test_purity_lies_between_zero_and_the_rows(counts: list[int]) -> None:
    """n·E is 0 for an even mixture and n for a pure rule, with any number of classes."""
    value = objective.purity(counts)
    assert -1e-9 <= value <= sum(counts) + 1e-9
    if max(counts) == sum(counts):
        assert value == sum(counts)


def test_purity_of_a_rule_that_a_person_can_check() -> None:
    """A quarter outliers: entropy 0.811 bits, so 8 rows have a purity of 1.51."""
    assert objective.entropy([6, 2]) == pytest.approx(0.8112781)
    assert objective.purity([6, 2]) == pytest.approx(8 * (1 - 0.8112781))


@given(COUNTS)
def test_negentropy_is_minus_n_times_entropy(counts: list[int]) -> None:
    """The table of k·log2(k) and the direct way agree with the definition."""
    array = np.array(counts)
    expected = -sum(counts) * objective.entropy(counts)
    for table in (objective.log_table(sum(counts)), None):
        assert float(objective.negentropy(array, table)) == pytest.approx(expected, abs=1e-8)


@given(st.floats(1, 1e6), st.integers(0, 500), st.integers(1, 20), st.floats(1e-3, 1e4))
def test_the_boundary_stabilizer_leaves_the_objective_as_it_is(
    purity: float, length: int, length_added: int, gained: float
) -> None:
    """M_b = A0·ΔL/ΔE − B0: at M_b the split changes nothing, above it S rises, below it falls."""
    price = objective.price(length_added, gained)
    at = objective.boundary_stabilizer(purity, length, price)

    def rise(stabilizer: float) -> float:
        before = purity / (length + stabilizer)
        return (purity + gained) / (length + length_added + stabilizer) - before

    scale = purity / (length + at) if length + at else 1.0
    assert math.isclose(rise(at), 0.0, abs_tol=1e-9 * abs(scale))
    room = 0.5 * (length + at)  # stay above −B0, where S is not defined
    assert rise(at + room) > 0
    assert rise(at - room) < 0


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_f1_is_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    truth, predicted = map(list, zip(*pairs, strict=True))
    hits = sum(t and p for t, p in pairs)
    ours = objective.f1(hits, sum(predicted), sum(truth))
    assert ours == pytest.approx(f1_score(truth, predicted, zero_division=0.0))


def test_a_perfect_score_reaches_every_floor() -> None:
    """The floor must be exceeded, but nothing exceeds 1."""
    assert objective.reaches(0.81, 0.8)
    assert not objective.reaches(0.8, 0.8)
    assert objective.reaches(1.0, 1.0)


@pytest.mark.parametrize(
    ("length", "is_new", "expected"),
    [(0, True, 2), (1, False, 1), (1, True, 3), (4, False, 4), (4, True, 6)],
)
def test_extra_length(length: int, is_new: bool, expected: int) -> None:
    """ΔL = L(r) on an attribute that the rule has, L(r) + 2 on a new one."""
    assert objective.extra_length(length, is_new) == expected
