"""How far a row is from each partition, in pieces that every ending can write down.

A squared distance is a sum over attributes, in the order of the space; see `Space.distances`.
Constants are worked out here, with the same operations in the same order as there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from stair.errors import StairError
from stair.rules.routing import Dimension, Routing


class NumberLeg(NamedTuple):
    """A number or time x: (((x − middle) / scale) / root − center)², and `gone` where it is missing
    or infinite."""

    feature: str
    is_time: bool
    middle: float
    scale: float
    root: float
    center: float

    @property
    def gone(self) -> float:
        return (0.0 - self.center) * (0.0 - self.center)


class CategoryLeg(NamedTuple):
    """What each category adds, and what any other value or none adds."""

    feature: str
    values: tuple[tuple[str | float, float], ...]
    other: float


class TextLeg(NamedTuple):
    """For each term what a text adds that mentions it, and one that does not."""

    feature: str
    terms: tuple[tuple[str, float, float], ...]


Leg = NumberLeg | CategoryLeg | TextLeg


def legs(routing: Routing) -> list[list[Leg]]:
    """For each partition the parts of a row's squared distance, attribute by attribute."""
    root = math.sqrt(len(routing.space.dimensions))
    found = []
    for partition in routing.partitions:
        start, parts = 0, []
        for dimension in routing.space.dimensions:
            center = partition.center[start : start + dimension.width]
            leg = _leg(dimension, center, root)
            if not all(map(math.isfinite, _constants(leg))):
                raise StairError(
                    f'the partitions lie so far apart along "{dimension.feature}" that no distance '
                    "is a number; leave the column out, or use a method without partitions"
                )
            parts.append(leg)
            start += dimension.width
        found.append(parts)
    return found


def _constants(leg: Leg) -> list[float]:
    if isinstance(leg, NumberLeg):
        return [leg.middle, leg.scale, leg.root, leg.center, leg.gone]
    if isinstance(leg, CategoryLeg):
        return [leg.other, *(part for _, part in leg.values)]
    return [part for _, *parts in leg.terms for part in parts]


def _leg(dimension: Dimension, center: tuple[float, ...], root: float) -> Leg:
    if dimension.kind == "category":
        here = math.sqrt(0.5) / root
        values = tuple(
            (value, _sum((here if k == j else 0.0) - at for j, at in enumerate(center)))
            for k, value in enumerate(dimension.values)
        )
        return CategoryLeg(dimension.feature, values, _sum(0.0 - at for at in center))
    if dimension.kind == "text":
        here = 1.0 / math.sqrt(len(dimension.values)) / root
        terms = tuple(
            (term, (here - at) * (here - at), (0.0 - at) * (0.0 - at))
            for term, at in zip(dimension.values, center, strict=True)
        )
        return TextLeg(dimension.feature, terms)
    is_time = dimension.kind == "time"
    return NumberLeg(dimension.feature, is_time, dimension.center, dimension.scale, root, center[0])


def _sum(offsets: Iterable[float]) -> float:
    """Squares added one after the other."""
    total = 0.0
    for offset in offsets:
        total += offset * offset
    return total
