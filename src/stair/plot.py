"""Pictures with matplotlib (an extra): the map of the partitions, and M along the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError
from stair.local import LocalRuleSet

if TYPE_CHECKING:
    from stair.summary import Summary

# t-SNE takes minutes beyond a few thousand rows; the map is of a sample then, and says so.
MOST_ON_MAP: Final = 3000

# Colours that colour-blind people can tell apart (Okabe and Ito).
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#999999")
OUTLIER: Final = "#D55E00"


def plot_partitions(summary: Summary, path: str | Path | None = None, seed: int = 0) -> Any:
    """The partitions in two dimensions (t-SNE): a colour for each, outliers ringed."""
    rules = summary.rules
    if not isinstance(rules, LocalRuleSet):
        raise StairError('the map needs partitions; learn the rules with method="local"')
    values = summary._values
    rows = _sample(summary.n_rows, seed)
    part: dict[str, NDArray[Any]] = {name: array[rows] for name, array in values.items()}
    places = rules.space.place(part.__getitem__)
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


def plot_stabilizer(summary: Summary, path: str | Path | None = None) -> Any:
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


def _figure(width: float, height: float) -> tuple[Any, Any]:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise StairError("pictures need matplotlib: pip install 'stair[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _shortened(text: str) -> str:
    return text if len(text) <= 44 else text[:43] + "…"


def _saved(figure: Any, path: str | Path | None) -> Any:
    if path is not None:
        try:
            figure.savefig(path, dpi=150)
        except (OSError, ValueError) as error:
            raise StairError(f"cannot write the picture {path}: {error}") from None
    return figure
