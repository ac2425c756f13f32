"""A table that is held already, in memory, on a GPU or both, gone over as one that does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final, NamedTuple, cast

import numpy as np

from stair.data.arrays import from_array, label, named
from stair.data.frame import Array
from stair.data.objects import from_object
from stair.data.packages import Foreign
from stair.data.stream import VECTOR
from stair.errors import StairError, option
from stair.gpu.device import Device
from stair.progress import Progress, Words
from stair.scale.census import Census
from stair.scale.census_on_gpu import TableThere, take_census
from stair.scale.draw import Look
from stair.scale.profile import Profile
from stair.scale.raw import Batch, Raw, from_loaded
from stair.scale.raw import Words as RawWords
from stair.scale.rows import G

BATCH_BYTES: Final = 32 << 20
LABEL: Final = "label"  # what labels are called that come by themselves
WEIGHTS: Final = "weights"  # and weights


class Labelled(NamedTuple):
    """A table, and labels or weights that came by themselves."""

    data: object
    values: object
    name: str
    what: str = LABEL


@dataclass(slots=True, eq=False)
class Held:
    """All columns, those of the processor and those of the device."""

    names: Sequence[str]
    here: dict[str, tuple[Raw, str]]
    there: dict[str, Foreign]
    n_rows: int
    source: str
    notes: tuple[str, ...]
    device: Device
    say: Progress
    profiles: dict[str, Profile] = field(default_factory=dict)  # of columns of the device

    def gather(self, asked: G, columns: Sequence[str], what: str) -> G:
        is_there = not self.here or all(name in self.there for name in columns)
        if isinstance(asked, Census) and is_there:
            self.say(what)
            census = take_census(asked, self.table_there, columns)
            if census is not None:
                return cast(G, census)
        if isinstance(asked, Look) and all(name in self.there for name in columns):
            look = Look(asked.label, self.table_there.profile(asked.label), asked.weighing)
            if asked.weighing is not None:
                look.amounts.add(self.there[asked.weighing.column], self.device.xp)
            return cast(G, look)
        found = asked.fresh()
        for first, batch in self.batches(columns, what):
            found.add(batch, first)
        return found

    @property
    def table_there(self) -> TableThere:
        """The columns that are on the device."""
        return TableThere(self.device, self.there, self.profiles, self.n_rows)

    def batches(self, names: Sequence[str], what: str) -> Iterator[tuple[int, Batch]]:
        """Some rows after the other, and the number of the first of them."""
        types = {name: self.here[name][1] for name in names if name in self.here}
        together = rows_together(len(names))
        for first in range(0, self.n_rows, together):
            stop = min(first + together, self.n_rows)
            yield first, Batch({name: self._part(name, first, stop) for name in names}, types)
            self.say(Words(f"{what}: {stop:,} rows", stop / self.n_rows))

    def _part(self, name: str, first: int, stop: int) -> Raw:
        if name not in self.here:
            return from_loaded(from_array(name, self.device.there(self.there[name][first:stop])))[0]
        raw = self.here[name][0]
        if isinstance(raw, RawWords):
            return RawWords(raw.values, raw.codes[first:stop])
        part: Array = raw[first:stop]
        return part


def rows_together(n_columns: int) -> int:
    """As many rows as fit in a batch; DuckDB hands on as many where there are no texts."""
    together = BATCH_BYTES // (8 * n_columns + 1)
    return min(1 << 19, max(VECTOR, together // VECTOR * VECTOR))


def labelled(data: object, values: object, what: str = LABEL) -> Labelled:
    """A table with labels or weights as a column, by a name that no other has."""
    names = set(_named_in(data))
    numbers = (f"{what} ({number})" for number in count(2))
    return Labelled(data, values, next(n for n in chain([what], numbers) if n not in names), what)


def _named_in(data: object) -> list[str]:
    if isinstance(data, Labelled):
        return [*_named_in(data.data), data.name]
    return list(named(_names_of(data)))


def held_table(data: object, device: Device, say: Progress) -> Held:
    """A table in memory or on the device, column by column; nothing is copied that is there."""
    if isinstance(data, Labelled):
        held = held_table(data.data, device, say)
        _add(held, data, device)
        return held
    columns = _columns_of(data, device)
    there = {name: array for name, array in columns.items() if array is not None}
    for name, array in there.items():
        _check(name, array)
    frame = None
    if len(there) < len(columns) or not columns:
        rest: object = data
        if there:
            table: Foreign = data
            rest = {n: _plain(table[n]) for n in _names_of(data) if label(n) not in there}
        frame = from_object(rest)
    here = {} if frame is None else {
        name: from_loaded((array, frame.types.get(name, "")))
        for name, array in frame.columns.items()
    }  # fmt: skip
    names = list(columns) if there else list(here)
    lengths = {len(array) for array in there.values()}
    lengths |= set() if frame is None else {frame.n_rows}
    if len(lengths) > 1:
        raise StairError(f"the columns have {_listed(lengths)} values; expected equally many.")
    if lengths == {0}:
        raise StairError("the data has no rows; expected at least one row of values.")
    notes = () if frame is None else frame.notes
    return Held(names, here, there, lengths.pop(), "", notes, device, say)


def _add(held: Held, given: Labelled, device: Device) -> None:
    """One more column, of labels; or of weights, which no rule can speak of as it has no name in
    the table."""
    name = given.name
    array = device.taken(given.values)
    if array is None:
        frame = from_object({name: given.values})
        held.here[name] = from_loaded((frame.columns[name], frame.types.get(name, "")))
        n_rows = frame.n_rows
    else:
        _check(name, array)
        held.there[name] = array
        n_rows = len(array)
    if n_rows != held.n_rows:
        said = option("labels") if given.what == LABEL else given.what
        raise StairError(f"{said} has {n_rows:,} values, but the data has {held.n_rows:,} rows")
    if given.what == LABEL:
        held.names = [*held.names, name]


def _columns_of(data: object, device: Device) -> dict[str, Foreign | None]:
    """The columns by name: those that are on the device, and None for others."""
    matrix = device.taken(data)
    if matrix is not None:
        if matrix.ndim != 2:
            raise StairError(
                f"got an array with {matrix.ndim} dimension{'s' * (matrix.ndim != 1)} on the GPU; "
                "expected two: rows and columns."
            )
        return {f"x{j}": matrix[:, j] for j in range(matrix.shape[1])}
    if not isinstance(data, Mapping) and not _is_cudf(data):
        return {}
    table: Foreign = data
    names = _names_of(data)
    bare = [device.taken(_bare(table[name])) for name in names]
    return dict(zip(named(names), bare, strict=True))


def _names_of(data: object) -> list[object]:
    """The names of the columns as they are, where columns have names."""
    table: Foreign = data
    return list(table) if isinstance(data, Mapping) else list(getattr(table, "columns", ()))


def _is_cudf(data: object) -> bool:
    return type(data).__module__.partition(".")[0] == "cudf" and hasattr(data, "columns")


def _bare(column: Foreign) -> object:
    """A column of cuDF, whose missing values are beside it: numbers with NaN in their place."""
    if not _is_of_cudf(column):
        return column
    if column.dtype.kind not in "biuf":
        return None
    if not column.has_nulls:
        return column.values
    return column.astype("float64").fillna(float("nan")).values


def _is_of_cudf(column: object) -> bool:
    return type(column).__module__.partition(".")[0] == "cudf"


def _plain(column: Foreign) -> object:
    """What is read by the processor."""
    return column.to_pandas() if _is_of_cudf(column) else column


def _check(name: str, array: Foreign) -> None:
    if array.ndim != 1:
        raise StairError(f'"{name}" on the GPU has {array.ndim} dimensions; expected one.')
    kind = np.dtype(array.dtype)
    if kind.kind not in "biuf" or kind.itemsize > 8 or kind == np.float16:
        raise StairError(
            f'"{name}" on the GPU is of the type {kind}, which is not read there; expected numbers '
            "of 8 to 64 bits, floats of 32 or 64, or true and false"
        )


def _listed(lengths: set[int]) -> str:
    return " and ".join(f"{n:,}" for n in sorted(lengths)[:2])
