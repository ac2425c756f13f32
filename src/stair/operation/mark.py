"""`stair mark`: what a person says of rules in a file, with nothing else in it changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stair.data.lock import held
from stair.errors import StairError, check_choice, folded, option
from stair.export.answers import answer
from stair.export.json import Rulebook, load
from stair.rules.record import STATUSES, Record


def marked(
    book: Rulebook,
    ids: Sequence[str],
    *,
    status: str | None = None,
    owner: str | None = None,
    note: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Rulebook:
    """The rulebook with this said of rules and exceptions, by their ids or the numbers (from 1) of
    rules in force; of all rules where none is named. An empty text takes back what was said."""
    said: dict[str, Any] = {"status": status, "owner": owner, "note": note, "since": since,
                            "until": until}  # fmt: skip
    said = {name: value for name, value in said.items() if value is not None}
    if not said:
        raise StairError(
            f"what is to be said of the rules? Give {option('status')}, {option('owner')}, "
            f"{option('note')}, {option('since')} or {option('until')}"
        )
    if status is not None:
        check_choice("status", status, STATUSES)
    for name in ("since", "until"):
        if said.get(name):
            said[name] = _day(name, said[name])
    wanted = {_id_of(book, each) for each in ids} or {r.id for r in book.records}

    def with_it(records: Sequence[Record]) -> tuple[Record, ...]:
        return tuple(replace(r, **said) if r.id in wanted else r for r in records)

    return replace(
        book, records=with_it(book.records), exception_records=with_it(book.exception_records)
    )


def mark(path: str | Path, ids: Sequence[str], **said: Any) -> Rulebook:
    """The same in a file, while nobody else changes it."""
    with held(path):
        book = marked(load(path), ids, **said)
        book.to_json(path)
    return book


def to_json(book: Rulebook) -> str:
    """All rules of a file for programs: see the schema `mark`."""
    kept = [*book.kept.rules, *book.kept.exceptions]
    records = [*book.records, *book.exception_records]
    return answer("mark", {
        "source": book.source,
        "rules": [
            {
                "id": record.id, "words": str(rule), "status": record.status,
                "owner": record.owner, "note": record.note, "since": record.since,
                "until": record.until,
            }
            for rule, record in zip(kept, records, strict=True)
        ],
    })  # fmt: skip


def _id_of(book: Rulebook, given: str) -> str:
    known = [record.id for record in (*book.records, *book.exception_records)]
    if given in known:
        return given
    if given.isdecimal() and 1 <= int(given) <= len(book.rules):
        return book.records[book.in_force[int(given) - 1]].id
    raise StairError(
        f'no rule "{given}"; rules are named by their ids, {folded(known)}, or by their numbers, 1 '
        f"to {len(book.rules)}"
    )


def _day(name: str, given: str) -> str:
    try:
        return dt.date.fromisoformat(given).isoformat()
    except ValueError:
        raise StairError(f"{option(name, given)}; expected a day as 2026-05-02") from None
