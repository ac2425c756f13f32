"""Rules by any method from a random sample that fits, and their counts from all rows.

Whatever is said of the rules in the end, score and evidence, comes from the pass over all rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import zone_of_column
from stair.data.frame import Frame
from stair.errors import StairError, option
from stair.evidence.suspects import suspects_of
from stair.learn.frontier import frontier_of
from stair.learn.learner import Learner, check_rules
from stair.learn.table import choose_fields, notes_on_parts, read_to_learn
from stair.progress import Progress
from stair.rules.counted import Counted, count
from stair.rules.groups import groups_apart
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field, Schema
from stair.scale.census import as_learned, typed, worded
from stair.scale.coding import Coded, Coder, Coding, read_verdict
from stair.scale.draw import Draw, Look
from stair.scale.options import Options
from stair.scale.raw import Batch, as_frame_column, from_loaded
from stair.scale.rows import Rows
from stair.scale.rules import Learned
from stair.verdict.labels import Verdict

IN_A_SAMPLE: Final = "in every row of a sample"


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """Counts of rules on any part of the data."""

    rules: RuleSet
    coder: Coder

    def __call__(self, batch: Batch) -> tuple[Counted, NDArray[np.int64]]:
        """The counts, and of each field the fractions in a column that was whole in the sample."""
        classes = self.coder.classes_of(batch)
        known = np.flatnonzero(classes >= 0)
        classes = classes[known]
        columns = {
            f.source: as_frame_column(as_learned(f, batch[f.source]), known)
            for f in self.rules.schema.fields
        }
        values = self.rules.schema.read(Frame(columns, len(known), types=batch.types))
        fractions = [values.fractions.get(f.source, 0) for f in self.rules.schema.fields]
        return count(self.rules, values, classes), np.array(fractions, dtype=np.int64)


@dataclass(slots=True, eq=False)
class Judging:
    """A pass that counts rules."""

    judge: Judge
    tallies: tuple[Counted, NDArray[np.int64]] | None = None

    def fresh(self) -> Judging:
        return Judging(self.judge)

    def add(self, batch: Batch, _: int) -> None:
        self._add(self.judge(batch))

    def merge(self, other: Judging) -> None:
        if other.tallies is not None:
            self._add(other.tallies)

    def _add(self, tallies: tuple[Counted, NDArray[np.int64]]) -> None:
        if self.tallies is not None:
            (one, some), (other, more) = self.tallies, tallies
            tallies = one + other, some + more
        self.tallies = tallies


def known_verdict(rows: Rows, options: Options) -> tuple[Verdict, Coder, NDArray[np.int64]]:
    """The first pass: the classes of the label's values, what finds them in any part, and the rows
    of each class."""
    options.wanted(rows.names, rows.source)  # a name that is not there is said before all else
    weighing = options.weights
    columns = list(dict.fromkeys([options.label, *([weighing.column] if weighing else [])]))
    look = rows.gather(
        Look(options.label, weighing=weighing), columns, "pass 1, looking at the labels"
    )
    scale = None if weighing is None else weighing.scale(look.amounts)
    verdict, stored = read_verdict(look.profile, options)
    counts = np.array(look.profile.values(options.label)[1], dtype=np.int64)
    totals = np.zeros(len(verdict.classes), np.int64)
    known = verdict.codes[: len(counts)]
    np.add.at(totals, known[known >= 0], counts[known >= 0])
    return verdict, Coder(Coding((), (), ()), options.label, stored, verdict.codes, scale), totals


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
    learner: Callable[[Schema, Verdict], Learner],
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
    judged = rows.gather(Judging(Judge(made.rules, coder)), wanted, "pass 3, counting the rules")
    assert judged.tallies is not None
    figures, n_fractions = judged.tallies
    totals = figures.totals
    fractions = [f.name for f, n in zip(fields, n_fractions.tolist(), strict=True) if n]
    fields = typed(fields, fractions)
    rules = figures.recounted
    rules = dataclasses.replace(
        rules,
        rules=tuple(worded(rule, fractions) for rule in rules.rules),
        schema=dataclasses.replace(rules.schema, fields=typed(rules.schema.fields, fractions)),
    )
    figures, score = dataclasses.replace(figures, rules=rules), figures.score
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
    evidence = figures.evidence()
    missed = 0 if verdict.positive is None else figures.unexplained
    outliers = {} if verdict.positive is None else {verdict.positive: "the outliers"}
    return coded, Learned(
        rules, made.trace, score, evidence, (), n_passes=3, missed=missed, rest=figures.rest,
        check=check,
        suspects=suspects_of(
            rules, evidence, values, codes, outliers, totals=totals, where=IN_A_SAMPLE
        ),
        frontier=frontier_of(rules, groups_apart(figures.covered, totals), outliers),
    )  # fmt: skip


def _with_partitions(rules: RuleSet, score: float) -> RuleSet:
    """Rows of each partition from all rows: those that its rules cover."""
    partitions = tuple(
        dataclasses.replace(each, rows=sum(rule.rows for rule in rules.rules[start:stop]))
        for each, (start, stop) in zip(rules.partitions, rules.spans, strict=True)
    )
    routing = dataclasses.replace(rules.routing, routed=score, partitions=partitions)
    return dataclasses.replace(rules, routing=routing)
