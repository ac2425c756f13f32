"""The same plain columns in everything that people hold tables in."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
import re
import sqlite3
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.case import NESTED, Column, Table


class NoSuchTableError(Exception):
    """This container cannot hold such a table, whatever the library does."""


# What a spreadsheet cannot hold.
_NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def built(table: Table, folder: Path, stem: str = "data") -> tuple[Any, dict[str, Any]]:
    """The table as what is given to the library, and what else must be said to read it."""
    kind = table.container
    if kind in ("sqlite", "duckdb"):
        path = folder / f"{stem}.{kind}"
        path.unlink(missing_ok=True)
        _DATABASES[kind](table, path)
        return path, {"table": "data"}
    if kind in _FILES:
        suffix, write = _FILES[kind]
        path = folder / f"{stem}.{suffix}"
        write(table, path)
        return path, {}
    return _OBJECTS[kind](table), {}


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


# --- in memory ------------------------------------------------------------------------------------


def as_dict(table: Table) -> dict[str, Any]:
    """Arrays where numpy has such a type, lists elsewhere."""
    _need_unique(table)
    return {column.name: _array_or_list(column) for column in table.columns}


def _array_or_list(column: Column) -> Any:
    values, full = list(column.values), not any(v is None for v in column.values)
    if column.form == 3:
        return values
    if column.type == "real" and (full or column.form == 0):
        return np.array([math.nan if v is None else v for v in values])
    if column.type == "whole" and full and values:
        if min(values) >= -(2**63) and max(values) < 2**63:
            return np.array(values, dtype=np.int64)
        if min(values) >= 0:
            return np.array(values, dtype=np.uint64)
    if column.type == "flag" and full:
        return np.array(values, dtype=bool)
    if column.type in ("date", "naive"):
        return np.array(["NaT" if v is None else v.isoformat() for v in values],
                        dtype="datetime64[us]")  # fmt: skip
    if column.type == "duration":
        unit = dt.timedelta(microseconds=1)
        return np.array(["NaT" if v is None else v // unit for v in values], dtype="m8[us]")
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def as_numpy(table: Table) -> Any:
    """A matrix of floats where that loses nothing, else of objects."""
    whole = [v for c in table.columns if c.type != "real" for v in c.values]
    exact = all(v is not None and abs(v) <= 2**53 for v in whole)
    if exact and all(c.type != "flag" for c in table.columns):
        columns = [[math.nan if v is None else v for v in c.values] for c in table.columns]
        return np.array(columns, dtype=np.float64).T
    matrix = np.empty((table.n_rows, len(table.columns)), dtype=object)
    for j, column in enumerate(table.columns):
        matrix[:, j] = list(column.values)
    return matrix


def as_pandas(table: Table) -> Any:
    import pandas as pd

    frame = pd.concat([_series(column) for column in table.columns], axis=1)
    frame.columns = table.names
    return frame


def _series(column: Column) -> Any:
    import pandas as pd

    values, kind = list(column.values), column.type
    full = not any(v is None for v in values)
    if column.form == 3 and kind != "mixed":
        try:
            array = arrow_array(column)
            return pd.Series(pd.arrays.ArrowExtensionArray(array))
        except (NotImplementedError, TypeError):
            pass
    if kind == "real" and column.form != 2:
        floats = [math.nan if v is None else v for v in values]
        return pd.Series(floats, dtype="Float64" if column.form == 1 else "float64")
    if kind == "whole" and column.form != 2:
        small = all(v is None or -(2**63) <= v < 2**63 for v in values)
        if column.form == 1:
            if not small and any(v is not None and v < 0 for v in values):
                return pd.Series(values, dtype=object)
            # Not from the list: numpy makes doubles of 0 beside 2**63, before pandas sees them.
            known = np.array([v or 0 for v in values], dtype="int64" if small else "uint64")
            return pd.Series(pd.arrays.IntegerArray(known, np.array([v is None for v in values])))
        if full and values and (small or min(values) >= 0):
            return pd.Series(values, dtype="int64" if small else "uint64")
        if all(v is None or abs(v) <= 2**53 for v in values):
            return pd.Series([math.nan if v is None else v for v in values], dtype="float64")
    if kind == "flag" and column.form != 2 and (full or column.form == 1):
        return pd.Series(values, dtype="boolean" if column.form == 1 else "bool")
    if kind == "text" and column.form in (0, 1):
        return pd.Series(values, dtype="category" if column.form == 0 else "string")
    if kind in ("date", "naive") and column.form != 2:
        return pd.Series(np.array(["NaT" if v is None else v.isoformat() for v in values],
                                  dtype="datetime64[us]"))  # fmt: skip
    if kind == "zoned" and column.form != 2:
        utc = [None if v is None else v.astimezone(dt.UTC).replace(tzinfo=None) for v in values]
        plain = np.array(["NaT" if v is None else v.isoformat() for v in utc], dtype="M8[us]")
        return pd.Series(plain).dt.tz_localize("UTC").dt.tz_convert(column.zone)
    if kind == "duration" and column.form != 2:
        unit = dt.timedelta(microseconds=1)
        return pd.Series(np.array(["NaT" if v is None else v // unit for v in values],
                                  dtype="m8[us]"))  # fmt: skip
    return pd.Series(values, dtype=object)


def as_polars(table: Table) -> Any:
    import polars as pl

    _need_unique(table)
    return pl.DataFrame([_polars_series(column) for column in table.columns])


def _polars_series(column: Column) -> Any:
    import polars as pl

    values: Sequence[Any] = column.values
    if column.type == "mixed":
        return pl.Series(column.name, list(values), dtype=pl.Object)
    if column.type == "zoned":
        utc = [None if v is None else v.astimezone(dt.UTC) for v in values]
        series = pl.Series(column.name, utc, dtype=pl.Datetime("us", "UTC"))
        return series.dt.convert_time_zone(column.zone)
    dtypes: dict[str, Any] = {
        "real": pl.Float64, "whole": _polars_whole(column), "flag": pl.Boolean, "text": pl.String,
        "decimal": pl.Decimal(38, 2), "date": pl.Date, "naive": pl.Datetime("us"),
        "clock": pl.Time, "duration": pl.Duration("us"), "list": pl.List(pl.Int64),
        "struct": pl.Struct({"k": pl.Int64, "w": pl.String}), "binary": pl.Binary,
    }  # fmt: skip
    series = pl.Series(column.name, list(values), dtype=dtypes[column.type])
    if column.type == "text" and column.form == 0:
        return series.cast(pl.Categorical)
    if column.type == "text" and column.form == 1:
        return series.cast(pl.Enum(series.drop_nulls().unique().sort()))
    return series


def _polars_whole(column: Column) -> Any:
    import polars as pl

    seen = [v for v in column.values if v is not None and column.type == "whole"]
    if seen and max(seen) >= 2**63:
        return pl.UInt64 if min(seen) >= 0 else pl.Int128
    return pl.Int64


def as_arrow(table: Table) -> Any:
    import pyarrow as pa

    arrays = [arrow_array(column) for column in table.columns]
    return pa.Table.from_arrays(
        [
            a.dictionary_encode() if c.form == 0 and c.type in ("text", "whole") else a
            for a, c in zip(arrays, table.columns, strict=True)
        ],
        names=table.names,
    )


def arrow_array(column: Column) -> Any:
    import pyarrow as pa

    if column.type == "mixed":
        raise NoSuchTableError("Arrow has no columns of mixed values")
    seen = [v for v in column.values if v is not None]
    whole: Any = pa.int64()
    if column.type == "whole" and seen and max(seen) >= 2**63:
        whole = pa.uint64() if min(seen) >= 0 else pa.decimal128(38, 0)
    types: dict[str, Any] = {
        "real": pa.float64(), "whole": whole, "flag": pa.bool_(), "text": pa.string(),
        "decimal": pa.decimal128(38, 2), "date": pa.date32(), "naive": pa.timestamp("us"),
        "zoned": pa.timestamp("us", column.zone), "clock": pa.time64("us"),
        "duration": pa.duration("us"), "list": pa.list_(pa.int64()),
        "struct": pa.struct({"k": pa.int64(), "w": pa.string()}), "binary": pa.binary(),
    }  # fmt: skip
    values: list[Any] = list(column.values)
    if whole == pa.decimal128(38, 0) and column.type == "whole":
        values = [None if v is None else Decimal(v) for v in values]
    if column.type == "decimal":
        values = [None if v is None else v.quantize(Decimal("0.01")) for v in values]
    return pa.array(values, type=types[column.type])


def _need_unique(table: Table) -> None:
    if len(set(table.names)) < len(table.columns):
        raise NoSuchTableError("two columns have one name")


def check_names(table: Table) -> None:
    """Databases do not tell names apart by their case."""
    if len({name.lower() for name in table.names}) < len(table.columns):
        raise NoSuchTableError("names differ in case only")
    if any("\0" in name or not name for name in table.names):
        raise NoSuchTableError("a name that no database can have")


# --- files ----------------------------------------------------------------------------------------


def cell(column: Column, value: Any) -> str:
    """A value as it stands in a text file."""
    if is_missing(value):
        return ""
    if column.type == "real":
        return repr(value)
    if column.type == "flag" and column.form % 2:
        return str(value).lower()
    if column.type in ("naive", "zoned") and column.form % 2:
        return str(value.isoformat())
    return str(value)


def _write_csv(table: Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.names)
        for row in zip(*(c.values for c in table.columns), strict=True):
            writer.writerow([cell(c, v) for c, v in zip(table.columns, row, strict=True)])


def _write_jsonl(table: Table, path: Path) -> None:
    def plain(column: Column, value: Any) -> Any:
        if is_missing(value):
            return None
        if column.type in ("real", "whole", "flag", "text"):
            return value
        if column.type == "decimal":
            return float(value)
        return cell(column, value)

    with path.open("w", encoding="utf-8") as file:
        for row in zip(*(c.values for c in table.columns), strict=True):
            found = {c.name: plain(c, v) for c, v in zip(table.columns, row, strict=True)}
            file.write(json.dumps(found) + "\n")


def check_parquet(table: Table) -> None:
    """A duration is a whole number in Parquet, and only Arrow knows that it was one."""
    if any(column.type == "duration" for column in table.columns):
        raise NoSuchTableError("Parquet has no durations")


def _write_parquet(table: Table, path: Path) -> None:
    import pyarrow.parquet as pq

    check_parquet(table)
    pq.write_table(as_arrow(table), path)


def _write_excel(table: Table, path: Path) -> None:
    import openpyxl

    def plain(column: Column, value: Any) -> Any:
        if is_missing(value):
            return None
        if column.type in ("zoned", "text", "duration") or column.type in NESTED:
            return _NOT_IN_XML.sub("?", cell(column, value))[:30000]
        if column.type in ("date", "naive") and value.year < 1901:
            return str(value)
        return float(value) if isinstance(value, Decimal) else value

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append([_NOT_IN_XML.sub("?", name) for name in table.names])
    for row in zip(*(c.values for c in table.columns), strict=True):
        sheet.append([plain(c, v) for c, v in zip(table.columns, row, strict=True)])
    book.save(path)


# --- databases ------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


SQLITE_TYPES = {
    "real": "REAL", "whole": "INTEGER", "decimal": "NUMERIC", "flag": "BOOLEAN", "text": "TEXT",
    "date": "TEXT", "naive": "TEXT", "zoned": "TEXT", "clock": "TEXT", "duration": "REAL",
    "list": "TEXT", "struct": "TEXT", "binary": "BLOB", "mixed": "",
}  # fmt: skip


def sqlite_table(table: Table, connection: sqlite3.Connection) -> None:
    """SQLite has numbers, texts and bytes; times are texts there, and flags numbers."""
    check_names(table)

    def plain(column: Column, value: Any) -> Any:
        if is_missing(value):
            return None
        if column.type == "whole":
            return value if -(2**63) <= value < 2**63 else str(value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise NoSuchTableError("SQLite has no whole numbers beyond 64 bits beside others")
        if column.type == "duration":
            return value.total_seconds()
        if column.type == "decimal":
            return str(value)
        if column.type in ("real", "flag", "text", "binary", "mixed"):
            return value
        return cell(column, value)

    columns = [f"{quoted(c.name)} {SQLITE_TYPES[c.type]}" for c in table.columns]
    connection.execute(f"CREATE TABLE data ({', '.join(columns)})")
    marks = ", ".join(["?"] * len(columns))
    connection.executemany(
        f"INSERT INTO data VALUES ({marks})",
        [
            [plain(c, v) for c, v in zip(table.columns, row, strict=True)]
            for row in zip(*(c.values for c in table.columns), strict=True)
        ],
    )


def _sqlite_file(table: Table, path: Path) -> None:
    connection = sqlite3.connect(path)
    try:
        sqlite_table(table, connection)
        connection.commit()
    finally:
        connection.close()


def _duckdb_file(table: Table, path: Path) -> None:
    import duckdb

    check_names(table)
    arrow = as_arrow(table)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", arrow)
        connection.execute("CREATE TABLE data AS SELECT * FROM given")


_OBJECTS: dict[str, Any] = {
    "dict": as_dict,
    "numpy": as_numpy,
    "pandas": as_pandas,
    "polars": as_polars,
    "arrow": as_arrow,
}
_FILES: dict[str, tuple[str, Any]] = {
    "csv": ("csv", _write_csv),
    "jsonl": ("jsonl", _write_jsonl),
    "parquet": ("parquet", _write_parquet),
    "excel": ("xlsx", _write_excel),
}
_DATABASES: dict[str, Any] = {"sqlite": _sqlite_file, "duckdb": _duckdb_file}
