"""Columns most of whose values one table has and the other has never seen.

A code that is written in another way, such as r12 for R-12, is one thing about a column, and not a
difference for each of its values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from stair.data.conversion import is_missing
from stair.data.frame import Array, Frame
from stair.operation.statistics import Share
from stair.rules.schema import Field

# How often a value occurs.
Counts: TypeAlias = Counter[str]

# A value would be in as many rows of the other table, or more, if nothing differed: one that is in
# none is missed with odds of e to the minus of this.
EXPECTED: Final = 5.0
# Fewer values are said by a rule that names them.
FEWEST: Final = 2
_NO_WORD: Final = re.compile(r"\.0+$|[\W_]+")
_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[0-9])")
_LETTERS, _DIGITS = re.compile(r"[^\W\d_]+"), re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class NewValues:
    """A column of whose values most were never seen in the other table, of one of them or of both.

    `rows` are the rows of each table with such values, of those that have any; `values` are these
    values, of those that are frequent enough to be missed. `examples` has one of each table, the
    same one in two forms where `form` is "same": it is "other" where no value looks like those of
    the other table, and else empty.
    """

    column: str
    rows: tuple[Share, Share]
    values: tuple[Share, Share]
    examples: tuple[str | None, str | None]
    form: str

    @property
    def sides(self) -> tuple[int, ...]:
        """The tables most of whose values are new."""
        return tuple(side for side in (0, 1) if _are_most(self.values[side]))


def new_values(
    frames: tuple[Frame, Frame], fields: Iterable[Field], unlike: Collection[str]
) -> tuple[NewValues, ...]:
    """Of columns of names, and of those that are texts in one table and numbers in the other."""
    names = [f.source for f in fields if f.kind == "category" and f.part is None]
    found = [_of_column(name, *(_counts(frame.columns[name]) for frame in frames))
             for name in (*names, *unlike)]  # fmt: skip
    return tuple(
        each
        for each in found
        if each is not None and (each.column not in unlike or each.form == "same")
    )


def _counts(column: Array) -> Counts:
    return Counter(map(_text, column[~is_missing(column)].tolist()))


def _text(value: Any) -> str:
    """A whole number that is held as a float because some are missing is one here, too."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _of_column(name: str, first: Counts, second: Counts) -> NewValues | None:
    new = [Counter({v: n for v, n in own.items() if v not in other})
           for own, other in ((first, second), (second, first))]  # fmt: skip
    rows = [Share(each.total(), own.total())
            for each, own in zip(new, (first, second), strict=True)]  # fmt: skip
    values = [_missed(own, other) for own, other in ((first, second), (second, first))]
    if not any(map(_are_most, values)):
        return None
    examples = [next((v for v, _ in each.most_common(1)), None) for each in new]
    form = ""
    if pair := _same_in_both(*new):
        form, examples = "same", list(pair)
    elif all(new) and not {*map(_shape, new[0])} & {*map(_shape, new[1])}:
        form = "other"
    return NewValues(name, (rows[0], rows[1]), (values[0], values[1]),
                     (examples[0], examples[1]), form)  # fmt: skip


def _missed(own: Counts, other: Counts) -> Share:
    """Of the values that the other table would have, those that it has not."""
    ahead = other.total() / max(1, own.total())
    often = [value for value, n in own.items() if n * ahead >= EXPECTED]
    return Share(sum(value not in other for value in often), len(often))


def _are_most(values: Share) -> bool:
    return values.hits >= FEWEST and 2 * values.hits >= values.rows


def _same_in_both(first: Counts, second: Counts) -> tuple[str, str] | None:
    """The value that is most frequent in two forms, where this is so of most values."""
    there = {_plain(value): value for value in second}
    pairs = [(v, there[_plain(v)]) for v, _ in first.most_common() if _plain(v) in there]
    return pairs[0] if pairs and 2 * len(pairs) >= min(len(first), len(second)) else None


def _plain(text: str) -> str:
    """What is left where capitals, signs and zeros in front of numbers do not count."""
    return _ZEROS.sub("", _NO_WORD.sub("", text.casefold()))


def _shape(text: str) -> str:
    return _DIGITS.sub("9", _LETTERS.sub("a", text))
