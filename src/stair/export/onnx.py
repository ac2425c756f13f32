"""Rules as one ONNX graph, of as many nodes for a thousand rules as for one.

Clauses are rows of constants: each is compared with its column in one step for all of them, and a
matrix says which clause belongs to which rule. Numbers are doubles and times are whole
microseconds, so bounds are exact. Only a term that a text must mention costs a node of its own.

Each column is an input of shape (rows, 1) under its own name; `onnx_inputs` makes them. ONNX has no
missing values: a missing number is NaN, a missing time is the smallest int64, and a missing text is
the character U+FFFF, which no text may contain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from stair.data.conversion import MEASURES, WEEKDAYS
from stair.data.frame import Array, DType
from stair.errors import StairError
from stair.export.code import plain
from stair.export.needs import needed_fields, refuse_networks, refuse_wide, refuse_zones
from stair.export.onnx_graph import Graph, input_of
from stair.export.routing import CategoryLeg, NumberLeg, TextLeg, legs
from stair.export.terms import term_pattern
from stair.rules.clauses import Among, Interval, Mentions, Period, folded
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field, Schema

MISSING_TEXT: Final = "\uffff"
MISSING_TIME: Final = -(2**63)
_DAY: Final = 86_400_000_000
_HOUR: Final = 3_600_000_000


def to_onnx(rules: RuleSet) -> bytes:
    """A model with two outputs: stair_label, and stair_rule (from 1; 0 where no rule covers). Where
    there are exceptions, it has stair_exception too (0 where none takes the row from a rule)."""
    columns = _Columns(rules)
    if not columns.inputs:
        raise StairError("the rules speak of no column, so ONNX has nothing to compute")
    graph = Graph()
    values = columns.read(graph)
    covered = _covered(rules, graph, columns, values)
    excepted = ""
    if rules.exceptions:
        places = [*range(len(rules)), len(rules) + len(rules.exceptions)]
        excepted = graph.take(covered, range(len(rules), places[-1]))
        covered = graph.take(covered, places)
    if rules.routing:
        covered = graph.add("And", covered, _in_partition(rules, graph, columns, values))
    lifting = ""
    if excepted:
        covered, lifting = _left(rules, graph, covered, excepted)
    first = _first(graph, covered)
    numbers = np.array([*range(1, len(rules) + 1), 0], dtype=np.int64)
    labels = _labels(rules)
    outputs: dict[str, DType] = {}
    found = [("stair_label", labels, first), ("stair_rule", numbers, first)]
    if lifting:
        listed = np.array([*range(1, len(rules.exceptions) + 1), 0], dtype=np.int64)
        found.append(("stair_exception", listed, _first(graph, lifting)))
    for name, table, place in found:
        while name in columns.inputs:
            name += "_"
        outputs[graph.add("Gather", graph.constant(table), place, name=name)] = table.dtype
    return graph.model(columns.inputs, outputs, "Rules written by stair")


def _first(graph: Graph, flags: str) -> str:
    """The place of the first column that is true; the last one always is."""
    return graph.add("ArgMax", graph.cast(flags, np.int32), axis=1, keepdims=0)


def _left(rules: RuleSet, graph: Graph, covered: str, excepted: str) -> tuple[str, str]:
    """What exceptions leave to the rules and the default, and which exception takes each row from
    the rule that would decide about it, with a last column that is true."""
    gives_way = np.array([*rules.gives_way, False])

    def any_of(flags: str) -> str:
        counts = graph.cast(flags, np.int32)
        return graph.cast(graph.add("ReduceMax", counts, graph.axes(1), keepdims=1), np.bool_)

    taken = graph.add("And", any_of(excepted), graph.constant(gives_way[None]))
    left = graph.add("And", covered, graph.add("Not", taken))
    would_be = graph.add("Gather", graph.constant(gives_way), _first(graph, covered))
    is_taken = graph.add("Unsqueeze", would_be, graph.axes(1))
    lifted = graph.add("And", excepted, is_taken)
    always = graph.add("Or", is_taken, graph.add("Not", is_taken))
    return left, graph.add("Concat", lifted, always, axis=1)


def onnx_inputs(rules: RuleSet, table: object) -> dict[str, Array]:
    """The columns of a table as the model wants them: what to give to a session's `run`."""
    columns = _Columns(rules)
    found = {}
    for source, dtype in columns.inputs.items():
        field = columns.field_of[source]
        if dtype == np.int64:
            times = Schema((Field(source, "time", source),)).read(table)[source]
            array = times.astype(np.int64)
        else:
            values = rules.schema.read(table, {field.name})[field.name]
            if dtype == np.float64:
                if rules.routing:
                    _check_exact(values, source)
                array = np.array([_double(v) for v in values.tolist()], dtype=dtype)
            else:
                if MISSING_TEXT in values.tolist():
                    raise StairError(
                        f'"{source}" has the text U+FFFF, which ONNX takes for missing'
                    )
                listed = [MISSING_TEXT if v is None else str(v) for v in values.tolist()]
                array = np.array(listed, dtype=object)
        found[input_of(source)] = array[:, None]
    return found


