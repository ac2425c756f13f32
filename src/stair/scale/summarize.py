"""A Summary of data that does not fit: the rows are read in parts, and never kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from stair.data.source import Source
from stair.data.stream import files_of, open_stream
from stair.engines.counting import Counter
from stair.engines.large import Cuda, Dask, DuckDB, LargeEngine, Spark, read_memory
from stair.errors import StairError, option
from stair.gpu.cuda import on_device
from stair.intake import Columns, Statement
from stair.learn.learner import Learner
from stair.learn.levels import FAR_AHEAD, JUST_AHEAD, Ahead, Divisions
from stair.learn.method import Method
from stair.learn.methods import StairMethod
from stair.learn.seeds import seed_of
from stair.learn.wishes import column_wishes_of
from stair.progress import Progress
from stair.rules.schema import Schema
from stair.scale.codes import CodesCounter, totals_of
from stair.scale.coding import Coded
from stair.scale.cuda import code_rows, counts_in, memory_of, opened_table
from stair.scale.dask import FrameRows, code_frame, connected, open_frame
from stair.scale.distilled import distill_rows
from stair.scale.draw import CodeSample
from stair.scale.duckdb import FileRows, look_at, write_codes
from stair.scale.held import WEIGHTS, labelled
from stair.scale.options import Options, Weighing, check_room, rows_that_fit
from stair.scale.parts import files_here, of_dask, shared_folder
from stair.scale.rows import Rows
from stair.scale.rules import Learned, check_by_codes, learn_rules
from stair.scale.sample import learn_from_sample
from stair.scale.spark import SparkRows, SparkWorkers, code_spark, files_of_spark, open_spark
from stair.scale.work import (
    BINS_ARE_THERE,
    CODES_ARE_THERE,
    Levels,
    forget,
    load_plan,
    save_plan,
    spill_folder,
    work_folder,
)
from stair.verdict.labels import Verdict

# Bytes of counts that one task of a worker may make.
COUNTS_ON_WORKERS: Final = 64 << 20


class Drawing(Protocol):
    """Codes from which rows can be drawn."""

    def draw(self, most: int, seed: int, /) -> CodeSample:
        """At most so many rows, each as readily as the other."""


# What looks whether rules hold, from the codes that they were learned from.
Checking: TypeAlias = Callable[[Drawing, Coded, Learned], tuple[Coded, Learned]]


def unchecked(_: Drawing, coded: Coded, learned: Learned) -> tuple[Coded, Learned]:
    """For those who do not ask whether rules hold."""
    return coded, learned


def learn_large(
    source: Source,
    statement: Statement,
    chosen: Columns,
    method: Method,
    engine: LargeEngine,
    validate: int | None,
    say: Progress,
) -> tuple[Coded, Learned]:
    """Rules for data that stays where it is, and what was counted there."""
    data, statement = _in_one_table(source.data, statement, engine)
    label = _label_of(statement, engine)
    _check_work(engine, method, data)
    weighing = _weighing_of(statement, method, engine)
    if method.wish_of_one:
        raise StairError(
            f"{method.wish_of_one} is for rows in memory; leave the wish out, or "
            f"{option('engine', engine.name)}"
        )
    known = column_wishes_of(method.column_wishes)
    never = tuple(name for name, wish in known.items() if wish.never)
    include = chosen.include
    options = Options(
        label, statement.positive,
        None if include is None else tuple(name for name in include if name != label),
        tuple(dict.fromkeys([*chosen.exclude, *never])), dict(chosen.kinds or {}),
        source.time_parts, source.time_zone,
        method.time_windows, engine.bins, source.table, source.query, method.lists,
        statement.negative, statement.has_kinds, weighing,
    )  # fmt: skip
    seed = seed_of(statement.random_state)
    is_by_level = isinstance(method, StairMethod) and not method.refine
    for name, wish in known.items():
        if is_by_level and not wish.never:
            said = option("column_wishes", {name: wish.given})
            raise StairError(
                f"{said} is for rows in memory where the method is stair; leave it out, or take "
                f"{option('method', 'distilled')}"
            )
    method = dataclasses.replace(
        method, column_wishes={n: wish for n, wish in known.items() if not wish.never} or None
    )

    def learner(schema: Schema, verdict: Verdict) -> Learner:
        return Learner(method, schema, verdict, say, list_codes=False)

    if not isinstance(method, StairMethod) or method.refine:
        learn = distill_rows if method.has_kinds else learn_from_sample
        with _opened(data, engine, options, say) as (rows, most):
            return learn(rows, options, learner, most, seed, validate, say)

    def check(counter: Drawing, coded: Coded, learned: Learned) -> tuple[Coded, Learned]:
        if validate == 0:
            return coded, dataclasses.replace(learned, check="nobody asked for it")
        say("drawing rows to keep aside")
        memory = engine.bytes_of_memory if isinstance(engine, DuckDB) else read_memory(None)
        fits = rows_that_fit(memory, len(coded.names))
        drawn = counter.draw(min(engine.sample, fits), seed)
        learned = dataclasses.replace(learned, n_passes=learned.n_passes + 1)
        return check_by_codes(drawn, coded, learned, learner, validate)

    return learn_by_level(data, options, method, engine, say, check)


def fit_large(
    data: object, label: object, engine: LargeEngine, method: StairMethod, say: Progress
) -> tuple[Coded, Learned]:
    """What an estimator does with an engine for large data: numbers only, labels as they are."""
    data, statement = _in_one_table(data, Statement(label, positive=method.pos_label), engine)
    options = Options(
        _label_of(statement, engine), method.pos_label, n_bins=engine.bins, as_matrix=True
    )
    return learn_by_level(data, options, method, engine, say)


def learn_by_level(
    data: object,
    options: Options,
    method: StairMethod,
    engine: LargeEngine,
    say: Progress,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR where the rows are. What an earlier run has done is found again in its folder."""
    if isinstance(engine, Dask):
        return learn_from_frame(data, options, method, engine.client, say, engine.work, check)
    if isinstance(engine, DuckDB):
        memory = engine.bytes_of_memory
        return learn_from_files(data, options, method, memory, engine.work, say, check)
    if isinstance(engine, Cuda):
        return learn_on_gpu(data, options, method, engine, say, check)
    work = engine.work if isinstance(engine, Spark) else None
    return learn_from_spark(data, options, method, say, work, check)


