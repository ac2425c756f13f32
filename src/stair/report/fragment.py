"""The small table that a notebook shows: outlier rules first, the rest in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stair.export.text import falling_rules, figures_in_words
from stair.report.told import on_the_frontier, told_of
from stair.rules.clauses import clause_in_words, side_by_side

if TYPE_CHECKING:
    from stair.rules.counted import ClauseEvidence, RuleEvidence
    from stair.summary import Summary

# Rules that are shown; a notebook is for a look, the report and the text have all of them.
MOST: Final = 20


def fragment_of(summary: Summary, most: int = MOST) -> dict[str, Any]:
    """What the template needs: the rules that are shown, and what the others cover together."""
    rules = summary.rules
    numbered = list(enumerate(summary.evidence, start=1))
    main = [(k, e) for k, e in numbered if rules.positive is None or e.rule.label == rules.positive]
    others = [pair for pair in numbered if pair not in main]
    shown = [*main, *others][: most if len(numbered) > most else None]
    falling = falling_rules(summary)
    return {
        "summary": summary,
        "figures": figures_in_words(summary),
        "falling": falling,
        "told": told_of(summary),
        "chosen": on_the_frontier(summary),
        "said": _said,
        "shown": shown,
        "n_hidden": len(numbered) - len(shown),
        "partition_of": rules.partition_of,
        "routing": rules.routing,
        "rest_rows": summary.rest.rows,
        "rest_right": summary.rest.precision if summary.rest.rows else 0.0,
    }


def _said(each: RuleEvidence) -> list[tuple[ClauseEvidence, str]]:
    """What speaks for each clause, and how it reads beside the others."""
    texts = side_by_side([clause_in_words(clause) for clause in each.rule.clauses])
    return list(zip(each.clauses, texts, strict=True))
