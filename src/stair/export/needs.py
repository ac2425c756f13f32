"""What the rules need of a table, in a form that code outside of stair can read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stair.data.arrays import EXACT
from stair.data.conversion import MEASURES, NETWORKS
from stair.data.zones import UTC
from stair.errors import StairError, option
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field


def needed_fields(rules: RuleSet) -> list[Field]:
    """The fields that the rules, or the routing to them, speak of.

    Lists, records and mixed values are read by stair alone, so that no code can be written for
    them; and rules that name values of another type than the column's would not mean the same.
    """
    needed = [field for field in rules.schema.fields if field.name in rules.used]
    types = {field.name: field for field in needed}
    for field in needed:
        if field.type == "described":
            raise StairError(
                f'"{field.source}" has lists, records, bytes or values of several types, which '
                "stair alone can read; leave the column out, or export text, markdown or json"
            )
    for feature, value in _named(rules):
        field = types[feature]
        is_text = field.type in ("text", "time") or field.part == "weekday"
        if isinstance(value, str) != is_text:
            raise StairError(
                f'the rules compare "{feature}" with {value!r}, but its values are '
                f"{'texts' if is_text else 'no texts'}; learn the rules again"
            )
    return needed


def _named(rules: RuleSet) -> Iterator[tuple[str, str | float]]:
    """Every category that the rules or their routing name, with its field."""
    for clause in rules.clauses:
        yield from ((clause.feature, value) for value in clause.categories)
    for dimension in rules.routing.space.dimensions:
        if dimension.kind == "category":
            yield from ((dimension.feature, value) for value in dimension.values)


def refuse_types(fields: Iterable[Field], types: Iterable[str], what: str) -> None:
    """For endings that do not have such values."""
    words = {**MEASURES, "time": "times as categories", "zoned": "times with a zone"}
    refused = frozenset(types)
    for field in fields:
        if field.type in refused:
            raise StairError(
                f'"{field.source}" has {words[field.type]}, which {what} cannot compare as the '
                "rules do; use another kind of export"
            )


def refuse_networks(fields: Iterable[Field], what: str) -> None:
    """For endings that cannot take an address apart."""
    for field in fields:
        if field.part in NETWORKS:
            raise StairError(
                f'the rules ask which network "{field.source}" is in, and {what} cannot take an '
                "address apart; use another kind of export"
            )


def refuse_zones(fields: Iterable[Field], what: str) -> None:
    """For endings that know no clocks but those of UTC."""
    for field in fields:
        if field.part is not None and field.zone not in ("", UTC):
            raise StairError(
                f'"{field.name}" is of {field.zone}, and {what} knows no time zones; use another '
                f"kind of export, or learn with {option('time_zone', 'UTC')}"
            )


def refuse_wide(rules: RuleSet, what: str) -> None:
    """For endings whose numbers are doubles: they cannot tell whole numbers beyond 2**53 apart."""
    bounds = [
        (clause.feature, bound)
        for clause in rules.clauses
        for bound in clause.bounds
        if isinstance(bound, int)
    ]
    whole = {field.name for field in rules.schema.fields if field.type == "whole"}
    space = rules.routing.space
    centers = [(d.feature, d.center) for d in space.dimensions if d.feature in whole]
    # As a double 2**53 is its neighbour too: it may be a bound, but not a name.
    named = [(f, v) for f, v in _named(rules) if isinstance(v, int | float) and abs(v) >= EXACT]
    for feature, value in (*(each for each in (*bounds, *centers) if abs(each[1]) > EXACT), *named):
        raise StairError(
            f'the rules compare "{feature}" with {value}, and {what} cannot tell whole numbers '
            "beyond 2**53 apart; use another kind of export"
        )
