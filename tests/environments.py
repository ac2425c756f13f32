"""Tools for which rules are exported, each in an environment of its own beside this one.

    python tests/environments.py                     makes all of them, and says how long each took
    python tests/environments.py dbt soda            makes these

An environment is the folder .venv-NAME of the checkout. A test that has none is skipped, and says
so, unless STAIR_TEST_REQUIRE names it: then it is made. What a tool finds out is asked of one
process, once.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent  # this file runs where stair is not installed yet

NEEDS = {
    # Newer ones of dbt need a parser that pip must build, and do not use it unless asked.
    "dbt": ["dbt-core==1.12.0", "dbt-core-experimental-parser==2.0.0a4", "dbt-duckdb~=1.11",
            "dbt-postgres~=1.11"],
    "great_expectations": ["great_expectations~=1.24.0", "sqlalchemy~=2.0"],
    "soda": ["soda-core-duckdb~=3.5.0", "pytz"],  # which DuckDB wants for times with zones
    "sigma": ["pysigma~=2.0.0", "pysigma-backend-sqlite~=2.1.0"],
}  # fmt: skip


def make(name: str) -> str:
    """The environment, unless it is there and has what is asked for; what was done, in words. Who
    asks while another process makes it waits."""
    with (ROOT / f".venv-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _made(name)


def _made(name: str) -> str:
    folder, wanted = _folder(name), _mark(name)
    if (folder / "stair-made").is_file() and (folder / "stair-made").read_text() == wanted:
        return f"{name}: was there"
    begun = time.perf_counter()
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "install", *quiet, *NEEDS[name]], check=True
    )
    (folder / "stair-made").write_text(wanted)
    return f"{name}: {time.perf_counter() - begun:.0f} s"


def python_of(name: str) -> Path:
    """The Python of a tool's environment, which is made where it is required; without one the test
    is skipped."""
    import pytest

    folder = _folder(name)
    if name in os.environ.get("STAIR_TEST_REQUIRE", "").split(","):
        make(name)
    if not (folder / "stair-made").is_file():
        pytest.skip(f"there is no {folder.name}; python tests/environments.py {name} makes it")
    return folder / "bin/python"


def ask(name: str, order: dict[str, Any], folder: Path) -> Any:
    """What the tool's script, tests/tools/run_NAME.py, answers to an order, both as JSON files."""
    python = python_of(name)
    (folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
    quiet = {**os.environ, "DO_NOT_TRACK": "1", "PYTHONPATH": "", "GX_ANALYTICS_ENABLED": "false"}
    done = subprocess.run(
        [python, ROOT / "tests" / "tools" / f"run_{name}.py", folder], cwd=folder, env=quiet,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    answer = folder / "answer.json"
    assert answer.is_file(), f"{name} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return json.loads(answer.read_text(encoding="utf-8"))


def _folder(name: str) -> Path:
    return ROOT / f".venv-{name}"


def _mark(name: str) -> str:
    about = [f"{sys.version_info.major}.{sys.version_info.minor}", *NEEDS[name]]
    return hashlib.sha256(" ".join(about).encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the environments of tools, or some of them.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NEEDS))
    names = parser.parse_args().names or list(NEEDS)
    if unknown := set(names) - set(NEEDS):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(NEEDS)}")
    for name in names:
        print(make(name), flush=True)


if __name__ == "__main__":
    main()
