"""The shortest overlapping rules, with a default for the rest."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair.data.conversion import count_fractions
from stair.errors import StairError
from stair.estimators.base import RuleClassifier, check_count, check_number, check_random_state
from stair.learn.distill import EFFORTS, distill
from stair.learn.seeds import seed_of
from stair.learn.table import Table
from stair.rules.rule_set import RuleSet


class DistilledStair(RuleClassifier):
    """The shortest overlapping outlier rules above a floor; everything else is an inlier.

    Parameters
    ----------
    min_score : float
        The floor for F1 of the outlier class (accuracy with more than two classes, where the
        rules speak of every class but the most frequent one).
    max_rule_length : int
        The most attributes that one rule may have.
    min_outliers : int or None
        How many outliers a rule must cover at least. None means 5, or a tenth of all where
        there are fewer than 50, and less where that does not reach the floor. 1 gives the
        shortest rules there are, drawn around single rows where that pays. A row whose sample
        weight is 3 counts as three, as long as all weights are whole numbers; otherwise a row is
        one.
    effort : {"normal", "fast"}
        How long to look for shorter rules.
    time_limit : float or None
        Stop looking after so many seconds. More time never gives longer rules.
    pos_label : label or None
        The outlier class. None means -1 of -1/+1, 1 of 0/1, True, or a word like "fraud";
        otherwise the smaller class, and a warning (`OutlierGuessed`) says so.
    random_state : int, RandomState or None
        The seed of the search; None is the same as 0.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, those that cover most outliers first, and the default label.
    bound_ : int
        No choice among the `n_candidates_` rules that were looked at last is shorter than this;
        0 where that was not solved.
    n_candidates_ : int
        How many rules `bound_` speaks of.
    min_outliers_ : int
        How many outliers each rule covers at least.
    score_ : float
        F1 (or accuracy) of `rules_` on the training rows.
    floor_reached_ : bool
        Whether `score_` is above `min_score`.
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
    """

    stops_at_the_floor = True

    def __init__(
        self,
        min_score: float = 0.8,
        max_rule_length: int = 10,
        min_outliers: int | None = None,
        effort: str = "normal",
        time_limit: float | None = None,
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.min_score = min_score
        self.max_rule_length = max_rule_length
        self.min_outliers = min_outliers
        self.effort = effort
        self.time_limit = time_limit
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rules for labels y.

        X is an array of numbers (NaN: missing), or a frame of pandas, Polars or Arrow, whose
        columns may also be categories, text and times. Of a frame with such columns, identifiers
        and what has one value alone are left out, as in `stair.summarize`: a list of ids is a
        memory of the rows. `left_out_` names them with the reason.
        """
        return self._fit(X, y, sample_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_rule_length", self.max_rule_length, 1)
        if self.min_outliers is not None:
            check_count("min_outliers", self.min_outliers, 1)
        if self.effort not in EFFORTS:
            raise StairError(f"effort={self.effort!r}; expected {' or '.join(EFFORTS)}")
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0.0, np.inf)
        check_random_state(self.random_state)

    def _learn(
        self, table: Table, labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[RuleSet, float]:
        effort: Any = self.effort
        found = distill(
            table.columns,
            table.codes,
            labels,
            table.values,
            classes=tuple(self.classes_.tolist()),
            schema=table.schema,
            positive=self._positive,
            weights=weights,
            repeated=weights is not None and not count_fractions(weights),
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            min_outliers=self.min_outliers,
            effort=effort,
            time_limit=self.time_limit,
            seed=seed_of(self.random_state),
        )
        self.bound_, self.n_candidates_ = found.bound, found.n_candidates
        self.min_outliers_ = found.min_outliers
        return found.rules, found.score
