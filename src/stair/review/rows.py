"""Pages of rows: sorted by any column, searched, and never all of them at once.

A page is found by selection. The value at its first and last place is looked for, which needs no
sorted column, and the few rows between are sorted; so any page of a million rows takes the same
short time, and the only thing kept is the rank of each text.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Frame
from stair.data.packages import optional
from stair.errors import StairError, no_such_column
from stair.report.cells import MISSING, cell, whole_cell

LARGEST_PAGE: Final = 1000
SAMPLE: Final = 4096  # values looked at to guess whether a column has few different ones
CHUNK: Final = 1 << 16
LONGEST_NUMBER: Final = 24  # -2.2250738585072014e-308
PART_OF_NUMBER: Final = re.compile(r"-?[0-9]*\.?[0-9]*(?:e(?:[+-][0-9]*)?)?|\+[0-9]*|-?i?n?f?")
PART_OF_TIME: Final = re.compile(r"[0-9: -]*(?:(?<![0-9]{3})\.[0-9]{0,6})?")

Rowset = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a group, as text."""

    rows: Rowset  # the numbers of the rows shown, from 0, in order
    cells: tuple[tuple[str, ...], ...]  # for each row, in the order of `columns`
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]  # which columns align right
    start: int  # the place of the first row shown
    total: int  # rows in the group that the search leaves
    of: int  # rows in the group


