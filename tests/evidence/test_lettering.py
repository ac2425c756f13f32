"""Pictures that people can read: words that never touch, skewed numbers that are no sliver."""

from __future__ import annotations

import math
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stair.evidence.charts import Chart, Histogram
from stair.evidence.distribution import Distributions
from stair.evidence.lettering import Word, shortened_to, side_by_side, width_of
from stair.report import draw
from stair.rules.clauses import Interval, Period
from strategies import examples


def chart_of(array: NDArray[Any], codes: NDArray[np.int32], clause: Any) -> Chart:
    return Distributions(lambda _: array, codes, 2).chart(clause, 1)


# --- words --------------------------------------------------------------------------------------

WORDS = st.tuples(
    st.floats(-500, 900), st.text("0123456789.-eT: ", max_size=30), st.floats(0, 200)
).map(lambda word: Word(*word))


@given(st.lists(WORDS, max_size=8), st.floats(0, 700), st.floats(0, 20))
def test_words_side_by_side_neither_touch_nor_leave(
    words: list[Word], room: float, gap: float
) -> None:
    """Whatever is asked for; and the first word is there unless it is wider than the room."""
    placed = side_by_side(words, room, gap)
    for word in placed:
        assert word.left >= -1e-6
        assert word.right <= room + 1e-6
    for one, other in pairwise(placed):
        assert one.right + gap <= other.left + 1e-6
    assert all(word.text for word in placed)
    if words and words[0].text and words[0].width <= room:
        assert words[0].text in [word.text for word in placed]


def test_words_that_have_room_stay_where_they_are() -> None:
    """And two that are close to each other share the way that they have to go."""
    far = [Word(40.0, "a", 20.0), Word(200.0, "b", 20.0)]
    assert side_by_side(far, 320, 6) == tuple(far)
    left, right = side_by_side([Word(100.0, "a", 40.0), Word(110.0, "b", 40.0)], 320, 6)
    assert left.at + right.at == pytest.approx(210.0)
    assert right.left - left.right == pytest.approx(6.0)


@given(st.text(max_size=40), st.floats(0, 200))
def test_a_name_is_cut_to_its_room(name: str, room: float) -> None:
    cut = shortened_to(name, room, 7.4)
    assert cut == name or cut == "…" or width_of(cut, 7.4) <= room


# --- labels of a picture ------------------------------------------------------------------------

ANY = st.one_of(
    st.floats(allow_nan=False),
    st.integers(-(10**6), 10**12).map(float),
    st.sampled_from([math.inf, -math.inf, 0.0, 5e-324, 39200.0, 4760000.0]),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
LAST = sys.float_info.max


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(ANY | st.just(math.nan), min_size=1, max_size=40),
    st.tuples(FINITE, FINITE).filter(lambda pair: pair[0] != pair[1]),
    st.sampled_from(["low", "high", "both"]),
)
@example([*map(float, range(8)), 1.5], (0.0, -LAST), "low")
@example([*map(float, range(8)), 1.5, math.inf, -math.inf], (-LAST, LAST), "both")
def test_labels_of_a_histogram_never_collide(
    values: list[float], pair: tuple[float, float], which: str
) -> None:
    """Of two bounds close to each other the labels were one: 39200 and 4760000 read as
    "392004760000". Numbers may be infinite: they are in the outermost bins, and none is lost."""
    array = np.array(values)
    low, high = min(pair), max(pair)
    clause = Interval("x", -math.inf if which == "high" else low,
                      math.inf if which == "low" else high)  # fmt: skip
    codes = (np.arange(len(array)) % 2).astype(np.int32)
    chart = chart_of(array, codes, clause)
    check_picture(chart, codes, clause.covers(array))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(-(10**15), 10**16), min_size=9, max_size=40), st.data())
def test_labels_of_times_never_collide(micros: list[int], data: st.DataObject) -> None:
    times = np.array(micros, dtype="datetime64[us]")
    a, b = sorted(data.draw(st.tuples(*[st.sampled_from(micros)] * 2)))
    clause = Period("t", np.datetime64(a, "us"), np.datetime64(b + 1, "us"))
    codes = (np.arange(len(times)) % 2).astype(np.int32)
    check_picture(chart_of(times, codes, clause), codes, clause.covers(times))


