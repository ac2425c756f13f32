"""Rules in the tools that run them, many sets at a time: what a tool finds are the rows that the
rules flag, or the export was refused in a sentence that names the rule and the reason.

The tests of each target run a few; `python -m benchmarks.tools` runs many.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from environments import ask
from export_cases import LABELS, Case
from stair.export.dbt import to_dbt
from stair.export.great_expectations import to_great_expectations
from stair.export.pandas import to_pandas
from stair.export.sigma import to_sigma
from stair.export.soda import to_soda
from stair.export.sql import new_columns, to_sql
from stair.rules.clauses import Among, Clause, Mentions, Period
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from target_cases import drawn, exported, flagged

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
"""Of Spark's sessions."""
HOSTILE = 11
"""Cases of Sigma with hostile texts, one for each term that they may mention."""
NOTHING = "none of these rules flags rows"
NO_ZONE = "knows no time zones by name"
DEEP = "nests its query deeper than SQLite can read"
REASONS = (
    NOTHING,
    NO_ZONE,
    DEEP,
    "none of these rules can flag a row",
    "Sigma cannot find the nearest of them",
    "has times, and Sigma compares only numbers",
    "Sigma knows no weekdays",
    "Sigma knows no clocks but those",
    "in whatever case or for none of it",
    "it covers everything, and a detection of Sigma must ask something",
    "cannot be a field in Sigma, where | begins a modifier",
)
"""Why an export may be refused."""
_NAMED = re.compile(
    r"(rule|exception) \d+, |the rule .* cannot be written|none of these rules ", re.S
)


class Trial(NamedTuple):
    """What came of some rule sets: how many were run, in how many checks, and why others were
    refused."""

    run: int
    checks: int
    refused: dict[str, int]

    def __str__(self) -> str:
        why = "; ".join(f"{n} {reason}" for reason, n in self.refused.items())
        more = f", {sum(self.refused.values())} refused ({why})" if why else ""
        return f"{self.run} rule sets, {self.checks} checks{more}"


def _counted(sentences: Mapping[int, str]) -> dict[str, int]:
    """Refusals by their reasons, each of which is known and said of a rule."""
    found: Counter[str] = Counter()
    for sentence in sentences.values():
        (reason,) = (reason for reason in REASONS if reason in sentence)
        assert _NAMED.match(sentence), sentence
        found[reason] += 1
    return dict(sorted(found.items()))


def _mostly(is_sayable: Callable[[Case, Clause], bool], found: list[Case]) -> list[Case]:
    """Three of four of these cases without the clauses that a tool cannot say."""
    return [case if k % 4 == 0 else _without(is_sayable, case, k) for k, case in enumerate(found)]


