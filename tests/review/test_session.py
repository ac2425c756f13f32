"""What decisions mean for rows, clauses as forms, and rules that change under verdicts."""

from __future__ import annotations

import base64
import math
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stair.data import write_table
from stair.data.source import Source
from stair.errors import StairError
from stair.intake import Columns, Intake, Statement, take_in
from stair.review import pages
from stair.review.desk import Opening, open_review
from stair.review.forms import Form, clause_of, form_of
from stair.review.jobs import Cancelled, Job, Jobs
from stair.review.judged import WORDS, Judgement, judge, rows_from_text, rows_to_text
from stair.review.session import Review
from stair.review.store import Store
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period

SETTINGS = {"method": "stair", "min_score": 0.8, "max_rule_length": 3, "random_state": 0}


def quiet(_: str) -> None:
    pass


# --- what decisions mean ------------------------------------------------------------------------


@given(st.sets(st.integers(0, 2**31)))
def test_rows_survive_being_text(rows: set[int]) -> None:
    ordered = np.array(sorted(rows), dtype=np.intp)
    n_rows = max(rows, default=-1) + 1
    assert np.array_equal(rows_from_text(rows_to_text(ordered), n_rows), ordered)
    if rows:
        with pytest.raises(ValueError, match="no rows of the table"):
            rows_from_text(rows_to_text(ordered), n_rows - 1)


def test_rows_in_a_damaged_file_take_no_memory() -> None:
    """A hundred megabytes of zeros in a hundred kilobytes, unpacked before they were looked at."""
    packer = zlib.compressobj(9)
    zeros = bytes(10_000_000)
    packed = b"".join([*(packer.compress(zeros) for _ in range(10)), packer.flush()])
    bomb = base64.b85encode(packed).decode()
    tracemalloc.start()
    with pytest.raises(ValueError, match="no rows of the table"):
        rows_from_text(bomb, 1000)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


@st.composite
def decisions(draw: st.DrawFn) -> tuple[list[int], list[tuple[str, set[int]]], dict[int, str]]:
    n = draw(st.integers(1, 12))
    codes = draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    word = st.sampled_from(["outlier", "inlier", "unsure"])
    groups = draw(st.lists(st.tuples(word, st.sets(st.integers(0, n - 1))), max_size=5))
    single = draw(st.dictionaries(st.integers(0, n - 1), word, max_size=3))
    return codes, groups, single


@given(decisions())
def test_labels_after_the_review_are_those_of_the_slow_obvious_way(
    case: tuple[list[int], list[tuple[str, set[int]]], dict[int, str]],
) -> None:
    codes, groups, single = case
    said = [Judgement(word, np.array(sorted(rows), dtype=np.intp), 1) for word, rows in groups]
    found = judge(np.array(codes, dtype=np.int32), said, single, 1)
    for row, code in enumerate(codes):
        words = {word for word, rows in groups if row in rows}
        if row in single:
            words = {single[row]}
        if {"outlier", "inlier"} <= words:
            mark, label = "contested", -1
        elif "outlier" in words:
            mark, label = "outlier", 1
        elif "inlier" in words:
            mark, label = "inlier", 0
        elif "unsure" in words:
            mark, label = "unsure", -1
        else:
            mark, label = "", code
        assert WORDS[found.marks[row]] == mark
        assert found.codes[row] == label
    assert found.by_hand == len(single)
    assert found.by_rules == len(set().union(*(rows for _, rows in groups)))
    assert found.n_rows == len(set().union(single, *(rows for _, rows in groups)))


# --- clauses as forms ---------------------------------------------------------------------------

NUMBERS = np.array([1.0, 2.0, math.nan, 1e300, -5.5])
TIMES = np.array(["2024-01-01", "2024-05-05T10:30:00.25", "NaT"], dtype="datetime64[us]")
WORDS_SEEN = np.array(["a", "b", None, "<c>", "b"], dtype=object)

finite = st.floats(allow_nan=False, allow_infinity=False)
moments = st.integers(-(10**15), 4 * 10**15).map(lambda t: np.datetime64(t, "us"))
terms = st.text(min_size=1).map(str.strip).filter(bool)
clauses = st.one_of(
    st.builds(
        lambda a, b, m: Interval("f", min(a, b), max(a, b), m), finite, finite, st.booleans()
    ),
    st.builds(lambda a, m: Interval("f", low=a, missing=m), finite, st.booleans()),
    st.builds(lambda a, m: Interval("f", high=a, missing=m), finite, st.booleans()),
    st.builds(
        lambda a, b, m: Period("f", min(a, b), max(a, b), m), moments, moments, st.booleans(),
    ),
    st.builds(
        lambda v, n, m: Among("f", tuple(v), n, m),
        st.sets(st.sampled_from(["a", "b", "<c>", "z"]), min_size=1), st.booleans(), st.booleans(),
    ),
    st.builds(Mentions, st.just("f"), terms, st.booleans()),
)  # fmt: skip


def _values(clause: Clause) -> np.ndarray:
    if isinstance(clause, Interval):
        return NUMBERS
    return TIMES if isinstance(clause, Period) else WORDS_SEEN


