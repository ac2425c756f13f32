"""Rules as code: the Python function, pandas and polars label rows exactly as the rules do."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from export_cases import LOTS, SOME, Case, cases
from stair import summarize
from stair.export.code import Code
from stair.export.masks import has_exceptions
from stair.export.pandas import pandas_labels, pandas_masks, to_pandas
from stair.export.polars import polars_label, polars_masks, polars_rule, to_polars
from stair.export.python import to_python
from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema


def _run(text: str) -> dict[str, Any]:
    """What an exported file defines."""
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec", dont_inherit=True), space)
    return space


@LOTS
@given(cases())
def test_the_python_function_labels_rows_as_the_rules_do(case: Case) -> None:
    found = _run(to_python(case.rules))
    assert [found["rule_number"](row) for row in case.rows()] == case.numbers
    assert [found["label"](row) for row in case.rows(None)] == case.labels
    if has_exceptions(case.rules):
        assert [found["exception_number"](row) for row in case.rows()] == case.exceptions


@SOME
@given(cases())
def test_the_python_function_needs_nothing_but_python(case: Case) -> None:
    """Only the standard library is imported, nothing is evaluated from text."""
    tree = ast.parse(to_python(case.rules))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    imported |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert imported <= {"datetime", "re", "typing", "zoneinfo"}
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert not names & {"eval", "exec", "compile", "__import__", "open"}


def _frame(case: Case) -> pd.DataFrame:
    return pd.DataFrame(case.table, index=[f"row {k}" for k in range(len(case.numbers))])


@LOTS
@given(cases())
def test_pandas_labels_rows_as_the_rules_do(case: Case) -> None:
    """The functions, and the text of the functions."""
    frame = _frame(case)
    found = _run(to_pandas(case.rules))
    assert found["rule_number"](frame).tolist() == case.numbers
    labels = pandas_labels(case.rules, frame)
    assert labels.tolist() == found["label"](frame).tolist() == case.labels
    assert labels.index.equals(frame.index)
    if has_exceptions(case.rules):
        assert found["exception_number"](frame).tolist() == case.exceptions
    covered = case.rules.matches(case.values).applies
    for number, mask in enumerate(pandas_masks(case.rules, frame)):
        assert frame[mask].index.equals(frame.index[covered[:, number]])


@LOTS
@given(cases())
def test_polars_labels_rows_as_the_rules_do(case: Case) -> None:
    """The expressions, and the text of the expressions."""
    rows = len(case.numbers)
    frame = pl.DataFrame(
        {name: _series(values) for name, values in case.table.items()}
    ).with_row_index("place of the row")
    found = _run(to_polars(case.rules))
    for rule, label in (
        (polars_rule(case.rules), polars_label(case.rules)),
        (found["RULE_NUMBER"], found["LABEL"]),
    ):
        done = frame.select(pl.col("place of the row"), rule.alias("r"), label.alias("l"))
        assert done["r"].to_list() == case.numbers
        assert done["l"].to_list() == case.labels
    if has_exceptions(case.rules):
        lifted = frame.select(found["EXCEPTION_NUMBER"].alias("e"))["e"]
        assert lifted.to_list() == case.exceptions
    covered = case.rules.matches(case.values).applies
    for number, mask in enumerate(polars_masks(case.rules)):
        chosen = frame.filter(mask)["place of the row"].to_list()
        assert chosen == [k for k in range(rows) if covered[k, number]]


@pytest.mark.parametrize("method", ["stair", "local"])
def test_polars_reads_a_column_once(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """It was read anew wherever the rules spoke of it, and the partition of a row was looked for in
    every rule: 24 rules for partitions took two minutes for 308 rows."""
    from stair.export import polars_reader

    n_read = []
    read = polars_reader._floats

    def counted(column: pl.Series, reader: Any) -> pl.Series:
        n_read.append(column.name)
        return read(column, reader)

    monkeypatch.setattr(polars_reader, "_floats", counted)
    numbers = np.arange(120.0)
    flags = [int(k % 20 < 6) for k in range(120)]
    summary = summarize({"a": numbers, "b": numbers % 20}, labels=flags, method=method)
    assert len(summary.rules) > 1 or method == "stair"
    frame = pl.DataFrame({"a": numbers, "b": numbers % 20})
    assert len(frame.select(summary.polars_label())) == 120
    assert sorted(n_read) == sorted(summary.rules.used)


def _series(values: Any) -> pl.Series:
    listed = values.tolist()
    if values.dtype.kind == "M":
        return pl.Series(listed, dtype=pl.Datetime("us"))
    if values.dtype.kind == "f":
        return pl.Series(listed, dtype=pl.Float64)
    is_flag = any(isinstance(v, bool) for v in listed)
    return pl.Series(listed, dtype=pl.Boolean if is_flag else pl.String)


def test_what_is_inverted_is_inverted_before_anything_else() -> None:
    """~x.is_in(...).fill_null(False) was written, which inverts last: missing days were covered."""
    assert str((~Code("x").is_in([1])).fill_null(False)) == "(~x.is_in([1])).fill_null(False)"


CLAUSES = (
    Interval("n", 1.0, missing=True),
    Among("flag", (True,)),
    Among("code", (1, 2), negated=True),
    Among("word", ("DE", "FR")),
    Period("t", after=np.datetime64("2024-05-01T10:00", "us")),
    Interval("hour", 9.0, 10.0),
    Among("day", ("Wednesday",), missing=True),
    Mentions("note", "e"),
)
SCHEMA = Schema((
    Field("n", "number", "n"),
    Field("flag", "category", "flag", type="flag"),
    Field("code", "category", "code", type="number"),
    Field("word", "category", "word"),
    Field("note", "text", "word"),
    Field("t", "time", "t"),
    Field("hour", "number", "t", "hour"),
    Field("day", "category", "t", "weekday"),
))  # fmt: skip
TIMES = [
    "2024-05-01T12:20:30+02:00",
    None,
    "2024-05-02T00:00:00+02:00",
    "2023-01-01T00:00:00+00:00",
]


def _pandas_frames() -> list[pd.DataFrame]:
    """The same rows in several of the types that pandas has for them."""
    zoned = pd.to_datetime(pd.Series(TIMES), utc=True)
    naive = zoned.dt.tz_localize(None)
    return [
        pd.DataFrame({"n": n, "flag": flag, "code": code, "word": word, "t": t})
        for n, flag, code, word, t in (
            (pd.array([1, 2, None, 3], "Int64"), pd.array([True, None, False, True], "boolean"),
             pd.array([1, None, 3, 2], "Int64"), pd.array(["DE", "FR", None, "x"], "string"),
             zoned.dt.tz_convert("Europe/Berlin")),
            ([1.0, 2.0, np.nan, 3.0], np.array([True, None, False, True], dtype=object),
             [1.0, np.nan, 3.0, 2.0], pd.Categorical(["DE", "FR", None, "x"]),
             naive.dt.strftime("%Y-%m-%d %H:%M:%S").astype(object).where(naive.notna(), None)),
            (np.array([1, 2, None, 3], dtype=object), [1.0, np.nan, 0.0, 1.0],
             np.array([1, None, 3, 2], dtype=object),
             np.array(["DE", "FR", None, "x"], dtype=object),
             naive.astype("datetime64[ns]")),
        )
    ]  # fmt: skip


@pytest.mark.parametrize("frame", _pandas_frames())
def test_pandas_in_all_its_types(frame: pd.DataFrame) -> None:
    """Nullable, categorical and text columns, zoned times: read as `summarize` reads them."""
    values = SCHEMA.read(frame)
    for clause in CLAUSES:
        rules = RuleSet((Rule((clause,), 1),), (0, 1), SCHEMA, 0, (1.0, 1.0), 1)
        expected = rules.predict(values).tolist()
        assert pandas_labels(rules, frame).tolist() == expected, clause
        exported = _run(to_pandas(rules))
        assert exported["label"](frame).tolist() == expected, clause
        label = _run(to_python(rules))["label"]
        assert [label(row) for row in frame.to_dict("records")] == expected, clause


def test_polars_in_all_its_types() -> None:
    """Whole numbers, categoricals, dates and zoned times."""
    zoned = pl.Series(TIMES).str.to_datetime(time_zone="UTC", time_unit="ns")
    frames = [
        pl.DataFrame({"n": n, "flag": [True, None, False, True], "code": code,
                      "word": pl.Series(["DE", "FR", None, "x"], dtype=word), "t": t})
        for n, code, word, t in (
            ([1, 2, None, 3], [1, None, 3, 2], pl.Categorical,
             zoned.dt.convert_time_zone("Europe/Berlin")),
            ([1.0, 2.0, math.nan, 3.0], [1.0, math.nan, 3.0, 2.0], pl.String,
             zoned.dt.replace_time_zone(None).dt.date()),
        )
    ]  # fmt: skip
    for frame in frames:
        values = SCHEMA.read(frame)
        for clause in CLAUSES:
            rules = RuleSet((Rule((clause,), 1),), (0, 1), SCHEMA, 0, (1.0, 1.0), 1)
            found = frame.select(polars_label(rules)).to_series().to_list()
            assert found == rules.predict(values).tolist(), clause
