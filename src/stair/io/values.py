"""Text to values: what a column of texts is, decided by all of them."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.io.arrays import as_times
from stair.io.frame import EPOCH_UNIT, Array

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
Piece: TypeAlias = tuple[str, Array]
"""Some values of a column and what they are: none (all missing), int, float, bool, date, zoned
(moved to UTC) or text. Kinds are joined in `join_pieces`, so that a column may be typed bit by
bit."""

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
    if kind == "bool":
        spread = np.full(len(values), None, dtype=object)
        spread[~absent] = array.tolist()
        return kind, spread
    if kind in ("date", "zoned"):
        spread = np.full(len(values), np.datetime64("NaT"), dtype=EPOCH_UNIT)
    else:
        kind, spread = "float", np.full(len(values), math.nan)
    spread[~absent] = array
    return kind, spread


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
            values[i].strip() in MISSING for i in np.flatnonzero(absent).tolist()
        ):
            return None
        if absent.all():
            kind = "none"
    return kind, array


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
    matches = map(_DATE.fullmatch, set(values))
    if not all(m is not None and (m[1] is None) == (first[1] is None) for m in matches):
        return None
    try:
        if first[1] is None:  # 26 characters: down to the microsecond
            return "date", np.array(values, dtype="U26").astype(EPOCH_UNIT)
        return "zoned", as_times([dt.datetime.fromisoformat(v) for v in values])
    except (ValueError, OverflowError):  # 31 February; a first or last day that leaves the calendar
        return None


def join_pieces(pieces: Sequence[Piece]) -> tuple[Array, bool] | None:
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
        dtype: Any = EPOCH_UNIT
    else:
        fill = None
        whole = all(array.dtype == np.bool_ for _, array in pieces)
        dtype = np.bool_ if whole else object
    parts = [
        np.full(len(a), fill, dtype=dtype) if k == "none" else a.astype(dtype) for k, a in pieces
    ]
    return np.concatenate(parts), kind == "zoned"


def dated(column: tuple[Array, bool]) -> tuple[Array, bool]:
    """Times where a column of text holds nothing else: JSON and SQLite have no type for them."""
    array, _ = column
    if array.dtype != object:
        return column
    absent = np.array([v is None for v in array.tolist()])
    present = array[~absent].tolist()
    found = _moments(present) if isinstance(present[0], str) else None
    if found is None:
        return column
    times = np.full(len(array), np.datetime64("NaT"), dtype=EPOCH_UNIT)
    times[~absent] = found[1]
    return times, found[0] == "zoned"
