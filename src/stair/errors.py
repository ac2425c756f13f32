"""What goes wrong, said in one sentence: what we got, what we expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StairError(ValueError):
    """Bad input. The message is for the person who gave it."""


class FloorNotReached(UserWarning):
    """The rules are the best there are, but their score is not above the floor."""


class OutlierGuessed(UserWarning):
    """Nothing says which of two classes is the outlier, so the smaller one was taken."""


def no_such_column(name: str, names: Iterable[str], source: str) -> StairError:
    """A column that is not there, with the nearest names and what there is."""
    known = list(names)
    return StairError(
        f'no column "{name}" in {source}.{did_you_mean(name, known)} Columns: {folded(known)}'
    )


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the nearest names, or nothing where none is near."""
    by_case: dict[str, str] = {}
    for known in names:
        by_case.setdefault(known.casefold(), known)
    near = difflib.get_close_matches(name.casefold(), by_case, n=3, cutoff=0.6)
    if not near:
        return ""
    return " Did you mean " + " or ".join(f'"{by_case[n]}"' for n in near) + "?"


def folded(names: Iterable[str], most: int = 12) -> str:
    """A list that stays readable however long it is."""
    every = list(names)
    tail = f", … {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + tail