def _check_exact(values: Array, source: str) -> None:
    """Distances take the nearest double and bounds the next one; the model has but one number."""
    for value in values.tolist() if values.dtype.kind in "iuO" else ():
        if isinstance(value, int) and int(float(value)) != value:
            raise StairError(
                f'"{source}" has {value}, and ONNX cannot tell whole numbers beyond 2**53 apart; '
                "use another kind of export"
            )


def _double(value: str | float | None) -> float:
    """A number as the model compares it: of two neighbours the upper one, which is on the same side
    of every bound that is a double. A category that is no number is none of the known ones."""
    if value is None or value != value:
        return np.nan
    if isinstance(value, str):
        return np.inf
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)


def _labels(rules: RuleSet) -> Array:
    listed = [plain(rule.label) for rule in rules.rules] + [plain(rules.default)]
    if any(isinstance(label, str) for label in listed):
        return np.array([str(label) for label in listed], dtype=object)
    kind = np.float64 if any(isinstance(label, float) for label in listed) else np.int64
    return np.array(listed, dtype=kind)


class _Columns:
    """Where each field is found: in the matrix of numbers, of times or of texts, and at what place.

    Hours and weekdays are numbers that the graph works out from the times.
    """

    def __init__(self, rules: RuleSet) -> None:
        refuse_wide(rules, "ONNX")
        refuse_networks(needed_fields(rules), "ONNX")
        refuse_zones(needed_fields(rules), "ONNX")
        self.inputs: dict[str, DType] = {}
        self.field_of: dict[str, Field] = {}
        self.parts: list[Field] = []
        self.place: dict[str, tuple[str, int]] = {}
        sources: dict[str, list[str]] = {"numbers": [], "times": [], "texts": []}
        for field in needed_fields(rules):
            matrix, dtype = self._matrix_of(field)
            if field.source not in sources[matrix]:
                sources[matrix].append(field.source)
                self.field_of.setdefault(field.source, field)
            if self.inputs.setdefault(field.source, dtype) != dtype:
                raise StairError(f'"{field.source}" is read as two types, which ONNX cannot do')
            if field.part is None:
                self.place[field.name] = (matrix, sources[matrix].index(field.source))
            else:
                self.parts.append(field)
        self.sources = sources
        for field in self.parts:
            self.place[field.name] = ("numbers", len(sources["numbers"]) + self.parts.index(field))

    def _matrix_of(self, field: Field) -> tuple[str, DType]:
        if field.kind == "time" or field.part is not None:
            return "times", np.dtype(np.int64)
        if field.kind == "number" or field.type in ("number", "flag", *MEASURES):
            return "numbers", np.dtype(np.float64)
        return "texts", np.dtype(object)

    def read(self, graph: Graph) -> dict[str, str]:
        """The matrices as values of the graph."""
        found = {
            matrix: graph.add("Concat", *map(input_of, names), axis=1)
            for matrix, names in self.sources.items()
            if names
        }
        if self.parts:
            numbers = [found["numbers"]] if "numbers" in found else []
            found["numbers"] = graph.add("Concat", *numbers, self._parts(graph, found), axis=1)
        return found

    def _parts(self, graph: Graph, found: Mapping[str, str]) -> str:
        """Hours and weekdays (Monday is 0) as numbers, NaN where the time is missing."""
        places = [self.sources["times"].index(field.source) for field in self.parts]
        times = graph.take(found["times"], places)
        in_day = graph.add("Mod", times, graph.constant(np.int64(_DAY)))
        hour = graph.add("Div", in_day, graph.constant(np.int64(_HOUR)))
        days = graph.add("Div", graph.add("Sub", times, in_day), graph.constant(np.int64(_DAY)))
        since_monday = graph.add("Add", days, graph.constant(np.int64(3)))  # 1970 began a Thursday
        weekday = graph.add("Mod", since_monday, graph.constant(np.int64(7)))
        is_hour = graph.constant(np.array([[f.part == "hour" for f in self.parts]]))
        chosen = graph.cast(graph.add("Where", is_hour, hour, weekday), np.float64)
        gone = graph.add("Equal", times, graph.constant(np.int64(MISSING_TIME)))
        return graph.add("Where", gone, graph.constant(np.float64(np.nan)), chosen)

    def value(self, feature: str, value: str | float) -> str | float:
        """A category as it stands in the matrix."""
        for field in self.parts:
            if field.name == feature:
                return float(WEEKDAYS.index(str(value)))
        return value if self.place[feature][0] == "texts" else float(value)

    def missing(self, graph: Graph, matrix: str, taken: str) -> str:
        if matrix == "numbers":
            return graph.add("IsNaN", taken)
        if matrix == "times":
            return graph.add("Equal", taken, graph.constant(np.int64(MISSING_TIME)))
        return graph.add("Equal", taken, graph.constant(np.array(MISSING_TEXT, dtype=object)))


