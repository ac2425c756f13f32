"""One attribute's condition: Interval for numbers, and how conditions meet and read.

A clause is immutable data. It says which values it covers, what it becomes together with
another clause on the same attribute, and how a person reads it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Cells: TypeAlias = tuple[NDArray[np.intp], NDArray[np.bool_]]

_PLAIN_NAME = re.compile(r"[^\W\d][\w.\-/%#]*")


def name_in_words(feature: str) -> str:
    """A column's name in a sentence; quoted where it could be read as something else."""
    if _PLAIN_NAME.fullmatch(feature):
        return feature
    return '"' + feature.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def number_in_words(value: float) -> str:
    """The shortest decimal that reads back to exactly this number."""
    text = repr(float(value))
    return text.removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Interval:
    """low < x ≤ high; `missing` says whether a missing value is covered too.

    An interval that is covered by missing values alone has low = high = ∞.
    """

    feature: str
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False

    def __post_init__(self) -> None:
        if math.isnan(self.low) or math.isnan(self.high):
            raise ValueError(f"a bound of {self.feature!r} is NaN; bounds must be numbers")

    @property
    def n_bounds(self) -> int:
        """How many numbers a person has to read."""
        return math.isfinite(self.low) + math.isfinite(self.high)

    @property
    def only_missing(self) -> bool:
        return self.low >= self.high

    def covers(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these values (missing = NaN) the clause covers."""
        x = np.asarray(values, dtype=np.float64)
        inside = (x > self.low) & (x <= self.high)
        return inside | np.isnan(x) if self.missing else inside

    def __and__(self, other: Interval) -> Interval:
        """Both at once. An empty interval keeps one canonical form."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low >= high:
            low = high = math.inf
        return Interval(self.feature, low, high, self.missing and other.missing)

    def __str__(self) -> str:
        name = name_in_words(self.feature)
        if self.only_missing:
            return f"{name} is missing" if self.missing else f"{name} is impossible"
        low, high = number_in_words(self.low), number_in_words(self.high)
        if self.n_bounds == 2:
            text = f"{low} < {name} ≤ {high}"
        elif math.isfinite(self.low):
            text = f"{name} > {low}"
        elif math.isfinite(self.high):
            text = f"{name} ≤ {high}"
        else:
            return f"{name} is anything" if self.missing else f"{name} is not missing"
        return f"{text} or missing" if self.missing else text

    def reason(self, value: Any) -> str:
        """The clause with the value that met it: "amount 5200 > 4180"."""
        x = math.nan if value is None else float(value)
        name = name_in_words(self.feature)
        if math.isnan(x):
            return f"{name} is missing"
        here = f"{name} {number_in_words(x)}"
        if self.only_missing or not self.n_bounds:
            return f"{here}, {str(self).removeprefix(name).strip()}"
        if self.n_bounds == 2:
            return f"{here} in ({number_in_words(self.low)}, {number_in_words(self.high)}]"
        return f"{here}{str(self).removeprefix(name).removesuffix(' or missing')}"

    def against(self, value: Any) -> str:
        """Why a value does not meet the clause: "amount 12, not > 4180"."""
        x = math.nan if value is None else float(value)
        name = name_in_words(self.feature)
        if math.isnan(x):
            return f"{name} is missing, not {self._wanted()}"
        return f"{name} {number_in_words(x)}, not {self._wanted()}"

    def _wanted(self) -> str:
        name = name_in_words(self.feature)
        if self.n_bounds == 2:
            tail = " or missing" if self.missing else ""
            return f"in ({number_in_words(self.low)}, {number_in_words(self.high)}]{tail}"
        return str(self).removeprefix(name).strip().removeprefix("is ")

    @property
    def group(self) -> tuple[str, str]:
        """Clauses of one group can be looked up together, in one pass over the values."""
        return ("interval", self.feature)

    @staticmethod
    def cells(clauses: Sequence[Interval], values: NDArray[Any]) -> Cells:
        """The cell of each value among all the bounds, and which clause allows which cell."""
        x = np.asarray(values, dtype=np.float64)
        bounds = {b for c in clauses for b in (c.low, c.high) if math.isfinite(b)}
        edges = np.array(sorted(bounds), dtype=np.float64)
        cell = np.searchsorted(edges, x, side="left")
        cell[np.isnan(x)] = len(edges) + 1
        tops = np.append(edges, math.inf)
        low = np.array([c.low for c in clauses])[:, None]
        high = np.array([c.high for c in clauses])[:, None]
        allowed = np.empty((len(clauses), len(edges) + 2), dtype=np.bool_)
        allowed[:, :-1] = (tops > low) & (tops <= high)
        allowed[:, -1] = [c.missing for c in clauses]
        return cell, allowed


Clause: TypeAlias = Interval
