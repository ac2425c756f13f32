"""How rules travel: versioned JSON that reads back to an equal rule set and executes nothing."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from stair.clauses import Among, Clause, Interval, Mentions, Period
from stair.conversion import Part
from stair.errors import StairError
from stair.export.endings import Endings
from stair.io.reading import regular_file
from stair.local import LocalRuleSet, Partition
from stair.rules import Rule, RuleSet
from stair.schema import KINDS, Field, Schema
from stair.space import Axis, Space

if TYPE_CHECKING:
    from stair.summary import Summary

FORMAT: Final = "stair-rules"
VERSION: Final = 2
_TIME: Final = re.compile(r"[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?")


@dataclass(frozen=True, slots=True)
class SavedRules(Endings):
    """What a rules file holds: the rules, how they were learned, and what is to be said of it."""

    rules: RuleSet
    facts: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        """What the rules may speak of."""
        return self.rules.schema.fields


def to_json(summary: Summary | SavedRules) -> str:
    """The rules of a summary, with the fields they speak of and the facts about them."""
    rules = summary.rules
    document = {
        "format": FORMAT,
        "version": VERSION,
        "facts": summary.facts if isinstance(summary, SavedRules) else _facts(summary),
        "classes": list(rules.classes),
        "outlier": rules.positive,
        "default": rules.default,
        "totals": list(rules.totals),
        "fields": [_field_to_json(f, f.name in rules.used) for f in rules.schema.fields],
        "columns": list(rules.schema.columns),
        "rules": [_rule_to_json(rule) for rule in rules.rules],
    }
    if isinstance(rules, LocalRuleSet):
        document |= _routing_to_json(rules)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _facts(summary: Summary) -> dict[str, Any]:
    return {
        "method": summary.method,
        "score": summary.score,
        "score_name": summary.score_name,
        "floor": summary.min_score,
        "total_length": summary.rules.total_length,
        "rows": summary.n_rows,
        "rows_without_rule": summary.rest.rows,
        "label": summary.meaning,
        "source": summary.source,
        "held_out": list(summary.held_out),
        "left_out": dict(summary.left_out),
        "settings": dict(summary.settings),
        "versions": dict(summary.versions),
    }


def from_json(text: str, source: str = "the rules") -> SavedRules:
    """Read rules back. A broken or unknown file gets one plain sentence."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StairError(f"{source} is not JSON ({error}); expected rules saved by stair") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StairError(f"{source} has no stair rules in it; expected a file made by --json")
    version = document.get("version")
    if isinstance(version, bool) or version not in (1, VERSION):
        raise StairError(
            f"{source} has version {version!r} of the format, but this stair reads versions 1 to "
            f"{VERSION}; install a newer stair or save the rules again"
        )
    try:
        saved = _read(document)
        return saved if version == VERSION else _with_types(saved, source)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise StairError(
            f"{source} is damaged ({type(error).__name__}: {error}); save the rules again"
        ) from None


def load(path: str | Path) -> SavedRules:
    """Read a rules file."""
    path = regular_file(path, "rules saved by stair")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StairError(f"{path.name} is not text; expected rules saved by stair") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StairError(f"cannot read {path}: {why.lower()}") from None
    return from_json(text, path.name)


def _read(document: dict[str, Any]) -> SavedRules:
    fields = tuple(_field_from_json(f) for f in document["fields"])
    classes = tuple(_scalar(c) for c in document["classes"])
    names = {f.name for f in fields}
    rules = tuple(_rule_from_json(r, classes) for r in document["rules"])
    for rule in rules:
        for clause in rule.clauses:
            if clause.feature not in names:
                raise ValueError(f"a rule speaks of {clause.feature!r}, which is no field")
    default, positive = document["default"], document["outlier"]
    if default not in classes or (positive is not None and positive not in classes):
        raise ValueError("a label is not among the classes")
    totals = tuple(_number(t) for t in document["totals"])
    if len(totals) != len(classes):
        raise ValueError("totals and classes differ in number")
    schema = Schema(fields, tuple(_text(name) for name in document.get("columns", ())))
    rule_set = RuleSet(rules, classes, schema, default, totals, positive)
    if "partitions" in document:
        rule_set = _with_routing(rule_set, document)
    return SavedRules(rule_set, dict(_mapping(document["facts"])))


def _with_types(saved: SavedRules, source: str) -> SavedRules:
    """Files of the first version do not say of which types the values were."""
    rules = saved.rules
    clauses = [clause for rule in rules.rules for clause in rule.clauses]
    if isinstance(rules, LocalRuleSet):
        axes = [axis for axis in rules.space.axes if axis.kind == "category"]
        clauses += [Among(axis.feature, axis.values) for axis in axes]
    told = {f.name: f for f in Schema.of_clauses(rules.features, clauses).fields}
    fields = tuple(
        replace(f, type=told[f.name].type) if f.kind == "category" == told[f.name].kind
        and f.part is None else f
        for f in rules.schema.fields
    )  # fmt: skip
    note = f"{source} is of an older stair and does not say of which types its values are; "
    return replace(
        saved,
        rules=replace(rules, schema=replace(rules.schema, fields=fields)),
        notes=(f"{note}they are told from the rules",),
    )


def _routing_to_json(rules: LocalRuleSet) -> dict[str, Any]:
    """The partitions, and the space in which the nearest center is looked for."""
    return {
        "assigned": rules.assigned,
        "routed": rules.routed,
        "space": [
            {"feature": a.feature, "kind": a.kind, "center": a.center, "scale": a.scale,
             "values": list(a.values)}
            for a in rules.space.axes
        ],
        "partitions": [
            {"center": list(p.center), "rows": p.rows, "rules": p.n_rules,
             "description": p.description}
            for p in rules.partitions
        ],
    }  # fmt: skip


