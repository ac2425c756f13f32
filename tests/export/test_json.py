"""The rules file as a rulebook: rules with ids that stay and a life of their own, made for git."""

from __future__ import annotations

import datetime as dt
import difflib
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_cases import SOME, Case, as_older, cases
from stair import StairError
from stair.export import Rulebook, from_json, to_json
from stair.rules.clauses import Interval
from stair.rules.record import STATUSES, Evidence, Record
from stair.rules.rule_set import Rule, RuleSet

DAYS = st.sampled_from(["", "2024-02-29", "2026-05-02", "0001-01-01", "9999-12-31"])
WORDS = st.sampled_from(["", "ana", 'a "quote"\nand a line', "naïve 日本", "\\"])
EVIDENCE = st.none() | st.builds(
    Evidence, WORDS, st.tuples(*(st.sampled_from([0.0, 3.0, 2.5, 1e15]) for _ in range(2)))
)
RECORDS = st.builds(
    Record, st.just(""), st.sampled_from(STATUSES), WORDS, WORDS, DAYS, DAYS, EVIDENCE
)


@st.composite
def books(draw: Any) -> tuple[Case, Rulebook]:
    """A rulebook in which rules have come and gone, and a table for it."""
    case = draw(cases())
    n = len(case.rules)
    made = [replace(draw(RECORDS), id=f"r{k}") for k in range(n)]
    return case, Rulebook(case.rules, {"source": "s"}, (), tuple(made))


@SOME
@given(books())
def test_a_rulebook_reads_back_to_the_same_text(found: tuple[Case, Rulebook]) -> None:
    """Every record is there again, whatever its words are, and the text is the same to the byte."""
    _, book = found
    text = to_json(book)
    assert from_json(text) == book
    assert to_json(from_json(text)) == text


@SOME
@given(books())
def test_a_retired_rule_covers_nothing(found: tuple[Case, Rulebook]) -> None:
    """Each row has the label of the first rule in force that covers it; all others are as they
    were, in each partition."""
    case, book = found
    read = from_json(to_json(book))
    every = case.rules.covers(case.table)
    in_force = [record.status != "retired" for record in book.records]
    assert (read.rules.covers(case.table) == every[:, in_force]).all()
    taken = case.rules.matches(case.table).excepted.any(axis=1)
    labels = read.rules.predict(case.table).tolist()
    for row, label in enumerate(labels):
        own = [k for k in np.flatnonzero(every[row]) if in_force[k]
               and not (taken[row] and case.rules[k].label != case.rules.default)]  # fmt: skip
        assert label == (case.rules[own[0]].label if own else case.rules.default)


@SOME
@given(books(), st.data())
def test_a_change_of_one_rule_is_a_diff_of_one_rule(
    found: tuple[Case, Rulebook], data: Any
) -> None:
    """What stands outside the lines of the rule is the same to the byte."""
    _, book = found
    if not book.records:
        return
    place = data.draw(st.integers(0, len(book.records) - 1))
    other = replace(data.draw(RECORDS), id=book.records[place].id)
    records = (*book.records[:place], other, *book.records[place + 1 :])
    before, after = (to_json(b).splitlines() for b in (book, replace(book, records=records)))
    starts = [k for k, line in enumerate(before) if line.startswith('   "id": ')]
    end = next(k for k, line in enumerate(before) if k > starts[place] and line in ("  },", "  }"))
    matched = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed = [code for code in matched.get_opcodes() if code[0] != "equal"]
    assert all(starts[place] < start and stop <= end for _, start, stop, _, _ in changed)


def _book(*rules: Rule) -> Rulebook:
    kept = RuleSet(rules, (0, 1), ("a", "b"), 0, (90.0, 10.0), 1)  # type: ignore[arg-type]
    return Rulebook(kept, {"source": "may.csv"})


LARGE = Rule((Interval("a", 1.0),), 1, ((0, 2.0), (1, 8.0)))
SMALL = Rule((Interval("b", high=2.0),), 1, ((0, 0.0), (1, 3.0)))


