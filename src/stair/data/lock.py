"""A file that one process changes at a time: reading it, thinking, and writing it again."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from stair.data.packages import reason
from stair.errors import StairError


@contextlib.contextmanager
def held(path: str | Path) -> Iterator[None]:
    """While it lasts nobody else holds this file; whoever comes second is told so at once.

    The lock is a file beside it, which the system lets go of even when a process is killed.
    """
    place = Path(path).expanduser().resolve()
    beside = place.with_name(f".{place.name}.lock")
    try:
        lock = os.open(beside, os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise StairError(f'cannot write beside "{path}": {reason(error)}.') from None
    try:
        # Its owner may have removed it since it was opened here: then it holds nobody off.
        if not _is_ours(lock) or os.fstat(lock).st_ino != _number(beside):
            raise StairError(
                f"{place.name} is being changed by another stair; try again when that is done"
            )
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                beside.unlink()
    finally:
        os.close(lock)


def _number(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def _is_ours(lock: int) -> bool:
    """Whether nobody had locked it before."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
