"""The command `stair`. Everything heavy is imported when a command needs it.

Exit codes: 0 done, 1 the floor was not reached (the rules are still written), 2 bad input.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.core

from stair import gate
from stair.checkout import reproduce
from stair.flags import (
    ColumnFlags,
    EngineFlags,
    KindFlags,
    MeasureFlags,
    MoreMethodFlags,
    TableFlags,
    VerdictFlags,
    WishFlags,
    in_groups,
)
from stair.operation.command import check
from stair.operation.compare_command import compare
from stair.operation.except_command import except_
from stair.operation.update_command import mark, update
from stair.review.command import review

if TYPE_CHECKING:
    from stair.export import Rulebook
    from stair.summary import Summary


class _Gated(typer.core.TyperGroup):
    """All commands, behind the gate."""

    def main(self, *given: Any, **options: Any) -> NoReturn:
        ungated = partial(super().main, *given, **{**options, "standalone_mode": False})
        sys.exit(gate.run(ungated))


app = typer.Typer(
    name="stair",
    cls=_Gated,
    help="Short rules that say which rows an outlier detector flags, and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

FLOOR_NOT_REACHED = 1

File = Annotated[
    Path,
    typer.Argument(
        help="CSV, Parquet, JSON lines, Excel, DuckDB or SQLite; a folder or a pattern; - is CSV "
        "from standard input."
    ),
]
Rules = Annotated[
    Path, typer.Argument(help="Rules saved with summarize --json; - is standard input.")
]
TableName = Annotated[str | None, typer.Option("--table", help="A table of a database file.")]
Query = Annotated[str | None, typer.Option(help="A query on a database file.")]


def main() -> None:
    """What the installed command runs."""
    app()


def _version(wanted: bool) -> None:
    if wanted:
        import stair

        gate.say(f"stair {stair.__version__}")
        raise typer.Exit


@app.callback()
def _stair(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    del version


@app.command()
@in_groups
def summarize(
    file: File,
    said: VerdictFlags,
    measured: MeasureFlags,
    learning: MoreMethodFlags,
    wished: WishFlags,
    columns: ColumnFlags,
    kind: KindFlags,
    database: TableFlags,
    where: EngineFlags,
    validate: Annotated[
        int | None,
        typer.Option(help="Folds to check the rules on, thoroughly; a quick check by default."),
    ] = None,
    no_validate: Annotated[
        bool, typer.Option("--no-validate", help="Leave out the check on rows kept aside.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option(
            help="Write the rules as JSON; - is standard output.", rich_help_panel="Output"
        ),
    ] = None,
    sql: Annotated[
        Path | None,
        typer.Option(
            help="Write the rules as SQL; - is standard output.", rich_help_panel="Output"
        ),
    ] = None,
    dialect: Annotated[
        str, typer.Option(help="duckdb, postgres, sqlite, …", rich_help_panel="Output")
    ] = "duckdb",
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write a report as HTML; - is standard output.", rich_help_panel="Output"
        ),
    ] = None,
    examples: Annotated[
        int,
        typer.Option(
            help="Rows of the data for each rule of the report.", rich_help_panel="Output"
        ),
    ] = 0,
    every: Annotated[
        bool, typer.Option("--all", help="Show every rule.", rich_help_panel="Output")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel="Output"),
    ] = False,
) -> None:
    """Rules for a table and the verdict of an outlier detector."""
    gate.check_files([file, wished.columns], [(json, "json"), (sql, "sql"), (html, "html")])
    from stair.data.source import Source
    from stair.engines.large import engine_of
    from stair.errors import StairError
    from stair.export.sql import check_dialect
    from stair.learn.distill.clock import SHORTENING
    from stair.learn.methods import method_of
    from stair.learn.wishes_file import column_wishes
    from stair.progress import ProgressLine, telling
    from stair.summary import summarize as learn
    from stair.verdict.labels import AllBut, positive_of

    check_dialect(dialect)
    if examples and html is None:
        raise StairError("--examples are rows in the report; name it with --html report.html")
    if examples < 0:
        raise StairError(f"--examples {examples}; expected 0 or more")
    if file == gate.DASH and (where.engine == "dask" or where.work is not None):
        raise StairError("--engine dask and --work are for files that stay; name one instead of -")
    if no_validate and validate:
        raise StairError(f"--no-validate and --validate {validate} contradict each other")
    about = column_wishes(wished.of_columns, wished.columns and gate.to_read(wished.columns))
    method = method_of(learning.method, **learning.settings, **wished.settings, **about)
    both = set(columns.include or ()) & set(wished.never or ())
    if both:
        raise StairError(f"--include {min(both)} and --never {min(both)} contradict each other")
    engine = engine_of(where.engine, **where.settings) or "memory"
    path = gate.to_read(file)
    outputs = [path for path in (json, sql, html) if path is not None]
    stages = ["reading", "looking", "learning", "checking", "counting", "writing"]
    skipped = {"checking"} if no_validate else set()
    skipped |= set() if outputs else {"writing"}
    is_small = engine == "memory"  # else passes are counted
    progress = ProgressLine(
        quiet=quiet,
        keeps=SHORTENING,
        stages=[stage for stage in stages if stage not in skipped] if is_small else (),
    )
    is_apart = measured.is_apart(said.negative)
    positive = positive_of(said.positive or None, said.negative)
    with progress, gate.keeping(progress.keep), telling(progress):
        summary = learn(
            Source(path, database.table, database.query, None, columns.time_parts,
                   columns.time_zone),
            said.label,
            said.score,
            said.contamination,
            said.detector,
            positive=AllBut() if is_apart and positive is None else positive,
            method=method,
            include=columns.include or None,
            exclude=columns.exclude or (),
            kinds=kind.kinds,
            engine=engine,
            validate=0 if no_validate else validate,
            weights=said.weights,
        )  # fmt: skip
        if outputs:
            progress(f"writing {', '.join(path.name for path in outputs)}")
        if json is not None:
            summary.to_json(gate.to_write(json, "json"))
        if sql is not None:
            summary.to_sql(_table_of(file), gate.to_write(sql, "sql"), dialect)
        if html is not None:
            summary.to_html(gate.to_write(html, "html"), examples)
    if not quiet:
        _show(summary, every)
        _tell(json, sql, html)
    if not summary.floor_reached:
        from stair.export.text import floor_message

        gate.say(f"stair: {floor_message(summary)}", is_error=True)
        raise typer.Exit(FLOOR_NOT_REACHED)


@app.command()
def apply(
    rules: Rules,
    file: File,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the rows, as its ending says; - is CSV to standard output, as "
            "it is for rows from there.",
        ),
    ] = None,
    reasons: Annotated[
        bool,
        typer.Option("--reasons", help="Write why each row is flagged, in words and as JSON, too."),
    ] = False,
    label: Annotated[
        str | None, typer.Option(help="A column with the truth, to see whether the rules hold.")
    ] = None,
    positive: Annotated[
        list[str] | None, typer.Option(help="The label that means outlier; may be repeated.")
    ] = None,
    negative: Annotated[str | None, typer.Option(help="The label that means normal.")] = None,
    table: TableName = None,
    query: Query = None,
    json: Annotated[
        Path | None,
        typer.Option(help="Write what rules come to as JSON; - is standard output."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """The label and the matching rule of each row of new data, and how coverage moved."""
    if output is None and file == gate.DASH and json != gate.DASH:
        output = gate.DASH  # as filters do
    gate.check_files([rules, file], [(output, "table"), (json, "json")])
    from stair.apply import Place, Truth, agreement_table, apply_to, coverage_table, to_json
    from stair.data import atomic_write, is_many
    from stair.errors import StairError
    from stair.progress import ProgressLine

    if label is None and (positive or negative):
        raise StairError("--positive and --negative are about labels; name them with --label")
    if reasons and output is None:
        raise StairError("--reasons are written with the rows; name a file with --output")
    if output is not None and is_many(file):
        raise StairError("--output is for the rows of one file; apply the rules to one at a time")
    truth = None if label is None else Truth(label, positive or None, negative)
    with ProgressLine(quiet=quiet, stages=("reading", "applying")) as progress:
        saved = _saved(rules)
        given = Place(gate.to_read(file), table, query)
        target = None if output is None else gate.to_write(output, "table")
        applied = apply_to(saved, given, target, truth=truth, reasons=reasons, say=progress)
    name = str(file) if is_many(file) else given.path.name
    if json is not None:
        atomic_write(gate.to_write(json, "json"), to_json(saved, applied, name, label))
    if not quiet:
        gate.say(coverage_table(saved, applied, name, gate.width()))
        if applied.counted is not None and label is not None:
            gate.say(agreement_table(saved, applied.counted, label, gate.width()))
        for note in (*saved.notes, *applied.notes):
            gate.say(f" Note: {note}.")
        _tell(output, json)


@app.command()
def export(
    rules: Annotated[
        Path | None,
        typer.Argument(
            help="Rules saved with summarize --json; - is standard input. With --schema the name "
            "of a command."
        ),
    ] = None,
    to: Annotated[
        str,
        typer.Option(
            help="text, markdown, json, sql, pandas, polars, python, onnx, pmml, dbt (a folder), "
            "great-expectations, soda or sigma."
        ),
    ] = "text",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write it, - for standard output; else it is printed. A folder for dbt.",
        ),
    ] = None,
    dialect: Annotated[
        str,
        typer.Option(
            help="duckdb, postgres, sqlite, spark, bigquery, snowflake, sqlserver or mysql; pandas "
            "for great-expectations.",
            rich_help_panel="SQL",
        ),
    ] = "duckdb",
    table: Annotated[
        str,
        typer.Option(
            help="The table to label; for sigma the category of the log source.",
            rich_help_panel="SQL",
        ),
    ] = "data",
    form: Annotated[
        str, typer.Option(help="query, view, case or conditions.", rich_help_panel="SQL")
    ] = "query",
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", help="Print the JSON Schema of a rules file, or of a command's --json."
        ),
    ] = False,
) -> None:
    """Saved rules as something else: SQL, code, a model, sentences, tests for dbt."""
    from stair.data import atomic_write
    from stair.errors import StairError
    from stair.export import answers, kinds

    kinds.check_kind(to, form)
    is_folder = to in kinds.FOLDERS and not schema
    files = [] if is_folder else [(output, "json" if schema else to)]
    gate.check_files([None if schema else rules], files)
    if is_folder:
        gate.check_folder(output)
    if schema:
        content: str | bytes = answers.schema("rules" if rules is None else str(rules))
    elif rules is None:
        raise StairError("which rules? Give a file saved by summarize --json, or --schema")
    else:
        if to == "onnx" and output is None:
            raise StairError("ONNX is not text; say where to write it with --output FILE")
        saved = _saved(rules)
        if is_folder and output is not None:
            saved.to_dbt(output, table, dialect)
            return
        content = kinds.export(saved, to, table, dialect, form)
    if output is not None:
        atomic_write(gate.to_write(output, to), content)
    elif isinstance(content, str):
        gate.hand_over(content)


@app.command()
def explain(
    rules: Rules,
    file: File,
    row: Annotated[
        list[int] | None,
        typer.Option(
            help="A row, counted from 1 without the header; may be repeated. All by default."
        ),
    ] = None,
    rows: Annotated[
        Path | None, typer.Option(help="A file with numbers of rows, one a line.")
    ] = None,
    uncovered: Annotated[
        bool,
        typer.Option("--uncovered", help="The outliers, by --label, that no rule covers."),
    ] = False,
    label: Annotated[
        str | None,
        typer.Option(
            help="The column that says which rows are outliers: those that no rule covers are "
            "explained by themselves."
        ),
    ] = None,
    positive: Annotated[
        list[str] | None, typer.Option(help="The label that means outlier; may be repeated.")
    ] = None,
    negative: Annotated[str | None, typer.Option(help="The label that means normal.")] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write it as JSON; - is standard output.")
    ] = None,
    table: TableName = None,
    query: Query = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Why rows are, or are not, outliers by the rules."""
    gate.check_files([rules, file, rows], [(json, "json")])
    from stair.apply import Place, Truth, as_json, explain_rows, row_numbers
    from stair.data import atomic_write
    from stair.errors import StairError
    from stair.progress import ProgressLine

    if label is None and (positive or negative or uncovered):
        raise StairError("--positive, --negative and --uncovered are about labels; name them with "
                         "--label")  # fmt: skip
    if rows is not None and row:
        raise StairError("--row and --rows both say which rows; give one of them")
    truth = None if label is None else Truth(label, positive or None, negative)
    asked = row or (None if rows is None else row_numbers(gate.to_read(rows)))
    with ProgressLine(quiet=quiet, stages=("reading", "explaining")) as progress:
        saved = _saved(rules)
        given = Place(gate.to_read(file), table, query)
        found = explain_rows(saved, given, asked, truth=truth, uncovered=uncovered, say=progress)
        if json is not None or truth is not None:
            found = iter(list(found))
        if json is None:
            is_nobody = True
            for each in found:
                gate.say(str(each))
                is_nobody = False
            if is_nobody and uncovered and not quiet:
                gate.say("Every outlier by its label is covered by a rule.")
            return
        listed = list(found)
        atomic_write(gate.to_write(json, "json"), as_json(listed, given.path.name))
    if not quiet:
        for each in listed:
            gate.say(str(each))
        _tell(json)


