"""Pages of rows: sorted by any column, searched, and never all of them written down at once.

DuckDB sorts a small group for each page. For a large one it sorts the column once, and where each
row comes is kept: the places of the group's rows, marked in a line of all places, are in order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stair.data.frame import Array, Frame
from stair.data.packages import NO_EXTENSIONS
from stair.errors import StairError, no_such_column
from stair.report.cells import MISSING, cell
from stair.review.judged import Rows as Rowset

LARGEST_PAGE: Final = 1000
ORDERS_KEPT: Final = 16  # eight bytes for each row
SMALL: Final = 0.1  # of all rows; so small a group is sorted by itself
IN_NUMBERS: Final = frozenset("0123456789+-.einf")  # the characters of a number's text
IN_TIMES: Final = frozenset("0123456789-: .")

# As `cell` writes them; a time has no more of a clock than it needs, and years before 0 a sign.
NUMBER: Final = "CAST(nullif({0}, 'nan') AS VARCHAR)"
SHOWN_NUMBER: Final = f"regexp_replace({NUMBER}, '\\.0$', '')"
TIME: Final = (
    "regexp_replace(CASE WHEN {0} >= TIMESTAMP '0001-01-01' THEN CAST({0} AS VARCHAR) "
    "ELSE printf(CASE WHEN year({0}) < 0 THEN '%05d' ELSE '%04d' END, year({0})) "
    "|| rtrim(rtrim(strftime({0}, '-%m-%d %H:%M:%S.%f'), '0'), '.') END, ':00$', '')"
)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a group, as text."""

    rows: Rowset  # the numbers of the rows shown, from 0, in order
    cells: tuple[tuple[str, ...], ...]  # for each row, in the order of `columns`
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]  # which columns align right
    start: int  # the place of the first row shown
    total: int  # rows in the group that the search leaves
    of: int  # rows in the group


@dataclass(frozen=True, slots=True)
class _Column:
    """How SQL speaks of a column."""

    name: str
    sort: tuple[str, ...]
    texts: tuple[str, ...]  # without regard to case; what is searched must be in all of them
    signs: frozenset[str] | None = None  # the only characters that the text can have, if known
    is_encoded: bool = False  # because there is half a character in it


@dataclass(frozen=True, slots=True)
class _Order:
    """All rows as they are sorted, and the place of each row among them."""

    rows: NDArray[np.int32]
    places: NDArray[np.int32]


