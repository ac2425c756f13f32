"""Saved rules on new data: labels, matching rules, and how coverage moved since then."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from stair.data import Frame
from stair.data.frame import Array
from stair.errors import StairError, folded, no_such_column, option, spoken
from stair.export.json import Rulebook
from stair.export.text import fine_percent, fit, score_in_words
from stair.rules.counted import Counted, Figures, count
from stair.rules.match import first_covering
from stair.rules.objective import f1
from stair.verdict.codebook import Codebook
from stair.verdict.labels import read_labels


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One label and one rule number (from 1; 0 for none) for each row; and the number of the
    exception that takes it from a rule, where there are some."""

    labels: Array
    rules: NDArray[np.intp]
    coverage: NDArray[np.float64]  # the share of rows that each rule covers
    notes: tuple[str, ...] = ()  # about values that are not what the rules were learned with
    exceptions: NDArray[np.intp] | None = None
    lifted: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # by each exception

    @property
    def columns(self) -> dict[str, Array]:
        """What stands behind a row's own columns."""
        found = {"stair_label": self.labels, "stair_rule": self.rules}
        return found if self.exceptions is None else {**found, "stair_exception": self.exceptions}


def apply_rules(saved: Rulebook, table: object) -> Outcome:
    """Label every row of a table. Only the columns that the rules speak of are needed."""
    values = saved.rules.read(table)
    matches = saved.rules.matches(values)
    numbers, applies, lifted = matches.numbers, matches.applies, matches.lifted
    labels = saved.rules.labels_of(numbers)
    exceptions = first_covering(lifted) + 1 if saved.rules.exceptions else None
    return Outcome(
        labels, numbers + 1, applies.mean(axis=0), values.notes, exceptions, lifted.mean(axis=0)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """How rules agree with the labels of new rows, and what is to be said about these."""

    counted: Counted
    name: str  # of the label column
    notes: tuple[str, ...] = ()


def judge(
    saved: Rulebook,
    frame: Frame,
    label: str,
    positive: Sequence[str] | None = None,
    negative: str | None = None,
) -> Judgement:
    """The rules against a column of labels, which are read as they were when the rules were
    learned, unless somebody says what is an outlier."""
    if label not in frame.columns:
        raise no_such_column(label, frame.columns, frame.source or "the data")
    rules, codebook = saved.rules, saved.codebook
    notes: tuple[str, ...] = ()
    is_told = positive is not None or negative is not None
    if len(rules.classes) > 2:
        if is_told:
            raise StairError(
                f"{option('positive')} and {option('negative')} are for rules about one kind of "
                f"outlier; these tell {folded(map(str, rules.classes))} apart"
            )
        codebook = codebook or Codebook(tuple((c,) for c in rules.classes), len(rules.classes))
    if codebook is not None and not is_told:
        hint = f"; say which value is the outlier with {option('positive')}"
        codes = codebook.codes(frame.columns[label], label, hint)
    else:
        found = read_labels(frame.columns[label], positive=positive, negative=negative, name=label)
        if len(found.classes) > 2:
            raise StairError(
                f'the label column "{label}" has {len(found.classes)} values, and these rules tell '
                f"two apart; say which is the outlier with {option('positive')}"
            )
        codes, notes = found.codes, found.notes
    values = rules.read(frame)
    return Judgement(count(rules, values, codes), label, tuple(map(spoken, notes)))


def explain_row(saved: Rulebook, frame: Frame, row: int) -> str:
    """Why this row (counted from 1) is, or is not, an outlier."""
    if not 1 <= row <= frame.n_rows:
        raise StairError(
            f"{frame.source} has rows 1 to {frame.n_rows}, but row {row} was asked for"
        )
    columns = {name: array[row - 1 : row] for name, array in frame.columns.items()}
    one = replace(frame, columns=columns, n_rows=1)
    return f"Row {row}: {saved.rules.explain(saved.rules.read(one))}"


def coverage_table(saved: Rulebook, applied: Outcome, source: str, width: int) -> str:
    """The share of rows of each rule, when the rules were learned and now."""
    before = sum(saved.rules.totals)
    names = [saved.rules.label_name(label) for label in saved.rules.classes]
    found = [int((applied.labels == label).sum()) for label in saved.rules.classes]
    n_rows = len(applied.labels)
    s = "s" if saved.rules.positive is not None else ""  # outliers and inliers; names stay names
    tally = ", ".join(f"{count:,} {name}{s}" for name, count in zip(names, found, strict=True))
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
    rows += [
        (
            f"exception {number}  but not where {rule.in_words()}",
            fine_percent(rule.rows / before if before and rule.counts else float("nan")),
            fine_percent(float(now)),
        )
        for number, (rule, now) in enumerate(
            zip(saved.rules.exceptions, applied.lifted, strict=True), start=1
        )
    ]
    none = float((applied.rules == 0).mean())
    rows.append(("no rule", fine_percent(_learned_without_rule(saved)), fine_percent(none)))
    lines += fit(("Share of rows that each rule covers", "learned", "now"), rows, width)
    return "\n".join(lines)


def agreement_table(saved: Rulebook, judged: Judgement, width: int) -> str:
    """Precision, recall and F1 of all rules together and of each, when learned and now."""
    rules, now = saved.rules, judged.counted
    kinds = {str(k["label"]): k["score"] for k in saved.facts.get("kinds") or ()}
    numbered = list(enumerate(zip(rules, now.of_rules, strict=True), start=1))
    rows: list[tuple[str, ...]] = []
    for label, figures in now.of_labels.items():
        learned: tuple[float, ...] = (math.nan, math.nan, kinds.get(str(label), math.nan))
        if rules.positive is not None:
            learned = tuple(_fact(saved, name) for name in ("precision", "recall", "score"))
        rows.append((f"all rules: {rules.label_name(label)}", *_moved(learned, figures)))
        for number, (rule, own) in numbered:
            if rule.label == label:
                total = rules.totals[rules.classes.index(label)]
                then = (rule.precision, rules.share(rule), f1(rule.hits, rule.rows, total))
                rows.append((f"{number}  {rule.in_words()}", *_moved(then, own)))
    head = (f"Beside {judged.name}, learned → now", "precision", "recall", "F1")
    lines = ["", *fit(head, rows, width)]
    if rules.positive is None and not kinds:
        accuracy = _arrow(_fact(saved, "score"), now.accuracy)
        lines.append(f" Accuracy of all rules together: {accuracy}.")
    return "\n".join(lines)


def _fact(saved: Rulebook, name: str) -> float:
    found = saved.facts.get(name)
    return float(found) if isinstance(found, int | float) else math.nan


def _moved(learned: Sequence[float], now: Figures) -> tuple[str, ...]:
    return tuple(map(_arrow, learned, (now.precision, now.recall, now.f1)))


def _arrow(learned: float, now: float) -> str:
    return f"{_share(learned)} → {_share(now)}"


def _share(figure: float) -> str:
    return "–" if math.isnan(figure) else score_in_words(figure, 1.0)


def _learned_without_rule(saved: Rulebook) -> float:
    """The share of rows that no rule covered when the rules were learned; NaN if not known."""
    rows, of = (saved.facts.get(name) for name in ("rows_without_rule", "rows"))
    if isinstance(rows, int) and isinstance(of, int) and 0 <= rows <= of and of:
        return rows / of
    return math.nan