class _Conditions:
    """The clauses of all rules with the places of their rules, by what they ask of a value."""

    def __init__(self, rules: RuleSet) -> None:
        self.bounds: list[tuple[int, Interval | Period]] = []
        self.lists: list[tuple[int, Among]] = []
        self.terms: list[tuple[int, Mentions]] = []
        for self._rule, rule in enumerate((*rules.rules, *rules.exceptions)):
            for clause in rule.clauses:
                clause.accept(self)

    def interval(self, clause: Interval) -> None:
        self.bounds.append((self._rule, clause))

    def period(self, clause: Period) -> None:
        self.bounds.append((self._rule, clause))

    def among(self, clause: Among) -> None:
        self.lists.append((self._rule, clause))

    def mentions(self, clause: Mentions) -> None:
        self.terms.append((self._rule, clause))


def _covered(rules: RuleSet, graph: Graph, columns: _Columns, values: dict[str, str]) -> str:
    """Which rule and which exception covers which row (rows × rules and exceptions), and a last
    column, the default, that is true."""
    asked = _Conditions(rules)
    met: list[str] = []  # rows × some clauses
    owner: list[int] = []  # the rule of each clause, in the order of `met`
    for matrix in ("numbers", "times", "texts"):
        bounded = [(k, c) for k, c in asked.bounds if columns.place[c.feature][0] == matrix]
        if bounded:
            met.append(_bounded(graph, columns, values, matrix, [c for _, c in bounded]))
            owner += [k for k, _ in bounded]
        named = [(k, c) for k, c in asked.lists if columns.place[c.feature][0] == matrix]
        if named:
            met.append(_among(graph, columns, values, matrix, [c for _, c in named]))
            owner += [k for k, _ in named]
    if asked.terms:
        met.append(_mentioned(graph, columns, values, [c for _, c in asked.terms]))
        owner += [k for k, _ in asked.terms]
    n_columns = len(rules) + len(rules.exceptions) + 1
    belongs = np.zeros((max(1, len(owner)), n_columns), dtype=np.float32)
    if not met:  # no clause at all: something that is true for each row
        first = input_of(next(iter(columns.inputs)))
        met.append(graph.add("Equal", first, first))
    else:
        belongs[range(len(owner)), owner] = 1.0
    all_met = graph.add("Concat", *met, axis=1)
    unmet = graph.cast(graph.add("Not", all_met), np.float32)
    counted = graph.add("MatMul", unmet, graph.constant(belongs))
    return graph.add("Less", counted, graph.constant(np.float32(0.5)))


