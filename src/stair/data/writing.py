"""Files out: all of one, or nothing."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from stair.data.arrays import from_array
from stair.data.databases import PARQUET
from stair.data.frame import Array, Source
from stair.data.packages import duckdb_in_memory, optional, quoted, reason
from stair.data.reading import EXCEL, JSON_LINES, TEXT
from stair.errors import StairError

DUCKDB = frozenset({".duckdb", ".ddb"})


def atomic_write(path: Source, data: str | bytes) -> None:
    """Write a file so that nobody ever sees half of it: beside it first, then in its place."""
    with replacing(path) as beside, beside.open("wb") as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)
        to_disk(file)


def to_disk(file: IO[Any]) -> None:
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # devices and pipes have no disk
        os.fsync(file.fileno())


def is_device(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder: a device or a pipe."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextlib.contextmanager
def _nameless(folder: Path) -> Iterator[int | None]:
    """A file without a name, of which nothing is left when the process is killed; None where the
    system has no such files."""
    flag = getattr(os, "O_TMPFILE", None)
    number = None
    if flag is not None and Path("/proc/self/fd").is_dir():
        with contextlib.suppress(OSError):
            number = os.open(folder, flag | os.O_RDWR, 0o666)
    try:
        yield number
    finally:
        if number is not None:
            os.close(number)


@contextlib.contextmanager
def replacing_at_once(path: Source) -> Iterator[Path]:
    """As `replacing`, for who opens the file by this path: where the system has such files it is
    without a name before its end, so that not even a kill leaves anything behind."""
    with replacing(path) as beside, _nameless(beside.resolve().parent) as number:
        if number is None or is_device(beside):
            yield beside
            return
        os.fchmod(number, stat.S_IMODE(beside.stat().st_mode))
        beside.unlink()
        yield Path(f"/proc/self/fd/{number}")
        root = os.open("/", os.O_RDONLY)
        try:  # with folders given, or links are not followed
            os.link(f"/proc/self/fd/{number}", beside, src_dir_fd=root, dst_dir_fd=root,
                    follow_symlinks=True)  # fmt: skip
        finally:
            os.close(root)


@contextlib.contextmanager
def replacing(path: Source) -> Iterator[Path]:
    """A fresh file beside the path that takes its place at the end, or vanishes on any failure."""
    try:
        place = Path(path).expanduser()
        target = place.resolve()
    except (TypeError, ValueError, RuntimeError):
        raise StairError(f"cannot write to {path!r}; expected the path of a file.") from None
    try:
        if is_device(place):  # it stays where it is, and links to pipes lead nowhere
            yield place
            return
        if target.is_dir():
            raise StairError(f'cannot write "{path}": it is a folder; expected the path of a file.')
        if not target.parent.is_dir():
            raise StairError(f'cannot write "{path}": there is no folder "{target.parent}".')
        mode = target.stat().st_mode if target.exists() else None
        beside = target.with_name(f".stair-{secrets.token_hex(8)}.tmp")
        try:
            with beside.open("xb"):
                pass
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
            yield beside
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise StairError(f'cannot write "{path}": {reason(error)}.') from error
    except UnicodeEncodeError as error:
        what = error.object[error.start : error.end]
        raise StairError(
            f'cannot write "{path}": its encoding has no "{what}"; save the table as UTF-8.'
        ) from None


def write_table(path: Source, columns: Mapping[str, Array]) -> None:
    """Write columns as what the path's ending says; all of it or nothing.

    Missing values are empty fields, true and false are words, times are ISO: `read` gives back
    what was written, except that the text of a missing value ("NA") is missing when read.
    """
    table = {name: from_array(name, np.asarray(values))[0] for name, values in columns.items()}
    if len({len(values) for values in table.values()}) != 1:
        raise StairError("cannot write columns of different lengths, or none; check the table.")
    if written_as(path) in DUCKDB:
        raise StairError(f'cannot write columns alone to "{path}"; name a .parquet or .csv file.')
    if written_as(path) in PARQUET:
        _write_parquet(path, table)
    else:
        write_rows(path, list(table), _rows(table))


def _rows(table: Mapping[str, Array]) -> Iterator[Sequence[object]]:
    n_rows = len(next(iter(table.values())))
    for start in range(0, n_rows, 10_000):
        some = (_values(values[start : start + 10_000]) for values in table.values())
        yield from zip(*some, strict=True)


def _values(array: Array) -> list[object]:
    """Python's values; times beyond its calendar as text."""
    values: list[object] = array.tolist()
    if array.dtype.kind == "M" and any(isinstance(value, int) for value in values):
        return [None if v == "NaT" else v for v in np.datetime_as_string(array).tolist()]
    return values


