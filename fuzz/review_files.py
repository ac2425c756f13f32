"""Damaged files of verdicts: each is opened, and then all of the page works, or it is refused in
one sentence; soon, and within a bound of memory."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import sqlite3
import tempfile
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.result import Finding, Result, last_lines, origin, sentence_kind
from fuzz.rules_files import ANYTHING
from stair import StairError
from stair.data.source import Source
from stair.intake import Columns, Intake, Statement, take_in
from stair.progress import quiet
from stair.review import pages, taking
from stair.review.desk import Desk
from stair.review.session import Review
from stair.review.store import Store
from stair.rules.clauses import Interval

Rng = np.random.Generator
CHECK = "files of verdicts"
SECONDS = 20.0  # a sound one takes a twentieth of a second
SPARE, MULTIPLE = 64 << 20, 200  # bytes of memory: in any case, and for each byte of the file
DATA = "data"


@functools.cache
def given() -> Intake:
    """A small table with a column of each kind."""
    n = 60
    x, z = np.arange(n) % 10, np.arange(n) // 10
    kind = np.array(["a", "b", None], dtype=object)[np.arange(n) % 3]
    when = np.datetime64("2024-01-31T10:20", "us") + np.arange(n) * np.timedelta64(7, "h")
    note = np.array([f"word {k % 4}" for k in range(n)], dtype=object)
    y = ((x >= 8) & (z < 3)) | ((z == 5) & (x < 3)) | (when > np.datetime64("2024-02-17"))
    data = {"x": x.astype(float), "z": z, "kind": kind, "when": when, "note": note,
            "y": y.astype(np.int64)}  # fmt: skip
    source = Source(data, name="t", time_parts=False)
    return take_in(source, Statement("y"), Columns(), quiet)


@functools.cache
def sound(method: str) -> bytes:
    """A review with everything in it: verdicts, notes, rows, changes, undo, and learning again."""
    settings = {"method": method, "min_score": 0.8, "max_rule_length": 2, "random_state": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v.sqlite"
        review = Review(given(), Store(path, DATA))
        review.learn("stair", {"file": "t"}, settings, quiet)
        for word, group in zip(("outlier", "inlier"), _judged(review), strict=False):
            review.decide("me", group, word, f"because {word}", "")
        review.decide_rows("me", [3, 7, 59], "unsure", "by hand", "k")
        _edit(review)
        review.store.undo("me")
        review.store.redo("me")
        review.store.put_place("me", "somewhere")
        review.learn("you", {"file": "t"}, settings, quiet, relearn=True)
        review.store.undo("you")
        review.store.close()
        return path.read_bytes()


def _judged(review: Review) -> list[Any]:
    now = review.now()
    assert now is not None
    return [group for group in now.revision.groups if group.is_judged]


def _edit(review: Review) -> None:
    now = review.now()
    rules = now.revision.summary.rules.rules if now is not None else ()
    for group in _judged(review):
        if group.number is not None and rules[group.number].clauses:
            clause = rules[group.number].clauses[0]
            if isinstance(clause, Interval):
                review.edit("me", group.key, 0, Interval(clause.feature, low=clause.low, high=7.25))
                return


# Damage ------------------------------------------------------------------------------------------


def damage(path: Path, rng: Rng) -> None:
    """One to three kinds of damage, or files beside it that are none of its own."""
    for _ in range(int(rng.integers(1, 4))):
        way = WAYS[int(rng.integers(len(WAYS)))]
        # It may be damaged already, beyond what SQLite will touch, or nothing may be left of it.
        with contextlib.suppress(sqlite3.Error, ValueError):
            way(path, rng)


def _bytes(path: Path, rng: Rng) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 20))):
        most = len(content) if rng.random() < 0.7 else min(len(content), 200)
        content[int(rng.integers(most))] = int(rng.integers(256))
    path.write_bytes(content)


def _length(path: Path, rng: Rng) -> None:
    content = path.read_bytes()
    cut = content[: int(rng.integers(len(content)))]
    path.write_bytes(cut if rng.random() < 0.7 else content + rng.bytes(5000))


def _pages(path: Path, rng: Rng) -> None:
    content = bytearray(path.read_bytes())
    one, two = (4096 * int(k) for k in rng.integers(len(content) // 4096, size=2))
    content[one : one + 4096] = bytes(4096) if rng.random() < 0.3 else content[two : two + 4096]
    path.write_bytes(content)


def _beside(path: Path, rng: Rng) -> None:
    for end in ("-journal", "-wal", "-shm"):
        if rng.random() < 0.5:
            Path(f"{path}{end}").write_bytes(rng.bytes(int(rng.integers(9000))))


def _statement(path: Path, rng: Rng) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(STATEMENTS[int(rng.integers(len(STATEMENTS)))])


def _cell(path: Path, rng: Rng) -> None:
    """Another value in one column of one event."""
    names = ("id", "data", "at", "who", "kind", "subject", "verdict", "note", "text", "n_rows",
             "payload", "undoes", "batch", "key")  # fmt: skip
    name = names[int(rng.integers(len(names)))]
    value = ANYTHING[int(rng.integers(len(ANYTHING)))]
    if rng.random() < 0.5:
        kinds = ("rule", "row", "rules", "undo", *range(-3, 12))
        value = kinds[int(rng.integers(len(kinds)))]
    plain = value if isinstance(value, int | float | str | None) else json.dumps(value)
    order = f"(id * {int(rng.integers(1, 97))}) % 13"
    with (
        contextlib.closing(sqlite3.connect(path)) as connection,
        connection,
        contextlib.suppress(OverflowError, UnicodeEncodeError),
    ):
        connection.execute(
            f"UPDATE events SET {name} = ? WHERE id = "
            f"(SELECT id FROM events ORDER BY {order} LIMIT 1)",
            (plain,),
        )


def _payload(path: Path, rng: Rng) -> None:
    """Another value somewhere in what an event holds as JSON."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        held = connection.execute("SELECT id, payload FROM events WHERE payload <> ''").fetchall()
        if not held:
            return
        number, text = held[int(rng.integers(len(held)))]
        with contextlib.suppress(ValueError, UnicodeEncodeError):
            document = json.loads(text)
            _somewhere(document, rng)
            if rng.random() < 0.1:
                document = ANYTHING[int(rng.integers(len(ANYTHING)))]
            written = json.dumps(document)
            connection.execute("UPDATE events SET payload = ? WHERE id = ?", (written, number))