def learn_from_files(
    data: Any,
    options: Options,
    method: StairMethod,
    memory: int,
    work: str | Path | None,
    say: Progress,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR through DuckDB, within so much memory. What an earlier run has done is found again."""
    _check_files(data)
    with prepared(data, options, memory, work, say) as (folder, coded):
        counter = CodesCounter(folder, coded.coding.columns, coded.coding.sizes, coded.totals)
        learned = _by_level(counter, coded, method, memory // 6, say, folder)
        return check(counter, coded, learned)


def learn_from_frame(
    data: object,
    options: Options,
    method: StairMethod,
    client: object,
    say: Progress,
    work: str | Path | None = None,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR on a cluster, or on the threads of this process where there is none.

    With a folder to work in, what an earlier run has done is found again.
    """
    with connected(client) as cluster:
        frame, source = open_frame(data)
        files = None if work is None else files_here(data)
        about = partial(of_dask, files, frame)
        with shared_folder(work, about, options, cluster) as folder:
            coded, counter = code_frame(frame, source, options, cluster, say, folder=folder)
            if folder is not None and files_here(data) != files:
                forget(folder)  # the codes may be of neither
                raise StairError(f"{source} changed while it was read; run again.")
            learned = _by_level(counter, coded, method, COUNTS_ON_WORKERS, say, folder)
            return check(counter, coded, learned)


def learn_from_spark(
    data: object,
    options: Options,
    method: StairMethod,
    say: Progress,
    work: str | Path | None = None,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR on Spark. With a folder to work in, what an earlier run has done is found again."""
    frame = open_spark(data)
    about = partial(files_of_spark, frame)
    files = None if work is None else about()
    with shared_folder(work, about, options, SparkWorkers(frame)) as folder:
        coded, counter = code_spark(frame, options, say, folder=folder)
        try:
            if folder is not None and about() != files:
                forget(folder)  # the codes may be of neither
                raise StairError("the data changed while it was read; run again.")
            learned = _by_level(counter, coded, method, COUNTS_ON_WORKERS, say, folder)
            return check(counter, coded, learned)
        finally:
            counter.close()


def learn_on_gpu(
    data: object,
    options: Options,
    method: StairMethod,
    engine: Cuda,
    say: Progress,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR on a GPU."""
    with (
        on_device(engine.device) as device,
        opened_table(data, options.table, options.query, device, say) as rows,
    ):
        memory = memory_of(engine, device)
        coded, counter = code_rows(rows, options, device, memory, say)
        learned = _by_level(
            counter, coded, method, counts_in(memory), say, ahead=JUST_AHEAD, heavy=counter.heavy
        )
        return check(counter, coded, learned)


def _in_one_table(
    data: object, statement: Statement, engine: LargeEngine
) -> tuple[object, Statement]:
    """Labels and weights that come by themselves are columns where the rows are held."""
    if not isinstance(engine, Cuda) or isinstance(data, str | os.PathLike):
        return data, statement
    labels, weights = statement.labels, statement.weights
    if labels is not None and not isinstance(labels, str):
        data = labelled(data, labels)
        statement = dataclasses.replace(statement, labels=data.name)
    if weights is not None and not isinstance(weights, str | Weighing):
        data = labelled(data, weights, WEIGHTS)
        own = getattr(weights, "name", None)
        given = Weighing(data.name, None if own is None else str(own))
        statement = dataclasses.replace(statement, weights=given)
    return data, statement


def _weighing_of(statement: Statement, method: Method, engine: LargeEngine) -> Weighing | None:
    """How much each row counts, by a column; not every engine and method knows it."""
    given = statement.weights
    if given is None:
        return None
    is_by_level = isinstance(method, StairMethod) and not method.refine
    if not method.has_kinds and not (isinstance(engine, Cuda) and is_by_level):
        raise StairError(
            f"{option('weights')} with the method {method.name} is for rows in memory"
            f"{' and on a GPU' * is_by_level}; leave it or {option('engine', engine.name)} out, or "
            f"take {option('method', 'distilled')}"
        )
    if isinstance(given, Weighing):
        return given
    if not isinstance(given, str):
        raise StairError(
            f"the engine {engine.name} takes weights as a column of the data: give its name as "
            f"{option('weights')}"
        )
    return Weighing(given, given)


def _by_level(
    counter: Counter,
    coded: Coded,
    method: StairMethod,
    counts_at_once: int,
    say: Progress,
    folder: Path | None = None,
    ahead: Ahead = FAR_AHEAD,
    heavy: Counter | None = None,
) -> Learned:
    """The rules; levels that are done are kept in the folder and found there again."""
    known, keep = Divisions(), None
    if folder is not None:
        levels = Levels.at(folder, coded, method.max_rule_length)
        known, keep = levels.load(), levels.save
    learned = learn_rules(counter, coded, method, counts_at_once, say, known, keep, ahead, heavy)
    return dataclasses.replace(learned, n_passes=2 + known.n_passes)


@contextmanager
def opened_rows(
    data: Any, engine: LargeEngine, table: str | None, query: str | None, say: Progress
) -> Iterator[Rows]:
    """All rows, wherever they are."""
    if isinstance(engine, Dask):
        with connected(engine.client) as cluster:
            yield FrameRows(*open_frame(data), cluster, say)
        return
    if isinstance(engine, Cuda):
        with (
            on_device(engine.device) as device,
            opened_table(data, table, query, device, say) as held,
        ):
            yield held
        return
    if not isinstance(engine, DuckDB):
        yield SparkRows(open_spark(data), say)
        return
    _check_files(data)
    memory = _for_duckdb(engine.bytes_of_memory)
    with (
        spill_folder(engine.work) as folder,
        open_stream(data, table=table, query=query, memory=memory, spill=folder) as stream,
    ):
        yield FileRows(stream, say)


@contextmanager
def _opened(
    data: object, engine: LargeEngine, options: Options, say: Progress
) -> Iterator[tuple[Rows, int]]:
    """All rows, and how many of them may be held to learn from."""
    with opened_rows(data, engine, options.table, options.query, say) as rows:
        most = engine.sample
        if isinstance(rows, FileRows) and isinstance(engine, DuckDB):
            wanted = options.wanted(rows.names, rows.source)
            most = min(most, rows_that_fit(engine.bytes_of_memory, len(wanted)))
            check_room(engine.bytes_of_memory, rows.stream, wanted, sample=most)
        yield rows, most


def _check_files(data: object) -> None:
    if not isinstance(data, str | os.PathLike):
        raise StairError(
            f"the engine duckdb reads files, but got {type(data).__name__}; give a path or a "
            "pattern such as 'data/*.parquet'"
        )


def _for_duckdb(memory: int) -> int:
    """What is left for DuckDB: the interpreter, its libraries and a batch take a third of a
    gigabyte, and counts as much as DuckDB."""
    return max(96 << 20, (memory - (384 << 20)) // 2)


@contextmanager
def prepared(
    data: str | os.PathLike[str], options: Options, memory: int, work: Any, say: Progress
) -> Iterator[tuple[Path, Coded]]:
    """The folder of a run with the codes in it: made now, or by an earlier run."""
    about = [[dataclasses.astuple(part) for part in files_of(data)], dataclasses.astuple(options)]
    with work_folder(work, about) as folder:
        plan = load_plan(folder)
        totals = None if plan is None else totals_of(folder, plan)
        if plan is None or totals is None:
            with open_stream(
                data,
                table=options.table,
                query=options.query,
                memory=_for_duckdb(memory),
                spill=folder / "spill",
            ) as stream:
                check_room(memory, stream, options.wanted(stream.names, stream.source))
                if plan is None:
                    plan = look_at(stream, options, say)
                    save_plan(folder, plan)
                else:
                    say(BINS_ARE_THERE)
                write_codes(stream, plan, folder, say)
            totals = totals_of(folder, plan)
            if totals is None:
                raise StairError(f'the codes in "{folder}" are gone; run again to make them anew.')
        else:
            say(CODES_ARE_THERE)
        yield folder, plan.coded(totals)


def _label_of(statement: Statement, engine: LargeEngine) -> str:
    """The column that holds the verdict."""
    labels, others = statement.labels, (statement.scores, statement.detector)
    if any(each is not None for each in others) or not isinstance(labels, str):
        raise StairError(
            f"the engine {engine.name} takes the verdict as a column of the data: give its name as "
            f"{option('labels')}; scores and detectors need the engine memory"
        )
    return labels


def _check_work(engine: LargeEngine, method: Method, data: object) -> None:
    folder_to_work_in = getattr(engine, "work", None)
    if folder_to_work_in is None:
        return
    work = Path(folder_to_work_in).expanduser().resolve()
    if isinstance(engine, Dask | Spark) and method.name != "stair":
        raise StairError(
            f"the method {method.name} keeps nothing in a folder with the engine {engine.name}; "
            f"leave {option('work')} out, or use the method stair"
        )
    if not isinstance(data, str | os.PathLike):
        return
    folder = Path(data).expanduser().resolve()
    if folder.is_dir() and work.is_relative_to(folder):
        raise StairError(
            f'the work folder is inside of the data, "{folder}", so that its files would be read '
            f"as data; choose another place with {option('work')}"
        )


def binned_note(coded: Coded, bins: int) -> tuple[str, ...]:
    """Which cuts are not exact; nothing where all are."""
    names = coded.coding.inexact
    if not names:
        return ()
    shown = ", ".join(names[:6]) + (f", … {len(names) - 6} more" if len(names) > 6 else "")
    return (f"cuts are at the bounds of up to {bins:,} bins in {shown}; others are exact",)
