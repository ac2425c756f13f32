"""Reasons of rows: true by independent code, and the same for one row and for many."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from stair.demo import payments
from stair.errors import StairError
from stair.rules.reasons import NAMED, Reason, Reasons
from stair.rules.rule_set import Among, Interval, Mentions, Period, Rule, RuleSet, with_usual
from stair.rules.schema import Field, Schema, Values
from stair.rules.usual import FEWEST, FINE, Figure, shares_of, spread_of
from strategies import examples

FIELDS = (
    Field("amount", "number", "amount"),
    Field("wide", "number", "wide", type="whole"),
    Field("country", "category", "country"),
    Field("paid", "time", "paid"),
    Field("note", "text", "note"),
)
DAY = np.datetime64("2024-03-01", "us")
MOMENT = np.timedelta64(1, "us")
RULES = (
    Rule((Interval("amount", 5.0), Among("country", ("DE",), negated=True)), 1),
    Rule((Period("paid", after=DAY), Mentions("note", "refund")), 1),
    Rule((Interval("wide", 2**60 + 1, missing=True, whole=True),), 1),
    Rule((Among("country", (), missing=True),), 1),
)


NUMBERS = st.one_of(
    st.integers(-30, 90).map(float), st.sampled_from([-np.inf, np.inf, np.nan, 1e300, 0.1, 1e-300])
)


@st.composite
def tables(draw: Any) -> tuple[RuleSet, Values, np.ndarray[Any, Any]]:
    """Rules that know what is usual of some rows, other rows with ties, gaps and extremes, and
    which of these somebody flags."""

    def rows(n: int) -> Values:
        def of(values: list[Any]) -> list[Any]:
            return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

        objects: dict[str, Any] = {}
        for name, values in (
            ("wide", [0, 1, 2**60, 2**60 + 1, 2**60 + 2, -(2**60), None]),
            ("country", ["DE", "FR", "US", None]),
            ("note", ["a refund", "nothing", None]),
        ):
            objects[name] = np.empty(n, dtype=object)
            objects[name][:] = of(values)
        numbers = [-np.inf, -1e300, -2.0, 0.0, 0.5, 5.0, 6.0, 1e300, np.inf, np.nan]
        times = [DAY, DAY + MOMENT, DAY - np.timedelta64(1, "D"), np.datetime64("NaT", "us")]
        return Values(
            {
                "amount": np.array(of(numbers), dtype=np.float64),
                "paid": np.array(of(times), dtype="datetime64[us]"),
                **objects,
            },
            n,
        )

    learned = rows(draw(st.integers(1, 60)))
    codes = np.array(draw(st.lists(st.integers(0, 1), min_size=learned.n_rows,
                                   max_size=learned.n_rows)), dtype=np.int32)  # fmt: skip
    rules = RuleSet(RULES, (0, 1), Schema(FIELDS), 0, (1.0, 1.0), 1)
    new = rows(draw(st.integers(1, 12)))
    flags = draw(st.lists(st.booleans(), min_size=new.n_rows, max_size=new.n_rows))
    return with_usual(rules, learned, codes), new, np.array(flags)


@settings(max_examples=examples(60), deadline=None)
@given(tables())
def test_one_row_has_the_reason_that_it_has_among_many(case: Any) -> None:
    rules, rows, flagged = case
    many = rules.reasons(rows, flagged)
    assert [each.words for each in many] == many.words
    assert [each.to_dict() for each in many] == list(map(json.loads, many.documents))
    plain = rules.reasons(rows)
    for row in range(rows.n_rows):
        (alone,) = rules.reasons(rows.take(np.array([row])))
        assert (alone.words, alone.to_dict()) == (plain[row].words, plain[row].to_dict())
    for start in range(0, rows.n_rows, 5):
        part = rules.reasons(rows.take(np.arange(start, min(start + 5, rows.n_rows))))
        assert part.documents == plain.documents[start : start + 5]
        assert part.words == plain.words[start : start + 5]


@settings(max_examples=examples(60), deadline=None)
@given(tables())
def test_every_flagged_row_has_a_reason_and_it_is_true_of_the_row(case: Any) -> None:
    rules, rows, flagged = case
    found = rules.reasons(rows, flagged)
    covered = [[_met(rule, rows, row) for rule in rules] for row in range(rows.n_rows)]
    for row, reason in enumerate(found):
        assert reason.is_flagged == (bool(flagged[row]) or any(covered[row]))
        assert (reason.rule is None) == (not any(covered[row]))
        if reason.rule is not None:
            assert covered[row].index(True) == reason.rule - 1
            assert [t.feature for t in reason.clauses] == [
                c.feature for c in rules[reason.rule - 1].clauses
            ]
        elif reason.is_flagged:
            assert reason.own is not None
            _check_own(reason, rows, flagged, row)
        for trait in (*reason.clauses, *reason.unusual):
            value = rows[trait.feature][row]
            assert _same(trait.value, value)
        assert len(reason.attributes) <= NAMED
        assert reason.words


def _met(rule: Rule, rows: Values, row: int) -> bool:
    """By Python's own comparisons."""
    return all(_meets(clause, rows[clause.feature][row]) for clause in rule.clauses)


