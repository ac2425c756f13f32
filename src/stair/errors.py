"""What goes wrong, said in one sentence: what we got, what we expected, what to do."""

from __future__ import annotations


class StairError(ValueError):
    """Bad input. The message is for the person who gave it."""


class FloorNotReached(UserWarning):
    """The rules are the best there are, but their score is not above the floor."""
