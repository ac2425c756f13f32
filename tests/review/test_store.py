"""The store of verdicts: beside a slow obvious model, killed, raced, and on broken ground."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from places import ROOT
from stair.errors import StairError
from stair.review.identity import fingerprint_of_rows, fingerprint_of_table
from stair.review.log import NOBODY, Event, carried
from stair.review.store import Store
from strategies import examples

PERSONS = st.sampled_from(["Ada", "Bo", "0f3c"])
VERDICTS = st.sampled_from(["outlier", "inlier", "unsure", "none"])
SUBJECTS = st.sampled_from(["aa", "bb", "cc"])


@dataclass
class Deed:
    """A decision of the model: what was stored at once, and whether it holds."""

    events: list[Event]
    holds: bool = True


@dataclass
class Model:
    """The undo and redo of any editor, for each person: the latest deed that holds, and a stack of
    what was taken back. Who has done nothing here takes back what others did."""

    deeds: list[Deed] = field(default_factory=list)
    taken_back: dict[str, list[Deed]] = field(default_factory=dict)
    places: list[tuple[str, str]] = field(default_factory=list)

    def do(self, events: list[Event]) -> None:
        self.deeds.append(Deed(events))
        self.taken_back[events[0].who] = []

    def undo(self, who: str) -> Event | None:
        mine = [deed for deed in self.deeds if deed.events[0].who == who] or self.deeds
        found = next((deed for deed in reversed(mine) if deed.holds), None)
        if found is not None:
            found.holds = False
            self.taken_back.setdefault(who, []).append(found)
        return found and found.events[0]

    def redo(self, who: str) -> Event | None:
        if not self.taken_back.get(who):
            return None
        found = self.taken_back[who].pop()
        found.holds = True
        return found.events[0]

    def holding(self, kind: str) -> dict[str, Event]:
        found: dict[str, Event] = {}
        for deed in self.deeds:
            if deed.holds:
                found.update({e.subject: e for e in deed.events if e.kind == kind})
        return {subject: e for subject, e in found.items() if e.verdict != "none"}


class Log(RuleBasedStateMachine):
    """Two windows on one file, several persons, and two tables of data."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.stores = {(data, w): self.open(data) for data in ("one", "two") for w in (0, 1)}
        self.models = {"one": Model(), "two": Model()}
        self.keys = 0
        self.last_id = 0

    def open(self, data: str) -> Store:
        return Store(self.folder / "verdicts.db", data)

    def teardown(self) -> None:
        for store in self.stores.values():
            store.close()
        shutil.rmtree(self.folder)

    def key(self, keyed: bool) -> str:
        self.keys += 1
        return f"k{self.keys}" if keyed else ""

    def fresh(self, events: list[Event]) -> None:
        """Ids grow, and what was decided at once has one batch."""
        assert [e.id for e in events] == list(
            range(self.last_id + 1, self.last_id + 1 + len(events))
        )
        assert {e.batch for e in events} == {events[0].id}
        assert all(e.at.endswith("Z") and len(e.at) == 24 for e in events)
        self.last_id = events[-1].id

    windows = st.sampled_from([("one", 0), ("one", 1), ("two", 0), ("two", 1)])

    @rule(
        at=windows, who=PERSONS, subject=SUBJECTS, verdict=VERDICTS, keyed=st.booleans(),
        other=st.none() | SUBJECTS,
    )  # fmt: skip
    def decide(
        self, at: Any, who: str, subject: str, verdict: Any, keyed: bool, other: str | None
    ) -> None:
        key = self.key(keyed)
        words = {"note": "n ✓\x00", "text": "a > 1", "n_rows": 5, "payload": "{}", "key": key}
        instead = [] if other in (None, subject) else [other]
        event = self.stores[at].decide(who, subject, verdict, **words, instead_of=instead)
        stored = self.stores[at].events(event.id - 1)
        assert [(e.subject, e.verdict) for e in stored] == [
            (subject, verdict), *((each, "none") for each in instead)
        ]  # fmt: skip
        self.fresh(stored)
        assert (event.who, event.kind, event.subject, event.verdict) == (
            who, "rule", subject, verdict
        )  # fmt: skip
        if key:  # an answer was lost, and the other window's store is asked again
            assert self.stores[at[0], 1 - at[1]].decide(who, subject, verdict, **words) == event
        self.models[at[0]].do(stored)

    @rule(
        at=windows, who=PERSONS, rows=st.lists(st.integers(0, 4), min_size=1), verdict=VERDICTS,
        keyed=st.booleans(),
    )  # fmt: skip
    def decide_rows(self, at: Any, who: str, rows: Any, verdict: Any, keyed: bool) -> None:
        key = self.key(keyed)
        events = self.stores[at].decide_rows(who, rows, verdict, key=key)
        self.fresh(events)
        assert [e.subject for e in events] == [str(r) for r in dict.fromkeys(rows)]
        if key:
            assert self.stores[at].decide_rows(who, rows, verdict, key=key) == events
        self.models[at[0]].do(events)

    @rule(at=windows, who=PERSONS)
    def put_rules(self, at: Any, who: str) -> None:
        event = self.stores[at].put_rules(who, "learned", '{"rules": []}')
        self.fresh([event])
        self.models[at[0]].do([event])

    @rule(at=windows, who=PERSONS, redo=st.booleans(), keyed=st.booleans())
    def turn(self, at: Any, who: str, redo: bool, keyed: bool) -> None:
        model, store, key = self.models[at[0]], self.stores[at], self.key(keyed)
        wanted = model.redo(who) if redo else model.undo(who)
        call, other = (store.redo, store.undo) if redo else (store.undo, store.redo)
        assert call(who, key=key) == wanted
        if wanted is not None:
            self.last_id += 1
            if key:
                assert call(who, key=key) == wanted
                with pytest.raises(StairError, match="used for another decision"):
                    other(who, key=key)

    @rule(at=windows, who=PERSONS, subject=SUBJECTS)
    def put_place(self, at: Any, who: str, subject: str) -> None:
        self.stores[at].put_place(who, subject)
        self.models[at[0]].places.append((who, subject))

    @rule(at=windows)
    def reopen(self, at: Any) -> None:
        self.stores[at].close()
        self.stores[at] = self.open(at[0])

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        for (data, _), store in self.stores.items():
            model, state = self.models[data], store.state()
            assert state.rules == model.holding("rule")
            assert state.rows == {int(r): e for r, e in model.holding("row").items()}
            assert state.rule_set == model.holding("rules").get("")
            assert state.n_decisions == len(state.rules) + len(state.rows)
            log = store.events()
            assert [e for e in log if e.kind != "undo"] == [
                e for deed in model.deeds for e in deed.events
            ]
            assert store.last() == state.last == (log[-1].id if log else 0)
            assert store.events(store.last()) == []
            places = dict(model.places)
            anybody = model.places[-1][1] if model.places else None
            for who in ("Ada", "Bo", "nobody"):
                assert store.place(who) == places.get(who, anybody)
            assert store.place() == anybody
            other = self.models["two" if data == "one" else "one"]
            assert store.other_data() == len(other.holding("rule")) + len(other.holding("row"))


