"""Damaged work folders of large runs: the same rules come out, or one sentence."""

from __future__ import annotations

import json
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.result import Finding, Result, last_lines, origin
from stair import Stair, StairError, summarize
from stair.data import write_table
from stair.engines.large import engine_of
from stair.progress import telling

Rng = np.random.Generator

MOMENTS = ("", "level 2", "pass 2")  # when a run ends: well, or by an error in the middle
SECONDS = 60  # no run takes a tenth of it
LONGEST = 400  # characters of a sentence


def make_table(folder: Path, n_rows: int = 120) -> Path:
    """A small table in two files, with a column of each kind."""
    rng = np.random.default_rng(3)
    folder.mkdir()
    for part in range(2):
        amount = rng.normal(50, 20, n_rows).round(1)
        amount[::17] = np.nan
        code = np.empty(n_rows, dtype=object)
        code[:] = rng.choice(["2", "3", "X"], n_rows).tolist()
        size = rng.integers(0, 6, n_rows)
        columns = {
            "amount": amount,
            "size": size,
            "id": 2**60 + rng.integers(0, 9, n_rows),
            "code": code,
            "day": np.datetime64("2024-02-01", "us") + rng.integers(0, 40, n_rows).astype("m8[D]"),
            "label": ((amount > 60) & (size > 2) | (code == "X") & (size < 2)).astype(np.int64),
        }
        write_table(folder / f"part-{part}.parquet", columns)
    return folder


class _Stopped(Exception):  # noqa: N818 - as if somebody had stopped the run
    pass


def learn(data: Path, engine: str, work: Path, moment: str = "") -> Any:
    """All that a run finds; it ends early where it says this."""

    def say(message: str) -> None:
        if moment and message.startswith(moment):
            raise _Stopped

    with warnings.catch_warnings(), telling(say):
        warnings.simplefilter("ignore")  # Dask calls pandas in a way that pandas is giving up
        found = summarize(
            str(data / "*.parquet") if engine == "duckdb" else str(data),
            labels="label",
            min_score=0.95,
            method=Stair(max_rule_length=4),
            engine=engine_of(engine, work=work),
        )
    return found.rules, found.trace, found.evidence, found.score, found.notes


# --- damage ---------------------------------------------------------------------------------------


def damage(folder: Path, rng: Rng) -> str:
    """One to three faults; what they are, in words."""
    told = []
    for _ in range(int(rng.integers(1, 4))):
        names = sorted(p.name for p in folder.iterdir() if p.is_file())
        if not names:
            break
        path = folder / names[int(rng.integers(len(names)))]
        fault = FAULTS[int(rng.integers(len(FAULTS)))]
        fault(path, rng)
        told.append(f"{fault.__name__.strip('_')} {path.name}")
    return ", ".join(told)


def _flip(path: Path, rng: Rng) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(int(rng.integers(1, 4))):
        if data:
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def _truncate(path: Path, rng: Rng) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(rng.integers(len(data) + 1))])


def _append(path: Path, rng: Rng) -> None:
    path.write_bytes(path.read_bytes() + rng.bytes(int(rng.integers(1, 50))))


def _delete(path: Path, rng: Rng) -> None:
    del rng
    path.unlink()


def _other(path: Path, rng: Rng) -> Path:
    names = sorted(p.name for p in path.parent.iterdir() if p.is_file())
    return path.parent / names[int(rng.integers(len(names)))]


def _duplicate(path: Path, rng: Rng) -> None:
    other = _other(path, rng)
    if other != path:
        shutil.copy(other, path)


def _rename(path: Path, rng: Rng) -> None:
    """As another run would name it."""
    names = ("levels-3.json", "levels-4.json", "part-0.parquet", "part-1.parquet", "plan.json")
    target = path.with_name(names[int(rng.integers(len(names)))])
    if target != path and not target.is_dir():
        shutil.copy(path, target)


