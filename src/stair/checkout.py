"""`stair reproduce`: the experiments live in a checkout of the repository, not in the package."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from stair.errors import StairError
from stair.gate import check_folder, say

HERE = Path(__file__).resolve().parents[2]
MARKS = ("experiments/settings.toml", "experiments/run.py", "src/stair/cli.py")


def reproduce(
    questions: Annotated[
        list[str] | None, typer.Argument(help="q1 to q7, lambda, or all.", show_default="all")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="A folder with the paper's data; else it is downloaded.")
    ] = None,
    thursday: Annotated[
        Path | None, typer.Option(help="The CSE-CIC-IDS2018 file of Thursday 1 March 2018.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A folder for the results; else that of the checkout.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few rows of a few data sets.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute again what is there.")] = False,
    jobs: Annotated[int, typer.Option(help="Processes that compute at a time.")] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """The paper's experiments again, from a checkout; goes on where it was stopped."""
    check_folder(output)
    claims = experiments().reproduce(
        questions or ("all",), data_dir=data_dir, traffic=thursday, output=output, quick=quick,
        fresh=fresh, jobs=jobs, quiet=quiet,
    )  # fmt: skip
    if not quiet:
        say(claims)


def experiments(folders: tuple[Path, ...] | None = None) -> Any:
    """The module that runs them: of the checkout that stair runs from, else of the current one."""
    found = _module("experiments.run", (HERE, Path.cwd()) if folders is None else folders)
    if found is None:
        raise StairError(
            "the experiments are not part of the installed package; get a checkout of the "
            "repository and run stair reproduce in its folder"
        )
    return found


def data_folder() -> Path | None:
    """Where the paper's data is looked for and kept; None where stair runs from no checkout."""
    found = _module("experiments.datasets", (HERE,))
    return None if found is None else found.data_folder()[0]


def _module(name: str, folders: tuple[Path, ...]) -> Any:
    """A module of the first of these folders that is a checkout; None where none is."""
    for folder in folders:
        if all((folder / mark).is_file() for mark in MARKS):
            if str(folder) not in sys.path:
                sys.path.insert(0, str(folder))
            return import_module(name)
    return None
