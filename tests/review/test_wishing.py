"""What a form of wishes may say, without a browser."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import ImmutableMultiDict

from stair.data.source import Source
from stair.demo import payments
from stair.errors import StairError
from stair.intake import Columns, Statement, take_in
from stair.review.wishing import wish_form, wishes_of


def _filled(**fields: Any) -> ImmutableMultiDict[str, str]:
    pairs = [(n, v) for n, given in fields.items() for v in ([given] if isinstance(given, str)
             else given)]  # fmt: skip
    return ImmutableMultiDict([("wishes", "1"), *pairs])


def test_a_form_says_what_it_shows() -> None:
    """Whatever wishes there are: the form that shows them asks for the same; a group stays."""
    statement, say = Statement("flagged", has_kinds=True), lambda _: None
    given = take_in(Source(payments()), statement, Columns(), say)
    settings = {
        "min_score": 0.9, "min_precision": 0.85, "max_alerts": 0.05, "max_rules": 3,
        "column_wishes": {"amount": {"direction": "up", "group": "money"}, "note": {"never": True},
                          "country": {"cost": 4}},
    }  # fmt: skip
    shown = wish_form(given, settings)
    again = wishes_of(
        _filled(
            floored="1", min_precision=shown.min_precision, min_recall=shown.min_recall,
            max_alerts=shown.max_alerts, max_rules=shown.max_rules,
            column=[each.name for each in shown.columns],
            direction=[each.direction for each in shown.columns],
            cost=[str(each.cost) for each in shown.columns],
            never=[each.name for each in shown.columns if each.never],
        ),
        settings,
    )  # fmt: skip
    assert again == {
        "min_precision": 0.85, "min_recall": None, "max_alerts": 0.05, "max_rules": 3,
        "column_wishes": settings["column_wishes"],
    }  # fmt: skip
    assert wishes_of(ImmutableMultiDict({"floor": "0.9"}), settings) == {}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_alerts": "many"}, 'number of alerts is "many"; expected a whole number'),
        ({"min_precision": "x"}, 'the precision is "x"; expected a number'),
        ({"min_precision": "120"}, "the precision is 120%; expected 0% to 100%"),
        ({"min_recall": "-5 %"}, "the share of outliers is -5%; expected 0% to 100%"),
        ({"max_alerts": "150%"}, "the share of alerts is 150%; expected 0% to 100%"),
        ({}, "without a floor on F1 something else has to say what is wished"),
        ({"floored": "1", "column": "a", "cost": "0", "direction": ""}, "whole number from 1"),
        ({"floored": "1", "column": "a", "cost": "1", "direction": "wide"}, "up, down or extreme"),
        ({"floored": "1", "column": "a", "cost": "2", "direction": "", "never": "a"},
         "contradict each other"),
        ({"floored": "1", "column": "a"}, "load the page again"),
    ],
)  # fmt: skip
def test_a_form_that_cannot_be_is_one_sentence(fields: dict[str, str], message: str) -> None:
    with pytest.raises(StairError) as error:
        wishes_of(_filled(**fields), {})
    assert message in str(error.value)
    assert "\n" not in str(error.value)
