"""A flagged row that no rule covers, by itself: a short rule that is true of it and sets it apart
from inliers, of as many other flagged rows as possible."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import NETWORKS
from stair.data.decimals import shortest_between
from stair.data.frame import Array, Value
from stair.rules.clauses import (
    END,
    Among,
    Clause,
    Interval,
    Period,
    clause_in_words,
    side_by_side,
)
from stair.rules.drawn import Drawn, drawn_from
from stair.rules.objective import least_outliers
from stair.rules.schema import Field, Values
from stair.rules.usual import RARE, as_floats

MOST_ATTRIBUTES: Final = 3
LOOKED_AT: Final = 6  # the attributes in which a row is most unusual
SHARED: Final = 4  # and others whose values are more frequent among flagged rows
COMMON: Final = 0.5  # an attribute that so many inliers share says nothing of one row
# What is counted besides of inliers for so many attributes: of three that were chosen among many it
# says little that no inlier happens to have all of them.
DOUBT: Final = (1, 2, 4)
NEARLY: Final = 0.9  # of the best purity: as good, where it is shorter or of more flagged rows
CHANCE: Final = 0.01  # that nothing else than chance sets a row apart
FEWER: Final = 4  # so many times fewer inliers, or more flagged rows, than chance would leave


@dataclass(frozen=True, slots=True)
class Own:
    """What sets one row apart: clauses, and how many flagged rows and inliers meet all of them."""

    clauses: tuple[Clause, ...]
    flagged: int  # the row itself included
    inliers: int
    of_inliers: int
    is_apart: bool  # whether it tells the row apart from inliers, by more than chance
    of_flagged: int = 0
    is_drawn: bool = False  # whether these are some of all rows, drawn at random

    def in_words(self) -> str:
        """True of how many rows."""
        flagged = f"{self.flagged:,} flagged row{'s' * (self.flagged != 1)}"
        inliers = f"{self.inliers:,} inlier{'s' * (self.inliers != 1)}"
        if self.is_drawn:
            of = f"{self.of_flagged:,} and {self.of_inliers:,} that were looked at"
            return f"true of {flagged} and {inliers}, of {of}"
        return f"true of {flagged} and {inliers if self.inliers else 'no other'}"

    def __str__(self) -> str:
        return " and ".join(side_by_side([*map(clause_in_words, self.clauses)]))


@dataclass(eq=False)
class Reference:
    """The rows that a row is held against: those that are flagged, and inliers."""

    values: Values
    is_flagged: NDArray[np.bool_]
    is_drawn: bool = False
    _columns: dict[str, _Column] = field(default_factory=dict)

    @classmethod
    def of(cls, drawn: Drawn) -> Reference:
        values = Values({}, 0) if drawn.values is None else drawn.values
        return cls(values, drawn.is_flagged, not drawn.is_whole)

    @cached_property
    def n_flagged(self) -> int:
        return int(np.count_nonzero(self.is_flagged))

    @cached_property
    def n_inliers(self) -> int:
        return len(self.is_flagged) - self.n_flagged

    @property
    def least(self) -> int:
        """Of fewer flagged rows no rule would be made, so fewer rows share nothing worth a name."""
        return least_outliers(None, self.n_flagged)

    def own(self, fields: Sequence[Field], values: Values, row: int) -> Own:
        """The rule of one row, by its fields, the most unusual ones first.

        Of the rules that set it apart by more than chance it is the purest, and of those that are
        nearly as pure the shortest, true of most flagged rows. A name that hardly any row has is
        taken where nothing else sets the row apart.
        """
        singles = self._singles(fields, values, row)
        if not singles:
            return Own((), 0, self.n_inliers, self.n_inliers, False, self.n_flagged, self.is_drawn)
        rules = self._rules(singles)
        for is_thin in (False, True):
            some = [r for r in rules if is_thin or not any(singles[k].is_thin for k in r.chosen)]
            apart = [rule for rule in some if self._is_apart(rule, singles, len(rules))]
            if apart:
                return self._own(_best(apart), singles, is_apart=True)
        plain = [r for r in rules if not any(singles[k].is_thin for k in r.chosen)]
        return self._own(_best(plain or rules), singles, is_apart=False)

    def _own(self, rule: _Tried, singles: Sequence[_Single], is_apart: bool) -> Own:
        clauses = tuple(singles[k].clause for k in rule.chosen)
        return Own(clauses, rule.flagged, rule.inliers, self.n_inliers, is_apart, self.n_flagged,
                   self.is_drawn)  # fmt: skip

    def _singles(self, fields: Sequence[Field], values: Values, row: int) -> list[_Single]:
        """What single attributes say: those in which the row is most unusual, and those of the
        others that more flagged rows share."""
        unusual: list[_Single] = []
        shared: list[tuple[float, int, _Single]] = []
        for place, each in enumerate(fields):
            if each.name not in self.values or each.name not in values:
                continue
            value = values[each.name][row]
            found = self._column(each).single(each, value, self.least)
            if found is None or found.inliers > COMMON * self.n_inliers:
                continue
            if not found.clause.covers(values[each.name][row : row + 1])[0]:
                continue
            if len(unusual) < LOOKED_AT:
                unusual.append(found)
            elif each.kind != "time" and not found.is_thin:
                lift = found.flagged / (found.inliers + 1)
                shared.append((-lift, place, found))
        return [*unusual, *(found for _, _, found in sorted(shared, key=lambda s: s[:2])[:SHARED])]

    def _rules(self, singles: Sequence[_Single]) -> list[_Tried]:
        """All of at most three attributes, with the rows that they are true of."""
        bits = self._bits(singles)
        found = []
        for size in range(1, min(MOST_ATTRIBUTES, len(singles)) + 1):
            owners = [single.owner for single in singles]
            sets = combinations(range(len(singles)), size)
            chosen = np.array([c for c in sets if len({owners[k] for k in c}) == size])
            if not len(chosen):
                break
            both = bits[chosen[:, 0]]
            for column in chosen.T[1:]:
                both = both & bits[column]
            counts = [np.bitwise_count(both & side).sum(axis=1, dtype=np.int64).tolist()
                      for side in self._sides]  # fmt: skip
            found += [_Tried(tuple(c), *n) for c, *n in zip(chosen.tolist(), *counts, strict=True)]
        return found

    def _bits(self, singles: Sequence[_Single]) -> NDArray[np.uint64]:
        """Which rows meet each clause."""
        met = [
            self._columns[single.clause.feature].covered(
                single.clause, self.values[single.clause.feature]
            )
            for single in singles
        ]
        return _packed(np.array(met))

    @cached_property
    def _sides(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Which rows are flagged, and which are inliers."""
        return _packed(self.is_flagged[None]), _packed(~self.is_flagged[None])

    def _is_apart(self, rule: _Tried, singles: Sequence[_Single], n_tried: int) -> bool:
        """Whether so few inliers, or so many flagged rows, are more than chance."""
        n, m = max(self.n_inliers, 1), rule.inliers
        shares = [singles[k].inliers / n for k in rule.chosen]
        if min(singles[k].as_rare for k in rule.chosen) <= RARE * n and m <= RARE * n:
            return True
        expected = n * math.prod(shares)
        if len(shares) > 1 and FEWER * m <= expected and n_tried * _chance(m, expected) <= CHANCE:
            return True
        others = rule.flagged - 1
        expected = (m + 1) / (n + 1) * max(self.n_flagged - 1, 0)
        is_shared = rule.flagged >= self.least and others >= FEWER * expected
        return is_shared and n_tried * _chance(others, expected) <= CHANCE

    def _column(self, each: Field) -> _Column:
        if each.name not in self._columns:
            has_names = each.kind in ("category", "text")
            self._columns[each.name] = _Column(
                self.values[each.name], self.is_flagged, has_names, self.least
            )
        return self._columns[each.name]


