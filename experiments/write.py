"""Tables as CSV and Markdown, and figures from the CSV files beside them."""

from __future__ import annotations

import csv
import io as text_io
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from experiments import figures, tables
from experiments.claims import Claim, claims
from experiments.plan import (
    NAMES,
    OURS,
    PAPERS,
    PEERS,
    QUESTIONS,
    labels_task,
    neighbors_of,
    question_data,
    tasks_for,
)
from experiments.results import Results
from experiments.settings import Settings
from experiments.tables import NOT_RUN, Row
from stair.data import atomic_write

TITLES = {
    "q1": "Q1: total length of the rules",
    "q2": "Q2: F1 at the same total length",
    "q3": "Q3: the longest rule L_m, and the floor",
    "q4": "Q4: the number of partitions that L-STAIR starts with",
    "q5": "Q5: the partitions in two dimensions",
    "q6": "Q6: the stabilizer M as rules are divided",
    "q7": "Q7: Wine Quality, seven classes, accuracy",
    "lambda": "λ: what the paper's lengths of L-STAIR cost",
}


def write_all(folder: Path, asked: list[str], results: Results, names: list[str]) -> str:
    """Everything that the questions give; returns the claims as text."""
    by_question = {q: question_data(results.known, q, names) for q in QUESTIONS}
    for question in asked:
        _write_question(folder, question, results, by_question[question])
    _csv(folder / "seconds.csv", _seconds(asked, results, by_question))
    judged = claims(results, asked, by_question)
    lines = "\n".join(map(str, judged))
    if asked == list(QUESTIONS):
        _csv(folder / "claims.csv", [claim.row() for claim in judged])
        atomic_write(folder / "claims.md", _claims_page(judged, results))
    return lines


def _write_question(folder: Path, question: str, results: Results, names: list[str]) -> None:
    parts = [f"# {TITLES[question]}", _made_by(results, question, names)]
    if question in ("q1", "q7"):
        rows = tables.q1_rows(results, names)
        _csv(folder / f"{question}.csv", rows)
        parts += _lengths_page(rows, results)
        seconds = tables.q1_seconds(results, names)
        _csv(folder / f"{question}-seconds.csv", seconds)
        atomic_write(folder / f"{question}-seconds.md", _seconds_page(question, seconds))
    if question == "q2":
        rows = tables.q2_rows(results, names)
        _csv(folder / "q2.csv", rows)
        parts += _curve_page(rows)
        figures.curves(folder / "q2.csv")
    if question in ("q3", "q7"):
        for by, value in (("length", "L_m"), ("floor", "floor")):
            rows = tables.sweep_rows(results, names, by)
            _csv(folder / f"{question}-{by}.csv", rows)
            parts += _sweep_page(rows, value)
            figures.sweeps(folder / f"{question}-{by}.csv", value)
            parts.append(f"![{value}]({question}-{by}.svg)")
    if question in ("q4", "q7"):
        rows = tables.q4_rows(results, names)
        name = "q4" if question == "q4" else "q7-partitions"
        _csv(folder / f"{name}.csv", rows)
        parts += _starts_page(rows)
    if question in ("q5", "q7"):
        _csv(folder / f"{question}-map.csv", tables.map_rows(results, names))
        rows = tables.map_share_rows(results, names)
        _csv(folder / ("q5.csv" if question == "q5" else "q7-locality.csv"), rows)
        figures.maps(folder / f"{question}-map.csv")
        parts += _map_page(rows, question)
    if question in ("q6", "q7"):
        name = "q6" if question == "q6" else "q7-stabilizer"
        rows = tables.trace_rows(results, names)
        _csv(folder / f"{name}.csv", rows)
        figures.stabilizers(folder / f"{name}.csv")
        parts += _stabilizer_page(rows, names, name)
    if question == "lambda":
        rows = tables.locality_rows(results, names)
        _csv(folder / "lambda.csv", rows)
        parts += _locality_page(rows, results.known)
    atomic_write(folder / f"{question}.md", "\n\n".join(parts) + "\n")
    _provenance(folder / f"{question}.json", question, results, names)


# --- CSV, Markdown, provenance ------------------------------------------------------------------


def _csv(path: Path, rows: Sequence[Row]) -> None:
    text = text_io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    atomic_write(path, text.getvalue())


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in Markdown; what is not there is a dash."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_shown(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    return "–" if value is None else str(value)


def _signed(value: int | None) -> str | None:
    return None if value is None else f"{value:+d}" if value else "0"


