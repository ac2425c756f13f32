"""The report's sentences, from its counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from stair.export.text import floor_in_words, percent, score_in_words
from stair.report.content import KindView, Point, Report, RuleView
from stair.report.contrasts import FEWEST as FEWEST
from stair.report.remarks import beyond as beyond
from stair.report.remarks import taken as taken

_SMALL = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
SHORT = 3  # attributes that a rule may have and still be called short


def number(value: float) -> str:
    return f"{value:,.0f}"


def counted(n: int, thing: str, *, spelled: bool = False) -> str:
    """1 rule, 12 rules; small numbers as words where they are spelled."""
    words = _SMALL[n] if spelled and n < len(_SMALL) else f"{n:,}"
    return f"{words} {thing}{'' if n == 1 else 's'}"


def headline(report: Report) -> str:
    """The answer in one sentence."""
    if not report.finds_outliers:
        right = report.n_rows - report.wrong
        return (
            f"{number(report.n_rows)} rows are of {len(report.classes)} classes; "
            f"{counted(report.n_rules, 'rule', spelled=True)} "
            f"{'gives' if report.n_rules == 1 else 'give'} {percent(right / report.n_rows)} "
            "of them their class"
        )
    are = "is an outlier" if report.n_outliers == 1 else "are outliers"
    opening = f"{number(report.n_outliers)} of {number(report.n_rows)} rows {are}"
    if report.kinds:
        opening += f" of {counted(len(report.kinds), 'kind')}"
    missed = (report.missed.rows if report.missed else 0) + report.n_mistaken
    explained = report.n_outliers - missed
    if not report.n_outlier_rules or not explained:
        return f"{opening}; no rule explains any of them"
    n = report.n_outlier_rules
    short = "short " if report.longest <= SHORT else ""
    verb = "explains" if n == 1 else "explain"
    them = "it" if report.n_outliers == 1 else f"{percent(explained / report.n_outliers)} of them"
    if report.of_weight:
        them += f" and {percent(report.explained)} {report.of_weight}"
    return f"{opening}; {counted(n, f'{short}rule', spelled=True)} {verb} {them}"


def score(report: Report) -> str:
    return score_in_words(report.score, report.min_score)


def floor(report: Report) -> str:
    """What stands below the score."""
    if report.has_wishes:
        return report.of_weight or "wishes are below"
    of_weight = f"{report.of_weight}, " if report.of_weight else ""
    return f"{of_weight}asked for more than {floor_in_words(report.min_score)}"


def kinds_above(report: Report) -> tuple[str, str]:
    """How many kinds of outlier are above the floor: the figure, and what it is."""
    n_above = sum(not kind.told for kind in report.kinds)
    return f"{n_above} of {len(report.kinds)}", f"with F1 above {floor_in_words(report.min_score)}"


def about_kind(kind: KindView) -> str:
    """What stands beside the heading of a kind of outlier."""
    text = counted(kind.rows, "row")
    if kind.n_rules:
        text += f", F1 {score_in_words(kind.score, 0.0)}"
    if kind.held_out is not None:
        text += f", on rows kept aside {score_in_words(kind.held_out, 0.0)}"
    return text


def falls(report: Verdicts, rule: RuleView) -> str:
    """Why a rule does not hold; empty where it does."""
    if rule.found_again is None:
        return ""
    own = "outliers" if report.has_outliers else f"rows of {rule.label}"
    return (
        "It falls apart on rows kept aside: rules that were learned without them find "
        f"{percent(rule.found_again)} of its {own} again."
    )


class Verdicts(Protocol):
    """Whatever says if there is a class of outliers: a report is one."""

    @property
    def has_outliers(self) -> bool: ...


def names(report: Verdicts, rule: RuleView | None = None) -> tuple[str, str]:
    """What the two groups of rows are called."""
    if report.has_outliers:
        return "outliers", "inliers"
    return (f"rows of {rule.label}" if rule else "rows", "other rows")


def times_as_common(outliers: float, inliers: float) -> str:
    """How much commoner a clause is among outliers; empty where that says nothing."""
    if not inliers or not outliers:
        return ""
    ratio = outliers / inliers
    if ratio >= 1.5:
        return f"{ratio:,.0f}× as common" if ratio >= 10 else f"{ratio:.1f}× as common"
    return ""


def other_rules(report: Report) -> str:
    """What stands below the number of rules."""
    if report.n_rules > report.n_outlier_rules:
        return f"and {report.n_rules - report.n_outlier_rules:,} for inliers"
    if report.rest:
        return f"everything else is {a_label(report, report.rest.label)}"
    return f"at most {counted(report.longest, 'attribute')} each"


def length_aside(report: Report) -> str:
    bounds = counted(report.n_bounds, "bound")
    if report.costly_length is not None:
        return f"{report.costly_length:,} with what columns cost; {bounds}"
    if report.n_rules > report.n_outlier_rules:
        return f"{report.outlier_length:,} in the outlier rules; {bounds} in all"
    mean = report.total_length / report.n_rules if report.n_rules else 0.0
    return f"{mean:.1f} attributes a rule, {bounds}"


def a_label(report: Verdicts, label: str) -> str:
    if not report.has_outliers:
        return label
    return f"{'an' if label[:1] in 'aeiou' else 'a'} {label}"


def about(report: Verdicts, rule: RuleView) -> str:
    """What a rule gets right, and what it adds beyond the others."""
    wrong = rule.rows - rule.hits
    own, others = names(report, rule)
    if report.has_outliers and not rule.is_outlier:
        own, others = others, own
    if rule.rows == 1:
        a = "" if rule.hits else "not "
        text = f"The one row that it covers is {a}{a_label(report, rule.label)}."
    else:
        verb = "decides" if rule.taken else "covers"
        text = f"It {verb} {number(rule.hits)} of {number(rule.n_own)} {own} and "
        text += f"{number(wrong) if wrong else 'none'} of {number(rule.n_others)} {others}."
    if rule.only == rule.hits:
        text += f" No other rule covers these {own}." if rule.hits > 1 else ""
    else:
        text += (
            f" It adds {number(rule.only) if rule.only else 'no'} {own} beyond the other rules; "
            f"{number(rule.hits - rule.only)} {'is' if rule.hits - rule.only == 1 else 'are'} "
            "covered by others too."
        )
    if rule.taken:
        one = rule.taken == 1
        text += (
            f" {counted(rule.taken, 'more row')} {'meets' if one else 'meet'} it and "
            f"{'is' if one else 'are'} decided by an earlier rule of another kind."
        )
    if rule.partition:
        text += (
            f" Below, its clauses are held against the rows of partition {rule.partition}, where "
            f"there are {number(rule.n_outliers)} {names(report, rule)[0]} and "
            f"{number(rule.n_inliers)} {names(report, rule)[1]}."
        )
    return text


def inlier_fold(report: Report) -> str:
    """The line that the inlier rules are folded under."""
    n = report.n_rules - report.n_outlier_rules
    rows, hits = report.inlier_rows
    verb = "describes" if n == 1 else "describe"
    return (
        f"{counted(n, 'rule', spelled=True)} {verb} the inliers: {number(rows)} rows, "
        f"{percent(hits / rows if rows else 0.0)} right"
    ).capitalize()


def folded(report: Report) -> str:
    """What the page leaves out so that it stays small."""
    listed = len(report.rules) + len(report.inlier_rules)
    parts = []
    if report.n_detailed < listed:
        parts.append(
            f"The first {counted(report.n_detailed, 'rule')} can be opened; the other "
            f"{listed - report.n_detailed:,} are listed without histograms and SQL to keep this "
            "file small."
        )
    if report.n_unlisted:
        parts.append(f"{counted(report.n_unlisted, 'more rule')} not listed here.")
    if parts:
        parts.append("All of them are in the JSON, SQL and text that stair writes.")
    return " ".join(parts)


def missed(report: Report) -> str:
    assert report.missed is not None
    n, false = report.missed.rows, report.false_alarms
    if not n:
        text = "Nothing: every outlier is covered by an outlier rule."
    else:
        share = percent(n / report.n_outliers)
        verb = "is" if n == 1 else "are"
        text = f"{counted(n, 'outlier')} ({share}) {verb} covered by no outlier rule."
    if report.n_mistaken:
        verb = "is" if report.n_mistaken == 1 else "are"
        text += f" {counted(report.n_mistaken, 'outlier')} {verb} taken for another kind."
    if false:
        verb = "is" if false == 1 else "are"
        text += f" {counted(false, 'inlier')} {verb} called outliers by the rules."
    else:
        text += " No inlier is called an outlier."
    return text


def overlap(report: Report) -> str:
    assert report.overlap is not None
    things = "outlier" if report.has_outliers else "row"
    parts = [
        f"{counted(n, thing=things)} by {counted(depth, 'rule', spelled=True)}"
        for depth, n in report.overlap.depths[:4]
    ]
    more = sum(n for _, n in report.overlap.depths[4:])
    if more:
        parts.append(f"{counted(more, thing=things)} by more")
    mixed = not report.has_outliers or report.n_rules > report.n_outlier_rules
    first = " Where rules for different labels meet, the first decides." if mixed else ""
    return f"Covered: {', '.join(parts)}.{first}"


def learned(report: Report) -> str:
    last = report.steps[-1]
    text = (
        f"The rules were divided step by step, the cheapest split first, until {report.score_name} "
        f"was above {floor_in_words(report.min_score)}. "
    )
    if last.total_length > report.total_length:
        text += (
            f"They grew to a total length of {last.total_length:,} and were cut back "
            f"to {report.total_length:,}, as far as the floor allows. "
        )
    return text + "The dot marks the rules of this report."


def frontier(report: Report) -> str:
    """What the curve of length against score shows."""
    together = " of all kinds together" if report.kinds else ""
    score = f"{report.score_name[:1].upper()}{report.score_name[1:]}{together}"
    text = (
        f"{score} as the {whose(report)}rules are taken one by one, those first "
        "that add most for their length. The dot marks the rules of this report"
    )
    more = beyond(report.frontier, report.chosen)
    return f"{text}; dashed is what one more rule would add." if more else f"{text}."


def whose(report: Report) -> str:
    return "outlier " if report.finds_outliers else ""


def pairs(steps: Sequence[Point], x: str, y: str) -> list[tuple[float, float]]:
    return [(getattr(step, x), getattr(step, y)) for step in steps]
