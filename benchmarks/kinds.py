"""Distilled rules on rows that do not fit: `python -m benchmarks.kinds [FOLDER]`.

Ten columns of numbers, and three kinds of outliers planted in the midst of the inliers, the rarest
with 40 rows. The command learns them through DuckDB within a gigabyte, with nothing said of the
method; memory of all its processes is watched from outside, and DuckDB counts the score by itself.
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

SIZES = (1_000_000, 10_000_000)
ROWS_A_FILE = 1_000_000
N_COLUMNS = 10
LABEL = "flagged"
FLOOR = 0.99
MEMORY = "1GB"
# Of each kind the rows, and between which numbers its columns lie. No inlier lies there.
KINDS: dict[str, tuple[int, dict[str, tuple[float, float]]]] = {
    "common": (1_200, {"x1": (0.9, 1.4), "x4": (-0.6, 0.2)}),
    "less common": (760, {"x2": (-1.5, -0.9), "x7": (0.3, 0.9), "x9": (-0.4, 0.4)}),
    "rare": (40, {"x3": (1.1, 1.6), "x8": (-1.3, -0.8)}),
}


def write(folder: Path, n_rows: int) -> None:
    """Files of a million rows each; the outliers are spread over all of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    n_files = -(-n_rows // ROWS_A_FILE)
    rng = np.random.default_rng(15)
    kind_of = np.repeat(np.arange(len(KINDS)), [n for n, _ in KINDS.values()])
    file_of = rng.integers(0, n_files, len(kind_of))
    for number in range(n_files):
        size = min(ROWS_A_FILE, n_rows - number * ROWS_A_FILE)
        table = _part(number, size, kind_of[file_of == number])
        arrays = {name: pa.array(column) for name, column in table.items()}
        pq.write_table(pa.table(arrays), folder / f"part-{number:05d}.parquet", compression="zstd")


def _part(number: int, n_rows: int, planted: Any) -> dict[str, Any]:
    rng = np.random.default_rng([15, number])
    columns = {f"x{j}": rng.normal(size=n_rows) for j in range(1, N_COLUMNS + 1)}
    boxes = [box for _, box in KINDS.values()]
    for box in boxes:  # an inlier that lies in a box takes one step aside
        inside = np.ones(n_rows, dtype=np.bool_)
        for name, (low, high) in box.items():
            inside &= (columns[name] >= low) & (columns[name] <= high)
        name, (low, high) = next(iter(box.items()))
        columns[name][inside] += (high - low) * np.where(columns[name][inside] < 0, -1.0, 1.0)
    label = np.zeros(n_rows, dtype=np.int8)
    rows = rng.choice(n_rows, len(planted), replace=False)
    for row, kind in zip(rows.tolist(), planted.tolist(), strict=True):
        for name, (low, high) in boxes[kind].items():
            columns[name][row] = rng.uniform(low, high)
    label[rows] = 1
    return {**columns, LABEL: label}


# --- one run of the command, watched --------------------------------------------------------------


def learn(folder: Path, engine: str, *options: str) -> dict[str, Any]:
    """What `stair summarize` finds, says and takes."""
    from stair.export import load

    with tempfile.TemporaryDirectory() as place:
        rules = Path(place) / "rules.json"
        command = [sys.executable, "-m", "stair.cli", "summarize", str(folder), "--label", LABEL]
        command += ["--engine", engine, "--min-score", str(FLOOR), "--json", str(rules), *options]
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        done = threading.Event()
        peak = 0

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.01):
                peak = max(peak, resident(process.pid))

        thread = threading.Thread(target=watch)
        thread.start()
        said, _ = process.communicate()
        done.set()
        thread.join()
        seconds = time.perf_counter() - started
        saved = load(rules)
    print(said, flush=True)
    named = {frozenset(rule.features) for rule in saved.rules}
    settings = saved.facts["settings"]
    return {
        "engine": engine,
        "options": " ".join(options),
        "exit code": process.returncode,
        "seconds": seconds,
        "peak MB": peak / 1e6,
        "method": saved.facts["method"],
        "passes": settings["passes"],
        "rounds": settings["rounds"],
        "score": saved.facts["score"],
        "all kinds named": all(frozenset(box) in named for _, box in KINDS.values()),
        "total length": saved.rules.total_length,
        "rules": [f"{rule} ({int(rule.hits)} of {int(rule.rows)} rows)" for rule in saved.rules],
        **by_duckdb(folder, saved.to_sql("planted")),
    }


def by_duckdb(folder: Path, query: str) -> dict[str, Any]:
    """The score of the rules' SQL on all rows, counted by DuckDB alone."""
    import duckdb

    with duckdb.connect() as con:
        con.execute(f"CREATE VIEW planted AS FROM read_parquet('{folder}/*.parquet')")
        hits, told, there, n_rows = con.execute(
            f"SELECT count(*) FILTER (stair_label = 'outlier' AND {LABEL} = 1), "
            f"count(*) FILTER (stair_label = 'outlier'), count(*) FILTER ({LABEL} = 1), count(*) "
            f"FROM ({query.rstrip().removesuffix(';')}\n)"
        ).fetchall()[0]
    f1 = 2.0 * hits / (told + there)
    return {"rows": n_rows, "hits": hits, "told": told, "outliers": there, "F1 by DuckDB": f1}


def main() -> None:
    results = []
    with tempfile.TemporaryDirectory(prefix="kinds-") as place:
        base = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place)
        for n_rows in SIZES:
            folder = base / f"rows-{n_rows}"
            if not folder.is_dir():
                write(folder, n_rows)
            results.append(learn(folder, "duckdb", "--memory", MEMORY))
            if n_rows == min(SIZES):
                results.append(learn(folder, "dask"))
    (RESULTS / "kinds.json").write_text(json.dumps(results, indent=1) + "\n")
    first, dask = results[0], results[1]
    lines = [
        "| rows | engine | seconds | rounds | passes | peak MB | total length | all kinds named "
        "| F1 | F1 by DuckDB |",
        "|---:|---|---:|---:|---:|---:|---:|---|---:|---:|",
    ]
    lines += [
        f"| {r['rows']:,} | {r['engine']} {r['options']} | {r['seconds']:.0f} | {r['rounds']} "
        f"| {r['passes']} | {r['peak MB']:.0f} | {r['total length']} "
        f"| {'yes' if r['all kinds named'] else 'NO'} "
        f"| {r['score']:.4f} | {r['F1 by DuckDB']:.4f} |"
        for r in results
    ]
    same = "equal" if first["rules"] == dask["rules"] else "NOT EQUAL"
    lines += ["", f"The rules of the two engines are {same}."]
    body = "\n".join(lines)
    (RESULTS / "kinds.md").write_text(body + "\n")
    page = ROOT / "docs" / "scale.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition("<!-- kinds:begin -->")
    _, end, after = rest.partition("<!-- kinds:end -->")
    page.write_text(f"{before}{begin}\n\n{body}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
