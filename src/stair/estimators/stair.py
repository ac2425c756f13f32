"""STAIR: disjoint rules that maximise purity per length."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from stair.engines.large import LargeEngine, engine_of
from stair.errors import OutlierGuessed, StairError, spoken
from stair.estimators.base import WeightedClassifier
from stair.learn.method import Learned
from stair.learn.methods import StairMethod
from stair.progress import listener
from stair.rules.figures import score_in_words
from stair.scale.summarize import fit_large


@dataclass(eq=False, repr=False)
class Stair(WeightedClassifier, StairMethod):
    """Rules that maximise purity per length, grown until their score is above a floor.

    Parameters
    ----------
    min_score : float
        The floor: rules are divided until F1 of the outlier class (accuracy where y has more
        than two classes) is above it.
    max_rule_length : int
        The most attributes that one rule may have (the paper's L_m).
    max_total_length : int or None
        Splits that would make the total length of all rules larger than this are passed over.
    refine : bool
        Whether several trees are grown past the floor and pruned back to it, and the shortest is
        kept: still disjoint rules over all rows, but fewer of them.
    min_rows_per_value, max_values, time_windows
        See `stair.DistilledStair`.
    pos_label : label or None
        The outlier class. None means -1 of -1/+1, 1 of 0/1, True, or a word like "fraud";
        otherwise the smaller class, and a warning (`OutlierGuessed`) says so.
    random_state : int, RandomState or None
        The seed for `refine`; None is the same as 0.
    engine : {"memory", "duckdb", "dask", "spark", "cuda"}, DuckDB, Dask, Spark or Cuda
        Where the rows are. With "duckdb", `fit` takes a path or a pattern of files, with "dask" or
        "spark" a DataFrame of theirs; y is then the name of the label's column. The value has the
        engine's own settings, as in `stair.DuckDB(memory="1GB")`.

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
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
    """

    engine: str | LargeEngine = "memory"

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | str | None = None) -> Self:
        """Learn rules for labels y.

        X is an array of numbers (NaN: missing), or a frame of pandas, Polars or Arrow, whose
        columns may also be categories, text and times. Of a frame with such columns, identifiers
        and what has one value alone are left out, as in `stair.summarize`: a list of ids is a
        memory of the rows. `left_out_` names them with the reason.
        """
        engine = engine_of(self.engine)
        if engine is None:
            return self._fit(X, y, sample_weight)
        if sample_weight is not None:
            raise StairError(f"the engine {engine.name} counts rows, so it takes no sample_weight")
        if self.refine:
            raise StairError(
                f"refine=True needs rows in memory, but the engine is {engine.name}; "
                'summarize(..., method="refined") learns on a sample of them'
            )
        self.check()
        coded, learned = fit_large(X, y, engine, self, listener())
        names = [field.name for field in coded.coding.fields]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        self._schema, self.left_out_ = None, {}
        self.classes_, self._positive = np.array(coded.classes), coded.positive
        for note in coded.notes:  # the labels are as they are, so all there is to say is a guess
            warnings.warn(spoken(note), OutlierGuessed, stacklevel=2)
        return self._learned(Learned(learned.rules, learned.trace, score=learned.score))

    def _floor_message(self) -> str:
        limits = [f"at most {self.max_rule_length} attributes each"]
        if self.max_total_length is not None:
            limits.append(f"a total length of at most {self.max_total_length}")
        what = "F1" if self._positive is not None else "accuracy"
        score = score_in_words(self.score_, self.floor, 3)
        return (
            f"{what} {score} is the best that was found with rules of "
            f"{' and '.join(limits)} (asked for more than {self.min_score:g}); kept them anyway"
        )
