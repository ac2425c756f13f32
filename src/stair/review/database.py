"""The SQLite file that verdicts live in: opened, checked, written in transactions.

Whatever SQLite says becomes one sentence, and a file of another program is not touched. Between two
transactions there is this one file and nothing beside it, so that a copy of it is whole.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stair.errors import StairError

APPLICATION: Final = 0x53746169  # "Stai", in the header of every file of ours
VERSION: Final = 1

SCHEMA = """
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    data TEXT NOT NULL,
    at TEXT NOT NULL,
    who TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    verdict TEXT NOT NULL,
    note TEXT NOT NULL,
    text TEXT NOT NULL,
    n_rows INTEGER NOT NULL,
    payload TEXT NOT NULL,
    undoes INTEGER,
    batch INTEGER NOT NULL,
    key TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_data ON events (data, id);
CREATE INDEX undos ON events (data, undoes) WHERE undoes IS NOT NULL;
CREATE INDEX keys ON events (data, key) WHERE key <> '';
CREATE TABLE places (
    data TEXT NOT NULL,
    who TEXT NOT NULL,
    subject TEXT NOT NULL,
    stamp INTEGER NOT NULL,
    PRIMARY KEY (data, who)
) STRICT;
"""
STATEMENTS: Final = SCHEMA.strip().removesuffix(";").split(";\n")
LONGEST: Final = 100_000_000  # characters of one value


def open_database(path: Path, patience: float) -> sqlite3.Connection:
    """The file of verdicts, made where there is none; threads may share the connection."""
    with in_words(path, patience):
        connection = sqlite3.connect(
            path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 4 * LONGEST)
        try:
            _prepare(connection, path.name, patience)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, name: str, patience: float) -> None:
    """Check that the file is ours, or make it so; a foreign file is not touched."""
    connection.execute("BEGIN")  # all of it from one moment: another program may make the file now
    (application, version), is_empty = _header(connection), _is_empty(connection)
    connection.execute("COMMIT")
    if application == 0 and is_empty:
        pass  # new, or a start that was cut off before anything was in it
    elif application != APPLICATION:
        raise StairError(
            f"{name} is an SQLite file of another program; expected a file of verdicts. "
            f"Choose another path."
        )
    elif version > VERSION:
        raise StairError(
            f"{name} was written by a newer stair (version {version} of the file; this one "
            f"knows {VERSION}). Update stair."
        )
    else:
        _check(connection, name)
    _in_one_file(connection, name, patience)
    with transaction(connection):
        if _header(connection)[0] == 0:
            for statement in STATEMENTS:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        # Written each time, since only so it is known that the file can be written.
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _check(connection: sqlite3.Connection, name: str) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise damaged(name, str(found).rpartition("*\n")[2])
    made = dict(connection.execute("SELECT sql, type FROM sqlite_master"))
    if not set(STATEMENTS) <= set(made) or "trigger" in made.values():
        raise damaged(name, "its tables are not those of a file of verdicts")


@contextlib.contextmanager
def in_words(path: Path, patience: float) -> Iterator[None]:
    """What SQLite says, as one sentence of ours."""
    name = path.name
    try:
        yield
    except sqlite3.Error as error:
        code = str(getattr(error, "sqlite_errorname", ""))
        if code == "SQLITE_NOTADB":
            words = f"{name} is not a file of verdicts; choose another path."
        elif code.startswith("SQLITE_CORRUPT"):
            raise damaged(name, str(error)) from error
        elif code == "SQLITE_FULL":
            words = f"cannot write {name}: the disk is full; nothing was stored."
        elif code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            words = (
                f"another program has held {name} locked for {patience:g} seconds; "
                f"nothing was stored. Try again."
            )
        elif code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            words = (
                f'cannot write {name} in "{path.parent}": no permission, there or to '
                f"the file. Choose another path."
            )
        elif code.startswith("SQLITE_IOERR"):
            words = f"cannot read or write {name}: the disk refused; nothing was stored."
        elif isinstance(error, sqlite3.ProgrammingError):
            words = f"{name} is closed."
        else:
            words = f"cannot use {name}: {error}."
        raise StairError(words) from error
    except UnicodeDecodeError as error:  # in what SQLite itself has to say about a broken file
        raise damaged(name, "there is text in it that is not UTF-8") from error


def _in_one_file(connection: sqlite3.Connection, name: str, patience: float) -> None:
    """What is confirmed is in the file itself, and stays there when the power fails.

    In a write-ahead log of SQLite's, the other way, the latest decisions are in a second file: who
    deletes that one or copies the first alone loses them without a word. Older files had one.
    """
    end = time.monotonic() + patience
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = DELETE").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself where another program has an older file open.
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > end:
                raise
            time.sleep(0.01)
    if mode != "delete":
        raise StairError(f"{name} cannot be written safely where it is; choose another path.")
    connection.execute("PRAGMA synchronous = EXTRA")  # the end of a transaction, too


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk makes SQLite roll back by itself
            connection.execute("ROLLBACK")
        raise


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _is_empty(connection: sqlite3.Connection) -> bool:
    return not connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()


def damaged(name: str, why: str) -> StairError:
    return StairError(
        f"{name} is damaged ({why.splitlines()[0].rstrip('.')}); put a copy in its place or "
        f"choose another path."
    )


def place_of(path: Path) -> Path:
    try:
        place = Path(path).expanduser().resolve()
        if place.is_dir():
            raise StairError(f'cannot keep verdicts in "{path}": it is a folder, not a file.')
        if not place.parent.is_dir():
            raise StairError(f'cannot keep verdicts in "{path}": no folder "{place.parent}".')
        if place.exists() and not place.is_file():
            raise StairError(f'cannot keep verdicts in "{path}": it is not a plain file.')
    except StairError:
        raise
    except (OSError, ValueError, RuntimeError, TypeError):
        raise StairError(
            f"cannot keep verdicts in {str(path)!r}; expected a file's path."
        ) from None
    return place


def inode_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
