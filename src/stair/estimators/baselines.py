"""The paper's baselines, ID3 and CART."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError
from stair.estimators.base import TreeClassifier, check_count, check_random_state
from stair.learn.table import Table, in_order
from stair.learn.trees import cart_leaves, id3_leaves
from stair.rules.rule_set import Leaf


class ID3(TreeClassifier):
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
        The outlier class. None means -1 of -1/+1, 1 of 0/1, True, or a word like "fraud";
        otherwise the smaller class, and a warning (`OutlierGuessed`) says so.
    random_state : int, RandomState or None
        scikit-learn's tree breaks ties at random; the paper's runs used 0. None is another draw
        each time.

    Attributes
    ----------
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
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
        check_random_state(self.random_state)
        check_count("start_depth", self.start_depth, 1)
        if self.max_depth is not None:
            check_count("max_depth", self.max_depth, 1)
            if self.max_depth < self.start_depth:
                raise StairError(
                    f"max_depth={self.max_depth} is less than start_depth={self.start_depth}; "
                    "expected at least as much"
                )

    def _leaves(
        self, table: Table, labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        columns, X = in_order(table)
        return id3_leaves(
            X, labels, weights, columns, positive=self._positive, min_score=self.min_score,
            start_depth=self.start_depth, max_depth=self.max_depth, random_state=self.random_state,
        )  # fmt: skip


class CART(TreeClassifier):
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
        The outlier class. None means -1 of -1/+1, 1 of 0/1, True, or a word like "fraud";
        otherwise the smaller class, and a warning (`OutlierGuessed`) says so.
    random_state : int, RandomState or None
        scikit-learn's tree breaks ties at random; the paper's runs used 0. None is another draw
        each time.

    Attributes
    ----------
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
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
        check_random_state(self.random_state)
        if self.criterion not in ("entropy", "gini"):
            raise StairError(f"criterion={self.criterion!r}; expected 'entropy' or 'gini'")

    def _leaves(
        self, table: Table, labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        columns, X = in_order(table)
        return cart_leaves(
            X, labels, weights, columns, positive=self._positive, min_score=self.min_score,
            criterion=self.criterion, random_state=self.random_state,
        )  # fmt: skip
