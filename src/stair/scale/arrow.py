"""Arrow columns as we know columns, whatever their types are."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stair.data.arrays import from_series
from stair.data.zones import UTC, was_in, zone_of
from stair.scale.raw import Batch, Raw, Words, from_loaded, whole

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_batch(batch: pa.RecordBatch) -> Batch:
    """The columns of a record batch of Spark. The zone that its times have there is the session's,
    which says nothing of the data: they are in UTC."""
    names, arrays = batch.schema.names, batch.columns
    found = {n: arrow_column(a, n) for n, a in zip(names, arrays, strict=True)}
    return Batch.of({n: (raw, was_in(UTC) if zone_of(was) else was)
                     for n, (raw, was) in found.items()})  # fmt: skip


def arrow_column(array: pa.Array, name: str) -> tuple[Raw, str]:
    """A column, and what it was before it became plain."""
    pa = import_module("pyarrow")
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return words(array), ""
    if pa.types.is_integer(kind):
        return whole_numbers(array), ""
    import narwhals as nw

    series = nw.from_native(pa.chunked_array([array]), series_only=True)
    return from_loaded(from_series(name, series))


def words(array: pa.Array) -> Words:
    """Text, or true and false."""
    coded = array.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Words(coded.dictionary.to_pylist(), codes)


def whole_numbers(array: pa.Array) -> Raw:
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    return whole((array.fill_null(0) if array.null_count else array).to_numpy(), missing)
