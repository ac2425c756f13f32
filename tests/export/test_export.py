"""The endings: what is written selects exactly what the rules select."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from export_cases import LOTS, SOME, Case, as_older, cases
from stair import StairError
from stair.export import Rulebook, from_json, to_json, to_markdown, to_sentences
from stair.export.answers import schema
from stair.export.kinds import KINDS
from stair.export.sentences import one_line, verdict
from stair.export.text import fit, percent, score_in_words
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from stair.summary import summarize

SCHEMA = jsonschema.Draft202012Validator(json.loads(schema()))


@LOTS
@given(cases())
def test_json_reads_back_to_equal_rules(case: Case) -> None:
    """With no data behind it; and what is written is what the published schema says."""
    saved = Rulebook(case.rules, {"source": "s"})
    text = to_json(saved)
    assert from_json(text) == saved
    SCHEMA.validate(json.loads(text))
    assert to_json(from_json(text)) == text


def test_the_schema_is_itself_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(schema()))


@pytest.mark.parametrize("method", ["stair", "local"])
def test_the_json_of_a_summary_is_what_the_schema_says(method: str) -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.normal(size=200), "b": rng.choice(["x", "y"], 200)}
    summary = summarize(table, labels=(table["a"] > 1).astype(int), method=method)
    SCHEMA.validate(json.loads(summary.to_json()))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
    | st.sampled_from(["now", "NaT", "2024", 10**400, -1, "number", "category"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner,
                                                                max_size=2),
    max_leaves=3,
)  # fmt: skip


# What JSON Schema has no words for: how one part of a file fits another.
BEYOND_THE_SCHEMA = (
    "stands twice", "not among the classes", "differ in number", "which is no field",
    "cannot be asked of", "its type is", "do not fit their space", "as many rules as there are",
    "no distance can be measured", "expected a time", "expected a day", "at most 1.8e308",
    "surrogates not allowed",
)  # fmt: skip


@LOTS
@given(cases(), st.data())
def test_a_broken_file_gets_one_sentence(case: Case, data: Any) -> None:
    """Whatever is taken out or put in: a StairError or rules that can be asked, nothing else."""
    document = json.loads(to_json(Rulebook(case.rules, {})))
    place: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(place)) if isinstance(place, dict)
                        else st.integers(0, len(place) - 1))  # fmt: skip
        inside = place[key]
        if isinstance(inside, dict | list) and inside and data.draw(st.booleans()):
            place = inside
            continue
        if data.draw(st.booleans()):
            del place[key]
        else:
            place[key] = data.draw(ANYTHING)
        break
    text = json.dumps(document)
    is_sound = SCHEMA.is_valid(document)
    try:
        saved = from_json(text)
    except StairError as error:
        assert "\n" not in str(error)
        assert not is_sound or any(words in str(error) for words in BEYOND_THE_SCHEMA), error
        return
    assert is_sound
    assert from_json(to_json(saved)) == saved


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "is not JSON"), ("{}", "no stair rules"), ("[" * 100_000, "is not JSON"),
     ('{"format": "stair-rules", "version": 4}', "has version 4 of the format"),
     ('{"format": "stair-rules", "version": true}', "has version True"),
     ('{"format": "stair-rules", "version": 1}', "is damaged")],
)  # fmt: skip
def test_a_file_of_something_else_gets_a_plain_sentence(text: str, words: str) -> None:
    with pytest.raises(StairError, match=words):
        from_json(text)


def _rules(*rules: Rule) -> RuleSet:
    return RuleSet(rules, (0, 1), ("amount", "country"), 0, (100.0, 38.0), 1)


def test_a_rule_is_a_sentence_that_a_colleague_can_read() -> None:
    rule = Rule(
        (Interval("amount", 4180), Among("country", ("FR", "DE"), negated=True)),
        1,
        ((0, 3.0), (1, 38.0)),
    )
    assert to_sentences(_rules(rule)) == (
        "1. Outlier (93% of 41 rows): amount > 4180 and country not in {DE, FR}\n"
        "Everything else: inlier\n"
    )
    assert to_markdown(_rules(rule, Rule((), 0))) == (
        "1. **Outlier (93% of 41 rows)**: amount > 4180 and country not in {DE, FR}\n"
        "2. **Inlier**: everything\n"
        "\n"
        "**Everything else**: inlier\n"
    )


class _Text(HTMLParser):
    """The text of a page, and its tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags = "", set()
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        del attrs
        self.tags.add(tag)


