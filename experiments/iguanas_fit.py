"""Rules by Iguanas, in an environment of its own: what to learn from comes in an .npz, what was
learned goes out as JSON. Nothing of stair is imported here, and nothing of Iguanas elsewhere.

    python iguanas_fit.py TASK.npz ANSWER.json
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from iguanas.ruleset_classifier import RulesetClassifier
from xgboost import XGBClassifier

COLUMN = re.compile(r'X\["([^"]+)"\]')


def learned(X: Any, y: Any, setting: dict[str, Any], seed: int) -> str:
    """The rules as Iguanas writes them; empty where it finds none."""
    model = RulesetClassifier(
        estimator=XGBClassifier(
            max_depth=setting["depth"], n_estimators=setting["trees"], random_state=seed, n_jobs=1
        ),
        scale_pos_weights=setting["weights"],
        ranking_metric="f1",
        max_rules=setting["max_rules"],
        metric_thresholds=[
            {"name": "precision", "operator": ">=", "value": setting["precision"]},
        ],
        max_corr=setting["max_corr"],
        min_improvement=setting["min_improvement"],
    )
    model.fit(frame(X), pl.Series("y", y.astype(int)))
    return str(model._best_ruleset_)


def frame(X: Any) -> pl.DataFrame:
    return pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})


def alerts(X: Any, rules: str) -> Any:
    if not rules:
        return np.zeros(len(X), dtype=bool)
    given = RulesetClassifier.from_export(
        {"ruleset": rules, "feature_cols": [f"x{j}" for j in range(X.shape[1])]}
    )
    return np.asarray(given.predict(frame(X)).to_list(), dtype=bool)


def sizes(rules: str) -> tuple[int, int, int]:
    """Rules, attributes of all rules together, and conditions."""
    parts = [COLUMN.findall(part) for part in rules.split("|")] if rules else []
    return len(parts), sum(len(set(part)) for part in parts), sum(map(len, parts))


def grid(known: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(known, each, strict=True)) for each in itertools.product(*known.values())]


def main(task: Path, answer: Path) -> None:
    warnings.simplefilter("ignore")
    given = np.load(task)
    settings = grid(json.loads(str(given["settings"])))
    found = []
    for name in given["parts"].tolist():
        X, y, test = given[f"{name}.X"], given[f"{name}.y"], given[f"{name}.test"]
        for setting in settings:
            try:
                rules = learned(X, y, setting, int(given["seed"]))
            except Exception as error:  # a peer that fails is told of, and the others go on
                found.append({"part": name, "setting": setting, "error": str(error)[:200]})
                continue
            n_rules, length, conditions = sizes(rules)
            found.append(
                {"part": name, "setting": setting, "rules": rules, "n_rules": n_rules,
                 "length": length, "conditions": conditions,
                 "train": np.flatnonzero(alerts(X, rules)).tolist(),
                 "test": np.flatnonzero(alerts(test, rules)).tolist()}
            )  # fmt: skip
    versions = {"iguanas": version("iguanas"), "xgboost": version("xgboost")}
    answer.write_text(json.dumps({"versions": versions, "found": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
