"""A set of rules with all that is counted from it, and what was said about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from stair.export.text import (
    falling_rules,
    figures_in_words,
    floor_in_words,
    routed_and_assigned,
    score_in_words,
)
from stair.export.wished import missed_in_words
from stair.intake import Intake
from stair.learn.kinds import Kind
from stair.report.content import RuleView
from stair.report.data import Views, rule_as_sql
from stair.report.remarks import Remarks, remarks_of
from stair.report.words import counted
from stair.review.judged import Judged, normal_of
from stair.review.log import Carried, Event, State
from stair.summary import Summary

Document: TypeAlias = Mapping[str, Any]
"""What JSON holds by names: rules as in a file, settings, a request."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows that are judged together: those that a rule matches, or those that no rule explains.
    With several kinds of outlier those that a rule decides: a row is of one kind.

    Its key is a fingerprint of the rows and of the rule, so that no two groups share a verdict.
    """

    key: str
    number: int | None  # the rule's place, from 0; None for what no rule explains
    text: str
    label: int  # the class that its rule gives the rows
    rows: NDArray[np.intp]
    is_judged: bool  # inlier rules are shown, and need no verdict
    said: str = ""  # what the rule says, exactly


class Edit(TypedDict):
    """A rule that a person changed, as it was learned and as it is now; both as in a rules file."""

    before: Document
    after: Document


@dataclass(frozen=True, eq=False)
class Revision:
    """A rule set with all that is counted from it. Nothing in it changes."""

    event: int
    cause: str
    summary: Summary
    given: Intake
    groups: tuple[Group, ...]
    settings: Document
    learned_from: int  # the last event whose verdicts are in the labels; 0 for the detector's own
    has_verdict: bool
    edits: tuple[Edit, ...]
    edited: frozenset[str]  # keys of rules that a person changed
    _told: dict[int, str] = field(default_factory=dict)  # reasons that took a moment

    @cached_property
    def views(self) -> Views:
        return Views(self.summary)

    @property
    def has_outliers(self) -> bool:
        return self.summary.rules.positive is not None

    @property
    def finds_outliers(self) -> bool:
        """Whether there are outliers, of one kind or of several."""
        return normal_of(self.given.verdict) is not None

    @property
    def of_weight(self) -> str:
        """What shares are of, where rows have weights; else nothing."""
        return self.summary.of_weight

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return self.summary.kinds

    @cached_property
    def told(self) -> Remarks:
        return remarks_of(self.summary)

    @cached_property
    def figures(self) -> list[tuple[float | None, bool]]:
        """Of each rule, which share of its rows are right, and whether it falls apart on others."""
        falling = falling_rules(self.summary)
        return [
            (each.precision if self.has_verdict else None, number in falling)
            for number, each in enumerate(self.summary.evidence, start=1)
        ]

    def reasons(self, group: Group, rows: NDArray[np.intp]) -> list[str]:
        """Why each of these rows of a group is flagged, or is not; nothing of a row that was not
        learned from. A rule's own rows are not held against all others, which takes a moment."""
        summary, present = self.summary, self.find(group.key)
        found = [""] * len(rows)
        places = np.minimum(np.searchsorted(summary._rows, rows), len(summary._rows) - 1)
        asked = np.flatnonzero(summary._rows[places] == rows)
        if not len(asked):
            return found
        if present is None or present.number is None:
            new = [row for row in rows[asked].tolist() if row not in self._told]
            if new:
                self._told.update(zip(new, summary.reasons(new).words, strict=True))
            words = [self._told[row] for row in rows[asked].tolist()]
        else:
            words = summary.rules.reasons(summary._values.take(places[asked])).words
        for place, text in zip(asked.tolist(), words, strict=True):
            found[place] = text
        return found

    @cached_property
    def headline(self) -> str:
        """How many rules there are, how long they are, and how well they do."""
        summary, rules = self.summary, self.summary.rules
        text = (
            f"{counted(len(rules), 'rule')}, total length {rules.total_length:,}, "
            f"{counted(rules.n_bounds, 'bound')}"
        )
        if rules.exceptions:
            text += f", {counted(len(rules.exceptions), 'exception')}"
        if not self.has_verdict:
            return text
        if summary.kinds:
            return figures_in_words(summary)
        text += f", {summary.score_name} {score_in_words(summary.score, summary.min_score)}"
        if rules.routing:
            routed, assigned = routed_and_assigned(summary)
            text += f" (routed {routed}, assigned {assigned})"
        if summary.of_weight:
            text += f" {summary.of_weight}"
        if summary.floor_reached:
            return text
        if summary.outcomes:
            return f"{text}: {missed_in_words(summary.outcomes, summary.of_weight)}"
        return f"{text}: the floor of {floor_in_words(summary.min_score)} is not reached"

    @cached_property
    def taken(self) -> list[int]:
        """How many rows exceptions take from each rule."""
        summary = self.summary
        if not summary.rules.exceptions:
            return [0] * len(summary.rules)
        matches = summary.rules.matches(summary._values)
        found: list[int] = (matches.covered & ~matches.applies).sum(axis=0).tolist()
        return found

    def view(self, group: Group) -> RuleView:
        assert group.number is not None
        sql = rule_as_sql(self.summary, group.number)
        return self.views.view(group.number, sql=sql)

    def find(self, key: str) -> Group | None:
        return next((group for group in self.groups if group.key == key), None)

    @property
    def lost_edits(self) -> list[str]:
        """Changed rules, in words, that are not among these."""
        present = {group.said for group in self.groups}
        after = [edit["after"] for edit in self.edits]
        return [str(rule.get("words")) for rule in after if said_by(rule) not in present]


@dataclass(frozen=True, slots=True)
class Frontier:
    """How long rules have to be for a floor, at one longest rule: a point for each floor tried."""

    method: str
    longest: int
    points: tuple[tuple[float, int, float], ...]  # floor, total length, score
    is_whole: bool


@dataclass(frozen=True, slots=True, eq=False)
class Now:
    """The state of the store and what it says about each row."""

    state: State
    judged: Judged
    revision: Revision
    carried: Carried

    def verdict(self, key: str) -> Event | None:
        """What was said about a group, or about the same rows before its rule was another."""
        found = self.carried.kept.get(key)
        return found[-1] if found else self.state.rules.get(key)


def said_by(rule: Document) -> str:
    """What a rule of a rules file says, without the counts that belong to other rows."""
    return json.dumps([rule["label"], rule["clauses"]], sort_keys=True)
