"""Data that does not fit: every engine gives equal rules, from bins, in few passes."""

from __future__ import annotations

import itertools
import math
import operator
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from large import files, mixed
from places import ROOT
from settings import summarize
from stair.data.stream import open_stream
from stair.engines.counting import MemoryCounter, bin_numbers
from stair.engines.large import read_memory
from stair.engines.memory import MemoryEngine
from stair.learn.grow import Growth, grow, leaves_of
from stair.learn.levels import grow_by_level
from stair.rules.columns import Binned, Numbers, Times
from stair.scale.codes import CODES, CodesCounter
from stair.scale.dask import Cluster, code_frame, open_frame
from stair.scale.edges import binned
from stair.scale.options import Options
from stair.scale.sketch import Sketch
from stair.scale.summarize import prepared
from strategies import examples

# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")


def _quiet(_: str) -> None:
    return


# --- one test over all engines --------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "n_classes", "bins"), [(0, 2, 1024), (1, 2, 16), (2, 4, 50)])
def test_all_engines_give_equal_rule_sets(
    tmp_path: Path, seed: int, n_classes: int, bins: int
) -> None:
    """Memory one split at a time, memory by level, DuckDB and Dask: rules, counts and trace.

    The bins are DuckDB's for all of them; everything else each engine finds out by itself.
    """
    dd = pytest.importorskip("dask.dataframe")
    frame = mixed(seed, n_classes=n_classes)
    pattern = files(frame, tmp_path / "data")
    options = Options("label", n_bins=bins, time_parts=False)
    grown: dict[str, Growth] = {}
    with prepared(pattern, options, 1 << 30, tmp_path, _quiet) as (folder, coded):
        columns, sizes = coded.coding.columns, coded.coding.sizes
        limits: dict[str, Any] = {
            "min_score": 0.95,
            "max_rule_length": 4,
            "positive": coded.positive,
        }
        duckdb = CodesCounter(folder, columns, sizes, coded.totals)
        grown["duckdb"] = grow_by_level(duckdb, **limits).growth
        table = pq.read_table(folder / CODES)
        codes = [column.to_numpy() for column in table.columns]
        *codes, labels = codes
        memory = MemoryCounter(columns, sizes, codes, labels, n_classes)
        grown["memory by level"] = grow_by_level(memory, **limits).growth
        matrix = np.column_stack(codes).astype(np.float64)
        matrix[matrix == np.array(sizes) - 1.0] = math.nan
        engine = MemoryEngine(
            columns, np.asfortranarray(matrix), labels.astype(np.int32), n_classes
        )
        one = grow(engine, **limits)
        given_ = dd.from_pandas(frame, npartitions=4)
        with_edges = _edges_of(frame, coded, options)
        _, dask = code_frame(*open_frame(given_), options, Cluster(None), _quiet, with_edges)
        assert dask.totals == coded.totals
        grown["dask"] = grow_by_level(dask, **limits).growth
    assert len(one.steps) > 10
    for name, growth in grown.items():
        assert growth.steps == one.steps, name
        assert growth.kept == one.kept, name
        assert leaves_of(growth, 0) == leaves_of(one, 0), name


