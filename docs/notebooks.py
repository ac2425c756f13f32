"""The notebooks in examples/, run from top to bottom as a reader would run them.

    python -m docs.notebooks                      says what does not run, or prints otherwise
    python -m docs.notebooks --write              keeps what is printed and drawn now

Text is compared word for word; pictures only have to be there. Nothing may be said on the error
stream: a notebook that warns its reader is not finished.
"""

from __future__ import annotations

import argparse
import base64
import difflib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = tuple(sorted((ROOT / "examples").glob("*.ipynb")))
SECONDS = 300  # for one cell, on a machine that is busy
GALLERY = """\
Six tables, six questions, and the rules that answer them. Each page is a notebook of the folder
`examples`: it makes its own data, so it runs wherever stair does
(`pip install '.[plot,pyod]' pandas` in a checkout), and the tests run it."""


class NotebookError(Exception):
    """A notebook does not run, or says something else than it did."""


def run(path: Path) -> Any:
    """The notebook as it is after all its cells ran, with what they print and draw."""
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)
    # Files in place of ports where there are such: nobody else on the machine can listen.
    transport = "tcp" if sys.platform == "win32" else "ipc"
    settings = Config({"KernelManager": {"transport": transport}})
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", config=settings)
    try:
        client.execute(
            env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        )
    except CellExecutionError as error:
        raise NotebookError(f"{path.name}: {error}") from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.metadata = {}
            cell.outputs = list(_plain(path.name, cell.outputs))
    notebook.metadata = {
        "kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"},
    }  # fmt: skip
    return notebook


def _plain(name: str, outputs: list[Any]) -> Iterator[Any]:
    """What a page can show: text and pictures."""
    for output in outputs:
        if output.output_type == "stream":
            if output.name != "stdout":
                raise NotebookError(f"{name} says on the error stream: {output.text}")
            yield output
            continue
        if output.output_type == "execute_result":
            output.execution_count = None
        output.metadata = {}
        kept = next((kind for kind in ("image/png", "text/plain") if kind in output.data), None)
        if kept:
            output.data = {kept: output.data[kept]}
            yield output


def text_of(outputs: list[Any]) -> str:
    """What a cell prints, without blanks at line ends."""
    said = []
    for output in outputs:
        if output.output_type == "stream":
            said.append(output.text)
        elif "text/plain" in output.data:
            said.append(output.data["text/plain"] + "\n")
    return "".join(f"{line.rstrip()}\n" for line in "".join(said).splitlines())


def pictures_of(outputs: list[Any]) -> list[bytes]:
    """What a cell draws, as PNG."""
    return [
        base64.b64decode(output.data["image/png"])
        for output in outputs
        if output.output_type != "stream" and "image/png" in output.data
    ]


def as_markdown(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook with what it printed as a document, and its pictures by the path that it names."""
    import nbformat

    parts, pictures, heading = [], {}, path.stem
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            headings = [line for line in cell.source.splitlines() if line.startswith("#")]
            heading = headings[-1].lstrip("# ") if headings else heading
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if said := text_of(cell.outputs):
            parts.append(f"```text\n{said.rstrip()}\n```")
        for picture in pictures_of(cell.outputs):
            name = f"{path.stem}-{len(pictures) + 1}.png"
            pictures[f"examples/{name}"] = picture
            parts.append(f"![{heading}: what the code above draws]({name})")
    return "\n\n".join(parts) + "\n", pictures


def gallery() -> tuple[str, dict[str, bytes]]:
    """Each notebook with its question, its first words and its first picture."""
    parts, pictures = ["# Gallery", GALLERY], {}
    for path in EXAMPLES:
        text, drawn = as_markdown(path)
        title, words = re.match(r"# ([^\n]+)\n\n(.+?)\n\n", text, re.S).groups()  # type: ignore[union-attr]
        first = min(drawn)
        parts += [
            f"## {title}", words,
            f"[![{title}: a picture of its rules]({PurePosixPath('../', first)})]"
            f"(../examples/{path.name})",
            f"[Read it](../examples/{path.name})",
        ]  # fmt: skip
        pictures[first] = drawn[first]
    return "\n\n".join(parts) + "\n", pictures


def differences(path: Path, new: Any) -> str:
    """What is printed now and was not, and pictures that came or went; empty where all is well."""
    import nbformat

    lines = []
    for old, cell in zip(nbformat.read(path, as_version=4).cells, new.cells, strict=True):
        if cell.cell_type == "code":
            before, now = text_of(old.outputs).splitlines(), text_of(cell.outputs).splitlines()
            names = (path.name, "what is printed")
            lines += difflib.unified_diff(before, now, *names, lineterm="", n=1)
            if len(pictures_of(old.outputs)) != len(pictures_of(cell.outputs)):
                lines.append(f"{path.name}: other pictures than before in {cell.id}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run notebooks; with --write keep what they print and draw."""
    import nbformat

    parser = argparse.ArgumentParser(prog="python -m docs.notebooks", description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, default=EXAMPLES)
    parser.add_argument("--write", action="store_true", help="keep what is printed and drawn now")
    chosen = parser.parse_args(arguments)
    failed = 0
    for path in chosen.notebooks:
        try:
            new = run(path)
        except NotebookError as broken:
            print(broken, file=sys.stderr)
            failed = 1
            continue
        if chosen.write:
            nbformat.write(new, path)
        elif changed := differences(path, new):
            print(changed, file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
