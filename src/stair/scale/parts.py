"""Codes on disk, part by part: workers write them, so that a run that dies can go on.

The folder must be reachable by all workers and by who asks them. Rules never depend on it: a part
that is not there, or not whole, is made again from the data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import platform
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from stair.data.packages import reason
from stair.data.stream import files_of
from stair.engines.counting import Block, code_type
from stair.errors import StairError, option
from stair.scale.codes import block_of, codes_table, codes_writer, rows_together
from stair.scale.coding import Plan
from stair.scale.options import Options
from stair.scale.work import NOT_WHOLE, cannot_write, plan_digest, work_folder

KEY: Final = b"stair"  # in the metadata of a part: what it is a part of
BESIDE: Final = ".part-"  # names of files that are not written to their end


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where the parts of one table lie, coded by one plan."""

    folder: Path
    plan: str  # its digest
    n_parts: int
    sizes: tuple[int, ...]
    n_classes: int

    @classmethod
    def of(cls, folder: Path, plan: Plan, n_parts: int) -> Shelf:
        for old in folder.glob(f"{BESIDE}*"):  # of a worker that was killed
            with contextlib.suppress(OSError):
                old.unlink()
        return cls(folder, plan_digest(plan), n_parts, plan.coding.sizes, len(plan.verdict.classes))

    def left(self) -> list[int]:
        """The parts that an earlier run has left; whether they are whole is for workers to see."""
        return [k for k in range(self.n_parts) if self._path(k).exists()]

    def _path(self, k: int) -> Path:
        return self.folder / f"part-{k}.parquet"

    def _mark(self, k: int, block: Block) -> bytes:
        """Of which plan it is which part, and what is in it: checksums of pages are not enough,
        for a changed header says how to read a page that is whole."""
        content = hashlib.sha256()
        for array in (*block.codes, block.labels):
            content.update(np.ascontiguousarray(array).data)
        return f"{self.plan} {k} {self.n_parts} {content.hexdigest()}".encode()

    def keep(self, k: int, block: Block) -> None:
        """Write a part; it is there when all of it is, or not at all."""
        check_reach(self.folder)
        beside = self.folder / f"{BESIDE}{secrets.token_hex(8)}"
        table = codes_table(block).replace_schema_metadata({KEY: self._mark(k, block)})
        try:
            with codes_writer(beside, table.schema) as writer:
                writer.write_table(table, row_group_size=rows_together(len(self.sizes)))
            beside.replace(self._path(k))
        except OSError as error:
            raise cannot_write(self.folder, error) from error
        finally:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)

    def find(self, k: int) -> Block | None:
        """A part that was kept; None where it is gone, damaged, or of something else."""
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        try:
            with parquet.ParquetFile(self._path(k), page_checksum_verification=True) as file:
                mark = (file.schema_arrow.metadata or {}).get(KEY, b"")
                if not mark.startswith(f"{self.plan} {k} {self.n_parts} ".encode()):
                    return None
                block = block_of(file.read())
        except (OSError, pyarrow.ArrowException, *NOT_WHOLE):
            return None
        return block if self._fits(block) and mark == self._mark(k, block) else None

    def _fits(self, block: Block) -> bool:
        """Whether there is a count for each code: who counts does not look again."""
        arrays = [*block.codes, block.labels]
        sizes = [*self.sizes, self.n_classes]
        return len(arrays) == len(sizes) and all(
            array.dtype == code_type(size) and (not len(array) or int(array.max()) < size)
            for array, size in zip(arrays, sizes, strict=True)
        )


def check_reach(folder: Path) -> None:
    """A worker that sees another disk than the others says so."""
    if not folder.is_dir():
        raise _out_of_reach(folder, "there is no such folder")


def _out_of_reach(folder: Path, why: str) -> StairError:
    return StairError(
        f'the worker on {platform.node()} cannot use "{folder.parent}": {why}. Choose a folder '
        f"that all workers reach, as the user who runs stair, with {option('work')}."
    )


class Everywhere(Protocol):
    """A cluster, as far as folders go."""

    def everywhere(self, work: Any) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class _Greeting:
    """A worker's file in the folder, for the client to find."""

    folder: Path

    def __call__(self) -> str:
        check_reach(self.folder)
        path = self.folder / f"{BESIDE}{secrets.token_hex(8)}"
        try:
            path.write_text(platform.node(), encoding="utf-8")
        except OSError as error:
            raise _out_of_reach(self.folder, reason(error)) from error
        return path.name


@contextlib.contextmanager
def shared_folder(
    work: str | Path | None, data: Callable[[], object], options: Options, cluster: Everywhere
) -> Iterator[Path | None]:
    """The folder of a run about this data, which all workers reach; None where none is given."""
    if work is None:
        yield None
        return
    with work_folder(work, [data(), dataclasses.astuple(options)]) as folder:
        for name in cluster.everywhere(_Greeting(folder)):
            if not (folder / name).exists():
                raise _out_of_reach(folder, "what it writes there is not seen here")
            (folder / name).unlink()
        yield folder


def of_dask(files: object, frame: object) -> list[object]:
    """What data a Dask DataFrame has; another version may divide files in other parts."""
    return ["dask", import_module("dask").__version__, files, known_by(frame)]


def files_here(data: object) -> object:
    """The files with sizes and times, where there are files and they are here."""
    if not isinstance(data, str | os.PathLike) or "://" in os.fspath(data):
        return None
    return list(map(dataclasses.astuple, files_of(data)))


# What a reader of Parquet files has in mind besides what it reads: not the same in any two
# processes, though the files are.
_CACHES: Final = frozenset({"_dataset_info_cache", "_pq_length_stats"})


def known_by(frame: object) -> object:
    """What a Dask DataFrame is made of, in words that are the same in another process.

    Dask's own token of a frame of Parquet files is not, for a cache takes part in it.
    """
    tokenize = import_module("dask.base").tokenize
    expression = import_module("dask._expr").Expr

    def walk(node: object) -> Any:
        if not isinstance(node, expression):
            return tokenize(node)
        named = zip(_parameters(node), node.operands, strict=True)
        return [
            type(node).__qualname__,
            getattr(node, "checksum", None),  # of files: their names, sizes and times
            *(walk(operand) for name, operand in named if name not in _CACHES),
        ]

    return walk(frame.expr) if hasattr(frame, "expr") else tokenize(frame)


def _parameters(node: Any) -> list[str]:
    """The names of the operands; those past the last name have none."""
    names = [str(name) for name in node._parameters]
    return names + [""] * (len(node.operands) - len(names))
