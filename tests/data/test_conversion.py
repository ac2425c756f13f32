"""Words for a missing value among numbers, and codes that only look like numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stair
from stair.data import from_object
from stair.data.conversion import MARKERS, TRUE_NUMBERS, are_whole, as_numbers, whole_columns
from stair.learn.table import choose_fields

N = 300
AMOUNT = np.round(np.linspace(1, 400, N), 2)
FLAG = (AMOUNT > 350).astype(int)


def _texts(values: Any, marks: dict[int, str]) -> list[str]:
    return [marks.get(k, str(v)) for k, v in enumerate(values)]


MARKS = {3: "n/a", 50: "?", 51: "n/a", 200: "unknown"}


def _files(folder: Path) -> dict[str, Any]:
    texts = _texts(AMOUNT, MARKS)
    frame = pd.DataFrame({"amount": texts, "flag": FLAG})
    frame.to_csv(folder / "t.csv", index=False)
    rows = [{"amount": float(t) if k not in MARKS else t, "flag": int(f)}
            for k, (t, f) in enumerate(zip(texts, FLAG, strict=True))]  # fmt: skip
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    pd.DataFrame(rows).to_excel(folder / "t.xlsx", index=False)
    return {
        "csv": folder / "t.csv", "jsonl": folder / "t.jsonl", "xlsx": folder / "t.xlsx",
        "frame": frame, "mixed": pd.DataFrame(rows),
    }  # fmt: skip


@pytest.mark.parametrize("given_as", ["csv", "jsonl", "xlsx", "frame", "mixed"])
def test_a_few_words_for_nothing_leave_numbers_numbers(tmp_path: Path, given_as: str) -> None:
    """Four n/a among three hundred amounts made the column a list of names, which was then left
    out for hardly repeating. The rules file remembers that these are numbers."""
    data = _files(tmp_path)[given_as]
    summary = stair.summarize(data, labels="flag", min_score=0.95, validate=0)
    assert [str(rule) for rule in summary.rules] == ["amount > 350"]
    (note,) = [note for note in summary.notes if "amount" in note]
    assert note == (
        '"amount" is read as numbers, and "?" and "n/a" and "unknown" as missing (4 rows); '
        'kinds={"amount": "category"} reads it as names'
    )
    saved = stair.export.from_json(summary.to_json())
    labels = saved.rules.predict({"amount": ["399", "n/a", "-", "12.5", None, 360]})
    assert labels.tolist() == ["outlier", "inlier", "inlier", "inlier", "inlier", "outlier"]
    named = stair.summarize(data, labels="flag", kinds={"amount": "category"}, validate=0)
    assert named.fields[0].kind == "category"


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=40, max_size=80),
    st.lists(st.sampled_from([*sorted(MARKERS), "N/A", " Unknown ", "NA", "word", "1,5"]),
             max_size=6),
)  # fmt: skip
def test_numbers_are_numbers_where_nearly_all_are(numbers: list[float], words: list[str]) -> None:
    """At least 95 of 100 texts are numbers, and the others are words for nothing; one other word,
    and the column is one of names."""
    texts = [*map(str, numbers), *words]
    is_numbers = len(numbers) >= TRUE_NUMBERS * len(texts) and not {"word", "1,5"} & set(words)
    is_numbers = is_numbers and bool(words)  # texts alone are what they are
    table = {"v": np.array(texts, dtype=object), "w": np.arange(len(texts)) / 2}
    fields, left_out = choose_fields(from_object(table))
    kinds = {field.name: field.kind for field in fields}
    if is_numbers and "v" not in left_out:
        assert kinds["v"] == "number"
        values, n_unread = as_numbers(table["v"], "v", strict=True)
        assert n_unread == len(words)
        assert values[: len(numbers)].tolist() == numbers
    else:
        assert kinds.get("v") != "number"


def test_whole_numbers_with_marks_are_whole() -> None:
    """The type that is kept with the rules is that of the numbers."""
    texts = [str(k % 50) for k in range(100)] + ["?"]
    fields, _ = choose_fields(from_object({"v": np.array(texts, dtype=object)}))
    assert [(field.kind, field.type) for field in fields] == [("number", "whole")]


def test_versions_are_texts_where_they_are_categories(tmp_path: Path) -> None:
    """With --kind version=category 1.10 was 1.1, and its rule covered both."""
    version = ["1.1", "1.10", "1.9", "2.0"] * 50
    lines = [f"{v},{int(v == '1.10')},{k % 3}" for k, v in enumerate(version)]
    path = tmp_path / "t.csv"
    path.write_text("version,flag,code\n" + "\n".join(lines) + "\n")
    kinds = {"version": "category", "code": "category"}
    summary = stair.summarize(path, labels="flag", kinds=kinds, min_score=0.95, validate=0)
    assert summary.score == 1.0
    assert [str(rule) for rule in summary.rules] == ['version = "1.10"']
    types = {field.name: field.type for field in summary.fields}
    assert types == {"version": "text", "code": "number"}
    saved = stair.export.from_json(summary.to_json())
    frame = stair.data.read(path, texts=saved.rules.schema.texts())
    assert saved.rules.predict(frame).tolist().count("outlier") == 50


def test_one_word_among_numbers_is_told() -> None:
    """One "pending" among six hundred weights made them names, which were left out for hardly
    repeating: nothing was found, and nothing said why. Codes such as 007 are names anyhow."""
    random = np.random.default_rng(0)
    weights = [f"{weight:.2f}" for weight in random.normal(50, 10, 600)]
    flags = [int(float(weight) > 63) for weight in weights]
    weights[5], weights[7], flags[5], flags[7] = "n/a", "pending", 0, 0
    table = {"weight": weights, "z": [k % 13 for k in range(600)]}
    left_out = stair.summarize(table, labels=flags, validate=0).left_out["weight"]
    assert left_out.startswith('names, for "pending" is no number, and values hardly repeat')
    with pytest.raises(stair.StairError, match="should have numbers, but has 'pending'"):
        stair.summarize(table, labels=flags, kinds={"weight": "number"})

    weights[5] = "50.00"
    table["weight"] = [weight if weight.isalpha() else f"{weight[0]}0" for weight in weights]
    flags = [int(weight in ("60", "70", "80")) for weight in table["weight"]]
    notes = stair.summarize(table, labels=flags, validate=0).notes
    assert notes == (
        '"weight" is read as names, for "pending" is no number; the other 599 values are',
    )
    named = {"weight": "category"}
    assert not stair.summarize(table, labels=flags, kinds=named, validate=0).notes
    table["weight"][7] = "007"
    assert not stair.summarize(table, labels=flags, validate=0).notes


@given(
    st.integers(0, 40).flatmap(
        lambda n: st.lists(
            st.lists(
                st.sampled_from([0.0, -0.0, 3.0, -7.0, 0.5, -1e-300, 2.0**60, 1e308, np.nan]),
                min_size=n,
                max_size=n,
            ),
            min_size=1,
            max_size=4,
        )
    )
)
def test_columns_are_whole_together_as_alone(columns: list[list[float]]) -> None:
    """All columns of a matrix are looked at in few passes, for each of which a fit pays. What that
    finds is what each column says by itself, many rows and few."""
    matrix = np.array(columns).T
    alone = [are_whole(column) for column in np.array(columns)]
    assert whole_columns(matrix) == alone
    if matrix.size:
        many = np.repeat(matrix, 1 + 40_000 // matrix.size, axis=0)
        assert whole_columns(np.asfortranarray(many)) == alone
