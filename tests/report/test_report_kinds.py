"""The report and the review of several kinds of outlier, on raw network flows."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows import NORMAL, flows
from stair import Source, Summary, summarize
from stair.data import write_table
from stair.export import load
from stair.intake import Columns, Statement, take_in
from stair.learn.distill import Further
from stair.learn.kinds import Kind
from stair.learn.learner import Learner
from stair.learn.methods import DistilledMethod
from stair.learn.validation import Check
from stair.report import report_of, words
from stair.review import pages, taking
from stair.review.desk import Opening, open_review
from stair.review.judged import Judgement, judge
from stair.review.remembered import _check
from stair.review.session import Review

N_ROWS = 2500


def quiet(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def table() -> dict[str, Any]:
    """Flows with the columns that the planted rules are about, ids, addresses and a few figures."""
    whole = flows(N_ROWS)
    return {name: whole[name] for name in (*list(whole)[:20], "Label")}


@pytest.fixture(scope="module")
def summary(table: dict[str, Any]) -> Summary:
    return summarize(Source(table, name="flows.csv"), labels="Label")


def test_every_count_is_that_of_a_plain_recount(summary: Summary) -> None:
    """Which rule decides, row by row: what is explained, mistaken, missed, a false alarm."""
    report = report_of(summary)
    rules = summary.rules
    assigned = rules.assign(summary._values).tolist()
    labels = [rules.classes[code] for code in summary._codes.tolist()]
    decided = [rules[k].label if k >= 0 else rules.default for k in assigned]
    pairs = list(zip(decided, labels, strict=True))
    outliers = [(by, own) for by, own in pairs if own != NORMAL]
    assert report.n_outliers == len(outliers)
    assert report.missed is not None
    assert report.missed.rows == sum(by == NORMAL for by, _ in outliers)
    assert report.n_mistaken == sum(by not in (own, NORMAL) for by, own in outliers)
    assert report.false_alarms == sum(by != NORMAL and own == NORMAL for by, own in pairs)
    explained = Counter(k + 1 for k, (by, own) in zip(assigned, pairs, strict=True) if by == own)
    assert dict(report.explained_by) == {k: n for k, n in explained.items() if k}
    covered = rules.covers(summary._values)
    for view in report.rules:
        own = [k == view.number - 1 for k in assigned]
        assert view.rows == sum(own)
        assert view.hits == sum(
            y == view.label for y, mine in zip(labels, own, strict=True) if mine
        )
        assert view.rows + view.taken == covered[:, view.number - 1].sum()
        assert 0 <= view.only <= view.hits


def test_the_report_names_every_kind(summary: Summary) -> None:
    """It said "no rules give 85% of them their class". Rules are numbered down the page, under the
    name of their kind."""
    report = report_of(summary)
    said = words.headline(report)
    assert re.match(
        rf"\d+ of {N_ROWS:,} rows are outliers of 6 kinds; \w+ short rules explain", said
    )
    html = summary.to_html()
    body = html.split("<body>")[1].split("<script>")[0]
    assert "of them their class" not in body
    numbers = [int(n) for n in re.findall(r'id="rule-(\d+)"', body)]
    assert numbers == list(range(1, len(summary.rules) + 1))
    for kind in report.kinds:
        heading = body.index(f"<h3>{kind.label} <span")
        for rule in (rule for rule in report.rules if rule.label == kind.label):
            assert heading < body.index(f'id="rule-{rule.number}"')
    assert f"{summary.rules.n_bounds} bounds" in body
    assert "on rows kept aside" in body
    assert "What length buys" in body
    for suspect in summary.suspects:
        assert suspect.split("(")[0][5:] in body


def test_what_is_not_reached_falls_or_comes_next_is_told(summary: Summary) -> None:
    """A kind without rules is named with its best, a rule that falls apart has the reason on its
    card, and one more rule is offered."""
    assert summary.check is not None
    first, last = summary.rules[0], summary.kinds[-1]
    again = (0.25, *summary.check.found_again[1:])
    changed = replace(
        summary,
        check=replace(summary.check, score=0.1, found_again=again),
        kinds=(*summary.kinds[:-1], Kind(last.label, 40, 0.0, False, (first,), 0.71)),
    )
    html = changed.to_html()
    assert "They describe these rows only" in html
    assert f"{last.label} (40 rows): no rules above the floor; the best (F1 0.71)" in html
    card = html[html.index('id="rule-1"') : html.index('id="rule-2"')]
    assert "falls apart" in card
    assert "find 25% of its" in card
    assert html.count('class="chip falling"') == 1
    assert "<dd>5 of 6</dd>" in html
    more = replace(summary, further=Further(first, 12, 0.97))
    assert "One more rule, length" in more.to_html()
    assert "One more rule, length" in more._repr_html_()
    # A summary whose rows were counted elsewhere tells the same.
    counted = replace(changed, _rows=np.empty(0, np.intp), settings={"engine": "duckdb"})
    page = counted.to_html()
    assert "They describe these rows only" in page
    assert "no rules above the floor; the best (F1 0.71)" in page
    assert "<path" in page  # of the frontier
    assert "style=" not in page  # which its own policy would refuse


# --- the review -------------------------------------------------------------------------------


@given(
    st.lists(st.integers(-1, 3), min_size=1, max_size=10),
    st.lists(
        st.tuples(
            st.sampled_from(["outlier", "inlier", "unsure"]),
            st.sets(st.integers(0, 9)),
            st.integers(1, 3),
        ),
        max_size=4,
    ),
    st.dictionaries(
        st.integers(0, 9), st.tuples(st.sampled_from(["outlier", "inlier", "unsure"]),
                                     st.none() | st.integers(1, 3)), max_size=3,
    ),
)  # fmt: skip
def test_labels_of_kinds_after_the_review_are_those_of_the_slow_obvious_way(
    codes: list[int], groups: list[Any], single: dict[int, Any]
) -> None:
    """Class 0 is normal, 1 to 3 are kinds of outlier, row by row."""
    n = len(codes)
    said = [
        Judgement(word, np.array(sorted(r for r in rows if r < n), dtype=np.intp), label)
        for word, rows, label in groups
    ]
    alone = {row: word for row, (word, _) in single.items() if row < n}
    kinds = {row: kind for row, (_, kind) in single.items() if row < n and kind is not None}
    found = judge(np.array(codes, dtype=np.int32), said, alone, None, 0, kinds)
    for row, code in enumerate(codes):
        about = [(each.word, each.label) for each in said if row in each.rows.tolist()]
        words_said = {word for word, _ in about}
        if row in alone:
            words_said = {alone[row]}
        given_kinds = [label for word, label in about if word == "outlier"]
        if {"outlier", "inlier"} <= words_said or (words_said == {"unsure"}):
            expected = -1
        elif "inlier" in words_said:
            expected = 0
        elif "outlier" in words_said:
            own = code if code in given_kinds or not given_kinds else given_kinds[-1]
            expected = own if own != 0 else kinds.get(row, -1)
        else:
            expected = code
        assert found.codes[row] == expected


@pytest.fixture(scope="module")
def opened(table: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("review") / "flows.csv"
    write_table(path, table)
    wanted = Opening(path, label="Label", method="distilled").check()
    review = open_review(wanted, None, quiet)
    yield review, wanted
    review.store.close()


def test_a_review_goes_kind_by_kind(opened: Any) -> None:
    review, wanted = opened
    now = review.now()
    revision = now.revision
    side = pages.side_of(review, now)
    labels = [kind for kind, _ in side.parts]
    assert len(labels) == len(set(labels)) and NORMAL not in labels
    assert side.progress.endswith(f"{pages.n_outliers(review):,} outliers")
    assert pages.names_of(revision.finds_outliers)["inlier"] == "False alarm"
    # A row is in one group: that of the rule that decides about it.
    rows = np.concatenate([group.rows for group in revision.groups if group.number is not None])
    assert len(rows) == len(np.unique(rows))
    assert "hold" in side.told.holds
    assert revision.told == side.told
    panel = pages.panel(review, now, revision.groups[0])
    assert labels[0] in panel
    assert "of its kind" in panel
    # What learning found out is there when the review is opened another day.
    again = open_review(wanted, None, quiet)
    try:
        told = again.now().revision  # type: ignore[union-attr]
        assert told.summary.check == revision.summary.check
        assert told.told == revision.told
        assert [k.label for k in told.kinds] == [k.label for k in revision.kinds]
        assert [k.nearest for k in told.kinds] == [k.nearest for k in revision.kinds]
    finally:
        again.store.close()


def test_the_columns_of_the_rule_come_first(opened: Any) -> None:
    """In a wide table the rule's own column was off the screen."""
    review, _ = opened
    now = review.now()
    for group in now.revision.groups:
        if group.number is None:
            continue
        own = pages.own_columns(now, group)
        assert set(own) == set(now.revision.summary.rules[group.number].features)
        page = review.rows.page(group.rows, first=own)
        assert list(page.columns[: len(own)]) == own
        assert sorted(page.columns) == sorted(review.given.frame.columns)
        plain = review.rows.page(group.rows)
        for cells, before in zip(page.cells, plain.cells, strict=True):
            assert dict(zip(page.columns, cells, strict=True)) == dict(
                zip(plain.columns, before, strict=True)
            )
        asked = {"sort": "", "descending": False, "search": ""}
        html = pages.rows(review, now, group, page, asked)
        assert len(re.findall(r'<th scope="col" class="(n )?own"', html)) == len(own)


