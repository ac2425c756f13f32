"""What the report shows, as values: counts and words, never rows unless somebody asks for some."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from markupsafe import escape
from numpy.typing import NDArray

from stair.clauses import Among, Clause, clause_in_words, side_by_side
from stair.distribution import Chart, Distributions
from stair.errors import StairError
from stair.export.sql import rule_to_sql
from stair.export.text import METHOD_NAMES, certificate_in_words, untold_in_words
from stair.local import LocalRuleSet
from stair.report.cells import cell, shortened
from stair.report.coverage import Coverage, Overlap, coverage_of, coverage_of_counts
from stair.report.map import Map, map_of
from stair.report.telling import Telling, telling_columns
from stair.rules import Rule

if TYPE_CHECKING:
    from stair.summary import Summary

# The page stays below a megabyte: rules get histograms while there is room, then they are listed
# without, then they are counted. Sizes are in bytes of HTML, estimated from above.
ROOM: Final = 880_000
ROOM_FOR_LINES: Final = 360_000  # that histograms leave to the rules after them
SIZE_OF_LINE: Final = 600
SIZE_OF_CARD: Final = 1_300
SIZE_OF_HISTOGRAM: Final = 1_150
SIZE_OF_BARS: Final = 4_500
LONGEST_SQL: Final = 6_000
LONGEST_TEXT: Final = 2_000
MOST_STEPS: Final = 160
MOST_LISTED: Final = 100  # columns that were left out, notes
MOST_CELLS: Final = 24


@dataclass(frozen=True, slots=True)
class ClauseView:
    """A clause and how unusual it is: the rows of either group that meet it."""

    text: str
    feature: str
    outliers: int
    inliers: int
    chart: Chart | None
    beside: str = ""  # the text as it stands beside other clauses


@dataclass(frozen=True, slots=True)
class Examples:
    """The first rows that a rule covers, as text."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, str, tuple[str, ...]], ...]  # number from 1, label, cells


@dataclass(frozen=True, slots=True)
class RuleView:
    """A rule with what speaks for it. `n_outliers` and `n_inliers` are the rows that its clauses
    are held against: those of its partition where the rules are local, else all."""

    number: int
    text: str
    label: str
    is_outlier: bool
    length: int
    rows: int
    hits: int
    share: float
    only: int  # rows of its label that no other rule for this label covers
    n_own: int  # all rows of its label, and all others
    n_others: int
    n_outliers: int
    n_inliers: int
    partition: int | None
    detailed: bool  # whether there was room for its evidence
    clauses: tuple[ClauseView, ...]
    sql: str | None
    examples: Examples | None

    @property
    def precision(self) -> float:
        return self.hits / self.rows if self.rows else math.nan


@dataclass(frozen=True, slots=True)
class Rest:
    """The rows that no rule covers, and the label they get."""

    label: str
    rows: int
    hits: int


@dataclass(frozen=True, slots=True)
class PartitionView:
    number: int
    description: str
    rows: int
    outliers: int
    n_rules: int


@dataclass(frozen=True, slots=True)
class Point:
    """A step of learning."""

    n_rules: int
    total_length: int
    score: float
    stabilizer: float
    objective: float


@dataclass(frozen=True, slots=True)
class Missed:
    """Outliers that no outlier rule covers: by which rules they are called something else, and
    the columns that set them apart from inliers."""

    rows: int
    taken_by: tuple[tuple[int | None, str, int, int], ...]  # rule, its words, missed, all its rows
    telling: tuple[Telling, ...] | None  # None where the rows are elsewhere


