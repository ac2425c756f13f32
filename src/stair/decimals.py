"""The number a person would choose for a cut.

Every cut between two neighbouring values a < b divides the rows alike. The one that is stored is
the shortest decimal in [a, b), so that what is shown is exactly what is compared and exported.
"""

from __future__ import annotations

import math


def shortest_between(a: float, b: float) -> float:
    """The decimal in [a, b) with the fewest significant digits, then the fewest decimals.

    Of several equally short ones the nearest to the middle, and of two as near the lower.
    """
    if not a < b:
        raise ValueError(f"there is no number in [{a}, {b})")
    middle = a / 2 + b / 2
    if not a <= middle < b:  # neighbours in floating point
        return a
    whole = [(c, _significant(c)) for c in _whole_numbers(a, b, middle)]
    whole.append((a, _significant(a)))
    for digits in range(1, 18):
        choices = [c for c, needed in whole if needed <= digits]
        rounded = float(f"{middle:.{digits - 1}e}")
        if a <= rounded < b:
            choices.append(rounded)
        if len(choices) == 1:
            return choices[0] + 0.0  # never −0
        if choices:
            return min(choices, key=lambda c: (_decimals(c), abs(c - middle), c)) + 0.0
    return a


def _whole_numbers(a: float, b: float, middle: float) -> list[float]:
    """The whole numbers nearest to the middle, where [a, b) has any; 0 wherever it lies inside."""
    if abs(middle) >= 2**53:
        return []
    below = math.floor(middle)
    return [float(c) for c in (below, below + 1) if a <= c < b]


def _significant(x: float) -> int:
    """Significant digits of the shortest decimal that reads back to x."""
    mantissa = repr(x).partition("e")[0].replace(".", "").strip("-0")
    return max(1, len(mantissa))


def _decimals(x: float) -> int:
    """Digits behind the decimal point."""
    mantissa, _, exponent = repr(x).partition("e")
    behind = mantissa.partition(".")[2].rstrip("0")
    return max(0, len(behind) - int(exponent or 0))
