"""How cost grows with the size of the data: `python -m benchmarks.scale [FOLDER]`.

Files are generated into a folder (a temporary one by default) and removed in the end. Each size is
learned by a process of its own through the engine duckdb, whose memory is watched from outside.
Then passes over the codes alternate with DuckDB's own histograms of the same columns. The engine
dask learns ten million rows on two workers: undisturbed, with a work folder, after a run that was
killed there, with a worker killed, and with the scheduler killed.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale_data import LABEL, planted, write

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).parent / "results"
SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000, 50_000_000)
ON_DASK = 10_000_000
DASK_RUNS = (
    "undisturbed",
    "with a work folder",
    "after a run that was killed",
    "worker killed",
    "scheduler killed",
)
FLOOR = 0.999
ROUNDS = 5


def main() -> None:
    base = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="scale-"))
    largest = int(float(sys.argv[2])) if len(sys.argv) > 2 else max(SIZES)
    base.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {"duckdb": [], "dask": []}
    try:
        for n_rows in (n for n in SIZES if n <= largest):
            folder, work = base / f"rows-{n_rows}", base / "work"
            work.mkdir(exist_ok=True)
            if not folder.is_dir():
                write(folder, n_rows)
            row = _watched(["learn", str(folder), str(work)])
            row |= _child(["passes", str(work)])
            results["duckdb"].append({"rows": n_rows, "files": len(list(folder.iterdir())), **row})
            print(results["duckdb"][-1], flush=True)
            shutil.rmtree(work)
        folder = base / f"rows-{min(ON_DASK, largest)}"
        for what in DASK_RUNS:
            results["dask"].append({"what": what, **_child(["dask", str(folder), what])})
            print(results["dask"][-1], flush=True)
        results["noisy"] = _noisy(base, folder)
        print(results["noisy"], flush=True)
        results["cover"] = _child(["cover"])
        print(results["cover"], flush=True)
    finally:
        if len(sys.argv) < 2:
            shutil.rmtree(base, ignore_errors=True)
    _report(results)


# --- the runs, each in a process of its own -----------------------------------------------------


def learn(folder: str, work: str) -> dict[str, Any]:
    """One run of the engine duckdb, with the time of each pass."""
    from stair.engines.large import read_memory
    from stair.learn.methods import StairMethod
    from stair.scale.options import Options
    from stair.scale.summarize import learn_from_files

    marks: dict[str, float] = {}

    def say(message: str) -> None:
        marks[message.split(",")[0]] = time.perf_counter()

    started = time.perf_counter()
    coded, learned = learn_from_files(
        folder, Options(LABEL), StairMethod(FLOOR), read_memory("1GB"), work, say
    )
    seconds = time.perf_counter() - started
    found = {frozenset(rule.clauses) for rule in learned.rules if rule.label == "outlier"}
    levels = [p.seconds for p in learned.passes[1:]]  # the first was counted with the codes
    return {
        "seconds": seconds,
        "pass 1": marks["pass 1"] - started,
        "pass 2": marks["pass 2"] - marks["pass 1"],
        "a level": statistics.median(levels),
        "passes": learned.n_passes,
        "depth": learned.depth,
        "splits": len(learned.trace),
        "score": learned.score,
        "as planted": found == planted(),
        "rules": _digest(learned.rules),
        "outliers": coded.totals[1],
        "codes MB": sum(f.stat().st_size for f in Path(work).rglob("codes.parquet")) / 1e6,
    }


def _noisy(base: Path, folder: Path) -> list[dict[str, Any]]:
    """The same rows with 3% of the labels wrong: hundreds of rules, within several limits."""
    path = base / "noisy.parquet"
    _child(["spoil", str(folder), str(path)])
    try:
        return [_watched(["deep", str(path), memory]) for memory in ("512MiB", "1GB", "4GB")]
    finally:
        path.unlink()


def spoil(folder: str, path: str) -> dict[str, Any]:
    import duckdb

    with duckdb.connect(
        config={"threads": 1}
    ) as con:  # so that the same labels are wrong each time
        con.execute("SELECT setseed(0.5)")
        con.execute(
            f"COPY (SELECT * EXCLUDE {LABEL}, CASE WHEN random() < 0.03 THEN 1 - {LABEL} "
            f"ELSE {LABEL} END AS {LABEL} FROM '{folder}/*.parquet') TO '{path}'"
        )
    return {}


def deep(path: str, memory: str) -> dict[str, Any]:
    """As many rules as a total length of 1,500 allows."""
    from stair.engines.large import read_memory
    from stair.learn.methods import StairMethod
    from stair.scale.options import Options
    from stair.scale.summarize import learn_from_files

    started = time.perf_counter()
    _, learned = learn_from_files(
        path, Options(LABEL), StairMethod(0.99, 6, 1500), read_memory(memory), None, lambda _: None
    )
    return {
        "memory": memory,
        "seconds": time.perf_counter() - started,
        "n rules": len(learned.rules),
        "passes": learned.n_passes,
        "depth": learned.depth,
        "rules": _digest(learned.rules),
    }


def passes(work: str) -> dict[str, Any]:
    """A pass that counts every row in every column, and DuckDB's histograms, in turns."""
    import duckdb

    from stair.engines.counting import Paths
    from stair.scale.codes import CodesCounter, totals_of
    from stair.scale.work import load_plan

    folder = next(Path(work).glob("*/codes.parquet")).parent
    plan = load_plan(folder)
    assert plan is not None
    coding = plan.coding
    totals = totals_of(folder, plan)
    assert totals is not None
    counter = CodesCounter(folder, coding.columns, coding.sizes, totals)
    half = np.array([coding.sizes[2] // 2, -1, -1], dtype=np.int32)
    both = Paths(
        np.array([2, -1, -1], dtype=np.int32), half, np.full(3, -1, dtype=np.int64),
        np.zeros(1, dtype=np.uint8), np.array([1, -1, -1], dtype=np.int32),
        np.array([2, -1, -1], dtype=np.int32), np.array([-1, 0, 1], dtype=np.int32), 2,
    )  # fmt: skip
    columns = ", ".join(f"histogram(c{j})" for j in range(len(coding.columns)))
    query = f"SELECT {columns} FROM read_parquet('{folder / 'codes.parquet'}')"
    ours, theirs = [], []
    with duckdb.connect(config={"memory_limit": "1GB"}) as con:
        for _ in range(ROUNDS + 1):  # the first warms both up
            started = time.perf_counter()
            counts = counter.count(both, range(len(coding.columns)))
            ours.append(time.perf_counter() - started)
            started = time.perf_counter()
            histograms = con.execute(query).fetchone()
            theirs.append(time.perf_counter() - started)
    first = counts.sum(axis=(0, 2))[: coding.sizes[0]]
    assert histograms[0] == {k: n for k, n in enumerate(first.tolist()) if n}
    ours, theirs = ours[1:], theirs[1:]
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {
        "full pass": statistics.median(ours),
        "histogram": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "worst ratio": max(ratios),
    }


def dask(folder: str, what: str) -> dict[str, Any]:
    """The engine dask on two workers, one thread each."""
    sys.path.insert(0, str(ROOT / "tests"))
    import stair
    from clusters import cluster
    from stair.progress import telling

    with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as processes:
        victims = {"worker killed": processes.workers[0], "scheduler killed": processes.scheduler}

        work = None
        if what in ("with a work folder", "after a run that was killed"):
            work = Path(place) / "work"
            work.mkdir()
        if what.startswith("after"):
            command = [sys.executable, "-m", "benchmarks.scale", "--", "die", folder]
            subprocess.run([*command, str(work), processes.address], cwd=ROOT)
        killed = [0.0]

        def say(message: str) -> None:
            if message.startswith("level 2") and what in victims:
                victims[what].kill()
                killed[0] = time.perf_counter()

        started = time.perf_counter()
        try:
            with telling(say):
                found = stair.summarize(
                    folder, labels=LABEL, method="stair", min_score=FLOOR,
                    engine=stair.Dask(client=processes.address, work=work),
                )  # fmt: skip
        except stair.StairError as error:
            now = time.perf_counter()
            return {
                "seconds": now - started,
                "seconds after": now - killed[0],
                "said": _without_address(error),
            }
        seconds = time.perf_counter() - started
    rules = {frozenset(rule.clauses) for rule in found.rules if rule.label == "outlier"}
    return {
        "seconds": seconds,
        "rows": found.n_rows,
        "passes": found.settings["passes"],
        "as planted": rules == planted(),
        "rules": _digest(found.rules),
        "score": found.score,
    }


def die(folder: str, work: str, address: str) -> dict[str, Any]:
    """A run with a work folder that is killed after its second level."""
    import stair
    from stair.progress import telling

    def say(message: str) -> None:
        if message.startswith("level 2"):
            os.kill(os.getpid(), signal.SIGKILL)

    with telling(say):
        stair.summarize(
            folder, labels=LABEL, method="stair", min_score=FLOOR,
            engine=stair.Dask(client=address, work=work),
        )  # fmt: skip
    return {}


def _digest(rules: Any) -> str:
    """Rules with all their counts in a few letters, to compare them across processes."""
    told = [(rule.clauses, rule.label, rule.counts) for rule in rules]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def _without_address(error: Exception) -> str:
    return re.sub(r"tcp://\S+", "tcp://…", str(error))


def cover() -> dict[str, Any]:
    """The paper's Cover in 1,024 bins: passes for all its splits, beside one split at a time."""
    from experiments.datasets import DataNotFound, load, lof_labels

    from stair.engines.counting import MemoryCounter
    from stair.engines.memory import MemoryEngine
    from stair.learn.grow import grow, leaves_of
    from stair.learn.levels import grow_by_level
    from stair.rules.columns import Binned, Numbers
    from stair.scale.edges import binned
    from stair.scale.sketch import Sketch

    data_dir = ROOT.parent / "shared" / "datasets"
    try:
        data = load("Cover", data_dir if data_dir.is_dir() else None)
    except DataNotFound as error:
        return {"skipped": str(error)}
    y = lof_labels(data.X, data.n_outliers, 80)
    columns: list[Binned] = []
    codes = []
    for j, x in enumerate(data.X.T):
        sketch = Sketch()
        sketch.add(np.ascontiguousarray(x))
        column, edges = binned(Numbers(f"x{j}", j), sketch, 1024)
        columns.append(column)
        codes.append(np.searchsorted(np.array(edges), x, side="left").astype(np.uint16))
    sizes = [len(column.tops) + 1 for column in columns]
    options: dict[str, Any] = {"min_score": 0.8, "max_rule_length": 10, "positive": 1}
    counter = MemoryCounter(columns, sizes, codes, y.astype(np.uint8), 2)
    found = grow_by_level(counter, **options)
    matrix = np.asfortranarray(np.column_stack(codes).astype(np.float64))
    one = grow(MemoryEngine(columns, matrix, y.astype(np.int32), 2), **options)
    return {
        "splits": len(found.growth.steps),
        "passes": len(found.passes),
        "equal": one.steps == found.growth.steps
        and leaves_of(one, 0) == leaves_of(found.growth, 0),
    }


RUNS = {
    "learn": learn,
    "spoil": spoil,
    "deep": deep,
    "passes": passes,
    "dask": dask,
    "die": die,
    "cover": cover,
}


def _child(arguments: list[str]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", "--", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- memory of a process and all its children ---------------------------------------------------


def _watched(arguments: list[str]) -> dict[str, Any]:
    """A run, with the most memory that its processes ever held together."""
    command = [sys.executable, "-m", "benchmarks.scale", "--", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    peak = 0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.02):
            peak = max(peak, resident(process.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    output, _ = process.communicate()
    done.set()
    thread.join()
    if process.returncode:
        raise RuntimeError(f"{arguments} failed")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    own = found.pop("own peak MB")
    return {**found, "peak MB": max(peak / 1e6, own)}


def resident(pid: int) -> int:
    """Bytes in memory of a process and its descendants."""
    total = 0
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        line = next((each for each in status.splitlines() if each.startswith("VmRSS:")), "VmRSS: 0")
        total += int(line.split()[1]) * 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                total += resident(int(child))
    except OSError:
        pass
    return total


def _own_peak() -> float:
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmHWM"].split()[0]) * 1024 / 1e6


# --- the report ---------------------------------------------------------------------------------


def _report(results: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "scale.json").write_text(json.dumps(results, indent=1) + "\n")
    rows = results["duckdb"]
    with (RESULTS / "scale.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    lines = [
        "| rows | seconds | pass 1 | pass 2 | a level | passes | depth | peak MB | full pass "
        "| DuckDB histogram | ratio | as planted |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    lines += [
        f"| {r['rows']:,} | {r['seconds']:.1f} | {r['pass 1']:.1f} | {r['pass 2']:.1f} "
        f"| {r['a level']:.2f} | {r['passes']} | {r['depth']} | {r['peak MB']:.0f} "
        f"| {r['full pass']:.2f} | {r['histogram']:.2f} | {r['ratio']:.2f} "
        f"| {'yes' if r['as planted'] else 'NO'} |"
        for r in rows
    ]
    lines += ["", "| dask, two workers | seconds | result |", "|---|---:|---|"]
    by_rows = {r["rows"]: r["rules"] for r in rows}
    for r in results["dask"]:
        result = (
            f"{r['seconds after']:.1f} s after it: {r['said']}"
            if "said" in r
            else f"{r['rows']:,} rows, {r['passes']} passes, rules "
            + ("equal to DuckDB's" if r["rules"] == by_rows[r["rows"]] else "NOT EQUAL")
            + (", as planted" if r["as planted"] else "")
        )
        lines.append(f"| {r['what']} | {r['seconds']:.1f} | {result} |")
    lines += [
        "",
        "| noisy labels, 10,000,000 rows | seconds | rules | passes | depth | peak MB |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `--memory {r['memory']}` | {r['seconds']:.1f} | {r['n rules']} | {r['passes']} "
        f"| {r['depth']} | {r['peak MB']:.0f} |"
        for r in results["noisy"]
    ]
    same = len({r["rules"] for r in results["noisy"]}) == 1
    lines += ["", f"The rules of the three are {'equal' if same else 'NOT EQUAL'}."]
    about = results["cover"]
    if "splits" in about:
        equal = "equal to one split at a time" if about["equal"] else "NOT EQUAL"
        lines += ["", f"Cover: {about['splits']} splits in {about['passes']} passes, {equal}."]
    body = "\n".join(lines)
    (RESULTS / "scale.md").write_text(body + "\n")
    page = ROOT / "docs" / "scale.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- scale:begin -->")
    _, end, after = rest.partition("<!-- scale:end -->")
    page.write_text(f"{before}{begin}\n\n{body}\n\n{end}{after}", encoding="utf-8")
    _draw(rows)


def _draw(rows: list[dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    n = np.array([row["rows"] for row in rows], dtype=float)
    for key, name in (("seconds", "the whole run"), ("full pass", "one pass over the codes")):
        seconds = np.array([row[key] for row in rows])
        axes.plot(n, seconds, marker="o", label=name)
    last = rows[-1]["seconds"] / rows[-1]["rows"]
    axes.plot(n, n * last, color="0.6", linestyle=":", label="in proportion to the rows")
    axes.set(xscale="log", yscale="log", xlabel="rows (10 columns)", ylabel="seconds")
    axes.grid(visible=True, which="major", color="0.9")
    axes.legend(frameon=False)
    figure.savefig(RESULTS / "scale.png", dpi=120)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--":
        found_ = RUNS[sys.argv[2]](*sys.argv[3:])
        print(
            json.dumps(
                {**found_, "own peak MB": _own_peak()}
                if sys.argv[2] in ("learn", "deep")
                else found_
            )
        )
    else:
        main()
