"""How exported pandas code reads columns, value by value as `row_reader` does where it must. This
text goes into the exported file."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from stair.export.row_reader import _gone, _hour, _number, _time, _weekday

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def number(column: pd.Series) -> pd.Series:
    """Numbers as float64, NaN where missing; as objects where that would round whole numbers."""
    dtype = column.dtype
    if pd.api.types.is_float_dtype(dtype) and isinstance(dtype, np.dtype):
        return column.astype("float64")
    if pd.api.types.is_integer_dtype(dtype):
        known = column.dropna()
        if known.empty or max(-int(known.min()), int(known.max())) <= 2**53:
            return column.astype("float64")
    listed = _numbers(column.name, column)
    if any(isinstance(value, int) and abs(value) > 2**53 for value in listed):
        return pd.Series(listed, index=column.index, dtype=object)
    floats = [math.nan if value is None else float(value) for value in listed]
    return pd.Series(floats, index=column.index, dtype="float64")


def _numbers(name: object, values: Iterable[Any]) -> list[Any]:
    """Numbers, None where missing; a column of nothing but other texts is not what is meant."""
    found = [_number(value) for value in values]
    for value in () if any(number is not None for number in found) else values:
        if not _gone(value):
            raise ValueError(f"column {name!r} should have numbers, but has {value!r}")
    return found


def read(column: pd.Series, reader: Callable[..., object], *words: str) -> pd.Series:
    """Each value by a reader, None where it is missing."""
    return pd.Series([reader(value, *words) for value in column], index=column.index, dtype=object)


def time(column: pd.Series) -> pd.Series:
    """Times to the microsecond, those with a zone moved to UTC and without it."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "M":
        times = column.to_numpy().astype("datetime64[us]")
    else:
        times = np.array([_time(value) for value in column], dtype="datetime64[us]")
    return pd.Series(times, index=column.index)


def hour_in(column: pd.Series, zone: str | int) -> pd.Series:
    """Hours by the clocks of a zone, NaN where missing."""
    return _each(column, lambda moment: _hour(moment, zone)).astype("float64")


def weekday_in(column: pd.Series, zone: str | int) -> pd.Series:
    """The names of weekdays by the clocks of a zone, None where missing."""
    return _each(column, lambda moment: DAYS[_weekday(moment, zone) or 0])


def _each(column: pd.Series, read: Callable[..., object]) -> pd.Series:
    """What is read of each time, None where it is missing."""
    moments = {None if pd.isna(t) else t.to_pydatetime() for t in time(column).unique()}
    known = {moment: None if moment is None else read(moment) for moment in moments}
    found = [known[None if pd.isna(t) else t.to_pydatetime()] for t in time(column)]
    return pd.Series(found, index=column.index, dtype=object)


def between(column: pd.Series, low: float | None, high: float | None) -> pd.Series:
    """low < x <= high, compared exactly whatever the numbers are; None is no bound."""
    if column.dtype == object:
        inside = [
            value is not None and (low is None or value > low) and (high is None or value <= high)
            for value in column
        ]
        return pd.Series(inside, index=column.index, dtype=bool)
    inside = column.notna()
    if low is not None:
        inside &= column > at_most(low)
    if high is not None:
        inside &= column <= at_most(high)
    return inside


def at_most(bound: float) -> float:
    """The largest float64 that is not above a bound: it has the same float64s below it."""
    near = float(bound)
    return near if near <= bound else math.nextafter(near, -math.inf)


def finite(column: pd.Series) -> pd.Series:
    """Numbers, and NaN in place of infinite ones."""
    return column.where(np.isfinite(column))


def microseconds(column: pd.Series) -> pd.Series:
    """Times as microseconds since 1970, NaN where missing."""
    return column.astype("int64").astype("float64").where(column.notna())


def mentions(column: pd.Series, term: str) -> pd.Series:
    """Whether a text, in lower case, has a term in it."""
    found = [text is not None and term in text for text in column]
    return pd.Series(found, index=column.index, dtype=bool)


def anything(frame: pd.DataFrame) -> pd.Series:
    """True for every row."""
    return pd.Series(True, index=frame.index)


def where(mask: pd.Series, number: float, otherwise: float | pd.Series) -> pd.Series:
    """One number where the mask is true, and another, or another column, elsewhere."""
    return pd.Series(np.where(mask, number, otherwise), index=mask.index)


def nearest(distances: list[pd.Series]) -> pd.Series:
    """The place of the smallest in each row, the first of equals."""
    places = np.column_stack(distances).argmin(axis=1)
    return pd.Series(places, index=distances[0].index)


def first(masks: list[pd.Series], frame: pd.DataFrame) -> pd.Series:
    """The number, from 1, of the first mask that is true in each row; 0 where none is."""
    found = np.zeros(len(frame), dtype=np.int64)
    for place in range(len(masks), 0, -1):
        found[masks[place - 1].to_numpy()] = place
    return pd.Series(found, index=frame.index)
