"""Detections of Sigma, converted by pySigma and run for real in SQLite."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stair.errors import StairError
from stair.export.sigma import to_sigma
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from target_trials import try_sigma

pytestmark = [pytest.mark.xdist_group("sigma")]


def test_what_is_selected_are_the_rows_that_the_rules_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wildcards, quotes and backslashes in names and values, cases of letters, NULL, infinities,
    hours, networks: what the query in SQLite and a reader of events find."""
    trial = try_sigma(40, tmp_path)
    assert trial.run > 20
    with capsys.disabled():
        print(f"\nSigma: {trial}")


def _one(*clauses: Clause, fields: tuple[Field, ...] = (), but: tuple[Clause, ...] = ()) -> RuleSet:
    """An outlier rule of these clauses, and an exception to it."""
    schema = Schema(fields or Schema.of_clauses([c.feature for c in clauses], clauses).fields)
    rules = RuleSet((Rule(clauses, 1),), (0, 1), schema, 0, (1.0, 1.0), 1)
    return rules.with_exceptions([but] if but else [])


NO_CASE = "in whatever case or for none of it, and rules tell cases apart beyond the letters A to Z"
CLOCKS = "Sigma knows no clocks but those that are whole hours from UTC all year"


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (_one(Period("t", after=np.datetime64("2024-01-01"))),
         'rule 1, t > 2024-01-01 00:00: "t" has times, and Sigma compares only numbers'),
        (_one(Among("day", ("Monday",)), fields=(Field("day", "category", "t", "weekday"),)),
         'rule 1, day = Monday: Sigma knows no weekdays, and the rule asks for that of "t"'),
        *((_one(Interval("h", 3.0), fields=(Field("h", "number", "t", "hour", "zoned", zone),)),
           f'rule 1, h > 3: "t" is read by the clocks of {zone}, and {CLOCKS}')
          for zone in ("Europe/Berlin", "+05:30")),
        (_one(Mentions("note", "naïve")),
         f'rule 1, note mentions "naïve": Sigma would look for all of \'naïve\' {NO_CASE}'),
        (_one(Interval("a|b", 1.0)),
         "rule 1, \"a|b\" > 1: 'a|b' cannot be a field in Sigma, where | begins a modifier; "
         "rename it"),
        (_one(Interval("took", 1.0), fields=(Field("took", "number", "took", type="duration"),)),
         'rule 1, took > 1: "took" has durations, which Sigma cannot compare'),
        (_one(Interval("id", 2**53 + 1)), "rule 1, id > 9,007,199,254,740,993: the rules compare "
         '"id" with 9007199254740993, and Sigma cannot tell whole numbers beyond 2**53 apart; use '
         "another kind of export"),
        (_one(), "rule 1, everything: it covers everything, and a detection of Sigma must ask "
         "something"),
        (_one(Interval("a", 1.0), Among("b", ("x",)), but=(Mentions("b", "né"),)),
         f'exception 1, b mentions "né": Sigma would look for all of \'né\' {NO_CASE}'),
        (_one(Among("a")),
         "none of these rules can flag a row, so there is nothing for Sigma to find"),
        (_one(Among("n", ("10.0.0.0/8",), missing=True, of="ip"),
              fields=(Field("n", "category", "ip", "/8"),)),
         "rule 1, ip in 10.0.0.0/8 or missing: Sigma cannot choose between networks of \"ip\" and "
         "none"),
    ],
)  # fmt: skip
def test_what_sigma_cannot_say_is_refused_by_name(rules: RuleSet, why: str) -> None:
    """The sentence names the rule and the reason, and nothing is written."""
    with pytest.raises(StairError) as error:
        to_sigma(rules)
    assert str(error.value) == why


def test_a_detection_is_read_from_top_to_bottom() -> None:
    """Bounds together, choices and what must not hold by themselves; of earlier rules only those
    that can cover the same rows; wildcards escaped; a level from precision, an id that stays."""
    rules = RuleSet(
        (
            Rule((Interval("amount", 4350.0, 1e300, missing=True), Among("no", ("DE", "7"), True)),
                 1, ((1, 69.0), (0, 5.0))),
            Rule((Interval("amount", high=4350.0),), 0),
            Rule((Interval("amount", 9000.0), Among("no", ("*",))), 1, ((1, 1.0), (0, 2.0))),
        ),
        (0, 1), ("amount", "no", "y y"), 0, (5.0, 1.0), 1,
    )  # fmt: skip
    rules = rules.with_exceptions([(Among("no", ("x",), missing=True), Interval("y y", 1e-7))])
    first, second = to_sigma(rules, ("bank", "payments")).split("---\n")
    assert to_sigma(rules, ("bank", "payments")) == f"{first}---\n{second}"
    assert to_sigma(rules, ("bank", "more")).split("id: ")[1][:36] != first.split("id: ")[1][:36]
    assert "level: high" in first and "earlier" not in first
    assert (
        second.partition("logsource")[2]
        == """:
  product: "bank"
  category: "payments"
detection:
  selection:
    amount|gt: 9000
    "no": "\\\\*"
  earlier_1:
    - amount|gt: 4350
    - amount: null
  earlier_1_2:
    - amount|lte: 1.0e+300
    - amount: null
  earlier_1_filter:
    - no|cased:
        - "7"
        - "DE"
    - "no": null
  exception_1:
    "y y|gt": 1.0e-07
  exception_1_2:
    - no|cased: "x"
    - "no": null
  condition: selection and not (earlier_1 and earlier_1_2 and not earlier_1_filter) and not (exception_1 and exception_1_2)
falsepositives:
  - "2 of 3 rows that it covered when it was learned"
level: low
custom:
  stair_rule: 3
"""  # noqa: E501
    )


def test_hours_are_said_by_the_clocks_of_utc_and_letters_of_two_cases_as_they_are() -> None:
    """Until 2 o'clock where clocks are 2 hours ahead is from 22 to 0 in UTC; é is not É."""
    field = Field("h", "number", "t", "hour", "zoned", "+02:00")
    text = to_sigma(_one(Interval("h", high=2.0), fields=(field,)))
    assert "    t|hour:\n      - 0\n      - 22\n      - 23\n  condition" in text
    assert '    b|contains|cased: "é 1"\n' in to_sigma(_one(Mentions("b", "é 1")))


def test_a_title_is_cut_where_sigma_has_no_room_for_it() -> None:
    text = to_sigma(_one(Among("word", tuple(f"{k:0100}" for k in range(5)))), "events")
    title = json.loads(text.splitlines()[0].removeprefix("title: "))
    assert len(title) == 256 and title.endswith("…")
    with pytest.raises(StairError, match="expected its category, and before that its product"):
        to_sigma(_one(Interval("a", 1.0)), ("a", "b", "c"))
