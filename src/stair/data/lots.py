"""A number for each row that looks like a random one, made from its place in the data: whoever goes
over the same rows, at once or in parts, draws the same ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Lots = NDArray[np.uint64]


def lots_of(seed: int, places: Lots) -> Lots:
    """A number for each place that looks like a random one; no two places have the same."""
    mixed = places + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
