"""`-` for standard input and output: real processes with real pipes between them."""

from __future__ import annotations

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import stair
from command import run
from stair.export.kinds import KINDS

COMMAND = [sys.executable, "-m", "stair"]


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """A line with `stair` in it, which fails where any part of it does."""
    line = line.replace("stair ", f"{' '.join(COMMAND)} ")
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], capture_output=True, cwd=cwd, timeout=120,
        check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table with rules learned from it, and a table that no pipe holds at once."""
    folder = tmp_path_factory.mktemp("piped")
    rng = np.random.default_rng(0)
    rows = [f"{v:.3f},{w:.3f},{int(v > 1)}\n" for v, w in rng.normal(size=(200, 2))]
    (folder / "in.csv").write_text("v,w,y\n" + "".join(rows))
    (folder / "long.csv").write_text("v,w,y\n" + "".join(rows * 100))
    stair.summarize(folder / "in.csv", labels="y").to_json(folder / "rules.json")
    return folder


def test_json_through_a_pipe_is_json_alone(folder: Path) -> None:
    """`-` was a file of that name. Now the rules go to the next program, and words for people to
    standard error, where --quiet silences them."""
    given = (folder / "in.csv").read_bytes()
    done = run("summarize", "-", "--label", "y", "--json", "-", cwd=folder, given=given)
    assert done.returncode == 0
    found, expected = json.loads(done.stdout), json.loads((folder / "rules.json").read_text())
    assert found["facts"]["source"] == "standard input"
    for rule in expected["rules"]:
        assert rule["evidence"]["source"] == "in.csv"
        rule["evidence"]["source"] = "standard input"
    assert found["rules"] == expected["rules"]
    assert done.stderr.startswith(b"standard input   200 rows")
    assert b"Outliers are rows where" in done.stderr
    assert b"Wrote" not in done.stderr
    quiet = run("summarize", "-", "--label", "y", "--json", "-", "-q", cwd=folder, given=given)
    assert (quiet.stdout, quiet.stderr) == (done.stdout, b"")
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    "words",
    [
        "summarize in.csv --label y -q --json {out}",
        "summarize in.csv --label y -q --sql {out}",
        "summarize in.csv --label y -q --html {out}",
        "apply rules.json in.csv -q -o {out}",
        "export --schema -o {out}",
        *(f"export rules.json --to {kind} -o {{out}}" for kind in KINDS if kind != "dbt"),
    ],
)
def test_standard_output_gets_what_a_file_would(folder: Path, tmp_path: Path, words: str) -> None:
    """Every output, byte by byte, whatever the encoding of the terminal is; ONNX is no text."""
    file = tmp_path / ("out.csv" if words.startswith("apply") else "out")
    assert run(*words.format(out=file).split(), cwd=folder).returncode == 0
    done = run(*words.format(out="-").split(), cwd=folder, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == file.read_bytes()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "gzip"])
def test_a_table_through_a_pipe_stays_as_it_is(folder: Path, tmp_path: Path, encoding: str) -> None:
    """Its records, ends of lines and encoding are kept, as from file to file; zipped input is
    known by its first bytes."""
    lines = (folder / "in.csv").read_text().splitlines()
    text = "\r\n".join([f"{lines[0]};größe", *(f"{line};ä" for line in lines[1:])])
    text = text.replace(",", ";") + "\r\n"
    plain = text.encode("utf-8" if encoding == "gzip" else encoding)
    given = gzip.compress(plain) if encoding == "gzip" else plain
    (tmp_path / "t.csv").write_bytes(given)
    rules = folder / "rules.json"
    assert run("apply", rules, "t.csv", "-o", "out.csv", cwd=tmp_path).returncode == 0
    done = run("apply", rules, "-", "-o", "-", cwd=tmp_path, given=given)
    assert done.stdout == (tmp_path / "out.csv").read_bytes()
    assert done.stderr.startswith(b"standard input   200 rows")


def test_rules_from_standard_input(folder: Path) -> None:
    """Wherever a rules file is read, and from one command to the next."""
    rules = (folder / "rules.json").read_bytes()
    for words in ("apply {} in.csv", "explain {} in.csv --row 3", "export {} --to sql"):
        piped = run(*words.format("-").split(), cwd=folder, given=rules)
        assert (piped.returncode, piped.stderr) == (0, b"")
        assert piped.stdout == run(*words.format("rules.json").split(), cwd=folder).stdout
    table = (folder / "in.csv").read_bytes()
    explained = run("explain", "rules.json", "-", "--row", "3", cwd=folder, given=table)
    assert explained.stdout.startswith(b"Row 3: ")
    line = "stair summarize - --label y --json - < in.csv 2>/dev/null | stair apply - in.csv -o -"
    assert shell(line, folder).stdout.startswith(b"v,w,y,stair_label,stair_rule\n")


def test_a_name_in_sql_for_what_has_none(folder: Path) -> None:
    given = (folder / "in.csv").read_bytes()
    done = run("summarize", "-", "--label", "y", "--sql", "-", cwd=folder, given=given)
    assert b'FROM "data"' in done.stdout


def test_a_large_engine_reads_standard_input(folder: Path) -> None:
    """DuckDB goes over what was kept of it as often as it likes."""
    given = (folder / "in.csv").read_bytes()
    words = ("summarize", "-", "--label", "y", "--method", "stair", "--json", "-")
    memory, duckdb = (
        run(*words, "--engine", engine, cwd=folder, given=given) for engine in ("memory", "duckdb")
    )
    assert duckdb.returncode == 0, duckdb.stderr
    assert json.loads(duckdb.stdout)["rules"] == json.loads(memory.stdout)["rules"]


def test_a_floor_out_of_reach_still_gives_rules(folder: Path) -> None:
    """With exit code 1, as into a file."""
    given = b"v,y\n" + b"".join(b"%d,%d\n" % (i % 10, i % 7 == 0) for i in range(200))
    done = run("summarize", "-", "--label", "y", "--json", "-", "--min-score", "0.99",
               "--min-outliers", "5", cwd=folder, given=given)  # fmt: skip
    assert done.returncode == 1
    assert json.loads(done.stdout)["format"] == "stair-rules"
    assert b"is the best that was found" in done.stderr


REFUSED = {
    "two inputs": ("apply - -", "- is standard input, which is there once"),
    "two inputs to explain": ("explain - - --row 1", "- is standard input, which is there once"),
    "two outputs": (
        "summarize - --label y --json - --html -",
        "- is standard output, which is there once",
    ),
    "a folder": ("demo --output -", "expected the name of a folder"),
    "a review": ("review - --label y --no-browser", "name a file in place of -"),
    "verdicts": ("review in.csv --label y --no-browser --db -", "where no verdicts can be kept"),
    "dask": ("summarize - --label y --engine dask", "for files that stay"),
    "work": ("summarize - --label y --engine duckdb --work .", "for files that stay"),
    "no column": ("summarize - --label z --json -", 'no column "z" in standard input'),
    "a database": ("summarize - --label y --table t", "standard input is neither"),
    "no rules": ("apply - in.csv -o -", "standard input is not JSON"),
    "no row": ("explain rules.json - --row 999", "standard input has rows 1 to 200"),
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.replace(" ", "-"))
def test_what_cannot_be_is_one_sentence(folder: Path, tmp_path: Path, case: str) -> None:
    """That speaks of standard input, not of a file that nobody named; and nothing is left."""
    words, message = REFUSED[case]
    before = sorted(folder.iterdir())
    given = (folder / "in.csv").read_bytes()
    done = run(*words.split(), cwd=folder, given=given, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert message in done.stderr.decode()
    assert str(tmp_path) not in done.stderr.decode()
    assert list(tmp_path.iterdir()) == []
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (b"", "standard input is empty"),
        (b"v,y\n", "standard input has a header but no rows"),
        (b"v,y\n1,0\n2,1,9\n", "standard input line 3 has 3 fields, expected 2"),
        (b"PAR1\0\0", "standard input is a Parquet file, not text; save it to a file"),
        (b"%PDF-1.7\n", "standard input is a PDF, not a table; save it to a file"),
        (gzip.compress(b"v,y\n1,0\n", mtime=0)[:-9], "standard input ends too early"),
    ],
)
def test_bad_input_is_called_standard_input(tmp_path: Path, given: bytes, message: str) -> None:
    done = run("summarize", "-", "--label", "y", cwd=tmp_path, given=given)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert message in done.stderr.decode()


# Streams and the end -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("stair apply rules.json - -q -o - < long.csv | head -1", 0, ""),
        ("stair summarize in.csv --label y -q --html - | head -1", 0, ""),
        ("stair apply rules.json - -q -o - < long.csv > /dev/full", 2,
         "cannot write to standard output: no space"),
        ("stair apply rules.json - -o - < in.csv 2> /dev/full", 0, ""),
        ("stair apply rules.json - -q -o - < in.csv >&-", 0, ""),
        ("stair summarize - --label y <&-", 2, "standard input is empty"),
        ("ulimit -f 8; stair summarize - --label y < long.csv", 2, "cannot keep standard input in"),
    ],
)  # fmt: skip
def test_streams_that_end_early(folder: Path, line: str, code: int, said: str) -> None:
    """A reader that goes away is no error; a full disk is one sentence."""
    done = shell(line, folder)
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == (1 if said else 0)
    if "head" in line:
        assert done.stdout.count(b"\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_nothing_of_standard_input_is_left(
    folder: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """What was kept of it is removed at the end, also where a signal comes in the middle."""
    given = (folder / "in.csv").read_bytes()
    words = ("apply", "rules.json", "-", "-o", "-")
    assert run(*words, cwd=folder, given=given, TMPDIR=str(tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == []
    with subprocess.Popen(
        [*COMMAND, *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(given[:100])
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("*/standard input")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert list(tmp_path.glob("*/standard input"))
        process.send_signal(number)
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, b"")
    assert errors == b"stair: stopped; nothing was left half-written\n"
    assert list(tmp_path.iterdir()) == []


def test_typed_at_a_terminal(folder: Path) -> None:
    """The table ends at the first Ctrl-D, and a terminal that is standard output obeys nothing of
    what it is shown."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "apply", "rules.json", "-", "-q", "-o", "-"],
        stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
    ) as process:  # fmt: skip
        os.write(ours, b"v,w\n2.5,\xc2\x9b31m\n\x04")
        process.wait(60)
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 65536):
                shown += block
        except OSError:  # the other side is closed
            pass
    os.close(ours)
    assert process.returncode == 0
    assert b"2.5,\\x9b31m,outlier,1" in shown


# The command -------------------------------------------------------------------------------------


def test_the_module_is_the_command(folder: Path) -> None:
    """`python -m stair` said that the package cannot be executed."""
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, cwd=folder, check=False)
    assert (done.returncode, done.stdout) == (0, f"stair {stair.__version__}\n".encode())


@pytest.mark.parametrize("command", ["summarize", "apply", "export", "explain"])
def test_the_help_says_what_a_dash_means(folder: Path, command: str) -> None:
    said = " ".join(run(command, "--help", cwd=folder, COLUMNS="200").stdout.decode().split())
    assert "standard input" in said
    assert "standard output" in said or command == "explain"