def _made_by(results: Results, question: str, names: list[str]) -> str:
    quick = " --quick" if results.known.quick else ""
    absent = [n for n in names if n not in results.shapes]
    made_up = [n for n in names if n in results.shapes and results.shapes[n].made_up]
    text = f"Made by `stair reproduce {question}{quick}`; settings and versions: `{question}.json`."
    if results.known.quick:
        text += f" A quick run: {results.known['quick_rows']} rows of each data set, no results."
    if made_up:
        text += f" Made-up data in place of {', '.join(made_up)}."
    if absent:
        text += f" Not run here for want of the file: {', '.join(absent)}."
    return text


def _provenance(path: Path, question: str, results: Results, names: list[str]) -> None:
    used: list[dict[str, str]] = []
    for name in names:
        if name not in results.shapes:
            continue
        for each in tasks_for(results.known, question, name, results.shapes[name].rows):
            record = results.record(each)
            if record is not None and record["versions"] not in used:
                used.append(record["versions"])
    content = {
        "question": question,
        "quick": results.known.quick,
        "versions": used,
        "settings": {name: results.known[name] for name in results.known.constants},
        "data": {
            name: vars(results.shapes[name]) if name in results.shapes else NOT_RUN
            for name in names
        },
    }
    atomic_write(path, json.dumps(content, indent=1) + "\n")


def _seconds(asked: list[str], results: Results, by_question: dict[str, list[str]]) -> list[Row]:
    """Every task of the run with its seconds."""
    found: dict[Any, Any] = {}
    for question in asked:
        for name in by_question[question]:
            if name in results.shapes:
                rows = results.shapes[name].rows
                for each in tasks_for(results.known, question, name, rows):
                    k = neighbors_of(results.known, each)
                    if k is not None:
                        labels = labels_task(results.known, name, k)
                        found[labels] = results.record(labels)
                    found[each] = results.record(each)
    rows_of = [
        {
            "data": each.data,
            "method": each.method,
            "settings": json.dumps(dict(each.settings)),
            "seconds": record["seconds"],
            "cpu seconds": record["cpu seconds"],
        }
        for each, record in found.items()
        if record is not None
    ]
    every: Row = {"data": "all", "method": "", "settings": ""}
    every |= {k: round(sum(row[k] for row in rows_of), 1) for k in ("seconds", "cpu seconds")}
    return [*rows_of, every]


# --- the pages ----------------------------------------------------------------------------------


def _lengths_page(rows: list[Row], results: Results) -> list[str]:
    at = {(row["data"], row["method"]): row for row in rows}
    data = list(dict.fromkeys(row["data"] for row in rows))
    papers = [NAMES[m] for m in PAPERS]
    head = ["data"]
    for name in papers:
        head += [f"{name} paper", "ours", "difference"]
    body = []
    for name in data:
        line: list[Any] = [name]
        for method in papers:
            row = at[name, method]
            ours = NOT_RUN if row["status"] == NOT_RUN else _marked(row)
            line += [row["paper length"], ours, _signed(row["difference"])]
        body.append(line)
    shown = ["STAIR", *(NAMES[m] for m in OURS)]
    shown += [NAMES[m] for m in PEERS if any((n, NAMES[m]) in at for n in data)]
    beyond = [
        [name]
        + [
            f"{_marked(at[name, m])} ({at[name, m]['score']:.3f})"
            if (name, m) in at and at[name, m]["length"] is not None
            else NOT_RUN
            if at[name, "STAIR"]["status"] == NOT_RUN
            else None
            for m in shown
        ]
        for name in data
    ]
    columns = ("data", "method", "rules", "longest", "score", "assigned score", "partitions",
               "above the floor")  # fmt: skip
    detail = [[row[c] for c in columns] for row in rows if row["status"] != NOT_RUN]
    known = results.known
    word = "accuracy" if data == ["WineQuality"] else "F1"
    parts = [
        f"Floor {known['floor']:g}, L_m = {known['max_rule_length']}. A star marks rules that did "
        f"not get above the floor. L-STAIR is the shortest of the starts "
        f"{', '.join(map(str, known['starts']))} (Q4), on labels of its own as in the paper, with "
        f"the floor on the assigned {word}.",
        "## The paper's methods",
        table(head, body),
        "## Beyond the paper",
        f"Total length, and the true {word} of the rules on the rows they were learned from. "
        "Distilled rules (and RIPPER's) speak of outliers only; the others cover every row. "
        "*L-STAIR routed* has the floor on what a new row gets.",
        table(["data", *shown], beyond),
        "## Rules, longest rule and score",
        f"The score is the true {word} of `predict`. For L-STAIR it is the routed one; the paper's "
        "is the assigned.",
        table(columns, detail),
    ]
    if word == "F1":
        notes = [f"- {note}" for note in known.published["notes"]["values"]]
        parts += ["Notes on the paper's figures:", "\n".join(notes)]
    return parts


