"""The columns in which outliers that no rule explains are farthest from inliers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.evidence.charts import Chart
from stair.evidence.distribution import Distributions
from stair.rules.clauses import Among, Clause, Interval, Period
from stair.rules.schema import Field

FEWEST: Final = 8  # with fewer such outliers nothing can be said about where they are
MOST: Final = 3
# Looking for the columns needs no more rows; what is then drawn is counted on all of them.
MOST_COMPARED: Final = 50_000


@dataclass(frozen=True, slots=True)
class Contrast:
    """A column, and its values among the unexplained outliers and the inliers."""

    feature: str
    outliers: int
    inliers: int
    chart: Chart


# A clause that covers every value of a kind: what a column is drawn with where no rule cuts it.
_ANYTHING: Final[Mapping[str, Callable[[str], Clause]]] = {
    "number": lambda name: Interval(name, missing=True),
    "time": lambda name: Period(name, missing=True),
    "category": lambda name: Among(name, ("\0",), negated=True, missing=True),
}


def contrasts_of(
    values: Mapping[str, Array],
    fields: Sequence[Field],
    is_missed: NDArray[np.bool_],
    is_inlier: NDArray[np.bool_],
) -> tuple[Contrast, ...]:
    """Columns farther apart than so few rows would be by chance (Kolmogorov, Smirnov, at 5%)."""
    missed, inliers = np.flatnonzero(is_missed), np.flatnonzero(is_inlier)
    if len(missed) < FEWEST or not len(inliers):
        return ()
    chance = 1.36 / math.sqrt(len(missed))
    few = _compared(
        values, *(rows[:: -(-len(rows) // MOST_COMPARED)] for rows in (missed, inliers))
    )
    found = []
    for field in fields:
        if field.kind in _ANYTHING:
            clause = _ANYTHING[field.kind](field.name)
            distance = few.distance(clause, 1)
            if distance > chance:
                found.append((distance, clause))
    found.sort(key=lambda pair: -pair[0])
    every = _compared(values, missed, inliers)
    return tuple(
        Contrast(clause.feature, len(missed), len(inliers), every.chart(clause, 1))
        for _, clause in found[:MOST]
    )


def _compared(
    values: Mapping[str, Array], missed: NDArray[np.intp], inliers: NDArray[np.intp]
) -> Distributions:
    rows = np.concatenate([inliers, missed])
    groups = np.repeat(np.array([0, 1], dtype=np.int32), [len(inliers), len(missed)])
    return Distributions(lambda name: values[name][rows], groups, 2)
