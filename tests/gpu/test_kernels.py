"""The kernels of a GPU as they are, run by threads of the processor, against the counts that every
engine has; and their twin, which takes their place elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from by_threads import ByThreads
from stair.engines.counting import Block, Paths, code_type, count_block, no_counts, nodes_of
from stair.gpu.codes import Codes, Division
from stair.gpu.counter import DeviceCounter
from stair.gpu.cuda import Launches
from stair.gpu.device import REAL, UNSIGNED, WHOLE, Device, Feed, Lookup
from stair.gpu.panels import NO_LABEL, Layout, Place
from stair.gpu.twin import Twin
from stair.rules.columns import Binned, Numbers
from strategies import examples

SIZES = st.lists(st.sampled_from([2, 3, 17, 256, 257, 300, 1025]), min_size=1, max_size=12)


def _paths(rng: np.random.Generator, sizes: list[int], n_splits: int) -> Paths:
    """A random tree: cuts, and tables where a cut does not decide alone."""
    rows = [[-1, 0, -1, -1, -1]]
    tables: list[np.ndarray] = []
    ends = [0]
    for _ in range(n_splits):
        node = ends.pop(int(rng.integers(len(ends))))
        column = int(rng.integers(len(sizes)))
        rows[node][0] = column
        rows[node][1] = int(rng.integers(sizes[column]))
        if rng.random() < 0.4:
            rows[node][2] = sum(map(len, tables))
            tables.append(rng.integers(0, 2, sizes[column]).astype(np.uint8))
        rows[node][3:] = [len(rows), len(rows) + 1]
        ends += [len(rows), len(rows) + 1]
        rows += [[-1, 0, -1, -1, -1], [-1, 0, -1, -1, -1]]
    column, cut, table, left, right = np.array(rows).T
    slot = np.full(len(rows), -1, dtype=np.int32)
    chosen = [end for end in ends if rng.random() < 0.7] or ends[:1]
    slot[chosen] = rng.permutation(len(chosen))
    joined = np.concatenate(tables) if tables else np.zeros(1, np.uint8)
    narrow = [each.astype(np.int32) for each in (column, cut, left, right)]
    return Paths(
        narrow[0],
        narrow[1],
        table.astype(np.int64),
        joined,
        narrow[2],
        narrow[3],
        slot,
        len(chosen),
    )


def _counter(
    device: Device, codes: list[np.ndarray], labels: np.ndarray, sizes: list[int], n_classes: int,
    division: Division, weights: np.ndarray | None = None,
) -> DeviceCounter:  # fmt: skip
    held = Codes(device, Layout.of(sizes, is_weighed=weights is not None), division)
    for start in range(0, len(labels), 700):
        part = slice(start, start + 700)
        columns = [Feed(device.here(each[part])) for each in codes]
        own = None if weights is None else device.here(weights[part])
        held.add(columns, Feed(device.here(labels[part])), own)
    held.end()
    columns = [
        Binned(Numbers(f"x{j}", j), tuple(range(size - 1)), tuple(range(size - 1)))
        for j, size in enumerate(sizes)
    ]
    return DeviceCounter(held, columns, n_classes, by_weight=weights is not None)


@pytest.mark.parametrize("near", [100_000, 3_000])
@settings(
    max_examples=examples(60), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.data(), SIZES, st.integers(1, 3000), st.sampled_from([2, 3, 40]), st.integers(0, 30))
def test_counts_are_those_of_any_engine(
    by_threads: ByThreads, near: int, data: st.DataObject, sizes: list[int], n_rows: int,
    n_classes: int, n_splits: int,
) -> None:  # fmt: skip
    """Any tree, any columns, with room nearby and with hardly any; rows without a label, and codes
    that come through a chunk at a time."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    codes = [rng.integers(0, size, n_rows).astype(code_type(size)) for size in sizes]
    labels = rng.integers(0, n_classes, n_rows).astype(np.uint8)
    paths = _paths(rng, sizes, n_splits)
    columns = sorted(
        rng.choice(len(sizes), rng.integers(1, len(sizes) + 1), replace=False).tolist()
    )
    expected = no_counts(paths.n_slots, sizes, n_classes, columns)
    count_block(Block(codes, labels), paths, sizes, columns, expected, kernel="numpy")
    gone = rng.random(n_rows) < 0.1
    with_gaps = np.insert(labels, np.flatnonzero(gone), NO_LABEL)
    codes = [np.insert(each, np.flatnonzero(gone), each[gone]) for each in codes]
    division = data.draw(st.sampled_from([Division(4096, 9), Division(512, 2), Division(256, 0)]))
    by_threads.near = near
    devices: list[Device] = [Twin()]
    if n_rows * n_classes < 20_000:  # threads take their time
        devices.append(by_threads)
    for device in devices:
        counter = _counter(device, codes, with_gaps, sizes, n_classes, division)
        assert counter.totals == tuple(np.bincount(labels, minlength=n_classes).tolist())
        counts = counter.count(paths, columns)
        assert counts.dtype == np.int64
        assert np.array_equal(counts, expected), device.name


