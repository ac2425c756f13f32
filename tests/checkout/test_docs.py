"""Every document runs, tables are up to date, and the site hangs together."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from benchmarks.readme import FIT, GPU, LIMITED_API, OF_PEERS, PEERS, Q1, SIZES, lengths, replaced
from benchmarks.readme import main as bring_up_to_date
from docs.blocks import DOCUMENTS, BlockError, blocks, run
from docs.reference import GROUPS
from docs.site import build

import stair
from command import start
from places import ROOT

RECIPES = ROOT / "docs" / "recipes.md"


# The commands by job are run by a test of their own.
@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if path != RECIPES], ids=lambda path: path.name
)
def test_every_block_runs_and_prints_what_it_says(path: Path) -> None:
    """From top to bottom in a process of its own, as a reader would; warnings are errors."""
    with start(path, module="docs.blocks", cwd=ROOT) as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()


def test_the_commands_by_job_run_from_nothing(tmp_path: Path) -> None:
    """In an empty folder, one after the other, in a stair that has no extra but the one that stands
    behind the command: payments.csv was nowhere, and nobody said what `stair review` needs."""
    (block,) = blocks(RECIPES.read_text(encoding="utf-8"))
    assert block.language == "sh"
    lines = block.body.splitlines()
    assert len(lines) >= 10
    for line in lines:
        command, _, remark = line.partition("  #")
        named = re.findall(r"pip install '\.\[(\w+)\]'", remark)
        assert command.startswith("stair ")
        words = shlex.split(command.partition(" | ")[0].partition(" < ")[0])[1:]
        given = (tmp_path / "payments.csv").read_bytes() if " < " in command else b""
        if words[0] == "review":
            words.append("--no-browser")
        with start(*words, cwd=tmp_path, extras=named, stdin=True) as process:
            if words[0] == "review":
                assert process.stdout is not None
                first = process.stdout.readline()
                process.send_signal(signal.SIGTERM)
                assert b"?token=" in first, process.communicate()
                continue
            said, error = process.communicate(given)
            assert process.returncode == 0, (line, error.decode())
            if "| jq" in command:
                json.loads(said)


def test_there_is_something_to_run() -> None:
    """So that the test above never passes for want of code."""
    kinds = [block.language for path in DOCUMENTS for block in blocks(path.read_text("utf-8"))]
    assert min(kinds.count(kind) for kind in ("python", "sh", "console", "text")) >= 8
    assert all("--effort fast" not in path.read_text("utf-8") for path in DOCUMENTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nprint(1)  # 2\n```\n", "should print '2'"),
        ("```sh\nstair explain\n```\n", "Missing argument"),
        ("```sh\nstair export - < nothing.json\n```\n", "nothing.json"),
        ("```sh\nmake coffee\n```\n", "make coffee"),
        ("```sh\nstair --version | jq .\n```\n", "jq gets no JSON"),
        ("```sh\npip install 'stair[coffee]'\n```\n", "coffee"),
        ("```\nwhat is this\n```\n", "a block of nothing"),
    ],
)
def test_a_block_that_does_not_hold_is_told(text: str, message: str) -> None:
    with pytest.raises(BlockError, match=re.escape(message)):
        run(text, "a.md")


def test_what_is_printed_is_written_into_the_document() -> None:
    """Names last from block to block; a picture stays as it is, and blanks at line ends go."""
    text = (
        "```text\na picture \n```\n\n```python\nx = 2\n```\n\n"
        '```python\nprint(x + 1, " ")\n```\n\n```text\nold\n```\n\n'
        "```console\n$ stair --version\nold\n```\n"
    )
    new = text.replace("```text\nold\n", "```text\n3\n", 1)
    new = new.replace("version\nold", f"version\nstair {stair.__version__}")
    assert run(text, "a.md") == new


def test_the_tables_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures are generated from the committed results, never typed."""
    assert bring_up_to_date(["--check"]) == 0, capsys.readouterr().err


