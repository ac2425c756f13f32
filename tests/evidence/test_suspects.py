"""Columns that give the verdict away are named, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import stair


def payments(n: int = 1500) -> tuple[dict[str, np.ndarray], np.ndarray]:
    random = np.random.default_rng(0)
    amount = random.lognormal(3, 1, n)
    outlier = (amount > 60) & (random.random(n) < 0.9)
    return {"amount": amount, "age": random.integers(18, 80, n)}, outlier


def test_a_copy_of_the_label_is_named() -> None:
    """ "status" is written by the people who decide; one clause is the whole verdict."""
    data, outlier = payments()
    data["status"] = np.where(outlier, "blocked", "paid").astype(object)
    summary = stair.summarize(data, labels=outlier, method=stair.DistilledStair(effort="fast"))
    assert any("status" in suspect for suspect in summary.suspects)
    assert "Look twice: rule 1" in str(summary)


def test_an_afternoon_that_tells_all_outliers_apart_is_named() -> None:
    """An attack was run between two and four: the time explains nothing."""
    data, _ = payments()
    start = np.datetime64("2024-03-01T00:00:00", "us")
    hours = np.sort(np.random.default_rng(1).uniform(0, 24 * 10, 1500))
    data["at"] = start + (hours * 3600e6).astype("timedelta64[us]")
    outlier = (hours > 62) & (hours < 64)
    data["amount"][outlier] *= 8
    summary = stair.summarize(
        data, labels=outlier, min_score=0.3, method=stair.DistilledStair(effort="fast")
    )
    assert any("at alone would tell" in suspect for suspect in summary.suspects)


def test_an_honest_rule_is_not_suspected() -> None:
    data, outlier = payments()
    assert (
        stair.summarize(data, labels=outlier, method=stair.DistilledStair(effort="fast")).suspects
        == ()
    )


def test_a_copy_that_no_rule_speaks_of_is_named_too() -> None:
    """Two copies are as good as each other, and rules speak of one: the other was not named."""
    data, outlier = payments()
    data["status"] = np.where(outlier, "blocked", "paid").astype(object)
    data["decision"] = np.where(outlier, 7.0, np.nan)
    summary = stair.summarize(data, labels=outlier, method=stair.DistilledStair(effort="fast"))
    for name in ("status", "decision"):
        assert sum(name in suspect for suspect in summary.suspects) == 1
    data["status"][0] = "pending"
    data["decision"][1] = 8.0
    again = stair.summarize(
        data, labels=outlier, validate=0, method=stair.DistilledStair(effort="fast")
    )
    assert not any("same as the verdict" in suspect for suspect in again.suspects)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_series_of_labels_is_not_explained_by_itself(library: Any) -> None:
    """`summarize(df, labels=df["y"])` found F1 1.00 by `y = 1`: the table still had the column."""
    data, outlier = payments()
    frame = library({**data, "y": outlier.astype(int), "late": np.roll(outlier, 1)})
    summary = stair.summarize(
        frame, labels=frame["y"], validate=0, method=stair.DistilledStair(effort="fast")
    )
    assert summary.left_out == {"y": "the verdict itself"}
    assert all("y" not in rule.features for rule in summary.rules)
    other = stair.summarize(
        frame, labels=frame["late"], validate=0, method=stair.DistilledStair(effort="fast")
    )
    assert "y" not in other.left_out
    # A Series of that name with other values is another matter.
    named = pd.Series(np.roll(outlier, 1).astype(int), name="y")
    kept = stair.summarize(
        frame, labels=named, validate=0, method=stair.DistilledStair(effort="fast")
    )
    assert "y" not in kept.left_out
