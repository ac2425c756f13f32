"""What all classifiers share: input, labels, and everything after the rules are there."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from stair.data import Frame, from_object
from stair.data.arrays import EXACT
from stair.data.conversion import count_fractions, whole_columns
from stair.data.frame import Array, Integers
from stair.data.names import in_name_order
from stair.data.weights import weights_of
from stair.errors import (
    FloorNotReached,
    OutlierGuessed,
    StairError,
    no_such_column,
    spoken,
)
from stair.learn.method import Learned, Method, Task
from stair.learn.table import Table, choose_fields, encode, read_to_learn
from stair.progress import listener
from stair.rules.columns import Numbers
from stair.rules.figures import score_in_words
from stair.rules.objective import reaches
from stair.rules.rule_set import Explanation
from stair.rules.schema import Schema, Values
from stair.verdict.labels import outlier_among


class RuleClassifier(ClassifierMixin, BaseEstimator, Method):  # type: ignore[misc]
    """A method as a classifier: input, labels, and everything after the rules are there."""

    _schema: Schema | None
    left_out_: dict[str, str]
    stops_at_the_floor = False  # whether rules are made shorter until the score is just above it

    def _fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | str | None = None
    ) -> Self:
        self.check()
        frame = frame_of(X)
        values: NDArray[np.float64] | Values
        if frame is None:
            self._schema, self.left_out_ = None, {}
            _check_exact(X)
            with np.errstate(invalid="ignore"):  # it adds up what may be 1e308 and −1e308
                values, targets = validate_data(
                    self, X, y, dtype=np.float64, ensure_all_finite="allow-nan",
                    ensure_min_samples=1,
                )  # fmt: skip
        else:
            values, targets = self._read(frame, y)
        weights = None
        if isinstance(sample_weight, str):
            sample_weight = _column_of(X, sample_weight)
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, np.empty((len(targets), 1)), ensure_non_negative=True
            )
            seen = weights > 0
            if not seen.any():
                raise StairError("all sample weights are 0, so there is no row to learn from")
            values = values.take(seen) if isinstance(values, Values) else values[seen]
            targets, weights = targets[seen], weights[seen]
        self.classes_, labels = _classes(targets)
        codes = labels.astype(np.int32, copy=False)
        self._positive = self._positive_class(codes, weights)
        task = Task(
            tuple(self.classes_.tolist()),
            self._positive,
            weights,
            is_repeated=weights is not None and not count_fractions(weights),
            say=listener(),
        )
        return self._learned(self.learn(self._table(values, codes), codes, task))

    def _read(self, frame: Frame, y: ArrayLike) -> tuple[Values, Array]:
        """The values of a frame that is more than numbers, and the labels of its rows."""
        targets = _check_y(y)
        check_consistent_length(next(iter(frame.columns.values())), targets)
        fields, left_out = choose_fields(frame)
        values = read_to_learn(Schema(fields), frame)
        self._schema = Schema(fields, tuple(frame.columns)).marked_by(values).remembering(values)
        self.left_out_ = {name: spoken(why) for name, why in left_out.items()}
        self.feature_names_in_ = np.array(list(frame.columns), dtype=object)
        self.n_features_in_ = len(frame.columns)
        return values, targets

    def _table(self, values: NDArray[np.float64] | Values, labels: NDArray[np.int32]) -> Table:
        """What is learned from: columns of codes, in the order of their names."""
        if isinstance(values, Values):
            assert self._schema is not None
            return encode(
                self._schema, values, labels, lists=self.lists, time_windows=self.time_windows
            )
        names = self._names()
        order = in_name_order(names)
        whole = whole_columns(values)
        columns = tuple(Numbers(names[j], j, whole[j]) for j in order)
        matrix = values if order == sorted(order) else values[:, order]
        by_name = Values({name: values[:, j] for j, name in enumerate(names)}, len(values))
        schema = Schema.of_numbers(names, [n for n, w in zip(names, whole, strict=True) if w])
        return Table(schema, columns, matrix, by_name)

    def _keep(self, learned: Learned) -> None:
        """The attributes that learning leaves."""
        self.rules_, self.score_ = learned.rules, learned.score
        self.trace_ = list(learned.trace)

    def _learned(self, learned: Learned) -> Self:
        self._keep(learned)
        self.floor_reached_ = reaches(self.score_, self.floor)
        if learned.outcomes:
            self.floor_reached_ = all(outcome.is_met for outcome in learned.outcomes)
        if not self.floor_reached_:
            warnings.warn(self._floor_message(), FloorNotReached, stacklevel=4)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The label of each row."""
        X = self._checked(X)
        places = {label: k for k, label in enumerate(self.classes_.tolist())}
        numbers_ = [places[rule.label] for rule in self.rules_] + [places[self.rules_.default]]
        result: Array = self.classes_[np.array(numbers_)[self.rules_.assign(X)]]
        return result

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The share of each class among the training rows of the rule that covers the row.

        A rule may say outlier from a share of half the floor on, where that makes rules shorter.
        """
        X = self._checked(X)  # before rules_ is looked up: it says so where there was no fit
        return self.rules_.predict_proba(X)

    def explain(self, row: object) -> Explanation:
        """Which rule decides about this row, and why."""
        check_is_fitted(self)
        return self.rules_.explain(row)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        # scikit-learn's checks ask for the best score on easy data unless less is meant.
        tags.classifier_tags.poor_score = self.stops_at_the_floor
        return tags

    def _checked(self, X: ArrayLike) -> Any:
        check_is_fitted(self)
        if getattr(self, "_schema", None) is not None:
            return self._named(X)
        _check_exact(X)
        with np.errstate(invalid="ignore"):
            checked: NDArray[np.float64] = validate_data(
                self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
            )
        return checked

    def _named(self, X: object) -> object:
        """A table by the names of its columns: an array has those that were fitted, in order."""
        if isinstance(X, list | tuple) and not any(isinstance(row, Mapping) for row in X):
            X = np.array(X, dtype=object)
        if not isinstance(X, np.ndarray) or X.dtype.names is not None:
            return X
        if X.ndim != 2 or X.shape[1] != self.n_features_in_:
            shape = " × ".join(map(str, X.shape))
            raise StairError(
                f"X has the shape {shape}, but {type(self).__name__} was fitted on "
                f"{self.n_features_in_} columns"
            )
        return dict(zip(self.feature_names_in_.tolist(), X.T, strict=True))

    def _positive_class(
        self, codes: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> int | None:
        """The index of the outlier class of two; None where there are more."""
        counts = np.bincount(codes).tolist()
        if weights is not None and len(counts) == 2:  # exactly: no tie depends on the rows' order
            counts = [math.fsum(weights[codes == k].tolist()) for k in (0, 1)]
        at, guess = outlier_among(
            self.classes_.tolist(), counts, self.pos_label, name="y", setting="pos_label"
        )
        if guess:
            warnings.warn(spoken(guess), OutlierGuessed, stacklevel=4)
        return at

    def _names(self) -> tuple[str, ...]:
        given = getattr(self, "feature_names_in_", None)
        if given is None:
            return tuple(f"x{j}" for j in range(self.n_features_in_))
        names = tuple(map(str, given))
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise StairError(f"two columns are called {twice!r}; rules need names of their own")
        return names

    def _floor_message(self) -> str:
        what = "F1" if self._positive is not None else "accuracy"
        return (
            f"{what} {score_in_words(self.score_, self.floor, 3)} is the best that was found "
            f"(asked for more than {self.floor:g}); kept them anyway"
        )


class WeightedClassifier(RuleClassifier):
    """One whose rows may have weights."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | str | None = None) -> Self:
        """Learn rules for labels y. Rows may have weights: an array, or a column of X by its name.

        X is an array of numbers (NaN: missing), or a frame of pandas, Polars or Arrow, whose
        columns may also be categories, text and times. Of a frame with such columns, identifiers
        and what has one value alone are left out, as in `stair.summarize`: a list of ids is a
        memory of the rows. `left_out_` names them with the reason.
        """
        return self._fit(X, y, sample_weight)


