"""Rules by any method from a table's values, and their score on the rows they were not made for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.engines.memory import MemoryEngine
from stair.errors import StairError, option
from stair.learn.distill import Effort, Further, distill
from stair.learn.grow import Step, grow, leaves_of
from stair.learn.kinds import FEWEST, Kind, learn_kinds
from stair.learn.localize import LOCALITY, MOST_DRAWS, local_rules
from stair.learn.partition import FloorOn
from stair.learn.seeds import seed_of
from stair.learn.shortest import MOST as MOST_TREES
from stair.learn.shortest import shortest_tree
from stair.learn.table import Table, encode, in_order
from stair.learn.validation import Check, check_of, out_of_fold, quick_folds
from stair.progress import Said
from stair.rules.agreement import predicted_classes
from stair.rules.columns import LISTS, Lists
from stair.rules.figures import score_in_words
from stair.rules.rule_set import Leaf, RuleSet, rule_set_of
from stair.rules.schema import Schema, Values
from stair.verdict.labels import Labels

TOO_FEW_KINDS: Final = "no kind of outlier has rows enough to keep some of them aside"
# Refined rules of the quick check are chosen from so many trees in each fold.
QUICK_TREES: Final = 20

METHODS: Final = ("distilled", "stair", "refined", "local", "id3", "cart")

# What is told how it goes. Distilling ends with what there is where the answer is True.
Progress: TypeAlias = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Certificate:
    """How far from the shortest distilled rules may be.

    No choice among the `n_candidates` rules that were looked at last is shorter than `bound` (0
    where that was not solved). Each rule covers at least `min_outliers` outliers.
    """

    bound: int
    n_candidates: int
    min_outliers: int
    relaxed: bool = False  # fewer than usual, because the floor needs it
    cut_short: bool = False  # the search was ended before it was done


def of_all(kinds: Sequence[Certificate]) -> Certificate:
    """The certificate of the rules of several kinds of outlier."""
    return Certificate(
        sum(c.bound for c in kinds) if all(c.bound for c in kinds) else 0,
        sum(c.n_candidates for c in kinds),
        min((c.min_outliers for c in kinds), default=1),
        any(c.relaxed for c in kinds),
        any(c.cut_short for c in kinds),
    )


def most_further(kinds: Iterable[Further | None]) -> Further | None:
    """Of what one more rule would add to each kind of outlier, that which adds most."""
    found = [one for one in kinds if one is not None]
    return max(found, key=lambda one: one.outliers, default=None)


class Learned(NamedTuple):
    """What a method leaves: the rules, the steps that led to them, and a certificate; where there
    are several kinds of outlier, how each of them does; what one more rule would add."""

    rules: RuleSet
    trace: tuple[Step, ...]
    certificate: Certificate | None = None
    kinds: tuple[Kind, ...] = ()
    further: Further | None = None


@dataclass(frozen=True, slots=True)
class Learner:
    """A method with its settings: values and class codes in, rules out."""

    schema: Schema
    method: str
    min_score: float
    max_rule_length: int
    max_total_length: int | None
    labels: Labels
    say: Progress
    n_partitions: int | Literal["auto"] = "auto"
    locality: float = LOCALITY
    floor_on: FloorOn = "routed"
    random_state: Any = 0
    min_outliers: int | None = None
    effort: Effort = "normal"
    time_limit: float | None = None
    lists: Lists = LISTS
    time_windows: bool = False  # whether a clause on a time may have two bounds
    most_trees: int = MOST_TREES  # that refined rules are chosen from
    most_draws: int = MOST_DRAWS  # of partitions to start with
    list_codes: bool = True  # whether numbers such as ports may be named one by one

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that matter for this method, by name."""
        found: dict[str, Any] = {
            "method": self.method,
            "min_score": self.min_score,
            "max_rule_length": self.max_rule_length,
            "max_total_length": self.max_total_length,
            "min_rows_per_value": self.lists.min_rows,
            "max_values": self.lists.max_values,
            "time_windows": self.time_windows,
        }
        if self.method == "local":
            found |= {
                "n_partitions": self.n_partitions,
                "locality": self.locality,
                "floor_on": self.floor_on,
            }
        if self.method == "distilled":
            found |= {
                "min_outliers": self.min_outliers,
                "effort": self.effort,
                "time_limit": self.time_limit,
            }
        return found

    def __call__(
        self,
        values: Values,
        codes: NDArray[np.int32],
        weights: NDArray[np.int64] | None = None,
    ) -> Learned:
        """Weights, which are for distilled rules alone, say how many rows each row stands for."""
        if self.method == "distilled":
            if self.labels.negative is not None:
                return self._kinds(values, codes, self.labels.negative, weights)
            return self.distilled(values, codes, weights)
        if self.method == "local":
            return self._local(values, codes)
        learners = {"stair": self._stair, "refined": self._refined}
        leaves, default, trace = learners.get(self.method, self._tree)(values, codes)
        classes, positive = self.labels.classes, self.labels.positive
        return Learned(rule_set_of(leaves, classes, self.schema, default, positive), trace)

    def _encoded(
        self, values: Values, codes: NDArray[np.int32], *, list_codes: bool = False
    ) -> Table:
        return encode(
            self.schema, values, codes, lists=self.lists, list_codes=list_codes,
            time_windows=self.time_windows,
        )  # fmt: skip

    def distilled(
        self,
        values: Values,
        codes: NDArray[np.int32],
        weights: NDArray[np.int64] | None = None,
    ) -> Learned:
        """The shortest outlier rules; weights say how many rows each row stands for."""
        table = self._encoded(values, codes, list_codes=self.list_codes)
        self.say("learning")
        found = distill(
            table.columns,
            table.codes,
            codes,
            values,
            classes=self.labels.classes,
            schema=self.schema,
            positive=self.labels.positive,
            weights=None if weights is None else weights.astype(np.float64),
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            max_total_length=self.max_total_length,
            min_outliers=self.min_outliers,
            effort=self.effort,
            time_limit=self.time_limit,
            seed=seed_of(self.random_state),
            say=self.say,
        )
        certificate = Certificate(
            found.bound, found.n_candidates, found.min_outliers, found.relaxed, found.cut_short
        )
        return Learned(found.rules, (), certificate, further=found.further)

    def of_kind(self, kind: int, codes: NDArray[np.int32]) -> Learner:
        """The same for one kind of outlier against everything else."""
        classes, negative = self.labels.classes, self.labels.negative
        assert negative is not None
        if self.max_total_length is not None:
            raise StairError(
                f"{option('max_total_length')} is for one kind of outlier; name it with "
                f"{option('positive')}, or leave the limit out"
            )
        is_own = (codes == kind).astype(np.int32)
        return replace(self, labels=Labels(is_own, (classes[negative], classes[kind]), 1, ""))

    def _kinds(
        self,
        values: Values,
        codes: NDArray[np.int32],
        negative: int,
        weights: NDArray[np.int64] | None,
    ) -> Learned:
        """Outlier rules for each kind of outlier, against everything else."""
        learned: list[Learned] = []

        def learn(kind: int) -> RuleSet:
            own = self.of_kind(kind, codes)
            learned.append(own.distilled(values, own.labels.codes, weights))
            return learned[-1].rules

        rules, kinds = learn_kinds(
            learn, values, codes, self.labels.classes, negative, self.min_score, weights
        )
        certificate = of_all([one.certificate for one in learned if one.certificate is not None])
        return Learned(rules, (), certificate, kinds, most_further(o.further for o in learned))

    def _refined(
        self, values: Values, codes: NDArray[np.int32]
    ) -> tuple[list[Leaf], int, tuple[Step, ...]]:
        if self.max_total_length is not None:
            raise StairError("method refined has no limit on the total length; leave it out")
        table = self._encoded(values, codes)
        n_classes = len(self.labels.classes)
        leaves, default, growth = shortest_tree(
            lambda: MemoryEngine(table.columns, table.codes, codes, n_classes),
            table.codes.size,
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            positive=self.labels.positive,
            seed=seed_of(self.random_state),
            most_trees=self.most_trees,
            say=self.say,
        )
        return leaves, default, tuple(growth.steps)

    def _stair(
        self, values: Values, codes: NDArray[np.int32]
    ) -> tuple[list[Leaf], int, tuple[Step, ...]]:
        table = self._encoded(values, codes)
        engine = MemoryEngine(table.columns, table.codes, codes, len(self.labels.classes))
        growth = grow(
            engine,
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            max_total_length=self.max_total_length,
            positive=self.labels.positive,
            on_step=lambda s: self.say(
                f"learning: {s.n_rules} rules, score {score_in_words(s.score, self.min_score, 3)}"
            ),
        )
        return leaves_of(growth, engine.unit), growth.root.label, tuple(growth.steps)

    def _local(self, values: Values, codes: NDArray[np.int32]) -> Learned:
        if self.max_total_length is not None:
            raise StairError("method local has no limit on the total length; leave it out")
        rules, local = local_rules(
            self._encoded(values, codes),
            codes,
            self.labels.classes,
            positive=self.labels.positive,
            min_score=self.min_score,
            max_rule_length=self.max_rule_length,
            n_partitions=self.n_partitions,
            locality=self.locality,
            floor_on=self.floor_on,
            max_rounds=10,
            seed=seed_of(self.random_state),
            most_draws=self.most_draws,
            say=self.say,
        )
        return Learned(rules, tuple(local.steps))

    def _tree(
        self, values: Values, codes: NDArray[np.int32]
    ) -> tuple[list[Leaf], int, tuple[Step, ...]]:
        from stair.learn.trees import cart_leaves, id3_leaves

        self.say(f"learning: {self.method}")
        columns, matrix = in_order(self._encoded(values, codes))
        settings: dict[str, Any] = {
            "positive": self.labels.positive,
            "min_score": self.min_score,
            "random_state": seed_of(self.random_state),
        }
        if self.method == "id3":
            found = id3_leaves(
                matrix, codes, None, columns, start_depth=3, max_depth=None, say=self.say,
                **settings,
            )  # fmt: skip
        else:
            found = cart_leaves(matrix, codes, None, columns, criterion="entropy", **settings)
        leaves, default = found
        n_classes = len(self.labels.classes)  # of which rows kept aside may have the last one
        padded = [leaf._replace(counts=(*leaf.counts, *_zeros(leaf, n_classes))) for leaf in leaves]
        return padded, default, ()


