"""A map of the partitions: rows projected to two dimensions and counted in the cells of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.rules.routing import Routing

ACROSS: Final = 36
DOWN: Final = 22
# Rows on the map: every so-manieth of more. Nobody sees the difference.
MOST_ROWS: Final = 50_000
# The map leaves out this share of the rows on each side; the outer cells hold them.
TAIL: Final = 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows of one partition in one cell of the grid, counted from the top left."""

    column: int
    row: int
    partition: int
    rows: int
    outliers: int


@dataclass(frozen=True, slots=True)
class Map:
    """All cells that have rows, and where each partition's center is, in cells."""

    n_rows: int
    cells: tuple[Cell, ...]
    centers: tuple[tuple[float, float], ...]


def map_of(
    routing: Routing,
    values: dict[str, Array],
    routed: NDArray[np.intp],
    is_outlier: NDArray[np.bool_],
) -> Map:
    """The two directions in which the rows' places differ most, and the rows counted there."""
    step = -(-len(is_outlier) // MOST_ROWS)
    rows = {name: array[::step] for name, array in values.items()}
    sample = routing.space.place(rows.__getitem__)
    middle = sample.mean(axis=0)
    directions = np.linalg.eigh(np.atleast_2d(np.cov(sample - middle, rowvar=False, bias=True)))[1]
    axes = directions[:, ::-1][:, :2]
    if axes.shape[1] < 2:
        axes = np.column_stack([axes, np.zeros(len(axes))])
    # A direction has no sign of its own; the larger coordinate points right and up.
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    flat = (sample - middle) @ axes
    quartiles = np.quantile(flat, [0.25, 0.5, 0.75], axis=0)
    unit = np.where(quartiles[2] > quartiles[0], quartiles[2] - quartiles[0], 1.0)

    def flattened(places: NDArray[np.float64]) -> NDArray[np.float64]:
        """Straight where most rows are, and ever denser far out: tails must not fill the map."""
        far: NDArray[np.float64] = ((places - middle) @ axes - quartiles[1]) / unit
        return np.arcsinh(far)

    flat = flattened(sample)
    centers = flattened(np.array([p.center for p in routing.partitions]))
    low, high = np.quantile(flat, [TAIL, 1 - TAIL], axis=0)
    low, high = np.minimum(low, centers.min(axis=0)), np.maximum(high, centers.max(axis=0))
    span = np.where(high > low, high - low, 1.0)
    size = np.array([ACROSS, DOWN])
    n_partitions = len(routing.partitions)
    counts = np.zeros((2, DOWN, ACROSS, n_partitions), dtype=np.int64)
    cell = np.clip((flat - low) / span * size, 0, size - 1).astype(np.intp)
    marked = is_outlier[::step].astype(np.intp)
    np.add.at(counts, (marked, DOWN - 1 - cell[:, 1], cell[:, 0], routed[::step]), 1)
    total = counts.sum(axis=0)
    cells = tuple(
        Cell(int(x), int(y), int(k) + 1, int(total[y, x, k]), int(counts[1, y, x, k]))
        for y, x, k in zip(*np.nonzero(total), strict=True)
    )
    at = (centers - low) / span * size
    return Map(
        len(sample), cells, tuple((round(float(x), 2), round(float(DOWN - y), 2)) for x, y in at)
    )
