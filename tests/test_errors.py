"""Settings are named in the words of where one is: flags in the command, parameters in Python."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

import stair
from places import SOURCE
from settings import summarize
from stair import AllBut, cli
from stair.data import write_table
from stair.errors import StairError, in_the_command, option, spoken
from stair.operation.mark import marked

# What only the command runs, and what only Python does: estimators, detector objects, data sets.
OF_THE_COMMAND = {
    "cli.py",
    "operation/except_command.py",
    "doctor.py",
    "flags.py",
    "gate.py",
    "checkout.py",
    "review/command.py",
    "operation/command.py",
    "operation/compare_command.py",
    "operation/update_command.py",
    "operation/update_words.py",  # which names a whole command
}
OF_PYTHON = {"rules.py", "detect.py"}

# What the command has no flag for.
OF_ESTIMATORS = {"start_depth", "max_depth", "criterion", "max_rounds", "pos_label", "refine"}

FLAG = re.compile(r"(?<![\w-])--[a-z]")
PARAMETERS = [
    name
    for what in (
        stair.summarize, stair.learn_exceptions, stair.check, stair.update, stair.Source,
        stair.Summary.to_html, stair.Summary.to_text,
        stair.DistilledStair, stair.Stair, stair.LocalStair, stair.ID3, stair.CART,
        stair.DuckDB, stair.Dask, stair.Spark, stair.Cuda,
    )
    for name in inspect.signature(what).parameters
    if name not in ("self", "data", *OF_ESTIMATORS)
]  # fmt: skip
PARAMETER = re.compile(rf"(?<![\w.-])({'|'.join(PARAMETERS)})=")


def _flags() -> set[str]:
    command: Any = get_command(cli.app)
    return {o for each in command.commands.values() for p in each.params for o in p.opts}


def _texts() -> Iterator[tuple[str, str]]:
    """All strings of the source that are no docstrings."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if name in OF_THE_COMMAND or name == "errors.py":  # where both are said
            continue
        tree = ast.parse(path.read_text("utf-8"))
        documents = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            if is_text and id(node) not in documents:
                yield f"{name}:{node.lineno}", node.value


def test_no_message_in_the_source_has_the_words_of_one_place() -> None:
    """The error of a library function named `--exclude`, and that of the command `validate=`."""
    odd = []
    for where, text in _texts():
        if FLAG.search(text) and "<!--" not in text:
            odd.append((where, text))
        file = where.rpartition(":")[0]
        is_python = file in OF_PYTHON or file.startswith("estimators/")
        if PARAMETER.search(text) and not is_python:
            odd.append((where, text))
    assert odd == []


def test_every_option_that_a_message_names_is_there() -> None:
    """In both places, but for what only one of them has."""
    named = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            is_option = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "option"
            if is_option and isinstance(node.args[0], ast.Constant):
                named.add(node.args[0].value)
    assert len(named) > 15
    with in_the_command():
        of_python = {"write"}  # the command is given a path
        assert {spoken(option(name)) for name in named - of_python} - _flags() == set()
    of_the_page, of_marks = {"db", "port"}, set(inspect.signature(marked).parameters)
    assert named - set(PARAMETERS) - of_the_page - of_marks == {"negative"}
    assert spoken(option("negative")) == "positive=AllBut(...)"


@given(
    st.one_of(
        st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.booleans(),
        st.none(), st.lists(st.text(), min_size=1),
        st.dictionaries(st.text(), st.text(), min_size=1),
    )
)  # fmt: skip
def test_any_value_can_be_said_in_both_places(value: Any) -> None:
    """In Python it is an argument that means the same value again."""
    text = f"before {option('method', value)} after"
    said = spoken(text)
    assert said.startswith("before method=") and said.endswith(" after")
    assert eval(said.removeprefix("before method=").removesuffix(" after")) == value
    with in_the_command():
        assert re.match("before --(no-)?method", spoken(text))


