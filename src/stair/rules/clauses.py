"""One attribute's condition: numbers, times, categories and text; how they meet and how they read.

A clause is immutable data. It says which values it covers, what it becomes together with
another clause on the same attribute, and how a person reads it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array, Value

Cells: TypeAlias = tuple[NDArray[np.intp], NDArray[np.bool_]]
Numeral: TypeAlias = Callable[[float], str]  # how a number is written
Made_co = TypeVar("Made_co", covariant=True)

BEGINNING: Final = np.datetime64(-(2**63) + 1, "us")  # the one before it means "not a time"
END: Final = np.datetime64(2**63 - 1, "us")

# How many categories a sentence lists before it says how many more there are.
LISTED: Final = 6

# Doubles from here on are whole numbers, but not all of them: nobody counts in steps of one there.
IN_STEPS: Final = 2**53

# So few edges are compared with one by one, which is faster than to search among them.
FEW_EDGES: Final = 4

_ASCII_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(ord("A"), ord("Z") + 1)})
_PLAIN_NAME = re.compile(r"[^\W\d][\w.\-/%#]*")


def name_in_words(feature: str) -> str:
    """A column's name in a sentence; quoted where it could be read as something else."""
    if _PLAIN_NAME.fullmatch(feature):
        return feature
    return '"' + feature.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def number_in_words(value: float) -> str:
    """The shortest decimal that reads back to exactly this number; zero has no sign."""
    if isinstance(value, int | np.integer):
        return str(int(value))
    return repr(float(value) + 0.0).removesuffix(".0")


def separated(value: float) -> str:
    """The same for people: thousands are separated from five digits on, so that years stay years
    and 10,000 can be read."""
    text = number_in_words(value)
    if -10_000 < value < 10_000:
        return text
    whole, point, rest = text.partition(".")
    digits = whole.removeprefix("-")
    if not digits.isdigit() or len(digits) < 5:
        return text
    return f"{'-' * (whole != digits)}{int(digits):,}{point}{rest}"


