"""The STAIR loop: Algorithm 1 of the paper.

While the score is below the floor: take the cheapest split, apply it, record the step.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.engines import Engine, Group
from stair.engines.search import Gains, Split, best_split
from stair.rules.clauses import Clause, add_clause
from stair.rules.columns import ANY_SIDE, allows
from stair.rules.objective import (
    ROUNDING,
    boundary_stabilizer,
    entropy_scale,
    f1,
    objective,
    purity,
    reaches,
)
from stair.rules.rule_set import Leaf


class Step(NamedTuple):
    """The state after one split. Figures Q2 and Q6 of the paper are drawn from these."""

    stabilizer: float  # M
    objective: float  # S(R, M)
    purity: float  # A0 = Σ n·E
    total_length: int  # B0 = Σ L
    score: float  # F1 of the outliers, or accuracy
    n_rules: int


@dataclass(slots=True, eq=False)
class Node:
    """A rule while it grows: its rows, its clause beside its parent's, its best split."""

    group: Group
    length: int
    used: frozenset[int]  # the columns of the attributes that it has
    label: int
    parent: Node | None = None
    clause: Clause | None = None
    split: Split | None = None
    children: tuple[Node, Node] | None = None
    divided_at: int | None = None  # the step that divided it
    is_barred: bool = False  # by a clause on the side of a column that makes no outlier
    _merged: dict[tuple[str, ...], Clause] | None = None

    def clauses(self) -> tuple[Clause, ...]:
        """One clause for each group of conditions that can be merged, the oldest first."""
        return tuple(self._by_group().values())

    def _by_group(self) -> dict[tuple[str, ...], Clause]:
        """Made from the parent's, and remembered: siblings and their children share the work."""
        if self._merged is None:
            self._merged = {}
            if self.parent is not None and self.clause is not None:
                self._merged = add_clause(self.parent._by_group(), self.clause)
        return self._merged


@dataclass(slots=True)
class Growth:
    """What the loop leaves: the trees (one, unless data was partitioned), every step, and how
    many steps to keep."""

    roots: tuple[Node, ...]
    steps: list[Step] = field(default_factory=list)
    kept: int = 0
    floor_reached: bool = False

    @property
    def root(self) -> Node:
        return self.roots[0]

    def leaves(self, steps: int | None = None) -> Iterator[Node]:
        """The rules after this many steps (those to keep by default), from left to right."""
        upto = self.kept if steps is None else steps
        pending = list(reversed(self.roots))
        while pending:
            node = pending.pop()
            if node.children is not None and node.divided_at is not None and node.divided_at < upto:
                pending.extend(reversed(node.children))
            else:
                yield node


class _Score:
    """F1 of the positive class, or accuracy, kept up to date as rules are divided.

    All sums are whole numbers, so nothing drifts.
    """

    def __init__(self, roots: Sequence[Node], positive: int | None) -> None:
        self._positive = positive
        self._totals = tuple(map(sum, zip(*(root.group.counts for root in roots), strict=True)))
        self._hits = 0
        self._predicted = 0
        for root in roots:
            self._add(root, 1)

    def _add(self, node: Node, sign: int) -> None:
        counts = node.group.counts
        if self._positive is None:
            self._hits += sign * counts[node.label]
        elif node.label == self._positive:
            self._hits += sign * counts[node.label]
            self._predicted += sign * sum(counts)

    def divided(self, node: Node, children: tuple[Node, Node]) -> None:
        self._add(node, -1)
        for child in children:
            self._add(child, 1)

    def value(self) -> float:
        if self._positive is None:
            return self._hits / sum(self._totals)
        return f1(self._hits, self._predicted, self._totals[self._positive])


def majority(counts: Sequence[int], positive: int | None) -> int:
    """The label of a rule. A tie is an inlier; among several classes it is the first."""
    if positive is None:
        return counts.index(max(counts))
    return positive if counts[positive] > counts[1 - positive] else 1 - positive