def _form(fields: dict[str, list[str]]) -> Form:
    return Form([(name, value) for name, values in fields.items() for value in values])


@given(clauses)
def test_a_form_that_nobody_changed_gives_the_clause_back(clause: Clause) -> None:
    """What is shown is what is stored: no bound moves by being looked at."""
    values = _values(clause)
    form = form_of(clause, 0, values)
    if isinstance(clause, Interval | Period) and clause.only_missing:
        return  # two equal bounds: no form is offered that keeps them
    fields = {"low": [form.low], "high": [form.high], "term": [form.term],
              "negated": ["1" if form.negated else "0"],
              "value": [choice.name for choice in form.choices if choice.is_ticked]}  # fmt: skip
    if form.missing:
        fields["missing"] = ["1"]
    assert clause_of(clause, _form(fields), values) == clause


@pytest.mark.parametrize(
    ("clause", "fields", "says"),
    [
        (Interval("f", 1, 2), {"low": ["3"], "high": ["2"]}, "no number is above 3"),
        (Interval("f", 1, 2), {"low": ["1e999"]}, "is no number"),
        (Interval("f", 1, 2), {"low": ["1;DROP"]}, "is no number"),
        (Interval("f", 1, 2), {"missing": ["1"]}, "matches every row"),
        (Period("f"), {"low": ["yesterday"]}, "is no time"),
        (Among("f", ("a",)), {"negated": ["0"]}, "no value is ticked"),
        (Among("f", ("a",)), {"value": ["99", "-1", "x", "²", "9" * 5000]}, "no value is ticked"),
        (Interval("f", 1, 2), {"low": ["9" * 5000]}, "is no number"),
        (Interval("f", 1, 2), {"low": ["nan"]}, "is no number"),
        (Period("f"), {"low": ["9" * 5000]}, "is no time"),
        (Period("f"), {"low": ["now"]}, "is no time"),
        (Period("f"), {"low": ["2024-02-30"]}, "is no time"),
        (Period("f"), {"low": ["2024-01-01T00:00+02:00"]}, "is no time"),
        (Mentions("f", "a"), {"term": ["  "]}, "there is no word"),
    ],
)
def test_a_bad_form_is_one_sentence(clause: Clause, fields: dict, says: str) -> None:
    with pytest.raises(StairError, match=says):
        clause_of(clause, _form(fields), _values(clause))


def test_a_bound_beyond_what_floats_can_tell_apart_is_exact() -> None:
    values = np.array([2**60 + k for k in range(5)] + [None], dtype=object)
    clause = clause_of(Interval("f", 1, 2), _form({"low": [str(2**60 + 2)]}), values)
    assert clause == Interval("f", 2**60 + 2)
    assert clause.covers(values).tolist() == [False, False, False, True, True, False]
    assert form_of(clause, 0, values).low == str(2**60 + 2)


# --- rules under verdicts -------------------------------------------------------------------------


def _table(n: int = 400) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=n).round(2), rng.normal(size=n).round(2)
    return {"x": x, "z": z, "y": ((x > 1.2) | (z < -1.5)).astype(np.int64)}


def _given(data: dict[str, np.ndarray], labels: str = "y") -> Intake:
    source = Source(data, name="t", time_parts=False)
    return take_in(source, Statement(labels), Columns(), quiet)


@pytest.fixture
def review(tmp_path: Path):
    made = Review(_given(_table()), Store(tmp_path / "v.sqlite", "data"))
    made.learn("stair", {}, SETTINGS, quiet)
    yield made
    made.store.close()


def test_a_revision_from_the_store_is_the_one_that_was_learned(review: Review) -> None:
    """Another process counts the rules anew and finds the same figures and groups."""
    now = review.now()
    other = Review(review.given, review.store)
    again = other.now()
    assert now is not None and again is not None
    assert again.revision is not now.revision
    assert [g.key for g in again.revision.groups] == [g.key for g in now.revision.groups]
    assert again.revision.summary.score == now.revision.summary.score
    assert again.revision.summary.evidence == now.revision.summary.evidence


def test_an_undone_set_of_rules_comes_back(review: Review) -> None:
    now = review.now()
    assert now is not None
    group = next(g for g in now.revision.groups if g.number is not None)
    rule = now.revision.summary.rules.rules[group.number]
    review.edit("me", group.key, 0, Interval(rule.clauses[0].feature, low=2.0))
    changed = review.now()
    assert changed is not None and changed.revision.find(group.key) is None
    assert changed.revision.edited
    review.store.undo("me")
    back = review.now()
    assert back is not None and back.revision.event == now.revision.event


def test_verdicts_of_the_second_round_do_not_change_the_labels_of_the_first(
    review: Review,
) -> None:
    """Rules learned again keep the labels of the moment; a later verdict waits for its turn."""
    first = review.now()
    assert first is not None
    outlying = [g for g in first.revision.groups if g.is_judged and g.number is not None]
    review.decide("me", outlying[0], "inlier", "", "")
    review.learn("me", {}, SETTINGS, quiet, relearn=True)
    second = review.now()
    assert second is not None
    n_outliers = second.revision.summary.n_outliers
    assert n_outliers < first.revision.summary.n_outliers
    for group in second.revision.groups:
        if group.is_judged:
            review.decide("me", group, "unsure", "", "")
    fresh = Review(review.given, review.store).now()
    assert fresh is not None and fresh.revision.summary.n_outliers == n_outliers


