"""A check of rules in words: for a terminal, as Markdown, JSON, and JUnit XML for pipelines."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

from stair.errors import folded, visible
from stair.export.answers import answer
from stair.export.sentences import markdown
from stair.export.text import fit
from stair.operation.standing import Figures, Standing
from stair.rules.figures import fine_percent, percent

if TYPE_CHECKING:
    from stair.operation.check import CheckUp
    from stair.operation.statistics import Share

SHOWN: Final = {"decayed": "DECAYED", "faded": "FADED", "grown": "GROWN",
                "cannot be asked": "NO COLUMN"}  # fmt: skip
# What no XML may hold, not even in a reference.
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def opening(found: CheckUp) -> str:
    """What was looked at, and against what."""
    parts = [found.source, f"{found.n_rows:,} rows"]
    if found.n_outliers is not None:
        share = percent(found.n_outliers / found.n_rows) if found.n_rows else "–"
        parts.append(f"{found.n_outliers:,} outliers ({share})")
    since = sorted({each.record.since for each in found.standings} - {""})
    when = f" of {since[-1]}" if since else ""
    source = found.book.source
    parts.append(f"against rules{when}{f' from {source}' if source else ''}")
    return "   ".join(map(visible, parts))


def to_text(found: CheckUp, width: int = 80) -> str:
    """As a terminal shows it."""
    head = ("Rule", *_heads(found))
    rows = [(f"{s.number}  {s.rule.in_words()}", *_cells(s)) for s in found.standings]
    lines = [opening(found), "", *fit(head, rows, width), ""]
    return "\n".join([*lines, *wrapped(sentences(found), width)])


def wrapped(sentences: Sequence[str], width: int) -> list[str]:
    """Each on as many lines as it needs."""
    return [
        f" {line}"
        for sentence in sentences
        for line in textwrap.wrap(visible(sentence), width - 1, break_on_hyphens=False)
    ]


def to_markdown(found: CheckUp) -> str:
    """As a comment on a pull request shows it."""
    heads = ("", "Rule", *_heads(found))
    rows = [(str(s.number), s.rule.in_words(), *_cells(s)) for s in found.standings]
    lines = [f"**{markdown(opening(found))}**", "", _row(heads), _row(["---"] * len(heads))]
    lines += [_row(map(markdown, row)) for row in rows]
    return "\n".join([*lines, "", *(f"- {markdown(line)}" for line in sentences(found)), ""])


def sentences(found: CheckUp) -> list[str]:
    """What is to be said below the table."""
    notes = [f"Note: {note}." for note in found.notes]
    return [*details(found), *([conclusion(found)] if conclusion(found) else []), *notes]


def conclusion(found: CheckUp) -> str:
    """All of it in one sentence; empty where there are outliers of another kind, and no more."""
    n = sum(each.is_alarm for each in found.standings)
    if n:
        return f"{n} of {len(found.standings)} rules {'has' if n == 1 else 'have'} changed."
    return "" if found.has_decayed else "No rule has decayed."


def details(found: CheckUp) -> list[str]:
    """What has changed, and what is new."""
    said = [change(s) for s in found.standings if s.is_alarm or s.state == "grown"]
    few = [s.number for s in found.standings if s.state == "too few rows"]
    if few:
        said.append(f"Too few rows to say anything of {rules_in_words(few)}.")
    unknown = [s.number for s in found.standings if s.state == "not known"]
    if unknown:
        said.append(f"Nothing is known of what {rules_in_words(unknown)} covered when learned.")
    if found.explained is not None:
        said.append(_explained(found))
    if found.unseen:
        said.append("; ".join(
            f"{n:,} row{'s have values' if n != 1 else ' has a value'} of {name} that were never "
            "seen" for name, n in found.unseen.items()
        ) + ".")  # fmt: skip
    if found.expired:
        said.append(f"Past the last day: {rules_in_words(found.expired)}.")
    return said


def _explained(found: CheckUp) -> str:
    now, then = found.explained, found.explained_then
    assert now is not None
    if not now.rows:
        return "There is no outlier here."
    missed = now.rows - now.hits
    text = f"All rules together explain {fine_percent(now.value)} of the outliers"
    if then is not None and then.rows:
        text += f" (then {fine_percent(then.value)})"
    text += f"; {missed:,} {'has' if missed == 1 else 'have'} no rule."
    return f"{text} That is LESS: there are others." if found.explains_less else text


def change(standing: Standing) -> str:
    """What has become of one rule."""
    then, now = standing.then, standing.now
    who = f"Rule {standing.number}"
    since = f" since {standing.since}" if standing.since else ""
    if standing.state == "cannot be asked":
        return f"{who} cannot be asked: there is no column {folded(standing.missing)}."
    recent = standing.recent
    if standing.state == "decayed":
        assert recent.right is not None and then.right is not None
        low, high = recent.right.interval
        return (
            f"{who} has decayed{since}: right in {fine_percent(recent.right.value)} "
            f"({_bounds(low, high)}) of {recent.right.rows:,} rows, then in "
            f"{fine_percent(then.right.value)} of {then.right.rows:,}."
        )
    word = "has faded" if standing.state == "faded" else "covers much more"
    assert recent.covers is not None and then.covers is not None and now.covers is not None
    return (
        f"{who} {word}{since}: it covers {fine_percent(recent.covers.value)} of the rows, then "
        f"{fine_percent(then.covers.value)}."
    )


def _heads(found: CheckUp) -> tuple[str, ...]:
    """Of the figures."""
    heads = ("covers", "now", "")
    return heads if found.n_outliers is None else ("right: then", "now (95%)", *heads)


def _cells(standing: Standing) -> tuple[str, ...]:
    then, now = standing.then, standing.now
    state = SHOWN.get(standing.state, standing.state)
    cells = [_share(then.covers), _share(now.covers), state]
    if now.right is not None or (standing.missing and then.right is not None):
        was = "–" if then.right is None or not then.right.rows else percent(then.right.value)
        cells[:0] = [was, _with_interval(now.right)]
    return tuple(cells)


def _share(share: Share | None) -> str:
    return "–" if share is None or not share.rows else fine_percent(share.value)


def _with_interval(share: Share | None) -> str:
    if share is None or not share.rows:
        return "–"
    low, high = share.interval
    return f"{percent(share.value)} ({_bounds(low, high)})"


def _bounds(low: float, high: float) -> str:
    return f"{100 * low:.0f}–{100 * high:.0f}"


def rules_in_words(numbers: Iterable[int]) -> str:
    listed = [str(number) for number in numbers]
    return f"rule{'s' * (len(listed) != 1)} {folded(listed)}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


# --- for programs ---------------------------------------------------------------------------------


def to_json(found: CheckUp) -> str:
    """For programs: see the schema `check`."""
    return answer("check", {
        "source": found.source,
        "rulebook": found.book.source,
        "rows": found.n_rows,
        "outliers": found.n_outliers,
        "label": found.label or None,
        "decayed": found.has_decayed,
        "explained": numbers_of(found.explained),
        "explained_then": numbers_of(found.explained_then),
        "explains_less": found.explains_less,
        "unseen": dict(found.unseen),
        "expired": [found.standings[number - 1].record.id for number in found.expired],
        "periods": list(found.periods) if len(found.periods) > 1 else [],
        "rules": [
            {
                "id": s.record.id,
                "number": s.number,
                "status": s.record.status,
                "words": str(s.rule),
                "state": s.state,
                "alarm": s.is_alarm,
                "since": s.since or None,
                "missing": list(s.missing),
                "then": _figures(s.then),
                "now": _figures(s.now),
                "periods": [_figures(each) for each in s.periods] if len(s.periods) > 1 else [],
            }
            for s in found.standings
        ],
        "notes": list(found.notes),
    })  # fmt: skip


def _figures(figures: Figures) -> dict[str, object]:
    return {
        "right": numbers_of(figures.right),
        "covers": numbers_of(figures.covers),
        "share": numbers_of(figures.share),
    }


def numbers_of(share: Share | None) -> dict[str, object] | None:
    if share is None:
        return None
    low, high = share.interval
    return {"hits": share.hits, "of": share.rows, "share": share.value, "from": low, "to": high}


def to_junit(found: CheckUp) -> str:
    """As test results: a rule that has decayed is a failure, one of which nothing can be said is
    skipped."""
    suite = ElementTree.Element("testsuite", name=_xml(f"stair check {found.source}"))
    failures = skipped = 0
    for standing in found.standings:
        name = f"rule {standing.number}: {standing.rule.in_words()}"
        case = ElementTree.SubElement(
            suite, "testcase", classname="stair.check", name=_xml(name), time="0"
        )
        if standing.is_alarm:
            failures += 1
            failure = ElementTree.SubElement(case, "failure", type=standing.state)
            failure.set("message", _xml(change(standing)))
        elif standing.state in ("too few rows", "not known"):
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=standing.state)
    n_cases = len(found.standings)
    if found.explained is not None:
        n_cases += 1
        case = ElementTree.SubElement(
            suite, "testcase", classname="stair.check", name="all rules together", time="0"
        )
        if found.explains_less:
            failures += 1
            failure = ElementTree.SubElement(case, "failure", type="explains less")
            failure.set("message", _xml(_explained(found)))
    suite.set("tests", str(n_cases))
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    ElementTree.indent(suite, " ")
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
