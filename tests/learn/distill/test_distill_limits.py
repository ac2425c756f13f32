"""What distilling must never do: lose the floor, go on for ever, talk, or trust an answer."""

from __future__ import annotations

import ctypes
import itertools
import os
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import stair
from settings import summarize
from stair import DistilledStair, FloorNotReached, Stair
from stair.learn.distill import boxes, clock, distill, exact, plan, polish, select
from stair.learn.distill.cells import cells_of
from stair.learn.distill.quiet import quiet_solver
from stair.learn.table import encode
from stair.rules.columns import Binned, Categories, Lists, Numbers, Times
from stair.rules.schema import Field, Schema
from strategies import examples

Table = tuple[NDArray[np.float64], NDArray[np.int64]]


def _noisy(random: np.random.Generator, n: int, d: int) -> Table:
    X = random.normal(size=(n, d)).round(1)
    y = ((X[:, 0] > 0.8) | (X[:, 1] < -1.2) & (random.random(n) < 0.9)).astype(int)
    y[:2] = [0, 1]
    return X, np.where(random.random(n) < 0.07, 1 - y, y)


def _fitted(model: Any, *given_: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorNotReached)
        return model.fit(*given_, **more)


# --- the floor ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_the_floor_is_strict_however_large_the_weights(
    seed: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """From weights of 2**16 on the solver's tolerance swallowed the "+ 1" of "above the floor", and
    F1 was the floor itself; and HiGHS said so on standard output."""
    random = np.random.default_rng(seed)
    X, y = _noisy(random, int(random.choice([40, 80, 150])), int(random.integers(2, 5)))
    floor = float(random.choice([0.7, 0.8, 0.9]))
    settings_: dict[str, Any] = {"min_score": floor, "effort": "fast", "min_outliers": 1}
    plain = _fitted(DistilledStair(**settings_), X, y)
    # A fraction is no number of rows: where it is the same for all, it says nothing.
    same = _fitted(DistilledStair(**settings_), X, y, sample_weight=np.full(len(y), 2.0**20 + 0.5))
    clauses = [[rule.clauses for rule in model.rules_] for model in (plain, same)]
    assert clauses[0] == clauses[1]
    odd = 2.0**20 + random.integers(0, 5, len(y))
    weighted = _fitted(DistilledStair(**settings_), X, y, sample_weight=odd)
    tree = _fitted(Stair(min_score=floor), X, y, sample_weight=odd)
    assert weighted.floor_reached_ or not tree.floor_reached_
    assert capfd.readouterr().out == ""


