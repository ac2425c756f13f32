"""What goes wrong with large data, done for real: a plain sentence, and nothing left behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import stair
from large import files, mixed
from settings import summarize


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where runs put their folders; each test ends with a look that it is empty."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def _refused(data: Any, match: str, temporary: Path, **options: Any) -> None:
    options = {"labels": "label", "engine": "duckdb", "min_score": 0.9, **options}
    with pytest.raises(stair.StairError, match=match) as caught:
        summarize(data, **options)
    assert "\n" not in str(caught.value)
    assert list(temporary.iterdir()) == []


def test_a_folder_without_files_and_a_pattern_without_matches(
    tmp_path: Path, temporary: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    _refused(empty, "no Parquet or CSV file in the folder", temporary)
    _refused(empty / "*.parquet", "no file matches", temporary)
    _refused(tmp_path / "not" / "there.parquet", "there is no folder", temporary)
    (empty / "notes.docx").write_text("hello")
    _refused(empty / "notes.docx", "cannot be read in parts", temporary)
    (empty / "a.parquet").write_bytes(b"")
    _refused(empty, "a.parquet is empty", temporary)
    (empty / "b.csv").write_text("a,label\n1,0\n")
    _refused(empty, "mixes .csv, .parquet files", temporary)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda f: f.drop(columns="size"), 'part-1.parquet lacks a column "size"'),
        (
            lambda f: f.assign(more=1),
            'part-1.parquet has a column "more" that part-0.parquet lacks',
        ),
        (lambda f: f.assign(size=f["size"].astype(str)), '"size" is BIGINT in part-0.*VARCHAR'),
    ],
)
@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_a_file_with_another_schema(
    tmp_path: Path,
    temporary: Path,
    change: Callable[[pd.DataFrame], pd.DataFrame],
    match: str,
    engine: str,
) -> None:
    """Dask took the columns of the first file, and dropped what only later ones have."""
    frame = mixed(0, 300)
    pattern = files(frame, tmp_path / "data")
    change(frame).to_parquet(tmp_path / "data" / "part-1.parquet", index=False)
    if engine == "dask":
        match = match.replace("BIGINT", "int64").replace("VARCHAR", "string")
    _refused(pattern, match, temporary, engine=engine)
    _refused(tmp_path / "data", match, temporary, engine=engine)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")  # Dask's own
def test_a_mistake_in_a_program_is_seen_as_one(temporary: Path) -> None:
    """Any exception was "the data cannot be read": a mistake in a function that makes a frame, or
    in stair itself, looked like damage to the data. What files and memory do is said in words."""
    dd = pytest.importorskip("dask.dataframe")
    frame = mixed(0, 100)

    def made(error: Exception) -> Any:
        def part(_: int) -> Any:
            raise error

        return dd.from_map(part, [0, 1], meta=frame.iloc[:0])

    for error in (ZeroDivisionError("1/0"), AttributeError("no such thing"), KeyError("x")):
        with pytest.raises(type(error)):
            summarize(made(error), labels="label", engine="dask")
    said = "the data cannot be read: the store is gone"
    _refused(made(OSError("the store is gone")), said, temporary, engine="dask")
    _refused(made(MemoryError()), "does not fit in memory", temporary, engine="dask")


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")  # Dask's own
def test_names_of_a_frame_that_are_no_text(temporary: Path) -> None:
    """Numbers as names are read as they are written; a name of two columns is refused."""
    dd = pytest.importorskip("dask.dataframe")
    frame = mixed(0, 300)[["size", "level", "label"]].set_axis([0, 1, 2], axis=1)
    data = dd.from_pandas(frame, npartitions=2)
    found = summarize(data, labels="2", method="stair", engine="dask")
    assert found.rules == summarize(frame, labels="2", method="stair").rules
    twice = dd.from_pandas(frame.set_axis(["a", "b", "label"], axis=1), npartitions=2)
    twice = twice.rename(columns={"b": "a"})
    _refused(twice, '"a" is the name of several columns', temporary, engine="dask")


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")  # Dask's own
def test_a_corrupt_row_group(tmp_path: Path, temporary: Path) -> None:
    """The footer is whole and the file opens; the bytes of one column chunk are not.

    The threads of Dask told it in their own words, of many lines.
    """
    pattern = files(mixed(0), tmp_path / "data")
    path = tmp_path / "data" / "part-1.parquet"
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    damaged = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    for k in range(start + 30, start + chunk.total_compressed_size, 7):
        damaged[k] ^= 0xFF
    path.write_bytes(damaged)
    _refused(pattern, "cannot read .* it may be damaged", temporary)
    _refused(pattern, "the data cannot be read", temporary, engine="dask")


def test_work_folders_are_for_what_uses_them(tmp_path: Path, temporary: Path) -> None:
    pattern = files(mixed(0, 100), tmp_path / "data")
    refused = "the method distilled keeps nothing in a folder with the engine spark"
    _refused(pattern, refused, temporary, engine="spark", work=tmp_path)
    for engine in ("duckdb", "dask"):
        inside = "the work folder is inside of the data"
        data = tmp_path / "data"
        _refused(data, inside, temporary, method="stair", engine=engine, work=data)


def test_a_file_cut_short(tmp_path: Path, temporary: Path) -> None:
    pattern = files(mixed(0), tmp_path / "data")
    path = tmp_path / "data" / "part-2.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    _refused(pattern, "cannot read part-2.parquet, it may be damaged", temporary)


@pytest.mark.parametrize("moment", ["pass 1", "pass 2"])
def test_a_file_that_vanishes_between_passes(tmp_path: Path, temporary: Path, moment: str) -> None:
    pattern = files(mixed(0), tmp_path / "data")
    path = tmp_path / "data" / "part-1.parquet"

    def vanish(message: str) -> None:
        if message.startswith(moment):
            path.unlink(missing_ok=True)

    _refused(pattern, "part-1.parquet is gone", temporary, progress=vanish)


def test_a_file_that_changes_between_passes(tmp_path: Path, temporary: Path) -> None:
    pattern = files(mixed(0), tmp_path / "data")

    def change(message: str) -> None:
        if message.startswith("pass 1"):
            mixed(1, 700).to_parquet(tmp_path / "data" / "part-1.parquet", index=False)

    _refused(pattern, "part-1.parquet changed while it was read", temporary, progress=change)


def test_codes_that_vanish_or_break_between_levels(tmp_path: Path, temporary: Path) -> None:
    """The codes are the run's own file, and somebody cleans up too early."""
    pattern = files(mixed(0), tmp_path / "data")
    by_level: dict[str, Any] = {"method": "stair"}

    def vanish(message: str) -> None:
        if message.startswith("level 2"):
            next(temporary.glob("*/codes.parquet")).unlink()

    gone = "the codes in .* are gone; run again"
    _refused(pattern, gone, temporary, progress=vanish, **by_level)

    def damage(message: str) -> None:
        if message.startswith("level 2"):
            path = next(temporary.glob("*/codes.parquet"))
            damaged = bytearray(path.read_bytes())
            for k in range(40, len(damaged) // 2, 5):
                damaged[k] ^= 0x55
            path.write_bytes(damaged)

    broken = "the codes in .* cannot be read"
    _refused(pattern, broken, temporary, progress=damage, **by_level)


COMMAND = [sys.executable, "-m", "stair.cli", "summarize"]
LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.argv = ["stair", *sys.argv[1:]]
runpy.run_module("stair.cli", run_name="__main__")
"""


@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_a_file_that_must_not_grow(tmp_path: Path, engine: str) -> None:
    """The system's own limit on the size of files stands in for a disk where none can be made."""
    pattern = files(mixed(0), tmp_path / "data")
    work = tmp_path / "work"
    work.mkdir()
    options = [pattern, "--label", "label", "--method", "stair", "--engine", engine]
    options += ["--work", str(work)]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, "summarize", *options], capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("stair: cannot write the codes")
    assert done.stderr.count("\n") == 1
    assert not [path for path in work.glob("*/*") if path.name != "lock"]


