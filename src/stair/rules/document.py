"""Rules as the JSON in which they travel: versioned, and made of values alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from stair.data.zones import UTC
from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.routing import Routing
from stair.rules.schema import Field

if TYPE_CHECKING:
    from stair.rules.rule_set import Rule, RuleSet

FORMAT: Final = "stair-rules"
VERSION: Final = 2


def document_of(rules: RuleSet, facts: Mapping[str, object]) -> str:
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
    if rules.exceptions:
        document["exceptions"] = [rule_to_json(rule) for rule in rules.exceptions]
    if rules.routing:
        document |= _routing_to_json(rules.routing)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _routing_to_json(routing: Routing) -> dict[str, object]:
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


def _field_to_json(field: Field, is_used: bool) -> dict[str, object]:
    found: dict[str, object] = {"name": field.name, "kind": field.kind, "type": field.type}
    if field.part is not None:
        found |= {"source": field.source, "part": field.part}
    if field.zone not in ("", UTC):
        found["zone"] = field.zone
    if is_used and field.known is not None and field.part is None:
        found["values"] = list(field.known)
    return found


def rule_to_json(rule: Rule) -> dict[str, object]:
    """A rule as it stands in a rules file."""
    return {
        "label": rule.label,
        "counts": [count for _, count in rule.counts],
        "words": str(rule),  # for people; never read back
        "clauses": [{"feature": c.feature, **c.accept(_ClauseToJson())} for c in rule.clauses],
    }


class _ClauseToJson:
    """A clause as it stands in a rules file, but for its field."""

    def interval(self, clause: Interval) -> dict[str, object]:
        # What other columns have is written as it always was.
        whole: dict[str, object] = {"whole": True} if clause.whole else {}
        if clause.only_missing:
            return {**whole, "only": "missing numbers", "missing": clause.missing}
        low, high = clause.bounds
        return {**whole, "above": low, "up_to": high, "missing": clause.missing}

    def period(self, clause: Period) -> dict[str, object]:
        found: dict[str, object] = {"whole_days": clause.whole_days}
        if clause.only_missing:
            return {**found, "only": "missing times", "missing": clause.missing}
        after, until = (None if bound is None else str(bound) for bound in clause.bounds)
        return {**found, "after": after, "until": until, "missing": clause.missing}

    def among(self, clause: Among) -> dict[str, object]:
        key = "not in" if clause.negated else "in"
        networks = {"networks_of": clause.of} if clause.of else {}
        return {key: list(clause.values), "missing": clause.missing, **networks}

    def mentions(self, clause: Mentions) -> dict[str, object]:
        return {"mentions": clause.term, "present": clause.present}
