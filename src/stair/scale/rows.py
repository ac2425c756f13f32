"""All rows of a table, wherever they are: gone over once for each thing that is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar

from stair.scale.raw import Batch


class Gathering(Protocol):
    """What is found out about rows, part by part. Parts can be put together in their order."""

    def fresh(self) -> Self:
        """The same question, before the first row."""

    def add(self, batch: Batch, first: int, /) -> None:
        """Some rows; `first` is the number of the first of them in the data."""

    def merge(self, other: Self) -> None:
        """What was found out about the rows after these."""


G = TypeVar("G", bound=Gathering)


class Rows(Protocol):
    """A table that can be gone over. The first pass must not ask for the numbers of rows: where
    parts are read side by side, it tells how many rows each of them has."""

    @property
    def names(self) -> Sequence[str]:
        """Of all columns."""

    @property
    def source(self) -> str:
        """What to call the table."""

    @property
    def notes(self) -> tuple[str, ...]:
        """About how the columns are read."""

    def gather(self, asked: G, columns: Sequence[str], what: str) -> G:
        """One pass over these columns; `what` says to a person what it is for."""
