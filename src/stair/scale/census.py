"""Rules counted on all rows at once: how many rows of each class which of them cover together.

That table is small, and all there is to know for a choice among the rules: the floor is linear in
its counts. The same pass draws rows for the next look at what no rule explains, and at what a rule
should not cover.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stair.data.conversion import TIME_PARTS, count_fractions
from stair.data.frame import Frame
from stair.rules.groups import Groups
from stair.rules.match import Repeated, blocks_of_bits, first_of, unpacked
from stair.rules.rule_set import Rule
from stair.rules.schema import Field, Schema
from stair.scale.coding import Coder, as_times
from stair.scale.draw import ONE_FOLD, Folds, Sample, Tier
from stair.scale.raw import Batch, Raw, Words, as_frame_column


@dataclass(slots=True, eq=False)
class Census:
    """One pass over all rows for some rules."""

    rules: tuple[Rule, ...]
    schema: Schema  # of the fields that the rules may speak of
    coder: Coder
    n_classes: int
    default: int
    sample: Sample | None  # None: nothing is drawn, and clauses are counted
    n_shown: int = 0  # the clauses of so many rules are counted
    folds: Folds = ONE_FOLD
    groups: Counter[tuple[int, bytes]] = field(default_factory=Counter)
    heavy: Counter[tuple[int, bytes]] = field(default_factory=Counter)  # by weight, if there is one
    by_clause: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    fractions: set[str] = field(default_factory=set)  # columns that were whole in a sample

    @classmethod
    def that_draws(
        cls,
        rules: Sequence[Rule],
        schema: Schema,
        coder: Coder,
        n_classes: int,
        default: int,
        most: int,
        seed: int,
    ) -> Census:
        """Strata are classes by the first rule that covers a row, or none."""
        per_class = len(rules) + 1
        tiers = np.full(n_classes * per_class, Tier.WANTED, dtype=np.intp)
        tiers[default * per_class : (default + 1) * per_class] = Tier.COVERED
        tiers[(default + 1) * per_class - 1] = Tier.REST
        return cls(tuple(rules), schema, coder, n_classes, default, Sample(most, seed, tiers))

    def fresh(self) -> Census:
        sample = None if self.sample is None else self.sample.fresh()
        return replace(
            self, sample=sample, groups=Counter(), heavy=Counter(), by_clause=self.by_clause[:0],
            fractions=set(),
        )  # fmt: skip

    def add(self, batch: Batch, first: int) -> None:
        classes = self.coder.classes_of(batch)
        rows = np.flatnonzero(classes >= 0)
        classes = classes[rows]
        scale = self.coder.scale
        weights = None if scale is None else scale.of(batch)[rows]
        columns = _values(self.rules, self.schema, batch, rows)
        kept_aside = self.folds.of(rows, first)
        self.fractions |= {
            each.name
            for each in self.schema.fields
            if each.type == "whole" and each.name in columns and count_fractions(
                _numbers(columns[each.name])
            )
        }  # fmt: skip
        covering = np.empty(len(rows), dtype=np.intp)
        for block, bits in blocks_of_bits(self.rules, columns.__getitem__, len(rows)):
            covering[block] = first_of(bits)
            place = classes[block] + self.n_classes * kept_aside[block]
            own = None if weights is None else weights[block]
            self._count(place, bits, covering[block] >= 0, own)
        if self.sample is None:
            self._count_clauses(columns, classes)
            return
        per_class = len(self.rules) + 1
        strata = classes * per_class + np.where(covering < 0, per_class - 1, covering)
        self.sample.add(batch, rows, strata.astype(np.intp), first)

    def merge(self, other: Census) -> None:
        self.groups.update(other.groups)
        self.heavy.update(other.heavy)
        self.fractions |= other.fractions
        if self.sample is None:
            self.by_clause = _sum(self.by_clause, other.by_clause)
        else:
            assert other.sample is not None
            self.sample.merge(other.sample)

    def _count(
        self,
        classes: NDArray[np.int64],
        bits: NDArray[np.uint64],
        is_covered: NDArray[np.bool_],
        weights: NDArray[np.int64] | None,
    ) -> None:
        """Rows by class (and fold) and by what covers them; most are covered by nothing, which
        needs no comparing."""
        nothing = bytes(8 * bits.shape[1])
        bare = np.bincount(classes[~is_covered])
        for k in np.flatnonzero(bare).tolist():
            self.groups[k, nothing] += int(bare[k])
            if weights is not None:
                self.heavy[k, nothing] += int(weights[~is_covered & (classes == k)].sum())
        covered = bits[is_covered]
        if not len(covered):
            return
        place = classes[is_covered]
        for word in covered.T:  # numbers that are the same for the same words so far
            values, number = np.unique(word, return_inverse=True)
            _, place = np.unique(place * len(values) + number, return_inverse=True)
        _, where, number, counts = np.unique(
            place, return_index=True, return_inverse=True, return_counts=True
        )
        held = classes[is_covered]
        for k, n in zip(where.tolist(), counts.tolist(), strict=True):
            self.groups[int(held[k]), covered[k].tobytes()] += n
        if weights is not None:
            sums = np.zeros(len(where), dtype=np.int64)
            np.add.at(sums, number, weights[is_covered])
            for k, total in zip(where.tolist(), sums.tolist(), strict=True):
                self.heavy[int(held[k]), covered[k].tobytes()] += total

    def _count_clauses(
        self, columns: dict[str, NDArray[np.generic] | Repeated], classes: NDArray[np.int32]
    ) -> None:
        found = []
        shown = self.rules[: self.n_shown]
        for clause in (clause for rule in shown for clause in rule.clauses):
            column = columns[clause.feature]
            if isinstance(column, Repeated):
                met = clause.covers(column.values)[column.places]
            else:
                met = clause.covers(column)
            found.append(np.bincount(classes[met], minlength=self.n_classes))
        counted = np.array(found, dtype=np.int64).reshape(-1, self.n_classes)
        self.by_clause = _sum(self.by_clause, counted)

    def table(self, *, by_weight: bool = False) -> Groups:
        """All that was counted, in an order that does not depend on that of the rows; or the same
        by weight, where rows have some."""
        return self.by_fold(by_weight=by_weight)[1]

    def by_fold(self, *, by_weight: bool = False) -> tuple[NDArray[np.intp], Groups]:
        """The same with the fold of each group."""
        counts = self.heavy if by_weight and self.coder.scale is not None else self.groups
        keys = sorted(self.groups)
        n_words = max(1, -(-len(self.rules) // 64))
        bits = np.frombuffer(b"".join(held for _, held in keys), dtype=np.uint64)
        folds, classes = np.divmod(np.array([k for k, _ in keys], dtype=np.intp), self.n_classes)
        groups = Groups(
            classes.astype(np.int32),
            unpacked(bits.reshape(-1, n_words), len(self.rules)),
            np.array([counts[key] for key in keys], dtype=np.int64),
        )
        return folds, groups


def worded(rule: Rule, fractions: Collection[str]) -> Rule:
    """A rule from a sample, where these columns turned out to have fractions elsewhere: it compares
    as before, and is not put into whole numbers."""
    clauses = tuple(c.with_fractions() if c.feature in fractions else c for c in rule.clauses)
    return replace(rule, clauses=clauses)


def typed(fields: Iterable[Field], fractions: Collection[str]) -> tuple[Field, ...]:
    """These fields, where some turned out to have fractions."""
    return tuple(replace(f, type="real") if f.name in fractions else f for f in fields)


def _numbers(column: NDArray[np.generic] | Repeated) -> NDArray[np.generic]:
    return column.values if isinstance(column, Repeated) else column


def _sum(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    return first + second if first.size and second.size else first if first.size else second


def _values(
    rules: Sequence[Rule], schema: Schema, batch: Batch, rows: NDArray[np.intp]
) -> dict[str, NDArray[np.generic] | Repeated]:
    """What the rules speak of, as they compare it. Of words each is read once and not row by
    row."""
    used = {clause.feature for rule in rules for clause in rule.clauses}
    found: dict[str, NDArray[np.generic] | Repeated] = {}
    for each in (f for f in schema.fields if f.name in used):
        raw = batch[each.source]
        was = {each.source: batch.types.get(each.source, "")}
        if isinstance(raw, Words):
            places = np.append(np.arange(len(raw.values)), -1)
            values = read_column(each, Words(raw.values, places), was)
            found[each.name] = Repeated(values, raw.codes[rows])  # the last stands for −1
        else:
            found[each.name] = read_column(each, raw, was)[rows]
    return found


def read_column(each: Field, raw: Raw, was: dict[str, str] | None = None) -> NDArray[np.generic]:
    """A column as a field's clauses compare it."""
    frame = Frame({each.source: as_frame_column(as_learned(each, raw))}, len(raw), types=was or {})
    return Schema((each,)).read(frame)[each.name]


def as_learned(each: Field, raw: Raw) -> Raw:
    """Texts as times where times were learned: a part may have nothing else than 2024-02-30."""
    is_time = each.kind == "time" or each.part in TIME_PARTS
    return as_times(raw) if is_time and isinstance(raw, Words) else raw
