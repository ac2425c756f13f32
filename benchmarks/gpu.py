"""The engine on a GPU: `python -m benchmarks.gpu [FILE [SECONDS [STEP…]]]`, on a machine with one.

First its rules, counts and traces are held against those of the processor on random tables. Then
it is measured. Each step may take so long and no longer, and one that did not end says so; results
are written after every step, with the name of the device. No step takes anything from another.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from stair.data.weights import weights_of
from stair.engines.counting import Block, MemoryCounter, Paths, nodes_of, only_root
from stair.gpu.cuda import on_device
from stair.learn.grow import leaves_of
from stair.learn.levels import JUST_AHEAD, LevelGrowth, grow_by_level, recount
from stair.scale.cuda import code_rows, counts_in
from stair.scale.duckdb import profiles_of
from stair.scale.held import Held, held_table
from stair.scale.options import Options, Weighing
from stair.scale.raw import Batch

RESULTS = Path(__file__).parent / "results"
LABEL = "flagged"
N_COLUMNS = 10
FLOOR = 0.999
SIZES = (10**6, 10**7, 10**8, 10**9)
# Sizes of random tables, and how many there are of each.
OF_TABLES = ((1, 4), (30, 26), (1000, 50), (30_000, 30), (10**6, 6), (10**7, 1), (12_000_000, 1))
DISTILLED = 190  # random tables of which rules are distilled
MARGIN = 20  # seconds that are left for whatever comes after


def _quiet(_: object) -> None:
    return


# --- the table that is measured -------------------------------------------------------------------


def planted(xp: Any, n_rows: int, n_columns: int = N_COLUMNS, flips: float = 0.0) -> dict[str, Any]:
    """Normal numbers of 32 bits with three kinds of outlier, some labels wrong, on the device."""
    rng = xp.random.Generator(xp.random.XORWOW(22))
    columns = {f"x{j}": rng.standard_normal(n_rows, dtype=np.float32) for j in range(n_columns)}
    x = list(columns.values())
    label = ((x[0] > 2.0) & (x[1] < 0)).astype(np.uint8)
    for one, other in (((x[2] < -2.0), (x[3] > 0.5)), ((x[4] > 1.5), (x[5] > 1.5))):
        label |= (one & other).astype(np.uint8)
        del one, other
    if flips:
        for start in range(0, n_rows, 1 << 26):
            wrong = rng.random(min(1 << 26, n_rows - start), dtype=np.float32) < flips
            label[start : start + (1 << 26)] ^= wrong.astype(np.uint8)
    return {**columns, LABEL: label}


def _part(table: dict[str, Any], n_rows: int) -> dict[str, Any]:
    return {name: column[:n_rows] for name, column in table.items()}


# --- learning, with the time of each stage --------------------------------------------------------


class Run:
    """One run by level, and what it took."""

    def __init__(
        self, device: Any, table: dict[str, Any], memory: int | None = None, bins: int = 1024,
        weights: str | None = None, **limits: Any,
    ) -> None:  # fmt: skip
        xp = device.xp
        free = int(xp.cuda.runtime.memGetInfo()[0])
        pool = xp.get_default_memory_pool()
        free += pool.free_bytes()
        memory = memory or int(0.9 * free)
        before = pool.used_bytes()
        with _peak(xp) as peak:
            started = time.perf_counter()
            held = held_table(table, device, _quiet)
            weighing = None if weights is None else Weighing(weights, weights)
            options = Options(
                LABEL, exclude=(weights,) if weights else (), n_bins=bins, weights=weighing
            )
            self.coded, self.rows = code_rows(held, options, device, memory, _quiet)
            self.counter: Any = self.rows.heavy or self.rows
            xp.cuda.get_current_stream().synchronize()
            self.binning = time.perf_counter() - started
            self.grow(counts_in(memory), **limits)
        self.peak = max(peak) - before
        self.bytes_here = self.counter.codes.bytes_here
        self.bytes_beside = self.counter.codes.bytes_beside

    def grow(self, counts_at_once: int, **limits: Any) -> None:
        """Growth and the last recount."""
        timed: list[tuple[int, float]] = []
        counter, count = self.counter, self.counter.count

        def watched(paths: Any, columns: Any) -> Any:
            started = time.perf_counter()
            found = count(paths, columns)
            timed.append((paths.n_slots, time.perf_counter() - started))
            return found

        counter.count = watched  # type: ignore[method-assign]
        started = time.perf_counter()
        wish = {"min_score": FLOOR, "max_rule_length": 10, **limits}
        self.found: LevelGrowth = grow_by_level(
            counter,
            positive=self.coded.positive,
            counts_at_once=counts_at_once,
            ahead=JUST_AHEAD,
            n_rows=None if self.counter is self.rows else sum(self.rows.totals),
            **wish,
        )
        self.growing = time.perf_counter() - started
        started = time.perf_counter()
        recount(counter, self.found.growth)
        self.recounting = time.perf_counter() - started
        del counter.count  # what it holds on the device goes when nobody has it any more
        self.timed = timed

    @property
    def row(self) -> dict[str, Any]:
        growth = self.found.growth
        counting = [seconds for _, seconds in self.timed]
        return {
            "binning": self.binning,
            "growth": self.growing,
            "seconds": self.binning + self.growing,
            "recount": self.recounting,
            "counting": sum(counting[:-1]),
            "passes": len(counting) - 1,
            "slots": [slots for slots, _ in self.timed[:-1]],
            "pass seconds": counting[:-1],
            "rules": len(list(growth.leaves())),
            "score": growth.steps[-1].score if growth.steps else 0.0,
            "codes MB": (self.bytes_here + self.bytes_beside) / 1e6,
            "beside MB": self.bytes_beside / 1e6,
            "peak MB": self.peak / 1e6,
        }


@contextmanager
def _peak(xp: Any) -> Iterator[list[int]]:
    """The most bytes of the pool that were in use at once."""
    pool = xp.get_default_memory_pool()
    found = [pool.used_bytes()]

    class Watch(xp.cuda.MemoryHook):  # type: ignore[misc, name-defined]
        name = "watch"

        def malloc_postprocess(self, **_: Any) -> None:
            found[0] = max(found[0], pool.used_bytes())

    with Watch():
        yield found


def _steps(growth: Any) -> Any:
    return growth.steps, growth.kept, leaves_of(growth, 0)


# --- equality -------------------------------------------------------------------------------------


def equal(device: Any, results: dict[str, Any]) -> dict[str, Any]:
    """Random tables: kinds of columns, missing values, classes; on the device, beside it, both."""
    found = {
        "tables": 0,
        "refused": 0,
        "rows": 0,
        "splits": 0,
        "streamed": 0,
        "classes": 0,
        "mixed": 0,
        "weighed": 0,
    }
    results["equal"] = found
    sizes = [size for size, n in OF_TABLES for _ in range(n)]
    for number, most in enumerate(sizes):
        rng = np.random.default_rng([22, number])
        n_rows = most if most >= 10**7 else int(rng.integers(max(1, most // 3), most + 1))
        _equal(device, rng, n_rows, found)
        found["tables"] += 1
        found["rows"] += n_rows
    return found


def _equal(device: Any, rng: np.random.Generator, n_rows: int, found: dict[str, int]) -> None:
    n_classes = int(rng.choice([2, 2, 2, 3, 4, 7]))
    table = random_table(rng, n_rows, n_classes)
    is_mixed = any(each.dtype == object for each in table.values())
    there = {
        name: column if column.dtype == object else device.xp.asarray(column)
        for name, column in table.items()
    }
    bins = int(rng.choice([1024, 1024, 40, 255]))
    is_weighed = bool(rng.random() < 0.5)
    if is_weighed:
        table["money"] = random_weights(rng, n_rows)
        there["money"] = device.xp.asarray(table["money"])
    weighing = Weighing("money", "money") if is_weighed else None
    options = Options(LABEL, n_bins=bins, weights=weighing)
    together, memory = None, 1 << 32
    if rng.random() < 0.4 and n_rows < 10**6:
        together = 256 * int(rng.integers(1, 9))
        memory = (
            80 if is_weighed else 60
        ) * together + 2 * n_rows  # some of it has to come through
    one = held_table(table, device, _quiet)
    try:
        coded, here, mine_by = _on_processor(one, options)
    except Exception as error:  # a table that is refused must be refused there too
        try:
            code_rows(held_table(there, device, _quiet), options, device, memory, _quiet, together)
        except type(error) as same:
            assert str(same).replace("cuda", "memory") == str(error).replace("cuda", "memory")
            found["refused"] += 1
            return
        raise
    given = coded.coding if n_rows > 1 << 23 else None  # of more rows some are drawn for the bins
    again, counter = code_rows(
        held_table(there, device, _quiet), options, device, memory, _quiet, together, given
    )
    assert again.coding.edges == coded.coding.edges, "bins"
    assert counter.totals == here.totals, "totals"
    wish: dict[str, Any] = {
        "min_score": float(rng.choice([0.8, 0.95, 1.0])), "positive": coded.positive,
        "max_rule_length": 3 if n_rows >= 10**6 else 6,
        "max_total_length": 12 if n_rows >= 10**6 else 150,
    }  # fmt: skip
    wish["n_rows"] = sum(here.totals) if is_weighed else None
    its_by = counter.heavy or counter
    assert its_by.totals == mine_by.totals, "totals by weight"
    mine, its = grow_by_level(mine_by, **wish), grow_by_level(its_by, **wish)
    assert _steps(mine.growth) == _steps(its.growth), "growth"
    columns = range(len(here.columns))
    for one_counter, other in ((here, counter), (mine_by, its_by)):
        assert recount(one_counter, mine.growth) == recount(other, its.growth), "recount"
        whole = one_counter.count(only_root(), columns)
        assert np.array_equal(whole, other.count(only_root(), columns)), "counts"
    found["weighed"] += is_weighed
    found["splits"] += len(its.growth.steps)
    found["streamed"] += counter.codes.bytes_beside > 0
    found["classes"] = max(found["classes"], len(counter.totals))
    found["mixed"] += is_mixed


def random_table(rng: np.random.Generator, n_rows: int, n_classes: int) -> dict[str, np.ndarray]:
    """Columns of many kinds, and labels that have something to do with them."""
    columns: dict[str, np.ndarray] = {}
    for j in range(int(rng.integers(1, 9))):
        kind = rng.choice(["f4", "f8", "few", "i4", "i8", "u1", "wide", "flag", "words"])
        if kind == "words" and n_rows > 10**6:
            kind = "few"
        normal = rng.normal(size=n_rows)
        if kind in ("f4", "f8"):
            column = np.round(normal * 50, int(rng.integers(0, 5))).astype(kind)
        elif kind == "few":
            column = np.round(normal * 2)
        elif kind == "wide":
            column = rng.integers(2**60, 2**61, 50)[rng.integers(0, 50, n_rows)]
        elif kind == "flag":
            column = normal > 0.3
        elif kind == "words":
            names = np.array(["red", "green", "blue", "grey", None], dtype=object)
            column = names[rng.integers(0, 5, n_rows)]
        else:
            column = np.clip(np.abs(normal * 40), 0, 127).astype(kind)
        if column.dtype.kind == "f":
            for gone in (np.nan, np.inf, -np.inf):
                column[rng.random(n_rows) < rng.choice([0, 0, 0.05])] = gone
        columns[f"x{j}"] = column
    label = np.zeros(n_rows, dtype=np.int64)
    for k in range(1, n_classes):
        name = str(rng.choice(list(columns)))
        values = columns[name]
        if values.dtype == object:
            label[values == "red"] = k
        elif n_rows:
            label[values > np.sort(values)[int(n_rows * rng.uniform(0.6, 0.98))]] = k
    wrong = rng.random(n_rows) < rng.choice([0, 0.02, 0.1])
    label[wrong] = rng.integers(0, n_classes, int(wrong.sum()))
    if rng.random() < 0.2:
        return {**columns, LABEL: np.where(rng.random(n_rows) < 0.1, np.nan, label)}
    return {**columns, LABEL: label}


def random_weights(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Whole numbers, money, floats of 32 bits, powers of two; some rows count for nothing."""
    kind = int(rng.integers(5))
    if kind == 0:
        found = rng.integers(0, 5, n_rows)
    elif kind == 1:
        found = np.round(rng.exponential(100, n_rows), 2)
    elif kind == 2:
        found = rng.exponential(size=n_rows).astype(np.float32)
    elif kind == 3:
        found = 2.0 ** rng.integers(-4, 4, n_rows)
    else:
        found = rng.exponential(size=n_rows) * 10.0 ** rng.integers(-9, 10)
    found[rng.random(n_rows) < rng.choice([0, 0.1])] = 0
    return found


