"""One column in memory, of numpy, of Python objects or of any table library, made plain."""

from __future__ import annotations

import datetime as dt
import math
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import EPOCH_UNIT, Array, Loaded, Value
from stair.data.zones import UTC, known_zone, was_in, zone_of_times
from stair.errors import StairError

# Whole numbers up to here are exact as 64-bit floats.
EXACT: Final = 2**53


class Truth(str):
    """True or false in a column with values of other types: a text like these are, of which it is
    still known that it is true or false."""

    __slots__ = ()


def from_array(name: str, values: Array) -> Loaded:
    """A numpy column of any type."""
    if isinstance(values, np.ma.MaskedArray):
        absent = np.ma.getmaskarray(values)
        plain = np.ma.getdata(values)
        if absent.any():
            if plain.dtype.kind in "iu":
                pairs = zip(plain.tolist(), absent.tolist(), strict=True)
                return from_values([None if gone else v for v, gone in pairs])
            numeric = plain.dtype.kind == "f"
            plain = plain.astype(np.float64 if numeric else object)
            plain[absent] = math.nan if numeric else None
        return from_array(name, plain)
    if values.ndim != 1:
        raise StairError(
            f'column "{name}" has {values.ndim} dimensions; expected one value for each row.'
        )
    kind = values.dtype.kind
    if kind == "f":
        return np.ascontiguousarray(values, dtype=np.float64), ""
    if kind == "u" and values.size and int(values.max()) > np.iinfo(np.int64).max:
        return np.ascontiguousarray(values, dtype=np.uint64), ""
    if kind in "iu":
        return np.ascontiguousarray(values, dtype=np.int64), ""
    if kind == "b":
        return np.ascontiguousarray(values), ""
    if kind == "M":
        return np.ascontiguousarray(values.astype(EPOCH_UNIT)), ""
    if kind == "m":
        return _seconds(values), "duration"
    if kind == "c":
        raise StairError(f'column "{name}" has complex numbers; expected real ones.')
    return from_values(values.tolist() if kind in "SV" else list(values.astype(object)))


# Rows whose values the processor keeps at hand while their columns are taken from them.
TOGETHER: Final = 8192


def columns_of(matrix: Array, places: Sequence[int]) -> Array:
    """Columns of a matrix as rows: each of them lies in one piece."""
    found = np.empty((len(places), len(matrix)), matrix.dtype)
    chosen = slice(None) if list(places) == [*range(matrix.shape[1])] else list(places)
    for start in range(0, len(matrix), TOGETHER):
        found[:, start : start + TOGETHER] = matrix[start : start + TOGETHER, chosen].T
    return found


def _seconds(values: Array) -> NDArray[np.float64]:
    """Durations as seconds, NaN where there is none."""
    seconds = values.astype("timedelta64[us]").astype(np.float64) / 1e6
    seconds[np.isnat(values)] = math.nan
    return seconds


def from_values(values: Sequence[Value]) -> Loaded:
    """Python objects: what they all are, if they all are one thing, else their text."""
    kinds = {t: _kind_of_type(t) for t in set(map(type, values))}
    if set(kinds.values()) == {"text"}:
        array = np.empty(len(values), dtype=object)
        array[:] = [str(v) for v in values]
        return array, ""
    absent = np.fromiter(
        (_is_absent(v, kinds[type(v)]) for v in values), dtype=np.bool_, count=len(values)
    )
    present = [v for v, gone in zip(values, absent.tolist(), strict=True) if not gone]
    found = {kinds[t] for t in set(map(type, present))}
    missing = bool(absent.any())
    if not found:
        return np.full(len(values), math.nan), ""
    if found == {"int"} or (found <= {"int", "real"} and _are_wide(present)):
        return whole_column(
            [None if gone else int(v) for v, gone in zip(values, absent, strict=True)]
        )
    if found <= {"int", "float", "real"}:
        pairs = zip(values, absent.tolist(), strict=True)
        return exact_numbers([None if gone else _number(v) for v, gone in pairs]), ""
    if found == {"bool"}:
        truths = np.array(present, dtype=np.bool_)
        return _spread(absent, truths.astype(object) if missing else truths), ""
    if found == {"moment"}:
        aware = {isinstance(v, dt.datetime) and v.tzinfo is not None for v in present}
        if len(aware) == 1:
            was = was_in(zone_of_times(present)) if aware == {True} else ""
            return _spread(absent, as_times(present)), was
    if found == {"span"}:
        spans = [
            v.astype("timedelta64[us]") if isinstance(v, np.timedelta64) else v for v in present
        ]
        return _spread(absent, _seconds(np.array(spans, dtype="timedelta64[us]"))), "duration"
    if found == {"clock"}:
        hours = [v.hour + v.minute / 60 + (v.second + v.microsecond / 1e6) / 3600 for v in present]
        return _spread(absent, np.array(hours)), "clock"
    texts = np.empty(len(present), dtype=object)
    texts[:] = [_words(v) for v in present]
    plain = found <= {"text", "int", "float", "real"}  # codes such as 2, 3 and "X"
    return _spread(absent, texts), "" if plain else "described"


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