TestLog = Log.TestCase
TestLog.settings = settings(max_examples=examples(25), stateful_step_count=30, deadline=None)


JUDGE = """
import sys
from pathlib import Path
from stair.review.store import Store
path, who, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = Store(path, "data")
for k in range(number):
    if k % 10 == 9:
        store.decide_rows(who, range(k, k + 7), "inlier")
    event = store.decide(who, f"{who}-{k}", "outlier", note="n" * 300, payload="p" * 3000)
    print(event.id, event.subject, flush=True)
store.close()
"""


def _judge(path: Path, who: str, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", JUDGE, str(path), who, str(number)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _whole(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def test_killed_in_the_middle_nothing_confirmed_is_lost(tmp_path: Path) -> None:
    """kill -9 while decisions follow each other as fast as they can, again and again on the same
    file: whatever was answered is there, rows decided at once are there all or not at all."""
    path = tmp_path / "verdicts.db"
    confirmed: dict[int, str] = {}
    for turn, stop in enumerate([0, 1, 7, 40, 90, 150, 23, 61]):
        with _judge(path, f"p{turn}", 100_000) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("go\n")
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(stop)]
            process.kill()
            lines += process.stdout.readlines()
        for line in lines:
            if line.endswith("\n"):
                number, subject = line.split()
                confirmed[int(number)] = subject
        store = Store(path, "data")
        events = store.events()
        store.close()
        assert _whole(path)
        stored = {e.id: e.subject for e in events if e.kind == "rule"}
        assert confirmed.items() <= stored.items()
        assert len(stored) <= len(confirmed) + turn + 1  # each time one may have lost its answer
        batches: dict[int, int] = {}
        for event in events:
            batches[event.batch] = batches.get(event.batch, 0) + 1
            assert len(event.payload) == (3000 if event.kind == "rule" else 0)
        assert set(batches.values()) <= {1, 7}
    assert len(confirmed) >= 372


