"""What rules may speak of, of which type each value is, and how any table is read by that.

A rule compares values of the type that it was learned with. `Schema.read` is the only way from a
table to such values: it brings what it finds to the learned type, counts what cannot be brought
there, and refuses a column that cannot be meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from stair.data.arrays import columns_of
from stair.data.conversion import (
    MEASURES,
    NETWORKS,
    TIME_PARTS,
    TYPES,
    NothingReadError,
    Part,
    as_category,
    as_networks,
    as_numbers,
    as_times,
    count_fractions,
    is_missing,
    part_of,
    type_of_values,
    zone_of_column,
)
from stair.data.frame import Array, Frame
from stair.data.names import name_order
from stair.data.objects import from_object
from stair.data.zones import UTC, fixed_offset, zone_of
from stair.errors import StairError, did_you_mean
from stair.rules.clauses import Among, Clause, Interval, Period, value_order
from stair.rules.remarks import Remarks

Kind: TypeAlias = Literal["number", "category", "time", "text"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
PART_KINDS: Final[dict[str, Kind]] = {
    "hour": "number", "weekday": "category", **dict.fromkeys(NETWORKS, "category"),
}  # fmt: skip

# The different values of a category are kept, to know what was never seen, up to this many.
MOST_KNOWN: Final = 1000


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute: its name in the rules, its kind, the table's column it comes from, and of
    which type its values were when the rules were learned.

    The part of a time (its hour, its weekday) has the type of that time. Where times have a zone,
    their parts are those of the clocks in `zone`. The part of an address, the network that it is
    in, is text.
    """

    name: str
    kind: Kind
    source: str
    part: Part | None = None
    type: str = ""
    zone: str = ""  # of times that have one: UTC where nothing else is said
    # The values of a category when the rules were learned, None where they are not known.
    known: tuple[object, ...] | None = field(default=None, compare=False, repr=False)
    # Of a number: the share of rows that had a word such as n/a in its place then.
    marked: float = field(default=0.0, compare=False, repr=False)

    def __post_init__(self) -> None:
        types = TYPES["time" if self.part in TIME_PARTS else self.kind]
        if not self.type:
            object.__setattr__(self, "type", types[0])
        elif self.type not in types:
            raise ValueError(f"a {self.kind} has no values of the type {self.type!r}")
        if self.type == "zoned":
            object.__setattr__(self, "zone", self.zone or UTC)
        elif self.zone:
            raise ValueError(f"values of the type {self.type!r} have no zone")

    @property
    def is_whole(self) -> bool:
        """Whether its numbers were whole when the rules were learned: rules are worded so then."""
        return self.kind == "number" and (self.type == "whole" or self.part == "hour")

    def spelled(self, truth: bool) -> str:
        """How true or false is written where text was learned: as it was then, else in lower
        case."""
        word = str(truth).lower()
        if self.type == "described":
            return word
        return next((v for v in self.known or () if isinstance(v, str) and v.lower() == word), word)


