"""What learning found out beyond the rules, kept with them: whether they hold, what one more rule
would add, and what came nearest for kinds of outlier without rules.

The rules can be counted again on the rows at any time; these would have to be learned again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from stair.export.json import from_json
from stair.learn.distill import Further
from stair.learn.validation import Check
from stair.review.revision import Document
from stair.rules.document import rule_to_json
from stair.rules.rule_set import Rule
from stair.summary import Summary


def to_remember(summary: Summary) -> dict[str, object]:
    """As JSON, to stand beside the rules."""
    found: dict[str, object] = {"unchecked": summary.unchecked}
    if summary.check is not None:
        found["check"] = asdict(summary.check)
    if summary.further is not None:
        more = summary.further
        found["further"] = {
            "rule": rule_to_json(replace(more.rule, counts=())),
            "outliers": more.outliers,
            "score": more.score,
        }
    nearest = [
        {
            "score": kind.nearest_score,
            "rules": [rule_to_json(replace(rule, counts=())) for rule in kind.nearest],
        }
        if kind.nearest
        else None
        for kind in summary.kinds
    ]
    if any(nearest):
        found["nearest"] = nearest
    return found


def with_remembered(summary: Summary, found: Document, document: Document) -> Summary:
    """A summary with what was remembered of its learning. `document` are the rules as they are in
    a file; anything that cannot have been remembered is a ValueError."""
    check = None
    if "check" in found:
        check = _check(found["check"], len(summary.rules), len(summary.kinds))
    further = None
    if "further" in found:
        more = found["further"]
        (rule,) = _rules(document, [more["rule"]])
        further = Further(rule, _number(more["outliers"]), _number(more["score"]))
    kinds = list(summary.kinds)
    # Kinds are in the order of the rules, then by size: as they were when the rules were learned.
    for place, nearest in enumerate(found.get("nearest", [])):
        if nearest is not None:
            rules = _rules(document, nearest["rules"])
            score = _number(nearest["score"])
            kinds[place] = replace(kinds[place], nearest=rules, nearest_score=score)
    return replace(
        summary, check=check, unchecked=str(found.get("unchecked", "")), further=further,
        kinds=tuple(kinds),
    )  # fmt: skip


def _check(found: Document, n_rules: int, n_kinds: int) -> Check:
    scores, found_again, of_kinds = (
        tuple(map(_number, found[name])) for name in ("scores", "found_again", "of_kinds")
    )
    if not scores or len(found_again) != n_rules or len(of_kinds) != n_kinds:
        raise ValueError("the check is of other rules")
    score, chance, learned = (_number(found[name]) for name in ("score", "chance", "learned"))
    left = tuple(map(_number, found.get("left_of_kinds", ())))  # the first files have none
    return Check(scores, score, chance, learned, found_again, of_kinds, left)


def _rules(document: Document, rules: Sequence[object]) -> tuple[Rule, ...]:
    return from_json(json.dumps({**document, "rules": rules}), "the review").rules.rules


def _number(found: Any) -> float:
    if type(found) not in (int, float) or not math.isfinite(found) or found < 0:
        raise ValueError("a score is no number")
    return float(found)
