"""Numbers that people read: whole ones as such, thousands apart, scores that are never rounded to
what they are not, and infinite values, which are values like others."""

from __future__ import annotations

import json
import math
import re
import sqlite3
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import stair
from stair.demo import payments
from stair.export.json import from_json, to_json
from stair.export.pandas import pandas_labels
from stair.export.polars import polars_label
from stair.export.python import to_python
from stair.export.text import percent
from stair.rules.clauses import Among, Interval, clause_in_words, reason, separated
from stair.rules.columns import Numbers
from stair.rules.figures import floor_in_words, score_in_words
from stair.rules.rule_set import Rule
from strategies import examples

METHODS = ("distilled", "stair", "refined", "local", "id3", "cart")
FORMS = {
    r"x = (\S+)": lambda v, a: v == a,
    r"x is (\S+) to (\S+)": lambda v, a, b: a <= v <= b,
    r"x ≥ (\S+)": lambda v, a: v >= a,
    r"x > (\S+)": lambda v, a: v > a,
    r"x ≤ (\S+)": lambda v, a: v <= a,
    r"(\S+) < x ≤ (\S+)": lambda v, a, b: a < v <= b,
}


def _number(text: str) -> float:
    plain = text.replace(",", "")
    return float(plain) if re.search(r"[.en]", plain) else int(plain)


def _means(words: str, value: float) -> bool:
    """What a reader takes from the words of a clause."""
    if words in ("x is not missing", "x is impossible"):
        return words == "x is not missing"
    for form, meant in FORMS.items():
        if found := re.fullmatch(form, words):
            return bool(meant(value, *map(_number, found.groups())))
    raise AssertionError(words)


BOUNDS = st.one_of(
    st.integers(-12, 12), st.integers(-(2**63), 2**64 - 1), st.sampled_from([-math.inf, math.inf]),
    st.floats(-20, 20), st.floats(allow_nan=False), st.integers(9_990, 10_010),
)  # fmt: skip
WHOLES = st.one_of(st.integers(-15, 15), st.integers(9_990, 10_010), st.integers(-(2**62), 2**62))


@given(BOUNDS, BOUNDS, WHOLES)
@settings(max_examples=examples(500))
def test_whole_words_say_what_is_compared(low: float, high: float, value: int) -> None:
    """Read aloud, with thousands separated or not, a clause covers the whole numbers that it
    covers, whatever its bounds."""
    clause = Interval("x", low, high, whole=True)
    covered = bool(clause.covers(np.array([value], dtype=object))[0])
    assert _means(str(clause), value) is covered
    assert _means(clause_in_words(clause), value) is covered


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        (Interval("port", 443, 444, whole=True), "port = 444"),
        (Interval("port", 443.5, 444.5, whole=True), "port = 444"),
        (Interval("port", 443.5, 444.5), "443.5 < port ≤ 444.5"),
        (Interval("x", 4, whole=True), "x ≥ 5"),
        (Interval("x", 0, whole=True), "x ≥ 1"),
        (Interval("x", high=4, whole=True), "x ≤ 4"),
        (Interval("Dst Port", 8070, 10000, whole=True), '"Dst Port" is 8071 to 10,000'),
        (Interval("x", 2**60, whole=True), "x ≥ 1,152,921,504,606,846,977"),
        (Interval("x", 1e300, whole=True), "x > 1e+300"),
        (Interval("x", 4, 5, missing=True, whole=True), "x = 5 or missing"),
        (Interval("x", 4350.5, 2e6), "4350.5 < x ≤ 2,000,000"),
        (Interval("x", -12345.678), "x > -12,345.678"),
        (Among("code", (12000, 15000)), "code in {12000, 15000}"),
    ],
)
def test_words_that_a_colleague_understands_at_once(clause: Any, words: str) -> None:
    assert clause_in_words(clause) == words
    assert str(clause) == words.replace(",", "") or isinstance(clause, Among)


@given(st.floats(allow_nan=False))
def test_separated_numbers_read_back(value: float) -> None:
    """Without its commas it is the number, and four digits stay together."""
    text = separated(value)
    assert float(text.replace(",", "")) == value
    assert "," not in text or abs(value) >= 10_000


def test_or_missing_stands_in_brackets_beside_other_clauses() -> None:
    """`a or missing and b` could be read in two ways."""
    amount, country = Interval("amount", 41800.0, missing=True), Among("country", ("DE",))
    assert str(Rule((amount, country), 1)) == "(amount > 41800 or missing) and country = DE"
    assert Rule((country, amount), 1).in_words() == "country = DE and (amount > 41,800 or missing)"
    assert str(Rule((amount,), 1)) == "amount > 41800 or missing"


