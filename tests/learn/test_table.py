"""Columns of every kind: how they are told apart, read, cut and left out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stair import StairError
from stair.data import from_object
from stair.learn.table import choose_fields, encode, read_to_learn
from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.columns import Categories, Times, roundest_time
from stair.rules.schema import Schema, Values


def _objects(*values: object) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


N = 60


def read(fields: Any, table: Any) -> Values:
    return read_to_learn(Schema(fields), from_object(table))


TABLE = {
    "amount": np.arange(N) / 4,
    "count": np.arange(N) % 7,
    "flag": np.arange(N) % 2 == 0,
    "country": _objects(*(["DE", "FR", None] * 20)),
    "when": np.datetime64("2024-01-01", "us") + np.arange(N).astype("timedelta64[h]"),
    "day": _objects(*(f"2024-01-{1 + k % 28:02d}" for k in range(N))),
    "note": _objects(*(f"note number {k} about a thing" for k in range(N))),
    "id": _objects(*(f"P{k}" for k in range(N))),
    "same": np.ones(N),
    "empty": np.full(N, np.nan),
    "rarely": _objects(*(["x"] * 5 + [None] * (N - 5))),
}


def test_kinds_are_told_by_what_a_column_holds() -> None:
    """Numbers, booleans, names, times, dates in text, and text; the useless ones are named."""
    fields, left_out = choose_fields(from_object(TABLE))
    assert {f.name: f.kind for f in fields} == {
        "amount": "number",
        "count": "number",
        "flag": "category",
        "country": "category",
        "when": "time",
        "hour of when": "number",
        "weekday of when": "category",
        "day": "time",
        "weekday of day": "category",
        "note": "text",
        "rarely": "category",
    }
    assert left_out == {
        "id": "all values differ",
        "same": "all values are the same",
        "empty": "all values are missing",
    }


@given(
    st.integers(30, 400),
    st.floats(0, 0.5),
    st.sets(st.characters().filter(lambda letter: not letter.isspace()), min_size=2, max_size=30),
    st.integers(0, 2**32 - 1),
)
def test_tokens_that_hardly_repeat_are_left_out(
    n: int, share: float, alphabet: set[str], seed: int
) -> None:
    """One order that stood twice in the file made `order_id in {… 199 more}` the rule, with F1 1.00
    and length 1: only a column without any repeat was taken for an identifier."""
    random = np.random.default_rng(seed)
    letters = sorted(alphabet)
    tokens = ["id" + "".join(letters[k] for k in random.integers(len(letters), size=24))
              for _ in range(n)]  # fmt: skip
    first = list(tokens)  # of a copy of a copy of a copy one may be frequent, and worth a name
    for row in random.permutation(n)[: int(share * n)]:
        tokens[row] = first[random.integers(n)]
    table = {"x": np.arange(n) / 2, "token": _objects(*tokens)}
    fields, left_out = choose_fields(from_object(table))
    assert [f.name for f in fields] == ["x"]
    assert left_out["token"].startswith(("all values differ", "values hardly repeat"))
    fields, _ = choose_fields(from_object(table), kinds={"token": "category"})
    assert [f.name for f in fields] == ["x", "token"]


def _whole(low: int, high: int, n: int, random: np.random.Generator) -> np.ndarray:
    return random.integers(low, high, n)


MEASURED = {
    "amount in cents": lambda n, r: np.round(np.exp(r.normal(8, 1.5, n))).astype(int),
    "duration": lambda n, r: np.round(np.exp(r.normal(14, 2, n))).astype(int),
    "bytes": lambda n, r: np.round(np.exp(r.normal(10, 3, n))).astype(int),
    "reading": lambda n, r: _whole(0, 3 * n, n, r),
    "offset": lambda n, r: _whole(-(10**6), 10**6, n, r),
    "seen": lambda n, r: np.sort(_whole(1_600_000_000, 1_700_000_000, n, r)),
    "seen in ms": lambda n, r: _whole(1_600_000_000_000, 1_700_000_000_000, n, r),
    "price": lambda n, r: r.normal(100, 10, n),
    "rounded": lambda n, r: np.round(np.sort(r.normal(10**6, 10**5, n))).astype(int),
    "number of items": lambda n, r: r.poisson(3, n),
}


@given(st.sampled_from(sorted(MEASURED)), st.integers(30, 3000), st.integers(0, 2**32 - 1))
def test_measured_numbers_are_never_taken_for_keys(name: str, n: int, seed: int) -> None:
    """Amounts in cents, durations in microseconds, sizes in bytes: they hardly repeat, and are the
    very thing that rules speak of. Sorted or not."""
    column = MEASURED[name](n, np.random.default_rng(seed))
    fields, _ = choose_fields(from_object({name: column, "other": np.arange(n) / 2}))
    assert name in [f.name for f in fields]


KEYS = {
    "k": lambda n, r: np.arange(n) + int(r.integers(1, 10**6)),
    "shuffled": lambda n, r: r.permutation(n) * 2,
    "with gaps": lambda n, r: np.cumsum(r.integers(1, 4, n)),
    "admission_id": lambda n, r: r.integers(10**4, 10**9, n),
    "customerId": lambda n, r: r.integers(0, 10**6, n),
    "Invoice No.": lambda n, r: r.permutation(10**6)[:n] + 10**5,
    "some ids": lambda n, r: np.where(r.random(n) < 0.1, np.nan, np.arange(n) + 7),
    "pan": lambda n, r: r.integers(4 * 10**15, 6 * 10**15, n),
    "h": lambda n, r: r.integers(0, 2**64, n, dtype=np.uint64),
}


@given(
    st.sampled_from(sorted(KEYS)), st.integers(60, 3000), st.floats(0, 0.1),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_keys_that_are_numbers_are_left_out(name: str, n: int, share: float, seed: int) -> None:
    """`admission_id > 39204.5` was a rule. A tenth of the rows may stand twice in the file."""
    random = np.random.default_rng(seed)
    column = KEYS[name](n, random)
    share = 0 if name in ("k", "shuffled", "with gaps", "some ids") else share
    rows = random.permutation(n)[: int(share * n)]
    column[rows] = column[random.integers(0, n, len(rows))]
    table = {name: column, "other": np.arange(n) / 2}
    fields, left_out = choose_fields(from_object(table))
    assert [f.name for f in fields] == ["other"]
    assert left_out[name].startswith(("a key: all values differ", "a key: values hardly repeat"))
    fields, _ = choose_fields(from_object(table), kinds={name: "number"})
    assert [f.name for f in fields] == [name, "other"]


def test_a_few_frequent_names_keep_a_column() -> None:
    """Cities with a long tail, where most rows have a name that is worth a rule; and names that
    hardly ever come again, but for three, which were the whole answer."""
    cities = ["Oslo", "Lima", "Rome"] * 30 + [f"village {k}" for k in range(60)]
    fields, _ = choose_fields(from_object({"city": _objects(*cities)}))
    assert [f.name for f in fields] == ["city"]
    for n_often, kept in ((11, ["x", "name"]), (9, ["x"])):
        often = [f"host {k}" for k in range(3) for _ in range(n_often)]
        rarely = [f"guest {k}" for k in range(800)]
        table = {"x": np.arange(len(often) + 800) / 2, "name": _objects(*often, *rarely)}
        fields, _ = choose_fields(from_object(table))
        assert [f.name for f in fields] == kept


def test_what_a_person_says_comes_first() -> None:
    """include, exclude and kinds override the guess; a column that was named is never dropped."""
    fields, left_out = choose_fields(
        from_object(TABLE), kinds={"count": "category", "id": "category"}
    )
    kinds = {f.name: f.kind for f in fields}
    assert kinds["count"] == kinds["id"] == "category"
    fields, left_out = choose_fields(from_object(TABLE), include=["same", "amount"])
    assert [f.name for f in fields] == ["amount", "same"]
    fields, left_out = choose_fields(from_object(TABLE), exclude=["amount"])
    assert left_out["amount"] == "excluded"
    assert "amount" not in [f.name for f in fields]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": ["amuont"]}, 'no column "amuont" in the data. Did you mean "amount"'),
        ({"exclude": ["nothing"]}, 'no column "nothing" in the data'),
        ({"kinds": {"count": "kategory"}}, '"kategory" is no kind for "count"'),
        ({"include": ["id"], "exclude": ["id"]}, "no column is left"),
    ],
)
def test_wrong_names_get_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(StairError, match=message):
        choose_fields(from_object(TABLE), **options)  # type: ignore[arg-type]


def test_hour_and_weekday_when_asked() -> None:
    """2024-01-01 was a Monday."""
    fields, _ = choose_fields(from_object({"when": TABLE["when"]}), time_parts=True)
    values = read(fields, {"when": TABLE["when"]})
    assert [f.name for f in fields] == ["when", "hour of when", "weekday of when"]
    assert values["hour of when"][:26].tolist() == [float(h) for h in [*range(24), 0, 1]]
    assert values["weekday of when"][[0, 23, 24, 59]].tolist() == [
        "Monday", "Monday", "Tuesday", "Wednesday",
    ]  # fmt: skip


def test_infinite_numbers_are_values() -> None:
    """They were refused. Engines reckon with the largest numbers that there are in their place."""
    values = np.array([1.0, math.inf, 2.0, -math.inf])
    fields, _ = choose_fields(from_object({"amount": values}))
    found = read(fields, {"amount": values})
    assert found["amount"].tolist() == values.tolist()
    table = encode(Schema(fields), found, np.array([0, 1, 0, 0], np.int32))
    assert np.isfinite(table.codes).all()
    assert table.codes[:, 0].argsort().tolist() == [3, 0, 2, 1]


def test_kinds_that_do_not_fit_are_refused() -> None:
    fields, _ = choose_fields(from_object(TABLE), kinds={"country": "number"}, include=["country"])
    with pytest.raises(StairError, match="should have numbers, but has 'DE'"):
        read(fields, TABLE)
    with pytest.raises(StairError, match="should have times like"):
        choose_fields(from_object(TABLE), kinds={"country": "time"}, include=["country"])


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**14))
def test_a_cut_between_times_lies_between_them(below: int, width: int) -> None:
    at = int(roundest_time(below, below + width).astype(np.int64))
    assert below <= at < below + width


@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        ("2023-06-01", "2024-06-01", "2024-01-01T00:00"),
        ("2024-02-10", "2024-03-20", "2024-03-01T00:00"),
        ("2024-02-10T11:00", "2024-02-11T13:00", "2024-02-11T00:00"),
        ("2024-02-10T11:20", "2024-02-10T13:10", "2024-02-10T12:00"),
    ],
)
def test_cuts_between_times_are_round(below: str, above: str, expected: str) -> None:
    """A year's start before a month's, a month's before a day's, a day's before an hour's."""
    a, b = (int(np.datetime64(t, "us").astype(np.int64)) for t in (below, above))
    assert roundest_time(a, b) == np.datetime64(expected, "us")


def test_the_shorter_list_of_categories_is_written() -> None:
    """The other side is negated, so a value that was never seen is there."""
    column = Categories("c", 0, ("a", "b", "c", "d"))
    left, right = column.divide([0], [1, 2, 3], None)
    assert (left, right) == (Among("c", ("a",)), Among("c", ("a",), negated=True))
    left, right = column.divide([0, 1, 2], [3], True)
    assert left == Among("c", ("d",), negated=True, missing=True)
    assert right.covers(_objects("d", "never seen", None)).tolist() == [True, False, False]
    assert left.covers(_objects("d", "never seen", None)).tolist() == [False, True, True]


def test_booleans_read_as_true_and_false() -> None:
    left, right = Categories("flag", 0, (False, True)).divide([0], [1], None)
    assert [str(left), str(right)] == ["flag = False", "flag = True"]
    assert right.covers(np.array([True, False])).tolist() == [True, False]


def test_missing_alone_is_a_side_of_its_own() -> None:
    left, right = Categories("c", 0, ("a", "b")).divide([0, 1], [], False)
    assert [str(left), str(right)] == ["c is not missing", "c is missing"]
    left, right = Times("t", 0).cut(5.0, math.inf, False)
    assert [str(left), str(right)] == ["t is not missing", "t is missing"]
    times = np.array(["NaT", "2024-01-01"], dtype="datetime64[us]")
    assert right.covers(times).tolist() == [True, False]


CATEGORY = st.builds(
    Among,
    st.just("c"),
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=3).map(tuple),
    st.booleans(),
    st.booleans(),
)
TIMES = np.array(["NaT", "2024-01-01", "2024-01-02", "2024-06-01"], dtype="datetime64[us]")
TIME = st.sampled_from(TIMES[1:].tolist()).map(lambda t: np.datetime64(t, "us"))
PERIOD = st.one_of(
    st.builds(lambda a, m: Period("t", after=a, missing=m), TIME, st.booleans()),
    st.builds(lambda u, m: Period("t", until=u, missing=m), TIME, st.booleans()),
    st.builds(lambda m: Period("t", missing=m), st.booleans()),
)


@given(CATEGORY, CATEGORY)
def test_two_clauses_on_categories_become_one(first: Among, second: Among) -> None:
    values = _objects("a", "b", "c", "never seen", None)
    both = (first & second).covers(values)
    assert (both == (first.covers(values) & second.covers(values))).all()


@given(PERIOD, PERIOD)
def test_two_clauses_on_times_become_one(first: Period, second: Period) -> None:
    both = (first & second).covers(TIMES)
    assert (both == (first.covers(TIMES) & second.covers(TIMES))).all()


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        (Among("country", ("DE",)), "country = DE"),
        (Among("country", ("DE", "FR"), True), "country not in {DE, FR}"),
        (Among("country", ("DE",), True, True), "country ≠ DE or missing"),
        (Among("c", ("x y", "a,b")), 'c in {"a,b", "x y"}'),
        (Among("c", tuple("abcdefghij")), "c in {a, b, c, d, e, f, … 4 more}"),
        (Among("zip", (10, 9)), "zip in {9, 10}"),
        (Mentions("note", "refund"), 'note mentions "refund"'),
        (Mentions("note", "refund", False), 'note does not mention "refund"'),
        (
            Period("day", np.datetime64("2024-01-05"), whole_days=True),
            "day > 2024-01-05",
        ),
        (Period("t", until=np.datetime64("2024-01-05T10:00", "us")), "t ≤ 2024-01-05 10:00"),
    ],
)
def test_how_clauses_read(clause: object, words: str) -> None:
    assert str(clause) == words


def test_a_text_mentions_whatever_the_case_of_its_ascii_letters() -> None:
    """Only A to Z are folded: that is what every database can do alike."""
    clause = Mentions("note", "Été refund")
    texts = _objects("a REFUND", "Été REFUND now", "été refund", None)
    assert clause.covers(texts).tolist() == [False, True, False, False]


def test_terms_are_chosen_by_what_tells_the_classes_apart() -> None:
    """A cap on the terms keeps the telling ones; common words of both classes go first."""
    texts = [f"the order number {k} was {'refunded' if k % 5 == 0 else 'paid'}" for k in range(N)]
    labels = (np.arange(N) % 5 == 0).astype(np.int32)
    fields, _ = choose_fields(from_object({"note": _objects(*texts)}))
    table = encode(Schema(fields), read(fields, {"note": _objects(*texts)}), labels, max_terms=2)
    assert {column.term for column in table.columns} == {"paid", "refunded"}  # type: ignore[union-attr]
    assert {column.attribute for column in table.columns} == {0}


def test_numbers_as_categories_keep_their_type() -> None:
    """A zip code read as 1.0 because of a missing value is still the whole number 1."""
    raw = {"zip": np.array([1.0, 2.0, math.nan] * 10)}
    fields, _ = choose_fields(from_object(raw), kinds={"zip": "category"})
    values = read(fields, raw)["zip"]
    assert values[:3].tolist() == [1, 2, None]
    assert Interval("zip", low=1.0).covers(raw["zip"])[:3].tolist() == [False, True, False]
