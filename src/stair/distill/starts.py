"""A first pool of rules: STAIR's own, grown past the floor.

Growing takes a fraction of a second, and rules that cover all that STAIR's outlier rules cover
reach the floor where STAIR does. Whatever they have too much is dropped later.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stair.clauses import Clause, Mentions
from stair.columns import Absence, Categories, Term, Times
from stair.distill.cells import Bins, Box, Cells
from stair.rules import Leaf


def boxes_of(cells: Cells, leaves: Sequence[Leaf]) -> list[tuple[Box, int]]:
    """Leaves as boxes with their classes: of each clause the bins that it covers whole."""
    found = []
    for leaf in leaves:
        box: Box = {}
        for clause in leaf.clauses:
            column = _column_of(cells, clause)
            bins = _bins_of(cells, column, clause)
            if bins is None:
                break
            box[column] = bins
        else:
            if box:
                found.append((box, leaf.label))
    return found


def _column_of(cells: Cells, clause: Clause) -> int:
    for j, column in enumerate(cells.columns):
        if column.name != clause.feature:
            continue
        if isinstance(column, Term) != isinstance(clause, Mentions):
            continue
        if not isinstance(clause, Mentions) or column.term == clause.term:  # type: ignore[union-attr]
            return j
    raise LookupError(f"no column for {clause}")


def _bins_of(cells: Cells, j: int, clause: Clause) -> Bins | None:
    """The bins that a clause covers whole; None where there is none."""
    column = cells.columns[j]
    missing = bool(cells.has_missing[j]) and getattr(clause, "missing", False)
    n_values = int(cells.n_bins[j]) - int(cells.has_missing[j])
    if isinstance(column, Term):
        covered = cells.smallest[j] == float(clause.present)  # type: ignore[union-attr]
    elif isinstance(column, Absence):
        covered = cells.smallest[j] == float(clause.missing)  # type: ignore[union-attr]
        missing = False
    elif isinstance(column, Categories):
        places = cells.smallest[j].astype(np.intp)
        values = np.empty(len(places), dtype=object)
        values[:] = [column.values[k] for k in places.tolist()]
        covered = clause.covers(values)
        chosen = set(np.flatnonzero(covered).tolist()) | ({n_values} if missing else set())
        return frozenset(chosen) or None
    else:
        covered = _covered(clause, cells.smallest[j], column) & _covered(
            clause, cells.largest[j], column
        )
    at = np.flatnonzero(covered)
    if not len(at):
        return (1, 0, True) if missing else None
    return int(at[0]), int(at[-1]), missing


def _covered(clause: Clause, values: NDArray[np.float64], column: object) -> NDArray[np.bool_]:
    if isinstance(column, Times):
        return clause.covers(values.astype(np.int64).astype("datetime64[us]"))
    return clause.covers(values)
