"""Several kinds of outlier: rules for each of them, and everything else is normal.

Each kind has rules of its own, learned against all other rows, and a floor of its own. A kind
whose rules do not reach it has none in the end: what came nearest is named instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError, option
from stair.objective import reaches, score_of_classes
from stair.rules import Label, Rule, RuleSet
from stair.schema import Values

# A kind with fewer rows than this has no rules: they would be a memory of these rows.
FEWEST: Final = 5


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of outlier: its F1 by all rules together, and where that is not above the floor, the
    rules that came nearest with the F1 that they have by themselves."""

    label: Label
    rows: int
    score: float
    reached: bool
    nearest: tuple[Rule, ...] = ()
    nearest_score: float = 0.0


def learn_kinds(
    learn: Callable[[int], RuleSet],
    values: Values,
    codes: NDArray[np.int32],
    classes: tuple[Label, ...],
    negative: int,
    floor: float,
) -> tuple[RuleSet, tuple[Kind, ...]]:
    """Rules for every class but the negative one, the largest kind first; `learn` gives those of
    one class against all others."""
    totals = np.bincount(codes, minlength=len(classes))
    order = _by_size(totals, negative)
    found: dict[int, RuleSet] = {}
    alone: dict[int, float] = {}
    schema = None
    for kind in order:
        if totals[kind] < FEWEST:
            continue
        found[kind] = learn(kind)
        schema = found[kind].schema
        covered = found[kind].assign(values) >= 0
        alone[kind] = score_of_classes(covered.astype(np.intp), (codes == kind).astype(np.intp), 1)
    if schema is None:
        raise StairError(
            f"no kind of outlier has {FEWEST} rows or more, so rules would be memories of rows; "
            f"name several labels at once with {option('positive')}"
        )
    reached = [kind for kind in order if kind in found and reaches(alone[kind], floor)]
    whole = RuleSet((), classes, schema, classes[negative], tuple(map(float, totals)), None)
    # Where rules overlap the first decides. Usually that is the larger kind; where a rare one
    # loses too much by it, rare ones go first.
    sets = [_together(whole, found, kinds, values, codes) for kinds in (reached, reached[::-1])]
    scores = [_scores(rules, values, codes, order) for rules in sets]
    at = int(min((scores[1][k] for k in reached), default=0.0)
             > min((scores[0][k] for k in reached), default=0.0))  # fmt: skip
    rules, by_kind = sets[at], scores[at]
    shown = reached[::-1] if at else reached  # in the order of the rules
    kinds = []
    for kind in [*shown, *(k for k in order if k not in reached)]:
        is_reached = kind in reached and reaches(by_kind[kind], floor)
        nearest = found[kind].rules if kind in found and kind not in reached else ()
        kinds.append(
            Kind(classes[kind], int(totals[kind]), by_kind[kind], is_reached, nearest,
                 alone.get(kind, 0.0))
        )  # fmt: skip
    return rules, tuple(kinds)


def kinds_of(
    rules: RuleSet, values: Values, codes: NDArray[np.int32], negative: int, floor: float
) -> tuple[Kind, ...]:
    """How each kind of outlier does by rules that are there already, in the order of the rules; a
    kind without rules comes last."""
    totals = np.bincount(codes, minlength=len(rules.classes))
    scores = _scores(rules, values, codes, order := _by_size(totals, negative))
    first = [rules.classes.index(rule.label) for rule in rules]
    shown = [k for k in dict.fromkeys([*first, *order]) if k in order]
    return tuple(
        Kind(rules.classes[k], int(totals[k]), scores[k], k in first and reaches(scores[k], floor))
        for k in shown
    )


def _by_size(totals: NDArray[np.intp], negative: int) -> list[int]:
    """The kinds that there are, the largest first: a verdict may have taken all rows of one."""
    kinds = (k for k in range(len(totals)) if k != negative and totals[k])
    return sorted(kinds, key=lambda k: (-totals[k], k))


def _together(
    whole: RuleSet,
    found: Mapping[int, RuleSet],
    kinds: Sequence[int],
    values: Values,
    codes: NDArray[np.int32],
) -> RuleSet:
    """The rules of these kinds, in this order, counted on all rows."""
    rules = [Rule(rule.clauses, whole.classes[kind]) for kind in kinds for rule in found[kind]]
    bare = replace(whole, rules=tuple(rules))
    covered: Any = bare.covers(values)
    counted = []
    for rule, rows in zip(rules, covered.T, strict=True):
        counts = np.bincount(codes[rows], minlength=len(whole.classes)).astype(float)
        counted.append(
            replace(rule, counts=tuple(zip(whole.classes, counts.tolist(), strict=True)))
        )
    return replace(whole, rules=tuple(counted))


def _scores(
    rules: RuleSet, values: Values, codes: NDArray[np.int32], kinds: Sequence[int]
) -> dict[int, float]:
    places = [rules.classes.index(rule.label) for rule in rules] + [
        rules.classes.index(rules.default)
    ]
    predicted = np.array(places)[rules.assign(values)]
    return {kind: score_of_classes(predicted, codes, kind) for kind in kinds}
