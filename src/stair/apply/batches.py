"""Saved rules on a file of any size: read, labelled and written batch by batch."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stair.apply.outcome import Applied, outcome_of
from stair.data import Frame, column_names, is_many, read, write_with
from stair.data.frame import Array
from stair.data.reading import AT_ONCE, reading_in_batches
from stair.errors import StairError, folded, no_such_column, option, spoken
from stair.export.json import Rulebook
from stair.progress import Progress, Words
from stair.rules.counted import count
from stair.rules.rule_set import RuleSet
from stair.verdict.codebook import Codebook
from stair.verdict.labels import read_labels


@dataclass(frozen=True, slots=True)
class Place:
    """A file, or several, and what of a database."""

    path: Path
    table: str | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """The column that says what rows are. Its values are read as they were when the rules were
    learned, unless somebody says what is an outlier."""

    name: str
    positive: Sequence[str] | None = None
    negative: str | None = None

    @property
    def is_told(self) -> bool:
        return self.positive is not None or self.negative is not None


def apply_to(
    saved: Rulebook,
    given: Place,
    output: Path | None = None,
    *,
    truth: Truth | None = None,
    reasons: bool = False,
    say: Progress,
) -> Applied:
    """Label all rows, and write them with their labels where there is an output; all of it or
    nothing."""
    applied = Applied()
    columns = _labelled(saved, given, truth, reasons and output is not None, say, applied)
    with contextlib.closing(columns):
        if output is None:
            for _ in columns:
                pass
        else:
            texts = saved.rules.schema.texts()
            write_with(output, given.path, columns, table=given.table, query=given.query,
                       texts=texts)  # fmt: skip
    return applied


def _labelled(
    saved: Rulebook,
    given: Place,
    truth: Truth | None,
    reasons: bool,
    say: Progress,
    applied: Applied,
) -> Generator[Mapping[str, Array]]:
    """What is to be written of each batch; what it comes to is added up meanwhile."""
    rules = saved.rules
    wished: Collection[str] = ()
    if reasons and rules.usual is not None:
        wished = rules.usual.fields
    codes_of = Codes(saved, given, truth)
    with frames_of(saved, given, wished, truth, say) as (n_rows, frames):
        for frame in frames:
            values = rules.schema.read(frame, rules.used, wished=wished, is_part=True)
            codes = codes_of(frame)
            if codes is not None:
                applied.add_counts(count(rules, values, codes))
            flagged = None if codes is None else are_outliers(rules, codes)
            outcome = outcome_of(saved, values, reasons=reasons, flagged=flagged)
            applied.add(outcome)
            words = f"applying the rules: {applied.n_rows:,} rows"
            say(Words(words, applied.n_rows / n_rows) if n_rows else words)
            yield outcome.columns
    applied.remarks.check()
    applied.notes = (*applied.remarks.in_words, *codes_of.notes)


@contextlib.contextmanager
def frames_of(
    saved: Rulebook,
    given: Place,
    wished: Collection[str],
    truth: Truth | None,
    say: Progress,
) -> Iterator[tuple[int | None, Iterator[Frame]]]:
    """How many rows there are, where that is known, and batches of the columns that are needed."""
    schema, used = saved.rules.schema, saved.rules.used
    sources = [f.source for f in schema.fields if f.name in used or f.name in wished]
    texts = schema.texts()

    def wanted(names: Sequence[str]) -> list[str]:
        schema.check_columns(names, used)
        label = [] if truth is None else [truth.name]
        if truth is not None and truth.name not in names:
            raise no_such_column(truth.name, names, given.path.name)
        return [*label, *sources]

    say(f"reading {given.path.name}")
    if not is_many(given.path):
        with reading_in_batches(
            given.path, wanted, table=given.table, query=given.query, texts=texts
        ) as batches:
            yield batches.n_rows, batches.frames
        return
    names = column_names(given.path, table=given.table, query=given.query)
    chosen = [name for name in names if name in set(wanted(names))] or [names[0]]
    frame = read(given.path, columns=chosen, table=given.table, query=given.query, texts=texts,
                 say=say)  # fmt: skip
    yield frame.n_rows, _slices_of(frame)


def _slices_of(frame: Frame) -> Iterator[Frame]:
    """A frame, some rows at a time."""
    for start in range(0, frame.n_rows, AT_ONCE):
        columns = {name: array[start : start + AT_ONCE] for name, array in frame.columns.items()}
        yield replace(frame, columns=columns, n_rows=min(AT_ONCE, frame.n_rows - start))


def are_outliers(rules: RuleSet, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    normal = rules.classes.index(rules.default)
    if rules.positive is not None:
        normal = 1 - rules.classes.index(rules.positive)
    found: NDArray[np.bool_] = (codes >= 0) & (codes != normal)
    return found


class Codes:
    """The class of each row by its label, batch by batch. What labels mean that nobody has written
    down is told from all of them, which are read first then."""

    def __init__(self, saved: Rulebook, given: Place, truth: Truth | None) -> None:
        self.notes: tuple[str, ...] = ()
        self._truth, self._codebook = truth, saved.codebook
        self._all: NDArray[np.int32] | None = None
        self._given, self._classes, self._n_seen = given, saved.rules.classes, 0
        if truth is None:
            return
        if len(self._classes) > 2:
            if truth.is_told:
                raise StairError(
                    f"{option('positive')} and {option('negative')} are for rules about one kind "
                    f"of outlier; these tell {folded(map(str, self._classes))} apart"
                )
            self._codebook = self._codebook or Codebook(
                tuple((c,) for c in self._classes), len(self._classes)
            )

    def __call__(self, frame: Frame) -> NDArray[np.int32] | None:
        if self._truth is None:
            return None
        name = self._truth.name
        if self._codebook is not None and not self._truth.is_told:
            hint = f"; say which value is the outlier with {option('positive')}"
            return self._codebook.codes(frame.columns[name], name, hint)
        if self._all is None:
            self._all = self._read_all(name)
        start, self._n_seen = self._n_seen, self._n_seen + frame.n_rows
        return self._all[start : self._n_seen]

    def _read_all(self, name: str) -> NDArray[np.int32]:
        assert self._truth is not None
        given = self._given
        frame = read(given.path, columns=[name], table=given.table, query=given.query)
        found = read_labels(frame.columns[name], positive=self._truth.positive,
                            negative=self._truth.negative, name=name)  # fmt: skip
        if len(found.classes) > 2:
            raise StairError(
                f'the label column "{name}" has {len(found.classes)} values, and these rules tell '
                f"two apart; say which is the outlier with {option('positive')}"
            )
        self.notes = tuple(map(spoken, found.notes))
        return found.codes
