"""Distilled rules: short, true to their figures, and the same every time."""

from __future__ import annotations

import time
import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

import stair
from stair import DistilledStair, FloorNotReached, Stair, StairError
from stair.demo import payments
from stair.learn.distill import least_outliers
from stair.learn.distill.cells import cells_of
from stair.learn.distill.cover import KERNELS, Candidate, Cover, problem_of
from stair.learn.distill.equal import distinct_rows, one_for_all
from stair.learn.distill.exact import choose
from stair.rules.columns import Numbers
from stair.rules.rule_set import Among, Interval
from strategies import Labelled, examples, labelled

QUICK = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def _islands(seed: int, n: int = 400) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Outliers in two boxes of four attributes, and a few anywhere."""
    random = np.random.default_rng(seed)
    X = random.random((n, 4)).round(2)
    y = (X[:, 0] > 0.9) | ((X[:, 1] < 0.15) & (X[:, 2] > 0.6)) | (random.random(n) < 0.01)
    return X, y.astype(int)


def _fit(model: DistilledStair | Stair, X: object, y: object, **more: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorNotReached)
        model.fit(X, y, **more)


@QUICK
@given(labelled(max_rows=60, weighted=True), st.sampled_from([0.0, 0.5, 0.8, 0.95, 1.0]))
def test_every_figure_is_that_of_the_final_rules(table: Labelled, floor: float) -> None:
    """Score, counts and lengths, counted again from scratch, with weights and missing values."""
    model = DistilledStair(min_score=floor, effort="fast")
    _fit(model, table.X, table.y, sample_weight=table.weights)
    predicted, rules = model.predict(table.X), model.rules_
    if table.n_classes == 2:
        true = f1_score(table.y, predicted, sample_weight=table.weights, zero_division=0)
        assert all(rule.label == 1 for rule in rules)
        inside = rules.covers(table.X).any(axis=1)
        assert np.array_equal(predicted == 1, inside)
    else:
        true = accuracy_score(table.y, predicted, sample_weight=table.weights)
    assert model.score_ == pytest.approx(true)
    weights = np.ones(len(table.y)) if table.weights is None else table.weights
    for rule in rules:
        rows = rule.covers(table.X, rules.features)
        counts = np.bincount(table.y[rows], weights[rows], table.n_classes)
        assert [count for _, count in rule.counts] == pytest.approx(counts.tolist())
    assert rules.total_length == sum(len({c.feature for c in r.clauses}) for r in rules)
    assert model.bound_ <= rules.total_length


@QUICK
@given(labelled(max_rows=50, weighted=True), st.integers(1, 4))
def test_the_floor_holds_wherever_stair_reaches_it(table: Labelled, longest: int) -> None:
    """And distilled rules are never longer than STAIR's, nor any rule than was asked for. Weights
    such as 0.1 are rounded by both, each in its own way: a score that is the floor itself, as
    23 rows without any difference once gave, is above it for one and not for the other."""
    plain = Stair(max_rule_length=longest)
    distilled = DistilledStair(max_rule_length=longest, effort="fast")
    for model in (plain, distilled):
        _fit(model, table.X, table.y, sample_weight=table.weights)
    assert distilled.rules_.longest <= longest
    if plain.floor_reached_ and plain.score_ > 0.8 + 1e-9:
        assert distilled.floor_reached_
        assert distilled.rules_.total_length <= plain.rules_.total_length


@QUICK
@given(st.integers(0, 10_000), st.integers(1, 8))
def test_a_rule_covers_as_many_outliers_as_was_asked(seed: int, least: int) -> None:
    X, y = _islands(seed, 200)
    model = DistilledStair(min_outliers=least, effort="fast")
    _fit(model, X, y)
    assert all(rule.hits >= least for rule in model.rules_)
    assert model.min_outliers_ == least


def test_the_least_number_of_outliers_by_default() -> None:
    """Five, a tenth where there are few, and what was asked for where somebody asked."""
    assert [least_outliers(None, n) for n in (1, 9, 20, 49, 50, 5000)] == [1, 1, 2, 4, 5, 5]
    assert least_outliers(3, 5000) == 3


def test_the_planted_boxes_are_found() -> None:
    """Two rules, three attributes: nothing shorter says it."""
    X, y = _islands(0)
    model = DistilledStair(min_score=0.9).fit(X, y)
    assert [rule.features for rule in model.rules_] == [("x0",), ("x1", "x2")]
    assert model.rules_.total_length == 3 == model.bound_
    assert [clause.n_bounds for rule in model.rules_ for clause in rule.clauses] == [1, 1, 1]
    assert model.rules_.n_bounds == 3


@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_the_twin_distils_the_same_rules(effort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler it takes longer, and the result is equal."""
    X, y = _islands(3, 60)
    X[::7, 1] = np.nan
    here = DistilledStair(effort=effort).fit(X, y)
    monkeypatch.setattr("stair.learn.distill.cover.KERNELS", {"numpy": KERNELS["numpy"]})
    there = DistilledStair(effort=effort).fit(X, y)
    assert here.rules_ == there.rules_
    assert here.bound_ == there.bound_


