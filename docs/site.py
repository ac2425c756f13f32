"""The documents as a small static site: `python -m docs.site` (or `make docs`) writes site/.

Every page stands on its own: no request leaves the folder, and without scripts only the search and
the choice of light and dark are missing. A link to a document becomes a page, a link to a file of
code becomes that file, with colours, at the name behind the #. A link to nothing is an error.
"""

from __future__ import annotations

import argparse
import ast
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

import stair
from docs import notebooks, reference

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
ASSETS = ("site.css", "site.js")
COLOURS = {"python": "python", "signature": "python", "py": "python", "pyx": "cython"}
FILE = re.compile(r"https://github\.com/stair-developers/stair/(?:blob|raw)/main/(.+)")
EMPTY_HEADING = re.compile(r"<th( [^>]*)?></th>")
UNBROKEN = 20  # characters of code that stay on one line
IMAGES = (".png", ".svg", ".jpg")


# A document that was made, and its pictures by their paths.
Made = tuple[str, dict[str, bytes]]


@dataclass(frozen=True, slots=True)
class Page:
    """A document: what it is called in the menu, and where its text comes from."""

    name: str  # of the file, without .html
    menu: str
    source: str  # in the repository; links are relative to it
    text: Callable[[], str | Made] | None = None  # for those that are made and not written
    level: str = "h2"  # of the headings that are listed beside it


def _example(name: str, menu: str) -> Page:
    source = f"examples/{name}.ipynb"
    return Page(name, menu, source, partial(notebooks.as_markdown, ROOT / source))


MENU: tuple[tuple[str, tuple[Page, ...]], ...] = (
    ("Begin", (
        Page("index", "What it is", "README.md"),
        Page("tutorial", "Tutorial", "docs/tutorial.md"),
        Page("reading-rules", "Reading rules", "docs/reading-rules.md"),
        Page("recipes", "Commands by job", "docs/recipes.md"),
        Page("programs", "Scripts and agents", "docs/programs.md"),
        Page("reasons", "A reason for every row", "docs/reasons.md"),
        Page("python", "In Python", "docs/python.md"),
    )),
    ("Examples", (
        Page("gallery", "Gallery", "docs/gallery.md", notebooks.gallery),
        _example("fraud", "Card fraud"),
        _example("network-flows", "Network flows"),
        _example("sensor-faults", "Sensor faults"),
        _example("data-quality", "Data quality"),
        _example("medical", "Laboratory values"),
        _example("pyod-comparison", "Detectors compared"),
    )),
    ("How to", (
        Page("howto-pyod", "PyOD", "docs/howto-pyod.md"),
        Page("howto-scikit-learn", "scikit-learn", "docs/howto-scikit-learn.md"),
        Page("howto-sql", "SQL", "docs/howto-sql.md"),
        Page("howto-dbt", "dbt", "docs/howto-dbt.md"),
        Page("howto-great-expectations", "Great Expectations", "docs/howto-great-expectations.md"),
        Page("howto-soda", "Soda", "docs/howto-soda.md"),
        Page("howto-sigma", "Sigma", "docs/howto-sigma.md"),
        Page("exports", "Other exports", "docs/exports.md"),
        Page("wishes", "Rules as you want them", "docs/wishes.md"),
        Page("review", "Judging rules", "docs/review.md"),
        Page("operation", "Rules in operation", "docs/operation.md"),
        Page("local", "Parts of the data", "docs/local.md"),
        Page("scale", "Data that does not fit", "docs/scale.md"),
        Page("reliability", "Never silently wrong", "docs/reliability.md"),
    )),
    ("Why it works", (
        Page("distilled", "Distilled rules", "docs/distilled.md"),
        Page("paper", "From the paper to the code", "docs/paper.md"),
        Page("benchmarks", "Length, speed, memory", "docs/benchmarks.md"),
        Page("experiments", "The paper's experiments", "docs/experiments.md"),
        Page("distilled-results", "Distilled rules' results", "experiments/results/distilled.md"),
        Page("architecture", "The house", "docs/architecture.md"),
    )),
    ("Results", (
        Page("q1", "Q1: total length", "experiments/results/q1.md"),
        Page("q2", "Q2: F1 by length", "experiments/results/q2.md"),
        Page("q3", "Q3: longest rule, floor", "experiments/results/q3.md"),
        Page("q4", "Q4: partitions", "experiments/results/q4.md"),
        Page("q5", "Q5: maps", "experiments/results/q5.md"),
        Page("q6", "Q6: M", "experiments/results/q6.md"),
        Page("q7", "Q7: Wine Quality", "experiments/results/q7.md"),
        Page("claims", "The claims", "experiments/results/claims.md"),
    )),
    ("Look it up", (
        Page("api", "Python", "docs/api.md", reference.api, "h3"),
        Page("command", "Command", "docs/command.md", reference.command),
        Page("changes", "Changes", "CHANGELOG.md"),
        Page("contributing", "Contributing", "CONTRIBUTING.md"),
        Page("security", "Security", "SECURITY.md"),
        Page("conduct", "How we treat each other", "CODE_OF_CONDUCT.md"),
    )),
)  # fmt: skip
PAGES = tuple(page for _, pages in MENU for page in pages)


