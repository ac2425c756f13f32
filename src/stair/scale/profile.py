"""What each column of a large table holds, from parts of it: what `table.py` asks a whole table.

A part is a dict of plain columns: float64, datetime64[us], or `Words` for anything with names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.conversion import type_of_values
from stair.errors import StairError
from stair.scale.options import Options
from stair.scale.sketch import MOST_DISTINCT, Sketch
from stair.schema import Field
from stair.table import ISO_TIME, WORDS_IN_TEXT, fields_among

MICROSECONDS_A_DAY: Final = 86_400_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A column of text or of true and false: its different values, and for each row which one."""

    values: list[Any]
    codes: NDArray[np.signedinteger[Any]]  # −1 where missing

    def __len__(self) -> int:
        return len(self.codes)


Raw: TypeAlias = NDArray[Any] | Words
Batch: TypeAlias = dict[str, Raw]


@dataclass(slots=True, eq=False)
class Profile:
    """One column: how many values are missing, and what the others are like."""

    kind: str = ""  # number, time or words
    n_rows: int = 0
    n_missing: int = 0
    n_infinite: int = 0
    sketch: Sketch = field(default_factory=Sketch)
    whole_days: bool = True
    words: dict[Any, int] | None = field(default_factory=dict)  # None: too many to know them all
    n_words: int = 0  # in all texts together
    n_texts: int = 0
    all_iso: bool = True

    def add(self, raw: Raw, name: str) -> None:
        """One more part of the column."""
        if all_missing(raw):  # then its type says nothing
            self.n_rows += len(raw)
            self.n_missing += len(raw)
            return
        self._is(_kind(raw), name)
        self.n_rows += len(raw)
        if isinstance(raw, Words):
            self._add_words(raw)
        elif raw.dtype.kind == "M":
            ticks = raw.astype("datetime64[us]").astype(np.int64)[~np.isnat(raw)]
            self.n_missing += len(raw) - len(ticks)
            self._add_times(ticks)
        else:
            missing = np.isnan(raw)
            n_missing = int(missing.sum())
            self.n_missing += n_missing
            values = raw[~missing] if n_missing else raw
            infinite = np.isinf(values)
            if infinite.any():
                self.n_infinite += int(infinite.sum())
                values = values[~infinite]
            self.sketch.add(values)

    def merge(self, other: Profile, name: str) -> None:
        """All of another part."""
        if not other.n_rows:
            return
        if other.kind:
            self._is(other.kind, name)
        self.n_rows += other.n_rows
        self.n_missing += other.n_missing
        self.n_infinite += other.n_infinite
        self.sketch.merge(other.sketch)
        self.whole_days &= other.whole_days
        self.n_words += other.n_words
        self.n_texts += other.n_texts
        self.all_iso &= other.all_iso
        if other.words is None:
            self.words = None
        else:
            self._count_words(other.words)

    def _is(self, kind: str, name: str) -> None:
        if self.kind and kind != self.kind:
            raise StairError(
                f'"{name}" holds {_PLURALS[self.kind]} in one part of the data and '
                f"{_PLURALS[kind]} in another; write it as one of them"
            )
        self.kind = kind

    def _add_times(self, ticks: NDArray[np.int64]) -> None:
        self.whole_days = self.whole_days and not bool((ticks % MICROSECONDS_A_DAY).any())
        self.sketch.add(ticks.astype(np.float64))

    def _add_words(self, raw: Words) -> None:
        counts = np.bincount(raw.codes + 1, minlength=len(raw.values) + 1)
        self.n_missing += int(counts[0])
        seen = {v: n for v, n in zip(raw.values, counts[1:].tolist(), strict=True) if n}
        texts = {v: n for v, n in seen.items() if isinstance(v, str)}
        self.n_texts += sum(texts.values())
        self.n_words += sum(len(text.split()) * n for text, n in texts.items())
        if self.all_iso and texts:
            self.all_iso = all(map(ISO_TIME.fullmatch, texts))
            if self.all_iso:
                ticks = times_of(texts).astype(np.int64)
                self._add_times(np.repeat(ticks, list(texts.values())))
        self._count_words(seen)

    def _count_words(self, seen: Mapping[Any, int]) -> None:
        if self.words is None:
            return
        for value, n in seen.items():
            self.words[value] = self.words.get(value, 0) + n
        if len(self.words) > MOST_DISTINCT:
            self.words = None

    def type_of(self, kind: str) -> str:
        """Of which type its values are, read as this kind."""
        if kind != "category":
            return ""
        if self.kind in ("number", "time"):
            return self.kind
        return type_of_values(list(self.words or ()))

    def read_as(self) -> str:
        """The kind that a person would give it."""
        if self.kind in ("number", "time"):
            return self.kind
        if not self.n_texts:
            return "category"
        if self.all_iso:
            return "time"
        many = self.words is None or len(self.words) > 20
        return "text" if many and self.n_words / self.n_texts >= WORDS_IN_TEXT else "category"

    def why_useless(self, kind: str) -> str | None:
        """Why the column cannot help; None where it can."""
        n_seen = self.n_rows - self.n_missing
        if n_seen == 0:
            return "all values are missing"
        if self.n_infinite:
            return None  # not useless, but refused
        n_distinct = self._n_distinct()
        if kind == "category" and n_distinct is None:
            return f"more than {MOST_DISTINCT:,} different values"
        if kind == "category" and n_distinct == n_seen > 20:
            return "all values differ"
        return "all values are the same" if n_distinct == 1 and not self.n_missing else None

    def _n_distinct(self) -> int | None:
        if self.kind in ("words", ""):
            return None if self.words is None else len(self.words)
        return None if self.sketch.distinct is None else len(self.sketch.distinct)

    def values(self, name: str) -> tuple[list[Any], list[int]]:
        """The different values with their counts, where they can all be known."""
        if self.kind in ("words", "") and self.words is not None:
            return list(self.words), list(self.words.values())
        if self.kind != "words" and self.sketch.distinct is not None:
            assert self.sketch.counts is not None
            values: list[Any] = self.sketch.distinct.tolist()
            if self.kind == "time":
                ticks = self.sketch.distinct.astype(np.int64)
                values = [str(t) for t in ticks.astype("datetime64[us]")]
            else:
                values = [int(v) if v.is_integer() else v for v in values]
            return values, self.sketch.counts.tolist()
        raise StairError(
            f'"{name}" has more than {MOST_DISTINCT:,} different values, too many to tell them '
            "apart one by one; leave it out, or group them first"
        )