class WeightCounter:
    """Sums of weights by code and class, by numpy: floats of 64 bits hold them exactly."""

    def __init__(self, counter: MemoryCounter, block: Block, weights: np.ndarray) -> None:
        self.columns, self.sizes = counter.columns, counter.sizes
        self._block, self._weights = block, weights.astype(np.float64)
        n_classes = len(counter.totals)
        sums = np.bincount(block.labels, self._weights, n_classes)
        self.totals = tuple(sums.astype(np.int64).tolist())

    def count(self, paths: Paths, columns: Any) -> np.ndarray:
        """As any counter does."""
        slots = paths.slot[nodes_of(self._block, paths)]
        rows, n_classes = np.flatnonzero(slots >= 0), len(self.totals)
        labels, weights = self._block.labels[rows], self._weights[rows]
        found = []
        for j in columns:
            place = slots[rows].astype(np.int64) * self.sizes[j] + self._block.codes[j][rows]
            length = paths.n_slots * self.sizes[j] * n_classes
            sums = np.bincount(place * n_classes + labels, weights, length)
            found.append(sums.reshape(paths.n_slots, self.sizes[j], n_classes))
        return np.concatenate(found, axis=1).astype(np.int64)


def _on_processor(held: Held, options: Options) -> tuple[Any, MemoryCounter, Any]:
    """The same table by the readers and the counter of the processor, in one part; and by weight,
    where rows have some."""
    from stair.scale.coding import make_plan

    batch = Batch(
        {name: raw for name, (raw, _) in held.here.items()},
        {name: was for name, (_, was) in held.here.items()},
    )
    names = options.wanted(held.names, "")
    weights = unit = None
    if options.weights is not None:
        given, _ = weights_of(options.weights.of(batch), options.weights.name)
        weights, unit = given.whole, given.unit
    with ThreadPoolExecutor(1) as pool:
        profiles = profiles_of([batch], names, pool)
    plan = make_plan(profiles, options, "memory", held.names, "")
    block = plan.coder(batch)
    n_classes, n_weightless = len(plan.verdict.classes), 0
    if weights is not None:
        weights = weights[plan.coder.classes_of(batch) >= 0]
        counts = weights > 0
        n_weightless, weights = int((~counts).sum()), weights[counts]
        block = Block([each[counts] for each in block.codes], block.labels[counts])
    counter = MemoryCounter(
        plan.coding.columns, plan.coding.sizes, block.codes, block.labels, n_classes
    )
    heavy = counter if weights is None else WeightCounter(counter, block, weights)
    return plan.coded(counter.totals, unit, n_weightless), counter, heavy


