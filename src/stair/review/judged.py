"""What decisions about groups of rows say about each row.

A verdict on a rule is a verdict on the rows it matches, whatever the rule becomes later; so a
decision holds its rows. A verdict on a single row goes before those on rules.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.verdict.labels import Verdict

WORDS: Final = ("", "outlier", "inlier", "unsure", "contested")
OUTLIER, INLIER, UNSURE, CONTESTED = 1, 2, 3, 4
_CODES: Final = {word: code for code, word in enumerate(WORDS)}

Rows = NDArray[np.intp]


def rows_to_text(rows: Rows) -> str:
    """Row numbers in rising order, small enough to stand in every decision."""
    steps = np.diff(np.asarray(rows, dtype=np.int64), prepend=0)
    return base64.b85encode(zlib.compress(steps.astype("<u4").tobytes(), 6)).decode("ascii")


def rows_from_text(text: str, n_rows: int) -> Rows:
    """The row numbers in a table of so many rows; anything else is a ValueError."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(base64.b85decode(text), 4 * (n_rows + 1))
    except zlib.error as error:
        raise ValueError(str(error)) from None
    steps = np.frombuffer(found, dtype="<u4")
    rows: Rows = np.cumsum(steps, dtype=np.int64).astype(np.intp)
    if not reader.eof or not steps[1:].all() or (len(rows) and rows[-1] >= n_rows):
        raise ValueError("these are no rows of the table")
    return rows


def normal_of(verdict: Verdict) -> int | None:
    """The class of what is no outlier; None where there are classes alone."""
    return verdict.negative if verdict.positive is None else 1 - verdict.positive


def are_outliers(verdict: Verdict, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which rows are outliers, of one kind or of several; none where there are classes alone."""
    normal = normal_of(verdict)
    found: NDArray[np.bool_] = (codes >= 0) & (codes != normal)
    return found if normal is not None else np.zeros_like(found)


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What was said about a group: the word, its rows, and the class that its rule gives them."""

    word: str
    rows: Rows
    label: int
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One mark for each row of the table, and the class that it has now (-1 for none)."""

    marks: NDArray[np.int8]
    codes: NDArray[np.int32]
    by_rules: int  # rows that a verdict on a rule speaks of
    by_hand: int  # rows that were judged one by one

    @property
    def n_rows(self) -> int:
        """Rows with a verdict of either kind."""
        return int(np.count_nonzero(self.marks))

    def count(self, mark: int) -> int:
        return int(np.count_nonzero(self.marks == mark))


def notes_of(n_rows: int, groups: Sequence[Judgement], single: Mapping[int, str]) -> Array:
    """Each row's note, None where there is none: its own, or all those on its groups."""
    notes = np.full(n_rows, None, dtype=object)
    for group in groups:
        if group.note:
            said = notes[group.rows]
            notes[group.rows] = [f"{n}; {group.note}" if n else group.note for n in said]
    for row, note in single.items():
        if note:
            notes[row] = note
    return notes


def judge(
    codes: NDArray[np.int32],
    groups: list[Judgement],
    single: Mapping[int, str],
    positive: int | None,
    negative: int | None = None,
    kinds: Mapping[int, int] | None = None,
) -> Judged:
    """From the detector's classes (one code a row of the table) to those after the review.

    Rejected groups become inliers, unsure ones lose their label, and so do rows that one rule was
    accepted for and another one rejected. Where there is no outlier class, a rejected group loses
    its label too: nobody has said what it is instead.

    Where outliers are of several kinds, `negative` is the class of what is normal, and `kinds` says
    of which kind a single row is. One that is an outlier of nobody knows which kind has no label.
    """
    found: dict[str, NDArray[np.bool_]] = {}
    for word in ("outlier", "inlier", "unsure"):
        found[word] = np.zeros(len(codes), dtype=np.bool_)
    now = codes.astype(np.int32, copy=True)
    settled = np.zeros(len(codes), dtype=np.bool_)  # rows that a group says the detector's class of
    for group in groups:
        found[group.word][group.rows] = True
        if group.word == "outlier":
            now[group.rows] = group.label
            settled[group.rows] |= codes[group.rows] == group.label
    now[settled] = codes[settled]
    marks = np.zeros(len(codes), dtype=np.int8)
    marks[found["unsure"]] = UNSURE
    marks[found["inlier"]] = INLIER
    marks[found["outlier"]] = OUTLIER
    marks[found["outlier"] & found["inlier"]] = CONTESTED
    by_rules = int(np.count_nonzero(marks))
    rows = np.fromiter(single, dtype=np.intp, count=len(single))
    marks[rows] = [_CODES[word] for word in single.values()]
    if positive is not None:
        now[marks == OUTLIER] = positive
        now[marks == INLIER] = 1 - positive
        now[marks >= UNSURE] = -1
    elif negative is not None:
        for row, label in (kinds or {}).items():
            if marks[row] == OUTLIER and now[row] == negative:
                now[row] = label
        now[(marks == OUTLIER) & (now == negative)] = -1
        now[marks == INLIER] = negative
        now[marks >= UNSURE] = -1
    else:
        now[marks > OUTLIER] = -1
    return Judged(marks, now, by_rules, len(rows))
