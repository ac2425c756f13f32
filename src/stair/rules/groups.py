"""Rows by what covers them: those of one class that the same rules cover are one group.

That is all there is to know of rows to score rules, in any order and choice, and it is small,
however many rows there are and wherever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.rules.match import first_covering
from stair.rules.matches import Matches

# Keys are counted where there are few possible ones, and sorted where there are more.
FEW_KEYS: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Groups of rows: of one class, and covered by the same rules, less what exceptions take from
    these; `lifted` are the exceptions that change the label of a group."""

    classes: NDArray[np.int32]
    covered: NDArray[np.bool_]  # groups × rules
    counts: NDArray[np.int64]  # rows
    lifted: NDArray[np.bool_] | None = None  # groups × exceptions, where there are some

    def of_rule(self, number: int, n_classes: int) -> NDArray[np.int64]:
        """The rows of each class that a rule covers."""
        return self.by_class(self.covered[:, number], n_classes)

    def by_class(self, groups: NDArray[np.bool_], n_classes: int) -> NDArray[np.int64]:
        """The rows of each class in these groups."""
        found = np.zeros(n_classes, np.int64)
        np.add.at(found, self.classes[groups], self.counts[groups])
        return found

    def by_class_and_rule(self, groups: NDArray[np.bool_], n_classes: int) -> NDArray[np.int64]:
        """The rows of each class in some groups for each rule (groups × rules)."""
        found = [self.by_class(some, n_classes) for some in groups.T]
        return np.array(found, dtype=np.int64).reshape(-1, n_classes)

    def totals(self, n_classes: int) -> NDArray[np.int64]:
        """The rows of each class."""
        return self.by_class(np.ones(len(self.classes), np.bool_), n_classes)

    def with_rules(self, numbers: Sequence[int]) -> Groups:
        """As if there were these rules alone, in this order."""
        return replace(self, covered=self.covered[:, list(numbers)], lifted=None)

    def first(self) -> NDArray[np.intp]:
        """The number of the first rule that covers each group, or −1."""
        return first_covering(self.covered)

    def given(self, labels: Sequence[int], default: int) -> NDArray[np.intp]:
        """The class of each group by rules with these labels; the first that covers it decides."""
        given: NDArray[np.intp] = np.array([*labels, default], dtype=np.intp)[self.first()]
        return given


def groups_of(
    covered: NDArray[np.bool_],
    codes: NDArray[np.int32],
    weights: NDArray[np.int64] | None = None,
    lifted: NDArray[np.bool_] | None = None,
) -> Groups:
    """The groups of rows that are here: which rules cover each of them, its class, and how many
    rows it stands for."""
    keys = codes.astype(np.int64)
    for matrix in (covered,) if lifted is None else (covered, lifted):
        for byte in np.packbits(matrix, axis=1).T:
            keys = _ranks(keys * 256 + byte)
    n_groups = int(keys.max(initial=-1)) + 1
    one = np.empty(n_groups, dtype=np.intp)
    one[keys] = np.arange(len(keys))
    counts = np.zeros(n_groups, dtype=np.int64)
    if weights is None:
        counts += np.bincount(keys, minlength=n_groups)
    else:
        np.add.at(counts, keys, weights)
    is_there = counts > 0  # a class without rows
    here = one[is_there]
    return Groups(
        codes[here], covered[here], counts[is_there], None if lifted is None else lifted[here]
    )


def groups_of_matches(
    matches: Matches, codes: NDArray[np.int32], weights: NDArray[np.int64] | None = None
) -> Groups:
    """The groups of rows by what rules and exceptions come to."""
    lifted = matches.lifted if matches.excepted.shape[1] else None
    return groups_of(matches.applies, codes, weights, lifted)


def groups_apart(counts: NDArray[np.int64], totals: NDArray[np.int64]) -> Groups:
    """The groups of rules of which no two cover a row, from their counts (rules × classes)."""
    n_rules, n_classes = counts.shape
    left = totals - counts.sum(axis=0)
    return Groups(
        np.tile(np.arange(n_classes, dtype=np.int32), n_rules + 1),
        np.repeat(np.eye(n_rules + 1, n_rules, dtype=np.bool_), n_classes, axis=0),
        np.concatenate([counts.reshape(-1), left]),
    )


def _ranks(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each key among the different ones."""
    if not len(keys) or int(keys.max()) > max(FEW_KEYS, 2 * len(keys)):
        return np.unique(keys, return_inverse=True)[1].astype(np.int64)
    is_there = np.bincount(keys) > 0
    ranks: NDArray[np.int64] = (np.cumsum(is_there) - 1)[keys]
    return ranks
