"""What became of rules on new rows, as tables for a person and as JSON for a program."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stair.apply.outcome import Applied
from stair.export.answers import answer
from stair.export.json import Rulebook
from stair.export.text import fine_percent, fit, score_in_words
from stair.rules.counted import Counted, Figures
from stair.rules.objective import f1


def coverage_table(saved: Rulebook, applied: Applied, source: str, width: int) -> str:
    """The share of rows of each rule, when the rules were learned and now."""
    before = sum(saved.rules.totals)
    names = [saved.rules.label_name(label) for label in saved.rules.classes]
    labels = applied.labels(saved.rules)
    found = [labels[label] for label in saved.rules.classes]
    n_rows = applied.n_rows
    s = "s" if saved.rules.positive is not None else ""  # outliers and inliers; names stay names
    tally = ", ".join(f"{count:,} {name}{s}" for name, count in zip(names, found, strict=True))
    lines = [f"{source or 'data'}   {n_rows:,} rows: {tally}", ""]
    rows = [
        (
            f"{number}  {saved.rules.label_name(rule.label)}: {rule.in_words()}",
            fine_percent(_part(rule.rows, sum(saved.totals_of(number)))),
            fine_percent(int(now) / n_rows),
        )
        for number, (rule, now) in enumerate(
            zip(saved.rules.rules, applied.covered, strict=True), start=1
        )
    ]
    rows += [
        (
            f"exception {number}  but not where {rule.in_words()}",
            fine_percent(rule.rows / before if before and rule.counts else float("nan")),
            fine_percent(int(now) / n_rows),
        )
        for number, (rule, now) in enumerate(
            zip(saved.rules.exceptions, applied.lifted, strict=True), start=1
        )
    ]
    none = int(applied.decided[0]) / n_rows
    rows.append(("no rule", fine_percent(_learned_without_rule(saved)), fine_percent(none)))
    lines += fit(("Share of rows that each rule covers", "learned", "now"), rows, width)
    return "\n".join(lines)


def agreement_table(saved: Rulebook, now: Counted, name: str, width: int) -> str:
    """Precision, recall and F1 of all rules together and of each, when learned and now."""
    rules = saved.rules
    kinds = {str(k["label"]): k["score"] for k in saved.facts.get("kinds") or ()}
    numbered = list(enumerate(zip(rules, now.of_rules, strict=True), start=1))
    rows: list[tuple[str, ...]] = []
    for label, figures in now.of_labels.items():
        learned: tuple[float, ...] = (math.nan, math.nan, kinds.get(str(label), math.nan))
        if rules.positive is not None:
            learned = tuple(_fact(saved, name) for name in ("precision", "recall", "score"))
        rows.append((f"all rules: {rules.label_name(label)}", *_moved(learned, figures)))
        for number, (rule, own) in numbered:
            if rule.label == label:
                total = saved.totals_of(number)[rules.classes.index(label)]
                then = (rule.precision, saved.share_of(number), f1(rule.hits, rule.rows, total))
                rows.append((f"{number}  {rule.in_words()}", *_moved(then, own)))
    head = (f"Beside {name}, learned → now", "precision", "recall", "F1")
    lines = ["", *fit(head, rows, width)]
    if rules.positive is None and not kinds:
        accuracy = _arrow(_fact(saved, "score"), now.accuracy)
        lines.append(f" Accuracy of all rules together: {accuracy}.")
    return "\n".join(lines)


def _part(rows: float, of: float) -> float:
    return rows / of if of else math.nan


def _fact(saved: Rulebook, name: str) -> float:
    found = saved.facts.get(name)
    return float(found) if isinstance(found, int | float) else math.nan


def _moved(learned: Sequence[float], now: Figures) -> tuple[str, ...]:
    return tuple(map(_arrow, learned, (now.precision, now.recall, _f1(now))))


def _f1(figures: Figures) -> float:
    """Nothing is known of a class that no row has and none is said to have."""
    return figures.f1 if figures.rows or figures.total else math.nan


def _arrow(learned: float, now: float) -> str:
    return f"{_share(learned)} → {_share(now)}"


def _share(figure: float) -> str:
    return "–" if math.isnan(figure) else score_in_words(figure, 1.0)


def _learned_without_rule(saved: Rulebook) -> float:
    """The share of rows that no rule covered when the rules were learned; NaN if not known."""
    rows, of = (saved.facts.get(name) for name in ("rows_without_rule", "rows"))
    if isinstance(rows, int) and isinstance(of, int) and 0 <= rows <= of and of:
        return rows / of
    return math.nan


def to_json(saved: Rulebook, applied: Applied, source: str, label: str | None = None) -> str:
    """For programs: see the schema `apply`."""
    rules, now, before = saved.rules, applied.counted, sum(saved.rules.totals)
    labels = applied.labels(rules)
    figures = [None] * len(rules) if now is None else list(now.of_rules)
    return answer("apply", {
        "source": source,
        "rows": applied.n_rows,
        "labels": [{"label": each, "rows": labels[each]} for each in rules.classes],
        "without_rule": int(applied.decided[0]),
        "rules": [
            {
                "number": number, "id": saved.records[place].id, "label": rule.label,
                "words": str(rule), "learned": rule.rows / before if before else None,
                "covered": covered, "decided": decided, **_agreeing(own),
            }
            for number, (place, rule, covered, decided, own) in enumerate(
                zip(saved.in_force, rules, applied.covered.tolist(),
                    applied.decided[1:].tolist(), figures, strict=True), start=1,
            )
        ],
        "exceptions": [
            {"number": number, "words": str(rule), "rows": lifted}
            for number, (rule, lifted) in enumerate(
                zip(rules.exceptions, applied.lifted.tolist(), strict=True), start=1
            )
        ],
        "beside": label,
        "agreement": [] if now is None else [
            {"label": each, **_agreeing(own)} for each, own in now.of_labels.items()
        ],
        "notes": [*saved.notes, *applied.notes],
    })  # fmt: skip


def _agreeing(own: Figures | None) -> dict[str, float | None]:
    if own is None:
        return {"precision": None, "recall": None, "f1": None}
    return {"precision": own.precision, "recall": own.recall, "f1": _f1(own)}
