"""The compiled kernel and its numpy twin give equal results, and both the obvious ones."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stair.engines import _twin
from stair.engines.memory import HAS_KERNEL, MemoryEngine
from stair.engines.search import best_set, set_members
from stair.learn.grow import grow
from stair.rules.objective import log_table, negentropy
from strategies import Labelled, examples, labelled

pytestmark = pytest.mark.skipif(not HAS_KERNEL, reason="the kernel was not compiled here")


@settings(max_examples=examples(300), deadline=None)
@given(labelled(weighted=True))
def test_kernel_and_twin_grow_the_same_tree(data: Labelled) -> None:
    """Equal to the last bit: splits, gains, clauses, counts and every step of the trace."""
    grown = [
        grow(
            data.engine(kernel),
            min_score=1.0,
            max_rule_length=3,
            positive=1 if data.n_classes == 2 else None,
        )
        for kernel in ("auto", "numpy")
    ]
    assert grown[0].steps == grown[1].steps
    leaves = [
        [(node.clauses(), node.group.counts, node.label) for node in growth.leaves()]
        for growth in grown
    ]
    assert leaves[0] == leaves[1]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.floats(width=64, allow_infinity=False), min_size=1, max_size=50))
def test_both_sort_columns_alike(values: list[float]) -> None:
    """Radix sort against numpy's: the same codes, −0 equal to 0, missing last."""
    from stair.engines import _count

    X = np.array(values)[:, None]
    columns = np.zeros(1, dtype=np.int64)
    labels = np.arange(len(X), dtype=np.int32) % 3
    sorted_by = []
    for module in (_count, _twin):
        ((entries, missing),) = module.sort_columns(X, columns, labels)
        sorted_by.append((entries.dtype, entries.tolist(), missing))
    assert sorted_by[0] == sorted_by[1]


def _gain(left: np.ndarray, totals: np.ndarray) -> float:
    table = log_table(int(totals.sum()))
    return float(
        negentropy(left, table) + negentropy(totals - left, table) - negentropy(totals, table)
    )


@settings(max_examples=examples(200), deadline=None)
@given(labelled(max_rows=14, max_columns=2))
def test_no_cut_of_a_column_gains_more(data: Labelled) -> None:
    """The slow obvious search: every value as a cut, missing on either side or alone."""
    engine = data.engine()
    root = engine.root()
    found = engine.find(root, np.arange(data.X.shape[1]))
    totals = np.bincount(data.y, minlength=data.n_classes)
    for j, gain in enumerate(found.gains):
        x = data.X[:, j]
        sides = [x <= cut for cut in np.unique(x[~np.isnan(x)])]
        sides += [side | np.isnan(x) for side in sides]
        gains = [
            _gain(np.bincount(data.y[side], minlength=data.n_classes), totals)
            for side in sides
            if 0 < side.sum() < len(x)
        ]
        if not gains:
            assert math.isnan(gain)
        else:
            assert gain == pytest.approx(max(gains), abs=1e-9)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any), min_size=2, max_size=7)
)
def test_the_best_subset_of_categories_is_found_exactly(counts: list[tuple[int, int]]) -> None:
    """Two classes: ordering by outlier share finds the best of all 2^k subsets."""
    array = np.array(counts)
    totals = array.sum(axis=0)
    every = [
        _gain(array[list(subset)].sum(axis=0), totals)
        for size in range(1, len(counts))
        for subset in itertools.combinations(range(len(counts)), size)
    ]
    found = best_set(array, log_table(int(totals.sum())))
    assert found is not None
    gain, place = found
    assert gain == pytest.approx(max(every), abs=1e-9)
    members = set_members(array, place)
    assert _gain(array[members].sum(axis=0), totals) == pytest.approx(gain, abs=1e-9)


def test_weights_too_large_for_a_table_give_the_same_gain_as_the_twin() -> None:
    """Beyond the table both take log2 from the C library, not numpy's own, which may differ."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (200, 3)).astype(float)
    y = (rng.random(200) < 0.3).astype(np.int32)
    data = Labelled(X, y, 2, rng.random(200) * 1e6)
    grown = [
        grow(data.engine(kernel), min_score=1.0, max_rule_length=3, positive=1)
        for kernel in ("auto", "numpy")
    ]
    assert grown[0].steps == grown[1].steps
    assert len(grown[0].steps) > 10


def test_a_compiled_engine_is_really_compiled() -> None:
    """So that the comparison above never compares the twin with itself."""
    engine = Labelled(np.zeros((2, 1)), np.array([0, 1], dtype=np.int32), 2, None).engine()
    assert isinstance(engine, MemoryEngine)
    assert type(engine._kernel).__module__ == "stair.engines._count"


@settings(max_examples=examples(100), deadline=None)
@given(labelled(weighted=True))
def test_threads_change_nothing(data: Labelled) -> None:
    """Columns shared among threads give the same tree as one thread does."""
    grown = []
    for n_threads in (1, 3):
        engine = data.engine()
        engine._n_threads = n_threads
        with mock.patch("stair.engines.memory.WORTH_THREADS", 0):
            positive = 1 if data.n_classes == 2 else None
            grown.append(grow(engine, min_score=1.0, max_rule_length=3, positive=positive))
    assert grown[0].steps == grown[1].steps
    assert [n.clauses() for n in grown[0].leaves()] == [n.clauses() for n in grown[1].leaves()]
