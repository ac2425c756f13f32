"""Detectors by name, for when there is nothing to explain yet.

The built-in ones need no more than scikit-learn. Those of PyOD are found by their names where PyOD
is installed. Whatever the detector, a higher score is more outlying.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError, check_count
from stair.verdict.labels import Verdict, labels_from_scores

Matrix: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = NDArray[np.float64]
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
Seed: TypeAlias = int | np.random.RandomState | None

DEFAULT_CONTAMINATION = 0.1
_FEWEST_ROWS = 3
_PYOD = "pyod:"
_NOT_FOR_TABLES = re.compile(
    r"(base|pyg_|ts_|_).*|combination|sklearn_base|thresholds|gaal_base|so_gaal_new|embedding"
    r"|audio_ae|xgbod|devnet"
)


def names() -> tuple[str, ...]:
    """The detectors that are built in."""
    return tuple(_BUILT_IN)


def scores(name: str, X: object, *, random_state: RandomState = None, **params: object) -> Scores:
    """How outlying each row of X is by the detector of that name; higher is more outlying.

    A built-in name wins over PyOD's; "pyod:lof" asks for PyOD's. `params` are the detector's own.
    """
    key = str(name).strip().casefold()
    X = _checked(X, key)
    seed = (
        int(random_state.integers(2**31 - 1))
        if isinstance(random_state, np.random.Generator)
        else random_state
    )
    if key in _BUILT_IN:
        function = _BUILT_IN[key]
        known = list(inspect.signature(function).parameters)[2:]
        unknown = [param for param in params if param not in known]
        if unknown:
            raise StairError(
                f'the detector "{key}" has no parameter {unknown[0]}; '
                + (f"it has {', '.join(known)}" if known else "it has none")
            )
        try:
            return function(_tamed(X), seed, **params)
        except StairError:
            raise
        except ValueError as error:  # a parameter that scikit-learn refuses
            raise StairError(f'the detector "{key}" could not be used: {error}') from error
    return _pyod_scores(key, X, seed, params)


def find(
    name: str,
    X: object,
    *,
    contamination: float | None = None,
    random_state: RandomState = None,
    **params: object,
) -> Verdict:
    """The rows with the highest scores by the detector of that name, as outliers.

    Nobody knows beforehand how many there are: without `contamination` it is a tenth, and a note
    says so.
    """
    share = DEFAULT_CONTAMINATION if contamination is None else contamination
    found = scores(name, X, random_state=random_state, **params)
    labels = labels_from_scores(found, share, name=str(name).strip().casefold())
    if contamination is not None:
        return labels
    note = f"no contamination was given, so the {share:.0%} with the highest scores are outliers"
    return replace(labels, notes=(note, *labels.notes))


# Preparation


def _checked(X: object, name: str) -> Matrix:
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise StairError("X holds values that are not numbers; expected a numeric table") from None
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise StairError(f"X has the shape {matrix.shape}; expected rows and columns")
    if len(matrix) < _FEWEST_ROWS:
        raise StairError(
            f'the detector "{name}" needs at least {_FEWEST_ROWS} rows, but X has {len(matrix)}'
        )
    is_bad = ~np.isfinite(matrix)
    if is_bad.any():
        raise StairError(
            f"X has {np.count_nonzero(is_bad):,} missing or infinite values; detectors need finite "
            "numbers, so fill them in or leave the columns out"
        )
    return matrix


def _tamed(X: Matrix) -> Matrix:
    """X with its extremely large and small columns rescaled, so that no square overflows.

    The isolation forest even works in single precision. No detector here depends on the unit.
    """
    peak = np.abs(X).max(axis=0)
    is_extreme = (peak > 1e30) | ((peak < 1e-30) & (peak > 0))
    return X / np.where(is_extreme, peak, 1.0) if is_extreme.any() else X


def _robustly_scaled(X: Matrix) -> Matrix:
    """Columns in comparable units: median 0, interquartile range 1.

    Mean and deviation would be set by the very outliers that are sought.
    """
    low, middle, high = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    spread = high - low
    with np.errstate(over="ignore"):  # of a spread near zero; nothing beyond the bound differs
        scaled = (X - middle) / np.where(spread > 0, spread, 1.0)
    return np.asarray(np.clip(scaled, -1e60, 1e60))


def _sample(X: Matrix, seed: Seed, max_rows: int) -> Matrix:
    """At most so many rows, drawn at random and in their order."""
    check_count("max_rows", max_rows, _FEWEST_ROWS)
    if len(X) <= max_rows:
        return X
    from sklearn.utils import check_random_state

    return np.asarray(X[np.sort(check_random_state(seed).choice(len(X), max_rows, replace=False))])


# The built-in detectors: X and the seed, then parameters of their own


def _lof(X: Matrix, _seed: Seed, n_neighbors: int = 20) -> Scores:
    """Local outlier factor: how much sparser a row's surroundings are than its neighbours'."""
    from sklearn.neighbors import LocalOutlierFactor

    check_count("n_neighbors", n_neighbors, 1)
    k = min(n_neighbors, len(X) - 1)
    detector = LocalOutlierFactor(n_neighbors=k).fit(_robustly_scaled(X))
    return np.asarray(-detector.negative_outlier_factor_, dtype=np.float64)


def _knn(X: Matrix, _seed: Seed, n_neighbors: int = 10) -> Scores:
    """The mean distance to the nearest other rows."""
    from sklearn.neighbors import NearestNeighbors

    check_count("n_neighbors", n_neighbors, 1)
    k = min(n_neighbors, len(X) - 1)
    distances, _ = NearestNeighbors(n_neighbors=k).fit(_robustly_scaled(X)).kneighbors()
    return np.asarray(distances.mean(axis=1), dtype=np.float64)


def _iforest(
    X: Matrix, seed: Seed, n_estimators: int = 100, max_samples: int | float | str = "auto"
) -> Scores:
    """Isolation forest: how few random cuts it takes to have a row alone."""
    from sklearn.ensemble import IsolationForest

    check_count("n_estimators", n_estimators, 1)
    detector = IsolationForest(
        n_estimators=n_estimators, max_samples=max_samples, random_state=seed
    )
    return np.asarray(-detector.fit(X).score_samples(X), dtype=np.float64)


def _mahalanobis(
    X: Matrix, seed: Seed, support_fraction: float | None = None, max_rows: int = 10_000
) -> Scores:
    """The squared distance from the centre in units of the spread of the innermost rows.

    Where these rows span no volume, as when most values of a column are equal, all rows count, and
    directions without any spread do not. The unit of a column makes no difference to the distance;
    the columns are scaled only so that rounding makes none either. The innermost rows are sought
    among at most `max_rows`, drawn at random: more take a minute and hardly move the centre.
    """
    from sklearn.covariance import EmpiricalCovariance, MinCovDet

    Z = _robustly_scaled(X)
    n_columns = Z.shape[1]
    sample = _sample(Z, seed, max_rows)
    fitted: Any = None
    if len(sample) > 2 * n_columns:
        with warnings.catch_warnings():
            # That the matrix is singular is found out below, and dealt with.
            warnings.simplefilter("ignore")
            try:
                fitted = MinCovDet(support_fraction=support_fraction, random_state=seed).fit(sample)
            except ValueError:
                fitted = None
    inverse, rank = (None, 0) if fitted is None else _inverse(fitted.covariance_)
    if inverse is None or rank < n_columns:
        fitted = EmpiricalCovariance().fit(Z)
        inverse, _ = _inverse(fitted.covariance_)
    away = Z - fitted.location_
    return np.asarray(np.maximum(np.einsum("ij,ij->i", away @ inverse, away), 0.0))


def _inverse(covariance: Matrix) -> tuple[Matrix, int]:
    """The (pseudo-)inverse of a covariance, and its rank.

    Both by way of the correlations: next to a column with a huge variance all others would count
    as constant.
    """
    deviations = np.sqrt(np.diag(covariance))
    deviations = np.where(deviations > 0, deviations, 1.0)
    correlations = covariance / np.outer(deviations, deviations)
    inverse = np.linalg.pinv(correlations, hermitian=True) / np.outer(deviations, deviations)
    return inverse, int(np.linalg.matrix_rank(correlations, hermitian=True))


def _ecod(X: Matrix, _seed: Seed) -> Scores:
    """Empirical cumulative distributions: how far in the tails of its columns a row lies.

    Each column gives two surprises, -log of the share of rows at most as large and of those at
    least as large. They are added up over the columns for the lower tails, for the upper ones, and
    for the longer tail of each column by its skewness; the largest of the three sums is the score.
    """
    n = len(X)
    lower, upper, longer = np.zeros(n), np.zeros(n), np.zeros(n)
    for column in X.T:
        ordered = np.sort(column)
        at_most = -np.log(np.searchsorted(ordered, column, side="right") / n)
        at_least = -np.log((n - np.searchsorted(ordered, column, side="left")) / n)
        lower += at_most
        upper += at_least
        longer += at_most if _skewness(column) < 0 else at_least
    return np.maximum(np.maximum(lower, upper), longer)


def _skewness(column: NDArray[np.float64]) -> float:
    away = column - column.mean()
    deviation = float(np.sqrt(np.mean(away**2)))
    return float(np.mean((away / deviation) ** 3)) if deviation > 0 else 0.0


def _hbos(X: Matrix, _seed: Seed, n_bins: int = 10) -> Scores:
    """Histograms: how sparse the bins are that a row falls into, relative to each column's peak."""
    check_count("n_bins", n_bins, 2)
    total = np.zeros(len(X))
    for column in X.T:
        low, width = column.min(), np.ptp(column)
        if width > 0:
            bins = np.minimum(((column - low) / width * n_bins).astype(np.int64), n_bins - 1)
            heights = np.bincount(bins, minlength=n_bins)
            total -= np.log(heights[bins] / heights.max())
    return total


