"""Damaged rules files: each is read, and then means one thing, or is refused in one sentence."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from fuzz import library, oracle
from fuzz.result import Finding, Result, last_lines, origin, sentence_kind
from fuzz.targets import place_of_numbers
from stair import Source, StairError, summarize
from stair.data import Frame, from_object

Rng = np.random.Generator

ANYTHING: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3.5, -0.0, 1e308, 10**400, 2**63, 2**53 + 1, "", "x", "now",
    "NaT", "2024", "2024-01-31T00:00:00", "number", "category", "time", "text", "naive", "zoned",
    "whole", "real", "flag", "clock", "duration", "described", "outlier", "inlier", [], {}, [1],
    ["a", 1], [[]], {"a": 1}, "nan", "inf", "\u0000", "😀", "\ud800",
)  # fmt: skip
WORDS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"null", b"true", b"[]", b"{}", b'"', b",", b"\\",
    b"\x00", b"\xff", b"99999999999999999999", b"//", b"'", b"\xef\xbb\xbf",
)  # fmt: skip


def seeds() -> list[str]:
    """Sound files of every kind of rules and clauses, and a small table for them."""
    table = small_table()
    codes = table["code"].tolist()
    flagged = [int(a > 60 or (c == "X" and n > 1)) for a, c, n in zip(
        table["amount"].tolist(), codes, table["n"].tolist(), strict=True)]  # fmt: skip
    late = (table["day"] > np.datetime64("2024-02-20")).astype(int).tolist()
    said = ["gift" in text.lower() for text in table["note"].tolist()]
    made = []
    for labels, method in ((flagged, "stair"), (flagged, "distilled"), (late, "stair"),
                           (said, "stair"), (flagged, "local"), (codes, "stair")):  # fmt: skip
        given = {k: v for k, v in table.items() if labels is not codes or k != "code"}
        kinds = {"note": "text", **({"n": "category"} if labels is not late else {})}
        summary = summarize(
            Source(given, time_parts=True),
            labels=labels,
            kinds=kinds,
            method=library.fast(method),
        )
        made.append(library.to_json(summary))
    rng = np.random.default_rng(2)
    book = library.with_exceptions(library.from_json(made[0]), rng)
    assert book is not None
    return [*made, library.to_json(book), _of_the_second_version(made[1])]


def _of_the_second_version(text: str) -> str:
    """The same rules as they were written when there were no records."""
    document = json.loads(text)
    for rule in document["rules"]:
        for key in ("id", "status", "evidence"):
            del rule[key]
    return json.dumps({**document, "version": 2})


def small_table() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    n = 80
    kinds, places = rng.choice(["gift", "plain", "Gift"], n), rng.choice(["here", "there"], n)
    note = np.empty(n, dtype=object)
    note[:] = [f"{a} order {b}" for a, b in zip(kinds.tolist(), places.tolist(), strict=True)]
    code = np.empty(n, dtype=object)
    code[:] = rng.choice(["2", "3", "X"], n).tolist()
    amount = rng.normal(50, 10, n).round(1)
    amount[3] = np.nan
    return {
        "amount": amount,
        "n": rng.integers(0, 4, n),
        "code": code,
        "flag": rng.random(n) < 0.5,
        "day": np.datetime64("2024-02-01", "us") + rng.integers(0, 40, n).astype("m8[D]"),
        "note": note,
    }


# --- damage ---------------------------------------------------------------------------------------


def damaged(text: str, rng: Rng) -> str | bytes:
    """One file with one to three faults, most of them inside sound JSON."""
    if rng.random() < 0.25:
        return _torn(text.encode(), rng)
    document = json.loads(text)
    for _ in range(int(rng.integers(1, 4))):
        _CHANGES[int(rng.integers(len(_CHANGES)))](document, rng)
    text = json.dumps(document)
    if rng.random() < 0.15:
        text = _with_twice(text, rng)
    return text


def _torn(raw: bytes, rng: Rng) -> bytes:
    at = int(rng.integers(len(raw)))
    roll = rng.random()
    if roll < 0.25:
        return raw[:at]
    if roll < 0.5:
        return raw[:at] + WORDS[int(rng.integers(len(WORDS)))] + raw[at:]
    if roll < 0.75:
        end = min(len(raw), at + int(rng.integers(1, 40)))
        return raw[:at] + raw[end:]
    end = min(len(raw), at + int(rng.integers(1, 60)))
    return raw[:end] + raw[at:end] + raw[end:]


def _with_twice(text: str, rng: Rng) -> str:
    """The same key twice in one object, with another value."""
    places = [k for k, c in enumerate(text) if c == "{" and text[k + 1 : k + 2] == '"']
    at = places[int(rng.integers(len(places)))]
    key = text[at + 1 : text.index('"', at + 2) + 1]
    return f"{text[: at + 1]}{key}: {json.dumps(_anything(rng))}, {text[at + 1 :]}"


def _anything(rng: Rng) -> Any:
    return copy.deepcopy(ANYTHING[int(rng.integers(len(ANYTHING)))])


def _places(value: Any, found: list[tuple[Any, Any]] | None = None) -> list[tuple[Any, Any]]:
    """Every place in a document, as what holds it and its key."""
    found = [] if found is None else found
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            _places(value[key], found)
    return found


def _place(document: Any, rng: Rng) -> tuple[Any, Any]:
    """Any place, or one outside of what is usual, which has more numbers than all the rest."""
    places = _places(document)
    if rng.random() < 0.7 and isinstance(document, dict):
        rest = {key: value for key, value in document.items() if key != "usual"}
        places = [(document if inside is rest else inside, key) for inside, key in _places(rest)]
    if not places:
        return {"x": 1}, "x"
    return places[int(rng.integers(len(places)))]


def _replace(document: Any, rng: Rng) -> None:
    inside, key = _place(document, rng)
    inside[key] = _anything(rng)


def _delete(document: Any, rng: Rng) -> None:
    inside, key = _place(document, rng)
    del inside[key]


def _swap(document: Any, rng: Rng) -> None:
    (a, k), (b, m) = _place(document, rng), _place(document, rng)
    a[k], b[m] = copy.deepcopy(b[m]), copy.deepcopy(a[k])


def _add(document: Any, rng: Rng) -> None:
    inside, key = _place(document, rng)
    if isinstance(inside, dict):
        inside[f"{key}!" if rng.random() < 0.5 else "missing"] = _anything(rng)
    else:
        inside.insert(key, copy.deepcopy(inside[key]))


def _swap_kind(document: Any, rng: Rng) -> None:
    fields = document.get("fields") if isinstance(document, dict) else None
    if not isinstance(fields, list) or not fields:
        return
    chosen = fields[int(rng.integers(len(fields)))]
    if isinstance(chosen, dict):
        key = "kind" if rng.random() < 0.6 else "type"
        chosen[key] = ["number", "category", "time", "text", "whole", "flag", "zoned", "clock",
                       "duration"][int(rng.integers(9))]  # fmt: skip


def _change_number(document: Any, rng: Rng) -> None:
    numbers = [
        (inside, key)
        for inside, key in _places(document)
        if isinstance(inside[key], int | float) and not isinstance(inside[key], bool)
    ]
    if numbers:
        inside, key = numbers[int(rng.integers(len(numbers)))]
        inside[key] = [-inside[key], inside[key] * 1e300, 2**70, 0, inside[key] + 0.5][
            int(rng.integers(5))
        ]


_CHANGES: tuple[Callable[[Any, Rng], None], ...] = (
    _replace, _replace, _delete, _swap, _add, _swap_kind, _change_number,
)  # fmt: skip


# --- what must hold -------------------------------------------------------------------------------


def look_at(text: str | bytes, frame: Frame, connection: Any) -> Result:
    """Read or refused; and if it is read, it means one thing."""
    result = Result()
    try:
        _look_at(text, frame, connection, result)
    except StairError as error:
        result.count("rules files", "read", "refused")
        said = str(error)
        if not said.strip() or "\n" in said or "Traceback" in said or len(said) > 2000:
            kind = sentence_kind(said)
            result.found(Finding("rules files", "sentence", kind, "it is no clear sentence",
                                 "one line", said[:500]))  # fmt: skip
    except RecursionError as error:
        result.found(Finding("rules files", "read", "RecursionError", "too deep", "", str(error)))
    except Exception as error:
        result.found(Finding("rules files", "read", origin(error), "an error that is no sentence",
                             "rules or one sentence", last_lines(error)))  # fmt: skip
    return result


def _look_at(text: str | bytes, frame: Frame, connection: Any, result: Result) -> None:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        file.flush()
        saved = library.load(Path(file.name))
    result.count("rules files", "read", "read")
    again = library.to_json(saved)
    if library.to_json(library.from_json(again)) != again:
        result.found(Finding("rules files", "saved", "differs", "saving again changes the file"))
    try:
        numbers = library.apply(saved, frame)[1]
    except StairError:
        result.count("rules files", "apply", "refused")
        return
    result.count("rules files", "oracle", "compared")
    document = library.document_of(saved)
    try:
        second: Any = oracle.assigned(document, library.plain_columns(frame), frame.n_rows)
    except oracle.RefusedError:
        second = "refused"
    except oracle.UnsureError:
        second = numbers
    if second != numbers:
        result.found(Finding("rules files", "oracle", "differs", "the file means something else",
                             str(second), str(numbers)))  # fmt: skip
    try:
        query = saved.to_sql("data", dialect="duckdb")
    except StairError:
        result.count("rules files", "sql", "refused")
        return
    try:
        found = connection.sql(query).to_arrow_table()
    except duckdb.Error:
        result.count("rules files", "sql", "loud")
        return
    result.count("rules files", "sql", "compared")
    at = place_of_numbers(found.column_names)
    got = [n or 0 for n in found.column(at).to_pylist()]
    if got != numbers:
        result.found(Finding("rules files", "sql", "differs", "SQL differs from apply",
                             str(numbers), str(got)))  # fmt: skip


def run(n: int, seed: int = 0) -> tuple[Result, list[tuple[Finding, str]]]:
    """So many damaged files: the tallies, and each kind of finding with its file."""
    files, table = seeds(), small_table()
    frame = from_object(table)
    total = Result()
    kept: list[tuple[Finding, str]] = []
    import pyarrow as pa

    arrow = pa.table({name: pa.array(array, from_pandas=True) for name, array in table.items()})
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("given", arrow)
        connection.execute("CREATE TABLE data AS SELECT * FROM given")
        for number in range(n):
            rng = np.random.default_rng([seed, number, 7])
            text = damaged(files[int(rng.integers(len(files)))], rng)
            result = look_at(text, frame, connection)
            total.count("rules files", "all", "files")
            total.tallies.update(result.tallies)
            for finding in result.findings:
                if all(known.key != finding.key for known, _ in kept):
                    shown = text.decode("latin-1") if isinstance(text, bytes) else text
                    kept.append((finding, shown))
    return total, kept