def _without(is_sayable: Callable[[Case, Clause], bool], case: Case, number: int) -> Case:
    if case.rules.routing:
        return case

    def less(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        shorter = [
            replace(rule, clauses=tuple(c for c in rule.clauses if is_sayable(case, c)))
            for rule in rules
        ]
        return tuple(rule for rule in shorter if rule.clauses)

    rules, exceptions = less(case.rules.rules), less(case.rules.exceptions)
    if not any(rule.label == LABELS[1] for rule in rules):
        listed = [Among(f.name) for f in case.fields if f.kind in ("category", "text")]
        names = [clause.feature for clause in listed if is_sayable(case, clause)]
        more = Among(names[number % len(names)], negated=bool(number % 3), missing=not number % 3)
        rules = (*rules, Rule((more,), LABELS[1], ((LABELS[1], 3.0), (LABELS[0], 2.0))))
    return case._replace(rules=replace(case.rules, rules=rules, exceptions=exceptions))


# --- dbt ----------------------------------------------------------------------------------------


def try_dbt(n: int, folder: Path, dialect: str = "duckdb", seed: int | None = None) -> Trial:
    """One project with the folders of all rule sets, built once: each view labels as the rules do,
    and each test passes, warns or fails as what its rule covered when learned says."""
    found = drawn(n, seed=seed)
    done, refused = exported(
        found, lambda case, k: to_dbt(case.rules, None, f"t{k}", dialect), dialect
    )
    answer = ask("dbt", _order(done, _project(done), dialect), folder)
    n_tests = 0
    for number in done:
        case = found[number]
        expected = [
            [label, rule or None] for label, rule in zip(case.labels, case.numbers, strict=True)
        ]
        assert answer["rows"][f"t{number}"] == expected
        for rule, places in flagged(case).items():
            status, failures, message = answer["states"][f"t{number}_rule_{rule}"]
            most = case.rules[rule - 1].rows
            states = ["pass", "warn", "fail"]
            is_error = case.rules[rule - 1].precision >= 0.9
            assert failures == len(places), message
            assert status == states[(len(places) > 0) + (is_error and len(places) > most)]
            n_tests += 1
    return Trial(len(done), n_tests, _counted(refused))


def _order(done: dict[int, dict[str, Any]], files: dict[str, str], dialect: str) -> dict[str, Any]:
    tables = [{k: v for k, v in case.items() if k != "export"} for case in done.values()]
    dsn = os.environ.get("STAIR_TEST_POSTGRES", "")
    return {"cases": tables, "files": files, "dialect": dialect, "dsn": dsn, "words": [],
            "schema": f"stair_{os.getpid()}" if dialect == "postgres" else "main"}  # fmt: skip


def _project(done: dict[int, dict[str, Any]]) -> dict[str, str]:
    """All folders as one project of dbt."""
    parts = {kind: [f"{n}/{kind}" for n in done] for kind in ("models", "tests")}
    files = {
        f"{n}/{name}": text for n, case in done.items() for name, text in case["export"].items()
        if name != "dbt_project.yml"
    }  # fmt: skip
    paths = f"model-paths: {parts['models']}\ntest-paths: {parts['tests']}\n"
    files["dbt_project.yml"] = f"name: cases\nversion: '1.0'\n{paths}"
    return files


# --- Great Expectations -------------------------------------------------------------------------


def try_great_expectations(n: int, folder: Path, seed: int | None = None) -> tuple[Trial, Trial]:
    """Each suite is validated in SQLite and on a pandas frame: what an expectation finds unexpected
    are the rows about which its rule decides."""
    found = drawn(n, seed=seed)
    sql, not_sql = exported(found, lambda c, _: to_great_expectations(c.rules, "sqlite"), "sqlite")
    frames, not_frames = exported(found, _for_pandas, "duckdb")
    order = {"sqlite": list(sql.values()), "pandas": list(frames.values())}
    answer = ask("great_expectations", order, folder)
    trials = []
    for name, done, refused in (("sqlite", sql, not_sql), ("pandas", frames, not_frames)):
        n_rules = 0
        for number in done:
            expected = {str(rule): places for rule, places in flagged(found[number]).items()}
            assert answer[name][f"t{number}"] == expected
            n_rules += len(expected)
        trials.append(Trial(len(done), n_rules, _counted(refused)))
    assert trials[1].refused.keys() <= {NOTHING}
    return trials[0], trials[1]


def _for_pandas(case: Case, number: int) -> dict[str, str]:
    del number
    suite = to_great_expectations(case.rules, "pandas")
    return {"suite": suite, "code": to_pandas(case.rules)}


# --- Soda ---------------------------------------------------------------------------------------


def try_soda(n: int, folder: Path, seed: int | None = None) -> Trial:
    """The rows that fail a check are those about which its rule decides; the outcome, and the exit
    code of a scan, follow from what the rules covered when learned."""
    found = drawn(n, seed=seed)
    done, refused = exported(found, lambda c, k: to_soda(c.rules, f"t{k}"), "duckdb")
    answer = ask("soda", {"cases": list(done.values())}, folder)
    n_checks = 0
    for number in done:
        case, scanned = found[number], answer[f"t{number}"]
        assert not scanned["log"], scanned["log"]
        outcomes = []
        for (rule, places), (name, outcome, n_rows, rows) in zip(
            flagged(case).items(), scanned["checks"], strict=True
        ):
            learned = case.rules[rule - 1]
            fails = learned.precision >= 0.9 and len(places) > learned.rows
            outcomes.append(2 if fails else min(1, len(places)))
            assert name.startswith(f"Rule {rule}: ")
            assert (n_rows, rows or []) == (len(places), places)
            assert outcome == ("pass", "warn", "fail")[outcomes[-1]]
            n_checks += 1
        assert scanned["code"] == max(outcomes)
    return Trial(len(done), n_checks, _counted(refused))


# --- Sigma --------------------------------------------------------------------------------------


def try_sigma(n: int, folder: Path, seed: int | None = None) -> Trial:
    """The query of a detection in SQLite, and a reader of events, find the rows about which its
    rule decides. In three of four rule sets most of what Sigma cannot say is left out, so that much
    is said."""
    found = _mostly(_is_sayable, drawn(n, seed=seed))
    found += map(_hostile, range(HOSTILE))
    done, refused = exported(found, lambda c, k: to_sigma(c.rules, f"t{k}"), "sqlite")
    answer = ask("sigma", {"cases": list(done.values())}, folder)
    n_detections = 0
    for number in done:
        case, said = found[number], answer[f"t{number}"]
        for rows in (1, 2):
            selected = {each[0]: each[rows] for each in said}
            missed = {k: rows for k, rows in flagged(case).items() if k not in selected}
            assert {**selected, **missed} == flagged(case), done[number]["export"]
            assert not any(missed.values())  # only rules that can flag nothing are left out
        assert all(_is_level(level, case.rules[k - 1].precision) for k, _, _, level in said)
        n_detections += len(said)
    assert {*range(n, n + HOSTILE)} <= {*done}
    return Trial(len(done), n_detections, _counted(refused))


def _is_sayable(case: Case, clause: Clause) -> bool:
    """Whether Sigma has words for a clause."""
    field = {each.name: each for each in case.fields}[clause.feature]
    if "|" in field.source or isinstance(clause, Period):
        return False
    return field.part != "weekday" and field.zone in ("", "UTC", "+01:00")


def _hostile(number: int) -> Case:
    """Each value by a rule of its own, and each term that texts may mention."""
    words = ["DE", "de", "É", "é", "*", "\\*", "\\\\",
             "a?c", "abc", "[a]", "a", "%", "_", "it's", "",
             "a\nb", "10", "true", "null", "x|y", " blanks ", "back\\slash"]  # fmt: skip
    table = {"word": np.array([*words, None], dtype=object),
             "text": np.array([*(f"Say {w}!" for w in words), None], dtype=object),
             "ip": np.array([*("10.1.2.3", "10.10.2.3", "192.168.0.1") * 7, "11.0.0.1", None],
                            dtype=object)}  # fmt: skip
    terms = ["*", "?", "\\", "[A]", "%", "_", "it's", "A\nB", " BLANKS", "É", "É!"]
    fields = [
        Field("word", "category", "word"),
        Field("text", "text", "text"),
        Field("ip /16", "category", "ip", "/16"),
        Field("ip /8", "category", "ip", "/8"),
    ]
    clauses: list[tuple[Clause, ...]] = [
        (Among("ip /16", ("10.1.0.0/16",), of="ip"), Among("word", ("a", "de"), True)),
        (Among("ip /8", ("10.0.0.0/8",), True, of="ip"), Mentions("text", "10")),
        (Among("ip /8", ("10.0.0.0/8",), True, True, of="ip"), Among("word", (), missing=True)),
        *((Among("word", (word,)),) for word in words),
    ]
    clauses = [(Mentions("text", terms[number % len(terms)]),), *clauses]
    outlier = tuple(Rule(each, LABELS[1]) for each in clauses)
    return Case(
        fields,
        table,
        RuleSet(outlier, LABELS, Schema(tuple(fields)), LABELS[0], (1.0, 1.0), LABELS[1]),
    )


def _is_level(level: str, precision: float) -> bool:
    if precision != precision:
        return level == "INFORMATIONAL"
    return level == ("HIGH" if precision >= 0.9 else "MEDIUM" if precision >= 0.5 else "LOW")


# --- Spark --------------------------------------------------------------------------------------


def try_spark(n: int, session: Any, seed: int | None = None) -> Trial:
    """The exported SQL, run in Spark on a table of rows, labels as the rules do, whatever the zone
    of its session."""
    from pyspark.sql import types

    kinds = [
        types.DoubleType(),
        types.StringType(),
        types.TimestampNTZType(),
        types.StringType(),
        types.BooleanType(),
        types.DoubleType(),
        types.TimestampType(),
        types.LongType(),
    ]
    found = drawn(n, seed=seed)
    done, refused = exported(
        found, lambda c, k: to_sql(c.rules, f"t{k}", "spark").rstrip().rstrip(";"), "spark"
    )
    for number in done:
        case, (label, rule) = found[number], new_columns(found[number].rules)
        session.conf.set("spark.sql.session.timeZone", ZONES[number % len(ZONES)])
        fields = zip([*case.table, "place"], kinds, strict=True)
        schema = types.StructType([types.StructField(*field) for field in fields])
        rows = [[*row.values(), k] for k, row in enumerate(case.rows())]
        session.createDataFrame(rows, schema).createOrReplaceTempView(f"t{number}")
        query = f"SELECT place, {label}, coalesce({rule}, 0) FROM ({done[number]['export']})"
        labelled = sorted(map(tuple, session.sql(query).collect()))
        expected = zip(range(len(rows)), case.labels, case.numbers, strict=True)
        assert labelled == list(expected), done[number]["export"]
        session.catalog.dropTempView(f"t{number}")
    session.conf.unset("spark.sql.session.timeZone")
    return Trial(len(done), len(done), _counted(refused))
