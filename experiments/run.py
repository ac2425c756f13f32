"""`stair reproduce`: find the data, compute what is not done yet, write tables and figures.

Results are kept one by one, so a run that is stopped goes on where it was. Two processes compute
at a time; only this one writes.
"""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments import settings
from experiments.data import Data, Source, find, names
from experiments.datasets import DataCorrupted, DataNotFound
from experiments.plan import QUESTIONS, labels_task, neighbors_of, question_data, tasks_for
from experiments.results import Results, Shape
from experiments.settings import Settings
from experiments.tasks import Store, Task
from stair import StairError
from stair.progress import ProgressLine

RESULTS = Path(__file__).resolve().parent / "results"
JOBS = 2
LOOKS_UP = 0.1  # seconds until a run that waits for results sees that it is stopped


@dataclass(frozen=True)
class Job:
    """A task and what it learns from; small enough to hand to another process."""

    task: Task
    source: Source
    neighbors: int | None
    outliers: tuple[int, ...] | None


def reproduce(
    questions: Iterable[str] = ("all",),
    *,
    data_dir: Path | None = None,
    traffic: Path | None = None,
    output: Path | None = None,
    quick: bool = False,
    fresh: bool = False,
    jobs: int = JOBS,
    quiet: bool = False,
) -> str:
    """Run the questions and write what they give; returns the claims as lines of text."""
    from experiments.write import write_all

    asked = _asked(questions)
    if jobs < 1:
        raise StairError(f"--jobs {jobs}; expected 1 or more")
    folder = output or (RESULTS / "quick" if quick else RESULTS)
    folder.mkdir(parents=True, exist_ok=True)
    known, source = settings.read(quick), Source(data_dir, traffic, quick)
    store = Store(folder / "cells")
    started = time.time()
    with ProgressLine(quiet=quiet) as progress:
        shapes = _shapes(known, asked, source, progress, quiet)
        _compute(known, asked, source, shapes, store, fresh, jobs, progress, quiet, started)
        progress("drawing the tables and figures")
        return write_all(folder, asked, Results(known, store, shapes), names(source))


def _asked(questions: Iterable[str]) -> list[str]:
    given = [question.casefold() for question in questions] or ["all"]
    unknown = next((q for q in given if q not in (*QUESTIONS, "all")), None)
    if unknown is not None:
        raise StairError(f"question {unknown!r}; expected {', '.join(QUESTIONS)} or all")
    return [q for q in QUESTIONS if q in given or "all" in given]


def _shapes(
    known: Settings, asked: list[str], source: Source, progress: ProgressLine, quiet: bool
) -> dict[str, Shape]:
    """The data sets that are here. One that is missing is said once, and its rows stay empty."""
    found: dict[str, Shape] = {}
    every = names(source)
    needed = {n for question in asked for n in question_data(known, question, every)}
    for name in (n for n in every if n in needed):
        progress(f"reading {name}")
        try:
            data = _data(name, source)
        except DataNotFound as error:
            if not quiet:
                print(f"stair: {name} is not run here. {error}", file=sys.stderr)
            continue
        except DataCorrupted as error:
            raise StairError(str(error)) from error
        n_outliers = None if data.is_multiclass else data.n_outliers
        found[name] = Shape(*data.X.shape, n_outliers, data.sum, data.made_up)
    if not found:
        raise StairError("no data was found; name its folder with --data-dir DIR")
    return found


def _compute(
    known: Settings,
    asked: list[str],
    source: Source,
    shapes: dict[str, Shape],
    store: Store,
    fresh: bool,
    jobs: int,
    progress: ProgressLine,
    quiet: bool,
    started: float,
) -> None:
    """Labels first, then all that learns from them; the largest data first, it takes longest."""
    wanted: dict[Task, None] = {}
    for question in asked:
        for name in question_data(known, question, list(shapes)):
            wanted.update(dict.fromkeys(tasks_for(known, question, name, shapes[name].rows)))
    ordered = sorted(wanted, key=lambda each: -shapes[each.data].rows)
    label_tasks: dict[Task, None] = {}
    for each in ordered:
        k = neighbors_of(known, each)
        if k is not None:
            label_tasks[labels_task(known, each.data, k)] = None

    def is_open(each: Task) -> bool:
        return fresh or store.get(each, shapes[each.data].sum) is None

    def job(each: Task) -> Job:
        k = neighbors_of(known, each)
        if k is None:
            return Job(each, source, None, None)
        record = store.get(labels_task(known, each.data, k), shapes[each.data].sum)
        assert record is not None
        return Job(each, source, k, tuple(record["result"]["outliers"]))

    total = len(ordered) + len(label_tasks)
    todo = [each for each in (*label_tasks, *ordered) if is_open(each)]
    done = total - len(todo)
    if done and not quiet:
        print(f"stair: {done} of {total} results are there already", file=sys.stderr)
    with _workers(jobs) as work:
        for stage in (label_tasks, ordered):
            waiting = [job(each) for each in stage if is_open(each)]
            for each, outcome in work(waiting):
                store.put(each, shapes[each.data].sum, outcome)
                done += 1
                progress(f"{done} of {total}: {each}")
                if not quiet and not sys.stderr.isatty():
                    took = f"{outcome['seconds']:.1f} s, {time.time() - started:.0f} s in all"
                    print(f"{done} of {total}: {each}: {took}", file=sys.stderr, flush=True)


# --- the work itself, here or in processes of their own -----------------------------------------


@cache
def _data(name: str, source: Source) -> Data:
    return find(name, source)


def _work(job: Job) -> dict[str, Any]:
    from experiments.methods import compute

    data = _data(job.task.data, job.source)
    labels = None
    if job.outliers is not None:
        labels = np.zeros(len(data.y), dtype=np.int64)
        labels[list(job.outliers)] = 1
    return compute(job.task, data, labels)


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start meanwhile do not hear Ctrl-C: it is for this one, which ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@contextmanager
def _workers(jobs: int) -> Iterator[Any]:
    """A function from jobs to (task, outcome) as they end."""
    if jobs == 1:
        yield lambda waiting: ((each.task, _work(each)) for each in waiting)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context)
    is_stopped = False

    def stop(*_: object) -> None:
        """An exception at any moment may come where the pool has locked a task, which then stays
        so, and its end is waited for without end. So it is raised where nothing is locked."""
        nonlocal is_stopped
        is_stopped = True

    # Being ended by another program is like Ctrl-C: the processes that compute end too.
    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}

    def run(waiting: list[Job]) -> Iterator[tuple[Task, dict[str, Any]]]:
        pending: dict[Future[dict[str, Any]], Task] = {}
        queue = iter(waiting)
        while True:
            if is_stopped:
                raise KeyboardInterrupt
            while len(pending) < 2 * jobs and (each := next(queue, None)) is not None:
                with _deaf():
                    pending[pool.submit(_work, each)] = each.task
            if not pending:
                return
            ended, _ = wait(pending, LOOKS_UP, return_when=FIRST_COMPLETED)
            for future in ended:
                yield pending.pop(future), future.result()

    try:
        yield run
        if is_stopped:
            raise KeyboardInterrupt
    except BaseException:
        for child in multiprocessing.active_children():
            child.kill()  # it would finish its task first, and nobody waits for that
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    pool.shutdown()
