"""Weights: shares, floors and figures are of weight, recounted row by row by plain code; and every
output says so."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stair
from command import run as run_command
from stair import CART, ID3, ColumnWish, DistilledStair, LocalStair, Stair, StairError
from stair.data import write_table
from stair.data.weights import percentiles
from stair.demo import payments
from strategies import examples
from wished import WISHES, Table, tables

QUICK = settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
WEIGHTS = st.sampled_from([[1.0, 2.0, 5.0], [0.5, 0.25], [12.34, 0.01, 999.99], [1e-9, 1e9], [3.0]])


@QUICK
@given(tables(), WEIGHTS, WISHES, st.sampled_from(["distilled", "stair", "local", "cart"]))
def test_figures_are_of_weight(
    table: Table, amounts: list[float], wished: dict[str, Any], method: str
) -> None:
    """Score, precision, recall, each rule's share and each wish, by every method."""
    random = np.random.default_rng(len(table.y))
    weights = random.choice(amounts, len(table.y))
    how: Any = method
    if method == "distilled":
        how = DistilledStair(effort="fast", min_outliers=1, **wished)
    found = stair.summarize(table.columns, table.y, method=how, validate=0, weights=weights)
    own = table.y == 1
    numbers = [k for k, rule in enumerate(found.rules) if rule.label == found.rules.positive]
    covered = found.rules.covers(found._values)
    alerts = found.rules.assign(table.columns)
    said = np.isin(alerts, numbers)
    hits, called = math.fsum(weights[said & own]), math.fsum(weights[said])
    total = math.fsum(weights[own])
    assert found.recall == pytest.approx(hits / total)
    assert found.precision == pytest.approx(hits / called if called else math.nan, nan_ok=True)
    f1 = 2 * hits / (called + total) if called else 0.0
    assert float(found.score) == pytest.approx(f1)
    assert found.score_of_rows == pytest.approx(
        2 * (said & own).sum() / (said.sum() + own.sum()) if said.any() else 0.0
    )
    for k, each in enumerate(found.evidence):
        rows = covered[:, k]
        right = rows & (table.y == found.rules.classes.index(each.rule.label))
        assert (each.rows, each.hits) == (rows.sum(), right.sum())
        assert each.precision == pytest.approx(math.fsum(weights[right]) / math.fsum(weights[rows]))
    for outcome in found.outcomes:
        if outcome.name == "min_recall":
            assert outcome.got == pytest.approx(hits / total)
        if outcome.name == "max_alerts":  # a number of rows, whatever they weigh
            assert outcome.got * (len(table.y) if outcome.asked < 1 else 1) == said.sum()
    facts = json.loads(found.to_json())["facts"]
    assert facts["weights"]["outliers"] == pytest.approx(total)
    assert facts["weights"]["hits"] == pytest.approx(hits)
    assert facts["score"] == pytest.approx(found.score_of_rows)
    assert "of the weight" in str(found)
    assert "of the weight" in found.to_html()


def test_the_money_at_stake_not_the_rows() -> None:
    """Nine tenths of the amount lie in one row of ten: the rules are about these."""
    data = payments()
    amount = np.asarray(data["amount"])
    plain = stair.summarize(data, "flagged", min_score=0.85, validate=0)
    heavy = stair.summarize(data, "flagged", min_score=0.85, weights="amount")
    assert heavy.rules.total_length < plain.rules.total_length
    own = np.asarray(data["flagged"]) == 1
    said = heavy.rules.covers(data).any(axis=1)
    share = amount[said & own].sum() / amount[own].sum()
    text = str(heavy)
    assert f"the rules explain {share:.0%} of the amount of outliers" in " ".join(text.split())
    assert "of the amount" in heavy.to_html()
    assert "of the amount" in heavy._repr_html_().lower()
    assert heavy.check is not None
    assert heavy.check.learned == pytest.approx(float(heavy.score))
    as_array = stair.summarize(data, "flagged", min_score=0.85, weights=amount, validate=0)
    assert as_array.rules.rules == heavy.rules.rules
    frame = pytest.importorskip("pandas").DataFrame(data).drop(columns=["id"])
    X, y = frame.drop(columns=["flagged"]), frame["flagged"]
    by_name = DistilledStair(0.85, random_state=0).fit(X, y, sample_weight="amount")
    assert [r.clauses for r in by_name.rules_] == [r.clauses for r in heavy.rules]


def test_rows_of_weight_zero_are_left_out_and_it_is_said() -> None:
    data = {"a": np.arange(60.0), "y": (np.arange(60) > 49).astype(int)}
    weights = np.ones(60)
    weights[[3, 55]] = 0
    found = stair.summarize(data, "y", weights=weights, validate=0)
    assert found.n_rows == 58
    assert "2 rows have the weight 0 and are left out" in found.notes


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("amunt", 'no column "amunt" in the data. Did you mean "amount"?'),
        ("country", "has values that are no numbers"),
        (np.ones(3), "weights has 3 values, but the data has 60 rows"),
        (-np.ones(60), "has 60 negative values, the least -1"),
        (np.full(60, np.nan), "is missing or infinite in 60 rows"),
        (np.zeros(60), "is 0 in all rows"),
        (np.arange(60) < 50, "is 0 in all rows of a class"),
    ],
)  # fmt: skip
def test_bad_weights_get_one_sentence(weights: Any, message: str) -> None:
    data = {"amount": np.arange(60.0), "country": np.array(["DE", "FR", "IT"] * 20)}
    y = (np.arange(60) > 49).astype(int)
    with pytest.raises(StairError) as error:
        stair.summarize(data, y, weights=weights)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_where_weights_do_not_go() -> None:
    data = payments()
    kinds = np.where(data["flagged"] == 1, np.where(data["amount"] > 500, "a", "b"), "ok")
    with pytest.raises(StairError, match="is for one kind of outlier, but there are several"):
        stair.summarize(data, kinds, positive=stair.AllBut("ok"), weights="amount")
    with pytest.raises(StairError, match="weights= with the method stair is for rows in memory"):
        stair.summarize("x.csv", "y", weights="z", engine="duckdb", method="stair")
    with pytest.raises(StairError, match='take method="distilled"'):
        stair.summarize("x.csv", "y", weights="z", engine="cuda", method="cart")
    for model in (Stair(), ID3(), CART(), LocalStair(n_partitions=2, max_rounds=1),
                  DistilledStair(effort="fast")):  # fmt: skip
        X = np.column_stack([data["amount"], data["hour"]])
        model.fit(X, data["flagged"], sample_weight=data["amount"])


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 5)), min_size=1, max_size=30),
    st.lists(st.floats(0, 100), min_size=1, max_size=4),
)
def test_percentiles_are_those_of_numpy_with_every_value_written_out(
    rows: list[tuple[float, int]], shares: list[float]
) -> None:
    values, times = np.array([x for x, _ in rows]), np.array([n for _, n in rows])
    found = percentiles(values, times, shares)
    assert found.tolist() == np.percentile(np.repeat(values, times), shares).tolist()


