"""The search as a whole: starts, turns of search and exact choice, and how long it may take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from stair.learn.distill.boxes import FULL, around, with_clause
from stair.learn.distill.clock import SHORTENING, Clock
from stair.learn.distill.cover import Candidate, Cover, Problem
from stair.learn.distill.exact import candidates_of, choose
from stair.learn.distill.further import has_more, next_rule
from stair.learn.distill.select import (
    SHORTEST,
    Losses,
    Pace,
    Pool,
    climb,
    construct,
    redraw,
    search,
    settle,
    shrink,
)
from stair.learn.distill.starts import boxes_of
from stair.learn.distill.wished import (
    alerts_within,
    every_box,
    explain_most,
    fill,
    first_candidates,
    fit_in,
    shorten,
    without_soft,
)
from stair.rules.objective import least_outliers
from stair.rules.rule_set import Leaf

Effort: TypeAlias = Literal["fast", "normal"]
EFFORTS: Final[tuple[str, ...]] = get_args(Effort)

# The part of the budget that is spent at the end on the choice among sets as long.
SETTLE: Final = 0.06
# Where the bound is below the length by more than this part, so few nodes of an exact search as are
# looked at find nothing.
WIDEST_GAP: Final = 0.2


@dataclass(frozen=True, slots=True)
class _Plan:
    """How much an effort may look at, and what it spends it on."""

    per_value: int  # work for each value of the table, while it is small
    base: int  # up to so much
    more_per_value: int  # and for each value of any table
    most: int
    tries: int  # boxes that are begun for each rule of the greedy choice
    rounds: int  # how often the search and the exact choice take turns
    entries: int  # of the largest programme for an exact choice
    # No further first set is made once one is above the floor and this part of the budget is spent.
    start: float


_PLANS: Final = {
    "fast": _Plan(
        100_000, 500_000_000, 200, 2_000_000_000, tries=6, rounds=2, entries=6_000, start=0.28
    ),
    "normal": _Plan(
        200_000, 1_000_000_000, 200, 4_000_000_000, tries=6, rounds=2, entries=6_000, start=1.0
    ),
}


class Chosen(NamedTuple):
    """The shortest set that was found, whether it reaches the floor, and how short it could be."""

    rules: list[Candidate]
    is_enough: bool
    bound: int = 0
    n_candidates: int = 0
    further: Candidate | None = None  # a rule that would add most to these
    most: int = 0  # where as much as possible was to be explained: no choice explains more


def shortest_set(
    problem: Problem,
    grown: Sequence[Sequence[Leaf]],
    *,
    effort: Effort,
    max_total_length: int | None,
    clock: Clock,
    seed: int,
    wants_most: bool = False,
) -> Chosen:
    """The shortest set of boxes above the floor that the effort finds.

    Rules that cover many outliers are good ones to begin with, also where smaller ones are
    allowed: those are looked for in the last turn.
    """
    plan = _PLANS[effort]
    cover, pool, random = Cover(problem), Pool(), np.random.default_rng(seed)
    pace = _pace(cover, plan, clock)
    if problem.limits:
        return _wished_set(cover, grown, random, pool, plan, pace, clock, wants_most)
    n_wanted = int(problem.times[problem.classes != problem.default].sum())
    usual = max(problem.min_outliers, least_outliers(None, n_wanted))

    shortest = math.inf

    def tell(length: int) -> None:
        nonlocal shortest
        if cover.is_enough() and length < shortest:
            shortest = length
            clock.say(f"{SHORTENING} {length}")

    n_columns = len(problem.cells.columns)
    single = None if cover.is_enough() else _single_clause(cover)
    if single is not None and single.length == 1:
        cover.add(single)
        return Chosen(cover.rules, True, 1, n_columns, _further(cover, random, pool, usual))
    for cover.least in sorted({usual, problem.min_outliers}, reverse=True):
        if single is not None:
            pool.remember(single)
        _start(cover, grown, random, pool, plan, pace, tell)
        if cover.is_enough():
            break
    if not cover.is_enough():
        _choose_among_all(cover, pool, plan, clock)
    tell(cover.length)
    pace.found_shorter()
    # Where no single clause is enough, two are the shortest there can be.
    is_shortest = single is None and cover.is_enough() and cover.length == 2
    bound, n_candidates = (2, n_columns) if is_shortest else (0, 0)
    for turn in range(1, plan.rounds + 1):
        if not cover.is_enough() or cover.length <= SHORTEST:
            break
        if turn == plan.rounds:
            cover.least = problem.min_outliers
        search(cover, random, pool, pace, turn / plan.rounds, tell)
        if turn == 1:
            _remember_all(cover, pool)
        candidates = candidates_of(problem, pool.rules, cover.rules)
        clock.say(f"{SHORTENING} {shortest}, choosing among {len(candidates)} rules")
        left = clock.seconds_left()
        choice = choose(problem, candidates, cover.length, left, plan.entries, WIDEST_GAP)
        if choice is not None:
            bound, n_candidates = choice.bound, choice.n_candidates
            if choice.rules is not None:
                cover.become(choice.rules)
                pace.found_shorter()
                tell(cover.length)
    if cover.is_enough() and cover.rules:
        settle(cover, random, pool, pace, SETTLE)
    _cut(cover, max_total_length)
    further = _further(cover, random, pool, usual)
    return Chosen(list(cover.rules), cover.is_enough(), bound, n_candidates, further)


def _pace(cover: Cover, plan: _Plan, clock: Clock) -> Pace:
    size = cover.problem.cells.codes.size
    budget = min(plan.per_value * size, plan.base) + plan.more_per_value * size
    return Pace(cover, min(budget, plan.most), clock)


def _wished_set(
    cover: Cover,
    grown: Sequence[Sequence[Leaf]],
    random: np.random.Generator,
    pool: Pool,
    plan: _Plan,
    pace: Pace,
    clock: Clock,
    wants_most: bool,
) -> Chosen:
    """The same where more is wished than a floor: the shortest set that is all of it, or the one
    that explains most. What cannot be had gives way, and the ceilings stay."""
    problem = cover.problem
    n_wanted = int(problem.times[problem.classes != problem.default].sum())
    usual = max(problem.min_outliers, least_outliers(None, n_wanted))
    cover.least = problem.min_outliers
    first_candidates(cover, pool)
    # A rule that covers more outliers than may be alerts is none, however long one looks for it.
    few = {min(usual, max(alerts_within(problem), problem.min_outliers)), problem.min_outliers}
    filled: list[Candidate] = []  # what keeps to the ceilings, whatever else it misses
    for turn, cover.least in enumerate(sorted(few, reverse=True), start=1):
        filled = fill(cover, random, pool, plan.tries, partial(pace.is_over, 0.15 * turn)) or filled
        if wants_most and problem.most_length is not None:
            for leaves in grown:
                _remember(cover, leaves, pool)
        else:
            _start(cover, grown, random, pool, plan, pace, lambda _: None)
        if cover.is_enough():
            break
    pace.found_shorter()
    bound = n_candidates = most = 0
    is_sized = not wants_most or problem.most_length is None
    if is_sized:  # whoever says how much is enough has the shortest that are
        until = 0.5 if wants_most else 0.8
        bound, n_candidates = shorten(
            cover, random, pool, pace, clock, plan.rounds, plan.entries, until
        )
        cover.problem = replace(problem, most_length=problem.most_length or cover.length)
    is_enough = cover.is_enough()
    cover.least = problem.min_outliers
    if wants_most and (is_enough or not is_sized):
        most, n_candidates = explain_most(cover, random, pool, pace, clock, plan.entries, 0.8)
        bound, is_enough = 0, cover.is_enough()
    elif not is_enough:
        cover.problem, soft = without_soft(problem)
        if not cover.is_enough():
            cover.become(filled)
        explain_most(cover, random, pool, pace, clock, plan.entries, 0.9, soft)
        bound = n_candidates = 0
        cover.problem = problem
        if cover.is_enough():  # nothing has to give way after all
            is_enough = True
            pace.found_shorter()
            bound, n_candidates = shorten(
                cover, random, pool, pace, clock, plan.rounds, plan.entries, 0.9
            )
            if wants_most:
                cover.problem = replace(problem, most_length=problem.most_length or cover.length)
                most, n_candidates = explain_most(
                    cover, random, pool, pace, clock, plan.entries, 1.0
                )
                bound = 0
    return Chosen(list(cover.rules), is_enough, bound, n_candidates, None, most)


def _further(cover: Cover, random: np.random.Generator, pool: Pool, least: int) -> Candidate | None:
    """What one more rule would be, where the floor is reached and enough outliers are left."""
    cover.least = least
    return next_rule(cover, random, pool) if cover.is_enough() and has_more(cover) else None


def _single_clause(cover: Cover) -> Candidate | None:
    """A clause that reaches the floor by itself, where there is one: one look at each column. A
    long list of values counts as more than one attribute: others go first."""
    best: Candidate | None = None
    for label in range(len(cover.problem.labels)):
        cover.aim_at(label)
        found = around(cover, {})
        gains = found.sums[-1] // FULL
        for column in np.argsort(-gains, kind="stable").tolist():
            if cover.value + gains[column] <= cover.problem.floor:
                break
            rule = cover.place(with_clause(cover, {}, column, found, -1))
            if cover.allows(rule) and (best is None or rule.length < best.length):
                best = rule
                if rule.length == 1:
                    return rule
    return best


def _start(
    cover: Cover,
    grown: Sequence[Sequence[Leaf]],
    random: np.random.Generator,
    pool: Pool,
    plan: _Plan,
    pace: Pace,
    tell: Callable[[int], None],
) -> None:
    """The shortest of several first sets: STAIR's rules at several floors, and boxes."""
    starts, problem = [], cover.problem
    for leaves in (*grown, None):
        cover.become([])
        if leaves is None:
            construct(cover, random, pool, plan.tries, lambda: pace.is_over(0.5))
        else:
            _take_leaves(cover, leaves, pool)
        fit_in(cover)
        if not cover.is_enough():
            climb(cover, random, pool, pace, 0.5 if not problem.limits else 0.3)
        redraw(cover, list(cover.rules))
        if cover.is_enough():
            shrink(cover, tell)
        rank: float = cover.length if cover.is_enough() else -cover.value
        if problem.limits and not cover.is_enough():
            rank = cover.shortfall()
        starts.append(((not cover.is_enough(), rank), list(cover.rules)))
        if cover.is_enough() and (cover.length <= SHORTEST or pace.share > plan.start):
            break
    cover.become(min(starts, key=lambda start: start[0])[1])


