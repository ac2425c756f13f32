"""Rules for partitions of the data, as values: a row is routed to its nearest center first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.rules.match import all_matches, first_match
from stair.rules.rule_set import Explanation, RuleSet, one_row
from stair.rules.space import Space

NOWHERE: Final = Space(())


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the data: its center, its training rows, how many rules are its own."""

    center: tuple[float, ...]  # coordinates in the rule set's space
    rows: float
    n_rules: int
    description: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class LocalRuleSet(RuleSet):
    """Rule sets of partitions, one after the other in `rules`.

    Two scores are kept apart: `routed` is what a new row gets, by its nearest center; `assigned`
    is the paper's, in which training knew the label of a row when it chose the row's partition.
    """

    partitions: tuple[Partition, ...] = ()
    space: Space = NOWHERE
    assigned: float = math.nan
    routed: float = math.nan

    @property
    def used(self) -> frozenset[str]:
        mine = frozenset(clause.feature for rule in self.rules for clause in rule.clauses)
        return mine | {axis.feature for axis in self.space.axes}

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where the rules of each partition start and end."""
        start = 0
        for partition in self.partitions:
            yield start, start + partition.n_rules
            start += partition.n_rules

    def route(self, X: Any) -> NDArray[np.intp]:
        """The number of the partition of each row: the nearest center, the first of equals."""
        values = self.read(X)
        centers = np.array([partition.center for partition in self.partitions])
        distances = self.space.distances(self.space.place(values.__getitem__), centers)
        nearest: NDArray[np.intp] = distances.argmin(axis=1)
        return nearest

    def assign(self, X: Any) -> NDArray[np.intp]:
        values = self.read(X)
        routed = self.route(values)
        numbers = np.full(values.n_rows, -1, dtype=np.intp)
        for number, (start, stop) in enumerate(self.spans()):
            rows = np.flatnonzero(routed == number)
            here = values.take(rows)
            found = first_match(self.rules[start:stop], here.__getitem__, len(rows))
            numbers[rows] = np.where(found >= 0, found + start, -1)
        return numbers

    def covers(self, X: Any) -> NDArray[np.bool_]:
        values = self.read(X)
        covered = all_matches(self.rules, values.__getitem__, values.n_rows)
        routed = self.route(values)
        for number, (start, stop) in enumerate(self.spans()):
            covered[:, start:stop] &= (routed == number)[:, None]
        return covered

    def of_partition(self, number: int) -> RuleSet:
        """The plain rules of one partition."""
        start, stop = list(self.spans())[number]
        return RuleSet(
            self.rules[start:stop], self.classes, self.schema, self.default, self.totals,
            self.positive,
        )  # fmt: skip

    def explain(self, row: Any) -> Explanation:
        """Which partition a row is in, which of its rules decides, and why."""
        values = self.read(one_row(row, self.schema))
        number = int(self.route(values)[0])
        start, _ = list(self.spans())[number]
        found = self.of_partition(number).explain(values)
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