def test_two_programs_at_once_lose_nothing(tmp_path: Path) -> None:
    """Both find no file and make one at the same moment; 500 decisions each are 1,000."""
    path = tmp_path / "verdicts.db"
    both = [_judge(path, who, 500) for who in ("left", "right")]
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        out, _ = process.communicate()
        assert process.returncode == 0
        assert len(out.splitlines()) == 500
    store = Store(path, "data")
    state = store.state()
    assert set(state.rules) == {f"{who}-{k}" for who in ("left", "right") for k in range(500)}
    assert [e.id for e in store.events()] == list(range(1, 1000 + 2 * 50 * 7 + 1))
    store.close()
    assert _whole(path)
    assert [p.name for p in tmp_path.iterdir()] == ["verdicts.db"]


def test_threads_share_one_store(tmp_path: Path) -> None:
    store = Store(tmp_path / "verdicts.db", "data")

    def judge(who: int) -> None:
        for k in range(25):
            store.decide(f"t{who}", f"{who}-{k}", "unsure", key=f"{who}-{k}")
            assert store.state().rules[f"{who}-{k}"].who == f"t{who}"
            store.undo(f"t{who}")
            store.redo(f"t{who}")

    threads = [threading.Thread(target=judge, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.state().n_decisions == 150
    store.close()


def test_a_key_is_for_one_decision(tmp_path: Path) -> None:
    """A key that comes with another decision is a mistake, and not a reason to drop that one.
    Another verdict under the same key was answered as if it were stored, and was not."""
    store = Store(tmp_path / "verdicts.db", "data")
    store.decide("Ada", "aa", "outlier", key="k")
    for call in (
        lambda: store.decide("Ada", "bb", "outlier", key="k"),
        lambda: store.decide("Bo", "aa", "outlier", key="k"),
        lambda: store.decide("Ada", "aa", "inlier", key="k"),
        lambda: store.decide("Ada", "aa", "outlier", note="why", key="k"),
        lambda: store.decide_rows("Ada", [1], "outlier", key="k"),
        lambda: store.undo("Ada", key="k"),
    ):
        with pytest.raises(StairError, match="used for another decision"):
            call()
    assert store.last() == 1
    other = Store(tmp_path / "verdicts.db", "other data")
    assert other.decide("Ada", "bb", "outlier", key="k").id == 2
    other.close()
    store.close()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda s: s.decide("a", "x", "maybe"), "no verdict 'maybe'; expected one of outlier, "),
        (
            lambda s: s.decide("a", "x", "outlier", note="n" * 10_001),
            "a note has 10,001 characters; expected at most 10,000",
        ),
        (lambda s: s.decide("a", "x", "outlier", note="\ud800"), "half a character"),
        (lambda s: s.decide("", "x", "outlier"), "the name of a person is empty"),
        (lambda s: s.decide("a", "", "outlier"), "the identity of a rule is empty"),
        (lambda s: s.decide("a" * 201, "x", "outlier"), "201 characters"),
        (lambda s: s.decide("a", "x", "outlier", n_rows=-1), "got -1 rows"),
        (lambda s: s.decide("a", "x", "outlier", n_rows=2**63), "rows of a rule"),
        (lambda s: s.decide("a", "x", "outlier", note=None), "must be text, got NoneType"),
        (lambda s: s.decide_rows("a", [], "outlier"), "got 0 rows to decide"),
        (lambda s: s.decide_rows("a", [3, -1], "outlier"), "no row has the number -1"),
        (lambda s: s.decide_rows("a", range(100_001), "outlier"), "got 100,001 rows to decide"),
        (lambda s: s.put_place("", "x"), "the name of a person is empty"),
    ],
)
def test_what_cannot_be_stored_is_said(tmp_path: Path, call: Any, match: str) -> None:
    store = Store(tmp_path / "verdicts.db", "data")
    with pytest.raises(StairError, match=match) as caught:
        call(store)
    assert "\n" not in str(caught.value)
    assert store.decide("a", "x", "outlier", note="n" * 10_000).id == 1
    store.close()


