"""A rules file read back: everything that the published schema says, and what it cannot say.

Nothing in a file is believed. Each object has the keys that it must have and no others, and each
clause speaks of a field of its own kind with values of that field's type. What is damaged raises a
ValueError that says where.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast, get_args

import numpy as np

from stair.data.arrays import EXACT
from stair.data.conversion import NETWORKS, TIME_PARTS, TYPES, WEEKDAYS, Part, network_of
from stair.data.zones import known_zone
from stair.export.usual_reader import read_usual
from stair.rules.clauses import BEGINNING, END, Among, Clause, Interval, Mentions, Period
from stair.rules.document import new_records
from stair.rules.record import STATUSES, Evidence, Record
from stair.rules.routing import NO_ROUTING, Dimension, Partition, Routing, Space
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import KINDS, PART_KINDS, Field, Kind, Schema

# No file that stair writes is nested deeper, and some of what reads it goes inside by calls.
DEEPEST: Final = 30
_TIME: Final = re.compile(r"([+-]?)(\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,6})?", re.ASCII)
_FACTS: Final[dict[str, type | tuple[type, ...]]] = {
    "method": str, "score": (int, float), "score_name": str, "floor": (int, float),
    "total_length": (int, float), "rows": (int, float), "rows_without_rule": (int, float),
    "label": str, "source": str, "held_out": list, "left_out": dict, "settings": dict,
    "versions": dict,
}  # fmt: skip

_RECORD: Final = ("id", "status", "owner", "note", "since", "until", "evidence")
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Mapped: TypeAlias = dict[str, object]  # an object of JSON
Read = TypeVar("Read")


def parsed(text: str) -> object:
    """JSON in which no key stands twice, every number is one, and every text can be written."""
    document = json.loads(
        text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite
    )
    _check_depth(document)
    json.dumps(document, ensure_ascii=False).encode()
    return document


def _once(pairs: list[tuple[str, object]]) -> Mapped:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one place")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _check_depth(document: object) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"there are more than {DEEPEST} things inside each other")
        level = [
            each
            for inside in level
            if isinstance(inside, dict | list)
            for each in (inside.values() if isinstance(inside, dict) else inside)
        ]


Records: TypeAlias = tuple[Record, ...]


def read_rules(document: Mapped, version: int) -> tuple[RuleSet, Mapped, Records, Records]:
    """The rules, the facts about them and a record for each rule and each exception; in the first
    version types are told from the rules, and before the third there are no records."""
    routing = ("assigned", "routed", "space", "partitions")
    has_routing = any(key in document for key in routing)
    _check_keys(
        document,
        ("format", "version", "facts", "classes", "outlier", "default", "totals", "fields", "rules",
         *(("columns",) if version > 1 else ()), *(routing if has_routing else ())),
        ("exceptions", "usual") if version > 2 else (),
    )  # fmt: skip
    facts = _facts(document["facts"])
    classes = _unique(_list(document["classes"], _scalar), "class")
    if not classes or len({isinstance(c, str) for c in classes}) > 1:
        raise ValueError("the classes are neither all texts nor all numbers")
    fields = _list(document["fields"], lambda given: _field(given, version))
    _unique([field.name for field in fields], "field")
    columns = _unique(_list(document.get("columns", []), _text), "column")
    rules = _list(document["rules"], lambda given: _rule(given, classes, version))
    exceptions = _list(document.get("exceptions", []), lambda each: _rule(each, classes, version))
    totals = _list(document["totals"], _amount)
    if len(totals) != len(classes):
        raise ValueError("totals and classes differ in number")
    outlier = document["outlier"]
    found = RuleSet(
        tuple(rules), tuple(classes), Schema(tuple(fields), tuple(columns)),
        _label(document["default"], classes), tuple(totals),
        None if outlier is None else _label(outlier, classes),
        _routing(document, len(rules)) if has_routing else NO_ROUTING,
    )  # fmt: skip
    found = _with_exceptions(found, exceptions)
    if version == 1:
        found = _with_types(found)
    _check_clauses(found)
    if "usual" in document:
        known = {field.name: field for field in fields}
        given = _mapping(document["usual"])
        usual = read_usual(given, known, _whole_amount, _plain_number, _category)
        found = replace(found, usual=usual)
    if version < 3:
        return found, facts, new_records(rules, str(facts.get("source", "")), totals), ()
    listed = [document["rules"], document.get("exceptions", [])]
    records = [_record(_mapping(each), len(classes)) for of in listed for each in cast(Any, of)]
    named = _named(records, [*rules, *exceptions])
    return found, facts, named[: len(rules)], named[len(rules) :]


def _with_exceptions(rules: RuleSet, exceptions: Sequence[Rule]) -> RuleSet:
    if exceptions and rules.default == rules.positive:
        raise ValueError("rows without a rule are outliers, so that there is no exception to them")
    for rule in exceptions:
        if rule.label != rules.default:
            raise ValueError(f"an exception gives the label {shown(rule.label)}, and not that of "
                             "rows without a rule")  # fmt: skip
    return replace(rules, exceptions=tuple(exceptions))


def _facts(given: object) -> Mapped:
    facts = _mapping(given)
    for name, kinds in _FACTS.items():
        if name in facts and (not isinstance(facts[name], kinds) or isinstance(facts[name], bool)):
            raise ValueError(f"the fact {name!r} cannot be {shown(facts[name])}")
    return facts


# --- fields ---------------------------------------------------------------------------------------


def _field(given: object, version: int) -> Field:
    found = _mapping(given)
    has_part = "part" in found or "source" in found
    needed = ("name", "kind", *(("type",) if version > 1 else ()),
              *(("source", "part") if has_part else ()))  # fmt: skip
    kind = found.get("kind")
    more = {"category": ("values",), "number": ("marked",)}.get(str(kind), ())
    may = more if version > 1 and not has_part else ()
    _check_keys(found, needed, (*may, "zone") if found.get("type") == "zoned" else may)
    name, part = _text(found["name"]), cast(Any, found.get("part"))
    if kind not in KINDS:
        raise ValueError(f"{shown(kind)} is no kind of field")
    if has_part and (part not in get_args(Part) or PART_KINDS[part] != kind):
        raise ValueError(f"{shown(part)} is no part of a time or an address that is a {kind}")
    types = TYPES["time" if part in TIME_PARTS else kind]
    type_ = _text(found.get("type", types[0]))
    if type_ not in types:
        raise ValueError(f"a {kind} has no values of the type {type_!r}")
    source, zone = _text(found.get("source", name)), ""
    if "zone" in found:
        zone = _text(found["zone"])
        if known_zone(zone) != zone:
            raise ValueError(f"{shown(zone)} is no time zone")
    field = Field(name, cast(Kind, kind), source, part, type_, zone, marked=_marked(found))
    if "values" not in found:
        return field
    values = _unique(_list(found["values"], _scalar), "value")
    for value in values:
        _check_value(field, value)
    return replace(field, known=tuple(values))


def _marked(found: Mapping[str, object]) -> float:
    share = found.get("marked", 0.0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise ValueError(f"{shown(share)} is no share of rows")
    return float(share)


def _with_types(rules: RuleSet) -> RuleSet:
    """Files of the first version do not say of which types the values were."""
    clauses = [*rules.clauses]
    categories = (d for d in rules.routing.space.dimensions if d.kind == "category")
    clauses += [Among(dimension.feature, dimension.values) for dimension in categories]
    told = {f.name: f for f in Schema.of_clauses(rules.features, clauses).fields}
    fields = tuple(
        replace(f, type=told[f.name].type) if f.kind == "category" == told[f.name].kind
        and f.part is None else f
        for f in rules.schema.fields
    )  # fmt: skip
    return replace(rules, schema=replace(rules.schema, fields=fields))


def _check_value(field: Field, value: object) -> None:
    """Whether a category is one that such a field can have."""
    if field.part == "weekday":
        fits = value in WEEKDAYS
    elif field.part in NETWORKS:
        address, _, _ = str(value).partition("/")
        fits = network_of(address, field.part) == value
    elif field.type == "flag":
        fits = isinstance(value, bool)
    elif field.type == "time":
        fits = isinstance(value, str) and _is_moment(value)
    elif field.type in ("text", "described"):
        fits = isinstance(value, str)
    else:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits:
        raise ValueError(f"{field.name!r} cannot be {shown(value)}: its type is {field.type}")


def _is_moment(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and str(_time(text)) == text


# --- rules ----------------------------------------------------------------------------------------


def _rule(given: object, classes: list[str | float], version: int) -> Rule:
    found = _mapping(given)
    _check_keys(found, ("label", "counts", "clauses"), ("words", *(_RECORD if version > 2 else ())))
    _text(found.get("words", ""))
    counts = _list(found["counts"], _amount)
    if counts and len(counts) != len(classes):
        raise ValueError("counts and classes differ in number")
    clauses = _list(found["clauses"], _clause)
    label = _label(found["label"], classes)
    return Rule(tuple(clauses), label, tuple(zip(classes, counts, strict=True)) if counts else ())


def _record(found: Mapped, n_classes: int) -> Record:
    """What is kept of a rule; the id is empty where somebody wrote the rule by hand."""
    name = _text(found.get("id", ""))
    if "id" in found and not _ID.fullmatch(name):
        raise ValueError(f"{shown(name)} is no id of a rule: letters, digits, . _ and - make one")
    status = found.get("status", "candidate")
    if status not in STATUSES:
        raise ValueError(f"the status {shown(status)} is none of {', '.join(STATUSES)}")
    owner, note = (_text(found.get(key, "")) for key in ("owner", "note"))
    since, until = (_day(found[key]) if key in found else "" for key in ("since", "until"))
    evidence = _evidence(found["evidence"], n_classes) if "evidence" in found else None
    return Record(name, status, owner, note, since, until, evidence)


def _evidence(given: object, n_classes: int) -> Evidence:
    found = _mapping(given)
    _check_keys(found, ("source", "totals"))
    totals = _list(found["totals"], _amount)
    if len(totals) != n_classes:
        raise ValueError("a rule's totals and the classes differ in number")
    return Evidence(_text(found["source"]), tuple(totals))


def _named(records: list[Record], rules: list[Rule]) -> tuple[Record, ...]:
    """The records, each with an id: what has none is called by what it says."""
    taken = _unique([record.id for record in records if record.id], "id")
    without = [rule for rule, record in zip(rules, records, strict=True) if not record.id]
    names = (made.id for made in new_records(without, "", (), taken))
    return tuple(record if record.id else replace(record, id=next(names)) for record in records)


def _clause(given: object) -> Clause:
    found = _mapping(given)
    for key, read in _CLAUSES.items():
        if key in found:
            return read(found, _text(found.get("feature")))
    raise ValueError(f"{shown(found)} is no clause")


def _mentions(found: Mapped, feature: str) -> Mentions:
    _check_keys(found, ("feature", "mentions", "present"))
    term = _text(found["mentions"])
    if not term:
        raise ValueError("a text mentions nothing")
    return Mentions(feature, term, _flag(found["present"]))


def _among(found: Mapped, feature: str) -> Among:
    key = "in" if "in" in found else "not in"
    _check_keys(found, ("feature", key, "missing"), ("networks_of",))
    values = _unique(_list(found[key], _scalar), "value")
    of = _text(found.get("networks_of", ""))
    return Among(feature, tuple(values), key == "not in", _flag(found["missing"]), of)


def _only_missing(found: Mapped, feature: str) -> Interval | Period:
    if found["only"] == "missing numbers":
        _check_keys(found, ("feature", "only", "missing"), ("whole",))
        return Interval(feature, math.inf, math.inf, _flag(found["missing"]), _whole(found))
    if found["only"] != "missing times":
        raise ValueError(f"{shown(found['only'])} is nothing that a clause covers")
    _check_keys(found, ("feature", "whole_days", "only", "missing"))
    return Period(feature, END, END, _flag(found["missing"]), _flag(found["whole_days"]))


def _period(found: Mapped, feature: str) -> Period:
    _check_keys(found, ("feature", "whole_days", "after", "until", "missing"))
    after, until = found["after"], found["until"]
    return Period(
        feature,
        BEGINNING if after is None else _time(after),
        END if until is None else _time(until),
        _flag(found["missing"]),
        _flag(found["whole_days"]),
    )


def _interval(found: Mapped, feature: str) -> Interval:
    _check_keys(found, ("feature", "above", "up_to", "missing"), ("whole",))
    above, up_to = found["above"], found["up_to"]
    return Interval(
        feature,
        -math.inf if above is None else _number(above),
        math.inf if up_to is None else _number(up_to),
        _flag(found["missing"]),
        _whole(found),
    )


def _whole(found: Mapped) -> bool:
    """Whether it is about a column of whole numbers; files of an older stair do not say so."""
    return _flag(found.get("whole", False))


# A clause is known by the first of these keys that it has.
_CLAUSES: Final[dict[str, Callable[[Mapped, str], Clause]]] = {
    "mentions": _mentions,
    "in": _among,
    "not in": _among,
    "only": _only_missing,
    "after": _period,
    "above": _interval,
}


def _check_clauses(rules: RuleSet) -> None:
    """Whether each clause, and each dimension of a distance, is about a field of its own kind."""
    fields = {field.name: field for field in rules.schema.fields}
    for clause in rules.clauses:
        field = fields.get(clause.feature)
        if field is None:
            raise ValueError(f"a rule speaks of {clause.feature!r}, which is no field")
        clause.accept(_Check(field))
    for dimension in rules.routing.space.dimensions:
        name, kind = dimension.feature, dimension.kind
        if name not in fields or fields[name].kind != kind:
            raise ValueError(f"no distance can be measured along {name!r}")
        for value in dimension.values if kind == "category" else ():
            _check_value(fields[name], value)


class _Check:
    """Whether a clause can be asked of a field, and speaks of values that such a field has."""

    def __init__(self, field: Field) -> None:
        self.field = field

    def interval(self, clause: Interval) -> None:
        self._kind(clause, "number")
        if clause.whole and not self.field.is_whole:
            raise ValueError(f"{self.field.name!r} had other than whole numbers, so that they "
                             f"cannot be what {str(clause)!r} means")  # fmt: skip

    def period(self, clause: Period) -> None:
        self._kind(clause, "time")

    def among(self, clause: Among) -> None:
        if clause.values or self.field.kind != "text":  # a text may be missing
            self._kind(clause, "category", "number")
        if clause.of != (self.field.source if self.field.part in NETWORKS else ""):
            raise ValueError(f"{str(clause)!r} is not about networks of {clause.of!r}")
        for value in clause.values:
            _check_value(self.field, value)

    def mentions(self, clause: Mentions) -> None:
        self._kind(clause, "text")

    def _kind(self, clause: Clause, *kinds: str) -> None:
        if self.field.kind not in kinds:
            raise ValueError(f"{str(clause)!r} cannot be asked of a {self.field.kind}")


# --- partitions -----------------------------------------------------------------------------------


def _routing(document: Mapped, n_rules: int) -> Routing:
    dimensions = _list(document["space"], _dimension)
    _unique([dimension.feature for dimension in dimensions], "dimension")
    width = sum(dimension.width for dimension in dimensions)
    partitions = _list(document["partitions"], _partition)
    if not dimensions or not partitions or any(len(p.center) != width for p in partitions):
        raise ValueError("the partitions' centers do not fit their space")
    if sum(p.n_rules for p in partitions) != n_rules:
        raise ValueError("the partitions do not have as many rules as there are")
    scores = (float(_number(document[name])) for name in ("assigned", "routed"))
    return Routing(Space(tuple(dimensions)), tuple(partitions), *scores)


def _dimension(given: object) -> Dimension:
    found = _mapping(given)
    _check_keys(found, ("feature", "kind", "center", "scale", "values"))
    kind, scale = found["kind"], float(_number(found["scale"]))
    values = _unique(_list(found["values"], _scalar), "value")
    if kind not in KINDS or scale <= 0.0 or bool(values) != (kind in ("category", "text")):
        raise ValueError(f"{shown(found)} is no dimension of a distance")
    if kind == "text" and not all(isinstance(v, str) and v for v in values):
        raise ValueError(f"{shown(values)} are no terms of a text")
    center = float(_number(found["center"]))
    return Dimension(_text(found["feature"]), kind, center, scale, tuple(values))


def _partition(given: object) -> Partition:
    found = _mapping(given)
    _check_keys(found, ("center", "rows", "rules", "description"))
    n_rules = _amount(found["rules"])
    if n_rules != int(n_rules):
        raise ValueError(f"there cannot be {n_rules} rules")
    center = [float(number) for number in _list(found["center"], _number)]
    rows, words = _amount(found["rows"]), _text(found["description"])
    return Partition(tuple(center), rows, int(n_rules), words)


# --- values ---------------------------------------------------------------------------------------


def shown(value: object) -> str:
    """A value in a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _mapping(value: object) -> Mapped:
    if not isinstance(value, dict):
        raise ValueError(f"expected names with values, got {shown(value)}")
    return value