class Values(dict[str, Array]):
    """The values of fields, by field name, as the clauses compare them.

    Numbers are float64 (NaN: missing), but where whole numbers beyond 2**53 occur: int64, uint64,
    or Python's own numbers and None. Times are datetime64[us]; categories and texts are Python
    values and None. `unread` counts what could not be brought to the learned type, `unseen` the
    values of categories that did not occur when the rules were learned, and `fractions` those in
    columns that had whole numbers then; `notes` say so in sentences. All of it is in `remarks`.
    """

    def __init__(
        self, arrays: Mapping[str, Array], n_rows: int, remarks: Remarks | None = None
    ) -> None:
        super().__init__(arrays)
        self.n_rows = n_rows
        self.remarks = remarks or Remarks()
        self.unread = self.remarks.of("unread")
        self.unseen = self.remarks.of("unseen")
        self.fractions = self.remarks.of("fractions")

    @property
    def notes(self) -> tuple[str, ...]:
        return self.remarks.in_words

    def take(self, rows: Array) -> Values:
        """Some of the rows."""
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == np.bool_ else len(rows)
        return Values({name: array[rows] for name, array in self.items()}, n_rows)


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a rule set, and the names of all columns of the table it was learned from."""

    fields: tuple[Field, ...]
    columns: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of_numbers(cls, names: Iterable[str], whole: Collection[str] = ()) -> Schema:
        """A table of plain numbers; some columns have whole ones alone."""
        types = {True: "whole", False: "real"}
        return cls(tuple(Field(n, "number", n, type=types[n in whole]) for n in names))

    @classmethod
    def of_clauses(cls, names: Iterable[str], clauses: Iterable[Clause]) -> Schema:
        """What can be told from the clauses alone: for rules that nobody gave a schema."""
        found: dict[str, Field] = {}
        for clause in clauses:
            name = clause.feature
            if isinstance(clause, Interval):
                found[name] = Field(name, "number", name, type="whole" if clause.whole else "real")
            elif isinstance(clause, Period):
                found[name] = Field(name, "time", name)
            elif isinstance(clause, Among):
                is_number = name in found and found[name].kind == "number"
                if (clause.values and not is_number) or name not in found:
                    found[name] = Field(name, "category", name, type=type_of_values(clause.values))
            else:
                found[name] = Field(name, "text", name)
        return cls(tuple(found.get(name) or Field(name, "number", name) for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def taken(self) -> frozenset[str]:
        """All names of columns that the table is known to have."""
        return frozenset(self.columns) | {f.source for f in self.fields}

    @property
    def sources(self) -> list[str]:
        """The columns that the fields come from, in their order."""
        return list(dict.fromkeys(f.source for f in self.fields))

    @property
    def attributes(self) -> list[int]:
        """For each field the number of its attribute: an address and its networks are one."""
        addresses = {f.source for f in self.fields if f.part in NETWORKS}
        own: list[str | int] = []
        for place, f in enumerate(self.fields):
            is_one = f.source in addresses and f.part not in TIME_PARTS
            own.append(f.source if is_one else place)
        return [own.index(each) for each in own]

    def in_order(self) -> list[int]:
        """The places of the fields by name; of an address the narrow networks before the wide."""

        def key(place: int) -> tuple[object, int]:
            each = self.fields[place]
            if each.part is None or each.part not in NETWORKS:
                return name_order(each.name), 0
            return name_order(each.source), 4 - NETWORKS[each.part]

        return sorted(range(len(self.fields)), key=key)

    def remembering(self, values: Mapping[str, Array]) -> Schema:
        """The schema with the categories that these values have, as far as they are few."""
        return replace(self, fields=tuple(_remembering(f, values[f.name]) for f in self.fields))

    def marked_by(self, values: Values) -> Schema:
        """The schema with the shares of rows that have a word in place of a number."""
        shares = {source: n / values.n_rows for source, n in values.unread.items()}
        return replace(self, fields=tuple(
            replace(f, marked=shares[f.source])
            if f.kind == "number" and f.part is None and f.source in shares else f
            for f in self.fields
        ))  # fmt: skip

    def texts(self, names: Collection[str] | None = None) -> frozenset[str]:
        """The columns that were text: a file that may spell them otherwise is to be read so."""
        return frozenset(
            f.source
            for f in self.fields
            if f.kind in ("category", "text") and f.type == "text"
            and (names is None or f.name in names)
        )  # fmt: skip

    def read(
        self,
        table: Any,
        names: Collection[str] | None = None,
        *,
        strict: bool = False,
        wished: Collection[str] = (),
        is_part: bool = False,
    ) -> Values:
        """The values of these fields (all by default) in a table of any kind.

        An array has its columns in the order of the fields. With `strict`, as in learning, a value
        that is not of its type is an error. Fields that are `wished` are read where they are there
        and can be, and nothing is said of them where not. A table that `is_part` of another may
        have a column of which nothing can be read: see `Remarks.check`.
        """
        if isinstance(table, Values):
            return table
        fields = [f for f in self.fields if names is None or f.name in names or f.name in wished]
        if isinstance(table, list | tuple) and not any(isinstance(r, Mapping) for r in table):
            table = np.array(table, dtype=object)
        if isinstance(table, np.ndarray) and table.dtype.names is None:
            table = self._by_place(table, fields)
            if not fields:
                return Values({}, len(table))
        if _is_empty(table):
            return Values({f.name: np.empty(0) for f in fields}, 0)
        frame = table if isinstance(table, Frame) else from_object(table)
        arrays: dict[str, Array] = {}
        remarks = Remarks()
        for each in fields:
            if names is not None and each.name not in names:
                if (own := _wished(each, frame)) is not None:
                    arrays[each.name] = own
                continue
            raw, was = _column(each, frame)
            if each.type in ("naive", "zoned"):
                for text in _about_zones(each, raw, was):
                    remarks.note("zone", text)
            try:
                array, n_unread = _read(each, raw, was, strict)
                if is_part and raw.dtype.kind == "O" and not is_missing(array).all():
                    remarks.readable.add(each.source)
            except NothingReadError as error:
                if not is_part:
                    raise
                remarks.unreadable[each.source] = error
                array, n_unread = _nothing(each, raw)
            arrays[each.name] = array
            if n_unread:
                kind = "number" if each.kind == "number" and each.part is None else "time"
                kind = "IPv4 address" if each.part in NETWORKS else kind
                remarks.note("unread", each.source, n_unread, kind, each.marked)
            n_unseen = _count_unseen(each, array)
            if n_unseen:
                remarks.note("unseen", each.source, n_unseen)
            n_fractions = count_fractions(array) if each.is_whole and not strict else 0
            if n_fractions:
                remarks.note("fractions", each.source, n_fractions)
        return Values(arrays, frame.n_rows, remarks)

    def check_columns(self, names: Collection[str], used: Collection[str]) -> None:
        """Refuse a table with these columns that lacks one which the used fields come from."""
        for each in self.fields:
            if each.name in used:
                _check_column(each, names)

    def _by_place(self, table: Array, fields: Sequence[Field]) -> object:
        """The columns of these fields, by name; the array itself where none is needed."""
        sources = self.sources
        if table.ndim != 2 or table.shape[1] != len(sources):
            shape = " × ".join(map(str, table.shape))
            raise StairError(
                f"got an array of the shape {shape}; these rules expect rows with "
                f"{len(sources)} columns, and a single row goes in as [row]"
            )
        needed = {f.source for f in fields}
        places = [j for j, s in enumerate(sources) if s in needed]
        if not places:
            return table
        columns = columns_of(table, places)
        return {sources[j]: column for j, column in zip(places, columns, strict=True)}


def _remembering(each: Field, array: Array) -> Field:
    if each.kind != "category":
        return each
    known = {v for v in array.tolist() if v is not None}
    return replace(
        each, known=tuple(sorted(known, key=value_order)) if len(known) <= MOST_KNOWN else None
    )


def _is_empty(table: object) -> bool:
    """Whether a table in memory has no rows: nothing is wrong with that, but nothing to read."""
    if isinstance(table, Mapping):
        table = next(iter(table.values()), table)
    if hasattr(table, "shape"):
        return bool(table.shape[0] == 0)
    return isinstance(table, list | tuple) and not table


def _check_column(each: Field, names: Collection[str]) -> None:
    if each.source not in names:
        hint = did_you_mean(each.source, names)
        raise StairError(f'the rules need a column "{each.source}", which is not there.{hint}')


def _column(each: Field, frame: Frame) -> tuple[Array, str]:
    _check_column(each, frame.columns)
    return frame.columns[each.source], frame.types.get(each.source, "")


def _wished(each: Field, frame: Frame) -> Array | None:
    """The values of a field that nobody needs; None where they cannot be had."""
    if each.source not in frame.columns:
        return None
    try:
        return _read(each, *_column(each, frame), False)[0]
    except StairError:
        return None


def _about_zones(each: Field, raw: Array, was: str) -> list[str]:
    if each.type == "zoned" and zone_of(was) is None and raw.dtype.kind == "M":
        return [f'"{each.source}" had a time zone when the rules were learned and has none here; '
                "its times are taken as UTC"]  # fmt: skip
    if each.type == "naive" and zone_of(was) is not None:
        return [f'"{each.source}" had no time zone when the rules were learned and has one here; '
                "its times are taken as UTC"]  # fmt: skip
    is_offset = each.part in TIME_PARTS and bool(fixed_offset(each.zone))
    if is_offset and (here := zone_of_column(raw, was)) not in (None, each.zone):
        return [f'hours and weekdays of "{each.source}" are those of {each.zone}, as when the '
                f"rules were learned, and its times are of {here} here: where clocks change, learn "
                "with the name of the time zone"]  # fmt: skip
    return []


def _count_unseen(each: Field, array: Array) -> int:
    if each.known is None or each.kind != "category" or each.part in NETWORKS:
        return 0  # a new address is what networks are for
    known = {None, *each.known}
    return sum(v not in known for v in array.tolist())


def _nothing(each: Field, raw: Array) -> tuple[Array, int]:
    """The values of a part of a column in which nothing is of its type, and how many are there."""
    n_unread = int(np.count_nonzero(~is_missing(raw)))
    if each.part in TIME_PARTS or each.kind == "time":
        never = np.full(len(raw), np.datetime64("NaT", "us"))
        part = each.part
        return (never if part is None else part_of(never, part, each.zone)), n_unread
    return np.full(len(raw), np.nan), n_unread


def _read(each: Field, raw: Array, was: str, strict: bool) -> tuple[Array, int]:
    """The values, and how many could not be read."""
    name = each.source
    if each.part in NETWORKS:
        return as_networks(raw, each.part)
    if each.part is not None:
        times, unread = as_times(raw, name)
        return part_of(times, each.part, each.zone), unread
    if raw.dtype.kind == "f" and np.isnan(raw).all():  # nothing is there, whatever it would be
        was = each.type
    if (each.type in MEASURES or was in MEASURES) and was != each.type:
        then, now = (MEASURES.get(x, "plain values") for x in (each.type, was))
        raise StairError(f'"{name}" had {then} when the rules were learned, but has {now} here')
    if each.kind == "number":
        return as_numbers(raw, name, strict)
    if each.kind == "time":
        return as_times(raw, name)
    return as_category(raw, each.type, each.spelled), 0
