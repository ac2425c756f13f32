"""A review that goes on from a rulebook: what is in use comes first, the result is one again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stair
from stair.data import write_table
from stair.demo import KINDS_OF_FRAUD, USUAL, Planted, month
from stair.export import Rulebook, from_json
from stair.operation.mark import marked
from stair.review import pages
from stair.review.desk import Desk, Opening
from stair.review.taking import rulebook_after


@pytest.fixture(scope="module")
def january() -> Rulebook:
    source = stair.Source(month(1), name="january.csv")
    found = stair.summarize(source, "flagged", min_score=0.9, validate=0)
    return marked(from_json(found.to_json()), [], status="accepted", owner="ana", note="seen")


def _opened(folder: Path, book: Rulebook, table: dict[str, Any]) -> Desk:
    book.to_json(folder / "rules.json")
    write_table(folder / "new.csv", table)
    desk = Desk(db=folder / "v.sqlite")
    wanted = Opening(folder / "new.csv", rules=folder / "rules.json", label="flagged")
    job = desk.open(wanted.check())
    while not job.is_done:
        pass
    assert not job.error, job.error
    return desk


@pytest.fixture
def desk(tmp_path: Path, january: Rulebook) -> Iterator[Desk]:
    """February, in which frauds with gift cards are new and the rule of the night is half wrong."""
    planted = {**USUAL, KINDS_OF_FRAUD[1]: Planted(30, 30), "gift cards for more than 200":
               Planted(60, 1)}  # fmt: skip
    found = _opened(tmp_path, january, month(2, planted=planted))
    yield found
    found.close()


def test_what_is_in_use_comes_first_with_how_it_does(desk: Desk, january: Rulebook) -> None:
    review = desk.review
    assert review is not None
    now = review.now()
    assert now is not None
    side = pages.side_of(review, now)
    (first, used), (second, new) = side.parts
    assert (first, second) == ("In use", "New")
    assert len(used) == 4
    rules = [item for item in new if item.number is not None]
    assert [("gift cards" in item.text) for item in rules] == [True]
    night = next(item for item in used if "merchant" in item.text)
    assert night.stands is not None
    assert night.stands.state == "decayed"
    assert side.progress.startswith("3 of 5 rules judged")  # what does as before needs no verdict
    group = next(g for g in now.revision.groups if g.key == night.key)
    text = pages.panel(review, now, group)
    assert "In use, of ana: seen." in text
    assert "As a false alarm it is retired." in text
    assert [rule.clauses for rule in now.revision.summary.rules.rules[:4]] == [
        rule.clauses for rule in january.rules
    ]


def test_verdicts_are_the_status_of_rules_and_the_result_is_a_rulebook(
    desk: Desk, january: Rulebook, tmp_path: Path
) -> None:
    """The new rule is accepted, the one that decayed retired, and the others stay to the byte; next
    month goes on from there."""
    review = desk.review
    assert review is not None
    now = review.now()
    assert now is not None
    for group in now.revision.groups:
        if "gift cards" in group.text and group.number is not None:
            review.decide("ana", group, "outlier", "cards bought with stolen cards", "")
        elif "merchant" in group.text and group.number is not None:
            review.decide("ana", group, "inlier", "", "")
    now = review.now()
    assert now is not None
    book = from_json(rulebook_after(review, now).to_json())
    by_words = {str(rule): record for rule, record in
                zip(book.kept.rules, book.records, strict=True)}  # fmt: skip
    for rule, record in zip(january.kept.rules, january.records, strict=True):
        after = by_words[str(rule)]
        if "merchant" in rule.features:
            assert (after.id, after.status) == (record.id, "retired")
        else:
            assert after == record
            assert rule in book.kept.rules  # with the counts that it had
    (new,) = [r for words, r in by_words.items() if "gift cards" in words]
    assert (new.status, new.note) == ("accepted", "cards bought with stolen cards")
    assert new.since
    assert len(book.rules) == 4
    later = _opened(tmp_path, book, month(3))
    assert later.review is not None
    march = later.review.now()
    assert march is not None
    first, used = pages.side_of(later.review, march).parts[0]
    assert (first, len(used)) == ("In use", 4)
    later.close()


def test_false_alarms_become_exceptions_of_the_rulebook(desk: Desk, january: Rulebook) -> None:
    """Single rows are called false alarms; the exceptions that come of them are in the rulebook,
    and learning again keeps both them and the rules in use."""
    review = desk.review
    assert review is not None
    now = review.now()
    assert now is not None
    large = next(g for g in now.revision.groups if "country" in g.text and g.number is not None)
    country = review.given.frame.columns["country"]
    rows = [row for row in large.rows.tolist() if country[row] == "GB"]
    assert rows
    review.decide_rows("ana", rows, "inlier", "", "")
    review.find_exceptions(lambda _: None)
    review.take_exceptions("ana")
    after = review.now()
    assert after is not None
    book = rulebook_after(review, after)
    assert [r.status for r in book.exception_records] == ["accepted"] * len(book.rules.exceptions)
    assert book.rules.exceptions
    table = {name: column[rows] for name, column in review.given.frame.columns.items()}
    assert set(np.asarray(book.predict(table)).tolist()) == {0}
    review.learn("ana", review.request or {}, dict(after.revision.settings), lambda _: None,
                 relearn=True)  # fmt: skip
    again = review.now()
    assert again is not None
    kept = again.revision.summary.rules
    assert [r.clauses for r in kept.exceptions] == [r.clauses for r in book.rules.exceptions]
    assert [r.clauses for r in kept.rules[:4]] == [r.clauses for r in january.rules]


def test_another_state_of_the_file_begins_anew_and_the_same_goes_on(
    tmp_path: Path, january: Rulebook
) -> None:
    table = month(1, 1, n=2500)
    first = _opened(tmp_path, january, table)
    assert first.review is not None
    event = first.review.store.state().rule_set
    first.close()
    again = _opened(tmp_path, january, table)
    assert again.review is not None
    assert again.review.store.state().rule_set == event
    again.close()
    other = marked(january, ["1"], status="retired")
    third = _opened(tmp_path, other, table)
    assert third.review is not None
    now = third.review.now()
    assert now is not None
    assert now.revision.event != event.id  # type: ignore[union-attr]
    assert str(january.rules[0]) not in {str(r) for r in now.revision.summary.rules.rules[:3]}
    third.close()


def test_a_review_without_rules_in_use_gives_a_rulebook_too(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", month(1, n=2500))
    desk = Desk(db=tmp_path / "v.sqlite")
    job = desk.open(Opening(tmp_path / "t.csv", label="flagged", min_score=0.9).check())
    while not job.is_done:
        pass
    review = desk.review
    assert review is not None
    now = review.now()
    assert now is not None
    first, *_ = (g for g in now.revision.groups if g.number is not None)
    review.decide("ana", first, "outlier", "", "")
    now = review.now()
    assert now is not None
    text = rulebook_after(review, now).to_json()
    assert [r["status"] for r in json.loads(text)["rules"]][:2] == ["accepted", "candidate"]
    desk.close()
