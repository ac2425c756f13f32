"""Which boxes together: the shortest set above the floor.

Boxes are taken greedily past the floor; then what costs least is dropped, down to it. From there
on the search has one clause less to spend than the best set so far: a few rules are taken out and
looked for anew, until the floor is reached with that length too. And so on, shorter and shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.random import Generator

from stair.learn.distill.boxes import EASES, FULL, around, begun, improved, with_clause, without
from stair.learn.distill.cells import Box
from stair.learn.distill.clock import Clock
from stair.learn.distill.cover import Candidate, Cover

# The greedy choice takes the box with the largest gain / length**POWER.
POWER: Final = 0.8
# How far past the floor it goes, as a share of the floor, before anything is dropped.
PAST: Final = 0.06
# How many rules are taken out at once, and how many others are drawn anew each time.
TAKEN_OUT: Final = (1, 1, 2, 2, 3)
DRAWN_ANEW: Final = 4
# A step back is allowed up to this share of what a clause is worth, less and less as time goes by.
HEAT: Final = 0.15
# The search ends early where nothing shorter was found in the second half of what is spent, but
# not before this part of the budget.
PATIENCE: Final = 0.25
# What a step of the search costs beside what it looks at.
STEP: Final = 10_000
# What a single box may cost, where the whole budget is less.
MOST_AT_ONCE: Final = 100_000_000
# Whether a single clause is enough is looked at first, so that nothing shorter is looked for.
SHORTEST: Final = 2
# How many candidate rules are remembered for the exact choice.
REMEMBERED: Final = 20_000
# A bound costs this part of what an attribute is worth: among rules as long, those that are open
# to one side are preferred.
BOUND: Final = 0.02
# With several wishes an inlier's cost changes by this factor at a time.
LEAN: Final = 1.2


class Pace:
    """How much has been looked at of what may be. Work is counted, so that results are the same
    on a slow machine; a clock stops the search early where somebody asked for that."""

    def __init__(self, cover: Cover, budget: int, clock: Clock) -> None:
        self._kernel, self._budget, self._clock = cover.kernel, budget, clock
        self._last = 0.0  # the part that was spent when something shorter was found
        self._steps = 0
        cover.must_stop = clock.is_late
        cover.most_at_once = max(budget, MOST_AT_ONCE)

    @property
    def share(self) -> float:
        """The part of the budget that is spent."""
        return float((self._kernel.work + STEP * self._steps) / self._budget)

    def step(self) -> None:
        """A step counts even where there was nothing to look at, so that every search ends."""
        self._steps += 1

    def is_over(self, share: float = 1.0) -> bool:
        """Whether that part of the budget is spent, or the patience, or the time."""
        return self.share >= min(share, max(PATIENCE, 2 * self._last)) or self.is_late

    def found_shorter(self) -> None:
        self._last = self.share

    @property
    def is_late(self) -> bool:
        return self._clock.is_late()


class Pool:
    """The candidate rules that were worth something when they were found."""

    def __init__(self) -> None:
        self._rules: dict[tuple[int, frozenset[tuple[int, object]]], Candidate] = {}

    def remember(self, rule: Candidate) -> None:
        if len(self._rules) < REMEMBERED:
            self._rules.setdefault((rule.label, frozenset(rule.box.items())), rule)

    @property
    def rules(self) -> list[Candidate]:
        return list(self._rules.values())


def construct(
    cover: Cover, random: Generator, pool: Pool, tries: int, stop: Callable[[], bool]
) -> None:
    """Take boxes by gain per length until the floor is well passed."""
    problem = cover.problem
    target = problem.floor + PAST * abs(problem.floor)

    def is_past() -> bool:
        return cover.is_enough() if problem.limits else cover.value > target

    while not is_past() and not stop() and not cover.is_full:
        best: tuple[float, Candidate] | None = None
        for label in range(len(problem.labels)):
            if cover.must_stop():
                break
            cover.aim_at(label)
            wanted = np.flatnonzero(cover.kernel.row_gains > 0)
            for t in range(tries if len(wanted) else 0):
                seed = int(wanted[random.integers(len(wanted))]) if t % 2 else -1
                ease = EASES[t % len(EASES)]
                for rule, gain in begun(cover, problem.max_rule_length, ease, random, seed):
                    pool.remember(rule)
                    score = gain / rule.length**POWER
                    if best is None or score > best[0]:
                        best = score, rule
        if best is None:
            return
        cover.add(best[1])


def redraw(cover: Cover, rules: list[Candidate]) -> None:
    """Each of these rules drawn anew, given all the others; a rule that adds nothing goes."""
    for rule in rules:
        if cover.must_stop():
            return
        cover.aim_at(rule.label)
        cover.remove(rule)
        better, gain = improved(cover, rule.box)
        if gain > 0:
            cover.add(rule if better.box == rule.box else better)


def cheapest(cover: Cover, rule: Candidate) -> tuple[float, Box | None]:
    """The loss of worth per length of the clause, or of the whole rule, whose going costs least.

    The second is what is left of the box, None where the rule goes.
    """
    cover.aim_at(rule.label)
    cover.remove(rule)
    found = around(cover, rule.box)
    cover.add(rule)
    gain = int(found.totals[-1]) / FULL
    best: tuple[float, Box | None] = (gain / rule.length, None)
    names = list(rule.box)
    if len(names) > 1:
        k = int(found.totals[:-1].argmax())
        loss = gain - int(found.totals[k]) / FULL
        if loss < best[0]:
            best = loss, without(rule.box, names[k])
    return best


class Losses:
    """What the going of each rule, or of one of its clauses, would cost: cheapest first.

    A cost is looked up anew when its turn comes, not whenever another rule changes.
    """

    def __init__(self, cover: Cover) -> None:
        self._cover = cover
        self._known: dict[Candidate, float] = {}

    def drop(self) -> None:
        """Let the cheapest go; the rule that covers least where there is no time to look."""
        cover = self._cover
        if cover.must_stop():
            cover.remove(min(cover.rules, key=lambda rule: rule.hits))
            return
        self._known = {r: self._known[r] for r in cover.rules if r in self._known}
        for rule in list(cover.rules):
            if rule not in self._known:
                self._known[rule] = cheapest(cover, rule)[0]
        while True:
            order = sorted(cover.rules, key=self._known.__getitem__)
            rule = order[0]
            cost, box = cheapest(cover, rule)
            self._known[rule] = cost
            if len(order) == 1 or cost <= self._known[order[1]]:
                break
        cover.remove(rule)
        if box is not None:
            shorter = cover.place(box)
            if cover.problem.is_precise(shorter.rows):
                cover.add(shorter)


def shrink(cover: Cover, say: Callable[[int], None]) -> None:
    """Drop what costs least while the floor holds."""
    losses = Losses(cover)
    while cover.rules and not cover.must_stop():
        say(cover.length)
        before = list(cover.rules)
        losses.drop()
        if not cover.is_enough():
            redraw(cover, list(cover.rules))
        if not cover.is_enough():
            cover.become(before)
            return


def find(
    cover: Cover, room: int, price: float, random: Generator, pool: Pool, tries: int
) -> Candidate | None:
    """A box of at most `room` attributes that gains most beyond `price` for each attribute."""
    problem = cover.problem
    if len(problem.labels) > 1:
        cover.aim_at(int(random.integers(len(problem.labels))))
    wanted = np.flatnonzero(cover.kernel.row_gains > 0)
    if not len(wanted):
        return None
    longest = min(room, problem.max_rule_length)
    best: tuple[float, Candidate] | None = None
    for _ in range(tries):
        if cover.must_stop():
            break
        seed = int(wanted[random.integers(len(wanted))]) if random.random() < 0.6 else -1
        ease = EASES[random.integers(len(EASES))]
        some = random.random(len(problem.cells.columns)) < 0.5 if random.random() < 0.5 else None
        for rule, gain in begun(cover, longest, ease, random, seed, 2, some):
            pool.remember(rule)
            profit = gain - price * rule.length
            if rule.length <= room and (best is None or profit > best[0]):
                best = profit, rule
    return None if best is None else best[1]


def lengthen(cover: Cover, rule: Candidate) -> None:
    """Give a rule the clause that gains most, where one gains."""
    cover.aim_at(rule.label)
    cover.remove(rule)
    found = around(cover, rule.box, drops=False)
    sums = found.sums[-1]
    column = int(sums.argmax())
    if sums[column] > found.totals[-1]:
        longer = cover.place(with_clause(cover, rule.box, column, found, -1))
        if cover.allows(longer):
            rule = longer
    cover.add(rule)


def search(
    cover: Cover,
    random: Generator,
    pool: Pool,
    pace: Pace,
    until: float,
    say: Callable[[int], None],
) -> None:
    """Shorter and shorter sets, from one that reaches the floor, until the budget is spent."""
    floor = cover.problem.scale
    losses = Losses(cover)
    best, length = list(cover.rules), cover.length
    began = pace.share
    while not pace.is_over(until) and length > SHORTEST:
        price_bounds(cover, length)
        pace.step()
        room = length - 1
        while cover.length > room:
            losses.drop()
        while not cover.is_enough() and not pace.is_over(until):
            pace.step()
            redraw(cover, some(cover.rules, DRAWN_ANEW, random))
            if cover.is_enough():
                break
            lean(cover)
            before, value = list(cover.rules), cover.value
            renew(cover, room, floor / room if room else floor, random, pool)
            cooling = 1 - (pace.share - began) / (until - began)
            step_back = HEAT * cooling * random.random() * floor / max(room, 1)
            if not cover.is_enough() and cover.value < value - step_back:
                cover.become(before)
        if cover.is_enough():
            shrink(cover, say)
            best, length = list(cover.rules), cover.length
            pace.found_shorter()
            say(length)
    cover.become(best)


def settle(cover: Cover, random: Generator, pool: Pool, pace: Pace, share: float) -> None:
    """Of the sets that are as long, one that is worth more and has fewer bounds: what is far above
    the floor on these rows is more likely to be above it on others."""
    room, floor = cover.length, cover.problem.scale
    price_bounds(cover, room)
    best, most = list(cover.rules), _net(cover)
    began = last = pace.share
    while not pace.is_late and pace.share < min(began + share, last + share / 2):
        pace.step()
        redraw(cover, some(cover.rules, DRAWN_ANEW, random))
        before, net = list(cover.rules), _net(cover)
        if net > most and cover.is_enough():
            best, most, last = before, net, pace.share
        renew(cover, room, floor / room, random, pool, enough=False)
        if _net(cover) < net:
            cover.become(before)
    cover.become(best)


def price_bounds(cover: Cover, length: int) -> None:
    cover.kernel.price = round(FULL * BOUND * cover.problem.scale / max(length, 1))
    cover.charge(length)


def lean(cover: Cover) -> None:
    """With several wishes: inliers cost more where too many of them are covered, and less where
    there are outliers too few."""
    limits = cover.problem.limits
    if not limits:
        return
    missed = {limit.name for limit in limits if limit.of(cover.sums) <= limit.floor}
    too_many, too_few = bool(missed & {"min_precision", "max_alerts"}), "min_recall" in missed
    if too_many != too_few:
        cover.lean(LEAN if too_many else 1 / LEAN)


def _net(cover: Cover) -> int:
    """What the rules are worth less the price of their bounds."""
    cells = cover.problem.cells
    bounds = sum(cells.n_bounds(j, bins) for rule in cover.rules for j, bins in rule.box.items())
    return cover.value - int(cover.kernel.price) * bounds // FULL


def climb(cover: Cover, random: Generator, pool: Pool, pace: Pace, until: float) -> None:
    """Longer sets that are worth more, from one that does not reach the floor, until it does."""
    floor = cover.problem.scale
    while not cover.is_enough() and not pace.is_over(until):
        pace.step()
        redraw(cover, some(cover.rules, DRAWN_ANEW, random))
        lean(cover)
        before, value = list(cover.rules), cover.value
        renew(cover, cover.length + 3, floor / (cover.length + 3), random, pool)
        if cover.value < value:
            cover.become(before)


def renew(
    cover: Cover, room: int, price: float, random: Generator, pool: Pool, enough: bool = True
) -> None:
    """Take a few rules out and look for others in their place, until they are enough or, where
    that is not enough, there is no room."""
    for rule in some(cover.rules, TAKEN_OUT[random.integers(len(TAKEN_OUT))], random):
        cover.remove(rule)
    price *= random.uniform(0.3, 1.0)
    new = []
    for _ in range(2 * room):
        if cover.length >= room or cover.is_full or (enough and cover.is_enough()):
            break
        found = find(cover, room - cover.length, price, random, pool, tries=2)
        if found is not None:
            cover.add(found)
            new.append(found)
        elif random.random() < 0.5:
            break
    redraw(cover, new)
    for rule in cover.rules:
        pool.remember(rule)
    if cover.length < room and cover.rules:
        rule = cover.rules[random.integers(len(cover.rules))]
        if rule.length < cover.problem.max_rule_length:
            lengthen(cover, rule)


def some(rules: list[Candidate], most: int, random: Generator) -> list[Candidate]:
    if not rules:
        return []
    return [rules[k] for k in random.choice(len(rules), min(most, len(rules)), replace=False)]
