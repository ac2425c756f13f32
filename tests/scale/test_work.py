"""Runs that die and go on: bins, codes and finished levels are found again, or made anew."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stair
from clusters import cluster
from large import files, mixed
from places import TESTS
from settings import summarize
from stair.scale.parts import known_by
from stair.scale.work import BINS_ARE_THERE, CODES_ARE_THERE

dd = pytest.importorskip("dask.dataframe")
# Dask itself calls pandas in a way that pandas is giving up.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")

OPTIONS: dict[str, Any] = {
    "labels": "label",
    "method": "stair",
    "engine": "dask",
    "min_score": 0.9,
}

DYING = """
import os, signal, sys, threading, time
from pathlib import Path
import stair
from stair.progress import telling

engine, moment, pattern, work, client = sys.argv[1:]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def say(message):
    if message.startswith(moment):
        die()

def watch():  # in the middle of pass 2, or just after it: codes are written, maybe not all
    while not list(Path(work).glob(moment)):
        time.sleep(0.001)
    die()

threading.Thread(target=watch, daemon=True).start()
if engine == "dask":
    where = stair.Dask(work=work, client=client or None)
else:
    where = stair.DuckDB(work=work)
with telling(say):
    stair.summarize(pattern, "label", method="stair", engine=where, min_score=0.9)
