"""`stair export`: every kind from a rules file, and what it says when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from stair.cli import app
from stair.errors import StairError
from stair.export import load
from stair.export.kinds import KINDS
from stair.summary import summarize


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    table = {"amount": rng.normal(size=200), "land": rng.choice(["DE", "FR"], 200)}
    path = tmp_path_factory.mktemp("rules") / "rules.json"
    summarize(table, labels=(table["amount"] > 1.3).astype(int)).to_json(path)
    return path


def _run(*words: Any) -> Any:
    return CliRunner().invoke(app, ["export", *map(str, words)])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_written_to_a_file(kind: str, rules: Path, tmp_path: Path) -> None:
    """And all but ONNX, which is not text, and dbt, which is a folder, are printed as well."""
    done = _run(rules, "--to", kind, "-o", tmp_path / "out")
    assert (done.exit_code, done.output) == (0, "")
    if kind == "dbt":
        assert (tmp_path / "out" / "dbt_project.yml").is_file()
        assert "say where to write it with --output FOLDER" in _run(rules, "--to", kind).output
        assert "expected the name of a folder" in _run(rules, "--to", kind, "-o", "-").output
        return
    content = (tmp_path / "out").read_bytes()
    printed = _run(rules, "--to", kind)
    if kind == "onnx":
        assert printed.exit_code == 2
        assert "ONNX is not text; say where to write it" in printed.output
    else:
        assert printed.output == content.decode()


def test_the_sentences_are_the_default(rules: Path) -> None:
    text = _run(rules).output
    assert text.startswith("1. Outlier (100% of ")
    assert text.endswith("Everything else: inlier\n")


@pytest.mark.parametrize(
    ("form", "start"), [("query", "-- "), ("view", "-- "), ("case", "CASE"), ("conditions", "(")]
)
def test_the_forms_of_sql(form: str, start: str, rules: Path) -> None:
    done = _run(rules, "--to", "sql", "--form", form, "--table", "my table", "--dialect", "mysql")
    assert done.exit_code == 0
    assert done.output.startswith(start)
    assert ("`my table`" in done.output) == (form in ("query", "view"))


def test_the_schema_is_printed() -> None:
    assert json.loads(_run("--schema").output)["title"] == "Rules saved by stair"


def test_json_of_json_is_the_same_file(rules: Path) -> None:
    assert _run(rules, "--to", "json").output == rules.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--to", "pythn"], 'no kind of export "pythn"'),
     (["--to", "pythn"], 'Did you mean "python"?'),
     (["--to", "sql", "--form", "veiw"], 'Did you mean "view"?'),
     (["--to", "sql", "--dialect", "bigqery"], 'Did you mean "bigquery"?'),
     (["--to", "sql", "--dialect", "postgres", "--table", "x" * 64], "has 64 bytes"),
     (["--to", "text", "-o", "nowhere/rules.txt"], "there is no folder nowhere")],
)  # fmt: skip
def test_a_wrong_word_gets_one_sentence(words: list[str], message: str, rules: Path) -> None:
    done = _run(rules, *words)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1


def test_a_missing_or_broken_file_gets_one_sentence(tmp_path: Path) -> None:
    assert "which rules?" in _run().output
    assert "no file" in _run(tmp_path / "none.json").output
    (tmp_path / "x.json").write_text("{")
    done = _run(tmp_path / "x.json", "-o", tmp_path / "out")
    assert "is not JSON" in done.output
    assert not (tmp_path / "out").exists()


def test_rules_are_loaded_by_a_path_of_any_kind(rules: Path) -> None:
    """`stair.export.load("rules.json")` was a traceback: it took a Path only."""
    assert load(str(rules)).rules == load(rules).rules
    for wrong in ("a\0b", None, b"x", 5, "~nobody/x", rules.parent, "/dev/zero", "x" * 300):
        with pytest.raises(StairError):
            load(wrong)  # type: ignore[arg-type]
