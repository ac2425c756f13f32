"""From plain columns to codes: once per row, and then the rows are never looked at again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import NETWORKS, TIME_PARTS, WEEKDAYS, Part, network_of, part_of
from stair.data.frame import Array, DType, Value
from stair.data.weights import Unit, nothing_of_a_class, weightless_in_words
from stair.engines.counting import Block, Codes, bin_numbers, code_type
from stair.errors import StairError
from stair.learn.table import notes_on_parts
from stair.rules.clauses import value_order
from stair.rules.columns import (
    ANY_SIDE,
    LISTS,
    ONE_SIDE,
    Binned,
    Categories,
    Column,
    Lists,
    Numbers,
    Times,
    namable,
)
from stair.rules.objective import Counts
from stair.rules.schema import MOST_KNOWN, Field, Schema
from stair.scale.edges import binned, with_infinite
from stair.scale.options import Options, Scale
from stair.scale.profile import NEVER, Profile, called, choose_fields, times_of
from stair.scale.raw import Batch, Raw, Words, all_missing, gone
from stair.scale.sketch import Sketch
from stair.verdict.codebook import Codebook
from stair.verdict.labels import Verdict, notes_on_outliers, outlier_among, read_labels

CHANGED = "the data changed while it was read: {} has a value that was not there before; run again"


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """How the rows of a table become codes.

    `edges` are the bounds of a column's bins, or the values of its categories as they are stored
    (sorted numbers, or the words themselves).
    """

    fields: tuple[Field, ...]
    columns: tuple[Column, ...]
    edges: tuple[tuple[object, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each column, "missing" included."""
        return tuple(_n_values(column) + 1 for column in self.columns)

    @property
    def inexact(self) -> tuple[str, ...]:
        """The columns whose cuts are at the bounds of bins and not between any two values."""
        return tuple(c.name for c in self.columns if isinstance(c, Binned) and c.tops != c.bottoms)


def _n_values(column: Column) -> int:
    if isinstance(column, Binned):
        return len(column.tops)
    assert isinstance(column, Categories)
    return column.size


def make_coding(
    fields: Sequence[Field],
    profiles: Mapping[str, Profile],
    n_bins: int,
    lists: Lists = LISTS,
    *,
    time_windows: bool = False,
) -> Coding:
    """Bins for numbers and times, and the categories in their order."""
    columns: list[Column] = []
    edges: list[tuple[object, ...]] = []
    for attribute, field in zip(Schema(tuple(fields)).attributes, fields, strict=True):
        column, bounds = _column(
            field, attribute, profiles[field.source], n_bins, lists, time_windows
        )
        columns.append(column)
        edges.append(tuple(bounds))
    return Coding(tuple(fields), tuple(columns), tuple(edges))


def _column(
    field: Field, attribute: int, profile: Profile, n_bins: int, lists: Lists, time_windows: bool
) -> tuple[Column, Sequence[object]]:
    name = field.name
    if field.part == "hour":
        hours = Sketch()
        hours.add(np.arange(24.0))
        return binned(Numbers(name, attribute, whole=True), hours, 24)
    if field.part == "weekday":
        days = sorted(WEEKDAYS, key=value_order)
        return Categories(name, attribute, tuple(days)), days
    if field.part in NETWORKS:
        networks = Counter[str]()
        for address, n in (profile.words or {}).items():
            if (network := network_of(address, field.part)) is not None:
                networks[network] += n
        column, stored = _named(name, attribute, networks, lists)
        return replace(column, of=field.source), stored
    if field.kind == "number":
        numbers = Numbers(name, attribute, field.is_whole)
        found, edges = binned(numbers, profile.sketch, n_bins)
        return with_infinite(found, edges, bool(profile.n_below), bool(profile.n_above))
    if field.kind == "time":
        sides = ANY_SIDE if time_windows else ONE_SIDE
        return binned(Times(name, attribute, profile.whole_days, sides), profile.sketch, n_bins)
    values, counts = profile.values(name)
    column, stored = _named(name, attribute, dict(zip(values, counts, strict=True)), lists)
    if profile.kind not in ("number", "time"):
        return column, stored
    assert profile.sketch.distinct is not None
    if not column.has_others:  # then they are in the order in which they are stored
        column = Categories(name, attribute, tuple(values))
    return column, profile.sketch.distinct.tolist()