# --- measuring ------------------------------------------------------------------------------------


def bandwidth(device: Any, _: dict[str, Any]) -> dict[str, Any]:
    """Of a copy on the device: bytes read and written."""
    xp = device.xp
    source = xp.random.default_rng(1).random(1 << 31, dtype=np.float32)
    target = xp.empty_like(source)
    seconds = _events(xp, lambda: xp.copyto(target, source), 11)
    return {"copy TB/s": 2 * source.nbytes / statistics.median(seconds) / 1e12, "seconds": seconds}


def _events(xp: Any, work: Callable[[], object], times: int) -> list[float]:
    """Seconds of some work on the device, after it was done once."""
    work()
    found = []
    for _ in range(times):
        first, last = xp.cuda.Event(), xp.cuda.Event()
        first.record()
        work()
        last.record()
        last.synchronize()
        found.append(xp.cuda.get_elapsed_time(first, last) / 1000)
    return found


def planted_rows(device: Any, results: dict[str, Any]) -> list[dict[str, Any]]:
    """Float32 on the device: bins and growth, full passes, memory; the second of two runs."""
    rows: list[dict[str, Any]] = []
    results["planted"] = rows
    whole = planted(device.xp, max(SIZES))
    for n_rows in SIZES:
        table = _part(whole, n_rows)
        first = Run(device, table).row
        run = Run(device, table)
        row = {"rows": n_rows, **run.row, "first": first["seconds"]}
        passes = _full_passes(device, run)
        n_bytes = n_rows * (1 + 2 * N_COLUMNS)
        row |= {"full pass": passes, "full pass TB/s": n_bytes / statistics.median(passes) / 1e12}
        if results.get("bandwidth"):
            row["of copy"] = row["full pass TB/s"] / results["bandwidth"]["copy TB/s"]
        if n_rows == max(SIZES):
            row["kernels"] = {
                "growth": _kernels(device, partial(run.grow, 256 << 20)),
                "full pass": _kernels(
                    device, partial(run.counter._count, only_root(), range(N_COLUMNS))
                ),
                "binning": _kernels(device, partial(Run, device, table)),
            }
        rows.append(row)
        _print(row)
        run = None  # type: ignore[assignment]
    rows[-1]["stages"] = _stages(device, whole)
    return rows


