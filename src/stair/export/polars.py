"""Rules as polars expressions, and as the source text of these expressions.

Polars takes NaN for the largest number, so NaN becomes null before anything is compared. A column
of times must have the type Date or Datetime.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from stair.clauses import Among, Clause, Mentions, folded
from stair.conversion import WEEKDAYS
from stair.errors import StairError
from stair.export.needs import category_types, needed_fields, refuse_mixed
from stair.export.python import bounds, plain
from stair.export.routing import CategoryLeg, Leg, TextLeg, legs
from stair.export.words import one_line, verdict
from stair.export.written import Written, source
from stair.local import LocalRuleSet
from stair.rules import RuleSet


def polars_masks(rules: RuleSet) -> list[Any]:
    """A boolean expression for each rule, such that `df.filter(mask)` are its rows."""
    return _Writer(rules, _polars()).masks()


def polars_rule(rules: RuleSet) -> Any:
    """An expression for the number of the first rule that covers a row, 0 where none does."""
    pl = _polars()
    return _chosen(pl, polars_masks(rules), range(1, len(rules) + 1), 0)


def polars_label(rules: RuleSet) -> Any:
    """An expression for the label of a row."""
    pl = _polars()
    labels = [plain(rule.label) for rule in rules.rules]
    return _chosen(pl, polars_masks(rules), labels, plain(rules.default))


def to_polars(rules: RuleSet) -> str:
    """The source of MASKS, RULE_NUMBER and LABEL, polars expressions."""
    writer = _Writer(rules, Written("pl"))
    lines = [
        '"""Rules written by stair: polars expressions, as in df.with_columns(label=LABEL)."""',
        "",
        "from datetime import datetime",
        "",
        "import polars as pl",
        "",
    ]
    if isinstance(rules, LocalRuleSet):
        lines += [f"PARTITION = {source(writer.partition)}", ""]
        writer.partition = Written("PARTITION")
    lines.append("MASKS = [")
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


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise StairError("this needs polars: pip install polars") from None
    return polars


def _chosen(pl: Any, masks: Sequence[Any], values: Sequence[Any], otherwise: Any) -> Any:
    # One flat list: polars needs half a minute for a thousand cases inside each other.
    cases = [pl.when(mask).then(pl.lit(v)) for mask, v in zip(masks, values, strict=True)]
    return pl.coalesce(*cases, pl.lit(otherwise))


class _Writer:
    """Builds expressions from polars itself, or their text from its name."""

    def __init__(self, rules: RuleSet, pl: Any) -> None:
        self._rules = rules
        self._fields = {field.name: field for field in needed_fields(rules)}
        self._pl = pl
        self._types = category_types(rules)
        refuse_mixed(self._types, "a column of polars")
        self.partition: Any = None
        if isinstance(rules, LocalRuleSet):
            self.partition = self._nearest(rules)

    def masks(self) -> list[Any]:
        masks = []
        for rule in self._rules.rules:
            mask: Any = None
            for clause in rule.clauses:
                part = self._mask(clause)
                mask = part if mask is None else mask & part
            masks.append(self._pl.lit(True) if mask is None else mask)
        if isinstance(self._rules, LocalRuleSet):
            for k, (start, stop) in enumerate(self._rules.spans()):
                for number in range(start, stop):
                    masks[number] = self.partition.eq(k) & masks[number]
        return masks

    def _column(self, feature: str) -> Any:
        """The field's value, null where it is missing."""
        pl, field = self._pl, self._fields[feature]
        column = pl.col(field.source)
        if field.part is not None:
            time = column.cast(pl.Datetime("us"))
            return time.dt.hour() if field.part == "hour" else time.dt.weekday()
        if field.kind == "time":
            return column.cast(pl.Datetime("us"))
        if field.kind == "number":
            return column.cast(pl.Float64).fill_nan(None)
        if field.kind == "text":
            letters = list(ascii_uppercase), list(ascii_lowercase)
            return column.cast(pl.String).str.replace_many(*letters)
        if feature not in self._types:
            return column
        words = self._types[feature] == "words"
        return column.cast(pl.String) if words else column.cast(pl.Float64).fill_nan(None)

    def _mask(self, clause: Clause) -> Any:
        x, pl = self._column(clause.feature), self._pl
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
            low, high = bounds(clause)
            inside = None if low is None else x > low
            if high is not None:
                inside = x <= high if inside is None else inside & (x <= high)
        if inside is None:
            return pl.lit(True) if clause.missing else x.is_not_null()
        return inside.fill_null(clause.missing)

    def _values(self, feature: str, values: Sequence[Any]) -> list[Any]:
        if self._fields[feature].part == "weekday":
            return [WEEKDAYS.index(str(value)) + 1 for value in values]
        return [plain(v) if isinstance(v, str) else float(v) for v in values]

    def _nearest(self, rules: LocalRuleSet) -> Any:
        """The place of the nearest center, the first of equals."""
        distances = []
        for parts in legs(rules):
            total: Any = None
            for leg in parts:
                part = self._distance(leg)
                total = part if total is None else total + part
            distances.append(total)
        return self._pl.concat_list(distances).list.arg_min()

    def _distance(self, leg: Leg) -> Any:
        pl = self._pl
        x = self._column(leg.feature)
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
        offset = (number - leg.middle) / leg.scale / leg.root - leg.center
        return (offset * offset).fill_null(leg.gone)
