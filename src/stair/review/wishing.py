"""Wishes as the fields of a form, and back; bad input gets one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from stair.errors import StairError
from stair.intake import Intake
from stair.learn.wishes import ColumnWish, column_wishes_of
from stair.review.forms import Form
from stair.review.revision import Document
from stair.review.setup import number, whole

# The floors that are asked for in percent, by their settings.
IN_PERCENT: Final = {"min_precision": "precision", "min_recall": "share of outliers"}
MOST_COLUMNS: Final = 400  # that have a menu; of more a file says what is known


@dataclass(frozen=True, slots=True)
class ColumnMenu:
    """What is known of a column, as its menu shows it."""

    name: str
    kind: str
    direction: str
    cost: int
    never: bool
    has_direction: bool

    @property
    def said(self) -> str:
        """What is known of it, beside its name."""
        if self.never:
            return "never"
        parts = [f"only {self.direction}" if self.direction != "extreme" else "one side"]
        found = parts if self.direction else []
        return ", ".join([*found, f"cost {self.cost}"] if self.cost != 1 else found)


@dataclass(frozen=True, slots=True)
class WishForm:
    """What the page asks for; what nobody wishes is empty."""

    has_floor: bool
    min_precision: str
    min_recall: str
    max_alerts: str
    max_rules: str
    columns: tuple[ColumnMenu, ...]


def wish_form(given: Intake, settings: Document) -> WishForm:
    """The form with the wishes of these settings."""
    known = column_wishes_of(settings.get("column_wishes"))
    fields = {f.source: f for f in reversed(given.schema.fields)}
    shown = {f.source: fields[f.source] for f in given.schema.fields}
    columns = []
    for name, each in list(shown.items())[:MOST_COLUMNS]:
        wish = known.get(name, ColumnWish())
        columns.append(
            ColumnMenu(
                name, str(each.kind), wish.direction or "", int(wish.cost), wish.never,
                each.kind in ("number", "time"),
            )
        )  # fmt: skip
    return WishForm(
        bool(settings["min_score"]),
        _percent(settings.get("min_precision")),
        _percent(settings.get("min_recall")),
        _alerts(settings.get("max_alerts")),
        _text(settings.get("max_rules")),
        tuple(columns),
    )


def wishes_of(form: Form, settings: Document) -> dict[str, object]:
    """The settings that a filled form asks for: nothing where it has no wishes. What a column's
    menu does not show, as its group, stays."""
    if not form.get("wishes", ""):
        return {}
    found: dict[str, object] = {}
    for name, words in IN_PERCENT.items():
        text = form.get(name, "").strip()
        found[name] = _share(text, words) if text else None
    alerts = form.get("max_alerts", "").strip()
    if alerts.endswith("%"):
        found["max_alerts"] = _share(alerts, "share of alerts")
    else:
        found["max_alerts"] = whole(alerts, "number of alerts") if alerts else None
    rules = form.get("max_rules", "").strip()
    found["max_rules"] = whole(rules, "number of rules") if rules else None
    found["column_wishes"] = _columns_of(form, settings)
    if not form.get("floored", "") and all(value in (None, {}) for value in found.values()):
        raise StairError(
            "without a floor on F1 something else has to say what is wished: a precision, a share "
            "of outliers, alerts or a number of rules"
        )
    return found


def _columns_of(form: Form, settings: Document) -> dict[str, dict[str, object]]:
    known = {n: w.given for n, w in column_wishes_of(settings.get("column_wishes")).items()}
    names, costs = form.getlist("column"), form.getlist("cost")
    directions, never = form.getlist("direction"), set(form.getlist("never"))
    if not len(names) == len(costs) == len(directions):
        raise StairError("the form has not all that belongs to its columns; load the page again")
    for name, direction, cost in zip(names, directions, costs, strict=True):
        own = {n: v for n, v in known.pop(name, {}).items() if n == "group"}
        if direction:
            own["direction"] = direction
        if cost.strip() not in ("", "1"):
            own["cost"] = whole(cost.strip(), f'cost of "{name[:40]}"')
        if name in never:
            own["never"] = True
        if own:
            known[name] = own
    column_wishes_of(known)
    return known


def _share(text: str, words: str) -> float:
    """What is written in percent, as a share."""
    percent = number(text.removesuffix("%").strip(), words)
    if not 0 <= percent <= 100:
        raise StairError(f"the {words} is {percent:.10g}%; expected 0% to 100%")
    return percent / 100


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.10g}"


def _alerts(alerts: float | int | None) -> str:
    return _text(alerts) if alerts is None or alerts >= 1 else f"{_percent(alerts)}%"


def _text(value: object) -> str:
    return "" if value is None else str(value)
