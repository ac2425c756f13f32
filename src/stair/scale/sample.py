"""Rules by any method from a random sample that fits, and their counts from all rows.

Whatever is said of the rules in the end, score and evidence, comes from the pass over all rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import zone_of_column
from stair.data.frame import Frame
from stair.errors import StairError, option
from stair.evidence.of_rules import Rest, RuleEvidence, clause_evidence
from stair.evidence.suspects import suspects_of
from stair.learn.frontier import frontier_of
from stair.learn.learner import Learner, check_rules
from stair.learn.table import choose_fields, notes_on_parts, read_to_learn
from stair.progress import Progress
from stair.rules.agreement import predicted_classes
from stair.rules.groups import groups_apart
from stair.rules.objective import f1
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from stair.scale.census import as_learned, typed, worded
from stair.scale.coding import Coded, Coder, Coding, read_verdict
from stair.scale.draw import Draw, Look
from stair.scale.options import Options
from stair.scale.raw import Batch, as_frame_column, from_loaded
from stair.scale.rows import Rows
from stair.scale.rules import Learned
from stair.verdict.labels import Labels

IN_A_SAMPLE: Final = "in every row of a sample"


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Counts of rules on any part of the data."""

    rules: RuleSet
    coder: Coder

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], ...]:
        """Class counts: of each rule, of each clause of each rule, of each predicted class, of the
        rows that one rule alone covers, and of those that none does. And the fractions in columns
        that were whole in the sample."""
        n_classes = len(self.rules.classes)
        classes = self.coder.classes_of(batch)
        known = np.flatnonzero(classes >= 0)
        classes = classes[known]
        columns = {
            f.source: as_frame_column(as_learned(f, batch[f.source]), known)
            for f in self.rules.schema.fields
        }
        values = self.rules.schema.read(Frame(columns, len(known), types=batch.types))
        covered = self.rules.covers(values)
        by_rule = [np.bincount(classes[rows], minlength=n_classes) for rows in covered.T]
        times = covered.sum(axis=1)
        alone = [
            np.bincount(classes[rows & (times == 1)], minlength=n_classes) for rows in covered.T
        ]
        by_clause = [
            np.bincount(classes[clause.covers(values[clause.feature])], minlength=n_classes)
            for rule in self.rules.rules
            for clause in rule.clauses
        ]
        place = predicted_classes(self.rules, values) * n_classes + classes
        predicted = np.bincount(place, minlength=n_classes * n_classes)
        return (
            np.array(by_rule, dtype=np.int64).reshape(-1, n_classes),
            np.array(by_clause, dtype=np.int64).reshape(-1, n_classes),
            predicted.astype(np.int64).reshape(n_classes, n_classes),
            np.array(alone, dtype=np.int64).reshape(-1, n_classes),
            np.bincount(classes[times == 0], minlength=n_classes).astype(np.int64),
            np.array([values.fractions.get(f.source, 0) for f in self.rules.schema.fields]),
        )


@dataclass(slots=True, eq=False)
class Judging:
    """A pass that counts rules."""

    judge: Judge
    tallies: tuple[NDArray[np.int64], ...] | None = None

    def fresh(self) -> Judging:
        return Judging(self.judge)

    def add(self, batch: Batch, _: int) -> None:
        self._add(self.judge(batch))

    def merge(self, other: Judging) -> None:
        if other.tallies is not None:
            self._add(other.tallies)

    def _add(self, tallies: tuple[NDArray[np.int64], ...]) -> None:
        if self.tallies is not None:
            tallies = tuple(a + b for a, b in zip(self.tallies, tallies, strict=True))
        self.tallies = tallies


def known_verdict(rows: Rows, options: Options) -> tuple[Labels, Coder, NDArray[np.int64]]:
    """The first pass: the classes of the label's values, what finds them in any part, and the rows
    of each class."""
    options.wanted(rows.names, rows.source)  # a name that is not there is said before all else
    look = rows.gather(Look(options.label), [options.label], "pass 1, looking at the labels")
    verdict, stored = read_verdict(look.profile, options)
    counts = np.array(look.profile.values(options.label)[1], dtype=np.int64)
    totals = np.zeros(len(verdict.classes), np.int64)
    known = verdict.codes[: len(counts)]
    np.add.at(totals, known[known >= 0], counts[known >= 0])
    return verdict, Coder(Coding((), (), ()), options.label, stored, verdict.codes), totals


def fields_of(
    frame: Frame, options: Options
) -> tuple[tuple[Field, ...], dict[str, str], list[str]]:
    """What rules may speak of, what was left out with the reason why, and notes on both."""
    fields, left_out = choose_fields(
        frame,
        include=options.include,
        exclude=[],
        kinds=options.kinds,
        time_parts=options.time_parts,
        time_zone=options.time_zone,
    )

    def zone_of(name: str) -> str | None:
        return zone_of_column(frame.columns[name], frame.types.get(name, ""))

    notes = notes_on_parts(fields, zone_of, options.time_zone)
    return fields, left_out | dict.fromkeys(options.exclude, "excluded"), notes