def test_one_seed_one_result() -> None:
    X, y = _islands(5)
    found = [DistilledStair(random_state=7, effort="fast").fit(X, y).rules_ for _ in range(2)]
    assert found[0] == found[1]


def test_more_time_never_gives_longer_rules() -> None:
    """The search goes the same way and is only cut off earlier; a limit is kept."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 12))
    y = (np.abs(X[:, :4]).max(axis=1) > 2.4).astype(int)
    lengths = []
    for limit in (0.0, 0.3, 1.0, None):
        began = time.monotonic()
        model = DistilledStair(time_limit=limit, min_outliers=1, min_score=0.9).fit(X, y)
        if limit is not None:
            assert time.monotonic() - began < limit + 1.0
        assert model.floor_reached_
        lengths.append(model.rules_.total_length)
    assert lengths == sorted(lengths, reverse=True)


@QUICK
@given(st.integers(0, 10_000))
def test_the_exact_choice_is_the_best_of_all_choices(seed: int) -> None:
    """Against every subset of a few candidates."""
    random = np.random.default_rng(seed)
    n = 30
    y = (random.random(n) < 0.4).astype(np.int32)
    y[:2] = [0, 1]
    cells = cells_of([Numbers("x", 0)], random.random((n, 1)), y == 1)
    problem = problem_of(cells, y, 2, None, default=0, positive=1, min_score=0.6,
                         max_rule_length=3, min_outliers=1)  # fmt: skip
    candidates = []
    for _ in range(7):
        rows = np.flatnonzero(random.random(n) < np.where(y == 1, 0.5, 0.1)).astype(np.int32)
        candidates.append(Candidate({}, 0, rows, int(random.integers(1, 4)), int(y[rows].sum())))

    def is_enough(chosen: tuple[Candidate, ...]) -> bool:
        predicted = np.zeros(n, dtype=bool)
        for rule in chosen:
            predicted[rule.rows] = True
        right = int(np.count_nonzero(predicted & (y == 1)))
        return 2 * right / int(predicted.sum() + y.sum()) > 0.6

    every = [c for k in range(1, 8) for c in combinations(candidates, k) if is_enough(c)]
    shortest = min((sum(r.length for r in c) for c in every), default=None)
    found = choose(problem, candidates, 22, None)
    if shortest is None:
        assert found is None  # not even all of them together are enough
    else:
        assert found is not None
        assert found.rules is not None
        assert is_enough(found.rules)
        assert sum(rule.length for rule in found.rules) == shortest == found.bound
        nothing = choose(problem, candidates, shortest, None)
        assert nothing is not None
        assert nothing.rules is None
        assert nothing.bound == shortest


@QUICK
@given(labelled(max_rows=40, weighted=True))
def test_worth_is_kept_up_to_date(table: Labelled) -> None:
    """Adding and removing boxes: worth and gains equal what a count from scratch gives."""
    columns = [Numbers(f"x{j}", j) for j in range(table.X.shape[1])]
    default = int(np.bincount(table.y).argmax())
    positive = None if table.n_classes > 2 else 1 - default
    cells = cells_of(columns, table.X, table.y != default)
    problem = problem_of(cells, table.y, table.n_classes, None, default=default,
                         positive=positive, min_score=0.7, max_rule_length=3,
                         min_outliers=1)  # fmt: skip
    cover = Cover(problem)
    random = np.random.default_rng(0)
    for _ in range(12):
        if cover.rules and random.random() < 0.4:
            cover.remove(cover.rules[random.integers(len(cover.rules))])
            continue
        cover.aim_at(int(random.integers(len(problem.labels))))
        column = int(random.integers(len(columns)))
        last = int(cells.n_bins[column]) - int(cells.has_missing[column]) - 1
        low = int(random.integers(0, last + 1)) if last >= 0 else 1
        high = int(random.integers(low, last + 1)) if last >= 0 else 0
        missing = bool(random.random() < 0.5 and cells.has_missing[column])
        cover.add(cover.place({column: (low, high, missing)}))
    fresh = Cover(problem)
    fresh.aim_at(cover.aim)
    predicted = np.full(len(table.y), default)
    for label in reversed(range(len(problem.labels))):
        for rule in cover.rules:
            if rule.label == label:
                predicted[rule.rows] = problem.labels[label]
    for rule in cover.rules:
        fresh.add(rule)
    assert np.array_equal(cover.kernel.row_gains, fresh.kernel.row_gains)
    score = (
        accuracy_score(table.y, predicted)
        if positive is None
        else f1_score(table.y, predicted, pos_label=positive, zero_division=0)
    )
    assert cover.is_enough() == fresh.is_enough() == (score > 0.7)


def test_many_classes_have_one_default_and_rules_for_the_others() -> None:
    """By accuracy; the most frequent class needs no rule."""
    random = np.random.default_rng(1)
    X = random.random((600, 5))
    y = np.select([X[:, 0] > 0.9, X[:, 1] > 0.85], ["red", "blue"], "grey")
    model = DistilledStair(min_score=0.97).fit(X, y)
    assert model.rules_.default == "grey"
    assert {rule.label for rule in model.rules_} == {"red", "blue"}
    assert model.rules_.total_length == 2
    assert accuracy_score(y, model.predict(X)) == model.score_ > 0.97


def test_bounds_lie_in_the_middle_of_the_gap() -> None:
    """Inliers end at 10 and begin again at 30; outliers lie around 20, and from 50 on."""
    inliers = [*range(11), *range(30, 41)]
    X = np.array([*inliers, 19, 20, 21, 50, 51, 52], dtype=float)[:, None]
    y = np.array([0] * len(inliers) + [1] * 6)
    model = DistilledStair(min_score=0.99, min_outliers=1).fit(X, y)
    (first, second) = sorted((rule.clauses[0] for rule in model.rules_), key=lambda c: c.low)
    assert isinstance(first, Interval)
    assert 12 < first.low < 17
    assert 23 < first.high < 28
    assert 42 < second.low < 48
    assert second.high == np.inf  # no inlier lies above, so no bound is needed


def test_categories_and_missing_values_in_distilled_rules() -> None:
    """The shorter list is written, and values that never occurred are not in it."""
    n = 300
    random = np.random.default_rng(0)
    country = random.choice(list("abcdefgh"), n).astype(object)
    device = np.where(random.random(n) < 0.1, None, "phone").astype(object)
    amount = random.random(n)
    y = (np.isin(country, ["a", "b", "c", "d", "e", "f"]) & (amount > 0.8)) | (device == None)  # noqa: E711
    found = stair.summarize(
        {"country": country, "device": device, "amount": amount}, labels=y, min_score=0.98
    )
    words = [str(rule) for rule in found.rules]
    assert any("country not in {g, h}" in text for text in words)
    assert "device is missing" in words
    assert "Everything else is an inlier" in str(found)
    assert Among in {type(c) for rule in found.rules for c in rule.clauses}


def test_the_default_of_summarize_says_who_spoke() -> None:
    """And how to get the others."""
    data = {name: values[:1500] for name, values in payments().items()}
    found = stair.summarize(data, labels="flagged", method=stair.DistilledStair(effort="fast"))
    assert found.method == "distilled"
    text = str(found)
    assert 'Distilled, rules that may overlap; method="stair" for disjoint rules.' in " ".join(
        text.split()
    )
    row = {name: values[0] for name, values in data.items()}
    assert "no rule covers it. Nearest outlier rule" in str(found.explain(row))


def test_a_total_length_can_be_asked_for() -> None:
    """The floor then gives way, and that is said."""
    X, y = _islands(2)
    found = stair.summarize(
        X, labels=y, min_score=0.9, method=stair.DistilledStair(max_total_length=1, effort="fast")
    )
    assert found.rules.total_length <= 1
    assert not found.floor_reached


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"effort": "great"}, 'effort="great"; expected fast or normal'),
        ({"min_outliers": 0}, "min_outliers=0; expected a whole number of at least 1"),
        ({"time_limit": -1}, "time_limit=-1; expected a number of at least 0"),
        ({"random_state": "x"}, 'random_state="x"; expected a whole number'),
        ({"max_rule_length": 0}, "max_rule_length=0"),
    ],
)
def test_bad_settings_get_one_sentence(given_: dict[str, object], message: str) -> None:
    X, y = _islands(0, 50)
    with pytest.raises(StairError, match=message):
        DistilledStair(**given_).fit(X, y)


@QUICK
@given(labelled(max_rows=60, weighted=True))
def test_refined_rules_are_a_partition_and_no_longer(table: Labelled) -> None:
    """Every row has exactly one rule, the score is true, the floor holds where STAIR's does."""
    plain, refined = Stair(min_score=0.7), Stair(min_score=0.7, refine=True)
    for model in (plain, refined):
        _fit(model, table.X, table.y, sample_weight=table.weights)
    assert (refined.rules_.covers(table.X).sum(axis=1) == 1).all()
    predicted = refined.predict(table.X)
    true = (
        accuracy_score(table.y, predicted, sample_weight=table.weights)
        if table.n_classes > 2
        else f1_score(table.y, predicted, sample_weight=table.weights, zero_division=0)
    )
    assert refined.score_ == pytest.approx(true)
    if plain.floor_reached_:
        assert refined.floor_reached_
        assert refined.rules_.total_length <= plain.rules_.total_length


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@example(2516372330, 3)
def test_equal_rows_are_one_row_with_a_weight(seed: int, most: int) -> None:
    """A row that is there twice counts twice: rules of a table with its rows repeated are those of
    the table in which each row has a weight, and every count is of all rows. Where the search
    counts the outliers of a rule it counted rows alone: 23 outliers were 11 with weights, so that
    it began with smaller rules, and in a few tables of thousands it ended with others."""
    random = np.random.default_rng(seed)
    X = random.integers(0, 6, (60, 3)).astype(float)
    y = (X.sum(axis=1) + random.integers(0, 3, 60) > 12).astype(int)
    y[0] = 1 - y[1]
    times = random.integers(1, most + 1, 60)
    twice = DistilledStair(effort="fast", min_outliers=1)
    once = DistilledStair(effort="fast", min_outliers=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorNotReached)
        twice.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
        once.fit(X, y, sample_weight=times)
    assert [str(rule) for rule in twice.rules_] == [str(rule) for rule in once.rules_]
    assert [rule.counts for rule in twice.rules_] == [rule.counts for rule in once.rules_]
    assert twice.score_ == once.score_


