"""The command's gate: files that are never both read and written, text, streams and signals."""

from __future__ import annotations

import gzip
import io
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import stair
from command import run
from stair import gate
from stair.data import read
from stair.data.writing import replacing
from stair.errors import StairError, visible
from stair.verdict.labels import wanted_outliers

COMMAND = [sys.executable, "-m", "stair.cli"]
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202egpj.exe\x9b31m\r\x00"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small table, and rules learned from it."""
    folder = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(0)
    rows = [f"{v:.3f},{w:.3f},{int(v > 1)}" for v, w in rng.normal(size=(200, 2))]
    (folder / "in.csv").write_text("v,w,y\n" + "\n".join(rows) + "\n")
    summary = stair.summarize(folder / "in.csv", labels="y")
    summary.to_json(folder / "rules.json")
    return folder


@pytest.fixture
def folder(learned: Path, tmp_path: Path) -> Path:
    for file in learned.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


# Files -------------------------------------------------------------------------------------------


def _link(folder: Path) -> None:
    (folder / "link.json").symlink_to(folder / "in.csv")
    (folder / "hard.json").hardlink_to(folder / "in.csv")
    (folder / "later.sql").symlink_to(folder / "new.json")


@pytest.mark.parametrize(
    "words",
    [
        "summarize in.csv --label y --json in.csv",
        "summarize in.csv --label y --json ./in.csv",
        "summarize in.csv --label y --json {folder}/in.csv",
        "summarize in.csv --label y --json link.json",
        "summarize in.csv --label y --json hard.json",
        "summarize in.csv --label y --json new.json --sql new.json",
        "summarize in.csv --label y --json new.json --sql {folder}/NEW.json",
        "summarize in.csv --label y --json new.json --sql later.sql",
        "summarize . --label y --engine duckdb --json in.csv",
        "summarize i*.csv --label y --engine duckdb --json in.csv",
        "apply rules.json in.csv -o rules.json",
        "apply rules.json in.csv -o in.csv",
        "export rules.json --to json -o rules.json",
        "review in.csv --label y --no-browser --db in.csv",
    ],
)
def test_no_output_is_an_input_or_another_output(folder: Path, words: str) -> None:
    """`--json in.csv` and `apply r.json x.csv -o r.json` ended with 0, and the data was gone."""
    _link(folder)
    before = {path.name: path.read_bytes() for path in folder.glob("*") if path.exists()}
    done = run(*words.format(folder=folder).split(), cwd=folder)
    assert done.returncode == 2
    assert b"name another file" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert {path.name: path.read_bytes() for path in folder.glob("*") if path.exists()} == before


@pytest.mark.parametrize(
    ("kind", "name", "fits"),
    [
        ("json", "r.json", True), ("json", "rules", True), ("json", "r.txt", True),
        ("json", "r.csv", False), ("json", "r.json.gz", False), ("sql", "r.xlsx", False),
        ("html", "r.json", False), ("text", "r.sql", False), ("onnx", "r.onnx", True),
        ("table", "t.csv", True), ("table", "t.CSV.GZ", True), ("table", "t.xlsx", True),
        ("table", "t.jsonl.gz", True), ("table", "t", False), ("table", "t.gz", False),
        ("table", "t.parquet.gz", False), ("table", "t.xls", False), ("table", "t.sqlite", False),
    ],
)  # fmt: skip
def test_the_ending_means_the_format(kind: str, name: str, fits: bool, tmp_path: Path) -> None:
    """`-o x.xlsx` and `-o x.csv.gz` wrote plain CSV under that name."""
    if fits:
        gate.check_files([], [(tmp_path / name, kind)])
    else:
        with pytest.raises(StairError, match=re.escape(name)):
            gate.check_files([], [(tmp_path / name, kind)])


@pytest.mark.parametrize("name", ["x.xlsx", "x.csv.gz", "x.tsv", "x.parquet", "x.jsonl"])
def test_a_table_is_written_as_its_name_says(folder: Path, name: str) -> None:
    """Numbers stay numbers in every format; gzip is gzip and the same bytes each time."""
    assert run("apply", "rules.json", "in.csv", "-o", name, cwd=folder).returncode == 0
    was, now = read(folder / "in.csv"), read(folder / name)
    assert list(now.columns) == ["v", "w", "y", "stair_label", "stair_rule"]
    for column, values in was.columns.items():
        np.testing.assert_array_equal(now.columns[column], values)
    content = (folder / name).read_bytes()
    if name.endswith(".gz"):
        assert gzip.decompress(content).startswith(b"v,w,y,stair_label,stair_rule\n")
    run("apply", "rules.json", "in.csv", "-o", name, cwd=folder)
    assert name == "x.xlsx" or (folder / name).read_bytes() == content


