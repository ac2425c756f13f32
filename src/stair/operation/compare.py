"""`stair.compare`: what differs between two tables, two verdicts about one, or two rulebooks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stair.data import Frame, below
from stair.data.conversion import as_times
from stair.data.frame import Array
from stair.data.source import Source
from stair.data.zones import fixed_offset
from stair.errors import StairError, check_count, no_such_column, option
from stair.export.json import Rulebook, load
from stair.intake import Columns, read_table
from stair.learn.contrast import Contrast, covered_first, halves, likelihood_ratio
from stair.learn.seeds import RandomState, seed_of
from stair.learn.table import choose_fields, read_to_learn
from stair.operation.compare_words import to_text
from stair.operation.new_values import NewValues, new_values
from stair.operation.statistics import Share, chance_of_rise, holm
from stair.progress import listener
from stair.rules.agreement import classes_of
from stair.rules.clauses import Clause
from stair.rules.rule_set import Rule
from stair.rules.schema import Field, Schema, Values
from stair.verdict.labels import read_labels

What: TypeAlias = Literal["tables", "labels", "rulebooks"]
Rows: TypeAlias = NDArray[np.bool_]

# Of comparisons in which nothing differs at most so many say that something does.
LEVEL: Final = 0.02
# With fewer rows than this in a group nothing can be learned from one half and asked of the other.
FEWEST: Final = 10
# Times that one moment tells apart so well are those of two periods; and so well where others are.
LATER: Final = 0.9
LATER_TOO: Final = 0.5


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that one side has more of, by a rule.

    `side` is 0 for the first and 1 for the second. Of all rows of this side `own` are covered, and
    `others` of the rows that it is compared with; `kept_own` and `kept_others` are those among the
    rows kept aside that no earlier rule covers, and `chance` is how likely they are if nothing
    differs.
    """

    rule: Rule
    side: int
    own: Share
    others: Share
    kept_own: Share
    kept_others: Share
    chance: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two verdicts about the same rows: outliers by both, by one alone, by none."""

    both: int
    first: int
    second: int
    neither: int

    @property
    def share(self) -> float:
        """Of all rows, those about which both say the same."""
        rows = self.both + self.first + self.second + self.neither
        return (self.both + self.neither) / rows

    @property
    def of_outliers(self) -> float:
        """Of the rows that are outliers by either, those that are by both; NaN without any."""
        either = self.both + self.first + self.second
        return self.both / either if either else float("nan")


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of two rulebooks: those in both, and those of one alone."""

    both: tuple[Rule, ...]
    first: tuple[Rule, ...]
    second: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two sides, and holds on rows that were not looked at."""

    what: What
    names: tuple[str, str]
    source: str  # of the one table, where there is one
    n_rows: tuple[int, int]
    n_aside: int  # rows kept aside
    differences: tuple[Difference, ...]
    agreement: Agreement | None
    rules: Rules | None
    only: tuple[tuple[str, ...], tuple[str, ...]]  # columns that one table alone has
    unlike: tuple[str, ...]  # columns that hold other kinds of values in one than in the other
    new_values: tuple[NewValues, ...]  # columns most of whose values the other table never has
    left_out: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether there is anything to look at: this is exit code 1."""
        return bool(self.differences or self.of_columns)

    @property
    def of_columns(self) -> bool:
        """Whether whole columns differ."""
        return bool(self.unlike or self.new_values or self.only[0] or self.only[1])

    def __str__(self) -> str:
        return to_text(self, 80)


