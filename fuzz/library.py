"""What the fuzzer asks of the library, in one place."""

from __future__ import annotations

import csv
import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import stair
from fuzz.case import Case
from stair.apply import apply_rules
from stair.data import Frame, from_object, read
from stair.export import Rulebook, from_json, load, to_json
from stair.learn.methods import method_of, settings_of
from stair.rules.document import rule_to_json
from stair.rules.record import Record
from stair.rules.rule_set import Rule

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
        if verdict.positive:
            said["positive"] = list(verdict.positive)
        elif verdict.negative is not None:
            said["positive"] = stair.AllBut(verdict.negative)
    options: dict[str, Any] = {
        **said,
        "method": method(case.method, case, **case.wishes),
        "kinds": dict(case.kinds) or None,
        **changed,
    }
    source = stair.Source(data, time_parts=case.time_parts, time_zone=case.time_zone, **reading)
    return stair.summarize(source, **options)


def method(name: str, case: Case, **settings: Any) -> Any:
    """A method with the settings of a case."""
    return fast(name, time_windows=case.time_windows, **settings)


def fast(name: str, **settings: Any) -> Any:
    """A method with little effort, where it knows of more."""
    own = {"effort": "fast"} if "effort" in settings_of(name) else {}
    return method_of(name, **own, **settings)


def with_exceptions(saved: Rulebook, rng: np.random.Generator) -> Rulebook | None:
    """The same rules with exceptions made of their own clauses, some of either retired; None where
    there can be no exceptions."""
    rules = saved.kept
    clauses = list(rules.clauses)
    if not clauses or rules.default == rules.positive:
        return None
    made = []
    for _ in range(int(rng.integers(1, 4))):
        chosen = [clauses[int(k)] for k in rng.integers(len(clauses), size=int(rng.integers(1, 3)))]
        made.append(list({clause.feature: clause for clause in chosen}.values()))
    kept = replace(rules, exceptions=()).with_exceptions(made)
    changed = Rulebook(kept, saved.facts)
    return replace(
        changed,
        records=tuple(_some_record(record, rng) for record in changed.records),
        exception_records=tuple(_some_record(record, rng) for record in changed.exception_records),
    )


def _some_record(record: Record, rng: np.random.Generator) -> Record:
    status = ("candidate", "accepted", "accepted", "retired")[int(rng.integers(4))]
    return replace(record, status=status, owner="ana", since="2024-01-31", until="2024-12-31")


def read_frame(data: Any, reading: Mapping[str, Any], saved: Rulebook | None = None) -> Frame:
    """A table as the library reads it, for rules where there are some."""
    if not isinstance(data, Path):
        return from_object(data)
    return read(data, **reading, texts=() if saved is None else saved.rules.schema.texts())


def apply(saved: Rulebook, frame: Frame) -> Answer:
    """What the rules say of each row of a table."""
    applied = apply_rules(saved, frame)
    return applied.labels.tolist(), applied.rules.tolist()


def apply_in_batches(saved: Rulebook, frame: Frame, size: int) -> Answer:
    labels: list[Any] = []
    numbers: list[int] = []
    for start in range(0, frame.n_rows, size):
        part = {name: array[start : start + size] for name, array in frame.columns.items()}
        n_rows = min(size, frame.n_rows - start)
        found = apply(saved, replace(frame, columns=part, n_rows=n_rows))
        labels += found[0]
        numbers += found[1]
    return labels, numbers


def plain_columns(frame: Frame) -> dict[str, list[Any]]:
    """The columns of a frame as Python values."""
    return {
        name: plain_values(array, frame.types.get(name, ""))
        for name, array in frame.columns.items()
    }


def plain_values(array: Any, was: str = "") -> list[Any]:
    if array.dtype.kind == "M":
        moments = [None if np.isnat(t) else t.astype("datetime64[us]").item() for t in array]
        if was != "zoned":
            return moments
        return [None if t is None else t.replace(tzinfo=dt.UTC) for t in moments]
    listed = list(array.tolist())
    if was == "duration":
        return [None if v != v else dt.timedelta(seconds=v) for v in listed]
    if was == "clock":
        start, hour = dt.datetime(2000, 1, 1), dt.timedelta(hours=1)
        return [None if v != v else (start + v * hour).time() for v in listed]
    return listed


def clauses_as_documents(clauses: Any) -> list[dict[str, Any]]:
    """Clauses as they would stand in a rules file."""
    found: Any = rule_to_json(Rule(tuple(clauses), "outlier"))["clauses"]
    return list(found)


def csv_rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def applied_by_command(saved: Rulebook, data: Path, folder: Path) -> list[list[str]]:
    """The rows that `stair apply` writes for a CSV file."""
    from typer.testing import CliRunner

    from stair.cli import app

    rules, output = folder / "rules.json", folder / "labelled.csv"
    rules.write_text(to_json(saved), encoding="utf-8")
    output.unlink(missing_ok=True)
    done = CliRunner().invoke(
        app, ["apply", str(rules), str(data), "-o", str(output), "--quiet"], catch_exceptions=False
    )
    if done.exit_code not in (0, 1):
        raise stair.StairError(done.output.strip() or f"exit code {done.exit_code}")
    return csv_rows(output)


def document_of(saved: Rulebook | Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(to_json(saved))
    return found


def digest_of(document: Mapping[str, Any]) -> str:
    """The rules alone, whatever was learned from where and with what. Nor does it say what is usual
    beside them, at which engines for large data do not look."""
    others = ("facts", "fields", "schema", "columns", "usual")
    kept = {k: v for k, v in document.items() if k not in others}
    kept["rules"] = [{k: v for k, v in r.items() if k != "evidence"} for r in document["rules"]]
    return json.dumps(kept, sort_keys=True)


__all__ = [
    "Answer",
    "Rulebook",
    "applied_by_command",
    "apply",
    "apply_in_batches",
    "clauses_as_documents",
    "csv_rows",
    "digest_of",
    "document_of",
    "fast",
    "from_json",
    "learn",
    "load",
    "method",
    "plain_columns",
    "plain_values",
    "read_frame",
    "to_json",
    "with_exceptions",
]
