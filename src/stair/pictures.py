"""The pictures of a summary as its methods; they need matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from stair.rules.rule_set import Rule
    from stair.summary import Summary


class Pictures:
    """Each gives a figure, which a notebook shows, and saves it where a path is given."""

    def plot_partitions(self, path: str | Path | None = None) -> Any:
        """A map of the partitions in two dimensions; needs matplotlib."""
        from stair.plot import plot_partitions

        return plot_partitions(cast("Summary", self), path)

    def plot_stabilizer(self, path: str | Path | None = None) -> Any:
        """The stabilizer M against the number of rules; needs matplotlib."""
        from stair.plot import plot_stabilizer

        return plot_stabilizer(cast("Summary", self), path)

    def plot_coverage(self, path: str | Path | None = None) -> Any:
        """The rows that each outlier rule covers, right and wrong; needs matplotlib."""
        from stair.plot import plot_coverage

        return plot_coverage(cast("Summary", self), path)

    def plot_clause(self, rule: int | Rule, clause: int = 1, path: str | Path | None = None) -> Any:
        """How a clause's attribute is distributed, outliers over inliers; needs matplotlib.

        Rules and clauses are counted from 1.
        """
        from stair.plot import plot_clause

        return plot_clause(cast("Summary", self), rule, clause, path)

    def plot_frontier(
        self,
        path: str | Path | None = None,
        points: Sequence[tuple[float, float]] | None = None,
    ) -> Any:
        """The score against total length: of the steps of learning, of the outlier rules taken one
        by one where there are no steps, or of points that are given."""
        from stair.plot import plot_frontier

        return plot_frontier(cast("Summary", self), path, points)
