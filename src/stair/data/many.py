"""A table in one file or in many: those of a folder, or of a pattern such as data/*.csv.

Many files are read one after the other, in the order of their names, as if they were one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stair.data import reading
from stair.data.frame import Array, Frame, Source
from stair.data.reading import DATABASES, JSON_LINES, TEXT, Batches, ending_of
from stair.data.stream import check_same, found_files
from stair.data.values import Piece, join_pieces, whole_numbers
from stair.data.witnesses import few_of
from stair.errors import StairError, folded, option
from stair.progress import Words

_WORDS = {"int": "numbers", "float": "numbers", "bool": "true and false", "date": "times",
          "zoned": "times with a zone", "text": "text", "duration": "durations",
          "clock": "times of day", "described": "lists or records"}  # fmt: skip


def read(
    source: Source,
    *,
    columns: Iterable[str] | None = None,
    table: str | None = None,
    query: str | None = None,
    texts: Collection[str] = (),
    say: Callable[[str], object] | None = None,
) -> Frame:
    """Read a file, all files of a folder, or all that a pattern means, into one Frame.

    The options are those of `reading.read`; `say` is told how far it is.
    """
    files = _files(source, table, query)
    if files is None:
        return reading.read(source, columns=columns, table=table, query=query, texts=texts)
    wanted = None if columns is None else list(columns)
    frames = []
    for number, file in enumerate(files, start=1):
        if say is not None:
            words = f"reading {file.name}: file {number} of {len(files)}"
            say(Words(words, (number - 1) / len(files)))
        if wanted is not None:
            _check_columns(files[0], file)
        frames.append(reading.read(file, columns=wanted, texts=texts))
        _check_names(files, frames)
    joined, notes = {}, dict.fromkeys(note for frame in frames for note in frame.notes)
    types = dict(frames[0].types)
    for name in frames[0].columns:
        pieces = [_piece(frame.columns[name], frame.types.get(name, "")) for frame in frames]
        found = _joined(pieces)
        if found is None and ending_of(files[0]) in TEXT | JSON_LINES:  # as in one file: all text
            again = [reading.read(f, columns=[name], texts=[name]).columns[name] for f in files]
            found = np.concatenate(again), ""
        if found is None:
            raise _unlike(name, files, pieces)
        joined[name] = found[0]
        types.pop(name, None)
        if found[1]:
            types[name] = found[1]
    n_rows = sum(frame.n_rows for frame in frames)
    return replace(
        frames[0], columns=joined, n_rows=n_rows, source=os.fspath(source), notes=tuple(notes),
        types=types,
    )  # fmt: skip


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
    """Read a file, all files of a folder, or all that a pattern means, some rows at a time; each
    column as what all of its values are. Of the names of its columns `wanted` says which."""
    files = _files(source, table, query)
    if files is None or len(files) == 1:
        place = source if files is None else files[0]
        with reading.reading_in_batches(
            place, wanted, table=table, query=query, texts=texts, at_once=at_once
        ) as found:
            yield found
        return
    names = reading.column_names(files[0])
    chosen = set(wanted(names))
    known = [_look_at(files, k, names, chosen, texts, at_once) for k in range(len(files))]
    pieces = {name: [each.pieces[name] for each in known] for name in known[0].pieces}
    again = {name for name, each in pieces.items() if _joined(each) is None}
    if again and ending_of(files[0]) not in TEXT | JSON_LINES:
        name = next(name for name in pieces if name in again)
        raise _unlike(name, files, pieces[name])

    def frames() -> Iterator[Frame]:
        for file in files:
            with reading.reading_in_batches(
                file, lambda _: chosen, texts=[*texts, *again], at_once=at_once
            ) as found:
                for frame in found.frames:
                    yield _as_all(frame, pieces, again, os.fspath(source))

    n_rows = [each.n_rows for each in known]
    yield Batches(names, sum(n_rows), frames())


@dataclass(frozen=True, slots=True)
class _Looked:
    """What is known of one of several files: few values of each column, and how many rows."""

    pieces: dict[str, Piece]
    n_rows: int


def _look_at(
    files: Sequence[Path],
    place: int,
    names: Sequence[str],
    chosen: Collection[str],
    texts: Collection[str],
    at_once: int | None,
) -> _Looked:
    few: dict[str, Array] = {}
    types: dict[str, str] = {}
    n_rows = 0
    with reading.reading_in_batches(
        files[place], lambda _: chosen, texts=texts, at_once=at_once
    ) as found:
        first, last = dict.fromkeys(names, ""), dict.fromkeys(found.names, "")
        check_same([(files[0].name, first), (files[place].name, last)])
        for frame in found.frames:
            n_rows += frame.n_rows
            types |= frame.types
            for name, array in frame.columns.items():
                own = few_of(array)
                few[name] = few_of(np.concatenate([few[name], own])) if name in few else own
    return _Looked({name: _piece(few[name], types.get(name, "")) for name in few}, n_rows)


def _as_all(
    frame: Frame, pieces: Mapping[str, Sequence[Piece]], again: Collection[str], source: str
) -> Frame:
    """Rows of one file as they are among those of all."""
    columns, types = dict(frame.columns), dict(frame.types)
    for name, array in frame.columns.items():
        if name in again:
            columns[name] = array.astype(object)
            types.pop(name, None)
            continue
        joined = _joined([_piece(array, frame.types.get(name, "")), *pieces[name]])
        assert joined is not None  # as the files do, their parts agree
        columns[name] = joined[0][: frame.n_rows]
        types.pop(name, None)
        if joined[1]:
            types[name] = joined[1]
    return replace(frame, columns=columns, types=types, source=source)


def column_names(
    source: Source, *, table: str | None = None, query: str | None = None
) -> tuple[str, ...]:
    """The names that `read` would give."""
    files = _files(source, table, query)
    return reading.column_names(source if files is None else files[0], table=table, query=query)


def is_many(source: Source) -> bool:
    """Whether this means several files, or may do so."""
    path = Path(source).expanduser()
    if path.is_dir():
        return str(source) != ""  # which is no name of the folder that one is in
    return not path.exists() and bool(set("*?[") & set(str(path)))


def _files(source: Source, table: str | None, query: str | None) -> list[Path] | None:
    """The files of a folder or a pattern; None for a single file, which may not be there."""
    try:
        if not is_many(source):
            return None
    except (OSError, ValueError, TypeError, RuntimeError):
        return None  # who reads it says what is wrong
    files = found_files(source)
    kinds = {ending if (ending := ending_of(f)) not in TEXT else ".csv" for f in files}
    if len(kinds) > 1:
        raise StairError(
            f"the folder {source} mixes {folded(sorted(kinds))} files; expected one kind."
        )
    if kinds <= DATABASES and len(files) > 1:
        raise StairError(f"{source} means {len(files)} databases; expected one.")
    if (table is not None or query is not None) and not kinds <= DATABASES:
        raise StairError(
            f"{option('table')} and {option('query')} are for one file, but {source} may be many."
        )
    return files


def _check_names(files: Sequence[Path], frames: Sequence[Frame]) -> None:
    """The file that was read last has the columns of the first."""
    last = dict.fromkeys(frames[-1].columns, "")
    first = dict.fromkeys(frames[0].columns, "")
    check_same([(files[0].name, first), (files[len(frames) - 1].name, last)])


def _check_columns(first: Path, file: Path) -> None:
    """Where only some columns are wanted, too: files of one table have the same."""
    names = [(f.name, dict.fromkeys(reading.column_names(f), "")) for f in (first, file)]
    check_same(names)


def _piece(array: Array, was: str) -> Piece:
    """What a column of one file holds."""
    if was in ("duration", "clock", "described"):
        return was, array
    kind = {"f": "float", "i": "int", "u": "int", "b": "bool", "M": was or "date"}.get(
        array.dtype.kind
    )
    if kind is None:
        present = next((v for v in array.tolist() if v is not None), None)
        kind = {bool: "bool", int: "int", type(None): "none"}.get(type(present), "text")
    is_empty = array.dtype.kind == "f" and bool(np.isnan(array).all())
    is_empty |= array.dtype.kind == "M" and bool(np.isnat(array).all())
    return ("none", np.full(len(array), np.nan)) if kind == "none" or is_empty else (kind, array)


def _joined(pieces: Sequence[Piece]) -> tuple[Array, str] | None:
    """One column, and what it was; None where the files do not agree."""
    kinds = {kind for kind, _ in pieces} - {"none"}
    if len(kinds) == 1 and (kind := min(kinds)) in ("duration", "clock", "described"):
        fill = None if kind == "described" else np.nan
        arrays = [np.full(len(a), fill, a.dtype) if k == "none" else a for k, a in pieces]
        return np.concatenate(arrays), kind
    if kinds == {"int", "float"} and all(whole_numbers(a) for k, a in pieces if k == "float"):
        return join_pieces([("int" if k == "float" else k, a) for k, a in pieces])
    return join_pieces(pieces)


def _unlike(name: str, files: Sequence[Path], pieces: Sequence[Piece]) -> StairError:
    known = [(f.name, _WORDS[kind]) for f, (kind, _) in zip(files, pieces, strict=True)
             if kind != "none"]  # fmt: skip
    first, then = known[0]
    other, now = next(each for each in known if each[1] != then)
    return StairError(
        f'"{name}" holds {then} in {first} but {now} in {other}; expected the same in all files.'
    )


def below(first: Frame, second: Frame) -> tuple[Frame, list[str]]:
    """Two tables as one, the rows of the second below those of the first: the columns that both
    have, and the names of those that hold other kinds of values in one than in the other."""
    joined: dict[str, Array] = {}
    types: dict[str, str] = {}
    unlike = []
    for name in (n for n in first.columns if n in second.columns):
        pieces = [_piece(frame.columns[name], frame.types.get(name, ""))
                  for frame in (first, second)]  # fmt: skip
        found = _joined(pieces)
        if found is None:
            unlike.append(name)
            continue
        joined[name] = found[0]
        if found[1]:
            types[name] = found[1]
    notes = dict.fromkeys((*first.notes, *second.notes))
    n_rows = first.n_rows + second.n_rows
    return Frame(joined, n_rows, first.source, tuple(notes), types), unlike
