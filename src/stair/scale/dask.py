"""On a cluster: Dask holds the codes in the memory of its workers, and only counts travel.

Every step is a map over the partitions and a sum by a tree of tasks. Dask knows how each block of
codes was made, so that the blocks of a worker that dies are made again by the others.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from stair.data.arrays import from_series, from_values, label
from stair.data.databases import PARQUET
from stair.data.packages import optional, reason
from stair.data.stream import check_same
from stair.engines.counting import Block
from stair.errors import StairError
from stair.progress import Progress
from stair.rules.objective import Counts
from stair.scale.coding import Coded, Coder, Coding, Plan, make_plan
from stair.scale.draw import CodeSample
from stair.scale.options import Options
from stair.scale.parts import Shelf
from stair.scale.profile import Profile, merge_profiles, profile_batch
from stair.scale.raw import Batch, Raw, Words, from_loaded
from stair.scale.remote import Errand, RemoteCounter
from stair.scale.rows import G, Gathering
from stair.scale.work import CODES_ARE_THERE, load_plan, save_plan

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

FAN_IN: Final = 8  # partial results that one task adds up
PATIENCE: Final = 10.0  # seconds for a scheduler to answer
BEAT: Final = 0.5  # seconds between looks at whether the scheduler is still there


class Cluster:
    """Where tasks run: a cluster by its client, or the threads of this process."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def compute(self, work: object) -> Any:
        """The result of a task; a scheduler that is gone is said, and never waited for."""
        dask = import_module("dask")

        if self._client is None:
            with _in_words(None):
                return dask.compute(work, scheduler="threads")[0]
        with _in_words(self._client):
            return self._result(self._client.compute(work))

    def everywhere(self, work: Callable[[], object]) -> list[object]:
        """What each worker that is there now makes of a small task; nothing without a cluster."""
        if self._client is None:
            return []
        with _in_words(self._client):
            futures = [
                # Another worker may do it where this one dies meanwhile.
                self._client.submit(work, workers=[each], allow_other_workers=True, pure=False)
                for each in self._client.nthreads()
            ]
            return list(map(self._result, futures))

    def _result(self, future: Any) -> object:
        while True:
            try:
                return future.result(timeout=BEAT)
            except TimeoutError:
                if future.done():  # just now, or the task itself ran out of some time
                    return future.result()
                self._check()

    def _check(self) -> None:
        if self._client.status not in ("running", "connecting"):
            raise ConnectionError("the client is not connected any more")

    def persist(self, works: list[object]) -> list[object]:
        """The same tasks, whose results stay where they are made."""
        dask = import_module("dask")

        if self._client is None:
            with _in_words(None):
                return list(dask.persist(*works, scheduler="threads"))
        with _in_words(self._client):
            return list(self._client.persist(works))

    def together(self, kept: list[object]) -> list[list[object]]:
        """Kept results in groups that lie on one worker: what is made of a group stays there.

        One group for each thread of a worker, so that a pass sends as many partial results as
        there are threads, and not as many as there are partitions.
        """
        if self._client is None:
            return [[each] for each in kept]
        distributed = import_module("distributed")
        with _in_words(self._client):
            futures = [distributed.futures_of(each)[0] for each in kept]
            while not all(future.done() for future in futures):
                with self._client.as_current(), contextlib.suppress(TimeoutError):
                    distributed.wait(futures, timeout=BEAT)
                self._check()
            holders = self._client.who_has(futures)
            threads = self._client.nthreads()
        by_worker: dict[str, list[object]] = {}
        for each, future in zip(kept, futures, strict=True):
            holder = sorted(holders.get(future.key) or [""])[0]
            by_worker.setdefault(holder, []).append(each)
        groups = []
        for holder, members in by_worker.items():
            n = max(1, threads.get(holder, 1))
            groups += [members[k::n] for k in range(n) if members[k::n]]
        return groups


