"""What a picture of an attribute shows, as values: bins or bars with the rows of two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from stair.evidence.chart_axis import Scale


@dataclass(frozen=True, slots=True)
class Bar:
    """A value, or several values together, and the rows that have it."""

    name: str
    outliers: int
    inliers: int
    covered: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """Rows with low < x ≤ high, times in microseconds; the outer bins have no end.

    `start` and `stop` are its places along the axis, from 0 to 1.
    """

    low: float
    high: float
    start: float
    stop: float
    outliers: int
    inliers: int
    covered: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A bound of the clause, in words, and its place along the axis."""

    place: float
    text: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers or times. A bin is covered as a whole or not at all: bounds are edges."""

    bins: tuple[Bin, ...]
    missing: Bar | None
    bounds: tuple[Mark, ...]
    low: str  # the ends of the axis, in words
    high: str
    scale: Scale


@dataclass(frozen=True, slots=True)
class Bars:
    """Categories, terms, or a few numbers: one bar each, what the clause covers first."""

    bars: tuple[Bar, ...]


Chart: TypeAlias = Histogram | Bars
