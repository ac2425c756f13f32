"""Runs in the environment of pySigma: which rows each detection selects. Once as the query that the
SQLite backend makes of it, and once read event by event, where a field that has no value is not
there and texts are compared without regard to case in all alphabets."""

import datetime as dt
import ipaddress
import json
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

from sigma.backends.sqlite import sqliteBackend
from sigma.collection import SigmaCollection
from sigma.conditions import ConditionAND, ConditionNOT, ConditionOR
from sigma.types import (
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaNull,
    SigmaNumber,
    SigmaString,
    SigmaTimestampPart,
    SpecialChars,
)

SIGNS = {"GT": lambda a, b: a > b, "LTE": lambda a, b: a <= b}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(connection: sqlite3.Connection, case: dict[str, Any]) -> None:
    columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in case["columns"])
    connection.execute(f"CREATE TABLE {case['table']} ({columns})")
    marks = ", ".join("?" * len(case["columns"]))
    connection.executemany(f"INSERT INTO {case['table']} VALUES ({marks})", case["rows"])


def holds(condition: Any, event: dict[str, Any]) -> bool:
    """Whether an event meets a condition, of which each part is true or false."""
    if isinstance(condition, ConditionNOT):
        return not holds(condition.args[0], event)
    if isinstance(condition, ConditionAND | ConditionOR):
        every = all if isinstance(condition, ConditionAND) else any
        return every(holds(part, event) for part in condition.args)
    wanted, found = condition.value, event.get(condition.field)
    if isinstance(wanted, SigmaNull):
        return found is None
    return found is not None and meets(wanted, found)


def meets(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, SigmaTimestampPart):
        time = dt.datetime.fromisoformat(found)
        return (time.astimezone(dt.UTC) if time.tzinfo else time).hour == wanted.number
    if isinstance(wanted, SigmaCompareExpression):
        return SIGNS[wanted.op.name](found, wanted.number.number)
    if isinstance(wanted, SigmaBool):
        return found == wanted.boolean
    if isinstance(wanted, SigmaNumber):
        return found == wanted.number
    if isinstance(wanted, SigmaCIDRExpression):
        try:
            return ipaddress.ip_address(found) in ipaddress.ip_network(wanted.cidr)
        except ValueError:
            return False
    assert isinstance(wanted, SigmaString), wanted
    wild = {SpecialChars.WILDCARD_MULTI: ".*", SpecialChars.WILDCARD_SINGLE: "."}
    pattern = "".join(re.escape(s) if isinstance(s, str) else wild[s] for s in wanted.s)
    flags = re.DOTALL if isinstance(wanted, SigmaCasedString) else re.DOTALL | re.IGNORECASE
    return re.fullmatch(pattern, found, flags) is not None


def selected(case: dict[str, Any], connection: sqlite3.Connection) -> list[Any]:
    """For each detection the number of its rule, the rows of both readings, and its level."""
    found = SigmaCollection.from_yaml(case["export"])
    assert not found.errors, found.errors
    backend = sqliteBackend(table=case["table"])
    names = [name for name, _ in case["columns"]]
    events = [
        {n: v for n, v in zip(names, row, strict=True) if v is not None and v == v}
        for row in case["rows"]
    ]
    said = []
    for rule in found.rules:
        (query,) = backend.convert_rule(rule)
        rows = sorted(row["place"] for row in connection.execute(query))
        (parsed,) = rule.detection.parsed_condition
        met = [event["place"] for event in events if holds(parsed.parse(), event)]
        said.append([rule.custom_attributes["custom"]["stair_rule"], rows, met, rule.level.name])
    return said


def main(folder: Path) -> None:
    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    answer = {}
    for case in order["cases"]:
        fill(connection, case)
        answer[case["table"]] = selected(case, connection)
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


main(Path(sys.argv[1]))
