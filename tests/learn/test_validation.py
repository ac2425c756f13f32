"""Whether rules hold: each row is judged once, by rules that were learned without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import stair
from settings import summarize
from stair.learn.validation import FEWEST, Check, chance_of, check_of, out_of_fold, quick_folds
from stair.rules.objective import f1
from strategies import examples


def a_table(seed: int, n: int = 240) -> dict[str, NDArray[Any]]:
    """Numbers, names and gaps that have nothing to do with anything."""
    random = np.random.default_rng(seed)
    amount = random.lognormal(3, 1, n)
    amount[random.random(n) < 0.05] = np.nan
    return {
        "amount": amount,
        "age": random.integers(18, 90, n),
        "country": random.choice(np.array(["DE", "FR", "NL", "US"], dtype=object), n),
        "level": random.normal(size=n),
    }


def test_rules_for_labels_without_any_meaning_are_told_to_be_memories() -> None:
    """Shuffled labels: there is nothing to learn, and distilled rules above the floor are found
    all the same. In at least 95% of seeds the summary must say that they describe these rows
    only."""
    told, n_seeds = 0, examples(100)
    for seed in range(n_seeds):
        random = np.random.default_rng(1000 + seed)
        data = a_table(seed, 100)
        label = random.permutation(np.arange(100) < [8, 12, 30][seed % 3]).astype(int)
        summary = summarize(data, labels=label, method=stair.DistilledStair(effort="fast"))
        assert summary.check is not None
        told += summary.check.conclusion == "describe these rows only"
        if summary.check.conclusion == "describe these rows only" and len(summary.rules):
            assert "They describe these rows only: on rows kept aside" in " ".join(
                str(summary).split()
            )
    assert told >= 0.95 * n_seeds


@pytest.mark.parametrize("method", ["distilled", "stair", "refined"])
def test_planted_rules_are_told_to_hold(method: str) -> None:
    """What was planted is found again in rows that were kept aside, by every method."""
    for seed in range(3):
        data = a_table(seed, 1500)
        label = (data["amount"] > 50) & (data["country"] == "US")
        summary = summarize(data, labels=label, method=method)
        assert summary.check is not None
        assert summary.check.conclusion == "hold"
        assert summary.check.score > 0.9
        assert not summary.check.falling or method != "distilled"


@settings(max_examples=examples(100), deadline=None)
@given(
    codes=st.lists(st.integers(0, 3), min_size=2, max_size=80),
    folds=st.integers(2, 5),
)
def test_every_row_is_judged_once_by_what_was_learned_without_it(
    codes: list[int], folds: int
) -> None:
    """And each class is spread over the folds alike."""
    actual = np.array(codes, dtype=np.int32)
    seen: list[set[int]] = []

    def learn(train: NDArray[np.intp]) -> Callable[[NDArray[np.intp]], NDArray[np.intp]]:
        seen.append(set(train.tolist()))

        def predict(test: NDArray[np.intp]) -> NDArray[np.intp]:
            assert seen[-1].isdisjoint(test.tolist())
            assert seen[-1] | set(test.tolist()) == set(range(len(actual)))
            return test

        return predict

    found = out_of_fold(learn, actual, folds, lambda _: None)
    assert found is not None
    predicted, tested = found
    assert predicted.tolist() == list(range(len(actual)))
    assert sorted(np.concatenate(tested).tolist()) == list(range(len(actual)))
    for k in range(4):
        sizes = [int((actual[rows] == k).sum()) for rows in tested]
        assert max(sizes) - min(sizes) <= 1


def test_somebody_who_has_had_enough_is_not_kept_waiting() -> None:
    """Ctrl-C during the check ends the check: the rules come out, and it says why there is none."""

    def nobody(_: NDArray[np.intp]) -> Callable[[NDArray[np.intp]], NDArray[np.intp]]:
        raise AssertionError("nothing is learned any more")

    assert out_of_fold(nobody, np.zeros(9, np.int32), 3, lambda _: True) is None

    data = a_table(0, 600)
    label = (data["amount"] > 50) & (data["country"] == "US")
    summary = summarize(data, labels=label, progress=lambda words: "kept aside" in words or None)
    assert summary.check is None
    assert summary.unchecked == "it was cut short"
    assert "Not checked on rows kept aside: it was cut short." in " ".join(str(summary).split())


@settings(max_examples=examples(100), deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
def test_the_figures_of_a_check_are_those_of_plain_counting(seed: int, n: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 2, n).astype(np.int32)
    predicted, learned = random.integers(0, 2, (2, n))
    rows = np.array_split(random.permutation(n), 2)
    own = [random.random(n) < 0.3 for _ in range(2)]
    found = check_of(predicted, rows, codes, learned, 1, own, [1, 0])

    def plain(given: NDArray[Any], which: Any) -> float:
        pairs = [(given[k], codes[k]) for k in which]
        hits = sum(p == c == 1 for p, c in pairs)
        return f1(hits, sum(p == 1 for p, _ in pairs), sum(c == 1 for _, c in pairs))

    assert found.score == plain(predicted, range(n))
    assert found.learned == plain(learned, range(n))
    assert found.scores == tuple(plain(predicted, part.tolist()) for part in rows)
    for share, which, label in zip(found.found_again, own, [1, 0], strict=True):
        listed = np.flatnonzero(which)
        again = sum(predicted[k] == label for k in listed)
        assert share == (again / len(listed) if len(listed) else 0.0)
    alarms, outliers = int((predicted == 1).sum()), int((codes == 1).sum())
    assert found.chance == chance_of(predicted == 1, codes == 1)
    assert found.chance == f1(alarms * outliers / n, alarms, outliers)


@given(learned=st.floats(0, 1), chance=st.floats(0, 1), score=st.floats(0, 1), more=st.floats(0, 1))
def test_more_on_rows_kept_aside_is_never_a_worse_conclusion(
    learned: float, chance: float, score: float, more: float
) -> None:
    order = ["describe these rows only", "hold partly", "hold"]
    low, high = sorted((score, more))
    worse, better = (order.index(Check((s,), s, chance, learned).conclusion) for s in (low, high))
    assert worse <= better


def test_rules_of_which_one_kind_falls_apart_hold_only_partly() -> None:
    """Of three kinds of outlier two scored 0.98 and 1.00 on rows kept aside and one 0.17, and the
    headline was that the rules hold."""
    codes = np.repeat([0, 1, 2, 3], [900, 50, 50, 20])
    wrong = np.where(codes == 3, 0, codes)
    own = [codes == k for k in (1, 2, 3)]
    tested = [np.arange(len(codes))[k::3] for k in range(3)]
    for aside, conclusion in ((codes, "hold"), (wrong, "hold partly")):
        check = check_of(aside, tested, codes, codes, None, own, [1, 2, 3], [1, 2, 3])
        assert check.conclusion == conclusion
    # A kind without rules is told elsewhere: nothing of it can fall apart.
    check = check_of(wrong, tested, codes, wrong, None, own[:2], [1, 2], [1, 2, 3])
    assert check.conclusion == "hold"


def test_a_kind_of_five_rows_is_looked_for_among_three() -> None:
    """Kinds of fewer than five rows have no rules, so that of five rows, of which a fold learned
    from three, nothing was found again: a rule that all five are due to "fell apart"."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 600))
    kind = np.full(600, "ok", dtype=object)
    kind[:20], x[:20] = "scan", random.uniform(8, 9, 20)
    kind[20:25], y[20:25] = "slow", random.uniform(20, 60, 5)
    method = stair.DistilledStair(effort="fast")
    summary = summarize({"x": x, "y": y}, labels=kind, positive=stair.AllBut("ok"), method=method)
    assert [rule.label for rule in summary.rules] == ["scan", "slow"]
    assert summary.check is not None
    assert summary.check.conclusion == "hold" and not summary.check.falling