def test_a_full_disk(tmp_path: Path) -> None:
    """A disk of 64 kB, made for this test."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare here, so no disk can be made")
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=64k none "$0" && exec "$@"']
    work = tmp_path / "disk"
    work.mkdir()
    if subprocess.run([*mount, str(work), "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount, so no disk can be made")
    pattern = files(mixed(0, 30_000), tmp_path / "data")
    look = "import os,subprocess,sys; c=subprocess.run(sys.argv[2:]).returncode; "
    look += (
        'print(sum(map(len, (f for _, _, f in os.walk(sys.argv[1])))), "files left"); sys.exit(c)'
    )
    options = [pattern, "--label", "label", "--method", "stair", "--engine", "duckdb"]
    command = [*mount, str(work), sys.executable, "-c", look, str(work), *COMMAND, *options]
    environment = {"TMPDIR": str(work), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("stair: cannot write the codes")
    assert "the disk is full" in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == "0 files left\n"


def test_the_command_reads_patterns(tmp_path: Path) -> None:
    """`stair summarize 'data/*.parquet' --engine duckdb --memory 1GB`, as in the manual."""
    pattern = files(mixed(0, 1000), tmp_path / "data")
    sql = tmp_path / "rules.sql"
    options = ["--label", "label", "--engine", "duckdb", "--memory", "1GB", "--sql", str(sql)]
    done = subprocess.run([*COMMAND, pattern, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1,000 rows" in done.stdout
    assert 'FROM "data"' in sql.read_text() or "FROM data" in sql.read_text()


# The system's own figure of the most memory would be that of whoever started the process, too.
WITHIN = """
import re, sys
from pathlib import Path
import stair
path, memory, method = sys.argv[1:]
try:
    engine = stair.DuckDB(memory=memory)
    print(stair.summarize(path, "label", method=method, engine=engine).score)
