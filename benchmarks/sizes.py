"""What a release weighs: `make dist docs`, then `python -m benchmarks.sizes`.

The wheel and the archive of sources as they are, what installing the wheel without extras puts on
the disk, bytecode included, and the site of the documents.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "sizes.json"


def measure(dist: Path, site: Path) -> dict[str, object]:
    """Bytes; of what is installed, for each package."""
    (wheel,), (sources,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", *quiet, "--target", name, wheel], check=True
        )
        installed = {
            each.metadata["Name"]: _weight(Path(str(each.locate_file(f))) for f in each.files or ())
            for each in distributions(path=[name])
        }
        rest = _weight(Path(name).rglob("*")) - sum(installed.values())
    return {
        "system": f"{platform.system()} on {platform.machine()}",
        "wheel": wheel.stat().st_size,
        "sources": sources.stat().st_size,
        "installed": dict(sorted(installed.items(), key=lambda item: -item[1])),
        "installed beside them": rest,
        "site": _weight(site.rglob("*")),
        "pages": len(list(site.glob("*.html"))),
    }


def _weight(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


if __name__ == "__main__":
    found = measure(ROOT / "dist", ROOT / "site")
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
