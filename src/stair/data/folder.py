"""A folder out: all of its files, or nothing of them."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from stair.data.packages import reason
from stair.data.writing import atomic_write
from stair.errors import StairError


def write_folder(path: str | Path, files: Mapping[str, str], mark: str) -> None:
    """Write these files into a new or an empty folder, or over those of an earlier time: then one
    of them is there and begins with the mark. Other files stay, and on any failure all do."""
    target = Path(path).expanduser()
    check_folder(target, files, mark)
    beside = target.resolve().with_name(f".stair-{secrets.token_hex(8)}.tmp")
    try:
        try:
            for name, content in files.items():
                (beside / name).parent.mkdir(parents=True, exist_ok=True)
                atomic_write(beside / name, content)
            if not target.exists():
                beside.replace(target.resolve())
            else:
                _replace_files(beside, target.resolve(), list(files))
        finally:
            shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise StairError(f'cannot write the folder "{path}": {reason(error)}.') from error


def check_folder(path: Path, files: Mapping[str, str], mark: str) -> None:
    """Refuse a folder in which something else than these files is kept."""
    try:
        if not path.parent.is_dir():
            raise StairError(
                f"cannot write {path}: there is no folder {path.parent}; make it first"
            )
        if path.exists() and not path.is_dir():
            raise StairError(f"{path} is a file; expected the name of a folder to write")
        if (
            path.is_dir()
            and any(path.iterdir())
            and not any(_is_marked(path / n, mark) for n in files)
        ):
            raise StairError(
                f"the folder {path} has other files in it; name a new one, or one that an earlier "
                "export wrote"
            )
    except OSError as error:
        raise StairError(f"cannot write {path}: {reason(error)}.") from error


def _is_marked(path: Path, mark: str) -> bool:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8").startswith(mark)
    return False


def _replace_files(new: Path, target: Path, names: list[str]) -> None:
    """Each file in its place; those that were there come back where one of them fails."""
    kept = new / "before"
    done: list[str] = []
    try:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (kept / name).parent.mkdir(parents=True, exist_ok=True)
            if (target / name).exists():
                (target / name).replace(kept / name)
            done.append(name)
            (new / name).replace(target / name)
    except BaseException:
        for name in done:
            with contextlib.suppress(OSError):
                (target / name).unlink()
            with contextlib.suppress(OSError):
                (kept / name).replace(target / name)
        raise
