"""What is to be said of values that are not what rules were learned with: counts, which add up
where a table is read in batches, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from stair.errors import StairError
from stair.rules.figures import percent


def unread_in_words(source: str, kind: str, n: int, then: float = 0.0) -> str:
    """So many rows have no value of their kind, and which share had none when the rules were
    learned."""
    as_then = f", as {percent(then)} of the rows did when the rules were learned" if then else ""
    counts = "counts" if n == 1 else "count"
    return f"{_rows(n, source, f'no {kind}')} and {counts} as missing{as_then}"


def _unseen_in_words(source: str, kind: str, n: int) -> str:
    del kind
    return f"{_rows(n, source, 'new')}: never seen when the rules were learned"


def _fractions_in_words(source: str, kind: str, n: int) -> str:
    del kind
    no_whole = "no whole number" if n == 1 else "no whole numbers"
    return f"{_rows(n, source, no_whole)}, as all were when the rules were learned"


def _rows(n: int, what: str, is_no: str) -> str:
    if n == 1:
        return f'1 row has a value of "{what}" that is {is_no}'
    return f'{n:,} rows have values of "{what}" that are {is_no}'


def _about_zones(source: str, kind: str, n: int) -> str:
    """The sentence itself, which counts nothing."""
    del kind, n
    return source


_SAID: Final[Mapping[str, Callable[[str, str, int], str]]] = {
    "unseen": _unseen_in_words,
    "fractions": _fractions_in_words,
    "zone": _about_zones,
}


@dataclass(slots=True)
class Remarks:
    """How many rows have what, in the order in which it was found."""

    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    then: dict[str, float] = field(default_factory=dict)  # the shares of what is unread, as learned
    readable: set[str] = field(default_factory=set)  # columns of which some values could be read
    unreadable: dict[str, StairError] = field(default_factory=dict)  # of which none, in some batch

    def note(self, what: str, source: str, n: int = 0, kind: str = "", then: float = 0.0) -> None:
        """Of one batch: the parts of a time are about the same values."""
        self.counts[what, source, kind] = n
        self.then |= {source: then} if then else {}

    def of(self, what: str) -> dict[str, int]:
        """By the names of columns."""
        return {source: n for (each, source, _), n in self.counts.items() if each == what}

    def merge(self, other: Remarks) -> None:
        """What was found in the rows after these."""
        for key, n in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + n
        self.then |= other.then
        self.readable |= other.readable
        self.unreadable = {**other.unreadable, **self.unreadable}

    def check(self) -> None:
        """After the last batch: refuse a column of which nothing at all could be read."""
        for source, error in self.unreadable.items():
            if source not in self.readable:
                raise error

    @property
    def in_words(self) -> tuple[str, ...]:
        said = [
            unread_in_words(source, kind, n, self.then.get(source, 0.0)) if what == "unread"
            else _SAID[what](source, kind, n)
            for (what, source, kind), n in self.counts.items()
        ]  # fmt: skip
        return tuple(dict.fromkeys(said))
