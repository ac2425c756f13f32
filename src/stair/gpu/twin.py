"""The same as the kernels in plain numpy: their oracle, and a device where there is no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.data.packages import Foreign
from stair.gpu.device import AS_IT_IS, Chunk, Extent, Feed, Lookup, Order, Target, Tree
from stair.gpu.panels import Place
from stair.rules.match import first_of


class Far(NamedTuple):
    """An array that counts as being on a device."""

    values: Array


class Twin:
    """A device that is none."""

    name = "numpy"
    xp: Foreign = np

    blocks = 12

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room

    def taken(self, data: object) -> Array | None:
        return data.values if isinstance(data, Far) else None

    def here(self, array: Array) -> Array:
        return array.copy()  # what is changed there stays as it is here

    def there(self, array: Array) -> Array:
        return array.copy()

    def kept(self, n_bytes: int) -> Array:
        return np.empty(n_bytes, dtype=np.uint8)

    def streamed(self, kept: Sequence[Array]) -> Iterator[Array]:
        return map(self.here, kept)

    def route(self, chunk: Chunk, tree: Tree, n_classes: int) -> tuple[Array, NDArray[np.int64]]:
        node = np.zeros(chunk.n_rows, dtype=np.int64)
        walking = np.flatnonzero(chunk.labels < n_classes)
        slots = np.full(chunk.n_rows, -1, dtype=np.int32)
        counted = walking
        while len(walking := walking[tree.nodes[node[walking], 0] >= 0]):
            for here in np.unique(node[walking]).tolist():
                rows = walking[node[walking] == here]
                where, cut, table, left = tree.nodes[here].tolist()
                codes = _codes(chunk, where >> 8, where >> 1 & 127, 1 + (where & 1))[rows]
                codes = codes.astype(np.int64)
                is_left = codes <= cut if table < 0 else tree.left_of[table + codes] > 0
                node[rows] = np.where(is_left, left, left + 1)
        slots[counted] = tree.nodes[node[counted], 3]
        return slots, np.bincount(slots[slots >= 0], minlength=tree.n_slots)

    def place(self, chunk: Chunk, slots: Array, sizes: NDArray[np.int64]) -> Order:
        rows = np.argsort(slots, kind="stable")[len(slots) - int(sizes.sum()) :]
        return Order(rows.astype(np.uint32), chunk.labels[rows])

    def tally(
        self,
        chunk: Chunk,
        columns: Mapping[int, Sequence[Target]],
        items: NDArray[np.int32],
        order: Order,
        n_classes: int,
        counts: Array,
        *,
        is_weighed: bool = False,
    ) -> None:
        for slot, start, stop in items.tolist():
            tags = order.tags[start:stop]
            rows = np.arange(start, stop) if order.rows is None else order.rows[start:stop]
            rows, tags = rows[tags < n_classes], tags[tags < n_classes].astype(np.int64)
            weights = chunk.weights[rows] if is_weighed else None  # their sums are exact as floats
            for panel, each in ((panel, each) for panel, own in columns.items() for each in own):
                codes = _codes(chunk, panel, each.byte, each.width)[rows].astype(np.int64)
                places = codes * n_classes + tags
                found = np.bincount(places, weights, minlength=each.size * n_classes)
                into = counts[slot, each.out : each.out + each.size]
                into += found.reshape(-1, n_classes).astype(counts.dtype)

    def encode(
        self, buffer: Array, start: int, width: int, columns: Sequence[tuple[Place, Feed]]
    ) -> None:
        n_rows = len(columns[0][1].values)
        rows = buffer[start : start + n_rows * width].reshape(n_rows, width)
        rows[:] = 0
        for place, each in columns:
            values = codes = each.values
            if each.compared != AS_IT_IS:
                values = values.astype(each.bounds.dtype)
                codes = np.searchsorted(each.bounds, values, side="left")
                if each.codes is not None:
                    codes = each.codes.astype(np.int64)[codes]
                codes = np.where(values != values, each.missing, codes)
            narrow = codes.astype(np.uint8 if place.width == 1 else np.uint16)
            rows[:, place.byte : place.byte + place.width] = narrow[:, None].view(np.uint8)

    def match(
        self, lookups: Sequence[Lookup], everything: NDArray[np.uint64], start: int, n_rows: int
    ) -> tuple[Array, Array]:
        bits = np.tile(everything, (n_rows, 1))
        for each in lookups:
            values = each.values[start : start + n_rows].astype(each.bounds.dtype)
            cells = np.searchsorted(each.bounds, values, side="left")
            cells[values != values] = each.missing
            bits &= each.table[cells]
        return bits, first_of(bits).astype(np.int32)

    def look(self, values: Array) -> Extent:
        numbers = values.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        return Extent(
            int(np.isnan(numbers).sum()), int((numbers == -np.inf).sum()),
            int((numbers == np.inf).sum()), int((finite != np.rint(finite)).sum()),
            float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf)),
        )  # fmt: skip

    def census(
        self,
        values: Array,
        compared: int,  # noqa: ARG002 - of the type of what is known
        known: Array,
        room: int,
    ) -> tuple[Array, Array, int]:
        values = values.astype(known.dtype)
        values = values[np.isfinite(values)]
        places = np.minimum(np.searchsorted(known, values), max(len(known) - 1, 0))
        is_known = known[places] == values if len(known) else np.zeros(len(values), np.bool_)
        others = values[~is_known]
        counts = np.bincount(places[is_known], minlength=len(known))
        held = np.empty(room, dtype=known.dtype)
        held[: min(room, len(others))] = others[:room]
        return counts.astype(np.uint64), held, len(others)


def _codes(chunk: Chunk, panel: int, byte: int, width: int) -> Array:
    """The codes of a column as they lie in a panel."""
    rows = chunk.panel(panel).reshape(chunk.n_rows, -1)
    codes: Array = np.ascontiguousarray(rows[:, byte : byte + width])
    return codes.view(np.uint8 if width == 1 else np.uint16)[:, 0]
