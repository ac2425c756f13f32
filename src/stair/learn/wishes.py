"""What a person wishes of rules beside the floor on F1: floors and budgets, all of them linear in
the outliers and inliers that are covered; and what is known of single columns.

A wish is a setting of the method that has it. What became of it is an `Outcome`, counted from the
finished rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from stair.errors import (
    StairError,
    check_count,
    check_number,
    no_such_column,
    option,
)

Direction: TypeAlias = Literal["up", "down", "extreme"]
DIRECTIONS: Final[tuple[str, ...]] = get_args(Direction)

# Where somebody wants to know how much can be explained, and says nothing of how long rules may be.
USUAL_LENGTH: Final = 10
# The floor on F1 where no other wish says how much is to be explained.
USUAL_FLOOR: Final = 0.8
MOST_COST: Final = 1000
MOST_BETA: Final = 100.0
# Shares are fractions with at most this denominator: sums are then whole numbers.
LARGEST_DENOMINATOR: Final = 1_000_000
# A ceiling that is passed weighs so much more than a floor that is missed: what comes nearest to
# wishes that cannot all be had keeps to the ceilings.
CEILING: Final = 10.0
# What stays where not all wishes can be had.
BUDGETS: Final = ("max_alerts", "max_total_length", "max_rules")
# The search for wishes begins at an F1 that asks for much the same; from here to there.
LOWEST, HIGHEST = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class ColumnWish:
    """What is known of a column.

    Parameters
    ----------
    direction : {"up", "down", "extreme"}, optional
        Which values make an outlier: the large ones alone ("up", so that rules say "more than" and
        never "at most"), the small ones alone, or both, but each rule on one side.
    cost : int
        What an attribute of this column adds to the length of a rule.
    never : bool
        Whether no rule may speak of it.
    group : str, optional
        A name. Of all columns that have the same one a rule may use one.
    """

    direction: Direction | None = None
    cost: int = 1
    never: bool = False
    group: str | None = None

    def check(self, name: str) -> None:
        """Refuse what no column can have."""

        def said(what: str) -> str:
            return option("column_wishes", {name: {what: getattr(self, what)}})

        if self.direction is not None and self.direction not in DIRECTIONS:
            raise StairError(f"{said('direction')}; expected up, down or extreme")
        cost: Any = self.cost
        is_whole = isinstance(cost, Integral) and not isinstance(cost, bool)
        if not is_whole or not 1 <= int(cost) <= MOST_COST:
            raise StairError(f"{said('cost')}; expected a whole number from 1 to {MOST_COST:,}")
        if self.group is not None and (not isinstance(self.group, str) or not self.group):
            raise StairError(f"{said('group')}; expected a name")
        if not isinstance(self.never, bool):
            raise StairError(f"{said('never')}; expected true or false")
        others = [each for each in ("direction", "cost", "group") if each in self.given]
        if self.never and others:
            raise StairError(
                f"{said('never')} and {said(others[0])} contradict each other: no rule speaks of "
                f'"{name}", so nothing more can be said of it'
            )

    @property
    def given(self) -> dict[str, object]:
        """What was said, as plain values."""
        plain = ColumnWish()
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value != getattr(plain, name)}


ColumnWishes: TypeAlias = Mapping[str, ColumnWish | Mapping[str, Any]]


def column_wishes_of(given: ColumnWishes | None) -> dict[str, ColumnWish]:
    """What is known of columns, checked; a mapping will do for the value of a column."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise StairError(
            f"{option('column_wishes')} is a {type(given).__name__}; expected a value for each "
            'column, as in {"amount": ColumnWish("up")}'
        )
    known = [each.name for each in fields(ColumnWish)]
    found = {}
    for name, wish in given.items():
        if isinstance(wish, Mapping):
            wrong = next((each for each in wish if each not in known), None)
            if wrong is not None:
                raise StairError(
                    f'column "{name}" has the wish "{wrong}"; expected {", ".join(known)}'
                )
            wish = ColumnWish(**wish)
        if not isinstance(wish, ColumnWish):
            raise StairError(
                f'column "{name}" has {wish!r}; expected a ColumnWish, or a table with '
                f"{', '.join(known)}"
            )
        wish.check(str(name))
        found[str(name)] = wish
    return found


