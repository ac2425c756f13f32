"""Pictures with matplotlib (an extra): rules and their coverage, a clause's attribute, the price
of a score in length, M along the way, and the map of the partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.errors import StairError, option
from stair.evidence.charts import Bar, Histogram
from stair.evidence.findings import Findings
from stair.evidence.lettering import Word, side_by_side, width_of
from stair.export.text import percent, score_in_words
from stair.report.remarks import beyond, on_the_frontier, taken
from stair.rules.rule_set import Rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# t-SNE takes minutes beyond a few thousand rows; the map is of a sample then, and says so.
MOST_ON_MAP: Final = 3000

# Colours that colour-blind people can tell apart (Okabe and Ito).
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#999999")
OUTLIER: Final = "#D55E00"
INLIER: Final = COLOURS[0]
FAINT: Final = 0.35  # what a clause does not cover

WIDE: Final = 6.0  # inches, of the picture of a clause
MISSING: Final = 1.08  # where its bar of missing values stands, beside an axis from 0 to 1
# The width of a digit of the small type, bold, and the gap between two words, in points.
DIGIT: Final = 5.7
GAP: Final = 5.0

# Rules that a picture has room for.
MOST_RULES: Final = 25


def plot_partitions(summary: Findings, path: str | Path | None = None, seed: int = 0) -> Figure:
    """The partitions in two dimensions (t-SNE): a colour for each, outliers ringed."""
    rules = summary.rules
    if not rules.routing:
        raise StairError(
            f"the map needs partitions; learn the rules with {option('method', 'local')}"
        )
    values = summary._values
    rows = _sample(summary.n_rows, seed)
    part: dict[str, Array] = {name: array[rows] for name, array in values.items()}
    places = rules.routing.space.place(part.__getitem__)
    routed = rules.route(part)
    flat = _flat(places, seed)
    figure, axes = _figure(7.0, 5.2)
    for number, partition in enumerate(rules.partitions):
        inside = routed == number
        if not inside.any():
            continue
        axes.scatter(
            flat[inside, 0], flat[inside, 1], s=9, linewidths=0,
            color=COLOURS[number % len(COLOURS)],
            marker="o^sDvP*"[(number // len(COLOURS)) % 7],
            label=f"{number + 1}: {_shortened(partition.description)}",
        )  # fmt: skip
    is_outlier = summary.is_outlier()[rows]
    axes.scatter(
        flat[is_outlier, 0], flat[is_outlier, 1], s=22, facecolors="none", edgecolors=OUTLIER,
        linewidths=0.8, label="outlier by the labels",
    )  # fmt: skip
    sampled = f", {len(rows):,} of {summary.n_rows:,} rows" if len(rows) < summary.n_rows else ""
    axes.set_title(f"{summary.source or 'data'}: {len(rules.partitions)} partitions{sampled}")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=7, frameon=False)
    return _saved(figure, path)


def plot_stabilizer(summary: Findings, path: str | Path | None = None) -> Figure:
    """The stabilizer M against the number of rules (the paper's Q6), and the score beside it."""
    if not summary.trace:
        raise StairError(f'method "{summary.method}" leaves no trace of M')
    n_rules = [step.n_rules for step in summary.trace]
    figure, axes = _figure(6.0, 4.0)
    axes.step(n_rules, [s.stabilizer for s in summary.trace], where="post", color=COLOURS[0])
    axes.set_xlabel("number of rules")
    axes.set_ylabel("stabilizer M", color=COLOURS[0])
    other = axes.twinx()
    other.plot(n_rules, [s.score for s in summary.trace], color=OUTLIER, linewidth=1.0)
    other.axhline(summary.min_score, color=OUTLIER, linewidth=0.6, linestyle=":")
    other.set_ylabel(summary.score_name, color=OUTLIER)
    other.set_ylim(0.0, 1.02)
    axes.set_title(f"{summary.source or 'data'}: M grows as rules are divided")
    return _saved(figure, path)


def plot_coverage(summary: Findings, path: str | Path | None = None) -> Figure:
    """The rows that each rule covers, right and wrong: outlier rules, the largest first."""
    positive = summary.rules.positive
    numbered = [
        (number, each)
        for number, each in enumerate(summary.evidence, start=1)
        if positive is None or each.rule.label == positive
    ]
    if not numbered:
        raise StairError("there is no rule of outliers to draw")
    numbered.sort(key=lambda pair: -pair[1].hits)
    shown = numbered[:MOST_RULES]
    figure, axes = _figure(8.0, 1.2 + 0.34 * len(shown))
    places = range(len(shown))
    hits = [each.hits for _, each in shown]
    wrong = [each.rows - each.hits for _, each in shown]
    right_name = "outliers" if positive is not None else "rows of its class"
    wrong_name = "inliers" if positive is not None else "other rows"
    axes.barh(places, hits, color=OUTLIER, height=0.62, label=right_name)
    axes.barh(places, wrong, left=hits, color=INLIER, height=0.62, label=wrong_name)
    names = [f"{number}  {_shortened(_plain(each.rule.in_words()), 60)}" for number, each in shown]
    axes.set_yticks(list(places), names, fontsize=8)
    for place, (_, each) in zip(places, shown, strict=True):
        text = f" {percent(each.precision)} right"
        axes.text(each.rows, place, text, va="center", fontsize=7, color="#555555")
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("rows")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(  # where no bar is
        loc="upper right", bbox_to_anchor=(1.0, -0.1), ncols=2, fontsize=8, frameon=False
    )
    more = f" (the first {len(shown)} of {len(numbered)})" if len(shown) < len(numbered) else ""
    axes.set_title(f"{_plain(summary.source or 'data')}: rows by rule{more}", fontsize=10)
    return _saved(figure, path)


def plot_clause(
    summary: Findings, rule: int | Rule, clause: int = 1, path: str | Path | None = None
) -> Figure:
    """A clause's attribute: outliers above, inliers below, what the clause covers in full colour.

    Rules and clauses are counted from 1.
    """
    rules = summary.rules
    asked = rules.rules[rules.place_of(rule)]
    if not 1 <= clause <= len(asked.clauses):
        raise StairError(f"the rule has clauses 1 to {len(asked.clauses)}, but not {clause}")
    wanted = asked.clauses[clause - 1]
    label = asked.label if rules.positive is None else rules.positive
    group = rules.classes.index(label)
    found = summary._distributions()
    chart = found.chart(wanted, group)
    n_outliers = max(1, int(found.totals[group]))
    n_inliers = max(1, int(found.totals.sum()) - int(found.totals[group]))
    own = "outliers" if rules.positive is not None else f"rows of {label}"
    figure, axes = _figure(WIDE, 3.4)
    if isinstance(chart, Histogram):
        _draw_histogram(axes, chart, n_outliers, n_inliers)
    else:
        for place, bar in enumerate(chart.bars):
            _pair(axes, float(place), 0.7, bar, n_outliers, n_inliers)
        names = [_plain(_shortened(bar.name, 24)) for bar in chart.bars]
        axes.set_xticks(range(len(names)), names, fontsize=8, rotation=30, ha="right")
    axes.axhline(0.0, color="#333333", linewidth=0.6)
    axes.yaxis.set_major_formatter(lambda share, _: f"{abs(share):.0%}")
    axes.set_ylabel(
        _plain(f"inliers   |   {own}" if rules.positive is not None else f"others   |   {own}")
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(_plain(_shortened(str(wanted), 70)), fontsize=10, pad=18)
    return _saved(figure, path)


def plot_frontier(
    summary: Findings,
    path: str | Path | None = None,
    points: Sequence[tuple[float, float]] | None = None,
) -> Figure:
    """The score against total length: the steps of learning, or where there are none the outlier
    rules taken one by one; or (length, score) points that are given.

    The floor is dotted, the summary's own rules are marked, and what one more rule would add is
    dashed.
    """
    chosen: tuple[float, float] | None = (summary.rules.total_length, summary.score)
    more, which, of = None, "all", ""
    floor: float | None = summary.min_score
    if points is None:
        points = [(step.total_length, step.score) for step in summary.trace]
        if not points and summary.frontier:
            chosen = on_the_frontier(summary)
            points = taken(summary.frontier, chosen)
            more = beyond(summary.frontier, chosen)
            which = "all" if summary.score_name == "accuracy" else "outlier"
            if summary.kinds:  # each kind has a floor of its own
                of, floor = " of all kinds together", None
        if not points:
            raise StairError("there is no rule to draw; give points=[(length, score), …]")
    elif not len(points):
        raise StairError("points is empty; expected pairs of a total length and a score")
    figure, axes = _figure(6.0, 4.0)
    line = sorted((float(length), float(score)) for length, score in points)
    axes.plot(*zip(*line, strict=True), color=INLIER, marker=".", markersize=4, linewidth=1.2)
    if floor is not None:
        axes.axhline(floor, color=OUTLIER, linewidth=0.8, linestyle=":")
    if chosen is not None and more is not None:
        axes.plot(*zip(chosen, more, strict=True), color=INLIER, linewidth=1.0, linestyle="--")
    if chosen is not None:
        axes.plot(*chosen, "o", color=OUTLIER, markersize=7)
        score = score_in_words(chosen[1], summary.min_score, 3)
        text = f"length {chosen[0]:g}, {summary.score_name} {score}"
        axes.annotate(  # in the corner, where no curve goes
            text, (0.98, 0.05), xycoords="axes fraction", ha="right", color=OUTLIER, fontsize=8
        )
    axes.set_xlabel(f"total length of {which} rules")
    axes.set_ylabel(f"{summary.score_name}{of}")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(left=0.0)
    axes.locator_params(axis="x", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(f"{_plain(summary.source or 'data')}: what length buys", fontsize=10)
    return _saved(figure, path)


def _draw_histogram(axes: Axes, chart: Histogram, n_outliers: int, n_inliers: int) -> None:
    """Bins with the bounds in words above them, and the ends of the axis below."""
    for each in chart.bins:
        middle, width = (each.start + each.stop) / 2, each.stop - each.start
        alpha = 1.0 if each.covered else FAINT
        axes.bar(middle, each.outliers / n_outliers, width, color=OUTLIER, alpha=alpha)
        axes.bar(middle, -each.inliers / n_inliers, width, color=INLIER, alpha=alpha)
    if chart.missing:
        _pair(axes, MISSING, 0.05, chart.missing, n_outliers, n_inliers)
    right = MISSING + 0.06 if chart.missing else 1.02
    axes.set_xlim(-0.02, right)
    axes.set_xticks([])
    for mark in chart.bounds:
        axes.axvline(mark.place, color="#333333", linewidth=0.8, linestyle="--")

    # Words are laid out in points along the axis, of which a sixth of the figure is no part.
    room = WIDE * 72 * 5 / 6
    scale = room / (right + 0.02)

    def word(place: float, text: str) -> Word:
        return Word((place + 0.02) * scale, _plain(text), width_of(text, DIGIT))

    def write(words: Sequence[Word], height: float, offset: int, weight: str) -> None:
        for each in side_by_side(words, room, GAP):
            axes.annotate(
                each.text, (each.at / room, height), xycoords="axes fraction", fontsize=8,
                xytext=(0, offset), textcoords="offset points", ha="center",
                va="bottom" if offset > 0 else "top", weight=weight, annotation_clip=False,
            )  # fmt: skip

    write([word(mark.place, mark.text) for mark in chart.bounds], 1.0, 3, "bold")
    ends = [word(0.0, chart.low), word(1.0, chart.high)]
    if chart.missing:
        ends.insert(0, word(MISSING, "missing"))
    if chart.scale != "linear":
        ends.append(word(0.5, "log scale"))
    write(ends, 0.0, -4, "normal")


def _pair(
    axes: Axes, place: float, width: float, bar: Bar, n_outliers: int, n_inliers: int
) -> None:
    alpha = 1.0 if bar.covered else FAINT
    axes.bar(place, bar.outliers / n_outliers, width, color=OUTLIER, alpha=alpha)
    axes.bar(place, -bar.inliers / n_inliers, width, color=INLIER, alpha=alpha)


def _plain(text: str) -> str:
    """Text as it is: a dollar would start mathematics, and no font has control characters."""
    shown = text.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "·" for c in shown).replace("$", r"\$")


def _sample(n_rows: int, seed: int) -> NDArray[np.intp]:
    if n_rows <= MOST_ON_MAP:
        return np.arange(n_rows)
    chosen = np.random.RandomState(seed).choice(n_rows, MOST_ON_MAP, replace=False)
    return np.sort(chosen)


def _flat(places: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    from sklearn.manifold import TSNE

    if len(places) < 3:
        return np.column_stack([np.arange(len(places)), np.zeros(len(places))]).astype(float)
    perplexity = min(30.0, (len(places) - 1) / 3)
    model = TSNE(2, perplexity=perplexity, init="random", random_state=seed)
    flat: NDArray[np.float64] = model.fit_transform(places)
    return flat


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = _picture()(width, height)
    return figure, figure.subplots()


@cache
def _picture() -> Callable[[float, float], Figure]:
    """A figure that a notebook shows by itself, without pyplot."""
    try:
        from matplotlib import figure
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise StairError("pictures need matplotlib: pip install 'stair[plot]'") from None

    class Picture(figure.Figure):
        def __init__(self, width: float, height: float) -> None:
            super().__init__((width, height), layout="constrained")
            FigureCanvasAgg(self)

        def _repr_png_(self) -> bytes:
            content = BytesIO()
            self.savefig(content, format="png", dpi=110)
            return content.getvalue()

    return Picture


def _shortened(text: str, most: int = 44) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _saved(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise StairError(f"cannot write the picture {path}: {error}") from None
    return figure
