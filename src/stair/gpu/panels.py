"""How the codes of rows lie in a GPU's memory.

The codes of a row lie together in panels of 16, 8 or 4 bytes, so that one load brings several of
them, whether rows are read one after the other or here and there. The labels, a byte each, come
first, and the weights of rows, if they have some, last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

WIDEST: Final = 16  # bytes of a panel: the widest load there is
ALIGNED: Final = 256  # rows: what begins after so many of them begins at a bound of memory
WEIGHT: Final = 8  # bytes of a weight
NO_LABEL: Final = 255  # the label of a row that is not counted


class Place(NamedTuple):
    """Where the codes of a column lie."""

    panel: int
    byte: int  # of the panel's row
    width: int  # bytes of a code


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies in a chunk of rows."""

    sizes: tuple[int, ...]  # codes of each column
    widths: tuple[int, ...]  # bytes that a row has in each panel
    places: tuple[Place, ...]
    is_weighed: bool = False  # a row has a weight, of 64 bits

    @classmethod
    def of(cls, sizes: Sequence[int], *, is_weighed: bool = False) -> Layout:
        """The wide codes first: then each lies at a multiple of its width."""
        bytes_of = [1 if size <= 256 else 2 for size in sizes]
        order = sorted(range(len(sizes)), key=lambda j: -bytes_of[j])
        left = sum(bytes_of)
        widths: list[int] = []
        places: dict[int, Place] = {}
        at = 0
        for j in order:
            if not widths or at + bytes_of[j] > widths[-1]:
                widths.append(next((w for w in (4, 8) if left <= w), WIDEST))
                at = 0
            places[j] = Place(len(widths) - 1, at, bytes_of[j])
            at += bytes_of[j]
            left -= bytes_of[j]
        in_order = tuple(places[j] for j in range(len(sizes)))
        return cls(tuple(sizes), tuple(widths), in_order, is_weighed)

    @property
    def bytes_of_row(self) -> int:
        """The label's and the weight's too."""
        return 1 + sum(self.widths) + WEIGHT * self.is_weighed

    def starts(self, room: int) -> tuple[int, ...]:
        """Where each panel begins in a chunk with room for so many rows."""
        found, at = [], room
        for width in self.widths:
            found.append(at)
            at += room * width
        return tuple(found)

    def start_of_weights(self, room: int) -> int:
        """Where the weights begin."""
        return room * (1 + sum(self.widths))

    def columns_of(self, panel: int) -> list[int]:
        """The columns whose codes are there."""
        return [j for j, place in enumerate(self.places) if place.panel == panel]


def aligned(n_rows: int) -> int:
    """Room for so many rows, so that every panel begins at a bound of memory."""
    return -(-max(n_rows, 1) // ALIGNED) * ALIGNED
