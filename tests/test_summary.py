"""One call from any table and any verdict to the same rules, with honest figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import IsolationForest
from sklearn.metrics import accuracy_score, f1_score

import stair
from settings import summarize as by_settings
from stair import Interval, StairError, Summary
from stair.apply import apply_rules
from stair.data import from_object, write_table
from stair.demo import payments
from stair.export import from_json, to_json
from stair.report import report_of
from strategies import examples

COLUMNS = ("amount", "hour", "country", "merchant", "device")


def summarize(*given: Any, **settings: Any) -> Summary:
    """Disjoint rules unless a test asks for others: what is tried here holds for every method, and
    these are learned in no time."""
    return by_settings(*given, **{"method": "stair", **settings})


@pytest.fixture(scope="module")
def table() -> dict[str, np.ndarray]:
    return {name: values[:1500] for name, values in payments().items()}


def test_the_demo_names_the_four_planted_kinds() -> None:
    """At most 8 outlier rules of at most 3 attributes recover the planted fraud at F1 > 0.9."""
    summary = by_settings(payments(), labels="flagged", min_score=0.9, max_rule_length=3)
    rules = summary.rules.outlier_rules
    assert len(rules) <= 8
    assert all(rule.length <= 3 for rule in rules)
    assert summary.score > 0.9
    words = [str(rule) for rule in rules]
    for kind in (
        ("amount >", "country not in {DE, FR, NL}"),
        ("hour ≤ 4", "merchant = electronics"),
        ('note mentions "refund"', "amount ≤"),
        ("device is missing", "amount"),
    ):
        assert any(all(part in text for part in kind) for text in words), kind


def _rules_of(**given: Any) -> Any:
    return summarize(**given).rules


def test_the_same_labels_in_any_coding_give_the_same_rules(table: dict[str, Any]) -> None:
    """0/1, bool, -1/+1, words: what is learned does not depend on how outliers are written."""
    flags = table["flagged"]
    data = {name: table[name] for name in COLUMNS}
    expected = _rules_of(data=data, labels=flags)
    codings = [
        flags.astype(bool),
        np.where(flags == 1, -1, 1),
        np.where(flags == 1, "fraud", "fine").tolist(),
        flags.astype(float),
        pd.Series(flags).astype("Int64"),
        pl.Series(flags),
        pa.array(flags),
    ]
    for coding in codings:
        assert _rules_of(data=data, labels=coding) == expected
    words = np.where(flags == 1, "b", "a")
    assert _rules_of(data=data, labels=words, positive="b") == expected


def test_scores_and_detector_objects_give_the_same_rules(table: dict[str, Any]) -> None:
    """A verdict as scores, as scikit-learn's detector and as PyOD's, all of one mind."""
    data = {name: table[name] for name in ("amount", "hour")}
    X = np.column_stack([data["amount"], data["hour"].astype(float)])
    forest = IsolationForest(random_state=0, contamination=0.05).fit(X)
    expected = _rules_of(data=data, labels=forest.predict(X))
    assert _rules_of(data=data, detector=forest) == expected
    n_flagged = int((forest.predict(X) == -1).sum())
    by_scores = _rules_of(data=data, scores=-forest.score_samples(X), contamination=n_flagged)
    assert by_scores == expected

    class Pyod:  # what a fitted PyOD detector has
        decision_scores_ = -forest.score_samples(X)
        labels_ = (forest.predict(X) == -1).astype(int)

        def decision_function(self, rows: np.ndarray) -> np.ndarray:
            return -forest.score_samples(rows)

    assert _rules_of(data=data, detector=Pyod()) == expected


def test_scores_and_labels_that_may_mean_the_opposite_are_noted(table: dict[str, Any]) -> None:
    """scikit-learn's `score_samples` is low for what is strange: its highest scores gave rules for
    the most ordinary rows, said to hold. The same where a word for normal was taken for outliers,
    and where a detector itself was given as labels."""
    data = {name: table[name] for name in ("amount", "hour")}
    X = np.column_stack(list(data.values())).astype(float)
    forest = IsolationForest(random_state=0, n_estimators=20).fit(X)
    low = forest.score_samples(X)
    for scores, is_noted in ((low, True), (-low, False), (low.tolist(), True), (low + 0.5, False)):
        notes = stair.summarize(data, scores=scores, contamination=0.04, validate=0).notes
        assert any("turn the sign around" in note for note in notes) is is_noted
    words = np.where(table["flagged"] == 1, "odd", "usual")
    for positive, is_noted in (("usual", True), ("odd", False)):
        notes = stair.summarize(data, words, positive=positive, min_score=0.5, validate=0).notes
        assert any("more than half of the rows are outliers" in note for note in notes) is is_noted
    with pytest.raises(
        StairError, match="labels= got a detector, IsolationForest; give it as detector="
    ):
        stair.summarize(data, labels=forest)


def test_a_real_pyod_detector_and_its_labels_agree(table: dict[str, Any]) -> None:
    """Not a look-alike: the library itself, where it is installed."""
    models = pytest.importorskip("pyod.models.ecod")
    data = {name: table[name] for name in ("amount", "hour")}
    X = np.column_stack([data["amount"], data["hour"].astype(float)])
    detector = models.ECOD(contamination=0.05).fit(X)
    assert _rules_of(data=data, detector=detector) == _rules_of(data=data, labels=detector.labels_)


def test_tables_of_any_kind_give_the_same_rules(table: dict[str, Any], tmp_path: Path) -> None:
    """dict, pandas, polars, Arrow, CSV, gzipped CSV, Parquet, JSON lines: one result."""
    frame = pd.DataFrame(table)
    expected = _rules_of(data=table, labels="flagged")
    assert len(expected) > 3
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_csv(tmp_path / "semicolon.csv", index=False, sep=";", encoding="utf-16")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True, date_format="iso")
    tables = {
        "pandas": frame,
        "polars": pl.DataFrame(table),
        "arrow": pa.table({name: pa.array(values.tolist()) for name, values in table.items()}),
        **{name: tmp_path / name for name in ("t.csv", "t.csv.gz", "semicolon.csv", "t.parquet")},
        "text path": str(tmp_path / "t.csv"),
    }
    for name, each in tables.items():
        assert _rules_of(data=each, labels="flagged") == expected, name
    numbers = {"x0": table["amount"], "x1": table["hour"].astype(float)}
    array = np.column_stack(list(numbers.values()))
    flags = table["flagged"]
    assert _rules_of(data=array, labels=flags) == _rules_of(data=numbers, labels=flags)


def test_a_lazy_frame_says_collect(table: dict[str, Any]) -> None:
    with pytest.raises(StairError, match=r"\.collect\(\)"):
        summarize(pl.DataFrame(table).lazy(), labels="flagged")


def test_figures_are_those_of_the_final_rules(table: dict[str, Any]) -> None:
    """F1, rows, precision and shares, counted again by other means."""
    summary = summarize(table, labels="flagged")
    frame = pd.DataFrame(table)
    predicted = summary.rules.predict(_values(summary)) == "outlier"
    assert summary.score == pytest.approx(f1_score(frame["flagged"], predicted))
    assert summary.floor_reached
    for number, each in enumerate(summary.evidence, start=1):
        rows = summary.matching_rows(number)
        wanted = 1 if each.rule.label == "outlier" else 0
        assert each.rows == len(rows)
        assert each.hits == int((frame["flagged"].iloc[rows] == wanted).sum())
        assert each.share == pytest.approx(each.hits / (frame["flagged"] == wanted).sum())
        assert each.rule.rows == each.rows
    missed = summary.unexplained_rows()
    assert summary.unexplained == len(missed)
    assert (frame["flagged"].iloc[missed] == 1).all()
    first = summary.evidence[0]
    clause, counted = first.rule.clauses[0], first.clauses[0]
    assert isinstance(clause, Interval)
    inside = clause.covers(frame[clause.feature].to_numpy())
    assert counted.of_inliers == pytest.approx(inside[frame["flagged"] == 0].mean())
    assert counted.of_outliers == pytest.approx(inside[frame["flagged"] == 1].mean())


def _values(summary: Any) -> dict[str, Any]:
    return summary._values


def test_a_class_that_no_rule_gives_is_told() -> None:
    """Six kinds of attack beside 85% of benign rows: "0 rules, accuracy 0.85", and not a word."""
    random = np.random.default_rng(0)
    kind = random.choice(
        np.array(["benign", "scan", "worm"], dtype=object), 600, p=[0.9, 0.05, 0.05]
    )
    x = random.normal(size=600) + 10 * (kind == "worm")
    found = summarize({"x": x}, labels=kind)
    said = " ".join(str(found).split())
    assert "No rule says scan or worm: the accuracy is above the floor without one." in said
    assert 'positive="scan"' in said
    found = summarize({"x": x}, labels=kind, min_score=0.94)
    assert "No rule says scan: the accuracy" in " ".join(str(found).split())
    assert any("No rule says scan" in note for note in report_of(found).notes)
    assert "No rule says" not in str(summarize({"x": x}, labels=kind == "worm"))


def test_more_than_two_classes_are_scored_by_accuracy() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0.5, "high", np.where(X[:, 1] > 0.5, "wide", "plain"))
    summary = summarize(X, labels=y, min_score=0.9)
    assert summary.score_name == "accuracy"
    assert summary.score == pytest.approx(accuracy_score(y, summary.rules.predict(X)))
    assert summary.n_outliers == 0
    assert "high: rows where" in str(summary)


def test_a_notebook_shows_the_table(table: dict[str, Any]) -> None:
    """The fragment alone: no page around it, every rule in a row of its own."""
    summary = summarize(table, labels="flagged")
    html = summary._repr_html_()
    assert "<html" not in html
    assert html.count("<tr>") == len(summary.rules) + 1


def test_matches_gives_the_rows_back_as_they_came(table: dict[str, Any], tmp_path: Path) -> None:
    frame = pd.DataFrame(table)
    summary = summarize(frame, labels="flagged")
    rows = summary.matches(1)
    assert isinstance(rows, pd.DataFrame)
    assert len(rows) == summary.evidence[0].rows
    assert isinstance(summarize(pl.DataFrame(table), labels="flagged").matches(1), pl.DataFrame)
    as_arrow = pa.Table.from_pandas(frame)
    assert summarize(as_arrow, labels="flagged").matches(1).num_rows == len(rows)
    frame.to_parquet(tmp_path / "t.parquet")
    found = summarize(tmp_path / "t.parquet", labels="flagged").matches(1)
    assert found["id"].tolist() == rows["id"].tolist()


def test_explain_says_why_and_why_not(table: dict[str, Any]) -> None:
    frame = pd.DataFrame(table)
    summary = summarize(frame, labels="flagged")
    flagged = int(summary.matching_rows(1)[0])
    said = str(summary.explain(frame.iloc[flagged]))
    assert said.startswith("Outlier by rule 1: amount")
    honest = int(np.flatnonzero(table["flagged"] == 0)[5])
    said = str(summary.explain(frame.iloc[[honest]]))
    assert said.startswith("Inlier by rule")
    assert "Nearest outlier rule" in said
    with pytest.raises(StairError, match='need a column "amount"'):
        summary.explain({"hour": 3})


def test_rows_without_a_label_are_left_out_and_named(table: dict[str, Any]) -> None:
    labels = table["flagged"].astype(float)
    labels[:40] = np.nan
    data = {name: table[name] for name in COLUMNS}
    summary = summarize(data, labels=labels)
    assert summary.n_rows == 1460
    assert any("40 rows" in note for note in summary.notes)
    rest = {name: values[40:] for name, values in data.items()}
    assert summary.rules == summarize(rest, labels=labels[40:]).rules
    assert summary.matching_rows(1).min() >= 40


def test_held_out_folds_tell_whether_rules_are_stable(table: dict[str, Any]) -> None:
    """Pure noise cannot be explained on rows that were kept aside."""
    stable = summarize(table, labels="flagged", validate=3)
    assert len(stable.held_out) == 3
    assert np.mean(stable.held_out) > 0.6
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(300, 3))
    with_noise = summarize(noise, labels=rng.random(300) < 0.2, validate=3, max_rule_length=3)
    assert with_noise.score > 0.8 > 0.5 > np.mean(with_noise.held_out)


def test_missing_values_and_categories_in_the_rules_of_a_shop() -> None:
    """A titanic-like table: native categories need no more length than one-hot columns."""
    data, y = passengers()
    native = summarize(data, labels=y)
    one_hot = pd.get_dummies(pd.DataFrame(data), columns=["sex", "class", "port"], dummy_na=True)
    hot = summarize(one_hot.astype(float), labels=y)
    assert native.score > 0.8
    assert hot.score > 0.8
    assert native.rules.total_length <= hot.rules.total_length


def passengers() -> tuple[dict[str, Any], np.ndarray]:
    """A ship's passengers; the unusual ones depend on sex, class, port, age and fare together."""
    rng = np.random.default_rng(1912)
    n = 900
    sex = rng.choice(["male", "female"], n, p=[0.64, 0.36])
    klass = rng.choice(["first", "second", "third"], n, p=[0.24, 0.21, 0.55])
    port = rng.choice(["Southampton", "Cherbourg", "Queenstown", "Belfast"], n).astype(object)
    port[rng.random(n) < 0.05] = None
    age = np.round(rng.normal(30, 14, n).clip(0.5, 80), 1)
    age[rng.random(n) < 0.2] = np.nan
    fare = np.round(np.exp(rng.normal(2.6, 0.8, n)) * np.where(klass == "first", 4, 1), 2)
    chance = (
        0.75 * ((sex == "female") & np.isin(klass, ["first", "second"]))
        + 0.5 * (np.isin(port, ["Cherbourg", "Belfast"]) & (klass != "third"))
        + 0.6 * (age < 8)
    )
    y = rng.random(n) < np.clip(chance, 0.02, 0.97)
    return {"sex": sex, "class": klass, "port": port, "age": age, "fare": fare}, y.astype(int)


