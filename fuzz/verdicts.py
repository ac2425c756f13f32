"""Verdicts about a table's rows, in every coding, with what they mean."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.case import Column, Table, Verdict

Rng = np.random.Generator

# Codings of (inlier, outlier).
CODINGS: dict[str, tuple[Any, Any]] = {
    "0/1": (0, 1),
    "bool": (False, True),
    "+1/-1": (1, -1),
    "words": ("ok", "fraud"),
    "yes/no": ("no", "yes"),
    "0.0/1.0": (0.0, 1.0),
}
# Names of classes, the usual one first.
NAMED: tuple[tuple[Any, ...], ...] = (
    ("red", "green", "blue", "black", "white"),
    ("BENIGN", "bot", "scan", "flood", "worm"),
    (1, 2, 3, 4, 5),
    (0, -1, 7, 10, 2),
)
DETECTORS = ("iforest", "lof", "knn", "hbos", "ecod")


def draw_verdict(rng: Rng, table: Table) -> Verdict:
    """Planted on one or two columns, so that there are rules; or at random."""
    n = table.n_rows
    roll = rng.random()
    if roll < 0.03:
        return Verdict("detector", detector=DETECTORS[int(rng.integers(len(DETECTORS)))],
                       contamination=0.1)  # fmt: skip
    if roll < 0.16 and n >= 3:
        return _classes(rng, table)
    flagged = _planted(rng, table) if rng.random() < 0.8 else rng.random(n) < 0.2
    if roll < 0.24 and n >= 4:
        return _scores(rng, flagged)
    kind = list(CODINGS)[int(rng.integers(len(CODINGS)))]
    inlier, outlier = CODINGS[kind]
    values: list[Any] = [outlier if f else inlier for f in flagged.tolist()]
    truth: list[Any] = ["outlier" if f else "inlier" for f in flagged.tolist()]
    if rng.random() < 0.05 and kind in ("words", "0.0/1.0"):
        for row in np.flatnonzero(rng.random(n) < 0.1).tolist():
            values[row] = math.nan if kind == "0.0/1.0" else None
            truth[row] = None
    return Verdict(kind, tuple(values), tuple(truth))


def _classes(rng: Rng, table: Table) -> Verdict:
    """Three classes or more, of which one may be by far the largest: then the others are kinds of
    outlier. Some of them may be named."""
    kinds = [_planted(rng, table).tolist() for _ in range(int(rng.integers(2, 5)))]
    names = NAMED[int(rng.integers(len(NAMED)))]
    values = [names[0]] * table.n_rows
    for name, flagged in zip(names[1:], kinds, strict=False):
        values = [name if f else v for f, v in zip(flagged, values, strict=True)]
    if len(set(values)) < 3:
        values[:3] = names[:3]
    known = sorted(set(values))
    roll = rng.random()
    positive: tuple[Any, ...] = ()
    if roll < 0.25:
        positive = tuple(known[k] for k in rng.permutation(len(known))[: len(known) - 1].tolist())
        positive = positive[: int(rng.integers(1, len(positive) + 1))]
    negative = values[0] if 0.25 <= roll < 0.5 else None
    return Verdict("classes", tuple(values), tuple(values), None, None, None, positive, negative)


def _scores(rng: Rng, flagged: Any) -> Verdict:
    """Scores that are all different, so that the highest ones are who they are."""
    n, k = len(flagged), int(min(max(1, flagged.sum()), len(flagged) // 2))
    scores = (rng.permutation(n) + n * flagged).astype(float)
    ranks = np.argsort(-scores, kind="stable")
    scores[ranks] = np.arange(n, 0, -1) / n
    outliers = set(ranks[:k].tolist())
    truth = ["outlier" if row in outliers else "inlier" for row in range(n)]
    return Verdict("scores", tuple(scores.tolist()), tuple(truth), contamination=k)


def _planted(rng: Rng, table: Table) -> Any:
    """Rows whose values of one or two columns are among some neighbouring ones."""
    n = table.n_rows
    flagged = np.ones(n, dtype=bool)
    for _ in range(int(rng.integers(1, 3))):
        column = table.columns[int(rng.integers(len(table.columns)))]
        flagged &= _some_values(rng, column)
    if rng.random() < 0.3:
        flagged ^= rng.random(n) < 0.03
    if flagged.all() or not flagged.any():
        flagged = rng.random(n) < 0.25
    if n > 1 and (flagged.all() or not flagged.any()):
        flagged[0] = not flagged[0]
    return flagged


def _some_values(rng: Rng, column: Column) -> Any:
    if column.type in ("naive", "zoned") and rng.random() < 0.5:
        return _some_hours(rng, column)
    distinct = sorted({_key(v) for v in column.values})
    size = max(1, int(len(distinct) * rng.uniform(0.05, 0.45)))
    start = int(rng.choice([0, len(distinct) - size, rng.integers(0, len(distinct) - size + 1)]))
    chosen = set(distinct[start : start + size])
    return np.array([_key(v) in chosen for v in column.values])


def _some_hours(rng: Rng, column: Column) -> Any:
    """Hours of the day, or weekdays, by the clocks of the column's zone."""
    start, n = int(rng.integers(0, 24)), int(rng.integers(2, 9))
    hours = {k % 24 for k in range(start, start + n)}
    days = set(rng.integers(0, 7, 2).tolist())
    by_day = rng.random() < 0.4
    return np.array([
        v is not None and (v.weekday() in days if by_day else v.hour in hours)
        for v in column.values
    ])  # fmt: skip


def _key(value: Any) -> tuple[int, Any, str]:
    if value is None or value != value:
        return (2, 0, "")
    if isinstance(value, int | float):
        return (0, value, "")
    return (1, 0, str(value))
