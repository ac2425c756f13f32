"""A check of rules as a page that needs nothing from anywhere else, with how each rule went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stair.operation import courses
from stair.operation.courses import Course, course
from stair.operation.words import conclusion, details
from stair.report import clean, environment, hash_of, source
from stair.rules.figures import fine_percent, percent

if TYPE_CHECKING:
    from stair.operation.check import CheckUp
    from stair.operation.standing import Standing
    from stair.operation.statistics import Share


@dataclass(frozen=True, slots=True)
class Shown:
    """A rule as the page shows it."""

    standing: Standing
    state: str
    figures: tuple[tuple[str, str], ...]
    right: Course | None
    covers: Course | None


def to_html(found: CheckUp) -> str:
    """The page: what has changed, and for each rule its figures and their course."""
    from markupsafe import Markup

    rules = [_shown(found, each) for each in found.standings]
    pages = environment("stair.operation")
    loader = pages.loader
    assert loader is not None
    own = loader.get_source(pages, "check.css")[0].replace("\r\n", "\n")
    style = f"{source('page.css')}{own}"
    policy = (
        f"default-src 'none'; style-src '{hash_of(style)}'; base-uri 'none'; form-action 'none'"
    )
    return clean(
        pages.get_template("check.html").render(
            found=found,
            rules=rules,
            said=[*details(found), *(f"Note: {note}." for note in found.notes)],
            headline=headline(found),
            has_courses=any(each.covers for each in rules),
            courses=courses,
            style=Markup(style),  # our own files, no data in them
            policy=policy,
        )
    )


def headline(found: CheckUp) -> str:
    """The page in one sentence."""
    said = conclusion(found).removesuffix(".")
    return said or "No rule has decayed, but there are outliers of another kind"


def _shown(found: CheckUp, standing: Standing) -> Shown:
    then, now = standing.then, standing.now
    figures = []
    if now.right is not None:
        figures += [("right then", _of(then.right)), ("right now", _of(now.right, bounds=True))]
    figures += [("covers then", _of(then.covers)), ("covers now", _of(now.covers))]
    names = found.periods
    right = covers = None
    if len(standing.periods) > 1:
        if now.right is not None:
            right = course([each.right for each in standing.periods], names, then.right,
                           standing.since, "right", whole=True)  # fmt: skip
        covers = course([each.covers for each in standing.periods], names, then.covers,
                        standing.since, "covers", whole=False)  # fmt: skip
    return Shown(standing, standing.state, tuple(figures), right, covers)


def _of(share: Share | None, *, bounds: bool = False) -> str:
    if share is None or not share.rows:
        return "–"
    low, high = share.interval
    between = f" ({percent(low)} to {percent(high)})" if bounds else ""
    return f"{fine_percent(share.value)}{between} of {share.rows:,}"
