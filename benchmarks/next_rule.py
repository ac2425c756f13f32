"""What comes next, on rows that do not fit: `python -m benchmarks.next_rule [ROWS] [FOLDER]`.

Two kinds of outliers are planted in the midst of the inliers, one with 91% of them and one with 9%.
A floor of 0.8 is reached by a rule for the first, and the second is what one more rule would add.
Each run, in memory or through DuckDB, is a process of its own. All methods are asked for the
frontier; through DuckDB those other than distilled and stair learn from a sample.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import RESULTS, ROOT, resident

N_ROWS = 10_000_000
ROWS_A_FILE = 1_000_000
N_COLUMNS = 5
LABEL = "flagged"
FLOOR = 0.8
OUTLIERS = 0.0046  # of all rows
# Of each kind its share of the outliers, and between which numbers its columns lie. No inlier lies
# there.
KINDS: dict[str, tuple[float, dict[str, tuple[float, float]]]] = {
    "common": (0.91, {"x1": (0.9, 1.4), "x4": (-0.6, 0.2)}),
    "rare": (0.09, {"x2": (-3.5, -2.5), "x5": (0.3, 0.9)}),
}
RUNS = (
    ("memory", "distilled"),
    ("duckdb", "distilled"),
    ("memory", "stair"),
    ("duckdb", "stair"),
    ("duckdb", "refined"),
    ("duckdb", "id3"),
    ("duckdb", "cart"),
    ("duckdb", "local"),
)


def part(number: int, n_rows: int) -> dict[str, Any]:
    """Some rows, the same for the same number."""
    rng = np.random.default_rng([16, number])
    columns = {f"x{j}": rng.normal(size=n_rows) for j in range(1, N_COLUMNS + 1)}
    for _, box in KINDS.values():  # an inlier that lies in a box takes one step aside
        inside = np.ones(n_rows, dtype=np.bool_)
        for name, (low, high) in box.items():
            inside &= (columns[name] >= low) & (columns[name] <= high)
        name, (low, high) = list(box.items())[-1]
        columns[name][inside] += high - low
    rows = rng.permutation(n_rows)[: round(OUTLIERS * n_rows)]
    n_common = round(KINDS["common"][0] * len(rows))
    for (_, box), own in zip(KINDS.values(), np.split(rows, [n_common]), strict=True):
        for name, (low, high) in box.items():
            columns[name][own] = rng.uniform(low, high, len(own))
    label = np.zeros(n_rows, dtype=np.int8)
    label[rows] = 1
    return {**columns, LABEL: label}


def write(folder: Path, n_rows: int) -> None:
    """Files of a million rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for number in range(-(-n_rows // ROWS_A_FILE)):
        size = min(ROWS_A_FILE, n_rows - number * ROWS_A_FILE)
        arrays = {name: pa.array(column) for name, column in part(number, size).items()}
        pq.write_table(pa.table(arrays), folder / f"part-{number:05d}.parquet", compression="zstd")


def learn(folder: Path, engine: str, method: str) -> dict[str, Any]:
    """What a summary says of the rules, of the next one, and of what length buys."""
    import stair

    started = time.perf_counter()
    data: Any = str(folder / "*.parquet")
    if engine == "memory":
        import pyarrow.parquet as pq

        data = pq.read_table(folder)
    found = stair.summarize(data, labels=LABEL, engine=engine, method=method, min_score=FLOOR)
    more = found.further
    return {
        "engine": engine,
        "method": method,
        "rows": found.n_rows,
        "seconds": round(time.perf_counter() - started, 1),
        "passes": found.settings.get("passes"),
        "rules": [str(rule) for rule in found.rules if rule.label == found.rules.positive],
        "score": found.score,
        "not explained": found.unexplained,
        "next rule": None if more is None else str(more.rule),
        "its columns": [] if more is None else sorted(more.rule.features),
        "it explains": None if more is None else more.outliers,
        "score with it": None if more is None else more.score,
        "holds": None if found.check is None else found.check.conclusion,
        "score on rows kept aside": None if found.check is None else found.check.score,
        "frontier": [list(point) for point in found.frontier],
        "settings": dict(found.settings),
    }


def watched(folder: Path, engine: str, method: str) -> dict[str, Any]:
    """The same by a process of its own, whose memory is watched."""
    command = [sys.executable, "-m", "benchmarks.next_rule", "--learn", str(folder), engine, method]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    done, peak = threading.Event(), 0

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.05):
            peak = max(peak, resident(process.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    said, _ = process.communicate()
    done.set()
    thread.join()
    return {**json.loads(said), "peak MB": round(peak / 1e6)}


def main() -> None:
    if sys.argv[1:2] == ["--learn"]:
        print(json.dumps(learn(Path(sys.argv[2]), *sys.argv[3:])))
        return
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else N_ROWS
    with tempfile.TemporaryDirectory(prefix="next-rule-") as place:
        folder = (Path(sys.argv[2]) if len(sys.argv) > 2 else Path(place)) / f"rows-{n_rows}"
        if not folder.is_dir():
            write(folder, n_rows)
        results = []
        for engine, method in RUNS:
            results.append(watched(folder, engine, method))
            print(json.dumps(results[-1]), flush=True)
    (RESULTS / "next_rule.json").write_text(json.dumps(results, indent=1) + "\n")
    publish(results)


def publish(results: list[dict[str, Any]]) -> None:
    """The table in docs/scale.md."""
    body = table(results)
    page = ROOT / "docs" / "scale.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- next:begin -->")
    _, end, after = rest.partition("<!-- next:end -->")
    page.write_text(f"{before}{begin}\n\n{body}\n\n{end}{after}", encoding="utf-8")


def table(results: list[dict[str, Any]]) -> str:
    """The results as people read them."""
    lines = [
        "| rows | engine | method | seconds | peak MB | F1 | on rows kept aside | one more rule | "
        "F1 with it | points of the frontier |",
        "|---:|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for r in results:
        aside, better = r["score on rows kept aside"], r["score with it"]
        lines.append(
            f"| {r['rows']:,} | {r['engine']} | {r['method']} | {r['seconds']:.0f} | "
            f"{r['peak MB']} | {r['score']:.4f} | {'–' if aside is None else f'{aside:.4f}'} | "
            f"{r['next rule'] or '–'} | {'–' if better is None else f'{better:.4f}'} | "
            f"{len(r['frontier'])} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