def _ocsvm(
    X: Matrix,
    seed: Seed,
    nu: float = 0.5,
    gamma: float | str = "scale",
    max_rows: int = 10_000,
) -> Scores:
    """One-class support vector machine: how far outside its smooth boundary a row lies.

    The time to learn grows with more than the square of the rows, so the boundary is learned from
    at most `max_rows` of them, drawn at random.
    """
    from sklearn.svm import OneClassSVM

    Z = _robustly_scaled(X)
    detector = OneClassSVM(nu=nu, gamma=gamma).fit(_sample(Z, seed, max_rows))
    return np.asarray(-detector.score_samples(Z), dtype=np.float64)


def _pca(X: Matrix, _seed: Seed, n_components: int = 0) -> Scores:
    """What the leading principal components do not reconstruct, in units of what is usual there.

    The squared error along each remaining axis is divided by its eigenvalue, the mean of that
    error, so that a small deviation counts where rows hardly ever deviate. Without leading
    components (the default) all axes count; axes along which nothing varies never do.
    """
    Z = _robustly_scaled(X)
    away = Z - Z.mean(axis=0)
    deviations = away.std(axis=0)
    away /= np.where(deviations > 0, deviations, 1.0)
    values, axes = np.linalg.eigh(away.T @ away / len(away))
    values, axes = values[::-1], axes[:, ::-1]
    counts = values > values[0] * len(values) * np.finfo(np.float64).eps
    check_count("n_components", n_components, 0)
    if n_components >= np.count_nonzero(counts) > 0:
        raise StairError(
            f"n_components={n_components} leaves nothing to reconstruct; expected less than "
            f"{np.count_nonzero(counts)}, the number of axes along which X varies"
        )
    counts[:n_components] = False
    return np.asarray((away @ axes[:, counts]) ** 2 @ (1.0 / values[counts]))