def _foreign(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (a)")
    connection.close()


def _altered(statement: str) -> Any:
    def alter(path: Path) -> None:
        Store(path, "data").close()
        connection = sqlite3.connect(path)
        connection.execute(statement)
        connection.close()

    return alter


def _damage(path: Path) -> None:
    store = Store(path, "data")
    store.decide_rows("a", range(2000), "outlier")
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:40960] = os.urandom(40960 - 8192)
    path.write_bytes(content)


def _cut(path: Path) -> None:
    _damage(path)
    path.write_bytes(path.read_bytes()[:20_000])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (_foreign, "an SQLite file of another program"),
        (_altered("PRAGMA application_id = 7"), "an SQLite file of another program"),
        (_altered("PRAGMA user_version = 9"), "written by a newer stair .version 9 of the file"),
        (_altered("ALTER TABLE events RENAME COLUMN note TO notes"), "verdicts.db is damaged"),
        (_altered("DROP TABLE places"), "verdicts.db is damaged"),
        (
            _altered("CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END"),
            "verdicts.db is damaged",
        ),
        (lambda p: p.write_text("amount,country\n" * 500), "is not a file of verdicts"),
        (_damage, "verdicts.db is damaged"),
        (_cut, "verdicts.db is damaged"),
        (Path.mkdir, "it is a folder, not a file"),
        (os.mkfifo, "it is not a plain file"),
    ],
)
def test_a_file_that_is_not_ours(tmp_path: Path, make: Any, match: str) -> None:
    """Refused in one sentence, and left as it was."""
    path = tmp_path / "verdicts.db"
    make(path)
    content = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StairError, match=match) as caught:
        Store(path, "data")
    assert "\n" not in str(caught.value)
    assert content == (path.read_bytes() if path.is_file() else b"")
    assert [p.name for p in tmp_path.iterdir()] == ["verdicts.db"]


def test_no_folder_and_no_path(tmp_path: Path) -> None:
    with pytest.raises(StairError, match='no folder "'):
        Store(tmp_path / "not" / "there.db", "data")
    with pytest.raises(StairError, match="expected a file's path"):
        Store(Path("a\0b"), "data")
    (tmp_path / "empty.db").touch()
    Store(tmp_path / "empty.db", "data").close()


def test_a_lock_that_stays(tmp_path: Path) -> None:
    """Another program writes and does not end: said after some patience, and it works again as
    soon as that program is through."""
    path = tmp_path / "verdicts.db"
    store = Store(path, "data", patience=0.1)
    store.decide("a", "x", "outlier")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StairError, match=r"held verdicts.db locked for 0.1 seconds; nothing was"):
        store.decide("a", "y", "outlier")
    with pytest.raises(StairError, match="locked"):
        Store(path, "data", patience=0.1)
    assert set(store.state().rules) == {"x"}  # reading waits for nobody
    other.execute("ROLLBACK")
    other.close()
    store.decide("a", "y", "outlier")
    assert set(store.state().rules) == {"x", "y"}
    store.close()
    with pytest.raises(StairError, match=r"verdicts\.db is closed"):
        store.last()


