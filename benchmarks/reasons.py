"""Which attributes explain an outlier, beside a published ground truth:
`python -m benchmarks.reasons FOLDER`.

The folder has tables and truths in the form of the public repository
xuhongzuo/outlier-interpretation (Apache-2.0; Xu et al., "Beyond Outlier Detection: Outlier
Interpretation by Attention-Guided Triplet Deviation Network", WWW 2021): `NN-name.csv`, a table
whose last column is 1 for an outlier, and `name_gt_DETECTOR.csv`, for each outlier the columns of
the subspace in which that detector gives it its highest score. None of it is in this repository.

Precision is the share of the attributes named that are in the truth, the mean over outliers and
then over tables. With `--check` nothing is written: the page is compared with the committed
results.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.readme import ROOT, replaced

RESULTS = Path(__file__).resolve().parent / "results" / "reasons.json"
PAGE = ROOT / "docs" / "reasons.md"
DETECTORS = {"copod": "COPOD", "hbos": "HBOS", "iforest": "isolation forest"}
FLOOR = 0.9
NAMED = {
    "z-score": "the two with the largest robust z-score",
    "unusual": "the two that `unusual` names first",
    "attributes": "the reason in short, `attributes`, at most three",
    "clauses": "the clauses of the rule that decides, where one does",
    "ceiling": "the most that two attributes a row could reach",
}


def table(path: Path) -> tuple[dict[str, Any], Any]:
    """The columns, by names that are their numbers, and which rows are outliers."""
    read = np.genfromtxt(path, delimiter=",", skip_header=1)
    names = [f"A{j}" for j in range(read.shape[1] - 1)]
    return dict(zip(names, read.T, strict=False)), read[:, -1] == 1


def truths(path: Path) -> dict[int, set[str]]:
    """The attributes of each outlier."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        int(row["ano_idx"]): {f"A{j}" for j in ast.literal_eval(row["exp_subspace"])}
        for row in rows
    }


def by_z_score(columns: dict[str, Any]) -> list[list[str]]:
    """Of each row the two attributes that are furthest from the median, in interquartile ranges."""
    X = np.column_stack([*columns.values()])
    low, middle, high = np.percentile(X, [25, 50, 75], axis=0)
    width = np.where(high > low, high - low, X.std(axis=0))
    z = np.abs(X - middle) / np.where(width > 0, width, 1)
    names = np.array([*columns])
    return [names[order].tolist() for order in np.argsort(-z, axis=1, kind="stable")[:, :2]]


def measure(folder: Path, name: str, path: Path) -> list[dict[str, Any]]:
    """The precision of what is named of the outliers of one table, for each detector."""
    import stair

    columns, is_outlier = table(path)
    method = stair.DistilledStair(min_score=FLOOR, min_outliers=1)
    data = {**columns, "outlier": is_outlier}
    summary = stair.summarize(data, labels="outlier", positive=True, method=method, validate=0)
    rows = np.flatnonzero(is_outlier)
    reasons = dict(zip(rows.tolist(), summary.reasons(rows), strict=True))
    far = by_z_score(columns)
    found = []
    for detector in DETECTORS:
        where = folder / f"{name}_gt_{detector}.csv"
        if not where.exists():
            continue
        each: dict[str, list[float]] = {key: [] for key in NAMED}
        for row, truth in truths(where).items():
            reason = reasons[row]
            named = {
                "z-score": far[row],
                "unusual": [trait.feature for trait in reason.unusual[:2]],
                "attributes": list(reason.attributes),
                "clauses": [*dict.fromkeys(trait.feature for trait in reason.clauses)],
            }
            for key, attributes in named.items():
                if attributes:
                    each[key].append(len(truth & set(attributes)) / len(attributes))
            each["ceiling"].append(min(len(truth), 2) / 2)
        found.append({
            "table": name, "detector": detector, "outliers": len(rows),
            "attributes_named": float(np.mean([len(r.attributes) for r in reasons.values()])),
            **{key: float(np.mean(values)) for key, values in each.items()},
        })  # fmt: skip
    return found


def main(folder: Path) -> None:
    results = []
    for path in sorted(folder.glob("[0-9][0-9]-*.csv")):
        # A file is called as its truths are, or longer.
        name = path.stem.partition("-")[2]
        print(f"{name} …", file=sys.stderr, flush=True)
        results += measure(folder, name, path)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(up_to_date(), encoding="utf-8")
    print(body())


def body() -> str:
    """The committed results as a table."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    tables = [*dict.fromkeys(each["table"] for each in results)]
    lines = [
        f"| attributes of a row | {' | '.join(DETECTORS.values())} |",
        "| --- | ---: | ---: | ---: |",
    ]
    for key, words in NAMED.items():
        means = [
            np.mean([each[key] for each in results if each["detector"] == detector])
            for detector in DETECTORS
        ]
        lines.append(f"| {words} | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    about = f"The mean over {len(tables)} tables: {', '.join(tables)}."
    return "\n".join([*lines, "", about])


def up_to_date() -> str:
    return replaced(PAGE.read_text(encoding="utf-8"), "precision", body())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reasons", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.check or given.folder is None:
        sys.exit(PAGE.read_text(encoding="utf-8") != up_to_date())
    main(given.folder)
