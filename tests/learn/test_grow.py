"""The STAIR loop against the paper, by brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from stair.learn.grow import Growth, Node, Step, grow
from stair.rules.objective import entropy_scale, purity
from strategies import Labelled, examples, labelled

EVERY = settings(max_examples=examples(150), deadline=None)


def _grown(data: Labelled, max_rule_length: int = 3, **options: Any) -> Growth:
    positive = 1 if data.n_classes == 2 else None
    options = {"min_score": 1.0, **options}
    return grow(data.engine(), max_rule_length=max_rule_length, positive=positive, **options)


class _Slow:
    """Algorithm 1 with nothing remembered: all splits of all rules, anew at every step."""

    def __init__(self, data: Labelled, max_rule_length: int) -> None:
        self.data, self.limit = data, max_rule_length
        self.rules: list[tuple[np.ndarray, frozenset[int]]] = [
            (np.ones(len(data.y), dtype=bool), frozenset())
        ]

    def counts(self, mask: np.ndarray) -> list[int]:
        return np.bincount(self.data.y[mask], minlength=self.data.n_classes).tolist()

    def splits(
        self,
    ) -> list[tuple[float, tuple[float, float], int, int, np.ndarray, frozenset[int]]]:
        """Every split of every rule, with the smallest M that makes it valid."""
        total = sum(purity(self.counts(mask)) for mask, _ in self.rules)
        length = sum(len(used) for _, used in self.rules)
        found = []
        for number, (mask, used) in enumerate(self.rules):
            for j in range(self.data.X.shape[1]):
                after = used | {j}
                if len(after) > self.limit:
                    continue
                x = self.data.X[:, j]
                sides = [x <= cut for cut in np.unique(x[mask & ~np.isnan(x)])]
                sides += [side | np.isnan(x) for side in sides]
                for side in sides:
                    left, right = mask & side, mask & ~side
                    if not left.any() or not right.any():
                        continue
                    gain = sum(purity(self.counts(part)) for part in (left, right))
                    gain -= purity(self.counts(mask))
                    if gain < 1e-9:
                        continue
                    added = 2 * len(after) - len(used)
                    smallest = total * added / gain - length
                    found.append((smallest, (added / gain, -gain), number, j, side, after))
        return found


@settings(max_examples=examples(60), deadline=None)
@given(labelled(max_rows=20, max_columns=3))
def test_the_heap_takes_a_split_with_the_smallest_valid_stabilizer(data: Labelled) -> None:
    """At each step, brute force over all splits of all rules finds no smaller M.

    The price of the split that the heap takes equals the least price of all, and where several
    have it the one with the larger gain is taken.
    """
    growth = _grown(data)
    slow = _Slow(data, 3)
    before = Step(0.0, 0.0, purity(slow.counts(slow.rules[0][0])), 0, 0.0, 1)
    masks = {growth.root: slow.rules[0][0]}
    for number, step in enumerate(growth.steps):
        candidates = slow.splits()
        node = next(n for n in masks if n.divided_at == number)
        assert node.split is not None
        assert node.children is not None
        gain, added = step.purity - before.purity, step.total_length - before.total_length
        least = min(c[1][0] for c in candidates)
        assert added / gain == pytest.approx(least, rel=1e-6)
        smallest = min(c[0] for c in candidates)
        assert before.purity * added / gain - before.total_length == pytest.approx(
            smallest, rel=1e-6, abs=1e-6
        )
        largest_gain = max(-c[1][1] for c in candidates if c[1][0] <= least * (1 + 1e-9))
        assert gain == pytest.approx(largest_gain, rel=1e-6)
        mask = masks.pop(node)
        place = next(k for k, (m, _) in enumerate(slow.rules) if m is mask)
        sides = []
        for child in node.children:
            assert child.clause is not None
            j = int(child.clause.feature[1:])
            part = mask & child.clause.covers(data.X[:, j])
            masks[child] = part
            sides.append((part, slow.rules[place][1] | {j}))
        assert (sides[0][0] ^ sides[1][0]).sum() == mask.sum()
        slow.rules[place : place + 1] = sides
        before = step
    if growth.steps and not growth.floor_reached:
        assert not slow.splits()


@EVERY
@given(labelled())
def test_the_papers_identities_hold_at_every_step(data: Labelled) -> None:
    """S = A0 / (B0 + M); A0 is the purity of the leaves, B0 their length; M never falls."""
    growth = _grown(data)
    for number, step in enumerate(growth.steps, start=1):
        leaves = list(growth.leaves(number))
        assert step.n_rules == len(leaves) == number + 1
        assert step.total_length == sum(node.length for node in leaves)
        expected = sum(purity(node.group.counts) for node in leaves)
        assert step.purity == pytest.approx(expected, rel=1e-9, abs=1e-9)
        denominator = step.total_length + step.stabilizer
        if denominator > 0:
            assert step.objective == pytest.approx(step.purity / denominator)
    stabilizers = [step.stabilizer for step in growth.steps]
    assert stabilizers == sorted(stabilizers)


@EVERY
@given(labelled())
def test_the_score_of_each_step_is_that_of_its_leaves(data: Labelled) -> None:
    """Nothing is carried along: F1 (or accuracy) is recounted from the leaves' own rows."""
    growth = _grown(data)
    for number, step in enumerate(growth.steps, start=1):
        predicted = np.empty(len(data.y), dtype=int)
        for node in growth.leaves(number):
            predicted[_mask(node, data)] = node.label
        if data.n_classes > 2:
            assert step.score == pytest.approx((predicted == data.y).mean())
        else:
            hits = int(((predicted == 1) & (data.y == 1)).sum())
            both = int((predicted == 1).sum() + (data.y == 1).sum())
            assert step.score == pytest.approx(2 * hits / both)


