"""Which rules cover which rows, counted: what each adds, and how they overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.rules import RuleSet

# Rows looked at together: a block of rows by all rules fits the memory, whatever the data's size.
BLOCK: Final = 1 << 15
MOST_PAIRED: Final = 60  # rules whose overlap is looked at pair by pair
MOST_PAIRS: Final = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rules and the rows that both cover."""

    first: int
    second: int
    rows: int
    outliers: int
    of_first: float
    of_second: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many rules cover a row: of outliers by outlier rules, or of all rows where there is no
    outlier class. The pairs that share the most rows are listed."""

    depths: tuple[tuple[int, int], ...]  # covered by so many rules, such rows
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """Counts over all rows."""

    totals: NDArray[np.int64]  # rows by class
    only: NDArray[np.int64]  # by rule: rows of its label that no other rule for that label covers
    first: NDArray[np.int64]  # rule × class: rows that the rule decides about
    rest: NDArray[np.int64]  # by class: rows that no rule covers
    wrong: int  # rows whose label by the rules is another
    overlap: Overlap | None
    examples: tuple[NDArray[np.intp], ...]  # by rule: the first rows that it covers


def coverage_of(
    rules: RuleSet, values: dict[str, NDArray[Any]], codes: NDArray[np.int32], examples: int = 0
) -> Coverage:
    """One pass over the rows, block by block."""
    n_rules, n_classes = len(rules), len(rules.classes)
    labels = np.array([rules.classes.index(rule.label) for rule in rules], dtype=np.intp)
    positive = None if rules.positive is None else rules.classes.index(rules.positive)
    main = np.flatnonzero(labels == positive) if positive is not None else np.arange(n_rules)
    paired = main[:MOST_PAIRED]
    rows = np.zeros(n_rules, dtype=np.int64)
    only = np.zeros(n_rules, dtype=np.int64)
    first = np.zeros((n_rules + 1, n_classes), dtype=np.int64)  # the last is no rule at all
    depths = np.zeros(n_rules + 1, dtype=np.int64)
    deepest = 0
    both, marked = (np.zeros((len(paired), len(paired)), dtype=np.int64) for _ in range(2))
    shown: list[list[int]] = [[] for _ in range(n_rules)]
    for start in range(0, len(codes), BLOCK):
        block = slice(start, start + BLOCK)
        here = codes[block]
        covered = rules.covers({name: array[block] for name, array in values.items()})
        decides = np.where(covered.any(axis=1), covered.argmax(axis=1), n_rules) if n_rules else 0
        np.add.at(first, (decides, here), 1)
        rows += covered.sum(axis=0)
        for c in np.unique(labels):
            own = np.flatnonzero(labels == c)
            right = covered[np.ix_(here == c, own)]
            only[own] += right[right.sum(axis=1) == 1].sum(axis=0)
        depth = covered[:, main].sum(axis=1)
        counted = depth if positive is None else depth[here == positive]
        depths += np.bincount(counted, minlength=n_rules + 1)
        deepest = max(deepest, int(depth.max(initial=0)))
        if (depth > 1).any():
            deep = covered[np.ix_(depth > 1, paired)].astype(np.float32)  # at most 2^15 rows: exact
            both += (deep.T @ deep).astype(np.int64)
            outliers = deep[here[depth > 1] == positive] if positive is not None else deep[:0]
            marked += (outliers.T @ outliers).astype(np.int64)
        for number in range(n_rules if examples else 0):
            wanted = examples - len(shown[number])
            if wanted > 0:
                found = np.flatnonzero(covered[:, number])[:wanted] + start
                shown[number] += found.tolist()
    decided = np.append(labels, rules.classes.index(rules.default))
    right_rows = int(first[np.arange(n_rules + 1), decided].sum())
    overlap = Overlap(
        tuple((k, int(n)) for k, n in enumerate(depths.tolist()) if k and n),
        _pairs(paired, rows, both, marked),
    )
    return Coverage(
        first.sum(axis=0), only, first[:-1], first[-1], len(codes) - right_rows, overlap if deepest > 1 else None,
        tuple(np.array(each, dtype=np.intp) for each in shown),
    )  # fmt: skip


def _pairs(
    paired: NDArray[np.intp],
    rows: NDArray[np.int64],
    both: NDArray[np.int64],
    marked: NDArray[np.int64],
) -> tuple[Pair, ...]:
    found = [
        Pair(
            int(paired[i]) + 1, int(paired[j]) + 1, int(both[i, j]), int(marked[i, j]),
            float(both[i, j] / rows[paired[i]]), float(both[i, j] / rows[paired[j]]),
        )
        for i, j in zip(*np.nonzero(np.triu(both, 1)), strict=True)
    ]  # fmt: skip
    found.sort(key=lambda pair: (-pair.rows, pair.first, pair.second))
    return tuple(found[:MOST_PAIRS])
