"""What is known of columns, brought to them: the sides that clauses may have, what an attribute
costs, and the columns that no rule may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from stair.errors import StairError, option
from stair.learn.table import Table
from stair.learn.wishes import ColumnWish, unknown_columns
from stair.rules.columns import (
    ONE_SIDE,
    Binned,
    Categories,
    Column,
    Numbers,
    Sides,
    Times,
)
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Schema

# Which sides make an outlier.
SIDES = {"up": Sides.MORE_THAN, "down": Sides.UP_TO, "extreme": ONE_SIDE}


def as_wished(table: Table, wishes: Mapping[str, ColumnWish], *, one_sided: bool) -> Table:
    """The table whose columns are as somebody knows them. A wish about a column of the data is
    about all that rules may say of it, but its direction is about its values alone."""
    schema = table.schema
    fields = {each.name: each for each in schema.fields}
    unknown_columns(wishes, [*schema.columns, *fields], "the data")
    _check_directions(schema, wishes)
    columns, kept = [], []
    for place, column in enumerate(table.columns):
        field = fields[column.name]
        wish = wishes.get(field.name) or wishes.get(field.source) or ColumnWish()
        direction = wish.direction
        if field.name not in wishes and field.part is not None:
            direction = None
        is_listed = direction is not None and isinstance(column, Categories)
        if wish.never or is_listed:  # single values of a column that has a direction
            continue
        columns.append(_as_known(column, wish, direction, one_sided=one_sided))
        kept.append(place)
    if not columns:
        raise StairError("no column is left that rules may speak of; say never of fewer of them")
    codes = table.codes
    if len(kept) < len(table.columns):
        codes = np.asfortranarray(codes[:, kept])
    return Table(schema, tuple(columns), codes, table.values)


def costs_of(rules: RuleSet, wishes: Mapping[str, ColumnWish]) -> dict[str, int]:
    """What the attributes of rules cost, by their names."""
    source = {each.name: each.source for each in rules.schema.fields}
    names = {clause.attribute for rule in rules for clause in rule.clauses}
    found = {name: wishes.get(name) or wishes.get(source.get(name, name)) for name in names}
    return {name: 1 if wish is None else wish.cost for name, wish in found.items()}


def length_with_costs(rules: RuleSet, costs: Mapping[str, int]) -> int:
    """The total length, an attribute of a column as much as it costs."""
    return sum(
        costs.get(name, 1)
        for rule in rules
        for name in {clause.attribute for clause in rule.clauses}
    )


def _check_directions(schema: Schema, wishes: Mapping[str, ColumnWish]) -> None:
    """Refuse a direction of what has none."""
    for name, wish in wishes.items():
        if wish.direction is None:
            continue
        said = option("column_wishes", {name: {"direction": wish.direction}})
        own = [f for f in schema.fields if f.name == name or (f.source == name and not f.part)]
        for each in own:
            if each.kind not in ("number", "time"):
                raise StairError(
                    f'{said}: "{name}" is a {each.kind}, '
                    "and only numbers and times have a direction"
                )


def _as_known(
    column: Column, wish: ColumnWish, direction: str | None, *, one_sided: bool
) -> Column:
    if isinstance(column, Binned):
        inner = _as_known(column.inner, wish, direction, one_sided=one_sided)
        assert isinstance(inner, Numbers | Times)
        return replace(column, inner=inner)
    found = replace(column, cost=wish.cost, group=wish.group or "")
    if isinstance(found, Numbers | Times):
        sides = found.sides & ONE_SIDE if one_sided else found.sides
        if direction is not None:
            sides &= SIDES[direction]
        found = replace(found, sides=sides)
    return found
