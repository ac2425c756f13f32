"""What wishes cost, on LOF labels: length for a precision, and recall within a budget of alerts.

    python -m experiments.wishes --sets Pima PageBlock     computes what is missing, writes a table

Beside the rules of skope-rules, as imodels has them: its setting is the precision of each rule, and
of its rules, in their order, the first are taken until the wish is had, or the budget is spent.
RIPPER, as wittgenstein has it, has a setting for the number of conditions and none for precision or
alerts: what its rules of that length come to is in the table where they keep to the budget.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from experiments.datasets import load, lof_labels, names
from stair import DistilledStair, FloorNotReached
from stair.data import atomic_write

RESULTS: Final = Path(__file__).parent / "results"
PRECISIONS: Final = (0.7, 0.8, 0.9, 1.0)
RECALL: Final = 0.5
ALERTS: Final = (0.005, 0.01, 0.02, 0.05)
LENGTH: Final = 10
NEIGHBORS: Final = 80
# A peer that is not done by then is left out.
MOST_SECONDS: Final = 600
PACKAGES: Final = ("stair", "imodels", "scikit-learn", "wittgenstein")


def ours(X: NDArray[np.float64], y: NDArray[np.int64], effort: Any) -> dict[str, Any]:
    """Length for each precision, and recall for each budget, by the counts of the final rules."""

    def fit(**wishes: Any) -> dict[str, Any]:
        model = DistilledStair(effort=effort, random_state=0, **wishes).fit(X, y)
        alerts = model.rules_.covers(X).any(axis=1)
        hits = int((alerts & (y == 1)).sum())
        return {
            "length": model.rules_.total_length, "rules": len(model.rules_),
            "recall": hits / int(y.sum()), "alerts": int(alerts.sum()),
            "precision": hits / int(alerts.sum()) if alerts.any() else 0.0,
            "had": model.floor_reached_, "bound": model.bound_,
        }  # fmt: skip

    return {
        "precision": {str(p): fit(min_precision=p, min_recall=RECALL) for p in PRECISIONS},
        "alerts": {str(a): fit(max_alerts=a, max_total_length=LENGTH) for a in ALERTS},
    }


def skope(X: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, Any]:
    """The same by imodels' skope-rules, where its setting says something."""
    from imodels import SkopeRulesClassifier

    warnings.simplefilter("ignore")

    frame_names = [f"x{j}" for j in range(X.shape[1])]

    def rules_of(precision: float) -> list[tuple[NDArray[np.bool_], int]]:
        model = SkopeRulesClassifier(
            precision_min=precision, recall_min=0.01, max_depth=4, n_estimators=30, random_state=0
        )
        model.fit(X, y, feature_names=frame_names)
        return [_covered(str(rule), X) for rule in model.rules_]

    def taken(
        rules: list[tuple[NDArray[np.bool_], int]], recall: float, most_alerts: float, most: float
    ) -> dict[str, Any]:
        alerts, length = np.zeros(len(y), dtype=np.bool_), 0
        for rows, own in rules:
            if (alerts & (y == 1)).sum() >= recall * y.sum():
                break
            if (alerts | rows).sum() > most_alerts or length + own > most:
                continue
            if not (rows & ~alerts & (y == 1)).any():
                continue
            alerts, length = alerts | rows, length + own
        hits = int((alerts & (y == 1)).sum())
        right = hits / int(alerts.sum()) if alerts.any() else 0.0
        return {"length": length, "recall": hits / int(y.sum()), "precision": right,
                "alerts": int(alerts.sum())}  # fmt: skip

    found: dict[str, Any] = {"precision": {}, "alerts": {}}
    for p in PRECISIONS:
        one = taken(rules_of(p), RECALL, np.inf, np.inf)
        one["had"] = one["recall"] >= RECALL and one["precision"] >= p
        found["precision"][str(p)] = one
    rules = rules_of(0.5)
    for a in ALERTS:
        found["alerts"][str(a)] = taken(rules, 2.0, a * len(y), LENGTH)
    return found


