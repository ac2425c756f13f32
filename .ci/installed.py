"""What is built installs where there is no compiler: `make wheel-test`.

    python .ci/installed.py dist

Each archive in the folder goes into an empty environment, on a PATH that has nothing but that
environment. From the wheel the kernels are compiled, and install and demo together take less than a
minute; from the sources stair works in numpy, and `stair doctor` says so. Sizes and seconds are
printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from pathlib import Path

LIMIT = 60


def main(folder: str) -> None:
    found = Path(folder).resolve()
    (wheel,), (sources,) = found.glob("*.whl"), found.glob("*.tar.gz")
    for archive in (wheel, sources):
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.2f} MB")
    with tarfile.open(sources) as each:
        made = [name for name in each.getnames() if name.endswith((".c", ".so", ".pyd"))]
    assert not made, f"what a build made is among the sources: {made}"
    _install(wheel, "compiled", LIMIT)
    _install(sources, "not compiled", None)


def _install(archive: Path, kernels: str, limit: float | None) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        venv.create(place / "env", with_pip=True)
        begun, worked = time.perf_counter(), _processor_seconds()
        _run(place, "python", "-m", "pip", "install", "--quiet", "--no-cache-dir", str(archive))
        installed = time.perf_counter()
        demo = _run(place, "stair", "demo")
        done, worked = time.perf_counter(), _processor_seconds() - worked
        said = _run(place, "stair", "doctor")
        found = json.loads(_run(place, "stair", "doctor", "--json", "-"))
        _run(place, "python", "-m", "pip", "check")
        size = sum(p.stat().st_size for p in (place / "env").rglob("*") if p.is_file())
        pip = sum(
            p.stat().st_size
            for folder in (place / "env").rglob("site-packages/pip*")
            for p in folder.rglob("*")
            if p.is_file()
        )
        own = sum(p.stat().st_size for p in _own(place) if p.is_file())
    print(
        f"{archive.name}: installed in {installed - begun:.1f} s, demo in {done - installed:.1f} s"
        f" ({worked:.1f} s of processor time together);"
        f" {own / 1e6:.1f} MB of stair, {(size - pip) / 1e6:.0f} MB with all that it needs"
    )
    print(said)
    assert "4 rules" in demo, demo
    assert all(what.startswith(kernels) for what in found["kernels"].values()), said
    assert limit is None or done - begun < limit, f"install and demo took {done - begun:.1f} s"


def _processor_seconds() -> float:
    """Of all programs that ran to their end: a busy machine takes longer, and no more of it."""
    spent = os.times()
    return spent.children_user + spent.children_system


def _own(place: Path) -> list[Path]:
    (own,) = (place / "env").rglob("site-packages/stair")
    return list(own.rglob("*"))


def _run(place: Path, program: str, *arguments: str) -> str:
    """In the environment alone: no compiler is on its PATH."""
    programs = place / "env" / ("Scripts" if sys.platform == "win32" else "bin")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    alone = {**kept, "PATH": str(programs), "CC": "no-compiler", "CXX": "no-compiler"}
    done = subprocess.run(
        [programs / program, *arguments], cwd=place, env=alone, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{program} {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1])
