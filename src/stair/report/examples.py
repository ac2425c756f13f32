"""Rows of the data in the report, where somebody asks for them: typical ones of each rule with
their reasons, and what sets the outliers apart that no rule covers."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data import from_object
from stair.data.conversion import is_missing
from stair.data.frame import Array
from stair.evidence.findings import Findings
from stair.report.cells import cell
from stair.report.content import Alone, Examples
from stair.rules.clauses import name_in_words

MOST_CELLS: Final = 24
MOST_ALONE: Final = 500  # unexplained outliers that are looked at one by one
MOST_GROUPS: Final = 12


def examples_of(summary: Findings, covered: NDArray[np.bool_], place: int, most: int) -> Examples:
    """Typical rows of a rule, by its place: of those that it covers rightly, where there are any,
    the ones that are nearest to the middle of them in the rule's attributes."""
    rules, rule = summary.rules, summary.rules[place]
    rows = np.flatnonzero(covered)
    right = rows[summary._codes[rows] == rules.classes.index(rule.label)]
    rows = right if len(right) else rows
    distance = np.zeros(len(rows))
    for name in rule.features:
        distance += _from_the_middle(summary._values[name][rows])
    rows = rows[np.argsort(distance, kind="stable")[:most]]
    table = from_object(summary.rows_of_data(summary._rows[rows])).columns if len(rows) else {}
    columns = list(table)[:MOST_CELLS]
    names = [rules.label_name(c) for c in rules.classes]
    found = [
        (
            int(summary._rows[row]) + 1,
            names[summary._codes[row]],
            tuple(cell(table[name][k]) for name in columns),
        )
        for k, row in enumerate(rows.tolist())
    ]
    reasons = rules.reasons(summary._values.take(rows)).words if len(rows) else []
    return Examples(tuple(columns), tuple(found), tuple(reasons))


def _from_the_middle(array: Array) -> NDArray[np.float64]:
    """How far values are from the middle one, as a share of all ranks; of categories, how much
    rarer each is than the most frequent."""
    n = len(array)
    if array.dtype.kind in "fiuM":
        gone = is_missing(array)
        order = np.argsort(array, kind="stable")  # missing ones last
        known = array[order][: n - int(gone.sum())]
        low, high = np.searchsorted(known, array), np.searchsorted(known, array, "right")
        rank = (low + high) / 2
        return np.where(gone, 1.0, np.abs(rank / max(len(known), 1) - 0.5))
    listed = array.tolist()
    counts: dict[object, int] = {}
    for value in listed:
        counts[value] = counts.get(value, 0) + 1
    most = max(counts.values(), default=1)
    return np.array([1 - counts[value] / most for value in listed])


def alone_of(summary: Findings) -> tuple[Alone, ...]:
    """What sets unexplained outliers apart, each by itself, grouped by the attributes that do; the
    largest group first, and those that nothing tells apart at the end."""
    missed = summary.unexplained_rows()[:MOST_ALONE]
    groups: dict[tuple[str, ...], list[tuple[int, str]]] = {}
    for number, reason in zip(missed.tolist(), summary.reasons(missed), strict=True):
        own = reason.own
        is_apart = own is not None and own.is_apart
        names = sorted({clause.attribute for clause in own.clauses}) if own and is_apart else []
        groups.setdefault(tuple(names), []).append((number + 1, reason.words))
    ordered = sorted(groups.items(), key=lambda item: (not item[0], -len(item[1])))
    return tuple(
        Alone(" and ".join(map(name_in_words, names)), len(rows), *rows[0])
        for names, rows in [*ordered[:MOST_GROUPS], *(g for g in ordered[MOST_GROUPS:] if not g[0])]
    )
