"""Exceptions to rules from rows that a person called false alarms."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import replace
from typing import Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stair.data import Frame, from_object
from stair.data.conversion import is_missing
from stair.data.frame import Value
from stair.errors import FloorNotReached, StairError, folded, no_such_column, option
from stair.export.answers import answer
from stair.export.json import Rulebook
from stair.learn.distill.plan import Effort
from stair.learn.exceptions import Aim, Excepted, advice
from stair.learn.exceptions import learn_exceptions as learn
from stair.learn.seeds import RandomState, seed_of
from stair.progress import Progress, listener, quiet
from stair.rules.agreement import rows_given
from stair.rules.counted import count
from stair.rules.document import new_records
from stair.rules.figures import percent
from stair.rules.record import Evidence
from stair.summary import Summary, summary_again

Rows = NDArray[np.bool_]
# What a column says where a row is meant, or is not; a missing value says no.
YES: Final = ("1", "true", "yes", "y", "x")
NO: Final = ("0", "false", "no", "n", "")


@overload
def learn_exceptions(
    rules: Summary, data: None = None, *, false_alarms: str | ArrayLike,
    outliers: str | ArrayLike | None = None, min_share: float = 0.9, max_rule_length: int = 10,
    min_rows: int | None = None, effort: Effort = "normal", time_limit: float | None = None,
    random_state: RandomState = 0,
) -> Summary: ...  # fmt: skip


@overload
def learn_exceptions(
    rules: Rulebook, data: object, *, false_alarms: str | ArrayLike,
    outliers: str | ArrayLike | None = None, min_share: float = 0.9, max_rule_length: int = 10,
    min_rows: int | None = None, effort: Effort = "normal", time_limit: float | None = None,
    random_state: RandomState = 0,
) -> Rulebook: ...  # fmt: skip


def learn_exceptions(
    rules: Summary | Rulebook,
    data: object = None,
    *,
    false_alarms: str | ArrayLike,
    outliers: str | ArrayLike | None = None,
    min_share: float = 0.9,
    max_rule_length: int = 10,
    min_rows: int | None = None,
    effort: Effort = "normal",
    time_limit: float | None = None,
    random_state: RandomState = 0,
) -> Summary | Rulebook:
    """The same rules with the shortest exceptions for rows that are false alarms.

    Parameters
    ----------
    rules : Summary or Rulebook
        A summary, whose rows are those that it was learned from, or loaded rules.
    data : DataFrame, Arrow table, array, dict of columns or path
        With loaded rules, the rows that are spoken of.
    false_alarms : str or array
        The rows that a person called false alarms: a column's name, a truth for each row, or the
        numbers of rows, from 0.
    outliers : str or array, optional
        The rows that stay outliers, in the same ways; no exception covers one of them. By default
        those of a summary's outliers by their labels, and with loaded rules all that they call
        outliers, that are no false alarms.
    min_share : float
        The part of the false alarms that exceptions have to cover.
    max_rule_length, effort, time_limit, random_state
        As for distilled rules.
    min_rows : int, optional
        The fewest false alarms that an exception may cover. By default 5, or a tenth of them where
        they are few; fewer where the share needs it.

    Returns
    -------
    A summary, in which false alarms are inliers by their labels from now on, or a rulebook. Where
    exceptions do not cover enough, `FloorNotReached` warns of it.
    """
    wanted = Aim(min_share, max_rule_length, min_rows, effort, time_limit, seed_of(random_state))
    wanted.check()
    if isinstance(rules, Summary):
        if data is not None:
            raise StairError("a summary knows its rows; leave data out")
        rules._check_rows()
        given = rules._data
        frame = given if isinstance(given, Frame) else from_object(given)
        wrong = rows_said(false_alarms, frame, "false_alarms")[rules._rows]
        stay = rules._outliers & ~wrong
        if outliers is not None:
            stay = rows_said(outliers, frame, "outliers")[rules._rows]
        found = learn(rules.rules, rules._values, wrong, stay, wanted, listener())
        _warn(found)
        return _counted_again(rules, found, wrong)
    if data is None:
        raise StairError("which rows? Loaded rules have none; give data")
    rows = rows_given(rules.rules, data)
    frame = rows if isinstance(rows, Frame) else from_object(rows)
    wrong = rows_said(false_alarms, frame, "false_alarms")
    stays = None if outliers is None else rows_said(outliers, frame, "outliers")
    found = exceptions_for(rules, frame, wrong, stays, wanted, listener())
    _warn(found)
    return with_found(rules, found, frame.source)


def exceptions_for(
    saved: Rulebook,
    frame: Frame,
    false_alarms: Rows,
    outliers: Rows | None,
    wanted: Aim,
    say: Progress = quiet,
) -> Excepted:
    """Exceptions for rows of a table. Where nobody says which outliers stay, all that are no false
    alarms do."""
    schema = saved.rules.schema
    there = {f.name for f in schema.fields if f.source in frame.columns}
    values = schema.read(frame, there | saved.rules.used)
    stays = ~false_alarms if outliers is None else outliers
    return learn(saved.rules, values, false_alarms, stays, wanted, say)


def with_found(saved: Rulebook, found: Excepted, source: str) -> Rulebook:
    """A rulebook with exceptions that were found on rows from here, as candidates."""
    kept = replace(saved.kept, exceptions=(*saved.kept.exceptions, *found.new))
    rules = saved.rules
    totals = [0.0] * len(rules.classes)
    totals[rules.classes.index(rules.default)] = float(found.n_false_alarms)
    if rules.positive is not None:
        totals[rules.classes.index(rules.positive)] = float(found.n_stay)
    known = (*saved.records, *saved.exception_records)
    made = new_records(found.new, source, totals, (record.id for record in known))
    evidence = Evidence(source, tuple(totals))
    records = (*saved.exception_records, *(replace(each, evidence=evidence) for each in made))
    return replace(saved, kept=kept, exception_records=records)


def in_words(found: Excepted, wanted: Aim) -> str:
    """What exceptions come to, in one sentence without an end."""
    n = len(found.new)
    name = f"{n} exception{'s' * (n != 1)}" if n else "no exception"
    cover = "covers" if n < 2 else "cover"
    alarms = f"false alarm{'s' * (found.n_false_alarms != 1)}"
    others = ""
    if found.n_free:
        others = f", besides {found.n_free:,} row{'s' * (found.n_free != 1)} that nobody spoke of"
    stay = f"none of {found.n_stay:,} outlier{'s' * (found.n_stay != 1)} that stay"
    return (
        f"{name} {cover} {found.n_covered:,} of {found.n_false_alarms:,} {alarms} "
        f"({percent(found.share)}, asked for {percent(wanted.min_share)}) and {stay}{others}"
    )


def to_json(saved: Rulebook, found: Excepted, wanted: Aim, source: str) -> str:
    """For programs: see the schema `except`."""
    first = len(saved.rules.exceptions) + 1
    return answer("except", {
        "source": source,
        "exceptions": [
            {"number": number, "words": str(rule), "false_alarms": rule.rows}
            for number, rule in enumerate(found.new, start=first)
        ],
        "false_alarms": found.n_false_alarms,
        "covered": found.n_covered,
        "share": found.share,
        "asked": wanted.min_share,
        "share_reached": found.is_enough,
        "stay": found.n_stay,
        "others": found.n_free,
    })  # fmt: skip


def _counted_again(summary: Summary, found: Excepted, wrong: Rows) -> Summary:
    """The summary with the exceptions; what was a false alarm is an inlier."""
    codes = summary._codes.copy()
    codes[wrong] = summary.rules.classes.index(summary.rules.default)
    rules = count(found.rules, summary._values, codes).recounted
    n_wrong = int(wrong.sum())
    note = (
        f"{n_wrong:,} row{'s' * (n_wrong != 1)} called false alarms are no outliers by the labels"
    )
    return summary_again(summary, rules, codes, note)


def _warn(found: Excepted) -> None:
    if not found.is_enough:
        warnings.warn(advice(found), FloorNotReached, stacklevel=3)


def rows_said(given: str | ArrayLike, frame: Frame, name: str) -> Rows:
    """Which rows somebody speaks of: by the name of a column, a truth for each row, or numbers."""
    if isinstance(given, str):
        if given not in frame.columns:
            raise no_such_column(given, frame.columns, frame.source or "the data")
        return rows_where(frame, given)
    array = np.asarray(given)
    if array.dtype == np.bool_ and array.shape == (frame.n_rows,):
        return array
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise StairError(
            f"{option(name)} is no column's name, no truth for each of {frame.n_rows:,} rows and "
            "no list of row numbers"
        )
    return rows_numbered(array.tolist(), frame.n_rows, 0)


def rows_numbered(numbers: Collection[int], n_rows: int, first: int) -> Rows:
    """The rows with these numbers, which begin with the first one's."""
    found = np.zeros(n_rows, dtype=np.bool_)
    for number in numbers:
        if not first <= number < n_rows + first:
            raise StairError(
                f"there are rows {first} to {n_rows + first - 1:,}, but row {number} was named"
            )
        found[number - first] = True
    return found


def rows_where(frame: Frame, column: str, value: str | None = None) -> Rows:
    """The rows in which a column has this value, or says yes."""
    array = frame.columns[column]
    gone = is_missing(array)
    said = ["" if g else _word(v) for v, g in zip(array.tolist(), gone.tolist(), strict=True)]
    if value is not None:
        found = np.array([text == value for text in said], dtype=np.bool_)
        if not found.any():
            has = folded(dict.fromkeys(filter(None, said)))
            raise StairError(f'"{column}" is nowhere {value!r}; it has {has}')
        return found
    words = [text.strip().lower() for text in said]
    others = [text for text, word in zip(said, words, strict=True) if word not in (*YES, *NO)]
    if others:
        raise StairError(
            f'which value of "{column}" is meant? It has {folded(dict.fromkeys(others))}, and not '
            "yes and no alone"
        )
    return np.array([word in YES for word in words], dtype=np.bool_)


def _word(value: Value) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)
