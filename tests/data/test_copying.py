"""Somebody's file with columns of ours: every other column exactly as it was."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from io_files import UTC, rich_arrow, saved
from stair.data import atomic_write, read, write_table, write_with
from stair.errors import StairError
from strategies import examples


def copied(source: Path, name: str, labels: list[Any] | None = None) -> Path:
    """The file with the columns label and rule."""
    frame = read(source)
    marks = labels or [f"l{i}" for i in range(frame.n_rows)]
    added = {"label": np.array(marks, dtype=object), "rule": np.arange(frame.n_rows)}
    write_with(source.parent / name, source, [added])
    return source.parent / name


NASTY = {
    "quotes": 'a,b\n"x ""y""",1\n"",2\n',
    "newlines in quotes": 'a,b\r\n"x\ny",1\r\n"\r\n",2\r\n',
    "leading zeros": "a,b\n007,1\n00,2\n",
    "missing words": "a,b\nNA,1\nnull,2\n,3\n",
    "zoned times": "a,b\n2024-03-01T10:00:00+02:00,1\n2024-03-01T10:00:00.5-11:30,2\n",
    "other numbers": "a,b\n1e3,+1\n-0.0,1.50\n 7 ,0x1\n123456789012345678901234567890,1\n",
    "semicolons": "a;b\n1,5;2\n2,5;3\n",
    "tabs": "a\tb\n1\t2\n",
    "bars": "a|b\n1|2\n",
    "no final newline": "a,b\n1,2\n3,4",
    "blank lines": "\n\na,b\n\n1,2\n\n\n3,4\n\n",
    "trailing separators": "a,b,\n1,2,\n3,4,\n",
    "old Mac": "a,b\r1,2\r3,4\r",
    "one column": "a\n1\n2\n",
    "mixed line ends": "a,b\r\n1,2\n3,4\r\n",
    "names twice": "a,a,\n1,2,3\n",
    "our names": "label,rule\n1,2\n",
    "blanks": ' a , b\n " x" ,1\n',
}
ENCODINGS = {
    "utf-8": ("", "utf-8"),
    "BOM": ("\ufeff", "utf-8"),
    "UTF-16 LE": ("\ufeff", "utf-16-le"),
    "UTF-16 BE": ("\ufeff", "utf-16-be"),
    "Windows": ("", "cp1252"),
}


def _expected(text: str, own: list[str]) -> str:
    """The records by a splitter of its own: quotes open and close, a line end outside ends one."""
    out, record, inside, i, left = "", "", False, 0, iter(own)
    while i < len(text):
        char = text[i]
        end = "" if inside else "\r\n" if text.startswith("\r\n", i) else char * (char in "\r\n")
        if end:
            out += record + (next(left) if record else "") + end
            record, i = "", i + len(end)
            continue
        inside ^= char == '"'
        record += char
        i += 1
    return out + record + (next(left) if record else "")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("case", NASTY)
def test_csv_is_copied_byte_for_byte(case: str, encoding: str, tmp_path: Path) -> None:
    """`2024-03-01T10:00:00+02:00` became `2024-03-01T08:00:00.000000`: apply wrote every value
    anew. Now a record is copied as it is written, and only made longer."""
    mark, codec = ENCODINGS[encoding]
    text = NASTY[case] if encoding == "utf-8" else NASTY[case].replace("x", "é")
    source = saved(tmp_path, "in.csv", (mark + text).encode(codec))
    separator = {"semicolons": ";", "tabs": "\t", "bars": "|"}.get(case, ",")
    names = ("label_", "rule_") if case == "our names" else ("label", "rule")
    own = [separator.join(["", *names])]
    own += [f"{separator}l{i}{separator}{i}" for i in range(read(source).n_rows)]
    out = copied(source, "out.csv")
    assert out.read_bytes() == (mark + _expected(text, own)).encode(codec)
    zipped = copied(source, "out.csv.gz")
    assert gzip.decompress(zipped.read_bytes()) == out.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv", "out.csv.gz"]


