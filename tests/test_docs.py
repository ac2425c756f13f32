"""Every document runs: code blocks are executed, commands are run, tables are up to date."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from stair.demo import payments

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def _blocks(language: str) -> list[tuple[str, str]]:
    return [
        (path.name, body)
        for path in DOCUMENTS
        for found, body in FENCE.findall(path.read_text(encoding="utf-8"))
        if found == language
    ]


@pytest.mark.parametrize(("document", "code"), _blocks("python"))
def test_python_blocks_run(document: str, code: str) -> None:
    """In a process of its own, as a reader would paste it; warnings are errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{document}: {done.stderr}"
    for line in code.splitlines():
        comment = re.search(r"print\(.*\)\s+# (.+)$", line)
        if comment:
            assert comment.group(1) in done.stdout


COMMANDS = [
    (document, line)
    for document, body in _blocks("")
    for line in body.splitlines()
    if line.startswith("stair ")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("readme")
    pd.DataFrame(payments()).to_csv(path / "payments.csv", index=False)
    shutil.copy(path / "payments.csv", path / "new_payments.csv")
    subprocess.run(
        [sys.executable, "-m", "stair.cli", "summarize", "payments.csv", "--label", "flagged",
         "--json", "rules.json", "--quiet"],
        cwd=path, check=True,
    )  # fmt: skip
    return path


@pytest.mark.parametrize(("document", "line"), COMMANDS)
def test_commands_run(document: str, line: str, folder: Path) -> None:
    """Each `stair` line of a document, on the made-up payments. 1 means: floor not reached."""
    words = shlex.split(line.split(" # ")[0])
    done = subprocess.run(
        [sys.executable, "-m", "stair.cli", *words[1:]],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{document}: {line}: {done.stderr}"


def test_the_readme_has_commands_and_code() -> None:
    """So that the tests above never pass for want of anything to run."""
    assert len(COMMANDS) >= 4
    assert len(_blocks("python")) >= 2


def test_the_benchmark_table_is_up_to_date() -> None:
    """The README's figures are generated from the committed results, never typed."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.readme", "--check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