def _full_passes(device: Any, run: Run) -> list[float]:
    counter, columns = run.counter, range(N_COLUMNS)
    return _events(device.xp, lambda: counter._count(only_root(), columns), 7)


def _kernels(device: Any, work: Callable[[], object]) -> list[Any]:
    """What some work spends where, by the names of kernels: launches and milliseconds."""
    from stair.gpu.cuda import Launches

    xp, found = device.xp, []
    launch = Launches._launch

    def watched(self: Any, name: str, *args: Any, **named: Any) -> None:
        first, last = xp.cuda.Event(), xp.cuda.Event()
        first.record()
        launch(self, name, *args, **named)
        last.record()
        last.synchronize()
        found.append((name, xp.cuda.get_elapsed_time(first, last)))

    Launches._launch = watched  # type: ignore[method-assign]
    try:
        work()
    finally:
        Launches._launch = launch  # type: ignore[method-assign]
    sums: dict[str, list[float]] = {}
    for name, ms in found:
        sums.setdefault(name, []).append(ms)
    return [[name, len(ms), sum(ms)] for name, ms in sums.items()]


def _stages(device: Any, table: dict[str, Any]) -> dict[str, float]:
    """Where the time of binning goes, on the processor's clock."""
    from stair.scale import cuda, edges

    xp, found = device.xp, {"profile": 0.0, "edges": 0.0, "codes": 0.0}
    places = ((cuda, "profile_there", "profile"), (edges, "_edges", "edges"),
              (cuda.Codes, "add", "codes"))  # fmt: skip
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]

    def watched(what: str, work: Any) -> Any:
        def timed(*args: Any, **named: Any) -> Any:
            xp.cuda.get_current_stream().synchronize()
            started = time.perf_counter()
            result = work(*args, **named)
            xp.cuda.get_current_stream().synchronize()
            found[what] += time.perf_counter() - started
            return result

        return timed

    for owner, name, what in places:
        setattr(owner, name, watched(what, getattr(owner, name)))
    try:
        Run(device, table)
    finally:
        for owner, name, work in kept:
            setattr(owner, name, work)
    return found


