"""Suites of Great Expectations, validated for real in a database and on pandas frames."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stair.errors import StairError
from stair.export.great_expectations import to_great_expectations
from stair.rules.clauses import Among
from stair.rules.rule_set import Rule, RuleSet
from target_trials import try_great_expectations

pytestmark = [pytest.mark.xdist_group("great_expectations")]


def test_unexpected_are_the_rows_that_the_rules_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hostile names, braces and colons that are no parameters, NULL, times with zones; SQLite knows
    no zones by name, and rules that flag nothing are no suite: both are refused in a sentence."""
    in_sqlite, on_pandas = try_great_expectations(40, tmp_path)
    with capsys.disabled():
        print(f"\nGreat Expectations in SQLite: {in_sqlite}\non pandas: {on_pandas}")


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
