"""Checks of Soda, scanned for real in DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from target_trials import try_soda

pytestmark = [pytest.mark.xdist_group("soda")]


def test_what_fails_are_the_rows_that_the_rules_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names that Soda would fill in twice, ends of lines that it would change, NaN, NULL, zones,
    partitions."""
    trial = try_soda(40, tmp_path)
    with capsys.disabled():
        print(f"\nSoda: {trial}")
