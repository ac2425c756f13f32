"""Every promise of stair.data about CSV files, with both readers of them."""

from __future__ import annotations

import csv
import gzip
import io as stdio
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from io_files import NAN, NAT, PAYMENTS, holds, same, saved, times, without
from stair.data import (
    Frame,
    column_names,
    csv_duckdb,
    from_object,
    read,
    reading,
    write_table,
)
from stair.data import csv as stair_csv
from stair.data import text as stair_text
from stair.data.csv_duckdb import Unsure
from stair.data.values import MISSING
from stair.errors import StairError
from strategies import examples


def plain(path: Path, **options: Any) -> Frame:
    return _forced("plain", path, **options)


def by_duckdb(path: Path, **options: Any) -> Frame:
    """DuckDB, without the plain reader to fall back on."""
    return _forced("duckdb", path, **options)


def _forced(reader: Any, path: Path, **options: Any) -> Frame:
    return reading.read(path, reader=reader, **options)


BOTH = pytest.mark.parametrize("reader", [plain, by_duckdb, read])


@BOTH
def test_types_of_a_csv_file(reader: Any, tmp_path: Path) -> None:
    frame = reader(saved(tmp_path, "payments.csv", PAYMENTS))
    holds(
        frame,
        id=(np.int64, [1, 2, 3, 4]),
        amount=(np.float64, [12.5, NAN, 1e5, np.inf]),
        country=(object, ["SE", "NO", "a,b", 'say "hi"\nthere']),
        flagged=(np.bool_, [True, False, True, False]),
        when=times(
            "2024-01-31",
            "2024-01-31T10:20",
            "2024-01-31T10:20:30",
            "2024-01-31T10:20:30.123456",
        ),
    )
    assert (frame.source, frame.notes, frame.n_rows) == ("payments.csv", (), 4)


@BOTH
@pytest.mark.parametrize(
    "token", ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", '"NA"', '""']
)
def test_missing_values_in_every_kind_of_column(reader: Any, token: str, tmp_path: Path) -> None:
    rows = ["1,1.5,true,2024-01-31,x,NA", ",".join([token] * 6), "3,2,false,2024-02-01,y,"]
    frame = reader(saved(tmp_path, "t.csv", "i,f,b,d,s,n\n" + "\n".join(rows)))
    holds(
        frame,
        i=(np.float64, [1, NAN, 3]),
        f=(np.float64, [1.5, NAN, 2]),
        b=(object, [True, None, False]),
        d=times("2024-01-31", None, "2024-02-01"),
        s=(object, ["x", None, "y"]),
        n=(np.float64, [NAN, NAN, NAN]),
    )


