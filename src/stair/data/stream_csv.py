"""CSV files read in parts: DuckDB cuts the fields, and what they are is decided as in memory.

DuckDB's own guess is another one: 01234 is a number to it, 13/02/2024 a time, and a guess that a
later line does not fit ends the run. So all fields are text at first, and one pass over all of
them finds out what each column holds, by the rules of `values.py`.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stair.data.frame import Value
from stair.data.reading import opened_file
from stair.data.spelling import (
    ABOVE,
    BELOW,
    CLOCK,
    COMMA,
    DAY,
    MOST_DIGITS,
    MOST_LOOKED_AT,
    NOT_A_CODE,
    POINT,
    Clocks,
    Days,
    Form,
    Look,
    Numbers,
    are_codes,
    note_on_codes,
    notes_on,
    pattern,
)
from stair.data.values import MISSING, typed
from stair.data.zones import SEVERAL, in_common, known_zone
from stair.errors import StairError

if TYPE_CHECKING:
    import duckdb

_SPACE: Final = r" \t\n\r\f\v"
_WHOLE: Final = r"[+-]?(0|[1-9][0-9]*)"
_TENS: Final = r"([eE][+-]?[0-9]+)?"
# Whole numbers with leading zeros are none.
_NUMBER: Final = (
    rf"[+-]?((0|[1-9][0-9]*){_TENS}|[0-9]+\.[0-9]*{_TENS}|\.[0-9]+{_TENS}|(?i:inf(inity)?))"
)
_DAY: Final = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOUR: Final = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_ZONE: Final = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
FIRST: Final = 2048  # lines by which it is guessed what all are to be tested for
QUOTE: Final = "'"
TOGETHER: Final = 100  # columns that one query asks about: it holds much for each of them


def csv_query(
    con: duckdb.DuckDBPyConnection, paths: Sequence[str]
) -> tuple[str, list[str], dict[int, str], tuple[str, ...]]:
    """A query for the rows of these files with typed columns, the names of its columns, the zones
    of times by their place, and what a person should know of how values are written."""
    names, separator = _layout(paths)
    listed = ", ".join(_text(glob.escape(path)) for path in paths)
    columns = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(names)))
    gone = ", ".join(map(_text, sorted(MISSING)))
    fields = (
        f"read_csv([{listed}], delim = {_text(separator)}, header = true, nullstr = [{gone}], "
        f"quote = '\"', escape = '\"', auto_detect = false, columns = {{{columns}}}, "
        "hive_partitioning = false, strict_mode = true, null_padding = false)"
    )
    first = con.execute(f"SELECT * FROM {fields} LIMIT {FIRST}").fetchall()
    guesses = [typed([row[i] or "" for row in first])[0].split(" ")[0] for i in range(len(names))]
    typed_cells: list[str] = []
    looks = [_look([row[i] for row in first], separator) for i in range(len(names))]
    zones: dict[int, str] = {}
    notes: list[str] = []

    def counted(questions: list[list[str]]) -> list[list[Value]]:
        """The answers for each column, some columns at a time."""
        answers: list[list[Value]] = []
        for start in range(0, len(names), TOGETHER):
            here = range(start, min(start + TOGETHER, len(names)))
            together = [question for i in here for question in questions[i]]
            stripped = ", ".join(f"c{i}, {_stripped(f'c{i}')} AS t{i}" for i in here)
            query = f"SELECT {', '.join(together)} FROM (SELECT {stripped} FROM {fields})"
            found = iter(con.execute(query).fetchall()[0] if together else ())
            answers += [[next(found) for _ in questions[i]] for i in here]
        return answers

    counts = counted([list(_questions(i, guess)) for i, guess in enumerate(guesses)])
    kinds = [_typed(f"c{i}", gone, guesses[i], counts[i]) for i in range(len(names))]
    # Only what is nothing else may be written as people write.
    forms = counted([
        list(_questions_on_form(i, looks[i])) if kind is None else []
        for i, kind in enumerate(kinds)
    ])  # fmt: skip
    for i, kind in enumerate(kinds):
        cell, text, n = _cells(f"c{i}", gone, counts[i])
        typed_cell, array_kind, form = kind or _written(cell, text, looks[i], forms[i], n)
        typed_cells.append(typed_cell)
        texts = [row[i] or "" for row in first[:MOST_LOOKED_AT]]
        notes += notes_on(names[i], texts, array_kind, form)
        if array_kind == "O" and form is None and "" in texts and are_codes(texts):
            written = fields.replace(f"nullstr = [{gone}]", "nullstr = ['']")
            asked = f"SELECT count(*) FILTER ({_stripped(f'c{i}')} = '{NOT_A_CODE}') FROM {written}"
            (n_rows,) = con.execute(asked).fetchall()[0]
            notes += [note_on_codes(names[i], n_rows)] if n_rows else []
        n_tests = len(_TESTS[guesses[i]])
        if "instant" in _TESTS[guesses[i]] and counts[i][n_tests + 2]:
            zones[i] = in_common(known_zone(zone) or SEVERAL for zone in counts[i][-2:])
    return f"SELECT {', '.join(typed_cells)} FROM {fields}", names, zones, tuple(notes)


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


# What is counted of a column that may be of a kind, as far as its first lines say.
_TESTS: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("whole", "signed", "unsigned", "number"),
    "float": ("number",),
    "bool": ("truth",),
    "date": ("time",),
    "zoned": ("instant", "least zone", "largest zone"),
    "text": (),
    "none": (
        "whole",
        "signed",
        "unsigned",
        "number",
        "truth",
        "time",
        "instant",
        "least zone",
        "largest zone",
    ),
}


def _look(values: Sequence[str | None], separator: str) -> Look:
    """How a column may be written that is not as programs write it, by its first lines."""
    look = Look(separator != ",")
    look.add(values)
    return look


def _questions(i: int, guess: str) -> Iterator[str]:
    """Values, those that are missing but for spaces, those with spaces, and those of each kind."""
    cell, text = f"c{i}", f"t{i}"
    gone = ", ".join(map(_text, sorted(MISSING)))
    yield f"count({cell})"
    yield f"count(*) FILTER ({text} IN ({gone}))"
    yield f"count(*) FILTER ({text} <> {cell})"

    def fits(pattern: str) -> str:
        return f"FILTER (regexp_full_match({text}, '{pattern}'))"

    asked = {
        "whole": f"count(*) {fits(_WHOLE)}",
        "signed": f"count(TRY_CAST({text} AS BIGINT))",
        "unsigned": f"count(TRY_CAST({text} AS UBIGINT))",
        "number": f"count(*) {fits(_NUMBER)}",
        "truth": f"count(*) FILTER (lower({text}) IN ('true', 'false'))",
        "time": f"count({_as_time(text)}) {fits(f'{_DAY}([T ]{_HOUR})?')}",
        "instant": f"count({_as_instant(text)}) {fits(f'{_DAY}[T ]{_HOUR}{_ZONE}')}",
        "least zone": f"min(regexp_extract({text}, '{_ZONE}$')) {fits(f'.*{_ZONE}')}",
        "largest zone": f"max(regexp_extract({text}, '{_ZONE}$')) {fits(f'.*{_ZONE}')}",
    }
    yield from (asked[test] for test in _TESTS[guess])


def _questions_on_form(i: int, look: Look) -> Iterator[str]:
    """How the values of a column are written, as far as its first lines leave it open."""
    text = f"t{i}"
    gone = ", ".join(map(_text, sorted(MISSING)))
    if look.may_be_numbers and look.unit is not None:
        for body in (POINT, COMMA):
            form = pattern(body, look.unit).replace(QUOTE, 2 * QUOTE)
            yield f"count(*) FILTER (regexp_full_match({text}, '{form}'))"
        yield f"count(*) FILTER (contains({text}, '.') OR contains({text}, ','))"
        digits = f"regexp_replace({text}, '[^0-9]', '', 'g')"
        yield f"max(length({digits})) FILTER ({text} NOT IN ({gone}))"
        below = f"left({text}, 1) IN ('<', '≤')"
        above = f"(left({text}, 1) IN ('>', '≥') OR right({text}, 1) = '+')"
        yield f"count(*) FILTER ({below})"
        yield f"count(*) FILTER ({above})"
        plain = f"FILTER (NOT {below} AND NOT {above} AND {text} NOT IN ({gone}))"
        yield f"min({text}) {plain}"
        yield f"max({text}) {plain}"
    if look.are_days:
        for has_day_first in (True, False):
            yield f"count({_as_day(text, look.mark, has_day_first)})"
    if look.are_clocks and look.colons:
        colons = f"length({text}) - length(replace({text}, ':', ''))"
        yield f"count(*) FILTER (regexp_full_match({text}, '{CLOCK}') AND {colons} = {look.colons})"


def _as_time(text: str) -> str:
    """Down to the microsecond; there is no year 0."""
    return f"TRY_CAST(CASE WHEN {text} NOT LIKE '0000%' THEN left({text}, 26) END AS TIMESTAMP)"


def _as_day(text: str, mark: str, has_day_first: bool) -> str:
    """A time whose day is written with its year at the end."""
    form = DAY.replace("[./-]", f"[{mark}]")

    def part(k: int, width: int = 2) -> str:
        return f"lpad(regexp_extract({text}, '^{form}$', {k}), {width}, '0')"

    month, day = (2, 1) if has_day_first else (1, 2)
    half = f"lower(regexp_extract({text}, '^{form}$', 8))"
    hour = f"TRY_CAST({part(4)} AS INTEGER)"
    hour = (
        f"CASE WHEN {half} = '' THEN {hour} WHEN {hour} BETWEEN 1 AND 12 "
        f"THEN {hour} % 12 + CASE WHEN {half} = 'p' THEN 12 ELSE 0 END END"
    )
    micros = f"rpad(left(regexp_extract({text}, '^{form}$', 7), 6), 6, '0')"
    parts = (
        f"{part(3, 4)}, '-', {part(month)}, '-', {part(day)}, ' ', "
        f"lpad(CAST({hour} AS VARCHAR), 2, '0'), ':', {part(5)}, ':', {part(6)}, '.', {micros}"
    )
    fits = f"regexp_full_match({text}, '{form}') AND {text} NOT LIKE '%{mark}0000%'"
    return f"TRY_CAST(CASE WHEN {fits} AND {hour} < 24 THEN concat({parts}) END AS TIMESTAMP)"


def _as_clock(text: str, colons: int) -> str:
    """A clock's first part, with the others as a share of it; in whole numbers as far as it can."""
    first, second, third = (f"split_part(ltrim({text}, '+-'), ':', {k})" for k in (1, 2, 3))
    whole, one = f"60 * CAST({first} AS BIGINT) + CAST({second} AS BIGINT)", 60
    if colons == 2:
        micros = f"CAST(1000000 * CAST({third} AS DECIMAL(9, 6)) AS BIGINT)"
        whole, one = f"60000000 * ({whole}) + {micros}", 3_600_000_000
    size = f"CAST({whole} AS DOUBLE) / CAST({one} AS DOUBLE)"
    return f"CASE WHEN left({text}, 1) = '-' THEN 0 - {size} ELSE {size} END"


