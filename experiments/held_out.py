"""Whether rules hold on rows that they were not learned from: distilled against STAIR.

Labels of several detectors on the paper's data, several of them with few outliers; two times five
folds each. What was measured is shown, whatever came out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from sklearn.model_selection import RepeatedStratifiedKFold

from experiments.datasets import load, lof_labels
from stair import DistilledStair, Stair
from stair.verdict import detectors as detect

FOLDS, REPEATS = 5, 2


class LabelSet(NamedTuple):
    """Some rows of a data set, of which a detector calls so many outliers; 0 means all rows, and
    as many as the paper has."""

    data: str
    detector: str
    n_outliers: int = 0
    n_rows: int = 0


LABEL_SETS: Final = (
    *(
        LabelSet(name, "lof")
        for name in (
            "PageBlock", "Pima", "Mammography", "Satimage-2", "Pendigits", "Satellite", "SpamBase",
            "Shuttle", "Cover",
        )
    ),
    LabelSet("Pima", "iforest", 77),
    LabelSet("Satimage-2", "iforest", 71),
    LabelSet("PageBlock", "iforest", 100),
    LabelSet("Pendigits", "iforest", 50, 1456),
    LabelSet("Satellite", "iforest", 100, 1600),
    LabelSet("Satellite", "iforest", 534),
    LabelSet("Shuttle", "iforest", 1500),
    LabelSet("Mammography", "knn", 260),
    LabelSet("SpamBase", "knn", 100, 1600),
    LabelSet("Satimage-2", "knn", 50, 1456),
    LabelSet("Shuttle", "knn", 500),
    LabelSet("Pendigits", "ecod", 156),
    LabelSet("SpamBase", "ecod", 400),
    LabelSet("Mammography", "ecod", 260),
)  # fmt: skip


def labelled(chosen: LabelSet, folder: Path) -> tuple[NDArray[np.float64], NDArray[np.int_]]:
    data = load(chosen.data, folder)
    if chosen.detector == "lof":
        return data.X, lof_labels(data.X, data.n_outliers, 80)
    X = data.X
    if chosen.n_rows:
        X = X[np.random.default_rng(0).permutation(len(X))[: chosen.n_rows]]
    scores = detect.scores(chosen.detector, X, random_state=0)
    y = np.zeros(len(X), dtype=np.int_)
    y[np.argsort(-scores, kind="stable")[: chosen.n_outliers]] = 1
    return X, y


def held_out(chosen: LabelSet, folder: Path) -> dict[str, Any]:
    """F1 on the folds that were kept aside, the mean of all of them."""
    X, y = labelled(chosen, folder)
    models = {
        "STAIR": Stair(),
        "distilled": DistilledStair(),
        "fast": DistilledStair(effort="fast"),
    }
    scores: dict[str, list[float]] = {name: [] for name in models}
    lengths: dict[str, list[int]] = {name: [] for name in models}
    splitter = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=REPEATS, random_state=0)
    for train, test in splitter.split(X, y):
        for name, model in models.items():
            model.fit(X[train], y[train])
            scores[name].append(f1_score(y[test], model.predict(X[test])))
            lengths[name].append(model.rules_.total_length)
    mean = {name: float(np.mean(found)) for name, found in scores.items()}
    apart = np.subtract(scores["distilled"], scores["STAIR"])
    return {
        "data": chosen.data,
        "detector": chosen.detector,
        "outliers": int(y.sum()),
        "rows": len(y),
        "STAIR": round(mean["STAIR"], 3),
        "distilled": round(mean["distilled"], 3),
        "difference": round(mean["distilled"] - mean["STAIR"], 3),
        "standard error": round(float(apart.std(ddof=1) / np.sqrt(len(apart))), 3),
        "fast": round(mean["fast"], 3),
        "fast difference": round(mean["fast"] - mean["STAIR"], 3),
        "STAIR length": round(float(np.mean(lengths["STAIR"])), 1),
        "distilled length": round(float(np.mean(lengths["distilled"])), 1),
        "fast length": round(float(np.mean(lengths["fast"])), 1),
    }