def _meets(clause: Any, value: Any) -> bool:
    if isinstance(clause, Mentions):
        return isinstance(value, str) and clause.term in value
    if value is None or value != value:
        return bool(clause.missing)
    if clause.only_missing:
        return False
    if isinstance(clause, Among):
        return bool((value in clause.values) != clause.negated)
    low, high = clause.bounds
    value = int(value) if isinstance(value, int) else value
    return (low is None or value > low) and (high is None or value <= high)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) or one is other or (one != one and other != other)


def _check_own(reason: Reason, rows: Values, flagged: Any, row: int) -> None:
    own = reason.own
    assert own is not None
    inliers = [k for k in range(rows.n_rows) if not flagged[k]]
    assert own.of_inliers == len(inliers)
    if not own.clauses:
        assert "Nothing in the table tells it apart" in reason.words
        return
    rule = Rule(own.clauses, 1)
    assert _met(rule, rows, row)
    assert own.inliers == sum(_met(rule, rows, k) for k in inliers)
    assert own.flagged == sum(_met(rule, rows, k) for k in range(rows.n_rows) if flagged[k])
    assert ("Nothing in the table" in reason.words) == (not own.is_apart)


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(NUMBERS, min_size=1, max_size=120),
    st.lists(NUMBERS, min_size=1, max_size=20),
)
def test_what_is_said_of_a_number_is_true_of_so_many_inliers(
    inliers: list[float], asked: list[float]
) -> None:
    x = np.array(inliers)
    every = np.ones(len(x), dtype=np.bool_)
    spread = spread_of(x, every, every.astype(np.int64), (0.01, 0.1, 0.5, 0.9, 0.99))
    known = [v for v in inliers if v == v]
    asked = [*asked, *inliers[:20]]
    for value, place in zip(asked, spread.places(np.array(asked)).tolist(), strict=True):
        figure = spread.figures[place]
        if value != value:
            share = (len(x) - len(known)) / len(x)
            assert figure == (Figure("equal", share) if share <= 0.05 else figure)
        elif figure.side == "above":
            assert sum(v < value for v in known) >= figure.share * len(known) - 1e-9
        elif figure.side == "below":
            assert sum(v > value for v in known) >= figure.share * len(known) - 1e-9
        elif figure.side == "equal":
            assert sum(v == value for v in known) == round(figure.share * len(known))
    surprise = spread.surprise(np.array([*asked, -np.inf, np.inf, np.nan]))
    assert np.isfinite(surprise).all()


@pytest.mark.parametrize(("share", "words"), [
    (0.9961, "above 99.6% of inliers"), (0.99999, "above 99.99% of inliers"),
    (1.0, "above all inliers"), (0.98, "above 98% of inliers"), (0.9509, "above 95% of inliers"),
])  # fmt: skip
def test_a_share_is_never_rounded_up(share: float, words: str) -> None:
    assert Figure("above", share).in_words("inliers") == words


def test_zero_has_no_sign_in_a_reason() -> None:
    """A row with −0 was told of as "c3 -0" by itself, and as "c3 0" among others."""
    table = {"x": np.array([0.0, -0.0, 5.0, 6.0] * 6), "y": np.arange(24.0) % 5}
    found = (
        stair.Stair()
        .fit(np.column_stack([*table.values()]), (table["x"] == 0).astype(int))
        .rules_.reasons(np.column_stack([*table.values()]))
    )
    assert " 0 " in found.words[1]
    assert [str(reason) for reason in found] == found.words


