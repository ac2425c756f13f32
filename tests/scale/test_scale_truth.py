"""The large engines tell the same truth: what holds, each kind of outlier, what comes next."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.next_rule import FLOOR, KINDS, LABEL, part, table
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from large import files, mixed
from places import ROOT
from settings import summarize
from stair.engines.counting import Block
from stair.learn.distill.given import one_more
from stair.learn.learner import TOO_FEW_KINDS
from stair.learn.validation import check_of
from stair.rules.groups import groups_apart, groups_of
from stair.rules.objective import f1, score_of_classes
from stair.scale.draw import CodeSample
from strategies import examples

# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")

ENGINES = ["duckdb", "dask"]
FAST: dict[str, Any] = {"labels": "label", "effort": "fast"}
# Rows of each kind of attack, and where they lie; no other row does.
ATTACKS = {"flood": (900, "a", "b"), "scan": (300, "b", "c"), "worm": (30, "c", "d")}


def attacks(seed: int = 3, n_rows: int = 30_000) -> pd.DataFrame:
    """Three kinds of outlier of very different size in the midst of what is normal."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 5)), columns=list("abcde"))
    label = np.full(n_rows, "normal", dtype=object)
    rows = rng.permutation(n_rows)
    for name, (n, x, y) in ATTACKS.items():
        own, rows = rows[:n], rows[n:]
        inside = frame[x].between(0.5, 0.9) & frame[y].between(-0.4, 0.1)
        frame.loc[inside, x] -= 0.6
        frame.loc[own, x] = rng.uniform(0.5, 0.9, n)
        frame.loc[own, y] = rng.uniform(-0.4, 0.1, n)
        label[own] = name
    return frame.assign(label=label)


