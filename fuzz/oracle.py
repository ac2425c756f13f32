"""A second opinion: what a rules file means, worked out row by row in plain Python.

It knows the file and the documents, and none of the library's code.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np

Document = Mapping[str, Any]
Columns = Mapping[str, Sequence[Any]]

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
LARGEST: Final = 1.7976931348623157e308
# A number with leading zeros is a code.
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?(0|[1-9]\d*)", re.ASCII)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_EPOCH = dt.datetime(1970, 1, 1)
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)
# How many of the four numbers of an IPv4 address a network keeps.
NETWORKS: Final = {"/8": 1, "/16": 2, "/24": 3}


class RefusedError(Exception):
    """A column that the rules cannot be meant for."""


class UnsureError(Exception):
    """Values of which the documents do not say how they are read."""


class Unseen:
    """A value that cannot be brought to the learned type: none of the known categories."""


UNSEEN: Final = Unseen()


def is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, float) and math.isnan(value)


# --- values ---------------------------------------------------------------------------------------


def as_number(value: Any, kind: str) -> Any:
    """A number as an int or a float, None where it is missing or cannot be read."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dt.timedelta):
        if kind != "duration":
            raise RefusedError
        return value / dt.timedelta(seconds=1)
    if isinstance(value, dt.time):
        if kind != "clock":
            raise RefusedError
        return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600
    if isinstance(value, dt.date):
        raise RefusedError
    if isinstance(value, str):
        text = value.strip()
        if _WHOLE.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) else None
    return None


def as_time(value: Any, _: str) -> int | None:
    """Microseconds since 1970, of a zoned time in UTC."""
    if isinstance(value, str):
        text = value.strip()
        if not _TIME.fullmatch(text):
            return None
        try:
            value = dt.datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, bool | int | float | Decimal | dt.time | dt.timedelta):
        raise RefusedError
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        return (value - _EPOCH) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * 86_400_000_000
    return None


def as_code(value: Any, _: str = "", known: Sequence[Any] = ()) -> str:
    """A category of a column of text: 2, 2.0 and "2" are one code.

    True is spelled as it was when the rules were learned.
    """
    if isinstance(value, bool):
        word = str(value).lower()
        return next((v for v in known if isinstance(v, str) and v.lower() == word), word)
    if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
        return str(int(value))
    if isinstance(value, float | Decimal):
        return repr(float(value))
    if isinstance(value, dt.datetime | dt.date):
        return _iso(value)
    return str(value)


def _iso(value: Any) -> str:
    if not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    text: str = value.isoformat(timespec="microseconds")
    return text


def as_number_code(value: Any, kind: str) -> Any:
    try:
        found = as_number(value, kind)
    except RefusedError:
        return UNSEEN
    return UNSEEN if found is None else found


def as_flag(value: Any, _: str) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        truth = {"true": True, "false": False}.get(value.strip().lower())
        if truth is not None:
            return truth
        value = as_number(value, "")
    if isinstance(value, int | float | Decimal) and value in (0, 1):
        return bool(value)
    return UNSEEN


def as_time_code(value: Any, kind: str) -> Any:
    try:
        found = as_time(value, kind)
    except RefusedError:
        return UNSEEN
    if found is None:
        return UNSEEN
    return (_EPOCH + dt.timedelta(microseconds=found)).isoformat(timespec="microseconds")


def as_text(value: Any, _: str) -> str:
    return as_code(value)


def as_network(value: Any, part: str) -> str | None:
    """The network of an IPv4 address in its usual form, without leading zeros; all else is
    missing."""
    numbers = as_code(value).split(".")
    if len(numbers) != 4:
        return None
    if not all(n.isascii() and n.isdigit() and str(int(n)) == n and int(n) < 256 for n in numbers):
        return None
    return ".".join([*numbers[: NETWORKS[part]], *["0"] * (4 - NETWORKS[part])]) + part


def by_the_clocks(microseconds: int, zone: str) -> dt.datetime:
    """A time as the clocks of a zone show it: a name, or how far they are ahead of UTC."""
    moment = _EPOCH + dt.timedelta(microseconds=microseconds)
    if offset := _OFFSET.fullmatch(zone):
        ahead = dt.timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return moment - ahead if offset[1] == "-" else moment + ahead
    return moment.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


CATEGORY_READERS: Final[dict[str, Callable[[Any, str], Any]]] = {
    "text": as_code,
    "described": as_code,
    "number": as_number_code,
    "flag": as_flag,
    "time": as_time_code,
    "duration": as_number_code,
    "clock": as_number_code,
}


MEASURES: Final = {"duration": dt.timedelta, "clock": dt.time}


def _measure(value: Any) -> str:
    """Whether a value is a duration or a time of day, which are not what their numbers are."""
    return next((name for name, kind in MEASURES.items() if isinstance(value, kind)), "")


