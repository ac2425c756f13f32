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
from stair.local import LocalRuleSet
from stair.rules import Rule, RuleSet
from stair.space import Axis
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
    conditions = [writer.rule(rule) for rule in rules.rules]
    source = identifier(table)
    if isinstance(rules, LocalRuleSet):
        source = _routed(rules, writer, source)
        for number, (start, stop) in enumerate(rules.spans(), 1):
            for k in range(start, stop):
                conditions[k] = f"stair_partition = {number} AND {conditions[k]}"
    labels = [
        f"    WHEN {condition} THEN {literal(rule.label)}"
        for condition, rule in zip(conditions, rules.rules, strict=True)
    ]
    numbers = [f"    WHEN {condition} THEN {k}" for k, condition in enumerate(conditions, 1)]
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
    return "\n".join([*parts, f"FROM {source};", ""])


def rule_to_sql(
    rules: RuleSet, number: int, fields: Sequence[Field], dialect: str = "duckdb"
) -> str:
    """The condition of one rule. With partitions it is about the column that `to_sql` adds."""
    check_dialect(dialect)
    condition = _Writer({f.name: f for f in fields}, dialect).rule(rules[number])
    if isinstance(rules, LocalRuleSet):
        spans = enumerate(rules.spans(), start=1)
        partition = next(k for k, (start, stop) in spans if start <= number < stop)
        return f"stair_partition = {partition} AND {condition}"
    return condition


def _routed(rules: LocalRuleSet, writer: _Writer, source: str) -> str:
    """A subquery with the number of each row's nearest partition, the first of equals."""
    n = len(rules.partitions)
    distances = [f"stair_distance_{k}" for k in range(1, n + 1)]
    lines = []
    for name, partition in zip(distances, rules.partitions, strict=True):
        terms: list[str] = []
        place = 0
        for axis in rules.space.axes:
            center = partition.center[place : place + axis.width]
            place += axis.width
            terms += writer.distance(axis, center, math.sqrt(len(rules.space.axes)))
        lines.append(f"    {' + '.join(terms)} AS {name}")
    nearest = [
        "WHEN " + (" AND ".join(f"{d} <= {e}" for e in distances[k + 1 :]) or "1 = 1")
        + f" THEN {k + 1}"
        for k, d in enumerate(distances)
    ]  # fmt: skip
    inner = "SELECT *,\n" + ",\n".join(lines) + f"\n    FROM {source}"
    return (
        f"(SELECT *, CASE {' '.join(nearest)} END AS stair_partition\n  FROM ({inner}) AS p) AS q"
    )


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

    def distance(self, axis: Axis, center: Sequence[float], scale: float) -> list[str]:
        """The parts of a squared distance that one attribute adds."""
        column = self._column(axis.feature)
        if axis.kind == "text":
            found = []
            for term, at in zip(axis.values, center, strict=True):
                there = (1.0 / math.sqrt(len(axis.values)) / scale - at) ** 2
                mentioned = self._mentions(Mentions(axis.feature, term), column)
                found.append(f"CASE WHEN {mentioned} THEN {there!r} ELSE {at * at!r} END")
            return found
        if axis.kind == "category":
            nowhere = sum(at * at for at in center)
            cases = " ".join(
                f"WHEN {column} = {literal(value)} "
                f"THEN {nowhere - at * at + (math.sqrt(0.5) / scale - at) ** 2!r}"
                for value, at in zip(axis.values, center, strict=True)
            )
            return [f"CASE {cases} ELSE {nowhere!r} END"]
        number = self._microseconds(column) if axis.kind == "time" else column
        offset = f"({number} - {axis.center!r}) / {axis.scale * scale!r} - {center[0]!r}"
        missing = f"{column} IS NULL"
        if axis.kind == "number":
            missing += f" OR {column} > {_LARGEST}"
        at = center[0]
        return [f"CASE WHEN {missing} THEN {at * at!r} ELSE ({offset}) * ({offset}) END"]

    def _microseconds(self, column: str) -> str:
        if self._dialect == "sqlite":
            return f"(julianday({column}) - 2440587.5) * 86400000000.0"
        if self._dialect == "duckdb":
            return f"epoch_us({column})"
        return f"extract(epoch FROM {column}) * 1000000.0"

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