except stair.StairError as error:
    print(error)
print(int(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""


def _within(path: Path, memory: str, method: str = "stair") -> tuple[str, int]:
    """What a run says, and its most memory: of a process of its own, so that it is that alone."""
    done = subprocess.run([sys.executable, "-c", WITHIN, str(path), memory, method],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    said, peak = done.stdout.splitlines()
    return said, int(peak)


def _long_texts(path: Path, n_rows: int, length: int, words: int) -> Path:
    """Few different texts, so that the file is small however long they are."""
    import pyarrow as pa

    texts = [("abc " if words else "abcd") * (length // 4) + str(k) for k in range(30)]
    rows = np.arange(n_rows)
    note = pa.DictionaryArray.from_arrays(pa.array(rows % 30, pa.int32()), pa.array(texts))
    label = (rows % 9 > 6).astype(int)
    table = pa.table({"note": note, "size": rows % 9, "label": label})
    pq.write_table(table, path, row_group_size=n_rows, store_schema=False)
    return path


def test_memory_is_kept_however_long_texts_are(tmp_path: Path) -> None:
    """300,000 rows with texts of 20,000 characters, 2.5 MB on disk, took 2.2 GB where 512 MiB were
    allowed, for batches were so many rows; and then the file was called damaged. Here is a gigabyte
    of text: some that are names, some that no engine can count, and some too long to be read."""
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    few = 512 << 20
    names = _long_texts(tmp_path / "names.parquet", 40_000, 20_000, words=0)
    assert names.stat().st_size < 1 << 20
    said, peak = _within(names, "512MiB")
    assert said == "1.0"
    assert peak < few
    notes = _long_texts(tmp_path / "notes.parquet", 10_000, 20_000, words=1)
    said, peak = _within(notes, "512MiB")
    assert '"note" holds text, which the engine duckdb cannot count' in said
    assert peak < few
    said, peak = _within(notes, "512MiB", "cart")
    assert "are so long that a sample takes about 0.2GB, but memory is 0.5GB" in said
    assert peak < few
    longer = _long_texts(tmp_path / "longer.parquet", 4_000, 100_000, words=0)
    said, peak = _within(longer, "512MiB")
    assert 'the texts in "note" are so long that they take about 0.8GB to read' in said
    assert peak < few
