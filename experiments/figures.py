"""Figures, each drawn from the CSV file beside it and from nothing else."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stair import StairError

# Colours that colour-blind people can tell apart (Okabe and Ito), one for each method.
STYLES: dict[str, tuple[str, str]] = {
    "ID3": ("#999999", "s"),
    "CART": ("#000000", "^"),
    "STAIR": ("#0072B2", "o"),
    "L-STAIR": ("#E69F00", "D"),
    "refined": ("#56B4E9", "v"),
    "L-STAIR routed": ("#CC79A7", "P"),
    "distilled": ("#009E73", "*"),
}
PARTITIONS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442", "#999999")
OUTLIER = "#D55E00"
COLUMNS = 3
TICKS = (0, 5, 10, 30, 100, 300, 1000, 3000, 10000, 30000)


def curves(path: Path) -> None:
    """Q2: F1 against total length, a line for each method."""
    rows = [row for row in _read(path) if row["score"]]
    figure, panels = _panels(_data(rows))
    for name, axes in panels:
        for method, points in _lines(rows, name, "length", "score"):
            colour, marker = STYLES[method]
            axes.plot(*points, color=colour, marker=marker, markersize=4, label=method)
        axes.set_xlabel("total length")
        axes.set_ylabel("F1")
        axes.set_ylim(0.0, 1.02)
    _save(figure, path, vector=True)


def sweeps(path: Path, value: str) -> None:
    """Q3: total length against L_m or the floor; hollow where the floor was not reached."""
    rows = [row for row in _read(path) if row["length"]]
    figure, panels = _panels(_data(rows))
    for name, axes in panels:
        for method, points in _lines(rows, name, value, "length"):
            colour, marker = STYLES[method]
            axes.plot(*points, color=colour, linewidth=1.2, label=method)
            mine = [r for r in rows if r["data"] == name and r["method"] == method]
            for reached, fill in (("yes", colour), ("no", "none")):
                some = [r for r in mine if r["above the floor"] == reached]
                axes.scatter(
                    [float(r[value]) for r in some], [float(r["length"]) for r in some],
                    marker=marker, s=18, facecolors=fill, edgecolors=colour, linewidths=0.9,
                )  # fmt: skip
        axes.set_yscale("symlog", linthresh=10)
        axes.set_yticks(TICKS, [f"{tick:,}" for tick in TICKS])
        axes.set_ylim(0, 1.3 * max(float(r["length"]) for r in rows if r["data"] == name) + 1)
        axes.set_xlabel(value)
        axes.set_ylabel("total length")
    _save(figure, path, vector=True)


def maps(path: Path) -> None:
    """Q5: rows in two dimensions, a colour for each partition, outliers ringed."""
    rows = _read(path)
    names = _data(rows)
    figure, panels = _panels(names, legend=False)
    for name, axes in panels:
        mine = [row for row in rows if row["data"] == name]
        for number in sorted({int(row["partition"]) for row in mine}):
            some = [row for row in mine if int(row["partition"]) == number]
            axes.scatter(
                *_xy(some), s=7, linewidths=0, color=PARTITIONS[(number - 1) % len(PARTITIONS)],
                marker="o^sDvP*"[((number - 1) // len(PARTITIONS)) % 7],
            )  # fmt: skip
        if {row["label"] for row in mine} <= {"0", "1"}:
            some = [row for row in mine if row["label"] == "1"]
            axes.scatter(*_xy(some), s=20, facecolors="none", edgecolors=OUTLIER, linewidths=0.6)
        axes.set_xticks([])
        axes.set_yticks([])
    _save(figure, path, vector=False)


def stabilizers(path: Path) -> None:
    """Q6: M against the number of rules."""
    rows = _read(path)
    figure, panels = _panels(_data(rows), legend=False)
    for name, axes in panels:
        mine = [row for row in rows if row["data"] == name]
        axes.step(
            [int(r["rules"]) for r in mine], [float(r["M"]) for r in mine], where="post",
            color=STYLES["STAIR"][0],
        )  # fmt: skip
        axes.set_xlabel("number of rules")
        axes.set_ylabel("M")
    _save(figure, path, vector=True)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _data(rows: Sequence[dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows))


def _lines(
    rows: Sequence[dict[str, str]], name: str, x: str, y: str
) -> list[tuple[str, tuple[list[float], list[float]]]]:
    """The points of each method, from left to right."""
    found = []
    for method in STYLES:
        mine = [r for r in rows if r["data"] == name and r["method"] == method]
        points = sorted((float(r[x]), float(r[y])) for r in mine)
        if points:
            found.append((method, ([p[0] for p in points], [p[1] for p in points])))
    return found


def _xy(rows: Sequence[dict[str, str]]) -> tuple[list[float], list[float]]:
    return [float(r["x"]) for r in rows], [float(r["y"]) for r in rows]


def _panels(names: list[str], legend: bool = True) -> tuple[Any, list[tuple[str, Any]]]:
    """A panel for each data set, without a window or a display."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise StairError("the figures need matplotlib: pip install 'stair[plot]'") from None
    # The same file each time: no random names and no date inside an SVG.
    matplotlib.rcParams.update({"svg.hashsalt": "stair", "svg.fonttype": "path"})
    columns = max(1, min(COLUMNS, len(names)))
    n_rows = max(1, math.ceil(len(names) / columns))
    figure = Figure(figsize=(3.7 * columns, 2.9 * n_rows + 0.4 * legend), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(n_rows, columns, squeeze=False).ravel()
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    for name, axes in zip(names, grid, strict=False):
        axes.set_title(name, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(zip(names, grid, strict=False))


def _save(figure: Any, path: Path, *, vector: bool) -> None:
    """Beside the CSV file, as PNG, and as SVG where points are few."""
    labelled = {
        label: line for axes in figure.axes
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }  # fmt: skip
    if labelled:
        figure.legend(
            labelled.values(), labelled.keys(), loc="outside lower center", ncols=len(labelled),
            fontsize=8, frameon=False,
        )  # fmt: skip
    figure.savefig(path.with_suffix(".png"), dpi=110, metadata={"Software": None})
    if vector:
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
