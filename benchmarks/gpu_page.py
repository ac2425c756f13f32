"""What `benchmarks/gpu.py` found, as the tables of docs/scale.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any


def render(results: dict[str, Any]) -> str:
    """All tables, in the order of the page."""
    device, copied = results["device"], results["bandwidth"]["copy TB/s"]
    equal, distilled = results["equal"], results["distilled equal"]
    n_same = equal["tables"] - equal["refused"]
    n_same_distilled = distilled["tables"] - distilled["refused"]
    intro = (
        f"{device['name']} with {device['memory GB']:.0f} GB, {device['processors']} processors, "
        f"CuPy {device['cupy']}. A copy on the device moves {copied:.2f} TB/s, bytes read and "
        f"written. Rules, counts and traces are equal to the processor's on {n_same} random tables "
        f"of 1 to 12,000,000 rows ({equal['mixed']} with columns on both sides, "
        f"{equal['weighed']} with weights, {equal['streamed']} with codes that come through, up to "
        f"{equal['classes']} classes), and all that is said of distilled rules on "
        f"{n_same_distilled} of up to 300,000 rows ({distilled['weighed']} with weights, "
        f"{distilled['mixed']} with columns on both sides); {equal['refused']} and "
        f"{distilled['refused']} more are refused in the same sentence. {_taken(results['taken'])}"
    )
    return "\n\n".join([intro, *_tables(results)])


def _taken(taken: dict[str, str]) -> str:
    """Whose arrays were tried."""
    names = {"torch": "PyTorch", "jax": "JAX", "cudf": "cuDF"}
    tried = [f"{name} {taken[key]}" for key, name in names.items() if key in taken]
    absent = [name for key, name in names.items() if key not in taken]
    said = f"Columns of {' and '.join(tried)} on the device, without a copy, give the same"
    return f"{said}{f'; {absent[0]} was not there to be tried' if absent else ''}."


def _tables(results: dict[str, Any]) -> list[str]:
    return [
        "Ten columns of floats of 32 bits and a label, all on the device, three planted kinds of "
        "outlier; the second of two runs:",
        _table(
            ["rows", "bins s", "growth s", "together s", "passes", "full pass ms", "TB/s",
             "of a copy", "codes MB", "peak MB"],
            map(_planted, results["planted"]),
        ),
        "Others on the device, 10⁹ rows with 3% of the labels wrong, 10⁹ with weights (floats of "
        "32 bits), 10⁸ of 100 columns, and 10⁸ within less memory than their codes take, whose "
        "rules are equal:",
        _table(
            ["", "rules", "passes", "bins s", "growth s", "together s", "codes MB", "beside MB",
             "peak MB"],
            _others(results),
        ),
        "End to end from Parquet files on the machine's disk and from arrays in its memory, in "
        "seconds; DuckDB with 32 GB, the engine memory with exact cuts. From files both engines "
        "have equal rules:",
        _table(
            ["rows", "memory", "duckdb, files", "cuda, files", "of it pass 1", "pass 2",
             "cuda, memory", "cuda, device"],
            _curve(results),
        ),
        "Distilled, 10⁸ rows × 10 columns on the device, with the check on rows kept aside and "
        "without; and from 100,000 of these rows alone, counted on all:",
        _table(
            ["wrong labels", "floor", "learned from", "check", "seconds", "score on all rows",
             "total length"],
            map(_distilled, results["distilled"]),
        ),
    ]  # fmt: skip


def _table(names: Sequence[str], rows: Any) -> str:
    lines = [names, ["---:"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _planted(row: dict[str, Any]) -> list[str]:
    return [
        f"{row['rows']:,}", _seconds(row["binning"]), _seconds(row["growth"]),
        _seconds(row["seconds"]), str(row["passes"]),
        f"{1000 * statistics.median(row['full pass']):.2f}", f"{row['full pass TB/s']:.2f}",
        f"{row['of copy']:.0%}", f"{row['codes MB']:,.0f}", f"{row['peak MB']:,.0f}",
    ]  # fmt: skip


def _others(results: dict[str, Any]) -> list[list[str]]:
    named = [
        ("noisy labels", results["noisy"]),
        ("weights", results["weighed"]),
        ("100 columns", results["wide"]),
    ]
    for row in results["beyond"]:
        limit = row["memory MB"]
        named.append(("all that is free" if limit is None else f"{limit:,.0f} MB", row))
    return [
        [
            name, str(row["rules"]), str(row["passes"]), _seconds(row["binning"]),
            _seconds(row["growth"]), _seconds(row["seconds"]), f"{row['codes MB']:,.0f}",
            f"{row['beside MB']:,.0f}", f"{row['peak MB']:,.0f}",
        ]
        for name, row in named
    ]  # fmt: skip


def _curve(results: dict[str, Any]) -> list[list[str]]:
    runs = [
        row for name in ("files", "large files", "memory") for row in results[name]
        if "engine" in row
    ]  # fmt: skip
    on_device = {row["rows"]: row["seconds"] for row in results["planted"]}
    found = []
    for n_rows in sorted({row["rows"] for row in runs} | set(on_device)):
        here = {(r["engine"], r["from"]): r for r in runs if r["rows"] == n_rows}
        files = here.get(("cuda", "files"))
        began = {} if files is None else files["began"]
        found.append([
            f"{n_rows:,}",
            _of(here.get(("memory", "memory"))),
            _of(here.get(("duckdb", "files"))),
            _of(files),
            _seconds(began["pass 2"] - began["pass 1"]) if began else "–",
            _seconds(began["learning"] - began["pass 2"]) if began else "–",
            _of(here.get(("cuda", "memory"))),
            _seconds(on_device[n_rows]) if n_rows in on_device else "–",
        ])  # fmt: skip
    return found


def _of(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return _seconds(row["seconds"])


def _distilled(row: dict[str, Any]) -> list[str]:
    is_alone = row.get("of a sample", False)
    return [
        f"{row['wrong labels']:.1%}", f"{row['floor']:g}",
        "100,000 rows" if is_alone else "all rows",
        "–" if is_alone else ("yes" if row["check"] else "no"),
        _seconds(row["seconds"]), f"{row['on all rows'] if is_alone else row['score']:.4f}",
        str(row["length"]),
    ]  # fmt: skip


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"
