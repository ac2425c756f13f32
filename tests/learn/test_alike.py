"""Equal rows next to each other as one that stands for so many: nothing is lost by it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stair.learn.alike import WORTH_MERGING, merged
from stair.learn.table import Table
from stair.rules.schema import Field, Schema, Values

CELLS = st.sampled_from([0.0, -0.0, 1.0, float("nan")])
ROWS = st.tuples(CELLS, CELLS, st.integers(0, 1), st.integers(1, 4))  # two cells, class, how often


@settings(deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=30))
def test_rows_that_were_merged_are_those_that_there_were(
    rows: list[tuple[float, float, int, int]],
) -> None:
    """In the same order, with their classes and counts; and never more than would pay."""
    times = [each[3] for each in rows]
    cells = np.repeat(np.array([each[:2] for each in rows]), times, axis=0)
    codes = np.repeat(np.array([each[2] for each in rows], dtype=np.int32), times)
    names = ("x", "y")
    schema = Schema(tuple(Field(name, "number", name) for name in names))
    values = Values(dict(zip(names, cells.T, strict=True)), len(cells))
    alike = merged(Table(schema, (), np.asfortranarray(cells), values), codes)

    np.testing.assert_array_equal(alike.every(alike.table.codes), cells)
    np.testing.assert_array_equal(alike.every(alike.codes), codes)
    for name in names:
        np.testing.assert_array_equal(alike.every(alike.table.values[name]), values[name])
    n_kept = len(alike.codes)
    all_kept = np.arange(n_kept)
    assert alike.size(all_kept) == len(codes)
    assert alike.count(alike.codes, 2) == np.bincount(codes, minlength=2).tolist()
    half = all_kept[: n_kept // 2]
    expected = np.bincount(alike.every(alike.codes, half), minlength=2).tolist()
    assert alike.count(alike.codes, 2, half) == expected
    distinct = 1 + sum(
        not _same(one, two)
        for one, two in zip(_rows(cells, codes)[:-1], _rows(cells, codes)[1:], strict=True)
    )
    assert n_kept == (distinct if distinct * WORTH_MERGING <= len(codes) else len(codes))


def _rows(cells: NDArray[Any], codes: NDArray[Any]) -> list[tuple[float, ...]]:
    return [(*row, float(code)) for row, code in zip(cells.tolist(), codes.tolist(), strict=True)]


def _same(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, two, strict=True))
