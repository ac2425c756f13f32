"""Rules counted on all rows where the rows are on a GPU: what `Census` finds, by kernels.

Which rules cover a row is found on the device, and so is how many rows have the same. A sample is
drawn in a second look at the rows, when it is known how many there are of each stratum: then the
largest lot that is drawn of each is known nearly, and few rows leave the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stair.data.arrays import from_array
from stair.data.frame import Array
from stair.data.lots import lots_of
from stair.data.packages import Foreign
from stair.data.weights import whole_numbers
from stair.gpu.device import REAL, Device, Lookup
from stair.gpu.panels import NO_LABEL, Place
from stair.rules.match import Conjunction, Repeated, first_of, lookups_of
from stair.rules.rule_set import Rule
from stair.rules.schema import Field, Schema
from stair.scale.census import Census, read_column
from stair.scale.draw import Sample
from stair.scale.on_gpu import feed_of_labels, order_of, profile_there
from stair.scale.profile import Profile
from stair.scale.raw import Batch, Raw, Words, from_loaded

AT_ONCE: Final = 1 << 24  # rows of which it is held at once what covers them, by words of 64 rules


@dataclass(slots=True, eq=False)
class TableThere:
    """Columns on a device, with what they hold."""

    device: Device
    columns: dict[str, Foreign]
    profiles: dict[str, Profile]  # as far as somebody has asked
    n_rows: int

    def profile(self, name: str) -> Profile:
        """What a column holds."""
        if name not in self.profiles:
            self.profiles[name] = profile_there(self.device, self.columns[name])
        return self.profiles[name]

    def lookups(
        self, rules: Sequence[Conjunction], schema: Schema
    ) -> tuple[NDArray[np.uint64], list[Lookup]] | None:
        """What the columns leave of rules; None where one cannot be looked up there."""
        places: dict[str, tuple[Foreign, Array | None]] = {}
        columns: dict[str, Array | Repeated] = {}
        for each in _used(rules, schema):
            values = self.columns[each.source]
            is_float = np.dtype(values.dtype).kind == "f"
            if each.kind == "number" and (is_float or _is_real(self.profile(each.source))):
                places[each.name], columns[each.name] = (values, None), np.zeros(0)
                continue
            known = _all_values(self.profile(each.source))
            if known is None:
                return None
            read = read_column(each, known)
            places[each.name] = values, _as_numbers(known)
            columns[each.name] = Repeated(read, np.arange(len(read)))
        everything, found = lookups_of(rules, columns.__getitem__)
        lookups = []
        for lookup in found:
            values, known_values = places[lookup.name]
            if known_values is None:
                assert lookup.edges is not None
                n = len(lookup.edges)
                lookups.append(Lookup(values, REAL, lookup.edges, n + 1, lookup.table))
            else:
                n = len(known_values)
                table = np.ascontiguousarray(lookup.table[lookup.values])
                order = order_of(known_values.dtype)
                lookups.append(Lookup(values, order, known_values, n, table))
        return everything, lookups


def _used(rules: Sequence[Conjunction], schema: Schema) -> list[Field]:
    names = {clause.feature for rule in rules for clause in rule.clauses}
    return [each for each in schema.fields if each.name in names]


def _is_real(profile: Profile) -> bool:
    """Whether its values are compared as doubles."""
    return profile.kind in ("number", "") and not profile.sketch.in_steps


def _all_values(profile: Profile) -> Raw | None:
    """The different values of a column and a missing one, in order."""
    if profile.kind == "flag":
        return Words([False, True], np.array([0, 1, -1]))
    distinct = profile.sketch.distinct
    if distinct is None or profile.has_infinite:
        return None
    if distinct.dtype.kind == "f":
        return np.append(distinct, np.nan)
    return np.ma.MaskedArray(np.append(distinct, distinct[:1]), [False] * len(distinct) + [True])


def _as_numbers(known: Raw) -> Array:
    """The same without the missing one, to be searched."""
    if isinstance(known, Words):
        return np.array([0, 1], dtype=np.int64)
    numbers: Array = np.ma.getdata(known)[:-1]
    return numbers


class Part(NamedTuple):
    """Some rows: the number of the first, the class of each, which rules cover it and which of them
    is the first, and its weight, if it has one."""

    start: int
    tags: Foreign
    bits: Foreign
    firsts: Foreign
    weights: Foreign | None


def take_census(asked: Census, table: TableThere, columns: Sequence[str]) -> Census | None:
    """The census of all rows; None where a rule speaks of what cannot be looked up there."""
    looked = table.lookups(asked.rules, asked.schema)
    clauses = [Rule((c,), r.label) for r in asked.rules[: asked.n_shown] for c in r.clauses]
    by_clause = table.lookups(clauses, asked.schema) if asked.sample is None else None
    if looked is None or (asked.sample is None and by_clause is None):
        return None
    found = asked.fresh()
    found.fractions |= {
        each.name
        for each in _used(asked.rules, asked.schema)
        if each.type == "whole" and not table.profile(each.source).sketch.whole
    }
    device, n_classes = table.device, asked.n_classes
    for part in _parts(asked, table, looked):
        _count(found, device, part)
    if asked.sample is not None:
        found.sample = _drawn(found, table, looked, columns)
    elif by_clause is not None:
        counts = np.zeros((len(clauses), n_classes), dtype=np.int64)
        for part in _parts(asked, table, by_clause) if clauses else ():
            for k in range(len(clauses)):
                met = (part.bits[:, k // 64] >> np.uint64(k % 64)) & np.uint64(1) > 0
                for label in range(n_classes):
                    counts[k, label] += int(device.there((met & (part.tags == label)).sum()))
        found.by_clause = counts
    return found


def _parts(
    asked: Census, table: TableThere, looked: tuple[NDArray[np.uint64], list[Lookup]]
) -> Iterator[Part]:
    device, (everything, lookups) = table.device, looked
    labels = feed_of_labels(device, table.columns[asked.coder.label], asked.coder)
    scale = asked.coder.scale
    together = max(1 << 18, AT_ONCE // len(everything))
    for start in range(0, table.n_rows, together):
        stop = min(start + together, table.n_rows)
        tags = device.xp.empty(stop - start, dtype=np.uint8)
        device.encode(tags, 0, 1, [(Place(0, 0, 1), labels.part(start, stop))])
        weights = None
        if scale is not None:
            own = table.columns[scale.weighing.column][start:stop].astype(np.float64)
            weights = whole_numbers(own, scale.exponent, device.xp)
            tags[weights == 0] = NO_LABEL
        bits, firsts = device.match(lookups, everything, start, stop - start)
        yield Part(start, tags, bits, firsts, weights)


def _count(found: Census, device: Device, part: Part) -> None:
    """Rows by class, fold and what covers them; most are covered by nothing."""
    xp, n_classes, folds = device.xp, found.n_classes, found.folds
    is_known = part.tags < n_classes
    place = part.tags.astype(np.int32)
    if folds.number > 1:
        rows = xp.arange(part.start, part.start + len(place), dtype=np.uint64)
        fold = lots_of(folds.seed, rows) % np.uint64(folds.number)
        place += fold.astype(np.int32) * np.int32(n_classes)
    is_bare = is_known & (part.firsts < 0)
    nothing = bytes(8 * part.bits.shape[1])
    for k in range(n_classes * folds.number):
        those = is_bare & (place == k)
        n = int(device.there(those.sum()))
        if n:
            found.groups[k, nothing] += n
            if part.weights is not None:
                found.heavy[k, nothing] += int(device.there(part.weights[those].sum()))
    rows = xp.flatnonzero(is_known & (part.firsts >= 0))
    if not len(rows):
        return
    held, covered = place[rows], part.bits[rows]
    number = held.astype(np.int64)
    for word in range(covered.shape[1]):  # numbers that are the same for the same words so far
        values, which = xp.unique(covered[:, word], return_inverse=True)
        _, number = xp.unique(number * len(values) + which, return_inverse=True)
    _, where, which, counts = xp.unique(
        number, return_index=True, return_inverse=True, return_counts=True
    )
    classes, bits = device.there(held[where]), device.there(covered[where])
    keys = [(label, own.tobytes()) for label, own in zip(classes.tolist(), bits, strict=True)]
    found.groups.update(dict(zip(keys, device.there(counts).tolist(), strict=True)))
    if part.weights is not None:  # sums that are exact as floats
        sums = xp.bincount(which, weights=part.weights[rows].astype(np.float64))
        found.heavy.update(dict(zip(keys, map(int, device.there(sums).tolist()), strict=True)))


def _drawn(
    found: Census,
    table: TableThere,
    looked: tuple[NDArray[np.uint64], list[Lookup]],
    columns: Sequence[str],
) -> Sample:
    """The rows that are drawn: of each stratum those with the smallest lots."""
    device, xp, sample = table.device, table.device.xp, found.sample
    assert sample is not None
    per_class = len(found.rules) + 1
    for (label, bits), n in found.groups.items():
        first = int(first_of(np.frombuffer(bits, dtype=np.uint64)[None])[0])
        sample.counts[label * per_class + (per_class - 1 if first < 0 else first)] += n
    limits = device.here(sample.likely_limits())
    keys, strata, chosen = [], [], []
    for part in _parts(found, table, looked):
        rows = xp.flatnonzero(part.tags < found.n_classes)
        firsts = part.firsts[rows]
        own = part.tags[rows].astype(np.int64) * per_class
        own += xp.where(firsts < 0, per_class - 1, firsts)
        numbers = rows.astype(np.uint64) + np.uint64(part.start)
        lots = lots_of(sample.seed, numbers)
        near = xp.flatnonzero(lots <= limits[own])
        keys.append(device.there(lots[near]))
        strata.append(device.there(own[near]).astype(np.intp))
        chosen.append(device.there(numbers[near]).astype(np.int64))
    numbers = np.concatenate(chosen)
    batch = Batch({name: _some(table, name, numbers) for name in columns})
    kinds = {
        name: (table.profile(name).kind, "")
        for name in columns
        if table.profile(name).n_missing < table.n_rows
    }
    sample.fill(batch, np.concatenate(keys), np.concatenate(strata), kinds)
    return sample


def _some(table: TableThere, name: str, rows: NDArray[np.int64]) -> Raw:
    """Some rows of a column."""
    values = table.columns[name][table.device.here(rows)]
    return from_loaded(from_array(name, table.device.there(values)))[0]
