"""What `stair.verdict.labels` promises: one verdict, whatever it was written in or came out of."""

from __future__ import annotations

import copy
import datetime
import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans
from sklearn.compose import ColumnTransformer
from sklearn.covariance import EllipticEnvelope
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from sklearn.svm import OneClassSVM

from stair.errors import StairError, spoken
from stair.verdict.labels import Verdict, labels_from_scores, read_labels
from stair.verdict.reading import labels_from_detector
from strategies import examples

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N_PLANTED = 10


@pytest.fixture(scope="module")
def cloud() -> NDArray[np.float64]:
    """A Gaussian cloud, the last ten rows far from it and from each other."""
    rng = np.random.default_rng(7)
    far = rng.normal(size=(N_PLANTED, 3))
    far *= np.linspace(15, 30, N_PLANTED)[:, None] / np.linalg.norm(far, axis=1, keepdims=True)
    return np.vstack([rng.normal(size=(190, 3)), far])


@pytest.fixture(scope="module")
def planted() -> NDArray[np.int32]:
    return np.repeat(np.array([0, 1], dtype=np.int32), [190, N_PLANTED])


def check_two_sided(labels: Verdict, codes: Any) -> None:
    assert labels.codes.dtype == np.int32
    assert labels.codes.tolist() == list(codes)
    assert labels.classes == ("inlier", "outlier")
    assert labels.positive == 1


# One column, many codings

NAMES = {0: "ok", 1: "weird", None: None}
FLAGS = {0: False, 1: True, None: None}
SIGNS = {0: 1, 1: -1, None: None}


def codings(bits: list[int | None]) -> dict[str, tuple[Any, Any]]:
    """The same labels in every coding: the values, and what to give as `positive`."""
    as_float = [np.nan if b is None else float(b) for b in bits]
    words = [NAMES[b] for b in bits]
    flags = [FLAGS[b] for b in bits]
    signs = [SIGNS[b] for b in bits]
    lists: dict[str, tuple[Any, Any]] = {
        "0/1": (bits, None),
        "0/1, positive as text": (bits, "1"),
        "tuple": (tuple(bits), None),
        "floats": (as_float, None),
        "decimals": ([None if b is None else Decimal(b) for b in bits], None),
        "bools": (flags, None),
        "-1/+1": (signs, None),
        "-1/+1 floats": ([np.nan if s is None else float(s) for s in signs], None),
        "words": (words, "weird"),
        "known words": ([{0: "Normal", 1: "FRAUD", None: None}[b] for b in bits], None),
        "digits": ([None if b is None else str(b) for b in bits], None),
        "signed digits": ([None if s is None else str(s) for s in signs], None),
        "yes/no": ([{0: "n", 1: "y", None: None}[b] for b in bits], None),
        "two other numbers": ([None if b is None else 2 + 2 * b for b in bits], 4),
        "others against one": (
            [
                None if b is None else ("weird" if b else f"fine {i % 3}")
                for i, b in enumerate(bits)
            ],
            "weird",
        ),
        "numpy float": (np.array(as_float), None),
        "numpy float32": (np.array(as_float, dtype=np.float32), None),
        "numpy object": (np.array(bits, dtype=object), None),
        "numpy scalars": ([None if b is None else np.int8(b) for b in bits], None),
        "masked": (np.ma.array([b or 0 for b in bits], mask=[b is None for b in bits]), None),
        "pandas float": (pd.Series(as_float), None),
        "pandas nullable": (pd.Series(bits, dtype="Int64"), None),
        "pandas boolean": (pd.Series(flags, dtype="boolean"), None),
        "pandas str": (pd.Series(words), "weird"),
        "pandas category": (pd.Series(words, dtype="category"), "weird"),
        "pandas arrow": (pd.Series(bits, dtype="int64[pyarrow]"), None),
        "pandas index": (pd.Series(bits, dtype="Int64", index=range(7, 7 + len(bits))), None),
        "polars": (pl.Series(bits, dtype=pl.Int64), None),
        "polars bool": (pl.Series(flags, dtype=pl.Boolean), None),
        "polars str": (pl.Series(words, dtype=pl.String), "weird"),
        "polars category": (pl.Series(words, dtype=pl.Categorical), "weird"),
        "arrow": (pa.array(bits, type=pa.int64()), None),
        "arrow bool": (pa.array(flags, type=pa.bool_()), None),
        "arrow chunks": (pa.chunked_array([pa.array(words, type=pa.string())]), "weird"),
        "arrow dictionary": (pa.array(words, type=pa.string()).dictionary_encode(), "weird"),
    }
    if None not in bits:
        lists |= {
            "numpy int": (np.array(bits), None),
            "numpy uint8": (np.array(bits, dtype=np.uint8), None),
            "numpy bool": (np.array(flags), None),
            "numpy int8 signs": (np.array(signs, dtype=np.int8), None),
            "numpy str": (np.array(words), "weird"),
            "numpy bytes": (np.array(words).astype("S"), "weird"),
            "generator": ((b for b in bits), None),
            "mixed": ([float(b) if i % 2 else bool(b) for i, b in enumerate(bits)], None),
        }
    return lists


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([0, 1]), max_size=20),
    st.lists(st.sampled_from([0, 1, None]), max_size=8),
    st.randoms(use_true_random=False),
)
def test_every_coding_gives_the_same_labels(some: Any, more: Any, random: Any) -> None:
    bits = [0, 1, *some, *more]
    random.shuffle(bits)
    expected = [-1 if bit is None else bit for bit in bits]
    n_missing = bits.count(None)
    for coding, (values, positive) in codings(bits).items():
        labels = read_labels(values, positive=positive, name="flagged")
        check_two_sided(labels, expected)
        said = [note for note in labels.notes if "no label" in note]
        assert len(said) == bool(n_missing), coding


