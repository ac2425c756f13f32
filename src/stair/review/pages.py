"""What the page says: words and figures for the templates, from a review."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from stair.export.kinds import KINDS
from stair.export.sql_dialects import DIALECTS
from stair.export.text import (
    METHOD_NAMES,
    percent,
    score_in_words,
)
from stair.learn.exceptions import Aim
from stair.learn.methods import METHODS
from stair.operation.exceptions import in_words as exceptions_in_words
from stair.operation.standing import Standing
from stair.operation.words import change
from stair.report import clean, draw, environment, words
from stair.report.remarks import Remarks, beyond, on_the_frontier, taken
from stair.review.desk import Desk
from stair.review.forms import ClauseForm, form_of
from stair.review.jobs import Job
from stair.review.judged import WORDS, are_outliers, normal_of
from stair.review.revision import Frontier, Group, Now, Revision
from stair.review.rows import Page
from stair.review.session import Review, called_wrong
from stair.review.wishing import wish_form
from stair.summary import Summary
from stair.verdict.detectors import names as detector_names

PAGE_SIZE: Final = 50
MOST_OFFERED: Final = 100  # values of labels, to choose what is normal from
CAUSES: Final = {
    "learned": "learned from the detector's verdict",
    "relearned": "learned again from the verdicts",
    "edited": "edited by hand",
    "loaded": "loaded from a file",
    "excepted": "with other exceptions",
}


def names_of(finds_outliers: bool) -> dict[str, str]:
    """What the three verdicts are called."""
    if finds_outliers:
        return {"outlier": "True outliers", "inlier": "False alarm", "unsure": "Unsure"}
    return {"outlier": "Right", "inlier": "Wrong", "unsure": "Unsure"}


@dataclass(frozen=True, slots=True)
class Listing:
    """How a page of rows is wanted."""

    sort: str
    descending: bool
    search: str


@dataclass(frozen=True, slots=True)
class Item:
    """A group in the list."""

    key: str
    number: int | None
    text: str
    rows: int
    verdict: str  # "" where it is to judge
    note: str
    precision: float | None
    is_judged: bool
    is_edited: bool
    before: str  # what earlier verdicts say about most of its rows
    kind: str  # of outlier, where there are several
    is_falling: bool  # apart, on rows kept aside
    stands: Standing | None  # how a rule in use does now

    @property
    def status(self) -> str:
        """What there is to do about it, in a word."""
        return "in use" if self.stands is not None else "to judge"


@dataclass(frozen=True, slots=True)
class Excepting:
    """An exception, with the rows that it takes from the rules and what these are by the labels."""

    number: int
    text: str
    rows: int
    precision: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """The list of rules and how far the person is."""

    last: int
    items: tuple[Item, ...]
    inner: tuple[Item, ...]
    progress: str
    effort: str
    share: float
    lost: tuple[tuple[str, str, int, str], ...]  # rule, verdict, rows, note
    lost_edits: tuple[str, ...]
    other_data: int
    revision: int
    told: Remarks
    exceptions: tuple[Excepting, ...]
    alarms: Alarms

    @property
    def parts(self) -> list[tuple[str, list[Item]]]:
        """The groups to judge: rules in use before what is new, kind by kind where there are
        several."""
        if not any(item.stands for item in self.items):
            return [(kind, list(items)) for kind, items in groupby(self.items, lambda i: i.kind)]
        ordered = sorted(self.items, key=lambda item: item.stands is None)
        return [
            (f"{name}{': ' if kind else ''}{kind}", list(items))
            for (name, kind), items in groupby(
                ordered, lambda i: ("New" if i.stands is None else "In use", i.kind)
            )
        ]


def side_of(review: Review, now: Now) -> Side:
    revision, state = now.revision, now.state
    items = [_item(review, now, group) for group in revision.groups]
    main = [item for item in items if item.is_judged]
    rules = [item for item in main if item.number is not None]
    done = sum(bool(item.verdict) or is_well(item.stands) for item in rules)
    names = names_of(revision.finds_outliers)
    return Side(
        last=state.last,
        items=tuple(main),
        inner=tuple(item for item in items if not item.is_judged),
        progress=_progress(review, now, done, len(rules)),
        effort=effort(now),
        share=done / len(rules) if rules else 0.0,
        lost=tuple((e.text, names[e.verdict], e.n_rows, e.note) for e in now.carried.lost),
        lost_edits=tuple(revision.lost_edits),
        other_data=review.store.other_data(),
        revision=revision.event,
        told=revision.told if revision.has_verdict else Remarks(),
        exceptions=exceptions_of(revision),
        alarms=alarms_of(review, now),
    )


def exceptions_of(revision: Revision) -> tuple[Excepting, ...]:
    """The exceptions to the present rules."""
    return tuple(
        Excepting(
            k, each.rule.in_words(), each.rows, each.precision if revision.has_verdict else None
        )
        for k, each in enumerate(revision.summary.exceptions, start=1)
    )


@dataclass(frozen=True, slots=True)
class Alarms:
    """Rows that were called false alarms and that rules cover, and those of them that no exception
    takes."""

    rows: int = 0
    left: int = 0

    @property
    def wants(self) -> bool:
        """Whether exceptions cover less of them than they should."""
        return self.left > (1 - Aim().min_share) * self.rows


def alarms_of(review: Review, now: Now) -> Alarms:
    """What was called a false alarm, beside the rules."""
    rules = now.revision.summary.rules
    if not now.revision.finds_outliers or rules.default == rules.positive:
        return Alarms()
    wrong = np.flatnonzero(called_wrong(now)[review.given.rows])
    if not len(wrong):
        return Alarms()
    matches = rules.matches(review.given.values.take(wrong))
    gives_way = np.append(rules.gives_way, False)
    return Alarms(int(gives_way[matches.would_be].sum()), int(gives_way[matches.numbers].sum()))


def standing_of(review: Review, now: Now, group: Group) -> Standing | None:
    """How a rule in use does on these rows; None for any other."""
    present = now.revision.find(group.key)
    if review.book is None or present is None or present.number is None:
        return None
    return review.book.standing(now.revision, present)


def is_well(stands: Standing | None) -> bool:
    """Whether a rule is in use and does as before, so that nobody has to look at it."""
    return stands is not None and not stands.is_alarm


def is_settled(review: Review, now: Now, group: Group) -> bool:
    return is_well(standing_of(review, now, group))


def how_it_stands(stands: Standing) -> list[str]:
    """A rule in use in sentences: whose it is, how it does now, and what to do."""
    record = stands.record
    since = f" since {record.since}" if record.since else ""
    owner = f", of {record.owner}" if record.owner else ""
    note = f": {record.note}" if record.note else ""
    lines = [f"In use{since}{owner}{note}."]
    right, now = stands.then.right, stands.now.right
    if right is not None and right.rows and now is not None:
        low, high = now.interval
        here = f"{percent(now.value)} ({percent(low)} to {percent(high)})" if now.rows else "none"
        then = f"{percent(right.value)} of {words.counted(right.rows, 'row')}"
        lines.append(
            f"When learned it was right in {then}; here in {here} of "
            f"{words.counted(now.rows, 'row')}."
        )
    if stands.is_alarm:
        lines.append(f"{change(stands)} As a false alarm it is retired.")
    return lines


def _item(review: Review, now: Now, group: Group) -> Item:
    revision = now.revision
    event = now.verdict(group.key)
    present = revision.find(group.key)
    number = None if present is None else present.number
    precision, is_falling = (None, False) if number is None else revision.figures[number]
    return Item(
        key=group.key,
        number=None if number is None else number + 1,
        text=group.text,
        rows=len(group.rows),
        verdict="" if event is None else event.verdict,
        note="" if event is None else event.note,
        precision=precision,
        is_judged=group.is_judged,
        is_edited=group.key in revision.edited,
        before="" if event is not None else _before(now, group),
        kind=kind_of(revision, group),
        is_falling=is_falling,
        stands=standing_of(review, now, group),
    )


def kind_of(revision: Revision, group: Group) -> str:
    """The kind of outlier that a group is of; empty where there is one kind, or none."""
    is_one_of_many = revision.given.verdict.negative is not None and group.is_judged
    return str(revision.summary.rules.classes[group.label]) if is_one_of_many else ""


def own_columns(now: Now, group: Group) -> list[str]:
    """The columns of the table that a rule speaks of."""
    present = now.revision.find(group.key)
    if present is None or present.number is None:
        return []
    rules = now.revision.summary.rules
    source = {field.name: field.source for field in rules.schema.fields}
    return [source.get(name, name) for name in rules.rules[present.number].features]


def _before(now: Now, group: Group) -> str:
    """Rows of a rule without a verdict that were judged in other groups before."""
    marks = now.judged.marks[group.rows]
    counts = np.bincount(marks, minlength=len(WORDS))[1:]
    if not counts.any():
        return ""
    names = names_of(now.revision.finds_outliers)
    best = int(counts.argmax())
    word = "contested" if best == 3 else names[WORDS[best + 1]].lower()
    return f"{counts[best]:,} of its {len(group.rows):,} rows were judged before: {word}"


def _progress(review: Review, now: Now, done: int, n_rules: int) -> str:
    text = f"{done:,} of {words.counted(n_rules, 'rule')} judged"
    verdict = review.given.verdict
    if normal_of(verdict) is None or not review.has_verdict:
        return text
    outliers = are_outliers(verdict, verdict.codes)
    seen = int(np.count_nonzero(outliers & (now.judged.marks > 0)))
    return f"{text}, {seen:,} of {words.counted(n_outliers(review), 'outlier')}"


def n_outliers(review: Review) -> int:
    """Rows that the detector calls outliers, whatever the verdicts made of them since."""
    verdict = review.given.verdict
    return int(np.count_nonzero(are_outliers(verdict, verdict.codes)))


def name_of(now: Now, group: Group) -> str:
    present = now.revision.find(group.key)
    if present is None:
        return "A rule of an earlier set"
    return "Uncovered outliers" if present.number is None else f"Rule {present.number + 1}"


def cause(revision: Revision) -> str:
    if revision.cause == "learned" and revision.learned_from:
        return "learned from the labels as reviewed"
    return CAUSES.get(revision.cause, revision.cause)


def effort(now: Now) -> str:
    """What the person has done, and what it is worth."""
    judged = now.judged
    if not now.state.n_decisions:
        return "No decision yet"
    text = (
        f"{words.counted(now.state.n_decisions, 'decision')} "
        f"{'covers' if now.state.n_decisions == 1 else 'cover'} "
        f"{words.counted(judged.n_rows, 'row')}"
    )
    if judged.by_hand:
        text += f": {judged.by_rules:,} by rules, {judged.by_hand:,} one by one"
    return text


def done(now: Now, job: Job | None) -> str:
    """What a job has come to: the rules that there are, and what became of the verdicts."""
    if job is not None and job.kind != "learning":
        return f"Done: {job.title.lower()}."
    found = now.carried
    text = f"{now.revision.headline}."
    if found.kept or found.lost:
        text += f" {words.counted(len(found.kept), 'rule')} kept a verdict"
        text += f", {words.counted(len(found.lost), 'verdict')} lost the rule" if found.lost else ""
        text += "."
    if lost := now.revision.lost_edits:
        n_lost = words.counted(len(lost), "changed rule")
        text += f" {n_lost} {'is' if len(lost) == 1 else 'are'} not among them."
    return text


def panel(review: Review, now: Now, group: Group) -> str:
    """A group with its evidence and the place where its rows come."""
    revision = now.revision
    present = revision.find(group.key)
    judged = [each for each in revision.groups if each.is_judged]
    keys = [each.key for each in revision.groups]
    at = keys.index(group.key) if group.key in keys else -1
    shown = present if present is not None and present.number is not None else None
    n_excepted = revision.taken[shown.number] if shown else 0  # type: ignore[index]
    extra = len(group.rows) - revision.summary.evidence[shown.number].rows if shown else 0  # type: ignore[index]
    return render(
        "panel.html",
        review=review,
        report=revision,
        revision=revision,
        group=group,
        is_present=present is not None,
        rule=None if shown is None else revision.view(shown),
        names=names_of(revision.finds_outliers),
        n_judged=len(judged),
        is_edited=group.key in revision.edited,
        n_left_out=extra - n_excepted,
        n_excepted=n_excepted,
        previous=keys[at - 1] if at > 0 else "",
        next=keys[at + 1] if 0 <= at < len(keys) - 1 else "",
        item=_item(review, now, group),
        stands=[] if (stands := standing_of(review, now, group)) is None else how_it_stands(stands),
        kind=kind_of(revision, group),
    )


def rows(review: Review, now: Now, group: Group, page: Page, asked: Listing) -> str:
    given, state = review.given, now.state
    classes = [now.revision.summary.rules.label_name(c) for c in given.verdict.classes]
    codes = given.verdict.codes[page.rows]
    return render(
        "rows.html",
        group=group,
        page=page,
        asked=asked,
        has_verdict=review.has_verdict,
        labels=["–" if code < 0 else classes[code] for code in codes.tolist()],
        marks=[mark_of(now, row) for row in page.rows.tolist()],
        reasons=now.revision.reasons(group, page.rows),
        notes=[state.rows[row].note if row in state.rows else "" for row in page.rows.tolist()],
        names=names_of(now.revision.finds_outliers),
        size=PAGE_SIZE,
        n_own=len(set(own_columns(now, group)) & set(page.columns)),
    )


def mark_of(now: Now, row: int) -> tuple[str, bool]:
    """The word about a row, and whether it was said about this row itself."""
    return WORDS[int(now.judged.marks[row])], row in now.state.rows


def tune(desk: Desk, review: Review, now: Now) -> str:
    settings = now.revision.settings
    return render(
        "tune.html",
        settings=settings,
        methods=[(m, METHOD_NAMES[m].split(":")[0].split(",")[0]) for m in METHODS],
        summary=now.revision.summary,
        revision=now.revision,
        cause=cause(now.revision),
        headline=now.revision.headline,
        told=now.revision.told,
        has_verdict=review.has_verdict,
        wishes=wish_form(review.given, settings),
        frontier=frontier(review, now),
        is_busy=desk.jobs.is_busy,
    )


def frontier(review: Review, now: Now) -> dict[str, object] | None:
    """Length against score, and the rules that are shown now: of several floors where they were
    tried, else as the present rules are taken one by one."""
    found: Frontier | None = review.frontier
    summary = now.revision.summary
    floor = None if summary.kinds or not summary.min_score else summary.min_score
    if found is None:
        if len(summary.frontier) < 2 or not now.revision.has_verdict:
            return None
        chosen = on_the_frontier(summary)
        points = taken(summary.frontier, chosen)
        return {
            "curve": draw.curve(points, chosen, floor, 1.0, beyond(summary.frontier, chosen)),
            "title": f"{summary.score_name} as the present rules are taken one by one",
            "points": (),
            "is_whole": True,
        }
    line = sorted((float(length), value) for _, length, value in found.points)
    here = (float(summary.rules.total_length), summary.score)
    return {
        "curve": draw.curve(line, here, floor, 1.0),
        "title": f"Total length against {summary.score_name}, rules of at most "
        f"{words.counted(found.longest, 'attribute')}",
        "points": found.points,
        "is_whole": found.is_whole,
    }


def edit_form(revision: Revision, group: Group) -> list[ClauseForm]:
    assert group.number is not None
    rule = revision.summary.rules.rules[group.number]
    values = revision.given.values
    return [form_of(c, k, values[c.feature]) for k, c in enumerate(rule.clauses)]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a changed rule would match, beside what it matches now."""

    text: str
    sentence: str