def test_a_file_that_goes_away_takes_no_decision_with_it(tmp_path: Path) -> None:
    """SQLite would go on writing to the deleted file, and everything would be lost at the end."""
    path = tmp_path / "verdicts.db"
    store = Store(path, "data")
    store.decide("a", "x", "outlier")
    path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(StairError, match="was moved or deleted while it was open"):
        store.decide("a", "y", "outlier")
    (tmp_path / "elsewhere.db").rename(path)
    store.decide("a", "y", "outlier")
    store.close()


def test_what_is_confirmed_is_in_the_file_itself(tmp_path: Path) -> None:
    """Who deleted the write-ahead log beside an open file, or copied the file alone, lost every
    decision since the log was begun, and nobody said so. Now there is no second file."""
    path = tmp_path / "verdicts.db"
    store = Store(path, "data")
    for number in range(20):
        store.decide("a", f"r{number}", "outlier")
        assert [p.name for p in tmp_path.iterdir()] == ["verdicts.db"]
        copied = tmp_path / "copy" / "verdicts.db"
        copied.parent.mkdir()
        shutil.copy(path, copied)
        copy = Store(copied, "data")
        assert copy.state() == store.state()
        copy.close()
        shutil.rmtree(copied.parent)
    store.close()


def test_a_file_with_a_write_ahead_log_becomes_one_without(tmp_path: Path) -> None:
    """Files of earlier days have one, also one that a crash has left beside them."""
    path, crashed = tmp_path / "verdicts.db", tmp_path / "crashed.db"
    Store(path, "data").close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    row = ("a", "rule", "x", "outlier", "", "", 0, "", 1, "", "data")
    connection.execute(
        "INSERT INTO events (at, who, kind, subject, verdict, note, text, n_rows, payload, batch, "
        "key, data) VALUES ('2026-01-01T00:00:00.000Z', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row,
    )  # fmt: skip
    connection.commit()
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{crashed}{end}")
    with pytest.raises(StairError, match="locked"):
        Store(path, "data", patience=0.1)
    connection.close()
    for each in (path, crashed):
        store = Store(each, "data")
        assert set(store.state().rules) == {"x"}
        store.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["crashed.db", "verdicts.db"]


def test_a_file_that_is_replaced_is_noticed(tmp_path: Path) -> None:
    """An older copy over the open file: the page went on showing decisions that were in no file."""
    path, old = tmp_path / "verdicts.db", tmp_path / "old.db"
    store = Store(path, "data")
    store.decide("a", "x", "outlier")
    shutil.copy(path, old)
    store.decide("a", "y", "outlier")
    whole = path.read_bytes()
    path.write_bytes(old.read_bytes())
    calls = (store.state, store.last, store.place, lambda: store.decide("a", "z", "outlier"),
             lambda: store.undo("a"), lambda: store.put_place("a", "x"))  # fmt: skip
    for call in calls:
        with pytest.raises(StairError, match="was replaced while it was open"):
            call()
    path.write_bytes(whole)
    store.decide("a", "z", "outlier")
    assert set(store.state().rules) == {"x", "y", "z"}
    path.unlink()
    for call in calls:
        with pytest.raises(StairError, match="was moved or deleted while it was open"):
            call()
    store.close()


def test_somebody_with_another_browser_can_undo(tmp_path: Path) -> None:
    """After a restart the page was opened by a browser without the cookie of the one before:
    "There is nothing to undo". What nobody asked for is nobody's to undo."""
    store = Store(tmp_path / "verdicts.db", "data")
    store.put_rules(NOBODY, "learned", "{}")
    first, second = (store.decide("me", s, "outlier") for s in ("x", "y"))
    assert store.undo("new") == second
    assert store.undo("new") == first
    assert store.undo("new") is None
    assert store.redo("new") == first
    store.decide("new", "z", "inlier")
    assert store.undo("new").subject == "z"
    assert store.undo("new") is None  # the rest is somebody else's
    store.close()


