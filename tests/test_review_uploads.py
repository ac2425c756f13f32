"""Files that come in through the review page: none leaves its folder, none is a bomb."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import io
import os
import random
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from io_files import PAYMENTS, saved, without
from stair.data import column_names, read
from stair.data.reading import ending_of
from stair.errors import StairError
from stair.review.uploads import UPLOADS, FileInfo, Folder, check_expanded, clean_name, receive

TABLES = [".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".csv.gz", ".parquet", ".pq", ".xlsx"]


def upload(folder: Folder, name: str, content: bytes | Iterable[bytes], most: int = 10**6) -> Path:
    async def stream() -> AsyncIterator[bytes]:
        for block in [content] if isinstance(content, bytes) else content:
            yield block

    return asyncio.run(receive(folder, name, stream(), most))


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
    folder.make_uploads()
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
        assert isinstance(info, FileInfo)
        assert info.time.tzinfo is not None
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


def test_the_same_content_is_the_same_file(folder: Folder) -> None:
    """Verdicts belong to a file, so they are found again after another upload of it."""
    first = upload(folder, "a.csv", b"a\n1\n")
    second = upload(folder, "a.csv", b"a\n2\n")
    third = upload(folder, "a.csv", b"a\n33\n")
    assert [p.name for p in (first, second, third)] == ["a.csv", "a (2).csv", "a (3).csv"]
    assert upload(folder, "a.csv", b"a\n1\n") == first
    assert upload(folder, "a.csv", [b"a\n", b"2\n"]) == second
    assert upload(folder, "a (3).csv", b"a\n33\n") == third
    assert len(everything(folder.uploads)) == 3
    assert first.read_bytes() == b"a\n1\n"
    long = "x" * 300 + ".csv.gz"
    names = [upload(folder, long, bytes([i])).name for i in range(1, 12)]
    assert len(set(names)) == 11
    assert names[-1].endswith("x (11).csv.gz")
    assert max(map(len, names)) == 120


def test_uploads_at_once_do_not_take_each_other_s_name(folder: Folder) -> None:
    async def stream(content: bytes) -> AsyncIterator[bytes]:
        for i in range(len(content)):
            await asyncio.sleep(0)
            yield content[i : i + 1]

    async def all_of_them() -> list[Path]:
        contents = [f"a\n{i % 10}\n".encode() for i in range(30)]
        return await asyncio.gather(*(receive(folder, "a.csv", stream(c), 99) for c in contents))

    found = asyncio.run(all_of_them())
    for i, path in enumerate(found):
        assert path.read_text() == f"a\n{i % 10}\n"
    assert len(everything(folder.uploads)) == len(set(found)) == 10


def test_a_disk_without_hard_links(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    names = [upload(folder, "a.csv", content).name for content in (b"1", b"2", b"1")]
    assert names == ["a.csv", "a (2).csv", "a.csv"]
    assert everything(folder.uploads) == ["a (2).csv", "a.csv"]


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
        assert len(everything(folder.uploads)) == 1
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
    """Many disks say so only when everything has to be on them."""

    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
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


# Files that grow ---------------------------------------------------------------------------------


def test_plain_text_is_its_own_size(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.csv", "x" * 1000)
    check_expanded(path, 1000)
    with pytest.raises(StairError, match=r"a.csv is larger than 999 bytes"):
        check_expanded(path, 999)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.jsonl.gz", "a.csv", "a.TXT.GZ"])
def test_zipped_text_is_counted_in_all_its_parts(tmp_path: Path, name: str) -> None:
    """Several gzip files in a row are one, and a zipped file need not be called so."""
    path = saved(tmp_path, name, gzip.compress(b"x" * 600) + gzip.compress(b"y" * 400))
    check_expanded(path, 1000)
    with pytest.raises(StairError, match=r"grows to more than 999 bytes when it is unpacked"):
        check_expanded(path, 999)


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    content = gzip.compress(random.Random(0).randbytes(10_000))
    for broken in (content[:500], content[:500] + bytes(9) + content[509:], b"plain", b"\x1f\x8b"):
        with pytest.raises(StairError, match=r"not a sound gzip file"):
            check_expanded(saved(tmp_path, "a.csv.gz", broken), 10**9)


def workbook(path: Path, **changed: bytes) -> Path:
    """A small Excel file of which some parts are replaced."""
    book = openpyxl.Workbook()
    book.active.append(["a", "b"])
    book.active.append([1, 2])
    memory = io.BytesIO()
    book.save(memory)
    book.close()
    with zipfile.ZipFile(memory) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            parts = [v for k, v in changed.items() if f"{k}.xml" in member.filename]
            new.writestr(member.filename, parts[0] if parts else old.read(member))
        for name, content in changed.items():
            if name.startswith("new"):
                new.writestr(f"xl/{name}.bin", content)
    return path


def sheet(rows: bytes) -> bytes:
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return b'<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>' % (space, rows)


def test_excel_is_counted_as_it_is_unpacked(tmp_path: Path) -> None:
    check_expanded(workbook(tmp_path / "a.xlsx"), 10**6)
    grown = workbook(tmp_path / "b.xlsx", new=bytes(3_000_000))
    assert grown.stat().st_size < 20_000
    check_expanded(grown, 4_000_000)
    with pytest.raises(StairError, match=r"b.xlsx grows to more than 2 MB"):
        check_expanded(grown, 2_000_000)


def test_a_workbook_whose_styles_are_endless(tmp_path: Path) -> None:
    """What is not cells is held as a tree of many times its size, so it has a limit of its own."""
    path = workbook(tmp_path / "a.xlsx", styles=b" " * 65_000_000)
    with pytest.raises(StairError, match=r"a.xlsx grows to more than 64 MB"):
        check_expanded(path, 10**9)


def test_a_row_without_an_end_in_an_excel_file(tmp_path: Path) -> None:
    """The cells of a row are held together: 2,000,000 empty ones in a file of twelve kilobytes took
    600 megabytes."""
    row = b'<row r="1"><c r="A1"><v>1</v></c>' + b"<c/>" * 5_000_000 + b"</row>"
    path = workbook(tmp_path / "a.xlsx", sheet1=sheet(row))
    with pytest.raises(StairError, match=r"a.xlsx has a row of more than 16 MB"):
        check_expanded(path, 10**9)
    links = b"<hyperlinks>" + b"<hyperlink/>" * 2_000_000 + b"</hyperlinks>"
    many = sheet(b'<row r="1"/>' * 2_000_000).replace(b"</sheetData>", b"</sheetData>" + links)
    check_expanded(workbook(tmp_path / "b.xlsx", sheet1=many), 10**9)


@pytest.mark.parametrize(
    "damage", ["not a zip", "cut", "garbled", "many", "packed", "zip64", "list"]
)
def test_zip_files_that_no_excel_file_is(tmp_path: Path, damage: str) -> None:
    path = workbook(tmp_path / "a.xlsx")
    content = path.read_bytes()
    if damage == "not a zip":
        path.write_bytes(b"x" * 100_000)
    elif damage == "cut":
        path.write_bytes(content[:-40])
    elif damage == "garbled":
        path.write_bytes(content[:300] + bytes(200) + content[500:])
    elif damage == "zip64":
        path.write_bytes(content[:-22] + b"PK\6\7" + bytes(16) + content[-22:])
    elif damage == "list":
        path.write_bytes(content[:-10] + b"\xff" * 4 + content[-6:])
    else:
        with zipfile.ZipFile(path, "w") as book:
            if damage == "packed":
                book.writestr("a", b"1", zipfile.ZIP_LZMA)
            else:
                for i in range(10_001):
                    book.writestr(f"{i}", b"")
    with pytest.raises(StairError) as caught:
        check_expanded(path, 10**9)
    assert "a.xlsx" in str(caught.value)


def _varint(number: int) -> bytes:
    """A whole number as the footer of a Parquet file holds it."""
    number, found = number * 2, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def claiming(path: Path, rows: int) -> Path:
    """A small Parquet file whose footer claims this many rows."""
    real = 123_457
    pq.write_table(pa.table({"a": [7] * real}), path)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    assert footer.count(_varint(real)) >= 2
    footer = footer.replace(_varint(real), _varint(rows))
    end = len(footer).to_bytes(4, "little") + b"PAR1"
    path.write_bytes(content[: -8 - length] + footer + end)
    return path


@pytest.mark.parametrize("missing", ["", "duckdb"])
def test_parquet_is_judged_by_its_own_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Ten kilobytes that claim a million million rows; by DuckDB, and where only Arrow is there."""
    if missing:
        without(monkeypatch, missing)
    path = claiming(tmp_path / "a.parquet", 10**12)
    assert path.stat().st_size < 10_000
    with pytest.raises(StairError, match=r"a.parquet grows to more than 2 GB"):
        check_expanded(path, 2 * 10**9)
    sound = tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": range(1000), "s": ["text"] * 1000}), sound)
    check_expanded(sound, 10**6)
    with pytest.raises(StairError, match=r"b.parquet grows to more than 5 kB"):
        check_expanded(sound, 5_000)
    for broken in (sound.read_bytes()[:-4], sound.read_bytes()[:100], b"PAR1", b"no", b""):
        with pytest.raises(StairError, match=r"c.pq"):
            check_expanded(saved(tmp_path, "c.pq", broken), 10**9)


