"""One piece of work at a time, in a thread of its own, with words about how it goes."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from stair.errors import StairError

Say: TypeAlias = Callable[[str], object]


class Cancelled(Exception):  # noqa: N818 - nothing went wrong
    """Somebody does not want the result any more."""


@dataclass(eq=False)
class Job:
    """What is being done. `text` changes while it goes on; `error` is one sentence for a person."""

    title: str
    kind: str = "learning"  # or "frontier", which leaves the rules as they are
    text: str = ""
    error: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    wanted: bool = True

    @property
    def is_done(self) -> bool:
        return self.ended is not None

    @property
    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.started

    def say(self, text: str) -> None:
        """Called by the work now and then: where it is stopped, too."""
        if not self.wanted:
            raise Cancelled
        self.text = text


class Jobs:
    """The latest job wins: what runs is asked to stop, and the new one begins when it has."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self.current: Job | None = None

    @property
    def is_busy(self) -> bool:
        job = self.current
        return job is not None and not job.is_done

    def start(self, title: str, work: Callable[[Say], None], *, kind: str = "learning") -> Job:
        job = Job(title, kind)
        with self._lock:
            if self.current is not None:
                self.current.wanted = False
            self.current = job
        threading.Thread(target=self._run, args=(job, work), daemon=True).start()
        return job

    def end(self, patience: float = 5.0) -> bool:
        """Ask what runs to stop, and wait for it; whether it did."""
        self.cancel()
        ended = self._turn.acquire(timeout=patience)
        if ended:
            self._turn.release()
        return ended

    def cancel(self) -> None:
        with self._lock:
            if self.current is not None:
                self.current.wanted = False

    def forget(self) -> None:
        """The person has seen how it ended."""
        with self._lock:
            if self.current is not None and self.current.is_done:
                self.current = None

    def _run(self, job: Job, work: Callable[[Say], None]) -> None:
        with self._turn:
            try:
                job.say("")
                work(job.say)
            except Cancelled:
                job.error = "" if job is not self.current else "Stopped."
            except StairError as error:
                job.error = str(error)
            except MemoryError:
                job.error = "there is not enough memory for this table"
            except Exception:
                traceback.print_exc(file=sys.stderr)
                job.error = "something went wrong that should not; the terminal says more"
            finally:
                job.ended = time.monotonic()
