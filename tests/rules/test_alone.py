"""What sets a flagged row apart that no rule covers: what other flagged rows share, before names
that hardly any row has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from command import run
from stair.apply import Place, Truth, apply_to, explain_rows
from stair.export.json import from_json
from stair.rules import drawn
from stair.rules.alone import reference_of
from stair.rules.drawn import Drawn, drawn_from
from stair.rules.schema import Field, Values
from strategies import examples


def bookings(n: int = 6000, seed: int = 0) -> dict[str, Any]:
    """Hotel bookings. Two kinds are flagged: many long and early ones, which a rule finds, and 68
    of guests from China who pay cash. Names are nearly unique, and few bookings share a network."""
    random = np.random.default_rng(seed)
    countries = ["PT", "GB", "FR", "ES", "DE", "CN", "IT", "US"]
    table: dict[str, Any] = {
        "guest": [f"{a}. {b}" for a, b in zip(
            random.choice([*"ABCDEFGHIJKLMNOPQRSTUVWXYZ"], n),
            random.choice([f"name{k}" for k in range(1500)], n), strict=True)],
        "ip": [".".join(map(str, four)) for four in random.integers(1, 220, (n, 4))],
        "country": random.choice(countries, n, p=[.3, .15, .15, .1, .1, .1, .05, .05]),
        "payment": random.choice(["card", "transfer", "cash"], n, p=[.6, .2, .2]),
        "nights": random.poisson(3, n) + 1,
        "lead_days": random.exponential(60, n).round(),
        "price": random.lognormal(4.5, 0.4, n).round(2),
        "adults": random.integers(1, 4, n),
    }  # fmt: skip
    flagged = np.zeros(n, dtype=np.int64)
    flagged[:500] = 1
    table["nights"][:500] = 15 + random.poisson(3, 500)
    cash = slice(500, 568)
    table["country"][cash], table["payment"][cash] = "CN", "cash"
    flagged[cash] = 1
    # Those that are let through.
    pair = np.flatnonzero((table["country"] == "CN") & (table["payment"] == "cash"))
    table["payment"][pair[(flagged[pair] == 0) & (random.random(len(pair)) < 0.95)]] = "card"
    return {**table, "flagged": flagged}


def _write(table: dict[str, Any], path: Path) -> Path:
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_row_by_itself_is_told_what_all_of_its_kind_share(tmp_path: Path) -> None:
    """Of 68 flagged bookings that no rule covered, `explain --uncovered` said of one "ip in
    12.34.0.0/16 (true of 1 flagged row and no other)" and of another the guest's name, where
    country = CN and payment = cash was true of all of them."""
    file = _write(bookings(), tmp_path / "bookings.csv")
    rules = tmp_path / "rules.json"
    run("summarize", file, "--label", "flagged", "--min-score", "0.85", "--validate", "0",
        "--json", rules, "--quiet")  # fmt: skip
    found = run(
        "explain", rules, file, "--label", "flagged", "--uncovered", "--json", "-", "--quiet"
    )
    rows = json.loads(found.stdout)["rows"]
    assert len(rows) >= 60
    of_kind = [row["own"] for row in rows if 500 < row["row"] <= 568]
    assert len(of_kind) >= 60
    for own in of_kind:
        assert sorted(own["clauses"]) == ["country = CN", "payment = cash"]
        assert own["flagged"] >= 68
    for row in rows:
        assert not [c for c in row["own"]["clauses"] if "ip" in c or "guest" in c], row["words"]


@pytest.mark.parametrize("most", [100_000, 50])
def test_reasons_are_the_same_in_memory_and_in_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """`apply --reasons --label` left flagged rows that no rule covers without a rule of their own;
    where rows are many, those that one is held against are drawn, and the same ones everywhere."""
    monkeypatch.setattr(drawn, "MOST_ROWS", most)
    monkeypatch.setattr("stair.data.csv_plain.FEWEST_AT_ONCE", 1)
    monkeypatch.setattr("stair.data.reading.AT_ONCE", 700)
    table = bookings(3000)
    file, out = _write(table, tmp_path / "bookings.csv"), tmp_path / "out.jsonl"
    summary = stair.summarize(file, "flagged", min_score=0.85, validate=0)
    saved = from_json(summary.to_json())
    apply_to(saved, Place(file), out, truth=Truth("flagged"), reasons=True, say=lambda _: None)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    flagged = np.flatnonzero(table["flagged"]).tolist()
    in_memory = summary.reasons()
    assert [rows[k]["stair_reason"] for k in flagged] == in_memory.words
    assert [json.loads(rows[k]["stair_reason_json"]) for k in flagged] == [
        reason.to_dict() for reason in in_memory
    ]
    own = [reason.own for reason in in_memory if reason.rule is None]
    assert len(own) >= 60
    assert all(each is not None and each.is_drawn == (most == 50) for each in own)
    explained = explain_rows(saved, Place(file), truth=Truth("flagged"), uncovered=True,
                             say=lambda _: None)  # fmt: skip
    assert [each.words for each in explained] == [
        each.words for each in in_memory if each.rule is None
    ]


FIELDS = (Field("x", "number", "x"), Field("c", "category", "c"), Field("t", "text", "t"))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.5, 9.0, np.nan]), st.sampled_from(["a", "b", None]),
                  st.booleans()),
        min_size=1, max_size=60,
    ),
    st.integers(1, 20),
    st.integers(1, 15),
)  # fmt: skip
def test_rows_drawn_in_parts_are_those_drawn_at_once(
    rows: list[tuple[float, str | None, bool]], most: int, size: int
) -> None:
    x, c, flags = (list(column) for column in zip(*rows, strict=True))
    text = np.array([None if v is None else f"about {v}" for v in c], dtype=object)
    values = Values({"x": np.array(x), "c": np.array(c, dtype=object), "t": text}, len(rows))
    flagged = np.array(flags)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawn, "MOST_ROWS", most)
        whole = drawn_from(FIELDS, values, flagged)
        parts, other = Drawn(FIELDS), Drawn(FIELDS)
        for start in range(0, len(rows), size):
            here = np.arange(start, min(start + size, len(rows)))
            mine = parts if (start // size) % 2 else other
            mine.draw(flagged[here], here.astype(np.uint64), np.ones(len(here), np.bool_),
                      values.take(here).take)  # fmt: skip
        parts.merge(other)
    assert parts.numbers.tolist() == whole.numbers.tolist()
    assert parts.counts.tolist() == whole.counts.tolist() == [flags.count(False), flags.count(True)]
    assert parts.is_flagged.tolist() == whole.is_flagged.tolist()
    assert parts.values is not None and whole.values is not None
    for name in whole.values:
        assert list(map(repr, parts.values[name])) == list(map(repr, whole.values[name]))
    for side in (0, 1):
        drawn_here = int((whole.is_flagged == side).sum())
        assert drawn_here == min(most, flags.count(bool(side)))


def test_a_name_that_hardly_any_row_has_is_taken_where_nothing_else_tells() -> None:
    """And then only if most rows have names that others have, too."""
    random = np.random.default_rng(0)
    n = 400
    flagged = np.arange(n) < 20
    fields = (Field("city", "category", "city"), Field("guest", "category", "guest"),
              Field("x", "number", "x"))  # fmt: skip
    city = random.choice(["Rome", "Oslo"], n).astype(object)
    city[0] = "Nowhere"
    values = Values({"city": city, "guest": np.array([f"g{k}" for k in range(n)], dtype=object),
                     "x": random.integers(0, 2, n).astype(float)}, n)  # fmt: skip
    own = reference_of(fields, values, flagged).own(fields, values, 0)
    assert str(own) == "city = Nowhere" and own.is_apart and own.flagged == 1
    values["x"][:10] = 7.0  # as has another nine, and no inlier
    own = reference_of(fields, values, flagged).own(fields, values, 0)
    assert own.flagged == 10 and [c.feature for c in own.clauses] == ["x"]
    own = reference_of(fields, values, flagged).own(fields, values, 15)
    assert not own.is_apart and "guest" not in str(own)


def test_one_of_many_codes_and_one_of_many_hours_set_no_row_apart() -> None:
    """A row flagged by chance was told "by itself: drg = I02A and hour = 10": each of 72 codes is
    a rare one."""
    random = np.random.default_rng(1)
    n = 3000
    flagged = np.arange(n) < 20
    fields = (Field("drg", "category", "drg"), Field("hour", "number", "hour", type="whole"))
    codes = np.array([f"{k:02}A" for k in range(72)], dtype=object)
    values = Values({"drg": random.choice(codes, n), "hour": random.integers(0, 24, n)}, n)
    reference = reference_of(fields, values, flagged)
    assert sum(reference.own(fields, values, row).is_apart for row in range(20)) <= 2
    values["drg"][0] = "R2"  # of a few inliers alone
    values["drg"][100:104] = "R2"
    own = reference_of(fields, values, flagged).own(fields, values, 0)
    assert "drg = R2" in str(own) and own.is_apart
