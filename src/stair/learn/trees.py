"""The paper's baselines, ID3 and CART, on scikit-learn's tree, as the same kind of leaves.

scikit-learn compares 32-bit values; the clauses here are made from the 64-bit rows on either side
of each node, so that the rules select exactly the rows that the tree does.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from stair.learn.grow import majority
from stair.rules.clauses import Clause, merged
from stair.rules.columns import Ordered, cut_once
from stair.rules.objective import f1, reaches, score_of
from stair.rules.rule_set import Leaf


def id3_leaves(
    X: NDArray[np.float64],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
    columns: Sequence[Ordered],
    *,
    positive: int | None,
    min_score: float,
    start_depth: int,
    max_depth: int | None,
    random_state: object,
    say: Callable[[str], object] = lambda _: None,
) -> tuple[list[Leaf], int]:
    """Entropy trees of growing depth, until one is above the floor (or stops growing)."""
    best: _Tree | None = None
    depth = min(start_depth, len(X))  # no tree is deeper
    while True:
        say(f"learning: a tree of depth {depth}")
        tree = _Tree(
            X, labels, weights, columns, positive, "entropy", random_state, max_depth=depth
        )
        if best is None or tree.score() > best.score():
            best = tree
        if reaches(tree.score(), min_score) or tree.depth < depth or depth == max_depth:
            break
        depth += 1
    return best.leaves(X, columns, frozenset()), best.default


def cart_leaves(
    X: NDArray[np.float64],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64] | None,
    columns: Sequence[Ordered],
    *,
    positive: int | None,
    min_score: float,
    criterion: str,
    random_state: object,
) -> tuple[list[Leaf], int]:
    """A full tree, pruned back along its cost-complexity path as far as the floor allows."""
    tree = _Tree(X, labels, weights, columns, positive, criterion, random_state)
    cuts = tree.weakest_links()
    return tree.leaves(X, columns, tree.shortest_above(min_score, cuts)), tree.default


def _narrow(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values that 32 bits can hold: ranks, which divide alike, for a column with larger ones."""
    peaks = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
    too_large = np.flatnonzero(peaks > np.finfo(np.float32).max)
    if len(too_large):
        X = X.copy()
    for j in too_large.tolist():
        known = ~np.isnan(X[:, j])
        X[known, j] = np.unique(X[known, j], return_inverse=True)[1]
    return X


