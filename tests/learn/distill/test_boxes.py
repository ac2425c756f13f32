"""The compiled box search and its slow twin say the same, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stair.learn.distill import _twin
from stair.learn.distill.cover import KERNELS
from stair.rules.columns import ANY_SIDE, ONE_SIDE, Sides
from strategies import examples

compiled = KERNELS.get("compiled")


@st.composite
def _tables(draw: st.DrawFn) -> tuple[np.ndarray, ...]:
    n_rows = draw(st.integers(1, 40) | st.integers(100, 400))
    n_columns = draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_bins = random.integers(1, 7, n_columns).astype(np.int32)
    codes = np.column_stack([random.integers(0, n, n_rows) for n in n_bins]).astype(np.uint16)
    ordered = random.random(n_columns) < 0.7
    missing = (random.random(n_columns) < 0.5) & ordered & (n_bins > 1)
    gains = random.integers(-3, 4, n_rows).astype(np.int64)
    sides = random.integers(1, 8, n_columns).astype(np.uint8)
    return codes, n_bins, ordered, missing, sides, gains, random


@pytest.mark.skipif(compiled is None, reason="stair was installed without a C compiler")
@settings(max_examples=examples(200))
@given(
    _tables(), st.sampled_from([20, 150, 1000]), st.booleans(), st.booleans(),
    st.sampled_from([0, 400, 1000, 2500]),
)  # fmt: skip
def test_kernel_equals_twin(
    table: tuple[np.ndarray, ...], permille: int, with_drops: bool, seeded: bool, price: int
) -> None:
    """Rows, neighbours, sums by bin and even the work that is counted are equal."""
    *given_, random = table
    codes, n_bins, _, _, _, gains = given_
    fast, slow = compiled.Boxes(*given_), _twin.Boxes(*given_)
    some = random.choice(len(codes), random.integers(0, len(codes) + 1), replace=False)
    new = np.where(random.random(len(some)) < 0.5, 0, gains[some])
    for boxes in (fast, slow):
        boxes.price = price
        boxes.change(some.astype(np.int32), new)
    width = int(n_bins.max())
    columns = random.permutation(len(n_bins))[: random.integers(0, len(n_bins) + 1)]
    allowed = (random.random((len(columns), width)) < 0.6).astype(np.uint8)
    for k, column in enumerate(columns):
        allowed[k, n_bins[column] :] = 0
    box = columns.astype(np.int32), allowed
    assert np.array_equal(fast.row_gains, slow.row_gains)
    assert np.array_equal(fast.rows(*box), slow.rows(*box))
    seed = int(random.integers(len(codes))) if seeded else -1
    for a, b in zip(
        fast.around(*box, seed, permille, with_drops),
        slow.around(*box, seed, permille, with_drops),
        strict=True,
    ):
        assert np.array_equal(a, b)
    for column in range(len(n_bins)):
        assert np.array_equal(fast.bins(*box, column), slow.bins(*box, column))
    assert fast.work == slow.work


@pytest.mark.skipif(compiled is None, reason="stair was installed without a C compiler")
@settings(max_examples=examples(50))
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 5, 3000]), st.booleans())
def test_equal_rows_are_found_alike(seed: int, n_rows: int, wide: bool) -> None:
    """By a table of hashes that grows, and by sorting."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 40, (n_rows, 2)).astype(np.uint64 if wide else np.uint16)
    labels = random.integers(0, 2, n_rows).astype(np.int32)
    for fast, slow in zip(
        compiled.distinct(codes, labels), _twin.distinct(codes, labels), strict=True
    ):
        assert np.array_equal(fast, slow)


@settings(max_examples=examples(200))
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.integers(-1, 11), st.integers(0, 4),
    st.integers(1, 7).map(Sides),
)  # fmt: skip
def test_the_best_run_is_the_best_of_all(
    bins: list[int], at: int, price: int, sides: Sides
) -> None:
    """Three passes find what trying every run that the sides allow finds, with bounds paid for; and
    of runs that are worth the same, one with a single bound."""
    at = at if at < len(bins) else -1
    last = len(bins) - 1
    runs = [
        (a, b)
        for a in range(len(bins))
        for b in range(a, len(bins))
        if (at < 0 or a <= at <= b)
        and (
            Sides.BETWEEN in sides
            or (Sides.UP_TO in sides and a == 0)
            or (Sides.MORE_THAN in sides and b == last)
        )
    ]

    def is_open(run: tuple[int, int]) -> bool:
        return run[0] == 0 or run[1] == last

    net = {run: sum(bins[run[0] : run[1] + 1]) - price * (2 - is_open(run)) for run in runs}
    total, low, high = _twin._best_run(np.array(bins, dtype=np.int64), at, price, sides)
    assert total == sum(bins[low : high + 1])
    assert (low, high) in net
    if sides in (ANY_SIDE, ONE_SIDE, Sides.UP_TO, Sides.MORE_THAN):
        assert net[low, high] == max(net.values())
    if sides == ANY_SIDE:
        best = [run for run in runs if net[run] == net[low, high]]
        assert is_open((low, high)) or not any(map(is_open, best))