def _edges_of(frame: pd.DataFrame, coded: Any, options: Options) -> Any:
    """DuckDB's bins with the bounds that code rows: what is written down is what decides."""
    from stair.scale.coding import Coding

    edges = []
    for column in coded.coding.columns:
        if isinstance(column, Binned):
            exact = column.tops == column.bottoms
            edges.append(column.tops[:-1])
            assert exact or len(column.tops) <= options.n_bins
        else:
            edges.append(column.values)
    assert len(frame.columns) == len(edges) + 1
    return Coding(coded.coding.fields, coded.coding.columns, tuple(edges))


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_of_few_values_give_the_rules_of_the_memory_engine(
    tmp_path: Path, engine: str, n_classes: int
) -> None:
    """Where every value is a bin nothing is lost: rules, evidence, trace and score are equal."""
    frame = mixed(3, n_classes=n_classes).drop(columns=["amount", "seen"])
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {
        "labels": "label",
        "method": "stair",
        "min_score": 0.7,
        "max_rule_length": 4,
    }
    small = summarize(frame, **options)
    large = summarize(pattern, engine=engine, **options)
    assert large.rules == small.rules
    assert large.evidence == small.evidence
    assert large.trace == small.trace
    assert (large.score, large.unexplained) == (small.score, small.unexplained)
    assert not any("bins" in note for note in large.notes)


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_a_summary_says_when_cuts_are_binned(tmp_path: Path, engine: str) -> None:
    """And its figures are true: the rules are applied to all rows by the memory engine's way."""
    frame = mixed(4)
    pattern = files(frame, tmp_path / "data")
    summary = summarize(
        pattern, labels="label", method="stair", engine=engine, bins=64, min_score=0.6
    )
    assert any("64 bins in amount, day, seen" in note for note in summary.notes)
    assert summary.settings["engine"] == engine
    columns = {name: frame[name].to_numpy() for name in frame.columns if name != "label"}
    columns["country"] = frame.country.astype(object).where(frame.country.notna(), None).to_numpy()
    covered = summary.rules.covers(columns)
    assert (covered.sum(axis=1) == 1).all()
    for rule, evidence, rows in zip(summary.rules, summary.evidence, covered.T, strict=True):
        counts = np.bincount(frame.label[rows], minlength=2)
        assert rule.counts == (("inlier", counts[0]), ("outlier", counts[1]))
        assert evidence.rows == counts.sum()
        for clause, told in zip(rule.clauses, evidence.clauses, strict=True):
            met = clause.covers(columns[clause.feature])
            assert told.of_outliers == pytest.approx(met[frame.label == 1].mean())
            assert told.of_inliers == pytest.approx(met[frame.label == 0].mean())
    assert summary.to_sql() and summary.to_json() and summary.to_html()
    with pytest.raises(stair.StairError, match="not kept with an engine"):
        summary.matching_rows(1)


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_other_methods_learn_from_a_sample_and_are_counted_on_all_rows(
    tmp_path: Path, engine: str
) -> None:
    """A sample as large as the data gives the rules of the memory engine, to the last figure."""
    frame = mixed(5)[["amount", "size", "level", "label"]]
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {"labels": "label", "method": "cart", "min_score": 0.3}
    small = summarize(frame, **options)
    large = summarize(pattern, engine=engine, sample=len(frame), **options)
    assert (large.rules, large.evidence) == (small.rules, small.evidence)
    assert large.score == small.score
    part = summarize(pattern, engine=engine, sample=500, **options)
    assert part.n_rows == len(frame)
    assert any("sample of 500 rows" in note for note in part.notes)
    assert sum(rule.rows for rule in part.rules) == len(frame)


def test_a_part_without_any_value_has_no_type() -> None:
    """A column that is all missing in one file comes as objects, as text, or as nothing at all.

    It was told apart from numbers as "text in one part of the data and numbers in another".
    """
    dask = pytest.importorskip("dask")
    dd = pytest.importorskip("dask.dataframe")
    frame = mixed(12).drop(columns=["amount", "seen"])
    first, second = frame.iloc[:1500].copy(), frame.iloc[1500:].copy()
    first["level"] = np.nan
    first["country"] = None
    whole = pd.concat([first, second])
    options: dict[str, Any] = {
        "labels": "label",
        "method": "stair",
        "min_score": 0.6,
        "max_rule_length": 3,
    }
    small = summarize(whole, **options)
    first["level"] = first["level"].astype(object).where(lambda x: x.notna(), None)
    first["country"] = np.full(len(first), np.nan)
    parts = [dask.delayed(part) for part in (first, second)]
    data = dd.from_delayed(parts, meta=second.iloc[:0], verify_meta=False)
    assert summarize(data, engine="dask", **options).rules == small.rules
    gone = whole.assign(level=None)
    found = summarize(
        dd.from_pandas(gone.astype({"level": object}), npartitions=2), engine="dask", **options
    )
    assert found.left_out == {"level": "all values are missing"}