class Limit(NamedTuple):
    """What is covered must be above a floor: so much for each outlier, so much for each inlier, by
    weight; or by rows."""

    name: str
    outlier: int
    inlier: int
    floor: int
    scale: float  # what a shortfall is measured by
    of_rows: bool = False

    def of(self, sums: Sequence[int]) -> int:
        """By the weight of covered outliers, that of covered inliers, and how many rows."""
        if self.of_rows:
            return self.outlier * sums[2]
        return self.outlier * sums[0] + self.inlier * sums[1]

    @property
    def is_ceiling(self) -> bool:
        """Whether it holds where nothing is covered, so that more is never a remedy."""
        return self.floor < 0

    def shortfall(self, sums: Sequence[int]) -> float:
        got = self.of(sums)
        return max(0.0, (self.floor + 1 - got) / self.scale)


class Reach(NamedTuple):
    """What finished rules cover, by weight and in rows: counted by whoever has the rows."""

    hits: float
    false: float
    alerts: int
    outliers: float
    n_rows: int
    precisions: tuple[float, ...]  # of each rule
    length: int  # with the costs of columns
    n_rules: int


class Outcome(NamedTuple):
    """A wish, what was asked, and what was had."""

    name: str
    asked: float
    got: float
    is_met: bool
    beta: float = 1.0


