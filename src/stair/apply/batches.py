"""Saved rules on a file of any size: read, labelled and written batch by batch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stair.apply.outcome import Applied, outcome_of
from stair.data import Frame, write_with
from stair.data.frame import Array
from stair.data.many import reading_in_batches
from stair.errors import StairError, folded, no_such_column, option, spoken
from stair.export.json import Rulebook
from stair.progress import Progress, Words
from stair.rules.alone import Reference
from stair.rules.counted import count
from stair.rules.drawn import Drawn
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Values
from stair.verdict.codebook import Codebook, distinct_values
from stair.verdict.codebook import Value as LabelValue
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
    rules, reference = saved.rules, None
    wished: Collection[str] = ()
    if reasons and rules.usual is not None:
        wished = rules.usual.fields
    codes_of = Codes(saved, given, truth)
    if reasons and truth is not None:
        wished = tuple(f.name for f in rules.schema.fields)
        reference = held_against(saved, given, truth, say)
    with frames_of(saved, given, wished, truth, say) as (n_rows, frames):
        for frame in frames:
            values = rules.schema.read(frame, rules.used, wished=wished, is_part=True)
            codes = codes_of(frame)
            if codes is not None:
                applied.add_counts(count(rules, values, codes))
            flagged = None if codes is None else are_outliers(rules, codes)
            outcome = outcome_of(saved, values, reasons, flagged, reference)
            applied.add(outcome)
            words = f"applying the rules: {applied.n_rows:,} rows"
            say(Words(words, applied.n_rows / n_rows) if n_rows else words)
            yield outcome.columns
    applied.remarks.check()
    applied.notes = (*applied.remarks.in_words, *codes_of.notes)


def held_against(saved: Rulebook, given: Place, truth: Truth, say: Progress) -> Reference:
    """The rows that one is held against that is flagged and that no rule covers: all of them, or
    some where they are many, in a pass of their own. Any attribute may tell a row apart."""
    schema = saved.rules.schema
    names = tuple(f.name for f in schema.fields)
    codes_of, drawn, n_seen = Codes(saved, given, truth), Drawn(schema.fields), 0
    with frames_of(saved, given, names, truth, say) as (_, frames):
        for frame in frames:
            codes = codes_of(frame)
            assert codes is not None
            numbers = np.arange(n_seen, n_seen + frame.n_rows).astype(np.uint64)
            n_seen += frame.n_rows
            read = partial(_values_of, saved.rules, frame, names)
            drawn.draw(are_outliers(saved.rules, codes), numbers, codes >= 0, read)
            say(f"reading {given.path.name}: {n_seen:,} rows")
    return Reference.of(drawn)


def _values_of(
    rules: RuleSet, frame: Frame, wished: Collection[str], rows: NDArray[np.intp]
) -> Values:
    return rules.schema.read(some_of(frame, rows), rules.used, wished=wished, is_part=True)


def some_of(frame: Frame, rows: slice | NDArray[np.bool_] | NDArray[np.intp]) -> Frame:
    columns = {name: array[rows] for name, array in frame.columns.items()}
    return replace(frame, columns=columns, n_rows=len(next(iter(columns.values()))))


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
        return [*_label_in(names, given, truth), *sources]

    say(f"reading {given.path.name}")
    with _frames(given, wanted, texts) as found:
        yield found


def _label_in(names: Sequence[str], given: Place, truth: Truth | None) -> list[str]:
    if truth is None:
        return []
    if truth.name not in names:
        raise no_such_column(truth.name, names, given.path.name)
    return [truth.name]


@contextlib.contextmanager
def _frames(
    given: Place, wanted: Callable[[Sequence[str]], Collection[str]], texts: Collection[str] = ()
) -> Iterator[tuple[int | None, Iterator[Frame]]]:
    with reading_in_batches(
        given.path, wanted, table=given.table, query=given.query, texts=texts
    ) as batches:
        yield batches.n_rows, batches.frames


def are_outliers(rules: RuleSet, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    normal = rules.classes.index(rules.default)
    if rules.positive is not None:
        normal = 1 - rules.classes.index(rules.positive)
    found: NDArray[np.bool_] = (codes >= 0) & (codes != normal)
    return found


class Codes:
    """The class of each row by its label, batch by batch. What labels mean that nobody has written
    down is told from all of them, in a pass of its own."""

    def __init__(self, saved: Rulebook, given: Place, truth: Truth | None) -> None:
        self.notes: tuple[str, ...] = ()
        self._truth, self._codebook = truth, saved.codebook
        self._classes = saved.rules.classes
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
        if self._codebook is None or truth.is_told:
            self._codebook = self._learned(given, truth)

    def __call__(self, frame: Frame) -> NDArray[np.int32] | None:
        if self._truth is None:
            return None
        name = self._truth.name
        assert self._codebook is not None
        hint = f"; say which value is the outlier with {option('positive')}"
        return self._codebook.codes(frame.columns[name], name, hint)

    def _learned(self, given: Place, truth: Truth) -> Codebook:
        """What each value means, by all that there are."""
        counts: dict[LabelValue | None, int] = {}
        with _frames(given, lambda names: _label_in(names, given, truth)) as (_, frames):
            for frame in frames:
                column = f'the label column "{truth.name}"'
                values, places = distinct_values(frame.columns[truth.name], column)
                times = np.bincount(places + 1, minlength=len(values) + 1).tolist()
                for value, n in zip((None, *values), times, strict=True):
                    if n:
                        counts[value] = counts.get(value, 0) + n
        every = np.empty(len(counts), dtype=object)
        every[:] = list(counts)
        found = read_labels(every, positive=truth.positive, negative=truth.negative,
                            name=truth.name, counts=list(counts.values()))  # fmt: skip
        if len(found.classes) > 2 or found.codebook is None:
            raise StairError(
                f'the label column "{truth.name}" has {len(found.classes)} values, and these rules '
                f"tell two apart; say which is the outlier with {option('positive')}"
            )
        self.notes = tuple(map(spoken, found.notes))
        return found.codebook
