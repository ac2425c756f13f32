"""`stair compare`: what the command takes. Everything heavy is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stair import gate
from stair.flags import ColumnFlags, KindFlags, TableFlags, in_groups
from stair.operation.command import ALARM, Quiet

_OUTPUT = "Output"


@in_groups
def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="A [B] [FILE]",
            help="Two tables; or two rulebooks and a table; or one table with two --label.",
        ),
    ],
    columns: ColumnFlags,
    kind: KindFlags,
    database: TableFlags,
    label: Annotated[
        list[str] | None, typer.Option(help="A column with a verdict; give two of them.")
    ] = None,
    positive: Annotated[
        list[str] | None, typer.Option(help="The label that means outlier; may be repeated.")
    ] = None,
    max_rule_length: Annotated[int, typer.Option(help="The most attributes of one rule.")] = 3,
    seed: Annotated[int, typer.Option(help="Which rows are kept aside.")] = 0,
    json: Annotated[
        Path | None,
        typer.Option(help="Write it as JSON; - is standard output.", rich_help_panel=_OUTPUT),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """What differs between two tables, two verdicts or two rulebooks. Exit code 1: something does.

    Differences are found on one half of the rows and have to hold on the other.
    """
    from stair.errors import StairError

    if len(files) > 3:
        raise StairError(f"got {len(files)} files; two are compared, and rulebooks on a third")
    gate.check_files(list(files), [(json, "json")])
    from stair.data import atomic_write
    from stair.data.source import Source
    from stair.operation.compare import compare as compare_sides
    from stair.operation.compare_words import to_json, to_text
    from stair.progress import ProgressLine, telling

    def given(path: Path) -> object:
        read = gate.to_read(path)
        if path.suffix.lower() == ".json":  # a rulebook
            return str(read)
        return Source(read, database.table, database.query, None, columns.time_parts,
                      columns.time_zone)  # fmt: skip

    sides = [*map(given, files), None, None][:3]
    with ProgressLine(quiet=quiet) as progress, telling(progress):
        found = compare_sides(
            *sides, labels=label or None, positive=positive or None,
            include=columns.include or None, exclude=columns.exclude or (), kinds=kind.kinds,
            max_rule_length=max_rule_length, random_state=seed,
        )  # fmt: skip
    if json is not None:
        atomic_write(gate.to_write(json, "json"), to_json(found))
    if not quiet:
        gate.say(to_text(found, gate.width()))
    if found.differs:
        raise typer.Exit(ALARM)