def preview(revision: Revision, group: Group, changed: Summary) -> Preview:
    assert group.number is not None
    old, new = revision.summary.evidence[group.number], changed.evidence[group.number]
    difference = new.rows - old.rows
    moved = "as many as now" if not difference else f"{difference:+,}".replace("-", "−")
    text = f"Would match {words.counted(new.rows, 'row')} ({moved})"
    if revision.has_verdict and new.rows:
        text += f", {percent(new.precision)} right (now {percent(old.precision)})"
    if revision.has_verdict:
        before, after = float(revision.summary.score), float(changed.score)
        whose = "all rules"
        if changed.kinds:
            label = new.rule.label
            before, after = (
                next((kind.score for kind in each.kinds if kind.label == label), 0.0)
                for each in (revision.summary, changed)
            )
            whose = str(label)
        then, now = (score_in_words(each, changed.min_score, 3) for each in (after, before))
        text += f". {changed.score_name} of {whose} {then} (now {now})"
    return Preview(new.rule.in_words(), text + ".")


def excepting(review: Review, now: Now) -> str:
    """The exceptions in use, and those that were found for the verdicts so far."""
    revision, proposal = now.revision, review.proposal
    present = proposal if proposal is not None and proposal.last == now.state.last else None
    rules = revision.summary.rules
    return render(
        "except.html",
        review=review,
        exceptions=exceptions_of(revision),
        alarms=alarms_of(review, now),
        proposal=present,
        found=None if present is None else present.found,
        sentence="" if present is None else exceptions_in_words(present.found, present.wanted),
        name=rules.label_name(rules.default),
        names=names_of(revision.finds_outliers),
    )


