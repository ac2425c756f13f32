"""CSV by DuckDB: faster, and believed only where it reads as the plain reader does."""

from __future__ import annotations

import codecs
import contextlib
import glob
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stair.data.arrays import EXACT, from_array
from stair.data.csv_plain import Layout, blocks
from stair.data.frame import Loaded
from stair.data.packages import duckdb_in_memory, optional
from stair.data.text import BLOCK, LONGEST_LINE, TextFile
from stair.data.values import MISSING, Piece, as_text, join_pieces, typed

if TYPE_CHECKING:
    import duckdb

# A strict subset of the numbers in values.py: what fits is read alike by both, the rest goes there.
_SQL_NUMBER = r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SQL_WHOLE = r"[+-]?(0|[1-9][0-9]*)"


# DuckDB's time and memory for a query grow with more than the square of its columns.
_WIDEST = 256


class Unsure(Exception):  # noqa: N818 - not a failure, only a reason to read otherwise
    """DuckDB may read this file differently from the plain reader."""


def by_duckdb(layout: Layout, forced: bool) -> list[Loaded] | None:
    """Read with DuckDB, several times faster; None where the plain reader has to do it.

    DuckDB is more lenient than we are (it forgives a trailing separator, for example), so that it
    is only believed where we can check that it found the same fields: see `_shape`. An error
    that it reports is left to the plain reader too, which says it in our words or reads the file.
    """
    duckdb = optional("duckdb")
    if duckdb is None:
        return None
    try:
        with _utf8_file(layout.text) as path, duckdb_in_memory(duckdb) as con:
            return _duckdb_csv(con, path, layout)
    except (Unsure, duckdb.Error, OSError, UnicodeError):
        if forced:
            raise
        return None


@contextlib.contextmanager
def _utf8_file(text: TextFile) -> Iterator[Path]:
    """The file itself where DuckDB can read it, else a copy in UTF-8 that does not outlive us."""
    if not text.zipped and text.encoding in ("utf-8", "utf-8-sig"):
        yield text.path.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="stair-") as folder:
        copy = Path(folder) / "table.csv"
        with text.characters() as source, copy.open("w", encoding="utf-8", newline="") as target:
            while block := source.read(BLOCK):
                target.write(block)
        yield copy


def _duckdb_csv(con: duckdb.DuckDBPyConnection, path: Path, layout: Layout) -> list[Loaded]:
    shape = _shape(path, layout)
    width, separator = len(layout.header), layout.separator
    names = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    source = (
        "read_csv(?, delim = ?, header = true, quote = '\"', escape = '\"', auto_detect = false, "
        f"columns = {{{names}}}, compression = 'none', hive_partitioning = false, "
        f"strict_mode = true, null_padding = false, ignore_errors = false, "
        f"parallel = {'false' if shape.quotes else 'true'})"
    )
    given = [glob.escape(str(path)), separator]

    guesses = _guesses(layout)
    counts = ["count(*)", "0"]
    if shape.quotes:
        inside = (
            f"CASE WHEN contains(c{i}, chr({ord(separator)})) "
            f"THEN length(c{i}) - length(replace(c{i}, chr({ord(separator)}), '')) ELSE 0 END"
            for i in range(width)
        )
        counts[1] = f"coalesce(sum({' + '.join(inside)}), 0)"
    missing = ", ".join(f"'{token}'" for token in sorted(MISSING))
    tested = [i for i, guess in guesses.items() if guess in ("int", "float", "none")]
    for i in tested:
        counts.append(f"count(*) FILTER (c{i} IS NULL OR c{i} IN ({missing}))")
        for pattern, kind in ((_SQL_NUMBER, "DOUBLE"), (_SQL_WHOLE, "BIGINT")):
            fits = f"regexp_full_match(c{i}, '{pattern}') AND TRY_CAST(c{i} AS {kind}) IS NOT NULL"
            wanted = kind == "DOUBLE" or guesses[i] != "float"
            counts.append(f"count(*) FILTER ({fits})" if wanted else "-1")
        # A whole number that BIGINT cannot hold is left to the plain reader, which can.
        written = f"count(*) FILTER (regexp_full_match(c{i}, '{_SQL_WHOLE}'))"
        counts.append(written if guesses[i] != "float" else "-1")
    found = con.execute(f"SELECT {', '.join(counts)} FROM {source}", given).fetchall()[0]
    n_rows, inside_values = int(found[0]), int(found[1])
    inside_header = sum(name.count(separator) for name in layout.header)
    if shape.separators != (width - 1) * (n_rows + 1) + inside_values + inside_header:
        raise Unsure("a row may have too many fields")

    kinds = dict.fromkeys(layout.places, "text")
    for k, i in enumerate(tested):
        absent, number, whole, written_whole = found[2 + 4 * k : 6 + 4 * k]
        if absent + number == n_rows and (whole == written_whole or not number):
            kinds[i] = "int" if whole == number else "float"
    wanted_sql = {
        "text": "coalesce(c{0}, '') AS c{0}",
        "int": "TRY_CAST(c{0} AS BIGINT) AS c{0}",
        "float": "coalesce(TRY_CAST(c{0} AS DOUBLE), 'nan'::DOUBLE) AS c{0}",
    }
    select = ", ".join(wanted_sql[kind].format(i) for i, kind in kinds.items())
    arrays = con.execute(f"SELECT {select} FROM {source}", given).fetchnumpy()
    columns: list[Loaded] = []
    for i, kind in kinds.items():
        found_array = arrays.pop(f"c{i}")
        array = np.ma.getdata(found_array)
        if len(array) != n_rows:
            raise Unsure("the file changed while it was read")
        if kind == "int":
            columns.append(from_array("", found_array))
            continue
        piece: Piece = (kind, array)
        if kind == "text":
            values = array.tolist()
            piece = (kind, as_text(values, None)) if i in layout.texts else typed(values)
        if kind == "float":
            array += 0.0  # no negative zero
            if (np.abs(array) >= EXACT).any():  # DuckDB may have rounded a whole number
                asked = f"SELECT coalesce(c{i}, '') AS c FROM {source}"
                texts = con.execute(asked, given).fetchnumpy()["c"]
                piece = typed(np.ma.getdata(texts).tolist())
        joined = join_pieces([piece])
        assert joined is not None  # one piece always agrees with itself
        columns.append(joined)
    return columns


