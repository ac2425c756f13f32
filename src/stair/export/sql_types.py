"""Of which types the columns are that rules speak of, in the words of each database.

A database takes a column as it is: a time without its zone, or a number that is text there, is
another value than the one that the rules were learned with, or an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stair.export.needs import needed_fields
from stair.export.sentences import one_line
from stair.export.sql_dialects import Dialect
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field

_ORDER: Final = ("real", "whole", "text", "flag", "naive", "zoned", "duration", "clock")
# Durations, times of the day and zones are refused where there is none.
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "duckdb": ("DOUBLE", "BIGINT", "VARCHAR", "BOOLEAN", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE",
               "INTERVAL", "TIME"),
    "postgres": ("double precision", "bigint", "text", "boolean", "timestamp",
                 "timestamp with time zone", "interval", "time"),
    "sqlite": ("REAL", "INTEGER", "TEXT", "INTEGER", "TEXT", "TEXT"),
    "spark": ("DOUBLE", "BIGINT", "STRING", "BOOLEAN", "TIMESTAMP_NTZ", "TIMESTAMP"),
    "bigquery": ("FLOAT64", "INT64", "STRING", "BOOL", "DATETIME", "TIMESTAMP"),
    "snowflake": ("DOUBLE", "NUMBER(38, 0)", "VARCHAR", "BOOLEAN", "TIMESTAMP_NTZ"),
    "sqlserver": ("FLOAT", "BIGINT", "NVARCHAR", "BIT", "DATETIME2"),
    "mysql": ("DOUBLE", "BIGINT", "VARCHAR", "BOOLEAN", "DATETIME(6)"),
}  # fmt: skip
# The same types, for values that are names.
_AS: Final = {"number": "real", "time": "naive"}
_ZONED: Final[Mapping[str, str]] = {
    "duckdb": "without a zone it is an error",
    "postgres": "without a zone it is an error",
    "sqlite": "like 2024-01-31T10:20+01:00; without +01:00 it is taken as UTC",
    "spark": "a TIMESTAMP_NTZ is taken as UTC, or is an error",
    "bigquery": "a DATETIME is taken as UTC",
}
_WORDS: Final[Mapping[tuple[str, str], str]] = {
    ("sqlite", "naive"): "like 2024-01-31 10:20",
    ("sqlite", "flag"): "1 for true, 0 for false",
}


def type_in_sql(field: Field, dialect: Dialect) -> str:
    """The type of the column of a field; empty where the database has none."""
    known = dict(zip(_ORDER, _TYPES[dialect.name], strict=False))
    return known.get(_AS.get(field.type, field.type), "")


def types_in_words(rules: RuleSet, dialect: Dialect) -> list[str]:
    """What is expected of each column that the rules speak of, one line for each."""
    fields = {field.source: field for field in needed_fields(rules)}
    said = []
    for name, field in fields.items():
        known = _AS.get(field.type, field.type)
        words = _ZONED.get(dialect.name, "") if known == "zoned" else ""
        words = words or _WORDS.get((dialect.name, known), "")
        if field.type == "text":
            words = "what is empty, NA, N/A, NaN, null or None in a text file must be NULL"
        if field.marked:
            words = _of_text(dialect)
        more = f" ({words})" * bool(words)
        said.append(f"{one_line(name)}: {type_in_sql(field, dialect)}{more}")
    return said


def _of_text(dialect: Dialect) -> str:
    if dialect.name in ("duckdb", "postgres"):
        return "or text, in which what is no number, such as n/a, is missing"
    return "words such as n/a must be NULL"
