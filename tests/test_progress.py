"""The progress line: on a terminal, after a second, and gone afterwards."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import pytest

from settings import summarize
from stair.data import write_table
from stair.progress import ProgressLine, Words


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
        summarize(X, labels=y, method=method, min_score=0.95, progress=stop)
    assert len(said) == enough


def test_the_stage_and_the_share_are_shown() -> None:
    """`[2/3] checking: fold 2 of 4, 25% … 1 s`; words of no stage leave it as it is."""
    stream = Terminal()
    with ProgressLine(stream=stream, stages=("reading", "checking", "writing")) as say:
        say("reading a.csv")
        assert _until(stream, "[1/3] reading a.csv … 1 s")
        say(Words("checking: fold 2 of 4", 0.25))
        assert _until(stream, "[2/3] checking: fold 2 of 4, 25% … ")
        say("something else")
        assert _until(stream, "[2/3] something else … ")


@pytest.mark.parametrize("method", ["distilled", "stair", "refined", "local", "id3", "cart"])
def test_every_method_goes_through_all_stages_in_order(method: str, tmp_path: Path) -> None:
    """What the command calls stages are the words that the work begins its own with."""
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 2))
    write_table(tmp_path / "t.csv", {"a": x[:, 0], "b": x[:, 1], "y": (x[:, 0] > 1).astype(int)})
    said: list[str] = []
    summarize(tmp_path / "t.csv", labels="y", method=method, progress=said.append)
    stages = ["reading", "looking", "learning", "checking", "counting"]
    seen = [k for text in said for k, words in enumerate(stages) if text.startswith(words)]
    assert len(seen) == len(said)
    assert seen == sorted(seen)
    assert set(seen) == set(range(5))
    shares = [text.share for text in said if isinstance(text, Words)]
    assert shares and all(0 <= share < 1 for share in shares)


def test_a_large_engine_knows_its_share_after_the_first_pass(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=3000)
    write_table(tmp_path / "t.csv", {"a": x, "y": (x > 1).astype(int)})
    said: list[str] = []
    summarize(tmp_path / "t.csv", labels="y", engine="duckdb", progress=said.append)
    shares = [text.share for text in said if isinstance(text, Words)]
    assert shares and max(shares) == 1.0
