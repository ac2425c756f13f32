"""What is given: the table, and somebody's verdict about its rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stair.data import Frame, codes_of, column_names, from_object, is_text_file, named, read
from stair.data.conversion import is_missing, zone_of_column
from stair.data.source import Source
from stair.data.weights import Weights, nothing_of_a_class, weightless_in_words, weights_of
from stair.errors import StairError, no_such_column, option
from stair.learn.seeds import RandomState, seed_of
from stair.learn.table import choose_fields, notes_on_marks, notes_on_parts, read_to_learn
from stair.progress import Progress
from stair.rules.remarks import unread_in_words
from stair.rules.schema import Schema, Values
from stair.verdict.detectors import find
from stair.verdict.labels import (
    Verdict,
    labels_from_scores,
    notes_on_outliers,
    numbers_in,
    read_labels,
)
from stair.verdict.reading import labels_from_detector

# Labels of a column's name that stand one for one for its values are made from it: 1 and true. Of
# more values than these that may be a measure and what follows from it.
MOST_STAND_INS: Final = 20


@dataclass(frozen=True, eq=False)
class Statement:
    """What somebody says about the rows, as it is given: read, it is a verdict. With `has_kinds`
    every label but a normal one is a kind of outlier."""

    labels: object = None
    scores: object = None
    contamination: float | int | None = None
    detector: object = None
    positive: object = None
    negative: object = None
    has_kinds: bool = False
    random_state: RandomState = 0  # of a named detector that draws at random
    weights: object = None  # how much each row counts

    def __post_init__(self) -> None:
        for name in ("labels", "scores", "weights"):
            object.__setattr__(self, name, _as_name(getattr(self, name)))

    @property
    def columns(self) -> set[str]:
        """The columns of the table that hold it."""
        return {each for each in (self.labels, self.scores) if isinstance(each, str)}

    @property
    def held(self) -> set[str]:
        """These, and the one that says how much each row counts: that is no secret to rules."""
        return self.columns | ({self.weights} if isinstance(self.weights, str) else set())


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns rules may speak of, and of which kind they are where nobody should guess it."""

    include: Collection[str] | None = None
    exclude: Collection[str] = ()
    kinds: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        include, kinds = self.include, self.kinds
        if include is not None:
            object.__setattr__(self, "include", named(include))
        object.__setattr__(self, "exclude", named(self.exclude))
        if kinds is not None:
            texts = dict(zip(named(kinds), kinds.values(), strict=True))
            object.__setattr__(self, "kinds", texts)


@dataclass(frozen=True, eq=False)
class Intake:
    """A table and a verdict about its rows: what rules are learned from and counted on.

    `rows` are the numbers of the rows that have a label; `values` and `codes` are of these alone.
    """

    data: object  # as it was given, or the frame that was read from a file
    frame: Frame
    verdict: Verdict
    schema: Schema
    left_out: Mapping[str, str]
    n_columns: int
    source: str
    rows: NDArray[np.intp]
    values: Values
    codes: NDArray[np.int32]
    weights: Weights | None = None

    def relabelled(self, codes: NDArray[np.int32], note: str) -> Intake:
        """The same rows with other labels; those with the code -1 are left out."""
        kept = np.flatnonzero(codes >= 0)
        whole = np.full(self.frame.n_rows, -1, dtype=np.int32)
        whole[self.rows[kept]] = codes[kept]
        return replace(
            self,
            verdict=replace(self.verdict, codes=whole, notes=(*self.verdict.notes, note)),
            rows=self.rows[kept],
            values=self.values.take(kept),
            codes=codes[kept].astype(np.int32),
            weights=None if self.weights is None else self.weights.take(kept),
        )


