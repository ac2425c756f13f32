"""Exceptions learned from rows that a person called false alarms: in Python, in the command and on
the review's demo, through every way on which rules travel."""

from __future__ import annotations

import functools
import itertools
import json
import math
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stair
from command import run
from databases import postgres_dsn
from stair import FloorNotReached, StairError, Summary, learn_exceptions
from stair.data import write_table
from stair.demo import payments
from stair.export.json import Rulebook
from stair.learn.exceptions import Aim
from stair.learn.exceptions import learn_exceptions as learn
from stair.review import pages, taking
from stair.review.desk import Opening, open_review
from stair.review.session import Review
from stair.rules.clauses import Interval
from stair.rules.match import first_covering
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema, Values
from strategies import examples


@functools.cache
def demo() -> Summary:
    method = stair.DistilledStair(min_score=0.9, max_rule_length=3)
    return stair.summarize(payments(), labels="flagged", method=method, validate=0)


def quiet(_: str) -> None:
    pass


# --- the demo, through every way on which rules travel ------------------------------------------


def frame() -> pd.DataFrame:
    return pd.DataFrame(payments())


def ask_all(rules: Summary | Rulebook) -> dict[str, list[tuple[Any, int, int]]]:
    """The label, the rule and the exception of each row of the demo, by every way there is."""
    data = frame().convert_dtypes(dtype_backend="numpy_nullable")
    data["place"] = range(len(data))
    wanted = "SELECT stair_label, coalesce(stair_rule, 0), coalesce(stair_exception, 0) FROM"
    found: dict[str, Any] = {}
    plain = frame()
    with duckdb.connect() as con:
        con.register("plain", plain)
        query = rules.to_sql("plain").rstrip().rstrip(";")
        found["duckdb"] = con.execute(f"{wanted} ({query}\n) AS s").fetchall()
    with sqlite3.connect(":memory:") as lite:
        texts = plain.assign(paid_at=plain["paid_at"].astype(str), place=range(len(plain)))
        texts.to_sql("payments", lite, index=False)
        query = rules.to_sql("payments", dialect="sqlite").rstrip().rstrip(";")
        found["sqlite"] = lite.execute(f"{wanted} ({query}\n) AS s ORDER BY place").fetchall()
    spaces: dict[str, dict[str, Any]] = {}
    for name in ("python", "pandas", "polars"):
        space = spaces[name] = {"__name__": "exported"}
        text = getattr(rules, f"to_{name}")()
        exec(compile(text, f"{name}.py", "exec", dont_inherit=True), space)
    rows = plain.astype(object).where(plain.notna(), None).to_dict("records")
    own = spaces["python"]
    found["python"] = [
        (own["label"](row), own["rule_number"](row), own["exception_number"](row)) for row in rows
    ]
    own = spaces["pandas"]
    answers = (own[name](plain).tolist() for name in ("label", "rule_number", "exception_number"))
    found["pandas"] = list(zip(*answers, strict=True))
    own = spaces["polars"]
    asked = [own[name].alias(name) for name in ("LABEL", "RULE_NUMBER", "EXCEPTION_NUMBER")]
    found["polars"] = pl.from_pandas(plain).select(asked).rows()
    return found


def by_rules(rules: RuleSet) -> list[tuple[Any, int, int]]:
    matches = rules.matches(payments())
    labels = rules.labels_of(matches.numbers)
    lifted = first_covering(matches.lifted)
    return list(zip(labels.tolist(), (matches.numbers + 1).tolist(), (lifted + 1).tolist(),
                    strict=True))  # fmt: skip


@settings(max_examples=examples(12), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), st.sampled_from([1.0, 0.7, 0.3]), st.integers(0, 3))
def test_rows_of_a_rule_called_false_alarms_are_excepted_everywhere(
    number: int, share: float, seed: int
) -> None:
    """At least 90% of what exceptions can reach, and no outlier that stays; and the labels are the
    same after each way."""
    before = demo()
    own = before.matching_rows(number)
    chosen = np.random.default_rng(seed).permutation(own)[: math.ceil(share * len(own))]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", FloorNotReached)
        after = learn_exceptions(before, false_alarms=chosen)
    lifted = after.excepted_rows()
    stay = np.setdiff1d(np.flatnonzero(before.is_outlier()), chosen)
    assert not np.isin(stay, lifted).any()
    assert said or np.isin(chosen, lifted).mean() >= 0.9
    assert (
        not said or share < 1.0
    )  # a part of a rule's rows, chosen by chance, has little in common
    if not after.rules.exceptions:
        return
    expected = by_rules(after.rules)
    assert len({label for label, _, _ in expected}) == 2
    saved = stair.export.from_json(after.to_json())
    assert saved.rules == after.rules
    for name, found in ask_all(saved).items():
        assert list(map(tuple, found)) == expected, name


