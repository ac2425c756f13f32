"""Charts of rows that are elsewhere: what was counted of them is enough."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from large import files, mixed
from stair.engines.counting import bin_numbers
from stair.evidence.charts import Histogram
from stair.evidence.distribution import Distributions
from stair.evidence.tallies import Ranked, Tally
from stair.report.coverage import coverage_of
from stair.rules.clauses import Clause
from stair.rules.columns import Numbers, Times
from stair.rules.counted import groups_of_disjoint
from stair.scale.edges import binned
from stair.scale.sketch import Sketch
from strategies import examples

VALUES = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, 2.5]), st.floats(-1e6, 1e6).map(lambda x: round(x, 2))),
    min_size=2,
    max_size=200,
)


@settings(max_examples=examples(60), deadline=None)
@given(VALUES, st.integers(2, 30), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_chart_from_bins_counts_the_rows(
    values: list[float], n_bins: int, are_times: bool, seed: int
) -> None:
    """Every bar of every cut: exactly the rows between its ends, missing ones apart. Where no bin
    holds two values, the chart is that of the rows."""
    x = np.array(values) + 0.0  # a tally knows one zero
    x = np.round(x).astype(np.int64) if are_times else x
    labels = np.random.default_rng(seed).integers(0, 3, len(x)).astype(np.int32)
    sketch = Sketch()
    sketch.add(x)
    column, edges = binned(Times("x", 0) if are_times else Numbers("x", 0), sketch, n_bins)
    codes = bin_numbers(x, np.array(edges, dtype=x.dtype), len(column.tops) + 1)
    counts = np.zeros((len(column.tops) + 1, 3), dtype=np.int64)
    np.add.at(counts, (codes, labels), 1)
    exact = column.tops == column.bottoms
    tally = Tally(column.tops, counts, are_times, False, exact)
    totals = np.bincount(labels, minlength=3)
    rows = x.astype("datetime64[us]") if are_times else x
    counted = Distributions.of_tallies({"x": tally}, totals.tolist())
    here = Distributions(lambda _: rows, labels, 3)
    for below, above in itertools.pairwise(np.unique(codes).tolist()):
        for clause in column.cut(below, above, None):
            assert counted.met(clause).tolist() == here.met(clause).tolist()
            _check(counted, clause, x, labels)
            if exact and not are_times:
                assert counted.chart(clause, 1) == here.chart(clause, 1)


def _check(found: Distributions, clause: Clause, x: Any, labels: Any, group: int = 1) -> None:
    chart = found.chart(clause, group)
    if not isinstance(chart, Histogram):
        return
    mine = labels == group
    for bin_ in chart.bins:
        inside = (x > bin_.low) & (x <= bin_.high)
        assert (bin_.outliers, bin_.inliers) == ((inside & mine).sum(), (inside & ~mine).sum())
    missing = np.isnan(x)
    if chart.missing is not None:
        assert (chart.missing.outliers, chart.missing.inliers) == (
            (missing & mine).sum(), (missing & ~mine).sum(),
        )  # fmt: skip
    drawn = [*chart.bins, *([chart.missing] if chart.missing else [])]
    assert sum(each.outliers + each.inliers for each in drawn) == len(x)
    covered = sum(each.outliers + each.inliers for each in drawn if each.covered)
    assert covered == found.met(clause).sum()


@given(st.lists(st.integers(-5, 5), max_size=30), st.lists(st.integers(-5, 5), max_size=30))
def test_counted_values_rank_as_listed_ones(one: list[int], other: list[int]) -> None:
    listed = Ranked.together([Ranked(np.sort(np.array(part, float))) for part in (one, other)])
    distinct = np.arange(-5.0, 6.0)
    counted = Ranked.together(
        [
            Ranked(distinct, np.array([part.count(int(v)) for v in distinct]))
            for part in (one, other)
        ]
    )
    assert counted.size == listed.size == len(one) + len(other)
    assert [counted.at(k) for k in range(counted.size)] == listed.values.tolist()
    points = np.arange(-6.0, 6.5, 0.5)
    for side in ("left", "right"):
        assert counted.up_to(points, side).tolist() == listed.up_to(points, side).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_large_data_has_the_charts_of_small_data(tmp_path: Path, n_classes: int) -> None:
    """Numbers, categories, truths and days with missing values: where every value is a bin all
    charts are equal, and so is what the rules cover."""
    frame = mixed(3, n_classes=n_classes).drop(columns=["amount", "seen"])
    options: dict[str, Any] = {"labels": "label", "method": stair.Stair(0.95, 4)}
    small = stair.summarize(frame, **options)
    large = stair.summarize(files(frame, tmp_path / "data"), engine="duckdb", **options)
    assert large.rules == small.rules
    rows, counts = small._distributions(), large._distributions()
    assert rows.totals.tolist() == counts.totals.tolist()
    clauses = {clause for rule in large.rules for clause in rule.clauses}
    assert len({clause.feature for clause in clauses}) >= 4
    for clause, group in itertools.product(clauses, range(n_classes)):
        assert counts.chart(clause, group) == rows.chart(clause, group)
        assert counts.met(clause).tolist() == rows.met(clause).tolist()
        assert counts.distance(clause, group) == pytest.approx(rows.distance(clause, group))
    assert small._groups is not None
    one = coverage_of(small.rules, small._groups)
    other = coverage_of(large.rules, groups_of_disjoint(large.rules))
    assert (one.overlap, other.overlap) == (None, None)
    assert one.wrong == other.wrong
    for name in ("totals", "only", "first", "rest"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


def test_the_page_of_large_data_has_the_cards_of_small_data(tmp_path: Path) -> None:
    """To the letter; what needs rows (the columns that tell missed outliers apart) is not there."""
    frame = mixed(3).drop(columns=["amount", "seen"])
    options: dict[str, Any] = {"labels": "label", "method": stair.Stair(0.7, 3)}
    small = stair.summarize(frame, **options).to_html()
    large = stair.summarize(files(frame, tmp_path / "data"), engine="duckdb", **options).to_html()

    def cards(page: str) -> list[str]:
        return re.findall(r'<li class="rule".*?</li>', page, flags=re.DOTALL)

    assert len(cards(large)) > 2
    assert cards(large) == cards(small)
    assert "sets them apart" not in large


def test_a_clause_of_large_data_can_be_drawn(tmp_path: Path) -> None:
    """It ended in a KeyError: the picture asked for rows, and there are none."""
    pytest.importorskip("matplotlib")
    frame = mixed(4)
    pattern = files(frame, tmp_path / "data")
    large = stair.summarize(
        pattern, "label", method="stair", min_score=0.8, engine=stair.DuckDB(bins=64)
    )
    numbers = [k for k, rule in enumerate(large.rules, start=1) if rule.clauses]
    large.plot_clause(numbers[0], path=tmp_path / "clause.svg")
    assert (tmp_path / "clause.svg").stat().st_size > 1000
    found = large._distributions()
    for rule in large.rules:
        for clause in rule.clauses:
            if clause.feature == "amount":
                _check(found, clause, frame.amount.to_numpy(), frame.label.to_numpy())
    options: dict[str, Any] = {"method": "cart", "include": ["amount"], "min_score": 0.2}
    sampled = stair.summarize(pattern, "label", engine="duckdb", **options)
    with pytest.raises(stair.StairError, match="not kept with an engine"):
        sampled.plot_clause(1)
