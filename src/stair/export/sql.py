"""Rules as SQL: a query that labels each row of a table.

NULL and NaN are missing. A comparison with NaN is true in some databases (NaN > 1 in DuckDB and
PostgreSQL), so every clause on numbers that does not cover missing values is bounded above.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from stair.clauses import Among, Clause, Interval, Mentions, Period, folded
from stair.errors import StairError
from stair.rules import Rule, RuleSet
from stair.table import WEEKDAYS, Field

DIALECTS: Final = ("duckdb", "postgres", "sqlite")

# The largest double: only infinity and NaN are above it.
_LARGEST: Final = "1.7976931348623157e308"


def check_dialect(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise StairError(f"no SQL dialect {dialect!r}; dialects are {', '.join(DIALECTS)}")


def to_sql(
    rules: RuleSet, fields: Sequence[Field], table: str = "data", dialect: str = "duckdb"
) -> str:
    """SELECT with the label and the number of the rule of each row."""
    check_dialect(dialect)
    writer = _Writer({f.name: f for f in fields}, dialect)
    labels = [f"    WHEN {writer.rule(r)} THEN {literal(r.label)}" for r in rules.rules]
    numbers = [f"    WHEN {writer.rule(r)} THEN {k}" for k, r in enumerate(rules.rules, 1)]
    parts = [
        f"-- {len(rules)} rules, total length {rules.total_length}",
        *(f"-- {k}: {_comment(rule)}" for k, rule in enumerate(rules.rules, 1)),
        "SELECT *,",
    ]
    if not rules.rules:
        parts.append(f"  {literal(rules.default)} AS stair_label, NULL AS stair_rule")
    else:
        parts += ["  CASE", *labels, f"    ELSE {literal(rules.default)}", "  END AS stair_label,"]
        parts += ["  CASE", *numbers, "  END AS stair_rule"]
    return "\n".join([*parts, f"FROM {identifier(table)};", ""])


def _comment(rule: Rule) -> str:
    """A rule in words on one line: a line break would end the comment."""
    return f"{rule} -> {rule.label}".replace("\n", "\\n").replace("\r", "\\r")


def identifier(name: str) -> str:
    if "\0" in name:
        raise StairError(f"{name!r} cannot be a name in SQL")
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    if "\0" in text:
        raise StairError(f"{text!r} cannot be a text in SQL")
    return "'" + text.replace("'", "''") + "'"


class _Writer:
    def __init__(self, fields: dict[str, Field], dialect: str) -> None:
        self._fields = fields
        self._dialect = dialect

    def rule(self, rule: Rule) -> str:
        return " AND ".join(f"({self.clause(c)})" for c in rule.clauses) or "TRUE"

    def clause(self, clause: Clause) -> str:
        column = self._column(clause.feature)
        if isinstance(clause, Interval):
            return self._interval(clause, column)
        if isinstance(clause, Period):
            return self._period(clause, column)
        if isinstance(clause, Among):
            return self._among(clause, column)
        return self._mentions(clause, column)

    def _column(self, feature: str) -> str:
        field = self._fields[feature]
        column = identifier(field.source)
        if field.part is None:
            return column
        if self._dialect == "sqlite":
            if field.part == "hour":
                return f"CAST(strftime('%H', {column}) AS INTEGER)"
            days = " ".join(f"WHEN '{(k + 1) % 7}' THEN '{d}'" for k, d in enumerate(WEEKDAYS))
            return f"CASE strftime('%w', {column}) {days} END"
        if field.part == "hour":
            return f"extract(hour FROM {column})"
        days = " ".join(f"WHEN {k + 1} THEN '{d}'" for k, d in enumerate(WEEKDAYS))
        return f"CASE extract(isodow FROM {column}) {days} END"

    def _interval(self, clause: Interval, column: str) -> str:
        nothing = f"{column} IS NULL OR {column} > {_LARGEST}"
        if clause.only_missing:
            return nothing if clause.missing else "FALSE"
        parts = []
        if math.isfinite(clause.low):
            parts.append(f"{column} > {literal(clause.low)}")
        high = literal(clause.high) if math.isfinite(clause.high) else _LARGEST
        parts.append(f"{column} <= {high}")
        inside = " AND ".join(parts)
        return f"{inside} OR {nothing}" if clause.missing else inside

    def _period(self, clause: Period, column: str) -> str:
        if clause.only_missing:
            return f"{column} IS NULL" if clause.missing else "FALSE"
        free = Period(clause.feature)
        if self._dialect == "sqlite":  # times are text of any form there, and known to 1/1000 s
            column = f"strftime('%Y-%m-%d %H:%M:%f', {column})"
        parts = []
        if clause.after != free.after:
            parts.append(f"{column} > {self._time(clause.after, clause.whole_days)}")
        if clause.until != free.until:
            parts.append(f"{column} <= {self._time(clause.until, clause.whole_days)}")
        inside = " AND ".join(parts) or f"{column} IS NOT NULL"
        return f"{inside} OR {column} IS NULL" if clause.missing else inside

    def _time(self, time: np.datetime64, whole_days: bool) -> str:
        if self._dialect == "sqlite":
            return literal(str(time.astype("datetime64[ms]")).replace("T", " "))
        day, _, clock = str(time.astype("datetime64[us]")).partition("T")
        clock = clock.rstrip("0").rstrip(".")
        return literal(day if whole_days else f"{day} {clock}")

    def _among(self, clause: Among, column: str) -> str:
        missing = f"{column} IS NULL"
        if not clause.values:
            if clause.negated:
                return "TRUE" if clause.missing else f"{column} IS NOT NULL"
            return missing if clause.missing else "FALSE"
        listed = ", ".join(literal(v) for v in clause.values)
        inside = f"{column} {'NOT IN' if clause.negated else 'IN'} ({listed})"
        return f"{inside} OR {missing}" if clause.missing else inside

    def _mentions(self, clause: Mentions, column: str) -> str:
        term = literal(folded(clause.term))
        if self._dialect == "sqlite":  # lower() folds ASCII alone there
            found = f"instr(lower({column}), {term}) > 0"
        else:
            upper, lower = string.ascii_uppercase, string.ascii_lowercase
            found = f"strpos(translate({column}, '{upper}', '{lower}'), {term}) > 0"
        return found if clause.present else f"NOT coalesce({found}, FALSE)"
