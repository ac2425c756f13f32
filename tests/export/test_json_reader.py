"""Rules that were saved and loaded do what they did."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import stair
from export_cases import Case, cases
from settings import summarize
from stair.demo import payments
from stair.report import to_html
from strategies import examples

METHODS: tuple[dict[str, Any], ...] = (
    {"method": "distilled"},
    {"method": "stair"},
    {"method": "local", "n_partitions": 2},
)


@settings(max_examples=examples(40), deadline=None)
@given(cases())
def test_a_rule_set_is_saved_and_loaded(case: Case) -> None:
    """`save` writes what `load` reads to an equal rule set: all kinds of fields, partitions too."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rules.json"
        case.rules.save(path)
        book = stair.load(path)
    assert book.rules == case.rules
    assert (book.rules.covers(case.table) == case.rules.covers(case.table)).all()


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m["method"])
def test_loaded_rules_do_what_the_summary_did(method: dict[str, Any], tmp_path: Path) -> None:
    """Labels as the label column had them, reasons, every ending, the score and the source."""
    data = {name: np.asarray(values)[:800] for name, values in payments().items()}
    summary = summarize(data, labels="flagged", name="pay", min_score=0.7, validate=0, **method)
    summary.to_json(tmp_path / "rules.json")
    book = stair.load(str(tmp_path / "rules.json"))  # a text was an AttributeError
    assert isinstance(book, stair.Rulebook)
    assert book.predict(data).tolist() == summary.predict(data).tolist()
    for row in (0, 17, 400):
        one = {name: values.tolist()[row] for name, values in data.items()}
        assert str(book.explain(one)) == str(summary.explain(one))
    for ending in ("to_sentences", "to_markdown", "to_sql", "to_sql_view", "to_python", "to_json"):
        assert getattr(book, ending)() == getattr(summary, ending)()
    assert (book.score, book.source) == (float(summary.score), "pay")
    assert [rule.counts for rule in book.rules] == [rule.counts for rule in summary.rules]
    page = to_html(book)
    assert "Rules for pay" in page
    assert page.count("<tr>") == len(summary.rules) + 1
    assert "<script" not in page


def test_the_page_of_a_bare_rule_set(tmp_path: Path) -> None:
    """Nothing is known but the rules, so nothing else is said; a name that is markup is a name."""
    rules = stair.RuleSet(
        (stair.Rule((stair.Interval("<b>", 1.0),), 1),),
        (0, 1),
        ("<b>",),
        0,
        (0.0, 0.0),
        1,  # type: ignore[arg-type]
    )
    rules.save(tmp_path / "bare.json")
    page = to_html(stair.load(tmp_path / "bare.json"))
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "1 rule, total length 1, 1 bound." in page
    assert "nan" not in page
