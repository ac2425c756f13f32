"""How Spark reads times with a zone: by the microseconds since 1970, which are the same in every
session, and by the clocks of the rules' zone, whatever the session's zone is.

What is no time is an error. A time that has lost its zone is one too where `unix_micros` takes
none, and else taken as UTC, as `predict` takes it.
"""

from __future__ import annotations

from stair.data.zones import fixed_offset
from stair.export.sql_columns import Column, Columns, epoch_microseconds, plain, text_literal
from stair.rules.schema import Field


class SparkColumns(Columns):
    def time(self, field: Field, x: str) -> Column:
        if field.type != "zoned":
            return super().time(field, x)
        instant = f"STAIR_INSTANT({x})"
        return plain(instant, lambda time: str(epoch_microseconds(time)), self.as_double(instant))

    def hour(self, field: Field, x: str) -> str:
        if field.type != "zoned":
            return super().hour(field, x)
        return f"STAIR_HOUR_OF({_shown(field, x)})"

    def weekday(self, field: Field, x: str) -> str:
        if field.type != "zoned":
            return super().weekday(field, x)
        return f"STAIR_WEEKDAY_OF({_shown(field, x)})"


def _shown(field: Field, x: str) -> str:
    """What the clocks of a field's zone show, as microseconds since theirs of 1970."""
    ahead = fixed_offset(field.zone)
    if ahead is None:
        return f"STAIR_INSTANT_IN({x}, {text_literal(field.zone)})"
    return f"STAIR_INSTANT({x}){f' + {1_000_000 * ahead}' if ahead else ''}"