def _kind_of_type(t: type) -> str:
    if t is type(None) or (
        t.__module__.startswith("pandas") and t.__name__ in ("NAType", "NaTType")
    ):
        return "missing"
    for kind, types in _KINDS:
        if issubclass(t, types):
            return kind
    return "other"


def _is_absent(value: object, kind: str) -> bool:
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
        column = np.full(len(absent), np.datetime64("NaT", "us"), dtype=present.dtype)
    else:
        column = np.full(len(absent), None if present.dtype == object else math.nan, present.dtype)
    column[~absent] = present
    return column


def whole_column(values: Sequence[int | None]) -> Loaded:
    """Whole numbers, those exact that have at most 64 bits; None where missing."""
    present = [v for v in values if v is not None]
    low, high = min(present), max(present)
    if low < -(2**63) or high >= 2**64:  # beyond 64 bits: as floats
        return exact_numbers([None if v is None else _number(v) for v in values]), ""
    if len(present) == len(values) and (low >= 0 or high < 2**63):
        return np.array(present, dtype=np.int64 if high < 2**63 else np.uint64), ""
    if max(-low, high) <= 2**53:
        return np.array([math.nan if v is None else v for v in values], dtype=np.float64), ""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column, ""


def _number(value: Value) -> float | int:
    """A number as an int where it is whole and has at most 64 bits, else as a float."""
    if isinstance(value, float | np.floating):
        return float(value)
    is_small = -(2**63) <= value < 2**64
    return int(value) if is_small and value == int(value) else _float(value)


def exact_numbers(values: Sequence[float | int | None]) -> Array:
    """Numbers as float64 where that holds them exactly; else as they are, None where missing."""
    wide = any(isinstance(v, int) and abs(v) > EXACT for v in values)
    if not wide:
        return np.array([math.nan if v is None else v for v in values], dtype=np.float64)
    array = np.empty(len(values), dtype=object)
    array[:] = exact_or_none(values)
    if all(isinstance(v, int) for v in array.tolist()):
        low, high = min(array), max(array)
        if fits_64_bits(low, high):
            return array.astype(np.int64 if high < 2**63 else np.uint64)
    return array


def exact_or_none(values: Sequence[float | int | None]) -> list[float | int | None]:
    """Whole numbers of at most 64 bits as such, None where missing."""
    return [
        None if v is None or v != v else int(v) if float(v).is_integer() and abs(v) < 2**64 else v
        for v in values
    ]


def fits_64_bits(low: int, high: int) -> bool:
    """Whether whole numbers from low to high have a type of their own."""
    return (low >= -(2**63) and high < 2**63) or (low >= 0 and high < 2**64)


def _float(value: Value) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return math.inf if value > 0 else -math.inf


def as_times(values: Sequence[object]) -> Array:
    moved: list[object] = []
    for value in values:
        if isinstance(value, np.datetime64):
            moved.append(value.astype(EPOCH_UNIT))
        elif isinstance(value, dt.datetime):
            naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
            moved.append(naive)
        else:
            moved.append(value)
    return np.array(moved, dtype=EPOCH_UNIT)


