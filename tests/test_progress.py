"""The progress line: on a terminal, after a second, and gone afterwards."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

import stair
from stair.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _until(stream: io.StringIO, text: str, seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while text not in stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    return text in stream.getvalue()


def test_a_long_step_is_shown_while_it_says_nothing() -> None:
    """One step that lasts is seen after a second, not only when the next one speaks."""
    stream = Terminal()
    with ProgressLine(stream=stream) as say:
        say("reading a large file")
        assert _until(stream, "reading a large file … 1 s")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_shown_for_a_moment_a_pipe_or_quietly() -> None:
    moment, pipe, quiet = Terminal(), io.StringIO(), Terminal()
    for stream, is_quiet in ((moment, False), (pipe, False), (quiet, True)):
        with ProgressLine(stream=stream, quiet=is_quiet) as say:
            say("hello")
        assert stream.getvalue() == ""


@pytest.mark.parametrize("method", ["stair", "refined", "local", "distilled"])
def test_who_listens_can_end_the_work_between_two_steps(method: str) -> None:
    """Stop on the page raises from `say`; refined and local rules grew whole trees in silence."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    y = (random.random(400) < 0.3).astype(int)
    said: list[str] = []
    enough = 3 if method == "distilled" else 20  # that one speaks by the clock

    class Enough(Exception):  # noqa: N818 - nothing went wrong
        pass

    def stop(text: str) -> None:
        said.append(text)
        if len(said) == enough:
            raise Enough

    with pytest.raises(Enough):
        stair.summarize(X, labels=y, method=method, min_score=0.95, progress=stop)
    assert len(said) == enough
