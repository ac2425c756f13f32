"""The shortest choice among rules that are given, by the counts of the rows that they cover.

Rows are groups here, each with the number of rows that it stands for, so that a table of any size
is a small problem, and an exact one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.learn.distill.cells import cells_of
from stair.learn.distill.cover import Candidate, Problem, problem_of
from stair.learn.distill.exact import MOST_ROWS, choose
from stair.learn.distill.select import POWER
from stair.rules.objective import least_outliers

# Of the programme for an exact choice: few rules, many groups.
MOST_ENTRIES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Picked:
    """Which rules, by their numbers, and whether they are above the floor together.

    No choice among the `n_candidates` rules that may be chosen is shorter than `bound`; 0 where
    that was not solved.
    """

    numbers: tuple[int, ...]
    is_enough: bool
    bound: int
    n_candidates: int
    min_outliers: int
    relaxed: bool


def pick(
    classes: NDArray[np.int32],
    counts: NDArray[np.int64],
    covered: NDArray[np.bool_],
    labels: Sequence[int],
    lengths: Sequence[int],
    *,
    n_classes: int,
    default: int,
    positive: int | None,
    min_score: float,
    max_total_length: int | None = None,
    min_outliers: int | None = None,
    seconds: float | None = None,
    weights: NDArray[np.int64] | None = None,
) -> Picked:
    """The shortest rules above the floor; what is worth most where no choice is.

    `covered` says of each group of rows (its class, how many they are, and what they weigh
    together, where that is another thing) which rules cover it.
    A rule with too few rows of its own class is only chosen where the floor needs it and nobody
    asked for so many.
    """
    worths = counts if weights is None else weights
    of_class = np.zeros(n_classes, np.int64)
    np.add.at(of_class, classes, counts)
    n_wanted = int(of_class.sum() - of_class[default])
    usual = least = least_outliers(min_outliers, n_wanted)
    hits = [int(counts[covered[:, k] & (classes == label)].sum()) for k, label in enumerate(labels)]
    no_cells = cells_of((), np.empty((len(classes), 0)), classes != default)
    while True:
        problem = problem_of(
            no_cells, classes, n_classes, worths, default=default, positive=positive,
            min_score=min_score, max_rule_length=max(lengths, default=1), min_outliers=least,
        )  # fmt: skip
        rules = [
            Candidate(
                {}, problem.labels.index(label), np.flatnonzero(covered[:, k]).astype(np.int32),
                lengths[k], hits[k],
            )
            for k, label in enumerate(labels)
        ]  # fmt: skip
        allowed = [rule for rule in rules if rule.hits >= least]
        chosen, bound = _shortest(problem, allowed, max_total_length, seconds)
        enough = _worth(problem, chosen) > problem.floor
        if enough or min_outliers is not None or max_total_length is not None or least == 1:
            numbers = tuple(k for k, rule in enumerate(rules) if rule in chosen)
            return Picked(numbers, enough, bound, len(allowed), least, least < usual)
        least = max(1, least // 2)


def one_more(
    classes: NDArray[np.int32],
    counts: NDArray[np.int64],
    covered: NDArray[np.bool_],
    lengths: Sequence[int],
    chosen: Sequence[int],
    *,
    min_score: float,
    min_outliers: int | None = None,
    weights: NDArray[np.int64] | None = None,
) -> int | None:
    """Of rules for outliers (class 1 of two), the number of the one that adds most for its length
    to those that are chosen; None where nothing adds, or too few outliers."""
    least = least_outliers(min_outliers, int(counts[classes == 1].sum()))
    problem = problem_of(
        cells_of((), np.empty((len(classes), 0)), classes == 1), classes, 2,
        counts if weights is None else weights, default=0, positive=1, min_score=min_score,
        max_rule_length=max(lengths, default=1), min_outliers=least,
    )  # fmt: skip
    is_explained = covered[:, list(chosen)].any(axis=1)
    ranks = np.where(is_explained, 0, 1).astype(np.intp)
    best: tuple[float, int] | None = None
    for k, length in enumerate(lengths):
        rows = np.flatnonzero(covered[:, k] & ~is_explained).astype(np.int32)
        gain = _gain(problem, ranks, Candidate({}, 0, rows, length, 0))
        if gain <= 0 or int(counts[rows][classes[rows] == 1].sum()) < least:
            continue
        score = gain / length**POWER
        if best is None or score > best[0]:
            best = score, k
    return None if best is None else best[1]


def _shortest(
    problem: Problem, rules: Sequence[Candidate], most: int | None, seconds: float | None
) -> tuple[list[Candidate], int]:
    """The shortest choice above the floor that was found, and a bound; at most so long."""
    chosen = _fewer(problem, _greedy(problem, rules))
    length = sum(rule.length for rule in chosen)
    is_enough = _worth(problem, chosen) > problem.floor
    ceiling = length if is_enough else sum(rule.length for rule in rules) + 1
    bound = 0
    # So many that a bound would take too long: what was taken one by one stays.
    is_small = sum(len(rule.rows) for rule in rules) <= MOST_ROWS
    choice = choose(problem, rules, ceiling, seconds, MOST_ENTRIES) if is_small else None
    if choice is not None:
        if choice.rules is not None:
            chosen, is_enough = list(choice.rules), True
        bound = choice.bound if is_enough else 0
    while most is not None and sum(rule.length for rule in chosen) > most:
        chosen.remove(min(chosen, key=lambda rule: _loss(problem, chosen, rule) / rule.length))
    return chosen, min(bound, sum(rule.length for rule in chosen))


def _greedy(problem: Problem, rules: Sequence[Candidate]) -> list[Candidate]:
    """Rules by what they add for their length, until the floor is passed or nothing adds."""
    chosen: list[Candidate] = []
    while _worth(problem, chosen) <= problem.floor:
        ranks = _ranks(problem, chosen)
        gains = [_gain(problem, ranks, rule) for rule in rules]
        if max(gains, default=0) <= 0:
            break
        best = max(range(len(rules)), key=lambda k: gains[k] / rules[k].length ** POWER)
        chosen.append(rules[best])
    return chosen


def _fewer(problem: Problem, chosen: list[Candidate]) -> list[Candidate]:
    """Without the rules that the floor, or the worth below it, does not need: longest first."""
    floor = min(problem.floor, _worth(problem, chosen) - 1)
    for rule in sorted(chosen, key=lambda rule: -rule.length):
        others = [other for other in chosen if other is not rule]
        if _worth(problem, others) > floor:
            chosen = others
    return chosen


def _loss(problem: Problem, chosen: Sequence[Candidate], rule: Candidate) -> int:
    others = [other for other in chosen if other is not rule]
    return _worth(problem, chosen) - _worth(problem, others)


def _ranks(problem: Problem, chosen: Sequence[Candidate]) -> NDArray[np.intp]:
    """The place of each group's label: the first of the rules that cover it, else the default."""
    ranks = np.full(len(problem.classes), len(problem.labels), dtype=np.intp)
    for rule in chosen:
        ranks[rule.rows] = np.minimum(ranks[rule.rows], rule.label)
    return ranks


def _worth(problem: Problem, chosen: Sequence[Candidate]) -> int:
    worth = problem.worth[problem.classes, _ranks(problem, chosen)]
    return int((worth * problem.weights).sum())


def _gain(problem: Problem, ranks: NDArray[np.intp], rule: Candidate) -> int:
    classes, before = problem.classes[rule.rows], ranks[rule.rows]
    after = np.minimum(before, rule.label)
    change = problem.worth[classes, after] - problem.worth[classes, before]
    return int((change * problem.weights[rule.rows]).sum())
