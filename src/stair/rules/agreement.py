"""How well rules agree with labels: on the rows that they were learned from, or on new ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data import from_object, read
from stair.data.frame import Array, Value
from stair.errors import StairError, no_such_column
from stair.rules.counted import count
from stair.rules.rule_set import Label, RuleSet
from stair.rules.schema import Values
from stair.verdict.codebook import Codebook
from stair.verdict.labels import read_labels


def predicted_classes(rules: RuleSet, values: Values) -> NDArray[np.intp]:
    """The class index of each row by the rules."""
    return classes_of(rules, rules.assign(values))


def classes_of(rules: RuleSet, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
    """The class index of each rule number (from 0), where −1 stands for the default."""
    labels = [rules.classes.index(rule.label) for rule in rules.rules]
    predicted: NDArray[np.intp] = np.array([*labels, rules.classes.index(rules.default)])[numbers]
    return predicted


def predicted_labels(rules: RuleSet, codebook: Codebook | None, new: object) -> Array:
    """The label of each row as the label column has it; where a class is several of its values, or
    there was no such column, as inlier and outlier."""
    names = None if codebook is None else codebook.names
    listed = list(rules.classes if names is None else names)
    is_mixed = len(set(map(type, listed))) > 1
    places = predicted_classes(rules, rules.read(rows_given(rules, new)))
    return np.array(listed, dtype=object if is_mixed else None)[places]


def rows_given(rules: RuleSet, new: Any) -> object:
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


Scores: TypeAlias = float | dict[Value, float]


class Score(float):
    """The score on the rows that were learned from; called with other rows, the score on those."""

    _on: Callable[[object, object], Scores] | None

    def __new__(cls, value: float, on: Callable[[object, object], Scores] | None = None) -> Score:
        score = super().__new__(cls, value)
        score._on = on
        return score

    def __call__(self, new: object, y: object) -> Scores:
        """See `stair.Summary`."""
        if self._on is None:
            raise TypeError("this score belongs to no summary")
        return self._on(new, y)


def score_on(
    rules: RuleSet, codebook: Codebook | None, kinds: Sequence[Label], new: object, y: object
) -> Scores:
    """The score on new rows, whose labels are an array or the name of a column."""
    table, name = rows_given(rules, new), "y"
    if isinstance(y, str):
        frame, name = from_object(table), y
        if y not in frame.columns:
            raise no_such_column(y, frame.columns, frame.source or "the data")
        y = frame.columns[y]
    codes = read_labels(y, name=name).codes if codebook is None else codebook.codes(y, name)
    values = rules.read(table)
    if len(codes) != values.n_rows:
        raise StairError(f"y has {len(codes):,} values, but there are {values.n_rows:,} rows")
    found = count(rules, values, codes)
    if kinds:
        return {label: found.of_labels[label].f1 for label in kinds}
    return found.accuracy if found.positive is None else found.score
