"""A table as it was, with columns of ours at its end.

Of a text file the records are copied as they are written and only longer at their end, so that no
quote, zero, zone or line end of somebody's file changes; Parquet keeps its types. Only where the
new file is of another format are values written anew.
"""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import IO, TypeVar

from stair.data.csv_plain import csv_rows
from stair.data.databases import PARQUET
from stair.data.frame import Array, Frame, Opened, Source
from stair.data.packages import library_in_words, optional
from stair.data.reading import JSON_LINES, TEXT, ending_of, opened_file
from stair.data.text import TextFile
from stair.data.writing import (
    csv_line,
    parquet_of,
    replacing,
    text_to,
    to_disk,
    write_rows,
    written_as,
)
from stair.errors import StairError


def write_with(
    path: Source,
    source: Path,
    frame: Frame,
    added: Mapping[str, Array],
    *,
    table: str | None = None,
    query: str | None = None,
) -> None:
    """Write the file that `frame` was read from, with more columns; all of it or nothing."""
    ending = written_as(path)
    with opened_file(source, table, query) as opened:
        names = {_unused(name, frame.columns): values.tolist() for name, values in added.items()}
        own = zip(*names.values(), strict=True)
        was = ending_of(source)
        if opened.text is not None and was in TEXT and ending in (was, ".txt"):
            with _encoded(path, opened.text) as file:
                _copy_records(file, opened.text, opened.separator, list(names), own)
        elif opened.text is not None and was in JSON_LINES and ending in JSON_LINES:
            with _encoded(path, opened.text) as file:
                _copy_objects(file, opened.text, list(names), own)
        elif was in PARQUET and ending in PARQUET and optional("pyarrow.parquet") is not None:
            _copy_parquet(path, source, names)
        else:
            with contextlib.closing(_values(opened, frame, was, ending)) as values:
                pairs = _paired(source.name, values, own)
                write_rows(path, [*opened.names, *names], ([*row, *more] for row, more in pairs))


def _unused(name: str, names: Container[str]) -> str:
    while name in names:
        name += "_"
    return name


Row = TypeVar("Row")


def _paired(
    name: str, rows: Iterable[Row], own: Iterable[Sequence[object]]
) -> Iterator[tuple[Row, Sequence[object]]]:
    """Each row with what is ours of it; the file must not have changed since it was read."""
    for row, more in zip_longest(rows, own):
        if row is None or more is None:
            raise StairError(f"{name} changed while it was read; run again.")
        yield row, more


def _values(opened: Opened, frame: Frame, was: str, ending: str) -> Generator[Sequence[object]]:
    """The rows as they are in the file. Text has no types: where the new file has, numbers and
    truths are what they were read as, and all else stays text."""
    if was not in TEXT or ending in TEXT:
        yield from opened.rows()
        return
    kept = [a.tolist() if a.dtype.kind in "iufb" else None for a in frame.columns.values()]
    for i, row in enumerate(opened.rows()):
        yield [
            text if known is None else known[i] if i < len(known) else None
            for text, known in zip(row, kept, strict=True)
        ]


# Text --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _encoded(path: Source, text: TextFile) -> Iterator[IO[str]]:
    """A file to be written as the given one is: in its encoding, with the same first mark."""
    with text.binary() as file:
        start = file.read(4)
    mark, encoding = "", text.encoding
    if encoding == "utf-16":
        mark, encoding = "\ufeff", "utf-16-le"
        if start.startswith(codecs.BOM_UTF16_BE):
            encoding = "utf-16-be"
    elif start.startswith(codecs.BOM_UTF8):
        mark, encoding = "\ufeff", "utf-8"
    with text_to(path, encoding) as target:
        target.write(mark)
        yield target


def _copy_records(
    file: IO[str], text: TextFile, separator: str, names: list[str], own: Iterable[Sequence[object]]
) -> None:
    read: list[str] = []
    with csv_rows(text, separator, read) as rows:
        for _, more in _paired(text.name, rows, chain([names], own)):
            body, end = _without_end("".join(read))
            read.clear()
            file.write(f"{body}{separator}{csv_line(more, separator)}{end}")
    file.write("".join(read))  # blank lines


def _without_end(record: str) -> tuple[str, str]:
    for end in ("\r\n", "\n", "\r"):
        if record.endswith(end):
            return record[: -len(end)], end
    return record, ""


def _copy_objects(
    file: IO[str], text: TextFile, names: list[str], own: Iterable[Sequence[object]]
) -> None:
    with text.lines() as lines:
        filled = (line for line in lines if line.strip())
        for line, more in _paired(text.name, filled, own):
            body = line.rstrip()
            inside = body[:-1].rstrip()
            comma = "" if inside.endswith("{") else ", "
            ours = json.dumps(dict(zip(names, more, strict=True)))
            file.write(f"{inside}{comma}{ours[1:]}{line[len(body) :]}")


# Parquet -----------------------------------------------------------------------------------------


def _copy_parquet(path: Source, source: Path, names: Mapping[str, list[object]]) -> None:
    """Row group by row group, with the types and the notes of the file."""
    pyarrow, parquet = optional("pyarrow"), optional("pyarrow.parquet")
    ours = {name: parquet_of(values) for name, values in names.items()}
    with (
        library_in_words(source.name, pyarrow.ArrowException),
        parquet.ParquetFile(source) as file,
        replacing(path) as beside,
    ):
        schema = file.schema_arrow
        for name, array in ours.items():
            schema = schema.append(pyarrow.field(name, array.type))
        with beside.open("wb") as target:
            start = 0
            with parquet.ParquetWriter(target, schema) as writer:
                for group in range(file.num_row_groups):
                    part = file.read_row_group(group)
                    columns = [a.slice(start, len(part)) for a in ours.values()]
                    start += len(part)
                    arrays = [*part.columns, *columns]
                    writer.write_table(pyarrow.Table.from_arrays(arrays, schema=schema))
            if any(len(array) != start for array in ours.values()):
                raise StairError(f"{source.name} changed while it was read; run again.")
            to_disk(target)
