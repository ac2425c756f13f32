"""A solver that talks is kept from standard output, where the caller's own results go.

HiGHS says some things by printf, whatever its options are, so the file descriptor itself is turned
aside while it runs. What others write there meanwhile is passed on afterwards.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

STDOUT: Final = 1
TALK: Final = b"Highs"  # how each line of the solver begins

_one_at_a_time = threading.Lock()


@contextmanager
def quiet_solver() -> Iterator[None]:
    """Standard output without what the solver says."""
    with _one_at_a_time:
        try:
            real = os.dup(STDOUT)
        except OSError:  # it is closed: nothing can be said there
            yield
            return
        try:
            with tempfile.TemporaryFile() as aside:
                _flush()
                os.dup2(aside.fileno(), STDOUT)
                try:
                    yield
                finally:
                    _flush()
                    os.dup2(real, STDOUT)
                    aside.seek(0)
                    _pass_on(aside.read(), real)
        finally:
            os.close(real)


def _flush() -> None:
    """Write out what Python and the C library still hold back."""
    with suppress(AttributeError, OSError, ValueError):  # no stdout, a full disk, a closed one
        sys.stdout.flush()
    with suppress(AttributeError, OSError, TypeError):  # no C library to be found by that name
        ctypes.CDLL(None).fflush(None)


def _pass_on(written: bytes, real: int) -> None:
    others = b"".join(x for x in written.splitlines(keepends=True) if not x.startswith(TALK))
    with suppress(OSError):  # nobody reads it any more
        while others:
            others = others[os.write(real, others) :]
