"""Distilled rules for data that does not fit: looked for in samples, chosen on all rows."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import stair
from large import files, mixed
from settings import summarize
from stair.learn.distill.given import pick
from stair.rules.rule_set import Rule
from stair.rules.schema import Field, Schema
from stair.scale.census import Census
from stair.scale.coding import Coder, Coding
from stair.scale.distilled import ROUNDS
from stair.scale.draw import SHARES, Sample, Tier
from stair.scale.raw import Batch, from_loaded
from strategies import examples

# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")

ENGINES = ["duckdb", "dask"]
FAST: dict[str, Any] = {"labels": "label", "effort": "fast"}


def planted(n_rows: int = 40_000, common: int = 1500, rare: int = 40) -> pd.DataFrame:
    """Two kinds of outliers in the midst of the inliers, one of them rare."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=list("abcd"))
    boxes = [("a", "b", common), ("c", "d", rare)]
    kind = np.zeros(n_rows, dtype=int)
    kind[rng.permutation(n_rows)[: common + rare]] = np.repeat([1, 2], [common, rare])
    for number, (x, y, n) in enumerate(boxes, start=1):
        inside = frame[x].between(0.5, 0.9) & frame[y].between(-0.4, 0.1)
        frame.loc[inside, x] += 0.5
        frame.loc[kind == number, x] = rng.uniform(0.5, 0.9, n)
        frame.loc[kind == number, y] = rng.uniform(-0.4, 0.1, n)
    return frame.assign(label=(kind > 0).astype(int))


def counted(summary: stair.Summary, frame: pd.DataFrame) -> float:
    """F1 as DuckDB counts it on all rows, by the SQL of the rules."""
    import duckdb

    with duckdb.connect() as con:
        con.register("payments", frame)
        query = summary.to_sql("payments").rstrip().removesuffix(";")
        rows = con.execute(
            f"SELECT sum(CAST(stair_label = 'outlier' AND label = 1 AS INT)), "
            f"sum(CAST(stair_label = 'outlier' AS INT)), sum(label) FROM ({query}\n)"
        ).fetchall()
    hits, told, there = map(int, rows[0])
    return 2.0 * hits / (told + there)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rare_kind_that_the_sample_misses_is_found_by_a_later_round(
    tmp_path: Path, engine: str
) -> None:
    """A sample of 400 rows has some five of the rare kind: too few to say what they are. Without
    them F1 is at most 0.987, so that the floor asks for them; the next rounds draw what no rule
    explains, until it is reached on all rows."""
    frame = planted()
    pattern = files(frame, tmp_path / "data")
    said: list[str] = []
    found = summarize(
        pattern, engine=engine, sample=400, min_score=0.99, progress=said.append, **FAST
    )
    assert found.method == "distilled"
    rounds = [m for m in said if m.startswith("round") and "on all rows" in m]
    assert len(rounds) > 1
    assert {frozenset(rule.features) for rule in found.rules} == {
        frozenset("ab"), frozenset("cd"),
    }  # fmt: skip
    assert found.score == counted(found, frame) > 0.99
    assert any("counted and chosen on all rows" in note for note in found.notes)