def test_csv_and_database_give_the_rules_of_parquet(tmp_path: Path) -> None:
    """The same table in another file."""
    import duckdb

    frame = mixed(6, 1000).drop(columns=["amount", "seen"])
    options: dict[str, Any] = {
        "labels": "label",
        "method": "stair",
        "engine": "duckdb",
        "min_score": 0.6,
    }
    parquet = summarize(files(frame, tmp_path / "data"), **options)
    frame.to_csv(tmp_path / "data.csv", index=False)
    assert summarize(tmp_path / "data.csv", **options).rules == parquet.rules
    with duckdb.connect(str(tmp_path / "data.duckdb")) as con:
        con.register("frame", frame)
        con.execute("CREATE TABLE payments AS SELECT * FROM frame")
    found = summarize(tmp_path / "data.duckdb", table="payments", **options)
    assert found.rules == parquet.rules
    query = "SELECT * FROM payments WHERE label >= 0"
    assert summarize(tmp_path / "data.duckdb", query=query, **options).rules == parquet.rules


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_kinds_that_are_asked_for(tmp_path: Path, engine: str) -> None:
    """Numbers and days as categories, and times that are written as text."""
    frame = mixed(11, 2000)[["size", "level", "day", "known", "label"]]
    frame["written"] = frame.day.dt.strftime("%Y-%m-%d")
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {
        "labels": "label",
        "kinds": {"size": "category", "level": "category"},
        "method": "stair",
        "min_score": 0.7,
        "max_rule_length": 3,
    }
    small = summarize(pattern.replace("*", "part-0"), **options)
    large = summarize(pattern.replace("*", "part-0"), engine=engine, **options)
    assert large.fields == small.fields
    assert (large.rules, large.trace) == (small.rules, small.trace)


def test_a_query_must_be_a_query(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "data.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT range AS x, range % 2 AS label FROM range(10)")
    for query in ("DROP TABLE t", "SELECT * FROM t; SELECT 1", "nonsense"):
        with pytest.raises(stair.StairError, match=r"single SELECT|cannot read"):
            summarize(tmp_path / "data.duckdb", labels="label", query=query, engine="duckdb")


def test_hours_and_weekdays_are_attributes_here_too(tmp_path: Path) -> None:
    frame = mixed(7, 2000)[["seen", "size"]]
    hour = frame.seen.dt.hour
    frame["label"] = ((hour < 3) | (frame.seen.dt.day_of_week == 5) & (frame["size"] > 3)).astype(
        int
    )
    pattern = files(frame, tmp_path / "data")
    options: dict[str, Any] = {
        "labels": "label",
        "method": "stair",
        "time_parts": True,
        "min_score": 0.99,
    }
    small = summarize(frame, **options)
    large = summarize(pattern, engine="duckdb", **options)
    assert large.rules == small.rules


def test_large_engines_read_a_verdict_as_the_others_do(tmp_path: Path) -> None:
    """They took the larger of two labels, too: of −1/+1 the normal rows, of fraud/ok the ok."""
    frame = mixed(10)[["size", "level", "label"]]
    for name, (inlier, outlier) in {"signs": (1, -1), "words": ("ok", "fraud")}.items():
        coded = frame.assign(label=np.where(frame.label == 1, outlier, inlier))
        pattern = files(coded, tmp_path / name)
        model = stair.Stair(min_score=0.2, engine="duckdb").fit(pattern, "label")
        assert model.rules_.positive == outlier
    other = frame.assign(label=np.where(frame.label == 1, "a", "b"))
    with pytest.warns(stair.OutlierGuessed, match=r'the rarer one, "a".*pos_label='):
        model = stair.Stair(min_score=0.2, engine="duckdb").fit(
            files(other, tmp_path / "other"), "label"
        )
    assert model.rules_.positive == "a"


@pytest.mark.filterwarnings("ignore::stair.OutlierGuessed")
@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_an_estimator_learns_from_files_and_predicts_from_arrays(
    tmp_path: Path, engine: str
) -> None:
    """The rules are those of the memory engine, and so are labels, classes and names."""
    frame = mixed(10)[["size", "level", "label"]].assign(constant=7.0)
    frame["label"] = np.where(frame.label == 1, 5, 3)
    pattern = files(frame, tmp_path / "data")
    features = ["size", "level", "constant"]
    settings_: dict[str, Any] = {"min_score": 0.2, "max_rule_length": 2}
    small = stair.Stair(**settings_).fit(frame[features], frame.label)
    large = stair.Stair(engine=engine, **settings_).fit(pattern, "label")
    assert large.rules_ == small.rules_
    assert (large.score_, large.trace_) == (small.score_, small.trace_)
    assert large.classes_.tolist() == [3, 5]
    assert (large.predict(frame[features]) == small.predict(frame[features])).all()
    with pytest.raises(stair.StairError, match="takes no sample_weight"):
        stair.Stair(engine=engine).fit(pattern, "label", sample_weight=[1.0])
    words = files(frame.assign(word="a"), tmp_path / "words")
    with pytest.raises(stair.StairError, match='numbers only, but "word" holds text'):
        stair.Stair(engine=engine).fit(words, "label")


