"""A line on stderr that says what is going on, for anything longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO


class ProgressLine:
    """Shown on a terminal only, after one second, at most ten times a second."""

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = not quiet and self._stream.isatty()
        self._start = time.monotonic()
        self._last = 0.0
        self._dirty = False

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if not self._shown or now - self._start < 1.0 or now - self._last < 0.1:
            return
        self._last = now
        self._dirty = True
        self._stream.write(f"\r\x1b[K{text} … {now - self._start:.0f} s")
        self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        if self._dirty:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