def test_options_as_a_person_writes_them() -> None:
    examples = [
        (option("min_score", 0.9), "min_score=0.9", "--min-score 0.9"),
        (option("exclude", "my column"), 'exclude=["my column"]', "--exclude 'my column'"),
        (option("kinds", {"Flow ID": "category"}), 'kinds={"Flow ID": "category"}',
         "--kind 'Flow ID=category'"),
        (option("positive", ["a", "b"]), 'positive=["a", "b"]', "--positive a --positive b"),
        (option("validate", 0), "validate=0", "--no-validate"),
        (option("time_parts", True), "time_parts=True", "--time-parts"),
        (option("labels"), "labels=", "--label"),
    ]  # fmt: skip
    for text, in_python, flags in examples:
        assert spoken(text) == in_python
        with in_the_command():
            assert spoken(text) == flags


def test_an_error_of_a_worker_is_said_where_it_arrives() -> None:
    """Workers are processes of their own, which do not know who started them."""
    error = StairError(f"choose another place with {option('work')}")
    arrived = pickle.loads(pickle.dumps(error))
    assert str(arrived) == "choose another place with work="
    with in_the_command():
        assert str(arrived) == "choose another place with --work"


# --- the same trouble through both doors --------------------------------------------------------

TROUBLES: list[tuple[dict[str, Any], list[str]]] = [
    ({"labels": "y", "positive": "7"}, ["--label", "y", "--positive", "7"]),
    ({"labels": "y", "positive": AllBut("7")}, ["--label", "y", "--negative", "7"]),
    ({"scores": "x", "contamination": 0.1, "positive": AllBut("0")},
     ["--score", "x", "--contamination", "0.1", "--negative", "0"]),
    ({"labels": "x"}, ["--label", "x"]),
    ({"labels": "y", "scores": "x"}, ["--label", "y", "--score", "x"]),
    ({}, []),
    ({"labels": "y", "contamination": 0.1}, ["--label", "y", "--contamination", "0.1"]),
    ({"scores": "x"}, ["--score", "x"]),
    ({"scores": "x", "contamination": 0.9}, ["--score", "x", "--contamination", "0.9"]),
    ({"scores": "x", "contamination": 0.1, "positive": "1"},
     ["--score", "x", "--contamination", "0.1", "--positive", "1"]),
    ({"labels": "y", "validate": 1}, ["--label", "y", "--validate", "1"]),
    ({"labels": "y", "validate": 5000}, ["--label", "y", "--validate", "5000"]),
    ({"labels": "y", "min_score": 2}, ["--label", "y", "--min-score", "2"]),
    ({"labels": "y", "method": "local", "locality": -1},
     ["--label", "y", "--method", "local", "--locality", "-1"]),
    ({"labels": "y", "method": "local", "floor_on": "z"},
     ["--label", "y", "--method", "local", "--floor-on", "z"]),
    ({"labels": "y", "min_outliers": 0}, ["--label", "y", "--min-outliers", "0"]),
    ({"labels": "y", "max_values": 0}, ["--label", "y", "--max-values", "0"]),
    ({"labels": "y", "time_limit": -1}, ["--label", "y", "--time-limit", "-1"]),
    ({"labels": "y", "random_state": -1}, ["--label", "y", "--seed", "-1"]),
    ({"labels": "y", "table": "t"}, ["--label", "y", "--table", "t"]),
    ({"labels": "y", "query": "q"}, ["--label", "y", "--query", "q"]),
    ({"labels": "y", "table": "t", "query": "q"},
     ["--label", "y", "--table", "t", "--query", "q"]),
    ({"labels": "y", "method": "local", "n_partitions": 0},
     ["--label", "y", "--method", "local", "--partitions", "0"]),
    ({"labels": "y", "method": "local", "n_partitions": 9999},
     ["--label", "y", "--method", "local", "--partitions", "9999"]),
    ({"labels": "kind", "max_total_length": 3},
     ["--label", "kind", "--max-total-length", "3"]),
    ({"labels": "y", "engine": "duckdb", "bins": 1},
     ["--label", "y", "--engine", "duckdb", "--bins", "1"]),
    ({"labels": "y", "engine": "duckdb", "sample": 1, "method": "refined"},
     ["--label", "y", "--engine", "duckdb", "--sample", "1", "--method", "refined"]),
    ({"scores": "x", "engine": "duckdb"}, ["--score", "x", "--engine", "duckdb"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two planted kinds of outlier among 400 rows."""
    random = np.random.default_rng(0)
    x, z = random.normal(size=400), random.normal(size=400)
    kind = np.where(x > 1.5, "a", np.where(z < -1.5, "b", "fine")).astype(object)
    path = tmp_path_factory.mktemp("both") / "data.csv"
    write_table(path, {"x": x, "z": z, "y": (x > 1.5).astype(int), "kind": kind,
                       "odd": np.where(x > 1.5, "left", "right").astype(object)})  # fmt: skip
    return path


@pytest.mark.parametrize(("parameters", "flags"), TROUBLES, ids=lambda each: str(each)[:60])
def test_the_same_trouble_is_told_in_the_words_of_each_place(
    table: Path, parameters: dict[str, Any], flags: list[str]
) -> None:
    with pytest.raises(StairError) as refused:
        summarize(table, **parameters)
    assert not FLAG.search(str(refused.value))
    done = CliRunner().invoke(cli.app, ["summarize", str(table), *flags])
    assert done.exit_code == 2
    assert not PARAMETER.search(done.output)
    assert "\ue000" not in done.output + str(refused.value)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--measure", "z"], "--measure z; expected f1 or accuracy"),
        (["--measure", "accuracy", "--negative", "0"], "leave --negative out"),
        (["--method", "id3", "--effort", "fast"], "the method id3 has no --effort; leave it out"),
        (["--bins", "10"], "the engine memory has no --bins; leave it out"),
    ],
)
def test_a_flag_that_would_do_nothing_is_refused(
    table: Path, flags: list[str], message: str
) -> None:
    """`--method stair --effort fast` was taken without a word, and nothing was fast."""
    done = CliRunner().invoke(cli.app, ["summarize", str(table), "--label", "y", *flags])
    assert done.exit_code == 2
    assert message in " ".join(done.output.replace("│", " ").split())


SUMMARIES: list[tuple[dict[str, Any], list[str]]] = [
    ({"labels": "y"}, ["--label", "y"]),
    ({"labels": "odd"}, ["--label", "odd"]),  # a guess, which a note tells
    ({"labels": "kind"}, ["--label", "kind"]),
    ({"labels": "kind", "min_score": 0.999, "max_rule_length": 1, "exclude": ["x", "odd", "y"]},
     ["--label", "kind", "--min-score", "0.999", "--max-rule-length", "1",
      "--exclude", "x", "--exclude", "odd", "--exclude", "y"]),
    ({"labels": "kind", "positive": AllBut()}, ["--label", "kind", "--measure", "accuracy"]),
    ({"labels": "y", "method": "stair", "min_score": 0.99},
     ["--label", "y", "--method", "stair", "--min-score", "0.99"]),
    ({"labels": "y", "exclude": ["x", "kind", "odd"]},
     ["--label", "y", "--exclude", "x", "--exclude", "kind", "--exclude", "odd"]),
    ({"labels": "y", "engine": "duckdb"}, ["--label", "y", "--engine", "duckdb"]),
    ({"labels": "y", "method": "local"}, ["--label", "y", "--method", "local"]),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "flags"), SUMMARIES, ids=lambda each: str(each)[:60])
def test_a_summary_gives_advice_in_the_words_of_each_place(
    table: Path, parameters: dict[str, Any], flags: list[str]
) -> None:
    """`print(summary)` recommended `--method stair` to people who had never seen the command."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary = summarize(table, **parameters)
    page = re.sub(r"<(style|script)\b.*?</\1>", "", summary.to_html(), flags=re.S)
    assert not FLAG.search(str(summary) + page)
    done = CliRunner().invoke(cli.app, ["summarize", str(table), *flags])
    assert done.exit_code in (0, 1)
    assert not PARAMETER.search(done.output)
    assert "\ue000" not in done.output + str(summary) + page + summary.to_json()