@LOTS
@given(cases())
def test_no_name_breaks_markdown(case: Case) -> None:
    """A reader of Markdown sees the sentences to the letter, with no tag or table in them."""
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    shown = _Text(page.render(to_markdown(case.rules)))
    assert shown.tags <= {"ol", "li", "p", "strong"}
    seen = re.sub(r"\s+", "", shown.text)
    for rule in case.rules:
        words = one_line(f"{verdict(case.rules, rule)}: {rule.in_words()}")
        assert re.sub(r"\s+", "", words) in seen


@SOME
@given(cases())
def test_a_sentence_is_one_line(case: Case) -> None:
    """Whatever line breaks are in names, values and labels."""
    partitions = len(case.rules.routing.partitions)
    lines = to_sentences(case.rules).splitlines()
    assert len(lines) == len(case.rules) + len(case.rules.exceptions) + partitions + 1


def test_nothing_in_a_rules_file_is_believed() -> None:
    """A damaged file is told, not guessed: wrong types, unknown columns, other classes."""
    X = np.arange(20.0)[:, None]
    text = to_json(summarize(X, labels=(X[:, 0] > 12).astype(int), method="stair"))
    for old, new in (
        ('"above": 12.0', '"above": "12"'),
        ('"feature": "x0"', '"feature": "x9"'),
        ('"missing": false', '"missing": "no"'),
        ('"label": "outlier"', '"label": "pirate"'),
        ('"kind": "number"', '"kind": "pickle"'),
    ):
        assert old in text
        with pytest.raises(StairError, match="is damaged"):
            from_json(text.replace(old, new))


DAMAGES = [
    ('"above": 12.0', '"above": NaN', "NaN is no number"),
    ('"above": 12.0', '"above": 1e999', "1e999 is no number"),
    ('"above": 12.0', f'"above": 1{"0" * 400}', "at most 1.8e308"),
    ('"above": 12.0', '"above": 12.0, "below": 1', "'below' is not known"),
    ('"above": 12.0', '"above": 12.0, "above": 13.0', "'above' stands twice"),
    ('"kind": "number"', '"kind": "category"', "has no values of the type 'whole'"),
    ('"kind": "number", "type": "whole"', '"kind": "time", "type": "naive"',
     "cannot be asked of a time"),
    ('"type": "whole"', '"source": "x0", "type": "whole"', "'part' is missing"),
    ('"totals": [', '"totals": [-1, ', "there cannot be -1.0 rows"),
    ('"totals": [', '"totals": [1, ', "differ in number"),
    ('"classes": [', '"classes": ["inlier", ', "the class 'inlier' stands twice"),
    ('"classes": [', '"classes": [3, ', "neither all texts nor all numbers"),
    ('"fields": [', '"fields": [{"name": "x0", "kind": "text", "type": "text"}, ',
     "the field 'x0' stands twice"),
    ('"facts": {', '"facts": {"settings": [], "x": ', "is not JSON"),
    ('"method": "stair"', '"method": 3', "the fact 'method' cannot be 3"),
    ('"columns": [', '"colums": [', "'columns' is missing"),
    ('"version": 3', '"version": 1', "'columns' is not known"),
    ('"version": 3', '"version": 2', "'usual' is not known"),
    ('"status": "candidate"', '"status": "active"', "is none of candidate, accepted, retired"),
    ('"status": "candidate"', '"status": "candidate", "until": "May 2"', "expected a day"),
    ('"status": "candidate"', '"status": "candidate", "since": "2026-02-30"', "expected a day"),
    ('"id": "', '"id": "two words ', "is no id of a rule"),
    ('"evidence": {', '"evidence": {"rows": 3, ', "'rows' is not known"),
    ('"source": ""', f'"source": {"[" * 40}{"]" * 40}', "more than 30 things inside each other"),
    ('"source": ""', r'"source": "\ud800"', "surrogates not allowed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), DAMAGES)
def test_what_is_wrong_in_a_rules_file_is_said(old: str, new: str, words: str) -> None:
    """Files with NaN, with keys, fields or classes twice, with negative counts and with a field's
    kind swapped were read; of one of them SQL and apply made different things."""
    X = np.arange(20)[:, None]
    text = to_json(summarize(X, labels=(X[:, 0] > 12).astype(int), method="stair"))
    assert old in text
    with pytest.raises(StairError, match=re.escape(words)) as error:
        from_json(text.replace(old, new, 1))
    assert "\n" not in str(error.value)


def _saved(clause: Clause, field: Field) -> str:
    rules = RuleSet((Rule((clause,), 1),), (0, 1), Schema((field,)), 0, (1.0, 1.0), 1)
    return to_json(Rulebook(rules, {}))


@pytest.mark.parametrize(
    ("clause", "field"),
    [(Interval("a", 1.0), Field("a", "category", "a")),
     (Among("a", ("x",)), Field("a", "number", "a")),
     (Among("a", ("x",)), Field("a", "text", "a")),
     (Among("a", (1,)), Field("a", "category", "a")),
     (Among("a", ("1",)), Field("a", "category", "a", type="number")),
     (Among("a", (True,)), Field("a", "category", "a", type="number")),
     (Among("a", (1,)), Field("a", "category", "a", type="flag")),
     (Among("a", ("2024-01-31",)), Field("a", "category", "a", type="time")),
     (Among("a", ("Moonday",)), Field("a", "category", "t", "weekday")),
     (Mentions("a", "x"), Field("a", "category", "a")),
     (Period("a", after=np.datetime64("2024-01-01")), Field("a", "number", "a"))],
)  # fmt: skip
def test_a_clause_is_about_a_field_of_its_kind_and_type(clause: Clause, field: Field) -> None:
    with pytest.raises(StairError, match=r"cannot be asked of|its type is"):
        from_json(_saved(clause, field))


def test_files_of_the_first_version_open_with_a_note() -> None:
    """They do not say of which types the values are; the rules tell it."""
    document = json.loads(_saved(Among("a", (True,)), Field("a", "category", "a", type="flag")))
    document = as_older(document, 1)
    del document["fields"][0]["type"]
    SCHEMA.validate(document)
    saved = from_json(json.dumps(document), "old.json")
    assert saved.rules.schema.fields[0].type == "flag"
    assert "old.json is of an older stair" in saved.notes[0]
    assert from_json(to_json(saved)).rules == saved.rules


def test_times_that_no_64_bits_hold_are_refused() -> None:
    """numpy turns the year 999999 into another one without a word."""
    text = _saved(Period("a", np.datetime64("2024-01-01")), Field("a", "time", "a"))
    assert from_json(text.replace("2024-01-01", "294000-01-01"))
    for day in ("999999-01-01", "2024-02-30"):
        with pytest.raises(StairError, match="is damaged"):
            from_json(text.replace("2024-01-01", day))


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0%"), (1.0, "100%"), (0.996, "99.6%"), (0.004, "0.4%"), (0.99999, ">99.99%"),
     (0.00001, "<0.01%"), (0.5, "50%"), (math.nan, "–")],
)  # fmt: skip
def test_a_share_is_never_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_score_is_never_rounded_across_its_floor() -> None:
    """0.7997 is not "0.80", and 0.9996 is not "1.00"."""
    assert score_in_words(0.7997, 0.8) == "0.7997"
    assert score_in_words(0.8004, 0.8) == "0.8004"
    assert score_in_words(0.9996, 0.8) == "0.9996"
    assert score_in_words(0.85, 0.8) == "0.85"
    assert score_in_words(1.0, 0.8) == "1.00"


