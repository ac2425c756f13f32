"""The exact choice among candidate rules, and a bound that no choice among them can beat.

Covered outliers and inliers become variables of a linear programme: an outlier counts if a chosen
rule covers it, an inlier counts against as soon as one does. HiGHS solves it, through scipy. Rows
that the same candidates cover are one variable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.learn.distill.cover import Candidate, Problem
from stair.learn.distill.quiet import quiet_solver

# Candidates that cover more rows than this together are too many for a bound in a second or two.
MOST_ROWS: Final = 60_000
MOST_RULES: Final = 1500
# The exact search looks at so many nodes, so that it ends at the same place everywhere.
MOST_NODES: Final = 200
# A programme with more entries than this takes too long for a bound.
MOST_ENTRIES: Final = 30_000
# A bound so little below the length is never too far from it for an exact choice.
FAR_BELOW: Final = 5
# Lengths are whole numbers: a bound less than one below an answer proves it.
NEARLY_ONE: Final = 0.999
TOLERANCE: Final = 1e-6  # of the solver
# So many of its answers may turn out not to hold before what there is stays.
MOST_ANSWERS: Final = 4


@dataclass(frozen=True, slots=True)
class Choice:
    """The shortest set that was found (None where none is shorter), and the lower bound."""

    rules: tuple[Candidate, ...] | None
    bound: int
    n_candidates: int


@dataclass(frozen=True, slots=True)
class Most:
    """The set that explains most (None where none explains more), and the weight of outliers that
    no other explains more than."""

    rules: tuple[Candidate, ...] | None
    bound: int
    n_candidates: int


def choose(
    problem: Problem,
    candidates: Sequence[Candidate],
    length: int,
    seconds: float | None = None,
    most_entries: int = 6_000,
    widest_gap: float = 1.0,
) -> Choice | None:
    """The shortest set among the candidates, to be shorter than `length`; None if not solved.

    A programme with more entries than `most_entries` gets a bound, but no exact choice; nor does
    one whose bound is below the length by more than the part `widest_gap`.
    """
    if len(problem.labels) > 1 or not candidates:
        return None
    from scipy.optimize import linprog

    cost, matrix, limits = _programme(problem, candidates)[:3]
    while matrix.nnz > MOST_ENTRIES and len(candidates) > 1:  # the last are worth least
        candidates = candidates[: len(candidates) * 3 // 4]
        cost, matrix, limits = _programme(problem, candidates)[:3]
    n_rules = len(candidates)
    options = {} if seconds is None else {"time_limit": max(seconds, 0.0)}
    with quiet_solver():
        done = linprog(
            cost, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs", options=options
        )
    if done.status != 0:
        return None
    bound = math.ceil(done.fun - TOLERANCE)
    is_far = length - bound > max(FAR_BELOW, widest_gap * length)
    if bound >= length or matrix.nnz > most_entries or is_far:
        return Choice(None, min(bound, length), n_rules)
    return _exactly(problem, candidates, length, bound, (cost, matrix, limits), options)


def most_explained(
    problem: Problem,
    candidates: Sequence[Candidate],
    explained: int,
    seconds: float | None = None,
    most_entries: int = 6_000,
) -> Most | None:
    """The set among the candidates that explains outliers of the largest weight within the limits,
    more than so much; None if not solved."""
    if not candidates:
        return None
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp

    cost, matrix, limits, outliers = _programme(problem, candidates)
    n_rules, unit = len(candidates), max(int(np.gcd.reduce(outliers)), 1)
    gain = outliers / unit
    options = {} if seconds is None else {"time_limit": max(seconds, 0.0)}
    with quiet_solver():
        done = linprog(
            -gain, A_ub=matrix, b_ub=limits, bounds=(0, 1), method="highs", options=options
        )
    if done.status != 0:
        return None
    bound = math.floor(-done.fun + TOLERANCE) * unit
    if bound <= explained or matrix.nnz > most_entries:
        return Most(None, max(bound, explained), n_rules)
    constraints = [
        LinearConstraint(matrix, -np.inf, limits),
        LinearConstraint(gain[None, :], explained / unit + 0.5, np.inf),
    ]
    for _ in range(MOST_ANSWERS):
        with quiet_solver():
            exact = milp(
                -gain, integrality=np.arange(len(cost)) < n_rules, bounds=Bounds(0, 1),
                constraints=constraints, options={**options, "node_limit": MOST_NODES},
            )  # fmt: skip
        if exact.status == 2:
            return Most(None, explained, n_rules)
        if exact.mip_dual_bound is not None and math.isfinite(exact.mip_dual_bound):
            bound = min(bound, math.floor(-exact.mip_dual_bound + TOLERANCE) * unit)
        if exact.x is None:
            break
        taken = exact.x[:n_rules] > 0.5
        chosen = tuple(r for r, is_taken in zip(candidates, taken, strict=True) if is_taken)
        if meets(problem, chosen) and sums_of(problem, chosen)[0] > explained:
            return Most(chosen, max(bound, explained), n_rules)
        constraints.append(_another(taken, len(cost)))
    return Most(None, max(bound, explained), n_rules)


def _another(taken: NDArray[np.bool_], n_variables: int) -> Any:
    """What the next answer must be: different in at least one rule."""
    from scipy.optimize import LinearConstraint

    others = np.zeros((1, n_variables))
    others[0, : len(taken)] = np.where(taken, -1.0, 1.0)
    return LinearConstraint(others, 1.0 - taken.sum(), np.inf)


def _exactly(
    problem: Problem,
    candidates: Sequence[Candidate],
    length: int,
    bound: int,
    programme: tuple[NDArray[np.float64], object, NDArray[np.float64]],
    options: dict[str, float],
) -> Choice:
    """The choice in whole numbers. The solver's own are only nearly whole, so each of its answers
    is counted anew; one that is not above the floor is forbidden, and another asked for."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    cost, matrix, limits = programme
    n_rules = len(candidates)
    constraints = [
        LinearConstraint(matrix, -np.inf, limits),
        LinearConstraint(cost[None, :], 0, length - 1),
    ]
    for _ in range(MOST_ANSWERS):
        with quiet_solver():
            exact = milp(
                cost,
                integrality=np.arange(len(cost)) < n_rules,
                bounds=Bounds(0, 1),
                constraints=constraints,
                options={**options, "node_limit": MOST_NODES, "mip_rel_gap": NEARLY_ONE / length},
            )
        if exact.status == 2:  # none is shorter: what we have is the shortest of all
            return Choice(None, length, n_rules)
        if exact.mip_dual_bound is not None and math.isfinite(exact.mip_dual_bound):
            bound = max(bound, math.ceil(exact.mip_dual_bound - TOLERANCE))
        if exact.x is None:
            break
        taken = exact.x[:n_rules] > 0.5
        chosen = tuple(r for r, is_taken in zip(candidates, taken, strict=True) if is_taken)
        if meets(problem, chosen) and sum(r.length for r in chosen) < length:
            return Choice(chosen, min(bound, length), n_rules)
        constraints.append(_another(taken, len(cost)))
    return Choice(None, min(bound, length), n_rules)


