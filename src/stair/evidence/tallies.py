"""Values and how often they occur: what is enough to draw and to count, without the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair.data.frame import Array, Value


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """A column of rows that are elsewhere: the rows of each class by value.

    Where a column has more values than bins, `values` are the largest of each bin, and `exact` is
    false. Times are in microseconds.
    """

    values: tuple[Value, ...]
    counts: NDArray[np.int64]  # values × classes, and one more at the end: missing values
    is_time: bool = False
    whole_days: bool = False
    exact: bool = True


class Ranked:
    """Numbers in order, each as often as it occurs."""

    __slots__ = ("_ends", "size", "values")

    def __init__(self, values: Array, counts: NDArray[np.int64] | None = None) -> None:
        """Sorted values; with counts they are distinct, and stand for so many rows each."""
        self._ends = None
        if counts is not None:
            values = values[counts > 0]
            self._ends = np.cumsum(counts[counts > 0])
        self.values = values
        self.size = len(values) if self._ends is None else int(self._ends[-1:].sum())

    def at(self, rank: int) -> float:
        """The value at this place, from 0."""
        place = rank if self._ends is None else int(np.searchsorted(self._ends, rank, "right"))
        value: float = self.values[place].item()
        return value

    def up_to(
        self, points: ArrayLike, side: Literal["left", "right"] = "right"
    ) -> NDArray[np.int64]:
        """How many are at most each point; with the side "left", how many are below it."""
        places = np.searchsorted(self.values, np.asarray(points, self.values.dtype), side)
        if self._ends is None:
            return places
        counted: NDArray[np.int64] = np.append(0, self._ends)[places]
        return counted

    def between(self, low: float, high: float) -> Ranked:
        """Those from one number to another, both included."""
        start = int(np.searchsorted(self.values, low))
        here = slice(start, int(np.searchsorted(self.values, high, "right")))
        if self._ends is None:
            return Ranked(self.values[here])
        return Ranked(self.values[here], np.diff(self._ends, prepend=0)[here])

    @staticmethod
    def together(parts: Sequence[Ranked]) -> Ranked:
        """All of several."""
        if len(parts) == 1:
            return parts[0]
        values = np.concatenate([part.values for part in parts])
        ends = [part._ends for part in parts if part._ends is not None]
        if not ends:
            return Ranked(np.sort(values))
        counts = np.concatenate([np.diff(each, prepend=0) for each in ends])
        distinct, places = np.unique(values, return_inverse=True)
        whole = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(whole, places, counts)
        return Ranked(distinct, whole)