class LinkError(ValueError):
    """A link leads nowhere."""


@dataclass(slots=True)
class _Links:
    """Where links lead, and what must be there because one leads to it."""

    files: dict[str, str] = field(default_factory=dict)  # code: path in the repository → page
    images: set[str] = field(default_factory=set)
    drawn: dict[str, bytes] = field(default_factory=dict)  # pictures that are in no file
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # from, to, anchor

    def resolve(self, page: Page, href: str) -> str:
        """A link of a document as a link of the site."""
        if inside := FILE.match(href):  # the README names files so that it can be read anywhere
            href = "../" * _depth(page) + inside[1]
        if re.match(r"[a-z]+:", href):
            return href
        path, _, anchor = href.partition("#")
        if not path:
            self.asked.append((page.name, page.name, anchor))
            return href
        target = _normal(PurePosixPath(page.source).parent / path)
        named = {each.source: each.name for each in PAGES}
        tail = f"#{anchor}" if anchor else ""
        if target in named:
            self.asked.append((page.name, named[target], anchor))
            return f"{named[target]}.html{tail}"
        if target in self.drawn:
            return f"images/{PurePosixPath(target).name}"
        if not (ROOT / target).is_file():
            raise LinkError(f"{page.source}: there is no {target} to link to")
        if target.endswith(IMAGES):
            self.images.add(target)
            return f"images/{PurePosixPath(target).name}"
        self.files[target] = "source-" + re.sub(r"\W+", "-", target)
        self.asked.append((page.name, self.files[target], anchor))
        return f"{self.files[target]}.html{tail}"


def _normal(path: PurePosixPath) -> str:
    """A path without any `..`; Python leaves them in, because of symbolic links."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class _Body:
    """A document as HTML, with what its page needs to know of it."""

    html: str
    title: str
    headings: tuple[tuple[str, str], ...]  # those listed beside it: anchor and words
    anchors: frozenset[str]
    sections: tuple[tuple[str, str, str], ...] = ()  # to search in: anchor, heading, words


@cache
def _symbols() -> dict[str, str]:
    return reference.symbols()


def _render(page: Page, links: _Links) -> _Body:
    text = page.text() if page.text else (ROOT / page.source).read_text(encoding="utf-8")
    if not isinstance(text, str):
        text, drawn = text
        links.drawn |= drawn
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")
    tokens = parser.parse(text)
    title, headings, anchors = "", [], set()
    sections: list[tuple[str, str, list[str]]] = []
    is_heading = False  # what stands right before
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            words = _words(following)
            anchor = _slug(words, anchors)
            anchors.add(anchor)
            sections.append((anchor, words, []))
            token.attrSet("id", anchor)
            if token.tag == "h1" and not title:
                title = words
            elif token.tag == page.level:
                headings.append((anchor, words))
        elif "right" in str(token.attrs.pop("style", "")):  # a column of numbers
            token.attrSet("class", "n")
        if sections and token.type in ("inline", "fence") and not is_heading:
            sections[-1][2].append(_words(token) if token.children else token.content)
        is_heading = token.type == "heading_open"
        if token.children:
            token.children = list(_linked(page, _without_badges(token.children)))
        for child in token.children or ():
            if child.type == "code_inline" and len(child.content) <= UNBROKEN:
                child.attrSet("class", "short")
            for name in ("href", "src"):
                if name in child.attrs:
                    child.attrSet(name, links.resolve(page, str(child.attrs[name])))
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    parser.add_render_rule("html_block", _no_comment)
    if not title:
        raise LinkError(f"{page.source} has no title")
    body = parser.renderer.render(tokens, parser.options, {})
    body = EMPTY_HEADING.sub(r"<td\1></td>", body)  # the corner of a table is nobody's heading
    found = tuple((anchor, said, _plain(words)) for anchor, said, words in sections)
    return _Body(body, title, tuple(headings), frozenset(anchors), found)


def _plain(words: list[str]) -> str:
    return " ".join(" ".join(words).split())


def _without_badges(children: list[Token]) -> list[Token]:
    """Pictures from elsewhere, with the links around them, are for the repository's own page."""
    kept: list[Token] = []
    for child in children:
        address = str(child.attrs.get("src", ""))
        if address.startswith("https:") and not FILE.match(address):
            continue
        if child.type == "link_close" and kept and kept[-1].type == "link_open":
            kept.pop()
            continue
        kept.append(child)
    return kept