CELL = st.text(st.sampled_from(list('ab0.,;"\n\r\t é+-NA')), max_size=5)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=6), st.data())
def test_any_csv_without_our_columns_is_what_it_was(rows: list[list[str]], data: Any) -> None:
    """Whatever quotes a writer used: take our two cells away, and the same bytes are left."""
    import tempfile

    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    style = data.draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]))
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator=end, quoting=style).writerows([["p", "q", "r"], *rows])
    with tempfile.TemporaryDirectory() as folder:
        source = saved(Path(folder), "in.csv", buffer.getvalue())
        out = copied(source, "out.csv", ['a,"b"\r\n'] * len(rows)).read_bytes().decode()
    assert out.startswith(f'"p","q","r",label,rule{end}')
    for i in range(len(rows)):
        out = out.replace(f',"a,""b""\r\n",{i}{end}', end, 1)
    assert out.replace(",label,rule", "", 1) == buffer.getvalue()


def test_another_format_of_text_keeps_every_text(tmp_path: Path) -> None:
    source = saved(tmp_path, "in.csv", 'a;b;t\n007;"x\ty";2024-03-01T10:00:00+02:00\nNA;;\n')
    out = copied(source, "out.tsv").read_bytes().decode()
    assert out == (
        'a\tb\tt\tlabel\trule\n007\t"x\ty"\t2024-03-01T10:00:00+02:00\tl0\t0\nNA\t\t\tl1\t1\n'
    )


def test_a_label_that_the_encoding_lacks(tmp_path: Path) -> None:
    source = saved(tmp_path, "in.csv", "a,b\né,1\n".encode("cp1252"))
    with pytest.raises(StairError, match=r'its encoding has no "≤"'):
        copied(source, "out.csv", ["≤"])
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.jsonl", "out.tsv.gz"])
def test_half_a_character_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    """JSON can hold half of a pair that no encoding can: writing it was a traceback."""
    source = saved(tmp_path, "in.jsonl", '{"a": "\\ud800"}')
    if name != "out.jsonl":  # where it stays as it is written
        with pytest.raises(StairError, match=r'cannot write ".* has no "\\ud800"'):
            copied(source, name)
    with pytest.raises(StairError, match=r"cannot write"):
        write_table(tmp_path / name, read(source).columns)
    with pytest.raises(StairError, match=r"cannot write"):
        atomic_write(tmp_path / name, "\ud800")
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize("line", ['{"a": 1.10, "a": 2}', '  {"a":18446744073709551616}  ', "{ }"])
def test_json_lines_keep_their_lines(line: str, tmp_path: Path) -> None:
    """A number keeps its digits, and an object its double keys."""
    source = saved(tmp_path, "in.jsonl", f'{{"b": []}}\r\n\n{line}')
    out = copied(source, "out.jsonl").read_bytes().decode()
    assert out.startswith('{"b": [], "label": "l0", "rule": 0}\r\n')
    body = line.rstrip()[:-1].rstrip()
    assert body in out
    assert json.loads(out.splitlines()[-1])["rule"] == 1


def test_parquet_keeps_values_types_and_notes(tmp_path: Path) -> None:
    table = rich_arrow().append_column("i again", pa.array([1, 2, 3], pa.int8()))
    table = table.append_column("zone", pa.array(
        [dt.datetime(2024, 3, 1, tzinfo=UTC)] * 3, pa.timestamp("ns", "Asia/Tokyo")
    )).append_column("exact", pa.array([Decimal("1.10")] * 3, pa.decimal128(38, 2)))  # fmt: skip
    table = table.append_column("took", pa.array([1, None, 2], pa.duration("us")))
    table = table.replace_schema_metadata({"made by": "somebody"})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=2)
    out = pq.read_table(copied(tmp_path / "in.parquet", "out.parquet"))
    kept, table = out.select(range(table.num_columns)), pq.read_table(tmp_path / "in.parquet")
    assert kept.schema.equals(table.schema, check_metadata=True)
    assert str(kept.to_pylist()) == str(table.to_pylist())  # NaN is not equal to itself
    assert out.column_names[-2:] == ["label", "rule"]
    assert out["rule"].to_pylist() == [0, 1, 2]
    assert pq.ParquetFile(tmp_path / "out.parquet").num_row_groups == 2


