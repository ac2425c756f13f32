"""What commands tell programs: JSON that a schema describes, exit codes that stay, no questions."""

from __future__ import annotations

import ast
import json
import math
import re
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from command import run
from described import described
from stair.cli import app
from stair.data import write_table
from stair.demo import payments
from stair.errors import StairError
from stair.export.answers import answer, schema, schemas

ROOT = Path(__file__).resolve().parents[2]
SOURCES, PAGE = ROOT / "src" / "stair", ROOT / "docs" / "programs.md"


@pytest.mark.parametrize("name", schemas())
def test_every_schema_is_one_and_describes_itself(name: str) -> None:
    found = json.loads(schema(name))
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["title"]
    assert found["properties"]["format"] == {"const": f"stair-{name}"}
    if name != "rules":  # which were there before, and allow what is not known to them
        assert set(found["required"]) >= {"format", "version"}
        assert found["additionalProperties"] is False
    done = run("export", *([] if name == "rules" else [name]), "--schema")
    assert (done.returncode, json.loads(done.stdout)) == (0, found)


def test_a_schema_that_is_not_there_is_refused() -> None:
    with pytest.raises(StairError, match=r'no schema "docter"; there are .*Did you mean "doctor"'):
        schema("docter")


@given(st.floats() | st.integers() | st.text() | st.none() | st.booleans())
def test_what_json_cannot_write_is_said_in_words(value: Any) -> None:
    """NaN is missing, infinities are texts, and numpy's values are what they are in Python."""
    read = json.loads(answer("x", {"value": [value, np.array([1.5]), np.datetime64("NaT", "us")]}))
    assert (read["format"], read["version"]) == ("stair-x", 1)
    found, array, time = read["value"]
    assert (array, time) == ([1.5], None)
    if isinstance(value, float) and not math.isfinite(value):
        value = None if math.isnan(value) else str(value)
    assert found == value
    days = json.loads(answer("x", {"a": date(2024, 5, 1), "b": np.datetime64("2024-05-01")}))
    assert days["a"] == days["b"] == "2024-05-01"


def test_doctor_answers() -> None:
    done = run("doctor", "--json", "-")
    assert (done.returncode, done.stderr) == (0, b"")
    found = described(done.stdout)
    assert found["needs"]["numpy"] == np.__version__
    assert set(found["kernels"]) == {"cuts", "passes", "boxes", "matches"}


COMMANDS: dict[str, Any] = vars(get_command(app))["commands"]
# Commands without --json, and why.
SILENT = {
    "export": "what it writes is the answer, with --to json as JSON",
    "review": "it is a server of pages for one person",
    "reproduce": "it works in a checkout of the repository, and keeps its results there as files",
}
SCHEMAS = {"summarize": "rules", "demo": "rules"}
"""What commands write with --json, where it is no answer of their own."""


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_answers_programs_or_says_why_not(name: str) -> None:
    """A new command gets --json and a schema, or a place on the list of those that have none; and
    none of them asks questions that nobody answers."""
    parameters = {each.name: each for each in COMMANDS[name].params}
    if name in SILENT:
        assert "json" not in parameters, f"{name} has --json: take it off the list"
    else:
        assert "json" in parameters, f"stair {name} has no --json, and no reason for that"
        assert SCHEMAS.get(name, name) in schemas()
    for each in parameters.values():
        assert not getattr(each, "prompt", None), f"{name} asks for {each.name}"


def test_every_schema_belongs_to_a_command() -> None:
    answered = {SCHEMAS.get(name, name) for name in COMMANDS if name not in SILENT}
    assert {*schemas()} == answered


def test_no_command_asks_questions() -> None:
    """Nothing waits for a person: scripts and agents would wait with it."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func).rpartition(".")[2]
                assert called not in ("input", "confirm", "prompt", "getpass"), path


def test_the_document_tells_of_every_command() -> None:
    """Its table has each command with its schema, or why there is none, and its exit codes."""
    rows = re.findall(r"^\| `stair (\w+)` \| (.*?) \| (.*?) \|$", PAGE.read_text("utf-8"), re.M)
    told = {name: (schema_, codes) for name, schema_, codes in rows}
    assert {*told} == {*COMMANDS}
    for name, (named, codes) in told.items():
        assert named == (SILENT[name] if name in SILENT else f"`{SCHEMAS.get(name, name)}`")
        assert ("1: " in codes) == (name in ALARMS), name


# Commands that end with 1 where all went well, and a person is to know something.
ALARMS = {"summarize", "check", "update", "except", "compare"}


def _rules(tmp_path: Path) -> Path:
    data = payments()
    write_table(tmp_path / "payments.csv", {**data, "wrong": data["flagged"] == 0})
    words = "--label flagged --exclude wrong --effort fast --no-validate --quiet --json rules.json"
    done = run("summarize", "payments.csv", *words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "rules.json"


def test_exceptions_and_marks_are_told_to_programs(tmp_path: Path) -> None:
    """What `stair except` and `stair mark` say is described, and so are their exit codes."""
    _rules(tmp_path)
    asked = ("except", "rules.json", "payments.csv", "--false-alarm", "wrong", "--quiet", "--json")
    done = run(*asked, "-", "--outlier", "flagged", cwd=tmp_path)
    found = described(done.stdout)
    assert done.returncode == (0 if found["share_reached"] else 1)
    assert found["covered"] <= found["false_alarms"]
    done = run("mark", "rules.json", "1", "--status", "accepted", "--owner", "risk", "--json", "-",
               "--quiet", cwd=tmp_path)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    first, *others = described(done.stdout)["rules"]
    assert (first["status"], first["owner"]) == ("accepted", "risk")
    assert {rule["status"] for rule in others} == {"candidate"}
    done = run("mark", "rules.json", "--json", "-", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")


def test_the_demo_hands_its_rules_over() -> None:
    done = run("demo", "--quiet", "--json", "-")
    assert done.returncode == 0
    jsonschema.validate(json.loads(done.stdout), json.loads(schema("rules")))


def test_what_rules_come_to_is_told_to_programs(tmp_path: Path) -> None:
    """With the truth and without; of rows from standard input, too."""
    _rules(tmp_path)
    asked = ("apply", "rules.json", "payments.csv", "--quiet", "--json", "-")
    done = run(*asked, "--label", "flagged", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    found = described(done.stdout)
    assert sum(each["rows"] for each in found["labels"]) == found["rows"] == 5000
    decided = sum(rule["decided"] for rule in found["rules"])
    assert decided + found["without_rule"] == found["rows"]
    assert found["beside"] == "flagged" and found["agreement"][0]["f1"] > 0.8
    done = run(*asked[:2], "-", *asked[3:], cwd=tmp_path,
               given=(tmp_path / "payments.csv").read_bytes())  # fmt: skip
    bare = described(done.stdout)
    assert (bare["beside"], bare["agreement"]) == (None, [])
    assert [rule["covered"] for rule in bare["rules"]] == [r["covered"] for r in found["rules"]]
    # Of what is neither there nor said to be there nothing is known: an F1 of 0 looked like decay.
    (tmp_path / "quiet.csv").write_text(
        "amount,hour,country,merchant,note,device,flagged\n20,12,DE,fuel,a,b,0\n"
    )
    done = run("apply", "rules.json", "quiet.csv", "-q", "--json", "-", "--label", "flagged",
               cwd=tmp_path)  # fmt: skip
    nothing = dict.fromkeys(("precision", "recall", "f1"))
    assert described(done.stdout)["agreement"] == [{"label": "outlier", **nothing}]