def test_of_a_name_that_is_not_written_down_no_more_is_said_than_is_known() -> None:
    """Two names that two of 100 inliers have and one of them: "2% of inliers" was said of both."""
    shares = shares_of({"a": 97, "b": 2, "c": 1})
    figures = [shares.figures[k] for k in shares.places(np.array(["a", "b", "c", "new"]))]
    assert figures == [Figure("equal", 0.97), *[Figure("at most", 0.02)] * 3]
    assert figures[2].is_rare
    assert figures[2].in_words("inliers") == "at most 2% of inliers"
    assert Figure("at most", 0.0123).in_words("rows") == "at most 1.3% of rows"
    known = shares_of({"a": 97})
    assert known.figures[known.places(np.array(["new"]))[0]] == Figure("equal", 0.0)


def test_one_of_many_codes_that_are_all_as_frequent_is_not_unusual() -> None:
    """ "Also unusual: drg = E18B (1.5% of inliers)" stood in the reason of every admission, where
    each of 72 codes has so many; a code that is rarer than the others is unusual."""
    codes = shares_of({**{f"c{k}": 100 for k in range(72)}, "rare": 9, None: 50})
    found = [codes.figures[k] for k in codes.places(np.array(["c3", "rare", None], dtype=object))]
    assert [each.is_rare for each in found] == [False, True, True]
    assert found[0].in_words("inliers") == "1.4% of inliers"
    common, rare, missing = codes.surprise(np.array(["c3", "rare", None], dtype=object))
    assert common < missing < rare
    hours = spread_of(np.repeat(np.arange(24.0), 50), np.ones(1200, bool),
                      np.ones(1200, np.int64), FINE)  # fmt: skip
    assert not hours.figures[hours.places(np.array([10.0]))[0]].is_rare


@pytest.fixture(scope="module")
def summary() -> stair.Summary:
    return stair.summarize(payments(), labels="flagged", min_score=0.9, validate=0)


def test_the_reasons_of_a_summary(summary: stair.Summary) -> None:
    """All four planted kinds of fraud in words, and what nothing tells apart is said to be so."""
    found = summary.reasons()
    assert len(found) == summary.n_outliers == sum(each.is_flagged for each in found)
    left = [each for each in found if each.rule is None]
    assert len(left) == summary.unexplained
    by_rule = next(each for each in found if each.rule == 1)
    assert by_rule.words.startswith("Outlier by rule 1: amount ")
    assert "% of inliers) > 4350; country = " in by_rule.words
    assert any("Nothing in the table tells it apart" in each.words for each in left)
    row = int(summary.unexplained_rows()[0])
    assert summary.reasons(row)[0] == summary.reasons([row, 5])[0] == left[0]
    with pytest.raises(StairError, match="row 9999 is none of those"):
        summary.reasons(9999)


def test_whole_numbers_have_no_point_in_json() -> None:
    """A port was 443.0 in the JSON of reasons, and 443 in its words. What had fractions
    before keeps its point, and so does a fraction that comes later."""
    port = np.arange(300) % 30 * 10 + 153
    size = np.arange(300) / 2
    data = {"port": port.astype(float), "size": size, "y": (port >= 413).astype(int)}
    data["port"][5] = np.nan
    rules = stair.summarize(data, labels="y", validate=0).rules
    new = {"port": np.array([443, 442.5, 443]), "size": np.array([2, 1, 0.5])}
    found = rules.reasons(new)
    told = [[trait["value"] for trait in json.loads(text)["clauses"]] for text in found.documents]
    assert [[repr(v) for v in each] for each in told] == [["443"], ["442.5"], ["443"]]
    for text, each in zip(found.documents, found, strict=True):
        assert json.dumps(json.loads(text)) == json.dumps(each.to_dict())
        assert '"feature": "size", "value": ' in text
    assert '"feature": "size", "value": 2.0' in found.documents[0]


def test_reasons_travel_with_the_rules(summary: stair.Summary, tmp_path: Path) -> None:
    summary.to_json(tmp_path / "rules.json")
    saved = stair.load(tmp_path / "rules.json")
    data = payments()
    assert saved.to_json() == summary.to_json()
    assert saved.reasons(data).documents == summary.rules.reasons(data).documents
    some = [{name: array[k] for name, array in data.items() if name != "note"} for k in range(9)]
    with pytest.raises(StairError, match="note"):  # the rules need it
        saved.reasons(some)
    fewer = [
        {n: v for n, v in data.items() if n not in ("paid_at", "note")} | {"note": data["note"]}
    ]
    assert len(saved.reasons(fewer[0])) == len(data["note"])