def _named(
    name: str, attribute: int, counts: Mapping[Value, int], lists: Lists
) -> tuple[Categories, Sequence[object]]:
    """Categories, of which those that may not be named share a code, and all of them in order. The
    classes of the rows are not known yet: the most frequent ones are named."""
    ordered = sorted(counts, key=value_order)
    column = Categories(name, attribute, tuple(ordered))
    if column.is_closed:
        return column, ordered
    own = namable(np.array([counts[v] for v in ordered], dtype=np.int64), None, lists)
    if len(own) == len(ordered):
        return column, ordered
    return Categories(name, attribute, tuple(ordered[k] for k in own), has_others=True), ordered


def read_verdict(profile: Profile, options: Options) -> tuple[Verdict, tuple[Value, ...]]:
    """The labels of the different values of a column, and those values."""
    name = options.label
    if not profile.n_rows:
        raise StairError("the data has no rows; expected at least one row of values.")
    if profile.kind == "time":
        raise StairError(f'the label column "{name}" holds times; expected a verdict, such as 0/1')
    values, counts = profile.values(name)
    if profile.n_missing:
        values, counts = [*values, None], [*counts, profile.n_missing]
    if options.as_matrix:
        verdict = _labels_as_they_are(values, counts, options)
    else:
        verdict = read_labels(
            values, positive=options.positive, negative=options.negative,
            kinds=options.outlier_kinds, name=name, counts=counts,
        )  # fmt: skip
        said = (*verdict.notes, *notes_on_outliers(verdict, counts))
        verdict = replace(verdict, notes=said)
    if profile.kind == "number":
        assert profile.sketch.distinct is not None
        stored = tuple(profile.sketch.distinct.tolist())
    else:
        stored = tuple(values[: len(values) - bool(profile.n_missing)])
    return verdict, stored


def _labels_as_they_are(values: list[Value], counts: Sequence[int], options: Options) -> Verdict:
    """Classes in order, as they are."""
    if None in values:
        raise StairError(f'some labels in "{options.label}" are missing; leave those rows out')
    order = sorted(values, key=value_order)
    in_order = [counts[values.index(value)] for value in order]
    positive, guess = outlier_among(
        order, in_order, options.positive, name="y", setting="pos_label"
    )
    notes = (guess,) if guess else ()
    codes = np.array([order.index(value) for value in values], dtype=np.int32)
    return Verdict(codes, tuple(order), positive, options.label, notes)