def compare(
    first: Any,
    second: Any = None,
    data: object = None,
    *,
    labels: Sequence[str] | None = None,
    positive: Any = None,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    kinds: Mapping[str, str] | None = None,
    max_rule_length: int = 3,
    random_state: RandomState = 0,
) -> Comparison:
    """The shortest rules that tell two sides apart, each with exact counts on both.

    Rules are found on one half of the rows, and what is said holds on the other half: of sides
    that do not differ at most 2% are said to.

    Parameters
    ----------
    first, second : DataFrame, Arrow table, array, dict of columns, path or Source
        Two tables with the same columns; or two rulebooks (or paths of them), with `data`; or, with
        `labels`, the first alone.
    data : DataFrame, Arrow table, array, dict of columns, path or Source
        The rows about which two rulebooks are asked.
    labels : two column names, optional
        Two verdicts about the rows of the first table.
    positive : optional
        The value (or list of values) that means outlier in both columns of labels.
    include, exclude, kinds : optional
        What rules may speak of, and of which kind it is, as for `summarize`.
    max_rule_length : int
        The most attributes of one rule.
    random_state : int, optional
        Which rows are kept aside.
    """
    check_count("max_rule_length", max_rule_length, 1)
    how = Contrast(max_rule_length, seed=seed_of(random_state), say=listener())
    chosen = Columns(include, exclude, kinds)
    if labels is not None:
        if isinstance(labels, str) or len(labels) != 2:
            raise StairError(f"{option('labels')} are the names of two columns; got {labels!r}")
        if second is not None or data is not None:
            raise StairError(f"{option('labels')} are two columns of one table; give one table")
        return _labels(Source.of(first), (str(labels[0]), str(labels[1])), positive, chosen, how)
    if second is None:
        raise StairError(
            f"with what? Give a second table, or two columns of the first one with "
            f"{option('labels')}"
        )
    if positive is not None:
        raise StairError(f"{option('positive')} is about labels; name two with {option('labels')}")
    books = [_is_rulebook(first), _is_rulebook(second)]
    if all(books):
        if data is None:
            raise StairError("rulebooks are compared on rows; give a table, too")
        return _rulebooks(first, second, Source.of(data), chosen, how)
    if any(books):
        raise StairError("one of the two is a rulebook and the other is not; give two of a kind")
    if data is not None:
        raise StairError("a third table goes with two rulebooks; give two tables")
    return _tables(Source.of(first), Source.of(second), chosen, how)


def _is_rulebook(given: Any) -> bool:
    """Whether this is one, or a file that is none of the tables that can be read."""
    is_path = isinstance(given, str | Path)
    return isinstance(given, Rulebook) or (is_path and str(given).lower().endswith(".json"))


def _book(given: Any) -> tuple[Rulebook, str]:
    """A rulebook, and what to call it."""
    if isinstance(given, Rulebook):
        return given, given.source and f"rules of {given.source}"
    return load(given), Path(given).name


# --- two tables -----------------------------------------------------------------------------------


def _tables(first: Source, second: Source, chosen: Columns, how: Contrast) -> Comparison:
    frames = (read_table(first, Columns(kinds=chosen.kinds), [], how.say),
              read_table(second, Columns(kinds=chosen.kinds), [], how.say))  # fmt: skip
    names = _names(*(each.name or frame.source
                     for each, frame in zip((first, second), frames, strict=True)))  # fmt: skip
    joined, unlike = below(*frames)
    known = dict.fromkeys((*frames[0].columns, *frames[1].columns))
    for name in chosen.exclude:
        if name not in known:
            raise no_such_column(name, known, "the two tables")
    unlike = [name for name in unlike if name not in chosen.exclude]
    only = tuple(
        tuple(n for n in one.columns if n not in other.columns and n not in chosen.exclude)
        for one, other in (frames, frames[::-1])
    )
    if not joined.columns:
        raise StairError("the two tables have no column in common that could be compared")
    is_second = np.arange(joined.n_rows) >= frames[0].n_rows
    asked = chosen.include or ()
    apart = _apart({name: column for name, column in joined.columns.items()
                    if name not in asked and name not in chosen.exclude}, is_second)  # fmt: skip
    there = [name for name in chosen.exclude if name in joined.columns]
    fields, left_out = _fields(joined, replace(chosen, exclude=there), first)
    fields = tuple(field for field in fields if field.source not in apart or _is_clock(field))
    new = new_values(frames, fields, unlike)
    left_out |= apart
    left_out |= {each.column: "most of its values are new" for each in new}
    named = {each.column for each in new}
    fields = tuple(field for field in fields if field.source not in named)
    sides = ((0, ~is_second, is_second), (1, is_second, ~is_second))
    found, n_aside = _differences(*_values(joined, fields), sides if fields else (), how)
    return Comparison(
        "tables", names, "", (frames[0].n_rows, frames[1].n_rows), n_aside, found, None, None,
        (only[0], only[1]), tuple(unlike), new, left_out, joined.notes,
    )  # fmt: skip


def _names(first: str, second: str) -> tuple[str, str]:
    """What the two are called, never the same."""
    first, second = first or "the first", second or "the second"
    return (first, second) if first != second else (f"{first} (1)", f"{second} (2)")


