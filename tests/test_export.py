"""The endings: what is written selects exactly what the rules select."""

from __future__ import annotations

import math
import sqlite3
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stair import StairError
from stair.clauses import Among, Interval, Mentions, Period
from stair.export import from_json, to_json, to_sql
from stair.export.text import fit, percent, score_in_words
from stair.rules import Rule, RuleSet
from stair.summary import summarize
from stair.table import Field, read_values

NAMES = ["plain", 'quo"te', "it's", "select", "new\nline", "<b>", "😀", "a;--b", "x" * 200]
WORDS = ["DE", "it's", 'say "hi"', "", "naïve", "É", "%_"]
TEXTS = ["Refund of É", "refund", "a REFUND!", "naïve", "it's 100%", "ÉCLAIR", ""]
TIMES = ["2024-01-01", "2024-05-01T10:20:30", "2024-05-01T10:20:30.250000"]


@st.composite
def tables_and_rules(draw: st.DrawFn) -> tuple[list[Field], dict[str, Any], RuleSet]:
    """A table with one column of each kind under hostile names, and rules that speak of them."""
    names = draw(st.permutations(NAMES))[:5]
    n = draw(st.integers(1, 12))

    def column(values: list[Any], dtype: Any) -> Any:
        drawn = draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
        array = np.empty(n, dtype=dtype)
        array[:] = drawn
        return array

    times = [np.datetime64(t, "us") for t in TIMES]
    table = {
        names[0]: column([-1.5, 0.0, 0.1, 2.0, 1e300, math.nan], np.float64),
        names[1]: column([*WORDS, None], object),
        names[2]: column([*times, np.datetime64("NaT")], "datetime64[us]"),
        names[3]: column([*TEXTS, None], object),
        names[4]: column([True, False, None], object),
    }
    kinds = ("number", "category", "time", "text", "category")
    fields = [Field(name, kind, name) for name, kind in zip(names, kinds, strict=True)]  # type: ignore[arg-type]
    fields += [
        Field("hour", "number", names[2], "hour"),
        Field("day", "category", names[2], "weekday"),
    ]
    bound = st.sampled_from([-math.inf, -1.0, 0.1, 2.0, math.inf])
    flag = st.booleans()
    time = st.sampled_from(times)
    clause = st.one_of(
        st.builds(Interval, st.just(names[0]), bound, bound, flag),
        st.builds(Among, st.just(names[1]),
                  st.lists(st.sampled_from(WORDS), max_size=3).map(tuple), flag, flag),
        st.builds(lambda t, m: Period(names[2], after=t, missing=m), time, flag),
        st.builds(lambda t, m: Period(names[2], until=t, missing=m), time, flag),
        st.builds(Mentions, st.just(names[3]),
                  st.sampled_from(["refund", "é", "É", "it's", "%"]), flag),
        st.builds(Among, st.just(names[4]), st.just((True,)), flag, flag),
        st.builds(Interval, st.just("hour"), st.sampled_from([-math.inf, 9.0]), bound, flag),
        st.builds(Among, st.just("day"), st.just(("Monday", "Sunday")), flag, flag),
    )  # fmt: skip
    conjunction = st.lists(clause, max_size=3, unique_by=lambda c: c.group).map(tuple)
    rules = draw(
        st.lists(st.builds(Rule, conjunction, st.sampled_from(["in'lier", "outlier"])), max_size=4)
    )
    features = tuple(f.name for f in fields)
    classes = ("in'lier", "outlier")
    rule_set = RuleSet(tuple(rules), classes, features, classes[0], (1.0, 1.0), "outlier")
    return fields, table, rule_set


LOTS = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _expected(fields: list[Field], table: dict[str, Any], rules: RuleSet) -> list[Any]:
    values = read_values(fields, table)
    numbers = rules.assign(values)
    return list(zip(rules.labels_of(numbers).tolist(), (numbers + 1).tolist(), strict=True))


@LOTS
@given(tables_and_rules())
def test_sql_in_duckdb_selects_what_the_rules_select(drawn: Any) -> None:
    """Hostile names, quotes, NaN (which DuckDB thinks is larger than 1), NULL, times and text."""
    fields, table, rules = drawn
    kinds = {"f": "DOUBLE", "M": "TIMESTAMP", "O": "VARCHAR"}
    with duckdb.connect() as con:
        types = [
            "BOOLEAN" if name == fields[4].name else kinds[values.dtype.kind]
            for name, values in table.items()
        ]
        columns = ", ".join(
            '"{}" {}'.format(name.replace('"', '""'), kind)
            for name, kind in zip(table, types, strict=True)
        )
        con.execute(f'CREATE TABLE "my ""table" ({columns}, place INTEGER)')
        for place, row in enumerate(_rows(table, missing_number=math.nan)):
            con.execute(
                f'INSERT INTO "my ""table" VALUES ({", ".join("?" * (len(row) + 1))})',
                [*row, place],
            )
        query = to_sql(rules, fields, 'my "table', "duckdb").rstrip().rstrip(";")
        found = con.execute(
            f"SELECT stair_label, coalesce(stair_rule, 0) FROM ({query}\n) ORDER BY place"
        ).fetchall()
    assert found == _expected(fields, table, rules)


