"""Rules as a Python function that needs nothing but Python.

The text has no names from the data in it except inside string literals, so no name can become
code. It is written for a person: one condition for each rule, and the rule in words above it.
"""

from __future__ import annotations

import math
from datetime import datetime
from importlib import resources
from typing import Any, cast

import numpy as np

from stair.data.conversion import MEASURES, NETWORKS, WEEKDAYS, Part
from stair.data.zones import fixed_offset
from stair.errors import StairError
from stair.export.needs import needed_fields
from stair.export.routing import CategoryLeg, Leg, TextLeg, legs
from stair.export.words import one_line, verdict
from stair.export.written import source
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period, folded
from stair.rules.routing import Routing
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field


def to_python(rules: RuleSet) -> str:
    """The source of `label(row)` and `rule_number(row)`, for a row that maps names to values."""
    needed = needed_fields(rules)
    names = {field.name: f"x{k}" for k, field in enumerate(needed, start=1)}
    labels = [plain(rules.default), *(plain(rule.label) for rule in rules.rules)]
    lines = [
        '"""Rules written by stair: which label a row gets, and by which rule."""',
        "",
        prelude("row_reader"),
        f"LABELS = {labels!r}  # the first where no rule covers the row",
        "",
        "",
        "def label(row: Any) -> Any:",
        '    """The label of a row, which maps the names of columns to values."""',
        "    return LABELS[rule_number(row)]",
        "",
        "",
        "def rule_number(row: Any) -> int:",
        '    """The number of the first rule that covers the row, 0 where none does."""',
    ]
    lines += [f"    {names[field.name]} = {_read(field)}" for field in needed]
    conditions = [
        " and ".join(_condition(clause, names[clause.feature]) for clause in rule.clauses)
        for rule in rules.rules
    ]
    numbered = list(enumerate(zip(rules.rules, conditions, strict=True), start=1))
    indent = "        " if rules.routing else "    "
    if rules.routing:
        lines += ["    partition = _nearest([", *_distances(rules.routing, names), "    ])"]
    for k, (start, stop) in enumerate(rules.spans):
        if rules.routing:
            words = one_line(rules.partitions[k].description)
            lines.append(f"    if partition == {k}:  # {words}".rstrip(" #"))
        for number, (rule, condition) in numbered[start:stop]:
            lines += _case(number, f"{verdict(rules, rule)}: {rule}", condition, indent)
        lines.append(f"{indent}return 0")
    lines += ["    return 0"] if rules.routing else []
    return "\n".join([*lines, ""])


def prelude(*names: str) -> str:
    """The text of files of this folder without their docstrings, to stand in an exported file."""
    imports: set[str] = set()
    bodies = []
    for name in names:
        text = resources.files("stair.export").joinpath(f"{name}.py").read_text(encoding="utf-8")
        lines = text.split('"""\n', 1)[1].strip().splitlines()
        imports.update(line for line in lines if line.startswith(("import ", "from ")))
        bodies.append("\n".join(line for line in lines if line not in imports).strip())
    own = sorted(line for line in imports if not line.startswith("from stair."))
    return "\n".join(own) + "\n\n" + "\n\n\n".join(bodies) + "\n\n"


def plain(value: Any) -> Any:
    """A value whose repr is a literal of Python."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise StairError(f"{value!r} cannot be written as a value in code")


def as_datetime(time: np.datetime64, feature: str) -> datetime:
    """A bound as Python has it, for the years 1 to 9999."""
    found = time.astype("datetime64[us]").item()
    if not isinstance(found, datetime):
        raise StairError(
            f'the rules compare "{feature}" with {time}, and Python has the years 1 to 9999 alone'
        )
    return found


def bounds(clause: Interval | Period) -> tuple[Any, Any]:
    """The bounds as Python has them, None where there is none."""
    if isinstance(clause, Interval):
        return (
            clause.low if math.isfinite(clause.low) else None,
            clause.high if math.isfinite(clause.high) else None,
        )
    free = Period(clause.feature)
    return (
        as_datetime(clause.after, clause.feature) if clause.after != free.after else None,
        as_datetime(clause.until, clause.feature) if clause.until != free.until else None,
    )


def _case(number: int, words: str, condition: str, indent: str) -> list[str]:
    return [
        f"{indent}# {number}: {one_line(words)}",
        f"{indent}if {condition or 'True'}:",
        f"{indent}    return {number}",
    ]


def _read(field: Field) -> str:
    """The field's value in a row, None where it is missing."""
    given = f"row.get({field.source!r})"
    if field.part is not None and (zone := zone_in_code(field)):
        if field.part == "hour":
            return f"_hour(_time({given}), {zone!r})"
        found = f"(day := _weekday(_time({given}), {zone!r}))"
        return f"None if {found} is None else {list(WEEKDAYS)!r}[day]"
    if field.part == "hour":
        return f"getattr(_time({given}), 'hour', None)"
    if field.part == "weekday":
        return f"None if (day := _time({given})) is None else {list(WEEKDAYS)!r}[day.weekday()]"
    if field.part in NETWORKS:
        return f"_network({given}, {bits_of(field)})"
    spelled = "".join(f", {word!r}" for word in spelling(field))
    return f"{reader_of(field)}({given}{spelled})"


