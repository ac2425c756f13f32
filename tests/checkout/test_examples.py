"""The notebooks run from top to bottom and print what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from docs.notebooks import EXAMPLES

from places import ROOT


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_says(path: Path) -> None:
    """In a kernel of its own, as a reader would run it."""
    done = subprocess.run(
        [sys.executable, "-m", "docs.notebooks", path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_there_are_six_and_each_has_a_question_and_a_picture() -> None:
    from docs.notebooks import as_markdown, gallery

    assert len(EXAMPLES) == 6
    for path in EXAMPLES:
        text, pictures = as_markdown(path)
        assert text.startswith("# ")
        assert "```text" in text
        assert pictures
    text, pictures = gallery()
    assert text.count("\n## ") == len(pictures) == 6


def test_what_has_changed_is_told(tmp_path: Path) -> None:
    """A notebook that prints something else, warns or fails is not up to date."""
    import nbformat

    def tried(code: str) -> str:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
        nbformat.write(notebook, tmp_path / "a.ipynb")
        done = subprocess.run(
            [sys.executable, "-m", "docs.notebooks", tmp_path / "a.ipynb"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        return done.stderr

    assert "+2" in tried("print(1 + 1)")
    assert "on the error stream" in tried("import warnings; warnings.warn('look out')")
    assert "ZeroDivisionError" in tried("1 / 0")
