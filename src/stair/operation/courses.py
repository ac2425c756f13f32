"""How the figures of a rule went from period to period: counts in, coordinates of plain SVG out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from stair.operation.statistics import Share
from stair.report.draw import trimmed
from stair.rules.figures import fine_percent

WIDTH: Final = 320
TOP: Final = 8
TALL: Final = 76
BOTTOM: Final = 18
LEFT: Final = 42  # room for the shares on the axis
RIGHT: Final = 8
# A share of almost nothing has room above it all the same.
LEAST_MOST: Final = 0.001


@dataclass(frozen=True, slots=True)
class Dot:
    """A share of one period, with what is said of it."""

    x: float
    y: float
    high: float
    low: float
    title: str


@dataclass(frozen=True, slots=True)
class Course:
    """A share over time: a dot for each period with rows, the line between neighbours, the interval
    around it, what it was when the rule was learned, and since when it is another."""

    height: int
    line: str
    band: str
    dots: tuple[Dot, ...]
    then: float | None
    change: float | None  # where the period begins in which it changed
    ends: tuple[str, str]  # the first and the last period
    top: str  # the share at the top of the axis
    said: str  # for who cannot see it


def course(
    shares: Sequence[Share | None],
    names: Sequence[str],
    then: Share | None,
    since: str,
    what: str,
    *,
    whole: bool,
) -> Course:
    """`whole` says that the axis goes up to all."""
    known = [share for share in shares if share is not None and share.rows]
    tops = [1.0] if whole else [
        *(share.interval[1] for share in known),
        *([] if then is None or not then.rows else [then.value]), LEAST_MOST,
    ]  # fmt: skip
    top = max(tops)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))

    def across(place: int) -> float:
        return LEFT + (place + 0.5) * step

    def up(share: float) -> float:
        return TOP + TALL * (1 - share / top)

    dots = [
        None
        if share is None or not share.rows
        else Dot(across(k), up(share.value), up(share.interval[1]), up(share.interval[0]),
                 f"{name}: {what} {fine_percent(share.value)} ({share.hits:,} of {share.rows:,})")
        for k, (share, name) in enumerate(zip(shares, names, strict=True))
    ]  # fmt: skip
    runs = [[d for d in run if d is not None]
            for is_there, run in groupby(dots, lambda d: d is not None) if is_there]  # fmt: skip
    change = None if since not in names else LEFT + names.index(since) * step
    return Course(
        height=TOP + TALL + BOTTOM,
        line="".join(_line((dot.x, dot.y) for dot in run) for run in runs),
        band="".join(_band(run, step) for run in runs),
        dots=tuple(dot for dot in dots if dot is not None),
        then=None if then is None or not then.rows else up(then.value),
        change=change,
        ends=(names[0], names[-1]) if names else ("", ""),
        top=fine_percent(top),
        said="; ".join(dot.title for dot in dots if dot is not None) or f"{what}: no rows",
    )


def _line(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{trimmed(x)} {trimmed(y)}" for x, y in points)


def _band(run: Sequence[Dot], step: float) -> str:
    """The interval of neighbours; that of a single period is a bar."""
    if len(run) == 1:
        (dot,) = run
        half = min(step / 3, 8.0)
        corners = [(dot.x - half, dot.high), (dot.x + half, dot.high), (dot.x + half, dot.low),
                   (dot.x - half, dot.low)]  # fmt: skip
    else:
        corners = [*((d.x, d.high) for d in run), *((d.x, d.low) for d in reversed(run))]
    return _line(corners) + "Z"
