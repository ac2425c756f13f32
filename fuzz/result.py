"""What came out of a case: comparisons counted by check and target, and what was found."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

_NUMBERS = re.compile(r"\d+(\.\d+)?")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|“[^”]*”")


@dataclass(slots=True)
class Finding:
    """A check that failed: in which check, for which target, and what was expected."""

    check: str
    target: str
    kind: str  # what tells this fault from another one
    story: str
    expected: Any = None
    got: Any = None

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.check, self.target, self.kind)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class Result:
    """Tallies are of "check / target: outcome"."""

    tallies: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    digest: str | None = None

    def count(self, check: str, target: str, outcome: str, n: int = 1) -> None:
        self.tallies[f"{check} / {target}: {outcome}"] += n

    def found(self, finding: Finding) -> None:
        self.count(finding.check, finding.target, "found")
        if all(known.key != finding.key for known in self.findings):
            self.findings.append(finding)


def sentence_kind(text: str) -> str:
    """A refusal without its names and numbers."""
    return _NUMBERS.sub("#", _QUOTED.sub("…", text)).replace("\n", " ")[:80]


def origin(error: BaseException) -> str:
    """The type of an error and the innermost place of the library that it went through."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if "/stair/" in frame.filename or frame.filename.startswith("<exported"):
            place = f" in {Path(frame.filename).name}:{frame.name}"
    return f"{type(error).__name__}{place}"


def last_lines(error: BaseException, most: int = 400) -> str:
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:most]