@dataclass(frozen=True, slots=True)
class Report:
    """The whole page."""

    source: str
    meaning: str
    n_rows: int
    n_columns: int
    n_outliers: int
    classes: tuple[tuple[str, int], ...]
    has_outliers: bool
    method: str
    method_name: str
    score_name: str
    score: float
    min_score: float
    floor_reached: bool
    n_rules: int
    total_length: int
    outlier_length: int
    longest: int
    false_alarms: int  # inliers that an outlier rule covers
    wrong: int  # rows whose label by the rules is another
    rules: tuple[RuleView, ...]  # of outliers, or all where there is no outlier class
    inlier_rules: tuple[RuleView, ...]
    n_outlier_rules: int
    inlier_rows: tuple[int, int]  # that the inlier rules cover, and the inliers among them
    n_detailed: int
    has_examples: bool
    explained_by: tuple[tuple[int, int], ...]  # rule, the outliers that it is the first to cover
    missed: Missed | None
    rest: Rest | None
    overlap: Overlap | None
    partitions: tuple[PartitionView, ...]
    map: Map | None
    routed: float | None
    assigned: float | None
    steps: tuple[Point, ...]
    held_out: tuple[float, ...]
    left_out: tuple[tuple[str, str], ...]
    n_left_out: int
    notes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def n_unlisted(self) -> int:
        return self.n_rules - len(self.rules) - len(self.inlier_rules)


def report_of(summary: Summary, examples: int = 0) -> Report:
    """All that the page shows, counted from the summary's rules and rows."""
    rules, codes = summary.rules, summary._codes
    positive = None if rules.positive is None else rules.classes.index(rules.positive)
    local = rules if isinstance(rules, LocalRuleSet) else None
    views_of = Views(summary, examples)
    coverage, places = views_of.coverage, views_of.places
    views = _views(summary, views_of)
    target = [v for v in views if v.is_outlier or positive is None]
    return Report(
        source=summary.source or "data",
        meaning=summary.meaning,
        n_rows=summary.n_rows,
        n_columns=summary.n_columns,
        n_outliers=summary.n_outliers,
        classes=tuple(
            (str(c), int(n)) for c, n in zip(rules.classes, coverage.totals, strict=True)
        ),
        has_outliers=positive is not None,
        method=summary.method,
        method_name=". ".join(
            [
                METHOD_NAMES[summary.method],
                *(s.removesuffix(".") for s in certificate_in_words(summary)),
            ]
        ),
        score_name=summary.score_name,
        score=summary.score,
        min_score=summary.min_score,
        floor_reached=summary.floor_reached,
        n_rules=len(rules),
        total_length=rules.total_length,
        outlier_length=sum(rule.length for rule in rules.outlier_rules),
        longest=max((rule.length for rule in rules.outlier_rules), default=0),
        false_alarms=coverage.wrong - summary.unexplained if positive is not None else 0,
        wrong=coverage.wrong,
        rules=tuple(target),
        inlier_rules=tuple(v for v in views if not v.is_outlier and positive is not None),
        n_outlier_rules=len(rules.outlier_rules),
        inlier_rows=_inlier_rows(summary),
        has_examples=examples > 0,
        n_detailed=sum(v.detailed for v in views),
        explained_by=_explained_by(summary, coverage, positive),
        missed=_missed(summary, coverage, positive),
        rest=_rest(summary),
        overlap=coverage.overlap,
        partitions=_partitions(local, places, positive),
        map=None
        if local is None
        else map_of(local, summary._values, places.routed, codes == positive),
        routed=None if local is None else local.routed,
        assigned=None if local is None else local.assigned,
        steps=_steps(summary),
        held_out=summary.held_out,
        left_out=tuple(summary.left_out.items())[:MOST_LISTED],
        n_left_out=len(summary.left_out),
        notes=(*untold_in_words(summary), *summary.notes)[:MOST_LISTED],
        settings=tuple((k, "–" if v is None else str(v)) for k, v in summary.settings.items()),
        versions=tuple(summary.versions.items()),
    )


def _inlier_rows(summary: Summary) -> tuple[int, int]:
    positive = summary.rules.positive
    inner = [e for e in summary.evidence if positive is not None and e.rule.label != positive]
    return sum(e.rows for e in inner), sum(e.hits for e in inner)


