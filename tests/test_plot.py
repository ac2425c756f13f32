"""Pictures with matplotlib: each comes from one call, and is saved where a path is given."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from stair import AllBut, Interval, Rule, Source, Stair, StairError, Summary, summarize
from stair.demo import payments

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def demo() -> Summary:
    return summarize(payments(), labels="flagged", min_score=0.9, method=Stair(max_rule_length=3))


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
    summary = summarize(Source(table, name="$\\broken"), labels=labels, method="stair")
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


@pytest.mark.parametrize("method", ["distilled", "stair", "refined", "local", "id3", "cart"])
@pytest.mark.parametrize("classes", ["two", "kinds", "three"])
def test_every_method_has_a_frontier(method: str, classes: str) -> None:
    """It refused where learning leaves no trace. The rules themselves are on the line, and what one
    more rule would give is dashed beyond them."""
    X = np.random.default_rng(1).normal(size=(600, 3))
    y = np.select([X[:, 0] > 1.2, X[:, 1] > 1.7], ["a", "b"], "none")
    if classes == "three":
        y = np.where((y == "none") & (X[:, 2] > 0.2), "other", y)
    labels = (y == "a") if classes == "two" else y
    more = {"positive": AllBut("none")} if classes == "kinds" and method == "distilled" else {}
    summary = summarize(X, labels=labels, method=method, **more)
    axes = summary.plot_frontier().axes[0]
    x, scores = axes.lines[0].get_data()
    assert list(x) == sorted(x)
    (dot,) = [line for line in axes.lines if line.get_marker() == "o"]
    if not summary.trace:
        assert (x[-1], scores[-1]) == (dot.get_xdata()[0], dot.get_ydata()[0])
        assert x[-1] == sum(rule.length for rule in summary.rules.outlier_rules)
        if not summary.kinds:
            assert scores[-1] == pytest.approx(summary.score)


def test_a_notebook_shows_the_picture(demo: Summary) -> None:
    """A figure without pyplot was a line of text in a notebook."""
    assert demo.plot_frontier()._repr_png_().startswith(b"\x89PNG")


BOUNDS = [(39200, 47600), (1, 400), (0, 9_000_000), (4_000_000, math.inf)]


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("gone", [0, 40])
def test_words_of_a_picture_do_not_touch(bounds: tuple[float, float], gone: int) -> None:
    """As matplotlib itself measures them, with its own font."""
    x = np.floor(np.random.default_rng(0).lognormal(11, 2, 2000))
    is_out = (x > bounds[0]) & (x <= bounds[1])
    x[:gone] = np.nan
    summary = summarize({"x": x}, labels=is_out.astype(int), method="stair", validate=0)
    clause = Interval("x", *map(float, bounds))
    rule = Rule((clause,), summary.rules.positive)
    drawn = replace(summary, rules=replace(summary.rules, rules=(rule,)))
    figure = drawn.plot_clause(1, 1)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    words = [*figure.axes[0].texts, figure.axes[0].title]
    boxes = [word.get_window_extent(renderer) for word in words if word.get_text()]
    assert len(boxes) >= 3
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert box.x0 >= 0 and box.x1 <= figure.bbox.width


def test_what_cannot_be_drawn_is_said_in_a_sentence(demo: Summary, tmp_path: Path) -> None:
    with pytest.raises(StairError, match="points is empty"):
        demo.plot_frontier(points=[])
    with pytest.raises(StairError, match="there are rules 1 to 9, but not 99"):
        demo.plot_clause(99)
    with pytest.raises(StairError, match="the rule has clauses 1 to 2, but not 5"):
        demo.plot_clause(1, 5)
    with pytest.raises(StairError, match="cannot write the picture"):
        demo.plot_coverage(tmp_path / "nowhere" / "x.png")
