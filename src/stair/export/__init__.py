"""Rules that travel: the edge of the house, one file for each ending."""

from stair.export.json import Rulebook, from_json, load, to_json
from stair.export.sentences import to_markdown, to_sentences
from stair.export.sql import DIALECTS, to_sql, to_sql_case, to_sql_predicates, to_sql_view
from stair.export.text import to_text

__all__ = [
    "DIALECTS",
    "Rulebook",
    "from_json",
    "load",
    "to_json",
    "to_markdown",
    "to_sentences",
    "to_sql",
    "to_sql_case",
    "to_sql_predicates",
    "to_sql_view",
    "to_text",
]
