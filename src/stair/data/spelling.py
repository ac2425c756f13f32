"""How values are written where people wrote them: $1,234.50 and 1.234,5 and 12 %, 16.03.2026,
<0.6 where less cannot be measured, 90+ where more is not told apart, and 7:05 of hours.

A column of text is looked at as a whole. It has a form only where all of its values have that
form, and where they tell it from every other: of 03/04/2026 alone nobody knows the month, of 1,234
whether it is a thousand. Such columns stay text, and a note says so.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from stair.data.frame import EPOCH_UNIT, Array
from stair.data.values import MISSING

MOST_LOOKED_AT: Final = 1000  # rows, by which it is guessed whether all are worth a look
MOST_DIGITS: Final = 15  # of a number: a double would round more
NOT_A_CODE: Final = "NA"
LONGEST_CODE: Final = 3
MOST_CODES: Final = 50  # different numbers: of more, people measure and do not name

_SPACE: Final = "[ \u00a0\u202f]"
_WHOLE: Final = "(0|[1-9][0-9]*|[1-9][0-9]{0,2}(%s[0-9]{3})+)"
POINT: Final = "(" + _WHOLE % ("[,'" + _SPACE[1:]) + r"(\.[0-9]+)?|\.[0-9]+)"
COMMA: Final = _WHOLE % ("[.'" + _SPACE[1:]) + "(,[0-9]+)?"
_TENS: Final = "([eE][-+]?[0-9]{1,3})?"
# A number that is only known to be below or above what is written.
BELOW: Final = "(?:<=|<|≤)"
ABOVE: Final = "(?:>=|>|≥)"
_LIMIT: Final = re.compile(rf"({BELOW}|{ABOVE}){_SPACE}?(.+)|([^<>≤≥].*)(\+)")
_UNIT: Final = re.compile(
    rf"[-+]?([$€£¥]?){_SPACE}?[-+]?[0-9.].*?({_SPACE}?[%$€£¥]|{_SPACE}[A-Za-zµ°/]{{1,5}})?"
)
_AMOUNT: Final = re.compile(rf"(?:[0-9]+(?:[.,][0-9]+)?{_SPACE}?[A-Za-zµ]{{1,3}}{_SPACE}?)+")
# Day or month, month or day, year, hour, minute, second, its parts, a or p.
DAY: Final = (
    "([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?: ?([AaPp])[Mm])?)?"
)
_DAY_MATCH: Final = re.compile(DAY)
# Hours and minutes, or minutes and seconds, or all three.
CLOCK: Final = r"([-+]?)([0-9]{1,4}):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?"
_CLOCK_MATCH: Final = re.compile(CLOCK)


class Numbers(NamedTuple):
    """Numbers with a unit, or with marks between thousands, or with a decimal comma."""

    decimal: str
    has_unit: bool = True

    def read(self, texts: Iterable[str | None]) -> Array:
        return np.array([np.nan if _gone(text) else self._number(str(text)) for text in texts])

    def _number(self, text: str) -> float:
        bare = re.sub("[^0-9.,+-]" if self.has_unit else "[^0-9.,eE+-]", "", _without_limit(text))
        if self.decimal == ".":
            return float(bare.replace(",", "")) + 0.0  # no negative zero
        return float(bare.replace(".", "").replace(",", ".")) + 0.0


class Days(NamedTuple):
    """Days with their year at the end, and perhaps a time of the day."""

    has_day_first: bool

    def read(self, texts: Iterable[str | None]) -> Array:
        texts = list(texts)
        known = {text: _moment(text.strip(), self.has_day_first)
                 for text in set(texts) if text is not None}  # fmt: skip
        found = [None if _gone(text) else known[str(text)] for text in texts]
        return np.array(found, dtype=EPOCH_UNIT)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Times of the day, or how long something took, as numbers of the first of their parts."""

    def read(self, texts: Iterable[str | None]) -> Array:
        return np.array([np.nan if _gone(text) else _clock(str(text).strip()) for text in texts])


Form: TypeAlias = Numbers | Days | Clocks


def pattern(body: str, unit: tuple[str, str]) -> str:
    """All numbers of one kind with this unit."""
    before, after = map(re.escape, unit)
    tens = "" if unit[0] or unit[1] else _TENS
    signed = f"([-+]?{before}{_SPACE}?|{before}{_SPACE}?[-+]?){body}{tens}{_SPACE}?{after}"
    return f"(({BELOW}|{ABOVE}){_SPACE}?{signed}|{signed}[+]?)"


