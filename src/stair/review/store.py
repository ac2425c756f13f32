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
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from stair.errors import StairError
from stair.review.database import in_words, inode_of, open_database, place_of, transaction
from stair.review.identity import fingerprint_of_rows, fingerprint_of_table
from stair.review.log import (
    VERDICTS,
    Carried,
    Event,
    Kind,
    State,
    Verdict,
    carried,
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

LONGEST_NOTE: Final = 10_000
LONGEST_NAME: Final = 200
LONGEST_TEXT: Final = 1_000_000
LONGEST_PAYLOAD: Final = 100_000_000
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
    ) -> Event:
        """A verdict about a rule. The same `key` again gives the stored event and stores nothing,
        so that a page may ask twice where an answer was lost."""
        return self._append("rule", who, [subject], verdict, note, text, n_rows, payload, key)[0]

    def decide_rows(
        self, who: str, rows: Sequence[int], verdict: Verdict, *, note: str = "", key: str = ""
    ) -> list[Event]:
        """One verdict about single rows, stored and undone all at once."""
        numbers = [int(row) for row in rows]
        if not 1 <= len(numbers) <= MOST_ROWS:
            raise StairError(
                f"got {len(numbers):,} rows to decide; expected 1 to {MOST_ROWS:,} at once."
            )
        if not 0 <= min(numbers) <= max(numbers) <= LARGEST:
            raise StairError(f"no row has the number {min(numbers)}; they are counted from 0.")
        subjects = [str(row) for row in dict.fromkeys(numbers)]
        return self._append("row", who, subjects, verdict, note, "", 1, "", key)

    def put_rules(self, who: str, cause: str, payload: str, *, key: str = "") -> Event:
        """The rules that are judged from now on, and why there are new ones."""
        return self._append("rules", who, [""], "", "", cause, 0, payload, key)[0]

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
        """Take back this person's latest decision or set of rules, and say which it was."""
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
        return [Event(*row) for row in found]

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
            logs.setdefault(data, []).append(Event(*values))
        return sum(state_of(log).n_decisions for log in logs.values())

    def close(self) -> None:
        """Let go of the file. Nothing needs this to be safe on the disk."""
        with self._lock:
            self._connection.close()

    def _append(
        self,
        kind: Kind,
        who: str,
        subjects: Sequence[str],
        verdict: str,
        note: str,
        text: str,
        n_rows: int,
        payload: str,
        key: str,
    ) -> list[Event]:
        _text("the name of a person", who, LONGEST_NAME, least=1)
        _text("the key of a request", key, LONGEST_NAME)
        _text("a note", note, LONGEST_NOTE)
        _text("the words of a rule", text, LONGEST_TEXT)
        _text("a rules file", payload, LONGEST_PAYLOAD)
        if kind != "rules" and verdict not in VERDICTS:
            raise StairError(f"no verdict {verdict!r}; expected one of {', '.join(VERDICTS)}.")
        for subject in subjects:
            _text("the identity of a rule", subject, LONGEST_NAME, least=int(kind == "rule"))
        if not 0 <= n_rows <= LARGEST:
            raise StairError(f"got {n_rows} rows of a rule; expected a number from 0 on.")
        with self._writing() as connection:
            if key and (stored := self._stored(key)):
                if [(e.who, e.kind, e.subject) for e in stored] != [
                    (who, kind, subject) for subject in subjects
                ]:
                    raise StairError("the key of this request was used for another decision.")
                return stored
            first, at = self._next_id(connection), _now()
            found = [
                Event(first + k, at, who, kind, subject, verdict, note, text, n_rows, payload,
                      None, first)
                for k, subject in enumerate(subjects)
            ]  # fmt: skip
            self._insert(connection, found, key)
        return found

    def _turn(self, who: str, key: str, *, redo: bool) -> Event | None:
        """Undo or redo: one more event that names the one it takes back."""
        _text("the name of a person", who, LONGEST_NAME, least=1)
        _text("the key of a request", key, LONGEST_NAME)
        with self._writing() as connection:
            if key and (stored := self._stored(key)):
                if stored[0].kind != "undo" or stored[0].who != who:
                    raise StairError("the key of this request was used for another decision.")
                return self._event(connection, self._decision(connection, stored[0].undoes))
            target = self._to_redo(connection, who) if redo else self._to_undo(connection, who)
            if target is None:
                return None
            number = self._next_id(connection)
            event = Event(number, _now(), who, "undo", "", "", "", "", 0, "", target, number)
            self._insert(connection, [event], key)
            return self._event(connection, self._decision(connection, target))

    def _to_undo(self, connection: sqlite3.Connection, who: str) -> int | None:
        dead = undone(self._undos(connection))
        mine = connection.execute(
            "SELECT id FROM events WHERE data = ? AND who = ? AND kind <> 'undo' AND id = batch "
            "ORDER BY id DESC",
            (self._data, who),
        )
        return next((number for (number,) in mine if number not in dead), None)

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

    def _decision(self, connection: sqlite3.Connection, number: int | None) -> int:
        """The decision at the end of a chain of undos."""
        while True:
            found = connection.execute(
                "SELECT undoes FROM events WHERE id = ?", (number,)
            ).fetchone()
            if found[0] is None:
                assert number is not None
                return number
            number = found[0]

    def _event(self, connection: sqlite3.Connection, number: int) -> Event:
        row = connection.execute(f"SELECT {_FIELDS} FROM events WHERE id = ?", (number,)).fetchone()
        return Event(*row)

    def _stored(self, key: str) -> list[Event]:
        found = self._connection.execute(
            f"SELECT {_FIELDS} FROM events WHERE data = ? AND key = ? ORDER BY id",
            (self._data, key),
        )
        return [Event(*row) for row in found]

    def _next_id(self, connection: sqlite3.Connection) -> int:
        found = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM events").fetchone()
        return int(found[0])

    def _insert(self, connection: sqlite3.Connection, events: Sequence[Event], key: str) -> None:
        marks = ", ".join("?" * 14)
        connection.executemany(
            f"INSERT INTO events ({_FIELDS}, data, key) VALUES ({marks})",
            [(*_fields(event), self._data, key) for event in events],
        )

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock, in_words(self.path, self._patience):
            return self._connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk at the end, or nothing."""
        with self._lock, in_words(self.path, self._patience):
            if inode_of(self.path) != self._inode:
                raise StairError(
                    f"{self.path.name} was moved or deleted while it was open; nothing was "
                    f"stored. Put it back, or start again."
                )
            with transaction(self._connection):
                yield self._connection


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