_PLURALS: Final = {"number": "numbers", "time": "times", "words": "text"}


def _kind(raw: Raw) -> str:
    if isinstance(raw, Words):
        return "words"
    return "time" if raw.dtype.kind == "M" else "number"


def all_missing(raw: Raw) -> bool:
    """Whether a part of a column has no value at all."""
    if isinstance(raw, Words):
        return not len(raw.values) or bool((raw.codes < 0).all())
    gone = np.isnat if raw.dtype.kind == "M" else np.isnan
    return not len(raw) or (bool(gone(raw[0])) and bool(gone(raw).all()))


def times_of(texts: Iterable[str]) -> NDArray[np.datetime64]:
    """ISO times as times."""
    return np.array([text.replace(" ", "T") for text in texts], dtype="datetime64[us]")


def profile_batch(batch: Batch) -> dict[str, Profile]:
    """What the columns of one part hold."""
    found = {}
    for name, raw in batch.items():
        found[name] = Profile()
        found[name].add(raw, name)
    return found


def merge_profiles(parts: Iterable[dict[str, Profile]]) -> dict[str, Profile]:
    """What several parts hold together; the first of them is changed and given back."""
    whole: dict[str, Profile] = {}
    for part in parts:
        for name, profile in part.items():
            if name in whole:
                whole[name].merge(profile, name)
            else:
                whole[name] = profile
    return whole


def choose_fields(
    profiles: Mapping[str, Profile], options: Options, engine: str
) -> tuple[tuple[Field, ...], dict[str, str]]:
    """The fields of a large table, by the rules of a small one. Text is refused."""
    as_matrix = options.as_matrix

    def kind_of(name: str) -> str:
        profile = profiles[name]
        return "number" if as_matrix and not profile.kind else profile.read_as()

    def type_of(name: str, kind: str) -> str:
        return profiles[name].type_of(kind)

    def why_useless(name: str, kind: str) -> str | None:
        return None if as_matrix else profiles[name].why_useless(kind)

    fields, left_out = fields_among(
        [*options.exclude, *profiles],  # what is excluded was not read
        kind_of,
        type_of,
        why_useless,
        include=options.include,
        exclude=options.exclude,
        kinds=options.kinds,
        time_parts=options.time_parts,
    )
    for each in fields:
        if each.part is None:
            _check(each, profiles[each.source], engine, as_matrix)
    return fields, left_out


def _check(field: Field, profile: Profile, engine: str, as_matrix: bool) -> None:
    """What bins cannot be made of is refused in a sentence."""
    name, kind = field.name, field.kind
    if as_matrix and kind != "number":
        raise StairError(
            f'an estimator takes numbers only, but "{name}" holds {_PLURALS[profile.kind]}; '
            "leave it out, or use summarize(...)"
        )
    if kind == "text":
        raise StairError(
            f'"{name}" holds text, which the engine {engine} cannot count; leave it out with '
            f"--exclude {name} (exclude=[...]), or use the engine memory"
        )
    if kind == "category":
        profile.values(name)  # says so where there are too many
    elif profile.kind not in (kind, "") and not (
        kind == "time" and profile.all_iso and profile.n_texts
    ):
        raise StairError(
            f'"{name}" holds {_PLURALS[profile.kind]}, which the engine {engine} cannot read as '
            f"{kind}; convert the column first"
        )
    if profile.n_infinite:
        share = profile.n_infinite / profile.n_rows
        said = f"{share:.0%}" if share >= 0.01 else "some"
        raise StairError(
            f'{said} of "{name}" is infinite. Replace it or leave the column out '
            f"with --exclude {name} (exclude=[...])."
        )