def _bounded(
    graph: Graph, columns: _Columns, values: dict[str, str], matrix: str, clauses: Sequence[Any]
) -> str:
    """Clauses with bounds: low < x ≤ high, or missing where the clause allows it."""
    taken = graph.take(values[matrix], [columns.place[c.feature][1] for c in clauses])
    if matrix == "numbers":
        low = np.array([c.low for c in clauses], dtype=np.float64)
        high = np.array([c.high for c in clauses], dtype=np.float64)
        no_low = np.isneginf(low)
    else:
        low = np.array([c.after.astype(np.int64) for c in clauses], dtype=np.int64)
        high = np.array([c.until.astype(np.int64) for c in clauses], dtype=np.int64)
        no_low = np.zeros(len(low), dtype=np.bool_)  # what is below all times is missing
    inside = graph.add(
        "And",
        graph.add(
            "Or", graph.add("Greater", taken, graph.constant(low)), graph.constant(no_low)
        ),  # nothing is below −∞, and yet it is above no bound
        graph.add("LessOrEqual", taken, graph.constant(high)),
    )
    allowed = graph.constant(np.array([c.missing for c in clauses]))
    gone = columns.missing(graph, matrix, taken)
    return graph.add("Or", inside, graph.add("And", gone, allowed))


def _hits(
    graph: Graph,
    columns: _Columns,
    values: dict[str, str],
    matrix: str,
    named: Sequence[tuple[str, Sequence[str | float]]],
    weights: Callable[[int], float],
) -> str:
    """For each list of categories of a column the weight (of its place) of the one that is there.

    All pairs of a column and a category are compared at once; a matrix adds up their weights.
    """
    pairs = [(j, columns.place[feature][1], columns.value(feature, value), k)
             for j, (feature, listed) in enumerate(named)
             for k, value in enumerate(listed)]  # fmt: skip
    if not pairs:  # only missing values are asked for
        pairs = [(0, 0, MISSING_TEXT if matrix == "texts" else 0.0, -1)]
    kind: DTypeLike = object if matrix == "texts" else np.float64
    taken = graph.take(values[matrix], [place for _, place, _, _ in pairs])
    there = graph.add("Equal", taken, graph.constant(np.array([p[2] for p in pairs], dtype=kind)))
    matter = np.zeros((len(pairs), len(named)), dtype=np.float32)
    for row, (j, _, _, k) in enumerate(pairs):
        matter[row, j] = weights(k)
    return graph.add("MatMul", graph.cast(there, np.float32), graph.constant(matter))


def _among(
    graph: Graph, columns: _Columns, values: dict[str, str], matrix: str, clauses: Sequence[Among]
) -> str:
    if matrix == "times":
        raise StairError("a time that is read as a category cannot be compared in ONNX")
    named = [(c.feature, c.values) for c in clauses]
    hits = _hits(graph, columns, values, matrix, named, lambda k: float(k >= 0))
    found = graph.add("Greater", hits, graph.constant(np.float32(0.5)))
    wanted = graph.add("Xor", found, graph.constant(np.array([c.negated for c in clauses])))
    taken = graph.take(values[matrix], [columns.place[c.feature][1] for c in clauses])
    gone = columns.missing(graph, matrix, taken)
    inside = graph.add("And", wanted, graph.add("Not", gone))
    allowed = graph.constant(np.array([c.missing for c in clauses]))
    return graph.add("Or", inside, graph.add("And", gone, allowed))


def _mentioned(
    graph: Graph, columns: _Columns, values: dict[str, str], clauses: Sequence[Mentions]
) -> str:
    """Each pair of a column and a term is looked for once, whatever the number of clauses."""
    pairs = list(dict.fromkeys((c.feature, folded(c.term)) for c in clauses))
    found = _terms(graph, columns, values, pairs)
    chosen = graph.take(found, [pairs.index((c.feature, folded(c.term))) for c in clauses])
    absent = graph.constant(np.array([not c.present for c in clauses]))
    return graph.add("Xor", chosen, absent)


def _terms(
    graph: Graph, columns: _Columns, values: dict[str, str], pairs: Sequence[tuple[str, str]]
) -> str:
    found = []
    for feature, term in pairs:
        column = graph.take(values["texts"], [columns.place[feature][1]])
        found.append(graph.add("RegexFullMatch", column, pattern=f"(?s).*{term_pattern(term)}.*"))
    return graph.add("Concat", *found, axis=1)


