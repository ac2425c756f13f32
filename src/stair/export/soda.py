"""Rules as checks of Soda (SodaCL): the rows that a rule flags have failed.

Soda fills in what stands in ${ }, {% %} and {# #} where there is a ${ at all, twice, takes away the
blanks with which all lines begin, and reads every end of a line as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from stair.export.detections import check_each, something_to_find
from stair.export.sql import check_dialect, to_sql, to_sql_rows
from stair.export.yaml import block, quoted
from stair.rules.rule_set import RuleSet

_FILLED_IN: Final = re.compile(r"\$(?=\{)|\{(?=[%#])|[\r\n]")
_HOSTILE: Final = re.compile(r"\$\{|[\r\n]")


def to_soda(rules: RuleSet, table: str | Sequence[str] = "data", dialect: str = "duckdb") -> str:
    """The checks as YAML, which `soda scan` reads."""
    lines = ["checks:"]
    checks = something_to_find(rules, "Soda")
    check_dialect(dialect)
    check_each(rules, lambda some: to_sql(some, table, dialect))
    for found in checks:
        fails = [f"      fail: when > {found.most}"] if found.is_error else []
        query = to_sql_rows(rules, found.number, table, dialect)
        lines += [
            "  - failed rows:",
            f"      name: {quoted(f'Rule {found.number}: {found.words}')}",
            f"      # {found.sentence}",
            "      warn: when > 0",
            *fails,
            f"      fail query: {block(_whole(query, rules, table), 8)}",
        ]
    return "\n".join(lines) + "\n"


def _whole(query: str, rules: RuleSet, table: str | Sequence[str]) -> str:
    """A query that comes out of Soda as it is. The ends of lines that are only there to be read
    are safe, unless some name or value has one too."""
    texts = [
        *rules.schema.taken,
        *map(str, rules.classes),
        *([table] if isinstance(table, str) else table),
    ]
    texts += [str(value) for clause in rules.clauses for value in clause.categories]
    texts += [term for clause in rules.clauses for term in clause.terms]
    texts += [str(value) for each in rules.routing.space.dimensions for value in each.values]
    is_hostile = any(map(_HOSTILE.search, texts))
    return _FILLED_IN.sub(lambda found: _twice(found[0]), query) if is_hostile else query


def _twice(character: str) -> str:
    """What is filled in by a text that is filled in by this character: Soda does it two times."""
    once = f"${{{character!r}}}"
    return f"${{{once!r}}}"
