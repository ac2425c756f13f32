"""Out of core on one machine: DuckDB reads the table, in parts, twice; then codes are enough."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from stair.engines.counting import n_cpus
from stair.io.stream import Stream
from stair.scale.arrow import words
from stair.scale.codes import writing_codes
from stair.scale.coding import Plan, make_plan
from stair.scale.options import Options, Progress
from stair.scale.profile import Batch, Profile, Raw
from stair.scale.sample import Look, Sample

BATCH_BYTES: Final = 32 << 20


def look_at(stream: Stream, options: Options, say: Progress) -> Plan:
    """The first pass: what all columns hold."""
    wanted = options.wanted(stream.names, stream.source)
    with ThreadPoolExecutor(n_cpus()) as pool:
        profiles = _profiles(stream, wanted, pool, say)
    return make_plan(profiles, options, "duckdb", len(stream.names) - 1, stream.source)


def write_codes(stream: Stream, plan: Plan, folder: Path, say: Progress) -> None:
    """The second pass: all rows as codes."""
    coding, label = plan.coding, plan.coder.label
    used = list(dict.fromkeys([label, *(field.source for field in coding.fields)]))
    with (
        ThreadPoolExecutor(n_cpus()) as pool,
        writing_codes(folder, coding.sizes, len(plan.verdict.classes), pool) as take,
    ):
        for batch in told_batches(stream, used, "pass 2, writing codes", say):
            take(plan.coder(batch, pool))


def _profiles(
    stream: Stream, names: Sequence[str], pool: ThreadPoolExecutor, say: Progress
) -> dict[str, Profile]:
    found = {name: Profile() for name in names}
    for batch in told_batches(stream, names, "pass 1, looking at the columns", say):
        # Each column is a task of its own, and its parts come in order: the result is the same
        # for any number of threads.
        list(pool.map(lambda name, batch=batch: found[name].add(batch[name], name), names))
    return found


def told_batches(stream: Stream, names: Sequence[str], what: str, say: Progress) -> Iterator[Batch]:
    started, n_rows = time.perf_counter(), 0
    together = min(1 << 19, max(1 << 11, BATCH_BYTES // (8 * len(names))))
    for part in stream.batches(names, together):
        yield {
            name: plain(array, stream.shape(name))
            for name, array in zip(names, part.columns, strict=True)
        }
        n_rows += part.num_rows
        say(f"{what}: {n_rows:,} rows, {_rate(n_rows, time.perf_counter() - started)}")


def sample_table(
    stream: Stream, options: Options, most: int, seed: int, say: Progress
) -> tuple[Look, list[str]]:
    """A look at all rows, and the columns that were looked at."""
    wanted = options.wanted(stream.names, stream.source)
    rng = np.random.default_rng(seed)
    look = Look(Profile(), Sample(most))
    for batch in told_batches(stream, wanted, "pass 1, drawing a sample", say):
        look.add(batch, options.label, rng)
    return look, wanted


def _rate(n_rows: int, seconds: float) -> str:
    return f"{n_rows / max(seconds, 1e-9):,.0f} rows/s"


def plain(array: Any, shape: str) -> Raw:
    """An Arrow column as we know columns."""
    if shape in ("int", "float", "wide"):
        numbers: Raw = array.to_numpy(zero_copy_only=False)
        return numbers
    if shape in ("date", "zoned"):
        return np.asarray(array.to_numpy(zero_copy_only=False)).view("datetime64[us]")
    return words(array)
