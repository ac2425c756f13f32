"""`stair.check`: how the rules of a file do on new data, and which of them have decayed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

from stair.data.source import Source
from stair.engines.large import LargeEngine, engine_of
from stair.errors import StairError, check_choice, option
from stair.export.endings import written
from stair.export.json import Rulebook, load
from stair.operation.counting import EVERY, NEVER, Every, Labels, Tally, count_source
from stair.operation.page import to_html
from stair.operation.standing import (
    Figures,
    Standing,
    explains_less,
    figures_now,
    figures_then,
    judged,
)
from stair.operation.statistics import Share
from stair.operation.words import to_json, to_text
from stair.progress import listener
from stair.rules.counted import Counted


@dataclass(frozen=True, slots=True)
class CheckUp:
    """How rules do on new data: each of them, and all together."""

    source: str
    n_rows: int
    n_outliers: int | None  # None where nobody says which rows are outliers
    label: str
    book: Rulebook
    standings: tuple[Standing, ...]
    periods: tuple[str, ...]
    explained_then: Share | None
    explained: Share | None
    without_rule: int | None  # outliers that no rule covers
    unseen: Mapping[str, int]
    notes: tuple[str, ...]
    expired: tuple[int, ...]  # the numbers of rules in force that were meant until an earlier day

    @property
    def explains_less(self) -> bool:
        """Whether there are outliers of another kind: all rules together explain less than nine
        tenths of what they did."""
        return explains_less(self.explained_then, self.explained)

    @property
    def has_decayed(self) -> bool:
        """Whether somebody has to look: a rule is worse than it was, or cannot be asked, or the
        rules together explain less. This is exit code 1."""
        return any(each.is_alarm for each in self.standings) or self.explains_less

    def __str__(self) -> str:
        return to_text(self, 80)

    def to_html(self, path: str | Path | None = None) -> str:
        """A page of it, with how each rule went over time; written to a file where a path is
        given."""
        return written(to_html(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """The same for programs; written to a file where a path is given."""
        return written(to_json(self), path)

    def __getitem__(self, number: int) -> Standing:
        """How the rule of this number, from 1, stands."""
        return self.standings[number - 1]


def check(
    rulebook: Rulebook | str | Path,
    data: Any,
    labels: str | None = None,
    *,
    positive: object = None,
    time: str | None = None,
    every: Every = "month",
    engine: str | LargeEngine = "memory",
    on: dt.date | None = None,
) -> CheckUp:
    """How each rule does on new data, against what it had when it was learned.

    A rule has decayed if it is right less often than then, and faded if it covers less than half of
    the share of rows, by more than chance: of batches in which nothing has changed at most 5% have
    any rule that is said to have, however many rules there are.

    Parameters
    ----------
    rulebook : Rulebook or path
        Rules that were saved.
    data : DataFrame, Arrow table, array, dict of columns, path or Source; or a list of these
        The new rows. Each of a list is a period of its own.
    labels : str, optional
        The column that says which rows are outliers, read as it was when the rules were learned.
        Without it what rules cover is all that can be said.
    positive : value, list of values or AllBut, optional
        The value that means outlier, or several, or `stair.AllBut("ok")`, where that has changed.
    time : str, optional
        A column of times: rules are counted for each period, and what changed says since when.
    every : {"day", "week", "month", "quarter", "year"}
        How long a period is.
    engine : {"memory", "duckdb", "dask", "spark", "cuda"}, or a DuckDB, Dask, Spark or Cuda
        Where the rows are.
    on : date, optional
        The day for which rules are looked at that were meant until some day; by default today.
    """
    book = rulebook if isinstance(rulebook, Rulebook) else load(rulebook)
    check_choice("every", every, EVERY)
    is_many = isinstance(data, list | tuple) and bool(data) and not _is_rows(data)
    sources = [Source.of(each) for each in (data if is_many else [data])]
    if is_many and time is not None:
        raise StairError(f"several tables are periods by themselves; leave {option('time')} out")
    if labels is None and positive is not None:
        raise StairError(
            f"{option('positive')} and {option('negative')} are about labels; name the column "
            f"with {option('labels')}"
        )
    if not len(book.rules):
        raise StairError("no rule of the file is in force, so that there is nothing to check")
    tally = Tally(book.rules, Labels(labels, book.codebook, positive), time, every)
    say, where = listener(), engine_of(engine)
    notes = [*book.notes]
    for number, source in enumerate(sources, start=1):
        notes += count_source(tally, source, where, say, f"{number}" if is_many else "")
    notes += tally.notes
    return _check_up(book, tally, labels or "", notes, on or dt.date.today())


def _is_rows(data: Sequence[object]) -> bool:
    """Whether a list is a table by itself: rows, not tables or files."""
    return not any(
        isinstance(each, str | Path | Source) or hasattr(each, "columns") for each in data
    ) and not all(isinstance(each, Mapping) and _has_columns(each) for each in data)


def _has_columns(given: Mapping[Any, Any]) -> bool:
    """Whether a mapping has columns, and is not one row."""
    return any(hasattr(v, "__len__") and not isinstance(v, str | bytes) for v in given.values())


def _check_up(
    book: Rulebook, tally: Tally, label: str, notes: Sequence[str], on: dt.date
) -> CheckUp:
    """What the counts come to."""
    periods = [each for each in sorted(tally.found) if each != NEVER]
    if tally.time is None:
        periods = list(tally.found)
    if not periods:
        raise StairError("there are no rows to check the rules on")
    counted = [tally.found[each] for each in periods]
    whole = reduce(add, tally.found.values())
    places = [book.rules.classes.index(rule.label) for rule in book.rules]
    asked = {number: k for k, number in enumerate(tally.asked)}
    standings = []
    for number, rule in enumerate(book.rules.rules):
        record = book.records[book.in_force[number]]
        then = figures_then(rule, record, places[number])
        if number in asked:
            k = asked[number]
            of_periods = tuple(figures_now(each, k, has_labels=bool(label)) for each in counted)
            now = figures_now(whole, k, has_labels=bool(label))
        else:
            of_periods, now = (), Figures()
        standings.append(
            Standing(number + 1, rule, record, then, now, periods=of_periods,
                     missing=tally.missing.get(number, ()))
        )  # fmt: skip
    outliers = _explained(whole) if label else None
    return CheckUp(
        source=", ".join(tally.names),
        n_rows=whole.n_rows,
        n_outliers=None if outliers is None else outliers.rows,
        label=label,
        book=book,
        standings=judged(standings, periods),
        periods=tuple(periods),
        explained_then=_explained_then(book),
        explained=outliers,
        without_rule=None if outliers is None else outliers.rows - outliers.hits,
        unseen=dict(tally.unseen),
        notes=tuple(dict.fromkeys(notes)),
        expired=tuple(book.in_force.index(k) + 1 for k in book.expired(on)),
    )


def _explained(counted: Counted) -> Share:
    """Of the rows of other classes than the default, those that rules call so."""
    rest = counted.n_rows - int(counted.totals[counted.default])
    return Share(rest - counted.unexplained, rest)


def _explained_then(book: Rulebook) -> Share | None:
    """The same when the rules were learned, as far as the file says it."""
    facts, rules, totals = book.facts, book.rules, book.kept.totals
    if facts.get("kinds"):
        rows = round(sum(totals) - totals[rules.classes.index(rules.default)])
        without = facts.get("outliers_without_rule")
        if not isinstance(without, int) or not 0 <= without <= rows:
            return None  # as in files of an older stair
        return Share(rows - without, rows)
    recall = facts.get("recall")
    if not isinstance(recall, int | float) or rules.positive is None:
        return None
    rows = round(totals[rules.classes.index(rules.positive)])
    return Share(round(recall * rows), rows) if 0 <= recall <= 1 else None
