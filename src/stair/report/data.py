"""What the report shows, counted from a summary's rules and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from markupsafe import escape

from stair.errors import StairError
from stair.evidence.distribution import Distributions
from stair.evidence.findings import Findings
from stair.export.sql import rule_to_sql
from stair.export.text import (
    METHOD_NAMES,
    certificate_in_words,
    falling_rules,
    kind_in_words,
    untold_in_words,
)
from stair.learn.grow import Step
from stair.report.cells import shortened
from stair.report.content import (
    ClauseView,
    ExceptionView,
    KindView,
    Missed,
    PartitionView,
    Point,
    Report,
    Rest,
    RuleView,
)
from stair.report.contrasts import Contrast, contrasts_of
from stair.report.coverage import Coverage, coverage_of
from stair.report.examples import alone_of, examples_of
from stair.report.map import map_of
from stair.report.remarks import on_the_frontier, remarks_of
from stair.rules.clauses import Clause, clause_in_words, side_by_side
from stair.rules.counted import groups_of_disjoint
from stair.rules.rule_set import Rule, RuleSet

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


def report_of(summary: Findings, examples: int = 0) -> Report:
    """All that the page shows, counted from the summary's rules and rows."""
    rules, codes = summary.rules, summary._codes
    positive = None if rules.positive is None else rules.classes.index(rules.positive)
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
        false_alarms=_false_alarms(summary, coverage),
        wrong=coverage.wrong,
        rules=tuple(target),
        inlier_rules=tuple(v for v in views if not v.is_outlier and positive is not None),
        n_outlier_rules=len(rules.outlier_rules),
        inlier_rows=_inlier_rows(summary),
        has_examples=examples > 0,
        n_detailed=sum(v.detailed for v in views),
        explained_by=_explained_by(summary, coverage),
        missed=_missed(summary, coverage, examples > 0),
        rest=_rest(summary),
        overlap=coverage.overlap,
        partitions=_partitions(rules, places, positive),
        map=map_of(rules.routing, summary._values, places.routed, codes == positive)
        if rules.routing
        else None,
        routed=rules.routing.routed if rules.routing else None,
        assigned=rules.routing.assigned if rules.routing else None,
        steps=_steps(summary),
        held_out=summary.held_out,
        left_out=tuple(summary.left_out.items())[:MOST_LISTED],
        n_left_out=len(summary.left_out),
        notes=(*untold_in_words(summary), *summary.notes)[:MOST_LISTED],
        settings=tuple(
            (k, "–" if v is None else str(v))
            for k, v in summary.settings.items()
            if k != "column_wishes"  # which is said in words
        ),
        versions=tuple(summary.versions.items()),
        n_bounds=rules.n_bounds,
        remarks=remarks_of(summary),
        kinds=_kinds(summary),
        n_mistaken=_mistaken(summary, coverage),
        exceptions=tuple(
            ExceptionView(
                k, shortened(each.rule.in_words(), LONGEST_TEXT), each.rows, each.hits, each.share
            )
            for k, each in enumerate(summary.exceptions[:MOST_LISTED], start=1)
        ),
        frontier=summary.frontier,
        chosen=on_the_frontier(summary),
        of_weight=summary.of_weight,
        explained=summary.recall,
        costly_length=summary.costly_length,
        has_wishes=bool(summary.outcomes),
    )


def _kinds(summary: Findings) -> tuple[KindView, ...]:
    scores = summary.check.of_kinds if summary.check else ()
    labels = [each.rule.label for each in summary.evidence]
    return tuple(
        KindView(
            str(kind.label), kind.rows, labels.count(kind.label), kind.score,
            scores[k] if k < len(scores) and kind.label in labels else None,
            "" if kind.reached else kind_in_words(summary, kind),
        )
        for k, kind in enumerate(summary.kinds)
    )  # fmt: skip


def _outlier_places(summary: Findings) -> list[int]:
    """The classes that are outliers, by their places; none where there are classes alone."""
    classes = summary.rules.classes
    if summary.kinds:
        return [classes.index(kind.label) for kind in summary.kinds]
    return [] if summary.rules.positive is None else [classes.index(summary.rules.positive)]


def _false_alarms(summary: Findings, coverage: Coverage) -> int:
    if not _outlier_places(summary):
        return 0
    return coverage.wrong - summary.unexplained - _mistaken(summary, coverage)


def _mistaken(summary: Findings, coverage: Coverage) -> int:
    """Outliers of one kind that a rule of another decides about."""
    if not summary.kinds:
        return 0
    places = _outlier_places(summary)
    return sum(
        int(coverage.first[number, place])
        for number, rule in enumerate(summary.rules)
        for place in places
        if summary.rules.classes[place] != rule.label
    )


def _inlier_rows(summary: Findings) -> tuple[int, int]:
    positive = summary.rules.positive
    inner = [e for e in summary.evidence if positive is not None and e.rule.label != positive]
    return sum(e.rows for e in inner), sum(e.hits for e in inner)


class _Places:
    """The rows that a rule is held against: all, or those of its partition."""

    def __init__(self, summary: Findings) -> None:
        rules, values, codes = summary.rules, summary._values, summary._codes
        self.of_rule = rules.partition_of
        self.routed = np.zeros(len(codes), dtype=np.intp)
        if not rules.routing:
            self.parts = [summary._distributions()]
            return
        self.parts = []
        for number, (_, rows, here) in enumerate(rules.parts(values)):
            self.routed[rows] = number
            own = Distributions(here.__getitem__, codes[rows], len(rules.classes))
            self.parts.append(own)

    def around(self, rule: int) -> Distributions:
        return self.parts[self.of_rule[rule]]