def _swap(path: Path, rng: Rng) -> None:
    other = _other(path, rng)
    first, second = path.read_bytes(), other.read_bytes()
    path.write_bytes(second)
    other.write_bytes(first)


def _folder(path: Path, rng: Rng) -> None:
    del rng
    path.unlink()
    path.mkdir()


def _value(path: Path, rng: Rng) -> None:
    """Two values of a document change places, or one becomes another."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        return _flip(path, rng)
    places = list(_leaves(document))
    if not places:
        return None
    (one, key), (other, second) = (places[int(rng.integers(len(places)))] for _ in range(2))
    if rng.random() < 0.5:
        one[key], other[second] = other[second], one[key]
    else:
        values = (None, True, 0, -1, 2**63, 1e308, "", "x", [], {}, [1])
        one[key] = values[int(rng.integers(len(values)))]
    path.write_text(json.dumps(document), encoding="utf-8")
    return None


def _leaves(document: Any) -> Iterator[tuple[Any, Any]]:
    keys: Any = document if isinstance(document, dict) else range(len(document))
    for key in list(keys):
        if isinstance(document[key], dict | list):
            yield from _leaves(document[key])
        else:
            yield document, key


FAULTS: tuple[Callable[[Path, Rng], None], ...] = (
    _flip, _flip, _flip, _truncate, _append, _delete, _duplicate, _rename, _swap, _folder, _value,
    _value,
)  # fmt: skip


# --- what comes out -------------------------------------------------------------------------------


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """A run that hangs is an error; only the main thread can be woken."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def wake(*_: Any) -> None:
        raise TimeoutError(f"no end in {seconds} seconds")

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def look_at(data: Path, engine: str, work: Path, clean: Any, told: str) -> Result:
    """One more run in a damaged folder."""
    result = Result()
    for attempt in ("damaged", "again"):
        try:
            with _within(SECONDS):
                found = learn(data, engine, work)
        except StairError as error:
            if "\n" in str(error) or len(str(error)) > LONGEST:
                result.found(Finding("work folders", engine, "long sentence", told, "", str(error)))
            result.count("work folders", engine, f"{attempt}: refused")
        except Exception as error:
            result.found(Finding("work folders", engine, origin(error), told,
                                 "rules or one sentence", last_lines(error)))  # fmt: skip
            return result
        else:
            if found != clean:
                result.found(Finding("work folders", engine, "other rules", told))
            result.count("work folders", engine, f"{attempt}: equal")
            return result
    return result


def run(n: int, seed: int = 0) -> tuple[Result, list[tuple[Finding, str]]]:
    """So many damaged folders of finished and of half-finished runs: the tallies, and each kind of
    finding with what was done to the folder."""
    total = Result()
    kept: list[tuple[Finding, str]] = []
    with tempfile.TemporaryDirectory(prefix="stair-fuzz-") as place:
        base = Path(place)
        data = make_table(base / "data")
        kinds = [("duckdb", moment) for moment in MOMENTS] + [("dask", MOMENTS[0])]
        clean: dict[str, Any] = {}
        for k, (engine, moment) in enumerate(kinds):
            (base / f"made-{k}").mkdir()
            try:
                clean[engine] = learn(data, engine, base / f"made-{k}", moment)
            except _Stopped:
                continue
        for number in range(n):
            rng = np.random.default_rng([seed, number, 11])
            k = int(rng.choice(len(kinds), p=[0.45, 0.25, 0.1, 0.2]))
            engine = kinds[k][0]
            work = base / "work"
            shutil.copytree(base / f"made-{k}", work)
            told = damage(next(work.iterdir()), rng)
            result = look_at(data, engine, work, clean[engine], told)
            shutil.rmtree(work)
            total.count("work folders", engine, "folders")
            total.tallies.update(result.tallies)
            for finding in result.findings:
                if all(known.key != finding.key for known, _ in kept):
                    kept.append((finding, f"seed {seed}, number {number}: {told}"))
    return total, kept
