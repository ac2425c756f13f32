"""How much each row counts: money at stake, hours of work, how often a row was seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.data.packages import Foreign
from stair.errors import StairError, option

# Weights that are not whole numbers are held in fixed point: sums are then exact in any order.
FIXED_POINT_DIGITS: Final = 50
FIXED_POINT_TOTAL: Final = 2.0**FIXED_POINT_DIGITS
# What weights are called that have no name.
UNNAMED: Final = "weight"
# Weights that are looked at together: sums of halves of their digits are exact as floats.
TOGETHER: Final = 1 << 22
_HALF: Final = 26  # bits of a float's digits


@dataclass(frozen=True, slots=True)
class Unit:
    """What weights are called, and the whole numbers that they are held as: of 2**exponent."""

    name: str
    exponent: int

    def true(self, whole: float) -> float:
        """A sum of such numbers, as the weights that were given."""
        return float(np.ldexp(whole, self.exponent))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What each row counts, in whole numbers."""

    whole: NDArray[np.int64]
    unit: Unit

    @property
    def name(self) -> str:
        return self.unit.name

    def take(self, rows: NDArray[np.intp]) -> Weights:
        return Weights(self.whole[rows], self.unit)


@dataclass(slots=True, eq=False)
class Amounts:
    """What is known of weights that come some at a time, in any order: what is wrong with them, and
    all that says which whole numbers they are held as."""

    n_bad: int = 0  # missing or infinite
    n_negative: int = 0
    least: float = math.inf
    is_whole: bool = True
    finest: int | None = None  # the exponent of the last digit of any
    sums: Counter[int] = field(default_factory=Counter)  # exact, by exponent

    def add(self, values: Foreign, xp: Foreign = np) -> None:
        """More weights, in an array of numpy's or of a module like it."""
        for start in range(0, len(values), TOGETHER):
            self._add(values[start : start + TOGETHER], xp)

    def _add(self, values: Foreign, xp: Foreign) -> None:
        values = values.astype(np.float64)
        is_known = xp.isfinite(values)
        self.n_bad += len(values) - int(is_known.sum())
        self.n_negative += int((values < 0).sum())
        self.least = min(self.least, float(xp.where(is_known, values, math.inf).min()))
        values = values[is_known & (values > 0)]
        if not len(values):
            return
        self.is_whole = self.is_whole and bool((values == xp.rint(values)).all())
        fractions, exponents = xp.frexp(values)
        digits = (fractions * 2.0**53).astype(np.int64)
        last = xp.frexp((digits & -digits).astype(np.float64))[1]
        finest = int((exponents + last).min()) - 54
        self.finest = finest if self.finest is None else min(self.finest, finest)
        lowest = int(exponents.min())
        places = (exponents - lowest).astype(np.int64)
        for shift, part in ((0, digits & ((1 << _HALF) - 1)), (_HALF, digits >> _HALF)):
            found = xp.bincount(places, weights=part.astype(np.float64)).tolist()
            for exponent, total in enumerate(found, lowest - 53):
                if total:
                    self.sums[exponent] += int(total) << shift

    def merge(self, other: Amounts) -> None:
        """The weights that somebody else has looked at."""
        self.n_bad += other.n_bad
        self.n_negative += other.n_negative
        self.least = min(self.least, other.least)
        self.is_whole = self.is_whole and other.is_whole
        if other.finest is not None:
            self.finest = other.finest if self.finest is None else min(self.finest, other.finest)
        self.sums.update(other.sums)

    def check(self, name: str | None) -> None:
        """What is wrong with them, in a sentence."""
        what = option("weights", name) if name else option("weights")
        if self.n_bad:
            rows = f"{self.n_bad:,} row{'s' * (self.n_bad != 1)}"
            raise StairError(
                f"{what} is missing or infinite in {rows}; expected a finite number in each: 0 for "
                "rows that do not count"
            )
        if self.n_negative:
            raise StairError(
                f"{what} has {self.n_negative:,} negative values, the least {self.least:g}; "
                "expected numbers from 0 on"
            )
        if self.finest is None:
            raise StairError(f"{what} is 0 in all rows, so there is nothing to learn from")

    @property
    def exponent(self) -> int:
        """Weights are whole numbers of two to the power of it: exact ones wherever that can be, and
        then weights that differ by a power of two alone become the same numbers, so that ties are
        broken alike."""
        assert self.finest is not None
        lowest = min(self.sums)
        total = sum(each << (exponent - lowest) for exponent, each in self.sums.items())
        needed = lowest + (total - 1).bit_length()  # two to the power of it is at least the total
        if self.is_whole and needed <= FIXED_POINT_DIGITS:
            return 0
        return max(self.finest, needed - FIXED_POINT_DIGITS)


