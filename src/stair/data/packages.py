"""Optional packages: imported where they are used, and their errors said in our words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeAlias

from stair.errors import StairError

Foreign: TypeAlias = Any  # a thing of a package that may not be there


def optional(name: str) -> Any:
    """An optional package, or None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None


def reason(error: BaseException) -> str:
    """Why, in the first line of what the system or a library says."""
    if isinstance(error, PermissionError):
        return "no permission"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[0].lower() + error.strerror[1:]
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


@contextlib.contextmanager
def library_in_words(name: str, *errors: type[BaseException]) -> Iterator[None]:
    """What a library says about a file that it cannot read, as one sentence of ours."""
    try:
        yield
    except StairError:
        raise
    except errors as error:
        raise StairError(f"cannot read {name}, it may be damaged: {reason(error)}.") from error


NO_EXTENSIONS = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


@contextlib.contextmanager
def duckdb_in_memory(duckdb: Any) -> Iterator[Any]:
    """A DuckDB connection that is quiet, installs nothing, and is closed afterwards."""
    con = duckdb.connect(config=dict(NO_EXTENSIONS))
    try:
        con.execute("SET enable_progress_bar = false")
        yield con
    finally:
        con.close()


def quoted(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'
