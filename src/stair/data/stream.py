"""A table too large to hold, read in parts through DuckDB: Parquet and CSV files, globs, databases.

The files are checked before the first row is read, and again after the last one: a table that
changes between two passes would give wrong rules without anybody noticing.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stair.data.databases import (
    PARQUET,
    arrow_reader,
    choose_table,
    parquet_names,
    parquet_zones,
    sql_shape,
)
from stair.data.frame import unique_names
from stair.data.packages import NO_EXTENSIONS, optional, quoted, reason
from stair.data.reading import no_such_file
from stair.data.stream_csv import csv_query
from stair.data.text import PIPED
from stair.data.zones import UTC, in_common
from stair.errors import StairError, folded, option

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

CSV = frozenset({".csv", ".tsv", ".txt"})
DUCKDB = frozenset({".duckdb", ".ddb", ".db"})
VECTOR = 2048  # rows that DuckDB hands on together


@dataclass(frozen=True, slots=True)
class Part:
    """One file as it was when it was first looked at."""

    path: str
    size: int
    modified: int

    @property
    def name(self) -> str:
        return Path(self.path).name


def found_files(source: str | os.PathLike[str]) -> list[Path]:
    """The files that a path, a folder or a pattern means, in the order of their names."""
    path = Path(source).expanduser()
    given = str(path)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in PARQUET | CSV)
        found = [p for p in found if p.is_file() and not p.name.startswith((".", "_"))]
        if not found:
            raise StairError(f'there is no Parquet or CSV file in the folder "{source}".')
    elif path.exists():
        found = [path]
    elif glob.has_magic(given):
        found = [Path(p) for p in sorted(_matching(given)) if Path(p).is_file()]
        if not found:
            raise StairError(f'no file matches "{source}"; expected at least one.')
    else:
        raise StairError(no_such_file(path))
    return found


def files_of(source: str | os.PathLike[str]) -> list[Part]:
    """The files of a table that is read in parts; all of one kind."""
    found = found_files(source)
    formats = {_format(p) for p in found}
    if len(formats) > 1:
        endings = {p.suffix.lower() for p in found}
        raise StairError(f"{source} mixes {folded(sorted(endings))} files; expected one kind.")
    if formats == {None}:
        raise StairError(
            f"{found[0].name} cannot be read in parts; expected .parquet, .csv or .duckdb files."
        )
    return [_part(p) for p in found]


def _matching(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True)  # noqa: PTH207 - a pattern may be absolute


def _format(path: Path) -> str | None:
    ending = ".csv" if path.name == PIPED else path.suffix.lower()
    for name, endings in (("parquet", PARQUET), ("csv", CSV), ("duckdb", DUCKDB)):
        if ending in endings:
            return name
    return None


def _part(path: Path) -> Part:
    try:
        about = path.resolve().stat()
    except OSError as error:
        raise StairError(f"cannot read {path.name}: {reason(error)}.") from None
    return Part(str(path.resolve()), about.st_size, about.st_mtime_ns)


class Lengths(NamedTuple):
    """How long the texts of some columns are, in bytes."""

    vector: int = 0  # at most, of the rows that DuckDB hands on together
    a_row: float = 0.0  # on average
    longest: str = ""  # the column that has the longest ones


class Stream:
    """An opened table: its columns' names, and its rows in parts, as often as they are wanted."""

    def __init__(
        self,
        con: duckdb.DuckDBPyConnection,
        table: Table,
        parts: list[Part],
        source: str,
        errors: type[BaseException],
    ) -> None:
        self._con, self._errors = con, errors
        self.parts, self.source = parts, source
        self.rows_seen: int | None = None  # by whoever went over all of them
        with self._in_words():
            described = con.execute(f"DESCRIBE {table.relation}").fetchall()
        # By place, for DuckDB takes names that differ in case alone for the same.
        self._places = [f"c{i}" for i in range(len(described))]
        self._relation = f"({table.relation}\n) AS t({', '.join(self._places)})"
        self.names, notes = unique_names(table.names or [row[0] for row in described])
        self.notes = (*notes.values(), *table.notes)
        self._columns = {
            name: _column(row[1], place)
            for name, row, place in zip(self.names, described, self._places, strict=True)
        }
        self._lengths: dict[str, Lengths] = {}
        self._zones = {name: (table.zones or {}).get(i, UTC) for i, name in enumerate(self.names)}

    def zone(self, name: str) -> str:
        """Of which zone the times of a column are, where they have one."""
        return self._zones[name]

    def shape(self, name: str) -> str:
        """What a column holds: int, wide, decimal, float, clock, duration, bool, date, zoned,
        described or text."""
        return self._columns[name][0]

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns: numbers as float64 (NaN: missing), whole ones of 64 bits
        as they are and larger ones as text, times as microseconds (the least number: missing),
        truths, text, lists and records as they are."""
        select = ", ".join(self._columns[name][1] for name in names)
        self.check()
        with self._in_words():
            found = self._con.sql(f"SELECT {select} FROM {self._relation}")
            yield from arrow_reader(found, n_rows)
        self.check()

    def lengths(self, names: Sequence[str]) -> Lengths:
        """Of all these columns together; texts are looked at, and nothing of them is kept."""
        new = [
            name
            for name in names
            if self.shape(name) in ("text", "described") and name not in self._lengths
        ]
        if new:
            sizes = [f"strlen(CAST({self._columns[name][1]} AS VARCHAR))" for name in new]
            asked = ", ".join(
                f"coalesce(list_sum(max({size}, {VECTOR})), 0), coalesce(avg({size}), 0)"
                for size in sizes
            )
            with self._in_words():
                found = self._con.execute(f"SELECT {asked} FROM {self._relation}").fetchall()[0]
            for k, name in enumerate(new):
                self._lengths[name] = Lengths(int(found[2 * k]), float(found[2 * k + 1]), name)
        known = [self._lengths[name] for name in names if name in self._lengths]
        if not known:
            return Lengths()
        return Lengths(
            sum(each.vector for each in known),
            sum(each.a_row for each in known),
            max(known).longest,
        )

    def n_rows(self) -> int:
        """How many rows there are."""
        with self._in_words():
            return int(self._con.execute(f"SELECT count(*) FROM {self._relation}").fetchall()[0][0])

    def check(self) -> None:
        """Whether every file is still what it was."""
        for part in self.parts:
            if not Path(part.path).exists():
                raise StairError(f"{part.name} is gone; it was there when the run began.")
            if _part(Path(part.path)) != part:
                raise StairError(f"{part.name} changed while it was read; run again.")

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except (*_arrow_errors(), self._errors) as error:
            self.check()  # the likelier reason: a file that vanished or changed
            raise _trouble(self.source, error) from error


# What DuckDB and Arrow say where there is no room: for anything, or for a text of all rows.
_TOO_LITTLE = ("memory", "maximum total string size", "cannot contain more than", "allocat")


def _trouble(source: str, error: BaseException) -> StairError:
    """What keeps us from reading: only what is left over may be damage."""
    why, said = reason(error), str(error).lower()
    if "space left" in said or "failed to offload" in said:
        return StairError(f"the disk is full: {why}.")
    if isinstance(error, MemoryError) or any(sign in said for sign in _TOO_LITTLE):
        return StairError(f"not enough memory: {why}. Allow more with {option('memory')}.")
    return StairError(f"cannot read {source}, it may be damaged: {why}.")


def _arrow_errors() -> tuple[type[BaseException], ...]:
    pyarrow = optional("pyarrow")
    return (pyarrow.ArrowException, OSError, MemoryError)


_EXACT = frozenset({"BIGINT", "UBIGINT"})  # beyond what is exact as DOUBLE


def _column(declared: str, place: str) -> tuple[str, str]:
    """What a column becomes, and the expression that makes it so."""
    kind, sql = sql_shape(declared)
    decimal = re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", declared)
    if decimal and int(decimal[2]) and kind != "decimal":
        # By way of text, for a float is then the nearest one.
        return "float", f"coalesce(CAST(CAST({place} AS VARCHAR) AS DOUBLE), 'nan'::DOUBLE)"
    plain = sql.format(place)
    if kind == "int" and declared not in _EXACT:
        plain = f"CAST({place} AS DOUBLE)"
    if kind in ("float", "clock", "duration") or (kind == "int" and declared not in _EXACT):
        return kind, f"coalesce({plain}, 'nan'::DOUBLE)"
    if kind in ("date", "zoned"):
        return kind, f"coalesce({plain}, -9223372036854775807 - 1)"
    return kind, plain


@contextlib.contextmanager
def open_stream(
    source: str | os.PathLike[str],
    *,
    table: str | None,
    query: str | None,
    memory: int,
    spill: Path,
) -> Iterator[Stream]:
    """Open files or a database for reading in parts, within so many bytes of DuckDB's memory."""
    duckdb = optional("duckdb")
    if duckdb is None or optional("pyarrow") is None:
        missing = "duckdb" if duckdb is None else "pyarrow"
        raise StairError(f"the engine duckdb needs {missing}: pip install 'stair[scale]'")
    parts = files_of(source)
    kind = _format(Path(parts[0].path))
    if kind != "duckdb" and (table is not None or query is not None):
        raise StairError(
            f"{option('table')} and {option('query')} are for a database file, but these are none"
        )
    config = dict(NO_EXTENSIONS)
    if kind == "duckdb":
        config["enable_external_access"] = "false"
    limit = f"{max(memory >> 20, 64)}MiB"
    name = Path(parts[0].path).name if len(parts) == 1 else os.fspath(source)
    try:
        con = duckdb.connect(
            parts[0].path if kind == "duckdb" else ":memory:",
            read_only=kind == "duckdb",
            config={**config, "memory_limit": limit, "temp_directory": str(spill)},
        )
    except duckdb.Error as error:
        raise StairError(f"cannot read {name}, it may be damaged: {reason(error)}.") from error
    try:
        con.execute("SET enable_progress_bar = false")
        # Else all of a row group is held at once, and those of wide tables are large.
        con.execute("SET disable_parquet_prefetching = true")
        select = duckdb.StatementType.SELECT
        found = _table(con, kind or "", parts, table, query, name, duckdb.Error, select)
        yield Stream(con, found, parts, name, duckdb.Error)
    finally:
        con.close()