def _rows(path: Path, rng: Rng) -> None:
    """Other rows in a verdict: far too many, not in the table, not in order, none at all."""
    steps = [np.array([2**32 - 1] * 3, "<u4"), np.zeros(3, "<u4"), np.array([1, 10**6], "<u4"),
             np.frombuffer(rng.bytes(40), "<u4")]  # fmt: skip
    packed = zlib.compress(steps[int(rng.integers(len(steps)))].tobytes(), 6)
    if rng.random() < 0.3:
        packer, zeros = zlib.compressobj(9), bytes(1 << 20)  # a hundred megabytes in little
        packed = b"".join([*(packer.compress(zeros) for _ in range(100)), packer.flush()])
    text = base64.b85encode(packed if rng.random() < 0.8 else rng.bytes(50)).decode()
    payload = json.dumps({"rows": text, "label": int(rng.integers(-2, 4))})
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET payload = ? WHERE kind = 'rule'", (payload,))


def _somewhere(node: Any, rng: Rng) -> None:
    while isinstance(node, dict | list) and node:
        places = list(node) if isinstance(node, dict) else list(range(len(node)))
        place = places[int(rng.integers(len(places)))]
        below = node[place]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.15:
            if rng.random() < 0.2:
                del node[place]
            else:
                node[place] = ANYTHING[int(rng.integers(len(ANYTHING)))]
            return
        node = below


STATEMENTS = (
    "PRAGMA user_version = 0", "PRAGMA user_version = -5", "PRAGMA application_id = 0",
    "PRAGMA journal_mode = WAL", "DROP TABLE places", "DROP TABLE events", "DROP INDEX undos",
    "ALTER TABLE events ADD COLUMN more TEXT", "ALTER TABLE events DROP COLUMN note",
    "ALTER TABLE events RENAME TO others", "DELETE FROM events WHERE kind = 'rules'",
    "DELETE FROM events WHERE id % 3 = 1",
    "UPDATE events SET id = 9223372036854775807 WHERE id = 2",
    "UPDATE events SET id = -id", "UPDATE events SET undoes = id WHERE kind = 'undo'",
    "UPDATE events SET undoes = id + 1 WHERE kind = 'undo'", "UPDATE events SET kind = 'undo'",
    "UPDATE events SET batch = 0", "UPDATE events SET batch = 1", "UPDATE events SET key = 'k'",
    "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
    "CREATE VIEW seen AS SELECT * FROM events", "CREATE INDEX more ON events (at)",
    "UPDATE events SET subject = '99999999' WHERE kind = 'row'",
    "UPDATE events SET subject = '' WHERE kind = 'rule'",
    "UPDATE events SET verdict = 'none'", "UPDATE events SET verdict = 'maybe'",
    "UPDATE events SET note = replace(hex(zeroblob(2000000)), '0', 'n')",
    "INSERT INTO places VALUES ('data', '', '', -1)",
)  # fmt: skip
WAYS = (_bytes, _length, _pages, _beside, _statement, _cell, _cell, _payload, _payload, _rows)


