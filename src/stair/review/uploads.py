"""Files that come in through the page: those of one folder, and what a person uploads to it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import errno
import hashlib
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import IO

from stair.data.databases import PARQUET
from stair.data.packages import reason
from stair.data.reading import DATABASES, EXCEL, JSON_LINES, TEXT, ending_of
from stair.errors import StairError
from stair.review.sizes import size
from stair.review.unpacked import check_expanded

__all__ = ["FileInfo", "Folder", "check_expanded", "clean_name", "receive"]

UPLOADS = "stair-review"
_TABLES = TEXT | JSON_LINES | PARQUET | EXCEL
_KNOWN = ".csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq and .xlsx"
_MOST_FILES = 500
_LONGEST_NAME = 120  # bytes
_MOST_OF_A_NAME = 1000


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file that may be opened, as it is shown in a list."""

    name: str
    """Relative to the folder, with "/"."""
    bytes: int
    time: dt.datetime
    """When it was last changed, with its time zone."""


class Folder:
    """The files that may be opened: those of one folder, and nothing outside of it."""

    def __init__(self, root: Path) -> None:
        try:
            self.root = Path(root).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise StairError(f'cannot open the folder "{root}": {reason(error)}.') from None
        if not self.root.is_dir():
            raise StairError(f'"{root}" is not a folder; expected the folder with the tables.')

    def files(self) -> list[FileInfo]:
        """The tables in the folder and among its uploads, in the order of their names."""
        names = [*_names_in(self.root), *(f"{UPLOADS}/{n}" for n in _names_in(self.uploads))]
        found: list[FileInfo] = []
        for name in sorted(names, key=lambda n: (n.casefold(), n)):
            with contextlib.suppress(StairError, OSError):
                about = self.find(name).stat()
                when = dt.datetime.fromtimestamp(about.st_mtime, dt.UTC).astimezone()
                found.append(FileInfo(name, about.st_size, when))
            if len(found) == _MOST_FILES:
                break
        return found

    def find(self, name: str) -> Path:
        """The file of this name, if it is one that may be opened."""
        shown = _shown(name)
        steps = name.split("/")
        if (
            any(step in ("", ".", "..") for step in steps)
            or "\\" in name
            or PureWindowsPath(name).drive
            or any(unicodedata.category(c) in ("Cc", "Cs") for c in name)
        ):
            raise StairError(f"{shown} is not the name of a file in this folder; choose one of it.")
        if len(steps) > 2 or (len(steps) == 2 and steps[0] != UPLOADS):
            raise StairError(f"{shown} is in a folder that is not open here; open that one.")
        _check_ending(Path(steps[-1]), shown)
        missing = StairError(f"there is no file {shown} in this folder; look at the list again.")
        if steps[-1].startswith("."):
            raise missing
        try:
            path = self.root.joinpath(*steps).resolve(strict=True)
            regular = stat.S_ISREG(path.stat().st_mode)
        except (OSError, ValueError, RuntimeError):
            raise missing from None
        if not path.is_relative_to(self.root):
            raise StairError(f"{shown} leads out of this folder; open the folder that it is in.")
        if not regular:
            raise StairError(f"{shown} is not a regular file; expected a table in a file.")
        _check_ending(path, shown)  # a link may have another ending than what it leads to
        return path

    @property
    def uploads(self) -> Path:
        """Where uploads go."""
        return self.root / UPLOADS

    def make_uploads(self) -> Path:
        """The folder for uploads, made where it is missing."""
        try:
            self.uploads.mkdir(exist_ok=True)
            if self.uploads.resolve(strict=True) != self.uploads:
                raise StairError(f'"{UPLOADS}" leads out of this folder; remove that link.')
        except FileExistsError:
            raise StairError(f'"{UPLOADS}" is in the way of uploads; rename that file.') from None
        except (OSError, RuntimeError) as error:
            raise StairError(f'cannot make the folder "{UPLOADS}": {reason(error)}.') from None
        return self.uploads


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []


def _shown(name: str) -> str:
    """A name that may be anything, as part of a sentence."""
    kept = "".join(c if c.isprintable() else "�" for c in name)
    return f'"{kept if len(kept) <= 100 else kept[:99] + "…"}"'


def _check_ending(path: Path, shown: str) -> None:
    try:
        ending = ending_of(path)
    except StairError:
        raise StairError(f"{shown} is not a table by its ending; expected {_KNOWN}.") from None
    if ending in DATABASES:
        # A view in a DuckDB file can read other files of this machine.
        raise StairError(
            f"{shown} is a database, which the page does not open; name it on the command line: "
            f"stair review FILE"
        )
    if ending not in _TABLES:
        raise StairError(f"{shown} is not a table by its ending; expected {_KNOWN}.")


