"""Rules on pandas DataFrames: a function that labels one, and that function as source text."""

from __future__ import annotations

from typing import Final

from stair.data.conversion import MEASURES, NETWORKS
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
from stair.export.routing import CategoryLeg, Leg, TextLeg
from stair.rules.clauses import Among, Interval, Mentions, Period, folded
from stair.rules.rule_set import RuleSet
from stair.rules.schema import Field


def pandas_masks(rules: RuleSet, frame: Expression) -> list[Expression]:
    """One boolean Series for each rule, such that `frame[mask]` are the rows that it covers and no
    exception takes from it."""
    masks = _Masks(rules, tools_of("pandas"), frame)
    masks.columns = {name: masks.read(f, frame[f.source]) for name, f in masks.fields.items()}
    return masks.left()


def pandas_labels(rules: RuleSet, frame: Expression) -> Expression:
    """A Series with the label of each row, on the frame's own index."""
    numbers = tools_of("pandas").first(pandas_masks(rules, frame), frame)
    labels = [rules.default, *(rule.label for rule in rules.rules)]
    return numbers.map(dict(enumerate(labels)))


def to_pandas(rules: RuleSet) -> str:
    """The source of `label(df)`, `rule_number(df)` and `masks(df)`; needs pandas alone."""
    masks = _Masks(rules, NamedTools(), Code("df"))
    masks.columns = {name: Code(f"x{k}") for k, name in enumerate(masks.fields, start=1)}
    labels = [plain(rules.default), *(plain(rule.label) for rule in rules.rules)]
    excepting = has_exceptions(rules)
    lines = [
        '"""Rules written by stair, for a pandas DataFrame df: df[masks(df)[0]] is rule 1."""',
        "",
        prelude("row_reader", "pandas_reader", *["exceptions_reader"] * excepting),
        f"LABELS = {labels!r}  # the first where no rule covers the row",
        *[f"GIVES_WAY = {list(rules.gives_way)!r}  # to exceptions"] * excepting,
        "",
        "",
        "def label(df: pd.DataFrame) -> pd.Series:",
        '    """The label of each row."""',
        "    return rule_number(df).map(dict(enumerate(LABELS)))",
        "",
        "",
        "def rule_number(df: pd.DataFrame) -> pd.Series:",
        '    """The number of the first rule that covers each row, 0 where none does."""',
        "    return first(masks(df), df)",
        *(_EXCEPTING if excepting else ()),
        "",
        "",
        f"def {'covering' if excepting else 'masks'}(df: pd.DataFrame) -> list[pd.Series]:",
        f'    """Which rows each rule covers{", exceptions or not" * excepting}."""',
    ]
    reads = [
        (name, f"    {masks.columns[name]} = {masks.read(field, Code(f'df[{field.source!r}]'))}")
        for name, field in masks.fields.items()
    ]
    of_exceptions = {clause.feature for rule in rules.exceptions for clause in rule.clauses}
    of_rules = rules.with_exceptions(()).used
    lines += [line for name, line in reads if name in of_rules]
    if rules.routing:
        lines.append(f"    partition = {source(masks.partition())}")
        masks.nearest = Code("partition")
    lines += ["    return [", *masks.lines("        "), "    ]", ""]
    if excepting:
        lines += [
            "",
            "def exceptions(df: pd.DataFrame) -> list[pd.Series]:",
            '    """Which rows each exception covers."""',
            *(line for name, line in reads if name in of_exceptions),
            "    return [",
            *masks.exception_lines("        "),
            "    ]",
            "",
        ]
    return "\n".join(lines)


# What an exported file has besides where there are exceptions.
_EXCEPTING: Final = (
    "",
    "",
    "def exception_number(df: pd.DataFrame) -> pd.Series:",
    '    """The number of the exception that takes each row from a rule, 0 where none does."""',
    "    return first(lifting(covering(df), exceptions(df), GIVES_WAY), df)",
    "",
    "",
    "def masks(df: pd.DataFrame) -> list[pd.Series]:",
    '    """Which rows each rule covers, less those that an exception takes from it."""',
    "    return left(covering(df), exceptions(df), GIVES_WAY)",
)


class _Masks(Masks):
    def __init__(self, rules: RuleSet, tools: Tools, frame: Expression) -> None:
        super().__init__(rules, tools)
        self._frame = frame
        self.nearest: Expression | None = None  # where the place of the partition has a name

    def read(self, field: Field, column: Expression) -> Expression:
        """The values of a field as its clauses compare them."""
        tools = self.tools
        if field.part is not None and (zone := zone_in_code(field)):
            return getattr(tools, f"{field.part}_in")(column, zone)
        if field.part == "hour":
            return tools.time(column).dt.hour
        if field.part == "weekday":
            return tools.time(column).dt.day_name()
        if field.part in NETWORKS:
            return tools.read(column, tools._network, bits_of(field))
        if field.kind == "time":
            return tools.time(column)
        if field.kind == "number" and field.type not in MEASURES:
            return tools.number(column)
        values = tools.read(column, getattr(tools, reader_of(field)), *spelling(field))
        return values.astype("float64") if field.kind == "number" else values

    def here(self, column: Expression) -> Expression:
        return column.notna()

    def gone(self, column: Expression) -> Expression:
        return column.isna()

    def always(self) -> Expression:
        return self.tools.anything(self._frame)

    def never(self) -> Expression:
        return ~self.always()

    def between(self, clause: Interval | Period, column: Expression) -> Expression | None:
        low, high = bounds(clause)
        if low is None and high is None:
            return None
        if isinstance(clause, Interval):
            return self.tools.between(column, low, high)
        above = None if low is None else column > low
        up_to = None if high is None else column <= high
        return above if up_to is None else up_to if above is None else above & up_to

    def listed(self, clause: Among, column: Expression) -> Expression | None:
        found = column.isin([plain(value) for value in clause.values])
        return (~found if clause.negated else found) if clause.values else None

    def inside(self, clause: OfValue, column: Expression, inside: Expression) -> Expression:
        if clause.negated:  # what is missing is in no list
            return inside if clause.missing else inside & self.here(column)
        return inside | self.gone(column) if clause.missing else inside

    def mentions(self, clause: Mentions) -> Expression:
        found = self.tools.mentions(self.column(clause.feature), folded(clause.term))
        return found if clause.present else ~found

    def partition(self) -> Expression:
        known = self.nearest is not None
        return self.nearest if known else self.tools.nearest(self.distances())

    def distance(self, leg: Leg) -> Expression:
        tools, x = self.tools, self.column(leg.feature)
        if isinstance(leg, CategoryLeg):
            found: Expression = leg.other
            for value, part in reversed(leg.values):
                found = tools.where(x.isin([plain(value)]), part, found)
            return found
        if isinstance(leg, TextLeg):
            return total(
                tools.where(tools.mentions(x, folded(term)), there, away)
                for term, there, away in leg.terms
            )
        number = tools.microseconds(x) if leg.is_time else tools.finite(x.astype("float64"))
        offset = (number - leg.middle) / leg.scale / leg.root - leg.center
        return (offset * offset).fillna(leg.gone)
