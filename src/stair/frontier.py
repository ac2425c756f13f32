"""What length buys: the score of the rules, one after the other, and of one more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.distill import Further
from stair.objective import f1
from stair.rules import Rule, RuleSet
from stair.schema import Values

# Of more rules of several classes the points are not looked for: it takes their square.
MOST_RULES: Final = 300


class Groups(NamedTuple):
    """Rows that the same rules cover: which rules, and how many are outliers and inliers."""

    covered: NDArray[np.bool_]
    outliers: NDArray[np.int64]
    inliers: NDArray[np.int64]


def frontier_of(
    rules: RuleSet,
    values: Values,
    codes: NDArray[np.int32],
    wanted: Collection[int],
    further: Further | None = None,
) -> tuple[tuple[int, float], ...]:
    """Total length and F1 as outlier rules are taken one by one, those first that add most for
    their length; with what one more rule would give at the end. Of several kinds of outlier it is
    the F1 of all of them together; where there are classes alone, the accuracy of all rules."""
    if not wanted:
        return tuple(_by_accuracy(rules, values, codes))
    own = [k for k, rule in enumerate(rules) if rules.classes.index(rule.label) in wanted]
    if not own:
        return ()
    covered = rules.covers(values)[:, own]
    is_outlier = np.isin(codes, list(wanted))
    packed = np.packbits(covered, axis=1)
    patterns, places = np.unique(packed, axis=0, return_inverse=True)
    n, places = len(patterns), places.reshape(-1)
    groups = Groups(
        np.unpackbits(patterns, axis=1, count=len(own)).astype(np.bool_),
        np.bincount(places[is_outlier], minlength=n),
        np.bincount(places[~is_outlier], minlength=n),
    )
    points = taken_one_by_one(groups, [rules.rules[k] for k in own])
    if further is not None and len(wanted) == 1:
        points.append((points[-1][0] + further.rule.length, further.score))
    return tuple(points)


def taken_one_by_one(groups: Groups, rules: Sequence[Rule]) -> list[tuple[int, float]]:
    """The points of the frontier, from the counts of rows by the rules that cover them."""
    total = int(groups.outliers.sum())
    here = np.zeros(len(groups.outliers), dtype=np.bool_)
    left, points, length, score = list(range(len(rules))), [(0, 0.0)], 0, 0.0

    def with_rule(k: int) -> float:
        now = here | groups.covered[:, k]
        hits = int(groups.outliers[now].sum())
        return f1(hits, hits + int(groups.inliers[now].sum()), total)

    while left:
        scores = {k: with_rule(k) for k in left}
        best = max(left, key=lambda k: ((scores[k] - score) / max(1, rules[k].length), -k))
        left.remove(best)
        here |= groups.covered[:, best]
        length, score = length + rules[best].length, scores[best]
        points.append((length, score))
    return points


def _by_accuracy(
    rules: RuleSet, values: Values, codes: NDArray[np.int32]
) -> list[tuple[int, float]]:
    """The points where rules are of several classes: of the rules that are taken, the first that
    covers a row decides about it, and the default about the rest."""
    if not 0 < len(rules) <= MOST_RULES:
        return []
    labels = np.array([rules.classes.index(rule.label) for rule in rules])
    packed = np.packbits(rules.covers(values), axis=1)
    patterns, places = np.unique(packed, axis=0, return_inverse=True)
    covered = np.unpackbits(patterns, axis=1, count=len(rules)).astype(np.bool_)
    counts = np.zeros((len(patterns), len(rules.classes)), dtype=np.int64)
    np.add.at(counts, (places.reshape(-1), codes), 1)
    first = np.full(len(patterns), len(rules))  # the rule that decides, or none
    right = counts[:, rules.classes.index(rules.default)].copy()
    left, length = list(range(len(rules))), 0
    points = [(0, float(right.sum() / len(codes)))]

    def changed(k: int) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = covered[:, k] & (first > k)
        return found

    while left:
        gains = {k: int((counts[:, labels[k]] - right)[changed(k)].sum()) for k in left}
        best = max(left, key=lambda k: (gains[k] / max(1, rules.rules[k].length), -k))
        left.remove(best)
        here = changed(best)
        right[here], first[here] = counts[here, labels[best]], best
        length += rules.rules[best].length
        points.append((length, float(right.sum() / len(codes))))
    return points
