"""What a column on a GPU holds, and how it becomes codes: what `profile.py` and `coding.py` say of
columns here. Few numbers leave the device for it.

A column that is not too long is sorted as a whole, and then all is the same as of a column here
that comes in one part. Of a longer one the least, the largest, what is missing and, where few
values differ, all values with their counts are of all rows; its quantiles are those of rows drawn
at random, evenly from all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import EXACT
from stair.data.frame import Array, DType, Value
from stair.data.lots import lots_of
from stair.data.packages import Foreign
from stair.gpu.device import REAL, UNSIGNED, WHOLE, Device, Extent, Feed
from stair.gpu.panels import NO_LABEL
from stair.learn.identifiers import expected_pairs
from stair.rules.columns import Binned, Categories
from stair.scale.coding import Coder, Coding, codes_of_stored, type_of_values
from stair.scale.profile import Profile
from stair.scale.sketch import MOST_DISTINCT, Sketch, places_at

SORTED: Final = 1 << 23  # rows that are sorted at once
# Of a longer column a quantile is that of so many rows: two of three are within a quarter of one of
# 1,024 bins.
DRAWN: Final = 1 << 22
OTHERS: Final = 1 << 16  # values that are noted at once because nobody knew them
SEED: Final = 0  # of the rows whose quantiles are taken: the same for the same data

_TYPES: Final = {REAL: np.dtype(np.float64), WHOLE: np.dtype(np.int64), UNSIGNED: np.dtype("u8")}


def profile_there(device: Device, values: Foreign, together: int = SORTED) -> Profile:
    """What a column on the device holds."""
    n_rows, dtype = len(values), np.dtype(values.dtype)
    if dtype.kind == "b":
        n_true = int(device.there(values.sum()))
        counts: dict[Value, int] = {False: n_rows - n_true, True: n_true}
        return Profile("flag", n_rows=n_rows, words={v: n for v, n in counts.items() if n})
    if dtype.kind == "f":
        extent, compared = device.look(values), REAL
    else:
        least, most = (int(device.there(each)) for each in (values.min(), values.max()))
        extent, compared = Extent(0, 0, 0, 0, least, most), _compared(dtype, least, most)
    if extent.n_missing == n_rows:
        return Profile(n_rows=n_rows, n_missing=n_rows)
    profile = Profile(
        "number", n_rows=n_rows, n_missing=extent.n_missing,
        n_below=extent.n_below, n_above=extent.n_above,
    )  # fmt: skip
    if extent.n_missing + extent.n_below + extent.n_above < n_rows:
        profile.sketch = _sketch(device, values, extent, _TYPES[compared], compared, together)
    return profile


def _compared(dtype: DType, least: int, most: int) -> int:
    """Whole numbers are doubles where these are exact, as in any table."""
    if least >= -EXACT and most <= EXACT:
        return REAL
    return UNSIGNED if dtype == np.uint64 else WHOLE


def _sketch(
    device: Device, values: Foreign, extent: Extent, type_: DType, compared: int, together: int
) -> Sketch:
    n_rows = len(values)
    is_all = n_rows <= together
    some = values if is_all else values[_drawn(device, n_rows, min(together, DRAWN))]
    ordered = _ordered(device, some)
    n_distinct = len(ordered) - _repeats(device, ordered)
    distinct: Array | None = None
    counts: NDArray[np.int64] | None = None
    if n_distinct <= MOST_DISTINCT:
        distinct, counts = _with_counts(device, ordered, type_)
        if not is_all:
            distinct, counts = _in_all_rows(device, values, compared, distinct)
    n_repeats, pairs, is_whole = 0, 0.0, not extent.n_fractions
    if is_whole:
        for part in [ordered] if is_all else _parts(device, values, together):
            n_repeats += _repeats(device, part)
            ends = device.there(part[[0, -1]])
            pairs += expected_pairs(len(part), int(ends[0]), int(ends[1]))
    elif is_all:
        n_repeats = len(ordered) - n_distinct
    places = device.here(places_at(len(ordered)))
    n_finite = n_rows - extent.n_missing - extent.n_below - extent.n_above
    lowest, highest = (type_.type(each).item() + 0 for each in (extent.least, extent.most))
    return Sketch.of_whole(
        device.there(ordered[places]).astype(type_), n_finite, lowest, highest, is_whole,
        distinct, counts, n_repeats, pairs,
    )  # fmt: skip


def _drawn(device: Device, n_rows: int, together: int) -> Foreign:
    """Rows drawn at random, one of each of as many stretches of about the same length."""
    numbers = device.xp.arange(together, dtype=np.uint64)
    first = numbers * np.uint64(n_rows) // np.uint64(together)
    return (first + lots_of(SEED, numbers) % np.uint64(n_rows // together)).astype(np.int64)


def _ordered(device: Device, values: Foreign) -> Foreign:
    """The numbers of a column in order; no negative zero."""
    if np.dtype(values.dtype).kind != "f":
        return device.xp.sort(values)
    ordered = device.xp.sort(values[device.xp.isfinite(values)])
    ordered += np.dtype(values.dtype).type(0)
    return ordered


def _parts(device: Device, values: Foreign, together: int) -> Iterator[Foreign]:
    """All of a column, in parts that are in order."""
    for first in range(0, len(values), together):
        part = _ordered(device, values[first : first + together])
        if len(part):
            yield part


def _repeats(device: Device, ordered: Foreign) -> int:
    """How many values are that of their neighbour before."""
    return int(device.there((ordered[1:] == ordered[:-1]).sum()))


def _with_counts(device: Device, ordered: Foreign, type_: DType) -> tuple[Array, NDArray[np.int64]]:
    """The different values, and how often each is there."""
    if not len(ordered):
        return np.zeros(0, dtype=type_), np.zeros(0, dtype=np.int64)
    after = device.there(device.xp.flatnonzero(ordered[1:] != ordered[:-1])) + 1
    starts = np.append(0, after)
    values = device.there(ordered[device.here(starts)])
    return values.astype(type_), np.diff(np.append(starts, len(ordered)))


def _in_all_rows(
    device: Device, values: Foreign, compared: int, known: Array
) -> tuple[Array | None, NDArray[np.int64] | None]:
    """The same of all rows, from the values that some have: whoever is not among them is noted."""
    while len(known) <= MOST_DISTINCT:
        counts, others, n_others = device.census(values, compared, device.here(known), OTHERS)
        if not n_others:
            return known, device.there(counts).astype(np.int64)
        more = device.there(others[: min(n_others, OTHERS)])
        known = np.union1d(known, more)
    return None, None


def feed_of(device: Device, values: Foreign, coding: Coding, j: int) -> Feed:
    """How values of the device become codes of a column."""
    column, edges = coding.columns[j], coding.edges[j]
    missing = coding.sizes[j] - 1
    if isinstance(column, Binned):
        type_ = type_of_values(column.tops)
        return Feed(values, order_of(type_), np.array(edges, dtype=type_), missing)
    assert isinstance(column, Categories)
    codes = codes_of_stored(column, coding.fields[j], edges)
    return _by_place(device, values, edges, codes, missing)


def feed_of_labels(device: Device, values: Foreign, coder: Coder) -> Feed:
    """How labels of the device become classes."""
    n_stored = len(coder.stored)
    classes = [c if c >= 0 else NO_LABEL for c in coder.classes[:n_stored].tolist()]
    return _by_place(device, values, coder.stored, classes, NO_LABEL)


def _by_place(
    device: Device,
    values: Foreign,
    stored: tuple[Value, ...],
    codes: list[int],
    missing: int,
) -> Feed:
    """Values one by one, each with its code."""
    type_ = type_of_values(stored)
    known = np.array(stored, dtype=type_)
    order = np.argsort(known)
    # One more for what is larger than all of them: nothing is, unless the data changes meanwhile.
    of_place = np.append(np.array(codes, dtype=np.uint16)[order], np.uint16(missing))
    return Feed(values, order_of(type_), known[order], missing, device.here(of_place))


def order_of(type_: DType) -> int:
    """How values are compared with bounds of this type."""
    return next(order for order, each in _TYPES.items() if each == type_)
