"""One thing to compute, and the store of what was computed: a small file for each.

A file is written whole or not at all, so an interrupted run leaves only finished ones, and the
next run goes on after them. A result counts as done if its task, its data and the version of stair
are the same.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stair import __version__
from stair.data import atomic_write


@dataclass(frozen=True)
class Task:
    """A method with its settings on one data set; equal tasks are computed once."""

    data: str
    method: str
    settings: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:
        return dict(self.settings)[name]

    def __str__(self) -> str:
        words = ", ".join(f"{name} {value}" for name, value in self.settings)
        return f"{self.data}, {self.method}" + (f" ({words})" if words else "")


def task(data: str, method: str, **settings: Any) -> Task:
    return Task(data, method, tuple(sorted(settings.items())))


def versions() -> dict[str, str]:
    """What made a result."""
    import numpy
    import scipy
    import sklearn

    return {
        "stair": __version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


class Store:
    """The finished results in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, Mapping[str, Any]] = {}

    def path(self, task: Task, data_sum: str) -> Path:
        identity = [task.data, task.method, task.settings, data_sum, __version__]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]
        return self._folder / f"{task.data}-{task.method}-{digest}.json"

    def get(self, task: Task, data_sum: str) -> Mapping[str, Any] | None:
        """The whole record, or None where it is not done."""
        path = self.path(task, data_sum)
        if path not in self._read:
            if not path.is_file():
                return None
            self._read[path] = json.loads(path.read_text(encoding="utf-8"))
        return self._read[path]

    def put(self, task: Task, data_sum: str, outcome: Mapping[str, Any]) -> None:
        """Keep a result with its task and the versions that made it."""
        record = {
            "data": task.data,
            "method": task.method,
            "settings": dict(task.settings),
            "data sum": data_sum,
            "versions": versions(),
            **outcome,
        }
        self._folder.mkdir(parents=True, exist_ok=True)
        self._read.pop(self.path(task, data_sum), None)
        atomic_write(self.path(task, data_sum), json.dumps(record) + "\n")
