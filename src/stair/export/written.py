"""An expression that writes itself down.

What builds a mask from pandas or polars columns builds, when it is given these instead, the source
text of that mask. So the text and the mask cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from stair.errors import StairError


class Written:
    """A piece of Python source; operators and calls give longer pieces."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __getattr__(self, name: str) -> Written:
        return Written(f"{self._text}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Written:
        words = [source(value) for value in given]
        words += [f"{name}={source(value)}" for name, value in named.items()]
        return Written(f"{self._text}({', '.join(words)})")

    def _joined(self, sign: str, other: Any) -> Written:
        return Written(f"({self._text} {sign} {source(other)})")

    def __and__(self, other: Any) -> Written:
        return self._joined("&", other)

    def __or__(self, other: Any) -> Written:
        return self._joined("|", other)

    def __gt__(self, other: Any) -> Written:
        return self._joined(">", other)

    def __le__(self, other: Any) -> Written:
        return self._joined("<=", other)

    def __add__(self, other: Any) -> Written:
        return self._joined("+", other)

    def __sub__(self, other: Any) -> Written:
        return self._joined("-", other)

    def __mul__(self, other: Any) -> Written:
        return self._joined("*", other)

    def __truediv__(self, other: Any) -> Written:
        return self._joined("/", other)

    def __invert__(self) -> Written:
        return Written(f"(~{self._text})")


class NamedTools:
    """The functions that an exported file has, by name."""

    def __getattr__(self, name: str) -> Written:
        return Written(name)


def source(value: Any) -> str:
    """A value as Python source: literals by their repr, nothing else is let through."""
    if isinstance(value, Written):
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
