"""The shortest disjoint rules: several trees, each grown past the floor and pruned back to it.

The greedy tree is not the shortest one, and a small change in its first splits can halve what
follows. So after the tree that STAIR grows, others are grown that each time see only some of the
columns, drawn at random; of all of them the one that is shortest after pruning is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.engines import Engine, Group
from stair.engines.search import Gains, Split
from stair.learn.grow import Growth, grow
from stair.learn.prune import refine
from stair.rules.clauses import Clause
from stair.rules.objective import reaches, score_of
from stair.rules.rule_set import Leaf

# Trees are grown past the floor by this share of what is left above it.
PAST_THE_FLOOR: Final = 0.75
# The part of the columns that a rule of the other trees may look at.
SEEN: Final = 0.6
# As many trees as may look at this many values together, but no fewer and no more than these.
VALUES: Final = 20_000_000
FEWEST, MOST = 5, 200


class Blinkered:
    """An engine that shows each rule only some of its columns."""

    def __init__(self, engine: Engine, random: np.random.Generator) -> None:
        self.n_classes, self.attributes = engine.n_classes, engine.attributes
        self.once, self.order, self.unit = engine.once, engine.order, engine.unit
        self.known = engine.known
        self._engine, self._random = engine, random

    def root(self) -> Group:
        return self._engine.root()

    def find(self, group: Group, columns: NDArray[np.int64]) -> Gains:
        found = self._engine.find(group, columns)
        seen = (self._random.random(len(columns)) < SEEN).tolist()
        gains = [g if s else np.nan for g, s in zip(found.gains, seen, strict=True)]
        return found._replace(gains=gains)

    def divide(
        self, group: Group, split: Split, columns: NDArray[np.int64]
    ) -> tuple[tuple[Clause, Group], tuple[Clause, Group]]:
        return self._engine.divide(group, split, columns)


def shortest_tree(
    engine_of: Callable[[], Engine],
    n_values: int,
    *,
    min_score: float,
    max_rule_length: int,
    positive: int | None,
    seed: int,
    most_trees: int = MOST,
    say: Callable[[str], object] = lambda _: None,
) -> tuple[list[Leaf], int, Growth]:
    """Leaves that cover all rows above the floor, the class of the rest, and the first growth.

    Where no tree reaches the floor, the leaves of the one with the best score are returned.
    """
    random = np.random.default_rng(seed)
    past = min_score + (1 - min_score) * PAST_THE_FLOOR
    best: tuple[tuple[bool, float], list[Leaf]] | None = None
    first: Growth | None = None
    for number in range(min(max(VALUES // max(n_values, 1), FEWEST), most_trees)):
        engine = engine_of()
        seen: Engine = engine if first is None else Blinkered(engine, random)
        growth = grow(
            seen, min_score=past, max_rule_length=max_rule_length, positive=positive,
            on_step=lambda _, n=number: say(f"learning: tree {n + 1}"),  # type: ignore[misc]
        )  # fmt: skip
        leaves = refined_leaves(growth, engine.unit, positive, min_score)
        totals = [sum(each) for each in zip(*(leaf.counts for leaf in leaves), strict=True)]
        score = score_of(((leaf.label, leaf.counts) for leaf in leaves), totals, positive)
        is_above = reaches(score, min_score)
        length = sum(len({clause.feature for clause in leaf.clauses}) for leaf in leaves)
        rank = (not is_above, float(length) if is_above else -score)
        if best is None or rank < best[0]:
            best = rank, leaves
            say(f"learning: shortest so far {length}, after {number + 1} trees")
        first = first or growth
    assert best is not None and first is not None
    return best[1], first.root.label, first


def refined_leaves(growth: Growth, unit: int, positive: int | None, min_score: float) -> list[Leaf]:
    """What is left of a tree after pruning it back to the floor."""
    totals: Sequence[int] = growth.root.group.counts
    (kept,) = refine(growth.roots, totals, positive, min_score)
    return [
        Leaf(node.clauses(), label, tuple(float(np.ldexp(c, unit)) for c in node.group.counts))
        for node, label in kept
    ]
