"""Mixed tables for the tests of large data: ties, missing values, every kind of column."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd


def mixed(seed: int, n_rows: int = 3000, n_classes: int = 2) -> pd.DataFrame:
    """Numbers with many values and with few, words, truths, days and times, with missing values."""
    rng = np.random.default_rng(seed)
    n = n_rows
    frame = pd.DataFrame(
        {
            "amount": np.round(rng.gamma(2.0, 50.0, n), 2),
            "size": rng.integers(0, 6, n),
            "level": np.where(rng.random(n) < 0.1, np.nan, rng.integers(-2, 3, n) / 2),
            "country": rng.choice(np.array(["DE", "FR", "NL", "US", None], dtype=object), n),
            "known": rng.random(n) < 0.5,
            "day": np.datetime64("2024-01-01") + rng.integers(0, 90, n).astype("timedelta64[D]"),
            "seen": np.datetime64("2024-01-01T00:00:00", "us")
            + rng.integers(0, 10**12, n).astype("timedelta64[us]"),
        }
    )
    frame.loc[rng.random(n) < 0.05, "day"] = pd.NaT
    odd = (frame.amount > 180) & (frame.country == "US") | (frame["level"].isna() & frame.known)
    odd |= (frame.day > "2024-03-20") & (frame["size"] <= 1)
    wrong = rng.random(n) < 0.02
    label = np.where(odd ^ wrong, 1, 0)
    if n_classes > 2:
        label = label + np.where(frame["size"] >= 4, 2, 0) * (rng.random(n) < 0.9)
        label = np.minimum(label, n_classes - 1)
    return frame.assign(label=label)


def files(frame: pd.DataFrame, folder: Path, n_files: int = 3) -> str:
    """The table as several Parquet files; the pattern that finds them."""
    folder.mkdir(exist_ok=True)
    bounds = np.linspace(0, len(frame), n_files + 1).astype(int)
    for k in range(n_files):
        part = frame.iloc[bounds[k] : bounds[k + 1]]
        part.to_parquet(folder / f"part-{k}.parquet", index=False, compression="zstd")
    return str(folder / "*.parquet")


def every_kind(seed: int, n_rows: int = 400) -> pd.DataFrame:
    """A column of few values for each type that a field may have; missing values in most."""
    rng = np.random.default_rng(seed)

    def drawn(values: list[object], missing: float = 0.1) -> pd.Series:
        places = rng.integers(0, len(values), n_rows)
        gone = rng.random(n_rows) < missing
        picked = [None if g else values[p] for p, g in zip(places, gone, strict=True)]
        return pd.Series(picked, dtype=object)

    days = [dt.date(2024, 1, 1) + dt.timedelta(days=9 * k) for k in range(12)]
    times = [dt.datetime(2024, 1, 1, 5, 30) + dt.timedelta(hours=7 * k) for k in range(15)]
    zoned = [t.replace(tzinfo=dt.UTC) for t in times]
    far = np.datetime64("9000-01-01T00:00:00", "us") + np.arange(5)
    frame = pd.DataFrame(
        {
            "real": drawn([0.5, 1.25, -3.5, 7.0]).astype(float),
            "whole": drawn([1, 2, 3, 5, 8], 0).astype("int64"),
            "gappy": drawn([1, 2, 3, 5, 8]).astype("Int64"),
            "wide": drawn([2**60 + k for k in range(6)], 0).astype("int64"),
            "wide and gappy": drawn([2**53 + k for k in range(4)]).astype("Int64"),
            "unsigned": drawn([2**64 - 1 - k for k in range(6)], 0).astype("uint64"),
            "flag": drawn([True, False], 0).astype(bool),
            "gappy flag": drawn([True, False]).astype("boolean"),
            "clock": drawn([dt.time(8), dt.time(12, 30), dt.time(23, 59, 59)]),
            "day": drawn(days),
            "time": pd.to_datetime(drawn(times)),
            "zoned": pd.to_datetime(drawn(zoned), utc=True),
            "far": pd.Series(rng.choice(far, n_rows)),
            "code": drawn(["2", "3", "4", "X", "true"]),
            "number code": drawn([10, 20, 30]).astype("Int64"),
            "written day": drawn([str(day) for day in days]),
            "impossible day": drawn([*map(str, days), "2024-02-30"]),
            "mostly impossible": drawn(["2024-02-30", "2024-13-01", "2024-01-01"]),
            "written zone": drawn([f"{t.isoformat()}+02:00" for t in times]),
            "size": drawn(["small", "large"]).astype("category"),
        }
    )
    columns = rng.choice(frame.columns, 2, replace=False)
    odd = np.zeros(n_rows, dtype=bool)
    for name in columns:
        values = frame[name].astype(str)
        odd ^= (values == values.iloc[0]).to_numpy()
    return frame.assign(label=np.where(odd ^ (rng.random(n_rows) < 0.05), 1, 0))
