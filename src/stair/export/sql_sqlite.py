"""How SQLite reads columns, in which each value has a type of its own.

It has no times: text in ISO form, which is read to the microsecond. A value of a type that the
rules cannot mean is an error: SQLite would compare it with anything and say nothing. The way to
raise one is a path into JSON that is none, whose text is in the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from stair.export.code import as_datetime
from stair.export.sql_columns import (
    Column,
    Columns,
    at_most,
    is_wide,
    number_as_text,
    plain,
    text_literal,
)
from stair.rules.schema import Field

_LONG_AGO: Final = 86_400 * (7 * 200_000 + 3)  # seconds from a Monday to 1970
_DATE: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_MINUTE: Final = f"{_DATE}[ T][0-9][0-9]:[0-9][0-9]"
_SECOND: Final = f"{_MINUTE}:[0-9][0-9]"


def _loud(x: str, what: str) -> str:
    return f"json_extract('{{}}', {text_literal(what)} || {x})"


def _number_literal(value: float) -> str:
    """SQLite compares whole numbers of 64 bits with others exactly, and has no larger ones."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    return repr(at_most(value))


class SqliteColumns(Columns):
    def as_double(self, x: str) -> str:
        return f"CAST({x} AS REAL)"

    def number(self, x: str) -> Column:
        value = (
            f"CASE WHEN typeof({x}) IN ('text', 'blob') THEN {_loud(x, 'this is no number: ')} "
            f"ELSE {x} END"
        )
        number = plain(value, _number_literal, self.as_double(value))

        def listed(values: Sequence[Any]) -> str:
            # A whole number beyond 64 bits is a double here, so that it may be none of those.
            kept = [v for v in values if -(2**63) <= v < 2**63 or float(v) == v]
            return number.listed(kept) if kept else f"{value} <> {value}"

        return replace(number, listed=listed)

    def flag(self, x: str) -> Column:
        number = self.number(x)
        return Column(
            number.compare,
            lambda values: number.listed([int(v) for v in values]),
            number.here,
            number.gone,
        )

    def text(self, field: Field, x: str) -> Column:
        """Whole and real numbers are compared as numbers; whatever collation the column has."""
        del field
        text = f"CAST({x} AS TEXT) COLLATE BINARY"

        def listed(values: Sequence[str]) -> str:
            texts = f"{text} IN ({', '.join(map(text_literal, values))})"
            if not any(map(_looks_like_a_number, values)):
                return texts
            numbers = [n for n in map(number_as_text, values) if n is not None]
            exact = [n for n in numbers if not is_wide(n) or -(2**63) <= n < 2**63]
            among = f"{x} IN ({', '.join(map(str, exact))})" if exact else f"{x} <> {x}"
            return f"CASE WHEN typeof({x}) IN ('integer', 'real') THEN {among} ELSE {texts} END"

        return Column(
            lambda sign, bound: f"{text} {sign} {text_literal(bound)}",
            listed,
            f"{x} IS NOT NULL",
            f"{x} IS NULL",
        )

    def time(self, field: Field, x: str) -> Column:
        value = _moment(x)
        if field.kind == "category":  # a text that is no time is a category that was never seen
            value = f"coalesce({value}, CAST({x} AS TEXT))"
        seconds = f"CAST(strftime('%s', substr({value}, 1, 19)) AS INTEGER)"
        return plain(
            value,
            lambda time: text_literal(_time_text(time, field)),
            self.as_double(f"({seconds} * 1000000 + CAST(substr({value}, 21) AS INTEGER))"),
        )

    def hour(self, field: Field, x: str) -> str:
        if fixed := self.ahead(field):
            return f"{_since_monday(x, fixed)} % 86400 / 3600"
        return f"CAST(substr({_moment(x)}, 12, 2) AS INTEGER)"

    def weekday(self, field: Field, x: str) -> str:
        if fixed := self.ahead(field):
            return f"{_since_monday(x, fixed)} / 86400 % 7 + 1"
        day = f"CAST(strftime('%w', substr({_moment(x)}, 1, 10)) AS INTEGER)"
        return f"({day} + 6) % 7 + 1"

    def address(self, x: str) -> tuple[str, str]:
        """Without expressions: three points between one to three digits each, up to 255, no leading
        zeros; and no zero byte, at which all but the bytes seem to end."""
        text = f"CAST({x} AS TEXT)"
        absent = ("*[^0-9.]*", "*..*", ".*", "*.", "0[0-9]*", "*.0[0-9]*", "*[0-9][0-9][0-9][0-9]*",
                  "*[3-9][0-9][0-9]*", "*2[6-9][0-9]*", "*25[6-9]*")  # fmt: skip
        asked = " AND ".join(f"{text} NOT GLOB '{pattern}'" for pattern in absent)
        points = f"length({text}) - length(replace({text}, '.', '')) = 3"
        whole = f"length(CAST({text} AS BLOB)) = length({text})"
        return text, f"({points} AND {asked} AND {whole})"

    def mentions(self, field: Field, x: str, term: str) -> str:
        del field
        real = _loud(x, "this is no text: ")
        text = f"CASE typeof({x}) WHEN 'real' THEN {real} ELSE CAST({x} AS TEXT) END"
        return f"instr(lower({text}), {text_literal(term)}) > 0"  # lower() folds ASCII alone there


