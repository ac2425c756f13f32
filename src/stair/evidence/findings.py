"""What was found: the rules, what speaks for them, and where they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data import Frame
from stair.data.frame import Array
from stair.data.weights import Weights
from stair.errors import StairError, spoken
from stair.evidence.distribution import Distributions
from stair.evidence.tallies import Tally
from stair.learn.distill import Further
from stair.learn.grow import Step
from stair.learn.kinds import Kind
from stair.learn.method import Certificate
from stair.learn.validation import Check
from stair.learn.wishes import Outcome
from stair.rules.agreement import Score, Scores, predicted_labels, score_on
from stair.rules.alone import Reference, reference_of
from stair.rules.counted import Rest, RuleEvidence, Weighed
from stair.rules.groups import Groups
from stair.rules.objective import reaches
from stair.rules.reasons import Reasons
from stair.rules.rule_set import Explanation, Rule, RuleSet
from stair.rules.schema import Field, Values
from stair.verdict.codebook import Codebook

Settings: TypeAlias = Mapping[str, Any]
"""How rules were learned: the settings of the method and of the engine, by their names."""


@dataclass(frozen=True, eq=False, repr=False)
class Findings:
    """Rules with their evidence and where they come from.

    Where rows have weights (`weighed`), shares, precision, recall and the score are of weight.
    `score` is the F1 of the outliers (or the accuracy) on the rows that were learned from, and
    `score(new, y)` that on others: y is an array, or the name of a column of the new rows, and is
    read as the labels were in learning; rows without a label are left out. Where there are several
    kinds of outlier it is the F1 of each by its name.
    """

    rules: RuleSet
    evidence: tuple[RuleEvidence, ...]
    rest: Rest
    method: str
    score: Score
    min_score: float
    n_rows: int
    n_columns: int
    meaning: str
    source: str
    left_out: Mapping[str, str]
    notes: tuple[str, ...]
    settings: Settings
    versions: Mapping[str, str]
    trace: tuple[Step, ...]
    unexplained: int  # outliers that no outlier rule covers
    certificate: Certificate | None = None  # of distilled rules: how short they could be
    check: Check | None = None  # whether the rules hold on rows kept aside
    unchecked: str = ""  # why that is not known
    kinds: tuple[Kind, ...] = ()  # where there are several kinds of outlier, how each does
    further: Further | None = None  # what one more rule would add
    suspects: tuple[str, ...] = ()  # what should be looked at twice, in sentences
    frontier: tuple[tuple[int, float], ...] = ()  # total length and score, rule by rule
    codebook: Codebook | None = None  # which values of the label mean which class
    outcomes: tuple[Outcome, ...] = ()  # what became of wishes beside a floor on F1
    costly_length: int | None = None  # with what columns cost, where somebody said so
    exceptions: tuple[RuleEvidence, ...] = ()  # what each exception takes from the rules
    weighed: Weighed | None = None  # all rules together by weight, where rows have some
    _values: Values = field(default_factory=lambda: Values({}, 0), repr=False)
    _rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp), repr=False)
    _data: object = field(default=None, repr=False)
    _unexplained: NDArray[np.bool_] = field(
        default_factory=lambda: np.empty(0, np.bool_), repr=False
    )
    _outliers: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_), repr=False)
    _codes: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32), repr=False)
    _weights: Weights | None = field(default=None, repr=False)
    _tallies: Mapping[str, Tally] = field(default_factory=dict, repr=False)
    _groups: Groups | None = field(default=None, repr=False)  # the rows by what covers them
    _reference: Reference | None = field(default=None, repr=False)  # made when it is asked for
    _elsewhere: object = field(default=None, repr=False)  # the rows of an engine for large data

    def __post_init__(self) -> None:
        said = {
            "notes": tuple(map(spoken, self.notes)),
            "suspects": tuple(map(spoken, self.suspects)),
            "left_out": {name: spoken(why) for name, why in self.left_out.items()},
            "unchecked": spoken(self.unchecked),
            "score": Score(self.score, self._score_on),
        }
        for name, value in said.items():
            object.__setattr__(self, name, value)

    @property
    def fields(self) -> tuple[Field, ...]:
        """What the rules may speak of."""
        return self.rules.schema.fields

    @property
    def held_out(self) -> tuple[float, ...]:
        """The score of each fold on rows kept aside; empty where that was not looked at."""
        return () if self.check is None else self.check.scores

    @property
    def floor_reached(self) -> bool:
        if self.kinds:
            return all(kind.reached for kind in self.kinds)
        if self.outcomes:
            return all(outcome.is_met for outcome in self.outcomes)
        return reaches(self.score, self.min_score)

    @property
    def score_name(self) -> str:
        return "F1" if self.rules.positive is not None or self.kinds else "accuracy"

    @property
    def of_weight(self) -> str:
        """What shares are of, where rows have weights; else nothing."""
        return "" if self.weighed is None else f"of the {self.weighed.name}"

    @property
    def n_outliers(self) -> int:
        """Rows of the outlier class, or of all kinds of outlier; 0 where there is none."""
        if self.kinds:
            return sum(kind.rows for kind in self.kinds)
        if self.rules.positive is None:
            return 0
        return int(self.rules.totals[self.rules.classes.index(self.rules.positive)])

    @property
    def recall(self) -> float:
        """Of all outliers, the part that the rules find; NaN where there are several classes."""
        return self.recall_of_rows if self.weighed is None else self.weighed.recall

    @property
    def precision(self) -> float:
        """Of the rows that the rules call outliers, the part that are some; NaN where there are
        several classes, or none is called so."""
        return self.precision_of_rows if self.weighed is None else self.weighed.precision

    @property
    def score_of_rows(self) -> float:
        """The score where all rows count alike."""
        return self.score if self.weighed is None else self.weighed.score_of_rows

    @property
    def recall_of_rows(self) -> float:
        """The recall where all rows count alike."""
        if self.rules.positive is None:
            return math.nan
        return 1 - self.unexplained / self.n_outliers

    @property
    def precision_of_rows(self) -> float:
        """The precision where all rows count alike."""
        if self.rules.positive is None or self.rules.routing:
            return math.nan
        called = self.n_rows - self.rest.rows  # distilled rules may overlap, others do not
        if self.method != "distilled":
            own = (each for each in self.evidence if each.rule.label == self.rules.positive)
            called = sum(each.rows for each in own)
        return (self.n_outliers - self.unexplained) / called if called else math.nan

    def explain(self, row: object) -> Explanation:
        """Why this row is, or is not, an outlier by the rules: a mapping, a Series, a frame."""
        return self.rules.explain(row)

    def reasons(self, rows: Any = None) -> Reasons:
        """Why rows are flagged: rows by their numbers (from 0), or a table of other rows.

        Without any it is every outlier, in the order of the data. Rows that were learned from are
        flagged by their labels, and each of those that no rule covers has a rule of its own; others
        are flagged by the rules.
        """
        if rows is not None and not _are_numbers(rows):
            return self.rules.reasons(rows)
        self._check_rows()
        if rows is None:
            chosen = np.flatnonzero(self._outliers)
        else:
            chosen = self._places(np.atleast_1d(rows))
        if self._reference is None:
            found = reference_of(self.fields, self._values, self._outliers, self._rows)
            object.__setattr__(self, "_reference", found)
        values = self._values.take(chosen)
        return self.rules.reasons(values, self._outliers[chosen], among=self._reference)

    def _places(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where rows of the data stand among those that were learned from."""
        places = np.minimum(np.searchsorted(self._rows, numbers), len(self._rows) - 1)
        gone = numbers[self._rows[places] != numbers].tolist()
        if gone:
            raise StairError(
                f"row {gone[0]} is none of those that were learned from: they are numbered from 0 "
                f"to {int(self._rows[-1])}, and have a label"
            )
        return places

    def predict(self, new: object) -> Array:
        """The label of each row of a table of any kind, or of a file, by the rules.

        Labels are the values that the label column had, such as 0 and 1, -1 and 1, "ok" and
        "fraud", or the names of kinds. Where one side stands for several values (`positive` is a
        list, or one of many), and where the verdict came from scores or a detector, they are
        "inlier" and "outlier".
        """
        return predicted_labels(self.rules, self.codebook, new)

    def _score_on(self, new: object, y: object) -> Scores:
        is_of = [kind.label for kind in self.kinds]
        return score_on(self.rules, self.codebook, is_of, new, y)

    def matching_rows(self, rule: int | Rule) -> NDArray[np.intp]:
        """The row numbers (from 0) that a rule covers; the rule itself, or its number from 1.
        Those that an exception takes from it are not among them."""
        self._check_rows()
        place = self.rules.place_of(rule)
        return self._rows[np.flatnonzero(self.rules.matches(self._values).applies[:, place])]

    def excepted_rows(self, exception: int | None = None) -> NDArray[np.intp]:
        """The row numbers (from 0) that exceptions take from the rules, or that one of them does,
        by its number from 1."""
        self._check_rows()
        lifted = self.rules.matches(self._values).lifted
        n_exceptions = lifted.shape[1]
        if exception is None:
            return self._rows[np.flatnonzero(lifted.any(axis=1))]
        if isinstance(exception, bool) or not 1 <= exception <= n_exceptions:
            raise StairError(f"there are {n_exceptions} exceptions, but not {exception!r}")
        return self._rows[np.flatnonzero(lifted[:, exception - 1])]

    def matches(self, rule: int | Rule) -> Any:
        """The rows that a rule covers, as the kind of table that was given."""
        return self.rows_of_data(self.matching_rows(rule))

    def unexplained_matches(self) -> object:
        """The outliers that no outlier rule covers, as the kind of table that was given."""
        return self.rows_of_data(self.unexplained_rows())

    def rows_of_data(self, numbers: NDArray[np.intp]) -> Any:
        """Some rows by their numbers (from 0), as the kind of table that was given."""
        return _take(self._data, numbers)

    def unexplained_rows(self) -> NDArray[np.intp]:
        """The row numbers of outliers that no outlier rule covers."""
        self._check_rows()
        return self._rows[self._unexplained]

    def is_outlier(self) -> NDArray[np.bool_]:
        """Which of the rows that were learned from are outliers by their labels."""
        self._check_rows()
        return self._outliers

    @property
    def has_rows(self) -> bool:
        """Whether the rows are here; an engine for large data counts them where they are."""
        return len(self._rows) == self.n_rows

    def _distributions(self) -> Distributions:
        """How the attributes of the rules are distributed: from the rows, or from what an engine
        for large data has counted of them."""
        if self._tallies:
            totals = [round(n) for n in self.rules.totals]
            return Distributions.of_tallies(self._tallies, totals)
        self._check_rows()
        return Distributions(self._values.__getitem__, self._codes, len(self.rules.classes))

    def _check_rows(self) -> None:
        if not self.has_rows:
            raise StairError(
                "the rows themselves are not kept with an engine other than memory; "
                "find them in your data with to_sql(...)"
            )


def _are_numbers(rows: object) -> bool:
    """Whether these are numbers of rows, and no rows."""
    if isinstance(rows, int | np.integer):
        return True
    is_list = isinstance(rows, range | list | tuple | np.ndarray) and np.ndim(rows) == 1
    return is_list and np.asarray(rows).dtype.kind in "iu"


def _take(data: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a table, as the same kind of table."""
    if isinstance(data, Frame):
        return {name: array[rows] for name, array in data.columns.items()}
    if isinstance(data, Mapping):
        return {name: np.asarray(array)[rows] for name, array in data.items()}
    if isinstance(data, np.ndarray):
        return data[rows]
    if isinstance(data, list):
        return [data[row] for row in rows.tolist()]
    if hasattr(data, "iloc"):
        return data.iloc[rows]
    if hasattr(data, "take"):  # Arrow
        return data.take(rows)
    return data[rows.tolist()]
