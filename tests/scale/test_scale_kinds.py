"""Values of every type: large engines learn with the schema of memory, and read by it alike."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from large import every_kind, mixed
from settings import summarize

dd = pytest.importorskip("dask.dataframe")
# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")

ENGINES = ["duckdb", "dask"]
KINDS = {"number code": "category", "whole": "category", "day": "category", "clock": "category"}


def _alike(large: stair.Summary, small: stair.Summary) -> None:
    """Rules, their figures, and all that they will read new tables by."""
    assert large.rules == small.rules
    assert large.rules.schema.fields == small.rules.schema.fields
    for one, other in zip(large.fields, small.fields, strict=True):
        assert (one.name, one.known) == (other.name, other.known)
    assert large.rules.schema.columns == small.rules.schema.columns
    assert (large.evidence, large.trace) == (small.evidence, small.trace)
    assert (large.score, large.unexplained) == (small.score, small.unexplained)
    assert large.left_out == small.left_out
    assert large.notes == small.notes


def _from(engine: str, frame: pd.DataFrame, folder: Path) -> tuple[Any, Any]:
    """The data for an engine in several parts, and the same for memory."""
    if engine == "dask":
        data = dd.from_pandas(frame, npartitions=3)
        return data, data.compute()  # Dask itself makes text of objects
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_parquet(folder / "data.parquet", index=False, row_group_size=150)
    return folder / "data.parquet", folder / "data.parquet"


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), as_asked=st.booleans(), parts=st.booleans())
def test_every_type_is_learned_and_read_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory, engine: str, seed: int, as_asked: bool, parts: bool
) -> None:
    """Clocks and durations were categories of floats for DuckDB, numbers beyond 2**53 were merged,
    and the rules carried no types: what an engine had learned read new tables by guess."""
    frame = every_kind(seed)
    data, here = _from(engine, frame, tmp_path_factory.mktemp("kinds"))
    options: dict[str, Any] = {
        "labels": "label",
        "min_score": 0.9,
        "max_rule_length": 4,
        "kinds": KINDS if as_asked else None,
        "time_parts": parts,
    }
    small = summarize(here, method="stair", name="data", **options)
    large = summarize(data, method="stair", engine=engine, name="data", **options)
    _alike(large, small)
    new = every_kind(seed + 1, 60).astype({"code": "category", "whole": float})
    assert _said(large, new) == _said(small, new)


def _said(summary: stair.Summary, new: pd.DataFrame) -> Any:
    """What rules say of a new table: labels and notes, or why they refuse it."""
    try:
        return summary.rules.predict(new).tolist(), summary.rules.read(new).notes
    except stair.StairError as error:
        return str(error)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ["cart", "stair", "distilled"])
def test_a_sample_has_the_types_of_the_table(tmp_path: Path, engine: str, method: str) -> None:
    """Numbers beyond 2**53 went through floats on their way into the sample."""
    frame = every_kind(3)[["wide", "wide and gappy", "unsigned", "far", "whole", "label"]]
    frame["label"] = (frame["wide"] == 2**60 + 3).astype(int)
    data, here = _from(engine, frame, tmp_path)
    options: dict[str, Any] = {"labels": "label", "method": method, "min_score": 0.9}
    options |= {"exclude": ["far"]} if method == "cart" else {}
    small = summarize(here, **options)
    large = summarize(data, engine=engine, sample=len(frame), **options)
    assert large.rules.rules == small.rules.rules
    assert large.rules.schema.fields == small.rules.schema.fields
    assert large.score == small.score


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("method", ["stair", "distilled"])
@pytest.mark.parametrize("n_values", [4, 3000])
def test_whole_numbers_beyond_all_floats_are_told_apart(
    tmp_path: Path, engine: str, method: str, n_values: int
) -> None:
    """2**60 + i // 3 gave an F1 of 0.889 where 1.0 is possible; one by one and in bins."""
    ids = 2**60 + np.arange(6000) % n_values
    near = ids - 2**60 < n_values // 4
    frame = pd.DataFrame({"id": ids, "label": near.astype(int)})
    data, _ = _from(engine, frame, tmp_path)
    found = summarize(
        data, "label", method=method, engine=engine, min_score=0.95, kinds={"id": "number"}
    )
    _is_right(found, frame, n_values < 1024)
    far = np.datetime64("9999-12-01T00:00:00", "us") + np.arange(6000) % n_values
    frame = pd.DataFrame({"seen": far, "label": near.astype(int)})
    data, _ = _from(engine, frame, tmp_path / "times")
    found = summarize(data, "label", method=method, engine=engine, min_score=0.95)
    _is_right(found, frame, n_values < 1024)