def _marked(row: Row) -> str | None:
    if row["length"] is None:
        return None
    return f"{row['length']}" + ("" if row["above the floor"] == "yes" else "*")


def _seconds_page(question: str, rows: list[Row]) -> str:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    at = {(row["data"], row["method"]): row["cpu seconds"] for row in rows}
    body = [
        [name, *(at.get((name, m)) for m in methods)]
        for name in dict.fromkeys(row["data"] for row in rows)
    ]
    text = "CPU seconds of one thread, without the labels; L-STAIR is all its starts together."
    title = f"# {TITLES[question]}: time"
    return "\n\n".join([title, text, table(["data", *methods], body)]) + "\n"


def _curve_page(rows: list[Row]) -> list[str]:
    parts = [
        "The paper shows these curves as a figure without numbers. As there, ID3 is the first tree "
        "at least as long as the budget and CART the pruned tree closest to it; STAIR and the "
        "distilled rules stay within it. In brackets: the length.",
        "![F1 against total length](q2.svg)",
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == name]
        if mine[0]["status"] == NOT_RUN:
            parts += [f"## {name}", f"{NOT_RUN.capitalize()}."]
            continue
        methods = list(dict.fromkeys(row["method"] for row in mine))
        at = {(r["budget"], r["method"]): f"{r['score']:.3f} ({r['length']})" for r in mine}
        lengths = list(dict.fromkeys(row["budget"] for row in mine))
        body = [[n, *(at[n, m] for m in methods)] for n in lengths]
        parts += [f"## {name}", table(["total length", *methods], body)]
    return parts


def _sweep_page(rows: list[Row], value: str) -> list[str]:
    title = "The longest rule allowed, L_m" if value == "L_m" else "The floor"
    note = "ID3 and CART know no L_m. " if value == "L_m" else ""
    parts = [
        f"## {title}",
        f"Total length; a star marks rules that did not get above the floor. {note}"
        "The paper shows these curves as figures without numbers.",
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == name]
        if mine[0]["status"] == NOT_RUN:
            parts += [f"### {name}", f"{NOT_RUN.capitalize()}."]
            continue
        values = list(dict.fromkeys(row[value] for row in mine))
        at = {(row["method"], row[value]): _marked(row) for row in mine}
        methods = list(dict.fromkeys(row["method"] for row in mine))
        body = [[m, *(at.get((m, v)) for v in values)] for m in methods]
        parts += [f"### {name}", table([value, *(f"{v:g}" for v in values)], body)]
    return parts


def _starts_page(rows: list[Row]) -> list[str]:
    parts = []
    for method, text in (
        (
            "L-STAIR",
            "## The paper's protocol\n\nLabels of their own (LOF with 60 neighbours), the floor on "
            "the *assigned* score, which judges a row by the partition that training moved it to, "
            "knowing its label. *Routed* is what a new row gets. A short length beside a low "
            "routed score is no success.",
        ),
        (
            "L-STAIR routed",
            "## The floor on the routed score\n\nThe labels of Q1, and the floor on what a new row "
            "gets.",
        ),
    ):
        mine = [row for row in rows if row["method"] == method]
        names = ("length", "rules", "partitions")
        is_paper = method == "L-STAIR"
        head = ["data", "n"]
        for name in names:
            head += [f"{name} paper", "ours", "difference"] if is_paper else [name]
        head += ["assigned", "routed", "with nearest center"]
        body = []
        for row in mine:
            line = [row["data"], row["n"]]
            for name in names:
                ours = _marked(row) if name == "length" else row[name]
                ours = NOT_RUN if row["status"] == NOT_RUN else ours
                line += (
                    [row[f"paper {name}"], ours, _signed(row[f"{name} difference"])]
                    if is_paper
                    else [ours]
                )
            scores = ("assigned score", "routed score", "with nearest center")
            body.append(line + [row[s] for s in scores])
        parts += [text, table(head, body)]
    return parts


class Reached(NamedTuple):
    """Of one data set: the row of the largest λ, that of the largest λ at which rules are as short
    as the paper's, how many are, and how many of those have a routed score above the floor too."""

    first: Mapping[str, Any]
    short: Mapping[str, Any] | None
    n_short: int
    n_honest: int


