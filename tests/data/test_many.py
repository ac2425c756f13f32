"""Folders and patterns: many files read as one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import stair
from stair import cli
from stair.data import read, write_table
from stair.demo import payments
from stair.errors import StairError
from strategies import examples

CELLS = st.sampled_from(
    ["1", "2", "007", "2.5", "", "NA", "true", "False", "x", "2024-01-02", "2024-01-02T03:04:05Z",
     str(2**60), "1e3", "-3"]
)  # fmt: skip


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
    max_examples=examples(30),
)
@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=12),
    st.lists(st.integers(1, 11), max_size=3),
    st.sampled_from([[], ["a"]]),
)
def test_a_table_in_many_files_is_read_as_the_same_table_in_one(
    tmp_path: Path, rows: list[tuple[str, str]], cuts: list[int], texts: list[str]
) -> None:
    """A column of codes that are digits in one file and letters in another is text in both."""
    for old in tmp_path.iterdir():
        old.unlink()
    whole = tmp_path / "whole.txt"
    whole.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in rows), encoding="utf-8")
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for number, (start, stop) in enumerate(pairwise(edges)):
        lines = "".join(f"{a},{b}\n" for a, b in rows[start:stop])
        (tmp_path / f"part{number}.csv").write_text("a,b\n" + lines, encoding="utf-8")
    one = read(whole, texts=texts)
    many = read(tmp_path / "part*.csv", texts=texts)
    assert many.n_rows == one.n_rows
    assert many.types == one.types
    for name, column in one.columns.items():
        assert many.columns[name].dtype.kind in (
            column.dtype.kind,
            "f" if column.dtype.kind in "iu" else "",
        )
        np.testing.assert_array_equal(many.columns[name], column)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The payments, in three files whose order is that of their names."""
    data = payments()
    for name, rows in (("a", slice(0, 1000)), ("b", slice(1000, 3000)), ("c", slice(3000, 5000))):
        part = {column: values[rows] for column, values in data.items()}
        write_table(tmp_path / f"{name}.csv", part)
    return tmp_path


def test_a_pattern_gives_the_rules_of_all_rows(folder: Path) -> None:
    """In Python and in the command, by a pattern and by the folder, as from one table."""
    options = {"labels": "flagged", "method": "stair", "validate": 0}
    one = stair.summarize(payments(), **options)
    for source in (folder / "*.csv", str(folder / "[abc].csv"), folder):
        many = stair.summarize(source, **options)
        assert many.rules == one.rules
        assert many.n_rows == 5000
    assert many.score(folder / "*.csv", "flagged") == one.score
    fewer = stair.summarize(folder / "*.csv", include=["amount", "country"], **options)
    assert fewer.n_rows == 5000
    rules = folder / "rules.json"
    words = ["summarize", f"{folder}/*.csv", "--label", "flagged", "--method", "stair",
             "--no-validate", "--json", str(rules)]  # fmt: skip
    assert CliRunner().invoke(cli.app, words).exit_code == 0
    done = CliRunner().invoke(cli.app, ["apply", str(rules), f"{folder}/*.csv"])
    assert "5,000 rows" in done.output
    done = CliRunner().invoke(cli.app, ["apply", str(rules), f"{folder}/*.csv", "-o", "x.csv"])
    assert done.exit_code == 2
    assert "--output is for the rows of one file" in done.output


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("x,y\n1,2\n", '2.csv has a column "y" that 1.csv lacks; expected the same columns'),
        ("z\n1\n", '2.csv lacks a column "x" that 1.csv has'),
    ],
)
def test_files_of_different_columns_are_refused_by_name(
    tmp_path: Path, second: str, message: str
) -> None:
    (tmp_path / "1.csv").write_text("x\n1\n2\n")
    (tmp_path / "2.csv").write_text(second)
    with pytest.raises(StairError) as refused:
        read(tmp_path / "*.csv")
    assert message in str(refused.value) or 'column "z"' in str(refused.value)
    if "y" in second:
        with pytest.raises(StairError, match=r'2\.csv has a column "y"'):
            read(tmp_path / "*.csv", columns=["x"])


def test_what_cannot_be_one_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StairError, match="no file matches"):
        read(tmp_path / "*.csv")
    with pytest.raises(StairError, match="no Parquet or CSV file in the folder"):
        read(tmp_path)
    write_table(tmp_path / "1.parquet", {"x": np.array([1.0, 2.0])})
    write_table(tmp_path / "2.parquet", {"x": np.array(["a", "b"], dtype=object)})
    with pytest.raises(StairError, match=r'"x" holds numbers in 1\.parquet but text in 2'):
        read(tmp_path / "*.parquet")
    (tmp_path / "3.csv").write_text("x\n1\n")
    with pytest.raises(StairError, match=r"mixes \.csv, \.parquet files"):
        read(tmp_path)
    with pytest.raises(StairError, match="table= and query= are for one file"):
        read(tmp_path / "*.csv", table="t")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("x\n1\n")
    (tmp_path / "a1.csv").write_text("x\n2\n")
    assert read(tmp_path / "a[1].csv").columns["x"].tolist() == [1]