def _classes(targets: Array) -> tuple[Array, Integers]:
    """The classes in order, and the place of each label among them."""
    try:
        if targets.dtype.kind in "biu" and targets.size:
            low, high = int(targets.min()), int(targets.max())
            # Few whole numbers are classes: counted in place of sorted, and not looked at again,
            # which took a fifth of a fit on some hundred rows.
            if high - low < min(1000, targets.size // 2):
                places = targets.astype(np.int64) - low
                seen = np.bincount(places) > 0
                classes = (np.flatnonzero(seen) + low).astype(targets.dtype)
                return classes, (np.cumsum(seen) - 1).astype(np.int32)[places]
        check_classification_targets(targets)
        return np.unique(targets, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in targets.tolist()})
        raise StairError(
            f"y mixes values of the types {', '.join(kinds)}, which have no order; "
            "give all labels as one type"
        ) from None


def frame_of(X: object) -> Frame | None:
    """A table with columns that are more than numbers; None for all else, which scikit-learn
    makes an array of."""
    if isinstance(X, np.ndarray | list | tuple) or not hasattr(X, "columns"):
        return None
    import narwhals as nw

    names = [str(name) for name in getattr(X, "column_names", X.columns)]
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise StairError(f"two columns are called {twice!r}; rules need names of their own")
    wrapped: Any = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(wrapped, nw.DataFrame):
        return None
    return None if all(map(_is_numeric, wrapped.iter_columns())) else from_object(X)


def _column_of(X: object, name: str) -> ArrayLike:
    """What each row counts, by a column of the table."""
    known = [str(each) for each in getattr(X, "column_names", getattr(X, "columns", ()))]
    if name not in known:
        raise no_such_column(name, known, "X")
    found, _ = weights_of(from_object(X).columns[name], name)
    return np.ldexp(found.whole.astype(np.float64), found.unit.exponent)


def _is_numeric(series: Any) -> bool:
    """Whether a column is numbers, or objects that are: true and false are numbers, too."""
    import narwhals as nw

    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return True
    if series.dtype in (nw.String, nw.Datetime, nw.Date, nw.Duration, nw.Time):
        return False
    known = [v for v in series.to_list() if v is not None and v == v]
    return bool(known) and all(isinstance(v, int | float | np.number | np.bool_) for v in known)


def _check_exact(X: object) -> None:
    """Refuse whole numbers that float64 would round, before scikit-learn makes it of them."""
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        parts = [np.asarray(X[name]) for name in X.columns]
    elif isinstance(X, np.ndarray):
        parts = [X]
    elif isinstance(X, list | tuple):
        parts = [np.array([v for row in X if isinstance(row, list | tuple) for v in row], object)]
    else:
        return
    for part in parts:
        if part.dtype.kind in "iu" and part.dtype.itemsize == 8 and part.size:
            largest = max(int(part.max()), -int(part.min()))
        elif part.dtype.kind == "O":
            listed = part.ravel().tolist()
            largest = max((abs(int(v)) for v in listed if isinstance(v, int)), default=0)
        else:
            continue
        if largest > EXACT:
            raise StairError(
                f"X has whole numbers up to {largest}, which scikit-learn rounds to 64-bit floats; "
                "stair.summarize keeps them exact"
            )
