"""Parquet files, and DuckDB's and SQLite's databases: opened for reading only."""

from __future__ import annotations

import contextlib
import glob
import re
import sqlite3
import urllib.parse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from stair.data.arrays import arrow_columns, described, from_array, from_values
from stair.data.frame import EPOCH_UNIT, Array, Loaded, Opened, Parts, Value, unique_names
from stair.data.packages import (
    NO_EXTENSIONS,
    Foreign,
    duckdb_in_memory,
    library_in_words,
    optional,
    quoted,
    reason,
)
from stair.data.values import dated, join_pieces, typed
from stair.data.witnesses import typed_batches
from stair.data.zones import UTC, known_zone, was_in, zone_of
from stair.errors import StairError, did_you_mean, folded, option

if TYPE_CHECKING:
    import duckdb

# Parquet -----------------------------------------------------------------------------------------

PARQUET = frozenset({".parquet", ".pq"})


def open_parquet(path: Path, start: bytes, stack: contextlib.ExitStack) -> Opened:
    if not start.startswith(b"PAR1"):
        raise StairError(f"{path.name} is not a Parquet file; check its ending, or write it again.")
    duckdb = optional("duckdb")
    if duckdb is not None:
        con = stack.enter_context(duckdb_in_memory(duckdb))
        stack.enter_context(library_in_words(path.name, duckdb.Error))
        place = [glob.escape(str(path.resolve()))]
        relation = "SELECT * FROM read_parquet(?, hive_partitioning = false)"
        types = [row[1] for row in con.execute(f"DESCRIBE {relation}", place).fetchall()]
        names = parquet_names(con, place)
        zones = parquet_zones(path)
        notes = [] if optional("pyarrow.parquet") else _notes_without_zones(types)
        of_parquet = partial(_parquet_batches, path)
        load_all, rows_of, batches = _duckdb_loaders(con, relation, place, types, zones)
        if optional("pyarrow.parquet") is not None:
            batches = of_parquet
        return Opened(names, load_all, rows_of, notes, batches=batches)
    parquet = optional("pyarrow.parquet")
    if parquet is None:
        raise StairError(
            f"{path.name} is a Parquet file, which needs an extra package: "
            f"pip install 'stair[files]'."
        )
    pyarrow = import_module("pyarrow")
    stack.enter_context(library_in_words(path.name, pyarrow.ArrowException, OSError))
    file = stack.enter_context(parquet.ParquetFile(path))
    names = list(file.schema_arrow.names)

    def load(places: list[int]) -> list[Loaded]:
        if len(set(names)) < len(names):
            table = file.read()
            return arrow_columns(table.select(places))
        # A name also selects the columns whose names begin with it and a dot.
        return arrow_columns(
            file.read([names[i] for i in places]).select([names[i] for i in places])
        )

    def rows() -> Iterator[Sequence[object]]:
        for batch in file.iter_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    return Opened(names, load, rows, batches=partial(_parquet_batches, path))


def _parquet_batches(path: Path, places: list[int], at_once: int) -> Parts:
    errors = import_module("pyarrow").ArrowException, OSError
    with library_in_words(path.name, *errors):
        file = parquet_file(path)
    names = list(file.schema_arrow.names)
    chosen = [names[i] for i in places] if len(set(names)) == len(names) else None

    def parts() -> Iterator[list[Loaded]]:
        table_of = import_module("pyarrow").Table.from_batches
        with library_in_words(path.name, *errors), file:
            for batch in parquet_batches(file, at_once, chosen):
                # A name also selects the columns whose names begin with it and a dot.
                yield arrow_columns(table_of([batch]).select(chosen or places))

    return file.metadata.num_rows, parts()


LARGE_GROUP: Final = 16 << 20  # bytes of a row group that is not to be held as a whole


