"""The columns of one part of a table, as the large engines know them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT, exact_numbers
from stair.data.frame import Array, Integers, Loaded, Value


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A column of text or of true and false: its different values, and for each row which one."""

    values: list[Value]
    codes: Integers  # −1 where missing

    def __len__(self) -> int:
        return len(self.codes)


Raw: TypeAlias = Array | Words
"""Numbers as float64 (NaN: missing), or where some are beyond 2**53 whole ones as int64 or uint64
(masked where missing); times as datetime64[us]; anything with names as `Words`."""


class Batch(dict[str, Raw]):
    """Columns by name; `types` says what they were before they became plain, as in a `Frame`."""

    def __init__(
        self, columns: Mapping[str, Raw] | None = None, types: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(columns or {})
        self.types = {name: was for name, was in (types or {}).items() if was}

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.values())))

    @classmethod
    def of(cls, loaded: Mapping[str, tuple[Raw, str]]) -> Batch:
        return cls(
            {name: raw for name, (raw, _) in loaded.items()},
            {name: was for name, (_, was) in loaded.items()},
        )


def gone(raw: Raw) -> NDArray[np.bool_]:
    """Which values are missing."""
    if isinstance(raw, Words):
        return raw.codes < 0
    if isinstance(raw, np.ma.MaskedArray):
        return np.ma.getmaskarray(raw)
    if raw.dtype.kind == "M":
        return np.isnat(raw)
    return np.isnan(raw) if raw.dtype.kind == "f" else np.zeros(len(raw), dtype=np.bool_)


def all_missing(raw: Raw) -> bool:
    """Whether a part of a column has no value at all."""
    if isinstance(raw, Words):
        return not len(raw.values) or bool((raw.codes < 0).all())
    return not len(raw) or (bool(gone(raw[:1])[0]) and bool(gone(raw).all()))


def whole(values: Array, missing: NDArray[np.bool_] | None = None) -> Array:
    """Whole numbers: as floats where these are exact, which is faster."""
    if missing is not None and not missing.any():
        missing = None
    present = values if missing is None else values[~missing]
    if not len(present) or (int(present.min()) >= -EXACT and int(present.max()) <= EXACT):
        numbers = values.astype(np.float64)
        if missing is not None:
            numbers[missing] = np.nan
        return numbers
    plain = values if values.dtype == np.uint64 else values.astype(np.int64)
    return plain if missing is None else np.ma.MaskedArray(plain, missing)


def amounts_of(raw: Raw) -> NDArray[np.float64] | None:
    """A column as floats, NaN where it has no value; None where it holds what is no number."""
    if isinstance(raw, Words):
        try:
            numbers = np.array([*raw.values, np.nan], dtype=np.float64)
        except (TypeError, ValueError):
            return None
        return numbers[raw.codes]
    if raw.dtype.kind == "M":
        return np.full(len(raw), np.nan) if all_missing(raw) else None
    amounts: NDArray[np.float64] = np.ma.getdata(raw).astype(np.float64)
    return np.where(gone(raw), np.nan, amounts) if isinstance(raw, np.ma.MaskedArray) else amounts


def from_loaded(loaded: Loaded) -> tuple[Raw, str]:
    """A column of a frame, and what it was."""
    array, was = loaded
    return _from_frame(array), was


def _from_frame(array: Array) -> Raw:
    kind = array.dtype.kind
    if kind in "fM":
        return array
    if kind in "iu":
        return whole(array)
    if kind == "b":
        return Words([False, True], array.astype(np.int64))
    listed = array.tolist()
    present = [v for v in listed if v is not None]
    if present and all(type(v) is int for v in present):
        dtype = np.uint64 if max(present) >= 2**63 else np.int64
        missing = np.array([v is None for v in listed])
        return whole(np.array([0 if v is None else v for v in listed], dtype=dtype), missing)
    if present and all(type(v) in (int, float) for v in present):
        return np.array([np.nan if v is None else float(v) for v in listed])  # as in a database
    place = {v: k for k, v in enumerate(dict.fromkeys(present))}
    codes = np.array([-1 if v is None else place[v] for v in listed], dtype=np.int64)
    return Words(list(place), codes)


def as_frame_column(raw: Raw, rows: NDArray[np.intp] | slice = slice(None)) -> Array:
    """Some rows of a column as a `Frame` holds columns."""
    if isinstance(raw, np.ma.MaskedArray):
        some = raw[rows]
        return exact_numbers([None if v is None else int(v) for v in some.tolist()])
    if not isinstance(raw, Words):
        return raw[rows]
    codes = raw.codes[rows]
    if raw.values and all(isinstance(v, bool) for v in raw.values) and (codes >= 0).all():
        truths: Array = np.array(raw.values, dtype=np.bool_)[codes]
        return truths
    values = np.empty(len(raw.values) + 1, dtype=object)
    values[:-1] = raw.values
    found: Array = values[codes]
    return found
