"""How large a file is when it is unpacked, found out before anything reads it.

A few kilobytes can stand for more than any machine holds. What is counted is what really comes out,
in a stream that stops at the limit; a file's own claims are only believed where they speak against
it.
"""

from __future__ import annotations

import glob
import gzip
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stair.data.databases import PARQUET
from stair.data.packages import duckdb_in_memory, library_in_words, optional, quoted, reason
from stair.data.reading import EXCEL, JSON_LINES, TEXT, ending_of
from stair.errors import StairError
from stair.review.sizes import size

_BLOCK = 1 << 20
_MOST_MEMBERS = 10_000
_LARGEST_DIRECTORY = 4_000_000  # bytes that list the members of a zip file
_LARGEST_TREES = 64_000_000  # bytes of an Excel file that are neither cells nor shared text
_END_OF_ROWS = re.compile(rb"</(\w{1,16}:)?sheetData")
_SHEET = "xl/worksheets/sheet"
_LONGEST_ROW = 16_000_000  # bytes
_CELL = 8  # bytes that a value takes in memory, at least


def check_expanded(path: Path, most: int) -> None:
    """Refuse a file that grows to more than so many bytes when it is unpacked."""
    try:
        ending = ending_of(path)
        if ending in TEXT | JSON_LINES:
            _check_text(path, most)
        elif ending in EXCEL:
            _check_excel(path, most)
        elif ending in PARQUET:
            _check_parquet(path, most)
    except OSError as error:
        raise StairError(f"cannot read {path.name}: {reason(error)}.") from error


def _grown(path: Path, most: int) -> StairError:
    return StairError(
        f"{path.name} grows to more than {size(most)} when it is unpacked; "
        f"the page does not open it. Take a part of it, or use the command line."
    )


def _check_text(path: Path, most: int) -> None:
    """Text is its own size, also where it is zipped, which its first bytes say as well."""
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b" or path.suffix.lower() == ".gz"
        raw.seek(0)
        if not zipped:
            if path.stat().st_size > most:
                raise StairError(f"{path.name} is larger than {size(most)}; take a part of it.")
            return
        total = 0
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                while block := file.read(_BLOCK):
                    total += len(block)
                    if total > most:
                        raise _grown(path, most)
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise StairError(f"{path.name} is not a sound gzip file; copy it again.") from None


# Excel -------------------------------------------------------------------------------------------


def _check_excel(path: Path, most: int) -> None:
    _check_directory(path)
    troubles = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)
    total = trees = 0
    with library_in_words(path.name, *troubles), zipfile.ZipFile(path) as book:
        members = book.infolist()
        if len(members) > _MOST_MEMBERS:
            raise StairError(f"{path.name} has {len(members):,} parts; no Excel file does.")
        for member in members:
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise StairError(f"{path.name} is packed in a way that no Excel file is.")
            tree = _becomes_a_tree(member.filename)
            row = _Row() if member.filename.startswith(_SHEET) else None
            with book.open(member) as part:
                while block := part.read(_BLOCK):
                    total += len(block)
                    trees += len(block) if tree else 0
                    if total > most or trees > _LARGEST_TREES:
                        raise _grown(path, most if total > most else _LARGEST_TREES)
                    if row is not None and row.grows_past(block, _LONGEST_ROW):
                        raise StairError(
                            f"{path.name} has a row of more than {size(_LONGEST_ROW)}; "
                            f"no Excel file has one."
                        )


@dataclass
class _Row:
    """How long the current row of a sheet is: its cells are held until it ends."""

    length: int = 0
    done: bool = False  # after the rows come lists that may be long
    tail: bytes = b""

    def grows_past(self, block: bytes, most: int) -> bool:
        seen = self.tail + block
        last = max(seen.rfind(mark) for mark in (b"</row", b"<row", b":row"))
        self.length = len(seen) - last if last >= 0 else self.length + len(block)
        self.done = self.done or _END_OF_ROWS.search(seen) is not None
        self.tail = block[-32:]
        return self.length > most and not self.done


