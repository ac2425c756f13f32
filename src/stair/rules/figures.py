"""Scores and shares as a person reads them: rounded, and never to what they are not."""

from __future__ import annotations

import math


def percent(share: float) -> str:
    """A share as a person reads it; never 100% or 0% where it is not."""
    if math.isnan(share):
        return "–"
    for digits in (0, 1, 2):
        text = f"{share:.{digits}%}"
        if float(text[:-1]) not in (0.0, 100.0) or share in (0.0, 1.0):
            return text
    return ">99.99%" if share > 0.5 else "<0.01%"


def fine_percent(share: float) -> str:
    """A share with one decimal, as shares of rare things need."""
    return f"{share:.1%}" if 0.001 <= share <= 0.999 else percent(share)


def score_in_words(score: float, floor: float, digits: int = 2) -> str:
    """A score with as many digits as it takes to see on which side of the floor it is, and that it
    is neither 0 nor 1 where it is not."""
    edges = (0.0, floor, 1.0)
    for more in range(digits, 9):
        text = f"{score:.{more}f}"
        if math.isnan(score) or all(_side(float(text), e) == _side(score, e) for e in edges):
            return text
    return repr(score)


def floor_in_words(floor: float) -> str:
    """The floor as it was given, with two decimals at least."""
    text = f"{floor:.2f}"
    return text if float(text) == floor else repr(float(floor))


def _side(number: float, edge: float) -> int:
    return (number > edge) - (number < edge)
