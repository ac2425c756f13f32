"""Pages of rows beside a slow obvious twin: all cells written down, all rows sorted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stair.data import Frame
from stair.errors import StairError
from stair.report.cells import cell, whole_cell
from stair.review import rows as room
from stair.review.rows import Page, Rows
from strategies import examples

FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1.5, -2.25, 1e-4, 9e-5, 1e9, 999999999.5, 1e16, 1e300]),
    st.sampled_from([math.nan, math.inf, -math.inf, 418.0, 4180.25, 0.1, 1e-7, 12.05]),
    st.floats(),
)
TEXTS = st.one_of(
    st.sampled_from([None, "", "DE", "de", "De", "Straße", "STRASSE", "ﬁ", "418", "–", "\n", "é"]),
    st.text(max_size=4),
)
TIMES = st.sampled_from(
    ["NaT", "2024-03-01", "2024-03-01T10:00", "2024-03-01T10:00:05", "2024-03-01T10:00:00.5",
     "2024-03-01T10:00:05.000120", "1969-12-31T23:59:59.999999", "10000-01-01", "-0044-03-15"]
)  # fmt: skip
WHOLE = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
SEARCHES = st.one_of(
    st.sampled_from(
        ["", " ", "de", "SS", "418", "4180.2", ".5", "5.", "1e", "e-05", "+16", "-", "inf", "–",
         "2024-03", "10:00", "10:00:0", "-03-01 1", ".5 ", "00", "tr", "0", "-0", ".",
         "1" * 400 + ".5", "05.", "-2.2250738585072014e-308"]
    ),
    st.text(max_size=2),
    st.floats(allow_nan=False).map(repr),
    st.floats(-1e9, 1e9).map(lambda x: repr(x)[:6]),
)  # fmt: skip


def _objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@st.composite
def frames(draw: Any) -> Frame:
    n = draw(st.integers(1, 25))

    def some(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=n, max_size=n))

    columns = {
        "number": np.array(some(FLOATS)),
        "whole": np.array(some(WHOLE), dtype=np.int64),
        "truth": np.array(some(st.booleans())),
        "time": np.array(some(TIMES), dtype="datetime64[us]"),
        "text": _objects(some(TEXTS)),
        "maybe": _objects(some(st.sampled_from([True, False, None]))),
    }
    kept = draw(st.sets(st.sampled_from(sorted(columns)), min_size=1))
    return Frame({name: values for name, values in columns.items() if name in kept}, n)


def _twin(
    frame: Frame, rows: list[int], sort: str | None, descending: bool, search: str
) -> list[int]:
    """All of the rows, in their order."""
    wanted = search.strip().casefold()
    found = [
        row
        for row in sorted(rows)
        if any(wanted in whole_cell(values[row]).casefold() for values in frame.columns.values())
    ]
    if sort is None:
        return found[::-1] if descending else found
    values = frame.columns[sort]

    def key(row: int) -> Any:
        value = values[row]
        return (value.casefold(), value) if isinstance(value, str) else value

    absent = [row for row in found if whole_cell(values[row]) == "–" and values[row] != "–"]
    present = [row for row in found if row not in absent]
    return sorted(present, key=key, reverse=descending) + absent


def _check(frame: Frame, given_rows: list[int], options: dict[str, Any]) -> None:
    wanted = _twin(frame, given_rows, options["sort"], options["descending"], options["search"])
    start, size = options["start"], options["size"]
    rows = np.array(given_rows, dtype=np.intp)
    if start and start >= len(wanted):
        with pytest.raises(StairError, match="no row at place"):
            Rows(frame).page(rows, **options)
        return
    page = Rows(frame).page(rows, **options)
    assert page.rows.tolist() == wanted[start : start + size]
    assert (page.start, page.total, page.of) == (start, len(wanted), len(given_rows))
    assert page.columns == tuple(frame.columns)
    assert page.numeric == tuple(v.dtype.kind in "fiu" for v in frame.columns.values())
    assert page.cells == tuple(
        tuple(cell(values[row]) for values in frame.columns.values()) for row in page.rows
    )


@settings(max_examples=examples(250))
@given(frames(), st.data())
def test_a_page_is_a_piece_of_all_rows_sorted(frame: Frame, data: st.DataObject) -> None:
    """Any kind of column, both directions, any place and search: as if all were sorted."""
    rows = data.draw(st.permutations(range(frame.n_rows)))[: data.draw(st.integers(0, 25))]
    options = {
        "sort": data.draw(st.sampled_from([None, *frame.columns])),
        "descending": data.draw(st.booleans()),
        "start": data.draw(st.integers(0, 12)),
        "size": data.draw(st.integers(1, 12)),
        "search": data.draw(SEARCHES),
    }
    _check(frame, rows, options)


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32), search=SEARCHES, place=st.integers(0, 2999))
@example(seed=0, search="1234.5", place=7)
@example(seed=1, search="note 1", place=0)
@example(seed=2, search=".0", place=0)
def test_columns_of_many_values_are_no_different(seed: int, search: str, place: int) -> None:
    """DuckDB writes a number down as Python does, whatever its bits."""
    rng = np.random.default_rng(seed)
    n = 3000
    whole = rng.integers(-(2**40), 2**40, n).tolist()
    frame = Frame(
        {
            "wide": rng.choice([-1, 1], n) * 10 ** rng.uniform(-8, 18, n),
            "price": np.round(rng.exponential(1000, n), 2),
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "bits": rng.integers(-(2**63), 2**63, n).view(np.float64),
            "count": rng.integers(-(10**6), 10**6, n),
            "large": rng.integers(0, 2**64, n, dtype=np.uint64),
            "huge": _objects([None if k % 7 == 0 else 2**63 + v for k, v in enumerate(whole)]),
            "when": rng.integers(-(10**17), 10**17, n).view("datetime64[us]"),
            "note": _objects([f"{'Nn'[k % 2]}ote {k // 2} ß" for k in rng.permutation(n)]),
            "plain": _objects([f"p{k}" if k % 50 else None for k in rng.permutation(n)]),
        },
        n,
    )
    rows = np.arange(0, n, int(rng.integers(1, 60)))
    column = str(rng.choice(list(frame.columns)))
    options = {
        "sort": column, "descending": bool(rng.random() < 0.5), "start": place % len(rows),
        "size": 20, "search": search,
    }  # fmt: skip
    _check(frame, rows.tolist(), options)


def test_a_search_is_for_the_whole_text_and_a_page_shows_its_beginning() -> None:
    frame = Frame({"note": _objects(["x" * 200 + " Refund", "nothing", None])}, 3)
    page = Rows(frame).page(np.arange(3), search="refund")
    assert page.rows.tolist() == [0]
    assert page.cells == (("x" * 59 + "…",),)
    assert Rows(frame).page(np.arange(3), search="–").rows.tolist() == [2]
    empty = Rows(frame).page(np.arange(3), search="no such thing")
    assert (empty.rows.tolist(), empty.cells, empty.total, empty.of) == ([], (), 0, 3)


def test_half_a_character_can_be_searched_and_sorted() -> None:
    """Text that is not valid Unicode is text, which neither Arrow nor DuckDB takes."""
    frame = Frame(
        {"t": _objects(["b", "\ud800x", "a", None, "\uffff"]), "u": _objects(["é"] * 5)}, 5
    )
    pages = Rows(frame)
    assert pages.page(np.arange(5), sort="t").rows.tolist() == [2, 0, 1, 4, 3]
    for search, found in (
        ("X", [1]),
        ("\ud800", [1]),
        ("–", [3]),
        ("É", [0, 1, 2, 3, 4]),
        ("Ã", []),
    ):
        assert pages.page(np.arange(5), search=search).rows.tolist() == found


def test_an_order_that_was_let_go_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the orders that were asked for last are kept."""
    monkeypatch.setattr(room, "ORDERS_KEPT", 2)
    frame = Frame({name: np.array([2.0, 1.0, 3.0]) for name in "abcd"}, 3)
    pages = Rows(frame)
    for name in "abcdabcd":
        assert pages.page(np.arange(3), sort=name).rows.tolist() == [1, 0, 2]
        assert pages.page(np.arange(3), sort=name, descending=True).rows.tolist() == [2, 0, 1]
    assert len(pages._orders) == 2


