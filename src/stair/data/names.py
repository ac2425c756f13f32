"""The order of names: how ties between columns are broken, whatever place they have in a table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache


@lru_cache(maxsize=10_000)
def name_order(name: str) -> tuple[object, ...]:
    """A key to sort names by: letter by letter, with numbers by size, so that x2 is before x10."""
    parts = re.split(r"0*([0-9]+)", name)
    natural = tuple((len(part), part) if k % 2 else part for k, part in enumerate(parts))
    return (natural, name)


def in_name_order(names: Sequence[str]) -> list[int]:
    """The places of names in their order; of two that are the same the first."""
    return sorted(range(len(names)), key=lambda k: name_order(names[k]))
