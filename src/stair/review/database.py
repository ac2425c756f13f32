"""The SQLite file that verdicts live in: opened, checked, written in transactions.

Whatever SQLite says becomes one sentence, and a file of another program is not touched.
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


def open_database(path: Path, patience: float) -> sqlite3.Connection:
    """The file of verdicts, made where there is none; threads may share the connection."""
    with in_words(path, patience):
        connection = sqlite3.connect(
            path, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            _prepare(connection, path.name, patience)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, name: str, patience: float) -> None:
    """Check that the file is ours, or make it so; a foreign file is not touched."""
    application, version = _header(connection)
    if application == 0 and _is_empty(connection):
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
    write_ahead(connection, name, patience)
    connection.execute("PRAGMA synchronous = FULL")
    with transaction(connection):  # also finds out whether the file can be written
        if _header(connection)[0] == 0:
            for statement in SCHEMA.strip().removesuffix(";").split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise _damaged(name, str(found))


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
            raise _damaged(name, str(error)) from error
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


def write_ahead(connection: sqlite3.Connection, name: str, patience: float) -> None:
    """Switch to a write-ahead log, so that readers never wait for a writer.

    Refused where there can be none (some network folders): two programs that cannot see each
    other's locks would lose each other's decisions without a word.
    """
    end = time.monotonic() + patience
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            break
        except sqlite3.OperationalError as error:
            # SQLite does not wait here by itself where two programs open a new file at once.
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > end:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StairError(
            f"the folder of {name} cannot hold verdicts safely (no write-ahead log there, as on "
            f"some network drives); choose a path on a disk of this machine."
        )


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


def _damaged(name: str, why: str) -> StairError:
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
