"""Mammography with its true labels and a budget of alerts, beside Iguanas: at most 5% of rows.

    python -m experiments.budget --iguanas .venv-iguanas/bin/python

Three stratified folds with three seeds. Settings are chosen inside the training folds, by both
methods in the same way: of those whose rules alert at most 5% of the rows that they were learned
from, the one that is best on inner folds, by F1, by F2 or by recall. Iguanas has two settings of
its own benchmark beside that, which are what they are. Figures are of the rows kept aside.
Iguanas is in an environment of its own, which `python -m experiments.with_iguanas` makes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from experiments.datasets import load
from experiments.with_iguanas import EIGHT, Asked, Setting, ask
from stair import DistilledStair, FloorNotReached
from stair.data import atomic_write

RESULTS: Final = Path(__file__).parent / "results"
BUDGET: Final = 0.05
FOLDS, INNER, SEEDS = 3, 2, (0, 1, 2)
# What is chosen from inside of the training folds.
OURS: Final = {"min_precision": [0.3, 0.4, 0.5, 0.6, 0.7], "max_total_length": [6, 9]}
# Two settings of Iguanas' own benchmark: that of its last version, and that of an earlier one.
_TAKEN: Final[Setting] = {
    "longest": 4, "top": 150, "max_corr": 0.9, "max_rules": 10, "budget": BUDGET,
}  # fmt: skip
_LAST: Final[Setting] = {
    "depth": 4, "trees": 100, "powers": [1.0], "steered": 0, "leaves": "max_gain",
}  # fmt: skip
_EARLIER: Final[Setting] = {
    "depth": 4, "trees": 25, "powers": EIGHT, "steered": 6, "leaves": "max_gain",
}  # fmt: skip
FIXED: Final[dict[str, Setting]] = {
    "as its benchmark is now": {**_LAST, "precision": 0.3, "recall": 0.15, **_TAKEN},
    "as its benchmark was": {**_EARLIER, "precision": 0.5, "recall": 0.05, **_TAKEN},
}
# And settings about the last, of which one is chosen as one of ours is.
THEIRS: Final[tuple[Setting, ...]] = tuple(
    {**_LAST, "precision": precision, "recall": recall, **_TAKEN, "max_rules": most}
    for precision in (0.3, 0.4, 0.5, 0.6, 0.7)
    for recall in (0.05, 0.15)
    for most in (3, 10)
)
BY: Final = {"f1": "F1", "f2": "F2", "recall": "recall"}


class Part(NamedTuple):
    """Rows to learn from and rows kept aside."""

    name: str
    train: NDArray[np.intp]
    test: NDArray[np.intp]


class Fit(NamedTuple):
    """What rules with a setting come to."""

    setting: dict[str, Any]
    alerted: float  # of the rows that were learned from
    aside: float  # of those kept aside
    recall: float
    precision: float
    n_rules: int
    conditions: int

    @property
    def f1(self) -> float:
        return self._f(1)

    @property
    def f2(self) -> float:
        """Where a missed outlier counts more than a false alert."""
        return self._f(2)

    def _f(self, beta: int) -> float:
        below = beta**2 * self.precision + self.recall
        return (1 + beta**2) * self.recall * self.precision / below if below else 0.0


def outer_parts(y: NDArray[np.int64]) -> Iterator[Part]:
    for seed in SEEDS:
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(y, y)
        for number, (train, test) in enumerate(folds):
            yield Part(f"{seed}-{number}", train, test)


def inner_parts(outer: Part, y: NDArray[np.int64]) -> Iterator[Part]:
    folds = StratifiedKFold(INNER, shuffle=True, random_state=0).split(outer.train, y[outer.train])
    for number, (train, test) in enumerate(folds):
        yield Part(f"{outer.name}-{number}", outer.train[train], outer.train[test])


def figures(
    setting: dict[str, Any], train: NDArray[np.bool_], test: NDArray[np.bool_],
    y: NDArray[np.int64], n_rules: int, conditions: int,
) -> Fit:  # fmt: skip
    hits = int((test & (y == 1)).sum())
    right = hits / int(test.sum()) if test.any() else 0.0
    alerted, aside = float(train.mean()), float(test.mean())
    return Fit(setting, alerted, aside, hits / int(y.sum()), right, n_rules, conditions)


def ours(parts: list[Part], X: NDArray[np.float64], y: NDArray[np.int64]) -> dict[str, list[Fit]]:
    """Distilled rules whose clauses have one bound, so that length is the number of conditions."""
    found: dict[str, list[Fit]] = {}
    for part in parts:
        for values in itertools.product(*OURS.values()):
            setting = dict(zip(OURS, values, strict=True))
            model = DistilledStair(
                max_alerts=BUDGET, one_sided=True, effort="fast", random_state=0, **setting
            ).fit(X[part.train], y[part.train])
            train, test = (
                model.rules_.covers(X[rows]).any(axis=1) for rows in (part.train, part.test)
            )
            found.setdefault(part.name, []).append(
                figures(setting, train, test, y[part.test], len(model.rules_),
                        model.rules_.n_bounds)
            )  # fmt: skip
        print(f"stair: distilled, {part.name}", file=sys.stderr)
    return found


def theirs(
    parts: list[Part], settings: Sequence[Setting], X: NDArray[np.float64],
    y: NDArray[np.int64], python: Path,
) -> tuple[dict[str, list[Fit]], dict[str, str]]:  # fmt: skip
    """The same by Iguanas, in its own environment."""
    asked = {
        part.name: Asked(X[part.train], y[part.train], X[part.test], int(part.name.split("-")[0]))
        for part in parts
    }
    answers, versions = ask(asked, settings, python)
    by_name, found = {part.name: part for part in parts}, {}
    for each in answers:
        part = by_name[each["part"]]
        train, test = (np.zeros(len(rows), dtype=np.bool_) for rows in (part.train, part.test))
        train[each["train"]], test[each["test"]] = True, True
        fit = figures(each["setting"], train, test, y[part.test], len(each["rules"]),
                      each["conditions"])  # fmt: skip
        found.setdefault(part.name, []).append(fit)
    return found, versions


def chosen(fits: dict[str, list[Fit]], outer: Part, by: str) -> Fit:
    """The rules of the training fold with the setting that is best on its inner folds."""
    inner = [fits[f"{outer.name}-{number}"] for number in range(INNER)]
    within = [k for k, fit in enumerate(fits[outer.name]) if fit.alerted <= BUDGET]
    candidates = within or [min(range(len(inner[0])), key=lambda k: fits[outer.name][k].alerted)]
    best = max(candidates, key=lambda k: sum(float(getattr(each[k], by)) for each in inner))
    return fits[outer.name][best]


def summary_of(fits: list[Fit]) -> dict[str, float]:
    """Means over the folds, and what is largest in any of them."""
    means = {
        name: float(np.mean([getattr(fit, name) for fit in fits]))
        for name in ("recall", "precision", "n_rules", "conditions")
    }
    return {
        **means,
        "most_conditions": max(fit.conditions for fit in fits),
        "most_alerted": max(fit.alerted for fit in fits),
        "most_alerted_aside": max(fit.aside for fit in fits),
    }


def table(record: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        "| method | setting | recall | precision | rules | conditions | at most "
        "| most rows alerted in training | and aside |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for method, of in record["summary"].items():
        for setting, f in of.items():
            lines.append(
                f"| {method} | {setting} | {f['recall']:.3f} "
                f"| {f['precision']:.3f} | {f['n_rules']:.1f} | {f['conditions']:.1f} "
                f"| {f['most_conditions']} | {f['most_alerted']:.2%} "
                f"| {f['most_alerted_aside']:.2%} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--iguanas", type=Path, required=True, help="the Python that has it")
    parser.add_argument("--data", help="where the data sets are")
    given = parser.parse_args()
    warnings.simplefilter("ignore", FloorNotReached)
    data = load("Mammography", given.data)
    outer = list(outer_parts(data.y))
    parts = [each for part in outer for each in (part, *inner_parts(part, data.y))]
    fixed, versions = theirs(outer, list(FIXED.values()), data.X, data.y, given.iguanas)
    of_iguanas, _ = theirs(parts, THEIRS, data.X, data.y, given.iguanas)
    taken = {
        "Iguanas 1.5": {
            name: [fixed[part.name][k] for part in outer] for k, name in enumerate(FIXED)
        },
        "distilled": {},
    }
    for method, fits in (("Iguanas 1.5", of_iguanas), ("distilled", ours(parts, data.X, data.y))):
        for by, words in BY.items():
            taken[method][f"by {words}"] = [chosen(fits, part, by) for part in outer]
    record = {
        "budget": BUDGET, "folds": FOLDS, "inner": INNER, "seeds": list(SEEDS),
        "settings": {"distilled": OURS, "Iguanas 1.5": {"fixed": FIXED, "chosen": THEIRS}},
        "versions": {**versions, "stair": version("stair")},
        "summary": {m: {s: summary_of(f) for s, f in each.items()} for m, each in taken.items()},
        "chosen": {
            m: {s: [fit._asdict() for fit in f] for s, f in each.items()}
            for m, each in taken.items()
        },
    }  # fmt: skip
    atomic_write(RESULTS / "budget.json", json.dumps(record, indent=1) + "\n")
    atomic_write(RESULTS / "budget.md", table(record))
    print(table(record))


if __name__ == "__main__":
    main()