"""


def _die(engine: str, moment: str, pattern: str, work: Path, client: str = "") -> None:
    command = [sys.executable, "-c", DYING, engine, moment, pattern, str(work), client]
    assert subprocess.run(command).returncode == -signal.SIGKILL


def _same(one: stair.Summary, other: stair.Summary) -> bool:
    return (one.rules, one.trace, one.evidence, one.score, one.notes) == (
        other.rules, other.trace, other.evidence, other.score, other.notes,
    )  # fmt: skip


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def test_a_run_on_a_cluster_that_was_killed_goes_on(tmp_path: Path, work: Path) -> None:
    """The client is killed between levels; the next one finds codes and levels, even where then a
    worker dies too. What is not the same any more is looked at anew."""
    pattern = files(mixed(8), tmp_path / "data")
    whole = summarize(pattern, **OPTIONS)
    with cluster(tmp_path) as processes:
        _die("dask", "level 3", pattern, work, processes.address)
        (folder,) = work.iterdir()
        assert len(list(folder.glob("part-*.parquet"))) == 3
        said: list[str] = []

        def told(message: str) -> None:
            said.append(message)
            if message.startswith("level 5"):
                processes.workers[0].kill()
                processes.workers[0].wait()

        rest = summarize(pattern, client=processes.address, work=work, progress=told, **OPTIONS)
    assert said[0] == CODES_ARE_THERE
    assert next(m for m in said if m.startswith("level")).startswith("level 4")
    assert processes.workers[0].returncode == -signal.SIGKILL
    assert _same(rest, whole)
    assert rest.settings == whole.settings  # as many passes, those of the dead run included

    def begins(pattern: str, **options: Any) -> str:
        said.clear()
        found = summarize(pattern, work=work, progress=said.append, **OPTIONS | options)
        assert _same(found, summarize(pattern, **OPTIONS | options))
        return said[0]

    assert begins(pattern, min_score=0.5) == CODES_ARE_THERE
    assert begins(pattern, bins=10).startswith("pass 1")
    assert begins(pattern, exclude=["size"]).startswith("pass 1")
    one = tmp_path / "data" / "part-1.parquet"
    about = one.stat()
    mixed(9, 1000).to_parquet(one, index=False)
    assert begins(pattern).startswith("pass 1")
    assert begins(pattern) == CODES_ARE_THERE
    os.utime(one, ns=(about.st_atime_ns, about.st_mtime_ns))  # another time, and the same bytes
    assert begins(pattern).startswith("pass 1")
    one.unlink()
    assert begins(pattern).startswith("pass 1")


@pytest.mark.parametrize(
    ("engine", "moment"), [("dask", "*/part-*.parquet"), ("duckdb", "*/codes.par*")]
)
def test_a_run_that_was_killed_while_it_wrote_codes(
    tmp_path: Path, work: Path, engine: str, moment: str
) -> None:
    """The first pass need not be made again, and nor need parts that were written."""
    pattern = files(mixed(8), tmp_path / "data", 12)
    options = {**OPTIONS, "engine": engine}
    _die(engine, moment, pattern, work)
    said: list[str] = []
    rest = summarize(pattern, work=work, progress=said.append, **options)
    assert not any(message.startswith("pass 1") for message in said)
    assert said[0] in (BINS_ARE_THERE, CODES_ARE_THERE) or "of 12 parts" in said[0]
    assert _same(rest, summarize(pattern, **options))
    names = {path.name for path in next(work.iterdir()).iterdir()}
    kept = {f"part-{k}.parquet" for k in range(12)}
    kept = kept if engine == "dask" else {"codes.parquet", "all-rows.npy", "codes.json"}
    assert names == {"plan.json", "levels-10.json", "lock", *kept}


def _flip(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    for k in range(len(damaged) // 3, len(damaged) // 2, 50):
        damaged[k] ^= 0x01
    path.write_bytes(damaged)


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "half a part": lambda f: os.truncate(f / "part-1.parquet", 2000),
    "bytes of a part": lambda f: _flip(f / "part-1.parquet"),
    "one part in place of another": lambda f: shutil.copy(
        f / "part-0.parquet", f / "part-1.parquet"
    ),
    "no part": lambda f: (f / "part-1.parquet").unlink(),
    "half a plan": lambda f: os.truncate(f / "plan.json", 2000),
    "bytes of the plan": lambda f: _flip(f / "plan.json"),
    "bytes of the levels": lambda f: _flip(f / "levels-10.json"),
}


def test_what_is_damaged_is_made_anew(tmp_path: Path, work: Path) -> None:
    """And only that: the other parts are used as they are."""
    pattern = files(mixed(8), tmp_path / "data")
    whole = summarize(pattern, work=work, **OPTIONS)
    (folder,) = work.iterdir()
    for what, damage in DAMAGES.items():
        damage(folder)
        said: list[str] = []
        again = summarize(pattern, work=work, progress=said.append, **OPTIONS)
        assert _same(again, whole), what
        if "plan" in what:
            assert said[0].startswith("pass 1"), what
        elif "levels" in what:
            assert said[0] == CODES_ARE_THERE
            assert any(message.startswith("level 1") for message in said)
        else:
            assert said[0] == "2 of 3 parts of an earlier run are there", what
            assert not any(message.startswith("level 1") for message in said)
        assert list(work.iterdir()) == [folder]


def test_counts_of_another_run_are_noticed(tmp_path: Path, work: Path) -> None:
    """The counts of all rows had no checksum, so that a changed bit chose another first split; and
    levels did not know for which longest rule they were found."""
    pattern = files(mixed(8), tmp_path / "data")
    options = {**OPTIONS, "engine": "duckdb", "work": work}
    whole = summarize(pattern, **options)
    (folder,) = work.iterdir()
    path = folder / "all-rows.npy"
    counts = np.load(path)
    counts[0, counts[0, :, 0].argmax()] = 0
    np.save(path, counts)
    said: list[str] = []
    assert _same(summarize(pattern, progress=said.append, **options), whole)
    assert said[0] == BINS_ARE_THERE
    short = summarize(pattern, max_rule_length=2, **{**options, "work": None})
    shutil.copy(folder / "levels-10.json", folder / "levels-2.json")
    assert _same(summarize(pattern, max_rule_length=2, **options), short)


def test_damaged_folders_give_the_same_rules_or_a_sentence() -> None:
    """A few of those that `python -m fuzz` makes: bits, halves, files that are gone or in each
    other's place, values that changed. One was a traceback: a folder named plan.json."""
    from fuzz.work_folders import run

    result, found = run(12, seed=34)
    assert found == []
    assert sum(n for name, n in result.tallies.items() if name.endswith("folders")) == 12


