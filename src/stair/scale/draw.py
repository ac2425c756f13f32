"""Rows drawn at random from all of them, some kinds of rows more readily than others.

Each row has a random number that is made from its place in the data and the seed. Of each stratum
the rows with the smallest numbers stay, so samples of parts can be put together, and engines that
read the same rows in the same order draw the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import appended
from stair.data.frame import Array
from stair.data.lots import lots_of
from stair.data.weights import Amounts
from stair.engines.counting import Block
from stair.scale.coding import Coder
from stair.scale.options import Weighing
from stair.scale.profile import Profile, alike, kind_of
from stair.scale.raw import Batch, all_missing, as_frame_column

Columns = dict[str, Array]


class Tier(IntEnum):
    """What a stratum is drawn for."""

    WANTED = 0  # rows that rules are looked for: half of the sample, if there are so many
    COVERED = 1  # others that a rule covers: a quarter
    REST = 2  # all others have the room that is left


SHARES: Final = {Tier.WANTED: 2, Tier.COVERED: 4}  # of the sample, one in so many


@dataclass(slots=True, eq=False)
class Sample:
    """At most so many rows, each with its stratum."""

    most: int
    seed: int
    tiers: NDArray[np.intp]  # of each stratum
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    keys: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    strata: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))
    columns: Columns = field(default_factory=dict)
    # Of all rows, drawn or not: the kind of each column that has a value, and what it was.
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.counts):
            self.counts = np.zeros(len(self.tiers), np.int64)

    def fresh(self) -> Sample:
        return Sample(self.most, self.seed, self.tiers)

    @property
    def types(self) -> dict[str, str]:
        """What columns were before they became plain, as in a Frame."""
        return {name: was for name, (_, was) in self.kinds.items()}

    @property
    def is_whole(self) -> bool:
        """Whether every row is in it."""
        return len(self.keys) == int(self.counts.sum())

    @property
    def weights(self) -> NDArray[np.int64]:
        """How many rows each row stands for: whole numbers."""
        drawn = np.bincount(self.strata, minlength=len(self.counts))
        stands_for = np.rint(self.counts / np.maximum(drawn, 1)).astype(np.int64)
        return np.maximum(stands_for, 1)[self.strata]

    def add(
        self, batch: Batch, rows: NDArray[np.intp], strata: NDArray[np.intp], first: int
    ) -> None:
        """These rows of a part whose first row has this number in the data."""
        for name, raw in batch.items():
            if not all_missing(raw):  # else its type says nothing
                self._is(name, (kind_of(raw), batch.types.get(name, "")))
        self.counts = self.counts + np.bincount(strata, minlength=len(self.counts))
        keys = lots_of(self.seed, rows.astype(np.uint64) + np.uint64(first))
        room = keys <= self._limits()[strata]
        rows, strata, keys = rows[room], strata[room], keys[room]
        both = np.append(self.strata, strata)
        kept = self._kept(np.append(self.keys, keys), both)
        new = kept[kept >= len(self.keys)] - len(self.keys)
        chosen = {name: as_frame_column(raw, rows[new]) for name, raw in batch.items()}
        self._join(kept[kept < len(self.keys)], keys[new], strata[new], chosen)

    def likely_limits(self) -> NDArray[np.uint64]:
        """Of each stratum a number that the rows which stay do not exceed, but for a chance in a
        thousand million; few others are below it. The counts are those of all rows."""
        quotas = self._quotas().astype(np.float64)
        share = (quotas + 6 * np.sqrt(quotas) + 36) / np.maximum(self.counts, 1)
        limits = np.full(len(share), np.iinfo(np.uint64).max, np.uint64)
        some = share < 1
        limits[some] = np.minimum(share[some] * 2.0**64, 2.0**64 - 4096).astype(np.uint64)
        return limits

    def fill(
        self,
        batch: Batch,
        keys: NDArray[np.uint64],
        strata: NDArray[np.intp],
        kinds: dict[str, tuple[str, str]],
    ) -> None:
        """All rows that may stay, in the order of the data, when all rows are counted; `kinds` are
        of the columns of all rows."""
        kept = self._kept(keys, strata)
        self.kinds = kinds
        chosen = {name: as_frame_column(raw, kept) for name, raw in batch.items()}
        self._join(np.empty(0, np.intp), keys[kept], strata[kept], chosen)

    def merge(self, other: Sample) -> None:
        for name, kind in other.kinds.items():
            self._is(name, kind)
        self.counts = self.counts + other.counts
        kept = self._kept(np.append(self.keys, other.keys), np.append(self.strata, other.strata))
        new = kept[kept >= len(self.keys)] - len(self.keys)
        if other.columns:
            chosen = {name: array[new] for name, array in other.columns.items()}
            old = kept[kept < len(self.keys)]
            self._join(old, other.keys[new], other.strata[new], chosen)

    def _is(self, name: str, kind: tuple[str, str]) -> None:
        self.kinds[name] = alike(name, self.kinds.get(name, kind), kind)

    def _join(
        self,
        old: NDArray[np.intp],
        keys: NDArray[np.uint64],
        strata: NDArray[np.intp],
        columns: Columns,
    ) -> None:
        mine = self.columns or {name: array[:0] for name, array in columns.items()}
        self.columns = {name: appended(mine[name][old], array) for name, array in columns.items()}
        self.keys = np.append(self.keys[old], keys)
        self.strata = np.append(self.strata[old], strata)

    def _quotas(self) -> NDArray[np.int64]:
        """The most rows of each stratum. They only fall as rows come, so that nothing is missed
        that a later quota would have kept."""
        quotas = np.zeros(len(self.counts), np.int64)
        left = self.most
        for tier in Tier:
            here = self.tiers == tier
            room = min(left, self.most // SHARES[tier]) if tier in SHARES else left
            quotas[here] = _shared(self.counts[here], room)
            left -= int(quotas[here].sum())
        return quotas

    def _limits(self) -> NDArray[np.uint64]:
        """The largest number that a row may have to stay in its stratum."""
        limits = np.full(len(self.counts), np.iinfo(np.uint64).max, np.uint64)
        drawn = np.bincount(self.strata, minlength=len(self.counts))
        full = np.flatnonzero((drawn > 0) & (drawn >= self._quotas()))
        largest = np.zeros(len(self.counts), np.uint64)
        np.maximum.at(largest, self.strata, self.keys)
        limits[full] = largest[full]
        return limits

    def _kept(self, keys: NDArray[np.uint64], strata: NDArray[np.intp]) -> NDArray[np.intp]:
        """Which rows stay, in the order of the data."""
        order = np.lexsort((keys, strata))
        sizes = np.bincount(strata, minlength=len(self.counts))
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.sort(order[rank < self._quotas()[strata[order]]])


def _shared(counts: NDArray[np.int64], room: int) -> NDArray[np.int64]:
    """The room, shared as evenly as the counts allow; what is over goes to the first ones. All of
    it is taken where there are so many rows, or the room of a later tier would grow again as rows
    come, and rows would be missed."""
    level, left = room, room
    for place, count in enumerate(sorted(counts.tolist())):
        level = left // (len(counts) - place)
        if count > level:
            break
        left -= count
        level = room
    shares = np.minimum(counts, level)
    more = np.flatnonzero(counts > shares)
    shares[more[: room - int(shares.sum())]] += 1
    return shares


@dataclass(frozen=True, slots=True)
class Folds:
    """Rows in folds by their places in the data and the seed, as rows are drawn."""

    number: int = 1
    seed: int = 0

    def of(self, rows: NDArray[np.intp], first: int) -> NDArray[np.int64]:
        """The fold of rows of a part whose first row has this number in the data."""
        if self.number == 1:
            return np.zeros(len(rows), np.int64)
        return self.of_drawn(lots_of(self.seed, rows.astype(np.uint64) + np.uint64(first)))

    def of_drawn(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The fold of rows of a sample with that seed."""
        return (keys % np.uint64(self.number)).astype(np.int64)


