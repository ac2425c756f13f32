"""Exceptions as masks of any library: what they leave to rules. This file is imported here and
copied into what is exported."""

from typing import Any


def left(masks: list[Any], exceptions: list[Any], gives_way: list[bool]) -> list[Any]:
    """What is left to each rule when the exceptions have taken their rows from those that give
    way."""
    taken = either(exceptions)
    return [mask & ~taken if gives else mask for mask, gives in zip(masks, gives_way, strict=True)]


def lifting(masks: list[Any], exceptions: list[Any], gives_way: list[bool]) -> list[Any]:
    """For each exception the rows that it takes from a rule that would decide about them."""
    found, others = [], []
    for mask, gives in zip(masks, gives_way, strict=True):
        if not gives:
            others.append(mask)
        else:
            found.append(mask & ~either(others) if others else mask)
    return [exception & either(found) for exception in exceptions]


def either(masks: list[Any]) -> Any:
    """What any of these masks covers; joined in pairs, for libraries that go inside by calls."""
    while len(masks) > 1:
        odd = masks[-1:] if len(masks) % 2 else []
        masks = [a | b for a, b in zip(masks[::2], masks[1::2], strict=False)] + odd
    return masks[0]
