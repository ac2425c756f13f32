"""A table as it was, with columns of ours at its end.

Of a text file the records are copied as they are written and only longer at their end, so that no
quote, zero, zone or line end of somebody's file changes; Parquet keeps its types. Only where the
new file is of another format are values written anew.
"""

from __future__ import annotations

import codecs
import contextlib
import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

from stair.data.copying_typed import TYPED, paired, values_of, write_typed
from stair.data.csv_plain import csv_rows
from stair.data.databases import PARQUET
from stair.data.frame import Array, Source, unique_names
from stair.data.packages import optional
from stair.data.reading import JSON_LINES, TEXT, ending_of, opened_file
from stair.data.text import TextFile
from stair.data.writing import csv_line, text_to, write_rows, written_as
from stair.errors import StairError


def write_with(
    path: Source,
    source: Path,
    added: Iterable[Mapping[str, Array]],
    *,
    table: str | None = None,
    query: str | None = None,
    texts: Collection[str] = (),
) -> None:
    """Write the rows of a file with more columns, batch by batch; all of it or nothing. `texts` are
    columns that are text whatever they look like."""
    ending = written_as(path)
    with opened_file(source, table, query, texts=texts) as opened:
        batches = iter(added)
        first = next(batches, None)
        if first is None:
            raise StairError(f"{source.name} {opened.empty}; expected at least one row of values.")
        every = chain([first], batches)
        names = [_unused(name, unique_names(opened.names)[0]) for name in first]
        own = (row for each in every for row in zip(*map(_listed, each.values()), strict=True))
        was = ending_of(source)
        if opened.text is not None and was in TEXT and ending in (was, ".txt"):
            with _encoded(path, opened.text) as file:
                _copy_records(file, opened.text, opened.separator, names, own)
        elif opened.text is not None and was in JSON_LINES and ending in JSON_LINES:
            with _encoded(path, opened.text) as file:
                _copy_objects(file, opened.text, names, own)
        elif ending in TYPED and (ending not in PARQUET or optional("pyarrow.parquet")):
            write_typed(path, source, opened, names, every, table)
        else:
            with contextlib.closing(values_of(opened, was, ending)) as values:
                pairs = paired(source.name, values, own)
                write_rows(path, [*opened.names, *names], ([*row, *more] for row, more in pairs))


def _listed(array: Array) -> list[object]:
    listed: list[object] = array.tolist()
    return listed


def _unused(name: str, names: Container[str]) -> str:
    while name in names:
        name += "_"
    return name


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
        for _, more in paired(text.name, rows, chain([names], own)):
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
        for line, more in paired(text.name, filled, own):
            body = line.rstrip()
            inside = body[:-1].rstrip()
            comma = "" if inside.endswith("{") else ", "
            ours = json.dumps(dict(zip(names, more, strict=True)))
            file.write(f"{inside}{comma}{ours[1:]}{line[len(body) :]}")