@pytest.mark.parametrize("nested", [False, True])
def test_one_long_text_in_many_rows(tmp_path: Path, nested: bool) -> None:
    """Stored once and referred to by every row; each row gets its own copy when it is used."""
    indices = pa.array([0] * 30_000, pa.int32())
    column: Any = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * 100_000]))
    if nested:
        column = pa.StructArray.from_arrays([column], ["inside"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"s": column}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(StairError, match=r"a.parquet grows to more than 2 GB"):
        check_expanded(path, 2 * 10**9)


def test_a_real_bomb_costs_no_memory(tmp_path: Path) -> None:
    """Two gigabytes of zeros in a few megabytes: refused by a process that never held them."""
    path = tmp_path / "bomb.csv.gz"
    part = gzip.compress(bytes(1 << 27), 6)
    path.write_bytes(part * 17)  # several gzip files in a row are one
    assert path.stat().st_size < 5_000_000
    code = (
        "import sys; from pathlib import Path; from guarded import peak_kilobytes\n"
        "from stair.errors import StairError\n"
        "from stair.review.uploads import check_expanded\n"
        "before = peak_kilobytes()\n"
        "try:\n    check_expanded(Path(sys.argv[1]), 2 * 10**9)\n"
        "except StairError as error:\n    print(error)\n"
        "print(peak_kilobytes() - before)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    here = Path(__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here)
    said, grown = done.stdout.splitlines()
    assert said.startswith("bomb.csv.gz grows to more than 2 GB when it is unpacked; ")
    assert 0 < int(grown) < 50_000  # kilobytes


# What would blow up after the check --------------------------------------------------------------


def test_a_row_far_down_in_an_excel_file(tmp_path: Path) -> None:
    """openpyxl gives every row that a file leaves out: a row number of a million million in a file
    of five kilobytes was read for ever."""
    rows = b'<row r="1"><c r="A1"><v>1</v></c></row><row r="%d"><c r="A%d"><v>1</v></c></row>'
    path = workbook(tmp_path / "a.xlsx", sheet1=sheet(rows % (10**12, 10**12)))
    with pytest.raises(StairError, match=r"a.xlsx has a row beyond 1,048,576, where Excel itself"):
        read(path)


def test_an_excel_file_that_is_all_gaps(tmp_path: Path) -> None:
    """Two cells in each row, the second in the last column there is: a hundred kilobytes of file
    were gigabytes of nothing."""
    row = b'<row r="%d"><c r="A%d"><v>1</v></c><c r="XFD%d"><v>1</v></c></row>'
    rows = b"".join(row % (i, i, i) for i in range(1, 3000))
    path = workbook(tmp_path / "a.xlsx", sheet1=sheet(rows))
    with pytest.raises(StairError, match=r"16,384 columns with a value in .* places only"):
        read(path, columns=["1"])


def test_lines_that_have_no_key_in_common(tmp_path: Path) -> None:
    """A key of its own in each of 100,000 lines makes 10,000,000,000 cells of a megabyte."""
    path = saved(tmp_path, "a.jsonl", "".join(f'{{"k{i}":1}}\n' for i in range(11_000)))
    with pytest.raises(StairError, match=r"11,000 rows and 11,000 columns with a value in 11,000"):
        column_names(path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_line_without_an_end(tmp_path: Path, name: str) -> None:
    """A gigabyte in one line took several of memory before anything was said about it."""
    path = saved(tmp_path, name, b"a,b\n" * (name == "a.csv") + b"x," * (1 << 24) + b"x")
    line = 2 if name == "a.csv" else 1
    with pytest.raises(StairError, match=rf"{name} line {line} is longer than 33,554,432 charact"):
        read(path)


def test_a_wide_table_is_read_in_seconds(tmp_path: Path) -> None:
    """DuckDB took a minute and five gigabytes for 1,000 columns, the plain reader two seconds."""
    names = ",".join(f"c{i}" for i in range(5_000))
    path = saved(tmp_path, "a.csv", names + "\n" + (",".join(["1"] * 5_000) + "\n") * 3)
    frame = read(path)
    assert (frame.n_rows, len(frame.columns)) == (3, 5_000)


# Endings that lie --------------------------------------------------------------------------------


def _contents() -> dict[str, bytes]:
    page = b"<!DOCTYPE html>\n<html><head><title>Sign in, please</title></head>\n</html>\n"
    zipped, book, parquet = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("a.csv", "a,b\n1,2\n")
    made = openpyxl.Workbook()
    made.active.append(["a"])
    made.save(book)
    made.close()
    pq.write_table(pa.table({"a": [1, 2], "s": ["é", "ü"]}), parquet)
    table = parquet.getvalue()
    return {
        "page": page,
        "page after a mark": b"\xef\xbb\xbf \r\n" + page.lower(),
        "zip": zipped.getvalue(),
        "book": book.getvalue(),
        "parquet": table,
        "cut parquet": table[:-4],
        "parquet with a long footer": table[:-8] + b"\xff\xff\xff\x7fPAR1",
        "head of parquet": table[:4] + bytes(20),
        "zipped twice": gzip.compress(gzip.compress(b"a,b\n1,2\n")),
        "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\n",
        "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
        "zeros": bytes(1000),
        "noise": random.Random(1).randbytes(5000),
        "sqlite": b"SQLite format 3\0" + bytes(84),
        "nothing": b"",
    }


CONTENTS = _contents()
RIGHT = {("book", ".xlsx"), ("parquet", ".parquet"), ("parquet", ".pq")}


@pytest.mark.parametrize("ending", TABLES)
@pytest.mark.parametrize("content", CONTENTS)
def test_an_ending_that_lies(tmp_path: Path, content: str, ending: str) -> None:
    """One sentence with the file's name in it, whatever was saved under the name of a table."""
    path = saved(tmp_path, f"it{ending}", CONTENTS[content])
    if (content, ending) in RIGHT:
        check_expanded(path, 10**6)
        return
    with pytest.raises(StairError) as caught:
        read(path)
    assert str(caught.value).startswith(("it.", "cannot read it."))
    assert "\n" not in str(caught.value)
    with contextlib.suppress(StairError):
        check_expanded(path, 10**6)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("page", "it.csv is a web page, not a table"),
        ("pdf", "it.csv is a PDF, not a table"),
        ("zip", "it.csv is a zip file or an Excel file, not text; check its ending"),
        ("parquet", "it.csv is a Parquet file, not text"),
        ("zipped twice", "it.csv is zipped twice, not text"),
    ],
)
def test_common_lies_are_named(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(StairError, match=words):
        read(saved(tmp_path, "it.csv", CONTENTS[content]))


def test_a_column_may_be_called_as_another_file_begins(tmp_path: Path) -> None:
    assert list(read(saved(tmp_path, "a.csv", "PAR1,b\n1,2\n")).columns) == ["PAR1", "b"]