FULL = """
import sys
from pathlib import Path
from stair.errors import StairError
from stair.review.store import Store
folder = Path(sys.argv[1])
filler = folder / "filler"
filler.write_bytes(b"x" * 200_000)
store = Store(folder / "verdicts.db", "data")
confirmed = []
try:
    for k in range(1000):
        store.decide("a", f"r{k}", "outlier", payload="p" * 20_000)
        confirmed.append(f"r{k}")
except StairError as error:
    print(error)
assert confirmed and list(store.state().rules) == confirmed, confirmed
filler.unlink()
store.decide("a", "after", "outlier", payload="p" * 20_000)
store.close()
store = Store(folder / "verdicts.db", "data")
assert list(store.state().rules) == [*confirmed, "after"]
"""
READ_ONLY = """
import subprocess, sys
from pathlib import Path
from stair.errors import StairError
from stair.review.store import Store
folder = Path(sys.argv[1])
store = Store(folder / "old.db", "data")
store.decide("a", "x", "outlier")
store.close()
subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
for name in ("old.db", "new.db"):
    try:
        Store(folder / name, "data")
    except StairError as error:
        print(error)
"""


def _on_a_disk(tmp_path: Path, size: str, code: str) -> list[str]:
    """What the code prints, run with a disk of this size made for it."""
    mount = ["unshare", "-rm", "sh", "-c", f'mount -t tmpfs -o size={size} none "$0" && exec "$@"']
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mount, str(disk), "true"], capture_output=True).returncode
    ):
        pytest.skip("this user may not mount, so no disk can be made")
    command = [*mount, str(disk), sys.executable, "-c", code, str(disk)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk(tmp_path: Path) -> None:
    """What was confirmed stays, what failed leaves nothing, and with room it goes on."""
    assert _on_a_disk(tmp_path, "800k", FULL) == [
        "cannot write verdicts.db: the disk is full; nothing was stored."
    ]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    said = _on_a_disk(tmp_path, "800k", READ_ONLY)
    assert len(said) == 2
    for line, name in zip(said, ("old.db", "new.db"), strict=True):
        assert line.startswith(f"cannot write {name} in ")
        assert "no permission" in line


LIMITED = """
import resource, signal
resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""


def test_a_file_that_must_not_grow(tmp_path: Path) -> None:
    """The system's own limit on the size of files."""
    code = LIMITED + FULL.split("filler.unlink()")[0]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "cannot read or write verdicts.db: the disk refused; nothing was stored.\n"
    )


EVENT = Event(1, "2026-01-01T00:00:00.000Z", "a", "rule", "aa", "outlier", "", "", 3, "", None, 1)


def test_verdicts_go_over_to_rules_that_match_the_same_rows() -> None:
    log = [
        EVENT,
        replace(EVENT, id=2, batch=2, subject="bb", verdict="inlier"),
        replace(EVENT, id=3, batch=3, subject="cc"),
        replace(EVENT, id=4, batch=4, subject="cc", verdict="none"),
        replace(EVENT, id=5, batch=5, subject="aa", verdict="unsure"),
        replace(EVENT, id=6, batch=6, subject="dd"),
        replace(EVENT, id=7, batch=7, kind="undo", subject="", undoes=6),
        replace(EVENT, id=8, batch=8, kind="row", subject="17"),
    ]
    found = carried(log, ["ee", "aa", "cc", "aa", "dd"])
    assert {subject: [e.id for e in kept] for subject, kept in found.kept.items()} == {"aa": [5]}
    assert [e.id for e in found.lost] == [2]


def _judged(*subjects: str, verdicts: str = "oooo", n_rows: int = 3) -> list[Event]:
    words = {"o": "outlier", "i": "inlier"}
    return [
        replace(EVENT, id=k, batch=k, subject=s, verdict=words[v], n_rows=n_rows)
        for k, (s, v) in enumerate(zip(subjects, verdicts, strict=False), start=1)
    ]


A, B = "a" * 16, "b" * 16  # the rows of a group
ONE, TWO, THREE = "1" * 16, "2" * 16, "3" * 16  # and its words