def _check_keys(found: Mapped, needed: Iterable[str], may: Iterable[str] = ()) -> None:
    needed = tuple(needed)
    for key in needed:
        if key not in found:
            raise ValueError(f"{key!r} is missing in {shown(found)}")
    unknown = next((key for key in found if key not in (*needed, *may)), None)
    if unknown is not None:
        raise ValueError(f"{unknown!r} is not known in {shown(found)}")


def _list(value: object, read: Callable[[object], Read]) -> list[Read]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {shown(value)}")
    return [read(each) for each in value]


def _unique(values: list[Read], what: str) -> list[Read]:
    if len(set(values)) < len(values):
        twice = next(v for k, v in enumerate(values) if v in values[:k])
        raise ValueError(f"the {what} {shown(twice)} stands twice")
    return values


def _label(value: object, classes: list[str | float]) -> object:
    for label in classes:
        if label == value and isinstance(label, bool) == isinstance(value, bool):
            return label
    raise ValueError(f"the label {shown(value)} is not among the classes")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {shown(value)}")
    return value


def _time(value: object) -> np.datetime64:
    """A time in ISO form; numpy would also read "now", and turn years that it cannot hold."""
    text = _text(value)
    found = _TIME.fullmatch(text)
    time = np.datetime64(text, "us") if found else np.datetime64("NaT", "us")
    whole = f"{found[2]}.{(found[3] or '.')[1:].ljust(6, '0')}" if found else ""
    if np.isnat(time) or str(time).lstrip("+-") != whole:
        raise ValueError(f"expected a time, got {shown(text)}")
    return time


def _day(value: object) -> str:
    text = _text(value)
    if _DAY.fullmatch(text):
        with contextlib.suppress(ValueError):
            return dt.date.fromisoformat(text).isoformat()
    raise ValueError(f"expected a day as 2026-05-02, got {shown(text)}")


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def _number(value: object) -> float:
    """A number: whole ones beyond 2**53 stay what they are."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"expected a number of at most 1.8e308, got {shown(value)}") from None
    return value if isinstance(value, int) and abs(value) > EXACT else number


def _amount(value: object) -> float:
    number = float(_number(value))
    if number < 0.0:
        raise ValueError(f"there cannot be {number} rows")
    return number


def _whole_amount(value: object) -> int:
    number = _number(value)
    if number < 0 or number != int(number):
        raise ValueError(f"there cannot be {shown(value)} rows")
    return int(number)


def _plain_number(value: object) -> float:
    return float(_number(value))


def _category(field: Field, value: object) -> object:
    """A category, as such a field can have it."""
    _check_value(field, _scalar(value))
    return value


def _scalar(value: object) -> str | float:
    if isinstance(value, str | bool):
        return value
    _number(value)
    return cast(float, value)  # a whole number stays one
