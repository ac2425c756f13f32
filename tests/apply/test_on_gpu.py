"""Rules on rows that are on a GPU, where the twin takes its place."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import stair
from large import mixed
from stair.apply import on_gpu
from stair.gpu.twin import Far, Twin


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    device = Twin()

    @contextlib.contextmanager
    def on_device(_: int) -> Iterator[Twin]:
        yield device

    monkeypatch.setattr(on_gpu, "on_device", on_device)
    return device


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_are_those_of_the_processor(n_classes: int) -> None:
    """Numbers, truths, missing values, categories of numbers; with exceptions too."""
    frame = mixed(21, n_classes=n_classes)[["amount", "size", "level", "known", "label"]]
    frame["amount"] = frame.amount.astype("float32")
    found = stair.summarize(
        frame, labels="label", method="stair", min_score=0.6, kinds={"size": "category"}, validate=0
    )
    rules = found.rules
    new = mixed(22)[["amount", "size", "level", "known"]]
    new["amount"] = new.amount.astype("float32")
    there = {name: Far(new[name].to_numpy()) for name in new}
    names = np.array(rules.classes)
    assert np.array_equal(names[on_gpu.predict(rules, there)], rules.predict(new))
    assert np.array_equal(on_gpu.assign(rules, there), rules.assign(new))
    if n_classes == 2:
        outlier = next(rule for rule in rules if rule.label == rules.positive)
        lifted = rules.with_exceptions([outlier.clauses])
        assert np.array_equal(names[on_gpu.predict(lifted, there)], lifted.predict(new))
    with pytest.raises(stair.StairError, match="no such column"):
        on_gpu.predict(rules, {"other": Far(np.zeros(3))})
    with pytest.raises(stair.StairError, match="is not on the GPU"):
        on_gpu.predict(rules, new)
