"""What the rules need of a table: its columns, and the types of its categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from stair.clauses import Among
from stair.errors import StairError
from stair.local import LocalRuleSet
from stair.rules import RuleSet
from stair.schema import Field

CategoryType = Literal["words", "numbers", "flags", "mixed"]


def needed_fields(rules: RuleSet) -> list[Field]:
    """The fields that the rules, or the routing to them, speak of."""
    return [field for field in rules.schema.fields if field.name in rules.used]


def category_types(rules: RuleSet) -> dict[str, CategoryType]:
    """What the categories of each column are, as far as the rules name any.

    It matters where numbers are categories: a missing one may be NaN.
    """
    values: dict[str, list[Any]] = {}
    for rule in rules.rules:
        for clause in rule.clauses:
            if isinstance(clause, Among):
                values.setdefault(clause.feature, []).extend(clause.values)
    if isinstance(rules, LocalRuleSet):
        for axis in rules.space.axes:
            if axis.kind == "category":
                values.setdefault(axis.feature, []).extend(axis.values)
    return {feature: _type_of(named) for feature, named in values.items() if named}


def _type_of(values: Sequence[Any]) -> CategoryType:
    words = [isinstance(value, str) for value in values]
    if any(words):
        return "words" if all(words) else "mixed"
    return "flags" if all(isinstance(value, bool) for value in values) else "numbers"


def refuse_mixed(types: dict[str, CategoryType], what: str) -> None:
    """For endings whose columns have one type."""
    for feature, kind in types.items():
        if kind == "mixed":
            raise StairError(
                f'the rules compare "{feature}" with words and with numbers, but {what} has one '
                "type; use another kind of export"
            )
