"""The methods: distilled rules, STAIR with and without refinement, L-STAIR, and the baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from stair.engines.memory import MemoryEngine
from stair.errors import StairError, check_choice, check_count, check_number, option
from stair.learn.distill import EFFORTS, Effort, distill
from stair.learn.grow import Step, grow, leaves_of
from stair.learn.known import as_wished
from stair.learn.localize import LOCALITY, MOST_DRAWS, local_rules
from stair.learn.method import Certificate, Learned, Method, Task
from stair.learn.partition import FloorOn
from stair.learn.seeds import RandomState, seed_of
from stair.learn.shortest import MOST as MOST_TREES
from stair.learn.shortest import shortest_tree
from stair.learn.table import Table, in_order
from stair.learn.trees import cart_leaves, id3_leaves
from stair.learn.wishes import USUAL_FLOOR, Wishes, check_floors, column_wishes_of
from stair.progress import quiet
from stair.rules.figures import score_in_words
from stair.rules.objective import score_of
from stair.rules.rule_set import Leaf, rule_set_of

# Refined rules of the quick check are chosen from so many trees in each fold.
QUICK_TREES: Final = 20


@dataclass(eq=False)
class DistilledMethod(Method):
    """The shortest outlier rules above the floor, which may overlap."""

    name: ClassVar[str] = "distilled"
    has_kinds: ClassVar[bool] = True

    min_score: float | None = None
    max_rule_length: int = 10
    min_outliers: int | None = None
    effort: Effort = "normal"
    time_limit: float | None = None
    max_total_length: int | None = None
    beta: float = field(default=1.0, kw_only=True)
    min_precision: float | None = field(default=None, kw_only=True)
    min_rule_precision: float | None = field(default=None, kw_only=True)
    min_recall: float | None = field(default=None, kw_only=True)
    max_alerts: float | int | None = field(default=None, kw_only=True)
    max_rules: int | None = field(default=None, kw_only=True)
    one_sided: bool = field(default=False, kw_only=True)

    def check(self) -> None:
        super().check()
        _check_lengths(self.max_rule_length, self.max_total_length)
        check_floors(self.get_params())
        if self.min_outliers is not None:
            check_count("min_outliers", self.min_outliers, 1)
        check_choice("effort", self.effort, EFFORTS)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, 0)

    @property
    def floor(self) -> float:
        wished = self.wishes.score
        return 0.0 if wished is None else wished

    @property
    def wishes(self) -> Wishes:
        """The floor on F1 is there where nobody says otherwise how much is to be explained, and how
        many false alarms that may cost."""
        score = self.min_score
        is_bounded = self.max_alerts is not None or any(
            each is not None for each in (self.min_precision, self.min_rule_precision)
        )
        budgets = (self.min_recall, self.max_alerts, self.max_total_length, self.max_rules)
        is_told = any(each is not None for each in budgets)
        if score is None and not (is_bounded and is_told):
            score = USUAL_FLOOR
        elif score == 0 and (is_bounded or is_told):
            score = None  # there is no score that is not above it
        return Wishes(
            score, self.beta, self.min_precision, self.min_rule_precision, self.min_recall,
            self.max_alerts, self.max_total_length, self.max_rules,
        )  # fmt: skip

    @property
    def wish_of_one(self) -> str:
        names = ("min_precision", "min_rule_precision", "min_recall", "max_alerts", "max_rules")
        given = [name for name in names if getattr(self, name) is not None]
        if not given and self.beta != 1:
            given = ["beta"]
        return option(given[0], getattr(self, given[0])) if given else ""

    def wished(self, table: Table) -> Table:
        known = column_wishes_of(self.column_wishes)
        if not known and not self.one_sided:
            return table
        return as_wished(table, known, one_sided=bool(self.one_sided))

    def learn(self, table: Table, codes: NDArray[np.int32], task: Task) -> Learned:
        task.say("learning")
        wish = self.wish_of_one
        if task.decided is not None and wish:
            raise StairError(
                f"{wish} is about all rules together, and here rules are added to others; leave it "
                "out"
            )
        if task.positive is None and wish:
            raise StairError(
                f"{wish} is about one kind of outlier, but there are several "
                f"classes; name it with {option('positive')}"
            )
        table = self.wished(table)
        found = distill(
            table.columns,
            table.codes,
            codes,
            table.values,
            classes=task.classes,
            schema=table.schema,
            positive=task.positive,
            weights=task.weights,
            repeated=task.is_repeated,
            min_score=self.floor,
            max_rule_length=self.max_rule_length,
            max_total_length=self.max_total_length,
            min_outliers=self.min_outliers,
            wishes=self.wishes,
            effort=self.effort,
            time_limit=self.time_limit,
            seed=seed_of(self.random_state),
            decided=task.decided,
            say=task.say,
        )
        certificate = Certificate(
            found.bound, found.n_candidates, found.min_outliers, found.relaxed, found.cut_short,
            found.most,
        )  # fmt: skip
        return Learned(
            found.rules, (), certificate, further=found.further, score=found.score,
            outcomes=found.outcomes,
        )  # fmt: skip

    def for_part(self, share: float) -> Self:
        """A number of alerts is that of all rows."""
        most = self.max_alerts
        if not isinstance(most, int | np.integer):
            return self
        return replace(self, max_alerts=max(1, round(int(most) * share)))

    def cheaper(self, learned: Learned, folds: int) -> Self:
        del learned
        limit = None if self.time_limit is None else self.time_limit / (2 * folds)
        return replace(self, effort="fast", time_limit=limit)


@dataclass(eq=False)
class StairMethod(Method):
    """STAIR's disjoint rules; refined, of several trees that are pruned, the shortest."""

    max_rule_length: int = 10
    max_total_length: int | None = None
    refine: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "refined" if self.refine else "stair"

    def check(self) -> None:
        super().check()
        _check_lengths(self.max_rule_length, self.max_total_length)
        if self.refine and self.max_total_length is not None:
            raise StairError(
                "refined rules are the shortest above the floor; "
                f"{option('max_total_length')} does not go with them"
            )

    def learn(self, table: Table, codes: NDArray[np.int32], task: Task) -> Learned:
        table = self.wished(table)
        _check_direction(self, task)

        def engine() -> MemoryEngine:
            n_classes = len(task.classes)
            return MemoryEngine(table.columns, table.codes, codes, n_classes, task.weights)

        if self.refine:
            leaves, default, growth = shortest_tree(
                engine,
                table.codes.size,
                min_score=self.floor,
                max_rule_length=self.max_rule_length,
                positive=task.positive,
                seed=seed_of(self.random_state),
                most_trees=QUICK_TREES if task.is_check else MOST_TREES,
                say=task.say,
            )
            return _of_leaves(leaves, default, table, task, tuple(growth.steps))

        def tell(step: Step) -> None:
            score = score_in_words(step.score, self.floor, 3)
            task.say(f"learning: {step.n_rules} rules, score {score}")

        rows = engine()
        growth = grow(
            rows,
            min_score=self.floor,
            max_rule_length=self.max_rule_length,
            max_total_length=self.max_total_length,
            positive=task.positive,
            on_step=None if task.say is quiet else tell,
        )
        leaves, default = leaves_of(growth, rows.unit), growth.root.label
        return _of_leaves(leaves, default, table, task, tuple(growth.steps))


