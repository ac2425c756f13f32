"""The engine on a GPU, where the twin takes the GPU's place: equal rules to those of the other
engines, wherever the columns are and whatever fits."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stair
from by_threads import ByThreads
from large import every_kind, files, mixed
from stair.engines.large import Cuda
from stair.gpu.device import Device
from stair.gpu.twin import Far, Twin
from stair.learn.grow import leaves_of
from stair.learn.levels import grow_by_level
from stair.scale import held
from stair.scale import summarize as large
from stair.scale.codes import CodesCounter
from stair.scale.coding import Coding
from stair.scale.cuda import CudaCounter, code_rows
from stair.scale.held import held_table
from stair.scale.options import Options
from stair.scale.summarize import prepared
from strategies import examples


def _quiet(_: str) -> None:
    return


def _is_there(monkeypatch: pytest.MonkeyPatch, device: Device) -> None:
    @contextlib.contextmanager
    def on_device(_: int) -> Iterator[Device]:
        yield device

    monkeypatch.setattr(large, "on_device", on_device)


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    device = Twin()
    _is_there(monkeypatch, device)
    return device


def _same(one: stair.Summary, other: stair.Summary) -> None:
    """All that a summary says."""
    assert str(one.rules) == str(other.rules)
    assert one.trace == other.trace
    assert one.score == other.score
    assert one.evidence == other.evidence
    assert one.check == other.check
    assert one.notes == other.notes
    assert one.left_out == other.left_out
    assert one.rules.schema == other.rules.schema


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.usefixtures("twin")
def test_files_give_the_summary_of_duckdb(tmp_path: Path, n_classes: int) -> None:
    """Rules, counts, trace, the check on rows kept aside, and every word beside them."""
    pattern = files(mixed(0, n_classes=n_classes), tmp_path / "data")
    wish: dict[str, Any] = {"labels": "label", "method": "stair", "min_score": 0.9}
    one = stair.summarize(pattern, engine="duckdb", **wish)
    other = stair.summarize(pattern, engine="cuda", **wish)
    assert len(one.rules) > 5
    _same(one, other)
    assert other.settings["engine"] == "cuda"


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.usefixtures("twin")
def test_every_kind_of_column_is_taken(tmp_path: Path, seed: int) -> None:
    """From memory as from a file; each column has few values, so that no cut is lost."""
    frame = every_kind(seed)
    wish: dict[str, Any] = {"labels": "label", "method": "stair", "min_score": 0.9}
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    one = stair.summarize(str(path), engine="duckdb", **wish)
    other = stair.summarize(frame, engine="cuda", **wish)
    assert str(one.rules) == str(other.rules)
    assert one.trace == other.trace


@settings(
    max_examples=examples(25), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    st.integers(0, 10_000), st.sampled_from([2, 3, 5]), st.sampled_from([8, 300, 1024]), st.data()
)
def test_counts_and_growth_are_those_of_duckdb_whatever_fits(
    by_threads: ByThreads, tmp_path_factory: pytest.TempPathFactory, seed: int, n_classes: int,
    bins: int, data: st.DataObject,
) -> None:  # fmt: skip
    """With the same bins: all codes on the device, some or none; by the twin and the kernels."""
    folder = tmp_path_factory.mktemp("cuda")
    frame = mixed(seed, n_rows=data.draw(st.integers(300, 2500)), n_classes=n_classes)
    options = Options("label", n_bins=bins, time_parts=False)
    with prepared(files(frame, folder / "data"), options, 1 << 30, folder, _quiet) as (
        codes,
        coded,
    ):
        wish: dict[str, Any] = {"min_score": 0.95, "max_rule_length": 4, "positive": coded.positive}
        coding = coded.coding
        duckdb = CodesCounter(codes, coding.columns, coding.sizes, coded.totals)
        one = grow_by_level(duckdb, **wish)
        edges = tuple(
            tuple(c.tops[:-1]) if hasattr(c, "tops") else e
            for c, e in zip(coding.columns, coding.edges, strict=True)
        )
        again = Coding(coding.fields, coding.columns, edges)
        together = data.draw(st.sampled_from([None, 256, 512]))
        memory = data.draw(st.sampled_from([40_000, 80_000])) if together else 1 << 26
        device: Device = data.draw(st.sampled_from([Twin(), by_threads]))
        if isinstance(device, ByThreads):
            device.near = 100_000
        table = held_table(frame, device, _quiet)
        _, counter = code_rows(table, options, device, memory, _quiet, together, again)
        other = grow_by_level(counter, **wish)
        assert counter.totals == coded.totals
        assert other.growth.steps == one.growth.steps
        assert other.growth.kept == one.growth.kept
        assert leaves_of(other.growth, 0) == leaves_of(one.growth, 0)
        assert len(other.passes) == len(one.passes)
        if len(frame) * counter.codes.layout.bytes_of_row > memory:
            assert counter.codes.bytes_beside > 0
        drawn, same = (each.draw(200, seed) for each in (duckdb, counter))
        assert isinstance(counter, CudaCounter)
        assert np.array_equal(drawn.places, same.places)
        assert drawn.block is not None and same.block is not None
        for mine, its in zip(drawn.block.codes, same.block.codes, strict=True):
            assert np.array_equal(mine, its)


@pytest.mark.parametrize("method", ["stair", "distilled", "cart"])
@pytest.mark.usefixtures("twin")
def test_it_does_not_matter_where_the_columns_are(method: str) -> None:
    """All in memory, those of numbers on the device, and by the names of either library."""
    frame = mixed(3, n_classes=2).drop(columns="seen")
    here = stair.summarize(frame, labels="label", engine="cuda", method=method)
    on_both = {
        name: Far(frame[name].to_numpy()) if frame[name].dtype.kind in "bif" else frame[name]
        for name in frame
    }
    assert sum(isinstance(each, Far) for each in on_both.values()) == 5
    _same(here, stair.summarize(on_both, labels="label", engine="cuda", method=method))
    _same(
        here, stair.summarize(pl.from_pandas(frame), labels="label", engine="cuda", method=method)
    )


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sample", [300, 5000])
def test_distilled_rules_are_counted_where_the_rows_are(
    n_classes: int, sample: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same samples, rounds, choice and figures: with all rows in the sample and with a tenth;
    numbers, categories of numbers, truths, kinds of outlier, and labels that are missing."""
    frame = mixed(11, n_rows=4000, n_classes=n_classes)
    frame = frame[["amount", "size", "level", "known", "label"]].assign(
        wide=2**60 + np.arange(4000) % 5, more=np.float32(frame.amount) % 7
    )
    frame["label"] = frame.label.where(np.arange(4000) % 9 > 0)
    there = {name: Far(frame[name].to_numpy()) for name in frame}
    wish: dict[str, Any] = {
        "labels": "label", "engine": Cuda(sample=sample), "kinds": {"size": "category"},
        "min_score": 0.6,
    }  # fmt: skip
    one = stair.summarize(frame, **wish)
    monkeypatch.setattr(held.Held, "batches", _none)  # nothing is read by the processor
    other = stair.summarize(there, **wish)
    _same(one, other)
    assert one.certificate == other.certificate
    assert one.frontier == other.frontier
    assert one.kinds == other.kinds