def test_rows_of_a_rule_in_postgres() -> None:
    import psycopg

    types = {"paid_at": "timestamp", "amount": "double precision", "hour": "double precision",
             "flagged": "integer"}  # fmt: skip
    data = frame()
    columns = ", ".join(f'"{name}" {types.get(name, "text")}' for name in data.columns)
    rows = data.astype(object).where(data.notna(), None).itertuples(index=False, name=None)
    with psycopg.connect(postgres_dsn()) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE payments ({columns}, place serial)".encode())
        names = ", ".join(f'"{name}"' for name in data.columns)
        with cursor.copy(f"COPY payments ({names}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(tuple(v.to_pydatetime() if isinstance(v, pd.Timestamp) else v
                                     for v in row))  # fmt: skip
        for number in range(1, 5):
            after = learn_exceptions(demo(), false_alarms=demo().matching_rows(number))
            query = after.to_sql("payments", dialect="postgres").rstrip().rstrip(";")
            plain = psycopg.ClientCursor(connection)
            plain.execute(
                f"SELECT stair_label, coalesce(stair_rule, 0), coalesce(stair_exception, 0) "
                f"FROM ({query}\n) AS s ORDER BY place".encode()
            )
            assert plain.fetchall() == by_rules(after.rules)


# --- on the review's page -----------------------------------------------------------------------


@pytest.fixture
def review(tmp_path: Path) -> Review:
    write_table(tmp_path / "payments.csv", payments())
    opened = Opening(tmp_path / "payments.csv", label="flagged", min_score=0.9, max_rule_length=3)
    return open_review(opened, None, quiet)


def test_a_rule_called_a_false_alarm_becomes_exceptions(review: Review) -> None:
    now = review.now()
    assert now is not None
    rules = [group for group in now.revision.groups if group.number is not None]
    bare = now.revision.summary.rules
    review.decide("ana", rules[1], "inlier", "", "1")
    for k in (0, 2, 3):
        review.decide("ana", rules[k], "outlier", "", f"1{k}")
    now = review.now()
    assert now is not None
    assert pages.side_of(review, now).alarms.wants
    assert "Learn exceptions from 60 false alarms" in pages.render(
        "side.html", side=pages.side_of(review, now), current="", oob=False, can_choose=False,
        names=pages.names_of(True), headline=now.revision.headline,
    )  # fmt: skip
    review.find_exceptions(quiet)
    assert "59 of 60 false alarms" in pages.excepting(review, now)
    assert not now.revision.summary.rules.exceptions  # a look changes nothing
    review.take_exceptions("ana")
    now = review.now()
    assert now is not None
    summary = now.revision.summary
    lifted = summary.excepted_rows()
    assert np.isin(rules[1].rows, lifted).mean() >= 0.9
    for k in (0, 2, 3):
        assert not np.isin(rules[k].rows, lifted).any()
    assert [group.key for group in now.revision.groups if group.number is not None] == [
        group.key for group in rules
    ]  # the verdicts stay
    assert [now.verdict(group.key).verdict for group in rules] == [  # type: ignore[union-attr]
        "outlier", "inlier", "outlier", "outlier"
    ]  # fmt: skip
    assert not pages.side_of(review, now).alarms.wants
    assert "taken by exceptions" in pages.panel(review, now, now.revision.groups[1])
    saved = taking.accepted(review, now)
    assert saved.rules.exceptions
    assert len(saved.rules) == 3
    for kind in ("json", "sql", "text", "python", "pandas", "polars", "markdown", "pmml", "onnx"):
        assert taking.rules(review, now, kind, "duckdb", "query").body
    table = taking.labelled(review, now)
    words = [word for word in table["stair_exception"].tolist() if word is not None]
    assert len(words) == len(lifted)
    assert "Exceptions" in bytes(taking.report(review, now).body).decode()
    fresh = Review(review.given, review.store).now()
    assert fresh is not None
    assert fresh.revision.summary.rules == summary.rules
    review.store.undo("ana")
    now = review.now()
    assert now is not None
    assert now.revision.summary.rules == bare


