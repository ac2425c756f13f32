"""PMML, read by a small interpreter of its own rules: three-valued predicates, the first hit."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given

from export_cases import FEW, LOTS, Case, cases
from stair import StairError
from stair.export.pmml import to_pmml
from stair.rules.clauses import Among
from stair.rules.rule_set import Rule, RuleSet

P = "{http://www.dmg.org/PMML-4_4}"


def _typed(text: str, kind: str) -> Any:
    if kind in ("double", "integer"):
        return float(text)
    if kind == "dateTime":
        return datetime.fromisoformat(text)
    return text == "true" if kind == "boolean" else text


class Model:
    """What a PMML engine does with a RuleSetModel, as the standard says it."""

    def __init__(self, text: str) -> None:
        root = ElementTree.fromstring(text)
        assert root.tag == f"{P}PMML"
        assert root.get("version") == "4.4"
        assert [child.tag for child in root] == [
            f"{P}{name}" for name in ("Header", "DataDictionary", "RuleSetModel")
        ]
        dictionary, self.model = root[1], root[2]
        assert int(dictionary.get("numberOfFields", 0)) == len(dictionary)
        self.kinds = {f.get("name", ""): f.get("dataType", "") for f in dictionary}
        names = [child.tag.removeprefix(P) for child in self.model]
        order = ["MiningSchema", "Output", "LocalTransformations", "RuleSet"]
        assert names == [name for name in order if name in names]
        schema = self.model.find(f"{P}MiningSchema")
        assert schema is not None
        assert {f.get("name") for f in schema} == set(self.kinds)
        self.derived = list(self.model.iter(f"{P}DerivedField"))
        self.kinds |= {d.get("name", ""): d.get("dataType", "") for d in self.derived}
        rule_set = self.model.find(f"{P}RuleSet")
        assert rule_set is not None
        self.rules = rule_set.findall(f"{P}SimpleRule")
        self.default = rule_set.get("defaultScore")
        method, *rest = list(rule_set)
        assert (method.tag, method.get("criterion")) == (f"{P}RuleSelectionMethod", "firstHit")
        assert rest == self.rules

    def __call__(self, row: dict[str, Any]) -> tuple[str | None, str]:
        values = {n: None if v is None or v != v else v for n, v in row.items()}
        for field in self.derived:
            values[field.get("name", "")] = self._made(field, values)
        for rule in self.rules:
            if self._is_true(rule[0], values):
                return rule.get("score"), rule.get("id", "")
        return self.default, ""

    def _made(self, field: Any, values: dict[str, Any]) -> Any:
        apply = field[0]
        given, constant = values[apply[0].get("field")], apply[1].text
        if given is None:
            return None
        if apply.get("function") == "matches":
            return re.search(constant, given) is not None
        assert apply.get("function") == "formatDatetime"
        return _typed(given.strftime(constant), field.get("dataType"))

    def _is_true(self, predicate: Any, values: dict[str, Any]) -> bool | None:
        """None stands for unknown."""
        tag = predicate.tag.removeprefix(P)
        if tag in ("True", "False"):
            return bool(tag == "True")
        if tag == "CompoundPredicate":
            parts = [self._is_true(part, values) for part in predicate]
            decisive = predicate.get("booleanOperator") == "or"
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        assert tag == "SimplePredicate"
        name, operator = predicate.get("field"), predicate.get("operator")
        value = values[name]
        if operator in ("isMissing", "isNotMissing"):
            return (value is None) == (operator == "isMissing")
        if value is None:
            return None
        bound = _typed(predicate.get("value"), self.kinds[name])
        return {
            "equal": lambda: value == bound,
            "notEqual": lambda: value != bound,
            "greaterThan": lambda: value > bound,
            "lessOrEqual": lambda: value <= bound,
        }[operator]()  # type: ignore[no-any-return]


@LOTS
@given(cases(local=False))
def test_pmml_labels_rows_as_the_rules_do(case: Case) -> None:
    model = Model(to_pmml(case.rules))
    names = [
        f"exception {e}" if e else f"{n}" if n else ""
        for n, e in zip(case.numbers, case.exceptions, strict=True)
    ]
    expected = list(zip(case.labels, names, strict=True))
    assert [model(row) for row in case.rows(math.nan)] == expected


@FEW
@given(cases(local=True))
def test_rules_for_partitions_are_refused(case: Case) -> None:
    with pytest.raises(StairError, match="has no nearest partition"):
        to_pmml(case.rules)


def test_what_xml_cannot_hold_is_refused() -> None:
    rules = RuleSet((Rule((Among("a", ("\0",)),), 1),), (0, 1), ("a",), 0, (1.0, 1.0), 1)
    with pytest.raises(StairError, match="XML cannot hold"):
        to_pmml(rules)
