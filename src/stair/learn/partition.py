"""L-STAIR: partitions of the data and rules for each, learned together (Algorithm 2 of the paper).

    minimise  Σ_C Σ_{x∈C} [ (tree_C(x) ≠ y) + λ·‖x − center(C)‖² / usual ]

where `usual` is the median squared distance to the nearest of the first centers, so that one λ
means the same on all data: a row may be as far beyond the nearest center as rows usually are from
theirs for 1/λ of an error.

k-means starts; a tree is grown in each partition; each row moves to the partition with the least
loss; empty and redundant partitions go, and those whose own score is under the floor are split in
two. The trees of a round share one heap and one floor over all rows (`grow_forest`), and are pruned
back to it (`refine`).

A round works on what has changed since the last one. Rows that are equal in all cells and in class
always go together, so they are one row that stands for so many. A tree whose rows stayed, the mean
of rows that stayed and the distances to a center that stayed are remembered; and a row that is
judged rightly by its nearest center, where it is, cannot gain by moving, so only the others ask
what other trees would say.

Moving a row uses its label, so two scores are kept apart everywhere: *assigned* judges a row by the
partition that it was moved to (the paper's), *routed* by its nearest center, which is all that a
new row has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.engines.memory import MemoryEngine
from stair.learn.alike import Alike, Rows
from stair.learn.grow import Node, Step, grow_forest, plant
from stair.learn.prune import refine
from stair.rules.match import first_match
from stair.rules.objective import f1, reaches
from stair.rules.routing import TINY, Matrix, squared_distances
from stair.rules.rule_set import Leaf

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

FloorOn: TypeAlias = Literal["routed", "assigned"]
Flags: TypeAlias = NDArray[np.bool_]
Column: TypeAlias = NDArray[np.float64]
T = TypeVar("T")

# In the first rounds the trees need not reach the floor yet: they are this much lower.
GAP: Final = 0.2
# How far trees are grown past the floor before they are pruned back to it.
PAST: Final = 0.75
MOST_PARTITIONS: Final = 16
# Rounds without a shorter result before the loop ends.
PATIENCE: Final = 3
# Rows of a partition that are looked at first: mostly one of them says that it is not redundant.
A_FEW: Final = 256
# Centers of k-means rest when they move by less than this part of the variance.
NEAR: Final = 1e-4


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


class _Remembered(Generic[T]):
    """What was made for keys of the last time is not made again; all else is forgotten."""

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}

    def of(self, keys: Iterable[Array], make: Callable[[Array], T]) -> list[T]:
        found = []
        known = {}
        for each in keys:
            key = each.tobytes()
            value = self._known.get(key)
            found.append(make(each) if value is None else value)
            known[key] = found[-1]
        self._known = known
        return found


class _Trees:
    """Trees of partitions; the tree of the same rows is never grown twice."""

    def __init__(self, data: Alike, n_classes: int, positive: int | None) -> None:
        self._data, self._n_classes, self._positive = data, n_classes, positive
        self._known: _Remembered[tuple[MemoryEngine, Node]] = _Remembered()

    def of(self, parts: Iterable[Rows]) -> list[tuple[MemoryEngine, Node]]:
        """The trees of these sets of rows; those of other sets are forgotten."""
        return self._known.of(parts, self._tree)

    def _tree(self, rows: Rows) -> tuple[MemoryEngine, Node]:
        engine = MemoryEngine(
            self._data.table.columns,
            np.asfortranarray(self._data.table.codes[rows]),
            self._data.codes[rows],
            self._n_classes,
            times=self._data.times_of(rows),
            are_rows=self._data.is_written,
        )
        return engine, plant(engine, self._positive, says_inlier=False)


def learn_local(
    data: Alike,
    places: Matrix,
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
    say: Callable[[str], object] = lambda _: None,
) -> Local:
    """The shortest result of all rounds above the floor, else the one with the best score."""
    loop = _Loop(
        data, places, n_classes, positive, min_score, max_rule_length, locality, floor_on,
        np.random.RandomState(seed), say,
    )  # fmt: skip
    return loop.run(n_partitions, max_rounds)


class _Now(NamedTuple):
    """Where a round stands: the partitions and the rows, before trees are grown."""

    centers: Matrix
    assigned: Rows
    distances: list[Column]  # to each center, squared
    nearest: Rows
    least: Column  # the distance to the nearest


class _Moved(NamedTuple):
    """Where rows go, what they cost there, and whether they are judged wrongly there."""

    to: Rows
    loss: Column
    wrong: Flags


class _Loop:
    def __init__(
        self,
        data: Alike,
        places: Matrix,
        n_classes: int,
        positive: int | None,
        min_score: float,
        max_rule_length: int,
        locality: float,
        floor_on: FloorOn,
        random: np.random.RandomState,
        say: Callable[[str], object],
    ) -> None:
        self.data, self.places, self.positive = data, places, positive
        self.min_score, self.max_rule_length = min_score, max_rule_length
        self.locality, self.floor_on = locality, floor_on
        self.random, self.say = random, say
        self.weight = 0.0  # of a squared distance: λ in units of what is usual in this data
        self.totals = data.count(data.codes, n_classes)
        self.trees = _Trees(data, n_classes, positive)
        self._by_column = np.asfortranarray(places)
        self._distances: _Remembered[Column] = _Remembered()
        self._means: _Remembered[Column] = _Remembered()

    def run(self, n_partitions: int, max_rounds: int) -> Local:
        """Round after round; the best of them is kept."""
        centers = self._kmeans(*self.data.written(self.places), n_partitions)
        distances, nearest, least = self._nearest(centers)
        usual = self.data.median(least)
        # Where rounding is all that is usual, far rows must not become infinitely far by it.
        farthest = max(float(distance.max()) for distance in distances)
        own = max(usual, TINY * max(1.0, farthest))
        self.weight = self.locality / own if usual > 0 else self.locality
        rounds: list[Round] = []
        best: Local | None = None
        waited = 0
        assigned = nearest
        for number in range(1, max_rounds + 1):
            self.say(f"learning: round {number}, {len(centers)} partitions")
            now = self._settled(centers, assigned)
            found, wrong, moved = self._judge(now, rounds)
            if best is None or self._is_better(found, best):
                best, waited = found, 0
            else:
                waited += 1
            if waited >= PATIENCE or number == max_rounds:
                break
            centers, assigned = self._move(now, wrong, moved)
            if len(centers) == len(now.centers) and np.array_equal(assigned, now.assigned):
                break
        assert best is not None
        return best

    def _nearest(self, centers: Matrix) -> tuple[list[Column], Rows, Column]:
        """The distances to all centers, the nearest center (the first of equals), and how near."""
        distances = self._distances.of(
            centers, lambda center: squared_distances(self._by_column, center[None])[:, 0]
        )
        nearest = np.zeros(len(self.places), dtype=np.intp)
        least = distances[0].copy()
        for k, distance in enumerate(distances[1:], 1):
            nearest[distance < least] = k
            np.minimum(least, distance, out=least)
        return distances, nearest, least

    def _settled(self, centers: Matrix, assigned: Rows) -> _Now:
        """Without the partitions that no row would be learned from."""
        distances, nearest, least = self._nearest(centers)
        basis = nearest if self.floor_on == "routed" else assigned
        kept = np.flatnonzero(np.bincount(basis, minlength=len(centers)))
        if len(kept) < len(centers):
            place = np.full(len(centers), -1)
            place[kept] = np.arange(len(kept))
            centers = centers[kept]
            distances, nearest, least = self._nearest(centers)
            assigned = np.where(place[assigned] >= 0, place[assigned], nearest)
        return _Now(centers, assigned, distances, nearest, least)

    def _judge(self, now: _Now, rounds: list[Round]) -> tuple[Local, Flags, _Moved]:
        """A tree for each partition, which rows that of their nearest center judges wrongly, and
        where rows move."""
        n = len(now.centers)
        routed_to = _members(now.nearest, n)
        growth = grow_forest(
            self.trees.of(routed_to if self.floor_on == "routed" else _members(now.assigned, n)),
            min_score=self.min_score + PAST * (1.0 - self.min_score),
            max_rule_length=self.max_rule_length,
            positive=self.positive,
            on_step=lambda step: self.say(f"learning: {step.n_rules} rules in all partitions"),
        )
        floor = self._floor(n)
        leaves = [
            [
                Leaf(node.clauses(), label, tuple(map(float, node.group.counts)))
                for node, label in part
            ]
            for part in refine(growth.roots, self.totals, self.positive, floor)
        ]
        wrong = np.empty(len(self.data.codes), dtype=np.bool_)
        for part, rows in zip(leaves, routed_to, strict=True):
            wrong[rows] = self._is_wrong(part, rows)
        moved, objective_before = self._moved(now, leaves, wrong)
        objective = self.data.sum(moved.loss)
        kept = self._without_redundant(now, leaves, moved)
        local = Local(
            now.centers, leaves, self._score(moved.wrong), self._score(wrong), rounds, growth.steps
        )
        error = float(self.data.size(np.flatnonzero(moved.wrong)))
        rounds.append(
            Round(
                error,
                objective - error,
                objective_before,
                objective,
                objective if kept is moved else self.data.sum(kept.loss),
                n,
                floor,
                self.data.size(np.flatnonzero(moved.to == now.nearest)) / sum(self.totals),
                local.assigned,
                local.routed,
                local.total_length,
            )
        )
        return local, wrong, kept

    def _floor(self, n_partitions: int) -> float:
        """The floor of a round's trees.

        Where the floor is on the assigned score, the trees of the first rounds may be lower: rows
        that move to a tree that is right about them make up for it.
        """
        if self.floor_on == "routed":
            return self.min_score
        return min(self.min_score, max(0.0, self.min_score - GAP + GAP * (n_partitions - 2) / 9))

    def _is_wrong(self, part: list[Leaf], rows: Rows) -> Flags:
        """Whether a tree judges these rows wrongly."""
        labels = np.array([*(leaf.label for leaf in part), self._default()])
        numbers = first_match(part, partial(self._column, rows), len(rows))
        found: Flags = labels[numbers] != self.data.codes[rows]
        return found

    def _column(self, rows: Rows, name: str) -> Array:
        return self.data.table.values[name][rows]

    def _default(self) -> int:
        if self.positive is not None:
            return 1 - self.positive
        return self.totals.index(max(self.totals))

    def _loss(self, now: _Now, leaves: list[list[Leaf]], rows: Rows) -> tuple[Matrix, Flags]:
        """What these rows would cost in each partition, and whether they are judged wrongly there.

        A row can only move to a partition that is farther by less than one error is worth; of the
        others it does not matter what they say, and they count as wrong.
        """
        distances = np.column_stack([distance[rows] for distance in now.distances])
        wrong = np.ones(distances.shape, dtype=np.bool_)
        asked = self.weight * (distances - now.least[rows, None]) <= 1.0
        asked[np.arange(len(rows)), now.assigned[rows]] = True
        for k, part in enumerate(leaves):
            here = np.flatnonzero(asked[:, k])
            wrong[here, k] = self._is_wrong(part, rows[here])
        return wrong + self.weight * distances, wrong

    def _moved(self, now: _Now, leaves: list[list[Leaf]], wrong: Flags) -> tuple[_Moved, float]:
        """Each row in the partition with the least loss; it stays where that is no better.

        Nothing is less than the loss of a row that is with its nearest center and rightly judged.
        With it the objective before rows moved.
        """
        rows = np.flatnonzero(wrong | (now.assigned != now.nearest))
        loss, is_wrong = self._loss(now, leaves, rows)
        here, stays = np.arange(len(rows)), now.assigned[rows]
        least = loss.argmin(axis=1)
        goes = np.where(loss[here, stays] <= loss[here, least], stays, least)
        to, costs, wrong = now.assigned.copy(), self.weight * now.least, wrong.copy()
        costs[rows] = loss[here, stays]
        before = self.data.sum(costs)
        to[rows], costs[rows], wrong[rows] = goes, loss[here, goes], is_wrong[here, goes]
        return _Moved(to, costs, wrong), before

    def _without_redundant(self, now: _Now, leaves: list[list[Leaf]], moved: _Moved) -> _Moved:
        """Partitions given up whose rows can go elsewhere without raising the objective.

        Rows are where their loss is least, so nowhere else it is less: each of them must find an
        equal one.
        """
        n = len(now.centers)
        there = np.ones(n, dtype=np.bool_)
        n_occupied = np.count_nonzero(np.bincount(moved.to, minlength=n))
        for k in np.argsort(self.data.count(moved.to, n), kind="stable").tolist():
            if n_occupied < 2:
                break
            rows = np.flatnonzero(moved.to == k)
            there[k] = False
            if not len(rows) or self._some_cannot_go(now, np.flatnonzero(there), moved.loss, rows):
                there[k] = True
                continue
            loss, wrong = self._loss(now, leaves, rows)
            loss[:, ~there] = np.inf
            here, elsewhere = np.arange(len(rows)), loss.argmin(axis=1)
            if (loss[here, elsewhere] > moved.loss[rows]).any():
                there[k] = True
                continue
            moved = _Moved(moved.to.copy(), moved.loss.copy(), moved.wrong.copy())
            moved.to[rows], moved.loss[rows] = elsewhere, loss[here, elsewhere]
            moved.wrong[rows] = wrong[here, elsewhere]
            n_occupied = np.count_nonzero(np.bincount(moved.to, minlength=n))
        return moved

    def _some_cannot_go(self, now: _Now, others: Rows, loss: Column, rows: Rows) -> bool:
        """Whether the distances alone keep one of these rows from other partitions; a few of the
        rows tell mostly."""
        start, stop = 0, A_FEW
        while start < len(rows):
            some = rows[start:stop]
            least = np.min([self.weight * now.distances[k][some] for k in others], axis=0)
            if (least > loss[some]).any():
                return True
            start, stop = stop, 2 * stop
        return False

    def _move(self, now: _Now, wrong: Flags, moved: _Moved) -> tuple[Matrix, Rows]:
        """New centers where rows have moved to; partitions under the floor in two."""
        n = len(now.centers)
        if self.floor_on == "routed":
            own = self._own_scores(now.nearest, wrong, n)
        else:
            own = self._own_scores(moved.to, moved.wrong, n)
        parts = _members(moved.to, n)
        kept = [k for k in range(n) if len(parts[k])]
        centers = self._means.of(
            (parts[k] for k in kept), lambda rows: self.data.mean(self.places, rows)
        )
        return self._split(centers, [parts[k] for k in kept], [own[k] for k in kept])

    def _is_better(self, found: Local, best: Local) -> bool:
        """Above the floor before below it; then the shorter, or the better score."""
        here, there = (x.routed if self.floor_on == "routed" else x.assigned for x in (found, best))
        reached = reaches(here, self.min_score)
        if reached != reaches(there, self.min_score):
            return reached
        if reached:
            return found.total_length < best.total_length
        return here > there

    def _score(self, wrong: Flags) -> float:
        """F1 or accuracy where these rows are judged wrongly."""
        return self._own_scores(np.zeros(len(wrong), dtype=np.intp), wrong, 1)[0]

    def _own_scores(self, numbers: Rows, wrong: Flags, n: int) -> list[float]:
        """The score of each partition; one without outliers has nothing to explain."""
        mistakes = np.flatnonzero(wrong)
        if self.positive is None:
            sizes = self.data.count(numbers, n)
            bad = self.data.count(numbers, n, mistakes)
            return [1.0 - b / size if size else 1.0 for b, size in zip(bad, sizes, strict=True)]
        is_outlier = self.data.codes == self.positive
        outliers = self.data.count(numbers, n, np.flatnonzero(is_outlier))
        missed = self.data.count(numbers, n, mistakes[is_outlier[mistakes]])
        false = self.data.count(numbers, n, mistakes[~is_outlier[mistakes]])
        return [
            f1(there - gone, there - gone + more, there) if there else 1.0
            for there, gone, more in zip(outliers, missed, false, strict=True)
        ]

    def _split(
        self, centers: list[Column], parts: list[Rows], own: Sequence[float]
    ) -> tuple[Matrix, Rows]:
        """Partitions whose own score is under the floor, in two; the worst first."""
        found = list(centers)
        moved = np.empty(len(self.data.codes), dtype=np.intp)
        for k, rows in enumerate(parts):
            moved[rows] = k
        for k in sorted(range(len(centers)), key=lambda k: own[k]):
            rows = parts[k]
            if reaches(own[k], self.min_score) or len(found) >= MOST_PARTITIONS:
                continue
            if self.data.size(rows) < 4:
                continue
            two = self._kmeans(*self.data.written(self.places, rows), 2)
            if len(two) < 2:
                continue
            side = squared_distances(self.places[rows], two).argmin(axis=1) == 1
            if not side.any() or side.all():
                continue
            moved[rows[side]] = len(found)
            found[k] = two[0]
            found.append(two[1])
        return np.array(found), moved

    def _kmeans(self, places: Matrix, times: NDArray[np.int64] | None, n: int) -> Matrix:
        """One thread, whatever the machine has: how sums are shared among threads shows in their
        last digits, and these may decide. First centers are drawn by how many rows each row is."""
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        threadpool_limits = _libraries_with_threads().limit

        n = max(1, min(n, _n_distinct(places, n)))
        near = NEAR if times is None else NEAR * _widened(places, times)
        model = KMeans(n, n_init=3, tol=near, random_state=self.random.randint(2**31 - 1))
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer partitions are no harm
            centers: Matrix = model.fit(places, sample_weight=times).cluster_centers_
        return centers


def _widened(places: Matrix, times: NDArray[np.int64]) -> float:
    """How many times the variance grows where each row is there so often. In scikit-learn centers
    have come to rest by the variance of each row once."""
    once = float(np.var(places, axis=0).mean())
    if once == 0:
        return 1.0
    middle = np.average(places, axis=0, weights=times)
    return float(np.average((places - middle) ** 2, axis=0, weights=times).mean()) / once


def _n_distinct(places: Matrix, enough: int) -> int:
    """How many different rows there are, or at least `enough`; a few tell mostly."""
    some = np.unique(places[:: 1 + len(places) // (10 * enough + 1000)], axis=0)
    return len(some if len(some) >= enough else np.unique(places, axis=0))


@cache
def _libraries_with_threads() -> ThreadpoolController:
    """Found once: looking for them reads a list of all that the process has loaded, which took a
    third of the time that partitions of few rows take."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _members(numbers: Rows, n: int) -> list[Rows]:
    """The rows of each number from 0 to n − 1, in order."""
    order = np.argsort(numbers.astype(np.min_scalar_type(n)), kind="stable")  # small: radix sort
    return np.split(order, np.cumsum(np.bincount(numbers, minlength=n))[:-1])