def bits_of(field: Field) -> int:
    """How many bits the networks of a field have."""
    return 8 * NETWORKS[cast(Part, field.part)]


def zone_in_code(field: Field) -> str | int:
    """The zone of hours and weekdays: its name, or the seconds by which it is ahead of UTC."""
    fixed = fixed_offset(field.zone)
    return field.zone if fixed is None else fixed


def reader_of(field: Field) -> str:
    """The function of `row_reader` for a value of this field."""
    if field.type in MEASURES:
        return f"_{field.type}"
    if field.kind != "category":
        return f"_{field.kind}"
    return {"text": "_code", "number": "_number_code", "flag": "_flag", "time": "_time_code"}[
        field.type
    ]


def spelling(field: Field) -> tuple[str, ...]:
    """How true and false were written where they were text, unless in lower case."""
    if field.type != "text" or field.part is not None:
        return ()
    words = field.spelled(True), field.spelled(False)
    return () if words == ("true", "false") else words


def _condition(clause: Clause, x: str) -> str:
    if isinstance(clause, Mentions):
        found = f"{x} is not None and {folded(clause.term)!r} in {x}"
        return f"({found})" if clause.present else f"not ({found})"
    here, gone = f"{x} is not None", f"{x} is None"
    inside = _inside(clause, x)
    if inside is None:
        return gone if clause.missing else "False"
    if not inside:
        return "True" if clause.missing else here
    if clause.missing:
        return f"({gone} or {inside})"
    is_list = isinstance(clause, Among) and not clause.negated  # None is in no list
    return inside if is_list else f"{here} and {inside}"


def _inside(clause: Interval | Period | Among, x: str) -> str | None:
    """What is asked of a value that is there: nothing (""), something, the impossible (None)."""
    if clause.only_missing:
        return None
    if isinstance(clause, Among):
        if not clause.values:
            return ""
        values = tuple(plain(value) for value in clause.values)
        return f"{x} {'not in' if clause.negated else 'in'} {values!r}"
    low, high = ("" if bound is None else source(bound) for bound in bounds(clause))
    if low and high:
        return f"{low} < {x} <= {high}"
    return f"{x} > {low}" if low else f"{x} <= {high}" if high else ""


def _distances(routing: Routing, names: dict[str, str]) -> list[str]:
    """The squared distance to each partition, added up in the order of the attributes."""
    return [
        f"        {' + '.join(_distance(leg, names[leg.feature]) for leg in parts)},"
        for parts in legs(routing)
    ]


def _distance(leg: Leg, x: str) -> str:
    if isinstance(leg, CategoryLeg):
        return f"{ {plain(value): part for value, part in leg.values}!r}.get({x}, {leg.other!r})"
    if isinstance(leg, TextLeg):
        terms = [
            f"({there!r} if {_condition(Mentions(leg.feature, term), x)} else {away!r})"
            for term, there, away in leg.terms
        ]
        return f"({' + '.join(terms)})"
    number = f"_microseconds({x})" if leg.is_time else x
    offset = f"(({number} - {leg.middle!r}) / {leg.scale!r}) / {leg.root!r} - {leg.center!r}"
    gone = f"{x} is None" if leg.is_time else f"{x} is None or {x} - {x} != 0"
    return f"({leg.gone!r} if {gone} else ({offset}) * ({offset}))"