def parquet_file(path: Path) -> Foreign:
    """A Parquet file to be read in batches."""
    open_file = import_module("pyarrow.parquet").ParquetFile
    file = open_file(path)
    about = file.metadata
    groups = (about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    if max(groups, default=0) <= LARGE_GROUP:
        return file
    file.close()
    return open_file(path, buffer_size=1 << 18, pre_buffer=False)


BATCH_BYTES: Final = 32 << 20
MOST_VALUES: Final = 1_000_000  # of Python's, in a batch


def parquet_batches(
    file: Foreign, at_once: int, names: list[str] | None = None
) -> Iterator[Foreign]:
    """Record batches of so many rows, fewer where rows are wide; none is of two row groups."""
    about = file.metadata
    for group in range(about.num_row_groups):
        here = about.row_group(group)
        a_row = max(here.total_byte_size / max(here.num_rows, 1), 8 * about.num_columns)
        n_rows = max(1, min(at_once, int(BATCH_BYTES / a_row)))
        yield from file.iter_batches(n_rows, row_groups=[group], columns=names)


def parquet_zones(path: Path) -> dict[int, str]:
    """The zones of columns by their place. They are in what Arrow has written beside the table,
    which DuckDB does not read; without pyarrow they are not known, and are UTC then."""
    parquet = optional("pyarrow.parquet")
    if parquet is None:
        return {}
    try:
        fields = list(parquet.read_schema(path))
    except (import_module("pyarrow").ArrowException, OSError):  # whoever reads it says why
        return {}
    found = {i: known_zone(getattr(each.type, "tz", None)) for i, each in enumerate(fields)}
    return {i: zone for i, zone in found.items() if zone is not None}


def _notes_without_zones(types: Sequence[str]) -> list[str]:
    if not any(sql_shape(each)[0] == "zoned" for each in types):
        return []
    return ["of which zone times in Parquet are is not known without pyarrow, so that their hours "
            "and weekdays are in UTC: pip install 'stair[files]'"]  # fmt: skip


def parquet_names(con: duckdb.DuckDBPyConnection, place: list[str]) -> list[str]:
    """The names as they are in the file: DuckDB itself renames those that differ only in case."""
    rows = con.execute("SELECT name, num_children FROM parquet_schema(?)", place).fetchall()
    names: list[str] = []
    below = 0  # how many nodes of the current column are still to come
    for name, children in rows[1:]:
        if below == 0:
            names.append(name)
            below = 1
        below += (children or 0) - 1
    return names


# Columns that DuckDB delivers --------------------------------------------------------------------


def _duckdb_loaders(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    given: list[str],
    types: list[str],
    zones: Mapping[int, str] | None = None,
) -> tuple[
    Callable[[list[int]], list[Loaded]],
    Callable[[], Iterator[Sequence[object]]],
    Callable[[list[int], int], Parts] | None,
]:
    """Load columns of a query by their place, because names need not be unique; its rows; and its
    columns in batches."""
    alias = ", ".join(f"c{i}" for i in range(len(types)))
    named = f"FROM ({relation}\n) AS t({alias})"

    def asked(places: list[int]) -> tuple[list[str], str]:
        """What columns become, and the query for them."""
        shapes = {i: sql_shape(types[i]) for i in places}
        shapes |= {i: ("map", "{0}") for i in places if re.fullmatch(r"MAP\(.*\)", types[i], re.S)}
        select = ", ".join(f"{sql.format(f'c{i}')} AS c{i}" for i, (_, sql) in shapes.items())
        return [kind for kind, _ in shapes.values()], f"SELECT {select} {named}"

    def in_zones(places: list[int], loaded: Sequence[Loaded]) -> list[Loaded]:
        return [
            (array, was_in((zones or {}).get(i, UTC)) if zone_of(was) else was)
            for i, (array, was) in zip(places, loaded, strict=True)
        ]

    def load(places: list[int]) -> list[Loaded]:
        kinds, query = asked(places)
        arrays = con.execute(query, given).fetchnumpy()
        pairs = zip(places, kinds, strict=True)
        return in_zones(places, [_from_masked(kind, arrays.pop(f"c{i}")) for i, kind in pairs])

    def batches(places: list[int], at_once: int) -> Parts:
        kinds, query = asked(places)
        n_rows = con.execute(f"SELECT count(*) {named}", given).fetchall()[0][0]
        own = con.cursor()  # the rows are asked for at the same time

        def parts() -> Iterator[list[Loaded]]:
            found = own.sql(query, params=given)
            for batch in arrow_reader(found, at_once):
                pairs = zip(kinds, batch.columns, strict=True)
                yield in_zones(places, [_from_masked(kind, _masked(a)) for kind, a in pairs])

        return n_rows, parts()

    def rows() -> Iterator[Sequence[object]]:
        select = ", ".join(_exact_sql(t).format(f"c{i}") for i, t in enumerate(types))
        found = con.execute(f"SELECT {select} {named}", given)
        while block := found.fetchmany(10_000):
            yield from block

    return load, rows, batches if optional("pyarrow") is not None else None


def arrow_reader(found: Foreign, at_once: int) -> Foreign:
    """The record batches of a query, under its new name or an old one: that of a connection, or
    that of a relation."""
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    reader = next(each for each in (getattr(found, name, None) for name in names) if each)
    return reader(at_once)


def _exact_sql(declared: str) -> str:
    """An expression for a DuckDB type that Python gets without a loss; else its text."""
    numbers = r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)"
    if re.fullmatch(rf"{numbers}|BOOLEAN|VARCHAR|DATE|TIMESTAMP|TIME", declared):
        return "{0}"
    if sql_shape(declared)[0] == "zoned":
        return "CAST(make_timestamp(epoch_us({0})) AS VARCHAR) || '+00:00'"
    return "CAST({0} AS VARCHAR)"