def _guesses(layout: Layout) -> dict[int, str]:
    """What the first rows look like: only columns that look like numbers are tested in SQL."""
    for columns in blocks(layout, layout.places, 1000):
        return {
            i: "text" if i in layout.texts else typed(values)[0]
            for i, values in zip(layout.places, columns, strict=True)
        }
    return {}


@dataclass
class _Shape:
    """What can be counted in a file without taking it apart."""

    separators: int = 0
    quotes: bool = False


def _shape(path: Path, layout: Layout) -> _Shape:
    """Count what tells whether DuckDB finds the same fields as we do; refuse where it might not.

    Refused are files with one column (a blank line is a value to DuckDB), with line ends of more
    than one kind, that begin with a blank, and with blanks around a quoted field; and wide ones,
    with which DuckDB is slow beyond measure.
    """
    separator = layout.separator
    if len(layout.header) == 1:
        raise Unsure("one column")
    if len(layout.header) > _WIDEST:
        raise Unsure("too many columns")
    mark = separator.encode()
    shape = _Shape()
    feeds = returns = pairs = 0
    with path.open("rb") as file:
        first = True
        while block := file.read(BLOCK):
            rest = file.readline(LONGEST_LINE)
            if len(rest) == LONGEST_LINE:
                raise Unsure("a very long line")
            block += rest  # a block ends where a line ends: nothing is cut in two
            if first and block.removeprefix(codecs.BOM_UTF8)[:1] in (b"\r", b"\n", b" ", b"\t"):
                raise Unsure("a blank at the top")
            first = False
            shape.separators += block.count(mark)
            feeds += block.count(b"\n")
            returns += block.count(b"\r")
            pairs += block.count(b"\r\n")
            if b'"' in block:
                shape.quotes = True
                if _has_stray_blanks(block, mark):
                    raise Unsure("blanks around quotes")
    if returns and not returns == pairs == feeds:
        raise Unsure("several kinds of line ends")
    return shape


def _has_stray_blanks(block: bytes, mark: bytes) -> bool:
    """Whether blanks lie between a quote and the edge of a field; DuckDB drops them there."""
    blanks = [blank for blank in (b" ", b"\t") if blank != mark]
    edges = [mark, b"\r", b"\n", *blanks]
    return block[-1:] in blanks or any(
        (blank + b'"' in block and any(edge + blank + b'"' in block for edge in edges))
        or (b'"' + blank in block and any(b'"' + blank + edge in block for edge in edges))
        for blank in blanks
    )
