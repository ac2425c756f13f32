"""What a file of rules says of them, in sentences."""

from __future__ import annotations

import math

from stair.export.json import Rulebook
from stair.report.words import counted, number
from stair.rules.figures import floor_in_words, score_in_words


def lines_of(book: Rulebook) -> list[str]:
    """How long the rules are, what they scored and on what, and whether they hold."""
    rules, facts = book.rules, book.facts
    lines = [
        f"{counted(len(rules), 'rule')}, total length {rules.total_length:,}, "
        f"{counted(rules.n_bounds, 'bound')}."
    ]
    floor, name = facts.get("floor", math.nan), facts.get("score_name", "score")
    score, of_weight = book.score, ""
    weights = facts.get("weights")
    if isinstance(weights, dict) and isinstance(weights.get("score"), float):
        score, of_weight = weights["score"], f" of the {weights.get('name', 'weight')}"
    if not math.isnan(score):
        asked = "" if math.isnan(floor) else f" (asked for more than {floor_in_words(floor)})"
        rows = f" on {number(facts['rows'])} rows" if "rows" in facts else ""
        lines.append(f"{name} {score_in_words(score, floor)}{of_weight}{rows}{asked}.")
    if "label" in facts:
        lines.append(f"Label: {facts['label']}.")
    if isinstance(facts.get("holds"), str) and isinstance(facts.get("held_out_score"), float):
        held_out = score_in_words(facts["held_out_score"], floor)
        lines.append(f"They {facts['holds']}: on rows kept aside {name} is {held_out}.")
    return [*lines, *(f"{note[:1].upper()}{note[1:]}." for note in book.notes)]