@given(st.lists(st.text(alphabet="ab ≤1", min_size=1, max_size=90), min_size=1, max_size=5),
       st.integers(60, 120))  # fmt: skip
def test_a_table_fits_its_width(words: list[str], width: int) -> None:
    rows = [(text, "1,234", "99%") for text in words]
    assert all(len(line) <= width for line in fit(("Rules", "rows", "right"), rows, width))


def test_a_clause_that_is_longer_than_a_line_is_broken_between_words() -> None:
    """A date was broken at its hyphen, a category in the middle, and the first line was empty."""
    clause = "2024-01-01 17:00 < paid_at ≤ 2024-01-02 11:00 or missing"
    whole = clause.replace(" ", "\u00a0")
    _, first, *more = fit(("Rules", "rows"), [(f"5  {whole}", "1")], 50)
    assert first.endswith(" 1")
    assert " ".join([first[:-1], *more]).split() == ["5", *clause.split()]


def test_a_missing_date_reads_back_as_a_missing_date() -> None:
    """Whether the column has whole days was lost where the clause says "is missing"."""
    dates = np.array(["2024-01-01", "NaT", "2024-01-01", "2024-01-02"] * 5, dtype="datetime64[us]")
    summary = summarize({"day": dates}, labels=np.isnat(dates))
    assert from_json(to_json(summary)).rules == summary.rules


def test_every_kind_has_a_method() -> None:
    """What the command writes, a summary and saved rules write too."""
    methods = {"text": "to_sentences"} | {
        kind: f"to_{kind.replace('-', '_')}" for kind in KINDS if kind != "text"
    }
    X = np.arange(20.0)[:, None]
    summary = summarize(X, labels=(X[:, 0] > 12).astype(int))
    saved = from_json(summary.to_json())
    for method in methods.values():
        content = getattr(summary, method)()
        assert content
        if method != "to_json":
            assert content == getattr(saved, method)()
