"""JSON lines: one object per line, its values typed as they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from stair.data.arrays import from_values
from stair.data.frame import Loaded, Opened, check_filled, unique_names
from stair.data.text import TextFile
from stair.data.values import dated
from stair.errors import StairError


def open_json_lines(text: TextFile, texts: Collection[str] = ()) -> Opened:
    rows: list[dict[str, object]] = []
    with text.lines() as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise StairError(
                    f"{text.name} line {number} is not valid JSON; expected one object per line."
                ) from None
            if not isinstance(row, dict):
                raise StairError(
                    f"{text.name} line {number} is not a JSON object; expected one per line, "
                    f'such as {{"amount": 12.5}}.'
                )
            rows.append(row)
    if not rows:
        raise StairError(f"{text.name} is empty; expected one JSON object per line.")
    names = list(dict.fromkeys(name for row in rows for name in row))
    known, _ = unique_names(names)
    check_filled(text.name, len(rows), len(names), sum(map(len, rows)), 100_000_000)

    def load(places: list[int]) -> list[Loaded]:
        return [
            dated(from_values([_flat(row.get(names[i])) for row in rows]), known[i] in texts)
            for i in places
        ]

    def values() -> Iterator[list[object]]:
        return ([row.get(name) for name in names] for row in rows)

    return Opened(names, load, values, list(text.notes), text=text)


def _flat(value: object) -> object:
    """Nested values as the JSON they were."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value
