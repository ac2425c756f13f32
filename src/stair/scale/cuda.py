"""On a GPU: rows become codes in its memory, and every pass over them is a few kernels.

What is on the GPU already is looked at and coded there. What is not is read as the other engines
read it, a batch at a time: while one becomes codes the next is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.data.lots import lots_of
from stair.data.stream import open_stream
from stair.data.weights import Amounts
from stair.engines.counting import Block, n_cpus
from stair.engines.large import Cuda, read_memory
from stair.gpu.codes import Codes, division_of
from stair.gpu.counter import DeviceCounter
from stair.gpu.device import Chunk, Device, Feed
from stair.gpu.panels import NO_LABEL, Layout
from stair.progress import Progress
from stair.scale.coding import Coded, Coding, Plan, code_column, make_plan
from stair.scale.draw import CodeSample
from stair.scale.duckdb import LOOKING, FileRows, profiles_of, told_batches
from stair.scale.held import Held, held_table
from stair.scale.on_gpu import feed_of, feed_of_labels, profile_there
from stair.scale.options import Options, Weighing
from stair.scale.profile import Profile
from stair.scale.raw import Batch
from stair.scale.work import spill_folder

COUNTS: Final = 256 << 20  # bytes of counts that a pass makes, or an eighth of the memory
SPARE: Final = 0.9  # of the memory that is free: others want some too
DRAWN_AT_ONCE: Final = 1 << 22  # rows among which rows are drawn
CODING: Final = "pass 2, making codes"


class CudaCounter(DeviceCounter):
    """Counts on a GPU, from codes of which rows can be drawn."""

    @property
    def is_weighed(self) -> bool:
        """Whether rows have weights."""
        return self.codes.layout.is_weighed

    @property
    def heavy(self) -> DeviceCounter | None:
        """The same by the weights of rows, where these have some."""
        if not self.is_weighed:
            return None
        return DeviceCounter(self.codes, self.columns, len(self.totals), by_weight=True)

    def draw(self, most: int, seed: int) -> CodeSample:
        """At most so many rows, each as readily as the other."""
        n_rows, drawn, first = sum(self.totals), CodeSample(most, seed), 0
        # About so many more than are wanted have numbers up to this; the smallest of them stay.
        share = min(1.0, (most + 6 * most**0.5 + 64) / max(n_rows, 1))
        limit = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
        for chunk in self.codes.chunks():
            for start in range(0, chunk.n_rows, DRAWN_AT_ONCE):
                stop = min(start + DRAWN_AT_ONCE, chunk.n_rows)
                self._draw(drawn, chunk, start, stop, first, limit)
            first += chunk.n_rows
        return drawn

    def _draw(
        self, drawn: CodeSample, chunk: Chunk, start: int, stop: int, first: int, limit: np.uint64
    ) -> None:
        device = self.codes.device
        places = device.xp.arange(first + start, first + stop, dtype=np.uint64)
        labels = chunk.labels[start:stop]
        chosen = (lots_of(drawn.seed, places) <= limit) & (labels < len(self.totals))
        rows = device.xp.flatnonzero(chosen)
        if len(rows):
            codes = [device.there(column) for column in _codes_of(chunk, rows + start)]
            weights = device.there(chunk.weights[rows + start]) if self.is_weighed else None
            block = Block(codes, device.there(labels[rows]), weights)
            drawn.take(device.there(places[rows]), block)


def _codes_of(chunk: Chunk, rows: Array) -> Iterator[Array]:
    """The codes of some rows, column by column."""
    for panel, byte, width in chunk.layout.places:
        held = chunk.panel(panel).reshape(chunk.n_rows, chunk.layout.widths[panel])
        low = held[rows, byte]
        yield low if width == 1 else low + held[rows, byte + 1] * np.uint16(256)


@contextmanager
def opened_table(
    data: object, table: str | None, query: str | None, device: Device, say: Progress
) -> Iterator[FileRows | Held]:
    """All rows, from files or from a table that is held."""
    if not isinstance(data, str | os.PathLike):
        yield held_table(data, device, say)
        return
    with (
        spill_folder(None) as folder,
        open_stream(
            data, table=table, query=query, memory=read_memory(None) // 2, spill=folder
        ) as stream,
    ):
        yield FileRows(stream, say)


def code_rows(
    rows: FileRows | Held,
    options: Options,
    device: Device,
    memory: int,
    say: Progress,
    together: int | None = None,
    coding: Coding | None = None,
) -> tuple[Coded, CudaCounter]:
    """All rows as codes on the device. Bins may be given, so that engines can be compared."""
    names = options.wanted(rows.names, rows.source)
    there = rows.there if isinstance(rows, Held) else {}
    with ThreadPoolExecutor(n_cpus()) as pool:
        here = [name for name in names if name not in there]
        weighing, amounts = options.weights, Amounts()
        profiles = _look(rows, here, there, weighing, amounts, pool, say)
        if there:
            say(LOOKING)
        whole: dict[str, Profile] = {
            name: profile_there(device, there[name]) if name in there else profiles[name]
            for name in names
        }
        unit = None
        if weighing is not None:
            if weighing.column in there:
                amounts.add(there[weighing.column], device.xp)
            unit = weighing.scale(amounts).unit
        n_rows = whole[options.label].n_rows
        plan = make_plan(whole, options, "cuda", rows.names, rows.source, coding, rows.notes)
        layout = Layout.of(plan.coding.sizes, is_weighed=unit is not None)
        division = division_of(n_rows, layout.bytes_of_row, memory - counts_in(memory), together)
        codes = Codes(device, layout, division, 0 if unit is None else unit.exponent)
        if there:
            _code_there(codes, plan, rows, there, weighing, pool, say)
        else:
            fields = [f.source for f in plan.coding.fields]
            used = [options.label, *fields, *([] if weighing is None else [weighing.column])]
            batches = _batches(rows, list(dict.fromkeys(used)), CODING, say)
            for block, weights in _blocks(batches, plan, weighing, pool):
                uploaded = [Feed(device.here(each)) for each in block.codes]
                sent = None if weights is None else device.here(weights)
                codes.add(uploaded, Feed(device.here(block.labels)), sent)
        codes.end()
    counter = CudaCounter(codes, plan.coding.columns, len(plan.verdict.classes))
    return plan.coded(counter.totals, unit, codes.n_weightless), counter


def _look(
    rows: FileRows | Held,
    names: list[str],
    there: Mapping[str, Array],
    weighing: Weighing | None,
    amounts: Amounts,
    pool: ThreadPoolExecutor,
    say: Progress,
) -> dict[str, Profile]:
    """What the columns of the processor hold, and the weights where they are one of them."""
    wanted = names
    if weighing is not None and weighing.column not in there:
        wanted = list(dict.fromkeys([*names, weighing.column]))
    if not wanted:
        return {}

    def batches() -> Iterator[Batch]:
        for batch in _batches(rows, wanted, LOOKING, say):
            if weighing is not None and weighing.column in batch:
                amounts.add(weighing.of(batch))
            yield batch

    return profiles_of(batches(), names, pool)


def _batches(rows: FileRows | Held, names: list[str], what: str, say: Progress) -> Iterator[Batch]:
    if isinstance(rows, Held):
        return (batch for _, batch in rows.batches(names, what))
    return told_batches(rows.stream, names, what, say)


def _blocks(
    batches: Iterable[Batch], plan: Plan, weighing: Weighing | None, pool: ThreadPoolExecutor
) -> Iterator[tuple[Block, NDArray[np.float64] | None]]:
    """Each batch as codes, and the weights; the next is read while one becomes them."""

    def coded(batch: Batch) -> tuple[Block, NDArray[np.float64] | None]:
        block = plan.coder(batch, pool)
        if weighing is None:
            return block, None
        weights = weighing.of(batch)
        if len(weights) > len(block.labels):
            weights = weights[plan.coder.classes_of(batch) >= 0]
        return block, weights

    with ThreadPoolExecutor(1) as beside:
        coming = None
        for batch in batches:
            following = beside.submit(coded, batch)
            if coming is not None:
                yield coming.result()
            coming = following
        if coming is not None:
            yield coming.result()


def _code_there(
    codes: Codes,
    plan: Plan,
    rows: FileRows | Held,
    there: dict[str, Array],
    weighing: Weighing | None,
    pool: ThreadPoolExecutor,
    say: Progress,
) -> None:
    """Rows of which columns are on the device; what is not there comes a batch at a time."""
    assert isinstance(rows, Held)
    device, coding, label = codes.device, plan.coding, plan.coder.label
    feeds = {
        j: feed_of(device, there[field.source], coding, j)
        for j, field in enumerate(coding.fields)
        if field.source in there
    }
    labels = feed_of_labels(device, there[label], plan.coder) if label in there else None
    weights = None if weighing is None else there.get(weighing.column)
    others = [j for j in range(len(coding.fields)) if j not in feeds]
    used = [label] * (labels is None) + [coding.fields[j].source for j in others]
    if weighing is not None and weights is None:
        used.append(weighing.column)
    if not used:
        assert labels is not None
        say(CODING)
        codes.add([feeds[j] for j in range(len(coding.fields))], labels, weights)
        return
    for first, batch in rows.batches(list(dict.fromkeys(used)), CODING):
        stop = first + batch.n_rows
        coded = pool.map(partial(_coded, coding, batch), others)
        sent = {j: Feed(device.here(each)) for j, each in zip(others, coded, strict=True)}
        sent |= {j: feed.part(first, stop) for j, feed in feeds.items()}
        if labels is None:
            classes = plan.coder.classes_of(batch)
            bytes_of = np.where(classes < 0, NO_LABEL, classes).astype(np.uint8)
            tags = Feed(device.here(bytes_of))
        else:
            tags = labels.part(first, stop)
        own = None if weights is None else weights[first:stop]
        if weighing is not None and own is None:
            own = device.here(weighing.of(batch))
        codes.add([sent[j] for j in range(len(coding.fields))], tags, own)


def _coded(coding: Coding, batch: Batch, j: int) -> Array:
    return code_column(coding, j, batch)


def counts_in(memory: int) -> int:
    """Bytes of counts that are made at once within so much memory."""
    return min(COUNTS, memory // 8)


def memory_of(engine: Cuda, device: Device) -> int:
    """What of the device's memory may be used."""
    given = engine.bytes_of_memory
    return int(SPARE * device.room) if given is None else given
