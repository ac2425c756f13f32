"""A first pool of rules: STAIR's own, grown past the floor.

Growing takes a fraction of a second, and rules that cover all that STAIR's outlier rules cover
reach the floor where STAIR does. Whatever they have too much is dropped later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.learn.distill.cells import Bins, Box, Cells
from stair.rules.clauses import Clause
from stair.rules.columns import Absence, Binned, Categories, Column, Term, Times
from stair.rules.rule_set import Leaf

# A value that no column has.
_OTHER: Final = object()


def boxes_of(cells: Cells, leaves: Sequence[Leaf]) -> list[tuple[Box, int]]:
    """Leaves as boxes with their classes: of each clause the bins that it covers whole. A leaf with
    a bound that a column does not allow is none."""
    found = []
    for leaf in leaves:
        box: Box = {}
        for clause in leaf.clauses:
            column = _column_of(cells, clause)
            bins = _bins_of(cells, column, clause)
            if bins is None or not cells.allows(column, bins):
                break
            box[column] = bins
        else:
            if box and cells.is_one_of_each_group(box):
                found.append((box, leaf.label))
    return found


def _column_of(cells: Cells, clause: Clause) -> int:
    for j, column in enumerate(cells.columns):
        if column.name != clause.feature:
            continue
        # A column of numbers that are codes is there twice: in order, and as names.
        if clause.is_ordered == isinstance(column, Categories | Absence | Term):
            continue
        if clause.terms == ((column.term,) if isinstance(column, Term) else ()):
            return j
    raise LookupError(f"no column for {clause}")


def _bins_of(cells: Cells, j: int, clause: Clause) -> Bins | None:
    """The bins that a clause covers whole; None where there is none."""
    column = cells.columns[j]
    covered = _covered(clause, cells.smallest[j], column) & _covered(
        clause, cells.largest[j], column
    )
    at = np.flatnonzero(covered)
    missing = bool(cells.has_missing[j]) and clause.missing
    if isinstance(column, Categories):
        return frozenset([*at.tolist(), *([len(covered)] if missing else [])]) or None
    if not len(at):
        return (1, 0, True) if missing else None
    return int(at[0]), int(at[-1]), missing


def _covered(clause: Clause, codes: NDArray[np.float64], column: Column) -> NDArray[np.bool_]:
    """Which codes of a column a clause covers."""
    if isinstance(column, Term):
        return np.equal(codes, float(not clause.negated))
    if isinstance(column, Absence):
        return np.equal(codes, float(clause.missing))
    values: Array = codes
    if isinstance(column, Categories):
        values = np.empty(len(codes), dtype=object)
        # NaN: all that cannot be named, which are in no list, and so as a value never seen.
        values[:] = [_OTHER if k != k else column.values[int(k)] for k in codes.tolist()]
        return clause.covers(values)
    if isinstance(column, Binned):
        values = np.array([column.tops[int(k)] for k in codes.tolist()])
        column = column.inner
    if isinstance(column, Times):
        values = values.astype(np.int64).astype("datetime64[us]")
    return clause.covers(values)
