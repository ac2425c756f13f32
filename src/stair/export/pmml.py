"""Rules as PMML 4.4: a RuleSetModel whose first rule that hits decides.

A predicate about a missing value is unknown in PMML, which is no hit; a clause that covers missing
values says so by isMissing. Hours, weekdays and terms of texts are derived fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from stair.data.conversion import MEASURES
from stair.errors import StairError
from stair.export.conditions import Conditions, OfValue
from stair.export.needs import needed_fields, refuse_networks, refuse_types, refuse_wide
from stair.export.terms import term_pattern
from stair.rules.clauses import Among, Interval, Mentions, Period, folded
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field

NAMESPACE: Final = "http://www.dmg.org/PMML-4_4"
_UNWRITABLE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PARTS: Final = {"hour": "%H", "weekday": "%A"}


def to_pmml(rules: RuleSet) -> str:
    """A PMML document; its target is stair_label, and the rule's number is its output."""
    if rules.routing:
        raise StairError(
            "rules for partitions cannot be a rule set of PMML, which has no nearest partition; "
            "use SQL, Python or ONNX"
        )
    return _Writer(rules).document()


class _Writer(Conditions[str, Element]):
    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        refuse_types(needed_fields(rules), ("zoned", "time", *MEASURES), "PMML")
        refuse_wide(rules, "PMML")
        refuse_networks(needed_fields(rules), "PMML")
        self._fields = {field.name: field for field in needed_fields(rules)}
        self._sources: dict[str, Field] = {}
        for field in self._fields.values():
            self._sources.setdefault(field.source, field)
        self._taken = {*rules.schema.taken}
        self._target = self._new_name("stair_label")
        self._derived: dict[tuple[str, str], str] = {}  # field and what is made of it -> its name

    def document(self) -> str:
        from importlib.metadata import version

        model = Element(
            "RuleSetModel", modelName="stair", functionName="classification", algorithmName="STAIR"
        )
        schema = SubElement(model, "MiningSchema")
        for source in self._sources:
            SubElement(schema, "MiningField", name=_text(source), usageType="active")
        SubElement(schema, "MiningField", name=self._target, usageType="target")
        output = SubElement(model, "Output")
        SubElement(output, "OutputField", name=self._new_name("stair_rule"), optype="categorical",
                   dataType="string", feature="entityId")  # fmt: skip
        rule_set = Element("RuleSet", defaultScore=_word(self._rules.default))
        SubElement(rule_set, "RuleSelectionMethod", criterion="firstHit")
        excepted = len(self._rules.exceptions) > 0
        for number, rule in enumerate(self._rules.rules, start=1):
            if excepted and number in self._runs:
                rule_set.extend(self._exceptions(self._runs[number]))
            rule_set.append(self._rule(str(number), rule, self._all_of(rule)))
        if self._derived:
            model.append(self._transformations())
        model.append(rule_set)
        root = Element("PMML", xmlns=NAMESPACE, version="4.4")
        header = SubElement(root, "Header", description="Rules written by stair")
        SubElement(header, "Application", name="stair", version=version("stair"))
        root.append(self._dictionary())
        root.append(model)
        ElementTree.indent(root, " ")
        text = ElementTree.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'

    def _dictionary(self) -> Element:
        dictionary = Element("DataDictionary", numberOfFields=str(len(self._sources) + 1))
        for source, field in self._sources.items():
            optype, kind = self._type_of(field)
            found = SubElement(
                dictionary, "DataField", name=_text(source), optype=optype, dataType=kind
            )
            if kind == "double":
                SubElement(found, "Value", value="NaN", property="missing")
        kinds = {type(label) for label in map(_scalar, self._rules.classes)}
        kind = {int: "integer", float: "double", bool: "boolean"}.get(kinds.pop(), "string")
        target = SubElement(
            dictionary, "DataField", name=self._target, optype="categorical",
            dataType="string" if kinds else kind,
        )  # fmt: skip
        for label in self._rules.classes:
            SubElement(target, "Value", value=_word(label))
        return dictionary

    def _type_of(self, field: Field) -> tuple[str, str]:
        if field.kind == "time" or field.part is not None:
            return "continuous", "dateTime"
        if field.kind == "number":
            return "continuous", "double"
        return "categorical", {"number": "double", "flag": "boolean"}.get(field.type, "string")

    def _transformations(self) -> Element:
        found = Element("LocalTransformations")
        for (feature, made), name in self._derived.items():
            field = self._fields[feature]
            if field.part is None:
                optype, kind, function = "categorical", "boolean", "matches"
            else:
                function = "formatDatetime"
                optype, kind = (
                    ("continuous", "double") if made == "%H" else ("categorical", "string")
                )
            derived = SubElement(found, "DerivedField", name=name, optype=optype, dataType=kind)
            apply = SubElement(derived, "Apply", function=function)
            SubElement(apply, "FieldRef", field=_text(field.source))
            SubElement(apply, "Constant", dataType="string").text = _text(made)
        return found

    def _name(self, feature: str, made: str | None = None) -> str:
        """A field by its name in the document; one that is derived is noted to be written."""
        field = self._fields[feature]
        made = _PARTS[field.part] if field.part is not None else made
        if made is None:
            return _text(field.source)
        if (feature, made) not in self._derived:
            words = feature if field.part is not None else f"{feature} matches {made}"
            self._derived[feature, made] = self._new_name(_text(words))
        return self._derived[feature, made]

    def _new_name(self, name: str) -> str:
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    @property
    def _runs(self) -> dict[int, list[Rule]]:
        """The rules that give way to exceptions, by the number of the first one of each run."""
        found: dict[int, list[Rule]] = {}
        pairs = zip(self._rules.gives_way, enumerate(self._rules.rules, start=1), strict=True)
        for gives, run in groupby(pairs, itemgetter(0)):
            listed = [numbered for _, numbered in run]
            if gives:
                found[listed[0][0]] = [rule for _, rule in listed]
        return found

    def _exceptions(self, run: Sequence[Rule]) -> list[Element]:
        """The exceptions as rules for the default label, before the rules that they take rows
        from: they hit where any of those would."""
        found = []
        for number, rule in enumerate(self._rules.exceptions, start=1):
            any_of = _joined("or", [self._all_of(each) for each in run])
            parts = [*map(self.of, rule.clauses), any_of]
            found.append(self._rule(f"exception {number}", rule, _joined("and", parts)))
        return found

    def _all_of(self, rule: Rule) -> Element:
        return _joined("and", [self.of(clause) for clause in rule.clauses])

    def _rule(self, name: str, rule: Rule, predicate: Element) -> Element:
        found = Element("SimpleRule", id=name, score=_word(rule.label))
        if rule.counts and rule.rows:
            found.set("recordCount", _number(rule.rows))
            found.set("nbCorrect", _number(rule.hits))
            found.set("confidence", _number(rule.precision))
        found.append(predicate)
        for label, count in rule.counts:
            SubElement(found, "ScoreDistribution", value=_word(label), recordCount=_number(count))
        return found

    def column(self, feature: str) -> str:
        return self._name(feature)

    def here(self, column: str) -> Element:
        return _simple(column, "isNotMissing")

    def gone(self, column: str) -> Element:
        return _simple(column, "isMissing")

    def always(self) -> Element:
        return Element("True")

    def never(self) -> Element:
        return Element("False")

    def between(self, clause: Interval | Period, column: str) -> Element | None:
        parts = [
            _simple(column, sign, _bound(bound))
            for sign, bound in zip(("greaterThan", "lessOrEqual"), clause.bounds, strict=True)
            if bound is not None
        ]
        return _joined("and", parts) if parts else None

    def listed(self, clause: Among, column: str) -> Element | None:
        sign = "notEqual" if clause.negated else "equal"
        parts = [_simple(column, sign, _word(value)) for value in clause.values]
        return _joined("and" if clause.negated else "or", parts) if parts else None

    def inside(self, clause: OfValue, column: str, inside: Element) -> Element:
        return _joined("or", [self.gone(column), inside]) if clause.missing else inside

    def mentions(self, clause: Mentions) -> Element:
        name = self._name(clause.feature, term_pattern(folded(clause.term)))
        if clause.present:
            return _simple(name, "equal", "true")
        gone = self.gone(self._name(clause.feature))
        return _joined("or", [gone, _simple(name, "equal", "false")])


def _simple(field: str, operator: str, value: str | None = None) -> Element:
    found = Element("SimplePredicate", field=field, operator=operator)
    if value is not None:
        found.set("value", value)
    return found


def _joined(operator: str, parts: Sequence[Element]) -> Element:
    """Several predicates as one."""
    if not parts:
        return Element("True")
    if len(parts) == 1:
        return parts[0]
    found = Element("CompoundPredicate", booleanOperator=operator)
    found.extend(parts)
    return found


def _bound(bound: float | np.datetime64) -> str:
    if not isinstance(bound, np.datetime64):
        return _number(bound)
    text = str(bound.astype("datetime64[us]"))
    return text.rstrip("0").rstrip(".") if "." in text else text


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _scalar(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _word(value: object) -> str:
    value = _scalar(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return _number(value) if isinstance(value, int | float) else _text(str(value))


def _text(text: str) -> str:
    if _UNWRITABLE.search(text):
        raise StairError(f"{text!r} has a character that XML cannot hold; PMML is XML")
    return text
