"""Rules by any method from a random sample that fits, and their counts from all rows.

Whatever is said of the rules in the end, score and evidence, comes from the pass over all rows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
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
from stair.scale.coding import Coded, Coder, Coding, read_verdict
from stair.scale.options import Options, Progress
from stair.scale.profile import Batch, Profile, Raw, Words
from stair.scale.rules import Learned
from stair.schema import Schema
from stair.table import choose_fields, read_to_learn

Columns = dict[str, NDArray[Any]]


def raw_column(raw: Raw, rows: NDArray[np.intp] | slice = slice(None)) -> NDArray[Any]:
    """Some rows of a column as `table.py` reads columns."""
    if not isinstance(raw, Words):
        return raw[rows]
    codes = raw.codes[rows]
    if raw.values and all(isinstance(v, bool) for v in raw.values) and (codes >= 0).all():
        truths: NDArray[Any] = np.array(raw.values, dtype=np.bool_)[codes]
        return truths
    values = np.empty(len(raw.values) + 1, dtype=object)
    values[:-1] = raw.values
    found: NDArray[Any] = values[codes]
    return found


@dataclass(slots=True, eq=False)
class Sample:
    """Rows drawn at random: those with the smallest of random numbers, so that samples of parts
    can be put together."""

    most: int
    keys: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    columns: Columns = field(default_factory=dict)

    def add(self, batch: Batch, rng: np.random.Generator) -> None:
        keys = rng.random(len(next(iter(batch.values()))))
        limit = self.keys.max() if len(self.keys) >= self.most else 1.0
        rows = np.flatnonzero(keys < limit)
        if len(rows) > self.most:
            rows = np.sort(rows[np.argsort(keys[rows], kind="stable")[: self.most]])
        chosen = {name: raw_column(raw, rows) for name, raw in batch.items()}
        self._join(keys[rows], chosen)

    def merge(self, other: Sample) -> None:
        if len(other.keys):
            self._join(other.keys, other.columns)

    def _join(self, keys: NDArray[np.float64], columns: Columns) -> None:
        both = np.append(self.keys, keys)
        kept = np.sort(np.argsort(both, kind="stable")[: self.most])  # in the order of the data
        old = self.columns or {name: array[:0] for name, array in columns.items()}
        self.columns = {name: _appended(old[name], array)[kept] for name, array in columns.items()}
        self.keys = both[kept]


def _appended(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    if first.dtype != second.dtype and "O" in (first.dtype.kind, second.dtype.kind):
        first, second = first.astype(object), second.astype(object)
    return np.concatenate([first, second])


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
        self.label.add(batch[label], label)
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
        sources = dict.fromkeys(f.source for f in self.rules.schema.fields)
        columns = {name: raw_column(batch[name], known) for name in sources}
        values = self.rules.schema.read(Frame(columns, len(known)))
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


def add_tallies(parts: Iterable[tuple[NDArray[np.int64], ...]]) -> tuple[NDArray[np.int64], ...]:
    return tuple(sum(each) for each in zip(*parts, strict=True))


def learn_from_sample(
    look: Look,
    count: Callable[[Judge], tuple[NDArray[np.int64], ...]],
    options: Options,
    learner: Callable[[Schema, Labels], Learner],
    n_columns: int,
    source: str,
    say: Progress,
) -> tuple[Coded, Learned]:
    """Rules from the sample; `count` then goes over all rows."""
    verdict, stored = read_verdict(look.label, options)
    columns = look.sample.columns
    coder = Coder(Coding((), (), ()), options.label, stored, verdict.codes)
    codes = coder.classes_of(_as_batch(columns, options.label))
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
    frame = Frame(sampled, len(rows))
    fields, left_out = choose_fields(
        frame,
        include=options.include,
        exclude=[],
        kinds=options.kinds,
        time_parts=options.time_parts,
    )
    left_out |= dict.fromkeys(options.exclude, "excluded")
    say(f"learning from a sample of {len(rows):,} rows")
    schema = Schema(fields, (*sampled, options.label))
    made = learner(schema, labels)(read_to_learn(schema, frame), labels.codes)
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
        (*verdict.notes, note), tuple(totals.tolist()), left_out, n_columns, source,
    )  # fmt: skip
    evidence = _evidence(rules, by_clause, alone, totals, verdict.positive)
    missed = 0
    if verdict.positive is not None:
        missed = int(totals[verdict.positive] - predicted[verdict.positive, verdict.positive])
    uncovered = Rest(int(rest.sum()), int(rest[rules.classes.index(rules.default)]))
    return coded, Learned(
        rules, made.trace, score, evidence, (), n_passes=2, missed=missed, rest=uncovered
    )


def _as_batch(columns: Columns, label: str) -> Batch:
    array = columns[label]
    if array.dtype.kind in "fM":
        return {label: array}
    listed = array.tolist()
    values = list(dict.fromkeys(v for v in listed if v is not None))
    place = {v: k for k, v in enumerate(values)}
    codes = np.array([-1 if v is None else place[v] for v in listed], dtype=np.int64)
    return {label: Words(values, codes)}


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