def noisy(device: Any, _: dict[str, Any]) -> dict[str, Any]:
    """3% of the labels wrong, and as many rules as a total length of 2,000 allows."""
    table = planted(device.xp, max(SIZES), flips=0.03)
    run = Run(device, table, min_score=0.99, max_rule_length=6, max_total_length=2000)
    first = run.row
    run.grow(256 << 20, min_score=0.99, max_rule_length=6, max_total_length=2000)
    counted = sum(each.n_counted for each in run.found.passes)
    return {**run.row, "first": first["growth"], "counted": counted,
            "kernels": None}  # fmt: skip


def weighed(device: Any, _: dict[str, Any]) -> dict[str, Any]:
    """10⁹ rows with weights, floats of 32 bits."""
    table = planted(device.xp, max(SIZES))
    rng = device.xp.random.Generator(device.xp.random.XORWOW(23))
    table["money"] = rng.standard_normal(max(SIZES), dtype=np.float32)
    device.xp.abs(table["money"], out=table["money"])
    first = Run(device, table, weights="money").row
    return {**Run(device, table, weights="money").row, "first": first["seconds"]}


def wide(device: Any, _: dict[str, Any]) -> dict[str, Any]:
    """10⁸ rows × 100 columns."""
    table = planted(device.xp, 10**8, 100)
    first = Run(device, table).row
    return {**Run(device, table).row, "first": first["seconds"]}


def beyond(device: Any, _: dict[str, Any]) -> list[dict[str, Any]]:
    """Codes that do not fit into the memory that is given come through; the rules are the same."""
    table = planted(device.xp, 10**8)
    rows = []
    whole = Run(device, table)
    expected = _steps(whole.found.growth)
    rows.append({"memory MB": None, **whole.row})
    whole = None  # type: ignore[assignment]
    for memory in (2 * 10**9, 5 * 10**8):
        Run(device, table, memory=memory)
        run = Run(device, table, memory=memory)
        assert _steps(run.found.growth) == expected
        rows.append({"memory MB": memory / 1e6, **run.row})
    return rows


