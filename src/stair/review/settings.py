"""The settings that rules are learned with, checked: those of a file may be anything."""

from __future__ import annotations

from stair.errors import StairError
from stair.intake import Intake
from stair.learn.learner import Learner
from stair.learn.method import Method
from stair.learn.methods import METHODS, method_of, settings_of
from stair.review.jobs import Say
from stair.review.revision import Document


def learner(given: Intake, settings: Document, say: Say) -> Learner:
    """The learner that these settings describe; those that are not named have their defaults."""
    return Learner(method_in(settings), given.schema, given.verdict, say)


def method_in(settings: Document) -> Method:
    """The method that these settings describe. What belongs to another one is passed over."""
    name = settings.get("method")
    if name not in METHODS:
        raise StairError("the rules have a method that there is not")
    own = settings_of(name)
    try:
        return method_of(name, **{each: settings[each] for each in own if each in settings})
    except StairError as error:
        raise StairError(f"the rules have a setting that they cannot have: {error}") from error


def check_settings(settings: Document) -> None:
    """Refuse what no rules can be learned with."""
    for name in ("method", "min_score", "max_rule_length"):
        if name not in settings:
            raise StairError(f"the rules do not have the setting {name}")
    method_in(settings)
