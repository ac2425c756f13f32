"""Reading a file: found, opened as what its ending says, and put into a Frame."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stair.data.csv import Reader, open_csv
from stair.data.databases import PARQUET, open_database, open_parquet
from stair.data.excel import open_excel
from stair.data.frame import Frame, Opened, Parts, Source, make_frame, unique_names
from stair.data.jsonlines import open_json_lines
from stair.data.packages import reason
from stair.data.text import PIPED, find_text
from stair.errors import StairError, did_you_mean, no_such_column, option

_KNOWN = (
    ".csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq, .xlsx, "
    ".duckdb, .ddb, .db, .sqlite and .sqlite3"
)
AT_ONCE: Final = 1 << 16  # rows of a batch
TEXT = frozenset({".csv", ".tsv", ".txt"})
JSON_LINES = frozenset({".jsonl", ".ndjson"})
EXCEL = frozenset({".xlsx"})
DATABASES = frozenset({".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3"})


def read(
    source: Source,
    *,
    columns: Iterable[str] | None = None,
    table: str | None = None,
    query: str | None = None,
    texts: Collection[str] = (),
    reader: Reader = None,
) -> Frame:
    """Read a file into a Frame; its ending says what it is.

    `columns` names the columns to read; the others are not even loaded where the format allows.
    `table` or `query` choose from a database, and `table` a sheet of an Excel file. `texts` names
    columns that are text whatever their values look like in this file: "007" and "true" as they
    stand. Of text files there are two readers, which give the same.
    """
    with opened_file(source, table, query, texts=texts, reader=reader) as opened:
        names, renamed = unique_names(opened.names)
        file = regular_file(source).name
        places = _places(columns, names, file)
        loaded = opened.load(places)
    notes = [*opened.notes, *(renamed[i] for i in places if i in renamed)]
    return make_frame([names[i] for i in places], loaded, file, notes, opened.empty)


@dataclass(frozen=True, eq=False)
class Batches:
    """A file that is read in batches of rows: the names of all its columns, how many rows it has
    where that is known, and frames of the wanted columns, one after the other."""

    names: tuple[str, ...]
    n_rows: int | None
    frames: Iterator[Frame]


@contextlib.contextmanager
def reading_in_batches(
    source: Source,
    wanted: Callable[[Sequence[str]], Collection[str]],
    *,
    table: str | None = None,
    query: str | None = None,
    texts: Collection[str] = (),
    at_once: int | None = None,
) -> Iterator[Batches]:
    """Read a file some rows at a time, each column as what all of its values are. Of the names of
    its columns `wanted` says which."""
    with opened_file(source, table, query, texts=texts) as opened:
        names, _ = unique_names(opened.names)
        chosen = set(wanted(names))
        places = [i for i, name in enumerate(names) if name in chosen] or [0]
        n_rows, parts = (opened.batches or _slices(opened))(places, at_once or AT_ONCE)
        file = regular_file(source).name

        def frames() -> Iterator[Frame]:
            is_empty = True
            for loaded in parts:
                if len(loaded[0][0]):
                    is_empty = False
                    yield make_frame([names[i] for i in places], loaded, file, opened.notes)
            if is_empty:
                raise StairError(f"{file} {opened.empty}; expected at least one row of values.")

        yield Batches(tuple(names), n_rows, frames())


def _slices(opened: Opened) -> Callable[[list[int], int], Parts]:
    """What can only be loaded as a whole, cut in slices."""

    def batches(places: list[int], at_once: int) -> Parts:
        loaded = opened.load(places)
        n_rows = len(loaded[0][0])
        starts = range(0, n_rows, at_once)
        return n_rows, ([(a[k : k + at_once], was) for a, was in loaded] for k in starts)

    return batches


def column_names(
    source: Source, *, table: str | None = None, query: str | None = None
) -> tuple[str, ...]:
    """The names that `read` would give, from the header or schema alone where there is one.

    JSON lines have no schema, so that all lines are read.
    """
    with opened_file(source, table, query, whole=False) as opened:
        names, _ = unique_names(opened.names)
    return tuple(names)


def _places(columns: Iterable[str] | None, names: Sequence[str], source: str) -> list[int]:
    """Where the wanted columns are, in the order of the file."""
    if columns is None:
        return list(range(len(names)))
    wanted = [columns] if isinstance(columns, str) else list(columns)
    if not wanted:
        raise StairError("columns= is empty; name at least one column, or leave it out.")
    place = {name: i for i, name in enumerate(names)}
    for name in wanted:
        if name not in place:
            raise no_such_column(str(name), names, source)
    return sorted({place[name] for name in wanted})


# Finding and opening a file ----------------------------------------------------------------------


def regular_file(source: Source, expected: str = f"a table ({_KNOWN})") -> Path:
    """The file, if there is one that can be read; otherwise what is in its place."""
    try:
        path = Path(source).expanduser()
    except (TypeError, RuntimeError):
        raise StairError(
            f"got {source!r} in place of a file; expected the path of a file."
        ) from None
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise StairError(no_such_file(path)) from None
    except (OSError, ValueError) as error:
        raise StairError(f"cannot read {_shown(path)}: {reason(error)}.") from None
    if stat.S_ISDIR(mode):
        raise StairError(f"{_shown(path)} is a folder; expected {expected}.")
    if not stat.S_ISREG(mode):
        raise StairError(f"{_shown(path)} is not a regular file; expected {expected}.")
    return path


def _shown(path: Path) -> str:
    return path.name or str(path)


def no_such_file(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f'no file "{path}": there is no folder "{folder}".'
    try:
        there = sorted(p.name for p in folder.iterdir() if p.is_file())
    except OSError:
        there = []
    where = "the current folder" if folder == Path() else f'"{folder}"'
    return f'no file "{path.name}" in {where}.{did_you_mean(path.name, there)}'


def is_text_file(source: Source) -> bool:
    """Whether a file is one in which every value is text: CSV and the like, by its name."""
    path = Path(source)
    endings = [s.lower() for s in path.suffixes[-2:] if s.lower() != ".gz"]
    return path.name == PIPED or endings[-1:] in [[ending] for ending in TEXT]


def ending_of(path: Path) -> str:
    """What a file is by its name: ".csv" also for .csv.gz; refused where we do not know it."""
    if path.name == PIPED:
        return ".csv"
    endings = [s.lower() for s in path.suffixes[-2:]]
    zipped = endings[-1:] == [".gz"]
    ending = "".join(endings[-2:-1] if zipped else endings[-1:])
    if ending not in TEXT | JSON_LINES and (zipped or ending not in DATABASES | EXCEL | PARQUET):
        got = f'the ending "{"".join(endings[-1:])}"' if endings else "no ending"
        raise StairError(f"{path.name} has {got}; the known ones are {_KNOWN}.")
    return ending


@contextlib.contextmanager
def opened_file(
    source: Source,
    table: str | None = None,
    query: str | None = None,
    *,
    whole: bool = True,
    texts: Collection[str] = (),
    reader: Reader = None,
) -> Iterator[Opened]:
    """Open a file as what its ending says, and say every trouble with it in one sentence. It is
    known to be sound to its end where the `whole` of it is looked at."""
    path = regular_file(source)
    ending = ending_of(path)
    _check_options(path, ending, table, query)
    with contextlib.ExitStack() as stack:
        try:
            with path.open("rb") as file:
                start = file.read(32)
            if ending in TEXT:
                opened = open_csv(find_text(path, start, whole), ending, reader, texts)
            elif ending in JSON_LINES:
                opened = open_json_lines(find_text(path, start, whole=True), texts)
            elif not start:
                raise StairError(f"{path.name} is empty (0 bytes); expected a table.")
            elif ending in PARQUET:
                opened = open_parquet(path, start, stack)
            elif ending in EXCEL:
                opened = open_excel(path, table, stack)
            else:
                opened = open_database(path, start, table, query, stack, texts)
            yield opened
        except OSError as error:
            raise StairError(f"cannot read {path.name}: {reason(error)}.") from error
        except UnicodeError as error:  # beyond the part that was checked, or a file that changed
            raise StairError(
                f"{path.name} is not text in one encoding; save it as UTF-8."
            ) from error


def _check_options(path: Path, ending: str, table: str | None, query: str | None) -> None:
    """An option that a format does not have is a misunderstanding, so say so."""
    if table is not None and query is not None:
        raise StairError(
            f"got both {option('table')} and {option('query')}; pass only one of them."
        )
    if table is not None and ending not in DATABASES | EXCEL:
        raise StairError(
            f"{option('table')} is for databases and Excel files; {path.name} is neither."
        )
    if query is not None and ending not in DATABASES:
        raise StairError(f"{option('query')} is for databases; {path.name} is not one.")
