"""The one settings file, read: every constant with its source, and what the paper printed."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parent / "settings.toml"


@dataclass(frozen=True)
class Settings:
    """Constants by name, the paper's tables by question, and whether the run is a quick one."""

    constants: Mapping[str, Any]
    published: Mapping[str, Any]
    quick: bool = False

    def __getitem__(self, name: str) -> Any:
        return self.constants[name]["value"]

    def source(self, name: str) -> str:
        return str(self.constants[name]["source"])

    def paper_length(self, data: str, method: str) -> int | None:
        """The total length that the paper prints for a method, if it prints one."""
        table = self.published["q1"]
        if method not in table["columns"]:
            return None
        return int(table["values"][data][table["columns"].index(method)])

    def paper_partitions(self, data: str, n: int) -> tuple[int, int, int]:
        """Length, rules and partitions of the paper's L-STAIR started with n partitions."""
        length, rules, partitions = self.published["q4"]["values"][data][self["starts"].index(n)]
        return length, rules, partitions

    def lengths(self) -> list[int]:
        """The L_m of Q3."""
        return list(self["quick_lengths" if self.quick else "sweep_lengths"])

    def localities(self) -> list[float]:
        """The λ of L-STAIR, from the largest."""
        return list(self["quick_localities" if self.quick else "localities"])

    def paper_start(self, data: str) -> int:
        """The number of partitions from which the paper's L-STAIR is shortest."""
        return min(self["starts"], key=lambda n: self.paper_partitions(data, n)[0])

    def floors(self) -> list[float]:
        """The floors of Q3."""
        return list(self["quick_floors" if self.quick else "sweep_floors"])


@cache
def read(quick: bool = False) -> Settings:
    """The settings of a full or a quick run."""
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Settings(content["constants"], content["published"], quick)
