"""The start page's questions about a file: which columns, whose verdict, which rules."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Final

from stair.data import read
from stair.errors import StairError
from stair.learn.table import choose_fields
from stair.review.desk import Opening
from stair.review.forms import Form
from stair.verdict.codebook import text_of
from stair.verdict.labels import read_labels

LIKELY: Final = ("label", "flag", "outlier", "anomal", "fraud", "target", "class", "y", "attack")


def columns_of(path: Path) -> tuple[list[tuple[str, str, list[str]]], int, str | None]:
    """Each column with its kind and its values where it may be a label; the likely label."""
    frame = read(path)
    fields, left_out = choose_fields(frame, time_parts=False)
    kinds = {f.source: f.kind for f in fields}
    found, guess, best = [], None, len(LIKELY)
    for name, array in frame.columns.items():
        classes: list[str] = []
        with contextlib.suppress(StairError):
            codebook = read_labels(array, name=name).codebook
            classes = [text_of(v) for v in codebook.names or ()] if codebook else []
        found.append((name, str(kinds.get(name) or left_out.get(name, "left out")), classes))
        rank = next((k for k, word in enumerate(LIKELY) if word in name.casefold()), len(LIKELY))
        if classes and rank < best and (LIKELY[rank] != "y" or name.casefold() == "y"):
            guess, best = name, rank
    return found, frame.n_rows, guess


def wanted_of(path: Path, form: Form) -> Opening:
    """What a filled form asks for."""

    by = form.get("by", "")
    columns, used = form.getlist("column"), set(form.getlist("use"))
    label = form.get("label", "") if by == "label" else None
    unused = tuple(name for name in columns if name not in used and name != label)
    if columns and len(unused) == len([c for c in columns if c != label]):
        raise StairError("no column is ticked; the rules need at least one to speak of")
    return Opening(
        path,
        label=label or None,
        negative=(form.get("normal", "") or None) if by == "label" else None,
        detector=(form.get("detector", "") or None) if by == "detector" else None,
        contamination=_share(form.get("contamination", "")) if by == "detector" else None,
        exclude=unused,
        method=form.get("method", "") or "distilled",
        min_score=number(form.get("floor", "") or "0.8", "floor"),
        max_rule_length=int(number(form.get("longest", "") or "10", "longest rule")),
    ).check()


def whole(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise StairError(f'{what} is "{text[:40]}"; expected a whole number')
    return int(text)


def number(text: str, what: str) -> float:
    found = math.nan
    with contextlib.suppress(ValueError):
        found = float(text)
    if not math.isfinite(found):
        raise StairError(f'the {what} is "{text[:40]}"; expected a number')
    return found


def _share(text: str) -> float | None:
    """The share of rows to call outliers, given in percent."""
    if not text:
        return None
    share = number(text, "share of outliers") / 100
    if not 0 < share <= 0.5:
        raise StairError(f"{text[:40]} percent of the rows as outliers; expected up to 50")
    return share