class Table(NamedTuple):
    """A query, and the names of its columns where they are not as DuckDB has them."""

    relation: str
    names: list[str] | None = None
    zones: dict[int, str] | None = None  # of columns by their place, where they are not UTC
    notes: tuple[str, ...] = ()


def _table(
    con: duckdb.DuckDBPyConnection,
    kind: str,
    parts: list[Part],
    table: str | None,
    query: str | None,
    name: str,
    errors: type[BaseException],
    select: object,
) -> Table:
    listed = ", ".join("'" + glob.escape(p.path).replace("'", "''") + "'" for p in parts)
    try:
        if kind == "parquet":
            _check_schemas(con, parts)
            names = parquet_names(con, [glob.escape(parts[0].path)])
            return Table(
                f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)", names,
                _parquet_zones(parts),
            )  # fmt: skip
        if kind == "csv":
            return Table(*csv_query(con, [part.path for part in parts]))
        if query is not None:
            if [s.type for s in con.extract_statements(query)] != [select]:
                raise StairError(f"{option('query')} must be a single SELECT; got something else.")
            return Table(query.strip().rstrip(";"))
        rows = con.execute(
            "SELECT table_schema, table_name, table_type = 'BASE TABLE' "
            "FROM information_schema.tables ORDER BY 1, 2"
        ).fetchall()
        there = {n if s == "main" else f"{s}.{n}": (s, n, base) for s, n, base in rows}
        chosen = choose_table(name, {k: v[2] for k, v in there.items()}, table)
        return Table(f"SELECT * FROM {quoted(there[chosen][0])}.{quoted(there[chosen][1])}")
    except errors as error:
        raise _trouble(name, error) from error


