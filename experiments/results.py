"""What is done, as the tables ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.settings import Settings
from experiments.tasks import Store, Task


@dataclass(frozen=True)
class Shape:
    """A data set that is here."""

    rows: int
    attributes: int
    outliers: int | None
    sum: str
    made_up: bool


class Results:
    """A task's result, or None where it was not run here."""

    def __init__(self, known: Settings, store: Store, shapes: dict[str, Shape]) -> None:
        self.known = known
        self.shapes = shapes
        self._store = store

    def record(self, each: Task) -> Any:
        if each.data not in self.shapes:
            return None
        return self._store.get(each, self.shapes[each.data].sum)

    def get(self, each: Task) -> Any:
        record = self.record(each)
        return None if record is None else record["result"]
