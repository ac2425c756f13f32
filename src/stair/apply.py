"""Saved rules on new data: labels, matching rules, and how coverage moved since then."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stair.errors import StairError
from stair.export.json import SavedRules
from stair.export.text import fine_percent, fit
from stair.io import Frame


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """One label and one rule number (from 1; 0 for none) for each row."""

    labels: NDArray[Any]
    rules: NDArray[np.intp]
    coverage: NDArray[np.float64]  # the share of rows that each rule covers
    notes: tuple[str, ...] = ()  # about values that are not what the rules were learned with

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """What stands behind a row's own columns."""
        return {"stair_label": self.labels, "stair_rule": self.rules}


def apply_rules(saved: SavedRules, table: Any) -> Applied:
    """Label every row of a table. Only the columns that the rules speak of are needed."""
    values = saved.rules.read(table)
    numbers = saved.rules.assign(values)
    covered = saved.rules.covers(values).mean(axis=0)
    return Applied(saved.rules.labels_of(numbers), numbers + 1, covered, values.notes)


def explain_row(saved: SavedRules, frame: Frame, row: int) -> str:
    """Why this row (counted from 1) is, or is not, an outlier."""
    if not 1 <= row <= frame.n_rows:
        raise StairError(
            f"{frame.source} has rows 1 to {frame.n_rows}, but row {row} was asked for"
        )
    columns = {name: array[row - 1 : row] for name, array in frame.columns.items()}
    one = replace(frame, columns=columns, n_rows=1)
    return f"Row {row}: {saved.rules.explain(saved.rules.read(one))}"


def coverage_table(saved: SavedRules, applied: Applied, source: str, width: int) -> str:
    """The share of rows of each rule, when the rules were learned and now."""
    before = sum(saved.rules.totals)
    names = [saved.rules.label_name(label) for label in saved.rules.classes]
    found = [int((applied.labels == label).sum()) for label in saved.rules.classes]
    n_rows = len(applied.labels)
    tally = ", ".join(f"{count:,} {name}s" for name, count in zip(names, found, strict=True))
    lines = [f"{source or 'data'}   {n_rows:,} rows: {tally}", ""]
    rows = [
        (
            f"{number}  {saved.rules.label_name(rule.label)}: {rule.in_words()}",
            fine_percent(rule.rows / before if before else float("nan")),
            fine_percent(float(now)),
        )
        for number, (rule, now) in enumerate(
            zip(saved.rules.rules, applied.coverage, strict=True), start=1
        )
    ]
    none = float((applied.rules == 0).mean())
    rows.append(("no rule", fine_percent(_learned_without_rule(saved)), fine_percent(none)))
    lines += fit(("Share of rows that each rule covers", "learned", "now"), rows, width)
    return "\n".join(lines)


def _learned_without_rule(saved: SavedRules) -> float:
    """The share of rows that no rule covered when the rules were learned; NaN if not known."""
    rows, of = (saved.facts.get(name) for name in ("rows_without_rule", "rows"))
    if isinstance(rows, int) and isinstance(of, int) and 0 <= rows <= of and of:
        return rows / of
    return math.nan
