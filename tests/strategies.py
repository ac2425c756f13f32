"""Random tables for the property tests: few distinct values, so that ties are everywhere; and how
many of them a long property looks at."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from stair.engines.memory import MemoryEngine
from stair.rules.columns import Numbers

SHARES = {"quick": 0.1, "default": 0.25, "thorough": 1.0}


def examples(n: int) -> int:
    """Of `n` examples as many as STAIR_TEST_EXAMPLES asks for; `thorough` is all of them."""
    return max(5, round(n * SHARES[os.environ.get("STAIR_TEST_EXAMPLES", "default")]))


class Labelled(NamedTuple):
    X: NDArray[np.float64]
    y: NDArray[np.int32]
    n_classes: int
    weights: NDArray[np.float64] | None

    def engine(self, kernel: str = "auto") -> MemoryEngine:
        columns = [Numbers(f"x{j}", j) for j in range(self.X.shape[1])]
        return MemoryEngine(columns, self.X, self.y, self.n_classes, self.weights, kernel=kernel)


VALUES = st.sampled_from([-3.0, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 100.0, 1e9, float("nan")])


@st.composite
def labelled(
    draw: Any,
    max_rows: int = 40,
    max_columns: int = 4,
    weighted: bool = False,
    max_classes: int = 3,
) -> Labelled:
    """A table with ties and missing values whose rows have at least two classes."""
    n_classes = draw(st.integers(2, max_classes))
    n_rows = draw(st.integers(n_classes, max_rows))
    n_columns = draw(st.integers(1, max_columns))
    flat = draw(st.lists(VALUES, min_size=n_rows * n_columns, max_size=n_rows * n_columns))
    y = draw(st.lists(st.integers(0, n_classes - 1), min_size=n_rows, max_size=n_rows))
    y[:n_classes] = range(n_classes)
    weights = None
    if weighted and draw(st.booleans()):
        weight = st.sampled_from([1.0, 2.0, 3.0, 0.25, 0.1, 7.5])
        weights = np.array(draw(st.lists(weight, min_size=n_rows, max_size=n_rows)))
    X = np.array(flat).reshape(n_rows, n_columns)
    return Labelled(X, np.array(y, dtype=np.int32), n_classes, weights)