@BOTH
@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (["00123", "04711"], object, ["00123", "04711"]),
        (["00123", "1.5"], object, ["00123", "1.5"]),
        (["-007", "5"], object, ["-007", "5"]),
        (["00e5", "5"], object, ["00e5", "5"]),
        (["0", "-0"], np.int64, [0, 0]),
        (["0.50", "-0.0"], np.float64, [0.5, 0.0]),
        (["+1", "2"], np.int64, [1, 2]),
        ([".5", "5.", "1E-3"], np.float64, [0.5, 5.0, 0.001]),
        (["9007199254740993", "1"], np.int64, [9007199254740993, 1]),
        (["9223372036854775807", "-9223372036854775808"], np.int64, [2**63 - 1, -(2**63)]),
        (["9223372036854775808", "1"], np.uint64, [2**63, 1]),
        (["9007199254740993", "", "1"], object, [2**53 + 1, None, 1]),
        (["18446744073709551616", "1"], np.float64, [2.0**64, 1]),
        (["1e400", "-1e400", "-inf"], np.float64, [np.inf, -np.inf, -np.inf]),
        (
            ["0.1", "1e-400", "2.2250738585072011e-308"],
            np.float64,
            [0.1, 0, 2.2250738585072011e-308],
        ),
        (["1_000", "2"], object, ["1_000", "2"]),
        (["١٢", "2"], object, ["١٢", "2"]),
        (["0x10", "2"], object, ["0x10", "2"]),
        (["-nan", "2"], object, ["-nan", "2"]),
        (["1", "true"], object, ["1", "true"]),
        (["1", "2024-01-31"], object, ["1", "2024-01-31"]),
        (["2024-02-30", "2024-01-31"], object, ["2024-02-30", "2024-01-31"]),
        (["2024-01-31 24:00", "2024-01-31"], object, ["2024-01-31 24:00", "2024-01-31"]),
        (["31.01.2024"], "datetime64[us]", [np.datetime64("2024-01-31")]),
        (
            ["31.01.2024 10:20", "01.02.2024"],
            "datetime64[us]",
            [np.datetime64("2024-01-31T10:20"), np.datetime64("2024-02-01")],
        ),
        (
            ["1/31/2024 1:05 PM", "02/03/2024 12:00:01.5 AM"],
            "datetime64[us]",
            [np.datetime64("2024-01-31T13:05"), np.datetime64("2024-02-03T00:00:01.500000")],
        ),
        (
            ["31/1/2024", "", "02/03/2024"],
            "datetime64[us]",
            [np.datetime64("2024-01-31"), NAT, np.datetime64("2024-03-02")],
        ),
        (["31.01.2024", "2024-02-01"], object, ["31.01.2024", "2024-02-01"]),
        (["31.02.2024", "31.01.2024"], object, ["31.02.2024", "31.01.2024"]),
        (["02/03/2024", "04/05/2024"], object, ["02/03/2024", "04/05/2024"]),
        (["13/01/2024", "01/13/2024"], object, ["13/01/2024", "01/13/2024"]),
        (["13/01/2024", "14-01-2024"], object, ["13/01/2024", "14-01-2024"]),
        (["$5", "$2.50", "-$0.0"], np.float64, [5, 2.5, 0]),
        (["4.8%", "12 %", "NA"], np.float64, [4.8, 12, NAN]),
        (["12.5 kWh", "1 kWh"], np.float64, [12.5, 1]),
        (["5 kWh", "5 MWh"], object, ["5 kWh", "5 MWh"]),
        (["1 234", "1 234 567", "7"], np.float64, [1234, 1234567, 7]),
        (["10.0.0.1", "10.0.0.2"], object, ["10.0.0.1", "10.0.0.2"]),
        (["5A", "7A"], object, ["5A", "7A"]),
        (["$1234567890123456", "$5"], object, ["$1234567890123456", "$5"]),
        (["2024-01-31", "2024-01-31T10:20Z"], object, ["2024-01-31", "2024-01-31T10:20Z"]),
        ([" 1", "2 "], np.int64, [1, 2]),
        ([" x", "x "], object, [" x", "x "]),
        (["true", "yes"], object, ["true", "yes"]),
        (["nan", "2024-01-31"], "datetime64[us]", [NAT, np.datetime64("2024-01-31")]),
    ],
)
def test_types_are_decided_by_all_values(
    reader: Any, values: list[str], dtype: Any, expected: list[Any], tmp_path: Path
) -> None:
    lines = "\n".join(f"{v},x" for v in values)
    frame = reader(saved(tmp_path, "t.csv", f"v,other\n{lines}\n"), columns=["v"])
    holds(frame, v=(dtype, expected))


@BOTH
@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        (["1,5", "2"], np.float64, [1.5, 2]),
        (["0,5", "", "-0,0"], np.float64, [0.5, NAN, 0.0]),
        (["1,234", "1,5"], np.float64, [1.234, 1.5]),
        (["1,234", "12,000"], object, ["1,234", "12,000"]),
        (["1,5", "1.5"], object, ["1,5", "1.5"]),
        (["1.234,5", "5"], np.float64, [1234.5, 5]),
        (["1,234,567", "5"], np.float64, [1234567, 5]),
        (["€ 1.234", "€ 5,5"], np.float64, [1234, 5.5]),
        (["00,5", "1,5"], object, ["00,5", "1,5"]),
        (["1,5", "9007199254740993"], object, ["1,5", "9007199254740993"]),
    ],
)
def test_numbers_with_a_decimal_comma(
    reader: Any, values: list[str], dtype: Any, expected: list[Any], tmp_path: Path
) -> None:
    """A table of meter readings, as Excel writes it in half of Europe: all of its numbers were
    text that hardly repeats and were left out, so that there were no rules. Numbers that may have
    a comma for thousands stay text."""
    lines = "".join(f"{v};x\n" for v in values)
    frame = reader(saved(tmp_path, "t.csv", f"v;other\n{lines}"), columns=["v"])
    holds(frame, v=(dtype, expected))
    holds(
        reader(saved(tmp_path, "t.csv", f"v;other\n{lines}"), columns=["v"], texts=["v"]),
        v=(object, [v or None for v in values]),
    )


