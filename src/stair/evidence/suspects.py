"""What should be looked at twice: columns that give the verdict away.

A copy of the label, a number given out after the fact or the afternoon on which an attack was run
tells outliers apart as well as any good rule, and explains nothing. Nothing here is left out: it is
named, for a person to decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import is_missing
from stair.data.frame import Array, Integers
from stair.rules.clauses import name_in_words
from stair.rules.counted import RuleEvidence
from stair.rules.figures import score_in_words
from stair.rules.objective import f1
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Schema, Values

# A single clause with at least this F1 is too good to be taken at its word.
TOO_GOOD: Final = 0.99
# A stretch of time that tells so much of a class apart, and is no longer than a day.
A_STRETCH: Final = 0.9
A_DAY: Final = np.timedelta64(1, "D")


def suspects_of(
    rules: RuleSet,
    evidence: tuple[RuleEvidence, ...],
    values: Values,
    codes: NDArray[np.int32],
    wanted: Mapping[int, str],
    *,
    totals: Integers | None = None,
    weights: NDArray[np.int64] | None = None,
    where: str = "in every row",
) -> tuple[str, ...]:
    """Sentences without an end. `wanted` are the classes of outliers, with what to call them.

    Where values are those of a sample, `totals` are all rows of each class, `weights` the rows that
    each row stands for, and `where` says so.
    """
    totals = np.bincount(codes, minlength=len(rules.classes)) if totals is None else totals
    found = list(too_good(rules, evidence, totals, wanted))
    named = set(named_by(evidence)) if found else set()
    copies = _copies(rules.schema, values, codes, named, where)
    return (*found, *copies, *stretches_of(rules.schema, values, codes, wanted, weights))


def named_by(evidence: Iterable[RuleEvidence]) -> Iterator[str]:
    """The columns that rules of a single clause speak of."""
    for each in evidence:
        if len(each.rule.clauses) == 1:
            yield each.rule.clauses[0].feature


def too_good(
    rules: RuleSet,
    evidence: tuple[RuleEvidence, ...],
    totals: Integers,
    wanted: Mapping[int, str],
) -> Iterator[str]:
    """Rules of a single clause that are all there is to a class of so many rows."""
    for number, each in enumerate(evidence, start=1):
        place = rules.classes.index(each.rule.label)
        if place not in wanted or len(each.rule.clauses) != 1:
            continue
        alone = f1(each.hits, each.rows, int(totals[place]))
        if alone >= TOO_GOOD:
            name = name_in_words(each.rule.clauses[0].attribute)
            yield (
                f"rule {number} is all that there is to {wanted[place]} "
                f"(F1 {score_in_words(alone, TOO_GOOD)}); if "
                f"{name} was made from the verdict, or after it, leave it out"
            )


def _copies(
    schema: Schema,
    values: Values,
    codes: NDArray[np.int32],
    named: Collection[str],
    where: str,
) -> Iterator[str]:
    """Columns that have one value for each class: a copy of the label, however it is written."""
    groups = [np.flatnonzero(codes == k) for k in np.unique(codes)]
    if len(groups) < 2:
        return
    for field in schema.fields:
        if field.kind not in ("number", "category") or field.part or field.name in named:
            continue
        array = values.get(field.name)
        if array is None:
            continue
        firsts = [array[rows[0]] for rows in groups]
        if len({str(first) for first in firsts}) == len(groups) and all(
            _is_all(array[rows], first) for rows, first in zip(groups, firsts, strict=True)
        ):
            yield copy_in_words(field.name, where)


def copy_in_words(name: str, where: str = "in every row") -> str:
    return (
        f"{name_in_words(name)} says the same as the verdict {where}; if it was made from it, "
        "leave it out"
    )


def _is_all(values: Array, first: object) -> bool:
    """Whether all values are the first one, or missing as it is."""
    few = values[:100]  # most columns need no more
    for some in (few, values):
        is_gone = is_missing(some)
        is_same = is_gone if first is None or first != first else ~is_gone & (some == first)
        if not is_same.all():
            return False
    return True


def stretches_of(
    schema: Schema,
    values: Values,
    codes: NDArray[np.int32],
    wanted: Mapping[int, str],
    weights: NDArray[np.int64] | None = None,
) -> Iterator[str]:
    """Times within a day that tell a class apart; weights say how many rows a row stands for."""
    times_of_row = np.ones(len(codes), dtype=np.int64) if weights is None else weights
    n_classes = int(codes.max(initial=0)) + 1
    for field in schema.fields:
        if field.kind != "time" or field.name not in values:
            continue
        times = values[field.name]
        known = np.flatnonzero(~np.isnat(times))
        order = known[np.argsort(times[known], kind="stable")]
        counts = np.zeros((len(order), n_classes), dtype=np.int64)
        counts[np.arange(len(order)), codes[order]] = times_of_row[order]
        totals = np.bincount(codes, times_of_row, n_classes)
        yield from stretches_in(field.name, times[order], times[order], counts, totals, wanted)


def stretches_in(
    name: str,
    first: NDArray[np.datetime64],
    last: NDArray[np.datetime64],
    counts: NDArray[np.int64],
    totals: Integers | NDArray[np.float64],
    wanted: Mapping[int, str],
) -> Iterator[str]:
    """The same for one column: times in order, each from a first to a last one, and the rows of
    each class that have them."""
    rows = counts.sum(axis=1)
    for place, words in wanted.items():
        own = counts[:, place]
        start, stop = _best_run(2.0 * own - A_STRETCH * rows)
        # A bin at an end, which is more than one time, may reach far beyond it.
        if stop - start > 1 and last[stop - 1] - first[stop - 1] > A_DAY:
            stop -= 1
        if stop - start > 1 and last[start] - first[start] > A_DAY:
            start += 1
        if stop == start:
            continue
        hits = int(own[start:stop].sum())
        score = f1(hits, int(rows[start:stop].sum()), float(totals[place]))
        if score >= A_STRETCH and last[stop - 1] - first[start] <= A_DAY:
            day = str(first[start].astype("datetime64[D]"))
            yield (
                f"{name_in_words(name)} alone would tell {words} apart, by a stretch of "
                f"time on {day}"
            )


def _best_run(worth: NDArray[np.float64]) -> tuple[int, int]:
    """Where the run with the largest sum starts and stops."""
    sums = np.concatenate([[0.0], np.cumsum(worth)])
    least = np.minimum.accumulate(sums)
    stop = int((sums - least).argmax())
    return int(np.flatnonzero(sums[: stop + 1] == least[stop])[-1]), stop