def test_exceptions_stay_with_rules_that_are_learned_again(review: Review) -> None:
    now = review.now()
    assert now is not None
    rules = [group for group in now.revision.groups if group.number is not None]
    half = rules[1].rows[: len(rules[1].rows) // 2].tolist()
    review.decide_rows("ana", half, "inlier", "", "1")
    review.find_exceptions(quiet)
    assert review.proposal is not None
    with pytest.raises(StairError, match="the verdicts have changed since"):
        review.decide("ana", rules[0], "outlier", "", "2")
        review.take_exceptions("ana")
    review.find_exceptions(quiet)
    review.take_exceptions("ana")
    now = review.now()
    assert now is not None
    exceptions = now.revision.summary.rules.exceptions
    settings_ = dict(now.revision.settings)
    again = review.learn("ana", {}, settings_, quiet)
    kept = again.summary.rules.exceptions
    assert [rule.clauses for rule in kept] == [
        rule.clauses for rule in exceptions if rule.clauses in {each.clauses for each in kept}
    ]
    assert all(each.rows for each in again.summary.exceptions)
    now = review.now()
    assert now is not None
    for _ in range(len(kept)):
        review.remove_exception("ana", 1)
    now = review.now()
    assert now is not None
    assert not now.revision.summary.rules.exceptions
    with pytest.raises(StairError, match="no such exception"):
        review.remove_exception("ana", 1)


# --- the search ---------------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_shorter_exceptions_exist_where_one_or_two_clauses_are_enough(
    data: st.DataObject,
) -> None:
    """Against every set of at most two intervals on two columns of few values: the length is the
    shortest, for what is enough, and no row that stays is ever covered."""
    n = data.draw(st.integers(4, 14))
    cells = st.lists(st.integers(0, 2).map(float), min_size=n, max_size=n)
    a, b = np.array(data.draw(cells)), np.array(data.draw(cells))
    kinds = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    wrong, stays = kinds == 1, kinds == 0
    if not wrong.any() or not stays.any():
        return
    schema = Schema((Field("a", "number", "a"), Field("b", "number", "b")))
    rules = RuleSet((Rule((), 1),), (0, 1), schema, 0, (1.0, 1.0), 1)
    share = data.draw(st.sampled_from([0.5, 0.9, 1.0]))
    wanted = Aim(share, min_rows=1)
    values = Values({"a": a, "b": b}, n)
    try:
        found = learn(rules, values, wrong, stays, wanted)
    except StairError as error:
        assert "same values" in str(error)
        return
    lifted = found.rules.matches(values).lifted.any(axis=1)
    assert not lifted[stays].any()
    assert found.n_covered == int(lifted[wrong].sum())
    assert found.n_free == int(lifted[kinds == 2].sum())
    needed = math.ceil(share * wrong.sum() - 1e-9)
    assert found.is_enough == (found.n_covered >= needed)
    bounds = [(low, high) for low in (-1.0, 0.0, 1.0) for high in (0.0, 1.0, 2.0) if low < high]
    clauses = [Interval(name, *each) for name in "ab" for each in bounds]
    boxes = [(clause,) for clause in clauses] + [
        (one, two) for one, two in itertools.product(clauses, clauses)
        if (one.feature, two.feature) == ("a", "b")
    ]  # fmt: skip
    covers = {
        box: np.logical_and.reduce([c.covers(values[c.feature]) for c in box]) for box in boxes
    }
    clean = [box for box in boxes if not covers[box][stays].any()]
    reach = np.logical_or.reduce([covers[box] for box in clean]) if clean else np.zeros(n, bool)
    assert found.is_enough == (int(reach[wrong].sum()) >= needed)
    if not found.is_enough:
        return
    length = sum(rule.length for rule in found.new)
    pairs = [(box,) for box in clean] + list(itertools.combinations(clean, 2))
    shortest = min(
        (sum(map(len, pair)) for pair in pairs
         if int(np.logical_or.reduce([covers[b] for b in pair])[wrong].sum()) >= needed),
        default=99,
    )  # fmt: skip
    assert length <= shortest or shortest > 2
    assert found.certificate.bound <= length


def test_rules_that_have_exceptions_get_more() -> None:
    first = learn_exceptions(demo(), false_alarms=demo().matching_rows(2))
    second = learn_exceptions(first, false_alarms=demo().matching_rows(3))
    assert second.rules.exceptions[0].clauses == first.rules.exceptions[0].clauses
    assert len(second.rules.exceptions) > len(first.rules.exceptions)
    lifted = second.excepted_rows()
    for number in (2, 3):
        assert np.isin(demo().matching_rows(number), lifted).mean() >= 0.9
    assert "But not where …" in second.to_text()
    assert "But not where …" in second.to_html()
    assert "but not where" in second._repr_html_()
    again = learn_exceptions(second, false_alarms=demo().matching_rows(2)[:10])
    assert again.rules.exceptions == second.rules.exceptions  # they are excepted already


