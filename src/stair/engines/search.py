"""The best split of one rule: the best cut of each column from counts, then the least price.

A rule's best split does not depend on the other rules, so it is looked for once. Only two
candidates matter for each rule: the best gain among the attributes it has and the best among
those it has not.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.rules.objective import Counts, Logs, extra_length, negentropy, price


class Cut(NamedTuple):
    """Values up to the place `last` go left; missing ones go where it says."""

    gain: float
    last: int
    missing_left: bool


class Split(NamedTuple):
    """The division of one rule's rows by one column."""

    column: int
    cut: int
    missing_left: bool
    gain: float  # ΔE
    extra_length: int  # ΔL

    @property
    def price(self) -> float:
        return price(self.extra_length, self.gain)


class Gains(NamedTuple):
    """What an engine says about a rule's columns: gain (NaN for no cut), cut and missing side."""

    gains: Sequence[float]
    cuts: Sequence[int]
    missing_left: Sequence[int]


def best_split(
    found: Gains,
    columns: Sequence[int],
    used: Collection[int],
    length: int,
    tiny: float,
    bits: float = 1.0,
) -> Split | None:
    """The cheapest split of a rule, or None where no column gains more than rounding (`tiny`).

    `columns` are those that the rule may use, in the order that breaks ties, and `used` those on
    attributes that it has already. Gains are in bits; purity counts them in units of so many
    `bits`.
    """
    best_used, best_new = tiny if used else math.inf, tiny
    at_used, at_new = -1, -1
    for k, gain in enumerate(found.gains):  # strictly better only: the first of equals wins
        if gain > best_new:
            if columns[k] not in used:
                best_new, at_new = gain, k
            elif gain > best_used:
                best_used, at_used = gain, k
        elif gain > best_used and columns[k] in used:
            best_used, at_used = gain, k
    candidates = [
        Split(
            columns[k],
            found.cuts[k],
            bool(found.missing_left[k]),
            found.gains[k] / bits,
            extra_length(length, is_new),
        )
        for k, is_new in ((at_used, False), (at_new, True))
        if k >= 0
    ]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    return min(candidates, key=lambda split: (split.price, -split.gain))


def best_cut(counts: Counts, missing: Counts, table: Logs) -> Cut | None:
    """The cut of an ordered column with the largest gain, from class counts of its values.

    `counts` has a row for each value that is there, in order; `missing` are the missing values'
    counts. The lowest cut of equals wins, with missing values on the right before the left.
    """
    if not len(counts):
        return None
    totals = counts.sum(axis=0) + missing
    base = negentropy(totals, table)
    left = counts.cumsum(axis=0)
    lefts = [left]
    if missing.any():
        lefts.append(left + missing)
    gains = np.stack(
        [(negentropy(part, table) + negentropy(totals - part, table)) - base for part in lefts],
        axis=1,
    )
    worthwhile = np.append(_is_boundary(counts), bool(missing.any()))
    gains[~worthwhile] = -np.inf
    gains[-1, 1:] = -np.inf  # all on one side is no cut
    place = int(gains.argmax())
    last, side = divmod(place, len(lefts))
    gain = float(gains[last, side])
    return None if gain == -np.inf else Cut(gain, last, bool(side))


def _is_boundary(counts: Counts) -> NDArray[np.bool_]:
    """Where two neighbouring values are not both of one and the same class.

    Between values of one class no cut is best: the gain is convex along them (Fayyad, Irani).
    """
    one_class = (counts > 0).sum(axis=1) == 1
    kind = counts.argmax(axis=1)
    same: NDArray[np.bool_] = one_class[:-1] & one_class[1:] & (kind[:-1] == kind[1:])
    return ~same


def best_set(counts: Counts, table: Logs) -> tuple[float, int] | None:
    """The best division of a column without order, and its place in `set_order`.

    For two classes the best of all subsets is a run of the categories in order of their share of
    the second class (exact, by convexity); for more classes it is one category against the rest.
    """
    if len(counts) < 2:
        return None
    totals = counts.sum(axis=0)
    left = counts[set_order(counts)]
    if counts.shape[1] == 2:
        left = left.cumsum(axis=0)[:-1]
    gains = (negentropy(left, table) + negentropy(totals - left, table)) - negentropy(totals, table)
    place = int(gains.argmax())
    return float(gains[place]), place


def set_order(counts: Counts) -> NDArray[np.intp]:
    """The categories in the order in which `best_set` tries them."""
    if counts.shape[1] != 2:
        return np.arange(len(counts))
    return np.argsort(counts[:, 1] / counts.sum(axis=1), kind="stable")


def set_members(counts: Counts, place: int) -> NDArray[np.bool_]:
    """Which categories stand on the left of a division found by `best_set`."""
    order = set_order(counts)
    members = np.zeros(len(counts), dtype=np.bool_)
    members[order[: place + 1] if counts.shape[1] == 2 else order[place]] = True
    return members
