"""A method as a value: its settings, checked in one place, and how it learns rules from a table.

The scikit-learn estimators are these values with `fit` and `predict`; `summarize`, the command,
the review and the engines for large data learn by the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from stair.errors import check_count, check_number
from stair.learn.distill import Further
from stair.learn.grow import Step
from stair.learn.kinds import Kind
from stair.learn.known import as_wished
from stair.learn.partition import Local
from stair.learn.seeds import RandomState, check_random_state
from stair.learn.table import Table
from stair.learn.wishes import (
    USUAL_FLOOR,
    ColumnWishes,
    Outcome,
    Wishes,
    column_wishes_of,
)
from stair.progress import Progress, quiet
from stair.rules.columns import LISTS, Lists
from stair.rules.rule_set import Label, RuleSet

# No list of values that a person reads is longer.
MOST_LISTED: Final = 1000
# The wishes as they are where nobody has one.
UNSPOKEN: Final[Mapping[str, object]] = {
    "beta": 1.0, "min_precision": None, "min_rule_precision": None, "min_recall": None,
    "max_alerts": None, "max_rules": None, "one_sided": False, "column_wishes": {},
}  # fmt: skip
# Settings that the method's name, the verdict or the engine tells.
TOLD_ELSEWHERE: Final = ("pos_label", "refine", "engine")


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far from the shortest distilled rules may be.

    No choice among the `n_candidates` rules that were looked at last is shorter than `bound` (0
    where that was not solved). Each rule covers at least `min_outliers` outliers.
    """

    bound: int
    n_candidates: int
    min_outliers: int
    relaxed: bool = False  # fewer than usual, because the floor needs it
    cut_short: bool = False  # the search was ended before it was done
    # Where rules explain as much as they can: no choice explains outliers of a larger weight (0
    # where that was not solved).
    most: float = 0.0


def of_all(kinds: Sequence[Certificate]) -> Certificate:
    """The certificate of the rules of several kinds of outlier."""
    return Certificate(
        sum(c.bound for c in kinds) if all(c.bound for c in kinds) else 0,
        sum(c.n_candidates for c in kinds),
        min((c.min_outliers for c in kinds), default=1),
        any(c.relaxed for c in kinds),
        any(c.cut_short for c in kinds),
    )


def most_further(kinds: Iterable[Further | None]) -> Further | None:
    """Of what one more rule would add to each kind of outlier, that which adds most."""
    found = [one for one in kinds if one is not None]
    return max(found, key=lambda one: one.outliers, default=None)


class Learned(NamedTuple):
    """What a method leaves: the rules, the steps that led to them, and a certificate; where there
    are several kinds of outlier, how each of them does; what one more rule would add."""

    rules: RuleSet
    trace: tuple[Step, ...] = ()
    certificate: Certificate | None = None
    kinds: tuple[Kind, ...] = ()
    further: Further | None = None
    score: float = np.nan  # on the rows that they were learned from
    local: Local | None = None  # the partitions, and the rounds in which they were learned
    outcomes: tuple[Outcome, ...] = ()  # of wishes beside the floor on the score


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What rules are for: the classes that they tell apart, and which of two is the outlier."""

    classes: tuple[Label, ...]
    positive: int | None
    weights: NDArray[np.float64] | None = None  # how much each row counts
    is_repeated: bool = False  # whether weights are how often each row is there
    say: Progress = quiet
    is_check: bool = False  # whether they only show if rules like them hold, and are soon gone
    decided: NDArray[np.int32] | None = None  # the class that other rules give each row, or −1


@dataclass(eq=False)
class Method:
    """The settings that every method has. `pos_label` is the outlier where nobody says otherwise.

    As any parameter value of scikit-learn it is not checked when it is made, but when it is used.
    """

    name: ClassVar[str]
    has_kinds: ClassVar[bool] = False  # rules for several kinds of outlier, each with a floor

    min_score: float | None = USUAL_FLOOR
    pos_label: Label = field(default=None, kw_only=True)
    min_rows_per_value: int = field(default=LISTS.min_rows, kw_only=True)
    max_values: int = field(default=LISTS.max_values, kw_only=True)
    time_windows: bool = field(default=False, kw_only=True)
    column_wishes: ColumnWishes | None = field(default=None, kw_only=True)
    random_state: RandomState = field(default=None, kw_only=True)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name, as scikit-learn asks for them."""
        del deep  # no setting has settings
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def check(self) -> None:
        """Refuse settings that no rules can be learned with."""
        check_number("min_score", self.floor, 0, 1)
        column_wishes_of(self.column_wishes)
        check_count("min_rows_per_value", self.min_rows_per_value, 1)
        check_count("max_values", self.max_values, 1, MOST_LISTED)
        check_random_state(self.random_state)

    @property
    def floor(self) -> float:
        """What the score must be above; 0 where other wishes say how much is to be explained."""
        return USUAL_FLOOR if self.min_score is None else self.min_score

    @property
    def wishes(self) -> Wishes:
        """Floors and budgets: that on the score, where there are no others."""
        return Wishes(self.floor)

    @property
    def wish_of_one(self) -> str:
        """The first wish that is about one kind of outlier, by its name; empty where none is."""
        return ""

    def wished(self, table: Table) -> Table:
        """A table with what is known of its columns."""
        known = column_wishes_of(self.column_wishes)
        return as_wished(table, known, one_sided=False) if known else table

    @property
    def lists(self) -> Lists:
        """Which values of a category rules may name, and how many at once."""
        return Lists(self.min_rows_per_value, self.max_values)

    @property
    def settings(self) -> Mapping[str, object]:
        """What is kept with rules of how they were learned. The outlier is the verdict's."""
        found = {"method": self.name, **self.get_params(), "min_score": self.floor}
        wished = {n: wish.given for n, wish in column_wishes_of(self.column_wishes).items()}
        found["column_wishes"] = wished
        # A wish that nobody has is not spoken of.
        found = {n: v for n, v in found.items() if n not in UNSPOKEN or v != UNSPOKEN[n]}
        if not isinstance(self.random_state, int | None):  # a generator, which has gone on
            found["random_state"] = None
        return {name: value for name, value in found.items() if name not in TOLD_ELSEWHERE}

    def learn(self, table: Table, codes: NDArray[np.int32], task: Task) -> Learned:
        """Rules for a table and the classes of its rows."""
        raise NotImplementedError

    def for_part(self, share: float) -> Self:
        """The same for a part of the rows: what is counted in rows is less there."""
        del share
        return self

    def cheaper(self, learned: Learned, folds: int) -> Self:
        """What learns much the same with less effort, to see quickly whether rules hold."""
        del learned, folds
        return self
