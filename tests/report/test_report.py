"""The report's counts are those of a person with a pencil, and its page holds nothing else."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from markupsafe import escape
from numpy.typing import NDArray

from other_rules import distilled
from places import TESTS
from settings import summarize as by_settings
from stair import Among, Interval, Mentions, Period, Source, Stair, StairError, Summary, summarize
from stair.demo import payments
from stair.evidence.charts import Bars, Histogram
from stair.evidence.distribution import Distributions
from stair.export.sql import rule_to_sql
from stair.report import draw, report_of, words
from stair.rules.clauses import BEGINNING, END, folded
from stair.rules.rule_set import Rule
from strategies import examples

GOLDEN = TESTS / "golden" / "report.json"
HOSTILE = [
    "<script>alert(1)</script>",
    'a"b',
    "it's",
    "&amp;",
    "\u202egnp",
    "\ud83d",
    "a\0b",
    "{{7*7}}",
]


# --- the twin: plain Python, row by row -------------------------------------------------------


def _gone(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value)) or value == "NaT"


def _meets(clause: Any, value: Any) -> bool:
    if isinstance(clause, Mentions):
        mentioned = not _gone(value) and folded(clause.term) in folded(value)
        return mentioned == clause.present
    if _gone(value):
        return bool(clause.missing)
    if isinstance(clause, Interval):
        return clause.low < value <= clause.high
    if isinstance(clause, Period):
        return bool(clause.after < value <= clause.until)
    return (value in clause.values) != clause.negated


def _plain(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind == "M":
        return [None if np.isnat(t) else t for t in array]
    return array.tolist()


class Pencil:
    """All rows as Python values, and what can be counted on them one by one."""

    def __init__(self, summary: Summary) -> None:
        self.rules = summary.rules
        self.columns = {name: _plain(array) for name, array in summary._values.items()}
        self.labels = [self.rules.classes[code] for code in summary._codes.tolist()]
        self.n = len(self.labels)
        self.part = [0] * self.n
        self.part_of_rule = [0] * len(self.rules)
        if self.rules.routing:
            self.part = self.rules.route(summary._values).tolist()
            spans = enumerate(self.rules.spans)
            self.part_of_rule = [k for k, (a, b) in spans for _ in range(a, b)]
        self.covering = [
            [k for k, rule in enumerate(self.rules) if self._covers(k, rule, row)]
            for row in range(self.n)
        ]

    def _covers(self, number: int, rule: Rule, row: int) -> bool:
        return self.part[row] == self.part_of_rule[number] and all(
            _meets(clause, self.columns[clause.feature][row]) for clause in rule.clauses
        )

    def around(self, number: int) -> list[int]:
        return [row for row in range(self.n) if self.part[row] == self.part_of_rule[number]]


def _check(summary: Summary) -> None:
    """Every count of the report, counted again."""
    report, pencil = report_of(summary), Pencil(summary)
    rules = summary.rules
    views = {view.number - 1: view for view in (*report.rules, *report.inlier_rules)}
    assert len(views) == len(rules) == report.n_rules
    for number, view in views.items():
        rule = rules[number]
        rows = [row for row in range(pencil.n) if number in pencil.covering[row]]
        hits = [row for row in rows if pencil.labels[row] == rule.label]
        same = [k for k, other in enumerate(rules) if other.label == rule.label]
        alone = [r for r in hits if [k for k in pencil.covering[r] if k in same] == [number]]
        assert (view.rows, view.hits, view.only) == (len(rows), len(hits), len(alone))
        assert (view.text, view.length) == (rule.in_words(), rule.length)
        assert view.n_own == pencil.labels.count(rule.label)
        assert view.n_own + view.n_others == pencil.n
        group = rule.label if rules.positive is None else rules.positive
        for clause, seen in zip(rule.clauses, view.clauses, strict=True):
            _check_clause(clause, seen, view, pencil, pencil.around(number), group)
    _check_whole(summary, report, pencil)


def _check_clause(
    clause: Any, seen: Any, view: Any, pencil: Pencil, rows: list[int], group: Any
) -> None:
    values = pencil.columns[clause.feature]
    outliers = [values[r] for r in rows if pencil.labels[r] == group]
    inliers = [values[r] for r in rows if pencil.labels[r] != group]
    assert (view.n_outliers, view.n_inliers) == (len(outliers), len(inliers))
    assert seen.outliers == sum(_meets(clause, v) for v in outliers)
    assert seen.inliers == sum(_meets(clause, v) for v in inliers)
    chart = seen.chart
    missing = (sum(map(_gone, outliers)), sum(map(_gone, inliers)))
    if isinstance(chart, Histogram):
        for each in chart.bins:
            inside = [_in_bin(each, v) for v in outliers], [_in_bin(each, v) for v in inliers]
            assert (each.outliers, each.inliers) == (sum(inside[0]), sum(inside[1]))
            covered = [_meets(clause, v) for v in (*outliers, *inliers) if _in_bin(each, v)]
            assert all(met is each.covered for met in covered)
            assert 0 <= each.start <= each.stop <= 1
        counted: list[Any] = [*chart.bins, *([chart.missing] if chart.missing else [])]
        shown = (chart.missing.outliers, chart.missing.inliers) if chart.missing else (0, 0)
        assert shown == missing
        bounds = [b for b in _bounds(clause) if b is not None]
        assert len(chart.bounds) == len(bounds)  # each bound is on the picture
    else:
        assert isinstance(chart, Bars)
        counted = list(chart.bars)
        tail = next((b for b in counted if b.name == "missing"), None)
        if tail and not isinstance(clause, Among):
            assert (tail.outliers, tail.inliers) == missing
    assert sum(each.outliers for each in counted) == len(outliers)
    assert sum(each.inliers for each in counted) == len(inliers)
    assert sum(each.outliers for each in counted if each.covered) == seen.outliers
    assert sum(each.inliers for each in counted if each.covered) == seen.inliers


def _in_bin(each: Any, value: Any) -> bool:
    if _gone(value):
        return False
    number = int(value.astype(np.int64)) if isinstance(value, np.datetime64) else value
    return bool(each.low < number <= each.high)


def _bounds(clause: Any) -> list[Any]:
    if clause.only_missing:
        return []
    if isinstance(clause, Period):
        return [t for t in (clause.after, clause.until) if t not in (BEGINNING, END)]
    return [b for b in (clause.low, clause.high) if math.isfinite(b)]


def _check_whole(summary: Summary, report: Any, pencil: Pencil) -> None:
    rules = summary.rules
    predicted = [rules[k[0]].label if k else rules.default for k in pencil.covering]
    pairs = list(zip(predicted, pencil.labels, strict=True))
    assert report.wrong == sum(p != y for p, y in pairs)
    rest = [row for row in range(pencil.n) if not pencil.covering[row]]
    hits = sum(pencil.labels[row] == rules.default for row in rest)
    assert (report.rest is None) == (not rest)
    if report.rest:
        assert (report.rest.rows, report.rest.hits) == (len(rest), hits)
    main = {k for k, r in enumerate(rules) if rules.positive is None or r.label == rules.positive}
    depth = [len(main & set(k)) for k in pencil.covering]
    assert (report.overlap is not None) == (max(depth, default=0) > 1)
    if report.overlap:
        shown = [
            d for d, y in zip(depth, pencil.labels, strict=True) if rules.positive in (None, y)
        ]
        assert dict(report.overlap.depths) == {d: n for d, n in Counter(shown).items() if d}
        for pair in report.overlap.pairs:
            both = [k for k in pencil.covering if {pair.first - 1, pair.second - 1} <= set(k)]
            assert pair.rows == len(both)
    assert sum(p.rows for p in report.partitions) in (0, pencil.n)
    if report.map:
        assert sum(cell.rows for cell in report.map.cells) == pencil.n
    if rules.positive is None:
        return
    outlier = rules.positive
    missed = sum(p != outlier and y == outlier for p, y in pairs)
    assert report.missed is not None
    assert report.missed.rows == missed == summary.unexplained
    assert report.false_alarms == sum(p == outlier and y != outlier for p, y in pairs)
    assert report.n_outliers == pencil.labels.count(outlier)
    assert sum(n for _, n in report.explained_by) + missed == report.n_outliers
    if len(report.missed.taken_by) < 5:
        assert sum(n for _, _, n, _ in report.missed.taken_by) == missed


# --- random tables ----------------------------------------------------------------------------

NUMBERS = [-3.5, 0.0, 0.1, 1.0, 2.0, 7.0, 1e3, math.nan]
FINE = st.integers(-(10**9), 10**9).map(lambda n: n / 1000)
TIMES = [f"2024-0{m}-1{d}T1{m}:0{d}" for m in range(1, 6) for d in range(1, 4)]
TEXTS = ["refund of all", "a refund", "all is well here", "nothing at all", "well paid refund"]


@st.composite
def mixed(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any]]:
    n = draw(st.integers(12, 36))
    names = draw(st.permutations([*HOSTILE[:5], "amount", "x y"]))

    def column(choice: st.SearchStrategy[Any], dtype: Any) -> NDArray[Any]:
        array = np.empty(n, dtype=dtype)
        array[:] = draw(st.lists(choice, min_size=n, max_size=n))
        return array

    times = st.sampled_from([np.datetime64(t, "us") for t in TIMES] + [np.datetime64("NaT", "us")])
    table = {
        names[0]: column(st.sampled_from(NUMBERS), np.float64),
        names[1]: column(FINE, np.float64),
        names[2]: column(st.integers(-50, 200), np.int64),
        names[3]: column(st.sampled_from([*HOSTILE, "DE", None]), object),
        names[4]: column(times, "datetime64[us]"),
        names[5]: column(st.sampled_from([*TEXTS, None]), object),
    }
    n_classes = draw(st.sampled_from([2, 2, 3]))
    labels = draw(st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n))
    labels[:n_classes] = range(n_classes)
    return table, [f"c{label}" for label in labels] if n_classes > 2 else labels


# Without the explain phase, which takes minutes on tables as large as these.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink]


def _learned(table: Any, labels: Any, **more: Any) -> Summary | None:
    kinds = {
        name: "text" for name, v in table.items() if v.dtype == object and "all is well here" in v
    }
    try:
        more = {"method": "stair", **more}
        return by_settings(table, labels=labels, kinds=kinds, **more)
    except StairError as error:
        assert "no column is left" in str(error) or "nothing to cut" in str(error)
        return None


@settings(
    max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES
)
@given(mixed(), st.booleans())
def test_every_count_is_that_of_a_plain_recount(drawn: Any, is_local: bool) -> None:
    """Rows, hits, bins, bars, missing values, overlap, partitions: against Python's own loops."""
    table, labels = drawn
    more = {"method": "local", "n_partitions": 2} if is_local else {}
    summary = _learned(table, labels, min_score=0.9, max_rule_length=4, **more)
    if summary is not None:
        _check(summary)
        _check_page(summary.to_html(examples=2))


