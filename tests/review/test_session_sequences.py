"""Whatever a person does after whatever else: judging, changing, undoing, learning again, two tabs
and restarts, beside a slow obvious model; and the sequences that once went wrong."""

from __future__ import annotations

import html
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stair.data.source import Source
from stair.errors import StairError
from stair.intake import Columns, Intake, Statement, take_in
from stair.review import pages, session, taking
from stair.review.judged import WORDS
from stair.review.revision import Group, Now
from stair.review.session import Review
from stair.review.store import Store
from stair.rules.clauses import Clause, Interval
from strategies import examples

SETTINGS = {"method": "stair", "min_score": 0.8, "max_rule_length": 2, "random_state": 0}
PERSONS = st.sampled_from(["Ada", "Bo"])
TABS = st.integers(0, 1)


def quiet(_: str) -> None:
    pass


def _table() -> dict[str, Any]:
    """Two kinds of outliers, and two that no short rule finds."""
    x, z = np.arange(40) % 10, np.arange(40) // 10
    y = ((x >= 8) & (z < 3)) | ((z == 3) & (x < 2))
    y[[5, 17]] = True
    return {"x": x.astype(float), "z": z.astype(float), "y": y.astype(np.int64)}


def _given(data: dict[str, Any]) -> Intake:
    source = Source(data, name="t", time_parts=False)
    return take_in(source, Statement("y"), Columns(), quiet)


GIVEN = _given(_table())


def _now(review: Review) -> Now:
    now = review.now()
    assert now is not None
    return now


def _rules(now: Now) -> list[tuple[Any, tuple[Clause, ...]]]:
    return [(rule.label, rule.clauses) for rule in now.revision.summary.rules]


def _shown(review: Review) -> str:
    """Everything that the page can show must be shown without an error."""
    now = _now(review)
    texts = [pages.panel(review, now, group) for group in now.revision.groups]
    for group in now.revision.groups:
        if group.number is not None:
            pages.edit_form(now.revision, group)
    side = pages.side_of(review, now)
    shown = pages.render("side.html", side=side, current="", oob=False, can_choose=False,
                         names=pages.names_of(True), headline=now.revision.headline)  # fmt: skip
    return html.unescape("".join([*texts, shown, taking.report(review, now).body.decode()]))


@dataclass
class Deed:
    """What one person did at once: what was said about groups and rows, or a set of rules."""

    who: str
    said: dict[tuple[Any, ...], tuple[str, str]] = field(default_factory=dict)
    rules: Any = None
    holds: bool = True


