"""Rules as a suite of Great Expectations 1.x: no row that a rule flags is expected.

For a database each expectation is a query. It is filled in as `str.format` does, and then read by
SQLAlchemy, for which a word behind a colon is a parameter: braces and colons of the rules must
reach the database as they are. A pandas frame is labelled first, by the code of `to_pandas`.
"""

from __future__ import annotations

import json
import re
from typing import Final

from stair.errors import StairError
from stair.export.detections import Detection, check_each, on_relation, something_to_find
from stair.export.sql import check_dialect, new_columns, to_sql, to_sql_rows
from stair.export.sql_dialects import dialect_of
from stair.rules.rule_set import RuleSet

PANDAS: Final = "pandas"
"""In place of a dialect: the suite is for a frame with the column stair_rule."""
_PARAMETER: Final = re.compile(r"(?<![:\w$\\]):[\w$]|\\:")


def to_great_expectations(rules: RuleSet, dialect: str = "duckdb") -> str:
    """The suite as JSON, which `ExpectationSuite(**json.loads(text))` reads."""
    found = something_to_find(rules, "Great Expectations")
    if dialect != PANDAS:
        check_dialect(dialect)
        check_each(rules, lambda some: to_sql(some, "data", dialect))
    suite = {
        "name": "stair_rules",
        "expectations": [_expectation(rules, each, dialect) for each in found],
        "meta": {"notes": "Rules of stair: each expectation fails for the rows that a rule flags."},
    }
    return json.dumps(suite, indent=1, ensure_ascii=False) + "\n"


def _expectation(rules: RuleSet, found: Detection, dialect: str) -> dict[str, object]:
    if dialect == PANDAS:
        kind = "expect_column_values_to_not_be_in_set"
        asked: dict[str, object] = {"column": new_columns(rules)[1], "value_set": [found.number]}
    else:
        known = dialect_of(dialect)
        if rules.routing and known.name == "sqlite":
            raise StairError(
                f"rule {found.number}, {found.words}, is about one of several partitions: Great "
                "Expectations nests its query deeper than SQLite can read; choose another dialect"
            )
        kind = "unexpected_rows_expectation"
        query = on_relation(
            lambda table: to_sql_rows(rules, found.number, table, dialect), known, "{batch}", _plain
        )
        asked = {"unexpected_rows_query": query}
    evidence = {"rows": found.rows, "precision": found.precision} if found.rows else {}
    return {
        "type": kind,
        "kwargs": asked,
        "description": f"No row where {found.words}",
        "notes": found.sentence,
        "severity": "critical" if found.is_error else "warning",
        "meta": {"stair_rule": found.number, **evidence},
    }


def _plain(query: str) -> str:
    """A query in which there is nothing to fill in."""
    text = query.replace("{", "{{").replace("}", "}}")
    return text.replace(":", "\\:") if _PARAMETER.search(text) else text
