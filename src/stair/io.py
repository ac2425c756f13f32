"""Tables in and files out: one plain form for whatever a person hands over.

Everything that is read becomes a `Frame`: named numpy columns of five kinds only, so that the
rest of the package never asks where a table came from. Files are data and nothing else: no
reader here can run code that a file brings along, and a file that cannot be read in full is
refused in one sentence, because half a table gives wrong rules without anybody noticing.

pandas, pyarrow, duckdb and openpyxl are optional. They are imported where they are used.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import datetime as dt
import glob
import gzip
import io
import json
import math
import numbers
import os
import re
import secrets
import sqlite3
import stat
import tempfile
import urllib.parse
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import import_module
from itertools import compress, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, TextIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError, did_you_mean, folded, no_such_column

__all__ = [
    "Frame",
    "atomic_write",
    "column_names",
    "from_object",
    "read",
    "write_csv",
    "write_text",
]

Array: TypeAlias = NDArray[Any]
Source: TypeAlias = str | os.PathLike[str]

_KNOWN = (
    ".csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq, .xlsx, "
    ".duckdb, .ddb, .db, .sqlite and .sqlite3"
)
_TEXT = frozenset({".csv", ".tsv", ".txt"})
_JSON_LINES = frozenset({".jsonl", ".ndjson"})
_PARQUET = frozenset({".parquet", ".pq"})
_EXCEL = frozenset({".xlsx"})
_DATABASE = frozenset({".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3"})

_MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
_EXCEL_ERRORS = frozenset(
    {"#N/A", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"}
)
_HEAD = 1 << 20
_BLOCK = 1 << 22
_LONGEST_FIELD = 1 << 24

_EPOCH_UNIT = "datetime64[us]"


@dataclass(frozen=True, eq=False)
class Frame:
    """A table as named columns.

    A column is float64 (NaN = missing), int64, bool, datetime64[us] (NaT = missing), or object
    with only text, or only true and false, and None for missing.
    """

    columns: dict[str, Array] = field(repr=False)
    """The columns in the order of the file."""
    n_rows: int
    source: str = ""
    """The file's name as people know it, or "" where there is no file."""
    notes: tuple[str, ...] = ()
    """What a person should know about how the table was read."""


@dataclass(frozen=True, eq=False)
class _Table:
    """An opened source: its names are known, its values are not read yet."""

    names: list[str]
    load: Callable[[list[int]], list[tuple[Array, bool]]]
    """The columns at these places, each with whether its times were moved to UTC."""
    notes: list[str] = field(default_factory=list)
    empty: str = "has no rows"


# Reading ----------------------------------------------------------------------------------------


