"""What speaks for a rule, counted on all rows from the final rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stair.rules.clauses import Clause
from stair.rules.rule_set import Rule, RuleSet
from stair.verdict.labels import Verdict


@dataclass(frozen=True, slots=True)
class ClauseEvidence:
    """How unusual a clause is: the share of the inliers, and of the outliers, that meet it."""

    text: str
    of_inliers: float
    of_outliers: float


@dataclass(frozen=True, slots=True)
class RuleEvidence:
    """What speaks for one rule, counted on all rows."""

    rule: Rule
    rows: int
    hits: int  # rows with the rule's own label
    share: float  # of all rows with that label
    alone: int  # rows with that label that no other rule covers
    clauses: tuple[ClauseEvidence, ...]

    @property
    def precision(self) -> float:
        return self.hits / self.rows if self.rows else math.nan


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows that no rule covers, which get the default label."""

    rows: int
    hits: int  # those that have that label

    @property
    def precision(self) -> float:
        return self.hits / self.rows if self.rows else math.nan


def rest_of(rules: RuleSet, values: dict[str, NDArray[Any]], codes: NDArray[np.int32]) -> Rest:
    """What is left when every rule has spoken, counted on all rows."""
    uncovered = rules.assign(values) < 0
    default = rules.classes.index(rules.default)
    return Rest(int(uncovered.sum()), int(np.count_nonzero(uncovered & (codes == default))))


def evidence_of(
    rules: RuleSet,
    values: dict[str, NDArray[Any]],
    codes: NDArray[np.int32],
    labels: Verdict,
    *,
    decided: bool = False,
) -> tuple[RuleEvidence, ...]:
    """What speaks for each rule: of all rows that it covers, or of those alone that it has
    `decided` because no earlier rule covers them."""
    covered = rules.covers(values)
    totals = np.bincount(codes, minlength=len(labels.classes))
    once = covered.sum(axis=1) == 1
    if decided:
        covered &= rules.assign(values)[:, None] == np.arange(len(rules))
    found = []
    for number, rule in enumerate(rules.rules):
        place = rules.classes.index(rule.label)
        counts = np.bincount(codes[covered[:, number]], minlength=len(labels.classes))
        clauses = []
        for clause in rule.clauses:
            met = np.bincount(codes[clause.covers(values[clause.feature])], minlength=len(totals))
            clauses.append(clause_evidence(clause, met, totals, place, labels.positive))
        found.append(
            RuleEvidence(
                rule,
                int(counts.sum()),
                int(counts[place]),
                float(counts[place] / totals[place]) if totals[place] else math.nan,
                int(np.count_nonzero(covered[:, number] & once & (codes == place))),
                tuple(clauses),
            )
        )
    return tuple(found)


def clause_evidence(
    clause: Clause,
    met: NDArray[np.integer[Any]],
    totals: NDArray[np.integer[Any]],
    place: int,
    positive: int | None,
) -> ClauseEvidence:
    """From the class counts of the rows that meet a clause, and of all rows: the shares within the
    rule's own class (at this place) and outside of it."""
    outside = totals.sum() - totals[place]
    own = met[place] / totals[place] if totals[place] else 0.0
    others = (met.sum() - met[place]) / outside if outside else 0.0
    is_outlier = positive is None or place == positive
    inliers, outliers = (others, own) if is_outlier else (own, others)
    return ClauseEvidence(str(clause), float(inliers), float(outliers))
