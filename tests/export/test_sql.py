"""SQL, run for real: it selects exactly the rows that the rules select."""

from __future__ import annotations

import datetime as dt
import math
import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from databases import Database
from export_cases import FEW, LOTS, NAMES, SHORT_NAMES, SOME, Case, cases
from stair import LocalStair, StairError, summarize
from stair.data.conversion import WEEKDAYS
from stair.export import DIALECTS, to_sql, to_sql_case, to_sql_predicates, to_sql_view
from stair.export.masks import has_exceptions
from stair.rules.clauses import Among, Clause, Interval, Mentions, Period
from stair.rules.routing import Dimension, Partition, Routing, Space
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from target_trials import try_spark

# The databases by the types of their columns: numbers, words, times, text, flags, codes.
TYPES = {
    "duckdb": ("DOUBLE", "VARCHAR", "TIMESTAMP", "VARCHAR", "BOOLEAN", "DOUBLE"),
    "sqlite": ("REAL", "TEXT", "TEXT", "TEXT", "INTEGER", "REAL"),
    "postgres": ("double precision", "text", "timestamp", "text", "boolean", "double precision"),
}
TABLE = 'my "table;--'
REMOTE = [name for name in DIALECTS if name not in TYPES]


def _names_for(dialect: str) -> list[str]:
    """Names that a column can have: short, and without emoji in MySQL."""
    return [name for name in SHORT_NAMES if dialect != "mysql" or max(name) <= "\uffff"]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _create(case: Case, dialect: str) -> str:
    columns = [f"{_quoted(n)} {t}" for n, t in zip(case.table, TYPES[dialect], strict=True)]
    return f"CREATE TABLE {_quoted(TABLE)} ({', '.join(columns)}, place INTEGER)"


def _insert(case: Case, mark: str) -> str:
    return f"INSERT INTO {_quoted(TABLE)} VALUES ({', '.join([mark] * (len(case.table) + 1))})"


def _values(case: Case, missing_number: float | None) -> list[list[Any]]:
    return [[*row.values(), k] for k, row in enumerate(case.rows(missing_number))]


def _check(case: Case, dialect: str, ask: Any) -> None:
    """The query, the view, the CASE expression and the conditions, all by `ask(sql) -> rows`."""
    rules = case.rules
    expected = list(zip(case.labels, case.numbers, strict=True))
    label, rule = (
        f"stair_{word}_" if f"stair_{word}" in case.table else f"stair_{word}"
        for word in ("label", "rule")
    )
    query = to_sql(rules, TABLE, dialect).rstrip().rstrip(";")
    wanted = f"SELECT {label}, coalesce({rule}, 0) FROM"
    assert ask(f"{wanted} ({query}\n) AS s ORDER BY place") == expected
    if has_exceptions(rules):
        lifted = f"SELECT coalesce(stair_exception, 0) FROM ({query}\n) AS s ORDER BY place"
        assert ask(lifted) == [(k,) for k in case.exceptions]
    ask(to_sql_view(rules, TABLE, dialect=dialect), fetch=False)
    assert ask(f"{wanted} {_quoted(TABLE + '_labelled')} ORDER BY place") == expected
    if rules.routing:
        return
    source = f"FROM {_quoted(TABLE)}"
    case_text = to_sql_case(rules, dialect)
    assert ask(f"SELECT {case_text} {source} ORDER BY place") == [(e[0],) for e in expected]
    covered = rules.matches(case.values).applies
    for number, condition in enumerate(to_sql_predicates(rules, dialect)):
        found = ask(f"SELECT place {source} WHERE {condition} ORDER BY place")
        assert found == [(k,) for k in np.flatnonzero(covered[:, number]).tolist()]


@LOTS
@given(cases())
def test_sql_in_duckdb_selects_what_the_rules_select(case: Case) -> None:
    """Hostile names, quotes, NaN (which DuckDB thinks is larger than 1), NULL, times and text."""
    with duckdb.connect() as con:
        con.execute(_create(case, "duckdb"))
        con.executemany(_insert(case, "?"), _values(case, math.nan))

        def ask(query: str, fetch: bool = True) -> Any:
            del fetch
            return con.execute(query).fetchall()

        _check(case, "duckdb", ask)


@LOTS
@given(cases())
def test_sql_in_sqlite_selects_what_the_rules_select(case: Case) -> None:
    """SQLite has no NaN and no times: NULL and text in their place."""
    con = sqlite3.connect(":memory:")
    con.execute(_create(case, "sqlite"))
    rows = [[str(v) if hasattr(v, "year") else v for v in row] for row in _values(case, None)]
    con.executemany(_insert(case, "?"), rows)

    def ask(query: str, fetch: bool = True) -> Any:
        del fetch
        return con.execute(query).fetchall()

    _check(case, "sqlite", ask)
    con.close()


