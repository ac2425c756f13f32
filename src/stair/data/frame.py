"""The one plain form of a table, and a source that is opened but not read yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.packages import Foreign
from stair.data.text import TextFile
from stair.data.zones import UTC, zone_of
from stair.errors import StairError

Value: TypeAlias = Any
"""A value of a column as Python has it: a number, a text, true or false, a time."""
Array: TypeAlias = NDArray[Any]
Integers: TypeAlias = NDArray[np.integer[Any]]
Unsigned: TypeAlias = NDArray[np.unsignedinteger[Any]]
DType: TypeAlias = np.dtype[Any]
Source: TypeAlias = str | os.PathLike[str]
Loaded: TypeAlias = tuple[Array, str]
"""A column, and what it was before it became plain: "zoned" times (in UTC now; `zones` says
of which zone they were), a "duration" (in seconds), a "clock" (hours of the day), "described"
(lists, records, bytes as text); else ""."""
Parts: TypeAlias = tuple[int | None, Iterator[Sequence[Loaded]]]
"""How many rows there are, where that is known, and columns, some rows after the other: each column
is read as all of its values are."""
EPOCH_UNIT = "datetime64[us]"


@dataclass(frozen=True, eq=False)
class Frame:
    """A table as named columns.

    A column is float64 (NaN = missing), int64 or uint64, bool, datetime64[us] (NaT = missing), or
    object with None for missing and only text, only true and false, or only numbers: whole ones
    some of which are too large to be exact as floats, beside missing values or fractions.
    """

    columns: dict[str, Array] = field(repr=False)
    """The columns in the order of the file."""
    n_rows: int
    source: str = ""
    """The file's name as people know it, or "" where there is no file."""
    notes: tuple[str, ...] = ()
    """What a person should know about how the table was read."""
    types: dict[str, str] = field(default_factory=dict, repr=False)
    """What columns were before they became plain, where that is not plain from the values."""


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened source: its names are known, its values are not read yet."""

    names: list[str]
    load: Callable[[list[int]], list[Loaded]]
    """The columns at these places."""
    rows: Callable[[], Iterator[Sequence[object]]]
    """The rows with the values that are in the source, before they become those of a Frame."""
    notes: list[str] = field(default_factory=list)
    empty: str = "has no rows"
    batches: Callable[[list[int], int], Parts] | None = None
    """The columns at these places, so many rows at a time; None where `load` holds all anyway."""
    text: TextFile | None = None
    separator: str = ""
    exact: Callable[[int, bool], Iterator[Foreign]] | None = None
    """The rows of a database as Arrow's record batches, for another one like it or for others."""
    types: tuple[str, ...] = ()
    """Of its columns in a database, as it writes them."""


def make_frame(
    names: Sequence[str],
    loaded: Sequence[Loaded],
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
    types = {name: was for name, (_, was) in zip(names, loaded, strict=True) if was}
    said.extend(note for name, was in types.items() for note in zone_notes(name, was))
    arrays = {name: array for name, (array, _) in zip(names, loaded, strict=True)}
    return Frame(arrays, n_rows, source, tuple(said), types)


def zone_notes(name: str, was: str) -> list[str]:
    """What a person should know of the zone of a column."""
    zone = zone_of(was)
    if zone is None:
        return []
    shown = "" if zone == UTC else f" ({zone})"
    return [f'the times in "{name}" have a time zone{shown}; bounds on them are in UTC']


def check_filled(source: str, n_rows: int, n_columns: int, filled: int, many: int) -> None:
    """Refuse a table of many cells that is nearly all gaps: a file of a megabyte can stand for one
    beyond all memory."""
    cells = n_rows * n_columns
    if cells > many and cells > 20 * filled:
        raise StairError(
            f"{source} would be a table of {n_rows:,} rows and {n_columns:,} columns with a value "
            f"in {filled:,} places only; expected rows that have their columns in common."
        )


def unique_names(raw: Sequence[str]) -> tuple[list[str], dict[int, str]]:
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