# A person's name for a file, made harmless -------------------------------------------------------

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)
_KEPT = frozenset(" .-_()")


def clean_name(name: str) -> str:
    """The name as far as it is fit for every disk; refused where its ending is not a table's."""
    last = re.split(r"[/\\]", name)[-1]
    stem, ending = _split(last)
    _check_ending(Path(f"table{ending}"), _shown(last))
    normal = unicodedata.normalize("NFC", stem)
    kept = "".join(c if c in _KEPT or unicodedata.category(c)[0] in "LMN" else "\0" for c in normal)
    stem = _trimmed(re.sub("\0+", "_", kept), _LONGEST_NAME - len(ending.encode()))
    if _RESERVED.fullmatch(stem.split(".")[0].strip()):
        stem = _trimmed(f"_{stem}", _LONGEST_NAME - len(ending.encode()))
    return stem + ending


def _split(name: str) -> tuple[str, str]:
    """What comes before the ending, and the ending in small letters."""
    found = re.fullmatch(r"(.*?)((?:\.[A-Za-z0-9]+)?\.gz|\.[A-Za-z0-9]+)?", name, re.I | re.S)
    assert found is not None  # it also fits a name without any ending
    return found[1], (found[2] or "").lower()


def _trimmed(stem: str, most: int) -> str:
    """At most so many bytes, with nothing odd at either end."""
    cut = stem.lstrip(" .-").encode()[:most].decode(errors="ignore").rstrip(" .")
    return cut or "table"


# Receiving ---------------------------------------------------------------------------------------


async def receive(folder: Folder, name: str, stream: AsyncIterator[bytes], most: int) -> Path:
    """Write an upload into the folder: all of it under its name, or nothing.

    The same content under the same name is the same file, so that verdicts about it are found
    again; other content gets a number.
    """
    wanted = clean_name(name)
    uploads = folder.make_uploads()
    beside = uploads / f".stair-{secrets.token_hex(8)}.tmp"
    digest, length = hashlib.sha256(), 0
    with _vanishing(beside, wanted) as file:
        async for block in stream:
            length += len(block)
            if length > most:
                raise StairError(
                    f'"{wanted}" is larger than {size(most)}, the most that can be uploaded; '
                    f"open it from the command line: stair review FILE"
                )
            digest.update(block)
            file.write(block)
        if length == 0:
            raise StairError(f'"{wanted}" is empty (0 bytes); expected a table.')
        await asyncio.to_thread(_to_disk, file)
        return await asyncio.to_thread(_place, beside, uploads, wanted, digest.digest(), length)


@contextlib.contextmanager
def _vanishing(beside: Path, wanted: str) -> Iterator[IO[bytes]]:
    """A file under a name of its own that is gone afterwards, whatever happens."""
    try:
        try:
            with beside.open("xb") as file:
                yield file
        finally:
            with contextlib.suppress(FileNotFoundError):
                beside.unlink()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StairError(
                f'the disk is full, so "{wanted}" was not kept; free some space and try again.'
            ) from error
        raise StairError(f'cannot keep "{wanted}": {reason(error)}.') from error


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _place(beside: Path, uploads: Path, wanted: str, digest: bytes, length: int) -> Path:
    """Give the file its name, or the next free one; where it is there already, that is the one."""
    for number in range(1, _MOST_OF_A_NAME + 1):
        target = uploads / _numbered(wanted, number)
        if _claim(beside, target):
            return target
        if _same_content(target, digest, length):
            return target
    raise StairError(f'there are {_MOST_OF_A_NAME} files called "{wanted}"; choose another name.')


def _numbered(name: str, number: int) -> str:
    if number == 1:
        return name
    stem, ending = _split(name)
    tail = f" ({number}){ending}"
    return _trimmed(stem, _LONGEST_NAME - len(tail.encode())) + tail


def _claim(beside: Path, target: Path) -> bool:
    """Give the file this name unless it is taken; two uploads at once never get the same."""
    try:
        os.link(beside, target)
    except FileExistsError:
        return False
    except OSError:  # a disk without hard links: take the name first, then put the file there
        try:
            with target.open("xb"):
                pass
        except FileExistsError:
            return False
        try:
            beside.replace(target)
        except BaseException:
            target.unlink()
            raise
    with contextlib.suppress(OSError):  # not every system can do this for folders
        place = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(place)
        finally:
            os.close(place)
    return True


def _same_content(path: Path, digest: bytes, length: int) -> bool:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_size != length:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest() == digest
