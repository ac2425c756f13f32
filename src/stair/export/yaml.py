"""Texts as YAML, for every name and value that there is."""

from __future__ import annotations

from typing import Final

_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quoted(text: str) -> str:
    """A text in double quotes on one line, in which every character stays what it is."""
    return '"' + "".join(map(_escaped, text)) + '"'


def block(text: str, indent: int) -> str:
    """A text as its lines, to be read; in quotes where a line would not come back as it is."""
    lines = text.split("\n")
    if any(not line.isprintable() or line[:1] == " " == line.strip(" ") for line in lines):
        return quoted(text)
    if not text.strip() or text[-1:].isspace() or text[:1].isspace():
        return quoted(text)
    return "|-\n" + "\n".join(f"{' ' * indent}{line}" if line else "" for line in lines)


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    return f"\\U{ord(character):08X}"
