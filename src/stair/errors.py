"""What goes wrong, said in one sentence: what we got, what we expected, what to do.

What to do is often another setting, and that has two names: `--min-score 0.9` in the command,
`min_score=0.9` in Python. Messages name it by `option`, and `spoken` says it as one does here.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Final

# What a terminal obeys or that turns the order of letters around, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

_LONGEST = 800


def visible(text: str, *, lines: bool = False) -> str:
    """Text with the escape of each character that would not be seen but obeyed; `lines` may end."""
    return _UNSEEN.sub(
        lambda m: m[0] if lines and m[0] == "\n" else m[0].encode("unicode_escape").decode(), text
    )


# The flags that are not the parameter's name with hyphens.
_FLAGS: Final = {
    "labels": "label", "scores": "score", "kinds": "kind", "n_partitions": "partitions",
    "random_state": "seed", "client": "scheduler", "every_rule": "all", "path": "output",
    "column_wishes": "columns",
}  # fmt: skip
# And the flag whose parameter has another name.
_PARAMETERS: Final = {"negative": "positive=AllBut(...)"}
_LISTS: Final = frozenset({"include", "exclude"})  # a list in Python, a flag again and again
# Around an option in a message: characters that belong to nobody and mean nothing.
_OPEN, _CLOSE = "\ue000", "\ue001"
_OPTION: Final = re.compile(f"{_OPEN}(\\w+)(?::([^{_OPEN}{_CLOSE}]*))?{_CLOSE}")

_is_command = False


def option(name: str, *value: object) -> str:
    """A setting by the name of its parameter, and which value of it is meant; `spoken` says it."""
    given = f":{json.dumps(value[0], default=_plain)}" if value else ""
    return f"{_OPEN}{name}{given}{_CLOSE}"


def _plain(value: object) -> object:
    """A value that JSON does not know: a number of NumPy, or the text of anything else."""
    return float(value) if isinstance(value, Real) else str(value)


def spoken(text: str) -> str:
    """A text with its options in the words of where one is."""
    return _OPTION.sub(_as_flag if _is_command else _as_parameter, text)


@contextlib.contextmanager
def in_the_command() -> Iterator[None]:
    """While it lasts, options are flags of the command."""
    global _is_command  # one process is one place
    before, _is_command = _is_command, True
    try:
        yield
    finally:
        _is_command = before


def _as_flag(found: re.Match[str]) -> str:
    name = found[1]
    flag = f"--{_FLAGS.get(name, name).replace('_', '-')}"
    if found[2] is None:
        return flag
    value = json.loads(found[2])
    if name == "column_wishes":
        return _as_column_flags(value)
    if isinstance(value, bool) or (name == "validate" and value == 0):
        return flag if value else flag.replace("--", "--no-", 1)
    if isinstance(value, Mapping):
        return " ".join(f"{flag} {shlex.quote(f'{key}={each}')}" for key, each in value.items())
    values = value if isinstance(value, list) else [value]
    return " ".join(f"{flag} {shlex.quote(str(each))}" for each in values)


def _as_column_flags(wishes: Mapping[str, Mapping[str, object]]) -> str:
    """What is said of columns, each in the words of its flag."""
    return " ".join(
        f"--{what} {shlex.quote(column if value is True else f'{column}={value}')}"
        for column, own in wishes.items()
        for what, value in own.items()
    )


def _as_parameter(found: re.Match[str]) -> str:
    name = found[1]
    if found[2] is None:
        return _PARAMETERS.get(name, f"{name}=")
    value = json.loads(found[2])
    if name in _LISTS and not isinstance(value, list):
        value = [value]
    return f"{name}={_literal(value)}"


def _literal(value: object) -> str:
    """A value as one would write it in Python, with the quotes of this house."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, str) and value.isprintable() and not set('"\\') & set(value):
        return f'"{value}"'
    return repr(value)


class StairError(ValueError):
    """Bad input. The message is one sentence, in one line, for the person who gave it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def __str__(self) -> str:
        message = spoken(self.args[0])
        if len(message) > _LONGEST:  # names and libraries' words can be as long as a file
            message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
        return visible(message)


class FloorNotReached(UserWarning):
    """The rules are the best there are, but their score is not above the floor."""


class OutlierGuessed(UserWarning):
    """Nothing says which of two classes is the outlier, so the smaller one was taken."""


def no_such_column(name: str, names: Iterable[str], source: str) -> StairError:
    """A column that is not there, with the nearest names and what there is."""
    known = list(names)
    return StairError(
        f'no column "{name}" in {source}.{did_you_mean(name, known)} Columns: {folded(known)}'
    )


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A question with the nearest names, or nothing where none is near."""
    by_case: dict[str, str] = {}
    for known in names:
        by_case.setdefault(known.casefold(), known)
    near = difflib.get_close_matches(name.casefold(), by_case, n=3, cutoff=0.6)
    if not near:
        return ""
    return " Did you mean " + " or ".join(f'"{by_case[n]}"' for n in near) + "?"


def folded(names: Iterable[str], most: int = 12) -> str:
    """A list that stays readable however long it is."""
    every = list(names)
    tail = f", … {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + tail


# --- settings, checked in the same way wherever they are given ----------------------------------


def check_count(name: str, value: object, low: int, high: int | None = None) -> None:
    """Refuse what is no whole number from `low` to `high`."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not low <= int(value) <= (int(value) if high is None else high):  # type: ignore[call-overload]
        limits = f"of at least {low:,}" if high is None else f"from {low:,} to {high:,}"
        raise StairError(f"{option(name, value)}; expected a whole number {limits}")


def check_number(name: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse what is no number from `low` to `high`."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not low <= float(value) <= high:  # type: ignore[arg-type]
        limits = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise StairError(f"{option(name, value)}; expected a number {limits}")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is none of these words."""
    if not isinstance(value, str) or value not in choices:
        words = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise StairError(f"{option(name, value)}; expected {words}")
