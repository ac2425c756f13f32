"""A column as conditions in SQL: what is compared, and when it is missing.

The words here are neutral SQL, which sqlglot translates; DuckDB, PostgreSQL and SQLite have their
own. A column may have another type than the one that the rules were learned with. What is written
then selects the rows that the rules select, or the database stops with an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from stair.data.arrays import EXACT
from stair.data.conversion import MEASURES, NETWORKS
from stair.data.zones import UTC, fixed_offset
from stair.errors import StairError, option
from stair.export.needs import refuse_types
from stair.export.sql_dialects import Dialect
from stair.rules.schema import Field

# A bound or a category, of the type that the values of the field have.
Value: TypeAlias = Any

_DAY: Final = 86_400_000_000  # microseconds
# No column of whole numbers goes as far, and DuckDB compares such literals wrongly (3 > 2**130).
BEYOND_WHOLE: Final = 2**127
_LONGEST: Final = 15  # digits of a whole number that every database writes without an exponent
# Words that some database takes for true, false, a number or a time.
_SPECIAL: Final = frozenset(
    ("t", "tr", "tru", "true", "f", "fa", "fal", "fals", "false", "y", "ye", "yes", "n", "no",
     "on", "of", "off", "inf", "infinity", "nan", "epoch", "now", "today", "tomorrow", "yesterday",
     "allballs")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """One field's conditions. `compare` takes a sign and a bound, `listed` the categories."""

    compare: Callable[[str, Value], str]
    listed: Callable[[Sequence[Value]], str]
    here: str  # a condition: the value is not missing
    gone: str
    double: str = ""  # the value as a double, for distances
    guarded: bool = False  # NaN, which is missing, may meet a comparison: `here` is to be asked too


def plain(value: str, literal: Callable[[Value], str], double: str = "") -> Column:
    """A value that is NULL where it is missing, and compared as it is."""
    return Column(
        lambda sign, bound: f"{value} {sign} {literal(bound)}",
        lambda values: f"{value} IN ({', '.join(map(literal, values))})",
        f"{value} IS NOT NULL",
        f"{value} IS NULL",
        double,
    )


class NoZoneError(StairError):
    """A database does not know the zone of a field."""