class _Places:
    """The rows that a rule is held against: all, or those of its partition."""

    def __init__(self, summary: Summary, local: LocalRuleSet | None) -> None:
        values, codes = summary._values, summary._codes
        n_classes = len(summary.rules.classes)
        self.routed = np.empty(0, dtype=np.intp)
        if local is None:
            self.of_rule: list[int | None] = [None] * len(summary.rules)
            self.parts = [summary._distributions()]
            return
        self.routed = local.route(values)
        self.of_rule = [k for k, (a, b) in enumerate(local.spans()) for _ in range(a, b)]
        self.parts = []
        for number in range(len(local.partitions)):
            rows = np.flatnonzero(self.routed == number)
            self.parts.append(Distributions(_taking(values, rows), codes[rows], n_classes))

    def around(self, rule: int) -> Distributions:
        return self.parts[self.of_rule[rule] or 0]


def _taking(values: Mapping[str, NDArray[Any]], rows: NDArray[np.intp]) -> Any:
    return lambda name: values[name][rows]


class Views:
    """What a person looks at, rule by rule; each column is sorted when it is first asked for."""

    def __init__(self, summary: Summary, examples: int = 0) -> None:
        rules = summary.rules
        self.summary = summary
        self.places = _Places(summary, rules if isinstance(rules, LocalRuleSet) else None)
        self.coverage = (
            coverage_of(rules, summary._values, summary._codes, self.places.routed, examples)
            if summary.has_rows
            else coverage_of_counts(rules)
        )
        self._examples = examples

    def view(self, number: int, *, detailed: bool = True, sql: str | None = None) -> RuleView:
        """The rule at this place (from 0), with its histograms where it is detailed."""
        summary, coverage = self.summary, self.coverage
        evidence = summary.evidence[number]
        rules, rule = summary.rules, evidence.rule
        around = self.places.around(number)
        place = rules.classes.index(rule.label)
        group = rules.classes.index(rule.label if rules.positive is None else rules.positive)
        partition = self.places.of_rule[number]
        total = int(around.totals.sum())
        said = side_by_side([clause_in_words(clause) for clause in rule.clauses])
        clauses = [
            _clause(around, clause, text, group)
            for clause, text in zip(rule.clauses, said, strict=True)
            if detailed
        ]
        return RuleView(
            number=number + 1,
            text=shortened(rule.in_words(), LONGEST_TEXT),
            label=rules.label_name(rule.label),
            is_outlier=rules.positive is not None and rule.label == rules.positive,
            length=rule.length,
            rows=evidence.rows,
            hits=evidence.hits,
            share=evidence.share,
            only=int(coverage.only[number]),
            n_own=int(coverage.totals[place]),
            n_others=summary.n_rows - int(coverage.totals[place]),
            n_outliers=int(around.totals[group]),
            n_inliers=total - int(around.totals[group]),
            partition=None if partition is None else partition + 1,
            detailed=detailed,
            clauses=tuple(clauses),
            sql=sql,
            examples=_examples(summary, coverage.examples[number])
            if self._examples and detailed
            else None,
        )


def _views(summary: Summary, views_of: Views) -> list[RuleView]:
    """The rules that the page lists: outlier rules first, those with the most outliers first."""
    positive = summary.rules.positive
    order = sorted(
        range(len(summary.evidence)),
        key=lambda k: (
            positive is not None and summary.evidence[k].rule.label != positive,
            -summary.evidence[k].hits,
        ),
    )
    texts = {k: shortened(summary.evidence[k].rule.in_words(), LONGEST_TEXT) for k in order}
    lines = {k: SIZE_OF_LINE + len(str(escape(texts[k])).encode("utf-8", "replace")) for k in order}
    left = min(sum(lines.values()), ROOM_FOR_LINES)  # to keep for rules that are only listed
    views: list[RuleView] = []
    room, detailed = ROOM, True
    for number in order:
        left = max(0, left - lines[number])
        sql = rule_as_sql(summary, number) if detailed else None
        size = lines[number] + _size_of_evidence(summary.evidence[number].rule, texts[number], sql)
        detailed = detailed and size + left <= room
        room -= size if detailed else lines[number]
        if room < 0:
            break
        views.append(views_of.view(number, detailed=detailed, sql=sql if detailed else None))
    return views


def _size_of_evidence(rule: Rule, text: str, sql: str | None) -> int:
    charts = sum(SIZE_OF_BARS if isinstance(c, Among) else SIZE_OF_HISTOGRAM for c in rule.clauses)
    return SIZE_OF_CARD + charts + 2 * len(escape(text)) + len(escape(sql or ""))


