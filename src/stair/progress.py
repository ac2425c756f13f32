"""How work goes, in words: at which stage it is, and which share of that is done.

Whoever works says a few words now and then. On a terminal they become one line on stderr, for
anything longer than a second.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Self, TextIO, TypeAlias

from stair.errors import visible

PATIENCE: Final = 1.0  # seconds before anything is shown
BEAT: Final = 0.1


class Words(str):
    """Words about how it goes, with the share that is done; text like any other to most."""

    share: float

    def __new__(cls, text: str, share: float) -> Self:
        words = super().__new__(cls, text)
        words.share = share
        return words


class ProgressLine:
    """Shown on a terminal only, after one second, and kept alive by a thread of its own.

    So it shows what goes on, and for how long, even while a step like reading a file says nothing.
    `stages` are the first words of what is said at each of them, in order. While what goes on
    begins with `keeps` it may be ended with what there is.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        stream: TextIO | None = None,
        keeps: str | None = None,
        stages: Sequence[str] = (),
    ) -> None:
        self._keeps = keeps
        self._stages = tuple(stages)
        self._stage = 0
        self._share = ""
        self._stream = stream or sys.stderr
        self._shown = not quiet and self._stream.isatty()
        self._start = time.monotonic()
        self._text = ""
        self._dirty = False
        self._is_enough = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __call__(self, text: str) -> bool:
        """Take note of what goes on; True once somebody has had enough of looking for more."""
        begun = [n for n, words in enumerate(self._stages, start=1) if text.startswith(words)]
        self._stage = begun[0] if begun else self._stage
        self._share = f", {text.share:.0%}" if isinstance(text, Words) else ""
        self._text = visible(text)
        return self._is_enough

    def keep(self) -> bool:
        """Have enough of what goes on, where there is something to keep and for the first time."""
        self._is_enough, can_keep = self._is_enough or self._can_keep, self._can_keep
        return can_keep

    @property
    def _can_keep(self) -> bool:
        has_some = self._keeps is not None and self._text.startswith(self._keeps)
        return has_some and not self._is_enough

    def _beat(self) -> None:
        while not self._done.wait(BEAT):
            seconds = time.monotonic() - self._start
            if self._text and seconds >= PATIENCE:
                self._dirty = True
                hint = ", Ctrl-C keeps these" if self._can_keep else ""
                stage = f"[{self._stage}/{len(self._stages)}] " if self._stage else ""
                self._write(f"\r\x1b[K{stage}{self._text}{self._share} … {seconds:.0f} s{hint}")

    def __enter__(self) -> Self:
        if self._shown:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        del kind, error, trace
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._dirty:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a terminal that is gone stops no work
            self._stream.write(text)
            self._stream.flush()


# What is told how it goes. Distilling ends with what there is where the answer is True.
Progress: TypeAlias = Callable[[str], object]


def quiet(_: str) -> None:
    """Tells nobody."""


_listener: ContextVar[Progress] = ContextVar("listener", default=quiet)


@contextlib.contextmanager
def telling(listener: Progress) -> Iterator[None]:
    """While it lasts, `summarize` and `fit` tell this function in a few words how they get on."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def listener() -> Progress:
    """Whoever is told how it goes, here and now."""
    return _listener.get()
