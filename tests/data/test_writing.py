"""Every promise of stair.data about writing: all of a file, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from io_files import (
    NAN,
    an_ordinary_person,
    column,
    equal,
    folder_for_everybody,
    holds,
    saved,
    times,
    without,
)
from stair.data import atomic_write, column_names, read, write_table
from stair.errors import StairError


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with folder_for_everybody() as folder:
        yield folder


def test_atomic_write(tmp_path: Path) -> None:
    path = tmp_path / "out.html"
    atomic_write(path, "Malmö\r\n")
    assert path.read_bytes() == "Malmö\r\n".encode()
    path.chmod(0o640)
    atomic_write(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert path.stat().st_mode & 0o777 == 0o640
    link = tmp_path / "link"
    link.symlink_to(path)
    atomic_write(link, "through")
    assert link.is_symlink()
    assert path.read_text() == "through"
    atomic_write("/dev/null", "x")
    assert Path("/dev/null").is_char_device()
    long = tmp_path / ("x" * 255)
    atomic_write(long, "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["link", "out.html", long.name])


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "out", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, MemoryError])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out.txt"])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_nothing_half_written_is_left(
    failure: Any, name: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = saved(tmp_path, name, "old")

    def fail(*_: object) -> None:
        raise failure(28, "No space left on device")

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    kind = StairError if failure is OSError else failure
    with pytest.raises(kind) as caught:
        if name == "out.txt":
            atomic_write(old, "new")
        else:
            write_table(old, {"a": np.arange(3)})
    if kind is StairError:
        assert str(caught.value).endswith("no space left on device.")
    assert old.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_places_that_cannot_be_written(tmp_path: Path, open_folder: Path) -> None:
    for act in (lambda p: atomic_write(p, "x"), lambda p: write_table(p, {"a": np.array([1])})):
        (tmp_path / "folder.csv").mkdir(exist_ok=True)
        with pytest.raises(StairError, match=r"it is a folder"):
            act(tmp_path / "folder.csv")
        with pytest.raises(StairError, match=r"there is no folder"):
            act(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(StairError, match=r"expected the path of a file"):
        atomic_write(None, "x")  # type: ignore[arg-type]
    open_folder.chmod(0o555)
    with an_ordinary_person(), pytest.raises(StairError, match=r'cannot write ".*": no permission'):
        atomic_write(open_folder / "x.txt", "x")
    open_folder.chmod(0)
    with an_ordinary_person(), pytest.raises(StairError, match=r'cannot write ".*": no permission'):
        atomic_write(open_folder / "x.txt", "x")


WRITTEN: dict[str, Any] = {
    "f": np.array([1.5, NAN, 0.1, np.inf]),
    "i": np.array([2**63 - 1, 1, 2, 3]),
    "b": np.array([True, False, True, True]),
    "b?": column([None, True, False, None], object),
    'a "text", a': column([None, 'x,"y"\nz', "ö", " "], object),
    "t": np.array(
        ["2024-01-31T10:20:30.123456", "NaT", "1960-01-01", "2024-01-31"], "datetime64[us]"
    ),
    "none": np.array([NAN] * 4),
}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_what_is_written_is_read_back(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package == "pyarrow":
        without(monkeypatch, "duckdb")
    path = tmp_path / name
    write_table(path, WRITTEN)
    frame = read(path)
    expected = {key: (v.dtype, v.tolist()) for key, v in WRITTEN.items()}
    expected["t"] = times("2024-01-31T10:20:30.123456", None, "1960-01-01", "2024-01-31")
    if name == "t.csv":
        expected['a "text", a'] = (object, [None, 'x,"y"\nz', "ö", None])  # a blank is missing
    holds(frame, **expected)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_parquet_of_columns_that_begin_with_nothing(tmp_path: Path) -> None:
    texts = column([None] * 5000 + ["x"], object)
    truths = column([None] * 5000 + [True], object)
    write_table(tmp_path / "t.parquet", {"s": texts, "b": truths})
    frame = read(tmp_path / "t.parquet")
    equal(frame.columns["s"], texts)
    equal(frame.columns["b"], truths)


def test_parquet_names_that_differ_in_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"a": np.array([1]), "A": np.array([2])}
    write_table(tmp_path / "t.parquet", columns)
    assert column_names(tmp_path / "t.parquet") == ("a", "A")
    without(monkeypatch, "pyarrow.parquet")
    with pytest.raises(StairError, match=r"differ only in case"):
        write_table(tmp_path / "t.parquet", columns)


def test_columns_that_cannot_be_written(tmp_path: Path) -> None:
    for wrong in ({}, {"a": np.zeros(2), "b": np.zeros(3)}):
        with pytest.raises(StairError, match=r"columns of different lengths, or none"):
            write_table(tmp_path / "t.csv", wrong)
    assert list(tmp_path.iterdir()) == []


def test_many_rows_are_written_in_order(tmp_path: Path) -> None:
    numbers = np.arange(25_001)
    write_table(tmp_path / "t.csv", {"a": numbers, "b": numbers / 8})
    holds(
        read(tmp_path / "t.csv"),
        a=(np.int64, numbers.tolist()),
        b=(np.float64, (numbers / 8).tolist()),
    )


@pytest.mark.parametrize("text", ["x\ry", "\r:", "a\r\nb"])
def test_a_carriage_return_in_a_text_survives(text: str, tmp_path: Path) -> None:
    """csv.writer left it bare: the file was refused on reading, or the character was lost."""
    values = np.array([text, "plain", None], dtype=object)
    write_table(tmp_path / "t.csv", {"text": values, "n": np.arange(3)})
    assert read(tmp_path / "t.csv").columns["text"].tolist() == [text, "plain", None]