def value_in_words(value: object) -> str:
    """A category as it stands in a list; quoted where it could be read as something else."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | float | np.number):
        whole = math.isfinite(value) and value == int(value)
        return str(int(value)) if whole else number_in_words(float(value))
    return name_in_words(str(value))


def value_order(value: object) -> tuple[str, Value]:
    """An order for categories of any type: the same on every run and every engine."""
    if isinstance(value, str):
        return ("text", value)
    return ("number", value)


def folded(text: str) -> str:
    """Text with the letters A to Z in lower case and nothing else changed."""
    return text.translate(_ASCII_LOWER)


def _is_missing(value: object) -> bool:
    return value is None or value != value


class Visitor(Protocol[Made_co]):
    """What becomes of a clause of each kind: a condition in a language, a form, a picture.

    Whatever tells the kinds apart outside of this room is one of these; `clause.accept` calls the
    method of the clause's own kind.
    """

    def interval(self, clause: Interval) -> Made_co: ...
    def period(self, clause: Period) -> Made_co: ...
    def among(self, clause: Among) -> Made_co: ...
    def mentions(self, clause: Mentions) -> Made_co: ...


class _OnOneField:
    """What clauses answer unless their kind has more to say."""

    __slots__ = ()
    feature: str
    is_ordered: ClassVar[bool] = False  # whether it is about numbers or times

    @property
    def attribute(self) -> str:
        """What counts as one attribute in the length of a rule."""
        return self.feature

    @property
    def bounds(self) -> tuple[Value, Value]:
        """The bound below and the one above, None where there is none."""
        return None, None

    @property
    def limits(self) -> tuple[float, float]:
        """The bounds as numbers, times in microseconds; infinite where there is none."""
        return -math.inf, math.inf

    @property
    def categories(self) -> tuple[Value, ...]:
        """The values that it names."""
        return ()

    @property
    def terms(self) -> tuple[str, ...]:
        """The texts that it looks for in texts."""
        return ()

    @property
    def negated(self) -> bool:
        """Whether it covers what it does not name."""
        return False

    @property
    def only_missing(self) -> bool:
        """Whether it covers no value that is there."""
        return False

    @property
    def n_bounds(self) -> int:
        """How many numbers and values a person has to read."""
        return sum(bound is not None for bound in self.bounds)

    def with_fractions(self) -> Self:
        """The same about a column that has fractions too."""
        return self


class _Bounded(_OnOneField):
    """What clauses about numbers and times answer alike."""

    __slots__ = ()
    is_ordered: ClassVar[bool] = True
    missing: bool

    def __str__(self) -> str:
        return self.in_words(number_in_words)

    def in_words(self, number: Numeral) -> str:
        """The clause, with its numbers as they are to be written."""
        name = name_in_words(self.feature)
        if self.only_missing or not self.n_bounds:
            return f"{name} is {self._about_missing()}"
        low, high = self._written(number)
        wanted = self._wanted(number)
        text = f"{name} {wanted}" if wanted else f"{low} < {name} ≤ {high}"
        return f"{text} or missing" if self.missing else text

    def _about_missing(self) -> str:
        if self.only_missing:
            return "missing" if self.missing else "impossible"
        return "anything" if self.missing else "not missing"

    def _wanted(self, number: Numeral) -> str:
        """What is asked of a value behind its name; empty where its name is in the middle."""
        low, high = self._written(number)
        return "" if low and high else f"> {low}" if low else f"≤ {high}"

    def _written(self, number: Numeral) -> tuple[str | None, str | None]:
        """The bounds as they are read."""
        low, high = self.bounds
        return None if low is None else number(low), None if high is None else number(high)


@dataclass(frozen=True, slots=True)
class Interval(_Bounded):
    """low < x ≤ high; `missing` says whether a missing value is covered too, and `whole` that the
    column had whole numbers alone when the rules were learned: it is read so, and compared alike.

    An infinite bound is none: it keeps nothing out, and infinite values lie beyond every finite
    one. Whole numbers beyond 2**53 are ints, so that every comparison is exact. An interval that
    is covered by missing values alone has low = high = ∞.
    """

    feature: str
    low: float = -math.inf
    high: float = math.inf
    missing: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if type(self.low) is not float or type(self.high) is not float:
            for name in ("low", "high"):
                object.__setattr__(self, name, _exact_bound(getattr(self, name)))
        if self.low < self.high:
            return
        if math.isnan(self.low) or math.isnan(self.high):
            raise ValueError(f"a bound of {self.feature!r} is NaN; bounds must be numbers")
        object.__setattr__(self, "low", math.inf)  # empty: one form, so that equal ones are equal
        object.__setattr__(self, "high", math.inf)

    def accept(self, visitor: Visitor[Made_co]) -> Made_co:
        return visitor.interval(self)

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        low = self.low if math.isfinite(self.low) else None
        return low, self.high if math.isfinite(self.high) else None

    @property
    def limits(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def only_missing(self) -> bool:
        return self.low >= self.high

    def with_fractions(self) -> Self:
        return replace(self, whole=False)

    def covers(self, values: Array) -> NDArray[np.bool_]:
        """Which of these values (missing = NaN) the clause covers."""
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and not self.only_missing:
            low, high = _at_most(self.low), _at_most(self.high)
            if self.missing:  # nothing compares with NaN
                return ~((values <= low) & (low > -math.inf)) & ~(values > high)
            return ((values > low) | ((low == -math.inf) & ~np.isnan(values))) & (values <= high)
        cell, allowed = Interval.cells([self], values)
        covered: NDArray[np.bool_] = allowed[0][cell]
        return covered

    def __and__(self, other: Interval) -> Interval:
        """Both at once."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        both = self.missing and other.missing
        return Interval(self.feature, low, high, both, self.whole or other.whole)

    def _wanted(self, number: Numeral) -> str:
        first, last = self._ends()
        if first is not None and last is not None:
            return (
                f"= {number(first)}" if first == last else f"is {number(first)} to {number(last)}"
            )
        if first is not None and self.n_bounds == 1:
            return f"≥ {number(first)}"
        if last is not None and self.n_bounds == 1:
            return f"≤ {number(last)}"
        return _Bounded._wanted(self, number)

    def _ends(self) -> tuple[int | None, int | None]:
        """The least and the largest whole number inside, where that is how people read it; one that
        no bound sets is None, and so are both where no whole number is inside."""
        bounds = [b for b in (self.low, self.high) if math.isfinite(b)]
        if not self.whole or any(type(b) is float and abs(b) >= IN_STEPS for b in bounds):
            return None, None
        first = math.floor(self.low) + 1 if math.isfinite(self.low) else None
        last = math.floor(self.high) if math.isfinite(self.high) else None
        if first is not None and last is not None and first > last:
            return None, None
        return first, last

    def value_in_words(self, value: Value) -> str | None:
        """A value as a person reads it, None where it is missing."""
        return None if _is_missing(value) else separated(value)

    @property
    def group(self) -> tuple[str, ...]:
        """Clauses of one group can be looked up together, in one pass over the values."""
        return ("interval", self.feature)

    @staticmethod
    def cells(clauses: Sequence[Interval], values: Array) -> Cells:
        """The cell of each value among all the bounds, and which clause allows which cell."""
        edges, allowed = Interval.edges(clauses)
        return _cells_between(edges, np.asarray(values)), allowed

    @staticmethod
    def edges(clauses: Sequence[Interval]) -> tuple[list[float], NDArray[np.bool_]]:
        """All bounds in order, and which clause allows which cell between them."""
        edges = sorted({b for c in clauses for b in (c.low, c.high) if math.isfinite(b)})
        place: dict[float, int] = {edge: k for k, edge in enumerate(edges)}
        allowed = np.zeros((len(clauses), len(edges) + 2), dtype=np.bool_)
        for row, clause in zip(allowed, clauses, strict=True):
            if not clause.only_missing:  # a cell ends at the edge of its number
                row[place.get(clause.low, -1) + 1 : place.get(clause.high, len(edges)) + 1] = True
            row[-1] = clause.missing
        return edges, allowed


