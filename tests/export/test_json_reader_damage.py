"""A corpus of damaged rulebooks: one fault in each, at every place of the file. All are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stair
from command import run
from stair import StairError
from stair.demo import month
from stair.export import Rulebook, from_json
from stair.operation.mark import marked

Path_ = tuple[str | int, ...]
# What is said of rules beside them may be anything, and a missing one of these is empty.
FREE = ("facts",)
MAY_BE_MISSING = {
    "id", "status", "owner", "note", "since", "until", "evidence", "words", "values", "zone",
    "exceptions", "usual", "whole", "networks_of",
}  # fmt: skip


@pytest.fixture(scope="module")
def book() -> Rulebook:
    """Rules of numbers, categories and texts, an exception, records with all that they may have."""
    learned = stair.summarize(month(1), "flagged", min_score=0.9, validate=0)
    table = month(1)
    wrong = np.flatnonzero((table["country"] == "GB") & (table["amount"] > 4000))
    found = stair.learn_exceptions(from_json(learned.to_json()), table, false_alarms=wrong)
    found = marked(found, [], status="accepted", owner="ana", note="seen", since="2026-02-01")
    found = marked(found, ["1"], until="2027-02-01")
    return marked(found, ["4"], status="retired")


def _places(value: object, at: Path_ = ()) -> Iterator[Path_]:
    """Every place of a document, but for what may be anything; of long lists the first two."""
    if at[:1] and at[0] in FREE:
        return
    if at:
        yield at
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _places(inside, (*at, key))
    elif isinstance(value, list):
        for place, inside in enumerate(value[:2]):
            yield from _places(inside, (*at, place))


def _changed(document: Any, at: Path_, change: Any) -> str:
    """The text of the document with one place changed: `change` gets what it is in, and its key."""
    other = copy.deepcopy(document)
    inside = other
    for key in at[:-1]:
        inside = inside[key]
    change(inside, at[-1])
    return json.dumps(other)


def _corpus(text: str) -> Iterator[tuple[str, str]]:
    """Each damaged file, with what was done to it."""
    document = json.loads(text)
    yield "nothing", ""
    for share in (1, 2, 3, 5, 9):
        yield f"cut at {share}/10", text[: len(text) * share // 10]
    for at in _places(document):
        name = at[-1]
        value: Any = document
        for key in at:
            value = value[key]

        def put(inside: Any, key: Any, to: Any) -> None:
            inside[key] = to

        if isinstance(name, str):
            yield (
                f"{at} has another name",
                _changed(document, at, lambda i, k: i.update({f"{k}?": i.pop(k)})),
            )
            if name not in MAY_BE_MISSING:
                yield f"{at} is gone", _changed(document, at, lambda i, k: i.pop(k))
        wrong: list[Any] = [{"x": 1}, [[]]]
        if not isinstance(value, str):
            wrong.append("x\u0000")
        if value is not None and name != "outlier":
            wrong += [None] if not isinstance(name, str) or name not in ("above", "up_to") else []
        for other in wrong:
            yield f"{at} is {other!r}", _changed(document, at, lambda i, k, o=other: put(i, k, o))
        if isinstance(value, list) and value and name not in ("clauses", "rules", "exceptions"):
            yield (
                f"{at} has one more",
                _changed(document, at, lambda i, k: i[k].append(copy.deepcopy(i[k][0]))),
            )


def test_every_damaged_rulebook_is_refused_in_one_sentence(book: Rulebook) -> None:
    """A place that has another name, is gone, is of another type, or is there once too often."""
    text = book.to_json()
    assert from_json(text) == book
    n_refused = 0
    for what, damaged in _corpus(text):
        try:
            read = from_json(damaged, "rules.json")
        except StairError as error:
            assert "\n" not in str(error), what
            assert "rules.json" in str(error), what
            n_refused += 1
        else:
            raise AssertionError(f"{what}, and it was read: {read}")
    assert n_refused > 500


def test_a_damaged_rulebook_is_neither_updated_nor_marked(book: Rulebook, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(book.to_json().replace('"status": "retired"', '"status": "gone"'))
    (tmp_path / "2.csv").write_text("flagged\n0\n1\n")
    before = path.read_bytes()
    for words in (("update", path, "2.csv", "--label", "flagged"), ("mark", path, "--note", "x"),
                  ("check", path, "2.csv"), ("compare", path, path, "2.csv")):  # fmt: skip
        done = run(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), words
        assert b"damaged" in done.stderr
        assert path.read_bytes() == before
        assert not list(tmp_path.glob(".*"))
