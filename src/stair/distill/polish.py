"""The last touch: boxes become clauses that a person can read and that hold on new rows.

A bound moves to the middle of the empty gap towards the next row of another class, at a short
decimal. Where there is no such row beyond it, it goes: an interval with one side reads better and
generalises better. Nothing that was covered is lost, and no row of another class is won.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stair.clauses import BEGINNING, END, Among, Clause, Interval, Period
from stair.columns import Categories, Column, Numbers, Times, roundest_time
from stair.decimals import shortest_between
from stair.distill.cells import Bins, Box, Cells, Run

# A bound may lie from the first to before the second; None where it may go.
T = TypeVar("T")
Gap: TypeAlias = tuple[float, float] | None

# Of a gap only the inner part is looked at for a short decimal, this far from its ends.
INNER: Final = 0.25


def clauses_of(
    cells: Cells, values: NDArray[np.float64], box: Box, is_foreign: NDArray[np.bool_]
) -> tuple[Clause, ...]:
    """A box as clauses with wide bounds; `is_foreign` marks the rows of other classes."""
    meets = {j: _meets(cells, j, bins) for j, bins in box.items()}
    clauses: dict[int, Clause] = {}
    for j, bins in sorted(box.items()):
        others = np.ones(len(values), dtype=np.bool_)
        for other, rows in meets.items():
            if other != j:
                others &= rows
        column = cells.columns[j]
        if isinstance(bins, frozenset):
            among = _set_clause(cells, j, bins, cells.codes[others, j])
            met = among.covers(_named(cells, j))
            meets[j] = np.append(met, among.missing)[cells.codes[:, j]]
            clauses[j] = among
        elif isinstance(column, Numbers | Times):
            gaps = _gaps(values[others, j], meets[j][others], is_foreign[others])
            interval = _interval(column, gaps, bins)
            if interval is None:  # both bounds could go, so it says nothing
                del meets[j]
            else:
                meets[j] = _covers(interval, column, values[:, j])
                clauses[j] = interval
        else:  # a term of a text, or its absence: one of two sides
            assert not isinstance(column, Categories)
            clauses[j] = column.cut(0.0, 1.0, None)[int(cells.smallest[j][bins[0]])]
    return tuple(clauses.values())


def _meets(cells: Cells, j: int, bins: Bins) -> NDArray[np.bool_]:
    """The rows that a clause of the box allows."""
    _, allowed = cells.table({j: bins})
    met: NDArray[np.bool_] = allowed[0].astype(np.bool_)[cells.codes[:, j]]
    return met


def _covers(
    clause: Clause, column: Numbers | Times, codes: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """The rows that an interval covers, from the column's codes."""
    if isinstance(column, Numbers):
        return clause.covers(codes)
    times = np.full(len(codes), np.datetime64("NaT", "us"))
    known = ~np.isnan(codes)
    times[known] = codes[known].astype(np.int64).astype("datetime64[us]")
    return clause.covers(times)


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
    column: Numbers | Times, gaps: tuple[Gap, Gap] | None, bins: Run
) -> Interval | Period | None:
    """The interval with its bounds in the gaps; None where it would cover every value."""
    missing = bins[2]
    if isinstance(column, Numbers):
        if gaps is None:
            return Interval(column.name, np.inf, np.inf, missing)
        low, high = (None if gap is None else _bound(gap, shortest_between) for gap in gaps)
        clause: Interval | Period = Interval(
            column.name,
            -np.inf if low is None else float(low),
            np.inf if high is None else float(high),
            missing,
        )
    else:
        days = column.whole_days
        if gaps is None:
            return Period(column.name, END, END, missing, days)
        after, until = (None if gap is None else _bound(gap, _time_between) for gap in gaps)
        clause = Period(
            column.name,
            BEGINNING if after is None else after,
            END if until is None else until,
            missing,
            days,
        )
    return None if clause.n_bounds == 0 and missing else clause


def _bound(gap: tuple[float, float], between: Callable[[float, float], T]) -> T:
    """A short bound in the inner part of the gap, where that part holds a number."""
    a, b = gap
    margin = INNER * (b / 2 - a / 2) * 2
    return between(a + margin, b - margin) if a < a + margin < b - margin < b else between(a, b)


def _time_between(a: float, b: float) -> np.datetime64:
    return roundest_time(int(np.ceil(a)), int(b))


def _named(cells: Cells, j: int) -> NDArray[np.object_]:
    """The categories of the bins."""
    column: Column = cells.columns[j]
    assert isinstance(column, Categories)
    places = cells.smallest[j].astype(np.intp).tolist()
    names = np.empty(len(places), dtype=object)
    names[:] = [column.values[k] for k in places]
    return names


def _set_clause(cells: Cells, j: int, bins: frozenset[int], here: NDArray[np.uint16]) -> Among:
    """Categories as a clause. Those that do not occur among the rows that meet the other clauses
    may stand on either side: the list that is written has none of them."""
    names = _named(cells, j)
    occurs = np.zeros(len(names) + 1, dtype=np.bool_)
    occurs[np.unique(here)] = True
    inside = np.array([k in bins for k in range(len(names))], dtype=np.bool_)
    yes, no = inside & occurs[:-1], ~inside & occurs[:-1]
    # Where every value there can be is known, "= False" reads better than "≠ True".
    negated = int(no.sum()) < int(yes.sum()) and not all(isinstance(v, bool) for v in names)
    missing = bool(cells.has_missing[j]) and len(names) in bins
    return Among(cells.columns[j].name, tuple(names[no if negated else yes]), negated, missing)