def take_in(source: Source, statement: Statement, chosen: Columns, say: Progress) -> Intake:
    """Read a table and the verdict about it. Columns are known by the text of their names."""
    data, labels, scores = source.data, statement.labels, statement.scores
    include, exclude, kinds = chosen.include, chosen.exclude, chosen.kinds
    _check_index(data, labels, "labels")
    _check_index(data, scores, "scores")
    _check_index(data, statement.weights, "weights")
    frame = read_table(source, chosen, statement.held, say)
    verdict, taken = read_verdict(frame, statement, chosen, say)
    verdict, weights = _weighed(frame, verdict, statement.weights)
    same = {column for given in (labels, scores) for column in _own_column(frame, given)}
    taken |= same
    say("looking at the columns")
    columns = {column: array for column, array in frame.columns.items() if column not in taken}
    told = replace(frame, columns=columns)  # all but the verdict
    included = None if include is None else [n for n in include if n not in taken]
    fields, left_out = choose_fields(
        told, include=included, exclude=[n for n in exclude if n in columns], kinds=kinds,
        time_parts=source.time_parts, time_zone=source.time_zone,
    )  # fmt: skip
    left_out |= {column: "the verdict itself" for column in frame.columns if column in same}
    left_out |= {column: "it is the verdict" for column in include or () if column in taken}
    left_out |= {column: "excluded" for column in exclude if column not in frame.columns}
    rows = np.flatnonzero(verdict.codes >= 0)
    schema = Schema(fields, tuple(frame.columns))
    values = read_to_learn(schema, told)
    schema = schema.marked_by(values)
    marks = notes_on_marks(fields, told, kinds)
    said = {unread_in_words(source, "number", n) for source, n in values.unread.items()}
    types = told.types
    notes = (
        *notes_on_parts(
            fields, lambda n: zone_of_column(columns[n], types.get(n, "")), source.time_zone
        ),
        *(note for note in values.notes if not marks or note not in said),
        *marks,
    )
    if len(rows) < frame.n_rows:
        values = values.take(rows)
    return Intake(
        data=frame if isinstance(data, str | Path) else data,
        frame=replace(frame, notes=(*frame.notes, *notes)),
        verdict=verdict,
        schema=schema.remembering(values),
        left_out=left_out,
        n_columns=len(columns),
        source=source.name or frame.source,
        rows=rows,
        values=values,
        codes=verdict.codes[rows],
        weights=None if weights is None else weights.take(rows),
    )


def _weighed(frame: Frame, verdict: Verdict, given: object) -> tuple[Verdict, Weights | None]:
    """How much each row counts; those that do not are left out."""
    if given is None:
        return verdict, None
    array, name = _column_or_array(frame, given, "weights")
    if not isinstance(given, str):
        array = from_object({"weights": given}).columns["weights"]
        own = getattr(given, "name", None)
        name = None if own is None else str(own)
    weights, counts = weights_of(np.asarray(array), name)
    n_gone = int((~counts & (verdict.codes >= 0)).sum())
    if not n_gone:
        return verdict, weights
    codes = np.where(counts, verdict.codes, -1).astype(np.int32)
    if len(np.unique(codes[codes >= 0])) < len(np.unique(verdict.codes[verdict.codes >= 0])):
        raise nothing_of_a_class(weights.name)
    note = weightless_in_words(weights.name, n_gone)
    return replace(verdict, codes=codes, notes=(*verdict.notes, note)), weights


def read_table(source: Source, chosen: Columns, held: Collection[str], say: Progress) -> Frame:
    """The data; of a file only the columns that are needed. `held` hold the verdict. Columns of the
    kind text are read as text, as they will be when the rules are applied; so are categories of
    a file that has no other types."""
    data, table, query = source.data, source.table, source.query
    include, exclude, kinds = chosen.include, chosen.exclude, chosen.kinds or {}
    if isinstance(data, Frame):
        return data
    if not isinstance(data, str | Path):
        if table is not None or query is not None:
            raise StairError(
                f"{option('table')} and {option('query')} are for a database file, but data is no "
                "path"
            )
        frame = from_object(data)
        for name in exclude:
            if name not in frame.columns:
                raise no_such_column(name, frame.columns, "the data")
        return frame
    say(f"reading {Path(data).name}")
    wanted = None
    if include is not None or exclude:
        names = column_names(data, table=table, query=query)
        for name in (*(include or ()), *exclude, *held):
            if name not in names:
                raise no_such_column(name, names, Path(data).name)
        needed = set(names if include is None else include) - set(exclude) | set(held)
        wanted = [name for name in names if name in needed]
    codes = [c for c, kind in kinds.items() if kind == "category"] if is_text_file(data) else []
    texts = [*codes, *(c for c, kind in kinds.items() if kind == "text")]
    frame = read(data, table=table, query=query, columns=wanted, texts=texts, say=say)
    return _as_codes(frame, codes)


