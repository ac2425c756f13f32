"""From a table to rules for partitions: the space, the starts to try, and words for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from stair.data.decimals import shortest_between
from stair.data.frame import Array
from stair.data.names import in_name_order, name_order
from stair.data.weights import percentiles
from stair.engines.memory import MemoryEngine
from stair.errors import StairError, option
from stair.learn.alike import Alike, Shares, merged, shares_of
from stair.learn.grow import grow
from stair.learn.partition import FloorOn, Local, learn_local
from stair.learn.table import Table
from stair.rules.clauses import number_in_words, side_by_side, value_in_words
from stair.rules.columns import Categories, Term
from stair.rules.figures import percent
from stair.rules.match import first_match
from stair.rules.objective import f1, reaches
from stair.rules.routing import Partition, Routing, Space, space_of
from stair.rules.rule_set import Rule, RuleSet, rule_set_of

STARTS: Final = (2, 4, 8)
# k-means is drawn anew as often as this many values may be looked at, and no more than so often.
VALUES: Final = 2_000_000
MOST_DRAWS: Final = 3
# λ. Large enough that most rows stay with their nearest center even where the floor is on the
# assigned score (experiments/results/q4.md has the shares), small enough to move some.
LOCALITY: Final = 2.0
# A short rule is worth saying of a partition from this F1 on.
WELL_DESCRIBED: Final = 0.8
MOST_DIFFERENCES: Final = 2


def local_rules(
    table: Table,
    codes: NDArray[np.int32],
    classes: tuple[object, ...],
    *,
    positive: int | None,
    weights: NDArray[np.float64] | None,
    min_score: float,
    max_rule_length: int,
    n_partitions: int | Literal["auto"],
    locality: float,
    floor_on: FloorOn,
    max_rounds: int,
    seed: int,
    most_draws: int = MOST_DRAWS,
    say: Callable[[str], object] = lambda _: None,
) -> tuple[RuleSet, Local]:
    """Learn partitions and rules; with "auto" the shortest of several starts above the floor.

    A row of weight 2 is the row twice: where rows lie, the first centers and the errors that are
    made are all by weight.
    """
    if n_partitions != "auto" and n_partitions > table.n_rows:
        raise StairError(
            f"{option('n_partitions', n_partitions)} is more than the {table.n_rows} rows; "
            "expected at most one partition for each row"
        )
    shares = shares_of(weights)
    _, once = shares.written(codes)
    space = space_of(
        [
            (table.schema.fields[k].name, table.schema.fields[k].kind)
            for k in in_name_order(table.schema.names)
        ],
        lambda name: shares.written(table.values[name])[0],
        lambda name: tuple(c.term for c in table.columns if isinstance(c, Term) and c.name == name),
        once,
    )
    if not space.dimensions:
        raise StairError(
            "no column has a value, so that rows have no place in any partition; expected values "
            "in at least one column"
        )
    # The same rows in any order are the same to every draw and every sum.
    apart = _told_apart(space, table)
    own = [] if shares.times is None else [shares.times]
    rows = np.lexsort((*own, *apart, codes, *table.codes.T))
    if shares.times is not None:
        shares = replace(shares, times=shares.times[rows])
    table = Table(table.schema, table.columns, table.codes[rows], table.values.take(rows))
    codes = codes[rows]
    data = merged(table, codes, [numbers[rows] for numbers in apart], shares)
    places = space.place(data.table.values.__getitem__)
    starts = STARTS if n_partitions == "auto" else (n_partitions,)
    n_rows = data.size(np.arange(len(data.codes))) if data.is_written else table.n_rows
    draws = min(max(VALUES // (n_rows * table.codes.shape[1]), 1), most_draws)
    found = [
        learn_local(
            data, places, len(classes), positive=positive, min_score=min_score,
            max_rule_length=max_rule_length, n_partitions=min(n, table.n_rows),
            locality=locality, floor_on=floor_on, max_rounds=max_rounds, seed=(seed, draw),
            say=say,
        )
        for n in starts
        for draw in range(draws)
    ]  # fmt: skip

    def rank(local: Local) -> tuple[bool, float]:
        score = local.routed if floor_on == "routed" else local.assigned
        reached = reaches(score, min_score)
        return (not reached, local.total_length if reached else -score)

    best = min(found, key=rank)
    say("learning: describing the partitions")
    rules = _rule_set(data, shares, classes, positive, space, places, best)
    return rules, _in_weights(best, shares)


def _in_weights(local: Local, shares: Shares) -> Local:
    """What was counted on the way, as the weights that were given."""
    true = shares.true
    rounds = [
        each._replace(
            error=true(each.error),
            locality=true(each.locality),
            objective_before=true(each.objective_before),
            objective=true(each.objective),
            objective_after=true(each.objective_after),
        )
        for each in local.rounds
    ]
    steps = [
        step._replace(objective=true(step.objective), purity=true(step.purity))
        for step in local.steps
    ]
    return replace(local, rounds=rounds, steps=steps)


def _told_apart(space: Space, table: Table) -> list[NDArray[np.intp]]:
    """For each row what has a place in the space and no code: names that no clause may say."""
    unnamed = {c.name for c in table.columns if isinstance(c, Categories) and c.has_others}
    return [
        (dimension.place(table.values[dimension.feature]) > 0) @ np.arange(1, dimension.width + 1)
        for dimension in space.dimensions
        if dimension.kind == "category" and dimension.feature in unnamed
    ]


def _rule_set(
    data: Alike,
    shares: Shares,
    classes: tuple[object, ...],
    positive: int | None,
    space: Space,
    places: NDArray[np.float64],
    local: Local,
) -> RuleSet:
    """The rules with counts of the rows that are routed to them, which is what a new row gets."""
    table, n = data.table, len(classes)
    counts = data.count(data.codes, n)
    default = 1 - positive if positive is not None else counts.index(max(counts))
    routed = space.distances(places, local.centers).argmin(axis=1)
    rules: list[Rule] = []
    partitions: list[Partition] = []
    for number, leaves in enumerate(local.leaves):
        rows = np.flatnonzero(routed == number)
        here = table.values.take(rows)
        # One number for each leaf and class; the rows that no leaf covers come before them.
        cells = (first_match(leaves, here.__getitem__, len(rows)) + 1) * n + data.codes[rows]
        size = (len(leaves) + 1) * n
        found = np.bincount(cells, data.times_of(rows), size).reshape(-1, n)
        part = rule_set_of(
            [
                leaf._replace(counts=tuple(map(shares.true, row.tolist())))
                for leaf, row in zip(leaves, found[1:], strict=True)
            ],
            classes, table.schema, default, positive,
        )  # fmt: skip
        rules += part.rules
        words = describe(data, routed == number) if len(local.leaves) > 1 else "all rows"
        center = tuple(local.centers[number].tolist())
        partitions.append(
            Partition(center, shares.true(float(found.sum())), len(part.rules), words)
        )
    return RuleSet(
        tuple(rules), classes, table.schema, classes[default], tuple(map(shares.true, counts)),
        None if positive is None else classes[positive],
        Routing(space, tuple(partitions), local.assigned, local.routed),
    )  # fmt: skip


def describe(data: Alike, inside: NDArray[np.bool_]) -> str:
    """What sets a partition apart: a short rule where one does, else the attributes that differ."""
    if not inside.any() or inside.all():
        return ""
    rule = _short_rule(data, inside)
    if rule is not None:
        return rule
    (inside, times), values = data.written(inside), data.table.values
    differences = sorted(
        (
            d
            for f in data.table.schema.fields
            if (d := _difference(data.written(values[f.name])[0], f.name, f.kind, inside, times))
        ),
        key=lambda pair: (-pair[0], name_order(pair[1])),
    )
    return ", ".join(words for _, words in differences[:MOST_DIFFERENCES])


def _short_rule(data: Alike, inside: NDArray[np.bool_]) -> str | None:
    """One rule of at most two attributes for the partition against the rest, if it is good."""
    table = data.table
    engine = MemoryEngine(table.columns, table.codes, inside.astype(np.int32), 2, times=data.times,
                          are_rows=data.is_written)  # fmt: skip
    growth = grow(engine, min_score=0.95, max_rule_length=2, max_total_length=12, positive=1)
    n_inside = growth.root.group.counts[1]
    best, words = WELL_DESCRIBED, None
    for node in growth.leaves():
        outside, hits = node.group.counts
        score = f1(hits, hits + outside, n_inside)
        if node.label == 1 and score > best:
            best, words = score, " and ".join(side_by_side([*map(str, node.clauses())]))
    return words


def _difference(
    array: Array,
    name: str,
    kind: str,
    inside: NDArray[np.bool_],
    times: NDArray[np.int64] | None,
) -> tuple[float, str] | None:
    """How much an attribute differs inside, and how to say it; each row is there so many times."""
    if kind == "number":
        array = array.astype(np.float64)
        known = ~np.isnan(array)
        if not (known & inside).any() or not (known & ~inside).any():
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            here, there = (_median(array, times, known & rows) for rows in (inside, ~inside))
            low, high = percentiles(array[known], _among(times, known), [25, 75])
            size = abs(here - there) / (float(high - low) or 1.0)
        if size == 0 or not all(map(math.isfinite, (here * 1.1, there * 1.1, size))):
            return None  # nothing to say, or nothing that numbers can
        return size, f"{name} around {_rounded(here)} (elsewhere {_rounded(there)})"
    if kind == "category":
        values = [v for v in dict.fromkeys(array.tolist()) if v is not None]
        mine, theirs = (_among(times, rows) for rows in (inside, ~inside))
        by_value = [
            (
                float(np.average(array[inside] == v, weights=mine)),
                float(np.average(array[~inside] == v, weights=theirs)),
                v,
            )
            for v in values
        ]
        if not by_value:
            return None
        here, there, value = max(by_value, key=lambda s: s[0] - s[1])
        shares = f"in {percent(here)} (elsewhere {percent(there)})"
        return here - there, f"{name} {value_in_words(value)} {shares}"
    return None


def _among(times: NDArray[np.int64] | None, rows: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    return None if times is None else times[rows]


def _median(
    array: NDArray[np.float64], times: NDArray[np.int64] | None, rows: NDArray[np.bool_]
) -> float:
    if times is None:
        return float(np.median(array[rows]))
    return float(percentiles(array[rows], times[rows], [50])[0])


def _rounded(x: float) -> str:
    """A typical value, short."""
    return number_in_words(shortest_between(x - abs(x) * 0.02 - 1e-12, x + abs(x) * 0.02 + 1e-12))