def _sheet(path: Path) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(path)
    return list(book.worksheets[0].iter_rows(values_only=True))


def test_excel_keeps_values(tmp_path: Path) -> None:
    """Also texts that look like formulas, and the errors that count as missing."""
    rows = [
        ["n", "t", "s", 4],
        [1, dt.datetime(2024, 3, 1, 10), "007", True],
        [2.5, None, "NA", None],
        [None, dt.datetime(1999, 12, 31), "#N/A", dt.time(1, 2, 3)],
    ]
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.active["C2"].value, book.active["C2"].data_type = "=1+1", "s"
    rows[1][2] = "=1+1"
    book.save(tmp_path / "in.xlsx")
    out = copied(tmp_path / "in.xlsx", "out.xlsx")
    assert [list(row[:4]) for row in _sheet(out)][1:] == rows[1:]
    cell = openpyxl.load_workbook(out).worksheets[0]["C2"]
    assert (cell.data_type, cell.value) == ("s", "=1+1")


def test_what_excel_cannot_hold_is_text_or_refused(tmp_path: Path) -> None:
    source = saved(tmp_path, "in.csv", f"big,t,s\n{2**60 + 1},2024-03-01T10:00:00+02:00,=1\n")
    assert _sheet(copied(source, "out.xlsx"))[1][:3] == (
        str(2**60 + 1), "2024-03-01T10:00:00+02:00", "=1",
    )  # fmt: skip
    for text, why in (("x" * 40_000, "40,000 characters"), ("\x01", "control characters")):
        source = saved(tmp_path, "in.jsonl", json.dumps({"a": text}))
        with pytest.raises(StairError, match=why):
            copied(source, "no.xlsx")
    assert not (tmp_path / "no.xlsx").exists()


def test_databases_become_files_without_a_loss(tmp_path: Path) -> None:
    """Decimals, wide numbers, clocks and instants as they are, not as what rules compare."""
    con = duckdb.connect(str(tmp_path / "in.duckdb"))
    con.execute("SET TimeZone = 'Asia/Tokyo'")
    con.execute(
        "CREATE TABLE t AS SELECT 1.10::DECIMAL(38,20) AS d, "
        "170141183460469231731687303715884105727::HUGEINT AS h, "
        "TIME '13:30:00' AS c, TIMESTAMPTZ '2024-03-01 10:00:00+02' AS z, "
        "[1, 2] AS l, 18446744073709551615::UBIGINT AS u, INTERVAL 90 SECOND AS i"
    )
    con.close()
    out = copied(tmp_path / "in.duckdb", "out.csv").read_text().splitlines()
    assert out[1] == (
        "1.10000000000000000000,170141183460469231731687303715884105727,13:30:00,"
        '2024-03-01 08:00:00+00:00,"[1, 2]",18446744073709551615,00:01:30,l0,0'
    )
    lite = sqlite3.connect(tmp_path / "in.sqlite")
    lite.execute("CREATE TABLE t (a, b)")
    lite.execute("INSERT INTO t VALUES ('007', 9223372036854775807), (NULL, 1.5)")
    lite.commit()
    lite.close()
    out = copied(tmp_path / "in.sqlite", "lite.csv").read_text().splitlines()
    assert out[1:] == ["007,9223372036854775807,l0,0", ",1.5,l1,1"]


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    source = saved(tmp_path, "in.csv", "a,b\n1,2\n3,4\n")
    for changed in ("a,b\n1,2\n", "a,b\n1,2\n3,4\n5,6\n"):
        source.write_text(changed)
        with pytest.raises(StairError, match=r"in.csv changed while it was read"):
            write_with(tmp_path / "out.csv", source, [{"l": np.arange(2)}])
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]
