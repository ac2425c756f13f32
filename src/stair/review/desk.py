"""What the page has open: nothing yet, a file being read, or a review."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from stair.data import Frame, read
from stair.data.source import Source
from stair.data.zones import zone_named
from stair.errors import StairError, option
from stair.export.json import Rulebook, load, to_json
from stair.intake import Columns, Intake, Statement, take_in
from stair.learn.method import UNSPOKEN
from stair.learn.methods import method_of, settings_of
from stair.operation.update import method_of_book
from stair.review.files import Folder
from stair.review.identity import fingerprint_of_table, id_of_text
from stair.review.jobs import Job, Jobs, Say
from stair.review.kept import has_rules_in_use, kept_of
from stair.review.log import NOBODY
from stair.review.session import Review
from stair.review.store import Store
from stair.rules.agreement import predicted_classes
from stair.rules.schema import Schema, Values
from stair.verdict.labels import Verdict

SUFFIX: Final = ".review.sqlite"
"""Verdicts are kept beside the data: payments.csv has payments.csv.review.sqlite."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What to open and how to learn, from the command or from the start page."""

    file: Path
    rules: Path | None = None
    label: str | None = None
    score: str | None = None
    contamination: float | None = None
    detector: str | None = None
    positive: Sequence[str] | None = None
    negative: str | None = None
    table: str | None = None
    query: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    time_parts: bool = True
    time_zone: str | None = None
    time_windows: bool = False
    seed: int = 0
    method: str = "distilled"
    min_score: float = 0.8
    max_rule_length: int = 10
    weights: str | None = None
    wishes: Mapping[str, object] = field(default_factory=dict)  # beside the floor on F1

    @property
    def has_verdict(self) -> bool:
        return bool(self.label or self.score or self.detector)

    @property
    def settings(self) -> dict[str, object]:
        return {
            "method": self.method,
            "min_score": self.min_score,
            "max_rule_length": self.max_rule_length,
            "time_windows": self.time_windows,
            "random_state": self.seed,
            **({} if self.weights is None else {"weights": self.weights}),
            **self.wishes,
        }

    @property
    def request(self) -> dict[str, object]:
        """What decides whether rules in the store are the ones that were asked for."""
        found = asdict(self)
        del found["file"]
        found["rules"] = None if self.rules is None else self.rules.name
        found["include"], found["exclude"] = list(self.include), list(self.exclude)
        for name in ("negative", "weights", "wishes"):  # reviews that began before these go on
            if not found[name]:
                del found[name]
        return found

    def check(self) -> Opening:
        own = settings_of(self.method)
        given = {n: value for n, value in self.settings.items() if n in own}
        method_of(self.method, **given, **{n: v for n, v in self.wishes.items() if n not in own})
        if self.time_zone is not None:
            zone_named(self.time_zone)  # what is none is refused before anything is read
        if self.rules is None and not self.has_verdict:
            raise StairError(
                f"who says which rows are outliers? Give {option('labels')} COLUMN, "
                f"{option('scores')} COLUMN with {option('contamination')}, or "
                f"{option('detector')} NAME (or saved rules before the file)"
            )
        return self


def spoken_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without wishes that nobody has."""
    return {n: v for n, v in settings.items() if n not in UNSPOKEN or v != UNSPOKEN[n]}


@dataclass(eq=False)
class Desk:
    """One table at a time; `folder` is there where files may be chosen on the page."""

    folder: Folder | None = None
    db: Path | None = None
    jobs: Jobs = field(default_factory=Jobs)
    review: Review | None = None
    wanted: Opening | None = None

    def open(self, wanted: Opening) -> Job:
        """Reads and learns in the background. The rules it learns are nobody's to undo."""
        wanted.check()
        before, self.review, self.wanted = self.review, None, wanted

        def work(say: Say) -> None:
            if before is not None:
                before.store.close()
            self.review = open_review(wanted, self.db, say)

        return self.jobs.start(f"Opening {wanted.file.name}", work)

    def learn(self, who: str, changes: Mapping[str, object], *, relearn: bool = False) -> Job:
        """Rules again, with other settings or from the verdicts."""
        review, wanted = self.review, self.wanted
        if review is None or wanted is None:
            raise StairError("nothing is open; choose a file first")
        now = review.now()
        present = {} if now is None else dict(now.revision.settings)
        settings = spoken_of({**wanted.settings, **present, **changes})
        replace(
            wanted, method=str(settings["method"]), min_score=float(settings["min_score"]),
            max_rule_length=int(settings["max_rule_length"]),
            wishes={name: settings[name] for name in UNSPOKEN if name in settings},
        ).check()  # fmt: skip

        request = wanted.request if review.request is None else review.request

        def work(say: Say) -> None:
            review.learn(who, request, settings, say, relearn=relearn)

        return self.jobs.start("Learning again from the verdicts" if relearn else "Learning", work)

    def close(self) -> None:
        review, self.review = self.review, None
        if review is not None:
            review.store.close()


