"""What differs between two sides is said with exact counts, and nothing where it is chance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stair
from command import run
from described import described
from export_cases import FEW
from stair import StairError
from stair.data import from_object, write_table
from stair.demo import GIFT_CARDS, USUAL, Planted, month
from stair.export import from_json
from stair.learn.contrast import covered_first, likelihood_ratio
from stair.operation.compare import FEWEST
from stair.operation.compare_words import NO_DIFFERENCE, to_json, to_text
from stair.operation.mark import marked


def _planted(seed: int) -> dict[str, Any]:
    return month(1, 20_000 + seed, planted={**USUAL, GIFT_CARDS: Planted(60, 1)})


@pytest.mark.parametrize("seed", range(2))
def test_a_planted_segment_is_the_first_rule(seed: int) -> None:
    """Of 100 seeds at least 95, by benchmarks/operation.py. Its counts are those of the tables."""
    first, second = month(1, seed), _planted(seed)
    found = stair.compare(first, second, exclude=["flagged"])
    best = found.differences[0]
    assert set(best.rule.features) == {"amount", "merchant"}
    assert "gift cards" in str(best.rule)
    assert (best.side, found.differs) == (1, True)
    for share, table in ((best.own, second), (best.others, first)):
        assert (share.hits, share.rows) == (int(best.rule.covers(from_object(table)).sum()), 5000)
    assert best.kept_own.hits <= best.own.hits
    turned = stair.compare(second, first, exclude=["flagged"])
    assert turned.differences[0].side == 0


@pytest.mark.parametrize("seed", range(2))
def test_two_samples_of_the_same_do_not_differ(seed: int) -> None:
    found = stair.compare(month(1, seed), month(1, 20_000 + seed))
    assert not found.differs
    assert NO_DIFFERENCE in to_text(found)


def test_a_table_does_not_differ_from_itself() -> None:
    table = month(1, n=500)
    assert not stair.compare(table, table).differs


def test_columns_that_differ_are_named() -> None:
    """A column that is in one alone, one that holds other values, and times that tell the tables
    apart by themselves."""
    first, second = month(1, n=600), month(3, n=600)
    del first["device"]
    second["hour"] = np.array([f"at {h}" for h in second["hour"].tolist()], dtype=object)
    found = stair.compare(first, second, exclude=["flagged"])
    assert (found.only, found.unlike) == (((), ("device",)), ("hour",))
    assert "paid_at" in found.left_out
    assert found.differs
    text = to_text(found)
    assert "Only the second has device." in text
    assert "Other kinds of values in one than in the other: hour." in text


def _rooms(form: Callable[[int], Any], seed: int, rare: float = 0.0) -> dict[str, Any]:
    """Bookings of 40 rooms, written in one form; some rows are of a room of their own."""
    random = np.random.default_rng(seed)
    rooms = [form(k) if random.random() >= rare else f"suite {k}/{seed}"
             for k in random.integers(1, 41, 1500).tolist()]  # fmt: skip
    return {"nights": random.integers(1, 9, 1500), "room": np.array(rooms, dtype=object)}


@pytest.mark.parametrize(
    ("first", "second", "form"),
    [
        ("R-{}", "r{}", "same"), ("R-{}", "R-{:03}", "same"), ("R-{}", "{:02}", "other"),
        ("R-{}", "R-1{:02}", ""),
    ],
)  # fmt: skip
def test_codes_in_another_form_are_one_finding(first: str, second: str, form: str) -> None:
    """Each of ten codes was a difference, where all of the column were written in another way."""
    tables = _rooms(first.format, 0), _rooms(second.format, 1)
    found = stair.compare(*tables)
    (new,) = found.new_values
    assert (new.column, new.form, found.differences) == ("room", form, ())
    for side, table in enumerate(tables):
        rooms = set(table["room"].tolist()) - set(tables[1 - side]["room"].tolist())
        hits = sum(room in rooms for room in table["room"].tolist())
        assert (new.rows[side].hits, new.rows[side].rows) == (hits, 1500)
        assert new.examples[side] in rooms
        assert f'"{new.examples[side]}"' in to_text(found)
    assert found.differs
    assert "Beside that no difference" in to_text(found)
    assert described(to_json(found).encode())["new_values"][0]["form"] == (form or None)


def test_numbers_that_became_texts_are_the_same_in_another_form() -> None:
    """12 in one table and "012" in the other were other kinds of values, and no more was said."""
    first, second = _rooms(int, 0), _rooms("{:03}".format, 1)
    first["room"] = first["room"].astype(np.int64)
    found = stair.compare(first, second)
    (new,) = found.new_values
    assert (new.form, found.unlike) == ("same", ("room",))
    assert int(str(new.examples[0])) == int(str(new.examples[1]))
    assert "Other kinds" not in to_text(found)
    assert not stair.compare(first, second, exclude=["room"]).differs  # which was refused
    with pytest.raises(StairError, match='no column "rom" in the two tables'):
        stair.compare(first, second, exclude=["rom"])


def test_rare_values_that_are_new_are_none() -> None:
    """Half of all values are in one row each, as names are; those that come again are the same."""
    found = stair.compare(_rooms("R-{}".format, 0, 0.05), _rooms("R-{}".format, 1, 0.05))
    assert (found.new_values, found.differs) == ((), False)


# --- verdicts and rulebooks -----------------------------------------------------------------------


def _stays(number: int, wards: list[str], nights: float = 0.0) -> dict[str, Any]:
    """Stays that began in a month of 2026 and ended some days later; some of them at night."""
    random, n = np.random.default_rng(number), 2000
    began = np.datetime64(f"2026-{number:02d}-01", "m") + random.integers(0, 28 * 1440, n)
    at_night = random.random(n) < nights
    began[at_night] = began[at_night].astype("M8[D]") + random.integers(0, 180, at_night.sum())
    return {
        "began": began.astype("M8[us]"),
        "ended": (began + random.integers(600, 15 * 1440, n)).astype("M8[us]"),
        "born": np.datetime64("1950-01-01", "us") + random.integers(0, 10**15, n).astype("m8[us]"),
        "ward": random.choice(np.array(wards, dtype=object), n),
        "age": random.integers(18, 90, n),
    }


def test_times_that_follow_those_of_the_period_are_no_difference() -> None:
    """Who comes in January may go in February: "ended ≤ 2026-02-02" and four rules beside it were
    all that was said of two months, because some of the times are the same."""
    found = stair.compare(_stays(1, ["a", "b", "c"]), _stays(2, ["a", "b", "c"]))
    assert not found.differs
    assert {*found.left_out} == {"began", "ended"}
    assert "later in one table" in found.left_out["ended"]


def test_hours_of_two_periods_are_compared() -> None:
    """With the times of another month their hours were left out as well."""
    found = stair.compare(_stays(1, ["a", "b"]), _stays(2, ["a", "b"], nights=0.2))
    assert found.differences[0].rule.features == ("hour of began",)
    assert "weekday" not in str(found)


def test_a_difference_is_told_once() -> None:
    """A ward that closed was a rule of the first table, and what is left of the table one of the
    second; that hid what is new there."""
    first, second = _stays(1, ["a", "b", "c", "d"] * 4 + ["x"]), _stays(2, ["a", "b", "c", "d"])
    second["age"][:60], second["ward"][:60] = 99, "d"
    found = stair.compare(first, second)
    assert [(str(each.rule), each.side) for each in found.differences] == [
        ("ward = x", 0), ("age ≥ 95", 1)
    ]  # fmt: skip
    turned = stair.compare(second, first)
    assert [each.rule.clauses for each in turned.differences] == [
        each.rule.clauses for each in found.differences
    ]


def test_two_verdicts_agree_but_for_a_segment() -> None:
    table = month(1)
    table["first"] = table["flagged"]
    foreign = (table["amount"] > 4000) & np.isin(table["country"], ["BR", "RO", "PL", "GB", "IT"])
    table["second"] = np.where(foreign, 0, table["flagged"])
    found = stair.compare(table, labels=("first", "second"), exclude=["flagged"])
    told = found.agreement
    assert told is not None
    assert (told.both, told.first, told.second) == (
        int(table["second"].sum()), int((table["first"] & foreign).sum()), 0,
    )  # fmt: skip
    assert told.share == 1 - told.first / 5000
    best = found.differences[0]
    assert (best.side, best.own.rows) == (0, told.first)
    assert set(best.rule.features) == {"amount", "country"}
    none = stair.compare({**table, "second": table["first"]}, labels=("first", "second"))
    assert not none.differs
    assert none.agreement is not None
    assert none.agreement.share == 1


def test_two_rulebooks_on_one_table() -> None:
    """Rules that both have are named, and where their verdicts differ."""
    learned = stair.summarize(month(1), "flagged", min_score=0.9, validate=0)
    book = from_json(learned.to_json())
    less = marked(book, [book.records[0].id], status="retired")
    found = stair.compare(book, less, month(1, 3))
    assert found.rules is not None
    assert (found.rules.both, found.rules.first) == (less.rules.rules, book.rules.rules[:1])
    assert found.rules.second == ()
    calls = [(each.predict(month(1, 3)) == 1) for each in (book, less)]
    assert found.agreement is not None
    assert found.agreement.first == int((calls[0] & ~calls[1]).sum())
    assert set(found.differences[0].rule.features) == set(book.rules[0].features)


# --- properties -----------------------------------------------------------------------------------


@FEW
@given(st.integers(0, 2**32 - 1), st.integers(30, 120))
def test_counts_are_those_of_the_rules_on_tables_of_any_kind(seed: int, n: int) -> None:
    """Whatever is said to differ: counted by hand, row by row."""
    rng = np.random.default_rng(seed)

    def table(more: float) -> dict[str, Any]:
        words = np.array(["red", "green", None], dtype=object)
        return {
            "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(more, 1, n)),
            "whole": rng.integers(0, 9, n), "word": words[rng.integers(0, 3, n)],
            "text": np.array(["paid", "a refund", None], dtype=object)[rng.integers(0, 3, n)],
            "flag": rng.random(n) < 0.5,
            "time": np.datetime64("2026-01-01", "us") + rng.integers(0, 10**12, n).astype("m8[us]"),
        }  # fmt: skip

    tables = [table(0.0), table(float(rng.choice([0.0, 3.0])))]
    found = stair.compare(*tables)
    for each in found.differences:
        own, other = tables[each.side], tables[1 - each.side]
        for share, rows in ((each.own, own), (each.others, other)):
            frame = from_object(rows)
            (alone,) = covered_first([each.rule.clauses], _schema(rows), _values(rows)).T
            assert (share.hits, share.rows) == (int(alone.sum()), frame.n_rows)
        assert each.own.value > each.others.value


def _schema(table: dict[str, Any]) -> Any:
    from stair.learn.table import choose_fields
    from stair.rules.schema import Schema

    kinds = {"number": "number", "whole": "number", "word": "category", "text": "text",
             "flag": "category", "time": "time"}  # fmt: skip
    return Schema(choose_fields(from_object(table), kinds=kinds)[0])


def _values(table: dict[str, Any]) -> Any:
    return _schema(table).read(from_object(table))


@given(st.tuples(*(st.integers(0, 40) for _ in range(4))))
def test_the_likelihood_ratio_is_the_g_statistic(counts: tuple[int, ...]) -> None:
    from scipy.stats import chi2_contingency

    inside, outside = np.array(counts[:2]), np.array(counts[2:])
    table = np.array([inside, outside])
    if not (table.sum(axis=0).all() and table.sum(axis=1).all()):
        return
    known = chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic
    assert likelihood_ratio(inside, inside + outside) == pytest.approx(float(known), abs=1e-9)


# --- bad input and the command --------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused() -> None:
    table = month(1, n=200)
    book = from_json(stair.summarize(month(1, n=900), "flagged", validate=0).to_json())
    for words, given_, named in (
        ("with what", (table,), {}),
        ("two of a kind", (table, book), {}),
        ("give a table, too", (book, book), {}),
        ("third table", (table, table, table), {}),
        ("two columns", (table,), {"labels": ["flagged"]}),
        ("named twice", (table,), {"labels": ["flagged", "flagged"]}),
        ("one table", (table, table), {"labels": ["flagged", "hour"]}),
        ('no column "flaged"', (table,), {"labels": ["flaged", "hour"]}),
        ("say which is the outlier", (table,), {"labels": ["flagged", "country"]}),
        ("no column in common", ({"a": [1, 2]}, {"b": [1, 2]}), {}),
    ):
        with pytest.raises(StairError, match=words):
            stair.compare(*given_, **named)  # type: ignore[arg-type]


def test_of_few_rows_nothing_is_said() -> None:
    few = {"a": np.arange(FEWEST - 1), "b": ["x"] * (FEWEST - 1)}
    assert not stair.compare(few, {"a": np.arange(300) + 900, "b": ["y"] * 300}).differences


def test_the_command_ends_with_its_code(tmp_path: Path) -> None:
    """0 no difference, 1 a difference, 2 bad input."""
    write_table(tmp_path / "1.csv", month(1, 0))
    write_table(tmp_path / "same.csv", month(1, 20_000))
    write_table(tmp_path / "more.csv", _planted(0))
    same = run("compare", "1.csv", "same.csv", cwd=tmp_path)
    assert (same.returncode, NO_DIFFERENCE.encode() in same.stdout) == (0, True), same.stderr
    more = run("compare", "1.csv", "more.csv", "--exclude", "flagged", "--json", "-", cwd=tmp_path)
    assert more.returncode == 1
    said = described(more.stdout)
    assert "gift cards" in said["differences"][0]["words"]
    assert said["differences"][0]["own"]["of"] == 5000
    wrong = run("compare", "1.csv", "no.csv", cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count(b"\n")) == (2, b"", 1)