def _as_instant(text: str) -> str:
    cut = rf"regexp_replace({text}, '(\.[0-9]{{6}})[0-9]+', '\1')"
    return f"TRY_CAST(CASE WHEN {text} NOT LIKE '0000%' THEN {cut} END AS TIMESTAMPTZ)"


def _cells(cell: str, gone: str, counts: Sequence[Value]) -> tuple[str, str, int]:
    """A column with what is missing but for spaces, without spaces, and how many values it has."""
    n_all, n_gone, n_spaced = (int(str(count)) for count in counts[:3])
    text = _stripped(cell) if n_spaced else cell
    if n_gone:
        cell = f"CASE WHEN {text} NOT IN ({gone}) THEN {cell} END"
        text = _stripped(cell)
    return cell, text, n_all - n_gone


def _typed(
    cell: str, gone: str, guess: str, counts: Sequence[Value]
) -> tuple[str, str, Form | None] | None:
    """The column as what all of its values are, and the kind of numpy's type; None where they
    agree on nothing."""
    cell, text, n = _cells(cell, gone, counts)
    found = dict(zip(_TESTS[guess], counts[3:], strict=True))
    is_all = {kind for kind, count in found.items() if count == n}
    if not n:
        return "CAST(NULL AS DOUBLE)", "f", None
    if "number" in is_all:
        whole = "whole" in is_all
        signed, unsigned = whole and "signed" in is_all, whole and "unsigned" in is_all
        found_type = "BIGINT" if signed else "UBIGINT" if unsigned else "DOUBLE"
        return f"CAST({text} AS {found_type})", "f" if found_type == "DOUBLE" else "i", None
    if "truth" in is_all:
        return f"lower({text}) = 'true'", "b", None
    if "time" in is_all:
        return _as_time(text), "M", None
    if "instant" in is_all:
        return _as_instant(text), "", None
    return None


