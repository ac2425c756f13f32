"""Cuts are the shortest decimals that divide the rows alike."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stair.data.decimals import shortest_between

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(FINITE, FINITE)
def test_the_cut_lies_in_the_gap(a: float, b: float) -> None:
    """a ≤ cut < b for every pair of numbers, however near or far: the rows divide alike."""
    assume(a != b)
    a, b = sorted((a, b))
    assert a <= shortest_between(a, b) < b


def _digits(x: float) -> int:
    return len(Decimal(repr(x)).normalize().as_tuple().digits)


@given(st.integers(-5000, 5000), st.integers(1, 5000), st.sampled_from([1, 10, 100, 1000]))
def test_no_decimal_in_the_gap_has_fewer_digits(start: int, width: int, unit: int) -> None:
    """The slow twin: all multiples of a finer unit in the gap, and none is shorter."""
    a, b = start / unit, (start + width) / unit
    found = shortest_between(a, b)
    finest = 10 * unit
    others = [k / finest for k in range(start * 10, (start + width) * 10)]
    assert _digits(found) <= min(_digits(c) for c in others if a <= c < b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (59.97, 60.000001, 60.0),
        (0.0, 1.0, 0.0),
        (3.0, 4.0, 3.0),
        (1234.0, 5678.0, 3000.0),
        (0.5, 12000.0, 6000.0),
        (-3.0, 8.0, 2.0),
        (0.00123, 0.00187, 0.002 - 0.0005),
        (-1.0, 1.0, 0.0),
        (1.0, math.nextafter(1.0, 2.0), 1.0),
        (-0.0, 5e-324, 0.0),
        (-1.7e308, 1.7e308, 0.0),
    ],
)
def test_examples_that_a_person_would_choose(a: float, b: float, expected: float) -> None:
    assert shortest_between(a, b) == pytest.approx(expected, rel=1e-12)


def test_zero_has_no_sign() -> None:
    """-0.0 would be shown as -0, which nobody writes."""
    assert math.copysign(1.0, shortest_between(-1.0, 1.0)) == 1.0


def test_an_empty_gap_is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        shortest_between(1.0, 1.0)