def test_a_whole_weight_is_so_many_outliers() -> None:
    """Two rows with a weight of 5 are ten outliers, enough for `min_outliers=10`; of weights that
    are no whole numbers each is one row."""
    X = np.arange(60.0)[:, None]
    y = np.isin(X[:, 0], (20, 21)).astype(int)
    five, uneven = np.where(y == 1, 5.0, 1.0), np.where(y == 1, 5.5, 1.0)
    counted = DistilledStair(min_outliers=10, effort="fast").fit(X, y, sample_weight=five)
    assert [str(rule) for rule in counted.rules_] == ["x0 is 20 to 21"]
    for weights in (None, uneven):
        with pytest.warns(FloorNotReached):
            plain = DistilledStair(min_outliers=10, effort="fast").fit(X, y, weights)
        assert not len(plain.rules_)


@given(st.integers(0, 2**32 - 1))
def test_distinct_rows_are_all_rows(seed: int) -> None:
    """Each row is equal to the one that stands for it, which is the first of its kind."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, (50, 3)).astype(np.uint16)
    labels = random.integers(0, 2, 50).astype(np.int32)
    first, places = distinct_rows(codes, labels)
    table = np.column_stack([codes, labels])
    assert (table == table[first][places]).all()
    assert len(np.unique(table, axis=0)) == len(first)
    assert (np.diff(first) > 0).all() and (first[places] <= np.arange(50)).all()


@QUICK
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_equal_rows_may_be_told_as_one(seed: int, whole: bool) -> None:
    """Most rows of a log come again and again: one of them is sorted and searched for all, and the
    rules and every count are those of the whole table."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 3))
    X = np.round(X) if whole else X
    X[random.random(X.shape) < 0.1] = np.nan
    y = (X[:, 0] > 0.8) | (X[:, 1] < -1)
    rows = random.integers(0, 40, 300)
    assert one_for_all(X[rows], y[rows].astype(np.int32)) is not None
    here, there = DistilledStair(effort="fast"), DistilledStair(effort="fast")
    _fit(here, X[rows], y[rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stair.learn.distill.one_for_all", lambda *_: None)
        _fit(there, X[rows], y[rows])
    assert here.rules_ == there.rules_
    assert (here.score_, here.bound_) == (there.score_, there.bound_)


def test_one_clause_that_is_enough_is_found_by_one_look() -> None:
    """It took seconds to find that nothing is shorter than one clause, or than two."""
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 4))
    one = DistilledStair().fit(X, X[:, 2] > 2.5)
    assert (one.rules_.total_length, one.bound_) == (1, 1)
    two = DistilledStair().fit(X, (X[:, 2] > 2) | (X[:, 0] < -2.2))
    assert (two.rules_.total_length, two.bound_) == (2, 2)


