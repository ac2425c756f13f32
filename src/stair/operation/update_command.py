"""`stair update` and `stair mark`: the commands that change a rulebook.
Everything heavy is imported when one runs.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from stair import gate
from stair.flags import ColumnFlags, KindFlags, TableFlags, in_groups
from stair.operation.command import Book, Day, Negative, Positive, Quiet, day_of

FLOOR_NOT_REACHED = 1
_OUTPUT, _LEARNING = "Output", "Learning"


@in_groups
def update(
    rulebook: Book,
    file: Annotated[Path, typer.Argument(help="The new rows; - is CSV from standard input.")],
    columns: ColumnFlags,
    kind: KindFlags,
    database: TableFlags,
    label: Annotated[
        str | None, typer.Option(help="The column that says which rows are outliers.")
    ] = None,
    positive: Positive = None,
    negative: Negative = None,
    on: Day = None,
    min_score: Annotated[
        float | None,
        typer.Option(help="The floor.", rich_help_panel=_LEARNING, show_default="the file's"),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            help="How long to look: normal or fast.", rich_help_panel=_LEARNING,
            show_default="the file's",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of all that draws at random.", rich_help_panel=_LEARNING,
            show_default="the file's",
        ),
    ] = None,
    no_validate: Annotated[
        bool,
        typer.Option(
            "--no-validate", help="Leave out the check on rows kept aside.",
            rich_help_panel=_LEARNING,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would change, and write nothing.", rich_help_panel=_OUTPUT
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", rich_help_panel=_OUTPUT,
            help="Another file than RULEBOOK for the rules; - is standard output.",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="Write what was done as JSON; - is standard output.",
                     rich_help_panel=_OUTPUT),
    ] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """New rules beside the accepted ones, which stay as they are.

    Rules that have decayed are named, and never retired without you. Exit code 1: the floor is not
    reached.
    """
    is_in_place = output is None and not dry_run
    gate.check_files(
        [None if is_in_place else rulebook, file],
        [(rulebook if is_in_place and rulebook != gate.DASH else output, "json"), (json, "json")],
    )
    from dataclasses import replace

    from stair.data import atomic_write
    from stair.data.lock import held
    from stair.data.source import Source
    from stair.errors import StairError
    from stair.export import load
    from stair.operation.update import method_of_book
    from stair.operation.update import update as update_rules
    from stair.operation.update_words import to_json, to_text
    from stair.progress import ProgressLine, telling
    from stair.verdict.labels import positive_of

    if label is None:
        raise StairError("which rows are outliers? Name the column that says so with --label")
    if dry_run and output is not None:
        raise StairError("--dry-run writes nothing; leave --output out")
    if rulebook == gate.DASH and output is None and not dry_run:
        raise StairError("- is standard input; say where the rules go with --output, or --dry-run")
    settings = {"effort": effort, "random_state": seed}
    settings = {name: value for name, value in settings.items() if value is not None}
    source = Source(gate.to_read(file), database.table, database.query, None, columns.time_parts,
                    columns.time_zone)  # fmt: skip
    stages = ("reading", "looking", "learning", "checking", "counting")
    with (
        held(rulebook) if is_in_place else nullcontext(),
        ProgressLine(quiet=quiet, stages=stages) as progress,
        telling(progress),
    ):
        book = load(gate.to_read(rulebook))
        found = update_rules(
            book, source, label, positive=positive_of(positive, negative), min_score=min_score,
            method=method_of_book(book, **settings) if settings else None,
            include=columns.include or None, exclude=columns.exclude or (), kinds=kind.kinds,
            validate=0 if no_validate else None, on=day_of(on),
        )  # fmt: skip
        if output is not None:
            found.book.to_json(gate.to_write(output, "json"))
        elif is_in_place and found.has_changed:
            found.book.to_json(rulebook)
        found = replace(found, is_written=output is not None or (is_in_place and found.has_changed))
    if json is not None:
        atomic_write(gate.to_write(json, "json"), to_json(found))
    if not quiet:
        gate.say(to_text(found, gate.width()))
        if found.is_written and output != gate.DASH:
            gate.say(f" Wrote {output or rulebook}.")
        elif dry_run:
            gate.say(" Nothing was written.")
        elif not found.has_changed:
            gate.say(f" {rulebook} stays as it is.")
        if found.added and found.is_written and output != gate.DASH:
            gate.say(f" Next: stair mark {output or rulebook} ID --status accepted")
    if not found.floor_reached:
        from stair.export.text import floor_message

        gate.say(f"stair: {floor_message(found.summary)}", is_error=True)
        raise typer.Exit(FLOOR_NOT_REACHED)


def mark(
    rulebook: Annotated[
        Path, typer.Argument(metavar="RULEBOOK", help="Rules saved as JSON, which are changed.")
    ],
    rule: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RULE]...", help="Rules, by their ids or numbers; all where none is named."
        ),
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="candidate, accepted or retired.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Whose rule it is.")] = None,
    note: Annotated[str | None, typer.Option(help="What is to be known of it.")] = None,
    since: Annotated[
        str | None, typer.Option(help="The day since which it is there, as 2026-05-02.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="The last day on which it is meant, as 2026-05-02.")
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="Write all rules of the file as JSON; - is standard output.",
                     rich_help_panel=_OUTPUT),
    ] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Accept or retire rules in a file, or say whose they are. Nothing else in it changes."""
    from stair.data import atomic_write
    from stair.errors import StairError
    from stair.operation.mark import mark as mark_rules
    from stair.operation.mark import to_json

    if rulebook == gate.DASH:
        raise StairError("- is standard input, which cannot be changed; name a file")
    gate.check_files([], [(rulebook, "json"), (json, "json")])
    book = mark_rules(rulebook, rule or [], status=status, owner=owner, note=note, since=since,
                      until=until)  # fmt: skip
    if json is not None:
        atomic_write(gate.to_write(json, "json"), to_json(book))
    if not quiet:
        for record, said in zip(book.records, book.kept.rules, strict=True):
            words = "   ".join(
                filter(
                    None,
                    [
                        record.id,
                        record.status,
                        record.owner,
                        f"until {record.until}" if record.until else "",
                    ],
                )
            )
            gate.say(f" {words}   {said.in_words()}")
