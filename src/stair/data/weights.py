"""How much each row counts: money at stake, hours of work, how often a row was seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.errors import StairError, option

# Weights that are not whole numbers are held in fixed point: sums are then exact in any order.
FIXED_POINT_TOTAL: Final = 2.0**50
# What weights are called that have no name.
UNNAMED: Final = "weight"


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What each row counts, as whole numbers of 2**unit, and what that is called."""

    name: str
    whole: NDArray[np.int64]
    unit: int

    def take(self, rows: NDArray[np.intp]) -> Weights:
        return Weights(self.name, self.whole[rows], self.unit)

    def true(self, whole: float) -> float:
        """A sum of such numbers, as the weights that were given."""
        return float(np.ldexp(whole, self.unit))


def weights_of(given: Array, name: str | None) -> tuple[Weights, NDArray[np.bool_]]:
    """Weights by a column or an array, and which rows count at all: those of weight 0 do not."""
    what = option("weights", name) if name else option("weights")
    try:
        values = np.array([math.nan if v is None else v for v in given.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        raise StairError(f"{what} has values that are no numbers; expected amounts") from None
    n_bad = int((~np.isfinite(values)).sum())
    if n_bad:
        rows = f"{n_bad:,} row{'s' * (n_bad != 1)}"
        raise StairError(
            f"{what} is missing or infinite in {rows}; expected a finite number in each: 0 for "
            "rows that do not count"
        )
    if (values < 0).any():
        raise StairError(
            f"{what} has {int((values < 0).sum()):,} negative values, the least {values.min():g}; "
            "expected numbers from 0 on"
        )
    counts: NDArray[np.bool_] = values > 0
    if not counts.any():
        raise StairError(f"{what} is 0 in all rows, so there is nothing to learn from")
    whole = np.zeros(len(values), dtype=np.int64)
    whole[counts], unit = fixed_point(values[counts])
    return Weights(name or UNNAMED, whole, unit), counts


def fixed_point(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Weights as whole numbers of 2**unit, and the unit.

    Exact wherever they can be; and then weights that differ by a power of two alone become the
    same numbers, so that ties are broken alike.
    """
    if np.array_equal(weights, np.rint(weights)) and weights.sum() <= FIXED_POINT_TOTAL:
        return weights.astype(np.int64), 0
    fractions, exponents = np.frexp(weights)
    digits = np.ldexp(fractions, 53).astype(np.int64)
    unit = int((exponents - 54 + np.frexp((digits & -digits).astype(np.float64))[1]).min())
    largest = int(exponents.max())
    needed = largest + math.ceil(math.log2(np.ldexp(weights, -largest).sum()))
    unit = max(unit, needed - int(math.log2(FIXED_POINT_TOTAL)))
    # No row may vanish for its smallness: a row that is there counts.
    return np.maximum(np.rint(np.ldexp(weights, -unit)), 1.0).astype(np.int64), unit