def test_names_that_few_rows_have_are_never_listed() -> None:
    """Villages that one row each has: `city in {… 46 more}` was a memory of these rows, with length
    1. What they have in common, that they are none of the frequent ones, may be said."""
    random = np.random.default_rng(0)
    n = 1000
    city = random.choice(np.array(["Oslo", "Lima", "Rome"], dtype=object), n)
    is_village = random.random(n) < 0.2
    city[is_village] = [f"village {k}" for k in range(is_village.sum())]
    x = random.normal(size=n).round(3)
    flagged = is_village & (random.random(n) < 0.3)
    memory = stair.summarize(
        {"city": city, "x": x},
        labels=flagged.astype(int),
        method=stair.DistilledStair(effort="fast"),
    )
    named = {v for rule in memory.rules for c in rule.clauses for v in getattr(c, "values", ())}
    assert named <= {"Oslo", "Lima", "Rome"}
    said = stair.summarize({"city": city, "x": x}, labels=(is_village & (x > 0.5)).astype(int))
    assert [str(rule) for rule in said.rules] == ["city not in {Lima, Oslo, Rome} and x > 0.51"]


def test_a_floor_out_of_reach_brings_no_memories() -> None:
    """A third of the outliers have a reason, the others none. Rules of one row each were listed,
    one of them within another, under "some rules cover only 2 outliers: the floor is not reached
    with more", and it was not reached all the same."""
    random = np.random.default_rng(3)
    table = {
        "pressure": random.normal(120, 15, 3000).round(),
        "drug": random.choice(np.array(["a", "b", "c"], dtype=object), 3000),
    }
    has_reason = (table["pressure"] > 152) & (table["drug"] == "a")
    flagged = (has_reason | (random.random(3000) < 0.03)).astype(int)
    found = stair.summarize(
        table, labels=flagged, min_score=0.7, method=stair.DistilledStair(effort="fast")
    )
    assert not found.floor_reached
    assert [set(rule.features) for rule in found.rules] == [{"drug", "pressure"}]
    assert all(each.hits >= 5 for each in found.evidence)
    assert "Some rules cover only" not in str(found)
