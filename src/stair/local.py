"""Rules for partitions of the data, as values: a row is routed to its nearest center first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.match import all_matches, first_match
from stair.rules import Explanation, Rows, RuleSet
from stair.space import Space

NOWHERE: Final = Space(())


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the data: its center, its training rows, how many rules are its own."""

    center: tuple[float, ...]  # coordinates in the rule set's space
    rows: float
    n_rules: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class LocalRuleSet(RuleSet):
    """Rule sets of partitions, one after the other in `rules`.

    Two scores are kept apart: `routed` is what a new row gets, by its nearest center; `assigned`
    is the paper's, in which training knew the label of a row when it chose the row's partition.
    """

    partitions: tuple[Partition, ...] = ()
    space: Space = NOWHERE
    assigned: float = math.nan
    routed: float = math.nan

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where the rules of each partition start and end."""
        start = 0
        for partition in self.partitions:
            yield start, start + partition.n_rules
            start += partition.n_rules

    def route(self, X: Any) -> NDArray[np.intp]:
        """The number of the partition of each row: the nearest center, the first of equals."""
        table = Rows(X, self.features)
        centers = np.array([partition.center for partition in self.partitions])
        distances = self.space.distances(self.space.place(table.get), centers)
        nearest: NDArray[np.intp] = distances.argmin(axis=1)
        return nearest

    def assign(self, X: Any) -> NDArray[np.intp]:
        table = Rows(X, self.features)
        routed = self.route(X)
        numbers = np.full(table.n_rows, -1, dtype=np.intp)
        for number, (start, stop) in enumerate(self.spans()):
            rows = np.flatnonzero(routed == number)
            found = first_match(self.rules[start:stop], table.take(rows).get, len(rows))
            numbers[rows] = np.where(found >= 0, found + start, -1)
        return numbers

    def covers(self, X: Any) -> NDArray[np.bool_]:
        table = Rows(X, self.features)
        covered = all_matches(self.rules, table.get, table.n_rows)
        routed = self.route(X)
        for number, (start, stop) in enumerate(self.spans()):
            covered[:, start:stop] &= (routed == number)[:, None]
        return covered

    def of_partition(self, number: int) -> RuleSet:
        """The plain rules of one partition."""
        start, stop = list(self.spans())[number]
        return RuleSet(
            self.rules[start:stop], self.classes, self.features, self.default, self.totals,
            self.positive,
        )  # fmt: skip

    def explain(self, row: Any) -> Explanation:
        """Which partition a row is in, which of its rules decides, and why."""
        number = int(self.route(Rows.one(row))[0])
        start, _ = list(self.spans())[number]
        found = self.of_partition(number).explain(row)
        words = self.partitions[number].description
        return replace(
            found,
            number=None if found.number is None else found.number + start,
            nearest=None if found.nearest is None else found.nearest + start,
            partition=f"partition {number + 1}{f' ({words})' if words else ''}",
        )

    def __str__(self) -> str:
        parts = []
        for number, partition in enumerate(self.partitions):
            head = f"partition {number + 1}, {partition.rows:g} rows: {partition.description}"
            parts.append(f"{head}\n{self.of_partition(number)}")
        return "\n".join(parts)
