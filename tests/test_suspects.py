"""Columns that give the verdict away are named, and nothing else."""

from __future__ import annotations

import numpy as np

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
    summary = stair.summarize(data, labels=outlier, effort="fast")
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
    summary = stair.summarize(data, labels=outlier, effort="fast", min_score=0.3)
    assert any("at alone would tell" in suspect for suspect in summary.suspects)


def test_an_honest_rule_is_not_suspected() -> None:
    data, outlier = payments()
    assert stair.summarize(data, labels=outlier, effort="fast").suspects == ()
