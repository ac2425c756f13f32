"""Where the marks of a picture go: counts in, coordinates of plain SVG out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from stair.evidence.charts import Bar, Bars, Bin, Histogram
from stair.evidence.lettering import Word, shortened_to, side_by_side, width_of
from stair.report.map import ACROSS, DOWN, Map

WIDTH: Final = 320
TOP: Final = 20  # room for the bounds in words
TALL: Final = 84
BOTTOM: Final = 17
MISSING: Final = 54  # room for the bar of missing values, and its gap
# The width of a digit of the small type and of its bold, at most: fonts differ.
DIGIT: Final = 7.4
BOLD: Final = 8.1
GAP: Final = 6  # between two labels
LEAST: Final = 0.8  # a bar of at least one row can be seen

ROW: Final = 24
NAMES: Final = 118  # room for the names of values

CELL: Final = 14


class Label(NamedTuple):
    """A word of a picture and the room that it has at most, from left to right."""

    x: float
    text: str
    anchor: str  # what of the word is at x: start, middle or end
    left: float
    right: float


class Box(NamedTuple):
    """A stretch of an axis."""

    start: float
    length: float


@dataclass(frozen=True, slots=True)
class HistogramMarks:
    """Outliers stand on the base line and inliers hang from it, by one scale of shares."""

    height: float
    base: float
    plot: float  # the width without the missing values
    shade: tuple[Box, ...]
    lines: tuple[float, ...]
    bounds: tuple[Label, ...]  # in words, above the picture
    ends: tuple[Label, ...]  # of the axis, and what it is, below
    outliers: tuple[str, str]  # paths: covered, not covered
    inliers: tuple[str, str]
    missing: Bar | None
    missing_heights: tuple[float, float]
    shade_missing: bool


@dataclass(frozen=True, slots=True)
class BarMark:
    y: int
    name: str
    outliers: float
    inliers: float
    bar: Bar


@dataclass(frozen=True, slots=True)
class BarMarks:
    height: int
    shade: tuple[Box, ...]  # from the top: where neighbouring rows are covered
    rows: tuple[BarMark, ...]


def histogram(chart: Histogram, n_outliers: int, n_inliers: int) -> HistogramMarks:
    missing = chart.missing
    plot = WIDTH - MISSING if missing else WIDTH
    counted: list[Bin | Bar] = [*chart.bins, *([missing] if missing else [])]
    up = [_share(each.outliers, n_outliers) for each in counted]
    down = [_share(each.inliers, n_inliers) for each in counted]
    scale = TALL / ((max(up) + max(down)) or 1.0)
    base = TOP + max(up) * scale
    rises = [_height(share, scale) for share in up]
    falls = [_height(share, scale) for share in down]
    steps = [(each.start * plot, each.stop * plot, each.covered) for each in chart.bins]
    # Where everything is covered there is nothing to tell apart.
    covered = [(a, b) for a, b, inside in steps if inside and not _all_covered(counted)]
    shade = (Box(covered[0][0], max(2.0, covered[-1][1] - covered[0][0])),) if covered else ()
    return HistogramMarks(
        height=TOP + TALL + BOTTOM,
        base=base,
        plot=plot,
        shade=shade,
        lines=tuple(mark.place * plot for mark in chart.bounds),
        bounds=_bounds(chart, plot),
        ends=_ends(chart, plot),
        outliers=(_steps(steps, rises, base, -1, True), _steps(steps, rises, base, -1, False)),
        inliers=(_steps(steps, falls, base, 1, True), _steps(steps, falls, base, 1, False)),
        missing=missing,
        missing_heights=(rises[-1], falls[-1]),
        shade_missing=missing is not None and missing.covered and not _all_covered(counted),
    )


def bars(chart: Bars, n_outliers: int, n_inliers: int) -> BarMarks:
    shares = [(_share(b.outliers, n_outliers), _share(b.inliers, n_inliers)) for b in chart.bars]
    scale = (WIDTH - NAMES - 4) / (max((max(pair) for pair in shares), default=0.0) or 1.0)
    rows = [
        BarMark(k * ROW, _cut(bar.name), _height(out, scale), _height(inside, scale), bar)
        for k, (bar, (out, inside)) in enumerate(zip(chart.bars, shares, strict=True))
    ]
    shade: list[Box] = []
    for row in rows:
        if not row.bar.covered or _all_covered(chart.bars):
            continue
        if shade and sum(shade[-1]) == row.y:
            shade[-1] = Box(shade[-1].start, shade[-1].length + ROW)
        else:
            shade.append(Box(row.y, ROW))
    return BarMarks(len(rows) * ROW, tuple(shade), tuple(rows))


class Tick(NamedTuple):
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Curve:
    """A line over two axes, a floor where there is one, and the point that was chosen."""

    path: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    floor: float | None
    chosen: tuple[float, float] | None
    beyond: str = ""  # from the chosen point to one that was not


CURVE_WIDTH: Final = 340
CURVE_HEIGHT: Final = 190
LEFT, RIGHT, ABOVE, BELOW = 46, 14, 12, 26


def curve(
    points: Iterable[tuple[float, float]],
    chosen: tuple[float, float] | None = None,
    floor: float | None = None,
    up_to: float | None = None,
    beyond: tuple[float, float] | None = None,
) -> Curve | None:
    """A curve through the points in their order; None where there is nothing to draw."""
    line = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if len(line) < 2:
        return None
    marks = [*line, *(point for point in (chosen, beyond) if point)]
    x_ticks = ticks(0.0, max(x for x, _ in marks), 5)
    y_ticks = ticks(0.0, up_to or max(y for _, y in marks), 4)
    right, top = max(x_ticks[-1], max(x for x, _ in marks)), max(y_ticks[-1], up_to or 0.0)

    def across(x: float) -> float:
        return LEFT + x / right * (CURVE_WIDTH - LEFT - RIGHT)

    def down(y: float) -> float:
        return CURVE_HEIGHT - BELOW - y / top * (CURVE_HEIGHT - ABOVE - BELOW)

    path = "M" + "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in line)
    return Curve(
        path,
        tuple(Tick(across(x), _plain(x)) for x in x_ticks),
        tuple(Tick(down(y), _plain(y)) for y in y_ticks),
        None if floor is None else down(floor),
        (across(chosen[0]), down(chosen[1])) if chosen else None,
        "M" + "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in (chosen, beyond))
        if chosen and beyond
        else "",
    )


class Segment(NamedTuple):
    start: float  # in percent
    width: float
    rule: int | None  # None for several rules, or for what is not explained
    text: str
    title: str
    kind: str


def strip(
    explained_by: Sequence[tuple[int, int]],
    n_missed: int,
    n_outliers: int,
    n_mistaken: int = 0,
    most: int = 12,
) -> tuple[Segment, ...]:
    """All outliers as one bar, divided by the rule that explains them."""
    parts: list[tuple[int | None, int, str]] = [
        (rule, n, f"Rule {rule} explains {n:,} outliers") for rule, n in explained_by[:most]
    ]
    rest = explained_by[most:]
    if rest:
        n = sum(n for _, n in rest)
        parts.append((None, n, f"{len(rest):,} more rules explain {n:,} outliers"))
    found, at = [], 0.0
    for k, (rule, n, title) in enumerate(parts):
        width = 100.0 * n / n_outliers
        text = str(rule) if rule else f"{len(rest)} more"
        room = width > (3.0 * len(text) if rule else 25.0)
        found.append(Segment(at, width, rule, text if room else "", title, f"o{k % 2}"))
        at += width
    if n_mistaken:
        width = 100.0 * n_mistaken / n_outliers
        title = f"{n_mistaken:,} outliers are taken for another kind"
        found.append(Segment(at, width, None, "", title, "mistaken"))
        at += width
    if n_missed:
        text = "not explained" if n_missed / n_outliers > 0.4 else ""
        title = f"{n_missed:,} outliers are not explained"
        found.append(Segment(at, 100.0 - at, None, text, title, "missed"))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class MapMarks:
    width: int
    height: int
    rows: tuple[tuple[int, str], ...]  # a partition and its squares
    outliers: str
    centers: tuple[tuple[float, float], ...]


def map_marks(found: Map) -> MapMarks:
    """A square for each cell, by the number of its rows, and a diamond for its outliers."""
    most = max((cell.rows for cell in found.cells), default=1)
    most_outliers = max((cell.outliers for cell in found.cells), default=0) or 1
    squares: dict[int, list[str]] = {}
    diamonds = []
    for cell in sorted(found.cells, key=lambda c: -c.rows):
        x, y = (cell.column + 0.5) * CELL, (cell.row + 0.5) * CELL
        side = 2.4 + (CELL - 2.9) * math.sqrt(cell.rows / most)
        corner = f"M{trimmed(x - side / 2)} {trimmed(y - side / 2)}"
        squares.setdefault(cell.partition, []).append(
            f"{corner}h{trimmed(side)}v{trimmed(side)}h-{trimmed(side)}z"
        )
        if cell.outliers:
            r = 1.8 + 4.2 * math.sqrt(cell.outliers / most_outliers)
            d = trimmed(r)
            diamonds.append(f"M{trimmed(x)} {trimmed(y - r)}l{d} {d}-{d} {d}-{d}-{d}z")
    return MapMarks(
        ACROSS * CELL,
        DOWN * CELL,
        tuple((k, "".join(squares[k])) for k in sorted(squares)),
        "".join(diamonds),
        tuple(
            (_within(x * CELL, ACROSS * CELL), _within(y * CELL, DOWN * CELL))
            for x, y in found.centers
        ),
    )  # fmt: skip


def _within(at: float, size: int) -> float:
    return min(max(at, 10.0), size - 10.0)


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers from `low` to `high` or just above."""
    span = high - low
    if span <= 0:
        return [low, low + 1.0]
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    return [low + k * step for k in range(math.ceil(span / step - 1e-9) + 1)]


