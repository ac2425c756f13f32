"""How exported polars code reads columns, value by value as `row_reader` does where it must. This
text goes into the exported file."""

from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from stair.export.row_reader import _code, _gone, _hour, _number, _short, _time, _weekday


def once(columns: list[pl.Expr], steps: list[list[pl.Expr]], found: pl.Expr, dtype: Any) -> pl.Expr:
    """What is found from columns that are read once, and then worked out step by step. Polars would
    read a column, and look for the partition of a row, anew wherever rules speak of them."""
    if not columns:
        return found

    def work(struct: pl.Series) -> pl.Series:
        frame = struct.struct.unnest()
        for step in steps:
            frame = frame.with_columns(step)
        return frame.with_columns(stair=found)["stair"].cast(dtype)

    read = pl.struct(columns).map_batches(work, return_dtype=dtype, is_elementwise=True)
    return read.alias("stair")


def first(
    columns: list[pl.Expr], steps: list[list[pl.Expr]], masks: list[pl.Expr], values: list[Any]
) -> pl.Expr:
    """The value of the first mask that is true; there is one more value, where none is."""
    every = [pl.lit(value) for value in values]
    # One flat list: polars needs half a minute for a thousand cases inside each other.
    cases = [pl.when(mask).then(value) for mask, value in zip(masks, every[:-1], strict=True)]
    dtype = pl.select(pl.coalesce(every)).to_series().dtype
    return once(columns, steps, pl.coalesce(*cases, every[-1]), dtype)


def number(name: str, reader: Callable[..., float | None] = _number) -> pl.Expr:
    """Numbers as Float64, null where missing."""
    return pl.col(name).map_batches(
        lambda column: _floats(column, reader), return_dtype=pl.Float64, is_elementwise=True
    )


def _floats(column: pl.Series, reader: Callable[..., float | None]) -> pl.Series:
    if reader is _number and column.dtype.is_numeric() and not column.dtype.is_decimal():
        return column.cast(pl.Float64).fill_nan(None)
    is_plain = reader is _number
    found = _numbers(column.name, column) if is_plain else [reader(value) for value in column]
    return pl.Series(column.name, [None if v is None else float(v) for v in found], pl.Float64)


def _numbers(name: object, values: Iterable[Any]) -> list[Any]:
    """Numbers, None where missing; a column of nothing but other texts is not what is meant."""
    found = [_number(value) for value in values]
    for value in () if any(number is not None for number in found) else values:
        if not _gone(value):
            raise ValueError(f"column {name!r} should have numbers, but has {value!r}")
    return found


def between(name: str, low: float | None, high: float | None) -> pl.Expr:
    """low < x <= high for bounds beyond 2**53, null where missing."""
    return pl.col(name).map_batches(
        lambda column: _between(column, low, high), return_dtype=pl.Boolean, is_elementwise=True
    )


def _between(column: pl.Series, low: float | None, high: float | None) -> pl.Series:
    inside = [
        None if x is None else (low is None or x > low) and (high is None or x <= high)
        for x in map(_number, column)
    ]
    return pl.Series(column.name, inside, dtype=pl.Boolean)


def among(name: str, numbers: list[int]) -> pl.Expr:
    """Whether a number is in a list, of which some are beyond 2**53; null where missing."""

    def look(column: pl.Series) -> pl.Series:
        found = [None if x is None else x in numbers for x in map(_number, column)]
        return pl.Series(column.name, found, dtype=pl.Boolean)

    return pl.col(name).map_batches(look, return_dtype=pl.Boolean, is_elementwise=True)


def words(name: str, reader: Callable[..., object], *spelled: str) -> pl.Expr:
    """Categories and texts as text, null where missing."""

    def read(column: pl.Series) -> pl.Series:
        if reader is _code and column.dtype in (pl.String, pl.Categorical, pl.Enum):
            return column.cast(pl.String)
        found = [reader(value, *spelled) for value in column]
        return pl.Series(column.name, [_word(value) for value in found], dtype=pl.String)

    return pl.col(name).map_batches(read, return_dtype=pl.String, is_elementwise=True)


def _word(value: object) -> str | None:
    """A category as text: 24 for 24.0."""
    return None if value is None else str(_short(value) if isinstance(value, float) else value)


def time(name: str) -> pl.Expr:
    """Times to the microsecond, those with a zone moved to UTC and without it."""
    return pl.col(name).map_batches(_times, return_dtype=pl.Datetime("us"), is_elementwise=True)


def hour_in(name: str, zone: str | int) -> pl.Expr:
    """Hours by the clocks of a zone, null where missing."""
    return _part(name, lambda moment: _hour(moment, zone))


def weekday_in(name: str, zone: str | int) -> pl.Expr:
    """Weekdays by the clocks of a zone, from 1 for Monday, null where missing."""
    return _part(name, lambda moment: None if moment is None else 1 + (_weekday(moment, zone) or 0))


def _part(name: str, read: Callable[..., object]) -> pl.Expr:
    def work(column: pl.Series) -> pl.Series:
        return pl.Series(column.name, [read(t) for t in _times(column)], dtype=pl.Int64)

    return pl.col(name).map_batches(work, return_dtype=pl.Int64, is_elementwise=True)


def _times(column: pl.Series) -> pl.Series:
    if isinstance(column.dtype, pl.Datetime):
        if column.dtype.time_zone is not None:
            column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        if column.dtype == pl.Datetime("ns"):
            column = column.to_physical() // 1000
        return column.cast(pl.Datetime("us"))
    if column.dtype == pl.Date:
        return column.cast(pl.Datetime("us"))
    return pl.Series(column.name, [_time(v) for v in column], dtype=pl.Datetime("us"))


def finite(numbers: pl.Expr) -> pl.Expr:
    """Numbers, and null in place of infinite ones."""
    return pl.when(numbers.is_finite()).then(numbers)


def divided(numbers: pl.Expr, by: float) -> pl.Expr:
    """Each number by another one. Polars would multiply with 1 / by, which is not the same in the
    last digit."""
    return numbers.map_batches(
        lambda column: pl.Series(
            column.name, [None if x is None else x / by for x in column], dtype=pl.Float64
        ),
        return_dtype=pl.Float64,
        is_elementwise=True,
    )
