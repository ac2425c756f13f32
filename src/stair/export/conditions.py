"""A clause as a condition, in whatever language.

What follows from missing values is said here, once. A language says how it asks whether a value is
there, lies between bounds, is in a list, or mentions a term.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeAlias, TypeVar

from stair.rules.clauses import Among, Clause, Interval, Mentions, Period

Column = TypeVar("Column")  # the values of a field, as the language calls them
Condition = TypeVar("Condition")
OfValue: TypeAlias = Interval | Period | Among


class Conditions(ABC, Generic[Column, Condition]):
    """The conditions of one language."""

    def of(self, clause: Clause) -> Condition:
        return clause.accept(self)

    def interval(self, clause: Interval) -> Condition:
        return self._bounded(clause)

    def period(self, clause: Period) -> Condition:
        return self._bounded(clause)

    def among(self, clause: Among) -> Condition:
        column = self.column(clause.feature)
        return self._of_value(clause, column, self.listed(clause, column))

    @abstractmethod
    def mentions(self, clause: Mentions) -> Condition: ...

    def _bounded(self, clause: Interval | Period) -> Condition:
        column = self.column(clause.feature)
        return self._of_value(clause, column, self.between(clause, column))

    def _of_value(self, clause: OfValue, column: Column, inside: Condition | None) -> Condition:
        if clause.only_missing:
            return self.gone(column) if clause.missing else self.never()
        if inside is None:
            return self.always() if clause.missing else self.here(column)
        return self.inside(clause, column, inside)

    @abstractmethod
    def column(self, feature: str) -> Column: ...

    @abstractmethod
    def here(self, column: Column) -> Condition: ...

    @abstractmethod
    def gone(self, column: Column) -> Condition: ...

    @abstractmethod
    def always(self) -> Condition: ...

    @abstractmethod
    def never(self) -> Condition: ...

    @abstractmethod
    def between(self, clause: Interval | Period, column: Column) -> Condition | None:
        """What is asked of a value that is there; None where there is no bound."""

    @abstractmethod
    def listed(self, clause: Among, column: Column) -> Condition | None:
        """The same of a category; None where no value is named."""

    @abstractmethod
    def inside(self, clause: OfValue, column: Column, inside: Condition) -> Condition:
        """That of a value which may be missing."""
