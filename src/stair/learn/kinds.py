"""Several kinds of outlier: rules for each of them, and everything else is normal.

Each kind has rules of its own, learned against all other rows, and a floor of its own. A kind
whose rules do not reach it has none in the end: what came nearest is named instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Integers
from stair.errors import StairError, option
from stair.rules.counted import Counted, counted_of
from stair.rules.groups import Groups, groups_of
from stair.rules.objective import reaches
from stair.rules.rule_set import Label, Rule, RuleSet
from stair.rules.schema import Values

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
    weights: NDArray[np.int64] | None = None,
    fewest: int = FEWEST,
) -> tuple[RuleSet, tuple[Kind, ...]]:
    """Rules for every class but the negative one; `learn` gives those of one class against all
    others. Weights say how many rows each row stands for."""
    totals = np.bincount(codes, minlength=len(classes))
    found = {kind: learn(kind) for kind in kinds_to_learn(totals, negative, fewest)}
    schema = next(iter(found.values())).schema
    rules = [rule for each in found.values() for rule in each]
    counts = np.bincount(codes, weights, len(classes))
    whole = RuleSet(
        tuple(rules), classes, schema, classes[negative], tuple(map(float, counts)), None
    )
    groups = groups_of(whole.covers(values), codes, weights)
    return join_kinds({kind: each.rules for kind, each in found.items()}, groups, whole, floor)


def kinds_to_learn(totals: Integers, negative: int, fewest: int = FEWEST) -> list[int]:
    """The classes that are kinds of outlier with enough rows for rules, the largest first."""
    order = [k for k in _by_size(totals, negative) if totals[k] >= fewest]
    if not order:
        raise StairError(
            f"no kind of outlier has {FEWEST} rows or more, so rules would be memories of rows; "
            f"name several labels at once with {option('positive')}"
        )
    return order


def _by_size(totals: Integers, negative: int) -> list[int]:
    """The kinds that there are, the largest first: a verdict may have taken all rows of one."""
    kinds = (k for k in range(len(totals)) if k != negative and totals[k])
    return sorted(kinds, key=lambda k: (-totals[k], k))


def join_kinds(
    found: Mapping[int, Sequence[Rule]], groups: Groups, whole: RuleSet, floor: float
) -> tuple[RuleSet, tuple[Kind, ...]]:
    """The rules of all kinds that reach the floor, in one set, and how each kind does.

    `whole` and the groups of rows have the rules of all kinds, one kind after the other.
    """
    classes, negative = whole.classes, whole.classes.index(whole.default)
    totals = groups.totals(len(classes))
    order = _by_size(totals, negative)
    starts = np.cumsum([0, *map(len, found.values())]).tolist()
    places = {kind: list(range(starts[k], starts[k + 1])) for k, kind in enumerate(found)}

    def with_kinds(kinds: Sequence[int]) -> Counted:
        """The rules of these kinds, one kind after the other."""
        rules = tuple(Rule(rule.clauses, classes[kind]) for kind in kinds for rule in found[kind])
        numbers = [place for kind in kinds for place in places[kind]]
        return counted_of(replace(whole, rules=rules), groups.with_rules(numbers))

    alone = {kind: with_kinds([kind]).of_class(kind).f1 for kind in places}
    reached = [kind for kind in order if kind in found and reaches(alone[kind], floor)]
    # Where rules overlap the first decides. Usually that is the larger kind; where a rare one
    # loses too much by it, rare ones go first.
    orders = (reached, reached[::-1])
    counted = [with_kinds(kinds) for kinds in orders]
    scores = [{kind: each.of_class(kind).f1 for kind in order} for each in counted]
    at = int(min((scores[1][k] for k in reached), default=0.0)
             > min((scores[0][k] for k in reached), default=0.0))  # fmt: skip
    shown, by_kind = orders[at], scores[at]
    kinds = []
    for kind in [*shown, *(k for k in order if k not in reached)]:
        is_reached = kind in reached and reaches(by_kind[kind], floor)
        nearest = tuple(found[kind]) if kind in found and kind not in reached else ()
        kinds.append(
            Kind(classes[kind], int(totals[kind]), by_kind[kind], is_reached, nearest,
                 alone.get(kind, 0.0))
        )  # fmt: skip
    return replace(whole, rules=counted[at].recounted.rules), tuple(kinds)


def kinds_of(counted: Counted, negative: int, floor: float) -> tuple[Kind, ...]:
    """How each kind of outlier does by rules that are there already, in the order of the rules; a
    kind without rules comes last."""
    totals, places, classes = counted.totals, counted.places, counted.rules.classes
    order = _by_size(totals, negative)
    shown = [k for k in dict.fromkeys([*places, *order]) if k in order]
    scores = {k: counted.of_class(k).f1 for k in shown}
    return tuple(
        Kind(classes[k], int(totals[k]), scores[k], k in places and reaches(scores[k], floor))
        for k in shown
    )
