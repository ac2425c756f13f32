"""Growth by level: the same rules as one split at a time, with few passes over the data.

A rule's best split never depends on the other rules. So one pass counts all rules that are not
counted yet, and then the loop of `grow.py` is replayed over what is known. It decides what is
taken: a child can be cheaper than its parent, so no guess about the order is good enough. What
it stumbles on is counted in the next pass, together with the rules it will probably want soon.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from stair.engines.counting import Counter, Paths
from stair.engines.histograms import Cell, Division, HistogramEngine, NotCounted
from stair.learn.grow import Growth, Node, Search, grow_forest, plant
from stair.rules.objective import Counts, extra_length

# Bytes of counts that are held at once.
COUNTS_AT_ONCE: Final = 256 << 20


class Ahead(NamedTuple):
    """Rules that are counted ahead of the replay: at least so many, or so many for each that it has
    taken."""

    least: int
    of_taken: float


# Where a pass goes over files or a cluster, each that is not needed is worth some rules counted in
# vain. Where it takes a moment, looking for their splits is what takes time.
FAR_AHEAD: Final = Ahead(64, 4.0)
JUST_AHEAD: Final = Ahead(16, 0.5)


class Pass(NamedTuple):
    """One pass over the data."""

    number: int
    n_counted: int  # rules whose rows were counted
    n_taken: int  # splits that the replay could take before it
    seconds: float


@dataclass(slots=True)
class Divisions:
    """What earlier passes, maybe of a run that died, have found: divisions by the rule's path.

    A path is a word of L and R from the root. None says that a rule has no split.
    """

    divisions: dict[str, Division | None] = field(default_factory=dict)
    n_passes: int = 0


@dataclass(slots=True)
class LevelGrowth:
    """The growth, and what it cost."""

    growth: Growth
    passes: list[Pass]


class _Pair(NamedTuple):
    """What is counted together: the sides of a rule (or the root alone)."""

    parent: Node | None
    members: tuple[Node, ...]  # those whose counts are needed
    bottleneck: float  # the largest price on the way there: when the replay may come by


def grow_by_level(
    counter: Counter,
    *,
    min_score: float,
    max_rule_length: int,
    max_total_length: int | None = None,
    positive: int | None = None,
    counts_at_once: int = COUNTS_AT_ONCE,
    known: Divisions | None = None,
    ahead: Ahead = FAR_AHEAD,
    on_pass: Callable[[Pass, Divisions], None] | None = None,
    n_rows: int | None = None,
) -> LevelGrowth:
    """What `grow` finds with an engine that has the same codes, from a counter; of one that counts
    weights `n_rows` says of how many rows."""
    engine = HistogramEngine(counter.columns, counter.sizes, counter.totals, n_rows)
    search = Search(engine, max_rule_length)
    known = known or Divisions()
    root = plant(engine, positive)
    _restore(root, known, search, positive)
    per_rule = 8 * sum(counter.sizes) * len(counter.totals)
    most = max(2, counts_at_once // per_rule)
    passes: list[Pass] = []
    while True:
        try:
            growth = grow_forest(
                [(engine, root)],
                min_score=min_score,
                max_rule_length=max_rule_length,
                max_total_length=max_total_length,
                positive=positive,
            )
        except NotCounted:
            pass
        else:
            return LevelGrowth(growth, passes)
        started = time.perf_counter()
        pairs, n_taken = _wanted(root, max_total_length, most // 2, ahead)
        counted = _count(counter, root, pairs)
        engine.search([_cell(node) for node in counted])
        for node in counted:
            _divide(node, search, positive)
        _remember(root, known)
        _forget(root, most)
        known.n_passes += 1
        found = Pass(known.n_passes, len(counted), n_taken, time.perf_counter() - started)
        passes.append(found)
        if on_pass is not None:
            on_pass(found, known)


def recount(counter: Counter, growth: Growth) -> list[tuple[int, ...]]:
    """The class counts of the rules to keep, from a pass of their own over all rows."""
    leaves = list(growth.leaves())
    slots = {id(node): k for k, node in enumerate(leaves)}
    counts = counter.count(_paths(growth.root, slots, counter), [0])
    return [tuple(each) for each in counts.sum(axis=1).tolist()]


def _divide(node: Node, search: Search, positive: int | None) -> None:
    node.split = search.best(node)
    if node.split is None:
        _cell(node).counts = None
    else:
        node.children = search.divide(node, node.split, positive)


def _cell(node: Node) -> Cell:
    cell: Cell = node.group.handle
    return cell


def _is_open(node: Node) -> bool:
    """Whether the rule's rows must be counted before it can be divided."""
    return not _cell(node).is_counted and max(node.group.counts) < sum(node.group.counts)


