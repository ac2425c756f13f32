"""Rules as the JSON in which they travel: versioned, and made of values alone."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from stair.data.zones import UTC
from stair.rules.clauses import Among, Clause, Mentions, Period
from stair.rules.routing import Routing
from stair.rules.schema import Field

if TYPE_CHECKING:
    from stair.rules.rule_set import Rule, RuleSet

FORMAT: Final = "stair-rules"
VERSION: Final = 2


def document_of(rules: RuleSet, facts: Mapping[str, Any]) -> str:
    """Rules with the fields they speak of, and the facts about them."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "facts": dict(facts),
        "classes": list(rules.classes),
        "outlier": rules.positive,
        "default": rules.default,
        "totals": list(rules.totals),
        "fields": [_field_to_json(f, f.name in rules.used) for f in rules.schema.fields],
        "columns": list(rules.schema.columns),
        "rules": [rule_to_json(rule) for rule in rules.rules],
    }
    if rules.routing:
        document |= _routing_to_json(rules.routing)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _routing_to_json(routing: Routing) -> dict[str, Any]:
    """The partitions, and the space in which the nearest center is looked for."""
    return {
        "assigned": routing.assigned,
        "routed": routing.routed,
        "space": [
            {"feature": a.feature, "kind": a.kind, "center": a.center, "scale": a.scale,
             "values": list(a.values)}
            for a in routing.space.dimensions
        ],
        "partitions": [
            {"center": list(p.center), "rows": p.rows, "rules": p.n_rules,
             "description": p.description}
            for p in routing.partitions
        ],
    }  # fmt: skip


def _field_to_json(field: Field, is_used: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "kind": field.kind, "type": field.type}
    if field.part is not None:
        found |= {"source": field.source, "part": field.part}
    if field.zone not in ("", UTC):
        found["zone"] = field.zone
    if is_used and field.known is not None and field.part is None:
        found["values"] = list(field.known)
    return found


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A rule as it stands in a rules file."""
    return {
        "label": rule.label,
        "counts": [count for _, count in rule.counts],
        "words": str(rule),  # for people; never read back
        "clauses": [_clause_to_json(clause) for clause in rule.clauses],
    }


def _clause_to_json(clause: Clause) -> dict[str, Any]:
    found: dict[str, Any] = {"feature": clause.feature}
    if isinstance(clause, Mentions):
        return {**found, "mentions": clause.term, "present": clause.present}
    if isinstance(clause, Among):
        key = "not in" if clause.negated else "in"
        networks = {"networks_of": clause.of} if clause.of else {}
        return {**found, key: list(clause.values), "missing": clause.missing, **networks}
    if isinstance(clause, Period):
        found["whole_days"] = clause.whole_days
        if clause.only_missing:
            return {**found, "only": "missing times", "missing": clause.missing}
        bounded = {"after": clause.after, "until": clause.until}
        free = {Period("").after, Period("").until}
        for key, time in bounded.items():
            found[key] = None if time in free else str(time)
        return {**found, "missing": clause.missing}
    if clause.whole:  # what other columns have is written as it always was
        found["whole"] = True
    if clause.only_missing:
        return {**found, "only": "missing numbers", "missing": clause.missing}
    for key, bound in (("above", clause.low), ("up_to", clause.high)):
        found[key] = bound if math.isfinite(bound) else None
    return {**found, "missing": clause.missing}
