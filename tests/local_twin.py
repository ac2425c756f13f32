"""L-STAIR's loop, slow and obvious: each row for itself, everything anew in each round.

All distances, all verdicts and all losses are matrices (rows × partitions); nothing is remembered.
`stair.learn.partition` must give the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stair.engines.memory import MemoryEngine
from stair.learn.alike import Alike
from stair.learn.grow import grow_forest, plant
from stair.learn.partition import GAP, MOST_PARTITIONS, PAST, PATIENCE, Local, Round
from stair.learn.prune import refine
from stair.rules.objective import f1, reaches
from stair.rules.rule_set import Leaf


def learn_local(data: Alike, places: Any, n_classes: int, **settings: Any) -> Local:
    return _Loop(data, places, n_classes, **settings).run()


class _Loop:
    def __init__(self, data: Alike, places: Any, n_classes: int, **settings: Any) -> None:
        assert data.times is None, "the twin knows single rows only"
        self.table, self.codes = data.table, data.codes
        self.places, self.n_classes = places, n_classes
        self.positive, self.floor = settings["positive"], settings["min_score"]
        self.by_label = settings["floor_on"] == "assigned"
        self.settings = settings
        self.random = np.random.RandomState(settings["seed"])

    def run(self) -> Local:
        centers = self.kmeans(self.places, self.settings["n_partitions"])
        distances = self.distances(centers)
        assigned = distances.argmin(axis=1)
        usual = np.median(distances.min(axis=1))
        self.weight = self.settings["locality"] / (usual if usual > 0 else 1.0)
        rounds: list[Round] = []
        best: Local | None = None
        waited = 0
        for _ in range(self.settings["max_rounds"]):
            nearest = self.distances(centers).argmin(axis=1)
            used = np.unique(assigned if self.by_label else nearest)
            if len(used) < len(centers):
                centers = centers[used]
                nearest = self.distances(centers).argmin(axis=1)
                gone = ~np.isin(assigned, used)
                assigned = np.where(gone, nearest, np.searchsorted(used, assigned))
            found, wrong, moved = self.judged(centers, assigned, rounds)
            if best is None or self.is_better(found, best):
                best, waited = found, 0
            else:
                waited += 1
            before = len(centers), assigned
            judged = moved if self.by_label else nearest
            own = [self.score(judged == k, wrong[:, k], 1.0) for k in range(len(centers))]
            centers, assigned = self.split(*self.centers(moved, own))
            if before[0] == len(centers) and (before[1] == assigned).all():
                break
            if waited >= PATIENCE:
                break
        assert best is not None
        return best

    def distances(self, centers: Any) -> Any:
        return np.column_stack([((self.places - c) ** 2).sum(axis=1) for c in centers])

    def judged(self, centers: Any, assigned: Any, rounds: list[Round]) -> Any:
        distances = self.distances(centers)
        n, nearest = len(centers), distances.argmin(axis=1)
        basis = assigned if self.by_label else nearest
        growth = grow_forest(
            [self.tree(basis == k) for k in range(n)],
            min_score=self.floor + PAST * (1.0 - self.floor),
            max_rule_length=self.settings["max_rule_length"],
            positive=self.positive,
        )
        low = max(0.0, self.floor - GAP + GAP * (n - 2) / 9) if self.by_label else self.floor
        floor = min(self.floor, low)
        totals = np.bincount(self.codes, minlength=self.n_classes).tolist()
        leaves = [
            [Leaf(n.clauses(), label, tuple(map(float, n.group.counts))) for n, label in part]
            for part in refine(growth.roots, totals, self.positive, floor)
        ]
        wrong = np.column_stack([self.predicted(part) != self.codes for part in leaves])
        too_far = self.weight * (distances - distances.min(axis=1, keepdims=True)) > 1.0
        too_far[np.arange(len(wrong)), assigned] = False
        wrong |= too_far
        loss = wrong + self.weight * distances
        here, moved = np.arange(len(loss)), loss.argmin(axis=1)
        moved = np.where(loss[here, assigned] <= loss[here, moved], assigned, moved)
        kept = self.without_redundant(loss, moved)
        error, objective = float(wrong[here, moved].sum()), float(loss[here, moved].sum())
        everywhere = np.ones(len(wrong), dtype=bool)
        local = Local(
            centers, leaves, self.score(everywhere, wrong[here, moved]),
            self.score(everywhere, wrong[here, nearest]), rounds, growth.steps,
        )  # fmt: skip
        rounds.append(
            Round(
                error, objective - error, float(loss[here, assigned].sum()), objective,
                float(loss[here, kept].sum()), n, floor, float((moved == nearest).mean()),
                local.assigned, local.routed, local.total_length,
            )
        )  # fmt: skip
        return local, wrong, kept

    def tree(self, rows: Any) -> Any:
        part = np.asfortranarray(self.table.codes[rows])
        engine = MemoryEngine(self.table.columns, part, self.codes[rows], self.n_classes)
        return engine, plant(engine, self.positive, says_inlier=False)

    def predicted(self, part: list[Leaf]) -> Any:
        """The label of the leaf that covers a row, else that of most rows."""
        default = int(np.bincount(self.codes).argmax())
        found = np.full(len(self.codes), default if self.positive is None else 1 - self.positive)
        for leaf in reversed(part):
            covered = np.ones(len(found), dtype=bool)
            for clause in leaf.clauses:
                covered &= clause.covers(self.table.values[clause.feature])
            found[covered] = leaf.label
        return found

    def without_redundant(self, loss: Any, moved: Any) -> Any:
        loss, moved = loss.copy(), moved.copy()
        for k in np.argsort(np.bincount(moved, minlength=loss.shape[1]), kind="stable"):
            rows = np.flatnonzero(moved == k)
            if not len(rows) or len(np.unique(moved)) < 2:
                continue
            without = loss.copy()
            without[:, k] = np.inf
            elsewhere = without[rows].argmin(axis=1)
            if (without[rows, elsewhere] - loss[rows, k]).sum() <= 0.0:
                loss, moved[rows] = without, elsewhere
        return moved

    def is_better(self, found: Local, best: Local) -> bool:
        here, there = (x.assigned if self.by_label else x.routed for x in (found, best))
        if reaches(here, self.floor) and reaches(there, self.floor):
            return found.total_length < best.total_length
        return reaches(here, self.floor) or (not reaches(there, self.floor) and here > there)

    def score(self, rows: Any, wrong: Any, nothing: float = 0.0) -> float:
        wrong = wrong[rows]
        if self.positive is None:
            return 1.0 - float(wrong.mean()) if len(wrong) else nothing
        is_outlier = self.codes[rows] == self.positive
        hits = int((is_outlier & ~wrong).sum())
        said = hits + int((~is_outlier & wrong).sum())
        return f1(hits, said, int(is_outlier.sum())) if is_outlier.any() else nothing

    def centers(self, moved: Any, own: list[float]) -> Any:
        kept = np.unique(moved)
        centers = np.array([self.places[moved == k].mean(axis=0) for k in kept])
        return centers, np.searchsorted(kept, moved), [own[k] for k in kept]

    def split(self, centers: Any, moved: Any, own: list[float]) -> Any:
        found, moved = list(centers), moved.copy()
        for k in sorted(range(len(centers)), key=lambda k: own[k]):
            rows = np.flatnonzero(moved == k)
            if reaches(own[k], self.floor) or len(found) >= MOST_PARTITIONS or len(rows) < 4:
                continue
            two = self.kmeans(self.places[rows], 2)
            if len(two) < 2:
                continue
            near = np.column_stack([((self.places[rows] - c) ** 2).sum(axis=1) for c in two])
            side = near.argmin(axis=1) == 1
            if side.any() and not side.all():
                moved[rows[side]] = len(found)
                found[k] = two[0]
                found.append(two[1])
        return np.array(found), moved

    def kmeans(self, places: Any, n: int) -> Any:
        import warnings

        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        n = min(n, len(np.unique(places, axis=0)))
        model = KMeans(n, n_init=3, random_state=self.random.randint(2**31 - 1))
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(places).cluster_centers_
