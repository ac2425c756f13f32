"""What is under review: a table, the rules for it, and what a person said about them.

Everything that a person does is an event in the store; what is shown is made from the events. So
two people, two tabs or two processes see the same, and nothing has to be saved at the end.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.errors import StairError, option
from stair.export.json import Rulebook, from_json, to_json
from stair.intake import Intake
from stair.learn.exceptions import Aim, Excepted, learn_exceptions
from stair.learn.learner import check_rules
from stair.learn.method import Learned
from stair.review.database import damaged
from stair.review.identity import fingerprint_of_rows, identity_of_group
from stair.review.jobs import Say
from stair.review.judged import (
    INLIER,
    Judged,
    Judgement,
    are_outliers,
    judge,
    normal_of,
    notes_of,
    rows_from_text,
    rows_to_text,
)
from stair.review.kept import Kept
from stair.review.log import Event, State, Verdict, carried
from stair.review.remembered import to_remember, with_remembered
from stair.review.revision import Document, Edit, Frontier, Group, Now, Revision, said_by
from stair.review.rows import Rows
from stair.review.settings import check_settings, learner
from stair.review.store import Store
from stair.rules.clauses import Clause
from stair.rules.counted import count
from stair.rules.match import first_covering
from stair.rules.rule_set import Rule, RuleSet
from stair.summary import Summary, summary_of, whole_weights

KEPT_IN_MEMORY: Final = 3  # rule sets that an undo finds again without counting
CHANGED: Final = "a rule was changed by hand"  # so nobody knows if the rules hold
EXCEPTED: Final = "the rules have exceptions by hand"  # the same
FLOORS: Final = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)  # of the frontier


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Exceptions that were found for the verdicts up to an event, and are not in use yet."""

    last: int
    wanted: Aim
    found: Excepted


