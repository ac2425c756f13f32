"""The real command, as a person runs it: what it prints, writes and exits with."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

import stair.export
from command import run as run_in_bytes
from stair.demo import payments

COMMAND = [sys.executable, "-m", "stair.cli"]


def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    done = run_in_bytes(*arguments, cwd=cwd)
    said, errors = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, said, errors)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the payments, and rules learned from them."""
    path = tmp_path_factory.mktemp("payments")
    pd.DataFrame(payments()).iloc[:2000].to_csv(path / "payments.csv", index=False)
    done = run("summarize", "payments.csv", "--label", "flagged", "--json", "rules.json",
               "--sql", "rules.sql", "--html", "report.html", "--validate", "2", "--effort", "fast",
               cwd=path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path / "out.txt").write_text(done.stdout)
    return path


@pytest.mark.parametrize(
    "words", ["explain rules.json payments.csv --row 1", "apply nothing.json payments.csv"]
)
def test_a_command_of_these_tests_is_that_of_a_new_python(folder: Path, words: str) -> None:
    """Most of them are forked from a process that has the imports: that changes nothing."""
    new = subprocess.run(
        [*COMMAND, *words.split()], capture_output=True, cwd=folder, check=False,
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
    )  # fmt: skip
    done = run_in_bytes(*words.split(), cwd=folder)
    assert new.returncode == (2 if "nothing" in words else 0)
    assert (done.returncode, done.stdout, done.stderr) == (new.returncode, new.stdout, new.stderr)


