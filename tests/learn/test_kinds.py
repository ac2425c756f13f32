"""Several kinds of outlier in one table: rules for each, a floor on each, none lost in silence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import stair
from flows import NORMAL, PLANTED, flows
from stair.rules.objective import f1
from stair.verdict.labels import read_labels
from strategies import examples

IDENTIFIERS = {"Flow ID"}


def scores_of(summary: Any, data: Any, label: NDArray[Any]) -> dict[str, float]:
    """The F1 of each kind by plain counting, from what the rules predict."""
    given_label = np.array(summary.rules.predict(data), dtype=object)
    found = {}
    for kind in summary.kinds:
        hits = int(((given_label == kind.label) & (label == kind.label)).sum())
        alarms = int((given_label == kind.label).sum())
        found[kind.label] = f1(hits, alarms, int((label == kind.label).sum()))
    return found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_flows_as_raw_as_they_come(seed: int) -> None:
    """No rule names an id, each planted kind comes back or is named as missed, and rules hold on
    rows that they were not learned from."""
    data = flows(seed=seed)
    summary = stair.summarize(data, labels="Label", method=stair.DistilledStair(effort="fast"))
    assert {kind.label for kind in summary.kinds} == set(PLANTED)
    named = {feature for rule in summary.rules for feature in rule.features}
    assert not named & IDENTIFIERS
    assert set(summary.left_out) >= IDENTIFIERS
    text = str(summary)
    for kind in summary.kinds:
        own = [rule for rule in summary.rules if rule.label == kind.label]
        if kind.reached:
            speaks_of = {feature for rule in own for feature in rule.features}
            assert speaks_of & PLANTED[kind.label]
        else:
            assert f"{kind.label} ({kind.rows:,} rows): " in text
    fresh = flows(seed=seed + 100)
    here = scores_of(summary, data, data["Label"])
    there = scores_of(summary, fresh, fresh["Label"])
    assert here == {kind.label: kind.score for kind in summary.kinds}
    assert summary.check is not None
    for kind, aside in zip(summary.kinds, summary.check.of_kinds, strict=True):
        assert aside >= kind.score - 0.05
        assert there[kind.label] >= kind.score - 0.05
    assert summary.check.conclusion == "hold"


def test_one_kind_among_several() -> None:
    """`positive` picks kinds, one or more; `AllBut` is what is normal, the rest are kinds."""
    data = flows(3000)
    one = stair.summarize(
        data,
        labels="Label",
        positive=["Botnet", "DDoS"],
        method=stair.DistilledStair(effort="fast"),
    )
    assert not one.kinds
    assert one.n_outliers == int(np.isin(data["Label"], ["Botnet", "DDoS"]).sum())
    rest = stair.summarize(
        data,
        labels="Label",
        positive=stair.AllBut(NORMAL),
        method=stair.DistilledStair(effort="fast"),
    )
    assert len(rest.kinds) == 6


def test_accuracy_is_the_measure_of_the_paper() -> None:
    """And the classes that no rule gives are told."""
    data = flows(2000)
    summary = stair.summarize(
        data, labels="Label", positive=stair.AllBut(), method=stair.DistilledStair(effort="fast")
    )
    assert not summary.kinds
    assert summary.score_name == "accuracy"


def test_a_kind_that_no_rule_reaches_is_named_with_its_best() -> None:
    random = np.random.default_rng(0)
    n = 1200
    x, y = random.normal(size=(2, n))
    label = np.full(n, "normal", dtype=object)
    label[x > 1.6] = "high"
    label[random.random(n) < 0.04] = "lot"  # drawn by lot: there is nothing to say
    summary = stair.summarize(
        {"x": x, "y": y}, labels=label, method=stair.DistilledStair(effort="fast", min_outliers=8)
    )
    by_name = {kind.label: kind for kind in summary.kinds}
    assert by_name["high"].reached
    assert not by_name["lot"].reached
    assert not summary.floor_reached
    assert all(rule.label == "high" for rule in summary.rules)
    text = " ".join(str(summary).split())
    assert "F1 above 0.80 for 1 of 2 kinds" in text
    assert f"lot ({by_name['lot'].rows} rows): no rules; none that was found comes near" in text
    label[(x < -1) & (random.random(n) < 0.5)] = "some"  # half of them: nobody can do better
    summary = stair.summarize(
        {"x": x, "y": y}, labels=label, method=stair.DistilledStair(effort="fast", min_outliers=20)
    )
    text = " ".join(str(summary).split())
    assert re.search(
        r"some \(\d+ rows\): no rules above the floor; the best \(F1 0\.[67]\d\): ", text
    )


def test_a_kind_with_a_handful_of_rows_has_no_rules() -> None:
    """Four rows: any rule for them would be a memory."""
    random = np.random.default_rng(1)
    x = random.normal(size=800)
    label = np.where(x > 1.5, "high", "normal").astype(object)
    label[:4] = "seldom"
    summary = stair.summarize(
        {"x": x, "z": -x}, labels=label, method=stair.DistilledStair(effort="fast")
    )
    assert "seldom (4 rows): no rules, because there are too few rows." in " ".join(
        str(summary).split()
    )


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), n_kinds=st.integers(2, 4), missing=st.booleans())
def test_figures_of_kinds_are_those_of_plain_counting(
    seed: int, n_kinds: int, missing: bool
) -> None:
    """Of any table with any labels: rules are numbered by kind, each figure is what the rule
    decides, and what is reached is above the floor."""
    random = np.random.default_rng(seed)
    n = 160
    x = random.normal(size=n)
    if missing:
        x[random.random(n) < 0.1] = np.nan
    data = {"x": x, "c": random.choice(np.array(["a", "b", "c"], dtype=object), n)}
    label = np.where(random.random(n) < 0.6, "ok", "").astype(object)
    kinds = random.integers(0, n_kinds, n)
    for k in range(n_kinds):
        label[(label == "") & (kinds == k)] = f"kind {k}"
        label[(x > 1) & (k == 0)] = "kind 0"
    label[:2] = "kind 0", "kind 1"
    summary = stair.summarize(
        data,
        labels=label,
        positive=stair.AllBut("ok"),
        validate=0,
        method=stair.DistilledStair(effort="fast"),
    )
    assert scores_of(summary, data, label) == {k.label: k.score for k in summary.kinds}
    for kind in summary.kinds:
        assert kind.rows == int((label == kind.label).sum())
        assert not kind.reached or kind.score > 0.8
    order = [rule.label for rule in summary.rules]
    assert order == sorted(order, key=[k.label for k in summary.kinds].index)
    decides = summary.rules.assign(data)
    for k, each in enumerate(summary.evidence):
        assert each.rows == int((decides == k).sum())
        assert each.hits == int(((decides == k) & (label == each.rule.label)).sum())
    assert summary.unexplained == int(((label != "ok") & (decides == -1)).sum())


def test_which_class_is_normal_does_not_depend_on_the_order_of_rows() -> None:
    """Of two classes that are as frequent the one whose name is known to mean normal is normal. It
    was the first in the table, so that the same rows in another order had no kinds of outlier."""
    label = ["normal"] * 40 + ["scan"] * 40 + ["bot"] * 10
    for values in (label, label[::-1]):
        labels = read_labels(values, kinds=True)
        assert labels.negative is not None
        assert labels.classes[labels.negative] == "normal"