# --- distilled rules ------------------------------------------------------------------------------


def distilled_equal(device: Any, results: dict[str, Any]) -> dict[str, Any]:
    """Random tables of numbers: all that is said of distilled rules, there and here."""
    from stair import Cuda, DistilledStair, StairError, summarize

    found = {"tables": 0, "refused": 0, "rounds": 0, "rules": 0, "weighed": 0, "mixed": 0}
    results["distilled equal"] = found
    for number in range(DISTILLED):
        rng = np.random.default_rng([23, number])
        n_rows = int(rng.choice([300, 3000, 20_000, 300_000], p=[0.3, 0.4, 0.2, 0.1]))
        n_classes = int(rng.choice([2, 2, 2, 3]))
        table = random_table(rng, n_rows, n_classes)
        if number % 3:  # else words stay with the processor
            table = {name: column for name, column in table.items() if column.dtype != object}
        there = {
            name: column if column.dtype == object else device.xp.asarray(column)
            for name, column in table.items()
        }
        weights = random_weights(rng, n_rows) if rng.random() < 0.4 else None
        positive = 1 if weights is not None else None
        wish = {
            "labels": LABEL, "engine": Cuda(sample=int(rng.choice([200, 500]))),
            "method": DistilledStair(
                min_score=float(rng.choice([0.3, 0.6])), effort="fast", max_total_length=12
            ),
            "validate": int(rng.choice([0, 0, 2])), "positive": positive,
        }  # fmt: skip
        said = []
        for data in (table, there):
            if weights is not None:
                wish["weights"] = weights if data is table else device.xp.asarray(weights)
            try:
                each = summarize(data, **wish)  # type: ignore[arg-type]
            except StairError as error:
                said.append(str(error))
            else:
                said.append([
                    str(each.rules), each.score, each.evidence, each.certificate, each.kinds,
                    each.frontier, each.check, each.notes, each.rules.totals, each.weighed,
                    each.rest, each.further,
                ])  # fmt: skip
        assert said[0] == said[1]
        found["tables"] += 1
        found["refused"] += isinstance(said[0], str)
        found["weighed"] += weights is not None and not isinstance(said[0], str)
        is_mixed = any(column.dtype == object for column in table.values())
        found["mixed"] += is_mixed and not isinstance(said[0], str)
        found["rules"] += 0 if isinstance(said[0], str) else len(said[0][0].splitlines())
        found["rounds"] += not isinstance(said[0], str) and "round" in str(said[0][7])
    return found


def taken(device: Any, _: dict[str, Any]) -> dict[str, Any]:
    """Tables of other libraries that are on the device: rules as of the same table in memory."""
    from importlib.util import find_spec

    from stair import Cuda, summarize

    xp = device.xp
    table = {name: device.there(each) for name, each in planted(xp, 50_000, flips=0.01).items()}
    weights = np.abs(table["x9"]) + np.float32(0.1)
    found: dict[str, Any] = {}

    def said(data: Any, **beside: Any) -> list[Any]:
        each = summarize(data, engine=Cuda(), min_score=0.7, validate=0, **beside)
        return [str(each.rules), each.score, each.evidence, each.notes, each.rules.totals]

    for method in ("stair", "distilled"):
        expected = said(table, labels=LABEL, method=method)
        by_weight = said(table, labels=LABEL, method=method, weights=weights)
        if find_spec("torch") is not None:
            torch = __import__("torch")
            of_torch = {name: torch.from_numpy(each).cuda() for name, each in table.items()}
            assert said(of_torch, labels=LABEL, method=method) == expected, "torch"
            heavy = torch.from_numpy(weights).cuda()
            again = said(of_torch, labels=LABEL, method=method, weights=heavy)
            assert again == by_weight, "torch, weights"
            bare = {name: _Bare(each) for name, each in of_torch.items()}
            assert said(bare, labels=LABEL, method=method) == expected, "DLPack"
            found["torch"] = torch.__version__
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # else JAX takes all of the memory
        if find_spec("jax") is not None:
            found["jax"] = _by_jax(table, said, expected, method)
        if find_spec("cudf") is not None:
            cudf = __import__("cudf")
            assert said(cudf.DataFrame(table), labels=LABEL, method=method) == expected, "cudf"
            found["cudf"] = cudf.__version__
    return found


