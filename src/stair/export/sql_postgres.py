"""How PostgreSQL reads columns. It thinks that NaN is larger than every number."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from stair.data.conversion import ADDRESS, NUMBER
from stair.data.zones import fixed_offset
from stair.export.sql_columns import (
    Column,
    TypedColumns,
    Value,
    at_most,
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
_TEXTS: Final = "('text', 'character varying')"
# What Python takes for a blank around a number.
_BLANKS: Final = (r"[\s\u000b\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f"
                  r"\u3000]*")  # fmt: skip
_WHOLE: Final = "('smallint', 'integer', 'bigint')"
_EXACT: Final = "('smallint', 'integer', 'bigint', 'numeric')"
_REAL: Final = "('real', 'double precision', 'numeric')"


def _type(x: str) -> str:
    return f"CAST(pg_typeof({x}) AS text)"


def _double(value: float) -> str:
    """With a double a decimal column is compared as a double, which is how stair reads it."""
    return f"{repr(float(value)).removesuffix('.0')}::float8"


def _compared(x: str, value: str, sign: str, bound: float) -> str:
    """The column x with a bound, by its value as a double where that is enough."""
    near = f"{value} {sign} {_double(at_most(bound))}"
    if not is_wide(bound):
        return near
    return f"CASE WHEN {_type(x)} IN {_EXACT} THEN {x} {sign} {int(bound)} ELSE {near} END"


class PostgresColumns(TypedColumns):
    is_text = f"{_type('{x}')} IN {_TEXTS} OR {_type('{x}')} IN {_WHOLE}"
    is_flag = f"{_type('{x}')} = 'boolean'"
    is_nan = f"({_type('{x}')} IN {_REAL} AND CAST({{x}} AS text) = 'NaN')"
    is_real = f"{_type('{x}')} IN {_REAL}"
    as_text = "CAST({x} AS text)"
    real_as_text = f"nullif(CAST(CAST({as_text} AS float8) AS text), 'NaN')"
    # Only with the value in it is it not worked out, and so an error, before any row is read.
    loud = "CAST(CAST({said} AS int) AS text)"

    def as_double(self, x: str) -> str:
        return f"CAST({x} AS DOUBLE PRECISION)"

    def number_or_text(self, x: str) -> Column:
        text = f"substring(CAST({x} AS text) FROM '^{_BLANKS}({NUMBER}){_BLANKS}$')"
        value = (
            f"(CASE WHEN {_type(x)} IN {_TEXTS} THEN CAST({text} AS float8) "
            f"ELSE nullif(CAST({x} AS float8), 'NaN') END)"
        )
        return Column(
            lambda sign, bound: _compared(x, value, sign, bound),
            lambda values: one_of_doubles(x, value, values, f"{_type(x)} IN {_EXACT}", _double),
            f"{value} IS NOT NULL", f"{value} IS NULL", value,
        )  # fmt: skip

    def number(self, x: str) -> Column:
        return Column(
            lambda sign, bound: _compared(x, x, sign, bound),
            lambda values: one_of_doubles(x, x, values, f"{_type(x)} IN {_EXACT}", _double),
            f"{x} <= 'Infinity'::float8",
            f"{x} IS NULL OR {x} > 'Infinity'::float8",
            f"({x} * 1::float8)",
            guarded=True,
        )

    def flag(self, x: str) -> Column:
        """IS UNKNOWN is IS NULL for true and false, and an error for all else: NaN is not NULL."""
        found = super().flag(x)
        return replace(found, here=f"{x} IS NOT UNKNOWN", gone=f"{x} IS UNKNOWN")

    def time(self, field: Field, x: str) -> Column:
        """By the seconds since 1970: those of a zoned time are the same in every session, and what
        is no time is an error."""
        epoch = _since_1970(field, x)

        def moment(time: Value) -> str:
            if in_calendar(time):
                return f"extract(epoch FROM TIMESTAMP {text_literal(time_text(time))})"
            seconds, rest = divmod(epoch_microseconds(time), 1_000_000)
            return f"({seconds} + 0.{rest:06})"

        return plain(epoch, moment, self.as_double(f"({epoch}) * 1000000"))

    def hour(self, field: Field, x: str) -> str:
        return f"extract(hour FROM {_local(field, x)})"

    def weekday(self, field: Field, x: str) -> str:
        return f"extract(isodow FROM {_local(field, x)})"

    def address(self, x: str) -> tuple[str, str]:
        return x, f"({x} ~ '^{ADDRESS}$')"

    def measure(self, field: Field, x: str) -> Column:
        last: Callable[[float], int]
        if field.type == "duration":  # a year counts as 365 days, as it does where it is read
            us = f"((extract(epoch FROM {x}) - 21600 * extract(year FROM {x})) * 1000000)"
            last, measure = last_duration, seconds_of
            double = f"({self.as_double(us)} / 1e6::float8)"
        else:  # a time of the day with a zone is an error
            us = f"(extract(epoch FROM {x} - TIME '00:00') * 1000000)"
            last, measure = last_clock, hours_of
            whole = f"CAST({us} AS bigint)"
            double = (
                f"({self.as_double(f'{whole} / 3600000000')} "
                f"+ {self.as_double(f'{whole} / 60000000 % 60')} / 60::float8 "
                f"+ ({self.as_double(f'{whole} / 1000000 % 60')} "
                f"+ {self.as_double(f'{whole} % 1000000')} / 1e6::float8) / 3600::float8)"
            )

        def listed(values: Sequence[float]) -> str:
            found = [str(n) for value in values for n in exactly(value, last, measure)]
            return f"{us} IN ({', '.join(found)})" if found else f"{us} <> {us}"

        return Column(
            lambda sign, bound: f"{us} {sign} {last(bound)}",
            listed,
            f"{x} IS NOT NULL",
            f"{x} IS NULL",
            double,
        )

    def mentions(self, field: Field, x: str, term: str) -> str:
        del field
        return f"strpos(translate({x}, '{_UPPER}', '{_LOWER}'), {text_literal(term)}) > 0"


def _since_1970(field: Field, x: str) -> str:
    """Seconds. A time that has lost its zone is another one, and an error: it has no offset."""
    epoch = f"extract(epoch FROM {x})"
    return f"({epoch} + 0 * extract(timezone FROM {x}))" if field.type == "zoned" else epoch


def _local(field: Field, x: str) -> str:
    """A time as the clocks of its field's zone show it, whatever the session's zone is."""
    fixed = fixed_offset(field.zone)
    seconds = f"floor({_since_1970(field, x)})"
    if fixed is None:
        return f"to_timestamp({seconds}) AT TIME ZONE {text_literal(field.zone)}"
    return f"to_timestamp({seconds}{f' + {fixed}' if fixed else ''}) AT TIME ZONE 'UTC'"
