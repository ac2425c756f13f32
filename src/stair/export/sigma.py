"""Rules as detections of Sigma, one for each rule that flags events: YAML, of which converters make
the queries of a SIEM.

A condition of Sigma is made of named searches. Each clause becomes tests, all of which must hold;
those that one search can say become its entries, and those that are negated get a search of their
own. Texts are compared letter by letter only where that is asked for (`cased`). What Sigma has no
words for is refused, with the rule that asks for it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from stair.data.arrays import EXACT
from stair.data.conversion import MEASURES, NETWORKS
from stair.data.zones import fixed_offset
from stair.errors import StairError
from stair.export.conditions import Conditions, OfValue
from stair.export.detections import Detection, check_each, something_to_find
from stair.export.needs import needed_fields, refuse_wide
from stair.export.yaml import quoted
from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field

Value: TypeAlias = str | float | bool | None

LEVELS: Final = ((0.9, "high"), (0.5, "medium"), (0.0, "low"))
"""From which share of right rows on a detection has which level; where none is known it informs."""
_LONGEST_TITLE: Final = 256
_PLAIN: Final = re.compile(r"[A-Za-z_][\w.]*(\|[a-z]+)*", re.A)
_NO_TEXT: Final = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # to YAML
_NAMED_SO: Final = uuid.UUID("6f1c8f3e-3d0a-5d53-9d8e-6a3b7e0f5c11")


class _Entry(NamedTuple):
    """A field with its modifiers, and values of which it must have one."""

    key: str
    values: tuple[Value, ...]


class _Test(NamedTuple):
    """Something of which one entry must hold; none of them where it is negated."""

    entries: tuple[_Entry, ...]
    negated: bool = False


class _NeverError(Exception):
    """A clause holds for no value."""


_Tests: TypeAlias = tuple[_Test, ...]
"""All of them must hold: where there are none, nothing is asked."""


def to_sigma(rules: RuleSet, table: str | Sequence[str] = "data") -> str:
    """The detections as YAML, one document for each.

    The table is the category of the log source; before it there may be the product: ("windows",
    "process_creation").
    """
    found = something_to_find(rules, "Sigma")
    source = _log_source(table)
    if rules.routing:
        raise StairError(
            f"rule {found[0].number}, {found[0].words}, is about one of several partitions: Sigma "
            "cannot find the nearest of them"
        )
    check_each(rules, _written)
    written = _written(rules)
    found = tuple(each for each in found if written[each.number - 1] is not None)
    if not found:
        raise StairError(
            "none of these rules can flag a row, so there is nothing for Sigma to find"
        )
    return "---\n".join(_document(rules, each, written, source) for each in found)


def _log_source(table: str | Sequence[str]) -> list[str]:
    parts = (table,) if isinstance(table, str) else tuple(table)
    if len(parts) not in (1, 2) or not all(parts):
        raise StairError(
            f"a log source with the names {parts!r}; expected its category, and before that its "
            "product"
        )
    named = zip(("product", "category")[-len(parts) :], parts, strict=True)
    return ["logsource:", *(f"  {name}: {quoted(part)}" for name, part in named)]


def _written(rules: RuleSet) -> list[_Tests | None]:
    """The tests of all rules and of all exceptions; None for one that covers nothing at all."""
    refuse_wide(rules, "Sigma")
    writer = _Writer(rules)
    return [writer.rule(rule) for rule in (*rules.rules, *rules.exceptions)]


def _document(
    rules: RuleSet, found: Detection, written: Sequence[_Tests | None], source: list[str]
) -> str:
    """A row belongs to the first rule that covers it, and to none where an exception does."""
    here = found.number - 1
    groups = {"": written[here]}
    for number, earlier in enumerate(rules.rules[:here], 1):
        if not _are_apart(earlier, rules.rules[here]):
            groups[f"earlier_{number}"] = written[number - 1]
    for number, tests in enumerate(written[len(rules) :], 1):
        groups[f"exception_{number}"] = tests
    searches: list[str] = []
    conditions: list[str] = []
    for name, tests in groups.items():
        if tests is None:
            continue
        lines, parts = _searches(name, tests)
        searches += lines
        if name:
            conditions.append(f"not {parts[0]}" if len(parts) == 1 and " " not in parts[0]
                              else f"not ({' and '.join(parts)})")  # fmt: skip
        else:
            conditions += parts
    detection = ["detection:", *searches, f"  condition: {' and '.join(conditions)}"]
    title = f"Rule {found.number}: {found.words}"
    if len(title) > _LONGEST_TITLE:
        title = title[: _LONGEST_TITLE - 1] + "…"
    return "\n".join([
        f"title: {quoted(title)}",
        f"id: {uuid.uuid5(_NAMED_SO, chr(10).join([*source, *detection]))}",
        "status: experimental",
        f"description: {quoted(found.sentence)}",
        *source,
        *detection,
        *_false_positives(found),
        f"level: {_level(found.precision)}",
        "custom:",
        f"  stair_rule: {found.number}",
    ]) + "\n"  # fmt: skip


def _false_positives(found: Detection) -> list[str]:
    if not found.rows:
        return []
    wrong = f"{found.rows * (1 - found.precision):,.6g} of {found.rows:,.6g} rows"
    return ["falsepositives:", f"  - {quoted(f'{wrong} that it covered when it was learned')}"]


def _level(precision: float) -> str:
    return next((name for least, name in LEVELS if precision >= least), "informational")


def _are_apart(one: Rule, other: Rule) -> bool:
    """Whether no row can be covered by both, as can be told from two clauses on one column."""
    mine = {clause.group: clause for clause in one.clauses}
    for theirs in other.clauses:
        clause: Any = mine.get(theirs.group)
        if clause is None:
            continue
        if isinstance(theirs, Mentions):
            if clause.present != theirs.present:
                return True
            continue
        both = clause & theirs
        if both.only_missing and not both.missing:
            return True
    return False


def _searches(name: str, tests: _Tests) -> tuple[list[str], list[str]]:
    """The searches of a rule, and what its condition asks of them.

    One of them has all entries that stand alone, each key once; there is one for each choice, and
    one for everything that must not hold.
    """
    together: dict[str, tuple[Value, ...]] = {}
    choices: list[list[dict[str, tuple[Value, ...]]]] = []
    none_of: list[dict[str, tuple[Value, ...]]] = []
    for entries, negated in dict.fromkeys(tests):
        maps = [{key: values} for key, values in entries]
        if negated:
            none_of += [each for each in maps if each not in none_of]
        elif len(entries) == 1 and entries[0].key not in together:
            together |= maps[0]
        else:
            choices.append(maps)
    lines: list[str] = []
    parts: list[str] = []
    for number, maps in enumerate(([[together]] if together else []) + choices, 1):
        own = f"{name or 'selection'}{f'_{number}' if number > 1 else ''}"
        lines += _search(own, maps)
        parts.append(own)
    if none_of:
        own = f"{name}_filter" if name else "filter"
        lines += _search(own, none_of)
        parts.append(f"not {own}")
    return lines, parts


def _search(name: str, maps: Sequence[dict[str, tuple[Value, ...]]]) -> list[str]:
    """A search: one map as it is, several as a list."""
    lines = [f"  {name}:"]
    for each in maps:
        entries = [line for key, values in each.items() for line in _entry(key, values)]
        marks = ["- ", "  "] if len(maps) > 1 else ["", ""]
        lines += [f"    {marks[k > 0]}{entry}" for k, entry in enumerate(entries)]
    return lines


def _entry(key: str, values: Sequence[Value]) -> Iterator[str]:
    texts = [_scalar(value) for value in values]
    key = key if _PLAIN.fullmatch(key) and key.lower() not in _NO_TEXT else quoted(key)
    if len(texts) == 1:
        yield f"{key}: {texts[0]}"
        return
    yield f"{key}:"
    yield from (f"  - {text}" for text in texts)


def _scalar(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < EXACT):
        return str(int(value))
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{e}{exponent}"


class _Writer(Conditions[Field, _Tests]):
    """What a clause asks, as tests."""

    def __init__(self, rules: RuleSet) -> None:
        self._fields = {field.name: field for field in needed_fields(rules)}

    def rule(self, rule: Rule) -> _Tests | None:
        try:
            tests = tuple(test for clause in rule.clauses for test in self.of(clause))
        except _NeverError:
            return None
        if not tests:
            raise StairError("it covers everything, and a detection of Sigma must ask something")
        return tests

    def column(self, feature: str) -> Field:
        field = self._fields[feature]
        if not field.source or "|" in field.source:
            raise StairError(
                f"{field.source!r} cannot be a field in Sigma, where | begins a modifier; rename it"
            )
        if field.type in MEASURES or (field.kind == "category" and field.type == "time"):
            what = MEASURES.get(field.type, "times as categories")
            raise StairError(f'"{field.source}" has {what}, which Sigma cannot compare')
        return field

    def here(self, column: Field) -> _Tests:
        if column.part in NETWORKS:  # what is no address is missing
            return (_Test((_Entry(f"{column.source}|cidr", ("0.0.0.0/0",)),)),)
        return (_Test((_missing(column),), negated=True),)

    def gone(self, column: Field) -> _Tests:
        if column.part in NETWORKS:
            return (_Test((_Entry(f"{column.source}|cidr", ("0.0.0.0/0",)),), negated=True),)
        return (_Test((_missing(column),)),)

    def always(self) -> _Tests:
        return ()

    def never(self) -> _Tests:
        raise _NeverError

    def between(self, clause: Interval | Period, column: Field) -> _Tests | None:
        if clause.bounds == (None, None):
            return None
        if isinstance(clause, Period):
            raise StairError(f'"{column.source}" has times, and Sigma compares only numbers')
        if column.part == "hour":
            return self._hours(clause, column)
        return tuple(
            _Test((_Entry(f"{column.source}|{sign}", (bound,)),))
            for sign, bound in zip(("gt", "lte"), clause.bounds, strict=True)
            if bound is not None
        )

    def _hours(self, clause: Interval, column: Field) -> _Tests:
        """Sigma compares hours with whole numbers, so each hour is named, by the clocks of UTC."""
        ahead = fixed_offset(column.zone)
        if ahead is None or ahead % 3600:
            raise StairError(
                f'"{column.source}" is read by the clocks of {column.zone}, and Sigma knows no '
                "clocks but those that are whole hours from UTC all year"
            )
        hours = {
            (hour - ahead // 3600) % 24 for hour in range(24) if clause.low < hour <= clause.high
        }
        if not hours:
            return self.never()
        return (_Test((_Entry(f"{column.source}|hour", tuple(sorted(hours))),)),)

    def listed(self, clause: Among, column: Field) -> _Tests | None:
        if not clause.values:
            return None
        if column.part == "weekday":
            raise StairError(
                f'Sigma knows no weekdays, and the rule asks for that of "{column.source}"'
            )
        return (_Test((_named(clause, column),), clause.negated),)

    def inside(self, clause: OfValue, column: Field, inside: _Tests) -> _Tests:
        if isinstance(clause, Among) and clause.negated:  # what is missing is in no list
            return inside if clause.missing else (*inside, *self.here(column))
        if not clause.missing:
            return inside
        if column.part in NETWORKS:
            raise StairError(f'Sigma cannot choose between networks of "{column.source}" and none')
        return tuple(_Test((*test.entries, _missing(column))) for test in inside)

    def mentions(self, clause: Mentions) -> _Tests:
        column = self.column(clause.feature)
        folded = "".join(filter(str.isascii, clause.term))
        as_is = "".join(c for c in clause.term if not c.isascii())
        has_case = as_is.lower() != as_is.upper()
        if has_case and folded.lower() != folded.upper():
            raise StairError(
                f"Sigma would look for all of {clause.term!r} in whatever case or for none of it, "
                "and rules tell cases apart beyond the letters A to Z"
            )
        modifiers = "contains|cased" if has_case else "contains"
        entry = _Entry(f"{column.source}|{modifiers}", (_literal(clause.term),))
        return (_Test((entry,), not clause.present),)


def _missing(column: Field) -> _Entry:
    return _Entry(column.source, (None,))


def _named(clause: Among, column: Field) -> _Entry:
    """A list of values: texts letter by letter, networks by their addresses."""
    if column.part in NETWORKS:
        return _Entry(f"{column.source}|cidr", clause.values)
    texts = [value for value in clause.values if isinstance(value, str)]
    if not texts:
        return _Entry(column.source, clause.values)
    has_case = any(text.lower() != text.upper() for text in texts)
    return _Entry(f"{column.source}{'|cased' * has_case}", tuple(map(_literal, texts)))


def _literal(text: str) -> str:
    """A text in which Sigma finds no wildcard."""
    return "".join(f"\\{c}" if c in "\\*?" else c for c in text)
