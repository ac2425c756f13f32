"""Which rooms a job passes, as docs/architecture.md lists them: traced, not remembered."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import stair
from places import PICTURE, SOURCE
from stair.cli import app
from stair.data import write_table


def _listed(heading: str) -> list[str]:
    """The rooms of a walk, in their order."""
    text = PICTURE.read_text(encoding="utf-8")
    part = text.partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    walk = next(each for each in part.split("\n\n") if "→" in each)
    return re.findall(r"`(\w+)`", walk)


def _passed(job: Callable[[], Any]) -> list[str]:
    """The rooms in which anything is called, as they are entered."""
    rooms: dict[str, None] = {}

    def called(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        place = Path(code.co_filename)
        if event == "call" and code.co_name != "<module>" and place.is_relative_to(SOURCE):
            rooms.setdefault(place.relative_to(SOURCE).with_suffix("").parts[0])

    sys.setprofile(called)
    try:
        job()
    finally:
        sys.setprofile(None)
    return list(rooms)


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=200).round(2), rng.normal(size=200).round(2)
    return {"x": x, "z": z, "y": ((x > 1.2) | (z < -1.5)).astype(np.int64)}


def test_the_walk_of_a_summary_from_the_command(tmp_path: Path, table: dict[str, Any]) -> None:
    """It was about thirty rooms when these were single files, and the table changed shape six
    times on its way."""
    write_table(tmp_path / "t.csv", table)
    given = ["summarize", str(tmp_path / "t.csv"), "--label", "y"]

    def job() -> None:
        done = CliRunner().invoke(app, given)
        assert done.exit_code == 0, done.output

    job()  # what is only done once in a process is not part of the walk
    assert sorted(_passed(job)) == sorted(_listed("A summary from the command"))
    assert len(_listed("A summary from the command")) <= 15


def test_the_walk_of_fit(table: dict[str, Any]) -> None:
    X, y = np.column_stack([table["x"], table["z"]]), table["y"]
    model = stair.Stair()
    model.fit(X, y)
    assert sorted(_passed(lambda: model.fit(X, y))) == sorted(_listed("Stair().fit"))
    assert len(_listed("Stair().fit")) <= 8