def read_field(field: Document, columns: Columns, type_: str) -> list[Any]:
    """The values of a field, None where missing; a column that cannot be meant is refused."""
    source = field.get("source", field["name"])
    if source not in columns:
        raise RefusedError(source)
    kind, part = field["kind"], field.get("part")
    if part in NETWORKS:
        return [None if is_missing(v) else as_network(v, part) for v in columns[source]]
    reader: Callable[[Any, str], Any]
    if part is not None or kind == "time":
        reader = as_time
    elif kind == "number":
        reader = as_number
    else:
        reader = as_text if kind == "text" else CATEGORY_READERS[type_]
        if reader in (as_text, as_code):
            reader = partial(as_code, known=field.get("values", ()))
    given = columns[source]
    there = [v for v in given if not is_missing(v)]
    if any(isinstance(v, list | dict | bytes) for v in there) or type_ == "described":
        raise UnsureError(source)
    measure = type_ if type_ in MEASURES else ""
    if any(_measure(v) != measure for v in there):
        raise RefusedError(source)
    found = [None if is_missing(v) else reader(v, type_) for v in given]
    must_be_read = kind in ("number", "time") or part is not None
    if must_be_read and there and all(v is None for v in found):
        raise RefusedError(source)
    if part is None:
        return found
    shown = [None if v is None else by_the_clocks(v, field.get("zone", "UTC")) for v in found]
    if part == "hour":
        return [None if t is None else t.hour for t in shown]
    return [None if t is None else WEEKDAYS[t.weekday()] for t in shown]


def type_of(field: Document, document: Document) -> str:
    """The learned type; in files without it, what the categories of the rules are."""
    if field.get("type"):
        return str(field["type"])
    if field["kind"] != "category":
        return ""
    named: list[Any] = []
    for rule in document["rules"]:
        for clause in rule["clauses"]:
            if clause["feature"] == field["name"]:
                named += clause.get("in", clause.get("not in", []))
    for axis in document.get("space", ()):
        if axis["feature"] == field["name"]:
            named += axis["values"]
    if any(isinstance(v, str) for v in named) or not named:
        return "text"
    return "flag" if all(isinstance(v, bool) for v in named) else "number"


# --- rules ----------------------------------------------------------------------------------------


def folded(text: str) -> str:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


def _moment(text: str) -> int:
    return int(np.datetime64(text, "us").astype(np.int64))


def meets(clause: Document, value: Any) -> bool:
    """Whether a value meets a clause."""
    if "mentions" in clause:
        found = isinstance(value, str) and folded(clause["mentions"]) in folded(value)
        return found == clause["present"]
    if value is None:
        return bool(clause["missing"])
    if "only" in clause:
        return False
    if "in" in clause:
        return any(is_same(value, each) for each in clause["in"])
    if "not in" in clause:
        return not any(is_same(value, each) for each in clause["not in"])
    if "after" in clause:
        after, until = clause["after"], clause["until"]
        return (after is None or value > _moment(after)) and (
            until is None or value <= _moment(until)
        )
    above, up_to = clause["above"], clause["up_to"]
    return (above is None or value > above) and (up_to is None or value <= up_to)


def is_same(value: Any, other: Any) -> bool:
    return value is not UNSEEN and isinstance(value, str) == isinstance(other, str) and bool(
        value == other
    )  # fmt: skip


def in_force(document: Document) -> Document:
    """Without what is retired: such a rule covers nothing, and such an exception takes nothing.
    The rules that are left are numbered from 1."""
    if "partitions" in document:
        ends = np.cumsum([p["rules"] for p in document["partitions"]]).tolist()
        starts = [0, *ends[:-1]]
        partitions = [
            {**p, "rules": len(_not_retired(document["rules"][start:end]))}
            for p, start, end in zip(document["partitions"], starts, ends, strict=True)
        ]
        document = {**document, "partitions": partitions}
    exceptions = _not_retired(document.get("exceptions", ()))
    return {**document, "rules": _not_retired(document["rules"]), "exceptions": exceptions}


def _not_retired(rules: Sequence[Document]) -> list[Document]:
    return [rule for rule in rules if rule.get("status") != "retired"]


def needed(document: Document) -> set[str]:
    rules = [*document["rules"], *document.get("exceptions", ())]
    used = {c["feature"] for rule in rules for c in rule["clauses"]}
    return used | {axis["feature"] for axis in document.get("space", ())}


def read_values(document: Document, columns: Columns) -> dict[str, list[Any]]:
    used = needed(document)
    return {
        field["name"]: read_field(field, columns, type_of(field, document))
        for field in document["fields"]
        if field["name"] in used
    }


def covered(document: Document, columns: Columns, n_rows: int) -> list[list[int]]:
    """The numbers, from 1, of the rules that decide about each row, in their order: a row that an
    exception covers is lost to all rules of another label than the default."""
    document = in_force(document)
    values = read_values(document, columns)
    rules = document["rules"]
    numbers = list(range(1, len(rules) + 1))
    found = []

    def covers(rule: Document, row: int) -> bool:
        return all(meets(c, values[c["feature"]][row]) for c in rule["clauses"])

    for row in range(n_rows):
        near = _nearest(document, values, row) if "partitions" in document else numbers
        here = [k for k in near if covers(rules[k - 1], row)]
        if any(covers(exception, row) for exception in document["exceptions"]):
            here = [k for k in here if rules[k - 1]["label"] == document["default"]]
        found.append(here)
    return found


