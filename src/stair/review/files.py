"""The files that the page may open: tables of one folder, and what a person drops on the page."""

from __future__ import annotations

import contextlib
import errno
import re
import tempfile
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stair.data.databases import PARQUET
from stair.data.packages import reason
from stair.data.reading import DATABASES, EXCEL, JSON_LINES, TEXT, ending_of
from stair.errors import StairError
from stair.review.guard import size

UPLOADS: Final = "stair-review"
TABLES: Final = TEXT | JSON_LINES | PARQUET | EXCEL
KNOWN: Final = ".csv, .tsv, .txt, .jsonl, .ndjson (each also with .gz), .parquet, .pq and .xlsx"
MOST_FILES: Final = 500
LONGEST_NAME: Final = 120  # bytes
RESERVED: Final = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class File:
    """A file that may be opened, as it is shown in a list."""

    name: str  # relative to the folder, with "/"
    bytes: int


class Folder:
    """The files that may be opened: those of one folder, and nothing outside of it."""

    def __init__(self, root: Path) -> None:
        try:
            self.root = Path(root).resolve(strict=True)
        except (OSError, RuntimeError) as error:
            raise StairError(f'cannot open the folder "{root}": {reason(error)}.') from None
        if not self.root.is_dir():
            raise StairError(f'"{root}" is not a folder; expected the folder with the tables.')

    @property
    def uploads(self) -> Path:
        """Where uploads go."""
        return self.root / UPLOADS

    def files(self) -> list[File]:
        """The tables in the folder and among its uploads, in the order of their names."""
        names = [*_names_in(self.root), *(f"{UPLOADS}/{n}" for n in _names_in(self.uploads))]
        found: list[File] = []
        for name in sorted(names, key=lambda n: (n.casefold(), n)):
            with contextlib.suppress(StairError, OSError):
                found.append(File(name, self.find(name).stat().st_size))
            if len(found) == MOST_FILES:
                break
        return found

    def find(self, name: str) -> Path:
        """The file of this name, if it is one that may be opened. A name is looked for among those
        that are there, and so none leads anywhere else."""
        shown = _shown(name)
        is_upload = name.startswith(f"{UPLOADS}/")
        folder, last = (self.uploads if is_upload else self.root), name.removeprefix(f"{UPLOADS}/")
        _check_ending(Path(last), shown)
        missing = StairError(f"there is no file {shown} in this folder; look at the list again.")
        if last not in _names_in(folder):
            raise missing
        try:
            path = (folder / last).resolve(strict=True)
        except (OSError, RuntimeError):
            raise missing from None
        if not path.is_relative_to(self.root):
            raise StairError(f"{shown} leads out of this folder; open the folder that it is in.")
        if not path.is_file():
            raise StairError(f"{shown} is not a regular file; expected a table in a file.")
        _check_ending(path, shown)  # a link may have another ending than what it leads to
        return path

    async def receive(self, name: str, stream: AsyncIterator[bytes], most: int) -> Path:
        """One file that is sent to the page, all of it or nothing. It takes the place of an earlier
        one with its name; the verdicts on that one's rows are kept, as for any changed table."""
        wanted = clean_name(name)
        try:
            self._make_uploads()
            with tempfile.TemporaryDirectory(prefix=".", dir=self.uploads) as beside:
                path, length = Path(beside) / wanted, 0
                with path.open("xb") as file:
                    async for block in stream:
                        length += len(block)
                        if length > most:
                            raise StairError(
                                f'"{wanted}" is larger than {size(most)}, the most that can be '
                                f"uploaded; open it from the command line: stair review FILE"
                            )
                        file.write(block)
                if length == 0:
                    raise StairError(f'"{wanted}" is empty (0 bytes); expected a table.')
                return path.replace(self.uploads / wanted)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StairError(
                    f'the disk is full, so "{wanted}" was not kept; free some space and try again.'
                ) from error
            raise StairError(f'cannot keep "{wanted}": {reason(error)}.') from error

    def _make_uploads(self) -> None:
        try:
            self.uploads.mkdir(exist_ok=True)
        except FileExistsError:
            raise StairError(f'"{UPLOADS}" is in the way of uploads; rename that file.') from None
        if self.uploads.resolve(strict=True) != self.uploads:
            raise StairError(f'"{UPLOADS}" leads out of this folder; remove that link.')


def _names_in(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir() if not path.name.startswith(".")]
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
        ending = ""
    if ending in DATABASES:
        # A view in a DuckDB file can read other files of this machine.
        raise StairError(
            f"{shown} is a database, which the page does not open; name it on the command line: "
            f"stair review FILE"
        )
    if ending not in TABLES:
        raise StairError(f"{shown} is not a table by its ending; expected {KNOWN}.")


def clean_name(name: str) -> str:
    """A person's name for a file as far as it is fit for every disk; refused where its ending is
    not a table's."""
    last = re.split(r"[/\\]", name)[-1]
    found = re.search(r"((\.[a-z0-9]+)?\.gz|\.[a-z0-9]+)?\Z", last, re.IGNORECASE)
    ending = found[0].lower() if found else ""
    _check_ending(Path(f"table{ending}"), _shown(last))
    stem = unicodedata.normalize("NFC", last[: len(last) - len(ending)])
    kept = re.sub(r"[^\w .()-]+", "_", stem.encode(errors="ignore").decode()).lstrip(" .-")
    if RESERVED.fullmatch(kept.split(".")[0].strip()):
        kept = f"_{kept}"
    short = kept.encode()[: LONGEST_NAME - len(ending.encode())].decode(errors="ignore")
    return (short.rstrip(" .") or "table") + ending
