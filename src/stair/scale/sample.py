"""Rules by any method from a random sample that fits, and their counts from all rows.

Whatever is said of the rules in the end, score and evidence, comes from the pass over all rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError
from stair.evidence import Rest, RuleEvidence, clause_evidence
from stair.io.frame import Frame
from stair.labels import Labels
from stair.learn import Learner, predicted_classes
from stair.local import LocalRuleSet
from stair.objective import f1
from stair.rules import Rule, RuleSet
from stair.scale.coding import Coded, Coder, Coding, as_times, read_verdict
from stair.scale.options import Options, Progress
from stair.scale.profile import Profile
from stair.scale.raw import (
    Batch,
    Raw,
    Words,
    all_missing,
    appended,
    as_frame_column,
    from_loaded,
)
from stair.scale.rules import Learned
from stair.schema import Field, Schema
from stair.table import choose_fields, read_to_learn

Columns = dict[str, NDArray[Any]]


@dataclass(slots=True, eq=False)
class Sample:
    """Rows drawn at random: those with the smallest of random numbers, so that samples of parts
    can be put together."""

    most: int
    keys: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    columns: Columns = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # as in a Frame

    def add(self, batch: Batch, rng: np.random.Generator) -> None:
        keys = rng.random(len(next(iter(batch.values()))))
        limit = self.keys.max() if len(self.keys) >= self.most else 1.0
        rows = np.flatnonzero(keys < limit)
        if len(rows) > self.most:
            rows = np.sort(rows[np.argsort(keys[rows], kind="stable")[: self.most]])
        chosen = {name: as_frame_column(raw, rows) for name, raw in batch.items()}
        types = {n: was for n, was in batch.types.items() if not all_missing(batch[n])}
        self._join(keys[rows], chosen, types)

    def merge(self, other: Sample) -> None:
        if len(other.keys):
            self._join(other.keys, other.columns, other.types)

    def _join(self, keys: NDArray[np.float64], columns: Columns, types: dict[str, str]) -> None:
        both = np.append(self.keys, keys)
        kept = np.sort(np.argsort(both, kind="stable")[: self.most])  # in the order of the data
        old = self.columns or {name: array[:0] for name, array in columns.items()}
        self.columns = {name: appended(old[name], array)[kept] for name, array in columns.items()}
        self.types |= types
        self.keys = both[kept]


@dataclass(slots=True, eq=False)
class Look:
    """One look at all rows: what the label is like, and a sample."""

    label: Profile
    sample: Sample

    @classmethod
    def at(cls, batch: Batch, label: str, most: int, rng: np.random.Generator) -> Look:
        look = cls(Profile(), Sample(most))
        look.add(batch, label, rng)
        return look

    def add(self, batch: Batch, label: str, rng: np.random.Generator) -> None:
        self.label.add(batch[label], label, batch.types.get(label, ""))
        self.sample.add(batch, rng)

    def merge(self, other: Look, label: str) -> None:
        self.label.merge(other.label, label)
        self.sample.merge(other.sample)


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Counts of rules on any part of the data."""

    rules: RuleSet
    coder: Coder

    def __call__(self, batch: Batch) -> tuple[NDArray[np.int64], ...]:
        """Class counts: of each rule, of each clause of each rule, of each predicted class, of the
        rows that one rule alone covers, and of those that none does."""
        n_classes = len(self.rules.classes)
        classes = self.coder.classes_of(batch)
        known = np.flatnonzero(classes >= 0)
        classes = classes[known]
        columns = {
            f.source: as_frame_column(_as_learned(f, batch[f.source]), known)
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
        )


def _as_learned(each: Field, raw: Raw) -> Raw:
    """Texts as times where times were learned: a part may have nothing else than 2024-02-30."""
    is_time = each.kind == "time" or each.part is not None
    return as_times(raw) if is_time and isinstance(raw, Words) else raw


def add_tallies(parts: Iterable[tuple[NDArray[np.int64], ...]]) -> tuple[NDArray[np.int64], ...]:
    return tuple(sum(each) for each in zip(*parts, strict=True))


def learn_from_sample(
    look: Look,
    count: Callable[[Judge], tuple[NDArray[np.int64], ...]],
    options: Options,
    learner: Callable[[Schema, Labels], Learner],
    names: Sequence[str],
    source: str,
    say: Progress,
) -> tuple[Coded, Learned]:
    """Rules from the sample; `count` then goes over all rows."""
    verdict, stored = read_verdict(look.label, options)
    columns = look.sample.columns
    coder = Coder(Coding((), (), ()), options.label, stored, verdict.codes)
    label = from_loaded((columns[options.label], ""))[0]
    codes = coder.classes_of(Batch({options.label: label}))
    rows = np.flatnonzero(codes >= 0)
    sampled = {name: array[rows] for name, array in columns.items() if name != options.label}
    labels = Labels(codes[rows], verdict.classes, verdict.positive, verdict.meaning, verdict.notes)
    absent = set(range(len(verdict.classes))) - set(np.unique(labels.codes).tolist())
    if absent:
        said = verdict.classes[min(absent)]
        raise StairError(
            f"the sample of {len(rows):,} rows has no {said}; take a larger one with sample= "
            "(--sample), or use the method stair, which counts all rows"
        )
    frame = Frame(sampled, len(rows), types=look.sample.types)
    fields, left_out = choose_fields(
        frame,
        include=options.include,
        exclude=[],
        kinds=options.kinds,
        time_parts=options.time_parts,
    )
    left_out |= dict.fromkeys(options.exclude, "excluded")
    say(f"learning from a sample of {len(rows):,} rows")
    schema = Schema(fields, tuple(names))
    values = read_to_learn(schema, frame)
    made = learner(schema.remembering(values), labels)(values, labels.codes)
    say("counting the rules on all rows")
    by_rule, by_clause, predicted, alone, rest = count(Judge(made.rules, coder))
    totals = predicted.sum(axis=0)
    rules = _recounted(made.rules, by_rule, totals)
    score = _score(predicted, verdict.positive)
    note = f"learned from a random sample of {len(rows):,} rows; figures are from all rows"
    if isinstance(rules, LocalRuleSet):
        rules = _with_partitions(rules, score)
        note += ", but for the assigned score"
    coded = Coded(
        Coding(fields, (), ()), verdict.classes, verdict.positive, verdict.meaning,
        (*values.notes, *verdict.notes, note), tuple(totals.tolist()), left_out, tuple(names),
        source,
    )  # fmt: skip
    evidence = _evidence(rules, by_clause, alone, totals, verdict.positive)
    missed = 0
    if verdict.positive is not None:
        missed = int(totals[verdict.positive] - predicted[verdict.positive, verdict.positive])
    uncovered = Rest(int(rest.sum()), int(rest[rules.classes.index(rules.default)]))
    return coded, Learned(
        rules, made.trace, score, evidence, (), n_passes=2, missed=missed, rest=uncovered
    )


def _recounted(rules: RuleSet, by_rule: NDArray[np.int64], totals: NDArray[np.int64]) -> RuleSet:
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


def _score(predicted: NDArray[np.int64], positive: int | None) -> float:
    if positive is None:
        return float(np.trace(predicted) / predicted.sum())
    hits = int(predicted[positive, positive])
    return f1(hits, int(predicted[positive].sum()), int(predicted[:, positive].sum()))


def _evidence(
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
