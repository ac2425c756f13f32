"""The shortest rules beside rules that are there already."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stair.learn.distill import distill
from stair.rules.columns import Numbers
from stair.rules.objective import f1
from stair.rules.schema import Schema
from strategies import examples

NAMES = ("x0", "x1", "x2")


def _added(X: np.ndarray, y: np.ndarray, decided: np.ndarray, floor: float):  # type: ignore[no-untyped-def,type-arg]
    return distill(
        [Numbers(name, k) for k, name in enumerate(NAMES)], X, y, X, classes=(0, 1),
        schema=Schema.of_numbers(NAMES), positive=1, min_score=floor, min_outliers=1,
        decided=decided, effort="fast",
    )  # fmt: skip


def _f1(called: np.ndarray, y: np.ndarray) -> float:  # type: ignore[type-arg]
    return f1(int((called & (y == 1)).sum()), int(called.sum()), int((y == 1).sum()))


def _shortest(X: np.ndarray, y: np.ndarray, decided: np.ndarray, floor: float, most: int) -> int:  # type: ignore[type-arg]
    """By trying all sets of boxes of the values that are there; `most` + 1 where none is enough."""
    boxes: list[tuple[int, np.ndarray]] = []  # type: ignore[type-arg]
    sides = [[(None, None)] + [(a, b) for a in np.unique(x) for b in np.unique(x) if a <= b]
             for x in X.T]  # fmt: skip
    for first in sides[0]:
        for second in sides[1]:
            for third in sides[2]:
                chosen = [(k, s) for k, s in enumerate((first, second, third)) if s[0] is not None]
                if chosen:
                    inside = np.logical_and.reduce(
                        [(X[:, k] >= low) & (X[:, k] <= high) for k, (low, high) in chosen]
                    )
                    boxes.append((len(chosen), inside))
    distinct = {inside.tobytes(): (length, inside) for length, inside in
                sorted(boxes, key=lambda box: -box[0])}  # fmt: skip
    is_open = decided < 0

    def is_enough(covers: tuple[np.ndarray, ...]) -> bool:  # type: ignore[type-arg]
        covered = np.logical_or.reduce(covers) if covers else np.zeros(len(y), dtype=bool)
        return _f1(np.where(is_open, covered, decided == 1), y) > floor

    if is_enough(()):
        return 0
    lengths = list(distinct.values())
    for total in range(1, most + 1):
        for n in range(1, total + 1):
            for some in combinations(lengths, n):
                if sum(length for length, _ in some) == total and is_enough(
                    tuple(inside for _, inside in some)
                ):
                    return total
    return most + 1


@settings(deadline=None, max_examples=examples(30))
@given(st.data())
def test_no_shorter_addition_exists_where_the_certificate_says_so(data: st.DataObject) -> None:
    """Beside all sets of boxes, on tables small enough for that. Decided rows count for the floor
    with what other rules say of them, and are worth nothing to the search."""
    n = data.draw(st.integers(4, 14))
    values = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    X = np.array([data.draw(values) for _ in NAMES], dtype=np.float64).T
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)), dtype=np.int32)
    y[:2] = 0, 1
    decided = np.array(
        data.draw(st.lists(st.sampled_from([-1, -1, 0, 1]), min_size=n, max_size=n)), dtype=np.int32
    )
    floor = data.draw(st.sampled_from([0.5, 0.7, 0.9]))
    found = _added(X, y, decided, floor)
    covered = found.rules.covers(X).any(axis=1)
    called = np.where(decided < 0, covered, decided == 1)
    assert found.score == pytest.approx(_f1(called, y))
    if found.score <= floor:
        return
    shortest = _shortest(X, y, decided, floor, min(found.rules.total_length, 2))
    assert found.bound <= shortest or shortest > 2
    if found.bound == found.rules.total_length <= 2:
        assert shortest == found.rules.total_length


def test_what_is_decided_costs_nothing_and_is_worth_nothing() -> None:
    """Where the rows that other rules cover would need a rule of their own, none is learned."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 3))
    first, second = X[:, 0] > 0.9, X[:, 1] > 0.9
    y = (first | second).astype(np.int32)
    decided = np.where(first, 1, -1).astype(np.int32)
    found = _added(X, y, decided, 0.9)
    assert [rule.features for rule in found.rules] == [("x1",)]
    assert found.score > 0.9
    enough = _added(X, y, y.copy() * 2 - 1, 0.9)  # all outliers are covered already
    assert (len(enough.rules), enough.score) == (0, 1.0)
    nothing = _added(X, y, np.full(400, -1, dtype=np.int32), 0.9)
    plain = distill(
        [Numbers(name, k) for k, name in enumerate(NAMES)], X, y, X, classes=(0, 1),
        schema=Schema.of_numbers(NAMES), positive=1, min_score=0.9, min_outliers=1, effort="fast",
    )  # fmt: skip
    assert nothing.rules == plain.rules