# What becomes of it ------------------------------------------------------------------------------


def mutate_database(seed: int) -> str:
    """Damage a file of verdicts by this seed, and use it. "opened", or "refused: …" with the
    sentence; whatever else happens is raised, and too much memory is a MemoryError."""
    rng = np.random.default_rng([seed, 11])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v.sqlite"
        path.write_bytes(sound("stair" if rng.random() < 0.7 else "refined"))
        damage(path, rng)
        most = SPARE + MULTIPLE * sum(each.stat().st_size for each in Path(folder).iterdir())
        tracemalloc.start()
        try:
            _use(path, rng)
        except StairError as error:
            return f"refused: {error}"
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if peak > most:
                raise MemoryError(f"{peak:,} bytes, expected at most {most:,}")
    return "opened"


def _use(path: Path, rng: Rng) -> None:
    """All that the page does with a file."""
    store = Store(path, DATA, patience=0.2)
    try:
        review = Review(given(), store)
        if not review.can_go_on({"file": "t"}):
            review.learn("stair", {"file": "t"}, {
                "method": "stair", "min_score": 0.8, "max_rule_length": 2, "random_state": 0,
            }, quiet)  # fmt: skip
        _show(review)
        store.place("me")
        store.undo("me")
        _show(review)
        store.redo("me")
        now = review.now()
        assert now is not None
        for group in _judged(review):
            with contextlib.suppress(StairError):  # a key that was used
                review.decide("me", group, "unsure", "now", str(rng.integers(9)))
        with contextlib.suppress(StairError):  # it says so already
            _edit(review)
        with contextlib.suppress(StairError):  # all rows are of one kind
            review.learn("me", {}, dict(now.revision.settings), quiet, relearn=True)
        _show(review)
    finally:
        store.close()


def _show(review: Review) -> None:
    now = review.now()
    if now is None:
        return
    for group in now.revision.groups:
        pages.panel(review, now, group)
        page = review.rows.page(group.rows, sort=None, descending=False, start=0, size=9, search="")
        pages.rows(review, now, group, page, pages.Listing("", False, ""))
        if group.number is not None:
            pages.edit_form(now.revision, group)
    for event in now.carried.lost:
        lost = review.group(now, event.subject)
        assert lost is not None
        pages.panel(review, now, lost)
    pages.tune(Desk(), review, now)
    pages.taking(review, now)
    taking.report(review, now)
    taking.labelled(review, now, is_text=True)
    if pages.accepted_rules(review, now):
        taking.accepted(review, now)


def look_at(seed: int) -> tuple[str, Finding | None]:
    """What became of one file, and what is wrong with that."""
    start = time.monotonic()
    story = f"fuzz.review_files.mutate_database({seed})"
    wrong = None
    try:
        outcome = mutate_database(seed)
    except Exception as error:
        outcome = "broken"
        wrong = (origin(error), last_lines(error))
    took = time.monotonic() - start
    if wrong is None and ("\n" in outcome or len(outcome) > 600):
        wrong = ("not one sentence: " + sentence_kind(outcome), outcome[:600])
    if wrong is None and took > SECONDS:
        wrong = ("it does not end", f"{took:.0f} seconds")
    if wrong is None:
        return outcome.split(":")[0], None
    return "found", Finding(CHECK, "all", wrong[0], story, "opened or refused", wrong[1])


def run(n: int, seed: int = 0) -> tuple[Result, list[tuple[Finding, str]]]:
    """So many damaged files: the tallies, and each kind of finding with how to make its file."""
    result, kept = Result(), []
    for number in range(n):
        outcome, finding = look_at(seed * 1_000_000 + number)
        result.count(CHECK, "all", "files")
        if finding is None:
            result.count(CHECK, "all", "read" if outcome == "opened" else outcome)
            continue
        if all(known.key != finding.key for known in result.findings):
            kept.append((finding, finding.story))
        result.found(finding)
    return result, kept