def test_a_fraction_is_not_explained_by_whole_numbers() -> None:
    """443.7 is above 443 and at most 444, but it is not 444."""
    clause = Interval("port", 443, 444, whole=True)
    assert reason(clause, 444.0) == "port = 444"
    assert reason(clause, 443.7) == "port 443.7 in (443, 444]"


@given(st.floats(0, 1), st.floats(0, 1))
def test_scores_stay_on_their_side(score: float, floor: float) -> None:
    """What is printed is above the floor where the score is, and 0 or 1 only where it is."""
    shown = float(score_in_words(score, floor))
    assert (shown > floor) is (score > floor)
    assert (shown < floor) is (score < floor)
    assert (shown == 1.0) is (score == 1.0)
    assert (shown == 0.0) is (score == 0.0)
    assert float(floor_in_words(floor)) == floor


@given(st.floats(0, 1))
def test_all_and_none_are_said_of_all_and_none(share: float) -> None:
    assert (percent(share) == "100%") is (share == 1.0)
    assert (percent(share) == "0%") is (share == 0.0)


# --- whole columns --------------------------------------------------------------------------------


def _planted(dtype: Any, shift: int = 0) -> tuple[dict[str, Any], NDArray[np.int64]]:
    rng = np.random.default_rng(1)
    port = rng.integers(400, 500, 800) + shift
    size = rng.integers(0, 60, 800)
    size[::7] += 3
    y = ((port == 444 + shift) | ((size > 40) & (port > 480 + shift))).astype(np.int64)
    return {"level": port.astype(dtype), "size": size.astype(np.float64)}, y


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["i8", "u2", "f8"])
def test_whole_columns_have_whole_bounds(method: str, dtype: str) -> None:
    """Integers, unsigned ones, and floats that hold whole numbers: never 443.5."""
    data, y = _planted(dtype)
    summary = stair.summarize(data, labels=y, method=method, min_score=0.95, validate=0)
    clauses = [c for rule in summary.rules for c in rule.clauses if isinstance(c, Interval)]
    assert clauses
    for clause in clauses:
        assert clause.whole
        assert all(float(b).is_integer() for b in (clause.low, clause.high) if math.isfinite(b))
    assert any("level = 444" in str(rule) for rule in summary.rules)
    again = from_json(summary.to_json() or "").rules
    assert again == summary.rules
    assert again.schema == summary.rules.schema
    np.testing.assert_array_equal(again.predict(data), summary.rules.predict(data))


@pytest.mark.parametrize(("dtype", "shift"), [("i8", 2**60), ("u8", 2**63 + 5), ("i8", -(2**61))])
def test_whole_columns_of_64_bits(dtype: str, shift: int) -> None:
    """Beyond 2**53 too, where floats are no longer exact."""
    rng = np.random.default_rng(1)
    code = [int(k) + shift for k in rng.integers(0, 40, 400)]
    y = np.array([int(v == 7 + shift) for v in code])
    data = {"amount": np.array(code, dtype=dtype)}
    for method in ("distilled", "stair"):
        summary = stair.summarize(data, labels=y, method=method, validate=0)
        assert str(summary.rules[0]) == f"amount = {7 + shift}"


def test_whole_columns_of_estimators() -> None:
    """A float array that holds whole numbers; a flag of 0 and 1 reads ≥ 1, which is right for 2."""
    X = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)
    X[:, 1] += np.linspace(0, 1, 200)
    model = stair.DistilledStair(pos_label=1).fit(X, (X[:, 0] > 0).astype(int))
    assert [str(rule) for rule in model.rules_] == ["x0 ≥ 1"]
    assert [field.type for field in model.rules_.schema.fields] == ["whole", "real"]


def test_the_hour_of_a_time_is_whole() -> None:
    times = np.datetime64("2024-01-01T00:30") + np.arange(2000) * np.timedelta64(41, "m")
    late = np.isin((times - times.astype("datetime64[D]")).astype("m8[h]").astype(int), [3, 4])
    summary = stair.summarize(
        stair.Source({"at": times, "z": np.arange(2000) % 7 + 0.5}, time_parts=True),
        labels=late.astype(int),
        validate=0,
    )
    assert '"hour of at" is 3 to 4' in str(summary.rules)


