"""On Spark: the same seam through `mapInArrow`, which hands record batches to Python.

Workers need stair installed, and nothing else. Codes are a DataFrame that Spark persists; a pass
maps its partitions to counts that are not zero, and Spark adds them up. With a folder to work in
each partition's codes are a file too, and a run that goes on looks at no data that was coded.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from stair.data.packages import optional, reason
from stair.engines.counting import Block, code_type
from stair.errors import StairError, option
from stair.progress import Progress
from stair.rules.objective import Counts
from stair.scale.arrow import arrow_batch
from stair.scale.coding import Coded, Coder, Coding, Plan, make_plan
from stair.scale.draw import CodeSample
from stair.scale.options import Options
from stair.scale.parts import Shelf
from stair.scale.profile import Profile, merge_profiles, profile_batch
from stair.scale.remote import Errand, RemoteCounter
from stair.scale.rows import G, Gathering
from stair.scale.work import CODES_ARE_THERE, load_plan, save_plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_BLOB = "part int, blob binary"
Batches: TypeAlias = "Iterator[pa.RecordBatch]"


def open_spark(data: Any) -> DataFrame:
    """A Spark DataFrame."""
    if optional("pyspark") is None:
        raise StairError("the engine spark needs pyspark: pip install 'stair[spark]'")
    if not hasattr(data, "mapInArrow"):
        raise StairError(
            f"the engine spark takes a Spark DataFrame, but got {type(data).__name__}; read it "
            "first, as with spark.read.parquet(...)"
        )
    found: DataFrame = data
    return found


def code_spark(
    frame: DataFrame,
    options: Options,
    say: Progress,
    coding: Coding | None = None,
    folder: Path | None = None,
) -> tuple[Coded, SparkCounter]:
    """Look at all columns once; then make codes, which Spark keeps.

    Bins may be given, so that engines can be compared. In a folder, what is found and made is kept
    for a run that comes after this one, and what an earlier one has left there is used.
    """
    names = list(frame.columns)
    data = frame.select(*(_quoted(name) for name in options.wanted(names, "")))
    plan = None if folder is None else load_plan(folder)
    if plan is None:
        say("pass 1, looking at the columns")
        parts = _gathered(data, _Profiling())
        profiles: dict[str, Profile] = merge_profiles(parts)
        plan = make_plan(profiles, options, "spark", names, "", coding)
        if folder is not None:
            save_plan(folder, plan)
    counter = SparkCounter(_codes(data, plan, folder, say).persist(), plan)
    return plan.coded(counter.totals), counter


def _codes(data: DataFrame, plan: Plan, folder: Path | None, say: Progress) -> DataFrame:
    """All rows as codes: from the shelf, where all parts are there and whole, else from the data,
    of which those partitions are coded that are not there."""
    schema = ", ".join([*(f"c{j} int" for j in range(len(plan.coding.columns))), "label int"])
    shelf = None
    if folder is not None:
        shelf = Shelf.of(folder, plan, data.rdd.getNumPartitions())
        n_left = len(shelf.left())
        empty = _numbered(data, shelf.n_parts)
        if n_left == shelf.n_parts and all(_gathered(empty, _Finding(shelf))):
            say(CODES_ARE_THERE)
            return empty.mapInArrow(_Coding(plan.coder, shelf), schema)
        if n_left:
            say(f"{n_left:,} of {shelf.n_parts:,} parts of an earlier run are there")
    say("pass 2, making codes")
    return data.mapInArrow(_Coding(plan.coder, shelf), schema)


def _numbered(data: DataFrame, n_parts: int) -> DataFrame:
    """So many partitions in which there is nothing to read."""
    return data.sparkSession.range(0, n_parts, 1, n_parts)


class SparkWorkers:
    """The workers of a session, to be asked something each."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def everywhere(self, work: Any) -> list[Any]:
        n_tasks = self._frame.sparkSession.sparkContext.defaultParallelism
        return _gathered(_numbered(self._frame, n_tasks), _Doing(work))


# What a DataFrame may do with files so that its partitions are the same in another process.
_STEPS: Final = frozenset({"Project", "Filter"})


