"""What is asked of a device: a handful of kernels over arrays that live there.

Arrays are those of the device's own module: CuPy's on a GPU, numpy's where the twin takes its
place in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.data.packages import Foreign
from stair.engines.counting import Paths
from stair.gpu.panels import WEIGHT, Layout, Place

# How values are compared with bounds: not at all, as doubles, or as whole numbers of 64 bits.
AS_IT_IS: Final = 0
REAL: Final = 1
WHOLE: Final = 2
UNSIGNED: Final = 3
NOTHING: Final = np.zeros(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Some rows as codes on a device."""

    buffer: Foreign  # bytes, on the device
    layout: Layout
    room: int  # rows that the buffer has room for
    n_rows: int

    @property
    def labels(self) -> Foreign:
        return self.buffer[: self.n_rows]

    @property
    def weights(self) -> Foreign:
        """What each row counts, in whole numbers; not all rows have some."""
        start = self.layout.start_of_weights(self.room)
        held = self.buffer[start : start + WEIGHT * self.n_rows]
        return held.view(np.int64)

    def panel(self, k: int) -> Foreign:
        """The bytes of a panel."""
        start = self.layout.starts(self.room)[k]
        return self.buffer[start : start + self.n_rows * self.layout.widths[k]]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A tree as four numbers for each node, by which a row of codes finds its slot."""

    nodes: NDArray[np.int32]  # nodes × 4
    left_of: NDArray[np.uint8]
    n_slots: int

    @classmethod
    def of(cls, paths: Paths, layout: Layout) -> Tree:
        """The same tree with both children of a node beside each other."""
        order, at = [0], 0
        children: list[int] = []
        while at < len(order):
            here = order[at]
            children.append(len(order))
            if paths.column[here] >= 0:
                order += [int(paths.left[here]), int(paths.right[here])]
            at += 1
        nodes = np.full((len(order), 4), -1, dtype=np.int32)
        for k, here in enumerate(order):
            column = int(paths.column[here])
            if column < 0:
                nodes[k, 3] = paths.slot[here]
                continue
            place = layout.places[column]
            where = place.panel << 8 | place.byte << 1 | (place.width == 2)
            nodes[k] = where, paths.cut[here], paths.table[here], children[k]
        return cls(nodes, np.ascontiguousarray(paths.left_of), paths.n_slots)


class Target(NamedTuple):
    """A column that is counted: where its code lies in a panel's row, and its counts among all."""

    byte: int
    width: int
    size: int  # codes
    out: int  # the place of its first code


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The rows of each slot together: their numbers and classes."""

    rows: Foreign | None  # None: all rows as they lie
    tags: Foreign


@dataclass(frozen=True, slots=True, eq=False)
class Feed:
    """A column of values that become codes: the place of a value is the first bound that is not
    below it."""

    values: Foreign
    compared: int = AS_IT_IS
    bounds: Array = field(default_factory=lambda: NOTHING)  # float64, int64 or uint64
    missing: int = 0  # the code of a missing value
    codes: Foreign | None = None  # the code of each place; None: the place is the code

    def part(self, start: int, stop: int) -> Feed:
        """Some of its rows."""
        return replace(self, values=self.values[start:stop])


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """What a column says of rules: the cell of a value is the number of bounds below it, and each
    cell has the rules that it leaves possible, as bits in words."""

    values: Foreign
    compared: int
    bounds: Array
    missing: int  # the cell of a missing value
    table: NDArray[np.uint64]  # cells × words


class Extent(NamedTuple):
    """What a column of floats holds."""

    n_missing: int
    n_below: int  # −∞
    n_above: int
    n_fractions: int
    least: float  # ∞ where there is no number
    most: float


class Device(Protocol):
    """A GPU, or what takes its place."""

    name: str
    xp: Foreign  # numpy, or a module like it
    room: int  # bytes that are there
    blocks: int  # of threads that are at work side by side

    def taken(self, data: object) -> Foreign | None:
        """An array that is on a GPU already, not copied; None for anything else."""

    def here(self, array: Array) -> Foreign:
        """An array of the processor's, on the device."""

    def there(self, array: Foreign) -> Array:
        """An array of the device's, on the processor."""

    def kept(self, n_bytes: int) -> Array:
        """Bytes of the processor's memory that the device reaches by itself."""

    def streamed(self, kept: Sequence[Array]) -> Iterator[Foreign]:
        """Bytes that were kept, each in turn on the device, while the next are on their way."""

    def route(self, chunk: Chunk, tree: Tree, n_classes: int) -> tuple[Foreign, NDArray[np.int64]]:
        """The slot of each row, −1 where it has none; and how many rows each slot has."""

    def place(self, chunk: Chunk, slots: Foreign, sizes: NDArray[np.int64]) -> Order:
        """The rows that have a slot, those of each together."""

    def tally(
        self,
        chunk: Chunk,
        columns: Mapping[int, Sequence[Target]],
        items: NDArray[np.int32],
        order: Order,
        n_classes: int,
        counts: Foreign,
        *,
        is_weighed: bool = False,
    ) -> None:
        """Add the rows of the items (slot, start, stop) to the counts: slots × codes × classes; or
        their weights. The columns are those of each panel."""

    def encode(
        self, buffer: Foreign, start: int, width: int, columns: Sequence[tuple[Place, Feed]]
    ) -> None:
        """Write rows of a panel, which begins at this byte of a buffer."""

    def match(
        self, lookups: Sequence[Lookup], everything: NDArray[np.uint64], start: int, n_rows: int
    ) -> tuple[Foreign, Foreign]:
        """Which rules cover some rows, as bits (rows × words), and the first of them, −1 where none
        does; `everything` are the bits of all rules."""

    def look(self, values: Foreign) -> Extent:
        """What a column of floats holds."""

    def census(
        self, values: Foreign, compared: int, known: Foreign, room: int
    ) -> tuple[Foreign, Foreign, int]:
        """How often each of these values is there, in order; of others as many as there is room
        for, and how many there are."""
