"""What wishes cost in time: a million rows by twenty columns, with three wishes and without.

    python -m benchmarks.wishes

Both are learned in one run. Seconds are those of processors, which another program on the machine
does not change much; wall is what a clock says.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np

from stair import DistilledStair
from stair.data import atomic_write

RESULT: Final = Path(__file__).parent / "results" / "wishes.json"
ROWS, COLUMNS = 1_000_000, 20
WISHES: Final[dict[str, dict[str, Any]]] = {
    "none": {},
    "three": {"min_precision": 0.8, "min_recall": 0.8, "max_alerts": 0.06},
}


def table(seed: int = 0) -> tuple[Any, Any]:
    """Three kinds of outlier, and some rows that are called so for no reason."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(ROWS, COLUMNS))
    y = (X[:, 0] > 2.2) | ((X[:, 1] > 1.6) & (X[:, 2] < -1)) | ((X[:, 3] > 1.8) & (X[:, 4] > 1.2))
    return X, (y ^ (random.random(ROWS) < 0.002)).astype(int)


def main() -> None:
    warnings.simplefilter("ignore")
    X, y = table()
    found: dict[str, Any] = {"rows": ROWS, "columns": COLUMNS, "outliers": int(y.sum())}
    for name, wishes in WISHES.items():
        began, wall = time.process_time(), time.perf_counter()
        model = DistilledStair(random_state=0, **wishes).fit(X, y)
        found[name] = {
            "wishes": wishes, "seconds": round(time.process_time() - began, 1),
            "wall": round(time.perf_counter() - wall, 1), "length": model.rules_.total_length,
            "met": [outcome.is_met for outcome in model.outcomes_],
        }  # fmt: skip
        print(name, found[name], flush=True)
    found["ratio"] = round(found["three"]["seconds"] / found["none"]["seconds"], 2)
    print("times as long with three wishes:", found["ratio"])
    atomic_write(RESULT, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
