"""The engine spark in Spark's local mode: the same seam, the same rules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stair
from large import files, mixed
from settings import summarize
from stair.apply import apply_rules
from stair.scale.work import CODES_ARE_THERE

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("spark")]  # Spark's own


def test_spark_gives_the_rules_of_the_memory_engine(tmp_path: Path, spark: Any) -> None:
    """Mixed columns with ties and missing values; rules, counts, trace and evidence."""
    frame = mixed(3).drop(columns=["amount", "seen"])
    files(frame, tmp_path / "data")
    data = spark.read.parquet(str(tmp_path / "data"))
    options: dict[str, Any] = {"labels": "label", "min_score": 0.7, "max_rule_length": 4}
    small = summarize(frame, method="stair", **options)
    large = summarize(data, method="stair", engine="spark", **options)
    assert (large.rules, large.trace) == (small.rules, small.trace)
    assert (large.evidence, large.score) == (small.evidence, small.score)
    sampled = summarize(
        data, "label", method="cart", include=["size", "level"], engine="spark", min_score=0.1,
        sample=len(frame),
    )  # fmt: skip
    by_hand = summarize(frame, "label", method="cart", include=["size", "level"], min_score=0.1)
    assert sampled.score == by_hand.score
    assert {r.clauses: r.counts for r in sampled.rules} == {
        r.clauses: r.counts for r in by_hand.rules
    }


def test_rules_of_spark_are_applied_and_checked_as_any(tmp_path: Path, spark: Any) -> None:
    """Learned and saved there, they label rows in memory as their SQL does in Spark; the reasons of
    rows that Spark has flagged are those of the same rows in memory, and how rules do on new rows
    is the same wherever these are counted."""
    frame = mixed(4, 2000).drop(columns=["seen"]).assign(place=range(2000))
    files(frame, tmp_path / "data")
    data = spark.read.parquet(str(tmp_path / "data"))
    summarize(
        data, "label", exclude=["place"], engine="spark", sample=1000, min_score=0.7
    ).to_json(tmp_path / "rules.json")  # fmt: skip
    book = stair.load(tmp_path / "rules.json")
    data.createOrReplaceTempView("payments")
    query = book.to_sql("payments", dialect="spark").rstrip().rstrip(";")
    labelled = spark.sql(query)
    rows = labelled.selectExpr("place", "stair_label", "coalesce(stair_rule, 0)").collect()
    applied = apply_rules(book, frame)
    assert [tuple(row)[1:] for row in sorted(rows)] == list(
        zip(applied.labels.tolist(), applied.rules.tolist(), strict=True)
    )
    flagged = sorted(place for place, label, _ in rows if label == book.rules.positive)
    assert flagged
    there = labelled.where("stair_rule IS NOT NULL").orderBy("place").toPandas()
    mine = frame.iloc[flagged].reset_index(drop=True)
    assert book.reasons(there).words == book.reasons(mine).words
    found = stair.check(book, data, "label", engine="spark")
    assert replace(found, source="data") == stair.check(book, frame, "label")


def test_rows_of_a_rule_as_a_frame_of_spark(tmp_path: Path, spark: Any) -> None:
    """Lazily, and of outliers that no rule covers, too."""
    frame = mixed(3, 600).drop(columns=["day", "seen"])
    files(frame, tmp_path / "data")
    data = spark.read.parquet(str(tmp_path / "data"))
    found = summarize(data, labels="label", min_score=0.7, engine="spark", validate=0)
    matches = found.rules.matches(frame)
    for number in range(len(found.rules)):
        lazy = found.matches(number + 1)
        assert hasattr(lazy, "mapInArrow")
        assert lazy.count() == int(matches.applies[:, number].sum())
    missed = found.unexplained_matches().toPandas()
    assert len(missed) == found.unexplained
    assert (missed["label"] == 1).all()


def test_what_spark_cannot_do_is_said(tmp_path: Path, spark: Any) -> None:
    frame = mixed(3, 200)
    files(frame, tmp_path / "data")
    data = spark.read.parquet(str(tmp_path / "data"))
    with pytest.raises(stair.StairError, match='no column "lable"'):
        summarize(data, labels="lable", engine="spark")
    with pytest.raises(stair.StairError, match="takes a Spark DataFrame, but got DataFrame"):
        summarize(frame, labels="label", engine="spark")
    for path in (tmp_path / "data").glob("part-1*"):
        path.unlink()
    with pytest.raises(stair.StairError, match="Spark cannot read the data"):
        summarize(data, labels="label", engine="spark")


DYING = """
import os, signal, sys
import spark_session
import stair
from stair.progress import telling

def say(message):
    if message.startswith("level 3"):
        os.kill(os.getpid(), signal.SIGKILL)

data, work = sys.argv[1:]
frame = spark_session.session().read.parquet(data)
with telling(say):
    stair.summarize(frame, "label", method="stair", engine=stair.Spark(work=work), min_score=0.9)
"""


def test_a_run_that_was_killed_goes_on(tmp_path: Path, spark: Any) -> None:
    """The driver is killed between levels; the next one finds codes and levels, and reads no data.
    A part that is damaged is coded again, and files that changed are looked at anew."""
    frame = mixed(8).drop(columns=["amount", "seen"])  # whose bins are exact
    files(frame, tmp_path / "data")
    (tmp_path / "work").mkdir()
    place = str(tmp_path / "data")
    whole = summarize(frame, "label", method="stair", min_score=0.9)
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", DYING, place, str(tmp_path / "work")]
    died = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    (folder,) = (tmp_path / "work").iterdir()
    assert list(folder.glob("part-*.parquet")) and list(folder.glob("levels-*.json"))

    def said() -> list[str]:
        heard: list[str] = []
        found = summarize(
            spark.read.parquet(place), "label", method="stair", progress=heard.append,
            engine="spark", work=tmp_path / "work", min_score=0.9,
        )  # fmt: skip
        assert (found.rules, found.trace) == (whole.rules, whole.trace)
        assert (found.evidence, found.score) == (whole.evidence, whole.score)
        return heard

    first = said()
    assert first[0] == CODES_ARE_THERE
    assert next(each for each in first if each.startswith("level")).startswith("level 4")
    (damaged, *_) = sorted(folder.glob("part-*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    assert said()[0].endswith("parts of an earlier run are there")
    about = tmp_path / "data" / "part-0.parquet"
    about.write_bytes(about.read_bytes())
    assert said()[0].startswith("pass 1")


def test_weights_are_those_of_memory(tmp_path: Path, spark: Any) -> None:
    """All rows are in the sample: distilled rules by weight, whose partitions are put together."""
    frame = mixed(12, n_rows=900)[["size", "level", "known", "label"]]
    frame["money"] = [round(1 + k * 0.37 % 7, 2) if k % 13 else 0.0 for k in range(900)]
    files(frame, tmp_path / "data")
    wish: dict[str, Any] = {
        "labels": "label", "weights": "money", "min_score": 0.5, "effort": "fast", "validate": 0,
        "exclude": ["money"],
    }  # fmt: skip
    here = summarize(frame, **wish)
    there = summarize(spark.read.parquet(str(tmp_path / "data")), engine="spark", **wish)
    assert (there.rules, there.score) == (here.rules, here.score)
    assert (there.evidence, there.weighed, there.rest) == (here.evidence, here.weighed, here.rest)
