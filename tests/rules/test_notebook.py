"""Rules in a notebook and at a prompt: a few words, in its own colours, and nothing that runs."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stair import (
    Among,
    Explanation,
    Interval,
    LocalStair,
    Rule,
    RuleSet,
    Source,
    Summary,
    summarize,
)
from stair.demo import payments
from stair.rules.notebook import text


@pytest.fixture(scope="module")
def demo() -> Summary:
    return summarize(Source(payments(), name="payments"), labels="flagged", min_score=0.9)


class Tags(HTMLParser):
    """The tags of a fragment, and whether each that is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, list[str]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, [name for name, _ in attrs]))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def shown(thing: Rule | RuleSet | Explanation | Summary) -> str:
    """What a notebook shows, checked: small, whole, and with nothing that runs."""
    html = thing._repr_html_()
    tags = Tags(html)
    assert len(html) < 20_000
    harmless = {"div", "p", "b", "em", "small", "strong", "ul", "ol", "li", "code", "span",
                "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip
    assert {tag for tag, _ in tags.seen} <= harmless
    attributes = {name for _, names in tags.seen for name in names}
    assert attributes <= {"class", "style", "scope", "title", "colspan"}
    assert not re.search(r"color|background|#[0-9a-f]{3,6}\b", html)
    return tags.words


def test_a_rule_is_no_dump_of_a_dataclass(demo: Summary) -> None:
    rule = Rule((Interval("amount", 4180.0), Among("country", ("DE", "FR"), negated=True)), 1)
    assert repr(rule) == f"Rule({rule} -> 1)"
    assert repr(demo.rules) == (
        f"RuleSet({len(demo.rules)} rules, total length {demo.rules.total_length}, "
        f"{demo.rules.n_bounds} bounds; otherwise inlier)"
    )
    row = {name: values[17] for name, values in payments().items()}
    assert repr(demo.explain(row)) == f"Explanation({demo.explain(row)})"
    assert repr(demo).startswith("Summary(payments: 4 rules, total length 8, ")
    assert max(map(len, map(repr, (demo, demo.rules)))) < 120


def test_what_a_notebook_shows_says_what_the_text_says(demo: Summary) -> None:
    first = demo.rules[0]
    for clause in first.clauses:
        assert str(clause) in shown(first)
        assert str(clause) in shown(demo.rules)
        assert str(clause) in shown(demo)
    assert f"{first.rows:.0f} rows" in shown(first)
    assert "They hold" in shown(demo)
    data = payments()
    for number in (int(demo.matching_rows(1)[0]), 17):
        found = demo.explain({name: values[number] for name, values in data.items()})
        words = shown(found)
        for reason in (*found.reasons, *found.misses):
            assert reason in words


def test_kinds_of_outlier_and_partitions_are_shown_too() -> None:
    X = np.random.default_rng(1).normal(size=(600, 3))
    y = np.select([X[:, 0] > 1.2, X[:, 1] > 1.7], ["a", "b"], "none")
    kinds = summarize(X, labels=y)
    words = shown(kinds)
    assert "outliers of 2 kinds" in words
    assert "Kind" in words
    local = summarize(X, labels=y == "a", method=LocalStair(n_partitions=2))
    assert "Partition" in shown(local)
    assert repr(local.rules).startswith("RuleSet(")
    shown(local.rules)


@given(st.text(max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_no_name_becomes_markup(name: str, value: str, label: str) -> None:
    """Columns, values and labels of any text, in a rule, a set and an explanation."""
    for hostile in (name, f"<script>{name}</script>", f'"><img src=x onerror={name}>'):
        rule = Rule((Among(hostile, (value, "x")), Interval("b", 1.0)), label, ((label, 3.0),))
        rules = RuleSet((rule,), (label, "other"), (hostile, "b"), "other", (3.0, 1.0))
        shown(rule)
        shown(rules)
        shown(Explanation(label, label, 1, (str(rule.clauses[0]),), partition=hostile))
        for made in (rule, rules):
            made._repr_html_().encode("utf-8")
        assert "<" not in text(hostile) and "\0" not in text(hostile)


def test_a_long_set_is_cut() -> None:
    many = tuple(Rule((Interval("x", float(k)),), 1) for k in range(500))
    rules = RuleSet(many, (0, 1), ("x",), 0, (1.0, 1.0), 1)
    assert "480 more" in shown(rules)
