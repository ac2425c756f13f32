"""A summary with other rules than those that were learned."""

from __future__ import annotations

from dataclasses import replace

from stair import Rule, RuleSet, Summary
from stair.rules.counted import count
from stair.rules.groups import groups_of


def distilled(summary: Summary, rules: list[Rule]) -> Summary:
    """A summary with other rules: all of outliers, in any order, and everything else an inlier."""
    given = summary.rules
    inlier = next(c for c in given.classes if c != given.positive)
    new = RuleSet(tuple(rules), given.classes, given.schema, inlier, given.totals, given.positive)
    covered = new.covers(summary._values)
    counted = count(new, summary._values, summary._codes)
    predicted = new.predict(summary._values)
    missed = summary._outliers & (predicted != given.positive)
    return replace(
        summary, rules=new, evidence=counted.evidence(), _groups=groups_of(covered, summary._codes),
        method="distilled", unexplained=int(missed.sum()), _unexplained=missed, trace=(),
        rest=counted.rest, check=None, suspects=(), frontier=(),
    )  # fmt: skip
