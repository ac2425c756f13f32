"""The review page as a program sees it: verdicts kept through anything, and what is taken away."""

from __future__ import annotations

import html
import json
import os
import random
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from command import run
from places import TESTS
from review_server import Client, served
from stair import DistilledStair, summarize
from stair.data import read, write_table
from stair.demo import payments
from stair.export import load
from stair.review.desk import SUFFIX
from stair.review.identity import fingerprint_of_table
from stair.review.log import NOBODY
from stair.review.store import Store

pytest.importorskip("starlette")
SETTINGS = (
    "--label",
    "y",
    "--max-rule-length",
    "2",
    "--min-score",
    "0.85",
)  # two rules, a few left


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two kinds of outliers, a few that no rule finds, and missing values."""
    rng = np.random.default_rng(1)
    n = 600
    x, z = rng.normal(size=n).round(3), rng.normal(size=n).round(3)
    kind = rng.choice(np.array(["a", "b", "c"], dtype=object), n)
    y = ((x > 1.3) & (kind == "a")) | (z < -1.7)
    y ^= rng.random(n) < 0.01
    z[rng.random(n) < 0.03] = np.nan
    path = tmp_path / "table.csv"
    write_table(path, {"x": x, "z": z, "kind": kind, "y": y.astype(np.int64)})
    return path


@pytest.fixture
def page(table: Path) -> Iterator[Client]:
    with served(table, *SETTINGS) as client:
        client.wait()
        yield client


def _events(table: Path) -> list[tuple[str, str, str]]:
    store = Store(table.with_name(table.name + SUFFIX), fingerprint_of_table(read(table).columns))
    try:
        return [(e.kind, e.subject, e.verdict) for e in store.events() if e.who != NOBODY]
    finally:
        store.close()


# --- verdicts ---------------------------------------------------------------------------------


def test_a_verdict_moves_on_to_the_next_rule_and_counts_its_rows(page: Client) -> None:
    first, second, *_ = page.groups()
    answer = page.post(f"/group/{first}/verdict", {"verdict": "outlier", "note": "all of them"})
    assert answer.status == 200
    assert f'data-key="{second}"' in answer.text
    assert "1 decision covers" in answer.text
    assert json.loads(answer.headers["hx-trigger"])["stair-said"] == "Rule 1: true outliers."
    assert "all of them" in page.get(f"/group/{first}").text


def test_each_row_has_its_reason_beside_it(page: Client, table: Path) -> None:
    """As the summary gives it, of rows that a rule covers and of those that none does; a row that
    is left out of learning has none."""
    summary = summarize(table, labels="y", min_score=0.85, method=DistilledStair(max_rule_length=2))
    expected = dict(enumerate(summary.reasons(range(summary.n_rows)).words))
    seen = set()
    for key in page.groups():
        rows = html.unescape(page.get(f"/group/{key}/rows").text)
        told = re.findall(
            r'id="mark-(\d+)".*?<tr class="why"><td[^>]*><div>(.*?)</div>', rows, re.S
        )
        assert told
        assert {int(row): text for row, text in told}.items() <= expected.items()
        seen |= {text.split()[0] for _, text in told}
    assert seen == {"Outlier", "Flagged,"}
    first = page.groups()[0]
    page.post(f"/group/{first}/verdict", {"verdict": "unsure"})
    page.post("/relearn")
    page.wait()
    left_out = page.get(f"/group/{first}/rows")
    assert left_out.status == 200
    assert "mark-" in left_out.text and 'class="why"' not in left_out.text


def test_the_same_request_twice_is_one_decision(page: Client, table: Path) -> None:
    """A page whose answer got lost asks again with the same key."""
    key = page.groups()[0]
    for _ in range(3):
        assert page.post(f"/group/{key}/verdict", {"verdict": "unsure", "once": "k1"}).status == 200
    assert [e for e in _events(table) if e[0] == "rule"] == [("rule", key, "unsure")]


def test_undo_takes_back_the_last_thing_that_this_person_did(page: Client) -> None:
    first, second, *_ = page.groups()
    other = Client(page.port, "somebody else")
    page.post(f"/group/{first}/verdict", {"verdict": "outlier"})
    other.post(f"/group/{second}/verdict", {"verdict": "inlier"})
    said = page.post("/undo", {"current": first})
    assert "Undone: true outliers" in said.headers["hx-trigger"]
    assert "1 of 2 rules judged" in page.get("/").text
    assert "2 of 2 rules judged" in page.post("/redo", {"current": first}).text
    assert page.post("/redo").status == 422
    assert "nothing to do again" in page.post("/redo").text


def test_single_rows_go_before_rules(page: Client, table: Path) -> None:
    key = page.groups()[0]
    page.post(f"/group/{key}/verdict", {"verdict": "outlier"})
    rows = page.get(f"/group/{key}/rows").text
    row = int(rows.split('id="mark-')[1].split('"')[0])
    assert page.post(f"/row/{row}", {"verdict": "inlier"}).status == 200
    assert "one by one" in page.get("/").text
    taken = table.with_name("taken.csv")
    taken.write_bytes(page.get("/take/rows.csv").body)
    reviewed = read(taken).columns["stair_review"]
    assert reviewed[row] == "inlier"
    for row in ("600", "-1", "x", "9" * 5000):
        assert page.post(f"/row/{row}", {"verdict": "inlier"}).status == 422


def test_the_second_process_on_a_file_sees_and_adds(page: Client, table: Path) -> None:
    first, second, *_ = page.groups()
    page.post(f"/group/{first}/verdict", {"verdict": "outlier"})
    with served(table, *SETTINGS) as another:
        another.wait()
        assert "1 of 2 rules judged" in another.get("/").text
        another.post(f"/group/{second}/verdict", {"verdict": "inlier"})
        assert "2 of 2 rules judged" in page.get("/").text
    assert sorted(e[2] for e in _events(table)) == ["inlier", "outlier"]


def test_two_people_at_once_lose_nothing(page: Client, table: Path) -> None:
    """150 decisions each, as fast as they are confirmed."""
    keys = page.groups()[:2]
    wrong: list[str] = []

    def judge(client: Client) -> None:
        for k in range(150):
            verdict = ("outlier", "inlier", "unsure")[k % 3]
            answer = client.post(f"/group/{keys[k % 2]}/verdict", {"verdict": verdict})
            if answer.status != 200:
                wrong.append(answer.text)

    people = [threading.Thread(target=judge, args=[Client(page.port, name)]) for name in "ab"]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert not wrong
    assert len(_events(table)) == 300


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")
def test_a_confirmed_decision_outlives_kill_9(table: Path) -> None:
    """Twenty times the server dies in the middle of 80 fast decisions; the file opens again, and
    what was confirmed is in it. What was sent and not confirmed may be there or not, and is whole.
    """
    db = table.with_name("verdicts.sqlite")
    script = TESTS / "review_server.py"
    rng = random.Random(0)
    confirmed: list[str] = []
    sent: set[str] = set()
    with subprocess.Popen(
        [sys.executable, script, table, db], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    ) as forks:  # fmt: skip
        assert forks.stdin is not None and forks.stdout is not None
        for round_ in range(20):
            print(file=forks.stdin, flush=True)
            port, pid = map(int, forks.stdout.readline().split())
            client = Client(port)
            client.wait()
            keys = client.groups()
            fatal = rng.randrange(5, 75)
            for k in range(80):
                once = f"{round_}-{k}"
                sent.add(once)
                if k == fatal:  # dies while this one is on its way
                    threading.Timer(rng.random() * 0.004, os.kill, [pid, signal.SIGKILL]).start()
                try:
                    answer = client.post(
                        f"/group/{keys[k % 2]}/verdict",
                        {"verdict": "inlier" if k % 2 else "outlier", "once": once, "note": once},
                    )
                except (OSError, http_error()):
                    break
                assert answer.status == 200, answer.text
                confirmed.append(once)
            else:
                raise AssertionError("the server did not die")
        forks.stdin.close()
    with sqlite3.connect(db) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        stored = [
            note for (note,) in connection.execute("SELECT note FROM events WHERE note <> ''")
        ]
    connection.close()
    assert len(stored) == len(set(stored))
    assert set(confirmed) <= set(stored) <= sent
    assert len(confirmed) > 200


def http_error() -> type[Exception]:
    from http.client import HTTPException

    return HTTPException


# --- rules that change --------------------------------------------------------------------------


def test_a_changed_bound_is_shown_before_it_is_kept(page: Client, table: Path) -> None:
    key = page.groups()[0]
    saw = page.get(f"/group/{key}/edit").text
    assert 'name="low"' in saw or 'name="high"' in saw
    fields = {"clause": 0, "low": "", "high": "0.5"}
    preview = page.post(f"/group/{key}/preview", fields)
    assert "Would match" in preview.text
    assert not [e for e in _events(table) if e[0] == "rules"]
    wrong = page.post(f"/group/{key}/preview", {"clause": 0, "low": "zwölf", "high": ""})
    assert wrong.status == 200 and "is no number" in wrong.text
    kept = page.post(f"/group/{key}/edit", fields)
    assert kept.status == 200 and "edited" in kept.text
    new = page.groups()
    assert key not in new
    late = page.post(f"/group/{key}/preview", fields)  # on its way while the change was kept
    assert late.status == 200 and "not among the present ones" in late.text
    assert "Undone: the rules, edited by hand" in page.post("/undo").headers["hx-trigger"]
    assert key in page.groups()


def test_relearning_takes_the_rejected_group_as_inliers(page: Client) -> None:
    first, second, *_ = page.groups()
    page.post(f"/group/{first}/verdict", {"verdict": "outlier"})
    page.post(f"/group/{second}/verdict", {"verdict": "inlier", "note": "known customers"})
    said = page.post("/relearn").text + page.wait()
    assert "warning" not in said
    keys = page.groups()
    assert second not in keys
    assert first in keys, "the accepted rule matches the same rows, so that it is there again"
    home = page.get("/").text
    assert "1 of 1 rule judged" in home
    assert "1 verdict without a rule now" in home
    for taken in ("/", f"/group/{second}", "/take/rows.csv", "/take/report.html"):
        found = page.get(taken)  # the note was in none of these, and the rule's own page gone
        assert found.status == 200 and "known customers" in found.text
    assert "Undone: the rules, learned again" in page.post("/undo").headers["hx-trigger"]
    assert second in page.groups()


def test_unsure_rows_are_left_out_of_learning(page: Client) -> None:
    first, second, *_ = page.groups()
    page.post(f"/group/{first}/verdict", {"verdict": "outlier"})
    page.post(f"/group/{second}/verdict", {"verdict": "unsure"})
    page.post("/relearn")
    page.wait()
    assert first in page.groups() and second not in page.groups()
    accepted = json.loads(page.get("/take/rules?to=json").text)
    assert accepted["facts"]["rows"] == 591  # the second rule matches ten; one is the first's too


def test_nothing_to_learn_from_is_one_sentence(page: Client) -> None:
    assert "no verdict yet" in page.post("/relearn").text
    for key in page.groups():
        page.post(f"/group/{key}/verdict", {"verdict": "inlier"})
    said = page.post("/relearn").text + page.wait()  # it may be over before the answer is
    assert "all rows are of one kind" in said


def test_another_floor_keeps_the_verdicts_of_rules_that_stay(page: Client) -> None:
    first, *_ = page.groups()
    page.post(f"/group/{first}/verdict", {"verdict": "outlier"})
    page.post("/learn", {"floor": "0.8", "longest": "2", "method": "distilled"})
    page.wait()
    home = page.get("/").text
    assert page.groups()[0] == first
    assert "1 of 1 rule judged" in home
    page.post("/frontier", {"longest": "2"})
    page.wait()
    assert "floor 0.50" in page.get("/tune").text
    assert page.post("/learn", {"floor": "2"}).status == 422


def test_a_verdict_from_an_old_tab_is_answered(page: Client, table: Path) -> None:
    """It was stored and answered with 500, as the rule's own page was: the new set has fewer rules
    than the old, and the answer shows the rule where no other is next, as when a mind changes."""
    _, last, _ = page.groups()
    page.post("/learn", {"floor": "0.5", "longest": "1", "method": "distilled"})
    page.wait()
    assert last not in page.groups()
    answer = page.post(f"/group/{last}/verdict", {"verdict": "outlier"})
    assert answer.status == 200
    assert "A rule of an earlier set: true outliers" in answer.headers["hx-trigger"]
    answer = page.post(f"/group/{last}/verdict", {"verdict": "inlier", "note": "from before"})
    assert answer.status == 200
    assert "A rule of an earlier set: false alarm" in answer.headers["hx-trigger"]
    assert "of an earlier set of rules" in answer.text
    assert _events(table)[1:] == [("rule", last, "outlier"), ("rule", last, "inlier")]
    assert "from before" in page.get("/").text
    for key in page.groups():
        page.post(f"/group/{key}/verdict", {"verdict": "outlier"})
    for verdict in ("none", "unsure"):  # nothing is left that could be next
        assert page.post(f"/group/{last}/verdict", {"verdict": verdict}).status == 200
    shown = page.get(f"/group/{last}").text
    assert "of an earlier set of rules" in shown and "from before" not in shown
    assert page.get(f"/group/{last}/edit").status == 422


def test_a_key_that_is_used_again_says_so(page: Client, table: Path) -> None:
    """The second verdict was shown, and the first was kept."""
    key = page.groups()[0]
    page.post(f"/group/{key}/verdict", {"verdict": "outlier", "once": "k"})
    answer = page.post(f"/group/{key}/verdict", {"verdict": "inlier", "once": "k"})
    assert answer.status == 422 and "used for another decision" in answer.text
    assert _events(table) == [("rule", key, "outlier")]


# --- reopening ----------------------------------------------------------------------------------


def test_reopening_goes_on_where_the_person_was(table: Path) -> None:
    arguments = (table, *SETTINGS)
    with served(*arguments) as client:
        client.wait()
        groups = client.groups()[:2]
        one_clause = ['id="edit-1"' not in client.get(f"/group/{key}/edit").text for key in groups]
        second, first = groups[one_clause.index(True)], groups[one_clause.index(False)]
        client.post(f"/group/{first}/verdict", {"verdict": "inlier", "note": "known customers"})
        changed = client.post(f"/group/{second}/edit", {"clause": 0, "low": "", "high": "-1.8"})
        assert changed.status == 200
        keys = client.groups()
        client.get(f"/group/{keys[-1]}")
    with served(*arguments) as client:
        client.wait()
        assert client.groups() == keys
        home = client.get("/").text
        assert "1 of 2 rules judged" in home
        assert f'<section class="group" data-key="{keys[-1]}"' in home
        assert "known customers" in client.get(f"/group/{first}").text
        other = Client(client.port, "another browser")
        for did in ("edited by hand", "false alarm"):
            assert did in other.post("/undo").headers["hx-trigger"]
        assert "0 of 2 rules judged" in client.get("/").text
        assert other.post("/undo").status == 422


def test_a_changed_table_keeps_old_verdicts_apart(table: Path) -> None:
    arguments = (table, *SETTINGS)
    with served(*arguments) as client:
        client.wait()
        client.post(f"/group/{client.groups()[0]}/verdict", {"verdict": "inlier"})
    with table.open("a") as file:
        file.write("0.5,0.5,a,0\n")
    with served(*arguments) as client:
        client.wait()
        home = client.get("/").text
        assert "0 of 2 rules judged" in home
        assert "1 decision in this file belongs to other rows" in home


def test_saved_rules_are_reviewed_on_new_rows(table: Path) -> None:
    """With a verdict they are counted against it, without one nothing is said about right."""
    rules = table.with_name("rules.json")
    summary = summarize(table, labels="y", min_score=0.85, method=DistilledStair(max_rule_length=2))
    summary.to_json(rules)
    with served(rules, table, "--label", "y") as client:
        client.wait()
        assert len(client.groups()) == len(summary.rules) + 1
        assert "right" in client.get("/").text
    with served(rules, table, "--db", table.with_name("other.sqlite")) as client:
        client.wait()
        home = client.get("/").text
        assert "Nobody gave a verdict" in home and "% right" not in home
        key = client.groups()[0]
        client.post(f"/group/{key}/verdict", {"verdict": "outlier"})
        assert "1 of 2 rules judged" in client.get("/").text


# --- taking away --------------------------------------------------------------------------------


def test_what_is_taken_away_says_what_was_judged(page: Client, table: Path) -> None:
    first, second, *_ = page.groups()
    assert "No rule is accepted yet" in page.get("/take").text
    assert page.get("/take/rules").status == 422
    page.post(f"/group/{first}/verdict", {"verdict": "outlier", "note": "<b>bold</b>"})
    page.post(f"/group/{second}/verdict", {"verdict": "inlier"})
    for kind in ("csv", "parquet"):
        path = table.with_name(f"taken.{kind}")
        path.write_bytes(page.get(f"/take/rows.{kind}").body)
        columns = read(path).columns
        counts = dict(zip(*np.unique([str(v) for v in columns["stair_review"]],
                                     return_counts=True), strict=True))  # fmt: skip
        assert set(counts) == {"None", "inlier", "outlier", "contested"}
        assert counts["contested"] == 1  # both rules match it, and the verdicts differ
        assert {v for v in columns["stair_note"] if v is not None} == {"<b>bold</b>"}
        accepted = {r for r, v in zip(columns["stair_rule"], columns["stair_review"], strict=True)
                    if v == "outlier"}  # fmt: skip
        assert len(accepted) == 1
    path = table.with_name("accepted.json")
    path.write_bytes(page.get("/take/rules?to=json").body)
    saved = load(path)
    assert len(saved.rules) == 1
    assert saved.facts["total_length"] == saved.rules.total_length
    for kind in ("text", "markdown", "sql", "pandas", "polars", "python", "onnx", "pmml"):
        answer = page.get(f"/take/rules?to={kind}&dialect=postgres&form=query")
        assert answer.status == 200 and answer.body, kind
        assert "attachment" in answer.headers["content-disposition"]
    assert page.get("/take/rules?to=exe").status == 422
    report = page.get("/take/report.html").text
    assert "&lt;b&gt;bold" in report and "<b>bold" not in report
    assert "True outliers" in report and "False alarm" in report
    assert page.get("/take/rows.exe").status == 422


# --- what is refused ----------------------------------------------------------------------------


def test_only_the_browser_with_the_token_gets_an_answer(page: Client, table: Path) -> None:
    key = page.groups()[0]
    verdict = {"verdict": "inlier"}
    assert page.get("/", Authorization="Bearer wrong").status == 403
    assert page.post(f"/group/{key}/verdict", verdict, Origin="http://evil.example").status == 403
    assert page.get("/", Host="evil.example").status == 421
    assert (
        page.post(f"/group/{key}/verdict", verdict, Host=f"evil.example:{page.port}").status == 421
    )
    for path in ("/static/../store.py", "/static/%2e%2e/store.py", "/static/..%2fstore.py",
                 "/group/../../etc/passwd", "/static//etc/passwd"):  # fmt: skip
        assert page.get(path).status in (400, 404), path
    assert page.post(f"/group/{'0' * 32}/verdict", verdict).status == 422
    assert page.post(f"/group/{key}/verdict", {"verdict": "everything"}).status == 422
    assert page.post(f"/group/{key}/verdict", {**verdict, "note": "x" * 10_001}).status == 422
    assert page.ask("POST", f"/group/{key}/verdict", b"x" * 2_000_000).status == 413
    for query in ("sort=nothing", "start=-1", "start=x", "start=99999999"):
        assert page.get(f"/group/{key}/rows?{query}").status == 422, query
    assert page.ask("POST", "/upload?name=a.csv", b"a,b\n1,2\n").status == 422
    assert page.post("/choose", {"name": "table.csv"}).status == 422
    assert _events(table) == []


def test_only_files_of_the_folder_can_be_chosen(table: Path) -> None:
    secret = table.parent / "secret.csv"
    secret.write_text("a,y\n1,0\n2,1\n")
    folder = table.parent / "folder"
    folder.mkdir()
    (folder / "inside.csv").write_text(table.read_text())
    (folder / "link.csv").symlink_to(secret)
    with served(cwd=folder) as client:
        start = client.get("/start").text
        assert "inside.csv" in start and "link.csv" not in start
        for name in ("../secret.csv", str(secret), "link.csv", "inside.csv\0", "..\\secret.csv"):
            assert client.post("/choose", {"name": name}).status == 422, name
        setup = client.post("/choose", {"name": "inside.csv"}).text
        assert "Who says which rows are outliers?" in setup
        fields = {"name": "inside.csv", "by": "label", "label": "y", "column": ["x", "z", "kind"],
                  "use": ["x", "z"], "floor": "0.5", "longest": "2", "method": "stair"}  # fmt: skip
        for name in ("longest", "floor"):
            for wrong in ("9" * 5000, "nan", "inf", "1e400"):
                assert client.post("/open", {**fields, name: wrong}).status == 422, (name, wrong)
        assert client.post("/open", fields).headers["hx-redirect"] == "/"
        client.wait()
        assert "kind" not in client.get("/tune").text
        uploaded = client.ask("POST", "/upload?name=..%2F..%2Fnew.csv", table.read_bytes())
        assert uploaded.status == 200
        found = json.loads(uploaded.text)["name"]
        assert (folder / found).resolve().is_relative_to(folder / "stair-review")


def test_the_start_page_asks_what_is_normal(table: Path) -> None:
    """The command had --negative, and the page had no field for it: of two unknown words the rarer
    one was the outlier, and of several classes none was normal unless most rows had it."""
    rows = [line.split(",") for line in table.read_text().splitlines()]
    at = rows[0].index("y")
    words = {"0": "steel", "1": "wood"}
    folder = table.parent / "folder"
    folder.mkdir()
    named = [[*row[:at], words.get(row[at], row[at]), *row[at + 1 :]] for row in rows]
    (folder / "made.csv").write_text("\n".join(map(",".join, named)))
    with served(cwd=folder) as client:
        setup = client.post("/choose", {"name": "made.csv"}).text
        assert '<option value="steel">' in setup and '<option value="wood">' in setup
        fields = {"name": "made.csv", "by": "label", "label": "y", "column": ["x", "z", "kind"],
                  "use": ["x", "z"], "method": "stair", "normal": "wood"}  # fmt: skip
        assert client.post("/open", fields).headers["hx-redirect"] == "/"
        client.wait()
        assert "548 outliers" in client.get("/").text
        client.post("/open", {**fields, "normal": "wod"})
        assert "Did you mean &#34;wood&#34;?" in client.wait()


def test_a_small_file_that_grows_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """A bomb: more than a gigabyte of zeros in about a megabyte, named as a table."""
    line, zeros, crc = b"a,y\n", b"0," * 5_000_000, 0
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    parts = [packer.compress(each) + packer.flush(zlib.Z_FULL_FLUSH) for each in (line, zeros)]
    for each in (line, *[zeros] * 110):
        crc = zlib.crc32(each, crc)
    end = packer.flush() + struct.pack("<II", crc, len(line) + 110 * len(zeros))
    body = b"\x1f\x8b\x08" + bytes(7) + parts[0] + 110 * parts[1] + end
    assert len(body) < 2_000_000
    with served(cwd=tmp_path) as client:
        sent = client.ask("POST", "/upload?name=bomb.csv.gz", body)
        said = client.post("/choose", {"name": json.loads(sent.text)["name"]})
        assert said.status == 422
        assert "line 2 is longer than 33,554,432 characters" in said.text


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["missing.csv", "--label", "y"], "there is no file missing.csv"),
        (["table.csv"], "who says which rows are outliers?"),
        (["table.csv", "--label", "y", "--method", "magic"], "no method 'magic'"),
        (["table.csv", "--label", "y", "--token", "short"], "fewer than 16 characters"),
        (["table.csv", "--label", "y", "--host", "not a host"], "cannot listen at not a host"),
        (["rules.json"], "are rules; give the table after them"),
        (["table.csv", "--label", "y", "--db", "nowhere/v.sqlite"], "there is no folder nowhere"),
    ],
)
def test_bad_arguments_are_one_sentence(table: Path, arguments: list[str], says: str) -> None:
    (table.parent / "rules.json").write_text("{}")
    done = run("review", "--no-browser", *arguments, cwd=table.parent)
    said = done.stderr.decode()
    assert done.returncode == 2
    assert said.startswith("stair: ") and says in said
    assert "Traceback" not in said


def test_ctrl_c_while_it_learns_is_no_crash(tmp_path: Path) -> None:
    """Where the interpreter ended under a thread that learned, the process died of an abort."""
    path = tmp_path / "payments.csv"
    write_table(path, payments())
    command = [sys.executable, "-m", "stair.cli", "review", path.name, "--label", "flagged"]
    with subprocess.Popen(
        [*command, "--no-browser"], cwd=tmp_path, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        home, _, token = process.stdout.readline().strip().partition("?token=")
        asking = urllib.request.Request(f"{home}job", headers={"Authorization": f"Bearer {token}"})
        while b"learning" not in urllib.request.urlopen(asking).read():
            pass
        process.send_signal(signal.SIGINT)
        process.wait(60)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said == "stair: stopped; nothing was left half-written\n"


def test_a_page_that_comes_as_the_work_ends_does_not_wait_for_ever() -> None:
    """The table was there a moment after the page had looked for it, and the job was over when the
    page was made: it said "One moment" and never asked again."""
    from stair.review import pages
    from stair.review.jobs import Job

    for ended, error, asks in ((None, "", True), (1.0, "", True), (1.0, "no column", False)):
        job = Job("Opening", ended=ended, error=error)
        text = pages.render("wait.html", job=job, wanted=None, can_choose=False)
        assert ('hx-get="/job"' in text) is asks


def test_a_bad_column_is_said_on_the_page(table: Path) -> None:
    with served(table, "--label", "yy") as client:
        assert "no column" in client.wait()


def test_the_demo_is_judged_in_five_decisions(tmp_path: Path) -> None:
    """Four rules and what they leave: 222 outliers in five decisions."""
    path = tmp_path / "payments.csv"
    write_table(path, payments())
    with served(path, "--label", "flagged", "--min-score", "0.9", "--max-rule-length", "3") as page:
        page.wait()
        for key in page.groups():
            page.post(f"/group/{key}/verdict", {"verdict": "outlier"})
        home = page.get("/").text
        assert "4 of 4 rules judged, 222 of 222 outliers" in home
        assert "5 decisions cover 227 rows" in home