@dataclass(frozen=True, slots=True, eq=False)
class Coder:
    """Codes and classes of any part of the table; rows without a label are left out."""

    coding: Coding
    label: str
    stored: tuple[object, ...]  # the label's different values, as they are stored
    classes: NDArray[np.int32]  # the class of each of them; −1 is none
    scale: Scale | None = None  # of weights: rows of weight 0 are left out, too

    def __call__(self, batch: Batch, pool: ThreadPoolExecutor | None = None) -> Block:
        classes = self.classes_of(batch)
        known = np.flatnonzero(classes >= 0)
        fields = range(len(self.coding.fields))

        def code(j: int) -> Codes:
            codes = code_column(self.coding, j, batch)
            return codes if len(known) == len(classes) else codes[known]

        codes = list(map(code, fields) if pool is None else pool.map(code, fields))
        return Block(codes, classes[known].astype(np.uint8))

    def classes_of(self, batch: Batch) -> NDArray[np.int32]:
        """The class of each row, −1 where it has none."""
        if all_missing(batch[self.label]):
            return np.full(len(batch[self.label]), -1, dtype=np.int32)
        of_code = np.append(self.classes[: len(self.stored)], np.int32(-1))
        places = _places(batch[self.label], self.stored, self.label)
        classes: NDArray[np.int32] = of_code[places]
        return classes if self.scale is None else np.where(self.scale.of(batch), classes, -1)


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A table as codes: all that is needed to learn, and to say what was learned from."""

    coding: Coding
    classes: tuple[Value, ...]
    positive: int | None
    meaning: str
    notes: tuple[str, ...]
    totals: tuple[int, ...]
    left_out: dict[str, str]
    names: tuple[str, ...]  # of all columns of the table, the label's too
    source: str
    codebook: Codebook | None = None
    unit: Unit | None = None  # of the weights of rows, where these have some

    def schema(self, whole: Counts) -> Schema:
        """What rules learned from all rows compare, by the counts of all codes."""
        starts = np.cumsum([0, *self.coding.sizes]).tolist()
        fields = []
        for j, (each, column) in enumerate(
            zip(self.coding.fields, self.coding.columns, strict=True)
        ):
            if isinstance(column, Categories):
                here = whole[starts[j] : starts[j + 1] - 1].sum(axis=1).tolist()
                known = [v for v, n in zip(column.values, here, strict=False) if n]
                if column.has_others:  # which of these have a label is not counted
                    known += set(_called(each, self.coding.edges[j])) - set(column.values)
                known.sort(key=value_order)
                each = replace(each, known=tuple(known) if len(known) <= MOST_KNOWN else None)
            fields.append(each)
        return Schema(tuple(fields), self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What the first look at a table has found: how its rows become codes and classes."""

    coder: Coder
    verdict: Verdict  # of the label's different values
    left_out: dict[str, str]
    names: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = ()  # about how the columns were read

    @property
    def coding(self) -> Coding:
        return self.coder.coding

    def coded(
        self, totals: tuple[int, ...], unit: Unit | None = None, n_weightless: int = 0
    ) -> Coded:
        """With the rows of each class, which are known when all rows are coded; where they have
        weights, those of weight 0 are not among them."""
        verdict = self.verdict
        notes = [*self.notes, *verdict.notes]
        if unit is not None and n_weightless:
            if 0 in totals:
                raise nothing_of_a_class(unit.name)
            notes.append(weightless_in_words(unit.name, n_weightless))
        return Coded(
            self.coding, verdict.classes, verdict.positive, verdict.meaning,
            tuple(notes), totals, self.left_out, self.names, self.source,
            verdict.codebook, unit,
        )  # fmt: skip


def make_plan(
    profiles: dict[str, Profile],
    options: Options,
    engine: str,
    names: Sequence[str],
    source: str,
    coding: Coding | None = None,
    notes: Sequence[str] = (),
) -> Plan:
    """Fields, classes and bins from what the columns hold; the bins may be given."""
    verdict, stored = read_verdict(profiles.pop(options.label), options)
    fields, left_out = choose_fields(profiles, options, engine)
    coding = coding or make_coding(
        fields, profiles, options.n_bins, options.lists, time_windows=options.time_windows
    )
    coder = Coder(coding, options.label, stored, verdict.codes)
    kinds: dict[str, list[str]] = {}
    for each in fields:
        kinds.setdefault(each.source, []).append("time" if each.part in TIME_PARTS else each.kind)
    read = [  # in the order of a table in memory
        *notes,
        *(note for name in kinds for note in profiles[name].notes(name)),
        *notes_on_parts(fields, lambda name: profiles[name].zone, options.time_zone),
        *(note for name, as_ in kinds.items() for note in profiles[name].unread(name, as_)),
    ]
    return Plan(coder, verdict, left_out, tuple(names), source, tuple(read))


def code_column(coding: Coding, j: int, batch: Batch) -> Codes:
    """The codes of one column; the last one is "missing"."""
    field, column, edges = coding.fields[j], coding.columns[j], coding.edges[j]
    raw = batch[field.source]
    size = _n_values(column) + 1
    if all_missing(raw):
        return np.full(len(raw), size - 1, dtype=code_type(size))
    if isinstance(column, Categories):
        if field.part == "weekday":
            raw = _words(part_of(as_times(raw), "weekday", field.zone))
        elif field.part in NETWORKS:
            assert isinstance(raw, Words)
            raw = _networks(raw, field.part)
        places = _places(raw, edges, field.name)
        if column.has_others:
            codes = codes_of_stored(column, field, edges)
            places = np.array([*codes, size - 1], dtype=np.int64)[places]
        return places.astype(code_type(size))
    assert isinstance(column, Binned)
    if field.part == "hour":
        raw = part_of(as_times(raw), "hour", field.zone)
    elif field.kind == "time":
        raw = as_times(raw)
    assert not isinstance(raw, Words)
    type_ = type_of_values(column.tops)
    return bin_numbers(
        _in_type(raw, type_, field.name), np.array(edges, dtype=type_), size, gone(raw)
    )


