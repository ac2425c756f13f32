"""Rules as code: the Python function, pandas and polars label rows exactly as the rules do."""

from __future__ import annotations

import ast
from typing import Any

import pandas as pd
import polars as pl
from hypothesis import given

from export_cases import LOTS, SOME, Case, cases
from stair.export.pandas import pandas_labels, pandas_masks, to_pandas
from stair.export.polars import polars_label, polars_masks, polars_rule, to_polars
from stair.export.python import to_python


def _run(text: str) -> dict[str, Any]:
    """What an exported file defines."""
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec", dont_inherit=True), space)
    return space


@LOTS
@given(cases())
def test_the_python_function_labels_rows_as_the_rules_do(case: Case) -> None:
    found = _run(to_python(case.rules, case.fields))
    assert [found["rule_number"](row) for row in case.rows()] == case.numbers
    assert [found["label"](row) for row in case.rows(None)] == case.labels


@SOME
@given(cases())
def test_the_python_function_needs_nothing_but_python(case: Case) -> None:
    """Only the standard library is imported, nothing is evaluated from text."""
    tree = ast.parse(to_python(case.rules, case.fields))
    imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported == {"datetime", "typing"}
    assert not any(isinstance(n, ast.Import) for n in ast.walk(tree))
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert not names & {"eval", "exec", "compile", "__import__", "open"}


def _frame(case: Case) -> pd.DataFrame:
    return pd.DataFrame(case.table, index=[f"row {k}" for k in range(len(case.numbers))])


@LOTS
@given(cases())
def test_pandas_labels_rows_as_the_rules_do(case: Case) -> None:
    """The functions, and the text of the functions."""
    frame = _frame(case)
    found = _run(to_pandas(case.rules, case.fields))
    assert found["rule_number"](frame).tolist() == case.numbers
    labels = pandas_labels(case.rules, case.fields, frame)
    assert labels.tolist() == found["label"](frame).tolist() == case.labels
    assert labels.index.equals(frame.index)
    covered = case.rules.covers(case.values)
    for number, mask in enumerate(pandas_masks(case.rules, case.fields, frame)):
        assert frame[mask].index.equals(frame.index[covered[:, number]])


@LOTS
@given(cases())
def test_polars_labels_rows_as_the_rules_do(case: Case) -> None:
    """The expressions, and the text of the expressions."""
    rows = len(case.numbers)
    frame = pl.DataFrame(
        {name: _series(values) for name, values in case.table.items()}
    ).with_row_index("place of the row")
    found = _run(to_polars(case.rules, case.fields))
    for rule, label in (
        (polars_rule(case.rules, case.fields), polars_label(case.rules, case.fields)),
        (found["RULE_NUMBER"], found["LABEL"]),
    ):
        done = frame.select(pl.col("place of the row"), rule.alias("r"), label.alias("l"))
        assert done["r"].to_list() == case.numbers
        assert done["l"].to_list() == case.labels
    covered = case.rules.covers(case.values)
    for number, mask in enumerate(polars_masks(case.rules, case.fields)):
        chosen = frame.filter(mask)["place of the row"].to_list()
        assert chosen == [k for k in range(rows) if covered[k, number]]


def _series(values: Any) -> pl.Series:
    listed = values.tolist()
    if values.dtype.kind == "M":
        return pl.Series(listed, dtype=pl.Datetime("us"))
    if values.dtype.kind == "f":
        return pl.Series(listed, dtype=pl.Float64)
    is_flag = any(isinstance(v, bool) for v in listed)
    return pl.Series(listed, dtype=pl.Boolean if is_flag else pl.String)
