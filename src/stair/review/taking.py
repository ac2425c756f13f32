"""What a person takes away: labelled rows, accepted rules, a report of the review."""

from __future__ import annotations

import io
import re
import tempfile
import zipfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
from markupsafe import Markup
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from stair.data import write_table
from stair.data.frame import Array
from stair.errors import StairError
from stair.export.json import Rulebook, from_json, to_json
from stair.export.kinds import export
from stair.learn.method import Learned
from stair.report import hash_of, source
from stair.review import pages
from stair.review.judged import WORDS
from stair.review.kept import rulebook_of
from stair.review.revision import Now
from stair.review.session import Review, with_own_scores
from stair.rules.counted import count
from stair.rules.match import first_covering
from stair.summary import summary_of

ENDINGS: Final = {"text": "txt", "markdown": "md", "json": "json", "sql": "sql", "pandas": "py",
                  "polars": "py", "python": "py", "onnx": "onnx", "pmml": "pmml",
                  "great-expectations": "json", "soda": "yml", "sigma": "yml",
                  "dbt": "zip"}  # fmt: skip
FORMULA: Final = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.A)
MOST_DETAILED: Final = 60  # rules of the report that have histograms


def labelled(review: Review, now: Now, *, is_text: bool = False) -> dict[str, Array]:
    """The table with the detector's verdict, the rule that matches and what the person said.

    `is_text` where it is for a file that has no types, as CSV.
    """
    given, judged = review.given, now.judged
    n_rows = given.frame.n_rows
    rules = now.revision.summary.rules
    names = np.array([rules.label_name(c) for c in given.verdict.classes] + [None], dtype=object)
    matched = np.full(n_rows, None, dtype=object)
    texts = np.array([str(rule) for rule in rules] + [None], dtype=object)
    matches = rules.matches(given.values)
    matched[given.rows] = texts[matches.numbers]
    words = np.array([None, *WORDS[1:]], dtype=object)
    own = {"stair_label": names[given.verdict.codes], "stair_rule": matched}
    if rules.exceptions:
        taking = np.array([*map(str, rules.exceptions), None], dtype=object)
        excepted = np.full(n_rows, None, dtype=object)
        excepted[given.rows] = taking[first_covering(matches.lifted)]
        own["stair_exception"] = excepted
    own |= {"stair_review": words[judged.marks], "stair_note": review.notes(now)}
    table = dict(given.frame.columns)
    for name, values in own.items():
        while name in table:
            name += "_"
        table[name] = _harmless(values) if is_text else values
    return table


def _harmless(values: Array) -> Array:
    """Our own words for a file that a spreadsheet opens: what it would take for a formula is text.

    The table's own columns stay as they are: they are not ours to change.
    """
    found = values.copy()
    for place, text in enumerate(values.tolist()):
        if text is not None and FORMULA.match(text) and not NUMBER.fullmatch(text):
            found[place] = "'" + text
    return found


def rows(review: Review, now: Now, kind: str) -> Response:
    """Written to a file first, so that a large table is never in memory as text."""
    if kind not in ("csv", "parquet"):
        raise StairError(f"rows can be taken as csv or parquet, not as {kind}")
    folder = tempfile.TemporaryDirectory(prefix="stair-")
    try:
        path = Path(folder.name) / f"rows.{kind}"
        write_table(path, labelled(review, now, is_text=kind == "csv"))
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        filename=f"{pages.stem_of(review)}-reviewed.{kind}",
        background=BackgroundTask(folder.cleanup),
    )


def accepted(review: Review, now: Now) -> Rulebook:
    """The rules that were called true outliers, counted against the labels after the review."""
    places = pages.accepted_rules(review, now)
    if not places:
        raise StairError("no rule is accepted yet; judge one as true outliers first")
    rules = now.revision.summary.rules.with_rules(places)
    given = review.given.relabelled(now.judged.codes[review.given.rows], "labels as reviewed")
    if rules.exceptions:  # what they take is counted against the same labels
        rules = count(rules, given.values, given.codes).recounted
    rules = with_own_scores(rules, given)
    summary = summary_of(given, Learned(rules, ()), now.revision.settings)
    return from_json(to_json(summary), "the review")


def rulebook(review: Review, now: Now) -> Response:
    """All rules with what was said of them, as a file to go on with next month."""
    return _download(to_json(rulebook_after(review, now)), f"{pages.stem_of(review)}-rulebook.json")


def rulebook_after(review: Review, now: Now) -> Rulebook:
    """The rules in use as they were, new rules counted by the labels as reviewed, and the verdicts
    as the status of rules."""
    rules, given = now.revision.summary.rules, review.given
    if now.state.n_decisions:
        given = given.relabelled(now.judged.codes[given.rows], "labels as reviewed")
    rules = with_own_scores(count(rules, given.values, given.codes).recounted, given)
    summary = summary_of(given, Learned(rules, ()), now.revision.settings)
    groups = [group for group in now.revision.groups if group.number is not None]
    found = ((group.said, now.verdict(group.key)) for group in groups)
    verdicts = {said: event for said, event in found if event is not None}
    return rulebook_of(review.book, now.revision, summary, verdicts)


def rules(review: Review, now: Now, kind: str, dialect: str, form: str) -> Response:
    saved = accepted(review, now)
    stem = pages.stem_of(review)
    if kind == "dbt":
        content: str | bytes = _zipped(saved.to_dbt(None, stem, dialect))
    else:
        content = export(saved, kind, stem, dialect, form)
    name = f"{pages.stem_of(review)}-rules.{ENDINGS[kind]}"
    return _download(content, name)


def _zipped(files: Mapping[str, str]) -> bytes:
    """A folder as one file, the same bytes whenever it is made."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return buffer.getvalue()


def report(review: Review, now: Now) -> Response:
    """The review as one HTML file: what was judged, by how many decisions, and on what evidence."""
    groups = [group for group in now.revision.groups if group.is_judged]
    style = source("page.css") + source_of("report.css")
    views = [
        now.revision.view(group) if group.number is not None and k < MOST_DETAILED else None
        for k, group in enumerate(groups)
    ]
    text = pages.render(
        "report.html",
        review=review,
        report=now.revision,
        revision=now.revision,
        summary=now.revision.summary,
        groups=list(zip(groups, views, strict=True)),
        kinds=[pages.kind_of(now.revision, group) for group in groups],
        state=now.state,
        now=now,
        judged=now.judged,
        names=pages.names_of(now.revision.finds_outliers),
        headline=now.revision.headline,
        effort=pages.effort(now),
        side=pages.side_of(review, now),
        counts=[(word, now.judged.count(code)) for code, word in enumerate(WORDS) if code],
        cause=pages.cause(now.revision),
        style=Markup(style),  # our own file, no data in it
        policy=f"default-src 'none'; style-src '{hash_of(style)}'; base-uri 'none'; "
        "form-action 'none'",
    )
    return _download(text, f"{pages.stem_of(review)}-review.html")


def source_of(name: str) -> str:
    return resources.files("stair.review").joinpath("templates", name).read_text("utf-8")


def _download(content: str | bytes, name: str) -> Response:
    data = content.encode() if isinstance(content, str) else content
    plain = name.encode("ascii", "replace").decode().replace("?", "_")
    headers = {"Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(data, media_type="application/octet-stream", headers=headers)