def open_review(wanted: Opening, db: Path | None, say: Say) -> Review:
    """The table, its verdicts of earlier days, and rules: found in the store, or learned."""
    saved = None if wanted.rules is None else load(wanted.rules)
    given = _given(wanted, saved, say)
    say("looking for earlier verdicts")
    path = db or wanted.file.with_name(wanted.file.name + SUFFIX)
    is_in_use = has_rules_in_use(saved) and wanted.has_verdict
    book = kept_of(saved, given) if saved is not None and is_in_use else None
    review = Review(given, Store(path, fingerprint_of_table(given.frame.columns)),
                    has_verdict=wanted.has_verdict, book=book)  # fmt: skip
    request = wanted.request
    if saved is not None and book is not None:  # another state of the file begins anew
        request["rulebook"] = id_of_text(to_json(saved))
    review.request = request
    try:
        if not review.can_go_on(request):
            if saved is None:
                review.learn(NOBODY, request, wanted.settings, say)
            elif book is not None:
                review.learn(NOBODY, request, settings_of_book(saved), say)
            else:
                review.load(NOBODY, request, saved)
        say("counting")
        review.now()
    except BaseException:
        review.store.close()
        raise
    return review


def settings_of_book(saved: Rulebook) -> dict[str, object]:
    """How the rules of a file were learned: the others beside them are learned alike."""
    found = dict(method_of_book(saved).settings)
    return {"max_rule_length": 10, "min_score": 0.8, **found}


def _given(wanted: Opening, saved: Rulebook | None, say: Say) -> Intake:
    say(f"reading {wanted.file.name}")
    texts = () if saved is None else saved.rules.schema.texts()
    frame = read(wanted.file, table=wanted.table, query=wanted.query, texts=texts)
    kinds: dict[str, str] = {}
    labels: str | Verdict | None = wanted.label
    has_kinds = wanted.method == "distilled"
    if saved is not None:
        has_kinds = "kinds" in saved.facts
        own = {f.source: f.kind for f in saved.fields if f.part is None}
        kinds = {name: kind for name, kind in own.items() if name in frame.columns}
        if not wanted.has_verdict:
            labels = _labels_by(saved, frame)
    source = Source(frame, None, None, wanted.file.name, wanted.time_parts, wanted.time_zone)
    statement = Statement(
        labels, wanted.score, wanted.contamination, wanted.detector, wanted.positive,
        wanted.negative, has_kinds, wanted.seed, wanted.weights,
    )  # fmt: skip
    chosen = Columns(wanted.include or None, wanted.exclude, kinds or None)
    given = take_in(source, statement, chosen, say)
    return given if saved is None else _with_fields(given, saved)


def _labels_by(saved: Rulebook, frame: Frame) -> Verdict:
    """Nobody gave a verdict, so the rules themselves say which rows are outliers."""
    rules = saved.rules
    codes = predicted_classes(rules, rules.read(frame)).astype(np.int32)
    positive = None if rules.positive is None else rules.classes.index(rules.positive)
    negative = rules.classes.index(rules.default) if "kinds" in saved.facts else None
    return Verdict(codes, rules.classes, positive, "what the rules say", (), negative)


def _with_fields(given: Intake, saved: Rulebook) -> Intake:
    """The table with the rules' own fields, as they were when the rules were learned."""
    if tuple(map(str, saved.rules.classes)) != tuple(map(str, given.verdict.classes)):
        raise StairError(
            f"the rules tell {', '.join(map(str, saved.rules.classes))} apart, but the verdict "
            f"has {', '.join(map(str, given.verdict.classes))}"
        )
    known = {f.name: f for f in saved.fields}
    rest = tuple(f for f in given.schema.fields if f.name not in known)
    values = saved.rules.schema.read(given.frame).take(given.rows)
    schema = Schema((*saved.fields, *rest), given.schema.columns)
    both = Values({**given.values, **values}, values.n_rows)
    return replace(given, schema=schema, values=both)
