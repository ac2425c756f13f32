"""Rules as SQL: a query or a view that labels each row of a table, a condition for each rule."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from stair.errors import StairError
from stair.export.routing import legs
from stair.export.sentences import one_line
from stair.export.sql_clauses import ClauseWriter
from stair.export.sql_columns import identifier, literal
from stair.export.sql_dialects import (
    DIALECTS,
    Dialect,
    check_dialect,
    check_name,
    dialect_of,
    plain_text,
    translated,
)
from stair.export.sql_types import types_in_words
from stair.rules.routing import Routing
from stair.rules.rule_set import RuleSet

__all__ = [
    "DIALECTS",
    "check_dialect",
    "new_columns",
    "to_sql",
    "to_sql_case",
    "to_sql_predicates",
    "to_sql_rows",
    "to_sql_view",
]


def to_sql(
    rules: RuleSet,
    table: str | Sequence[str] = "data",
    dialect: str = "duckdb",
) -> str:
    """SELECT with the label and the number of the rule of each row.

    A table in a schema is given as ("schema", "table").
    """
    known = dialect_of(dialect)
    return (
        f"{plain_text(_comments(rules, known), known)}"
        f"{_finished(_query(rules, table, known), known)};\n"
    )


def to_sql_view(
    rules: RuleSet,
    table: str | Sequence[str] = "data",
    view: str | Sequence[str] | None = None,
    dialect: str = "duckdb",
) -> str:
    """CREATE VIEW with that query; it is called like the table, with _labelled, if not named."""
    known = dialect_of(dialect)
    if view is None:
        *schema, name = _parts(table)
        view = (*schema, f"{name}_labelled")
    text = f"CREATE VIEW {_name(view, known)} AS\n{_query(rules, table, known)}"
    return f"{plain_text(_comments(rules, known), known)}{_finished(text, known)};\n"


def to_sql_rows(
    rules: RuleSet,
    number: int,
    table: str | Sequence[str] = "data",
    dialect: str = "duckdb",
) -> str:
    """SELECT of the rows about which one rule, by its number from 1, decides. Later rules have no
    say in that, so they are left out."""
    known, mine = dialect_of(dialect), rules.with_rules(range(number))
    if rules.routing:
        decides = f"{new_columns(rules)[1]} = {number}"
        query = f"SELECT * FROM (\n{_query(mine, table, known)}\n) AS stair_rows\nWHERE {decides}"
    else:
        writer = ClauseWriter(mine, known)
        conditions, excepted = [*map(writer.rule, mine.rules)], _excepted(mine, writer)
        decides = f"{_deciding(mine, conditions, excepted)} = {number}"
        if number == 1 and not excepted:
            decides = conditions[0]
        query = f"SELECT * FROM {_name(table, known)}\nWHERE {decides}"
    return _finished(query, known)


def new_columns(rules: RuleSet) -> tuple[str, str]:
    """What a query or a view calls the label and the number of the rule of a row."""
    taken = rules.schema.taken
    return _new_name("stair_label", taken), _new_name("stair_rule", taken)


def to_sql_case(rules: RuleSet, dialect: str = "duckdb") -> str:
    """The label as a CASE expression, to stand among the columns of any query."""
    _without_partitions(rules, "a CASE expression")
    known = dialect_of(dialect)
    writer = ClauseWriter(rules, known)
    text = _label(rules, [writer.rule(rule) for rule in rules.rules], _excepted(rules, writer))
    return _finished(text, known)


def to_sql_predicates(rules: RuleSet, dialect: str = "duckdb") -> tuple[str, ...]:
    """A condition for each rule, to stand behind WHERE: the rows that this rule covers, but those
    that an exception takes from it.

    Where rules overlap, a row belongs to the first rule that covers it.
    """
    _without_partitions(rules, "conditions")
    known = dialect_of(dialect)
    writer = ClauseWriter(rules, known)
    return tuple(_finished(_left(rules, k, writer), known) for k in range(len(rules)))


def _without_partitions(rules: RuleSet, what: str) -> None:
    if rules.routing:
        raise StairError(
            f"rules for partitions cannot be {what}: the nearest partition is found in a "
            "subquery; write a query or a view instead"
        )


def _finished(text: str, dialect: Dialect) -> str:
    return text if dialect.sqlglot is None else translated(text, dialect)


def _comments(rules: RuleSet, dialect: Dialect) -> str:
    more = len(rules.exceptions)
    lines = [
        f"{len(rules)} rule{'s' * (len(rules) != 1)}, total length {rules.total_length}"
        + f", {more} exception{'s' * (more != 1)}" * bool(more)
    ]
    lines += [f"{k}: {rule} -> {rule.label}" for k, rule in enumerate(rules.rules, 1)]
    lines += [
        f"exception {k}: {rule} -> {rule.label}" for k, rule in enumerate(rules.exceptions, 1)
    ]
    if types := types_in_words(rules, dialect):
        lines += ["columns, as the rules expect them:", *types]
    return "".join(f"-- {one_line(line)}\n" for line in lines)


def _query(rules: RuleSet, table: str | Sequence[str], dialect: Dialect) -> str:
    writer = ClauseWriter(rules, dialect)
    conditions = [
        f"{_in_partition(rules, k)}{writer.rule(rule)}" for k, rule in enumerate(rules.rules)
    ]
    excepted = _excepted(rules, writer)
    source = _name(table, dialect)
    taken = rules.schema.taken
    if rules.routing:
        source = _routed(rules.routing, writer, source, taken, dialect)
    columns = [
        (_label(rules, conditions, excepted), "stair_label"),
        (_deciding(rules, conditions, excepted), "stair_rule"),
    ]
    if excepted:
        columns.append((_lifting(rules, conditions, excepted), "stair_exception"))
    listed = ",\n  ".join(f"{text} AS {_new_name(name, taken)}" for text, name in columns)
    return f"SELECT *,\n  {listed}\nFROM {source}"


def _excepted(rules: RuleSet, writer: ClauseWriter) -> list[str]:
    """A condition for each exception; none where there is no rule from which one takes rows."""
    return [writer.rule(each) for each in rules.exceptions] if any(rules.gives_way) else []


def _any_of(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " OR ".join(f"({c})" for c in conditions)


def _case(cases: Iterable[tuple[str, str]], otherwise: str | None = None) -> str:
    """The first of these conditions that holds decides; one that is NULL does not hold."""
    lines = [f"    WHEN {condition} THEN {found}" for condition, found in cases]
    lines += [] if otherwise is None else [f"    ELSE {otherwise}"]
    return "\n".join(["CASE", *lines, "  END"])


def _label(rules: RuleSet, conditions: Sequence[str], excepted: Sequence[str]) -> str:
    default = literal(rules.default)
    if not conditions:
        return default
    cases = [(c, literal(rule.label)) for c, rule in zip(conditions, rules.rules, strict=True)]
    return _case([*([(_any_of(excepted), default)] if excepted else []), *cases], default)


def _deciding(rules: RuleSet, conditions: Sequence[str], excepted: Sequence[str]) -> str:
    """The number of the rule that decides about a row."""
    if not conditions:
        return "CAST(NULL AS INTEGER)"
    numbered = [(condition, str(k)) for k, condition in enumerate(conditions, 1)]
    if not excepted:
        return _case(numbered)
    left = [each for each, gives in zip(numbered, rules.gives_way, strict=True) if not gives]
    return _case([(_any_of(excepted), _case(left) if left else "NULL"), *numbered])


def _lifting(rules: RuleSet, conditions: Sequence[str], excepted: Sequence[str]) -> str:
    """The number of the exception that takes a row from a rule."""
    number = _case((condition, str(k)) for k, condition in enumerate(excepted, 1))
    runs = [
        (gives, [condition for _, condition in run])
        for gives, run in groupby(zip(rules.gives_way, conditions, strict=True), itemgetter(0))
    ]
    return _case((_any_of(run), number if gives else "NULL") for gives, run in runs)


def _left(rules: RuleSet, number: int, writer: ClauseWriter) -> str:
    """The condition of a rule less what exceptions take from it; a condition that is NULL takes
    nothing."""
    condition = writer.rule(rules[number])
    if not (rules.exceptions and rules.gives_way[number]):
        return condition
    return f"{condition} AND {_case([(_any_of(_excepted(rules, writer)), '1')], '0')} = 0"


def rule_to_sql(rules: RuleSet, number: int, dialect: str = "duckdb") -> str:
    """The condition of one rule. With partitions it is about the column that `to_sql` adds."""
    known = dialect_of(dialect)
    condition = _finished(_left(rules, number, ClauseWriter(rules, known)), known)
    return f"{_in_partition(rules, number)}{condition}"


def _in_partition(rules: RuleSet, number: int) -> str:
    """That a row is in the partition of this rule; nothing where all rows are together."""
    name = identifier(_new_name("stair_partition", rules.schema.taken))
    return f"{name} = {rules.partition_of[number] + 1} AND " if rules.routing else ""


def _routed(
    routing: Routing,
    writer: ClauseWriter,
    source: str,
    taken: Collection[str],
    dialect: Dialect,
) -> str:
    """A subquery with the number of each row's nearest partition, the first of equals."""
    partition = _new_name("stair_partition", taken)
    distances = [
        _new_name(f"stair_distance_{k}", taken) for k in range(1, len(routing.partitions) + 1)
    ]
    lines = [
        f"    {' + '.join(writer.distance(leg) for leg in parts)} AS {name}"
        for name, parts in zip(distances, legs(routing), strict=True)
    ]
    nearest = [
        "WHEN " + (" AND ".join(f"{d} <= {e}" for e in distances[k + 1 :]) or "1 = 1")
        + f" THEN {k + 1}"
        for k, d in enumerate(distances)
    ]  # fmt: skip
    inner = _fenced("SELECT *,\n" + ",\n".join(lines) + f"\n    FROM {source}", dialect)
    routed = f"SELECT *, CASE {' '.join(nearest)} END AS {partition}\n  FROM ({inner}) AS p"
    return f"({_fenced(routed, dialect)}) AS q"


def _fenced(query: str, dialect: Dialect) -> str:
    """A subquery that is worked out before it is used. PostgreSQL and SQLite would write out every
    distance again wherever it is compared, and be busy with that until memory ends."""
    if dialect.name == "postgres":
        return f"{query}\n    OFFSET 0"
    if dialect.name == "sqlite":
        return f"WITH stair_fenced AS MATERIALIZED ({query}) SELECT * FROM stair_fenced"
    return query


def _parts(name: str | Sequence[str]) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


def _name(name: str | Sequence[str], dialect: Dialect) -> str:
    for part in _parts(name):
        check_name(part, dialect)
        if dialect.name == "spark" and "${" in part:
            raise StairError(
                f'the table "{part}" has ${{, behind which Spark fills in a variable; make a view '
                "over it with another name"
            )
    return ".".join(identifier(part) for part in _parts(name))


def _new_name(name: str, taken: Collection[str]) -> str:
    """A name that no column of the rules has, whatever the case of its letters."""
    lower = {each.lower() for each in taken}
    while name in lower:
        name += "_"
    return name