def whole_numbers(values: Foreign, exponent: int, xp: Foreign = np) -> Foreign:
    """Weights as whole numbers of that unit. No row may vanish for its smallness: one that is there
    counts."""
    shift = xp.full(1, -exponent, dtype=np.int32)
    whole = xp.maximum(xp.rint(xp.ldexp(values, shift)), 1.0).astype(np.int64)
    return xp.where(values > 0, whole, 0)


def weights_of(given: Array, name: str | None) -> tuple[Weights, NDArray[np.bool_]]:
    """Weights by a column or an array, and which rows count at all: those of weight 0 do not."""
    try:
        values = np.array([math.nan if v is None else v for v in given.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        raise no_amounts(name) from None
    amounts = Amounts()
    amounts.add(values)
    amounts.check(name)
    unit = Unit(name or UNNAMED, amounts.exponent)
    return Weights(whole_numbers(values, unit.exponent), unit), values > 0


def nothing_of_a_class(name: str) -> StairError:
    """Where all rows of a class have the weight 0."""
    return StairError(
        f"{option('weights', name)} is 0 in all rows of a class, so there is nothing to tell apart"
    )


def one_kind_alone(name: str) -> StairError:
    """Where there are several kinds of outlier, each with a floor of its own."""
    return StairError(
        f"{option('weights', name)} is for one kind of outlier, but there are several; name it "
        f"with {option('positive')}, or leave the weights out"
    )


def weightless_in_words(name: str, n_rows: int) -> str:
    """A note on rows that have a label and do not count."""
    rows = "1 row has" if n_rows == 1 else f"{n_rows:,} rows have"
    return f"{rows} the {name} 0 and {'is' if n_rows == 1 else 'are'} left out"


def no_amounts(name: str | None) -> StairError:
    """Where weights are no numbers."""
    what = option("weights", name) if name else option("weights")
    return StairError(f"{what} has values that are no numbers; expected amounts")


def percentiles(
    values: NDArray[np.float64], times: NDArray[np.int64] | None, shares: Sequence[float]
) -> NDArray[np.float64]:
    """Those of NumPy where each value is there so many times (None: once), to the last bit, with
    none of them written out."""
    found: NDArray[np.float64]
    if times is None:
        found = np.percentile(values, shares)
        return found
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(times[order])
    places = (upto[-1] - 1) * (np.asarray(shares, dtype=np.float64) / 100.0)
    whole = np.floor(places)
    here = np.searchsorted(upto, whole.astype(np.int64), side="right")
    after = np.minimum(whole.astype(np.int64) + 1, upto[-1] - 1)
    low, high = values[order][here], values[order][np.searchsorted(upto, after, side="right")]
    part = places - whole
    step = high - low
    found = np.where(part < 0.5, low + step * part, high - step * (1.0 - part))
    return found


def fixed_point(weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], int]:
    """Weights above 0 as whole numbers of 2**unit, and the unit."""
    if np.array_equal(weights, np.rint(weights)) and weights.sum() <= FIXED_POINT_TOTAL:
        return weights.astype(np.int64), 0
    amounts = Amounts()
    amounts.add(weights)
    found: NDArray[np.int64] = whole_numbers(weights, amounts.exponent)
    return found, amounts.exponent
