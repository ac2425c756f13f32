"""How rules travel: versioned JSON that reads back to an equal rule set and executes nothing."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stair.data.frame import Array
from stair.data.reading import regular_file
from stair.errors import StairError
from stair.export.endings import Endings, written
from stair.export.json_reader import parsed, read_rules, shown
from stair.rules.agreement import predicted_labels
from stair.rules.document import FORMAT, VERSION, document_of, new_records
from stair.rules.reasons import Reasons
from stair.rules.record import Record
from stair.rules.rule_set import Explanation, RuleSet
from stair.rules.schema import Field
from stair.verdict.codebook import Codebook

if TYPE_CHECKING:
    from stair.evidence.findings import Findings


@dataclass(frozen=True, slots=True)
class Rulebook(Endings):
    """What a rules file holds: the rules with their records, how they were learned, and what is to
    be said of the file.

    It predicts, explains and exports as the summary that was saved; the rules know their counts.
    `kept` are all rules of the file, and `records` what is kept of each; `rules` are those in
    force: a retired rule covers nothing, and a retired exception takes nothing.
    """

    kept: RuleSet
    facts: dict[str, Any]
    notes: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    exception_records: tuple[Record, ...] = ()
    rules: RuleSet = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.records:
            made = new_records(self.kept.rules, self.source, self.kept.totals)
            object.__setattr__(self, "records", made)
        if not self.exception_records:
            ids = (record.id for record in self.records)
            made = new_records(self.kept.exceptions, self.source, self.kept.totals, ids)
            object.__setattr__(self, "exception_records", made)
        has_all = len(self.in_force) == len(self.kept)
        rules = self.kept if has_all else self.kept.with_rules(self.in_force)
        pairs = zip(self.kept.exceptions, self.exception_records, strict=True)
        exceptions = tuple(rule for rule, record in pairs if record.status != "retired")
        if len(exceptions) < len(rules.exceptions):
            rules = replace(rules, exceptions=exceptions)
        object.__setattr__(self, "rules", rules)

    @property
    def in_force(self) -> tuple[int, ...]:
        """The places in `kept` of the rules that are not retired, which is how `rules` has them."""
        return tuple(k for k, each in enumerate(self.records) if each.status != "retired")

    def expired(self, on: dt.date) -> tuple[int, ...]:
        """The places in `kept` of rules in force that were meant until a day before this one."""
        return tuple(k for k in self.in_force if self.records[k].has_expired(on))

    def totals_of(self, number: int) -> tuple[float, ...]:
        """The rows of each class among those that the counts of a rule in force (by its number from
        1) are of: rules that came later were counted on other rows."""
        evidence = self.records[self.in_force[number - 1]].evidence
        return self.kept.totals if evidence is None else evidence.totals

    def share_of(self, number: int) -> float:
        """Of all rows with the rule's label that it was counted on, the part that it covers."""
        rule = self.rules.rules[number - 1]
        total = self.totals_of(number)[self.rules.classes.index(rule.label)]
        return rule.hits / total if total else math.nan

    @property
    def fields(self) -> tuple[Field, ...]:
        """What the rules may speak of."""
        return self.rules.schema.fields

    @property
    def codebook(self) -> Codebook | None:
        """Which values of the label meant which class; None where the file does not say so."""
        values, others = self.facts.get("label_values"), self.facts.get("other_values")
        n_classes = len(self.rules.classes)
        if not isinstance(values, list) or len(values) != n_classes:
            return None
        scalars = (str, int, float)
        if not all(isinstance(s, list) and all(isinstance(v, scalars) for v in s) for s in values):
            return None
        is_class = isinstance(others, int) and 0 <= others <= n_classes
        return Codebook(tuple(map(tuple, values)), others if is_class else None)

    @property
    def source(self) -> str:
        """The name of the data that the rules were learned from; empty where it is not known."""
        return str(self.facts.get("source", ""))

    @property
    def score(self) -> float:
        """The score on the rows that were learned from; NaN where it is not known."""
        return float(self.facts.get("score", math.nan))

    def predict(self, new: object) -> Array:
        """The label of each row of a table of any kind, or of a file, as the label column had
        it."""
        return predicted_labels(self.rules, self.codebook, new)

    def explain(self, row: object) -> Explanation:
        """Why this row is, or is not, an outlier by the rules: a mapping, a Series, a frame."""
        return self.rules.explain(row)

    def reasons(self, X: object, flagged: object = None) -> Reasons:
        """Why each row of a table is flagged, by the rules or by whoever says so with `flagged`."""
        return self.rules.reasons(X, flagged)

    def to_json(self, path: str | Path | None = None) -> str:
        """The same file again."""
        return written(to_json(self), path)

    def __str__(self) -> str:
        return self.to_sentences()

    def _repr_html_(self) -> str:
        return self.rules._repr_html_()


