"""The results as Markdown: made from the file alone, so that anyone can make them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.contenders import LIGHTGBM, SKLEARN, STAIR
from benchmarks.memory import largest
from benchmarks.targets import is_busy

NOT_INSTALLED = "not installed"


def render(results: dict[str, Any]) -> str:
    """Both tables, with the words that are needed to read them."""
    parts = [_time_words(results), _time_table(results)]
    if any(row["classes"] > 2 for row in results["fit"]):
        parts.append(_classes_words(results))
    if any(map(is_busy, results["fit"])):
        parts.append(_busy_words(results))
    if results["memory"]:
        parts += [_memory_words(), _memory_table(results)]
    return "\n\n".join(parts) + "\n"


def _time_words(results: dict[str, Any]) -> str:
    versions = results["versions"]
    rivals = f"scikit-learn {versions[SKLEARN]}"
    if versions[LIGHTGBM] is not None:
        rivals += f", LightGBM {versions[LIGHTGBM]}"
    machine = results["machine"]
    return (
        "Fit time. A ratio is Stair's time over the other's for one tree with as many leaves as "
        "Stair has rules: below 1, Stair is faster. All were measured in one run, in turn, and "
        "medians are compared; the seconds are those of this machine only "
        f"({machine['cpus']} CPUs, Python {machine['python']}, {rivals}). Stair and "
        "LightGBM use all CPUs where there is enough to do; scikit-learn's tree uses one."
    )


def _time_table(results: dict[str, Any]) -> str:
    head = (
        "data", "rows × attributes", "rules", "Stair seconds", "ratio to scikit-learn",
        "ratio to LightGBM",
    )  # fmt: skip
    rows = (
        (
            row["data"],
            f"{row['rows']:,} × {row['attributes']}",
            str(row["rules"]),
            f"{row['median_seconds'][STAIR]:.3g}",
            _ratio(row["ratio"].get(SKLEARN)),
            _ratio(row["ratio"].get(LIGHTGBM)),
        )
        for row in results["fit"]
    )
    return _table(head, rows)


def _classes_words(results: dict[str, Any]) -> str:
    several = [row for row in results["fit"] if row["classes"] > 2]
    which = ", ".join(f"{row['data']} has {row['classes']} classes" for row in several)
    return f"{which}, of which LightGBM makes one tree each; the others make one tree for all."


def _busy_words(results: dict[str, Any]) -> str:
    busy = [row for row in results["fit"] if is_busy(row)]
    most = max(row["cpus_used_by_others"] for row in busy)
    return (
        f"Other programs used up to {most:.1f} CPUs during {len(busy)} of {len(results['fit'])} "
        "sets. That slows LightGBM most, because its threads wait for each other, so Stair's "
        "ratios to it are flattered."
    )


def _memory_words() -> str:
    return (
        "Peak memory of one fit, in units of X as float64 (X itself counts 1): the most resident "
        "memory of a fresh process that loads X and y and fits, less what it had before X. "
        "Stair's is the largest of three, because its threads do not always peak together."
    )


def _memory_table(results: dict[str, Any]) -> str:
    peaks = largest(results["memory"])
    sets = list(dict.fromkeys(row["data"] for row in results["memory"]))
    head = ("data", "X in MB", "Stair", "scikit-learn")
    size = {row["data"]: row["x_bytes"] for row in results["memory"]}
    rows = (
        (
            data,
            f"{size[data] / 1e6:.0f}",
            _ratio(peaks[data, STAIR]),
            _ratio(peaks[data, SKLEARN]),
        )
        for data in sets
    )
    return _table(head, rows)


def _ratio(value: float | None) -> str:
    return NOT_INSTALLED if value is None else f"{value:.2f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table: the first column on the left, numbers on the right."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))
