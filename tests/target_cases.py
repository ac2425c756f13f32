"""Hostile tables and rules for tools that watch tables, as the tools' own scripts can read them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from export_cases import LABELS, SHORT_NAMES, Case, cases
from stair.errors import StairError
from stair.export.sql import new_columns
from stair.rules.clauses import Among, Interval, Period
from stair.rules.rule_set import Rule
from stair.rules.schema import Field, Schema

# What the tools themselves would fill in, beside what is hostile to a database.
TRAPS = ["{{ 1 }}", "{% raw %}", "{# no #}", "a:b ::c \\:d", "${PATH}", "{batch}", "%s %(a)s",
         "tab\tand\rreturn", "  two  \n   lines ", "a|b"]  # fmt: skip
KIND = "3rd {{ kind }} of ${it}: it's"  # of outlier, in one case of four
INSTANTS = [dt.datetime(2024, 3, 31, 0, 30, tzinfo=dt.UTC), dt.datetime(2024, 3, 31, 1, 30, 0, 7,
            tzinfo=dt.UTC), dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC), None]  # fmt: skip
TYPES = {
    "duckdb": ("DOUBLE", "VARCHAR", "TIMESTAMP", "VARCHAR", "BOOLEAN", "DOUBLE", "TIMESTAMPTZ"),
    "sqlite": ("REAL", "TEXT", "TEXT", "TEXT", "INTEGER", "REAL", "TEXT"),
    "postgres": ("double precision", "text", "timestamp", "text", "boolean", "double precision",
                 "timestamptz"),
    "spark": ("double", "string", "timestamp_ntz", "string", "boolean", "double", "timestamp"),
}  # fmt: skip


@st.composite
def target_cases(
    draw: st.DrawFn, local: bool | None = None, names: list[str] | None = None
) -> Case:
    """A case with a column of zoned times more, of which some rules speak; few have no rule that
    flags rows."""
    known = [*SHORT_NAMES, *TRAPS] if names is None else names
    case = draw(cases(names=known, local=local, huge=False))
    name = draw(st.sampled_from([name for name in known if name not in case.table]))
    n = len(next(iter(case.table.values())))
    column = np.empty(n, dtype=object)
    column[:] = draw(st.lists(st.sampled_from(INSTANTS), min_size=n, max_size=n))
    zone = draw(st.sampled_from(["UTC", "+01:00", "Europe/Berlin"]))
    fields = [
        *case.fields,
        Field("zoned", "time", name, None, "zoned", zone=zone),
        Field("zoned hour", "number", name, "hour", "zoned", zone=zone),
        Field("zoned day", "category", name, "weekday", "zoned", zone=zone),
    ]
    flag, hour = draw(st.booleans()), draw(st.sampled_from([1.0, 2.0, 3.0]))
    clauses = [
        Period("zoned", after=np.datetime64("2024-03-31T01:00", "us"), missing=flag),
        Interval("zoned hour", -math.inf, hour, flag),
        Among("zoned day", ("Sunday",), negated=flag),
    ]
    rules = list(case.rules.rules)
    for k in draw(st.sets(st.integers(0, len(rules) - 1), max_size=1)) if rules else ():
        more = draw(st.sampled_from(clauses))
        rules[k] = replace(rules[k], clauses=(*rules[k].clauses, more))
    if rules and draw(st.integers(0, 9)):
        rules[-1] = replace(rules[-1], label=LABELS[1])
    flags = any(rule.label == LABELS[1] for rule in rules)
    if not case.rules.routing and (not flags or draw(st.booleans())):
        rules.append(Rule((draw(st.sampled_from(clauses)),), LABELS[1], ((LABELS[1], 3.0),)))
    table = {**case.table, name: column}
    whole = replace(case.rules, rules=tuple(rules), schema=Schema(tuple(fields)))
    return Case(fields, table, whole)


def drawn(
    n: int, local: bool | None = None, names: list[str] | None = None, seed: int | None = None
) -> list[Case]:
    """So many cases, the same ones each time with the same seed or without one; one in ten has
    partitions if nothing is said."""
    if local is None:
        return [*drawn(n - n // 10, False, names, seed), *drawn(n // 10, True, names, seed)]
    found: list[Case] = []

    @settings(
        max_examples=n, derandomize=seed is None, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(target_cases(local, names))
    def draw(case: Case) -> None:
        found.append(case)

    (draw if seed is None else seeded(seed)(draw))()
    return [_of_kinds(case) if k % 4 == 3 else case for k, case in enumerate(found)]


def _of_kinds(case: Case) -> Case:
    """The same rules for several kinds of outlier: every second outlier rule is of another kind."""

    def other(rule: Rule) -> Rule:
        counts = tuple((KIND if label == LABELS[1] else label, n) for label, n in rule.counts)
        return replace(rule, label=KIND, counts=counts)

    outlier = [k for k, rule in enumerate(case.rules.rules) if rule.label == LABELS[1]]
    rules = tuple(other(r) if k in outlier[1::2] else r for k, r in enumerate(case.rules.rules))
    kinds = replace(
        case.rules, rules=rules, classes=(*LABELS, KIND), totals=(1.0, 1.0, 1.0), positive=None
    )
    return case._replace(rules=kinds)


def table_of(case: Case, number: int, dialect: str) -> dict[str, Any]:
    """A table as JSON: times as texts, NaN as such, and the place of each row."""
    types = TYPES[dialect]
    if len(case.table) != len(types):  # made by hand, of texts
        types = (types[1],) * len(case.table)
    columns = [list(pair) for pair in zip(case.table, types, strict=True)]
    rows = [[*map(_plain, row.values()), k] for k, row in enumerate(case.rows())]
    return {
        "table": f"t{number}", "columns": [*columns, ["place", "INTEGER"]], "rows": rows,
        "labelled": new_columns(case.rules),
    }  # fmt: skip


def _plain(value: Any) -> Any:
    return value.isoformat(" ") if isinstance(value, dt.datetime) else value


def exported(
    found: list[Case], export: Callable[[Case, int], Any], dialect: str
) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """The tables of cases with what was exported for each, and the sentences of those refused."""
    done: dict[int, dict[str, Any]] = {}
    refused: dict[int, str] = {}
    for number, case in enumerate(found):
        try:
            done[number] = {**table_of(case, number, dialect), "export": export(case, number)}
        except StairError as error:
            refused[number] = str(error)
    return done, refused


def flagged(case: Case) -> dict[int, list[int]]:
    """The places of the rows about which each outlier rule decides; with several kinds, each rule
    that says anything but the default."""
    numbers, rules = case.numbers, case.rules
    return {
        number: [place for place, each in enumerate(numbers) if each == number]
        for number, rule in enumerate(rules.rules, 1)
        if (rule.label == LABELS[1] if rules.positive is not None else rule.label != rules.default)
    }
