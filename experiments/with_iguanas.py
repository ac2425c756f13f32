"""Iguanas, in an environment of its own; and the shortest rules above F1 0.8 that it finds.

    python -m experiments.with_iguanas --install .venv-iguanas
    python -m experiments.with_iguanas --python .venv-iguanas/bin/python --sets Pima PageBlock

LOF labels; of all settings the rules that are shortest together and above the floor.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.metrics import f1_score

from experiments.datasets import load, lof_labels, names
from stair.data import atomic_write

RESULTS: Final = Path(__file__).parent / "results"
WORKER: Final = Path(__file__).parent / "iguanas_fit.py"
IGUANAS: Final = "iguanas==1.5.0"
FLOOR: Final = 0.8
NEIGHBORS: Final = 80
SETTINGS: Final[dict[str, list[Any]]] = {
    "depth": [2, 3, 4, 5], "trees": [20], "weights": [[1.0, 10.0]], "max_rules": [30],
    "precision": [0.6, 0.9], "max_corr": [0.9], "min_improvement": [0.001],
}  # fmt: skip


def install(folder: Path) -> None:
    """An environment with Iguanas."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", IGUANAS], check=True)


def ask(
    asked: Mapping[str, tuple[Any, Any, Any]], settings: Mapping[str, list[Any]], python: Path
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Rules by each setting for each part: rows to learn from, their labels, and other rows. What
    fails is told of, and left out."""
    given: dict[str, Any] = {"settings": json.dumps(dict(settings)), "seed": 0}
    for name, (X, y, test) in asked.items():
        given |= {f"{name}.X": X, f"{name}.y": y, f"{name}.test": test}
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder) / "task.npz", Path(folder) / "answer.json"
        np.savez(task, parts=np.array(list(asked)), **given)
        subprocess.run([python, WORKER, task, answer], check=True)
        told = json.loads(answer.read_text(encoding="utf-8"))
    for each in told["found"]:
        if "error" in each:
            print(f"stair: Iguanas, {each['part']}: {each['error']}", file=sys.stderr)
    return [each for each in told["found"] if "error" not in each], told["versions"]


def shortest(answers: list[dict[str, Any]], y: Any) -> dict[str, Any] | None:
    """Of rules above the floor those that are shortest together."""
    found = []
    for each in answers:
        alerts = np.zeros(len(y), dtype=int)
        alerts[each["train"]] = 1
        score = float(f1_score(y, alerts))
        if score > FLOOR:
            found.append(
                {"length": each["length"], "rules": each["n_rules"], "score": score,
                 "conditions": each["conditions"], "setting": each["setting"]}
            )  # fmt: skip
    return min(found, key=lambda each: each["length"], default=None)


def main() -> None:
    known = [name for name in names() if name not in ("Thursday-01-03", "WineQuality")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", type=Path, help="make an environment in this folder")
    parser.add_argument("--python", type=Path, help="the Python that has Iguanas")
    parser.add_argument("--sets", nargs="+", default=known, choices=known)
    parser.add_argument("--data", help="where the data sets are")
    given = parser.parse_args()
    if given.install is not None:
        install(given.install)
        return
    if given.python is None:
        parser.error("name the Python that has Iguanas, or make one with --install FOLDER")
    path = RESULTS / "iguanas.json"
    record: dict[str, Any] = {"sets": {}}
    if path.is_file():
        record = json.loads(path.read_text(encoding="utf-8"))
    for name in given.sets:
        data = load(name, given.data)
        y = lof_labels(data.X, data.n_outliers, NEIGHBORS)
        answers, versions = ask({name: (data.X, y, data.X[:1])}, SETTINGS, given.python)
        record["sets"][name] = shortest(answers, y)
        record |= {"floor": FLOOR, "settings": SETTINGS, "versions": versions}
        atomic_write(path, json.dumps(record, indent=1) + "\n")
        print(name, record["sets"][name], flush=True)


if __name__ == "__main__":
    main()
