"""The summary as HTML: one self-contained page, or a fragment for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from stair.export.text import percent
from stair.local import LocalRuleSet

if TYPE_CHECKING:
    from stair.summary import Summary


def to_html(summary: Summary) -> str:
    """A whole page that needs nothing from anywhere else."""
    return _environment().get_template("page.html").render(_content(summary))


def to_fragment(summary: Summary) -> str:
    """The table alone, as a notebook shows it."""
    return _environment().get_template("rules.html").render(_content(summary))


def _content(summary: Summary) -> dict[str, Any]:
    """What the templates need, beside the summary: the partitions where there are any."""
    rules = summary.rules
    if not isinstance(rules, LocalRuleSet):
        return {"summary": summary, "partitions": (), "partition_of": ()}
    numbers = [k for k, (a, b) in enumerate(rules.spans(), start=1) for _ in range(a, b)]
    return {"summary": summary, "partitions": rules.partitions, "partition_of": numbers}


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