ONE_FOLD: Final = Folds()


@dataclass(slots=True, eq=False)
class CodeSample:
    """At most so many rows of codes, each drawn as readily as the other, in the order of the data;
    parts may come in any order."""

    most: int
    seed: int
    places: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    block: Block | None = None

    def add(self, block: Block, first: int) -> None:
        """Some rows; `first` is the number of the first of them in the data."""
        self.take(np.arange(first, first + len(block.labels), dtype=np.uint64), block)

    def take(self, places: NDArray[np.uint64], block: Block) -> None:
        """Some rows, by their numbers in the data."""
        self._join(places, block)

    def merge(self, other: CodeSample) -> None:
        if other.block is not None:
            self._join(other.places, other.block)

    def _join(self, places: NDArray[np.uint64], block: Block) -> None:
        if self.block is not None:
            places = np.append(self.places, places)
            both = zip(self.block.codes, block.codes, strict=True)
            weights = None
            if self.block.weights is not None and block.weights is not None:
                weights = np.append(self.block.weights, block.weights)
            block = Block(
                [np.concatenate(pair) for pair in both],
                np.append(self.block.labels, block.labels),
                weights,
            )
        drawn = np.argsort(lots_of(self.seed, places), kind="stable")[: self.most]
        kept = drawn[np.argsort(places[drawn])]
        self.places = places[kept]
        weights = None if block.weights is None else block.weights[kept]
        self.block = Block([codes[kept] for codes in block.codes], block.labels[kept], weights)


@dataclass(slots=True, eq=False)
class Look:
    """The first pass: what the label is like in all rows, and what they weigh."""

    label: str
    profile: Profile = field(default_factory=Profile)
    weighing: Weighing | None = None
    amounts: Amounts = field(default_factory=Amounts)

    def fresh(self) -> Look:
        return Look(self.label, weighing=self.weighing)

    def add(self, batch: Batch, _: int) -> None:
        self.profile.add(batch[self.label], self.label, batch.types.get(self.label, ""))
        if self.weighing is not None:
            self.amounts.add(self.weighing.of(batch))

    def merge(self, other: Look) -> None:
        self.profile.merge(other.profile, self.label)
        self.amounts.merge(other.amounts)


@dataclass(slots=True, eq=False)
class Draw:
    """A pass that draws rows with a label, each as readily as the other."""

    coder: Coder
    sample: Sample

    @classmethod
    def of(cls, coder: Coder, most: int, seed: int) -> Draw:
        return cls(coder, Sample(most, seed, np.array([Tier.REST], dtype=np.intp)))

    def fresh(self) -> Draw:
        return replace(self, sample=self.sample.fresh())

    def add(self, batch: Batch, first: int) -> None:
        rows = np.flatnonzero(self.coder.classes_of(batch) >= 0)
        self.sample.add(batch, rows, np.zeros(len(rows), np.intp), first)

    def merge(self, other: Draw) -> None:
        self.sample.merge(other.sample)
