"""Rules on pandas DataFrames: a function that labels one, and that function as source text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stair.data.conversion import MEASURES, NETWORKS
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
from stair.export.routing import CategoryLeg, Leg, TextLeg, legs
from stair.export.words import one_line, verdict
from stair.export.written import NamedTools, Written, source
from stair.rules.clauses import Among, Clause, Interval, Mentions, folded
from stair.rules.routing import Routing
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field


def pandas_masks(rules: RuleSet, frame: Any) -> list[Any]:
    """One boolean Series for each rule, such that `frame[mask]` are the rows that it covers."""
    tools = _tools()
    columns = {
        field.name: _read(field, frame[field.source], tools) for field in needed_fields(rules)
    }
    return _masks(rules, columns, frame, tools)


def pandas_labels(rules: RuleSet, frame: Any) -> Any:
    """A Series with the label of each row, on the frame's own index."""
    numbers = _tools().first(pandas_masks(rules, frame), frame)
    labels = [rules.default, *(rule.label for rule in rules.rules)]
    return numbers.map(dict(enumerate(labels)))


def to_pandas(rules: RuleSet) -> str:
    """The source of `label(df)`, `rule_number(df)` and `masks(df)`; needs pandas alone."""
    tools = NamedTools()
    needed = needed_fields(rules)
    columns = {field.name: Written(f"x{k}") for k, field in enumerate(needed, start=1)}
    labels = [plain(rules.default), *(plain(rule.label) for rule in rules.rules)]
    lines = [
        '"""Rules written by stair, for a pandas DataFrame df: df[masks(df)[0]] is rule 1."""',
        "",
        prelude("row_reader", "pandas_reader"),
        f"LABELS = {labels!r}  # the first where no rule covers the row",
        "",
        "",
        "def label(df: Any) -> Any:",
        '    """The label of each row."""',
        "    return rule_number(df).map(dict(enumerate(LABELS)))",
        "",
        "",
        "def rule_number(df: Any) -> Any:",
        '    """The number of the first rule that covers each row, 0 where none does."""',
        "    return first(masks(df), df)",
        "",
        "",
        "def masks(df: Any) -> list[Any]:",
        '    """Which rows each rule covers."""',
    ]
    for field in needed:
        column = Written(f"df[{field.source!r}]")
        lines.append(f"    {columns[field.name]} = {_read(field, column, tools)}")
    partition: Any = None
    if rules.routing:
        lines.append(f"    partition = {source(_nearest(rules.routing, columns, tools))}")
        partition = Written("partition")
    lines.append("    return [")
    masks = _masks(rules, columns, Written("df"), tools, partition)
    for number, (rule, mask) in enumerate(zip(rules.rules, masks, strict=True), start=1):
        lines.append(f"        # {number}: {one_line(f'{verdict(rules, rule)}: {rule}')}")
        lines.append(f"        {source(mask)},")
    return "\n".join([*lines, "    ]", ""])


def _tools() -> Any:
    try:
        from stair.export import pandas_reader
    except ImportError:
        raise StairError("this needs pandas: pip install pandas") from None
    return SimpleNamespace(**{**vars(row_reader), **vars(pandas_reader)})


def _masks(
    rules: RuleSet, columns: dict[str, Any], frame: Any, tools: Any, partition: Any = None
) -> list[Any]:
    masks = []
    for rule in rules.rules:
        mask: Any = None
        for clause in rule.clauses:
            part = _mask(clause, columns[clause.feature], frame, tools)
            mask = part if mask is None else mask & part
        masks.append(tools.anything(frame) if mask is None else mask)
    if not rules.routing:
        return masks
    if partition is None:
        partition = _nearest(rules.routing, columns, tools)
    return [partition.eq(k) & mask for k, mask in zip(rules.partition_of, masks, strict=True)]


def _read(field: Field, column: Any, tools: Any) -> Any:
    if field.part is not None and (zone := zone_in_code(field)):
        return getattr(tools, f"{field.part}_in")(column, zone)
    if field.part == "hour":
        return tools.time(column).dt.hour
    if field.part == "weekday":
        return tools.time(column).dt.day_name()
    if field.part in NETWORKS:
        return tools.read(column, tools._network, bits_of(field))
    if field.kind == "time":
        return tools.time(column)
    if field.kind == "number" and field.type not in MEASURES:
        return tools.number(column)
    values = tools.read(column, getattr(tools, reader_of(field)), *spelling(field))
    return values.astype("float64") if field.kind == "number" else values


def _mask(clause: Clause, x: Any, frame: Any, tools: Any) -> Any:
    if isinstance(clause, Mentions):
        found = tools.mentions(x, folded(clause.term))
        return found if clause.present else ~found
    if clause.only_missing:
        return x.isna() if clause.missing else ~tools.anything(frame)
    if isinstance(clause, Among):
        if not clause.values:
            return tools.anything(frame) if clause.missing else x.notna()
        found = x.isin([plain(value) for value in clause.values])
        if clause.negated:
            return ~found if clause.missing else ~found & x.notna()
        return found | x.isna() if clause.missing else found
    low, high = bounds(clause)
    if low is None and high is None:
        return tools.anything(frame) if clause.missing else x.notna()
    if isinstance(clause, Interval):
        inside = tools.between(x, low, high)
    else:
        inside = x > low if low is not None else x <= high
        inside = inside & (x <= high) if low is not None and high is not None else inside
    return inside | x.isna() if clause.missing else inside


def _nearest(routing: Routing, columns: dict[str, Any], tools: Any) -> Any:
    distances = []
    for parts in legs(routing):
        total: Any = None
        for leg in parts:
            part = _distance(leg, columns[leg.feature], tools)
            total = part if total is None else total + part
        distances.append(total)
    return tools.nearest(distances)


def _distance(leg: Leg, x: Any, tools: Any) -> Any:
    if isinstance(leg, CategoryLeg):
        found: Any = leg.other
        for value, part in reversed(leg.values):
            found = tools.where(x.isin([plain(value)]), part, found)
        return found
    if isinstance(leg, TextLeg):
        total: Any = None
        for term, there, away in leg.terms:
            part = tools.where(tools.mentions(x, folded(term)), there, away)
            total = part if total is None else total + part
        return total
    number = tools.microseconds(x) if leg.is_time else tools.finite(x.astype("float64"))
    offset = (number - leg.middle) / leg.scale / leg.root - leg.center
    return (offset * offset).fillna(leg.gone)
