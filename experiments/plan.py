"""Which tasks answer which question. Tasks that two questions share are computed once."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from typing import Any

from experiments.data import MULTICLASS
from experiments.settings import Settings
from experiments.tasks import Task, task

QUESTIONS = ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "lambda")

# The paper's methods, ours, and peers from PyPI.
NAMES = {
    "id3": "ID3",
    "cart": "CART",
    "stair": "STAIR",
    "l-stair": "L-STAIR",
    "refined": "refined",
    "l-stair-routed": "L-STAIR routed",
    "distilled": "distilled",
    "ripper": "RIPPER",
    "figs": "FIGS",
}
PAPERS = ("id3", "cart", "stair", "l-stair")
OURS = ("refined", "l-stair-routed", "distilled")
LOCAL = ("l-stair", "l-stair-routed")
PEERS = {"ripper": "wittgenstein", "figs": "imodels"}  # and where they come from


@cache
def installed_peers() -> tuple[str, ...]:
    """The peers that can be imported, which is more than being there: they need others in turn."""
    return tuple(method for method, package in PEERS.items() if is_importable(package))


def is_importable(package: str) -> bool:
    """Tried in a process of its own, so that nothing heavy stays in this one."""
    if find_spec(package) is None:
        return False
    tried = subprocess.run(
        [sys.executable, "-c", f"import {package}"], capture_output=True, text=True
    )
    if tried.returncode:
        why = (tried.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"stair: {package} cannot be imported ({why}); its column is left out.",
              file=sys.stderr)  # fmt: skip
    return tried.returncode == 0


def labels_task(known: Settings, data: str, neighbors: int) -> Task:
    del known
    return task(data, "labels", neighbors=neighbors)


def neighbors_of(known: Settings, each: Task) -> int | None:
    """The LOF labels that a task learns from; None where the data has classes of its own."""
    if each.data == MULTICLASS or each.method == "labels":
        return None
    local = each.method in ("l-stair", "map") or dict(each.settings).get("labels") == "local"
    return int(known["neighbors_local" if local else "neighbors"])


def fit_task(
    known: Settings,
    data: str,
    method: str,
    *,
    floor: float | None = None,
    longest: int | None = None,
    start: int | None = None,
    effort: str | None = None,
    labels: str | None = None,
    locality: float | None = None,
) -> Task:
    """A method at the paper's settings, but for what is given."""
    chosen: dict[str, Any] = {
        "floor": known["floor"] if floor is None else floor,
        "seed": known["seed"],
    }
    if method not in ("id3", "cart"):
        chosen["max_rule_length"] = known["max_rule_length"] if longest is None else longest
    if method in LOCAL:
        chosen["start"] = start
        chosen["max_rounds"] = known["max_rounds"]
    if locality is not None:
        chosen["locality"] = locality
    if method == "distilled":
        chosen["effort"] = effort or known["effort"]
    if labels is not None:
        chosen["labels"] = labels
    return task(data, method, **chosen)


def local_tasks(known: Settings, data: str, method: str) -> list[Task]:
    """L-STAIR from each start; the shortest above the floor is what Q1 speaks of."""
    return [fit_task(known, data, method, start=n) for n in known["starts"]]


def q1_tasks(known: Settings, data: str, method: str) -> list[Task]:
    return local_tasks(known, data, method) if method in LOCAL else [fit_task(known, data, method)]


def peer_task(known: Settings, data: str, method: str) -> Task:
    extra = {"leaves": tuple(known["peer_leaves"])} if method == "figs" else {}
    return task(data, method, floor=known["floor"], seed=known["seed"], **extra)


def same_labels(known: Settings, data: str) -> Task:
    """Plain STAIR on the labels that the paper's L-STAIR is given, to compare like with like."""
    if data == MULTICLASS:
        return fit_task(known, data, "stair")
    return fit_task(known, data, "stair", labels="local")


