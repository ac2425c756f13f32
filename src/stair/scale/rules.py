"""Rules from counts, with their evidence: all of it from passes over all rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import exact_numbers
from stair.data.frame import Array
from stair.engines.counting import Counter, only_root
from stair.errors import StairError
from stair.evidence.suspects import copy_in_words, named_by, stretches_in, too_good
from stair.evidence.tallies import Tally
from stair.learn.distill import Further
from stair.learn.frontier import frontier_of
from stair.learn.grow import Node, Step
from stair.learn.kinds import Kind
from stair.learn.learner import Learner, check_rules
from stair.learn.levels import FAR_AHEAD, Ahead, Divisions, Pass, grow_by_level, recount
from stair.learn.method import Certificate
from stair.learn.method import Learned as Made
from stair.learn.methods import StairMethod
from stair.learn.validation import Check
from stair.progress import Progress
from stair.rules.clauses import Clause
from stair.rules.columns import ANY_OTHER, FAR, Binned, Categories, Column, Times
from stair.rules.counted import (
    Counted,
    Rest,
    RuleEvidence,
    Weighed,
    by_weight,
    counted_of,
    groups_of_disjoint,
    rest_by_weight,
    weighed_of,
)
from stair.rules.objective import Counts
from stair.rules.rule_set import Leaf, RuleSet, rule_set_of
from stair.rules.schema import Schema, Values
from stair.scale.coding import Coded
from stair.scale.draw import CodeSample
from stair.verdict.labels import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """Rules with what speaks for them, and the passes it took."""

    rules: RuleSet
    trace: tuple[Step, ...]
    score: float
    evidence: tuple[RuleEvidence, ...]
    passes: tuple[Pass, ...]
    depth: int = 0  # the most splits on the way to a rule
    n_passes: int = 0  # over all rows, those of an earlier run that died included
    missed: int = 0  # outliers that no outlier rule covers
    rest: Rest = field(default_factory=lambda: Rest(0, 0))  # rows that no rule covers
    tallies: dict[str, Tally] = field(default_factory=dict)  # of the columns that rules speak of
    n_rounds: int = 0  # of distilled rules: how often they were learned and chosen
    certificate: Certificate | None = None  # of distilled rules: how short they could be
    check: Check | str = ""  # whether the rules hold on rows kept aside, or why nobody knows
    kinds: tuple[Kind, ...] = ()  # where there are several kinds of outlier, how each does
    further: Further | None = None  # what one more rule would add
    suspects: tuple[str, ...] = ()  # what should be looked at twice
    frontier: tuple[tuple[int, float], ...] = ()  # total length and score, rule by rule
    counted: Counted | None = None  # all counts of distilled rules
    weighed: Weighed | None = None  # all rules together by weight, where rows have some


def learn_rules(
    counter: Counter,
    coded: Coded,
    method: StairMethod,
    counts_at_once: int,
    say: Progress,
    known: Divisions | None = None,
    on_level: Callable[[Divisions], None] | None = None,
    ahead: Ahead = FAR_AHEAD,
    heavy: Counter | None = None,
) -> Learned:
    """STAIR by level, and a last pass that counts the rules that it keeps; where rows have weights,
    it goes by `heavy`, which counts these."""
    n_rows = sum(coded.totals)

    def told(found: Pass, known: Divisions) -> None:
        if on_level is not None:
            on_level(known)
        rate = n_rows / max(found.seconds, 1e-9)
        say(
            f"level {found.number}: {found.n_counted} rules counted, {found.n_taken} splits taken, "
            f"{rate:,.0f} rows/s"
        )

    say("learning, level by level")
    learned_by = counter if heavy is None else heavy
    found = grow_by_level(
        learned_by,
        min_score=method.floor,
        max_rule_length=method.max_rule_length,
        max_total_length=method.max_total_length,
        positive=coded.positive,
        counts_at_once=counts_at_once,
        known=known,
        ahead=ahead,
        on_pass=told,
        n_rows=None if heavy is None else n_rows,
    )
    growth = found.growth
    started = time.perf_counter()
    say("counting the rules on all rows")
    nodes = list(growth.leaves())
    counts = recount(learned_by, growth)
    if [node.group.counts for node in nodes] != counts:
        raise StairError("two passes over the data disagree; was it changed meanwhile? Run again")
    seconds = time.perf_counter() - started
    last = Pass(len(found.passes) + 1, len(nodes), len(growth.steps), seconds)
    leaves = [
        Leaf(node.clauses(), node.label, tuple(map(float, each)))
        for node, each in zip(nodes, counts, strict=True)
    ]
    whole = counter.count(only_root(), range(len(counter.columns)))[0]
    rules = rule_set_of(
        leaves, coded.classes, coded.schema(whole), growth.root.label, coded.positive
    )
    tallies = _tallies(rules, coded, whole)
    groups, by_weights = groups_of_disjoint(rules), None
    if heavy is not None:  # the rules have the counts of rows, and weights stand beside them
        by_weights = counted_of(rules, groups)
        rules = _with_rows(rules, leaves, recount(counter, growth), coded)
    counted = counted_of(rules, groups_of_disjoint(rules), _met_by_clause(rules, tallies))
    evidence, rest, weighed = counted.evidence(), counted.rest, None
    score = counted.score
    if by_weights is not None and coded.unit is not None:
        evidence = by_weight(evidence, by_weights)
        rest = rest_by_weight(rest, by_weights)
        weighed = weighed_of(coded.unit, by_weights, counted.score)
        score = by_weights.score
    depth = max(map(_depth, nodes))
    missed = 0 if coded.positive is None else counted.unexplained
    passes = (*found.passes, last)
    wanted = {} if coded.positive is None else {coded.positive: "the outliers"}
    return Learned(
        rules, tuple(growth.steps), score, evidence, passes, depth, missed=missed, rest=rest,
        tallies=tallies, weighed=weighed,
        suspects=_suspects(rules, evidence, coded, whole, wanted),
        frontier=frontier_of(rules, groups, wanted),
    )  # fmt: skip


def _with_rows(
    rules: RuleSet, leaves: list[Leaf], counts: list[tuple[int, ...]], coded: Coded
) -> RuleSet:
    """The same rules with counts of rows in place of weights."""
    own = {leaf.clauses: each for leaf, each in zip(leaves, counts, strict=True)}
    counted = tuple(
        replace(rule, counts=tuple(zip(coded.classes, map(float, own[rule.clauses]), strict=True)))
        for rule in rules
    )
    return replace(rules, rules=counted, totals=tuple(map(float, coded.totals)))


def _suspects(
    rules: RuleSet,
    evidence: tuple[RuleEvidence, ...],
    coded: Coded,
    whole: Counts,
    wanted: dict[int, str],
) -> tuple[str, ...]:
    """Columns that give the verdict away, by the counts of all rows by their codes."""
    totals = np.array(coded.totals)
    found = list(too_good(rules, evidence, totals, wanted))
    named = set(named_by(evidence)) if found else set()
    starts = np.cumsum([0, *coded.coding.sizes]).tolist()
    copies: list[str] = []
    stretches: list[str] = []
    for j, (each, column) in enumerate(zip(coded.coding.fields, coded.coding.columns, strict=True)):
        counts = whole[starts[j] : starts[j + 1]]
        is_exact = not isinstance(column, Binned) or column.tops == column.bottoms
        if each.kind == "time" and isinstance(column, Binned):
            first, last = (
                np.array(bounds, dtype=np.int64).astype("datetime64[us]")
                for bounds in (column.bottoms, column.tops)
            )
            stretches += stretches_in(each.name, first, last, counts[:-1], totals, wanted)
        elif is_exact and each.part is None and each.name not in named and _is_copy(counts):
            copies.append(copy_in_words(each.name))
    return (*found, *copies, *stretches)


def _is_copy(counts: Counts) -> bool:
    """Whether each class has one code, and no two the same."""
    has = counts > 0
    return bool((has.sum(axis=0) == 1).all() and (has.sum(axis=1) <= 1).all())


def check_by_codes(
    drawn: CodeSample,
    coded: Coded,
    learned: Learned,
    learner: Callable[[Schema, Verdict], Learner],
    validate: int | None,
) -> tuple[Coded, Learned]:
    """Whether rules that were learned from all rows hold, by folds of rows drawn from their codes.
    A value is the largest of its bin: no bound is inside of one."""
    block = drawn.block
    assert block is not None
    codes = block.labels.astype(np.int32)
    if len(np.unique(codes)) < len(coded.classes):
        why = f"a sample of {len(codes):,} rows does not have all classes"
        return coded, replace(learned, check=why)
    values = Values(
        {
            column.name: _largest(column, size)[each]
            for column, size, each in zip(
                coded.coding.columns, coded.coding.sizes, block.codes, strict=True
            )
        },
        len(codes),
    )
    labels = Verdict(codes, coded.classes, coded.positive, coded.meaning)
    made = Made(learned.rules, learned.trace)
    learn = learner(learned.rules.schema, labels)
    check = check_rules(learn, made, values, codes, validate, block.weights)
    if not isinstance(check, str) and len(codes) < sum(coded.totals):
        note = f"rows kept aside are of a random sample of {len(codes):,} rows"
        coded = replace(coded, notes=(*coded.notes, note))
    return coded, replace(learned, check=check)


def _largest(column: Column, size: int) -> Array:
    """What the codes of a column stand for, the missing value last."""
    if isinstance(column, Categories):
        words = np.empty(size, dtype=object)
        others = [ANY_OTHER] * column.has_others
        words[:] = [*column.values, *others, None]
        return words
    assert isinstance(column, Binned)
    if isinstance(column.inner, Times):
        times = np.array(column.tops, dtype=np.int64).astype("datetime64[us]")
        return np.append(times, np.datetime64("NaT", "us"))
    return exact_numbers([*column.tops, None])


def _depth(node: Node) -> int:
    depth = 0
    while node.parent is not None:
        node, depth = node.parent, depth + 1
    return depth


def _tallies(rules: RuleSet, coded: Coded, whole: Counts) -> dict[str, Tally]:
    """The columns that the rules speak of, from the counts of all rows by their codes."""
    used = {clause.feature for rule in rules.rules for clause in rule.clauses}
    starts = np.cumsum([0, *coded.coding.sizes]).tolist()
    return {
        column.name: _tally(column, whole[starts[j] : starts[j + 1]])
        for j, column in enumerate(coded.coding.columns)
        if column.name in used
    }


def _tally(column: Column, counts: Counts) -> Tally:
    if isinstance(column, Categories):
        return Tally((*column.values, *[ANY_OTHER] * column.has_others), counts)
    assert isinstance(column, Binned)
    inner, exact = column.inner, column.tops == column.bottoms
    if isinstance(inner, Times):
        return Tally(column.tops, counts, True, inner.whole_days, exact)
    values = tuple(math.copysign(math.inf, t) if abs(t) >= FAR else t for t in column.tops)
    return Tally(values, counts, exact=exact)


def _met_by_clause(rules: RuleSet, tallies: dict[str, Tally]) -> NDArray[np.int64]:
    """A clause is about one column, so the counts of all rows by that column's codes say how many
    rows meet it."""
    met = [_met(clause, tallies[clause.feature]) for rule in rules for clause in rule.clauses]
    return np.array(met, dtype=np.int64).reshape(-1, len(rules.classes))


def _met(clause: Clause, tally: Tally) -> NDArray[np.int64]:
    """The rows of each class that meet a clause: no bound of it is inside of a bin."""
    values: Array
    if tally.is_time:
        values = np.array(tally.values, dtype=np.int64).astype("datetime64[us]")
    elif clause.is_ordered:
        values = exact_numbers(tally.values)
    else:
        values = np.empty(len(tally.values), dtype=object)
        values[:] = tally.values
    met: NDArray[np.int64] = tally.counts[:-1][clause.covers(values)].sum(axis=0)
    return met + tally.counts[-1] if clause.missing else met