def worth_of(problem: Problem, rules: Sequence[Candidate]) -> int:
    """What rules of one label are worth together, counted row by row."""
    covered = np.zeros(len(problem.classes), dtype=np.bool_)
    for rule in rules:
        covered[rule.rows] = True
    worth = np.where(covered, problem.worth[problem.classes, 0], problem.worth[problem.classes, -1])
    return int((worth * problem.weights).sum())


def sums_of(problem: Problem, rules: Sequence[Candidate]) -> tuple[int, int, int]:
    """What rules cover together: the weight of outliers, that of inliers, and how many rows."""
    covered = np.zeros(len(problem.classes), dtype=np.bool_)
    for rule in rules:
        covered[rule.rows] = True
    return problem.sums_of(np.flatnonzero(covered))


def meets(problem: Problem, rules: Sequence[Candidate]) -> bool:
    """Whether rules of one label are above the floor, and all else that is wished, row by row."""
    if not problem.limits:
        return worth_of(problem, rules) > problem.floor
    length = sum(rule.length for rule in rules)
    is_had = problem.shortfall(sums_of(problem, rules), len(rules), length) == 0
    return is_had and all(problem.is_precise(rule.rows) for rule in rules)


def _programme(
    problem: Problem, candidates: Sequence[Candidate]
) -> tuple[NDArray[np.float64], Any, NDArray[np.float64], NDArray[np.int64]]:
    """Costs, matrix and limits: rules first, then groups of rows; matrix · x ≤ limits. Last the
    weight of the outliers in each of the groups.

    An outlier group is covered only if a rule of it is chosen, y_g ≤ Σ z_r; an inlier group is as
    soon as one is, y_g ≥ z_r for each r; and the worth of what is covered is above the floor. Where
    outliers are alerts too, they are covered as soon as one rule is chosen.
    """
    from scipy.sparse import coo_array

    rule, group, worth, weight, alerts = _groups(problem, candidates)
    unit = int(np.gcd.reduce(worth))
    worth = worth // unit
    n_rules, n_groups = len(candidates), len(worth)
    is_gain = worth[group] > 0
    gains, losses = np.flatnonzero(worth > 0), np.flatnonzero(~is_gain)
    place = np.cumsum(worth > 0) - 1
    each = len(gains) + np.arange(len(losses))
    last = len(gains) + len(losses)
    parts: list[tuple[NDArray[np.intp], NDArray[np.intp], Any]] = [
        (place[group[is_gain]], rule[is_gain], -1.0),
        (place[gains], n_rules + gains, 1.0),
        (each, rule[losses], 1.0),
        (each, n_rules + group[losses], -1.0),
    ]
    outliers = np.where(worth > 0, weight, 0)
    floors: list[float] = []
    if not problem.limits:
        # Divided by what all of them share: the "+ 1" of "above the floor" must not drown in it.
        floors.append(-float((problem.floor - worth_of(problem, ())) // unit + 1))
        every = np.arange(n_groups)
        parts.append((np.full(n_groups, last), n_rules + every, -worth.astype(np.float64)))
    else:
        if any(limit.of_rows for limit in problem.limits):
            wins = np.flatnonzero(is_gain)
            more = last + np.arange(len(wins))
            parts += [(more, rule[wins], 1.0), (more, n_rules + group[wins], -1.0)]
            last += len(wins)
            floors = [0.0] * len(wins)
        for limit in problem.limits:
            own = limit.outlier * alerts if limit.of_rows else np.where(
                worth > 0, limit.outlier * weight, limit.inlier * weight
            )  # fmt: skip
            share = max(int(np.gcd.reduce(own)), 1)
            parts.append((np.full(n_groups, last), n_rules + np.arange(n_groups),
                          -(own // share).astype(np.float64)))  # fmt: skip
            floors.append(-float((limit.floor) // share + 1))
            last += 1
        lengths = [float(rule.length) for rule in candidates]
        budgets = ((problem.most_rules, [1.0] * n_rules), (problem.most_length, lengths))
        for most, counts in budgets:
            if most is not None:
                parts.append((np.full(n_rules, last), np.arange(n_rules), counts))
                floors.append(float(most))
                last += 1
        last -= 1
    entries = np.concatenate([np.broadcast_to(value, len(row)) for row, _, value in parts])
    rows, columns = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    matrix = coo_array((entries, (rows, columns)), shape=(last + 1, n_rules + n_groups)).tocsc()
    limits = np.zeros(last + 1)
    limits[last + 1 - len(floors) :] = floors
    cost = np.concatenate([[float(r.length) for r in candidates], np.zeros(n_groups)])
    return cost, matrix, limits, np.concatenate([np.zeros(n_rules, dtype=np.int64), outliers])


def candidates_of(
    problem: Problem, pool: Sequence[Candidate], chosen: Sequence[Candidate]
) -> list[Candidate]:
    """As many candidates as an exact choice can take, the best by worth for their length first."""
    kept = list(chosen)
    seen = {(frozenset(r.box), r.rows.tobytes()) for r in kept}
    n_rows = sum(len(r.rows) for r in kept)
    alone = [_alone(problem, rule) / rule.length for rule in pool]
    for k in np.argsort(-np.array(alone), kind="stable").tolist() if alone else ():
        rule = pool[k]
        key = (frozenset(rule.box), rule.rows.tobytes())
        if key in seen or rule.hits < problem.min_outliers or not problem.is_precise(rule.rows):
            continue
        if not problem.fits(rule):
            continue
        if len(kept) >= MOST_RULES or n_rows + len(rule.rows) > MOST_ROWS:
            break
        seen.add(key)
        kept.append(rule)
        n_rows += len(rule.rows)
    return kept


def _alone(problem: Problem, rule: Candidate) -> int:
    """What the rule is worth by itself."""
    gains = problem.worth[:, rule.label] - problem.worth[:, -1]
    return int((gains[problem.classes[rule.rows]] * problem.weights[rule.rows]).sum())


def _groups(
    problem: Problem, candidates: Sequence[Candidate]
) -> tuple[
    NDArray[np.intp], NDArray[np.intp], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
]:
    """Rows with one class that the same candidates cover, as one: which rule covers which, what
    covering it is worth, what it weighs and how many rows it is."""
    rules_of = np.repeat(np.arange(len(candidates)), [len(r.rows) for r in candidates])
    rows = np.concatenate([r.rows for r in candidates])
    order = np.lexsort((rules_of, rows))
    rows, rules_of = rows[order], rules_of[order]
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    signatures: dict[tuple[int, bytes], int] = {}
    worth: list[int] = []
    weight: list[int] = []
    times: list[int] = []
    pairs_r: list[NDArray[np.intp]] = []
    pairs_g: list[int] = []
    gains = problem.worth[:, 0] - problem.worth[:, -1]
    for start, stop in zip(starts, np.append(starts[1:], len(rows)), strict=True):
        row = rows[start]
        kind = int(problem.classes[row])
        covering = rules_of[start:stop]
        key = (int(gains[kind] > 0), covering.tobytes())
        gain = int(gains[kind] * problem.weights[row])
        group = signatures.setdefault(key, len(worth))
        if group == len(worth):
            worth.append(0)
            weight.append(0)
            times.append(0)
            pairs_r.append(covering)
            pairs_g.append(len(covering))
        worth[group] += gain
        weight[group] += int(problem.weights[row])
        times[group] += int(problem.alerts[row]) if len(problem.alerts) else 0
    groups_of = np.repeat(np.arange(len(worth)), pairs_g)
    return np.concatenate(pairs_r), groups_of, np.array(worth), np.array(weight), np.array(times)