class Sequences(RuleBasedStateMachine):
    """Two tabs are two programs on one file: neither knows what the other has in its memory."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.patched = pytest.MonkeyPatch()
        self.deeds: list[Deed] = []
        self.taken_back: dict[str, list[Deed]] = {"Ada": [], "Bo": []}
        self.seen: list[Group] = []  # all that was ever on a screen: an old tab may show it

    def open(self) -> Review:
        return Review(GIVEN, Store(self.folder / "v.sqlite", "data"))

    @initialize(kept=st.sampled_from([1, 1, 2]))
    def begin(self, kept: int) -> None:
        self.patched.setattr(session, "KEPT_IN_MEMORY", kept)  # so that an undo has to count anew
        self.tabs = [self.open(), self.open()]
        self.tabs[0].learn("stair", {}, SETTINGS, quiet)
        self.deeds.append(Deed("stair", rules=_rules(_now(self.tabs[0]))))

    def teardown(self) -> None:
        for tab in self.tabs:
            tab.store.close()
        shutil.rmtree(self.folder)
        self.patched.undo()

    def do(self, deed: Deed) -> None:
        self.deeds.append(deed)
        self.taken_back[deed.who] = []

    def holding(self) -> dict[tuple[Any, ...], tuple[str, str]]:
        """What is said about each subject now, in the order in which it was said."""
        found: dict[tuple[Any, ...], tuple[str, str]] = {}
        for deed in self.deeds:
            for subject, said in deed.said.items() if deed.holds else ():
                found.pop(subject, None)
                found[subject] = said
        return {subject: said for subject, said in found.items() if said[0] != "none"}

    @rule(
        tab=TABS, who=PERSONS, place=st.integers(0, 200), old=st.booleans(),
        word=st.sampled_from(["outlier", "inlier", "unsure", "none"]),
        note=st.sampled_from(["", "why", "=1+1"]),
    )  # fmt: skip
    def judge(self, tab: int, who: str, place: int, old: bool, word: str, note: str) -> None:
        review = self.tabs[tab]
        now = _now(review)
        groups = self.seen if old and self.seen else now.revision.groups
        wanted = groups[place % len(groups)]
        group = review.group(now, wanted.key)
        if group is None or not group.is_judged:
            return  # the page says so, and nothing is stored
        assert np.array_equal(group.rows, wanted.rows)
        shown = now.carried.kept.get(group.key, ())
        deed = Deed(who, {(e.subject, *_rows(review, e)): ("none", "") for e in shown})
        review.decide(who, group, word, note, "")
        deed.said[group.key, *group.rows.tolist()] = (word, note)
        self.do(deed)
        after = _now(review).verdict(group.key)
        assert (after and after.verdict, after and after.note) == (
            (None, None) if word == "none" else (word, note)
        )

    @rule(tab=TABS, who=PERSONS, row=st.integers(0, 39), word=st.sampled_from(["inlier", "none"]))
    def judge_row(self, tab: int, who: str, row: int, word: str) -> None:
        self.tabs[tab].decide_rows(who, [row], word, "", "")
        self.do(Deed(who, {(row,): (word, "")}))

    @rule(tab=TABS, who=PERSONS, place=st.integers(0, 20), low=st.integers(-2, 9))
    def change(self, tab: int, who: str, place: int, low: int) -> None:
        """A bound that may match nothing, and may match what another rule does."""
        review = self.tabs[tab]
        now = _now(review)
        rules = now.revision.summary.rules.rules
        groups = [
            g for g in now.revision.groups if g.number is not None and rules[g.number].clauses
        ]
        if not groups:
            return
        group = groups[place % len(groups)]
        new = Interval(rules[group.number].clauses[0].feature, low=low + 0.5)
        before, verdicts = _rules(now), {g.key: now.verdict(g.key) for g in now.revision.groups}
        wanted = list(before)
        wanted[group.number] = (before[group.number][0],
                                (new, *before[group.number][1][1:]))  # fmt: skip
        if wanted == before:
            with pytest.raises(StairError, match="nothing was changed"):
                review.edit(who, group.key, 0, new)
            return
        review.edit(who, group.key, 0, new)
        after = _now(review)
        assert _rules(after) == wanted
        others = [g for g in now.revision.groups if g.number not in (group.number, None)]
        for each in others:  # one change moves no verdict of another rule
            assert after.verdict(each.key) == verdicts[each.key]
        self.do(Deed(who, rules=wanted))

    @rule(tab=TABS, who=PERSONS, again=st.booleans(), floor=st.sampled_from([0.5, 0.9]))
    def learn(self, tab: int, who: str, again: bool, floor: float) -> None:
        review = self.tabs[tab]
        before = _now(review)
        try:
            review.learn(who, {}, {**SETTINGS, "min_score": floor}, quiet, relearn=again)
        except StairError as error:
            assert "all rows are of one kind" in str(error)
            return
        after = _now(review)
        texts = {group.text for group in after.revision.groups}
        for edit in before.revision.edits:  # a change by hand is there, or is said to be gone
            words = edit["after"]["words"]
            assert words in texts or words in after.revision.lost_edits
        self.do(Deed(who, rules=_rules(after)))

    @rule(tab=TABS, who=PERSONS, times=st.integers(1, 4))
    def undo(self, tab: int, who: str, times: int) -> None:
        for _ in range(times):
            made = [deed for deed in self.deeds if deed.who != "stair"]
            mine = [deed for deed in made if deed.who == who] or made
            wanted = next((deed for deed in reversed(mine) if deed.holds), None)
            found = self.tabs[tab].store.undo(who)
            assert (found is None) == (wanted is None)
            if wanted is not None:
                wanted.holds = False
                self.taken_back[who].append(wanted)

    @rule(tab=TABS, who=PERSONS)
    def redo(self, tab: int, who: str) -> None:
        found = self.tabs[tab].store.redo(who)
        assert (found is None) == (not self.taken_back[who])
        if self.taken_back[who]:
            self.taken_back[who].pop().holds = True

    @rule(tab=TABS)
    def restart(self, tab: int) -> None:
        before = pages.side_of(self.tabs[tab], _now(self.tabs[tab]))
        self.tabs[tab].store.close()
        self.tabs[tab] = self.open()
        assert pages.side_of(self.tabs[tab], _now(self.tabs[tab])) == before

    @rule(tab=TABS)
    def look(self, tab: int) -> None:
        shown = _shown(self.tabs[tab])
        for _, note in self.holding().values():
            assert note in shown

    @invariant()
    def every_tab_shows_what_was_done(self) -> None:
        rules = [deed.rules for deed in self.deeds if deed.holds and deed.rules is not None][-1]
        said = self.holding()
        for review in self.tabs:
            now = _now(review)
            keys = [group.key for group in now.revision.groups]
            assert len(set(keys)) == len(keys)
            assert _rules(now) == rules
            assert {**{e.subject: (e.verdict, e.note) for e in now.state.rules.values()},
                    **{row: (e.verdict, e.note) for row, e in now.state.rows.items()}} == {
                subject[0]: words for subject, words in said.items()
            }  # fmt: skip
            assert len(now.carried.lost) + sum(map(len, now.carried.kept.values())) == len(
                now.state.rules
            )
            assert set(now.carried.kept) <= set(keys)
            notes = review.notes(now)
            for row in range(40):
                words = {word for (key, *rows), (word, _) in said.items()
                         if isinstance(key, str) and row in rows}  # fmt: skip
                words = {said[(row,)][0]} if (row,) in said else words
                mark = next((w for w in ("outlier", "inlier", "unsure") if w in words), "")
                if {"outlier", "inlier"} <= words:
                    mark = "contested"
                assert WORDS[now.judged.marks[row]] == mark
                written = [note for (key, *rows), (_, note) in said.items()
                           if isinstance(key, str) and row in rows and note]  # fmt: skip
                assert notes[row] == ("; ".join(written) or None)
        self.seen = [*self.seen, *now.revision.groups][-60:]


def _rows(review: Review, event: Any) -> list[int]:
    return review._said(event).rows.tolist()


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)


# --- what once went wrong -------------------------------------------------------------------------


@pytest.fixture
def review(tmp_path: Path) -> Any:
    made = Review(GIVEN, Store(tmp_path / "v.sqlite", "data"))
    made.learn("stair", {}, SETTINGS, quiet)
    yield made
    made.store.close()


def _outlying(review: Review) -> list[Group]:
    return [g for g in _now(review).revision.groups if g.is_judged and g.number is not None]


def _change(review: Review, low: float) -> Group:
    group = _outlying(review)[0]
    rule = _now(review).revision.summary.rules.rules[group.number]
    return review.edit("me", group.key, 0, Interval(rule.clauses[0].feature, low=low))


def test_every_change_can_be_undone(review: Review) -> None:
    """Three rule sets are kept in memory. The fourth was thrown out by its age, just when an undo
    had counted it anew, and every address of the page answered 500 until a restart."""
    texts = [_outlying(review)[0].text]
    texts += [_change(review, low).text for low in (1.5, 2.5, 3.5, 4.5, 5.5)]
    for text in reversed(texts[:-1]):
        review.store.undo("me")
        assert _outlying(review)[0].text == text
    for text in texts[1:]:
        review.store.redo("me")
        assert _outlying(review)[0].text == text


def test_rules_that_match_nothing_are_judged_one_by_one(review: Review) -> None:
    """They had one identity, that of no rows: one click judged them all, and the export had rules
    in it that nobody had looked at."""
    for group in _outlying(review):
        rule = _now(review).revision.summary.rules.rules[group.number]
        review.edit("me", group.key, 0, Interval(rule.clauses[0].feature, low=100.0))
    groups = _outlying(review)
    assert len(groups) >= 2 and not any(len(group.rows) for group in groups)
    review.decide("me", groups[0], "outlier", "", "")
    now = _now(review)
    assert pages.accepted_rules(review, now) == [groups[0].number]
    assert pages.side_of(review, now).progress.startswith(f"1 of {len(groups)} rules judged")
    assert str(taking.accepted(review, now).rules.rules[0]) == groups[0].text
    _change(review, 101.0)
    assert not pages.accepted_rules(review, _now(review)), "another rule, and no row of it was seen"


def test_a_rule_with_the_rows_of_another_has_a_verdict_of_its_own(review: Review) -> None:
    first, second, *_ = _outlying(review)
    rules = _now(review).revision.summary.rules.rules
    review.decide("me", first, "outlier", "", "")
    feature = rules[first.number].clauses[0].feature
    for group in (first, second):  # both match nothing of this attribute, or all of it
        key = next(g.key for g in _outlying(review) if g.number == group.number)
        review.edit("me", key, 0, Interval(feature, low=-5.0))
    first, second, *_ = _outlying(review)
    review.decide("me", second, "inlier", "", "")
    assert _now(review).verdict(first.key) is None


def test_notes_on_rules_that_are_gone_are_shown_and_taken_away(review: Review) -> None:
    """They stood neither on the page nor in the export once the rules were learned again."""
    first, second, *_ = _outlying(review)
    review.decide("me", first, "inlier", "known customers", "")
    review.decide("me", second, "outlier", "a ring", "")
    review.learn("me", {}, SETTINGS, quiet, relearn=True)
    now = _now(review)
    assert first.key not in [group.key for group in now.revision.groups]
    assert "known customers" in _shown(review)
    notes = taking.labelled(review, now)["stair_note"]
    assert set(notes[first.rows]) <= {"known customers", "known customers; a ring"}
    assert set(notes[second.rows]) <= {"a ring", "known customers; a ring"}
    assert "known customers" in taking.report(review, now).body.decode()


def test_a_change_by_hand_outlives_learning_again(review: Review) -> None:
    """The bound went back to the learned one without a word."""
    learned = _outlying(review)[0].text
    changed = _change(review, 7.25)
    changed = _change(review, 7.5)  # a change of a change is still one of what was learned
    review.learn("me", {}, SETTINGS, quiet)
    now = _now(review)
    assert changed.text in [group.text for group in now.revision.groups]
    assert learned not in [group.text for group in now.revision.groups]
    assert now.revision.edited == {changed.key}
    other = _outlying(review)[0]
    review.decide("me", other, "inlier", "", "")
    review.learn("me", {}, SETTINGS, quiet, relearn=True)  # so that it is not learned any more
    now = _now(review)
    texts = [group.text for group in now.revision.groups]
    assert changed.text in texts or now.revision.lost_edits == [changed.text]
    assert changed.text in _shown(review)


def test_the_counts_of_the_data_are_those_of_the_detector(review: Review) -> None:
    """The header counted the outliers that were left after learning again, and the list beside it
    those of the detector: "153 outliers" stood above "129 of 222 outliers"."""
    n_outliers = pages.n_outliers(review)
    for group in _outlying(review)[:1]:
        review.decide("me", group, "inlier", "", "")
    review.learn("me", {}, SETTINGS, quiet, relearn=True)
    again = Review(GIVEN, review.store)
    assert pages.n_outliers(again) == n_outliers == int(GIVEN.codes.sum())
    assert f"of {n_outliers} outliers" in pages.side_of(again, _now(again)).progress


def test_a_changed_mind_about_the_same_rows_is_one_verdict(review: Review) -> None:
    """A verdict goes over to a rule with other words for the same rows. Judged again, its rows
    must not be contested between what was said first and what is said now."""
    group = _outlying(review)[0]
    review.decide("me", group, "outlier", "", "")
    clause = _now(review).revision.summary.rules.rules[group.number].clauses[0]
    assert isinstance(clause, Interval)
    same = Interval(clause.feature, clause.low + 0.125, clause.high + 0.125)  # in the same gap
    changed = review.edit("me", group.key, 0, same)
    assert changed.key != group.key and np.array_equal(changed.rows, group.rows)
    now = _now(review)
    assert now.verdict(changed.key).verdict == "outlier"
    review.decide("me", changed, "inlier", "", "")
    assert {WORDS[m] for m in _now(review).judged.marks[group.rows]} == {"inlier"}
    review.store.undo("me")
    assert {WORDS[m] for m in _now(review).judged.marks[group.rows]} == {"outlier"}


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", " =", "＝"])
def test_a_note_is_no_formula_in_a_spreadsheet(tmp_path: Path, start: str) -> None:
    """A note that begins with "=" went into CSV as it was, and a spreadsheet ran it. What is in the
    table itself, and what is no formula, stays as it is."""
    note = f"{start}HYPERLINK(1)"
    data = {**_table(), note: np.array([note, "-5"] * 20, dtype=object)}
    given = _given(data)
    review = Review(given, Store(tmp_path / "v.sqlite", "data"))
    review.learn("stair", {}, SETTINGS, quiet)
    group = _outlying(review)[0]
    review.decide("me", group, "outlier", note, "")
    review.decide_rows("me", [group.rows[0]], "outlier", "-5", "")
    now = _now(review)
    table = taking.labelled(review, now, is_text=True)
    assert table["stair_note"][group.rows[0]] == "-5"
    assert set(table["stair_note"][group.rows[1:]]) == {f"'{note}"}
    assert table[note].tolist() == data[note].tolist()
    ours = [v for name in ("label", "rule", "review", "note") for v in table[f"stair_{name}"]]
    assert not [v for v in ours if v and v[0] in "=+@\t\r"]
    assert set(taking.labelled(review, now)["stair_note"][group.rows[1:]]) == {note}
    review.store.close()
