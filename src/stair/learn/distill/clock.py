"""The clock that every loop of the search asks, and that passes on the wish to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Seconds between two words about how it goes.
BEAT: Final = 0.2
# What is said while there are rules above the floor, and shorter ones are looked for.
SHORTENING: Final = "learning: shortest so far"


class Clock:
    """When time is up. As it is asked, it says now and then how it goes: whoever listens may end
    the work by raising an exception, wherever it is, or the search alone by answering True. What
    was found by then is kept."""

    def __init__(self, time_limit: float | None, say: Callable[[str], object]) -> None:
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._say = say
        self._text = "learning"
        self._next = 0.0
        self._is_enough = False
        self.cut_short = False  # whether the search ended before it was done

    def say(self, text: str) -> None:
        self._text = text
        self._next = time.monotonic() + BEAT
        self._is_enough |= self._say(text) is True

    def beat(self) -> None:
        """Say the same again if it is time to."""
        if time.monotonic() >= self._next:
            self.say(self._text)

    def is_late(self) -> bool:
        self.beat()
        is_late = self._is_enough or (
            self._deadline is not None and time.monotonic() >= self._deadline
        )
        self.cut_short |= is_late
        return is_late

    def seconds_left(self) -> float | None:
        """None where there is no limit."""
        if self._is_enough:
            return 0.0
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
