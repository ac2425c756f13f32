"""A term that a text must mention, as a regular expression."""

from __future__ import annotations


def term_pattern(term: str) -> str:
    """For exactly this text, in which the letters A to Z, and no others, may be of any case."""
    return "".join(
        f"[{c.upper()}{c.lower()}]"
        if c.isascii() and c.isalpha()
        else f"\\x{ord(c):02x}"
        if c.isascii()
        else c
        for c in term
    )
