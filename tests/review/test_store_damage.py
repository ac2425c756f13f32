"""Files of verdicts that are damaged: opened, and all of the page works, or one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz import review_files
from fuzz.review_files import mutate_database, run, sound


def test_damaged_files_of_verdicts_are_opened_or_refused() -> None:
    """`python -m fuzz --mutations 10000` does a thousand. An undo of itself never ended, a row that
    the table has not and an event that nobody can have written were tracebacks, and rows were
    unpacked without a bound."""
    result, kept = run(30, seed=5)
    assert kept == []
    check = f"{review_files.CHECK} / all"
    assert result.tallies[f"{check}: files"] == 30
    assert result.tallies[f"{check}: refused"] + result.tallies[f"{check}: read"] == 30


@pytest.mark.parametrize("method", ["stair", "refined"])
def test_a_sound_file_of_verdicts_is_opened(tmp_path: Path, method: str) -> None:
    path = tmp_path / "v.sqlite"
    path.write_bytes(sound(method))
    review_files._use(path, np.random.default_rng(0))


@pytest.mark.parametrize("statement", review_files.STATEMENTS)
def test_whatever_is_done_to_a_file_with_sql(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone, by way of the same damage."""
    monkeypatch.setattr(review_files, "WAYS", (review_files._statement,))
    monkeypatch.setattr(review_files, "STATEMENTS", (statement,))
    outcome = mutate_database(1)
    assert outcome == "opened" or (outcome.startswith("refused: ") and "\n" not in outcome)


@pytest.mark.parametrize("seed", [386, 800])
def test_files_that_were_found(seed: int) -> None:
    """800: SQLite's own sentence about the file could not be decoded, which was a traceback."""
    assert mutate_database(seed).startswith("refused: ")