class Review:
    """A table under review. Its methods may be called from several threads."""

    def __init__(
        self, given: Intake, store: Store, *, has_verdict: bool = True, book: Kept | None = None
    ) -> None:
        self.given = given
        self.request: Document | None = None  # what it was opened with
        self.book = book  # the rulebook that it was opened with, where rules are in use
        self.store = store
        self.rows = Rows(given.frame)
        self.has_verdict = has_verdict
        self.frontier: Frontier | None = None
        self.proposal: Proposal | None = None
        self._lock = threading.RLock()
        # By the whole event: the number of one that did not come to the disk is given again.
        self._revisions: dict[Event, Revision] = {}
        self._judged: tuple[State, Judged] | None = None
        self._decoded: dict[Event, Judgement] = {}  # the verdicts that hold
        self._labelled: tuple[int, Intake] = (0, given)  # the labels in use, by their event

    # --- what there is now --------------------------------------------------------------------

    def now(self) -> Now | None:
        """None as long as there are no rules."""
        state = self.store.state()
        if state.rule_set is None:
            return None
        revision = self._revision(state.rule_set)
        keys = [group.key for group in revision.groups if group.is_judged]
        return Now(state, self._judge(state), revision, carried(state.rules.values(), keys))

    def group(self, now: Now, key: str) -> Group | None:
        """A group of the present rules, or one that an old tab shows, or one that was judged."""
        with self._lock:
            known = [now.revision, *self._revisions.values()]
        found = next((group for each in known if (group := each.find(key))), None)
        event = now.state.rules.get(key)
        if found is not None or event is None:
            return found
        said = self._said(event)
        return Group(key, None, event.text, said.label, said.rows, is_judged=True)

    def can_go_on(self, request: Document) -> bool:
        """Whether the rules in the store are those that this request led to."""
        last = self.store.state().rule_set
        return last is not None and self._payload(last)["request"] == dict(request)

    def _revision(self, event: Event) -> Revision:
        with self._lock:
            known = self._revisions.pop(event, None)
            return self._keep(event, self._read(event) if known is None else known)

    def _keep(self, event: Event, revision: Revision) -> Revision:
        """In memory, in the place of the one that was not asked for longest."""
        self._revisions[event] = revision
        while len(self._revisions) > KEPT_IN_MEMORY:
            del self._revisions[next(iter(self._revisions))]
        return revision

    @contextlib.contextmanager
    def _reading(self, event: Event) -> Iterator[None]:
        """What is in the file may be anything; what cannot be read is one sentence."""
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            words = f"event {event.id} cannot be read: {type(error).__name__} {error}"
            raise damaged(self.store.path.name, words[:200]) from error

    def _payload(self, event: Event) -> dict[str, Any]:
        """How the rules of an event came about."""
        with self._reading(event):
            found = {"edits": [], "edited": [], **json.loads(event.payload)}
            check_settings(found["settings"])
            if not isinstance(found["request"], dict) or not 0 <= found["learned_from"] < event.id:
                raise ValueError("there is no such request")
            for rule in found["rules"]["rules"]:
                said_by(rule)
            for edit in found["edits"]:
                said_by(edit["before"]), said_by(edit["after"])
            return found

    def _said(self, event: Event) -> Judgement:
        """What a verdict says, read once as long as it holds: which rows, and of which class (-1
        where it is a single row of no kind)."""
        known = self._decoded.get(event)
        if known is not None:
            return known
        with self._reading(event):
            found = json.loads(event.payload or "{}")
            label = -1
            if event.kind == "rule":
                rows = rows_from_text(found["rows"], self.given.frame.n_rows)
            else:
                rows = np.array([int(event.subject)], dtype=np.intp)
            if found:
                label = int(range(len(self.given.verdict.classes))[found["label"]])
            return Judgement(event.verdict, rows, label, event.note)

    def _read(self, event: Event) -> Revision:
        """A rule set from the store, counted anew on the rows."""
        payload = self._payload(event)
        saved = from_json(json.dumps(payload["rules"]), f"event {event.id} of the review")
        verdict = self.given.verdict
        positive = None if verdict.positive is None else str(verdict.classes[verdict.positive])
        found = None if saved.rules.positive is None else str(saved.rules.positive)
        same = list(map(str, saved.rules.classes)) == list(map(str, verdict.classes))
        if not same or found != positive:
            raise StairError(
                f"the rules of this review tell {', '.join(map(str, saved.rules.classes))} apart, "
                f"but the verdict has {', '.join(map(str, verdict.classes))}; begin another "
                f"review with {option('db')}"
            )
        missing = {f.name for f in saved.fields} - set(self.given.values)
        if missing:
            raise StairError(
                f"the rules of this review speak of {', '.join(sorted(missing))}, which the table "
                f"has not; begin another review with {option('db')}"
            )
        given = self._relabelled(int(payload["learned_from"]))
        summary = summary_of(given, Learned(saved.rules, ()), payload["settings"])
        with self._reading(event):
            remembered = payload.get("remembered", {"unchecked": "an older stair learned them"})
            summary = with_remembered(summary, remembered, payload["rules"])
        return self._revised(event, summary, given, payload)

    def _revised(
        self, event: Event, summary: Summary, given: Intake, payload: Document
    ) -> Revision:
        groups = self._groups_of(summary.rules, given, payload["rules"]["rules"])
        said = {said_by(edit["after"]) for edit in payload["edits"]}
        return Revision(
            event=event.id,
            cause=event.text,
            summary=summary,
            given=given,
            groups=groups,
            settings=payload["settings"],
            learned_from=int(payload["learned_from"]),
            has_verdict=self.has_verdict,
            edits=tuple(payload["edits"]),
            edited=frozenset(
                group.key for group in groups
                if group.said in said or fingerprint_of_rows(group.rows) in payload["edited"]
            ),
        )  # fmt: skip

    def _groups_of(
        self, rules: RuleSet, labelled: Intake, texts: Sequence[Document]
    ) -> tuple[Group, ...]:
        """Outlier rules first, then what no rule explains, then the inlier rules."""
        given = self.given  # all rows, also those that unsure verdicts left out of the labels
        covered = matched = rules.covers(given.values)
        if given.verdict.negative is not None:  # a row is of one kind: that of the first rule
            matched = first_covering(covered)[:, None] == np.arange(len(rules))
        groups: list[Group] = []
        for number, rule in enumerate(rules):
            rows = given.rows[np.flatnonzero(matched[:, number])]
            label = rules.classes.index(rule.label)
            is_judged = label != normal_of(given.verdict)
            said = said_by(texts[number])
            of = "" if rules.positive is not None else str(rule.label)
            key = identity_of_group(rows, said, of)
            while any(group.key == key for group in groups):  # the same rule in another partition
                key = identity_of_group(rows, key, of)
            groups.append(Group(key, number, rule.in_words(), label, rows, is_judged, said))
        judged = [group for group in groups if group.is_judged]
        others = [group for group in groups if not group.is_judged]
        judged += self._unexplained(rules, covered, labelled)
        if given.verdict.negative is not None:  # kind by kind
            order = list(dict.fromkeys(group.label for group in judged))
            judged.sort(key=lambda group: order.index(group.label))
        return (*judged, *others)

    def _unexplained(
        self, rules: RuleSet, covered: NDArray[np.bool_], labelled: Intake
    ) -> list[Group]:
        """Outliers that no outlier rule covers, for each kind of them."""
        verdict = self.given.verdict
        normal = normal_of(verdict)
        if normal is None or not self.has_verdict:
            return []
        outlier = [rules.classes.index(rule.label) != normal for rule in rules]
        codes = labelled.verdict.codes[self.given.rows]
        missed = are_outliers(verdict, codes) & ~covered[:, outlier].any(axis=1)
        found = []
        for label in np.unique(codes[missed]).tolist():
            rows = self.given.rows[np.flatnonzero(missed & (codes == label))]
            text = "Outliers that no rule covers"
            if verdict.positive is None:
                text = f"Rows of {rules.classes[label]} that no rule covers"
            found.append(Group(identity_of_group(rows, text), None, text, label, rows, True))
        return found

    def _judge(self, state: State) -> Judged:
        with self._lock:
            if self._judged is None or self._judged[0] is not state:
                held = (*state.rules.values(), *state.rows.values())
                self._decoded = {event: self._said(event) for event in held}
                self._judged = (state, self._judged_by(state))
            return self._judged[1]

    def _judged_by(self, state: State) -> Judged:
        groups = [self._said(event) for event in state.rules.values()]
        single = {row: event.verdict for row, event in state.rows.items()}
        if max(single, default=0) >= self.given.frame.n_rows:
            raise damaged(self.store.path.name, "a verdict is about a row that the table has not")
        verdict = self.given.verdict
        kinds = {row: self._said(event).label for row, event in state.rows.items() if event.payload}
        return judge(verdict.codes, groups, single, verdict.positive, verdict.negative, kinds)

    def _relabelled(self, event: int) -> Intake:
        """The table with the labels that the verdicts up to an event gave it."""
        if not event:
            return self.given
        with self._lock:
            if self._labelled[0] != event:
                judged = self._judged_by(self.store.state_at(event))
                note = "labels as reviewed: rejected groups are inliers, unsure rows are left out"
                codes = judged.codes[self.given.rows]
                self._labelled = (event, self.given.relabelled(codes, note))
            return self._labelled[1]

    # --- what a person does -------------------------------------------------------------------

    def decide(self, who: str, group: Group, verdict: str, note: str, once: str) -> Event:
        """A verdict on a group, stored when this returns."""
        now = self.now()
        if now is None or not group.is_judged:
            raise StairError("this rule needs no verdict; load the page again")
        others = [e.subject for e in now.carried.kept.get(group.key, ()) if e.subject != group.key]
        payload = json.dumps({"rows": rows_to_text(group.rows), "label": group.label})
        event = self.store.decide(
            who, group.key, cast(Verdict, verdict), note=note, text=group.text,
            n_rows=len(group.rows), payload=payload, key=once, instead_of=others,
        )  # fmt: skip
        with self._lock:
            self._decoded[event] = Judgement(verdict, group.rows, group.label, note)
        return event

    def notes(self, now: Now) -> Array:
        """The note of each row of the table, also where it was given for a rule that is gone."""
        said = [self._said(event) for event in sorted(now.state.rules.values(), key=_by_id)]
        single = {row: event.note for row, event in now.state.rows.items()}
        return notes_of(self.given.frame.n_rows, said, single)

    def decide_rows(
        self, who: str, rows: Sequence[int], verdict: str, note: str, once: str,
        group: Group | None = None,
    ) -> None:  # fmt: skip
        """A verdict on single rows. Outliers are of the kind of the group that they are seen in."""
        if any(not 0 <= row < self.given.frame.n_rows for row in rows):
            raise StairError(f"the table has rows 1 to {self.given.frame.n_rows:,}")
        is_kind = group is not None and self.given.verdict.negative not in (None, group.label)
        payload = json.dumps({"label": group.label}) if group is not None and is_kind else ""
        self.store.decide_rows(
            who, rows, cast(Verdict, verdict), note=note, key=once, payload=payload
        )

    def learn(
        self, who: str, request: Document, settings: Document, say: Say,
        *, relearn: bool = False,
    ) -> Revision:  # fmt: skip
        """Rules by these settings, from the present labels or from the verdicts so far."""
        state = self.store.state()
        learned_from = self._labels_in_use(state)
        if relearn:
            learned_from = state.last
        given = self._relabelled(learned_from)
        _check_classes(given)
        learn = learner(given, settings, say)
        whole = whole_weights(given)
        if self.book is not None:
            if whole is not None:
                raise StairError(
                    "rows have weights, and to rules in use others are added by rows alone; leave "
                    "the weights out"
                )
            now = self.now()
            exceptions = None if now is None else now.revision.summary.rules.exceptions
            learn = self.book.learner(learn, self._refused(state), exceptions)
        learned = learn(given.values, given.codes, whole)
        check = check_rules(learn, learned, given.values, given.codes, None, whole)
        say("counting")
        summary = summary_of(given, learned, {**settings, **learn.method.settings}, check)
        say("keeping the rules")  # or not, where somebody has stopped it meanwhile
        cause = "relearned" if relearn else "learned"
        return self._put_learned(who, cause, request, summary, given, learned_from)

    def _refused(self, state: State) -> set[str]:
        """The ids of rules in use that a verdict calls false alarms."""
        assert self.book is not None
        if state.rule_set is None:
            return set()
        revision = self._revision(state.rule_set)
        events = carried(state.rules.values(), [group.key for group in revision.groups]).kept
        wrong = [g for g in revision.groups if g.key in events
                 and events[g.key][-1].verdict == "inlier"]  # fmt: skip
        records = (self.book.record_of(revision, group) for group in wrong)
        return {record.id for record in records if record is not None}

    def load(self, who: str, request: Document, saved: Rulebook) -> Revision:
        """Rules from a file."""
        facts = saved.facts
        settings = {"max_rule_length": 10, **facts.get("settings", {}),
                    "method": facts.get("method", "stair"),
                    "min_score": float(facts.get("floor", 0.0))}  # fmt: skip
        check_settings(settings)
        unchecked = "they were loaded from a file"
        summary = summary_of(self.given, Learned(saved.rules, ()), settings, unchecked)
        return self._put_learned(who, "loaded", request, summary, self.given, 0)

    def edit(self, who: str, key: str, clause: int, new: Clause | None) -> Group:
        """A rule with another bound, or without a clause, in the place of the old one."""
        now = self.now()
        assert now is not None
        revision = now.revision
        group = revision.find(key)
        if group is None or group.number is None:
            raise StairError("this rule is not among the present ones; load the page again")
        summary = self.with_clause(revision, group, clause, new)
        assert now.state.rule_set is not None
        payload = self._payload(now.state.rule_set)
        before = payload["rules"]["rules"][group.number]
        after = json.loads(to_json(summary))["rules"][group.number]
        if said_by(after) == said_by(before):
            raise StairError("that is what the rule says already; nothing was changed")
        edits = []
        for edit in revision.edits:
            if said_by(edit["after"]) == said_by(before):
                before = edit["before"]
            else:
                edits.append(edit)
        if said_by(after) != said_by(before):
            edits.append(Edit(before=before, after=after))
        changed = self._put(
            who, "edited", payload["request"], summary, revision.given, revision.learned_from, edits
        )
        return next(each for each in changed.groups if each.number == group.number)

    def with_clause(
        self, revision: Revision, group: Group, clause: int, new: Clause | None
    ) -> Summary:
        """The rules as they would be with one clause changed, counted on all rows."""
        assert group.number is not None
        rules = revision.summary.rules
        rule = rules.rules[group.number]
        if not 0 <= clause < len(rule.clauses):
            raise StairError(f"the rule has {len(rule.clauses)} clauses, and none at {clause + 1}")
        kept = [
            *rule.clauses[:clause],
            *([] if new is None else [new]),
            *rule.clauses[clause + 1 :],
        ]
        if not kept:
            raise StairError("a rule needs at least one clause; reject the rule instead")
        rules = self._recounted(rules, group.number, tuple(kept), revision.given)
        return summary_of(revision.given, Learned(rules, ()), revision.settings, CHANGED)

    def _recounted(
        self, rules: RuleSet, number: int, clauses: tuple[Clause, ...], given: Intake
    ) -> RuleSet:
        old = rules.rules[number]
        changed = replace(rules, rules=(*rules.rules[:number], Rule(clauses, old.label, old.counts),
                                        *rules.rules[number + 1 :]))  # fmt: skip
        covered = changed.matches(given.values).applies[:, number]
        counts = np.bincount(given.codes[covered], minlength=len(rules.classes))
        rule = Rule(clauses, old.label, tuple(zip(rules.classes, counts.tolist(), strict=True)))
        changed = replace(changed, rules=(*rules.rules[:number], rule, *rules.rules[number + 1 :]))
        return with_own_scores(changed, given)

    # --- exceptions ---------------------------------------------------------------------------

    def find_exceptions(self, say: Say) -> None:
        """Exceptions for what was called a false alarm. Outliers are what the verdicts leave of
        them: those that nobody judged stay what the detector says."""
        now = self.now()
        assert now is not None
        verdict, rows = self.given.verdict, self.given.rows
        wrong, stays = called_wrong(now), are_outliers(verdict, now.judged.codes)
        wanted = Aim(seed=int(now.revision.settings.get("random_state") or 0))
        rules = now.revision.summary.rules
        values = self.given.values
        found = learn_exceptions(rules, values, wrong[rows], stays[rows], wanted, say)
        self.proposal = Proposal(now.state.last, wanted, found)

    def take_exceptions(self, who: str) -> None:
        """The exceptions that were found, in use from now on."""
        now, proposal = self.now(), self.proposal
        if now is None or proposal is None or proposal.last != now.state.last:
            raise StairError("the verdicts have changed since; look for exceptions again")
        self._except(who, now, proposal.found.rules.exceptions)

    def remove_exception(self, who: str, number: int) -> None:
        """The rules without one of their exceptions, by its number from 1."""
        now = self.now()
        exceptions = () if now is None else now.revision.summary.rules.exceptions
        if now is None or not 1 <= number <= len(exceptions):
            raise StairError("there is no such exception any more; load the page again")
        self._except(who, now, (*exceptions[: number - 1], *exceptions[number:]))

    def _except(self, who: str, now: Now, exceptions: Sequence[Rule]) -> None:
        """The present rules with these exceptions, counted by the labels as reviewed."""
        given = self._relabelled(now.state.last)
        _check_classes(given)
        rules = now.revision.summary.rules.with_exceptions(exceptions)
        rules = with_own_scores(count(rules, given.values, given.codes).recounted, given)
        summary = summary_of(given, Learned(rules, ()), now.revision.settings, EXCEPTED)
        assert now.state.rule_set is not None
        request = self._payload(now.state.rule_set)["request"]
        edits = now.revision.edits
        self._put(who, "excepted", request, summary, given, now.state.last, edits)
        self.proposal = None

    def _put_learned(
        self, who: str, cause: str, request: Document, summary: Summary, given: Intake,
        learned_from: int,
    ) -> Revision:  # fmt: skip
        """New rules. What a person changed in one of them before, by hand, is changed again."""
        last = self.store.state().rule_set  # as it is now: somebody may have changed it meanwhile
        edits = [] if last is None else self._payload(last)["edits"]
        document = json.loads(to_json(summary))
        said = [said_by(rule) for rule in document["rules"]]
        changed = []
        for edit in edits:
            before, after = said_by(edit["before"]), said_by(edit["after"])
            if before in said and after not in said:
                number = said.index(before)
                said[number], document["rules"][number] = after, edit["after"]
                changed.append(number)
        rules = from_json(json.dumps(document), "the review").rules if changed else summary.rules
        for number in changed:
            rules = self._recounted(rules, number, rules.rules[number].clauses, given)
        if kept := self._still_taking(rules, given):
            rules = count(rules.with_exceptions(kept), given.values, given.codes).recounted
        if changed or kept:
            why = CHANGED if changed else EXCEPTED
            summary = summary_of(given, Learned(rules, ()), summary.settings, why)
        return self._put(who, cause, request, summary, given, learned_from, edits)

    def _still_taking(self, rules: RuleSet, given: Intake) -> list[Rule]:
        """The exceptions in use that take a row from new rules too: those have none of their own,
        unless they are from a file."""
        now = self.now()
        if now is None or rules.exceptions or rules.default == rules.positive:
            return []
        present = now.revision.summary.rules.exceptions
        lifted = rules.with_exceptions(present).matches(given.values).lifted.any(axis=0)
        return [present[k] for k in np.flatnonzero(lifted)]

    def _put(
        self, who: str, cause: str, request: Document, summary: Summary, given: Intake,
        learned_from: int, edits: Sequence[Edit],
    ) -> Revision:  # fmt: skip
        payload = {
            "rules": json.loads(to_json(summary)),
            "settings": dict(summary.settings),
            "request": dict(request),
            "learned_from": learned_from,
            "edits": list(edits),
            "remembered": to_remember(summary),
        }
        event = self.store.put_rules(who, cause, json.dumps(payload, ensure_ascii=False))
        if cause != "edited":
            self.frontier = None  # it was of other labels, or of other settings
        revision = self._revised(event, summary, given, {"edited": [], **payload})
        with self._lock:
            return self._keep(event, revision)

    def _labels_in_use(self, state: State) -> int:
        if state.rule_set is None:
            return 0
        return int(self._payload(state.rule_set)["learned_from"])

    # --- length against score -----------------------------------------------------------------

    def find_frontier(self, settings: Document, say: Say) -> None:
        """Rules for several floors, with little effort; each point is shown when it is there."""
        given = self._relabelled(self._labels_in_use(self.store.state()))
        method, longest = str(settings["method"]), int(settings["max_rule_length"])
        points: list[tuple[float, int, float]] = []
        for number, floor in enumerate(FLOORS, start=1):
            say(f"length against score: floor {floor:.2f}, {number} of {len(FLOORS)}")
            learn = learner(given, {**settings, "min_score": floor, "effort": "fast"}, say)
            learned = learn(given.values, given.codes, whole_weights(given))
            summary = summary_of(given, learned, learn.method.settings)
            points.append((floor, summary.rules.total_length, summary.score))
            is_whole = number == len(FLOORS)
            self.frontier = Frontier(method, longest, tuple(points), is_whole)


def called_wrong(now: Now) -> NDArray[np.bool_]:
    """The rows of the table that were called false alarms."""
    wrong: NDArray[np.bool_] = now.judged.marks == INLIER
    return wrong


def _by_id(event: Event) -> int:
    return event.id


def _check_classes(given: Intake) -> None:
    if len(np.unique(given.codes)) < 2:
        raise StairError(
            "by the verdicts so far all rows are of one kind, so there is nothing to tell apart; "
            "take a verdict back first"
        )


def with_own_scores(rules: RuleSet, given: Intake) -> RuleSet:
    """Rules that were changed after learning must not carry the scores they were learned with.

    What training knew when it assigned rows to partitions is gone, so nothing better is claimed
    than what a new row gets.
    """
    if not rules.routing:
        return rules
    score = count(rules, given.values, given.codes).score
    return replace(rules, routing=replace(rules.routing, routed=score, assigned=score))
