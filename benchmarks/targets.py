"""What the figures should be, and whether they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.contenders import LIGHTGBM, SKLEARN, STAIR
from benchmarks.data import COVER, GENERATED, SMALL
from benchmarks.memory import largest

FIT_LIMITS = ((COVER, SKLEARN, 0.35), (COVER, LIGHTGBM, 1.0), (GENERATED, SKLEARN, 0.2))
SMALL_LIMIT = 1.0
MEMORY_LIMITS = ((COVER, 2.5), (GENERATED, 2.5))
BUSY = 0.2  # CPUs used by other programs, from which on LightGBM's times say little


class Target(NamedTuple):
    """A figure and the most that it should be; None where it was not measured."""

    what: str
    measured: float | None
    limit: float
    is_flattered: bool = False

    def __str__(self) -> str:
        if self.measured is None:
            return f"----  {self.what}: not measured (target: at most {self.limit:g})"
        verdict, note = ("pass" if self.measured <= self.limit else "FAIL"), ""
        if self.is_flattered:
            note = "; other programs were busy, so the true ratio is likely higher"
            verdict = "????" if verdict == "pass" else verdict
        return f"{verdict}  {self.what}: {self.measured:.3f} (target: at most {self.limit:g}){note}"


def is_busy(row: dict[str, Any]) -> bool:
    """Whether other programs took much of the machine while this set was fitted."""
    cpus: float | None = row["cpus_used_by_others"]
    return cpus is not None and cpus > BUSY


def targets(results: dict[str, Any]) -> Iterator[Target]:
    """Every target, beside what a run found."""
    times = {row["data"]: row for row in results["fit"]}
    for data, rival, limit in FIT_LIMITS:
        row = times.get(data)
        ratio = row["ratio"].get(rival) if row else None
        flattered = row is not None and rival == LIGHTGBM and is_busy(row)
        yield Target(f"{data}: fit time, ratio to {rival}", ratio, limit, flattered)
    for data in SMALL:
        ratio = times[data]["ratio"][SKLEARN] if data in times else None
        yield Target(f"{data}: fit time, ratio to {SKLEARN}", ratio, SMALL_LIMIT)
    peaks = largest(results["memory"])
    for data, limit in MEMORY_LIMITS:
        yield Target(f"{data}: peak memory, in units of X", peaks.get((data, STAIR)), limit)