class Columns:
    """How neutral SQL reads columns."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def column(self, field: Field, x: str) -> Column:
        """The column of a field, which SQL calls x."""
        if field.part == "hour":
            return plain(self.hour(field, x), number_literal, self.as_double(self.hour(field, x)))
        if field.part == "weekday":
            return plain(self.weekday(field, x), str)
        if field.part in NETWORKS:
            return self.network(x)
        if field.type in MEASURES:
            return self.measure(field, x)
        if field.kind == "number" or field.type == "number":
            return self.number_or_text(x) if field.marked else self.number(x)
        if field.kind == "time" or field.type == "time":
            return self.time(field, x)
        return self.flag(x) if field.type == "flag" else self.text(field, x)

    def as_double(self, x: str) -> str:
        """Sums must be those of doubles; some databases would add 0.1e0 and 0.2e0 as decimals."""
        return f"CAST({x} AS DOUBLE)"

    def number_or_text(self, x: str) -> Column:
        """A column of numbers that may be text, in which all else is missing. Where a database has
        no words for it, it stops at a text."""
        return self.number(x)

    def number(self, x: str) -> Column:
        nan = f"STAIR_NAN({x})" if self._dialect.has_nan else ""
        return Column(
            lambda sign, bound: f"{x} {sign} {number_literal(bound)}",
            lambda values: f"{x} IN ({', '.join(map(number_literal, values))})",
            f"{x} IS NOT NULL AND NOT {nan}" if nan else f"{x} IS NOT NULL",
            f"{x} IS NULL OR {nan}" if nan else f"{x} IS NULL",
            self.as_double(x),
            guarded=bool(nan),
        )

    def flag(self, x: str) -> Column:
        return plain(x, lambda value: "TRUE" if value else "FALSE")

    def text(self, field: Field, x: str) -> Column:
        del field
        is_bytes = self._dialect.name == "mysql"  # bytes are compared with bytes

        def listed(values: Sequence[Value]) -> str:
            texts = [f"STAIR_TEXT({text_literal(v)})" if is_bytes else text_literal(v)
                     for v in values]  # fmt: skip
            return f"STAIR_TEXT({x}) IN ({', '.join(texts)})"

        return Column(_no_order, listed, f"{x} IS NOT NULL", f"{x} IS NULL")

    def time(self, field: Field, x: str) -> Column:
        if self._dialect.name != "bigquery":  # where times are in UTC if they have no other zone
            refuse_types([field], ["zoned", "time"], self._dialect.title)
        return plain(
            x,
            lambda time: f"STAIR_TIME({text_literal(time_text(time))})",
            self.as_double(f"STAIR_MICROSECONDS({x})"),
        )

    def hour(self, field: Field, x: str) -> str:
        self.time(field, x)  # is refused for the same reasons
        if field.zone not in ("", UTC):
            return f"STAIR_HOUR_IN({x}, {text_literal(field.zone)})"
        return f"STAIR_HOUR({x})"

    def weekday(self, field: Field, x: str) -> str:
        self.time(field, x)
        if field.zone not in ("", UTC):
            return f"STAIR_WEEKDAY_IN({x}, {text_literal(field.zone)})"
        return f"STAIR_WEEKDAY({x})"

    def network(self, x: str) -> Column:
        """The networks of addresses: all that begin with the same numbers, of texts that are
        addresses. Anything else is missing."""
        text, is_address = self.address(x)

        def listed(networks: Sequence[Value]) -> str:
            starts = (f"{text} LIKE '{start_of(network)}%'" for network in networks)
            return f"({' OR '.join(starts)})"

        here = f"{x} IS NOT NULL AND {is_address}"
        return Column(_no_order, listed, here, f"{x} IS NULL OR NOT {is_address}", guarded=True)

    def address(self, x: str) -> tuple[str, str]:
        """A value as text, and a condition that it is an IPv4 address in its usual form."""
        return x, f"STAIR_ADDRESS({x})"

    def ahead(self, field: Field) -> int:
        """The seconds by which the zone of a field is ahead of UTC, for a database that knows no
        zones by name."""
        fixed = fixed_offset(field.zone)
        if fixed is None:
            raise NoZoneError(
                f'"{field.name}" is of {field.zone}, and {self._dialect.title} knows no time zones '
                "by name; use another dialect, or learn with an offset: "
                + option("time_zone", "+01:00")
            )
        return fixed

    def measure(self, field: Field, x: str) -> Column:
        """Durations and times of the day."""
        refuse_types([field], MEASURES, self._dialect.title)
        raise AssertionError(x)

    def mentions(self, field: Field, x: str, term: str) -> str:
        """Whether a text has a term in it; NULL or false where the text is missing."""
        del field
        return f"STAIR_HAS({x}, {text_literal(term)})"


def _no_order(sign: str, bound: Value) -> str:
    raise AssertionError((sign, bound))


class TypedColumns(Columns):
    """Text where a database knows the types of columns, and a query can ask for them."""

    is_text: str  # conditions in which {x} is the column
    is_flag: str
    is_nan: str
    is_real: str
    as_text: str
    real_as_text: str  # as stair writes it, NULL for NaN
    loud: str  # an error that says {said}

    def text(self, field: Field, x: str) -> Column:
        nan = self.is_nan.format(x=x)

        def listed(values: Sequence[str]) -> str:
            texts = ", ".join(map(text_literal, values))
            found = x if are_words(values) else self._code(field, x, values)
            return f"{found} IN ({texts})"

        return Column(_no_order, listed, f"{x} IS NOT NULL AND NOT {nan}", f"{x} IS NULL OR {nan}")

    def _code(self, field: Field, x: str, values: Sequence[str]) -> str:
        """Any column as text, as stair writes it; an error for types that could look alike."""
        text = self.as_text.format(x=x)
        true, false = (text_literal(field.spelled(truth)) for truth in (True, False))
        cases = [
            f"{self.is_text.format(x=x)} THEN {text}",
            f"{self.is_flag.format(x=x)} THEN CASE {text} WHEN 'true' THEN {true} "
            f"WHEN 'false' THEN {false} END",
        ]
        numbers = [number_as_text(value) for value in values]
        if all(n is None or len(str(n)) <= _LONGEST for n in numbers):
            cases.append(f"{self.is_real.format(x=x)} THEN {self.real_as_text.format(x=x)}")
        said = text_literal(f'"{field.source}" has values of another type: ')
        loud = self.loud.format(said=f"{said} || {text}")
        return f"CASE WHEN {' WHEN '.join(cases)} ELSE {loud} END"


# --- values ---------------------------------------------------------------------------------------


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    if "\0" in text:
        raise StairError(f"{text!r} cannot be a text in SQL")
    return "'" + text.replace("'", "''") + "'"


def literal(value: object) -> str:
    """A label."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return repr(value) if isinstance(value, int | float) else text_literal(str(value))


