"""`stair.update`: rules that are in use stay, and the shortest others bring the floor back."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from stair.data import Frame
from stair.data.lock import held
from stair.data.source import Source
from stair.errors import StairError, check_count, no_such_column, option
from stair.export.json import Rulebook, facts_of, load, to_json
from stair.intake import Columns, Intake, Statement, read_table, take_in
from stair.learn.addition import Addition
from stair.learn.kinds import kinds_of
from stair.learn.learner import Learner, check_rules
from stair.learn.method import Certificate, Method
from stair.learn.methods import METHODS, method_of, settings_of
from stair.operation.check import CheckUp
from stair.operation.check import check as check_up
from stair.operation.counting import Labels
from stair.operation.standing import Standing
from stair.operation.update_words import to_text
from stair.progress import listener
from stair.rules.counted import Counted, count
from stair.rules.document import new_records
from stair.rules.record import Evidence, Record
from stair.rules.routing import NO_ROUTING
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema, Values
from stair.summary import Summary, summary_of
from stair.verdict.labels import Verdict

# What is asked of all rules together, so that it cannot be asked of additional ones.
_OF_ALL: Final = ("min_precision", "min_rule_precision", "min_recall", "max_alerts", "max_rules",
                  "beta")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Update:
    """What became of a rulebook on new data.

    `book` is the rulebook as it is from now on, and `before` as it was. `check` says how the rules
    did that were in force before, and `summary` has all rules in force, counted on the new data.
    `added` are the numbers (from 1) of the rules that were learned, `again` those among them that
    were candidates before, and `gone` the candidates that are no longer there. `retire` are the
    accepted rules that should be retired, which is a person's word.
    """

    before: Rulebook
    book: Rulebook
    check: CheckUp
    summary: Summary
    score_before: float  # of the accepted rules alone
    added: tuple[int, ...]
    again: tuple[int, ...]
    gone: tuple[tuple[Rule, Record], ...]
    notes: tuple[str, ...]
    is_written: bool = False

    @property
    def retire(self) -> tuple[Standing, ...]:
        """How the accepted rules stand that have decayed, faded or cannot be asked any more."""
        return tuple(each for each in self.check.standings if each.is_alarm
                     and each.record.status == "accepted")  # fmt: skip

    @property
    def expired(self) -> tuple[int, ...]:
        """The numbers (from 1) of the rules of `check` that were meant until an earlier day."""
        return self.check.expired

    @property
    def floor_reached(self) -> bool:
        """Whether all rules together are above the floor on the new data."""
        return self.summary.floor_reached

    @property
    def certificate(self) -> Certificate | None:
        """How short the additional rules could be."""
        return self.summary.certificate

    @property
    def has_changed(self) -> bool:
        """Whether the file is another one than before."""
        return to_json(self.before) != to_json(self.book)

    def __str__(self) -> str:
        return to_text(self, 80)


def update(
    rulebook: Rulebook | str | Path,
    data: object,
    labels: str,
    *,
    positive: object = None,
    min_score: float | None = None,
    method: Method | None = None,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    validate: int | None = None,
    on: dt.date | None = None,
    write: bool = False,
) -> Update:
    """Accepted rules as they are, and the shortest additional ones for the new data.

    Candidates are learned again, and retired rules stay for their history. Without accepted rules
    it is `summarize`, with the settings of the file. No rule is retired: that is a person's word.
    Where no rule comes and none goes, the file stays as it is.

    Parameters
    ----------
    rulebook : Rulebook or path
        Rules that were saved.
    data : DataFrame, Arrow table, array, dict of columns, path or Source
        The new rows.
    labels : str
        The column that says which rows are outliers, read as it was when the rules were learned.
    positive : value, list of values or AllBut, optional
        The value that means outlier, or several, or `stair.AllBut("ok")`, where that has changed.
    min_score : float, optional
        The floor; by default that of the file.
    method : one of the estimators, optional
        Other settings than those of the file.
    include, exclude, kinds : optional
        As for `summarize`; columns that were excluded then are excluded now.
    validate : int, optional
        As for `summarize`.
    on : date, optional
        The day since which new rules are there; by default today.
    write : bool
        Write the file again, whole or not at all. While this goes on no other stair changes it.
    """
    if validate is not None:
        check_count("validate", validate, 0)
    if write and isinstance(rulebook, Rulebook):
        raise StairError(f"{option('write')} is for a file; give the path of the rulebook")
    with held(rulebook) if write else nullcontext():  # type: ignore[arg-type]
        book = rulebook if isinstance(rulebook, Rulebook) else load(rulebook)
        columns = Columns(include, [*exclude, *_excluded(book, exclude)], kinds)
        labelling = Labels(labels, book.codebook, positive)
        floor = {} if min_score is None else {"min_score": min_score}
        how = method_of_book(book, **floor) if method is None else method_of(method, **floor)
        found = _updated(book, Source.of(data), labelling, columns, how, validate,
                         on or dt.date.today())  # fmt: skip
        if write:
            found.book.to_json(rulebook)  # type: ignore[arg-type]
            found = replace(found, is_written=True)
    return found


def _score_of(counted: Counted, negative: int | None, floor: float) -> float:
    """As that of a summary: of several kinds of outlier that of the kind that does worst."""
    if negative is None:
        return counted.score
    return min(kind.score for kind in kinds_of(counted, negative, floor))


def _excluded(book: Rulebook, but: Collection[str]) -> list[str]:
    """The columns that somebody left out when the rules were learned."""
    left_out = book.facts.get("left_out") or {}
    return [name for name, why in left_out.items() if why == "excluded" and name not in but]


def method_of_book(book: Rulebook, **changed: object) -> Method:
    """How the rules of a file were learned, with some settings changed."""
    settings = book.facts.get("settings") or {}
    name = settings.get("method", "distilled")
    if name not in METHODS:
        raise StairError(f"the rules were learned by {name!r}, which this stair does not have; "
                         f"say how with {option('method')}")  # fmt: skip
    own = {key: settings[key] for key in settings_of(name) if key in settings}
    return method_of(name, **{**own, **changed})


# --- one update -----------------------------------------------------------------------------------


def _updated(
    book: Rulebook,
    source: Source,
    labelling: Labels,
    columns: Columns,
    how: Method,
    validate: int | None,
    on: dt.date,
) -> Update:
    say = listener()
    stay = [k for k in book.in_force if book.records[k].status == "accepted"]
    accepted = accepted_of(book)
    notes: list[str] = []
    if weights := (book.facts.get("settings") or {}).get("weights"):
        notes.append(f"the rules were learned with weights ({weights}); here rows are counted")
    is_beside = bool(stay or accepted.exceptions)
    if is_beside:
        how, more = for_additions(book, accepted, how)
        notes += more
    given, schema = _given(book, accepted, source, labelling, columns, how)
    learn: Learner
    if is_beside:
        learn = Addition(how, given.schema, given.verdict, say,
                         given=replace(accepted, schema=schema))  # fmt: skip
    else:
        learn = Learner(how, given.schema, given.verdict, say)
    alone = count(replace(accepted, schema=schema), given.values, given.codes)
    learned = learn(given.values, given.codes)
    checked = check_rules(learn, learned, given.values, given.codes, validate)
    say("counting")
    rules = replace(learned.rules, schema=schema)
    settings = {**how.settings, "time_parts": source.time_parts, "time_zone": source.time_zone,
                "validate": validate}  # fmt: skip
    summary = summary_of(given, learned._replace(rules=rules), settings, checked)
    frame = Source(given.frame, name=given.source)
    stands = check_up(book, frame, labelling.name, positive=labelling.positive, on=on)
    new, known = _next_book(book, stay, summary, schema, on)
    first = len(stay)
    listed = summary.rules.rules[first:]
    again = tuple(first + 1 + k for k, rule in enumerate(listed) if rule.clauses in known)
    found_again = {rule.clauses for rule in listed}
    gone = tuple(
        (book.kept.rules[k], book.records[k])
        for k in book.in_force
        if book.records[k].status == "candidate" and book.kept.rules[k].clauses not in found_again
    )
    has_other_rules = len(summary.rules) > first or bool(gone)
    return Update(
        before=book,
        book=new if has_other_rules else book,
        check=stands,
        summary=summary,
        score_before=_score_of(alone, given.verdict.negative, summary.min_score),
        added=tuple(range(first + 1, len(summary.rules) + 1)),
        again=again,
        gone=gone,
        notes=tuple(dict.fromkeys([*book.notes, *notes, *summary.notes])),
    )


def accepted_of(book: Rulebook, but: Collection[str] = ()) -> RuleSet:
    """The accepted rules of a book, but for some by their ids, with all exceptions in force."""
    stay = [k for k in book.in_force if book.records[k].status == "accepted"
            and book.records[k].id not in but]  # fmt: skip
    found = replace(book.kept.with_rules(stay), exceptions=book.rules.exceptions)
    return found if stay else replace(found, routing=NO_ROUTING)


def for_additions(book: Rulebook, accepted: RuleSet, how: Method) -> tuple[Method, list[str]]:
    """The method for rules in addition to others, and what is said where it is another one. What
    nothing can be added to is refused."""
    if book.kept.routing:
        raise StairError(
            "these rules are of several partitions, and to such nothing can be added; learn rules "
            "of another method"
        )
    _check_classes(book, accepted)
    notes, settings = [], {}
    if how.name != "distilled":
        notes.append(f"additional rules are distilled; the others were learned by {how.name}")
        own = {key: value for key, value in how.get_params().items()
               if key in settings_of("distilled")}  # fmt: skip
        how = method_of("distilled", **own)
    usual = method_of("distilled").get_params()
    wished = [name for name in _OF_ALL if how.get_params()[name] != usual[name]]
    if wished:
        of = ", ".join(option(name, how.get_params()[name]) for name in wished)
        notes.append(f"{of} is about all rules together, and is not asked of additional ones")
        settings = {name: usual[name] for name in wished}
        if not how.get_params()["min_score"]:
            settings["min_score"] = None
    most = how.get_params()["max_total_length"]
    if most is not None:
        settings["max_total_length"] = max(0, most - accepted.total_length)
    return method_of(how, **settings), notes


def _check_classes(book: Rulebook, accepted: RuleSet) -> None:
    """Refuse what nothing can be added to."""
    for number, rule in enumerate(accepted.rules, start=1):
        if rule.label == accepted.default:
            raise StairError(
                f"accepted rule {number} ({rule}) is about rows that are no outliers, and rules "
                "are added for outliers alone; make an exception of it, or retire it"
            )
    if accepted.positive is None and not book.facts.get("kinds"):
        raise StairError(
            "these rules tell classes apart of which none is normal; rules are added for outliers "
            f"alone: learn with {option('positive')} or {option('negative')}"
        )


def _given(
    book: Rulebook,
    accepted: RuleSet,
    source: Source,
    labelling: Labels,
    columns: Columns,
    how: Method,
) -> tuple[Intake, Schema]:
    """The new table with its verdict, and the schema of all rules: fields that rules of the file
    speak of are of the type that they were of."""
    say, name = listener(), labelling.name
    assert name is not None
    stays = [rule for rule, record in zip(book.kept.rules, book.records, strict=True)
             if record.status != "candidate"]  # fmt: skip
    spoken = {n for rule in (*stays, *book.kept.exceptions) for n in rule.features}
    old = {f.name: f for f in book.kept.schema.fields if f.name in spoken}
    told = {f.source: f.kind for f in old.values() if f.part is None}
    kinds = {**told, **(columns.kinds or {})}
    settings = book.facts.get("settings") or {}
    if source.time_parts and settings.get("time_parts") is False:
        source = replace(source, time_parts=False)
    if source.time_zone is None and isinstance(settings.get("time_zone"), str):
        source = replace(source, time_zone=settings["time_zone"])
    frame = read_table(source, Columns(kinds=kinds), [], say)
    there = frame.columns
    if name not in there:
        raise no_such_column(name, there, source.name or frame.source or "the data")
    for number, rule in enumerate(accepted.rules, start=1):
        gone = next((old[c.feature].source for c in rule.clauses
                     if old[c.feature].source not in there), None)  # fmt: skip
        if gone is not None:
            raise StairError(
                f'accepted rule {number} ({rule}) speaks of "{gone}", which is not there; retire '
                "the rule first, or give a table that has the column"
            )
    codes = labelling.codes(there[name], book.rules)
    rules = book.kept
    n_classes = len(rules.classes)
    if (codes >= n_classes).any():
        raise StairError(
            f'the label column "{name}" has values that the rules do not know; learn all rules '
            "again with summarize"
        )
    if len(np.unique(codes[codes >= 0])) < 2:
        raise StairError(
            f'the label column "{name}" says the same of all rows here, so there is nothing to '
            "tell apart"
        )
    positive = None if rules.positive is None else rules.classes.index(rules.positive)
    negative = rules.classes.index(rules.default) if book.facts.get("kinds") else None
    meaning = str(book.facts.get("label", name))
    verdict = Verdict(codes, rules.classes, positive, meaning, (), negative, book.codebook)
    chosen = Columns(
        columns.include,
        [*(n for n in columns.exclude if n in there), name],
        {n: kind for n, kind in kinds.items() if n in there and n not in columns.exclude},
    )
    whole = replace(source, data=frame, table=None, query=None)
    statement = Statement(verdict, has_kinds=how.has_kinds, random_state=how.random_state)
    given = take_in(whole, statement, chosen, say)
    left_out = {n: why for n, why in given.left_out.items() if n != name}
    data = frame if isinstance(source.data, str | Path) else source.data
    given = replace(given, left_out=left_out, data=data, n_columns=given.n_columns - 1)
    return _with_old_fields(given, old, frame)


def _with_old_fields(
    given: Intake, old: Mapping[str, Field], frame: Frame
) -> tuple[Intake, Schema]:
    """The table as the rules of the file read it, where they do, and the schema of all rules."""
    new = {f.name: f for f in given.schema.fields}
    wrong = next((n for n, f in old.items() if n in new and new[n].kind != f.kind), None)
    if wrong is not None:
        raise StairError(
            f'"{wrong}" is a {new[wrong].kind} here, and rules of the file speak of it as a '
            f"{old[wrong].kind}; name its kind with {option('kinds')}"
        )
    here = tuple(f for f in old.values() if f.source in frame.columns)
    read = Schema(here).read(frame)
    own = read.take(given.rows) if len(given.rows) < frame.n_rows else read
    arrays = {**given.values, **own}
    seen = Schema(here).remembering(own)
    kept = {f.name: _knowing(old[f.name], f) for f in seen.fields}
    values = Values(arrays, len(given.rows))
    learning = tuple(kept.get(f.name, f) for f in given.schema.fields)
    rest = tuple(kept.get(n, f) for n, f in old.items() if n not in new)
    columns = given.schema.columns
    notes = tuple(note for note in read.notes if note not in given.frame.notes)
    given = replace(
        given,
        schema=Schema(learning, columns),
        values=values,
        frame=replace(given.frame, notes=(*given.frame.notes, *notes)),
    )
    return given, Schema((*learning, *rest), columns)


def _knowing(old: Field, new: Field) -> Field:
    """A field with the categories that it had and that it has now."""
    if old.known is None or new.known is None:
        return replace(old, known=None) if old.kind == "category" else old
    more = [value for value in new.known if value not in old.known]
    return replace(old, known=(*old.known, *more))


def _next_book(
    book: Rulebook, stay: Sequence[int], summary: Summary, schema: Schema, on: dt.date
) -> tuple[Rulebook, set[Any]]:
    """The rulebook with the rules that were learned in place of its candidates, and the clauses of
    the candidates that were learned again."""
    kept = [k for k, record in enumerate(book.records) if record.status != "candidate"]
    if kept and summary.rules.routing:
        raise StairError(
            "the file has retired rules, beside which there can be no rules of several partitions; "
            "take another method, or another file"
        )
    learned = summary.rules.rules[len(stay) :]
    before = {
        (rule.clauses, rule.label): record
        for rule, record in zip(book.kept.rules, book.records, strict=True)
        if record.status == "candidate"
    }
    taken = [r.id for k, r in enumerate(book.records) if k in kept or r in before.values()]
    taken += [r.id for r in book.exception_records]
    totals = summary.rules.totals
    evidence = Evidence(summary.source, tuple(totals))
    fresh = [rule for rule in learned if (rule.clauses, rule.label) not in before]
    made = iter(new_records(fresh, summary.source, totals, taken))
    records = [
        replace(before[rule.clauses, rule.label], evidence=evidence)
        if (rule.clauses, rule.label) in before
        else replace(next(made), since=on.isoformat())
        for rule in learned
    ]
    rules = replace(
        book.kept,
        rules=(*(book.kept.rules[k] for k in kept), *learned),
        schema=schema,
        totals=totals,
        usual=summary.rules.usual,
        routing=summary.rules.routing,
    )
    facts = json.loads(json.dumps(facts_of(summary)))  # as they will be read
    next_book = Rulebook(
        rules, facts, (), (*(book.records[k] for k in kept), *records), book.exception_records
    )
    return next_book, {clauses for clauses, _ in before}