def test_fractions_are_told_where_there_were_none() -> None:
    """The words say = 444; a row with 443.7 meets them, and somebody should know."""
    data, y = _planted("i8")
    summary = stair.summarize(data, labels=y, min_score=0.95, validate=0)
    rules = from_json(to_json(summary)).rules
    new = {"level": [443.7, 444.0, math.inf, 12.5, None], "size": [1, 1, 1, 1, 1]}
    values = rules.read(new)
    said = '2 rows have values of "level" that are no whole numbers'
    assert values.fractions == {"level": 2}
    assert any(note.startswith(said) for note in values.notes)
    assert rules.predict(new).tolist()[:2] == ["outlier", "outlier"]
    assert "level 443.7 in (443, 444]" in str(rules.explain({"level": 443.7, "size": 1}))
    assert not rules.read(data).notes


def test_files_that_do_not_say_whole_are_read_as_before() -> None:
    """And a clause cannot be worded in whole numbers where the column had others."""
    summary = stair.summarize(payments(), labels="flagged", min_score=0.9, validate=0)
    document = json.loads(to_json(summary))
    clauses = [clause for rule in document["rules"] for clause in rule["clauses"]]
    (hour,) = (c for c in clauses if c["feature"] == "hour")
    assert hour.pop("whole") is True
    older = from_json(json.dumps(document)).rules
    assert "hour ≤ 4 and" in str(older)
    assert not any(c.whole for r in older for c in r.clauses if isinstance(c, Interval))
    next(c for c in clauses if c["feature"] == "amount")["whole"] = True
    with pytest.raises(stair.StairError, match="'amount' had other than whole numbers"):
        from_json(json.dumps(document))


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**5))
def test_a_whole_cut_lies_in_the_gap(below: int, width: int) -> None:
    """It divides as any cut there does, and is a whole number."""
    left, right = Numbers("x", 0, whole=True).cut(float(below), float(below + width), None)
    assert isinstance(left, Interval)
    assert isinstance(right, Interval)
    assert left.high == right.low
    assert below <= left.high < below + width
    assert float(left.high).is_integer()


# --- infinite values ------------------------------------------------------------------------------

PLACES = st.sampled_from(
    [-math.inf, math.inf, math.nan, 0.0, -1.5, 2.0, 7.0, 1e300, -1.7976931348623157e308,
     1.7976931348623157e308, 12345.0]
)  # fmt: skip


@st.composite
def _tables(draw: st.DrawFn) -> tuple[dict[str, Any], NDArray[np.int64], dict[str, Any]]:
    """A table with infinite values, labels, and new rows."""

    def columns(n: int) -> dict[str, Any]:
        lists = [draw(st.lists(PLACES, min_size=n, max_size=n)) for _ in range(2)]
        return {"x": np.array(lists[0]), "z": np.array(lists[1])}

    n = draw(st.integers(6, 40))
    data = columns(n)
    data["x"][:2], data["z"][:2] = (0.0, math.inf), (-math.inf, 2.0)
    above = draw(st.sampled_from([-1e308, 0.0, 7.0, 1e308]))
    y = (data["x"] > above).astype(np.int64)
    noise = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    y ^= noise & (data["z"] == -math.inf)
    y[:2] = (0, 1)
    return data, y, columns(draw(st.integers(1, 12)))


def _endings(rules: Any, data: dict[str, Any]) -> dict[str, list[Any]]:
    """What each ending says of the rows."""
    from stair.export import to_sql

    found: dict[str, list[Any]] = {}
    rows = [
        dict(zip(data, row, strict=True)) for row in zip(*map(list, data.values()), strict=True)
    ]
    numbers = [[None if v != v else float(v) for v in row.values()] for row in rows]
    names = ", ".join(f"{name} DOUBLE" for name in data)
    marks = ", ".join("?" * (len(data) + 1))
    for name in ("duckdb", "sqlite"):
        con: Any = duckdb.connect() if name == "duckdb" else sqlite3.connect(":memory:")
        con.execute(f"CREATE TABLE t ({names}, place INTEGER)")
        con.executemany(f"INSERT INTO t VALUES ({marks})", [[*r, k] for k, r in enumerate(numbers)])
        query = to_sql(rules, "t", name).rstrip().rstrip(";")
        answer = con.execute(f"SELECT stair_label FROM ({query}) AS s ORDER BY place").fetchall()
        found[name] = [label for (label,) in answer]
        con.close()
    space: dict[str, Any] = {"__name__": "exported"}
    exec(to_python(rules), space)
    found["python"] = [space["label"](row) for row in rows]
    found["pandas"] = pandas_labels(rules, pd.DataFrame(data)).tolist()
    found["polars"] = pl.DataFrame(data).with_columns(said=polars_label(rules))["said"].to_list()
    return found


