"""Where the bins of a column begin and end: at its own values where they are few, else at short
numbers near its quantiles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stair.data.decimals import shortest_between
from stair.data.frame import Array
from stair.rules.columns import FAR, Binned, Numbers, Times, roundest_time
from stair.scale.sketch import Sketch


def binned(inner: Numbers | Times, sketch: Sketch, n_bins: int) -> tuple[Binned, list[float]]:
    """A column in bins, and the largest value of each bin but the last.

    A value belongs to the first bin whose edge is not below it. Where the sketch holds whole
    numbers all of this is in whole numbers.
    """
    if sketch.distinct is not None and len(sketch.distinct) <= n_bins:
        values = tuple(sketch.distinct.tolist())
        return Binned(inner, values, values), list(values[:-1])
    middle, short = _in_steps(inner) if sketch.in_steps else (_middle, _short)
    edges = _edges(sketch.quantiles(n_bins - 1), sketch, middle, short)
    if isinstance(inner, Numbers) and inner.whole and not sketch.in_steps:
        edges = sorted({float(math.floor(e)) for e in edges})  # whole numbers divide alike by it
        above = [max(e + 1, math.nextafter(e, math.inf)) for e in edges]
    else:
        above = [e + 1 if sketch.in_steps else math.nextafter(e, math.inf) for e in edges]
    tops = (*edges, max(sketch.highest, above[-1]))
    return Binned(inner, tops, (min(sketch.lowest, edges[0]), *above)), edges


def with_infinite(
    column: Binned, edges: list[float], below: bool, above: bool
) -> tuple[Binned, list[float]]:
    """The same column with a bin for −∞, or for +∞, as far as numbers go."""
    tops, bottoms = column.tops, column.bottoms
    if below and not (bottoms and bottoms[0] <= -FAR):
        edges = [-FAR, *edges] if tops or above else edges
        tops, bottoms = (-FAR, *tops), (-FAR, *bottoms)
    if above and not (tops and tops[-1] >= FAR):
        edges = [*edges, tops[-1]] if len(tops) > len(edges) else edges
        tops, bottoms = (*tops, FAR), (*bottoms, FAR)
    return Binned(column.inner, tops, bottoms), edges


_Middle = Callable[[Any, Any], Any]


def _edges(quantiles: Array, sketch: Sketch, middle: _Middle, short: _Middle) -> list[float]:
    """The shortest number near each quantile, nearer to it than to its neighbours.

    A value so frequent that it is a quantile twice has an edge on both of its sides: it is a bin
    of its own.
    """
    points, times = np.unique(quantiles, return_counts=True)
    bounds = [sketch.lowest, *points.tolist(), sketch.highest]
    edges: set[float] = set()
    for k, n in enumerate(times.tolist(), start=1):
        point = bounds[k]
        low, high = middle(bounds[k - 1], point), middle(point, bounds[k + 1])
        if n > 1:
            edges.add(short(low, point))
            edges.add(short(point, high))
        else:
            edges.add(short(low, high))
    usable = sorted(e for e in edges if sketch.lowest <= e < sketch.highest)
    return usable or [short(sketch.lowest, sketch.highest)]


def _middle(a: float, b: float) -> float:
    return a / 2 + b / 2


def _short(low: float, high: float) -> float:
    return shortest_between(low, high) if low < high else low


def _in_steps(inner: Numbers | Times) -> tuple[_Middle, _Middle]:
    """The same in whole numbers: of microseconds the roundest time."""

    def middle(a: int, b: int) -> int:
        return -(-(a + b) // 2)  # rounded up

    def short(low: int, high: int) -> int:
        if low >= high:
            return low
        if isinstance(inner, Times):
            return int(roundest_time(low, high).astype(np.int64))
        return math.floor(shortest_between(low, high))

    return middle, short
