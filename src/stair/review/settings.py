"""The settings that rules are learned with, checked: those of a file may be anything."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from stair.errors import StairError
from stair.intake import Given
from stair.learn.methods import METHODS, Learner
from stair.review.jobs import Say
from stair.rules.columns import Lists

LISTS: Final = {"min_rows_per_value": "min_rows", "max_values": "max_values"}
NEEDED: Final = ("method", "min_score", "max_rule_length")
OTHERS: Final = ("max_total_length", "n_partitions", "locality", "floor_on", "random_state",
                 "min_outliers", "effort", "time_limit", "time_windows")  # fmt: skip


def learner(given: Given, settings: Mapping[str, Any], say: Say) -> Learner:
    """The learner that these settings describe; those that are not named have their defaults."""
    others = {name: settings[name] for name in OTHERS if name in settings}
    lists = {own: settings[name] for name, own in LISTS.items() if name in settings}
    return Learner(
        given.schema, str(settings["method"]), float(settings["min_score"]),
        int(settings["max_rule_length"]), labels=given.verdict, say=say,
        lists=Lists(**lists), **{"max_total_length": None, **others},
    )  # fmt: skip


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse what no rules can be learned with."""
    hints = get_type_hints(Learner)
    for name in (*NEEDED, *OTHERS):
        if name in NEEDED and name not in settings:
            raise StairError(f"the rules do not have the setting {name}")
        value = settings.get(name)
        if name in settings and not _fits(value, hints[name]):
            raise StairError(f"the rules have the setting {name} = {str(value)[:40]!r}")
    for name in LISTS:
        if not _fits(settings.get(name, 1), int) or settings.get(name, 1) < 1:
            raise StairError(f"the rules have the setting {name} = {str(settings[name])[:40]!r}")
    if settings["method"] not in METHODS or settings["min_score"] > 1:
        raise StairError("the rules have a method or a floor that there is not")
    if settings["max_rule_length"] < 1:
        raise StairError("the rules have no longest rule")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value of JSON is of a type; a number is none below zero."""
    if hint is Any:  # a seed, which is not always a number elsewhere
        hint = int | None
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, each) for each in get_args(hint))
    if hint in (int, float):
        kinds = int if hint is int else int | float
        return isinstance(value, kinds) and type(value) is not bool and 0 <= value < math.inf
    return isinstance(value, hint)
