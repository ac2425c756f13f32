"""Tables with hostile names and missing values, and rules of every kind that speak of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from stair.rules.clauses import Among, Interval, Mentions, Period
from stair.rules.match import first_covering
from stair.rules.routing import Dimension, Partition, Routing, Space
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema, Values
from strategies import examples

NAMES = [
    "plain", 'quo"te', "it's", "select", "new\nline", "<script>alert(1)</script>", "😀",
    "a;--b", "x" * 200, "back\\slash", "`tick`", "[brackets]", "{braces}", "| pipe |",
    "stair_label",
]  # fmt: skip
# What fits into 63 bytes, and into 64 characters.
SHORT_NAMES = [name for name in NAMES if len(name.encode()) <= 63]
NUMBERS = [-1.5, 0.0, 0.1, 2.0, 30.25, 0.30000000000000004, 1e15, math.nan]
WORDS = ["DE", "de", "it's", 'say "hi"', "", "naïve", "É", "%_", "back\\slash", "'; DROP--"]
TEXTS = ["Refund of É", "refund", "a REFUND!", "naïve", "it's 100%", "ÉCLAIR", "", "\\ and \n"]
TERMS = ["refund", "é", "É", "it's", "%", "\\"]
TIMES = ["2024-01-01", "2024-05-01T10:20:30", "2024-05-01T10:20:30.250000", "1969-12-31T23:00"]
LABELS = ("in'lier", "outlier\n")

LOTS = settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
SOME = settings(LOTS, max_examples=25)
FEW = settings(LOTS, max_examples=5)


class Case(NamedTuple):
    fields: list[Field]
    table: dict[str, Any]
    rules: RuleSet

    @property
    def numbers(self) -> list[int]:
        """The number of the rule of each row, from 1; 0 where none covers it."""
        found: list[int] = (self.rules.assign(self.values) + 1).tolist()
        return found

    @property
    def exceptions(self) -> list[int]:
        """The number of the exception that takes each row from a rule, from 1; 0 where none."""
        found: list[int] = (first_covering(self.rules.matches(self.values).lifted) + 1).tolist()
        return found

    @property
    def labels(self) -> list[Any]:
        labels: list[Any] = self.rules.predict(self.values).tolist()
        return labels

    @property
    def values(self) -> Values:
        return Schema(tuple(self.fields)).read(self.table)

    def rows(self, missing_number: float | None = math.nan) -> list[dict[str, Any]]:
        """The rows as Python values; times as datetime."""
        columns = []
        for values in self.table.values():
            listed = values.tolist()
            if values.dtype.kind == "f":
                listed = [missing_number if math.isnan(v) else v for v in listed]
            columns.append(listed)
        return [dict(zip(self.table, row, strict=True)) for row in zip(*columns, strict=True)]


@st.composite
def cases(
    draw: st.DrawFn,
    names: list[str] = NAMES,
    local: bool | None = None,
    text: bool = True,
    huge: bool = True,
) -> Case:
    """A table with one column of each kind, and rules that may overlap; local ones at times, and
    some with exceptions."""
    names = draw(st.permutations(names))[:6]
    n = draw(st.integers(1, 12))

    def column(values: list[Any], dtype: Any) -> Any:
        array = np.empty(n, dtype=dtype)
        array[:] = draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))
        return array

    times = [np.datetime64(t, "us") for t in TIMES]
    numbers = [*NUMBERS, math.inf, -math.inf, *([1e300] if huge else [])]
    table = {
        names[0]: column(numbers, np.float64),
        names[1]: column([*WORDS, None], object),
        names[2]: column([*times, np.datetime64("NaT", "us")], "datetime64[us]"),
        names[3]: column([*TEXTS, None], object),
        names[4]: column([True, False, None], object),
        names[5]: column([1.0, 2.0, 3.5, math.nan], np.float64),
    }
    fields = [
        Field(names[0], "number", names[0], marked=draw(st.sampled_from([0.0, 0.01]))),
        Field(names[1], "category", names[1]),
        Field(names[2], "time", names[2]),
        Field(names[3], "text", names[3]),
        Field(names[4], "category", names[4], type="flag"),
        Field(names[5], "category", names[5], type="number"),
        Field("hour of", "number", names[2], "hour"),
        Field("day of", "category", names[2], "weekday"),
    ]
    rules = draw(st.lists(_rules(names, times, text), max_size=5))
    schema = Schema(tuple(fields))
    default = draw(st.sampled_from(LABELS))
    excepting = st.lists(_rules(names, times, text), max_size=2)
    exceptions = draw(excepting) if default == LABELS[0] else []
    if local is None:
        local = draw(st.booleans())
    if not local:
        plain = RuleSet(tuple(rules), LABELS, schema, default, (1.0, 1.0), LABELS[1])
        return Case(fields, table, plain.with_exceptions(exceptions))
    space = _space(draw, names, text)
    width = sum(each.width for each in space.dimensions)
    at = st.sampled_from([-1.0, -0.3, 0.0, 0.1, 0.25, 0.7, 2.0])
    n_partitions = draw(st.integers(1, 4))
    sizes = [draw(st.integers(0, 2)) for _ in range(n_partitions)]
    sizes[-1] += max(0, len(rules) - sum(sizes))
    rules = (rules + [Rule((), LABELS[0])] * sum(sizes))[: sum(sizes)]
    partitions = tuple(
        Partition(tuple(draw(st.lists(at, min_size=width, max_size=width))), 2.0, size, "a\nb")
        for size in sizes
    )
    return Case(fields, table, RuleSet(
        tuple(rules), LABELS, schema, default, (1.0, 1.0), LABELS[1],
        Routing(space, partitions, 0.5, 0.5),
    ).with_exceptions(exceptions))  # fmt: skip


def as_older(document: dict[str, Any], version: int) -> dict[str, Any]:
    """A rules file as a stair of that version would have written it, but for the fields' types."""
    found = {name: each for name, each in document.items() if name != "usual"}
    found["version"] = version
    new = ("id", "status", "owner", "note", "since", "until", "evidence")
    found["rules"] = [{k: v for k, v in rule.items() if k not in new} for rule in found["rules"]]
    if version < 2:
        del found["columns"]
    return found


