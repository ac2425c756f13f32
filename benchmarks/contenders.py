"""The three that are compared, all as scikit-learn estimators."""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from stair import Stair
from stair.errors import FloorNotReached

STAIR = "stair"
SKLEARN = "scikit-learn"
LIGHTGBM = "lightgbm"


def has_lightgbm() -> bool:
    """Whether LightGBM can be imported; it is optional."""
    try:
        import_module("lightgbm")
    except (ImportError, OSError):  # OSError: without the OpenMP library that it links to
        return False
    return True


def versions() -> dict[str, str | None]:
    """The version of everything that bears on the figures; None for LightGBM if it is not there."""
    found: dict[str, str | None] = {name: version(name) for name in (STAIR, SKLEARN, "numpy")}
    found[LIGHTGBM] = version(LIGHTGBM) if has_lightgbm() else None
    return found


def rival_options(leaves: int) -> dict[str, dict[str, Any]]:
    """How the others are set to make one tree with as many leaves as Stair has rules."""
    leaves = max(leaves, 2)  # neither of them makes a tree of one leaf
    options: dict[str, dict[str, Any]] = {
        SKLEARN: {"criterion": "entropy", "max_leaf_nodes": leaves, "random_state": 0}
    }
    if has_lightgbm():
        options[LIGHTGBM] = {
            "n_estimators": 1, "num_leaves": leaves, "min_child_samples": 1,
            "min_child_weight": 0, "verbose": -1,
        }  # fmt: skip
    return options


def build(name: str, options: dict[str, Any]) -> Any:
    """A new estimator, not yet fitted."""
    if name == STAIR:
        return Stair(**options)
    if name == SKLEARN:
        return DecisionTreeClassifier(**options)
    return import_module("lightgbm").LGBMClassifier(**options)


def fit(estimator: Any, X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    """Fit, and do not warn of a floor that the generated set is not meant to reach."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorNotReached)
        estimator.fit(X, y)


def fitted(name: str, options: dict[str, Any], X: NDArray[np.float64], y: NDArray[np.int64]) -> Any:
    """A fitted estimator."""
    estimator = build(name, options)
    fit(estimator, X, y)
    return estimator


def leaves(name: str, estimator: Any) -> list[int]:
    """The leaves of each tree that was grown: LightGBM grows one for each of several classes."""
    if name == STAIR:
        return [len(estimator.rules_)]
    if name == SKLEARN:
        return [int(estimator.get_n_leaves())]
    trees = estimator.booster_.dump_model()["tree_info"]
    return [int(tree["num_leaves"]) for tree in trees]