def _exact_bound(bound: float) -> float:
    """A bound as float64 where that holds it exactly, else as a whole number."""
    if isinstance(bound, int | np.integer) and abs(int(bound)) > 2**53:
        return int(bound)
    return float(bound)


def _cells_between(edges: Sequence[float], x: Array) -> NDArray[np.intp]:
    """How many edges lie below each number, compared exactly; one more than all where missing."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        limits = np.iinfo(x.dtype)
        inside = [math.floor(e) for e in edges if limits.min <= e <= limits.max]
        n_below = sum(e < limits.min for e in edges)
        found: NDArray[np.intp] = np.searchsorted(np.array(inside, dtype=x.dtype), x) + n_below
        return found
    if x.dtype.kind == "O":
        listed = (len(edges) + 1 if _is_missing(v) else bisect_left(edges, v) for v in x.tolist())
        return np.fromiter(listed, np.intp, len(x))
    x = x.astype(np.float64, copy=False)
    ends = as_doubles(edges)
    if len(ends) > FEW_EDGES:
        cell = np.searchsorted(ends, x)
    else:
        cell = np.zeros(len(x), dtype=np.intp)
        for end in ends.tolist():
            cell += x > end
    cell[np.isnan(x)] = len(edges) + 1
    return cell


def as_doubles(edges: Sequence[float]) -> NDArray[np.float64]:
    """Bounds as float64, which cut float64s as the exact ones do."""
    return np.array([_at_most(e) for e in edges], dtype=np.float64)


def _at_most(edge: float) -> float:
    """The largest float64 that is not above a number: it has the same float64s below it."""
    near = float(edge)
    return near if near <= edge else math.nextafter(near, -math.inf)


@dataclass(frozen=True, slots=True)
class Period(_Bounded):
    """after < t ≤ until, in microseconds; `whole_days` where the column holds dates without times.

    A period that is covered by missing values alone has after = until = the end of time.
    """

    feature: str
    after: np.datetime64 = BEGINNING
    until: np.datetime64 = END
    missing: bool = False
    whole_days: bool = False

    def __post_init__(self) -> None:
        for name in ("after", "until"):
            object.__setattr__(self, name, np.datetime64(getattr(self, name), "us"))
        if self.after >= self.until:
            object.__setattr__(self, "after", END)
            object.__setattr__(self, "until", END)

    def accept(self, visitor: Visitor[Made_co]) -> Made_co:
        return visitor.period(self)

    @property
    def bounds(self) -> tuple[np.datetime64 | None, np.datetime64 | None]:
        if self.only_missing:
            return None, None
        after = self.after if self.after != BEGINNING else None
        return after, self.until if self.until != END else None

    @property
    def n_bounds(self) -> int:
        return int(self.after != BEGINNING) + int(self.until != END)

    @property
    def limits(self) -> tuple[float, float]:
        if self.only_missing:
            return math.inf, math.inf
        low, high = (None if b is None else b.astype(np.int64).item() for b in self.bounds)
        return -math.inf if low is None else low, math.inf if high is None else high

    @property
    def only_missing(self) -> bool:
        return bool(self.after >= self.until)

    def covers(self, values: Array) -> NDArray[np.bool_]:
        """Which of these times (missing = NaT) the clause covers."""
        t = np.asarray(values, dtype="datetime64[us]")
        inside: NDArray[np.bool_] = (t > self.after) & (t <= self.until)
        return inside | np.isnat(t) if self.missing else inside

    def __and__(self, other: Period) -> Period:
        after, until = max(self.after, other.after), min(self.until, other.until)
        return Period(self.feature, after, until, self.missing and other.missing, self.whole_days)

    def time_in_words(self, time: np.datetime64) -> str:
        """A date where the column has dates; else as much of the time as is needed."""
        day, _, clock = str(time.astype("datetime64[us]")).partition("T")
        if self.whole_days:
            return day
        clock, _, fraction = clock.partition(".")
        fraction = fraction.rstrip("0")
        return f"{day} {clock}.{fraction}" if fraction else f"{day} {clock.removesuffix(':00')}"

    def _written(self, number: Numeral) -> tuple[str | None, str | None]:
        del number
        after, until = (None if b is None else self.time_in_words(b) for b in self.bounds)
        return after, until

    def value_in_words(self, value: Value) -> str | None:
        time = np.datetime64("NaT", "us") if value is None else np.datetime64(value, "us")
        return None if np.isnat(time) else self.time_in_words(time)

    @property
    def group(self) -> tuple[str, ...]:
        return ("period", self.feature)

    @staticmethod
    def cells(clauses: Sequence[Period], values: Array) -> Cells:
        t = np.asarray(values, dtype="datetime64[us]")
        bounds = {b for c in clauses for b in (c.after, c.until)} - {BEGINNING, END}
        edges = np.array(sorted(bounds), dtype="datetime64[us]")
        cell = np.searchsorted(edges, t, side="left")
        cell[np.isnat(t)] = len(edges) + 1
        tops = np.append(edges, END)
        after = np.array([c.after for c in clauses], dtype="datetime64[us]")[:, None]
        until = np.array([c.until for c in clauses], dtype="datetime64[us]")[:, None]
        allowed = np.empty((len(clauses), len(edges) + 2), dtype=np.bool_)
        allowed[:, :-1] = (tops > after) & (tops <= until)
        allowed[:, -1] = [c.missing for c in clauses]
        return cell, allowed


def _is_exact_double(value: Value) -> bool:
    return not isinstance(value, str) and abs(value) <= 2**53


@dataclass(frozen=True, slots=True)
class Among(_OnOneField):
    """x is one of `values`, or none of them where `negated`.

    A value that was never seen is on the negated side. Without values the clause is about
    missing values alone: "is missing", or negated "is not missing". Values that are networks are
    `of` a column of addresses, whose name is then the one that is said.
    """

    feature: str
    values: tuple[str | int | float | bool, ...] = ()
    negated: bool = False
    missing: bool = False
    of: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(set(self.values), key=value_order)))

    def accept(self, visitor: Visitor[Made_co]) -> Made_co:
        return visitor.among(self)

    @property
    def attribute(self) -> str:
        return self.of or self.feature

    @property
    def categories(self) -> tuple[Value, ...]:
        return self.values

    @property
    def n_bounds(self) -> int:
        return len(self.values)

    @property
    def only_missing(self) -> bool:
        return not self.values and not self.negated

    def covers(self, values: Array) -> NDArray[np.bool_]:
        """Which of these values (missing = None or NaN) the clause covers."""
        cell, allowed = Among.cells([self], values)
        covered: NDArray[np.bool_] = allowed[0][cell]
        return covered

    def __and__(self, other: Among) -> Among:
        mine, theirs = set(self.values), set(other.values)
        if self.negated and other.negated:
            both = mine | theirs
        elif self.negated:
            both = theirs - mine
        elif other.negated:
            both = mine - theirs
        else:
            both = mine & theirs
        return Among(
            self.feature,
            tuple(both),
            self.negated and other.negated,
            self.missing and other.missing,
            self.of,
        )

    def __str__(self) -> str:
        name = name_in_words(self.attribute)
        if not self.values:
            if self.negated:
                return f"{name} is anything" if self.missing else f"{name} is not missing"
            return f"{name} is missing" if self.missing else f"{name} is impossible"
        return f"{name} {self._wanted()}"

    def _wanted(self) -> str:
        if not self.values:
            return "missing" if self.missing else "not missing"
        words = [value_in_words(value) for value in self.values]
        tail = " or missing" if self.missing else ""
        if self.of:
            more = [f"… {len(words) - LISTED} more"] if len(words) > LISTED + 1 else []
            named = " or ".join([*map(str, self.values[: LISTED if more else None]), *more])
            return f"{'not in' if self.negated else 'in'} {named}{tail}"
        if len(words) == 1:
            return f"{'≠' if self.negated else '='} {words[0]}{tail}"
        if len(words) > LISTED + 1:
            words = [*words[:LISTED], f"… {len(words) - LISTED} more"]
        return f"{'not in' if self.negated else 'in'} {{{', '.join(words)}}}{tail}"

    def value_in_words(self, value: object) -> str | None:
        if _is_missing(value):
            return None
        return str(value) if self.of else value_in_words(value)

    @property
    def group(self) -> tuple[str, ...]:
        return ("among", self.feature)

    @staticmethod
    def cells(clauses: Sequence[Among], values: Array) -> Cells:
        """Each value by its place in the list of all values that any clause names."""
        named = sorted({v for c in clauses for v in c.values}, key=value_order)
        place: dict[object, int] = {v: k for k, v in enumerate(named)}
        other, missing = len(named), len(named) + 1
        array = np.asarray(values)
        if array.dtype.kind == "f" and named and all(map(_is_exact_double, named)):
            numbers = np.array(named, dtype=np.float64)
            cell = np.minimum(np.searchsorted(numbers, array), other - 1)
            cell[numbers[cell] != array] = other
            cell[np.isnan(array)] = missing
            return cell, Among._allowed(clauses, place)
        listed = array.tolist()
        cell = np.fromiter((place.get(v, other) for v in listed), np.intp, len(listed))
        if array.dtype.kind in "fO":
            gone = np.fromiter((v is None or v != v for v in listed), np.bool_, len(listed))
            cell[gone] = missing
        return cell, Among._allowed(clauses, place)

    @staticmethod
    def _allowed(clauses: Sequence[Among], place: Mapping[Value, int]) -> NDArray[np.bool_]:
        allowed = np.empty((len(clauses), len(place) + 2), dtype=np.bool_)
        for row, clause in zip(allowed, clauses, strict=True):
            row[:-1] = clause.negated
            row[[place[v] for v in clause.values]] = not clause.negated
            row[-1] = clause.missing
        return allowed


@dataclass(frozen=True, slots=True)
class Mentions(_OnOneField):
    """A text that contains a term, whatever the case of its ASCII letters.

    The letters A to Z alone are folded, because that is what every database can do alike. A
    missing text mentions nothing.
    """

    feature: str
    term: str
    present: bool = True

    def accept(self, visitor: Visitor[Made_co]) -> Made_co:
        return visitor.mentions(self)

    @property
    def terms(self) -> tuple[str, ...]:
        return (self.term,)

    @property
    def missing(self) -> bool:
        return not self.present

    @property
    def negated(self) -> bool:
        return not self.present

    @property
    def n_bounds(self) -> int:
        return 1

    def covers(self, values: Array) -> NDArray[np.bool_]:
        term = folded(self.term)
        listed = np.asarray(values, dtype=object).tolist()
        found = (isinstance(v, str) and term in folded(v) for v in listed)
        mentioned = np.fromiter(found, np.bool_, len(listed))
        return mentioned if self.present else ~mentioned

    def __and__(self, other: Mentions) -> Mentions:
        if self != other:
            raise ValueError(f"{self} and {other} cannot be one clause")
        return self

    def __str__(self) -> str:
        return f"{name_in_words(self.feature)} {self._wanted()}"

    def _wanted(self) -> str:
        return f'{"mentions" if self.present else "does not mention"} "{self.term}"'

    def value_in_words(self, value: object) -> str | None:
        if _is_missing(value):
            return None
        text = str(value)
        return value_in_words(text if len(text) <= 40 else text[:39] + "…")

    @property
    def group(self) -> tuple[str, ...]:
        return ("mentions", self.feature, folded(self.term))

    @staticmethod
    def cells(clauses: Sequence[Mentions], values: Array) -> Cells:
        cell = Mentions(clauses[0].feature, clauses[0].term).covers(values).astype(np.intp)
        return cell, np.array([[not c.present, c.present] for c in clauses])


Clause: TypeAlias = Interval | Period | Among | Mentions


def merged(clauses: Iterable[Clause]) -> tuple[Clause, ...]:
    """A conjunction with one clause for each group, in the order of first mention."""
    found: dict[tuple[str, ...], Clause] = {}
    for clause in clauses:
        found = add_clause(found, clause)
    return tuple(found.values())


def add_clause(
    known: Mapping[tuple[str, ...], Clause], clause: Clause
) -> dict[tuple[str, ...], Clause]:
    """Clauses by group, with one more of them: merged where its group is there already."""
    group = clause.group
    same: Value = known.get(group)
    return {**known, group: clause if same is None else same & clause}


def clause_in_words(clause: Clause) -> str:
    """A clause for people to read: as `str`, with thousands separated."""
    return clause.in_words(separated) if isinstance(clause, Interval) else str(clause)


def side_by_side(texts: Sequence[str]) -> list[str]:
    """Clauses' texts as they stand in a conjunction: "or missing" in brackets, but alone."""
    if len(texts) < 2:
        return list(texts)
    return [f"({text})" if text.endswith(" or missing") else text for text in texts]


