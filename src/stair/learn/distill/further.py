"""One more rule: what it would add to a set that is above the floor already."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.random import Generator

from stair.learn.distill.boxes import EASES, begun
from stair.learn.distill.cover import Candidate, Cover
from stair.learn.distill.select import POWER, Pool

# Of the candidates that the search remembers so many are held against what is not explained.
MOST: Final = 2000


def next_rule(cover: Cover, random: Generator, pool: Pool) -> Candidate | None:
    """The rule that adds most for its length to the present ones: one that the search remembers, or
    a box that is drawn now. None where nothing adds."""
    if len(cover.problem.labels) != 1 or cover.must_stop():
        return None
    gains, times = cover.kernel.row_gains, cover.problem.times
    best: tuple[float, Candidate] | None = None

    def look_at(rule: Candidate) -> None:
        nonlocal best
        here = gains[rule.rows]
        gain = int(here.sum())
        if gain <= 0 or int(times[rule.rows[here > 0]].sum()) < cover.least:
            return
        score = gain / rule.length**POWER
        if best is None or score > best[0]:
            best = score, rule

    for rule in pool.rules[-MOST:]:
        look_at(rule)
    for ease in EASES[::2]:
        for rule, _ in begun(cover, cover.problem.max_rule_length, ease, random):
            look_at(rule)
        if cover.must_stop():
            break
    return None if best is None else best[1]


def has_more(cover: Cover) -> bool:
    """Whether enough outliers are left for a rule of their own."""
    left = cover.kernel.row_gains > 0
    return int(cover.problem.times[np.flatnonzero(left)].sum()) >= cover.least