class Rows:
    """The rows of a table, a page at a time.

    Ranks of text are made in the background from the start on; a page that needs one before it
    is there waits for it alone.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._names = tuple(frame.columns)
        self._columns: dict[str, _Column] = {
            name: _column(values) for name, values in frame.columns.items()
        }
        texts = [column for column in self._columns.values() if isinstance(column, _Texts)]
        self._ranking = threading.Thread(target=_rank_all, args=(texts,), daemon=True)
        if texts:
            self._ranking.start()

    def wait(self) -> None:
        """Until all ranks are made."""
        if self._ranking.ident is not None:
            self._ranking.join()

    def page(
        self,
        rows: Rowset,
        *,
        sort: str | None = None,
        descending: bool = False,
        start: int = 0,
        size: int = 50,
        search: str = "",
        first: Sequence[str] = (),
    ) -> Page:
        """The rows at the places from `start` on, of those in which `search` is found; with the
        columns that come `first`, then all others as they are in the table.

        Without `sort` they come by number. Text sorts without regard to case, and where only
        case differs by code points; missing values come last in both directions, and rows with
        equal values by number. A row is found where the text of one of its cells, in full,
        contains the search, in upper or lower case; `–` finds missing values.
        """
        if not 1 <= size <= LARGEST_PAGE:
            raise StairError(f"a page of {size} rows; expected 1 to {LARGEST_PAGE}.")
        if sort is not None and sort not in self._columns:
            raise no_such_column(sort, self._names, self._frame.source or "the table")
        group = self._checked(rows)
        with np.errstate(invalid="ignore"):  # infinity, and NaN of the kind that complains
            found = self._found(group, search.strip().casefold())
            if start < 0 or (start and start >= len(found)):
                raise StairError(f"no row at place {start + 1:,}; there are {len(found):,}.")
            stop = min(start + size, len(found))
            if sort is not None:
                shown = _select(self._columns[sort], found, start, stop, descending)
            else:
                shown = (found[::-1] if descending else found)[start:stop]
        own = [name for name in first if name in self._columns]
        names = tuple(dict.fromkeys([*own, *self._names]))
        return Page(
            rows=shown,
            cells=tuple(
                tuple(cell(self._frame.columns[name][row]) for name in names)
                for row in shown.tolist()
            ),
            columns=names,
            numeric=tuple(self._columns[name].numeric for name in names),
            start=start,
            total=len(found),
            of=len(group),
        )

    def _checked(self, rows: Rowset) -> Rowset:
        """The numbers of the rows in their order."""
        group = np.asarray(rows)
        if group.size and group.dtype.kind not in "iu":
            raise StairError(f"expected the numbers of rows, got {group.dtype}.")
        group = group.astype(np.intp, copy=False)
        if np.any(group[1:] <= group[:-1]):
            group = np.unique(group)
        if len(group) and not 0 <= group[0] <= group[-1] < self._frame.n_rows:
            raise StairError(f"no such row; the table has {self._frame.n_rows:,}.")
        return group

    def _found(self, group: Rowset, wanted: str) -> Rowset:
        if not wanted:
            return group
        found = np.zeros(len(group), dtype=np.bool_)
        left = np.arange(len(group))  # that no column has shown yet
        for column in self._columns.values():
            met = column.mentions(wanted, group[left])
            found[left[met]] = True
            left = left[~met]
        return group[found]


def _select(column: _Column, rows: Rowset, start: int, stop: int, descending: bool) -> Rowset:
    """The rows at these places if all were sorted; `rows` come by number."""
    keys, absent = column.keys(rows)
    last = rows[:0]
    if absent is not None:
        last, rows, keys = rows[absent], rows[~absent], keys[~absent]
    if descending:
        keys = ~keys  # turns the order of whole numbers round, without overflow
    begin, end = min(start, len(rows)), min(stop, len(rows))
    missing = last[start - begin : stop - end]
    if begin == end:
        return missing
    around = np.partition(keys, sorted({begin, end - 1}))
    low, high = around[begin], around[end - 1]
    near = np.flatnonzero((keys >= low) & (keys <= high))
    skipped = begin - int(np.count_nonzero(keys < low))  # of the rows that equal the first one
    near = near[_equal_ones_cut(keys[near], low, high, skipped, end - begin)]
    near = near[np.argsort(keys[near], kind="stable")]
    return np.concatenate([rows[near], missing])


def _equal_ones_cut(
    keys: NDArray[np.int64], low: np.int64, high: np.int64, skipped: int, size: int
) -> Rowset:
    """Of many rows with the values at the ends of a page only those that are on it."""
    lows = np.flatnonzero(keys == low)[skipped:][:size]
    if low == high:
        return lows
    between = np.flatnonzero((keys > low) & (keys < high))
    highs = np.flatnonzero(keys == high)[: size - len(lows) - len(between)]
    return np.sort(np.concatenate([lows, between, highs]))


class _Column(Protocol):
    numeric: bool

    def keys(self, rows: Rowset) -> tuple[NDArray[Any], Mask | None]:
        """Whole numbers that sort as the values do, and which values are missing."""

    def mentions(self, wanted: str, rows: Rowset) -> Mask:
        """In which of these rows the cell's text contains this one."""


def _column(values: NDArray[Any]) -> _Column:
    kind = values.dtype.kind
    if kind == "O":
        return _Texts(values)
    if kind == "M":
        return _Times(values)
    return _Truths(values) if kind == "b" else _Numbers(values)


class _Numbers:
    numeric = True

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values

    def keys(self, rows: Rowset) -> tuple[NDArray[Any], Mask | None]:
        values = self._values[rows]
        if values.dtype.kind != "f":
            return values, None
        absent = np.isnan(values)
        bits = (values + 0.0).view(np.int64)  # no negative zero
        # The bits of a float sort as it does once those of negative ones are turned over.
        keys = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
        return keys, absent if absent.any() else None

    def mentions(self, wanted: str, rows: Rowset) -> Mask:
        values = self._values[rows]
        if wanted == MISSING:
            return np.asarray(values != values)
        met = np.zeros(len(rows), dtype=np.bool_)
        if len(wanted) > LONGEST_NUMBER or not PART_OF_NUMBER.fullmatch(wanted):
            return met
        if _few(values):
            # By their bits, because 0 and -0 are equal and read differently.
            distinct, codes = np.unique(values.view(np.int64), return_inverse=True)
            return _any_of(distinct.view(values.dtype), wanted)[codes]
        for start in range(0, len(rows), CHUNK):
            part = values[start : start + CHUNK]
            near = _near(part, wanted)
            met[start + near] = _numbers_mention(part[near], wanted)
        return met


