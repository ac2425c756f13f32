"""Spark in this process, for tests of the engine and of the SQL.

Without Java or PySpark the tests are skipped with a visible line; where STAIR_TEST_REQUIRE names
"spark", as CI does, that is a failure.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

REQUIRED = "spark" in os.environ.get("STAIR_TEST_REQUIRE", "").split(",")


def session() -> Any:
    """A session of Spark's local mode, whose workers are Pythons as this one."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need stair too
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"  # a start, and no long run
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options '{quick}' pyspark-shell"
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.showConsoleProgress": "false",
        # Small data: what Java code would be made and compiled for takes longer than the data.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    missing = [
        what
        for what, is_here in (
            ("Java", shutil.which("java") is not None),
            ("PySpark", importlib.util.find_spec("pyspark") is not None),
        )
        if not is_here
    ]
    if missing:
        why = f"{' and '.join(missing)} not here: make spark, and a Java runtime"
        if REQUIRED:
            pytest.fail(f"STAIR_TEST_REQUIRE asks for spark; {why}")
        pytest.skip(why)
    opened = session()
    yield opened
    opened.stop()