def _in_partition(rules: RuleSet, graph: Graph, columns: _Columns, values: dict[str, str]) -> str:
    """Which rules belong to a row's nearest partition; the default belongs to each."""
    by_axis = list(
        zip(*legs(rules.routing), strict=True)
    )  # the legs of all partitions, for each axis
    parts: list[str] = []  # rows × partitions × axes of one kind
    order: list[int] = []
    for matrix in ("numbers", "times", "texts"):
        numbers = [(a, every) for a, every in enumerate(by_axis)
                   if isinstance(every[0], NumberLeg)
                   and columns.place[every[0].feature][0] == matrix]  # fmt: skip
        if numbers:
            parts.append(_number_parts(graph, columns, values, matrix, [e for _, e in numbers]))
            order += [a for a, _ in numbers]
        named = [(a, every) for a, every in enumerate(by_axis)
                 if isinstance(every[0], CategoryLeg)
                 and columns.place[every[0].feature][0] == matrix]  # fmt: skip
        if named:
            parts.append(_category_parts(graph, columns, values, matrix, [e for _, e in named]))
            order += [a for a, _ in named]
    for a, every in enumerate(by_axis):
        if isinstance(every[0], TextLeg):
            parts.append(_text_part(graph, columns, values, every))
            order.append(a)
    sums = graph.add("Concat", *parts, axis=2)
    sums = graph.take(sums, [order.index(a) for a in range(len(order))], axis=2)
    nearest = graph.add("ArgMin", graph.last_sum(sums, len(order)), axis=1, keepdims=1)
    here = graph.add(
        "Equal", nearest, graph.constant(np.array([*rules.partition_of, -1], dtype=np.int64))
    )
    is_default = np.arange(len(rules) + 1) == len(rules)
    return graph.add("Or", here, graph.constant(is_default))


def _number_parts(
    graph: Graph, columns: _Columns, values: dict[str, str], matrix: str, every: Sequence[Any]
) -> str:
    """(((x − middle) / scale) / root − center)² for each partition and axis."""
    taken = graph.take(values[matrix], [columns.place[e[0].feature][1] for e in every])
    gone = columns.missing(graph, matrix, taken)
    if matrix == "numbers":  # an infinite number has no place
        gone = graph.add("Or", gone, graph.add("IsInf", taken))
    gone = graph.add("Unsqueeze", gone, graph.axes(1))
    x = taken if matrix == "numbers" else graph.cast(taken, np.float64)
    for operator, name in (("Sub", "middle"), ("Div", "scale"), ("Div", "root")):
        x = graph.add(operator, x, graph.constant(np.array([getattr(e[0], name) for e in every])))
    x = graph.add("Unsqueeze", x, graph.axes(1))
    centers = np.array([[leg.center for leg in e] for e in every]).T
    offset = graph.add("Sub", x, graph.constant(centers))
    squared = graph.add("Mul", offset, offset)
    away = np.array([[leg.gone for leg in e] for e in every]).T
    return graph.add("Where", gone, graph.constant(away), squared)


def _category_parts(
    graph: Graph, columns: _Columns, values: dict[str, str], matrix: str, every: Sequence[Any]
) -> str:
    """What the category that is there adds, looked up by its place; the first for all others."""
    named = [(e[0].feature, [value for value, _ in e[0].values]) for e in every]
    place = _hits(graph, columns, values, matrix, named, lambda k: float(k + 1))
    table: list[list[float]] = []
    starts = []
    for e in every:
        starts.append(len(table))
        table.append([leg.other for leg in e])
        table += [[leg.values[k][1] for leg in e] for k in range(len(e[0].values))]
    rows = graph.add(
        "Add", graph.cast(place, np.int64), graph.constant(np.array(starts, dtype=np.int64))
    )
    found = graph.add("Gather", graph.constant(np.array(table)), rows)  # rows × axes × partitions
    return graph.add("Transpose", found, perm=[0, 2, 1])


def _text_part(
    graph: Graph, columns: _Columns, values: dict[str, str], every: Sequence[Any]
) -> str:
    """One axis: what each term adds, one after the other."""
    terms = [folded(term) for term, _, _ in every[0].terms]
    found = _terms(graph, columns, values, [(every[0].feature, term) for term in terms])
    there = graph.constant(np.array([[t[1] for t in leg.terms] for leg in every]))
    away = graph.constant(np.array([[t[2] for t in leg.terms] for leg in every]))
    chosen = graph.add("Where", graph.add("Unsqueeze", found, graph.axes(1)), there, away)
    return graph.add("Unsqueeze", graph.last_sum(chosen, len(terms)), graph.axes(2))