def test_an_id_stays_wherever_its_rule_goes() -> None:
    """It is made of what the rule says, not of its place or its counts, and two equal rules differ
    in it."""
    first, second = (record.id for record in _book(LARGE, SMALL).records)
    assert (second, first) == tuple(r.id for r in _book(SMALL, replace(LARGE, counts=())).records)
    assert [r.id for r in _book(LARGE, LARGE).records] == [first, f"{first}-2"]
    text = to_json(_book(LARGE, SMALL)).replace('"above": 1.0', '"above": 5.0')
    assert from_json(text).records[0].id == first  # a person changed the bound in the file


def test_a_rule_that_was_written_by_hand_needs_no_record() -> None:
    """It is a candidate, with an id of what it says, and evidence that nobody has."""
    text = re.sub(r' +"(id|status)": "[^"]*",\n', "", to_json(_book(LARGE, SMALL)))
    text = re.sub(r',\n +"evidence": {[^}]*}', "", text)
    assert [replace(r, evidence=None) for r in _book(LARGE, SMALL).records] == [
        *from_json(text).records
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_older_files_open_with_a_note(version: int) -> None:
    """All rules are candidates, with the evidence that the file as a whole had."""
    document = as_older(json.loads(to_json(_book(LARGE, SMALL))), version)
    if version == 1:
        for field in document["fields"]:
            del field["type"]
    book = from_json(json.dumps(document), "old.json")
    assert book.records == _book(LARGE, SMALL).records
    assert book.records[0].evidence == Evidence("may.csv", (90.0, 10.0))
    assert "old.json is of an older stair" in book.notes[0]
    assert from_json(to_json(book)).notes == ()


def test_an_expired_rule_is_named_and_still_covers() -> None:
    """Labels depend on no clock: the last day is for people, who retire the rule."""
    book = _book(LARGE, SMALL)
    first, second = book.records
    book = replace(book, records=(replace(first, until="2026-05-02"), second))
    assert book.expired(dt.date(2026, 5, 2)) == ()
    assert book.expired(dt.date(2026, 5, 3)) == (0,)
    assert len(book.rules) == 2
    retired = replace(book, records=(replace(book.records[0], status="retired"), second))
    assert retired.expired(dt.date(2026, 5, 3)) == ()
    assert retired.rules.rules == (SMALL,)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [('"id": "', '"id": "é', "is no id of a rule"),
     ('"id": "', '"id": "' + "x" * 64, "is no id of a rule"),
     ('"status": "candidate"', '"status": ["candidate"]', "is none of"),
     ('"status": "candidate"', '"status": "candidate", "owner": 3', "expected text"),
     ('"status": "candidate"', '"status": "candidate", "note": null', "expected text"),
     ('"status": "candidate"', '"status": "candidate", "until": ""', "expected a day"),
     ('"status": "candidate"', '"status": "candidate", "since": "2026-5-2"', "expected a day"),
     ('"status": "candidate"', '"status": "candidate", "since": 20260502', "expected text"),
     ('"status": "candidate"', '"status": "candidate", "stats": 1', "'stats' is not known"),
     ('"evidence": {"source": "may.csv", ', '"evidence": {', "'source' is missing"),
     ('"evidence": {"source": "may.csv", "totals": [90, 10]', '"evidence": {"source": "may.csv", '
      '"totals": [90]', "differ in number"),
     ('"evidence": {"source": "may.csv", "totals": [90, 10]', '"evidence": {"source": "may.csv", '
      '"totals": [90, -10]', "there cannot be"),
     ('"evidence": {"source": "may.csv", "totals": [90, 10]}', '"evidence": []', "expected names")],
)  # fmt: skip
def test_a_damaged_record_is_refused_in_one_sentence(old: str, new: str, words: str) -> None:
    text = to_json(_book(LARGE, SMALL))
    assert old in text
    with pytest.raises(StairError, match=re.escape(words)) as error:
        from_json(text.replace(old, new, 1))
    assert "\n" not in str(error.value)


def test_no_two_rules_have_one_id() -> None:
    """Two branches that were merged may both have named a rule so."""
    first, second = (record.id for record in _book(LARGE, SMALL).records)
    with pytest.raises(StairError, match="stands twice"):
        from_json(to_json(_book(LARGE, SMALL)).replace(second, first))