class _Bare:
    """A tensor that says no more of itself than DLPack asks."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **named: Any) -> Any:
        return self._tensor.__dlpack__(**named)

    def __dlpack_device__(self) -> Any:
        return self._tensor.__dlpack_device__()


def _by_jax(table: dict[str, Any], said: Any, expected: Any, method: str) -> str:
    jax = __import__("jax")
    if jax.default_backend() != "gpu":
        return f"{jax.__version__}, which sees no GPU"
    of_jax = {name: jax.numpy.asarray(each) for name, each in table.items()}
    assert said(of_jax, labels=LABEL, method=method) == expected, "jax"
    return str(jax.__version__)


def distilled(device: Any, _: dict[str, Any]) -> list[dict[str, Any]]:
    """10⁸ rows × 10 columns: rules on all rows, and from 100,000 of them alone."""
    from stair import Cuda, summarize
    from stair.progress import telling

    rows = []
    for flips in (0.0, 0.002):
        table = planted(device.xp, 10**8, flips=flips)
        floor = 0.95 if flips == 0 else 0.8
        for validate in (0, None):
            said: list[Any] = []
            started = time.perf_counter()

            def say(words: Any, said: list[Any] = said, started: float = started) -> None:
                said.append((round(time.perf_counter() - started, 2), str(words)))

            with telling(say):
                found = summarize(
                    table, labels=LABEL, engine=Cuda(), min_score=floor, validate=validate
                )
            seconds = time.perf_counter() - started
            rows.append({
                "rows": 10**8, "wrong labels": flips, "floor": floor, "seconds": seconds,
                "score": found.score, "length": found.rules.total_length,
                "rules": len(found.rules), "check": validate is None, "said": said,
                "notes": list(found.notes),
            })  # fmt: skip
            _print(rows[-1])
        drawn = np.sort(np.random.default_rng(5).choice(10**8, 100_000, replace=False))
        places = device.xp.asarray(drawn)
        some = {name: device.there(column[places]) for name, column in table.items()}
        started = time.perf_counter()
        alone = summarize(some, labels=LABEL, min_score=floor, validate=0)
        rows.append({
            "rows": 100_000, "wrong labels": flips, "floor": floor, "of a sample": True,
            "seconds": time.perf_counter() - started, "score": alone.score,
            "length": alone.rules.total_length, "rules": len(alone.rules),
            "on all rows": _score_there(device, table, alone.rules),
        })  # fmt: skip
        _print(rows[-1])
    return rows


def _score_there(device: Any, table: dict[str, Any], rules: Any) -> float:
    """F1 of rules for outliers on all rows of the device, counted clause by clause."""
    xp = device.xp
    flagged = xp.zeros(len(table[LABEL]), dtype=bool)
    for rule in rules:
        covered = xp.ones(len(flagged), dtype=bool)
        for clause in rule.clauses:
            values = table[clause.feature]
            covered &= (values > clause.low) & (values <= clause.high)
        flagged |= covered
    is_outlier = table[LABEL] > 0
    both = int((flagged & is_outlier).sum())
    return 2 * both / max(1, int(flagged.sum()) + int(is_outlier.sum()))


# --- files ----------------------------------------------------------------------------------------


def files(device: Any, results: dict[str, Any]) -> list[dict[str, Any]]:
    """From Parquet files, end to end, by each engine; and from memory, where it fits."""
    return _files(device, results, "files", (10**6, 10**7, 3 * 10**7))


def large_files(device: Any, results: dict[str, Any]) -> list[dict[str, Any]]:
    """The same for 10⁸ rows."""
    return _files(device, results, "large files", (10**8,))


def memory(device: Any, _: dict[str, Any]) -> list[dict[str, Any]]:
    """The engine memory on 10⁷ rows, with exact cuts."""
    here = {name: device.there(each) for name, each in planted(device.xp, 10**7).items()}
    return [{"rows": 10**7, "from": "memory", **_timed(here, "memory")}]


def _files(
    device: Any, results: dict[str, Any], name: str, sizes: tuple[int, ...]
) -> list[dict[str, Any]]:
    import tempfile

    from stair import Cuda, DuckDB

    rows: list[dict[str, Any]] = []
    results[name] = rows
    whole = planted(device.xp, max(sizes))
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "data"
        n_there = 0
        for n_rows in sizes:
            started = time.perf_counter()
            _write(device, whole, folder, n_there, n_rows)
            n_there = n_rows
            wrote = time.perf_counter() - started
            n_bytes = sum(each.stat().st_size for each in folder.iterdir())
            rows.append({"rows": n_rows, "writing": wrote, "MB": n_bytes / 1e6})
            for engine in (Cuda(), DuckDB(memory="32GB")):
                rows.append({"rows": n_rows, "from": "files", **_timed(str(folder), engine)})
                _print(rows[-1])
            here = {each: device.there(column[:n_rows]) for each, column in whole.items()}
            rows.append({"rows": n_rows, "from": "memory", **_timed(here, Cuda())})
            _print(rows[-1])
            if n_rows <= 10**6:
                rows.append({"rows": n_rows, "from": "memory", **_timed(here, "memory")})
                _print(rows[-1])
    return rows


def _timed(data: Any, engine: Any) -> dict[str, Any]:
    """A run of the method stair, and when each stage of it began."""
    from stair import summarize
    from stair.progress import telling

    began: dict[str, float] = {}
    started = time.perf_counter()

    def say(words: Any) -> None:
        began.setdefault(str(words).split(":")[0].split(",")[0], time.perf_counter() - started)

    with telling(say):
        found = summarize(
            data, labels=LABEL, engine=engine, method="stair", min_score=FLOOR, validate=0
        )
    return {
        "engine": getattr(engine, "name", engine), "seconds": time.perf_counter() - started,
        "began": began, "score": found.score, "rules": len(found.rules), "said": str(found.rules),
    }  # fmt: skip


def _write(device: Any, table: dict[str, Any], folder: Path, first: int, last: int) -> None:
    """Files of a million rows each, from the columns of the device."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(exist_ok=True)

    def write(start: int, part: dict[str, Any]) -> None:
        pq.write_table(pa.table(part), folder / f"part-{start // 10**6:05d}.parquet")

    with ThreadPoolExecutor(16) as pool:
        waiting = []
        for start in range(first, last, 10**6):
            stop = min(start + 10**6, last)
            part = {name: np.array(device.there(each[start:stop])) for name, each in table.items()}
            waiting.append(pool.submit(write, start, part))
        for each in waiting:
            each.result()