def _is_right(found: stair.Summary, frame: pd.DataFrame, exact: bool) -> None:
    told = found.rules.predict(frame) == "outlier"
    hits = int((told & (frame.label == 1)).sum())
    assert found.score == 2 * hits / int(told.sum() + frame.label.sum())
    assert found.score == 1.0 or (found.score > 0.99 and not exact)


@pytest.mark.parametrize("of", ["numbers", "times"])
def test_numbers_and_times_as_categories_have_short_lists(tmp_path: Path, of: str) -> None:
    """The rare values of a column that is read as names share one name, and lists are short, as in
    memory. The engine kept every value of numbers and of times: one clause listed 65 of them."""
    random = np.random.default_rng(0)
    n = 2000
    codes = random.integers(0, 600, n)
    codes = np.where(random.random(n) < 0.5, random.choice([1000, 2000, 3000], n), codes)
    bad = (codes == 1000) | ((codes % 7 == 0) & (codes < 600))
    days = np.datetime64("2024-01-01", "us") + codes.astype("timedelta64[D]")
    table = pa.table({"code": days if of == "times" else codes, "bad": bad.astype(int)})
    path = tmp_path / "codes.parquet"
    pq.write_table(table, path)
    rules = [
        stair.summarize(path, labels="bad", kinds={"code": "category"}, engine=engine,
                        method="stair", min_score=0.6).rules
        for engine in ("memory", "duckdb")
    ]  # fmt: skip
    assert list(map(str, rules[1])) == list(map(str, rules[0]))
    assert max(clause.n_bounds for rule in rules[1] for clause in rule.clauses) <= 12


@pytest.mark.parametrize("engine", ENGINES)
def test_texts_that_name_no_day(tmp_path: Path, engine: str) -> None:
    """A batch of texts like 2024-13-01 ended in a traceback. Where nearly all are times, the others
    are missing and it is said; where many are none, all are names."""
    days = [f"2024-{m:02}-{d:02}" for m in range(1, 13) for d in (1, 9, 17, 25)]
    texts = np.array([*days, "2024-13-01"] * 20, dtype=object)
    frame = pd.DataFrame({"day": texts, "label": (texts > "2024-09").astype(int)})
    frame["half"] = np.where(np.arange(len(frame)) % 2, frame.day, "2024-02-30")
    frame.loc[frame.index % 7 > 0, "half"] = "2024-02-31"
    data, here = _from(engine, frame, tmp_path)
    options: dict[str, Any] = {"labels": "label", "min_score": 0.9}
    small = summarize(here, method="stair", name="data", **options)
    large = summarize(data, method="stair", engine=engine, name="data", **options)
    _alike(large, small)
    assert [(f.name, f.kind) for f in large.fields if f.name == "day"] == [("day", "time")]
    assert any('20 rows have values of "day" that are no time' in note for note in large.notes)
    options["method"] = "stair"
    only = summarize(data, engine=engine, include=["half"], **options)
    assert only.fields[0].kind == summarize(here, include=["half"], **options).fields[0].kind


