"""Excel files: the stored values of one sheet, never formulas."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stair.data.arrays import from_values
from stair.data.databases import choose_table
from stair.data.frame import Loaded, Opened, check_filled
from stair.data.packages import library_in_words, optional
from stair.errors import StairError

_MOST_ROWS = 1 << 20
_EXCEL_ERRORS = frozenset(
    {"#N/A", "#DIV/0!", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA"}
)


def open_excel(path: Path, sheet: str | None, stack: contextlib.ExitStack) -> Opened:
    """The first sheet, or the named one: stored values, never formulas."""
    openpyxl = optional("openpyxl")
    if openpyxl is None:
        raise StairError(
            f"{path.name} is an Excel file, which needs an extra package: "
            f"pip install 'stair[excel]'."
        )
    stack.enter_context(warnings.catch_warnings())  # of styles
    warnings.simplefilter("ignore")
    file = stack.enter_context(path.open("rb"))  # openpyxl forgets a damaged one without closing it
    with library_in_words(path.name, Exception):  # those of the zip and XML readers come through
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    stack.callback(book.close)
    sheets = {s.title: s for s in book.worksheets}
    if sheet is None and sheets:
        sheet = next(iter(sheets))
    worksheet = sheets[choose_table(path.name, dict.fromkeys(sheets, True), sheet, "sheet")]
    worksheet.reset_dimensions()
    rows = _filled_rows(path.name, worksheet)
    _, header, _ = next(rows, (0, [], ()))
    if not header:
        raise StairError(f'{path.name} has nothing in sheet "{sheet}"; expected a header and rows.')
    names = ["" if cell is None else str(cell).strip() for cell in header]

    def load(places: list[int]) -> list[Loaded]:
        lists: list[list[object]] = [[] for _ in places]
        filled = 0
        for count, (number, row, _) in enumerate(rows, 1):
            filled += len(row) - row.count(None)
            check_filled(path.name, count, len(names), filled, 20_000_000)
            if len(row) > len(names):
                raise StairError(
                    f"{path.name} row {number} has {len(row)} cells, expected {len(names)}"
                )
            for values, i in zip(lists, places, strict=True):
                values.append(row[i] if i < len(row) else None)
        return [from_values(values) for values in lists]

    def cells() -> Iterator[Sequence[object]]:
        for _, _, found in rows:
            yield [*found, *[None] * len(names)][: len(names)]

    return Opened(names, load, cells, empty="has a header but no rows")


def _filled_rows(
    source: str, worksheet: object
) -> Iterator[tuple[int, list[object], Sequence[object]]]:
    """The rows that are not blank: the number, the values without blanks at the end, the cells."""
    for number, cells in enumerate(_cells(source, worksheet), 1):
        if number > _MOST_ROWS:  # openpyxl fills in all rows that a file leaves out
            raise StairError(f"{source} has a row beyond {_MOST_ROWS:,}, where Excel itself ends.")
        row = [None if c == "" or (isinstance(c, str) and c in _EXCEL_ERRORS) else c for c in cells]
        while row and row[-1] is None:
            row.pop()
        if row:
            yield number, row, cells


def _cells(source: str, worksheet: Any) -> Iterator[Sequence[object]]:
    with library_in_words(source, Exception):
        yield from worksheet.iter_rows(values_only=True)
