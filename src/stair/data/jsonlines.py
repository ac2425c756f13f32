"""JSON lines: one object per line, its values typed as they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from stair.data.arrays import from_values
from stair.data.frame import Loaded, Opened, Parts, check_filled, unique_names
from stair.data.text import TextFile
from stair.data.values import dated
from stair.data.witnesses import typed_batches
from stair.errors import StairError

MOST_KEPT: Final = 8 << 20  # characters of a file that is read once, and not each time
MOST_VALUES: Final = 1_000_000  # of a batch


def open_json_lines(text: TextFile, texts: Collection[str] = ()) -> Opened:
    kept: list[dict[str, object]] | None = []
    found: dict[str, None] = {}
    n_rows = n_filled = n_characters = 0
    for row, length in _objects(text):
        n_rows, n_filled, n_characters = n_rows + 1, n_filled + len(row), n_characters + length
        found.update(dict.fromkeys(row))
        if n_characters > MOST_KEPT:
            kept = None
        elif kept is not None:
            kept.append(row)
    if not n_rows:
        raise StairError(f"{text.name} is empty; expected one JSON object per line.")
    names = list(found)
    known, _ = unique_names(names)
    check_filled(text.name, n_rows, len(names), n_filled, 100_000_000)

    def rows() -> Iterator[dict[str, object]]:
        return (row for row, _ in _objects(text)) if kept is None else iter(kept)

    def load(places: list[int]) -> list[Loaded]:
        lists: list[list[object]] = [[] for _ in places]
        for row in rows():
            for values, i in zip(lists, places, strict=True):
                values.append(_flat(row.get(names[i])))
        return [
            dated(from_values(values), known[i] in texts)
            for values, i in zip(lists, places, strict=True)
        ]

    def batches(places: list[int], at_once: int) -> Parts:
        def blocks() -> Iterator[Sequence[Sequence[object]]]:
            every = rows()
            while block := list(islice(every, max(1, min(at_once, MOST_VALUES // len(names))))):
                yield [[_flat(row.get(names[i])) for row in block] for i in places]

        return typed_batches(blocks, [known[i] in texts for i in places])

    def values() -> Iterator[list[object]]:
        return ([row.get(name) for name in names] for row in rows())

    return Opened(names, load, values, list(text.notes), batches=batches, text=text)


def _objects(text: TextFile) -> Iterator[tuple[dict[str, object], int]]:
    """Each object, and how many characters it has."""
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
            yield row, len(line)


def _flat(value: object) -> object:
    """Nested values as the JSON they were."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return value
