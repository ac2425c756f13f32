"""`stair doctor`: what is installed and what is seen of the machine, to paste into a bug report."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Final

KERNELS: Final = {
    "cuts": "stair.engines._count",
    "passes": "stair.engines._route",
    "boxes": "stair.learn.distill._boxes",
    "matches": "stair.rules._match",
}
"""What each compiled kernel does, and its module."""
FOR_DEVELOPERS: Final = frozenset({"bench", "docs", "peers", "test"})
ASKED: Final = re.compile(r"(?P<name>[\w.-]+)[^;]*(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")
WIDTH: Final = 9


def facts() -> dict[str, object]:
    """What there is to say; nothing of the data, and the home folder as ~."""
    import stair

    packages = _packages()
    return {
        "stair": stair.__version__,
        "folder": _short(Path(stair.__file__).parent),
        "python": _python(),
        "system": f"{platform.platform()} on {platform.machine() or 'an unknown machine'}",
        "processors": os.cpu_count() or 1,
        "kernels": {job: _kernel(name) for job, name in KERNELS.items()},
        "needs": None if packages is None else packages.pop("", {}),
        "extras": None if packages is None else dict(sorted(packages.items())),
        "gpu": _gpus(),
        "caches": _caches(),
    }


def report(found: dict[str, Any]) -> Iterator[str]:
    """The same line by line."""
    yield from _said("stair", [f"{found['stair']} in {found['folder']}"])
    yield from _said("Python", [found["python"]])
    cpus = found["processors"]
    processors = f"{cpus} {'processor' if cpus == 1 else 'processors'}"
    yield from _said("system", [f"{found['system']}, {processors}"])
    yield from _said("kernels", [f"{job}: {said}" for job, said in found["kernels"].items()])
    if found["extras"] is None:
        yield from _said("packages", ["stair runs from a folder of sources; it is not installed"])
    else:
        needed = [f"{name} {there or 'is missing'}" for name, there in found["needs"].items()]
        yield from _said("needs", [", ".join(needed)])
        yield from _said("extras", [_extra(*extra) for extra in found["extras"].items()])
    yield from _said("GPU", found["gpu"])
    yield from _said("caches", found["caches"])


def _said(word: str, lines: list[str]) -> Iterator[str]:
    """A word, and what there is to say of it, aligned."""
    for number, line in enumerate(lines):
        yield f"{word if number == 0 else '':<{WIDTH}}{line}"


def _python() -> str:
    is_free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    threads = f", free-threaded, global lock {'on' if locked else 'off'}" if is_free else ""
    bits = 64 if sys.maxsize > 2**32 else 32
    return f"{platform.python_version()} ({platform.python_implementation()}, {bits} bits{threads})"


def _kernel(name: str) -> str:
    try:
        import_module(name)
    except ImportError as error:
        why = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
        return f"not compiled{why}: numpy gives equal results, more slowly"
    return "compiled"


def _packages() -> dict[str, dict[str, str | None]] | None:
    """What stair needs ("") and what its extras would bring along, as its metadata says, with the
    versions that are there; None where it has no metadata."""
    try:
        asked = requires("stair") or []
    except PackageNotFoundError:
        return None
    groups: dict[str, dict[str, str | None]] = {}
    for line in asked:
        found = ASKED.match(line)
        extra = (found and found["extra"]) or ""
        if found and found["name"] != "stair" and extra not in FOR_DEVELOPERS:
            groups.setdefault(extra, {})[found["name"]] = _version(found["name"])
    return groups


def _extra(extra: str, names: dict[str, str | None]) -> str:
    there = ", ".join(f"{name} {number}" for name, number in names.items() if number)
    missing = ", ".join(name for name, number in names.items() if not number)
    return f"{extra}: " + "; ".join(filter(None, (there, missing and f"no {missing}")))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _gpus() -> list[str]:
    """The devices that NVIDIA's driver sees; stair's own code asks for none."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ["none seen (there is no nvidia-smi)"]
    asked = [command, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"nvidia-smi does not answer: {type(error).__name__}"]
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not lines:
        return ["none seen (nvidia-smi names none)"]
    return lines


def _caches() -> list[str]:
    """Where files are that stair makes without being told a place for them."""
    from stair.checkout import data_folder

    try:
        passing = Path(tempfile.gettempdir())
        lines = [f"while it works: {_short(passing)}, {_gigabytes(passing)} free"]
    except OSError as error:  # no folder can be written to
        lines = [f"while it works: none ({error.strerror})"]
    kept = data_folder()
    if kept is None:
        return [*lines, "kept: none"]
    n_files = sum(path.is_file() for path in kept.iterdir()) if kept.is_dir() else 0
    files = "1 file" if n_files == 1 else f"{n_files} files"
    return [*lines, f"kept: the paper's data in {_short(kept)}, {files}"]


def _gigabytes(folder: Path) -> str:
    return f"{shutil.disk_usage(folder).free / 1e9:.0f} GB"


def _short(path: Path) -> str:
    """A path without the name of whoever is at home."""
    try:
        return str(Path("~") / path.relative_to(Path.home()))
    except (ValueError, RuntimeError):
        return str(path)
