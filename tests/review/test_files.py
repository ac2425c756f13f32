"""Files that come in through the review page: none leaves its folder, none is a bomb."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from io_files import PAYMENTS, saved
from stair.data.reading import ending_of
from stair.errors import StairError
from stair.review.files import UPLOADS, File, Folder, clean_name

TABLES = [".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".csv.gz", ".parquet", ".pq", ".xlsx"]


def upload(folder: Folder, name: str, content: bytes | Iterable[bytes], most: int = 10**6) -> Path:
    async def stream() -> AsyncIterator[bytes]:
        for block in [content] if isinstance(content, bytes) else content:
            yield block

    return asyncio.run(folder.receive(name, stream(), most))


def everything(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


@contextlib.contextmanager
def a_folder() -> Iterator[tuple[Path, Folder]]:
    """A folder of its own for each example of a property, with something secret beside it."""
    with tempfile.TemporaryDirectory() as name:
        outside = Path(name).resolve()
        (outside / "secret.csv").write_text(PAYMENTS)
        (outside / "root").mkdir()
        (outside / "root" / "table.csv").write_text(PAYMENTS)
        yield outside, Folder(outside / "root")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "secret.csv").write_text(PAYMENTS)
    root = tmp_path / "root"
    root.mkdir()
    return Folder(root)


# The folder --------------------------------------------------------------------------------------


def test_the_list_shows_the_tables_alone(folder: Folder) -> None:
    """No hidden file, database or script, nothing deeper, and no link that leads away."""
    for name in ("b.csv", "A.parquet", "notes.md", ".hidden.csv", "data.duckdb", "x.sqlite", "gz"):
        saved(folder.root, name, "12345")
    folder.uploads.mkdir()
    saved(folder.uploads, "c.csv.gz", "123")
    saved(folder.uploads, ".stair-1.tmp", "123")
    (folder.root / "deeper").mkdir()
    saved(folder.root / "deeper", "d.csv", "1")
    (folder.root / "folder.csv").mkdir()
    (folder.root / "away.csv").symlink_to(folder.root.parent / "secret.csv")
    (folder.root / "dangling.csv").symlink_to("nowhere.csv")
    (folder.root / "near.csv").symlink_to("b.csv")
    found = folder.files()
    assert [(f.name, f.bytes) for f in found] == [
        ("A.parquet", 5),
        ("b.csv", 5),
        ("near.csv", 5),
        (f"{UPLOADS}/c.csv.gz", 3),
    ]
    for info in found:
        assert isinstance(info, File)
        assert folder.find(info.name).stat().st_size == info.bytes


def test_the_list_ends(folder: Folder) -> None:
    for i in range(520):
        (folder.root / f"{i:03}.csv").touch()
    assert [f.name for f in folder.files()] == [f"{i:03}.csv" for i in range(500)]


@pytest.mark.parametrize(
    "name",
    [
        "../secret.csv",
        "..",
        ".",
        "",
        "/",
        "/etc/passwd",
        "/secret.csv",
        "//host/share.csv",
        "a/../../secret.csv",
        f"{UPLOADS}/../../secret.csv",
        f"{UPLOADS}/../table.csv",
        "./table.csv",
        "table.csv/",
        "..\\secret.csv",
        "C:\\secret.csv",
        "C:table.csv",
        "table.csv\0",
        "table.csv\0.txt",
        "a\nb.csv",
        "\ud800.csv",
        "deeper/d.csv",
        "away.csv",
        "away/secret.csv",
        ".hidden.csv",
        "missing.csv",
        "table.csv.py",
        "table",
        "data.duckdb",
        "link-to-database.csv",
        "folder.csv",
        "pipe.csv",
        "%2e%2e/secret.csv",
        "~/x.csv",
        "a" * 5000 + ".csv",
        "é" * 200 + ".csv",
    ],
)
def test_nothing_else_is_found(folder: Folder, name: str) -> None:
    root = folder.root
    for there in ("table.csv", ".hidden.csv", "data.duckdb", "table.csv.py", "table"):
        saved(root, there, PAYMENTS)
    for made in ("deeper", "folder.csv", UPLOADS):
        (root / made).mkdir()
    saved(root / "deeper", "d.csv", PAYMENTS)
    (root / "away.csv").symlink_to(root.parent / "secret.csv")
    (root / "away").symlink_to(root.parent)
    (root / "link-to-database.csv").symlink_to("data.duckdb")
    os.mkfifo(root / "pipe.csv")
    with pytest.raises(StairError) as caught:
        folder.find(name)
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 250
    assert str(root) not in said
    said.encode()


def test_a_folder_of_uploads_that_leads_away_is_no_folder_of_ours(folder: Folder) -> None:
    elsewhere = folder.root.parent / "elsewhere"
    elsewhere.mkdir()
    saved(elsewhere, "a.csv", PAYMENTS)
    folder.uploads.symlink_to(elsewhere)
    assert folder.files() == []
    with pytest.raises(StairError, match="leads out of this folder"):
        folder.find(f"{UPLOADS}/a.csv")
    with pytest.raises(StairError, match="leads out of this folder"):
        upload(folder, "b.csv", b"a\n1\n")
    assert everything(elsewhere) == ["a.csv"]


PIECES = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "table.csv", "secret.csv", UPLOADS, "~", "C:", "\0", "%2e", "root"]
    )
    | st.text(max_size=5),
    max_size=8,
).map("".join)


@given(PIECES, st.sampled_from(["", ".csv", "/secret.csv", "/../secret.csv"]))
@example("../secret", ".csv")
def test_no_name_leads_out_of_the_folder(name: str, ending: str) -> None:
    with a_folder() as (_, folder):
        try:
            found = folder.find(name + ending)
        except StairError:
            return
        assert found == folder.root / "table.csv"


# Uploads -----------------------------------------------------------------------------------------


@given(PIECES | st.text(max_size=300), st.sampled_from([*TABLES, ".CSV", ".Tsv.GZ"]))
@example("", ".csv")
@example("CON", ".csv")
@example("com1.x", ".parquet")
@example("é" * 200, ".csv.gz")
@example("-rf", ".csv")
@example("a.csv.gz" * 30, ".csv")
@example("nul ", ".csv")
def test_every_upload_stays_in_its_folder_under_a_plain_name(name: str, ending: str) -> None:
    """Whatever the name: one file, in the folder for uploads, found again by its name, and what was
    cleaned once stays as it is."""
    with a_folder() as (outside, folder):
        before = everything(outside)
        path = upload(folder, name + ending, b"a\n1\n")
        assert path.parent == folder.root / UPLOADS
        assert path.name == clean_name(name + ending) == clean_name(path.name)
        assert len(path.name.encode()) <= 120
        assert path.name[0] not in ".- "
        assert not set(path.name) & set('/\\:*?"<>|\0\n')
        assert path.name.split(".")[0].strip().upper() not in {"CON", "NUL", "AUX", "PRN", "COM1"}
        assert path.name.lower().endswith(ending.lower())
        ending_of(path)
        assert everything(outside) == sorted(
            [*before, f"root/{UPLOADS}", f"root/{UPLOADS}/{path.name}"]
        )
        assert folder.find(f"{UPLOADS}/{path.name}") == path
        assert f"{UPLOADS}/{path.name}" in [f.name for f in folder.files()]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("Zahlungen März 2024.csv", "Zahlungen März 2024.csv"),
        ("支払い_2024-01.parquet", "支払い_2024-01.parquet"),
        ("C:\\fakepath\\data (1).CSV", "data (1).csv"),
        ("../../etc/passwd.csv", "passwd.csv"),
        ("<script>alert(1)</script>.csv", "script_.csv"),
        ("a<b>'\"&c.csv", "a_b_c.csv"),
        ("con.csv", "_con.csv"),
        (".csv", "table.csv"),
        ("...csv", "table.csv"),
        ("v1.2.final.tsv.gz", "v1.2.final.tsv.gz"),
        ("right\u202eto left.csv", "right_to left.csv"),
        ("e\u0301.csv", "é.csv"),
    ],
)
def test_a_name_stays_readable(name: str, kept: str) -> None:
    assert clean_name(name) == kept


@pytest.mark.parametrize("name", ["a.duckdb", "a.DB", "a.ddb", "a.sqlite", "b.sqlite3"])
def test_databases_are_for_the_command_line(folder: Folder, name: str) -> None:
    """A view in a DuckDB file can read other files of this machine."""
    with pytest.raises(StairError, match="database, which the page does not open; name it on the"):
        upload(folder, name, b"1")
    with pytest.raises(StairError, match="on the command line"):
        folder.find(name)
    assert everything(folder.root) == []


@pytest.mark.parametrize(
    "name", ["a", "", "a.py", "a.csv.exe", "a.gz", "a.db.gz", "a.xlsx.gz", "a.xls", "csv", "a.csv."]
)
def test_other_endings_are_refused(folder: Folder, name: str) -> None:
    with pytest.raises(StairError, match=r"expected .csv, .tsv"):
        upload(folder, name, b"1")
    assert everything(folder.root) == []


def test_another_upload_takes_the_place_of_the_one_with_its_name(folder: Folder) -> None:
    """The same path, so that verdicts on the same rows are found again; half of it is never there,
    and several at once do not mix."""
    first = upload(folder, "a.csv", b"a\n1\n")
    assert upload(folder, "a.csv", [b"a\n", b"22\n"]) == first
    assert first.read_bytes() == b"a\n22\n"
    with pytest.raises(StairError, match="is larger than"):
        upload(folder, "a.csv", b"x" * 100, most=10)
    assert first.read_bytes() == b"a\n22\n"

    async def stream(content: bytes) -> AsyncIterator[bytes]:
        for i in range(len(content)):
            await asyncio.sleep(0)
            yield content[i : i + 1]

    async def all_of_them() -> list[Path]:
        contents = [f"a\n{i}\n".encode() * (i + 1) for i in range(10)]
        return await asyncio.gather(*(folder.receive("a.csv", stream(c), 99) for c in contents))

    assert set(asyncio.run(all_of_them())) == {first}
    assert first.read_bytes() == b"a\n9\n" * 10  # the longest ends last
    assert everything(folder.uploads) == ["a.csv"]


def test_too_much_or_nothing_leaves_nothing(folder: Folder) -> None:
    with pytest.raises(StairError, match=r'"a.csv" is larger than 2 kB, the most that can be'):
        upload(folder, "a.csv", [b"x" * 1000] * 3, most=2000)
    with pytest.raises(StairError, match="empty"):
        upload(folder, "a.csv", b"")
    assert everything(folder.uploads) == []
    assert upload(folder, "a.csv", [b"x" * 1000] * 2, most=2000).stat().st_size == 2000


@pytest.mark.parametrize("broken", [RuntimeError, asyncio.CancelledError, KeyboardInterrupt])
def test_a_broken_upload_leaves_nothing(folder: Folder, broken: type[BaseException]) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"half of it"
        assert len(everything(folder.uploads)) == 2  # and its folder
        raise broken

    with pytest.raises(broken):
        upload(folder, "a.csv", blocks())
    assert everything(folder.uploads) == []


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, 'the disk is full, so "a.csv" was not kept; free some space'),
        (errno.EDQUOT, "the disk is full"),
        (errno.EIO, 'cannot keep "a.csv": input/output error'),
    ],
)
def test_a_full_disk_is_one_sentence(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, number: int, message: str
) -> None:
    def replace(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(StairError, match=message):
        upload(folder, "a.csv", b"a\n1\n")
    assert everything(folder.uploads) == []


def test_a_file_in_the_way(folder: Folder) -> None:
    saved(folder.root, UPLOADS, "1")
    with pytest.raises(StairError, match="in the way of uploads"):
        upload(folder, "a.csv", b"a\n1\n")
    with pytest.raises(StairError, match="is not a folder"):
        Folder(folder.root / UPLOADS)
    with pytest.raises(StairError, match="cannot open the folder"):
        Folder(folder.root / "missing")
