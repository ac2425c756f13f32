"""Every ending that labels rows, run for real on a table such as its user would have."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz.case import Table
from fuzz.containers import (
    NoSuchTableError,
    as_arrow,
    as_pandas,
    as_polars,
    check_names,
    check_parquet,
    quoted,
    sqlite_table,
)
from fuzz.library import Answer, Rulebook


@dataclass(slots=True)
class Target:
    """An ending: `export` gives code, `table` the table of a user, `run` the labels of its rows."""

    name: str
    folder: Path

    def export(self, saved: Rulebook) -> Any:
        raise NotImplementedError

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        """The table as this ending wants it."""
        raise NotImplementedError

    def run(self, exported: Any, table: Any) -> Answer:
        raise NotImplementedError

    def really(self, table: Any) -> Any:
        """What is in that table, so that the rules can be asked about the same."""
        return table

    def close(self) -> None:
        return


def _unique(table: Table) -> None:
    if len(set(table.names)) < len(table.columns):
        raise NoSuchTableError("two columns have one name")


def _namespace(source: str, name: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": name}
    exec(compile(source, f"<{name}>", "exec"), space)
    return space


class PythonTarget(Target):
    def export(self, saved: Rulebook) -> Any:
        return _namespace(saved.to_python(), "exported_python")

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        _unique(table)
        yield {c.name: list(c.values) for c in table.columns}

    def run(self, exported: Any, table: Any) -> Answer:
        rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        numbers = [exported["rule_number"](row) for row in rows]
        return [exported["label"](row) for row in rows], numbers


class PandasTarget(Target):
    def export(self, saved: Rulebook) -> Any:
        return _namespace(saved.to_pandas(), "exported_pandas")

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        _unique(table)
        yield as_pandas(table)

    def run(self, exported: Any, table: Any) -> Answer:
        return exported["label"](table).tolist(), exported["rule_number"](table).tolist()


class PolarsTarget(Target):
    def export(self, saved: Rulebook) -> Any:
        return _namespace(saved.to_polars(), "exported_polars")

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        yield as_polars(table)

    def run(self, exported: Any, table: Any) -> Answer:
        columns = {"a label": exported["LABEL"], "a number": exported["RULE_NUMBER"]}
        found = table.with_columns(**columns)
        return found["a label"].to_list(), found["a number"].to_list()


class OnnxTarget(Target):
    def export(self, saved: Rulebook) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        model = saved.to_onnx()
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return saved, session

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        yield as_polars(table)

    def run(self, exported: Any, table: Any) -> Answer:
        saved, session = exported
        labels, numbers = session.run(None, saved.onnx_inputs(table))[:2]
        return labels.tolist(), numbers.tolist()


class DuckdbTarget(Target):
    """In a table, or over a Parquet file, as `parquet` says."""

    parquet = False

    def export(self, saved: Rulebook) -> Any:
        return saved.to_sql("data", dialect="duckdb")

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        import duckdb

        check_names(table)
        arrow = as_arrow(table)
        with duckdb.connect(config={"threads": 1}) as connection:
            if self.parquet:
                import pyarrow.parquet as pq

                check_parquet(table)
                path = self.folder / "target.parquet"
                pq.write_table(arrow, path)
                # Older Arrow writes clocks as those of UTC: DuckDB wants a cast then.
                said = connection.execute(f"DESCRIBE FROM read_parquet('{path}')").fetchall()
                names = [quoted(name) for name, kind, *_ in said if kind == "TIME WITH TIME ZONE"]
                casts = ", ".join(f"CAST({name} AS TIME) AS {name}" for name in names)
                columns = f"* REPLACE ({casts})" if casts else "*"
                connection.execute(
                    f"CREATE VIEW data AS SELECT {columns} FROM read_parquet('{path}')"
                )
            else:
                connection.register("given", arrow)
                connection.execute("CREATE TABLE data AS SELECT * FROM given")
            yield connection

    def run(self, exported: Any, table: Any) -> Answer:
        found = table.sql(exported).to_arrow_table()
        at = place_of_numbers(found.column_names)
        labels, numbers = found.column(at - 1).to_pylist(), found.column(at).to_pylist()
        return labels, [number or 0 for number in numbers]

    def really(self, table: Any) -> Any:
        return table.sql("SELECT * FROM data").to_arrow_table()


class ParquetTarget(DuckdbTarget):
    parquet = True


class SqliteTarget(Target):
    def export(self, saved: Rulebook) -> Any:
        return saved.to_sql("data", dialect="sqlite")

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        connection = sqlite3.connect(":memory:")
        try:
            sqlite_table(table, connection)
            yield connection, table.names
        finally:
            connection.close()

    def run(self, exported: Any, table: Any) -> Answer:
        found = table[0].execute(exported)
        return _ours([column[0] for column in found.description], found.fetchall())

    def really(self, table: Any) -> Any:
        connection, names = table
        return _by_name(names, connection.execute("SELECT * FROM data").fetchall())


POSTGRES_TYPES = {
    "real": "double precision", "whole": "bigint", "decimal": "numeric(38, 2)", "flag": "boolean",
    "text": "text", "date": "date", "naive": "timestamp", "zoned": "timestamptz", "clock": "time",
    "duration": "interval", "list": "bigint[]", "struct": "text", "binary": "bytea",
}  # fmt: skip


@dataclass(slots=True)
class PostgresTarget(Target):
    dsn: str = ""
    _connection: Any = field(default=None)

    def export(self, saved: Rulebook) -> Any:
        return saved.to_sql("data", dialect="postgres")

    @contextmanager
    def table(self, table: Table) -> Iterator[Any]:
        import psycopg

        self._check(table)
        if self._connection is None:
            self._connection = psycopg.connect(self.dsn, autocommit=True)
        connection = self._connection
        zones = [c.zone for c in table.columns if c.type == "zoned"]
        with connection.transaction(force_rollback=True):
            cursor = psycopg.ClientCursor(connection)
            cursor.execute("SET LOCAL statement_timeout TO '15s'")
            cursor.execute(f"SET LOCAL timezone TO '{zones[0] if zones else 'Europe/Berlin'}'")
            columns = [f"{quoted(c.name)} {self._type(c)}" for c in table.columns]
            cursor.execute(f"CREATE TEMP TABLE data ({', '.join(columns)})".encode())
            with cursor.copy(b"COPY data FROM STDIN") as copy:
                for row in zip(*(c.values for c in table.columns), strict=True):
                    copy.write_row([self._plain(v) for v in row])
            yield cursor, table.names

    def run(self, exported: Any, table: Any) -> Answer:
        with self._connection.transaction():  # an error must leave the table as it is
            table[0].execute(exported.encode())
            return _ours([column[0] for column in table[0].description], table[0].fetchall())

    def really(self, table: Any) -> Any:
        cursor, names = table
        cursor.execute(b"SELECT * FROM data")
        return _by_name(names, cursor.fetchall())

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    @staticmethod
    def _check(table: Table) -> None:
        check_names(table)
        if any(len(name.encode()) > 63 for name in table.names):
            raise NoSuchTableError("a name that PostgreSQL would cut off")
        if any(c.type == "mixed" for c in table.columns):
            raise NoSuchTableError("PostgreSQL has no columns of mixed values")
        if any("\0" in v for c in table.columns for v in c.values if isinstance(v, str)):
            raise NoSuchTableError("PostgreSQL has no texts with NUL")

    @staticmethod
    def _type(column: Any) -> str:
        large = column.type == "whole" and any(
            v is not None and not -(2**63) <= v < 2**63 for v in column.values
        )
        return "numeric(20)" if large else POSTGRES_TYPES[column.type]

    @staticmethod
    def _plain(value: Any) -> Any:
        return str(value) if isinstance(value, dict) else value


def place_of_numbers(names: Sequence[str]) -> int:
    """The last column that is ours, or the last but one: which exception took a row."""
    return max(k for k, name in enumerate(names) if name.startswith("stair_rule"))


def _ours(names: list[str], rows: list[tuple[Any, ...]]) -> Answer:
    """The label and the number that a query adds."""
    at = place_of_numbers(names)
    return [row[at - 1] for row in rows], [row[at] or 0 for row in rows]


def _by_name(names: list[str], rows: list[tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, Target]]:
    """All endings, or those that STAIR_FUZZ_TARGETS names (with commas between them); PostgreSQL
    where STAIR_TEST_POSTGRES names a server."""
    found: list[Target] = [
        PythonTarget("python", folder),
        PandasTarget("pandas", folder),
        PolarsTarget("polars", folder),
        OnnxTarget("onnx", folder),
        DuckdbTarget("duckdb", folder),
        ParquetTarget("duckdb on parquet", folder),
        SqliteTarget("sqlite", folder),
    ]
    dsn = os.environ.get("STAIR_TEST_POSTGRES")
    if dsn:
        found.append(PostgresTarget("postgres", folder, dsn))
    try:
        wanted = os.environ.get("STAIR_FUZZ_TARGETS")
        yield {t.name: t for t in found if wanted is None or t.name in wanted.split(",")}
    finally:
        for target in found:
            target.close()
