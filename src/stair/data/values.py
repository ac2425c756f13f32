"""Text to values: what a column of texts is, decided by all of them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import (
    EXACT,
    as_times,
    exact_numbers,
    exact_or_none,
    fits_64_bits,
    from_values,
    whole_column,
)
from stair.data.frame import EPOCH_UNIT, Array, DType, Loaded, Value
from stair.data.zones import SEVERAL, in_common, known_zone, was_in, was_together, zone_of

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
Piece: TypeAlias = tuple[str, Array]
"""Some values of a column and what they are: none (all missing), int, float, bool, date, what times
with a zone were (they are moved to UTC) or text. Kinds are joined in `join_pieces`, so that a
column may be typed bit by bit."""

_WHOLE = re.compile(r"[+-]?[0-9]+")
_WHOLE_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.0")
_LEADING_ZERO = re.compile(r"\n\s*[+-]?0[0-9]+(?:[eE][+-]?[0-9]+)?\s*\n")
_DATE = re.compile(
    r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
)


def typed(values: Sequence[str]) -> Piece:
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
        return "text", as_text(values, absent)
    kind, array = found
    if not absent.any():
        return kind, array
    if kind == "int":
        listed: list[int | None] = [None] * len(values)
        for row, value in zip(np.flatnonzero(~absent).tolist(), array.tolist(), strict=True):
            listed[row] = value
        return "int", whole_column(listed)[0]
    if kind == "bool":
        spread = np.full(len(values), None, dtype=object)
        spread[~absent] = array.tolist()
        return kind, spread
    if array.dtype.kind == "M":
        spread = np.full(len(values), np.datetime64("NaT", "us"), dtype=EPOCH_UNIT)
    elif array.dtype.kind == "O":
        spread = np.full(len(values), None, dtype=object)
    else:
        spread = np.full(len(values), math.nan)
    spread[~absent] = array
    return kind, spread


def codes_of(texts: Sequence[str], array: Array) -> Loaded:
    """Texts of a file that are categories, as numbers, flags or days where all of them are; as they
    stand where a number would not say which text it was: 1.10, 1.1 and 1."""
    kind, found = typed(texts)
    if kind in ("text", "none"):
        return array, ""
    if kind == "float" and not all(_WHOLE_FLOAT.fullmatch(t.strip()) for t in texts
                                   if t.strip() not in MISSING):  # fmt: skip
        return array, ""
    return found, "zoned" if kind == "zoned" else ""


def _missing_texts(stripped: Sequence[str]) -> NDArray[np.bool_]:
    return np.fromiter(map(MISSING.__contains__, stripped), dtype=np.bool_, count=len(stripped))


def as_text(values: Sequence[str], absent: NDArray[np.bool_] | None) -> Array:
    """The texts as they are, None for the missing ones."""
    if absent is None:
        absent = _missing_texts(list(map(str.strip, values)))
    array = np.empty(len(values), dtype=object)
    array[:] = values
    array[absent] = None
    return array


def _numbers(values: Sequence[str]) -> Piece | None:
    """The numbers, if all are; a whole number with leading zeros is none, but a code."""
    array: Array
    kind = "int"
    try:
        array, _ = whole_column(list(map(int, values)))
        is_whole = array.dtype.kind in "iu" or all(type(v) is int for v in array.tolist())
        kind = "int" if is_whole else "float"  # beyond 64 bits
    except ValueError:
        try:
            kind, array = "float", np.array(list(map(float, values)))
        except ValueError:
            return None
        if (np.abs(array) >= EXACT).any():  # a float may have rounded a whole number
            array = exact_numbers(list(map(_number, values, array.tolist())))
            kind = "int" if array.dtype.kind in "iu" else "float"
    joined = "\n".join(["", *values, ""])
    # Python reads 1_000 and the digits of every script as numbers; people do not expect that.
    if not joined.isascii() or "_" in joined or _LEADING_ZERO.search(joined):
        return None
    if kind == "float":
        if array.dtype.kind == "f":
            array += 0.0  # no negative zero
            absent = np.isnan(array)
        else:
            absent = np.array([v is None for v in array.tolist()])
        if absent.any() and not all(
            values[i].strip() in MISSING for i in np.flatnonzero(absent).tolist()
        ):
            return None
        if absent.all():
            kind = "none"
    return kind, array


def _number(text: str, number: float) -> float | int:
    """A number as an int where a float would round a whole one of at most 64 bits."""
    if abs(number) >= EXACT and _WHOLE.fullmatch(text.strip()):
        whole = int(text)
        return whole if -(2**63) <= whole < 2**64 else number
    return number


def _truths(values: Sequence[str]) -> Piece | None:
    if values[0].lower() not in ("true", "false"):
        return None
    truth = {"true": True, "false": False}
    known = {v: truth.get(v.lower()) for v in set(values)}
    if None in known.values():
        return None
    return "bool", np.array([known[v] for v in values], dtype=np.bool_)


def _moments(values: Sequence[str]) -> Piece | None:
    """Dates and times in ISO form, if all are; either all have a time zone, or none has."""
    first = _DATE.fullmatch(values[0])
    if first is None:
        return None
    offsets = set()
    for found in map(_DATE.fullmatch, set(values)):
        if found is None or (found[1] is None) != (first[1] is None):
            return None
        offsets.add(found[1])
    try:
        if first[1] is None:  # 26 characters: down to the microsecond
            return "date", np.array(values, dtype="U26").astype(EPOCH_UNIT)
        zone = in_common(known_zone(offset) or SEVERAL for offset in offsets)
        return was_in(zone), as_times([dt.datetime.fromisoformat(v) for v in values])
    except (ValueError, OverflowError):  # 31 February; a first or last day that leaves the calendar
        return None


def join_pieces(pieces: Sequence[Piece]) -> Loaded | None:
    """One column from its pieces, or None where they only agree as text that is gone by now."""
    kinds = {kind for kind, _ in pieces} - {"none"}
    if kinds and all(zone_of(kind) is not None for kind in kinds):
        kinds = {reduce(was_together, sorted(kinds))}
    if not kinds:
        return np.concatenate([a for _, a in pieces]) if pieces else np.empty(0), ""
    if kinds == {"int"}:
        if all(array.dtype == np.int64 for _, array in pieces):
            return np.concatenate([a for _, a in pieces]), ""
        return from_values([v for _, a in pieces for v in _whole(a)])
    if kinds <= {"int", "float"}:
        if any(_is_wide(a) for _, a in pieces):
            listed = [v for _, a in pieces for v in a.tolist()]
            return exact_numbers([None if v is None or v != v else v for v in listed]), ""
        return np.concatenate([a.astype(np.float64, copy=False) for _, a in pieces]), ""
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    if kind == "date" or zone_of(kind) is not None:
        fill: object = np.datetime64("NaT", "us")
        dtype: Any = EPOCH_UNIT
    else:
        fill = None
        whole = all(array.dtype == np.bool_ for _, array in pieces)
        dtype = np.bool_ if whole else object
    parts = [
        np.full(len(a), fill, dtype=dtype) if k == "none" else a.astype(dtype) for k, a in pieces
    ]
    return np.concatenate(parts), "" if zone_of(kind) is None else kind


@dataclass(slots=True)
class ColumnKind:
    """What a column is, found out piece by piece, so that each piece can be read as all of it is:
    what `join_pieces` would make of them together."""

    kinds: set[str] = field(default_factory=set)
    low: int = 0
    high: int = 0
    has_gaps: bool = False
    is_exact: bool = False  # whether floats would round its numbers
    has_fractions: bool = False  # or numbers beyond 64 bits

    def add(self, values: Sequence[str]) -> None:
        if "text" in self.kinds:
            return
        kind, array = typed(values)
        self.kinds.add(kind)
        self.has_gaps |= kind == "none" or (kind in ("int", "bool") and array.dtype.kind in "fO")
        if kind in ("int", "float"):
            self.is_exact |= _is_wide(array)
        if kind == "int":
            self._reach([v for v in _whole(array) if v is not None])
        elif kind == "float" and not self.has_fractions:
            known = [v for v in exact_or_none(array.tolist()) if v is not None]
            self.has_gaps |= len(known) < len(array)
            whole = [v for v in known if isinstance(v, int)]
            self.has_fractions = len(whole) < len(known)
            self._reach(whole)

    def _reach(self, known: Sequence[int]) -> None:
        self.low, self.high = min([self.low, *known]), max([self.high, *known])

    @property
    def kind(self) -> str:
        found = self.kinds - {"none"}
        if found and all(zone_of(kind) is not None for kind in found):
            return reduce(was_together, sorted(found))
        if found == {"int", "float"}:
            return "float"
        return min(found) if len(found) == 1 else "text" if found else "none"

    @property
    def dtype(self) -> DType:
        """Of the whole column."""
        kind = self.kind
        is_whole = kind == "int" or (kind == "float" and self.is_exact and not self.has_fractions)
        if is_whole and not self.has_gaps and fits_64_bits(self.low, self.high):
            return np.dtype(np.int64 if self.high < 2**63 else np.uint64)
        if kind in ("int", "float"):
            return np.dtype(object if self.is_exact else np.float64)
        if kind == "none":
            return np.dtype(np.float64)
        if kind == "bool":
            return np.dtype(object if self.has_gaps else np.bool_)
        return np.dtype(object if kind == "text" else EPOCH_UNIT)

    def read(self, values: Sequence[str]) -> Loaded:
        """A piece of the column."""
        kind, dtype = self.kind, self.dtype
        if kind == "text":
            return as_text(values, None), ""
        own, array = typed(values)
        was = kind if zone_of(kind) is not None else ""
        if own == "none" and dtype.kind in "OM":
            gone: Value = np.datetime64("NaT", "us") if dtype.kind == "M" else None
            return np.full(len(values), gone, dtype), was
        if dtype.kind == "O" and kind in ("int", "float"):
            spread = np.empty(len(values), dtype=object)
            spread[:] = exact_or_none(array.tolist())
            return spread, was
        return array.astype(dtype, copy=False), was


def _is_wide(array: Array) -> bool:
    """Whether floats would round whole numbers of this piece of a column."""
    if array.dtype.kind in "iu":
        return bool(array.size) and (int(array.max()) > EXACT or int(array.min()) < -EXACT)
    return array.dtype.kind == "O"


def _whole(array: Array) -> list[int | None]:
    """Whole numbers however they are held, None where missing."""
    return [None if v is None or v != v else int(v) for v in array.tolist()]


def whole_numbers(array: Array) -> bool:
    """Whether a column of any type has whole numbers alone, as far as its values are there."""
    if array.dtype.kind == "f":
        known = array[~np.isnan(array)]
        return bool(known.size and (known == np.rint(known)).all() and np.isfinite(known).all())
    present = [v for v in array.tolist() if v is not None]
    return bool(present) and all(type(v) is int for v in present)


def moment(text: str) -> np.datetime64 | None:
    """The time that an ISO text names, in UTC where it has a zone; None where it names none."""
    text = text.strip()
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        if match[1] is None:  # 26 characters: down to the microsecond
            return np.datetime64(text[:26].replace(" ", "T"), "us")
        return np.datetime64(as_times([dt.datetime.fromisoformat(text)])[0], "us")
    except (ValueError, OverflowError):  # 31 February; a day that leaves the calendar
        return None


def offset_of(text: str) -> str | None:
    """The offset from UTC that an ISO text has at its end."""
    match = _DATE.fullmatch(text)
    return None if match is None else match[1]


def dated(column: Loaded, is_text: bool) -> Loaded:
    """Times where a column of text holds nothing else, unless it is known to be text: JSON and
    SQLite have no type for them."""
    array, _ = column
    if is_text or array.dtype != object:
        return column
    absent = np.array([v is None for v in array.tolist()])
    present = array[~absent].tolist()
    found = _moments(present) if isinstance(present[0], str) else None
    if found is None:
        return column
    times = np.full(len(array), np.datetime64("NaT", "us"), dtype=EPOCH_UNIT)
    times[~absent] = found[1]
    return times, "" if zone_of(found[0]) is None else found[0]
