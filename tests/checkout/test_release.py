"""What a release is made of: the wheel, the promised versions, and the files around them."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import stair
from places import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HOME = PROJECT["urls"]["Repository"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WITHOUT_A_COMPILER = {**os.environ, "CC": "no-compiler", "CXX": "no-compiler"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names in a wheel that is made of a copy of the sources, in which a build left things."""
    place = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, place)
    left = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd", "_*.c")
    shutil.copytree(ROOT / "src" / "stair", place / "src" / "stair", ignore=left)
    (place / "tests").mkdir()
    (place / "tests" / "test_nothing.py").touch()
    (place / "src" / "stair" / "engines" / "_left.c").touch()
    (place / "src" / "stair" / "engines" / "notes.txt").touch()
    built = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    done = subprocess.run(
        [sys.executable, "-c", built], cwd=place, env=WITHOUT_A_COMPILER, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(place / done.stdout.splitlines()[-1]) as found:
        return found.namelist()


def test_the_wheel_has_what_stair_needs_and_nothing_else(wheel: list[str]) -> None:
    """No source of a kernel, no tests, nothing that was left over; the licences, and all that pages
    are made of."""
    endings = {Path(name).suffix for name in wheel if name.startswith("stair/")}
    assert endings <= {".py", ".typed", ".html", ".css", ".js", ".json", ".svg", ".txt"}
    top = {name.split("/")[0] for name in wheel}
    assert top == {"stair", f"stair-{stair.__version__}.dist-info"}
    assert not any(name.endswith(("_left.c", "notes.txt", "test_nothing.py")) for name in wheel)
    for name in ("LICENSE", "src/stair/review/static/htmx.LICENSE.txt"):
        assert f"stair-{stair.__version__}.dist-info/licenses/{name}" in wheel
    sources = ROOT / "src" / "stair"
    expected = {
        f"stair/{path.relative_to(sources).as_posix()}"
        for path in sources.rglob("*")
        if path.suffix in {".py", ".html", ".css", ".js", ".json", ".svg", ".typed"}
        and "__pycache__" not in path.parts
    }
    assert expected <= set(wheel)


def test_the_kernels_are_what_setup_builds_and_the_doctor_knows() -> None:
    """A kernel that one of them forgets would be missing in silence."""
    from stair.doctor import KERNELS

    kernels = {
        "stair." + ".".join(path.relative_to(ROOT / "src" / "stair").with_suffix("").parts)
        for path in (ROOT / "src" / "stair").rglob("*.pyx")
    }
    assert set(KERNELS.values()) == kernels
    asked = subprocess.run(
        [sys.executable, "-c", "import setup; print(*setup.KERNELS)"], cwd=ROOT,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(asked.stdout.split()) == kernels
    for name in kernels:  # one that does not say so takes the lock for all of Python
        source = ROOT / "src" / f"{name.replace('.', '/')}.pyx"
        assert "# cython: freethreading_compatible=True\n" in source.read_text("utf-8"), name


def _bounds() -> dict[str, str]:
    """Each package that stair or an extra of its users asks for, with the lowest version."""
    extras = PROJECT["optional-dependencies"]
    for_developers = ("docs", "test", "peers", "bench")
    users = [line for name in extras if name not in for_developers for line in extras[name]]
    frames = [line for line in extras["test"] if line.startswith(("pandas", "polars"))]
    found = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)$", line)
             for line in [*PROJECT["dependencies"], *users, *frames])  # fmt: skip
    return {match[1]: match[2] for match in found if match}


def test_the_oldest_versions_are_those_that_are_promised() -> None:
    """`make oldest` tests the lower bounds of pyproject.toml and no others: narwhals 1.20 was said
    to be enough, and its types could not even be asked whether they are whole numbers."""
    lines = (ROOT / "tests" / "oldest.txt").read_text("utf-8").splitlines()
    locked = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for name, bound in _bounds().items():
        if name in ("pyspark", "cupy-cuda13x"):  # their tests need a Java, and a GPU, of their own
            continue
        assert locked[name] == bound or locked[name].startswith(f"{bound}."), name
    of_their_time = {"check-jsonschema", "click", "pyparsing", "pytest"}
    assert set(locked) - of_their_time <= set(_bounds()), "what is locked is asked for"


