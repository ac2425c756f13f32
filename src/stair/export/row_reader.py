"""How an exported function reads the values of a row. This text goes into the function's file."""

from datetime import UTC, date, datetime
from typing import Any

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _value(value: Any) -> Any:
    """The value itself, or None where it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    return value


def _number(value: Any) -> float:
    """A number; NaN, which no comparison covers, where it is missing."""
    value = _value(value)
    return float("nan") if value is None else float(value)


def _time(value: Any) -> datetime | None:
    """A time without a zone, from a date, a time, or text such as 2024-01-31 10:20."""
    value = _value(value)
    if value is None or str(value) == "NaT":
        return None
    if not isinstance(value, date):
        value = datetime.fromisoformat(str(value))
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return datetime.combine(value.date(), value.time())


def _microseconds(time: datetime | None) -> float:
    """Since 1970, as a number; NaN where the time is missing."""
    if time is None:
        return float("nan")
    since = time - datetime(1970, 1, 1)
    return float((since.days * 86400 + since.seconds) * 1000000 + since.microseconds)


def _text(value: Any) -> str | None:
    """A text with the letters A to Z in lower case."""
    value = _value(value)
    return None if value is None else str(value).translate(_LOWER)


def _nearest(distances: list[float]) -> int:
    """The place of the smallest, the first of equals."""
    return min(range(len(distances)), key=distances.__getitem__)