def _as_codes(frame: Frame, names: Collection[str]) -> Frame:
    """Categories of a text file, which were read as text: whole numbers, flags and days are what
    they look like, but 1.10 is not 1.1."""
    columns, types = dict(frame.columns), dict(frame.types)
    for name in names:
        array = columns.get(name)
        if array is None or array.dtype.kind != "O" or frame.types.get(name):
            continue
        texts = ["" if v is None else v for v in array.tolist()]
        if all(isinstance(text, str) for text in texts):
            columns[name], types[name] = codes_of(texts, array)
    return replace(frame, columns=columns, types={n: was for n, was in types.items() if was})


def _check_index(data: object, verdict: object, name: str) -> None:
    """pandas knows rows by their index, and a verdict is taken row by row: where both have the same
    index in another order, one of the two is meant and nobody can tell which."""
    rows: Any = getattr(data, "index", None)
    given: Any = getattr(verdict, "index", None)
    if not (hasattr(rows, "equals") and hasattr(given, "equals")) or rows.equals(given):
        return
    if len(rows) == len(given) and set(rows) == set(given):
        raise StairError(
            f"{name} have the index of the table in another order; rows are taken one after the "
            f"other, so give {name}.loc[table.index] or {name}.to_numpy()"
        )


def _own_column(frame: Frame, given: object) -> list[str]:
    """The column that a Series came from: of its name, and with its values, or with a few that
    stand for them one for one, as true for 1."""
    name = getattr(given, "name", None)
    if name is None or isinstance(given, str) or str(name) not in frame.columns:
        return []
    column, values = frame.columns[str(name)], from_object({"given": given}).columns["given"]
    if len(values) != len(column):
        return []
    gone = is_missing(column)
    if (is_missing(values) != gone).any():
        return []
    pairs = set(zip(values[~gone].tolist(), column[~gone].tolist(), strict=True))
    one, other = ({pair[side] for pair in pairs} for side in (0, 1))
    stands_for = len(one) == len(other) == len(pairs) <= MOST_STAND_INS
    return [str(name)] if stands_for or all(a == b for a, b in pairs) else []


