"""The folder of a run: bins, codes, levels that are done, and what DuckDB spills.

The folder's name is made from what the run is about, so that a run that died finds its folder
again. It is removed when a run ends, well or badly, unless somebody chose the place.
"""

from __future__ import annotations

import contextlib
import errno
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

import numpy as np

from stair.data import atomic_write
from stair.data.packages import reason
from stair.engines.histograms import Division
from stair.engines.search import Split
from stair.errors import StairError, option
from stair.learn.levels import Divisions
from stair.rules.columns import ANY_SIDE, Binned, Categories, Column, Numbers, Sides, Times
from stair.rules.schema import Field
from stair.scale.coding import Coded, Coder, Coding, Plan
from stair.verdict.codebook import Codebook
from stair.verdict.labels import Verdict

BINS_ARE_THERE: Final = "the bins of an earlier run are there"
CODES_ARE_THERE: Final = "the codes of an earlier run are there"
FORMAT: Final = 4  # of what is kept in the folder


@contextlib.contextmanager
def work_folder(place: str | os.PathLike[str] | None, about: object) -> Iterator[Path]:
    """A folder for a run about this; it stays only where somebody chose the place."""
    key = hashlib.sha256(json.dumps([FORMAT, about], default=str).encode()).hexdigest()[:16]
    base = _base(place)
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


@contextlib.contextmanager
def spill_folder(place: str | os.PathLike[str] | None) -> Iterator[Path]:
    """A folder for what does not fit in memory; nothing of it stays."""
    base = _base(place)
    try:
        folder = Path(tempfile.mkdtemp(prefix="stair-", dir=base))
    except OSError as error:
        raise StairError(f'cannot work in "{base}": {reason(error)}.') from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _base(place: str | os.PathLike[str] | None) -> Path:
    base = Path(tempfile.gettempdir() if place is None else place).expanduser().absolute()
    if not base.is_dir():
        raise StairError(f'there is no folder "{base}" to work in; make it first.')
    return base


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
        for half in folder.glob(".stair-*.tmp"):  # of a run that was killed as it wrote
            half.unlink()
    except OSError:
        return None
    return folder


# --- what is written down -------------------------------------------------------------------------


def cannot_write(folder: Path, error: BaseException) -> StairError:
    """What keeps us from writing to a folder, and what to do."""
    full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
    why = "the disk is full" if full else reason(error)
    return StairError(
        f'cannot write the codes to "{folder.parent}": {why}. Choose a place with more room with '
        f"{option('work')}."
    )


def save(path: Path, document: object) -> None:
    """Never half of it, and with a digest, so that damage is noticed."""
    try:
        atomic_write(path, json.dumps({"digest": _digest(document), "found": document}))
    except StairError as error:
        raise cannot_write(path.parent, error.__cause__ or error) from error


def load(path: Path) -> Any:
    """What was saved; a ValueError where it is not that any more."""
    held = json.loads(path.read_text(encoding="utf-8"))
    if held["digest"] != _digest(held["found"]):
        raise ValueError("damaged")
    return held["found"]


def _digest(document: object) -> str:
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


NOT_WHOLE: Final = (OSError, ValueError, KeyError, TypeError, IndexError)  # of what is loaded
PLAN: Final = "plan.json"


def save_plan(folder: Path, plan: Plan) -> None:
    """What the first pass has found. Levels that belong to another plan go."""
    forget(folder)
    save(folder / PLAN, {"of": folder.name, "plan": _plan_to_json(plan)})


def plan_digest(plan: Plan) -> str:
    """What names a plan: two with the same make the same codes."""
    return _digest(_plan_to_json(plan))


