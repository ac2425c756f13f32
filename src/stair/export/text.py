"""A summary as a table that fits a terminal."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from stair.errors import option, spoken, visible
from stair.export.wished import missed_in_words, wished_in_words
from stair.learn.identifiers import A_KEY
from stair.learn.kinds import FEWEST, Kind
from stair.rules.clauses import clause_in_words, side_by_side
from stair.rules.figures import fine_percent as fine_percent
from stair.rules.figures import floor_in_words as floor_in_words
from stair.rules.figures import percent as percent
from stair.rules.figures import score_in_words as score_in_words

if TYPE_CHECKING:
    from stair.evidence.findings import Findings
    from stair.rules.counted import RuleEvidence

_ALL: Final = option("every_rule", True)

# Inlier rules that are shown unless all are asked for: a person wants the outliers.
FEW: Final = 5
# Rules that are shown before those that fall apart are left out.
MOST: Final = 12

METHOD_NAMES: Final = {
    "distilled": "Distilled, rules that may overlap",
    "stair": "STAIR, disjoint rules",
    "refined": "STAIR refined, disjoint rules",
    "local": "L-STAIR, rules for partitions",
    "id3": "ID3, disjoint rules",
    "cart": "CART, disjoint rules",
}

# How to get the others, said where somebody may not have chosen the method.
OTHERS: Final = {"distilled": f"; {option('method', 'stair')} for disjoint rules"}

Paint: TypeAlias = Callable[[str, str], str]
_BOLD, _WARN, _END = "\x1b[1m", "\x1b[33m", "\x1b[0m"
_NUMBER = re.compile(r" *\d+  ")


def to_text(
    summary: Findings, width: int = 80, *, every_rule: bool = False, colour: bool = False
) -> str:
    """The rules with their evidence, what is not explained, and what was left out."""
    width = max(60, width)
    paint: Paint = (lambda s, code: f"{code}{s}{_END}") if colour else (lambda s, _: s)
    sections = _sections(summary, every_rule)
    widths = figure_widths([(("", "rows", "right", of), rows) for _, of, rows, _ in sections])
    lines = [*_opening(summary, width, paint), ""]
    for title, of, rows, remark in sections:
        if not rows:
            kind = "rule" if summary.rules.positive is None else "outlier rule"
            lines.append(paint(visible(f" {title} (no {kind})"), _BOLD))
            lines += map(spoken, remark)
            continue
        head, *body = fit((title, "rows", "right", of), rows, width, widths)
        lines += [paint(head, _BOLD), *body, *map(spoken, remark)]
    return "\n".join([*lines, "", *_closing(summary, width, paint)])


Row: TypeAlias = tuple[str, ...]
Section: TypeAlias = tuple[str, str, list[Row], list[str]]


def _sections(summary: Findings, every_rule: bool) -> list[Section]:
    """Title, heading of the last column, rows and a remark of each part of the table."""
    return [*_of_rules(summary, every_rule), *_of_exceptions(summary)]


def _of_exceptions(summary: Findings) -> list[Section]:
    """What exceptions take from the rules; the share is of what rules would be wrong about."""
    if not summary.exceptions:
        return []
    digits = len(str(len(summary.exceptions)))
    rows = [
        _row(str(k).rjust(digits), each, is_falling=False)
        for k, each in enumerate(summary.exceptions, start=1)
    ]
    return [("But not where …", "of mistakes", rows, [])]


def _of_rules(summary: Findings, every_rule: bool) -> list[Section]:
    positive = summary.rules.positive
    numbered = list(enumerate(summary.evidence, start=1))
    digits = len(str(len(numbered)))

    falling = falling_rules(summary)

    def rows(chosen: list[tuple[int, RuleEvidence]]) -> list[Row]:
        return [_row(str(k).rjust(digits), each, k in falling) for k, each in chosen]

    if summary.rules.routing:
        return _partitions(summary, numbered, rows, every_rule)
    rest = summary.rest
    name = summary.rules.label_name(summary.rules.default)
    otherwise = [
        (f"Everything else is {_a(name) if positive is not None else name}",
         f"{rest.rows:,}", percent(rest.precision), ""),
    ] if rest.rows else []  # fmt: skip
    if positive is None or summary.kinds:
        found = {each.rule.label for each in summary.evidence}
        headings = [
            (kind.label, f"{kind.label} is") for kind in summary.kinds if kind.label in found
        ]
        if not summary.kinds:
            classes = summary.rules.classes
            last = [summary.rules.default] if rest.rows else []
            headings = [(label, f"{label}:") for label in classes if label not in last]
        parts: list[Section] = [
            (f"{heading} rows where …", f"of {label}",
             rows([(k, e) for k, e in numbered if e.rule.label == label]), [])
            for label, heading in headings
        ]  # fmt: skip
        return [*parts, ("Otherwise", "", [*otherwise], [])] if otherwise else parts
    outliers = [(k, e) for k, e in numbered if e.rule.label == positive]
    inliers = [(k, e) for k, e in numbered if e.rule.label != positive]
    shown = inliers if every_rule else inliers[:FEW]
    more = inliers[len(shown) :]
    n_more = sum(e.rows for _, e in more)
    remark = [f"    … {len(more)} more inlier rules for {n_more:,} rows ({_ALL})"] if more else []
    of_outliers, of_inliers = (summary.of_weight or each for each in ("of outliers", "of inliers"))
    held = [(k, e) for k, e in outliers if every_rule or k <= MOST or k not in falling]
    n_left = len(outliers) - len(held)
    left = [f"    … {n_left} more rules, all of which fall apart, too ({_ALL})"] if n_left else []
    if not inliers:
        return [("Outliers are rows where …", of_outliers, [*rows(held), *otherwise], left)]
    return [
        ("Outliers are rows where …", of_outliers, rows(held), left),
        ("Inliers are rows where …", of_inliers, rows(shown), remark),
    ]


def _partitions(
    summary: Findings,
    numbered: list[tuple[int, RuleEvidence]],
    rows: Callable[[list[tuple[int, RuleEvidence]]], list[Row]],
    every_rule: bool,
) -> list[Section]:
    """A part of the table for each partition: its outlier rules, or all of them."""
    found, rules = [], summary.rules
    for number, (partition, (start, stop)) in enumerate(
        zip(rules.partitions, rules.spans, strict=True), start=1
    ):
        own = numbered[start:stop]
        shown = [
            (k, e)
            for k, e in own
            if every_rule or rules.positive is None or e.rule.label == rules.positive
        ]
        words = f", {partition.description}" if partition.description else ""
        title = f"Partition {number}: {partition.rows:,.0f} rows{words}"
        rest = sum(e.rows for k, e in own) - sum(e.rows for k, e in shown)
        remark = [f"    inliers: {rest:,} rows ({_ALL})"] if len(shown) < len(own) else []
        of = "of outliers" if summary.rules.positive is not None else "of its class"
        of = summary.of_weight or of
        found.append((title, of, rows(shown), remark))
    return found


def _a(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"


def _row(number: str, evidence: RuleEvidence, is_falling: bool) -> Row:
    """A rule with its figures. Clauses are kept whole when the line is broken."""
    texts = side_by_side([clause_in_words(clause) for clause in evidence.rule.clauses])
    whole = [text.replace(" ", "\u00a0") for text in texts]
    words = "\u00a0\u00a0and\u00a0 ".join(whole) or "everything"
    if is_falling:
        words += "\u00a0*"
    figures = (f"{evidence.rows:,}", percent(evidence.precision), percent(evidence.share))
    return (f"{number}  {words}", *figures)


def floor_message(summary: Findings) -> str:
    """What is said of a floor that was not reached."""
    if summary.outcomes:
        return missed_in_words(summary.outcomes, summary.of_weight)
    longest = summary.settings.get("max_rule_length", 10)
    most = summary.settings.get("max_total_length")
    limits = f"at most {longest} attribute{'s' * (longest != 1)}"
    lower = f"Try a lower {option('min_score')}"
    advice = f"Try {option('max_rule_length', longest + 1)}" if longest < 10 else lower
    if summary.certificate is not None and summary.certificate.min_outliers > 1:
        limits += f" and at least {summary.certificate.min_outliers} outliers"
    if most is not None:
        limits += f" and a total length of at most {most}"
        advice = f"Try a larger {option('max_total_length')}"
    if summary.kinds:
        missed = [str(kind.label) for kind in summary.kinds if not kind.reached]
        floor = floor_in_words(summary.min_score)
        return spoken(f"no rules with F1 above {floor} for {', '.join(missed)}. {lower}.")
    score = score_in_words(summary.score, summary.min_score)
    return spoken(
        f"{summary.score_name} {score} is the best that was found with rules of "
        f"{limits} (asked for more than {floor_in_words(summary.min_score)}). {advice}."
    )


def figure_widths(tables: Sequence[tuple[Row, Sequence[Row]]]) -> list[int]:
    """The widths of all columns but the first, over several tables that should line up."""
    rows = [row for head, body in tables for row in (head, *body)]
    return [max(len(row[k]) for row in rows) for k in range(1, len(rows[0]))]


def fit(
    head: Row, rows: Sequence[Row], width: int, widths: Sequence[int] | None = None
) -> list[str]:
    """A table whose first column is words, wrapped to what the figures leave of the width."""
    head, *rows = (tuple(map(visible, row)) for row in (head, *rows))
    widths = widths or figure_widths([(head, rows)])
    room = max(20, width - sum(widths) - 2 * len(widths) - 2)
    lines = []
    for row in (head, *rows):
        numbered = _NUMBER.match(row[0])
        indent = " " * (numbered.end() if numbered else 0)
        words = _breakable(row[0], room - len(indent))
        wrapped = textwrap.wrap(words, room, subsequent_indent=indent, break_on_hyphens=False) or [
            ""
        ]
        first, *more = (line.replace("\u00a0", " ") for line in wrapped)
        cells = "".join("  " + c.rjust(w) for c, w in zip(row[1:], widths, strict=True))
        lines.append(f" {first.rstrip().ljust(room)} {cells}")
        lines += [f" {line}" for line in more]
    return lines


def _breakable(words: str, room: int) -> str:
    """Clauses are kept whole; one that is longer than a line may be broken between its words."""
    return " ".join(
        part if len(part) <= room else part.replace("\u00a0", " ") for part in words.split(" ")
    )


def _opening(summary: Findings, width: int, paint: Paint) -> list[str]:
    n_columns = summary.n_columns
    parts = [f"{summary.n_rows:,} rows", f"{n_columns} column{'s' * (n_columns != 1)}"]
    if summary.rules.positive is not None or summary.kinds:
        share = summary.n_outliers / summary.n_rows
        of_kinds = f" of {len(summary.kinds)} kinds" if summary.kinds else ""
        parts.append(f"{summary.n_outliers:,} outliers{of_kinds} ({fine_percent(share)})")
    else:
        parts.append(f"{len(summary.rules.classes)} classes")
    parts.append(summary.meaning if summary.kinds else f"label: {summary.meaning}")
    name, *parts = map(visible, (summary.source or "data", *parts))
    first, *more = _flow([name, *parts], width)
    return [paint(name, _BOLD) + first.removeprefix(name), *more]


def _flow(parts: Iterable[str], width: int) -> list[str]:
    """Parts side by side, three spaces apart, on as many lines as they need."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += f"   {part}"
        else:
            lines.append(part)
    return lines