class _Tree:
    """A fitted scikit-learn tree with the class weights of its nodes. A node that cuts a column for
    the second time that rules may cut once, as they may times, is a leaf here."""

    def __init__(
        self,
        X: NDArray[np.float64],
        labels: NDArray[np.int32],
        weights: NDArray[np.float64] | None,
        columns: Sequence[Ordered],
        positive: int | None,
        criterion: str,
        random_state: object,
        max_depth: int | None = None,
    ) -> None:
        from sklearn.tree import DecisionTreeClassifier

        model = DecisionTreeClassifier(
            criterion=criterion, max_depth=max_depth, random_state=random_state
        )
        # It adds up each column to see whether a value is missing.
        with np.errstate(over="ignore", invalid="ignore"):
            model.fit(narrow := _narrow(X), labels, sample_weight=weights)
        tree = model.tree_
        self.depth = int(tree.max_depth)
        self._tree = tree
        self._nodes, self._ends = self._allowed(columns)
        self._positive = positive
        self._reach = model.decision_path(narrow).tocsc()
        n_classes = int(labels.max()) + 1
        mass = np.ones(len(labels)) if weights is None else weights
        membership = np.zeros((len(labels), n_classes))
        membership[np.arange(len(labels)), labels] = mass
        self._counts: NDArray[np.float64] = np.asarray(self._reach.T @ membership)
        self._labels = [majority(row.tolist(), positive) for row in self._counts]
        self.default = 1 - positive if positive is not None else self._labels[0]

    def _allowed(self, columns: Sequence[Ordered]) -> tuple[list[int], frozenset[int]]:
        """The nodes that are there, in order, and those at which the tree ends too early for
        scikit-learn."""
        once = frozenset(np.flatnonzero(cut_once(columns)).tolist())
        if not once:
            return list(range(int(self._tree.node_count))), frozenset()
        nodes: list[int] = []
        ends: set[int] = set()
        pending: list[tuple[int, frozenset[int]]] = [(0, frozenset())]
        while pending:
            node, spent = pending.pop()
            nodes.append(node)
            column = int(self._tree.feature[node])  # below 0 for a leaf
            if column in spent:
                ends.add(node)
            elif column >= 0:
                now = spent | {column} if column in once else spent
                pending.extend((child, now) for child in self._children(node))
        return sorted(nodes), frozenset(ends)

    def _is_leaf(self, node: int) -> bool:
        return bool(self._tree.children_left[node] < 0) or node in self._ends

    def _children(self, node: int) -> tuple[int, int]:
        return int(self._tree.children_left[node]), int(self._tree.children_right[node])

    def score(self) -> float:
        leaves = [node for node in self._nodes if self._is_leaf(node)]
        groups = ((self._labels[node], self._counts[node].tolist()) for node in leaves)
        return score_of(groups, self._counts[0].tolist(), self._positive)

    def weakest_links(self) -> list[tuple[float, list[int]]]:
        """The pruning path: for each alpha, from the smallest, the nodes that become leaves.

        Breiman's weakest-link pruning, with an updatable heap in place of a search per step.
        """
        tree = self._tree
        n = int(tree.node_count)
        total = float(tree.weighted_n_node_samples[0])
        risk = (tree.impurity * tree.weighted_n_node_samples / total).tolist()
        parent = [-1] * n
        for node in self._nodes:
            if not self._is_leaf(node):
                for child in self._children(node):
                    parent[child] = node
        leaves, leaf_risk = [0] * n, [0.0] * n
        for leaf in filter(self._is_leaf, self._nodes):  # in its order, to the bit
            above = leaf
            while above >= 0:
                leaves[above] += 1
                leaf_risk[above] += risk[leaf]
                above = parent[above]

        def link(node: int) -> float:
            return float(risk[node] - leaf_risk[node]) / (leaves[node] - 1)

        heap = [(link(node), node) for node in self._nodes if not self._is_leaf(node)]
        heapq.heapify(heap)
        current = {node: alpha for alpha, node in heap}
        path: list[tuple[float, list[int]]] = []
        while heap:
            alpha, node = heapq.heappop(heap)
            if current.get(node) != alpha:
                continue  # an old entry, or already inside a pruned branch
            if path and alpha <= path[-1][0]:
                path[-1][1].append(node)
            else:
                path.append((alpha, [node]))
            inside = [node]
            while inside:
                here = inside.pop()
                if current.pop(here, None) is not None:
                    inside.extend(self._children(here))
            lost_leaves, lost_risk = leaves[node] - 1, risk[node] - leaf_risk[node]
            leaves[node], leaf_risk[node] = 1, risk[node]
            above = parent[node]
            while above >= 0:
                leaves[above] -= lost_leaves
                leaf_risk[above] += lost_risk
                current[above] = link(above)
                heapq.heappush(heap, (current[above], above))
                above = parent[above]
        return path

    def shortest_above(
        self, min_score: float, path: list[tuple[float, list[int]]]
    ) -> frozenset[int]:
        """The nodes to make leaves: the most pruned tree above the floor, else the best one."""
        pruned: set[int] = set()
        for _, nodes in path:
            pruned.update(nodes)
        best, keep = -1.0, frozenset(pruned)
        for nodes in [*(nodes for _, nodes in reversed(path)), []]:
            value = self._pruned_score(frozenset(pruned))
            if value > best:
                best, keep = value, frozenset(pruned)
            if reaches(value, min_score):
                break
            pruned.difference_update(nodes)
        return keep

    def _pruned_score(self, pruned: frozenset[int]) -> float:
        hits = predicted = 0.0
        for node in self._leaf_nodes(pruned):
            label = self._labels[node] if node else self.default
            if self._positive is None or label == self._positive:
                hits += float(self._counts[node, label])
                predicted += float(self._counts[node].sum())
        if self._positive is None:
            return hits / float(self._counts[0].sum())
        return f1(hits, predicted, float(self._counts[0, self._positive]))

    def _leaf_nodes(self, pruned: frozenset[int]) -> list[int]:
        found, pending = [], [0]
        while pending:
            node = pending.pop()
            if self._is_leaf(node) or node in pruned:
                found.append(node)
            else:
                pending.extend(reversed(self._children(node)))
        return found

    def leaves(
        self, X: NDArray[np.float64], columns: Sequence[Ordered], pruned: frozenset[int]
    ) -> list[Leaf]:
        """The leaves with their clauses; `pruned` nodes are leaves too."""
        found: list[Leaf] = []
        pending: list[tuple[int, tuple[Clause, ...]]] = [(0, ())]
        while pending:
            node, clauses = pending.pop()
            if self._is_leaf(node) or node in pruned:
                label = self._labels[node] if node else self.default
                counts = tuple(self._counts[node].tolist())
                found.append(Leaf(merged(clauses), label, counts))
                continue
            sides = self._clauses(X, columns, node)
            for child, clause in reversed(list(zip(self._children(node), sides, strict=True))):
                pending.append((child, (*clauses, clause)))
        return found

    def _clauses(
        self, X: NDArray[np.float64], columns: Sequence[Ordered], node: int
    ) -> tuple[Clause, Clause]:
        column = int(self._tree.feature[node])
        left, right = (X[self._rows(child), column] for child in self._children(node))
        missing = [bool(np.isnan(side).any()) for side in (left, right)]
        below = float(np.nanmax(left)) if not np.isnan(left).all() else -math.inf
        above = float(np.nanmin(right)) if not np.isnan(right).all() else math.inf
        if below == -math.inf:  # only missing values on the left: the same cut from its other side
            right_clause, left_clause = columns[column].cut(above, math.inf, False)
            return left_clause, right_clause
        return columns[column].cut(below, above, missing[0] if any(missing) else None)

    def _rows(self, node: int) -> NDArray[np.intp]:
        start, end = self._reach.indptr[node], self._reach.indptr[node + 1]
        rows: NDArray[np.intp] = self._reach.indices[start:end]
        return rows
