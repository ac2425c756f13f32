"""Rules as polars expressions, and as the source text of these expressions.

Polars takes NaN for the largest number, so NaN becomes null before anything is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from stair.clauses import Among, Clause, Interval, Mentions, Period, folded
from stair.conversion import EXACT, WEEKDAYS
from stair.errors import StairError
from stair.export import row_reader
from stair.export.needs import needed_fields
from stair.export.python import bounds, plain, prelude, reader_of, spelling
from stair.export.routing import CategoryLeg, Leg, TextLeg, legs
from stair.export.row_reader import _short
from stair.export.words import one_line, verdict
from stair.export.written import NamedTools, Written, source
from stair.local import LocalRuleSet
from stair.rules import RuleSet
from stair.schema import Field


def polars_masks(rules: RuleSet) -> list[Any]:
    """A boolean expression for each rule, such that `df.filter(mask)` are its rows."""
    return _Writer(rules, _tools()).masks()


def polars_rule(rules: RuleSet) -> Any:
    """An expression for the number of the first rule that covers a row, 0 where none does."""
    return _chosen(_tools().pl, polars_masks(rules), range(1, len(rules) + 1), 0)


def polars_label(rules: RuleSet) -> Any:
    """An expression for the label of a row."""
    labels = [plain(rule.label) for rule in rules.rules]
    return _chosen(_tools().pl, polars_masks(rules), labels, plain(rules.default))


def to_polars(rules: RuleSet) -> str:
    """The source of MASKS, RULE_NUMBER and LABEL, polars expressions."""
    writer = _Writer(rules, NamedTools())
    lines = [
        '"""Rules written by stair: polars expressions, as in df.with_columns(label=LABEL)."""',
        "",
        prelude("row_reader", "polars_reader"),
    ]
    for k, (feature, column) in enumerate(writer.columns.items(), start=1):
        lines.append(f"x{k} = {column}")
        writer.columns[feature] = Written(f"x{k}")
    if isinstance(rules, LocalRuleSet):
        lines += ["", f"PARTITION = {source(writer.nearest(rules))}"]
        writer.partition = Written("PARTITION")
    lines += ["", "MASKS = ["]
    for number, (rule, mask) in enumerate(zip(rules.rules, writer.masks(), strict=True), start=1):
        lines.append(f"    # {number}: {one_line(f'{verdict(rules, rule)}: {rule}')}")
        lines.append(f"    {source(mask)},")
    labels = [plain(rule.label) for rule in rules.rules]
    lines += [
        "]",
        f"LABELS = {labels!r}",
        "",
        "# The first rule that covers a row decides.",
        "RULE_NUMBER = pl.coalesce(",
        "    *(pl.when(mask).then(pl.lit(k)) for k, mask in enumerate(MASKS, start=1)), pl.lit(0)",
        ")",
        "LABEL = pl.coalesce(",
        "    *(pl.when(mask).then(pl.lit(label)) for mask, label in zip(MASKS, LABELS)),",
        f"    pl.lit({plain(rules.default)!r}),",
        ")",
        "",
    ]
    return "\n".join(lines)


def _tools() -> Any:
    try:
        from stair.export import polars_reader
    except ImportError:
        raise StairError("this needs polars: pip install polars") from None
    return SimpleNamespace(**{**vars(row_reader), **vars(polars_reader)})


def _chosen(pl: Any, masks: Sequence[Any], values: Sequence[Any], otherwise: Any) -> Any:
    # One flat list: polars needs half a minute for a thousand cases inside each other.
    cases = [pl.when(mask).then(pl.lit(v)) for mask, v in zip(masks, values, strict=True)]
    return pl.coalesce(*cases, pl.lit(otherwise))


class _Writer:
    """Builds expressions with the tools of `polars_reader`, or their text from the tools' names."""

    def __init__(self, rules: RuleSet, tools: Any) -> None:
        self._rules = rules
        self._tools = tools
        self._fields = {field.name: field for field in needed_fields(rules)}
        self.columns = {name: self._read(field) for name, field in self._fields.items()}
        self.partition: Any = None

    def masks(self) -> list[Any]:
        masks = []
        for rule in self._rules.rules:
            mask: Any = None
            for clause in rule.clauses:
                part = self._mask(clause)
                mask = part if mask is None else mask & part
            masks.append(self._tools.pl.lit(True) if mask is None else mask)
        if isinstance(self._rules, LocalRuleSet):
            if self.partition is None:
                self.partition = self.nearest(self._rules)
            for k, (start, stop) in enumerate(self._rules.spans()):
                for number in range(start, stop):
                    masks[number] = self.partition.eq(k) & masks[number]
        return masks

    def _read(self, field: Field) -> Any:
        """The field's value, null where it is missing."""
        tools = self._tools
        if field.part == "hour":
            return tools.time(field.source).dt.hour()
        if field.part == "weekday":
            return tools.time(field.source).dt.weekday()
        if field.kind == "time":
            return tools.time(field.source)
        reader = getattr(tools, reader_of(field))
        if field.kind == "number":
            return tools.number(field.source, reader)
        return tools.words(field.source, reader, *spelling(field))

    def _mask(self, clause: Clause) -> Any:
        x, pl = self.columns[clause.feature], self._tools.pl
        if isinstance(clause, Mentions):
            found = x.str.contains(folded(clause.term), literal=True).fill_null(False)
            return found if clause.present else ~found
        if clause.only_missing:
            return x.is_null() if clause.missing else pl.lit(False)
        inside: Any = None
        if isinstance(clause, Among):
            if clause.values:
                inside = x.is_in(self._values(clause.feature, clause.values))
                inside = ~inside if clause.negated else inside
        else:
            inside = self._inside(clause, x)
        if inside is None:
            return pl.lit(True) if clause.missing else x.is_not_null()
        return inside.fill_null(clause.missing)

    def _inside(self, clause: Interval | Period, x: Any) -> Any:
        low, high = bounds(clause)
        if isinstance(clause, Interval) and max(abs(low or 0), abs(high or 0)) >= EXACT:
            return self._tools.between(self._fields[clause.feature].source, low, high)
        inside = None if low is None else x > low
        if high is not None:
            inside = x <= high if inside is None else inside & (x <= high)
        return inside

    def _values(self, feature: str, values: Sequence[Any]) -> list[Any]:
        """Categories as `words` writes them."""
        field = self._fields[feature]
        if field.part == "weekday":
            return [WEEKDAYS.index(str(value)) + 1 for value in values]
        if field.type == "flag":
            return [str(bool(value)) for value in values]
        return [v if isinstance(v, str) else str(_short(v)) for v in map(plain, values)]

    def nearest(self, rules: LocalRuleSet) -> Any:
        """The place of the nearest center, the first of equals."""
        distances = []
        for parts in legs(rules):
            total: Any = None
            for leg in parts:
                part = self._distance(leg)
                total = part if total is None else total + part
            distances.append(total)
        return self._tools.pl.concat_list(distances).list.arg_min()

    def _distance(self, leg: Leg) -> Any:
        pl, x = self._tools.pl, self.columns[leg.feature]
        if isinstance(leg, CategoryLeg):
            found: Any = pl.lit(leg.other)
            for value, part in reversed(leg.values):
                is_there = x.is_in(self._values(leg.feature, [value])).fill_null(False)
                found = pl.when(is_there).then(pl.lit(part)).otherwise(found)
            return found
        if isinstance(leg, TextLeg):
            total: Any = None
            for term, there, away in leg.terms:
                found = x.str.contains(folded(term), literal=True).fill_null(False)
                part = pl.when(found).then(pl.lit(there)).otherwise(pl.lit(away))
                total = part if total is None else total + part
            return total
        number = x.dt.epoch("us").cast(pl.Float64) if leg.is_time else x.cast(pl.Float64)
        tools = self._tools
        offset = tools.divided(tools.divided(number - leg.middle, leg.scale), leg.root) - leg.center
        return (offset * offset).fill_null(leg.gone)
