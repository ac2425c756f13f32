"""A case: a table, a verdict about it and a new table, as plain values that a file can hold."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

FORMAT = "stair-fuzz"
NESTED = frozenset({"list", "struct", "binary", "mixed"})


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one type, None where missing (a real may also be NaN).

    Types are real, whole, decimal, flag, text, date, naive, zoned, clock, duration, and the nested
    ones. `form` chooses among the ways in which a container can hold such a column.
    """

    name: str
    type: str
    values: tuple[Any, ...]
    form: int = 0
    zone: str = "UTC"

    def take(self, rows: Sequence[int]) -> Column:
        return replace(self, values=tuple(self.values[row] for row in rows))


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, and what a person holds them in."""

    columns: tuple[Column, ...]
    container: str = "dict"

    @property
    def n_rows(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def take(self, rows: Sequence[int]) -> Table:
        return replace(self, columns=tuple(column.take(rows) for column in self.columns))


# Words that are known to mean that nothing is wrong.
NORMAL = ("BENIGN", 0)


class Meaning(NamedTuple):
    """The class of each row (None: no label), and which of them is that of the outliers; with
    several kinds of outlier, which one is normal."""

    truth: tuple[Any, ...]
    outlier: Any = "outlier"
    normal: Any = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about each row, how it is said, and what it means.

    `truth` has the class of each row, None where there is none; it is empty where a detector
    decides. `outlier` is the class of the outliers, None with more than two classes. Of these
    several may be said to be `positive`, or one to be `negative`.
    """

    kind: str
    values: tuple[Any, ...] = ()
    truth: tuple[Any, ...] = ()
    outlier: str | None = "outlier"
    contamination: float | int | None = None
    detector: str | None = None
    positive: tuple[Any, ...] = ()
    negative: Any = None

    def meaning(self, method: str) -> Meaning:
        """What it means to a method: only distilled rules tell kinds of outlier apart."""
        if self.kind != "classes":
            return Meaning(self.truth, self.outlier)
        if self.positive:
            return self._two_sided(self.positive)
        if self.negative is not None and method != "distilled":
            return self._two_sided(set(self.values) - {self.negative})
        normal = self.negative
        if normal is None and method == "distilled":
            counts = Counter(self.values)
            most = [v for v, n in counts.items() if n == max(counts.values())]
            known = [v for v in most if v in NORMAL]
            is_half = 2 * counts[most[0]] > len(self.values)
            normal = known[0] if known else most[0] if is_half else None
        return Meaning(self.values, None, normal)

    def _two_sided(self, outliers: Collection[Any]) -> Meaning:
        return Meaning(tuple("outlier" if v in outliers else "inlier" for v in self.values))

    def take(self, rows: Sequence[int]) -> Verdict:
        values = tuple(self.values[row] for row in rows) if self.values else ()
        truth = tuple(self.truth[row] for row in rows) if self.truth else ()
        if self.kind == "scores" and self.contamination is not None:
            highest = sorted(values, reverse=True)[: int(self.contamination)]
            truth = tuple("outlier" if value in highest else "inlier" for value in values)
        return replace(self, values=values, truth=truth)


@dataclass(frozen=True, slots=True)
class Case:
    """One table with its verdict, how rules are learned from it, and a new table for them."""

    seed: int
    number: int
    table: Table
    verdict: Verdict
    new: Table
    method: str = "stair"
    engine: str = "memory"
    kinds: dict[str, str] = field(default_factory=dict)
    time_parts: bool = False
    extras: tuple[str, ...] = ()  # the dearer checks that this case is for
    time_zone: str | None = None  # said where times have a zone: not every container keeps it
    time_windows: bool = True
    wishes: dict[str, Any] = field(default_factory=dict)  # settings of the method


def case_to_json(case: Case, finding: dict[str, Any] | None = None) -> str:
    document = {
        "format": FORMAT,
        "seed": case.seed,
        "number": case.number,
        "method": case.method,
        "engine": case.engine,
        "kinds": case.kinds,
        "time_parts": case.time_parts,
        "time_zone": case.time_zone,
        "time_windows": case.time_windows,
        "wishes": case.wishes,
        "extras": list(case.extras),
        "verdict": {
            "kind": case.verdict.kind,
            "values": [_scalar_out(v) for v in case.verdict.values],
            "truth": list(case.verdict.truth),
            "outlier": case.verdict.outlier,
            "contamination": case.verdict.contamination,
            "detector": case.verdict.detector,
            "positive": list(case.verdict.positive),
            "negative": case.verdict.negative,
        },
        "table": _table_out(case.table),
        "new": _table_out(case.new),
        "finding": finding,
    }
    return json.dumps(document, indent=None, ensure_ascii=True) + "\n"


def case_from_json(text: str) -> tuple[Case, dict[str, Any]]:
    found = json.loads(text)
    if found.get("format") != FORMAT:
        raise ValueError("this is no case of the fuzzer")
    verdict = found["verdict"]
    return Case(
        found["seed"],
        found["number"],
        _table_in(found["table"]),
        Verdict(
            verdict["kind"],
            tuple(map(_scalar_in, verdict["values"])),
            tuple(verdict["truth"]),
            verdict["outlier"],
            verdict["contamination"],
            verdict["detector"],
            tuple(verdict.get("positive", ())),
            verdict.get("negative"),
        ),
        _table_in(found["new"]),
        found["method"],
        found["engine"],
        found["kinds"],
        found["time_parts"],
        tuple(found["extras"]),
        found.get("time_zone"),
        found.get("time_windows", True),
        found.get("wishes", {}),
    ), found["finding"] or {}


def load_case(path: Path) -> tuple[Case, dict[str, Any]]:
    """The case of a file, and what was found in it."""
    return case_from_json(path.read_text(encoding="utf-8"))


def _table_out(table: Table) -> dict[str, Any]:
    return {
        "container": table.container,
        "columns": [
            {
                "name": column.name,
                "type": column.type,
                "form": column.form,
                "zone": column.zone,
                "values": [_out(column.type, value) for value in column.values],
            }
            for column in table.columns
        ],
    }


def _table_in(found: dict[str, Any]) -> Table:
    return Table(
        tuple(
            Column(
                c["name"],
                c["type"],
                tuple(_in(c["type"], value, c["zone"]) for value in c["values"]),
                c["form"],
                c["zone"],
            )
            for c in found["columns"]
        ),
        found["container"],
    )


def _scalar_out(value: Any) -> Any:
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def _scalar_in(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value


def _out(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "real":
        return _scalar_out(value)
    if kind == "decimal":
        return str(value)
    if kind == "zoned":
        return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat()
    if kind in ("date", "naive", "clock"):
        return value.isoformat()
    if kind == "duration":
        return value // dt.timedelta(microseconds=1)
    if kind == "binary":
        return value.decode("latin-1")
    if kind == "mixed":
        return [type(value).__name__, value]
    return value


def _in(kind: str, value: Any, zone: str) -> Any:
    if value is None:
        return None
    readers: dict[str, Any] = {
        "real": float,
        "decimal": Decimal,
        "date": dt.date.fromisoformat,
        "naive": dt.datetime.fromisoformat,
        "clock": dt.time.fromisoformat,
        "zoned": lambda v: (
            dt.datetime.fromisoformat(v).replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone))
        ),
        "duration": lambda v: dt.timedelta(microseconds=v),
        "binary": lambda v: v.encode("latin-1"),
        "mixed": lambda v: v[1],
    }
    return readers.get(kind, lambda v: v)(value)