def _mask(node: Node, data: Labelled) -> np.ndarray:
    """The rows of a leaf by walking its path, one split at a time."""
    mask = np.ones(len(data.y), dtype=bool)
    here: Node | None = node
    while here is not None and here.clause is not None:
        mask &= here.clause.covers(data.X[:, int(here.clause.feature[1:])])
        here = here.parent
    return mask


@EVERY
@given(labelled())
def test_every_row_walks_to_the_leaf_whose_clauses_cover_it(data: Labelled) -> None:
    """The merged clauses of a leaf select the rows of its path, and each row has one leaf."""
    growth = _grown(data)
    leaves = list(growth.leaves())
    covered = np.zeros(len(data.y), dtype=int)
    for node in leaves:
        merged = np.ones(len(data.y), dtype=bool)
        for clause in node.clauses():
            merged &= clause.covers(data.X[:, int(clause.feature[1:])])
        assert (merged == _mask(node, data)).all()
        counts = np.bincount(data.y[merged], minlength=data.n_classes)
        assert tuple(counts.tolist()) == node.group.counts
        assert node.length == len(node.clauses()) <= 3
        covered += merged
    assert (covered == 1).all()


@EVERY
@given(labelled())
def test_full_growth_separates_all_that_can_be_separated(data: Labelled) -> None:
    """Grown to the end without a limit, a mixed leaf has no column left that helps."""
    growth = _grown(data, max_rule_length=10)
    engine_columns = range(data.X.shape[1])
    for node in growth.leaves(len(growth.steps)):
        if max(node.group.counts) == sum(node.group.counts) or growth.floor_reached:
            continue
        rows = data.X[_mask(node, data)]
        labels = data.y[_mask(node, data)]
        for j in engine_columns:
            keys = {(-math.inf if math.isnan(v) else v) for v in rows[:, j]}
            if len(keys) > 1:  # then any cut must leave the class shares as they are
                for cut in sorted(k for k in keys if k != max(keys)):
                    side = np.nan_to_num(rows[:, j], nan=-math.inf) <= cut
                    assert labels[side].mean() == pytest.approx(labels.mean())


def test_the_floor_stops_the_growth_and_keeps_no_more_than_it_needs() -> None:
    """The rules that are kept are the first on the way above the floor."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 4))
    y = ((X[:, 0] > 1) | (X[:, 1] * X[:, 2] > 1.2)).astype(np.int32)
    data = Labelled(X, y, 2, None)
    full = _grown(data, max_rule_length=4)
    for floor in (0.5, 0.7, 0.9):
        growth = _grown(data, max_rule_length=4, min_score=floor)
        first = next(k for k, step in enumerate(full.steps, start=1) if step.score > floor)
        assert growth.floor_reached
        assert growth.kept == first
        assert growth.steps == full.steps[: len(growth.steps)]


@EVERY
@given(labelled())
def test_a_length_budget_is_kept_and_used_up(data: Labelled) -> None:
    """The same steps as without a budget, up to the first split that does not fit; that one is
    passed over. Growth once ended there, while others still fitted."""
    full = _grown(data)
    for budget in (0, 3, 8):
        growth = _grown(data, max_total_length=budget)
        assert all(step.total_length <= budget for step in growth.steps)
        fits = [step.total_length <= budget for step in full.steps]
        same = fits.index(False) if False in fits else len(fits)
        assert growth.steps[:same] == full.steps[:same]
        length = growth.steps[-1].total_length if growth.steps else 0
        left = [node.split for node in growth.leaves(len(growth.steps)) if node.split is not None]
        assert growth.floor_reached or all(length + s.extra_length > budget for s in left)


def test_a_tie_is_an_inlier_and_the_root_says_inlier() -> None:
    """Even where most rows are outliers, the rule without clauses says inlier."""
    X = np.zeros((3, 1))
    growth = _grown(Labelled(X, np.array([1, 1, 0], dtype=np.int32), 2, None))
    assert [node.label for node in growth.leaves()] == [0]
    X = np.array([[0.0], [1.0], [1.0], [2.0], [2.0]])
    y = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    growth = _grown(Labelled(X, y, 2, None))
    labels = {node.clauses()[0].high: node.label for node in growth.leaves(2)}
    assert labels[1.0] == 0


def test_purity_stays_positive_with_many_classes() -> None:
    """With entropy in plain bits A0 would be negative for seven classes, and M meaningless."""
    rng = np.random.default_rng(0)
    data = Labelled(rng.normal(size=(200, 3)), rng.integers(0, 7, 200).astype(np.int32), 7, None)
    growth = _grown(data)
    assert entropy_scale(7) == pytest.approx(math.log2(7))
    assert all(step.purity > 0 and step.stabilizer >= 0 for step in growth.steps)
