"""The number a person would choose for a cut.

Every cut between two neighbouring values a < b divides the rows alike. The one that is stored is
the shortest decimal in [a, b), so that what is shown is exactly what is compared and exported.
"""

from __future__ import annotations

import math
import sys
from typing import Final

# Beyond these nobody reads the digits of a number, and rounding could overflow.
TINY: Final = 1e-290
HUGE: Final = 1e290
LARGEST: Final = sys.float_info.max


def shortest_between(a: float, b: float) -> float:
    """The decimal in [a, b) with the fewest significant digits, then the fewest decimals.

    Of several equally short ones the nearest to the middle, and of two as near the lower. What
    reaches as far as numbers go has no middle: there it is 0, or the power of ten that is next to
    the other end.
    """
    if not a < b:
        raise ValueError(f"there is no number in [{a}, {b})")
    if abs(a) >= LARGEST or abs(b) >= LARGEST:
        return _far_out(a, b)
    if isinstance(a, int) and isinstance(b, int) and max(-a, b) > 2**53:
        return _roundest_whole(a, b)
    middle = a / 2 + b / 2
    if not a <= middle < b:  # neighbours in floating point
        return a
    if not TINY < abs(middle) < HUGE:
        return 0.0 if a <= 0.0 < b else a
    whole = _whole_numbers(a, b, middle)
    leading = _leading(middle)
    for digits in range(1, 18):
        choices = [c for c in (*whole, a) if _has(c, digits)]
        rounded = round(middle, digits - 1 - leading)
        if a <= rounded < b:
            choices.append(rounded)
        if len(choices) == 1:
            return choices[0] + 0.0  # never −0
        if choices:
            return min(choices, key=lambda c: (_decimals(c), abs(c - middle), c)) + 0.0
    return a


def _far_out(a: float, b: float) -> float:
    if a <= 0 < b:
        return 0.0
    end = a if a > 0 else -b  # the end to stay near, seen from 0
    powers = [10.0**k for k in range(math.floor(math.log10(end or 1.0)), 309)]
    return next(((p if a > 0 else -p) for p in powers if a <= (p if a > 0 else -p) < b), a)


def _roundest_whole(a: int, b: int) -> int:
    """The same among whole numbers that are not all exact as floats."""
    step: int = 10 ** len(str(max(-a, b)))
    while True:
        below = (a + b) // 2 // step * step
        near = [c for c in (below, below + step) if a <= c < b]
        if near:
            return min(near, key=lambda c: (abs(2 * c - a - b), c))
        step //= 10


def _whole_numbers(a: float, b: float, middle: float) -> list[float]:
    """The whole numbers nearest to the middle, where [a, b) has any; 0 wherever it lies inside."""
    if abs(middle) >= 2**53:
        return []
    below = math.floor(middle)
    return [float(c) for c in (below, below + 1) if a <= c < b]


def _leading(x: float) -> int:
    """The power of ten of the first digit."""
    return math.floor(math.log10(abs(x)))


def _has(x: float, digits: int) -> bool:
    """Whether x can be written with so many significant digits."""
    if not TINY < abs(x) < HUGE:
        return x == 0.0
    return round(x, digits - 1 - _leading(x)) == x


def _decimals(x: float) -> int:
    """Digits behind the decimal point."""
    mantissa, _, exponent = repr(x).partition("e")
    behind = mantissa.partition(".")[2].rstrip("0")
    return max(0, len(behind) - int(exponent or 0))
