"""The picture in docs/architecture.md, held by walking the imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stair
from places import PICTURE, ROOT, SOURCE, TESTS

ROOMS = sorted(path for path in SOURCE.rglob("*.py"))

_, _, _PART = PICTURE.read_text(encoding="utf-8").partition("\n## The rooms\n")
# The rooms in the order of the data's way: each may know those before it.
ORDER = tuple(re.findall(r"^\| `(\w+)` \|", _PART.partition("\n## ")[0], re.M))
# The command's own files load what they need when it is needed, so that `stair --help` is quick.
OF_THE_COMMAND = {
    "cli.py",
    "gate.py",
    "doctor.py",
    "operation/command.py",
    "operation/compare_command.py",
    "operation/except_command.py",
    "operation/update_command.py",
    "review/command.py",
    "__main__.py",
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
def test_a_room_knows_only_those_before_it(path: Path) -> None:
    room = _room(path)
    if room != "__init__":
        before = set(ORDER[: ORDER.index(room) + 1])
        assert _imports(path) <= before, f"{room} imports {_imports(path) - before}"


def test_the_picture_has_every_room() -> None:
    rooms = {_room(path) for path in ROOMS} - {"__init__"}
    assert set(ORDER) == rooms
    assert len(ORDER) == len(rooms)


@pytest.mark.parametrize("path", ROOMS, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_late_import_hides_a_circle(path: Path) -> None:
    """summary, export, report, scale and plot once imported each other within functions."""
    if path.relative_to(SOURCE).as_posix() in OF_THE_COMMAND:
        return
    late = [
        ast.unparse(inner)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom) and "stair" in ast.unparse(inner)
    ]
    assert late == []


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
    checked = ast.parse((TESTS / "public_types.py").read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in checked.body
        if isinstance(node, ast.ImportFrom) and node.module == "stair"
        for alias in node.names
    }
    assert imported == set(homes), "public_types.py is what mypy reads of each"


def test_types_say_what_things_are() -> None:
    """`Any` was written 839 times. What is left is values of other libraries, and JSON."""
    lines = [line for path in ROOMS for line in path.read_text(encoding="utf-8").splitlines()]
    assert sum(bool(re.search(r"\bAny\b", line)) for line in lines) <= 250


def test_types_are_nouns() -> None:
    """What is Given, Said, Asked, Known, Found, Placed or Told says nothing about what it is."""
    participles = {"Given", "Said", "Asked", "Known", "Found", "Placed", "Told", "Wanted"}
    found = [
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in ROOMS
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name.lstrip("_") in participles
    ]
    assert found == []


def test_kinds_of_clauses_are_told_apart_by_visitors() -> None:
    """`isinstance` on clauses stood 50 times in 13 files outside of the room that has them, so that
    a new kind of clause was a search through all of them."""
    kinds = {"Interval", "Period", "Among", "Mentions"}
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in ROOMS
        if _room(path) != "rules"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        if kinds & set(re.findall(r"\w+", ast.unparse(node.args[1])))
    ]
    assert len(found) <= 5, found


def test_the_public_names_are_there() -> None:
    """`__all__` is the promise: every name in it loads, and `dir` shows it."""
    for name in stair.__all__:
        assert getattr(stair, name) is not None
        assert name in dir(stair)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = stair.nothing  # type: ignore[attr-defined]


@pytest.mark.parametrize("module", ["stair", "stair.cli", "stair.rules.rule_set"])
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


def test_what_make_quick_leaves_out_is_there() -> None:
    """A test that was renamed would come back into the quick run, and nobody would know why."""
    from conftest import LONG

    for name, starts in LONG.items():
        text = (TESTS / f"{name}.py").read_text(encoding="utf-8")
        defined = re.findall(r"^(?:def|class) ([Tt]est\w*)|^(Test\w+) =", text, re.M)
        names = [one or other for one, other in defined]
        for start in starts:
            assert any(each.startswith(start) for each in names), f"{name}: {start}"


# Tests of what is beside the package: documents, examples, experiments, the fuzzer, the house.
BESIDE = "checkout"
TEST_FILES = sorted(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))


@pytest.mark.parametrize("path", TEST_FILES, ids=str)
def test_tests_mirror_src(path: Path) -> None:
    """The tests of src/stair/learn/grow.py are tests/learn/test_grow.py; more of them are beside
    it, as test_grow_{what}.py, and what a whole room promises is in its test_learn*.py."""
    if path.parent.name == BESIDE:
        return
    files = {file.stem.lstrip("_") for file in (ROOT / "src" / "stair" / path.parent).glob("*.py*")}
    files |= {path.parent.name or "paper"}
    name = path.stem.removeprefix("test_")
    assert any(name == file or name.startswith(f"{file}_") for file in files), sorted(files)


def test_where_things_go_is_where_they_are() -> None:
    """A contributor's page that names a file which was moved is worse than none."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    _, _, part = text.partition("\n## Where does it go?\n")
    rows = re.findall(r"^\| an? .*", part.partition("\n## ")[0], re.M)
    assert len(rows) == 6
    for row in rows:
        _, what, folder, written, test, _ = row.split("|")
        for name, file in re.findall(r"\[`(.*?)`\]\((.*?)\)", folder + test):
            assert file.startswith(name), what
            assert (ROOT / file).is_file(), what
        room = ROOT / re.findall(r"`(.*?)`", folder)[0]
        for name in re.findall(r"`(\w+\.py)`", written):
            assert (room / name).is_file(), what
        for name in re.findall(r"`(\w+/\w*\.?\w*)`", written):
            assert (SOURCE / name).exists(), what