def read(
    source: Source,
    *,
    columns: Iterable[str] | None = None,
    table: str | None = None,
    query: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> Frame:
    """Read a file into a Frame; its ending says what it is.

    `columns` names the columns to read; the others are not even loaded where the format allows.
    `table` or `query` choose from a database, and `table` a sheet of an Excel file. `separator`
    and `encoding` are for text files, where both are otherwise found out.
    """
    return _read(source, columns, table, query, separator, encoding, None)


def column_names(
    source: Source,
    *,
    table: str | None = None,
    query: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> tuple[str, ...]:
    """The names that `read` would give, from the header or schema alone where there is one.

    JSON lines have no schema, so that all lines are read.
    """
    path = _regular_file(source)
    with _opened(path, table, query, separator, encoding, whole=False, reader=None) as opened:
        names, _ = _unique(opened.names)
    return tuple(names)


_Reader: TypeAlias = Literal["duckdb", "plain"] | None


def _read(
    source: Source,
    columns: Iterable[str] | None,
    table: str | None,
    query: str | None,
    separator: str | None,
    encoding: str | None,
    reader: _Reader,
) -> Frame:
    """`read`, with the reader of text files open to choice so that tests can compare the two."""
    path = _regular_file(source)
    with _opened(path, table, query, separator, encoding, whole=True, reader=reader) as opened:
        names, renamed = _unique(opened.names)
        places = _places(columns, names, path.name)
        loaded = opened.load(places)
    notes = [*opened.notes, *(renamed[i] for i in places if i in renamed)]
    return _frame([names[i] for i in places], loaded, path.name, notes, opened.empty)


def _frame(
    names: Sequence[str],
    loaded: Sequence[tuple[Array, bool]],
    source: str,
    notes: Iterable[str],
    empty: str = "has no rows",
) -> Frame:
    """Put the columns together and refuse a table in which there is nothing to look at."""
    what = source or "the table"
    if not names:
        raise StairError(f"{what} has no columns; expected at least one.")
    n_rows = len(loaded[0][0])
    if n_rows == 0:
        raise StairError(f"{what} {empty}; expected at least one row of values.")
    said = list(notes)
    zoned = [name for name, (_, moved) in zip(names, loaded, strict=True) if moved]
    said.extend(f'the times in "{name}" have a time zone; they are read as UTC' for name in zoned)
    arrays = {name: array for name, (array, _) in zip(names, loaded, strict=True)}
    return Frame(arrays, n_rows, source, tuple(said))


def _unique(raw: Sequence[str]) -> tuple[list[str], dict[int, str]]:
    """Names that can tell the columns apart, and for each changed one a note by its place."""
    taken = {name for name in raw if name.strip()}
    seen: set[str] = set()
    names: list[str] = []
    notes: dict[int, str] = {}
    for place, name in enumerate(raw):
        new = name
        if not name.strip():
            new = _free(f"column {place + 1}", taken)
            notes[place] = f'column {place + 1} has no name; it is read as "{new}"'
        elif name in seen:
            new = _free(name, taken)
            notes[place] = f'"{name}" is the name of several columns; one is read as "{new}"'
        taken.add(new)
        seen.add(new)
        names.append(new)
    return names, notes


def _free(name: str, taken: set[str]) -> str:
    """The name, or the first of "name (2)", "name (3)", … that no column has."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _places(columns: Iterable[str] | None, names: Sequence[str], source: str) -> list[int]:
    """Where the wanted columns are, in the order of the file."""
    if columns is None:
        return list(range(len(names)))
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise StairError("columns= is empty; name at least one column, or leave it out.")
    place = {name: i for i, name in enumerate(names)}
    for name in wanted:
        if name not in place:
            raise no_such_column(str(name), names, source)
    return sorted({place[name] for name in wanted})


def _optional(name: str) -> Any:
    """An optional package, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


# Finding and opening a file ----------------------------------------------------------------------


def _regular_file(source: Source) -> Path:
    """The file, if there is one that can be read; otherwise what is in its place."""
    try:
        path = Path(source).expanduser()
    except (TypeError, RuntimeError):
        raise StairError(
            f"got {source!r} in place of a file; expected the path of a file."
        ) from None
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise StairError(_no_such_file(path)) from None
    except (OSError, ValueError) as error:
        raise StairError(f"cannot read {_shown(path)}: {_reason(error)}.") from None
    if stat.S_ISDIR(mode):
        raise StairError(f"{_shown(path)} is a folder; expected a file ({_KNOWN}).")
    if not stat.S_ISREG(mode):
        raise StairError(f"{_shown(path)} is not a regular file; save the table in a file first.")
    return path


def _shown(path: Path) -> str:
    return path.name or str(path)


def _no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'no file "{path}": there is no folder "{folder}".'
    try:
        there = sorted(p.name for p in folder.iterdir() if p.is_file())
    except OSError:
        there = []
    where = "the current folder" if folder == Path() else f'"{folder}"'
    return f'no file "{path.name}" in {where}.{did_you_mean(path.name, there)}'


def _reason(error: BaseException) -> str:
    """Why, in the first line of what the system or a library says."""
    if isinstance(error, PermissionError):
        return "no permission"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextlib.contextmanager
def _opened(
    path: Path,
    table: str | None,
    query: str | None,
    separator: str | None,
    encoding: str | None,
    *,
    whole: bool,
    reader: _Reader,
) -> Iterator[_Table]:
    """Open a file as what its ending says, and say every trouble with it in one sentence."""
    endings = [s.lower() for s in path.suffixes[-2:]]
    zipped = endings[-1:] == [".gz"]
    ending = "".join(endings[-2:-1] if zipped else endings[-1:])
    if ending not in _TEXT | _JSON_LINES and (
        zipped or ending not in _DATABASE | _EXCEL | _PARQUET
    ):
        got = f'the ending "{"".join(endings[-1:])}"' if endings else "no ending"
        raise StairError(f"{path.name} has {got}; the known ones are {_KNOWN}.")
    _check_options(path, ending, table, query, separator, encoding)
    with contextlib.ExitStack() as stack:
        try:
            with path.open("rb") as file:
                start = file.read(32)
            if ending in _TEXT:
                text = _find_text(path, start, encoding, whole)
                opened = _open_csv(text, separator, ending, reader)
            elif ending in _JSON_LINES:
                opened = _open_json_lines(_find_text(path, start, encoding, whole=True))
            elif not start:
                raise StairError(f"{path.name} is empty (0 bytes); expected a table.")
            elif ending in _PARQUET:
                opened = _open_parquet(path, start, stack)
            elif ending in _EXCEL:
                opened = _open_excel(path, table, stack)
            else:
                opened = _open_database(path, start, table, query, stack)
            yield opened
        except OSError as error:
            raise StairError(f"cannot read {path.name}: {_reason(error)}.") from error
        except UnicodeError as error:  # beyond the part that was checked, or a file that changed
            raise StairError(f"{path.name} is not text in one encoding; pass encoding=.") from error


def _check_options(
    path: Path,
    ending: str,
    table: str | None,
    query: str | None,
    separator: str | None,
    encoding: str | None,
) -> None:
    """An option that a format does not have is a misunderstanding, so say so."""
    if table is not None and query is not None:
        raise StairError("got both table= and query=; pass only one of them.")
    if table is not None and ending not in _DATABASE | _EXCEL:
        raise StairError(f"table= is for databases and Excel files; {path.name} is neither.")
    if query is not None and ending not in _DATABASE:
        raise StairError(f"query= is for databases; {path.name} is not one.")
    if separator is not None and ending not in _TEXT:
        raise StairError(f"separator= is for .csv, .tsv and .txt files; {path.name} is none.")
    if encoding is not None and ending not in _TEXT | _JSON_LINES:
        raise StairError(f"encoding= is for text files; {path.name} is not one.")


# Text files: bytes to characters -----------------------------------------------------------------


@dataclass(frozen=True)
class _Text:
    """A text file of which we know how its bytes become characters."""

    path: Path
    zipped: bool
    encoding: str
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.name

    @contextlib.contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """The bytes, unzipped."""
        with self.path.open("rb") as raw, _gzip_in_words(self.name):
            if self.zipped:
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield cast(BinaryIO, unzipped)
            else:
                yield raw

    @contextlib.contextmanager
    def characters(self) -> Iterator[TextIO]:
        """The characters, with the ends of lines as they are in the file."""
        with self.binary() as raw:
            wrapper = io.TextIOWrapper(raw, encoding=self.encoding, newline="")
            try:
                yield wrapper
            finally:
                wrapper.detach()


@contextlib.contextmanager
def _gzip_in_words(name: str) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise StairError(
            f"{name} ends too early; the gzip file is cut off, copy it again."
        ) from None
    except (gzip.BadGzipFile, zlib.error):
        raise StairError(f"{name} is not a sound gzip file; copy it again.") from None


def _find_text(path: Path, start: bytes, encoding: str | None, whole: bool) -> _Text:
    """Find out how the bytes become characters, and that all of them do (or the first ones)."""
    zipped = path.suffix.lower() == ".gz" or start.startswith(b"\x1f\x8b")
    if encoding is not None:
        return _explicit_text(path, zipped, encoding, whole)
    with _Text(path, zipped, "").binary() as file:
        start = file.read(4)
    choices = ["utf-8", "cp1252"]
    if start.startswith(codecs.BOM_UTF8):
        choices = ["utf-8-sig"]
    elif start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        choices = ["utf-16"]
    why = ""
    for choice in choices:
        text = _Text(path, zipped, choice)
        problem = _trouble(text, whole)
        if problem is None:
            spoken = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}.get(choice)
            said = (f"{path.name} is not in UTF-8; it is read as {spoken}",) if spoken else ()
            return _Text(path, zipped, choice, said)
        why = why or problem
    raise StairError(
        f"{path.name} is not text in UTF-8, UTF-16 or Windows-1252 ({why}); "
        f"if it is text, pass encoding=."
    )


def _explicit_text(path: Path, zipped: bool, encoding: str, whole: bool) -> _Text:
    try:
        name = codecs.lookup(encoding).name
        "".encode(encoding)  # refuses codecs that are not for text
    except (LookupError, ValueError):
        raise StairError(
            f'no encoding is called "{encoding}"; pass for example encoding="utf-8" or "cp1252".'
        ) from None
    text = _Text(path, zipped, "utf-8-sig" if name == "utf-8" else name)
    problem = _trouble(text, whole)
    if problem is not None:
        raise StairError(
            f'{path.name} is not text in "{encoding}" ({problem}); pass another encoding=, '
            f"or none to have it found out."
        )
    return text


# Control characters that no text has; they tell other files from text in Windows-1252.
_NOT_TEXT = re.compile("[\x01-\x08\x0e-\x19\x1c-\x1f]")


def _trouble(text: _Text, whole: bool) -> str | None:
    """What speaks against this encoding, or None. Reads everything, or only the first part."""
    decoder = codecs.getincrementaldecoder(text.encoding)()
    left = math.inf if whole else _HEAD
    with text.binary() as file:
        position = 0
        while left > 0:
            block = file.read(int(min(_BLOCK, left)))
            left -= len(block)
            try:
                decoded = decoder.decode(block, final=not block)
            except UnicodeError as error:
                at = position + getattr(error, "start", 0)
                return f"the byte at about {at:,} does not belong"
            if "\0" in decoded:
                return "it has NUL bytes"
            if text.encoding == "cp1252" and _NOT_TEXT.search(decoded):
                return "it has control characters"
            if not block:
                break
            position += len(block)
    return None


# CSV: characters to columns of text --------------------------------------------------------------


def _open_csv(text: _Text, separator: str | None, ending: str, reader: _Reader) -> _Table:
    if separator is None:
        separator = _find_separator(text, ending)
    elif len(separator) != 1 or separator in '"\r\n\0':
        raise StairError(f'separator= must be one character such as "," or ";", got {separator!r}.')
    with _rows(text, separator) as rows:
        header = next(rows, None)
    if header is None:
        raise StairError(f"{text.name} is empty; expected a header line and rows of values.")

    def load(places: list[int]) -> list[tuple[Array, bool]]:
        assert separator is not None
        layout = _Layout(text, separator, header, places)
        columns = _by_duckdb(layout, forced=reader == "duckdb") if reader != "plain" else None
        return _by_plain_reader(layout) if columns is None else columns

    names = [name.strip() for name in header]
    return _Table(names, load, list(text.notes), "has a header but no rows")


@dataclass(frozen=True)
class _Layout:
    """What both readers of CSV files need to know."""

    text: _Text
    separator: str
    header: list[str]
    places: list[int]


def _find_separator(text: _Text, ending: str) -> str:
    """The separator that cuts the first lines into the same number of fields, and most of them.

    Where none does so in every line, the one that cuts the header most: the row that does not fit
    is reported later by its line.
    """
    with text.characters() as file:
        head = file.read(_HEAD // 8)  # characters of up to four bytes, none beyond those checked
        cut = bool(file.read(1))
    order = "\t,;|" if ending == ".tsv" else ",;\t|"
    best, best_rank = order[0], (False, 1)
    for separator in order:
        lines = csv.reader(io.StringIO(head, newline=""), delimiter=separator, strict=True)
        counts: list[int] = []
        try:
            counts.extend(len(row) for row in islice(lines, 200) if row)
        except csv.Error:
            counts.append(0)
        if cut and len(counts) < 200:
            del counts[max(1, len(counts) - 1) :]  # the last row may be cut off
        rank = (len(set(counts)) == 1, counts[0] if counts else 0)
        if rank[1] > 1 and rank > best_rank:
            best, best_rank = separator, rank
    return best


@contextlib.contextmanager
def _rows(text: _Text, separator: str) -> Iterator[Iterator[list[str]]]:
    """The rows of a file as the standard library reads them, without blank lines.

    Every row is as long as the first one; a row that is not is reported by its line.
    """
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with text.characters() as file:
            yield _checked_rows(text.name, csv.reader(file, delimiter=separator, strict=True))
    finally:
        csv.field_size_limit(limit)


def _checked_rows(name: str, reader: Any) -> Iterator[list[str]]:
    expected = -1  # not known yet
    line = 1  # where the row begins: one with quoted line breaks ends further down
    try:
        for row in reader:
            if len(row) != expected and row:
                if expected > 0:
                    fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                    raise StairError(f"{name} line {line} has {fields}, expected {expected}")
                expected = len(row)
            line = reader.line_num + 1
            if row:
                yield row
    except csv.Error as error:
        why = "a quoted field does not end as it should"
        if "limit" in str(error):
            why = f"a field is longer than {_LONGEST_FIELD:,} characters"
        raise StairError(f"{name} line {line}: {why}; check the quotes there.") from None


def _by_plain_reader(layout: _Layout) -> list[tuple[Array, bool]]:
    """Read with the standard library, some rows at a time, so that memory holds typed columns only.

    A column that turns out to be text after some rows looked like numbers is read a second time.
    """
    places = layout.places
    at_once = max(256, min(20_000, 100_000 // len(layout.header)))
    pieces: list[list[_Piece]] = [[] for _ in places]
    for columns in _blocks(layout, places, at_once):
        for piece, values in zip(pieces, columns, strict=True):
            piece.append(_typed(values))
    joined = [_join(piece) for piece in pieces]
    again = [i for i, column in enumerate(joined) if column is None]
    if again:
        texts: list[list[Array]] = [[] for _ in again]
        for columns in _blocks(layout, [places[i] for i in again], at_once):
            for found, values in zip(texts, columns, strict=True):
                found.append(_as_text(values, None))
        for i, found in zip(again, texts, strict=True):
            joined[i] = (np.concatenate(found), False)
    return [column for column in joined if column is not None]


def _blocks(layout: _Layout, places: list[int], at_once: int) -> Iterator[list[Sequence[str]]]:
    """The wanted columns, some rows at a time."""
    with _rows(layout.text, layout.separator) as rows:
        next(rows)
        while block := list(islice(rows, at_once)):
            if len(places) == len(layout.header):
                yield list(zip(*block, strict=True))
            else:
                yield [[row[i] for row in block] for i in places]


# CSV by DuckDB -----------------------------------------------------------------------------------

# A strict subset of what `_numbers` takes: what fits is read alike by both, the rest goes there.
_SQL_NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SQL_WHOLE = r"[+-]?(0|[1-9][0-9]*)"


class _Unsure(Exception):  # noqa: N818 - not a failure, only a reason to read otherwise
    """DuckDB may read this file differently from the plain reader."""


def _by_duckdb(layout: _Layout, forced: bool) -> list[tuple[Array, bool]] | None:
    """Read with DuckDB, several times faster; None where the plain reader has to do it.

    DuckDB is more lenient than we are (it forgives a trailing separator, for example), so that it
    is only believed where we can check that it found the same fields: see `_shape`. An error
    that it reports is left to the plain reader too, which says it in our words or reads the file.
    """
    duckdb = _optional("duckdb")
    if duckdb is None:
        return None
    try:
        with _utf8_file(layout.text) as path, _memory(duckdb) as con:
            return _duckdb_csv(con, path, layout)
    except (_Unsure, duckdb.Error, OSError, UnicodeError):
        if forced:
            raise
        return None


@contextlib.contextmanager
def _utf8_file(text: _Text) -> Iterator[Path]:
    """The file itself where DuckDB can read it, else a copy in UTF-8 that does not outlive us."""
    if not text.zipped and text.encoding in ("utf-8", "utf-8-sig"):
        yield text.path.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="stair-") as folder:
        copy = Path(folder) / "table.csv"
        with text.characters() as source, copy.open("w", encoding="utf-8", newline="") as target:
            while block := source.read(_BLOCK):
                target.write(block)
        yield copy


@contextlib.contextmanager
def _memory(duckdb: Any) -> Iterator[Any]:
    """A DuckDB connection that is quiet, installs nothing, and is closed afterwards."""
    con = duckdb.connect(config=dict(_NO_EXTENSIONS))
    try:
        con.execute("SET enable_progress_bar = false")
        yield con
    finally:
        con.close()


_NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


def _duckdb_csv(con: Any, path: Path, layout: _Layout) -> list[tuple[Array, bool]]:
    shape = _shape(path, layout)
    width, separator = len(layout.header), layout.separator
    names = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    source = (
        "read_csv(?, delim = ?, header = true, quote = '\"', escape = '\"', auto_detect = false, "
        f"columns = {{{names}}}, compression = 'none', hive_partitioning = false, "
        f"strict_mode = true, null_padding = false, ignore_errors = false, "
        f"parallel = {'false' if shape.quotes else 'true'})"
    )
    given = [glob.escape(str(path)), separator]

    guesses = _guesses(layout)
    counts = ["count(*)", "0"]
    if shape.quotes:
        inside = (
            f"CASE WHEN contains(c{i}, chr({ord(separator)})) "
            f"THEN length(c{i}) - length(replace(c{i}, chr({ord(separator)}), '')) ELSE 0 END"
            for i in range(width)
        )
        counts[1] = f"coalesce(sum({' + '.join(inside)}), 0)"
    missing = ", ".join(f"'{token}'" for token in sorted(_MISSING))
    tested = [i for i, guess in guesses.items() if guess in ("int", "float", "none")]
    for i in tested:
        counts.append(f"count(*) FILTER (c{i} IS NULL OR c{i} IN ({missing}))")
        for pattern, kind in ((_SQL_NUMBER, "DOUBLE"), (_SQL_WHOLE, "BIGINT")):
            fits = f"regexp_full_match(c{i}, '{pattern}') AND TRY_CAST(c{i} AS {kind}) IS NOT NULL"
            wanted = kind == "DOUBLE" or guesses[i] != "float"
            counts.append(f"count(*) FILTER ({fits})" if wanted else "-1")
    found = con.execute(f"SELECT {', '.join(counts)} FROM {source}", given).fetchone()
    n_rows, inside_values = int(found[0]), int(found[1])
    inside_header = sum(name.count(separator) for name in layout.header)
    if shape.separators != (width - 1) * (n_rows + 1) + inside_values + inside_header:
        raise _Unsure("a row may have too many fields")

    kinds = dict.fromkeys(layout.places, "text")
    for k, i in enumerate(tested):
        absent, number, whole = found[2 + 3 * k : 5 + 3 * k]
        if absent + number == n_rows:
            kinds[i] = "int" if whole == n_rows else "float"
    wanted_sql = {
        "text": "coalesce(c{0}, '') AS c{0}",
        "int": "CAST(c{0} AS BIGINT) AS c{0}",
        "float": "coalesce(TRY_CAST(c{0} AS DOUBLE), 'nan'::DOUBLE) AS c{0}",
    }
    select = ", ".join(wanted_sql[kind].format(i) for i, kind in kinds.items())
    arrays = con.execute(f"SELECT {select} FROM {source}", given).fetchnumpy()
    columns: list[tuple[Array, bool]] = []
    for i, kind in kinds.items():
        array = np.ma.getdata(arrays.pop(f"c{i}"))
        if len(array) != n_rows:
            raise _Unsure("the file changed while it was read")
        piece = _typed(array.tolist()) if kind == "text" else (kind, array)
        if kind == "float":
            array += 0.0  # no negative zero
        joined = _join([piece])
        assert joined is not None  # one piece always agrees with itself
        columns.append(joined)
    return columns


def _guesses(layout: _Layout) -> dict[int, str]:
    """What the first rows look like: only columns that look like numbers are tested in SQL."""
    for columns in _blocks(layout, layout.places, 1000):
        kinds = (_typed(values)[0] for values in columns)
        return dict(zip(layout.places, kinds, strict=True))
    return {}


@dataclass
class _Shape:
    """What can be counted in a file without taking it apart."""

    separators: int = 0
    quotes: bool = False


def _shape(path: Path, layout: _Layout) -> _Shape:
    """Count what tells whether DuckDB finds the same fields as we do; refuse where it might not.

    Refused are files with one column (a blank line is a value to DuckDB), with line ends of more
    than one kind, that begin with a blank, and with blanks around a quoted field.
    """
    separator = layout.separator
    if len(layout.header) == 1 or separator not in ",;\t|":
        raise _Unsure("one column, or an unusual separator")
    mark = separator.encode()
    shape = _Shape()
    feeds = returns = pairs = 0
    with path.open("rb") as file:
        first = True
        while block := file.read(_BLOCK):
            block += file.readline()  # a block ends where a line ends: nothing is cut in two
            if first and block.removeprefix(codecs.BOM_UTF8)[:1] in (b"\r", b"\n", b" ", b"\t"):
                raise _Unsure("a blank at the top")
            first = False
            shape.separators += block.count(mark)
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            pairs += block.count(b"\r\n")
            if b'"' in block:
                shape.quotes = True
                if _has_stray_blanks(block, mark):
                    raise _Unsure("blanks around quotes")
    if returns and not returns == pairs == feeds:
        raise _Unsure("several kinds of line ends")
    return shape


def _has_stray_blanks(block: bytes, mark: bytes) -> bool:
    """Whether blanks lie between a quote and the edge of a field; DuckDB drops them there."""
    blanks = [blank for blank in (b" ", b"\t") if blank != mark]
    edges = [mark, b"\r", b"\n", *blanks]
    return block[-1:] in blanks or any(
        (blank + b'"' in block and any(edge + blank + b'"' in block for edge in edges))
        or (b'"' + blank in block and any(b'"' + blank + edge in block for edge in edges))
        for blank in blanks
    )


# Text to values ----------------------------------------------------------------------------------

_Piece: TypeAlias = tuple[str, Array]
"""Some values of a column and what they are: none (all missing), int, float, bool, date, zoned
(moved to UTC) or text. Kinds are joined in `_join`, so that a column may be typed bit by bit."""

_LEADING_ZERO = re.compile(r"\n\s*[+-]?0[0-9]+(?:[eE][+-]?[0-9]+)?\s*\n")
_DATE = re.compile(
    r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
)


def _typed(values: Sequence[str]) -> _Piece:
    """What these texts are, and their values."""
    found = _numbers(values)
    if found is not None:
        return found
    stripped = list(map(str.strip, values))
    absent = _missing_texts(stripped)
    if absent.all():
        return "none", np.full(len(values), math.nan)
    present = list(compress(stripped, ~absent)) if absent.any() else stripped
    found = (_numbers(present) if absent.any() else None) or _truths(present) or _moments(present)
    if found is None:
        return "text", _as_text(values, absent)
    kind, array = found
    if not absent.any():
        return kind, array
    if kind == "bool":
        spread = np.full(len(values), None, dtype=object)
        spread[~absent] = array.tolist()
        return kind, spread
    if kind in ("date", "zoned"):
        spread = np.full(len(values), np.datetime64("NaT"), dtype=_EPOCH_UNIT)
    else:
        kind, spread = "float", np.full(len(values), math.nan)
    spread[~absent] = array
    return kind, spread


def _missing_texts(stripped: Sequence[str]) -> NDArray[np.bool_]:
    return np.fromiter(map(_MISSING.__contains__, stripped), dtype=np.bool_, count=len(stripped))


def _as_text(values: Sequence[str], absent: NDArray[np.bool_] | None) -> Array:
    """The texts as they are, None for the missing ones."""
    if absent is None:
        absent = _missing_texts(list(map(str.strip, values)))
    array = np.empty(len(values), dtype=object)
    array[:] = values
    array[absent] = None
    return array


def _numbers(values: Sequence[str]) -> _Piece | None:
    """The numbers, if all are; a whole number with leading zeros is none, but a code."""
    array: Array
    kind = "int"
    try:
        array = np.array(list(map(int, values)), dtype=np.int64)
    except OverflowError:
        kind, array = "float", np.array(list(map(float, values)))
    except ValueError:
        try:
            kind, array = "float", np.array(list(map(float, values)))
        except ValueError:
            return None
    joined = "\n".join(["", *values, ""])
    # Python reads 1_000 and the digits of every script as numbers; people do not expect that.
    if not joined.isascii() or "_" in joined or _LEADING_ZERO.search(joined):
        return None
    if kind == "float":
        array += 0.0  # no negative zero
        absent = np.isnan(array)
        if absent.any() and not all(
            values[i].strip() in _MISSING for i in np.flatnonzero(absent).tolist()
        ):
            return None
        if absent.all():
            kind = "none"
    return kind, array


def _truths(values: Sequence[str]) -> _Piece | None:
    if values[0].lower() not in ("true", "false"):
        return None
    truth = {"true": True, "false": False}
    known = {v: truth.get(v.lower()) for v in set(values)}
    if None in known.values():
        return None
    return "bool", np.array([known[v] for v in values], dtype=np.bool_)


def _moments(values: Sequence[str]) -> _Piece | None:
    """Dates and times in ISO form, if all are; either all have a time zone, or none has."""
    first = _DATE.fullmatch(values[0])
    if first is None:
        return None
    matches = map(_DATE.fullmatch, set(values))
    if not all(m is not None and (m[1] is None) == (first[1] is None) for m in matches):
        return None
    try:
        if first[1] is None:  # 26 characters: down to the microsecond
            return "date", np.array(values, dtype="U26").astype(_EPOCH_UNIT)
        return "zoned", _times([dt.datetime.fromisoformat(v) for v in values])
    except (ValueError, OverflowError):  # 31 February; a first or last day that leaves the calendar
        return None


def _join(pieces: Sequence[_Piece]) -> tuple[Array, bool] | None:
    """One column from its pieces, or None where they only agree as text that is gone by now."""
    kinds = {kind for kind, _ in pieces} - {"none"}
    if not kinds:
        return np.concatenate([a for _, a in pieces]) if pieces else np.empty(0), False
    if kinds == {"int"} and all(kind == "int" for kind, _ in pieces):
        return np.concatenate([a for _, a in pieces]), False
    if kinds <= {"int", "float"}:
        return np.concatenate([a.astype(np.float64, copy=False) for _, a in pieces]), False
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    if kind in ("date", "zoned"):
        fill: Any = np.datetime64("NaT", "us")
        dtype: Any = _EPOCH_UNIT
    else:
        fill = None
        whole = all(array.dtype == np.bool_ for _, array in pieces)
        dtype = np.bool_ if whole else object
    parts = [
        np.full(len(a), fill, dtype=dtype) if k == "none" else a.astype(dtype) for k, a in pieces
    ]
    return np.concatenate(parts), kind == "zoned"


# JSON lines --------------------------------------------------------------------------------------


def _open_json_lines(text: _Text) -> _Table:
    rows: list[dict[str, Any]] = []
    with text.characters() as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise StairError(
                    f"{text.name} line {number} is not valid JSON; expected one object per line."
                ) from None
            if not isinstance(row, dict):
                raise StairError(
                    f"{text.name} line {number} is not a JSON object; expected one per line, "
                    f'such as {{"amount": 12.5}}.'
                )
            rows.append(row)
    if not rows:
        raise StairError(f"{text.name} is empty; expected one JSON object per line.")
    names = list(dict.fromkeys(name for row in rows for name in row))

    def load(places: list[int]) -> list[tuple[Array, bool]]:
        return [
            _dated(_objects(list(map(_flat, (row.get(names[i]) for row in rows))))) for i in places
        ]

    return _Table(names, load, list(text.notes))


def _flat(value: Any) -> Any:
    """Nested values as the JSON they were."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value


def _dated(column: tuple[Array, bool]) -> tuple[Array, bool]:
    """Times where a column of text holds nothing else: JSON and SQLite have no type for them."""
    array, _ = column
    if array.dtype != object:
        return column
    absent = np.array([v is None for v in array.tolist()])
    present = array[~absent].tolist()
    found = _moments(present) if isinstance(present[0], str) else None
    if found is None:
        return column
    times = np.full(len(array), np.datetime64("NaT"), dtype=_EPOCH_UNIT)
    times[~absent] = found[1]
    return times, found[0] == "zoned"


# Parquet and DuckDB ------------------------------------------------------------------------------


def _open_parquet(path: Path, start: bytes, stack: contextlib.ExitStack) -> _Table:
    if not start.startswith(b"PAR1"):
        raise StairError(f"{path.name} is not a Parquet file; check its ending, or write it again.")
    duckdb = _optional("duckdb")
    if duckdb is not None:
        con = stack.enter_context(_memory(duckdb))
        stack.enter_context(_library_in_words(path.name, duckdb.Error))
        place = [glob.escape(str(path.resolve()))]
        relation = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
        types = [row[1] for row in con.execute(f"DESCRIBE {relation}", place).fetchall()]
        return _Table(_parquet_names(con, place), _duckdb_loader(con, relation, place, types))
    parquet = _optional("pyarrow.parquet")
    if parquet is None:
        raise StairError(
            f"{path.name} is a Parquet file, which needs an extra package: "
            f"pip install 'stair[files]'."
        )
    pyarrow = import_module("pyarrow")
    stack.enter_context(_library_in_words(path.name, pyarrow.ArrowException, OSError))
    file = stack.enter_context(parquet.ParquetFile(path))
    names = list(file.schema_arrow.names)

    def load(places: list[int]) -> list[tuple[Array, bool]]:
        if len(set(names)) < len(names):
            table = file.read()
            return _arrow_columns(table.select(places))
        # A name also selects the columns whose names begin with it and a dot.
        return _arrow_columns(
            file.read([names[i] for i in places]).select([names[i] for i in places])
        )

    return _Table(names, load)


@contextlib.contextmanager
def _library_in_words(name: str, *errors: type[BaseException]) -> Iterator[None]:
    """What a library says about a file that it cannot read, as one sentence of ours."""
    try:
        yield
    except StairError:
        raise
    except errors as error:
        raise StairError(f"cannot read {name}, it may be damaged: {_reason(error)}.") from error


def _parquet_names(con: Any, place: list[str]) -> list[str]:
    """The names as they are in the file: DuckDB itself renames those that differ only in case."""
    rows = con.execute("SELECT name, num_children FROM parquet_schema(?)", place).fetchall()
    names: list[str] = []
    below = 0  # how many nodes of the current column are still to come
    for name, children in rows[1:]:
        if below == 0:
            names.append(name)
            below = 1
        below += (children or 0) - 1
    return names


def _duckdb_loader(
    con: Any, relation: str, given: list[str], types: list[str]
) -> Callable[[list[int]], list[tuple[Array, bool]]]:
    """Load columns of a query by their place, because names need not be unique."""

    def load(places: list[int]) -> list[tuple[Array, bool]]:
        shapes = {i: _sql_shape(types[i]) for i in places}
        select = ", ".join(f"{sql.format(f'c{i}')} AS c{i}" for i, (_, sql) in shapes.items())
        alias = ", ".join(f"c{i}" for i in range(len(types)))
        arrays = con.execute(
            f"SELECT {select} FROM ({relation}\n) AS t({alias})", given
        ).fetchnumpy()
        return [_from_masked(kind, arrays.pop(f"c{i}")) for i, (kind, _) in shapes.items()]

    return load


_SQL_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), ("int", "CAST({0} AS BIGINT)")),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), ("int", "CAST({0} AS BIGINT)")),
    "UBIGINT": ("int", "{0}"),
    "HUGEINT": ("wide", "CAST({0} AS VARCHAR)"),
    "UHUGEINT": ("wide", "CAST({0} AS VARCHAR)"),
    "BIGNUM": ("wide", "CAST({0} AS VARCHAR)"),
    "FLOAT": ("float", "CAST({0} AS DOUBLE)"),
    "DOUBLE": ("float", "{0}"),
    "BOOLEAN": ("bool", "{0}"),
    "TIME": ("float", "date_part('epoch', {0}) / 3600"),
    "TIME_NS": ("float", "date_part('epoch', CAST({0} AS TIME)) / 3600"),
    "TIME WITH TIME ZONE": ("float", "date_part('epoch', {0}) / 3600"),
    "INTERVAL": ("float", "epoch({0})"),
    '"NULL"': ("float", "CAST({0} AS DOUBLE)"),
}
_MICROSECONDS = "CASE WHEN isfinite({0}) THEN epoch_us({0}) END"


def _sql_shape(declared: str) -> tuple[str, str]:
    """What a column of a DuckDB type becomes, and the expression that makes it so."""
    if declared in _SQL_KINDS:
        return _SQL_KINDS[declared]
    if re.fullmatch(r"DECIMAL\([0-9]+,[0-9]+\)", declared):
        return "float", "CAST({0} AS DOUBLE)"
    if re.fullmatch(r"DATE|TIMESTAMP(_[A-Z]+)?", declared):
        return "date", _MICROSECONDS.format("TRY_CAST({0} AS TIMESTAMP)")
    if re.fullmatch(r"TIMESTAMP(_[A-Z]+)? WITH TIME ZONE|TIMESTAMPTZ(_[A-Z]+)?", declared):
        return "zoned", _MICROSECONDS.format("TRY_CAST({0} AS TIMESTAMPTZ)")
    return "text", "CAST({0} AS VARCHAR)"


def _from_masked(kind: str, values: Array) -> tuple[Array, bool]:
    """A column that DuckDB delivers, with a mask where values are missing."""
    absent = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    if kind == "wide":
        texts = ["" if gone else v for v, gone in zip(data, absent, strict=True)]
        return cast(tuple[Array, bool], _join([_typed(texts)]))
    if kind == "text" or (kind == "bool" and absent.any()):
        data = data.astype(object)
        data[absent] = None
        return _objects(data.tolist()) if kind == "bool" or absent.all() else (data, False)
    if kind in ("date", "zoned"):
        times = data.astype(np.int64).view(_EPOCH_UNIT)
        times[absent] = np.datetime64("NaT")
        return times, kind == "zoned"
    if absent.any():
        data = data.astype(np.float64)
        data[absent] = math.nan
    return _array("", data)


def _open_database(
    path: Path, start: bytes, table: str | None, query: str | None, stack: contextlib.ExitStack
) -> _Table:
    """The file's first bytes say whether it is DuckDB's or SQLite's; endings are used by both."""
    if start.startswith(b"SQLite format 3\0"):
        return _open_sqlite(path, start, table, query, stack)
    if start[8:12] != b"DUCK":
        raise StairError(
            f"{path.name} is neither a DuckDB nor a SQLite database; check its ending."
        )
    duckdb = _optional("duckdb")
    if duckdb is None:
        raise StairError(
            f"{path.name} is a DuckDB database, which needs an extra package: "
            f"pip install 'stair[files]'."
        )
    stack.enter_context(_library_in_words(path.name, duckdb.Error))
    # Views and queries see this database only: no other file, no extension, no network.
    config = {**_NO_EXTENSIONS, "enable_external_access": "false"}
    con = duckdb.connect(str(path.resolve()), read_only=True, config=config)
    stack.callback(con.close)
    con.execute("SET enable_progress_bar = false")
    if query is None:
        rows = con.execute(
            "SELECT schema_name, table_name, true FROM duckdb_tables() "
            "WHERE NOT internal AND database_name = current_database() UNION ALL "
            "SELECT schema_name, view_name, false FROM duckdb_views() "
            "WHERE NOT internal AND database_name = current_database() ORDER BY 1, 2"
        ).fetchall()
        there = {name if s == "main" else f"{s}.{name}": (s, name, base) for s, name, base in rows}
        chosen = _choose_table(path.name, {k: v[2] for k, v in there.items()}, table)
        schema, name, _ = there[chosen]
        relation = f"SELECT * FROM {_quoted(schema)}.{_quoted(name)}"
        empty = f'has no rows in table "{chosen}"'
    else:
        stack.enter_context(_query_in_words(duckdb.Error))
        statements = con.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise StairError("query= must be a single SELECT; got something else.")
        relation, empty = query.strip().rstrip(";"), "has no rows for this query"
    described = con.execute(f"DESCRIBE {relation}").fetchall()
    load = _duckdb_loader(con, relation, [], [row[1] for row in described])
    return _Table([row[0] for row in described], load, empty=empty)


@contextlib.contextmanager
def _query_in_words(*errors: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except StairError:
        raise
    except errors as error:
        raise StairError(f"the query cannot be run: {_reason(error)}.") from error


def _quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _choose_table(
    source: str, tables: Mapping[str, bool], table: str | None, noun: str = "table"
) -> str:
    """The table asked for, or the only one; `tables` says of each that it is more than a view."""
    names = list(tables)
    if not names:
        raise StairError(f"{source} has no {noun}s; expected at least one.")
    if table is None:
        for choice in ([n for n in names if tables[n]], names):
            if len(choice) == 1:
                return choice[0]
        raise StairError(
            f"{source} has {len(names)} {noun}s; choose one with table=: {folded(names)}"
        )
    if table in tables:
        return table
    alike = [name for name in names if name.casefold() == table.casefold()]
    if len(alike) == 1:
        return alike[0]
    raise StairError(
        f'no {noun} "{table}" in {source}.{did_you_mean(table, names)} '
        f"{noun.capitalize()}s: {folded(names)}"
    )


# SQLite ------------------------------------------------------------------------------------------

_SQLITE_ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)


def _open_sqlite(
    path: Path, start: bytes, table: str | None, query: str | None, stack: contextlib.ExitStack
) -> _Table:
    """SQLite by the standard library, for reading only: neither the file nor its folder changes."""
    place = path.resolve()
    uri = "file:" + urllib.parse.quote(place.as_posix()) + "?mode=ro"
    if start[18:20] == b"\x02\x02" and not place.with_name(place.name + "-wal").exists():
        uri += "&immutable=1"  # else SQLite leaves files beside one that keeps a log
    stack.enter_context(_library_in_words(path.name, sqlite3.Error))
    con = sqlite3.connect(uri, uri=True)
    stack.callback(con.close)
    if query is None:
        rows = con.execute(
            "SELECT name, type = 'table' FROM sqlite_master "
            "WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        ).fetchall()
        chosen = _choose_table(path.name, {name: bool(base) for name, base in rows}, table)
        empty = f'has no rows in table "{chosen}"'
        statement = f"SELECT * FROM {_quoted(chosen)}"
    else:
        empty, statement = "has no rows for this query", query
        stack.enter_context(_query_in_words(sqlite3.Error, sqlite3.Warning))
    con.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _SQLITE_ALLOWED else sqlite3.SQLITE_DENY
    )
    cursor = con.execute(statement)
    if cursor.description is None:
        raise StairError("query= must be a single SELECT; got something else.")
    names = [column[0] for column in cursor.description]

    def load(places: list[int]) -> list[tuple[Array, bool]]:
        rows: Iterable[Any] = cursor
        if query is None and len(places) < len(names):
            wanted = ", ".join(_quoted(names[i]) for i in places)
            rows = con.execute(f"SELECT {wanted} FROM {_quoted(chosen)}")
            places = list(range(len(places)))
        lists: list[list[Any]] = [[] for _ in places]
        iterator = iter(rows)
        while block := list(islice(iterator, 10_000)):
            columns = list(zip(*block, strict=True))
            for values, i in zip(lists, places, strict=True):
                values.extend(columns[i])
        return [_dated(_objects(values)) for values in lists]

    return _Table(names, load, empty=empty)


# Excel -------------------------------------------------------------------------------------------


def _open_excel(path: Path, sheet: str | None, stack: contextlib.ExitStack) -> _Table:
    """The first sheet, or the named one: stored values, never formulas."""
    openpyxl = _optional("openpyxl")
    if openpyxl is None:
        raise StairError(
            f"{path.name} is an Excel file, which needs an extra package: "
            f"pip install 'stair[excel]'."
        )
    # openpyxl lets errors of the zip and XML readers through, and warns of styles.
    stack.enter_context(_library_in_words(path.name, Exception))
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    stack.callback(book.close)
    sheets = {s.title: s for s in book.worksheets}
    if sheet is None and sheets:
        sheet = next(iter(sheets))
    worksheet = sheets[_choose_table(path.name, dict.fromkeys(sheets, True), sheet, "sheet")]
    worksheet.reset_dimensions()
    rows = _filled_rows(worksheet)
    _, header = next(rows, (0, []))
    if not header:
        raise StairError(f'{path.name} has nothing in sheet "{sheet}"; expected a header and rows.')
    names = ["" if cell is None else str(cell).strip() for cell in header]

    def load(places: list[int]) -> list[tuple[Array, bool]]:
        lists: list[list[Any]] = [[] for _ in places]
        for number, row in rows:
            if len(row) > len(names):
                raise StairError(
                    f"{path.name} row {number} has {len(row)} cells, expected {len(names)}"
                )
            for values, i in zip(lists, places, strict=True):
                values.append(row[i] if i < len(row) else None)
        return [_objects(values) for values in lists]

    return _Table(names, load, empty="has a header but no rows")


def _filled_rows(worksheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The rows that are not blank, each with its number and without blanks at its end."""
    for number, cells in enumerate(worksheet.iter_rows(values_only=True), 1):
        row = [None if c == "" or (isinstance(c, str) and c in _EXCEL_ERRORS) else c for c in cells]
        while row and row[-1] is None:
            row.pop()
        if row:
            yield number, row


# Tables in memory --------------------------------------------------------------------------------


def from_object(data: Any) -> Frame:
    """A table in memory as a Frame: pandas, Polars, Arrow, a dict of columns, an array, a list.

    A path is read as a file. Arrays are not copied where they already are what a Frame holds.
    """
    if isinstance(data, Frame):
        return data
    if isinstance(data, str | os.PathLike):
        return read(data)
    if isinstance(data, np.ndarray):
        return _from_matrix(data)
    if isinstance(data, Mapping):
        return _from_mapping(data)
    if isinstance(data, list | tuple):
        return _from_rows(data)
    return _from_wrapped(data)


def _named_frame(raw: Sequence[str], columns: Sequence[tuple[Array, bool]]) -> Frame:
    names, notes = _unique(raw)
    return _frame(names, columns, "", notes.values())


def _label(name: Any) -> str:
    """A column's name as text; the levels of a compound one are joined by dots."""
    if isinstance(name, tuple):
        return ".".join(str(part) for part in name if str(part) != "")
    return str(name)


def _from_matrix(data: Array) -> Frame:
    if data.dtype.names is not None and data.ndim == 1:
        fields = list(data.dtype.names)
        return _named_frame(fields, [_array(name, data[name]) for name in fields])
    if data.ndim != 2:
        raise StairError(
            f"got an array with {data.ndim} dimension{'s' if data.ndim != 1 else ''}; "
            f"expected two: rows and columns."
        )
    names = [f"x{i}" for i in range(data.shape[1])]
    return _named_frame(names, [_array(names[i], data[:, i]) for i in range(data.shape[1])])


def _from_mapping(data: Mapping[Any, Any]) -> Frame:
    import narwhals as nw

    names, columns = [_label(name) for name in data], []
    for name, values in zip(names, data.values(), strict=True):
        wrapped: Any = nw.from_native(values, series_only=True, pass_through=True)
        if isinstance(wrapped, nw.Series):
            columns.append(_series(name, wrapped))
        elif isinstance(values, np.ndarray):
            columns.append(_array(name, values))
        elif isinstance(values, list | tuple | range):
            columns.append(_objects(list(values)))
        elif hasattr(values, "__array__"):
            columns.append(_array(name, np.asarray(values)))
        else:
            raise StairError(
                f'column "{name}" is a {type(values).__name__}; expected an array or a list.'
            )
    lengths = {len(array): name for name, (array, _) in zip(names, columns, strict=True)}
    if len(lengths) > 1:
        (n, first), (m, second) = list(lengths.items())[:2]
        raise StairError(
            f'column "{first}" has {n} values but "{second}" has {m}; expected equally many.'
        )
    return _named_frame(names, columns)


def _from_rows(data: Sequence[Any]) -> Frame:
    if all(isinstance(row, Mapping) for row in data):
        keys = list(dict.fromkeys(key for row in data for key in row))
        columns = [_objects([row.get(key) for row in data]) for key in keys]
        return _named_frame([_label(key) for key in keys], columns)
    widths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in data}
    if len(widths) != 1 or widths == {-1}:
        raise StairError(
            "got a list that is not a table; expected a list of dicts, or rows of equal length."
        )
    places = range(widths.pop())
    columns = [_objects([row[i] for row in data]) for i in places]
    return _named_frame([f"x{i}" for i in places], columns)


def _from_wrapped(data: Any) -> Frame:
    """Whatever narwhals knows as a table, and whatever speaks Arrow's or numpy's protocol."""
    import narwhals as nw

    names, plain = _plain_names(data)
    wrapped: Any = nw.from_native(plain, pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.LazyFrame):
        raise StairError(
            f"got a lazy table ({_kind(data)}), whose values are not computed yet; "
            f"call .collect() on it first."
        )
    if isinstance(wrapped, nw.Series):
        raise StairError(f"got a single column ({_kind(data)}); expected a table with rows.")
    if isinstance(wrapped, nw.DataFrame):
        names = names or [_label(name) for name in wrapped.columns]
        return _named_frame(names, [_series(n, wrapped[:, i]) for i, n in enumerate(names)])
    pyarrow = _optional("pyarrow")
    if pyarrow and any(hasattr(data, f"__arrow_c_{kind}__") for kind in ("stream", "array")):
        try:
            return _from_wrapped(pyarrow.table(data))
        except (pyarrow.ArrowException, TypeError, ValueError):
            pass
    elif hasattr(data, "__array__"):
        return _from_matrix(np.asarray(data))
    raise StairError(
        f"got {'None' if data is None else _kind(data)}; expected a table: a pandas, Polars or "
        f"Arrow table, a dict of columns, a 2-D array, a list of dicts, or a path."
    )


def _kind(data: Any) -> str:
    return f"{type(data).__module__.split('.')[0]} {type(data).__qualname__}"


def _plain_names(data: Any) -> tuple[list[str], Any]:
    """Names as text, and the table with names that narwhals takes: it stops at duplicates."""
    import narwhals as nw

    if nw.dependencies.is_pandas_dataframe(data):
        plain = data.copy(deep=False)
        plain.columns = [f"c{i}" for i in range(len(data.columns))]
        return [_label(name) for name in data.columns], plain
    if nw.dependencies.is_pyarrow_table(data):
        plain = data.rename_columns([f"c{i}" for i in range(data.num_columns)])
        return list(data.column_names), plain
    return [], data


def _arrow_columns(table: Any) -> list[tuple[Array, bool]]:
    import narwhals as nw

    names, plain = _plain_names(table)
    wrapped: Any = nw.from_native(plain, eager_only=True)
    return [_series(name, wrapped[:, i]) for i, name in enumerate(names)]


def _series(name: str, series: Any) -> tuple[Array, bool]:
    """A column of any library that narwhals knows."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric() and not dtype.is_decimal() and dtype not in (nw.Int128, nw.UInt128):
        return _array(name, series.to_numpy())
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _array(name, utc.to_numpy())[0], True
    if dtype.is_decimal():
        return _array(name, series.cast(nw.Float64).to_numpy())
    if isinstance(dtype, nw.Boolean | nw.Datetime | nw.Duration | nw.Date | nw.String):
        return _array(name, series.to_numpy())
    # Nested, categorical and unknown types: to_numpy is not faithful for all of them (an Arrow
    # dictionary loses its nulls), so that their values are taken one by one.
    return _objects(series.to_list())


def _array(name: str, values: Array) -> tuple[Array, bool]:
    """A numpy column of any type."""
    if isinstance(values, np.ma.MaskedArray):
        absent = np.ma.getmaskarray(values)
        plain = np.ma.getdata(values)
        if absent.any():
            numeric = plain.dtype.kind in "fiu"
            plain = plain.astype(np.float64 if numeric else object)
            plain[absent] = math.nan if numeric else None
        return _array(name, plain)
    if values.ndim != 1:
        raise StairError(
            f'column "{name}" has {values.ndim} dimensions; expected one value for each row.'
        )
    kind = values.dtype.kind
    if kind == "f":
        return np.ascontiguousarray(values, dtype=np.float64), False
    if kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        return values.astype(np.float64), False
    if kind in "iu":
        return np.ascontiguousarray(values, dtype=np.int64), False
    if kind == "b":
        return np.ascontiguousarray(values), False
    if kind == "M":
        return np.ascontiguousarray(values.astype(_EPOCH_UNIT)), False
    if kind == "m":
        return _seconds(values), False
    if kind == "c":
        raise StairError(f'column "{name}" has complex numbers; expected real ones.')
    return _objects(values.tolist() if kind in "SV" else list(values.astype(object)))


def _seconds(values: Array) -> NDArray[np.float64]:
    """Durations as seconds, NaN where there is none."""
    seconds = values.astype("timedelta64[us]").astype(np.float64) / 1e6
    seconds[np.isnat(values)] = math.nan
    return seconds


def _objects(values: Sequence[Any]) -> tuple[Array, bool]:
    """Python objects: what they all are, if they all are one thing, else their text."""
    kinds = {t: _kind_of_type(t) for t in set(map(type, values))}
    if set(kinds.values()) == {"text"}:
        array = np.empty(len(values), dtype=object)
        array[:] = [str(v) for v in values]
        return array, False
    absent = np.fromiter(
        (_is_absent(v, kinds[type(v)]) for v in values), dtype=np.bool_, count=len(values)
    )
    present = [v for v, gone in zip(values, absent.tolist(), strict=True) if not gone]
    found = {kinds[t] for t in set(map(type, present))}
    missing = bool(absent.any())
    if not found:
        return np.full(len(values), math.nan), False
    if found <= {"int", "float", "real"}:
        return _spread(
            absent, _real_numbers(present, whole=found == {"int"} and not missing)
        ), False
    if found == {"bool"}:
        truths = np.array(present, dtype=np.bool_)
        return _spread(absent, truths.astype(object) if missing else truths), False
    if found == {"moment"}:
        aware = {isinstance(v, dt.datetime) and v.tzinfo is not None for v in present}
        if len(aware) == 1:
            return _spread(absent, _times(present)), aware == {True}
    if found == {"span"}:
        spans = [
            v.astype("timedelta64[us]") if isinstance(v, np.timedelta64) else v for v in present
        ]
        return _spread(absent, _seconds(np.array(spans, dtype="timedelta64[us]"))), False
    if found == {"clock"}:
        hours = [v.hour + v.minute / 60 + (v.second + v.microsecond / 1e6) / 3600 for v in present]
        return _spread(absent, np.array(hours)), False
    texts = np.empty(len(present), dtype=object)
    texts[:] = [_words(v) for v in present]
    return _spread(absent, texts), False


def _kind_of_type(t: type) -> str:
    if t is type(None) or (
        t.__module__.startswith("pandas") and t.__name__ in ("NAType", "NaTType")
    ):
        return "missing"
    for kind, types in _KINDS:
        if issubclass(t, types):
            return kind
    return "other"


_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("text", (str,)),
    ("bool", (bool, np.bool_)),
    ("span", (dt.timedelta, np.timedelta64)),  # numpy counts it among the whole numbers
    ("int", (int, np.integer)),
    ("float", (float, np.floating)),
    ("real", (Decimal, numbers.Real)),
    ("moment", (dt.date, np.datetime64)),
    ("clock", (dt.time,)),
)


def _is_absent(value: Any, kind: str) -> bool:
    if kind == "missing":
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return kind in ("float", "moment", "span") and bool(value != value)


def _spread(absent: NDArray[np.bool_], present: Array) -> Array:
    """Put the values where they belong, with the kind's own sign for missing in between."""
    if not absent.any():
        return present
    if present.dtype.kind == "M":
        column = np.full(len(absent), np.datetime64("NaT"), dtype=present.dtype)
    else:
        column = np.full(len(absent), None if present.dtype == object else math.nan, present.dtype)
    column[~absent] = present
    return column


def _real_numbers(values: Sequence[Any], whole: bool) -> Array:
    if whole:
        with contextlib.suppress(OverflowError):
            return np.array([int(v) for v in values], dtype=np.int64)
    try:
        return np.array([float(v) for v in values])
    except OverflowError:  # a whole number beyond every float
        return np.array([_float(v) for v in values])


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _times(values: Sequence[Any]) -> Array:
    moved: list[Any] = []
    for value in values:
        if isinstance(value, np.datetime64):
            moved.append(value.astype(_EPOCH_UNIT))
        elif isinstance(value, dt.datetime):
            naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            moved.append(naive)
        else:
            moved.append(value)
    return np.array(moved, dtype=_EPOCH_UNIT)


def _words(value: Any) -> str:
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


# Writing -----------------------------------------------------------------------------------------


def write_text(path: Source, text: str) -> None:
    """Write a text file in UTF-8, all of it or nothing."""
    atomic_write(path, text)


def atomic_write(path: Source, data: str | bytes) -> None:
    """Write a file so that nobody ever sees half of it: beside it first, then in its place."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    with _replacing(path) as beside, beside.open("wb") as file:
        file.write(content)
        _to_disk(file)


def _to_disk(file: IO[Any]) -> None:
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # devices and pipes have no disk
        os.fsync(file.fileno())


@contextlib.contextmanager
def _replacing(path: Source) -> Iterator[Path]:
    """A fresh file beside the path that takes its place at the end, or vanishes on any failure."""
    try:
        target = Path(path).expanduser().resolve()
    except (TypeError, ValueError, RuntimeError):
        raise StairError(f"cannot write to {path!r}; expected the path of a file.") from None
    try:
        if target.is_dir():
            raise StairError(f'cannot write "{path}": it is a folder; expected the path of a file.')
        if not target.parent.is_dir():
            raise StairError(f'cannot write "{path}": there is no folder "{target.parent}".')
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):  # a pipe or device stays where it is
            yield target
            return
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
        raise StairError(f'cannot write "{path}": {_reason(error)}.') from error


def write_csv(path: Source, columns: Mapping[str, Array]) -> None:
    """Write columns as CSV, or as Parquet where the path ends so; all of it or nothing.

    Missing values are empty fields, true and false are words, times are ISO: `read` gives back
    what was written, except that the text of a missing value ("NA") is missing when read.
    """
    table = {name: _array(name, np.asarray(values))[0] for name, values in columns.items()}
    if len({len(values) for values in table.values()}) != 1:
        raise StairError("cannot write columns of different lengths, or none; check the table.")
    if Path(path).suffix.lower() in _PARQUET:
        _write_parquet(path, table)
        return
    with _replacing(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        n_rows = len(next(iter(table.values())))
        for start in range(0, n_rows, 10_000):
            cells = (_cells(values[start : start + 10_000]) for values in table.values())
            writer.writerows(zip(*cells, strict=True))
        _to_disk(file)


def _cells(values: Array) -> list[Any]:
    """Values as a CSV file holds them."""
    if values.dtype.kind == "f":
        return ["" if v != v else v for v in values.tolist()]
    if values.dtype.kind == "M":
        return ["" if v == "NaT" else v for v in np.datetime_as_string(values).tolist()]
    truth = {True: "true", False: "false"}
    return [truth[v] if isinstance(v, bool) else "" if v is None else v for v in values.tolist()]


def _write_parquet(path: Source, table: dict[str, Array]) -> None:
    duckdb, parquet = _optional("duckdb"), _optional("pyarrow.parquet")
    distinct = len({name.casefold() for name in table}) == len(table)
    if duckdb is not None and (distinct or parquet is None):
        if not distinct:
            raise StairError(
                f'cannot write "{path}": the names of two columns differ only in case; '
                f"rename one, or write .csv."
            )
        with _replacing(path) as beside, _memory(duckdb) as con:
            con.execute("SET pandas_analyze_sample = 0")  # objects are text, whatever comes first
            con.register("t", {f"c{i}": values for i, values in enumerate(table.values())})
            select = ", ".join(
                f"{_parquet_sql(i, values)} AS {_quoted(name)}"
                for i, (name, values) in enumerate(table.items())
            )
            place = str(beside).replace("'", "''")
            with _library_in_words(str(path), duckdb.Error):
                con.execute(f"COPY (SELECT {select} FROM t) TO '{place}' (FORMAT parquet)")
            with beside.open("rb+") as file:
                _to_disk(file)
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
    with _replacing(path) as beside, beside.open("wb") as file:
        parquet.write_table(pyarrow.table(arrays, names=list(table)), file)
        _to_disk(file)


def _parquet_sql(place: int, values: Array) -> str:
    truths = values.dtype == object and any(isinstance(v, bool) for v in values.tolist())
    return f"CAST(c{place} AS BOOLEAN)" if truths else f"c{place}"
