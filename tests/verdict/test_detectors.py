"""Detectors by name: the far rows on top, the same every time."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import stair
from stair.errors import StairError
from stair.verdict import detectors as detect

N_PLANTED = 10
HAS_PYOD = importlib.util.find_spec("pyod") is not None
needs_pyod = pytest.mark.skipif(not HAS_PYOD, reason="PyOD is not installed")


def cloud_with_far_points(
    seed: int = 3, n: int = 500, is_one_sided: bool = False
) -> NDArray[np.float64]:
    """A Gaussian cloud in other units per column; the last ten rows are far in all directions.

    One-sided rows are far up in all columns or far down in all of them.
    """
    rng = np.random.default_rng(seed)
    sides = rng.choice([-1.0, 1.0], size=(N_PLANTED, 1 if is_one_sided else 4))
    far = sides * rng.uniform(8, 20, size=(N_PLANTED, 4))
    return np.vstack([rng.normal(size=(n, 4)), far]) * [1.0, 1000.0, 0.01, 5.0] + [0, 50, 0, -3]


@pytest.fixture(scope="module")
def cloud() -> NDArray[np.float64]:
    return cloud_with_far_points()


def test_names() -> None:
    assert detect.names() == (
        "lof", "knn", "iforest", "mahalanobis", "ecod", "hbos", "ocsvm", "pca",
    )  # fmt: skip


@pytest.mark.parametrize("name", detect.names())
@pytest.mark.parametrize("seed", [3, 4])
def test_far_rows_have_the_highest_scores(name: str, seed: int) -> None:
    # By its sums over lower and over upper tails ECOD sees what is extreme in one sense.
    X = cloud_with_far_points(seed, is_one_sided=name == "ecod")
    before = X.copy()
    scores = detect.scores(name, X, random_state=0)
    assert scores.shape == (len(X),)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    assert set(np.argsort(scores)[-N_PLANTED:]) == set(range(len(X) - N_PLANTED, len(X)))
    assert (before == X).all()
    labels = detect.find(name, X, contamination=N_PLANTED, random_state=0)
    assert labels.codes.tolist() == [0] * (len(X) - N_PLANTED) + [1] * N_PLANTED
    assert labels.classes == ("inlier", "outlier")
    assert labels.meaning == f"{name}, the 10 rows with the highest scores"


@pytest.mark.parametrize("name", detect.names())
def test_the_same_seed_gives_the_same_scores(name: str, cloud: NDArray[np.float64]) -> None:
    for seed in (0, 42):
        first = detect.scores(name, cloud, random_state=seed)
        assert (detect.scores(name, cloud, random_state=seed) == first).all()
    generators = [np.random.default_rng(1), np.random.default_rng(1)]
    one, two = (detect.scores(name, cloud, random_state=rng) for rng in generators)
    assert (one == two).all()


@pytest.mark.parametrize("name", [n for n in detect.names() if n not in ("iforest", "hbos")])
def test_the_order_does_not_depend_on_units(name: str, cloud: NDArray[np.float64]) -> None:
    first = detect.scores(name, cloud, random_state=0)
    other = detect.scores(name, cloud * [1e-3, 1e6, 1.0, 7.0], random_state=0)
    np.testing.assert_allclose(first, other, rtol=1e-6)


AWKWARD = {
    "constant column": np.column_stack([np.arange(30.0), np.full(30, 4.0)]),
    "all constant": np.full((30, 2), 4.0),
    "mostly equal": np.column_stack([np.r_[np.zeros(27), 1, 2, 3], np.arange(30.0)]),
    "copied column": np.repeat(np.random.default_rng(0).normal(size=(30, 1)), 3, axis=1),
    "huge": np.random.default_rng(0).normal(size=(30, 2)) * 1e307,
    "tiny": np.random.default_rng(0).normal(size=(30, 2)) * 1e-300,
    "tiny spread": np.column_stack([np.r_[np.linspace(0, 1e-300, 29), 1e20], np.arange(30.0)]),
    "more columns than rows": np.random.default_rng(0).normal(size=(5, 9)),
    "three rows": np.array([[0.0], [1.0], [9.0]]),
    "integers": np.random.default_rng(0).integers(0, 9, size=(30, 2)),
}


@pytest.mark.parametrize("name", detect.names())
@pytest.mark.parametrize("table", AWKWARD)
@pytest.mark.filterwarnings("ignore:Duplicate values are leading to incorrect:UserWarning")
def test_awkward_tables_have_finite_scores(name: str, table: str) -> None:
    scores = detect.scores(name, AWKWARD[table], random_state=0)
    assert scores.shape == (len(AWKWARD[table]),)
    assert np.isfinite(scores).all()


def test_mahalanobis_does_without_a_full_rank(cloud: NDArray[np.float64]) -> None:
    """A copied column and a mostly empty one change what is singular, not what is far."""
    mostly_zero = np.zeros(len(cloud))
    mostly_zero[:20] = np.random.default_rng(0).uniform(1e9, 2e9, size=20)
    for name in ("mahalanobis", "pca"):
        doubled = np.column_stack([cloud, cloud[:, 0]])
        scores = detect.scores(name, doubled, random_state=0)
        assert set(np.argsort(scores)[-N_PLANTED:]) == set(range(500, 510))
        scores = detect.scores(name, np.column_stack([cloud, mostly_zero]), random_state=0)
        assert set(range(500, 510)) <= set(np.argsort(scores)[-30:])


def test_ecod_by_hand() -> None:
    """Four rows, one skewed column: shares of 1/4 … 4/4 from below and from above."""
    X = np.array([[0.0], [1.0], [1.0], [9.0]])
    lower = -np.log([1 / 4, 3 / 4, 3 / 4, 1.0])
    upper = -np.log([1.0, 3 / 4, 3 / 4, 1 / 4])
    np.testing.assert_allclose(detect.scores("ecod", X), np.maximum(lower, upper))
    np.testing.assert_allclose(detect.scores("ecod", -X), np.maximum(lower, upper))
    two = np.column_stack([X, -X])  # the longer tails are above and below: only their sum sees both
    np.testing.assert_allclose(
        detect.scores("ecod", two), np.maximum(lower + upper, np.maximum(2 * upper, upper + lower))
    )


def test_hbos_by_hand() -> None:
    X = np.array([[0.0], [0.1], [0.2], [1.0]])
    np.testing.assert_allclose(detect.scores("hbos", X, n_bins=2), [0, 0, 0, np.log(3)])


def test_knn_by_hand() -> None:
    X = np.array([[0.0], [1.0], [2.0], [10.0]])  # quartiles 0.75 and 4
    np.testing.assert_allclose(detect.scores("knn", X, n_neighbors=2) * 3.25, [1.5, 1.0, 1.5, 8.5])


def test_pca_leaves_leading_components_out() -> None:
    rng = np.random.default_rng(0)
    along = rng.normal(size=200)
    X = np.column_stack([along, along + 0.01 * rng.normal(size=200)])
    X[0], X[1] = (9, 9), (0.3, -0.3)  # far along the line, and off the line
    scores = detect.scores("pca", X, n_components=1)
    assert np.argmax(scores) == 1
    with pytest.raises(StairError, match="n_components=2 leaves nothing to reconstruct"):
        detect.scores("pca", X, n_components=2)


def test_neighbours_are_no_more_than_the_other_rows() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    for name in ("lof", "knn"):
        few = detect.scores(name, X, n_neighbors=5)
        assert (detect.scores(name, X) == few).all()


@pytest.mark.parametrize("name", ["ocsvm", "mahalanobis"])
def test_slow_detectors_learn_from_a_sample(name: str, cloud: NDArray[np.float64]) -> None:
    scores = [detect.scores(name, cloud, max_rows=200, random_state=0) for _ in range(2)]
    assert (scores[0] == scores[1]).all()
    assert len(scores[0]) == len(cloud)
    assert (scores[0] != detect.scores(name, cloud, random_state=0)).any()
    if name == "mahalanobis":
        assert set(np.argsort(scores[0])[-N_PLANTED:]) == set(range(500, 510))


@pytest.mark.parametrize(
    ("name", "X", "params", "message"),
    [
        ("lof", [[1.0], [2.0]], {}, 'the detector "lof" needs at least 3 rows, but X has 2'),
        ("lof", [[1.0], [np.nan], [np.inf]], {}, "X has 2 missing or infinite values"),
        ("lof", [1.0, 2.0, 3.0], {}, "expected rows and columns"),
        ("lof", np.empty((5, 0)), {}, "expected rows and columns"),
        ("lof", [["a"], ["b"], ["c"]], {}, "not numbers"),
        ("lof", np.eye(5), {"k": 3}, 'the detector "lof" has no parameter k; it has n_neighbors'),
        ("ecod", np.eye(5), {"k": 3}, "has no parameter k; it has none"),
        (
            "knn",
            np.eye(5),
            {"n_neighbors": 0},
            "n_neighbors=0; expected a whole number of at least",
        ),
        ("hbos", np.eye(5), {"n_bins": 2.5}, "n_bins=2.5; expected a whole number"),
        ("ocsvm", np.eye(5), {"nu": 2.0}, 'the detector "ocsvm" could not be used: '),
    ],
)
def test_what_is_wrong_is_said(name: str, X: Any, params: Any, message: str) -> None:
    with pytest.raises(StairError) as caught:
        detect.scores(name, X, **params)
    assert message in str(caught.value)


def test_find_takes_a_tenth_and_says_so(cloud: NDArray[np.float64]) -> None:
    labels = detect.find("LOF", cloud)
    assert labels.codes.sum() == 51
    assert labels.meaning == "lof, the 10% with the highest scores"
    assert labels.notes == (
        "no contamination was given, so the 10% with the highest scores are outliers",
    )
    assert detect.find("lof", cloud, contamination=0.1).notes == ()
    assert detect.find("knn", cloud, contamination=5, n_neighbors=3).codes.sum() == 5
    with pytest.raises(StairError, match=r"contamination=0\.7; expected a share"):
        detect.find("lof", cloud, contamination=0.7)


def test_an_unknown_name_without_pyod(
    cloud: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detect.importlib.util, "find_spec", lambda name: None)  # noqa: ARG005
    with pytest.raises(StairError) as caught:
        detect.scores("iforst", cloud)
    assert str(caught.value) == (
        'no detector "iforst". Did you mean "iforest"? Built in: lof, knn, iforest, mahalanobis, '
        "ecod, hbos, ocsvm, pca. PyOD, which has more, is not installed (pip install pyod)."
    )
    with pytest.raises(StairError, match="is not installed"):
        detect.scores("copod", cloud)


@needs_pyod
def test_an_unknown_name_with_pyod(cloud: NDArray[np.float64]) -> None:
    with pytest.raises(StairError, match=r'Did you mean "copod"\? Built in: lof, .* From PyOD, '):
        detect.scores("cpod", cloud)
    with pytest.raises(StairError, match=r'no detector "pyod:cpod"\. Did you mean "pyod:copod"\?'):
        detect.scores("pyod:cpod", cloud)
    for name in ("base", "../copod", "copod.COPOD", "", "pyod:", "thresholds"):
        with pytest.raises(StairError, match="no detector "):
            detect.scores(name, cloud)


@needs_pyod
def test_detectors_of_pyod_by_name(cloud: NDArray[np.float64]) -> None:
    from pyod.models.copod import COPOD
    from pyod.models.lof import LOF

    expected = COPOD().fit(cloud).decision_scores_
    for name in ("copod", "COPOD", "pyod:copod"):
        assert (detect.scores(name, cloud) == expected).all()
    forced = detect.scores("pyod:lof", cloud, n_neighbors=30)
    assert (forced == LOF(n_neighbors=30).fit(cloud).decision_scores_).all()
    labels = detect.find("copod", cloud, contamination=N_PLANTED)
    assert labels.codes[-N_PLANTED:].all()
    assert labels.meaning == "copod, the 10 rows with the highest scores"


@needs_pyod
@pytest.mark.parametrize("name", ["loda", "inne", "pyod:iforest"])
def test_detectors_of_pyod_are_repeatable(name: str, cloud: NDArray[np.float64]) -> None:
    first = detect.scores(name, cloud, random_state=0)
    assert (detect.scores(name, cloud, random_state=0) == first).all()


@needs_pyod
def test_detectors_of_pyod_without_a_seed_get_the_global_one(
    cloud: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyod.models import copod

    class COPOD:
        def fit(self, X: Any) -> COPOD:
            self.decision_scores_ = np.random.rand(len(X))  # noqa: NPY002
            return self

    COPOD.__module__ = copod.__name__
    monkeypatch.setattr(copod, "COPOD", COPOD)
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    first = detect.scores("copod", cloud, random_state=5)
    assert (detect.scores("copod", cloud, random_state=5) == first).all()
    same = detect.scores("copod", cloud, random_state=np.random.RandomState(1))
    assert (same == detect.scores("copod", cloud, random_state=np.random.RandomState(1))).all()
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@needs_pyod
def test_what_pyod_refuses_is_said(cloud: NDArray[np.float64]) -> None:
    with pytest.raises(StairError, match=r'detector "copod" could not be used: .*colour'):
        detect.scores("copod", cloud, colour=3)
    with pytest.raises(StairError, match=r'detector "mad" could not be used: .*univariate'):
        detect.scores("mad", cloud)


@needs_pyod
def test_a_detector_of_pyod_that_lacks_a_package(
    cloud: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Any:
        if name == "pyod.models.vae":
            raise ModuleNotFoundError("No module named 'torch'")
        return importlib.import_module(name)

    monkeypatch.setattr(detect, "importlib", _Importing(fail))
    with pytest.raises(StairError, match=r'"vae" needs a package that is not installed: .*torch'):
        detect.scores("vae", cloud)


class _Importing:
    """`importlib` with another `import_module`."""

    util = importlib.util

    def __init__(self, import_module: Any) -> None:
        self.import_module = import_module


@pytest.mark.parametrize("is_named", [True, False])
def test_a_fitted_detector_gets_a_column_that_is_constant_now(is_named: bool) -> None:
    """Such a column tells nothing to rules and is left out of them; the detector needs it all the
    same, and said that X does not have it."""
    from sklearn.ensemble import IsolationForest

    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(200, 3)), columns=["a", "b", "c"])
    detector = IsolationForest(random_state=0).fit(frame if is_named else frame.to_numpy())
    batch = frame.assign(b=1.0)
    summary = stair.summarize(batch, detector=detector, method=stair.DistilledStair(effort="fast"))
    expected = detector.predict(batch if is_named else batch.to_numpy()) == -1
    assert summary.n_outliers == int(expected.sum())
    assert "b" not in summary.rules.features
    gone = frame.assign(b=np.nan)
    with pytest.raises(stair.StairError, match='"b" has no value in any row'):
        stair.summarize(gone, detector=detector)