def test_verdicts_on_kinds_are_taken_away_and_learned_from(opened: Any, tmp_path: Path) -> None:
    """Two kinds are accepted and one is a false alarm: its rows are normal from now on, and rules
    that are learned again know nothing of it."""
    review, wanted = opened
    now = review.now()
    groups = [group for group in now.revision.groups if group.number is not None]
    classes = review.given.verdict.classes
    for group, verdict in zip(groups[:3], ("outlier", "outlier", "inlier"), strict=True):
        review.decide("me", group, verdict, "", f"{group.key}{verdict}")
    wrong = groups[2]
    # A normal row that a rule takes for an outlier is said to be one: it is of the rule's kind.
    normal = [r for r in groups[1].rows if review.given.verdict.codes[r] != groups[1].label]
    now = review.now()
    rejected = classes[wrong.label]
    assert (now.judged.codes[wrong.rows] == review.given.verdict.negative).all()
    assert (now.judged.codes[groups[0].rows] == groups[0].label).all()
    assert all(now.judged.codes[row] == groups[1].label for row in normal)
    own = taking.labelled(review, now)
    assert set(own["stair_review"][wrong.rows].tolist()) == {"inlier"}
    assert set(own["stair_label"].tolist()) == set(classes)
    saved = taking.accepted(review, now)
    assert {rule.label for rule in saved.rules} == {classes[g.label] for g in groups[:2]}
    path = tmp_path / "accepted.json"
    path.write_text(json.dumps(json.loads(_json(review, now))), "utf-8")
    assert load(path).rules.default == NORMAL
    assert f'<h3 class="kind-name">{classes[groups[0].label]}'.encode() in (
        taking.report(review, now).body
    )
    learned = review.learn("me", wanted.request, now.revision.settings, quiet, relearn=True)
    assert learned.summary.kinds
    left = {kind.label for kind in learned.summary.kinds}
    missed = np.count_nonzero(learned.given.verdict.codes == wrong.label)
    assert (rejected in left) == (missed > 0)


