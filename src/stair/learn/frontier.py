"""What length buys: the score of the rules, one after the other, and of one more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.learn.distill import Further
from stair.rules.groups import Groups
from stair.rules.objective import f1
from stair.rules.rule_set import Rule, RuleSet

# Of more rules of several classes the points are not looked for: it takes their square.
MOST_RULES: Final = 300


def frontier_of(
    rules: RuleSet,
    groups: Groups,
    wanted: Collection[int],
    further: Further | None = None,
) -> tuple[tuple[int, float], ...]:
    """Total length and F1 as outlier rules are taken one by one, those first that add most for
    their length; with what one more rule would give at the end. Of several kinds of outlier it is
    the F1 of all of them together; where there are classes alone, the accuracy of all rules."""
    if not wanted:
        return tuple(_by_accuracy(rules, groups))
    own = [k for k, rule in enumerate(rules) if rules.classes.index(rule.label) in wanted]
    if not own:
        return ()
    points = taken_one_by_one(groups.with_rules(own), [rules.rules[k] for k in own], wanted)
    if further is not None and len(wanted) == 1:
        points.append((points[-1][0] + further.rule.length, further.score))
    return tuple(points)


def taken_one_by_one(
    groups: Groups, rules: Sequence[Rule], wanted: Collection[int]
) -> list[tuple[int, float]]:
    """The points of the frontier, from the counts of rows by the rules that cover them."""
    is_outlier = np.isin(groups.classes, list(wanted))
    outliers = np.where(is_outlier, groups.counts, 0)
    total = int(outliers.sum())
    here = np.zeros(len(groups.counts), dtype=np.bool_)
    left, points, length, score = list(range(len(rules))), [(0, 0.0)], 0, 0.0

    def with_rule(k: int) -> float:
        now = here | groups.covered[:, k]
        return f1(int(outliers[now].sum()), int(groups.counts[now].sum()), total)

    while left:
        scores = {k: with_rule(k) for k in left}
        best = max(left, key=lambda k: ((scores[k] - score) / max(1, rules[k].length), -k))
        left.remove(best)
        here |= groups.covered[:, best]
        length, score = length + rules[best].length, scores[best]
        points.append((length, score))
    return points


def _by_accuracy(rules: RuleSet, groups: Groups) -> list[tuple[int, float]]:
    """The points where rules are of several classes: of the rules that are taken, the first that
    covers a row decides about it, and the default about the rest."""
    if not 0 < len(rules) <= MOST_RULES:
        return []
    labels = [rules.classes.index(rule.label) for rule in rules]
    n_rows = int(groups.counts.sum())
    first = np.full(len(groups.counts), len(rules))  # the rule that decides, or none
    right = np.where(groups.classes == rules.classes.index(rules.default), groups.counts, 0)
    left, length = list(range(len(rules))), 0
    points = [(0, int(right.sum()) / n_rows)]

    def with_rule(k: int) -> NDArray[np.int64]:
        own = np.where(groups.classes == labels[k], groups.counts, 0)
        return np.where(groups.covered[:, k] & (first > k), own, right)

    while left:
        gains = {k: int((with_rule(k) - right).sum()) for k in left}
        best = max(left, key=lambda k: (gains[k] / max(1, rules.rules[k].length), -k))
        left.remove(best)
        right = with_rule(best)
        first[groups.covered[:, best] & (first > best)] = best
        length += rules.rules[best].length
        points.append((length, int(right.sum()) / n_rows))
    return points
