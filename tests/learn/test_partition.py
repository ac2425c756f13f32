"""L-STAIR: partitions and rules learned together, and two scores that are never mixed up."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

import local_twin
from stair import LocalStair, StairError, summarize
from stair.apply import apply_rules
from stair.demo import payments
from stair.errors import FloorNotReached
from stair.export import from_json, to_json
from stair.learn.alike import Alike
from stair.learn.grow import grow
from stair.learn.prune import refine
from stair.rules.objective import f1, reaches
from stair.rules.routing import NO_ROUTING, Dimension, Space, squared_distances
from strategies import Labelled, examples, labelled

SOME = settings(max_examples=examples(40), deadline=None)


def _fitted(data: Labelled, **options: Any) -> LocalStair:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorNotReached)
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        return LocalStair(random_state=0, **options).fit(data.X, data.y)


@SOME
@given(labelled(max_rows=30))
def test_the_objective_never_rises_when_rows_move_or_partitions_go(data: Labelled) -> None:
    """The paper's convergence: reassignment and removal each leave it as it is or lower."""
    for floor_on in ("routed", "assigned"):
        for each in _fitted(data, floor_on=floor_on, n_partitions=2).rounds_:
            assert each.objective <= each.objective_before + 1e-9
            assert each.objective_after <= each.objective + 1e-9
            assert each.objective == pytest.approx(each.error + each.locality)


@SOME
@given(labelled(max_rows=30))
def test_what_is_reported_is_what_predict_does(data: Labelled) -> None:
    """The routed score is scikit-learn's on `predict`; each row has exactly one rule."""
    model = _fitted(data, n_partitions=2)
    rules = model.rules_
    predicted = model.predict(data.X)
    if data.n_classes == 2:
        assert model.routed_score_ == pytest.approx(f1_score(data.y, predicted, zero_division=0.0))
    else:
        assert model.routed_score_ == pytest.approx(accuracy_score(data.y, predicted))
    assert model.assigned_score_ >= model.routed_score_ - 1e-12
    assert (rules.covers(data.X).sum(axis=1) == 1).all()
    assert rules.total_length == sum(rule.length for rule in rules)
    assert sum(p.n_rules for p in rules.partitions) == len(rules)
    routed = rules.route(data.X)
    for k, (partition, (start, stop)) in enumerate(zip(rules.partitions, rules.spans, strict=True)):
        rows = routed == k
        assert partition.rows == rows.sum()
        assert sum(rule.rows for rule in rules.rules[start:stop]) == rows.sum()
        alone = replace(rules, rules=rules.rules[start:stop], routing=NO_ROUTING)
        expected = alone.predict(data.X[rows])
        assert (predicted[rows] == expected).all()


def _by_the_twin(data: Labelled, **options: Any) -> LocalStair:
    with (
        patch("stair.learn.localize.merged", lambda table, codes, *_: Alike(table, codes, None)),
        patch("stair.learn.localize.learn_local", local_twin.learn_local),
    ):
        return _fitted(data, **options)


def _is_the_same(one: LocalStair, other: LocalStair) -> bool:
    return (one.rules_, one.rounds_, one.trace_) == (other.rules_, other.rounds_, other.trace_)


@SOME
@given(
    labelled(max_rows=20, max_columns=3),
    st.lists(st.integers(1, 4), min_size=20, max_size=20),
    st.sampled_from(["routed", "assigned"]),
    st.sampled_from([0.0, 1e-3, 0.3, 2.0]),
    st.integers(1, 3),
)
def test_every_round_is_that_of_the_slow_twin(
    data: Labelled, times: list[int], floor_on: str, locality: float, start: int
) -> None:
    """Equal rows as one, what is remembered of the last round, rows that are not asked: none of it
    shows, not in a center's last digit. Many rows are equal, and λ = 0 makes all distances alike.
    """
    rows = np.repeat(np.arange(len(data.y)), times[: len(data.y)])
    data = data._replace(X=data.X[rows], y=data.y[rows])
    options: dict[str, Any] = {
        "floor_on": floor_on, "locality": locality, "n_partitions": min(start, len(rows)),
        "min_score": 0.9,
    }  # fmt: skip
    assert _is_the_same(_fitted(data, **options), _by_the_twin(data, **options))