def test_engines_that_read_the_same_rows_in_the_same_order_give_equal_rules(
    tmp_path: Path,
) -> None:
    """However the rows are cut into parts: a row is drawn by its place in the data and the seed.
    Another seed draws others."""
    dd = pytest.importorskip("dask.dataframe")
    frame = planted(20_000, 700, 30)
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {**FAST, "sample": 300, "min_score": 0.98}
    duckdb = summarize(pattern, engine="duckdb", **options)
    again = summarize(pattern, engine="duckdb", **options)
    by_file = summarize(pattern, engine="dask", **options)
    cut_otherwise = dd.from_pandas(frame, npartitions=7)
    for other in (again, by_file, summarize(cut_otherwise, engine="dask", **options)):
        assert other.rules == duckdb.rules
        assert (other.evidence, other.rest) == (duckdb.evidence, duckdb.rest)
        assert (other.score, other.unexplained) == (duckdb.score, duckdb.unexplained)
        assert (other.certificate, other.notes) == (duckdb.certificate, duckdb.notes)
    assert summarize(pattern, engine="duckdb", random_state=1, **options).floor_reached


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_classes=st.sampled_from([2, 2, 3]),
    floor=st.sampled_from([0.3, 0.6, 0.8]),
    sample=st.sampled_from([150, 400, 5000]),
)
def test_every_figure_is_that_of_all_rows(
    tmp_path_factory: pytest.TempPathFactory, seed: int, n_classes: int, floor: float, sample: int
) -> None:
    """Columns of every kind with missing values, and labels of which some are wrong: score, counts
    and evidence are those of the rules on all rows, and the floor is reached or it is said."""
    frame = mixed(seed, 900, n_classes)
    pattern = files(frame, tmp_path_factory.mktemp("data"))
    found = summarize(
        pattern, engine="duckdb", sample=sample, min_score=floor, max_rule_length=3,
        positive=stair.AllBut(), **FAST,
    )  # fmt: skip
    rules = found.rules
    told = rules.predict(frame.drop(columns="label"))
    if n_classes == 2:
        right = (told == "outlier") & (frame.label == 1)
        score = 2 * right.sum() / ((told == "outlier").sum() + frame.label.sum())
    else:
        score = (told == np.array(rules.classes)[frame.label]).mean()
    assert found.score == pytest.approx(score, abs=1e-12)
    said = [note for note in found.notes if "the floor was not reached" in note]
    assert found.floor_reached == (not said) == (score > floor)
    covered = rules.covers(frame.drop(columns="label"))
    once = covered.sum(axis=1) == 1
    for rule, evidence, rows in zip(rules, found.evidence, covered.T, strict=True):
        own = np.array(rules.classes)[frame.label] == rule.label
        assert [n for _, n in rule.counts] == np.bincount(
            frame.label[rows], minlength=n_classes
        ).tolist()
        assert (evidence.rows, evidence.hits) == (rows.sum(), (rows & own).sum())
        assert evidence.alone == (rows & own & once).sum()
        for clause, shares in zip(rule.clauses, evidence.clauses, strict=True):
            by_itself = stair.rules.rule_set.RuleSet(
                (Rule((clause,), rule.label),), rules.classes, rules.schema, rules.default,
                rules.totals, rules.positive,
            )  # fmt: skip
            met = by_itself.covers(frame.drop(columns="label"))[:, 0]
            assert shares.of_outliers == pytest.approx(met[own].mean())
            assert shares.of_inliers == pytest.approx(met[~own].mean())
    assert found.rest.rows == int((covered.sum(axis=1) == 0).sum())


@pytest.mark.parametrize("engine", ENGINES)
def test_what_fits_in_the_sample_gives_the_rules_of_the_memory_engine(
    tmp_path: Path, engine: str
) -> None:
    """The same search on the same rows, and then a choice among what it found."""
    frame = mixed(5, 1500)
    pattern = files(frame, tmp_path / "data")
    small = summarize(frame, min_score=0.6, **FAST)
    large = summarize(pattern, engine=engine, min_score=0.6, **FAST)
    assert large.rules == small.rules
    assert (large.evidence, large.rest) == (small.evidence, small.rest)
    assert (large.score, large.unexplained) == (small.score, small.unexplained)
    assert not any("sample" in note for note in large.notes)