def _since_monday(x: str, ahead: int) -> str:
    """Seconds since a Monday before all times, by clocks that are so many seconds ahead of UTC."""
    seconds = f"CAST(strftime('%s', substr({_moment(x)}, 1, 19)) AS INTEGER)"
    return f"({seconds} + {ahead + _LONG_AGO})"


def _looks_like_a_number(text: str) -> bool:
    """As "1.0" does, which is what SQLite writes for 1.0, and stair does not."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _time_text(time: Any, field: Field) -> str:

    found = as_datetime(np.datetime64(time, "us"), field.name)
    return found.isoformat(" ", timespec="microseconds")


def _moment(x: str) -> str:
    """A text in ISO form as YYYY-MM-DD HH:MM:SS.ffffff, moved to UTC where it has a zone; NULL
    where it is no time. SQLite itself knows milliseconds alone, and takes 30 February for 1 March.
    """
    text = f"SELECT trim({x}, char(9, 10, 13, 32)) AS stair_text"
    zone = (
        "SELECT stair_text, CASE WHEN stair_text GLOB '*:*Z' THEN 'Z' "
        "WHEN stair_text GLOB '*:*[+-][0-9][0-9]:[0-9][0-9]' THEN substr(stair_text, -6) "
        f"ELSE '' END AS stair_zone FROM ({text})"
    )
    body = (
        "SELECT stair_zone, substr(stair_text, 1, length(stair_text) - length(stair_zone)) "
        f"AS stair_time FROM ({zone})"
    )
    t = "stair_time"
    is_time = (
        f"({t} GLOB '{_DATE}' AND stair_zone = '' OR {t} GLOB '{_MINUTE}' OR {t} GLOB '{_SECOND}' "
        f"OR {t} GLOB '{_SECOND}.[0-9]*' AND substr({t}, 21) NOT GLOB '*[^0-9]*' "
        f"AND length({t}) <= 29) AND {t} > '0001' "
        f"AND date(substr({t}, 1, 10), '+0 days') = substr({t}, 1, 10) "
        f"AND substr({t}, 12, 2) < '24' AND substr({t}, 15, 2) < '60' AND substr({t}, 18, 2) < '60'"
    )
    found = (
        f"SELECT CASE WHEN {is_time} "
        f"THEN strftime('%Y-%m-%d %H:%M:%S', substr({t}, 1, 19) || stair_zone) "
        f"|| '.' || substr(substr({t}, 21) || '000000', 1, 6) END FROM ({body})"
    )
    loud = _loud(x, "this is no time: ")
    return f"CASE WHEN typeof({x}) IN ('integer', 'real', 'blob') THEN {loud} ELSE ({found}) END"
