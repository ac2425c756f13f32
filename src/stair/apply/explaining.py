"""Why rows of a file are, or are not, outliers by saved rules."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stair.apply.batches import Codes, Place, Truth, are_outliers, frames_of, held_against, some_of
from stair.errors import StairError
from stair.export.answers import answer
from stair.export.json import Rulebook
from stair.progress import Progress
from stair.rules.reasons import Reasons, reasons_of
from stair.rules.schema import Values


@dataclass(frozen=True, slots=True)
class Explained:
    """One row, counted from 1, in a sentence and as values."""

    row: int
    words: str
    document: dict[str, object]

    def __str__(self) -> str:
        return f"Row {self.row}: {self.words}"


def row_numbers(path: Path) -> list[int]:
    """The rows that a file names, one in each line, counted from 1."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split()
    except UnicodeDecodeError:
        raise StairError(f"{path.name} is no text; expected numbers of rows, one a line") from None
    except OSError as error:
        raise StairError(f"cannot read {path.name}: {(error.strerror or '').lower()}") from None
    for text in lines:
        if not text.isdecimal():
            raise StairError(f"{path.name} has {text!r}; expected numbers of rows, one a line")
    if not lines:
        raise StairError(f"{path.name} names no row; expected numbers of rows, one a line")
    return [int(text) for text in lines]


def explain_rows(
    saved: Rulebook,
    given: Place,
    rows: Sequence[int] | None = None,
    *,
    truth: Truth | None = None,
    uncovered: bool = False,
    say: Progress,
) -> Iterator[Explained]:
    """Why these rows of a file are outliers or not, by default all of them; those alone that are
    outliers by their label and that no rule for outliers covers where `uncovered` are asked for.

    Only the rows that are asked for are held; with labels others are drawn before, which a row
    that no rule covers is held against.
    """
    rules, reference = saved.rules, None
    wished: Collection[str] = () if rules.usual is None else rules.usual.fields
    if truth is not None:
        wished = tuple(f.name for f in rules.schema.fields)
        reference = held_against(saved, given, truth, say)
    asked = None if rows is None else np.unique(np.array(rows, dtype=np.int64))
    codes_of, n_seen = Codes(saved, given, truth), 0
    kept: list[tuple[NDArray[np.int64], Values, NDArray[np.bool_] | None]] = []

    def explained(
        numbers: NDArray[np.int64], values: Values, flagged: NDArray[np.bool_] | None
    ) -> Iterator[Explained]:
        if uncovered and flagged is not None:
            left = np.flatnonzero(flagged & ~reasons_of(rules, values).is_covered)
            numbers, values, flagged = numbers[left], values.take(left), flagged[left]
        return _explained(saved, numbers, values, reasons_of(rules, values, flagged, reference))

    with frames_of(saved, given, wished, truth, say) as (_, frames):
        for frame in frames:
            numbers = np.arange(n_seen + 1, n_seen + frame.n_rows + 1)
            n_seen += frame.n_rows
            codes = codes_of(frame)
            here = slice(None) if asked is None else np.isin(numbers, asked)
            if not len(numbers[here]):
                continue
            some = some_of(frame, here)
            values = rules.schema.read(some, rules.used, wished=wished, is_part=True)
            flagged = None if codes is None else are_outliers(rules, codes)[here]
            say(f"reading {frame.source}: {n_seen:,} rows")
            if asked is None:
                yield from explained(numbers, values, flagged)
            else:
                kept.append((numbers[here], values, flagged))
    for row in () if asked is None else asked.tolist():
        if not 1 <= row <= n_seen:
            source = given.path.name
            raise StairError(f"{source} has rows 1 to {n_seen}, but row {row} was asked for")
    for each in kept:
        yield from explained(*each)


def _explained(
    saved: Rulebook, numbers: NDArray[np.int64], values: Values, reasons: Reasons
) -> Iterator[Explained]:
    words, documents = reasons.words, reasons.documents
    told = set(reasons.told.tolist())
    for k, number in enumerate(numbers.tolist()):
        document = json.loads(documents[k])
        said = words[k]
        if k not in told:  # what keeps it from being one
            why = saved.rules.explain(values.take(np.array([k])))
            said = str(why)
            if why.nearest is not None:
                document |= {"nearest": why.nearest, "misses": list(why.misses)}
        yield Explained(number, said, {"row": number, **document, "words": said})


def as_json(found: Sequence[Explained], source: str) -> str:
    """All of it, as the schema `explain` says."""
    return answer("explain", {"source": source, "rows": [each.document for each in found]})
