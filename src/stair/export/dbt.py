"""Rules as a folder for dbt: a model that labels rows, and a test for each rule that flags some.

dbt fills in whatever stands in {{ }}, {% %} and {# #}, wherever that is, and reads every end of a
line as \\n: a name that looks so must reach the database as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from stair.data.folder import write_folder
from stair.errors import StairError
from stair.export.detections import Detection, check_each, detections, on_relation
from stair.export.sentences import one_line, to_sentences
from stair.export.sql import check_dialect, new_columns, to_sql
from stair.export.sql_clauses import quoted_name
from stair.export.sql_dialects import dialect_of
from stair.export.yaml import quoted
from stair.rules.figures import percent
from stair.rules.rule_set import RuleSet

MARK: Final = "# Rules of stair for dbt"
_FILLED_IN: Final = re.compile(r"\{(?=[{%#])|\r")
_WORD: Final = re.compile(r"[^0-9a-z]+")
_LONGEST: Final = 40  # of a name that others are made of: PostgreSQL has 63 bytes


def to_dbt(
    rules: RuleSet,
    folder: str | Path | None = None,
    table: str | Sequence[str] = "data",
    dialect: str = "duckdb",
) -> dict[str, str]:
    """The files of the folder by their names; written too where a folder is given.

    The table is a source of dbt in the schema of the target, unless it names another: ("schema",
    "table").
    """
    names = _Names(table)
    check_dialect(dialect)
    check_each(rules, lambda some: to_sql(some, "data", dialect))
    files = {
        "dbt_project.yml": _project(names),
        f"models/{names.model}.sql": _model(rules, names, dialect),
        f"models/{names.model}.yml": _description(rules, names),
        f"tests/generic/{names.test}.sql": _test(rules, names, dialect),
    }
    if folder is not None:
        write_folder(folder, files, MARK)
    return files


class _Names:
    """What things are called in dbt: words of small letters, made from the table's name."""

    def __init__(self, table: str | Sequence[str]) -> None:
        self.parts = (table,) if isinstance(table, str) else tuple(table)
        for part in self.parts:
            if not part.isprintable() or set(part) & set("\"`[]'{}\\"):
                raise StairError(
                    f"dbt does not quote the name of the table {part!r} right; make a view over "
                    "it with another name"
                )
        if not 1 <= len(self.parts) <= 3:
            raise StairError(
                f"a table with {len(self.parts)} names; expected its own, before it that of its "
                "schema, and before that the one of the database"
            )
        word = _WORD.sub("_", self.parts[-1].lower()).strip("_")[:_LONGEST].strip("_") or "data"
        word = f"t_{word}" if word[0].isdigit() else word
        self.word, self.model, self.test = word, f"{word}_labelled", f"{word}_rule"
        self.project, self.variable = f"{word}_rules", f"{word}_model"


def _plain(text: str) -> str:
    """A text in which dbt has nothing to fill in."""
    return _FILLED_IN.sub(lambda found: "{{ '{' }}" if found[0] == "{" else "{{ '\\r' }}", text)


def _project(names: _Names) -> str:
    return (
        f"{MARK}; docs: https://stair-developers.github.io/stair/howto-dbt.html\n"
        f"name: {names.project}\n"
        'version: "1.0.0"\n'
        "config-version: 2\n"
        "model-paths: [models]\n"
        "test-paths: [tests]\n"
        "vars:\n"
        "  # A model of your project in place of the source below, by its name.\n"
        f"  {names.variable}: null\n"
    )


def _model(rules: RuleSet, names: _Names, dialect: str) -> str:
    source = f"source('{names.project}', '{names.word}')"
    variable = f"var('{names.variable}', none)"
    relation = f"{{{{ ref({variable}) if {variable} else {source} }}}}"
    query = on_relation(
        lambda table: to_sql(rules, table, dialect).rstrip().removesuffix(";"),
        dialect_of(dialect), relation, _plain,
    )  # fmt: skip
    return f"{{{{ config(materialized='view') }}}}\n{query}\n"


def _test(rules: RuleSet, names: _Names, dialect: str) -> str:
    decides = quoted_name(new_columns(rules)[1], dialect_of(dialect))
    return (
        f"{{% test {names.test}(model, number) %}}\n"
        f"SELECT * FROM {{{{ model }}}} WHERE {decides} = {{{{ number }}}}\n"
        "{% endtest %}\n"
    )


def _description(rules: RuleSet, names: _Names) -> str:
    label, decides = new_columns(rules)
    *schema, table = names.parts
    where = [f"    schema: {quoted(schema[-1])}" if schema else '    schema: "{{ target.schema }}"']
    where += [f"    database: {quoted(schema[0])}"] if len(schema) > 1 else []
    words = f"The rows of {one_line(table)}, labelled by rules. {to_sentences(rules)}"
    default = f"What the rules call the row; by default {one_line(str(rules.default))}."
    lines = [
        "version: 2",
        "sources:",
        f"  - name: {names.project}",
        *where,
        "    quoting: {identifier: true}",
        "    tables:",
        f"      - name: {names.word}",
        f"        identifier: {quoted(table)}",
        "models:",
        f"  - name: {names.model}",
        f"    description: {quoted(_plain(words))}",
        "    columns:",
        f"      - name: {label}",
        f"        description: {quoted(_plain(default))}",
        f"      - name: {decides}",
        '        description: "The number of the rule that decides, null where none does."',
    ]
    found = detections(rules)
    lines += ["    data_tests:"] if found else []
    for each in found:
        lines += _entry(each, names)
    return "\n".join(lines) + "\n"


def _entry(found: Detection, names: _Names) -> list[str]:
    name = f"{names.test}_{found.number}"
    most = f"{{{{ '>' ~ var('{name}_most', {found.most}) }}}}"
    share = f", {percent(found.precision)} of them rightly" if found.rows else ""
    return [
        f"      - {names.test}:",
        f"          name: {name}",
        f"          description: {quoted(_plain(found.sentence))}",
        f"          arguments: {{number: {found.number}}}",
        "          config:",
        f"            severity: {'error' if found.is_error else 'warn'}",
        '            warn_if: ">0"',
        f"            # It covered {found.rows:,.6g} rows when it was learned{share}.",
        f'            error_if: "{most}"',
    ]