def told(summary: stair.Summary) -> tuple[Any, ...]:
    """All that a summary says beside its rules."""
    return (
        summary.check, summary.unchecked, summary.kinds, summary.further, summary.suspects,
        summary.frontier, summary.score, summary.unexplained, summary.evidence, summary.rest,
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_fits_says_what_the_memory_engine_says(
    tmp_path: Path, engine: str, n_classes: int
) -> None:
    """With two classes and with kinds: the same rules, and the same said of them, whether they hold
    included."""
    frame = mixed(5, 1500, n_classes)
    pattern = files(frame, tmp_path / "data")
    small = summarize(frame, min_score=0.6, **FAST)
    large = summarize(pattern, engine=engine, min_score=0.6, **FAST)
    assert bool(small.kinds) == (n_classes == 3)
    assert small.check is not None
    assert large.rules == small.rules
    assert told(large) == told(small)
    assert large.certificate == small.certificate


@pytest.mark.parametrize("engine", ENGINES)
def test_each_kind_has_rules_and_a_floor_of_its_own(tmp_path: Path, engine: str) -> None:
    """The rarest kind has 30 of 30,000 rows; a sample of 2,000 has all of them. What is said of
    each kind is what its rules predict on all rows, and what each rule decides."""
    frame = attacks()
    pattern = files(frame, tmp_path / "data")
    found = summarize(pattern, engine=engine, sample=2000, min_score=0.9, **FAST)
    assert {kind.label for kind in found.kinds} == set(ATTACKS)
    assert found.floor_reached
    for name, (n, x, y) in ATTACKS.items():
        own = [rule for rule in found.rules if rule.label == name]
        assert {feature for rule in own for feature in rule.features} == {x, y}
        assert next(kind.rows for kind in found.kinds if kind.label == name) == n
    _is_true(found, frame)
    assert found.check is not None
    assert found.check.conclusion == "hold"
    assert len(found.check.of_kinds) == len(found.kinds)
    assert any("learned from parts of the last sample" in note for note in found.notes)


def _is_true(found: stair.Summary, frame: pd.DataFrame) -> None:
    """Whether figures are those of all rows, by plain counting."""
    rules, label = found.rules, frame.label.to_numpy()
    data = frame.drop(columns="label")
    predicted = rules.predict(data)
    for kind in found.kinds:
        told_so, is_own = predicted == kind.label, label == kind.label
        assert kind.score == f1(
            int((told_so & is_own).sum()), int(told_so.sum()), int(is_own.sum())
        )
    assert found.score == min(kind.score for kind in found.kinds)
    is_outlier = label != rules.default
    assert found.unexplained == int((is_outlier & (predicted == rules.default)).sum())
    first, covered = rules.assign(data), rules.covers(data)
    for number, (rule, evidence) in enumerate(zip(rules, found.evidence, strict=True)):
        own = label == rule.label
        assert rule.hits == (covered[:, number] & own).sum()
        assert (evidence.rows, evidence.hits) == (
            (first == number).sum(), ((first == number) & own).sum(),
        )  # fmt: skip
    some = covered.any(axis=1)
    if len(rules):
        assert found.frontier[-1] == (
            rules.total_length,
            f1(int((some & is_outlier).sum()), int(some.sum()), int(is_outlier.sum())),
        )


def test_a_kind_below_the_floor_is_named(tmp_path: Path) -> None:
    """Rows of one kind are copies of normal ones: it has no rules, and what came nearest is named
    with its score; the others are not harmed. One with four rows has none."""
    frame = attacks(n_rows=12_000)
    rng = np.random.default_rng(1)
    normal = np.flatnonzero(frame.label == "normal")
    drawn = rng.choice(normal, 204, replace=False)
    frame.loc[drawn[200:], "label"] = "few"
    copies = frame.iloc[drawn[:200]].assign(label="noise")
    frame = pd.concat([frame, copies], ignore_index=True)
    pattern = files(frame, tmp_path / "data")
    found = summarize(pattern, engine="duckdb", sample=2500, min_score=0.9, validate=0, **FAST)
    by_name = {kind.label: kind for kind in found.kinds}
    assert {name for name, kind in by_name.items() if kind.reached} == set(ATTACKS)
    assert 0 < by_name["noise"].nearest_score < 0.9
    assert by_name["few"].nearest == ()
    assert {rule.label for rule in found.rules} == set(ATTACKS)
    _is_true(found, frame)
    text = " ".join(str(found).split())
    assert "noise (200 rows): no rules" in text
    assert "few (4 rows): no rules, because there are too few rows" in text


def test_what_is_normal_may_be_said(tmp_path: Path) -> None:
    """`negative` names it; where nothing is normal, and with other methods, there are no kinds."""
    frame = attacks(n_rows=4000)
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {**FAST, "engine": "duckdb", "sample": 800, "validate": 0}
    odd = summarize(pattern, positive=stair.AllBut("flood"), **options)
    assert "normal" in {kind.label for kind in odd.kinds}
    assert summarize(pattern, positive=stair.AllBut(), **options).kinds == ()
    two = summarize(pattern, positive=stair.AllBut("normal"), method="stair", **options)
    assert two.kinds == ()
    assert two.n_outliers == sum(n for n, *_ in ATTACKS.values())
    several = summarize(pattern, positive=["worm", "scan"], **options)
    assert several.n_outliers == 330


def test_the_check_does_not_depend_on_parts_or_workers(tmp_path: Path) -> None:
    """A row's fold depends on its place in the data and on the seed alone."""
    dd = pytest.importorskip("dask.dataframe")
    frame = attacks(n_rows=12_000)
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {**FAST, "sample": 2600, "min_score": 0.9}
    duckdb = summarize(pattern, engine="duckdb", **options)
    assert duckdb.check is not None
    other = summarize(dd.from_pandas(frame, npartitions=7), engine="dask", **options)
    assert other.rules == duckdb.rules
    assert told(other) == told(duckdb)


@pytest.mark.parametrize("method", ["distilled", "stair", "cart"])
def test_rules_for_shuffled_labels_do_not_hold(tmp_path: Path, method: str) -> None:
    """There is nothing to find, so that what is found describes these rows only."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2000, 3)), columns=list("abc"))
    frame["label"] = (rng.random(2000) < 0.05).astype(int)
    found = summarize(
        files(frame, tmp_path / "data"), engine="duckdb", method=method, sample=700,
        min_score=0.5, **FAST,
    )  # fmt: skip
    assert found.check is not None
    assert found.check.conclusion == "describe these rows only"
    assert found.check.score < 0.2


def test_how_thorough_the_check_is(tmp_path: Path) -> None:
    """None where nobody wants it or outliers are too few; so many folds where somebody asks."""
    frame = attacks(n_rows=6000)
    frame["label"] = (frame.label == "flood").astype(int)
    pattern = files(frame, tmp_path / "data")
    for method in ("distilled", "stair"):
        options: dict[str, Any] = {**FAST, "engine": "duckdb", "sample": 1500, "method": method}
        none = summarize(pattern, validate=0, **options)
        assert none.check is None
        assert none.unchecked == "nobody asked for it"
        four = summarize(pattern, validate=4, **options)
        assert four.check is not None
        assert len(four.check.scores) == 4
        assert four.rules == none.rules
    frame["label"] = (np.arange(6000) < 4).astype(int)
    few = summarize(
        files(frame, tmp_path / "few"), engine="duckdb", sample=1500, min_score=0.3, **FAST
    )
    assert few.check is None
    assert few.unchecked == "4 outliers are too few"


@pytest.mark.parametrize("sample", [1000, 20_000])
def test_kinds_too_rare_for_folds_are_not_checked(tmp_path: Path, sample: int) -> None:
    """Six rows are enough for rules, and four of them are not: the summary comes without a check,
    where it was an error."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(6000, 2)), columns=list("ab"))
    frame["label"] = np.array(["normal", "odd", "rare"])[
        np.where(np.arange(6000) < 6, 1, np.where(np.arange(6000) < 9, 2, 0))
    ]
    frame.loc[frame.label == "odd", "a"] += 9.0
    pattern = files(frame, tmp_path / "data")
    for found in (
        summarize(pattern, engine="duckdb", sample=sample, labels="label"),
        summarize(frame, labels="label"),
    ):
        assert [rule.label for rule in found.rules] == ["odd"]
        assert found.unchecked == TOO_FEW_KINDS


@pytest.mark.parametrize("sample", [20_000, 200_000])
def test_the_second_kind_is_named_as_the_next_rule(tmp_path: Path, sample: int) -> None:
    """100,000 rows with two planted kinds, of 91% and 9% of the outliers: the floor is reached by
    one rule, and the other kind is named, through DuckDB as in memory, with what it adds."""
    frame = pd.DataFrame(part(0, 100_000))
    pattern = files(frame, tmp_path / "data")
    (_, common), (_, rare) = KINDS.values()
    options: dict[str, Any] = {"labels": LABEL, "min_score": FLOOR, "effort": "fast"}
    summaries = [summarize(frame, **options)] if sample > len(frame) else []
    summaries.append(summarize(pattern, engine="duckdb", sample=sample, **options))
    is_outlier = frame[LABEL].to_numpy() == 1
    for found in summaries:
        assert [set(rule.features) for rule in found.rules] == [set(common)]
        more = found.further
        assert more is not None
        assert set(more.rule.features) == set(rare)
        before = found.rules.covers(frame).any(axis=1)
        after = before | more.rule.covers(frame)
        assert more.outliers == int((after & ~before & is_outlier).sum()) > 35
        score = f1(int((after & is_outlier).sum()), int(after.sum()), int(is_outlier.sum()))
        assert more.score == score > found.score
        assert found.frontier == ((0, 0.0), (2, found.score), (2 + more.rule.length, more.score))
        assert f"One more rule, length {more.rule.length}" in " ".join(str(found).split())
        assert found.check is not None
        assert found.check.conclusion == "hold"


@pytest.mark.parametrize("method", ["distilled", "stair", "refined", "local", "id3", "cart"])
def test_the_frontier_is_there_for_every_method(tmp_path: Path, method: str) -> None:
    """Each point is the score of so many outlier rules on all rows; the last one, but for one more
    rule, is that of all of them."""
    frame = attacks(n_rows=4000).drop(columns="e")
    frame["label"] = (frame.label != "normal").astype(int)
    found = summarize(
        files(frame, tmp_path / "data"), engine="duckdb", method=method, sample=1500,
        validate=0, **FAST,
    )  # fmt: skip
    own = [k for k, rule in enumerate(found.rules) if rule.label == "outlier"]
    lengths = [length for length, _ in found.frontier]
    assert lengths == sorted(lengths)
    assert len(lengths) == 1 + len(own) + (found.further is not None)
    covered = found.rules.covers(frame.drop(columns="label"))[:, own].any(axis=1)
    right = int((covered & (frame.label == 1)).sum())
    score = f1(right, int(covered.sum()), int(frame.label.sum()))
    assert found.frontier[len(own)] == (sum(found.rules.rules[k].length for k in own), score)


@pytest.mark.parametrize("method", ["distilled", "stair"])
def test_a_copy_of_the_label_and_an_afternoon_are_suspicious(tmp_path: Path, method: str) -> None:
    """They are named as in memory."""
    frame = attacks(n_rows=5000).drop(columns="e")
    frame["label"] = (frame.label == "flood").astype(int)
    rng = np.random.default_rng(0)
    minutes = np.where(frame.label == 1, rng.integers(0, 240, 5000), rng.integers(1e4, 1e6, 5000))
    frame["when"] = np.datetime64("2024-03-05T12:00", "s") + minutes * np.timedelta64(60, "s")
    frame["copy"] = frame.label * 2.0
    found = summarize(
        files(frame, tmp_path / "data"), engine="duckdb", method=method, sample=2500,
        validate=0, **FAST,
    )  # fmt: skip
    text = " ".join(found.suspects)
    assert "if copy was made from the verdict" in text or "if when was made" in text
    assert "when alone would tell the outliers apart, by a stretch of time on 2024-03-05" in text


def test_limits_on_lists_hold_for_samples_too(tmp_path: Path) -> None:
    """No clause names more values than allowed, and none that fewer rows have than asked for."""
    rng = np.random.default_rng(2)
    n = 8000
    code = rng.integers(0, 60, n)
    frame = pd.DataFrame({"shop": [f"s{k:02d}" for k in code], "x": rng.normal(size=n)})
    frame["label"] = ((code < 9) & (frame.x > 0.5)).astype(int)
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {**FAST, "engine": "duckdb", "sample": 1500, "validate": 0}
    for most in (3, 9):
        found = summarize(pattern, max_values=most, min_rows_per_value=50, **options)
        lists = [c.values for r in found.rules for c in r.clauses if c.feature == "shop"]
        assert lists
        assert max(map(len, lists)) <= most
        assert found.settings["max_values"] == most


# --- the pieces -----------------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), n_rules=st.sampled_from([0, 1, 3, 9, 20]), spread=st.booleans())
def test_groups_say_of_rules_what_rows_say(seed: int, n_rules: int, spread: bool) -> None:
    """In any order of rules, with weights or without; and where rules do not overlap, their counts
    are enough."""
    rng = np.random.default_rng(seed)
    n = 200
    codes = rng.integers(0, 3, n).astype(np.int32)
    covered = rng.random((n, n_rules)) < 0.3
    weights = rng.integers(1, 5, n) if spread else None
    times = np.ones(n, dtype=np.int64) if weights is None else weights
    groups = groups_of(covered, codes, weights)
    assert groups.counts.sum() == times.sum()
    order = rng.permutation(n_rules).tolist()
    labels = rng.integers(0, 3, n_rules).tolist()
    given_to = groups.with_rules(order).given(labels, 0)
    by_row = [next((lab for k, lab in zip(order, labels, strict=True) if row[k]), 0)
              for row in covered]  # fmt: skip
    for positive in (None, 1):
        assert score_of_classes(given_to, groups.classes, positive, groups.counts) == (
            score_of_classes(np.array(by_row), codes, positive, times)
        )
    first = np.array([row.argmax() if row.any() else n_rules for row in covered])
    alone = np.arange(n_rules) == first[:, None]
    counts = np.zeros((n_rules, 3), dtype=np.int64)
    totals = np.bincount(codes, times, 3).astype(np.int64)
    for k in range(n_rules):
        np.add.at(counts[k], codes[alone[:, k]], times[alone[:, k]])
    apart = groups_apart(counts, totals)
    rows = groups_of(alone, codes, weights)
    for k in range(n_rules):
        assert apart.of_rule(k, 3).tolist() == rows.of_rule(k, 3).tolist() == counts[k].tolist()
    assert apart.totals(3).tolist() == totals.tolist()


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.sampled_from([0.3, 0.8]))
def test_one_more_rule_adds_most_for_its_length(seed: int, floor: float) -> None:
    """By plain counting, of groups of up to a million rows."""
    rng = np.random.default_rng(seed)
    n_groups, n_rules = 15, 6
    classes = (rng.random(n_groups) < 0.5).astype(np.int32)
    counts = rng.integers(1, 10**6, n_groups)
    covered = rng.random((n_groups, n_rules)) < 0.4
    lengths = rng.integers(1, 4, n_rules).tolist()
    chosen = rng.permutation(n_rules)[:2].tolist()
    found = one_more(classes, counts, covered, lengths, chosen, min_score=floor, min_outliers=1)
    before = covered[:, chosen].any(axis=1)

    def gain(k: int) -> float:
        new = covered[:, k] & ~before
        own = int(counts[new & (classes == 1)].sum())
        return (2 - floor) * own - floor * int(counts[new & (classes == 0)].sum())

    worth = [gain(k) / lengths[k] ** 0.8 for k in range(n_rules)]
    if found is None:
        assert max(worth) <= 1e-6
    else:
        assert worth[found] == pytest.approx(max(worth))
        assert found not in chosen


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6), kinds=st.booleans())
def test_a_check_from_counts_is_that_of_the_rows(seed: int, kinds: bool) -> None:
    """Rows in groups, or each by itself: the same scores, chance and shares found again."""
    rng = np.random.default_rng(seed)
    n = 120
    rows = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 3, n), rng.integers(0, 3, n),
                            rng.integers(0, 2, n), rng.random(n) < 0.4])  # fmt: skip
    distinct, counts = np.unique(rows.astype(np.int32), axis=0, return_counts=True)
    positive, of = (None, [1, 2]) if kinds else (1, [])

    def checked(table: Any, times: Any) -> Any:
        codes, predicted, learned, fold, covered = table.T
        own = [(covered == 1) & (codes == 1)]
        tested = [np.flatnonzero(fold == k) for k in (0, 1)]
        return check_of(predicted, tested, codes, learned, positive, own, [1], of, times)

    assert checked(rows.astype(np.int32), None) == checked(distinct, counts)