def falling_rules(summary: Findings) -> frozenset[int]:
    """The numbers of the outlier rules that fall apart on rows kept aside."""
    if summary.check is None:
        return frozenset()
    positive = summary.rules.positive
    return frozenset(
        k
        for k in summary.check.falling
        if positive is None or summary.evidence[k - 1].rule.label == positive
    )


def check_in_words(summary: Findings) -> list[str]:
    """Whether the rules hold on rows kept aside."""
    check = summary.check
    if check is None:
        why = f": {summary.unchecked}" if summary.unchecked else ""
        return [f"Not checked on rows kept aside{why}."]
    if not summary.evidence:
        return []
    folds = f"{len(check.scores)} folds"
    if check.of_kinds:
        listed = [
            f"{kind.label} {score_in_words(score, summary.min_score)}"
            for kind, score in zip(summary.kinds, check.of_kinds, strict=True)
            if any(each.rule.label == kind.label for each in summary.evidence)
        ]
        scores = f"{', '.join(listed)} ({folds})"
    else:
        score, low, high = (
            score_in_words(each, summary.min_score)
            for each in (check.score, min(check.scores), max(check.scores))
        )
        scores = f"{score} ({folds}, {low} to {high})"
    return [
        f"They {check.conclusion}: on rows kept aside {summary.score_name} is {scores}.",
        *falling_in_words(summary),
    ]


