"""The numpy twin of the matcher's kernel: slower than `_match.pyx`, and equal to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]


def narrow(bits: Bits, x: NDArray[np.float64], edges: NDArray[np.float64], table: Bits) -> None:
    """Keep of each row's rules those that its number leaves possible: the cell of a number is how
    many edges lie below it, and one more than all where it is missing."""
    cells = np.searchsorted(edges, x)
    cells[np.isnan(x)] = len(edges) + 1
    narrow_by_cells(bits, cells, table)


def narrow_by_cells(bits: Bits, cells: NDArray[np.intp], table: Bits) -> None:
    """The same where the cells are known."""
    bits &= table[cells]


def first_of(bits: Bits, found: NDArray[np.intp]) -> None:
    """The place of the first bit that is set in each row, or −1."""
    found[:] = -1
    for word in range(bits.shape[1] - 1, -1, -1):
        here = bits[:, word]
        is_set = here != 0
        lowest = here & (~here + np.uint64(1))
        place = np.bitwise_count(lowest - np.uint64(1)).astype(np.intp) + 64 * word
        found[is_set] = place[is_set]
