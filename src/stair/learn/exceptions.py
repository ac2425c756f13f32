"""The shortest exceptions: what is common to rows that a person called false alarms.

It is the search for distilled rules with other worths. A false alarm that is covered is worth one,
an outlier that has to stay one so much that no set that covers one is enough, and a row of neither
kind nothing. Rows that no rule calls an outlier are not looked at: exceptions change nothing there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.engines.memory import MemoryEngine
from stair.errors import StairError, check_choice, check_count, check_number, option
from stair.learn.distill.cells import Cells, cells_of
from stair.learn.distill.clock import Clock
from stair.learn.distill.cover import Problem
from stair.learn.distill.equal import distinct_rows
from stair.learn.distill.plan import EFFORTS, Chosen, Effort, shortest_set
from stair.learn.distill.polish import clauses_of
from stair.learn.grow import grow, leaves_of
from stair.learn.method import Certificate
from stair.learn.table import Table, encode
from stair.progress import Progress, quiet
from stair.rules.objective import least_outliers
from stair.rules.rule_set import Leaf, Rule, RuleSet
from stair.rules.schema import Schema, Values

# What a row is to exceptions.
STAYS, FALSE_ALARM, FREE = 0, 1, 2
# STAIR's own rules, as the first of the candidates, are grown up to here.
GROWN: Final = 0.99


@dataclass(frozen=True, slots=True)
class Aim:
    """Which exceptions are wanted, and how long to look for them."""

    min_share: float = 0.9  # of the false alarms
    max_rule_length: int = 10
    min_rows: int | None = None  # the fewest false alarms of an exception
    effort: Effort = "normal"
    time_limit: float | None = None
    seed: int = 0

    def check(self) -> None:
        """Refuse what nothing can be learned with."""
        check_number("min_share", self.min_share, 0, 1)
        check_count("max_rule_length", self.max_rule_length, 1)
        if self.min_rows is not None:
            check_count("min_rows", self.min_rows, 1)
        check_choice("effort", self.effort, EFFORTS)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)


@dataclass(frozen=True, slots=True)
class Excepted:
    """The rules with their exceptions, old and new, and what the new ones come to.

    Of the `n_false_alarms` that rules call outliers, `n_covered` are no longer called so; besides
    them exceptions take `n_free` rows about which nothing was said. `is_enough` says whether that
    is the share that was wanted.
    """

    rules: RuleSet
    new: tuple[Rule, ...]
    n_false_alarms: int
    n_covered: int
    n_stay: int
    n_free: int
    is_enough: bool
    certificate: Certificate

    @property
    def share(self) -> float:
        """Of the false alarms, the part that exceptions cover."""
        return self.n_covered / self.n_false_alarms


def learn_exceptions(
    rules: RuleSet,
    values: Values,
    false_alarms: NDArray[np.bool_],
    stays: NDArray[np.bool_],
    wanted: Aim,
    say: Progress = quiet,
) -> Excepted:
    """The shortest exceptions that cover so many of the false alarms and none of the rows that stay
    outliers, besides those that the rules have already. The values are of all fields that
    exceptions may speak of."""
    wanted.check()
    if (false_alarms & stays).any():
        row = int(np.flatnonzero(false_alarms & stays)[0]) + 1
        raise StairError(f"row {row} is said to be a false alarm and an outlier; it cannot be both")
    before = rules.matches(values)
    called = np.append(before.gives_way, False)[before.would_be]
    false_alarms, stays = false_alarms & called, stays & called
    n_false_alarms = int(false_alarms.sum())
    if not n_false_alarms:
        raise StairError(
            "no rule calls any of the false alarms an outlier, so that there is nothing to except"
        )
    if not stays.any():
        raise StairError(
            "no row that the rules call an outlier stays one, so that the shortest exception is "
            "everything; retire the rules in place of that"
        )
    n_needed = int(np.ceil(wanted.min_share * n_false_alarms - 1e-9))
    is_lifted = before.lifted.any(axis=1)
    n_left = n_needed - int((false_alarms & is_lifted).sum())
    new: list[Rule] = []
    certificate = Certificate(0, 0, 0)
    if n_left > 0:
        rows = np.flatnonzero(called & ~is_lifted)
        kinds = np.where(false_alarms, FALSE_ALARM, np.where(stays, STAYS, FREE))[rows]
        say("looking for exceptions")
        search = _Search(rules, values.take(rows), kinds.astype(np.int32), n_left, wanted, say)
        new, certificate = search()
    result = rules.with_exceptions((*rules.exceptions, *new))
    lifted = result.matches(values).lifted
    new_lifted = lifted[:, len(rules.exceptions) :]
    default = rules.default
    counted = tuple(
        Rule(rule.clauses, default, tuple((c, float(n) if c == default else 0.0)
                                          for c in rules.classes))
        for rule, n in zip(new, (new_lifted & false_alarms[:, None]).sum(axis=0), strict=True)
    )  # fmt: skip
    is_taken = lifted.any(axis=1)
    n_covered = int((is_taken & false_alarms).sum())
    free = new_lifted.any(axis=1) & ~is_lifted & ~false_alarms & ~stays
    return Excepted(
        replace(result, exceptions=(*rules.exceptions, *counted)),
        counted,
        n_false_alarms,
        n_covered,
        int(stays.sum()),
        int(free.sum()),
        n_covered >= n_needed,
        certificate,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """Rows that rules call outliers, and what they are to exceptions."""

    rules: RuleSet
    values: Values
    kinds: NDArray[np.int32]
    n_needed: int
    wanted: Aim
    say: Progress

    def __call__(self) -> tuple[list[Rule], Certificate]:
        is_wanted = self.kinds == FALSE_ALARM
        schema = self._schema()
        if not schema.fields:
            raise StairError("all these rows have the same values, so nothing tells them apart")
        table = encode(schema, self.values, is_wanted.astype(np.int32), list_codes=True)
        cells = cells_of(table.columns, table.codes, is_wanted)
        clock = Clock(self.wanted.time_limit, self.say)
        chosen, least = self._chosen(table, cells, clock)
        foreign = self.kinds == STAYS
        found = [
            Rule(
                clauses_of(cells, table.codes, each.box, foreign, self.values.__getitem__),
                self.rules.default,
            )
            for each in chosen.rules
        ]
        found = self._that_are_clean(schema, list(dict.fromkeys(found)))
        length = sum(rule.length for rule in found)
        certificate = Certificate(
            min(chosen.bound, length) if chosen.is_enough else 0,
            chosen.n_candidates,
            least,
            cut_short=clock.cut_short,
        )
        return found, certificate

    def _schema(self) -> Schema:
        """The fields that have more than one value here."""
        schema = self.rules.schema
        fields = tuple(f for f in schema.fields if f.name in self.values
                       and _differ(self.values[f.name]))  # fmt: skip
        return replace(schema, fields=fields)

    def _chosen(self, table: Table, cells: Cells, clock: Clock) -> tuple[Chosen, int]:
        """The shortest boxes. Where none cover enough, fewer false alarms to an exception are
        allowed, unless somebody asked for so many; then what covers most without any row that
        stays."""
        first, places = distinct_rows(cells.codes, self.kinds)
        times = np.bincount(places)
        kinds = self.kinds[first]
        n_wanted = int((self.kinds == FALSE_ALARM).sum())
        grown = _grown(table, self.kinds, self.wanted.max_rule_length)
        least = least_outliers(self.wanted.min_rows, n_wanted)
        usual = least
        cells = replace(cells, codes=cells.codes[first])
        while True:
            price = max(1, n_wanted - self.n_needed + 1)  # with one of them it is never enough
            chosen = self._shortest(cells, kinds, times, price, least, grown, clock)
            if chosen.is_enough or self.wanted.min_rows is not None or least == 1:
                break
            least = max(1, least // 2)
        if not chosen.is_enough:
            least = usual
            chosen = self._shortest(cells, kinds, times, n_wanted + 1, least, grown, clock)
        return chosen, least

    def _shortest(
        self,
        cells: Cells,
        kinds: NDArray[np.int32],
        times: NDArray[np.int64],
        price: int,
        least: int,
        grown: list[list[Leaf]],
        clock: Clock,
    ) -> Chosen:
        worth = np.array([[-price, 0], [1, 0], [0, 0]], dtype=np.int64)
        problem = Problem(
            cells, kinds, (FALSE_ALARM,), STAYS, worth, times, times, self.n_needed - 1,
            self.wanted.max_rule_length, least,
        )  # fmt: skip
        return shortest_set(
            problem, grown, effort=self.wanted.effort, max_total_length=None, clock=clock,
            seed=self.wanted.seed,
        )  # fmt: skip

    def _that_are_clean(self, schema: Schema, found: list[Rule]) -> list[Rule]:
        """Those that cover no row that stays, and some false alarm that no earlier one does; the
        one with most of them first."""
        covered = RuleSet(tuple(found), self.rules.classes, schema, self.rules.default, ()).covers(
            self.values
        )
        hits = covered[self.kinds == FALSE_ALARM]
        is_clean = ~covered[self.kinds == STAYS].any(axis=0)
        order = sorted(
            np.flatnonzero(is_clean).tolist(), key=lambda k: (-hits[:, k].sum(), str(found[k]))
        )
        kept: list[int] = []
        for k in order:
            if (hits[:, k] & ~hits[:, kept].any(axis=1)).any():
                kept.append(k)
        return [found[k] for k in kept]


def _differ(array: NDArray[np.generic]) -> bool:
    listed = array[: 1 << 12].tolist() if len(array) > 1 << 12 else array.tolist()
    return len({str(v) for v in listed}) > 1 or len({str(v) for v in array.tolist()}) > 1


def _grown(table: Table, kinds: NDArray[np.int32], longest: int) -> list[list[Leaf]]:
    """STAIR's rules for the false alarms without any row that stays."""
    told = np.flatnonzero(kinds != FREE)
    labels = kinds[told]
    if len(np.unique(labels)) < 2:
        return []
    engine = MemoryEngine(table.columns, table.codes[told], labels, 2)
    growth = grow(engine, min_score=GROWN, max_rule_length=longest, positive=FALSE_ALARM)
    leaves = [
        leaf._replace(label=FALSE_ALARM)
        for leaf in leaves_of(growth, engine.unit)
        if not leaf.counts[STAYS] and leaf.counts[FALSE_ALARM]
    ]
    return [leaves] if leaves else []


def advice(found: Excepted) -> str:
    """What to do where exceptions do not cover as much as was wanted."""
    return (
        f"exceptions cover {found.n_covered} of {found.n_false_alarms} false alarms, and others "
        f"look like outliers that stay. Try a lower {option('min_share')}"
    )
