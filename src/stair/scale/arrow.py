"""Arrow columns as we know columns, whatever their types are."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from stair.errors import StairError
from stair.scale.profile import Batch, Raw, Words


def arrow_batch(batch: Any) -> Batch:
    """The columns of a record batch."""
    return {
        name: arrow_column(array, name)
        for name, array in zip(batch.schema.names, batch.columns, strict=True)
    }


def arrow_column(array: Any, name: str) -> Raw:
    pa: Any = import_module("pyarrow")
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers: Raw = np.asarray(
            array.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64
        )
        return numbers
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        ticks = array.cast(pa.timestamp("us", getattr(kind, "tz", None)))
        times: Raw = ticks.to_numpy(zero_copy_only=False).astype("datetime64[us]")
        return times
    if pa.types.is_null(kind):
        return np.full(len(array), np.nan)
    if not (
        pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)
    ):
        raise StairError(
            f'"{name}" holds values of the type {kind}, which are neither numbers, times nor text; '
            "convert the column first, or leave it out"
        )
    return words(array)


def words(array: Any) -> Words:
    """Text, or true and false."""
    coded = array.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Words(coded.dictionary.to_pylist(), codes)
