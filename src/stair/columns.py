"""What a column means: how a cut in its codes becomes a clause that a person can read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from stair.clauses import Clause, Interval
from stair.decimals import shortest_between


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers, whose codes are the numbers themselves."""

    name: str
    attribute: int
    is_ordered: ClassVar[bool] = True

    def cut(self, below: float, above: float, missing_left: bool | None) -> tuple[Clause, Clause]:
        """The clauses on the two sides of a cut between neighbouring values.

        `above` is ∞ where only missing values lie above; `missing_left` is None where the rows
        have no missing values, and then neither side speaks of them.
        """
        at = shortest_between(below, above) if math.isfinite(above) else math.inf
        left = Interval(self.name, high=at, missing=missing_left is True)
        right = Interval(self.name, low=at, high=math.inf, missing=missing_left is False)
        return left, right


Column: TypeAlias = Numbers