# Rows of values ----------------------------------------------------------------------------------


def written_as(path: Source) -> str:
    """The ending that says how a table is written; what we cannot write is refused."""
    place = Path(path)
    endings = [s.lower() for s in place.suffixes[-2:]]
    if endings[-1:] == [".gz"] and endings[:-1] and endings[-2] in TEXT | JSON_LINES:
        return endings[-2]
    ending = "".join(endings[-1:])
    if ending in DUCKDB and place.exists() and not is_device(place):
        raise StairError(f'"{path}" is there already; name a database that is not there yet.')
    if ending in TEXT | JSON_LINES | PARQUET | EXCEL | DUCKDB:
        return ending
    if is_device(place):
        return ".csv"
    raise StairError(
        f'cannot write "{path}": expected a name that ends in .csv, .tsv, .txt, .jsonl, .ndjson '
        f"(each also with .gz), .parquet, .pq, .xlsx, .duckdb or .ddb."
    )


def write_rows(path: Source, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write rows of Python's values as what the path's ending says; all of them or nothing."""
    ending = written_as(path)
    if ending in EXCEL:
        _write_excel(path, names, rows)
    elif ending in PARQUET:
        _write_values(path, names, rows)
    elif ending in JSON_LINES:
        with text_to(path, "utf-8") as file:
            for row in rows:
                known = dict(zip(names, map(_json_value, row), strict=True))
                file.write(json.dumps(known, ensure_ascii=False) + "\n")
    else:
        separator = "\t" if ending == ".tsv" else ","
        with text_to(path, "utf-8") as file:
            for row in chain([names], rows):
                file.write(csv_line(row, separator) + "\n")


@contextlib.contextmanager
def text_to(path: Source, encoding: str) -> Iterator[IO[str]]:
    """A text file to write, zipped where its name says so, that takes its place at the end."""
    with replacing_at_once(path) as beside, beside.open("wb") as raw:
        binary: Any = raw
        if Path(path).suffix.lower() == ".gz":  # the same bytes whenever it is written
            binary = gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
        file = io.TextIOWrapper(binary, encoding=encoding, newline="")
        try:
            yield file
            file.flush()
        finally:
            with contextlib.suppress(OSError, ValueError):  # it could not be flushed, as was said
                file.detach()
        if binary is not raw:
            binary.close()
        to_disk(raw)


def csv_line(cells: Iterable[object], separator: str) -> str:
    """Cells side by side, quoted where they must be."""
    quoted_if = re.compile(f'["\r\n{re.escape(separator)}]').search
    line = separator.join(
        '"' + text.replace('"', '""') + '"' if quoted_if(text) else text
        for text in map(_text, cells)
    )
    return line or '""'  # one empty field is not a blank line


def _text(value: object) -> str:
    """A value as a text file holds it."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=_text)
    return str(value)


def _json_value(value: object) -> object:
    """A value as JSON holds it: its text where JSON has none such."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None if value != value else str(value)
    if value is None or isinstance(value, str | int | dict | list):
        return value
    return _text(value)


def _write_excel(path: Source, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    openpyxl = optional("openpyxl")
    if openpyxl is None:
        raise StairError(
            f"cannot write \"{path}\": Excel needs an extra package: pip install 'stair[excel]'."
        )
    if len(names) > _WIDEST_SHEET:
        raise StairError(f'cannot write "{path}": Excel holds {_WIDEST_SHEET:,} columns at most.')
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("stair")
    cell_of = import_module("openpyxl.cell").WriteOnlyCell

    def cell(value: object) -> object:
        found = cell_of(sheet, _excel_value(path, value))
        if isinstance(found.value, str) and found.data_type == "f":
            found.data_type = "s"  # a text that begins with = is no formula
        return found

    illegal = import_module("openpyxl.utils.exceptions").IllegalCharacterError
    with replacing(path) as beside:
        try:
            for number, row in enumerate(chain([names], rows), 1):
                if number > _LONGEST_SHEET:
                    raise StairError(
                        f'cannot write "{path}": Excel holds {_LONGEST_SHEET:,} rows at most.'
                    )
                sheet.append([cell(value) for value in row])
        except illegal:
            raise StairError(
                f'cannot write "{path}": Excel cannot hold the control characters in row {number}.'
            ) from None
        finally:
            sheet.close()
        with beside.open("wb") as file:
            book.save(file)
            to_disk(file)


_LONGEST_SHEET = 1 << 20
_WIDEST_SHEET = 1 << 14
_LONGEST_CELL = 32_767


def _excel_value(path: Source, value: object) -> object:
    """A value as Excel holds it; the text of one that it would change."""
    if isinstance(value, dt.datetime):
        exact = value.tzinfo is None and value.year >= 1900 and value.microsecond % 1000 == 0
        return value if exact else _text(value)
    if isinstance(value, dt.date):
        return value if value.year >= 1900 else _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else _text(value) or None
    if isinstance(value, bool | dt.time | dt.timedelta) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= 1 << 53 else str(value)
    text = _text(value)
    if len(text) > _LONGEST_CELL:
        raise StairError(
            f'cannot write "{path}": a text has {len(text):,} characters, and Excel holds '
            f"{_LONGEST_CELL:,}."
        )
    return text


def _write_values(path: Source, names: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    pyarrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    if parquet is None:
        raise StairError(
            f"cannot write \"{path}\": Parquet needs an extra package: pip install 'stair[files]'."
        )
    with replacing(path) as beside, beside.open("wb") as file:
        arrays = [parquet_of(list(values)) for values in zip(*rows, strict=True)]
        parquet.write_table(pyarrow.table(arrays, names=list(names)), file)
        to_disk(file)


def parquet_of(values: list[object]) -> Any:
    """Python's values as an Arrow array: of one type, or as text."""
    pyarrow = optional("pyarrow")
    try:
        return pyarrow.array(values, from_pandas=True)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array([None if v is None else _text(v) for v in values], pyarrow.string())


# Columns as Parquet ------------------------------------------------------------------------------


def _write_parquet(path: Source, table: dict[str, Array]) -> None:
    duckdb, parquet = optional("duckdb"), optional("pyarrow.parquet")
    distinct = len({name.casefold() for name in table}) == len(table)
    if duckdb is not None and (distinct or parquet is None):
        if not distinct:
            raise StairError(
                f'cannot write "{path}": the names of two columns differ only in case; '
                f"rename one, or write .csv."
            )
        with replacing(path) as beside, duckdb_in_memory(duckdb) as con:
            con.execute("SET pandas_analyze_sample = 0")  # objects are text, whatever comes first
            con.register("t", {f"c{i}": values for i, values in enumerate(table.values())})
            select = ", ".join(
                f"{_parquet_sql(i, values)} AS {quoted(name)}"
                for i, (name, values) in enumerate(table.items())
            )
            place = str(beside).replace("'", "''")
            try:
                form = "FORMAT parquet, USE_TMP_FILE false"  # this is one, and one more was left
                con.execute(f"COPY (SELECT {select} FROM t) TO '{place}' ({form})")
            except duckdb.Error as error:
                raise StairError(f'cannot write "{path}": {reason(error)}.') from error
            with beside.open("rb+") as file:
                to_disk(file)
        return
    if parquet is None:
        raise StairError(
            f"cannot write \"{path}\": Parquet needs an extra package: pip install 'stair[files]'."
        )
    pyarrow = import_module("pyarrow")
    arrays = [
        pyarrow.array(v, from_pandas=True, type=None if len(v) else pyarrow.string())
        for v in table.values()
    ]
    with replacing(path) as beside, beside.open("wb") as file:
        parquet.write_table(pyarrow.table(arrays, names=list(table)), file)
        to_disk(file)


def _parquet_sql(place: int, values: Array) -> str:
    truths = values.dtype == object and any(isinstance(v, bool) for v in values.tolist())
    return f"CAST(c{place} AS BOOLEAN)" if truths else f"c{place}"
