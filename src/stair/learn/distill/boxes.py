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
from stair.learn.distill.cover import Cover, Placed

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
    if len(columns):  # a clause may be drawn anew, but a column has one clause at most
        each = np.arange(len(found.sums) - 1)
        own = found.sums[each, columns[: len(each)]]
        found.sums[:, columns] = NOTHING
        found.sums[each, columns[: len(each)]] = own
    return found


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


def improved(cover: Cover, box: Box) -> tuple[Placed, int]:
    """The box drawn anew, clause by clause, until nothing improves; and what it gains."""
    least = cover.least
    while True:
        found = around(cover, box)
        names = list(box)
        gain = int(found.totals[-1])
        paid = cover.kernel.price * sum(cover.problem.cells.n_bounds(j, b) for j, b in box.items())
        if len(names) > 1:
            k = int(found.totals[:-1].argmax())
            if found.totals[k] >= gain:  # a clause that costs nothing goes
                box = without(box, names[k])
                continue
        if cover.must_stop():
            return cover.place(box), (gain + paid) // FULL
        sums = found.sums[:-1]
        while True:
            k, column = divmod(int(sums.argmax()), sums.shape[1]) if sums.size else (0, 0)
            if not sums.size or sums[k, column] <= gain:
                return cover.place(box), (gain + paid) // FULL
            better = with_clause(cover, without(box, names[k]), column, found, k)
            if least <= 1 or cover.place(better).hits >= least:
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
) -> Iterator[tuple[Placed, int]]:
    """Boxes of one, two, … attributes, each drawn anew at the true cost, with what they gain."""
    box: Box = {}
    least = cover.least
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
        if gain > 0 and rule.hits >= least:
            yield rule, gain
            if random.random() < 0.5:
                box = rule.box
        if not (cover.kernel.row_gains[cover.place(box).rows] < 0).any():
            return
