"""CSV by the standard library: this reader says what is right."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from stair.data.frame import Array, Loaded, Parts
from stair.data.spelling import MOST_LOOKED_AT, Form, Look
from stair.data.text import TextFile
from stair.data.values import ColumnKind, Piece, as_text, join_pieces, typed
from stair.errors import StairError

_LONGEST_FIELD = 1 << 24
FEWEST_AT_ONCE: Final = 256  # rows of a batch
MOST_CELLS: Final = 1_000_000


@dataclass(frozen=True)
class Layout:
    """What both readers of CSV files need to know."""

    text: TextFile
    separator: str
    header: list[str]
    places: list[int]
    texts: frozenset[int] = frozenset()
    """The places of columns whose values are text, whatever they look like."""

    @property
    def has_commas(self) -> bool:
        """Whether a comma may stand before decimals, for it separates nothing else."""
        return self.separator != ","


@contextlib.contextmanager
def csv_rows(
    text: TextFile, separator: str, read: list[str] | None = None
) -> Iterator[Iterator[list[str]]]:
    """The rows of a file as the standard library reads them, without blank lines.

    Every row is as long as the first one; a row that is not is reported by its line. The lines
    that were read for a row, as they are, are added to `read`.
    """
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with text.lines() as lines:
            noted = lines if read is None else _noted(lines, read)
            yield _checked_rows(text.name, csv.reader(noted, delimiter=separator, strict=True))
    finally:
        csv.field_size_limit(limit)


def _noted(lines: Iterator[str], read: list[str]) -> Iterator[str]:
    for line in lines:
        read.append(line)
        yield line


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


def by_plain_reader(layout: Layout) -> list[Loaded]:
    """Read with the standard library, some rows at a time, so that memory holds typed columns only.

    A column that turns out to be text after some rows looked like numbers is read a second time.
    """
    places = layout.places
    at_once = max(256, min(20_000, 100_000 // len(layout.header)))
    pieces: list[list[Piece]] = [[] for _ in places]
    for columns in blocks(layout, places, at_once):
        for i, piece, values in zip(places, pieces, columns, strict=True):
            piece.append(("text", as_text(values, None)) if i in layout.texts else typed(values))
    joined = [join_pieces(piece) for piece in pieces]
    again = [i for i, column in enumerate(joined) if column is None]
    if again:
        texts: list[list[Array]] = [[] for _ in again]
        for columns in blocks(layout, [places[i] for i in again], at_once):
            for found, values in zip(texts, columns, strict=True):
                found.append(as_text(values, None))
        for i, found in zip(again, texts, strict=True):
            joined[i] = (np.concatenate(found), "")
    return [column for column in joined if column is not None]


def in_batches(layout: Layout, at_once: int) -> Parts:
    """The same columns, some rows at a time: one pass finds out what they are, one reads them."""
    at_once = max(FEWEST_AT_ONCE, min(at_once, MOST_CELLS // len(layout.header)))
    kinds = [ColumnKind({"text"} if place in layout.texts else set()) for place in layout.places]
    looks = {place: Look(layout.has_commas) for place in layout.places if place not in layout.texts}
    n_rows = 0
    for columns in blocks(layout, layout.places, at_once):
        for place, kind, values in zip(layout.places, kinds, columns, strict=True):
            kind.add(values)
            if place in looks and not n_rows:
                looks[place].add(values[:MOST_LOOKED_AT])
        n_rows += len(columns[0])
    forms = _forms(layout, at_once, {
        place: looks[place] for place, kind in zip(layout.places, kinds, strict=True)
        if place in looks and kind.kind == "text" and looks[place].is_open
    })  # fmt: skip

    def parts() -> Iterator[list[Loaded]]:
        for columns in blocks(layout, layout.places, at_once):
            yield [
                (forms[place].read(values), "") if place in forms else kind.read(values)
                for place, kind, values in zip(layout.places, kinds, columns, strict=True)
            ]

    return n_rows, parts()


def _forms(layout: Layout, at_once: int, looks: dict[int, Look]) -> dict[int, Form]:
    """How columns of text are written that have been looked at by their first rows."""
    for columns in blocks(layout, list(looks), at_once) if looks else ():
        for look, values in zip(looks.values(), columns, strict=True):
            look.add(values)
    return {place: look.form for place, look in looks.items() if look.form is not None}


def blocks(layout: Layout, places: list[int], at_once: int) -> Iterator[list[Sequence[str]]]:
    """The wanted columns, some rows at a time."""
    with csv_rows(layout.text, layout.separator) as rows:
        next(rows)
        while block := list(islice(rows, at_once)):
            if len(places) == len(layout.header):
                yield list(zip(*block, strict=True))
            else:
                yield [[row[i] for row in block] for i in places]