@LOTS
@given(case=cases(names=SHORT_NAMES, huge=False))
def test_sql_in_postgres_selects_what_the_rules_select(postgres: Any, case: Case) -> None:
    """NaN and NULL are both missing there too. Names have at most 63 bytes, so these do."""
    import psycopg

    with postgres.transaction(force_rollback=True), postgres.cursor() as cursor:
        cursor.execute(_create(case, "postgres"))
        for row in _values(case, math.nan):
            cursor.execute(_insert(case, "%s"), row)

        def ask(query: str, fetch: bool = True) -> Any:
            plain = psycopg.ClientCursor(postgres)
            plain.execute(query.encode())
            return plain.fetchall() if fetch else None

        _check(case, "postgres", ask)


@pytest.mark.parametrize("dialect", DIALECTS)
@SOME
@given(data=st.data())
def test_sqlglot_reads_every_dialect_back(dialect: str, data: Any) -> None:
    """As one statement with our columns in it, whatever the names and texts are."""
    case = data.draw(cases(names=_names_for(dialect)))
    rules = case.rules
    read = {"sqlserver": "tsql"}.get(dialect, dialect)
    texts = [
        to_sql(rules, TABLE, dialect),
        to_sql_view(rules, TABLE, None, dialect),
    ]
    for text in texts:
        (tree,) = sqlglot.parse(text, read=read)
        assert tree is not None
        named = {column.name for column in tree.find_all(sqlglot.exp.Column)}
        known = {*case.table, *(c for c in named if c.startswith("stair_"))}
        assert named <= known
        assert TABLE in {table.name for table in tree.find_all(sqlglot.exp.Table)}


@pytest.mark.parametrize("dialect", REMOTE)
@SOME
@given(data=st.data())
def test_what_is_written_for_other_databases_means_the_same(dialect: str, data: Any) -> None:
    """Each is translated to DuckDB by sqlglot, which knows both, and run there."""
    case = data.draw(cases(names=_names_for(dialect)))
    read = {"sqlserver": "tsql"}.get(dialect, dialect)
    text = to_sql(case.rules, TABLE, dialect)
    (tree,) = sqlglot.parse(text, read=read)
    assert tree is not None
    query = _for_duckdb(tree)
    label, rule = (
        f"stair_{word}_" if f"stair_{word}" in case.table else f"stair_{word}"
        for word in ("label", "rule")
    )
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.execute("CREATE MACRO current_timezone() AS 'UTC'")
        con.execute(_create(case, "duckdb"))
        has_nan = dialect not in ("mysql", "sqlserver")
        con.executemany(_insert(case, "?"), _values(case, math.nan if has_nan else None))
        found = con.execute(
            f"SELECT {label}, coalesce({rule}, 0) FROM ({query}) AS s ORDER BY place"
        ).fetchall()
    assert found == list(zip(case.labels, case.numbers, strict=True))


@pytest.mark.parametrize("dialect", REMOTE)
def test_every_day_of_the_week_is_a_day(dialect: str) -> None:
    """BigQuery counts from Sunday, which is 1. What was written asked for 8, so that a rule about
    Sundays covered no row, in silence."""
    field = Field("day", "category", "t", "weekday", "naive")
    rules = RuleSet(
        tuple(Rule((Among("day", (day,)),), 1) for day in WEEKDAYS), (0, 1), Schema((field,)), 0,
        (1.0, 1.0), 1,
    )  # fmt: skip
    read = {"sqlserver": "tsql"}.get(dialect, dialect)
    (tree,) = sqlglot.parse(to_sql(rules, TABLE, dialect), read=read)
    assert tree is not None
    monday = np.datetime64("2024-03-25T10:00:00", "us")
    week = [(monday + np.timedelta64(k, "D")).item() for k in range(14)]
    with duckdb.connect() as con:
        con.execute("CREATE MACRO current_timezone() AS 'UTC'")
        con.execute(f"CREATE TABLE {_quoted(TABLE)} (t TIMESTAMP)")
        con.executemany(f"INSERT INTO {_quoted(TABLE)} VALUES (?)", [[t] for t in week])
        found = con.execute(f"SELECT stair_rule FROM ({_for_duckdb(tree)}) ORDER BY t").fetchall()
    assert [number for (number,) in found] == [*range(1, 8), *range(1, 8)]


