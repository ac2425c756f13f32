"""The data to fit: the paper's sets that are at hand, and a large generated one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from experiments.datasets import load, lof_labels
from numpy.typing import NDArray

from benchmarks.contenders import STAIR, fitted

SMALL = (
    "Pima", "PageBlock", "Mammography", "Pendigits", "Satimage-2", "Satellite", "SpamBase",
    "Shuttle", "WineQuality",
)  # fmt: skip
COVER = "Cover"
GENERATED = "generated"

NEIGHBORS = 80  # of the local outlier factor, as in the paper
ROUNDS = {COVER: 5, GENERATED: 3}
ROUNDS_SMALL = 15

LEAVES = 64  # that Stair shall make of the generated set
GENERATED_SETTINGS: dict[str, Any] = {
    "seed": 0, "rows": 1_000_000, "attributes": 20, "boxes": 4, "sides": 3, "width": 0.6,
    "noise": 0.05,
}  # fmt: skip
PROBE_LENGTH = 400  # a total length at which the generated set has more than enough rules


@dataclass(frozen=True, eq=False)
class Task:
    """One table with labels, how Stair is set for it, and how often it is fitted."""

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    rounds: int
    stair_options: dict[str, Any] = field(default_factory=dict)


def names(quick: bool) -> tuple[str, ...]:
    """All sets in the order of the table; a quick run leaves out the two large ones."""
    return SMALL if quick else (*SMALL, COVER, GENERATED)


def task(name: str, data_dir: str | None) -> Task:
    """A set by its name. Raises DataNotFound if its file cannot be had."""
    if name == GENERATED:
        X, y = generate(**GENERATED_SETTINGS)
        return Task(name, X, y, ROUNDS[name], options_for_leaves(X, y, LEAVES))
    data = load(name, data_dir)
    y = data.y if data.is_multiclass else lof_labels(data.X, data.n_outliers, NEIGHBORS)
    return Task(name, data.X, y, ROUNDS.get(name, ROUNDS_SMALL))


def generate(
    seed: int, rows: int, attributes: int, boxes: int, sides: int, width: float, noise: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Uniform numbers, labelled 1 inside any of several overlapping boxes; some labels are wrong.

    Each box bounds as many attributes as it has `sides`, each to a range of this `width`. The
    wrong labels (a share of `noise`) keep every rule impure, so that growth never runs dry.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((rows, attributes))
    inside = np.zeros(rows, dtype=np.bool_)
    for _ in range(boxes):
        bounded = rng.choice(attributes, size=sides, replace=False)
        low = rng.uniform(0.0, 1.0 - width, size=sides)
        values = X[:, bounded]
        inside |= ((values >= low) & (values < low + width)).all(axis=1)
    wrong = rng.random(rows) < noise
    return X, (inside ^ wrong).astype(np.int64)


def options_for_leaves(X: NDArray[np.float64], y: NDArray[np.int64], leaves: int) -> dict[str, Any]:
    """Options with which Stair makes exactly so many rules, read off one longer run.

    A floor of 1 is out of reach, so the limit on the total length alone ends the growth: at the
    length that the longer run had when it counted `leaves` rules. Stair then keeps the step with
    the best score, so that step must be the best until then, or these data do not serve.
    """
    probe = fitted(STAIR, {"min_score": 1.0, "max_total_length": PROBE_LENGTH}, X, y)
    steps = [step for step in probe.trace_ if step.n_rules <= leaves]
    if steps[-1].n_rules != leaves or steps[-1].score <= max(step.score for step in steps[:-1]):
        raise RuntimeError(f"no max_total_length makes {leaves} rules of the generated set")
    return {"min_score": 1.0, "max_total_length": steps[-1].total_length}
