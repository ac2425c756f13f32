"""The page and the figure about distilled rules, from the results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

Rows = list[dict[str, str]]

FLOOR = 0.8
COLOURS = {"distilled": "#b5501b", "STAIR": "#1f5f8b", "CART": "#7a7a7a", "RIPPER": "#2a9d6f"}


def page(lengths: Rows, held_out: Rows, frontier: Rows) -> str:
    parts = [
        "# Distilled rules on the paper's data",
        "Made by `python -m experiments.distilled`: LOF with 80 neighbours, true F1 > 0.8 by "
        "scikit-learn on `predict`, rules of at most 10 attributes, seed 0. Columns marked *paper* "
        "and *peer* are not ours; the peers had limited tuning each.",
    ]
    if lengths:
        parts += _lengths(lengths)
    if held_out:
        parts += _held_out(held_out)
    if frontier:
        parts += _frontier(frontier)
    return "\n\n".join(parts) + "\n"


def _lengths(rows: Rows) -> list[str]:
    both = [
        {
            "data": r["data"],
            "default": r["distilled"],
            "rules": r["rules"],
            "bounds": r["bounds"],
            "F1": r["F1"],
            "min_outliers=1": r["distilled min_outliers=1"],
            "its F1": r["min_outliers=1 F1"],
            "a quarter of paper L-STAIR": str(int(r["paper L-STAIR"]) // 4),
            "no shorter than": r["no shorter than"],
            "of candidates": r["candidates"],
        }
        for r in rows
    ]
    bounds = [
        {
            "data": r["data"],
            "length": r["distilled"],
            "bounds": r["bounds"],
            "one-sided length": r["one-sided"],
            "one-sided bounds": r["one-sided bounds"],
            "one-sided F1": r["one-sided F1"],
        }
        for r in rows
    ]
    missed = [r["data"] for r in rows if float(r["one-sided F1"]) <= FLOOR]
    reached = [r for r in rows if r["data"] not in missed]
    total = sum(int(r["bounds"]) for r in rows)
    of_reached = sum(int(r["bounds"]) for r in reached)
    one_sided = sum(int(r["one-sided bounds"]) for r in reached)
    others = [
        {
            "data": r["data"],
            "distilled": r["distilled"],
            "peer outlier rules": r["best peer outlier rules"],
            "paper L-STAIR": r["paper L-STAIR"],
            "refined": r["refined"],
            "peer tree": r["best peer tree"],
            "STAIR": r["STAIR"],
            "paper STAIR": r["paper STAIR"],
        }
        for r in rows
    ]
    times = [
        {
            "data": r["data"],
            "normal, s": r["seconds"],
            "min_outliers=1, s": r["min_outliers=1 seconds"],
            "fast, s": r["fast seconds"],
            "fast length": r["fast"],
            "longer than normal": f"{int(r['fast']) / int(r['distilled']) - 1:+.0%}",
            "refined, s": r["refined seconds"],
        }
        for r in rows
    ]
    quarter = [r["data"] for r in rows if 4 * int(r["distilled"]) <= int(r["paper L-STAIR"])]
    trees = [r["data"] for r in rows if int(r["refined"]) < int(r["best peer tree"])]
    equal = [r["data"] for r in rows if int(r["refined"]) == int(r["best peer tree"])]
    return [
        "## Total length",
        "By default each rule covers at least 5 outliers; with `min_outliers=1` there is no such "
        "limit. *No shorter than* is the certificate: no choice among so many candidate rules, "
        "those that were looked at last, is shorter.",
        _table(both),
        f"- A quarter of the paper's L-STAIR: {', '.join(quarter) or 'none'}. Elsewhere the search "
        "stops because nothing shorter turned up in what the effort may look at; the certificates "
        "of the small sets say that their pools hold nothing shorter.",
        "## Bounds",
        "An interval with two bounds is one attribute and two numbers to read. With "
        "`one_sided=True` no clause has two.",
        _table(bounds),
        f"- {total} bounds by default, {of_reached} of them on the sets where one-sided rules "
        f"reach the floor too: these have {one_sided}, and are longer. Not above the floor with "
        f"one bound a clause, within what the effort may look at: {', '.join(missed) or 'none'}.",
        "## Beside the others",
        _table(others),
        "- Refined rules are a partition of all rows, as a tree's leaves are: shorter than the "
        f"best tree of any peer on {len(trees)} of {len(rows)} sets, equal on "
        f"{', '.join(equal) or 'none'}.",
        "## Seconds",
        "Seconds of processor time of `fit`, all threads together: what a clock shows on an idle "
        "machine is no more.",
        _table(times),
    ]


def _held_out(rows: Rows) -> list[str]:
    lines = []
    for what, column in (("By default", "difference"), ("With effort fast", "fast difference")):
        measured = [r for r in rows if r[column]]  # empty: not measured since it has changed
        if not measured:
            continue
        differences = [float(r[column]) for r in measured]
        worst = min(measured, key=lambda r: float(r[column]))
        lines.append(
            f"- {what}: {sum(differences) / len(measured):+.3f} on average, at least -0.01 on "
            f"{sum(d >= -0.01 for d in differences)} of {len(measured)}; the worst is "
            f"{worst['data']} by {worst['detector']} ({worst['outliers']} outliers) with "
            f"{float(worst[column]):+.3f}."
        )
    return [
        "## On rows kept aside",
        "F1 on rows that were not learned from: two times five folds, labels of several detectors, "
        "the mean of all folds. *difference* is distilled against STAIR, *standard error* that of "
        "the difference over the folds.",
        _table(rows),
        "\n".join(lines),
    ]


def _frontier(rows: Rows) -> list[str]:
    names = list(dict.fromkeys(r["data"] for r in rows))
    floors = sorted({r["floor"] for r in rows if r["floor"]}, key=float)
    found = {(r["data"], r["method"], r["floor"]): r for r in rows}
    table = []
    for name in names:
        for method in ("distilled", "STAIR", "CART"):
            cells = {floor: _cell(found[name, method, floor], floor) for floor in floors}
            table.append({"data": name, "method": method, **cells})
    ripper = [
        {
            "data": name,
            "length": found[name, "RIPPER", ""]["length"] or "did not finish in time",
            "F1": found[name, "RIPPER", ""]["F1"] or "–",
        }
        for name in names
    ]
    return [
        "## Length against the floor",
        "![Total length against F1, nine data sets](distilled-frontier.png)",
        "Total length above each floor. A length in brackets did not reach it.",
        _table(table),
        "RIPPER (wittgenstein, default settings) has no floor, so there is one point of it:",
        _table(ripper),
    ]


def _cell(row: dict[str, str], floor: str) -> str:
    return row["length"] if float(row["F1"]) > float(floor) else f"({row['length']})"


def _table(rows: list[dict[str, str]]) -> str:
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(row[key]) for key in head) + " |" for row in rows]
    return "\n".join(lines)


def figure(rows: Rows, path: Path) -> None:
    """Total length against F1, one panel for each data set."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(r["data"] for r in rows))
    n_columns = min(3, len(names))
    n_rows = -(-len(names) // n_columns)
    drawing = Figure(figsize=(3.6 * n_columns, 2.9 * n_rows), layout="constrained")
    panels: Any = drawing.subplots(n_rows, n_columns, squeeze=False).ravel()
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    for panel, name in zip(panels, names, strict=False):
        for method, colour in COLOURS.items():
            points = [
                (float(r["F1"]), int(r["length"]))
                for r in rows
                if r["data"] == name and r["method"] == method and r["length"]
            ]
            style = {"marker": "o", "markersize": 3.5, "linewidth": 1.4, "color": colour}
            if points:
                panel.plot(*zip(*points, strict=True), label=method, **style)
        panel.set_title(name, fontsize=10, loc="left")
        panel.set_yscale("log")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    drawing.supxlabel("F1", fontsize=10)
    drawing.supylabel("total length", fontsize=10)
    drawing.savefig(path, dpi=130, metadata={"Software": ""})