def test_committed_lengths_become_tables(tmp_path: Path) -> None:
    documents = (
        "README.md",
        *(f"docs/{n}.md" for n in ("benchmarks", "exports", "review", "scale")),
    )
    for name in (*documents, *map(str, (FIT, GPU, LIMITED_API, SIZES))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    path = tmp_path / Q1
    path.parent.mkdir(parents=True)
    head = "data,method,paper length,length,score,status"
    rows = ("Pima,STAIR,12,39,0.9,run", "Pima,L-STAIR,10,9,0.9,run", "Pima,refined,,23,0.9,run",
            "Pima,distilled,,7,0.9,run", "Thursday,STAIR,30,,,not run here")  # fmt: skip
    path.write_text("\n".join((head, *rows, "")), encoding="utf-8")
    peers = ",".join(("data", *OF_PEERS))
    (tmp_path / PEERS).write_text(f"{peers}\nPima,24,18,6\n", encoding="utf-8")
    assert bring_up_to_date(["--root", str(tmp_path), "--check"]) == 1
    assert bring_up_to_date(["--root", str(tmp_path)]) == 0
    assert "| Pima | 12 | 10 | 39 | 23 | 24 | 18 | – | **7** | 6 |" in (
        tmp_path / "docs/benchmarks.md"
    ).read_text("utf-8")
    assert bring_up_to_date(["--root", str(tmp_path), "--check"]) == 0
    path.write_text(f"{head}\nPima,12\n", encoding="utf-8")
    assert bring_up_to_date(["--root", str(tmp_path)]) == 1
    assert lengths(tmp_path / "nothing.csv", tmp_path / PEERS, tmp_path / "nothing.json") == ""
    with pytest.raises(ValueError, match="expected one"):
        replaced("no marks", "lengths", "")
    quick = json.loads((ROOT / FIT).read_text("utf-8"))
    quick["settings"]["quick"] = True
    (tmp_path / FIT).write_text(json.dumps(quick), encoding="utf-8")
    assert bring_up_to_date(["--root", str(tmp_path), "--check"]) == 1


# --- the site -----------------------------------------------------------------------------------


class _Page(HTMLParser):
    """The title of a page, its anchors, and what it links to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.title, self.in_title = "", False
        self.anchors: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.without_words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.in_title = tag == "title"
        if given.get("id"):
            self.anchors.append(str(given["id"]))
        if tag == "a":
            self.links.append(str(given["href"]))
        elif tag in ("img", "script", "link", "iframe", "video", "source"):
            self.loads.append(str(given.get("src") or given.get("href")))
        if tag == "img" and not given.get("alt"):
            self.without_words.append(str(given["src"]))
        assert "style" not in given
        assert not any(name.startswith("on") for name in given)

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title += data
            self.in_title = False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Page]:
    folder = tmp_path_factory.mktemp("site")
    written = build(folder)
    assert sorted(folder.glob("*.html")) == sorted(written)
    return {path.name: _Page(path) for path in written} | {
        str(path.relative_to(folder)): _Page.__new__(_Page)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".html"
    }


def test_every_page_has_a_title_of_its_own(site: dict[str, _Page]) -> None:
    titles = [page.title.strip() for name, page in site.items() if name.endswith(".html")]
    assert all(titles)
    assert len(set(titles)) == len(titles) > 15


def test_every_link_and_picture_is_there(site: dict[str, _Page]) -> None:
    """Within the site, down to the anchor; elsewhere only by https, and only as a link."""
    for name, page in site.items():
        if not name.endswith(".html"):
            continue
        assert len(set(page.anchors)) == len(page.anchors), name
        assert not page.without_words
        for loaded in page.loads:
            assert loaded == "data:," or loaded in site, f"{name} loads {loaded}"
        for link in page.links:
            if link.startswith("https://"):
                continue
            target, _, anchor = unquote(link).partition("#")
            assert (target or name) in site, f"{name} links to {link}"
            if anchor:
                assert anchor in site[target or name].anchors, f"{name} links to {link}"


def test_styles_and_scripts_ask_for_nothing() -> None:
    for path in (ROOT / "docs" / "templates").iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttp", text), path.name


def test_every_document_is_in_the_site(site: dict[str, _Page]) -> None:
    """A page that nobody can find is no page."""
    from docs.site import PAGES

    sources = {page.source for page in PAGES}
    assert {str(path.relative_to(ROOT)) for path in DOCUMENTS} <= sources
    found = site["index.html"].links
    assert all(f"{page.name}.html" in found for page in PAGES)


def test_the_reference_has_every_public_name_and_every_option(site: dict[str, _Page]) -> None:
    from docs.reference import command
    from typer.main import get_command

    from stair.cli import app

    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(stair.__all__)
    assert {name.lower() for name in named} <= set(site["api.html"].anchors)
    text = command()
    for name, each in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"## {name}\n" in text
        assert all(f"`{flag}`" in text for p in each.params for flag in p.opts if "--" in flag)
