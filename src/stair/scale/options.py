"""What a person may say about learning from data that does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.data.stream import Stream
from stair.data.weights import UNNAMED, Amounts, Unit, no_amounts, whole_numbers
from stair.engines.large import BINS
from stair.errors import StairError, no_such_column, option
from stair.rules.columns import LISTS, Lists
from stair.scale.raw import Batch, amounts_of

# Measured: what a run takes besides, and what DuckDB's reader holds for a column of Parquet outside
# of its own limit (pages of a megabyte, packed and unpacked).
BESIDES: Final = 350 * 10**6
A_COLUMN: Final = 2 * 10**6
COPIES: Final = 2  # of texts on their way from DuckDB to us: measured, with some to spare
A_VALUE: Final = 200  # bytes for each value of a sample while it is learned from


class Weighing(NamedTuple):
    """The column of weights, and what they are called, if anything."""

    column: str
    name: str | None

    def of(self, batch: Batch) -> NDArray[np.float64]:
        """The weights of some rows as they are."""
        found = amounts_of(batch[self.column])
        if found is None:
            raise no_amounts(self.name)
        return found

    def scale(self, amounts: Amounts) -> Scale:
        """How weights are held, when all of them are looked at."""
        amounts.check(self.name)
        return Scale(self, amounts.exponent)


class Scale(NamedTuple):
    """Weights by a column, as whole numbers of two to the power of an exponent."""

    weighing: Weighing
    exponent: int

    def of(self, batch: Batch) -> NDArray[np.int64]:
        """The weights of some rows; 0 of those that do not count."""
        found: NDArray[np.int64] = whole_numbers(self.weighing.of(batch), self.exponent)
        return found

    @property
    def unit(self) -> Unit:
        return Unit(self.weighing.name or UNNAMED, self.exponent)


@dataclass(frozen=True, slots=True)
class Options:
    """How the table is read and coded."""

    label: str
    positive: object = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    time_parts: bool = True
    time_zone: str | None = None
    time_windows: bool = False
    n_bins: int = BINS
    table: str | None = None
    query: str | None = None
    lists: Lists = LISTS
    negative: object = None
    outlier_kinds: bool = False  # several kinds of outlier, each with rules of its own
    weights: Weighing | None = None  # how much each row counts
    as_matrix: bool = False  # as an estimator reads data: all columns are numbers, labels stay

    def wanted(self, names: Sequence[str], source: str) -> list[str]:
        """The columns to read, in the order of the data."""
        named = () if self.weights is None or self.weights.name is None else (self.weights.column,)
        for name in (self.label, *(self.include or ()), *self.exclude, *self.kinds, *named):
            if name not in names:
                raise no_such_column(name, names, source or "the data")
        left = [n for n in names if n not in self.exclude]
        chosen = [n for n in left if self.include is None or n in self.include or n == self.label]
        return chosen if self.label in chosen else [*chosen, self.label]

    def to_read(self, names: Sequence[str], source: str) -> list[str]:
        """These, and the column of weights."""
        of_weights = [] if self.weights is None else [self.weights.column]
        return list(dict.fromkeys([*self.wanted(names, source), *of_weights]))


def check_room(memory: int, stream: Stream, names: Sequence[str], sample: int = 0) -> None:
    """Refuse what would not stay within the memory that is allowed; a sample is held as well."""
    needed = BESIDES + A_COLUMN * len(names)
    if memory < needed:
        raise StairError(
            f"{len(names):,} columns take about {_gigabytes(needed)} to read, but memory is "
            f"{_gigabytes(memory)}; allow more with {option('memory')}, or leave "
            "columns out"
        )
    texts = stream.lengths(names)
    where = texts.longest
    if memory < needed + COPIES * texts.vector:
        raise StairError(
            f'the texts in "{where}" are so long that they take about '
            f"{_gigabytes(needed + COPIES * texts.vector)} to read, but memory is "
            f"{_gigabytes(memory)}; allow more with {option('memory')}, or leave them "
            f"out with {option('exclude', where)}"
        )
    held = int(min(sample, stream.n_rows()) * texts.a_row) if sample and texts.a_row else 0
    if memory < needed + held:
        raise StairError(
            f'the texts in "{where}" are so long that a sample takes about {_gigabytes(held)}, but '
            f"memory is {_gigabytes(memory)}; take fewer rows with {option('sample')}, allow "
            f"more with {option('memory')}, or leave them out with {option('exclude', where)}"
        )


def rows_that_fit(memory: int, n_columns: int) -> int:
    """The rows of a sample that may be held to learn from."""
    return max(1000, (memory - BESIDES) // 2 // (A_VALUE * n_columns))


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f}GB"