def exact_batches(
    con: duckdb.DuckDBPyConnection,
    relation: str,
    types: Sequence[str],
    at_once: int,
    is_for_duckdb: bool,
) -> Iterator[Foreign]:
    """The rows of a query as Arrow's record batches, without a loss: for a DuckDB again of the same
    types, else of those that other files have too."""
    alias = ", ".join(f"c{i}" for i in range(len(types)))
    at_once = max(1, min(at_once, BATCH_BYTES // (8 * len(types))))
    own = con.cursor()
    own.execute(f"SET arrow_lossless_conversion = {str(is_for_duckdb).lower()}")
    exact = ["{0}" if is_for_duckdb else _arrow_sql(t) for t in types]
    select = ", ".join(sql.format(f"c{i}") + f" AS c{i}" for i, sql in enumerate(exact))
    found = own.sql(f"SELECT {select} FROM ({relation}\n) AS t({alias})")
    yield from arrow_reader(found, at_once)


def _arrow_sql(declared: str) -> str:
    """As `_exact_sql`; instants stay what they are, and whole numbers that Arrow lacks are text."""
    if sql_shape(declared)[0] == "zoned":
        return "{0}"
    return "CAST({0} AS VARCHAR)" if declared in ("HUGEINT", "UHUGEINT") else _exact_sql(declared)


# Rounded step by step as elsewhere: 04:38 is one category, wherever it is read.
_HOURS = (
    "date_part('hour', {0}) + date_part('minute', {0}) / 60"
    " + (date_part('second', {0}) + date_part('microsecond', {0}) % 1000000 / 1e6) / 3600"
)
_SQL_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), ("int", "CAST({0} AS BIGINT)")),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), ("int", "CAST({0} AS BIGINT)")),
    "UBIGINT": ("int", "{0}"),
    "HUGEINT": ("wide", "CAST({0} AS VARCHAR)"),
    "UHUGEINT": ("wide", "CAST({0} AS VARCHAR)"),
    "BIGNUM": ("wide", "CAST({0} AS VARCHAR)"),
    "FLOAT": ("float", "CAST({0} AS DOUBLE)"),
    "DOUBLE": ("float", "{0}"),
    "BOOLEAN": ("bool", "{0}"),
    "TIME": ("clock", _HOURS),
    "TIME_NS": ("clock", _HOURS.format("CAST({0} AS TIME)")),
    "TIME WITH TIME ZONE": ("clock", _HOURS),
    "INTERVAL": ("duration", "epoch_us({0}) / 1e6"),
    '"NULL"': ("float", "CAST({0} AS DOUBLE)"),
}
_MICROSECONDS = "CASE WHEN isfinite({0}) THEN epoch_us({0}) END"


def sql_shape(declared: str) -> tuple[str, str]:
    """What a column of a DuckDB type becomes, and the expression that makes it so."""
    if declared in _SQL_KINDS:
        return _SQL_KINDS[declared]
    if decimal := re.fullmatch(r"DECIMAL\(([0-9]+),([0-9]+)\)", declared):
        digits, behind = int(decimal[1]), int(decimal[2])
        if digits <= 15:  # rounded once, and correctly
            return "float", "CAST({0} AS DOUBLE)"
        # With so many digits before the point, whole ones may be too large for a float.
        return "decimal" if behind and digits - behind > 15 else "wide", "CAST({0} AS VARCHAR)"
    if re.fullmatch(r"DATE|TIMESTAMP(_[A-Z]+)?", declared):
        return "date", _MICROSECONDS.format("TRY_CAST({0} AS TIMESTAMP)")
    if re.fullmatch(r"TIMESTAMP(_[A-Z]+)? WITH TIME ZONE|TIMESTAMPTZ(_[A-Z]+)?", declared):
        return "zoned", _MICROSECONDS.format("TRY_CAST({0} AS TIMESTAMPTZ)")
    if re.fullmatch(r"BLOB|.*\]|(STRUCT|MAP|UNION)\(.*", declared, re.DOTALL):
        return "described", "{0}"  # lists, records, maps, unions
    return "text", "CAST({0} AS VARCHAR)"