@dataclass(eq=False)
class LocalMethod(Method):
    """L-STAIR: partitions of the data, and rules for each."""

    name: ClassVar[str] = "local"

    max_rule_length: int = 10
    n_partitions: int | Literal["auto"] = "auto"
    locality: float = LOCALITY
    floor_on: FloorOn = "routed"
    max_rounds: int = 10

    def check(self) -> None:
        super().check()
        check_count("max_rule_length", self.max_rule_length, 1)
        check_count("max_rounds", self.max_rounds, 1)
        if self.n_partitions != "auto":
            check_count("n_partitions", self.n_partitions, 1)
        check_number("locality", self.locality, 0, 1e9)
        check_choice("floor_on", self.floor_on, ("routed", "assigned"))

    def learn(self, table: Table, codes: NDArray[np.int32], task: Task) -> Learned:
        table = self.wished(table)
        _check_direction(self, task)
        rules, local = local_rules(
            table,
            codes,
            task.classes,
            positive=task.positive,
            weights=task.weights,
            min_score=self.floor,
            max_rule_length=self.max_rule_length,
            n_partitions=self.n_partitions,
            locality=self.locality,
            floor_on=self.floor_on,
            max_rounds=self.max_rounds,
            seed=seed_of(self.random_state),
            most_draws=1 if task.is_check else MOST_DRAWS,
            say=task.say,
        )
        score = local.routed if self.floor_on == "routed" else local.assigned
        return Learned(rules, tuple(local.steps), score=score, local=local)

    def cheaper(self, learned: Learned, folds: int) -> Self:
        """With as many partitions as were best of those tried."""
        del folds
        return replace(self, n_partitions=len(learned.rules.partitions))


