"""A set of overlapping boxes, what it is worth, and what one more box would be worth.

The floor is linear once the labels are fixed: F1 > f ⇔ (2 − f)·TP − f·FP > f·P, and accuracy > f
⇔ right > f·n. So each row has a worth for each label that it may get, the worth of a rule set is
a sum over rows, and the gain of a row is what changes if one more rule covers it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.learn.distill import _twin
from stair.learn.distill.cells import Box, Cells

KERNELS: Final[dict[str, Any]] = {"numpy": _twin}
with suppress(ImportError):  # installed without a C compiler
    KERNELS["compiled"] = import_module("stair.learn.distill._boxes")

# Worths are whole numbers: sums are then exact, and the same in any order. They are multiplied by
# a thousand in the search and must stay below 2**62.
LARGEST_DENOMINATOR: Final = 10_000
LARGEST_TOTAL: Final = 2**36


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What each row is worth under each label, in whole numbers, and what must be surpassed.

    `labels` are the classes that rules may have; where rules overlap the first of them wins. The
    default, the class of a row that no rule covers, stands after them.
    """

    cells: Cells
    classes: NDArray[np.int32]  # of each row
    labels: tuple[int, ...]
    default: int
    worth: NDArray[np.int64]  # class × (labels and default)
    weights: NDArray[np.int64]
    times: NDArray[np.int64]  # how many rows of the table each row stands for
    floor: int  # the worth of all rows must be above it
    max_rule_length: int
    min_outliers: int


