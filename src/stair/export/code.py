"""Python source: values as literals, how fields are read, and expressions that write themselves.

What builds a mask from pandas or polars columns builds, when it is given `Code` instead, the source
text of that mask. So the text and the mask cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from importlib import resources
from typing import Any, cast

import numpy as np

from stair.data.conversion import MEASURES, NETWORKS, Part
from stair.data.zones import fixed_offset
from stair.errors import StairError
from stair.rules.clauses import Interval, Period
from stair.rules.schema import Field


class Code:
    """A piece of Python source; operators and calls give longer pieces."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __getattr__(self, name: str) -> Code:
        return Code(f"{self._text}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Code:
        words = [source(value) for value in given]
        words += [f"{name}={source(value)}" for name, value in named.items()]
        return Code(f"{self._text}({', '.join(words)})")

    def _joined(self, sign: str, other: Any) -> Code:
        return Code(f"({self._text} {sign} {source(other)})")

    def __and__(self, other: Any) -> Code:
        return self._joined("&", other)

    def __or__(self, other: Any) -> Code:
        return self._joined("|", other)

    def __gt__(self, other: Any) -> Code:
        return self._joined(">", other)

    def __le__(self, other: Any) -> Code:
        return self._joined("<=", other)

    def __add__(self, other: Any) -> Code:
        return self._joined("+", other)

    def __sub__(self, other: Any) -> Code:
        return self._joined("-", other)

    def __mul__(self, other: Any) -> Code:
        return self._joined("*", other)

    def __truediv__(self, other: Any) -> Code:
        return self._joined("/", other)

    def __invert__(self) -> Code:
        return Code(f"(~{self._text})")


class NamedTools:
    """The functions that an exported file has, by name."""

    def __getattr__(self, name: str) -> Code:
        return Code(name)


def source(value: Any) -> str:
    """A value as Python source: literals by their repr, nothing else is let through."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, datetime):
        return repr(value).removeprefix("datetime.")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(source(each) for each in value)}]"
    if value is None or isinstance(value, str | bool | int):
        return repr(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    raise StairError(f"{value!r} cannot be written as a value in code")


def bounds(clause: Interval | Period) -> list[float | datetime | None]:
    """The bounds as Python has them, None where there is none."""
    return [
        as_datetime(bound, clause.feature) if isinstance(bound, np.datetime64) else bound
        for bound in clause.bounds
    ]


def prelude(*names: str) -> str:
    """The text of files of this folder without their docstrings, to stand in an exported file."""
    imports: set[str] = set()
    bodies = []
    for name in names:
        text = resources.files("stair.export").joinpath(f"{name}.py").read_text(encoding="utf-8")
        lines = text.split('"""\n', 1)[1].strip().splitlines()
        imports.update(line for line in lines if line.startswith(("import ", "from ")))
        bodies.append("\n".join(line for line in lines if line not in imports).strip())
    own = sorted(line for line in imports if not line.startswith("from stair."))
    return "\n".join(own) + "\n\n" + "\n\n\n".join(bodies) + "\n\n"


def plain(value: Any) -> Any:
    """A value whose repr is a literal of Python."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise StairError(f"{value!r} cannot be written as a value in code")


def as_datetime(time: np.datetime64, feature: str) -> datetime:
    """A bound as Python has it, for the years 1 to 9999."""
    found = time.astype("datetime64[us]").item()
    if not isinstance(found, datetime):
        raise StairError(
            f'the rules compare "{feature}" with {time}, and Python has the years 1 to 9999 alone'
        )
    return found


def bits_of(field: Field) -> int:
    """How many bits the networks of a field have."""
    return 8 * NETWORKS[cast(Part, field.part)]


def zone_in_code(field: Field) -> str | int:
    """The zone of hours and weekdays: its name, or the seconds by which it is ahead of UTC."""
    fixed = fixed_offset(field.zone)
    return field.zone if fixed is None else fixed


def reader_of(field: Field) -> str:
    """The function of `row_reader` for a value of this field."""
    if field.type in MEASURES:
        return f"_{field.type}"
    if field.kind != "category":
        return f"_{field.kind}"
    return {"text": "_code", "number": "_number_code", "flag": "_flag", "time": "_time_code"}[
        field.type
    ]


def spelling(field: Field) -> tuple[str, ...]:
    """How true and false were written where they were text, unless in lower case."""
    if field.type != "text" or field.part is not None:
        return ()
    words = field.spelled(True), field.spelled(False)
    return () if words == ("true", "false") else words