def test_a_device_is_no_file_that_could_be_overwritten(folder: Path) -> None:
    """Two outputs may both go nowhere, and a table may go to a pipe."""
    done = run("apply", "rules.json", "in.csv", "-q", "-o", "/dev/stdout", cwd=folder)
    assert done.stdout.startswith(b"v,w,y,stair_label,stair_rule\n")
    gate.check_files([], [(Path("/dev/null"), "json"), (Path("/dev/null"), "sql")])


@pytest.mark.parametrize(
    "words",
    [
        "summarize {long}.csv --label y",
        "summarize {long}.csv --label y --engine duckdb",
        "summarize in.csv --label y --json {long}.json",
        "apply {long} in.csv",
        "apply rules.json in.csv -o {long}.csv",
        "export {long}",
        "demo --quiet --output {long}",
        "review {long}.csv --no-browser",
        "review in.csv --label y --no-browser --db {long}",
    ],
)
def test_a_name_that_no_file_system_takes_is_refused(folder: Path, words: str) -> None:
    """A file name of 300 characters ended in a traceback."""
    done = run(*words.format(long="x" * 300).split(), cwd=folder)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"too long" in done.stderr.lower()


# Text --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "ascii", "cp437"])
def test_an_encoding_that_lacks_a_sign_gets_a_plain_one(folder: Path, encoding: str) -> None:
    """A console in cp1252 or latin-1 cannot say ≤: that was a traceback."""
    done = run("export", "rules.json", cwd=folder, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    done = run("summarize", "in.csv", "--label", "y", "--method", "stair", cwd=folder,
               PYTHONIOENCODING=encoding)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert ("≤" if encoding == "cp437" else "<=") in done.stdout.decode(encoding)
    done = run("summarize", "in.csv", "--label", "≤→\udcff", cwd=folder, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)


def test_visible_text_has_nothing_to_obey() -> None:
    assert visible("a\x1b[2Jb\tc\nd\u202e\x9b\x7f") == r"a\x1b[2Jb\tc\nd\u202e\x9b\x7f"
    assert visible("two\nlines", lines=True) == "two\nlines"
    assert visible("Malmö 👩‍💻 ≤ שלום") == "Malmö 👩‍💻 ≤ שלום"


def _on_a_terminal(words: list[str], cwd: Path) -> str:
    """What a terminal gets of both streams."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*COMMAND, *words], stdout=theirs, stderr=theirs, cwd=cwd, env=environment
    ) as process:
        os.close(theirs)
        found = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not block:
                break
            found += block
    os.close(ours)
    assert process.returncode in (0, 1, 2)
    return found.decode("utf-8", "surrogateescape")


def test_nothing_in_a_file_reaches_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in names, values and file names were obeyed by the terminal."""
    rng = np.random.default_rng(0)
    name, value = f"v{HOSTILE}", f"x{HOSTILE}"
    table = {
        name: np.where(rng.random(200) < 0.2, value, "plain").astype(object),
        f"w{HOSTILE}": rng.normal(size=200),
    }
    labels = table[name] == value
    summary = stair.summarize(table, labels=labels)
    summary.to_json(tmp_path / "rules.json")
    file = tmp_path / "t\x1b[31m\x9b.jsonl"
    stair.data.write_table(file, {**table, "y": labels})
    words = [["summarize", file.name, "--label", "y"], ["summarize", file.name, "--label", "z"],
             ["apply", "rules.json", file.name], ["explain", "rules.json", file.name, "--row", "1"],
             ["export", "rules.json"], ["export", "rules.json", "--to", "sql"],
             ["export", "rules.json", "--to", "json"], ["summarize", "\x1b[2J.csv"],
             ["summarize", "rules.json", "x\x1b[2J", "y"]]  # fmt: skip
    for each in words:
        shown = re.sub(r"\x1b\[(1|33|0)m|\r\x1b\[K", "", _on_a_terminal(each, tmp_path))
        odd = [c for c in shown if visible(c, lines=True) != c and c != "\r"]
        assert odd == [], (each, shown)
        assert "1b[" in shown
    assert visible(summary.to_text(), lines=True) == summary.to_text()


def test_a_program_gets_what_was_exported(tmp_path: Path) -> None:
    """Through a pipe an export is the same as in a file, whatever names it has to quote."""
    name = "a\x9bb\u202e"
    summary = stair.summarize({name: np.arange(100) / 2}, labels=np.arange(100) > 80)
    summary.to_json(tmp_path / "rules.json")
    piped = run("export", "rules.json", "--to", "sql", cwd=tmp_path, PYTHONUTF8="1").stdout
    run("export", "rules.json", "--to", "sql", "-o", "r.sql", cwd=tmp_path)
    assert piped == (tmp_path / "r.sql").read_bytes()


# Streams -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("summarize in.csv --label y >/dev/full", 2, "cannot write to standard output: no space"),
        ("export rules.json >/dev/full", 2, "cannot write to standard output: no space"),
        ("--help >/dev/full", 2, "No space left on device"),
        ("summarize in.csv --label y --json new.json >&-", 0, ""),
        ("summarize in.csv --label y --json new.json >&- 2>&- <&-", 0, ""),
        ("summarize in.csv --label nothing 2>/dev/full", 2, ""),
        ("summarize in.csv --label nothing 2>&-", 2, ""),
        ("--nothing 2>/dev/full", 2, ""),
    ],
)
def test_streams_that_are_closed_or_full(folder: Path, line: str, code: int, said: str) -> None:
    """Each of these was a traceback, or the exit code 120 of a Python that cannot say why."""
    done = subprocess.run(
        f"{' '.join(COMMAND)} {line}", shell=True, capture_output=True, text=True, cwd=folder,
        check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == (1 if said else 0)
    if "new.json" in line:
        assert (folder / "new.json").read_text() == (folder / "rules.json").read_text()


def test_a_wrong_command_line_is_one_sentence(folder: Path) -> None:
    for words in (["--nothing"], ["nothing"], ["summarize"], ["summarize", "in.csv", "--seed", "x"],
                  ["apply", "rules.json", "in.csv", "more"]):  # fmt: skip
        done = run(*words, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
        assert b"--help" in done.stderr


# The end -----------------------------------------------------------------------------------------


def _swallowed() -> None:
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        raise RuntimeError("a library's own words for an interruption") from None


def _in_the_middle_of_writing(folder: Path, number: signal.Signals) -> Callable[[], None]:
    def command() -> None:
        with (
            tempfile.TemporaryDirectory(dir=folder),
            replacing(folder / "out.csv") as beside,
            beside.open("w") as file,
        ):
            file.write("half")
            signal.raise_signal(number)
            raise AssertionError("the signal ends the work")

    return command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_an_orderly_end(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIGTERM left temporary files behind: now it tidies up as Ctrl-C does."""
    usual = signal.signal(number, signal.SIG_DFL)  # a shell may have had it ignored
    try:
        _check_an_orderly_end(number, tmp_path, capsys)
    finally:
        signal.signal(number, usual)


def _check_an_orderly_end(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    (tmp_path / "out.csv").write_text("old")
    assert gate.run(_in_the_middle_of_writing(tmp_path, number)) == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "old"
    assert capsys.readouterr().err == "stair: stopped; nothing was left half-written\n"
    assert signal.getsignal(number) is before


def test_a_signal_that_a_library_turns_into_its_own_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """DuckDB says "query interrupted" where the handler raised: that is no traceback either."""
    assert gate.run(_swallowed) == 143
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):  # a mistake of ours is never made to look like that
        gate.run(lambda: 1 // 0)


def test_a_second_signal_does_not_disturb_the_tidying_up(tmp_path: Path) -> None:
    def command() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            (tmp_path / "tidy").touch()

    assert gate.run(command) == 143
    assert (tmp_path / "tidy").exists()


# Numbers and names -------------------------------------------------------------------------------


def test_a_whole_number_of_rows_or_a_share(folder: Path) -> None:
    """`--contamination 1` was refused as a share where the help said: number of rows."""
    done = run("summarize", "in.csv", "--score", "v", "--contamination", "1", cwd=folder)
    assert b"the row with the highest scores" in done.stdout
    done = run("summarize", "in.csv", "--score", "v", "--contamination", "x", cwd=folder)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert [repr(gate.share_or_number(text)) for text in ("1", "0.05")] == ["1", "0.05"]
    assert wanted_outliers(1, 100)[0] == wanted_outliers(np.int64(1), 100)[0] == 1
    assert wanted_outliers(0.05, 100)[0] == 5
    for text in ("1.0", "20.0", "0", "0.6", "-1", "51", "nan", "1e3"):
        with pytest.raises(StairError, match=r"expected a share"):
            wanted_outliers(gate.share_or_number(text), 100)


def test_a_progress_line_on_a_terminal_that_is_gone() -> None:
    """It must not stop the work, nor print a thread's traceback."""
    from stair.progress import ProgressLine

    class Gone(io.StringIO):
        def isatty(self) -> bool:
            return True

        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    with ProgressLine(stream=Gone()) as say:
        say("working")
        say._write("x")