def _written(
    cell: str, text: str, look: Look, counts: Sequence[Value], n: int
) -> tuple[str, str, Form | None]:
    """The column as the one form that all of its values have, or as text."""
    if look.may_be_numbers:
        points, commas, marked, digits, below, above, least, most, *counts = counts
        look.are_points, look.are_commas = points == n, commas == n
        look.are_marked = bool(marked)
        if int(str(digits)) > MOST_DIGITS:
            look.are_points = look.are_commas = False
        look.has_below, look.has_above = bool(below), bool(above)
        look.plain = frozenset(map(str, {least, most} - {None}))
    if look.are_days:
        day_first, month_first, *counts = counts
        look.have_day_first, look.have_month_first = day_first == n, month_first == n
    if look.are_clocks and look.colons:
        look.are_clocks = counts[0] == n
    form = look.form
    if isinstance(form, Numbers):
        bare = f"regexp_replace({text}, '^({BELOW}|{ABOVE})|[+]$', '', 'g')"
        kept = "[^0-9.,+-]" if form.has_unit else "[^0-9.,eE+-]"
        bare = f"regexp_replace({bare}, '{kept}', '', 'g')"
        bare = f"replace({bare}, '{',' if form.decimal == '.' else '.'}', '')"
        return f"CAST(replace({bare}, ',', '.') AS DOUBLE)", "f", form
    if isinstance(form, Days):
        return _as_day(text, look.mark, form.has_day_first), "M", form
    if isinstance(form, Clocks):
        return _as_clock(text, look.colons), "f", form
    return cell, "O", None