def _masked(array: Foreign) -> Array:
    """A column that Arrow delivers as DuckDB delivers it to numpy."""
    absent = array.is_null().to_numpy(zero_copy_only=False)
    types = import_module("pyarrow").types
    if types.is_primitive(array.type) and not types.is_temporal(array.type):
        known = array.fill_null(False if types.is_boolean(array.type) else 0)
        return np.ma.array(known.to_numpy(zero_copy_only=False), mask=absent)
    listed = np.empty(len(array), dtype=object)
    listed[:] = array.to_pylist()
    return np.ma.array(listed, mask=absent)


def _from_masked(kind: str, values: Array) -> Loaded:
    """A column that DuckDB delivers, with a mask where values are missing."""
    absent = np.ma.getmaskarray(values)
    data = np.ma.getdata(values)
    if kind == "wide":
        texts = ["" if gone else v for v, gone in zip(data, absent, strict=True)]
        return cast(Loaded, join_pieces([typed(texts)]))
    if kind == "decimal":
        return decimals([None if gone else v for v, gone in zip(data, absent, strict=True)])
    if kind == "described":
        return described([None if gone else _as_python(v)
                          for v, gone in zip(data, absent, strict=True)])  # fmt: skip
    if kind == "map":  # as Arrow has them
        return described([None if gone else list(v.items())
                          for v, gone in zip(data, absent, strict=True)])  # fmt: skip
    if kind == "text" or (kind == "bool" and absent.any()):
        data = data.astype(object)
        data[absent] = None
        if kind == "bool" or absent.all():
            return from_values(data.tolist())
        return data, ""
    if kind in ("date", "zoned"):
        times = data.astype(np.int64).view(EPOCH_UNIT)
        times[absent] = np.datetime64("NaT", "us")
        return times, "zoned" if kind == "zoned" else ""
    column, _ = from_array("", np.ma.array(data, mask=absent))
    return column, kind if kind in ("clock", "duration") else ""


def _as_python(value: object) -> object:
    """A list as one, also within others: DuckDB delivers arrays, masked where there are gaps."""
    if isinstance(value, np.ndarray):
        return [_as_python(each) for each in value.tolist()]
    return value


def decimals(texts: Iterable[str | None]) -> Loaded:
    """Decimals with digits behind the point: exact where all are whole."""
    return from_values([None if text is None else Decimal(text) for text in texts])


# Databases ---------------------------------------------------------------------------------------


def open_database(
    path: Path,
    start: bytes,
    table: str | None,
    query: str | None,
    stack: contextlib.ExitStack,
    texts: Collection[str] = (),
) -> Opened:
    """The file's first bytes say whether it is DuckDB's or SQLite's; endings are used by both."""
    if start.startswith(b"SQLite format 3\0"):
        return _open_sqlite(path, start, table, query, stack, texts)
    if start[8:12] != b"DUCK":
        raise StairError(
            f"{path.name} is neither a DuckDB nor a SQLite database; check its ending."
        )
    duckdb = optional("duckdb")
    if duckdb is None:
        raise StairError(
            f"{path.name} is a DuckDB database, which needs an extra package: "
            f"pip install 'stair[files]'."
        )
    stack.enter_context(library_in_words(path.name, duckdb.Error))
    # Views and queries see this database only: no other file, no extension, no network.
    config = {**NO_EXTENSIONS, "enable_external_access": "false"}
    con = duckdb.connect(str(path.resolve()), read_only=True, config=config)
    stack.callback(con.close)
    con.execute("SET enable_progress_bar = false")
    if query is None:
        rows = con.execute(
            "SELECT schema_name, table_name, true FROM duckdb_tables() "
            "WHERE NOT internal AND database_name = current_database() UNION ALL "
            "SELECT schema_name, view_name, false FROM duckdb_views() "
            "WHERE NOT internal AND database_name = current_database() ORDER BY 1, 2"
        ).fetchall()
        there = {name if s == "main" else f"{s}.{name}": (s, name, base) for s, name, base in rows}
        chosen = choose_table(path.name, {k: v[2] for k, v in there.items()}, table)
        schema, name, _ = there[chosen]
        relation = f"SELECT * FROM {quoted(schema)}.{quoted(name)}"
        empty = f'has no rows in table "{chosen}"'
    else:
        stack.enter_context(_query_in_words(duckdb.Error))
        statements = con.extract_statements(query)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise StairError(f"{option('query')} must be a single SELECT; got something else.")
        relation, empty = query.strip().rstrip(";"), "has no rows for this query"
    described = con.execute(f"DESCRIBE {relation}").fetchall()
    if query is not None:
        con.execute("SET threads = 1")  # the rows of a query come in the same order each time
    types = [row[1] for row in described]
    load, values, batches = _duckdb_loaders(con, relation, [], types)
    return Opened(
        [row[0] for row in described], load, values, empty=empty, batches=batches,
        exact=partial(exact_batches, con, relation, types), types=tuple(types),
    )  # fmt: skip


