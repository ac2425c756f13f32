"""Verdicts in one SQLite file: every decision is a transaction, and none is ever overwritten.

Several tabs, threads and programs may use one file at once. A decision that was answered is on
the disk; one that failed left nothing behind.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from stair.errors import StairError
from stair.review.database import (
    LONGEST,
    damaged,
    in_words,
    inode_of,
    open_database,
    place_of,
    transaction,
)
from stair.review.identity import fingerprint_of_rows, fingerprint_of_table
from stair.review.log import (
    LONGEST_NOTE,
    LONGEST_TEXT,
    NOBODY,
    VERDICTS,
    Carried,
    Event,
    State,
    Verdict,
    carried,
    is_sound,
    state_of,
    undone,
)

__all__ = [
    "Carried",
    "Event",
    "State",
    "Store",
    "Verdict",
    "carried",
    "fingerprint_of_rows",
    "fingerprint_of_table",
]

LONGEST_NAME: Final = 200
MOST_ROWS: Final = 100_000  # decided at once
LARGEST: Final = 2**63 - 1  # that SQLite can hold

_NAMES = tuple(field.name for field in fields(Event))
_FIELDS = ", ".join(_NAMES)
_fields = attrgetter(*_NAMES)


class Store:
    """The verdicts about one table, in a file that may hold those about others too."""

    def __init__(self, path: Path, data: str, *, patience: float = 10.0) -> None:
        """`data` is the table's fingerprint; `patience`, how many seconds a lock is waited for."""
        self.path = place_of(path)
        self._data = _text("the fingerprint of the data", data, LONGEST_NAME, least=1)
        self._patience = patience
        self._lock = threading.RLock()
        self._state = State(0, {}, {}, None)
        self._connection = open_database(self.path, patience)
        self._inode = inode_of(self.path)
        self._known: Event | None = None  # the latest event that was seen here

    def decide(
        self,
        who: str,
        subject: str,
        verdict: Verdict,
        *,
        note: str = "",
        text: str = "",
        n_rows: int = 0,
        payload: str = "",
        key: str = "",
        instead_of: Sequence[str] = (),
    ) -> Event:
        """A verdict about a rule. The same `key` again gives the stored event and stores nothing,
        so that a page may ask twice where an answer was lost.

        Verdicts about the subjects that this one is `instead_of` are withdrawn with it, and undone
        with it."""
        made = Event(0, "", who, "rule", subject, verdict, note, text, n_rows, payload, None)
        withdrawn = [replace(made, subject=each, verdict="none") for each in instead_of]
        return self._append([made, *withdrawn], key)[0]

    def decide_rows(
        self, who: str, rows: Sequence[int], verdict: Verdict, *, note: str = "", key: str = "",
        payload: str = "",
    ) -> list[Event]:  # fmt: skip
        """One verdict about single rows, stored and undone all at once."""
        numbers = [int(row) for row in rows]
        if not 1 <= len(numbers) <= MOST_ROWS:
            raise StairError(
                f"got {len(numbers):,} rows to decide; expected 1 to {MOST_ROWS:,} at once."
            )
        if not 0 <= min(numbers) <= max(numbers) <= LARGEST:
            raise StairError(f"no row has the number {min(numbers)}; they are counted from 0.")
        return self._append(
            [Event(0, "", who, "row", str(row), verdict, note, "", 1, payload, None)
             for row in dict.fromkeys(numbers)], key,
        )  # fmt: skip

    def put_rules(self, who: str, cause: str, payload: str) -> Event:
        """The rules that are judged from now on, and why there are new ones."""
        return self._append([Event(0, "", who, "rules", "", "", "", cause, 0, payload, None)])[0]

    def put_place(self, who: str, subject: str) -> None:
        """Where the person is, to go on there later; only the latest place is kept."""
        _text("the name of a person", who, LONGEST_NAME, least=1)
        _text("a place", subject, LONGEST_NAME)
        with self._writing() as connection:
            connection.execute(
                "INSERT INTO places SELECT ?, ?, ?, coalesce(max(stamp), 0) + 1 FROM places "
                "WHERE true ON CONFLICT (data, who) "
                "DO UPDATE SET subject = excluded.subject, stamp = excluded.stamp",
                (self._data, who, subject),
            )

    def place(self, who: str | None = None) -> str | None:
        """Where this person was last, or else where anybody was."""
        found = self._rows(
            "SELECT subject FROM places WHERE data = ? ORDER BY who = ? DESC, stamp DESC LIMIT 1",
            (self._data, who or ""),
        )
        return found[0][0] if found else None

    def undo(self, who: str, *, key: str = "") -> Event | None:
        """Take back this person's latest decision or set of rules, and say which it was.

        Who has decided nothing here, as somebody who comes back with another browser, takes back
        the latest of anybody."""
        return self._turn(who, key, redo=False)

    def redo(self, who: str, *, key: str = "") -> Event | None:
        """Take back this person's latest undo, if they did nothing since; what holds again."""
        return self._turn(who, key, redo=True)

    def state(self) -> State:
        """What holds now. The log is read again only where it has grown."""
        with self._lock:
            known = self._state
            fresh = self.events(known.last)
            if not fresh:
                return known
            if any(event.kind == "undo" for event in fresh):
                self._state = state_of(self.events())
            else:
                sets = [] if known.rule_set is None else [known.rule_set]
                held = [*known.rules.values(), *known.rows.values(), *sets, *fresh]
                self._state = state_of(held)
            return self._state

    def state_at(self, event: int) -> State:
        """What held when this event was the last one."""
        return state_of([each for each in self.events() if each.id <= event])

    def events(self, after: int = 0) -> list[Event]:
        """The log of this data, from the event after this one on."""
        found = self._rows(
            f"SELECT {_FIELDS} FROM events WHERE data = ? AND id > ? ORDER BY id",
            (self._data, after),
        )
        events = [self._event(row) for row in found]
        self._see(events)
        return events

    def last(self) -> int:
        """The id of the last event; cheap enough to ask often."""
        return int(self._rows(
            "SELECT coalesce(max(id), 0) FROM events WHERE data = ?", (self._data,)
        )[0][0])  # fmt: skip

    def other_data(self) -> int:
        """The decisions in the file that are about other data and hold."""
        logs: dict[str, list[Event]] = {}
        found = self._rows(f"SELECT data, {_FIELDS} FROM events WHERE data <> ?", (self._data,))
        for data, *values in found:
            logs.setdefault(data, []).append(self._event(values))
        return sum(state_of(log).n_decisions for log in logs.values())

    def close(self) -> None:
        """Let go of the file. Nothing needs this to be safe on the disk."""
        with self._lock:
            self._connection.close()

    def _append(self, made: Sequence[Event], key: str = "") -> list[Event]:
        """These events as one: with their numbers, on the disk and undone together."""
        first = made[0]
        _text("the name of a person", first.who, LONGEST_NAME, least=1)
        _text("the key of a request", key, LONGEST_NAME)
        _text("a note", first.note, LONGEST_NOTE)
        _text("the words of a rule", first.text, LONGEST_TEXT)
        _text("a rules file", first.payload, LONGEST)
        if first.kind != "rules" and first.verdict not in VERDICTS:
            raise StairError(
                f"no verdict {first.verdict!r}; expected one of {', '.join(VERDICTS)}."
            )
        for event in made:
            _text("the identity of a rule", event.subject, LONGEST_NAME,
                  least=int(event.kind == "rule"))  # fmt: skip
        if not 0 <= first.n_rows <= LARGEST:
            raise StairError(f"got {first.n_rows} rows of a rule; expected a number from 0 on.")
        with self._writing() as connection:
            if key and (stored := self._stored(key)):
                if _said(stored) != _said(made):
                    raise _used()
                return stored
            number, at = self._next_id(connection), _now()
            found = [
                replace(event, id=number + k, at=at, batch=number) for k, event in enumerate(made)
            ]
            self._insert(connection, found, key)
        self._see(found)
        return found

    def _turn(self, who: str, key: str, *, redo: bool) -> Event | None:
        """Undo or redo: one more event that names the one it takes back."""
        _text("the name of a person", who, LONGEST_NAME, least=1)
        _text("the key of a request", key, LONGEST_NAME)
        with self._writing() as connection:
            if key and (stored := self._stored(key)):
                turned = stored[0]
                if turned.kind != "undo" or turned.who != who:
                    raise _used()
                target = self._at(connection, turned.undoes)
                if (target.kind == "undo") != redo:
                    raise _used()
                return self._decision(connection, target)
            number = self._to_redo(connection, who) if redo else self._to_undo(connection, who)
            if number is None:
                return None
            own = self._next_id(connection)
            event = Event(own, _now(), who, "undo", "", "", "", "", 0, "", number, own)
            self._insert(connection, [event], key)
            found = self._decision(connection, self._at(connection, number))
        self._see([event])
        return found

    def _to_undo(self, connection: sqlite3.Connection, who: str) -> int | None:
        dead = undone(self._undos(connection))
        made = connection.execute(
            "SELECT id, who FROM events WHERE data = ? AND kind <> 'undo' AND id = batch "
            "AND who <> ? ORDER BY id DESC",
            (self._data, NOBODY),
        ).fetchall()
        mine = [number for number, name in made if name == who]
        return next((n for n in mine or [n for n, _ in made] if n not in dead), None)

    def _to_redo(self, connection: sqlite3.Connection, who: str) -> int | None:
        undos = self._undos(connection)
        dead, names = undone(undos), {undo for undo, _ in undos}
        mine = connection.execute(
            "SELECT id, kind, undoes FROM events WHERE data = ? AND who = ? ORDER BY id DESC",
            (self._data, who),
        )
        for number, kind, target in mine:
            if kind != "undo":
                return None
            if number not in dead and target not in names:
                return int(number)
        return None

    def _undos(self, connection: sqlite3.Connection) -> list[tuple[int, int]]:
        return connection.execute(
            "SELECT id, undoes FROM events WHERE data = ? AND undoes IS NOT NULL", (self._data,)
        ).fetchall()

    def _decision(self, connection: sqlite3.Connection, event: Event) -> Event:
        """The decision at the end of a chain of undos."""
        while event.undoes is not None:
            event = self._at(connection, event.undoes)
        return event

    def _at(self, connection: sqlite3.Connection, number: int | None) -> Event:
        query = f"SELECT {_FIELDS} FROM events WHERE data = ? AND id = ?"
        row = connection.execute(query, (self._data, number)).fetchone()
        if row is None:
            raise damaged(self.path.name, f"there is no event {number}")
        return self._event(row)

    def _event(self, row: Sequence[Any]) -> Event:
        event = Event(*row)
        if not is_sound(event):
            raise damaged(self.path.name, f"event {event.id} is none of ours")
        return event

    def _stored(self, key: str) -> list[Event]:
        found = self._connection.execute(
            f"SELECT {_FIELDS} FROM events WHERE data = ? AND key = ? ORDER BY id",
            (self._data, key),
        )
        return [self._event(row) for row in found]

    def _next_id(self, connection: sqlite3.Connection) -> int:
        last = int(connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])
        if not 0 <= last < LARGEST - MOST_ROWS:
            raise damaged(self.path.name, f"no event can follow the number {last}")
        return last + 1

    def _insert(self, connection: sqlite3.Connection, events: Sequence[Event], key: str) -> None:
        marks = ", ".join("?" * 14)
        connection.executemany(
            f"INSERT INTO events ({_FIELDS}, data, key) VALUES ({marks})",
            [(*_fields(event), self._data, key) for event in events],
        )

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock, in_words(self.path, self._patience):
            self._check_place()
            return self._connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk at the end, or nothing."""
        with self._lock, in_words(self.path, self._patience):
            self._check_place()
            with transaction(self._connection):
                yield self._connection
            self._check_place()

    def _check_place(self) -> None:
        """Notice a file that is not the one that was opened, or not what was written to it.

        SQLite would go on with a deleted file to the end, and with an older copy without a word.
        """
        if inode_of(self.path) != self._inode:
            raise StairError(
                f"{self.path.name} was moved or deleted while it was open, so that nothing is kept "
                f"any more. Put it back, or start again."
            )
        known = self._known
        if known is not None and self._connection.execute(
            "SELECT at, who, kind, subject, verdict FROM events WHERE id = ?", (known.id,)
        ).fetchall() != [(known.at, known.who, known.kind, known.subject, known.verdict)]:
            raise StairError(
                f"{self.path.name} was replaced while it was open: decisions that are shown here "
                f"are not in it. Put it back, or start again."
            )

    def _see(self, events: Sequence[Event]) -> None:
        with self._lock:
            if events and (self._known is None or events[-1].id > self._known.id):
                self._known = events[-1]


def _said(events: Sequence[Event]) -> list[tuple[str, ...]]:
    """What tells two requests with one key apart; what a rule's verdict replaces, does not."""
    of = events[:1] if events[0].kind == "rule" else events
    return [(e.who, e.kind, e.subject, e.verdict, e.note) for e in of]


def _used() -> StairError:
    return StairError("the key of this request was used for another decision.")


def _now() -> str:
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    return now.isoformat(timespec="milliseconds") + "Z"


def _text(what: str, text: str, most: int, *, least: int = 0) -> str:
    if not isinstance(text, str):
        raise StairError(f"{what} must be text, got {type(text).__name__}.")
    if len(text) > most:
        raise StairError(f"{what} has {len(text):,} characters; expected at most {most:,}.")
    if len(text) < least:
        raise StairError(f"{what} is empty; expected some text.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise StairError(f"{what} has half a character in it that cannot be stored.") from None
    return text
