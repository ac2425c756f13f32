"""CSV files read in parts: DuckDB cuts the fields, and what they are is decided as in memory.

DuckDB's own guess is another one: 01234 is a number to it, 13/02/2024 a time, and a guess that a
later line does not fit ends the run. So all fields are text at first, and one pass over all of
them finds out what each column holds, by the rules of `values.py`.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from stair.errors import StairError
from stair.io.reading import opened_file
from stair.io.values import MISSING

_SPACE: Final = r" \t\n\r\f\v"
_WHOLE: Final = r"[+-]?(0|[1-9][0-9]*)"
_NUMBER: Final = r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:inf(inity)?))"
_CODE: Final = r"[+-]?0[0-9]+([eE][+-]?[0-9]+)?"  # leading zeros: no number
_DAY: Final = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR: Final = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_ZONE: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"


def csv_query(con: Any, paths: Sequence[str]) -> tuple[str, list[str]]:
    """A query for the rows of these files with typed columns, and the names of its columns."""
    names, separator = _layout(paths)
    listed = ", ".join(_text(glob.escape(path)) for path in paths)
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    gone = ", ".join(map(_text, sorted(MISSING)))
    cells = ", ".join(
        f"CASE WHEN {_stripped(f'c{i}')} NOT IN ({gone}) THEN c{i} END AS c{i}"
        for i in range(len(names))
    )
    fields = (
        f"SELECT {cells} FROM read_csv([{listed}], delim = {_text(separator)}, header = true, "
        f"quote = '\"', escape = '\"', auto_detect = false, columns = {{{columns}}}, "
        "hive_partitioning = false, strict_mode = true, null_padding = false)"
    )
    asked = ", ".join(", ".join(_questions(f"c{i}")) for i in range(len(names)))
    found = con.execute(f"SELECT {asked} FROM ({fields})").fetchall()[0]
    n = len(found) // len(names)
    typed = [_typed(f"c{i}", *found[i * n : i * n + n]) for i in range(len(names))]
    return f"SELECT {', '.join(typed)} FROM ({fields})", names


def _layout(paths: Sequence[str]) -> tuple[list[str], str]:
    """The names of the columns and the separator, which all files have in common."""
    first: tuple[list[str], str] | None = None
    for path in paths:
        name = Path(path).name
        with opened_file(path, whole=False) as opened:
            assert opened.text is not None
            if opened.text.zipped or opened.text.encoding not in ("utf-8", "utf-8-sig"):
                raise StairError(
                    f"{name} is zipped or not in UTF-8, so that it cannot be read in parts; write "
                    "it in UTF-8, or use the engine memory."
                )
            here = (list(opened.names), str(opened.separator))
        if first is None:
            first = here
        for who, column, other in _differences(first, here):
            lacks = "lacks" if who == "has" else "has"
            raise StairError(
                f'{name} {who} a column "{column}" that {Path(paths[0]).name} {lacks}; '
                f"expected the same columns in all files{other}."
            )
    assert first is not None
    return first


def _differences(
    first: tuple[list[str], str], here: tuple[list[str], str]
) -> list[tuple[str, str, str]]:
    """Which column a file has or lacks, against the first one; nothing where all is the same."""
    if here == first:
        return []
    new = [c for c in here[0] if c not in first[0]]
    gone = [c for c in first[0] if c not in here[0]]
    if new or gone:
        return [("has", new[0], "")] if new else [("lacks", gone[0], "")]
    return [("lacks", first[0][0], " in the same order with the same separator")]


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _stripped(cell: str) -> str:
    return f"trim({cell}, E'{_SPACE}')"


def _questions(cell: str) -> list[str]:
    """What is counted of a column: its values, and those of each kind."""
    text = _stripped(cell)

    def fits(pattern: str) -> str:
        return f"regexp_full_match({text}, '{pattern}')"

    day = f"{text} NOT LIKE '0000%' AND "
    return [
        f"count({cell})",
        f"count(*) FILTER ({fits(_WHOLE)})",
        f"count(TRY_CAST({text} AS BIGINT)) FILTER ({fits(_WHOLE)})",
        f"count(TRY_CAST({text} AS UBIGINT)) FILTER ({fits(_WHOLE)})",
        f"count(*) FILTER ({fits(_NUMBER)} AND NOT {fits(_CODE)})",
        f"count(*) FILTER (lower({text}) IN ('true', 'false'))",
        f"count({_as_time(text)}) FILTER ({day}{fits(f'{_DAY}([T ]{_HOUR})?')})",
        f"count({_as_instant(text)}) FILTER ({day}{fits(f'{_DAY}[T ]{_HOUR}{_ZONE}')})",
    ]


def _as_time(text: str) -> str:
    return f"TRY_CAST(left({text}, 26) AS TIMESTAMP)"  # down to the microsecond


def _as_instant(text: str) -> str:
    cut = rf"regexp_replace({text}, '(\.[0-9]{{6}})[0-9]+', '\1')"
    return f"TRY_CAST({cut} AS TIMESTAMPTZ)"


def _typed(
    cell: str, n: int, whole: int, signed: int, unsigned: int, number: int, truth: int, time: int,
    instant: int,
) -> str:  # fmt: skip
    """The column as what all of its values are; as text where they agree on nothing else."""
    text = _stripped(cell)
    if n in (0, number):
        kind = "DOUBLE"
        if n and whole == n and n in (signed, unsigned):
            kind = "BIGINT" if signed == n else "UBIGINT"
        return f"CAST({text} AS {kind})"
    if truth == n:
        return f"lower({text}) = 'true'"
    if time == n:
        return _as_time(text)
    return _as_instant(text) if instant == n else cell