# --- bins -----------------------------------------------------------------------------------------

REALS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e9]),
    st.floats(-1e6, 1e6).map(lambda x: round(x, 3)),
)
NEAR = st.builds(operator.add, st.sampled_from([0, 2**53, 2**60, -(2**62)]), st.integers(-4, 40))
# Whole numbers of 64 bits, signed and not, and times (within what a calendar has).
TYPES = {
    "real": (np.float64, REALS),
    "whole": (np.int64, NEAR | st.integers(-(2**63), 2**63 - 1)),
    "unsigned": (np.uint64, NEAR.map(abs) | st.integers(2**63, 2**64 - 1)),
    "time": (np.int64, NEAR | st.integers(-(2**61), 2**61)),
}


@settings(max_examples=examples(200), deadline=None)
@given(st.data(), st.sampled_from(list(TYPES)), st.integers(2, 20))
def test_a_cut_between_bins_covers_the_rows_of_its_bins(
    data: st.DataObject, kind: str, n_bins: int
) -> None:
    """Whatever the bins are, the clause of a cut and the codes agree on every row.

    Numbers beyond 2**53 and times beyond the year 2255 went through floats, which merged them.
    """
    dtype, values = TYPES[kind]
    x = np.array(data.draw(st.lists(values, min_size=2, max_size=300)), dtype=dtype)
    sketch = Sketch()
    for part in np.array_split(x, 3):
        sketch.add(part)
    inner = Times("x", 0) if kind == "time" else Numbers("x", 0)
    column, edges = binned(inner, sketch, n_bins)
    codes = bin_numbers(x, np.array(edges, dtype=dtype), len(column.tops) + 1)
    assert len(column.tops) == len(column.bottoms) == len(edges) + 1
    told = x.astype("datetime64[us]") if kind == "time" else x
    present = np.unique(codes).tolist()
    for below, above in itertools.pairwise(present):
        left, right = column.cut(below, above, None)
        assert (left.covers(told) == (codes <= below)).all()
        assert (right.covers(told) == (codes >= above)).all()
    if len(np.unique(x)) <= n_bins:
        assert len(present) == len(np.unique(x))


@pytest.mark.parametrize("n_parts", [1, 7, 100])
def test_quantiles_are_within_a_bin(n_parts: int) -> None:
    """Parts of any size, added or merged, in order or not: a rank is off by less than one bin."""
    rng = np.random.default_rng(n_parts)
    x = rng.normal(size=200_000) ** 3
    x[::3] = np.sort(x[::3])
    bounds = np.sort(rng.integers(0, len(x), n_parts - 1))
    whole, merged = Sketch(), Sketch()
    for part in np.split(x, bounds):
        whole.add(part)
        other = Sketch()
        other.add(part)
        merged.merge(other)
    ordered = np.sort(x)
    for sketch in (whole, merged):
        assert (sketch.n_rows, sketch.lowest, sketch.highest) == (len(x), x.min(), x.max())
        ranks = np.searchsorted(ordered, sketch.quantiles(1023)) / len(x)
        assert np.abs(ranks - np.arange(1, 1024) / 1024).max() < 1 / 1024


