"""A table too large to hold, read in parts through DuckDB: Parquet and CSV files, globs, databases.

The files are checked before the first row is read, and again after the last one: a table that
changes between two passes would give wrong rules without anybody noticing.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stair.errors import StairError, folded
from stair.io.databases import PARQUET, choose_table, sql_shape
from stair.io.packages import NO_EXTENSIONS, optional, quoted, reason
from stair.io.reading import no_such_file
from stair.io.values import MISSING

CSV = frozenset({".csv", ".tsv", ".txt"})
DUCKDB = frozenset({".duckdb", ".ddb", ".db"})
SAMPLED_LINES = 1_000_000  # of a CSV file, to find out what its columns hold


@dataclass(frozen=True, slots=True)
class Part:
    """One file as it was when it was first looked at."""

    path: str
    size: int
    modified: int

    @property
    def name(self) -> str:
        return Path(self.path).name


def files_of(source: str | os.PathLike[str]) -> list[Part]:
    """The files that a path, a folder or a pattern means, in order."""
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
    endings = {p.suffix.lower() for p in found}
    if len({_format(ending) for ending in endings}) > 1:
        raise StairError(f"{source} mixes {folded(sorted(endings))} files; expected one kind.")
    if _format(next(iter(endings))) is None:
        raise StairError(
            f"{found[0].name} cannot be read in parts; expected .parquet, .csv or .duckdb files."
        )
    return [_part(p) for p in found]


def _matching(pattern: str) -> list[str]:
    return glob.glob(pattern, recursive=True)  # noqa: PTH207 - a pattern may be absolute


def _format(ending: str) -> str | None:
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


class Stream:
    """An opened table: its columns' names, and its rows in parts, as often as they are wanted."""

    def __init__(
        self, con: Any, relation: str, parts: list[Part], source: str, errors: type[BaseException]
    ) -> None:
        self._con, self._relation, self._errors = con, relation, errors
        self.parts, self.source = parts, source
        with self._in_words():
            described = con.execute(f"DESCRIBE {relation}").fetchall()
        self._shapes = {row[0]: sql_shape(row[1]) for row in described}
        self.names = list(self._shapes)

    def shape(self, name: str) -> str:
        """What a column holds: int, wide, float, clock, duration, bool, date, zoned,
        described or text."""
        return self._shapes[name][0]

    def batches(self, names: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Record batches of these columns: numbers as float64 (NaN: missing), times as
        microseconds (the least number: missing), truths and text as they are."""
        select = ", ".join(f"{self._plain(name)} AS {quoted(name)}" for name in names)
        self.check()
        with self._in_words():
            found = self._con.sql(f"SELECT {select} FROM ({self._relation})")
            reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch
            yield from reader(n_rows)
        self.check()

    def _plain(self, name: str) -> str:
        kind, sql = self._shapes[name]
        if kind in ("int", "wide"):
            return f"coalesce(CAST({quoted(name)} AS DOUBLE), 'nan'::DOUBLE)"
        if kind in ("float", "clock", "duration"):
            return f"coalesce({sql.format(quoted(name))}, 'nan'::DOUBLE)"
        if kind in ("date", "zoned"):
            return f"coalesce({sql.format(quoted(name))}, -9223372036854775807 - 1)"
        return sql.format(quoted(name))

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
            why = reason(error)
            self.check()  # the likelier reason: a file that vanished or changed
            if "space left" in str(error).lower() or "failed to offload" in str(error).lower():
                raise StairError(f"the disk is full: {why}.") from error
            if "memory" in str(error).lower():
                raise StairError(f"not enough memory: {why}. Allow more with --memory.") from error
            raise StairError(f"cannot read {self.source}, it may be damaged: {why}.") from error


def _arrow_errors() -> tuple[type[BaseException], ...]:
    pyarrow = optional("pyarrow")
    return (pyarrow.ArrowException, OSError)


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
    kind = _format(Path(parts[0].path).suffix.lower())
    if kind != "duckdb" and (table is not None or query is not None):
        raise StairError("table= and query= are for a database file, but these are none")
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
        relation = _relation(con, kind or "", parts, table, query, name, duckdb.Error, select)
        yield Stream(con, relation, parts, name, duckdb.Error)
    finally:
        con.close()


def _relation(
    con: Any,
    kind: str,
    parts: list[Part],
    table: str | None,
    query: str | None,
    name: str,
    errors: type[BaseException],
    select: Any,
) -> str:
    listed = ", ".join("'" + glob.escape(p.path).replace("'", "''") + "'" for p in parts)
    try:
        if kind == "parquet":
            _check_schemas(con, parts)
            return f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"
        if kind == "csv":
            gone = ", ".join("'" + token.replace("'", "''") + "'" for token in sorted(MISSING))
            return (
                f"SELECT * FROM read_csv([{listed}], nullstr = [{gone}], header = true, "
                f"hive_partitioning = false, sample_size = {SAMPLED_LINES})"
            )
        if query is not None:
            if [s.type for s in con.extract_statements(query)] != [select]:
                raise StairError("query= must be a single SELECT; got something else.")
            return query.strip().rstrip(";")
        rows = con.execute(
            "SELECT table_schema, table_name, table_type = 'BASE TABLE' "
            "FROM information_schema.tables ORDER BY 1, 2"
        ).fetchall()
        there = {n if s == "main" else f"{s}.{n}": (s, n, base) for s, n, base in rows}
        chosen = choose_table(name, {k: v[2] for k, v in there.items()}, table)
        return f"SELECT * FROM {quoted(there[chosen][0])}.{quoted(there[chosen][1])}"
    except errors as error:
        raise StairError(f"cannot read {name}, it may be damaged: {reason(error)}.") from error


def _check_schemas(con: Any, parts: list[Part]) -> None:
    """All files must have the same columns of the same types as the first one."""
    first: dict[str, str] | None = None
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
        schema = {row[0]: row[1] for row in rows}
        if first is None:
            first = schema
            continue
        odd = sorted(set(first) ^ set(schema))
        if odd:
            who = "has" if odd[0] in schema else "lacks"
            raise StairError(
                f'{part.name} {who} a column "{odd[0]}" that {parts[0].name} '
                f"{'lacks' if who == 'has' else 'has'}; expected the same columns in all files."
            )
        for name, kind in first.items():
            if schema[name] != kind:
                raise StairError(
                    f'"{name}" is {kind} in {parts[0].name} but {schema[name]} in {part.name}; '
                    "expected the same types in all files."
                )
