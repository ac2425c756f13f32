"""A real cluster: processes that work together, and processes that are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import stair
from clusters import cluster
from large import files, mixed
from settings import summarize

dd = pytest.importorskip("dask.dataframe")
# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")

OPTIONS: dict[str, Any] = {
    "labels": "label",
    "method": "stair",
    "engine": "dask",
    "min_score": 0.9,
}


def test_a_cluster_gives_the_rules_of_one_process_even_where_a_worker_dies(tmp_path: Path) -> None:
    """Two workers; then one of them is killed in the middle, and what it held is made again."""
    frame = mixed(0)
    data = dd.from_pandas(frame, npartitions=6)
    alone = summarize(data, **OPTIONS)
    with cluster(tmp_path) as processes:
        import distributed

        with distributed.Client(processes.address, set_as_default=False) as client:
            client.wait_for_workers(2)
            both = summarize(data, client=client, **OPTIONS)
            assert (both.rules, both.trace, both.evidence) == (
                alone.rules, alone.trace, alone.evidence,
            )  # fmt: skip

            def kill(message: str) -> None:
                if message.startswith("level 2"):
                    processes.workers[0].kill()
                    processes.workers[0].wait()

            one_died = summarize(data, client=client, progress=kill, **OPTIONS)
    assert processes.workers[0].returncode == -9
    assert (one_died.rules, one_died.trace, one_died.evidence) == (
        alone.rules, alone.trace, alone.evidence,
    )  # fmt: skip


def test_a_scheduler_that_dies_is_one_sentence(tmp_path: Path) -> None:
    """No hang: it is said within seconds, and nothing else is printed."""
    data = files(mixed(0), tmp_path / "data")
    with cluster(tmp_path) as processes:

        def kill(message: str) -> None:
            if message.startswith("level 2"):
                processes.scheduler.kill()
                processes.scheduler.wait()

        started = time.monotonic()
        with pytest.raises(stair.StairError, match=r"the scheduler at tcp.* is gone; start it"):
            summarize(data, client=processes.address, progress=kill, **OPTIONS)
        assert time.monotonic() - started < 60


def test_a_task_that_runs_out_of_time_is_one_sentence(tmp_path: Path) -> None:
    """It was taken for our own patience, and asked for its result for ever."""
    frame = mixed(0, 100)

    def slow(_: int) -> Any:
        raise TimeoutError("the store does not answer")

    data = dd.from_map(slow, [0, 1], meta=frame.iloc[:0])
    said = "cannot be read: the store does not answer"
    with cluster(tmp_path, 1) as processes, pytest.raises(stair.StairError, match=said):
        summarize(data, client=processes.address, **OPTIONS)


def test_an_address_where_nobody_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stair.scale.dask.PATIENCE", 1.0)
    data = files(mixed(0, 100), tmp_path / "data")
    with pytest.raises(stair.StairError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        summarize(data, client="tcp://127.0.0.1:9", **OPTIONS)
    with pytest.raises(stair.StairError, match="no scheduler answers at nonsense://x"):
        summarize(data, client="nonsense://x", **OPTIONS)


def test_the_command_on_a_cluster(tmp_path: Path) -> None:
    """`stair summarize DATA --method stair --engine dask --scheduler ADDRESS --work FOLDER`."""
    data = files(mixed(0), tmp_path / "data")
    work = tmp_path / "work"
    work.mkdir()
    with cluster(tmp_path, 1) as processes:
        command = [sys.executable, "-m", "stair.cli", "summarize", data, "--label", "label"]
        command += ["--method", "stair", "--engine", "dask", "--scheduler", processes.address]
        command += ["--work", str(work)]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert "3,000 rows" in done.stdout
    assert len(list(work.glob("*/part-*.parquet"))) == 3


def test_parquet_that_is_not_there_or_damaged(tmp_path: Path) -> None:
    with pytest.raises(stair.StairError, match="cannot read"):
        summarize(str(tmp_path / "none.parquet"), **OPTIONS)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(stair.StairError, match="cannot"):
        summarize(str(tmp_path / "a.parquet"), **OPTIONS)