def _json(review: Review, now: Any) -> str:
    return taking.rules(review, now, "json", "duckdb", "query").body.decode()


def test_a_rule_of_a_kind_can_be_changed(table: dict[str, Any], tmp_path: Path) -> None:
    """A changed rule has not been checked, and the review says so; its kind is counted anew."""
    path = tmp_path / "flows.csv"
    write_table(path, table)
    review = open_review(Opening(path, label="Label", negative=NORMAL).check(), None, quiet)
    try:
        now = review.now()
        assert now is not None
        group = next(g for g in now.revision.groups if g.number is not None)
        assert group.number is not None
        rule = now.revision.summary.rules[group.number]
        clause = replace(rule.clauses[0], missing=not rule.clauses[0].missing)
        preview = review.with_clause(now.revision, group, 0, clause)
        assert str(rule.label) in pages.preview(now.revision, group, preview).sentence
        review.edit("me", group.key, 0, clause)
        after = review.now()
        assert after is not None
        assert after.revision.summary.check is None
        assert "a rule was changed by hand" in after.revision.told.holds
        assert {k.label for k in after.revision.kinds} == {k.label for k in now.revision.kinds}
    finally:
        review.store.close()


def test_rules_of_kinds_from_a_file_are_reviewed(
    summary: Summary, table: Any, tmp_path: Path
) -> None:
    """With a label and without: then the rules themselves say of which kind a row is."""
    path, rules = tmp_path / "flows.csv", tmp_path / "rules.json"
    write_table(path, table)
    summary.to_json(rules)
    for number, label in enumerate(("Label", None)):
        wanted = Opening(path, rules=rules, label=label).check()
        review = open_review(wanted, tmp_path / f"{number}.sqlite", quiet)
        try:
            now = review.now()
            assert now is not None
            assert now.revision.finds_outliers
            assert pages.side_of(review, now).parts[0][0] == str(summary.rules[0].label)
            pages.panel(review, now, now.revision.groups[0])
        finally:
            review.store.close()


