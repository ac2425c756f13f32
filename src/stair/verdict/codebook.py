"""The values of a column of labels: what they are, and which class each of them means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.errors import StairError

Value: TypeAlias = str | int | float | bool

_MOST_SHOWN: Final = 8  # values that an error lists


@dataclass(frozen=True, slots=True)
class Codebook:
    """Which values of the labels mean which class, so that other labels can be read alike.

    `others` is the class of all values that are not listed: one beyond the last where they are a
    class of their own, None where there must be none.
    """

    values: tuple[tuple[Value, ...], ...]
    others: int | None = None

    @property
    def names(self) -> tuple[Value, ...] | None:
        """The one value of each class; None where a class has several."""
        if self.others is not None and self.others < len(self.values):
            return None
        if any(len(of_class) != 1 for of_class in self.values):
            return None
        return tuple(of_class[0] for of_class in self.values)

    def codes(self, labels: object, name: str, hint: str = "") -> NDArray[np.int32]:
        """The class of each row, −1 where it has no label; `hint` is what to do about others."""
        found, places = distinct_values(labels, f'the label column "{name}"')
        known = [value for of_class in self.values for value in of_class]
        class_of = [k for k, of_class in enumerate(self.values) for _ in of_class]
        meant = []
        for value in found:
            at = place_among(value, known)
            if at is None and self.others is None:
                raise StairError(
                    f'the label column "{name}" has the value {said(value)}, but the rules were '
                    f"learned with {folded(known)}{hint}"
                )
            meant.append(self.others if at is None else class_of[at])
        return np.array([*meant, -1], dtype=np.int32)[places]


def place_among(given: object, values: Sequence[Value]) -> int | None:
    """Where a value is among others: as it is, as a number, or as text in any case."""
    value = canonical(given)
    text = text_of(value)
    texts = [text_of(each) for each in values]
    if text in texts:
        return texts.index(text)
    number = number_of(value)
    same = [i for i, each in enumerate(values) if number is not None and number_of(each) == number]
    if not same:  # --positive true for True
        same = [i for i, each in enumerate(texts) if each.casefold() == text.casefold()]
    return same[0] if len(same) == 1 else None


def distinct_values(values: object, what: str) -> tuple[list[Value], NDArray[np.int64]]:
    """The different values that are not missing, and for each row which one it has (-1: none)."""
    items = plain_values(values, what)
    raw: list[object]
    if isinstance(items, np.ndarray):
        unique, inverse = np.unique(items, return_inverse=True)
        raw = unique.tolist()
        codes = inverse.astype(np.int64).reshape(-1)
    else:
        index: dict[object, int] = {}
        try:
            codes = np.fromiter(
                (index.setdefault(item, len(index)) for item in items), np.int64, len(items)
            )
        except TypeError:
            raise StairError(_several(what)) from None
        raw = list(index)
        if any(isinstance(value, tuple) for value in raw):
            raise StairError(_several(what))
    cleaned = [canonical(value) for value in raw]
    if any(type(value) in (int, float) for value in cleaned):  # True is 1 among numbers
        cleaned = [int(value) if isinstance(value, bool) else value for value in cleaned]
    found: dict[str, Value] = {}
    place: dict[str, int] = {}
    merged = np.full(len(cleaned), -1, dtype=np.int64)
    for i, value in enumerate(cleaned):
        if value is not None:
            text = text_of(value)
            found.setdefault(text, value)
            merged[i] = place.setdefault(text, len(place))
    return list(found.values()), merged[codes] if len(merged) else codes


def _several(what: str) -> str:
    return f"{what} holds lists or the like; expected a single value per row"


def plain_values(values: object, what: str) -> Array | list[object]:
    """A numeric NumPy array where the values have one, else a list of Python objects."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        sizes = " × ".join(map(str, shape)) or "a single value"
        raise StairError(f"{what} has the shape {sizes}; expected one column with a value per row")
    if isinstance(values, str | bytes | dict | set | frozenset) or values is None:
        raise StairError(f"{what} is {values!r:.60}; expected a column with one value per row")
    if isinstance(getattr(values, "dtype", None), np.dtype) and not np.ma.isMaskedArray(values):
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64) if array.dtype.itemsize > 8 else array
        if array.dtype.kind in "mM":
            return [
                None if missing else str(x)
                for x, missing in zip(array, np.isnat(array), strict=True)
            ]
        as_list: list[object] = array.tolist()
        return as_list
    for way in ("to_pylist", "to_list", "tolist"):
        convert = getattr(values, way, None)
        if callable(convert):
            as_list = convert()
            return as_list
    if not isinstance(values, Iterable):
        raise StairError(f"{what} is {values!r:.60}; expected a column with one value per row")
    return list(values)


def canonical(value: object) -> Value | None:
    """The value as a plain Python one, whole numbers as int; None where it is missing."""
    if isinstance(value, np.generic) and not isinstance(value, str | bytes):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    # pd.NA is neither equal to itself nor not, so that it is known by its name.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return str(value)


def text_of(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def number_of(value: object) -> int | float | None:
    """The finite number that a value is or spells."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int):
        return int(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def said(value: object) -> str:
    """A value in a sentence: words in quotes, numbers bare."""
    return f'"{value}"' if isinstance(value, str) else text_of(value)


def folded(values: Sequence[object]) -> str:
    shown = ", ".join(map(said, values[:_MOST_SHOWN]))
    return shown if len(values) <= _MOST_SHOWN else f"{shown}, … ({len(values):,} in all)"
