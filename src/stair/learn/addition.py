"""Rules in addition to rules that are there already, which stay as they are and come first.

What those decide is worth nothing to the search, so this is the problem of distilled rules with a
head start: the shortest rules that bring all of them together above the floor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stair.learn.kinds import kinds_of, kinds_to_learn
from stair.learn.learner import Learner
from stair.learn.method import Learned, most_further, of_all
from stair.rules.agreement import classes_of
from stair.rules.counted import count
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Values


@dataclass(frozen=True, slots=True)
class Addition(Learner):
    """A method that learns beside rules that are there: what it leaves has them in front."""

    given: RuleSet = field(kw_only=True)

    def __call__(
        self,
        values: Values,
        codes: NDArray[np.int32],
        weights: NDArray[np.int64] | None = None,
    ) -> Learned:
        decided = decided_by(self.given, values)
        negative = self.labels.negative
        if negative is None:
            learned = self.of_classes(values, codes, weights, decided)
            rules = self._joined(learned.rules.rules)
            counted = count(rules, values, codes)
            return learned._replace(rules=counted.recounted, score=counted.score)
        found = []
        new: list[Rule] = []
        totals = np.bincount(codes, minlength=len(self.labels.classes))
        for kind in kinds_to_learn(totals, negative):
            own = self.of_kind(kind, codes)
            is_of_kind = np.where(decided < 0, -1, decided == kind).astype(np.int32)
            learned = own.of_classes(values, own.labels.codes, weights, is_of_kind)
            if learned.score <= self.method.floor:
                continue  # as without a head start: a kind below its floor gets no rule
            found.append(learned)
            new += learned.rules.rules
        counted = count(self._joined(new), values, codes)
        kinds = kinds_of(counted, negative, self.method.floor)
        certificate = of_all([one.certificate for one in found if one.certificate is not None])
        further = most_further(one.further for one in found)
        return Learned(counted.recounted, (), certificate, kinds, further, counted.score)

    def _joined(self, new: Iterable[Rule]) -> RuleSet:
        """The rules that are there, and behind them the new ones."""
        rules = (*self.given.rules, *new)
        return replace(self.given, rules=rules, schema=self.schema)


def decided_by(rules: RuleSet, values: Values) -> NDArray[np.int32]:
    """The class of each row that rules decide about, −1 where they leave it open. What an exception
    covers is decided: no further rule changes it."""
    matches = rules.matches(values)
    numbers = matches.numbers
    is_open = (numbers < 0) & ~matches.excepted.any(axis=1)
    return np.where(is_open, -1, classes_of(rules, numbers)).astype(np.int32)
