"""A table as it was, with columns of ours at its end, in a file that has types: Parquet, DuckDB.

The columns come as Arrow's record batches, whatever they are read from, and the types of a file or
a database stay what they are.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Final, TypeVar

from stair.data.databases import PARQUET, parquet_batches, parquet_file
from stair.data.frame import Array, Opened, Source
from stair.data.packages import NO_EXTENSIONS, Foreign, library_in_words, optional, quoted, reason
from stair.data.reading import AT_ONCE, TEXT, ending_of
from stair.data.values import as_text
from stair.data.writing import DUCKDB, parquet_of, replacing, replacing_at_once, to_disk, written_as
from stair.errors import StairError

TYPED: Final = PARQUET | DUCKDB

Row = TypeVar("Row")
Other = TypeVar("Other")


def paired(name: str, rows: Iterable[Row], own: Iterable[Other]) -> Iterator[tuple[Row, Other]]:
    """Each row with what is ours of it; the file must not have changed since it was read."""
    for row, more in zip_longest(rows, own):
        if row is None or more is None:
            raise StairError(f"{name} changed while it was read; run again.")
        yield row, more


def values_of(opened: Opened, was: str, ending: str) -> Generator[Sequence[object]]:
    """The rows as they are in the file. Text has no types: where the new file has, numbers and
    truths are what they were read as, and all else stays text."""
    if was not in TEXT or ending in TEXT:
        yield from opened.rows()
        return
    for texts, kept in _typed_rows(opened):
        for i, row in enumerate(texts):
            yield [t if v is None else v[i] for t, v in zip(row, kept, strict=True)]


def _typed_rows(
    opened: Opened,
) -> Iterator[tuple[list[Sequence[object]], list[list[object] | None]]]:
    """The rows of a text file, batch by batch, and those of its columns that have numbers or
    truths; None for others."""
    assert opened.batches is not None
    _, parts = opened.batches([*range(len(opened.names))], AT_ONCE)
    rows = opened.rows()
    for loaded in parts:
        texts = list(islice(rows, len(loaded[0][0])))
        yield texts, [a.tolist() if a.dtype.kind in "iufb" else None for a, _ in loaded]


def write_typed(
    path: Source,
    source: Path,
    opened: Opened,
    names: Sequence[str],
    added: Iterable[Mapping[str, Array]],
    table: str | None,
) -> None:
    """Write the rows with these columns as Parquet, or into a new DuckDB."""
    pyarrow = optional("pyarrow")
    if pyarrow is None:
        raise StairError(
            f"cannot write \"{path}\": it needs an extra package: pip install 'stair[files]'."
        )
    is_for_duckdb = written_as(path) in DUCKDB
    ours = (
        pyarrow.record_batch([_as_arrow(a) for a in each.values()], names=list(names))
        for each in added
    )
    with library_in_words(source.name, pyarrow.ArrowException):
        if ending_of(source) in PARQUET:
            with parquet_file(source) as file:
                batches = _joined(source.name, parquet_batches(file, AT_ONCE), ours)
                if is_for_duckdb:
                    _write_duckdb(path, opened, batches, table or source.stem, len(names))
                else:
                    _write_parquet(path, batches, _as_it_was(file, names))
            return
        batches = _joined(source.name, _batches(opened, source, is_for_duckdb), ours)
        if is_for_duckdb:
            _write_duckdb(path, opened, batches, table or source.stem, len(names))
        else:
            _write_parquet(path, batches, {})


def _as_arrow(array: Array) -> Foreign:
    return (
        parquet_of(array.tolist()) if array.dtype.kind == "O" else optional("pyarrow").array(array)
    )


def _batches(opened: Opened, source: Path, is_for_duckdb: bool) -> Iterator[Foreign]:
    """The rows of what is no Parquet."""
    pyarrow = optional("pyarrow")
    names = list(opened.names)
    if opened.exact is not None:
        for batch in opened.exact(AT_ONCE, is_for_duckdb):
            yield pyarrow.record_batch(batch.columns, names=names)
    elif ending_of(source) in TEXT:
        for texts, kept in _typed_rows(opened):
            arrays = [
                pyarrow.array(as_text([str(row[i]) for row in texts], None), pyarrow.string())
                if values is None
                else pyarrow.array(values, from_pandas=True)
                for i, values in enumerate(kept)
            ]
            yield pyarrow.record_batch(arrays, names=names)
    else:
        arrays = [parquet_of(list(values)) for values in zip(*opened.rows(), strict=True)]
        yield pyarrow.record_batch(arrays, names=names)


def _joined(name: str, batches: Iterator[Foreign], ours: Iterator[Foreign]) -> Iterator[Foreign]:
    """Record batches with the columns of both, as many rows at a time as the first ones have."""
    pyarrow = optional("pyarrow")
    table_of = pyarrow.Table.from_batches
    left: Foreign = None
    for batch in batches:
        while left is None or len(left) < len(batch):
            more = next(ours, None)
            if more is None:
                raise StairError(f"{name} changed while it was read; run again.")
            left = table_of([more] if left is None else [*left.to_batches(), more])
        (here,) = left.slice(0, len(batch)).combine_chunks().to_batches() or [None]
        left = left.slice(len(batch))
        if here is not None:
            schema = pyarrow.schema([*batch.schema, *here.schema], batch.schema.metadata)
            yield pyarrow.RecordBatch.from_arrays([*batch.columns, *here.columns], schema=schema)
    if (left is not None and len(left)) or next(ours, None) is not None:
        raise StairError(f"{name} changed while it was read; run again.")


def _as_it_was(file: Foreign, ours: Sequence[str]) -> dict[str, object]:
    """How a Parquet file was compressed, and which of its columns are worth a dictionary, as are
    ours."""
    about = file.metadata
    if not about.num_row_groups:
        return {}
    group = about.row_group(0)
    columns = [group.column(k) for k in range(about.num_columns)]
    kinds = {c.path_in_schema: c.compression.lower() for c in columns}
    kinds = {name: "none" if kind == "uncompressed" else kind for name, kind in kinds.items()}
    return {
        "use_dictionary": [*(c.path_in_schema for c in columns if _is_worth(c)), *ours],
        "compression": kinds if len({*kinds.values()}) > 1 else min(kinds.values()),
    }


_WIDTHS: Final = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}


def _is_worth(column: Foreign) -> bool:
    """Whether a column became smaller by a dictionary: looking for one is most of the work."""
    plain = _WIDTHS.get(column.physical_type, 0) * column.num_values
    has_one = any("DICTIONARY" in encoding for encoding in column.encodings)
    return has_one and (not plain or column.total_uncompressed_size < plain / 2)


def _write_parquet(path: Source, batches: Iterator[Foreign], options: Mapping[str, object]) -> None:
    """Each batch is a row group."""
    parquet = optional("pyarrow.parquet")
    with replacing_at_once(path) as beside, beside.open("wb") as target:
        first = next(batches)
        with parquet.ParquetWriter(target, first.schema, **options) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch, row_group_size=len(batch))
        to_disk(target)


def _write_duckdb(
    path: Source, opened: Opened, batches: Iterator[Foreign], table: str, n_ours: int
) -> None:
    duckdb = optional("duckdb")
    if duckdb is None:
        raise StairError(
            f"cannot write \"{path}\": DuckDB is an extra package: pip install 'stair[files]'."
        )
    with replacing(path) as beside:
        beside.unlink()
        try:
            with duckdb.connect(str(beside), config=dict(NO_EXTENSIONS)) as con:
                con.execute("SET enable_progress_bar = false")
                first = next(batches)
                types = [*opened.types] or [""] * (first.num_columns - n_ours)
                _create(con, quoted(table), first, types)
                for batch in chain([first], batches):
                    con.register("batch", batch)
                    con.execute(f"INSERT INTO {quoted(table)} SELECT * FROM batch")
                    con.unregister("batch")
                con.execute("CHECKPOINT")
        except duckdb.Error as error:
            raise StairError(f'cannot write "{path}": {reason(error)}.') from error


def _create(con: Foreign, table: str, batch: Foreign, types: Sequence[str]) -> None:
    """A table without rows, whose columns have these types as far as they are known."""
    con.register("batch", batch.slice(0, 0))
    found = [row[1] for row in con.execute("DESCRIBE SELECT * FROM batch").fetchall()]
    con.unregister("batch")
    known = [*types, *[""] * (len(found) - len(types))]
    columns = ", ".join(
        f"{quoted(name)} {one or other}"
        for name, one, other in zip(batch.schema.names, known, found, strict=True)
    )
    con.execute(f"CREATE TABLE {table} ({columns})")