@pytest.mark.parametrize("decimals", [0, 6], ids=["many equal rows", "no equal rows"])
@pytest.mark.parametrize("floor_on", ["routed", "assigned"])
@pytest.mark.parametrize("locality", [0.0, 0.05, 2.0])
def test_many_rounds_are_those_of_the_slow_twin(
    decimals: int, floor_on: str, locality: float
) -> None:
    """Enough rows, attributes and partitions that rows move for several rounds."""
    rng = np.random.default_rng(5)
    middle = rng.integers(0, 4, 900)
    X = np.round(rng.normal(size=(4, 9))[middle] * 4 + rng.normal(size=(900, 9)), decimals)
    X = X[:, :2] if decimals == 0 else X
    y = (np.abs(X[:, 0] - np.median(X[:, 0])) + rng.normal(size=900) > 5).astype(np.int32)
    data = Labelled(X, y, 2, None)
    options: dict[str, Any] = {"floor_on": floor_on, "locality": locality, "n_partitions": 4}
    fast = _fitted(data, **options)
    assert len(fast.rounds_) > 2
    assert (len(np.unique(X, axis=0)) < 450) == (decimals == 0)
    assert _is_the_same(fast, _by_the_twin(data, **options))


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_distances_are_those_of_numpy_to_the_last_bit(width: int, seed: int) -> None:
    """They are added up column by column, in the order in which NumPy adds up a row."""
    rng = np.random.default_rng(seed)
    places, centers = rng.normal(size=(40, width)), rng.normal(size=(2, width))
    expected = np.column_stack([((places - center) ** 2).sum(axis=1) for center in centers])
    assert (squared_distances(places, centers) == expected).all()
    assert (squared_distances(np.asfortranarray(places), centers) == expected).all()


@SOME
@given(labelled(max_rows=25))
def test_one_seed_one_result(data: Labelled) -> None:
    first, second = (_fitted(data, n_partitions=2) for _ in range(2))
    assert first.rules_ == second.rules_
    assert first.rounds_ == second.rounds_


@settings(max_examples=examples(150), deadline=None)
@given(labelled())
def test_pruning_keeps_the_floor_and_shortens(data: Labelled) -> None:
    """Grown to the end and pruned back: still above the floor, never longer, all rows covered."""
    positive = 1 if data.n_classes == 2 else None
    growth = grow(data.engine(), min_score=1.0, max_rule_length=3, positive=positive)
    totals = np.bincount(data.y, minlength=data.n_classes).tolist()
    reached = growth.steps[-1].score if growth.steps else 0.0
    for floor in (0.3, 0.6, 0.9):
        (kept,) = refine(growth.roots, totals, positive, floor)
        assert sum(sum(node.group.counts) for node, _ in kept) == len(data.y)
        length = sum(node.length for node, _ in kept)
        assert length <= (growth.steps[-1].total_length if growth.steps else 0)
        if positive is None:
            score = sum(node.group.counts[label] for node, label in kept) / len(data.y)
        else:
            chosen = [node.group.counts for node, label in kept if label == 1]
            score = f1(sum(c[1] for c in chosen), sum(map(sum, chosen)), totals[1])
        if reaches(reached, floor):
            assert reaches(score, floor)


# ------------------------------------------------------------------------------- weights


def _weighed(data: Labelled, weights: Any, **options: Any) -> LocalStair:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FloorNotReached)
        return LocalStair(random_state=0, **options).fit(data.X, data.y, sample_weight=weights)


OF_WEIGHTS = st.fixed_dictionaries(
    {"floor_on": st.sampled_from(["routed", "assigned"]), "n_partitions": st.integers(1, 2),
     "min_score": st.sampled_from([0.6, 0.9])}
)  # fmt: skip


