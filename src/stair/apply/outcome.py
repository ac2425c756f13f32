"""Saved rules on new rows: one label and one rule for each of them, and what that comes to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.export.json import Rulebook
from stair.rules.alone import Reference
from stair.rules.counted import Counted
from stair.rules.match import first_covering
from stair.rules.reasons import reasons_of
from stair.rules.remarks import Remarks
from stair.rules.rule_set import Label, RuleSet
from stair.rules.schema import Values

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One label and one rule number (from 1; 0 for none) for each row; and the number of the
    exception that takes it from a rule, where there are some."""

    labels: Array
    rules: NDArray[np.intp]
    covered: Counts  # rows that each rule covers
    lifted: Counts  # by each exception
    remarks: Remarks  # about values that are not what the rules were learned with
    exceptions: NDArray[np.intp] | None = None
    words: Array | None = None  # why, in a sentence, where somebody asks
    documents: Array | None = None  # and as JSON

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks.in_words

    @property
    def columns(self) -> dict[str, Array]:
        """What stands behind a row's own columns."""
        found: dict[str, Array] = {"stair_label": self.labels, "stair_rule": self.rules}
        if self.exceptions is not None:
            found["stair_exception"] = self.exceptions
        if self.words is not None and self.documents is not None:
            found |= {"stair_reason": self.words, "stair_reason_json": self.documents}
        return found


def _nothing() -> Counts:
    return np.zeros(1, np.int64)  # which goes with any number of counts


@dataclass(slots=True, eq=False)
class Applied:
    """What rules come to on all rows, added up batch by batch."""

    covered: Counts = field(default_factory=_nothing)
    lifted: Counts = field(default_factory=_nothing)
    # Rows that no rule decides about, that the first one does, …
    decided: Counts = field(default_factory=_nothing)
    n_rows: int = 0
    remarks: Remarks = field(default_factory=Remarks)
    counted: Counted | None = None  # beside labels, where there are some
    notes: tuple[str, ...] = ()  # on these

    def add(self, outcome: Outcome) -> None:
        self.n_rows += len(outcome.labels)
        self.covered = self.covered + outcome.covered
        self.lifted = self.lifted + outcome.lifted
        decided = np.bincount(outcome.rules, minlength=len(outcome.covered) + 1)
        self.decided = self.decided + decided
        self.remarks.merge(outcome.remarks)

    def labels(self, rules: RuleSet) -> Counter[Label]:
        """How many rows have each label."""
        found: Counter[Label] = Counter()
        for label, n in zip([rules.default, *(r.label for r in rules)], self.decided, strict=True):
            found[label] += int(n)
        return found

    def add_counts(self, counted: Counted) -> None:
        self.counted = counted if self.counted is None else self.counted + counted


def apply_rules(saved: Rulebook, table: object) -> Outcome:
    """Label every row of a table. Only the columns that the rules speak of are needed."""
    return outcome_of(saved, saved.rules.read(table))


def outcome_of(
    saved: Rulebook,
    values: Values,
    reasons: bool = False,
    flagged: NDArray[np.bool_] | None = None,
    reference: Reference | None = None,
) -> Outcome:
    """Label rows whose values are known, and say why where `reasons` are asked for. `flagged` are
    those that somebody else calls outliers; each of those that no rule covers is held against the
    `reference`."""
    rules = saved.rules
    matches = rules.matches(values)
    numbers, lifted = matches.numbers, matches.lifted
    words = documents = None
    if reasons:
        why = reasons_of(rules, values, flagged, reference, matches)
        words, documents = _objects(why.words), _objects(why.documents)
    return Outcome(
        rules.labels_of(numbers), numbers + 1, _sums(matches.applies), _sums(lifted),
        values.remarks, first_covering(lifted) + 1 if rules.exceptions else None, words, documents,
    )  # fmt: skip


def _sums(covered: NDArray[np.bool_]) -> Counts:
    """How many rows each column has."""
    found: Counts = covered.sum(axis=0, dtype=np.int64)
    return found


def _objects(texts: list[str]) -> Array:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
