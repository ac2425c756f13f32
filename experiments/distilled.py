"""Distilled and refined rules on the paper's data: lengths, held-out scores, the frontier.

    python -m experiments.distilled --data-dir DIR [--parts lengths held-out frontier]

Labels are those of LOF with 80 neighbours, the floor is F1 > 0.8, rules have at most 10 attributes,
the seed is 0. Every F1 is scikit-learn's, of `predict`. Each part has a CSV file of its own; the
page and the figure are drawn from those files.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score

from experiments import settings
from experiments.datasets import load, lof_labels
from experiments.held_out import LABEL_SETS, held_out
from stair import CART, DistilledStair, FloorNotReached, Stair

RESULTS = Path(__file__).resolve().parent / "results"
FLOOR = 0.8
FLOORS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
RIPPER_SECONDS = 120

# Total lengths of the best tree, and of the best outlier rules, of any peer, each with limited
# tuning, on the same labels at the same floor.
PEERS = {
    "PageBlock": (22, 11),
    "Pima": (23, 18),
    "Mammography": (40, 20),
    "Satimage-2": (105, 49),
    "Pendigits": (213, 82),
    "Satellite": (454, 267),
    "SpamBase": (702, 379),
    "Shuttle": (446, 228),
    "Cover": (4500, 1670),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(PEERS))
    parser.add_argument("--parts", nargs="*", default=["lengths", "held-out", "frontier"])
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", FloorNotReached)
    warnings.filterwarnings("ignore", message="Duplicate values")
    parts = {"lengths": _lengths, "frontier": _frontier}
    for part in chosen.parts:
        rows: list[dict[str, Any]] = []
        for labels in LABEL_SETS if part == "held-out" else ():
            if labels.data in chosen.only:
                print(part, *labels, file=sys.stderr, flush=True)
                rows.append(held_out(labels, chosen.data_dir))
        for name in chosen.only if part in parts else ():
            print(part, name, file=sys.stderr, flush=True)
            data = load(name, chosen.data_dir)
            y = lof_labels(data.X, data.n_outliers, 80)
            rows += parts[part](name, data.X, y)
        _write(part, rows)
    draw()
    return 0


def _timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """The fitted model and the processor's seconds, which others on the machine do not change."""
    began = time.process_time()
    model.fit(X, y)
    return model, round(time.process_time() - began, 1)


def _true(model: Any, X: Any, y: Any) -> float:
    return round(f1_score(y, model.predict(X)), 6)


def _lengths(name: str, X: Any, y: Any) -> list[dict[str, Any]]:
    """Both ends of `min_outliers`, both efforts, and the disjoint rules."""
    published = settings.read()
    tree, outliers_only = PEERS[name]
    plain = Stair().fit(X, y)
    refined, refined_seconds = _timed(Stair(refine=True), X, y)
    usual, seconds = _timed(DistilledStair(), X, y)
    least, least_seconds = _timed(DistilledStair(min_outliers=1), X, y)
    fast, fast_seconds = _timed(DistilledStair(effort="fast"), X, y)
    one_sided = DistilledStair(one_sided=True).fit(X, y)
    return [
        {
            "data": name,
            "STAIR": plain.rules_.total_length,
            "refined": refined.rules_.total_length,
            "distilled": usual.rules_.total_length,
            "distilled min_outliers=1": least.rules_.total_length,
            "paper STAIR": published.paper_length(name, "stair"),
            "paper L-STAIR": published.paper_length(name, "l-stair"),
            "best peer tree": tree,
            "best peer outlier rules": outliers_only,
            "rules": len(usual.rules_),
            "bounds": usual.rules_.n_bounds,
            "min_outliers": usual.min_outliers_,
            "F1": _true(usual, X, y),
            "no shorter than": usual.bound_,
            "candidates": usual.n_candidates_,
            "seconds": seconds,
            "min_outliers=1 F1": _true(least, X, y),
            "min_outliers=1 rules": len(least.rules_),
            "min_outliers=1 no shorter than": least.bound_,
            "min_outliers=1 seconds": least_seconds,
            "one-sided": one_sided.rules_.total_length,
            "one-sided bounds": one_sided.rules_.n_bounds,
            "one-sided F1": _true(one_sided, X, y),
            "fast": fast.rules_.total_length,
            "fast F1": _true(fast, X, y),
            "fast seconds": fast_seconds,
            "refined rules": len(refined.rules_),
            "refined F1": _true(refined, X, y),
            "refined seconds": refined_seconds,
        }
    ]


def _frontier(name: str, X: Any, y: Any) -> list[dict[str, Any]]:
    rows = []
    for floor in FLOORS:
        for method, model in (
            ("STAIR", Stair(min_score=floor)),
            ("CART", CART(min_score=floor)),
            ("distilled", DistilledStair(min_score=floor)),
        ):
            model.fit(X, y)
            rows.append(
                {
                    "data": name,
                    "method": method,
                    "floor": floor,
                    "length": model.rules_.total_length,
                    "rules": len(model.rules_),
                    "F1": _true(model, X, y),
                }
            )
    return [*rows, _ripper(name, X, y)]


def _ripper(name: str, X: Any, y: Any) -> dict[str, Any]:
    """RIPPER has no floor: one point, in a process of its own with a limit of time."""
    unfinished = {
        "data": name,
        "method": "RIPPER",
        "floor": "",
        "length": "",
        "rules": "",
        "F1": "",
    }
    table = RESULTS / f".ripper-{name}.npz"
    np.savez(table, X=X, y=y)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "experiments.ripper", str(table)],
            capture_output=True, text=True, timeout=RIPPER_SECONDS, check=False,
            cwd=RESULTS.parent.parent,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return unfinished
    finally:
        table.unlink()
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return unfinished
    length, rules, score = done.stdout.split()
    return {**unfinished, "length": int(length), "rules": int(rules), "F1": round(float(score), 6)}


def _path(part: str) -> Path:
    return RESULTS / ("distilled.csv" if part == "lengths" else f"distilled-{part}.csv")


def _write(part: str, rows: list[dict[str, Any]]) -> None:
    with _path(part).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _read(part: str) -> list[dict[str, str]]:
    if not _path(part).exists():
        return []
    with _path(part).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def draw() -> None:
    """The page and the figure, from the files."""
    from experiments.distilled_page import figure, page

    rows = {part: _read(part) for part in ("lengths", "held-out", "frontier")}
    (RESULTS / "distilled.md").write_text(page(**_named(rows)), encoding="utf-8")
    if rows["frontier"]:
        figure(rows["frontier"], RESULTS / "distilled-frontier.png")


def _named(rows: dict[str, list[dict[str, str]]]) -> dict[str, list[dict[str, str]]]:
    return {part.replace("-", "_"): found for part, found in rows.items()}


if __name__ == "__main__":
    sys.exit(main())