def _few(values: NDArray[Any]) -> bool:
    return len(np.unique(values[:SAMPLE])) * 4 <= min(len(values), SAMPLE)


def _near(values: NDArray[Any], wanted: str) -> Rowset:
    """The places of numbers that can contain the text. Where it has a decimal point the digits on
    both sides of it say so by arithmetic, and most numbers need not be written down."""
    before, point, after = wanted.lstrip("-").partition(".")
    if not point or values.dtype.kind != "f" or not (before + after).isdecimal():
        return np.arange(len(values))
    size = np.abs(values)
    whole = np.floor(size)
    other = (size < 1e-4) | (size >= 1e9)  # these may have an exponent
    near = ~np.isnan(values)
    if after:
        part = size - whole
        low = float(f"0.{after}")
        near &= other | (part > low - 1e-6) & (part < low + 10.0 ** -len(after) + 1e-6)
    places = np.flatnonzero(near)
    if before:
        ends = np.fmod(whole[places], 10.0 ** len(before)) == float(before)
        places = places[other[places] | ends]
    return places


def _numbers_mention(values: NDArray[Any], wanted: str) -> Mask:
    arrow = optional("pyarrow.compute")
    if arrow is None:
        return _any_of(values, wanted)
    texts = arrow.cast(optional("pyarrow").array(values), "string")
    met = np.array(arrow.match_substring(texts, wanted).to_numpy(zero_copy_only=False), np.bool_)
    if values.dtype.kind == "f":
        # Arrow writes very large and very small numbers in another way than we do.
        size = np.abs(values)
        other = np.flatnonzero(~((size >= 1e-4) & (size < 1e9) | (size == 0)))
        met[other] = _any_of(values[other], wanted)
    return met


class _Truths:
    numeric = False

    def __init__(self, values: NDArray[np.bool_]) -> None:
        self._values = values

    def keys(self, rows: Rowset) -> tuple[NDArray[Any], Mask | None]:
        return self._values[rows].astype(np.int8), None

    def mentions(self, wanted: str, rows: Rowset) -> Mask:
        met = _any_of(np.array([False, True]), wanted)
        return met[self._values[rows].astype(np.intp)]


class _Times:
    numeric = False

    def __init__(self, values: NDArray[np.datetime64]) -> None:
        self._values = values.astype("datetime64[us]", copy=False)

    def keys(self, rows: Rowset) -> tuple[NDArray[Any], Mask | None]:
        values = self._values[rows]
        absent = np.isnat(values)
        return values.view(np.int64), absent if absent.any() else None

    def mentions(self, wanted: str, rows: Rowset) -> Mask:
        met = np.zeros(len(rows), dtype=np.bool_)
        if wanted == MISSING:
            return np.asarray(np.isnat(self._values[rows]))
        if not PART_OF_TIME.fullmatch(wanted):
            return met
        for start in range(0, len(rows), CHUNK):
            met[start : start + CHUNK] = _times_mention(
                self._values[rows[start : start + CHUNK]], wanted
            )
        return met


def _times_mention(values: NDArray[np.datetime64], wanted: str) -> Mask:
    """What is shown of a time is its ISO form up to somewhere, so the search is for the first
    place in the ISO form, and for what ends before that somewhere."""
    iso = np.datetime_as_string(values)
    micros = values.view(np.int64)
    cut = np.sum([micros % 10**digits == 0 for digits in range(1, 7)], axis=0)
    cut[micros % 1_000_000 == 0] = len(".000000")
    cut[micros % 60_000_000 == 0] = len(":00.000000")
    place = np.strings.find(iso, wanted.replace(" ", "T"))
    met: Mask = (place >= 0) & (place + len(wanted) <= np.strings.str_len(iso) - cut)
    met[np.isnat(values)] = False
    return met