@pytest.mark.parametrize("near", [100_000, 3_000])
@settings(
    max_examples=examples(40), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 2**32), SIZES, st.sampled_from([2, 3, 40]), st.sampled_from([1, 2**20]))
def test_weights_are_summed_exactly(
    by_threads: ByThreads, near: int, seed: int, sizes: list[int], n_classes: int, scale: int
) -> None:
    """In any order and by halves of their digits; a row of weight 0 is not there."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 1500))
    codes = [rng.integers(0, size, n_rows).astype(code_type(size)) for size in sizes]
    labels = rng.integers(0, n_classes, n_rows).astype(np.uint8)
    weights = (rng.integers(0, 2**18, n_rows) * scale).astype(np.float64)
    weights[rng.random(n_rows) < 0.1] = 0
    paths = _paths(rng, sizes, int(rng.integers(0, 20)))
    columns = range(len(sizes))
    slots = paths.slot[nodes_of(Block(codes, labels), paths)]
    expected = no_counts(paths.n_slots, sizes, n_classes, columns)
    starts = np.cumsum([0, *sizes])
    for row in np.flatnonzero(slots >= 0):
        for j in columns:
            expected[slots[row], starts[j] + codes[j][row], labels[row]] += int(weights[row])
    by_threads.near = near
    division = Division(512, 1)
    devices: list[Device] = [Twin()]
    if n_rows * n_classes < 20_000:
        devices.append(by_threads)
    for device in devices:
        counter = _counter(device, codes, labels, sizes, n_classes, division, weights)
        assert np.array_equal(counter.count(paths, columns), expected), device.name
        assert counter.codes.n_weightless == int((weights == 0).sum())
        in_all = [int(weights[labels == k].sum()) for k in range(n_classes)]
        assert list(counter.totals) == in_all


@settings(
    max_examples=examples(100), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 2**32), st.sampled_from(["f4", "f8", "i1", "i2", "i4", "i8", "u4", "u8"]))
def test_values_of_any_type_become_the_same_codes(
    by_threads: ByThreads, seed: int, dtype: str
) -> None:
    """Bounds are of 64 bits whatever the values are: a float of 32 bits is compared as it is."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    n_rows = int(rng.integers(1, 500))
    values = rng.normal(scale=100, size=n_rows).astype(dtype) if kind != "u" else rng.integers(
        0, 2 ** (8 * np.dtype(dtype).itemsize - 1), n_rows, dtype=np.uint64
    ).astype(dtype)  # fmt: skip
    order = REAL if dtype in ("f4", "f8", "i1", "u4") else UNSIGNED if kind == "u" else WHOLE
    type_ = {REAL: np.float64, UNSIGNED: np.uint64, WHOLE: np.int64}[order]
    bounds = np.unique(rng.choice(values, min(n_rows, 40)).astype(type_))
    if kind == "f":
        values[rng.random(n_rows) < 0.1] = np.nan
        values[rng.random(n_rows) < 0.1] = np.inf
        bounds = np.unique(np.append(bounds, rng.normal(scale=100, size=10)))
    matrix = np.stack([values, values], axis=1)  # a column of it lies apart
    codes = rng.integers(0, 300, len(bounds) + 1).astype(np.uint16)
    found = []
    for device in (Twin(), by_threads):
        feed = Feed(matrix[:, 1], order, bounds, 299, device.here(codes))
        same = Feed(values, order, bounds, 299)
        buffer = np.full(16 * n_rows, 7, dtype=np.uint8)
        device.encode(buffer, 0, 16, [(Place(0, 2, 2), feed), (Place(0, 8, 2), same)])
        plain = np.full(16 * n_rows, 7, dtype=np.uint8)
        device.encode(plain, 0, 16, [(Place(0, 2 * k, 2), same) for k in (0, 1, 2, 4, 5)])
        found.append(np.append(buffer, plain))
    assert np.array_equal(found[0], found[1])
    plain = np.searchsorted(bounds, values.astype(type_))
    plain[values != values] = 299
    assert np.array_equal(found[0].view(np.uint16).reshape(2 * n_rows, 8)[:n_rows, 4], plain)


