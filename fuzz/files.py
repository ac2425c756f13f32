"""Damaged tables: each is read or refused in one sentence, soon, and within a bound of memory.

The reading is done by a process of its own, so that a crash of a library, a reading that does not
end and memory beyond all measure are findings too, and not the end of the run.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io as bytes_io
import multiprocessing as mp
import resource
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.result import Finding, Result, last_lines, origin, sentence_kind
from stair import Stair

Rng = np.random.Generator

SECONDS = 30.0  # for one file: a thousand times what a sound one takes
SPARE = 128 << 20  # bytes that libraries take for themselves
MULTIPLE = 200  # bytes of memory for each byte of the file
MOST = 6 << 30  # bytes of address space of the process that reads


# Sound files -------------------------------------------------------------------------------------


def rows_of(rng: Rng, fewest: int = 1) -> list[dict[str, Any]]:
    """A small table with a column of each kind, and gaps."""
    start = dt.datetime(2024, 1, 31, 10, 20)
    words = ["plain", 'say "hi"', "a,b;c", "007", "NA", "Malmö 😀", "", "two\nlines"]
    return [
        {
            "id": i,
            "amount": round(float(rng.normal(50, 10)), 2) if rng.random() < 0.9 else None,
            "word": words[int(rng.integers(len(words)))],
            "flag": bool(rng.random() < 0.3),
            "when": start + dt.timedelta(minutes=37 * i),
        }
        for i in range(int(rng.integers(fewest, 60)))
    ]


def _csv(rows: list[dict[str, Any]], rng: Rng) -> bytes:
    from stair.data.writing import csv_line

    separator = ",;\t|"[int(rng.integers(4))]
    end = ["\n", "\r\n", "\r"][int(rng.integers(3))]
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    text = end.join(csv_line(line, separator) for line in lines)
    return text.encode(["utf-8", "utf-8-sig", "utf-16"][int(rng.integers(3))])


def _through_file(write: Callable[[Path], object], name: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()


def _json_lines(rows: list[dict[str, Any]], _: Rng) -> bytes:
    import json

    return "\n".join(json.dumps(row, default=str) for row in rows).encode()


def _parquet(rows: list[dict[str, Any]], rng: Rng) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = ("NONE", "snappy", "zstd")
    buffer = bytes_io.BytesIO()
    table = pa.Table.from_pylist([{**row, "list": [row["id"]]} for row in rows])
    pq.write_table(table, buffer, compression=kinds[int(rng.integers(3))], row_group_size=20)
    return buffer.getvalue()


def _excel(rows: list[dict[str, Any]], _: Rng) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    for row in [list(rows[0]), *(list(row.values()) for row in rows)]:
        sheet.append(row)
    return _through_file(book.save, "t.xlsx")


def _sqlite(rows: list[dict[str, Any]], _: Rng) -> bytes:
    def write(path: Path) -> None:
        con = sqlite3.connect(path)
        con.execute("CREATE TABLE t (id INTEGER, amount REAL, word TEXT, flag, noticed TEXT)")
        told = [(*list(row.values())[:4], str(row["when"])) for row in rows]
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", told)
        con.commit()
        con.close()

    return _through_file(write, "t.sqlite")


def _duckdb(rows: list[dict[str, Any]], _: Rng) -> bytes:
    import duckdb

    def write(path: Path) -> None:
        with duckdb.connect(str(path)) as con:
            con.execute("CREATE TABLE t (id INT, amount DOUBLE, word TEXT, f BOOL, w TIMESTAMP)")
            con.executemany(
                "INSERT INTO t VALUES (?, ?, ?, ?, ?)", [list(r.values()) for r in rows]
            )

    return _through_file(write, "t.duckdb")


@dataclass(frozen=True)
class Format:
    """How a sound file is made; `hidden` are packages that its reader has to do without."""

    ending: str
    make: Callable[[list[dict[str, Any]], Rng], bytes]
    hidden: tuple[str, ...] = ()
    inner: Callable[[bytes, Rng], bytes] | None = field(default=None)


# Damage ------------------------------------------------------------------------------------------

TOKENS = (
    b"\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b'"', b"'", b",", b";", b"\t",
    b"\r", b"\n", b"\n\n", b"NaN", b"1e999", b"-", b"9" * 400, b"[" * 3000, b"{", b"}", b"\\ud800",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\x1b[2J", b"2024-02-30", b"0000-00-00", b"=1+1", b"A" * 70_000,
)  # fmt: skip


def damaged(content: bytes, rng: Rng) -> bytes:
    """A few bytes or pieces otherwise than they were."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        content = _STEPS[int(rng.integers(len(_STEPS)))](content, rng)
    return content