def _parquet_zones(parts: list[Part]) -> dict[int, str]:
    """The zones that all files have in common."""
    each = [parquet_zones(Path(part.path)) for part in parts]
    places = {place for zones in each for place in zones}
    return {i: in_common(zones.get(i, UTC) for zones in each) for i in places}


def _check_schemas(con: duckdb.DuckDBPyConnection, parts: list[Part]) -> None:
    """All files must have the same columns of the same types as the first one."""
    schemas = []
    for part in parts:
        place = "'" + glob.escape(part.path).replace("'", "''") + "'"
        if part.size == 0:
            raise StairError(f"{part.name} is empty (0 bytes); expected a table.")
        try:
            rows = con.execute(f"DESCRIBE SELECT * FROM read_parquet({place})").fetchall()
        except Exception as error:
            raise StairError(
                f"cannot read {part.name}, it may be damaged: {reason(error)}."
            ) from error
        schemas.append((part.name, {row[0]: row[1] for row in rows}))
    check_same(schemas)


def check_same(schemas: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Refuse files, each with the types of its columns, that are not parts of one table; a type
    that is "" goes with any other."""
    if not schemas:
        return
    first, types = schemas[0][0], dict(schemas[0][1])
    for file, schema in schemas:
        odd = sorted(set(types) ^ set(schema))
        if odd:
            who = "has" if odd[0] in schema else "lacks"
            raise StairError(
                f'{file} {who} a column "{odd[0]}" that {first} '
                f"{'lacks' if who == 'has' else 'has'}; expected the same columns in all files."
            )
        for name, kind in schema.items():
            if kind and types[name] and types[name] != kind:
                raise StairError(
                    f'"{name}" is {types[name]} in {first} but {kind} in {file}; '
                    "expected the same types in all files."
                )
            types[name] = types[name] or kind