@dataclass(slots=True)
class Look:
    """What is known of how the values of a column are written, from more and more of them."""

    has_commas: bool  # whether a number without a unit may have a decimal comma
    unit: tuple[str, str] | None = None
    are_points: bool = True
    are_commas: bool = True
    are_marked: bool = False  # whether one has a point or a comma
    plain: frozenset[str] = frozenset()  # one or two numbers that are no limits
    has_below: bool = False
    has_above: bool = False
    colons: int = 0  # in each of the values, where all are clocks
    are_clocks: bool = True
    mark: str = ""
    have_day_first: bool = True
    have_month_first: bool = True

    def add(self, texts: Iterable[str | None]) -> None:
        for text in {text.strip() for text in texts if text is not None} - MISSING:
            if not self.is_open:
                return
            if self.are_points or self.are_commas:
                self._add_number(text)
            if self.have_day_first or self.have_month_first:
                self._add_day(text)
            if self.are_clocks:
                self.colons = self.colons or text.count(":")
                self.are_clocks = (
                    text.count(":") == self.colons and _CLOCK_MATCH.fullmatch(text) is not None
                )

    def _add_number(self, whole: str) -> None:
        text = _without_limit(whole)
        if text != whole:
            self.has_below |= whole[0] in "<≤"
            self.has_above |= whole[0] not in "<≤"
        elif len(self.plain) < 2:
            self.plain |= {text}
        found = _UNIT.fullmatch(text)
        unit = (found[1], (found[2] or "").strip(" \u00a0\u202f")) if found else None
        if unit is None or self.unit not in (None, unit):
            self.are_points = self.are_commas = False
            return
        self.unit = unit
        self.are_points &= re.fullmatch(pattern(POINT, unit), text) is not None
        self.are_commas &= re.fullmatch(pattern(COMMA, unit), text) is not None
        self.are_marked |= "." in text or "," in text
        if len(re.sub("[^0-9]", "", text)) > MOST_DIGITS:
            self.are_points = self.are_commas = False

    def _add_day(self, text: str) -> None:
        mark = text[1:3].lstrip("0123456789")[:1]
        self.mark = self.mark or mark
        if mark != self.mark or mark not in {"/", ".", "-"}:
            self.have_day_first = self.have_month_first = False
            return
        self.have_day_first = self.have_day_first and _moment(text, True) is not None
        self.have_month_first = (
            self.have_month_first and mark != "." and _moment(text, False) is not None
        )

    @property
    def is_open(self) -> bool:
        """Whether the values so far may have a form."""
        are_numbers = self.are_points or self.are_commas
        return are_numbers or self.have_day_first or self.have_month_first or self.are_clocks

    @property
    def may_be_numbers(self) -> bool:
        """Whether all may be numbers, of whichever form."""
        return self.unit is not None and (self.are_points or self.are_commas)

    @property
    def are_numbers(self) -> bool:
        """Where some are below a number and some above one, and there is nothing between, they are
        so many names."""
        are_names = self.has_below and self.has_above and len(self.plain) < 2
        return self.may_be_numbers and not are_names

    @property
    def are_days(self) -> bool:
        return bool(self.mark) and (self.have_day_first or self.have_month_first)

    @property
    def form(self) -> Form | None:
        """The only form that all values have."""
        if self.are_numbers:
            either = self.are_points and self.are_commas
            if either and self.are_marked:
                return None
            decimal = "." if self.are_points else ","
            if decimal == "," and not self.has_commas and self.unit == ("", ""):
                return None
            return Numbers(decimal, self.unit != ("", ""))
        if self.are_clocks and self.colons:
            return Clocks()
        if self.are_days and self.have_day_first != self.have_month_first:
            return Days(self.have_day_first)
        return None


def form_of(array: Array, has_commas: bool) -> Form | None:
    """The form in which the values of a column of text are written, where they have one."""
    if array.dtype != object or not isinstance(next(filter(None, array), None), str):
        return None
    look = Look(has_commas)
    look.add(array[:MOST_LOOKED_AT])
    look.add(array if look.is_open else ())
    return look.form


def _gone(text: str | None) -> bool:
    return text is None or text.strip() in MISSING


