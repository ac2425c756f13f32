"""Distilled rules for rows that do not fit: looked for in samples, counted and chosen on all rows.

Each round learns rules from a sample and counts them on all rows, together with those of the
rounds before; the shortest choice above the floor is then exact. The pass that counts also draws
the next sample: outliers that no rule explains, and inliers that one covers, are all in it as far
as there is room. So a rare kind that one sample missed, or a bound that was too wide, is seen by
the next. Several kinds of outlier are looked for side by side, in the same samples and passes.

Where all rows are in the first sample, the rules are those of the engine memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Frame
from stair.data.weights import nothing_of_a_class, one_kind_alone, weightless_in_words
from stair.evidence.suspects import suspects_of
from stair.learn.distill.given import Picked, one_more, pick
from stair.learn.kinds import FEWEST, kinds_to_learn
from stair.learn.learner import TOO_FEW_KINDS, Learner, check_rules
from stair.learn.method import Certificate, of_all
from stair.learn.methods import DistilledMethod
from stair.learn.table import read_to_learn
from stair.learn.validation import quick_folds
from stair.progress import Progress, Words, quiet
from stair.rules.clauses import value_order
from stair.rules.figures import score_in_words
from stair.rules.groups import Groups
from stair.rules.objective import reaches, score_of_classes
from stair.rules.rule_set import Label, Rule
from stair.rules.schema import MOST_KNOWN, Field, Schema, Values
from stair.scale.census import Census, typed
from stair.scale.coding import Coded, Coder, Coding
from stair.scale.counted import About, Aside, Chosen, figures_of, rows_and_hits
from stair.scale.draw import Folds, Sample
from stair.scale.options import Options
from stair.scale.raw import Batch, from_loaded
from stair.scale.rows import Rows
from stair.scale.rules import Learned
from stair.scale.sample import IN_A_SAMPLE, fields_of, known_verdict
from stair.verdict.labels import Verdict

# So many rounds at most, and so many in a row without a better score.
ROUNDS: Final = 8
PATIENCE: Final = 2
# Rules are looked for at the floor, and this far from it to 1: what a sample calls enough may be
# a little less than that on all rows.
PAST_THE_FLOOR: Final = 0.5
# Rules that are counted in one pass.
MOST_RULES: Final = 1024
# What a row of a sample may weigh, with the rows that it stands for.
MOST_WEIGHT: Final = 2.0**61


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """The rules that one round chose, by counts of all rows."""

    rules: tuple[Rule, ...]
    score: float
    picked: Picked

    @property
    def length(self) -> int:
        return sum(rule.length for rule in self.rules)

    @property
    def rank(self) -> tuple[bool, float]:
        """The larger the better: above the floor and short, or else near it."""
        return self.picked.is_enough, -self.length if self.picked.is_enough else self.score


@dataclass(slots=True, eq=False)
class _Aim:
    """What rules are looked for, and how far that is: those of one kind of outlier against all
    other rows, or those of all classes."""

    classes: tuple[Label, ...]
    positive: int | None
    default: int
    kind: int | None = None
    pool: list[Rule] = field(default_factory=list)
    best: _Choice | None = None
    length: int = 0  # what the floor takes in the last sample
    stale: int = 0  # rounds without a better choice
    is_done: bool = False

    def of(self, classes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Classes of the table as those of this aim."""
        return classes if self.kind is None else (classes == self.kind).astype(np.int32)

    def add(self, rules: Iterable[Rule], most: int) -> bool:
        """Rules for the pool, those that are chosen now first; whether any is new."""
        known = set(self.pool)
        chosen = () if self.best is None else self.best.rules
        bare = [Rule(rule.clauses, rule.label) for rule in rules]
        self.pool = list(dict.fromkeys([*chosen, *bare, *self.pool]))[:most]
        return not known.issuperset(self.pool)

    def take(self, choice: _Choice) -> None:
        """The choice of a round: kept where it is better, and perhaps the last."""
        self.stale = self.stale + 1 if self.best and choice.rank <= self.best.rank else 0
        best = self.best = choice if self.best is None or self.stale == 0 else self.best
        is_short = bool(self.stale) or best.length <= self.length
        self.is_done = (best.picked.is_enough and is_short) or self.stale >= PATIENCE


