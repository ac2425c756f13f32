"""What a column on a GPU holds is what the same column holds here."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stair.gpu.twin import Twin
from stair.scale.on_gpu import profile_there
from stair.scale.profile import Profile
from stair.scale.raw import from_loaded
from strategies import examples

TYPES = ["?", "f4", "f8", "i1", "i2", "i8", "u1", "u4", "u8", "wide", "unsigned"]


def _column(rng: np.random.Generator, dtype: str, n_rows: int) -> np.ndarray:
    few = rng.random() < 0.5
    if dtype == "wide":
        return rng.integers(-(2**62), 2**62, n_rows)
    if dtype == "unsigned":
        return rng.integers(2**63, 2**64 - 1, n_rows, dtype=np.uint64)
    values = rng.integers(0, 6, n_rows) if few else rng.integers(0, 10**6, n_rows)
    column = (values / rng.choice([1, 7]) - 2 * (dtype[0] != "u")).astype(dtype)
    if dtype[0] == "f":
        for gone in (np.nan, np.inf, -np.inf, -0.0):
            column[rng.random(n_rows) < rng.choice([0.0, 0.1])] = gone
    return column


@settings(max_examples=examples(150), deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(TYPES), st.integers(1, 20_000))
def test_a_column_that_is_sorted_as_a_whole_holds_the_same(
    seed: int, dtype: str, n_rows: int
) -> None:
    """Every figure that bins, kinds of columns and keys are made of."""
    column = _column(np.random.default_rng(seed), dtype, n_rows)
    here = Profile()
    here.add(from_loaded((column if dtype != "f4" else column.astype(float), ""))[0], "x")
    there = profile_there(Twin(), column)
    for name in ("kind", "n_rows", "n_missing", "n_below", "n_above", "words"):
        assert getattr(here, name) == getattr(there, name), name
    one, other = here.sketch, there.sketch
    for name in ("n_rows", "lowest", "highest", "whole", "pairs", "dtype"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.n_repeats == other.n_repeats
    for name in ("distinct", "counts"):
        mine, its = getattr(one, name), getattr(other, name)
        assert (mine is None) == (its is None)
        if mine is not None and its is not None:
            assert np.array_equal(mine, its)
            assert mine.dtype == its.dtype
    if one.n_rows:
        assert np.array_equal(one.quantiles(1023), other.quantiles(1023))


@pytest.mark.parametrize("n_values", [3, 900, 9_000, 30_000])
def test_of_a_longer_column_all_values_are_known_where_they_are_few(n_values: int) -> None:
    """Rows are drawn for its quantiles, but a value that one row alone has is found too."""
    rng = np.random.default_rng(n_values)
    column = rng.integers(0, n_values, 60_000).astype(np.float64)
    column[7], column[8] = -5, np.nan
    there = profile_there(Twin(), column, together=4096)
    sketch = there.sketch
    assert (there.n_rows, there.n_missing, sketch.n_rows) == (60_000, 1, 59_999)
    assert (sketch.lowest, sketch.highest) == (-5, column[9:].max())
    counts = Counter(column[~np.isnan(column)].tolist())
    if len(counts) > 10_000:
        assert sketch.distinct is None
    else:
        assert sketch.distinct is not None and sketch.counts is not None
        assert dict(zip(sketch.distinct.tolist(), sketch.counts.tolist(), strict=True)) == counts
    ranks = np.searchsorted(np.sort(column[:-1]), sketch.quantiles(15)) / 60_000
    assert np.abs(ranks - np.arange(1, 16) / 16).max() < 0.04 + 1 / n_values
