"""What one more rule would add, and what length buys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from stair.rules.objective import f1
from strategies import examples


def two_kinds(seed: int, n: int = 20_000) -> tuple[dict[str, Any], Any]:
    """One planted kind has 91% of the outliers, the other 9%."""
    random = np.random.default_rng(seed)
    table = {f"x{k}": random.normal(size=n) for k in range(4)}
    large = np.flatnonzero(table["x0"] > 1.8)[: n // 40]
    small = np.flatnonzero((table["x2"] < -1.6) & (table["x3"] > 1.2))[: n // 400]
    outlier = np.zeros(n, dtype=bool)
    table["x0"][np.flatnonzero(table["x0"] > 1.8)[n // 40 :]] = 0.0
    hidden = np.flatnonzero((table["x2"] < -1.6) & (table["x3"] > 1.2))[n // 400 :]
    table["x2"][hidden] = 0.0
    outlier[large] = outlier[small] = True
    return table, outlier


def test_the_second_planted_kind_is_named_as_the_next_rule() -> None:
    """A floor of 0.8 is reached by one rule; the other tenth was left to "not explained"."""
    data, outlier = two_kinds(0)
    summary = stair.summarize(data, labels=outlier)
    assert [rule.features for rule in summary.rules] == [("x0",)]
    more = summary.further
    assert more is not None
    assert set(more.rule.features) == {"x2", "x3"}
    covered = summary.rules.covers(data)[:, 0]
    new = more.rule.covers(data) & ~covered
    assert more.outliers == int((new & outlier).sum())
    both = covered | more.rule.covers(data)
    assert more.score == f1(int((both & outlier).sum()), int(both.sum()), int(outlier.sum()))
    text = " ".join(str(summary).split())
    assert "One more rule, length 2, would explain 9% more: x2 ≤ -1.60" in text
    floor = float(text.split("min_score=")[1].split()[0].rstrip("."))
    again = stair.summarize(data, labels=outlier, min_score=floor)
    assert {rule.features for rule in again.rules} == {("x0",), ("x2", "x3")}


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.sampled_from([0.3, 0.6, 0.8]))
def test_one_more_rule_adds_what_it_says(seed: int, floor: float) -> None:
    """Counted by hand on any table: more outliers, a better score, never a rule that is there."""
    random = np.random.default_rng(seed)
    n = 150
    data = {
        "x": np.where(random.random(n) < 0.1, np.nan, random.normal(size=n)),
        "c": random.choice(np.array(["a", "b", None], dtype=object), n),
    }
    outlier = (np.nan_to_num(data["x"]) > 0.8) | (random.random(n) < 0.1)
    summary = stair.summarize(
        data,
        labels=outlier,
        min_score=floor,
        validate=0,
        positive=True,
        method=stair.DistilledStair(effort="fast"),
    )
    more = summary.further
    if more is None:
        return
    before = summary.rules.covers(data).any(axis=1)
    both = before | more.rule.covers(data)
    score = f1(int((both & outlier).sum()), int(both.sum()), int(outlier.sum()))
    assert more.score == score > summary.score
    assert more.outliers == int((both & ~before & outlier).sum()) > 0
    assert more.rule.clauses not in {rule.clauses for rule in summary.rules}


@pytest.mark.parametrize("method", ["distilled", "stair", "refined", "local", "id3", "cart"])
def test_the_frontier_is_there_for_every_method(method: str) -> None:
    """Each point is the score of so many of the outlier rules, counted by hand; the last but what
    one more rule would give is the score of all of them."""
    data, outlier = two_kinds(1, 4000)
    summary = stair.summarize(data, labels=outlier, method=method, validate=0)
    points = summary.frontier
    assert points[0] == (0, 0.0)
    assert [length for length, _ in points] == sorted(length for length, _ in points)
    own = [r for r in summary.rules if r.label == summary.rules.positive]
    n_more = summary.further is not None
    assert len(points) == 1 + len(own) + n_more
    length, score = points[len(own)]
    assert length == sum(rule.length for rule in own)
    covered = np.zeros(len(outlier), dtype=bool)
    for k, rule in enumerate(summary.rules):
        if rule.label == summary.rules.positive:
            covered |= summary.rules.covers(data)[:, k]
    assert score == f1(int((covered & outlier).sum()), int(covered.sum()), int(outlier.sum()))
