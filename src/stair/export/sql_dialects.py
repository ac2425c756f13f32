"""The databases that SQL is written for, and what differs between them.

DuckDB, PostgreSQL and SQLite are written by hand. The others are written in neutral SQL, in which
functions that no two databases share have names that begin with STAIR_; sqlglot then writes names,
texts and types as the database wants them, and these functions are filled in from the table here.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from stair.data.conversion import ADDRESS
from stair.errors import StairError, did_you_mean

Tree: TypeAlias = Any  # of sqlglot, or sqlglot itself

# Some expressions end before a last line break, so that nothing else than digits is asked for too.
_ADDRESS: Final = f"^{ADDRESS}$"
_NO_DIGIT: Final = "[^0-9.]"
# Without expressions: three points between one to three digits each, up to 255, no leading zeros.
_PLAIN: Final = "_ COLLATE Latin1_General_100_BIN2"
_BY_PARTS: Final = " AND ".join((
    "LEN(_) - LEN(REPLACE(_, '.', '')) = 3",
    *(f"NOT {_PLAIN} LIKE '%{part}%'" for part in (
        "[^0-9.]", "..", "[0-9][0-9][0-9][0-9]", "[3-9][0-9][0-9]", "2[6-9][0-9]", "25[6-9]",
        ".0[0-9]",
    )),
    f"NOT {_PLAIN} LIKE '0[0-9]%'", f"NOT {_PLAIN} LIKE '.%'", f"NOT {_PLAIN} LIKE '%.'",
))  # fmt: skip
_FOLDED: Final = f"TRANSLATE(_, '{string.ascii_uppercase}', '{string.ascii_lowercase}')"


@dataclass(frozen=True, slots=True)
class Dialect:
    """A database: its name for people, its limit of names, and its words for our functions.

    In `functions`, _ stands for the column, TERM for a text that is looked for and ZONE for the
    name of a time zone. The weekday is a number: `monday` for Monday, and six more for Sunday.
    """

    name: str
    title: str
    longest_name: int | None = None
    in_bytes: bool = False
    sqlglot: str | None = None  # its name there, where sqlglot writes it
    monday: int = 1
    has_nan: bool = True
    has_case: bool = False  # whether "a" and "A" are two columns
    functions: dict[str, str] = field(default_factory=dict)


_EVERY: Final = (
    Dialect("duckdb", "DuckDB"),
    Dialect("postgres", "PostgreSQL", 63, in_bytes=True, has_case=True),
    Dialect("sqlite", "SQLite"),
    Dialect("spark", "Spark", 255, sqlglot="spark", monday=0, functions={
        "HOUR": "HOUR(_)", "WEEKDAY": "WEEKDAY(_)", "NAN": "ISNAN(_)",
        "TEXT": "CAST(_ AS STRING)",
        # By the calendar: as an instant, a time that the session's clocks leave out is another one.
        "MICROSECONDS": "DATEDIFF(_, DATE '1970-01-01') * 86400000000 + HOUR(_) * 3600000000 + "
                        "MINUTE(_) * 60000000 + CAST(EXTRACT(SECOND FROM _) * 1000000 AS BIGINT)",
        "INSTANT": "UNIX_MICROS(_)",
        "INSTANT_IN": "UNIX_MICROS(FROM_UTC_TIMESTAMP(TIMESTAMP_MICROS(UNIX_MICROS(_)), ZONE))",
        "HOUR_OF": "PMOD(_, 86400000000) DIV 3600000000",
        "WEEKDAY_OF": "PMOD(_ - 345600000000, 604800000000) DIV 86400000000",  # from a Monday on
        "TIME": "CAST(_ AS TIMESTAMP_NTZ)", "HAS": f"LOCATE(TERM, {_FOLDED}) > 0",
        "ADDRESS": f"(_ RLIKE '{_ADDRESS}' AND NOT _ RLIKE '{_NO_DIGIT}')",
    }),
    Dialect("bigquery", "BigQuery", 300, sqlglot="bigquery", monday=0, functions={
        "HOUR": "EXTRACT(HOUR FROM _)",
        "WEEKDAY": "MOD(EXTRACT(DAYOFWEEK FROM _) + 5, 7)",  # Sunday is the first day there
        "HOUR_IN": "EXTRACT(HOUR FROM DATETIME(_, ZONE))",
        "WEEKDAY_IN": "MOD(EXTRACT(DAYOFWEEK FROM DATETIME(_, ZONE)) + 5, 7)",
        "MICROSECONDS": "UNIX_MICROS(CAST(_ AS TIMESTAMP))",
        "NAN": "IS_NAN(_)", "TEXT": "_", "TIME": "_", "HAS": f"STRPOS({_FOLDED}, TERM) > 0",
        "ADDRESS": f"REGEXP_CONTAINS(_, '{_ADDRESS}')",
    }),
    Dialect("snowflake", "Snowflake", 255, sqlglot="snowflake", has_case=True, functions={
        "HOUR": "HOUR(_)", "WEEKDAY": "DAYOFWEEKISO(_)",
        "NAN": "CAST(_ AS DOUBLE) = CAST('NaN' AS DOUBLE)",
        "MICROSECONDS": "DATE_PART(epoch_microsecond, _)", "TEXT": "CAST(_ AS VARCHAR)",
        "TIME": "CAST(_ AS TIMESTAMP_NTZ)", "HAS": f"POSITION(TERM, {_FOLDED}) > 0",
        "ADDRESS": f"REGEXP_LIKE(_, '{ADDRESS}')",
    }),
    # Its default collation takes É for E and a for A; BIN2 compares as written.
    Dialect("sqlserver", "SQL Server", 128, sqlglot="tsql", monday=0, has_nan=False, functions={
        "HOUR": "DATEPART(HOUR, _)", "WEEKDAY": "DATEDIFF(DAY, '0001-01-01', _) % 7",
        "MICROSECONDS": "DATEDIFF_BIG(MICROSECOND, '1970-01-01', _)",
        "TEXT": "_ COLLATE Latin1_General_100_BIN2", "TIME": "CAST(_ AS DATETIME2(6))",
        "HAS": "CHARINDEX(TERM, "
               f"{_FOLDED.replace('_', '_ COLLATE Latin1_General_100_BIN2')}) > 0",
        "ADDRESS": f"({_BY_PARTS})",
    }),
    # Bytes are compared, for the same reason; there is no TRANSLATE, see `_mysql_has`.
    Dialect("mysql", "MySQL", 64, sqlglot="mysql", monday=0, has_nan=False, functions={
        "HOUR": "HOUR(_)", "WEEKDAY": "WEEKDAY(_)",
        "MICROSECONDS": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', _)",
        "TEXT": "CAST(CONVERT(_ USING utf8mb4) AS BINARY)", "TIME": "CAST(_ AS DATETIME(6))",
        "HAS": "LOCATE(CAST(CONVERT(TERM USING utf8mb4) AS BINARY), "
               "CAST(CONVERT(_ USING utf8mb4) AS BINARY)) > 0",
        "ADDRESS": f"(_ REGEXP '{_ADDRESS}' AND NOT _ REGEXP '{_NO_DIGIT}')",
    }),
)  # fmt: skip

DIALECTS: Final = tuple(dialect.name for dialect in _EVERY)
_ALIASES: Final = {"postgresql": "postgres", "tsql": "sqlserver", "mssql": "sqlserver"}


def dialect_of(name: str) -> Dialect:
    """A dialect by its name."""
    wanted = _ALIASES.get(name.lower(), name.lower())
    for dialect in _EVERY:
        if dialect.name == wanted:
            return dialect
    hint = did_you_mean(name, DIALECTS)
    raise StairError(f"no SQL dialect {name!r}; dialects are {', '.join(DIALECTS)}.{hint}")


def check_dialect(name: str) -> None:
    """Before any work: is it known, and is what it needs installed?"""
    if dialect_of(name).sqlglot is not None:
        _sqlglot(dialect_of(name))


def check_name(name: str, dialect: Dialect) -> None:
    """A name that the database would cut off, or cannot hold, is refused."""
    if not name or "\0" in name:
        raise StairError(f"{name!r} cannot be a name in SQL")
    if dialect.name == "mysql" and max(name) > "\uffff":
        raise StairError(f'"{name}" has a character that a name in MySQL cannot have; rename it')
    if dialect.longest_name is None:
        return
    length = len(name.encode()) if dialect.in_bytes else len(name)
    if length > dialect.longest_name:
        unit = "bytes" if dialect.in_bytes else "characters"
        raise StairError(
            f'"{name[:30]}…" has {length} {unit}, but a name in {dialect.title} has at most '
            f"{dialect.longest_name}; rename it, or choose another dialect"
        )


def translated(text: str, dialect: Dialect) -> str:
    """Neutral SQL as this database reads it. Only for dialects that sqlglot writes."""
    sqlglot, exp = _sqlglot(dialect), _sqlglot(dialect).exp
    tree = sqlglot.parse_one(text, read="duckdb")

    def fill_in(node: Tree) -> Tree:
        if isinstance(node, exp.Anonymous) and node.name.startswith("STAIR_"):
            given = [each.transform(fill_in) for each in node.expressions]
            return _filled_in(sqlglot, dialect, node.name.removeprefix("STAIR_"), given)
        return node

    tree = tree.transform(fill_in)
    if dialect.name == "spark":
        tree = tree.transform(lambda node: _without_variables(exp, node))
    if dialect.name == "sqlserver":  # a text without N has only the letters of the code page
        for literal in list(tree.find_all(exp.Literal)):
            if literal.is_string and not literal.find_ancestor(exp.Cast):
                literal.replace(exp.National(this=literal.this))
    # Older versions of sqlglot indent the lines of a name that has several, and so change it.
    pretty = not any("\n" in name.name for name in tree.find_all(exp.Identifier))
    text = str(tree.sql(dialect=dialect.sqlglot, identify=True, pretty=pretty, comments=False))
    return plain_text(text, dialect)


def _without_variables(exp: Tree, node: Tree) -> Tree:
    """A name in which Spark would fill in a variable, as a text: in a text alone can it be written
    so that it does not."""
    if not (isinstance(node, exp.Column) and "${" in node.name):
        return node
    name = exp.Literal.string("`" + node.name.replace("`", "``") + "`")
    return exp.Anonymous(this="IDENTIFIER", expressions=[name])


def plain_text(text: str, dialect: Dialect) -> str:
    """A statement, or a comment, of which a database fills in nothing before it reads it. Only
    texts in it have what is filled in."""
    return text.replace("${", "\\u0024{") if dialect.name == "spark" else text


def _filled_in(sqlglot: Tree, dialect: Dialect, function: str, given: list[Tree]) -> Tree:
    exp = sqlglot.exp
    template = sqlglot.parse_one(dialect.functions[function], read=dialect.sqlglot)
    column = given[0]
    if dialect.name == "mysql" and function == "HAS":
        column = _folded_in_mysql(exp, column, given[1].name)

    def place(node: Tree) -> Tree:
        if isinstance(node, exp.Column) and node.name == "_":
            return column.copy()
        if isinstance(node, exp.Column) and node.name in ("TERM", "ZONE"):
            return given[1].copy()
        return node

    filled = template.transform(place)
    return exp.Paren(this=filled) if isinstance(filled, exp.Binary) else filled


def _folded_in_mysql(exp: Tree, column: Tree, term: str) -> Tree:
    """The letters of the term in lower case; LOWER would also fold letters beyond A to Z."""
    for letter in sorted(set(term) & set(string.ascii_lowercase)):
        column = exp.Anonymous(
            this="REPLACE",
            expressions=[
                column,
                exp.Literal.string(letter.upper()),
                exp.Literal.string(letter),
            ],
        )
    return column


def _sqlglot(dialect: Dialect) -> Tree:
    try:
        import sqlglot
    except ImportError:
        raise StairError(
            f"SQL for {dialect.title} needs sqlglot: pip install 'stair[sql]'"
        ) from None
    return sqlglot
