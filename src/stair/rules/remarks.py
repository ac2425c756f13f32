"""What is to be said of values that are not what rules were learned with: counts, which add up
where a table is read in batches, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from stair.errors import StairError


def unread_in_words(source: str, kind: str, n: int) -> str:
    """So many rows have no value of their kind."""
    return f"{_rows(n, source, f'no {kind}')} and {'counts' if n == 1 else 'count'} as missing"


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
    "unread": unread_in_words,
    "unseen": _unseen_in_words,
    "fractions": _fractions_in_words,
    "zone": _about_zones,
}


@dataclass(slots=True)
class Remarks:
    """How many rows have what, in the order in which it was found."""

    counts: dict[tuple[str, str, str], int] = field(default_factory=dict)
    readable: set[str] = field(default_factory=set)  # columns of which some values could be read
    unreadable: dict[str, StairError] = field(default_factory=dict)  # of which none, in some batch

    def note(self, what: str, source: str, n: int = 0, kind: str = "") -> None:
        """Of one batch: the parts of a time are about the same values."""
        self.counts[what, source, kind] = n

    def of(self, what: str) -> dict[str, int]:
        """By the names of columns."""
        return {source: n for (each, source, _), n in self.counts.items() if each == what}

    def merge(self, other: Remarks) -> None:
        """What was found in the rows after these."""
        for key, n in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + n
        self.readable |= other.readable
        self.unreadable = {**other.unreadable, **self.unreadable}

    def check(self) -> None:
        """After the last batch: refuse a column of which nothing at all could be read."""
        for source, error in self.unreadable.items():
            if source not in self.readable:
                raise error

    @property
    def in_words(self) -> tuple[str, ...]:
        said = [_SAID[what](source, kind, n) for (what, source, kind), n in self.counts.items()]
        return tuple(dict.fromkeys(said))