def test_many_classes_are_right_or_wrong(tmp_path: Path) -> None:
    """Nobody says what a wrong group is instead, so it is left out when rules are learned again."""
    data = _table()
    data["y"] = np.array(["low", "mid", "high"], dtype=object)[np.digitize(data["x"], [-0.5, 0.5])]
    review = Review(_given(data), Store(tmp_path / "v.sqlite", "data"))
    review.learn("stair", {}, SETTINGS, quiet)
    now = review.now()
    assert now is not None
    assert all(group.is_judged for group in now.revision.groups)
    review.decide("me", now.revision.groups[0], "inlier", "", "")
    review.decide("me", now.revision.groups[1], "outlier", "", "")
    now = review.now()
    assert now is not None
    assert "2 of" in pages.side_of(review, now).progress
    assert "Wrong" in pages.panel(review, now, now.revision.groups[0])
    lost = now.judged.codes[now.revision.groups[0].rows]
    assert (lost == -1).all()
    review.store.close()


@pytest.mark.parametrize("method", ["local", "refined", "cart"])
def test_every_method_can_be_judged_edited_and_taken(tmp_path: Path, method: str) -> None:
    from stair.review import taking

    path = tmp_path / "t.csv"
    write_table(path, _table())
    review = open_review(Opening(path, label="y", method=method, min_score=0.98), None, quiet)
    now = review.now()
    assert now is not None
    groups = [g for g in now.revision.groups if g.is_judged and g.number is not None]
    for group in groups:
        review.decide("me", group, "outlier", "", "")
    now = review.now()
    assert now is not None
    saved = taking.accepted(review, now)
    assert len(saved.rules) == len(groups)
    predicted = saved.rules.predict(review.given.values)
    covered = np.unique(np.concatenate([g.rows for g in groups]))
    assert np.array_equal(np.flatnonzero(predicted == "outlier"), covered)
    if method == "local":  # counted from these rules, not carried along from the learned ones
        assert saved.rules.routing.routed == saved.rules.routing.assigned == saved.facts["score"]
        assert "routed" in now.revision.headline and "assigned" in now.revision.headline
    rules = now.revision.summary.rules.rules
    last = next(g for g in reversed(groups) if rules[g.number].clauses)  # not a whole partition
    rule = rules[last.number]
    changed = review.edit("me", last.key, 0, Interval(rule.clauses[0].feature, low=3.5))
    assert len(changed.rows) < len(last.rows)
    now = review.now()
    assert now is not None and now.revision.edited == {changed.key}
    review.store.close()


# --- work in the background -----------------------------------------------------------------------


def test_the_latest_job_wins() -> None:
    jobs = Jobs()
    seen: list[str] = []

    def endless(say) -> None:
        try:
            while True:
                say("still at it")
        except Cancelled:
            seen.append("stopped")
            raise

    first = jobs.start("first", endless)
    second = jobs.start("second", lambda _: seen.append("done"))
    while not second.is_done:
        pass
    assert first.is_done and not first.error
    assert seen == ["stopped", "done"] or seen == ["done"]
    assert jobs.current is second and not jobs.is_busy


def test_rules_that_were_stopped_are_not_kept(review: Review) -> None:
    """Stop came while the rules were counted, and they were there all the same a moment later."""
    event = review.now().revision.event
    job = Job("learning")

    def say(text: str) -> None:
        job.say(text)
        job.wanted = text != "counting"

    with pytest.raises(Cancelled):
        review.learn("me", {}, SETTINGS, say)
    assert review.now().revision.event == event


@pytest.mark.parametrize("method", ["distilled", "stair", "refined", "local", "id3", "cart"])
def test_stop_ends_every_method(review: Review, method: str) -> None:
    """Wherever it is when it next says how it goes: nothing on the way swallows that."""
    said: list[str] = []

    def count(text: str) -> None:
        said.append(text)

    settings = {**SETTINGS, "method": method, "max_rule_length": 100_000}
    review.learn("me", {}, settings, count)
    for stop in {0, len(said) // 2, len(said) - 1}:
        job, left = Job("learning"), [stop]

        def say(text: str, job: Job = job, left: list[int] = left) -> None:
            left[0] -= 1
            job.wanted = left[0] >= 0
            job.say(text)

        events = review.store.last()
        with pytest.raises(Cancelled):
            review.learn("me", {}, settings, say)
        assert review.store.last() == events


def test_what_goes_wrong_in_a_job_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = Jobs()
    for error, says in ((StairError("no such column"), "no such column"),
                        (MemoryError(), "not enough memory"),
                        (ZeroDivisionError(), "should not")):  # fmt: skip

        def fail(_say, error: BaseException = error) -> None:
            raise error

        job = jobs.start("failing", fail)
        while not job.is_done:
            pass
        assert says in job.error
    assert "ZeroDivisionError" in capsys.readouterr().err