def _with_routing(rules: RuleSet, document: dict[str, Any]) -> LocalRuleSet:
    axes = tuple(
        Axis(_text(a["feature"]), _text(a["kind"]), _number(a["center"]), _number(a["scale"]),
             tuple(_scalar(v) for v in a["values"]))
        for a in document["space"]
    )  # fmt: skip
    for axis in axes:
        if axis.feature not in rules.features or axis.kind not in KINDS or axis.scale == 0:
            raise ValueError(f"no distance can be measured along {axis.feature!r}")
    width = sum(axis.width for axis in axes)
    partitions = tuple(
        Partition(tuple(_number(c) for c in p["center"]), _number(p["rows"]),
                  _count(p["rules"]), _text(p["description"]))
        for p in document["partitions"]
    )  # fmt: skip
    if any(len(p.center) != width for p in partitions) or not partitions:
        raise ValueError("the partitions' centers do not fit their space")
    if sum(p.n_rules for p in partitions) != len(rules):
        raise ValueError("the partitions do not have as many rules as there are")
    return LocalRuleSet(
        rules.rules, rules.classes, rules.schema, rules.default, rules.totals, rules.positive,
        partitions, Space(axes), _number(document["assigned"]), _number(document["routed"]),
    )  # fmt: skip


def _field_to_json(field: Field, is_used: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "kind": field.kind, "type": field.type}
    if field.part is not None:
        found |= {"source": field.source, "part": field.part}
    if is_used and field.known is not None and field.part is None:
        found["values"] = list(field.known)
    return found


def _field_from_json(found: dict[str, Any]) -> Field:
    kind, part = found["kind"], found.get("part")
    if kind not in KINDS or (part is not None and part not in get_args(Part)):
        raise ValueError(f"unknown kind of field {kind!r}")
    name = _text(found["name"])
    known = found.get("values")
    return Field(
        name, kind, _text(found.get("source", name)), part, _text(found.get("type", "")),
        None if known is None else tuple(_scalar(v) for v in known),
    )  # fmt: skip


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    return {
        "label": rule.label,
        "counts": [count for _, count in rule.counts],
        "words": str(rule),  # for people; never read back
        "clauses": [_clause_to_json(clause) for clause in rule.clauses],
    }


def _rule_from_json(found: dict[str, Any], classes: tuple[Any, ...]) -> Rule:
    label = _scalar(found["label"])
    if label not in classes:
        raise ValueError(f"label {label!r} is not among the classes")
    counts = [_number(c) for c in found["counts"]]
    clauses = tuple(_clause_from_json(c) for c in found["clauses"])
    return Rule(clauses, label, tuple(zip(classes, counts, strict=True)) if counts else ())


def _clause_to_json(clause: Clause) -> dict[str, Any]:
    found: dict[str, Any] = {"feature": clause.feature}
    if isinstance(clause, Mentions):
        return {**found, "mentions": clause.term, "present": clause.present}
    if isinstance(clause, Among):
        key = "not in" if clause.negated else "in"
        return {**found, key: list(clause.values), "missing": clause.missing}
    if isinstance(clause, Period):
        found["whole_days"] = clause.whole_days
        if clause.only_missing:
            return {**found, "only": "missing times", "missing": clause.missing}
        bounded = {"after": clause.after, "until": clause.until}
        free = {Period("").after, Period("").until}
        for key, time in bounded.items():
            found[key] = None if time in free else str(time)
        return {**found, "missing": clause.missing}
    if clause.only_missing:
        return {**found, "only": "missing numbers", "missing": clause.missing}
    for key, bound in (("above", clause.low), ("up_to", clause.high)):
        found[key] = bound if math.isfinite(bound) else None
    return {**found, "missing": clause.missing}


def _clause_from_json(found: dict[str, Any]) -> Clause:
    feature = _text(found["feature"])
    if "mentions" in found:
        return Mentions(feature, _text(found["mentions"]), _flag(found["present"]))
    missing = _flag(found["missing"])
    if "in" in found or "not in" in found:
        negated = "not in" in found
        values = tuple(_scalar(v) for v in found["not in" if negated else "in"])
        return Among(feature, values, negated, missing)
    if found.get("only") == "missing times":
        days = _flag(found["whole_days"])
        return Period(feature, after=Period(feature).until, missing=missing, whole_days=days)
    if found.get("only") == "missing numbers":
        return Interval(feature, math.inf, math.inf, missing)
    if "after" in found:
        free = Period(feature)
        after, until = (
            given if found[key] is None else _time(found[key])
            for key, given in (("after", free.after), ("until", free.until))
        )
        return Period(feature, after, until, missing, _flag(found["whole_days"]))
    low, high = found["above"], found["up_to"]
    return Interval(
        feature,
        -math.inf if low is None else _number(low),
        math.inf if high is None else _number(high),
        missing,
    )


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"expected names with values, got {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError(f"expected a whole number, got {value!r}")
    return value


def _time(value: Any) -> np.datetime64:
    if not _TIME.fullmatch(_text(value)):  # numpy would also read "now"
        raise ValueError(f"expected a time, got {value!r}")
    return np.datetime64(value, "us")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"expected a number, got {value!r}")
    return value if isinstance(value, int) and abs(value) > 2**53 else float(value)


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"expected a plain value, got {value!r}")
    return value