@BOTH
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["<0.6", "2.5", "< 1"], [0.6, 2.5, 1]),
        (["<0.001", "2e-16", ".032"], [0.001, 2e-16, 0.032]),
        (["33", "90+", ""], [33, 90, NAN]),
        (["<3 ng/L", "4 ng/L"], [3, 4]),
        (["≤ $5", "$1,000.50"], [5, 1000.5]),
        (["<5", "5", "7", ">9"], [5, 5, 7, 9]),
        (["<5", ">5"], None),  # two names
        (["<18", "18-25", "90+"], None),
        (["<5", "x"], None),
        (["C+", "A+"], None),
        (["7:05", "12:30", "-0:30"], [(7 * 60 + 5) / 60, 12.5, -0.5]),
        (["1:02:03.5", "99:00:00", "NA"], [3723.5e6 / 3.6e9, 99, NAN]),
        (["45:10", "1:02:03"], None),  # minutes, or hours?
        (["7:5", "7:05"], None),
        (["16:90", "7:05"], None),
    ],
)
def test_limits_of_what_is_measured_and_clocks(
    reader: Any, values: list[str], expected: list[float] | None, tmp_path: Path
) -> None:
    """A laboratory's table: what is below the least that can be measured is written <0.6, and how
    long it took 2:35. Both were text, so that 131 outliers far up in these two columns were
    described by 32 rules on all others."""
    path = saved(tmp_path, "t.csv", "v,other\n" + "".join(f'"{v}",x\n' for v in values))
    frame = reader(path, columns=["v"])
    if expected is None:
        holds(frame, v=(object, values))
    else:
        holds(frame, v=(np.float64, expected))


def test_how_values_are_written_is_said(tmp_path: Path) -> None:
    """What is read otherwise than it stands there, and what people would read otherwise."""
    rows = [
        f"{k},5;{k % 28 + 1:02}.01.2024;{k % 12 + 1}/{k % 12 + 1}/2024;{k + 7},125 €;{k:05};a{k};"
        f"{'' if k % 9 else -(2**60) - k};{k % 7},5;<{k % 7};{k // 6}:{k % 6}5;"
        f"{k + 1}.5{'s' if k % 3 else 'ms'}"
        for k in range(60)
    ]
    names = "n;day;either;price;code;word;wide;half;least;clock;took"
    path = saved(tmp_path, "t.csv", names + "\n" + "\n".join(rows) + "\n")
    assert read(path).notes == (
        '"n" is read as numbers, 10,5 being 10.5',
        '"day" is read as times with the day first, such as 28.01.2024',
        '"either" is read as text: 1/1/2024 could be several days; write 2026-03-16',
        '"price" is read as text: 10,125 € could be several numbers; write 1234.5',
        '"half" is read as numbers, 0,5 being 0.5',
        '"least" is read as numbers, <0 being 0',
        '"clock" is read as numbers, 0:05 being 0.08',
        '"took" is read as text: 1.5ms and the others have several units; write them in one',
    )