def _becomes_a_tree(name: str) -> bool:
    """Cells and shared text are read as they come; other parts are held in many times their size,
    except pictures, which nobody reads."""
    return name.endswith((".xml", ".rels")) and not name.startswith((_SHEET, "xl/sharedStrings"))


def _check_directory(path: Path) -> None:
    """The list of a zip file's members, which is read at once, must be short."""
    sound = StairError(f"{path.name} is not an Excel file; check its ending, or save it again.")
    end = path.stat().st_size
    with path.open("rb") as file:
        start = max(0, end - (1 << 16) - 22)
        file.seek(start)
        tail = file.read()
    last = tail[-22:]
    at = len(tail) - 22 if last[:4] == b"PK\5\6" and last[-2:] == b"\0\0" else tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < 22:
        raise sound
    (length,) = struct.unpack_from("<L", tail, at + 12)
    if length > _LARGEST_DIRECTORY or tail[max(0, at - 20) : at].startswith(b"PK\6\7"):
        raise StairError(f"{path.name} has too many parts; no Excel file has so many.")


# Parquet -----------------------------------------------------------------------------------------


def _check_parquet(path: Path, most: int) -> None:
    with path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise StairError(
                f"{path.name} is not a Parquet file; check its ending, or write it again."
            )
    duckdb = optional("duckdb")
    if duckdb is not None:
        with duckdb_in_memory(duckdb) as con, library_in_words(path.name, duckdb.Error):
            con.execute(f"SET memory_limit = '{max(most >> 20, 256)}MiB'")
            con.execute("SET temp_directory = ''")
            _check_by_duckdb(con, path, most, duckdb.OutOfMemoryException)
        return
    parquet = optional("pyarrow.parquet")
    if parquet is None:
        raise StairError(
            f"{path.name} is a Parquet file, which needs an extra package: "
            f"pip install 'stair[review]'"
        )
    arrow = optional("pyarrow")
    with library_in_words(path.name, arrow.ArrowException, OSError):
        about = parquet.read_metadata(path)
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        rows = max(about.num_rows, sum(group.num_rows for group in groups))
        claimed = sum(group.total_byte_size for group in groups)
    _judge(path, rows, about.num_columns, claimed, most)


def _judge(path: Path, rows: int, columns: int, claimed: int, most: int) -> None:
    if rows < 0 or claimed < 0:
        raise StairError(f"cannot read {path.name}, it may be damaged: it claims {rows} rows.")
    if max(claimed, rows * columns * _CELL) > most:
        raise _grown(path, most)


def _check_by_duckdb(con: Any, path: Path, most: int, no_memory: type[Exception]) -> None:
    place = [glob.escape(str(path.resolve()))]
    rows, groups_rows, columns, claimed = con.execute(
        "SELECT max(f.num_rows), max(g.n), max(g.columns), max(g.claimed) "
        "FROM parquet_file_metadata($1) AS f, (SELECT sum(n) AS n, sum(claimed) AS claimed, "
        "max(columns) AS columns FROM (SELECT max(row_group_num_rows) AS n, "
        "greatest(max(row_group_bytes), sum(total_uncompressed_size)) AS claimed, "
        "count(*) AS columns FROM parquet_metadata($1) GROUP BY row_group_id)) AS g",
        place,
    ).fetchone()
    _judge(path, max(rows, groups_rows or 0), columns or 0, claimed or 0, most)
    if not rows:
        return
    # One long text that a million rows refer to is small in the file, and a copy for each in use.
    relation = "read_parquet(?, hive_partitioning = false)"
    described = con.execute(f"DESCRIBE SELECT * FROM {relation}", place).fetchall()
    long = [
        f"coalesce(sum(strlen(CAST({quoted(name)} AS VARCHAR))::HUGEINT), 0)"
        for name, kind, *_ in described
        if "VARCHAR" in kind or "BLOB" in kind or kind.endswith("]") or "(" in kind
    ]
    if not long:
        return
    try:
        (told,) = con.execute(f"SELECT {' + '.join(long)} FROM {relation}", place).fetchone()
    except no_memory:
        raise _grown(path, most) from None
    if told + rows * (columns or 0) * _CELL > most:
        raise _grown(path, most)