@SOME
@given(labelled(max_rows=20, max_columns=3), st.data(), OF_WEIGHTS)
def test_a_row_of_weight_two_is_the_row_twice(
    data: Labelled, draw: st.DataObject, options: dict[str, Any]
) -> None:
    """Partitions, centers, rules, rounds and counts, to the last digit; weight 0 is no row."""
    n = len(data.y)
    weights = np.array(draw.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    weights[: data.n_classes] = [1, *[2] * (data.n_classes - 1)]  # in their lowest terms
    rows = np.repeat(np.arange(n), weights)
    repeated = data._replace(X=data.X[rows], y=data.y[rows])
    found = _weighed(data, weights, **options)
    assert _is_the_same(found, _fitted(repeated, **options))
    assert list(found.rules_.totals) == np.bincount(data.y, weights).tolist()


@SOME
@given(labelled(max_rows=20, max_columns=3), st.sampled_from([1.0, 3.0, 0.1, 2.0**-30]), OF_WEIGHTS)
def test_weights_that_are_all_alike_are_none(
    data: Labelled, weight: float, options: dict[str, Any]
) -> None:
    """The same rules and partitions, and all counts in the weight that was given."""
    plain = _fitted(data, **options)
    found = _weighed(data, np.full(len(data.y), weight), **options)
    assert [(r.clauses, r.label) for r in found.rules_] == [
        (r.clauses, r.label) for r in plain.rules_
    ]
    assert [p.center for p in found.rules_.partitions] == [
        p.center for p in plain.rules_.partitions
    ]
    assert found.score_ == plain.score_
    assert [p.rows for p in found.rules_.partitions] == pytest.approx(
        [p.rows * weight for p in plain.rules_.partitions], rel=1e-12
    )
    assert [each.objective for each in found.rounds_] == pytest.approx(
        [each.objective * weight for each in plain.rounds_], rel=1e-9
    )


@SOME
@given(labelled(max_rows=20, max_columns=3), st.data(), OF_WEIGHTS)
def test_weights_of_any_kind_are_counted(
    data: Labelled, draw: st.DataObject, options: dict[str, Any]
) -> None:
    """Counts are sums of weights, the routed score is that of weights, the objective never rises;
    and weights that are all three times as much give the same rules."""
    some = st.sampled_from([0.3, 1.0, 1.7, 250.0])
    n = len(data.y)
    weights = np.array(draw.draw(st.lists(some, min_size=n, max_size=n)))
    model = _weighed(data, weights, **options)
    rules, routed = model.rules_, model.rules_.route(data.X)
    heavy = np.bincount(routed, weights, len(rules.partitions))
    assert [p.rows for p in rules.partitions] == pytest.approx(heavy.tolist(), rel=1e-9)
    assert list(rules.totals) == pytest.approx(np.bincount(data.y, weights).tolist(), rel=1e-9)
    predicted = model.predict(data.X)
    if data.n_classes == 2:
        positive = rules.classes.index(rules.positive)
        score = f1_score(
            data.y, predicted, pos_label=positive, sample_weight=weights, zero_division=0.0
        )
    else:
        score = accuracy_score(data.y, predicted, sample_weight=weights)
    assert model.routed_score_ == pytest.approx(score, abs=1e-9)
    for each in model.rounds_:
        assert each.objective <= each.objective_before * (1 + 1e-9)
        assert each.objective == pytest.approx(each.error + each.locality)
    twice = _weighed(data, weights * 2.0, **options)
    assert [r.clauses for r in twice.rules_] == [r.clauses for r in rules]


def test_many_rows_are_weighed_as_if_they_were_written_out() -> None:
    """Beyond some times as many rows nothing is written out; on data without ties the rules are the
    same as if it were, and so is the objective but for rounding."""
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(0, 1, (300, 3)), rng.normal(9, 1, (300, 3))])
    y = np.r_[X[:300, 0] > 1.2, X[300:, 0] < 7.8].astype(np.int32)
    data, weights = Labelled(X, y, 2, None), rng.integers(1, 6, 600).astype(float)
    written = _weighed(data, weights, n_partitions=4)
    with patch("stair.learn.alike.MOST_WRITTEN", 0):
        weighed = _weighed(data, weights, n_partitions=4)
    assert [(r.clauses, r.counts) for r in weighed.rules_] == [
        (r.clauses, r.counts) for r in written.rules_
    ]
    assert [p.description for p in weighed.rules_.partitions] == [
        p.description for p in written.rules_.partitions
    ]
    for one, other in zip(weighed.rounds_, written.rounds_, strict=True):
        assert one == pytest.approx(other)
    assert [r.clauses for r in written.rules_] != [r.clauses for r in _fitted(data).rules_]