# --- what to count next -----------------------------------------------------------------------


def _wanted(
    root: Node, max_total_length: int | None, most: int, ahead: Ahead
) -> tuple[list[_Pair], int]:
    """The pairs to count, and how many splits were replayed: what the replay stumbled on, and then
    the rules it may come by next, the soonest first, as many as fit."""
    if _is_open(root):
        return [_Pair(None, (root,), -math.inf)], 0
    required: list[_Pair] = []
    later: list[_Pair] = []
    taken = [node for node in _walk(root) if node.divided_at is not None]
    left_over = math.inf
    if max_total_length is not None:
        left_over = max_total_length - sum(n.split.extra_length for n in taken if n.split)
    pending = [(root, -math.inf, left_over)]
    while pending:
        node, bottleneck, room = pending.pop()
        if node.children is None or node.split is None:
            continue
        is_taken = node.divided_at is not None
        if not is_taken:
            bottleneck = max(bottleneck, node.split.price)
            room -= node.split.extra_length
        members = tuple(child for child in node.children if _is_open(child))
        if members and is_taken:
            required.append(_Pair(node, members, bottleneck))
        elif members and room >= extra_length(members[0].length, False):
            later.append(_Pair(node, members, bottleneck))  # else the replay never gets there
        pending.extend((child, bottleneck, room) for child in node.children)
    later.sort(key=lambda pair: pair.bottleneck)
    n_ahead = max(ahead.least, int(ahead.of_taken * len(taken)))
    chosen: list[_Pair] = []
    room_left = most
    for pair in (*required, *later[:n_ahead]):
        n_slots = _n_slots(pair)
        if chosen and n_slots > room_left:
            break
        room_left -= n_slots
        chosen.append(pair)
    return chosen, len(taken)


def _walk(root: Node) -> Iterator[Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.children or ())


def _n_slots(pair: _Pair) -> int:
    """One where the parent's counts are there to subtract from."""
    return 1 if pair.parent is None or _cell(pair.parent).counts is not None else len(pair.members)


# --- one pass ---------------------------------------------------------------------------------


def _count(counter: Counter, root: Node, pairs: list[_Pair]) -> list[Node]:
    """Count the pairs in one pass: of two sides the smaller one, and the other by subtraction."""
    slots: dict[int, int] = {}
    smaller: dict[int, Node] = {}
    for pair in pairs:
        parent = pair.parent
        if parent is not None and parent.children and _cell(parent).counts is not None:
            node = min(parent.children, key=lambda child: sum(child.group.counts))
            smaller[id(parent)] = node
            slots[id(node)] = len(slots)
        else:
            for node in pair.members:
                slots[id(node)] = len(slots)
    counts = counter.count(_paths(root, slots, counter), range(len(counter.columns)))
    done: list[Node] = []
    for pair in pairs:
        small = None if pair.parent is None else smaller.get(id(pair.parent))
        if small is None or pair.parent is None:
            for node in pair.members:
                _fill(node, counts[slots[id(node)]].copy(), done)
            continue
        whole = _cell(pair.parent).counts
        assert whole is not None and pair.parent.children is not None
        part = counts[slots[id(small)]]
        for node in pair.parent.children:
            if node in pair.members:
                _fill(node, part.copy() if node is small else whole - part, done)
    for pair in pairs:
        if pair.parent is not None:
            _cell(pair.parent).counts = None
    return done