def reason(clause: Clause, value: Value, note: str = "") -> str:
    """The clause with the value that met it, and a note about that: "amount 5200 > 4180", or
    "amount 5200 (above 99% of inliers) > 4180"."""
    name = name_in_words(clause.attribute)
    note = note and f" ({note})"
    here = clause.value_in_words(value)
    if here is None:
        return f"{name} is missing{note}" if not isinstance(clause, Mentions) else str(clause)
    joint = "in" if isinstance(clause, Among) and clause.of else "="
    if isinstance(clause, Among) and clause.values and not clause.negated:
        return f"{name} {joint} {here}{note}"
    if isinstance(clause, Among):
        return f"{name} {joint} {here}{note}, {_wanted(clause)}"
    if isinstance(clause, Mentions):
        return str(clause)
    wanted = _wanted(clause.with_fractions() if has_fraction(value) else clause)
    if wanted == f"= {here}":
        return f"{name} {wanted}{note}"
    return f"{name} {here}{note}{',' if wanted.startswith('not') else ''} {wanted}"


def reasons(clause: Clause, values: Sequence[Value], notes: Sequence[str]) -> list[str]:
    """`reason` for the values of many rows, each with its note."""
    if not isinstance(clause, Interval) or clause.only_missing or not clause.n_bounds:
        known: dict[tuple[Value, str], str] = {}
        found = []
        for value, note in zip(values, notes, strict=True):
            text = known.get((value, note))
            if text is None:
                text = known[value, note] = reason(clause, value, note)
            found.append(text)
        return found
    wanted = {False: _wanted(clause), True: _wanted(clause.with_fractions())}
    name, looks = name_in_words(clause.attribute), clause.whole
    found = []
    for value, note in zip(values, notes, strict=True):
        if value is None or value != value:
            found.append(reason(clause, value, note))
            continue
        asked, here = wanted[looks and has_fraction(value)], separated(value)
        about = note and f" ({note})"
        if asked == f"= {here}":
            found.append(f"{name} {asked}{about}")
        else:
            found.append(f"{name} {here}{about}{',' if asked.startswith('not') else ''} {asked}")
    return found