def _without_limit(text: str) -> str:
    found = _LIMIT.fullmatch(text.strip())
    return (found[2] or found[3]).strip() if found else text


def _clock(text: str) -> float:
    """The text's first part, with the others as a share of it."""
    found = _CLOCK_MATCH.fullmatch(text)
    assert found is not None
    sign, first, second, third, parts = found.groups("")
    if not third:
        size = (60 * int(first) + int(second)) / 60.0
    else:
        whole = 3600 * int(first) + 60 * int(second) + int(third)
        size = (1_000_000 * whole + int(parts.ljust(6, "0"))) / 3.6e9
    return -size + 0.0 if sign == "-" else size


def _moment(text: str, has_day_first: bool) -> dt.datetime | None:
    """The time that a text names; None where it names none."""
    found = _DAY_MATCH.fullmatch(text)
    if found is None:
        return None
    first, second, year, hour, minute, second_of_minute, parts, half = found.groups("")
    day, month = (first, second) if has_day_first else (second, first)
    hours = int(hour or 0)
    if half:
        if not 1 <= hours <= 12:
            return None
        hours = hours % 12 + 12 * (half in "pP")
    clock = int(minute or 0), int(second_of_minute or 0), int(parts[:6].ljust(6, "0"))
    try:
        return dt.datetime(int(year), int(month), int(day), hours, *clock)
    except ValueError:  # 31 February
        return None


def notes_on(name: str, texts: Iterable[str], kind: str, form: Form | None) -> Iterator[str]:
    """What is to be said of a column from some of its texts, and from what they were read as: the
    kind of numpy's type, and the form."""
    known = sorted({text.strip() for text in texts} - MISSING)
    note = ""
    if isinstance(form, Numbers | Clocks) and known:
        limits = [text for text in known if isinstance(form, Numbers) and _LIMIT.fullmatch(text)]
        example = max(limits or known, key=len)
        number = float(form.read([example])[0])
        read = f"{number if isinstance(form, Numbers) else round(number, 2):.15g}"
        said = f"{example} being {read}" if example != read else "limits such as <5 being 5"
        note = f"is read as numbers, {said}"
    elif isinstance(form, Days) and known:
        order = "day" if form.has_day_first else "month"
        note = f"is read as times with the {order} first, such as {known[-1]}"
    elif kind == "f":
        note = _on_numbers(known)
    elif kind == "O":
        note = _on_texts(known)
    if note:
        yield f'"{name}" {note}'


def are_codes(texts: Iterable[str]) -> bool:
    """Whether values are short codes in capitals, some of which have two letters as `NA` has."""
    known = {text.strip() for text in texts} - MISSING
    return any(len(text) == len(NOT_A_CODE) for text in known) and all(
        len(text) <= LONGEST_CODE and text.isascii() and text.isalpha() and text.isupper()
        for text in known
    )


def note_on_codes(name: str, n_rows: int) -> str:
    """That a word for what is missing may be a code beside others: Namibia, sodium."""
    return (
        f'"{name}" has codes, and {NOT_A_CODE} is read as missing ({n_rows:,} '
        f"row{'s' * (n_rows != 1)}); where it is a code too, write it otherwise or give Parquet or "
        "a frame, in which it stays text"
    )


def _on_numbers(texts: Sequence[str]) -> str:
    """That one of few numbers is written in several ways, such as the versions 1.1 and 1.10."""
    spelled: dict[float, list[str]] = {}
    for text in texts:
        spelled.setdefault(float(text), []).append(text)
    several = [ways for number, ways in spelled.items() if number and len(ways) > 1]
    if several and len(spelled) <= MOST_CODES:
        one, other = several[0][:2]
        return f"is read as numbers, in which {one} and {other} are one; as a category they are two"
    return ""


def _on_texts(texts: Sequence[str]) -> str:
    """That people would read a column as numbers or times, which is not done."""
    look = Look(True)
    look.add(texts)
    if look.are_days:
        return f"is read as text: {texts[0]} could be several days; write 2026-03-16"
    if look.are_numbers and look.are_marked and len(texts) > MOST_CODES:
        return f"is read as text: {texts[0]} could be several numbers; write 1234.5"
    if len(texts) > MOST_CODES and all(map(_AMOUNT.fullmatch, texts)):
        return f"is read as text: {texts[0]} and the others have several units; write them in one"
    return ""