def test_missing_labels_are_counted_and_left_out() -> None:
    labels = read_labels([0, 1, None, float("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "us")])
    check_two_sided(labels, [0, 1, -1, -1, -1, -1, -1])
    assert labels.notes == ("5 rows have no label and are left out",)
    assert read_labels([0, 1, None]).notes == ("1 row has no label and is left out",)


@pytest.mark.parametrize(
    ("values", "positive", "meaning"),
    [
        ([0, 1], None, "flagged = 1"),
        ([1.0, 0.0], None, "flagged = 1"),
        ([1, -1], None, "flagged = -1"),
        ([True, False], None, "flagged = True"),
        (["fraud", "ok"], None, 'flagged = "fraud"'),
        ([0, 1], 0, "flagged = 0"),
        ([0, 1], "0.0", "flagged = 0"),
        ([0, 1], True, "flagged = 1"),
        ([True, False], "true", "flagged = True"),
        (["Fraud", "Ok"], "ok", 'flagged = "Ok"'),
        ([1, 2, 3], 2, "flagged = 2, against the 2 other values"),
    ],
)
def test_the_meaning_says_what_an_outlier_is(values: Any, positive: Any, meaning: str) -> None:
    assert read_labels(values, positive=positive, name="flagged").meaning == meaning


@pytest.mark.parametrize(
    ("outlier", "inlier"),
    [
        ("outlier", "inlier"),
        ("Anomaly", "normal"),
        ("anomalous", "regular"),
        ("ABNORMAL", "Normal"),
        ("Fraud", "Not fraud"),
        ("fraud", "non-fraud"),
        ("attack", "normal."),
        ("malicious", "benign"),
        ("bad", "good"),
        ("yes", "no"),
        ("TRUE", "FALSE"),
        ("positive", "negative"),
        ("T", "F"),
        ("1", "0"),
        ("-1", "1"),
        ("1.0", "0.0"),
        ("neptune", "normal"),
        ("dubious", "ok"),
        ("spam", "letter"),
    ],
)
def test_known_words_need_no_note(outlier: str, inlier: str) -> None:
    for labels in (
        read_labels([outlier, inlier, outlier]),
        read_labels(np.array([outlier, inlier, outlier])),
    ):
        check_two_sided(labels, [1, 0, 1])
        assert labels.notes == ()


def test_of_two_unknown_words_the_rarer_is_the_outlier_and_a_note_says_so() -> None:
    labels = read_labels(["m", "f", "f"], name="sex")
    check_two_sided(labels, [1, 0, 0])
    (note,) = labels.notes
    assert '"f", "m"' in note
    assert 'the rarer one, "m"' in note
    assert 'positive="f"' in spoken(note)
    check_two_sided(read_labels(["f", "m", "m"]), [1, 0, 0])
    tied = read_labels(["b", "a"])
    check_two_sided(tied, [1, 0])
    assert "equally frequent" in tied.notes[0]


def test_of_two_other_numbers_the_rarer_is_the_outlier_and_a_note_says_so() -> None:
    """As with any two classes: once it was the larger number, whichever was the rule."""
    labels = read_labels([2, 4, 4, 2.0, 4])
    check_two_sided(labels, [1, 0, 0, 1, 0])
    assert "the rarer one, 2" in labels.notes[0]
    assert "positive=4 says otherwise" in spoken(labels.notes[0])
    tied = read_labels([0.5, 0.25])
    check_two_sided(tied, [1, 0])
    assert "equally frequent, the last one, 0.5" in tied.notes[0]
    check_two_sided(read_labels([-1, 0]), [0, 1])


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        ([3, 1, 2, 1], (1, 2, 3), [2, 0, 1, 0]),
        ([3.0, np.nan, 2.0, 1.0], (1, 2, 3), [2, -1, 1, 0]),
        ([-1, 0, 1], (-1, 0, 1), [0, 1, 2]),
        (["b", "c", None, "a"], ("a", "b", "c"), [1, 2, -1, 0]),
        (["10", "9", "8"], ("8", "9", "10"), [2, 1, 0]),
        ([0.5, 2, 1], ("0.5", "1", "2"), [0, 2, 1]),
        ([1, "1", "x", 2], ("1", "2", "x"), [0, 0, 2, 1]),
        (
            np.array(["2024-01-02", "NaT", "2024-01-01", "2024-01-03"], dtype="datetime64[D]"),
            ("2024-01-01", "2024-01-02", "2024-01-03"),
            [1, -1, 0, 2],
        ),
        (
            [datetime.date(2024, 1, day) for day in (2, 1, 3)],
            ("2024-01-01", "2024-01-02", "2024-01-03"),
            [1, 0, 2],
        ),
    ],
)
def test_more_than_two_values_stay_classes(values: Any, classes: Any, codes: list[int]) -> None:
    labels = read_labels(values, name="quality")
    assert labels.classes == classes
    assert [type(value) for value in labels.classes] == [type(value) for value in classes]
    assert labels.codes.tolist() == codes
    assert labels.codes.dtype == np.int32
    assert labels.positive is None
    assert labels.meaning == f"quality, {len(classes)} classes"


def test_with_positive_a_class_may_have_any_number_of_others() -> None:
    names = [f"attack {i}" for i in range(300)]
    check_two_sided(read_labels(names, positive="attack 7"), [int(i == 7) for i in range(300)])
    scores = np.linspace(0, 1, 50)
    assert read_labels(scores, positive=1.0).codes.sum() == 1


@pytest.mark.parametrize(
    ("values", "positive", "message"),
    [
        ([0, 0], None, 'the label column "flagged" has only one value (0), so there is nothing to '
                       "tell apart."),
        (["x"], None, 'has only one value ("x"), so'),
        ([1, None, None], None, "2 rows have no label; fill in"),
        ([None, np.nan], None, "only missing values"),
        (np.array([np.nan]), None, "only missing values"),
        ([], None, "is empty"),
        (np.array([]), None, "is empty"),
        (np.linspace(0, 1, 30), None, "look like scores"),
        (np.linspace(0, 1, 30), None, "scores= with contamination="),
        ([str(x) for x in np.linspace(0, 1, 30)], None, "look like scores"),
        ([f"row {i}" for i in range(101)], None, "is it an identifier?"),
        (range(101), None, "101 different values, more than 100; is it an identifier, or scores?"),
        (["fraud", "ok"], "fruad", 'positive="fruad" is not a value of the label column '
                                   '"flagged". Did you mean "fraud"? Values: "fraud", "ok".'),
        (range(50), 77, "Values: 0, 1, 2, 3, 4, 5, 6, 7, … (50 in all)."),
        ([0, 1], "outlier", "Values: 0, 1."),
        (np.zeros((3, 1)), None, "has the shape 3 × 1; expected one column"),
        (pd.DataFrame({"a": [0, 1]}), None, "has the shape 2 × 1"),
        (np.array(1), None, "a single value"),
        ([[0], [1]], None, "expected a single value per row"),
        ([(0, 1), (1, 0)], None, "expected a single value per row"),
        ("flagged", None, "is 'flagged'; expected a column"),
        (None, None, "is None; expected a column"),
        (3, None, "is 3; expected a column"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_labels_is_said(values: Any, positive: Any, message: str) -> None:
    with pytest.raises(StairError) as caught:
        read_labels(values, positive=positive, name="flagged")
    assert message in str(caught.value)


# Scores


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.5, -3.0, np.inf, -np.inf, 7.0]), min_size=2, max_size=30),
    st.data(),
)
def test_the_outliers_are_strictly_above_the_next_score(scores: list[float], data: Any) -> None:
    count = data.draw(st.integers(1, len(scores) // 2))
    threshold = sorted(scores, reverse=True)[count]
    expected = [int(score > threshold) for score in scores]
    if not any(expected):
        with pytest.raises(StairError, match="cannot be told from the others"):
            labels_from_scores(scores, count)
        return
    labels = labels_from_scores(scores, count)
    check_two_sided(labels, expected)
    assert bool(labels.notes) == (sum(expected) < count)


@pytest.mark.parametrize(
    ("contamination", "n_outliers", "meaning"),
    [
        (0.05, 5, "lof, the 5% with the highest scores"),
        (0.042, 4, "lof, the 4.2% with the highest scores"),
        (0.001, 1, "lof, the 0.1% with the highest scores"),
        (0.5, 50, "lof, the 50% with the highest scores"),
        (12, 12, "lof, the 12 rows with the highest scores"),
        (1, 1, "lof, the row with the highest scores"),
        (np.int64(3), 3, "lof, the 3 rows with the highest scores"),
        (np.float32(0.25), 25, "lof, the 25% with the highest scores"),
    ],
)
def test_a_share_or_a_number(contamination: Any, n_outliers: int, meaning: str) -> None:
    scores = np.random.default_rng(0).permutation(100)
    labels = labels_from_scores(scores, contamination, name="lof")
    assert labels.codes.tolist() == (scores >= 100 - n_outliers).astype(int).tolist()
    assert labels.meaning == meaning
    assert labels.notes == ()


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, pa.array])
def test_scores_of_every_kind(kind: Any) -> None:
    check_two_sided(labels_from_scores(kind([1.0, 5.0, 2.0, 3.0]), 1), [0, 1, 0, 0])


