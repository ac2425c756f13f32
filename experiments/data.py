"""The data of the experiments: the paper's files, and for a quick run a few rows of them."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import settings
from experiments.datasets import DataNotFound, load, load_traffic

TRAFFIC = "Thursday-01-03"
MULTICLASS = "WineQuality"


@dataclass(frozen=True)
class Source:
    """Where data is looked for; small enough to hand to another process."""

    data_dir: Path | None = None
    traffic: Path | None = None
    quick: bool = False


@dataclass(frozen=True, eq=False)
class Data:
    """A table with its true labels, ready for a detector."""

    name: str
    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    sum: str
    made_up: bool = False

    @property
    def is_multiclass(self) -> bool:
        return self.name == MULTICLASS

    @property
    def n_outliers(self) -> int:
        return int(np.count_nonzero(self.y))


def names(source: Source) -> list[str]:
    """The data sets that a run speaks of, in the paper's order."""
    known = settings.read(source.quick)
    every = list(known.published["q1"]["values"])
    return [n for n in every if not source.quick or n in known["quick_data"]]


def find(name: str, source: Source) -> Data:
    """The data set, or DataNotFound. A quick run makes up what is not there."""
    made_up = False
    try:
        if name == TRAFFIC and source.traffic is not None:
            loaded = load_traffic(source.traffic)
        else:
            loaded = load(name, source.data_dir)
        X, y = loaded.X, loaded.y
    except DataNotFound:
        if not source.quick:
            raise
        X, y = _made_up(name)
        made_up = True
    if source.quick:
        known = settings.read(quick=True)
        order = np.random.default_rng(known["seed"]).permutation(len(y))[: known["quick_rows"]]
        X, y = np.ascontiguousarray(X[order]), y[order]
    content = hashlib.sha256(X.tobytes() + y.tobytes()).hexdigest()[:16]
    return Data(name, X, y, content, made_up)


def _made_up(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows in a few clumps with a few far ones; for Wine Quality classes by one direction."""
    rng: Any = np.random.default_rng(zlib.crc32(name.encode()))
    centers = rng.normal(0, 4, (3, 6))
    rows = centers[rng.integers(0, 3, 600)] + rng.normal(0, 1, (600, 6))
    if name == MULTICLASS:
        y = 5 + np.digitize(rows[:, 0] + rng.normal(0, 0.5, 600), [-2.0, 2.0])
    else:
        y = (rng.random(600) < 0.1).astype(np.int64)
        rows[y == 1] += rng.normal(0, 5, (int(y.sum()), 6))
    return np.round(rows, 2), y.astype(np.int64)