def _remember_all(cover: Cover, pool: Pool) -> None:
    """Every box there is, of a small table, as candidates: what was drawn may lack one."""
    for rule in every_box(cover) or ():
        pool.remember(rule)


def _choose_among_all(cover: Cover, pool: Pool, plan: _Plan, clock: Clock) -> None:
    """A set that is enough, where nothing that was drawn is, of all boxes of a small table."""
    _remember_all(cover, pool)
    candidates = candidates_of(cover.problem, pool.rules, cover.rules)
    longest = sum(rule.length for rule in candidates) + 1
    choice = choose(cover.problem, candidates, longest, clock.seconds_left(), plan.entries)
    if choice is not None and choice.rules is not None:
        cover.become(choice.rules)


def _cut(cover: Cover, most: int | None) -> None:
    """Let go what costs least, down to a total length that somebody asked for."""
    losses = Losses(cover)
    while most is not None and cover.length > most:
        losses.drop()
    if most is not None:
        redraw(cover, list(cover.rules))


def _remember(cover: Cover, leaves: Sequence[Leaf], pool: Pool) -> None:
    """STAIR's own rules, as candidates."""
    for box, _ in boxes_of(cover.problem.cells, leaves):
        rule = cover.place(box)
        if cover.allows(rule):
            pool.remember(rule)


def _take_leaves(cover: Cover, leaves: Sequence[Leaf], pool: Pool) -> None:
    """STAIR's own rules, those that cover enough outliers."""
    problem = cover.problem
    for box, label in boxes_of(problem.cells, leaves):
        cover.aim_at(problem.labels.index(label))
        rule = cover.place(box)
        if cover.allows(rule) and not cover.is_full:
            cover.add(rule)
            pool.remember(rule)
