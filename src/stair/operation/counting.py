"""The rules of a file on new rows, counted by period: in memory, or where the rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from stair.data import Frame
from stair.data.conversion import TIME_PARTS, as_times
from stair.data.frame import Array
from stair.data.source import Source
from stair.engines.large import LargeEngine
from stair.errors import StairError, folded, no_such_column, option, spoken
from stair.intake import Columns, read_table
from stair.progress import Progress
from stair.rules.counted import Counted, count
from stair.rules.rule_set import RuleSet
from stair.scale.coding import as_times as words_as_times
from stair.scale.raw import Batch, Words, as_frame_column
from stair.scale.summarize import opened_rows
from stair.verdict.codebook import Codebook, Value
from stair.verdict.labels import read_labels, sides_of

Every: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
EVERY: Final[tuple[str, ...]] = get_args(Every)

NEVER: Final = "no time"
"""The period of rows whose time is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The column that says what rows are, and how its values are read; without a column nothing is
    known of the rows, and what rules cover is counted alone."""

    name: str | None = None
    codebook: Codebook | None = None
    positive: Any = None

    def codes(self, column: Array, rules: RuleSet) -> NDArray[np.int32]:
        """The class of each row, −1 where it has none."""
        assert self.name is not None
        book = self._told(rules) or self.codebook
        if book is not None:
            hint = f"; say which value is the outlier with {option('positive')}"
            return book.codes(column, self.name, hint)
        found = read_labels(column, name=self.name)
        if len(found.classes) != len(rules.classes):
            raise StairError(
                f'the label column "{self.name}" has {len(found.classes)} values, and these rules '
                f"tell {folded(map(str, rules.classes))} apart; say which value is the outlier "
                f"with {option('positive')}"
            )
        return found.codes

    def _told(self, rules: RuleSet) -> Codebook | None:
        """What somebody says about the values here."""
        positive, normal = sides_of(self.positive)
        if positive is None and normal is None:
            return None
        if rules.positive is None:
            raise StairError(
                f"{option('positive')} and {option('negative')} are for rules about one kind of "
                f"outlier; these tell {folded(map(str, rules.classes))} apart"
            )
        outlier = rules.classes.index(rules.positive)
        if positive is not None:
            told = positive if isinstance(positive, list | tuple | set) else (positive,)
            own: tuple[tuple[Any, ...], ...] = ((), tuple(told))
            return Codebook(own if outlier == 1 else own[::-1], 1 - outlier)
        own = ((cast(Value, normal),), ())
        return Codebook(own if outlier == 1 else own[::-1], outlier)


@dataclass(slots=True, eq=False)
class Tally:
    """Rules on rows, added up part by part, as the large engines ask for it."""

    rules: RuleSet
    labels: Labels
    time: str | None = None
    every: Every = "month"
    found: dict[str, Counted] = field(default_factory=dict)  # by period
    unseen: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)
    strange: Counter[str] = field(default_factory=Counter)  # labels that the rules do not know
    names: list[str] = field(default_factory=list)  # of the tables
    asked: list[int] = field(default_factory=list)  # the rules (from 0) that can be asked
    missing: dict[int, tuple[str, ...]] = field(default_factory=dict)  # what others speak of

    @property
    def columns(self) -> list[str]:
        """What has to be read of the table."""
        schema, used = self.rules.schema, self.rules.used
        wanted = [f.source for f in schema.fields if f.name in used]
        wanted += [name for name in (self.labels.name, self.time) if name is not None]
        return list(dict.fromkeys(wanted))

    def ask(self, names: Sequence[str], source: str) -> None:
        """Another table: rules that speak of columns that it has not cannot be asked."""
        for wanted in (self.labels.name, self.time):
            if wanted is not None and wanted not in names:
                raise no_such_column(wanted, names, source)
        own = {f.name: f.source for f in self.rules.schema.fields}
        gone = {
            number: tuple(sorted({own[c.feature] for c in rule.clauses} - {*names}))
            for number, rule in enumerate(self.rules.rules)
        }
        gone = {number: columns for number, columns in gone.items() if columns}
        if gone and self.names:
            raise StairError(
                f'{source} has no column "{next(iter(gone.values()))[0]}", which tables before it '
                "had; check it by itself"
            )
        if len(gone) == len(self.rules):
            columns = {column for of_rule in gone.values() for column in of_rule}
            raise no_such_column(min(columns), names, source)
        if not self.names:
            self.missing, self.asked = gone, [k for k in range(len(self.rules)) if k not in gone]
            self.rules = self.rules.with_rules(self.asked)
        number, name = 1, source
        while name in self.names:
            number += 1
            name = f"{source} ({number})"
        self.names.append(name)

    def fresh(self) -> Tally:
        return replace(self, found={}, unseen=Counter(), unread=Counter(), strange=Counter())

    def add(self, batch: Batch, first: int = 0) -> None:
        del first
        fields = self.rules.schema.fields
        times = {f.source for f in fields if f.kind == "time" or f.part in TIME_PARTS}
        columns = {
            name: as_frame_column(
                words_as_times(raw) if name in times and isinstance(raw, Words) else raw
            )
            for name, raw in batch.items()
        }
        self.take(Frame(columns, batch.n_rows, types=batch.types))

    def take(self, frame: Frame, period: str = "") -> None:
        """The rows of a frame, which are all of one period unless there is a column of times."""
        values = self.rules.read(frame)
        self.unseen.update(values.unseen)
        self.unread.update(values.unread)
        name = self.labels.name
        codes = np.full(frame.n_rows, self.rules.classes.index(self.rules.default), dtype=np.int32)
        if name is not None:
            codes = self.labels.codes(frame.columns[name], self.rules)
            strange = codes >= len(self.rules.classes)
            if strange.any():
                self.strange.update(map(str, frame.columns[name][strange].tolist()))
        if self.time is None:
            self._count(period, count(self.rules, values, codes))
            return
        periods = periods_of(frame.columns[self.time], self.time, self.every)
        for each in np.unique(periods).tolist():
            rows = np.flatnonzero(periods == each)
            self._count(each, count(self.rules, values.take(rows), codes[rows]))

    def _count(self, period: str, counted: Counted) -> None:
        known = self.found.get(period)
        self.found[period] = counted if known is None else known + counted

    def merge(self, other: Tally) -> None:
        for period, counted in other.found.items():
            self._count(period, counted)
        self.unseen.update(other.unseen)
        self.unread.update(other.unread)
        self.strange.update(other.strange)

    @property
    def notes(self) -> list[str]:
        """What is to be said of the labels."""
        if not self.strange:
            return []
        most = ", ".join(f"{spoken(label)} ({n:,})" for label, n in self.strange.most_common(5))
        more = len(self.strange) - 5
        return [f'"{self.labels.name}" has labels that the rules do not know; these rows '
                f"count as outliers of another kind: {most}"
                + (f" and {more:,} more" if more > 0 else "")]  # fmt: skip


def periods_of(column: Array, name: str, every: Every) -> NDArray[np.str_]:
    """The period of each row: 2026-06-11, the Monday of its week, 2026-06, 2026-Q2 or 2026."""
    times, unread = as_times(column, name)
    if unread or (len(times) and np.isnat(times).all()):
        raise StairError(
            f'{max(unread, 1):,} of {len(times):,} values of "{name}" are no times; '
            f"{option('time')} is for a column of times"
        )
    if every == "week":
        days = times.astype("datetime64[D]").astype(np.int64)
        found = (days - (days + 3) % 7).astype("datetime64[D]").astype(str)
    elif every == "quarter":
        months = times.astype("datetime64[M]").astype(np.int64)
        years = times.astype("datetime64[Y]").astype(str)
        found = np.char.add(np.char.add(years, "-Q"), (months % 12 // 3 + 1).astype(str))
    else:
        found = times.astype(f"datetime64[{every[0].upper() if every != 'month' else 'M'}]").astype(
            str
        )
    return np.where(np.isnat(times), NEVER, found)


def count_source(
    tally: Tally, source: Source, where: LargeEngine | None, say: Progress, period: str
) -> Sequence[str]:
    """Adds the rows of a source to what was counted, and says what is to be said of them. A period
    that is not empty stands for a table that is one by itself, and becomes its name."""
    if where is None:
        say("reading")
        kinds = dict.fromkeys(tally.rules.schema.texts(), "text")
        frame = read_table(source, Columns(kinds=kinds), [], say)
        tally.ask(list(frame.columns), source.name or frame.source or "data")
        say("counting")
        tally.take(frame, period and tally.names[-1])
        return frame.notes
    with opened_rows(source.data, where, source.table, source.query, say) as rows:
        tally.ask(rows.names, source.name or rows.source)
        found = rows.gather(tally, tally.columns, "counting the rules")
        if period:
            found.found = dict(zip([tally.names[-1]], found.found.values(), strict=True))
        tally.merge(found)
        return rows.notes