@dataclass(eq=False)
class ID3Method(Method):
    """Entropy trees of growing depth, up to the floor."""

    name: ClassVar[str] = "id3"

    start_depth: int = 3
    max_depth: int | None = None
    random_state: RandomState = field(default=0, kw_only=True)

    def check(self) -> None:
        super().check()
        _check_never(self)
        check_count("start_depth", self.start_depth, 1)
        if self.max_depth is not None:
            check_count("max_depth", self.max_depth, 1)
            if self.max_depth < self.start_depth:
                raise StairError(
                    f"max_depth={self.max_depth} is less than start_depth={self.start_depth}; "
                    "expected at least as much"
                )

    def learn(self, table: Table, codes: NDArray[np.int32], task: Task) -> Learned:
        columns, matrix = in_order(self.wished(table))
        leaves, default = id3_leaves(
            matrix, codes, task.weights, columns, positive=task.positive,
            min_score=self.floor, start_depth=self.start_depth, max_depth=self.max_depth,
            random_state=self.random_state, say=task.say,
        )  # fmt: skip
        return _of_leaves(leaves, default, table, task)


@dataclass(eq=False)
class CARTMethod(Method):
    """A full tree, pruned as far as the floor allows."""

    name: ClassVar[str] = "cart"

    criterion: str = "entropy"
    random_state: RandomState = field(default=0, kw_only=True)

    def check(self) -> None:
        super().check()
        _check_never(self)
        check_choice("criterion", self.criterion, ("entropy", "gini"))

    def learn(self, table: Table, codes: NDArray[np.int32], task: Task) -> Learned:
        task.say("learning: cart")
        columns, matrix = in_order(self.wished(table))
        leaves, default = cart_leaves(
            matrix, codes, task.weights, columns, positive=task.positive,
            min_score=self.floor, criterion=self.criterion, random_state=self.random_state,
        )  # fmt: skip
        return _of_leaves(leaves, default, table, task)


def _check_lengths(a_rule: int, all_rules: int | None) -> None:
    check_count("max_rule_length", a_rule, 1)
    if all_rules is not None:
        check_count("max_total_length", all_rules, 0)


def _check_direction(method: Method, task: Task) -> None:
    """Refuse a direction where no class is the outlier."""
    wishes = column_wishes_of(method.column_wishes)
    found = next((name for name, wish in wishes.items() if wish.direction is not None), None)
    if found is not None and task.positive is None:
        said = option("column_wishes", {found: {"direction": wishes[found].direction}})
        raise StairError(
            f"{said} says what makes an outlier, but there are several classes; name it with "
            f"{option('positive')}"
        )


def _check_never(method: Method) -> None:
    """The paper's baselines choose their cuts in their own way."""
    for name, wish in column_wishes_of(method.column_wishes).items():
        what = next((each for each in wish.given if each != "never"), None)
        if what is not None:
            said = option("column_wishes", {name: {what: wish.given[what]}})
            raise StairError(
                f"{said} does not go with the method {method.name}, which chooses cuts in its own "
                f"way; take {option('method', 'distilled')} or {option('method', 'stair')}"
            )


def _of_leaves(
    leaves: list[Leaf], default: int, table: Table, task: Task, trace: tuple[Step, ...] = ()
) -> Learned:
    n_classes = len(task.classes)  # of which rows kept aside may have the last one
    padded = [
        leaf
        if len(leaf.counts) == n_classes
        else leaf._replace(counts=(*leaf.counts, *[0.0] * (n_classes - len(leaf.counts))))
        for leaf in leaves
    ]
    rules = rule_set_of(padded, task.classes, table.schema, default, task.positive)
    groups = ((leaf.label, leaf.counts) for leaf in padded)
    return Learned(rules, trace, score=score_of(groups, rules.totals, task.positive))


_MAKERS: Final[Mapping[str, Callable[..., Method]]] = {
    "distilled": DistilledMethod,
    "stair": StairMethod,
    "refined": lambda **settings: StairMethod(refine=True, **settings),
    "local": LocalMethod,
    "id3": ID3Method,
    "cart": CARTMethod,
}
METHODS: Final = tuple(_MAKERS)


def settings_of(name: str) -> tuple[str, ...]:
    """The settings that a method has, by its name."""
    if name not in _MAKERS:
        raise StairError(f"no method {name!r}; methods are {', '.join(METHODS)}")
    return tuple(_MAKERS[name]().get_params())


def method_of(method: str | Method, /, **settings: Any) -> Method:
    """A method by its name with some settings, the seed 0 where none is given; or one that is a
    value already, with some of them changed. The settings are checked."""
    if isinstance(method, Method):
        made = replace(method, **settings)
    else:
        own = settings_of(method)
        wrong = next((name for name in settings if name not in own), None)
        if wrong is not None:
            raise StairError(f"the method {method} has no {option(wrong)}; leave it out")
        made = _MAKERS[method](**{"random_state": 0, **settings})
    made.check()
    return made
