"""Rows that are equal: one of them, with a weight, says all that they say."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stair.learn.distill import _twin

_kernel: Any = _twin
with suppress(ImportError):  # installed without a C compiler
    _kernel = import_module("stair.learn.distill._boxes")


def distinct_rows(
    cells: NDArray[np.uint16] | NDArray[np.uint64], labels: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows that are equal in all cells and in class are one: the first of each, in the order of
    the table, and to which of these every row belongs."""
    first, places = _kernel.distinct(cells, labels)
    return first, places


def one_for_all(
    values: NDArray[np.float64], labels: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]] | None:
    """Of rows that are equal the first, and how many they are; None where most rows are unlike."""
    first, places = distinct_rows(values.view(np.uint64), labels)
    return None if 2 * len(first) > len(labels) else (first, np.bincount(places))
