"""`stair except`: exceptions to saved rules from rows that a person called false alarms."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stair import gate
from stair.flags import TableFlags, in_groups

if TYPE_CHECKING:
    from stair.data import Frame
    from stair.operation.exceptions import Rows

SHARE_NOT_REACHED = 1


@in_groups
def except_(
    rules: Annotated[
        Path, typer.Argument(help="Rules saved with summarize --json; - is standard input.")
    ],
    file: Annotated[
        Path,
        typer.Argument(
            help="The rows: CSV, Parquet, JSON lines, Excel, DuckDB or SQLite; - is CSV from "
            "standard input."
        ),
    ],
    database: TableFlags,
    false_alarm: Annotated[
        str | None,
        typer.Option(
            help="The column that says which rows are false alarms, or COLUMN=VALUE.",
            metavar="COLUMN[=VALUE]",
        ),
    ] = None,
    row: Annotated[
        list[int] | None,
        typer.Option(help="A row that is a false alarm, counted from 1; may be repeated."),
    ] = None,
    outlier: Annotated[
        str | None,
        typer.Option(
            help="The column that says which rows stay outliers, or COLUMN=VALUE; by default all "
            "that the rules call so and that are no false alarms.",
            metavar="COLUMN[=VALUE]",
        ),
    ] = None,
    min_share: Annotated[
        float, typer.Option(help="The share of the false alarms that exceptions must cover.")
    ] = 0.9,
    max_rule_length: Annotated[
        int, typer.Option(help="The most attributes of one exception.")
    ] = 10,
    min_rows: Annotated[
        int | None,
        typer.Option(
            help="The fewest false alarms an exception may cover; by default 5, or fewer where the "
            "share needs it."
        ),
    ] = None,
    effort: Annotated[str, typer.Option(help="How long to look: normal or fast.")] = "normal",
    seed: Annotated[int, typer.Option(help="Seed of all that draws at random.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o",
            help="Where to write the rules with their exceptions; - is standard output.",
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="Write what was found as JSON; - is standard output."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:  # fmt: skip
    """The shortest exceptions to saved rules that cover false alarms and no other outlier.

    Without --output it shows what they would be; the rules may be written where they were. Exit
    code 1 where they do not cover enough.
    """
    is_in_place = output is not None and gate.is_same(rules, output)
    gate.check_files([None if is_in_place else rules, file], [(output, "json"), (json, "json")])
    from stair.data import atomic_write, read
    from stair.data.lock import held
    from stair.errors import StairError
    from stair.export import load
    from stair.export.text import fit
    from stair.learn.exceptions import Aim, advice
    from stair.operation.exceptions import (
        exceptions_for,
        in_words,
        rows_numbered,
        to_json,
        with_found,
    )
    from stair.progress import ProgressLine

    if false_alarm is None and not row:
        raise StairError("which rows are false alarms? Give --false-alarm COLUMN, or --row NUMBER")
    wanted = Aim(min_share, max_rule_length, min_rows, effort, None, seed)  # type: ignore[arg-type]
    wanted.check()
    source = gate.to_read(file)
    stages = ("reading", "looking", "writing")[: 2 if output is None else 3]
    with (
        held(rules) if is_in_place else nullcontext(),
        ProgressLine(quiet=quiet, stages=stages) as progress,
    ):
        saved = load(gate.to_read(rules))
        progress(f"reading {source.name}")
        texts = saved.rules.schema.texts()
        frame = read(
            source, table=database.table, query=database.query, texts=texts, say=progress
        )  # fmt: skip
        wrong = rows_numbered(row or (), frame.n_rows, 1)
        if false_alarm is not None:
            wrong |= _rows_of(frame, false_alarm)
        stays = None if outlier is None else _rows_of(frame, outlier)
        found = exceptions_for(saved, frame, wrong, stays, wanted, progress)
        if output is not None:
            with_found(saved, found, frame.source).to_json(gate.to_write(output, "json"))
        if json is not None:
            told = to_json(saved, found, wanted, frame.source)
            atomic_write(gate.to_write(json, "json"), told)
    if not quiet:
        numbered = enumerate(found.new, start=len(saved.rules.exceptions) + 1)
        lines = [(f"{k}  {rule.in_words()}", f"{rule.rows:,.0f}") for k, rule in numbered]
        if lines:
            name = saved.rules.label_name(saved.rules.default)
            gate.say("\n".join(fit((f"{name} all the same where …", "false alarms"), lines, 80)))
            gate.say("")
        gate.say(f" {in_words(found, wanted)}.")
        if output not in (None, gate.DASH):
            gate.say(f" Wrote {output}.")
    if not found.is_enough:
        gate.say(f"stair: {StairError(advice(found))}.", is_error=True)
        raise typer.Exit(SHARE_NOT_REACHED)


def _rows_of(frame: Frame, given: str) -> Rows:
    """The rows that COLUMN or COLUMN=VALUE speaks of; a column may have = in its name."""
    from stair.errors import no_such_column
    from stair.operation.exceptions import rows_where

    if given in frame.columns:
        return rows_where(frame, given)
    column, _, value = given.partition("=")
    if column not in frame.columns:
        raise no_such_column(column, frame.columns, frame.source or "the data")
    return rows_where(frame, column, value)