def test_missing_scores_have_no_label() -> None:
    labels = labels_from_scores([1, None, 3, float("nan"), 2, np.inf], 2)
    check_two_sided(labels, [0, -1, 1, -1, 0, 1])
    assert labels.notes == ("2 rows have no score and are left out",)


def test_ties_make_outliers_fewer() -> None:
    labels = labels_from_scores([9, 8, 8, 8, 1, 1, 1, 1], 3)
    check_two_sided(labels, [1, 0, 0, 0, 0, 0, 0, 0])
    assert labels.notes == ("1 row instead of 3 count as outliers, because scores are tied at 8",)


@pytest.mark.parametrize(
    ("scores", "contamination", "message"),
    [
        (range(10), None, "scores need a contamination"),
        (range(10), 0.7, "contamination=0.7; expected a share above 0 and at most 0.5, or a number "
                         "of rows"),
        (range(10), 0.0, "contamination=0.0; expected"),
        (range(10), -0.1, "contamination=-0.1; expected"),
        (range(10), 1.0, "contamination=1.0; expected"),
        (range(10), 2.5, "contamination=2.5; expected"),
        (range(10), float("nan"), "contamination=nan; expected"),
        (range(10), float("inf"), "contamination=inf; expected"),
        (range(10), True, "contamination=True; expected"),
        (range(10), np.True_, "contamination=True; expected"),
        (range(10), "0.1", 'contamination="0.1"; expected'),
        (range(10), 0, "contamination=0; expected"),
        (range(10), 6, "or a number of rows (at most half of the 10)"),
        ([1, 1, 1, 1], 0.25, "the 4 highest scores"),
        ([1, 1, 1, 1], 0.25, "use other scores"),
        ([2, 2, 1, 1], 1, "give a contamination of at least 2 rows"),
        (["1", "2", "x"], 1, 'hold "1", which is not a number'),
        ([True, False, True], 1, "which is not a number"),
        (np.array([True, False]), 1, "are true or false"),
        (np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"), 1, "is not a number"),
        ([1j, 2j], 1, "is not a number"),
        ([[1, 2], [3, 4]], 1, "is not a number"),
        ([[1, 2], [3]], 1, "is not a number"),
        ([], 1, "are empty"),
        ([1, None], 1, "at least 2 are needed"),
        (np.zeros((4, 2)), 1, "has the shape 4 × 2"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_scores_is_said(scores: Any, contamination: Any, message: str) -> None:
    with pytest.raises(StairError) as caught:
        labels_from_scores(scores, contamination)
    assert message in str(caught.value)


# Detectors of scikit-learn

SHARE = N_PLANTED / 200


def detectors() -> dict[str, Any]:
    return {
        "forest": IsolationForest(contamination=SHARE, random_state=0, n_estimators=50),
        "lof": LocalOutlierFactor(contamination=SHARE),
        "novelty": LocalOutlierFactor(contamination=SHARE, novelty=True),
        "svm": OneClassSVM(nu=SHARE),
        "envelope": EllipticEnvelope(contamination=SHARE, random_state=0),
        "pipeline": make_pipeline(RobustScaler(), LocalOutlierFactor(contamination=SHARE)),
        "one step": make_pipeline(IsolationForest(contamination=SHARE, random_state=0)),
        "novelty pipeline": make_pipeline(
            RobustScaler(), LocalOutlierFactor(contamination=SHARE, novelty=True)
        ),
        "forest pipeline": make_pipeline(
            StandardScaler(), IsolationForest(contamination=SHARE, random_state=0)
        ),
        "noise": DBSCAN(eps=3.0),
        "noise pipeline": make_pipeline(RobustScaler(), DBSCAN(eps=2.0)),
    }


def state(detector: Any) -> Any:
    """All that fitting could change."""
    if isinstance(detector, Pipeline):
        return [state(step) for _, step in detector.steps]
    return {key: repr(value) for key, value in vars(detector).items()}


@pytest.mark.parametrize("name", detectors())
@pytest.mark.parametrize("is_fitted", [False, True])
def test_detectors_of_scikit_learn(
    name: str, is_fitted: bool, cloud: NDArray[np.float64], planted: NDArray[np.int32]
) -> None:
    detector = detectors()[name]
    if is_fitted:
        detector.fit(cloud)
    before = state(detector)
    labels = labels_from_detector(detector, cloud)
    assert state(detector) == before
    assert labels.codes.dtype == np.int32
    if hasattr(detector, "fit_predict"):
        own = copy.deepcopy(detector)
        expected = own.fit_predict(cloud)
    elif is_fitted:
        expected = detector.predict(cloud)
    else:
        expected = np.where(planted == 1, -1, 1)
    check_two_sided(labels, (expected == -1).astype(int))
    assert np.mean(labels.codes == planted) > 0.9
    last = detector.steps[-1][1] if isinstance(detector, Pipeline) else detector
    assert labels.meaning.startswith(type(last).__name__)


@pytest.mark.parametrize("name", [name for name in detectors() if "noise" not in name])
@pytest.mark.parametrize("is_fitted", [False, True])
def test_with_contamination_the_highest_scores_count(
    name: str, is_fitted: bool, cloud: NDArray[np.float64], planted: NDArray[np.int32]
) -> None:
    detector = detectors()[name]
    if is_fitted:
        detector.fit(cloud)
    labels = labels_from_detector(detector, cloud, contamination=20)
    assert labels.codes.sum() == 20
    assert labels.codes[planted == 1].all()
    assert "the 20 rows with the highest scores" in labels.meaning


def test_a_detector_fitted_on_other_rows_predicts(
    cloud: NDArray[np.float64], planted: NDArray[np.int32]
) -> None:
    for name in ("forest", "novelty", "svm", "envelope", "novelty pipeline"):
        detector = detectors()[name].fit(cloud[:150])
        labels = labels_from_detector(detector, cloud)
        assert labels.codes[planted == 1].all()
        assert labels.codes.tolist() == (detector.predict(cloud) == -1).astype(int).tolist()


@pytest.mark.parametrize("rows", [slice(0, 150), slice(None, None, -1)])
def test_a_local_outlier_factor_cannot_judge_other_rows(
    rows: slice, cloud: NDArray[np.float64]
) -> None:
    for name in ("lof", "pipeline"):
        detector = detectors()[name].fit(cloud[rows])
        with pytest.raises(StairError, match="cannot judge new ones; fit it with novelty=True"):
            labels_from_detector(detector, cloud)


def test_an_unfitted_novelty_detector_says_how_it_was_used(cloud: NDArray[np.float64]) -> None:
    for contamination in (None, 5):
        labels = labels_from_detector(detectors()["novelty"], cloud, contamination=contamination)
        assert "with novelty=False" in labels.notes[0]


def test_densities_need_a_contamination(cloud: NDArray[np.float64]) -> None:
    mixture = GaussianMixture(random_state=0)
    with pytest.raises(StairError, match=r"gives densities and no labels; .*contamination=0.05"):
        labels_from_detector(mixture, cloud)
    unfitted = labels_from_detector(mixture, cloud, contamination=5)
    assert not hasattr(mixture, "means_")
    fitted = labels_from_detector(mixture.fit(cloud), cloud, contamination=5)
    assert unfitted.codes.tolist() == fitted.codes.tolist()


def test_clusterers_with_noise(cloud: NDArray[np.float64], planted: NDArray[np.int32]) -> None:
    labels = labels_from_detector(HDBSCAN(copy=True).fit(cloud), cloud)
    assert labels.codes[planted == 1].all()
    assert labels.meaning == "HDBSCAN, what it calls noise"
    with pytest.raises(StairError, match="KMeans has no noise"):
        labels_from_detector(KMeans(2, random_state=0).fit(cloud), cloud)
    with pytest.raises(StairError, match="DBSCAN flags all of the 200 rows"):
        labels_from_detector(DBSCAN(eps=1e-9), cloud)
    with pytest.raises(StairError, match="gives no scores; leave contamination out"):
        labels_from_detector(DBSCAN(eps=3.0), cloud, contamination=0.1)
    with pytest.raises(StairError, match="fitted on 100 rows, but X has 200"):
        labels_from_detector(DBSCAN(eps=3.0).fit(cloud[:100]), cloud)


def test_a_clusterer_with_scores_takes_a_contamination(cloud: NDArray[np.float64]) -> None:
    class Scoring:
        labels_ = np.zeros(200, dtype=int)
        outlier_scores_ = np.arange(200)

    assert labels_from_detector(Scoring(), cloud, contamination=3).codes.sum() == 3


def test_functions(cloud: NDArray[np.float64], planted: NDArray[np.int32]) -> None:
    def far(X: NDArray[np.float64]) -> Any:
        return np.linalg.norm(X, axis=1) > 10

    def distance(X: NDArray[np.float64]) -> Any:
        return pd.Series(np.linalg.norm(X, axis=1))

    check_two_sided(labels_from_detector(far, cloud), planted)
    check_two_sided(labels_from_detector(lambda X: np.where(far(X), -1, 1), cloud), planted)
    check_two_sided(labels_from_detector(lambda X: far(X).astype(int).tolist(), cloud), planted)
    by_score = labels_from_detector(distance, cloud, contamination=N_PLANTED)
    check_two_sided(by_score, planted)
    assert by_score.meaning == "distance, the 10 rows with the highest scores"
    with pytest.raises(StairError, match="look like scores; give contamination="):
        labels_from_detector(distance, cloud)
    with pytest.raises(StairError, match="returned 3 values for 200 rows"):
        labels_from_detector(lambda X: X[:3, 0], cloud)
    with pytest.raises(StairError, match="the function returned 0 for every row"):
        labels_from_detector(lambda X: np.zeros(len(X)), cloud)
    with pytest.raises(StairError, match="what the function returned is None"):
        labels_from_detector(lambda X: None, cloud)  # noqa: ARG005


def test_look_alikes(cloud: NDArray[np.float64], planted: NDArray[np.int32]) -> None:
    """A detector that knows nothing of scikit-learn but its conventions."""

    class Plain:
        _estimator_type = "outlier_detector"

        def __init__(self, coding: tuple[int, int] = (1, -1)) -> None:
            self.coding = coding

        def fit(self, X: Any) -> Plain:
            self.middle_ = X.mean(axis=0)
            return self

        def predict(self, X: Any) -> Any:
            return np.where(np.linalg.norm(X - self.middle_, axis=1) > 10, *self.coding[::-1])

    unfitted = Plain()
    check_two_sided(labels_from_detector(unfitted, cloud), planted)
    assert not hasattr(unfitted, "middle_")
    check_two_sided(labels_from_detector(Plain().fit(cloud), cloud), planted)
    check_two_sided(labels_from_detector(Plain((0, 1)), cloud), planted)
    with pytest.raises(StairError, match="predicts 3, 4; expected -1 for outliers"):
        labels_from_detector(Plain((3, 4)), cloud)
    with pytest.raises(StairError, match="gives no scores; leave contamination out"):
        labels_from_detector(Plain(), cloud, contamination=0.1)


def test_what_is_no_detector_is_said(cloud: NDArray[np.float64]) -> None:
    classifier = LogisticRegression().fit(cloud, np.arange(200) % 2)
    with pytest.raises(
        StairError, match="is a LogisticRegression; expected a PyOD or scikit-learn"
    ):
        labels_from_detector(classifier, cloud)
    with pytest.raises(StairError, match="can be given as labels="):
        labels_from_detector(classifier, cloud)
    with pytest.raises(StairError, match=r"detector is 'lof'; .*detectors.find\('lof', X\)"):
        labels_from_detector("lof", cloud)
    with pytest.raises(StairError, match=r"the class IsolationForest; .*IsolationForest\(\)"):
        labels_from_detector(IsolationForest, cloud)
    with pytest.raises(StairError, match="detector is None; expected"):
        labels_from_detector(None, cloud)
    with pytest.raises(StairError, match="is a StandardScaler; expected"):
        labels_from_detector(StandardScaler(), cloud)
    with pytest.raises(StairError, match="expected rows and columns"):
        labels_from_detector(IsolationForest(), cloud[:, 0])
    with pytest.raises(StairError, match=r"contamination=0\.9; expected a share"):
        labels_from_detector(IsolationForest(), cloud, contamination=0.9)
    with pytest.raises(StairError, match="could not be fitted on X: "):
        labels_from_detector(IsolationForest(n_estimators=-1), cloud)


def test_nothing_or_everything_flagged(cloud: NDArray[np.float64]) -> None:
    strict = IsolationForest(random_state=0).fit(cloud)
    strict.offset_ = -2.0
    with pytest.raises(StairError, match="IsolationForest flags none of the 200 rows, so there is"):
        labels_from_detector(strict, cloud)
    strict.offset_ = 0.0
    with pytest.raises(StairError, match=r"flags all of the 200 rows.*give contamination="):
        labels_from_detector(strict, cloud)


# Which columns the detector knows


def test_columns_are_given_as_the_detector_knows_them(cloud: NDArray[np.float64]) -> None:
    frame = pd.DataFrame(cloud, columns=["a", "b", "c"])
    for detector in (
        IsolationForest(random_state=0, contamination=SHARE),
        make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)),
    ):
        detector.fit(frame[["c", "a"]])
        expected = (detector.predict(frame[["c", "a"]]) == -1).astype(int).tolist()
        # A warning about missing names would be an error here.
        labels = labels_from_detector(detector, cloud, columns=["a", "b", "c"])
        assert labels.codes.tolist() == expected
        unnamed = labels_from_detector(detector, cloud[:, [2, 0]])
        assert unnamed.codes.tolist() == expected
        with pytest.raises(StairError, match=r'fitted on 2 columns \("c", "a"\), but X has 3'):
            labels_from_detector(detector, cloud)
        with pytest.raises(StairError, match='columns that X does not have: "c"; give it the same'):
            labels_from_detector(detector, cloud, columns=["a", "b", "d"])


def test_a_detector_without_names_counts_its_columns(cloud: NDArray[np.float64]) -> None:
    detector = IsolationForest(random_state=0).fit(cloud[:, :2])
    with pytest.raises(StairError, match="fitted on 2 columns, but X has 3"):
        labels_from_detector(detector, cloud)
    with pytest.raises(StairError, match="columns has 2 names, but X has 3 columns"):
        labels_from_detector(detector, cloud, columns=["a", "b"])


def test_an_unfitted_pipeline_may_pick_columns_by_name(cloud: NDArray[np.float64]) -> None:
    pipeline = make_pipeline(
        ColumnTransformer([("scaled", StandardScaler(), ["b", "c"])]),
        IsolationForest(random_state=0, contamination=SHARE),
    )
    labels = labels_from_detector(pipeline, cloud, columns=["a", "b", "c"])
    assert labels.codes.sum() == N_PLANTED


def test_without_pandas_a_matrix_is_given(
    cloud: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Named:
        _estimator_type = "outlier_detector"
        feature_names_in_ = ("c", "a")
        centre_ = 0.0

        def fit(self, X: Any) -> Named:  # noqa: ARG002
            return self

        def predict(self, X: Any) -> Any:
            assert type(X) is np.ndarray
            assert X.tolist() == cloud[:, [2, 0]].tolist()
            return np.where(X[:, 0] > 2, -1, 1)

    detector = Named()
    detector.centre_ = 1.0
    monkeypatch.setitem(sys.modules, "pandas", None)
    labels_from_detector(detector, cloud, columns=["a", "b", "c"])


# PyOD

PYOD = {"knn": "KNN", "iforest": "IForest", "ecod": "ECOD", "lof": "LOF", "pca": "PCA"}


def pyod_detector(module: str) -> Any:
    models = pytest.importorskip(f"pyod.models.{module}")
    params = {"random_state": 0} if module == "iforest" else {}
    return getattr(models, PYOD[module])(contamination=SHARE, **params)


@pytest.mark.parametrize("module", PYOD)
def test_detectors_of_pyod(
    module: str, cloud: NDArray[np.float64], planted: NDArray[np.int32]
) -> None:
    detector = pyod_detector(module)
    unfitted = labels_from_detector(detector, cloud)
    assert not hasattr(detector, "decision_scores_")
    detector.fit(cloud)
    before = state(detector)
    fitted = labels_from_detector(detector, cloud)
    assert state(detector) == before
    check_two_sided(fitted, detector.labels_)
    assert unfitted.codes.tolist() == fitted.codes.tolist()
    assert np.mean(fitted.codes == planted) > 0.97
    assert fitted.meaning == f"{PYOD[module]}, as it was fitted"
    more = labels_from_detector(detector, cloud, contamination=20)
    expected = labels_from_scores(detector.decision_scores_, 20)
    assert more.codes.tolist() == expected.codes.tolist()


@pytest.mark.parametrize("module", PYOD)
def test_detectors_of_pyod_fitted_on_other_rows(module: str, cloud: NDArray[np.float64]) -> None:
    detector = pyod_detector(module).fit(cloud[:150])
    before, twin = state(detector), copy.deepcopy(detector)
    labels = labels_from_detector(detector, cloud)
    few = labels_from_detector(detector, cloud, contamination=5)
    assert state(detector) == before
    check_two_sided(labels, twin.predict(cloud))
    assert labels.meaning == f"{PYOD[module]}, as it predicts"
    expected = labels_from_scores(twin.decision_function(cloud), 5)
    assert few.codes.tolist() == expected.codes.tolist()


def test_as_many_other_rows_are_noticed_where_the_detector_keeps_its_own(
    cloud: NDArray[np.float64],
) -> None:
    for module in ("knn", "lof"):
        detector = pyod_detector(module).fit(cloud[::-1])
        check_two_sided(labels_from_detector(detector, cloud), detector.predict(cloud))


@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_pipeline_may_end_in_a_detector_of_pyod(
    is_fitted: bool, cloud: NDArray[np.float64], planted: NDArray[np.int32]
) -> None:
    pipeline = make_pipeline(StandardScaler(), pyod_detector("knn"))
    if is_fitted:
        pipeline.fit(cloud)
    check_two_sided(labels_from_detector(pipeline, cloud), planted)
    assert hasattr(pipeline[-1], "decision_scores_") == is_fitted
    assert hasattr(pipeline[0], "mean_") == is_fitted


def test_importing_needs_numpy_alone() -> None:
    code = (
        "import sys, stair.verdict.labels, stair.verdict.reading, stair.verdict.detectors\n"
        "heavy = {'sklearn', 'scipy', 'pyod', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_several_values_may_mean_outlier() -> None:
    """`--positive Botnet --positive Heartbleed` kept the last one, and said nothing."""
    values = ["BENIGN", "Botnet", None, "Heartbleed", "Portscan", "BENIGN"]
    labels = read_labels(values, positive=["botnet", "Heartbleed"], name="Label")
    assert labels.codes.tolist() == [0, 1, -1, 1, 0, 0]
    assert labels.meaning == 'Label = "Botnet" or "Heartbleed", against the 2 other values'
    same = read_labels(values, positive=("Heartbleed", "Botnet", "Botnet"), name="Label")
    assert same.codes.tolist() == labels.codes.tolist() and same.meaning == labels.meaning


@pytest.mark.parametrize(
    ("positive", "said"),
    [
        (["a", "b", "c"], "names all values"),
        ([], "names no value"),
        (["a", "d"], 'positive="d" is not a value'),
    ],
)
def test_outliers_that_leave_nothing_are_refused(positive: list[str], said: str) -> None:
    with pytest.raises(StairError, match=said):
        read_labels(list("abc"), positive=positive)
