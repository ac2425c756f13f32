"""A clause as the fields of a form, and back; bad input gets one sentence."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from starlette.datastructures import ImmutableMultiDict

from stair.data.frame import Array, Value
from stair.errors import StairError
from stair.rules.clauses import (
    BEGINNING,
    END,
    Among,
    Clause,
    Interval,
    Mentions,
    Period,
    clause_in_words,
    number_in_words,
    value_in_words,
    value_order,
)

MOST_VALUES: Final = 300  # categories that a form lists, the commonest first
MOST_FIELDS: Final = 2_000
WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
# Numpy would also read "now" and "today", and a year of six digits wraps around.
TIME: Final = re.compile(r"[+-]?\d{4,5}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?)?)?", re.A)

Form: TypeAlias = ImmutableMultiDict[str, str]


@dataclass(frozen=True, slots=True)
class Choice:
    """A category with a box to tick. `name` is its place among the column's categories."""

    name: str
    text: str
    rows: int
    is_ticked: bool


@dataclass(frozen=True, slots=True)
class ClauseForm:
    """What the page asks for, by kind: two bounds, a list of values, or a term."""

    kind: str  # number, time, category, text
    place: int
    clause: str
    feature: str
    low: str = ""
    high: str = ""
    step: str = "any"
    missing: bool = False
    has_missing: bool = False
    negated: bool = False
    choices: tuple[Choice, ...] = ()
    n_unlisted: int = 0
    term: str = ""


def form_of(clause: Clause, place: int, values: Array) -> ClauseForm:
    return clause.accept(_AsForm(place, values))


def clause_of(old: Clause, fields: Form, values: Array) -> Clause:
    """The clause that a filled form describes; of the same kind and column as the old one."""
    return old.accept(_AsFilled(fields, values))


@dataclass(frozen=True, slots=True)
class _AsForm:
    """A clause of a column with these values, as a form."""

    place: int
    values: Array

    def interval(self, clause: Interval) -> ClauseForm:
        low, high = ("" if bound is None else number_in_words(bound) for bound in clause.bounds)
        return self._form("number", clause, low=low, high=high, step=_step(self.values))

    def period(self, clause: Period) -> ClauseForm:
        low, high = (
            "" if bound is None else clause.time_in_words(bound) for bound in clause.bounds
        )
        return self._form("time", clause, low=low, high=high)

    def among(self, clause: Among) -> ClauseForm:
        named = _categories(clause, self.values)
        shown = named[:MOST_VALUES]
        choices = tuple(
            Choice(str(k), value_in_words(value), n, value in clause.values)
            for k, (value, n) in enumerate(shown)
        )
        n_unlisted = len(named) - len(shown)
        return self._form("category", clause, negated=clause.negated, choices=choices,
                          n_unlisted=n_unlisted)  # fmt: skip

    def mentions(self, clause: Mentions) -> ClauseForm:
        text, feature = clause_in_words(clause), clause.feature
        return ClauseForm("text", self.place, text, feature, negated=clause.negated,
                          term=clause.term)  # fmt: skip

    def _form(self, kind: str, clause: Clause, **more: Any) -> ClauseForm:
        text, gone = clause_in_words(clause), _any_missing(self.values)
        return ClauseForm(kind, self.place, text, clause.feature, missing=clause.missing,
                          has_missing=gone, **more)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _AsFilled:
    """A clause of a column with these values, as these fields of a form have it."""

    fields: Form
    values: Array

    @property
    def missing(self) -> bool:
        return "missing" in self.fields

    @property
    def negated(self) -> bool:
        return self.fields.get("negated", "") == "1"

    def interval(self, old: Interval) -> Clause:
        low = _number(self.fields, "low", -math.inf)
        high = _number(self.fields, "high", math.inf)
        if low >= high:
            raise StairError(
                f"no number is above {number_in_words(low)} and at most {number_in_words(high)}"
            )
        return _about_something(replace(old, low=low, high=high, missing=self.missing))

    def period(self, old: Period) -> Clause:
        after, until = _time(self.fields, "low", BEGINNING), _time(self.fields, "high", END)
        if after >= until:
            raise StairError(f"no time is after {after} and not later than {until}")
        return _about_something(replace(old, after=after, until=until, missing=self.missing))

    def among(self, old: Among) -> Clause:
        named = _categories(old, self.values)
        ticked = set(self.fields.getlist("value"))
        shown = [value for k, (value, _) in enumerate(named[:MOST_VALUES]) if str(k) in ticked]
        hidden = [value for value, _ in named[MOST_VALUES:] if value in old.values]
        chosen, missing, negated = (*shown, *hidden), self.missing, self.negated
        if not chosen and not missing and not negated:
            raise StairError("no value is ticked, so that the clause would match nothing")
        return _about_something(replace(old, values=chosen, negated=negated, missing=missing))

    def mentions(self, old: Mentions) -> Clause:
        term = self.fields.get("term", "").strip()
        if not term:
            raise StairError(
                "which word? The clause says what a text mentions, and there is no word"
            )
        return Mentions(old.feature, term, not self.negated)


def _about_something(clause: Clause) -> Clause:
    if clause.n_bounds == 0 and clause.missing and not clause.only_missing:
        raise StairError(f"{clause}: that matches every row; take the clause away instead")
    return clause


def _number(fields: Form, name: str, none: float) -> float:
    text = fields.get(name, "").strip().replace("−", "-")
    if not text:
        return none
    value = math.nan
    with contextlib.suppress(ValueError):
        value = float(text)
        if WHOLE.fullmatch(text) and abs(value) >= 2**53:
            value = int(text)  # exact, where a float is not
    if not math.isfinite(value):
        raise StairError(f'"{text[:40]}" is no number; expected one such as 4180 or 0.25')
    return value


def _time(fields: Form, name: str, none: np.datetime64) -> np.datetime64:
    text = fields.get(name, "").strip()
    if not text:
        return none
    time: np.datetime64 | None = None
    if TIME.fullmatch(text):
        with contextlib.suppress(ValueError, OverflowError):  # no such day
            time = np.datetime64(text.replace(" ", "T"), "us")
    if time is None:
        raise StairError(f'"{text[:40]}" is no time; expected one such as 2024-02-29 17:30')
    return time


def _any_missing(values: Array) -> bool:
    if values.dtype.kind == "O":
        return any(value is None or value != value for value in values.tolist())
    return bool(np.isnan(values).any() if values.dtype.kind == "f" else
                np.isnat(values).any() if values.dtype.kind == "M" else False)  # fmt: skip


def _step(values: Array) -> str:
    """What one press of an arrow moves a bound by: about a hundredth of the middle half."""
    x = np.array([v for v in values.tolist() if v is not None], dtype=np.float64)
    x = x[np.isfinite(x)]
    if not len(x):
        return "any"
    low, high = np.quantile(x[:: max(1, len(x) // 10_000)], [0.25, 0.75])
    width = float(high - low)
    if width <= 0:
        return "any"
    return f"{10 ** math.floor(math.log10(width / 10)):g}"


def _categories(clause: Among, values: Array) -> list[tuple[Value, int]]:
    """The values of a column and those of its clause, the commonest first."""
    counts: dict[object, int] = dict.fromkeys(clause.values, 0)
    for value in values.tolist():
        if value is not None and value == value:
            counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items(), key=lambda each: (-each[1], value_order(each[0])))