def check_picture(chart: Chart, codes: NDArray[np.int32], covered: NDArray[np.bool_]) -> None:
    if not isinstance(chart, Histogram):
        counted = list(chart.bars)
    else:
        counted = [*chart.bins, *([chart.missing] if chart.missing else [])]  # type: ignore[list-item]
        marks = draw.histogram(chart, int(codes.sum()), int((1 - codes).sum()))
        for line in (marks.bounds, marks.ends):
            for label in line:
                assert -1e-6 <= label.left <= label.x <= label.right <= draw.WIDTH + 1e-6
                digit = draw.BOLD if line is marks.bounds else draw.DIGIT
                assert label.right - label.left >= width_of(label.text, digit) - 1e-6
            for one, other in pairwise(line):
                assert one.right < other.left
    assert sum(each.outliers for each in counted) == int(codes.sum())
    assert sum(each.inliers for each in counted) == int((1 - codes).sum())
    inside = sum(each.outliers + each.inliers for each in counted if each.covered)
    assert inside == int(covered.sum())


def test_bounds_are_named_as_the_clause_says_them() -> None:
    """A rule "≥ 10,000" stood above a picture that said 9999, and "= 444" above 443 and 444."""
    whole = np.arange(20000.0)
    codes = np.zeros(len(whole), dtype=np.int32)
    codes[-100:] = 1
    for clause, expected in (
        (Interval("x", 9999.0, whole=True), ["10,000"]),
        (Interval("x", 443.0, 444.0, whole=True), ["", "444"]),
        (Interval("x", 443.0, 12000.0, whole=True), ["444", "12,000"]),
    ):
        chart = chart_of(whole, codes, clause)
        assert isinstance(chart, Histogram)
        assert [mark.text for mark in chart.bounds] == expected
        check_picture(chart, codes, clause.covers(whole))
    chart = chart_of(whole / 2 + 0.25, codes, Interval("x", 9999.0))
    assert isinstance(chart, Histogram)
    assert [mark.text for mark in chart.bounds] == ["9999"]


# --- skewed numbers -----------------------------------------------------------------------------


def spread(array: NDArray[Any], clause: Any) -> tuple[str, int]:
    """The scale of an axis, and how many bins have a hundredth of the rows or more."""
    codes = np.zeros(len(array), dtype=np.int32)
    codes[:50] = 1
    chart = chart_of(array, codes, clause)
    assert isinstance(chart, Histogram)
    return chart.scale, sum(b.inliers + b.outliers >= len(array) / 100 for b in chart.bins)


SKEWED = np.random.default_rng(0).lognormal(11, 2, 4000)


@pytest.mark.parametrize(
    ("array", "scale"),
    [
        (SKEWED, "log"),
        (np.where(np.arange(4000) % 10 == 0, 0.0, SKEWED), "symlog"),
        (np.floor(SKEWED / 30_000), "symlog"),  # whole numbers from 0 or 1 on
        (np.where(np.arange(4000) % 3 == 0, -SKEWED, SKEWED), "symlog"),
        (-SKEWED, "symlog"),
        (np.random.default_rng(0).normal(0, 50, 4000), "linear"),
        (np.where(np.arange(4000) % 2 == 0, 0.0, np.linspace(0, 1000, 4000)), "linear"),
    ],
    ids=["positive", "zeros", "whole", "both signs", "negative", "normal", "half zeros"],
)
def test_skewed_numbers_are_no_sliver(array: NDArray[Any], scale: str) -> None:
    """With 0 or negative numbers inside, a heavy-tailed column was one bar at the edge."""
    found, n_bins = spread(array, Interval("x", 40.0))
    assert found == scale
    assert n_bins >= 8


def test_small_numbers_of_a_small_group_can_be_told_from_zero() -> None:
    """Scans last 1 to 60 µs and other flows minutes: the bound at 80 is not at the edge."""
    duration = np.floor(SKEWED)
    duration[:50] = np.random.default_rng(1).integers(1, 60, 50)
    duration[100:200] = 0
    codes = np.zeros(4000, dtype=np.int32)
    codes[:50] = 1
    chart = chart_of(duration, codes, Interval("x", high=80.0))
    assert isinstance(chart, Histogram)
    assert chart.bounds[0].place > 0.15
    assert sum(each.outliers > 0 for each in chart.bins) >= 3


def test_infinite_numbers_are_in_the_outermost_bins() -> None:
    x = np.arange(100.0)
    x[[3, 4]], x[5] = np.inf, -np.inf
    codes = (np.arange(100) % 2).astype(np.int32)
    chart = chart_of(x, codes, Interval("x", 40.0))
    assert isinstance(chart, Histogram)
    assert math.isfinite(float(chart.low)) and math.isfinite(float(chart.high))
    first, last = chart.bins[0], chart.bins[-1]
    assert first.outliers + first.inliers == np.count_nonzero(x <= first.high)
    assert last.outliers + last.inliers == np.count_nonzero(x > last.low)
    only = chart_of(np.array([np.inf, -np.inf] * 3), codes[:6], Interval("x", high=4.0))
    assert [b.covered for b in only.bars] == [True, False]  # type: ignore[union-attr]
