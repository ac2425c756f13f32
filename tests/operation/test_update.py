"""A rulebook on new data: what is accepted stays to the byte, what is missing is learned."""

from __future__ import annotations

import datetime as dt
import json
import os
import random
import re
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stair
import stair.report
from command import run
from described import described
from export_cases import FEW
from stair import StairError
from stair.data import write_table
from stair.data.lock import held
from stair.demo import month
from stair.export import Rulebook, from_json, load
from stair.operation.mark import mark, marked
from stair.operation.update_words import to_text

ON = dt.date(2026, 3, 1)


@pytest.fixture(scope="module")
def january() -> Rulebook:
    """The rules of January, all of them accepted, kept by somebody."""
    source = stair.Source(month(1), name="january")
    found = stair.summarize(source, labels="flagged", min_score=0.9, validate=0)
    return marked(from_json(found.to_json()), [], status="accepted", owner="ana", note="é \\ \n")


def _blocks(book: Rulebook) -> dict[str, str]:
    """The text of each rule in the file, by its id."""
    _, rules = book.to_json().split('\n "rules": [\n')
    blocks = re.findall(r"^  \{\n.*?\n  \}", rules.split("\n ],")[0], re.S | re.M)
    return {json.loads(block)["id"]: block for block in blocks}


# --- months ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_a_new_kind_is_one_more_rule_and_accepted_rules_stay(january: Rulebook, seed: int) -> None:
    """Month 2: frauds with gift cards have begun. The lines of the accepted rules are the same to
    the byte, and one rule is added, which names the new kind."""
    data = stair.Source(month(2, seed), name="february")
    found = stair.update(january, data, "flagged", validate=0, on=ON)
    before, after = _blocks(january), _blocks(found.book)
    assert {name: after[name] for name in before} == before
    (new,) = [json.loads(after[name]) for name in after.keys() - before.keys()]
    assert "gift cards" in new["words"]
    assert (new["status"], new["since"]) == ("candidate", "2026-03-01")
    assert new["evidence"]["source"] == "february"
    assert found.floor_reached
    assert found.score_before < 0.9
    assert (found.retire, found.gone, found.again) == ((), (), ())
    assert from_json(found.book.to_json()) == found.book
    again = stair.update(found.book, data, "flagged", validate=0, on=ON)
    assert (len(again.added), again.again) == (1, (5,))
    assert again.book.to_json() == found.book.to_json()


def test_shares_are_of_the_rows_that_a_rule_was_counted_on(january: Rulebook) -> None:
    """An updated file has counts of two months: those of January's rules were shown as a part of
    February's rows."""
    found = stair.update(january, month(2, n=2500), "flagged", validate=0, on=ON)
    first, last = 1, len(found.book.rules)
    assert sum(found.book.totals_of(first)) == 5000
    assert sum(found.book.totals_of(last)) == 2500
    assert found.book.share_of(first) == january.rules.share(january.rules[0])
    assert found.book.share_of(last) == found.summary.evidence[-1].share
    said = " ".join(stair.report.to_html(found.book).split())
    assert f"<td>{stair.report.percent(found.book.share_of(first))}</td>" in said


def test_a_rule_that_decayed_is_proposed_and_stays(january: Rulebook) -> None:
    found = stair.update(january, month(5), "flagged", validate=0, on=ON)
    (faded,) = found.retire
    assert faded.rule.features == ("hour", "merchant")
    assert {r.status for r in found.book.records} == {"accepted", "candidate"}
    assert f"stair mark RULEBOOK {faded.record.id} --status retired" in to_text(found)
    retired = marked(found.book, [faded.record.id], status="retired")
    assert faded.rule not in retired.rules.rules
    assert faded.rule.clauses in {rule.clauses for rule in retired.kept.rules}
    later = stair.update(retired, month(5, 1), "flagged", validate=0)
    assert _blocks(later.book)[faded.record.id] == _blocks(retired)[faded.record.id]


def test_where_nothing_is_missing_the_file_stays(january: Rulebook, tmp_path: Path) -> None:
    january.to_json(tmp_path / "rules.json")
    before = (tmp_path / "rules.json").read_bytes()
    found = stair.update(tmp_path / "rules.json", month(1, 1), "flagged", validate=0, write=True)
    assert (found.added, found.has_changed) == ((), False)
    assert (tmp_path / "rules.json").read_bytes() == before


def test_expired_rules_are_named_and_columns_that_are_gone_refused(january: Rulebook) -> None:
    book = marked(january, ["1"], until="2026-02-28")
    found = stair.update(book, month(1, 2), "flagged", validate=0, on=ON)
    assert found.expired == (1,)
    assert "Past the last day: rule 1 of the file." in to_text(found)
    table = {name: column for name, column in month(2).items() if name != "device"}
    with pytest.raises(StairError, match='speaks of "device", which is not there'):
        stair.update(january, table, "flagged")