def _clause(around: Distributions, clause: Clause, said: str, group: int) -> ClauseView:
    """`said` is how it reads beside the others of its rule."""
    met = around.met(clause)
    outliers = int(met[group])
    text, beside = (shortened(words, LONGEST_TEXT) for words in (clause_in_words(clause), said))
    chart = around.chart(clause, group)
    return ClauseView(text, clause.feature, outliers, int(met.sum()) - outliers, chart, beside)


def rule_as_sql(summary: Summary, number: int) -> str | None:
    """The rule's condition; None where a name cannot be written in SQL, or it would be too long."""
    try:
        text = rule_to_sql(summary.rules, number)
    except StairError:
        return None
    return text if len(text) <= LONGEST_SQL else None


def _examples(summary: Summary, rows: NDArray[np.intp]) -> Examples:
    from stair import io

    table = io.from_object(summary.rows_of_data(summary._rows[rows])).columns
    columns = list(table)[:MOST_CELLS]
    names = [summary.rules.label_name(c) for c in summary.rules.classes]
    cells = [
        (
            int(summary._rows[row]) + 1,
            names[summary._codes[row]],
            tuple(cell(table[name][k]) for name in columns),
        )
        for k, row in enumerate(rows.tolist())
    ]
    return Examples(tuple(columns), tuple(cells))


def _explained_by(
    summary: Summary, coverage: Coverage, positive: int | None
) -> tuple[tuple[int, int], ...]:
    if positive is None:
        return ()
    found = [
        (number + 1, int(coverage.first[number, positive]))
        for number, rule in enumerate(summary.rules)
        if rule.label == summary.rules.positive
    ]
    return tuple(sorted((pair for pair in found if pair[1]), key=lambda pair: (-pair[1], pair[0])))


def _missed(summary: Summary, coverage: Coverage, positive: int | None) -> Missed | None:
    if positive is None:
        return None
    rules = summary.rules
    taken: list[tuple[int | None, str, int, int]] = [
        (number + 1, shortened(rule.in_words(), LONGEST_TEXT),
         int(coverage.first[number, positive]), int(coverage.first[number].sum()))
        for number, rule in enumerate(rules)
        if rule.label != rules.positive and coverage.first[number, positive]
    ]  # fmt: skip
    n_rest = int(coverage.rest[positive])
    if n_rest and rules.default != rules.positive:
        taken.append((None, "no rule at all", n_rest, int(coverage.rest.sum())))
    taken.sort(key=lambda row: -row[2])
    telling: tuple[Telling, ...] | None = None
    if summary.has_rows:
        telling = telling_columns(
            summary._values, summary.fields, summary._unexplained, ~summary._outliers
        )
    return Missed(summary.unexplained, tuple(taken[:5]), telling)


def _rest(summary: Summary) -> Rest | None:
    rest = summary.rest
    name = summary.rules.label_name(summary.rules.default)
    return Rest(name, rest.rows, rest.hits) if rest.rows else None


def _partitions(
    local: LocalRuleSet | None, places: _Places, positive: int | None
) -> tuple[PartitionView, ...]:
    if local is None:
        return ()
    return tuple(
        PartitionView(
            number, shortened(partition.description, LONGEST_TEXT), int(part.totals.sum()),
            int(part.totals[positive]) if positive is not None else 0, partition.n_rules,
        )
        for number, (partition, part) in enumerate(
            zip(local.partitions, places.parts, strict=True), start=1
        )
    )  # fmt: skip


def _steps(summary: Summary) -> tuple[Point, ...]:
    """The steps of learning, thinned evenly where there are many; the last one is kept."""
    trace: Sequence[Any] = summary.trace
    if len(trace) > MOST_STEPS:
        chosen = np.unique(np.linspace(0, len(trace) - 1, MOST_STEPS).round().astype(int))
        trace = [trace[k] for k in chosen.tolist()]
    return tuple(
        Point(s.n_rules, s.total_length, s.score, s.stabilizer, s.objective) for s in trace
    )
