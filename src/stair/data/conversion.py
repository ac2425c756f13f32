"""A column brought to the type that rules were learned with.

What cannot be brought there is counted; a column that cannot be meant at all is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT, Truth, exact_numbers
from stair.data.frame import Array, Value
from stair.data.values import moment, whole_numbers
from stair.data.zones import SEVERAL, in_common, known_zone, local_times, zone_of
from stair.errors import StairError

Part: TypeAlias = Literal["hour", "weekday", "/8", "/16", "/24"]
Spelling: TypeAlias = Callable[[bool], str]

# Of which type the values of a field may be, the usual one first.
TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "number": ("real", "whole", "duration", "clock"),
    "category": ("text", "number", "flag", "time", "duration", "clock", "described"),
    "time": ("naive", "zoned"),
    "text": ("text", "described"),
}
# A column of one of these is something else than its values look like: seconds, hours of the day.
MEASURES: Final = {"duration": "durations", "clock": "times of the day"}

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

TIME_PARTS: Final[tuple[Part, ...]] = ("hour", "weekday")
# The networks of an IPv4 address, and how many of its four numbers each keeps.
NETWORKS: Final[Mapping[Part, int]] = {"/8": 1, "/16": 2, "/24": 3}

# Of so many numbers one is a fraction mostly, where any of a column is.
A_FEW: Final = 1000
# Numbers that stay close at hand while they are looked at.
MANY: Final = 1 << 15

# A text that is a number; 007 is a code.
NUMBER: Final = r"[+-]?(?:(?:0|[1-9][0-9]*)(?:[.][0-9]*)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(NUMBER)
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
# An IPv4 address in its one usual form: no leading zeros, no blanks, no ports.
ADDRESS: Final = rf"{_BYTE}([.]{_BYTE}){{3}}"
_ADDRESS = re.compile(ADDRESS)
_ZONE = re.compile(r":[^ ]*(Z|[+-][0-9]{2}:[0-9]{2})\s*$")
# Words for a value that is not there, where numbers are expected.
MARKERS: Final = frozenset(
    ("", "n/a", "na", "n.a.", "n.a", "#n/a", "nan", "none", "null", "nil", "-", "--", "---", ".",
     "?", "??", "unknown", "unk", "undefined", "missing", "not available", "not applicable", "tbd")
)  # fmt: skip
# Of the texts of a column at least this share must be numbers for such words to be none.
TRUE_NUMBERS: Final = 0.95

_TRUTHS: Final = {"true": True, "false": False}


class NothingReadError(StairError):
    """A column in which no value is of its type."""


def type_of_values(values: Sequence[object]) -> str:
    """Of which type a category is, by some of its values."""
    if not values or any(isinstance(v, str) for v in values):
        return "text"
    return "flag" if all(isinstance(v, bool | np.bool_) for v in values) else "number"


def type_of_column(raw: Array, was: str, kind: str) -> str:
    """Of which type a column of a frame is, once it is read as this kind."""
    if kind == "time":
        return "naive" if zone_of_column(raw, was) is None else "zoned"
    if kind == "number":
        if was in MEASURES:
            return was
        is_whole = raw.dtype.kind in "iu" or whole_numbers(raw) or _are_whole(raw)
        return "whole" if is_whole else "real"
    if kind == "text":
        return "described" if was == "described" else "text"
    if was in ("duration", "clock", "described"):
        return was
    if raw.dtype.kind == "M":
        return "time"
    if raw.dtype.kind in "iuf":
        return "number"
    if raw.dtype.kind == "b":
        return "flag"
    return type_of_values([v for v in raw.tolist() if v is not None])


def _are_whole(raw: Array) -> bool:
    """Whether texts that are numbers, but for words for none, are whole numbers."""
    texts = [v for v in raw.tolist() if isinstance(v, str)] if raw.dtype.kind == "O" else []
    numbers = [text for text in texts if not is_marker(text)]
    return bool(numbers) and all(_WHOLE.fullmatch(text.strip()) for text in numbers)


def marked_numbers(texts: Sequence[str]) -> dict[str, int] | None:
    """The words for missing values in a column of texts that are numbers but for these, and how
    often each occurs; None where there are none, too many, or others."""
    marks: dict[str, int] = {}
    for text in texts:
        if _NUMBER.fullmatch(text.strip()) is None:
            if is_marker(text):
                marks[text] = marks.get(text, 0) + 1
            else:
                return None
    n_numbers = len(texts) - sum(marks.values())
    return marks if marks and n_numbers >= TRUE_NUMBERS * len(texts) else None


def no_numbers_among(texts: Sequence[str]) -> dict[str, int]:
    """What keeps a column of texts from being read as numbers, where nearly all of them are, and
    how often each occurs. Codes such as 007 are no accident."""
    odd: dict[str, int] = {}
    most = (1.0 - TRUE_NUMBERS) * len(texts)
    n_odd = 0
    for text in texts:
        if _NUMBER.fullmatch(text.strip()) is None:
            n_odd += 1
            if n_odd > most or text.strip().isdigit():
                return {}
            if not is_marker(text):
                odd[text] = odd.get(text, 0) + 1
    return odd


def is_marker(text: object) -> bool:
    """Whether a text says that there is no number: n/a, unknown, ?"""
    return isinstance(text, str) and text.strip().lower() in MARKERS


def zone_of_column(raw: Array, was: str) -> str | None:
    """Of which zone the times of a column of a frame are; None where they have none."""
    texts = [v for v in raw.tolist() if isinstance(v, str)] if raw.dtype.kind == "O" else []
    offsets = {found[1] for found in map(_ZONE.search, texts) if found}
    if offsets:
        return in_common(known_zone(offset) or SEVERAL for offset in offsets)
    return zone_of(was)


def is_missing(raw: Array) -> NDArray[np.bool_]:
    """Which values of a column are missing."""
    missing = np.zeros(len(raw), dtype=np.bool_)
    if raw.dtype.kind == "f":
        np.isnan(raw, out=missing)
    elif raw.dtype.kind == "M":
        np.isnat(raw, out=missing)
    elif raw.dtype.kind == "O":
        missing[:] = [v is None or v != v for v in raw.tolist()]
    return missing


def are_whole(numbers: Array) -> bool:
    """Whether all numbers that are there are whole, as rules compare them; a few tell mostly."""
    if numbers.dtype.kind in "iu":
        return True
    if numbers.dtype.kind == "O":
        return all(float(v).is_integer() for v in numbers.tolist() if v is not None)
    if len(numbers) > A_FEW and count_fractions(numbers[:A_FEW]):
        return False
    known = numbers[~np.isnan(numbers)]
    return bool(known.size) and not (np.isinf(known).any() or count_fractions(known))


def whole_columns(matrix: NDArray[np.float64]) -> list[bool]:
    """`are_whole` of each column, in passes over rows, which lie side by side in memory.

    None of the numbers is infinite: scikit-learn has refused those by then.
    """
    n_columns = matrix.shape[1]
    has_fractions, has_gaps = np.zeros((2, n_columns), dtype=np.bool_)
    start, step = 0, max(1, A_FEW // max(n_columns, 1))  # a few tell mostly
    while start < len(matrix) and not has_fractions.all():
        rows = matrix[start : start + step]
        is_other = np.rint(rows) != rows
        if is_other.any():
            is_gap = np.isnan(rows)
            has_gaps |= is_gap.any(axis=0)
            has_fractions |= (is_other & ~is_gap).any(axis=0)
        start, step = start + step, max(1, MANY // n_columns)
    listed = zip(has_fractions.tolist(), has_gaps.tolist(), strict=True)
    return [
        not fractions and (are_whole(matrix[:, j]) if gaps else len(matrix) > 0)
        for j, (fractions, gaps) in enumerate(listed)
    ]


def count_fractions(numbers: Array) -> int:
    """How many numbers are neither whole nor infinite nor missing."""
    if numbers.dtype.kind in "iu":
        return 0
    if numbers.dtype.kind == "O":
        return sum(type(v) is float and v - v == 0 and v % 1 != 0 for v in numbers.tolist())
    return int(np.count_nonzero(np.isfinite(numbers) & (numbers != np.rint(numbers))))


def as_numbers(raw: Array, name: str, strict: bool) -> tuple[Array, int]:
    if raw.dtype.kind == "M":
        raise StairError(f'"{name}" has times; read it as time or category, not as number')
    if raw.dtype.kind in "fb":
        return raw.astype(np.float64, copy=False), 0
    if raw.dtype.kind in "iu":
        if raw.size and (int(raw.max()) > EXACT or int(raw.min()) < -EXACT):
            return raw, 0
        return raw.astype(np.float64), 0
    unread: list[object] = []
    listed = [_number(v, unread) for v in raw.tolist()]
    if unread:
        others = [value for value in unread if not is_marker(value)]
        _check_some_are_read(name, listed, others or unread, "numbers", strict and bool(others))
    return exact_numbers(listed), len(unread)


def _number(value: Value, unread: list[object]) -> float | int | None:
    if isinstance(value, Truth):
        return int(value == "true")
    if isinstance(value, str):
        text = value.strip()
        if _WHOLE.fullmatch(text):
            return int(text) if len(text) < 30 else float(text)
        if _NUMBER.fullmatch(text):
            return float(text)
        unread.append(value)
        return None
    if value is None or value != value:
        return None
    return int(value) if isinstance(value, int) else float(value)


def as_times(raw: Array, name: str) -> tuple[NDArray[np.datetime64], int]:
    if raw.dtype.kind == "M":
        return raw.astype("datetime64[us]"), 0
    missing = is_missing(raw)
    if raw.dtype.kind != "O" or not all(isinstance(v, str) for v in raw[~missing].tolist()):
        if missing.all():
            return np.full(len(raw), np.datetime64("NaT", "us")), 0
        what = "true and false" if isinstance(raw[~missing][0], bool | np.bool_) else "numbers"
        raise StairError(
            f'"{name}" should have times like 2024-01-31 or 2024-01-31 10:20, but has {what}; '
            "make times of them first"
        )
    unread: list[object] = []
    read = {text: moment(text) for text in set(raw[~missing].tolist())}
    gone = np.datetime64("NaT", "us")
    times = np.full(len(raw), gone)
    for row in np.flatnonzero(~missing).tolist():
        found = read[raw[row]]
        if found is None:
            unread.append(raw[row])
        else:
            times[row] = found
    if unread:
        _check_some_are_read(name, times[~np.isnat(times)], unread, "times like 2024-01-31", False)
    return times, len(unread)


def _check_some_are_read(
    name: str, read: Collection[object], unread: list[object], what: str, strict: bool
) -> None:
    if strict or not any(v is not None for v in read):
        raise NothingReadError(f'"{name}" should have {what}, but has {unread[0]!r}')


def _plain(raw: Array) -> list[object]:
    """Python values, None where missing; whole numbers as int whatever their storage."""
    if raw.dtype.kind == "f":
        return [None if v != v else int(v) if v.is_integer() else v for v in raw.tolist()]
    if raw.dtype.kind == "M":
        return [None if np.isnat(t) else str(t) for t in raw.astype("datetime64[us]")]
    if raw.dtype.kind == "O":
        return [None if v is None or v != v else v for v in raw.tolist()]
    listed: list[object] = raw.tolist()
    return listed


def _objects(listed: Sequence[object]) -> Array:
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _as_text(raw: Array, spelled: Spelling) -> Array:
    words = {truth: spelled(truth) for truth in (True, False)}

    def text(value: object) -> str | None:
        if isinstance(value, bool | Truth):
            return words[value if isinstance(value, bool) else value == "true"]
        return value if value is None or isinstance(value, str) else str(value)

    return _objects([text(v) for v in _plain(raw)])


def _as_number(raw: Array, spelled: Spelling) -> Array:
    del spelled
    return _objects([_number_or_itself(v) for v in _plain(raw)])


def _number_or_itself(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    unread: list[object] = []
    number = _number(value, unread)
    if unread or number is None:
        return value
    return int(number) if float(number).is_integer() else number


def _as_flag(raw: Array, spelled: Spelling) -> Array:
    del spelled
    return _objects([_truth_or_itself(v) for v in _plain(raw)])


def _truth_or_itself(value: Value) -> object:
    if isinstance(value, str):
        value = _TRUTHS.get(value.strip().lower(), _number_or_itself(value))
    return bool(value) if value in (0, 1) and not isinstance(value, str) else value


def _as_time_text(raw: Array, spelled: Spelling) -> Array:
    del spelled
    return _objects([_time_or_itself(v) for v in _plain(raw)])


def _time_or_itself(value: object) -> object:
    if value is None:
        return None
    found = moment(value) if isinstance(value, str) else None
    return str(value) if found is None else str(found)


_CATEGORIES: Final[dict[str, Callable[[Array, Spelling], Array]]] = {
    "text": _as_text,
    "described": _as_text,
    "number": _as_number,
    "duration": _as_number,
    "clock": _as_number,
    "flag": _as_flag,
    "time": _as_time_text,
}


def as_category(raw: Array, type_: str, spelled: Spelling) -> Array:
    """Categories of a type; `spelled` says how true and false are written where that is text."""
    return _CATEGORIES[type_](raw, spelled)


def network_of(address: object, part: Part | None) -> str | None:
    """The network that an IPv4 address is in, such as 205.174.165.0/24; None for all else."""
    assert part is not None
    if not isinstance(address, str) or _ADDRESS.fullmatch(address) is None:
        return None
    kept = address.split(".")[: NETWORKS[part]]
    return ".".join([*kept, *["0"] * (4 - len(kept))]) + part


def as_networks(raw: Array, part: Part | None) -> tuple[Array, int]:
    """The networks of addresses, and how many values are no addresses."""
    listed = _as_text(raw, lambda truth: str(truth).lower()).tolist()
    known = {v: network_of(v, part) for v in set(listed)}
    found = [known[v] for v in listed]
    unread = sum(v is not None and known[v] is None for v in listed)
    return _objects(found), unread


def part_of(times: NDArray[np.datetime64], part: Part, zone: str = "") -> Array:
    """The hour (0 to 23) or the weekday's name, by the clocks of a zone where there is one."""
    local = local_times(times, zone)
    gone = np.isnat(local)
    if part == "hour":
        hours = _hours(local).astype(np.float64)
        hours[gone] = math.nan
        return hours
    return _objects(
        [
            None if g else WEEKDAYS[d]
            for d, g in zip(_weekdays(local).tolist(), gone.tolist(), strict=True)
        ]
    )


def _hours(local: NDArray[np.datetime64]) -> NDArray[np.int64]:
    since_midnight = local.astype("datetime64[h]") - local.astype("datetime64[D]")
    hours: NDArray[np.int64] = since_midnight.astype(np.int64)
    return hours


def _weekdays(local: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """From 0, which is Monday; 1970-01-01 was a Thursday."""
    days: NDArray[np.int64] = local.astype("datetime64[D]").astype(np.int64)
    found: NDArray[np.int64] = (days + 3) % 7
    return found


def parts_that_change(times: NDArray[np.datetime64], zone: str) -> tuple[Part, ...]:
    """The parts of times that can tell them apart. Dates alone have no hour, also where midnight of
    UTC is another hour in their zone."""
    times = times[~np.isnat(times)]
    if not len(times):
        return ()
    local = local_times(times, zone)
    found: list[Part] = []
    has_clock = bool((times != times.astype("datetime64[D]")).any())
    if has_clock and (_hours(local) != _hours(local)[0]).any():
        found.append("hour")
    if (_weekdays(local) != _weekdays(local)[0]).any():
        found.append("weekday")
    return tuple(found)
