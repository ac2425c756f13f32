"""The axis of a histogram: where its bins end, and where that is drawn."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

BINS: Final = 26  # of a histogram, more or less
# An axis of the kind symlog is straight up to its unit, which is no smaller part of the axis.
SMALLEST_UNIT: Final = 1e-12

# Straight; by the logarithm; or by the logarithm of the size on both sides of zero, and straight
# around it, where 0 or negative numbers are inside.
Scale: TypeAlias = Literal["linear", "log", "symlog"]


@dataclass(frozen=True, slots=True)
class Axis:
    """From one number to another, or from one time to another (in microseconds)."""

    start: float
    stop: float
    scale: Scale
    in_steps: bool  # of whole numbers
    is_time: bool
    unit: float = 1.0  # of the scale symlog: where it starts to bend

    def place(self, value: float) -> float:
        """From 0 to 1. Halves and logarithms, because a difference or a ratio of doubles may be
        infinite."""
        start, here, stop = map(self._bent, (self.start, value, self.stop))
        return (here - start) / (stop - start)

    def edges(self, limits: tuple[float, float]) -> list[float]:
        """Edges of about equal width, such that each bound of a clause is one of them."""
        start, stop = self.start, self.stop
        inner = [b for b in limits if start < b < stop]
        if self.in_steps and self.scale == "linear":
            step = max(1, math.ceil((stop - start) / BINS))
            first = inner[0] if inner else start
            steps = range(math.floor((start - first) / step), math.ceil((stop - first) / step) + 1)
            lattice = [first + k * step for k in steps]
            away = [e for e in lattice if all(abs(e - b) >= step / 2 for b in inner)]
            return [start, *sorted({*inner, *(e for e in away if start < e < stop)}), stop]
        stations = [start, *inner, stop]
        places = [self.place(b) for b in stations]
        edges = [start]
        for a, b, p, q in zip(stations, stations[1:], places, places[1:], strict=False):
            n = max(1, round((q - p) * BINS))
            edges += [e for k in range(1, n) if edges[-1] < (e := self._point(a, b, k / n)) < b]
            edges.append(b)
        return edges

    def _bent(self, value: float) -> float:
        if self.scale == "log":
            return math.log(value)
        if self.scale == "symlog":
            return math.asinh(value / self.unit)
        return value / 2

    def _point(self, a: float, b: float, share: float) -> float:
        if self.is_time:
            return int(a) + int((int(b) - int(a)) * share)
        if self.scale == "linear":
            return a * (1 - share) + b * share
        bent = self._bent(a) * (1 - share) + self._bent(b) * share
        point = math.exp(bent) if self.scale == "log" else self.unit * math.sinh(bent)
        # Of whole numbers a bin ends at one, or it would be a bin of none.
        return float(math.floor(point)) if self.in_steps else point


def unit_of(smallest: float, start: float, stop: float) -> float:
    """The unit of a symlog axis that has to tell numbers of this size from zero."""
    far = max(abs(start), abs(stop))
    return max(smallest, far * SMALLEST_UNIT, sys.float_info.min)