def assigned(document: Document, columns: Columns, n_rows: int) -> list[int]:
    """The number of the first rule that covers each row, 0 where none does."""
    return [next(iter(each), 0) for each in covered(document, columns, n_rows)]


def label_of(document: Document, number: int) -> Any:
    rules = in_force(document)["rules"]
    return rules[number - 1]["label"] if number else document["default"]


def _nearest(document: Document, values: dict[str, list[Any]], row: int) -> list[int]:
    """The rules of the partition whose center is the nearest, the first of equals."""
    axes = document["space"]
    root = math.sqrt(len(axes))
    places = [
        [coordinate / root for coordinate in _place(axis, values[axis["feature"]][row])]
        for axis in axes
    ]
    distances = []
    for partition in document["partitions"]:
        center, start, total = partition["center"], 0, 0.0
        for place in places:
            part = 0.0
            for j, coordinate in enumerate(place):
                away = coordinate - center[start + j]
                part += away * away
            total += part
            start += len(place)
        distances.append(total)
    nearest = min(range(len(distances)), key=distances.__getitem__)
    before = sum(p["rules"] for p in document["partitions"][:nearest])
    return list(range(before + 1, before + 1 + document["partitions"][nearest]["rules"]))


def _place(axis: Document, value: Any) -> list[float]:
    if axis["kind"] == "category":
        return [math.sqrt(0.5) * (value is not None and is_same(value, v)) for v in axis["values"]]
    if axis["kind"] == "text":
        terms = axis["values"]
        return [
            (isinstance(value, str) and folded(term) in folded(value)) / math.sqrt(len(terms))
            for term in terms
        ]
    if value is None or value in (math.inf, -math.inf):
        return [0.0]
    offset = (float(value) - axis["center"]) / axis["scale"]
    return [max(-LARGEST, min(LARGEST, offset))]


# --- figures --------------------------------------------------------------------------------------


def figures(
    document: Document,
    columns: Columns,
    truth: Sequence[Any],
    outlier: Any,
    normal: Any = None,
) -> dict[str, Any]:
    """What a summary says of its rules, counted anew; rows without a label do not count.

    Where a class is `normal`, every other is a kind of outlier: then a rule is judged by the rows
    that it decides, and the score is that of the kind that does worst.
    """
    rows = [row for row, label in enumerate(truth) if label is not None]
    kept = {name: [values[row] for row in rows] for name, values in columns.items()}
    labels = [truth[row] for row in rows]
    numbers = covered(document, kept, len(rows))
    first = [next(iter(each), 0) for each in numbers]
    said = [label_of(document, number) for number in first]
    totals = Counter(labels)
    kinds = {
        kind: f1_of(kind, said, labels) for kind in totals if normal is not None and kind != normal
    }
    if kinds:
        score = min(kinds.values())
        unexplained = sum(t != normal and s == normal for s, t in zip(said, labels, strict=True))
    elif outlier is None:
        score = sum(s == t for s, t in zip(said, labels, strict=True)) / len(labels)
        unexplained = 0
    else:
        score = f1_of(outlier, said, labels)
        unexplained = sum(t == outlier and s != outlier for s, t in zip(said, labels, strict=True))
    evidence = []
    for number, rule in enumerate(document["rules"], start=1):
        own = [
            t for each, one, t in zip(numbers, first, labels, strict=True)
            if (one == number if kinds else number in each)
        ]  # fmt: skip
        alone = sum(
            each == [number] and t == rule["label"] for each, t in zip(numbers, labels, strict=True)
        )
        evidence.append((len(own), sum(t == rule["label"] for t in own), alone))
    rest = [t for each, t in zip(numbers, labels, strict=True) if not each]
    floor = document["facts"]["floor"]
    told = {rule["label"] for rule in document["rules"]}
    return {
        "rows": len(rows),
        "totals": [totals[label] for label in document["classes"]],
        "score": score,
        "unexplained": unexplained,
        "evidence": evidence,
        "rest": (len(rest), sum(t == document["default"] for t in rest)),
        "total_length": sum(map(length_of, document["rules"])),
        "kinds": {
            str(kind): (totals[kind], one, kind in told and (one > floor or one >= 1))
            for kind, one in kinds.items()
        },
    }


def f1_of(label: Any, said: Sequence[Any], truth: Sequence[Any]) -> float:
    hits = sum(s == t == label for s, t in zip(said, truth, strict=True))
    n_either = sum(s == label for s in said) + sum(t == label for t in truth)
    return 2 * hits / n_either if n_either else 0.0


def length_of(rule: Document) -> int:
    """The different attributes; an address and all its networks are one."""
    return len({c.get("networks_of") or c["feature"] for c in rule["clauses"]})
