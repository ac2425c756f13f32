"""Distilled rules for rows that do not fit: looked for in samples, counted and chosen on all rows.

Each round learns rules from a sample and counts them on all rows, together with those of the
rounds before; the shortest choice above the floor is then exact. The pass that counts also draws
the next sample: outliers that no rule explains, and inliers that one covers, are all in it as far
as there is room. So a rare kind that one sample missed, or a bound that was too wide, is seen by
the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.clauses import value_order
from stair.distill.given import Picked, pick
from stair.errors import StairError
from stair.evidence import Rest
from stair.figures import score_in_words
from stair.io.frame import Frame
from stair.labels import Labels
from stair.learn import Certificate, Learner
from stair.rules import Rule, RuleSet
from stair.scale.census import Census, Table, typed, worded
from stair.scale.coding import Coded, Coder, Coding
from stair.scale.draw import Sample
from stair.scale.options import Options, Progress
from stair.scale.rows import Rows
from stair.scale.rules import Learned
from stair.scale.sample import evidence_from, fields_of, known_verdict, score_of_table
from stair.schema import MOST_KNOWN, Field, Schema, Values
from stair.table import read_to_learn

# So many rounds at most, and so many in a row without a better score.
ROUNDS: Final = 8
PATIENCE: Final = 2
# Rules are looked for at the floor, and this far from it to 1: what a sample calls enough may be
# a little less than that on all rows.
PAST_THE_FLOOR: Final = 0.5
# Rules that are counted in one pass.
MOST_RULES: Final = 1024


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
class _Learning:
    """What is known so far of a table and of rules for it."""

    rows: Rows
    options: Options
    learner: Callable[[Schema, Labels], Learner]
    verdict: Labels
    coder: Coder
    most: int
    seed: int
    say: Progress
    default: int  # the class of a row that no rule covers
    fields: tuple[Field, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    seen: dict[str, set[object]] = field(default_factory=dict)  # the values of categories
    notes: dict[str, None] = field(default_factory=dict)  # in order, each once
    pool: list[Rule] = field(default_factory=list)
    n_passes: int = 1  # the labels are known

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

    def count(self, what: str) -> Census:
        """One pass for all rules of the pool, which draws a sample."""
        wanted = self.options.wanted(self.rows.names, self.rows.source)
        asked = Census.that_draws(
            self.pool, self.schema, self.coder, self.n_classes, self.default, self.most, self.seed
        )
        self.n_passes += 1
        census = self.rows.gather(asked, wanted, f"pass {self.n_passes}, {what}")
        self.fields = typed(self.fields, census.fractions)
        self.pool = [worded(rule, census.fractions) for rule in self.pool]
        return census

    def learn(self, sample: Sample, time_limit: float | None) -> tuple[list[Rule], int]:
        """Rules from a sample, and the total length of those that the floor takes there."""
        codes = (sample.strata // (len(sample.tiers) // self.n_classes)).astype(np.int32)
        values = self._read(sample)
        verdict = self.verdict
        labels = Labels(codes, verdict.classes, verdict.positive, verdict.meaning, verdict.notes)
        learner = replace(self.learner(self.schema, labels), time_limit=time_limit)
        if learner.min_outliers is not None:  # of all rows: a sample has fewer
            share = np.count_nonzero(codes != self.default) / self._n_wanted(sample)
            learner = replace(learner, min_outliers=max(1, int(learner.min_outliers * share)))
        if sample.is_whole:
            made = learner.distilled(values, codes).rules
            return list(made.rules), made.total_length
        weights = sample.weights.astype(np.float64)
        made = learner.distilled(values, codes, weights).rules
        higher = learner.min_score + (1 - learner.min_score) * PAST_THE_FLOOR
        further = replace(learner, min_score=higher, effort="fast")
        more = further.distilled(values, codes, weights).rules
        return [*made.rules, *more.rules], made.total_length

    def _read(self, sample: Sample) -> Values:
        """The values of a sample. What a field is stays as the first sample shows it; later ones
        may have fields that were constant there."""
        columns = {n: array for n, array in sample.columns.items() if n != self.options.label}
        frame = Frame(columns, len(sample.keys), types=sample.types)
        found, left_out = fields_of(frame, self.options)
        known = {each.name for each in self.fields}
        self.fields += tuple(each for each in found if each.name not in known)
        sources = {each.source for each in self.fields}
        self.left_out = {name: why for name, why in left_out.items() if name not in sources}
        values = read_to_learn(Schema(self.fields), frame)
        where = "" if sample.is_whole else "in a sample: "
        self.notes = dict.fromkeys(where + note for note in values.notes)
        for each in self.fields:
            if each.kind == "category":
                here = self.seen.setdefault(each.name, set())
                here.update(v for v in values[each.name].tolist() if v is not None)
        return values

    def _n_wanted(self, sample: Sample) -> int:
        of_class = sample.counts.reshape(self.n_classes, -1).sum(axis=1)
        return int(of_class.sum() - of_class[self.default])

    def add(self, rules: Sequence[Rule], chosen: Sequence[Rule]) -> bool:
        """Rules for the pool, those that are chosen now first; whether any is new."""
        known = set(self.pool)
        bare = [Rule(rule.clauses, rule.label) for rule in rules]
        self.pool = list(dict.fromkeys([*chosen, *bare, *self.pool]))[:MOST_RULES]
        return not known.issuperset(self.pool)

    def choose(self, table: Table, base: Learner, seconds: float | None) -> _Choice:
        """The shortest choice among the rules of the pool, by the counts of all rows."""
        classes = self.verdict.classes
        labels = [classes.index(rule.label) for rule in self.pool]
        picked = pick(
            table.classes, table.counts, table.covered, labels, list(map(len, self.pool)),
            n_classes=self.n_classes, default=self.default, positive=self.verdict.positive,
            min_score=base.min_score, max_total_length=base.max_total_length,
            min_outliers=base.min_outliers, seconds=seconds,
        )  # fmt: skip
        chosen = [self.pool[k] for k in picked.numbers]
        covered = table.covered[:, list(picked.numbers)]
        predicted = self._predicted(replace(table, covered=covered), chosen)
        return _Choice(tuple(chosen), score_of_table(predicted, self.verdict.positive), picked)

    def _predicted(self, table: Table, rules: Sequence[Rule]) -> NDArray[np.int64]:
        """The rows by the class that the rules give them (first), and by their own."""
        given = np.full(len(table.classes), self.default)
        order = self._order(table)
        for rule, covered in sorted(
            zip(rules, table.covered.T, strict=True), key=lambda pair: -order[pair[0].label]
        ):  # where rules overlap, the first class wins
            given[covered] = self.verdict.classes.index(rule.label)
        found = np.zeros((self.n_classes, self.n_classes), np.int64)
        np.add.at(found, (given, table.classes), table.counts)
        return found

    def _order(self, table: Table) -> dict[object, int]:
        """The rarer a class, the more a rule of its own says: its rules come first."""
        totals = table.by_class(np.ones(len(table.classes), np.bool_), self.n_classes)
        order = sorted(range(self.n_classes), key=lambda k: (k == self.default, totals[k], k))
        return {self.verdict.classes[k]: place for place, k in enumerate(order)}

    def counted(self, choice: _Choice) -> Learned:
        """The last pass: all figures, from the rules that are chosen."""
        wanted = self.options.wanted(self.rows.names, self.rows.source)
        asked = Census(
            choice.rules, self.schema, self.coder, self.n_classes, self.default, sample=None
        )
        self.n_passes += 1
        said = f"pass {self.n_passes}, counting the rules that are chosen"
        census = self.rows.gather(asked, wanted, said)
        table = census.table()
        predicted = self._predicted(table, choice.rules)
        positive, classes = self.verdict.positive, self.verdict.classes
        score = score_of_table(predicted, positive)
        if score != choice.score:
            raise StairError(
                "two passes over the data disagree; was it changed meanwhile? Run again"
            )
        totals = predicted.sum(axis=0)
        by_rule = [table.of_rule(k, self.n_classes) for k in range(len(choice.rules))]
        once = replace(table, covered=table.covered & (table.covered.sum(axis=1) == 1)[:, None])
        alone = [once.of_rule(k, self.n_classes) for k in range(len(choice.rules))]
        starts = np.cumsum([0, *(len(rule.clauses) for rule in choice.rules)])
        order = self._order(table)
        places = sorted(
            range(len(choice.rules)),
            key=lambda k: (
                order[choice.rules[k].label],
                -by_rule[k][classes.index(choice.rules[k].label)],
                str(choice.rules[k]),
            ),
        )
        counts = [tuple(zip(classes, map(float, by_rule[k].tolist()), strict=True)) for k in places]
        rules = RuleSet(
            tuple(replace(choice.rules[k], counts=n) for k, n in zip(places, counts, strict=True)),
            classes, self.schema, classes[self.default], tuple(map(float, totals.tolist())),
            None if positive is None else classes[positive],
        )  # fmt: skip
        by_clause = [census.by_clause[starts[k] : starts[k + 1]] for k in places]
        evidence = evidence_from(
            rules, np.concatenate([*by_clause, census.by_clause[:0]]),
            np.array([alone[k] for k in places]).reshape(-1, self.n_classes), totals, positive,
        )  # fmt: skip
        rest = table.by_class(table.covered.sum(axis=1) == 0, self.n_classes)
        missed = 0 if positive is None else int(totals[positive] - predicted[positive, positive])
        picked = choice.picked
        return Learned(
            rules, (), score, evidence, (), n_passes=self.n_passes, missed=missed,
            rest=Rest(int(rest.sum()), int(rest[self.default])),
            certificate=Certificate(
                picked.bound, picked.n_candidates, picked.min_outliers, picked.relaxed
            ),
        )  # fmt: skip


def distill_rows(
    rows: Rows,
    options: Options,
    learner: Callable[[Schema, Labels], Learner],
    most: int,
    seed: int,
    say: Progress,
) -> tuple[Coded, Learned]:
    """The shortest rules above the floor on all rows; samples have at most so many rows."""
    verdict, coder, totals = known_verdict(rows, options)
    positive = verdict.positive
    default = int(totals.argmax()) if positive is None else 1 - positive
    known = _Learning(rows, options, learner, verdict, coder, most, seed, say, default)
    base = learner(Schema(()), verdict)
    deadline = None if base.time_limit is None else time.monotonic() + base.time_limit

    def left() -> float | None:
        return None if deadline is None else max(0.0, deadline - time.monotonic())

    sample = known.count("drawing a sample").sample
    assert sample is not None
    best: _Choice | None = None
    stale = number = 0
    for number in range(1, ROUNDS + 1):
        say(f"round {number}, learning from {len(sample.keys):,} rows")
        rules, length = known.learn(sample, left())
        if not known.add(rules, () if best is None else best.rules) and best is not None:
            break  # all of them were counted before
        census = known.count(f"counting {len(known.pool)} rules")
        choice = known.choose(census.table(), base, left())
        stale = stale + 1 if best is not None and choice.rank <= best.rank else 0
        best = choice if stale == 0 else best
        assert best is not None
        score = score_in_words(best.score, base.min_score, 3)
        say(f"round {number}, total length {best.length}, score {score} on all rows")
        enough = best.picked.is_enough
        if sample.is_whole or left() == 0.0 or (enough and (stale or best.length <= length)):
            break
        if stale >= PATIENCE:
            break
        sample = census.sample
        assert sample is not None
    assert best is not None
    learned = replace(known.counted(best), n_rounds=number)
    rounds = f"{number} round{'s' * (number != 1)}"
    notes = [*rows.notes, *known.notes, *verdict.notes]
    if not sample.is_whole:
        notes.append(
            f"looked for in samples of up to {most:,} rows in {rounds}, counted and chosen on all "
            "rows"
        )
    if not best.picked.is_enough:
        notes.append(f"the floor was not reached on all rows in {rounds}")
    coded = Coded(
        Coding(known.fields, (), ()), verdict.classes, positive, verdict.meaning,
        tuple(notes), tuple(totals.tolist()), known.left_out, tuple(rows.names), rows.source,
        verdict.codebook,
    )  # fmt: skip
    return coded, learned


def _few(values: set[object]) -> tuple[object, ...] | None:
    return tuple(sorted(values, key=value_order)) if len(values) <= MOST_KNOWN else None