def files_of_spark(frame: DataFrame) -> list[object]:
    """What data a Spark DataFrame has: which rows and columns of which files, in which partitions,
    and of these files the sizes and times."""
    with _in_words():
        run = getattr(frame, "_jdf", None) and frame._jdf.queryExecution()
        if run is None or not _is_of_files(run.optimizedPlan()):
            raise StairError(
                "codes are kept for a DataFrame that is read from files, with columns and rows "
                f"chosen at most; write this one to Parquet files first, or leave {option('work')} "
                "out"
            )
        parts = [list(part.files()) for part in run.toRdd().partitions()]
        plan = re.sub(r"#\d+L?", "", run.optimizedPlan().toString())
        hadoop = frame.sparkSession._jsc.hadoopConfiguration()
        paths = {each.toPath().toString(): each.toPath() for part in parts for each in part}
        states = {
            name: path.getFileSystem(hadoop).getFileStatus(path) for name, path in paths.items()
        }
        return [
            "spark",
            import_module("pyspark").__version__,
            plan,
            [[each.toString() for each in part] for part in parts],
            sorted([n, s.getLen(), s.getModificationTime()] for n, s in states.items()),
        ]


def _is_of_files(plan: Any) -> bool:
    name = plan.getClass().getSimpleName()
    if name == "LogicalRelation":
        return str(plan.relation().getClass().getSimpleName()).startswith("HadoopFs")
    below = [plan.children().apply(k) for k in range(plan.children().size())]
    return name in _STEPS and plan.deterministic() and all(map(_is_of_files, below))


class SparkRows:
    """The rows of a Spark DataFrame, partition by partition."""

    def __init__(self, frame: DataFrame, say: Progress) -> None:
        self.names, self.source, self.notes = list(frame.columns), "", ()
        self._frame, self._say = frame, say
        self._sizes: list[int] = []  # rows of each partition, known from the first pass on

    def gather(self, asked: G, columns: Sequence[str], what: str) -> G:
        self._say(what)
        data = self._frame.select(*map(_quoted, columns))
        parts = _gathered(data, _Gathering(asked, [0, *accumulate(self._sizes)]))
        sizes = [size for _, size in parts]
        if self._sizes not in ([], sizes):
            raise StairError("the data changed while it was read; run again.")
        self._sizes = sizes
        whole = asked.fresh()
        for found, _ in parts:
            whole.merge(found)
        return whole


class SparkCounter(RemoteCounter):
    """Counts from a DataFrame of codes."""

    def __init__(self, codes: DataFrame, plan: Plan) -> None:
        self._codes = codes
        super().__init__(plan.coding.columns, plan.coding.sizes, len(plan.verdict.classes))

    def _sum(self, asked: Errand) -> Counts:
        counted = self._codes.mapInArrow(_Counting(asked), "place long, n long")
        with _in_words():
            rows = counted.groupBy("place").sum("n").collect()
        counts = asked.nothing()
        flat = counts.reshape(-1)
        for place, n in rows:
            flat[place] = n
        return counts

    def draw(self, most: int, seed: int) -> CodeSample:
        sizes = _gathered(self._codes, _Drawing(None, [], self.sizes))
        drawn = CodeSample(most, seed)
        starts = [0, *accumulate(sizes)]
        for part in _gathered(self._codes, _Drawing(drawn, starts, self.sizes)):
            drawn.merge(part)
        return drawn

    def close(self) -> None:
        self._codes.unpersist()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except StairError:
        raise
    except Exception as error:
        said = [line for line in str(error).splitlines() if "StairError: " in line]
        if said:  # raised by a worker, and wrapped by Spark
            raise StairError(said[-1].partition("StairError: ")[2]) from error
        if "No module named 'stair'" in str(error):
            raise StairError(
                "Spark's workers have no stair; install it there, or set PYSPARK_PYTHON to a "
                "Python that has it"
            ) from error
        raise StairError(f"Spark cannot read the data: {reason(error)}.") from error


def _gathered(data: DataFrame, work: Any) -> list[Any]:
    """What a worker finds out about each partition, in the order of the partitions."""
    with _in_words():
        rows = data.mapInArrow(work, _BLOB).collect()
    # Made by our own workers a moment ago, and read by nobody else.
    return [pickle.loads(row.blob) for row in sorted(rows, key=lambda row: int(row.part))]


# --- what workers run -------------------------------------------------------------------------