def test_a_frequent_value_is_a_bin_of_its_own() -> None:
    """Half of the rows at zero must be tellable from those just above and just below."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random(50_000) < 0.5, 0.0, rng.normal(size=50_000))
    sketch = Sketch()
    sketch.add(x)
    column, edges = binned(Numbers("x", 0), sketch, 64)
    codes = bin_numbers(x, np.array(edges), len(column.tops) + 1)
    at_zero = codes == codes[x == 0.0][0]
    assert np.abs(x[at_zero]).max() < 0.05


def test_edges_are_short_decimals() -> None:
    rng = np.random.default_rng(1)
    sketch = Sketch()
    sketch.add(rng.random(100_000))
    _, edges = binned(Numbers("x", 0), sketch, 100)
    assert all(len(repr(edge)) <= 5 for edge in edges)
    assert {0.1, 0.5, 0.9} <= set(edges)


# --- runs that die, and go on ---------------------------------------------------------------------

DYING = """
import os, signal, sys
import stair
from stair.progress import telling

def say(message):
    if message.startswith("level 3"):
        os.kill(os.getpid(), signal.SIGKILL)

options = {"labels": "label", "method": "stair", "engine": "duckdb", "min_score": 0.9}
with telling(say):
    stair.summarize(sys.argv[1], **options)
"""


def test_a_run_that_was_killed_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The codes and three levels are found again; at the end nothing is left behind."""
    pattern = files(mixed(8), tmp_path / "data")
    options: dict[str, Any] = {"labels": "label", "method": "stair", "engine": "duckdb"}
    whole = summarize(pattern, min_score=0.9, **options)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    killed = subprocess.run([sys.executable, "-c", DYING, pattern], env=dict(os.environ))
    assert killed.returncode == -signal.SIGKILL
    assert len(list(temporary.glob("stair-*/codes.parquet"))) == 1
    said: list[str] = []
    rest = summarize(pattern, min_score=0.9, progress=said.append, **options)
    assert said[0] == "the codes of an earlier run are there"
    assert next(m for m in said if m.startswith("level")).startswith("level 4")
    assert (rest.rules, rest.trace, rest.evidence) == (whole.rules, whole.trace, whole.evidence)
    assert list(temporary.iterdir()) == []


def test_a_chosen_folder_keeps_the_codes_for_other_settings(tmp_path: Path) -> None:
    """Another floor needs no look at the data; other bins do, in a folder of their own."""
    pattern = files(mixed(8), tmp_path / "data")
    work = tmp_path / "work"
    work.mkdir()
    options: dict[str, Any] = {"labels": "label", "method": "stair", "engine": "duckdb"}
    options["work"] = work
    summarize(pattern, min_score=0.5, **options)
    said: list[str] = []
    found = summarize(pattern, min_score=0.9, progress=said.append, **options)
    assert said[0] == "the codes of an earlier run are there"
    apart = summarize(pattern, min_score=0.9, **{**options, "work": None})
    assert found.rules == apart.rules
    said.clear()
    summarize(pattern, bins=10, progress=said.append, **options)
    assert said[0].startswith("pass 1")
    assert not list(work.glob("*/spill"))


def test_two_runs_about_the_same_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one works in a folder of its own, and both clean up."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    pattern = files(mixed(8), tmp_path / "data")
    options: dict[str, Any] = {"labels": "label", "method": "stair", "engine": "duckdb"}
    options["min_score"] = 0.9
    within: list[Any] = []

    def meanwhile(message: str) -> None:
        if message.startswith("level 2"):
            within.append(summarize(pattern, **options).rules)

    outer = summarize(pattern, progress=meanwhile, **options)
    assert within == [outer.rules]
    assert list(temporary.iterdir()) == []


def test_a_missing_package_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = files(mixed(8, 100), tmp_path / "data")
    for engine, module in (("duckdb", "stair.data.stream"), ("dask", "stair.scale.dask")):
        monkeypatch.setattr(f"{module}.optional", lambda _: None)
        extra = {"duckdb": "scale", "dask": "dask"}[engine]
        with pytest.raises(stair.StairError, match=rf"pip install 'stair\[{extra}\]'"):
            summarize(pattern, labels="label", engine=engine)


def test_progress_says_the_level_and_how_fast(tmp_path: Path) -> None:
    pattern = files(mixed(8), tmp_path / "data")
    said: list[str] = []
    options: dict[str, Any] = {"labels": "label", "engine": "duckdb", "progress": said.append}
    summarize(pattern, method="stair", **options)
    assert any(m.startswith("pass 1, ") and "rows/s" in m for m in said)
    assert any(m.startswith("pass 2, ") and "rows/s" in m for m in said)
    assert any(m.startswith("level 2: ") and "rows/s" in m for m in said)


