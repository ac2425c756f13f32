"""Where the bins of a column begin and end: at its own values where they are few, else at short
numbers near its quantiles."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.columns import Binned, Numbers, Times, roundest_time
from stair.decimals import shortest_between
from stair.scale.sketch import Sketch

BINS: Final = 1024


def binned(inner: Numbers | Times, sketch: Sketch, n_bins: int) -> tuple[Binned, list[float]]:
    """A column in bins, and the largest value of each bin but the last.

    A value belongs to the first bin whose edge is not below it.
    """
    if sketch.distinct is not None and len(sketch.distinct) <= n_bins:
        values = tuple(sketch.distinct.tolist())
        return Binned(inner, values, values), list(values[:-1])
    edges = _edges(sketch.quantiles(n_bins - 1), sketch, isinstance(inner, Times))
    above = [_next(edge, inner) for edge in edges]
    tops = (*edges, max(sketch.highest, above[-1]))
    return Binned(inner, tops, (min(sketch.lowest, edges[0]), *above)), edges


def _next(edge: float, inner: Numbers | Times) -> float:
    """The least value above an edge."""
    return edge + 1.0 if isinstance(inner, Times) else math.nextafter(edge, math.inf)


def _edges(quantiles: NDArray[np.float64], sketch: Sketch, are_times: bool) -> list[float]:
    """The shortest number near each quantile, nearer to it than to its neighbours.

    A value so frequent that it is a quantile twice has an edge on both of its sides: it is a bin
    of its own.
    """
    points, times = np.unique(quantiles, return_counts=True)
    bounds = np.concatenate([[sketch.lowest], points, [sketch.highest]])
    edges: set[float] = set()
    for k, (point, n) in enumerate(zip(points.tolist(), times.tolist(), strict=True), start=1):
        low = bounds[k - 1] / 2 + point / 2
        high = point / 2 + bounds[k + 1] / 2
        if n > 1:
            edges.add(_short(low, point, are_times))
            edges.add(_short(point, high, are_times))
        else:
            edges.add(_short(low, high, are_times))
    usable = sorted(e for e in edges if sketch.lowest <= e < sketch.highest)
    return usable or [_short(sketch.lowest, sketch.highest, are_times)]


def _short(low: float, high: float, are_times: bool) -> float:
    if are_times:
        first, last = math.ceil(low), math.ceil(high)
        return float(_microseconds(first, last)) if first < last else float(first)
    return shortest_between(float(low), float(high)) if low < high else float(low)


def _microseconds(first: int, last: int) -> int:
    return int(roundest_time(first, last).astype(np.int64))
