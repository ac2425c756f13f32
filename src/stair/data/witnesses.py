"""Columns that are read some rows at a time, each as what all of its values are, from where values
have types of their own: JSON lines, SQLite, several files.

What a column is follows from few of its values: its smallest and largest number, one with a
fraction, whether one is missing. These witnesses are read together with each batch and taken away
again, so that a batch becomes what the whole column would have become.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np

from stair.data.arrays import from_values
from stair.data.frame import Array, Loaded, Parts, Value
from stair.data.values import dated, offset_of

Blocks: TypeAlias = Callable[[], Iterator[Sequence[Sequence[Value]]]]
"""The values of all columns, some rows at a time, as often as they are asked for."""

NO_DATE: Final = "x"


def witnesses(values: Sequence[Value]) -> list[Value]:
    """Few of these values, that tell what all of them are."""
    by_type: dict[type, list[Value]] = {}
    for value in values:
        by_type.setdefault(type(value), []).append(value)
    found: list[Value] = []
    for of_type, same in by_type.items():
        if of_type is str:
            found += _texts(same)
        elif of_type in (int, float):
            known = [v for v in same if v == v]
            found += same[:0] if len(known) == len(same) else [float("nan")]
            found += [min(known), max(known)] if known else []
            if of_type is float:
                found += [v for v in known if not v.is_integer()][:1]
        else:
            found.append(same[0])
    return found


def _texts(same: Sequence[str]) -> list[str]:
    """One of each offset from UTC, where all of them are times."""
    by_offset: dict[str | None, str] = {}
    if dated(from_values(same), is_text=False)[0].dtype.kind != "M":
        return [NO_DATE]
    for text in same:
        by_offset.setdefault(offset_of(text), text)
    return list(by_offset.values())


def typed_batches(blocks: Blocks, are_texts: Sequence[bool]) -> Parts:
    """Columns of Python's values: one pass finds out what they are, one reads them."""
    few: list[list[Value]] = [[] for _ in are_texts]
    n_rows = 0
    for columns in blocks():
        n_rows += len(columns[0])
        few = [witnesses([*known, *values]) for known, values in zip(few, columns, strict=True)]

    def parts() -> Iterator[list[Loaded]]:
        for columns in blocks():
            yield [
                _without(dated(from_values([*values, *known]), is_text), len(values))
                for values, known, is_text in zip(columns, few, are_texts, strict=True)
            ]

    return n_rows, parts()


def _without(column: Loaded, n_rows: int) -> Loaded:
    return column[0][:n_rows], column[1]


def few_of(array: Array) -> Array:
    """The same of a column of a frame: few of its values, as they are in it."""
    if array.dtype.kind == "O":
        listed = array.tolist()
        found = np.empty(len(kept := witnesses(listed)), dtype=object)
        found[:] = kept
        return found
    gone = np.isnat(array) if array.dtype.kind == "M" else array != array
    known = array[~gone]
    some = [array[gone][:1]]
    if len(known):
        some += [known.min(keepdims=True), known.max(keepdims=True)]
    if array.dtype.kind == "f":
        some.append(known[known != np.rint(known)][:1])
    return np.concatenate(some)
