"""How well rules agree with labels: on the rows that they were learned from, or on new ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data import from_object, read
from stair.errors import StairError, no_such_column
from stair.rules.objective import f1
from stair.rules.rule_set import Label, RuleSet
from stair.rules.schema import Values
from stair.verdict.codebook import Codebook
from stair.verdict.labels import read_labels


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the rows that are said to be of a class, those that are; and all that there are."""

    rows: int
    hits: int
    total: int

    @property
    def precision(self) -> float:
        return self.hits / self.rows if self.rows else math.nan

    @property
    def recall(self) -> float:
        return self.hits / self.total if self.total else math.nan

    @property
    def f1(self) -> float:
        return f1(self.hits, self.rows, self.total)


@dataclass(frozen=True, slots=True)
class Agreement:
    """All rules together, for each class that they speak of; each rule; and the share of rows that
    get their own class."""

    classes: dict[Label, Figures]
    rules: tuple[Figures, ...]
    accuracy: float
    n_rows: int


def agreement_of(rules: RuleSet, values: Values, codes: NDArray[np.int32]) -> Agreement:
    """On rows with these classes; those without a label (−1) are left out."""
    labelled = codes >= 0
    predicted, covered = predicted_classes(rules, values)[labelled], rules.covers(values)[labelled]
    codes = codes[labelled]

    def figures(said: NDArray[np.bool_], label: Label) -> Figures:
        is_own = codes == rules.classes.index(label)
        return Figures(int(said.sum()), int((said & is_own).sum()), int(is_own.sum()))

    told = [rules.positive] if rules.positive is not None else [
        label for label in rules.classes if label != rules.default
    ]  # fmt: skip
    return Agreement(
        {label: figures(predicted == rules.classes.index(label), label) for label in told},
        tuple(figures(rows, rule.label) for rows, rule in zip(covered.T, rules, strict=True)),
        float((predicted == codes).mean()) if len(codes) else math.nan,
        len(codes),
    )


def predicted_classes(rules: RuleSet, values: Values) -> NDArray[np.intp]:
    """The class index of each row by the rules."""
    labels = [rules.classes.index(rule.label) for rule in rules.rules]
    places = np.array([*labels, rules.classes.index(rules.default)])
    predicted: NDArray[np.intp] = places[rules.assign(values)]
    return predicted


def predicted_labels(rules: RuleSet, codebook: Codebook | None, new: Any) -> NDArray[Any]:
    """The label of each row as the label column has it; where a class is several of its values, or
    there was no such column, as inlier and outlier."""
    names = None if codebook is None else codebook.names
    listed = list(rules.classes if names is None else names)
    is_mixed = len(set(map(type, listed))) > 1
    places = predicted_classes(rules, rules.read(_rows(rules, new)))
    return np.array(listed, dtype=object if is_mixed else None)[places]


def _rows(rules: RuleSet, new: Any) -> Any:
    """New rows: those of a file, and those of an array by the names of its columns."""
    columns = rules.schema.columns
    if isinstance(new, str | Path):
        return read(new, texts=rules.schema.texts())
    if isinstance(new, list | tuple) and not any(isinstance(row, Mapping) for row in new):
        new = np.array(new, dtype=object)
    is_array = isinstance(new, np.ndarray) and new.dtype.names is None and new.ndim == 2
    if is_array and new.shape[1] == len(columns):
        return dict(zip(columns, new.T, strict=True))
    return new


Scores: TypeAlias = float | dict[Any, float]


class Score(float):
    """The score on the rows that were learned from; called with other rows, the score on those."""

    _on: Callable[[Any, Any], Scores] | None

    def __new__(cls, value: float, on: Callable[[Any, Any], Scores] | None = None) -> Score:
        score = super().__new__(cls, value)
        score._on = on
        return score

    def __call__(self, new: Any, y: Any) -> Scores:
        """See `stair.Summary`."""
        if self._on is None:
            raise TypeError("this score belongs to no summary")
        return self._on(new, y)


def score_on(
    rules: RuleSet, codebook: Codebook | None, kinds: Sequence[Label], new: Any, y: Any
) -> Scores:
    """The score on new rows, whose labels are an array or the name of a column."""
    table, name = _rows(rules, new), "y"
    if isinstance(y, str):
        frame, name = from_object(table), y
        if y not in frame.columns:
            raise no_such_column(y, frame.columns, frame.source or "the data")
        y = frame.columns[y]
    codes = read_labels(y, name=name).codes if codebook is None else codebook.codes(y, name)
    values = rules.read(table)
    if len(codes) != values.n_rows:
        raise StairError(f"y has {len(codes):,} values, but there are {values.n_rows:,} rows")
    found = agreement_of(rules, values, codes)
    if kinds:
        return {label: found.classes[label].f1 for label in kinds}
    return found.accuracy if rules.positive is None else found.classes[rules.positive].f1