@pytest.mark.parametrize("seed", range(4))
def test_a_map_of_numbers_near_the_end_of_floats(seed: int, tmp_path: Path) -> None:
    """Distances between such numbers are infinite: the map of partitions looked for its cells
    far outside of itself, and the report of local rules was an IndexError."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1, 1, 200) * 1.7e308
    table = {"x": x, "z": random.normal(size=200)}
    outlying = (x > np.quantile(x, 0.9)).astype(int)
    summary = summarize(table, labels=outlying, method="local")
    summary.to_html(tmp_path / "report.html")
    drawn = report_of(summary).map
    assert drawn is None or sum(cell.rows for cell in drawn.cells) == 200


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES
)
@given(mixed(), st.data())
def test_rules_that_overlap_are_counted_too(drawn: Any, data: st.DataObject) -> None:
    """Outlier rules that share rows, beside a default: what each adds, and who meets whom."""
    table, labels = drawn
    summary = _learned(table, [int(label in (1, "c1")) for label in labels])
    if summary is None:
        return
    clauses = sorted({c for rule in summary.rules for c in rule.clauses}, key=str)
    if not clauses:
        return
    some = st.lists(st.sampled_from(clauses), min_size=1, max_size=2, unique_by=lambda c: c.feature)
    chosen = data.draw(st.lists(some, min_size=0, max_size=5))
    outlier = summary.rules.positive
    changed = distilled(summary, [Rule(tuple(each), outlier) for each in chosen])
    _check(changed)
    html = changed.to_html()
    _check_page(html)
    assert ("Everything else is an inlier" in html) == (report_of(changed).rest is not None)
    assert ("Where rules overlap" in html) == (report_of(changed).overlap is not None)


def _check_page(html: str) -> None:
    """Well-formed enough, and nothing of the data became markup."""
    html.encode("utf-8")
    assert html.count("<script>") == 1
    assert "alert(1)</script>" not in html
    assert "49" not in re.findall(r"<title>(.*?)</title>", html)[0] or "{{7*7}}" not in html
    assert "http" not in html.replace("http-equiv", "")
    assert "\0" not in html


# --- the demo ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def demo() -> Summary:
    return summarize(
        Source(payments(), name="payments"),
        labels="flagged",
        min_score=0.9,
        method=Stair(max_rule_length=3),
    )


def test_the_demo_report_is_as_it_was(demo: Summary) -> None:
    """The page's data, but for the inlier rules. A change here is a change that somebody must want:
    run this file as a script to write it anew."""
    assert json.loads(_golden(demo)) == json.loads(GOLDEN.read_text(encoding="utf-8"))


def _golden(summary: Summary) -> str:
    data = asdict(replace(report_of(summary), versions=(), inlier_rules=()))
    return json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n"


def test_the_report_opens_with_the_answer(demo: Summary) -> None:
    report = report_of(demo)
    said = words.headline(report)
    assert said == "222 of 5,000 rows are outliers; four short rules explain 95% of them"
    html = demo.to_html()
    assert f'<h1 id="headline">{said}.</h1>' in html
    assert html.index(said) < html.index("asked for more than 0.90") < html.index("rule-1")
    one = replace(report, n_outliers=1, n_outlier_rules=1, longest=4, missed=None)
    assert words.headline(one) == "1 of 5,000 rows is an outlier; one rule explains it"
    none = replace(report, n_outlier_rules=0)
    assert words.headline(none).endswith("no rule explains any of them")
    assert len(html) < 100_000


def test_the_copied_sql_selects_the_rows_of_the_rule(demo: Summary) -> None:
    """Pasted after WHERE in DuckDB, the condition finds exactly the rows that the rule covers."""
    table = pd.DataFrame(payments())
    for view in report_of(demo).rules:
        assert view.sql == rule_to_sql(demo.rules, view.number - 1)
        with duckdb.connect() as con:
            con.register("t", table)
            found = con.execute(f"SELECT id FROM t WHERE {view.sql}").fetchall()
        expected = table["id"].iloc[demo.matching_rows(view.number)]
        assert sorted(row[0] for row in found) == sorted(expected)


def test_rows_of_the_data_are_shown_only_when_asked_for(demo: Summary) -> None:
    """Counts alone by default; with examples=2 there are two rows for each rule, as in the data."""
    ids = re.compile(r"P\d{5}")
    assert not ids.search(demo.to_html())
    html = demo.to_html(examples=2)
    assert len(ids.findall(html)) == 2 * len(demo.rules)
    assert html.count("2 typical rows that the rule covers") == len(demo.rules)
    table = payments()
    first = report_of(demo, 2).rules[0].examples
    assert first is not None
    for number, label, cells in first.rows:
        assert cells[first.columns.index("id")] == table["id"][number - 1]
        assert label == ("outlier" if table["flagged"][number - 1] else "inlier")
    rows = [number - 1 for number, _, _ in first.rows]
    assert first.reasons == tuple(demo.rules.reasons(table)[k].words for k in rows)
    missed = report_of(demo, 2).missed
    assert missed is not None and sum(group.rows for group in missed.alone) == missed.rows
    for group in missed.alone:
        assert group.reason == demo.reasons(group.row - 1)[0].words
        assert str(escape(group.reason)) in html
    with pytest.raises(StairError, match="examples=-1; expected 0"):
        demo.to_html(examples=-1)


def test_more_than_two_classes_have_no_outliers_in_their_report() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 1] > 0.5, "wide", "plain"))
    summary = summarize(X, labels=y, min_score=0.9, method="stair")
    _check(summary)
    html = summary.to_html()
    assert "400 rows are of 3 classes; three rules give 100% of them their class" in html
    assert "outlier" not in html.replace("/* outlier", "").split("<body>")[1].split("<script>")[0]
    assert "Accuracy" in html


def test_a_thousand_rules_stay_below_a_megabyte() -> None:
    """Rules beyond the room are listed without histograms, and the page says so.

    The names are long and full of quotes, which HTML writes with five characters each.
    """
    rng = np.random.default_rng(0)
    n = 6000
    table = {f'"{"column " * 8}{j}"': rng.normal(size=n) for j in range(12)}
    summary = summarize(table, labels=rng.integers(0, 2, n), min_score=0.99, method="stair")
    assert len(summary.rules) > 1000
    html = summary.to_html()
    report = report_of(summary)
    assert len(html.encode()) < 1_000_000
    assert report.n_unlisted > 0
    assert 0 < report.n_detailed < len(report.rules) + len(report.inlier_rules)
    assert words.folded(report) in html.replace("&#39;", "'")
    # What has room is filled, or the estimate of sizes would be far off.
    assert len(html.encode()) > 300_000


def test_a_hundred_rules_all_open() -> None:
    """At a usual size no rule is folded away."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 10))
    y = np.zeros(len(X), dtype=int)
    for _ in range(25):
        a, b, c = rng.choice(10, 3, replace=False)
        y |= (X[:, a] > 1) & (X[:, b] < rng.normal() - 0.7) & (X[:, c] > rng.normal())
    summary = summarize(X, labels=y, min_score=0.99, method=Stair(max_total_length=530))
    assert 80 <= len(summary.rules) <= 120
    html = summary.to_html()
    assert len(html.encode()) < 1_000_000
    assert report_of(summary).n_detailed == len(summary.rules)


