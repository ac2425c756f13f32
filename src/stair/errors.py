"""What goes wrong, said in one sentence: what we got, what we expected, what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

# What a terminal obeys or that turns the order of letters around, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

_LONGEST = 800


def visible(text: str, *, lines: bool = False) -> str:
    """Text with the escape of each character that would not be seen but obeyed; `lines` may end."""
    return _UNSEEN.sub(
        lambda m: m[0] if lines and m[0] == "\n" else m[0].encode("unicode_escape").decode(), text
    )


class StairError(ValueError):
    """Bad input. The message is one sentence, in one line, for the person who gave it."""

    def __init__(self, message: str) -> None:
        if len(message) > _LONGEST:  # names and libraries' words can be as long as a file
            message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
        super().__init__(visible(message))


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
