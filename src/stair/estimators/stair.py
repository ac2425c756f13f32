"""STAIR: disjoint rules that maximise purity per length."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair.engines.memory import MemoryEngine
from stair.errors import OutlierGuessed, StairError, spoken
from stair.estimators.base import TreeClassifier, check_count, check_random_state
from stair.learn.grow import grow, leaves_of
from stair.learn.seeds import seed_of
from stair.learn.shortest import shortest_tree
from stair.learn.table import Table
from stair.rules.figures import score_in_words
from stair.rules.rule_set import Leaf


class Stair(TreeClassifier):
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
    pos_label : label or None
        The outlier class. None means -1 of -1/+1, 1 of 0/1, True, or a word like "fraud";
        otherwise the smaller class, and a warning (`OutlierGuessed`) says so.
    random_state : int, RandomState or None
        The seed for `refine`; None is the same as 0.
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
    left_out_ : dict
        Columns of a frame that rules must not speak of, with the reason; empty for numbers.
    """

    def __init__(
        self,
        min_score: float = 0.8,
        max_rule_length: int = 10,
        max_total_length: int | None = None,
        refine: bool = False,
        pos_label: Any = None,
        random_state: Any = None,
        engine: str = "memory",
        bins: int = 1024,
        memory: str | int | None = None,
        client: Any = None,
    ) -> None:
        self.min_score = min_score
        self.max_rule_length = max_rule_length
        self.max_total_length = max_total_length
        self.refine = refine
        self.pos_label = pos_label
        self.random_state = random_state
        self.engine = engine
        self.bins = bins
        self.memory = memory
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rules for labels y.

        X is an array of numbers (NaN: missing), or a frame of pandas, Polars or Arrow, whose
        columns may also be categories, text and times. Of a frame with such columns, identifiers
        and what has one value alone are left out, as in `stair.summarize`: a list of ids is a
        memory of the rows. `left_out_` names them with the reason.
        """
        if self.engine == "memory":
            return self._fit(X, y, sample_weight)
        if sample_weight is not None:
            raise StairError(f"the engine {self.engine} counts rows, so it takes no sample_weight")
        if self.refine:
            raise StairError(
                f"refine=True needs rows in memory, but the engine is {self.engine}; "
                'summarize(..., method="refined") learns on a sample of them'
            )
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
        self._schema, self.left_out_ = None, {}
        self.classes_, self._positive = np.array(coded.classes), coded.positive
        self.trace_ = list(learned.trace)
        for note in coded.notes:  # the labels are as they are, so all there is to say is a guess
            warnings.warn(spoken(note), OutlierGuessed, stacklevel=2)
        return self._learned(learned.rules, learned.score)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_rule_length", self.max_rule_length, 1)
        if self.max_total_length is not None:
            check_count("max_total_length", self.max_total_length, 0)
            if self.refine:
                raise StairError(
                    "refine=True looks for the shortest rules above the floor; "
                    "max_total_length does not go with it"
                )
        check_random_state(self.random_state)

    def _leaves(
        self, table: Table, labels: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[list[Leaf], int]:
        columns, X = table.columns, table.codes
        if self.refine:
            leaves, default, growth = shortest_tree(
                lambda: MemoryEngine(columns, X, labels, len(self.classes_), weights),
                X.size,
                min_score=self.min_score,
                max_rule_length=self.max_rule_length,
                positive=self._positive,
                seed=seed_of(self.random_state),
            )
            self.trace_ = growth.steps
            return leaves, default
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
        score = score_in_words(self.score_, self.min_score, 3)
        return (
            f"{what} {score} is the best that was found with rules of "
            f"{' and '.join(limits)} (asked for more than {self.min_score:g}); kept them anyway"
        )