class Rows:
    """The rows of a table, a page at a time."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._numbers = np.arange(frame.n_rows, dtype=np.int32)
        arrays: dict[str, object] = {"row": pa.array(self._numbers)}
        self._columns = {
            name: _column(f"c{place}", values, arrays)
            for place, (name, values) in enumerate(frame.columns.items())
        }
        self._cells = pa.table(arrays)
        self._connection = duckdb.connect(config=dict(NO_EXTENSIONS))
        self._lock = threading.Lock()
        self._orders: dict[tuple[str, bool], _Order] = {}

    def page(
        self,
        rows: Rowset,
        *,
        sort: str | None = None,
        descending: bool = False,
        start: int = 0,
        size: int = 50,
        search: str = "",
        first: Sequence[str] = (),
    ) -> Page:
        """The rows at the places from `start` on, of those in which `search` is found; with the
        columns that come `first`, then all others as they are in the table.

        Without `sort` they come by number. Text sorts without regard to case, and where only
        case differs by code points; missing values come last in both directions, and rows with
        equal values by number. A row is found where the text of one of its cells, in full,
        contains the search, in upper or lower case; `–` finds missing values.
        """
        if not 1 <= size <= LARGEST_PAGE:
            raise StairError(f"a page of {size} rows; expected 1 to {LARGEST_PAGE}.")
        frame = self._frame
        if sort is not None and sort not in self._columns:
            raise no_such_column(sort, list(frame.columns), frame.source or "the table")
        group = self._checked(rows)
        found = self._found(group, search.strip().casefold())
        if start < 0 or (start and start >= len(found)):
            raise StairError(f"no row at place {start + 1:,}; there are {len(found):,}.")
        if sort is None:
            shown = (found[::-1] if descending else found)[start : start + size]
        elif len(found) < SMALL * frame.n_rows:
            by = self._by(sort, descending)
            column = self._columns[sort].name
            needed = {"row", column, f"{column}_itself"}
            cells = self._cells.select([n for n in self._cells.column_names if n in needed])
            cells = cells.take(pa.array(found))
            shown = self._rows(cells, f"{by} LIMIT {size} OFFSET {start}").astype(np.intp)
        else:
            order = self._order(sort, descending)
            marked = np.zeros(frame.n_rows, dtype=np.bool_)
            marked[order.places[found]] = True
            shown = order.rows[np.flatnonzero(marked)[start : start + size]].astype(np.intp)
        own = [name for name in first if name in self._columns]
        names = tuple(dict.fromkeys([*own, *self._columns]))
        return Page(
            rows=shown,
            cells=tuple(
                tuple(cell(frame.columns[name][row]) for name in names) for row in shown.tolist()
            ),
            columns=names,
            numeric=tuple(frame.columns[name].dtype.kind in "fiu" for name in names),
            start=start,
            total=len(found),
            of=len(group),
        )

    def _checked(self, rows: Rowset) -> Rowset:
        """The numbers of the rows in their order."""
        group = np.asarray(rows)
        if group.size and group.dtype.kind not in "iu":
            raise StairError(f"expected the numbers of rows, got {group.dtype}.")
        group = group.astype(np.intp, copy=False)
        if np.any(group[1:] <= group[:-1]):
            group = np.unique(group)
        if len(group) and not 0 <= group[0] <= group[-1] < self._frame.n_rows:
            raise StairError(f"no such row; the table has {self._frame.n_rows:,}.")
        return group

    def _found(self, group: Rowset, wanted: str) -> Rowset:
        """The rows of a group that have a text in one of their cells."""
        if not wanted:
            return group
        names, tests, values = ["row"], [], []
        for column in self._columns.values():
            missing, text = MISSING, wanted
            if column.is_encoded:
                missing, text = _encoded(MISSING), _encoded(wanted)
            elif not _is_storable(wanted) or (
                column.signs is not None and wanted != MISSING and set(wanted) - column.signs
            ):
                continue
            names.append(column.name)
            tests.append(" AND ".join(f"contains(coalesce({t}, ?), ?)" for t in column.texts))
            values += [missing, text] * len(column.texts)
        if not tests or not len(group):
            return group[:0]
        cells = self._cells.select(names)
        if len(group) < self._frame.n_rows:
            cells = cells.take(pa.array(group))
        where = " OR ".join(f"({test})" for test in tests)
        return self._rows(cells, f"WHERE {where} ORDER BY row", values).astype(np.intp)

    def _by(self, name: str, descending: bool) -> str:
        """How SQL sorts by a column."""
        way = "DESC" if descending else "ASC"
        by = ", ".join(f"{each} {way} NULLS LAST" for each in self._columns[name].sort)
        return f"ORDER BY {by}, row"

    def _order(self, name: str, descending: bool) -> _Order:
        """All rows in the order of a column."""
        key = (name, descending)
        with self._lock:
            order = self._orders.pop(key, None)
            if order is None:
                rows = self._rows(self._cells, self._by(name, descending))
                places = np.empty_like(rows)
                places[rows] = self._numbers
                order = _Order(rows, places)
            self._orders[key] = order  # at the end: the first one is the first to go
            if len(self._orders) > ORDERS_KEPT:
                del self._orders[next(iter(self._orders))]
            return order

    def _rows(self, cells: object, query: str, values: Sequence[str] = ()) -> NDArray[np.int32]:
        with self._connection.cursor() as cursor:
            cursor.register("cells", cells)
            found = cursor.execute(f"SELECT row FROM cells {query}", list(values))
            return np.asarray(found.fetchnumpy()["row"])


def _column(name: str, values: Array, arrays: dict[str, object]) -> _Column:
    """Puts the values where DuckDB sees them; those of 64 bits are not copied."""
    kind = values.dtype.kind
    if kind == "O":
        return _column_of_objects(name, values.tolist(), arrays)
    arrays[name] = pa.array(values)
    if kind == "f":
        sort = f"nullif({name} + 0.0, 'nan')"  # -0 is 0 where it sorts, and not as text
        texts = (NUMBER.format(name), SHOWN_NUMBER.format(name))  # the first is soon looked at
        return _Column(name, (sort,), texts, IN_NUMBERS)
    if kind == "M":
        return _Column(name, (name,), (TIME.format(name),), IN_TIMES)
    signs = IN_NUMBERS if kind in "iu" else None
    return _Column(name, (name,), (f"CAST({name} AS VARCHAR)",), signs)


def _column_of_objects(name: str, values: list[Any], arrays: dict[str, object]) -> _Column:
    kind = next((type(value) for value in values if value is not None), str)
    if kind is not str:  # true and false, or whole numbers of up to 64 bits, signed or not
        arrays[name] = pa.array(values, pa.decimal128(20) if kind is int else pa.bool_())
        return _Column(name, (name,), (f"CAST({name} AS VARCHAR)",))
    folded = [None if value is None else value.casefold() for value in values]
    is_encoded = not all(value is None or _is_storable(value) for value in values)
    if is_encoded:
        folded, values = ([v and _encoded(v) for v in each] for each in (folded, values))
    arrays[name] = pa.array(folded, pa.string())
    if folded == values:
        return _Column(name, (name,), (name,), is_encoded=is_encoded)
    arrays[f"{name}_itself"] = pa.array(values, pa.string())
    return _Column(name, (name, f"{name}_itself"), (name,), is_encoded=is_encoded)


def _is_storable(text: str) -> bool:
    """Whether there is no half of a character in a text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encoded(text: str) -> str:
    """Its bytes as a text of their own, which sorts and is found as this one."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")
