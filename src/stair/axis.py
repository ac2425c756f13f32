"""The axis of a histogram: where its bins end, and where that is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

BINS: Final = 26  # of a histogram, more or less


@dataclass(frozen=True, slots=True)
class Axis:
    """From one number to another, or from one time to another (in microseconds)."""

    start: float
    stop: float
    log: bool
    in_steps: bool  # of whole numbers
    is_time: bool

    def place(self, value: float) -> float:
        """From 0 to 1. Halves and logarithms, because a difference or a ratio of doubles may be
        infinite."""
        if self.log:
            start, stop = math.log(self.start), math.log(self.stop)
            return (math.log(value) - start) / (stop - start)
        return (value / 2 - self.start / 2) / (self.stop / 2 - self.start / 2)

    def edges(self, limits: tuple[float, float]) -> list[float]:
        """Edges of about equal width, such that each bound of a clause is one of them."""
        start, stop = self.start, self.stop
        inner = [b for b in limits if start < b < stop]
        if self.in_steps and not self.log:
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

    def _point(self, a: float, b: float, share: float) -> float:
        if self.log:
            return math.exp(math.log(a) * (1 - share) + math.log(b) * share)
        if self.is_time:
            return int(a) + int((int(b) - int(a)) * share)
        return a * (1 - share) + b * share
