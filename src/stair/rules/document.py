"""Rules as the JSON in which they travel: versioned, and made of values alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from stair.data.zones import UTC
from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.record import Evidence, Record
from stair.rules.routing import Routing
from stair.rules.schema import Field
from stair.rules.usual import Usual

if TYPE_CHECKING:
    from stair.rules.rule_set import Rule, RuleSet

FORMAT: Final = "stair-rules"
VERSION: Final = 3


def document_of(
    rules: RuleSet,
    facts: Mapping[str, object],
    records: Sequence[Record] = (),
    exception_records: Sequence[Record] = (),
) -> str:
    """Rules with the fields they speak of, the facts about them, and a record for each rule and
    each exception; without any they are candidates that were just learned.

    Made to be kept under version control: the order is stable, each rule has lines of its own,
    and what is said of one rule stands in no other place.
    """
    source = str(facts.get("source", ""))
    records = records or new_records(rules.rules, source, rules.totals)
    exception_records = exception_records or new_records(
        rules.exceptions, source, rules.totals, (record.id for record in records)
    )
    document: dict[str, str] = {
        "format": _line(FORMAT),
        "version": _line(VERSION),
        "facts": _lines(f"{_line(name)}: {_line(fact)}" for name, fact in facts.items()),
        "classes": _line(list(rules.classes)),
        "outlier": _line(rules.positive),
        "default": _line(rules.default),
        "totals": _line(_plain(rules.totals)),
        "fields": _list(
            _line(_field_to_json(f, f.name in rules.used)) for f in rules.schema.fields
        ),
        "columns": _line(list(rules.schema.columns)),
        "rules": _list(map(_rule_in_lines, rules.rules, records)),
    }
    if rules.exceptions:
        document["exceptions"] = _list(map(_rule_in_lines, rules.exceptions, exception_records))
    if rules.routing:
        routing = _routing_to_json(rules.routing)
        document |= {key: _line(value) for key, value in routing.items()}
    if rules.usual is not None:
        document["usual"] = _usual_in_lines(rules.usual)
    inside = ",\n".join(f" {_line(key)}: {text}" for key, text in document.items())
    return f"{{\n{inside}\n}}\n"


def new_records(
    rules: Iterable[Rule], source: str, totals: Sequence[float], taken: Iterable[str] = ()
) -> tuple[Record, ...]:
    """Records for rules that have none yet: candidates, each with an id that is not `taken`."""
    evidence = Evidence(source, tuple(totals)) if any(totals) else None
    found = []
    names = {*taken}
    for rule in rules:
        name = own = id_of(rule)
        number = 1
        while name in names:
            number += 1
            name = f"{own}-{number}"
        names.add(name)
        found.append(Record(name, evidence=evidence if rule.counts else None))
    return tuple(found)


def id_of(rule: Rule) -> str:
    """A short name for what a rule says, the same on every machine and whatever it was learned
    from."""
    said = rule_to_json(replace(rule, counts=()))
    text = json.dumps([said["label"], said["clauses"]])
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _rule_in_lines(rule: Rule, record: Record) -> str:
    """A rule and its record, a line for each thing that can change, and one for each clause."""
    said = {**record_to_json(record), **rule_to_json(rule)}
    evidence = said.pop("evidence", None)
    clauses = [_line(clause) for clause in said.pop("clauses")]  # type: ignore[attr-defined]
    lines = [f"{_line(key)}: {_line(value)}" for key, value in said.items()]
    lines.append(f"{_line('clauses')}: {_list(clauses, 3)}")
    if evidence is not None:
        lines.append(f"{_line('evidence')}: {_line(evidence)}")
    return _lines(lines, 2)


def _usual_in_lines(usual: Usual) -> str:
    """What is usual, a line for each field: nobody reads it number by number."""
    fields = (_line({"field": name, **asdict(habit)}) for name, habit in usual.fields.items())
    return _lines([f"{_line('of')}: {_line(usual.who)}", f"{_line('fields')}: {_list(fields, 2)}"])


def record_to_json(record: Record) -> dict[str, object]:
    """What is kept of a rule, as it stands in a rules file; what is empty is not written."""
    words = {name: getattr(record, name) for name in ("owner", "note", "since", "until")}
    found: dict[str, object] = {"id": record.id, "status": record.status}
    found |= {name: text for name, text in words.items() if text}
    if record.evidence is not None:
        totals = _plain(record.evidence.totals)
        found["evidence"] = {"source": record.evidence.source, "totals": totals}
    return found


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(lines: Iterable[str], depth: int = 1) -> str:
    return _block("{}", lines, depth)


def _list(lines: Iterable[str], depth: int = 1) -> str:
    return _block("[]", lines, depth)


def _block(marks: str, lines: Iterable[str], depth: int) -> str:
    """Each in a line of its own, one deeper than the marks around them."""
    inside = ",\n".join(f"{' ' * (depth + 1)}{line}" for line in lines)
    return f"{marks[0]}\n{inside}\n{' ' * depth}{marks[1]}" if inside else marks


def _plain(counts: Iterable[float]) -> list[float]:
    """Rows are whole numbers, unless they are weights."""
    return [int(count) if count == int(count) else count for count in counts]


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
    if field.marked:
        found["marked"] = field.marked
    if is_used and field.known is not None and field.part is None:
        found["values"] = list(field.known)
    return found


def rule_to_json(rule: Rule) -> dict[str, object]:
    """A rule as it stands in a rules file."""
    return {
        "label": rule.label,
        "counts": _plain(count for _, count in rule.counts),
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
