"""Saved rules on files of any size: batch by batch is all at once, whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from command import run
from stair.apply import Place, Truth, apply_to, explain_rows
from stair.data import many, read, write_table
from stair.data.reading import reading_in_batches
from stair.demo import payments
from stair.errors import StairError
from stair.export.answers import schema
from strategies import examples

TEXTS = st.sampled_from(
    ["", "NA", "1", "-2", "007", "1.5", "1e3", " 4 ", "x", "true", "False", "2024-03-01",
     "2024-03-01T10:00:00+02:00", "123456789012345678", "18446744073709551615", "inf", "nan"]
)  # fmt: skip
# As much of the world writes numbers and days; 1,234 alone may be a thousand.
ELSEWHERE = st.sampled_from(
    ["", "7", "1,5", "-0,25", "1,234", "12,000", "1.234,5", "123456789012345678", "1.5"]
)  # fmt: skip
DAYS = st.sampled_from(["", "31.01.2024", "31.01.2024 10:20", "31.02.2024", "1.5"])
THEIRS = st.sampled_from(["", "1/2/2024", "12/31/2024", "31/12/2024", "2024-01-31"])
PRICES = st.sampled_from(["NA", "$1,005.09", "$7", "-$12.5", "€7", "$1,234"])
LIMITS = st.sampled_from(["", "<0.6", "2.5", "> 9", "5+", "<2e-16", ".5", "<5", "x"])
CLOCKS = st.sampled_from(["NA", "7:05", "12:30", "-0:30", "+140:00", "1:02:03.5", "2:99"])
CELLS = [TEXTS, ELSEWHERE, DAYS, THEIRS, PRICES, LIMITS, CLOCKS]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.tuples(*CELLS), min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_columns_read_in_batches_are_those_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, ...]], at_once: int
) -> None:
    """Of a text file every column is what all of its values are, wherever a batch ends."""
    path = tmp_path_factory.mktemp("batches") / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows([[*"abcdefg"], *rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stair.data.csv_plain.FEWEST_AT_ONCE", 1)
        whole = read(path)
        with reading_in_batches(path, lambda names: names, at_once=at_once) as batches:
            frames = list(batches.frames)
    assert batches.n_rows == whole.n_rows == sum(frame.n_rows for frame in frames)
    for name, expected in whole.columns.items():
        found = np.concatenate([frame.columns[name] for frame in frames])
        assert found.dtype == expected.dtype
        assert list(map(repr, found.tolist())) == list(map(repr, expected.tolist()))
        assert {frame.types.get(name) for frame in frames} == {whole.types.get(name)}


PLAIN = st.sampled_from(
    [None, 1, 2**53 + 1, 2**70, -0.0, 1.0, 0.5, float("inf"), "7", "x", "2024-03-01",
     "2024-02-30", "2024-03-01T10:00:00+02:00", "2024-03-01T10:00:00Z"]
)  # fmt: skip
JSON_ALONE = st.sampled_from([True, False, [1, "a"], {"b": None}])


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(["lines", "table", "folder of lines", "folder of texts"]))
def test_values_with_types_are_the_same_in_batches_and_at_once(
    tmp_path_factory: pytest.TempPathFactory, drawn: st.DataObject, kind: str
) -> None:
    """JSON lines, tables of SQLite and folders of files were read as a whole by `apply`."""
    folder = tmp_path_factory.mktemp("typed")
    one = PLAIN if kind == "table" else TEXTS if kind.endswith("texts") else PLAIN | JSON_ALONE
    few = drawn.draw(st.lists(one, min_size=1, max_size=3))  # or nearly all would be text
    rows = drawn.draw(st.lists(st.sampled_from(few), min_size=3, max_size=14))
    if kind == "table":
        rows = [str(v) if isinstance(v, int) and v >= 2**63 else v for v in rows]
        path = folder / "t.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as con:
            con.execute("CREATE TABLE t (n, v)")
            con.executemany("INSERT INTO t VALUES (?, ?)", enumerate(rows))
            con.commit()
    else:
        path = folder if kind.startswith("folder") else folder / "t.jsonl"
        for k, part in enumerate([rows[:4], rows[4:9], rows[9:]]):
            if kind.endswith("texts"):
                lines = ["n,v", *(f"{n},{v}" for n, v in enumerate(part))]
            else:
                lines = [json.dumps({"n": n, "v": v}) for n, v in enumerate(part)]
            if part and (k == 0 or kind != "lines"):
                ending = "csv" if kind.endswith("texts") else "jsonl"
                name = "t.jsonl" if kind == "lines" else f"{k}.{ending}"
                (folder / name).write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stair.data.csv_plain.FEWEST_AT_ONCE", 1)
        patch.setattr("stair.data.jsonlines.MOST_KEPT", 0)
        try:
            whole = stair.data.read(path)
        except StairError as error:
            with pytest.raises(StairError) as found:
                _parts(path)
            assert str(found.value) == str(error)
            return
        for name, (array, was) in _parts(path).items():
            expected = whole.columns[name]
            assert array.dtype == expected.dtype
            assert list(map(repr, array.tolist())) == list(map(repr, expected.tolist()))
            assert was == {whole.types.get(name)}


def _parts(path: Path) -> dict[str, tuple[Any, set[str | None]]]:
    with many.reading_in_batches(path, lambda names: names, at_once=2) as batches:
        frames = list(batches.frames)
    assert batches.n_rows == sum(frame.n_rows for frame in frames)
    return {
        name: (
            np.concatenate([frame.columns[name] for frame in frames]),
            {frame.types.get(name) for frame in frames},
        )
        for name in frames[0].columns
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's payments as CSV, Parquet and DuckDB, and their rules."""
    folder, data = tmp_path_factory.mktemp("apply"), payments()
    write_table(folder / "p.csv", data)
    pd.DataFrame(data).to_parquet(folder / "p.parquet", row_group_size=700)
    with duckdb.connect(str(folder / "p.duckdb")) as con:
        con.execute(f"CREATE TABLE p AS SELECT * FROM read_parquet('{folder / 'p.parquet'}')")
    summary = stair.summarize(folder / "p.csv", labels="flagged", min_score=0.9, validate=0)
    summary.to_json(folder / "rules.json")
    return folder


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
@pytest.mark.parametrize("output", ["csv", "parquet", "duckdb"])
def test_batches_have_the_reasons_of_the_whole_and_of_each_row(
    folder: Path, tmp_path: Path, kind: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each format to each: labels, rules and reasons, and rows as they were."""
    monkeypatch.setattr("stair.data.reading.AT_ONCE", 333)
    monkeypatch.setattr("stair.data.copying_typed.AT_ONCE", 450)
    saved, told = stair.load(folder / "rules.json"), []
    out = tmp_path / f"out.{output}"
    applied = apply_to(saved, Place(folder / f"p.{kind}"), out, reasons=True, say=told.append)
    whole = saved.reasons(payments())
    frame = read(out)
    assert frame.columns["stair_reason"].tolist() == whole.words
    assert frame.columns["stair_reason_json"].tolist() == whole.documents
    assert frame.columns["stair_rule"].tolist() == whole.numbers.tolist()
    assert frame.columns["id"].tolist() == payments()["id"].tolist()
    assert applied.n_rows == 5000 and len(told) > 5
    for k in (0, 38, 4999):
        one = {name: array[k : k + 1] for name, array in payments().items()}
        assert saved.reasons(one)[0].words == whole.words[k]


def test_parquet_keeps_its_row_groups_and_compression(folder: Path, tmp_path: Path) -> None:
    saved, out = stair.load(folder / "rules.json"), tmp_path / "o.parquet"
    apply_to(saved, Place(folder / "p.parquet"), out, say=print)
    before, after = (pq.ParquetFile(p).metadata for p in (folder / "p.parquet", out))
    assert after.num_row_groups == before.num_row_groups == 8
    kinds = [m.row_group(0).column(0).compression for m in (before, after)]
    assert kinds[0] == kinds[1]


def test_values_that_no_batch_but_the_whole_can_read(tmp_path: Path) -> None:
    """A batch of a column without one number is refused only where the whole column is."""
    stair.summarize({"x": np.arange(40.0), "y": [0] * 30 + [1] * 10}, labels="y",
                    validate=0).to_json(tmp_path / "r.json")  # fmt: skip
    saved = stair.load(tmp_path / "r.json")
    for texts, refused in ((["many"] * 900 + ["35"], False), (["many"] * 901, True)):
        (tmp_path / "t.csv").write_text("x\n" + "\n".join(texts) + "\n")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("stair.data.reading.AT_ONCE", 300)
            if refused:
                with pytest.raises(StairError, match="\"x\" should have numbers, but has 'many'"):
                    apply_to(saved, Place(tmp_path / "t.csv"), tmp_path / "o.csv", say=print)
            else:
                applied = apply_to(saved, Place(tmp_path / "t.csv"), say=print)
                assert applied.notes[0].startswith("900 rows have values of")
                assert applied.decided.tolist() == [900, 1]
    assert not (tmp_path / "o.csv").exists()


def test_rows_pass_through_a_pipe(folder: Path) -> None:
    """`cat x.csv | stair apply rules.json - | head` printed a table of coverage. It passes the rows
    on, as filters do, and ends quietly when nobody reads on."""
    line = f"cat p.csv | {sys.executable} -m stair apply rules.json - | head -2"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].endswith("flagged,stair_label,stair_rule")
    assert done.stdout.count("\n") == 2
    assert "Traceback" not in done.stderr and "Share of rows" in done.stderr


def _is_writing(pid: int, folder: Path) -> bool:
    """Whether a process has written something to a new file there, by a name or without one."""
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            path, about = str(link.readlink()), link.stat()
        except OSError:
            continue
        if path.startswith(str(folder)) and about.st_size and "long.csv" not in path:
            return True
    return False


def test_killed_there_is_no_half_file(folder: Path, tmp_path: Path) -> None:
    """Also where nothing can be tidied up any more: what was there before is still there."""
    out = tmp_path / "out.csv"
    out.write_text("before")
    (tmp_path / "long.csv").write_bytes((folder / "p.csv").read_bytes())
    with (tmp_path / "long.csv").open("ab") as file:
        body = (folder / "p.csv").read_bytes().split(b"\n", 1)[1]
        for _ in range(60):
            file.write(body)
    words = ["-m", "stair", "apply", str(folder / "rules.json"), "long.csv", "-o", "out.csv"]
    with subprocess.Popen([sys.executable, *words], cwd=tmp_path, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as process:  # fmt: skip
        deadline = time.monotonic() + 60
        while not _is_writing(process.pid, tmp_path):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert out.read_text() == "before"
    if hasattr(os, "O_TMPFILE"):
        assert sorted(p.name for p in tmp_path.iterdir()) == ["long.csv", "out.csv"]


def test_explain_takes_many_rows(folder: Path, tmp_path: Path) -> None:
    """By their numbers, from a file, or the outliers that no rule covers; as text or as JSON that
    the schema describes."""
    (tmp_path / "rows.txt").write_text("39\n17\n")
    rules, table = folder / "rules.json", folder / "p.csv"
    asked = run("explain", rules, table, "--row", "17", "--row", "39", cwd=tmp_path)
    named = run("explain", rules, table, "--rows", "rows.txt", cwd=tmp_path)
    assert asked.stdout == named.stdout and asked.stdout.count(b"\n") == 2
    done = run("explain", rules, table, "--label", "flagged", "--uncovered", "--json", "-", "-q",
               cwd=tmp_path)  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, json.loads(schema("explain")))
    summary = stair.summarize(table, labels="flagged", min_score=0.9, validate=0)
    missed = summary.unexplained_rows()
    assert [row["row"] for row in found["rows"]] == (missed + 1).tolist()
    assert [row["words"] for row in found["rows"]] == summary.reasons(missed).words
    (tmp_path / "none.csv").write_text(
        table.read_text().splitlines()[0] + "\n,2024-01-01,1,1,DE,fuel,a,b,0\n"
    )
    done = run("explain", rules, "none.csv", "--label", "flagged", "--uncovered", cwd=tmp_path)
    assert done.stdout == b"Every outlier by its label is covered by a rule.\n"
    every = list(explain_rows(stair.load(rules), Place(table), say=print))
    assert len(every) == 5000 and str(every[38]) in asked.stdout.decode()
    with pytest.raises(StairError, match="no column"):
        apply_to(stair.load(rules), Place(table), truth=Truth("flaged"), say=print)
    for words, said in (
        (("--uncovered",), "--label"),
        (("--rows", "rows.txt", "--row", "1"), "one"),
    ):
        assert said in run("explain", rules, table, *words, cwd=tmp_path).stderr.decode()


def test_the_page_has_the_speed_that_was_measured() -> None:
    from benchmarks.apply import PAGE, up_to_date

    assert PAGE.read_text(encoding="utf-8") == up_to_date()