# --- what is refused ------------------------------------------------------------------------------


def test_what_engines_cannot_do_is_said(tmp_path: Path) -> None:
    """Each in one sentence that says what to do."""
    frame = mixed(9, 300)
    rng = np.random.default_rng(0)
    frame["note"] = [" ".join(rng.choice(list("abcdefgh"), 5)) for _ in range(len(frame))]
    pattern = files(frame, tmp_path / "data")
    for engine in ("duckdb", "dask"):
        with pytest.raises(stair.StairError, match=r'"note" holds text.*exclude=\["note"\]'):
            summarize(pattern, labels="label", method="stair", engine=engine)
        with pytest.raises(stair.StairError, match="takes the verdict as a column"):
            summarize(pattern, scores="amount", contamination=0.1, engine=engine)
        with pytest.raises(stair.StairError, match=r'no column "lable".*Did you mean "label"'):
            summarize(pattern, labels="lable", engine=engine)
    with pytest.raises(stair.StairError, match="engine duckdb reads files"):
        summarize(frame, labels="label", engine="duckdb")
    with pytest.raises(stair.StairError, match="takes a Dask DataFrame"):
        summarize(frame, labels="label", engine="dask")
    with pytest.raises(stair.StairError, match="no engine 'abacus'"):
        summarize(pattern, labels="label", engine="abacus")
    frame["amount"] = np.where(frame["size"] > 2, np.inf, 1.0)
    pattern = files(frame.drop(columns="note"), tmp_path / "more")
    with pytest.raises(stair.StairError, match='"amount" has infinite numbers, which cannot be'):
        summarize(pattern, labels="label", engine="duckdb", method="stair",
                        kinds={"amount": "category"})  # fmt: skip


def test_a_row_group_need_not_fit(tmp_path: Path) -> None:
    """A row group larger than DuckDB's share: it wanted all of it at once, and refused.

    DuckDB reads whole row groups ahead unless it is told not to; 600 columns were enough.
    """
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"f{j}": rng.random(30_000) for j in range(600)})
    wide.to_parquet(tmp_path / "wide.parquet", index=False)
    assert pq.ParquetFile(tmp_path / "wide.parquet").num_row_groups == 1
    with open_stream(
        tmp_path / "wide.parquet", table=None, query=None, memory=96 << 20, spill=tmp_path / "spill"
    ) as stream:
        assert sum(part.num_rows for part in stream.batches(stream.names, 4096)) == 30_000


def test_a_table_too_wide_for_the_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """DuckDB's reader holds pages of every column outside of its limit: 600 took 1.5 GB of 1 GB."""
    wide = pd.DataFrame({f"f{j}": [0.0, 1.0] for j in range(600)}).assign(label=[0, 1])
    wide.to_parquet(tmp_path / "wide.parquet", index=False)
    options: dict[str, Any] = {"labels": "label", "engine": "duckdb", "memory": "1GB"}
    with pytest.raises(stair.StairError, match=r"601 columns take about 1\.6GB to read"):
        summarize(tmp_path / "wide.parquet", **options)
    few = [f"f{j}" for j in range(10)]
    assert summarize(tmp_path / "wide.parquet", include=few, **options).score == 1.0


def test_memory_is_read_as_people_write_it() -> None:
    assert read_memory("1GB") == 10**9
    assert read_memory("1.5 GiB") == 3 << 29
    assert read_memory("800mb") == 800 * 10**6
    assert read_memory(1 << 30) == 1 << 30
    for wrong in ("much", "-1GB", "1 XB"):
        with pytest.raises(stair.StairError, match="not understood"):
            read_memory(wrong)
    with pytest.raises(stair.StairError, match="at least 512MiB"):
        read_memory("10MB")


def test_the_page_about_scale_has_the_committed_figures() -> None:
    """The table in docs/scale.md is written by the benchmark, never typed."""
    body = (ROOT / "benchmarks" / "results" / "scale.md").read_text(encoding="utf-8").strip()
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert f"<!-- scale:begin -->\n\n{body}\n\n<!-- scale:end -->" in page