def to_json(summary: Findings | Rulebook) -> str:
    """The rules of a summary, with the fields they speak of and the facts about them."""
    if isinstance(summary, Rulebook):
        return document_of(summary.kept, summary.facts, summary.records, summary.exception_records)
    return document_of(summary.rules, facts_of(summary))


def facts_of(summary: Findings) -> dict[str, object]:
    """What a rules file says of rules beside themselves."""
    return {
        "method": summary.method,
        "score": summary.score_of_rows,
        "score_name": summary.score_name,
        "floor": summary.min_score,
        "total_length": summary.rules.total_length,
        "rows": summary.n_rows,
        "rows_without_rule": summary.rest.rows,
        "label": summary.meaning,
        "source": summary.source,
        "bounds": summary.rules.n_bounds,
        "held_out": list(summary.held_out),
        **_holding(summary),
        **_wished(summary),
        **_labels(summary),
        "left_out": dict(summary.left_out),
        "settings": dict(summary.settings),
        "versions": dict(summary.versions),
    }


def _holding(summary: Findings) -> dict[str, object]:
    """Whether the rules hold, how each kind of outlier does, and what one more rule would add."""
    found: dict[str, object] = {}
    if summary.check is not None:
        found["holds"] = summary.check.conclusion
        found["held_out_score"] = summary.check.score
        found["found_again"] = list(summary.check.found_again)
    if summary.kinds:
        found["kinds"] = [
            {"label": kind.label, "rows": kind.rows, "score": kind.score, "reached": kind.reached}
            for kind in summary.kinds
        ]
        found["outliers_without_rule"] = summary.unexplained
    if summary.further is not None:
        found["next_rule"] = {
            "words": str(summary.further.rule),
            "length": summary.further.rule.length,
            "outliers": summary.further.outliers,
            "score": summary.further.score,
        }
    return found


def _wished(summary: Findings) -> dict[str, object]:
    """What became of wishes, and what the rules come to by weight; all else is of rows."""
    found: dict[str, object] = {}
    if summary.outcomes:
        found["wishes"] = [
            {"name": each.name, "asked": each.asked, "met": each.is_met,
             "got": None if math.isnan(each.got) else each.got}
            for each in summary.outcomes
        ]  # fmt: skip
    if summary.costly_length is not None:
        found["length_with_costs"] = summary.costly_length
    weighed = summary.weighed
    if weighed is not None:
        figures = {"total": weighed.total, "outliers": weighed.outliers, "alerts": weighed.alerts,
                   "hits": weighed.hits, "precision": weighed.precision, "recall": weighed.recall,
                   "score": float(summary.score)}  # fmt: skip
        known = {name: value for name, value in figures.items() if math.isfinite(value)}
        found["weights"] = {"name": weighed.name, **known}
    return found


def _labels(summary: Findings) -> dict[str, object]:
    """How all rules together did, and what the values of the label mean: to judge them again."""
    found: dict[str, object] = {}
    precision, recall = summary.precision_of_rows, summary.recall_of_rows
    if math.isfinite(precision) and math.isfinite(recall):
        found |= {"precision": precision, "recall": recall}
    if summary.codebook is not None:
        found["label_values"] = [list(of_class) for of_class in summary.codebook.values]
        found["other_values"] = summary.codebook.others
    return found


# What files of an older version do not say, and what is made of it.
_OLDER: Final = {
    1: "does not say of which types its values are; they are told from the rules",
    2: "does not say which rules are accepted; all are candidates",
}


def from_json(text: str, source: str = "the rules") -> Rulebook:
    """Read rules back. A broken or unknown file gets one plain sentence."""
    try:
        document = parsed(text)
    except (ValueError, RecursionError) as error:  # a text that no file holds is one of the former
        why = str(error).splitlines()[0]
        raise StairError(f"{source} is not JSON ({why}); expected rules saved by stair") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StairError(f"{source} has no stair rules in it; expected rules saved by stair")
    version: Any = document.get("version")
    if isinstance(version, bool) or version not in range(1, VERSION + 1):
        raise StairError(
            f"{source} has version {shown(version)} of the format, but this stair reads versions 1 "
            f"to {VERSION}; install a newer stair or save the rules again"
        )
    try:
        rules, facts, records, of_exceptions = read_rules(document, int(version))
    except ValueError as error:
        raise StairError(f"{source} is damaged ({error}); save the rules again") from None
    notes = (f"{source} is of an older stair and {_OLDER[version]}",) if version < VERSION else ()
    return Rulebook(rules, facts, notes, records, of_exceptions)


def load(path: str | Path) -> Rulebook:
    """Read a rules file."""
    path = regular_file(path, "rules saved by stair")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise StairError(f"{path.name} is not text; expected rules saved by stair") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StairError(f"cannot read {path}: {why.lower()}") from None
    return from_json(text, path.name)
