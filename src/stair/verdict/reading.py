"""What a detector object says about the rows: PyOD, scikit-learn, a clusterer or a function.

The kind is told by what the object has, never by importing its library, and the caller's own
object is never fitted or changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.errors import StairError, option
from stair.verdict.codebook import distinct_values, folded, plain_values, said
from stair.verdict.labels import (
    TWO_CLASSES,
    Flags,
    Verdict,
    labels_from_scores,
    n_rows,
    read_labels,
    wanted_outliers,
)

Detector: TypeAlias = Any
"""An object of whichever library: what it is, is told by what it has."""


def labels_from_detector(
    detector: object,
    X: object,
    *,
    contamination: float | None = None,
    columns: Sequence[str] | None = None,
) -> Verdict:
    """What a PyOD or scikit-learn detector, a clusterer or a function says about the rows of X.

    A fitted detector is asked, and one that is not fitted is copied and the copy fitted: the
    caller's own object never changes. The kind is told by what the object has, so that PyOD need
    not be installed, and look-alikes work. With `contamination` the highest scores count and the
    detector's own threshold does not.
    """
    matrix = np.asarray(X, dtype=np.float64)
    if matrix.ndim != 2 or len(matrix) == 0:
        raise StairError(f"X has the shape {matrix.shape}; expected rows and columns")
    if columns is not None and len(columns) != matrix.shape[1]:
        raise StairError(
            f"columns has {len(columns)} names, but X has {matrix.shape[1]} columns; "
            "give one name per column"
        )
    if isinstance(detector, type):
        raise StairError(
            f"detector is the class {detector.__name__}; expected an object of it, as in "
            f"{detector.__name__}()"
        )
    if contamination is not None:
        wanted_outliers(contamination, len(matrix))  # a long fit must not end in this error
    return _verdict(detector, _as_fitted(detector, matrix, columns), len(matrix), contamination)


def _verdict(detector: Detector, data: object, n: int, contamination: float | None) -> Verdict:
    """Ask the detector in the way that suits its kind."""
    name = _name_of(detector)
    if _is_pipeline(detector):
        last = detector.steps[-1][1]
        return _verdict(last, _before_last_step(detector, data), n, contamination)
    if getattr(detector, "decision_scores_", None) is not None:
        return _from_pyod(detector, np.asarray(data), n, contamination)
    if _is_pyod(detector):
        own = copy.deepcopy(detector)
        _fit(own.fit, np.asarray(data), name)
        return _from_pyod(own, np.asarray(data), n, contamination)
    kind = _kind(detector)
    if kind == "outlier_detector" or (hasattr(detector, "offset_") and hasattr(detector, "fit")):
        return _from_sklearn(detector, data, n, contamination)
    if kind == "clusterer" or hasattr(detector, "labels_"):
        return _from_clusters(detector, data, n, contamination)
    if hasattr(detector, "score_samples") and hasattr(detector, "fit"):
        if contamination is None:
            raise StairError(
                f"{name} gives densities and no labels; give the share of rows to call outliers, "
                f"such as {option('contamination', 0.05)}"
            )
        if not _is_fitted(detector):
            detector = _fresh_copy(detector)
            _fit(detector.fit, data, name)
        return labels_from_scores(-detector.score_samples(data), contamination, name=name)
    if callable(detector) and not hasattr(detector, "fit"):
        return _from_function(detector, np.asarray(data), n, contamination)
    hint = ""
    if isinstance(detector, str):
        hint = f" For a detector by its name: stair.verdict.detectors.find({detector!r}, X)."
    elif hasattr(detector, "predict"):
        hint = f" What it predicts can be given as {option('labels')}."
    said = repr(detector) if isinstance(detector, str | int | float | None) else f"a {name}"
    raise StairError(
        f"detector is {said}; expected a PyOD or scikit-learn outlier detector, a "
        f"clusterer with noise, or a function from rows to labels or scores.{hint}"
    )


def _from_pyod(
    detector: Detector, data: NDArray[np.float64], n: int, contamination: float | None
) -> Verdict:
    """PyOD's convention: higher scores are more outlying, and 1 is the outlier."""
    name = _name_of(detector)
    is_same = len(detector.decision_scores_) == n and not _saw_other_rows(detector, data)
    detector = copy.copy(detector)  # ECOD and others write to themselves as they score new rows
    if contamination is not None:
        scores = detector.decision_scores_ if is_same else detector.decision_function(data)
        return labels_from_scores(np.asarray(scores), contamination, name=name)
    if is_same and getattr(detector, "labels_", None) is not None:
        flags, meaning = np.asarray(detector.labels_) == 1, "as it was fitted"
    else:
        flags, meaning = np.asarray(detector.predict(data)) == 1, "as it predicts"
    return _flagged(flags, name, meaning)


