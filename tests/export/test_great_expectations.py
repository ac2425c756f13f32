"""Suites of Great Expectations, validated for real in a database and on pandas frames."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from environments import ask
from export_cases import Case
from stair.errors import StairError
from stair.export.great_expectations import to_great_expectations
from stair.export.pandas import to_pandas
from stair.rules.clauses import Among
from stair.rules.rule_set import Rule, RuleSet
from target_cases import drawn, exported, flagged

pytestmark = [pytest.mark.xdist_group("great_expectations")]


def _for_pandas(case: Case, number: int) -> dict[str, str]:
    del number
    suite = to_great_expectations(case.rules, "pandas")
    return {"suite": suite, "code": to_pandas(case.rules)}


def test_unexpected_are_the_rows_that_the_rules_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hostile names, braces and colons that are no parameters, NULL, times with zones; SQLite knows
    no zones by name, and rules that flag nothing are no suite: both are refused in a sentence."""
    found = drawn(200)
    sql, not_sql = exported(found, lambda c, _: to_great_expectations(c.rules, "sqlite"), "sqlite")
    frames, not_frames = exported(found, _for_pandas, "duckdb")
    order = {"sqlite": list(sql.values()), "pandas": list(frames.values())}
    answer = ask("great_expectations", order, tmp_path)
    n_rules = 0
    for name, done in (("sqlite", sql), ("pandas", frames)):
        for number in done:
            expected = {str(rule): places for rule, places in flagged(found[number]).items()}
            assert answer[name][f"t{number}"] == expected
            n_rules += len(expected)
    nothing = "none of these rules flags rows, so there is nothing for Great Expectations to find"
    assert {*not_frames.values()} == {nothing}
    reasons = (nothing, "knows no time zones by name", "nests its query deeper than SQLite can")
    assert all(any(reason in each for reason in reasons) for each in not_sql.values())
    with capsys.disabled():
        print(
            f"\nGreat Expectations: {len(sql)} cases in SQLite ({len(not_sql)} refused), "
            f"{len(frames)} on pandas ({len(not_frames)} refused), {n_rules} expectations"
        )


def test_a_query_has_nothing_to_fill_in_but_the_batch() -> None:
    """Braces are doubled, and a word behind a colon is no parameter of SQLAlchemy."""
    rules = RuleSet(
        (Rule((Among("a", ("{x} :y", "a\\:b")),), 1, ((1, 9.0), (0, 1.0))), Rule((), 1)),
        (0, 1), ("a",), 0, (1.0, 1.0), 1,
    )  # fmt: skip
    first, second = json.loads(to_great_expectations(rules, "postgres"))["expectations"]
    query = first["kwargs"]["unexpected_rows_query"]
    assert "'{{x}} \\:y'" in query and "'a\\\\:b'" in query
    assert query.count("{batch}") == 1
    assert (first["severity"], second["severity"]) == ("critical", "warning")
    assert first["notes"].startswith("Outlier (90% of 10 rows): a in {")
    with pytest.raises(StairError, match="no SQL dialect 'excel'"):
        to_great_expectations(rules, "excel")
