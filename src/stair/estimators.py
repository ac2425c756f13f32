"""Thin scikit-learn classifiers around the learners.

Two classes are scored by F1 of the outlier class, more classes by accuracy.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from stair.columns import Numbers
from stair.engines.memory import MemoryEngine
from stair.errors import FloorNotReached, StairError
from stair.grow import grow, leaves_of
from stair.localize import LOCALITY, local_rules
from stair.objective import reaches, score_of
from stair.rules import Explanation, Leaf, RuleSet, rule_set_of
from stair.table import Field, Table
from stair.trees import cart_leaves, id3_leaves

__all__ = ["CART", "ID3", "LocalStair", "Stair"]


class _RuleClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What Stair, ID3 and CART share: input, labels, and everything after the rules are there."""

    min_score: float
    pos_label: Any

    def _fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        self._check_parameters()
        values, targets = validate_data(
            self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=1
        )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, values, ensure_non_negative=True)
            seen = weights > 0
            if not seen.any():
                raise StairError("all sample weights are 0, so there is no row to learn from")
            values, targets, weights = values[seen], targets[seen], weights[seen]
        self.classes_, labels = _classes(targets)
        if len(self.classes_) < 2:
            raise StairError(
                f"y has only one class ({self.classes_[0]}), so there is nothing to tell apart; "
                "rules need at least two classes"
            )
        self._positive = self._positive_class()
        codes = labels.astype(np.int32, copy=False)
        return self._learned(*self._learn(values, codes, weights))

    def _learned(self, rules: RuleSet, score: float) -> Self:
        self.rules_, self.score_ = rules, score
        self.floor_reached_ = reaches(self.score_, self.min_score)
        if not self.floor_reached_:
            warnings.warn(self._floor_message(), FloorNotReached, stacklevel=4)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row."""
        X = self._checked(X)
        places = {label: k for k, label in enumerate(self.classes_.tolist())}
        numbers_ = [places[rule.label] for rule in self.rules_] + [places[self.rules_.default]]
        result: NDArray[Any] = self.classes_[np.array(numbers_)[self.rules_.assign(X)]]
        return result

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The share of each class among the training rows of the rule that covers the row."""
        X = self._checked(X)  # before rules_ is looked up: it says so where there was no fit
        return self.rules_.predict_proba(X)

    def explain(self, row: Any) -> Explanation:
        """Which rule decides about this row, and why."""
        check_is_fitted(self)
        return self.rules_.explain(row)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _checked(self, X: ArrayLike) -> NDArray[np.float64]:
        check_is_fitted(self)
        checked: NDArray[np.float64] = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        return checked

    def _learn(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[RuleSet, float]:
        """The rules, and their score on the rows they were learned from."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        _check_number("min_score", self.min_score, 0.0, 1.0)

    def _positive_class(self) -> int | None:
        """The index of the outlier class: the larger of two labels, unless told otherwise."""
        labels: list[Any] = self.classes_.tolist()
        if len(labels) > 2:
            if self.pos_label is not None:
                raise StairError(
                    f"pos_label={self.pos_label!r} needs two classes, but y has {len(labels)}; "
                    "leave it out to score by accuracy"
                )
            return None
        if self.pos_label is None:
            return 1
        if self.pos_label not in labels:
            raise StairError(f"pos_label={self.pos_label!r} is not in y, which has {labels}")
        return labels.index(self.pos_label)

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
            f"{what} {self.score_:.3f} is the best that these rules reach "
            f"(asked for more than {self.min_score:g}); kept them anyway"
        )


class _TreeClassifier(_RuleClassifier):
    """Disjoint rules from one tree."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rules for labels y. NaN in X is a missing value."""
        return self._fit(X, y, sample_weight)

    def _learn(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[RuleSet, float]:
        leaves, default = self._leaves(X, labels, weights)
        classes = tuple(self.classes_.tolist())
        rules = rule_set_of(leaves, classes, self._names(), default, self._positive)
        groups = ((leaf.label, leaf.counts) for leaf in leaves)
        return rules, score_of(groups, rules.totals, self._positive)

    def _leaves(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        """The leaves that cover all rows, and the class for a row that none covers."""
        raise NotImplementedError


class Stair(_TreeClassifier):
    """Rules that maximise purity per length, grown until their score is above a floor.

    Parameters
    ----------
    min_score : float
        The floor: rules are divided until F1 of the outlier class (accuracy where y has more
        than two classes) is above it.
    max_rule_length : int
        The most attributes that one rule may have (the paper's L_m).
    max_total_length : int or None
        Stop before the total length of all rules would be larger than this.
    pos_label : label or None
        The outlier class; the larger of the two labels by default.
    engine : {"memory", "duckdb", "dask", "spark"}
        Where the rows are. With "duckdb", `fit` takes a path or a pattern of files, with "dask" or
        "spark" a DataFrame of theirs; y is then the name of the label's column.
    bins : int
        For engines other than "memory": the most bins of one column.
    memory : str or int or None
        For engine "duckdb": the memory to keep within, such as "1GB".
    client : distributed.Client, str or None
        For engine "dask": the client of a cluster, or its scheduler's address.

    Attributes
    ----------
    rules_ : RuleSet
        Disjoint rules that cover every row.
    trace_ : list of Step
        The state after each split: stabilizer M, objective S, purity A0, total length B0, score
        and number of rules. It may go on a few steps beyond the rules that were kept.
    score_ : float
        F1 (or accuracy) of `rules_` on the training rows.
    floor_reached_ : bool
        Whether `score_` is above `min_score`.
    """

    def __init__(
        self,
        min_score: float = 0.8,
        max_rule_length: int = 10,
        max_total_length: int | None = None,
        pos_label: Any = None,
        engine: str = "memory",
        bins: int = 1024,
        memory: str | int | None = None,
        client: Any = None,
    ) -> None:
        self.min_score = min_score
        self.max_rule_length = max_rule_length
        self.max_total_length = max_total_length
        self.pos_label = pos_label
        self.engine = engine
        self.bins = bins
        self.memory = memory
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rules for labels y. NaN in X is a missing value."""
        if self.engine == "memory":
            return self._fit(X, y, sample_weight)
        if sample_weight is not None:
            raise StairError(f"the engine {self.engine} counts rows, so it takes no sample_weight")
        from stair.scale.rules import Limits
        from stair.scale.summarize import fit_large

        self._check_parameters()
        limits = Limits(self.min_score, self.max_rule_length, self.max_total_length)
        coded, learned = fit_large(
            X, y, self.engine, limits,
            positive=self.pos_label, bins=self.bins, memory=self.memory, client=self.client,
        )  # fmt: skip
        names = [field.name for field in coded.coding.fields]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self.classes_, self._positive = np.array(coded.classes), coded.positive
        self.trace_ = list(learned.trace)
        return self._learned(learned.rules, learned.score)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_count("max_rule_length", self.max_rule_length, 1)
        if self.max_total_length is not None:
            _check_count("max_total_length", self.max_total_length, 0)

    def _leaves(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        columns = [Numbers(name, j) for j, name in enumerate(self._names())]
        engine = MemoryEngine(columns, X, labels, len(self.classes_), weights)
        growth = grow(
            engine,
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            max_total_length=self.max_total_length,
            positive=self._positive,
        )
        self.trace_ = growth.steps
        return leaves_of(growth, engine.unit), growth.root.label

    def _floor_message(self) -> str:
        limits = [f"at most {self.max_rule_length} attributes each"]
        if self.max_total_length is not None:
            limits.append(f"a total length of at most {self.max_total_length}")
        what = "F1" if self._positive is not None else "accuracy"
        return (
            f"{what} {self.score_:.3f} is the best that rules of {' and '.join(limits)} reach here "
            f"(asked for more than {self.min_score:g}); kept them anyway"
        )


class LocalStair(_RuleClassifier):
    """L-STAIR: partitions of the data and short rules for each, learned together.

    A new row is routed to the partition with the nearest center, and judged by its rules. The
    paper judges training rows by the partition that training moved them to, which knew their
    labels; both scores are kept, as `routed_score_` and `assigned_score_`.

    Parameters
    ----------
    min_score : float
        The floor for F1 of the outlier class (accuracy with more than two classes).
    max_rule_length : int
        The most attributes that one rule may have.
    n_partitions : int or "auto"
        The partitions to start with; their number changes as they are learned. "auto" tries 2, 4
        and 8 and keeps the shortest rules above the floor.
    locality : float
        λ: what squared distance, in units of what is usual in the data, weighs beside one wrong
        row when a row chooses its partition.
    floor_on : {"routed", "assigned"}
        Which of the two scores must be above the floor; the paper's is "assigned".
    max_rounds : int
        The most rounds of the loop.
    pos_label : label or None
        The outlier class; the larger of the two labels by default.
    random_state : int or None
        The seed of k-means; None is the same as 0.

    Attributes
    ----------
    rules_ : LocalRuleSet
        The partitions with their centers, descriptions and rules.
    rounds_ : list of Round
        Every round: the objective (error and locality), the partitions, both scores, the length.
    trace_ : list of Step
        The growth of the last round's trees.
    """

    def __init__(
        self,
        min_score: float = 0.8,
        max_rule_length: int = 10,
        n_partitions: int | str = 2,
        locality: float = LOCALITY,
        floor_on: str = "routed",
        max_rounds: int = 10,
        pos_label: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.min_score = min_score
        self.max_rule_length = max_rule_length
        self.n_partitions = n_partitions
        self.locality = locality
        self.floor_on = floor_on
        self.max_rounds = max_rounds
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn partitions and rules for labels y. NaN in X is a missing value."""
        return self._fit(X, y)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_count("max_rule_length", self.max_rule_length, 1)
        _check_count("max_rounds", self.max_rounds, 1)
        if self.n_partitions != "auto":
            _check_count("n_partitions", self.n_partitions, 1)
        _check_number("locality", self.locality, 0.0, 1e9)
        if self.floor_on not in ("routed", "assigned"):
            raise StairError(f"floor_on={self.floor_on!r}; expected 'routed' or 'assigned'")
        if self.random_state is not None:
            _check_count("random_state", self.random_state, 0)

    def _learn(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[RuleSet, float]:
        del weights
        names = self._names()
        columns = tuple(Numbers(name, j) for j, name in enumerate(names))
        fields = tuple(Field(name, "number", name) for name in names)
        values: dict[str, NDArray[Any]] = {name: X[:, j] for j, name in enumerate(names)}
        floor_on: Any = self.floor_on
        n_partitions: Any = self.n_partitions
        rules, local = local_rules(
            Table(fields, columns, X, values),
            labels,
            tuple(self.classes_.tolist()),
            positive=self._positive,
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            n_partitions=n_partitions,
            locality=self.locality,
            floor_on=floor_on,
            max_rounds=self.max_rounds,
            seed=self.random_state or 0,
        )
        self.rounds_, self.trace_ = local.rounds, local.steps
        self.assigned_score_, self.routed_score_ = local.assigned, local.routed
        return rules, local.routed if floor_on == "routed" else local.assigned


class ID3(_TreeClassifier):
    """The paper's first baseline: an entropy tree, grown one level deeper until the floor.

    Parameters
    ----------
    min_score : float
        The floor for F1 (or accuracy).
    start_depth : int
        The depth of the first tree that is tried.
    max_depth : int or None
        The depth at which to give up; None grows until the leaves are pure.
    pos_label : label or None
        The outlier class; the larger of the two labels by default.
    random_state : int
        scikit-learn's tree breaks ties at random; the paper's runs used 0.
    """

    def __init__(
        self,
        min_score: float = 0.8,
        start_depth: int = 3,
        max_depth: int | None = None,
        pos_label: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.min_score = min_score
        self.start_depth = start_depth
        self.max_depth = max_depth
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_count("start_depth", self.start_depth, 1)
        if self.max_depth is not None:
            _check_count("max_depth", self.max_depth, 1)
            if self.max_depth < self.start_depth:
                raise StairError(
                    f"max_depth={self.max_depth} is less than start_depth={self.start_depth}; "
                    "expected at least as much"
                )

    def _leaves(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        return id3_leaves(
            X, labels, weights, self._names(), positive=self._positive, min_score=self.min_score,
            start_depth=self.start_depth, max_depth=self.max_depth, random_state=self.random_state,
        )  # fmt: skip


class CART(_TreeClassifier):
    """The paper's second baseline: a full tree, pruned as far as the floor allows.

    The minimal cost-complexity path is walked from its largest alpha (the root alone) to the
    first tree whose score is above the floor.

    Parameters
    ----------
    min_score : float
        The floor for F1 (or accuracy).
    criterion : {"entropy", "gini"}
        How scikit-learn's tree measures impurity; the paper's figures need entropy.
    pos_label : label or None
        The outlier class; the larger of the two labels by default.
    random_state : int
        scikit-learn's tree breaks ties at random; the paper's runs used 0.
    """

    def __init__(
        self,
        min_score: float = 0.8,
        criterion: str = "entropy",
        pos_label: Any = None,
        random_state: Any = 0,
    ) -> None:
        self.min_score = min_score
        self.criterion = criterion
        self.pos_label = pos_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.criterion not in ("entropy", "gini"):
            raise StairError(f"criterion={self.criterion!r}; expected 'entropy' or 'gini'")

    def _leaves(
        self, X: NDArray[np.float64], labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        return cart_leaves(
            X, labels, weights, self._names(), positive=self._positive, min_score=self.min_score,
            criterion=self.criterion, random_state=self.random_state,
        )  # fmt: skip


def _classes(targets: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """The classes in order, and the place of each label among them."""
    try:
        check_classification_targets(targets)
        if targets.dtype.kind in "biu" and targets.size:
            low, high = int(targets.min()), int(targets.max())
            if high - low < 1000:  # counted in place of sorted
                places = targets.astype(np.int64) - low
                seen = np.bincount(places) > 0
                classes = (np.flatnonzero(seen) + low).astype(targets.dtype)
                return classes, (np.cumsum(seen) - 1).astype(np.int32)[places]
        return np.unique(targets, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in targets.tolist()})
        raise StairError(
            f"y mixes values of the types {', '.join(kinds)}, which have no order; "
            "give all labels as one type"
        ) from None


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        raise StairError(f"{name}={value!r}; expected a number from {low:g} to {high:g}")


def _check_count(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise StairError(f"{name}={value!r}; expected a whole number of at least {low}")
