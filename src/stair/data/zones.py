"""Time zones: their names, how the zone of a column is carried along, and the time in a zone.

A column of times with a zone becomes times in UTC, and what it was says of which zone they were:
"zoned" for UTC, "zoned Europe/Berlin", "zoned +02:00", or "zoned several offsets".
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError, did_you_mean

UTC: Final = "UTC"
SEVERAL: Final = "several offsets"
_ZONED: Final = "zoned"
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])([01]?[0-9]|2[0-3]):?([0-5][0-9])")
_IN_WORDS: Final = re.compile(  # how libraries write zones: pytz.FixedOffset(60), tzfile('…/zone')
    r"pytz\.FixedOffset\((-?[0-9]+)\)|tzfile\('(?:.*/zoneinfo/)?([^']+)'\)"
)
_SECOND: Final = 1_000_000
_DAY: Final = 86_400  # seconds
_AGE: Final = 146_097  # days of 400 years, after which the calendar begins anew
_FIRST, _LAST = ((dt.date(*day) - dt.date(1970, 1, 1)).days for day in ((1, 1, 3), (9999, 12, 29)))


# --- of which zone a column was -------------------------------------------------------------------


def was_in(zone: str) -> str:
    """What a column of times in this zone was."""
    return _ZONED if zone == UTC else f"{_ZONED} {zone}"


def zone_of(was: str) -> str | None:
    """The zone of a column by what it was; None where it has none."""
    word, _, zone = was.partition(" ")
    return (zone or UTC) if word == _ZONED else None


def in_common(zones: Iterable[str]) -> str:
    """The zone of all parts of a column."""
    found = set(zones)
    return found.pop() if len(found) == 1 else SEVERAL


def was_together(one: str, other: str) -> str:
    """What a column was whose parts were these; the first where they have nothing in common."""
    zones = zone_of(one), zone_of(other)
    if zones[0] is None or zones[1] is None:
        return one
    return was_in(in_common((zones[0], zones[1])))


# --- names ----------------------------------------------------------------------------------------


def zone_named(name: str) -> str:
    """A zone that a person names; what is none is refused."""
    found = known_zone(name)
    if found is None:
        try:
            names = available_timezones()
        except OSError:
            names = set()
        if not names:
            raise StairError(
                f'no time zone is known here, so not "{name}" either: pip install tzdata, or give '
                "an offset such as +02:00"
            )
        raise StairError(
            f'no time zone is called "{name}"; expected a name such as Europe/Berlin, or an offset '
            f"such as +02:00.{did_you_mean(name, names)}"
        )
    return found


def known_zone(given: object) -> str | None:
    """A zone as we write it, from a name, an offset or a tzinfo; None where there is none such."""
    text = str(getattr(given, "key", None) or getattr(given, "zone", None) or given).strip()
    if words := _IN_WORDS.fullmatch(text):
        text = _written(60 * int(words[1])) if words[1] else words[2]
    if text in ("Z", "z", "tzutc()"):
        return UTC
    if offset := _OFFSET.fullmatch(text):
        sign = -1 if offset[1] == "-" else 1
        return _written(sign * (3600 * int(offset[2]) + 60 * int(offset[3])))
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
    return UTC if text in ("UTC", "Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu") else text


def zone_of_times(moments: Iterable[dt.datetime]) -> str:
    """The zone that these times, all of which have one, have in common."""
    found = set()
    for tzinfo in {id(m.tzinfo): m.tzinfo for m in moments}.values():
        offset = tzinfo.utcoffset(None) if tzinfo is not None else None
        whole = offset is not None and offset % dt.timedelta(minutes=1) == dt.timedelta(0)
        fixed = _written(int(offset.total_seconds())) if offset is not None and whole else None
        found.add(fixed or known_zone(tzinfo) or SEVERAL)
    return in_common(found)


def _written(seconds: int) -> str:
    if seconds == 0:
        return UTC
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{minutes:02}"


def fixed_offset(zone: str) -> int | None:
    """The seconds by which a zone is ahead of UTC, where they never change; else None."""
    if zone in ("", UTC):
        return 0
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return None
    seconds = 3600 * int(found[2]) + 60 * int(found[3])
    return -seconds if found[1] == "-" else seconds


# --- the time in a zone ---------------------------------------------------------------------------


def local_times(times: NDArray[np.datetime64], zone: str) -> NDArray[np.datetime64]:
    """Times in UTC as the clocks of a zone show them, without the zone."""
    fixed = fixed_offset(zone)
    if fixed == 0:
        return times
    gone = np.isnat(times)
    most = 2**63 - 2 * _DAY * _SECOND  # no clock goes beyond the end of time
    ticks = np.clip(np.where(gone, 0, times.astype(np.int64)), -most, most)
    seconds = ticks // _SECOND
    local = ticks + _SECOND * (_offsets(seconds, zone) if fixed is None else fixed)
    shown: NDArray[np.datetime64] = local.astype("datetime64[us]")
    shown[gone] = np.datetime64("NaT", "us")
    return shown


def _offsets(seconds: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """How far a zone is ahead at these seconds. On no day do clocks change twice, so where they
    show the same at both ends of a day (of UTC), that is the answer; else second by second."""
    days, places = np.unique(seconds // _DAY, return_inverse=True)
    first = np.array([_offset_at(zone, _DAY * day) for day in days.tolist()], dtype=np.int64)
    last = np.array([_offset_at(zone, _DAY * (day + 1)) for day in days.tolist()], dtype=np.int64)
    found: NDArray[np.int64] = first[places]
    changing = (first != last)[places]
    if changing.any():
        each, where = np.unique(seconds[changing], return_inverse=True)
        found[changing] = np.array([_offset_at(zone, s) for s in each.tolist()], np.int64)[where]
    return found


@lru_cache(maxsize=1 << 16)
def _offset_at(zone: str, seconds: int) -> int:
    """At this second of UTC. Beyond the years that Python knows, the calendar is that of 400 years
    earlier, and clocks are those of the first year."""
    day, second = divmod(seconds, _DAY)
    if day > _LAST:
        day -= -(-(day - _LAST) // _AGE) * _AGE
    day = max(day, _FIRST)
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=day, seconds=second)
    offset = moment.astimezone(ZoneInfo(zone)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())
