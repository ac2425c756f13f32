"""L-STAIR: partitions of the data and rules for each."""

from __future__ import annotations

from stair.estimators.base import WeightedClassifier
from stair.learn.method import Learned
from stair.learn.methods import LocalMethod


class LocalStair(WeightedClassifier, LocalMethod):
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
    min_rows_per_value, max_values, time_windows
        See `stair.DistilledStair`.
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

    def _keep(self, learned: Learned) -> None:
        super()._keep(learned)
        assert learned.local is not None
        self.rounds_ = learned.local.rounds
        self.assigned_score_, self.routed_score_ = learned.local.assigned, learned.local.routed