def test_few_outliers_say_nothing() -> None:
    """With five outliers a third of them is one or two rows."""
    assert quick_folds(FEWEST - 1, cheaper=True) == 0
    data = a_table(0)
    label = np.arange(240) < 5
    summary = summarize(data, labels=label, method=stair.DistilledStair(effort="fast"))
    assert summary.check is None
    assert "Not checked on rows kept aside: 5 outliers are too few." in " ".join(
        str(summary).split()
    )


def test_the_check_can_be_left_out_and_made_thorough() -> None:
    data = a_table(0, 600)
    label = (data["amount"] > 50) & (data["country"] == "US")
    assert summarize(data, labels=label, validate=0).check is None
    thorough = summarize(data, labels=label, validate=5)
    assert len(thorough.held_out) == 5
    with pytest.raises(stair.StairError, match="at least 2 folds"):
        summarize(data, labels=label, validate=1)


def test_a_rule_that_is_a_memory_of_its_rows_is_marked() -> None:
    """One planted kind holds; the other outliers were drawn by lot, and the rules for them are
    found again by nobody."""
    data = a_table(3, 600)
    random = np.random.default_rng(0)
    planted = (data["amount"] > 60) & (data["country"] == "US")
    drawn = random.random(600) < 0.03
    summary = summarize(
        data, labels=planted | drawn, min_score=0.85, method=stair.DistilledStair(min_outliers=1)
    )
    assert summary.check is not None
    falling = {str(summary.rules[k - 1]) for k in summary.check.falling}
    names_planted = [r for r in summary.rules if r.precision > 0.9 and r.rows >= planted.sum() / 2]
    assert falling
    assert names_planted
    assert not falling & set(map(str, names_planted))
    lines = str(summary).splitlines()
    assert sum(line.split("   ")[0].rstrip().endswith("*") or "*  " in line for line in lines)


def test_a_long_list_of_memories_is_cut_short() -> None:
    """A log whose latencies were text: 76 rules of one or two rows each filled three screens before
    the sentence that none of them holds."""
    random = np.random.default_rng(0)
    data = {"x": random.normal(size=400), "y": random.normal(size=400)}
    method = stair.DistilledStair(min_outliers=1, effort="fast")
    summary = summarize(data, labels=random.random(400) < 0.08, method=method)
    assert summary.check is not None
    n_left = sum(number > 12 for number in summary.check.falling)
    few, every = summary.to_text(), summary.to_text(every_rule=True)
    assert n_left
    assert f"… {n_left} more rules, all of which fall apart, too (every_rule=True)" in few
    assert "more rules" not in every
    stars = [
        sum(" *" in line.replace("\u00a0", " ") for line in t.splitlines()) for t in (few, every)
    ]
    assert stars[1] - stars[0] == n_left


@pytest.mark.parametrize("method", ["id3", "cart", "stair"])
def test_a_class_that_only_rows_kept_aside_have(method: str) -> None:
    """Trees counted the classes of the rows that they saw: without the last one they ended in a
    ValueError."""
    random = np.random.default_rng(0)
    x = random.normal(size=200)
    label = np.where(x > 1, "b", "a").astype(object)
    label[0] = "z"
    summary = summarize({"x": x}, labels=label, method=method)
    assert summary.rules.classes == ("a", "b", "z")
