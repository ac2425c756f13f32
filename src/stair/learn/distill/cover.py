"""A set of overlapping boxes, what it is worth, and what one more box would be worth.

The floor is linear once the labels are fixed: F1 > f ⇔ (2 − f)·TP − f·FP > f·P, and accuracy > f
⇔ right > f·n. So each row has a worth for each label that it may get, the worth of a rule set is
a sum over rows, and the gain of a row is what changes if one more rule covers it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.learn.distill import _twin
from stair.learn.distill.cells import Box, Cells
from stair.learn.wishes import CEILING, Limit, Wishes

KERNELS: Final[dict[str, Any]] = {"numpy": _twin}
with suppress(ImportError):  # installed without a C compiler
    KERNELS["compiled"] = import_module("stair.learn.distill._boxes")

# Worths are whole numbers: sums are then exact, and the same in any order. They are multiplied by
# a thousand in the search and must stay below 2**62.
LARGEST_DENOMINATOR: Final = 10_000
LARGEST_TOTAL: Final = 2**36
# Gains are reckoned in thousandths; what is charged of one stays below what is no gain at all.
THOUSAND: Final = 1000
MOST_CHARGED: Final = 2.0**57
# What an inlier may cost of what an outlier is worth, where that is looked for.
LEANS: Final = (0.005, 100.0)


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
    times: NDArray[np.int64]  # how many outliers each row counts as, where rules need some
    floor: int  # the worth of all rows must be above it
    max_rule_length: int
    min_outliers: int
    # Wishes beside the floor. Where there are any, worths only say where to look.
    limits: tuple[Limit, ...] = ()
    of_rules: Limit | None = None
    most_rules: int | None = None
    most_length: int | None = None
    alerts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # how many rows of the table each row stands for

    @property
    def scale(self) -> int:
        """What all rules together have to be worth, about."""
        if not self.limits:
            return abs(self.floor)
        wanted = self.classes == self.labels[0]
        return int(self.worth[self.labels[0], 0]) * int(self.weights[wanted].sum())

    def sums_of(self, rows: Array) -> tuple[int, int, int]:
        """The weight of the outliers among some rows, that of the inliers, and how many there are
        of both."""
        own = self.classes[rows] == self.labels[0]
        weights = self.weights[rows]
        return int(weights[own].sum()), int(weights[~own].sum()), int(self.alerts[rows].sum())

    def is_precise(self, rows: Array) -> bool:
        """Whether a rule that covers these rows is as precise as each must be."""
        return self.of_rules is None or self.of_rules.of(self.sums_of(rows)) > self.of_rules.floor

    @property
    def most_alerts(self) -> int | None:
        """How many rows may be alerts; None where nobody says."""
        return next((-limit.floor - 1 for limit in self.limits if limit.of_rows), None)

    def fits(self, rule: Candidate) -> bool:
        """Whether a rule by itself is within the budgets. One that is not is in no set that is."""
        alerts, length = self.most_alerts, self.most_length
        is_short = length is None or rule.length <= length
        return is_short and (alerts is None or int(self.alerts[rule.rows].sum()) <= alerts)

    def shortfall(self, sums: Sequence[int], n_rules: int, length: int) -> float:
        """How far rules are from what is wished; 0 where they are all that."""
        missed = sum(limit.shortfall(sums) for limit in self.limits)
        for most, has in ((self.most_rules, n_rules), (self.most_length, length)):
            if most is not None and has > most:
                missed += CEILING * (has - most) / most if most else CEILING * has
        return missed


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
    wishes: Wishes | None = None,
    settled: NDArray[np.int64] | None = None,
    alerts: NDArray[np.int64] | None = None,
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
    problem = Problem(
        cells, classes, labels, default, worth, whole, times, int(needed), max_rule_length,
        min_outliers,
    )  # fmt: skip
    if wishes is None or wishes.is_plain or positive is None:
        return problem
    outliers = int(totals[positive])
    alerts = times if alerts is None else alerts
    limits = wishes.limits(outliers, int(alerts.sum()))
    limits = limits or (Limit("min_score", 1, 0, 0, 1.0),)  # each rule is precise: at least one
    return replace(
        problem, limits=limits, of_rules=wishes.of_rules(outliers), most_rules=wishes.rules,
        most_length=wishes.most_length, alerts=alerts,
    )  # fmt: skip


def _fraction(score: float) -> Fraction:
    """A floor as a fraction with a small denominator, never below what was asked for."""
    near = Fraction(score).limit_denominator(LARGEST_DENOMINATOR)
    if abs(near - Fraction(score)) < Fraction(1, 10**12):
        return near
    return Fraction(int(score * LARGEST_DENOMINATOR) + 1, LARGEST_DENOMINATOR)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
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
        self.rules: list[Candidate] = []
        self._counts = np.zeros((len(problem.labels), n_rows), dtype=np.int32)
        self._rank = np.full(n_rows, len(problem.labels), dtype=np.intp)
        self._times: dict[int, NDArray[np.int64]] = {}
        self.aim = 0
        self.sums = [0, 0, 0]  # as in `Problem.sums_of`, of what is covered
        self.worth = problem.worth
        # What the columns that cost more are charged, in thousandths of a gain.
        self.charges: NDArray[np.int64] | None = None
        self.ratio = 0.0  # what an inlier costs of what an outlier is worth, once it has changed
        self.value = int(self._worth(np.arange(n_rows)).sum())
        # With one label and one floor: what covering each row is worth while no rule covers it.
        is_plain = len(problem.labels) == 1 and not problem.limits
        self._alone = self.gains(np.arange(n_rows)) if is_plain else None
        self.kernel = boxes(
            np.ascontiguousarray(cells.codes), cells.n_bins, cells.is_ordered, cells.has_missing,
            cells.sides, self.gains(np.arange(n_rows)),
        )  # fmt: skip

    @property
    def length(self) -> int:
        return sum(rule.length for rule in self.rules)

    def is_enough(self) -> bool:
        """Whether the rules are above the floor, and all else that is wished."""
        if self.problem.limits:
            return bool(self.rules) and self.shortfall() == 0
        return self.value > self.problem.floor

    def shortfall(self) -> float:
        return self.problem.shortfall(self.sums, len(self.rules), self.length)

    def charge(self, length: int) -> None:
        """Make an attribute cost, beyond the first, its part of what rules so long are worth."""
        further = self.problem.cells.further_cost
        if further is not None:
            each = THOUSAND * self.problem.scale / max(length, 1)
            self.charges = np.minimum(each * further, MOST_CHARGED).astype(np.int64)

    def is_covered(self, rows: Array) -> NDArray[np.bool_]:
        """Which of these rows some rule covers."""
        found: NDArray[np.bool_] = self._rank[rows] < len(self.problem.labels)
        return found

    def is_within(self) -> bool:
        """Whether all ceilings hold: what cannot be mended by more rules."""
        problem = self.problem
        hard = all(
            limit.of(self.sums) > limit.floor for limit in problem.limits if limit.is_ceiling
        )
        is_short = problem.most_length is None or self.length <= problem.most_length
        return hard and is_short and (problem.most_rules or math.inf) >= len(self.rules)

    @property
    def is_full(self) -> bool:
        """Whether there are as many rules as there may be."""
        most = self.problem.most_rules
        return most is not None and len(self.rules) >= most

    @property
    def is_picky(self) -> bool:
        """Whether a box may be worth something and still be none that may be chosen."""
        return self.least > 1 or self.problem.of_rules is not None

    def allows(self, rule: Candidate) -> bool:
        """Whether a rule covers outliers enough, and is precise enough."""
        return rule.hits >= self.least and self.problem.is_precise(rule.rows)

    def lean(self, factor: float) -> None:
        """Make inliers cost so many times what they do now. With several wishes nobody knows before
        what an inlier costs at the place where all of them hold."""
        worth, own = self.problem.worth, self.problem.labels[0]
        first = -int(worth[1 - own, 0]) / int(worth[own, 0])
        self.charge_inliers((self.ratio or first) * factor)

    def charge_inliers(self, ratio: float) -> None:
        """Make an inlier cost so much of what an outlier is worth."""
        worth, own = self.problem.worth, self.problem.labels[0]
        least, most = LEANS
        self.ratio = min(max(ratio, least), most)
        floor = 2 * self.ratio / (1 + self.ratio)
        self.worth = worth.copy()
        self.worth[own, 0] = max(1, round((2 - floor) * LARGEST_DENOMINATOR))
        self.worth[1 - own, 0] = -max(1, round(floor * LARGEST_DENOMINATOR))
        everything = np.arange(len(self._rank))
        self.value = int(self._worth(everything).sum())
        self.kernel.load(self.gains(everything))

    def allows_box(self, box: Box) -> bool:
        """The same of a box that is not placed yet."""
        if self.problem.of_rules is not None:
            return self.allows(self.place(box))
        own = self._own_times(self.aim)
        table = self.problem.cells.table(box)
        return bool(self.kernel.covers_so_many(*table, own, self.least))

    def _own_times(self, place: int) -> NDArray[np.int64]:
        """How many rows of the table each row with a label stands for; 0 for all others."""
        if place not in self._times:
            problem = self.problem
            is_own = problem.classes == problem.labels[place]
            self._times[place] = np.where(is_own, problem.times, 0)
        return self._times[place]

    def aim_at(self, label: int) -> None:
        """From now on gains are those of rules with this label (its place among the labels)."""
        if label != self.aim:
            self.aim = label
            self.kernel.load(self.gains(np.arange(len(self._rank))))

    def place(self, box: Box) -> Candidate:
        """A box with its rows, not yet chosen."""
        problem = self.problem
        rows = self.kernel.rows(*problem.cells.table(box))
        hits = int(self._own_times(self.aim)[rows].sum())
        return Candidate(box, self.aim, rows, problem.cells.length(box), hits)

    def add(self, rule: Candidate) -> None:
        self._counts[rule.label][rule.rows] += 1
        self._update(rule, 1)
        self.rules.append(rule)

    def remove(self, rule: Candidate) -> None:
        self._counts[rule.label][rule.rows] -= 1
        self._update(rule, -1)
        self.rules.remove(rule)

    def become(self, rules: Sequence[Candidate]) -> None:
        """Go back to rules of an earlier moment."""
        wanted = set(map(id, rules))
        here = set(map(id, self.rules))
        for rule in [r for r in self.rules if id(r) not in wanted]:
            self.remove(rule)
        for rule in rules:
            if id(rule) not in here:
                self.add(rule)
        self.rules = list(rules)

    def _update(self, rule: Candidate, change: int) -> None:
        rows = rule.rows
        if self._alone is not None:  # a row is covered or not, and nothing else matters
            times, gains = self._counts[0][rows], self._alone[rows]
            changed = times == (1 if change > 0 else 0)
            self._rank[rows[changed]] = 0 if change > 0 else 1
            self.value += change * int(gains[changed].sum())
            gains[times > 0] = 0
            self.kernel.change(rows, gains)
            return
        before = int(self._worth(rows).sum())
        was_covered = self._rank[rows] < len(self.problem.labels)
        present = self._counts[:, rows] > 0
        rank = np.where(present.any(axis=0), present.argmax(axis=0), len(self.problem.labels))
        self._rank[rows] = rank
        if self.problem.limits:
            is_covered = rank < len(self.problem.labels)
            for sign, changed in ((1, is_covered & ~was_covered), (-1, was_covered & ~is_covered)):
                for k, part in enumerate(self.problem.sums_of(rows[changed])):
                    self.sums[k] += sign * part
        self.value += int(self._worth(rows).sum()) - before
        self.kernel.change(rows, self.gains(rows))

    def _worth(self, rows: Array) -> NDArray[np.int64]:
        worth = self.worth[self.problem.classes[rows], self._rank[rows]]
        total: NDArray[np.int64] = worth * self.problem.weights[rows]
        return total

    def gains(self, rows: Array) -> NDArray[np.int64]:
        """What covering each of these rows by a rule of the present label would be worth."""
        problem, rank = self.problem, self._rank[rows]
        classes = problem.classes[rows]
        change = self.worth[classes, self.aim] - self.worth[classes, rank]
        gains: NDArray[np.int64] = np.where(rank <= self.aim, 0, change) * problem.weights[rows]
        return gains
