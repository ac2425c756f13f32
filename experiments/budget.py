"""Mammography with its true labels and a budget of alerts, beside Iguanas: at most 5% of rows.

    python -m experiments.budget --iguanas .venv-iguanas/bin/python

Three stratified folds with three seeds. Settings are chosen inside the training folds, by both
methods in the same way: of those whose rules alert at most 5% of the rows that they were learned
from, the one that is best on inner folds, by F1 or by recall. Figures are of the rows kept aside.
Iguanas is in an environment of its own, which `python -m experiments.with_iguanas` makes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from experiments.datasets import load
from experiments.with_iguanas import ask
from stair import DistilledStair, FloorNotReached
from stair.data import atomic_write

RESULTS: Final = Path(__file__).parent / "results"
BUDGET: Final = 0.05
FOLDS, INNER, SEEDS = 3, 2, (0, 1, 2)
# What is chosen from inside of the training folds.
OURS: Final = {"min_precision": [0.5, 0.55, 0.6], "max_total_length": [6, 9]}
THEIRS: Final[dict[str, list[Any]]] = {
    "depth": [2, 3, 4], "trees": [20], "weights": [[1.0, 10.0]], "max_rules": [10],
    "precision": [0.3], "max_corr": [0.8], "min_improvement": [0.01],
}  # fmt: skip
BY: Final = ("f1", "recall")


class Part(NamedTuple):
    """Rows to learn from and rows kept aside."""

    name: str
    train: NDArray[np.intp]
    test: NDArray[np.intp]


class Fit(NamedTuple):
    """What rules with a setting come to."""

    setting: dict[str, Any]
    alerted: float  # of the rows that were learned from
    recall: float
    precision: float
    n_rules: int
    conditions: int

    @property
    def f1(self) -> float:
        both = self.recall + self.precision
        return 2 * self.recall * self.precision / both if both else 0.0


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
    return Fit(setting, float(train.mean()), hits / int(y.sum()), right, n_rules, conditions)


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
    parts: list[Part], X: NDArray[np.float64], y: NDArray[np.int64], python: Path
) -> tuple[dict[str, list[Fit]], dict[str, str]]:
    """The same by Iguanas, in its own environment."""
    asked = {part.name: (X[part.train], y[part.train], X[part.test]) for part in parts}
    answers, versions = ask(asked, THEIRS, python)
    by_name, found = {part.name: part for part in parts}, {}
    for each in answers:
        part = by_name[each["part"]]
        train, test = (np.zeros(len(rows), dtype=np.bool_) for rows in (part.train, part.test))
        train[each["train"]], test[each["test"]] = True, True
        fit = figures(each["setting"], train, test, y[part.test], each["n_rules"],
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
    """Means over the folds, with the share of rows that is alerted at most in training."""
    means = {
        name: float(np.mean([getattr(fit, name) for fit in fits]))
        for name in ("recall", "precision", "n_rules", "conditions")
    }
    most = max(fit.alerted for fit in fits)
    over = sum(fit.alerted > BUDGET for fit in fits)
    return {**means, "most_alerted": most, "folds_above_the_budget": over,
            "most_conditions": max(fit.conditions for fit in fits)}  # fmt: skip


def table(record: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = [
        "| chosen by | method | recall | precision | rules | conditions | at most "
        "| most rows alerted in training |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for by in BY:
        for method, words in (("distilled", "distilled"), ("iguanas", "Iguanas 1.5")):
            f = record["summary"][by][method]
            lines.append(
                f"| {'F1' if by == 'f1' else by} | {words} | {f['recall']:.3f} "
                f"| {f['precision']:.3f} | {f['n_rules']:.1f} | {f['conditions']:.1f} "
                f"| {f['most_conditions']} | {f['most_alerted']:.2%} |"
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
    of_iguanas, versions = theirs(parts, data.X, data.y, given.iguanas)
    of_us = ours(parts, data.X, data.y)
    fits = {"distilled": of_us, "iguanas": of_iguanas}
    taken = {by: {m: [chosen(f, part, by) for part in outer] for m, f in fits.items()} for by in BY}
    record = {
        "budget": BUDGET, "folds": FOLDS, "inner": INNER, "seeds": list(SEEDS),
        "settings": {"distilled": OURS, "iguanas": THEIRS},
        "versions": {**versions, "stair": version("stair")},
        "summary": {by: {m: summary_of(f) for m, f in each.items()} for by, each in taken.items()},
        "chosen": {
            by: {m: [fit._asdict() for fit in f] for m, f in each.items()}
            for by, each in taken.items()
        },
    }  # fmt: skip
    atomic_write(RESULTS / "budget.json", json.dumps(record, indent=1) + "\n")
    atomic_write(RESULTS / "budget.md", table(record))
    print(table(record))


if __name__ == "__main__":
    main()