def reached(rows: Sequence[Mapping[str, Any]], floor: float) -> list[Reached]:
    """Where the paper's lengths are reached, from rows as computed or as read from a CSV file."""
    found = []
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == name and row["status"] != NOT_RUN]
        short = [
            row
            for row in mine
            if row["above the floor"] == "yes" and int(row["length"]) <= int(row["paper length"])
        ]
        n_honest = sum(float(row["routed score"]) > floor for row in short)
        if mine:
            found.append(Reached(mine[0], short[0] if short else None, len(short), n_honest))
    return found


def _locality_page(rows: list[Row], known: Settings) -> list[str]:
    columns = ("λ", "length", "rules", "partitions", "assigned score", "routed score",
               "with nearest center")  # fmt: skip
    where = [
        [
            each.first["data"], each.first["paper length"], each.first["λ"], each.first["length"],
            *(each.short[c] if each.short else None for c in columns),
            f"{each.n_honest} of {each.n_short}",
        ]
        for each in reached(rows, known["floor"])
    ]  # fmt: skip
    head = ["data", "length paper", "at λ =", "ours", "as short at λ =", *columns[1:],
            "routed above the floor"]  # fmt: skip
    parts = [
        "The paper's protocol as in Q4: labels by LOF with 60 neighbours, and the floor "
        f"{known['floor']:g} on the *assigned* score. The start n is the one from which the "
        "paper's L-STAIR is shortest. λ says what a squared distance, in units of what is usual "
        "in the data, weighs beside one error; at 0 a row may go to any partition whose tree is "
        "right about it. *Routed* is the score when each row goes to its nearest center, as a "
        "new row must.",
        "## The largest λ at which rules are as short as the paper's",
        "In the last column: of all λ that are as short, how many have a routed score above the "
        "floor too.",
        table(head, where),
    ]
    for name in dict.fromkeys(row["data"] for row in rows):
        mine = [row for row in rows if row["data"] == name]
        parts.append(f"## {name} from n = {mine[0]['n']}, {mine[0]['paper length']} in the paper")
        if mine[0]["status"] == NOT_RUN:
            parts.append(f"{NOT_RUN.capitalize()}.")
            continue
        body = [[_marked(row) if c == "length" else row[c] for c in columns] for row in mine]
        parts.append(table(columns, body))
    return parts


def _map_page(rows: list[Row], question: str) -> list[str]:
    columns = [c for c in rows[0] if c != "status"] if rows else []
    body = [[row[c] for c in columns] for row in rows if row["status"] != NOT_RUN]
    return [
        "## The map" if question == "q7" else "",
        "t-SNE of the robustly scaled attributes of a sample of rows; the colour is the partition "
        "with the nearest center, a ring an outlier. The paper shows maps alone; the table says "
        "how often the nearest row on the map is in the same partition, and how often it would be "
        "by chance.",
        f"![the map]({question}-map.png)",
        table(columns, body),
    ][0 if question == "q7" else 1 :]


def _stabilizer_page(rows: list[Row], names: list[str], name: str) -> list[str]:
    last = {row["data"]: row for row in rows}
    first = {row["data"]: row for row in reversed(rows)}
    body = []
    for each in names:
        if each not in last:
            body.append([each, NOT_RUN, None, None, None])
            continue
        values = [row["M"] for row in rows if row["data"] == each]
        rises = all(a <= b for a, b in pairwise(values))
        body.append([each, last[each]["rules"], first[each]["M"], last[each]["M"],
                     "yes" if rises else "no"])  # fmt: skip
    head = ["data", "rules", "first M", "last M", "never decreases"]
    return [
        "## The stabilizer" if name != "q6" else "",
        f"STAIR's M after each split (`{name}.csv`). The paper shows figures without numbers.",
        f"![M against the number of rules]({name}.svg)",
        table(head, body),
    ][1 if name == "q6" else 0 :]


def _claims_page(judged: list[Claim], results: Results) -> str:
    quick = " --quick" if results.known.quick else ""
    parts = ["# The claims", f"Made by `stair reproduce all{quick}`, on our own runs."]
    for by, title in (("paper", "The paper's"), ("ours", "Ours")):
        body = [
            [c.verdict, c.question, c.text, f"{c.holds} of {len(c.looked_at)}", c.fails_on or None]
            for c in judged
            if c.by == by
        ]
        head = ["", "question", "claim", "holds on", "does not hold on"]
        parts += [f"## {title}", table(head, body)]
    return "\n\n".join(parts) + "\n"