@contextlib.contextmanager
def _in_words(client: Any) -> Iterator[None]:
    """What can go wrong on a cluster, or in the threads of this process, each in one sentence."""
    distributed = import_module("distributed")

    address = getattr(getattr(client, "scheduler", None), "address", "the cluster")
    try:
        yield
    except StairError:
        raise
    except distributed.KilledWorker as error:
        raise StairError(
            "several workers died on the same part of the data, probably for lack of memory; use "
            "smaller partitions or larger workers."
        ) from error
    except MemoryError as error:
        raise StairError(
            "a part of the data does not fit in memory; use smaller partitions or larger workers."
        ) from error
    except Exception as error:
        lost = client is not None and (
            client.status not in ("running", "connecting")
            or isinstance(error, distributed.CancelledError | ConnectionError)
        )
        if lost:  # then errors of any kind come from the client itself
            raise StairError(
                f"the scheduler at {address} is gone; start it and run again."
            ) from error
        if isinstance(error, _unreadable(distributed.CancelledError)):
            raise StairError(f"the data cannot be read: {_why(error)}.") from error
        raise  # a mistake in a program, ours or of who made the frame: it must be seen


def _unreadable(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What files and stores raise that cannot be read."""
    return (OSError, import_module("pyarrow").ArrowException, *more)


def _why(error: BaseException) -> str:
    """Dask says where it was, and then what happened."""
    said = str(error).partition("Original Message: ")[2].strip()
    return said.splitlines()[0].rstrip(".") if said else reason(error)


@contextlib.contextmanager
def connected(client: object) -> Iterator[Cluster]:
    """A cluster from a client, a scheduler's address, the client that is there, or none."""
    if optional("dask.dataframe") is None or optional("distributed") is None:
        raise StairError("the engine dask needs dask: pip install 'stair[dask]'")
    distributed = import_module("distributed")

    if isinstance(client, str):
        log = logging.getLogger("distributed.client")
        level = log.level
        log.setLevel(logging.CRITICAL)  # a scheduler that is gone is said by us, in a sentence
        try:
            own = distributed.Client(client, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            log.setLevel(level)
            raise StairError(
                f"no scheduler answers at {client} ({reason(error)}); expected an address such as "
                "tcp://host:8786"
            ) from error
        try:
            yield Cluster(own)
        finally:
            with contextlib.suppress(Exception):  # it may be gone, which was said already
                own.close(timeout=2)
            log.setLevel(level)
        return
    if client is None:
        with contextlib.suppress(ValueError):
            client = distributed.default_client()
    yield Cluster(client)


def open_frame(data: Any) -> tuple[dd.DataFrame, str]:
    """A Dask DataFrame, as it is given or from a path, and what to call it."""
    dd = import_module("dask.dataframe")

    if isinstance(data, str | os.PathLike):
        path = os.fspath(data)
        try:
            frame = dd.read_parquet(path)
            _check_schemas(path)
        except StairError:
            raise
        # Of a path that means nothing, or needs a package, too.
        except _unreadable(ValueError, ImportError) as error:
            raise StairError(f"cannot read {path}: {_why(error)}.") from error
        return frame, Path(path).name
    if not hasattr(data, "to_delayed") or not hasattr(data, "columns"):
        raise StairError(
            f"the engine dask takes a Dask DataFrame or the path of Parquet files, but got "
            f"{type(data).__name__}"
        )
    names = list(map(label, data.columns))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise StairError(f'"{twice}" is the name of several columns; rename them first')
    if names != list(data.columns):
        data = data.copy()
        data.columns = names
    return data, ""


def _check_schemas(path: str) -> None:
    """Dask takes the columns of the first file, and nobody would see what only others have."""
    core = import_module("fsspec.core")
    parquet = import_module("pyarrow.parquet")
    files, _, found = core.get_fs_token_paths(path)
    places = sorted(f for each in found for f in (files.find(each) or [each]))
    places = [f for f in places if not Path(f).name.startswith(("_", "."))]
    places = [f for f in places if f in found or Path(f).suffix.lower() in PARQUET]

    def schema(place: str) -> tuple[str, dict[str, str]]:
        with files.open(place, "rb") as file:
            read = parquet.read_schema(file)
        return Path(place).name, dict(zip(read.names, map(_type_name, read.types), strict=True))

    with ThreadPoolExecutor(8) as pool:
        check_same(list(pool.map(schema, places)))


def _type_name(kind: pa.DataType) -> str:
    """Of an Arrow type, however it is held; "" where there is no value and so no type."""
    types = import_module("pyarrow").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return "" if types.is_null(kind) else str(kind).removeprefix("large_")


def code_frame(
    frame: dd.DataFrame,
    source: str,
    options: Options,
    cluster: Cluster,
    say: Progress,
    coding: Coding | None = None,
    folder: Path | None = None,
) -> tuple[Coded, DaskCounter]:
    """Look at all columns once; then make codes, which stay on the workers.

    Bins may be given, so that engines can be compared. In a folder, what is found and made is kept
    for a run that comes after this one, and what an earlier one has left there is used.
    """
    dask = import_module("dask")

    names = list(map(str, frame.columns))
    with _reading(source):
        parts = frame[options.wanted(names, source)].to_delayed()
    plan = None if folder is None else load_plan(folder)
    if plan is None:
        say("pass 1, looking at the columns")
        looked = [dask.delayed(_profile_part)(part) for part in parts]
        profiles: dict[str, Profile] = cluster.compute(_tree(looked, _merge))
        plan = make_plan(profiles, options, "dask", names, source, coding)
        if folder is not None:
            save_plan(folder, plan)
    shelf = None if folder is None else Shelf.of(folder, plan, len(parts))
    counter = DaskCounter(_blocks(parts, plan, shelf, cluster, say), plan, cluster)
    return plan.coded(counter.totals), counter


def _blocks(
    parts: list[object], plan: Plan, shelf: Shelf | None, cluster: Cluster, say: Progress
) -> list[object]:
    """All parts as codes, on the workers: from the shelf where they are there, else made now."""
    dask = import_module("dask")

    found: dict[int, object] = {}
    if shelf is not None and (left := shelf.left()):
        shared = dask.delayed(shelf, traverse=False)
        held = cluster.persist([dask.delayed(_find_part)(shared, k) for k in left])
        whole = cluster.compute(dask.delayed(list)([dask.delayed(_is_there)(b) for b in held]))
        found = {k: each for k, each, ok in zip(left, held, whole, strict=True) if ok}
    if len(found) == len(parts):
        say(CODES_ARE_THERE)
        return list(found.values())
    if found:
        say(f"{len(found):,} of {len(parts):,} parts of an earlier run are there")
    say("pass 2, making codes")
    coder = dask.delayed(plan.coder, traverse=False)
    keeper = dask.delayed(shelf, traverse=False)
    missing = [k for k in range(len(parts)) if k not in found]
    made = cluster.persist([dask.delayed(_code_part)(parts[k], coder, keeper, k) for k in missing])
    found |= zip(missing, made, strict=True)
    return [found[k] for k in range(len(parts))]


class FrameRows:
    """The rows of a Dask DataFrame: each pass is a map over its parts."""

    def __init__(self, frame: dd.DataFrame, source: str, cluster: Cluster, say: Progress) -> None:
        self.names, self.source, self.notes = list(map(str, frame.columns)), source, ()
        self._frame, self._cluster, self._say = frame, cluster, say
        self._sizes: list[int] = []  # rows of each part, known from the first pass on

    def gather(self, asked: G, columns: Sequence[str], what: str) -> G:
        dask = import_module("dask")

        self._say(what)
        with _reading(self.source):
            parts = self._frame[list(columns)].to_delayed()
        starts = [0, *accumulate(self._sizes)] if self._sizes else [0] * len(parts)
        shared = dask.delayed(asked, traverse=False)
        tasks = [
            dask.delayed(_gather_part)(part, shared, start)
            for part, start in zip(parts, starts, strict=False)
        ]
        found: tuple[G, list[int]] = self._cluster.compute(_tree(tasks, _merge_gathered))
        if self._sizes not in ([], found[1]):
            raise StairError("the data changed while it was read; run again.")
        self._sizes = found[1]
        return found[0]


@contextlib.contextmanager
def _reading(source: str) -> Iterator[None]:
    try:
        yield
    except _unreadable() as error:
        raise StairError(f"cannot read {source or 'the data'}: {_why(error)}.") from error


class DaskCounter(RemoteCounter):
    """Counts from blocks of codes on the workers: one map over them, and a sum, for each pass."""

    def __init__(self, blocks: list[object], plan: Plan, cluster: Cluster) -> None:
        self._blocks, self._groups, self._cluster = blocks, cluster.together(blocks), cluster
        super().__init__(plan.coding.columns, plan.coding.sizes, len(plan.verdict.classes))

    def _sum(self, asked: Errand) -> Counts:
        dask = import_module("dask")

        shared = dask.delayed(asked, traverse=False)
        counted = [dask.delayed(_count_parts)(group, shared) for group in self._groups]
        counts: Counts = self._cluster.compute(_tree(counted, _add))
        return counts

    def draw(self, most: int, seed: int) -> CodeSample:
        dask = import_module("dask")

        sizes = self._cluster.compute(
            dask.delayed(list)([dask.delayed(_n_rows)(block) for block in self._blocks])
        )
        tasks = [
            dask.delayed(_draw_part)(block, CodeSample(most, seed), first)
            for block, first in zip(self._blocks, [0, *accumulate(sizes)], strict=False)
        ]
        drawn: CodeSample = self._cluster.compute(_tree(tasks, _merge_drawn))
        return drawn


def _tree(tasks: list[object], join: Callable[[list[Any]], object]) -> Any:
    """One task that joins the results of many, a few at a time and in their order."""
    dask = import_module("dask")

    while len(tasks) > 1:
        tasks = [
            dask.delayed(join)(tasks[start : start + FAN_IN])
            for start in range(0, len(tasks), FAN_IN)
        ]
    return tasks[0]


# --- what workers run -----------------------------------------------------------------------------


def _profile_part(frame: object) -> dict[str, Profile]:
    return profile_batch(batch_of(frame))


def _merge(parts: list[dict[str, Profile]]) -> dict[str, Profile]:
    # Results may be used twice where a worker died, so none of them is changed.
    return merge_profiles([{name: Profile() for name in parts[0]}, *parts])


def _gather_part(frame: pd.DataFrame, asked: Gathering, start: int) -> tuple[Gathering, list[int]]:
    found = asked.fresh()
    if len(frame):
        found.add(batch_of(frame), start)
    return found, [len(frame)]


def _merge_gathered(parts: list[tuple[Gathering, list[int]]]) -> tuple[Gathering, list[int]]:
    whole = parts[0][0].fresh()
    for found, _ in parts:
        whole.merge(found)
    return whole, [size for _, sizes in parts for size in sizes]


def _find_part(shelf: Shelf, k: int) -> Block | None:
    return shelf.find(k)


def _is_there(block: Block | None) -> bool:
    return block is not None


def _code_part(frame: object, coder: Coder, shelf: Shelf | None, k: int) -> Block:
    block = coder(batch_of(frame))
    if shelf is not None:
        shelf.keep(k, block)
    return block


def _whole(block: Block | None) -> Block:
    if block is None:  # a worker died, and then the file of what it held
        raise StairError("codes in the work folder are gone; run again to make them anew.")
    return block


def _count_parts(blocks: list[Block | None], asked: Errand) -> Counts:
    return asked.counts(list(map(_whole, blocks)))


def _n_rows(block: Block | None) -> int:
    return len(_whole(block).labels)


def _draw_part(block: Block | None, asked: CodeSample, first: int) -> CodeSample:
    drawn = replace(asked)
    drawn.add(_whole(block), first)
    return drawn


def _merge_drawn(parts: list[CodeSample]) -> CodeSample:
    whole = CodeSample(parts[0].most, parts[0].seed)
    for part in parts:
        whole.merge(part)
    return whole


def _add(parts: list[Counts]) -> Counts:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def batch_of(frame: pd.DataFrame) -> Batch:
    """The columns of a pandas frame as we know columns."""
    return Batch.of({str(name): plain_series(frame[name], str(name)) for name in frame.columns})


def plain_series(series: pd.Series, name: str) -> tuple[Raw, str]:
    """A column, and what it was before it became plain."""
    import narwhals as nw
    import pandas as pd

    dtype = series.dtype
    if isinstance(dtype, pd.StringDtype):
        codes, values = pd.factorize(series)
        return Words(list(values), codes), ""
    if isinstance(dtype, pd.CategoricalDtype):
        return _categorical(series)
    return from_loaded(from_series(name, nw.from_native(series, series_only=True)))


def _categorical(series: pd.Series) -> tuple[Raw, str]:
    """By the categories that occur: as many values as the column has, and each read once."""
    codes = series.cat.codes.to_numpy()
    used, places = np.unique(codes, return_inverse=True)
    listed = series.cat.categories.tolist()
    array, was = from_values([None if k < 0 else listed[k] for k in used.tolist()])
    return from_loaded((array[places], was))
