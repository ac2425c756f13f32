"""The same table, learned from by many threads at once: each gets what it gets alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from stair import DistilledStair, Stair
from stair.engines.counting import Block, Paths, bin_numbers, count_block, no_counts, only_root

THREADS = 8


def _table() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    X = random.normal(size=(4000, 6))
    X[random.random(X.shape) < 0.05] = np.nan
    return X, (X[:, 0] > 1.2) | ((X[:, 1] < -1) & (X[:, 2] > 0)) | (random.random(4000) < 0.01)


def _at_once(work: object) -> list[object]:
    """What all threads get that begin together."""
    barrier = Barrier(THREADS)

    def begin(_: int) -> object:
        barrier.wait()
        return work()  # type: ignore[operator]

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def test_trees_that_grow_at_once_are_the_tree_that_grows_alone() -> None:
    """They share the table, its labels and the kernels, and nothing else."""
    X, y = _table()

    def grown() -> object:
        model = Stair(min_score=0.85).fit(X, y)
        return str(model.rules_), model.predict(X).tolist()

    alone = grown()
    assert all(each == alone for each in _at_once(grown))


def test_rules_that_are_distilled_at_once_are_those_that_are_distilled_alone() -> None:
    X, y = _table()

    def distilled() -> object:
        model = DistilledStair(min_score=0.8, effort="fast", random_state=0).fit(X, y)
        return str(model.rules_), model.predict(X).tolist()

    alone = distilled()
    assert all(each == alone for each in _at_once(distilled))


def test_passes_over_the_same_codes_count_the_same() -> None:
    """Blocks are read by all and written by none; each has counts of its own."""
    X, y = _table()
    edges = np.linspace(-2, 2, 30)
    codes = [bin_numbers(column, edges, 32) for column in X.T]
    block, paths = Block(codes, y.astype(np.uint8)), only_root()
    assert isinstance(paths, Paths)

    def counted() -> object:
        counts = no_counts(1, [32] * 6, 2, range(6))
        count_block(block, paths, [32] * 6, range(6), counts)
        return counts.tolist()

    alone = counted()
    assert np.asarray(alone).sum() == 6 * len(X)
    assert all(each == alone for each in _at_once(counted))