def _space(draw: st.DrawFn, names: list[str], text: bool) -> Space:
    hours = 3600e6
    axes = [
        Dimension(names[0], "number", 0.1, 3.0),
        Dimension(names[1], "category", values=("DE", "it's", "É")),
        Dimension(names[2], "time", 1704067200e6, 7 * hours),
        Dimension(names[4], "category", values=(True, False)),
        Dimension(names[5], "category", values=(1, 3.5)),
        Dimension("hour of", "number", 9.0, 0.7),
        Dimension("day of", "category", values=("Monday", "Wednesday")),
    ]
    if text:
        axes.append(Dimension(names[3], "text", values=("refund", "naïve", "É")))
    chosen = draw(st.lists(st.sampled_from(axes), min_size=1, unique_by=lambda a: a.feature))
    return Space(tuple(chosen))


def _rules(names: list[str], times: list[Any], text: bool) -> st.SearchStrategy[Rule]:
    bound = st.sampled_from([-math.inf, -1.0, 0.1, 0.30000000000000004, 2.0, 1e15, math.inf])
    hour = st.sampled_from([-math.inf, 9.5, 10.0, math.inf])
    flag = st.booleans()
    time = st.sampled_from(times)

    def among(name: str, values: list[Any], least: int = 0) -> st.SearchStrategy[Any]:
        listed = st.lists(st.sampled_from(values), min_size=least, max_size=3).map(tuple)
        return st.builds(Among, st.just(name), listed, flag, flag)

    clauses = [
        st.builds(Interval, st.just(names[0]), bound, bound, flag),
        among(names[0], [-1.5, 2, 30.25, 10**15], least=1),  # numbers that are codes, by name
        among(names[1], WORDS),
        st.builds(lambda t, m: Period(names[2], after=t, missing=m), time, flag),
        st.builds(lambda t, m: Period(names[2], until=t, missing=m), time, flag),
        st.builds(lambda t, u, m: Period(names[2], t, u, m), time, time, flag),
        among(names[4], [True, False]),
        among(names[5], [1, 2, 3.5], least=1),  # else nobody knows that NaN may come
        st.builds(Interval, st.just("hour of"), hour, hour, flag),
        among("day of", ["Monday", "Wednesday", "Sunday"]),
        st.builds(Among, st.just(names[3]), st.just(()), flag, flag),
    ]
    if text:
        clauses.append(st.builds(Mentions, st.just(names[3]), st.sampled_from(TERMS), flag))
    conjunction = st.lists(st.one_of(clauses), max_size=3, unique_by=lambda c: c.group).map(tuple)
    counts = st.tuples(*(st.sampled_from([0.0, 1.0, 2.5, 40.0]) for _ in LABELS))
    return st.builds(
        lambda clauses, label, n: Rule(clauses, label, tuple(zip(LABELS, n, strict=True))),
        conjunction, st.sampled_from(LABELS), counts,
    )  # fmt: skip
