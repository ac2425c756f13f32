"""The rulebook that a review was opened with: rules in use, how they do now, and what becomes of
them by the verdicts of the review."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from stair.export.json import Rulebook, from_json, to_json
from stair.intake import Intake
from stair.learn.addition import Addition
from stair.learn.learner import Learner
from stair.operation.standing import Standing, standings_of
from stair.operation.update import accepted_of, for_additions
from stair.review.log import Event
from stair.review.revision import Edit, Group, Revision, said_by
from stair.rules.counted import count
from stair.rules.document import new_records, rule_to_json
from stair.rules.record import Record, Status
from stair.rules.rule_set import Rule, RuleSet
from stair.summary import Summary

STATUS_OF: Final[Mapping[str, Status]] = {
    "outlier": "accepted", "inlier": "retired", "unsure": "candidate",
}  # fmt: skip
"""What a verdict on a rule makes of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Rules in use, by what they say, with how they did on the rows under review."""

    saved: Rulebook
    standings: Mapping[str, Standing]

    def learner(
        self, learn: Learner, refused: Collection[str], exceptions: tuple[Rule, ...] | None
    ) -> Learner:
        """What learns beside the rules in use, but for those (by their ids) that are refused; with
        the exceptions of the file where there are no others yet."""
        accepted = replace(accepted_of(self.saved, refused), schema=learn.schema)
        if exceptions is not None:
            accepted = replace(accepted, exceptions=exceptions)
        how, _ = for_additions(self.saved, accepted, learn.method)
        return Addition(how, learn.schema, learn.labels, learn.say, given=accepted)

    def standing(self, revision: Revision, group: Group) -> Standing | None:
        """How a rule in use stands, also where a person has changed it since."""
        return self.standings.get(_origin(revision.edits).get(group.said, group.said))

    def record_of(self, revision: Revision, group: Group) -> Record | None:
        found = self.standing(revision, group)
        return None if found is None else found.record


def kept_of(saved: Rulebook, given: Intake) -> Kept:
    """The rules in use, held against the rows under review."""
    places = [k for k in saved.in_force if saved.records[k].status == "accepted"]
    accepted = replace(accepted_of(saved), schema=given.schema)
    stands = standings_of(saved, places, count(accepted, given.values, given.codes))
    return Kept(saved, {_said(each.rule): each for each in stands})


def has_rules_in_use(saved: Rulebook | None) -> bool:
    """Whether a review goes on from these rules, and does not judge them for the first time."""
    return saved is not None and any(saved.records[k].status == "accepted" for k in saved.in_force)


def _said(rule: Rule) -> str:
    return said_by(json.loads(json.dumps(rule_to_json(rule))))


def _origin(edits: Collection[Edit]) -> dict[str, str]:
    """What changed rules said before, by what they say now."""
    return {said_by(edit["after"]): said_by(edit["before"]) for edit in edits}


def rulebook_of(
    kept: Kept | None,
    revision: Revision,
    summary: Summary,
    verdicts: Mapping[str, Event],
) -> Rulebook:
    """The rulebook after a review: what was in use is as it was, unless somebody said otherwise;
    new rules have the labels as reviewed for evidence, and verdicts are the status of rules.

    `summary` has the present rules counted by these labels, and `verdicts` are by what rules say.
    """
    made = from_json(to_json(summary), "the review")
    day = min((event.at[:10] for event in verdicts.values()), default="")
    origin = _origin(revision.edits)
    known = {} if kept is None else {
        said: each.record.id for said, each in kept.standings.items()
    }  # fmt: skip
    saved = kept.saved if kept is not None else None
    place = {} if saved is None else {r.id: k for k, r in enumerate(saved.records)}
    present: dict[str, tuple[Rule, Record]] = {}
    new: list[tuple[Rule, Event | None]] = []
    for rule, fresh in zip(made.kept.rules, made.records, strict=True):
        said = _said(rule)
        event = verdicts.get(said)
        name = known.get(origin.get(said, said))
        if name is None or saved is None:
            new.append((rule, event))
            continue
        record = saved.records[place[name]]
        if said in origin:
            record = replace(record, evidence=fresh.evidence)
        else:
            rule = saved.kept.rules[place[name]]  # its counts are those of its evidence
        present[name] = rule, _judged(record, event)
    rules: list[Rule] = []
    records: list[Record] = []
    for k, record in enumerate(saved.records if saved is not None else ()):
        if record.status == "candidate":
            continue
        assert saved is not None
        rule, then = present.get(
            record.id, (saved.kept.rules[k], replace(record, status="retired"))
        )
        rules.append(rule)
        records.append(then)
    taken = [record.id for record in records]
    exceptions, of_exceptions = _exceptions(made, saved)
    taken += [record.id for record in of_exceptions]
    fresh_records = new_records([rule for rule, _ in new], made.source, made.kept.totals, taken)
    for (rule, event), record in zip(new, fresh_records, strict=True):
        rules.append(rule)
        records.append(_judged(replace(record, since=day), event))
    whole: RuleSet = replace(made.kept, rules=tuple(rules), exceptions=exceptions)
    return Rulebook(whole, made.facts, (), tuple(records), of_exceptions)


def _judged(record: Record, event: Event | None) -> Record:
    if event is None or event.verdict not in STATUS_OF:
        return record
    note = event.note or record.note
    return replace(record, status=STATUS_OF[event.verdict], note=note)


def _exceptions(
    made: Rulebook, saved: Rulebook | None
) -> tuple[tuple[Rule, ...], tuple[Record, ...]]:
    """The exceptions of the review: those of the file as they were, and others with new ids."""
    if saved is None:
        return made.kept.exceptions, made.exception_records
    before = {rule.clauses: (rule, record) for rule, record in
              zip(saved.kept.exceptions, saved.exception_records, strict=True)}  # fmt: skip
    present = {rule.clauses for rule in made.kept.exceptions}
    found = [
        (rule, record if rule.clauses in present else replace(record, status="retired"))
        for rule, record in before.values()
    ]
    taken = [record.id for record in (*saved.records, *saved.exception_records)]
    more = [rule for rule in made.kept.exceptions if rule.clauses not in before]
    records = new_records(more, made.source, made.kept.totals, taken)
    found += [*zip(more, (replace(r, status="accepted") for r in records), strict=True)]
    return tuple(rule for rule, _ in found), tuple(record for _, record in found)
