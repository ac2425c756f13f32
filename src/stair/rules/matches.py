"""What rules and their exceptions cover of some rows, and what that comes to.

An exception takes its rows from the rules that give another label than the default. Of the rules
that are left to a row the first decides, and the default where none is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stair.rules.match import first_covering


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """What covers what, by clauses alone, and which of the rules give way to exceptions."""

    covered: NDArray[np.bool_]  # rows × rules
    excepted: NDArray[np.bool_]  # rows × exceptions
    gives_way: NDArray[np.bool_]  # for each rule

    def take(self, rows: NDArray[np.intp]) -> Matches:
        """Some of the rows."""
        return replace(self, covered=self.covered[rows], excepted=self.excepted[rows])

    @property
    def applies(self) -> NDArray[np.bool_]:
        """Which rules are left to each row when exceptions have taken theirs (rows × rules)."""
        if not self.excepted.shape[1]:
            return self.covered
        taken = self.excepted.any(axis=1, keepdims=True) & self.gives_way
        found: NDArray[np.bool_] = self.covered & ~taken
        return found

    @property
    def numbers(self) -> NDArray[np.intp]:
        """The number of the rule that decides about each row, −1 where none does."""
        return first_covering(self.applies)

    @property
    def would_be(self) -> NDArray[np.intp]:
        """The number of the rule that would decide about each row if there were no exceptions."""
        return first_covering(self.covered)

    @property
    def lifted(self) -> NDArray[np.bool_]:
        """The rows whose label is another for each exception that covers them (rows ×
        exceptions)."""
        number = self.would_be
        is_other = np.append(self.gives_way, False)[number]  # −1 is none
        found: NDArray[np.bool_] = self.excepted & is_other[:, None]
        return found
