"""The engine that has counts and no rows: what is searched ahead is what is found one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stair.engines import Group, histograms
from stair.engines.histograms import TABLE_ROWS, Cell, HistogramEngine
from stair.rules.columns import Binned, Categories, Column, Numbers
from strategies import examples


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5), st.sampled_from([3, 50, 10**7]))
def test_cuts_that_are_searched_ahead_are_those_of_one_column_at_a_time(
    seed: int, n_classes: int, largest: int
) -> None:
    """Ties, codes without rows, missing values, pure values beside each other, and so many rows
    that logarithms are computed: gains are equal to the last bit, and so are cuts."""
    rng = np.random.default_rng(seed)
    columns: list[Column] = []
    sizes = rng.integers(2, 14, rng.integers(1, 6)).tolist()
    for j, size in enumerate(sizes):
        bounds = tuple(float(k) for k in range(size - 1))
        columns.append(
            Categories(f"x{j}", j, tuple(f"v{k}" for k in range(size - 1)))
            if rng.random() < 0.2
            else Binned(Numbers(f"x{j}", j), bounds, bounds)
        )
    totals = rng.integers(1, largest + 1, n_classes)
    counts = [
        np.stack([rng.multinomial(n, _shares(rng, size)) for n in totals], axis=1) for size in sizes
    ]
    engine = HistogramEngine(columns, sizes, tuple(totals.tolist()))
    assert (sum(totals) > TABLE_ROWS) == (engine._logs.__class__ is not np.ndarray)
    whole = np.ascontiguousarray(np.concatenate(counts).astype(np.int64))
    one, other = Cell(counts=whole), Cell(counts=whole.copy())
    engine.search([other])
    order = np.arange(len(columns))
    mine, its = (engine.find(Group(c, tuple(totals.tolist())), order) for c in (one, other))
    for k in range(len(columns)):
        assert mine.gains[k] == its.gains[k] or math.isnan(mine.gains[k] + its.gains[k])
    assert list(mine.cuts) == list(its.cuts)
    assert list(map(bool, mine.missing_left)) == list(map(bool, its.missing_left))


def _shares(rng: np.random.Generator, size: int) -> np.ndarray:
    """Of the codes of a column, some without rows; often the same for all classes."""
    shares = rng.integers(0, 3, size).astype(float)
    if rng.random() < 0.5:
        shares[-1] = 0
    return shares / shares.sum() if shares.sum() else np.full(size, 1 / size)


def test_without_a_kernel_nothing_is_searched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histograms, "_near_best", None)
    cell = Cell(counts=np.ones((3, 2), dtype=np.int64))
    HistogramEngine([Binned(Numbers("x", 0), (0.0, 1.0), (0.0, 1.0))], [3], (3, 3)).search([cell])
    assert cell.cuts is None