class Search:
    """Finds a rule's best split, within the longest rule that is allowed."""

    def __init__(self, engine: Engine, max_rule_length: int) -> None:
        self._engine = engine
        self._max_rule_length = max_rule_length
        self._all = engine.order
        self._place: list[int] = np.argsort(engine.order).tolist()
        self._all_listed: list[int] = self._all.tolist()
        self._bits = entropy_scale(engine.n_classes)
        self._once = frozenset(np.flatnonzero(engine.once).tolist())
        self._columns_of: dict[int, list[int]] = {}
        for column, attribute in enumerate(engine.attributes.tolist()):
            self._columns_of.setdefault(attribute, []).append(column)
        known = engine.known
        # Of most tables nothing of this is known, and then nothing of it may cost time.
        self._limited = {k: column.sides for k, column in enumerate(known)
                         if column.sides != ANY_SIDE}  # fmt: skip
        self._costs = [column.cost for column in known]
        self._is_costly = any(cost > 1 for cost in self._costs)
        self._rivals = {
            k: {j for j, other in enumerate(known)
                if other.group == column.group and other.attribute != column.attribute}
            for k, column in enumerate(known) if column.group
        }  # fmt: skip

    def columns(self, node: Node) -> NDArray[np.int64]:
        """The columns that a rule may use: once it is full, only those of its own attributes; and
        never again those that it may cut once and has."""
        spent = node.used & self._once if self._once else self._once
        if self._rivals:
            spent = spent.union(*(self._rivals.get(column, ()) for column in node.used))
        if node.length >= self._max_rule_length:
            left = sorted(node.used - spent, key=self._place.__getitem__)
            return np.array(left, dtype=np.int64)
        return self._all[~np.isin(self._all, list(spent))] if spent else self._all

    def rank(self, split: Split) -> tuple[float, float, int, int]:
        """Splits in the order in which they are taken: the written rule for ties."""
        return (split.price, -split.gain, self._place[split.column], split.cut)

    def used_with(self, node: Node, split: Split) -> frozenset[int]:
        """The columns of a rule's attributes after a split."""
        if split.column in node.used:
            return node.used
        return node.used.union(self._columns_of[int(self._engine.attributes[split.column])])

    def best(self, node: Node) -> Split | None:
        total = sum(node.group.counts)
        if max(node.group.counts) == total or node.is_barred:
            return None  # pure: nothing to gain; barred: no outlier rule can come of it
        columns = self.columns(node)
        if not len(columns):
            return None
        listed = self._all_listed if columns is self._all else columns.tolist()
        found = self._engine.find(node.group, columns)
        tiny = ROUNDING * total * math.log2(total)
        if self._is_costly:
            return self._cheapest(node, listed, found, tiny)
        return best_split(found, listed, node.used, node.length, tiny, self._bits)

    def _cheapest(
        self, node: Node, columns: Sequence[int], found: Gains, tiny: float
    ) -> Split | None:
        """The cheapest split where columns differ in what they add to the length."""
        own = {int(self._engine.attributes[column]): column for column in node.used}
        length = sum(self._costs[column] for column in own.values())
        best: Split | None = None
        for k, (column, gain) in enumerate(zip(columns, found.gains, strict=True)):
            if not gain > tiny:
                continue
            longer = length + (0 if column in node.used else self._costs[column])
            split = Split(column, found.cuts[k], bool(found.missing_left[k]),
                          gain / self._bits, 2 * longer - length)  # fmt: skip
            if best is None or (split.price, -split.gain) < (best.price, -best.gain):
                best = split
        return best

    def nothing(self, node: Node) -> Gains:
        """What an engine finds where no column has a cut."""
        n = len(self.columns(node))
        return Gains([math.nan] * n, [0] * n, [0] * n)

    def divide(self, node: Node, split: Split, positive: int | None) -> tuple[Node, Node]:
        """The two rules that a split makes of one."""
        used = self.used_with(node, split)
        added = used is not node.used
        sides = self._engine.divide(node.group, split, self.columns(node))
        left, right = (
            Node(part, node.length + added, used, majority(part.counts, positive), node, clause)
            for clause, part in sides
        )
        sides_of_column = self._limited.get(split.column)
        if positive is not None and (node.is_barred or sides_of_column is not None):
            for child in (left, right):
                assert child.clause is not None
                is_allowed = sides_of_column is None or allows(sides_of_column, child.clause)
                if node.is_barred or not is_allowed:
                    child.is_barred, child.label = True, 1 - positive
        return left, right


