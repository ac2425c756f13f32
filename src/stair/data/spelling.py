"""How values are written in a file, where a person should know of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from stair.data.values import MISSING

MOST_LOOKED_AT: Final = 1000  # rows, for how numbers are written
MOST_CODES: Final = 50  # different numbers: of more, people measure and do not name
# Days in an order that nobody can be sure of, and numbers with a unit or with marks for thousands.
_LIKE_DAY: Final = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?![0-9])")
_LIKE_NUMBER: Final = re.compile(
    r"[€$£]?\s?[-+]?([0-9]+|[0-9]{1,3}([,.'\s][0-9]{3})+)([.,][0-9]+)?\s?([%€$£°]|[A-Za-zµ°/]{1,4})?"
)


def notes_on(name: str, texts: Sequence[str], kind: str) -> Iterator[str]:
    """What is to be said of a column from some of its texts, and from what they were read as: the
    kind of numpy's type."""
    known = sorted({text.strip() for text in texts} - MISSING)
    note = ""
    if kind == "f":
        note = _on_numbers(known)
    elif kind == "M":
        dotted = next((text for text in known if text[2:3] == "."), "")
        if dotted:
            note = f"is read as times, {dotted} being the day, the month and the year"
    elif kind == "O":
        note = _on_texts(known)
    if note:
        yield f'"{name}" {note}'


def _on_numbers(texts: Sequence[str]) -> str:
    """That there is a decimal comma, or that one of few numbers is written in several ways, such as
    the versions 1.1 and 1.10."""
    comma = next((text for text in texts if "," in text), "")
    if comma:
        return f"is read as numbers with a decimal comma, {comma} being {comma.replace(',', '.')}"
    spelled: dict[float, list[str]] = {}
    for text in texts:
        spelled.setdefault(float(text), []).append(text)
    several = [ways for number, ways in spelled.items() if number and len(ways) > 1]
    if several and len(spelled) <= MOST_CODES:
        one, other = several[0][:2]
        return f"is read as numbers, in which {one} and {other} are one; as a category they are two"
    return ""


def _on_texts(texts: Sequence[str]) -> str:
    """That people would read a column as numbers or times, which is not done: of 03/04/2026 nobody
    knows the month, of 1,234 whether it is a thousand, and units are not known at all."""
    if len(texts) <= MOST_CODES:
        return ""
    if all(map(_LIKE_DAY.match, texts)):
        return f"is read as text: {texts[0]} could be several days; write 2026-03-16"
    looks = all(map(_LIKE_NUMBER.fullmatch, texts)) and len(set(map(_unit, texts))) == 1
    if looks and not all(map(str.isdigit, texts)):
        return f"is read as text: {texts[0]} could be several numbers; write 1234.5"
    return ""


def _unit(text: str) -> str:
    """What stands around a number."""
    return re.sub(r"[-+]?[0-9][0-9.,'\s]*", "#", text)
