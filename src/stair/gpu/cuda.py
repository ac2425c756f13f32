"""A GPU by CuPy: how the kernels are launched, and what can go wrong, each in one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.data.packages import Foreign, optional, reason
from stair.errors import StairError, option
from stair.gpu.device import (
    NOTHING,
    REAL,
    UNSIGNED,
    Chunk,
    Extent,
    Feed,
    Lookup,
    Order,
    Target,
    Tree,
)
from stair.gpu.kernels import SOURCE
from stair.gpu.panels import WIDEST, Layout, Place

OLDEST: Final = (7, 0)  # of processors: what CuPy's newest compilers still know
# Bytes nearby, of which a kernel's other blocks must have some too.
NODES_NEAR: Final = 24 << 10
SLOTS_NEAR: Final = 24 << 10
BOUNDS_NEAR: Final = 96 << 10
BLOCKS_EACH: Final = 8  # of a multiprocessor

_PREFIX: Final = r"""
extern __shared__ __align__(16) unsigned char near_memory[];
#define DYNAMIC(T, name) T* name = (T*)near_memory
"""
_ON_A_GPU: Final = (2, 13)  # as DLPack numbers places: a GPU's memory, and managed memory
_TYPES: Final = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")  # as in the kernels


class Launches:
    """The kernels of a module, launched over arrays."""

    def __init__(
        self,
        name: str,
        xp: Foreign,
        kernel: Callable[[str], Foreign],
        address: Callable[[Foreign], int],
        *,
        room: int,
        near: int,
        blocks: int,
        threads: int,
        counting: int,
    ) -> None:
        self.name, self.xp, self.room, self.near = name, xp, room, near
        self._kernel, self._address = kernel, address
        self.blocks, self._threads, self._counting = blocks, threads, counting

    def here(self, array: Array) -> Foreign:
        return self.xp.asarray(array)

    def there(self, array: Foreign) -> Array:
        found: Array = self.xp.asnumpy(array)
        return found

    def kept(self, n_bytes: int) -> Array:
        return np.empty(n_bytes, dtype=np.uint8)

    def streamed(self, kept: Sequence[Array]) -> Iterator[Foreign]:
        return map(self.here, kept)

    def route(self, chunk: Chunk, tree: Tree, n_classes: int) -> tuple[Foreign, NDArray[np.int64]]:
        xp = self.xp
        slots = xp.empty(chunk.n_rows, dtype=np.int32)
        sizes = xp.zeros(tree.n_slots, dtype=np.uint32)
        layout, n_nodes = chunk.layout, len(tree.nodes)
        nodes_near = 16 * n_nodes <= NODES_NEAR
        sizes_near = 4 * tree.n_slots <= SLOTS_NEAR
        self._launch(
            "route", self._over(chunk.n_rows),
            16 * n_nodes * nodes_near + 4 * tree.n_slots * sizes_near,
            chunk.buffer, self._numbers(layout.starts(chunk.room), np.int64),
            self._numbers(layout.widths, np.int32), np.int32(chunk.n_rows), np.int32(n_classes),
            self.here(tree.nodes), np.int32(n_nodes), np.int32(nodes_near),
            self.here(tree.left_of), np.int32(tree.n_slots), np.int32(sizes_near), slots, sizes,
        )  # fmt: skip
        return slots, self.there(sizes).astype(np.int64)

    def place(self, chunk: Chunk, slots: Foreign, sizes: NDArray[np.int64]) -> Order:
        xp, n_slots, n = self.xp, len(sizes), int(sizes.sum())
        following = self._numbers(np.cumsum(sizes) - sizes, np.uint32)
        rows, tags = xp.empty(n, dtype=np.uint32), xp.empty(n, dtype=np.uint8)
        is_near = 4 * n_slots <= SLOTS_NEAR
        self._launch(
            "place", self._over(chunk.n_rows, 8), 4 * n_slots * is_near, chunk.labels, slots,
            np.int32(chunk.n_rows), np.int32(n_slots), np.int32(is_near), following, rows, tags,
        )  # fmt: skip
        return Order(rows, tags)

    def tally(
        self,
        chunk: Chunk,
        columns: Mapping[int, Sequence[Target]],
        items: NDArray[np.int32],
        order: Order,
        n_classes: int,
        counts: Foreign,
        *,
        is_weighed: bool = False,
    ) -> None:
        listed = self.here(items.reshape(-1))
        rows = np.int64(0) if order.rows is None else order.rows
        if is_weighed:
            self._weigh(chunk, columns, listed, (order.tags, rows), n_classes, counts)
            return
        for panels, group in _groups(chunk.layout, columns, n_classes, self.near):
            about = np.zeros((len(group), 8), dtype=np.int32)
            wide = 0  # counts of one class
            for k, (start, each) in enumerate(group):
                copies, apart = _copies(each.size * n_classes), each.size | 1
                word, byte = divmod(start + each.byte, 4)
                taken = 0x4440 | byte if each.width == 1 else 0x4410 + 0x11 * byte
                about[k] = word, taken, wide, copies - 1, apart, each.size, each.out, 0
                wide += copies * apart
            held = 32 * (len(group) + 1)
            if held + 4 * wide * n_classes > self.near:
                wide = 0  # all is counted far away
            widths = "_".join(str(chunk.layout.widths[panel]) for panel in panels)
            self._launch(
                f"tally_{widths}", len(items), held + 4 * wide * n_classes,
                chunk.panel(panels[0]), chunk.panel(panels[-1]), order.tags, rows, listed,
                self.here(about.reshape(-1)), np.int32(len(group)), np.int32(n_classes),
                np.int32(wide), counts, np.int64(counts[0].size), threads=self._counting,
            )  # fmt: skip

    def _weigh(
        self,
        chunk: Chunk,
        columns: Mapping[int, Sequence[Target]],
        items: Foreign,
        order: tuple[Foreign, Foreign],
        n_classes: int,
        counts: Foreign,
    ) -> None:
        tags, rows = order
        for panel, own in columns.items():
            for group in _that_fit(own, n_classes, self.near):
                about = np.zeros((len(group), 8), dtype=np.int32)
                n_sums = 0
                for k, each in enumerate(group):
                    about[k, :3] = each.byte, each.width, n_sums
                    about[k, 5:7] = each.size, each.out
                    n_sums += each.size * n_classes
                held = 32 * len(group)
                if held + 8 * n_sums > self.near:
                    n_sums = 0  # all is summed far away
                self._launch(
                    "weigh", len(items) // 3, held + 8 * n_sums, chunk.panel(panel),
                    np.int32(chunk.layout.widths[panel]), chunk.weights, tags, rows, items,
                    self.here(about.reshape(-1)), np.int32(len(group)), np.int32(n_classes),
                    np.int32(n_sums), counts, np.int64(counts[0].size), threads=self._counting,
                )  # fmt: skip

    def encode(
        self, buffer: Foreign, start: int, width: int, columns: Sequence[tuple[Place, Feed]]
    ) -> None:
        about = np.zeros((len(columns), 9), dtype=np.int64)
        n_rows, n_bounds = len(columns[0][1].values), 0
        floats = _floats_alike([each for _, each in columns])
        for k, (place, each) in enumerate(columns):
            codes = 0 if each.codes is None else self._address(each.codes)
            about[k] = (
                self._address(each.values), _type_of(each.values), each.compared, n_bounds,
                len(each.bounds), each.missing, 8 * place.byte, codes, _apart(each.values),
            )  # fmt: skip
            n_bounds += len(each.bounds)
        if floats is not None and 72 * len(columns) + floats.nbytes <= BOUNDS_NEAR:
            steps = floats.shape[1].bit_length() - 1
            self._launch(
                f"encode_f{floats.itemsize}", self._over(n_rows),
                72 * len(columns) + floats.nbytes, buffer[start:], np.int32(width),
                np.int64(n_rows), self.here(about.reshape(-1)), np.int32(len(columns)),
                self.here(floats.reshape(-1)), np.int32(steps),
            )  # fmt: skip
            return
        bounds = [each.bounds.view(np.uint64) for _, each in columns]
        joined = np.concatenate(bounds) if n_bounds else np.zeros(1, dtype=np.uint64)
        is_near = 8 * n_bounds <= BOUNDS_NEAR
        self._launch(
            "encode", self._over(n_rows), 72 * len(columns) + 8 * n_bounds * is_near,
            buffer[start:], np.int32(width), np.int64(n_rows), self.here(about.reshape(-1)),
            np.int32(len(columns)), self.here(joined), np.int32(n_bounds), np.int32(is_near),
        )  # fmt: skip

    def match(
        self, lookups: Sequence[Lookup], everything: NDArray[np.uint64], start: int, n_rows: int
    ) -> tuple[Foreign, Foreign]:
        n_words = len(everything)
        bits = self.xp.empty((n_rows, n_words), dtype=np.uint64)
        firsts = self.xp.empty(n_rows, dtype=np.int32)
        about = np.zeros((len(lookups), 8), dtype=np.int64)
        n_bounds, n_held = 0, n_words
        for k, each in enumerate(lookups):
            about[k] = (
                self._address(each.values), _type_of(each.values), each.compared, n_bounds,
                len(each.bounds), each.missing, n_held, _apart(each.values),
            )  # fmt: skip
            n_bounds += len(each.bounds)
            n_held += each.table.size
        bounds = [each.bounds.view(np.uint64) for each in lookups]
        tables = [each.table.reshape(-1) for each in lookups]
        self._launch(
            "match", self._over(n_rows), about.nbytes, self.here(about.reshape(-1)),
            np.int32(len(lookups)), self.here(np.concatenate([*bounds, NOTHING])),
            self.here(np.concatenate([everything, *tables])), np.int32(n_words), np.int64(start),
            np.int64(n_rows), bits, firsts,
        )  # fmt: skip
        return bits, firsts

    def look(self, values: Foreign) -> Extent:
        xp, blocks = self.xp, self._over(len(values))
        found = xp.empty((6, blocks * self._threads), dtype=np.float64)
        self._launch(
            "look", blocks, 0, values, np.int32(_type_of(values)), np.int64(_apart(values)),
            np.int64(len(values)), found,
        )  # fmt: skip
        missing, below, above, fractions = map(int, self.there(found[:4].sum(axis=1)).tolist())
        least, most = self.there(found[4].min()).item(), self.there(found[5].max()).item()
        return Extent(missing, below, above, fractions, least, most)

    def census(
        self, values: Foreign, compared: int, known: Foreign, room: int
    ) -> tuple[Foreign, Foreign, int]:
        xp = self.xp
        counts = xp.zeros(len(known), dtype=np.uint64)
        others = xp.empty(room, dtype=known.dtype)
        n_others = xp.zeros(1, dtype=np.uint32)
        name = "real" if compared == REAL else "unsigned" if compared == UNSIGNED else "whole"
        self._launch(
            f"census_{name}", self._over(len(values)), 12 * len(known) + 8, values,
            np.int32(_type_of(values)), np.int64(_apart(values)), np.int64(len(values)), known,
            np.int32(len(known)), counts, others, np.int32(room), n_others,
        )  # fmt: skip
        return counts, others, int(self.there(n_others)[0])

    def _over(self, n_rows: int, each: int = 1) -> int:
        """Blocks enough for so many rows, or for the device."""
        return max(1, min(self.blocks, -(-n_rows // (each * self._threads))))

    def _numbers(self, values: Sequence[int] | Array, dtype: type[np.generic]) -> Foreign:
        return self.here(np.asarray(values, dtype=dtype))

    def _launch(self, name: str, blocks: int, near: int, *args: Foreign, threads: int = 0) -> None:
        self._kernel(name)((blocks,), (threads or self._threads,), args, shared_mem=near)


def _copies(words: int) -> int:
    """Few counts are met by many threads at once, so that they have copies."""
    return min(32, 1 << max(0, (1024 // words).bit_length() - 1))


def _groups(
    layout: Layout, columns: Mapping[int, Sequence[Target]], n_classes: int, near: int
) -> Iterator[tuple[list[int], list[tuple[int, Target]]]]:
    """Panels that are read together, and of their columns those whose counts have room nearby
    together, each with the byte at which its panel begins."""
    waiting = sorted(columns)
    while waiting:
        panels = [waiting.pop(0)]
        if waiting and layout.widths[panels[0]] == WIDEST and layout.widths[waiting[0]] < WIDEST:
            both = [*columns[panels[0]], *columns[waiting[0]]]
            if sum(_room(each, n_classes) for each in both) <= near - 32:
                panels.append(waiting.pop(0))
        group: list[tuple[int, Target]] = []
        left = near - 32
        start = 0
        for panel in panels:
            for each in sorted(columns[panel]):
                needed = _room(each, n_classes)
                if group and needed > left:
                    yield panels, group
                    group, left = [], near - 32
                group.append((start, each))
                left -= needed
            start += layout.widths[panel]
        yield panels, group


def _that_fit(columns: Sequence[Target], n_classes: int, near: int) -> Iterator[list[Target]]:
    """Columns whose sums have room nearby together."""
    group: list[Target] = []
    left = near
    for each in sorted(columns):
        needed = 32 + 8 * each.size * n_classes
        if group and needed > left:
            yield group
            group, left = [], near
        group.append(each)
        left -= needed
    yield group


def _room(column: Target, n_classes: int) -> int:
    """Bytes nearby for the counts of a column."""
    return 32 + 4 * n_classes * _copies(column.size * n_classes) * (column.size | 1)


def _floats_alike(columns: Sequence[Feed]) -> Array | None:
    """The bounds of columns of floats of one type, each as a tree of as many levels, filled up with
    infinite ones; None for others. Of floats of 32 bits the same are below a bound of 64 and the
    next of 32 that is not above it."""
    dtypes = {np.dtype(each.values.dtype) for each in columns}
    dtype = dtypes.pop()
    is_plain = all(each.compared == REAL and each.codes is None for each in columns)
    if dtypes or dtype.kind != "f" or not is_plain:
        return None
    steps = max(1, max(len(each.bounds) for each in columns).bit_length())
    held = np.full((len(columns), 1 << steps), np.inf, dtype=dtype)
    for own, each in zip(held, columns, strict=True):
        with np.errstate(over="ignore"):
            near = each.bounds.astype(dtype)
        above = near > each.bounds
        near[above] = np.nextafter(near[above], dtype.type(-np.inf))
        own[: len(near)] = near
    places = np.arange(1, 1 << steps)
    level = np.frexp(places)[1] - 1
    in_order = (2 * (places - (1 << level)) + 1 << steps - 1 - level) - 1
    held[:, 1:] = held[:, in_order]
    return held


def _apart(values: Foreign) -> int:
    """How far apart values are: a column of a matrix need not be copied."""
    return int(values.strides[0]) // int(values.dtype.itemsize) if len(values) > 1 else 1


def _type_of(values: Foreign) -> int:
    dtype = np.dtype(values.dtype)
    return _TYPES.index("u1" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}")


class Cupy(Launches):
    """An NVIDIA GPU."""

    def __init__(self, cupy: Foreign, number: int) -> None:
        about = cupy.cuda.runtime.getDeviceProperties(number)
        near = int(about.get("sharedMemPerBlockOptin", 0)) or 48 << 10
        module = cupy.RawModule(code=_PREFIX + SOURCE, options=("-std=c++17",))
        kernels: dict[str, Foreign] = {}

        def kernel(name: str) -> Foreign:
            if name not in kernels:
                kernels[name] = module.get_function(name)
                kernels[name].max_dynamic_shared_size_bytes = near - 1024
            return kernels[name]

        name = about["name"]
        super().__init__(
            name.decode() if isinstance(name, bytes) else str(name), cupy, kernel,
            lambda array: int(array.data.ptr),
            room=int(cupy.cuda.runtime.memGetInfo()[0]), near=near - 1024,
            blocks=BLOCKS_EACH * int(about["multiProcessorCount"]), threads=512, counting=640,
        )  # fmt: skip

    def taken(self, data: object) -> Foreign | None:
        if hasattr(data, "__cuda_array_interface__"):
            return self.xp.asarray(data)
        place = getattr(data, "__dlpack_device__", None)
        if place is not None and int(place()[0]) in _ON_A_GPU:
            return self.xp.from_dlpack(data)
        return None

    def there(self, array: Foreign) -> Array:
        if array.nbytes < 1 << 16:
            return super().there(array)
        pinned: Array = self._pinned(array.shape, array.dtype)
        self.xp.ascontiguousarray(array).get(out=pinned)
        return pinned

    def _pinned(self, shape: tuple[int, ...] | int, dtype: Foreign) -> Foreign:
        return import_module("cupyx").empty_pinned(shape, dtype=dtype)

    def kept(self, n_bytes: int) -> Array:
        found: Array = self._pinned(n_bytes, np.uint8)
        return found

    def streamed(self, kept: Sequence[Array]) -> Iterator[Foreign]:
        xp = self.xp
        room = max(map(len, kept), default=0)
        buffers = [xp.empty(room, dtype=np.uint8) for _ in kept[:2]]
        work = xp.cuda.get_current_stream()
        sending = xp.cuda.Stream(non_blocking=True)
        sending.wait_event(work.record())  # what the buffers were before may still be in use
        left: list[Foreign] = [None, None]
        arrived: list[Foreign] = [None, None]

        def send(k: int) -> None:
            if left[k % 2] is not None:
                sending.wait_event(left[k % 2])
            buffers[k % 2][: len(kept[k])].set(kept[k], stream=sending)
            arrived[k % 2] = sending.record()

        try:
            if kept:
                send(0)
            for k, each in enumerate(kept):
                if k + 1 < len(kept):
                    send(k + 1)
                work.wait_event(arrived[k % 2])
                yield buffers[k % 2][: len(each)]
                left[k % 2] = work.record()
        finally:
            sending.synchronize()


_opened: dict[int, Cupy] = {}


@contextlib.contextmanager
def on_device(number: int) -> Iterator[Cupy]:
    """A GPU by its number, with whatever goes wrong on it said in words."""
    cupy = optional("cupy")
    if cupy is None:
        raise StairError("the engine cuda needs CuPy: pip install 'stair[cuda]'")
    try:
        n_devices = int(cupy.cuda.runtime.getDeviceCount())
    except Exception as error:  # CuPy's own, of a driver that is not there or too old
        said = str(error)
        if "insufficient" in said.lower():
            raise StairError(
                "there is no NVIDIA driver, or it is older than what this CuPy was made for; "
                "update it, or install the CuPy of your CUDA, such as cupy-cuda12x"
            ) from error
        raise StairError(f"no NVIDIA GPU answers ({reason(error)}); use another engine") from error
    if not 0 <= number < n_devices:
        raise StairError(
            f"there is no GPU {option('device', number)}; this machine has {n_devices}, "
            "numbered from 0"
        )
    with cupy.cuda.Device(number), _in_words(cupy):
        if number not in _opened:
            about = cupy.cuda.runtime.getDeviceProperties(number)
            version = (int(about["major"]), int(about["minor"]))
            if version < OLDEST:
                raise StairError(
                    f"GPU {number} has compute capability {version[0]}.{version[1]}; expected at "
                    f"least {OLDEST[0]}.{OLDEST[1]}"
                )
            _opened[number] = Cupy(cupy, number)
        yield _opened[number]


@contextlib.contextmanager
def _in_words(cupy: Foreign) -> Iterator[None]:
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise StairError(
            f"the GPU has no more memory ({reason(error)}); set a limit with {option('memory')}, "
            "so that codes beyond it stay with the processor, or free what else is there"
        ) from error
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise StairError(f"the GPU failed: {reason(error)}") from error
