"""The matcher's kernel and its numpy twin give equal results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stair.data.arrays import columns_of
from stair.rules import _match_twin

compiled = pytest.importorskip("stair.rules._match", reason="the kernel was not compiled here")

NUMBERS = st.floats(width=16) | st.sampled_from([np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0])


@given(st.data())
def test_kernel_equals_twin(data: st.DataObject) -> None:
    """For any numbers among any edges, with any rules left, in one word or in more."""
    x = np.array(data.draw(st.lists(NUMBERS, max_size=40)))
    drawn = data.draw(st.lists(NUMBERS.filter(np.isfinite), max_size=40))
    edges = np.unique(np.array(drawn, np.float64))
    words = data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    table = rng.integers(0, 2**64, (len(edges) + 2, words), dtype=np.uint64, endpoint=False)
    start = rng.integers(0, 2**64, (len(x), words), dtype=np.uint64, endpoint=False)
    start[rng.random(start.shape) < 0.5] = 0
    cells = rng.integers(0, len(table), len(x)).astype(np.intp)
    for name, given_ in (("narrow", (x, edges, table)), ("narrow_by_cells", (cells, table))):
        fast, slow = start.copy(), start.copy()
        getattr(compiled, name)(fast, *given_)
        getattr(_match_twin, name)(slow, *given_)
        np.testing.assert_array_equal(fast, slow)
    firsts = np.empty(len(x), np.intp), np.empty(len(x), np.intp)
    compiled.first_of(start, firsts[0])
    _match_twin.first_of(start, firsts[1])
    expected = [
        next((64 * w + k for w in range(words) for k in range(64) if int(row[w]) >> k & 1), -1)
        for row in start
    ]
    assert firsts[0].tolist() == firsts[1].tolist() == expected


@given(st.integers(0, 20_000), st.lists(st.integers(0, 3), min_size=1, max_size=5))
def test_columns_of_a_matrix(n_rows: int, places: list[int]) -> None:
    matrix = np.arange(4.0 * n_rows).reshape(n_rows, 4)
    np.testing.assert_array_equal(columns_of(matrix, places), matrix[:, places].T)
