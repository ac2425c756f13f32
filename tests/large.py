"""Mixed tables for the tests of large data: ties, missing values, every kind of column."""

from __future__ import annotations

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
