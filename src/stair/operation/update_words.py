"""An update of a rulebook in words: for a terminal, and as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stair.errors import visible
from stair.export.answers import answer
from stair.export.text import fit
from stair.operation.words import opening, rules_in_words, wrapped
from stair.rules.figures import percent, score_in_words

if TYPE_CHECKING:
    from stair.operation.update import Update


def to_text(found: Update, width: int = 80) -> str:
    """As a terminal shows it."""
    rules = found.summary.rules
    n_kept = len(rules) - len(found.added)
    evidence = found.summary.evidence
    rows = [
        (f"{number}  {each.rule.in_words()}", _kind(found, number), f"{each.rows:,}",
         percent(each.precision) if each.rows else "–", percent(each.share))
        for number, each in enumerate(evidence, start=1)
    ]  # fmt: skip
    head = (f"Rules in force: {n_kept} accepted, {len(found.added)} learned", "", "rows", "right",
            "of outliers")  # fmt: skip
    lines = [visible(opening(found.check)), "", *fit(head, rows, width), ""]
    return "\n".join([*lines, *wrapped(sentences(found), width)])


def _kind(found: Update, number: int) -> str:
    if number not in found.added:
        return "accepted"
    return "again" if number in found.again else "NEW"


def sentences(found: Update) -> list[str]:
    """What has become of the rulebook, and what is for a person to do."""
    summary, floor = found.summary, found.summary.min_score
    name, n = summary.score_name, len(found.added)
    score = score_in_words(summary.score, floor, 3)
    floor_in_words = f"{'above' if found.floor_reached else 'NOT above'} the floor of {floor:g}."
    if len(summary.rules) > n:
        before = score_in_words(found.score_before, floor, 3)
        said = [f"The accepted rules alone have {name} {before}; all rules have {score}, "
                f"{floor_in_words}"]  # fmt: skip
    else:
        said = [f"{name} {score}, {floor_in_words}"]
    if not n:
        said.append("No rule is added.")
    certificate, length = found.certificate, sum(summary.rules[k - 1].length for k in found.added)
    if n and certificate is not None and certificate.bound == length:
        said.append(
            f"The additional length is {length:,}; among {certificate.n_candidates:,} candidates "
            "no choice is shorter."
        )
    said += [
        f"Rule {each.number} of the file ({each.rule.in_words()}) {_verb(each.state)}: retire it "
        f"with stair mark RULEBOOK {each.record.id} --status retired."
        for each in found.retire
    ]
    if found.gone:
        words = "; ".join(rule.in_words() for rule, _ in found.gone)
        said.append(f"Candidates that are not there any more: {words}.")
    if found.expired:
        said.append(f"Past the last day: {rules_in_words(found.expired)} of the file.")
    check = summary.check
    if n and check is not None:
        said.append(f"Learned like this, all rules {check.conclusion}: {name} "
                    f"{score_in_words(check.score, floor, 3)} on rows kept aside.")  # fmt: skip
    return said + [f"Note: {note}." for note in found.notes]


def _verb(state: str) -> str:
    return "cannot be asked" if state == "cannot be asked" else f"has {state}"


def to_json(found: Update) -> str:
    """For programs: see the schema `update`."""
    summary, book = found.summary, found.book
    ids = [book.records[k].id for k in book.in_force]
    certificate = found.certificate
    return answer("update", {
        "source": summary.source,
        "rulebook": found.before.source,
        "rows": summary.n_rows,
        "outliers": summary.n_outliers,
        "written": found.is_written,
        "changed": found.has_changed,
        "score_name": summary.score_name,
        "floor": summary.min_score,
        "floor_reached": found.floor_reached,
        "score": summary.score,
        "score_before": found.score_before,
        "total_length": summary.rules.total_length,
        "added_length": sum(summary.rules[k - 1].length for k in found.added),
        "bound": 0 if certificate is None else certificate.bound,
        "rules": [
            {
                "id": ids[number - 1],
                "number": number,
                "status": book.records[book.in_force[number - 1]].status,
                "words": str(each.rule),
                "added": number in found.added,
                "again": number in found.again,
                "rows": each.rows,
                "hits": each.hits,
            }
            for number, each in enumerate(summary.evidence, start=1)
        ],
        "retire": [
            {"id": s.record.id, "words": str(s.rule), "state": s.state} for s in found.retire
        ],
        "gone": [{"id": record.id, "words": str(rule)} for rule, record in found.gone],
        "expired": [found.check[number].record.id for number in found.expired],
        "notes": list(found.notes),
    })  # fmt: skip
