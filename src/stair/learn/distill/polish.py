"""The last touch: boxes become clauses that a person can read and that hold on new rows.

A bound moves to the middle of the empty gap towards the next row of another class, at a short
decimal. Where there is no such row beyond it, it goes: an interval with one side reads better and
generalises better. Nothing that was covered is lost, and no row of another class is won.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.learn.distill.cells import Bins, Box, Cells
from stair.rules.clauses import IN_STEPS, Among, Clause, Interval, Period
from stair.rules.columns import FAR, Binned, Categories, Numbers, Times

# A bound may lie from the first code to before the second; None where it may go.
Gap: TypeAlias = tuple[float, float] | None
Reader: TypeAlias = Callable[[str], Array]  # a column's values, as rules read them

# Of a gap only the inner part is looked at for a short decimal, this far from its ends.
INNER: Final = 0.25


def clauses_of(
    cells: Cells,
    values: NDArray[np.float64],
    box: Box,
    is_foreign: NDArray[np.bool_],
    read: Reader,
) -> tuple[Clause, ...]:
    """A box as clauses with wide bounds; `is_foreign` marks the rows of other classes.

    What the wide clauses cover is counted before they are taken: where they lose a row, or win one
    of another class, bounds go no farther than the next row of any class.
    """
    box = _by_name(cells, box)
    inside = _all_of(len(values), [_meets(cells, j, bins) for j, bins in box.items()])
    clauses, covered = _widened(cells, values, box, is_foreign, read)
    if (covered[inside].all() and not (covered & is_foreign & ~inside).any()) or is_foreign.all():
        return clauses
    return _widened(cells, values, box, np.ones_like(is_foreign), read)[0]


def _by_name(cells: Cells, box: Box) -> Box:
    """The box with single codes, such as a port, by their names: that is what is meant, and not
    whatever lies between them and the next code."""
    found: Box = {}
    for j, bins in box.items():
        named = (
            None if isinstance(bins, frozenset) or bins[0] != bins[1] else _name_of(cells, j, *bins)
        )
        if named is None or named[0] in box:
            found[j] = bins
        else:
            found[named[0]] = named[1]
    return found


def _name_of(cells: Cells, j: int, at: int, _: int, missing: bool) -> tuple[int, Bins] | None:
    """The column of names beside a column of numbers, and a bin of one number in it."""
    for k, column in enumerate(cells.columns):
        if k == j or column.name != cells.columns[j].name or not isinstance(column, Categories):
            continue
        value = cells.smallest[j][at]
        names = [column.values[int(code)] for code in cells.smallest[k] if not np.isnan(code)]
        if (
            value == cells.largest[j][at]
            and value in names
            and isinstance(cells.columns[j], Numbers)
        ):
            gone = {int(cells.n_bins[k]) - 1} if missing and cells.has_missing[k] else set()
            return k, frozenset({names.index(value), *gone})
    return None


def _all_of(n_rows: int, met: Iterable[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    return reduce(np.logical_and, met, np.ones(n_rows, dtype=np.bool_))


def _widened(
    cells: Cells,
    values: NDArray[np.float64],
    box: Box,
    is_foreign: NDArray[np.bool_],
    read: Reader,
) -> tuple[tuple[Clause, ...], NDArray[np.bool_]]:
    """Clauses with bounds as wide as they may be, and the rows that these clauses cover."""
    meets = {j: _meets(cells, j, bins) for j, bins in box.items()}
    clauses: dict[int, Clause] = {}
    for j, bins in sorted(box.items()):
        others = _all_of(len(values), [rows for other, rows in meets.items() if other != j])
        column = cells.columns[j]
        clause: Clause | None
        if isinstance(column, Categories):
            assert isinstance(bins, frozenset)
            missing = bool(cells.has_missing[j]) and int(cells.n_bins[j]) - 1 in bins
            clause = _among(
                column, values[others, j], meets[j][others], cells.smallest[j], missing=missing
            )
        elif isinstance(column, Numbers | Times | Binned):
            assert not isinstance(bins, frozenset)
            gaps = _gaps(values[others, j], meets[j][others], is_foreign[others])
            is_open = bins[2] or (not cells.has_missing[j] and len(meets) > 1)
            clause = _interval(column, gaps, missing=bins[2], is_open=is_open)
        else:  # a term of a text, or its absence: one of two sides
            assert not isinstance(bins, frozenset)
            clauses[j] = column.cut(0.0, 1.0, None)[int(cells.smallest[j][bins[0]])]
            continue
        if clause is None:  # both bounds could go, so it says nothing
            del meets[j]
        else:
            meets[j] = clause.covers(read(column.name))
            clauses[j] = clause
    return tuple(clauses.values()), _all_of(len(values), meets.values())


def _meets(cells: Cells, j: int, bins: Bins) -> NDArray[np.bool_]:
    """The rows that a clause of the box allows."""
    _, allowed = cells.table({j: bins})
    met: NDArray[np.bool_] = allowed[0].astype(np.bool_)[cells.codes[:, j]]
    return met


def _gaps(
    values: NDArray[np.float64], inside: NDArray[np.bool_], is_foreign: NDArray[np.bool_]
) -> tuple[Gap, Gap] | None:
    """Where the two bounds may lie, for the rows that meet the other clauses; None where only
    missing values are inside."""
    known = values[inside & ~np.isnan(values)]
    if not known.size:
        return None
    low, high = float(known.min()), float(known.max())
    below = values[is_foreign & (values < low)]
    above = values[is_foreign & (values > high)]
    return (
        (float(below.max()), low) if below.size else None,
        (high, float(above.min())) if above.size else None,
    )


def _interval(
    column: Numbers | Times | Binned, gaps: tuple[Gap, Gap] | None, *, missing: bool, is_open: bool
) -> Interval | Period | None:
    """The interval with its bounds in the gaps; None where it would cover every value: an
    open one without a bound, which has missing values inside or knows of none."""
    every, none = column.cut(0.0, np.inf, False)  # all values that are there, and those missing
    clause: Any = none
    if gaps is not None:
        low, high = gaps
        if low is None and high is None and is_open:
            return None
        clause = every
        if low is not None:
            clause &= _above(column, low)
        if high is not None:
            clause &= _cut_within(column, high)[0]
    found: Interval | Period = replace(clause, missing=missing)
    return found


def _above(column: Numbers | Times | Binned, gap: tuple[float, float]) -> Any:
    """The upper side of a cut. Of whole numbers a person reads the first inside, so that is the
    one to be short."""
    a, b = gap
    if not isinstance(column, Numbers) or not column.whole or max(abs(a), abs(b)) >= IN_STEPS:
        return _cut_within(column, gap)[1]
    clause = _cut_within(column, (a + 1, b + 1))[1]
    return replace(clause, low=clause.low - 1)


def _cut_within(column: Numbers | Times | Binned, gap: tuple[float, float]) -> Any:
    """A cut in the inner part of the gap, where that part holds a number.

    Times and whole numbers stay whole. A gap that reaches as far as numbers go has no inner part.
    """
    a, b = gap
    if isinstance(column, Binned):
        a, b, column = column.tops[int(a)], column.bottoms[int(b)], column.inner
    elif isinstance(column, Times):
        a, b = int(a), int(b)
    if max(abs(a), abs(b)) >= FAR:
        return column.cut(a, b, None)
    if (isinstance(a, int) and isinstance(b, int)) or (
        isinstance(column, Numbers) and column.whole
    ):
        margin: float = (b - a) // round(1 / INNER)
    else:
        margin = INNER * (b / 2 - a / 2) * 2
    inner = (a + margin, b - margin)
    return column.cut(*(inner if a < inner[0] < inner[1] < b else (a, b)), None)


def _among(
    column: Categories,
    codes: NDArray[np.float64],
    inside: NDArray[np.bool_],
    own: NDArray[np.float64],
    *,
    missing: bool,
) -> Among:
    """Categories as a clause. Those that do not occur among the rows that meet the other clauses
    may stand on either side: the list that is written has none of them. Those without a bin of
    their own, which are all on one side, are never named."""
    gone = np.isnan(codes)
    yes, no = (np.unique(codes[side & ~gone]) for side in (inside, ~inside))
    # Where every value there can be is known, "= False" reads better than "≠ True".
    negated = len(no) < len(yes) and not column.is_closed
    if not np.isin(no if negated else yes, own).all():
        negated = not negated
    named = (no if negated else yes).astype(np.intp)
    return column.among(tuple(column.values[k] for k in named.tolist()), negated, missing)