def test_heavy_rows_need_no_memory() -> None:
    """Rows of weight 10⁹ are not written out, and it is between them that partitions lie."""
    X = np.r_[np.zeros(20), np.ones(20), 50.0, 51.0][:, None]
    y = np.r_[np.zeros(20), np.ones(20), 0, 1].astype(int)
    weights = np.r_[np.ones(40), 1e9, 1e9 + 1]
    model = LocalStair(n_partitions=2, max_rounds=1, random_state=0)
    rules = model.fit(X, y, sample_weight=weights).rules_
    assert list(rules.totals) == [1e9 + 20, 1e9 + 21]
    assert sorted(p.rows for p in rules.partitions) == [1e9 + 1, 1e9 + 40]
    assert sorted(p.rows for p in model.fit(X, y).rules_.partitions) == [2.0, 40.0]


def test_two_clusters_with_rules_of_their_own() -> None:
    """In one cluster the high values are unusual, in the other the low ones: one clause each."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(0, 1, (300, 2)), rng.normal(30, 1, (300, 2))])
    y = np.r_[X[:300, 0] > 1.2, X[300:, 0] < 28.8].astype(int)
    model = LocalStair(n_partitions=2, random_state=0).fit(X, y)
    assert model.routed_score_ > 0.8
    assert model.rules_.total_length == 4
    assert {p.description for p in model.rules_.partitions} == {"x0 ≤ 10", "x0 > 10"}
    said = str(model.explain([5.0, 0.0]))
    assert said.startswith("Outlier in partition")
    assert "x0 5 > 1." in said


def test_the_paper_floor_is_on_the_assigned_score() -> None:
    """`floor_on` says which score must exceed the floor; both are there either way."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] * X[:, 1] > 0.8).astype(int)
    for floor_on in ("routed", "assigned"):
        model = LocalStair(floor_on=floor_on, random_state=0).fit(X, y)
        named = model.routed_score_ if floor_on == "routed" else model.assigned_score_
        assert model.score_ == named > 0.8
        assert model.floor_reached_


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.repeat([[0.0, 1.0], [5.0, 1.0]], 10, axis=0), [0] * 10 + [1] * 10),  # duplicates
        (np.column_stack([np.arange(12.0), np.ones(12)]), [0, 1] * 6),  # a constant column
        (np.array([[0.0], [1.0], [100.0]]), [0, 1, 1]),  # partitions of one row and one class
        (np.array([[math.nan], [1.0], [2.0], [math.nan]]), [1, 0, 0, 1]),
    ],
    ids=["duplicates", "constant", "tiny", "missing"],
)
def test_small_and_strange_data_work(X: np.ndarray, y: list[int]) -> None:
    for n in (1, 2, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LocalStair(n_partitions=n, random_state=0).fit(X, y)
        assert (model.rules_.covers(X).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_partitions": 9}, "n_partitions=9 is more than the 4 rows"),
        ({"n_partitions": 0}, "n_partitions=0; expected a whole number of at least 1"),
        ({"n_partitions": "many"}, 'n_partitions="many"'),
        ({"locality": -1}, "locality=-1; expected a number"),
        ({"floor_on": "both"}, "expected routed or assigned"),
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"random_state": "x"}, 'random_state="x"'),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(StairError, match=message):
        LocalStair(**options).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


