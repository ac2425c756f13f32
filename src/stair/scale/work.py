"""The folder of a run: codes, levels that are done, and what DuckDB spills.

The folder's name is made from what the run is about, so that a run that died finds its folder
again. It is removed when a run ends, well or badly, unless somebody chose the place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from stair.columns import Binned, Categories, Column, Numbers, Times
from stair.engines.histograms import Division
from stair.errors import StairError
from stair.io import atomic_write
from stair.io.packages import reason
from stair.levels import Known
from stair.scale.coding import Coding
from stair.search import Split
from stair.table import Field

FORMAT: Final = 1  # of what is kept in the folder


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A table as codes: all that is needed to learn, and to say what was learned from."""

    coding: Coding
    classes: tuple[Any, ...]
    positive: int | None
    meaning: str
    notes: tuple[str, ...]
    totals: tuple[int, ...]
    left_out: dict[str, str]
    n_columns: int
    source: str


@contextlib.contextmanager
def work_folder(place: str | os.PathLike[str] | None, about: Any) -> Iterator[Path]:
    """A folder for a run about this; it stays only where somebody chose the place."""
    key = hashlib.sha256(json.dumps([FORMAT, about], default=str).encode()).hexdigest()[:16]
    base = Path(tempfile.gettempdir() if place is None else place).expanduser()
    if not base.is_dir():
        raise StairError(f'there is no folder "{base}" to work in; make it first.')
    with contextlib.ExitStack() as stack:
        try:
            folder = _claimed(base / f"stair-{_user()}{key}", stack)
            if folder is None:  # another run is about the same: work apart from it
                folder = Path(tempfile.mkdtemp(prefix="stair-", dir=base))
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
            elif place is None:
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
            spill = folder / "spill"
            shutil.rmtree(spill, ignore_errors=True)
            spill.mkdir()
            stack.callback(shutil.rmtree, spill, ignore_errors=True)
        except OSError as error:
            raise StairError(f'cannot work in "{base}": {reason(error)}.') from error
        yield folder


def _user() -> str:
    return f"{os.getuid()}-" if hasattr(os, "getuid") else ""


def _claimed(folder: Path, stack: contextlib.ExitStack) -> Path | None:
    """The folder, made or found, for this process alone; None where another one has it."""
    try:
        import fcntl
    except ImportError:  # without locks there is no telling who else is there
        return None
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        return None
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    stack.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_ino != (folder / "lock").stat().st_ino:
            return None  # its owner has just removed it
    except OSError:
        return None
    return folder


# --- what is written down -------------------------------------------------------------------------


def save_coded(folder: Path, coded: Coded) -> None:
    coding = coded.coding
    document = {
        "fields": [asdict(field) for field in coding.fields],
        "columns": [_column_to_json(column) for column in coding.columns],
        "classes": coded.classes,
        "positive": coded.positive,
        "meaning": coded.meaning,
        "notes": coded.notes,
        "totals": coded.totals,
        "left_out": coded.left_out,
        "n_columns": coded.n_columns,
        "source": coded.source,
    }
    atomic_write(folder / "coded.json", json.dumps(document))


def load_coded(folder: Path) -> Coded | None:
    """What an earlier run has left, or None where it left nothing that is whole."""
    try:
        found = json.loads((folder / "coded.json").read_text(encoding="utf-8"))
        fields = tuple(Field(**each) for each in found["fields"])
        columns = tuple(_column_from_json(each) for each in found["columns"])
        return Coded(
            Coding(fields, columns, ()),
            tuple(found["classes"]),
            found["positive"],
            found["meaning"],
            tuple(found["notes"]),
            tuple(found["totals"]),
            found["left_out"],
            found["n_columns"],
            found["source"],
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _column_to_json(column: Column) -> dict[str, Any]:
    if isinstance(column, Categories):
        return {"name": column.name, "attribute": column.attribute, "values": column.values}
    assert isinstance(column, Binned)
    found = {"name": column.name, "attribute": column.attribute, "tops": column.tops}
    if column.bottoms != column.tops:
        found["bottoms"] = column.bottoms
    if isinstance(column.inner, Times):
        found["whole_days"] = column.inner.whole_days
    return found


def _column_from_json(found: dict[str, Any]) -> Column:
    name, attribute = found["name"], found["attribute"]
    if "values" in found:
        return Categories(name, attribute, tuple(found["values"]))
    inner: Numbers | Times = Numbers(name, attribute)
    if "whole_days" in found:
        inner = Times(name, attribute, found["whole_days"])
    tops = tuple(found["tops"])
    return Binned(inner, tops, tuple(found.get("bottoms", tops)))


def save_levels(folder: Path, max_rule_length: int, known: Known) -> None:
    """The divisions that are known; they depend on the longest rule and on no other setting."""
    document = {
        "passes": known.n_passes,
        "divisions": {
            path: None if division is None else [
                list(division.split), division.below, division.above, division.left,
                division.right, division.has_missing, division.left_counts,
            ]
            for path, division in known.divisions.items()
        },
    }  # fmt: skip
    atomic_write(folder / f"levels-{max_rule_length}.json", json.dumps(document))


def load_levels(folder: Path, max_rule_length: int) -> Known:
    try:
        path = folder / f"levels-{max_rule_length}.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        divisions = {
            path: None if each is None else Division(
                Split(*each[0]), each[1], each[2], tuple(each[3]), tuple(each[4]), each[5],
                tuple(each[6]),
            )
            for path, each in found["divisions"].items()
        }  # fmt: skip
        return Known(divisions, found["passes"])
    except (OSError, ValueError, KeyError, TypeError):
        return Known()
