"""Tables of all kinds of column, and wishes to learn from them with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray


class Table(NamedTuple):
    """Columns of all kinds, with values missing."""

    columns: dict[str, NDArray[Any]]
    y: NDArray[np.int64]
    weights: NDArray[np.float64] | None


@st.composite
def tables(draw: Any, max_rows: int = 60) -> Table:
    n = draw(st.integers(12, max_rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    amount = random.integers(0, 12, n).astype(float)
    other = random.normal(size=n).round(1)
    other[random.random(n) < 0.15] = np.nan
    country = random.choice(["DE", "FR", "IT", None], n).astype(object)
    when = np.datetime64("2024-01-01") + random.integers(0, 9, n).astype("timedelta64[D]")
    y = (amount > 8) | (np.nan_to_num(other) < -1) | (random.random(n) < 0.1)
    y[:2] = [True, False]
    weights = None
    if draw(st.booleans()):
        weights = random.choice([1.0, 2.0, 3.0, 0.5], n)
    note = random.choice(["card refund", "gift order", "refund of an order", None], n)
    columns = {"amount": amount, "other": other, "country": country, "when": when,
               "is_new": random.random(n) < 0.5, "note": note.astype(object)}  # fmt: skip
    return Table(columns, y.astype(np.int64), weights)


WISHES = st.fixed_dictionaries(
    {},
    optional={
        "min_precision": st.sampled_from([0.5, 0.8, 1.0]),
        "min_rule_precision": st.sampled_from([0.5, 0.9]),
        "min_recall": st.sampled_from([0.3, 0.6, 0.9]),
        "max_alerts": st.sampled_from([2, 5, 20, 0.1, 0.3]),
        "max_rules": st.integers(1, 3),
        "max_total_length": st.integers(1, 6),
        "min_score": st.sampled_from([0.5, 0.8]),
        "beta": st.sampled_from([0.5, 1.0, 2.0]),
    },
)
