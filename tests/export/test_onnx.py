"""The ONNX graph labels rows as the rules do, and does not grow with the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from onnx.reference import ReferenceEvaluator

from export_cases import LOTS, SOME, Case, cases
from stair import StairError
from stair.export.onnx import onnx_inputs, to_onnx
from stair.rules.clauses import Interval
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema


def _session(model: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _needs_a_column(case: Case) -> bool:
    clauses = any(case.rules.clauses)
    return clauses or hasattr(case.rules, "space")


@LOTS
@given(cases().filter(_needs_a_column))
def test_onnxruntime_labels_rows_as_the_rules_do(case: Case) -> None:
    """Numbers, categories, times, their parts, text, missing values, partitions; overlaps too."""
    session = _session(to_onnx(case.rules))
    labels, numbers, *lifted = session.run(None, onnx_inputs(case.rules, case.table))
    assert numbers.tolist() == case.numbers
    assert labels.tolist() == case.labels
    assert bool(lifted) == bool(case.rules.exceptions)
    assert not lifted or lifted[0].tolist() == case.exceptions


@SOME
@given(cases(text=False, huge=False).filter(_needs_a_column))
def test_the_reference_of_onnx_agrees(case: Case) -> None:
    """The definition of the operators in onnx itself, which is not the code of any runtime."""
    reference = ReferenceEvaluator(to_onnx(case.rules))
    found = reference.run(None, onnx_inputs(case.rules, case.table))
    assert found[1].tolist() == case.numbers


def test_the_graph_has_as_many_nodes_for_many_rules_as_for_few() -> None:
    """500 rules make larger constants, not more nodes."""

    def rules(n: int) -> RuleSet:
        made = [Rule((Interval("a", k, k + 0.5), Interval("b", 0.0, k)), k % 2) for k in range(n)]
        return RuleSet(tuple(made), (0, 1), ("a", "b"), 0, (1.0, 1.0), 1)

    nodes = {n: len(onnx.load_from_string(to_onnx(rules(n))).graph.node) for n in (2, 500)}
    assert nodes[2] == nodes[500] < 20
    table = {"a": np.array([7.25, 7.75, np.nan]), "b": np.array([3.0, 3.0, 3.0])}
    session = _session(to_onnx(rules(500)))
    labels, numbers = session.run(None, onnx_inputs(rules(500), table))
    assert (labels.tolist(), numbers.tolist()) == ([1, 0, 0], [8, 0, 0])


def test_bounds_are_compared_as_doubles() -> None:
    """A graph in single precision would not tell these two numbers apart."""
    bound = 0.1 + 2**-40
    rules = RuleSet((Rule((Interval("a", bound),), 1),), (0, 1), ("a",), 0, (1.0, 1.0), 1)
    table = {"a": np.array([bound, np.nextafter(bound, 1.0)])}
    labels, _ = _session(to_onnx(rules)).run(None, onnx_inputs(rules, table))
    assert labels.tolist() == [0, 1]


def test_rules_that_speak_of_no_column_are_refused() -> None:
    rules = RuleSet((), (0, 1), (), 0, (1.0, 1.0), 1)
    with pytest.raises(StairError, match="speak of no column"):
        to_onnx(rules)
    with pytest.raises(StairError, match="its values are texts"):
        from stair.rules.clauses import Among

        mixed = replace(
            rules,
            rules=(Rule((Among("a", ("x", 1)),), 1),),
            schema=Schema((Field("a", "category", "a"),)),
        )
        to_onnx(mixed)


def test_without_onnx_there_is_a_plain_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    rules = RuleSet((Rule((Interval("a", 0.0),), 1),), (0, 1), ("a",), 0, (1.0, 1.0), 1)
    with pytest.raises(StairError, match=r"needs onnx: pip install 'stair\[onnx\]'"):
        to_onnx(rules)