def falling_in_words(summary: Findings) -> list[str]:
    """Which rules fall apart on rows kept aside; they have a star."""
    falling = sorted(falling_rules(summary))
    if not falling:
        return []
    n = len(falling)
    which = f"rule {falling[0]} falls" if n == 1 else f"{n} rules fall"
    if 1 < n <= 6:
        which = f"rules {', '.join(map(str, falling[:-1]))} and {falling[-1]} fall"
    return [
        f"* {which[:1].upper()}{which[1:]} apart there: most of the outliers are not found by "
        "rules that were learned without them."
    ]


def kinds_in_words(summary: Findings) -> list[str]:
    """Kinds of outlier that have no rules above the floor, with what came nearest."""
    return [kind_in_words(summary, kind) for kind in summary.kinds if not kind.reached]


def kind_in_words(summary: Findings, kind: Kind) -> str:
    """Why a kind of outlier is not above the floor."""
    n = f"{kind.rows:,} row{'s' * (kind.rows != 1)}"
    if kind.nearest:
        words = "; or ".join(rule.in_words() for rule in kind.nearest[:2])
        more = f"; or {len(kind.nearest) - 2} more" if len(kind.nearest) > 2 else ""
        score = score_in_words(kind.nearest_score, summary.min_score)
        best = f"the best (F1 {score}): {words}{more}"
        return f"{kind.label} ({n}): no rules above the floor; {best}."
    if any(each.rule.label == kind.label for each in summary.evidence):
        return (
            f"{kind.label} ({n}): F1 {score_in_words(kind.score, summary.min_score)}, because "
            "rules of other kinds take some of its rows."
        )
    if kind.rows < FEWEST:
        return f"{kind.label} ({n}): no rules, because there are too few rows."
    return f"{kind.label} ({n}): no rules; none that was found comes near the floor."


