"""What was decided, as a list of events that only grows, and what it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

Verdict = Literal["outlier", "inlier", "unsure", "none"]
"""True outliers, a false alarm, unsure, or withdrawn."""
VERDICTS: tuple[Verdict, ...] = ("outlier", "inlier", "unsure", "none")
Kind = Literal["rule", "row", "rules", "undo"]
LONGEST_NOTE: Final = 10_000
LONGEST_TEXT: Final = 1_000_000
NOBODY: Final = "stair"  # who does what no person asked for


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the log."""

    id: int  # grows with every event
    at: str  # ISO 8601, UTC, milliseconds
    who: str  # a name, or a browser's own random id
    kind: Kind
    subject: str  # rule: the identity of its rows; row: its number from 0
    verdict: str  # of a rule or row, else ""
    note: str
    text: str  # rule: its words at the time; rules: the cause ("learned", "edited", …)
    n_rows: int  # that the subject held at the time
    payload: str  # as JSON; rule: its rows and class; row: its class; rules: they and settings
    undoes: int | None  # an undo's event; where that is an undo itself, this one takes it back
    batch: int = 0  # the first of the events that were decided at once


def is_sound(event: Event) -> bool:
    """Whether an event can have been written by us, whatever has become of the file since."""
    numbers = (event.id, event.n_rows, event.batch)
    if event.kind not in get_args(Kind) or min(numbers) < 0 or not 0 < event.batch <= event.id:
        return False
    if len(event.note) > LONGEST_NOTE or len(event.text) > LONGEST_TEXT:
        return False
    if event.kind == "undo":
        return event.undoes is not None and 0 < event.undoes < event.id
    if event.kind == "row" and not (event.subject.isdecimal() and len(event.subject) < 19):
        return False
    return event.undoes is None and (event.kind == "rules" or event.verdict in VERDICTS)


@dataclass(frozen=True, slots=True)
class State:
    """What holds now: for each subject the latest event that is not undone."""

    last: int  # id of the last event, 0 where there is none
    rules: Mapping[str, Event]  # verdicts of rules by identity; withdrawn ones are left out
    rows: Mapping[int, Event]  # verdicts of single rows
    rule_set: Event | None

    @property
    def n_decisions(self) -> int:
        return len(self.rules) + len(self.rows)


@dataclass(frozen=True, slots=True)
class Carried:
    """What becomes of verdicts when there are new rules."""

    kept: Mapping[str, tuple[Event, ...]]  # by the rules that they hold for; the latest is last
    lost: tuple[Event, ...]  # verdicts whose rule is gone, oldest first


def undone(undos: Iterable[tuple[int, int]]) -> set[int]:
    """The events that do not hold, from pairs (undo, what it undoes): batches by their first.

    An event only undoes earlier ones, so from the end back each one's own fate is known already.
    """
    dead: set[int] = set()
    for undo, target in sorted(undos, reverse=True):
        if undo not in dead:
            dead.add(target)
    return dead


def to_undo(log: Sequence[Event], who: str) -> int | None:
    """What this person's undo takes back: their latest decision that holds; that of anybody, if
    they have decided nothing."""
    dead = undone((e.id, e.undoes) for e in log if e.undoes is not None)
    made = [e for e in log if e.kind != "undo" and e.id == e.batch and e.who != NOBODY]
    mine = [e for e in made if e.who == who] or made
    return next((e.id for e in reversed(mine) if e.id not in dead), None)


def to_redo(log: Sequence[Event], who: str) -> int | None:
    """Which undo a person's redo takes back: their latest that holds, if they did nothing since."""
    undos = [(e.id, e.undoes) for e in log if e.undoes is not None]
    dead, names = undone(undos), {undo for undo, _ in undos}
    for event in reversed([e for e in log if e.who == who]):
        if event.undoes is None:
            return None
        if event.id not in dead and event.undoes not in names:
            return event.id
    return None


def state_of(events: Iterable[Event]) -> State:
    """What a log comes to; the verdicts of a state are themselves such a log."""
    log = sorted(events, key=lambda event: event.id)
    dead = undone((e.id, e.undoes) for e in log if e.undoes is not None)
    rules: dict[str, Event] = {}
    rows: dict[int, Event] = {}
    rule_set: Event | None = None
    for event in log:
        if (event.batch or event.id) in dead:
            continue
        if event.kind == "rules":
            rule_set = event
        elif event.kind == "rule":
            rules[event.subject] = event
        elif event.kind == "row":
            rows[int(event.subject)] = event
    return State(
        last=log[-1].id if log else 0,
        rules={subject: e for subject, e in rules.items() if e.verdict != "none"},
        rows={row: e for row, e in rows.items() if e.verdict != "none"},
        rule_set=rule_set,
    )


def rows_in(identity: str) -> str:
    """The half of a group's identity that tells its rows; files of earlier days have no other."""
    return identity[:16]


def carried(before: Iterable[Event], identities: Sequence[str]) -> Carried:
    """The verdicts about rules that go over to a new set of rules, and those that cannot.

    `before` is a state's verdicts (`state.rules.values()`) or a whole log. A verdict is about the
    rule that was judged. Where that one is gone, it goes over to the only rule that matches the
    same rows, and never to one that matches none: nobody has looked at anything of it.
    """
    verdicts = state_of(before).rules
    kept: dict[str, tuple[Event, ...]] = {}
    kept |= {identity: (verdicts[identity],) for identity in identities if identity in verdicts}
    gone: dict[str, list[Event]] = {}
    for event in sorted(verdicts.values(), key=lambda each: each.id):
        if event.subject not in kept:
            gone.setdefault(rows_in(event.subject), []).append(event)
    n_alike = Counter(map(rows_in, set(identities)))
    for identity in identities:
        rows = rows_in(identity)
        found = gone.get(rows, [])
        agree = len({event.verdict for event in found if event.n_rows}) == 1
        if identity not in kept and n_alike[rows] == 1 and agree:
            kept[identity] = tuple(gone.pop(rows))
    lost = sorted((e for events in gone.values() for e in events), key=lambda each: each.id)
    return Carried(kept, tuple(lost))
