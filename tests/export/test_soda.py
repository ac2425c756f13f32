"""Checks of Soda, scanned for real in DuckDB."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import ask
from stair.export.soda import to_soda
from target_cases import drawn, exported, flagged

pytestmark = [pytest.mark.xdist_group("soda")]


def test_what_fails_are_the_rows_that_the_rules_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names that Soda would fill in twice, ends of lines that it would change, NaN, NULL, zones,
    partitions; the outcome and the exit code follow from what the rules covered when learned."""
    found = drawn(200)
    done, refused = exported(found, lambda c, k: to_soda(c.rules, f"t{k}"), "duckdb")
    answer = ask("soda", {"cases": list(done.values())}, tmp_path)
    n_checks = 0
    for number in done:
        case, scanned = found[number], answer[f"t{number}"]
        assert not scanned["log"], scanned["log"]
        outcomes = []
        for (rule, places), (name, outcome, n_rows, rows) in zip(
            flagged(case).items(), scanned["checks"], strict=True
        ):
            learned = case.rules[rule - 1]
            fails = learned.precision >= 0.9 and len(places) > learned.rows
            outcomes.append(2 if fails else min(1, len(places)))
            assert name.startswith(f"Rule {rule}: ")
            assert (n_rows, rows or []) == (len(places), places)
            assert outcome == ("pass", "warn", "fail")[outcomes[-1]]
            n_checks += 1
        assert scanned["code"] == max(outcomes)
    assert all("none of these rules flags rows" in each for each in refused.values())
    with capsys.disabled():
        print(f"\nSoda: {len(done)} cases, {n_checks} checks, {len(refused)} refused")