def further_in_words(summary: Findings) -> list[str]:
    """What one more rule would add."""
    more = summary.further
    if more is None or not summary.floor_reached:
        return []
    total = summary.n_outliers if summary.weighed is None else summary.weighed.outliers
    kind = f"{more.rule.label}: " if summary.kinds else ""
    floor = math.floor(more.score * 100) / 100
    floor -= 0.01 * (floor >= more.score)
    again = f"; {option('min_score', round(floor, 2))}" if floor > summary.min_score else ""
    of_weight = f" {summary.of_weight}" if summary.of_weight else ""
    return [
        f"One more rule, length {more.rule.length}, would explain {percent(more.outliers / total)}"
        f"{of_weight} more: {kind}{more.rule.in_words()}{spoken(again)}."
    ]


def untold_in_words(summary: Findings) -> list[str]:
    """Classes that no rule gives, where there are more than two: the largest may be so large that
    saying nothing but its name is right often enough."""
    rules = summary.rules
    if rules.positive is not None or summary.kinds:
        return []
    told = {each.rule.label for each in summary.evidence} | {rules.default}
    untold = [str(label) for label in rules.classes if label not in told]
    if not untold:
        return []
    names = untold if len(untold) <= 6 else [*untold[:5], f"{len(untold) - 5} more"]
    listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    why = ": the accuracy is above the floor without one" if summary.floor_reached else ""
    which = spoken(option("positive", untold[0]))
    return [
        f"No rule says {listed}{why}. Say what is an outlier ({which}, or several) for rules about "
        f"it, or ask for more with {spoken(option('min_score'))}."
    ]


def certificate_in_words(summary: Findings) -> list[str]:
    """How far from the shortest the rules may be; nothing where that is not known."""
    certificate, length = summary.certificate, summary.rules.total_length
    if certificate is None:
        return []
    lines = []
    if certificate.cut_short:
        lines.append("The search was cut short: there may be shorter rules.")
    if certificate.bound:
        n_candidates = certificate.n_candidates
        looked_at = f"{n_candidates:,} candidate rule{'' if n_candidates == 1 else 's'}"
        lines.append(
            f"The shortest choice among {looked_at}."
            if certificate.bound >= length
            else f"No choice among {looked_at} is shorter than {certificate.bound}."
        )
    if certificate.most and not certificate.bound:
        explained: float = summary.n_outliers - summary.unexplained
        looked_at = f"{certificate.n_candidates:,} candidate rules"
        total: float = summary.n_outliers
        what = "the outliers"
        if summary.weighed is not None:
            explained, total = summary.weighed.hits, summary.weighed.outliers
            what = f"the {summary.weighed.name} of outliers"
        lines.append(
            f"No choice among {looked_at} explains more within these budgets."
            if certificate.most <= explained
            else f"No choice among {looked_at} explains more than "
            f"{percent(certificate.most / total)} of {what}."
        )
    if certificate.relaxed and summary.floor_reached and summary.evidence:
        n_outliers = min(each.hits for each in summary.evidence)
        lines.append(
            f"Some rules cover only {n_outliers} outlier{'s' * (n_outliers != 1)}: the floor is "
            "not reached with more."
        )
    return lines


