"""What the fuzzer asks of the library, in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import stair
from fuzz.case import Case
from stair import io
from stair.apply import apply_rules
from stair.export import SavedRules, from_json, load, to_json

Answer = tuple[list[Any], list[int]]  # labels, and numbers of rules from 1; 0 where there is none


def learn(case: Case, data: Any, reading: Mapping[str, Any], **changed: Any) -> Any:
    """Rules for a case, from its table in whatever container."""
    verdict = case.verdict
    said: dict[str, Any] = {}
    if verdict.detector is not None:
        said = {"detector": verdict.detector, "contamination": verdict.contamination}
    elif verdict.kind == "scores":
        said = {"scores": list(verdict.values), "contamination": verdict.contamination}
    else:
        said = {"labels": list(verdict.values)}
    options: dict[str, Any] = {
        **said,
        "method": case.method,
        "effort": "fast",
        "kinds": dict(case.kinds) or None,
        "time_parts": case.time_parts,
        **reading,
        **changed,
    }
    return stair.summarize(data, **options)


def read_frame(data: Any, reading: Mapping[str, Any]) -> io.Frame:
    """A table as the library reads it."""
    return io.read(data, **reading) if isinstance(data, Path) else io.from_object(data)


def apply(saved: SavedRules, frame: io.Frame) -> Answer:
    """What the rules say of each row of a table."""
    applied = apply_rules(saved, frame.columns)
    return applied.labels.tolist(), applied.rules.tolist()


def apply_in_batches(saved: SavedRules, frame: io.Frame, size: int) -> Answer:
    labels: list[Any] = []
    numbers: list[int] = []
    for start in range(0, frame.n_rows, size):
        part = {name: array[start : start + size] for name, array in frame.columns.items()}
        applied = apply_rules(saved, part)
        labels += applied.labels.tolist()
        numbers += applied.rules.tolist()
    return labels, numbers


def plain_columns(frame: io.Frame) -> dict[str, list[Any]]:
    """The columns of a frame as Python values."""
    return {name: plain_values(array) for name, array in frame.columns.items()}


def plain_values(array: Any) -> list[Any]:
    if array.dtype.kind == "M":
        return [None if np.isnat(t) else t.astype("datetime64[us]").item() for t in array]
    return list(array.tolist())


def document_of(saved: SavedRules | Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_json(saved))
    return found


def digest_of(document: Mapping[str, Any]) -> str:
    """The rules alone, whatever was learned from where and with what."""
    kept = {k: v for k, v in document.items() if k not in ("facts", "fields", "schema", "columns")}
    return json.dumps(kept, sort_keys=True)


__all__ = [
    "Answer",
    "SavedRules",
    "apply",
    "apply_in_batches",
    "digest_of",
    "document_of",
    "from_json",
    "learn",
    "load",
    "plain_columns",
    "plain_values",
    "read_frame",
    "to_json",
]