@LOTS
@given(tables_and_rules())
def test_sql_in_sqlite_selects_what_the_rules_select(drawn: Any) -> None:
    """SQLite has no NaN and no times: NULL and text in their place."""
    fields, table, rules = drawn
    connection = sqlite3.connect(":memory:")
    columns = ", ".join('"{}"'.format(name.replace('"', '""')) for name in table)
    connection.execute(f"CREATE TABLE t ({columns}, place)")
    for place, row in enumerate(_rows(table, missing_number=None)):
        connection.execute(
            f"INSERT INTO t VALUES ({', '.join('?' * (len(row) + 1))})",
            [str(v) if hasattr(v, "year") else v for v in row] + [place],
        )
    query = to_sql(rules, fields, "t", "sqlite").rstrip().rstrip(";")
    found = connection.execute(
        f"SELECT stair_label, coalesce(stair_rule, 0) FROM ({query}\n) ORDER BY place"
    ).fetchall()
    connection.close()
    assert found == _expected(fields, table, rules)


def _rows(table: dict[str, Any], missing_number: float | None) -> list[list[Any]]:
    """The rows as Python values; times as datetime."""
    columns = []
    for values in table.values():
        is_time = values.dtype.kind == "M"
        listed = (values.astype("datetime64[us]") if is_time else values).tolist()
        if values.dtype.kind == "f":
            listed = [missing_number if math.isnan(v) else v for v in listed]
        columns.append(listed)
    return [list(row) for row in zip(*columns, strict=True)]


def test_a_dialect_that_is_not_known_is_refused() -> None:
    rules = RuleSet((), ("a", "b"), (), "a", (1.0, 1.0), "b")
    with pytest.raises(StairError, match="dialects are duckdb"):
        to_sql(rules, [], dialect="oracle")
    assert "NULL AS stair_rule" in to_sql(rules, [])


@LOTS
@given(tables_and_rules())
def test_json_reads_back_to_equal_rules(drawn: Any) -> None:
    """Through the file's own functions, with no data behind it."""
    from types import SimpleNamespace

    fields, _, rules = drawn
    counts = tuple(zip(rules.classes, (1.0, 2.5), strict=True))
    rules = replace(rules, rules=tuple(replace(rule, counts=counts) for rule in rules))
    summary: Any = SimpleNamespace(
        rules=rules, fields=fields, method="stair", score=0.9, score_name="F1", min_score=0.8,
        n_rows=3, meaning="m", source="s", held_out=(), left_out={}, settings={}, versions={},
    )  # fmt: skip
    saved = from_json(to_json(summary))
    assert saved.rules == rules
    assert saved.fields == tuple(fields)


def test_nothing_in_a_rules_file_is_believed() -> None:
    """A damaged file is told, not guessed: wrong types, unknown columns, other classes."""
    X = np.arange(20.0)[:, None]
    text = to_json(summarize(X, labels=(X[:, 0] > 12).astype(int)))
    for old, new in (
        ('"above": 12.0', '"above": "12"'),
        ('"feature": "x0"', '"feature": "x9"'),
        ('"missing": false', '"missing": "no"'),
        ('"label": "outlier"', '"label": "pirate"'),
        ('"kind": "number"', '"kind": "pickle"'),
    ):
        assert old in text
        with pytest.raises(StairError, match="is damaged"):
            from_json(text.replace(old, new))


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1.0, "100%"), (0.996, "99.6%"), (0.004, "0.4%"), (0.99999, ">99.99%"),
     (0.00001, "<0.01%"), (0.5, "50%"), (math.nan, "–")],
)  # fmt: skip
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_score_is_never_rounded_across_its_floor() -> None:
    """0.7997 is not "0.80", and 0.9996 is not "1.00"."""
    assert score_in_words(0.7997, 0.8) == "0.7997"
    assert score_in_words(0.8004, 0.8) == "0.8004"
    assert score_in_words(0.9996, 0.8) == "0.9996"
    assert score_in_words(0.85, 0.8) == "0.85"
    assert score_in_words(1.0, 0.8) == "1.00"


@given(st.lists(st.text(alphabet="ab ≤1", min_size=1, max_size=90), min_size=1, max_size=5),
       st.integers(60, 120))  # fmt: skip
def test_a_table_fits_its_width(words: list[str], width: int) -> None:
    rows = [(text, "1,234", "99%") for text in words]
    assert all(len(line) <= width for line in fit(("Rules", "rows", "right"), rows, width))


def test_a_missing_date_reads_back_as_a_missing_date() -> None:
    """Whether the column has whole days was lost where the clause says "is missing"."""
    dates = np.array(["2024-01-01", "NaT", "2024-01-01", "2024-01-02"] * 5, dtype="datetime64[us]")
    summary = summarize({"day": dates}, labels=np.isnat(dates))
    assert from_json(to_json(summary)).rules == summary.rules