def figures_in_words(summary: Findings) -> str:
    """How many rules, how long, and what they score."""
    rules = summary.rules
    n = len(rules)
    asked = f"asked for more than {floor_in_words(summary.min_score)}"
    score = f"{summary.score_name} {score_in_words(summary.score, summary.min_score)}"
    if summary.of_weight:
        score += f" {summary.of_weight}"
    if not summary.outcomes:
        score += f" ({asked})"
    if summary.kinds:
        n_reached = sum(kind.reached for kind in summary.kinds)
        floor = floor_in_words(summary.min_score)
        score = f"F1 above {floor} for {n_reached} of {len(summary.kinds)} kinds"
    bounds = f"{rules.n_bounds} bound{'s' * (rules.n_bounds != 1)}"
    length = f"total length {rules.total_length}"
    if summary.costly_length is not None:
        length += f" (with costs {summary.costly_length})"
    if more := len(rules.exceptions):
        bounds += f", {more} exception{'s' * (more != 1)}"
    return f"{n} rule{'s' * (n != 1)}, {length}, {bounds}, {score}"


def _closing(summary: Findings, width: int, paint: Paint) -> list[str]:
    rules = summary.rules
    method = f"{METHOD_NAMES[summary.method]}{spoken(OTHERS.get(summary.method, ''))}"
    lines = [f"{figures_in_words(summary)}. {method}.", *wished_in_words(summary)]
    lines += kinds_in_words(summary)
    lines += check_in_words(summary)
    lines += [f"Look twice: {suspect}." for suspect in summary.suspects]
    lines += certificate_in_words(summary)
    lines += untold_in_words(summary)
    if rules.routing:
        routed, assigned = routed_and_assigned(summary)
        of_weight = f" {summary.of_weight}" if summary.of_weight else ""
        lines.append(
            f"Routed {summary.score_name} {routed}{of_weight}: what a new row gets, by its nearest "
            f"partition. Assigned {assigned}: the paper's, where training chose the "
            "partition of each row knowing its label."
        )
    if not summary.floor_reached and not summary.kinds and not summary.outcomes:
        lines.append("The floor was not reached; these are the best rules on the way there.")
    more = []
    if rules.positive is not None or summary.kinds:
        missed = f"{summary.unexplained:,} outlier{'s' * (summary.unexplained != 1)}"
        more.append(f"Not explained: {missed}.")
    if summary.left_out:
        names = [f"{name} ({why})" for name, why in summary.left_out.items()]
        shown = names if len(names) <= 6 else [*names[:6], f"… {len(names) - 6} more"]
        more.append(f"Left out: {', '.join(shown)}.{_brought_back(summary.left_out)}")
    lines += ["  ".join(more)] if more else []
    lines += further_in_words(summary)
    lines += [f"Note: {note}" for note in summary.notes]
    wrapped = [f" {part}" for line in lines for part in textwrap.wrap(visible(line), width - 1)]
    if not summary.floor_reached:
        wrapped = [paint(s, _WARN) if "floor was not" in s else s for s in wrapped]
    return wrapped


def routed_and_assigned(summary: Findings) -> tuple[str, str]:
    """The two scores of rules for partitions."""
    routing = summary.rules.routing
    return (
        score_in_words(routing.routed, summary.min_score, 3),
        score_in_words(routing.assigned, summary.min_score, 3),
    )


def _brought_back(left_out: Mapping[str, str]) -> str:
    """How an identifier is used all the same, by the first of them."""
    for name, why in left_out.items():
        if "all values differ" in why or "values hardly repeat" in why:
            kind = "number" if why.startswith(A_KEY) else "category"
            return f" {spoken(option('kinds', {name: kind}))} brings it back."
    return ""
