"""What a command tells a program: one JSON object that says what it is, and its JSON Schema.

The schema of the answer of `stair NAME --json` is the file NAME.schema.json in this folder, and
`stair export --schema NAME` prints it. A new file there is a new schema, and nothing else is to do.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from importlib import resources
from typing import Final

import numpy as np

from stair.errors import StairError, did_you_mean

VERSION: Final = 1
_ENDING: Final = ".schema.json"


def answer(name: str, content: Mapping[str, object]) -> str:
    """An answer of the command of this name. What JSON cannot write is a text ("inf", a time in ISO
    form), and what is missing is null."""
    said = {"format": f"stair-{name}", "version": VERSION, **content}
    return json.dumps(_plain(said), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def schemas() -> tuple[str, ...]:
    """The names of all schemas: `rules`, which is the file of rules, and those of the answers."""
    names = (path.name for path in resources.files("stair.export").iterdir())
    return tuple(sorted(n.removesuffix(_ENDING) for n in names if n.endswith(_ENDING)))


def schema(name: str = "rules") -> str:
    """The JSON Schema of a rules file, or of what a command answers with --json."""
    if name not in schemas():
        hint = did_you_mean(name, schemas())
        raise StairError(f'no schema "{name}"; there are {", ".join(schemas())}.{hint}')
    return resources.files("stair.export").joinpath(f"{name}{_ENDING}").read_text("utf-8")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value.isoformat() if isinstance(value, date) else value