def problem_of(
    cells: Cells,
    classes: NDArray[np.int32],
    n_classes: int,
    weights: NDArray[np.int64] | None,
    *,
    default: int,
    positive: int | None,
    min_score: float,
    max_rule_length: int,
    min_outliers: int,
    times: NDArray[np.int64] | None = None,
    settled: NDArray[np.int64] | None = None,
) -> Problem:
    """F1 of the class `positive`, or accuracy where there is none, as worths and a floor.

    Other rules may have decided about rows that are not here: `settled` are those of each class,
    called outliers in the second column and not in the first. They count for the floor.
    """
    whole = np.ones(len(classes), dtype=np.int64) if weights is None else weights
    if settled is None:
        whole = whole // np.gcd.reduce(whole)  # a thousand times the weight for all says nothing
    excess = int(whole.sum()) // LARGEST_TOTAL
    if excess:
        whole = np.maximum(whole // (excess + 1), 1)
    totals = np.bincount(classes, whole, n_classes).astype(np.int64)
    floor = _fraction(min_score)
    # The rarer a class, the more a rule of its own says: it comes first.
    labels = tuple(sorted({*range(n_classes)} - {default}, key=lambda k: (totals[k], k)))
    scale = floor.denominator
    worth = np.zeros((n_classes, len(labels) + 1), dtype=np.int64)
    if positive is None:
        for place, label in enumerate((*labels, default)):
            worth[label, place] = scale
        needed = floor * scale * int(totals.sum())
    else:
        worth[:, 0] = -int(floor * scale)
        worth[positive, 0] = int((2 - floor) * scale)
        needed = floor * scale * int(totals[positive])
        if settled is not None:
            needed += floor * scale * int(settled[positive].sum())
            needed -= int((worth[:, 0] * settled[:, 1]).sum())
    if floor == 1:
        needed -= 1  # nothing is above a perfect score
    if times is None:
        times = np.ones(len(classes), dtype=np.int64)
    return Problem(
        cells, classes, labels, default, worth, whole, times, int(needed), max_rule_length,
        min_outliers,
    )  # fmt: skip


def _fraction(score: float) -> Fraction:
    """A floor as a fraction with a small denominator, never below what was asked for."""
    near = Fraction(score).limit_denominator(LARGEST_DENOMINATOR)
    if abs(near - Fraction(score)) < Fraction(1, 10**12):
        return near
    return Fraction(int(score * LARGEST_DENOMINATOR) + 1, LARGEST_DENOMINATOR)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A box with its label (a place among the problem's labels) and the rows inside."""

    box: Box
    label: int
    rows: NDArray[np.int32]
    length: int
    hits: int  # the rows that have the label


class Cover:
    """The boxes that are chosen now, with the gain of every row kept up to date."""

    def __init__(self, problem: Problem, kernel: str | None = None) -> None:
        boxes = KERNELS[kernel or next(reversed(KERNELS))].Boxes
        self.problem = problem
        self.least = problem.min_outliers  # the fewest outliers of a new rule
        self.must_stop: Callable[[], bool] = lambda: False  # asked by every loop
        self.most_at_once: float = math.inf  # the work that a single box may cost
        cells = problem.cells
        n_rows = len(problem.classes)
        self.rules: list[Placed] = []
        self._counts = np.zeros((len(problem.labels), n_rows), dtype=np.int32)
        self._rank = np.full(n_rows, len(problem.labels), dtype=np.intp)
        self.aim = 0
        self.value = int(self._worth(np.arange(n_rows)).sum())
        self.kernel = boxes(
            np.ascontiguousarray(cells.codes), cells.n_bins, cells.is_ordered, cells.has_missing,
            cells.sides, self.gains(np.arange(n_rows)),
        )  # fmt: skip

    @property
    def length(self) -> int:
        return sum(rule.length for rule in self.rules)

    def is_enough(self) -> bool:
        """Whether the rules are above the floor."""
        return self.value > self.problem.floor

    def aim_at(self, label: int) -> None:
        """From now on gains are those of rules with this label (its place among the labels)."""
        if label != self.aim:
            self.aim = label
            self.kernel.load(self.gains(np.arange(len(self._rank))))

    def place(self, box: Box) -> Placed:
        """A box with its rows, not yet chosen."""
        problem = self.problem
        rows = self.kernel.rows(*problem.cells.table(box))
        own = problem.classes[rows] == problem.labels[self.aim]
        hits = int(problem.times[rows[own]].sum())
        return Placed(box, self.aim, rows, problem.cells.length(box), hits)

    def add(self, rule: Placed) -> None:
        self._counts[rule.label][rule.rows] += 1
        self._update(rule)
        self.rules.append(rule)

    def remove(self, rule: Placed) -> None:
        self._counts[rule.label][rule.rows] -= 1
        self._update(rule)
        self.rules.remove(rule)

    def become(self, rules: Sequence[Placed]) -> None:
        """Go back to rules of an earlier moment."""
        wanted = set(map(id, rules))
        here = set(map(id, self.rules))
        for rule in [r for r in self.rules if id(r) not in wanted]:
            self.remove(rule)
        for rule in rules:
            if id(rule) not in here:
                self.add(rule)
        self.rules = list(rules)

    def _update(self, rule: Placed) -> None:
        rows = rule.rows
        before = int(self._worth(rows).sum())
        present = self._counts[:, rows] > 0
        rank = np.where(present.any(axis=0), present.argmax(axis=0), len(self.problem.labels))
        self._rank[rows] = rank
        self.value += int(self._worth(rows).sum()) - before
        self.kernel.change(rows, self.gains(rows))

    def _worth(self, rows: Array) -> NDArray[np.int64]:
        worth = self.problem.worth[self.problem.classes[rows], self._rank[rows]]
        total: NDArray[np.int64] = worth * self.problem.weights[rows]
        return total

    def gains(self, rows: Array) -> NDArray[np.int64]:
        """What covering each of these rows by a rule of the present label would be worth."""
        problem, rank = self.problem, self._rank[rows]
        classes = problem.classes[rows]
        change = problem.worth[classes, self.aim] - problem.worth[classes, rank]
        gains: NDArray[np.int64] = np.where(rank <= self.aim, 0, change) * problem.weights[rows]
        return gains
