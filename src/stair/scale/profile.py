"""What each column of a large table holds, from parts of it: what `table.py` asks a whole table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import MEASURES, Part, parts_that_change
from stair.data.frame import Value, zone_notes
from stair.data.values import moment
from stair.data.zones import SEVERAL, in_common, known_zone, was_together, zone_of
from stair.errors import StairError, option
from stair.learn.identifiers import A_KEY, expected_pairs, is_key, why_identifier
from stair.learn.table import (
    ISO_TIME,
    TRUE_TIMES,
    WORDS_IN_TEXT,
    address_counts,
    are_times,
    fields_among,
    no_category,
)
from stair.rules.remarks import unread_in_words
from stair.rules.schema import Field
from stair.scale.options import Options
from stair.scale.raw import Batch, Raw, Words, all_missing, gone
from stair.scale.sketch import MOST_DISTINCT, Sketch

MICROSECONDS_A_DAY: Final = 86_400_000_000
# The different texts of a column are kept up to so many characters together.
MOST_CHARACTERS: Final = 8 << 20
NEVER: Final = np.datetime64("NaT", "us")


@dataclass(slots=True, eq=False)
class Profile:
    """One column: how many values are missing, and what the others are like."""

    kind: str = ""  # number, time, flag or words
    was: str = ""  # what it was before it became plain, as in a Frame
    n_rows: int = 0
    n_missing: int = 0
    n_below: int = 0  # −∞, which the sketch does not hold
    n_above: int = 0  # +∞
    sketch: Sketch = field(default_factory=Sketch)
    whole_days: bool = True
    words: dict[Value, int] | None = field(default_factory=dict)  # None: too many to know them all
    n_characters: int = 0  # of the words
    n_words: int = 0  # in all texts together
    n_texts: int = 0
    # Of texts like times, "" where they have none; None where there are other texts too.
    zones: set[str] | None = field(default_factory=set)
    n_unreal: int = 0  # texts that look like a time and are none: 2024-02-30

    def add(self, raw: Raw, name: str, was: str = "") -> None:
        """One more part of the column."""
        if all_missing(raw):  # then its type says nothing
            self.n_rows += len(raw)
            self.n_missing += len(raw)
            return
        self._is(kind_of(raw), was, name)
        self.n_rows += len(raw)
        if isinstance(raw, Words):
            self._add_words(raw)
            return
        missing = gone(raw)
        n_missing = int(missing.sum())
        self.n_missing += n_missing
        values = np.ma.getdata(raw)
        values = values[~missing] if n_missing else values
        if values.dtype.kind == "M":
            self._add_times(values.astype("datetime64[us]").astype(np.int64))
            return
        if values.dtype.kind == "f":
            infinite = np.isinf(values)
            if infinite.any():
                self.n_below += int((values[infinite] < 0).sum())
                self.n_above += int((values[infinite] > 0).sum())
                values = values[~infinite]
        self.sketch.add(values)

    def merge(self, other: Profile, name: str) -> None:
        """All of another part."""
        if not other.n_rows:
            return
        if other.kind:
            self._is(other.kind, other.was, name)
        self.n_rows += other.n_rows
        self.n_missing += other.n_missing
        self.n_below += other.n_below
        self.n_above += other.n_above
        self.sketch.merge(other.sketch)
        self.whole_days &= other.whole_days
        self.n_words += other.n_words
        self.n_texts += other.n_texts
        self.n_unreal += other.n_unreal
        both = self.zones is not None and other.zones is not None
        self.zones = (self.zones or set()) | (other.zones or set()) if both else None
        if other.words is None:
            self.words = None
        else:
            self._count_words(other.words)

    def _is(self, kind: str, was: str, name: str) -> None:
        here = (kind, was)
        self.kind, self.was = alike(name, (self.kind, self.was), here) if self.kind else here

    def _add_times(self, ticks: NDArray[np.int64]) -> None:
        self.whole_days = self.whole_days and not bool((ticks % MICROSECONDS_A_DAY).any())
        self.sketch.add(ticks)

    def _add_words(self, raw: Words) -> None:
        counts = np.bincount(raw.codes + 1, minlength=len(raw.values) + 1)
        self.n_missing += int(counts[0])
        seen = {v: n for v, n in zip(raw.values, counts[1:].tolist(), strict=True) if n}
        texts = {v: n for v, n in seen.items() if isinstance(v, str)}
        self.n_texts += sum(texts.values())
        self.n_words += sum(len(text.split()) * n for text, n in texts.items())
        self._add_time_texts(texts)
        self._count_words(seen)

    def _add_time_texts(self, texts: Mapping[str, int]) -> None:
        if self.zones is None or not texts:
            return
        for text in texts:
            shape = ISO_TIME.fullmatch(text.strip())
            if shape is None:
                self.zones = None
                return
            self.zones.add("" if shape[1] is None else known_zone(shape[1]) or SEVERAL)
        times = times_of(texts)
        counts = np.array(list(texts.values()))
        real = ~np.isnat(times)
        self.n_unreal += int(counts[~real].sum())
        self._add_times(np.repeat(times[real].astype(np.int64), counts[real]))

    def _count_words(self, seen: Mapping[object, int]) -> None:
        if self.words is None:
            return
        for value, n in seen.items():
            if value not in self.words:
                self.n_characters += len(value) if isinstance(value, str) else 0
            self.words[value] = self.words.get(value, 0) + n
        if len(self.words) > MOST_DISTINCT or self.n_characters > MOST_CHARACTERS:
            self.words = None

    @property
    def has_infinite(self) -> bool:
        return bool(self.n_below or self.n_above)

    @property
    def has_time_texts(self) -> bool:
        """Whether it can be read as times: all texts look like some, and at least one is one."""
        return len({bool(zone) for zone in self.zones or ()}) == 1 and self.n_unreal < self.n_texts

    @property
    def zone(self) -> str | None:
        """Of which zone its times are, None where they have none."""
        if self.kind == "words" and self.zones and "" not in self.zones:
            return in_common(self.zones)
        return zone_of(self.was)

    def parts(self, zone: str) -> tuple[Part, ...]:
        """The parts of its times that change, as far as all times are known."""
        distinct = self.sketch.distinct
        if distinct is None:
            return ("weekday",) if self.whole_days else ("hour", "weekday")
        return parts_that_change(distinct.astype(np.int64).astype("datetime64[us]"), zone)

    def type_of(self, kind: str) -> str:
        """Of which type its values are, read as this kind."""
        if kind == "time":
            return "naive" if self.zone is None else "zoned"
        if kind == "number":
            if self.was in MEASURES:
                return self.was
            whole = self.sketch.n_rows and self.sketch.whole and not self.has_infinite
            return "whole" if whole else "real"
        if self.was == "described" or (kind == "category" and self.was in MEASURES):
            return self.was
        if kind == "text" or self.kind == "words":
            return "text"
        return self.kind or "number"

    def read_as(self) -> str:
        """The kind that a person would give it."""
        if self.kind in ("number", "time"):
            return self.kind
        if self.kind != "words":
            return "category" if self.kind else "number"
        if self._are_times():
            return "time"
        many = self.words is None or len(self.words) > 20
        return "text" if many and self.n_words / self.n_texts >= WORDS_IN_TEXT else "category"

    def _are_times(self) -> bool:
        """By the different texts, as in memory; by rows where these are too many to know them."""
        if not self.has_time_texts:
            return False
        if self.words is not None:
            return are_times(self.words)
        return self.n_texts - self.n_unreal >= TRUE_TIMES * self.n_texts

    def why_useless(self, name: str, kind: str) -> str | None:
        """Why the column cannot help; None where it can."""
        if self.was == "described":
            return "its values are lists, records or of several types"
        n_seen = self.n_rows - self.n_missing
        if n_seen == 0:
            return "all values are missing"
        n_distinct = self._n_distinct()
        if kind == "category" and n_distinct is None:
            return TOO_MANY
        if kind == "category" and (why := why_identifier((self.words or {}).values())) is not None:
            return why
        if kind == "number" and self.was not in MEASURES and (why := self._why_key(name)):
            return why
        return "all values are the same" if n_distinct == 1 and not self.n_missing else None

    def _why_key(self, name: str) -> str | None:
        """Why whole numbers are a key; where they are too many to know them all, by how often they
        repeat within the parts of the data."""
        sketch = self.sketch
        if self.kind != "number" or not (sketch.n_rows and sketch.whole):
            return None
        low, high = int(sketch.lowest), int(sketch.highest)
        if sketch.counts is None:
            if 2 * sketch.n_repeats >= sketch.n_rows:
                return None
            is_one = is_key(name, low, high, sketch.n_repeats, sketch.pairs)
            return f"{A_KEY}values hardly repeat" if is_one else None
        why = why_identifier(sketch.counts.tolist())
        pairs = expected_pairs(sketch.n_rows, low, high)
        repeats = sketch.n_rows - len(sketch.counts)
        return A_KEY + why if why and is_key(name, low, high, repeats, pairs) else None

    def _n_distinct(self) -> int | None:
        if self.kind in ("number", "time"):
            known = self.sketch.distinct
            return None if known is None else len(known) + bool(self.n_below) + bool(self.n_above)
        return None if self.words is None else len(self.words)

    def values(self, name: str) -> tuple[list[Value], list[int]]:
        """The different values with their counts, where they can all be known."""
        if self.has_infinite:
            raise no_category(name)
        if self.kind not in ("number", "time"):
            if self.words is not None:
                return list(self.words), list(self.words.values())
        elif self.sketch.distinct is not None:
            assert self.sketch.counts is not None
            values = called(self.sketch.distinct.tolist(), is_time=self.kind == "time")
            return values, self.sketch.counts.tolist()
        raise StairError(
            f'"{name}" has {TOO_MANY}, too many to tell them apart one by one; leave it out with '
            f"{option('exclude', name)}, or group them first"
        )

    def notes(self, name: str) -> list[str]:
        """What a person should know about what the column is."""
        return zone_notes(name, self.was)

    def unread(self, name: str, kinds: Iterable[str]) -> list[str]:
        """And about values that could not be read as these kinds."""
        if "time" in kinds and self.kind == "words" and self.n_unreal:
            return [unread_in_words(name, "time", self.n_unreal)]
        return []


def called(stored: Sequence[Value], *, is_time: bool) -> list[object]:
    """Numbers, or times in microseconds, as categories: what they are called in a rule."""
    if is_time:
        return [str(np.datetime64(int(tick), "us")) for tick in stored]
    return [int(v) if type(v) is float and v.is_integer() else v for v in stored]


TOO_MANY: Final = f"more than {MOST_DISTINCT:,} different values, or very long ones"
_PLURALS: Final = {
    "number": "numbers",
    "time": "times",
    "flag": "true and false",
    "words": "text",
    "zoned": "times with a zone",
    "described": "lists, records or bytes",
    **MEASURES,
}


def alike(name: str, one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    """What a column is, and was, whose parts are this; refused where they are of two kinds, or were
    of two types. Zones may differ."""
    together = (one[0], was_together(one[1], other[1]))
    if together != (other[0], was_together(other[1], one[1])):
        raise StairError(
            f'"{name}" holds {_plural(*one)} in one part of the data and {_plural(*other)} in '
            "another; write it as one of them"
        )
    return together


def _plural(kind: str, was: str) -> str:
    return _PLURALS[was.split(" ")[0] or kind]


def kind_of(raw: Raw) -> str:
    """Number, time, flag or words."""
    if isinstance(raw, Words):
        return "words" if any(isinstance(v, str) for v in raw.values) else "flag"
    return "time" if raw.dtype.kind == "M" else "number"


def times_of(texts: Iterable[object]) -> NDArray[np.datetime64]:
    """ISO texts as times; none where there is no such time."""
    found = [moment(str(text)) for text in texts]
    return np.array([NEVER if t is None else t for t in found], dtype="datetime64[us]")


def profile_batch(batch: Batch) -> dict[str, Profile]:
    """What the columns of one part hold."""
    found = {}
    for name, raw in batch.items():
        found[name] = Profile()
        found[name].add(raw, name, batch.types.get(name, ""))
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
        return profiles[name].read_as()

    def type_of(name: str, kind: str) -> str:
        return profiles[name].type_of(kind)

    def why_useless(name: str, kind: str) -> str | None:
        return None if as_matrix else profiles[name].why_useless(name, kind)

    def zone_of(name: str) -> str | None:
        return profiles[name].zone

    def parts_of(name: str, zone: str) -> tuple[Part, ...]:
        return profiles[name].parts(zone)

    fields, left_out = fields_among(
        [*options.exclude, *profiles],  # what is excluded was not read
        kind_of,
        type_of,
        why_useless,
        lambda name: {} if as_matrix else address_counts(profiles[name].words or {}),
        zone_of,
        parts_of,
        include=options.include,
        exclude=options.exclude,
        kinds=options.kinds,
        time_parts=options.time_parts,
        time_zone=options.time_zone,
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
            f'an estimator takes numbers only, but "{name}" holds '
            f"{_plural(profile.kind, profile.was)}; leave it out, or use summarize(...)"
        )
    if kind == "text":
        raise StairError(
            f'"{name}" holds text, which the engine {engine} cannot count; leave it out with '
            f"{option('exclude', name)}, or use the engine memory"
        )
    if kind == "category":
        profile.values(name)  # says so where there are too many
    elif profile.kind not in (kind, "") and not (kind == "time" and profile.has_time_texts):
        raise StairError(
            f'"{name}" holds {_plural(profile.kind, profile.was)}, which the engine {engine} '
            f"cannot read as {kind}; convert the column first"
        )
    if profile.has_infinite and profile.sketch.in_steps:
        raise StairError(
            f'"{name}" holds whole numbers beyond 2**53 and infinite ones, which the engine '
            f"{engine} cannot hold together; replace the infinite ones, or use the engine memory"
        )
    if as_matrix and profile.has_infinite:
        raise StairError(
            f'"{name}" holds infinite numbers, which estimators refuse as scikit-learn does; '
            "replace them, or use summarize(...)"
        )