def test_distances_mean_the_same_for_any_number_of_attributes() -> None:
    """One interquartile range apart in each attribute is a squared distance of 1."""
    for n in (1, 6, 57):
        space = Space(tuple(Dimension(f"x{j}", "number", 10.0, 2.0) for j in range(n)))
        columns = {f"x{j}": np.array([10.0, 12.0, math.nan]) for j in range(n)}
        places = space.place(columns.__getitem__)
        assert squared_distances(places, places[:1])[:, 0] == pytest.approx([0.0, 1.0, 0.0])


def test_categories_times_and_text_have_distances_too() -> None:
    """Two different categories are one range apart; a category that was never seen is nowhere."""
    space = Space((Dimension("c", "category", values=("a", "b")),))
    values = np.array(["a", "b", "a", "z", None], dtype=object)
    places = space.place({"c": values}.__getitem__)
    assert squared_distances(places, places[:1])[:, 0] == pytest.approx([0, 1, 0, 0.5, 0.5])
    space = Space((Dimension("t", "text", values=("refund", "gift")),))
    texts = np.array(["a refund", "a gift", None], dtype=object)
    places = space.place({"t": texts}.__getitem__)
    assert squared_distances(places, places[:1])[:, 0] == pytest.approx([0.0, 1.0, 0.5])
    space = Space((Dimension("d", "time", 0.0, 86_400e6),))
    days = np.array(["1970-01-01", "1970-01-03", "NaT"], dtype="datetime64[us]")
    assert space.place({"d": days}.__getitem__)[:, 0].tolist() == [0.0, 2.0, 0.0]


def test_rows_are_told_apart_by_names_that_no_clause_may_say() -> None:
    """Of 40 towns that have a place in the space twelve may be named: rows of the others were one
    row at the place of the first of them, so that 475 rows were said where 1,002 are."""
    random = np.random.default_rng(0)
    town, x = random.integers(0, 40, 1500), random.integers(0, 3, 1500).astype(float)
    y = ((town < 12) & (x == 0) | (town > 30) & (x == 2)).astype(int)
    table = {"town": np.array([f"t{k}" for k in town], dtype=object), "x": x}
    rules = summarize(table, labels=y, method="local", validate=0).rules
    numbers = rules.routing.of(table.__getitem__, len(y))
    partitions = rules.routing.partitions
    assert [p.rows for p in partitions] == np.bincount(numbers).tolist()
    order = random.permutation(len(y))
    shuffled = {name: array[order] for name, array in table.items()}
    assert summarize(shuffled, labels=y[order], method="local", validate=0).rules == rules


