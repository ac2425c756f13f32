"""How DuckDB reads columns.

It thinks that NaN is larger than every number. And it believes the figures of Parquet files, in
which NaN is not counted: x <= 5, and isnan(x), are answered by them without a look at the rows.
What x - x is, nobody has written down there. Where all numbers but NaN are one, DuckDB takes the
column for a constant; only what CASE gives is then looked up row by row.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Final

from stair.data.conversion import ADDRESS, NUMBER
from stair.data.zones import fixed_offset
from stair.export.sql_columns import (
    BEYOND_WHOLE,
    Column,
    TypedColumns,
    Value,
    at_most,
    clock_text,
    double_literal,
    epoch_microseconds,
    exactly,
    hours_of,
    in_calendar,
    is_wide,
    last_clock,
    last_duration,
    one_of_doubles,
    plain,
    seconds_of,
    text_literal,
    time_text,
)
from stair.rules.schema import Field

_UPPER, _LOWER = string.ascii_uppercase, string.ascii_lowercase
# What Python takes for a blank around a number.
_BLANKS: Final = r"[\s\p{Z}\x0b\x1c-\x1f\x85]*"
_FLOATS: Final = "('DOUBLE', 'FLOAT')"


def _is_whole(x: str) -> str:
    return f"(typeof({x}) LIKE '%INT' OR typeof({x}) LIKE '%INTEGER')"


def _is_exact(x: str) -> str:
    return f"({_is_whole(x)} OR typeof({x}) LIKE 'DECIMAL%')"


def _compared(x: str, value: str, sign: str, bound: float) -> str:
    """The column x with a bound, by its value as a double where that is enough."""
    near = f"{value} {sign} {double_literal(at_most(bound))}"
    if not is_wide(bound) or abs(bound) >= BEYOND_WHOLE:
        return near
    return f"CASE WHEN {_is_exact(x)} THEN {x} {sign} {int(bound)} ELSE {near} END"


def _is_nan(x: str) -> str:
    """Whether a column of any type has NaN, which may have a sign. `=` would be answered by the
    statistics too, where all other values of the file are the same."""
    nan = f"typeof({x}) IN {_FLOATS} AND contains(CAST({x} AS VARCHAR), 'nan')"
    return f"CASE WHEN {nan} THEN TRUE ELSE FALSE END"


class DuckdbColumns(TypedColumns):
    is_text = f"typeof({{x}}) = 'VARCHAR' OR {_is_whole('{x}')} OR typeof({{x}}) LIKE 'ENUM%'"
    is_flag = "typeof({x}) = 'BOOLEAN'"
    is_nan = _is_nan("{x}")
    is_real = f"typeof({{x}}) IN {_FLOATS} OR typeof({{x}}) LIKE 'DECIMAL%'"
    as_text = "CAST({x} AS VARCHAR)"
    real_as_text = (
        f"CASE WHEN contains({as_text}, 'nan') THEN NULL ELSE "
        f"regexp_replace(CAST(TRY_CAST({as_text} AS DOUBLE) AS VARCHAR), '\\.0$', '') END"
    )
    loud = "error({said})"

    def number_or_text(self, x: str) -> Column:
        text = f"regexp_extract(CAST({x} AS VARCHAR), '^{_BLANKS}({NUMBER}){_BLANKS}$', 1)"
        value = (
            f"(CASE WHEN typeof({x}) = 'VARCHAR' THEN TRY_CAST({text} AS DOUBLE) "
            f"WHEN NOT contains(CAST({x} AS VARCHAR), 'nan') THEN CAST({x} AS DOUBLE) END)"
        )
        return Column(
            lambda sign, bound: _compared(x, value, sign, bound),
            lambda values: one_of_doubles(x, value, values, _is_exact(x), double_literal),
            f"{value} IS NOT NULL", f"{value} IS NULL", value,
        )  # fmt: skip

    def number(self, x: str) -> Column:
        here = f"({x} - {x} = 0 OR isinf({x}))"
        return Column(
            lambda sign, bound: _compared(x, x, sign, bound),
            lambda values: one_of_doubles(x, f"{x} * 1e0", values, _is_exact(x), double_literal),
            here, f"CASE WHEN {here[1:-1]} THEN FALSE ELSE TRUE END", f"({x} * 1e0)", guarded=True,
        )  # fmt: skip

    def flag(self, x: str) -> Column:
        """By order and not by equality: a text would be cast, and "t" is true to DuckDB alone."""
        nan = _is_nan(x)
        return Column(
            lambda sign, bound: f"{x} {sign} {int(bound)}",
            lambda values: f"({' OR '.join(f'{x} >= {v:d} AND {x} <= {v:d}' for v in values)})",
            f"{x} IS NOT NULL AND NOT {nan}",
            f"{x} IS NULL OR {nan}",
            guarded=True,
        )

    def time(self, field: Field, x: str) -> Column:
        """By the microseconds since 1970: those of a zoned time are the same in every session, and
        what is no time is an error."""
        microseconds = _since_1970(field, x)

        def moment(time: Value) -> str:
            if in_calendar(time):
                return f"epoch_us(TIMESTAMP {text_literal(time_text(time))})"
            return str(epoch_microseconds(time))

        return plain(microseconds, moment, self.as_double(microseconds))

    def hour(self, field: Field, x: str) -> str:
        return f"extract(hour FROM {_local(field, x)})"

    def weekday(self, field: Field, x: str) -> str:
        return f"extract(isodow FROM {_local(field, x)})"

    def address(self, x: str) -> tuple[str, str]:
        return x, f"regexp_full_match({x}, '{ADDRESS}')"

    def measure(self, field: Field, x: str) -> Column:
        us = f"epoch_us({x})"
        if field.type == "duration":
            return Column(
                lambda sign, bound: f"{us} {sign} {last_duration(bound)}",
                lambda values: _among(us, [str(n) for v in values
                                           for n in exactly(v, last_duration, seconds_of)]),
                f"{x} IS NOT NULL", f"{x} IS NULL", f"({us} / 1e6)",
            )  # fmt: skip

        def compare(sign: str, bound: float) -> str:
            # As the moment after the last one that is not above the bound, in case of nanoseconds.
            after = last_clock(bound) + 1
            if after == 86_400_000_000:
                return "1 = 0" if sign == ">" else f"{x} IS NOT NULL"
            return f"{x} {'>=' if sign == '>' else '<'} TIME {text_literal(clock_text(after))}"

        clocks = f"{us} // 3600000000 + {us} // 60000000 % 60 / 60e0"
        return Column(
            compare,
            lambda values: _among(x, [f"TIME {text_literal(clock_text(n))}" for v in values
                                      for n in exactly(v, last_clock, hours_of)]),
            f"{x} IS NOT NULL", f"{x} IS NULL",
            f"({clocks} + ({us} // 1000000 % 60 + {us} % 1000000 / 1e6) / 3600e0)",
        )  # fmt: skip

    def mentions(self, field: Field, x: str, term: str) -> str:
        del field
        return f"strpos(translate({x}, '{_UPPER}', '{_LOWER}'), {text_literal(term)}) > 0"


def _since_1970(field: Field, x: str) -> str:
    """Microseconds. A time that has lost its zone is another one, and an error."""
    if field.type != "zoned":
        return f"epoch_us({x})"
    said = text_literal(f'"{field.source}" had a time zone when the rules were learned, but not ')
    return (
        f"(CASE WHEN typeof({x}) = 'TIMESTAMP WITH TIME ZONE' THEN epoch_us({x}) "
        f"ELSE CAST(error({said} || CAST({x} AS VARCHAR)) AS BIGINT) END)"
    )


def _local(field: Field, x: str) -> str:
    """A time as the clocks of its field's zone show it, whatever the session's zone is."""
    fixed, microseconds = fixed_offset(field.zone), _since_1970(field, x)
    if fixed is None:
        utc = f"make_timestamp({microseconds}) AT TIME ZONE 'UTC'"
        return f"{utc} AT TIME ZONE {text_literal(field.zone)}"
    ahead = f" + {fixed * 1_000_000}" if fixed else ""
    return f"make_timestamp({microseconds}{ahead})"


def _among(value: str, listed: Sequence[str]) -> str:
    """In a list that may be empty: no microsecond is a seventh of a second."""
    return f"{value} IN ({', '.join(listed)})" if listed else f"{value} <> {value}"
