"""Files out: all of one, or nothing."""

from __future__ import annotations

import contextlib
import csv
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from stair.errors import StairError
from stair.io.arrays import from_array
from stair.io.databases import PARQUET
from stair.io.frame import Array, Source
from stair.io.packages import duckdb_in_memory, library_in_words, optional, quoted, reason


def atomic_write(path: Source, data: str | bytes) -> None:
    """Write a file so that nobody ever sees half of it: beside it first, then in its place."""
    content = data.encode("utf-8") if isinstance(data, str) else data
    with _replacing(path) as beside, beside.open("wb") as file:
        file.write(content)
        _to_disk(file)


def _to_disk(file: IO[Any]) -> None:
    file.flush()
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # devices and pipes have no disk
        os.fsync(file.fileno())


@contextlib.contextmanager
def _replacing(path: Source) -> Iterator[Path]:
    """A fresh file beside the path that takes its place at the end, or vanishes on any failure."""
    try:
        target = Path(path).expanduser().resolve()
    except (TypeError, ValueError, RuntimeError):
        raise StairError(f"cannot write to {path!r}; expected the path of a file.") from None
    try:
        if target.is_dir():
            raise StairError(f'cannot write "{path}": it is a folder; expected the path of a file.')
        if not target.parent.is_dir():
            raise StairError(f'cannot write "{path}": there is no folder "{target.parent}".')
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode):  # a pipe or device stays where it is
            yield target
            return
        beside = target.with_name(f".stair-{secrets.token_hex(8)}.tmp")
        try:
            with beside.open("xb"):
                pass
            if mode is not None:
                beside.chmod(stat.S_IMODE(mode))
            yield beside
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except OSError as error:
        raise StairError(f'cannot write "{path}": {reason(error)}.') from error


def write_table(path: Source, columns: Mapping[str, Array]) -> None:
    """Write columns as CSV, or as Parquet where the path ends so; all of it or nothing.

    Missing values are empty fields, true and false are words, times are ISO: `read` gives back
    what was written, except that the text of a missing value ("NA") is missing when read.
    """
    table = {name: from_array(name, np.asarray(values))[0] for name, values in columns.items()}
    if len({len(values) for values in table.values()}) != 1:
        raise StairError("cannot write columns of different lengths, or none; check the table.")
    if Path(path).suffix.lower() in PARQUET:
        _write_parquet(path, table)
        return
    with _replacing(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        n_rows = len(next(iter(table.values())))
        _write_rows(file, [list(table)])
        for start in range(0, n_rows, 10_000):
            cells = [_cells(values[start : start + 10_000]) for values in table.values()]
            _write_rows(file, list(zip(*cells, strict=True)))
        _to_disk(file)


def _write_rows(file: IO[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows of cells, quoted where it is needed; all of them where one has a carriage return,
    which csv.writer leaves bare before Python 3.13 and readers then take for the end of a line."""
    bare = any(isinstance(cell, str) and "\r" in cell for row in rows for cell in row)
    if bare:
        csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    else:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _cells(values: Array) -> list[Any]:
    """Values as a CSV file holds them."""
    if values.dtype.kind == "f":
        return ["" if v != v else v for v in values.tolist()]
    if values.dtype.kind == "M":
        return ["" if v == "NaT" else v for v in np.datetime_as_string(values).tolist()]
    truth = {True: "true", False: "false"}
    return [truth[v] if isinstance(v, bool) else "" if v is None else v for v in values.tolist()]


def _write_parquet(path: Source, table: dict[str, Array]) -> None:
    duckdb, parquet = optional("duckdb"), optional("pyarrow.parquet")
    distinct = len({name.casefold() for name in table}) == len(table)
    if duckdb is not None and (distinct or parquet is None):
        if not distinct:
            raise StairError(
                f'cannot write "{path}": the names of two columns differ only in case; '
                f"rename one, or write .csv."
            )
        with _replacing(path) as beside, duckdb_in_memory(duckdb) as con:
            con.execute("SET pandas_analyze_sample = 0")  # objects are text, whatever comes first
            con.register("t", {f"c{i}": values for i, values in enumerate(table.values())})
            select = ", ".join(
                f"{_parquet_sql(i, values)} AS {quoted(name)}"
                for i, (name, values) in enumerate(table.items())
            )
            place = str(beside).replace("'", "''")
            with library_in_words(str(path), duckdb.Error):
                con.execute(f"COPY (SELECT {select} FROM t) TO '{place}' (FORMAT parquet)")
            with beside.open("rb+") as file:
                _to_disk(file)
        return
    if parquet is None:
        raise StairError(
            f"cannot write \"{path}\": Parquet needs an extra package: pip install 'stair[files]'."
        )
    pyarrow = import_module("pyarrow")
    arrays = [
        pyarrow.array(v, from_pandas=True, type=None if len(v) else pyarrow.string())
        for v in table.values()
    ]
    with _replacing(path) as beside, beside.open("wb") as file:
        parquet.write_table(pyarrow.table(arrays, names=list(table)), file)
        _to_disk(file)


def _parquet_sql(place: int, values: Array) -> str:
    truths = values.dtype == object and any(isinstance(v, bool) for v in values.tolist())
    return f"CAST(c{place} AS BOOLEAN)" if truths else f"c{place}"