def _none(*_: object) -> Iterator[Any]:
    raise AssertionError("rows of the device were read by the processor")


@pytest.mark.usefixtures("twin")
def test_labels_may_come_by_themselves() -> None:
    """A matrix on a GPU has no names, so that its labels are an array; and a column of the matrix
    is read where it lies."""
    frame = mixed(5)[["amount", "size", "level", "label"]]
    names = {"amount": "x0", "size": "x1", "level": "x2"}
    matrix = frame.drop(columns="label").to_numpy()
    one = stair.summarize(
        frame.rename(columns=names), labels="label", engine="cuda", method="stair", min_score=0.5
    )
    for labels in (frame.label.to_numpy(), Far(frame.label.to_numpy()), frame.label.tolist()):
        other = stair.summarize(
            Far(matrix), labels=labels, engine="cuda", method="stair", min_score=0.5
        )
        assert str(one.rules) == str(other.rules)
    fitted = stair.Stair(engine=Cuda(bins=64), min_score=0.5).fit(Far(matrix), frame.label)
    names_of = pd.DataFrame(matrix, columns=["x0", "x1", "x2"])
    assert fitted.predict(names_of).shape == (len(matrix),)


@pytest.mark.usefixtures("twin")
def test_rows_without_a_label_are_left_out() -> None:
    """On the device they stay where they are, and are counted nowhere."""
    frame = mixed(6)[["amount", "size", "known", "label"]]
    frame["label"] = frame.label.where(np.arange(len(frame)) % 7 > 0)
    there = {name: Far(frame[name].to_numpy()) for name in frame}
    wish: dict[str, Any] = {
        "labels": "label", "engine": "cuda", "method": "stair", "min_score": 0.5, "validate": 0,
    }  # fmt: skip
    one, other = (stair.summarize(each, **wish) for each in (frame, there))
    _same(one, other)
    assert one.rules.totals == other.rules.totals


