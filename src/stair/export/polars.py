"""Rules as polars expressions, and as the source text of these expressions.

Polars takes NaN for the largest number, so NaN becomes null before anything is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from stair.data.arrays import EXACT
from stair.data.conversion import NETWORKS, WEEKDAYS
from stair.errors import StairError
from stair.export import row_reader
from stair.export.needs import needed_fields
from stair.export.python import (
    bits_of,
    bounds,
    plain,
    prelude,
    reader_of,
    spelling,
    zone_in_code,
)
from stair.export.routing import CategoryLeg, Leg, NumberLeg, TextLeg, legs
from stair.export.row_reader import _short
from stair.export.words import one_line, verdict
from stair.export.written import NamedTools, Written, source
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period, folded
from stair.rules.routing import Routing
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field


def polars_masks(rules: RuleSet) -> list[Any]:
    """A boolean expression for each rule, such that `df.filter(mask)` are its rows."""
    tools = _tools()
    writer = _Writer(rules, tools)
    masks = writer.masks()
    return [tools.once(*writer.read(), mask, tools.pl.Boolean) for mask in masks]


def polars_rule(rules: RuleSet) -> Any:
    """An expression for the number of the first rule that covers a row, 0 where none does."""
    return _first(rules, [*range(1, len(rules) + 1), 0])


def polars_label(rules: RuleSet) -> Any:
    """An expression for the label of a row."""
    return _first(rules, _labels(rules))


def _labels(rules: RuleSet) -> list[Any]:
    return [*(plain(rule.label) for rule in rules.rules), plain(rules.default)]


def _first(rules: RuleSet, values: list[Any]) -> Any:
    tools = _tools()
    writer = _Writer(rules, tools)
    masks = writer.masks()
    return tools.first(*writer.read(), masks, values)


def to_polars(rules: RuleSet) -> str:
    """The source of MASKS, RULE_NUMBER and LABEL, polars expressions."""
    writer = _Writer(rules, NamedTools())
    masks = writer.masks()
    columns, steps = writer.read()
    lines = [
        '"""Rules written by stair: polars expressions, as in df.with_columns(label=LABEL)."""',
        "",
        prelude("row_reader", "polars_reader"),
        *(f"{name} = pl.col({name!r})" for name in writer.names),
        "",
        "COLUMNS = [",
        *(f"    {column}," for column in columns),
        "]",
        f"STEPS = {source(steps)}",
        "CONDITIONS = [",
    ]
    for number, (rule, mask) in enumerate(zip(rules.rules, masks, strict=True), start=1):
        lines.append(f"    # {number}: {one_line(f'{verdict(rules, rule)}: {rule}')}")
        lines.append(f"    {source(mask)},")
    lines += [
        "]",
        f"LABELS = {_labels(rules)!r}  # the last where no rule covers the row",
        "",
        "MASKS = [once(COLUMNS, STEPS, condition, pl.Boolean) for condition in CONDITIONS]",
        "# The first rule that covers a row decides.",
        "RULE_NUMBER = first(COLUMNS, STEPS, CONDITIONS, [*range(1, len(LABELS)), 0])",
        "LABEL = first(COLUMNS, STEPS, CONDITIONS, LABELS)",
        "",
    ]
    return "\n".join(lines)


def _tools() -> Any:
    try:
        from stair.export import polars_reader
    except ImportError:
        raise StairError("this needs polars: pip install polars") from None
    return SimpleNamespace(**{**vars(row_reader), **vars(polars_reader)})


class _Writer:
    """Builds expressions with the tools of `polars_reader`, or their text from the tools' names.

    They speak of columns that are named here, which `read` gives: those that are read from the
    table, and then, step by step, those that are worked out from them.
    """

    def __init__(self, rules: RuleSet, tools: Any) -> None:
        self._rules = rules
        self._tools = tools
        self._fields = {field.name: field for field in needed_fields(rules)}
        self.names: list[str] = []
        self._read: list[Any] = []
        self._steps: list[list[Any]] = []
        self._columns = {name: self._new(self._reader(f)) for name, f in self._fields.items()}

    def _new(self, column: Any, among: list[Any] | None = None) -> Any:
        """A name for a column that is to be read or worked out."""
        name = f"x{len(self.names) + 1}"
        self.names.append(name)
        (self._read if among is None else among).append(column.alias(name))
        return Written(name) if isinstance(column, Written) else self._tools.pl.col(name)

    def read(self) -> tuple[list[Any], list[list[Any]]]:
        """What is read, and the steps after that."""
        return self._read, self._steps

    def masks(self) -> list[Any]:
        masks = []
        for rule in self._rules.rules:
            mask: Any = None
            for clause in rule.clauses:
                part = self._mask(clause)
                mask = part if mask is None else mask & part
            masks.append(self._tools.pl.lit(True) if mask is None else mask)
        if not self._rules.routing:
            return masks
        partition, of = self._nearest(self._rules.routing), self._rules.partition_of
        return [partition.eq(k) & mask for k, mask in zip(of, masks, strict=True)]

    def _reader(self, field: Field) -> Any:
        """The field's value, null where it is missing."""
        tools = self._tools
        if field.part is not None and (zone := zone_in_code(field)):
            return getattr(tools, f"{field.part}_in")(field.source, zone)
        if field.part == "hour":
            return tools.time(field.source).dt.hour()
        if field.part == "weekday":
            return tools.time(field.source).dt.weekday()
        if field.part in NETWORKS:
            return tools.words(field.source, tools._network, bits_of(field))
        if field.kind == "time":
            return tools.time(field.source)
        reader = getattr(tools, reader_of(field))
        if field.kind == "number":
            return tools.number(field.source, reader)
        return tools.words(field.source, reader, *spelling(field))

    def _mask(self, clause: Clause) -> Any:
        x, pl = self._columns[clause.feature], self._tools.pl
        if isinstance(clause, Mentions):
            found = x.str.contains(folded(clause.term), literal=True).fill_null(False)
            return found if clause.present else ~found
        if clause.only_missing:
            return x.is_null() if clause.missing else pl.lit(False)
        inside: Any = None
        if isinstance(clause, Among):
            if clause.values:
                inside = self._among(clause, x)
                inside = ~inside if clause.negated else inside
        else:
            inside = self._inside(clause, x)
        if inside is None:
            return pl.lit(True) if clause.missing else x.is_not_null()
        return inside.fill_null(clause.missing)

    def _among(self, clause: Among, x: Any) -> Any:
        field = self._fields[clause.feature]
        if field.kind == "number" and any(abs(float(v)) >= EXACT for v in clause.values):
            values = [plain(value) for value in clause.values]
            return self._new(self._tools.among(field.source, values))
        return x.is_in(self._values(clause.feature, clause.values))

    def _inside(self, clause: Interval | Period, x: Any) -> Any:
        low, high = bounds(clause)
        if isinstance(clause, Interval) and max(abs(low or 0), abs(high or 0)) >= EXACT:
            return self._new(self._tools.between(self._fields[clause.feature].source, low, high))
        inside = None if low is None else x > low
        if high is not None:
            inside = x <= high if inside is None else inside & (x <= high)
        return inside

    def _values(self, feature: str, values: Sequence[Any]) -> list[Any]:
        """Categories as `words` writes them."""
        field = self._fields[feature]
        if field.kind == "number":
            return [float(value) for value in values]
        if field.part == "weekday":
            return [WEEKDAYS.index(str(value)) + 1 for value in values]
        if field.type == "flag":
            return [str(bool(value)) for value in values]
        return [v if isinstance(v, str) else str(_short(v)) for v in map(plain, values)]

    def _nearest(self, routing: Routing) -> Any:
        """The place of the nearest center, the first of equals."""
        scaled: list[Any] = []
        nearest: list[Any] = []
        self._steps += [scaled, nearest]
        every = legs(routing)
        numbers = {
            leg.feature: self._new(self._scaled(leg), scaled)
            for leg in every[0]
            if isinstance(leg, NumberLeg)
        }
        distances = []
        for parts in every:
            total: Any = None
            for leg in parts:
                part = self._distance(leg, numbers)
                total = part if total is None else total + part
            distances.append(total)
        return self._new(self._tools.pl.concat_list(distances).list.arg_min(), nearest)

    def _scaled(self, leg: NumberLeg) -> Any:
        """A number as distances take it, which is the same for every partition."""
        tools, x = self._tools, self._columns[leg.feature]
        number = (x.dt.epoch("us") if leg.is_time else x).cast(tools.pl.Float64)
        number = number if leg.is_time else tools.finite(number)
        return tools.divided(tools.divided(number - leg.middle, leg.scale), leg.root)

    def _distance(self, leg: Leg, numbers: dict[str, Any]) -> Any:
        pl, x = self._tools.pl, self._columns[leg.feature]
        if isinstance(leg, CategoryLeg):
            named = self._values(leg.feature, [value for value, _ in leg.values])
            parts = [part for _, part in leg.values]
            found = x.replace_strict(named, parts, default=leg.other, return_dtype=pl.Float64)
            return found.fill_null(leg.other)
        if isinstance(leg, TextLeg):
            total: Any = None
            for term, there, away in leg.terms:
                found = x.str.contains(folded(term), literal=True).fill_null(False)
                part = pl.when(found).then(pl.lit(there)).otherwise(pl.lit(away))
                total = part if total is None else total + part
            return total
        offset = numbers[leg.feature] - leg.center
        return (offset * offset).fill_null(leg.gone)