def taking(review: Review, now: Now) -> str:
    judged = now.judged
    accepted = accepted_rules(review, now)
    return render(
        "take.html",
        counts=[(word, judged.count(code)) for code, word in enumerate(WORDS) if code],
        name=stem_of(review),
        n_rows=review.given.frame.n_rows,
        n_judged=judged.n_rows,
        n_accepted=len(accepted),
        n_exceptions=len(now.revision.summary.rules.exceptions),
        kinds=KINDS,
        dialects=tuple(DIALECTS),
        effort=effort(now),
        names=names_of(now.revision.finds_outliers),
    )


def stem_of(review: Review) -> str:
    """The file's name without its endings, fit for a file and for a table in SQL."""
    stem = review.given.source.split(".")[0]
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in stem)[:60] or "data"


def accepted_rules(review: Review, now: Now) -> list[int]:
    """The places of the present rules that were called true outliers, now or in their file."""
    return [
        group.number
        for group in now.revision.groups
        if group.number is not None and group.is_judged and _is_accepted(review, now, group)
    ]


def _is_accepted(review: Review, now: Now, group: Group) -> bool:
    event = now.verdict(group.key)
    if event is None:
        return standing_of(review, now, group) is not None
    return event.verdict == "outlier"


def start(desk: Desk, most: int) -> str:
    return render(
        "start.html",
        files=[] if desk.folder is None else desk.folder.files(),
        can_choose=desk.folder is not None,
        wanted=desk.wanted,
        most=most,
    )


def setup(
    name: str, columns: list[tuple[str, str, list[str]]], n_rows: int, guess: str | None
) -> str:
    likely = sorted(columns, key=lambda column: column[0] != guess)
    values = dict.fromkeys(value for _, _, classes in likely for value in classes)
    return render(
        "setup.html",
        name=name,
        columns=columns,
        values=list(values)[:MOST_OFFERED],
        n_rows=n_rows,
        guess=guess,
        detectors=detector_names(),
        methods=[(m, METHOD_NAMES[m].split(":")[0].split(",")[0]) for m in METHODS],
    )


def render(template: str, **context: object) -> str:
    return clean(environment("stair.review").get_template(template).render(**context))