def test_an_answer_of_the_solver_is_counted_before_it_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A solver that says "one rule is enough" where it is not is not believed."""
    import scipy.optimize

    answers = []

    def wrong(cost: NDArray[np.float64], **_: Any) -> Any:
        x = np.zeros(len(cost))
        x[len(answers)] = 1.0
        answers.append(x)
        return scipy.optimize.OptimizeResult(x=x, status=0, mip_dual_bound=None)

    X, y = _noisy(np.random.default_rng(0), 150, 4)
    model = DistilledStair(min_score=0.9, effort="fast", min_outliers=1)
    expected = model.fit(X, y).rules_.total_length
    monkeypatch.setattr(scipy.optimize, "milp", wrong)
    monkeypatch.setattr(exact, "TOLERANCE", 100.0)  # the bound leaves room for a wrong answer
    monkeypatch.setattr(plan, "WIDEST_GAP", 100.0)  # and an exact choice is made all the same
    model.fit(X, y)
    assert len(answers) == plan._PLANS["fast"].rounds * exact.MOST_ANSWERS
    assert model.score_ > 0.9
    assert model.rules_.total_length >= expected


def test_a_bound_that_wins_other_rows_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """What polished clauses cover is counted; where that is not the box, bounds stay close."""
    true_gaps = polish._gaps

    def careless(values: Any, inside: Any, is_foreign: Any) -> Any:
        return true_gaps(values, inside, is_foreign) if is_foreign.all() else (None, None)

    X, y = _noisy(np.random.default_rng(0), 150, 4)
    before = DistilledStair(min_score=0.9).fit(X, y)
    monkeypatch.setattr(polish, "_gaps", careless)
    after = DistilledStair(min_score=0.9).fit(X, y)
    assert after.score_ == before.score_
    assert after.predict(X).tolist() == before.predict(X).tolist()


# --- the solver's voice ---------------------------------------------------------------------------


def test_only_the_solver_is_kept_from_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    """HiGHS prints by printf whatever it is told. What others write meanwhile is not lost."""
    libc = ctypes.CDLL(None)
    os.write(1, b"before\n")
    with quiet_solver():
        libc.printf(b"HighsMipSolverData::transformNewIntegerFeasibleSolution\n")
        os.write(1, b"meanwhile\n")
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "before\nmeanwhile\nafter\n"


def test_a_closed_standard_output_is_no_obstacle() -> None:
    """A program without a standard output can distill, too."""
    kept = os.dup(1)
    os.close(1)
    try:
        with quiet_solver():
            pass
    finally:
        os.dup2(kept, 1)
        os.close(kept)


# --- the end --------------------------------------------------------------------------------------


def test_a_limit_beyond_all_columns_is_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """--max-rule-length 100000 went on for hours, and a time limit did not end it. A box that is
    begun gets one clause more for each attribute that a rule may have, at a price that rises by
    then. Where labels are noisy such a clause often keeps nothing out and goes again, so that it
    was a hundred thousand times; with few columns chance ends that soon, with twenty it does not.
    Now no box is looked at more than with any other limit beyond all columns."""
    looked = 0
    around = boxes.around

    def counted(*given_: Any, **more: Any) -> Any:
        nonlocal looked
        looked += 1
        assert looked < 50_000, "a box is begun for ever"
        return around(*given_, **more)

    for module in (boxes, plan, select):
        monkeypatch.setattr(module, "around", counted)
    random = np.random.default_rng(1)
    X = random.integers(0, 6, (200, 20)).astype(float)
    y = ((X[:, 0] >= 5) | (X[:, 1] < 1)).astype(int)
    y = np.where(random.random(200) < 0.1, 1 - y, y)
    found = []
    for limit in (20, 10**9):
        looked = 0
        model = DistilledStair(0.9, effort="fast", max_rule_length=limit).fit(X, y)
        found.append((looked, model.rules_))
        assert found[-1] == found[0]
    assert looked > 0


class _Enough(Exception):  # noqa: N818 - nothing went wrong
    pass


def test_who_wants_to_stop_is_heard_wherever_the_search_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stop on the page works by an exception from `say`. Long loops said nothing, so that nobody
    could end them: now all that is looked at passes by the clock."""
    monkeypatch.setattr(clock, "BEAT", 0.0)
    X, y = _noisy(np.random.default_rng(1), 160, 3)
    calls = {"looked": 0, "deaf": 0, "said": 0}
    around = boxes.around

    def counted(*given_: Any, **more: Any) -> Any:
        before = calls["said"]
        found = around(*given_, **more)
        calls["looked"] += calls["said"] > before
        calls["deaf"] += calls["said"] == before
        return found

    for module in ("boxes", "plan", "select"):
        monkeypatch.setattr(f"stair.learn.distill.{module}.around", counted)

    def run(say: Any) -> None:
        columns = [Numbers(name, j) for j, name in enumerate("abc")]
        distill(
            columns, X, y.astype(np.int32), X, classes=(0, 1), positive=1, effort="fast", say=say,
            min_score=0.95, **_named("abc"),
        )  # fmt: skip

    def say(_: str) -> None:
        calls["said"] += 1

    run(say)
    assert calls["looked"] > 100
    assert calls["deaf"] == 0
    for last in (1, 10, 100, calls["said"] // 2):
        left = itertools.count(1)

        def stop(_: str, left: Any = left, last: int = last) -> None:
            if next(left) == last:
                raise _Enough

        with pytest.raises(_Enough):
            run(stop)
        assert next(left) == last + 1


def _named(names: str) -> dict[str, Any]:
    return {"schema": Schema.of_numbers(tuple(names))}


@pytest.mark.parametrize("limit", [0.0, 50.0, 200.0])
def test_once_it_is_late_nothing_more_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    """`begun` never asked what time it was. Time goes by here as the clock is looked at."""
    ticks = itertools.count()
    looked: list[int] = []
    around = boxes.around

    def counted(*given_: Any, **more: Any) -> Any:
        looked.append(now)
        return around(*given_, **more)

    now = 0

    class Watch:
        @staticmethod
        def monotonic() -> float:
            nonlocal now
            now = next(ticks)
            return float(now)

    monkeypatch.setattr(clock, "time", Watch)
    for module in ("boxes", "plan", "select"):
        monkeypatch.setattr(f"stair.learn.distill.{module}.around", counted)
    random = np.random.default_rng(2)
    X, y = random.normal(size=(300, 6)).round(2), (random.random(300) < 0.2).astype(int)
    model = DistilledStair(min_score=0.6, time_limit=limit, max_rule_length=10**9).fit(X, y)
    assert model.floor_reached_
    late = [tick for tick in looked if tick > limit + 1]
    assert len(late) < 40


# --- columns of every kind ------------------------------------------------------------------------


def test_more_categories_than_a_code_has_numbers() -> None:
    """65,536 categories and more ended in an IndexError: a bin's number has 16 bits."""
    n = 70_000
    random = np.random.default_rng(0)
    user = np.array([f"u{k:05d}" for k in range(n)] + ["bad"] * 40 + ["worse"] * 30, dtype=object)
    amount = random.normal(size=len(user))
    label = np.isin(user, ["bad", "worse"]).astype(int)
    order = random.permutation(len(user))
    summary = summarize(
        {"user": user[order], "amount": amount[order]},
        labels=label[order],
        include=["user", "amount"],
        kinds={"user": "category"},
        min_score=0.9,
        method=stair.DistilledStair(effort="fast"),
    )
    assert summary.score == 1.0
    assert [str(rule) for rule in summary.rules] == ["user in {bad, worse}"]


def test_categories_that_share_a_bin_are_those_that_tell_least() -> None:
    """A list names at most so many values; those keep a code and a bin of their own in which
    outliers and inliers differ most."""
    values = np.array(["a", "b", "b", "c", "d", "d", "d", "e", None], dtype=object)
    wanted = np.array([0, 1, 1, 0, 1, 1, 1, 0, 0])
    schema = Schema((Field("c", "category", "c"),))
    read = schema.read({"c": values})
    table = encode(schema, read, wanted.astype(np.int32), lists=Lists(1, 2))
    assert table.columns == (Categories("c", 0, ("b", "d"), has_others=True),)
    found = cells_of(table.columns, table.codes, wanted == 1)
    assert found.codes[:, 0].tolist() == [2, 0, 0, 2, 1, 1, 1, 2, 3]
    assert found.smallest[0].tolist()[:2] == [0.0, 1.0]
    assert np.isnan(found.smallest[0][2])
    assert int(found.n_bins[0]) == 4


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(-(2**62), 2**62), st.integers(1, 2**40), st.booleans())
def test_a_time_lies_in_its_gap(start: int, width: int, is_ranked: bool) -> None:
    """Before 1970 the numbers are negative, and cutting off their decimals went the wrong way; past
    the year 2255 they are beyond 2**53, where a float misses them."""
    start = start if is_ranked else start % 2**52 - 2**51
    end = start + width
    plain = Times("t", 0)
    column = Binned(plain, (start, end), (start, end)) if is_ranked else plain
    gap = (0.0, 1.0) if is_ranked else (float(start), float(end))
    until, after = polish._cut_within(column, gap)
    assert until.until == after.after
    assert start <= int(until.until.astype(np.int64)) < end


