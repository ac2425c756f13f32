"""The code in the documents, run from top to bottom as a reader would run it.

    python -m docs.blocks README.md docs/tutorial.md     says what does not run, or prints otherwise
    python -m docs.blocks --write README.md              writes down what is printed now

Each document starts in a folder with payments.csv and new_payments.csv. Its blocks:

- `python` runs in one namespace for the whole document, warnings are errors;
- `text` right after it is what it prints, and so is a comment behind `print(…)`;
- `sh` are commands, one on each line: those of `stair` run, `stair review` until its page is there,
  and of the others it is looked up whether what they speak of (a target of make, an extra of pip, a
  module) is there; `<` and `|` are as in a shell, but that `jq` only sees whether it gets JSON;
- `console` are commands behind a dollar sign with what they print;
- `text` anywhere else is a picture.

`dbt` and `soda` are run where they are: in the environments that tests/environments.py makes. So is
a block of python behind the comment `<!-- in NAME -->`, in a process of its own there.
Where there is none, what stands there is taken for what would be printed; where one is required it
is made.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
LANGUAGES = ("python", "sh", "console", "text")
FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.M | re.S)
IN_A_TOOL = re.compile(r"<!-- in (\w+) -->\n\Z")
TOOLS = ("dbt", "soda")  # which are commands
SAID = re.compile(r"print\(.*\)\s+# (.+)$", re.M)


class BlockError(Exception):
    """A block does not do what the document says."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of code: where it stands in the text, and what kind it is."""

    language: str
    body: str
    start: int  # of the body
    line: int  # the first line of the body, from 1
    follows_code: bool  # nothing stands between it and a python block
    tool: str = ""  # whose environment runs it

    @property
    def end(self) -> int:
        return self.start + len(self.body)


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a document, in order."""
    after_python = -1
    for found in FENCE.finditer(text):
        follows = after_python >= 0 and not text[after_python : found.start()].strip()
        tool = IN_A_TOOL.search(text, 0, found.start())
        yield Block(
            found[1], found[2], found.start(2), text.count("\n", 0, found.start(2)) + 1, follows,
            tool[1] if tool else "",
        )  # fmt: skip
        after_python = found.end() if found[1] == "python" else -1


def run(text: str, name: str) -> str:
    """The document with what its code prints now; BlockError where code fails.

    The working folder is where its files are read and written.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed, pieces, done, is_picture = "", [], 0, False
    for block in blocks(text):
        where = f"{name}:{block.line}"
        new = block.body
        if block.tool:
            there = _in_a_tool(block.tool, ["python", "-c", block.body], where)
            is_picture = there is None
            printed = there or ""
        elif block.language == "python":
            is_picture = False
            printed = _python(block, namespace, where)
        elif block.language == "sh":
            for line in block.body.splitlines():
                _command(line.split("  #")[0], where)
        elif block.language == "console":
            new = _session(block.body, where)
        elif block.language == "text":
            is_said = block.follows_code and not is_picture
            new = _without_blanks(printed.splitlines()) if is_said else block.body
        else:
            raise BlockError(f"{where}: a block of {block.language or 'nothing'}; say one of "
                         f"{', '.join(LANGUAGES)}")  # fmt: skip
        pieces += [text[done : block.start], new]
        done = block.end
    return "".join([*pieces, text[done:]])


def _python(block: Block, namespace: dict[str, Any], where: str) -> str:
    out = io.StringIO()
    # As many empty lines before it as the document has, so that a traceback names its line.
    code = compile("\n" * (block.line - 1) + block.body, where.partition(":")[0], "exec")
    with contextlib.redirect_stdout(out):
        exec(code, namespace)
    printed = out.getvalue()
    for said in SAID.findall(block.body):
        if said not in printed:
            raise BlockError(f"{where}: should print {said!r}, but printed:\n{printed}")
    return printed


def _session(body: str, where: str) -> str:
    lines = []
    for line in body.splitlines():
        if line.startswith("$ "):
            lines += [line, *_command(line[2:], where).splitlines()]
    return _without_blanks(lines)


def _without_blanks(lines: list[str]) -> str:
    """Blanks at the end of a line are nothing that a document should have."""
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _command(line: str, where: str) -> str:
    """What a command prints, or the last one of a pipe."""
    printed, given = "", b""
    for part in line.split(" | "):
        words = shlex.split(part)
        if words[-2:-1] == ["<"]:
            if not Path(words[-1]).is_file():
                raise BlockError(f"{where}: there is no file {words[-1]}")
            given, words = Path(words[-1]).read_bytes(), words[:-2]
        printed, given = _part(words, given, where)
    return printed