def test_several_kinds_of_outlier_have_exceptions() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 1200))
    kind = np.where(a > 1.8, "high", np.where(b < -1.8, "low", "fine"))
    data = {"a": a, "b": b, "c": c}
    summary = stair.summarize(data, labels=kind, validate=0)
    assert {rule.label for rule in summary.rules} == {"high", "low"}
    wrong = np.flatnonzero((kind == "high") & (c > 0.5))
    after = learn_exceptions(summary, false_alarms=wrong)
    assert np.isin(wrong, after.excepted_rows()).mean() >= 0.9
    assert not (np.isin(np.arange(1200), after.excepted_rows()) & (kind == "low")).any()
    assert (after.rules.predict(data)[after.excepted_rows()] == "fine").all()
    scores = {each.label: each.score for each in after.kinds}
    assert scores["high"] > 0.9


# --- what is said ---------------------------------------------------------------------------------


def test_bad_input_gets_one_sentence() -> None:
    summary = demo()
    outliers = np.flatnonzero(summary.is_outlier())
    for given_, words in (
        ({"false_alarms": "nowhere"}, 'no column "nowhere"'),
        ({"false_alarms": "country"}, 'which value of "country" is meant'),
        ({"false_alarms": [5000]}, "rows 0 to 4,999, but row 5000"),
        ({"false_alarms": [0.5]}, "no list of row numbers"),
        ({"false_alarms": np.flatnonzero(~summary.is_outlier())[:3]}, "nothing to except"),
        ({"false_alarms": outliers}, "the shortest exception is everything"),
        ({"false_alarms": outliers[:3], "outliers": outliers}, "it cannot be both"),
        ({"false_alarms": outliers[:3], "min_share": 2.0}, "min_share=2.0; expected a number"),
    ):
        with pytest.raises(StairError, match=words):
            learn_exceptions(summary, **given_)  # type: ignore[arg-type]
    with pytest.raises(StairError, match="give data"):
        learn_exceptions(stair.export.from_json(summary.to_json()), None, false_alarms=[1])
    with pytest.raises(StairError, match="leave data out"):
        learn_exceptions(summary, payments(), false_alarms=[1])  # type: ignore[call-overload]


def test_the_command_learns_exceptions(tmp_path: Path) -> None:
    """From a column of a file, or from rows by their numbers; the file that it writes is a
    rulebook, whose rules are as they were, and whose exceptions are candidates."""
    summary = demo()
    summary.to_json(tmp_path / "rules.json")
    data = dict(payments())
    said = np.full(len(data["id"]), None, dtype=object)
    said[summary.matching_rows(2)] = "no alarm"
    data["said"] = said
    write_table(tmp_path / "judged.csv", data)
    done = run("except", "rules.json", "judged.csv", "--false-alarm", "said=no alarm",
               "--output", "new.json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert "covers 59 of 60 false alarms" in done.stdout.decode()
    before, after = (
        json.loads((tmp_path / name).read_text()) for name in ("rules.json", "new.json")
    )
    assert after["rules"] == before["rules"]
    # Where they were, as a rulebook is changed: refused because the rules are also to be read.
    (tmp_path / "here.json").write_bytes((tmp_path / "rules.json").read_bytes())
    done = run("except", "here.json", "judged.csv", "--false-alarm", "said=no alarm",
               "--output", "./here.json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "here.json").read_bytes() == (tmp_path / "new.json").read_bytes()
    (exception,) = after["exceptions"]
    assert exception["status"] == "candidate"
    assert exception["evidence"]["source"] == "judged.csv"
    told = run("except", "new.json", "judged.csv", "--row", "17", cwd=tmp_path)
    assert told.returncode == 2
    assert "nothing to except" in told.stderr.decode()
    told = run("except", "rules.json", "judged.csv", "--false-alarm", "said", cwd=tmp_path)
    assert 'which value of "said" is meant? It has no alarm' in told.stderr.decode()
    rows = [str(row + 1) for row in summary.matching_rows(3)[::9]]
    few = run("except", "rules.json", "judged.csv", "--min-rows", "6",
              *(word for row in rows for word in ("--row", row)), cwd=tmp_path)  # fmt: skip
    assert few.returncode == 1  # there are five, and each exception has to cover six
    assert "false alarms" in few.stderr.decode()
    applied = run("apply", "new.json", "judged.csv", "-o", "out.csv", cwd=tmp_path)
    assert "exception 1  but not where" in applied.stdout.decode()
    columns = (tmp_path / "out.csv").read_text().splitlines()[0].split(",")
    assert columns[-3:] == ["stair_label", "stair_rule", "stair_exception"]
    row = int(summary.matching_rows(2)[0]) + 1
    why = run("explain", "new.json", "judged.csv", "--row", str(row), cwd=tmp_path)
    assert "would be an outlier by rule 2" in why.stdout.decode()
    assert "but exception 1: " in why.stdout.decode()
