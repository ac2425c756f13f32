"""The paper's data: total lengths of exact STAIR on the labels of its own protocol."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from sklearn.metrics import accuracy_score, f1_score

from stair import Stair
from stair.datasets import load, lof_labels

DATA = Path(__file__).resolve().parents[2] / "shared" / "datasets"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the paper's data is not here")

# Exact STAIR, LOF with 80 neighbours, F1 > 0.8, rules of at most 10 attributes.
LENGTHS = {
    "PageBlock": 80, "Pendigits": 177, "Shuttle": 737, "Pima": 39, "Mammography": 61,
    "Satimage-2": 116, "Satellite": 452, "SpamBase": 1008, "Cover": 4434, "WineQuality": 2395,
}  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
def test_total_length_at_a_true_score_above_the_floor(name: str) -> None:
    """The length is exact, and scikit-learn agrees that the rules are above 0.8."""
    data = load(name, DATA)
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
