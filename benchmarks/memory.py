"""Peak memory of one fit, measured in a process of its own.

The figure is (peak - baseline) / X.nbytes. The baseline is the resident memory of the process
before X exists, when all is imported and a tiny fit has loaded whatever is loaded late. The peak
is the most resident memory until the fit is done. X as float64 thus counts 1.0, the labels y are
in the figure too, and the interpreter and its libraries are not.

The kernel's VmHWM is read and not ru_maxrss: the latter survives exec, so in a child process it
starts at the peak of the parent, which holds more than the child ever will.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import fitted
from benchmarks.data import Task

STATUS = Path("/proc/self/status")
ROOT = Path(__file__).resolve().parent.parent


def can_measure() -> bool:
    """Only Linux tells both the resident memory and its peak."""
    return STATUS.is_file() and "VmHWM:" in STATUS.read_text()


def measure(task: Task, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Peak memory of one contender's fit, from a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", task.X)
        np.save(Path(folder) / "y.npy", task.y)
        command = [sys.executable, "-m", "benchmarks.memory", folder, name, json.dumps(options)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return {"data": task.name, "contender": name, "options": options, **found}


def largest(rows: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """The largest figure of each set and contender."""
    found: dict[tuple[str, str], float] = {}
    for row in rows:
        key = row["data"], row["contender"]
        found[key] = max(row["ratio"], found.get(key, 0.0))
    return found


def _measure_here(folder: Path, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Fit in this process, which must be fresh."""
    tiny = np.arange(20.0).reshape(10, 2)
    fitted(name, options, tiny, np.arange(10) % 2)
    baseline, peak_before = _memory()
    X = np.load(folder / "X.npy")
    y = np.load(folder / "y.npy")
    loaded, _ = _memory()
    fitted(name, options, X, y)
    _, peak = _memory()
    return {
        "x_bytes": X.nbytes,
        "baseline_bytes": baseline,
        "peak_before_x_bytes": peak_before,
        "loaded_bytes": loaded,
        "peak_bytes": peak,
        "ratio": (peak - baseline) / X.nbytes,
    }


def _memory() -> tuple[int, int]:
    """Resident memory of this process in bytes: now, and the most so far."""
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    now, peak = (int(fields[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
    return now, peak


if __name__ == "__main__":
    json.dump(_measure_here(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])), sys.stdout)
