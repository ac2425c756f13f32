"""Estimators on frames with categories, text and times, as people have them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from stair import CART, ID3, DistilledStair, LocalStair, Stair, StairError, summarize
from stair.demo import payments

ALL = [Stair(), DistilledStair(effort="fast"), LocalStair(), ID3(), CART()]
NAMES = [type(each).__name__ for each in ALL]


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, pd.Series]:
    frame = pd.DataFrame({name: values[:1200] for name, values in payments().items()})
    return frame.drop(columns="flagged"), frame["flagged"]


@pytest.mark.parametrize("model", ALL, ids=NAMES)
def test_a_frame_of_any_library_gives_the_same_rules_and_labels(
    model: Any, data: tuple[pd.DataFrame, pd.Series]
) -> None:
    """Categories, times and text, with gaps, and an identifier, which is left out and named."""
    X, y = data
    fitted = clone(model).fit(X, y)
    assert list(fitted.feature_names_in_) == list(X.columns)
    assert fitted.n_features_in_ == X.shape[1]
    assert fitted.left_out_ == {"id": "all values differ"}
    predicted = fitted.predict(X)
    assert fitted.score_ == pytest.approx(f1_score(y, predicted))
    used = {clause.feature for rule in fitted.rules_ for clause in rule.clauses}
    assert used & {"country", "merchant", "device", "note", "paid_at"}
    others = [pl.from_pandas(X), pa.Table.from_pandas(X)]
    for other in others:
        assert clone(model).fit(other, y.to_numpy()).rules_ == fitted.rules_
        np.testing.assert_array_equal(fitted.predict(other), predicted)
    np.testing.assert_array_equal(fitted.predict(X.to_numpy(dtype=object)), predicted)
    np.testing.assert_array_equal(fitted.predict(X[X.columns[::-1]]), predicted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), predicted)
    shares = fitted.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert str(fitted.explain(X.iloc[0]))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_are_sliced_by_cross_validation(
    kind: Any, data: tuple[pd.DataFrame, pd.Series]
) -> None:
    """Also behind other steps; values that a fold has not seen are no error."""
    X, y = kind(data[0]), data[1].to_numpy()
    scores = cross_val_score(Stair(), X, y, cv=3, scoring="f1", error_score="raise")
    assert scores.min() > 0.3
    steps = make_pipeline(FunctionTransformer(), Stair())
    again = cross_val_score(steps, X, y, cv=3, scoring="f1", error_score="raise")
    np.testing.assert_array_equal(scores, again)


def test_a_model_and_a_summary_find_the_same_rules(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    summary = summarize(X, labels=y.to_numpy(), method="stair", validate=0)
    model = Stair().fit(X, y)
    assert [rule.clauses for rule in model.rules_] == [rule.clauses for rule in summary.rules]


def test_numbers_in_a_frame_go_as_they_went() -> None:
    """Numbers, truths and objects that are numbers: scikit-learn makes an array of them, and a
    column of one value is not left out."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=200), "b": random.normal(size=200) > 0, "c": 1})
    X["d"] = pd.Series([0.5, 2] * 100, dtype=object)
    y = (X["a"] > 1).astype(int)
    model = Stair().fit(X, y)
    assert model.left_out_ == {}
    assert model.rules_ == Stair().fit(X.astype(float), y).rules_
    plain = Stair().fit(X.to_numpy(dtype=float), y)
    assert not hasattr(plain, "feature_names_in_")
    again = Stair().fit(pd.DataFrame({"a": X["a"], "t": ["x", "y"] * 100}), y)
    assert again.fit(X.to_numpy(dtype=float), y).rules_ == plain.rules_
    assert not hasattr(again, "feature_names_in_")


def test_weights_of_mixed_rows(data: tuple[pd.DataFrame, pd.Series]) -> None:
    """A row of weight 0 is not there."""
    X, y = data
    kept = np.arange(len(y)) % 3 > 0
    weighted = Stair().fit(X, y, sample_weight=kept.astype(float))
    assert [r.clauses for r in weighted.rules_] == [
        r.clauses for r in Stair().fit(X[kept], y[kept]).rules_
    ]


def test_what_is_wrong_with_a_frame_is_said(data: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = data
    model = Stair().fit(X, y)
    with pytest.raises(StairError, match='the rules need a column "amount"'):
        model.predict(X.drop(columns="amount"))
    with pytest.raises(StairError, match="was fitted on 8 columns"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Stair().fit(X, y[:-1])
    doubled = X.copy()
    doubled.columns = ["id", "a", "a", "b", "c", "d", "e", "f"]
    with pytest.raises(StairError, match="two columns are called 'a'"):
        Stair().fit(doubled, y)


def test_trees_cut_categories_value_by_value() -> None:
    """CART and ID3 divide nothing but numbers, so each frequent value is a question of its own;
    missing values are on the side of the others, and the rules say so."""
    random = np.random.default_rng(0)
    country = random.choice(np.array(["DE", "FR", None], dtype=object), 300)
    X = pd.DataFrame({"country": country, "x": random.normal(size=300)})
    y = (country == "DE").astype(int)
    for model in (ID3(), CART()):
        rules = model.fit(X, y).rules_
        assert [str(rule) for rule in rules] == ["country = DE", "country ≠ DE or missing"]
        np.testing.assert_array_equal(model.predict(X), y)
