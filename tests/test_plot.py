"""Pictures with matplotlib: each comes from one call, and is saved where a path is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stair import StairError, Summary, summarize
from stair.demo import payments

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def demo() -> Summary:
    return summarize(payments(), labels="flagged", min_score=0.9, max_rule_length=3, method="stair")


def test_coverage_has_a_bar_for_each_outlier_rule(demo: Summary, tmp_path: Path) -> None:
    """The bars are the rows of the rules, the longest first."""
    figure = demo.plot_coverage(tmp_path / "coverage.png")
    assert (tmp_path / "coverage.png").read_bytes().startswith(b"\x89PNG")
    right, wrong = figure.axes[0].containers
    assert [bar.get_width() for bar in right] == [e.hits for e in demo.evidence[:4]]
    assert [bar.get_width() for bar in wrong] == [e.rows - e.hits for e in demo.evidence[:4]]


def test_every_clause_of_every_kind_can_be_drawn(demo: Summary, tmp_path: Path) -> None:
    """Shares of outliers add up to one above the line, and those of inliers below."""
    for rule in demo.rules.outlier_rules:
        for place in range(1, len(rule.clauses) + 1):
            figure = demo.plot_clause(rule, place)
            heights = [bar.get_height() for bar in figure.axes[0].patches]
            assert sum(h for h in heights if h > 0) == pytest.approx(1.0)
            assert sum(h for h in heights if h < 0) == pytest.approx(-1.0)
    demo.plot_clause(1, 2, tmp_path / "clause.svg")
    assert b"<svg" in (tmp_path / "clause.svg").read_bytes()


def test_names_are_no_mathematics(tmp_path: Path) -> None:
    """A "$" in a name began a formula, which matplotlib could not read; now it is a dollar."""
    rng = np.random.default_rng(0)
    table = {"price in $ per \\frac{": rng.normal(size=80), "two $x$": rng.normal(size=80)}
    labels = (table["price in $ per \\frac{"] > 1).astype(int)
    summary = summarize(table, labels=labels, name="$\\broken", method="stair")
    summary.plot_clause(1, 1, tmp_path / "a.png")
    summary.plot_coverage(tmp_path / "b.png")
    summary.plot_frontier(tmp_path / "c.png")


def test_the_frontier_is_of_the_trace_or_of_given_points(demo: Summary) -> None:
    figure = demo.plot_frontier()
    x, y = figure.axes[0].lines[0].get_data()
    assert list(x) == sorted(step.total_length for step in demo.trace)
    assert y[-1] == demo.score
    given = demo.plot_frontier(points=[(30, 0.97), (5, 0.5)])
    assert list(given.axes[0].lines[0].get_xdata()) == [5, 30]
    assert given.axes[0].lines[-1].get_data()[0] == [demo.rules.total_length]


def test_what_cannot_be_drawn_is_said_in_a_sentence(demo: Summary, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(60, 2))
    trees = summarize(X, labels=(X[:, 0] > 1).astype(int), method="cart")
    with pytest.raises(StairError, match="leaves no trace; give points"):
        trees.plot_frontier()
    with pytest.raises(StairError, match="points is empty"):
        demo.plot_frontier(points=[])
    with pytest.raises(StairError, match="there are rules 1 to 9, but not 99"):
        demo.plot_clause(99)
    with pytest.raises(StairError, match="the rule has clauses 1 to 2, but not 5"):
        demo.plot_clause(1, 5)
    with pytest.raises(StairError, match="cannot write the picture"):
        demo.plot_coverage(tmp_path / "nowhere" / "x.png")