def _words(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool | np.bool_):
        return Truth("true" if value else "false")
    if isinstance(value, float | np.floating | Decimal):
        number = float(value)
        return str(int(number)) if number.is_integer() else str(number)
    if isinstance(value, dt.date | np.datetime64):
        return str(as_times([value])[0])
    return str(value)


def described(values: Sequence[object]) -> Loaded:
    """Lists, records or bytes, which are known by what Python calls them wherever they come from:
    a database has words of its own for them."""
    if all(v is None for v in values):
        return from_values(values)
    texts = np.empty(len(values), dtype=object)
    texts[:] = [None if v is None else _words(v) for v in values]
    return texts, "described"


def from_series(name: str, series: Any) -> Loaded:
    """A column of any library that narwhals knows."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_integer() and series.null_count() and _is_wide(series):
        return from_values(series.to_list())  # as floats they would be rounded
    if dtype.is_numeric() and not dtype.is_decimal() and dtype not in (nw.Int128, nw.UInt128):
        return from_array(name, series.to_numpy())
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return from_array(name, utc.to_numpy())[0], was_in(known_zone(dtype.time_zone) or UTC)
    if isinstance(dtype, nw.Boolean | nw.Datetime | nw.Duration | nw.Date | nw.String):
        return from_array(name, series.to_numpy())
    # Decimals, nested, categorical and unknown types: to_numpy is not faithful for all of them (an
    # Arrow dictionary loses its nulls, and Arrow's decimals are not rounded to the nearest float),
    # so that their values are taken one by one.
    return from_values(series.to_list())


def _are_wide(values: Sequence[Value]) -> bool:
    """Whether these are whole numbers some of which a float would round."""
    if not any(abs(v) > 2**53 for v in values):
        return False
    return all(math.isfinite(v) and v == int(v) for v in values)


def _is_wide(series: Any) -> bool:
    known = series.drop_nulls()
    return len(known) > 0 and max(-int(known.min()), int(known.max())) > 2**53


def arrow_columns(table: object) -> list[Loaded]:
    import narwhals as nw

    names, plain = plain_names(table)
    wrapped: Any = nw.from_native(plain, eager_only=True)
    return [from_series(name, wrapped[:, i]) for i, name in enumerate(names)]


def plain_names(data: object) -> tuple[list[str], object]:
    """Names as text, and the table with names that narwhals takes: it stops at duplicates."""
    import narwhals as nw

    if nw.dependencies.is_pandas_dataframe(data):
        plain = data.copy(deep=False)
        plain.columns = [f"c{i}" for i in range(len(data.columns))]
        return [label(name) for name in data.columns], plain
    if nw.dependencies.is_pyarrow_table(data):
        plain = data.rename_columns([f"c{i}" for i in range(data.num_columns)])
        return list(data.column_names), plain
    return [], data


def label(name: object) -> str:
    """A column's name as text; the levels of a compound one are joined by dots."""
    if isinstance(name, tuple):
        return ".".join(str(part) for part in name if str(part) != "")
    return str(name)


def named(names: Any) -> list[str]:
    """The names of columns as a person gives them, as text: one alone, or several."""
    return [label(name) for name in ([names] if isinstance(names, str) else names)]


def appended(first: Array, second: Array) -> Array:
    """Two parts of a column of a frame as one; a part without any value takes the other's type."""
    if first.dtype == second.dtype:
        return np.concatenate([first, second])
    if "M" in (first.dtype.kind, second.dtype.kind):  # the other one is empty, or was refused
        never = np.datetime64("NaT", "us")
        times = [a if a.dtype.kind == "M" else np.full(len(a), never) for a in (first, second)]
        return np.concatenate(times)
    listed = [None if v is None or v != v else v for a in (first, second) for v in a.tolist()]
    if all(v is None or (type(v) in (int, float)) for v in listed):
        if all(v is None or float(v).is_integer() for v in listed):
            return exact_numbers(listed)
        return np.array([np.nan if v is None else float(v) for v in listed])
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array
