"""How fast saved rules go over many rows: `python -m benchmarks.apply [ROWS]`.

A Parquet file of 10 columns of numbers is made in a temporary folder and removed in the end. In
turn, in one run: DuckDB executes the exported SQL and writes a new file, `stair apply` does without
and with `--reasons`, and the most memory of each of their processes is watched. Then `predict` of
1,000,000 rows by 100 rules beside scikit-learn's tree of as many leaves. With `--check` nothing is
measured: the page is compared with the committed results.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.readme import ROOT, replaced

RESULTS = Path(__file__).resolve().parent / "results" / "apply.json"
PAGE = ROOT / "docs" / "reasons.md"
ROWS, COLUMNS, SEED = 50_000_000, 10, 20
AT_ONCE = 1 << 20
LEARNED = 20_000
PREDICTED, LEAVES, ROUNDS = 1_000_000, 100, 5
NAMED = {
    "duckdb": "DuckDB, the exported SQL",
    "apply": "`stair apply`",
    "reasons": "`stair apply --reasons`",
}


def columns(rng: np.random.Generator, n_rows: int) -> dict[str, NDArray[np.float64]]:
    return {f"x{j}": rng.normal(size=n_rows) for j in range(COLUMNS)}


def write_rows(path: Path, n_rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(COLUMNS)])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for start in range(0, n_rows, AT_ONCE):
            part = columns(rng, min(AT_ONCE, n_rows - start))
            writer.write_table(pa.table(part, schema=schema), row_group_size=AT_ONCE)


def write_rules(folder: Path) -> dict[str, int]:
    """Rules for a few percent of the rows, as JSON and as SQL."""
    import stair

    x = columns(np.random.default_rng(SEED + 1), LEARNED)
    is_outlier = ((x["x0"] > 1.8) & (x["x1"] > 0)) | (x["x2"] < -2.2) | (x["x4"] > 2.6)
    summary = stair.summarize({**x, "y": is_outlier}, labels="y", min_score=0.95, validate=0)
    summary.to_json(folder / "rules.json")
    summary.to_sql("rows", folder / "rules.sql")
    return {"rules": len(summary.rules), "length": summary.rules.total_length}


BY_DUCKDB = """
import sys, duckdb
rules, source, target = sys.argv[1:]
query = open(rules, encoding="utf-8").read().rstrip().rstrip(";")
query = query.replace('FROM "rows"', f"FROM read_parquet('{source}')")
duckdb.execute(f"COPY ({query}) TO '{target}' (FORMAT parquet)")
"""


def processor_seconds() -> float:
    """Of the processes that have ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def watched(command: list[str]) -> dict[str, float]:
    """How long a process takes, the most memory that it holds, and what else the machine had to do
    (processes that were ready on average over the last minute when it started)."""
    load, used = os.getloadavg()[0], processor_seconds()
    start, peak = time.perf_counter(), 0
    with subprocess.Popen(command, cwd=ROOT) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            try:
                text = status.read_text(encoding="utf-8")
            except OSError:
                break
            found = [line.split()[1] for line in text.splitlines() if line.startswith("VmHWM:")]
            peak = max([peak, *map(int, found)])
            time.sleep(0.05)
    if process.returncode:
        sys.exit(process.returncode)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "processor_seconds": processor_seconds() - used,
            "load": load, "peak_mb": peak / 1024}  # fmt: skip