def test_a_kind_that_a_review_has_emptied_is_no_kind(table: dict[str, Any]) -> None:
    """Its rows are all false alarms, so nobody is told that it has too few rows."""
    source = Source(table, name="flows", time_parts=False)
    statement = Statement("Label", negative=NORMAL, has_kinds=True)
    given = take_in(source, statement, Columns(), quiet)
    gone = given.verdict.classes.index("Heartbleed")
    codes = np.where(given.codes == gone, given.verdict.negative, given.codes)
    changed = given.relabelled(codes.astype(np.int32), "reviewed")
    learn = Learner(DistilledMethod(effort="fast"), changed.schema, changed.verdict)
    learned = learn(changed.values, changed.codes)
    assert "Heartbleed" not in {kind.label for kind in learned.kinds}


def test_the_check_of_a_damaged_file_is_refused() -> None:
    found = {"scores": [0.5], "score": 0.5, "chance": 0.1, "learned": 0.9, "found_again": [1.0],
             "of_kinds": []}  # fmt: skip
    assert _check(found, 1, 0) == Check((0.5,), 0.5, 0.1, 0.9, (1.0,), ())
    for name, value in (("score", "x"), ("scores", []), ("found_again", [1.0, 1.0]),
                        ("chance", float("nan"))):  # fmt: skip
        with pytest.raises(ValueError, match=r"check is of other rules|no number"):
            _check({**found, name: value}, 1, 0)


def test_kinds_with_few_rows_are_told_and_not_checked() -> None:
    """Six rows are enough for rules, and too few to keep two of them aside: that was an error about
    kinds without rows, raised by a fold of the check."""
    X = np.random.default_rng(0).normal(size=(212, 3))
    X[200:206, 0] += 8
    X[206:, 1] += 8
    y = np.array(["none"] * 200 + ["a"] * 6 + ["b"] * 6)
    found = summarize(X, labels=y)
    assert found.floor_reached
    assert found.check is None
    assert "Not checked on rows kept aside: no kind of outlier has rows enough" in found.to_text()
