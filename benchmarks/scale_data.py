"""Payments as Parquet files of any size, with outliers planted by rules that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from stair.rules.clauses import Among, Clause, Interval

ROWS_A_FILE = 1_000_000
COUNTRIES = np.array(["AT", "BE", "CH", "DE", "ES", "FR", "IT", "NL", "PL", "US"])
LABEL = "flagged"


def planted() -> set[frozenset[Clause]]:
    """The clauses of the outlier rules."""
    safe, there = Interval("risk", high=0.98), Interval("device")
    return {
        frozenset({Interval("risk", low=0.98), Interval("hour", low=3.0)}),
        frozenset({safe, Interval("device", np.inf, np.inf, True), Interval("hour", high=3.0)}),
        frozenset({safe, there, Interval("amount", low=900.0), Among("country", ("US",))}),
    }


def part(number: int, n_rows: int) -> dict[str, Any]:
    """The columns of one file: six of floats, an hour, a country, a day, a device that is missing
    now and then; and the verdict."""
    rng = np.random.default_rng([7, number])
    amount = np.round(rng.gamma(2.0, 150.0, n_rows), 2)
    risk, speed, weight = (rng.random(n_rows, dtype=np.float32) for _ in range(3))
    balance = rng.normal(0.0, 1000.0, n_rows).astype(np.float32)
    age = rng.integers(18, 90, n_rows).astype(np.int16)
    hour = rng.integers(0, 24, n_rows).astype(np.int8)
    country = rng.integers(0, len(COUNTRIES), n_rows)
    day = np.datetime64("2024-01-01") + rng.integers(0, 730, n_rows).astype("timedelta64[D]")
    device = rng.normal(0.0, 1.0, n_rows).astype(np.float32)
    device[rng.random(n_rows) < 0.1] = np.nan
    is_outlier = np.where(
        risk.astype(np.float64) > 0.98,  # as the rules will compare it
        hour > 3,
        np.where(np.isnan(device), hour <= 3, (amount > 900) & (COUNTRIES[country] == "US")),
    )
    return {
        "amount": amount,
        "age": age,
        "risk": risk,
        "speed": speed,
        "weight": weight,
        "balance": balance,
        "hour": hour,
        "country": (country.astype(np.int8), COUNTRIES),
        "day": day,
        "device": device,
        LABEL: is_outlier.astype(np.int8),
    }


def write(folder: Path, n_rows: int) -> None:
    """Files of a million rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, ROWS_A_FILE)):
        columns = part(number, min(ROWS_A_FILE, n_rows - start))
        arrays = {}
        for name, values in columns.items():
            if isinstance(values, tuple):
                codes, words = values
                arrays[name] = pa.DictionaryArray.from_arrays(codes, pa.array(words)).cast("string")
            else:
                arrays[name] = pa.array(values, from_pandas=True)
        pq.write_table(pa.table(arrays), folder / f"part-{number:05d}.parquet", compression="zstd")


if __name__ == "__main__":
    import sys

    write(Path(sys.argv[1]), int(float(sys.argv[2])))
