"""A rule means what it was learned with, whatever the next table looks like."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import stair
from export_cases import as_older
from stair import StairError, summarize
from stair.apply import apply_rules
from stair.cli import app
from stair.data import from_object, read
from stair.data.decimals import shortest_between
from stair.export import from_json, load
from stair.export.pandas import to_pandas
from stair.export.python import to_python
from stair.export.sql import to_sql
from stair.rules.clauses import Among, Interval
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema, Values
from strategies import examples

N = 120


def saved(summary: Any) -> Any:
    return from_json(summary.to_json())


def one_field(kind: Any, type_: str, known: tuple[Any, ...] | None = None) -> Schema:
    return Schema((Field("v", kind, "v", type=type_, known=known),))


# --- codes that are text in one file and numbers in the next -----------------------------------


@pytest.mark.parametrize(
    ("learned", "new", "flagged"),
    [
        (["2", "3", "4", "X"], "code\n2\n3\n2\n", [1, 0, 1]),
        (["true", "false", "unknown"], "code\ntrue\nfalse\ntrue\n", [1, 0, 1]),
        (["TRUE", "FALSE", "unknown"], "code\nTRUE\nFALSE\nTRUE\n", [1, 0, 1]),
        (["007", "7", "x"], "code\n007\n7\n007\n", [1, 0, 1]),
        (["2.0", "2", "x"], "code\n2.0\n2\n2.0\n", [1, 0, 1]),
    ],
)
def test_a_code_learned_as_text_stays_text(
    tmp_path: Path, learned: list[str], new: str, flagged: list[int]
) -> None:
    """`code = "2"` covered no row of a file that has 2 and 3 alone: it was read as numbers, and
    apply, explain and the pandas export called every row an inlier without a word."""
    codes = (learned * N)[:N]
    table = {"code": codes, "flag": [int(c == learned[0]) for c in codes]}
    train, later, rules = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "rules.json"
    train.write_text(
        "code,flag\n" + "\n".join(f"{c},{f}" for c, f in zip(*table.values(), strict=True))
    )
    later.write_text(new)
    summary = summarize(train, labels="flag")
    assert summary.score == 1.0
    summary.to_json(rules)
    again = load(rules)
    frame = read(later, texts=again.rules.schema.texts())
    assert [int(v == "outlier") for v in apply_rules(again, frame).labels] == flagged
    assert "Outlier by rule 1" in again.reasons(frame)[0].words
    done = CliRunner().invoke(app, ["apply", str(rules), str(later), "-o", str(tmp_path / "o.csv")])
    assert done.exit_code == 0, done.output
    out = pd.read_csv(tmp_path / "o.csv", dtype=str)
    assert [int(v == "outlier") for v in out["stair_label"]] == flagged
    assert out["code"].tolist() == new.split()[1:]


@given(st.lists(st.sampled_from([0, 1, 2, 3, 10]), min_size=1, max_size=8))
@settings(max_examples=examples(40), deadline=None)
def test_numbers_in_any_storage_are_the_same_codes(codes: list[int]) -> None:
    """Where text was learned 2, 2.0 and "2" are one code; where numbers were, so too."""
    ways: list[Any] = [
        np.array(codes), np.array(codes, dtype=float), [str(c) for c in codes],
        pd.array(codes, dtype="Int64"), pl.Series(codes), pd.Series(codes).astype("category"),
    ]  # fmt: skip
    for way in ways:
        text = one_field("category", "text").read({"v": way})["v"].tolist()
        assert text == [str(c) for c in codes]
        number = one_field("category", "number").read({"v": way})["v"].tolist()
        assert number == codes
        assert one_field("number", "whole").read({"v": way})["v"].tolist() == codes


def test_flags_in_any_storage_are_the_same_flags() -> None:
    ways: list[Any] = [
        [True, False, None], ["true", "FALSE", None], [1, 0, None], ["1", "0", None],
        pd.array([True, False, None], dtype="boolean"), np.array([1.0, 0.0, np.nan]),
    ]  # fmt: skip
    for way in ways:
        assert one_field("category", "flag").read({"v": way})["v"].tolist() == [True, False, None]
    spelled = one_field("category", "text", ("TRUE", "FALSE", "unknown"))
    assert spelled.read({"v": [True, False]})["v"].tolist() == ["TRUE", "FALSE"]
    assert one_field("category", "text").read({"v": [True, False]})["v"].tolist() == [
        "true",
        "false",
    ]


def test_true_among_other_values_is_still_true() -> None:
    """True beside a number or a text became the text "true" before the rules could say how it was
    written, or that it is 1: the same row alone was read otherwise, and so by every export."""
    spelled = one_field("category", "text", ("TRUE", "1", "x"))
    assert spelled.read({"v": [True, 1, "x", "true"]})["v"].tolist() == ["TRUE", "1", "x", "true"]
    mixed = [True, 2.5, False, None]
    assert one_field("category", "number").read({"v": mixed})["v"].tolist() == [1, 2.5, 0, None]
    found = one_field("number", "real").read({"v": mixed})["v"]
    assert found.tolist()[:3] == [1.0, 2.5, 0.0]
    assert np.isnan(found[3])


def test_a_time_among_other_values_is_the_text_that_it_is_among_times() -> None:
    """2024-01-31 00:00:00 beside a text, and 2024-01-31T00:00:00.000000 beside other times, or in a
    row of its own: one value was two categories."""
    texts = one_field("category", "text")
    day, zoned = (
        dt.date(2024, 1, 31),
        dt.datetime(2024, 1, 31, 2, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    )
    alone = texts.read({"v": [day]})["v"].tolist()
    assert texts.read({"v": [day, zoned, "x"]})["v"].tolist() == [*alone, *alone, "x"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "sqlite"])
def test_a_text_stays_text_where_all_of_it_are_times(tmp_path: Path, ending: str) -> None:
    """JSON and SQLite have no times, so that a column of dates alone is read as such: a category
    that was text was never seen there any more. And a column of times in a CSV file that is called
    text was learned as ISO text, but applied as it stands in the file."""

    def written(name: str, days: list[str]) -> Path:
        path = tmp_path / f"{name}.{ending}"
        if ending == "csv":
            path.write_text("v\n" + "\n".join(days) + "\n")
        elif ending == "jsonl":
            path.write_text("".join(json.dumps({"v": day}) + "\n" for day in days))
        else:
            with closing(sqlite3.connect(path)) as con:
                con.execute("CREATE TABLE data (v TEXT)")
                con.executemany("INSERT INTO data VALUES (?)", [(day,) for day in days])
                con.commit()
        return path

    codes = ["2024-01-31", "2024-02-29", "open"] * 20
    summary = summarize(written("a", codes), labels=[int(c == codes[0]) for c in codes])
    rules = saved(summary).rules
    new = read(written("b", codes[:2]), texts=rules.schema.texts())
    assert rules.predict(new).tolist() == ["outlier", "inlier"]

    notes = [f"2024-06-0{k % 3 + 1} 10:00:00" for k in range(60)]
    path = written("c", notes)
    summary = summarize(path, labels=[int("-01 " in n) for n in notes], kinds={"v": "text"})
    assert summary.score == 1.0
    rules = saved(summary).rules
    again = read(path, texts=rules.schema.texts())
    assert rules.assign(again).tolist() == rules.assign(summary._values).tolist()


def test_what_was_never_seen_is_counted_and_said() -> None:
    """A value that cannot be brought to the learned type is never something else."""
    table = {"code": ["a", "b", "c"] * 40, "amount": np.arange(120.0)}
    flags = [int(c == "a" and k > 30) for k, c in enumerate(table["code"])]
    rules = saved(summarize(table, labels=flags, min_score=0.95))
    found = apply_rules(rules, {"code": ["a", "zz", "b"], "amount": ["100", "many", "7"]})
    assert found.labels.tolist() == ["outlier", "inlier", "inlier"]
    assert found.notes == (
        '1 row has a value of "code" that is new: never seen when the rules were learned',
        '1 row has a value of "amount" that is no number and counts as missing',
    )


def test_a_value_of_another_type_is_on_the_negated_side() -> None:
    """Like every value that was never seen."""
    rules = RuleSet(
        (Rule((Among("v", (1, 2), negated=True),), 1),), (0, 1),
        one_field("category", "number"), 0, (1.0, 1.0), 1,
    )  # fmt: skip
    assert rules.predict({"v": ["1", "2", "X", None, 3.5]}).tolist() == [0, 0, 1, 0, 1]


# --- columns that cannot be meant ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "type_", "values", "sentence"),
    [
        ("time", "naive", [1704067200, 1717200000], '"v" should have times .* but has numbers'),
        ("time", "naive", [20240101, 20240601], '"v" should have times .* but has numbers'),
        ("time", "naive", ["now", "today"], "should have times .* but has 'now'"),
        ("time", "naive", [True, False], "but has true and false"),
        ("number", "real", ["a", "b"], "should have numbers, but has 'a'"),
        ("number", "real", [dt.datetime(2024, 1, 1)], "has times; read it as time"),
        ("number", "duration", [1.0, 2.0], "had durations when the rules were learned"),
        ("number", "real", [dt.timedelta(1)], "but has durations here"),
        ("number", "clock", ["x"], "had times of the day when the rules were learned"),
    ],
)
def test_a_column_that_cannot_be_meant_is_refused(
    kind: str, type_: str, values: list[Any], sentence: str
) -> None:
    """Epochs were read as some time, 20240601 as a year, and "now" as the moment of reading."""
    with pytest.raises(StairError, match=sentence):
        one_field(kind, type_).read({"v": values})


def test_some_times_that_are_none_count_as_missing() -> None:
    values = one_field("time", "naive").read({"v": ["2024-01-31", "2024-02-30", "now", None]})
    assert np.isnat(values["v"]).tolist() == [False, True, True, True]
    assert values.unread == {"v": 2}
    assert values.notes == ('2 rows have values of "v" that are no time and count as missing',)


def test_an_impossible_date_does_not_stop_the_run(tmp_path: Path) -> None:
    """2024-02-30 anywhere ended a summary in an error; it is a missing time, and said so."""
    days = [f"2024-{m:02}-{d:02}" for m in range(1, 13) for d in range(1, 11)]
    flags = [int(day > "2024-09") for day in days]
    days[5] = "2024-02-30"
    summary = summarize({"day": days, "z": range(120)}, labels=flags, include=["day"])
    assert '1 row has a value of "day" that is no time and counts as missing' in summary.notes
    assert summary.score == 1.0
    path = tmp_path / "days.csv"
    path.write_text("day,flag\n" + "\n".join(f"{d},{f}" for d, f in zip(days, flags, strict=True)))
    assert summarize(path, labels="flag").rules == summary.rules
    many = [day.replace("-0", "-3") if k % 3 else day for k, day in enumerate(days)]
    kinds = [
        f.kind for f in summarize({"day": many}, labels=flags, min_score=0, include=["day"]).fields
    ]
    assert kinds == ["category"]


def test_the_rules_own_types_read_zoned_and_naive_times_alike() -> None:
    """A zone that is there now and was not then, or the reverse, is said."""
    here = dt.timezone(dt.timedelta(hours=2))
    zoned = [dt.datetime(2024, 3, 1, 10, tzinfo=here), None]
    naive = ["2024-03-01 08:00", None]
    for type_, other, words in (("zoned", naive, None), ("naive", zoned, "has one here")):
        values = one_field("time", type_).read({"v": other})
        assert values["v"][0] == np.datetime64("2024-03-01T08:00", "us")
        assert words is None or words in values.notes[0]


# --- whole numbers and times to the last bit ----------------------------------------------------


def test_whole_numbers_beyond_doubles_are_not_merged() -> None:
    """`2**60 + i // 3` gave F1 0.889 where 1.0 is possible, ids from 2**53 on a score of 0.0."""
    wide = np.array([2**60 + i // 3 for i in range(120)])
    for method in ("distilled", "stair", "refined"):
        summary = summarize({"v": wide}, labels=(wide > 2**60 + 30).astype(int), method=method,
                            kinds={"v": "number"})  # fmt: skip
        assert summary.score == 1.0, method
        rules = saved(summary).rules
        assert rules == summary.rules
        assert rules.predict({"v": wide}).tolist() == summary.rules.predict({"v": wide}).tolist()
    ids = np.repeat(2**53 + np.arange(4), 10)
    flags = (ids == 2**53 + 1).astype(int)
    summary = summarize({"v": ids}, labels=flags, min_score=0.9)
    assert summary.score == 1.0
    assert json.loads(summary.to_json())["rules"][0]["clauses"][0]["up_to"] == 2**53 + 1
    some = pd.DataFrame({"v": pd.array([None, *ids[1:]], dtype="Int64")})
    assert summarize(some, labels=flags, min_score=0.9).score == 1.0
    unsigned = (ids - 2**53).astype(np.uint64) + np.uint64(2**63)
    assert summarize({"v": unsigned}, labels=flags, min_score=0.9).score == 1.0


def test_times_beyond_doubles_are_not_merged() -> None:
    """From the year 2255 on microseconds since 1970 are more than a double holds."""
    start = np.datetime64("2300-01-01T00:00:00", "us")
    times = np.repeat(start + np.arange(40).astype("timedelta64[us]"), 3)
    flags = (times > start + np.timedelta64(20, "us")).astype(int)
    for method in ("distilled", "stair"):
        summary = summarize({"t": times}, labels=flags, method=method, min_score=0.99)
        assert summary.score == 1.0
        assert saved(summary).rules.predict({"t": times}).tolist() == [
            "outlier" if f else "inlier" for f in flags
        ]


INTEGERS = st.one_of(
    st.integers(-5, 5), st.integers(2**53 - 3, 2**53 + 3), st.integers(2**63 - 4, 2**63 + 4),
    st.integers(-(2**63), -(2**63) + 3), st.integers(2**64 - 3, 2**64 - 1),
)  # fmt: skip


@given(st.lists(INTEGERS, min_size=1, max_size=6), INTEGERS, INTEGERS, st.booleans())
def test_comparisons_are_exact_in_every_storage(
    values: list[int], low: int, high: int, missing: bool
) -> None:
    """Python's own comparisons are the oracle; bounds and values may be ints or floats."""
    clause = Interval("v", low, high, missing)
    floats = [float(v) for v in values]
    for given_, numbers in ((values, values), (floats, floats)):
        expected = [low < v <= high for v in numbers]
        objects = np.empty(len(given_) + 1, dtype=object)
        objects[:] = [*given_, None]
        assert clause.covers(objects).tolist() == [*expected, missing]
        if given_ is floats or all(-(2**63) <= v < 2**63 for v in values):
            assert clause.covers(np.array(given_)).tolist() == expected
        elif min(values) >= 0:
            assert clause.covers(np.array(given_, dtype=np.uint64)).tolist() == expected


