"""Shorter trees that are still partitions: grown past the floor, then pruned back to it.

The floor is linear once the labels are fixed: F1 > f ⇔ (2 − f)·TP − f·FP > f·P (and accuracy > f
⇔ right > f·n). So each rule has a value of its own, a rule is worth calling an outlier rule from
an outlier share of f/2 on, and a branch that becomes one rule costs the value it loses and saves
the length it had. Weakest-link pruning by cost per length takes the cheapest branch first; two
rules of one label that come from one split cost nothing to merge.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from stair.learn.grow import Node
from stair.rules.objective import f1, reaches


@dataclass(slots=True)
class _Branch:
    """What stands below a node now: its value and length, and what it is called as one rule."""

    node: Node
    parent: _Branch | None
    label: int  # of the node as one rule
    own: float  # the value of the node as one rule
    value: float
    length: int
    hits: int  # right rows that count for the score
    predicted: int
    own_hits: int
    own_predicted: int
    children: tuple[_Branch, _Branch] | None = None

    @property
    def loss_per_length(self) -> float:
        return (self.value - self.own) / (self.length - self.node.length)


def refine(
    roots: Sequence[Node], totals: Sequence[int], positive: int | None, floor: float
) -> list[list[tuple[Node, int]]]:
    """The rules to keep of each tree, as nodes with their labels; the score stays above the floor.

    Every division that the trees have is looked at, so grow them past the floor before.
    """
    trees = [_branches(root, positive, floor) for root in roots]
    hits = sum(tree.hits for tree in trees)
    predicted = sum(tree.predicted for tree in trees)
    heap: list[tuple[float, int, _Branch]] = []
    pending = list(trees)
    count = 0
    while pending:
        branch = pending.pop()
        if branch.children is not None:
            heap.append((branch.loss_per_length, count, branch))
            count += 1
            pending.extend(branch.children)
    heapq.heapify(heap)
    while heap:
        loss, _, branch = heapq.heappop(heap)
        if branch.children is None or loss != branch.loss_per_length or _is_gone(branch):
            continue  # merged meanwhile, or an old entry
        new_hits = hits - branch.hits + branch.own_hits
        new_predicted = predicted - branch.predicted + branch.own_predicted
        if not reaches(_score(new_hits, new_predicted, totals, positive), floor):
            continue
        hits, predicted = new_hits, new_predicted
        for above in _merge(branch):
            heapq.heappush(heap, (above.loss_per_length, count, above))
            count += 1
    return [_kept(tree) for tree in trees]


def _score(hits: int, predicted: int, totals: Sequence[int], positive: int | None) -> float:
    if positive is None:
        return hits / sum(totals)
    return f1(hits, predicted, totals[positive])


def _branches(root: Node, positive: int | None, floor: float) -> _Branch:
    """The whole tree below a node, children before their parents' sums."""
    top = _rule(root, None, positive, floor)
    order = [top]
    for branch in order:  # grows while it is walked
        if branch.node.children is not None:
            left, right = (_rule(n, branch, positive, floor) for n in branch.node.children)
            branch.children = (left, right)
            order += [left, right]
    for branch in reversed(order):
        if branch.children is not None:
            left, right = branch.children
            branch.value = left.value + right.value
            branch.length = left.length + right.length
            branch.hits = left.hits + right.hits
            branch.predicted = left.predicted + right.predicted
    return top


def _rule(node: Node, parent: _Branch | None, positive: int | None, floor: float) -> _Branch:
    """A node as one rule, with the label that is worth most."""
    counts = node.group.counts
    if positive is None:
        label = counts.index(max(counts))
        hits = predicted = counts[label]
        own = float(hits)
    else:
        worth = (2.0 - floor) * counts[positive] - floor * counts[1 - positive]
        if node.is_barred:
            worth = 0.0
        label = positive if worth > 0 else 1 - positive
        own = max(worth, 0.0)
        hits, predicted = (counts[positive], sum(counts)) if worth > 0 else (0, 0)
    return _Branch(
        node, parent, label, own, own, node.length, hits, predicted, hits, predicted
    )  # fmt: skip


def _is_gone(branch: _Branch) -> bool:
    """Whether a branch stands inside one that has become a single rule."""
    above = branch.parent
    while above is not None:
        if above.children is None:
            return True
        above = above.parent
    return False


def _merge(branch: _Branch) -> list[_Branch]:
    """Make one rule of a branch; the branches above it, whose cost has changed."""
    value = branch.value - branch.own
    length = branch.length - branch.node.length
    hits = branch.hits - branch.own_hits
    predicted = branch.predicted - branch.own_predicted
    branch.children = None
    changed = []
    above: _Branch | None = branch
    while above is not None:
        above.value -= value
        above.length -= length
        above.hits -= hits
        above.predicted -= predicted
        if above is not branch:
            changed.append(above)
        above = above.parent
    return changed


def _kept(tree: _Branch) -> list[tuple[Node, int]]:
    """The rules that are left of a tree, from left to right."""
    found: list[tuple[Node, int]] = []
    pending = [tree]
    while pending:
        branch = pending.pop()
        if branch.children is None:
            found.append((branch.node, branch.label))
        else:
            pending.extend(reversed(branch.children))
    return found
