"""Files that lie about what they are, or grow when they are read: one sentence, and soon."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from io_files import saved
from stair.data import column_names, read
from stair.errors import StairError

TABLES = [".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".csv.gz", ".parquet", ".pq", ".xlsx"]

# Files that grow ---------------------------------------------------------------------------------


def workbook(path: Path, **changed: bytes) -> Path:
    """A small Excel file of which some parts are replaced."""
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    memory = io.BytesIO()
    book.save(memory)
    book.close()
    with zipfile.ZipFile(memory) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            parts = [v for k, v in changed.items() if f"{k}.xml" in member.filename]
            new.writestr(member.filename, parts[0] if parts else old.read(member))
        for name, content in changed.items():
            if name.startswith("new"):
                new.writestr(f"xl/{name}.bin", content)
    return path


def sheet(rows: bytes) -> bytes:
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return b'<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>' % (space, rows)


def test_a_row_far_down_in_an_excel_file(tmp_path: Path) -> None:
    """openpyxl gives every row that a file leaves out: a row number of a million million in a file
    of five kilobytes was read for ever."""
    rows = b'<row r="1"><c r="A1"><v>1</v></c></row><row r="%d"><c r="A%d"><v>1</v></c></row>'
    path = workbook(tmp_path / "a.xlsx", sheet1=sheet(rows % (10**12, 10**12)))
    with pytest.raises(StairError, match=r"a.xlsx has a row beyond 1,048,576, where Excel itself"):
        read(path)


def test_an_excel_file_that_is_all_gaps(tmp_path: Path) -> None:
    """Two cells in each row, the second in the last column there is: a hundred kilobytes of file
    were gigabytes of nothing."""
    row = b'<row r="%d"><c r="A%d"><v>1</v></c><c r="XFD%d"><v>1</v></c></row>'
    rows = b"".join(row % (i, i, i) for i in range(1, 3000))
    path = workbook(tmp_path / "a.xlsx", sheet1=sheet(rows))
    with pytest.raises(StairError, match=r"16,384 columns with a value in .* places only"):
        read(path, columns=["1"])


def test_lines_that_have_no_key_in_common(tmp_path: Path) -> None:
    """A key of its own in each of 100,000 lines makes 10,000,000,000 cells of a megabyte."""
    path = saved(tmp_path, "a.jsonl", "".join(f'{{"k{i}":1}}\n' for i in range(11_000)))
    with pytest.raises(StairError, match=r"11,000 rows and 11,000 columns with a value in 11,000"):
        column_names(path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_without_an_end(tmp_path: Path, name: str) -> None:
    """A gigabyte in one line took several of memory before anything was said about it."""
    path = saved(tmp_path, name, b"a,b\n" * (name == "a.csv") + b"x," * (1 << 24) + b"x")
    line = 2 if name == "a.csv" else 1
    with pytest.raises(StairError, match=rf"{name} line {line} is longer than 33,554,432 charact"):
        read(path)


def test_a_wide_table_is_read_in_seconds(tmp_path: Path) -> None:
    """DuckDB took a minute and five gigabytes for 1,000 columns, the plain reader two seconds."""
    names = ",".join(f"c{i}" for i in range(5_000))
    path = saved(tmp_path, "a.csv", names + "\n" + (",".join(["1"] * 5_000) + "\n") * 3)
    frame = read(path)
    assert (frame.n_rows, len(frame.columns)) == (3, 5_000)


# Endings that lie --------------------------------------------------------------------------------


def _contents() -> dict[str, bytes]:
    page = b"<!DOCTYPE html>\n<html><head><title>Sign in, please</title></head>\n</html>\n"
    zipped, book, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("a.csv", "a,b\n1,2\n")
    made = openpyxl.Workbook()
    made.active.append(["a"])
    made.save(book)
    made.close()
    pq.write_table(pa.table({"a": [1, 2], "s": ["é", "ü"]}), parquet)
    table = parquet.getvalue()
    return {
        "page": page,
        "page after a mark": b"\xef\xbb\xbf \r\n" + page.lower(),
        "zip": zipped.getvalue(),
        "book": book.getvalue(),
        "parquet": table,
        "cut parquet": table[:-4],
        "parquet with a long footer": table[:-8] + b"\xff\xff\xff\x7fPAR1",
        "head of parquet": table[:4] + bytes(20),
        "zipped twice": gzip.compress(gzip.compress(b"a,b\n1,2\n")),
        "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\n",
        "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "zeros": bytes(1000),
        "noise": random.Random(1).randbytes(5000),
        "sqlite": b"SQLite format 3\0" + bytes(84),
        "nothing": b"",
    }


CONTENTS = _contents()
RIGHT = {("book", ".xlsx"), ("parquet", ".parquet"), ("parquet", ".pq")}


@pytest.mark.parametrize("ending", TABLES)
@pytest.mark.parametrize("content", CONTENTS)
def test_an_ending_that_lies(tmp_path: Path, content: str, ending: str) -> None:
    """One sentence with the file's name in it, whatever was saved under the name of a table."""
    path = saved(tmp_path, f"it{ending}", CONTENTS[content])
    if (content, ending) in RIGHT:
        assert column_names(path)
        return
    with pytest.raises(StairError) as caught:
        read(path)
    assert str(caught.value).startswith(("it.", "cannot read it."))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("page", "it.csv is a web page, not a table"),
        ("pdf", "it.csv is a PDF, not a table"),
        ("zip", "it.csv is a zip file or an Excel file, not text; check its ending"),
        ("parquet", "it.csv is a Parquet file, not text"),
        ("zipped twice", "it.csv is zipped twice, not text"),
    ],
)
def test_common_lies_are_named(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(StairError, match=words):
        read(saved(tmp_path, "it.csv", CONTENTS[content]))


def test_a_column_may_be_called_as_another_file_begins(tmp_path: Path) -> None:
    assert list(read(saved(tmp_path, "a.csv", "PAR1,b\n1,2\n")).columns) == ["PAR1", "b"]