@settings(
    max_examples=examples(60), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 2**32), st.sampled_from(["f4", "f8", "i4", "i8", "u8"]))
def test_what_a_column_holds_is_found_alike(by_threads: ByThreads, seed: int, dtype: str) -> None:
    """Missing and infinite values, fractions, the least and the largest; values one by one, also
    those that nobody knew, as many as there is room for."""
    rng = np.random.default_rng(seed)
    values = (rng.integers(0, 30, rng.integers(1, 400)) / rng.choice([1, 2])).astype(dtype)
    if np.dtype(dtype).kind == "f":
        for gone in (np.nan, np.inf, -np.inf):
            values[rng.random(len(values)) < rng.choice([0, 0.1, 1.0], p=[0.5, 0.4, 0.1])] = gone
        assert Twin().look(values) == by_threads.look(values)
    order, type_ = {"u8": (UNSIGNED, "u8"), "i8": (WHOLE, "i8")}.get(dtype, (REAL, "f8"))
    known = np.unique(rng.integers(0, 30, rng.integers(0, 20))).astype(type_)
    room = int(rng.integers(1, 50))
    counts, others, n_others = Twin().census(values, order, known, room)
    again, same, n_same = by_threads.census(values, order, known, room)
    assert np.array_equal(counts, again)
    assert n_others == n_same
    if n_others <= room:
        assert sorted(others[:n_others].tolist()) == sorted(same[:n_others].tolist())


@settings(
    max_examples=examples(60), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 2**32), st.sampled_from([1, 64, 130, 400]), st.integers(0, 5))
def test_rules_that_cover_a_row_are_found_alike(
    by_threads: ByThreads, seed: int, n_rules: int, n_lookups: int
) -> None:
    """Any number of rules, in words of 64; from any row on; and the first of them."""
    rng = np.random.default_rng(seed)
    n_rows, n_words = int(rng.integers(1, 300)), -(-n_rules // 64)
    everything = np.full(n_words, 2**64 - 1, dtype=np.uint64)
    everything[-1] >>= np.uint64(64 * n_words - n_rules)
    lookups = []
    for _ in range(n_lookups):
        dtype = str(rng.choice(["f4", "f8", "i8", "u8", "?"]))
        order = {"f4": REAL, "f8": REAL, "u8": UNSIGNED}.get(dtype, WHOLE)
        type_ = {REAL: np.float64, UNSIGNED: np.uint64, WHOLE: np.int64}[order]
        values = rng.integers(0, 9, n_rows).astype(dtype)
        if order == REAL:
            values[rng.random(n_rows) < 0.2] = np.nan
        bounds = np.unique(rng.integers(0, 9, rng.integers(1, 6))).astype(type_)
        shape = (len(bounds) + 2, n_words)
        table = rng.integers(0, 2**64 - 1, shape, dtype=np.uint64)
        lookups.append(Lookup(values, order, bounds, len(bounds) + 1, table))
    start = int(rng.integers(0, n_rows))
    mine, its = (
        device.match(lookups, everything, start, n_rows - start) for device in (Twin(), by_threads)
    )
    assert np.array_equal(mine[0], its[0])
    assert np.array_equal(mine[1], its[1])


def test_columns_whose_counts_have_no_room_nearby_are_counted_apart(by_threads: ByThreads) -> None:
    """Two hundred classes of a thousand codes are more than any block's memory holds."""
    assert isinstance(by_threads, Launches)
    rng = np.random.default_rng(5)
    sizes, n_rows, n_classes = [1025, 3, 1025], 2000, 200
    codes = [rng.integers(0, size, n_rows).astype(code_type(size)) for size in sizes]
    labels = rng.integers(0, n_classes, n_rows).astype(np.uint8)
    paths = _paths(rng, sizes, 5)
    expected = no_counts(paths.n_slots, sizes, n_classes, range(3))
    count_block(Block(codes, labels), paths, sizes, range(3), expected, kernel="numpy")
    by_threads.near = 50_000
    counter = _counter(by_threads, codes, labels, sizes, n_classes, Division(2048, 1))
    assert np.array_equal(counter.count(paths, range(3)), expected)