@pytest.mark.parametrize("writer", ["pyarrow", "polars"])
def test_nan_in_parquet_files_is_missing(tmp_path: Path, writer: str) -> None:
    """The statistics in such files know nothing of NaN, and DuckDB believes them: its own isnan is
    wrong about 30 of 30 rows. Nothing that is counted here may depend on them."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(900) < 0.3, np.nan, rng.integers(1, 5, 900) / 2)
    y = np.where(np.arange(900) % 300 < 299, np.nan, 1.0)
    label = (np.isnan(x) | (x > 1.5)).astype(int)
    path = tmp_path / "nan.parquet"
    if writer == "pyarrow":
        table = pa.table({"x": pa.array(x, from_pandas=False), "y": y, "label": label})
        pq.write_table(table, path, row_group_size=300)
    else:
        polars = pytest.importorskip("polars")
        polars.DataFrame({"x": x, "y": y, "label": label}).write_parquet(path, row_group_size=300)
    frame = pd.DataFrame({"x": x, "y": y, "label": label})
    options: dict[str, Any] = {"labels": "label", "min_score": 0.95}
    small = summarize(frame, method="stair", **options)
    large = summarize(path, method="stair", engine="duckdb", **options)
    assert large.rules.rules == small.rules.rules
    assert large.evidence == small.evidence
    assert any(clause.missing for rule in large.rules for clause in rule.clauses)


def test_intervals_and_times_of_the_day_in_a_database(tmp_path: Path) -> None:
    """They came as texts of floats; and sums in a query, which have 128 bits, as floats."""
    import duckdb

    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT to_seconds(range % 7 * 100) AS waited, "
            "TIME '08:00:00' + to_minutes(range % 11 * 30) AS clock, [range % 3] AS list, "
            "(1::HUGEINT << 60) + range % 5 AS huge, range % 4 AS size, "
            "CAST(range % 7 > 4 OR range % 5 = 3 AS INTEGER) AS label FROM range(500)"
        )
    options: dict[str, Any] = {"labels": "label", "min_score": 0.9, "max_rule_length": 3}
    small = summarize(path, method="stair", **options)
    large = summarize(path, method="stair", engine="duckdb", **options)
    _alike(large, small)
    types = {field.name: field.type for field in large.fields}
    assert types == {"waited": "duration", "clock": "clock", "huge": "whole", "size": "whole"}
    assert large.score == 1.0


def test_columns_that_differ_in_case_alone(tmp_path: Path) -> None:
    """DuckDB calls the second one A_1, and so did the rules: no other file has such a column."""
    a, b = np.arange(200) % 7, np.arange(200) % 5
    table = pa.table({"a": a, "A": b, "label": (b > 3).astype(int)})
    pq.write_table(table, tmp_path / "data.parquet")
    found = summarize(tmp_path / "data.parquet", labels="label", engine="duckdb")
    assert found.rules.schema.columns == ("a", "A", "label")
    assert found.rules.used == {"A"}
    assert (
        found.rules.predict({"a": b, "A": a}).tolist()
        != found.rules.predict({"a": a, "A": b}).tolist()
    )


VERDICTS = {
    "signs": (1, -1),
    "pyod": (0, 1),
    "flags": (False, True),
    "words": ("ok", "fraud"),
    "floats": (1.0, -1.0),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("verdict", list(VERDICTS))
def test_a_verdict_means_the_same_to_every_entrance(
    tmp_path: Path, engine: str, verdict: str
) -> None:
    """−1/+1 as scikit-learn means it, 0/1 as PyOD does, true and false, and words."""
    inlier, outlier = VERDICTS[verdict]
    plain = mixed(10)[["size", "level", "label"]]
    frame = plain.assign(label=np.where(plain.label == 1, outlier, inlier))
    data, _ = _from(engine, frame, tmp_path)
    options: dict[str, Any] = {"min_score": 0.2, "max_rule_length": 2}
    model = stair.Stair(engine=engine, **options).fit(data, "label")
    small = stair.Stair(**options).fit(plain[["size", "level"]], frame.label)
    assert model.rules_.positive == outlier == small.rules_.positive
    assert model.rules_ == small.rules_
    large = summarize(data, labels="label", method="stair", engine=engine, **options)
    here = summarize(frame, labels="label", method="stair", **options)
    assert (large.rules, large.rules.positive) == (here.rules, here.rules.positive)
    assert large.rules.totals == here.rules.totals


def test_parts_of_several_types_are_refused() -> None:
    """Each in one sentence: which type the whole column would have, nobody knows."""
    dask = pytest.importorskip("dask")
    frame = mixed(0, 100)[["size", "label"]]
    zoned = pd.Series(pd.to_datetime(["2024-01-01"] * 50, utc=True))
    values = {
        "text": pd.Series(["a"] * 50, dtype=object),
        "true and false": pd.Series([True, False] * 25, dtype=object),
        "numbers": pd.Series(np.arange(50.0)),
        "times with a zone": zoned,
        "times": zoned.dt.tz_localize(None),
        "durations": pd.Series(pd.to_timedelta(np.arange(50), unit="s")),
        "times of the day": pd.Series([dt.time(8), dt.time(9)] * 25, dtype=object),
    }
    for (one, first), (other, second) in zip(
        values.items(), [*list(values.items())[1:], next(iter(values.items()))], strict=True
    ):
        parts = [
            frame.iloc[k * 50 : k * 50 + 50].reset_index(drop=True).assign(x=each)
            for k, each in enumerate((first, second))
        ]
        with dask.config.set({"dataframe.convert-string": False}):
            data = dd.from_delayed(list(map(dask.delayed, parts)), meta=parts[0].iloc[:0],
                                   verify_meta=False)  # fmt: skip
        for method in ("stair", "distilled"):
            with pytest.raises(
                stair.StairError, match=f'"x" holds {one} in one part of the data and {other} in'
            ):
                summarize(data, labels="label", method=method, engine="dask")


CELLS: dict[str, list[str]] = {
    "zip": ["01234", "11234", "21234"],
    "their day": ["01/02/2024", "13/02/2024", "25/12/2024"],
    "clock": ["08:00:00", "12:30:00", "23:00:00"],
    "flag": ["true", "False", " TRUE"],
    "yes": ["yes", "no", "NA"],
    "letter": ["t", "f"],
    "day": ["2024-01-01", " 2024-02-03", "2024-03-01", "NULL"],
    "time": ["2024-01-01 10:20", "2024-02-03T10:00:00.123456789"],
    "zoned": ["2024-01-01T10:00:00+02:00", "2024-02-03T10:00:00.5Z"],
    "half zoned": ["2024-01-01T10:00:00+02:00", "2024-02-03T10:00:00"],
    "no day": [*(f"2024-01-{k:02}" for k in range(1, 29)), "2024-02-30"],
    "year 0": ["0000-01-01", "2024-01-01"],
    "number": ["1", "2.5", "NA", "", " 3e2 ", "-.5"],
    "under": ["1_000", "2_000"],
    "padded": [" 1", " 2", "3 ", "+4"],
    "padded text": [" a", "a ", "b", " nan "],
    "wide": [str(2**60 + k) for k in range(4)],
    "unsigned": [str(2**64 - 1 - k) for k in range(4)],
    "gappy wide": [str(2**53 + 1), str(2**53 + 2), ""],
    "too wide": [str(2**70), str(2**71), "5"],
    "mixed": ["1", "2", "x"],
    "not a number": ["1", "NAN", "3"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "223e4567-e89b-12d3-a456-426614174000"],
    "quoted": ["a,b", 'c"d', "e\nf", "'"],
    "empty": ["", "NA"],
    "comma": ["1,5", "2,25", "7"],
    "a thousand": ["1,234", "2,000", "7"],
    "dotted day": ["31.01.2024", "03.02.2024", "01.03.2024 10:20"],
    "price": ["$1,005.09", "$7", "-$12.50", "NA"],
    "limit": ["<0.6", "2.5", " 1e3", "NA", ".5", "≥ 2000"],
    "names of limits": ["<5", ">5", "5"],
    "top": ["18", "33", "90+"],
    "long clock": ["7:05", "-12:30", "+101:59", ""],
    "parts of seconds": ["0:00:00.25", "1:02:03", "10:59:59.123456"],
    "either clock": ["45:10", "1:02:03"],
    "share": ["4.8%", "12 %"],
    "either day": ["01/02/2024", "03/04/2024"],
    "our day": ["1/31/2024 1:05 PM", "02/03/2024", ""],
}


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_csv_file_is_read_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """DuckDB's own guesses were taken: 01234 became a number, 08:00:00 a time of the day and
    13/02/2024 a time; and a sound file whose lines did not fit a guess was called damaged."""
    rng = np.random.default_rng(seed)
    columns = {
        name: rng.choice(np.array(cells, dtype=object), 200) for name, cells in CELLS.items()
    }
    columns["padded"][0] = " 1"
    odd = (columns["zip"] == "01234") ^ (columns["clock"] == "08:00:00")
    frame = pd.DataFrame({**columns, "label": odd.astype(int)})
    path = tmp_path_factory.mktemp("csv") / "data.csv"
    frame.to_csv(path, index=False, sep=str(rng.choice([",", ";"])))
    options: dict[str, Any] = {"labels": "label", "min_score": 0.9, "name": "data"}
    small = summarize(path, method="stair", **options)
    large = summarize(path, method="stair", engine="duckdb", **options)
    _alike(large, small)


def test_a_column_that_only_later_csv_files_have(tmp_path: Path) -> None:
    """DuckDB takes the columns of the first file and drops the others without a word."""
    (tmp_path / "a.csv").write_text("x,label\n1,0\n2,1\n")
    for rest, said in (("x,y,label\n1,5,0\n", 'b.csv has a column "y" that a.csv lacks'),
                       ("label\n1\n", 'b.csv lacks a column "x" that a.csv has'),
                       ("label,x\n1,5\n", "in the same order")):  # fmt: skip
        (tmp_path / "b.csv").write_text(rest)
        with pytest.raises(stair.StairError, match=said):
            summarize(tmp_path / "*.csv", labels="label", engine="duckdb")
    (tmp_path / "b.csv").write_bytes("x,label\nMünchen,0\n".encode("latin-1"))
    with pytest.raises(stair.StairError, match="UTF-8"):
        summarize(tmp_path / "b.csv", labels="label", engine="duckdb")


def test_decimals_are_the_nearest_floats(tmp_path: Path) -> None:
    """And whole ones are exact: DECIMAL is what sums of money have."""
    import duckdb

    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT CAST(range % 7 + 0.1 AS DECIMAL(18, 2)) AS money, "
            "CAST(9007199254740993 + range % 5 AS DECIMAL(18, 0)) AS id, "
            "CAST(range % 3 / 10 AS DECIMAL(38, 10)) AS share, "
            "CAST(range % 7 > 4 OR range % 5 = 3 AS INTEGER) AS label FROM range(500)"
        )
    options: dict[str, Any] = {"labels": "label", "min_score": 0.95, "name": "data"}
    small = summarize(path, method="stair", **options)
    _alike(summarize(path, method="stair", engine="duckdb", **options), small)
    assert small.score == 1.0
