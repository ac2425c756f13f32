"""CSV files: the separator, the header, and which of the two readers reads the rest."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

from stair.data.csv_duckdb import by_duckdb
from stair.data.csv_plain import Layout, blocks, by_plain_reader, csv_rows, in_batches
from stair.data.frame import Array, Loaded, Opened, Parts, unique_names
from stair.data.spelling import (
    MOST_LOOKED_AT,
    NOT_A_CODE,
    are_codes,
    form_of,
    note_on_codes,
    notes_on,
)
from stair.data.text import HEAD, TextFile
from stair.errors import StairError

ROWS_AT_ONCE: Final = 20_000
Reader: TypeAlias = Literal["duckdb", "plain"] | None


def open_csv(text: TextFile, ending: str, reader: Reader, texts: Collection[str] = ()) -> Opened:
    separator = _find_separator(text, ending)
    with csv_rows(text, separator) as lines:
        header = next(lines, None)
    if header is None:
        raise StairError(f"{text.name} is empty; expected a header line and rows of values.")

    names = [name.strip() for name in header]
    as_text = frozenset(i for i, name in enumerate(unique_names(names)[0]) if name in texts)

    notes = list(text.notes)

    def load(places: list[int]) -> list[Loaded]:
        layout = Layout(text, separator, header, places, as_text)
        columns = by_duckdb(layout, forced=reader == "duckdb") if reader != "plain" else None
        columns = by_plain_reader(layout) if columns is None else columns
        return _respelled(layout, columns, notes)

    def batches(places: list[int], at_once: int) -> Parts:
        return in_batches(Layout(text, separator, header, places, as_text), at_once)

    def rows() -> Iterator[Sequence[str]]:
        with csv_rows(text, separator) as found:
            yield from islice(found, 1, None)

    empty = "has a header but no rows"
    return Opened(names, load, rows, notes, empty, batches, text, separator)


def _respelled(layout: Layout, columns: Sequence[Loaded], notes: list[str]) -> list[Loaded]:
    """Columns of text as numbers or times where they are written as one of their forms; and what a
    person should know of that, as far as the first rows tell."""
    first = next(blocks(layout, layout.places, MOST_LOOKED_AT), [()] * len(columns))
    found: list[Loaded] = []
    for place, texts, (array, was) in zip(layout.places, first, columns, strict=True):
        is_text = array.dtype == object and isinstance(next(filter(None, array), None), str)
        may_be = place not in layout.texts and not was
        form = form_of(array, layout.has_commas) if is_text and may_be else None
        found.append((array, was) if form is None else (form.read(array), ""))
        if may_be and (is_text or array.dtype != object):
            name = layout.header[place].strip()
            notes.extend(notes_on(name, texts, array.dtype.kind, form))
            if is_text and are_codes(texts) and (n_rows := _n_not_codes(layout, place, array)):
                notes.append(note_on_codes(name, n_rows))
    return found


def _n_not_codes(layout: Layout, place: int, array: Array) -> int:
    """In how many rows a column of text has the word that is no code; of most it is known that it
    is in none."""
    if all(value is not None for value in array.tolist()):
        return 0
    return sum(
        text.strip() == NOT_A_CODE
        for (texts,) in blocks(layout, [place], ROWS_AT_ONCE)
        for text in texts
    )


def _find_separator(text: TextFile, ending: str) -> str:
    """The separator that cuts the first lines into the same number of fields, and most of them.

    Where none does so in every line, the one that cuts the header most: the row that does not fit
    is reported later by its line.
    """
    with text.characters() as file:
        head = file.read(HEAD // 8)  # characters of up to four bytes, none beyond those checked
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