def in_time(
    peer: Callable[..., dict[str, Any]], X: NDArray[np.float64], y: NDArray[np.int64]
) -> dict[str, Any]:
    """What a peer comes to, in a process of its own that may take so long."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply_async(peer, (X, y)).get(MOST_SECONDS)
        except multiprocessing.TimeoutError:
            return {"error": f"not done within {MOST_SECONDS} s"}
        except Exception as error:  # a peer that fails is told of, and the others go on
            return {"error": str(error)[:200]}


def ripper(X: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, Any]:
    """RIPPER with as many conditions as are allowed: how much it explains with how many alerts."""
    import pandas as pd
    import wittgenstein

    warnings.simplefilter("ignore")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = wittgenstein.RIPPER(random_state=0, max_total_conds=LENGTH)
    model.fit(frame, y=y, pos_class=1)
    alerts = np.asarray(model.predict(frame)).astype(bool)
    rules = [{condition.feature for condition in rule.conds} for rule in model.ruleset_]
    return {
        "length": sum(map(len, rules)), "rules": len(rules), "alerts": float(alerts.mean()),
        "recall": float(alerts[y == 1].mean()),
    }  # fmt: skip


def _covered(text: str, X: NDArray[np.float64]) -> tuple[NDArray[np.bool_], int]:
    """The rows of a rule such as "x1 > 0.5 and x3 <= 2", and how many attributes it has."""
    rows, used = np.ones(len(X), dtype=np.bool_), set()
    for part in text.split(" and "):
        name, sign, bound = part.split()
        column = X[:, int(name[1:])]
        used.add(name)
        rows &= column > float(bound) if sign == ">" else column <= float(bound)
    return rows, len(used)


def table(record: dict[str, Any]) -> str:
    """The result as Markdown: a dash where the wish was not had."""
    lines = [
        f"Total length for a precision of all alerts, with {RECALL:.0%} of outliers explained:\n",
        "| data | method | " + " | ".join(f"{p:.0%}" for p in PRECISIONS) + " |",
        "|---|---|" + "--:|" * len(PRECISIONS),
    ]
    methods = ("distilled", "skope-rules", "RIPPER")
    sets = {name: of for name, of in record["sets"].items() if set(of) == set(methods)}
    for name, of in sets.items():
        for method in methods[:2]:
            found = of[method]
            cells = ["–"] * len(PRECISIONS)
            if "error" not in found:
                cells = [_length(found["precision"][str(p)]) for p in PRECISIONS]
            lines.append(f"| {name} | {method} | " + " | ".join(cells) + " |")
    lines += [
        f"\nOf outliers explained within a budget of alerts, at a total length of {LENGTH}:\n",
        "| data | method | " + " | ".join(f"{a:.1%}" for a in ALERTS) + " |",
        "|---|---|" + "--:|" * len(ALERTS),
    ]
    for name, of in sets.items():
        for method in methods:
            found = of[method]
            if "error" in found:
                cells = ["–"] * len(ALERTS)
            elif method == "RIPPER":
                kept = [found["alerts"] <= a for a in ALERTS]
                cells = [f"{found['recall']:.0%}" if is_kept else "–" for is_kept in kept]
            else:
                cells = [f"{found['alerts'][str(a)]['recall']:.0%}" for a in ALERTS]
            lines.append(f"| {name} | {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _length(found: dict[str, Any]) -> str:
    return str(found["length"]) if found["had"] else "–"


def main() -> None:
    known = [name for name in names() if name not in ("Thursday-01-03", "WineQuality")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=known, choices=known)
    parser.add_argument("--effort", default="fast", choices=("fast", "normal"))
    parser.add_argument("--data", help="where the data sets are")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    warnings.simplefilter("ignore", FloorNotReached)
    path = RESULTS / "wishes.json"
    record: dict[str, Any] = {"sets": {}}
    if path.is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
    for name in given.sets:
        done = record["sets"].setdefault(name, {})
        data = load(name, given.data)
        y = lof_labels(data.X, data.n_outliers, NEIGHBORS)
        if "distilled" not in done:
            done["distilled"] = ours(data.X, y, given.effort)
        if "skope-rules" not in done:
            done["skope-rules"] = in_time(skope, data.X, y)
        if "RIPPER" not in done:
            done["RIPPER"] = in_time(ripper, data.X, y)
        print(f"stair: {name} is done", file=sys.stderr)
        record["sets"] = {each: record["sets"][each] for each in known if each in record["sets"]}
        record["effort"], record["neighbors"] = given.effort, NEIGHBORS
        record["versions"] = {each: version(each) for each in PACKAGES}
        atomic_write(path, json.dumps(record, indent=1) + "\n")
        atomic_write(RESULTS / "wishes.md", table(record))
    print(table(record))


if __name__ == "__main__":
    main()