def _for_duckdb(tree: Any) -> str:
    """A query of another database in DuckDB's words, where sqlglot leaves some as they are."""
    exp = sqlglot.exp

    def known(node: Any) -> Any:
        if isinstance(node, exp.Collate):
            return node.this
        if isinstance(node, exp.National):
            return exp.Literal.string(node.this)
        if isinstance(node, exp.Cast) and node.to.sql("mysql").startswith(("BINARY", "CHAR")):
            return exp.cast(node.this.transform(known), "VARCHAR")
        if isinstance(node, exp.DataType) and node.this == exp.DataType.Type.FLOAT:
            return exp.DataType.build("DOUBLE")
        if isinstance(node, exp.Anonymous) and node.name == "WEEKDAY":  # Sunday is 0 in DuckDB
            return sqlglot.parse_one(f"(ISODOW({node.expressions[0].sql('duckdb')}) - 1)")
        if isinstance(node, exp.Extract) and node.name == "DAYOFWEEK":  # as in DuckDB
            return sqlglot.parse_one(f"({node.sql('duckdb')} + 1)")
        return node

    return str(tree.transform(known).sql("duckdb", identify=True))


def _one(clause: Any, features: Sequence[str] = ("a",)) -> RuleSet:
    return RuleSet((Rule((clause,), 1),), (0, 1), tuple(features), 0, (1.0, 1.0), 1)


def test_a_column_in_single_precision_is_compared_in_double() -> None:
    """DuckDB read 0.1 as a decimal, rounded it to single precision, and missed 0.1f > 0.1."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE data AS SELECT 0.1::FLOAT AS a")
        query = to_sql(_one(Interval("a", 0.1)))
        assert con.execute(query).fetchall() == [(np.float32(0.1), 1, 1)]


TYPED: list[tuple[Clause, Field, list[Any]]] = [
    (Interval("price", 1.5), Field("price", "number", "price"), [1.0, 2.5, None]),
    (Interval("n", 1.0), Field("n", "number", "n", type="whole"), [1, 2, None]),
    (Interval("p", 1.5), Field("p", "number", "p", marked=0.1), [1.0, 2.5, None]),
    (Among("room", ("R-1",)), Field("room", "category", "room"), ["R-1", "r1", None]),
    (Among("ok", (True,)), Field("ok", "category", "ok", type="flag"), [True, False, None]),
    (Interval("hour", 9.5), Field("hour", "number", "at", "hour", "naive"),
     ["2024-01-31 10:20", "2024-01-31 09:20", None]),
    (Interval("hour", 9.5), Field("hour", "number", "at", "hour", "zoned", zone="+01:00"),
     ["2024-01-31 10:20:00+01:00", "2024-01-31 10:20:00+02:00", None]),
    (Interval("t", 1.0), Field("t", "number", "t", type="duration"), []),
    (Interval("t", 1.0), Field("t", "number", "t", type="clock"), []),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "field", "values"), TYPED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_header_says_of_which_types_columns_are(
    dialect: str, clause: Clause, field: Field, values: list[Any], request: pytest.FixtureRequest
) -> None:
    """Nothing said that a price must be a DOUBLE and a time have its zone: a file that was loaded
    otherwise gave a Binder Error, or other labels. A table of these types has the right ones."""
    rules = RuleSet((Rule((clause,), 1),), (0, 1), Schema((field,)), 0, (1.0, 1.0), 1)
    try:
        text = to_sql(rules, dialect=dialect)
    except StairError as error:
        assert field.type in ("zoned", "duration", "clock"), error
        return
    head, (said,) = (
        "-- columns, as the rules expect them:\n-- ",
        re.findall(rf"^-- {field.source}: ([^(\n]+(?:\([0-9, ]+\))?)", text, re.M),
    )
    assert text.count(head) == 1
    assert (", null or None in a text file must be NULL)" in text) == (field.type == "text")
    expected = rules.predict({field.source: values}).tolist() if values else []
    if dialect in TYPES:
        con = sqlite3.connect(":memory:") if dialect == "sqlite" else duckdb.connect()
        if dialect == "postgres":
            con = request.getfixturevalue("postgres")
        there = Database(dialect, con)
        there.fill(field.source, said, values)
        assert there.labels(rules) == expected
    else:
        assert sqlglot.parse_one(f"CAST(x AS {said})", read=_SQLGLOT.get(dialect, dialect))


_SQLGLOT = {"sqlserver": "tsql"}


def test_a_dialect_that_is_not_known_is_refused() -> None:
    rules = RuleSet((), ("a", "b"), (), "a", (1.0, 1.0), "b")
    with pytest.raises(StairError, match=r"dialects are duckdb.*Did you mean \"postgres\""):
        to_sql(rules, dialect="postgrs")
    assert "NULL AS INTEGER) AS stair_rule" in to_sql(rules)
    assert to_sql(rules, dialect="tsql") == to_sql(rules, dialect="sqlserver")


@pytest.mark.parametrize(
    ("dialect", "most"), [("postgres", 63), ("mysql", 64), ("sqlserver", 128), ("snowflake", 255)]
)
def test_a_name_that_a_database_would_cut_is_refused(dialect: str, most: int) -> None:
    """PostgreSQL cuts a longer name silently, and would then find another column, or none."""
    for name in ("x" * most, "x" * (most + 1)):
        rules = _one(Interval(name, 0.0), [name])
        if len(name) == most:
            assert name in to_sql(rules, dialect=dialect)
            continue
        with pytest.raises(StairError, match=f"at most {most}; rename it"):
            to_sql(rules, dialect=dialect)
        with pytest.raises(StairError, match=f"at most {most}; rename it"):
            to_sql(_one(Interval("a", 0.0)), name, dialect)
    if dialect == "postgres":
        with pytest.raises(StairError, match="has 64 bytes"):
            to_sql(_one(Interval("a", 0.0)), "é" * 32, dialect)
    if dialect == "mysql":
        with pytest.raises(StairError, match="a name in MySQL cannot have"):
            to_sql(_one(Interval("a", 0.0)), "😀", dialect)
    for name in NAMES:  # no limit in these
        to_sql(_one(Interval(name, 0.0), [name]), dialect="duckdb")


def test_a_table_in_a_schema() -> None:
    text = to_sql_view(_one(Interval("a", 0.0)), ("sales", "my.table"), dialect="postgres")
    assert 'CREATE VIEW "sales"."my.table_labelled" AS' in text
    assert 'FROM "sales"."my.table"' in text


@FEW
@given(cases(local=True))
def test_rules_for_partitions_need_a_subquery(case: Case) -> None:
    with pytest.raises(StairError, match="write a query or a view"):
        to_sql_case(case.rules)
    with pytest.raises(StairError, match="write a query or a view"):
        to_sql_predicates(case.rules)


def test_databases_that_compare_loosely_are_told_not_to() -> None:
    """MySQL and SQL Server take É for e, and DE for de, unless the comparison says otherwise."""
    among = _one(Among("a", ("DE",)))
    assert "COLLATE Latin1_General_100_BIN2" in to_sql(among, dialect="sqlserver")
    assert "AS BINARY) IN (CAST(" in to_sql(among, dialect="mysql")
    text = to_sql(_one(Mentions("a", "né")), dialect="mysql")
    assert "REPLACE(`a`, 'N', 'n')" in text


@pytest.mark.parametrize("dialect", REMOTE)
def test_without_sqlglot_other_databases_get_a_plain_sentence(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three that are written by hand need nothing."""
    import sys

    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(StairError, match=r"needs sqlglot: pip install 'stair\[sql\]'"):
        to_sql(_one(Interval("a", 0.0)), dialect=dialect)
    for name in TYPES:
        assert to_sql(_one(Interval("a", 0.0)), dialect=name)