def test_the_version_is_written_once() -> None:
    """`stair.__version__` is where it stands; sources that are not installed have it too."""
    assert "version" in PROJECT["dynamic"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited["version"] == stair.__version__
    code = "import stair; print(stair.__version__)"
    alone = {"PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=alone, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == stair.__version__


def test_python_versions_are_classified_as_they_are_tested() -> None:
    said = {
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)
    }
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8"))
    tested = {
        step["with"]["python-version"]
        for job in tests["jobs"].values()
        for step in job["steps"]
        if "python-version" in step.get("with", {})
    }
    matrix = set(tests["jobs"]["python"]["strategy"]["matrix"]["python"])
    assert said == {version for version in tested if "$" not in version} | matrix


# --- files that others read ---------------------------------------------------------------------

_SCHEMAS = {
    ".github/workflows/*.yml": "vendor.github-workflows",
    ".github/dependabot.yml": "vendor.dependabot",
    ".github/ISSUE_TEMPLATE/[!c]*.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    "CITATION.cff": "vendor.citation-file-format",
}


@pytest.mark.parametrize("pattern", _SCHEMAS)
def test_files_for_others_are_as_they_expect(pattern: str) -> None:
    """Each against the schema of whoever reads it."""
    files = sorted(ROOT.glob(pattern))
    assert files
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", _SCHEMAS[pattern]]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _commands() -> list[tuple[str, list[str]]]:
    found = []
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text("utf-8"))["jobs"]
        for job in jobs.values():
            for step in job["steps"]:
                lines = re.sub(r"\$\{\{.*?\}\}", "1", step.get("run", "")).splitlines()
                found += [(path.name, shlex.split(line)) for line in lines]
    return found


def test_what_workflows_run_is_what_make_runs() -> None:
    """Nothing is done there that a developer cannot do here; each target and variable exists."""
    targets = set(re.findall(r"^([\w-]+):", MAKEFILE, re.M))
    variables = set(re.findall(r"^(\w+) \?=", MAKEFILE, re.M))
    commands = _commands()
    assert len(commands) >= 6
    for name, words in commands:
        if words == [".ci/run"]:
            assert (ROOT / ".ci" / "run").is_file()
            continue
        assert words[0] == "make", (name, words)
        for word in words[1:]:
            variable, equals, _ = word.partition("=")
            assert (variable in variables) if equals else (word in targets), (name, word)


def test_the_tests_of_a_wheel_are_there() -> None:
    """They had moved, and where wheels are made nothing would have been found to run."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    named = re.findall(r"\{project\}/(\S+)", " ".join(settings["test-command"]))
    assert len(named) >= 3
    for name in named:
        assert (ROOT / name).is_file(), name


def test_the_tests_of_a_wheel_need_no_more_than_is_installed_there() -> None:
    """Where wheels are made there is stair, what it needs, and what is asked for tests; what all
    tests share had imported DuckDB, and none of them would have begun."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["cibuildwheel"]
    named = re.findall(r"\{project\}/(\S+)", " ".join(settings["test-command"]))
    there = {re.split(r"[<>=]", line)[0] for line in settings["test-requires"]}
    more = [each for lines in PROJECT["optional-dependencies"].values() for each in lines]
    absent = {re.split(r"[<>=\[]", line)[0].lower() for line in more} - there - {"stair"}
    code = (
        "import sys, pytest\n"
        "import _pytest.config, _pytest.terminal, pygments\n"
        f"for name in {sorted(absent)}: sys.modules.setdefault(name, None)\n"
        f"sys.exit(pytest.main(['--collect-only', '-q', '-p', 'no:xdist', *{named}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_runs_before_a_commit_is_what_lint_runs() -> None:
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.M)
    assert lint is not None
    made = [line.replace("$(BIN)/", "").strip() for line in lint[1].splitlines()]
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [hook["entry"] for repo in hooks for hook in repo["hooks"]] == made


def test_links_to_the_repository_agree() -> None:
    """It has one address, in pyproject.toml; and the README is shown where no relative link leads
    anywhere, so it has none."""
    files = [ROOT / "README.md", ROOT / "CITATION.cff", ROOT / "SECURITY.md",
             *(ROOT / ".github").rglob("*.yml")]  # fmt: skip
    for path in files:
        for link in re.findall(r"https://github\.com/[\w./-]+", path.read_text("utf-8")):
            assert link.startswith(HOME), (path.name, link)
    readme = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", readme)
    assert links
    assert all(link.startswith(("https://", "#")) for link in links)
    for link in links:
        for start in (f"{HOME}/blob/main/", f"{HOME}/raw/main/"):
            if link.startswith(start):
                assert (ROOT / link.removeprefix(start).partition("#")[0]).is_file(), link


def test_environments_of_tools_are_made_before_anything_is_installed() -> None:
    """Where everything is checked they are made first, beside the rest, by a Python that has
    nothing but itself; once the script asked for stair there, and all failed for want of it."""
    script = ROOT / "tests" / "environments.py"
    bare = subprocess.run([sys.executable, "-I", "-S", script, "nothing"], capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert bare.returncode == 2
    assert "there is no nothing" in bare.stderr
