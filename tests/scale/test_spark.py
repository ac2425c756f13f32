"""The engine spark in Spark's local mode: the same seam, the same rules."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stair
from large import files, mixed
from settings import summarize

if shutil.which("java") is None:
    pytest.skip("Spark needs Java, which is not here", allow_module_level=True)
sql = pytest.importorskip("pyspark.sql", reason="pip install 'stair[spark]' to test Spark")

pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's own


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark's workers need stair too
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


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