def test_many_partitions_are_measured_once() -> None:
    """SQLite wrote every distance out again wherever it was compared: 16 partitions took all
    memory, and PostgreSQL's planner never ended. The size of SQLite's program is bounded now."""
    rng = np.random.default_rng(0)
    table = {f"c{j}": rng.normal(size=300) for j in range(3)}
    labels = ((table["c0"] > 1) ^ (table["c1"] > 1)).astype(int)
    summary = summarize(table, labels=labels, min_score=0.95, method=LocalStair(n_partitions=16))
    con = sqlite3.connect(":memory:")
    con.setlimit(sqlite3.SQLITE_LIMIT_VDBE_OP, 20_000)
    con.execute("CREATE TABLE data (c0 REAL, c1 REAL, c2 REAL)")
    rows = zip(*(values.tolist() for values in table.values()), strict=True)
    con.executemany("INSERT INTO data VALUES (?, ?, ?)", rows)
    found = [row[-2] for row in con.execute(summary.to_sql("data", dialect="sqlite"))]
    assert found == summary.rules.predict(table).tolist()
    assert summary.to_sql("data", dialect="postgres").count("OFFSET 0") == 2


# --- Spark ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # Spark's own
def test_sql_in_spark_selects_what_the_rules_select(
    spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hostile names, NaN and NULL, times with a zone and without one."""
    trial = try_spark(12, spark)
    assert not trial.refused
    with capsys.disabled():
        print(f"\nSQL in Spark: {trial}")


def _in_spark(spark: Any, rules: RuleSet, column: str, type_: str, values: list[Any]) -> list[int]:
    """The number of the rule of each row, 0 where there is none."""
    rows = [[value, place] for place, value in enumerate(values)]
    table = spark.createDataFrame(rows, f"`{column}` {type_}, place INT")
    table.createOrReplaceTempView("data")
    query = to_sql(rules, dialect="spark").rstrip().rstrip(";")
    found = spark.sql(f"SELECT place, coalesce(stair_rule, 0) FROM ({query})").collect()
    return [number for _, number in sorted(map(tuple, found))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "-03:30"])
def test_hours_and_weekdays_in_spark_are_those_of_the_rules_zone(spark: Any, zone: str) -> None:
    """Every hour and weekday around changes of clocks, in years of odd offsets, and before 1970,
    in a session of another zone that changes its clocks too."""
    starts = ["1880-12-31T18:00", "1969-12-29T20:00", "2024-03-30T22:00", "2024-04-06T12:00",
              "2024-10-05T12:00", "2024-10-26T22:00:00.000007", "2099-07-15T12:00"]  # fmt: skip
    half = np.timedelta64(30, "m")
    moments = [np.datetime64(start, "us") + k * half for start in starts for k in range(60)]
    times = [t.item().replace(tzinfo=dt.UTC) for t in moments] + [None]
    hour = Field("hour", "number", "when ${it}", "hour", "zoned", zone=zone)
    day = Field("day", "category", "when ${it}", "weekday", "zoned", zone=zone)
    clauses: list[Clause] = [Interval("hour", k - 1.0, float(k)) for k in range(24)]
    names: list[Clause] = [Among("day", (name,)) for name in WEEKDAYS]
    for field, each in ((hour, clauses), (day, names)):
        rules = RuleSet(
            tuple(Rule((clause,), "out") for clause in each), ("in", "out"), Schema((field,)),
            "in", (1.0, 1.0),
        )  # fmt: skip
        expected = rules.assign(rules.schema.read({"when ${it}": times})) + 1
        assert set(expected.tolist()) == set(range(len(each) + 1))
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        try:
            found = _in_spark(spark, rules, "when ${it}", "TIMESTAMP", times)
        finally:
            spark.conf.unset("spark.sql.session.timeZone")
        assert found == expected.tolist()


@pytest.mark.filterwarnings("ignore")
def test_times_that_the_session_of_spark_leaves_out_are_times(spark: Any) -> None:
    """02:30 was not on the clocks of Berlin that day; Spark took it for 03:30 there, and sent it to
    another partition."""
    times = [dt.datetime(2024, 3, 31, 2, 30, 0, 250007), dt.datetime(2024, 3, 31, 3, 10), None]
    at = np.datetime64("2024-03-31T02:50", "us").astype(np.int64)
    space = Space((Dimension("t", "time", float(at), 60e6),))
    nearest = (Partition((-20.0,), 1.0, 1, "early"), Partition((20.0,), 1.0, 1, "late"))
    field = Field("t", "time", "t")
    far = np.datetime64("2024-03-31T03:00", "us")
    plain = RuleSet((Rule((Period("t", until=far),), "out"), Rule((), "out")), ("in", "out"),
                    Schema((field,)), "in", (1.0, 1.0))  # fmt: skip
    for rules in (plain, replace(plain, routing=Routing(space, nearest, 0.5, 0.5))):
        expected = (rules.assign(rules.schema.read({"t": times})) + 1).tolist()
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        try:
            assert _in_spark(spark, rules, "t", "TIMESTAMP_NTZ", times) == expected
        finally:
            spark.conf.unset("spark.sql.session.timeZone")
        assert expected[:2] == [1, 2]


@pytest.mark.filterwarnings("ignore")
def test_a_text_that_should_be_a_zoned_time_is_an_error_in_spark(spark: Any) -> None:
    """It would be read by the clocks of the session."""
    from pyspark.errors import AnalysisException

    field = Field("t", "time", "t", None, "zoned")
    late = Period("t", after=np.datetime64("2024-01-01", "us"))
    rules = RuleSet((Rule((late,), 1),), (0, 1), Schema((field,)), 0, (1.0, 1.0), 1)
    with pytest.raises(AnalysisException, match="DATATYPE_MISMATCH"):
        _in_spark(spark, rules, "t", "STRING", ["2024-05-01 10:20:30"])


def test_a_table_in_whose_name_spark_would_fill_in_is_refused() -> None:
    with pytest.raises(StairError, match=r'the table "a\$\{b\}" has \$\{'):
        to_sql(_one(Interval("a", 0.0)), "a${b}", dialect="spark")