def _all_covered(counted: Sequence[Bin | Bar]) -> bool:
    return all(each.covered for each in counted)


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


def _height(share: float, scale: float) -> float:
    return max(LEAST, share * scale) if share else 0.0


def _steps(
    steps: Sequence[tuple[float, float, bool]],
    heights: Sequence[float],
    base: float,
    sign: int,
    covered: bool,
) -> str:
    """The outline of neighbouring bars, of those that the clause covers or of the others.

    Whole numbers of half a unit, each relative to the one before: the shortest way to write it.
    """
    parts: list[str] = []
    x, floor = -1, round(2 * base)
    y = floor
    for (start, stop, inside), height in zip(steps, heights, strict=False):
        if inside is not covered or not height:
            continue
        left, right = round(2 * start), max(round(2 * stop), round(2 * start) + 2)
        if left != x:
            parts.append(f"{f'V{floor}z' if parts else ''}M{left} {floor}")
            y = floor
        top = floor + sign * max(1, round(2 * height))
        parts.append(f"v{top - y}h{right - left}" if top != y else f"h{right - left}")
        x, y = round(2 * stop), top
    return "".join([*parts, f"V{floor}z"]) if parts else ""


def trimmed(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _bounds(chart: Histogram, plot: float) -> tuple[Label, ...]:
    words = [Word(m.place * plot, m.text, width_of(m.text, BOLD)) for m in chart.bounds]
    return tuple(map(_label, side_by_side(words, WIDTH, GAP)))


def _ends(chart: Histogram, plot: float) -> tuple[Label, ...]:
    """The ends of the axis, the name of the bar beside it, and that the axis is bent."""
    low, high = width_of(chart.low, DIGIT), width_of(chart.high, DIGIT)
    words = [Word(low / 2, chart.low, low), Word(plot - high / 2, chart.high, high)]
    if chart.missing:
        width = width_of("missing", DIGIT)
        words.insert(0, Word(WIDTH - width / 2, "missing", width))
    if chart.scale != "linear":
        words.append(Word(plot / 2, "log scale", width_of("log scale", DIGIT)))
    return tuple(_label(word, chart.high) for word in side_by_side(words, WIDTH, GAP))


def _label(word: Word, last: str = "") -> Label:
    """At an edge a word begins or ends there, however narrow its font is."""
    if word.left < 1:
        return Label(word.left, word.text, "start", word.left, word.right)
    if word.right > WIDTH - 1 or word.text == last:
        return Label(word.right, word.text, "end", word.left, word.right)
    return Label(word.at, word.text, "middle", word.left, word.right)


def _cut(name: str) -> str:
    return shortened_to(name, NAMES - 8, DIGIT)


def _plain(value: float) -> str:
    if abs(value) >= 10_000:
        text = f"{value:.3g}"
        power = float(text)
        if power >= 1e15:
            return text
        for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
            if power >= size:
                return f"{power / size:g}{letter}"
    return f"{value:g}"
