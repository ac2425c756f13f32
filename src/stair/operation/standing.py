"""How rules stand: what they had when they were learned, what they have now, and whether that is
more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

from stair.operation.statistics import (
    FOR_COVERAGE,
    FOR_PRECISION,
    Share,
    can_tell,
    chance_of_fall,
    chance_of_part,
    chance_of_rise,
    holm,
)
from stair.rules.counted import Counted
from stair.rules.record import Record
from stair.rules.rule_set import Rule

if TYPE_CHECKING:
    from stair.export.json import Rulebook

State: TypeAlias = Literal["as before", "decayed", "faded", "grown", "too few rows", "not known",
                           "cannot be asked"]  # fmt: skip

# What a rule covers changes with what there is to cover: half as much, or twice, is a change.
COVERAGE_KEPT: Final = 0.5
COVERAGE_TIMES: Final = 2.0
# All rules together explain less than this part of the outliers that they did: there are others.
EXPLAINED_KEPT: Final = 0.9


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a rule, or of all: how often it is right, what part of all rows it covers, and of the
    rows with its label; what is not known is None."""

    right: Share | None = None
    covers: Share | None = None
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """One rule, then and now."""

    number: int  # among the rules in force, from 1
    rule: Rule
    record: Record
    then: Figures
    now: Figures
    state: State = "as before"
    since: str = ""  # the period in which it changed
    missing: tuple[str, ...] = ()  # columns that it speaks of and that are not there
    periods: tuple[Figures, ...] = ()
    recent: Figures = Figures()  # now, from the period on in which it changed

    @property
    def is_alarm(self) -> bool:
        """Whether somebody has to look at it. A rule that covers much more is no worse where labels
        say that it is right; without them it may be a flood of false alarms."""
        no_labels = self.now.right is None
        return self.state in ("decayed", "faded", "cannot be asked") or (
            self.state == "grown" and no_labels
        )


def figures_then(rule: Rule, record: Record, place: int) -> Figures:
    """What a rule had on the rows that it was learned from, as far as its file says it."""
    if record.evidence is None or not rule.counts:
        return Figures()
    rows, hits = round(rule.rows), round(rule.hits)
    totals = record.evidence.totals
    return Figures(
        Share(hits, rows), Share(rows, round(sum(totals))), Share(hits, round(totals[place]))
    )


def figures_now(counted: Counted, number: int, *, has_labels: bool) -> Figures:
    """What a rule has on rows that were counted."""
    figures = counted.of_rules[number]
    covers = Share(figures.rows, counted.n_rows)
    if not has_labels:
        return Figures(covers=covers)
    return Figures(Share(figures.hits, figures.rows), covers, Share(figures.hits, figures.total))


def standings_of(book: Rulebook, numbers: Sequence[int], counted: Counted) -> tuple[Standing, ...]:
    """How some rules of a book (by their places in `kept`) do on rows that were counted for these
    rules alone, in this order."""
    found = []
    for k, number in enumerate(numbers):
        rule, record = book.kept.rules[number], book.records[number]
        now = figures_now(counted, k, has_labels=True)
        then = figures_then(rule, record, counted.places[k])
        found.append(Standing(book.in_force.index(number) + 1, rule, record, then, now,
                              periods=(now,)))  # fmt: skip
    return judged(found, [""])


def added(parts: Sequence[Figures]) -> Figures:
    """The figures of several periods as those of one."""

    def one(shares: Sequence[Share | None]) -> Share | None:
        known = [share for share in shares if share is not None]
        if not known:
            return None
        return Share(sum(s.hits for s in known), sum(s.rows for s in known))

    return Figures(
        one([p.right for p in parts]), one([p.covers for p in parts]), one([p.share for p in parts])
    )


def judged(standings: Sequence[Standing], names: Sequence[str]) -> tuple[Standing, ...]:
    """The state of each rule. What is asked is whether it is worse from some period on until now;
    that all rows are one such stretch is the whole of it where there is one period.

    Each stretch of each rule is one question of its family, and those that no answer could decide,
    because there are too few rows, are not asked.
    """
    stretches = {
        k: [added(s.periods[start:]) for start in range(len(s.periods))]
        for k, s in enumerate(standings)
        if not s.missing and s.then.right is not None
    }
    n_asked = max(1, sum(map(len, stretches.values())))
    right: dict[tuple[int, int], float] = {}
    covers: dict[tuple[int, int, State], float] = {}
    told: set[int] = set()
    for k, each in stretches.items():
        then = standings[k].then
        assert then.right is not None and then.covers is not None
        for start, now in enumerate(each):
            assert now.covers is not None
            if now.right is not None and can_tell(then.right, now.right.rows,
                                                  FOR_PRECISION / n_asked):  # fmt: skip
                told.add(k)
                right[k, start] = chance_of_fall(then.right, now.right)
            if can_tell(Share(then.covers.hits // 2, then.covers.rows), now.covers.rows,
                        FOR_COVERAGE / (2 * n_asked)):  # fmt: skip
                if now.right is None:
                    told.add(k)
                covers[k, start, "faded"] = chance_of_fall(then.covers, now.covers, COVERAGE_KEPT)
                covers[k, start, "grown"] = chance_of_rise(then.covers, now.covers, COVERAGE_TIMES)
    fallen = _real(right, FOR_PRECISION)
    moved = _real(covers, FOR_COVERAGE)
    found = []
    for k, standing in enumerate(standings):
        state: State = "as before"
        start = 0
        own = {key: chance for key, chance in moved.items() if key[0] == k}
        own_right = {key: chance for key, chance in fallen.items() if key[0] == k}
        if standing.missing:
            state = "cannot be asked"
        elif k not in stretches:
            state = "not known"
        elif own and (not own_right or min(own)[2] == "faded"):  # else what is left may be wrong
            _, start, state = min(own, key=lambda key: (own[key], key))
        elif own_right:
            state = "decayed"
            start = min(own_right, key=lambda key: (own_right[key], key))[1]
        elif k not in told:
            state = "too few rows"
        since = names[start] if start else ""
        recent = stretches[k][start] if k in stretches else standing.now
        found.append(replace(standing, state=state, since=since, recent=recent))
    return tuple(found)


Key = TypeVar("Key")


def _real(chances: Mapping[Key, float], level: float) -> dict[Key, float]:
    """Those that are no chance."""
    kept = holm(list(chances.values()), level)
    return {key: chance for (key, chance), is_real in zip(chances.items(), kept, strict=True)
            if is_real}  # fmt: skip


def explains_less(then: Share | None, now: Share | None) -> bool:
    """Whether all rules together explain so much less that there must be other outliers."""
    if then is None or now is None:
        return False
    return chance_of_part(then, now, EXPLAINED_KEPT) <= FOR_COVERAGE / 2
