"""The paper's equations, as functions of counts: entropy, purity, S, M, price and F1."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Integers

Counts = NDArray[np.int64]

# A table of k·log2(k) pays up to this weight, or this many times the rows; beyond, it is computed.
SMALL_TABLE: Final = 1 << 20
TABLE_PER_ROW: Final = 16

# A gain this small, relative to n·log2(n), is rounding and not a gain.
ROUNDING: Final = 2.0**-48

# Rules that one or two rows justify do not hold on new rows. Each must cover this many outliers,
# or a tenth of them where there are few.
MIN_OUTLIERS: Final = 5


def least_outliers(min_outliers: int | None, n_outliers: int) -> int:
    """The least number of outliers for a rule, where none was asked for."""
    if min_outliers is not None:
        return min_outliers
    return max(1, min(MIN_OUTLIERS, n_outliers // 10))


def log_table(total: int, n_rows: int | None = None) -> NDArray[np.float64] | None:
    """k·log2(k) for k = 0 … total, or None where the table would be too large for so few rows.

    Every engine reads the same table, so every engine gets the same gain to the last bit.
    """
    if n_rows is not None and not has_table(total, n_rows):
        return None
    k = np.arange(total + 1, dtype=np.float64)
    table = np.zeros(total + 1)
    np.log2(k[1:], out=table[1:])
    table *= k
    return table


def has_table(total: int, n_rows: int) -> bool:
    """Whether a table up to that weight is worth it for so many rows."""
    return total <= max(SMALL_TABLE, TABLE_PER_ROW * n_rows)


class ComputedLogs:
    """The same numbers as a table of k·log2(k), without its memory: for counts of any size."""

    def __getitem__(self, counts: Counts) -> NDArray[np.float64]:
        k = counts.astype(np.float64)
        logs = np.log2(k, out=np.zeros_like(k), where=k > 0)
        logs *= k
        return logs


Logs: TypeAlias = NDArray[np.float64] | ComputedLogs | None


def xlog2x(counts: Counts, table: Logs) -> NDArray[np.float64]:
    """k·log2(k) for each count.

    Without a table it goes through math.log2, the same C function that the kernel calls:
    numpy's own vectorised log2 may differ from it in the last bit.
    """
    if table is not None:
        return table[counts]
    flat = [k * math.log2(k) if k else 0.0 for k in counts.ravel().tolist()]
    return np.array(flat).reshape(counts.shape)


def negentropy(counts: Counts, table: Logs) -> NDArray[np.float64]:
    """−n·Entropy in bits for class counts in the last axis; at most 0, and 0 where pure.

    The classes are added one after the other, as the kernel does, never pairwise.
    """
    logs = xlog2x(counts, table)
    total = logs[..., 0].copy()
    for k in range(1, logs.shape[-1]):
        total += logs[..., k]
    result: NDArray[np.float64] = total - xlog2x(counts.sum(axis=-1), table)
    return result


def entropy(counts: Sequence[float] | Counts) -> float:
    """Entropy of class counts, in bits."""
    total = float(sum(counts))
    return -sum(c / total * math.log2(c / total) for c in map(float, counts) if c)


def purity(counts: Sequence[float] | Counts) -> float:
    """n·E(r) = rows × (1 − Entropy), the paper's purity of one rule.

    With more than two classes the entropy is divided by log2 of their number, so that purity
    stays between 0 and the number of rows, as the paper's algebra of M needs. It changes no
    order of prices.
    """
    n_classes = len(counts)
    return float(sum(counts)) * (1.0 - entropy(counts) / entropy_scale(n_classes))


def entropy_scale(n_classes: int) -> float:
    """The largest entropy that there can be: 1 bit for two classes."""
    return math.log2(n_classes) if n_classes > 2 else 1.0


def objective(total_purity: float, total_length: float, stabilizer: float) -> float:
    """S(R, M) = Σ n·E / (Σ L + M)."""
    denominator = total_length + stabilizer
    return total_purity / denominator if denominator > 0 else math.inf


def extra_length(length: int, is_new_attribute: bool) -> int:
    """ΔL of dividing a rule of this length: two children of L or L + 1 in place of one."""
    return 2 * (length + is_new_attribute) - length


def price(length_added: int, purity_gained: float) -> float:
    """ΔL / ΔE: what a split costs in length for each unit of purity."""
    return length_added / purity_gained


def boundary_stabilizer(total_purity: float, total_length: float, split_price: float) -> float:
    """M_b = A0·ΔL/ΔE − B0: any larger M makes the split raise the objective."""
    return total_purity * split_price - total_length


def f1(true_positives: float, predicted_positives: float, positives: float) -> float:
    """F1 of the outlier class; 0 where there is nothing to divide by."""
    both = predicted_positives + positives
    return 2.0 * true_positives / both if both else 0.0


def reaches(score: float, floor: float) -> bool:
    """A score reaches the floor when it is above it; a perfect score always does."""
    return score > floor or score >= 1.0


def score_of_classes(
    predicted: Integers,
    actual: Integers,
    positive: int | None,
    counts: Counts | None = None,
) -> float:
    """F1 of class `positive`, or accuracy where there is none, from two classes for each row, or
    for each group of so many rows."""

    def n_rows(which: NDArray[np.bool_]) -> int:
        return int(which.sum() if counts is None else counts[which].sum())

    if positive is None:
        n_all = len(actual) if counts is None else int(counts.sum())
        return n_rows(predicted == actual) / n_all if n_all else 0.0
    hits = n_rows((predicted == positive) & (actual == positive))
    return f1(hits, n_rows(predicted == positive), n_rows(actual == positive))


def score_of(
    labelled_counts: Iterable[tuple[int, Sequence[float]]],
    totals: Sequence[float],
    positive: int | None,
) -> float:
    """F1 of class `positive`, or accuracy where there is none.

    Takes the predicted class index and the true class counts of groups that cover all rows.
    """
    groups = list(labelled_counts)
    if positive is None:
        total = float(sum(totals))
        return sum(float(c[k]) for k, c in groups) / total if total else 0.0
    chosen = [c for k, c in groups if k == positive]
    hits = sum(float(c[positive]) for c in chosen)
    return f1(hits, sum(float(sum(c)) for c in chosen), float(totals[positive]))