def _apart(columns: Mapping[str, Array], is_second: Rows) -> dict[str, str]:
    """Times that are later in one table than in the other, with the reason why they are left out:
    such a column tells the tables apart, and nothing by it. Where the tables follow each other by
    one column, others follow it: who comes in January may go in February."""
    shifts = {name: _shift(as_times(column, "")[0], is_second)
              for name, column in columns.items() if column.dtype.kind == "M"}  # fmt: skip
    least = LATER_TOO if max(shifts.values(), default=0.0) >= LATER else LATER
    why = "its times are later in one table than in the other"
    return {
        name: "one table ends in it before the other begins" if shift == 1 else why
        for name, shift in shifts.items()
        if shift >= least
    }


def _shift(times: Array, is_second: Rows) -> float:
    """How well one moment tells two groups of times apart: 1 where one ends before the other
    begins, 0 where both are spread alike (Kolmogorov and Smirnov)."""
    known = ~np.isnat(times)
    one, other = np.sort(times[known & ~is_second]), np.sort(times[known & is_second])
    if not (len(one) and len(other)):
        return 0.0
    at = np.concatenate([one, other])
    shares = [np.searchsorted(part, at, "right") / len(part) for part in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def _is_clock(field: Field) -> bool:
    """Whether it is an hour that says the same in every month: weekdays come four or five times,
    and a fixed offset does not follow clocks that change."""
    return field.part == "hour" and not (field.zone and fixed_offset(field.zone) is not None)


# --- two verdicts about one table -----------------------------------------------------------------


def _labels(
    source: Source, labels: tuple[str, str], positive: Any, chosen: Columns, how: Contrast
) -> Comparison:
    if labels[0] == labels[1]:
        raise StairError(f'"{labels[0]}" is named twice; give two columns')
    frame = read_table(source, Columns(kinds=chosen.kinds), [], how.say)
    verdicts, notes = [], list(frame.notes)
    for name in labels:
        if name not in frame.columns:
            raise no_such_column(name, frame.columns, source.name or frame.source or "the data")
        verdict = read_labels(frame.columns[name], positive=positive, name=name)
        if verdict.positive is None:
            raise StairError(
                f'"{name}" has {len(verdict.classes)} values; say which is the outlier with '
                f"{option('positive')}"
            )
        notes += verdict.notes
        verdicts.append(np.where(verdict.codes < 0, -1, verdict.codes == verdict.positive))
    columns = {n: c for n, c in frame.columns.items() if n not in labels}
    there = replace(chosen, exclude=[n for n in chosen.exclude if n not in labels])
    return _verdicts("labels", labels, source, replace(frame, columns=columns), verdicts, there,
                     how, notes, None)  # fmt: skip


def _rulebooks(one: Any, other: Any, source: Source, chosen: Columns, how: Contrast) -> Comparison:
    (first, name), (second, other_name) = _book(one), _book(other)
    texts = first.rules.schema.texts() | second.rules.schema.texts()
    kinds = {**dict.fromkeys(texts, "text"), **(chosen.kinds or {})}
    frame = read_table(source, Columns(kinds=kinds), [], how.say)
    verdicts, notes = [], list(frame.notes)
    for book in (first, second):
        rules = book.rules
        values = rules.read(frame)
        notes += [*book.notes, *values.notes]
        default = rules.classes.index(rules.default)
        verdicts.append((classes_of(rules, rules.assign(values)) != default).astype(np.intp))
    clauses = [{rule.clauses for rule in book.rules} for book in (first, second)]
    rules_of = Rules(
        tuple(rule for rule in first.rules if rule.clauses in clauses[1]),
        tuple(rule for rule in first.rules if rule.clauses not in clauses[1]),
        tuple(rule for rule in second.rules if rule.clauses not in clauses[0]),
    )
    names = _names(name, other_name)
    return _verdicts("rulebooks", names, source, frame, verdicts, chosen, how, notes, rules_of)


def _verdicts(
    what: What,
    names: tuple[str, str],
    source: Source,
    frame: Frame,
    verdicts: Sequence[Array],
    chosen: Columns,
    how: Contrast,
    notes: Sequence[str],
    rules: Rules | None,
) -> Comparison:
    one, other = verdicts
    known = np.flatnonzero((one >= 0) & (other >= 0))
    one, other = one[known] == 1, other[known] == 1
    agreement = Agreement(*(int(rows.sum()) for rows in (one & other, one & ~other, other & ~one,
                                                         ~one & ~other)))  # fmt: skip
    fields, left_out = _fields(frame, chosen, source)
    schema, values = _values(frame, fields)
    if len(known) < frame.n_rows:
        values = values.take(known)
    # What one side alone calls an outlier, beside all rows but what it shares with the other.
    sides = ((0, one & ~other, ~one | other), (1, other & ~one, ~other | one))
    found, n_aside = _differences(schema, values, sides, how)
    return Comparison(
        what, names, source.name or frame.source, (len(known), len(known)), n_aside, found,
        agreement, rules, ((), ()), (), (), left_out, tuple(dict.fromkeys(notes)),
    )  # fmt: skip


# --- what they share ------------------------------------------------------------------------------


def _fields(
    frame: Frame, chosen: Columns, source: Source
) -> tuple[tuple[Field, ...], dict[str, str]]:
    return choose_fields(
        frame, include=chosen.include, exclude=chosen.exclude, kinds=chosen.kinds,
        time_parts=source.time_parts, time_zone=source.time_zone,
    )  # fmt: skip


def _values(frame: Frame, fields: tuple[Field, ...]) -> tuple[Schema, Values]:
    schema = Schema(fields, tuple(frame.columns))
    return schema, read_to_learn(schema, frame)


def _differences(
    schema: Schema, values: Values, sides: Sequence[tuple[int, Rows, Rows]], how: Contrast
) -> tuple[tuple[Difference, ...], int]:
    """What each side has more of, as far as it holds on the rows kept aside.

    Of two tables the rest of what one has more of is what the other has more of, so that the same
    would be said twice: one table's rules are looked for among the rows of no rule of the other.
    """
    learn, aside = halves(values.n_rows, how.seed)
    kept = values.take(aside)
    sides = [each for each in sides if min(int(rows.sum()) for rows in each[1:]) >= FEWEST]

    def rules_of(own: Rows, left: Rows) -> tuple[tuple[Clause, ...], ...]:
        some = learn[left[learn]]
        return how.rules(schema, values.take(some), own[some])

    every = np.ones(values.n_rows, dtype=np.bool_)
    rules = {side: rules_of(own, every) for side, own, _ in sides}
    is_one_of_two = len(sides) == 2 and np.array_equal(sides[0][1], ~sides[1][1])
    if is_one_of_two:
        sides = sorted(sides, key=lambda each: -_sureness(rules[each[0]], schema, values, each[1],
                                                          learn))  # fmt: skip
    asked: list[Difference] = []
    left = every.copy()
    for side, own, others in sides:
        if is_one_of_two and not left.all():
            rules[side] = rules_of(own, left)
        if not rules[side]:
            continue
        found = _asked(schema, rules[side], side, own, others, values, kept, aside, left)
        asked += found
        if is_one_of_two:
            for each in found:
                if each.chance <= LEVEL / len(found):
                    left &= ~covered_first([each.rule.clauses], schema, values)[:, 0]
    holds = holm([each.chance for each in asked], LEVEL)
    kept_rules = [each for each, is_real in zip(asked, holds, strict=True) if is_real]
    return tuple(sorted(kept_rules, key=lambda each: each.chance)), len(aside)


def _sureness(
    rules: Sequence[tuple[Clause, ...]],
    schema: Schema,
    values: Values,
    own: Rows,
    learn: NDArray[np.intp],
) -> float:
    """How surely the first rule says where a group has more, on the rows that it was found on."""
    if not rules:
        return 0.0
    inside = covered_first(rules[:1], schema, values)[learn, 0]
    counts = [np.bincount(own[learn][rows], minlength=2) for rows in (inside, inside | True)]
    return likelihood_ratio(*counts)


def _asked(
    schema: Schema,
    rules: Sequence[tuple[Clause, ...]],
    side: int,
    own: Rows,
    others: Rows,
    values: Values,
    kept: Values,
    aside: NDArray[np.intp],
    among: Rows,
) -> list[Difference]:
    """Rules with their counts, and how likely those on rows kept aside are by chance, among these
    rows."""
    alone = covered_first(rules, schema, kept)
    found = []
    left = among[aside]
    for number, clauses in enumerate(rules):
        rule = Rule(clauses, side)
        whole = covered_first([clauses], schema, values)[:, 0]
        rows = alone[:, number] & among[aside]
        kept_own, kept_others = (
            Share(int((rows & group[aside]).sum()), int((left & group[aside]).sum()))
            for group in (own, others)
        )
        counts = [Share(int((whole & group).sum()), int(group.sum())) for group in (own, others)]
        found.append(
            Difference(rule, side, counts[0], counts[1], kept_own, kept_others,
                       chance_of_rise(kept_others, kept_own, 1.0))
        )  # fmt: skip
        left &= ~rows
    return found
