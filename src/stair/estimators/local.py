"""L-STAIR: partitions of the data and rules for each."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair.errors import StairError
from stair.estimators.base import RuleClassifier, check_count, check_number, check_random_state
from stair.learn.localize import LOCALITY, local_rules
from stair.learn.seeds import seed_of
from stair.learn.table import Table
from stair.rules.rule_set import RuleSet


class LocalStair(RuleClassifier):
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
        The outlier class. None means -1 of -1/+1, 1 of 0/1, True, or a word like "fraud";
        otherwise the smaller class, and a warning (`OutlierGuessed`) says so.
    random_state : int, RandomState or None
        The seed of k-means; None is the same as 0.

    Attributes
    ----------
    rules_ : RuleSet
        The partitions with their centers, descriptions and rules.
    rounds_ : list of Round
        Every round: the objective (error and locality), the partitions, both scores, the length.
    trace_ : list of Step
        The growth of the last round's trees.
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
    """

    stops_at_the_floor = True

    def __init__(
        self,
        min_score: float = 0.8,
        max_rule_length: int = 10,
        n_partitions: int | str = 2,
        locality: float = LOCALITY,
        floor_on: str = "routed",
        max_rounds: int = 10,
        pos_label: Any = None,
        random_state: Any = None,
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
        """Learn partitions and rules for labels y.

        X is an array of numbers (NaN: missing), or a frame of pandas, Polars or Arrow, whose
        columns may also be categories, text and times. Of a frame with such columns, identifiers
        and what has one value alone are left out, as in `stair.summarize`: a list of ids is a
        memory of the rows. `left_out_` names them with the reason.
        """
        return self._fit(X, y)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_rule_length", self.max_rule_length, 1)
        check_count("max_rounds", self.max_rounds, 1)
        if self.n_partitions != "auto":
            check_count("n_partitions", self.n_partitions, 1)
        check_number("locality", self.locality, 0.0, 1e9)
        if self.floor_on not in ("routed", "assigned"):
            raise StairError(f"floor_on={self.floor_on!r}; expected 'routed' or 'assigned'")
        check_random_state(self.random_state)

    def _learn(
        self, table: Table, labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[RuleSet, float]:
        del weights
        floor_on: Any = self.floor_on
        n_partitions: Any = self.n_partitions
        rules, local = local_rules(
            table,
            labels,
            tuple(self.classes_.tolist()),
            positive=self._positive,
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            n_partitions=n_partitions,
            locality=self.locality,
            floor_on=floor_on,
            max_rounds=self.max_rounds,
            seed=seed_of(self.random_state),
        )
        self.rounds_, self.trace_ = local.rounds, local.steps
        self.assigned_score_, self.routed_score_ = local.assigned, local.routed
        return rules, local.routed if floor_on == "routed" else local.assigned
