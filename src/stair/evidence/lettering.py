"""Words along a line of a picture: none touches another, and none leaves the picture.

How wide a word is depends on a font that nobody knows here, so it is measured from above.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final, NamedTuple

_BROAD: Final = frozenset("MWmw@%&…—")


class Word(NamedTuple):
    """A word, where its middle is or should be, and how wide it is."""

    at: float
    text: str
    width: float

    @property
    def left(self) -> float:
        return self.at - self.width / 2

    @property
    def right(self) -> float:
        return self.at + self.width / 2


def width_of(text: str, digit: float) -> float:
    """How wide a text is at most where a digit is as wide as this."""
    return digit * sum(map(_letters, text))


def _letters(character: str) -> float:
    """How many digits are as wide as a character."""
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 2.0
    if character in _BROAD:
        return 1.6
    return 1.2 if character.isupper() else 1.0


def shortened_to(text: str, room: float, digit: float) -> str:
    """The text, cut where it is wider than the room for it."""
    if width_of(text, digit) <= room:
        return text
    while text and width_of(text + "…", digit) > room:
        text = text[:-1]
    return text + "…"


def side_by_side(words: Sequence[Word], room: float, gap: float) -> tuple[Word, ...]:
    """Words within a room, each as near as may be to where it should be, with gaps between them.
    Those that there is no room for are left out, the last ones first."""
    kept: list[Word] = []
    taken = 0.0
    for word in words:
        needed = word.width + (gap if kept else 0.0)
        if word.text and taken + needed <= room:
            kept.append(word)
            taken += needed
    kept.sort(key=lambda word: word.at)
    # Pushed to the right and then back into the room, and the other way round: between the two,
    # neighbours share the way that they have to go.
    mirrored = [word._replace(at=room - word.at) for word in reversed(kept)]
    there = _pushed(kept, room, gap)
    back = [room - at for at in reversed(_pushed(mirrored, room, gap))]
    places = [(a + b) / 2 for a, b in zip(there, back, strict=True)]
    return tuple(word._replace(at=at) for word, at in zip(kept, places, strict=True))


def _pushed(words: Sequence[Word], room: float, gap: float) -> list[float]:
    """The middles of words in their order, each pushed right as far as the one before needs."""
    places: list[float] = []
    edge = 0.0
    for word in words:
        left = max(word.left, edge)
        places.append(left + word.width / 2)
        edge = left + word.width + gap
    edge = room
    for k in reversed(range(len(words))):
        half = words[k].width / 2
        places[k] = min(places[k], edge - half)
        edge = places[k] - half - gap
    return places