def budgets(known: Settings, data: str) -> tuple[int, ...]:
    """The ten total lengths of Q2, up to the paper's ID3."""
    longest = known.paper_length(data, "id3")
    assert longest is not None
    n = known["curve_points"]
    return tuple(longest * k // n for k in range(1, n + 1))


def curve_tasks(known: Settings, data: str) -> dict[str, Task]:
    lengths, seed, longest = budgets(known, data), known["seed"], known["max_rule_length"]
    return {
        "id3": task(data, "curve-id3", longest=lengths[-1], seed=seed),
        "cart": task(data, "curve-cart", longest=lengths[-1], seed=seed),
        "stair": task(data, "curve-stair", budgets=lengths, max_rule_length=longest),
        "distilled": task(
            data, "curve-distilled", floors=tuple(known["curve_floors"]), seed=seed,
            max_rule_length=longest, effort=known["sweep_effort"],
        ),
    }  # fmt: skip


def sweep_task(known: Settings, data: str, method: str, **given: Any) -> Task:
    """One point of Q3."""
    if method in LOCAL:
        given["start"] = known["sweep_starts"][0]
    return fit_task(known, data, method, effort=known["sweep_effort"], **given)


def sweep_tasks(known: Settings, data: str, by: str) -> list[tuple[str, float, Task]]:
    """Q3: method, the value of L_m or the floor, and the task. ID3 and CART know no L_m."""
    found: list[tuple[str, float, Task]] = []
    for method in (*PAPERS, *OURS):
        if by == "floor":
            points = [(f, {"floor": f}) for f in known.floors()]
        elif method in ("id3", "cart"):
            points = [(n, {}) for n in known.lengths()]
        else:
            points = [(n, {"longest": n}) for n in known.lengths()]
        found += [(method, value, sweep_task(known, data, method, **g)) for value, g in points]
    return found


def locality_tasks(known: Settings, data: str) -> list[tuple[float, Task]]:
    """The paper's protocol at each λ, from the start with which the paper's is shortest."""
    start = known.paper_start(data)
    return [
        (value, fit_task(known, data, "l-stair", start=start, locality=value))
        for value in known.localities()
    ]


def map_task(known: Settings, data: str) -> Task:
    return task(
        data, "map", floor=known["floor"], seed=known["seed"], start=known["map_start"],
        max_rule_length=known["max_rule_length"], max_rounds=known["max_rounds"],
        rows=known["quick_map_rows" if known.quick else "map_rows"],
        perplexity=known["map_perplexity"],
    )  # fmt: skip


def question_data(known: Settings, question: str, names: list[str]) -> list[str]:
    """The data sets that a question is asked of."""
    if question == "q7":
        return [n for n in names if n == MULTICLASS]
    outliers = [n for n in names if n != MULTICLASS]
    if question == "q2":
        return [n for n in outliers if n in known["curve_data"]]
    if question == "q5":
        return [n for n in outliers if n in known["map_data"]]
    if question == "lambda" and not known.quick:
        return [n for n in outliers if n in known["locality_data"]]
    return outliers


def tasks_for(known: Settings, question: str, data: str, n_rows: int) -> list[Task]:
    """Everything that one question needs on one data set, without the labels."""
    if question == "q7":
        parts = ("q1", "q3", "q4", "q5", "q6")
        return [each for part in parts for each in tasks_for(known, part, data, n_rows)]
    if question == "q1":
        found = [each for m in (*PAPERS, *OURS) for each in q1_tasks(known, data, m)]
        if data != MULTICLASS and n_rows <= known["peer_rows"]:
            found += [peer_task(known, data, method) for method in installed_peers()]
        return found
    if question == "q2":
        return list(curve_tasks(known, data).values())
    if question == "q3":
        return [each for by in ("length", "floor") for _, _, each in sweep_tasks(known, data, by)]
    if question == "q4":
        local = [each for method in LOCAL for each in local_tasks(known, data, method)]
        return [*local, same_labels(known, data), fit_task(known, data, "stair")]
    if question == "q5":
        return [map_task(known, data)]
    if question == "lambda":
        return [each for _, each in locality_tasks(known, data)]
    return [fit_task(known, data, "stair")]