NAMES = [
    "amount", "my column", 'quote"d', "it's", "<script>alert(1)</script>", "a and b", "😀", "",
    "amount", "label", "select", "x" * 200, "new\nline", "back\\slash", "; DROP TABLE t;--",
    "outlier",
]  # fmt: skip
WORDS = ["DE", "it's", 'say "hi"', "<b>", "😀", "", "a, b", "NULL", "naïve", "x and y"]


@st.composite
def mixed_tables(draw: st.DrawFn) -> tuple[pd.DataFrame, list[int]]:
    """Frames with every kind of column and hostile names, duplicates and empty ones included."""
    n = draw(st.integers(6, 30))

    def column(kind: str) -> list[Any]:
        values: dict[str, st.SearchStrategy[Any]] = {
            "number": st.sampled_from([-1.5, 0.0, 2.0, 1e9, math.nan]),
            "whole": st.integers(-3, 3),
            "flag": st.booleans(),
            "word": st.sampled_from([*WORDS, None]),
            "time": st.sampled_from(
                [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-05-01 10:20:30"), pd.NaT]
            ),
            "text": st.lists(st.sampled_from(["refund", "Order", "naïve", "😀", "of", "gift"]),
                             min_size=3, max_size=6).map(" ".join),
        }  # fmt: skip
        return draw(st.lists(values[kind], min_size=n, max_size=n))

    every = ["number", "whole", "flag", "word", "time", "text"]
    kinds = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5))
    names = draw(st.lists(st.sampled_from(NAMES), min_size=len(kinds), max_size=len(kinds)))
    frame = pd.concat([pd.Series(column(kind)) for kind in kinds], axis=1)
    frame.columns = names
    labels = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    labels[:2] = [0, 1]
    return frame, labels


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mixed_tables())
def test_any_mixed_table_works_from_end_to_end(drawn: tuple[pd.DataFrame, list[int]]) -> None:
    """Learn, predict, explain, save and apply never crash, whatever the columns are called.

    Each row has exactly one STAIR rule, and saved rules give the training predictions again.
    """
    frame, labels = drawn
    try:
        summary = summarize(frame, labels=labels, time_parts=True)
    except StairError as error:  # every column constant or an identifier
        assert "no column is left" in str(error) or "nothing to cut" in str(error)
        return
    values = _values(summary)
    assert (summary.rules.covers(values).sum(axis=1) == 1).all()
    predicted = summary.rules.predict(values)
    assert summary.score == pytest.approx(
        f1_score(labels, predicted == "outlier", zero_division=0.0)
    )
    saved = from_json(to_json(summary))
    assert saved.rules == summary.rules
    assert saved.fields == summary.fields
    applied = apply_rules(saved, from_object(frame).columns)
    assert applied.labels.tolist() == predicted.tolist()
    assert str(summary.explain(from_object(frame.iloc[[0]]).columns))
    assert summary.to_html().count("<script>") == 1  # the page's own
    assert str(summary)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one of labels=, scores= and detector=; got none"),
        ({"labels": "flagged", "detector": "lof"}, "got labels= and detector="),
        ({"labels": "flaged"}, 'no column "flaged" in the data. Did you mean "flagged"'),
        ({"labels": [0, 1]}, "labels has 2 values, but the data has 1500 rows"),
        ({"labels": "flagged", "method": "magic"}, "no method 'magic'"),
        ({"labels": "flagged", "min_score": -0.1}, "min_score=-0.1; expected a number from 0 to 1"),
        ({"labels": "flagged", "max_rule_length": 0}, "max_rule_length=0; expected a whole number"),
        ({"labels": "flagged", "validate": 1}, "expected 0 .off. or at least 2 folds"),
        ({"labels": "flagged", "contamination": 0.1}, "contamination= goes with scores"),
        ({"detector": "lofff"}, "lof"),
        ({"detector": "lof", "contamination": 0.7}, "contamination"),
        ({"labels": "flagged", "exclude": ["amuont"]}, 'Did you mean "amount"'),
        ({"labels": "flagged", "table": "t"}, "database"),
    ],
)
def test_bad_calls_get_one_sentence(
    table: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(StairError, match=message):
        summarize(table, **given)


def test_id3_and_cart_through_the_same_door(table: dict[str, Any]) -> None:
    data = {name: table[name] for name in ("amount", "hour")}
    for method in ("id3", "cart"):
        summary = summarize(data, labels=table["flagged"], method=method, min_score=0.5)
        assert summary.method == method
        assert (summary.rules.covers(_values(summary)).sum(axis=1) == 1).all()


def test_the_label_column_is_never_an_attribute(table: dict[str, Any]) -> None:
    """Rules that say "flagged > 0" would explain nothing."""
    summary = summarize(table, labels="flagged")
    assert "flagged" not in [f.name for f in summary.fields]
    by_score = summarize(table, scores="amount", contamination=0.05)
    assert "amount" not in [f.name for f in by_score.fields]


def test_a_named_detector_and_the_default_share_are_said(table: dict[str, Any]) -> None:
    summary = summarize(
        {name: table[name] for name in ("amount", "hour", "device")}, detector="iforest"
    )
    assert summary.n_outliers == 150
    assert any("0.1" in note or "10%" in note for note in summary.notes)


def test_public_names_of_this_room() -> None:
    assert stair.Summary is type(summarize([[0.0], [1.0]] * 5, labels=[0, 1] * 5))


def test_columns_may_have_numbers_for_names() -> None:
    """pandas gives such names: `labels=2` was taken for an array of -1 values, and `exclude=[0]`
    was a traceback."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({0: rng.normal(size=200), 1: rng.normal(size=200)})
    frame[2] = (frame[0] > 1).astype(int)
    expected = str(stair.summarize(frame.rename(columns=str), labels="2", include=["0"]).rules)
    assert str(stair.summarize(frame, labels=2, include=[0]).rules) == expected
    assert stair.summarize(frame, labels=2, exclude=[0]).left_out == {"0": "excluded"}
    kinds = stair.summarize(frame, labels=2, exclude=[0], kinds={1: "category"}).fields
    assert [(field.name, field.kind) for field in kinds] == [("1", "category")]
    assert stair.summarize(frame, scores=0, contamination=5, exclude=[2]).n_outliers == 5
    with pytest.raises(StairError, match='no column "7"'):
        stair.summarize(frame, labels=2, include=[7])


def test_the_verdict_is_no_attribute_even_where_it_is_included(tmp_path: Path) -> None:
    """`include=["v", "y"], labels="y"` said that there is no column y."""
    table = {"v": np.arange(100), "w": np.arange(100) % 7, "y": np.arange(100) > 80}
    summary = stair.summarize(table, labels="y", include=["v", "y"])
    assert [field.name for field in summary.fields] == ["v"]
    assert summary.left_out == {"y": "it is the verdict"}
    write_table(tmp_path / "t.csv", {name: np.asarray(v) for name, v in table.items()})
    for include in (["v", "y"], "v"):
        large = stair.summarize(tmp_path / "t.csv", labels="y", include=include, engine="duckdb")
        assert [field.name for field in large.fields] == ["v"]