def test_local_rules_travel_and_apply() -> None:
    """Through summarize, JSON, apply and explain on a mixed table, with the routing in the file."""
    table = {name: values[:1500] for name, values in payments().items()}
    summary = summarize(table, labels="flagged", method=LocalStair(n_partitions=4))
    assert summary.floor_reached
    values = summary._values
    predicted = summary.rules.predict(values) == "outlier"
    assert summary.score == pytest.approx(f1_score(table["flagged"], predicted))
    saved = from_json(to_json(summary))
    assert saved.rules == summary.rules
    applied = apply_rules(saved, table)
    assert ((applied.labels == "outlier") == predicted).all()
    assert "Routed F1" in str(summary)
    assert "Assigned" in str(summary)
    assert "in partition" in str(summary.explain(pd.DataFrame(table).iloc[3]))
    assert sum(len(summary.matching_rows(rule)) for rule in summary.rules) == 1500


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"scale"', '"skale"'),
        ('"partitions": [', '"partitions": [{},'),
        ('"center": [', '"center": [0,'),
    ],
)
def test_a_damaged_routing_is_told(old: str, new: str) -> None:
    """A word that is missing, a partition without a center, a center of another space."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    text = to_json(
        summarize(X, labels=(X[:, 0] > 1).astype(int), method=LocalStair(n_partitions=2))
    )
    assert old in text
    with pytest.raises(StairError, match="is damaged"):
        from_json(text.replace(old, new))


def test_more_classes_are_scored_by_accuracy() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] > 0.5, 2, np.where(X[:, 1] > 0.5, 1, 0))
    model = LocalStair(min_score=0.9, random_state=0).fit(X, y)
    assert model.routed_score_ == pytest.approx(accuracy_score(y, model.predict(X)))
    assert model.routed_score_ > 0.9


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_sql_routes_each_row_to_its_partition(dialect: str, tmp_path: Any) -> None:
    """The query finds the nearest center itself, on numbers, categories, times and text."""
    table = {name: values[:1200] for name, values in payments().items()}
    summary = summarize(table, labels="flagged", method=LocalStair(n_partitions=4))
    expected = summary.rules.assign(summary._values) + 1
    query = summary.to_sql("payments", dialect=dialect).rstrip().rstrip(";")
    query = f"SELECT coalesce(stair_rule, 0) FROM ({query}\n) AS s ORDER BY id"
    frame = pd.DataFrame(table)
    if dialect == "duckdb":
        import duckdb

        with duckdb.connect() as con:
            con.register("frame", frame)
            con.execute("CREATE TABLE payments AS SELECT * FROM frame")
            found = [row[0] for row in con.execute(query).fetchall()]
    else:
        import sqlite3

        con = sqlite3.connect(tmp_path / "p.db")
        frame.to_sql("payments", con, index=False)
        found = [row[0] for row in con.execute(query).fetchall()]
        con.close()
    assert found == expected.tolist()


def test_the_map_and_the_curve_are_saved_by_one_call(tmp_path: Any) -> None:
    """Two pictures from a summary; a plain sentence where there is nothing to draw."""
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(9, 1, (60, 2))])
    y = (np.abs(X[:, 0] - 9 * (X[:, 1] > 4)) > 1.5).astype(int)
    summary = summarize(X, labels=y, method=LocalStair(n_partitions=2))
    summary.plot_partitions(tmp_path / "map.png")
    summary.plot_stabilizer(tmp_path / "m.svg")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "m.svg").read_bytes()
    with pytest.raises(StairError, match="the map needs partitions"):
        summarize(X, labels=y).plot_partitions()
    with pytest.raises(StairError, match="leaves no trace"):
        summarize(X, labels=y, method="cart").plot_stabilizer()
    with pytest.raises(StairError, match="cannot write the picture"):
        summary.plot_stabilizer(tmp_path / "nowhere" / "m.png")


def test_the_tree_of_a_partition_that_did_not_change_is_not_rebuilt() -> None:
    """The same rows give the very same engine and root; other rows make new ones."""
    from stair.learn.partition import _Trees
    from stair.learn.table import Table
    from stair.rules.columns import Numbers
    from stair.rules.schema import Schema, Values

    X = np.arange(12.0).reshape(6, 2)
    table = Table(
        Schema.of_numbers("ab"), (Numbers("a", 0), Numbers("b", 1)), X,
        Values({"a": X[:, 0], "b": X[:, 1]}, 6),
    )  # fmt: skip
    trees = _Trees(Alike(table, np.array([0, 1, 0, 1, 0, 1], dtype=np.int32), None), 2, 1)
    first, second = trees.of([np.array([0, 1, 2]), np.array([3, 4, 5])])
    again, other = trees.of([np.array([0, 1, 2]), np.array([3, 4])])
    assert again is first
    assert other is not second


def test_html_shows_both_scores_and_the_partitions() -> None:
    table = {name: values[:800] for name, values in payments().items()}
    html = summarize(table, labels="flagged", method=LocalStair(n_partitions=2)).to_html()
    assert "Routed F1" in html
    assert "Assigned" in html
    assert "Partition 1" in html