def file_digest(path: Path) -> str:
    """What names the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _plan_to_json(plan: Plan) -> dict[str, object]:
    coder, verdict = plan.coder, plan.verdict
    return {
        "fields": [asdict(field) for field in plan.coding.fields],
        "columns": list(map(_column_to_json, plan.coding.columns, plan.coding.edges)),
        "label": coder.label,
        "stored": coder.stored,
        "codes": verdict.codes.tolist(),
        "classes": verdict.classes,
        "positive": verdict.positive,
        "meaning": verdict.meaning,
        "notes": verdict.notes,
        "codebook": None if verdict.codebook is None else asdict(verdict.codebook),
        "left_out": plan.left_out,
        "names": plan.names,
        "source": plan.source,
        "read": plan.notes,
    }


def _codebook(found: dict[str, Any] | None) -> Codebook | None:
    return None if found is None else Codebook(tuple(map(tuple, found["values"])), found["others"])


def load_plan(folder: Path) -> Plan | None:
    """What an earlier run has left, or None where it left nothing that is whole."""
    try:
        held = load(folder / PLAN)
        if held["of"] != folder.name:  # it was put here from elsewhere
            return None
        found = held["plan"]
        fields = tuple(Field(**each) for each in found["fields"])
        columns, edges = zip(*map(_column_from_json, found["columns"]), strict=True)
        verdict = Verdict(
            np.array(found["codes"], dtype=np.int32), tuple(found["classes"]),
            found["positive"], found["meaning"], tuple(found["notes"]),
            codebook=_codebook(found["codebook"]),
        )  # fmt: skip
        coding = Coding(fields, columns, edges)
        coder = Coder(coding, found["label"], tuple(found["stored"]), verdict.codes)
        return Plan(
            coder, verdict, found["left_out"], tuple(found["names"]), found["source"],
            tuple(found["read"]),
        )  # fmt: skip
    except NOT_WHOLE:
        return None


def forget(folder: Path) -> None:
    """Remove what was found out, before something else is."""
    for old in (folder / PLAN, *folder.glob("levels-*.json")):
        try:
            old.unlink(missing_ok=True)
        except OSError as error:  # a folder by that name
            raise cannot_write(folder, error) from error


def _column_to_json(column: Column, edges: tuple[object, ...]) -> dict[str, object]:
    found: dict[str, object] = {"name": column.name, "attribute": column.attribute}
    if isinstance(column, Categories):
        others: dict[str, object] = {"has_others": True} if column.has_others else {}
        others |= {"networks_of": column.of} if column.of else {}
        return {**found, "values": column.values, "stored": edges, **others}
    assert isinstance(column, Binned)
    found["tops"] = column.tops
    if column.bottoms != column.tops:
        found["bottoms"] = column.bottoms
    if isinstance(column.inner, Times):
        found["whole_days"] = column.inner.whole_days
    elif column.inner.whole:
        found["whole"] = True
    if column.sides != ANY_SIDE:
        found["sides"] = int(column.sides)
    return found


def _column_from_json(found: dict[str, Any]) -> tuple[Column, tuple[object, ...]]:
    name, attribute = found["name"], found["attribute"]
    if "values" in found:
        more = found.get("has_others", False), found.get("networks_of", "")
        column = Categories(name, attribute, tuple(found["values"]), *more)
        return column, tuple(found["stored"])
    sides = Sides(found.get("sides", ANY_SIDE))
    inner: Numbers | Times = Numbers(name, attribute, found.get("whole", False), sides)
    if "whole_days" in found:
        inner = Times(name, attribute, found["whole_days"], sides)
    tops = tuple(found["tops"])
    return Binned(inner, tops, tuple(found.get("bottoms", tops))), tops[:-1]


@dataclass(frozen=True, slots=True)
class Levels:
    """Where the divisions of a table's codes are kept; they depend on the longest rule and on no
    other setting."""

    path: Path
    of: str  # what names codes and longest rule

    @classmethod
    def at(cls, folder: Path, coded: Coded, max_rule_length: int) -> Levels:
        columns = list(map(_column_to_json, coded.coding.columns, coded.coding.edges))
        about = [columns, coded.classes, coded.positive, coded.totals, max_rule_length]
        return cls(folder / f"levels-{max_rule_length}.json", _digest(about))

    def save(self, known: Divisions) -> None:
        """The divisions that are known."""
        document = {
            "of": self.of,
            "passes": known.n_passes,
            "divisions": {
                path: None if division is None else [
                    list(division.split), division.below, division.above, division.left,
                    division.right, division.has_missing, division.left_counts,
                ]
                for path, division in known.divisions.items()
            },
        }  # fmt: skip
        save(self.path, document)

    def load(self) -> Divisions:
        """What an earlier run has left; nothing where it is not whole, or of other codes."""
        try:
            found = load(self.path)
            return _known(found) if found["of"] == self.of else Divisions()
        except NOT_WHOLE:
            return Divisions()


def _known(found: Any) -> Divisions:
    divisions = {
        path: None if each is None else Division(
            Split(*each[0]), each[1], each[2], tuple(each[3]), tuple(each[4]), each[5],
            tuple(each[6]),
        )
        for path, each in found["divisions"].items()
    }  # fmt: skip
    return Divisions(divisions, found["passes"])