@pytest.mark.parametrize("method", METHODS)
@given(_tables())
@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])
@pytest.mark.filterwarnings("ignore::stair.FloorNotReached")
def test_infinite_values_are_learned_from_and_exported(method: str, table: Any) -> None:
    """In training and in new data: beyond every finite bound, the same by every ending."""
    data, y, new = table
    summary = stair.summarize(data, labels=y, method=method, validate=0, positive=1)
    for clause in (c for rule in summary.rules for c in rule.clauses):
        assert isinstance(clause, Interval)
    rules = from_json(to_json(summary)).rules
    assert rules == summary.rules
    for rows in (data, new):
        expected = summary.rules.predict(rows).tolist()
        for name, found in _endings(rules, rows).items():
            assert found == expected, name
    summary.to_html()
    assert sum(each.rows for each in summary.evidence) >= 0


@pytest.mark.parametrize("method", METHODS)
def test_a_rule_for_what_is_infinite(method: str) -> None:
    """The bound between the largest finite value and infinity is a finite, short number."""
    rng = np.random.default_rng(2)
    rate = rng.lognormal(3, 1, 600)
    rate[rng.random(600) < 0.1] = math.inf
    low = rng.normal(-50, 3, 600)
    low[rng.random(600) < 0.1] = -math.inf
    y = ((rate == math.inf) | (low == -math.inf)).astype(int)
    data = {"rate": rate, "low": low}
    summary = stair.summarize(data, labels=y, method=method, min_score=0.99, validate=0)
    assert summary.score == 1.0 or method == "local"
    text = str(summary.rules)
    if method == "distilled":
        assert text.splitlines()[:2] == ["low ≤ -100 → outlier", "rate > 1000 → outlier"] or (
            text.splitlines()[:2] == ["rate > 1000 → outlier", "low ≤ -100 → outlier"]
        )
    assert "inf" not in text


def test_infinite_numbers_in_csv(tmp_path: Any) -> None:
    """inf and -Infinity are read as numbers, in files of any reader."""
    path = tmp_path / "rates.csv"
    rows = [f"{v},{int(v == 'inf')}" for v in ["1.5", "inf", "-Infinity", "2", "inf", "3"] * 20]
    path.write_text("rate,y\n" + "\n".join(rows) + "\n")
    summary = stair.summarize(path, labels="y", validate=0)
    assert str(summary.rules[0]) == "rate > 10"
    assert summary.score == 1.0


def test_infinite_values_by_engines(tmp_path: Any) -> None:
    """Engines that hold bins have one for each infinity, however rare it is."""
    rng = np.random.default_rng(5)
    n = 6_000
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n)})
    frame.loc[rng.choice(n, 40, replace=False), "x"] = math.inf
    frame.loc[rng.choice(n, 30, replace=False), "z"] = -math.inf
    frame["y"] = ((frame.x == math.inf) | (frame.z == -math.inf)).astype(int)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    for method, engine in (("stair", "duckdb"), ("distilled", "duckdb"), ("stair", "dask"),
                           ("local", "duckdb")):  # fmt: skip
        found = stair.summarize(path, labels="y", method=method, engine=engine, min_score=0.99)
        assert found.score == 1.0 or method == "local", (method, engine)
        if method != "local":
            assert (found.rules.predict(frame) == "outlier").tolist() == frame.y.tolist()
        assert not re.search("inf|e\\+30", str(found.rules))
        assert found.to_html()


def test_what_cannot_be_infinite_says_so() -> None:
    """Detectors, categories and scikit-learn's estimators get one sentence."""
    data = {"x": [1.0, math.inf, 3.0, 4.0] * 10, "z": list(range(40))}
    with pytest.raises(stair.StairError, match='"x" has infinite values, which no detector'):
        stair.summarize(data, detector="lof")
    with pytest.raises(stair.StairError, match='"x" has infinite numbers, which cannot be categ'):
        stair.summarize(data, labels=[0, 1] * 20, kinds={"x": "category"})
    with pytest.raises(ValueError, match="infinity"):
        stair.Stair().fit(np.array([[math.inf], [1.0]]), [0, 1])