@pytest.mark.usefixtures("twin")
def test_categories_of_numbers_are_told_apart_on_the_device() -> None:
    """Those that are too rare to be named share a code there too."""
    rng = np.random.default_rng(2)
    code = rng.choice([3, 7, 20, *range(100, 160)], 4000, p=[0.3, 0.3, 0.1, *[0.005] * 60])
    frame = pd.DataFrame({"code": code.astype(float), "x": rng.normal(size=4000)})
    frame.loc[rng.random(4000) < 0.1, "code"] = np.nan
    frame["label"] = (frame.code == 7) ^ (rng.random(4000) < 0.01)
    there = {name: Far(frame[name].to_numpy()) for name in frame}
    wish: dict[str, Any] = {
        "labels": "label", "engine": "cuda", "method": "stair", "kinds": {"code": "category"},
    }  # fmt: skip
    one, other = (stair.summarize(each, **wish) for each in (frame, there))
    _same(one, other)
    assert "code = 7" in str(one.rules)


def _weights(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Whole numbers, amounts of money, any numbers, powers of two; some rows count for nothing."""
    made = [
        lambda: rng.integers(0, 5, n_rows),
        lambda: np.round(rng.exponential(100, n_rows), 2),
        lambda: rng.exponential(size=n_rows) * 10.0 ** rng.integers(-6, 7),
        lambda: 2.0 ** rng.integers(-4, 4, n_rows),
        lambda: rng.integers(1, 10**6, n_rows).astype(np.int32),
    ]
    found: np.ndarray = made[int(rng.integers(len(made)))]()
    found[rng.random(n_rows) < rng.choice([0, 0.1])] = 0
    return found


@settings(
    max_examples=examples(25), deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(st.integers(0, 10_000), st.sampled_from([2, 3]), st.data())
def test_weights_give_the_rules_of_the_engine_memory(
    monkeypatch: pytest.MonkeyPatch, by_threads: ByThreads, seed: int, n_classes: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    """Every kind of column, each with few values, so that no cut is lost: rules, trace, check,
    counts of rows, and all that is said by weight. The weights are a column or an array, here or on
    the device."""
    device: Device = data.draw(st.sampled_from([Twin(), by_threads]))
    if isinstance(device, ByThreads):
        device.near = 100_000
    _is_there(monkeypatch, device)
    rng = np.random.default_rng(seed)
    frame = every_kind(seed, n_rows=int(rng.integers(100, 400)))
    if n_classes > 2:
        frame["label"] = np.where(rng.random(len(frame)) < 0.2, "other", frame.label)
    weights: Any = _weights(rng, len(frame))
    method = stair.Stair(min_score=float(rng.choice([0.6, 0.9])), max_total_length=60)
    wish: dict[str, Any] = {
        "labels": "label", "method": method, "validate": int(rng.choice([0, 2])),
    }  # fmt: skip
    if data.draw(st.booleans()):
        frame["money"] = weights
        wish |= {"weights": "money", "exclude": ["money"]}
    else:
        wish |= {"weights": weights}
    one = stair.summarize(frame, **wish)
    if "money" not in frame and data.draw(st.booleans()):
        wish["weights"] = Far(weights)
    other = stair.summarize(frame, engine="cuda", **wish)
    names = ("trace", "score", "evidence", "check", "rest", "weighed", "frontier", "unexplained",
             "n_rows", "left_out", "suspects", "kinds")  # fmt: skip
    for name in names:
        assert getattr(one, name) == getattr(other, name), name
    assert str(one.rules) == str(other.rules)
    assert one.rules.totals == other.rules.totals
    assert [n for n in one.notes if "left out" in n] == [n for n in other.notes if "left out" in n]


@pytest.mark.usefixtures("twin")
def test_weights_of_files_and_of_the_device_are_alike(tmp_path: Path) -> None:
    """From a file with other rows beside, and with all columns where the GPU is; texts that are
    numbers are read as in memory."""
    frame = mixed(8)[["amount", "size", "known", "label"]]
    frame["label"] = frame.label.where(np.arange(len(frame)) % 7 > 0)
    frame["amount"] = np.round(frame.amount, -1)  # few values: all cuts are exact
    frame["money"] = np.round(np.random.default_rng(1).exponential(9, len(frame)), 1)
    wish: dict[str, Any] = {
        "labels": "label", "method": "stair", "min_score": 0.6, "weights": "money",
        "engine": "cuda",
    }  # fmt: skip
    one = stair.summarize(files(frame, tmp_path / "data"), **wish)
    there = {name: Far(frame[name].to_numpy()) for name in frame}
    assert any("the money 0" in note for note in one.notes)
    for other in (stair.summarize(there, **wish), stair.summarize(frame, **wish)):
        _same(one, other)
        assert one.weighed == other.weighed
    frame["texts"] = frame.money.astype(str)
    of_texts = stair.summarize(frame, **{**wish, "weights": "texts", "exclude": ["texts"]})
    assert of_texts.evidence == one.evidence
    assert of_texts.weighed is not None and of_texts.weighed.name == "texts"


def _all(found: stair.Summary) -> list[Any]:
    """All that is said of distilled rules."""
    return [
        str(found.rules), found.rules.totals, found.score, found.evidence, found.check, found.rest,
        found.weighed, found.frontier, found.further, found.certificate, found.unexplained,
        found.suspects, found.n_rows,
    ]  # fmt: skip


@pytest.mark.usefixtures("twin")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_distilled_rules_by_weight_are_those_of_memory(tmp_path: Path, n_classes: int) -> None:
    """With all rows in the sample: of files and of the device, with rows of weight 0 and rows
    without a label; of several classes none of which is normal, too."""
    frame = mixed(12, n_rows=900, n_classes=n_classes)[["size", "level", "known", "label"]]
    rng = np.random.default_rng(n_classes)
    if n_classes > 2:
        drawn = np.where(rng.random(900) < 0.9, frame["size"] % 3, rng.integers(0, 3, 900))
        frame["label"] = np.array([5.0, 6.0, 7.0])[drawn]
    frame["label"] = frame.label.where(np.arange(900) % 9 > 0)
    frame["money"] = np.round(rng.exponential(5, 900), 1)
    frame.loc[::13, "money"] = 0
    method = stair.DistilledStair(effort="fast", min_score=0.5)
    wish: dict[str, Any] = {"labels": "label", "method": method, "weights": "money", "validate": 2}
    one = stair.summarize(frame, **wish)
    there = {name: Far(frame[name].to_numpy()) for name in frame}
    assert one.weighed is not None
    assert len(one.rules) > 0
    path = files(frame, tmp_path / "data")
    for data, engine in ((there, "cuda"), (frame, "cuda"), (path, "duckdb")):
        other = stair.summarize(data, **wish, engine=engine)
        assert _all(one) == _all(other)
        assert any("the money 0" in note for note in other.notes)


@pytest.mark.usefixtures("twin")
def test_samples_are_weighed_where_the_rows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds with a tenth of the rows in each sample: the same choice by weight, here and there;
    the score is that of all rows."""
    frame = mixed(13, n_rows=4000)[["amount", "size", "level", "known", "label"]]
    money = np.random.default_rng(4).exponential(size=4000)
    there = {name: Far(frame[name].to_numpy()) for name in frame}
    wish: dict[str, Any] = {
        "labels": "label", "engine": Cuda(sample=400), "weights": money, "validate": 2,
        "method": stair.DistilledStair(effort="fast", min_score=0.5),
    }  # fmt: skip
    one = stair.summarize(frame, **wish)
    monkeypatch.setattr(held.Held, "batches", _none)  # nothing is read by the processor
    other = stair.summarize(there, **{**wish, "weights": Far(money)})
    assert _all(one) == _all(other)
    assert any("round" in note for note in one.notes)
    alerts = np.asarray(one.rules.predict(frame)) == "outlier"
    is_outlier = frame.label.to_numpy() == 1
    both = 2 * money[alerts & is_outlier].sum() / (money[alerts].sum() + money[is_outlier].sum())
    assert one.score == pytest.approx(both, rel=1e-9)


@pytest.mark.parametrize(
    ("weights", "why"),
    [
        (np.where(np.arange(3000) == 5, np.nan, 1), "missing or infinite in 1 row;"),
        (np.where(np.arange(3000) < 2, -np.arange(3000) - 1.5, 1), "2 negative values.*-2.5"),
        (np.zeros(3000), "0 in all rows, so there is nothing to learn"),
        (mixed(0).label.to_numpy(), "0 in all rows of a class"),
        (["much"] * 3000, "no numbers; expected amounts"),
        (np.ones(5), "weights has 5 values, but the data has 3[,]?000 rows"),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "cuda"])
@pytest.mark.usefixtures("twin")
def test_weights_that_are_none_are_said_as_in_memory(weights: Any, why: str, engine: str) -> None:
    with pytest.raises(stair.StairError, match=why):
        stair.summarize(mixed(0), labels="label", weights=weights, engine=engine, method="stair")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"weights": "nowhere"}, "nowhere"),
        ({"weights": "size", "method": "cart"}, "weights"),
        ({"labels": None, "scores": "size", "contamination": 0.1}, "the verdict as a column"),
        ({"engine": Cuda(memory="64MiB"), "data": Far(np.zeros((3, 2, 2)))}, "3 dimensions"),
        ({"data": {"a": Far(np.zeros(3, complex))}, "labels": "a"}, "complex128"),
        ({"data": {"a": Far(np.zeros(3)), "b": Far(np.zeros(4))}, "labels": "a"}, "3 and 4"),
        ({"data": {"a": Far(np.zeros(0))}, "labels": "a"}, "no rows"),
        ({"labels": [0, 1]}, "has 2 values, but the data has 3,000 rows"),
    ],
)
@pytest.mark.usefixtures("twin")
def test_what_it_cannot_do_is_said(given: dict[str, Any], why: str) -> None:
    given = {"data": mixed(0), "labels": "label", "engine": "cuda", "method": "stair", **given}
    with pytest.raises(stair.StairError, match=why):
        stair.summarize(given.pop("data"), **given)


def test_too_little_memory_for_a_few_rows_is_said(twin: Twin) -> None:
    table = held_table(mixed(0), twin, _quiet)
    with pytest.raises(stair.StairError, match="too few for rows of"):
        code_rows(table, Options("label"), twin, 2000, _quiet)


def test_settings_are_checked() -> None:
    with pytest.raises(stair.StairError, match="at least 64MiB"):
        Cuda(memory="1MB")
    with pytest.raises(stair.StairError, match="device"):
        Cuda(device=-1)
