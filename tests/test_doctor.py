"""`stair doctor` says what a bug report needs, also where things are missing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import stair
from places import ROOT
from stair import checkout, doctor


def _doctor(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "stair", "doctor"], capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_it_says_versions_kernels_and_extras() -> None:
    said = _doctor()
    assert said.startswith(f"stair    {stair.__version__} ")
    assert f"numpy {np.__version__}" in said
    for word in ("Python ", "system ", "kernels ", "needs ", "extras ", "GPU ", "caches "):
        assert f"\n{word}" in said
    assert "duckdb" in said
    assert "pytest" not in said, "what developers need is not asked of a user"


def test_a_kernel_that_is_not_there_or_does_not_load_is_told(tmp_path: Path) -> None:
    """A kernel of another machine is there and does not load: its reason is part of the answer."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Broken:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'stair.engines._count':\n"
        "            raise ModuleNotFoundError(name)\n"
        "        if name == 'stair.engines._route':\n"
        "            raise ImportError('wrong ELF class')\n"
        "sys.meta_path.insert(0, Broken())\n"
    )
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    said = _doctor(PYTHONPATH=paths)
    assert "cuts: not compiled: numpy gives equal results" in said
    assert "passes: not compiled (wrong ELF class): numpy" in said


def test_nobody_is_named(tmp_path: Path) -> None:
    """Who pastes it into a public page should not show the name of a home folder."""
    home = tmp_path / "jane-doe"
    home.mkdir()
    said = _doctor(HOME=str(home), USERPROFILE=str(home))
    assert "jane-doe" not in said


def test_the_folders_of_files_that_nobody_named_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that go when work ends, and the paper's data, which only a checkout has."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("STAIR_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(checkout, "HERE", ROOT)  # also where stair is installed and runs from none
    here, kept = (line.strip() for line in list(doctor.report(doctor.facts()))[-2:])
    assert here.startswith(f"caches   while it works: {tmp_path}, ")
    assert kept == f"kept: the paper's data in {tmp_path / 'data'}, 1 file"
    monkeypatch.setattr(checkout, "HERE", tmp_path)
    assert list(doctor.report(doctor.facts()))[-1].strip() == "kept: none"


@pytest.mark.skipif(os.name == "nt", reason="a program here is a script with #!")
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'NVIDIA H200, 143771 MiB, 570.1'", "NVIDIA H200, 143771 MiB, 570.1"),
        ("exit 9", "none seen (nvidia-smi names none)"),
    ],
)
def test_the_devices_that_the_driver_names_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert f"GPU      {expected}" in list(doctor.report(doctor.facts()))
    program.unlink()
    assert "GPU      none seen (there is no nvidia-smi)" in list(doctor.report(doctor.facts()))


def test_sources_that_are_not_installed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> list[str]:
        raise doctor.PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "requires", not_installed)
    assert any("it is not installed" in line for line in doctor.report(doctor.facts()))
