"""What should be looked at twice: columns that give the verdict away.

A copy of the label, a number given out after the fact or the afternoon on which an attack was run
tells outliers apart as well as any good rule, and explains nothing. Nothing here is left out: it is
named, for a person to decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.clauses import name_in_words
from stair.conversion import is_missing
from stair.evidence import RuleEvidence
from stair.figures import score_in_words
from stair.objective import f1
from stair.rules import RuleSet
from stair.schema import Schema, Values

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
) -> tuple[str, ...]:
    """Sentences without an end. `wanted` are the classes of outliers, with what to call them."""
    too_good = list(_too_good(rules, evidence, codes, wanted))
    named = {each.rule.clauses[0].feature for each in evidence if len(each.rule.clauses) == 1}
    copies = _copies(rules.schema, values, codes, named if too_good else set())
    return (*too_good, *copies, *_stretches(rules.schema, values, codes, wanted))


def _too_good(
    rules: RuleSet,
    evidence: tuple[RuleEvidence, ...],
    codes: NDArray[np.int32],
    wanted: Mapping[int, str],
) -> Iterator[str]:
    totals = np.bincount(codes, minlength=len(rules.classes))
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
    schema: Schema, values: Values, codes: NDArray[np.int32], named: Collection[str]
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
            yield (
                f"{name_in_words(field.name)} says the same as the verdict in every row; if it was "
                "made from it, leave it out"
            )


def _is_all(values: NDArray[Any], first: Any) -> bool:
    """Whether all values are the first one, or missing as it is."""
    few = values[:100]  # most columns need no more
    for some in (few, values):
        is_gone = is_missing(some)
        is_same = is_gone if first is None or first != first else ~is_gone & (some == first)
        if not is_same.all():
            return False
    return True


def _stretches(
    schema: Schema, values: Values, codes: NDArray[np.int32], wanted: Mapping[int, str]
) -> Iterator[str]:
    """Times within a day that tell a class apart."""
    for field in schema.fields:
        if field.kind != "time" or field.name not in values:
            continue
        times = values[field.name]
        known = np.flatnonzero(~np.isnat(times))
        order = known[np.argsort(times[known], kind="stable")]
        for place, words in wanted.items():
            is_own = codes[order] == place
            n_own = int((codes == place).sum())
            start, stop = _best_run(np.where(is_own, 2 - A_STRETCH, -A_STRETCH))
            if stop == start:
                continue
            first, last = times[order[start]], times[order[stop - 1]]
            hits = int(is_own[start:stop].sum())
            if f1(hits, stop - start, n_own) >= A_STRETCH and last - first <= A_DAY:
                day = str(first.astype("datetime64[D]"))
                yield (
                    f"{name_in_words(field.name)} alone would tell {words} apart, by a stretch of "
                    f"time on {day}"
                )


def _best_run(worth: NDArray[np.float64]) -> tuple[int, int]:
    """Where the run with the largest sum starts and stops."""
    sums = np.concatenate([[0.0], np.cumsum(worth)])
    least = np.minimum.accumulate(sums)
    stop = int((sums - least).argmax())
    return int(np.flatnonzero(sums[: stop + 1] == least[stop])[-1]), stop