class _Texts:
    """Text, or true and false with values missing: each distinct value has its rank."""

    numeric = False

    def __init__(self, values: NDArray[Any]) -> None:
        self._values = values
        self._lock = threading.Lock()
        self._ranked: _Ranked | None = None

    def ranked(self) -> _Ranked:
        with self._lock:
            if self._ranked is None:
                self._ranked = _rank(self._values.tolist())
            return self._ranked

    def keys(self, rows: Rowset) -> tuple[NDArray[Any], Mask | None]:
        keys = self.ranked().ranks[rows]
        absent = keys < 0
        return keys, absent if absent.any() else None

    def mentions(self, wanted: str, rows: Rowset) -> Mask:
        ranked = self.ranked()
        if len(rows) * 10 < len(ranked.distinct):  # then the rows' own values are far fewer
            return _any_of(self._values[rows].tolist(), wanted)
        met = _any_of(ranked.distinct, wanted)[ranked.order]
        return np.append(met, wanted == MISSING)[ranked.ranks[rows]]  # -1, missing, is at the end


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The distinct values stay as they come in the column: in the order of their ranks they lie
    all over the memory, and going through them takes several times as long."""

    ranks: NDArray[np.int32]  # of each row's value; -1 where it is missing
    distinct: list[Any]
    order: NDArray[np.int32]  # the places of the distinct values, by rank


def _rank(values: list[Any]) -> _Ranked:
    """In pieces, so that a page that is asked for meanwhile does not wait for a long call."""
    pieces = [values[start : start + CHUNK] for start in range(0, len(values), CHUNK)]
    seen: dict[Any, None] = {}
    for piece in pieces:
        seen.update(dict.fromkeys(piece))
    distinct = [v for v in seen if v is not None]
    order = _order(distinct)
    ranks = np.empty(len(distinct) + 1, dtype=np.int32)
    ranks[order] = np.arange(len(distinct), dtype=np.int32)
    ranks[-1] = -1  # of missing values
    codes: dict[Any, int] = {value: place for place, value in enumerate(distinct)}
    codes[None] = -1
    found = [np.fromiter(map(codes.__getitem__, p), np.int32, len(p)) for p in pieces]
    return _Ranked(ranks[np.concatenate(found)], distinct, order)


def _order(distinct: list[Any]) -> NDArray[np.int32]:
    """The places of different values, sorted by their text without case, then by themselves; whole
    numbers by themselves."""
    if set(map(type, distinct)) == {int}:
        return np.array(sorted(range(len(distinct)), key=distinct.__getitem__), dtype=np.int32)
    folded = [str(v).casefold() for v in distinct]
    pieces = [folded[start : start + CHUNK] for start in range(0, len(folded), CHUNK)]
    different: set[str] = set()
    for piece in pieces:
        different.update(piece)
    arrow = optional("pyarrow.compute")
    if len(different) == len(folded) >= SAMPLE and arrow is not None:
        # Arrow lets other threads work meanwhile. It sorts by bytes, which is by code points.
        with contextlib.suppress(UnicodeEncodeError):  # half a character
            texts = arrow.cast(optional("pyarrow").chunked_array(pieces), "large_string")
            return np.asarray(arrow.sort_indices(texts), dtype=np.int32)
    places = list(range(len(distinct)))
    if len(different) < len(folded):
        places.sort(key=distinct.__getitem__)
    places.sort(key=folded.__getitem__)
    return np.array(places, dtype=np.int32)


def _rank_all(columns: Sequence[_Texts]) -> None:
    for column in columns:
        column.ranked()


def _any_of(values: Sequence[Any] | NDArray[Any], wanted: str) -> Mask:
    """Which of these values have a text that contains the one that is wanted."""
    folded: Iterable[str] = (whole_cell(v).casefold() for v in values)
    if isinstance(values, list) and set(map(type, values)) <= {str}:
        folded = map(str.casefold, values)  # the same, much faster
    return np.fromiter((wanted in text for text in folded), np.bool_, len(values))