def _zeros(leaf: Leaf, n_classes: int) -> list[float]:
    return [0.0] * (n_classes - len(leaf.counts))


@dataclass(frozen=True, slots=True)
class _Always:
    """Says one thing, whatever happens, and answers nothing: a search that is cut short would check
    other rules than those that are shown."""

    say: Progress
    text: str

    def __call__(self, _: str) -> None:
        self.say(self.text)


def check_rules(
    learn: Learner,
    learned: Learned,
    values: Values,
    codes: NDArray[np.int32],
    validate: int | None,
) -> Check | str:
    """What the same way of learning scores on rows kept aside, or why that was not looked at.

    None asks for a quick check, whose cost stays below that of learning, a number for so many
    folds with all the effort that was asked for.
    """
    if validate == 0:
        return "nobody asked for it"
    labels = learn.labels
    if labels.positive is not None:
        fewest = n_outliers = int((codes == labels.positive).sum())
        fewest = min(fewest, len(codes) - fewest)
    else:
        fewest = int(np.bincount(codes).min())
        n_outliers = int((codes != np.bincount(codes).argmax()).sum())
    folds = validate
    if folds is None:
        is_cheaper = learn.method == "distilled" and learn.effort == "normal"
        folds = quick_folds(n_outliers, cheaper=is_cheaper)
        if folds == 0:
            return f"{n_outliers} outlier{'s' * (n_outliers != 1)} are too few"
        if learned.certificate is not None and learned.certificate.cut_short:
            return "the search was cut short"
        limit = None if learn.time_limit is None else learn.time_limit / (2 * folds)
        learn = replace(
            learn, effort="fast", time_limit=limit, most_trees=QUICK_TREES, most_draws=1,
            n_partitions=len(learned.rules.partitions),  # as many as were best of those tried
        )  # fmt: skip
    elif fewest < folds and labels.negative is None:
        raise StairError(
            f"{option('validate', folds)} needs at least {folds} rows of each class, but one has "
            f"{fewest}"
        )

    if labels.negative is not None:
        largest = int(np.delete(np.bincount(codes), labels.negative).max(initial=0))
        if largest - math.ceil(largest / folds) < FEWEST:
            return TOO_FEW_KINDS
    tell = _Always(learn.say, "")

    def learn_from(train: NDArray[np.intp]) -> Callable[[NDArray[np.intp]], NDArray[np.intp]]:
        rules = replace(learn, say=tell)(values.take(train), codes[train]).rules
        return lambda test: predicted_classes(rules, values.take(test))

    def say(number: int) -> object:
        nonlocal tell
        words = f"checking on rows kept aside: fold {number} of {folds}"
        tell = _Always(learn.say, Said(words, (number - 1) / folds))
        return validate is None and learn.say(tell.text) is True

    found = out_of_fold(learn_from, codes, folds, say)
    if found is None:
        return "it was cut short"
    rules = learned.rules
    own = [rules.classes.index(rule.label) for rule in rules.rules]
    covered = rules.covers(values)
    right = [covered[:, k] & (codes == place) for k, place in enumerate(own)]
    places = [rules.classes.index(kind.label) for kind in learned.kinds]
    predicted = predicted_classes(rules, values)
    return check_of(*found, codes, predicted, labels.positive, right, own, places)
