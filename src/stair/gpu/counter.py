"""A `Counter` whose codes are on a device.

A pass over all rows counts them as they lie. Otherwise each row first finds its slot, and the rows
of each slot are put together: then every block of threads counts rows of one slot, in memory that
is its own, however many slots there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.engines.counting import Paths, only_root
from stair.gpu.codes import Codes
from stair.gpu.device import Chunk, Order, Target, Tree
from stair.rules.columns import Column
from stair.rules.objective import Counts

# A block of threads writes all of its counts in the end, so that it takes as many rows as can be:
# there are so many times fewer blocks than where they write nothing.
PIECES: Final = 4
LEAST_ROWS: Final = 1 << 14  # that a block of threads counts at once, if there are so many


class DeviceCounter:
    """Class counts by (slot, column, code) of codes on a device: of rows, or of their weights."""

    def __init__(
        self, codes: Codes, columns: Sequence[Column], n_classes: int, *, by_weight: bool = False
    ) -> None:
        self.columns, self.codes = columns, codes
        self._by_weight = by_weight
        self.sizes: Sequence[int] = codes.layout.sizes
        self._n_classes = n_classes
        # Counted once for all, as the root is asked for again when the rules are known.
        self._root = self._count(only_root(), range(len(columns)))
        self.totals: tuple[int, ...] = tuple(self._root[0, : self.sizes[0]].sum(axis=0).tolist())

    def count(self, paths: Paths, columns: Sequence[int]) -> Counts:
        if paths.column[0] < 0 and len(columns) == len(self.columns):
            return self._root
        return self._count(paths, columns)

    def _count(self, paths: Paths, columns: Sequence[int]) -> Counts:
        device, layout = self.codes.device, self.codes.layout
        starts = np.cumsum([0, *(self.sizes[j] for j in columns)]).tolist()
        targets: dict[int, list[Target]] = {}
        for j, out in zip(columns, starts, strict=False):
            panel, byte, width = layout.places[j]
            targets.setdefault(panel, []).append(Target(byte, width, self.sizes[j], out))
        counts = device.xp.zeros((paths.n_slots, starts[-1], self._n_classes), dtype=np.uint64)
        tree = None if paths.column[0] < 0 else Tree.of(paths, layout)
        for chunk in self.codes.chunks():
            order, sizes = self._ordered(chunk, tree)
            items = items_of(sizes, max(1, device.blocks // PIECES))
            if not len(items):
                continue
            device.tally(
                chunk, targets, items, order, self._n_classes, counts, is_weighed=self._by_weight
            )
        return device.there(counts).view(np.int64)

    def _ordered(self, chunk: Chunk, tree: Tree | None) -> tuple[Order, NDArray[np.int64]]:
        """The rows of each slot together, and how many they are."""
        if tree is None:
            return Order(None, chunk.labels), np.array([chunk.n_rows])
        device = self.codes.device
        slots, sizes = device.route(chunk, tree, self._n_classes)
        return device.place(chunk, slots, sizes), sizes


def items_of(sizes: NDArray[np.int64], blocks: int) -> NDArray[np.int32]:
    """Slot, start and stop of rows that are counted at once, so that all blocks have work."""
    piece = max(LEAST_ROWS, -(-int(sizes.sum()) // blocks))
    pieces = -(-sizes // piece)
    slots = np.repeat(np.arange(len(sizes)), pieces)
    within = np.arange(len(slots)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = (np.cumsum(sizes) - sizes)[slots]
    start = first + within * piece
    stop = np.minimum(start + piece, first + sizes[slots])
    return np.column_stack([slots, start, stop]).astype(np.int32)
