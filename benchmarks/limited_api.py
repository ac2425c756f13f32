"""What the lasting part of Python's C interface costs: `python -m benchmarks.limited_api`.

One wheel serves all versions of Python because the kernels keep to that part. Here they are
compiled both ways, and two processes that differ in nothing else do the same work in turn.
Processor time is compared, on one thread, as the median of the ratios of neighbours, so that a slow
moment of the machine hits both.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "limited_api.json"
ROUNDS = 21
BUILDS = {"lasting": True, "whole": False}


def work() -> dict[str, Callable[[], object]]:
    """What is timed, with the kernel that does most of it."""
    import numpy as np

    from stair import DistilledStair, Stair
    from stair.engines.counting import Block, bin_numbers, count_block, no_counts, only_root

    random = np.random.default_rng(0)
    X = random.normal(size=(200_000, 10))
    y = (X[:, 0] > 2) | ((X[:, 1] < -1.5) & (X[:, 2] > 0.5)) | (random.random(len(X)) < 0.005)
    codes = [bin_numbers(column, np.linspace(-3, 3, 100), 128) for column in X.T]
    block, paths, sizes = Block(codes, y.astype(np.uint8)), only_root(), [128] * len(codes)

    def count() -> None:
        counts = no_counts(1, sizes, 2, range(len(codes)))
        for _ in range(20):
            count_block(block, paths, sizes, range(len(codes)), counts)

    tree = Stair(min_score=0.85)
    rules = DistilledStair(min_score=0.8, effort="fast", random_state=0)
    small = slice(0, 5000)  # where calls weigh more than loops
    known = DistilledStair(min_score=0.8, effort="fast", random_state=0).fit(X[small], y[small])
    return {
        "Stair, 200,000 × 10": lambda: tree.fit(X, y),
        "Stair, 5,000 × 10, 20 times": lambda: [tree.fit(X[small], y[small]) for _ in range(20)],
        "one pass of counts, 20 times": count,
        "DistilledStair, 20,000 × 10": lambda: rules.fit(X[:20_000], y[:20_000]),
        "predict, 200,000 rows, 20 times": lambda: [known.predict(X) for _ in range(20)],
        "predict, 50 rows, 200 times": lambda: [known.predict(X[:50]) for _ in range(200)],
    }


def build(folder: Path, is_lasting: bool) -> None:
    """A copy of the sources with its kernels compiled."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "_*.c"))
    shutil.copy(ROOT / "setup.py", folder)
    code = (
        "import setup, setuptools; setuptools.setup(name='stair', package_dir={'': 'src'},"
        f" ext_modules=setup.extensions({is_lasting}), script_args=['-q', 'build_ext', '-i'])"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    kernels = {path.name.partition(".")[2] for path in (folder / "src").rglob("*.so")}
    assert len(kernels) == 1 and is_lasting == ("abi3.so" in kernels), kernels


class _Worker:
    """A process that does work of a name when it is told to, and says how long it computed."""

    def __init__(self, folder: Path) -> None:
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        paths = os.pathsep.join((str(folder / "src"), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.limited_api", "worker"], text=True, cwd=folder,
            env={**os.environ, **one, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def seconds(self, name: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def stop(self) -> None:
        self._process.communicate()


def _serve() -> None:
    jobs = work()
    for line in sys.stdin:
        begun = time.process_time()
        jobs[line.strip()]()
        print(time.process_time() - begun, flush=True)


def measure(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """For each work the median seconds of both builds, and the median ratio of neighbours."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        workers = {}
        for each, is_lasting in BUILDS.items():
            build(Path(name) / each, is_lasting)
            workers[each] = _Worker(Path(name) / each)
        for job in work():
            for worker in workers.values():
                worker.seconds(job)  # the first time is not counted
            seconds: dict[str, list[float]] = {each: [] for each in workers}
            for number in range(rounds):
                for each in list(workers)[:: 1 if number % 2 else -1]:
                    seconds[each].append(workers[each].seconds(job))
            pairs = zip(seconds["lasting"], seconds["whole"], strict=True)
            found[job] = {
                **{each: statistics.median(values) for each, values in seconds.items()},
                "ratio": statistics.median(one / other for one, other in pairs),
            }
            print(f"{job}: {found[job]['ratio']:.3f}", flush=True)
        for worker in workers.values():
            worker.stop()
    return found


def main() -> None:
    import Cython

    settings = {
        "python": platform.python_version(), "cython": Cython.__version__, "rounds": ROUNDS,
        "threads": 1,
    }  # fmt: skip
    results = {"settings": settings, "work": measure()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _serve() if sys.argv[1:] == ["worker"] else main()
