"""The summary as HTML: one self-contained page, or a fragment for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined

from stair.export.text import percent

if TYPE_CHECKING:
    from stair.summary import Summary


def to_html(summary: Summary) -> str:
    """A whole page that needs nothing from anywhere else."""
    return _environment().get_template("page.html").render(summary=summary)


def to_fragment(summary: Summary) -> str:
    """The table alone, as a notebook shows it."""
    return _environment().get_template("rules.html").render(summary=summary)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("stair.report"),
        autoescape=True,  # names and values come from the data
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    environment.filters["number"] = lambda value: f"{value:,}"
    return environment
