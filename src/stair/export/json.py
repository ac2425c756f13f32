"""How rules travel: versioned JSON that reads back to an equal rule set and executes nothing."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stair.data.reading import regular_file
from stair.data.zones import UTC
from stair.errors import StairError
from stair.export.endings import Endings
from stair.export.json_reader import parsed, read_rules, shown
from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.routing import Routing
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field
from stair.verdict.codebook import Codebook

if TYPE_CHECKING:
    from stair.evidence.findings import Findings

FORMAT: Final = "stair-rules"
VERSION: Final = 2


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

    @property
    def codebook(self) -> Codebook | None:
        """Which values of the label meant which class; None where the file does not say so."""
        values, others = self.facts.get("label_values"), self.facts.get("other_values")
        n_classes = len(self.rules.classes)
        if not isinstance(values, list) or len(values) != n_classes:
            return None
        scalars = (str, int, float)
        if not all(isinstance(s, list) and all(isinstance(v, scalars) for v in s) for s in values):
            return None
        is_class = isinstance(others, int) and 0 <= others <= n_classes
        return Codebook(tuple(map(tuple, values)), others if is_class else None)


def to_json(summary: Findings | SavedRules) -> str:
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
        "rules": [rule_to_json(rule) for rule in rules.rules],
    }
    if rules.routing:
        document |= _routing_to_json(rules.routing)
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _facts(summary: Findings) -> dict[str, Any]:
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
        "bounds": summary.rules.n_bounds,
        "held_out": list(summary.held_out),
        **_holding(summary),
        **_labels(summary),
        "left_out": dict(summary.left_out),
        "settings": dict(summary.settings),
        "versions": dict(summary.versions),
    }


def _holding(summary: Findings) -> dict[str, Any]:
    """Whether the rules hold, how each kind of outlier does, and what one more rule would add."""
    found: dict[str, Any] = {}
    if summary.check is not None:
        found["holds"] = summary.check.conclusion
        found["held_out_score"] = summary.check.score
        found["found_again"] = list(summary.check.found_again)
    if summary.kinds:
        found["kinds"] = [
            {"label": kind.label, "rows": kind.rows, "score": kind.score, "reached": kind.reached}
            for kind in summary.kinds
        ]
    if summary.further is not None:
        found["next_rule"] = {
            "words": str(summary.further.rule),
            "length": summary.further.rule.length,
            "outliers": summary.further.outliers,
            "score": summary.further.score,
        }
    return found


def _labels(summary: Findings) -> dict[str, Any]:
    """How all rules together did, and what the values of the label mean: to judge them again."""
    found: dict[str, Any] = {}
    precision, recall = summary.precision, summary.recall
    if math.isfinite(precision) and math.isfinite(recall):
        found |= {"precision": precision, "recall": recall}
    if summary.codebook is not None:
        found["label_values"] = [list(of_class) for of_class in summary.codebook.values]
        found["other_values"] = summary.codebook.others
    return found


def from_json(text: str, source: str = "the rules") -> SavedRules:
    """Read rules back. A broken or unknown file gets one plain sentence."""
    try:
        document = parsed(text)
    except (ValueError, RecursionError) as error:  # a text that no file holds is one of the former
        why = str(error).splitlines()[0]
        raise StairError(f"{source} is not JSON ({why}); expected rules saved by stair") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StairError(f"{source} has no stair rules in it; expected rules saved by stair")
    version = document.get("version")
    if isinstance(version, bool) or version not in (1, VERSION):
        raise StairError(
            f"{source} has version {shown(version)} of the format, but this stair reads versions 1 "
            f"to {VERSION}; install a newer stair or save the rules again"
        )
    try:
        rules, facts = read_rules(document, int(version))
    except ValueError as error:
        raise StairError(f"{source} is damaged ({error}); save the rules again") from None
    note = f"{source} is of an older stair and does not say of which types its values are; "
    notes = (f"{note}they are told from the rules",) if version < VERSION else ()
    return SavedRules(rules, facts, notes)


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
        "clauses": [
            {"feature": clause.feature, **clause.accept(_ClauseToJson())} for clause in rule.clauses
        ],
    }


class _ClauseToJson:
    """A clause as it stands in a rules file, but for its field."""

    def interval(self, clause: Interval) -> dict[str, Any]:
        # What other columns have is written as it always was.
        whole = {"whole": True} if clause.whole else {}
        if clause.only_missing:
            return {**whole, "only": "missing numbers", "missing": clause.missing}
        low, high = clause.bounds
        return {**whole, "above": low, "up_to": high, "missing": clause.missing}

    def period(self, clause: Period) -> dict[str, Any]:
        found = {"whole_days": clause.whole_days}
        if clause.only_missing:
            return {**found, "only": "missing times", "missing": clause.missing}
        after, until = (None if bound is None else str(bound) for bound in clause.bounds)
        return {**found, "after": after, "until": until, "missing": clause.missing}

    def among(self, clause: Among) -> dict[str, Any]:
        key = "not in" if clause.negated else "in"
        networks = {"networks_of": clause.of} if clause.of else {}
        return {key: list(clause.values), "missing": clause.missing, **networks}

    def mentions(self, clause: Mentions) -> dict[str, Any]:
        return {"mentions": clause.term, "present": clause.present}