def test_what_a_rule_speaks_of_keeps_its_type(january: Rulebook) -> None:
    """In February all countries are digits in a CSV: they are names all the same."""
    table = month(2)
    table["country"] = np.where(table["country"] == "DE", "DE", "7")
    found = stair.update(january, table, "flagged", validate=0)
    field = next(f for f in found.book.fields if f.name == "country")
    assert (field.kind, field.type) == ("category", "text")
    assert field.known is not None
    assert {"DE", "BR", "7"} <= set(field.known)


# --- beside summarize, exceptions, kinds ----------------------------------------------------------


@st.composite
def tables(draw: Any) -> dict[str, Any]:
    """Columns of every kind, a few rare rows among them, and three labels."""
    seed, n = draw(st.integers(0, 2**32 - 1)), draw(st.integers(60, 150))
    rng = np.random.default_rng(seed)
    words = np.array(["red", "green", "blue", None], dtype=object)
    texts = np.array(["paid", "a refund", "no more", None], dtype=object)
    table: dict[str, Any] = {
        "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "whole": rng.integers(0, 9, n),
        "word": words[rng.choice(4, n, p=[0.5, 0.3, 0.1, 0.1])],
        "text": texts[rng.integers(0, 4, n)],
        "time": np.datetime64("2026-01-01", "us") + rng.integers(0, 10**12, n).astype("m8[us]"),
    }  # fmt: skip
    first = (table["whole"] > 6) & (table["word"] != "red")
    second = (rng.random(n) < 0.1) | (table["text"] == "a refund") & (table["whole"] < 2)
    labels = np.where(first, 1, np.where(second, 2, 0))
    labels[:14] = [0] * 6 + [1] * 6 + [2] * 2
    table["label"] = labels
    return table


@FEW
@given(tables(), tables())
def test_without_accepted_rules_it_is_summarize(first: Any, second: Any) -> None:
    """Candidates are worth nothing: the rules of the new table, learned as those of the file."""
    settings: dict[str, Any] = {"positive": 1, "validate": 0, "min_score": 0.7}
    learned = stair.summarize(first, "label", **settings)
    found = stair.update(from_json(learned.to_json()), second, "label", validate=0)
    plain = stair.summarize(second, "label", **settings)
    assert found.book.rules.rules == from_json(plain.to_json()).rules.rules
    assert found.book.facts["score"] == plain.score
    assert found.certificate == plain.certificate


@FEW
@given(tables(), tables())
def test_additional_rules_come_last_and_the_score_is_counted(first: Any, second: Any) -> None:
    """Whatever the tables are: accepted rules are as they were, and what is said of the score is
    what the saved rules have on the rows."""
    learned = stair.summarize(first, "label", positive=1, validate=0, min_score=0.7)
    book = marked(from_json(learned.to_json()), [], status="accepted")
    found = stair.update(book, second, "label", validate=0)
    n = len(book.rules)
    assert found.book.rules.rules[:n] == book.rules.rules
    assert found.book.records[:n] == book.records
    saved = from_json(found.book.to_json())
    right, called = second["label"] == 1, saved.predict(second) == "outlier"
    if not set(saved.predict(second).tolist()) <= {"outlier", "inlier"}:
        called = saved.predict(second) == 1
    hits = int((called & right).sum())
    expected = 2 * hits / (called.sum() + right.sum()) if hits else 0.0
    assert found.summary.score == pytest.approx(expected)


def test_several_kinds_keep_their_rules_and_get_others() -> None:
    """A kind whose rules are enough gets none; the new kind of another one gets its own."""
    rng = np.random.default_rng(0)

    def table(n_second: int) -> dict[str, Any]:
        a, b, c = rng.random((3, 600))
        kind = np.where(a > 0.92, "theft", np.where(b > 0.92, "abuse", "fine"))
        kind[:n_second] = "abuse"
        c[:n_second] = rng.random(n_second) + 2
        return {"a": a, "b": b, "c": c, "kind": kind}

    learned = stair.summarize(
        table(0), "kind", positive=stair.AllBut("fine"), min_score=0.9, validate=0
    )
    book = marked(from_json(learned.to_json()), [], status="accepted")
    # Of several kinds nothing was known of what all rules explained, and the score of the accepted
    # ones was their accuracy: they "alone have F1 0.984; all rules have 0.952".
    now = stair.check(book, table(60), "kind")
    assert now.explains_less and now.has_decayed
    assert not stair.check(book, table(0), "kind").explains_less
    other = table(0)
    other["kind"] = np.where(other["c"] > 0.95, "prank", other["kind"])
    n_pranks = int((other["kind"] == "prank").sum())
    (note,) = stair.check(book, other, "kind").notes
    assert "labels that the rules do not know" in note and note.endswith(f"prank ({n_pranks})")
    found = stair.update(book, table(60), "kind", validate=0)
    assert found.score_before < 0.9 <= found.summary.score
    (new,) = [found.summary.rules[k - 1] for k in found.added]
    assert (new.features, new.label) == (("c",), "abuse")
    assert found.floor_reached


