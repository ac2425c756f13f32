"""A method at work on the values of a table, and its score on rows that it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError, option
from stair.learn.kinds import FEWEST, learn_kinds
from stair.learn.method import Learned, Method, Task, most_further, of_all
from stair.learn.methods import DistilledMethod
from stair.learn.table import encode
from stair.learn.validation import Check, check_of, out_of_fold, quick_folds
from stair.progress import Progress, Words, quiet
from stair.rules.agreement import classes_of, predicted_classes
from stair.rules.match import first_covering
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Schema, Values
from stair.verdict.labels import Verdict

TOO_FEW_KINDS: Final = "no kind of outlier has rows enough to keep some of them aside"


@dataclass(frozen=True, slots=True)
class Learner:
    """A method for some fields and a verdict: values and class codes in, rules out."""

    method: Method
    schema: Schema
    labels: Verdict
    say: Progress = quiet
    list_codes: bool = True  # whether distilled rules may name numbers such as ports one by one
    is_check: bool = False  # whether the rules only show if others hold
    fewest: int = FEWEST  # rows of a kind of outlier that has rules

    def __call__(
        self,
        values: Values,
        codes: NDArray[np.int32],
        weights: NDArray[np.int64] | None = None,
    ) -> Learned:
        """Weights say how many rows each row stands for, or how much it counts."""
        negative = self.labels.negative
        if self.method.has_kinds and negative is not None:
            return self._kinds(values, codes, negative, weights)
        return self.of_classes(values, codes, weights)

    def of_classes(
        self,
        values: Values,
        codes: NDArray[np.int32],
        weights: NDArray[np.int64] | None = None,
        decided: NDArray[np.int32] | None = None,
    ) -> Learned:
        """Rules that tell all classes apart; where there are rules already, `decided` is the class
        that they give each row, −1 where they leave it open, and these are in addition to them."""
        method = self.method
        table = encode(
            self.schema, values, codes, lists=method.lists,
            list_codes=self.list_codes and method.has_kinds, time_windows=method.time_windows,
        )  # fmt: skip
        as_floats = None if weights is None else weights.astype(np.float64)
        task = Task(
            self.labels.classes,
            self.labels.positive,
            as_floats,
            say=self.say,
            is_check=self.is_check,
            decided=decided,
        )
        return method.learn(table, codes, task)

    def changed(self, **settings: Any) -> Learner:
        """The same with other settings of the method."""
        return replace(self, method=replace(self.method, **settings))

    def of_kind(self, kind: int, codes: NDArray[np.int32]) -> Learner:
        """The same for one kind of outlier against everything else."""
        classes, negative = self.labels.classes, self.labels.negative
        assert negative is not None
        if getattr(self.method, "max_total_length", None) is not None:
            raise StairError(
                f"{option('max_total_length')} is for one kind of outlier; name it with "
                f"{option('positive')}, or leave the limit out"
            )
        wish = self.method.wish_of_one
        if wish:
            raise StairError(
                f"{wish} is for one kind of outlier; name it with {option('positive')}, or leave "
                "the wish out"
            )
        is_own = (codes == kind).astype(np.int32)
        return replace(self, labels=Verdict(is_own, (classes[negative], classes[kind]), 1, ""))

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
            learned.append(own.of_classes(values, own.labels.codes, weights))
            return learned[-1].rules

        rules, kinds = learn_kinds(
            learn, values, codes, self.labels.classes, negative, self.method.floor, weights,
            self.fewest,
        )  # fmt: skip
        certificate = of_all([one.certificate for one in learned if one.certificate is not None])
        return Learned(rules, (), certificate, kinds, most_further(o.further for o in learned))


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
    weights: NDArray[np.int64] | None = None,
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
        method = learn.method
        is_cheaper = isinstance(method, DistilledMethod) and method.effort == "normal"
        folds = quick_folds(n_outliers, cheaper=is_cheaper)
        if folds == 0:
            return f"{n_outliers} outlier{'s' * (n_outliers != 1)} are too few"
        if learned.certificate is not None and learned.certificate.cut_short:
            return "the search was cut short"
        learn = replace(learn, method=method.cheaper(learned, folds), is_check=True)
    elif fewest < folds and labels.negative is None:
        raise StairError(
            f"{option('validate', folds)} needs at least {folds} rows of each class, but one has "
            f"{fewest}"
        )

    if labels.negative is not None:
        largest = int(np.delete(np.bincount(codes), labels.negative).max(initial=0))
        if largest - math.ceil(largest / folds) < FEWEST:
            return TOO_FEW_KINDS
    part = (folds - 1) / folds  # of the rows that justify rules, too: a kind may have few
    learn = replace(learn, method=learn.method.for_part(part), fewest=int(FEWEST * part))
    tell = _Always(learn.say, "")

    def learn_from(train: NDArray[np.intp]) -> Callable[[NDArray[np.intp]], NDArray[np.intp]]:
        own = None if weights is None else weights[train]
        rules = replace(learn, say=tell)(values.take(train), codes[train], own).rules
        return lambda test: predicted_classes(rules, values.take(test))

    def say(number: int) -> object:
        nonlocal tell
        words = f"checking on rows kept aside: fold {number} of {folds}"
        tell = _Always(learn.say, Words(words, (number - 1) / folds))
        return validate is None and learn.say(tell.text) is True

    found = out_of_fold(learn_from, codes, folds, say)
    if found is None:
        return "it was cut short"
    rules = learned.rules
    own = [rules.classes.index(rule.label) for rule in rules.rules]
    covered = rules.covers(values)
    right = [covered[:, k] & (codes == place) for k, place in enumerate(own)]
    places = [rules.classes.index(kind.label) for kind in learned.kinds]
    predicted = classes_of(rules, first_covering(covered))
    return check_of(*found, codes, predicted, labels.positive, right, own, places, counts=weights)
