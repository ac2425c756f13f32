"""Rows of a rule and of the unexplained where the rows are: the same as in memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import stair
from large import files, mixed

# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")


def _rows(table: object) -> list[tuple[object, ...]]:
    frame = table.df() if hasattr(table, "df") else table
    frame = frame.compute() if hasattr(frame, "compute") else frame
    assert isinstance(frame, pd.DataFrame)
    cells = frame.astype(object).where(frame.notna(), None).itertuples(index=False)
    return sorted(tuple(map(str, row)) for row in cells)


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_the_rows_of_a_rule_are_those_in_memory(tmp_path: Path, engine: str) -> None:
    """As a lazy relation or frame, of Parquet files, with the same rules; and so are the outliers
    that no rule covers, and why each row is flagged."""
    frame = mixed(3, 600)
    files(frame, tmp_path / "data")
    source = tmp_path / "data" / "*.parquet"
    found = stair.summarize(str(source), labels="label", min_score=0.7, engine=engine, validate=0)
    values, codes = found.rules.read(frame), frame["label"].astype(str)
    for number in range(1, len(found.rules) + 1):
        lazy = found.matches(number)
        assert not isinstance(lazy, pd.DataFrame)
        expected = frame[found.rules.matches(values).applies[:, number - 1]]
        assert _rows(lazy) == _rows(expected)
    missed = found.unexplained_matches()
    outlier = codes == str(found.codebook.values[1][0]) if found.codebook else codes == "1"
    own = [k for k, r in enumerate(found.rules) if r.label == found.rules.positive]
    covered = found.rules.matches(values).applies[:, own].any(axis=1)
    assert _rows(missed) == _rows(frame[outlier.to_numpy() & ~covered])
    assert len(_rows(missed)) == found.unexplained


def test_the_rows_of_a_csv_are_read_as_the_rules_read_them(tmp_path: Path) -> None:
    """01234 is no number there."""
    rows = [f"0{k % 7},{k},{int(k % 7 == 3)}" for k in range(200)]
    (tmp_path / "t.csv").write_text("code,x,y\n" + "\n".join(rows) + "\n")
    found = stair.summarize(tmp_path / "t.csv", labels="y", engine="duckdb", validate=0)
    assert {row[0] for row in found.matches(1).fetchall()} == {"03"}
    assert found.unexplained_matches().fetchall() == []