def _from_sklearn(detector: Detector, data: object, n: int, contamination: float | None) -> Verdict:
    """scikit-learn's convention: lower scores are more outlying, and -1 is the outlier."""
    name = _name_of(detector)
    notes: tuple[str, ...] = ()
    if not _is_fitted(detector):
        detector = _fresh_copy(detector)
        if getattr(detector, "novelty", False) is True:
            detector.set_params(novelty=False)
            notes = (f"{name} judges the rows that it is fitted on, so with novelty=False",)
        if contamination is None and hasattr(detector, "fit_predict"):
            guess = _fit(detector.fit_predict, data, name)
            return _flagged(_minus_one(guess, name), name, "as it predicts", notes)
        _fit(detector.fit, data, name)
    if hasattr(detector, "negative_outlier_factor_") and not hasattr(detector, "predict"):
        factors = np.asarray(detector.negative_outlier_factor_)
        if len(factors) != n or _saw_other_rows(detector, data):
            raise StairError(
                f"{name} was fitted on {len(factors):,} other rows and cannot judge new ones; "
                "fit it with novelty=True, or give it unfitted"
            )
        if contamination is None:
            return _flagged(factors < detector.offset_, name, "as it was fitted", notes)
        labels = labels_from_scores(-factors, contamination, name=name)
    elif contamination is None:
        return _flagged(_minus_one(detector.predict(data), name), name, "as it predicts", notes)
    else:
        for way in ("score_samples", "decision_function"):
            if hasattr(detector, way):
                scores = -np.asarray(getattr(detector, way)(data), dtype=np.float64)
                break
        else:
            raise StairError(f"{name} gives no scores; leave contamination out to take its labels")
        labels = labels_from_scores(scores, contamination, name=name)
    return replace(labels, notes=notes + labels.notes)


def _from_clusters(
    detector: Detector, data: object, n: int, contamination: float | None
) -> Verdict:
    """A clusterer that leaves rows out as noise, with the label -1, says that they are outliers."""
    name = _name_of(detector)
    if not hasattr(detector, "labels_"):
        detector = _fresh_copy(detector)
        _fit(detector.fit, data, name)
    found = np.asarray(detector.labels_)
    if found.shape != (n,):
        raise StairError(
            f"{name} was fitted on {len(found):,} rows, but X has {n:,}; fit it on X or give it "
            "unfitted"
        )
    if contamination is not None:
        scores = getattr(detector, "outlier_scores_", None)
        if scores is None:
            raise StairError(f"{name} gives no scores; leave contamination out to take its noise")
        return labels_from_scores(scores, contamination, name=name)
    if not np.any(found == -1):
        raise StairError(
            f"{name} has no noise, the rows with label -1, so no row is an outlier; expected a "
            "clusterer that leaves rows out, such as DBSCAN or HDBSCAN"
        )
    return _flagged(found == -1, name, "what it calls noise")


def _from_function(
    function: Callable[[object], object],
    data: NDArray[np.float64],
    n: int,
    contamination: float | None,
) -> Verdict:
    name = _name_of(function)
    result = function(data)
    what = f"what {name} returned"
    items = plain_values(result, what)
    if len(items) != n:
        raise StairError(f"{name} returned {len(items):,} values for {n_rows(n)}; expected as many")
    if contamination is not None:
        return labels_from_scores(items, contamination, name=name)
    found, _ = distinct_values(items, what)
    if len(found) == 1:
        raise StairError(
            f"{name} returned {said(found[0])} for every row, so there is nothing to tell apart."
        )
    if len(found) > 2:
        raise StairError(
            f"{name} returned {len(found):,} different values, which look like scores; give "
            f"{option('contamination')}, the share of rows to call outliers, or return two labels"
        )
    return read_labels(items, name=name)


def _flagged(flags: Array, name: str, meaning: str, notes: tuple[str, ...] = ()) -> Verdict:
    n, n_flagged = len(flags), int(np.count_nonzero(flags))
    if n_flagged in (0, n):
        how_many = "none" if n_flagged == 0 else "all"
        raise StairError(
            f"{name} flags {how_many} of the {n_rows(n)}, so there is nothing to tell apart; set "
            f"it otherwise, or give {option('contamination')} to take the highest scores"
        )
    return Verdict(flags.astype(np.int32), TWO_CLASSES, 1, f"{name}, {meaning}", notes)


def _minus_one(guess: object, name: str) -> Flags:
    """Where -1 was predicted; 0 and 1 are understood too, from those who write them like PyOD."""
    array = np.asarray(guess)
    found = np.unique(array)
    if np.isin(found, (-1, 1)).all():
        return np.asarray(array == -1)
    if np.isin(found, (0, 1)).all():
        return np.asarray(array == 1)
    raise StairError(
        f"{name} predicts {folded(found.tolist())}; expected -1 for outliers and 1 for inliers"
    )