def _linked(page: Page, children: list[Token]) -> Iterator[Token]:
    """Names of the package lead to their place in the reference: `stair.Rule` and `Rule.length`
    everywhere, `Rule` in the reference itself."""
    depth = 0
    for child in children:
        depth += child.nesting if child.type.startswith("link_") else 0
        name = child.content.partition("(")[0]
        known = child.type == "code_inline" and not depth and name in _symbols()
        if not known or ("." not in name and page.name != "api"):
            yield child
            continue
        api = "" if page.name == "api" else f"{'../' * _depth(page)}docs/api.md"
        opening = Token("link_open", "a", 1)
        opening.attrSet("href", f"{api}#{_symbols()[name]}")
        yield from (opening, child, Token("link_close", "a", -1))


def _depth(page: Page) -> int:
    return len(PurePosixPath(page.source).parts) - 1


def _no_comment(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    text = tokens[index].content
    return "" if text.lstrip().startswith("<!--") else text


def _words(token: Token) -> str:
    return "".join(
        " " if child.type == "softbreak" else child.content for child in token.children or ()
    )


def _slug(words: str, taken: set[str]) -> str:
    """An anchor as GitHub makes it, so that one link works in both places."""
    plain = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
    number, anchor = 0, plain
    while anchor in taken:
        number += 1
        anchor = f"{plain}-{number}"
    return anchor


def _fence(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    token = tokens[index]
    language = token.info.strip()
    if language in COLOURS:
        body = _coloured(token.content, COLOURS[language])
    elif language in ("console", "sh"):
        body = "\n".join(map(_shell_line if language == "sh" else _console_line,
                             token.content.rstrip("\n").split("\n"))) + "\n"  # fmt: skip
    else:
        body = html.escape(token.content)
    return f'<pre class="{language or "text"}" tabindex="0"><code>{body}</code></pre>\n'


def _console_line(line: str) -> str:
    if not line.startswith("$ "):
        return f'<span class="out">{html.escape(line)}</span>'
    return f'<span class="c">$</span> <b>{html.escape(line[2:])}</b>'


def _shell_line(line: str) -> str:
    said, mark, remark = html.escape(line, quote=False).partition("  #")
    return f'{said}<span class="c">{mark}{remark}</span>' if mark else said


def _coloured(code: str, language: str) -> str:
    found: str = highlight(
        code, get_lexer_by_name(language, stripnl=False), HtmlFormatter(nowrap=True)
    )
    return found


def _code_page(path: str) -> _Body:
    """A file of code, each line with its number and each name with an anchor."""
    text = (ROOT / path).read_text(encoding="utf-8")
    # Of several definitions, as overloads are, the last one is what the name means.
    places = {name: line for line, name in _names(text)} if path.endswith(".py") else {}
    names = {line: name for name, line in places.items()}
    language = COLOURS.get(path.rpartition(".")[2], "text")
    lines = []
    for number, line in enumerate(_coloured(text, language).rstrip("\n").split("\n"), start=1):
        anchor = names.get(number, f"L{number}")
        lines.append(f'<span class="line" id="{anchor}">{line or " "}</span>')
    body = f"<h1><code>{path}</code></h1>\n<pre class='file' tabindex='0'><code>" + "\n".join(lines)
    return _Body(body + "</code></pre>", path, (), frozenset(names.values()))


def _names(text: str) -> Iterator[tuple[int, str]]:
    """The line and the name of what a file defines, methods with their class."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.lineno, node.name
            for inner in getattr(node, "body", ()):
                if isinstance(node, ast.ClassDef) and isinstance(inner, ast.FunctionDef):
                    yield inner.lineno, f"{node.name}.{inner.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield node.lineno, target.id


def build(folder: Path, older: Sequence[str] = ()) -> list[Path]:
    """Write the site into a folder, in which the sites of older versions may be already; the pages
    that were written."""
    folder.mkdir(parents=True, exist_ok=True)
    for version in older:
        if not (folder / version / "index.html").is_file():
            raise LinkError(f"there is no site of version {version} in {folder}")
    links = _Links()
    bodies = {page.name: _render(page, links) for page in PAGES}
    menu_names = {page.name: page.menu for page in PAGES}
    bodies |= {name: _code_page(path) for path, name in sorted(links.files.items())}
    for source, target, anchor in links.asked:
        if anchor and anchor not in bodies[target].anchors:
            raise LinkError(f"{source}: there is no #{anchor} on {target}")
    template = Environment(
        loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    ).get_template("page.html")  # fmt: skip
    written = []
    order = [page.name for page in PAGES]
    for name, body in bodies.items():
        place = order.index(name) if name in order else None
        nearby = {
            "before": order[place - 1] if place else None,
            "after": order[place + 1] if place is not None and place + 1 < len(order) else None,
        }
        path = folder / f"{name}.html"
        path.write_text(
            template.render(
                name=name,
                body=body,
                menu=MENU,
                names=menu_names,
                version=stair.__version__,
                older=older,
                **nearby,
            ),
            encoding="utf-8",
        )
        written.append(path)
    for asset in ASSETS:
        shutil.copy(HERE / "templates" / asset, folder / asset)
    (folder / "images").mkdir(exist_ok=True)
    for image in sorted(links.images):
        shutil.copy(ROOT / image, folder / "images" / PurePosixPath(image).name)
    for path, picture in links.drawn.items():
        (folder / "images" / PurePosixPath(path).name).write_bytes(picture)
    (folder / "search.js").write_text(_index(bodies), encoding="utf-8")
    return written


def _index(bodies: dict[str, _Body]) -> str:
    """All words of all documents, as a script: a page that is opened from a disk may load nothing
    else. It is loaded when somebody begins to search."""
    places = [
        [page.name, page.menu, anchor, said, words]
        for page in PAGES
        for anchor, said, words in bodies[page.name].sections
    ]
    return f"window.stairWords = {json.dumps(places, ensure_ascii=False, separators=(',', ':'))};\n"


def releases(folder: Path) -> list[str]:
    """The sites of all tagged versions, each made by its own code; the newest version first."""
    asked = ["git", "tag", "--list", "v*", "--sort=-version:refname"]
    told = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    tags = told.stdout.split()
    for tag in tags:
        packed = subprocess.run(
            ["git", "archive", tag], cwd=ROOT, capture_output=True, check=True
        ).stdout
        with tempfile.TemporaryDirectory() as name:
            with tarfile.open(fileobj=BytesIO(packed)) as archive:
                archive.extractall(name, filter="data")
            subprocess.run(
                [sys.executable, "-m", "docs.site", "--output", (folder / tag[1:]).resolve()],
                cwd=name, env={**os.environ, "PYTHONPATH": str(Path(name) / "src")}, check=True,
            )  # fmt: skip
    return [tag[1:] for tag in tags]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "site", help="the folder to write")
    parser.add_argument("--releases", action="store_true", help="also the sites of all tags")
    chosen = parser.parse_args(arguments)
    try:
        older = releases(chosen.output) if chosen.releases else []
        written = build(chosen.output, older)
    except LinkError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"wrote {len(written)} pages; open {chosen.output / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
