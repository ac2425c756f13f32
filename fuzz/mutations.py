"""Damaged files of every format that is read: how many were read, refused, or anything else."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from typing import Any

# Each has run(n, seed) -> (Result, findings with the damaged text), and its share of the files.
MODULES = {
    "fuzz.rules_files": 1.0,
    "fuzz.files": 0.1,
    "fuzz.review_files": 0.1,
    "fuzz.work_folders": 0.1,
}


def run(n: int, seed: int, say: Any = print) -> tuple[Counter[str], list[tuple[Any, str]]]:
    """So many rules files, and a tenth as many of each other format."""
    tallies: Counter[str] = Counter()
    kept: list[tuple[Any, str]] = []
    for name, share in MODULES.items():
        if find_spec(name) is None:
            continue
        result, found = import_module(name).run(round(n * share), seed)
        tallies.update(result.tallies)
        kept += found
        for finding, _ in found:
            say(f"{finding.check} | {finding.target} | {finding.kind} | {finding.got}"[:300])
    return tallies, kept
