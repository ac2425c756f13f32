"""Damaged tables of every format: read, or refused in one sentence, and nothing else."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from fuzz import rules_files
from fuzz.files import FORMATS, Reader, damaged_file, look_at, rows_of, run_kind

from stair.errors import StairError


@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_files_are_read_or_refused(kind: str) -> None:
    """`python -m fuzz --mutations 10000` does a thousand of each."""
    result, kept = run_kind(kind, 25, seed=1)
    assert kept == []
    check = f"{kind} files / all"
    assert result.tallies[f"{check}: files"] == 25
    assert result.tallies[f"{check}: refused"] + result.tallies[f"{check}: read"] == 25


@pytest.mark.parametrize("kind", FORMATS)
def test_sound_files_are_read_and_damage_is_the_same_by_seed(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / f"t{FORMATS[kind].ending}"
    path.write_bytes(FORMATS[kind].make(rows_of(rng, fewest=20), rng))
    assert look_at(path) == ("read", "", "")
    if kind not in ("Excel", "DuckDB"):  # which keep the time and a random number
        assert damaged_file(kind, 0, 3) == damaged_file(kind, 0, 3)


def test_damaged_rules_files_mean_one_thing_or_are_refused() -> None:
    """`python -m fuzz --mutations 10000` does ten thousand; it had come to ask a method for a
    setting that it has not, and nothing noticed."""
    result, kept = rules_files.run(150, seed=3)
    assert kept == []
    count = result.tallies
    assert count["rules files / all: files"] == 150
    assert count["rules files / read: read"] + count["rules files / read: refused"] == 150
    assert count["rules files / oracle: compared"] > 0


def test_a_crash_is_a_finding_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that reads may die, or not come to an end; the next file is looked at."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 10)
    reader = Reader((), path)
    try:
        reader._process.kill()
        assert reader.look_at(path)[:2] == ("found", "crash")
        assert reader.look_at(path)[0] == "read"
        monkeypatch.setattr("fuzz.files.SECONDS", 0.1)
        os.kill(reader._process.pid or 0, signal.SIGSTOP)
        assert reader.look_at(path)[:2] == ("found", "no end")
    finally:
        reader.end()


def test_a_sentence_is_short_whatever_a_library_says() -> None:
    """A damaged Excel file had an attribute with a name of 70,000 letters: so had the refusal."""
    said = str(StairError(f"cannot read {'A' * 70_000}; copy it again."))
    assert len(said) < 1000
    assert said.startswith("cannot read A")
    assert said.endswith("; copy it again.")