def codes_of_stored(column: Categories, field: Field, stored: Sequence[object]) -> list[int]:
    """The code of each value as it is stored: those that may not be named share one."""
    if not column.has_others:
        return list(range(len(stored)))
    own = {value: k for k, value in enumerate(column.values)}
    return [own.get(value, len(own)) for value in _called(field, stored)]


def type_of_values(values: Sequence[Value]) -> DType:
    """The type that holds these numbers exactly, and whatever lies between them."""
    if not any(isinstance(v, int) for v in values):
        return np.dtype(np.float64)
    return np.dtype(np.uint64 if max(values) >= 2**63 else np.int64)


def _in_type(raw: Array, type_: DType, name: str) -> Array:
    """Numbers or times in the type of what is known of the column, anything where missing."""
    values: Array = np.ma.getdata(raw)
    if values.dtype.kind == "M":
        return np.where(gone(raw), 0, values.astype("datetime64[us]").astype(np.int64))
    if values.dtype == type_ or type_.kind == "f":
        return values.astype(type_, copy=False)
    present = values[~gone(raw)]
    least, most = np.iinfo(type_).min, np.iinfo(type_).max
    if len(present) and not (int(present.min()) >= least and int(present.max()) <= most):
        raise StairError(CHANGED.format(name))
    if values.dtype.kind == "f":
        if (present != np.rint(present)).any():
            raise StairError(CHANGED.format(name))
        values = np.where(np.isnan(values), 0.0, values)
    return values.astype(type_)


def as_times(raw: Raw) -> NDArray[np.datetime64]:
    """A column that was learned as times."""
    if not isinstance(raw, Words):
        return raw.astype("datetime64[us]")
    times = np.append(times_of(raw.values), NEVER)
    found: NDArray[np.datetime64] = times[raw.codes]
    return found


def _networks(raw: Words, part: Part | None) -> Words:
    """The networks of addresses."""
    found = [network_of(value, part) for value in raw.values]
    values = sorted({v for v in found if v is not None})
    place = {v: k for k, v in enumerate(values)}
    codes = np.array([*(-1 if v is None else place[v] for v in found), -1], dtype=np.int64)
    return Words(values, codes[raw.codes])


def _words(array: Array) -> Words:
    values = sorted({v for v in array.tolist() if v is not None})
    place: dict[object, int] = {v: k for k, v in enumerate(values)}
    codes = [place.get(v, -1) for v in array.tolist()]
    return Words(values, np.array(codes, dtype=np.int64))


def _called(field: Field, stored: Sequence[object]) -> list[object]:
    """The values of a category as rules name them."""
    return called(stored, is_time=field.type == "time")


def _places(raw: Raw, stored: Sequence[object], name: str) -> NDArray[np.int64]:
    """The place of each value among those that are known; past the last one where missing."""
    missing = len(stored)
    if isinstance(raw, Words):
        place = {(type(v) is bool, v): k for k, v in enumerate(stored)}
        found = [place.get((type(v) is bool, v), -1) for v in raw.values]
        of_code = np.array([*found, missing], dtype=np.int64)
        places: NDArray[np.int64] = of_code[raw.codes]
    else:
        known = np.array(stored, dtype=type_of_values(stored))
        values = _in_type(raw, known.dtype, name)
        places = np.searchsorted(known, values).astype(np.int64)
        places = np.minimum(places, max(missing - 1, 0))
        if len(known):
            places[known[places] != values] = -1
        places[gone(raw)] = missing
    if (places < 0).any():
        raise StairError(CHANGED.format(name))
    return places
