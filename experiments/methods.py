"""What a task computes: a method of the public API fitted on labelled rows, told in numbers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data import Data
from experiments.datasets import lof_labels
from experiments.tasks import Task
from stair import CART, ID3, DistilledStair, FloorNotReached, LocalStair, Stair

Labels = NDArray[np.int64]
Result = dict[str, Any]


def compute(task: Task, data: Data, labels: Labels | None) -> dict[str, Any]:
    """The result of a task, with the seconds that it took. All but the seconds is repeatable.

    One thread: what is summed by several threads is summed in another order each time.
    """
    import sklearn.cluster
    import sklearn.manifold  # noqa: F401 - the libraries whose threads are counted below
    from threadpoolctl import threadpool_limits

    work = WORK[task.method]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", FloorNotReached)  # told as a column
        warnings.filterwarnings("ignore", message="Duplicate values")  # LOF, on the paper's labels
        warnings.filterwarnings("ignore", category=FutureWarning)  # peers
        start, start_cpu = time.perf_counter(), time.process_time()
        result = work(task, data, labels)
        seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    return {"result": result, "seconds": round(seconds, 3), "cpu seconds": round(cpu, 3)}


def _labels(task: Task, data: Data, _: Labels | None) -> Result:
    """The paper's labels: which rows LOF calls outliers."""
    k = min(task["neighbors"], len(data.y) - 1)
    return {"outliers": np.flatnonzero(lof_labels(data.X, data.n_outliers, k)).tolist()}


def _model(task: Task) -> Any:
    given = dict(task.settings)
    floor, seed = given["floor"], given["seed"]
    longest: Any = given.get("max_rule_length")  # ID3 and CART know none
    makers: dict[str, Callable[[], Any]] = {
        "id3": lambda: ID3(min_score=floor, random_state=seed),
        "cart": lambda: CART(min_score=floor, random_state=seed),
        "stair": lambda: Stair(floor, longest),
        "refined": lambda: Stair(floor, longest, refine=True, random_state=seed),
        "distilled": lambda: DistilledStair(
            floor, longest, effort=given["effort"], random_state=seed
        ),
        "l-stair": lambda: _local(given, "assigned"),
        "l-stair-routed": lambda: _local(given, "routed"),
    }
    return makers[task.method]()


def _local(given: Mapping[str, Any], floor_on: str) -> LocalStair:
    usual = {"locality": given["locality"]} if "locality" in given else {}
    return LocalStair(
        given["floor"], given["max_rule_length"], n_partitions=given["start"], floor_on=floor_on,
        max_rounds=given["max_rounds"], random_state=given["seed"], **usual,
    )  # fmt: skip


def _fit(task: Task, data: Data, labels: Labels | None) -> Result:
    """Length, rules, longest rule and the true score, measured by scikit-learn on `predict`."""
    y = data.y if labels is None else labels
    model = _model(task).fit(data.X, y)
    rules = model.rules_
    result: Result = {
        "length": rules.total_length,
        "rules": len(rules),
        "longest": rules.longest,
        "score": _score(data, y, model.predict(data.X)),
        "reached": bool(model.floor_reached_),
    }
    if isinstance(model, LocalStair):
        last = next(r for r in model.rounds_ if r.total_length == rules.total_length)
        result |= {
            "partitions": len(rules.partitions),
            "assigned": model.assigned_score_,
            "with nearest center": last.local,
        }
    if task.method == "stair":
        result["trace"] = [
            [s.n_rules, s.stabilizer, s.objective, s.total_length, s.score] for s in model.trace_
        ]
    return result


def _score(data: Data, y: Labels, predicted: Labels) -> float:
    from sklearn.metrics import accuracy_score, f1_score

    if data.is_multiclass:
        return float(accuracy_score(y, predicted))
    return float(f1_score(y, predicted, zero_division=0.0))


# --- Q2: score against length -------------------------------------------------------------------


def _curve_id3(task: Task, data: Data, labels: Labels | None) -> Result:
    """Trees one level deeper each, until their length is past the longest budget."""
    points: list[tuple[int, float]] = []
    depth = 1
    while not points or points[-1][0] < task["longest"]:
        model = ID3(1.0, start_depth=depth, max_depth=depth, random_state=task["seed"])
        model.fit(data.X, labels)
        if points and model.rules_.total_length == points[-1][0]:
            break  # the leaves are pure
        points.append((model.rules_.total_length, model.score_))
        depth += 1
    return {"points": points}


def _curve_cart(task: Task, data: Data, labels: Labels | None) -> Result:
    """The pruning path, each tree the most pruned one that scores above the one before."""
    points: list[tuple[int, float]] = []
    above = 0.0
    while not points or points[-1][0] < task["longest"]:
        model = CART(above, random_state=task["seed"]).fit(data.X, labels)
        points.append((model.rules_.total_length, model.score_))
        if not model.floor_reached_ or model.score_ >= 1.0:
            break
        above = model.score_
    return {"points": points}


