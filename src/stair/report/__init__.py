"""The summary as HTML: one self-contained page, or a fragment for a notebook.

Three steps: counts as values (`data`), words and coordinates (`words`, `draw`), and templates that
escape whatever they are given.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stair.errors import StairError, option
from stair.export.json import Rulebook
from stair.export.text import fine_percent, percent
from stair.report import draw, words
from stair.report.content import Report
from stair.report.data import report_of
from stair.report.fragment import fragment_of
from stair.report.loaded import lines_of

if TYPE_CHECKING:
    from stair.summary import Summary

__all__ = [
    "Report",
    "clean",
    "environment",
    "hash_of",
    "report_of",
    "source",
    "to_fragment",
    "to_html",
]


def to_html(summary: Summary | Rulebook, examples: int = 0) -> str:
    """A whole page that needs nothing from anywhere else; of a file of rules what is in it."""
    if examples < 0:
        raise StairError(
            f"{option('examples', examples)}; expected 0 (no rows of the data) or more"
        )
    if isinstance(summary, Rulebook):
        return _loaded(summary)
    if examples and not summary.has_rows:
        raise StairError(
            f"{option('examples')} shows rows of the data, which are not kept with an engine other "
            "than memory"
        )
    if not summary.has_rows and not summary._tallies:
        return _counted(summary)
    report = report_of(summary, examples)
    style, script = source("page.css"), source("page.js")
    page = environment().get_template("page.html")
    return clean(
        page.render(
            report=report,
            headline=words.headline(report),
            style=Markup(style),  # our own file, no data in it
            script=Markup(script),
            policy=_policy(style, script),
        )
    )


def _counted(summary: Summary) -> str:
    """The page of a summary whose rows were counted elsewhere, and not by column."""
    content = {**fragment_of(summary, most=len(summary.evidence)), "left": ""}
    return _without_script("counted.html", content)


def _loaded(book: Rulebook) -> str:
    """The page of rules that come from a file, where neither rows nor histograms are."""
    return _without_script("loaded.html", {"book": book, "lines": lines_of(book)})


def _without_script(name: str, content: Mapping[str, object]) -> str:
    style = source("counted.css")
    allowed = (
        f"default-src 'none'; style-src '{hash_of(style)}'; base-uri 'none'; form-action 'none'"
    )
    page = environment().get_template(name)
    return clean(page.render(content, style=Markup(style), policy=allowed))


def to_fragment(summary: Summary) -> str:
    """The table alone, as a notebook shows it."""
    # Notebooks align the cells of tables to the right; words read better from the left.
    left = Markup(' style="text-align: left"')
    content = {**fragment_of(summary), "left": left}
    return clean(environment().get_template("fragment.html").render(content))


def _policy(style: str, script: str) -> str:
    """What the page may do: nothing but its own style and its own script, known by their hashes."""
    return (
        f"default-src 'none'; style-src '{hash_of(style)}'; script-src '{hash_of(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def source(name: str) -> str:
    """A file of the templates as it stands in a page."""
    loader = environment().loader
    assert loader is not None
    # Line ends as the browser sees them, or the hash would be of another text.
    text = loader.get_source(environment(), name)[0]
    return "\n" + text.replace("\r\n", "\n")


@cache
def environment(*packages: str) -> Environment:
    """The templates of the report, and of other rooms that show rules as it does."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "stair.report")]),
        autoescape=True,  # names and values come from the data
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["fine"] = fine_percent
    environment.filters["number"] = words.number
    environment.filters["counted"] = words.counted
    environment.filters["trim1"] = draw.trimmed
    environment.globals["words"] = words
    environment.globals["draw"] = draw
    return environment


def clean(text: str) -> str:
    """Without what no file in UTF-8 can hold: halves of characters, and control characters."""
    whole = text.encode("utf-8", "replace").decode("utf-8")
    return whole.translate(_CONTROL)


_CONTROL = {code: "\ufffd" for code in range(32) if chr(code) not in "\t\n\r"}
