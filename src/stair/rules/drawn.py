"""Rows drawn from all rows, outliers and inliers each by themselves: the same ones whether the rows
come at once, in batches or from an engine. Where there are not more than may be drawn it is all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import appended
from stair.data.conversion import is_missing
from stair.data.frame import Array
from stair.data.lots import Lots, lots_of
from stair.rules.schema import Field, Values

MOST_ROWS: Final = 50_000  # of outliers, and of inliers
MOST_VALUES: Final = 4_000_000  # of each, in all fields together


@dataclass(slots=True, eq=False)
class Drawn:
    """At most so many rows of each side, as they came."""

    fields: Sequence[Field]
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, np.int64))  # in all
    numbers: Lots = field(default_factory=lambda: np.zeros(0, np.uint64))  # in the data, from 0
    is_flagged: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    values: Values | None = None

    @property
    def most(self) -> int:
        return min(MOST_ROWS, MOST_VALUES // max(len(self.fields), 1))

    @property
    def is_whole(self) -> bool:
        """Whether nothing had to be left out."""
        return len(self.numbers) == int(self.counts.sum())

    @property
    def weights(self) -> NDArray[np.int64]:
        """How many rows each of them stands for: whole numbers."""
        here = np.bincount(self.is_flagged, minlength=2)
        each = np.rint(self.counts / np.maximum(here, 1)).astype(np.int64)
        return np.maximum(each, 1)[self.is_flagged.astype(np.intp)]

    def fresh(self) -> Drawn:
        return Drawn(self.fields)

    def draw(
        self,
        is_flagged: NDArray[np.bool_],
        numbers: Lots,
        counts: NDArray[np.bool_],
        read: Callable[[NDArray[np.intp]], Values],
    ) -> None:
        """Of the rows that `count` those that may stay; only of these values are read."""
        self.counts = self.counts + np.bincount(is_flagged[counts], minlength=2)
        lots, own = lots_of(0, numbers), lots_of(0, self.numbers)
        limits = np.full(2, np.iinfo(np.uint64).max)
        for side in (0, 1):
            here = own[self.is_flagged == side]
            if len(here) >= self.most:
                limits[side] = here.max()
        rows = np.flatnonzero(counts & (lots <= limits[is_flagged.astype(np.intp)]))
        if len(rows) or self.values is None:
            self._take(read(rows), is_flagged[rows], numbers[rows])

    def _take(self, values: Values, is_flagged: NDArray[np.bool_], numbers: Lots) -> None:
        shortened = Values(
            {f.name: _without_words(f, values[f.name]) for f in self.fields if f.name in values},
            values.n_rows,
        )
        mine = shortened.take(np.zeros(0, np.intp)) if self.values is None else self.values
        numbers = np.append(self.numbers, numbers)
        is_flagged = np.append(self.is_flagged, is_flagged)
        lots = lots_of(0, numbers)
        kept = np.zeros(len(lots), np.bool_)
        for side in (False, True):
            here = np.flatnonzero(is_flagged == side)
            kept[here[np.argsort(lots[here], kind="stable")[: self.most]]] = True
        order = np.flatnonzero(kept)
        order = order[np.argsort(numbers[order], kind="stable")]
        # A field that could not be had in one of the parts is left out.
        both = {n: appended(mine[n], shortened[n])[order] for n in mine if n in shortened}
        self.values = Values(both, len(order))
        self.numbers, self.is_flagged = numbers[order], is_flagged[order]

    def merge(self, other: Drawn) -> None:
        """What was drawn from other rows."""
        if other.values is not None:
            self._take(other.values, other.is_flagged, other.numbers)
        self.counts = self.counts + other.counts


def drawn_from(
    fields: Sequence[Field],
    values: Values,
    is_flagged: NDArray[np.bool_],
    numbers: Array | None = None,
) -> Drawn:
    """From rows that are all here; their numbers in the data are 0, 1, … unless told."""
    found = Drawn(fields)
    places = np.arange(values.n_rows) if numbers is None else np.asarray(numbers)
    everything = np.ones(values.n_rows, np.bool_)
    found.draw(is_flagged, places.astype(np.uint64), everything, values.take)
    return found


def _without_words(each: Field, array: Array) -> Array:
    """Of texts it matters only whether there is one."""
    if each.kind != "text":
        return array
    found = np.full(len(array), "", dtype=object)
    found[is_missing(array)] = None
    return found
