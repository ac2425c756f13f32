"""The rules that flag rows, as the tools that watch tables want them: one check for each.

A check finds the rows about which its rule decides. How it is to be taken comes from the evidence:
a rule that was right seldom is worth a warning, one that was right often is worth an error where
it covers more rows than it did.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from stair.errors import StairError
from stair.export.sentences import one_line, verdict
from stair.export.sql_clauses import quoted_name
from stair.export.sql_dialects import Dialect
from stair.rules.rule_set import RuleSet

RIGHT: Final = 0.9
"""From this share of right rows on, a rule is worth an error."""


@dataclass(frozen=True, slots=True)
class Detection:
    """A rule that flags rows."""

    number: int  # of the rule, from 1
    words: str
    sentence: str  # its label, how often it was right, and its words
    rows: float  # that it covered when it was learned; 0 where nobody knows
    precision: float  # NaN where nobody knows

    @property
    def is_error(self) -> bool:
        """Whether the rule was right so often that what it covers is an error."""
        return self.precision >= RIGHT

    @property
    def most(self) -> int:
        """The rows that it may cover before that is more than there were."""
        return math.ceil(self.rows)


def detections(rules: RuleSet) -> tuple[Detection, ...]:
    """The outlier rules; with several kinds of outlier, those that say anything but the default."""
    return tuple(
        Detection(
            number,
            one_line(rule.in_words()),
            one_line(f"{verdict(rules, rule)}: {rule.in_words()}"),
            rule.rows,
            rule.precision,
        )
        for number, rule in enumerate(rules.rules, 1)
        if (rule.label == rules.positive if rules.positive is not None
            else rule.label != rules.default)
    )  # fmt: skip


def something_to_find(rules: RuleSet, what: str) -> tuple[Detection, ...]:
    """The same for a tool that needs one at least."""
    found = detections(rules)
    if not found:
        raise StairError(f"none of these rules flags rows, so there is nothing for {what} to find")
    return found


def check_each(rules: RuleSet, write: Callable[[RuleSet], object]) -> None:
    """Whether rules can be written. Where not, it is said which of them cannot, and why."""
    try:
        write(rules)
        return
    except StairError as error:
        whole = error
    alone = [rules.with_rules([k]).with_exceptions(()) for k in range(len(rules))]
    named = [("rule", k, rules[k], some) for k, some in enumerate(alone)]
    nothing = rules.with_rules([])
    named += [
        ("exception", k, each, nothing.with_exceptions([each]))
        for k, each in enumerate(rules.exceptions)
    ]
    for what, k, rule, some in named:
        try:
            write(some)
        except StairError as error:
            if f"the rule {rule} cannot" in str(error):
                raise
            words = one_line(rule.in_words())
            raise StairError(f"{what} {k + 1}, {words}: {error}") from None
    raise whole


def on_relation(
    write: Callable[[str], str], dialect: Dialect, relation: str, escaped: Callable[[str], str]
) -> str:
    """SQL that reads from whatever a tool puts in a table's place. `write` gives it for a table of
    any name, `escaped` makes of SQL a text in which the tool finds nothing to fill in."""
    name, probe = "stair_input", write("data")
    while name in probe:
        name += "_"
    return escaped(write(name)).replace(quoted_name(name, dialect), relation)
