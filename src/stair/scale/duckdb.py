"""Out of core on one machine: DuckDB reads the table, in parts, twice; then codes are enough."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from stair.data.arrays import described
from stair.data.databases import decimals
from stair.data.stream import VECTOR, Stream
from stair.data.values import typed
from stair.data.zones import was_in
from stair.engines.counting import n_cpus
from stair.progress import Progress, Words
from stair.scale.arrow import whole_numbers, words
from stair.scale.codes import writing_codes
from stair.scale.coding import Plan, make_plan
from stair.scale.options import Options
from stair.scale.profile import Profile
from stair.scale.raw import Batch, Raw, from_loaded
from stair.scale.rows import G

if TYPE_CHECKING:
    import pyarrow as pa

LOOKING: Final = "pass 1, looking at the columns"
BATCH_BYTES: Final = 32 << 20
WERE: Final = frozenset({"zoned", "clock", "duration", "described"})  # what is not plain any more


def look_at(stream: Stream, options: Options, say: Progress) -> Plan:
    """The first pass: what all columns hold."""
    wanted = options.wanted(stream.names, stream.source)
    with ThreadPoolExecutor(n_cpus()) as pool:
        profiles = _profiles(stream, wanted, pool, say)
    return make_plan(profiles, options, "duckdb", stream.names, stream.source, notes=stream.notes)


def write_codes(stream: Stream, plan: Plan, folder: Path, say: Progress) -> None:
    """The second pass: all rows as codes."""
    used = list(dict.fromkeys([plan.coder.label, *(f.source for f in plan.coding.fields)]))
    with ThreadPoolExecutor(n_cpus()) as pool, writing_codes(folder, plan, pool) as take:
        for batch in told_batches(stream, used, "pass 2, writing codes", say):
            take(plan.coder(batch, pool))


def _profiles(
    stream: Stream, names: Sequence[str], pool: ThreadPoolExecutor, say: Progress
) -> dict[str, Profile]:
    return profiles_of(told_batches(stream, names, LOOKING, say), names, pool)


def profiles_of(
    batches: Iterable[Batch], names: Sequence[str], pool: ThreadPoolExecutor
) -> dict[str, Profile]:
    """What columns hold, from some rows after the other."""
    found = {name: Profile() for name in names}
    for batch in batches:
        # Each column is a task of its own, and its parts come in order: the result is the same
        # for any number of threads.
        list(pool.map(partial(_add, found, batch), names))
    return found


def _add(found: dict[str, Profile], batch: Batch, name: str) -> None:
    found[name].add(batch[name], name, batch.types.get(name, ""))


def told_batches(stream: Stream, names: Sequence[str], what: str, say: Progress) -> Iterator[Batch]:
    started, n_rows = time.perf_counter(), 0
    types = {name: was for name in names if (was := stream.shape(name)) in WERE}
    types |= {name: was_in(stream.zone(name)) for name, was in types.items() if was == "zoned"}
    for part in stream.batches(names, rows_together(stream, names)):
        columns = zip(names, part.columns, strict=True)
        yield Batch({name: plain(array, stream.shape(name)) for name, array in columns}, types)
        n_rows += part.num_rows
        words = f"{what}: {n_rows:,} rows, {_rate(n_rows, time.perf_counter() - started)}"
        total = stream.rows_seen  # known after the first pass
        say(words if total is None else Words(words, n_rows / total))
    stream.rows_seen = n_rows


def rows_together(stream: Stream, names: Sequence[str]) -> int:
    """As many rows as fit in a batch, however long their texts are."""
    of_texts = stream.lengths(names).vector // VECTOR + 1
    together = BATCH_BYTES // (8 * len(names) + of_texts)
    return min(1 << 19, max(VECTOR, together // VECTOR * VECTOR))


class FileRows:
    """The rows of files or of a database, as they come from DuckDB."""

    def __init__(self, stream: Stream, say: Progress) -> None:
        self.names, self.source, self.notes = stream.names, stream.source, stream.notes
        self.stream, self._say = stream, say

    def gather(self, asked: G, columns: Sequence[str], what: str) -> G:
        found, first = asked.fresh(), 0
        for batch in told_batches(self.stream, columns, what, self._say):
            found.add(batch, first)
            first += batch.n_rows
        return found


def _rate(n_rows: int, seconds: float) -> str:
    return f"{n_rows / max(seconds, 1e-9):,.0f} rows/s"


def plain(array: pa.Array, shape: str) -> Raw:
    """A column as it comes from DuckDB."""
    if shape in ("date", "zoned"):
        return np.asarray(array.to_numpy(zero_copy_only=False)).view("datetime64[us]")
    if shape == "wide":
        return from_loaded((typed(["" if v is None else v for v in array.to_pylist()])[1], ""))[0]
    if shape == "decimal":
        return from_loaded(decimals(array.to_pylist()))[0]
    if shape == "described":
        return from_loaded(described(array.to_pylist()))[0]
    if shape in ("bool", "text"):
        return words(array)
    if import_module("pyarrow").types.is_integer(array.type):
        return whole_numbers(array)
    numbers: Raw = array.to_numpy(zero_copy_only=False)
    return numbers
