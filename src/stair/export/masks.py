"""Rules as masks: columns of pandas, or expressions of polars, that operators join."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import reduce
from importlib import import_module
from operator import add, and_
from types import SimpleNamespace
from typing import Any, TypeAlias

from stair.errors import StairError
from stair.export import exceptions_reader, row_reader
from stair.export.code import NamedTools, source
from stair.export.conditions import Conditions
from stair.export.needs import needed_fields
from stair.export.routing import Leg, legs
from stair.export.sentences import one_line, verdict
from stair.rules.rule_set import Rule, RuleSet

# A column or an expression of a library that need not be installed, or the text of one (`Code`).
Expression: TypeAlias = Any
Tools: TypeAlias = SimpleNamespace | NamedTools


def tools_of(library: str) -> SimpleNamespace:
    """The functions of an exported file for this library, which is imported no earlier."""
    try:
        reader = import_module(f"stair.export.{library}_reader")
    except ImportError:
        raise StairError(f"this needs {library}: pip install {library}") from None
    return SimpleNamespace(**{**vars(row_reader), **vars(exceptions_reader), **vars(reader)})


class Masks(Conditions[Expression, Expression]):
    """Which rows each rule covers. With `NamedTools` in place of a library's functions, and `Code`
    in place of its columns, the text of that."""

    def __init__(self, rules: RuleSet, tools: Tools) -> None:
        self.rules = rules
        self.tools = tools
        self.fields = {field.name: field for field in needed_fields(rules)}
        self.columns: dict[str, Expression] = {}

    def column(self, feature: str) -> Expression:
        return self.columns[feature]

    def masks(self) -> list[Expression]:
        """A mask for each rule, whatever exceptions there are."""
        masks = self._masks_of(self.rules.rules)
        if not self.rules.routing:
            return masks
        partition, owners = self.partition(), self.rules.partition_of
        return [partition.eq(k) & mask for k, mask in zip(owners, masks, strict=True)]

    def left(self) -> list[Expression]:
        """A mask for each rule, less what exceptions take from it."""
        masks = self.masks()
        if not has_exceptions(self.rules):
            return masks
        gives_way = list(self.rules.gives_way)
        return list(self.tools.left(masks, self._masks_of(self.rules.exceptions), gives_way))

    def _masks_of(self, rules: Sequence[Rule]) -> list[Expression]:
        return [
            reduce(and_, map(self.of, rule.clauses)) if rule.clauses else self.always()
            for rule in rules
        ]

    def lines(self, indent: str) -> list[str]:
        """The text of the masks, each below its rule in words."""
        return self._lines(indent, self.rules.rules, self.masks(), "")

    def exception_lines(self, indent: str) -> list[str]:
        """The same of the exceptions."""
        exceptions = self.rules.exceptions
        return self._lines(indent, exceptions, self._masks_of(exceptions), "exception ")

    def _lines(
        self, indent: str, rules: Sequence[Rule], masks: Sequence[Expression], what: str
    ) -> list[str]:
        found = []
        for number, (rule, mask) in enumerate(zip(rules, masks, strict=True), start=1):
            words = one_line(f"{verdict(self.rules, rule)}: {rule}")
            found += [f"{indent}# {what}{number}: {words}", f"{indent}{source(mask)},"]
        return found

    @abstractmethod
    def partition(self) -> Expression:
        """The place of each row's nearest partition."""

    def distances(self) -> list[Expression]:
        """How far a row is from each partition."""
        return [total(map(self.distance, parts)) for parts in legs(self.rules.routing)]

    @abstractmethod
    def distance(self, leg: Leg) -> Expression: ...


def has_exceptions(rules: RuleSet) -> bool:
    """Whether there is an exception, and a rule from which it takes rows."""
    return bool(rules.exceptions) and any(rules.gives_way)


def total(parts: Iterable[Expression]) -> Expression:
    """The sum, added one after the other."""
    return reduce(add, parts)