def reference_of(
    fields: Sequence[Field],
    values: Values,
    is_flagged: NDArray[np.bool_],
    numbers: Array | None = None,
) -> Reference:
    """All of these rows, or so many of them as are drawn where they are many."""
    return Reference.of(drawn_from(fields, values, is_flagged, numbers))


def _packed(rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """One bit for each row, in whole words."""
    words = np.zeros((len(rows), -(-rows.shape[1] // 64) * 8), np.uint8)
    packed = np.packbits(rows, axis=1)
    words[:, : packed.shape[1]] = packed
    found: NDArray[np.uint64] = words.view(np.uint64)
    return found


def _chance(n: int, expected: float) -> float:
    """That chance leaves as many as n or still further from what is to be expected: at most this,
    by Chernoff's bound of a Poisson distribution."""
    far = expected - n + (n * math.log(n / expected) if n and expected else 0.0)
    return math.exp(-far)


@dataclass(frozen=True, slots=True)
class _Tried:
    """A rule of some attributes, and of how many flagged rows and inliers it is true."""

    chosen: tuple[int, ...]
    flagged: int
    inliers: int

    @property
    def purity(self) -> float:
        return self.flagged / max(self.flagged + self.inliers + DOUBT[len(self.chosen) - 1], 1)


def _best(rules: Sequence[_Tried]) -> _Tried:
    enough = NEARLY * max(rule.purity for rule in rules)
    good = [rule for rule in rules if rule.purity >= enough]
    return min(good, key=lambda r: (len(r.chosen), -r.flagged, r.inliers, r.chosen))


@dataclass(frozen=True, slots=True)
class _Single:
    """A clause, and the rows that meet it."""

    clause: Clause
    owner: str  # the column of an address and of its networks is one
    flagged: int
    inliers: int
    as_rare: int  # inliers that lie as far out, or whose value is as rare
    is_thin: bool = False  # a name that hardly any row has


class _Column:
    """The values of one attribute in order, of inliers and of flagged rows, those without one at
    the end."""

    def __init__(
        self, array: Array, is_flagged: NDArray[np.bool_], has_names: bool, least: int
    ) -> None:
        self._place: dict[Value, int] = {}
        self._codes: NDArray[np.intp] | None = None
        self._is_nearly_unique = False
        if has_names:
            listed = array.tolist()
            keys = [
                -1 if v is None else self._place.setdefault(v, len(self._place)) for v in listed
            ]
            self._codes = np.array(keys, dtype=np.intp)
            known = self._codes[self._codes >= 0]
            sizes = np.bincount(known)
            self._is_nearly_unique = 2 * int(sizes[sizes < least].sum()) > len(known)
            codes = np.where(self._codes < 0, np.nan, self._codes)
        else:
            codes = as_floats(array)
        self._sides = [np.sort(codes[is_flagged]), np.sort(codes[~is_flagged])]
        self._known = [int(np.count_nonzero(~np.isnan(side))) for side in self._sides]

    def covered(self, clause: Clause, array: Array) -> NDArray[np.bool_]:
        """Which rows meet a clause."""
        if self._codes is None:
            return clause.covers(array)
        assert isinstance(clause, Among)
        wanted = self._place.get(clause.values[0], -2) if clause.values else -1
        return np.asarray(self._codes == wanted)

    def single(self, each: Field, value: Value, least: int) -> _Single | None:
        """What the attribute says of a value, so that it covers few inliers."""
        of = each.source if each.part in NETWORKS else ""
        owner = of or each.name
        if each.kind in ("category", "text") and value is None:
            return self._missing(Among(each.name, (), missing=True, of=of), owner)
        if each.kind == "text" or (each.kind == "category" and self._is_nearly_unique):
            return None
        if each.kind == "category":
            code = float(self._place.get(value, -1))
            counts = self._between(code, code)
            return _Single(Among(each.name, (value,), of=of), owner, *counts,
                           self._as_rare(counts[1]), sum(counts) < least)  # fmt: skip
        return self._bounded(each, value, least)

    def _missing(self, clause: Clause, owner: str) -> _Single:
        flagged, inliers = (len(s) - n for s, n in zip(self._sides, self._known, strict=True))
        return _Single(clause, owner, flagged, inliers, inliers)

    def _as_rare(self, count: int) -> int:
        """How many inliers have a value that at most so many of them have."""
        return int(self._held[np.searchsorted(self._counts, count, "right")])

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """How many inliers have each value, in order."""
        known = self._sides[1][: self._known[1]]
        starts = np.flatnonzero(np.append(True, known[1:] != known[:-1])[: len(known)])
        return np.sort(np.diff(np.append(starts, len(known)))).astype(np.int64)

    @cached_property
    def _held(self) -> NDArray[np.int64]:
        """And so many of them have one of the first values."""
        return np.append(0, np.cumsum(self._counts))

    def _between(self, low: float, high: float) -> tuple[int, int]:
        """How many have a value from one to the other, both included."""
        flagged, inliers = (
            int(np.searchsorted(side[:n], high, "right") - np.searchsorted(side[:n], low))
            for side, n in zip(self._sides, self._known, strict=True)
        )
        return flagged, inliers

    def _bounded(self, each: Field, value: Value, least: int) -> _Single:
        """On the side on which fewer inliers are; the bound is between the value and the next."""
        is_time = each.kind == "time"
        x = float(as_floats(np.array([value]))[0])
        if np.isnan(x):
            if is_time:
                return self._missing(Period(each.name, END, END, True), each.name)
            nothing = Interval(each.name, np.inf, np.inf, True, each.is_whole)
            return self._missing(nothing, each.name)
        n = self._known[1]
        known = self._sides[1][:n]
        below, upto = int(np.searchsorted(known, x)), int(np.searchsorted(known, x, "right"))
        if each.is_whole and 0 < upto - below < min(n - below, upto) / 2:
            counts = self._between(x, x)
            if sum(counts) >= least:
                return _Single(Interval(each.name, x - 1, x, whole=True), each.name, *counts,
                               self._as_rare(counts[1]))  # fmt: skip
        if n - below <= upto:  # as few above as below
            low = _bound(float(known[below - 1]), x, is_time) if below else -np.inf
            counts = self._between(np.nextafter(low, np.inf), np.inf)
            return _Single(_beyond(each, low, np.inf), each.name, *counts, counts[1])
        high = _bound(x, float(known[upto]), is_time) if upto < n else np.inf
        counts = self._between(-np.inf, high)
        return _Single(_beyond(each, -np.inf, high), each.name, *counts, counts[1])


def _bound(low: float, high: float, is_time: bool) -> float:
    """A bound with low on the one side (or at it) and high on the other."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return low if np.isfinite(low) else -float(np.finfo(np.float64).max)
    return low if is_time else shortest_between(low, high)


def _beyond(each: Field, low: float, high: float) -> Clause:
    if each.kind != "time":
        return Interval(each.name, low, high, False, each.is_whole)
    if np.isfinite(low):
        return Period(each.name, after=np.datetime64(int(low), "us"))
    return (
        Period(each.name, until=np.datetime64(int(high), "us"))
        if np.isfinite(high)
        else Period(each.name)
    )
