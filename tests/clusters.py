"""A real cluster for the tests: a scheduler and workers, each a process that can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Processes:
    """The processes of one cluster."""

    def __init__(self, folder: Path, n_workers: int) -> None:
        self._file = folder / "scheduler.json"
        self._log = (folder / "log").open("w")
        self.scheduler = self._run("dask_scheduler", "--port", "0", "--host", "127.0.0.1")
        self.address = self._wait_for_address()
        self.workers = [
            self._run("dask_worker", "--nthreads", "1", "--no-nanny") for _ in range(n_workers)
        ]

    def _run(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self._file),
            "--no-dashboard", *options,
        ]  # fmt: skip
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def _wait_for_address(self) -> str:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert self.scheduler.poll() is None, "the scheduler did not start"
            try:
                return str(json.loads(self._file.read_text())["address"])
            except (OSError, ValueError, KeyError):
                time.sleep(0.05)
        raise TimeoutError("no scheduler")

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self._log.close()


@contextmanager
def cluster(folder: Path, n_workers: int = 2) -> Iterator[Processes]:
    processes = Processes(folder, n_workers)
    try:
        yield processes
    finally:
        processes.close()
