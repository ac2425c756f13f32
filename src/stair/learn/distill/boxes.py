"""One box: how it is found, and how it is made better without getting longer.

At the full cost of inliers no single attribute pays on dense data. So a box is begun with their
cost scaled down, one attribute after the other, and then drawn anew at the true cost, clause by
clause, until nothing improves. Each step is exact: the best interval of an attribute is the run
of bins with the largest sum, found in one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from stair.learn.distill.cells import Bins, Box
from stair.learn.distill.cover import Candidate, Cover

NOTHING: Final = -(1 << 60)
# How much of an inlier's cost counts while a box is begun, in thousandths.
EASES: Final = (1000, 400, 150, 50, 20)
FULL: Final = 1000


class Around(NamedTuple):
    """All neighbours of a box: row k of `sums` is the box less its clause k, the last the box."""

    sums: NDArray[np.int64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    missing: NDArray[np.uint8]
    totals: NDArray[np.int64]


def around(cover: Cover, box: Box, seed: int = -1, ease: int = FULL, drops: bool = True) -> Around:
    cover.must_stop()  # all work goes through here, so whoever wants it to end is heard here
    columns, allowed = cover.problem.cells.table(box)
    found = Around(*cover.kernel.around(columns, allowed, seed, ease, drops))
    if cover.kernel.price and len(columns):
        bounds = np.array([cover.problem.cells.n_bounds(j, bins) for j, bins in box.items()])
        less = np.append(bounds.sum() - bounds, bounds.sum()) if drops else bounds.sum()[None]
        found.sums[:] -= cover.kernel.price * less[:, None]
        found.totals[:] -= cover.kernel.price * less
    _charge(cover, found, columns, drops=drops)
    if len(columns):  # a clause may be drawn anew, but a column has one clause at most
        each = np.arange(len(found.sums) - 1)
        own = found.sums[each, columns[: len(each)]]
        found.sums[:, columns] = NOTHING
        found.sums[each, columns[: len(each)]] = own
    return found


def _charge(cover: Cover, found: Around, columns: NDArray[np.int32], *, drops: bool) -> None:
    """What is known of columns: those that cost more gain less, and of a group there is one."""
    cells, charges = cover.problem.cells, cover.charges
    if charges is not None:
        own = charges[columns]
        found.sums[:] -= charges[None]
        less = np.append(own.sum() - own, own.sum()) if drops and len(columns) else own.sum()
        found.sums[:] -= np.reshape(less, (-1, 1))
        found.totals[:] -= less
    if cells.groups is not None and len(columns):
        rivals = [cells.rivals(j) for j in columns.tolist()]
        for k in range(len(found.sums)):
            for place, others in enumerate(rivals):
                if place != k or len(found.sums) == 1:
                    found.sums[k, others] = NOTHING


def paid(cover: Cover, box: Box) -> int:
    """What the bounds of a box and its costly columns are charged, in thousandths of a gain."""
    cells = cover.problem.cells
    found = cover.kernel.price * sum(cells.n_bounds(j, bins) for j, bins in box.items())
    if cover.charges is not None:
        found += int(cover.charges[list(box)].sum())
    return int(found)


def without(box: Box, column: int) -> Box:
    return {j: bins for j, bins in box.items() if j != column}


def with_clause(cover: Cover, box: Box, column: int, found: Around, k: int, seed: int = -1) -> Box:
    """The box with the best bins of one more column, as `around` found them in its row k."""
    bins: Bins
    if cover.problem.cells.columns[column].is_ordered:
        missing = bool(found.missing[k, column])
        bins = (int(found.low[k, column]), int(found.high[k, column]), missing)
    else:
        sums = cover.kernel.bins(*cover.problem.cells.table(box), column)
        chosen = set(np.flatnonzero(sums > 0).tolist())
        if seed >= 0:
            chosen.add(int(cover.problem.cells.codes[seed, column]))
        bins = frozenset(chosen)
    return {**box, column: bins}


def improved(cover: Cover, box: Box) -> tuple[Candidate, int]:
    """The box drawn anew, clause by clause, until nothing improves; and what it gains."""
    is_picky = cover.is_picky
    while True:
        found = around(cover, box)
        names = list(box)
        gain = int(found.totals[-1])
        charged = paid(cover, box)
        if len(names) > 1:
            k = int(found.totals[:-1].argmax())
            if found.totals[k] >= gain:  # a clause that costs nothing goes
                shorter = without(box, names[k])
                if cover.problem.of_rules is None or cover.allows(cover.place(shorter)):
                    box = shorter
                    continue
        if cover.must_stop():
            return cover.place(box), (gain + charged) // FULL
        sums = found.sums[:-1]
        while True:
            k, column = divmod(int(sums.argmax()), sums.shape[1]) if sums.size else (0, 0)
            if not sums.size or sums[k, column] <= gain:
                return cover.place(box), (gain + charged) // FULL
            better = with_clause(cover, without(box, names[k]), column, found, k)
            if not is_picky or cover.allows_box(better):
                box = better
                break
            sums[k, column] = NOTHING


def begun(
    cover: Cover,
    longest: int,
    ease: int,
    random: Generator,
    seed: int = -1,
    choices: int = 1,
    columns: NDArray[np.bool_] | None = None,
) -> Iterator[tuple[Candidate, int]]:
    """Boxes of one, two, … attributes, each drawn anew at the true cost, with what they gain."""
    box: Box = {}
    began = cover.kernel.work
    for step in range(longest):
        if cover.must_stop() or cover.kernel.work - began > cover.most_at_once:
            return
        eased = max(1, round(FULL * (ease / FULL) ** (1 - step / longest)))
        found = around(cover, box, seed, eased, drops=False)
        sums = found.sums[-1]
        if columns is not None:
            sums[~columns] = NOTHING
        best = np.argsort(-sums, kind="stable")[:choices]
        column = int(best[random.integers(len(best))] if len(best) > 1 else best[0])
        if sums[column] <= 0:
            return
        box = with_clause(cover, box, column, found, -1, seed)
        rule, gain = improved(cover, box)
        if gain > 0 and cover.allows(rule):
            yield rule, gain
            if random.random() < 0.5:
                box = rule.box
        if not (cover.kernel.row_gains[cover.place(box).rows] < 0).any():
            return
