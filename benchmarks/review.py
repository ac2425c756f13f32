"""How the review page does with a million rows: `python -m benchmarks.review`.

A table of 1,000,000 rows and 20 columns (numbers, categories, times, a text that differs in every
row, missing values) is written to a temporary folder and opened by the command. Then every group's
rows are asked for, sorted by every kind of column in both directions, at the beginning and at the
end. The server's memory is what the system says about its process.
"""

from __future__ import annotations

import csv
import http.client
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "review.csv"
TOKEN = "a-token-for-the-benchmark"
N_ROWS = 1_000_000


def table(n: int) -> dict[str, Any]:
    """Three kinds of outliers, a few flags without a reason, and columns of every kind."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{k}": np.round(rng.normal(size=n) * 100, 3) for k in range(14)}
    columns["x1"][rng.random(n) < 0.05] = np.nan
    countries = np.array(["DE", "FR", "NL", "US", "GB", "BR"], dtype=object)
    columns["country"] = countries[rng.integers(0, 6, n)]
    devices = np.array(["phone", "laptop", "tablet"], dtype=object)[rng.integers(0, 3, n)]
    columns["device"] = np.where(rng.random(n) < 0.1, None, devices)
    columns["name"] = np.array([f"customer {k:07d}" for k in rng.permutation(n)], dtype=object)
    times = rng.integers(0, 3 * 10**13, n).astype("timedelta64[us]")
    columns["when"] = np.datetime64("2024-01-01", "us") + times
    columns["count"] = rng.integers(0, 50, n)
    flag = (columns["x0"] > 180) & (columns["country"] == "US")
    flag |= (columns["x2"] < -210) & (columns["count"] > 20)
    flag |= (columns["x3"] > 150) & (columns["x4"] > 150)
    columns["flag"] = (flag ^ (rng.random(n) < 0.0005)).astype(np.int64)
    return columns


class Page:
    """The server, and how long it takes to answer."""

    def __init__(self, path: Path, method: str) -> None:
        db = path.with_suffix(f".{method}.sqlite")
        command = [sys.executable, "-m", "stair.cli", "review", str(path), "--label", "flag",
                   "--method", method, "--max-rule-length", "4", "--no-browser",
                   "--token", TOKEN, "--db", str(db)]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r":(\d+)/", self.process.stdout.readline())
        assert found is not None
        self.port = int(found[1])

    def get(self, path: str) -> tuple[float, str]:
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text}")
        return time.perf_counter() - began, text

    def memory(self) -> float:
        """The most that the process has held, in GB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) / 1e6 if found else float("nan")


def measure(path: Path, method: str) -> dict[str, Any]:
    page = Page(path, method)
    try:
        began = time.perf_counter()
        while 'class="job"' in page.get("/job")[1]:
            time.sleep(0.2)
        learned = time.perf_counter() - began
        first, home = page.get("/")
        keys = re.findall(r'id="item-([0-9a-f]+)"', home)
        panels = [page.get(f"/group/{key}")[0] for key in keys]
        pages: list[float] = []
        most = 0
        for key in keys:
            n_rows = int(re.findall(r"of ([\d,]+)", page.get(f"/group/{key}/rows")[1])[0]
                         .replace(",", ""))  # fmt: skip
            most = max(most, n_rows)
            for column in ("", "x0", "x1", "country", "device", "name", "when", "count"):
                for descending in ("", "1"):
                    for start in (0, n_rows // 2, max(0, n_rows - 50)):
                        asked = {"sort": column, "descending": descending, "start": start}
                        query = urllib.parse.urlencode(asked)
                        pages.append(page.get(f"/group/{key}/rows?{query}")[0])
        return {
            "method": method, "rows": N_ROWS, "columns": 20, "groups": len(keys),
            "largest group": most, "rules are there after s": f"{learned:.1f}",
            "first page s": f"{first:.2f}", "slowest panel s": f"{max(panels):.2f}",
            "pages of rows": len(pages), "median page ms": f"{1000 * statistics.median(pages):.0f}",
            "slowest page ms": f"{1000 * max(pages):.0f}", "peak memory GB": f"{page.memory():.2f}",
        }  # fmt: skip
    finally:
        page.process.terminate()
        page.process.wait()


def main() -> None:
    from stair.data import write_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.parquet"
        write_table(path, table(N_ROWS))
        rows = [measure(path, method) for method in ("distilled", "stair")]
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
