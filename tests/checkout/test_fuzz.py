"""The fuzzer itself: a number is always the same table, a stopped run goes on, and what was found
once holds for good."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fuzz import oracle
from fuzz.case import Case, case_from_json, case_to_json, load_case
from fuzz.draw import draw_case
from fuzz.result import Finding, Result
from fuzz.run import ROOT, Run, State
from fuzz.shrink import shrunk
from fuzz.targets import targets
from fuzz.worker import look_at

from places import TESTS
from strategies import examples

REGRESSIONS = sorted((TESTS / "regressions").glob("*.json"))


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # the checks look at warnings themselves
def test_what_was_found_once_holds(path: Path, tmp_path: Path) -> None:
    """Each file is a table on which something was wrong, made as small as it gets."""
    case, _ = load_case(path)
    with targets(tmp_path) as endings:
        found = look_at(case, tmp_path, endings).findings
    assert not found, [f"{f.check} | {f.target} | {f.kind} | {f.story}" for f in found]


@pytest.mark.parametrize("number", range(40))
def test_a_number_is_always_the_same_table(number: int) -> None:
    """And a file holds all of it: NaN, zones, microseconds, bytes."""
    case = draw_case(3, number)
    text = case_to_json(case)
    assert case_to_json(draw_case(3, number)) == text
    again, finding = case_from_json(text)
    assert case_to_json(again) == text
    assert finding == {}


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    """The work folder remembers the next number and the tallies."""
    for _ in range(2):
        state = State.opened(tmp_path, 5)
        Run(state, only="nothing", shrink_seconds=0.0, say=lambda _: None).go(60.0, cases=2)
    state = State.opened(tmp_path, 5)
    assert state.next == 4
    assert state.tallies["drawn / all: cases"] == 4
    assert State.opened(tmp_path, 6).next == 0


def test_work_without_end_is_ended_by_the_time_of_the_processor() -> None:
    """By the clock on the wall tables were findings because the machine was busy with others."""
    program = (
        "from fuzz import worker\nworker.MOST_SECONDS = 1\nworker.begin_to_count()\n"
        "while True: pass"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGXCPU


def test_a_case_is_made_smaller_while_it_fails() -> None:
    """Down to the column and the row that matter."""
    case = next(c for c in (draw_case(1, k) for k in range(99)) if len(c.table.columns) > 4)
    wanted = case.table.columns[2]
    value = wanted.values[3]

    def fails(small: Case) -> bool:
        return any(c.type == wanted.type and value in c.values for c in small.table.columns)

    small = shrunk(case, fails, 60.0)
    assert len(small.table.columns) == 1
    assert small.table.n_rows == 1
    assert not fails(replace(small, table=small.table.take([])))


def test_the_oracle_reads_a_file_as_the_documents_say() -> None:
    """Bounds are exact, missing values need a clause that says so, unseen values are negated."""
    clauses = [
        ({"feature": "x", "above": 2**53, "up_to": None, "missing": False}, 2**53 + 1, True),
        ({"feature": "x", "above": None, "up_to": 1.5, "missing": True}, None, True),
        ({"feature": "x", "not in": ["a"], "missing": False}, oracle.UNSEEN, True),
        ({"feature": "x", "in": [1], "missing": False}, "1", False),
        ({"feature": "x", "mentions": "GIFT", "present": True}, "a gift", True),
        ({"feature": "x", "only": "missing times", "missing": True, "whole_days": True}, 5, False),
    ]
    for clause, value, expected in clauses:
        assert oracle.meets(clause, value) is expected
    assert oracle.as_code(2.0) == oracle.as_code(2) == oracle.as_code("2") == "2"


def test_equal_findings_of_a_case_are_one() -> None:
    result = Result()
    for story in ("one", "two"):
        result.found(Finding("check", "target", "kind", story))
    assert len(result.findings) == 1
    assert result.tallies["check / target: found"] == 2


def test_nothing_is_found_in_the_first_tables(tmp_path: Path) -> None:
    """A short run: every check on the same tables each time. `make fuzz` goes on for hours."""
    said: list[str] = []
    n = examples(40)
    state = State.opened(tmp_path, 0)
    Run(state, shrink_seconds=0.0, say=said.append).go(600.0, cases=n)
    assert not state.kinds, "\n".join(said)
    assert state.tallies["drawn / all: cases"] == n
    assert sum(n for name, n in state.tallies.items() if name.endswith(": compared")) > 20 * n
