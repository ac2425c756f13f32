"""The seam between the learner and the rows.

An engine holds the rows and answers two questions about a group of them: what each column would
gain by its best cut, and what the two sides of a cut are. Row numbers never leave it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stair.engines.search import Gains, Split
from stair.rules.clauses import Clause
from stair.rules.columns import Column


class Group(NamedTuple):
    """The rows of one rule: an engine's own handle, and how many of each class (as weights)."""

    handle: Any
    counts: tuple[int, ...]


class Engine(Protocol):
    """What the learner asks of any engine."""

    n_classes: int
    attributes: NDArray[np.int64]  # of each column: several columns may tell of one attribute
    once: NDArray[np.bool_]  # columns that a rule cuts once at most, so that it has one bound there
    order: NDArray[np.int64]  # columns by name: of equally good ones the first is taken
    known: Sequence[Column]  # what is known of each: its sides, what it costs, its group
    unit: int  # counts are whole numbers of 2**unit

    def root(self) -> Group:
        """All rows."""

    def find(self, group: Group, columns: NDArray[np.int64]) -> Gains:
        """The best cut of each of these columns for the rows of a group."""

    def divide(
        self, group: Group, split: Split, columns: NDArray[np.int64]
    ) -> tuple[tuple[Clause, Group], tuple[Clause, Group]]:
        """Both sides of a split: the clause that leads there, and the rows.

        Afterwards the group itself is gone, and its sides answer only for these columns.
        """
