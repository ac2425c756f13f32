"""How exported pandas code reads columns. This text goes into the exported file."""

from typing import Any

import numpy as np
import pandas as pd

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def number(column: Any) -> Any:
    """Numbers as float64, NaN where missing."""
    if column.dtype == object:
        column = column.map(lambda value: np.nan if pd.isna(value) else float(value))
    return column.astype("float64")


def category(column: Any) -> Any:
    """Values as Python has them."""
    return column.astype(object)


def time(column: Any) -> Any:
    """Times to the microsecond, those with a zone moved to UTC and without it."""
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind != "M":
        column = pd.to_datetime(column, format="ISO8601", utc=True).dt.tz_localize(None)
    return column.astype("datetime64[us]")


def microseconds(column: Any) -> Any:
    """Times as microseconds since 1970, NaN where missing."""
    return column.astype("int64").astype("float64").where(column.notna())


def mentions(column: Any, term: str) -> Any:
    """Whether a text has a term in it, whatever the case of the letters A to Z."""
    found = [
        not pd.isna(text) and term in str(text).translate(_LOWER) for text in column.astype(object)
    ]
    return pd.Series(found, index=column.index, dtype=bool)


def anything(frame: Any) -> Any:
    """True for every row."""
    return pd.Series(True, index=frame.index)


def where(mask: Any, number: float, otherwise: Any) -> Any:
    """One number where the mask is true, and another, or another column, elsewhere."""
    return pd.Series(np.where(mask, number, otherwise), index=mask.index)


def nearest(distances: list[Any]) -> Any:
    """The place of the smallest in each row, the first of equals."""
    places = np.column_stack(distances).argmin(axis=1)
    return pd.Series(places, index=distances[0].index)


def first(masks: list[Any], frame: Any) -> Any:
    """The number, from 1, of the first mask that is true in each row; 0 where none is."""
    found = np.zeros(len(frame), dtype=np.int64)
    for place in range(len(masks), 0, -1):
        found[masks[place - 1].to_numpy()] = place
    return pd.Series(found, index=frame.index)