def test_a_file_that_does_not_know_what_is_usual_still_gives_the_rule(
    summary: stair.Summary, tmp_path: Path
) -> None:
    """Files of an older stair have no such figures."""
    document = json.loads(summary.to_json())
    del document["usual"]
    (tmp_path / "old.json").write_text(json.dumps(document))
    old, data = stair.load(tmp_path / "old.json"), payments()
    known, bare = summary.rules.reasons(data), old.reasons(data)
    assert [each.rule for each in bare] == [each.rule for each in known]
    first = next(each for each in bare if each.rule == 2)
    assert first.words.startswith("Outlier by rule 2: hour ") and "inliers" not in first.words
    assert first.unusual == ()


@pytest.mark.parametrize(("change", "words"), [
    (lambda f: f["points"].reverse(), "contradict"),
    (lambda f: f.update(n=-1), "cannot be"),
    (lambda f: f["upto"].append(10**9), "contradict"),
    (lambda f: f.pop("side"), "side"),
    (lambda f: f.update(field="nobody"), "no field"),
    (lambda f: f["steps"].pop(), "contradict"),
])  # fmt: skip
def test_damaged_figures_are_refused(summary: stair.Summary, change: Any, words: str) -> None:
    from stair.export.json import from_json

    document = json.loads(summary.to_json())
    change(next(f for f in document["usual"]["fields"] if f["field"] == "amount"))
    with pytest.raises(StairError, match=f"damaged.*{words}"):
        from_json(json.dumps(document))


def test_a_value_that_few_inliers_have_is_not_kept() -> None:
    """It could be anybody's: names and addresses are categories too."""
    data = {"name": ["anna", "bert", *["all"] * 30, *["other"] * 8], "y": [0] * 36 + [1] * 4}
    learned = stair.summarize(data, labels="y", validate=0)
    usual = learned.rules.usual
    assert usual is not None and FEWEST > 1
    assert usual.fields["name"].values == ("all", "other")
    assert "anna" not in json.dumps(json.loads(learned.to_json())["usual"])


def test_an_exception_is_the_reason_why_a_row_is_none(summary: stair.Summary) -> None:
    """A person has said so, whatever a rule or the detector says."""
    data = payments()
    mine = (Rule((Interval("hour", high=1.0, whole=True),), summary.rules.default),)
    rules = replace(summary.rules, exceptions=mine)
    found = rules.reasons(data, [1] * 5000)
    lifted = [k for k, each in enumerate(summary.rules.reasons(data))
              if each.is_flagged and data["hour"][k] <= 1]  # fmt: skip
    assert lifted and [k for k, each in enumerate(found) if each.exception] == lifted
    words = found.words[lifted[0]]
    assert words.endswith("would be an outlier by rule 2, but exception 1 covers it: hour ≤ 1.")
    assert [found[k].words for k in lifted] == [found.words[k] for k in lifted]
    assert [found[k].to_dict() for k in lifted] == [json.loads(found.documents[k]) for k in lifted]


def test_an_address_and_its_networks_are_named_once() -> None:
    fields = (Field("ip", "category", "ip"), Field("ip /8", "category", "ip", part="/8"))
    values = Values({
        "ip": np.array(["10.0.0.1"] * 30 + ["9.9.9.9"], dtype=object),
        "ip /8": np.array(["10.0.0.0/8"] * 30 + ["9.0.0.0/8"], dtype=object),
    }, 31)  # fmt: skip
    codes = np.array([0] * 30 + [1], dtype=np.int32)
    rules = RuleSet((), (0, 1), Schema(fields), 0, (30.0, 1.0), 1)
    found = with_usual(rules, values, codes).reasons(values, codes == 1)
    assert len(found[30].unusual) == 1
    assert isinstance(found, Reasons) and replace(found).words == found.words


def test_the_next_month_is_no_news_of_a_row() -> None:
    """A month later "above all inliers" stood in the reason of every row, about its time."""
    random = np.random.default_rng(0)
    hours = np.arange(600) * np.timedelta64(1, "h")
    x = random.normal(size=600)
    learned = {"t": np.datetime64("2026-03-01", "us") + hours, "x": x, "y": (x > 1.8).astype(int)}
    rules = stair.summarize(learned, "y", validate=0).rules
    later = {"t": learned["t"] + np.timedelta64(60, "D"), "x": x}
    told = [reason for reason in rules.reasons(later) if reason.is_flagged]
    assert told
    assert all("t" not in [each.feature for each in reason.unusual] for reason in told)


def test_the_page_has_the_figures_that_were_measured() -> None:
    from benchmarks.reasons import PAGE, up_to_date

    assert PAGE.read_text(encoding="utf-8") == up_to_date()