def _curve_stair(task: Task, data: Data, labels: Labels | None) -> Result:
    """One run for each budget: no floor, the total length is the limit."""
    points = []
    for budget in task["budgets"]:
        model = Stair(1.0, task["max_rule_length"], max_total_length=budget).fit(data.X, labels)
        points.append((model.rules_.total_length, model.score_))
    return {"points": points}


def _curve_distilled(task: Task, data: Data, labels: Labels | None) -> Result:
    """One run for each floor."""
    points = []
    for floor in task["floors"]:
        model = DistilledStair(
            floor, task["max_rule_length"], effort=task["effort"], random_state=task["seed"]
        ).fit(data.X, labels)
        points.append((model.rules_.total_length, model.score_))
    return {"points": points}


# --- Q5: the partitions on a map ----------------------------------------------------------------


def _map(task: Task, data: Data, labels: Labels | None) -> Result:
    """A sample of rows in two dimensions (t-SNE on the scaled attributes), and their partitions."""
    from sklearn.manifold import TSNE
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import RobustScaler

    y = data.y if labels is None else labels
    model = _local({**dict(task.settings)}, "assigned").fit(data.X, y)
    routed = model.rules_.route(data.X)
    rng = np.random.default_rng(task["seed"])
    rows = np.sort(rng.permutation(len(y))[: task["rows"]])
    scaled = RobustScaler().fit_transform(data.X)[rows]
    perplexity = min(task["perplexity"], (len(rows) - 1) / 3)
    flat = TSNE(perplexity=perplexity, init="pca", random_state=task["seed"]).fit_transform(scaled)
    here = routed[rows]
    nearest = NearestNeighbors(n_neighbors=2).fit(flat).kneighbors(return_distance=False)[:, 0]
    shares = np.bincount(here) / len(here)
    last = next(r for r in model.rounds_ if r.total_length == model.rules_.total_length)
    return {
        "x": np.round(flat[:, 0].astype(float), 3).tolist(),
        "y": np.round(flat[:, 1].astype(float), 3).tolist(),
        "row": rows.tolist(),
        "partition": (here + 1).tolist(),
        "label": y[rows].tolist(),
        "partitions": len(model.rules_.partitions),
        "with nearest center": last.local,
        "like neighbour": float((here == here[nearest]).mean()),
        "by chance": float((shares**2).sum()),
    }


# --- peers, where they are installed ------------------------------------------------------------


def _ripper(task: Task, data: Data, labels: Labels | None) -> Result:
    """RIPPER (wittgenstein): rules of the outliers with a default; it has no floor to ask for."""
    import wittgenstein

    names = [f"x{j}" for j in range(data.X.shape[1])]
    model = wittgenstein.RIPPER(random_state=task["seed"])
    model.fit(data.X, labels, feature_names=names, pos_class=1)
    predicted = np.array(model.predict(data.X, feature_names=names)).astype(np.int64)
    lengths = [len({cond.feature for cond in rule.conds}) for rule in model.ruleset_]
    return _peer(task, lengths, _score(data, labels, predicted))


def _figs(task: Task, data: Data, labels: Labels | None) -> Result:
    """FIGS (imodels): a sum of trees, the smallest tried that is above the floor, else the best."""
    from imodels import FIGSClassifier

    tried = []
    for n_rules in task["leaves"]:
        # Its trees draw from numpy's global generator, whatever random_state says.
        np.random.seed(task["seed"])  # noqa: NPY002
        model = FIGSClassifier(max_rules=n_rules, random_state=task["seed"]).fit(data.X, labels)
        score = _score(data, labels, np.asarray(model.predict(data.X)).astype(np.int64))
        lengths = [n for tree in model.trees_ for n in _leaf_lengths(tree, frozenset())]
        tried.append(_peer(task, lengths, score))
        if tried[-1]["reached"]:
            return tried[-1]
    return max(tried, key=lambda result: result["score"])


def _leaf_lengths(node: Any, used: frozenset[int]) -> list[int]:
    """The distinct attributes above each leaf."""
    if node.left is None and node.right is None:
        return [len(used)]
    return [
        n for child in (node.left, node.right) for n in _leaf_lengths(child, used | {node.feature})
    ]


def _peer(task: Task, lengths: list[int], score: float) -> Result:
    return {
        "length": sum(lengths),
        "rules": len(lengths),
        "longest": max(lengths, default=0),
        "score": score,
        "reached": score > task["floor"],
    }


WORK: dict[str, Callable[[Task, Data, Labels | None], Result]] = {
    "labels": _labels,
    "id3": _fit,
    "cart": _fit,
    "stair": _fit,
    "l-stair": _fit,
    "refined": _fit,
    "l-stair-routed": _fit,
    "distilled": _fit,
    "curve-id3": _curve_id3,
    "curve-cart": _curve_cart,
    "curve-stair": _curve_stair,
    "curve-distilled": _curve_distilled,
    "map": _map,
    "ripper": _ripper,
    "figs": _figs,
}
