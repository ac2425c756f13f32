"""A value of a table as people read it in a cell."""

from __future__ import annotations

from typing import Final

import numpy as np

from stair.rules.clauses import Period

LONGEST_CELL: Final = 60
MISSING: Final = "–"


def cell(value: object) -> str:
    """The value's text, cut where it is long."""
    return shortened(whole_cell(value), LONGEST_CELL)


def whole_cell(value: object) -> str:
    """The value's text, however long it is."""
    if value is None or value != value:  # NaN and NaT differ from themselves
        return MISSING
    if isinstance(value, np.datetime64):
        return Period("").time_in_words(value)
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    return str(value)


def shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