def _blob(found: object) -> Batches:
    pyarrow = import_module("pyarrow")
    part = import_module("pyspark").TaskContext.get().partitionId()
    yield pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([part], pyarrow.int32()), pyarrow.array([pickle.dumps(found)])],
        names=["part", "blob"],
    )


class _Profiling:
    def __call__(self, batches: Batches) -> Batches:
        parts = [profile_batch(arrow_batch(batch)) for batch in batches if batch.num_rows]
        return _blob(merge_profiles(parts))


class _Gathering:
    def __init__(self, asked: Gathering, starts: list[int]) -> None:
        self.asked, self.starts = asked, starts

    def __call__(self, batches: Batches) -> Batches:
        part = import_module("pyspark").TaskContext.get().partitionId()
        start = self.starts[part] if part < len(self.starts) else 0
        found, size = self.asked.fresh(), 0
        for batch in batches:
            if batch.num_rows:
                found.add(arrow_batch(batch), start + size)
                size += batch.num_rows
        return _blob((found, size))


class _Doing:
    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work

    def __call__(self, batches: Batches) -> Batches:
        del batches
        return _blob(self.work())


class _Finding:
    """Whether a partition's codes are on the shelf, and whole."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def __call__(self, batches: Batches) -> Batches:
        del batches
        part = import_module("pyspark").TaskContext.get().partitionId()
        return _blob(self.shelf.find(part) is not None)


class _Coding:
    def __init__(self, coder: Coder, shelf: Shelf | None = None) -> None:
        self.coder, self.shelf = coder, shelf

    def __call__(self, batches: Batches) -> Batches:
        pyarrow = import_module("pyarrow")
        names = [*(f"c{j}" for j in range(len(self.coder.coding.columns))), "label"]
        for block in self._coded(batches) if self.shelf is None else [self._kept(batches)]:
            arrays = [a.astype(np.int32) for a in (*block.codes, block.labels)]
            yield pyarrow.RecordBatch.from_arrays(list(map(pyarrow.array, arrays)), names)

    def _coded(self, batches: Batches) -> Iterator[Block]:
        return (self.coder(arrow_batch(batch)) for batch in batches if batch.num_rows)

    def _kept(self, batches: Batches) -> Block:
        """The codes of a partition from the shelf, on which they are put if they are not there."""
        assert self.shelf is not None
        part = import_module("pyspark").TaskContext.get().partitionId()
        block = self.shelf.find(part)
        if block is None:
            block = _joined([*self._coded(batches)], self.shelf.sizes)
            self.shelf.keep(part, block)
        return block


def _joined(blocks: Sequence[Block], sizes: Sequence[int]) -> Block:
    blocks = blocks or [Block([np.empty(0, code_type(n)) for n in sizes], np.empty(0, np.uint8))]
    return Block(
        [np.concatenate(each) for each in zip(*(block.codes for block in blocks), strict=True)],
        np.concatenate([block.labels for block in blocks]),
    )


class _Counting:
    def __init__(self, asked: Errand) -> None:
        self.asked = asked

    def __call__(self, batches: Batches) -> Batches:
        pyarrow = import_module("pyarrow")
        counts = self.asked.counts(map(self._block, batches))
        places = np.flatnonzero(counts)
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(places), pyarrow.array(counts.reshape(-1)[places])], ["place", "n"]
        )

    def _block(self, batch: pa.RecordBatch) -> Block:
        return _block_of(batch, self.asked.sizes)


class _Drawing:
    """Rows of a partition that are drawn; how many rows it has where none are asked for."""

    def __init__(self, asked: CodeSample | None, starts: list[int], sizes: Sequence[int]) -> None:
        self.asked, self.starts, self.sizes = asked, starts, tuple(sizes)

    def __call__(self, batches: Batches) -> Batches:
        if self.asked is None:
            return _blob(sum(batch.num_rows for batch in batches))
        first = self.starts[import_module("pyspark").TaskContext.get().partitionId()]
        drawn = replace(self.asked)
        for batch in batches:
            drawn.add(_block_of(batch, self.sizes), first)
            first += batch.num_rows
        return _blob(drawn)


def _block_of(batch: pa.RecordBatch, sizes: Sequence[int]) -> Block:
    *codes, labels = (array.to_numpy() for array in batch.columns)
    narrow = [c.astype(code_type(n)) for c, n in zip(codes, sizes, strict=True)]
    return Block(narrow, labels.astype(np.uint8))
