"""`stair review`: what the command takes. Everything heavy is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stair.flags import (
    ColumnFlags,
    MethodFlags,
    TableFlags,
    VerdictFlags,
    WishFlags,
    in_groups,
)
from stair.gate import DASH, check_files, say, to_read

_PAGE = "Page"


@in_groups
def review(
    said: VerdictFlags,
    learning: MethodFlags,
    wished: WishFlags,
    columns: ColumnFlags,
    database: TableFlags,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RULES.json] [FILE]",
            help="A table, or saved rules and a table. Without: choose on the page.",
        ),
    ] = None,
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
    from stair.learn.methods import method_of
    from stair.learn.wishes_file import column_wishes

    for name in ("starlette", "uvicorn", "duckdb", "pyarrow"):
        if optional(name) is None:
            raise StairError(f"the review page needs {name}: pip install 'stair[review]'")
    from stair.review.desk import Desk, Opening
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
    check_files([*given, wished.columns], [(db, "review")])
    about = column_wishes(wished.of_columns, wished.columns and to_read(wished.columns))
    wishes = {**wished.settings, **about}
    learned = learning.given
    if wishes and learning.min_score is None and learning.method == "distilled":
        learned["min_score"] = method_of("distilled", **wishes).floor
    desk = Desk(None if given else Folder(folder), db)
    wanted = None
    if given:
        lists = {"include": tuple(columns.include or ()), "exclude": tuple(columns.exclude or ())}
        wanted = Opening(
            given[-1], rules=given[0] if len(given) == 2 else None,
            **(said.given | learned | columns.given | database.given | lists), wishes=wishes,
        ).check()  # fmt: skip
    serve(
        desk, host=host, port=port, token=token, most_upload=max_upload * 1_000_000,
        opened=not no_browser, say=say,
        begin=lambda: wanted and desk.open(wanted),
    )  # fmt: skip
