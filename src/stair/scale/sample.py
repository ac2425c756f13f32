"""Rules by any method from a random sample that fits, and their counts from all rows.

Whatever is said of the rules in the end, score and evidence, comes from the pass over all rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stair.agreement import predicted_classes
from stair.errors import StairError, option
from stair.evidence import Rest, RuleEvidence, clause_evidence
from stair.io.frame import Frame
from stair.labels import Labels
from stair.learn import Learner
from stair.local import LocalRuleSet
from stair.objective import f1
from stair.rules import Rule, RuleSet
from stair.scale.census import as_learned, typed, worded
from stair.scale.coding import Coded, Coder, Coding, read_verdict
from stair.scale.draw import Draw, Look
from stair.scale.options import Options, Progress
from stair.scale.raw import Batch, as_frame_column, from_loaded
from stair.scale.rows import Rows
from stair.scale.rules import Learned
from stair.schema import Field, Schema
from stair.table import choose_fields, read_to_learn


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


def fields_of(frame: Frame, options: Options) -> tuple[tuple[Field, ...], dict[str, str]]:
    """What rules may speak of, and what was left out with the reason why."""
    fields, left_out = choose_fields(
        frame,
        include=options.include,
        exclude=[],
        kinds=options.kinds,
        time_parts=options.time_parts,
    )
    return fields, left_out | dict.fromkeys(options.exclude, "excluded")


def learn_from_sample(
    rows: Rows,
    options: Options,
    learner: Callable[[Schema, Labels], Learner],
    most: int,
    seed: int,
    say: Progress,
) -> tuple[Coded, Learned]:
    """Rules from a sample of all rows; then they are counted on all of them."""
    verdict, coder, _ = known_verdict(rows, options)
    wanted = options.wanted(rows.names, rows.source)
    draw = rows.gather(Draw.of(coder, most, seed), wanted, "pass 2, drawing a sample")
    columns = draw.sample.columns
    codes = coder.classes_of(Batch({options.label: from_loaded((columns[options.label], ""))[0]}))
    labels = Labels(codes, verdict.classes, verdict.positive, verdict.meaning, verdict.notes)
    absent = set(range(len(verdict.classes))) - set(np.unique(codes).tolist())
    if absent:
        said = verdict.classes[min(absent)]
        raise StairError(
            f"the sample of {len(codes):,} rows has no {said}; take a larger one with "
            f"{option('sample')}, or use the method distilled or stair, which count all rows"
        )
    sampled = {name: array for name, array in columns.items() if name != options.label}
    frame = Frame(sampled, len(codes), types=draw.sample.types)
    fields, left_out = fields_of(frame, options)
    say(f"learning from a sample of {len(codes):,} rows")
    schema = Schema(fields, tuple(rows.names))
    values = read_to_learn(schema, frame)
    made = learner(schema.remembering(values), labels)(values, labels.codes)
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
    if isinstance(rules, LocalRuleSet):
        rules = _with_partitions(rules, score)
        note += ", but for the assigned score"
    coded = Coded(
        Coding(fields, (), ()), verdict.classes, verdict.positive, verdict.meaning,
        (*rows.notes, *values.notes, *verdict.notes, note), tuple(totals.tolist()), left_out,
        tuple(rows.names), rows.source, verdict.codebook,
    )  # fmt: skip
    evidence = evidence_from(rules, by_clause, alone, totals, verdict.positive)
    missed = 0
    if verdict.positive is not None:
        missed = int(totals[verdict.positive] - predicted[verdict.positive, verdict.positive])
    uncovered = Rest(int(rest.sum()), int(rest[rules.classes.index(rules.default)]))
    return coded, Learned(
        rules, made.trace, score, evidence, (), n_passes=3, missed=missed, rest=uncovered
    )


def recounted(rules: RuleSet, by_rule: NDArray[np.int64], totals: NDArray[np.int64]) -> RuleSet:
    counted = tuple(
        Rule(rule.clauses, rule.label, tuple(zip(rules.classes, map(float, counts), strict=True)))
        for rule, counts in zip(rules.rules, by_rule.tolist(), strict=True)
    )
    return dataclasses.replace(rules, rules=counted, totals=tuple(map(float, totals.tolist())))


def _with_partitions(rules: LocalRuleSet, score: float) -> LocalRuleSet:
    """Rows of each partition from all rows: those that its rules cover."""
    partitions = tuple(
        dataclasses.replace(each, rows=sum(rule.rows for rule in rules.rules[start:stop]))
        for each, (start, stop) in zip(rules.partitions, rules.spans(), strict=True)
    )
    return dataclasses.replace(rules, routed=score, partitions=partitions)


def score_of_table(predicted: NDArray[np.int64], positive: int | None) -> float:
    if positive is None:
        return float(np.trace(predicted) / predicted.sum())
    hits = int(predicted[positive, positive])
    return f1(hits, int(predicted[positive].sum()), int(predicted[:, positive].sum()))


def evidence_from(
    rules: RuleSet,
    by_clause: NDArray[np.int64],
    alone: NDArray[np.int64],
    totals: NDArray[np.int64],
    positive: int | None,
) -> tuple[RuleEvidence, ...]:
    found = []
    met = iter(by_clause)
    for rule, only in zip(rules.rules, alone, strict=True):
        place = rules.classes.index(rule.label)
        clauses = tuple(
            clause_evidence(c, next(met), totals, place, positive) for c in rule.clauses
        )
        share = rule.hits / int(totals[place]) if totals[place] else math.nan
        hits = int(rule.hits)
        found.append(RuleEvidence(rule, int(rule.rows), hits, share, int(only[place]), clauses))
    return tuple(found)