def _part(words: list[str], given: bytes, where: str) -> tuple[str, bytes]:
    """What a command prints, and what of it is for the next one. 1 means that the floor was not
    reached, which is no error."""
    if not words:
        return "", b""
    if words[0] == "jq":
        try:
            json.loads(given)
        except ValueError as error:
            raise BlockError(f"{where}: jq gets no JSON: {error}") from None
        return "", b""
    if words[0] in TOOLS:
        return _in_a_tool(words[0], words, where) or "", b""
    if words[0] != "stair":
        _look_up(words, where)
        return "", b""
    if words[1:2] == ["review"]:
        _until_the_page_is_there(words, where)
        return "", b""
    from typer.testing import CliRunner

    from stair.cli import app

    environment = {"NO_COLOR": "1", "COLUMNS": "80"}
    done = CliRunner().invoke(app, words[1:], input=given, env=environment)
    if done.exit_code not in (0, 1) or not isinstance(done.exception, SystemExit | None):
        raise BlockError(f"{where}: {shlex.join(words)}: {done.output}") from done.exception
    return done.output, done.stdout_bytes


def _in_a_tool(name: str, words: list[str], where: str) -> str | None:
    """What a tool prints in its own environment; None where it is not there."""
    program = ROOT / f".venv-{name}" / "bin" / words[0]
    if name in os.environ.get("STAIR_TEST_REQUIRE", "").split(","):
        maker = [sys.executable, ROOT / "tests" / "environments.py", name]
        subprocess.run(maker, capture_output=True, check=True)
    if not program.exists():
        return None
    quiet = {**os.environ, "DO_NOT_TRACK": "1", "PYTHONPATH": "", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [program, *words[1:]], capture_output=True, text=True, check=False, env=quiet
    )
    if done.returncode not in ((0, 1) if words[0] == "soda" else (0,)):  # 1: rows were found
        raise BlockError(f"{where}: {shlex.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def _until_the_page_is_there(words: list[str], where: str) -> None:
    """A server is ended when it has read the file and shows its rules."""
    import time
    from urllib.request import Request, urlopen

    command = [sys.executable, "-m", "stair.cli", *words[1:], "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None and server.stderr is not None
        address = server.stdout.readline().strip()
        try:
            home, _, token = address.partition("?token=")
            if not token:
                raise BlockError(f"{where}: {shlex.join(words)}: {server.stderr.read()}")
            asking = Request(f"{home}job", headers={"Authorization": f"Bearer {token}"})
            for _ in range(600):
                with urlopen(asking) as answer:
                    text = answer.read().decode()
                if 'class="job"' not in text:
                    break
                time.sleep(0.1)
            if text.strip():
                raise BlockError(f"{where}: {shlex.join(words)}: {text}")
        finally:
            server.terminate()


def _look_up(words: list[str], where: str) -> None:
    """A command that cannot run here must speak of things that are there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    match words:
        case ["make", target]:
            known = target in targets
        case ["pip", "install", *what]:
            asked = re.findall(r"\[([\w,]+)\]", " ".join(what))
            extras = {extra for group in asked for extra in group.split(",")}
            known = extras <= set(project["optional-dependencies"])
        case ["python", "-m", module, *_]:
            path = ROOT / module.replace(".", "/")
            known = path.with_suffix(".py").is_file() or path.is_dir()
        case ["python", path]:
            known = (ROOT / path).is_file()
        case _:
            known = False
    if not known:
        raise BlockError(f"{where}: nobody knows how to try {shlex.join(words)}")


@contextlib.contextmanager
def playground() -> Iterator[Path]:
    """A folder with the payments, where the commands of a document run."""
    from stair import data as files
    from stair.demo import payments

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        for file in ("payments.csv", "new_payments.csv"):
            files.write_table(Path(name) / file, payments())
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def main(arguments: list[str] | None = None) -> int:
    """Run documents; with --write bring what they print up to date."""
    parser = argparse.ArgumentParser(prog="python -m docs.blocks", description=__doc__)
    parser.add_argument("documents", nargs="*", type=Path, default=DOCUMENTS)
    parser.add_argument("--write", action="store_true", help="write down what is printed now")
    chosen = parser.parse_args(arguments)
    failed = 0
    for path in [path.resolve() for path in chosen.documents]:
        old = path.read_text(encoding="utf-8")
        try:
            with playground():
                new = run(old, path.name)
        except BlockError as broken:
            print(broken, file=sys.stderr)
            failed = 1
            continue
        if chosen.write:
            path.write_text(new, encoding="utf-8")
        elif old != new:
            failed = 1
            lines = (old.splitlines(), new.splitlines())
            changes = difflib.unified_diff(*lines, path.name, "what is printed", lineterm="", n=1)
            print("\n".join(changes), file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
