"""Rules by Iguanas, in an environment of its own: what to learn from comes in an .npz, what was
learned goes out as JSON. Nothing of stair is imported here, and nothing of Iguanas elsewhere.

    python iguanas_fit.py TASK.npz ANSWER.json

The steps are those in which its own benchmark goes: rules of boosted trees or of a forest's, those
that are precise and frequent enough, of much the same ones the most precise, and of these as many
as help. Within a
budget of alerts those that find most (`combine_rules_budgeted`); with a floor on F1, of all sets
that its search for F1 comes by (`combine_rules_beam_search`), the shortest that is above it.
"""

from __future__ import annotations

import json
import math
import re
import signal
import sys
import time
import warnings
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from iguanas.metrics import count_conditions
from iguanas.rule_combination import combine_rules_beam_search, combine_rules_budgeted
from iguanas.rule_evaluation import apply_and_filter_by_performance, apply_rules
from iguanas.rule_generation import rule_grid_search
from iguanas.rule_selection import filter_correlated_rules
from iguanas.weight_transformations import generate_weights, select_uncorrelated_weights
from sklearn.ensemble import RandomForestClassifier
from xgboost import XGBClassifier

COLUMN = re.compile(r'X\["([^"]+)"\]')
RATE = 0.3
# All sets of rules that a search came by, not only the best.
EVERY = 1_000_000


class TimeIsUp(BaseException):
    """The seconds of a processor that a part has are over. It is raised again each second: some of
    what is called keeps what is raised to itself."""


def end(*_: object) -> None:
    raise TimeIsUp


class Part:
    """Rows to learn from, and the rules that trees give for them."""

    def __init__(self, X: Any, y: Any, seed: int) -> None:
        self.X, self.y, self.seed = frame(X), pl.Series("y", y.astype(bool)), seed
        self.rules = cache(self._rules)

    def _rules(self, model: str, depth: int, trees: int, powers: tuple[float, ...], steered: int,
               leaves: str) -> list[str]:  # fmt: skip
        """Rules of trees, for each power of how many more inliers there are and each weighing."""
        size: dict[str, Any] = {"n_estimators": trees, "max_depth": depth, "n_jobs": 1,
                                "random_state": self.seed}  # fmt: skip
        if model == "forest":
            template = RandomForestClassifier(**size)
        else:
            template = XGBClassifier(**size, learning_rate=RATE, tree_method="hist", verbosity=0)
        outliers = int(self.y.sum())
        ratio = (len(self.y) - outliers) / outliers
        found = rule_grid_search(
            template, self.X, self.y.cast(pl.Int64), scale_pos_weights=ratio ** np.array(powers),
            sample_weights_df=self._weights(steered) if steered else None, n_jobs=1, verbose=0,
            leaf_selection=leaves,
        )  # fmt: skip
        return sorted(set(found["rule"].to_list())) if len(found) else []

    def _weights(self, most: int) -> pl.DataFrame:
        """Weights that follow the column that varies most, as its benchmark has them."""
        spread = {name: float(np.nanvar(self.X[name].to_numpy())) for name in self.X.columns}
        column = max(sorted(spread), key=lambda name: spread[name])
        given = generate_weights(self.X[column].abs())
        order = {name: float(-k) for k, name in enumerate(given.columns)}
        names, _ = select_uncorrelated_weights(given, order, most)
        return given.select(names[:most])

    def learned(self, setting: dict[str, Any]) -> list[str]:
        """The rules that are chosen, one by one; none where none are to be had."""
        made = self.rules(
            setting.get("model", "boosted"), setting["depth"], setting["trees"],
            tuple(setting["powers"]), setting["steered"], setting["leaves"],
        )  # fmt: skip
        rules = [rule for rule in made if count_conditions(rule) <= setting["longest"]]
        asked = [{"name": name, "operator": ">=", "value": setting[name]}
                 for name in ("precision", "recall")]  # fmt: skip
        covered, metrics = apply_and_filter_by_performance(
            self.X, self.y, rules, metric_thresholds=asked, ranking_metric="wracc"
        )
        if metrics.is_empty():
            return []
        best = metrics.head(setting["top"]).sort("precision", descending=True)
        names = best["rule"].to_list()
        if len(names) > 1:
            precision = dict(zip(names, best["precision"].to_list(), strict=True))
            names = filter_correlated_rules(
                covered[names], importance=precision, max_corr=setting["max_corr"]
            )
        short = {f"r{k}": name for k, name in enumerate(names)}
        candidates = covered[names].rename({name: key for key, name in short.items()})
        if setting["budget"] is not None:
            sets = combine_rules_budgeted(
                candidates, self.y, max_alert_rate=setting["budget"],
                max_rules=setting["max_rules"],
            )  # fmt: skip
        else:
            sets = combine_rules_beam_search(
                candidates, self.y, metric="f1", beam_width=setting["beam"],
                max_rules=setting["max_rules"], min_improvement=setting["step"],
                return_top_k=EVERY,
            )  # fmt: skip
        listed = [[short[key] for key in re.findall(r"\br\d+\b", each)] for each in sets.columns]
        if setting["budget"] is None:
            right = [self.score(sets[each]) > setting["floor"] for each in sets.columns]
            listed = [each for each, is_right in zip(listed, right, strict=True) if is_right]
        return min(listed, key=length, default=[])

    def score(self, alerts: pl.Series) -> float:
        hits = int((alerts & self.y).sum())
        return 2 * hits / (int(alerts.sum()) + int(self.y.sum()))


def length(rules: list[str]) -> int:
    """Attributes of all rules together."""
    return sum(len(set(COLUMN.findall(rule))) for rule in rules)


def frame(X: Any) -> pl.DataFrame:
    return pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})


def covered_by(X: pl.DataFrame, rules: list[str]) -> Any:
    if not rules:
        return np.zeros(len(X), dtype=bool)
    return apply_rules(X, rules).to_numpy().any(axis=1)


def tried(part: Part, setting: dict[str, Any], test: pl.DataFrame) -> dict[str, Any]:
    """The rules of a setting, and the rows that they cover; what is told of one that fails."""
    began = time.process_time()
    try:
        rules = part.learned(setting)
    except Exception as error:  # the others go on
        return {"error": str(error)[:200]}
    return {
        "rules": rules,
        "length": length(rules),
        "conditions": sum(map(count_conditions, rules)),
        "train": np.flatnonzero(covered_by(part.X, rules)).tolist(),
        "test": np.flatnonzero(covered_by(test, rules)).tolist(),
        "seconds": round(time.process_time() - began, 2),
    }


def main(task: Path, answer: Path) -> None:
    warnings.simplefilter("ignore")
    given = np.load(task)
    settings = json.loads(str(given["settings"]))
    seconds = float(given["seconds"])
    signal.signal(signal.SIGPROF, end)
    found: list[dict[str, Any]] = []
    for name in given["parts"].tolist():
        part = Part(given[f"{name}.X"], given[f"{name}.y"], int(given[f"{name}.seed"]))
        test = frame(given[f"{name}.test"])
        try:
            signal.setitimer(signal.ITIMER_PROF, 0 if math.isinf(seconds) else seconds, 1.0)
            for setting in settings:
                learned = tried(part, setting, test)
                found.append({"part": name, "setting": setting, **learned})
        except TimeIsUp:
            pass
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    versions = {"iguanas": version("iguanas"), "xgboost": version("xgboost")}
    answer.write_text(json.dumps({"versions": versions, "found": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
