"""Verdicts in one SQLite file: every decision is a transaction, and none is ever overwritten.

Several tabs, threads and programs may use one file at once. A decision that was answered is on
the disk; one that failed left nothing behind. What was read once is kept here as well: whatever is
asked of the file begins with what has come since.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import threading
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Final

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
from stair.review.log import (
    LONGEST_NOTE,
    LONGEST_TEXT,
    VERDICTS,
    Event,
    State,
    Verdict,
    is_sound,
    state_of,
    to_redo,
    to_undo,
)

LONGEST_NAME: Final = 200
MOST_ROWS: Final = 100_000  # decided at once
LARGEST: Final = 2**63 - 1  # that SQLite can hold

_NAMES = tuple(field.name for field in fields(Event))
_fields = attrgetter(*_NAMES)
# Of other data nothing is read that may be long.
_SHOWN = ", ".join(
    f"CASE WHEN data = :data THEN {name} ELSE '' END"
    if name in ("note", "text", "payload")
    else name
    for name in _NAMES
)


class Store:
    """The verdicts about one table, in a file that may hold those about others too."""

    def __init__(self, path: Path, data: str, *, patience: float = 10.0) -> None:
        """`data` is the table's fingerprint; `patience`, how many seconds a lock is waited for."""
        self.path = place_of(path)
        self._data = _text("the fingerprint of the data", data, LONGEST_NAME, least=1)
        self._patience = patience
        self._lock = threading.RLock()
        self._log: list[Event] = []  # of this data
        self._others: dict[str, list[Event]] = {}  # of other data
        self._latest: Event | None = None  # of any data
        self._state = State(0, {}, {}, None)
        self._connection = open_database(self.path, patience)
        self._inode = inode_of(self.path)

    # --- what is decided ----------------------------------------------------------------------

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
        with self.writing():
            self._connection.execute(
                "INSERT INTO places SELECT ?, ?, ?, coalesce(max(stamp), 0) + 1 FROM places "
                "WHERE true ON CONFLICT (data, who) "
                "DO UPDATE SET subject = excluded.subject, stamp = excluded.stamp",
                (self._data, who, subject),
            )

    def undo(self, who: str, *, key: str = "") -> Event | None:
        """Take back this person's latest decision or set of rules, and say which it was.

        Who has decided nothing here, as somebody who comes back with another browser, takes back
        the latest of anybody."""
        return self._turn(who, key, is_redo=False)

    def redo(self, who: str, *, key: str = "") -> Event | None:
        """Take back this person's latest undo, if they did nothing since; what holds again."""
        return self._turn(who, key, is_redo=True)

    # --- what is known ------------------------------------------------------------------------

    def state(self) -> State:
        """What holds now."""
        with self._reading():
            return self._state

    def state_at(self, event: int) -> State:
        """What held when this event was the last one."""
        return state_of([each for each in self.events() if each.id <= event])

    def events(self, after: int = 0) -> list[Event]:
        """The log of this data, from the event after this one on."""
        with self._reading():
            return [event for event in self._log if event.id > after]

    def last(self) -> int:
        """The id of the last event."""
        return self.state().last

    def place(self, who: str | None = None) -> str | None:
        """Where this person was last, or else where anybody was."""
        query = (
            "SELECT subject FROM places WHERE data = ? ORDER BY who = ? DESC, stamp DESC LIMIT 1"
        )
        with self._reading():
            found = self._connection.execute(query, (self._data, who or "")).fetchone()
        return None if found is None else str(found[0])

    def other_data(self) -> int:
        """The decisions in the file that are about other data and hold, as last seen."""
        with self._lock:
            return sum(state_of(log).n_decisions for log in self._others.values())

    def close(self) -> None:
        """Let go of the file. Nothing needs this to be safe on the disk."""
        with self._lock:
            self._connection.close()

    # --- the file -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """What is known here is what is in the file."""
        with self._lock, in_words(self.path, self._patience):
            if not self._connection.in_transaction:
                self._check_place()
                self._catch_up()
            yield

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, whatever is asked and decided in it: all of it is on the disk at the
        end, or nothing."""
        with self._lock, in_words(self.path, self._patience):
            if self._connection.in_transaction:
                yield
                return
            self._check_place()
            before = self._latest
            try:
                with transaction(self._connection):
                    self._catch_up()
                    before = self._latest
                    yield
            except BaseException:
                self._forget_after(before)
                raise
            self._check_place()

    def _check_place(self) -> None:
        """Notice a file that is not the one that was opened: SQLite would go on with a deleted file
        to the end."""
        if inode_of(self.path) != self._inode:
            raise StairError(
                f"{self.path.name} was moved or deleted while it was open, so that nothing is kept "
                f"any more. Put it back, or start again."
            )

    def _catch_up(self) -> None:
        """Read what has come since, and notice an older copy that was put over the file: SQLite
        would go on with that without a word."""
        known = self._latest
        found = self._connection.execute(
            f"SELECT data, {_SHOWN} FROM events WHERE id >= :known ORDER BY id",
            {"data": self._data, "known": -LARGEST if known is None else known.id},
        ).fetchall()
        read = [(str(data), Event(*values)) for data, *values in found]
        if known is not None and [event for _, event in read[:1]] != [known]:
            raise StairError(
                f"{self.path.name} was replaced while it was open: decisions that are shown here "
                f"are not in it. Put it back, or start again."
            )
        fresh = read if known is None else read[1:]
        for _, event in fresh:
            if not is_sound(event):
                raise damaged(self.path.name, f"event {event.id} is none of ours")
        for data, event in fresh:
            if data != self._data:
                self._others.setdefault(data, []).append(event)
        self._take([event for data, event in fresh if data == self._data])
        if fresh:
            self._latest = fresh[-1][1]

    def _take(self, fresh: Sequence[Event]) -> None:
        """More events of this data. Where nothing was undone, what held before still does."""
        if not fresh:
            return
        self._log.extend(fresh)
        known = self._state
        held = [*known.rules.values(), *known.rows.values()]
        held += [] if known.rule_set is None else [known.rule_set]
        is_undo = any(event.kind == "undo" for event in fresh)
        self._state = state_of(self._log if is_undo else [*held, *fresh])

    def _forget_after(self, event: Event | None) -> None:
        """What was decided after this event is not on the disk."""
        if self._latest is not event:
            self._latest = event
            self._log = [each for each in self._log if event is not None and each.id <= event.id]
            self._state = state_of(self._log)

    def _append(self, made: Sequence[Event], key: str = "") -> list[Event]:
        """These events as one: with their numbers, on the disk and undone together."""
        first = made[0]
        _text("the name of a person", first.who, LONGEST_NAME, least=1)
        _text("the key of a request", key, LONGEST_NAME)
        _text("a note", first.note, LONGEST_NOTE)
        _text("the words of a rule", first.text, LONGEST_TEXT)
        _text("a rules file", first.payload, LONGEST)
        if first.kind not in ("rules", "undo") and first.verdict not in VERDICTS:
            raise StairError(
                f"no verdict {first.verdict!r}; expected one of {', '.join(VERDICTS)}."
            )
        for event in made:
            _text("the identity of a rule", event.subject, LONGEST_NAME,
                  least=int(event.kind == "rule"))  # fmt: skip
        if not 0 <= first.n_rows <= LARGEST:
            raise StairError(f"got {first.n_rows} rows of a rule; expected a number from 0 on.")
        with self.writing():
            if stored := self._stored(key):
                if _said(stored) != _said(made):
                    raise _used()
                return stored
            last = 0 if self._latest is None else self._latest.id
            if last >= LARGEST - MOST_ROWS:
                raise damaged(self.path.name, f"no event can follow the number {last}")
            found = [
                replace(event, id=last + 1 + k, at=_now(), batch=last + 1)
                for k, event in enumerate(made)
            ]
            marks = ", ".join("?" * (len(_NAMES) + 2))
            self._connection.executemany(
                f"INSERT INTO events ({', '.join(_NAMES)}, data, key) VALUES ({marks})",
                [(*_fields(event), self._data, key) for event in found],
            )
            self._take(found)
            self._latest = found[-1]
        return found

    def _turn(self, who: str, key: str, *, is_redo: bool) -> Event | None:
        """Undo or redo: one more event that names the one it takes back."""
        _text("the name of a person", who, LONGEST_NAME, least=1)
        with self.writing():
            if stored := self._stored(key):
                turned = stored[0]
                number = turned.undoes
                if number is None or turned.who != who:
                    raise _used()
                if (self._at(number).kind == "undo") != is_redo:
                    raise _used()
            else:
                number = (to_redo if is_redo else to_undo)(self._log, who)
                if number is None:
                    return None
                self._append([Event(0, "", who, "undo", "", "", "", "", 0, "", number)], key)
            while number is not None:  # to the decision at the end of a chain of undos
                event = self._at(number)
                number = event.undoes
            return event

    def _at(self, number: int) -> Event:
        found = next((event for event in self._log if event.id == number), None)
        if found is None:
            raise damaged(self.path.name, f"there is no event {number}")
        return found

    def _stored(self, key: str) -> list[Event]:
        """What was decided by the request with this key."""
        if not key:
            return []
        query = "SELECT id FROM events WHERE data = ? AND key = ? ORDER BY id"
        found = self._connection.execute(query, (self._data, _text("the key of a request", key,
                                                                   LONGEST_NAME)))  # fmt: skip
        numbers = {number for (number,) in found}
        return [event for event in self._log if event.id in numbers]


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
