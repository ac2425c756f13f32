"""`stair check`: what the command takes, and what other commands on rulebooks take as well.
Everything heavy is imported when it runs.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Annotated

import typer

from stair import gate
from stair.flags import EngineFlags, TableFlags, in_groups

ALARM = 1
"""The exit code of `check` where something has decayed, of `compare` where something differs."""

_OUTPUT, _TIME = "Output", "Over time"

Book = Annotated[
    Path, typer.Argument(metavar="RULEBOOK", help="Rules saved as JSON; - is standard input.")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=_OUTPUT),
]
Day = Annotated[
    str | None,
    typer.Option("--on", help="The day it is, as 2026-05-02.", show_default="today"),
]
Positive = Annotated[
    list[str] | None, typer.Option(help="The label that means outlier; may be repeated.")
]
Negative = Annotated[str | None, typer.Option(help="The label that means normal.")]


def day_of(given: str | None) -> dt.date:
    """The day that somebody names, or today."""
    from stair.errors import StairError

    if given is None:
        return dt.date.today()
    try:
        return dt.date.fromisoformat(given)
    except ValueError:
        raise StairError(f"--on {given}; expected a day as 2026-05-02") from None


@in_groups
def check(
    rulebook: Book,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="The new rows. Of several files each is a period."),
    ],
    database: TableFlags,
    where: EngineFlags,
    label: Annotated[
        str | None, typer.Option(help="The column that says which rows are outliers.")
    ] = None,
    positive: Positive = None,
    negative: Negative = None,
    time: Annotated[
        str | None,
        typer.Option(help="A column of times: each period by itself.", rich_help_panel=_TIME),
    ] = None,
    every: Annotated[
        str, typer.Option(help="day, week, month, quarter or year.", rich_help_panel=_TIME)
    ] = "month",
    on: Day = None,
    json: Annotated[
        Path | None,
        typer.Option(help="Write it as JSON; - is standard output.", rich_help_panel=_OUTPUT),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(help="Write it as Markdown; - is standard output.", rich_help_panel=_OUTPUT),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(help="Write it as JUnit XML; - is standard output.", rich_help_panel=_OUTPUT),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write it as a page, with how each rule went over time; - is standard output.",
            rich_help_panel=_OUTPUT,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """How saved rules do on new data. Exit code 1: a rule has decayed."""
    gate.check_files(
        [rulebook, *files],
        [(json, "json"), (markdown, "markdown"), (junit, "junit"), (html, "html")],
    )
    from typing import cast

    from stair.data import atomic_write
    from stair.data.source import Source
    from stair.engines.large import engine_of
    from stair.export import load
    from stair.operation.check import check as check_rules
    from stair.operation.counting import Every
    from stair.operation.page import to_html
    from stair.operation.words import to_json, to_junit, to_markdown, to_text
    from stair.progress import ProgressLine, telling
    from stair.verdict.labels import positive_of

    engine = engine_of(where.engine, **where.settings) or "memory"
    book = load(gate.to_read(rulebook))
    sources = [Source(gate.to_read(file), database.table, database.query) for file in files]
    with ProgressLine(quiet=quiet) as progress, telling(progress):
        found = check_rules(
            book, sources if len(sources) > 1 else sources[0], label,
            positive=positive_of(positive, negative), time=time, every=cast(Every, every),
            engine=engine, on=day_of(on),
        )  # fmt: skip
    for path, kind, write in (
        (json, "json", to_json), (markdown, "markdown", to_markdown), (junit, "junit", to_junit),
        (html, "html", to_html),
    ):  # fmt: skip
        if path is not None:
            atomic_write(gate.to_write(path, kind), write(found))
    if not quiet:
        gate.say(to_text(found, gate.width()))
        if found.has_decayed and label is not None and len(files) == 1:
            gate.say(f" Next: stair update {rulebook} {files[0]} --label {label}")
    if found.has_decayed:
        raise typer.Exit(ALARM)
