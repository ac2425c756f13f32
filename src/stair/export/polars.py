"""Rules as polars expressions, and as the source text of these expressions.

Polars takes NaN for the largest number, so NaN becomes null before anything is compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from stair.data.arrays import EXACT
from stair.data.conversion import NETWORKS, WEEKDAYS
from stair.export.code import (
    Code,
    NamedTools,
    bits_of,
    bounds,
    plain,
    prelude,
    reader_of,
    source,
    spelling,
    zone_in_code,
)
from stair.export.conditions import OfValue
from stair.export.masks import Expression, Masks, Tools, has_exceptions, tools_of, total
from stair.export.routing import CategoryLeg, Leg, NumberLeg, TextLeg, legs
from stair.export.row_reader import _short
from stair.rules.clauses import Among, Interval, Mentions, Period, folded
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field


def polars_masks(rules: RuleSet) -> list[Expression]:
    """A boolean expression for each rule, such that `df.filter(mask)` are its rows, less those that
    an exception takes from it."""
    tools = tools_of("polars")
    masks = _Masks(rules, tools)
    every = masks.left()
    return [tools.once(masks.read, masks.steps, mask, tools.pl.Boolean) for mask in every]


def polars_rule(rules: RuleSet) -> Expression:
    """An expression for the number of the first rule that covers a row, 0 where none does."""
    return _first(rules, [*range(1, len(rules) + 1), 0])


def polars_label(rules: RuleSet) -> Expression:
    """An expression for the label of a row."""
    return _first(rules, _labels(rules))


def _labels(rules: RuleSet) -> list[str | float]:
    return [*(plain(rule.label) for rule in rules.rules), plain(rules.default)]


def _first(rules: RuleSet, values: list[str | float]) -> Expression:
    tools = tools_of("polars")
    masks = _Masks(rules, tools)
    every = masks.left()
    return tools.first(masks.read, masks.steps, every, values)


def to_polars(rules: RuleSet) -> str:
    """The source of MASKS, RULE_NUMBER and LABEL, polars expressions."""
    masks = _Masks(rules, NamedTools())
    conditions = masks.lines("    ")  # which may need columns of their own
    excepting = has_exceptions(rules)
    lines = [
        '"""Rules written by stair: polars expressions, as in df.with_columns(label=LABEL)."""',
        "",
        prelude("row_reader", "polars_reader", *["exceptions_reader"] * excepting),
        *(f"{name} = pl.col({name!r})" for name in masks.names),
        "",
        "COLUMNS = [",
        *(f"    {column}," for column in masks.read),
        "]",
        f"STEPS = {source(masks.steps)}",
        f"{'COVERING' if excepting else 'CONDITIONS'} = [",
        *conditions,
        "]",
        *(_excepting(rules, masks) if excepting else ()),
        f"LABELS = {_labels(rules)!r}  # the last where no rule covers the row",
        "",
        "MASKS = [once(COLUMNS, STEPS, condition, pl.Boolean) for condition in CONDITIONS]",
        "# The first rule that covers a row decides.",
        "RULE_NUMBER = first(COLUMNS, STEPS, CONDITIONS, [*range(1, len(LABELS)), 0])",
        "LABEL = first(COLUMNS, STEPS, CONDITIONS, LABELS)",
        "",
    ]
    if excepting:
        lines[-1:] = [
            "# The exception that takes a row from a rule, 0 where none does.",
            "EXCEPTION_NUMBER = first(",
            "    COLUMNS, STEPS, lifting(COVERING, EXCEPTIONS, GIVES_WAY),",
            "    [*range(1, len(EXCEPTIONS) + 1), 0],",
            ")",
            "",
        ]
    return "\n".join(lines)


def _excepting(rules: RuleSet, masks: _Masks) -> list[str]:
    """What is left to the rules where there are exceptions."""
    return [
        "EXCEPTIONS = [",
        *masks.exception_lines("    "),
        "]",
        f"GIVES_WAY = {list(rules.gives_way)!r}  # to exceptions",
        "CONDITIONS = left(COVERING, EXCEPTIONS, GIVES_WAY)",
    ]


class _Masks(Masks):
    """Builds expressions with the tools of `polars_reader`, or their text from the tools' names.

    They speak of columns that are named here: those that are `read` from the table, and then, step
    by step, those that are worked out from them.
    """

    def __init__(self, rules: RuleSet, tools: Tools) -> None:
        super().__init__(rules, tools)
        self.names: list[str] = []
        self.read: list[Expression] = []
        self.steps: list[list[Expression]] = []
        self._scaled: dict[str, Expression] = {}  # numbers as distances take them
        for name, field in self.fields.items():
            self.columns[name] = self._new(self._reader(field), self.read)

    def _new(self, column: Expression, among: list[Expression]) -> Expression:
        """A name for a column that is to be read or worked out."""
        name = f"x{len(self.names) + 1}"
        self.names.append(name)
        among.append(column.alias(name))
        return Code(name) if isinstance(column, Code) else self.tools.pl.col(name)

    def _reader(self, field: Field) -> Expression:
        """The field's value, null where it is missing."""
        tools = self.tools
        if field.part is not None and (zone := zone_in_code(field)):
            return getattr(tools, f"{field.part}_in")(field.source, zone)
        if field.part == "hour":
            return tools.time(field.source).dt.hour()
        if field.part == "weekday":
            return tools.time(field.source).dt.weekday()
        if field.part in NETWORKS:
            return tools.words(field.source, tools._network, bits_of(field))
        if field.kind == "time":
            return tools.time(field.source)
        reader = getattr(tools, reader_of(field))
        if field.kind == "number":
            return tools.number(field.source, reader)
        return tools.words(field.source, reader, *spelling(field))

    def here(self, column: Expression) -> Expression:
        return column.is_not_null()

    def gone(self, column: Expression) -> Expression:
        return column.is_null()

    def always(self) -> Expression:
        return self.tools.pl.lit(True)

    def never(self) -> Expression:
        return self.tools.pl.lit(False)

    def between(self, clause: Interval | Period, column: Expression) -> Expression | None:
        low, high = bounds(clause)
        if any(isinstance(b, int | float) and abs(b) >= EXACT for b in (low, high)):
            field = self.fields[clause.feature]
            return self._new(self.tools.between(field.source, low, high), self.read)
        above = None if low is None else column > low
        up_to = None if high is None else column <= high
        return above if up_to is None else up_to if above is None else above & up_to

    def listed(self, clause: Among, column: Expression) -> Expression | None:
        if not clause.values:
            return None
        field = self.fields[clause.feature]
        if field.kind == "number" and any(abs(float(value)) >= EXACT for value in clause.values):
            listed = self.tools.among(field.source, [plain(value) for value in clause.values])
            found = self._new(listed, self.read)
        else:
            found = column.is_in(self._values(clause.feature, clause.values))
        return ~found if clause.negated else found

    def inside(self, clause: OfValue, column: Expression, inside: Expression) -> Expression:
        del column  # what is asked of it is null where it is
        return inside.fill_null(clause.missing)

    def mentions(self, clause: Mentions) -> Expression:
        found = self._has(self.column(clause.feature), clause.term)
        return found if clause.present else ~found

    def _has(self, text: Expression, term: str) -> Expression:
        return text.str.contains(folded(term), literal=True).fill_null(False)

    def _values(self, feature: str, values: Sequence[str | float]) -> list[str | float]:
        """Categories as `words` writes them."""
        field = self.fields[feature]
        if field.kind == "number":
            return [float(value) for value in values]
        if field.part == "weekday":
            return [WEEKDAYS.index(str(value)) + 1 for value in values]
        if field.type == "flag":
            return [str(bool(value)) for value in values]
        return [v if isinstance(v, str) else str(_short(v)) for v in map(plain, values)]

    def partition(self) -> Expression:
        scaled: list[Expression] = []
        nearest: list[Expression] = []
        self.steps += [scaled, nearest]
        for leg in legs(self.rules.routing)[0]:
            if isinstance(leg, NumberLeg):  # the same for every partition
                self._scaled[leg.feature] = self._new(self._number(leg), scaled)
        distances = self.tools.pl.concat_list(self.distances())
        return self._new(distances.list.arg_min(), nearest)

    def _number(self, leg: NumberLeg) -> Expression:
        tools, x = self.tools, self.column(leg.feature)
        number = (x.dt.epoch("us") if leg.is_time else x).cast(tools.pl.Float64)
        number = number if leg.is_time else tools.finite(number)
        return tools.divided(tools.divided(number - leg.middle, leg.scale), leg.root)

    def distance(self, leg: Leg) -> Expression:
        pl, x = self.tools.pl, self.column(leg.feature)
        if isinstance(leg, CategoryLeg):
            named = self._values(leg.feature, [value for value, _ in leg.values])
            parts = [part for _, part in leg.values]
            found = x.replace_strict(named, parts, default=leg.other, return_dtype=pl.Float64)
            return found.fill_null(leg.other)
        if isinstance(leg, TextLeg):
            return total(
                pl.when(self._has(x, term)).then(pl.lit(there)).otherwise(pl.lit(away))
                for term, there, away in leg.terms
            )
        offset = self._scaled[leg.feature] - leg.center
        return (offset * offset).fill_null(leg.gone)