def objection(clause: Clause, value: Value) -> str:
    """Why a value does not meet the clause: "amount 12, not > 4180"."""
    name = name_in_words(clause.attribute)
    here = clause.value_in_words(value)
    if here is None:
        return f"{name} is missing, not {_wanted(clause)}"
    joint = "" if not isinstance(clause, Among) else " in" if clause.of else " ="
    wanted = _wanted(clause.with_fractions() if has_fraction(value) else clause)
    return f"{name}{joint} {here}, not {wanted}".replace("not not ", "")


def has_fraction(number: float) -> bool:
    """Whether a number that is there is no whole one; an infinite one has no fraction. Where one
    comes to a column of whole numbers, their words would not explain it."""
    return isinstance(number, float) and math.isfinite(number) and not number.is_integer()


def _wanted(clause: Clause) -> str:
    """What the clause asks of its attribute, without the attribute's name."""
    if isinstance(clause, Among | Mentions):
        return clause._wanted()
    if clause.only_missing or not clause.n_bounds:
        return clause._about_missing()
    if wanted := clause._wanted(separated):
        return f"in {wanted.removeprefix('is ')}" if wanted.startswith("is ") else wanted
    low, high = clause._written(number_in_words)  # no thousands are separated in these brackets
    return f"in ({low}, {high}]"