@BOTH
def test_a_value_far_down_changes_the_type(reader: Any, tmp_path: Path) -> None:
    """The plain reader types some rows at a time; DuckDB looks at the first rows for a guess."""
    n = 60_000
    late = {"i": "x", "f": "7", "d": "soon", "b": "maybe", "ok": "7", "m": "5", "w": "2.5"}
    lines = ["1,1.5,2024-01-31,true,6,,1"] * n
    lines += [",".join(late.values())]
    frame = reader(saved(tmp_path, "t.csv", ",".join(late) + "\n" + "\n".join(lines) + "\n"))
    holds(
        frame,
        i=(object, ["1"] * n + ["x"]),
        f=(np.float64, [1.5] * n + [7]),
        d=(object, ["2024-01-31"] * n + ["soon"]),
        b=(object, ["true"] * n + ["maybe"]),
        ok=(np.int64, [6] * n + [7]),
        m=(np.float64, [NAN] * n + [5]),
        w=(np.float64, [1] * n + [2.5]),
    )


@BOTH
def test_time_zones_become_utc(reader: Any, tmp_path: Path) -> None:
    moments = [
        "2024-01-31T10:20:30Z",
        "2024-01-31 10:20+02:00",
        "2024-01-31T10:20:30.123456789-01:00",
    ]
    frame = reader(saved(tmp_path, "t.csv", "t,x\n" + "".join(f"{m},1\n" for m in moments)))
    holds(
        frame,
        t=times("2024-01-31T10:20:30", "2024-01-31T08:20", "2024-01-31T11:20:30.123456"),
        x=(np.int64, [1, 1, 1]),
    )
    assert frame.notes == (
        'the times in "t" have a time zone (several offsets); bounds on them are in UTC',
    )
    early = saved(tmp_path, "t.csv", "t,x\n0001-01-01T00:00+02:00,1\n")
    holds(reader(early), t=(object, ["0001-01-01T00:00+02:00"]), x=(np.int64, [1]))


@BOTH
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_separators_are_found_out(
    reader: Any, separator: str, newline: str, tmp_path: Path
) -> None:
    others = "".join(c for c in ",;\t|" if c != separator)
    rows = [["a", "b b", "c"], ["1", others, "2"], ["3", f"x{separator}y", "4"]]
    out = stdio.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=newline).writerows(rows)
    frame = reader(saved(tmp_path, "t.txt", out.getvalue()))
    holds(
        frame,
        **{
            "a": (np.int64, [1, 3]),
            "b b": (object, [others, f"x{separator}y"]),
            "c": (np.int64, [2, 4]),
        },
    )


