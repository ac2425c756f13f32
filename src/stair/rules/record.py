"""What is kept of a rule beside what it says: by which name it goes, where it stands in its life,
whose it is, and what its counts were counted on."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Status: TypeAlias = Literal["candidate", "accepted", "retired"]

STATUSES: Final = ("candidate", "accepted", "retired")
"""Learned and not judged yet; in use by a person's word; kept for its history, covering nothing."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The rows that a rule's counts are of: where they were from, and how many of each class."""

    source: str
    totals: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """The life of one rule. Days are ISO text; `until` is the last day on which it is meant.

    A rule is known by its `id`, which stays when its bounds are changed, when it moves in the file
    and when other rules come and go.
    """

    id: str
    status: Status = "candidate"
    owner: str = ""
    note: str = ""
    since: str = ""
    until: str = ""
    evidence: Evidence | None = None

    def has_expired(self, on: dt.date) -> bool:
        """Whether it is past its last day. It goes on covering: labels depend on no clock."""
        return bool(self.until) and dt.date.fromisoformat(self.until) < on
