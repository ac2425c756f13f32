"""What is known of columns, from a file: a table for each column, in TOML or JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from stair.data.reading import regular_file
from stair.errors import StairError
from stair.learn.wishes import ColumnWish, column_wishes_of

# Columns of a table are hundreds, not more than fit into this.
MOST_BYTES: Final = 10_000_000


def read_column_wishes(path: Path) -> dict[str, ColumnWish]:
    """The wish of each column that the file names."""
    path = regular_file(path, "what is known of columns, in TOML or JSON")
    if path.suffix.lower() not in (".toml", ".json"):
        raise StairError(f"{path.name} has another ending than .toml or .json")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise StairError(f"{path.name} is larger than a file about columns can be")
        text = path.read_text(encoding="utf-8")
        is_toml = path.suffix.lower() == ".toml"
        document: Any = tomllib.loads(text) if is_toml else json.loads(text)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StairError(f"cannot read {path.name}: {why.lower()}") from None
    except UnicodeDecodeError:
        raise StairError(f"{path.name} is not text; expected TOML or JSON") from None
    except (ValueError, RecursionError) as error:
        why = str(error).splitlines()[0] if str(error) else "it is nested too deep"
        raise StairError(f"{path.name} cannot be read ({why}); expected TOML or JSON") from None
    is_table = isinstance(document, dict) and all(isinstance(v, dict) for v in document.values())
    if not is_table:
        raise StairError(
            f"{path.name} has no table for each column; expected [amount] and under it "
            'direction = "up"'
        )
    try:
        return column_wishes_of(document)
    except StairError as error:
        raise StairError(f"{path.name}: {error}") from None


def column_wishes(
    parts: Sequence[tuple[str, str, Any]], path: Path | None
) -> dict[str, dict[str, dict[str, object]]]:
    """The setting of a method, from what is said of columns one by one (the column, what it is
    about, and what is said) and in a file; nothing where nothing is. Nothing is said twice in two
    ways."""
    known = {} if path is None else read_column_wishes(path)
    found = {name: wish.given for name, wish in known.items()}
    for column, what, value in parts:
        own = found.setdefault(column, {})
        if own.get(what, value) != value:
            raise StairError(
                f'--{what} {column}={value} contradicts {what} = {own[what]} of "{column}"; say '
                "one of them"
            )
        own[what] = value
    return {"column_wishes": found} if found else {}