def test_decimal_commas_do_not_hide_semicolons(tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", "a;b\n1,5;2\n2,5;3\n")
    assert list(read(path).columns) == ["a", "b"]


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(
    ("encoding", "notes"),
    [
        ("utf-8", ()),
        ("utf-8-sig", ()),
        ("utf-16", ("t.csv{} is not in UTF-8; it is read as UTF-16",)),
        ("cp1252", ("t.csv{} is not in UTF-8; it is read as Windows-1252",)),
    ],
)
@BOTH
def test_encodings_are_found_out(
    reader: Any,
    encoding: str,
    notes: tuple[str, ...],
    ending: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    content = 'namé,"price, €"\nMalmö,5\n"Åre\nby",6\n'.encode(encoding)
    path = saved(tmp_path, "t.csv" + ending, gzip.compress(content) if ending else content)
    frame = reader(path)
    holds(frame, **{"namé": (object, ["Malmö", "Åre\nby"]), "price, €": (np.int64, [5, 6])})
    assert frame.notes == tuple(note.format(ending) for note in notes)
    assert column_names(path) == ("namé", "price, €")
    assert list(scratch.iterdir()) == []


def test_utf_16_of_either_byte_order(tmp_path: Path) -> None:
    text = "\ufeffa,b\n1,ö\n"
    for encoding in ("utf-16-le", "utf-16-be"):
        holds(
            read(saved(tmp_path, "t.csv", text.encode(encoding))),
            a=(np.int64, [1]),
            b=(object, ["ö"]),
        )


def test_names_of_a_file_whose_encoding_changes_further_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first part is checked for the names; what lies behind it must not hurt."""
    for module in (stair_text, stair_csv):
        monkeypatch.setattr(module, "HEAD", 1 << 15)
    rows = b"1,2\n" * (1 << 13)
    for behind in (b"\xff,2\n", b"\0,1\n"):
        path = saved(tmp_path, "t.csv", b"a,b\n" + rows + behind)
        assert column_names(path) == ("a", "b")
    early = saved(tmp_path, "t.csv", b"a," + b"b" * (1 << 16) + b"\xff\n" + rows)
    with pytest.raises(StairError, match=r"t.csv is not text in one encoding"):
        column_names(early)


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n1,\x00\n",
        b"a,b\n\x81\xff,2\n",
        b"a,b\n\xff\x01\x02,2\n",
        "a,b\n1,2\n".encode("utf-16-le"),
    ],
)
def test_what_is_not_text(content: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", content)
    with pytest.raises(
        StairError,
        match=r"t.csv is not text in UTF-8, UTF-16 or Windows-1252 .*; .*save it as UTF-8",
    ):
        read(path)


def test_bytes_beyond_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Characters may be cut in two where blocks meet, and trouble may come late."""
    for module in (stair_text, csv_duckdb):
        monkeypatch.setattr(module, "BLOCK", 7)
    text = "a,b\n" + "ö€,😀\n" * 20
    assert set(read(saved(tmp_path, "t.csv", text)).columns["b"]) == {"😀"}
    late = saved(tmp_path, "late.csv", text.replace("€", "e").replace("😀", "x").encode("cp1252"))
    assert read(late).notes == ("late.csv is not in UTF-8; it is read as Windows-1252",)
    with pytest.raises(StairError, match=r"NUL bytes"):
        read(saved(tmp_path, "nul.csv", text + "\0,1\n"))


@BOTH
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,2,3\n4,5\n", "t.csv line 3 has 2 fields, expected 3"),
        ("1,2,3\n4,5,6,7\n", "t.csv line 3 has 4 fields, expected 3"),
        ("1,2,3\n4,5,6,\n", "t.csv line 3 has 4 fields, expected 3"),
        ("1,2,3\n4,5,6,\n7,8,9\n", "t.csv line 3 has 4 fields, expected 3"),
        ('"x\n\ny",2,3\n\n4\n', "t.csv line 6 has 1 field, expected 3"),
        ('"x\n\ny",2\n', "t.csv line 2 has 2 fields, expected 3"),
        ('"x\r\ny",2\n', "t.csv line 2 has 2 fields, expected 3"),
        ("1,2,3\n   \n", "t.csv line 3 has 1 field, expected 3"),
        ('1,2,"3\n4,5,6\n', "t.csv line 2: a quoted field does not end as it should"),
        ('1,2,"3"x\n', "t.csv line 2: a quoted field does not end as it should"),
    ],
)
def test_rows_that_do_not_fit(reader: Any, rows: str, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", "a,b,c\n" + rows)
    if reader is by_duckdb:  # it either refuses, or does not trust itself; then we say why
        with pytest.raises((StairError, duckdb.Error, Unsure)):
            reader(path)
        return
    with pytest.raises(StairError) as caught:
        reader(path)
    assert str(caught.value).startswith(message)


def test_a_ragged_row_that_another_one_makes_up_for(tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", "a,b\n" + "1,2\n" * 3000 + "1,2,\n" + "1\n")
    with pytest.raises(StairError, match=r"line 3002 has 3 fields, expected 2"):
        read(path)


@pytest.mark.parametrize(
    "content",
    [
        '"a" ,b\n1,2\n',  # blanks next to a quote
        'a,b\n "x",2\n',
        "\na,b\n1,2\n",
        "a,b\r1,2\r",
        "a,b\n1,2\r\n3,4\n",
        "a\n1\n\n2\n",
        'a,b\n5" disk,2\n',
        'a,b\n"x\ry",2\n',
    ],
)
def test_odd_files_are_read_by_the_plain_rules(content: str, tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", content)
    try:
        expected = plain(path)
    except StairError as error:
        with pytest.raises(StairError) as caught:
            read(path)
        assert str(caught.value) == str(error)
    else:
        same(read(path), expected)


def test_blank_lines_and_a_missing_last_line_end(tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", "a,b\n\n1,2\n\n3,4")
    for reader in (plain, by_duckdb):
        holds(reader(path), a=(np.int64, [1, 3]), b=(np.int64, [2, 4]))


def test_long_fields(tmp_path: Path) -> None:
    long = "x" * 3_000_000
    before = csv.field_size_limit()
    frame = read(saved(tmp_path, "t.csv", f"a,b\n{long},1\n"))
    assert frame.columns["a"].tolist() == [long]
    assert csv.field_size_limit() == before
    with pytest.raises(StairError, match=r"longer than 16,777,216 characters"):
        read(saved(tmp_path, "t.csv", 'a,b\n"' + "x,1\n" * 5_000_000))


@BOTH
@pytest.mark.parametrize(
    ("values", "ways"),
    [
        (["1.1", "1.10", "2", "NA"], "1.1 and 1.10"),
        (["7.5", "007.5", ""], "007.5 and 7.5"),
        (["1.1", "1.2", "0", "0.0", "-0"], ""),
        ([f"{k / 100:.{2 + k % 2}f}" for k in range(100)] + ["0.500"], ""),
    ],
)
def test_a_number_that_is_written_in_two_ways_is_noted(
    reader: Any, values: list[str], ways: str, tmp_path: Path
) -> None:
    """The versions 1.10 and 1.1 became one number without a word; so did the codes 007.1 and 7.1.
    Of measured numbers, of which there are many, nobody needs to hear that."""
    rows = "".join(f"{value},x,1\n" for value in values)
    frame = reader(saved(tmp_path, "a.csv", f"v,t,w\n{rows}"))
    said = f'"v" is read as numbers, in which {ways} are one; as a category they are two'
    assert frame.notes == ((said,) if ways else ())


@BOTH
@pytest.mark.parametrize(
    ("values", "n_rows"),
    [
        (["DE", "NA", "FR", " NA", ""] * 400, 800),
        (["K", "NA", "CL", "MG"], 1),
        (["M", "F", "NA"], 0),
        (["yes", "no", "NA"], 0),
        (["DE", "Namibia", "NA"], 0),
        (["DE", "FR", "", "N/A"], 0),
    ],
)
def test_a_code_that_is_read_as_missing_is_noted(
    reader: Any, values: list[str], n_rows: int, tmp_path: Path
) -> None:
    """Namibia and sodium were missing without a word."""
    rows = "".join(f"{value},x,1\n" for value in values)
    frame = reader(saved(tmp_path, "a.csv", f"code,t,w\n{rows}"))
    assert not {"NA", " NA"} & set(frame.columns["code"].tolist())
    said = f'"code" has codes, and NA is read as missing ({n_rows:,} row{"s" * (n_rows > 1)}); '
    assert len(frame.notes) == (n_rows > 0)
    assert all(note.startswith(said) for note in frame.notes)
    table = {"code": np.array(values, dtype=object), "t": ["x"] * len(values)}
    assert not from_object(table).notes, "it stays text there"


@BOTH
def test_names_are_made_unique_and_noted(reader: Any, tmp_path: Path) -> None:
    frame = reader(saved(tmp_path, "t.csv", "a, a ,,a,a (2),A\n1,2,3,4,5,6\n"))
    assert list(frame.columns) == ["a", "a (3)", "column 3", "a (4)", "a (2)", "A"]
    assert [v.tolist() for v in frame.columns.values()] == [[1], [2], [3], [4], [5], [6]]
    assert frame.notes == (
        '"a" is the name of several columns; one is read as "a (3)"',
        'column 3 has no name; it is read as "column 3"',
        '"a" is the name of several columns; one is read as "a (4)"',
    )
    assert column_names(tmp_path / "t.csv") == tuple(frame.columns)


def test_the_second_of_two_names(tmp_path: Path) -> None:
    frame = read(saved(tmp_path, "t.csv", "a,a\n1,2\n"))
    assert list(frame.columns) == ["a", "a (2)"]


@BOTH
def test_only_wanted_columns_in_the_order_of_the_file(reader: Any, tmp_path: Path) -> None:
    path = saved(tmp_path, "payments.csv", PAYMENTS)
    assert list(reader(path, columns=["flagged", "id", "id"]).columns) == ["id", "flagged"]
    assert list(reader(path, columns="amount").columns) == ["amount"]


def test_unknown_columns(tmp_path: Path) -> None:
    path = saved(tmp_path, "payments.csv", PAYMENTS)
    with pytest.raises(StairError) as caught:
        read(path, columns=["flaged"])
    assert str(caught.value) == (
        'no column "flaged" in payments.csv. Did you mean "flagged"? '
        "Columns: id, amount, country, flagged, when"
    )
    with pytest.raises(StairError, match=r'Did you mean "amount"'):
        read(path, columns=["AMOUNT"])
    with pytest.raises(StairError, match=r"columns= is empty"):
        read(path, columns=[])
    wide = saved(
        tmp_path, "wide.csv", ",".join(f"c{i}" for i in range(40)) + "\n" + "1," * 39 + "1"
    )
    with pytest.raises(StairError, match=r"in wide.csv. Columns: c0, .*, c11, … 28 more$"):
        read(wide, columns=["zzzzzzz"])


@BOTH
@pytest.mark.parametrize("content", ["a,b\n", "a,b", "a,b\n\n\n", "a\n"])
def test_a_header_but_no_rows(reader: Any, content: str, tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", content)
    if content == "a\n" and reader is by_duckdb:
        reader = read
    with pytest.raises(StairError, match=r"t.csv has a header but no rows"):
        reader(path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_csv_file(content: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path, "t.csv", content)
    for act in (read, column_names):
        with pytest.raises(StairError, match=r"t.csv is empty"):
            act(path)


def test_gzip_by_ending_or_content(tmp_path: Path) -> None:
    content = gzip.compress(
        PAYMENTS.encode() + b"".join(b"%d,1,SE,true,\n" % i for i in range(9999))
    )
    for name in ("t.csv.gz", "t.csv", "t.tsv.gz", "T.TXT.GZ"):
        path = saved(tmp_path, name, content)
        same(by_duckdb(path), plain(path))
        assert read(path).n_rows == 10_003
    for act in (read, column_names):
        with pytest.raises(StairError, match=r"cut off"):
            act(saved(tmp_path, "cut.csv.gz", content[: len(content) // 20]))
    with pytest.raises(StairError, match=r"cut off"):
        read(saved(tmp_path, "cut.csv.gz", content[:-4]))
    with pytest.raises(StairError, match=r"not a sound gzip file"):
        read(saved(tmp_path, "bad.csv.gz", PAYMENTS))
    with pytest.raises(StairError, match=r"not a sound gzip file"):
        read(saved(tmp_path, "bad.csv.gz", content[:50] + b"\xff" * 50 + content[100:]))


def test_file_names_are_never_patterns(tmp_path: Path) -> None:
    """DuckDB reads stars in a path as a pattern, and year=2024 in it as a column."""
    folder = tmp_path / "year=2024"
    folder.mkdir()
    names = ["a*.csv", "ab.csv", "a?.csv", "a[b].csv", "it's.csv", 'q".csv', "ö{b}.csv"]
    paths = [saved(folder, name, f"x,y\n{i},1\n") for i, name in enumerate(names)]
    for i, path in enumerate(paths):
        holds(by_duckdb(path), x=(np.int64, [i]), y=(np.int64, [1]))
        parquet = path.with_suffix(".parquet")
        write_table(parquet, {"x": np.array([i])})
        holds(read(parquet), x=(np.int64, [i]))


def test_the_plain_reader_stands_in_for_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, "payments.csv", PAYMENTS)
    expected = by_duckdb(path)
    without(monkeypatch, "duckdb")
    same(read(path), expected)


def test_no_room_for_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, "t.csv.gz", gzip.compress(PAYMENTS.encode()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    assert read(path).n_rows == 4


NASTY = st.one_of(
    st.sampled_from(
        [
            "",
            "NA",
            "N/A",
            "NaN",
            "null",
            "None",
            "nan",
            "00123",
            "0",
            "-0",
            "007.5",
            "1",
            "-1",
            "+1",
            "1.5",
            ".5",
            "5.",
            "1e5",
            "1E-7",
            "1e400",
            "inf",
            "-inf",
            "Infinity",
            "true",
            "FALSE",
            "2024-01-31",
            "2024-02-30",
            "2024-01-31 10:20",
            "2024-01-31T10:20:30.123456",
            "2024-01-31T10:20:30Z",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808",
            "18446744073709551616",
            "-9223372036854775809",
            "1" * 400,
            "a,b",
            'say "hi"',
            '"',
            '""',
            "line\nbreak",
            "line\r\nbreak",
            ";",
            "|",
            "\t",
            " ",
            " 1",
            "NA ",
            "é",
            "日本",
            "😀",
            "\xa0",
            "\ufeff",
            "1_000",
            "١",
            "0x1F",
            "'",
            "\\",
            '\\"',
            "#",
            "--",
        ]
    ),
    st.integers().map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(repr),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6),
    st.text('ab",;\n\t| 10', max_size=6),
)


def compared(path: Path) -> None:
    """Both readers, and DuckDB may pass."""
    try:
        expected: Frame | str = plain(path)
    except StairError as error:
        expected = str(error)
    try:
        found: Frame | str = by_duckdb(path)
    except StairError as error:
        found = str(error)
    except (Unsure, duckdb.Error):
        event("DuckDB passes")
        found = expected
    if isinstance(expected, Frame) and isinstance(found, Frame):
        event("both read")
        same(found, expected)
    else:
        event("both refuse")
        assert found == expected


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_readers_give_equal_frames(data: st.DataObject) -> None:
    width = data.draw(st.integers(2, 4))
    kinds = [
        data.draw(
            st.sampled_from([NASTY, st.integers(-(2**66), 2**66).map(str), st.floats().map(repr)])
        )
        for _ in range(width)
    ]
    rows = data.draw(st.lists(st.tuples(*kinds), max_size=8))
    header = data.draw(st.lists(NASTY, min_size=width, max_size=width))
    separator = data.draw(st.sampled_from(",;\t|"))
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    quoting = data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    if any("\r" in cell for row in [header, *rows] for cell in row):
        quoting = csv.QUOTE_ALL  # before Python 3.13 the writer leaves a lone \r without quotes
    out = stdio.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator=newline, quoting=quoting)
    writer.writerows([header, *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder), "t.csv", out.getvalue())
        compared(path)
        if not rows:
            return
        with mock.patch.object(stair_csv, "_find_separator", lambda *_: separator):
            found = plain(path)  # where the cells leave open which one it is
        assert found.n_rows == len(rows)
        for written, values in zip(zip(*rows, strict=True), found.columns.values(), strict=True):
            if values.dtype == object and any(isinstance(v, str) for v in values):
                gone = [v.strip() in MISSING for v in written]
                expected = [None if g else v for v, g in zip(written, gone, strict=True)]
                assert values.tolist() == expected


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from(
            [",", ",", "\n", "\n", '"', "1", "0", ".", "a", " ", "\r\n", "NA", "é", '""', ";"]
        ),
        max_size=25,
    )
)
def test_both_readers_agree_on_any_text(parts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compared(saved(Path(folder), "t.csv", "a,b\n" + "".join(parts)))


def test_a_large_file_with_quotes_and_line_breaks(tmp_path: Path) -> None:
    """Larger than what DuckDB hands to one thread, so that a quoted line break may lie anywhere."""
    rng = np.random.default_rng(0)
    cells = ['"x\n1,2\n3,4"', '"a""b"', "plain", '"1,2"', "5", '"\n"']
    lines = [f"{i},{cells[k]}" for i, k in enumerate(rng.integers(0, len(cells), 400_000))]
    path = saved(tmp_path, "t.csv", "a,b\n" + "\n".join(lines) + "\n")
    same(by_duckdb(path), plain(path))
