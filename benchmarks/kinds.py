"""Distilled rules on rows that do not fit: `python -m benchmarks.kinds [FOLDER] [ROWS]`.

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

from benchmarks.scale import RESULTS, ROOT, _resident

ROWS = 10_000_000
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
