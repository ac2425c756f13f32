"""Rules as a Python function that needs nothing but Python.

The text has no names from the data in it except inside string literals, so no name can become
code. It is written for a person: one condition for each rule, and the rule in words above it.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from stair.data.conversion import NETWORKS, WEEKDAYS
from stair.export.code import (
    bits_of,
    bounds,
    plain,
    prelude,
    reader_of,
    source,
    spelling,
    zone_in_code,
)
from stair.export.conditions import Conditions, OfValue
from stair.export.masks import has_exceptions
from stair.export.needs import needed_fields
from stair.export.routing import CategoryLeg, Leg, TextLeg, legs
from stair.export.sentences import one_line, verdict
from stair.rules.clauses import Among, Interval, Mentions, Period, folded
from stair.rules.routing import Routing
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field


def to_python(rules: RuleSet) -> str:
    """The source of `label(row)` and `rule_number(row)`, for a row that maps names to values."""
    needed = needed_fields(rules)
    names = {field.name: f"x{k}" for k, field in enumerate(needed, start=1)}
    conditions = _Conditions(names)
    labels = [plain(rules.default), *(plain(rule.label) for rule in rules.rules)]
    excepting = has_exceptions(rules)
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
        *(_EXCEPTING if excepting else ()),
    ]
    lines += [f"    {names[field.name]} = {_read(field)}" for field in needed]
    if excepting:
        lines += [*_exceptions(rules, conditions), "    lifted = 0"]
    none = "0, lifted" if excepting else "0"
    cases = []
    for number, rule in enumerate(rules.rules, start=1):
        found = f"{number}, lifted" if excepting else f"{number}"
        cases.append([
            f"    # {number}: {one_line(f'{verdict(rules, rule)}: {rule}')}",
            f"    if {_all_of(rule, conditions)}:",
            f"        return {found}",
        ])  # fmt: skip
        if excepting and rule.label != rules.default:
            cases[-1][-1:] = [
                "        if not exception:",
                f"            return {found}",
                "        lifted = exception",
            ]
    if not rules.routing:
        return "\n".join([*lines, *chain.from_iterable(cases), f"    return {none}", ""])
    lines += ["    partition = _nearest([", *_distances(rules.routing, conditions), "    ])"]
    for k, (start, stop) in enumerate(rules.spans):
        words = one_line(rules.partitions[k].description)
        lines.append(f"    if partition == {k}:  # {words}".rstrip(" #"))
        lines += [f"    {line}" for line in chain.from_iterable(cases[start:stop])]
        lines.append(f"        return {none}")
    return "\n".join([*lines, f"    return {none}", ""])


# What an exported file has besides where there are exceptions.
_EXCEPTING: Final = (
    "    return _decided(row)[0]",
    "",
    "",
    "def exception_number(row: Any) -> int:",
    '    """The number of the exception that takes the row from a rule, 0 where none does."""',
    "    return _decided(row)[1]",
    "",
    "",
    "def _decided(row: Any) -> tuple[int, int]:",
    '    """The number of the rule, and that of the exception."""',
)


def _exceptions(rules: RuleSet, conditions: _Conditions) -> list[str]:
    """Which exception covers the row."""
    found = ["    exception = 0"]
    for number, rule in enumerate(rules.exceptions, start=1):
        found += [
            f"    # exception {number}: {one_line(f'{verdict(rules, rule)}: {rule}')}",
            f"    if not exception and {_all_of(rule, conditions)}:",
            f"        exception = {number}",
        ]
    return found


def _all_of(rule: Rule, conditions: _Conditions) -> str:
    return " and ".join(map(conditions.of, rule.clauses)) or "True"


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


class _Conditions(Conditions[str, str]):
    """Clauses about the variables that have the values of fields."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def column(self, feature: str) -> str:
        return self._names[feature]

    def here(self, column: str) -> str:
        return f"{column} is not None"

    def gone(self, column: str) -> str:
        return f"{column} is None"

    def always(self) -> str:
        return "True"

    def never(self) -> str:
        return "False"

    def between(self, clause: Interval | Period, column: str) -> str | None:
        low, high = (None if bound is None else source(bound) for bound in bounds(clause))
        if low and high:
            return f"{low} < {column} <= {high}"
        return f"{column} > {low}" if low else f"{column} <= {high}" if high else None

    def listed(self, clause: Among, column: str) -> str | None:
        values = tuple(plain(value) for value in clause.values)
        return f"{column} {'not in' if clause.negated else 'in'} {values!r}" if values else None

    def inside(self, clause: OfValue, column: str, inside: str) -> str:
        if clause.missing:
            return f"({self.gone(column)} or {inside})"
        is_list = clause.categories and not clause.negated  # None is in no list
        return inside if is_list else f"{self.here(column)} and {inside}"

    def mentions(self, clause: Mentions) -> str:
        column = self.column(clause.feature)
        found = f"({self.here(column)} and {folded(clause.term)!r} in {column})"
        return found if clause.present else f"not {found}"


def _distances(routing: Routing, conditions: _Conditions) -> list[str]:
    """The squared distance to each partition, added up in the order of the attributes."""
    return [
        f"        {' + '.join(_distance(leg, conditions) for leg in parts)},"
        for parts in legs(routing)
    ]


def _distance(leg: Leg, conditions: _Conditions) -> str:
    x = conditions.column(leg.feature)
    if isinstance(leg, CategoryLeg):
        return f"{ {plain(value): part for value, part in leg.values}!r}.get({x}, {leg.other!r})"
    if isinstance(leg, TextLeg):
        terms = [
            f"({there!r} if {conditions.of(Mentions(leg.feature, term))} else {away!r})"
            for term, there, away in leg.terms
        ]
        return f"({' + '.join(terms)})"
    number = f"_microseconds({x})" if leg.is_time else x
    offset = f"(({number} - {leg.middle!r}) / {leg.scale!r}) / {leg.root!r} - {leg.center!r}"
    gone = f"{x} is None" if leg.is_time else f"{x} is None or {x} - {x} != 0"
    return f"({leg.gone!r} if {gone} else ({offset}) * ({offset}))"