@given(INTEGERS, INTEGERS)
def test_a_cut_between_whole_numbers_is_between_them(a: int, b: int) -> None:
    if a < b:
        cut = shortest_between(a, b)
        assert a <= cut < b


@given(st.lists(st.one_of(INTEGERS, st.just(0.5), st.just(None)), min_size=2, max_size=8), INTEGERS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whole_numbers_beside_fractions_are_exact(
    tmp_path: Path, values: list[float | int | None], bound: int
) -> None:
    """One fraction in a column of large whole numbers rounded them all to doubles, so that predict
    gave other labels than the exported function; Python's own comparisons are the oracle."""
    values = [0.5, *values]
    expected = [int(v is not None and v > bound) for v in values]
    rule = Rule((Interval("v", low=bound),), 1)
    rules = RuleSet((rule,), (0, 1), one_field("number", "real"), 0, (1.0, 1.0), 1)
    texts = ["" if v is None else str(v) for v in values]
    csv, lines, base = (tmp_path / name for name in ("a.csv", "a.jsonl", "a.sqlite"))
    csv.write_text("v,w\n" + "".join(f"{text},1\n" for text in texts))
    plain = csv.with_name("quoted.csv")  # DuckDB is not believed with blanks around a quote
    plain.write_text("v,w\n" + "".join(f'{text}, "1"\n' for text in texts))
    lines.write_text("".join(json.dumps({"v": v}) + "\n" for v in values))
    small = [v if v is None or v < 2**63 else None for v in values]
    base.unlink(missing_ok=True)
    with closing(sqlite3.connect(base)) as con:
        con.execute("CREATE TABLE t (v)")
        con.executemany("INSERT INTO t VALUES (?)", [(v,) for v in small])
        con.commit()
    frame = pd.DataFrame({"v": pd.Series(values, dtype=object)})
    for table in ({"v": values}, frame, csv, plain, lines, {"v": texts}):
        assert rules.predict(table).tolist() == expected, table
    assert rules.predict(base).tolist() == [int(v is not None and v > bound) for v in small]
    names: dict[str, Any] = {}
    exec(to_python(rules), names)
    assert [names["label"]({"v": v}) for v in values] == expected
    exec(to_pandas(rules), names)
    assert names["label"](frame).tolist() == expected
    with closing(sqlite3.connect(base)) as con:
        labelled = con.execute(to_sql(rules, "t", dialect="sqlite")).fetchall()
    assert [row[1] for row in labelled] == [int(v is not None and v > bound) for v in small]


@given(st.lists(st.one_of(INTEGERS, INTEGERS.map(float), st.just(None)), min_size=1, max_size=6))
def test_what_is_missing_beside_whole_floats_stays_missing(
    values: list[float | int | None],
) -> None:
    """[None, 2.0**63, 2**53 + 1] became whole numbers of 64 bits, which have no sign for missing:
    the first row was 2**63 without a word."""
    read = one_field("number", "whole").read({"v": values})["v"].tolist()
    assert [None if v is None or v != v else v for v in read] == values


def test_an_infinite_bound_keeps_nothing_out() -> None:
    """`Interval("x", high=5).covers([-inf])` said no where `Rule.covers` said yes."""
    values = np.array([-np.inf, 5.0, np.inf, np.nan])
    for clause in (Interval("x", high=5), Interval("x", low=5), Interval("x"), Interval("x", 5, 4)):
        alone = clause.covers(values).tolist()
        assert alone == Rule((clause,), 1).covers({"x": values}).tolist()
    assert Interval("x", high=5).covers(values).tolist() == [True, True, False, False]


# --- names, numbers and entrances ---------------------------------------------------------------


def test_numbers_of_rules_are_the_same_everywhere() -> None:
    """`summary.matching_rows(summary.explain(row).number)` was off by one."""
    table = {"x": np.arange(200.0), "c": ["a", "b"] * 100}
    summary = summarize(
        table, labels=((table["x"] > 180) | (table["x"] < 9)).astype(int), min_score=0.95
    )
    for row in (0, 190):
        number = summary.explain({"x": table["x"][row], "c": table["c"][row]}).number
        assert number is not None
        assert row in summary.matching_rows(number)
        assert summary.matching_rows(number).tolist() == summary.matching_rows(
            summary.rules[number - 1]
        ).tolist()  # fmt: skip
    for wrong in (0, 99, True):
        with pytest.raises(StairError, match="there are rules 1 to"):
            summary.matching_rows(wrong)


def test_the_verdicts_own_column_may_be_included() -> None:
    """`include=["v", "y"], labels="y"` ended in a KeyError."""
    table = {"v": np.arange(60.0), "y": [0] * 50 + [1] * 10, "w": np.zeros(60)}
    assert summarize(table, labels="y", include=["v", "y"]).rules.features == ("v",)


def test_labels_made_of_a_column_are_not_explained_by_it() -> None:
    """`labels=frame["flag"].astype(bool)` gave `flag ≥ 1`, F1 1.00: the column is the verdict in
    other words. A column of another name may be one, too, but nothing says so."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"x": random.normal(size=300), "z": random.normal(size=300)})
    frame["flag"] = (frame.x > 1.3).astype(int)
    words = frame["flag"].map({0: "ok", 1: "fraud"})
    for labels in (frame["flag"], frame["flag"].astype(bool), words, pl.Series("flag", words)):
        summary = summarize(frame, labels=labels, validate=0)
        assert [clause.feature for rule in summary.rules for clause in rule.clauses] == ["x"]
        assert summary.left_out == {"flag": "the verdict itself"}
    assert not summarize(frame, labels=words.rename("a"), validate=0).left_out
    scores = (10 - frame["x"]).rename("x")  # made of many values: what follows from a measure
    assert "x" not in summarize(frame, scores=scores, contamination=0.1, validate=0).left_out


def test_infinite_categories_are_refused_in_a_sentence() -> None:
    table = {"x": np.array([1.0, 2.0, np.inf] * 20), "z": np.arange(60.0)}
    with pytest.raises(StairError, match='"x" has infinite numbers, which cannot be categories'):
        summarize(table, labels=[0, 0, 1] * 20, kinds={"x": "category"})


def test_files_of_the_first_version_open_with_a_note(tmp_path: Path) -> None:
    """They do not say of which types the values are: that is told from the rules."""
    codes = ["2", "3", "X"] * 40
    document = json.loads(summarize({"code": codes}, labels=[c == "2" for c in codes]).to_json())
    document = as_older(document, 1)
    for field in document["fields"]:
        del field["type"], field["values"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    old = stair.export.load(str(path))
    assert "older stair" in old.notes[0]
    assert apply_rules(old, {"code": [2, 3]}).labels.tolist() == ["outlier", "inlier"]
    document["rules"][0]["clauses"][0]["in"] = [2]
    numbers = from_json(json.dumps(document))
    assert apply_rules(numbers, {"code": ["2", "3"]}).labels.tolist() == ["outlier", "inlier"]


def test_lists_and_records_are_left_out_unless_asked_for() -> None:
    table = {"tags": [["a"], ["b", "c"], {"k": 1}] * 20, "x": np.arange(60.0)}
    summary = summarize(table, labels=(table["x"] > 50).astype(int))
    assert summary.left_out["tags"] == "its values are lists, records or of several types"
    asked = summarize(table, labels=[0, 1, 0] * 20, kinds={"tags": "category"}, include=["tags"])
    assert asked.score == 1.0
    assert asked.fields[0].type == "described"


def test_values_that_were_read_are_not_read_again() -> None:
    """Values are what `Schema.read` gives: reading them again gives them back."""
    schema = one_field("category", "text")
    values = schema.read({"v": [1, 2]})
    assert isinstance(values, Values)
    assert schema.read(values) is values
    assert schema.read(from_object({"v": [1, 2]}))["v"].tolist() == ["1", "2"]
    assert RuleSet((), (0,), schema, 0, (1.0,)).predict({"v": []}).tolist() == []


def test_decimals_are_read_alike_wherever_they_come_from(tmp_path: Path) -> None:
    """Arrow rounds 4.35 to another float than everybody else, and ids of a decimal type with 20
    digits, as databases give them, were merged."""
    prices = [Decimal(n) / 100 for n in range(100, 1100)]
    ids = [2**63 + n for n in range(1000)]
    arrow = pa.table(
        {
            "price": pa.array(prices, pa.decimal128(20, 2)),
            "id": pa.array(list(map(Decimal, ids)), pa.decimal128(20, 0)),
        }
    )
    pq.write_table(arrow, tmp_path / "t.parquet")
    frames = [
        from_object(arrow), from_object(pl.DataFrame(arrow)), read(tmp_path / "t.parquet"),
        from_object({"price": prices, "id": list(map(Decimal, ids))}),
    ]  # fmt: skip
    for frame in frames:
        assert frame.columns["price"].tolist() == [float(price) for price in prices]
        assert frame.columns["id"].tolist() == ids


def test_whole_decimals_are_exact_whatever_is_behind_their_point(tmp_path: Path) -> None:
    """DuckDB gives 4611686018427387905.00 for a whole number in a column of DECIMAL(38, 2): Parquet
    and DuckDB files rounded it to a double, which an Arrow table did not."""
    ids = [2**62 + n for n in range(60)]
    decimals = pa.array([Decimal(n) for n in ids], pa.decimal128(38, 2))
    arrow = pa.table({"id": decimals, "flag": [int(n >= 2**62 + 41) for n in ids]})
    path = tmp_path / "t.parquet"
    pq.write_table(arrow, path)
    assert read(path).columns["id"].tolist() == ids
    for engine in ("memory", "duckdb"):
        kinds = {"id": "number"}
        summary = summarize(path, labels="flag", method="stair", engine=engine, kinds=kinds)
        assert summary.score == 1.0
        assert summary.rules.predict({"id": ids}).tolist().count("outlier") == 19


def test_a_zone_that_was_not_there_is_told_of_where_only_the_hour_is_used(tmp_path: Path) -> None:
    """Rules for the hour of a time without a zone were applied to the same clocks with +01:00: 161
    labels changed and nothing was said, because only the time itself was looked at."""
    hours = [3, 9, 15, 21] * 25
    local = [f"2025-03-{1 + k // 4:02}T{hour:02}:10:00" for k, hour in enumerate(hours)]
    verdict = [int(hour == 3) for hour in hours]
    (tmp_path / "t.csv").write_text("at\n" + "\n".join(local) + "\n")
    (tmp_path / "z.csv").write_text("at\n" + "\n".join(t + "+01:00" for t in local) + "\n")
    rules = stair.summarize(
        stair.Source(tmp_path / "t.csv", time_parts=True), verdict, method="stair"
    ).rules
    assert [clause.feature for rule in rules for clause in rule.clauses] == ["hour of at"] * 2
    notes = rules.schema.read(stair.data.read(tmp_path / "z.csv")).notes
    assert any("had no time zone when the rules were learned" in note for note in notes)


def test_labels_with_the_index_of_the_table_in_another_order_are_refused() -> None:
    """They were matched by their place, without a word: nonsense with F1 0.04."""
    table = pd.DataFrame({"x": np.arange(40.0)})
    y = (table["x"] > 30).astype(int)
    shuffled = y.sample(frac=1, random_state=0)
    with pytest.raises(StairError, match="the index of the table in another order"):
        stair.summarize(table, shuffled)
    with pytest.raises(StairError, match="scores have the index"):
        stair.summarize(table, scores=shuffled, contamination=0.2)
    for labels in (y, y.set_axis(range(100, 140)), shuffled.to_numpy(), shuffled.loc[table.index]):
        assert stair.summarize(table, labels, min_score=0.0) is not None
