"""Fit times of all contenders on one set, taken in turn."""

from __future__ import annotations

import gc
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import STAIR, build, fit, fitted, leaves, rival_options
from benchmarks.data import Task

STAT = Path("/proc/stat")


def measure(task: Task) -> dict[str, Any]:
    """Every fit time in seconds, their medians, and Stair's median over each of the others'.

    The contenders alternate, so that a slow moment of the machine hits them all. One fit of Stair
    comes first and is not counted: it tells how many leaves the others get.
    """
    stair = fitted(STAIR, task.stair_options, task.X, task.y)
    options = {STAIR: task.stair_options, **rival_options(len(stair.rules_))}
    made: dict[str, list[int]] = {}
    seconds: dict[str, list[float]] = {name: [] for name in options}
    others = _Others()
    for _ in range(task.rounds):
        for name in options:
            elapsed, made[name] = _timed_fit(name, options[name], task)
            seconds[name].append(elapsed)
    cpus_used_by_others = others.cpus()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    rows, attributes = task.X.shape
    return {
        "data": task.name,
        "rows": rows,
        "attributes": attributes,
        "classes": len(stair.classes_),
        "rules": len(stair.rules_),
        "rules_grown": len(stair.trace_) + 1,
        "score": stair.score_,
        "floor_reached": bool(stair.floor_reached_),
        "options": options,
        "leaves": made,
        "cpus_used_by_others": cpus_used_by_others,
        "seconds": seconds,
        "median_seconds": medians,
        "ratio": {
            name: medians[STAIR] / median for name, median in medians.items() if name != STAIR
        },
    }


def warm_up() -> None:
    """One tiny fit of each, so that nobody's first time includes imports and starting threads."""
    X = np.arange(20.0).reshape(10, 2)
    y = np.arange(10) % 2
    for name, options in {STAIR: {}, **rival_options(2)}.items():
        fitted(name, options, X, y)


def _timed_fit(name: str, options: dict[str, Any], task: Task) -> tuple[float, list[int]]:
    """The wall time of one fit, and the leaves that it made."""
    estimator = build(name, options)
    gc.collect()
    start = time.perf_counter()
    fit(estimator, task.X, task.y)
    elapsed = time.perf_counter() - start
    return elapsed, leaves(name, estimator)


class _Others:
    """How many CPUs all other programs use on average from now on; only Linux tells.

    A busy machine does not slow all contenders alike: threads that wait for each other, as
    LightGBM's do, lose far more than their share. So it is told beside the figures.
    """

    def __init__(self) -> None:
        self._start = self._clocks()

    def cpus(self) -> float | None:
        if self._start is None or (now := self._clocks()) is None:
            return None
        wall, used_by_all, used_here = (b - a for a, b in zip(self._start, now, strict=True))
        return max(0.0, (used_by_all - used_here) / wall)

    @staticmethod
    def _clocks() -> tuple[float, float, float] | None:
        """Seconds: on the wall, of CPUs used by all (stolen ones too), and used by this process."""
        if not STAT.is_file():
            return None
        with STAT.open() as file:
            user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
        used_by_all = (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), used_by_all, time.process_time()