def plant(engine: Engine, positive: int | None, *, says_inlier: bool = True) -> Node:
    """The rule without clauses that covers all rows of an engine.

    In the paper it says inlier, however many outliers there are.
    """
    group = engine.root()
    if says_inlier and positive is not None:
        return Node(group, 0, frozenset(), 1 - positive)
    return Node(group, 0, frozenset(), majority(group.counts, positive))


def grow(
    engine: Engine,
    *,
    min_score: float,
    max_rule_length: int,
    max_total_length: int | None = None,
    positive: int | None = None,
    on_step: Callable[[Step], object] | None = None,
) -> Growth:
    """Divide rules, the cheapest first, until the score is above the floor.

    `positive` is the outlier class, scored by F1; None means accuracy. The paper looks at the
    score only after all splits that one M allows; of these we keep no more than the floor needs.
    A split that would make the total length larger than `max_total_length` is passed over.
    If the floor cannot be reached, the best score on the way is kept (the shortest of equals).
    """
    return grow_forest(
        [(engine, plant(engine, positive))],
        min_score=min_score,
        max_rule_length=max_rule_length,
        max_total_length=max_total_length,
        positive=positive,
        on_step=on_step,
    )


def grow_forest(
    trees: Sequence[tuple[Engine, Node]],
    *,
    min_score: float,
    max_rule_length: int,
    max_total_length: int | None = None,
    positive: int | None = None,
    on_step: Callable[[Step], object] | None = None,
) -> Growth:
    """The same for several trees at once, each with rows of its own: one heap, one score.

    A tree that has grown before is not grown again: what is known of it is taken.
    """
    growth = Growth(tuple(root for _, root in trees))
    searches = {id(root): Search(engine, max_rule_length) for engine, root in trees}
    unit = trees[0][0].unit
    score = _Score(growth.roots, positive)
    # A0, in the engine's units: M does not depend on them.
    total = sum(purity(root.group.counts) for root in growth.roots if sum(root.group.counts))
    length = 0  # B0
    heap: list[tuple[tuple[float, float, int, int], int, Node, int]] = []
    births = itertools.count()

    def insert(node: Node, tree: int) -> None:
        node.divided_at = None
        if node.children is None:
            node.split = searches[tree].best(node)
        if node.split is not None:
            heapq.heappush(heap, (searches[tree].rank(node.split), next(births), node, tree))

    def cheapest() -> float | None:
        """The boundary stabilizer of the cheapest split that fits; None where there is none."""
        while heap:
            split = heap[0][2].split
            assert split is not None
            if max_total_length is None or length + split.extra_length <= max_total_length:
                return boundary_stabilizer(total, length, split.price)
            heapq.heappop(heap)  # rules only get longer: it will never fit
        return None

    def apply(node: Node, split: Split, tree: int) -> None:
        if node.children is None:
            node.children = searches[tree].divide(node, split, positive)
        node.divided_at = len(growth.steps)
        score.divided(node, node.children)
        for child in node.children:
            insert(child, tree)

    for root in growth.roots:
        insert(root, id(root))
    best = score.value()
    growth.floor_reached = reaches(best, min_score)
    while not growth.floor_reached and (stabilizer := cheapest()) is not None:
        boundary: float | None = stabilizer
        while boundary is not None and boundary <= stabilizer:
            _, _, node, tree = heapq.heappop(heap)
            split = node.split
            assert split is not None
            apply(node, split, tree)
            total += split.gain
            length += split.extra_length
            step = Step(
                stabilizer,
                math.ldexp(objective(total, length, stabilizer), unit),
                math.ldexp(total, unit),
                length,
                score.value(),
                len(growth.steps) + 1 + len(growth.roots),
            )
            growth.steps.append(step)
            if step.score > best and not growth.floor_reached:
                best, growth.kept = step.score, len(growth.steps)
                growth.floor_reached = reaches(best, min_score)
            if on_step is not None:
                on_step(step)
            boundary = cheapest()
    return growth


def leaves_of(growth: Growth, unit: int, steps: int | None = None) -> list[Leaf]:
    """The rules to keep (or those after so many steps), with true weights in place of the engine's
    whole numbers."""
    return [
        Leaf(
            node.clauses(),
            node.label,
            tuple([math.ldexp(count, unit) for count in node.group.counts]),
        )
        for node in growth.leaves(steps)
    ]