class _Counted(NamedTuple):
    """Rules, and all rows by which of them cover them."""

    rules: Sequence[Rule]
    groups: Groups
    heavy: Groups  # the same by weight, where rows have some

    def of(self, aim: _Aim) -> tuple[list[Rule], Groups, Groups]:
        """The same of the rules of one aim."""
        own = [
            k
            for k, rule in enumerate(self.rules)
            if aim.kind is None or rule.label == aim.classes[1]
        ]
        rules = [self.rules[k] for k in own]
        return rules, self.groups.with_rules(own), self.heavy.with_rules(own)


class _Read(NamedTuple):
    """The rows of a sample, ready to learn from."""

    values: Values
    codes: NDArray[np.int32]
    weights: NDArray[np.int64]  # the rows that each row stands for
    heavy: NDArray[np.int64]  # and what these weigh together
    keys: NDArray[np.uint64]

    def take(self, rows: NDArray[np.intp]) -> _Read:
        """Some of the rows."""
        return _Read(
            self.values.take(rows), self.codes[rows], self.weights[rows], self.heavy[rows],
            self.keys[rows],
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class _Learning:
    """What is known so far of a table and of rules for it."""

    rows: Rows
    options: Options
    learner: Callable[[Schema, Verdict], Learner]
    method: DistilledMethod
    verdict: Verdict
    coder: Coder
    totals: NDArray[np.int64]  # rows of each class
    default: int  # the class of a row that no rule covers
    most: int
    seed: int
    say: Progress
    fields: tuple[Field, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    seen: dict[str, set[object]] = field(default_factory=dict)  # the values of categories
    notes: dict[str, None] = field(default_factory=dict)  # in order, each once
    fractions: set[str] = field(default_factory=set)  # columns that were whole in a sample
    n_passes: int = 1  # the labels are known
    n_rounds: int = 1

    @property
    def n_classes(self) -> int:
        return len(self.verdict.classes)

    @property
    def schema(self) -> Schema:
        """The fields, with the values of categories in all samples."""
        fields = [
            replace(each, known=_few(self.seen[each.name])) if each.name in self.seen else each
            for each in self.fields
        ]
        return Schema(tuple(fields), tuple(self.rows.names))

    @property
    def about(self) -> About:
        return About(self.schema, self.coder, self.verdict, self.default)

    def aims(self) -> list[_Aim]:
        """Each kind of outlier, the largest first; or all classes together."""
        classes, negative = self.verdict.classes, self.verdict.negative
        if negative is None:
            return [_Aim(classes, self.verdict.positive, self.default)]
        kinds = kinds_to_learn(self.totals, negative)
        return [_Aim((classes[negative], classes[kind]), 1, 0, kind) for kind in kinds]

    def gather(self, asked: Census, what: str) -> Census:
        """One pass over all rows."""
        wanted = self.options.to_read(self.rows.names, self.rows.source)
        self.n_passes += 1
        census = self.rows.gather(asked, wanted, f"pass {self.n_passes}, {what}")
        self.fractions |= census.fractions
        self.fields = typed(self.fields, self.fractions)
        return census

    def count(self, rules: list[Rule], what: str) -> tuple[_Counted, Sample]:
        """One pass for some rules, which draws a sample."""
        asked = Census.that_draws(
            rules, self.schema, self.coder, self.n_classes, self.default, self.most, self.seed
        )
        census = self.gather(asked, what)
        assert census.sample is not None
        heavy = census.table(by_weight=True)
        return _Counted(census.rules, census.table(), heavy), census.sample

    def read(self, sample: Sample) -> _Read:
        """The rows of a sample. What a field is stays as the first sample shows it; later ones may
        have fields that were constant there."""
        wanted = self.options.wanted(self.rows.names, self.rows.source)
        columns = {
            name: array
            for name, array in sample.columns.items()
            if name != self.options.label and name in wanted
        }
        frame = Frame(columns, len(sample.keys), types=sample.types)
        found, left_out, on_parts = fields_of(frame, self.options)
        known = {each.name for each in self.fields}
        zones = {each.source: each.zone for each in self.fields}
        self.fields += tuple(
            replace(each, zone=zones.get(each.source, each.zone))
            for each in found
            if each.name not in known
        )
        sources = {each.source for each in self.fields}
        self.left_out = {name: why for name, why in left_out.items() if name not in sources}
        values = read_to_learn(Schema(self.fields), frame)
        where = "" if sample.is_whole else "in a sample: "
        self.notes = dict.fromkeys([*on_parts, *(where + note for note in values.notes)])
        for each in self.fields:
            if each.kind == "category":
                here = self.seen.setdefault(each.name, set())
                here.update(v for v in values[each.name].tolist() if v is not None)
        codes = (sample.strata // (len(sample.tiers) // self.n_classes)).astype(np.int32)
        return _Read(values, codes, sample.weights, self._heavy(sample), sample.keys)

    def _heavy(self, sample: Sample) -> NDArray[np.int64]:
        """What the rows weigh together that each row of a sample stands for."""
        scale = self.coder.scale
        if scale is None:
            return sample.weights
        column = scale.weighing.column
        whole = scale.of(Batch({column: from_loaded((sample.columns[column], ""))[0]}))
        together = whole.astype(np.float64) * sample.weights
        return np.minimum(together, MOST_WEIGHT).astype(np.int64)

    def learns_from(self, read: _Read, kind: int | None = None) -> Learner:
        """What learns from some rows of a sample. The least number of outliers is one of all rows,
        of which a sample has fewer."""
        learner = self.learner(self.schema, replace(self.verdict, codes=read.codes))
        least = self.method.min_outliers
        if least is not None:
            is_wanted = np.arange(self.n_classes) != self.default if kind is None else [kind]
            n_here = np.bincount(read.codes, minlength=self.n_classes)[is_wanted].sum()
            share = n_here / self.totals[is_wanted].sum()
            learner = learner.changed(min_outliers=max(1, int(least * share)))
        return learner if kind is None else learner.of_kind(kind, read.codes)

    def learn(self, aim: _Aim, read: _Read, time_limit: float | None) -> list[Rule]:
        """Rules from a sample, at the floor and past it, and what would come next."""
        learner = self.learns_from(read, aim.kind).changed(time_limit=time_limit)
        floor = self.method.floor
        beyond = learner.changed(min_score=floor + (1 - floor) * PAST_THE_FLOOR, effort="fast")
        made, more = (
            each.of_classes(read.values, aim.of(read.codes), read.heavy)
            for each in (learner, beyond)
        )
        aim.length = made.rules.total_length
        further = [each.further.rule for each in (made, more) if each.further is not None]
        return [*made.rules, *more.rules, *further]

    def choose(self, aim: _Aim, counted: _Counted, seconds: float | None) -> _Choice:
        """The shortest choice among the rules of an aim, by the counts of all rows."""
        rules, groups, heavy = counted.of(aim)
        classes, labels = aim.of(groups.classes), [aim.classes.index(r.label) for r in rules]
        picked = pick(
            classes, groups.counts, groups.covered, labels, list(map(len, rules)),
            n_classes=len(aim.classes), default=aim.default, positive=aim.positive,
            min_score=self.method.floor, max_total_length=self.method.max_total_length,
            min_outliers=self.method.min_outliers, seconds=seconds, weights=heavy.counts,
        )  # fmt: skip
        order = self.about.order(heavy.totals(self.n_classes))
        first = sorted(picked.numbers, key=lambda k: order[rules[k].label])
        given = groups.with_rules(first).given([labels[k] for k in first], aim.default)
        score = score_of_classes(given, classes, aim.positive, heavy.counts)
        if self.coder.scale is not None:  # large weights were rounded to choose by them
            is_enough = picked.is_enough and reaches(score, self.method.floor)
            picked = replace(picked, is_enough=is_enough)
        return _Choice(tuple(rules[k] for k in picked.numbers), score, picked)

    def chosen(self, aim: _Aim, counted: _Counted) -> Chosen:
        """The best choice; and of all rules that were counted, the one that would add most."""
        assert aim.best is not None
        rules, groups, heavy = counted.of(aim)
        numbers = [rules.index(rule) for rule in aim.best.rules]
        further = None
        if aim.positive is not None and aim.best.picked.is_enough:
            further = one_more(
                (aim.of(groups.classes) == aim.positive).astype(np.int32), groups.counts,
                groups.covered, list(map(len, rules)), numbers,
                min_score=self.method.floor, min_outliers=self.method.min_outliers,
                weights=heavy.counts,
            )  # fmt: skip
        seen = [rows_and_hits(heavy, k, self.about.place(rules[k])) for k in numbers]
        return Chosen(
            aim.best.rules, aim.kind, None if further is None else rules[further], tuple(seen)
        )

    def aside(self, read: _Read, validate: int | None, *, is_late: bool) -> Aside:
        """Rules learned from all folds of a sample but one, for each of them. A row's fold depends
        on its place in the data alone, so they have seen no row of that fold, drawn or not."""
        if validate == 0:
            return Aside(why_not="nobody asked for it")
        n_outliers = int(self.totals.sum() - self.totals[self.default])
        number = validate
        if number is None:
            number = quick_folds(n_outliers, cheaper=self.method.effort == "normal")
            if is_late:
                return Aside(why_not="the search was cut short")
        folds = Folds(max(1, number), self.seed)
        fold = folds.of_drawn(read.keys)
        is_outlier = read.codes != self.default
        fewest = min(len(set(fold[rows].tolist())) for rows in (is_outlier, ~is_outlier))
        if number == 0 or fewest < number:
            return Aside(why_not=f"{n_outliers:,} outlier{'s' * (n_outliers != 1)} are too few")
        if not self._have_kinds(read.codes, fold, number):
            return Aside(why_not=TOO_FEW_KINDS)
        found = []
        for k in range(number):
            words = f"checking on rows kept aside: fold {k + 1} of {number}"
            if self.say(Words(words, k / number)) is True:
                return Aside(why_not="it was cut short")
            rows = np.flatnonzero(fold != k)
            part = read.take(rows)
            learner = replace(self.learns_from(part), say=quiet)
            if validate is None:
                limit = self.method.time_limit
                limit = None if limit is None else limit / (2 * number)
                learner = learner.changed(effort="fast", time_limit=limit)
            found.append(learner(part.values, part.codes, part.heavy).rules)
        return Aside(folds, tuple(found))

    def _have_kinds(self, codes: NDArray[np.int32], fold: NDArray[np.int64], number: int) -> bool:
        """Whether without any fold there is a kind with enough rows to learn from."""
        if self.verdict.negative is None:
            return True
        left = [np.bincount(codes[fold != k], minlength=self.n_classes) for k in range(number)]
        return all(np.delete(each, self.default).max() >= FEWEST for each in left)

    def figures(self, found: Sequence[Chosen], aside: Aside, read: _Read, floor: float) -> Learned:
        """The last pass; and columns that give the verdict away, by the rows of a sample."""

        def gather(asked: Census) -> Census:
            return self.gather(asked, "counting the rules that are chosen")

        about = self.about
        found = [each.worded(self.fractions) for each in found]
        learned = figures_of(found, aside, about, gather, floor)
        is_whole = len(read.codes) == self.totals.sum()
        suspects = suspects_of(
            learned.rules, learned.evidence, read.values, read.codes, about.wanted,
            totals=self.totals, weights=read.weights,
            where="in every row" if is_whole else IN_A_SAMPLE,
        )  # fmt: skip
        return replace(learned, suspects=suspects)


def distill_rows(
    rows: Rows,
    options: Options,
    learner: Callable[[Schema, Verdict], Learner],
    most: int,
    seed: int,
    validate: int | None,
    say: Progress,
) -> tuple[Coded, Learned]:
    """The shortest rules above the floor on all rows; samples have at most so many rows."""
    verdict, coder, totals = known_verdict(rows, options)
    if coder.scale is not None and verdict.negative is not None:
        raise one_kind_alone(coder.scale.unit.name)
    default = verdict.negative
    if default is None:
        default = int(totals.argmax()) if verdict.positive is None else 1 - verdict.positive
    method = learner(Schema(()), verdict).method
    assert isinstance(method, DistilledMethod)
    known = _Learning(
        rows, options, learner, method, verdict, coder, totals, default, most, seed, say
    )
    if coder.scale is not None and verdict.positive is None:  # which class is it by weight?
        weighed = Census((), Schema(()), coder, known.n_classes, default, sample=None)
        of_classes = known.gather(weighed, "weighing the rows").table(by_weight=True)
        known.default = int(of_classes.totals(known.n_classes).argmax())
    counted, sample = known.count([], "drawing a sample")
    known.totals = counted.groups.totals(known.n_classes)
    n_weightless = int(totals.sum() - known.totals.sum())
    if n_weightless and coder.scale is not None and not known.totals.all():
        raise nothing_of_a_class(coder.scale.unit.name)
    if sample.is_whole:
        learned = _from_all_rows(known, sample, validate)
    else:
        learned = _by_rounds(known, sample, validate)
    notes = [*rows.notes, *known.notes, *verdict.notes]
    if n_weightless and coder.scale is not None:
        notes.append(weightless_in_words(coder.scale.unit.name, n_weightless))
    rounds = f"{known.n_rounds} round{'s' * (known.n_rounds != 1)}"
    if not sample.is_whole:
        note = (
            f"looked for in samples of up to {most:,} rows in {rounds}, counted and chosen on all "
            "rows"
        )
        if not isinstance(learned.check, str):
            note += "; rules for the rows kept aside were learned from parts of the last sample"
        notes.append(note)
    if not learned.kinds and not reaches(learned.score, method.floor):
        notes.append(f"the floor was not reached on all rows in {rounds}")
    coded = Coded(
        Coding(known.fields, (), ()), verdict.classes, verdict.positive, verdict.meaning,
        tuple(notes), tuple(known.totals.tolist()), known.left_out, tuple(rows.names), rows.source,
        verdict.codebook,
    )  # fmt: skip
    return coded, replace(learned, n_passes=known.n_passes, n_rounds=known.n_rounds)


def _from_all_rows(known: _Learning, sample: Sample, validate: int | None) -> Learned:
    """What fits is learned as in memory, and counted on all rows."""
    known.say(f"round 1, learning from {len(sample.keys):,} rows")
    read = known.read(sample)
    learner = known.learns_from(read)
    weights = None if known.coder.scale is None else read.heavy
    made = learner(read.values, read.codes, weights)
    check = check_rules(learner, made, read.values, read.codes, validate, weights)
    more = (
        None if made.further is None else Rule(made.further.rule.clauses, made.further.rule.label)
    )
    found = [Chosen(made.rules.rules, None, more)]
    if known.verdict.negative is not None:
        found = []
        for kind in made.kinds:
            own = tuple(rule for rule in made.rules if rule.label == kind.label) or kind.nearest
            next_one = more if more is not None and more.label == kind.label else None
            found.append(Chosen(own, known.verdict.classes.index(kind.label), next_one))
    found = [
        each._replace(seen=tuple((round(rule.rows), round(rule.hits)) for rule in each.rules))
        for each in found
    ]
    learned = known.figures(found, Aside(), read, known.method.floor)
    return replace(learned, check=check, certificate=made.certificate)


def _by_rounds(known: _Learning, sample: Sample, validate: int | None) -> Learned:
    """Rules from samples, chosen by the counts of all rows, until a round brings nothing."""
    aims = known.aims()
    limit, floor = known.method.time_limit, known.method.floor
    deadline = None if limit is None else time.monotonic() + limit

    def left() -> float | None:
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    for known.n_rounds in range(1, ROUNDS + 1):
        known.say(f"round {known.n_rounds}, learning from {len(sample.keys):,} rows")
        read = known.read(sample)
        going = [aim for aim in aims if not aim.is_done]
        for k, aim in enumerate(going):
            seconds = left()
            rules = known.learn(aim, read, None if seconds is None else seconds / (len(going) - k))
            is_new = aim.add(rules, MOST_RULES // len(aims))
            aim.is_done = not is_new and aim.best is not None  # all of them were counted before
        if all(aim.is_done for aim in aims):
            break
        pool = [rule for aim in aims for rule in aim.pool]
        counted, sample = known.count(pool, f"counting {len(pool)} rules")
        for aim in going:
            if not aim.is_done:
                aim.take(known.choose(aim, counted, left()))
        best = [aim.best for aim in aims if aim.best is not None]
        length, score = sum(each.length for each in best), min(each.score for each in best)
        said = score_in_words(score, floor, 3)
        known.say(f"round {known.n_rounds}, total length {length}, score {said} on all rows")
        if left() == 0.0 or all(aim.is_done for aim in aims):
            break
    read = known.read(sample)
    aside = known.aside(read, validate, is_late=left() == 0.0)
    found = [known.chosen(aim, counted) for aim in aims]
    certificate = of_all([
        Certificate(p.bound, p.n_candidates, p.min_outliers, p.relaxed)
        for p in (each.picked for each in best)
    ])  # fmt: skip
    return replace(known.figures(found, aside, read, floor), certificate=certificate)


def _few(values: set[object]) -> tuple[object, ...] | None:
    return tuple(sorted(values, key=value_order)) if len(values) <= MOST_KNOWN else None
