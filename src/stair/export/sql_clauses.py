"""Clauses and distances as conditions in SQL.

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
from stair.conversion import WEEKDAYS
from stair.errors import StairError
from stair.export.needs import category_types, needed_fields
from stair.export.routing import CategoryLeg, Leg, NumberLeg, TextLeg
from stair.export.sql_dialects import Dialect, check_name
from stair.rules import Rule, RuleSet

# The largest double: only infinity and NaN are above it.
_LARGEST: Final = "1.7976931348623157e308"


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    if "\0" in text:
        raise StairError(f"{text!r} cannot be a text in SQL")
    return "'" + text.replace("'", "''") + "'"


class ClauseWriter:
    """Conditions in one dialect, in neutral SQL where sqlglot writes it."""

    def __init__(self, rules: RuleSet, dialect: Dialect) -> None:
        self._fields = {field.name: field for field in needed_fields(rules)}
        self._types = category_types(rules)
        self._dialect = dialect
        self._neutral = dialect.sqlglot is not None

    def rule(self, rule: Rule) -> str:
        parts = [self.clause(clause) for clause in rule.clauses]
        return " AND ".join(f"({part})" for part in parts) or "1 = 1"

    def clause(self, clause: Clause) -> str:
        column = self._column(clause.feature)
        if isinstance(clause, Interval):
            return self._interval(clause, column)
        if isinstance(clause, Period):
            return self._period(clause, column)
        if isinstance(clause, Among):
            return self._among(clause, column)
        return self._mentions(clause, column)

    def distance(self, leg: Leg) -> str:
        """What one attribute adds to a squared distance."""
        column = self._column(leg.feature)
        if isinstance(leg, TextLeg):
            terms = [
                f"CASE WHEN {self._mentions(Mentions(leg.feature, term), column)} "
                f"THEN {_double(there)} ELSE {_double(away)} END"
                for term, there, away in leg.terms
            ]
            return f"({' + '.join(self._as_double(term) for term in terms)})"
        if isinstance(leg, CategoryLeg):
            cases = " ".join(
                f"WHEN {self._among(Among(leg.feature, (value,)), column)} THEN {_double(part)}"
                for value, part in leg.values
            )
            return self._as_double(f"CASE {cases} ELSE {_double(leg.other)} END")
        return self._number_distance(leg, column)

    def _number_distance(self, leg: NumberLeg, column: str) -> str:
        number = self._microseconds(column) if leg.is_time else column
        missing = f"{column} IS NULL" if leg.is_time else self._no_number(column)
        offset = (
            f"(({self._as_double(number)} - {_double(leg.middle)}) / {_double(leg.scale)}) "
            f"/ {_double(leg.root)} - {_double(leg.center)}"
        )
        return f"CASE WHEN {missing} THEN {_double(leg.gone)} ELSE ({offset}) * ({offset}) END"

    def _as_double(self, text: str) -> str:
        """Sums must be those of doubles; PostgreSQL would add 0.1e0 and 0.2e0 as decimals."""
        kind = {"sqlite": "REAL", "postgres": "DOUBLE PRECISION"}.get(self._dialect.name, "DOUBLE")
        return f"CAST({text} AS {kind})"

    def _microseconds(self, column: str) -> str:
        if self._neutral:
            return f"STAIR_MICROSECONDS({column})"
        if self._dialect.name == "sqlite":
            return (
                f"(CAST(strftime('%s', {column}) AS INTEGER) * 1000000 "
                f"+ CAST(substr(strftime('%f', {column}), 4) AS INTEGER) * 1000)"
            )
        if self._dialect.name == "duckdb":
            return f"epoch_us({column})"
        return f"(extract(epoch FROM {column}) * 1000000)"

    def _column(self, feature: str) -> str:
        field = self._fields[feature]
        check_name(field.source, self._dialect)
        column = identifier(field.source)
        if field.part is None:
            return column
        if self._neutral:
            return f"STAIR_{field.part.upper()}({column})"
        if self._dialect.name == "sqlite":
            if field.part == "hour":
                return f"CAST(strftime('%H', {column}) AS INTEGER)"
            return f"(CAST(strftime('%w', {column}) AS INTEGER) + 6) % 7 + 1"
        return f"extract({'hour' if field.part == 'hour' else 'isodow'} FROM {column})"

    def _no_number(self, column: str) -> str:
        """Missing, as NULL or as NaN."""
        if not self._dialect.has_nan:
            return f"{column} IS NULL"
        if self._neutral:
            return f"{column} IS NULL OR STAIR_NAN({column})"
        return f"{column} IS NULL OR {column} > {_LARGEST}"

    def _interval(self, clause: Interval, column: str) -> str:
        nothing = self._no_number(column)
        if clause.only_missing:
            return nothing if clause.missing else "1 = 0"
        parts = []
        if math.isfinite(clause.low):
            parts.append(f"{column} > {_bound(clause.low)}")
        if math.isfinite(clause.high):
            parts.append(f"{column} <= {_bound(clause.high)}")
        elif self._dialect.has_nan or not parts:
            parts.append(f"{column} <= {_LARGEST}")
        inside = " AND ".join(parts)
        return f"{inside} OR {nothing}" if clause.missing else inside

    def _period(self, clause: Period, column: str) -> str:
        if clause.only_missing:
            return f"{column} IS NULL" if clause.missing else "1 = 0"
        free = Period(clause.feature)
        if self._dialect.name == "sqlite":  # times are text of any form, and known to 1/1000 s
            column = f"strftime('%Y-%m-%d %H:%M:%f', {column})"
        parts = []
        if clause.after != free.after:
            parts.append(f"{column} > {self._time(clause.after, clause.whole_days)}")
        if clause.until != free.until:
            parts.append(f"{column} <= {self._time(clause.until, clause.whole_days)}")
        inside = " AND ".join(parts) or f"{column} IS NOT NULL"
        return f"{inside} OR {column} IS NULL" if clause.missing else inside

    def _time(self, time: np.datetime64, whole_days: bool) -> str:
        if self._dialect.name == "sqlite":
            return literal(str(time.astype("datetime64[ms]")).replace("T", " "))
        day, _, clock = str(time.astype("datetime64[us]")).partition("T")
        clock = clock.rstrip("0").rstrip(".") if "." in clock else clock
        text = literal(day if whole_days else f"{day} {clock}")
        return f"STAIR_TIME({text})" if self._neutral else text

    def _among(self, clause: Among, column: str) -> str:
        is_number = self._types.get(clause.feature) == "numbers"
        missing = self._no_number(column) if is_number else f"{column} IS NULL"
        if not clause.values:
            if clause.negated:
                there = f"{column} <= {_LARGEST}" if is_number else f"{column} IS NOT NULL"
                return "1 = 1" if clause.missing else there
            return missing if clause.missing else "1 = 0"
        values = clause.values
        if self._fields[clause.feature].part == "weekday":
            values = tuple(self._dialect.monday + WEEKDAYS.index(str(v)) for v in values)
        texts = [v for v in values if isinstance(v, str)]
        others = [v for v in values if not isinstance(v, str)]
        joint = " AND " if clause.negated else " OR "
        inside = joint.join(
            self._listed(column, part, clause.negated) for part in (texts, others) if part
        )
        if texts and others:
            inside = f"({inside})"
        if is_number and clause.negated and self._dialect.has_nan:
            inside += f" AND {column} <= {_LARGEST}"
        return f"{inside} OR {missing}" if clause.missing else inside

    def _listed(self, column: str, values: Sequence[Any], negated: bool) -> str:
        listed = [literal(v) for v in values]
        if self._neutral and isinstance(values[0], str):
            column = f"STAIR_TEXT({column})"
            if self._dialect.name == "mysql":  # bytes are compared with bytes
                listed = [f"STAIR_TEXT({v})" for v in listed]
        return f"{column} {'NOT IN' if negated else 'IN'} ({', '.join(listed)})"

    def _mentions(self, clause: Mentions, column: str) -> str:
        term = literal(folded(clause.term))
        if self._neutral:
            found = f"STAIR_HAS({column}, {term})"
        elif self._dialect.name == "sqlite":  # lower() folds ASCII alone there
            found = f"instr(lower({column}), {term}) > 0"
        else:
            upper, lower = string.ascii_uppercase, string.ascii_lowercase
            found = f"strpos(translate({column}, '{upper}', '{lower}'), {term}) > 0"
        return found if clause.present else f"{column} IS NULL OR NOT ({found})"


def _double(value: float) -> str:
    """A number that no database takes for a decimal: 0.1 would be one, and be added as one."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _bound(value: float) -> str:
    """A number to compare with: short where every type of column holds it exactly."""
    return str(int(value)) if abs(value) < 2**24 and value == int(value) else _double(value)