def apply_rows(n_rows: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="apply-") as name:
        folder = Path(name)
        rules = write_rules(folder)
        source, target = folder / "rows.parquet", folder / "labelled.parquet"
        write_rows(source, n_rows)
        stair = [sys.executable, "-m", "stair", "apply", str(folder / "rules.json"), str(source),
                 "-q", "-o", str(target)]  # fmt: skip
        sql = str(folder / "rules.sql")
        commands = {
            "duckdb": [sys.executable, "-c", BY_DUCKDB, sql, str(source), str(target)],
            "apply": stair,
            "reasons": [*stair, "--reasons"],
        }
        found: dict[str, object] = {"rows": n_rows, "columns": COLUMNS, **rules,
                                    "processors": len(os.sched_getaffinity(0))}  # fmt: skip
        for key, command in commands.items():
            print(f"{NAMED[key]} …", file=sys.stderr, flush=True)
            took = watched(command)
            found[key] = {**took, "rows_a_second": n_rows / took["seconds"]}
            target.unlink()
        found["flagged"] = flagged_share(folder / "rules.json")
    return found


def flagged_share(rules: Path) -> float:
    import stair

    x = columns(np.random.default_rng(SEED), 100_000)
    return float((stair.load(rules).rules.assign(x) >= 0).mean())


def predict() -> dict[str, object]:
    """Rules that overlap, and a tree; best of some rounds in turn."""
    from sklearn.tree import DecisionTreeClassifier

    from stair.rules.clauses import Interval
    from stair.rules.rule_set import Rule, RuleSet
    from stair.rules.schema import Schema

    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(PREDICTED, COLUMNS))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=PREDICTED) / 3 > 1).astype(int)
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, random_state=0).fit(
        X[:LEARNED], y[:LEARNED]
    )
    names = [f"x{j}" for j in range(COLUMNS)]
    rules = RuleSet(
        tuple(
            Rule(tuple(Interval(names[j], low=float(rng.normal(0.5)))
                       for j in rng.choice(COLUMNS, 3, replace=False)), 1)
            for _ in range(LEAVES)
        ),
        (0, 1), Schema.of_numbers(names), 0, (1.0, 1.0), 1,
    )  # fmt: skip
    seconds: dict[str, list[float]] = {"stair": [], "tree": []}
    for _ in range(ROUNDS):
        for key, model in (("stair", rules), ("tree", tree)):
            start = time.perf_counter()
            model.predict(X)
            seconds[key].append(time.perf_counter() - start)
    best = {key: min(each) for key, each in seconds.items()}
    return {"rows": PREDICTED, "rules": LEAVES, "leaves": int(tree.get_n_leaves()),
            "seconds": seconds, "ratio": best["stair"] / best["tree"]}  # fmt: skip


def body() -> str:
    """The committed results as a table."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    done, predicted = results["apply"], results["predict"]
    lines = [
        "| | rows a second | of DuckDB's | by processor time | peak memory |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    base = done["duckdb"]
    for key, words in NAMED.items():
        each = done[key]
        share = each["rows_a_second"] / base["rows_a_second"]
        by_processor = base["processor_seconds"] / each["processor_seconds"]
        lines.append(
            f"| {words} | {each['rows_a_second']:,.0f} | {share:.2f} | {by_processor:.2f} | "
            f"{each['peak_mb']:,.0f} MB |"
        )
    loads = [done[key]["load"] for key in NAMED]
    busy = (
        f" on a busy machine (load {min(loads):.0f} to {max(loads):.0f} on {done['processors']} "
        "processors)"
        if max(loads) > done["processors"]
        else ""
    )
    about = (
        f"{done['rows']:,} rows × {done['columns']} columns of Parquet, read, labelled and "
        f"written, one after the other in one run{busy}; {done['flagged']:.1%} of the rows are "
        "flagged. "
        f"`predict` of {predicted['rows']:,} rows by {predicted['rules']} rules takes "
        f"{predicted['ratio']:.1f} times as long as scikit-learn's tree of {predicted['leaves']} "
        "leaves."
    )
    return "\n".join([*lines, "", about])


def up_to_date() -> str:
    return replaced(PAGE.read_text(encoding="utf-8"), "speed", body())


def main() -> None:
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != up_to_date())
    n_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else ROWS
    results = {"predict": predict(), "apply": apply_rows(n_rows)}
    if n_rows == ROWS:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(up_to_date(), encoding="utf-8")
        print(body())
    else:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