def test_a_worker_that_cannot_reach_the_folder(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said before anything is read. The folder is there for the client alone, for it is
    named by what each process calls its own directory."""
    if not Path("/proc/self/cwd").exists():
        pytest.skip("no /proc here")
    pattern = files(mixed(8, 200), tmp_path / "data")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with cluster(tmp_path, 1) as processes:
        import distributed

        monkeypatch.chdir(tmp_path)
        said: list[str] = []
        with distributed.Client(processes.address, set_as_default=False) as client:
            client.wait_for_workers(1)
            options = {**OPTIONS, "client": client, "work": "/proc/self/cwd/work"}
            with pytest.raises(
                stair.StairError, match=r"worker on .* cannot use .* all workers reach"
            ) as caught:
                summarize(pattern, progress=said.append, **options)
            assert "\n" not in str(caught.value)
            assert said == []
            # Its own folder of that name is no help: what it writes is not what the client sees.
            (folder,) = work.iterdir()
            (elsewhere / "work" / folder.name).mkdir(parents=True)
            with pytest.raises(stair.StairError, match="is not seen here"):
                summarize(pattern, **options)
    with pytest.raises(stair.StairError, match="there is no folder"):
        summarize(pattern, work=tmp_path / "none", **OPTIONS)


def test_data_that_changes_while_codes_are_kept(tmp_path: Path, work: Path) -> None:
    pattern = files(mixed(8), tmp_path / "data")

    def change(message: str) -> None:
        if message.startswith("pass 2"):
            mixed(8).to_parquet(tmp_path / "data" / "part-1.parquet", index=False)

    with pytest.raises(stair.StairError, match="changed while it was read; run again"):
        summarize(pattern, work=work, progress=change, **OPTIONS)
    assert not list(work.glob("*/plan.json"))


def test_a_folder_that_vanishes(tmp_path: Path, work: Path) -> None:
    """One sentence, whether it is noticed by who plans or by who writes codes."""
    pattern = files(mixed(8), tmp_path / "data")

    def vanish(message: str) -> None:
        if message.startswith("pass 2"):
            shutil.rmtree(next(work.iterdir()))

    with pytest.raises(stair.StairError, match=r"cannot use .* there is no such folder"):
        summarize(pattern, work=work, progress=vanish, **OPTIONS)

    def clear(message: str) -> None:
        if message.startswith("level 1"):
            shutil.rmtree(next(work.iterdir()))

    with pytest.raises(stair.StairError, match="cannot write the codes to"):
        summarize(pattern, work=work, progress=clear, **OPTIONS)


def test_without_a_folder_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = files(mixed(8, 500), tmp_path / "data")
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(empty))
    monkeypatch.chdir(empty)
    summarize(pattern, **OPTIONS)
    assert list(empty.iterdir()) == []


def names(pattern: str) -> list[str]:
    """What frames of files and of tables are known by, and what is made of them."""
    data = dd.read_parquet(pattern)
    made = data[data["size"] > 1].assign(more=data["level"] * 2)
    both = dd.concat([data, dd.from_pandas(mixed(1, 50), npartitions=2)])
    csv = dd.read_csv(pattern.replace("parquet", "csv"))
    return [str(known_by(each)) for each in (data, made, both, csv)]


def test_a_frame_is_known_in_another_process(tmp_path: Path) -> None:
    """Where no file has changed.

    Dask's own token of Parquet files differed from process to process: no run went on.
    """
    pattern = files(mixed(8, 200), tmp_path / "data")
    pd.DataFrame({"a": [1, 2]}).to_csv(tmp_path / "data" / "a.csv", index=False)
    first = names(pattern)
    assert len(set(first)) == 4
    code = "import sys, test_work as here; print(*here.names(sys.argv[1]), sep='\\n')"
    environment = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS / 'scale'}"}
    done = subprocess.run(
        [sys.executable, "-c", code, pattern], capture_output=True, text=True, env=environment
    )
    assert done.stdout.splitlines() == first, done.stderr
    pd.DataFrame({"a": [1, 3]}).to_csv(tmp_path / "data" / "a.csv", index=False)
    mixed(9, 66).to_parquet(tmp_path / "data" / "part-1.parquet", index=False)
    assert not set(names(pattern)) & set(first)


def test_a_frame_goes_on_too(work: Path) -> None:
    """A Dask DataFrame is known by what is in it; another one has a folder of its own."""
    frame = mixed(8)
    said: list[str] = []
    first = summarize(dd.from_pandas(frame, npartitions=3), work=work, **OPTIONS)
    data = dd.from_pandas(frame.copy(), npartitions=3)
    assert _same(summarize(data, work=work, progress=said.append, **OPTIONS), first)
    assert said[0] == CODES_ARE_THERE
    frame.loc[7, "label"] = 1 - frame.loc[7, "label"]
    said.clear()
    summarize(dd.from_pandas(frame, npartitions=3), work=work, progress=said.append, **OPTIONS)
    assert said[0].startswith("pass 1")


def test_bins_and_categories_are_found_as_they_were(tmp_path: Path, work: Path) -> None:
    """Kinds that are stored in another way than they are shown, and rows without a label."""
    frame = mixed(11, 2000)[["size", "level", "day", "known", "country", "label"]]
    frame["label"] = frame.label.astype(object).where(np.arange(2000) % 9 > 0, None)
    pattern = files(frame, tmp_path / "data")
    options = {
        **OPTIONS,
        "kinds": {"size": "category", "level": "category", "day": "category"},
        "min_score": 0.7,
    }
    whole = summarize(pattern, work=work, **options)
    next(work.glob("*/part-1.parquet")).unlink()
    said: list[str] = []
    again = summarize(pattern, work=work, progress=said.append, **options)
    assert said[0] == "2 of 3 parts of an earlier run are there"
    assert _same(again, whole)