def read_verdict(
    frame: Frame, statement: Statement, chosen: Columns, say: Progress
) -> tuple[Verdict, set[str]]:
    """One label per row, and the columns that held it: the rules must not speak of those."""
    labels, scores, detector = statement.labels, statement.scores, statement.detector
    contamination = statement.contamination
    positive, negative = statement.positive, statement.negative
    include, exclude, kinds = chosen.include, chosen.exclude, chosen.kinds
    sources = {"labels": labels, "scores": scores, "detector": detector}
    given = [name for name, value in sources.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(map(option, given)) or "none of them"
        raise StairError(
            f"give one of {option('labels')}, {option('scores')} and {option('detector')}; got "
            f"{got}"
        )
    taken = statement.columns
    if isinstance(labels, Verdict):
        return labels, set()
    if labels is not None:
        if contamination is not None:
            raise StairError(
                f"{option('contamination')} goes with scores or a detector, not with labels"
            )
        array, name = _column_or_array(frame, labels, "labels")
        found = read_labels(
            array,
            positive=positive,
            negative=negative,
            kinds=statement.has_kinds,
            name=name or "labels",
        )
        return replace(found, notes=(*found.notes, *notes_on_outliers(found))), taken
    for side, value in (("positive", positive), ("negative", negative)):
        if value is not None:
            raise StairError(f"{option(side)} is about labels; it does not go with scores")
    if scores is not None:
        array, name = _column_or_array(frame, scores, "scores")
        found = labels_from_scores(array, contamination, name=name or "scores")
        return replace(found, notes=(*found.notes, *_notes_on_scores(array, found.meaning))), taken
    present = [name for name in exclude if name in frame.columns]
    matrix, names = _matrix(frame, _known_to(detector, frame, include, present), present, kinds)
    say("looking for outliers")
    if isinstance(detector, str):
        return find(
            detector,
            matrix,
            contamination=contamination,
            random_state=seed_of(statement.random_state),
        ), set()
    return labels_from_detector(detector, matrix, contamination=contamination, columns=names), set()


def _notes_on_scores(scores: object, name: str) -> tuple[str, ...]:
    """scikit-learn's `score_samples` has low values for what is strange, and all of them are
    negative: nobody else's scores are."""
    numbers = numbers_in(scores, name)
    if not (numbers[~np.isnan(numbers)] < 0).all():
        return ()
    return (
        "all scores are negative, as those of scikit-learn, whose low ones are strange; the "
        "highest were taken for outliers. If low is strange here, turn the sign around",
    )


def _as_name(given: object) -> object:
    """The name of a column as text where one is given as a number: pandas has such names."""
    return str(given) if isinstance(given, int | float | np.number) else given


def _column_or_array(frame: Frame, given: object, what: str) -> tuple[object, str | None]:
    """A column of the table by name, or an array of one value per row."""
    if isinstance(given, str):
        if given not in frame.columns:
            raise no_such_column(given, frame.columns, frame.source or "the data")
        return frame.columns[given], given
    if hasattr(given, "fit"):
        raise StairError(
            f"{option(what)} got a detector, {type(given).__name__}; give it as "
            f"{option('detector')}, or what it says as {option(what)}"
        )
    n_given = len(given) if hasattr(given, "__len__") else -1
    if n_given != frame.n_rows:
        raise StairError(f"{what} has {n_given} values, but the data has {frame.n_rows} rows")
    return given, None


def _known_to(
    detector: object, frame: Frame, include: Collection[str] | None, exclude: Collection[str]
) -> Collection[str] | None:
    """The columns that a fitted detector was fitted on: it needs them all, also one that has the
    same value everywhere here and so tells nothing to rules."""
    names = getattr(detector, "feature_names_in_", None)
    rest = [name for name in frame.columns if name not in exclude]
    if names is not None:
        return [name for name in map(str, names) if name in rest] or include
    chosen = [name for name in rest if include is None or name in include]
    n_seen = getattr(detector, "n_features_in_", None)
    return chosen if n_seen == len(chosen) else include


def _matrix(
    frame: Frame,
    include: Collection[str] | None,
    exclude: Collection[str],
    kinds: Mapping[str, str] | None,
) -> tuple[NDArray[np.float64], list[str]]:
    """The table as plain numbers for a detector: missing values at the median, categories by how
    rare they are, text left out."""
    fields, _ = choose_fields(
        frame, include=include, exclude=exclude, kinds=kinds, time_parts=False
    )
    parts: list[NDArray[np.float64]] = []
    names: list[str] = []
    values = read_to_learn(Schema(fields), frame)
    for name, kind in ((f.name, f.kind) for f in fields):
        array = values[name]
        if kind == "text":
            continue
        if kind == "category":
            seen, places, counts = np.unique(
                np.array([str(v) for v in array.tolist()]), return_inverse=True, return_counts=True
            )
            del seen
            column = -np.log(counts / len(array))[places]
        elif kind == "time":
            column = array.astype(np.int64).astype(np.float64)
            column[is_missing(array)] = np.nan
        else:
            column = array.astype(np.float64)
        if np.isinf(column).any():
            raise StairError(
                f'"{name}" has infinite values, which no detector can judge by; replace them, or '
                f"leave the column out with {option('exclude', name)}"
            )
        gone = np.isnan(column)
        if gone.all() and len(column):
            raise StairError(f'"{name}" has no value in any row, so a detector cannot judge by it')
        if gone.any():
            column = np.where(gone, np.median(column[~gone]), column)
        parts.append(column)
        names.append(name)
    if not parts:
        raise StairError("a detector needs at least one column that is not text")
    return np.column_stack(parts), names