@app.command()
def demo(
    output: Annotated[
        Path | None, typer.Option(help="A folder for the data, the rules and the report.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="Write the rules as JSON; - is standard output.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Rules for 5,000 card payments with four planted kinds of fraud."""
    from stair.data import atomic_write, write_table
    from stair.data.source import Source
    from stair.demo import KINDS_OF_FRAUD, payments
    from stair.learn.methods import method_of
    from stair.progress import ProgressLine, telling
    from stair.summary import summarize as learn

    gate.check_folder(output)
    gate.check_files([], [(json, "json")])
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
    data = payments()
    stages = ("looking", "learning", "checking", "counting")
    method = method_of("distilled", min_score=0.9, max_rule_length=3)
    with ProgressLine(quiet=quiet, stages=stages) as progress, telling(progress):
        summary = learn(Source(data, name="payments"), labels="flagged", method=method)
    if output is not None:
        write_table(output / "payments.csv", data)
        summary.to_json(output / "rules.json")
        summary.to_sql("payments", output / "rules.sql")
        summary.to_html(output / "report.html")
        atomic_write(output / "rules.txt", summary.to_text() + "\n")
    if json is not None:
        summary.to_json(gate.to_write(json, "json"))
    if not quiet:
        planted = "; ".join(KINDS_OF_FRAUD)
        gate.say(f"Card payments, made up. Planted: {planted}.\n")
        _show(summary, every=False)
        if output is not None:
            files = "payments.csv, rules.json, rules.sql, rules.txt and report.html"
            place = "this folder" if output == Path() else output
            table = quote(str(output / "payments.csv"))
            gate.say(f"\n Wrote {files} to {place}.")
            gate.say(f" Next: {_called()} summarize {table} --label flagged")
            gate.say(f"   or: {_called()} review {table} --label flagged")


@app.command()
def doctor(
    json: Annotated[
        Path | None, typer.Option(help="Write it as JSON; - is standard output.")
    ] = None,
) -> None:
    """What is installed and what is seen of the machine: paste it into a bug report."""
    from stair.data import atomic_write
    from stair.doctor import facts, report
    from stair.export.answers import answer

    gate.check_files([], [(json, "json")])
    found = facts()
    if json is not None:
        atomic_write(gate.to_write(json, "json"), answer("doctor", found))
    else:
        gate.say("\n".join(report(found)))


def _called() -> str:
    """How this command is called from here: no shell looks for it where `make demo` left it."""
    program = Path(sys.argv[0])
    return str(program) if program.stem == "stair" and shutil.which("stair") is None else "stair"


# --- what the commands share ------------------------------------------------------------------


def _show(summary: Summary, every: bool) -> None:
    colour = gate.speech().isatty() and not os.environ.get("NO_COLOR")
    gate.say(summary.to_text(gate.width(), every_rule=every, colour=colour), is_shown_so=True)


def _tell(*written: Path | None) -> None:
    """Which files were written."""
    names = [str(path) for path in written if path not in (None, gate.DASH)]
    if names:
        gate.say(f" Wrote {', '.join(names)}.")


def _table_of(file: Path) -> str:
    """What to call the data in SQL: as the file, unless that is a pattern or has no name."""
    name = file.name.split(".")[0]
    return "data" if not name or file == gate.DASH or set("*?[") & set(name) else name


def _saved(path: Path) -> Rulebook:
    from stair.export import load

    return load(gate.to_read(path))


app.command(name="except")(except_)
app.command()(check)
app.command()(update)
app.command()(mark)
app.command()(compare)
app.command()(review)
app.command()(reproduce)

if __name__ == "__main__":
    main()
