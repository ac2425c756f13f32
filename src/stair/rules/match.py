"""Which rules cover which rows, for all rules at once.

Each attribute's bounds cut its values into cells. For each cell we know, as packed bits, which
rules allow it; a row's rules are the AND over the attributes. That costs a look-up per row and
attribute in place of a comparison per row and clause.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data.frame import Array
from stair.rules import _match_twin
from stair.rules.clauses import Clause, Interval, as_doubles

KERNEL: Any = _match_twin
with contextlib.suppress(ImportError):  # installed without a C compiler
    KERNEL = import_module("stair.rules._match")

Bits = NDArray[np.uint64]

# Rows handled at once: the bits of a block stay in the processor's cache.
BLOCK = 1 << 14


class Conjunction(Protocol):
    """Anything that is an AND of clauses: a rule."""

    @property
    def clauses(self) -> tuple[Clause, ...]: ...


class Repeated(NamedTuple):
    """A column of few different values: each of them, and for each row its place among them."""

    values: Array
    places: Array


Column: TypeAlias = Callable[[str], Array | Repeated]  # a column by its name


def blocks_of_bits(
    rules: Sequence[Conjunction], column: Column, n_rows: int
) -> Iterator[tuple[slice, Bits]]:
    """For each block of rows: a row of packed bits per table row, bit r set where rule r covers."""
    everything, lookups = lookups_of(rules, column)
    for start in range(0, n_rows, BLOCK):
        block = slice(start, min(start + BLOCK, n_rows))
        bits = np.tile(everything, (block.stop - block.start, 1))
        for lookup in lookups:
            lookup.narrow(bits, block)
        yield block, bits


def lookups_of(rules: Sequence[Conjunction], column: Column) -> tuple[Bits, list[Lookup]]:
    """The bits of all rules, and what each column that they speak of leaves of them."""
    everything = _pack(np.ones((1, len(rules)), dtype=np.bool_))[0]
    return everything, [_lookup(group, rules, column) for group in _groups(rules)]


def first_match(rules: Sequence[Conjunction], column: Column, n_rows: int) -> NDArray[np.intp]:
    """The first rule that covers each row, or −1."""
    result = np.empty(n_rows, dtype=np.intp)
    for block, bits in blocks_of_bits(rules, column, n_rows):
        KERNEL.first_of(bits, result[block])
    return result


def first_of(bits: Bits) -> NDArray[np.intp]:
    """The place of the first bit that is set in each row, or −1."""
    result = np.empty(len(bits), dtype=np.intp)
    KERNEL.first_of(np.ascontiguousarray(bits), result)
    return result


def first_covering(covered: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The same from a (rows × rules) matrix of what covers what."""
    if not covered.shape[1]:
        return np.full(len(covered), -1, np.intp)
    return np.where(covered.any(axis=1), covered.argmax(axis=1), -1)


def all_matches(rules: Sequence[Conjunction], column: Column, n_rows: int) -> NDArray[np.bool_]:
    """A (rows × rules) matrix of what covers what."""
    result = np.empty((n_rows, len(rules)), dtype=np.bool_)
    for block, bits in blocks_of_bits(rules, column, n_rows):
        result[block] = unpacked(bits, len(rules))
    return result


def unpacked(bits: Bits, n_rules: int) -> NDArray[np.bool_]:
    """Packed bits as booleans (rows × rules)."""
    flat = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")
    return flat[:, :n_rules].view(np.bool_)


Group = tuple[tuple[str, ...], list[tuple[int, Clause]]]


def _groups(rules: Sequence[Conjunction]) -> list[Group]:
    """The clauses of all rules, by what can be looked up together."""
    groups: dict[tuple[str, ...], list[tuple[int, Clause]]] = {}
    for number, rule in enumerate(rules):
        for clause in rule.clauses:
            groups.setdefault(clause.group, []).append((number, clause))
    return list(groups.items())


class Lookup(NamedTuple):
    """What one column says: for each cell of its values the packed rules that it leaves possible.
    Numbers find their cells among the edges; of other values the cells are known."""

    name: str
    values: Array
    edges: NDArray[np.float64] | None
    table: Bits

    def narrow(self, bits: Bits, block: slice) -> None:
        """Of the rules of some rows, those that are left."""
        if self.edges is None:
            KERNEL.narrow_by_cells(bits, self.values[block], self.table)
        else:
            KERNEL.narrow(bits, self.values[block], self.edges, self.table)


def _lookup(group: Group, rules: Sequence[Conjunction], column: Column) -> Lookup:
    _, members = group
    clauses: list[Any] = [clause for _, clause in members]
    kind: Any = type(clauses[0])  # a group has clauses of one kind
    here = column(clauses[0].feature)
    edges = None
    if kind is Interval and not isinstance(here, Repeated) and here.dtype == np.float64:
        bounds, allowed = Interval.edges(clauses)
        values, edges = np.ascontiguousarray(here), as_doubles(bounds)
    else:
        values, allowed = kind.cells(clauses, here.values if isinstance(here, Repeated) else here)
        if isinstance(here, Repeated):
            values = values[here.places]
        values = np.ascontiguousarray(values, dtype=np.intp)
    possible = np.ones((len(rules), allowed.shape[1]), dtype=np.bool_)
    for (number, _), row in zip(members, allowed, strict=True):
        possible[number] &= row
    return Lookup(clauses[0].feature, values, edges, _pack(possible.T))


def _pack(flags: NDArray[np.bool_]) -> Bits:
    """Booleans (rows × rules) as 64-bit words (rows × words)."""
    n_rows, n_rules = flags.shape
    words = max(1, -(-n_rules // 64))
    padded = np.zeros((n_rows, words * 64), dtype=np.bool_)
    padded[:, :n_rules] = flags
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
