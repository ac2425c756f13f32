"""A Summary of data that does not fit: the rows are read in parts, and never kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from stair.data.stream import files_of, open_stream
from stair.engines.counting import Counter
from stair.errors import StairError, option
from stair.learn.levels import Known
from stair.learn.methods import Learner
from stair.learn.validation import Check
from stair.rules.agreement import Score
from stair.rules.columns import Lists
from stair.rules.schema import Schema
from stair.scale.codes import CodesCounter, totals_of
from stair.scale.coding import Coded
from stair.scale.distilled import distill_rows
from stair.scale.draw import CodeSample
from stair.scale.duckdb import FileRows, look_at, write_codes
from stair.scale.options import (
    ENGINES,
    SAMPLE,
    Options,
    Progress,
    check_room,
    read_memory,
    rows_that_fit,
)
from stair.scale.rows import Rows
from stair.scale.rules import Learned, Limits, check_by_codes, learn_rules
from stair.scale.sample import learn_from_sample
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
from stair.verdict.labels import Labels

# Bytes of counts that one task of a worker may make.
COUNTS_ON_WORKERS: Final = 64 << 20

if TYPE_CHECKING:
    from stair.summary import Summary


class Drawing(Protocol):
    """Codes from which rows can be drawn."""

    def draw(self, most: int, seed: int, /) -> CodeSample:
        """At most so many rows, each as readily as the other."""


# What looks whether rules hold, from the codes that they were learned from.
Checking: TypeAlias = Callable[[Drawing, Coded, Learned], tuple[Coded, Learned]]


def unchecked(_: Drawing, coded: Coded, learned: Learned) -> tuple[Coded, Learned]:
    """For those who do not ask whether rules hold."""
    return coded, learned


def summarize_large(
    data: Any,
    labels: Any,
    scores: Any,
    detector: Any,
    *,
    engine: str,
    method: str,
    min_score: float,
    max_rule_length: int,
    max_total_length: int | None,
    positive: Any,
    negative: Any,
    outlier_kinds: bool,
    include: Collection[str] | None,
    exclude: Collection[str],
    kinds: Mapping[str, str] | None,
    time_parts: bool,
    time_zone: str | None,
    validate: int | None,
    random_state: int | None,
    table: str | None,
    query: str | None,
    name: str | None,
    say: Progress,
    memory: str | int | None,
    work: str | Path | None,
    bins: int,
    sample: int,
    client: Any,
    lists: Lists,
    others: dict[str, Any],
) -> Summary:
    """What `summarize` does with an engine other than memory."""
    if engine not in ENGINES:
        raise StairError(f"no engine {engine!r}; engines are {', '.join(ENGINES)}")
    _check(engine, labels, scores, detector, bins, sample)
    if work is not None:
        _check_work(engine, method, data, Path(work).expanduser().resolve())
    options = Options(
        labels, positive, None if include is None else tuple(include), tuple(exclude),
        dict(kinds or {}), time_parts, time_zone, others["time_windows"], bins, table, query,
        lists, negative, outlier_kinds,
    )  # fmt: skip
    limits = Limits(min_score, max_rule_length, max_total_length)
    settings = {
        "method": method,
        "min_score": min_score,
        "max_rule_length": max_rule_length,
        "max_total_length": max_total_length,
        "min_rows_per_value": lists.min_rows,
        "max_values": lists.max_values,
        "time_parts": time_parts,
        "time_zone": time_zone,
        "time_windows": others["time_windows"],
        "validate": validate,
        "engine": engine,
        "bins": bins,
        "random_state": random_state,
    }
    if method == "distilled":
        settings |= {name: others[name] for name in ("min_outliers", "effort", "time_limit")}
    if method != "stair" or validate != 0:
        settings |= {"sample": sample}

    def learner(schema: Schema, verdict: Labels) -> Learner:
        return Learner(
            schema, method, min_score, max_rule_length, max_total_length, verdict, say,
            random_state=random_state, lists=lists, list_codes=False, **others,
        )  # fmt: skip

    if method != "stair":
        learn = distill_rows if method == "distilled" else learn_from_sample
        with _opened(data, engine, options, sample, memory, work, client, say) as (rows, most):
            coded, learned = learn(rows, options, learner, most, random_state or 0, validate, say)
        return _summary(coded, learned, method, min_score, settings, name)

    def check(counter: Drawing, coded: Coded, learned: Learned) -> tuple[Coded, Learned]:
        if validate == 0:
            return coded, dataclasses.replace(learned, check="nobody asked for it")
        say("drawing rows to keep aside")
        most = min(sample, rows_that_fit(read_memory(memory), len(coded.names)))
        drawn = counter.draw(most, random_state or 0)
        learned = dataclasses.replace(learned, n_passes=learned.n_passes + 1)
        return check_by_codes(drawn, coded, learned, learner, validate)

    if engine == "dask":
        coded, learned = learn_from_frame(data, options, limits, client, say, work, check)
    elif engine == "spark":
        coded, learned = learn_from_spark(data, options, limits, say, check)
    else:
        memory = read_memory(memory)
        coded, learned = learn_from_files(data, options, limits, memory, work, say, check)
    return _summary(coded, learned, method, min_score, settings, name)


def fit_large(
    data: Any,
    label: Any,
    engine: str,
    limits: Limits,
    *,
    positive: Any,
    bins: int,
    memory: str | int | None,
    client: Any,
) -> tuple[Coded, Learned]:
    """What an estimator does with an engine other than memory: numbers only, labels as they are."""
    if engine not in ENGINES:
        raise StairError(f"no engine {engine!r}; engines are {', '.join(ENGINES)}")
    _check(engine, label, None, None, bins, SAMPLE)
    options = Options(label, positive, n_bins=bins, as_matrix=True)

    def say(_: str) -> None:
        return

    if engine == "dask":
        return learn_from_frame(data, options, limits, client, say)
    if engine == "spark":
        return learn_from_spark(data, options, limits, say)
    return learn_from_files(data, options, limits, read_memory(memory), None, say)


def learn_from_files(
    data: Any,
    options: Options,
    limits: Limits,
    memory: int,
    work: str | Path | None,
    say: Progress,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR through DuckDB, within so much memory. What an earlier run has done is found again."""
    _check_files(data)
    with prepared(data, options, memory, work, say) as (folder, coded):
        counter = CodesCounter(folder, coded.coding.columns, coded.coding.sizes, coded.totals)
        learned = _by_level(counter, coded, limits, memory // 6, say, folder)
        return check(counter, coded, learned)


def learn_from_frame(
    data: Any,
    options: Options,
    limits: Limits,
    client: Any,
    say: Progress,
    work: str | Path | None = None,
    check: Checking = unchecked,
) -> tuple[Coded, Learned]:
    """STAIR on a cluster, or on the threads of this process where there is none.

    With a folder to work in, what an earlier run has done is found again.
    """
    from stair.scale.dask import code_frame, connected, open_frame
    from stair.scale.parts import files_here, shared_folder

    with connected(client) as cluster:
        frame, source = open_frame(data)
        files = None if work is None else files_here(data)
        with shared_folder(work, files, frame, options, cluster) as folder:
            coded, counter = code_frame(frame, source, options, cluster, say, folder=folder)
            if folder is not None and files_here(data) != files:
                forget(folder)  # the codes may be of neither
                raise StairError(f"{source} changed while it was read; run again.")
            learned = _by_level(counter, coded, limits, COUNTS_ON_WORKERS, say, folder)
            return check(counter, coded, learned)


def learn_from_spark(
    data: Any, options: Options, limits: Limits, say: Progress, check: Checking = unchecked
) -> tuple[Coded, Learned]:
    """STAIR on Spark."""
    from stair.scale.spark import code_spark, open_spark

    coded, counter = code_spark(open_spark(data), options, say)
    try:
        learned = _by_level(counter, coded, limits, COUNTS_ON_WORKERS, say)
        return check(counter, coded, learned)
    finally:
        counter.close()


def _by_level(
    counter: Counter,
    coded: Coded,
    limits: Limits,
    counts_at_once: int,
    say: Progress,
    folder: Path | None = None,
) -> Learned:
    """The rules; levels that are done are kept in the folder and found there again."""
    known, keep = Known(), None
    if folder is not None:
        levels = Levels.at(folder, coded, limits.max_rule_length)
        known, keep = levels.load(), levels.save
    learned = learn_rules(counter, coded, limits, counts_at_once, say, known, keep)
    return dataclasses.replace(learned, n_passes=2 + known.n_passes)


@contextmanager
def _opened(
    data: Any,
    engine: str,
    options: Options,
    sample: int,
    memory: str | int | None,
    work: str | Path | None,
    client: Any,
    say: Progress,
) -> Iterator[tuple[Rows, int]]:
    """All rows, and how many of them may be held to learn from."""
    if engine == "dask":
        from stair.scale.dask import FrameRows, connected, open_frame

        with connected(client) as cluster:
            yield FrameRows(*open_frame(data), cluster, say), sample
        return
    if engine == "spark":
        from stair.scale.spark import SparkRows, open_spark

        yield SparkRows(open_spark(data), say), sample
        return
    _check_files(data)
    with (
        spill_folder(work) as folder,
        open_stream(
            data,
            table=options.table,
            query=options.query,
            memory=_for_duckdb(read_memory(memory)),
            spill=folder,
        ) as stream,
    ):
        wanted = options.wanted(stream.names, stream.source)
        most = min(sample, rows_that_fit(read_memory(memory), len(wanted)))
        check_room(read_memory(memory), stream, wanted, sample=most)
        yield FileRows(stream, say), most


def _check_files(data: Any) -> None:
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


def _check(engine: str, labels: Any, scores: Any, detector: Any, bins: int, sample: int) -> None:
    if scores is not None or detector is not None or not isinstance(labels, str):
        raise StairError(
            f"the engine {engine} takes the verdict as a column of the data: give its name as "
            f"{option('labels')}; scores and detectors need the engine memory"
        )
    if not 2 <= bins <= 65_000:
        raise StairError(f"{option('bins', bins)}; expected from 2 to 65,000")
    if sample < 100:
        raise StairError(f"{option('sample', sample)}; expected at least 100 rows")


def _check_work(engine: str, method: str, data: Any, work: Path) -> None:
    if engine == "spark":
        raise StairError(f"the engine spark keeps nothing in a folder; leave {option('work')} out")
    if engine == "dask" and method != "stair":
        raise StairError(
            f"the method {method} keeps nothing in a folder with the engine dask; leave "
            f"{option('work')} out, or use the method stair"
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


def _summary(
    coded: Coded,
    learned: Learned,
    method: str,
    min_score: float,
    settings: dict[str, Any],
    name: str | None,
) -> Summary:
    from stair.summary import Summary, library_versions

    rounds = {"rounds": learned.n_rounds} if learned.n_rounds else {}
    return Summary(
        rules=learned.rules,
        evidence=learned.evidence,
        rest=learned.rest,
        method=method,
        score=Score(learned.score),
        min_score=min_score,
        n_rows=sum(coded.totals),
        n_columns=len(coded.names) - 1,
        meaning=coded.meaning,
        source=name or coded.source,
        left_out=coded.left_out,
        notes=(*coded.notes, *binned_note(coded, settings["bins"])),
        settings=settings | {"passes": learned.n_passes} | rounds,
        versions=library_versions(),
        trace=learned.trace,
        certificate=learned.certificate,
        unexplained=learned.missed,
        codebook=coded.codebook,
        check=learned.check if isinstance(learned.check, Check) else None,
        unchecked=learned.check if isinstance(learned.check, str) else "",
        kinds=learned.kinds,
        further=learned.further,
        suspects=learned.suspects,
        frontier=learned.frontier,
        _tallies=learned.tallies,
    )
