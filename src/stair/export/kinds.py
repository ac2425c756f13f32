"""The kinds of export by name, as the command knows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stair.errors import StairError, did_you_mean, option
from stair.export.json import Rulebook, to_json

__all__ = ["FOLDERS", "KINDS", "SQL_FORMS", "check_kind", "export"]

FOLDERS: Final = ("dbt",)  # kinds that are several files
SQL_FORMS: Final = ("query", "view", "case", "conditions")
_PLAIN: Final[dict[str, Callable[[Rulebook], str | bytes]]] = {
    "text": Rulebook.to_sentences,
    "markdown": Rulebook.to_markdown,
    "json": to_json,
    "pandas": Rulebook.to_pandas,
    "polars": Rulebook.to_polars,
    "python": Rulebook.to_python,
    "onnx": Rulebook.to_onnx,
    "pmml": Rulebook.to_pmml,
}
KINDS: Final = ("text", "markdown", "json", "sql", "pandas", "polars", "python", "onnx", "pmml",
                "dbt", "great-expectations", "soda", "sigma")  # fmt: skip


def check_kind(kind: str, form: str) -> None:
    for given, known, what in ((kind, KINDS, "kind of export"), (form, SQL_FORMS, "form of SQL")):
        if given not in known:
            hint = did_you_mean(given, known)
            raise StairError(f'no {what} "{given}"; there are {", ".join(known)}.{hint}')


def export(saved: Rulebook, kind: str, table: str, dialect: str, form: str) -> str | bytes:
    """Saved rules in another form; only ONNX gives bytes."""
    check_kind(kind, form)
    if kind in FOLDERS:
        folder = option("path", "FOLDER")
        raise StairError(f"{kind} wants a folder; say where to write it with {folder}")
    if kind == "great-expectations":
        return saved.to_great_expectations(None, dialect)
    if kind == "soda":
        return saved.to_soda(table, None, dialect)
    if kind == "sigma":
        return saved.to_sigma(table)
    if kind != "sql":
        return _PLAIN[kind](saved)
    if form == "conditions":
        return "".join(f"{condition}\n" for condition in saved.to_sql_predicates(dialect))
    if form == "case":
        return f"{saved.to_sql_case(dialect)}\n"
    if form == "view":
        return saved.to_sql_view(table, dialect=dialect)
    return saved.to_sql(table, dialect=dialect)