def learn_from_sample(
    rows: Rows,
    options: Options,
    learner: Callable[[Schema, Labels], Learner],
    most: int,
    seed: int,
    validate: int | None,
    say: Progress,
) -> tuple[Coded, Learned]:
    """Rules from a sample of all rows; then they are counted on all of them."""
    verdict, coder, _ = known_verdict(rows, options)
    wanted = options.wanted(rows.names, rows.source)
    draw = rows.gather(Draw.of(coder, most, seed), wanted, "pass 2, drawing a sample")
    columns = draw.sample.columns
    codes = coder.classes_of(Batch({options.label: from_loaded((columns[options.label], ""))[0]}))
    labels = dataclasses.replace(verdict, codes=codes)
    absent = set(range(len(verdict.classes))) - set(np.unique(codes).tolist())
    if absent:
        said = verdict.classes[min(absent)]
        raise StairError(
            f"the sample of {len(codes):,} rows has no {said}; take a larger one with "
            f"{option('sample')}, or use the method distilled or stair, which count all rows"
        )
    sampled = {name: array for name, array in columns.items() if name != options.label}
    frame = Frame(sampled, len(codes), types=draw.sample.types)
    fields, left_out, on_parts = fields_of(frame, options)
    say(f"learning from a sample of {len(codes):,} rows")
    schema = Schema(fields, tuple(rows.names))
    values = read_to_learn(schema, frame)
    learn = learner(schema.remembering(values), labels)
    made = learn(values, codes)
    check = check_rules(learn, made, values, codes, validate)
    counted = rows.gather(Judging(Judge(made.rules, coder)), wanted, "pass 3, counting the rules")
    assert counted.tallies is not None
    by_rule, by_clause, predicted, alone, rest, n_fractions = counted.tallies
    totals = predicted.sum(axis=0)
    fractions = [f.name for f, n in zip(fields, n_fractions.tolist(), strict=True) if n]
    fields = typed(fields, fractions)
    rules = recounted(made.rules, by_rule, totals)
    rules = dataclasses.replace(
        rules,
        rules=tuple(worded(rule, fractions) for rule in rules.rules),
        schema=dataclasses.replace(rules.schema, fields=typed(rules.schema.fields, fractions)),
    )
    score = score_of_table(predicted, verdict.positive)
    note = f"learned from a random sample of {len(codes):,} rows; figures are from all rows"
    if rules.routing:
        rules = _with_partitions(rules, score)
        note += ", but for the assigned score"
    if not isinstance(check, str):
        note += ", rows kept aside from the sample"
    coded = Coded(
        Coding(fields, (), ()), verdict.classes, verdict.positive, verdict.meaning,
        (*rows.notes, *on_parts, *values.notes, *verdict.notes, note), tuple(totals.tolist()),
        left_out, tuple(rows.names), rows.source, verdict.codebook,
    )  # fmt: skip
    evidence = evidence_from(rules, by_rule, by_clause, alone, totals, verdict.positive)
    missed = 0
    if verdict.positive is not None:
        missed = int(totals[verdict.positive] - predicted[verdict.positive, verdict.positive])
    uncovered = Rest(int(rest.sum()), int(rest[rules.classes.index(rules.default)]))
    outliers = {} if verdict.positive is None else {verdict.positive: "the outliers"}
    return coded, Learned(
        rules, made.trace, score, evidence, (), n_passes=3, missed=missed, rest=uncovered,
        check=check,
        suspects=suspects_of(
            rules, evidence, values, codes, outliers, totals=totals, where=IN_A_SAMPLE
        ),
        frontier=frontier_of(rules, groups_apart(by_rule, totals), outliers),
    )  # fmt: skip


def recounted(rules: RuleSet, by_rule: NDArray[np.int64], totals: NDArray[np.int64]) -> RuleSet:
    counted = tuple(
        Rule(rule.clauses, rule.label, tuple(zip(rules.classes, map(float, counts), strict=True)))
        for rule, counts in zip(rules.rules, by_rule.tolist(), strict=True)
    )
    return dataclasses.replace(rules, rules=counted, totals=tuple(map(float, totals.tolist())))


def _with_partitions(rules: RuleSet, score: float) -> RuleSet:
    """Rows of each partition from all rows: those that its rules cover."""
    partitions = tuple(
        dataclasses.replace(each, rows=sum(rule.rows for rule in rules.rules[start:stop]))
        for each, (start, stop) in zip(rules.partitions, rules.spans, strict=True)
    )
    routing = dataclasses.replace(rules.routing, routed=score, partitions=partitions)
    return dataclasses.replace(rules, routing=routing)


def score_of_table(predicted: NDArray[np.int64], positive: int | None) -> float:
    if positive is None:
        return float(np.trace(predicted) / predicted.sum())
    hits = int(predicted[positive, positive])
    return f1(hits, int(predicted[positive].sum()), int(predicted[:, positive].sum()))


def evidence_from(
    rules: RuleSet,
    by_rule: NDArray[np.int64],
    by_clause: NDArray[np.int64],
    alone: NDArray[np.int64],
    totals: NDArray[np.int64],
    positive: int | None,
) -> tuple[RuleEvidence, ...]:
    """What speaks for each rule, from the class counts of its rows, of those that meet each clause,
    and of those that no other rule covers."""
    found = []
    met = iter(by_clause)
    for rule, counts, only in zip(rules.rules, by_rule, alone, strict=True):
        place = rules.classes.index(rule.label)
        clauses = tuple(
            clause_evidence(c, next(met), totals, place, positive) for c in rule.clauses
        )
        n_rows, hits = int(counts.sum()), int(counts[place])
        share = hits / int(totals[place]) if totals[place] else math.nan
        found.append(RuleEvidence(rule, n_rows, hits, share, int(only[place]), clauses))
    return tuple(found)
