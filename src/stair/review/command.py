"""`stair review`: what the command takes. Everything heavy is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stair.gate import DASH, check_files, say, share_or_number

_VERDICT, _RULES, _PAGE = "Verdict", "Rules", "Page"


def review(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RULES.json] [FILE]",
            help="A table, or saved rules and a table. Without: choose on the page.",
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The column with the verdict.", rich_help_panel=_VERDICT)
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="The column with outlier scores.", rich_help_panel=_VERDICT)
    ] = None,
    contamination: Annotated[
        Any,
        typer.Option(
            help="Outliers: a share up to 0.5, or a whole number of rows.",
            metavar="NUMBER",
            parser=share_or_number,
            rich_help_panel=_VERDICT,
        ),
    ] = None,
    detector: Annotated[
        str | None, typer.Option(help="Find outliers: lof, iforest, …", rich_help_panel=_VERDICT)
    ] = None,
    positive: Annotated[
        list[str] | None,
        typer.Option(help="The label that means outlier; may be repeated.",
                     rich_help_panel=_VERDICT),
    ] = None,
    negative: Annotated[
        str | None,
        typer.Option(
            help="The label that means normal; every other is a kind of outlier.",
            rich_help_panel=_VERDICT,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="distilled, stair, refined, local, id3, cart.", rich_help_panel=_RULES),
    ] = "distilled",
    min_score: Annotated[
        float, typer.Option(help="The floor that F1 must exceed.", rich_help_panel=_RULES)
    ] = 0.8,
    max_rule_length: Annotated[
        int, typer.Option(help="The most attributes of one rule.", rich_help_panel=_RULES)
    ] = 10,
    include: Annotated[
        list[str] | None,
        typer.Option(help="Use only this column (repeat).", rich_help_panel=_RULES),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(help="Leave this column out (repeat).", rich_help_panel=_RULES),
    ] = None,
    time_parts: Annotated[
        bool,
        typer.Option(
            "--time-parts/--no-time-parts",
            help="Hour and weekday of times as attributes, or not.", rich_help_panel=_RULES,
        ),
    ] = True,
    time_zone: Annotated[
        str | None,
        typer.Option(
            help="The zone of hours and weekdays, as Europe/Berlin.", show_default="the data's",
            rich_help_panel=_RULES,
        ),
    ] = None,
    time_windows: Annotated[
        bool,
        typer.Option(
            "--time-windows", help="Also times between two others, not only since or until one.",
            rich_help_panel=_RULES,
        ),
    ] = False,
    table: Annotated[
        str | None, typer.Option("--table", help="A table of a database file.")
    ] = None,
    query: Annotated[str | None, typer.Option(help="A query on a database file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all that draws at random.")] = 0,
    db: Annotated[
        Path | None,
        typer.Option(
            help="Where verdicts are kept.", show_default="beside the data", rich_help_panel=_PAGE
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Where the page finds files to choose.", rich_help_panel=_PAGE)
    ] = Path(),
    host: Annotated[
        str, typer.Option(help="The address to listen at.", rich_help_panel=_PAGE)
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port; 0 for any that is free.", rich_help_panel=_PAGE)
    ] = 0,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="STAIR_TOKEN", help="The page's secret.", show_default="a random one",
            rich_help_panel=_PAGE,
        ),
    ] = None,
    max_upload: Annotated[
        int, typer.Option(help="The largest upload, in MB.", rich_help_panel=_PAGE)
    ] = 500,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address alone.", rich_help_panel=_PAGE)
    ] = False,
) -> None:  # fmt: skip
    """Judge rules in place of rows, on a page of this machine."""
    from stair.data.packages import optional
    from stair.errors import StairError

    for name in ("starlette", "uvicorn", "duckdb", "pyarrow"):
        if optional(name) is None:
            raise StairError(f"the review page needs {name}: pip install 'stair[review]'")
    from stair.review.desk import Desk, Wanted
    from stair.review.files import Folder
    from stair.review.serve import serve

    given = files or []
    if len(given) > 2:
        raise StairError(f"{len(given)} files; expected a table, or saved rules and a table")
    if not 1 <= max_upload <= 1_000_000:
        raise StairError(f"--max-upload {max_upload}; expected megabytes, at least 1")
    if token is not None and len(token) < 16:
        raise StairError("the token has fewer than 16 characters; leave it out for a random one")
    if DASH in given:
        raise StairError("a review keeps verdicts beside its table; name a file in place of -")
    for path in given:
        if not path.is_file():
            raise StairError(f"there is no file {path}")
    if len(given) == 1 and given[0].suffix == ".json":
        raise StairError(f"{given[0].name} are rules; give the table after them")
    check_files(given, [(db, "review")])
    desk = Desk(None if given else Folder(folder), db)
    wanted = None
    if given:
        wanted = Wanted(
            given[-1], rules=given[0] if len(given) == 2 else None, label=label, score=score,
            contamination=contamination, detector=detector, positive=positive or None,
            negative=negative, table=table,
            query=query, include=tuple(include or ()), exclude=tuple(exclude or ()),
            time_parts=time_parts, time_zone=time_zone, time_windows=time_windows, seed=seed,
            method=method, min_score=min_score, max_rule_length=max_rule_length,
        ).check()  # fmt: skip
    serve(
        desk, host=host, port=port, token=token, most_upload=max_upload * 1_000_000,
        opened=not no_browser, say=say,
        begin=lambda: wanted and desk.open(wanted),
    )  # fmt: skip
