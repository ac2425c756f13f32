"""Codes in a file: written once as a compact Parquet file, read once for each pass."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from stair.data.packages import reason
from stair.engines.counting import Block, Paths, count_block, n_cpus, no_counts, only_root
from stair.errors import StairError
from stair.rules.columns import Column
from stair.rules.objective import Counts
from stair.scale.coding import Plan
from stair.scale.draw import CodeSample
from stair.scale.work import NOT_WHOLE, cannot_write, file_digest, load, plan_digest, save

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet

CODES: Final = "codes.parquet"
ROOT: Final = "all-rows.npy"
SEAL: Final = "codes.json"
BYTES_TOGETHER: Final = 24 << 20  # of a row group: what is held at once while counting
MOST_TOGETHER: Final = 1 << 19  # rows


def codes_table(block: Block) -> pa.Table:
    """A block as an Arrow table: a column of codes for each column, and the classes."""
    pyarrow = import_module("pyarrow")
    names = [*(f"c{j}" for j in range(len(block.codes))), "label"]
    return pyarrow.table(list(map(pyarrow.array, (*block.codes, block.labels))), names=names)


def block_of(table: pa.Table) -> Block:
    """The block that was made a table."""
    arrays = [column.to_numpy() for column in table.columns]
    return Block(arrays[:-1], arrays[-1])


def codes_writer(path: Path, schema: pa.Schema) -> parquet.ParquetWriter:
    """What writes tables of codes: small, and so that damage is noticed."""
    parquet = import_module("pyarrow.parquet")
    return parquet.ParquetWriter(
        path,
        schema,
        compression="lz4",
        use_dictionary=False,
        column_encoding="BYTE_STREAM_SPLIT",  # the high bytes of small codes are zeros
        write_page_checksum=True,
        write_statistics=False,
    )


def rows_together(n_columns: int) -> int:
    """The rows of a row group."""
    return min(MOST_TOGETHER, max(4096, BYTES_TOGETHER // (2 * n_columns)))


@contextlib.contextmanager
def writing_codes(
    folder: Path, plan: Plan, pool: ThreadPoolExecutor
) -> Iterator[Callable[[Block], None]]:
    """Takes blocks and counts them; the file is there when all of them are, or not at all."""
    sizes = plan.coding.sizes
    n_columns = len(sizes)
    together = rows_together(n_columns)
    counts = no_counts(1, sizes, len(plan.verdict.classes), range(n_columns))
    beside = folder / "codes.part"
    writer: parquet.ParquetWriter | None = None
    waiting: list[Block] = []

    def flush() -> None:
        nonlocal writer
        if not waiting:
            return
        columns = [np.concatenate([b.codes[j] for b in waiting]) for j in range(n_columns)]
        table = codes_table(Block(columns, np.concatenate([b.labels for b in waiting])))
        waiting.clear()
        if writer is None:
            writer = codes_writer(beside, table.schema)
        writer.write_table(table, row_group_size=together)

    def take(block: Block) -> None:
        count_block(block, only_root(), sizes, range(n_columns), counts, pool)
        waiting.append(block)
        if sum(len(b.labels) for b in waiting) >= together:
            flush()

    try:
        (folder / SEAL).unlink(missing_ok=True)
        yield take
        flush()
        if writer is not None:
            writer.close()
            writer = None
        np.save(folder / ROOT, counts)
        beside.replace(folder / CODES)
        save(folder / SEAL, _seal(folder, plan))
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.close()
        with contextlib.suppress(OSError):
            beside.unlink()


def totals_of(folder: Path, plan: Plan) -> tuple[int, ...] | None:
    """The rows of each class in the codes of a folder; None where they are not all there, or not
    as this plan made them.

    Checksums of pages are not enough: a changed header says how to read a page that is whole.
    """
    try:
        if load(folder / SEAL) != _seal(folder, plan):
            return None
        counts = np.load(folder / ROOT, allow_pickle=False)
    except NOT_WHOLE:
        return None
    return tuple(counts[0, : plan.coding.sizes[0]].sum(axis=0).tolist())


def _seal(folder: Path, plan: Plan) -> dict[str, str]:
    """What names the codes and counts in a folder, and the plan that they were made by."""
    files = {name: file_digest(folder / name) for name in (CODES, ROOT)}
    return {"plan": plan_digest(plan), **files}


class CodesCounter:
    """Counts from a file of codes, a row group at a time; the next one is read meanwhile."""

    def __init__(
        self,
        folder: Path,
        columns: Sequence[Column],
        sizes: Sequence[int],
        totals: tuple[int, ...],
    ) -> None:
        self.columns, self.sizes, self.totals = columns, sizes, totals
        self._path = folder / CODES
        self._root = folder / ROOT

    def count(self, paths: Paths, columns: Sequence[int]) -> Counts:
        if paths.column[0] < 0 and len(columns) == len(self.columns):
            return self._all_rows()
        counts = no_counts(paths.n_slots, self.sizes, len(self.totals), columns)
        n_rows = 0
        with ThreadPoolExecutor(n_cpus()) as pool, self._blocks() as blocks:
            for block in blocks:
                n_rows += len(block.labels)
                count_block(block, paths, self.sizes, columns, counts, pool)
        if n_rows != sum(self.totals):
            raise StairError(f"the codes have {n_rows:,} rows, not {sum(self.totals):,}; run again")
        return counts

    def draw(self, most: int, seed: int) -> CodeSample:
        """One pass that draws rows."""
        drawn, first = CodeSample(most, seed), 0
        with self._blocks() as blocks:
            for block in blocks:
                drawn.add(block, first)
                first += len(block.labels)
        return drawn

    def _all_rows(self) -> Counts:
        """Counted while the codes were written: that saves a pass."""
        try:
            counts: Counts = np.load(self._root, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise StairError(
                f'the counts in "{self._root.parent}" cannot be read ({reason(error)}); run again.'
            ) from error
        return counts

    @contextlib.contextmanager
    def _blocks(self) -> Iterator[Iterator[Block]]:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self._path, page_checksum_verification=True) as file:
                yield _ahead(file.num_row_groups, lambda k: block_of(file.read_row_group(k)))
        except (OSError, pyarrow.ArrowException) as error:
            gone = "are gone" if not self._path.exists() else f"cannot be read ({reason(error)})"
            with contextlib.suppress(OSError):
                self._path.unlink()  # a run that goes on must not find them
            raise StairError(
                f'the codes in "{self._path.parent}" {gone}; run again to make them anew.'
            ) from error


def _ahead(n: int, read: Callable[[int], Block]) -> Iterator[Block]:
    """Each block in turn, while a thread reads the next."""
    if not n:
        return
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(read, 0)
        for k in range(n):
            block = coming.result()
            if k + 1 < n:
                coming = reader.submit(read, k + 1)
            yield block