def test_a_notebook_stays_small() -> None:
    """Twenty rules are enough for a look; how many more there are is said."""
    rng = np.random.default_rng(0)
    summary = summarize(
        rng.normal(size=(800, 4)), labels=rng.integers(0, 2, 800), min_score=0.95, method="stair"
    )
    html = summary._repr_html_()
    assert len(summary.rules) > 40
    assert html.count("<tr>") == 20 + 1
    assert f"{len(summary.rules) - 20} more rules" in html
    assert len(html) < 20_000


def test_the_fragment_has_a_row_for_what_no_rule_covers(demo: Summary) -> None:
    changed = distilled(demo, list(demo.rules.outlier_rules))
    html = changed._repr_html_()
    assert "Everything else" in html
    assert "4,784" in html


# --- pictures ---------------------------------------------------------------------------------


ANY_SIZE = st.one_of(
    st.floats(-8e307, 8e307),
    st.sampled_from([5e-324, 0.0, -1e-300]),
    st.integers(-20, 20).map(float),
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(ANY_SIZE, min_size=1, max_size=40),
    ANY_SIZE,
    ANY_SIZE,
)
def test_numbers_of_any_size_can_be_drawn(values: list[float], a: float, b: float) -> None:
    """From the smallest double to nearly the largest: no row is lost, marks are in the picture.

    The median of two large numbers was once their mean, which no double holds."""
    array = np.array(values)
    codes = (np.arange(len(array)) % 2).astype(np.int32)
    clause = Interval("x", min(a, b), max(a, b))
    found = Distributions(lambda _: array, codes, 2)
    chart = found.chart(clause, 1)
    met = found.met(clause)
    covered = clause.covers(array)
    assert met.tolist() == [int((covered & (codes == c)).sum()) for c in (0, 1)]
    counted = chart.bins if isinstance(chart, Histogram) else chart.bars
    assert sum(each.outliers for each in counted) == int(codes.sum())
    assert sum(each.outliers + each.inliers for each in counted) == len(array)
    assert sum(each.outliers + each.inliers for each in counted if each.covered) == covered.sum()
    if isinstance(chart, Histogram):
        marks = draw.histogram(chart, int(codes.sum()), int((1 - codes).sum()))
        numbers = re.findall(
            r"-?[\d.]+(?:e[-+]?\d+)?|nan|inf", "".join(marks.outliers + marks.inliers)
        )
        assert all(abs(float(n)) <= 2 * draw.WIDTH + 2 for n in numbers)


@pytest.mark.parametrize(
    ("high", "last"), [(1.0, 1.0), (0.37, 0.4), (118.4, 150), (20, 20), (0, 1)]
)
def test_ticks_are_round_and_reach_the_end(high: float, last: float) -> None:
    found = draw.ticks(0.0, high, 4)
    assert found[0] == 0
    assert found[-1] == pytest.approx(last)
    assert 2 <= len(found) <= 6


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    made = summarize(
        Source(payments(), name="payments"),
        labels="flagged",
        min_score=0.9,
        method=Stair(max_rule_length=3),
    )
    GOLDEN.write_text(_golden(made), encoding="utf-8")
