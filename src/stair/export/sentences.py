"""Rules as sentences: plain text, and Markdown that no name can break."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from stair.export.text import percent
from stair.rules.clauses import number_in_words
from stair.rules.rule_set import Rule, RuleSet

_MARKED: Final = re.compile(r"([\\`*_\[\]|~$])")


def to_sentences(rules: RuleSet) -> str:
    """One sentence for each rule, and one for everything else."""
    lines = []
    for heading, numbered in _parts(rules):
        lines += [f"{one_line(heading)}:"] if heading else []
        lines += [
            f"{k}. {one_line(f'{verdict(rules, rule)}: {rule.in_words()}')}" for k, rule in numbered
        ]
    lines += [
        f"Exception {k}. {one_line(f'{verdict(rules, rule)}: {rule.in_words()}')}"
        for k, rule in enumerate(rules.exceptions, start=1)
    ]
    lines.append(f"Everything else: {one_line(rules.label_name(rules.default))}")
    return "\n".join(lines) + "\n"


def to_markdown(rules: RuleSet) -> str:
    """The same as Markdown: a numbered list, with a heading for each partition."""
    lines = []
    for heading, numbered in _parts(rules):
        lines += [f"**{markdown(heading)}**", ""] if heading else []
        for k, rule in numbered:
            lines.append(f"{k}. **{markdown(verdict(rules, rule))}**: {markdown(rule.in_words())}")
        lines += [""] if numbered else []
    if rules.exceptions:
        lines += ["**Exceptions**", ""]
        lines += [
            f"{k}. **{markdown(verdict(rules, rule))}**: {markdown(rule.in_words())}"
            for k, rule in enumerate(rules.exceptions, start=1)
        ]
        lines += [""]
    lines.append(f"**Everything else**: {markdown(rules.label_name(rules.default))}")
    return "\n".join(lines) + "\n"


def verdict(rules: RuleSet, rule: Rule) -> str:
    """A rule's label and what speaks for it: "Outlier (93% of 41 rows)"."""
    name = rules.label_name(rule.label)
    name = name[:1].upper() + name[1:]
    if rule.counts and rule.rows:
        rows = "1 row" if rule.rows == 1 else f"{_count(rule.rows)} rows"
        name += f" ({percent(rule.precision)} of {rows})"
    return name


def one_line(text: str) -> str:
    """Text in which nothing can end a line, hide, or change the direction of reading."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _parts(rules: RuleSet) -> Iterator[tuple[str, list[tuple[int, Rule]]]]:
    numbered = list(enumerate(rules.rules, start=1))
    for k, (partition, (start, stop)) in enumerate(
        zip(rules.partitions, rules.spans, strict=True), start=1
    ):
        words = f", {partition.description}" if partition.description else ""
        heading = f"Partition {k}, {_count(partition.rows)} rows{words}"
        yield heading if rules.routing else "", numbered[start:stop]


def _count(rows: float) -> str:
    """Rows, or the weight of rows where they have weights."""
    return f"{rows:,.0f}" if math.isfinite(rows) and rows == int(rows) else number_in_words(rows)


def markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    safe = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKED.sub(r"\\\1", safe)