# --- the steps ------------------------------------------------------------------------------------

# Each step by its name, and the seconds that it may take.
STEPS: dict[str, tuple[Callable[..., Any], int]] = {
    "bandwidth": (bandwidth, 20),
    "equal": (equal, 200),
    "planted": (planted_rows, 60),
    "noisy": (noisy, 60),
    "weighed": (weighed, 40),
    "wide": (wide, 40),
    "beyond": (beyond, 40),
    "distilled equal": (distilled_equal, 330),
    "taken": (taken, 60),
    "distilled": (distilled, 90),
    "files": (files, 120),
    "large files": (large_files, 150),
    "memory": (memory, 100),
}


class TooLong(Exception):  # noqa: N818 - it is said in the results
    """A step took longer than it may."""


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "gpu.json"
    left = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    wanted = sys.argv[3:] or list(STEPS)
    end = time.monotonic() + left
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    with on_device(0) as device:
        results["device"] = about(device)
        _print(results["device"])
        for name in wanted:
            work, most = STEPS[name]
            most = int(min(most, end - time.monotonic() - MARGIN))
            results[name] = _within(most, work, device, results, name)
            path.write_text(json.dumps(results, indent=1, default=float) + "\n")
            _print({name: results[name]})
            device.xp.get_default_memory_pool().free_all_blocks()


def _within(most: int, work: Callable[..., Any], device: Any, results: Any, name: str) -> Any:
    """What a step found, or why it found nothing."""
    if most <= 0:
        return {"left out": "no time was left"}

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(most)
    started = time.perf_counter()
    try:
        return work(device, results)
    except TooLong:
        return {"left out": f"not done in {most} s", "by then": results.get(name)}
    except Exception as error:
        import traceback

        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}", "by then": results.get(name)}
    finally:
        signal.alarm(0)
        print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)


def about(device: Any) -> dict[str, Any]:
    """What the machine is."""
    import platform

    runtime = device.xp.cuda.runtime
    return {
        "name": device.name,
        "memory GB": runtime.memGetInfo()[1] / 1e9,
        "driver": runtime.driverGetVersion(),
        "cupy": device.xp.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "processors": len(os.sched_getaffinity(0)),
    }


def _print(found: Any) -> None:
    print(json.dumps(found, default=float)[:1500], flush=True)


if __name__ == "__main__":
    main()
