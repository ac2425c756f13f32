"""The paper's baselines, ID3 and CART."""

from __future__ import annotations

from stair.estimators.base import WeightedClassifier
from stair.learn.methods import CARTMethod, ID3Method


class ID3(WeightedClassifier, ID3Method):
    """The paper's first baseline: an entropy tree, grown one level deeper until the floor.

    Parameters
    ----------
    min_score : float
        The floor for F1 (or accuracy).
    start_depth : int
        The depth of the first tree that is tried.
    max_depth : int or None
        The depth at which to give up; None grows until the leaves are pure.
    min_rows_per_value, max_values, time_windows
        See `stair.DistilledStair`.
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


class CART(WeightedClassifier, CARTMethod):
    """The paper's second baseline: a full tree, pruned as far as the floor allows.

    The minimal cost-complexity path is walked from its largest alpha (the root alone) to the
    first tree whose score is above the floor.

    Parameters
    ----------
    min_score : float
        The floor for F1 (or accuracy).
    criterion : {"entropy", "gini"}
        How scikit-learn's tree measures impurity; the paper's figures need entropy.
    min_rows_per_value, max_values, time_windows
        See `stair.DistilledStair`.
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