@settings(max_examples=examples(40), deadline=None)
@given(
    n_rows=st.integers(1, 120),
    most=st.integers(1, 60),
    cuts=st.lists(st.integers(0, 120), max_size=4),
    seed=st.integers(0, 5),
)
def test_rows_drawn_from_codes_do_not_depend_on_parts(
    n_rows: int, most: int, cuts: list[int], seed: int
) -> None:
    """Added in one piece, or in parts that come in any order."""
    codes, labels = np.arange(n_rows, dtype=np.uint16), np.zeros(n_rows, dtype=np.uint8)
    whole = CodeSample(most, seed)
    whole.add(Block([codes], labels), 0)
    bounds = sorted({0, n_rows, *(min(cut, n_rows) for cut in cuts)})
    other = CodeSample(most, seed)
    for start, stop in reversed(list(itertools.pairwise(bounds))):
        piece = CodeSample(most, seed)
        piece.add(Block([codes[start:stop]], labels[start:stop]), start)
        other.merge(piece)
    assert whole.block is not None
    assert other.block is not None
    drawn = whole.block.codes[0].tolist()
    assert other.block.codes[0].tolist() == drawn == sorted(drawn)
    assert len(drawn) == min(most, n_rows)


def test_the_table_in_the_document_is_that_of_the_results() -> None:
    """The second kind is named where one more rule is looked for, and no frontier is empty."""
    results = json.loads((ROOT / "benchmarks" / "results" / "next_rule.json").read_text())
    assert table(results) in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for run in results:
        assert len(run["frontier"]) > 1
        if run["method"] == "distilled":
            assert run["rows"] == 10_000_000
            assert run["its columns"] == sorted(KINDS["rare"][1])