@contextlib.contextmanager
def _query_in_words(*errors: type[BaseException]) -> Iterator[None]:
    try:
        yield
    except StairError:
        raise
    except errors as error:
        raise StairError(f"the query cannot be run: {reason(error)}.") from error


def choose_table(
    source: str, tables: Mapping[str, bool], table: str | None, noun: str = "table"
) -> str:
    """The table asked for, or the only one; `tables` says of each that it is more than a view."""
    names = list(tables)
    if not names:
        raise StairError(f"{source} has no {noun}s; expected at least one.")
    if table is None:
        for choice in ([n for n in names if tables[n]], names):
            if len(choice) == 1:
                return choice[0]
        raise StairError(
            f"{source} has {len(names)} {noun}s; choose one with {option('table')}: {folded(names)}"
        )
    if table in tables:
        return table
    alike = [name for name in names if name.casefold() == table.casefold()]
    if len(alike) == 1:
        return alike[0]
    raise StairError(
        f'no {noun} "{table}" in {source}.{did_you_mean(table, names)} '
        f"{noun.capitalize()}s: {folded(names)}"
    )


# SQLite ------------------------------------------------------------------------------------------

_SQLITE_ALLOWED = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)


def _open_sqlite(
    path: Path,
    start: bytes,
    table: str | None,
    query: str | None,
    stack: contextlib.ExitStack,
    texts: Collection[str],
) -> Opened:
    """SQLite by the standard library, for reading only: neither the file nor its folder changes."""
    place = path.resolve()
    uri = "file:" + urllib.parse.quote(place.as_posix()) + "?mode=ro"
    if start[18:20] == b"\x02\x02" and not place.with_name(place.name + "-wal").exists():
        uri += "&immutable=1"  # else SQLite leaves files beside one that keeps a log
    stack.enter_context(library_in_words(path.name, sqlite3.Error))
    con = sqlite3.connect(uri, uri=True)
    stack.callback(con.close)
    if query is None:
        rows = con.execute(
            "SELECT name, type = 'table' FROM sqlite_master "
            "WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        ).fetchall()
        chosen = choose_table(path.name, {name: bool(base) for name, base in rows}, table)
        empty = f'has no rows in table "{chosen}"'
        statement = f"SELECT * FROM {quoted(chosen)}"
    else:
        empty, statement = "has no rows for this query", query
        stack.enter_context(_query_in_words(sqlite3.Error, sqlite3.Warning))
    con.set_authorizer(
        lambda action, *_: sqlite3.SQLITE_OK if action in _SQLITE_ALLOWED else sqlite3.SQLITE_DENY
    )
    cursor = con.execute(statement)
    if cursor.description is None:
        raise StairError(f"{option('query')} must be a single SELECT; got something else.")
    names = [column[0] for column in cursor.description]
    known, _ = unique_names(names)

    def blocks(places: list[int], at_once: int) -> Iterator[list[Sequence[Value]]]:
        asked = statement
        if query is None and len(places) < len(names):
            asked = f"SELECT {', '.join(quoted(names[i]) for i in places)} FROM {quoted(chosen)}"
            places = list(range(len(places)))
        rows = con.execute(asked)
        while block := rows.fetchmany(at_once):
            columns = list(zip(*block, strict=True))
            yield [columns[i] for i in places]

    def load(places: list[int]) -> list[Loaded]:
        lists: list[list[Value]] = [[] for _ in places]
        for columns in blocks(places, 10_000):
            for values, more in zip(lists, columns, strict=True):
                values.extend(more)
        loaded = zip(map(from_values, lists), places, strict=True)
        return [dated(column, known[i] in texts) for column, i in loaded]

    def batches(places: list[int], at_once: int) -> Parts:
        fewer = max(1, min(at_once, MOST_VALUES // len(names)))
        return typed_batches(partial(blocks, places, fewer), [known[i] in texts for i in places])

    return Opened(names, load, lambda: iter(con.execute(statement)), empty=empty, batches=batches)