@pytest.mark.parametrize(
    ("log", "present", "kept", "lost"),
    [
        (_judged(A + ONE), [A + TWO], {A + TWO: [1]}, []),
        (_judged(A + ONE), [A + TWO, A + THREE], {}, [1]),  # which of them?
        (_judged(A + ONE), [A + ONE, A + TWO], {A + ONE: [1]}, []),  # nobody looked at the other
        (_judged(A + ONE, n_rows=0), [A + TWO], {}, [1]),
        (_judged(A + ONE, n_rows=0), [A + ONE], {A + ONE: [1]}, []),
        (_judged(A + ONE, A + TWO), [A + THREE, B + ONE], {A + THREE: [1, 2]}, []),
        (_judged(A + ONE, A + TWO, verdicts="oi"), [A + THREE], {}, [1, 2]),
        (_judged(A * 2), [A + THREE], {A + THREE: [1]}, []),  # as in files of earlier days
    ],
)
def test_a_verdict_goes_over_only_where_it_is_clear(
    log: list[Event], present: list[str], kept: dict[str, list[int]], lost: list[int]
) -> None:
    found = carried(log, present)
    assert {subject: [e.id for e in events] for subject, events in found.kept.items()} == kept
    assert [e.id for e in found.lost] == lost


@given(st.lists(st.integers(0, 2**40), unique=True), st.randoms(use_true_random=False))
def test_a_group_of_rows_is_the_same_in_any_order(rows: list[int], random: Any) -> None:
    found = fingerprint_of_rows(np.array(rows, dtype=np.int64))
    assert len(found) == 32
    random.shuffle(rows)
    assert fingerprint_of_rows(np.array(rows, dtype=np.uint64)) == found
    if rows:
        assert fingerprint_of_rows(np.array(rows[1:], dtype=np.intp)) != found


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _tables() -> dict[str, dict[str, Any]]:
    """Tables that differ, some by very little."""
    return {
        "floats": {"a": np.array([0.0, 1.0, np.nan])},
        "other float": {"a": np.array([0.0, np.nextafter(1.0, 2), np.nan])},
        "order": {"a": np.array([1.0, 0.0, np.nan])},
        "another name": {"b": np.array([0.0, 1.0, np.nan])},
        "ints": {"a": np.array([0, 1, 2])},
        "truths": {"a": np.array([False, True, True])},
        "beyond 64 bits with a sign": {"a": np.array([2**63, 2**63 + 1, 5], dtype=np.uint64)},
        "other such": {"a": np.array([2**63, 2**63 + 2, 5], dtype=np.uint64)},
        "whole and missing": {"a": _objects([2**60, 2**60 + 1, None])},
        "other such and missing": {"a": _objects([2**60, 2**60 + 2, None])},
        "as text": {"a": _objects([str(2**60), str(2**60 + 1), None])},
        "maybe": {"a": _objects([False, True, None])},
        "times": {"a": np.array([0, 1, 2], dtype="datetime64[us]")},
        "text": {"a": _objects(["ab", "c", None])},
        "cut elsewhere": {"a": _objects(["a", "bc", None])},
        "empty": {"a": _objects(["abc", "", None])},
        "nothing": {"a": _objects([None, None, None])},
        "two": {"a": np.array([0, 1, 2]), "b": np.array([0, 1, 2])},
        "joined": {"a": np.array([0, 1, 2, 0, 1, 2])},
        "none": {},
    }


def test_tables_that_differ_have_other_fingerprints() -> None:
    prints = {name: fingerprint_of_table(table) for name, table in _tables().items()}
    assert len(set(prints.values())) == len(prints)
    nan = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)[0]  # another NaN
    same = {"a": np.array([-0.0, 1.0, nan])}
    assert fingerprint_of_table(same) == prints["floats"]
    assert fingerprint_of_table({"a": np.array(["ab", "c"])}) == fingerprint_of_table(
        {"a": _objects(["ab", "c"])}
    )


def test_a_fingerprint_is_the_same_on_every_run() -> None:
    """No hash of Python's own is in it; those differ from run to run."""
    code = (
        "import sys; sys.path[:0] = ['tests', 'tests/review']; from test_store import _tables; "
        "from stair.review.identity import fingerprint_of_table as f; "
        "print([f(t) for t in _tables().values()])"
    )
    here = str([fingerprint_of_table(table) for table in _tables().values()])
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        assert done.stdout.strip() == here
