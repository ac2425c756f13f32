"""Wishes beside a floor, and what is known of columns: drawn, and counted anew from the rules file
alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz import oracle
from fuzz.case import Table, Verdict

Rng = np.random.Generator
Wishes = Mapping[str, Any]

FLOORS: dict[str, tuple[Any, ...]] = {
    "min_precision": (0.5, 0.8, 0.95, 1.0),
    "min_rule_precision": (0.5, 0.9, 1.0),
    "min_recall": (0.3, 0.6, 0.9, 1.0),
    "max_alerts": (1, 3, 20, 0.05, 0.3),
    "max_rules": (1, 2, 4),
    "max_total_length": (1, 2, 5),
    "min_score": (0.0, 0.5, 0.9),
    "beta": (0.5, 2.0),
    "one_sided": (True,),
}
HAS_DIRECTION = frozenset({"real", "whole", "decimal", "date", "naive", "zoned"})
KNOWLEDGE = ("direction", "direction", "never", "cost", "group")


def draw_wishes(rng: Rng, table: Table, verdict: Verdict, method: str) -> dict[str, Any]:
    """Settings of a method; mostly none."""
    found: dict[str, Any] = {}
    if method == "distilled" and verdict.kind != "classes" and rng.random() < 0.3:
        for name in rng.permutation(list(FLOORS))[: int(rng.integers(1, 4))].tolist():
            found[name] = FLOORS[name][int(rng.integers(len(FLOORS[name])))]
    if method in ("distilled", "stair", "refined") and rng.random() < 0.2:
        known: dict[str, dict[str, Any]] = {}
        for k in rng.permutation(len(table.columns))[: int(rng.integers(1, 4))].tolist():
            column = table.columns[k]
            what = KNOWLEDGE[int(rng.integers(len(KNOWLEDGE)))]
            way = ("up", "down", "extreme")[int(rng.integers(3))]
            plain: dict[str, Any] = {"direction": way, "never": True, "cost": 3, "group": "these"}
            if what != "direction" or column.type in HAS_DIRECTION:
                known[column.name] = {what: plain[what]}
        if known:
            found["column_wishes"] = known
    return found


def without(wishes: Wishes, name: str) -> dict[str, Any]:
    """What is wished where a column is gone."""
    return _changed(wishes, {n: w for n, w in wishes.get("column_wishes", {}).items() if n != name})


def renamed(wishes: Wishes, old: str, new: str) -> dict[str, Any]:
    """What is wished where a column has another name."""
    known = wishes.get("column_wishes", {})
    return _changed(wishes, {new if n == old else n: w for n, w in known.items()})


def _changed(wishes: Wishes, known: dict[str, Any]) -> dict[str, Any]:
    found = {n: w for n, w in wishes.items() if n != "column_wishes"}
    return {**found, "column_wishes": known} if known else found


# --- counted anew ---------------------------------------------------------------------------------


def recounted(
    document: oracle.Document, columns: oracle.Columns, truth: Sequence[Any], outlier: Any,
    wishes: Wishes,
) -> dict[str, tuple[float, bool]]:  # fmt: skip
    """Of each wish what was had, and whether that is what was asked, from what rules cover."""
    rows = [row for row, label in enumerate(truth) if label is not None]
    kept = {name: [values[row] for row in rows] for name, values in columns.items()}
    numbers = oracle.covered(document, kept, len(rows))
    said = [oracle.label_of(document, next(iter(each), 0)) == outlier for each in numbers]
    own = [truth[row] == outlier for row in rows]
    hits, alerts, total = sum(map(min, said, own)), sum(said), sum(own)
    right = []
    for number in range(1, len(document["rules"]) + 1):
        here = [o for each, o in zip(numbers, own, strict=True) if number in each]
        right.append(Fraction(sum(here), len(here)) if here else None)
    square = Fraction(wishes.get("beta", 1.0)) ** 2
    below = alerts + square * total
    length = sum(_costs(document, rule, wishes) for rule in document["rules"])
    found: dict[str, Any] = {
        "min_score": (1 + square) * hits / below if below else 0,
        "min_precision": Fraction(hits, alerts) if alerts else None,
        "min_rule_precision": None if not right or None in right else min(right),  # type: ignore[type-var]
        "min_recall": Fraction(hits, total) if total else None,
        "max_alerts": alerts,
        "max_total_length": length,
        "max_rules": len(document["rules"]),
    }
    asked = {**wishes, "min_score": wishes.get("min_score", 0.8)}
    return {
        name: _outcome(name, got, asked[name], len(rows))
        for name, got in found.items()
        if name in asked
    }


def _outcome(name: str, got: Any, asked: Any, n_rows: int) -> tuple[float, bool]:
    if got is None:
        return math.nan, False
    floor = Fraction(asked).limit_denominator(1_000_000)
    if name == "min_score":
        return float(got), got > floor or got == 1
    if name.startswith("min"):
        return float(got), got >= floor
    if name == "max_alerts" and isinstance(asked, float):
        return float(Fraction(got, n_rows)), got <= math.floor(floor * n_rows)
    return float(got), got <= asked


def _costs(document: oracle.Document, rule: oracle.Document, wishes: Wishes) -> int:
    known = wishes.get("column_wishes", {})
    source = {f["name"]: f.get("source", f["name"]) for f in document["fields"]}
    names = {c.get("networks_of") or c["feature"] for c in rule["clauses"]}
    return sum((known.get(n) or known.get(source.get(n, n)) or {}).get("cost", 1) for n in names)


def contradictions(document: oracle.Document, wishes: Wishes) -> Iterator[str]:
    """What rules for outliers say against what is known of columns."""
    known = wishes.get("column_wishes", {})
    fields = {f["name"]: f for f in document["fields"]}
    for rule in document["rules"]:
        if rule["label"] == document["default"] or rule["label"] in ("inlier",):
            continue
        groups: dict[str, set[str]] = {}
        for clause in rule["clauses"]:
            field = fields[clause["feature"]]
            source = field.get("source", field["name"])
            wish = known.get(field["name"]) or known.get(source) or {}
            if wish.get("never"):
                yield f"a rule speaks of {source}"
            if "group" in wish:
                groups.setdefault(wish["group"], set()).add(source)
            is_part = field.get("part") is not None
            direction = wish.get("direction") if not is_part or field["name"] in known else None
            if direction is not None and ("in" in clause or "not in" in clause):
                yield f"single values of {source} are named, which has a direction"
            if "only" in clause or {"in", "not in", "mentions"} & {*clause}:
                continue
            low = clause.get("above", clause.get("after")) is not None
            high = clause.get("up_to", clause.get("until")) is not None
            if low and high and (direction is not None or wishes.get("one_sided")):
                yield f"two bounds on {source}"
            if (high and direction == "up") or (low and direction == "down"):
                yield f"a bound on {source} against its direction"
        for group, names in groups.items():
            if len(names) > 1:
                yield f"a rule speaks of several columns of the group {group}"
