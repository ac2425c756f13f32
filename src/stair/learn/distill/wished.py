"""The search where more is wished than a floor on F1: several floors at once, and budgets.

A worth of rows says where to look, and what an inlier costs is found on the way: it rises while too
many are covered, and falls while outliers are too few. Whether the wishes hold is counted, and the
exact choice knows all of them. Where they cannot be had together, the ceilings stay and as much is
explained as can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.random import Generator

from stair.learn.distill.boxes import EASES, around, begun, with_clause
from stair.learn.distill.cells import Bins, Box, all_bins
from stair.learn.distill.clock import SHORTENING, Clock
from stair.learn.distill.cover import Candidate, Cover, Problem
from stair.learn.distill.exact import candidates_of, choose, most_explained
from stair.learn.distill.select import (
    LEAN,
    POWER,
    Pace,
    Pool,
    lean,
    price_bounds,
    redraw,
    renew,
    search,
    shrink,
    some,
)
from stair.learn.wishes import USUAL_LENGTH, Limit

# Of a small table all boxes are looked at: so many at most, which may cover so many rows together.
MOST_BOXES: Final = 1200
# How often inliers change their price while single clauses are looked for.
RATIOS: Final = (0.1, 0.5, 2.0, 10.0)
# Of the boxes that are too large for the alerts that are left, so many are cut smaller.
NARROWED: Final = 12
# The floors that give way first, where not all wishes can be had together.
SOFT: Final = ("min_score", "min_recall")


def first_candidates(cover: Cover, pool: Pool) -> None:
    """The best clause of each column, at several prices of an inlier; and every box there is, of a
    table that is small enough."""
    for ratio in RATIOS:
        cover.lean(ratio)
        found = around(cover, {})
        for column in np.flatnonzero(found.sums[-1] > 0).tolist():
            rule = cover.place(with_clause(cover, {}, column, found, -1))
            if cover.allows(rule):
                pool.remember(rule)
        cover.lean(1 / ratio)
    for rule in every_box(cover) or ():
        pool.remember(rule)


def every_box(cover: Cover) -> list[Candidate] | None:
    """All boxes, the shortest for the same rows; None where there are too many."""
    cells = cover.problem.cells
    bins = [all_bins(cells, j, MOST_BOXES) for j in range(len(cells.columns))]
    n_boxes = math.prod(1 + len(each) if each is not None else MOST_BOXES for each in bins)
    if n_boxes > MOST_BOXES:
        return None
    best: dict[bytes, Candidate] = {}
    for box in _boxes([each or [] for each in bins]):
        n_attributes = len({cells.columns[j].attribute for j in box})
        if not box or n_attributes > cover.problem.max_rule_length:
            continue
        if n_attributes < len(box) or not cells.is_one_of_each_group(box):
            continue
        rule = cover.place(box)
        key = np.sort(rule.rows).tobytes()
        if cover.allows(rule) and (key not in best or rule.length < best[key].length):
            best[key] = rule
    return list(best.values())


def _boxes(bins: Sequence[Sequence[Bins]], first: int = 0) -> Iterator[Box]:
    if first == len(bins):
        yield {}
        return
    for rest in _boxes(bins, first + 1):
        yield rest
        for each in bins[first]:
            yield {first: each, **rest}


def alerts_within(problem: Problem) -> int:
    """How many rows may be alerts; all, where nobody says."""
    most = problem.most_alerts
    return int(problem.alerts.sum()) if most is None else most


def narrowed(cover: Cover, rule: Candidate) -> Candidate | None:
    """A box cut off at one end of a column, so that no more rows are alerts than may be: the one
    that still covers most outliers. None where nothing is to be cut off, or nothing is left."""
    problem, cells = cover.problem, cover.problem.cells
    new = rule.rows[~cover.is_covered(rule.rows)]
    room = alerts_within(problem) - cover.sums[2]
    alerts, own = problem.alerts[new], problem.classes[new] == problem.labels[0]
    if room <= 0 or int(alerts.sum()) <= room:
        return None
    hits, best = problem.times[new] * own, None
    for j, column in enumerate(cells.columns):
        if not column.is_ordered:
            continue
        last = int(cells.n_bins[j]) - int(cells.has_missing[j]) - 1
        bins = rule.box.get(j, (0, last, False))
        assert not isinstance(bins, frozenset)
        low, high, missing = bins
        if low > high:
            continue
        codes = cells.codes[new, j].astype(np.intp)
        rows, good = (np.bincount(codes, each, last + 2)[: last + 1] for each in (alerts, hits))
        gone = int(alerts[codes > last].sum()) if missing else 0
        for is_low in (True, False):
            step = slice(low, high + 1) if is_low else slice(high, low - 1 if low else None, -1)
            n_fitting = int((np.cumsum(rows[step]) + gone <= room).sum())
            if not n_fitting:
                continue
            end = low + n_fitting - 1 if is_low else high - n_fitting + 1
            run = (low, end, missing) if is_low else (end, high, missing)
            box: Box = {**rule.box, j: run}
            got = (int(good[step][:n_fitting].sum()), -cells.length(box))
            if cells.allows(j, run) and cells.is_one_of_each_group(box):
                best = max(best, (got, j, run)) if best is not None else (got, j, run)
    if best is None or best[0][0] < cover.least:
        return None
    if len(rule.box.keys() | {best[1]}) > problem.max_rule_length:
        return None
    found = cover.place({**rule.box, best[1]: best[2]})
    return found if cover.allows(found) else None


def fill(
    cover: Cover, random: Generator, pool: Pool, tries: int, stop: Callable[[], bool]
) -> list[Candidate]:
    """Boxes by gain per length as long as all ceilings hold; at several prices of an inlier, of
    which the set that explains most is taken."""
    best: tuple[float, int, list[Candidate]] = (math.inf, 0, [])
    problem = cover.problem
    own = problem.classes == problem.labels[0]
    is_scarce = alerts_within(problem) < int(problem.alerts[own].sum())
    if is_scarce:  # with fewer alerts than outliers a false one is one outlier less
        cover.charge_inliers(1.0)
    found_at = cover.ratio
    for ratio in (1.0, *RATIOS):
        cover.become([])
        cover.lean(ratio)
        while not stop() and not cover.is_full:
            found = []
            wanted = np.flatnonzero(cover.kernel.row_gains > 0)
            for t in range(tries if len(wanted) else 0):
                seed = int(wanted[random.integers(len(wanted))]) if t % 2 else -1
                ease = EASES[t % len(EASES)]
                longest = cover.problem.max_rule_length
                for rule, gain in begun(cover, longest, ease, random, seed):
                    pool.remember(rule)
                    found.append((gain / rule.length**POWER, rule))
            found.sort(key=lambda each: -each[0])
            smaller = [narrowed(cover, rule) for _, rule in found[:NARROWED]]
            for rule in [*(rule for _, rule in found), *(rule for rule in smaller if rule)]:
                cover.add(rule)
                if cover.is_within():
                    pool.remember(rule)
                    break
                cover.remove(rule)
            else:
                break
        if (cover.shortfall(), -cover.sums[0]) < best[:2]:
            best = cover.shortfall(), -cover.sums[0], list(cover.rules)
            found_at = cover.ratio
        cover.lean(1 / ratio)
    if is_scarce:
        cover.charge_inliers(found_at)
    cover.become(best[2])
    if not best[2]:  # no box that is worth most is within the ceilings; smaller ones may be
        for rule in sorted(pool.rules, key=lambda each: -each.hits):
            cover.add(rule)
            if not cover.is_within():
                cover.remove(rule)
    return list(cover.rules)


def fit_in(cover: Cover) -> None:
    """Let rules go until there are no more of them than there may be: those that add least."""
    most = cover.problem.most_rules
    while most is not None and len(cover.rules) > most:
        values = []
        for rule in list(cover.rules):
            before = list(cover.rules)
            cover.remove(rule)
            values.append((cover.value, rule))
            cover.become(before)
        cover.remove(max(values, key=lambda each: each[0])[1])


def cut_back(cover: Cover, random: Generator, pool: Pool) -> None:
    """Rules are taken out, and put back as much smaller as they have to be, until no more rows are
    alerts than may be."""
    most = alerts_within(cover.problem)
    for rule in some(cover.rules, len(cover.rules), random):
        if cover.sums[2] <= most:
            return
        cover.remove(rule)
        smaller = narrowed(cover, rule)
        if smaller is not None:
            cover.add(smaller)
            if cover.is_within():
                pool.remember(smaller)
            else:
                cover.remove(smaller)


def shorten(
    cover: Cover, random: Generator, pool: Pool, pace: Pace, clock: Clock, rounds: int,
    entries: int, until: float,
) -> tuple[int, int]:  # fmt: skip
    """Shorter sets that are all that is wished, and the bound that no choice beats."""
    bound = n_candidates = 0
    if pace.is_over(until) and cover.is_enough():  # however little is left: no more than is wished
        shrink(cover, lambda _: None)
    for turn in range(1, rounds + 1):
        if turn == rounds:
            cover.least = cover.problem.min_outliers
        if cover.is_enough():
            search(cover, random, pool, pace, until * turn / rounds, lambda _: None)
        candidates = candidates_of(cover.problem, pool.rules, cover.rules)
        clock.say(f"{SHORTENING} {cover.length}, choosing among {len(candidates)} rules")
        is_enough = cover.is_enough()
        ceiling = cover.length if is_enough else sum(rule.length for rule in candidates) + 1
        choice = choose(cover.problem, candidates, ceiling, clock.seconds_left(), entries)
        if choice is not None:
            if choice.rules is not None:
                cover.become(choice.rules)
                pace.found_shorter()
            if cover.is_enough():
                bound, n_candidates = choice.bound, choice.n_candidates
    return min(bound, cover.length), n_candidates


def explain_most(
    cover: Cover, random: Generator, pool: Pool, pace: Pace, clock: Clock, entries: int,
    until: float, soft: tuple[Limit, ...] = (),
) -> tuple[int, int]:  # fmt: skip
    """As many outliers as can be explained within the limits; the weight that no choice among the
    candidates explains more than, and how many these are.

    `soft` are floors that could not be had: what is nearest to them goes first."""
    problem = cover.problem
    room = problem.most_length or max(USUAL_LENGTH, cover.length)

    def rank() -> tuple[float, float, int, int]:
        missed = sum(limit.shortfall(cover.sums) for limit in soft)
        return -cover.shortfall(), -missed, cover.sums[0], -cover.length

    price_bounds(cover, room)
    fit_in(cover)
    best, most = list(cover.rules), rank()

    def take(rules: Sequence[Candidate]) -> None:
        nonlocal best, most
        cover.become(rules)
        if rank() > most:
            best, most = list(rules), rank()
            pace.found_shorter()

    began = pace.share
    while not pace.is_over(until):
        pace.step()
        redraw(cover, some(cover.rules, 4, random))
        take(list(cover.rules))
        before, value = list(cover.rules), cover.value
        price = max(cover.value, 1) / room
        renew(cover, room, price, random, pool, enough=False)
        is_over = cover.sums[2] > alerts_within(problem)
        if is_over:
            cut_back(cover, random, pool)
        if rank() > most:
            take(list(cover.rules))
        cooling = max(0.0, 1 - (pace.share - began) / max(until - began, 1e-9))
        if cover.value < value - cooling * random.random() * price:
            cover.become(before)
        if is_over:
            cover.lean(LEAN)
        elif cover.shortfall() == 0:
            cover.lean(1 / LEAN)
        else:
            lean(cover)
    cover.become(best)
    candidates = candidates_of(problem, pool.rules, best)
    clock.say(f"learning: choosing among {len(candidates)} rules")
    is_within = cover.shortfall() == 0
    explained = cover.sums[0] if is_within else 0
    choice = None
    if all(limit.name != "min_score" for limit in soft):  # then more is not always better
        choice = most_explained(problem, candidates, explained, clock.seconds_left(), entries)
    bound, n_candidates = (0, 0) if choice is None else (choice.bound, choice.n_candidates)
    if choice is not None and choice.rules is not None:
        take(choice.rules)
        cover.become(best)
    if cover.shortfall() == 0:
        _as_short(cover, pool, clock, entries, soft)
    return bound, n_candidates


def _as_short(
    cover: Cover, pool: Pool, clock: Clock, entries: int, soft: tuple[Limit, ...]
) -> None:
    """The shortest that explain as much as these do, and are as near to floors that are missed."""
    held = cover.sums[0]
    as_much = [Limit("min_recall", 1, 0, held - 1, float(max(held, 1)))]
    as_much += [limit._replace(floor=limit.of(cover.sums) - 1) for limit in soft]
    problem = replace(cover.problem, limits=(*cover.problem.limits, *as_much))
    before = list(cover.rules)
    cover.problem = problem
    shrink(cover, lambda _: None)
    candidates = candidates_of(problem, pool.rules, cover.rules)
    choice = choose(problem, candidates, cover.length, clock.seconds_left(), entries)
    if choice is not None and choice.rules is not None:
        cover.become(choice.rules)
    if not cover.is_enough():
        cover.become(before)


def without_soft(problem: Problem) -> tuple[Problem, tuple[Limit, ...]]:
    """The wishes without those that give way, and these."""
    hard = tuple(limit for limit in problem.limits if limit.name not in SOFT)
    soft = tuple(limit for limit in problem.limits if limit.name in SOFT)
    return replace(problem, limits=hard or (Limit("some", 1, 0, 0, 1.0),)), soft
