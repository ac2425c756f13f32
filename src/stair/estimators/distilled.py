"""The shortest overlapping rules, with a default for the rest."""

from __future__ import annotations

from stair.estimators.base import WeightedClassifier
from stair.export.wished import missed_in_words
from stair.learn.method import Learned
from stair.learn.methods import DistilledMethod


class DistilledStair(WeightedClassifier, DistilledMethod):
    """The shortest overlapping outlier rules above a floor; everything else is an inlier.

    Parameters
    ----------
    min_score : float or None
        The floor for F1 of the outlier class (accuracy with more than two classes, where the
        rules speak of every class but the most frequent one). None is 0.8, and no floor where
        other wishes say how much is to be explained and what false alarms that may cost.
    max_rule_length : int
        The most attributes that one rule may have.
    max_total_length : int or None
        The most attributes of all rules together.
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
    min_rows_per_value, max_values : int
        A value of a category is named only if so many rows have it, and a clause lists at most so
        many values.
    time_windows : bool
        Whether a rule may ask for a time between two others. By default it asks for times since
        one or until one: a few hours of one day are a coincidence more often than a reason.
    beta : float
        The floor is on F-beta: above 1 an outlier that is missed counts more than a false alarm.
    min_precision, min_rule_precision, min_recall : float or None
        Of all rows that some rule covers the part that must be outliers; the same of each rule by
        itself; of all outliers the part that some rule must cover.
    max_alerts : int, float or None
        The most rows that rules may cover: so many, or a share of all.
    max_rules : int or None
        The most rules. With this or `max_total_length` beside other wishes the rules are those that
        explain most outliers within them; otherwise they are the shortest that are all that is
        wished.
    one_sided : bool
        Whether no clause may have two bounds.
    column_wishes : dict or None
        What is known of columns: a `ColumnWish` by the name of each, with its direction, its cost,
        its group, or never.
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
        Whether `score_` is above `min_score`, or all that was wished is had.
    most_ : float
        With a budget: no choice among the `n_candidates_` rules explains outliers of more weight
        than this; 0 where that was not solved.
    outcomes_ : tuple of Outcome
        What became of each wish: its name, what was asked, what was had, and whether it is met;
        empty where nothing is wished but a floor on F1.
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
    """

    stops_at_the_floor = True

    def _keep(self, learned: Learned) -> None:
        super()._keep(learned)
        certificate = learned.certificate
        assert certificate is not None
        self.bound_, self.n_candidates_ = certificate.bound, certificate.n_candidates
        self.min_outliers_ = certificate.min_outliers
        self.most_, self.outcomes_ = certificate.most, learned.outcomes

    def _floor_message(self) -> str:
        return missed_in_words(self.outcomes_) if self.outcomes_ else super()._floor_message()
