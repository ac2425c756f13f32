"""The clock that every loop of the search asks, and that passes on the wish to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

# Seconds between two words about how it goes.
BEAT: Final = 0.2


class Clock:
    """When time is up. As it is asked, it says now and then how it goes: whoever listens may end
    the work by raising an exception, wherever it is."""

    def __init__(self, time_limit: float | None, say: Callable[[str], None]) -> None:
        self._deadline = None if time_limit is None else time.monotonic() + time_limit
        self._say = say
        self._text = "distilling"
        self._next = 0.0

    def say(self, text: str) -> None:
        self._text = text
        self._next = time.monotonic() + BEAT
        self._say(text)

    def beat(self) -> None:
        """Say the same again if it is time to."""
        if time.monotonic() >= self._next:
            self.say(self._text)

    def is_late(self) -> bool:
        self.beat()
        return self._deadline is not None and time.monotonic() >= self._deadline

    def seconds_left(self) -> float | None:
        """None where there is no limit."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
