"""Whether what is said of a row is true: its rule, its values, and how many inliers are such, by
plain counting."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fuzz import library, oracle

MOST_ROWS = 25


def untrue(
    summary: Any,
    document: oracle.Document,
    columns: oracle.Columns,
    truth: Sequence[Any],
    numbers: Sequence[int],
) -> Iterator[tuple[str, Any, Any]]:
    """What the reasons of the outliers that were learned from say that is not so: what about, what
    is so, and what is said."""
    rows = [row for row, label in enumerate(truth) if label is not None]
    flagged = dict(zip(rows, summary.is_outlier().tolist(), strict=True))
    chosen = [row for row in rows if flagged[row]]
    reasons = summary.reasons()
    yield "how many", len(chosen), len(reasons)
    inliers = _inliers(summary, rows, truth, flagged)
    values: dict[str, list[Any] | None] = {}
    for place, row in list(enumerate(chosen))[:: max(1, len(chosen) // MOST_ROWS)]:
        reason = reasons[place]
        yield "rule", numbers[row] or None, reason.rule
        yield "label", oracle.label_of(document, numbers[row]), reason.label
        yield "words", reasons.words[place], str(reason)
        yield (
            "document",
            json.loads(reasons.documents[place]),
            json.loads(json.dumps(reason.to_dict())),
        )
        if reason.rule is not None and reason.clauses:
            rule = oracle.in_force(document)["rules"][reason.rule - 1]
            yield (
                "clauses",
                [c["feature"] for c in rule["clauses"]],
                [t.feature for t in reason.clauses],
            )
        for trait in (*reason.clauses, *reason.unusual):
            if trait.feature not in values:
                values[trait.feature] = _read(document, columns, trait.feature)
            read = values[trait.feature]
            if read is None:
                continue
            yield "value", _plain(read[row]), _plain(trait.value)
            yield from _figure(trait.figure, read[row], [read[k] for k in inliers])
        if reason.own is not None:
            yield from _own(reason.own, document, columns, values, rows, flagged, row)


def _inliers(
    summary: Any, rows: Sequence[int], truth: Sequence[Any], flagged: dict[int, bool]
) -> list[int]:
    rules = summary.rules
    if rules.positive is not None:
        return [row for row in rows if not flagged[row]]
    if any(rule.label == rules.default for rule in rules):  # classes side by side
        return list(rows)
    return [row for row in rows if truth[row] == rules.default]


def _read(document: oracle.Document, columns: oracle.Columns, name: str) -> list[Any] | None:
    """The values of a field; None where the documents do not say how they are read."""
    field = next(f for f in document["fields"] if f["name"] == name)
    try:
        return oracle.read_field(field, columns, oracle.type_of(field, document))
    except (oracle.RefusedError, oracle.UnsureError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else int(value.astype("datetime64[us]").astype(np.int64))
    if isinstance(value, np.generic):
        value = value.item()
    return None if oracle.is_missing(value) else value


def _figure(figure: Any, value: Any, others: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    """A share of inliers is that of so many, or of so many at least."""
    if not figure.side:
        return
    there = [v for v in others if v is not None]
    share = figure.share
    if value is None:
        yield "share of missing", True, _is(share, len(others) - len(there), len(others))
    elif figure.side == "above":
        yield "share below", True, _at_most(share, sum(v < value for v in there), len(there))
    elif figure.side == "below":
        yield "share above", True, _at_most(share, sum(v > value for v in there), len(there))
    else:
        n = sum(oracle.is_same(v, value) for v in there)
        below = len(there) if isinstance(value, int | float) and not isinstance(value, bool) else 0
        wholes = {len(others), below} - {0}  # numbers among those that have one
        if figure.side == "at most":
            yield "share of others", True, any(n <= share * m + 1e-9 for m in wholes)
        else:
            yield "share of equal", True, any(_is(share, n, m) for m in wholes)


def _is(share: float, n: int, of: int) -> bool:
    return of > 0 and math.isclose(share, n / of, rel_tol=1e-9, abs_tol=1e-12)


def _at_most(share: float, n: int, of: int) -> bool:
    return of > 0 and share <= n / of + 1e-9


def _own(
    own: Any,
    document: oracle.Document,
    columns: oracle.Columns,
    values: dict[str, list[Any] | None],
    rows: Sequence[int],
    flagged: dict[int, bool],
    row: int,
) -> Iterator[tuple[str, Any, Any]]:
    """A rule of one row is true of it, and of as many others as it says."""
    clauses = library.clauses_as_documents(own.clauses)
    for clause in clauses:
        if clause["feature"] not in values:
            values[clause["feature"]] = _read(document, columns, clause["feature"])
    if not clauses or any(values[c["feature"]] is None for c in clauses):
        return

    def meets(k: int) -> bool:
        return all(oracle.meets(c, values[c["feature"]][k]) for c in clauses)  # type: ignore[index]

    yield "own rule", True, meets(row)
    yield "own rule, flagged rows", sum(meets(k) for k in rows if flagged[k]), own.flagged
    yield "own rule, inliers", sum(meets(k) for k in rows if not flagged[k]), own.inliers