def test_what_an_exception_covers_is_decided(january: Rulebook) -> None:
    """No further rule is learned for rows that people have called false alarms."""
    wrong = np.flatnonzero((month(1)["country"] == "GB") & (month(1)["amount"] > 4000))
    book = stair.learn_exceptions(january, month(1), false_alarms=wrong)
    table = month(1)
    table["flagged"] = np.where(book.predict(table) == 1, 1, 0)
    found = stair.update(book, table, "flagged", validate=0)
    assert (found.added, found.summary.score) == ((), 1.0)
    assert found.book.to_json() == book.to_json()


def test_what_nothing_can_be_added_to_is_refused(january: Rulebook) -> None:
    inside = stair.summarize(month(1), "flagged", method="stair", validate=0)
    book = marked(from_json(inside.to_json()), [], status="accepted")
    with pytest.raises(StairError, match="about rows that are no outliers"):
        stair.update(book, month(2), "flagged")
    local = stair.summarize(month(1, n=400), "flagged", method="local", validate=0)
    if local.rules.routing:
        with pytest.raises(StairError, match="several partitions"):
            stair.update(marked(from_json(local.to_json()), [], status="accepted"), month(2),
                         "flagged")  # fmt: skip
    with pytest.raises(StairError, match='no column "flaged"'):
        stair.update(january, month(2), "flaged")
    quiet = {**month(2), "flagged": np.zeros(5000, dtype=int)}
    with pytest.raises(StairError, match="says the same of all rows"):
        stair.update(january, quiet, "flagged")
    with pytest.raises(StairError, match="give the path"):
        stair.update(january, month(2), "flagged", write=True)


# --- files ----------------------------------------------------------------------------------------


def test_the_command_adds_and_marks(january: Rulebook, tmp_path: Path) -> None:
    january.to_json(tmp_path / "rules.json")
    write_table(tmp_path / "2.csv", month(2))
    before = (tmp_path / "rules.json").read_bytes()
    words = ("update", "rules.json", "2.csv", "--label", "flagged", "--no-validate")
    dry = run(*words, "--dry-run", "--json", "-", cwd=tmp_path)
    assert dry.returncode == 0, dry.stderr
    said = described(dry.stdout)
    assert (said["written"], said["changed"], said["floor_reached"]) == (False, True, True)
    assert (tmp_path / "rules.json").read_bytes() == before
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert b"Wrote rules.json." in done.stdout
    assert not list(tmp_path.glob(".*"))
    added = next(rule for rule in said["rules"] if rule["added"])
    marked_ = run("mark", "rules.json", added["id"], "--status", "accepted", cwd=tmp_path)
    assert marked_.returncode == 0, marked_.stderr
    assert {r.status for r in load(tmp_path / "rules.json").records} == {"accepted"}
    for wrong in (("mark", "rules.json", "9", "--status", "retired"), ("mark", "rules.json"),
                  ("mark", "rules.json", "1", "--until", "May"), ("mark", "-", "--note", "x"),
                  ("mark", "rules.json", "1", "--status", "good"),
                  ("update", "rules.json", "2.csv"), ("update", "-", "2.csv", "--label", "x"),
                  (*words, "--dry-run", "-o", "x.json")):  # fmt: skip
        refused = run(*wrong, cwd=tmp_path, given=b"")
        assert (refused.returncode, refused.stdout) == (2, b""), wrong
        assert refused.stderr.count(b"\n") == 1


def test_of_two_updates_at_once_the_second_says_so(january: Rulebook, tmp_path: Path) -> None:
    """And a lock that a killed one has left holds nobody off."""
    path = tmp_path / "rules.json"
    january.to_json(path)
    write_table(tmp_path / "2.csv", month(2, n=600))
    (tmp_path / ".rules.json.lock").touch()
    with held(path):
        second = run("update", "rules.json", "2.csv", "--label", "flagged", cwd=tmp_path)
        assert second.returncode == 2
        assert b"rules.json is being changed by another stair; try again" in second.stderr
        with pytest.raises(StairError, match="being changed"):
            mark(path, ["1"], status="retired")
    mark(path, ["1"], status="retired")
    assert load(path).records[0].status == "retired"
    assert [each.name for each in tmp_path.glob(".*")] == []


def test_a_killed_write_leaves_the_old_or_the_new(january: Rulebook, tmp_path: Path) -> None:
    """Killed at any moment while it is written again and again. A hundred updates of the command
    are killed by benchmarks/operation.py."""
    path = tmp_path / "rules.json"
    other = marked(january, [], owner="ben")
    texts = {january.to_json(), other.to_json()}
    january.to_json(path)
    for seed in range(20):
        child = os.fork()
        if not child:
            while True:
                for book in (other, january):
                    book.to_json(path)
        time.sleep(random.Random(seed).uniform(0.001, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert path.read_text() in texts
    mark(path, [], owner="cleo")
    assert {record.owner for record in load(path).records} == {"cleo"}


def test_wishes_about_all_rules_are_not_asked_of_additional_ones(january: Rulebook) -> None:
    settings = {**january.facts["settings"], "min_precision": 0.95}
    book = replace(january, facts={**january.facts, "settings": settings})
    found = stair.update(book, month(2), "flagged", validate=0)
    assert len(found.added) == 1
    assert any("not asked of additional ones" in note for note in found.notes)
