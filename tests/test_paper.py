"""The paper's data: total lengths of exact STAIR on the labels of its own protocol."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from experiments.datasets import load, lof_labels
from sklearn.metrics import accuracy_score, f1_score

from places import SHARED
from stair import DistilledStair, Stair

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the paper's data is not here")

# Exact STAIR, LOF with 80 neighbours, F1 > 0.8, rules of at most 10 attributes.
LENGTHS = {
    "PageBlock": 80, "Pendigits": 177, "Shuttle": 737, "Pima": 39, "Mammography": 61,
    "Satimage-2": 116, "Satellite": 452, "SpamBase": 1008, "Cover": 4434, "WineQuality": 2395,
}  # fmt: skip

# Distilled rules with little effort may not get longer than this, nor refined ones.
DISTILLED = {
    "PageBlock": 7, "Pima": 6, "Mammography": 10, "Satimage-2": 17, "Pendigits": 25,
    "Satellite": 40, "SpamBase": 40, "Shuttle": 80,
}  # fmt: skip
REFINED = {"PageBlock": 22, "Pima": 23, "Mammography": 38, "Satimage-2": 93, "Pendigits": 147}


@pytest.mark.parametrize("name", LENGTHS)
def test_total_length_at_a_true_score_above_the_floor(name: str) -> None:
    """The length is exact, and scikit-learn agrees that the rules are above 0.8."""
    data = load(name, SHARED)
    if data.is_multiclass:
        y = data.y
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # LOF speaks of duplicates
            y = lof_labels(data.X, data.n_outliers, n_neighbors=80)
    model = Stair().fit(data.X, y)
    score = accuracy_score if data.is_multiclass else f1_score
    assert score(y, model.predict(data.X)) > 0.8
    assert model.rules_.total_length == LENGTHS[name]
    assert model.rules_.longest <= 10


@pytest.mark.parametrize("name", DISTILLED)
def test_distilled_rules_stay_short(name: str) -> None:
    """And every rule covers five outliers, so none is drawn around one or two rows."""
    X, y = _labelled(name)
    model = DistilledStair(effort="fast").fit(X, y)
    assert f1_score(y, model.predict(X)) == model.score_ > 0.8
    assert model.bound_ <= model.rules_.total_length <= DISTILLED[name]
    assert all(rule.hits >= 5 for rule in model.rules_)
    assert model.rules_.longest <= 10


@pytest.mark.parametrize("name", REFINED)
def test_refined_rules_stay_short(name: str) -> None:
    """Still a partition of all rows."""
    X, y = _labelled(name)
    model = Stair(refine=True).fit(X, y)
    assert f1_score(y, model.predict(X)) == model.score_ > 0.8
    assert model.rules_.total_length <= REFINED[name]
    assert (model.rules_.covers(X).sum(axis=1) == 1).all()


def _labelled(name: str) -> tuple[Any, Any]:
    data = load(name, SHARED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return data.X, lof_labels(data.X, data.n_outliers, n_neighbors=80)