def _fill(node: Node, counts: Counts, done: list[Node]) -> None:
    cell = _cell(node)
    cell.counts, cell.is_counted = counts, True
    done.append(node)


def _paths(root: Node, slots: dict[int, int], counter: Counter) -> Paths:
    """The part of the tree that leads to the rules with a slot."""
    leads: dict[int, bool] = {}
    for node in reversed(list(_walk(root))):  # children before their parents
        below = any(leads[id(child)] for child in node.children or ())
        leads[id(node)] = below or id(node) in slots
    numbers = {id(root): 0}
    order = [root]
    for node in order:  # grows as it goes
        if id(node) not in slots and leads[id(node)] and node.children:
            for child in node.children:
                numbers[id(child)] = len(order)
                order.append(child)
    n = len(order)
    column, cut, left, right, slot = (np.full(n, -1, dtype=np.int32) for _ in range(5))
    table = np.full(n, -1, dtype=np.int64)
    tables: list[np.ndarray] = []
    size = 0
    for k, node in enumerate(order):
        slot[k] = slots.get(id(node), -1)
        division = _cell(node).division
        if slot[k] >= 0 or not leads[id(node)] or node.children is None or division is None:
            continue
        split = division.split
        column[k], cut[k] = split.column, split.cut
        left[k], right[k] = (numbers[id(child)] for child in node.children)
        if not counter.columns[split.column].is_ordered or split.missing_left:
            goes_left = _goes_left(division, counter)
            tables.append(goes_left)
            table[k] = size
            size += len(goes_left)
    joined = np.concatenate(tables) if tables else np.zeros(1, dtype=np.uint8)
    return Paths(column, cut, table, joined, left, right, slot, len(slots))


def _goes_left(division: Division, counter: Counter) -> np.ndarray:
    split = division.split
    codes = np.arange(counter.sizes[split.column])
    if counter.columns[split.column].is_ordered:
        is_left = codes <= split.cut
        is_left[-1] = split.missing_left
    else:
        is_left = np.isin(codes, division.left)
    return is_left.astype(np.uint8)


def _forget(root: Node, most: int) -> None:
    """Hold no more counts than allowed: those of the dearest rules go, to be counted again."""
    holding = [node for node in _walk(root) if _cell(node).counts is not None]
    for node in holding:
        if not any(_is_open(child) for child in node.children or ()):
            _cell(node).counts = None
    holding = [node for node in holding if _cell(node).counts is not None]
    holding.sort(key=lambda node: node.split.price if node.split else math.inf)
    for node in holding[most // 2 :]:
        _cell(node).counts = None


# --- what is known ----------------------------------------------------------------------------


def _remember(root: Node, known: Divisions) -> None:
    pending = [(root, "")]
    while pending:
        node, path = pending.pop()
        if _cell(node).is_counted:
            known.divisions[path] = _cell(node).division if node.children else None
        for side, child in zip("LR", node.children or (), strict=False):
            pending.append((child, path + side))


def _restore(root: Node, known: Divisions, search: Search, positive: int | None) -> None:
    """The tree as an earlier run knew it, without its counts."""
    pending = [(root, "")]
    while pending:
        node, path = pending.pop()
        if path not in known.divisions:
            continue
        division = known.divisions[path]
        cell = _cell(node)
        cell.is_counted, cell.division = True, division
        if division is None:
            node.split = None
            cell.found = search.nothing(node)
            continue
        node.split = division.split
        node.children = search.divide(node, division.split, positive)
        for side, child in zip("LR", node.children, strict=True):
            pending.append((child, path + side))
