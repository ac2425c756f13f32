"""The picture in docs/architecture.md, held by walking the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stair

SOURCE = Path(stair.__file__).parent
ROOMS = sorted(path for path in SOURCE.rglob("*.py"))

# What each room may import of the house. A room that is not listed may import anything but cli.
MAY_IMPORT = {
    "objective": set(),
    "decimals": set(),
    "names": set(),
    "figures": set(),
    "errors": set(),
    "clauses": set(),
    "match": {"clauses"},
    "conversion": {"errors", "io"},
    "notebook": set(),
    "rules": {"clauses", "errors", "figures", "match", "notebook", "schema"},
    "schema": {"clauses", "conversion", "errors", "io", "names"},
    "columns": {"clauses", "decimals", "names"},
    "identifiers": {"columns"},
    "search": {"objective"},
    "engines": {"clauses", "columns", "engines", "objective", "search"},
    "grow": {"clauses", "engines", "objective", "rules", "search"},
    "levels": {"engines", "grow", "objective"},
    "refine": {"grow", "objective"},
    "space": {"clauses"},
    "local": {"match", "rules", "space"},
    "alike": {"table"},
    "partition": {"alike", "engines", "grow", "match", "objective", "refine", "rules", "space"},
    "trees": {"clauses", "columns", "grow", "objective", "rules"},
    "codebook": {"errors"},
    "labels": {"codebook", "errors"},
    "agreement": {"codebook", "errors", "io", "labels", "objective", "rules", "schema"},
    "verdicts": {"codebook", "errors", "labels"},
    "detect": {"errors", "labels"},
    "shortest": {"clauses", "engines", "grow", "objective", "refine", "rules", "search"},
    "distill": {
        "clauses",
        "columns",
        "decimals",
        "distill",
        "engines",
        "grow",
        "objective",
        "rules",
        "schema",
    },
    "evidence": {"clauses", "labels", "rules"},
    "seeds": {"errors"},
    "validation": {"objective"},
    "groups": set(),
    "kinds": {"errors", "groups", "objective", "rules", "schema"},
    "frontier": {"distill", "groups", "objective", "rules"},
    "suspects": {"clauses", "conversion", "evidence", "figures", "objective", "rules", "schema"},
    "learn": {
        "agreement",
        "columns",
        "distill",
        "engines",
        "errors",
        "figures",
        "grow",
        "kinds",
        "labels",
        "local",
        "localize",
        "objective",
        "partition",
        "progress",
        "rules",
        "schema",
        "seeds",
        "shortest",
        "table",
        "trees",
        "validation",
    },
    "io": {"errors", "io", "progress"},
    "datasets": {"errors", "traffic"},
    "traffic": set(),
    "checkout": {"errors", "gate"},
    "demo": set(),
    "gate": {"errors", "io"},
    "progress": {"errors"},
    "table": {"clauses", "columns", "conversion", "errors", "identifiers", "io", "schema"},
    "scale": {
        "agreement",
        "clauses",
        "codebook",
        "columns",
        "conversion",
        "decimals",
        "distill",
        "distribution",
        "engines",
        "errors",
        "evidence",
        "frontier",
        "groups",
        "figures",
        "grow",
        "identifiers",
        "io",
        "kinds",
        "labels",
        "learn",
        "levels",
        "local",
        "match",
        "objective",
        "progress",
        "rules",
        "scale",
        "schema",
        "search",
        "summary",
        "suspects",
        "table",
        "tallies",
        "validation",
    },
    "export": {
        "clauses",
        "codebook",
        "conversion",
        "errors",
        "evidence",
        "export",
        "figures",
        "identifiers",
        "io",
        "kinds",
        "local",
        "rules",
        "schema",
        "space",
        "summary",
    },
    "axis": set(),
    "charts": {"axis"},
    "lettering": set(),
    "tallies": set(),
    "distribution": {"axis", "charts", "clauses", "tallies"},
    "pictures": {"plot", "rules", "summary"},
    "report": {
        "charts",
        "clauses",
        "distribution",
        "errors",
        "evidence",
        "export",
        "io",
        "lettering",
        "local",
        "match",
        "report",
        "rules",
        "schema",
        "summary",
    },
    "review": {
        "agreement",
        "clauses",
        "columns",
        "detect",
        "distill",
        "errors",
        "export",
        "gate",
        "intake",
        "io",
        "kinds",
        "labels",
        "learn",
        "local",
        "objective",
        "report",
        "review",
        "rules",
        "schema",
        "summary",
        "table",
        "validation",
    },
}


def _imports(path: Path) -> set[str]:
    """The rooms of the house that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "stair":
                names = [f"stair.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("stair.")}
    return found


def _room(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


@pytest.mark.parametrize("path", ROOMS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_knows_only_what_the_picture_allows(path: Path) -> None:
    room = _room(path)
    found = _imports(path)
    assert "cli" not in found or room in {"cli", "__main__"}
    assert "review" not in found or room in {"cli", "review"}
    if room in MAY_IMPORT:
        assert found <= MAY_IMPORT[room], f"{room} imports {found - MAY_IMPORT[room]}"


@pytest.mark.parametrize("path", ROOMS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_is_named_by_its_job(path: Path) -> None:
    """There is no utils.py. Size follows from the job: a limit on lines made files of 499."""
    assert path.stem not in {"utils", "helpers", "common", "misc"}


def test_a_type_checker_sees_every_public_name() -> None:
    """Names are loaded when they are used, so a type checker knows those alone that the package
    imports under TYPE_CHECKING: DistilledStair was not among them, and so it was Any."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: f"stair.{home}" if home else "stair" for name, home in stair._HOMES.items()}
    assert seen == homes
    assert sorted(homes) == sorted(stair.__all__)


def test_the_public_names_are_there() -> None:
    """`__all__` is the promise: every name in it loads, and `dir` shows it."""
    for name in stair.__all__:
        assert getattr(stair, name) is not None
        assert name in dir(stair)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = stair.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", ["stair", "stair.cli", "stair.rules", "stair.datasets"])
def test_heavy_libraries_are_imported_late(module: str) -> None:
    """`import stair` and `stair --help` must not pay for scikit-learn, scipy or pandas."""
    code = (
        f"import {module}, sys; "
        "heavy = ('sklearn', 'scipy', 'pandas', 'duckdb', 'pyarrow', 'polars', 'onnx', 'sqlglot'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_the_version_is_said_once() -> None:
    """The package's metadata and the module agree."""
    from importlib.metadata import version

    assert stair.__version__ == version("stair")
