"""L-STAIR: partitions of the data and rules for each, learned together (Algorithm 2 of the paper).

    minimise  Σ_C Σ_{x∈C} [ (tree_C(x) ≠ y) + λ·‖x − center(C)‖² / usual ]

where `usual` is the median squared distance to the nearest of the first centers, so that one λ
means the same on all data: a row may be as far beyond the nearest center as rows usually are from
theirs for 1/λ of an error.

k-means starts; a tree is grown in each partition; each row moves to the partition with the least
loss; empty and redundant partitions go, and those whose own score is under the floor are split in
two. The trees of a round share one heap and one floor over all rows (`grow_forest`), and are pruned
back to it (`refine`).

Moving a row uses its label, so two scores are kept apart everywhere: *assigned* judges a row by the
partition that it was moved to (the paper's), *routed* by its nearest center, which is all that a
new row has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.engines.memory import MemoryEngine
from stair.grow import Node, Step, grow_forest, plant
from stair.match import first_match
from stair.objective import f1, reaches
from stair.refine import refine
from stair.rules import Leaf
from stair.space import Matrix, squared_distances
from stair.table import Table

FloorOn: TypeAlias = Literal["routed", "assigned"]
Rows: TypeAlias = NDArray[np.intp]

# In the first rounds the trees need not reach the floor yet: they are this much lower.
GAP: Final = 0.2
# How far trees are grown past the floor before they are pruned back to it.
PAST: Final = 0.75
MOST_PARTITIONS: Final = 16
# Rounds without a shorter result before the loop ends.
PATIENCE: Final = 3


class Round(NamedTuple):
    """One round of the loop, after its rows have moved."""

    error: float  # Σ (tree(x) ≠ y)
    locality: float  # λ·Σ ‖x − center‖²
    objective_before: float  # the same trees and centers before rows moved
    objective: float
    objective_after: float  # once redundant partitions were given up
    n_partitions: int
    floor: float  # of this round's trees
    local: float  # the share of rows that are in the partition with the nearest center
    assigned: float
    routed: float
    total_length: int


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """Partitions by their centers, the leaves of each, and how they came about."""

    centers: Matrix
    leaves: list[list[Leaf]]
    assigned: float
    routed: float
    rounds: list[Round]
    steps: list[Step]

    @property
    def total_length(self) -> int:
        return sum(len({c.feature for c in leaf.clauses}) for part in self.leaves for leaf in part)


@dataclass(slots=True, eq=False)
class _Trees:
    """Trees of partitions; the tree of the same rows is never grown twice."""

    table: Table
    codes: NDArray[np.int32]
    n_classes: int
    positive: int | None
    known: dict[bytes, tuple[MemoryEngine, Node]] = field(default_factory=dict)

    def of(self, parts: Sequence[Rows]) -> list[tuple[MemoryEngine, Node]]:
        """The trees of these sets of rows; those of other sets are forgotten."""
        self.known = {rows.tobytes(): self._tree(rows) for rows in parts}
        return list(self.known.values())

    def _tree(self, rows: Rows) -> tuple[MemoryEngine, Node]:
        known = self.known.get(rows.tobytes())
        if known is not None:
            return known
        part = np.asfortranarray(self.table.codes[rows])
        engine = MemoryEngine(self.table.columns, part, self.codes[rows], self.n_classes)
        return engine, plant(engine, self.positive, says_inlier=False)


def learn_local(
    table: Table,
    places: Matrix,
    codes: NDArray[np.int32],
    n_classes: int,
    *,
    positive: int | None,
    min_score: float,
    max_rule_length: int,
    n_partitions: int,
    locality: float,
    floor_on: FloorOn,
    max_rounds: int,
    seed: tuple[int, int],
    say: Callable[[str], None] = lambda _: None,
) -> Local:
    """The shortest result of all rounds above the floor, else the one with the best score."""
    loop = _Loop(
        table, places, codes, n_classes, positive, min_score, max_rule_length, locality, floor_on,
        np.random.RandomState(seed), say,
    )  # fmt: skip
    return loop.run(n_partitions, max_rounds)


@dataclass(slots=True, eq=False)
class _Loop:
    table: Table
    places: Matrix
    codes: NDArray[np.int32]
    n_classes: int
    positive: int | None
    min_score: float
    max_rule_length: int
    locality: float
    floor_on: FloorOn
    random: np.random.RandomState
    say: Callable[[str], None]
    weight: float = 0.0  # of a squared distance: λ in units of what is usual in this data

    def run(self, n_partitions: int, max_rounds: int) -> Local:
        """Round after round; the best of them is kept."""
        trees = _Trees(self.table, self.codes, self.n_classes, self.positive)
        centers = self._kmeans(self.places, n_partitions)
        distances = squared_distances(self.places, centers)
        assigned = distances.argmin(axis=1)
        usual = float(np.median(distances.min(axis=1)))
        self.weight = self.locality / usual if usual > 0 else self.locality
        rounds: list[Round] = []
        best: Local | None = None
        waited = 0
        for number in range(1, max_rounds + 1):
            self.say(f"learning: round {number}, {len(centers)} partitions")
            centers, assigned = self._settled(centers, assigned)
            found, wrong = self._judge(trees, centers, assigned, rounds)
            if best is None or self._is_better(found, best):
                best, waited = found, 0
            else:
                waited += 1
            before = (len(centers), assigned)
            centers, assigned = self._move(centers, assigned, wrong)
            changed = before[0] != len(centers) or not np.array_equal(before[1], assigned)
            if not changed or waited >= PATIENCE:
                break
        assert best is not None
        return best

    def _settled(self, centers: Matrix, assigned: Rows) -> tuple[Matrix, Rows]:
        """Without the partitions that no row would be learned from."""
        nearest = squared_distances(self.places, centers).argmin(axis=1)
        basis = nearest if self.floor_on == "routed" else assigned
        kept = [k for k in range(len(centers)) if (basis == k).any()]
        if len(kept) == len(centers):
            return centers, assigned
        place = np.full(len(centers), -1)
        place[kept] = np.arange(len(kept))
        centers = centers[kept]
        nearest = squared_distances(self.places, centers).argmin(axis=1)
        return centers, np.where(place[assigned] >= 0, place[assigned], nearest)

    def _judge(
        self, trees: _Trees, centers: Matrix, assigned: Rows, rounds: list[Round]
    ) -> tuple[Local, NDArray[np.bool_]]:
        """A tree for each partition, and which rows it would judge wrongly (rows × partitions)."""
        distances = squared_distances(self.places, centers)
        nearest = distances.argmin(axis=1)
        basis = nearest if self.floor_on == "routed" else assigned
        growth = grow_forest(
            trees.of([np.flatnonzero(basis == k) for k in range(len(centers))]),
            min_score=self.min_score + PAST * (1.0 - self.min_score),
            max_rule_length=self.max_rule_length,
            positive=self.positive,
            on_step=lambda step: self.say(f"learning: {step.n_rules} rules in all partitions"),
        )
        floor = self._floor(len(centers))
        totals = np.bincount(self.codes, minlength=self.n_classes).tolist()
        leaves = [
            [Leaf(n.clauses(), label, tuple(map(float, n.group.counts))) for n, label in part]
            for part in refine(growth.roots, totals, self.positive, floor)
        ]
        wrong = self._wrong(leaves, distances, assigned)
        loss = wrong + self.weight * distances
        moved = self._moved(loss, assigned)
        here = np.arange(len(loss))
        error = float(wrong[here, moved].sum())
        local = Local(
            centers, leaves, self._score(wrong[here, moved]), self._score(wrong[here, nearest]),
            rounds, growth.steps,
        )  # fmt: skip
        kept = self._without_redundant(loss, moved)
        rounds.append(
            Round(
                error,
                float(loss[here, moved].sum()) - error,
                float(loss[here, assigned].sum()),
                float(loss[here, moved].sum()),
                float(loss[here, kept].sum()),
                len(centers),
                floor,
                float((moved == nearest).mean()),
                local.assigned,
                local.routed,
                local.total_length,
            )
        )
        return local, wrong

    def _floor(self, n_partitions: int) -> float:
        """The floor of a round's trees.

        Where the floor is on the assigned score, the trees of the first rounds may be lower: rows
        that move to a tree that is right about them make up for it.
        """
        if self.floor_on == "routed":
            return self.min_score
        return min(self.min_score, max(0.0, self.min_score - GAP + GAP * (n_partitions - 2) / 9))

    def _moved(self, loss: Matrix, assigned: Rows) -> Rows:
        """Each row in the partition with the least loss; it stays where that is no better."""
        here = np.arange(len(loss))
        moved = loss.argmin(axis=1)
        return np.where(loss[here, assigned] <= loss[here, moved], assigned, moved)

    def _without_redundant(self, loss: Matrix, moved: Rows) -> Rows:
        """Partitions given up whose rows can go elsewhere without raising the objective."""
        loss = loss.copy()
        moved = moved.copy()
        sizes = np.bincount(moved, minlength=loss.shape[1])
        for k in np.argsort(sizes, kind="stable").tolist():
            rows = np.flatnonzero(moved == k)
            if not len(rows) or len(np.unique(moved)) < 2:
                continue
            own = loss[rows, k].copy()
            loss[rows, k] = np.inf
            elsewhere = loss[rows].argmin(axis=1)
            if (loss[rows, elsewhere] - own).sum() <= 0.0:
                moved[rows] = elsewhere
                loss[:, k] = np.inf
            else:
                loss[rows, k] = own
        return moved

    def _move(
        self, centers: Matrix, assigned: Rows, wrong: NDArray[np.bool_]
    ) -> tuple[Matrix, Rows]:
        """Rows to where their loss is least; new centers; partitions under the floor in two."""
        distances = squared_distances(self.places, centers)
        loss = wrong + self.weight * distances
        moved = self._without_redundant(loss, self._moved(loss, assigned))
        judged = distances.argmin(axis=1) if self.floor_on == "routed" else moved
        own = [self._own_score(judged == k, wrong[:, k]) for k in range(len(centers))]
        centers, moved, own = self._centers(moved, own)
        return self._split(centers, moved, own)

    def _is_better(self, found: Local, best: Local) -> bool:
        """Above the floor before below it; then the shorter, or the better score."""
        here, there = (x.routed if self.floor_on == "routed" else x.assigned for x in (found, best))
        reached = reaches(here, self.min_score)
        if reached != reaches(there, self.min_score):
            return reached
        if reached:
            return found.total_length < best.total_length
        return here > there

    def _column(self, rows: Rows, name: str) -> NDArray[Any]:
        return self.table.values[name][rows]

    def _wrong(
        self, leaves: list[list[Leaf]], distances: Matrix, assigned: Rows
    ) -> NDArray[np.bool_]:
        """What each partition's tree judges wrongly (rows × partitions).

        A row can only move to a partition that is farther by less than one error is worth; of the
        others it does not matter what they say, and they count as wrong.
        """
        wrong = np.ones(distances.shape, dtype=np.bool_)
        reach = self.weight * (distances - distances.min(axis=1, keepdims=True)) <= 1.0
        for k, part in enumerate(leaves):
            rows = np.flatnonzero(reach[:, k] | (assigned == k))
            labels = np.array([*(leaf.label for leaf in part), self._default()])
            numbers = first_match(part, partial(self._column, rows), len(rows))
            wrong[rows, k] = labels[numbers] != self.codes[rows]
        return wrong

    def _default(self) -> int:
        if self.positive is not None:
            return 1 - self.positive
        return int(np.bincount(self.codes).argmax())

    def _score(self, wrong: NDArray[np.bool_]) -> float:
        """F1 or accuracy where these rows are judged wrongly."""
        if self.positive is None:
            return 1.0 - float(wrong.mean())
        is_outlier = self.codes == self.positive
        hits = int((is_outlier & ~wrong).sum())
        predicted = hits + int((~is_outlier & wrong).sum())
        return f1(hits, predicted, int(is_outlier.sum()))

    def _own_score(self, rows: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> float:
        """A partition's own score; one without outliers has nothing to explain."""
        if self.positive is None:
            return 1.0 - float(wrong[rows].mean()) if rows.any() else 1.0
        is_outlier = self.codes[rows] == self.positive
        hits = int((is_outlier & ~wrong[rows]).sum())
        predicted = hits + int((~is_outlier & wrong[rows]).sum())
        return f1(hits, predicted, int(is_outlier.sum())) if is_outlier.any() else 1.0

    def _centers(self, moved: Rows, own: Sequence[float]) -> tuple[Matrix, Rows, list[float]]:
        """The means of the rows of each partition; empty partitions go."""
        kept = [k for k in range(len(own)) if (moved == k).any()]
        centers = np.array([self.places[moved == k].mean(axis=0) for k in kept])
        renumber = np.full(len(own), -1)
        renumber[kept] = np.arange(len(kept))
        return centers, renumber[moved], [own[k] for k in kept]

    def _split(self, centers: Matrix, moved: Rows, own: Sequence[float]) -> tuple[Matrix, Rows]:
        """Partitions whose own score is under the floor, in two; the worst first."""
        found = list(centers)
        moved = moved.copy()
        for k in sorted(range(len(centers)), key=lambda k: own[k]):
            rows = np.flatnonzero(moved == k)
            if reaches(own[k], self.min_score) or len(found) >= MOST_PARTITIONS or len(rows) < 4:
                continue
            two = self._kmeans(self.places[rows], 2)
            if len(two) < 2:
                continue
            side = squared_distances(self.places[rows], two).argmin(axis=1) == 1
            if not side.any() or side.all():
                continue
            moved[rows[side]] = len(found)
            found[k] = two[0]
            found.append(two[1])
        return np.array(found), moved

    def _kmeans(self, places: Matrix, n: int) -> Matrix:
        """One thread, whatever the machine has: how sums are shared among threads shows in their
        last digits, and these may decide."""
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        n = max(1, min(n, _n_distinct(places, n)))
        model = KMeans(n, n_init=3, random_state=self.random.randint(2**31 - 1))
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer partitions are no harm
            centers: Matrix = model.fit(places).cluster_centers_
        return centers


def _n_distinct(places: Matrix, enough: int) -> int:
    """How many different rows there are, or at least `enough`; a few tell mostly."""
    some = np.unique(places[:: 1 + len(places) // (10 * enough + 1000)], axis=0)
    return len(some if len(some) >= enough else np.unique(places, axis=0))