@dataclass(frozen=True, slots=True)
class Wishes:
    """Floors and budgets that hold together; `score` is a floor on F-beta, None for none."""

    score: float | None = USUAL_FLOOR
    beta: float = 1.0
    precision: float | None = None
    rule_precision: float | None = None
    recall: float | None = None
    alerts: float | int | None = None
    length: int | None = None
    rules: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is wished beyond a floor on F1 and a total length."""
        others = (self.precision, self.rule_precision, self.recall, self.alerts, self.rules)
        return self.beta == 1 and all(each is None for each in others)

    @property
    def wants_most(self) -> bool:
        """Whether the rules are those that explain most within the budgets, not the shortest that
        explain enough: where there is a budget of length, or nothing says how much is enough."""
        if self.is_plain:
            return False
        return not self.says_enough or self.length is not None or self.rules is not None

    @property
    def says_enough(self) -> bool:
        """Whether a floor says how much is to be explained."""
        return self.score is not None or self.recall is not None

    @property
    def most_length(self) -> int | None:
        """How long all rules may be together."""
        if self.length is None and not self.says_enough:
            return USUAL_LENGTH
        return self.length

    def limits(self, outliers: int, n_rows: int) -> tuple[Limit, ...]:
        """The wishes about all rules together, for so many outliers (by weight) and rows."""
        if self.is_plain:
            return ()
        found = []
        if self.score is not None:
            floor, square = _fraction(self.score), _fraction(self.beta) ** 2
            scale = floor.denominator * square.denominator
            hit, false = (1 + square - floor) * scale, -floor * scale
            needed = floor * square * outliers * scale
            found.append(
                Limit("min_score", int(hit), int(false), _above(needed, self.score),
                      max(float(hit) * outliers, 1.0))
            )  # fmt: skip
        if self.precision is not None:
            found.append(_of_precision("min_precision", self.precision, outliers, CEILING))
        if self.recall is not None:
            share = _fraction(self.recall)
            found.append(
                Limit("min_recall", share.denominator, 0, share.numerator * outliers - 1,
                      max(float(share.denominator * outliers), 1.0))
            )  # fmt: skip
        if self.alerts is not None:
            most = alerts_of(self.alerts, n_rows)
            found.append(Limit("max_alerts", -1, -1, -most - 1, max(most, 1) / CEILING, True))
        return tuple(found)

    def of_rules(self, outliers: int) -> Limit | None:
        """The wish about each rule by itself."""
        if self.rule_precision is None:
            return None
        return _of_precision("min_rule_precision", self.rule_precision, outliers, 1.0)

    def near_score(self, outliers: float, n_rows: float) -> float:
        """The F1 above which rules are much the same as those that are wished for."""
        found = LOWEST
        if self.score is not None:
            ratio = self.score / (1 + self.beta**2 - self.score)
            found = 2 * ratio / (1 + ratio)
            if self.beta == 1:
                found = max(found, self.score)
        right = max(self.precision or 0.0, self.rule_precision or 0.0)
        hits = 1.0 if self.recall is None else self.recall
        false = hits * (1 - right) / right if right else hits
        if self.alerts is not None and outliers:
            alerts = alerts_of(self.alerts, int(n_rows)) / outliers
            if self.recall is None:
                hits = min(hits, alerts * (right or 0.5))
            false = min(hits * (1 - right) / right if right else hits, max(alerts - hits, 0.0))
        if self.recall is not None or self.score is None:
            found = max(found, 2 * hits / (hits + false + 1))
        return min(max(found, LOWEST), HIGHEST)

    def outcomes(self, found: Reach) -> tuple[Outcome, ...]:
        """What became of each wish."""
        square = self.beta**2
        whole = (1 + square) * found.hits
        below = found.hits + found.false + square * found.outliers
        score = whole / below if below else 0.0
        covered = found.hits + found.false
        precision = found.hits / covered if covered else math.nan
        least = min(found.precisions, default=math.nan)
        recall = found.hits / found.outliers if found.outliers else math.nan
        listed: list[Outcome] = []

        def at_least(name: str, asked: float | None, got: float) -> None:
            if asked is not None:
                near = got > asked or math.isclose(got, asked, rel_tol=1e-12)
                listed.append(Outcome(name, asked, got, near))

        if self.score is not None:
            is_above = score > self.score or (self.score == 1 and score == 1)
            listed.append(Outcome("min_score", self.score, score, is_above, self.beta))
        at_least("min_precision", self.precision, precision)
        at_least("min_rule_precision", self.rule_precision, least)
        at_least("min_recall", self.recall, recall)
        if self.alerts is not None:
            is_share = self.alerts < 1
            got = found.alerts / found.n_rows if is_share and found.n_rows else found.alerts
            is_met = found.alerts <= alerts_of(self.alerts, found.n_rows)
            listed.append(Outcome("max_alerts", self.alerts, got, is_met))
        if self.length is not None:
            is_met = found.length <= self.length
            listed.append(Outcome("max_total_length", self.length, found.length, is_met))
        if self.rules is not None:
            is_met = found.n_rules <= self.rules
            listed.append(Outcome("max_rules", self.rules, found.n_rules, is_met))
        return tuple(listed)


def kept(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """How many budgets are kept, and how many wishes are had: budgets come first."""
    budgets = sum(each.is_met for each in outcomes if each.name in BUDGETS)
    return budgets, sum(each.is_met for each in outcomes)


def alerts_of(alerts: float | int, n_rows: int) -> int:
    """A number of rows, given as such or as a share of all."""
    if isinstance(alerts, float):
        return math.floor(_fraction(alerts) * n_rows)
    return int(alerts)


def check_floors(given: Mapping[str, object]) -> None:
    """Refuse floors and budgets that say nothing, by the names of their settings."""
    for name in ("min_precision", "min_rule_precision", "min_recall"):
        if given[name] is not None:
            check_number(name, given[name], 0, 1)
    check_number("beta", given["beta"], 0, MOST_BETA)
    if not given["beta"]:
        raise StairError(f"{option('beta', given['beta'])}; expected a number above 0")
    if given["max_rules"] is not None:
        check_count("max_rules", given["max_rules"], 1)
    check_alerts(given["max_alerts"])
    if not isinstance(given["one_sided"], bool | np.bool_):
        raise StairError(f"{option('one_sided')} is {given['one_sided']!r}; expected true or false")


def check_alerts(alerts: Any) -> None:
    """Refuse what is neither a number of rows nor a share of them."""
    if alerts is None:
        return
    is_number = isinstance(alerts, Real) and not isinstance(alerts, bool)
    if is_number and isinstance(alerts, Integral) and int(alerts) >= 1:
        return
    if is_number and not isinstance(alerts, Integral) and 0 < float(alerts) < 1:
        return
    raise StairError(
        f"{option('max_alerts', alerts)}; expected a whole number of rows from 1 on, or a share "
        "between 0 and 1"
    )


def unknown_columns(wishes: Iterable[str], names: Iterable[str], where: str) -> None:
    """Refuse a wish about a column that is not there."""
    known = list(dict.fromkeys(names))
    for name in wishes:
        if name not in known:
            raise no_such_column(name, known, where)


def _fraction(number: float) -> Fraction:
    """A share as the fraction that was meant."""
    return Fraction(number).limit_denominator(LARGEST_DENOMINATOR)


def _above(needed: Fraction, score: float) -> int:
    """The whole number that a sum must be above; nothing is above a perfect score."""
    if score == 1:
        return math.ceil(needed) - 1
    return math.floor(needed)


def _of_precision(name: str, share: float, outliers: int, weight: float) -> Limit:
    exact = _fraction(share)
    hit, false = exact.denominator - exact.numerator, -exact.numerator
    return Limit(name, hit, false, -1, max(float(exact.denominator * outliers), 1.0) / weight)
