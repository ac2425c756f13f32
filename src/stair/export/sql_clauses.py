"""Clauses and distances as conditions in SQL. NULL and NaN are missing."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

from stair.data.conversion import WEEKDAYS
from stair.errors import StairError
from stair.export.conditions import Conditions, OfValue
from stair.export.needs import needed_fields
from stair.export.routing import CategoryLeg, Leg, TextLeg
from stair.export.sql_columns import Column, Columns, double_literal, identifier
from stair.export.sql_dialects import Dialect, check_name, translated
from stair.export.sql_duckdb import DuckdbColumns
from stair.export.sql_postgres import PostgresColumns
from stair.export.sql_spark import SparkColumns
from stair.export.sql_sqlite import SqliteColumns
from stair.rules.clauses import Among, Interval, Mentions, Period, folded
from stair.rules.rule_set import Rule, RuleSet

_OWN: Final[dict[str, type[Columns]]] = {
    "duckdb": DuckdbColumns,
    "postgres": PostgresColumns,
    "sqlite": SqliteColumns,
    "spark": SparkColumns,
}


def quoted_name(name: str, dialect: Dialect) -> str:
    """A name as this database quotes it."""
    return identifier(name) if dialect.sqlglot is None else translated(identifier(name), dialect)


class ClauseWriter(Conditions[Column, str]):
    """Conditions in one dialect, in neutral SQL where sqlglot writes it."""

    def __init__(self, rules: RuleSet, dialect: Dialect) -> None:
        needed = needed_fields(rules)
        self._fields = {field.name: field for field in needed}
        self._dialect = dialect
        self._columns = _OWN.get(dialect.name, Columns)(dialect)
        if not dialect.has_case:
            for field in needed:
                self._check_case(field.source, rules.schema.taken)

    def _check_case(self, name: str, taken: Collection[str]) -> None:
        same = [f'"{each}"' for each in sorted(taken) if each.lower() == name.lower()]
        if len(same) > 1:
            raise StairError(
                f"the table has {' and '.join(same)}, which are one name in {self._dialect.title}; "
                "rename one of them, or choose another dialect"
            )

    def rule(self, rule: Rule) -> str:
        try:
            parts = [self.of(clause) for clause in rule.clauses]
        except StairError as error:
            raise StairError(f"the rule {rule} cannot be written: {error}") from None
        return " AND ".join(f"({part})" for part in parts) or "1 = 1"

    def column(self, feature: str) -> Column:
        field = self._fields[feature]
        check_name(field.source, self._dialect)
        return self._columns.column(field, identifier(field.source))

    def here(self, column: Column) -> str:
        return column.here

    def gone(self, column: Column) -> str:
        return column.gone

    def always(self) -> str:
        return "1 = 1"

    def never(self) -> str:
        return "1 = 0"

    def between(self, clause: Interval | Period, column: Column) -> str | None:
        bounds = zip((">", "<="), clause.bounds, strict=True)
        return " AND ".join(column.compare(sign, b) for sign, b in bounds if b is not None) or None

    def listed(self, clause: Among, column: Column) -> str | None:
        if not clause.values:
            return None
        found = column.listed(self._values(clause))
        return f"NOT {found}" if clause.negated else found

    def inside(self, clause: OfValue, column: Column, inside: str) -> str:
        inside = f"{inside} AND {column.here}" if column.guarded else inside
        return f"{inside} OR {column.gone}" if clause.missing else inside

    def mentions(self, clause: Mentions) -> str:
        field = self._fields[clause.feature]
        check_name(field.source, self._dialect)
        x = identifier(field.source)
        found = self._columns.mentions(field, x, folded(clause.term))
        return found if clause.present else f"{x} IS NULL OR NOT ({found})"

    def _values(self, clause: Among) -> list[str | float]:
        if self._fields[clause.feature].part == "weekday":
            return [self._dialect.monday + WEEKDAYS.index(str(v)) for v in clause.values]
        return list(clause.values)

    def distance(self, leg: Leg) -> str:
        """What one attribute adds to a squared distance."""
        as_double = self._columns.as_double
        if isinstance(leg, TextLeg):
            terms = [
                f"CASE WHEN {self.mentions(Mentions(leg.feature, term))} "
                f"THEN {double_literal(there)} ELSE {double_literal(away)} END"
                for term, there, away in leg.terms
            ]
            return f"({' + '.join(as_double(term) for term in terms)})"
        if isinstance(leg, CategoryLeg):
            cases = " ".join(
                f"WHEN {self.of(Among(leg.feature, (value,)))} THEN {double_literal(part)}"
                for value, part in leg.values
            )
            return as_double(f"CASE {cases} ELSE {double_literal(leg.other)} END")
        column = self.column(leg.feature)
        offset = (
            f"(({column.double} - {double_literal(leg.middle)}) / {double_literal(leg.scale)}) "
            f"/ {double_literal(leg.root)} - {double_literal(leg.center)}"
        )
        gone = as_double(double_literal(leg.gone))
        asked = column.gone
        if self._fields[leg.feature].type in ("real", "whole"):  # an infinite number has no place
            largest = double_literal(sys.float_info.max)
            asked += f" OR {column.double} > {largest} OR {column.double} < -{largest}"
        return f"CASE WHEN {asked} THEN {gone} ELSE ({offset}) * ({offset}) END"