_BUILT_IN: dict[str, Callable[..., Scores]] = {
    "lof": _lof,
    "knn": _knn,
    "iforest": _iforest,
    "mahalanobis": _mahalanobis,
    "ecod": _ecod,
    "hbos": _hbos,
    "ocsvm": _ocsvm,
    "pca": _pca,
}


# PyOD's


def _pyod_names() -> list[str] | None:
    """The names of PyOD's modules that hold a detector for tables; None without PyOD."""
    if importlib.util.find_spec("pyod") is None:
        return None
    models = importlib.import_module("pyod.models")
    found = (module.name for module in pkgutil.iter_modules(models.__path__))
    return sorted(name for name in found if not _NOT_FOR_TABLES.fullmatch(name))


def _pyod_scores(key: str, X: Matrix, seed: Seed, params: dict[str, object]) -> Scores:
    module_name = key.removeprefix(_PYOD)
    known = _pyod_names()
    if known is None or module_name not in known:
        raise StairError(_unknown(key, known))
    try:
        module = importlib.import_module(f"pyod.models.{module_name}")
    except ImportError as error:
        raise StairError(
            f'PyOD\'s detector "{module_name}" needs a package that is not installed: {error}'
        ) from error
    wanted = module_name.replace("_", "")
    made: Any = next(
        (
            item
            for label, item in vars(module).items()
            if inspect.isclass(item)
            and item.__module__ == module.__name__
            and label.casefold().replace("_", "") == wanted
        ),
        None,
    )
    if made is None:
        raise StairError(f"pyod.models.{module_name} has no detector; {_unknown(key, known)}")
    takes_seed = "random_state" in inspect.signature(made).parameters
    if takes_seed and seed is not None:
        params = {"random_state": seed, **params}
    try:
        with _seeded(None if takes_seed else seed):
            found = made(**params).fit(X).decision_scores_
    except (TypeError, ValueError, ImportError) as error:
        raise StairError(f'PyOD\'s detector "{module_name}" could not be used: {error}') from error
    return np.asarray(found, dtype=np.float64).reshape(len(X))


@contextmanager
def _seeded(seed: Seed) -> Iterator[None]:
    """NumPy's global random numbers from a seed and then as before.

    Some of PyOD's detectors draw from them and take no random_state.
    """
    if seed is None:
        yield
        return
    before = np.random.get_state()  # noqa: NPY002
    number = seed if isinstance(seed, int) else seed.randint(2**31 - 1)
    np.random.seed(number)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002


def _unknown(key: str, from_pyod: list[str] | None) -> str:
    is_forced = key.startswith(_PYOD)
    choices = [*(() if is_forced else _BUILT_IN), *(from_pyod or ())]
    near = difflib.get_close_matches(key.removeprefix(_PYOD), choices, n=1)
    hint = f' Did you mean "{_PYOD if is_forced else ""}{near[0]}"?' if near else ""
    if from_pyod is None:
        more = "PyOD, which has more, is not installed (pip install pyod)."
    else:
        others = [name for name in from_pyod if is_forced or name not in _BUILT_IN]
        more = f"From PyOD, which is installed: {', '.join(others)}."
    return f'no detector "{key}".{hint} Built in: {", ".join(_BUILT_IN)}. {more}'
