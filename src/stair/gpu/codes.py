"""All rows as codes: in chunks on a device, and beside it where they do not fit there.

What is kept beside it lies in memory of the processor that the device reaches by itself, and comes
through for each pass, a chunk while the one before is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from stair.data.frame import Array
from stair.data.packages import Foreign
from stair.data.weights import TOGETHER, whole_numbers
from stair.errors import StairError, option
from stair.gpu.device import Chunk, Device, Feed
from stair.gpu.panels import ALIGNED, NO_LABEL, WEIGHT, Layout, Place, aligned

MOST_TOGETHER: Final = 1 << 27  # rows of a chunk on the device
MOST_COMING: Final = 1 << 24  # and of one that comes through
BESIDE_A_ROW: Final = 9  # bytes while a chunk is counted: its slot, its place in the order, its tag


@dataclass(frozen=True, slots=True)
class Division:
    """How rows are divided into chunks."""

    together: int  # rows of a chunk
    n_here: int  # chunks that stay on the device


def division_of(
    n_rows: int, bytes_of_row: int, memory: int, together: int | None = None
) -> Division:
    """What fits in so many bytes; `together` says how many rows a chunk has, for tests."""
    whole = aligned(min(n_rows, MOST_TOGETHER))
    n_chunks = -(-max(n_rows, 1) // whole)
    if together is None and n_chunks * whole * bytes_of_row + whole * BESIDE_A_ROW <= memory:
        return Division(whole, n_chunks)
    coming = 2 * bytes_of_row + BESIDE_A_ROW  # two chunks are on their way, one is counted
    rows = together or min(MOST_COMING, memory // 2 // coming) // ALIGNED * ALIGNED
    if rows < ALIGNED or rows * coming > memory:
        raise StairError(
            f"{memory / 1e6:,.0f} MB of the GPU's memory are too few for rows of {bytes_of_row:,} "
            f"bytes; allow more with {option('memory')}, or leave columns out"
        )
    return Division(rows, (memory - rows * coming) // (rows * bytes_of_row))


class Codes:
    """The rows that were added, as codes."""

    def __init__(
        self, device: Device, layout: Layout, division: Division, exponent: int = 0
    ) -> None:
        self.device, self.layout, self.division = device, layout, division
        self._exponent = exponent  # weights are whole numbers of two to the power of it
        self.n_rows = 0
        self.n_weightless = 0  # rows that have a label and do not count
        self._here: list[Chunk] = []
        self._kept: list[tuple[Array, int]] = []  # bytes, and how many rows
        self._buffer: Foreign | None = None
        self._filled = 0

    @property
    def bytes_here(self) -> int:
        """Of codes on the device."""
        return sum(int(chunk.buffer.nbytes) for chunk in self._here)

    @property
    def bytes_beside(self) -> int:
        """Of codes that come through."""
        return sum(int(held.nbytes) for held, _ in self._kept)

    def add(self, columns: Sequence[Feed], labels: Feed, weights: Foreign | None = None) -> None:
        """More rows: all columns, the labels, and the weights as they are, where rows have some."""
        done, n_rows = 0, len(labels.values)
        room = self.division.together
        starts = self.layout.starts(room)
        while done < n_rows:
            if self._buffer is None:
                n_bytes = room * self.layout.bytes_of_row
                self._buffer = self.device.xp.empty(n_bytes, dtype="u1")
            n = min(room - self._filled, n_rows - done)
            first, stop = self._filled, done + n
            self._write(first, 1, [(Place(0, 0, 1), labels.part(done, stop))])
            for panel, (start, width) in enumerate(zip(starts, self.layout.widths, strict=True)):
                feeds = [
                    (self.layout.places[j], columns[j].part(done, stop))
                    for j in self.layout.columns_of(panel)
                ]
                self._write(start + first * width, width, feeds)
            if weights is not None:
                self._weigh(first, weights[done:stop])
            self._filled += n
            done = stop
            self.n_rows += n
            if self._filled == room:
                self._close()

    def end(self) -> None:
        """No more rows come."""
        if self._filled:
            self._close()
        self._buffer = None

    def chunks(self) -> Iterator[Chunk]:
        """All rows, some after the other."""
        yield from self._here
        kept = [held for held, _ in self._kept]
        room = self.division.together
        for buffer, (_, n) in zip(self.device.streamed(kept), self._kept, strict=True):
            yield Chunk(buffer, self.layout, room, n)

    def _write(self, start: int, width: int, feeds: list[tuple[Place, Feed]]) -> None:
        self.device.encode(self._buffer, start, width, feeds)

    def _weigh(self, first: int, weights: Foreign) -> None:
        """Weights as whole numbers; a row without one is not counted."""
        assert self._buffer is not None
        xp = self.device.xp
        begin = self.layout.start_of_weights(self.division.together)
        for start in range(0, len(weights), TOGETHER):
            part = weights[start : start + TOGETHER].astype(np.float64)
            place = first + start
            at = begin + WEIGHT * place
            self._buffer[at : at + WEIGHT * len(part)].view(np.int64)[:] = whole_numbers(
                part, self._exponent, xp
            )
            labels = self._buffer[place : place + len(part)]
            is_gone = (part == 0) & (labels != NO_LABEL)
            self.n_weightless += int(is_gone.sum())
            labels[is_gone] = NO_LABEL

    def _close(self) -> None:
        """The chunk is full: it stays, or it is kept beside the device."""
        if len(self._here) < self.division.n_here:
            self._here.append(
                Chunk(self._buffer, self.layout, self.division.together, self._filled)
            )
            self._buffer = None
        else:
            kept = self.device.kept(self.division.together * self.layout.bytes_of_row)
            kept[:] = self.device.there(self._buffer)
            self._kept.append((kept, self._filled))
        self._filled = 0