def _place(content: bytes, rng: Rng) -> int:
    """Anywhere, and often near an end, where formats keep what they need to be read."""
    n = len(content)
    near = int(rng.integers(0, 200))
    return min(n, (int(rng.integers(0, n + 1)), near, max(0, n - near))[int(rng.integers(3))])


def _flipped(content: bytes, rng: Rng) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 9)) if content else 0):
        changed[min(_place(content, rng), len(content) - 1)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _cut(content: bytes, rng: Rng) -> bytes:
    return content[: _place(content, rng)]


def _without_piece(content: bytes, rng: Rng) -> bytes:
    at = _place(content, rng)
    return content[:at] + content[at + int(rng.integers(1, 200)) :]


def _piece_twice(content: bytes, rng: Rng) -> bytes:
    at = _place(content, rng)
    piece = content[at : at + int(rng.integers(1, 200))]
    other = _place(content, rng)
    return content[:other] + piece * int(rng.choice([1, 1, 50])) + content[other:]


def _noise(content: bytes, rng: Rng) -> bytes:
    at, noise = _place(content, rng), rng.bytes(int(rng.integers(1, 64)))
    return content[:at] + noise + content[at + len(noise) * int(rng.integers(2)) :]


def _token(content: bytes, rng: Rng) -> bytes:
    at, token = _place(content, rng), TOKENS[int(rng.integers(len(TOKENS)))]
    return content[:at] + token + content[at + len(token) * int(rng.integers(2)) :]


_STEPS = (_flipped, _flipped, _cut, _without_piece, _piece_twice, _noise, _token, _token)


def _inside_gzip(content: bytes, rng: Rng) -> bytes:
    return gzip.compress(damaged(gzip.decompress(content), rng), mtime=0)


def _inside_zip(content: bytes, rng: Rng) -> bytes:
    """One of the files in a zip file, in an archive that is sound."""
    with zipfile.ZipFile(bytes_io.BytesIO(content)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    name = list(parts)[int(rng.integers(len(parts)))]
    name = "xl/worksheets/sheet1.xml" if rng.random() < 0.7 else name
    parts[name] = damaged(parts[name], rng)
    buffer = bytes_io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for each, part in parts.items():
            new.writestr(each, part)
    return buffer.getvalue()


FORMATS = {
    "CSV": Format(".csv", _csv),
    "CSV without DuckDB": Format(".csv", _csv, ("duckdb",)),
    "CSV, gzip": Format(
        ".csv.gz", lambda rows, rng: gzip.compress(_csv(rows, rng), mtime=0), (), _inside_gzip
    ),
    "JSON lines": Format(".jsonl", _json_lines),
    "Parquet": Format(".parquet", _parquet),
    "Parquet without DuckDB": Format(".parquet", _parquet, ("duckdb",)),
    "Excel": Format(".xlsx", _excel, (), _inside_zip),
    "SQLite": Format(".sqlite", _sqlite),
    "DuckDB": Format(".duckdb", _duckdb),
}


def damaged_file(kind: str, seed: int, number: int) -> bytes:
    """The same bytes for the same seed and number."""
    rng = np.random.default_rng([seed, number, list(FORMATS).index(kind), 11])
    chosen = FORMATS[kind]
    content = chosen.make(rows_of(rng), rng)
    if chosen.inner is not None and rng.random() < 0.7:
        return chosen.inner(content, rng)
    return damaged(content, rng)


# Reading -----------------------------------------------------------------------------------------


def look_at(path: Path) -> tuple[str, str, str]:
    """What becomes of a file: (read | refused | found, what tells it from others, the words)."""
    from stair import StairError, summarize
    from stair.data import read, write_with

    step = "reading"
    try:
        frame = read(path)
        try:
            step = "learning"
            if frame.n_rows > 3:
                labels = np.arange(frame.n_rows) % 3 == 0
                summarize(frame, labels=labels, min_score=0, method=Stair(max_rule_length=2))
            step = "copying"
            added = {"stair_rule": np.arange(frame.n_rows)}
            for ending in (path.suffixes[0], ".tsv"):
                name = f"out{'.csv' if ending in ('.sqlite', '.duckdb') else ending}"
                write_with(path.with_name(name), path, [added])
        except StairError as error:
            return "read", "", sentence_kind(str(error))
        return "read", "", ""
    except StairError as error:
        said = str(error)
        if len(said.splitlines()) != 1 or len(said) > 1000 or not said:
            return "found", "not one sentence", said[:400]
        return "refused", sentence_kind(said), said[:400]
    except Exception as error:
        return "found", f"{step}: {origin(error)}", last_lines(error)


def _read_all(pipe: Any, hidden: tuple[str, ...]) -> None:
    """The process that reads: a path comes, an outcome and the peak of memory go."""
    import warnings

    import_module("sklearn.feature_extraction.text")  # large, and imported by the first text
    warnings.simplefilter("error")
    for package in hidden:
        sys.modules[package] = None  # type: ignore[assignment]
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while (path := pipe.recv()) is not None:
        pipe.send((*look_at(Path(path)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10))


class Reader:
    """A process that reads files one after the other; another one after a crash."""

    def __init__(self, hidden: tuple[str, ...], sound: Path) -> None:
        self._hidden, self._sound = hidden, sound
        self._begin()

    def _begin(self) -> None:
        context = mp.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_read_all, args=(theirs, self._hidden), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.send(str(self._sound))  # what the libraries themselves need
        outcome, _, words, self._peak = self._pipe.recv()
        assert outcome == "read", words

    def look_at(self, path: Path) -> tuple[str, str, str]:
        self._pipe.send(str(path))
        try:
            if not self._pipe.poll(SECONDS):
                return self._again("found", "no end", f"after {SECONDS:g} seconds")
            outcome, kind, words, peak = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            return self._again("found", "crash", f"exit code {self._process.exitcode}")
        more, self._peak = peak - self._peak, max(peak, self._peak)
        if more > SPARE + MULTIPLE * path.stat().st_size:
            size = path.stat().st_size
            return "found", "memory", f"{more >> 20} MiB for a file of {size:,} bytes ({outcome})"
        return outcome, kind, words

    def _again(self, *outcome: str) -> tuple[str, str, str]:
        self.end()
        self._begin()
        return outcome[0], outcome[1], outcome[2]

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def run_kind(kind: str, n: int, seed: int = 0) -> tuple[Result, list[tuple[Finding, str]]]:
    """So many damaged files of one format."""
    result, kept = Result(), []
    chosen, check = FORMATS[kind], f"{kind} files"
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / f"sound{chosen.ending}"
        rng = np.random.default_rng(1)
        sound.write_bytes(chosen.make(rows_of(rng, fewest=40), rng))
        reader = Reader(chosen.hidden, sound)
        try:
            for number in range(n):
                content = damaged_file(kind, seed, number)
                path = Path(folder) / f"t{chosen.ending}"
                path.write_bytes(content)
                outcome, what, words = reader.look_at(path)
                result.count(check, "all", "files")
                if outcome != "found":
                    result.count(check, "all", outcome)
                    continue
                story = f"fuzz.files.damaged_file({kind!r}, {seed}, {number})"
                finding = Finding(check, "all", what, story, "read or refused", words)
                if all(known.key != finding.key for known in result.findings):
                    kept.append((finding, content.decode("latin-1")))
                result.found(finding)
        finally:
            reader.end()
    return result, kept


def run(n: int, seed: int = 0) -> tuple[Result, list[tuple[Finding, str]]]:
    """So many damaged files of each format: the tallies, and each kind of finding with its file."""
    total = Result()
    kept: list[tuple[Finding, str]] = []
    for kind in FORMATS:
        result, found = run_kind(kind, n, seed)
        total.tallies.update(result.tallies)
        kept += found
    return total, kept