class Views:
    """What a person looks at, rule by rule; each column is sorted when it is first asked for."""

    def __init__(self, summary: Findings, examples: int = 0) -> None:
        rules = summary.rules
        self.summary = summary
        self.places = _Places(summary)
        groups = summary._groups
        self.coverage = coverage_of(rules, groups_of_disjoint(rules) if groups is None else groups)
        self._covered = rules.matches(summary._values).applies if examples else None
        self.falling = falling_rules(summary)
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
            label=str(rules.label_name(rule.label)),
            is_outlier=rules.positive is not None and rule.label == rules.positive,
            length=rule.length,
            rows=evidence.rows,
            hits=evidence.hits,
            share=evidence.share,
            only=evidence.alone if summary.kinds else int(coverage.only[number]),
            n_own=int(coverage.totals[place]),
            n_others=summary.n_rows - int(coverage.totals[place]),
            n_outliers=int(around.totals[group]),
            n_inliers=total - int(around.totals[group]),
            partition=partition + 1 if rules.routing else None,
            detailed=detailed,
            clauses=tuple(clauses),
            sql=sql,
            examples=None
            if self._covered is None or not detailed
            else examples_of(summary, self._covered[:, number], number, self._examples),
            taken=int(rule.rows) - evidence.rows if summary.kinds else 0,
            found_again=summary.check.found_again[number]
            if summary.check and number + 1 in self.falling
            else None,
            precision=evidence.precision,
        )


def _views(summary: Findings, views_of: Views) -> list[RuleView]:
    """The rules that the page lists: outlier rules first, by their numbers."""
    positive = summary.rules.positive
    order = sorted(
        range(len(summary.evidence)),
        key=lambda k: positive is not None and summary.evidence[k].rule.label != positive,
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
    charts = sum(SIZE_OF_BARS if c.categories else SIZE_OF_HISTOGRAM for c in rule.clauses)
    return SIZE_OF_CARD + charts + 2 * len(escape(text)) + len(escape(sql or ""))


def _clause(around: Distributions, clause: Clause, said: str, group: int) -> ClauseView:
    """`said` is how it reads beside the others of its rule."""
    met = around.met(clause)
    outliers = int(met[group])
    text, beside = (shortened(words, LONGEST_TEXT) for words in (clause_in_words(clause), said))
    chart = around.chart(clause, group)
    return ClauseView(text, clause.feature, outliers, int(met.sum()) - outliers, chart, beside)


def rule_as_sql(summary: Findings, number: int) -> str | None:
    """The rule's condition; None where a name cannot be written in SQL, or it would be too long."""
    try:
        text = rule_to_sql(summary.rules, number)
    except StairError:
        return None
    return text if len(text) <= LONGEST_SQL else None


def _explained_by(summary: Findings, coverage: Coverage) -> tuple[tuple[int, int], ...]:
    """The outliers that each rule is the first to cover, and rightly."""
    rules, places = summary.rules, _outlier_places(summary)
    found = [
        (number + 1, int(coverage.first[number, place]))
        for number, rule in enumerate(rules)
        if (place := rules.classes.index(rule.label)) in places
    ]
    if not summary.kinds:
        found.sort(key=lambda pair: -pair[1])
    return tuple(pair for pair in found if pair[1])


def _missed(summary: Findings, coverage: Coverage, has_examples: bool) -> Missed | None:
    rules, places = summary.rules, _outlier_places(summary)
    if not places:
        return None
    taken: list[tuple[int | None, str, int, int]] = []
    for number, rule in enumerate(rules):
        n_taken = int(coverage.first[number, places].sum())
        if n_taken and rules.classes.index(rule.label) not in places:
            text = shortened(rule.in_words(), LONGEST_TEXT)
            taken.append((number + 1, text, n_taken, int(coverage.first[number].sum())))
    n_rest = int(coverage.rest[places].sum())
    if n_rest and rules.classes.index(rules.default) not in places:
        taken.append((None, "no rule at all", n_rest, int(coverage.rest.sum())))
    taken.sort(key=lambda row: -row[2])
    contrasts: tuple[Contrast, ...] | None = None
    if summary.has_rows:
        contrasts = contrasts_of(
            summary._values, summary.fields, summary._unexplained, ~summary._outliers
        )
    alone = alone_of(summary) if has_examples and summary.has_rows else ()
    return Missed(summary.unexplained, tuple(taken[:5]), contrasts, alone)


def _rest(summary: Findings) -> Rest | None:
    rest = summary.rest
    name = summary.rules.label_name(summary.rules.default)
    return Rest(name, rest.rows, rest.hits, rest.precision) if rest.rows else None


def _partitions(rules: RuleSet, places: _Places, positive: int | None) -> tuple[PartitionView, ...]:
    return tuple(
        PartitionView(
            number, shortened(partition.description, LONGEST_TEXT), int(part.totals.sum()),
            int(part.totals[positive]) if positive is not None else 0, partition.n_rules,
        )
        for number, (partition, part) in enumerate(
            zip(rules.routing.partitions, places.parts, strict=False), start=1
        )
    )  # fmt: skip


def _steps(summary: Findings) -> tuple[Point, ...]:
    """The steps of learning, thinned evenly where there are many; the last one is kept."""
    trace: Sequence[Step] = summary.trace
    if len(trace) > MOST_STEPS:
        chosen = np.unique(np.linspace(0, len(trace) - 1, MOST_STEPS).round().astype(int))
        trace = [trace[k] for k in chosen.tolist()]
    return tuple(
        Point(s.n_rules, s.total_length, s.score, s.stabilizer, s.objective) for s in trace
    )