def test_partitions_are_weighed_and_say_so() -> None:
    """In L-STAIR the floor, the shares and both scores are of weight, and rows are counted beside
    it; each partition has the rows that are routed to it."""
    data = {name: values[:1500] for name, values in payments().items()}
    how = LocalStair(n_partitions=2)
    found = stair.summarize(data, "flagged", weights="amount", method=how, validate=0)
    is_outlier = data["flagged"] == 1
    alerts = found.rules.predict(found._values) == "outlier"
    hits = float(data["amount"][alerts & is_outlier].sum())
    said = float(data["amount"][alerts].sum() + data["amount"][is_outlier].sum())
    assert found.score == pytest.approx(2 * hits / said)
    assert found.rules.routing.routed == pytest.approx(found.score)
    assert found.recall == pytest.approx(hits / float(data["amount"][is_outlier].sum()))
    text = str(found)
    assert "of the amount: what a new row gets" in text
    assert "right  of the amount" in text
    assert sum(p.rows for p in found.rules.partitions) == 1500


class Done(NamedTuple):
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, cwd: Path) -> Done:
    done = run_command(*arguments, cwd=cwd)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def _pay(folder: Path) -> None:
    write_table(folder / "pay.csv", {name: v[:1500] for name, v in payments().items()})


def test_the_command_weighs_and_says_so(tmp_path: Path) -> None:
    _pay(tmp_path)
    done = run("summarize", "pay.csv", "--label", "flagged", "--weights", "amount", "--min-recall",
               "0.7", "--min-precision", "0.8", "--no-validate", "--json", "rules.json",
               cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "of the amount of outliers explained (at least 70%)" in " ".join(done.stdout.split())
    facts = json.loads((tmp_path / "rules.json").read_text())["facts"]
    assert facts["weights"]["name"] == "amount"
    assert facts["settings"]["weights"] == "amount"
    assert [wish["met"] for wish in facts["wishes"]] == [True, True]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--weights", "amunt"], 'no column "amunt"'),
        (["--direction", "amunt=up"], 'no column "amunt"'),
        (["--direction", "country=up"], "only numbers and times have a direction"),
        (["--min-precision", "1.2"], "--min-precision 1.2; expected a number from 0 to 1"),
        (["--max-alerts", "0"], "--max-alerts"),
        (["--never", "amount", "--cost", "amount=2"], "contradict each other"),
        (["--never", "amount", "--include", "amount"], "contradict each other"),
        (["--cost", "amount"], "expected COLUMN=NUMBER"),
        (["--cost", "amount=two"], "expected a whole number from 1"),
        (["--columns", "none.toml"], "none.toml"),
        (["--columns", "bad.toml", "--cost", "amount=3"], "say one of them"),
        (["--method", "stair", "--max-alerts", "9"], "has no --max-alerts"),
        (["--method", "cart", "--cost", "amount=3"], "chooses cuts in its own way"),
    ],
)  # fmt: skip
def test_bad_wishes_in_the_command(tmp_path: Path, flags: list[str], message: str) -> None:
    """One sentence, exit code 2, and nothing is written."""
    _pay(tmp_path)
    (tmp_path / "bad.toml").write_text("[amount]\ncost = 2\n")
    before = sorted(tmp_path.iterdir())
    done = run("summarize", "pay.csv", "--label", "flagged", "--json", "rules.json", *flags,
               cwd=tmp_path)  # fmt: skip
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_wishes_that_cannot_be_had_end_with_code_1(tmp_path: Path) -> None:
    _pay(tmp_path)
    done = run("summarize", "pay.csv", "--label", "flagged", "--min-recall", "0.9", "--max-alerts",
               "20", "--no-validate", "--effort", "fast", "--json", "rules.json",
               cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1
    assert "not all that was wished can be had together" in done.stderr
    assert "of outliers explained in place of at least 90%" in done.stderr
    facts = json.loads((tmp_path / "rules.json").read_text())["facts"]
    assert {w["name"]: w["met"] for w in facts["wishes"]} == {
        "min_recall": False, "max_alerts": True,
    }  # fmt: skip


def test_a_cost_alone_changes_no_other_wish() -> None:
    known = {"amount": ColumnWish(cost=2)}
    found = stair.summarize(payments(), "flagged", method=DistilledStair(column_wishes=known),
                            validate=0)  # fmt: skip
    assert found.costly_length is not None
    assert found.costly_length > found.rules.total_length
    assert found.floor_reached
