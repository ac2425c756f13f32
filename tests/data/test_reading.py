"""Every promise of stair.data.read about other files, and files that are not there."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from io_files import (
    NAN,
    PAYMENTS,
    RICH,
    RICH_NOTES,
    an_ordinary_person,
    folder_for_everybody,
    holds,
    rich_arrow,
    saved,
    times,
    without,
)
from stair.data import column_names, from_object, read, write_table
from stair.errors import StairError


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with folder_for_everybody() as folder:
        yield folder


# JSON lines --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson", "t.jsonl.gz"])
def test_json_lines(name: str, tmp_path: Path) -> None:
    rows = [
        {"i": 1, "f": 1, "s": "NA", "b": True, "t": "2024-01-31T10:00:00Z", "l": [1, {"ö": None}]},
        {"i": 2, "f": 2.5, "s": None, "b": None, "late": 2**70, "t": None, "m": 1},
        {"i": 3, "f": NAN, "s": "", "b": False, "t": "2024-01-31T10:00:00+01:00", "m": "x"},
    ]
    content = "\n\n".join(json.dumps(row) for row in rows).encode()
    path = saved(tmp_path, name, gzip.compress(content) if name.endswith(".gz") else content)
    frame = read(path)
    holds(
        frame,
        i=(np.int64, [1, 2, 3]),
        f=(np.float64, [1, 2.5, NAN]),
        s=(object, ["NA", None, ""]),
        b=(object, [True, None, False]),
        t=times("2024-01-31T10:00", None, "2024-01-31T09:00"),
        l=(object, ['[1, {"ö": null}]', None, None]),
        late=(np.float64, [NAN, 2.0**70, NAN]),
        m=(object, [None, "1", "x"]),
    )
    assert frame.notes == (
        'the times in "t" have a time zone (several offsets); bounds on them are in UTC',
    )
    assert column_names(path) == tuple(frame.columns)
    assert list(read(path, columns=["m", "i"]).columns) == ["i", "m"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"a": 1', "t.jsonl line 3 is not valid JSON"),
        ("[1]", "t.jsonl line 3 is not a JSON object"),
        ("[" * 100_000, "t.jsonl line 3 is not valid JSON"),
        ('{"a": ' + "9" * 5000 + "}", "t.jsonl line 3 is not valid JSON"),
    ],
)
def test_broken_json_lines(line: str, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, "t.jsonl", '{"a": 1}\n\n' + line + "\n")
    with pytest.raises(StairError, match=message):
        read(path)


def test_empty_json_lines(tmp_path: Path) -> None:
    with pytest.raises(StairError, match=r"t.jsonl is empty"):
        read(saved(tmp_path, "t.jsonl", "\n"))
    with pytest.raises(StairError, match=r"t.jsonl has no columns"):
        read(saved(tmp_path, "t.jsonl", "{}\n"))


# Parquet -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_parquet(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(rich_arrow(), path)
    without(
        monkeypatch,
        *({"duckdb", "pyarrow.parquet"} - {package}) if package == "duckdb" else ["duckdb"],
    )
    frame = read(path)
    holds(frame, **RICH)
    if package == "pyarrow":
        assert frame.notes == RICH_NOTES
    else:  # without pyarrow nobody knows the zone, which is said
        assert "is not known without pyarrow" in frame.notes[0]
    assert frame.source == "t.parquet"
    assert column_names(path) == tuple(RICH)
    some = read(path, columns=["s", "u"])
    holds(some, u=RICH["u"], s=RICH["s"])
    with pytest.raises(StairError, match=r'no column "catt" in t.parquet. Did you mean "cat"'):
        read(path, columns=["catt"])


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_parquet_names(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if package == "pyarrow":
        without(monkeypatch, "duckdb")
    path = tmp_path / "t.pq"
    struct = pa.array([{"a": 1, "b": [1]}])
    names = ["a", "A", "a", "", 'q"', "a.b", "st", "last"]
    pq.write_table(
        pa.table([pa.array([i]) for i in range(6)] + [struct, pa.array([7])], names=names), path
    )
    frame = read(path)
    assert list(frame.columns) == ["a", "A", "a (2)", "column 4", 'q"', "a.b", "st", "last"]
    assert [v.tolist() for v in frame.columns.values()][:6] == [[i] for i in range(6)]
    assert column_names(path) == tuple(frame.columns)
    holds(
        read(path, columns=["a (2)", "last"]), **{"a (2)": (np.int64, [2]), "last": (np.int64, [7])}
    )
    pq.write_table(pa.table({"a": [1], "a.b": [2]}), path)
    holds(read(path, columns=["a"]), a=(np.int64, [1]))


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_bad_parquet(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if package == "pyarrow":
        without(monkeypatch, "duckdb")
    with pytest.raises(StairError, match=r"t.parquet is empty \(0 bytes\)"):
        read(saved(tmp_path, "t.parquet", b""))
    with pytest.raises(StairError, match=r"t.parquet is not a Parquet file"):
        read(saved(tmp_path, "t.parquet", b"a,b\n1,2\n"))
    with pytest.raises(StairError, match=r"cannot read t.parquet, it may be damaged"):
        read(saved(tmp_path, "t.parquet", b"PAR1" + b"x" * 30 + b"PAR1"))
    pq.write_table(rich_arrow(), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    with pytest.raises(StairError, match=r"cannot read t.parquet, it may be damaged"):
        read(saved(tmp_path, "t.parquet", whole[:-20]))
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    with pytest.raises(StairError, match=r"t.parquet has no rows"):
        read(tmp_path / "t.parquet")


def test_parquet_without_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "duckdb", "pyarrow.parquet")
    pq.write_table(rich_arrow(), tmp_path / "t.parquet")
    with pytest.raises(StairError, match=r"pip install 'stair\[files\]'"):
        read(tmp_path / "t.parquet")
    with pytest.raises(StairError, match=r"pip install 'stair\[files\]'"):
        write_table(tmp_path / "u.parquet", {"a": np.array([1])})


# DuckDB and SQLite -------------------------------------------------------------------------------


@pytest.fixture
def duck(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"  # an ending that both kinds of database use
    with duckdb.connect(str(path)) as con:
        con.execute("""CREATE TABLE "pay ""ments" AS SELECT * FROM (VALUES
            (1, 1.5::DECIMAL(9,2), 'x', true, DATE '2020-01-01', 2::HUGEINT, INTERVAL 90 SECONDS,
             TIMESTAMPTZ '2020-01-01 12:00:00+02', [1, 2],
             TIMESTAMP_NS '2020-01-01 00:00:00.000001'),
            (2, NULL, NULL, NULL, DATE 'infinity', NULL, NULL, NULL, NULL, NULL))
            AS t(id, "the ""amount", c, b, d, h, i, z, l, ns)""")
    return path


def test_duckdb(duck: Path) -> None:
    before = duck.read_bytes()
    frame = read(duck)
    expected: dict[str, tuple[Any, list[Any]]] = {
        "id": (np.int64, [1, 2]),
        'the "amount': (np.float64, [1.5, NAN]),
        "c": (object, ["x", None]),
        "b": (object, [True, None]),
        "d": times("2020-01-01", None),
        "h": (np.float64, [2, NAN]),
        "i": (np.float64, [90, NAN]),
        "z": times("2020-01-01T10:00", None),
        "l": (object, ["[1, 2]", None]),
        "ns": times("2020-01-01T00:00:00.000001", None),
    }
    holds(frame, **expected)
    assert (frame.source, len(frame.notes)) == ("shop.db", 1)
    assert column_names(duck) == tuple(expected)
    holds(read(duck, columns=['the "amount']), **{'the "amount': expected['the "amount']})
    holds(read(duck, table='pay "ments', columns=["id"]), id=expected["id"])
    query = 'SELECT sum(id) AS n, max(id) AS n FROM "pay ""ments" -- all\n;'
    frame = read(duck, query=query)
    holds(frame, **{"n": (np.int64, [3]), "n (2)": (np.int64, [2])})
    assert column_names(duck, query="FROM (SELECT 1 AS one)") == ("one",)
    assert duck.read_bytes() == before
    assert [p.name for p in duck.parent.iterdir()] == ["shop.db"]


def test_duckdb_tables(duck: Path, tmp_path: Path) -> None:
    with duckdb.connect(str(duck)) as con:
        con.execute("CREATE VIEW v AS SELECT 1 AS a")
        con.execute(
            f"CREATE VIEW spy AS SELECT * FROM read_text('{saved(tmp_path, 's.txt', 'x')}')"
        )
    assert read(duck).n_rows == 2  # the only table, whatever views there are
    holds(read(duck, table="v"), a=(np.int64, [1]))
    with pytest.raises(StairError, match=r"cannot read shop.db"):
        read(duck, table="spy")
    with duckdb.connect(str(duck)) as con:
        con.execute("CREATE SCHEMA s; CREATE TABLE s.payments(a INT)")
    with pytest.raises(StairError) as caught:
        read(duck)
    assert (
        str(caught.value)
        == 'shop.db has 4 tables; choose one with table=: pay "ments, spy, v, s.payments'
    )
    with pytest.raises(
        StairError, match=r'no table "paymets" in shop.db. Did you mean "s.payments"'
    ):
        read(duck, table="paymets")
    with pytest.raises(StairError, match=r'shop.db has no rows in table "s.payments"'):
        read(duck, table="S.Payments")
    with pytest.raises(StairError, match=r"shop.db has no rows for this query"):
        read(duck, query="SELECT 1 AS a WHERE false")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELEC 1", "the query cannot be run"),
        ("SELECT nope FROM v", "the query cannot be run"),
        ("SELECT 1; SELECT 2", "must be a single SELECT"),
        ("CREATE TABLE z(a INT)", "must be a single SELECT"),
        ("DROP TABLE z", "must be a single SELECT"),
        ("", "must be a single SELECT"),
        ("SELECT CAST('x' AS INT) AS a FROM range(3)", "the query cannot be run"),
        ("SELECT * FROM read_csv('/etc/passwd')", "the query cannot be run"),
    ],
)
def test_duckdb_queries_that_do_not_work(query: str, message: str, duck: Path) -> None:
    with pytest.raises(StairError, match=message):
        read(duck, query=query)


def test_databases_that_are_none(
    duck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StairError, match=r"t.sqlite is neither a DuckDB nor a SQLite database"):
        read(saved(tmp_path, "t.sqlite", b"hello" * 10))
    with pytest.raises(StairError, match=r"t.db is empty \(0 bytes\)"):
        read(saved(tmp_path, "t.db", b""))
    with pytest.raises(StairError, match=r"cannot read cut.duckdb, it may be damaged"):
        read(saved(tmp_path, "cut.duckdb", duck.read_bytes()[:5000]))
    with pytest.raises(StairError, match=r"cannot read cut.ddb, it may be damaged"):
        read(saved(tmp_path, "cut.ddb", b"SQLite format 3\0" + b"\xff" * 5000))
    with pytest.raises(StairError, match=r"pass only one"):
        read(duck, table="a", query="SELECT 1")
    with duckdb.connect(str(tmp_path / "none.duckdb")):
        pass
    with pytest.raises(StairError, match=r"none.duckdb has no tables"):
        read(tmp_path / "none.duckdb")
    without(monkeypatch, "duckdb")
    with pytest.raises(StairError, match=r"pip install 'stair\[files\]'"):
        read(duck)


@pytest.fixture
def lite(tmp_path: Path) -> Path:
    path = tmp_path / "shop % ?#.duckdb"  # what it is, its bytes say
    with contextlib.closing(sqlite3.connect(path)) as con:
        con.execute('CREATE TABLE "pay""ments" (id INT, "a""b" REAL, c TEXT, d DATE, m, n)')
        con.executemany(
            'INSERT INTO "pay""ments" VALUES (?, ?, ?, ?, ?, ?)',
            [(1, 1.5, "x", "2024-01-31", 1, None), (2, None, None, "2024-02-01 10:00", "y", None)],
        )
        con.commit()
    return path


def test_sqlite(lite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "duckdb")
    before = lite.read_bytes()
    expected: dict[str, tuple[Any, list[Any]]] = {
        "id": (np.int64, [1, 2]),
        'a"b': (np.float64, [1.5, NAN]),
        "c": (object, ["x", None]),
        "d": times("2024-01-31", "2024-02-01T10:00"),
        "m": (object, ["1", "y"]),
        "n": (np.float64, [NAN, NAN]),
    }
    holds(read(lite), **expected)
    assert column_names(lite) == tuple(expected)
    holds(read(lite, columns=["m", 'a"b']), **{k: expected[k] for k in ('a"b', "m")})
    frame = read(
        lite, query='SELECT id, id, 2 AS two FROM "pay""ments"; -- all', columns=["two", "id (2)"]
    )
    holds(frame, **{"id (2)": (np.int64, [1, 2]), "two": (np.int64, [2, 2])})
    assert lite.read_bytes() == before
    assert [p.name for p in lite.parent.iterdir()] == [lite.name]


def test_sqlite_tables_and_queries(lite: Path) -> None:
    with contextlib.closing(sqlite3.connect(lite)) as con:
        con.execute("CREATE TABLE other (a INTEGER PRIMARY KEY AUTOINCREMENT)")
        con.commit()
    with pytest.raises(StairError, match=r'has 2 tables; choose one with table=: other, pay"ments'):
        read(lite)
    with pytest.raises(StairError, match=r'has no rows in table "other"'):
        read(lite, table="other")
    with pytest.raises(StairError, match=r'no table "othr" .* Did you mean "other"'):
        read(lite, table="othr")
    for query in ("SELEC 1", "SELECT nope", "SELECT 1; SELECT 2", "DELETE FROM other", ""):
        with pytest.raises(StairError, match=r"the query cannot be run|must be a single SELECT"):
            read(lite, query=query)
    with pytest.raises(StairError, match=r"the query cannot be run: not authorized"):
        read(lite, query=f"ATTACH '{lite.parent / 'new.db'}' AS new")
    assert [p.name for p in lite.parent.iterdir()] == [lite.name]


def test_sqlite_with_a_log_leaves_no_files_beside(lite: Path) -> None:
    with contextlib.closing(sqlite3.connect(lite)) as con:
        con.execute("PRAGMA journal_mode = WAL")
    assert read(lite).n_rows == 2
    assert [p.name for p in lite.parent.iterdir()] == [lite.name]


# Excel -------------------------------------------------------------------------------------------


def workbook(path: Path, rows: list[list[Any]], sheet: str = "First") -> Path:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    second = book.create_sheet("Second")
    second.append(["only"])
    second.append([5])
    book.create_sheet("Nothing")
    book.save(path)
    return path


def test_excel(tmp_path: Path) -> None:
    day = dt.datetime(2024, 1, 31, 10, 20)
    rows: list[list[Any]] = [
        ["i", "f", "s", "b", "d", "t", 2024, "e"],
        [1, 1.5, "x", True, day, dt.time(13, 30), 1, "#N/A"],
        [],
        [2, None, "007", False, None, None, 2.5, 3],
    ]
    path = workbook(tmp_path / "t.xlsx", rows)
    frame = read(path)
    holds(
        frame,
        **{
            "i": (np.int64, [1, 2]),
            "f": (np.float64, [1.5, NAN]),
            "s": (object, ["x", "007"]),
            "b": (np.bool_, [True, False]),
            "d": times("2024-01-31T10:20", None),
            "t": (np.float64, [13.5, NAN]),
            "2024": (np.float64, [1, 2.5]),
            "e": (np.float64, [NAN, 3]),
        },
    )
    assert column_names(path) == tuple(frame.columns)
    assert list(read(path, columns=["s", "i"]).columns) == ["i", "s"]
    holds(read(path, table="Second"), only=(np.int64, [5]))
    with pytest.raises(StairError, match=r'no sheet "Secnd" in t.xlsx. Did you mean "Second"'):
        read(path, table="Secnd")
    with pytest.raises(StairError, match=r't.xlsx has nothing in sheet "Nothing"'):
        read(path, table="Nothing")


def test_excel_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StairError, match=r"t.xlsx row 3 has 3 cells, expected 2"):
        read(workbook(tmp_path / "t.xlsx", [["a", "b"], [1], [1, 2, 3]]))
    with pytest.raises(StairError, match=r"t.xlsx has a header but no rows"):
        read(workbook(tmp_path / "t.xlsx", [["a", "b"]]))
    frame = read(workbook(tmp_path / "t.xlsx", [["a", "a", None, "b"], [1, 2, 3, 4]]))
    assert list(frame.columns) == ["a", "a (2)", "column 3", "b"]
    with pytest.raises(StairError, match=r"cannot read bad.xlsx, it may be damaged"):
        read(saved(tmp_path, "bad.xlsx", b"PK\3\4" + b"x" * 100))
    without(monkeypatch, "openpyxl")
    with pytest.raises(StairError, match=r"pip install 'stair\[excel\]'"):
        read(tmp_path / "t.xlsx")


# Files that are not there ------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    saved(tmp_path, "payments.csv", PAYMENTS)
    for act in (read, column_names):
        with pytest.raises(StairError, match=r'no file "paymnts.csv" in .* mean "payments.csv"\?'):
            act(tmp_path / "paymnts.csv")
        with pytest.raises(StairError, match=r"there is no folder"):
            act(tmp_path / "nowhere" / "payments.csv")
        with pytest.raises(StairError, match=r"is a folder"):
            act("")
        with pytest.raises(StairError, match=r"no file"):
            act(str(tmp_path / "payments.csv" / "x.csv"))
        with pytest.raises(StairError, match=r"cannot read"):
            act("x" * 5000 + ".csv")
        with pytest.raises(StairError, match=r"cannot read"):
            act("a\0b.csv")
        with pytest.raises(StairError, match=r"expected the path of a file"):
            act(None)  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(StairError, match=r"is not a regular file"):
        read(tmp_path / "pipe.csv")


@pytest.mark.parametrize("name", ["t.xls", "t.pickle", "t", "t.gz", "t.parquet.gz", ".csv"])
def test_unknown_endings(name: str, tmp_path: Path) -> None:
    with pytest.raises(StairError, match=r"has (the|no) ending.*known ones are \.csv, .*\.parquet"):
        read(saved(tmp_path, name, "a,b\n1,2\n"))


def test_options_of_other_formats(tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", "a,b\n1,2\n")
    with pytest.raises(
        StairError, match=r"table= is for databases and Excel files; t.csv is neither"
    ):
        read(path, table="x")
    with pytest.raises(StairError, match=r"query= is for databases"):
        read(path, query="SELECT 1")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.db", "t.xlsx", "t.jsonl"])
def test_no_permission(name: str, open_folder: Path) -> None:
    path = saved(open_folder, name, "a,b\n1,2\n")
    path.chmod(0)
    with (
        an_ordinary_person(),
        pytest.raises(StairError, match=f"cannot read {name}: no permission"),
    ):
        read(path)
    open_folder.chmod(0)
    with (
        an_ordinary_person(),
        pytest.raises(StairError, match=f"cannot read {name}: no permission"),
    ):
        column_names(path)


def test_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    saved(tmp_path, "t.csv", "a,b\n1,2\n")
    assert read("~/t.csv").n_rows == 1


def test_files_are_closed(tmp_path: Path) -> None:
    """Warnings are errors here, so that a file left open would show."""
    for name in ("t.csv", "t.csv.gz"):
        content = PAYMENTS.encode()
        path = saved(tmp_path, name, gzip.compress(content) if name.endswith("gz") else content)
        before = set(Path("/proc/self/fd").iterdir())
        read(path)
        column_names(path)
        with pytest.raises(StairError):
            read(path, columns=["nope"])
        assert set(Path("/proc/self/fd").iterdir()) == before


def test_importing_is_light() -> None:
    code = (
        "import sys, stair.data\n"
        "heavy = {'pandas', 'pyarrow', 'duckdb', 'narwhals', 'openpyxl', 'polars', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lists_and_records_have_the_same_words_wherever_they_are(tmp_path: Path) -> None:
    """A file's lists, records, maps and bytes are called what they are called in memory. DuckDB has
    words of its own ({'k': x} for {'k': 'x'}), so that rules learned from a frame found none of
    their categories in a Parquet file with the same rows."""
    table = pa.table({
        "record": [{"k": 2, "w": "x", "in": ["a", None]}, None],
        "list": [["a", "b"], [None]],
        "numbers": [[1, None], [2]],
        "lists": [[[1], [2, 3]], None],
        "map": pa.array([[("a", 1)], None], type=pa.map_(pa.string(), pa.int64())),
        "bytes": [b"\x00a\xff", None],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "rows.parquet")
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as con:
        con.register("given", table)
        con.execute("CREATE TABLE t AS FROM given")
    expected = from_object(table)
    for name in ("rows.parquet", "rows.duckdb"):
        found = read(tmp_path / name)
        assert found.types == expected.types
        for column, values in expected.columns.items():
            assert found.columns[column].tolist() == values.tolist(), (name, column)