def test_a_floor_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    """Labels that have nothing to do with the rows: the rounds end, and the best there is comes
    with a score that is counted on all rows, below the floor."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(6000, 3)), columns=list("abc"))
    frame["label"] = (rng.random(6000) < 0.1).astype(int)
    pattern = files(frame, tmp_path / "data")
    said: list[str] = []
    found = summarize(
        pattern, engine="duckdb", sample=300, min_score=0.9, progress=said.append, **FAST
    )
    assert found.score == counted(found, frame) < 0.9
    assert not found.floor_reached
    rounds = sum(m.startswith("round") and "on all rows" in m for m in said)
    assert rounds <= ROUNDS
    assert f"the floor was not reached on all rows in {rounds} rounds" in found.notes
    assert "The floor was not reached" in str(found)


def test_limits_hold_on_all_rows(tmp_path: Path) -> None:
    """The least outliers of a rule and the total length are limits on all rows, whatever a sample
    has of them."""
    frame = planted(20_000, 700, 30)
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {**FAST, "engine": "duckdb", "sample": 400, "min_score": 0.97}
    many = summarize(pattern, min_outliers=100, **options)
    assert many.rules
    assert all(rule.hits >= 100 for rule in many.rules)
    short = summarize(pattern, max_total_length=2, **options)
    assert 0 < short.rules.total_length <= 2


def test_nothing_of_distilled_rules_is_kept_in_a_folder(tmp_path: Path) -> None:
    """DuckDB spills there and tidies up; a folder that would hold nothing is refused."""
    frame = mixed(8, 300)
    pattern = files(frame, tmp_path / "data")
    work = tmp_path / "work"
    work.mkdir()
    options: dict[str, Any] = {**FAST, "min_score": 0.3, "work": work}
    summarize(pattern, engine="duckdb", **options)
    assert list(work.iterdir()) == []
    with pytest.raises(stair.StairError, match="distilled keeps nothing in a folder"):
        summarize(pattern, engine="dask", **options)
    with pytest.raises(stair.StairError, match="there is no folder"):
        summarize(pattern, engine="duckdb", **{**options, "work": tmp_path / "none"})


# --- the pieces -----------------------------------------------------------------------------------


@settings(max_examples=examples(60), deadline=None)
@given(
    most=st.integers(1, 60),
    strata=st.lists(st.integers(0, 4), min_size=1, max_size=150),
    cuts=st.lists(st.integers(0, 150), max_size=4),
    in_order=st.booleans(),
)
@example(most=4, strata=[0, 0, 2, 3, 0, 0, 4, 4], cuts=[3], in_order=False)
def test_a_sample_is_the_same_however_the_rows_are_cut(
    most: int, strata: list[int], cuts: list[int], in_order: bool
) -> None:
    """Added part by part, or put together from samples of parts; and no tier has more than its
    share while another one has rows to give. Room that could not be shared evenly went to the
    next tier, whose quota then grew while rows came: one of its rows was gone already."""
    tiers = np.array([Tier.WANTED, Tier.WANTED, Tier.COVERED, Tier.COVERED, Tier.REST])
    x = np.arange(len(strata), dtype=np.float64)
    place = np.array(strata, dtype=np.intp)

    def part(into: Sample, start: int, stop: int) -> None:
        batch = Batch({"x": x[start:stop]})
        into.add(batch, np.arange(stop - start), place[start:stop], start)

    whole = Sample(most, 3, tiers)
    part(whole, 0, len(x))
    bounds = sorted({0, len(x), *(min(cut, len(x)) for cut in cuts)})
    other = Sample(most, 3, tiers)
    for start, stop in itertools.pairwise(bounds):
        if in_order:
            part(other, start, stop)
        else:
            piece = other.fresh()
            part(piece, start, stop)
            other.merge(piece)
    assert other.columns["x"].tolist() == whole.columns["x"].tolist()
    assert (
        other.strata.tolist()
        == whole.strata.tolist()
        == place[whole.columns["x"].astype(int)].tolist()
    )
    assert (
        other.counts.tolist() == whole.counts.tolist() == np.bincount(place, minlength=5).tolist()
    )
    drawn = np.bincount(whole.tiers[whole.strata], minlength=3)
    there = np.bincount(tiers[place], minlength=3)
    assert len(whole.keys) <= most
    for tier, share in SHARES.items():
        room = most // share
        assert drawn[tier] <= room
        assert drawn[tier] == min(there[tier], room)
    assert drawn[Tier.REST] == min(there[Tier.REST], most - drawn[:2].sum())


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 10**6), n_rules=st.sampled_from([0, 1, 5, 70]))
def test_a_census_counts_what_rules_cover(seed: int, n_rules: int) -> None:
    """The small table says of every choice of rules what all rows say, words and gaps included."""
    rng = np.random.default_rng(seed)
    n = 300
    word = rng.choice(np.array(["a", "b", None], dtype=object), n)
    x = np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 9, n) / 2)
    label = np.where(rng.random(n) < 0.1, np.nan, (rng.random(n) < 0.3).astype(float))
    schema = Schema((Field("x", "number", "x"), Field("word", "category", "word", type="text")))
    rules = [
        Rule(
            (
                stair.Interval("x", float(low), float(low) + 1, bool(rng.random() < 0.5)),
                stair.Among("word", ("a",), bool(rng.random() < 0.5), bool(rng.random() < 0.5)),
            )[: rng.integers(1, 3)],
            "outlier",
        )
        for low in rng.integers(-1, 5, n_rules)
    ]
    coder = Coder(Coding((), (), ()), "y", (0.0, 1.0), np.array([0, 1], dtype=np.int32))
    census = Census.that_draws(rules, schema, coder, 2, 0, 50, 0)
    batch = Batch(
        {
            name: from_loaded((array, ""))[0]
            for name, array in {"x": x, "word": word, "y": label}.items()
        }
    )
    census.add(batch, 0)
    table = census.table()
    known = ~np.isnan(label)
    values = schema.read({"x": x, "word": word})
    by_hand = np.ones((n, n_rules), dtype=bool)
    for k, rule in enumerate(rules):
        for clause in rule.clauses:
            by_hand[:, k] &= clause.covers(values[clause.feature])
    assert table.counts.sum() == known.sum()
    for k in range(n_rules):
        expected = np.bincount(label[known & by_hand[:, k]].astype(int), minlength=2)
        assert table.of_rule(k, 2).tolist() == expected.tolist()
    some = rng.random(n_rules) < 0.5
    together = table.by_class(table.covered[:, some].sum(axis=1) > 0, 2)
    expected = np.bincount(label[known & by_hand[:, some].any(axis=1)].astype(int), minlength=2)
    assert together.tolist() == expected.tolist()


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), floor=st.sampled_from([0.5, 0.8, 0.95]))
def test_the_choice_is_the_shortest_of_all_choices(seed: int, floor: float) -> None:
    """Few rules, groups of up to a billion rows: all choices are tried, in whole numbers."""
    rng = np.random.default_rng(seed)
    n_groups, n_rules = 12, 6
    classes = (rng.random(n_groups) < 0.5).astype(np.int32)
    counts = rng.integers(1, 10**9, n_groups)
    covered = rng.random((n_groups, n_rules)) < 0.4
    lengths = rng.integers(1, 4, n_rules).tolist()
    found = pick(
        classes, counts, covered, [1] * n_rules, lengths, n_classes=2, default=0, positive=1,
        min_score=floor, min_outliers=1,
    )  # fmt: skip
    asked = Fraction(str(floor))
    enough = {}
    for chosen in range(1 << n_rules):
        numbers = [k for k in range(n_rules) if chosen >> k & 1]
        inside = covered[:, numbers].any(axis=1)
        hits = int(counts[inside & (classes == 1)].sum())
        told, there = int(counts[inside].sum()), int(counts[classes == 1].sum())
        allowed = all((covered[:, k] & (classes == 1)).any() for k in numbers)
        if allowed and told + there and Fraction(2 * hits, told + there) > asked:
            enough[tuple(numbers)] = sum(lengths[k] for k in numbers)
    assert found.is_enough == bool(enough)
    if enough:
        length = sum(lengths[k] for k in found.numbers)
        assert found.numbers in enough
        assert found.bound <= min(enough.values()) == length


def weighed(n_rows: int = 4000) -> pd.DataFrame:
    """Rows with money; some have none, so that they do not count."""
    frame = mixed(13, n_rows)[["amount", "size", "level", "known", "label"]]
    frame["money"] = np.random.default_rng(4).exponential(size=n_rows)
    frame.loc[::11, "money"] = 0
    return frame


def test_weights_are_the_same_whoever_adds_them(tmp_path: Path) -> None:
    """Rounds by samples of a tenth: with DuckDB, and with Dask whose parts are put together; the
    score is what the rules explain of the money of all rows."""
    frame = weighed()
    path = files(frame, tmp_path / "data")
    wish: dict[str, Any] = {
        **FAST, "weights": "money", "min_score": 0.5, "sample": 400, "validate": 2,
    }  # fmt: skip
    one, other = (summarize(path, engine=engine, **wish) for engine in ENGINES)
    names = ("rules", "score", "evidence", "check", "rest", "weighed", "frontier", "further",
             "certificate", "notes", "n_rows", "unexplained")  # fmt: skip
    for name in names:
        assert getattr(one, name) == getattr(other, name), name
    assert any("round" in note for note in one.notes)
    assert any("the money 0" in note for note in one.notes)
    money = frame.money.to_numpy()
    alerts = np.asarray(one.rules.predict(frame)) == "outlier"
    is_outlier = frame.label.to_numpy() == 1
    both = money[alerts & is_outlier].sum()
    assert one.score == pytest.approx(2 * both / (money[alerts].sum() + money[is_outlier].sum()))
    assert one.weighed is not None
    assert one.weighed.total == pytest.approx(money.sum())
    assert one.weighed.hits == pytest.approx(both)
