"""What is a memory of rows never enters a rule: tokens, cards, names of a few rows, lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stair
from settings import quick
from stair.rules.clauses import Among
from stair.rules.columns import MOST_VALUES, ROWS_A_VALUE

METHODS = ["distilled", "stair", "refined", "local"]
SOME = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))


def _repeated(tokens: list[Any], share: float, random: np.random.Generator) -> list[Any]:
    found = list(tokens)
    for row in random.permutation(len(tokens))[: int(share * len(tokens))]:
        found[row] = tokens[random.integers(len(tokens))]
    return found


@SOME
@given(
    st.sampled_from(METHODS),
    st.integers(60, 300),
    st.floats(0, 0.5),
    st.sampled_from(["letters", "digits", "long numbers", "hashes"]),
    st.integers(0, 2**32 - 1),
)
def test_random_tokens_never_enter_a_rule(
    method: str, n: int, share: float, look: str, seed: int
) -> None:
    """Of any alphabet, whole numbers too, with up to half of the rows repeated: whatever the labels
    are, no method speaks of them."""
    random = np.random.default_rng(seed)
    if look == "letters":
        tokens: list[Any] = ["".join(random.choice(list("abcdefgh"), 12)) for _ in range(n)]
    elif look == "digits":
        tokens = [f"{k:09d}" for k in random.integers(0, 10**9, n)]
    elif look == "long numbers":
        tokens = random.integers(4 * 10**15, 6 * 10**15, n).tolist()
    else:
        tokens = random.integers(0, 2**63, n).tolist()
    table = {"token": _repeated(tokens, share, random), "x": random.normal(size=n)}
    labels = (random.random(n) < 0.2).astype(int)
    labels[:2] = [0, 1]
    summary = stair.summarize(table, labels, min_score=0.3, validate=0, method=quick(method))
    assert "token" in summary.left_out
    assert "token" not in summary.rules.used


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [0.0, 0.005, 0.1])
@pytest.mark.parametrize("as_text", [True, False])
def test_cards_are_no_explanation(method: str, share: float, as_text: bool) -> None:
    """`card in {… 106 more}` with F1 1.00, where amt > 90 and k > 3.5 was planted: whether no card
    repeats, one does, or a tenth of them do, as text or as numbers."""
    random = np.random.default_rng(0)
    n = 1000
    amount, k = random.uniform(0, 100, n).round(2), random.integers(0, 6, n)
    cards = random.integers(4 * 10**15, 5 * 10**15, n).tolist()
    cards = _repeated([f"{c}x" if as_text else c for c in cards], share, random)
    labels = ((amount > 90) & (k > 3.5)).astype(int)
    table = {"card": cards, "amt": amount, "k": k}
    summary = stair.summarize(table, labels, method=method, min_score=0.9, validate=0)
    assert summary.rules.used == {"amt", "k"}
    assert summary.score > 0.9
    if method == "distilled":
        (rule,) = summary.rules
        assert rule.length == 2
        assert set(rule.features) == {"amt", "k"}


@SOME
@given(st.sampled_from(METHODS), st.integers(5, 60), st.integers(0, 2**32 - 1))
def test_rare_values_and_long_lists_are_never_said(method: str, n_names: int, seed: int) -> None:
    """STAIR, refined and local rules listed as many names as they liked, with a row each."""
    random = np.random.default_rng(seed)
    n = 400
    names = np.array([f"n{k}" for k in random.zipf(1.5, n) % n_names], dtype=object)
    bad = random.random(n_names) < 0.4
    labels = np.array([int(bad[int(name[1:])]) for name in names])
    labels[:2] = [0, 1]
    table = {"name": names, "x": random.normal(size=n)}
    summary = stair.summarize(
        table,
        labels,
        min_score=0.5,
        validate=0,
        kinds={"name": "category"},
        method=quick(method),
    )
    for rule in summary.rules:
        for clause in rule.clauses:
            if isinstance(clause, Among):
                assert len(clause.values) <= MOST_VALUES
                assert all((names == value).sum() >= ROWS_A_VALUE for value in clause.values)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_limits_hold_for_data_that_does_not_fit(tmp_path: Any, engine: str) -> None:
    """Codes of large data share one for all values that may not be named."""
    random = np.random.default_rng(0)
    n = 3000
    names = [f"n{k}" for k in random.zipf(1.4, n) % 80]
    labels = [int(int(name[1:]) % 2) for name in names]
    frame = pd.DataFrame({"name": names, "x": random.normal(size=n), "label": labels})
    frame.to_parquet(tmp_path / "t.parquet")
    summary = stair.summarize(
        tmp_path / "t.parquet",
        "label",
        engine=engine,
        min_score=0.7,
        method=stair.Stair(max_values=6),
    )
    lists = [c for rule in summary.rules for c in rule.clauses if isinstance(c, Among)]
    assert lists
    assert all(len(clause.values) <= 6 for clause in lists)
    told = summary.rules.predict(frame)
    assert [int(e.rows) for e in summary.evidence] == [
        int((summary.rules.assign(frame) == k).sum()) for k in range(len(summary.rules))
    ]
    assert set(told) <= {"outlier", "inlier"} | {0, 1}
    if engine == "duckdb":
        summary.to_html(tmp_path / "report.html")


def test_names_with_a_few_rows_each_tell_nothing_by_chance() -> None:
    """600 nurses in 4,000 rows: a dozen of them had outliers by chance, and were the rule. With
    names that do tell something they are found."""
    random = np.random.default_rng(0)
    nurse = np.array([f"nurse {k}" for k in random.integers(0, 600, 4000)], dtype=object)
    table = {"nurse": nurse, "x": random.normal(size=4000)}
    noise = (random.random(4000) < 0.06).astype(int)
    for method in ("distilled", "stair"):
        summary = stair.summarize(table, noise, method=method, min_score=0.3, validate=0)
        assert "nurse" not in summary.rules.used
    told = np.isin(nurse, ["nurse 7", "nurse 8", "nurse 9"]).astype(int)
    summary = stair.summarize(table, told, min_score=0.9, validate=0)
    assert [str(rule) for rule in summary.rules] == ['nurse in {"nurse 7", "nurse 8", "nurse 9"}']


# --- numbers that are codes -----------------------------------------------------------------------


def _ports(bad: list[int]) -> tuple[dict[str, Any], Any]:
    random = np.random.default_rng(1)
    port = random.choice([21, 22, 25, 53, 80, 443, 444, 3389, 8080], 3000)
    return {"Dst Port": port, "x": random.normal(size=3000)}, np.isin(port, bad).astype(int)


def test_ports_are_named_where_no_interval_says_it() -> None:
    """`443.5 < "Dst Port" ≤ 444.5` was port 444, and three ports were three rules."""
    table, labels = _ports([22, 444, 8080])
    summary = stair.summarize(table, labels, min_score=0.9, validate=0)
    assert [str(rule) for rule in summary.rules] == ['"Dst Port" in {22, 444, 8080}']
    assert summary.rules.total_length == 1
    assert stair.export.from_json(summary.to_json()).rules == summary.rules
    assert "Dst Port" in summary.to_html()
    one = stair.summarize(table, _ports([444])[1], min_score=0.9, validate=0)
    assert [str(rule) for rule in one.rules] == ['"Dst Port" = 444']
    high = stair.summarize(table, _ports([443, 444, 3389, 8080])[1], min_score=0.9, validate=0)
    assert high.rules.total_length == 1


def test_amounts_are_never_named() -> None:
    """Ages, hours and counts have an order, and a list of them would be a way around it."""
    random = np.random.default_rng(0)
    hour, age = random.integers(0, 24, 2000), random.integers(18, 90, 2000)
    labels = (np.isin(hour, [2, 9, 17]) & (age > 40)).astype(int)
    summary = stair.summarize({"hour": hour, "age": age}, labels, min_score=0.8, validate=0)
    assert not any(isinstance(c, Among) for rule in summary.rules for c in rule.clauses)
