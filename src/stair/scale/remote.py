"""Counts from codes that lie on other machines: what clusters of any kind have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stair.engines.counting import Block, Paths, count_block, no_counts, only_root
from stair.rules.columns import Column
from stair.rules.objective import Counts
from stair.scale.draw import CodeSample


@dataclass(frozen=True, slots=True, eq=False)
class Errand:
    """What a worker has to know to count its blocks."""

    paths: Paths
    sizes: tuple[int, ...]
    columns: tuple[int, ...]
    n_classes: int

    def nothing(self) -> Counts:
        return no_counts(self.paths.n_slots, self.sizes, self.n_classes, self.columns)

    def counts(self, blocks: Iterable[Block]) -> Counts:
        counts = self.nothing()
        for block in blocks:
            count_block(block, self.paths, self.sizes, self.columns, counts)
        return counts


class RemoteCounter(ABC):
    """A counter that asks workers, and adds up what they say."""

    def __init__(self, columns: Sequence[Column], sizes: Sequence[int], n_classes: int) -> None:
        self.columns, self.sizes, self._n_classes = columns, sizes, n_classes
        # Counted while the codes are made: that saves a pass.
        self._root = self._ask(only_root(), range(len(columns)))
        self.totals: tuple[int, ...] = tuple(self._root[0, : sizes[0]].sum(axis=0).tolist())

    def count(self, paths: Paths, columns: Sequence[int]) -> Counts:
        if paths.column[0] < 0 and len(columns) == len(self.columns):
            return self._root
        return self._ask(paths, columns)

    def _ask(self, paths: Paths, columns: Sequence[int]) -> Counts:
        return self._sum(Errand(paths, tuple(self.sizes), tuple(columns), self._n_classes))

    @abstractmethod
    def draw(self, most: int, seed: int) -> CodeSample:
        """One pass that draws rows."""

    @abstractmethod
    def _sum(self, asked: Errand) -> Counts:
        """One pass: the counts of all workers together."""