def test_several_labels_may_mean_outlier(tmp_path: Path) -> None:
    """`--positive a --positive b` kept the last, and said nothing."""
    rows = [
        f"{n / 2},{'a' if n > 180 else 'b' if n < 20 else 'c' if n % 2 else 'd'}"
        for n in range(200)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["x,kind", *rows]))
    done = run("summarize", "t.csv", "--label", "kind", "--positive", "a", "--positive", "b",
               cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert 'kind = "a" or "b", against the 2 other values' in done.stdout
    assert "39 outliers" in done.stdout and "F1 1.00" in done.stdout


def test_summarize_prints_a_table_and_writes_what_was_asked(folder: Path) -> None:
    """Figures, rules and what is not explained, within 80 characters, and nothing on stderr."""
    text = (folder / "out.txt").read_text()
    assert text.startswith("payments.csv   2,000 rows   8 columns")
    assert "label: flagged = 1" in text
    assert re.search(r"\d+ rules, total length \d+, \d+ bounds, F1\s+0\.\d+ \(asked", text)
    assert "Left out: id (all values differ)." in text
    assert re.search(r"They hold: on rows kept aside\s+F1\s+is", text)
    assert "Wrote rules.json, rules.sql, report.html." in text
    assert max(map(len, text.splitlines())) <= 80
    for name in ("rules.json", "rules.sql", "report.html"):
        assert (folder / name).stat().st_size > 500


def test_the_report_has_rows_of_the_data_where_they_are_asked_for(folder: Path) -> None:
    """By default it holds counts alone."""
    assert not re.search(r"P0\d{4}", (folder / "report.html").read_text(encoding="utf-8"))
    done = run("summarize", "payments.csv", "--label", "flagged", "--html", "rows.html",
               "--examples", "2", "--quiet", "--validate", "0", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"P0\d{4}", (folder / "rows.html").read_text(encoding="utf-8"))


def test_quiet_prints_nothing(folder: Path) -> None:
    done = run("summarize", "payments.csv", "--label", "flagged", "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_floor_that_is_not_reached_is_exit_code_1_and_the_rules_are_written(
    folder: Path,
) -> None:
    done = run("summarize", "payments.csv", "--label", "flagged", "--min-score", "0.99",
               "--max-rule-length", "1", "--min-outliers", "5", "--json", "short.json",
               cwd=folder)  # fmt: skip
    assert done.returncode == 1
    assert (folder / "short.json").exists()
    assert (
        "the best that was found with rules of at most 1 attribute and at least 5 outliers (asked"
        in done.stderr
    )
    assert "Try --max-rule-length 2" in done.stderr


def test_apply_labels_each_row_and_says_how_coverage_moved(folder: Path) -> None:
    done = run("apply", "rules.json", "payments.csv", "-o", "labelled.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "learned    now" in done.stdout
    labelled = pd.read_csv(folder / "labelled.csv")
    assert set(labelled["stair_label"]) == {"inlier", "outlier"}
    found = labelled["stair_label"] == "outlier"
    assert np.array_equal(labelled["stair_rule"] > 0, found)  # 0: no rule covers it
    f1 = 2 * (found & (labelled["flagged"] == 1)).sum() / (found.sum() + labelled["flagged"].sum())
    assert f1 > 0.8


def test_apply_knows_how_many_rows_had_no_rule(folder: Path) -> None:
    """It said 0% beside 96% now: distilled rules leave most rows to the default."""
    learned = run("summarize", "payments.csv", "--label", "flagged", "--json", "most.json",
                  "--validate", "0", cwd=folder)  # fmt: skip
    assert learned.returncode == 0
    done = run("apply", "most.json", "payments.csv", cwd=folder)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(" no rule")]
    before, now = line.split()[2:]
    assert before == now != "0%"
    saved = json.loads((folder / "most.json").read_text(encoding="utf-8"))
    for facts in ({}, {"rows": 0, "rows_without_rule": 0}, {"rows": 5, "rows_without_rule": 9}):
        text = json.dumps({**saved, "facts": facts})
        (folder / "unknown.json").write_text(text, encoding="utf-8")
        done = run("apply", "unknown.json", "payments.csv", cwd=folder)
        assert "–" in done.stdout.splitlines()[-1]


def test_apply_needs_only_the_columns_of_the_rules(folder: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(folder / "payments.csv")
    frame.drop(columns=["id", "flagged", "paid_at"]).to_csv(tmp_path / "new.csv", index=False)
    assert run("apply", folder / "rules.json", tmp_path / "new.csv").returncode == 0
    frame.drop(columns=["amount"]).to_csv(tmp_path / "less.csv", index=False)
    done = run("apply", folder / "rules.json", tmp_path / "less.csv")
    assert done.returncode == 2
    assert 'the rules need a column "amount"' in done.stderr


def test_explain_one_row(folder: Path) -> None:
    done = run("explain", "rules.json", "payments.csv", "--row", "1", cwd=folder)
    assert re.match(r"Row 1: (Inlier: no rule covers it|Outlier by rule \d+: )", done.stdout)
    done = run("explain", "rules.json", "payments.csv", "--row", "0", cwd=folder)
    assert done.returncode == 2
    assert done.stderr == ("stair: payments.csv has rows 1 to 2000, but row 0 was asked for\n")


def test_detectors_and_scores(folder: Path) -> None:
    done = run("summarize", "payments.csv", "--detector", "iforest", "--contamination", "0.05",
               "--exclude", "flagged", "--exclude", "id", "--effort", "fast", "--validate", "0",
               cwd=folder)  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert "100 outliers (5.0%)" in done.stdout
    done = run("summarize", "payments.csv", "--score", "amount", "--contamination", "50",
               "--effort", "fast", "--validate", "0", cwd=folder)  # fmt: skip
    assert "50 outliers (2.5%)" in done.stdout


def test_parquet_database_and_kinds(folder: Path, tmp_path: Path) -> None:
    import sqlite3

    frame = pd.read_csv(folder / "payments.csv")
    frame.to_parquet(tmp_path / "p.parquet")
    with sqlite3.connect(tmp_path / "p.db") as connection:
        frame.to_sql("payments", connection, index=False)
        frame.head(5).to_sql("other", connection, index=False)
    connection.close()
    expected = run(
        "summarize",
        "p.parquet",
        "--label",
        "flagged",
        "--method",
        "stair",
        "--validate",
        "0",
        cwd=tmp_path,
    )
    assert expected.returncode == 0, expected.stderr
    done = run(
        "summarize",
        "p.db",
        "--table",
        "payments",
        "--label",
        "flagged",
        "--method",
        "stair",
        "--validate",
        "0",
        cwd=tmp_path,
    )
    body = expected.stdout.splitlines()[1:]
    assert done.stdout.splitlines()[1:] == body
    done = run("summarize", "p.db", "--label", "flagged", cwd=tmp_path)
    assert done.returncode == 2
    assert "payments" in done.stderr
    assert "other" in done.stderr
    done = run("summarize", "p.parquet", "--label", "flagged", "--kind", "hour=category",
               "--include", "hour", "--include", "merchant", "--min-score", "0.3",
               cwd=tmp_path)  # fmt: skip
    assert "hour in {" in done.stdout


BAD = {
    "no such file": (["nothing.csv", "--label", "flagged"], "nothing.csv"),
    "no such column": (
        ["payments.csv", "--label", "flaged"],
        'no column "flaged" in payments.csv. Did you mean "flagged"? Columns: id, paid_at',
    ),
    "empty file": (["empty.csv", "--label", "y"], "empty.csv"),
    "header only": (["header.csv", "--label", "y"], "header.csv"),
    "ragged": (["ragged.csv", "--label", "y"], "ragged.csv line 3 has 3 fields, expected 2"),
    "wrong encoding": (["binary.csv", "--label", "y"], "binary.csv is not text"),
    "one value": (
        ["one.csv", "--label", "y"],
        'the label column "y" has only one value (0), so there is nothing to tell apart.',
    ),
    "all missing": (["missing.csv", "--label", "y"], '"y"'),
    "contamination": (
        ["payments.csv", "--score", "amount", "--contamination", "0.7"],
        "--contamination 0.7",
    ),
    "no contamination": (["payments.csv", "--score", "amount"], "contamination"),
    "negative floor": (
        ["payments.csv", "--label", "flagged", "--min-score", "-0.5"],
        "expected a number from 0 to 1",
    ),
    "unknown detector": (["payments.csv", "--detector", "loff"], "lof"),
    "unknown method": (["payments.csv", "--label", "flagged", "--method", "x"], "methods are"),
    "unknown dialect": (["payments.csv", "--label", "flagged", "--dialect", "x"], "dialects are"),
    "no such output folder": (
        ["payments.csv", "--label", "flagged", "--json", "nowhere/rules.json"],
        "there is no folder nowhere",
    ),
    "a folder as output": (["payments.csv", "--label", "flagged", "--html", "."], "is a folder"),
    "rows without a report": (
        ["payments.csv", "--label", "flagged", "--examples", "3"],
        "name it with --html report.html",
    ),
    "fewer rows than none": (
        ["payments.csv", "--label", "flagged", "--html", "r.html", "--examples", "-1"],
        "expected 0 or more",
    ),
    "a folder as input": ([".", "--label", "flagged"], "folder"),
    "empty parquet": (["empty.parquet", "--label", "y"], "empty.parquet"),
    "unknown ending": (["rules.xyz", "--label", "y"], "rules.xyz"),
    "no verdict": (["payments.csv"], "give one of --label, --score and --detector"),
    "two verdicts": (
        ["payments.csv", "--label", "flagged", "--detector", "lof"],
        "got --label and",
    ),
    "bad kind": (["payments.csv", "--label", "flagged", "--kind", "hour"], "expected COLUMN=KIND"),
    "infinite": (
        ["infinite.csv", "--detector", "ecod", "--exclude", "y"],
        '"x" has infinite values, which no detector can judge by',
    ),
}


@pytest.fixture(scope="module")
def bad_folder(folder: Path) -> Path:
    files = {
        "empty.csv": b"",
        "header.csv": b"x,y\n",
        "ragged.csv": b"x,y\n1,0\n2,1,9\n",
        "binary.csv": b"x,y\n\x00\x81\x8d,1\n" * 3,
        "one.csv": b"x,y\n1,0\n2,0\n",
        "missing.csv": b"x,y\n1,\n2,\n",
        "empty.parquet": b"",
        "rules.xyz": b"nothing",
        "infinite.csv": b"x,z,y\ninf,1,0\n2,2,1\n3,1,0\n-inf,2,1\n",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.replace(" ", "-"))
def test_bad_input_is_one_sentence_exit_code_2_and_nothing_written(
    bad_folder: Path, case: str
) -> None:
    arguments, message = BAD[case]
    before = sorted(path.name for path in bad_folder.iterdir())
    done = run("summarize", *arguments, cwd=bad_folder)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert done.stderr.startswith("stair: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in bad_folder.iterdir()) == before


def test_an_unwritable_folder_is_refused(folder: Path) -> None:
    """/proc can be written by nobody, not even by root."""
    done = run("summarize", folder / "payments.csv", "--label", "flagged",
               "--method", "stair", "--validate", "0", "--json", "/proc/rules.json")  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("stair: ")
    assert "/proc" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not json", "is not JSON"),
        ("{}", "has no stair rules in it"),
        ('{"format": "stair-rules", "version": 99}', "version 99 of the format"),
        ('{"format": "stair-rules", "version": 1}', "is damaged"),
    ],
)
def test_a_broken_rules_file_gets_one_sentence(
    folder: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "rules.json").write_text(text)
    done = run("apply", tmp_path / "rules.json", folder / "payments.csv")
    assert done.returncode == 2
    assert message in done.stderr


def test_the_demo_is_quick_and_leaves_its_result(tmp_path: Path) -> None:
    """`stair demo` prints the rules that name all four kinds, in well under ten seconds of a
    processor: on a machine that has other work, those of a clock say nothing."""
    (tmp_path / "demo").mkdir()
    before = os.times()
    done = subprocess.run(
        [*COMMAND, "demo", "--output", "."], capture_output=True, text=True, check=False,
        cwd=tmp_path / "demo",
    )  # fmt: skip
    after = os.times()
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < 10
    assert done.returncode == 0, done.stderr
    for part in ("amount > 4350", "merchant = electronics", '"refund"', "device is missing"):
        assert part in done.stdout
    assert "report.html to this folder.\n" in done.stdout  # "to .." was another one
    assert " summarize payments.csv --label flagged\n" in done.stdout
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"payments.csv", "report.html", "rules.json", "rules.sql", "rules.txt"}
    again = run("summarize", tmp_path / "demo" / "payments.csv", "--label", "flagged",
                "--min-score", "0.9", "--max-rule-length", "3",
                "--json", tmp_path / "r.json")  # fmt: skip
    assert again.returncode == 0
    first, second = (
        re.search(r'"rules": \[.*', path.read_text(), re.S)
        for path in (tmp_path / "demo" / "rules.json", tmp_path / "r.json")
    )
    assert first is not None
    assert second is not None
    # What the counts are of is called as the file is.
    assert first.group() == second.group().replace('"payments.csv"', '"payments"')


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_half_written_file(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """Stopped in the middle of learning: the signal's exit code, one sentence, no file."""
    rng = np.random.default_rng(0)
    n = 300_000
    columns = {f"x{j}": rng.normal(size=n) for j in range(8)}
    pd.DataFrame({**columns, "y": rng.integers(0, 2, n)}).to_parquet(tmp_path / "noise.parquet")
    process = subprocess.Popen(
        [*COMMAND, "summarize", "noise.parquet", "--label", "y", "--json", "rules.json",
         "--min-score", "0.99"],  # never reached: there is nothing to keep
        cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    # Wait until it has read the file and is learning: its processor time tells.
    deadline = time.monotonic() + 60
    while _cpu_seconds(process.pid) < 3.0 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert "stopped" in errors
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["noise.parquet"]


def test_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    """In a real terminal, as soon as it offers to: the rules so far come out and are above the
    floor, the output says that the search was cut short, and the exit code is 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 8))
    y = (X**2).sum(axis=1) + rng.normal(size=len(X)) > 18
    table = pd.DataFrame({f"x{j}": X[:, j] for j in range(8)} | {"y": y.astype(int)})
    table.to_parquet(tmp_path / "shell.parquet")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "summarize", "shell.parquet", "--label", "y", "--json", "rules.json"],
        cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=_take_the_terminal,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    asked = False
    with contextlib.suppress(OSError):  # the other end of the terminal was closed
        while found := os.read(ours, 65_536):
            seen += found
            if not asked and b"Ctrl-C keeps these" in seen:
                os.write(ours, b"\x03")
                asked = True
    os.close(ours)
    assert asked
    assert process.wait(60) == 0
    assert b"The search was cut short" in seen
    rules = stair.export.load(tmp_path / "rules.json").rules
    assert f1_score(y, rules.predict(table) == "outlier") > 0.8


def _take_the_terminal() -> None:
    """Make standard input the terminal that Ctrl-C comes from."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_help_is_quick() -> None:
    """`stair --help` costs at most 0.3 s more than importing numpy (best of several runs), of a
    processor: what else a machine does is not our time."""

    def best(command: list[str]) -> float:
        times = []
        for _ in range(4):
            before = os.times()
            subprocess.run(command, capture_output=True, check=True)
            after = os.times()
            spent = after.children_user + after.children_system
            times.append(spent - before.children_user - before.children_system)
        return min(times)

    numpy = best([sys.executable, "-c", "import numpy"])
    assert best([*COMMAND, "--help"]) - numpy < 0.3


def test_every_command_and_option_is_in_the_help() -> None:
    done = run("--help")
    for command in ("summarize", "apply", "explain", "demo"):
        assert command in done.stdout
        assert run(command, "--help").returncode == 0
    assert run("--version").stdout.startswith("stair ")


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    """stair summarize … | head -1"""
    command = " ".join(
        [
            *COMMAND,
            "summarize",
            "payments.csv",
            "--label",
            "flagged",
            "--validate",
            "0",
            "| head -1",
        ]
    )
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.stderr == ""


def test_the_demo_says_how_it_is_called_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `make demo` it said `stair summarize …`, and the shell knew no stair: that one was in
    .venv/bin."""
    from stair.cli import _called

    monkeypatch.setattr(sys, "argv", [".venv/bin/stair", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _called() == ".venv/bin/stair"
    (tmp_path / "stair").touch(mode=0o755)
    assert _called() == "stair"