def _name_of(detector: Detector) -> str:
    """What to call the detector in a sentence."""
    if _is_pipeline(detector):
        return _name_of(detector.steps[-1][1])
    name = getattr(detector, "__name__", None) or type(detector).__name__
    return "the function" if name == "<lambda>" else str(name)


def _is_pyod(detector: object) -> bool:
    return any(base.__module__.split(".")[0] == "pyod" for base in type(detector).__mro__)


def _is_pipeline(detector: object) -> bool:
    return hasattr(detector, "named_steps") and bool(getattr(detector, "steps", None))


def _kind(detector: object) -> str | None:
    """What scikit-learn calls this kind of estimator, in its newer way or its older one."""
    tags = getattr(detector, "__sklearn_tags__", None)
    if tags is not None:
        try:
            kind = tags().estimator_type
        except (AttributeError, TypeError, ValueError):  # from an older or a half-made estimator
            kind = None
        if kind is not None:
            return str(kind)
    return getattr(detector, "_estimator_type", None)


def _is_fitted(detector: object) -> bool:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(detector)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):  # not an estimator of scikit-learn, but much like one
        return any(key.endswith("_") and not key.startswith("_") for key in vars(detector))
    return True


def _fresh_copy(detector: object) -> Any:
    from sklearn.base import clone

    try:
        return clone(detector)
    except (TypeError, RuntimeError):  # no get_params, or a constructor that changes its arguments
        return copy.deepcopy(detector)


def _fit(fit: Callable[[object], object], data: object, name: str) -> Any:
    try:
        return fit(data)
    except ValueError as error:
        raise StairError(f"{name} could not be fitted on X: {error}") from error


def _before_last_step(pipeline: Detector, data: object) -> object:
    """The rows as the last step of a pipeline gets them; fitted on a copy if it is not fitted."""
    if len(pipeline.steps) == 1:
        return data
    head, last = pipeline[:-1], pipeline.steps[-1][1]
    if _is_pyod(last):  # some have tree_ or neigh_ from the start
        is_fitted = getattr(last, "decision_scores_", None) is not None
    else:
        is_fitted = hasattr(last, "fit") and _is_fitted(last)
    if is_fitted:
        return head.transform(data)
    return _fit(_fresh_copy(head).fit_transform, data, _name_of(pipeline))


def _saw_other_rows(detector: object, data: object) -> bool:
    """Whether the detector keeps the rows that it was fitted on, and they are not these.

    As many rows need not be the same rows: half of a table to fit on, the other half to explain.
    """
    for holder in (detector, *(getattr(detector, way, None) for way in ("detector_", "neigh_"))):
        kept = getattr(holder, "_fit_X", None)
        if isinstance(kept, np.ndarray) and kept.dtype.kind == "f":
            rows = np.asarray(data)
            return kept.shape != rows.shape or not np.allclose(kept, rows, rtol=1e-5)
    return False


def _as_fitted(
    detector: object, matrix: NDArray[np.float64], columns: Sequence[str] | None
) -> object:
    """X with the columns that the detector was fitted on, in its order and under its names."""
    n_columns = matrix.shape[1]
    names = getattr(detector, "feature_names_in_", None)
    if names is None:
        n_seen = getattr(detector, "n_features_in_", None)
        if n_seen is not None and n_seen != n_columns:
            raise StairError(
                f"{_name_of(detector)} was fitted on {n_seen} columns, but X has {n_columns}; "
                "give it the same columns, or give it unfitted"
            )
        if n_seen is None and columns is not None and _is_pipeline(detector):
            return _frame(matrix, columns)  # its steps may pick columns by name
        return matrix
    wanted = [str(name) for name in names]
    if columns is None:
        if len(wanted) != n_columns:
            raise StairError(
                f"{_name_of(detector)} was fitted on {len(wanted)} columns ({folded(wanted)}), "
                f"but X has {n_columns}; give it the same columns, or give it unfitted"
            )
        return _frame(matrix, wanted)
    place = {str(name): j for j, name in reversed(list(enumerate(columns)))}
    absent = [name for name in wanted if name not in place]
    if absent:
        raise StairError(
            f"{_name_of(detector)} was fitted on columns that X does not have: {folded(absent)}; "
            "give it the same columns, or give it unfitted"
        )
    return _frame(matrix[:, [place[name] for name in wanted]], wanted)


def _frame(matrix: NDArray[np.float64], names: Sequence[str]) -> object:
    """The matrix with names where pandas can give it some: scikit-learn warns without them."""
    try:
        import pandas as pd
    except ImportError:
        return matrix
    return pd.DataFrame(matrix, columns=list(names))
