"""What became of wishes, in words: those that were had, those that gave way and by how much, and
what was known of columns."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from stair.learn.wishes import column_wishes_of
from stair.rules.figures import floor_in_words, percent, score_in_words

if TYPE_CHECKING:
    from stair.evidence.findings import Findings
    from stair.learn.wishes import ColumnWish, Outcome

_DIRECTIONS: Final = {
    "up": "only large values are outliers",
    "down": "only small values are outliers",
    "extreme": "outliers are at one end or the other",
}
# Of more columns the rest is counted.
_MOST_NAMED: Final = 12


def wished_in_words(summary: Findings) -> list[str]:
    """All of it, a sentence for each."""
    return [*wishes_in_words(summary), *weights_in_words(summary), *known_in_words(summary)]


def weights_in_words(summary: Findings) -> list[str]:
    """What the rules come to by weight; nothing where all rows count alike."""
    weighed = summary.weighed
    if weighed is None:
        return []
    name = weighed.name
    if math.isnan(weighed.outliers):
        return [f"All shares are of the {name}, not of rows."]
    right = f", and {percent(weighed.precision)} of the {name} that they alert is theirs"
    return [
        f"Weighed by {name}: the rules explain {percent(weighed.recall)} of the {name} of outliers"
        f"{right if weighed.alerts else ''}. Shares and {summary.score_name} are of the {name}, "
        "rows are counted."
    ]


def missed_in_words(outcomes: Iterable[Outcome], of_weight: str = "") -> str:
    """What is said of wishes that could not be had."""
    gave_way = [_missed_in_words(each, of_weight) for each in outcomes if not each.is_met]
    return f"not all that was wished can be had together: {'; '.join(gave_way)}"


def wishes_in_words(summary: Findings) -> list[str]:
    """What became of wishes: those that were had, and those that gave way."""
    of = summary.of_weight
    had = [_had_in_words(each, of) for each in summary.outcomes if each.is_met]
    missed = [_missed_in_words(each, of) for each in summary.outcomes if not each.is_met]
    lines = [f"As wished: {', '.join(had)}."] if had else []
    return lines + ([f"Not as wished: {'; '.join(missed)}."] if missed else [])


def _had_in_words(outcome: Outcome, of_weight: str) -> str:
    what, got, asked, way = _outcome_in_words(outcome, of_weight)
    return f"{what.format(got)} ({way} {asked})"


def _missed_in_words(outcome: Outcome, of_weight: str) -> str:
    """What gives way, and by how much."""
    what, got, asked, way = _outcome_in_words(outcome, of_weight)
    if math.isnan(outcome.got):
        return f"no rule, and so nothing of {what.format('').strip()} ({way} {asked})"
    return f"{what.format(got)} in place of {way} {asked}"


def _outcome_in_words(outcome: Outcome, of_weight: str) -> tuple[str, str, str, str]:
    """What it is about with room for the figure, the figure, what was asked, and in which way."""
    name, asked, got = outcome.name, outcome.asked, outcome.got
    of = f" {of_weight.replace('{', '{{').replace('}', '}}')}" if of_weight else ""
    if name == "min_score":
        figure = score_in_words(got, asked)
        return f"F{outcome.beta:g} {{}}{of}", figure, floor_in_words(asked), "more than"
    if name == "max_alerts":
        if asked < 1:  # a share
            return "{} of rows alerted", _near(got, asked), _near(asked, asked), "at most"
        return "{} alerts", f"{got:,}", f"{asked:,}", "at most"
    if name == "max_total_length":
        return "total length {}", f"{got:,}", f"{asked:,}", "at most"
    if name == "max_rules":
        return "{} " + ("rule" if got == 1 else "rules"), f"{got:,}", f"{asked:,}", "at most"
    what = {"min_precision": f"{{}}{of} of alerts right",
            "min_recall": f"{{}}{of} of outliers explained",
            "min_rule_precision": f"{{}}{of} right in the weakest rule"}[name]  # fmt: skip
    return what, _near(got, asked), _near(asked, asked), "at least"


def _near(share: float, edge: float) -> str:
    """A share with as many digits as it takes to see on which side of the edge it is."""
    for digits in range(6):
        text, other = (f"{each:.{digits}%}" for each in (share, edge))
        if (text == other) == (share == edge) and (
            share != edge or math.isclose(float(text[:-1]), 100 * share, abs_tol=1e-9)
        ):
            return text
    return f"{share:.6%}"


def known_in_words(summary: Findings) -> list[str]:
    """What was said of columns before rules were learned."""
    wishes = column_wishes_of(summary.settings.get("column_wishes"))
    said = [f"{name} ({', '.join(_known_in_words(wish))})" for name, wish in wishes.items()]
    more = len(said) - _MOST_NAMED
    shown = [*said[:_MOST_NAMED], f"{more} more"] if more > 0 else said
    lines = [f"Known of columns: {'; '.join(shown)}."] if said else []
    if summary.settings.get("one_sided"):
        lines.append("No clause has two bounds, as wished.")
    return lines


def _known_in_words(wish: ColumnWish) -> list[str]:
    if wish.never:
        return ["never"]
    found = [] if wish.direction is None else [_DIRECTIONS[wish.direction]]
    if wish.cost != 1:
        found.append(f"costs {wish.cost}")
    if wish.group:
        found.append(f"one of the group {wish.group}")
    return found or ["nothing"]