def test_only_the_rows_of_a_page_are_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are, no more cells are made than the page shows."""
    made: list[Any] = []
    monkeypatch.setattr(room, "cell", lambda value: made.append(value) or str(value))
    rng = np.random.default_rng(0)
    n = 200_000
    frame = Frame({"a": rng.normal(size=n), "b": rng.integers(0, 3, n)}, n)
    pages = Rows(frame)
    for sort in ("a", "b", None):
        page = pages.page(np.arange(n), sort=sort, start=n - 130, size=100)
        assert isinstance(page, Page)
        assert len(page.rows) == 100
        assert len(made) == 100 * 2
        made.clear()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sort": "amout"}, 'no column "amout" in pay.csv. Did you mean "amount"'),
        ({"start": 3}, "no row at place 4; there are 3"),
        ({"start": -1}, "no row at place 0"),
        ({"size": 0}, "a page of 0 rows; expected 1 to 1000"),
        ({"size": 1001}, "a page of 1001 rows"),
        ({"rows": np.array([3])}, "no such row; the table has 3"),
        ({"rows": np.array([-1])}, "no such row"),
        ({"rows": np.array([True, False, True])}, "expected the numbers of rows, got bool"),
    ],
)
def test_what_cannot_be_shown_is_said(options: dict[str, Any], match: str) -> None:
    frame = Frame({"amount": np.array([1.0, 2.0, 3.0])}, 3, "pay.csv")
    with pytest.raises(StairError, match=match) as caught:
        Rows(frame).page(**{"rows": np.arange(3), **options})
    assert "\n" not in str(caught.value)
