"""Growth by level against growth one split at a time: equal rules, few passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stair.engines.counting import Block, MemoryCounter, Paths, count_block, no_counts
from stair.engines.memory import MemoryEngine
from stair.learn.grow import Growth, grow, leaves_of
from stair.learn.levels import Divisions, LevelGrowth, Pass, grow_by_level
from stair.rules.columns import Binned, Categories, Column, Numbers
from stair.rules.objective import ComputedLogs, log_table
from strategies import Labelled, examples, labelled

EVERY = settings(max_examples=examples(120), deadline=None)


class Coded:
    """A table as codes: every other column as categories, the others as bins of one value."""

    def __init__(self, data: Labelled) -> None:
        self.y, self.n_classes = data.y, data.n_classes
        self.columns: list[Column] = []
        self.sizes: list[int] = []
        self.codes: list[np.ndarray] = []
        for j in range(data.X.shape[1]):
            x = data.X[:, j]
            values = np.unique(x[~np.isnan(x)] + 0.0)
            codes = np.where(np.isnan(x), len(values), np.searchsorted(values, x))
            told = tuple(values.tolist())
            column: Column = Binned(Numbers(f"x{j}", j), told, told)
            if j % 2:
                column = Categories(f"x{j}", j, tuple(f"v{k}" for k in range(len(values))))
            self.columns.append(column)
            self.sizes.append(len(values) + 1)
            self.codes.append(codes.astype(np.uint16 if j % 3 == 0 else np.uint8))

    def counter(self, kernel: str = "auto") -> MemoryCounter:
        labels = self.y.astype(np.uint8)
        return MemoryCounter(
            self.columns, self.sizes, self.codes, labels, self.n_classes, kernel=kernel
        )

    def engine(self) -> MemoryEngine:
        matrix = np.column_stack(self.codes).astype(np.float64)
        matrix[matrix == np.array(self.sizes) - 1.0] = np.nan
        return MemoryEngine(self.columns, np.asfortranarray(matrix), self.y, self.n_classes)


def _both(data: Labelled, **options: Any) -> tuple[Growth, LevelGrowth]:
    coded = Coded(data)
    positive = 1 if data.n_classes == 2 else None
    given_: dict[str, Any] = {"min_score": 1.0, "max_rule_length": 3, "positive": positive}
    limits = {k: v for k, v in options.items() if k != "counts_at_once"}
    one = grow(coded.engine(), **given_ | limits)
    return one, grow_by_level(coded.counter(), **given_ | options)


def _same(one: Growth, other: Growth) -> None:
    assert one.steps == other.steps
    assert (one.kept, one.floor_reached) == (other.kept, other.floor_reached)
    assert leaves_of(one, 0) == leaves_of(other, 0)
    assert one.root.label == other.root.label


@EVERY
@given(labelled(), st.sampled_from([0.3, 0.7, 1.0]), st.sampled_from([None, 0, 3, 8]))
def test_growth_by_level_equals_one_split_at_a_time(
    data: Labelled, floor: float, budget: int | None
) -> None:
    """Rules, counts and every step of the trace, to the last bit; ties and missing values too."""
    one, by_level = _both(data, min_score=floor, max_total_length=budget)
    _same(one, by_level.growth)


@EVERY
@given(labelled(max_rows=60))
def test_the_rules_do_not_depend_on_how_many_counts_fit(data: Labelled) -> None:
    """With room for one rule at a time there are more passes, and the same rules."""
    one, tight = _both(data, counts_at_once=1)
    _same(one, tight.growth)
    _, roomy = _both(data)
    assert len(roomy.passes) <= len(tight.passes)


@EVERY
@given(labelled())
def test_a_run_that_died_goes_on_where_it_was(data: Labelled) -> None:
    """After any pass the divisions alone are enough: no pass is made twice, and equal rules."""
    coded = Coded(data)
    options: dict[str, Any] = {
        "min_score": 1.0,
        "max_rule_length": 3,
        "positive": 1 if data.n_classes == 2 else None,
    }
    states: list[Divisions] = []

    def keep(_: Pass, known: Divisions) -> None:
        states.append(Divisions(dict(known.divisions), known.n_passes))

    whole = grow_by_level(coded.counter(), on_pass=keep, **options)
    for state in states:
        done = state.n_passes
        rest = grow_by_level(coded.counter(), known=state, **options)
        _same(whole.growth, rest.growth)
        assert done + len(rest.passes) <= len(whole.passes)


@EVERY
@given(labelled(), st.data())
def test_the_kernel_counts_what_its_twin_counts(data: Labelled, draw: st.DataObject) -> None:
    """Any tree over any codes: every row is counted once, at the node where its way ends."""
    coded = Coded(data)
    n_columns = len(coded.columns)
    inner = draw.draw(st.integers(0, 6))
    n = 2 * inner + 1
    column = np.full(n, -1, dtype=np.int32)
    cut = np.zeros(n, dtype=np.int32)
    table = np.full(n, -1, dtype=np.int64)
    left, right = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    tables = []
    for k in range(inner):  # node k has the children 2k + 1 and 2k + 2
        column[k] = draw.draw(st.integers(0, n_columns - 1))
        size = coded.sizes[column[k]]
        cut[k] = draw.draw(st.integers(0, size))
        left[k], right[k] = 2 * k + 1, 2 * k + 2
        if draw.draw(st.booleans()):
            table[k] = sum(map(len, tables))
            flags = draw.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
            tables.append(np.array(flags, dtype=np.uint8))
    left_of = np.concatenate(tables) if tables else np.zeros(1, dtype=np.uint8)
    ends = np.flatnonzero(column < 0)
    slot = np.full(n, -1, dtype=np.int32)
    slot[ends] = np.arange(len(ends))
    slot[ends[-1]] = -1 if len(ends) > 1 else 0
    n_slots = int(slot.max()) + 1
    paths = Paths(column, cut, table, left_of, left, right, slot, n_slots)
    block = Block(coded.codes, data.y.astype(np.uint8))
    found = []
    for kernel in ("auto", "numpy"):
        columns = range(0, n_columns, 2)
        counts = no_counts(n_slots, coded.sizes, data.n_classes, columns)
        count_block(block, paths, coded.sizes, columns, counts, kernel=kernel)
        found.append(counts)
    assert (found[0] == found[1]).all()


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.integers(0, 1 << 21), min_size=1, max_size=300))
def test_computed_logarithms_are_those_of_the_table(counts: list[int]) -> None:
    """Beyond two million rows there is no table; the numbers stay the same to the last bit."""
    table = log_table(1 << 21)
    assert table is not None
    array = np.array(counts, dtype=np.int64)
    assert (ComputedLogs()[array] == table[array]).all()


def _depth(growth: Growth) -> int:
    deepest, pending = 0, [(growth.root, 0)]
    while pending:
        node, depth = pending.pop()
        deepest = max(deepest, depth)
        if node.divided_at is not None and node.divided_at < growth.kept and node.children:
            pending.extend((child, depth + 1) for child in node.children)
    return deepest


def test_many_splits_take_few_passes() -> None:
    """Hundreds of splits one at a time would be hundreds of passes; by level, as many as deep."""
    rng = np.random.default_rng(5)
    X = np.floor(rng.random((20_000, 6)) * 200)
    y = ((X[:, :3].sum(axis=1) % 97 < 12) ^ (rng.random(len(X)) < 0.02)).astype(np.int32)
    one, by_level = _both(Labelled(X, y, 2, None), min_score=0.4, max_rule_length=6)
    _same(one, by_level.growth)
    assert len(one.steps) > 100
    assert len(by_level.passes) <= _depth(one) + 1
