"""Text files: bytes to characters."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from stair.errors import StairError

HEAD = 1 << 20
BLOCK = 1 << 22
LONGEST_LINE = 1 << 25
PIPED = "standard input"  # the name of a file that holds all of it: CSV, for it has no ending


@dataclass(frozen=True)
class TextFile:
    """A text file of which we know how its bytes become characters."""

    path: Path
    zipped: bool
    encoding: str
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.path.name

    @contextlib.contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """The bytes, unzipped."""
        with self.path.open("rb") as raw, _gzip_in_words(self.name):
            if self.zipped:
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield cast(BinaryIO, unzipped)
            else:
                yield raw

    @contextlib.contextmanager
    def characters(self) -> Iterator[TextIO]:
        """The characters, with the ends of lines as they are in the file."""
        with self.binary() as raw:
            wrapper = io.TextIOWrapper(raw, encoding=self.encoding, newline="")
            try:
                yield wrapper
            finally:
                wrapper.detach()

    @contextlib.contextmanager
    def lines(self) -> Iterator[Iterator[str]]:
        """The lines, with their ends as they are in the file; refused where one has no end."""
        with self.characters() as file:
            yield _lines(self.name, file)


def _lines(name: str, file: TextIO) -> Iterator[str]:
    number = 1
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and line[-1] not in "\r\n":
            raise StairError(
                f"{name} line {number} is longer than {LONGEST_LINE:,} characters; "
                f"expected a table with one row in each line."
            )
        yield line
        number += 1


@contextlib.contextmanager
def _gzip_in_words(name: str) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise StairError(
            f"{name} ends too early; the gzip file is cut off, copy it again."
        ) from None
    except (gzip.BadGzipFile, zlib.error):
        raise StairError(f"{name} is not a sound gzip file; copy it again.") from None


def find_text(path: Path, start: bytes, whole: bool) -> TextFile:
    """Find out how the bytes become characters, and that all of them do (or the first ones)."""
    zipped = path.suffix.lower() == ".gz" or start.startswith(b"\x1f\x8b")
    with TextFile(path, zipped, "").binary() as file:
        start = file.read(64)
    _check_disguise(path.name, start)
    choices = ["utf-8", "cp1252"]
    if start.startswith(codecs.BOM_UTF8):
        choices = ["utf-8-sig"]
    elif start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        choices = ["utf-16"]
    why = ""
    for choice in choices:
        text = TextFile(path, zipped, choice)
        problem = _trouble(text, whole)
        if problem is None:
            spoken = {"cp1252": "Windows-1252", "utf-16": "UTF-16"}.get(choice)
            said = (f"{path.name} is not in UTF-8; it is read as {spoken}",) if spoken else ()
            return TextFile(path, zipped, choice, said)
        why = why or problem
    for first, what in _OTHER_FILES.items():
        if start.startswith(first):
            raise StairError(f"{path.name} is {what}, not text; {_advice(path.name)}.")
    raise StairError(
        f"{path.name} is not text in UTF-8, UTF-16 or Windows-1252 ({why}); "
        f"if it is text, save it as UTF-8."
    )


# How files begin that are often saved under the name of a table. Only once they turned out not to
# be text: a column may well be called PAR1.
_OTHER_FILES = {
    b"PK\3\4": "a zip file or an Excel file",
    b"PAR1": "a Parquet file",
    b"SQLite format 3\0": "a SQLite database",
    b"\x1f\x8b": "zipped twice",
}


def _check_disguise(name: str, start: bytes) -> None:
    """Pages and papers are text too, and would be read as a table of one column."""
    first = start.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if first.startswith((b"<!doctype html", b"<html")):
        raise StairError(
            f"{name} is a web page, not a table; perhaps it was saved from a page that asks to "
            f"sign in."
        )
    if first.startswith(b"%pdf-"):
        raise StairError(f"{name} is a PDF, not a table; {_advice(name)}.")


def _advice(name: str) -> str:
    return "check its ending" if name != PIPED else "save it to a file with its own ending"


# Control characters that no text has; they tell other files from text in Windows-1252.
_NOT_TEXT = re.compile("[\x01-\x08\x0e-\x19\x1c-\x1f]")


def _trouble(text: TextFile, whole: bool) -> str | None:
    """What speaks against this encoding, or None. Reads everything, or only the first part."""
    decoder = codecs.getincrementaldecoder(text.encoding)()
    left = math.inf if whole else HEAD
    with text.binary() as file:
        position = 0
        while left > 0:
            block = file.read(int(min(BLOCK, left)))
            left -= len(block)
            try:
                decoded = decoder.decode(block, final=not block)
            except UnicodeError as error:
                at = position + getattr(error, "start", 0)
                return f"the byte at about {at:,} does not belong"
            if "\0" in decoded:
                return "it has NUL bytes"
            if text.encoding == "cp1252" and _NOT_TEXT.search(decoded):
                return "it has control characters"
            if not block:
                break
            position += len(block)
    return None