@pytest.mark.parametrize("seed", range(8))
def test_ranked_columns_give_the_same_rows(seed: int) -> None:
    """A column whose codes are ranks (whole numbers beyond 2**53) is cut by its own values."""
    X, y = _noisy(np.random.default_rng(seed), 120, 3)
    whole = (X * 10).round()
    found = []
    for ranked in (False, True):
        columns: list[Any] = [Numbers(name, j) for j, name in enumerate("abc")]
        codes = whole.copy()
        if ranked:
            for j in range(3):
                each, codes[:, j] = np.unique(whole[:, j], return_inverse=True)
                values = tuple(map(int, each))
                columns[j] = Binned(columns[j], values, values)
        result = distill(
            columns, codes, y.astype(np.int32), whole, classes=(0, 1), positive=1, effort="fast",
            **_named("abc"),
        )  # fmt: skip
        found.append((result.score, result.rules.total_length, result.rules.predict(whole)))
    (score, length, rows), (ranked_score, ranked_length, ranked_rows) = found
    assert (score, length) == (ranked_score, ranked_length)
    assert rows.tolist() == ranked_rows.tolist()


def test_who_has_had_enough_gets_what_there_is_and_folds_are_whole() -> None:
    """An answer of True ends the search and keeps its rules, above the floor; rows kept aside are
    then checked with searches that are not cut short: they were, and other rules were checked."""
    X, y = _noisy(np.random.default_rng(3), 300, 4)
    table = {name: X[:, j] for j, name in enumerate("abcd")}
    whole = summarize(table, y, min_score=0.7, validate=2)
    said: list[str] = []

    def enough(text: str) -> bool:
        said.append(text)
        return text.startswith(clock.SHORTENING)

    cut = summarize(table, y, min_score=0.7, validate=2, progress=enough)
    assert whole.certificate is not None
    assert cut.certificate is not None
    assert (whole.certificate.cut_short, cut.certificate.cut_short) == (False, True)
    assert cut.score > 0.7
    assert cut.rules.total_length >= whole.rules.total_length
    assert cut.held_out == whole.held_out
    assert not any(text.startswith(clock.SHORTENING) for text in said if "fold" in text)
