"""How exported code reads values, as stair does. This text goes into the exported file."""

import re
from datetime import UTC, date, datetime, timedelta
from datetime import time as _day_time
from typing import Any
from zoneinfo import ZoneInfo

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = re.compile(rf"{_BYTE}([.]{_BYTE}){{3}}")
_TIME = re.compile(
    r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,9})?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
)


def _gone(value: object) -> bool:
    """Whether a value is missing: None, NaN, NaT or NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return not isinstance(value, str | list | dict) and bool(value != value)


def _is_moment(value: object) -> bool:
    return isinstance(value, date) or type(value).__name__ == "datetime64"


def _is_measure(value: object) -> bool:
    return isinstance(value, _day_time | timedelta) or type(value).__name__ == "timedelta64"


def _plain_number(value: Any) -> Any:
    """An int where the number is whole and has at most 64 bits, else a float."""
    is_whole = hasattr(value, "__index__")
    if type(value).__name__ == "Decimal":
        is_whole = value.is_finite() and value == value.to_integral_value()
    if is_whole:
        whole = int(value)
        return whole if -(2**63) <= whole < 2**64 else float(whole)
    return float(value)


def _number(value: Any) -> Any:
    """A number; None where it is missing or a text that is none."""
    if _gone(value):
        return None
    if isinstance(value, str):
        text = value.strip()
        if _WHOLE.fullmatch(text):
            return int(text) if len(text) < 30 else float(text)
        return float(text) if _NUMBER.fullmatch(text) else None
    if _is_moment(value) or _is_measure(value):
        raise TypeError(f"expected a number, got {value!r}")
    return int(value) if type(value).__name__ in ("bool", "bool_") else _plain_number(value)


def _duration(value: Any) -> float | None:
    """A duration in seconds."""
    if _gone(value):
        return None
    if type(value).__name__ == "timedelta64":
        return float(value.astype("timedelta64[us]").astype("int64")) / 1e6
    if not isinstance(value, timedelta):
        raise TypeError(f"expected a duration, got {value!r}")
    return float(value // timedelta(microseconds=1)) / 1e6


def _clock(value: object) -> float | None:
    """A time of the day in hours."""
    if _gone(value):
        return None
    if not isinstance(value, _day_time):
        raise TypeError(f"expected a time of the day, got {value!r}")
    seconds = value.second + value.microsecond / 1e6
    return float(value.hour + value.minute / 60 + seconds / 3600)


def _time(value: object) -> datetime | None:
    """A time without a zone (in UTC where it had one), from a date, a time, or ISO text; None
    where it is missing or a text that is no time."""
    if _gone(value):
        return None
    if not isinstance(value, str) and not _is_moment(value):
        raise TypeError(f"expected a time, got {value!r}")
    if not isinstance(value, date):
        text = str(value).strip()
        if _TIME.fullmatch(text) is None:
            if isinstance(value, str):
                return None
            raise ValueError(f"{text} is outside of the years 1 to 9999")
        try:
            return _in_utc(datetime.fromisoformat(text))
        except (ValueError, OverflowError):  # 31 February; a day that leaves the calendar
            return None
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return _in_utc(value)


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return datetime.combine(moment.date(), moment.time())


def _hour(moment: datetime | None, zone: str | int) -> int | None:
    """The hour of a time in UTC by the clocks of a zone, or so many seconds ahead."""
    return None if moment is None else _local_seconds(moment, zone) // 3600 % 24


def _weekday(moment: datetime | None, zone: str | int) -> int | None:
    """The weekday, from 0 for Monday."""
    return None if moment is None else (_local_seconds(moment, zone) // 86400 + 3) % 7


def _local_seconds(moment: datetime, zone: str | int) -> int:
    """Seconds since 1970 by the clocks of a zone."""
    ahead = zone
    if isinstance(zone, str):  # the first and the last day of the calendar may end in another year
        inside = min(max(moment, datetime(1, 1, 3)), datetime(9999, 12, 29, 23))
        offset = inside.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).utcoffset()
        ahead = int((offset or timedelta()).total_seconds())
    return (moment - datetime(1970, 1, 1)) // timedelta(seconds=1) + int(ahead)


def _iso(value: object) -> str:
    moment = _time(value)
    return "" if moment is None else moment.isoformat(timespec="microseconds")


def _short(value: Any) -> Any:
    """A number that is whole as an int: 2.0 and 2 are one code."""
    number = _plain_number(value)
    return int(number) if float(number).is_integer() else number


def _code(value: object, true: str = "true", false: str = "false") -> str | None:
    """A category that was text: 2, 2.0 and "2" are one code, and true is written as it was."""
    if value is None or isinstance(value, str):
        return value
    if _gone(value):
        return None
    if type(value).__name__ in ("bool", "bool_"):
        return true if value else false
    if _is_moment(value):
        return _iso(value)
    if _is_measure(value):
        raise TypeError(f"expected a text, got {value!r}")
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    return str(_short(value)) if hasattr(value, "__float__") else str(value)


def _number_code(value: Any) -> Any:
    """A category that was a number; a text that is none stays what it is."""
    if _gone(value):
        return None
    if isinstance(value, str):
        number = _number(value)
        return value if number is None else _short(number)
    if _is_moment(value):
        return _iso(value)
    return _short(_number(value))


def _flag(value: Any) -> Any:
    """A category that was true or false; anything else stays what it is."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    found = _number_code(value)
    return bool(found) if found in (0, 1) else found


def _time_code(value: object) -> str | None:
    """A category that was a time, as ISO text; anything else as its own text."""
    if _gone(value):
        return None
    if _is_moment(value):
        return _iso(value)
    if _is_measure(value):
        raise TypeError(f"expected a time, got {value!r}")
    found = _iso(value) if isinstance(value, str) else ""
    return found or str(value)


def _network(value: object, bits: int) -> str | None:
    """The network of so many bits that an IPv4 address is in; None for all else."""
    address = _code(value)
    if address is None or _ADDRESS.fullmatch(address) is None:
        return None
    kept = address.split(".")[: bits // 8]
    return ".".join([*kept, *["0"] * (4 - len(kept))]) + f"/{bits}"


def _text(value: object, true: str = "true", false: str = "false") -> str | None:
    """A text with the letters A to Z in lower case."""
    found = _code(value, true, false)
    return None if found is None else found.translate(_LOWER)


def _microseconds(moment: datetime) -> float:
    """Since 1970, as a number."""
    return float((moment - datetime(1970, 1, 1)) // timedelta(microseconds=1))


def _nearest(distances: list[float]) -> int:
    """The place of the smallest, the first of equals."""
    return min(range(len(distances)), key=distances.__getitem__)