def double_literal(value: float) -> str:
    """A number that no database takes for a decimal: 0.1 would be one, and be added as one."""
    text = repr(float(value)).removesuffix(".0")
    return text if "e" in text else f"{text}e0"


def number_literal(value: float) -> str:
    """A number to compare with: a whole one as such, so that it is exact."""
    if isinstance(value, int) or (abs(value) < 2**24 and value == int(value)):
        return str(int(value))
    return double_literal(value)


def is_wide(value: float) -> bool:
    """Whether there are whole numbers near it that doubles cannot tell apart."""
    return abs(value) >= EXACT


def at_most(bound: float) -> float:
    """The largest double that is not above a bound: it has the same doubles below it."""
    near = float(bound)
    return near if near <= bound else math.nextafter(near, -math.inf)


def one_of_doubles(
    x: str, as_double: str, values: Sequence[Value], is_whole: str, double: Callable[[float], str]
) -> str:
    """Numbers as categories. `is_whole` says that the column's type is one of whole numbers: such
    a column can have whole numbers that a double cannot."""
    small = [v for v in values if not is_wide(v)]
    parts = [f"{as_double} IN ({', '.join(double(v) for v in small)})"] if small else []
    for value in filter(is_wide, values):
        whole, near = int(value), float(value)
        among_doubles = f"{as_double} = {double(near)}" if near == whole else "1 = 0"
        if abs(whole) >= BEYOND_WHOLE:
            parts.append(among_doubles)
        else:
            parts.append(f"CASE WHEN {is_whole} THEN {x} = {whole} ELSE {among_doubles} END")
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def number_as_text(text: str) -> int | float | None:
    """The number that the code of a column of text is, where numbers are read as text: 2 for "2",
    but none for "2.0" and "02", which no number is written as."""
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if number.is_integer():
        whole = int(number) if abs(number) < EXACT or not text.lstrip("-").isdigit() else int(text)
        return whole if str(whole) == text else None
    return number if repr(number) == text else None


def are_words(values: Sequence[str]) -> bool:
    """Whether a list has a word that no database takes for anything but text: compared with such a
    list, a column of another type is an error."""
    return any(v[:1].isalpha() and v.lower() not in _SPECIAL for v in values)


def time_text(time: Value) -> str:
    """A time as SQL writes it, to the microsecond where it must be."""
    day, _, clock = str(np.datetime64(time, "us")).partition("T")
    return f"{day} {clock.rstrip('0').rstrip('.') if '.' in clock else clock}"


def start_of(network: str) -> str:
    """What the addresses of a network begin with: 205.174.165. for 205.174.165.0/24."""
    address, _, bits = network.partition("/")
    return "".join(f"{number}." for number in address.split(".")[: int(bits) // 8])


def in_calendar(time: Value) -> bool:
    """Whether a time is in the years 1 to 9999, which every database can write."""
    first, last = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999")
    return bool(first <= np.datetime64(time, "us") <= last)


def epoch_microseconds(time: Value) -> int:
    return int(np.datetime64(time, "us").astype(np.int64))


def hours_of(microseconds: int) -> float:
    """A time of the day in hours, as stair reads it."""
    seconds = microseconds // 1_000_000
    clock = seconds % 60 + (microseconds % 1_000_000) / 1e6
    return seconds // 3600 + seconds // 60 % 60 / 60 + clock / 3600


def seconds_of(microseconds: int) -> float:
    return microseconds / 1e6


def last_within(bound: float, measure: Callable[[int], float], low: int, high: int) -> int:
    """The largest number of microseconds in [low, high] whose measure is not above a bound; one
    less than `low` where there is none."""
    low -= 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if measure(middle) <= bound else (low, middle - 1)
    return low


def last_clock(hours: float) -> int:
    return last_within(hours, hours_of, 0, _DAY - 1)


def last_duration(seconds: float) -> int:
    return last_within(seconds, seconds_of, -(2**63), 2**63 - 1)


def exactly(
    value: float, last: Callable[[float], int], measure: Callable[[int], float]
) -> list[int]:
    """The microseconds that a category in hours or seconds stands for."""
    found = last(value)
    return [found] if measure(found) == value else []


def clock_text(microseconds: int) -> str:
    seconds, fraction = divmod(microseconds, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}" if fraction else text
