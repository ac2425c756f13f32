"""Addresses: rules speak of the networks that they are in, and every export says the same."""

from __future__ import annotations

import ipaddress
import sqlite3
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stair
from stair import StairError
from stair.data import from_object
from stair.data.conversion import NETWORKS, network_of
from stair.export import DIALECTS, from_json, to_json, to_sql
from stair.export.json import Rulebook
from stair.export.pandas import pandas_labels, to_pandas
from stair.export.polars import polars_label, to_polars
from stair.export.python import to_python
from stair.learn.table import choose_fields
from stair.rules.clauses import Among, objection, reason
from stair.rules.rule_set import Rule, RuleSet
from stair.rules.schema import Field, Schema
from strategies import examples

NUMBER = st.one_of(
    st.integers(0, 300).map(str), st.sampled_from(["00", "01", "007", "1e1", "", "٣"])
)
ALMOST = st.lists(NUMBER, min_size=3, max_size=5).map(".".join)
HOSTILE = st.one_of(
    st.ip_addresses(v=4).map(str),
    ALMOST,
    st.sampled_from(["10.0.0.1", "10.0.0.255", "10.0.1.0", "10.1.0.7", "100.0.0.1", "10.0.0.256",
                     " 10.0.0.1", "10.0.0.1 ", "10.0.0.1\n", "10.0.0.1/24", "10.0.0.1:80", "10.0.0",
                     "::1", "::ffff:10.0.0.1", "2001:db8::1", "localhost", "", "10.0.0.%",
                     "1_.0.0.1", "10。0。0。1", "10.0.0.01", "١٠.0.0.1"]),
    st.none(),
)  # fmt: skip
NETS = {"/8": ["10.0.0.0/8", "1.0.0.0/8", "100.0.0.0/8"], "/16": ["10.0.0.0/16", "10.1.0.0/16"],
        "/24": ["10.0.0.0/24", "10.0.1.0/24", "100.0.0.0/24"]}  # fmt: skip


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    part: Any = draw(st.sampled_from(sorted(NETS)))
    networks = draw(st.lists(st.sampled_from(NETS[part]), max_size=3, unique=True))
    clause = Among(f"a{part}", tuple(networks), draw(st.booleans()), draw(st.booleans()), "a")
    fields = tuple(Field(f"a{each}", "category", "a", each) for each in NETWORKS)
    return RuleSet((Rule((clause,), 1),), (0, 1), Schema(fields), 0, (1.0, 1.0), 1)


def _run(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec", dont_inherit=True), space)
    return space


def _asked(con: Any, rules: RuleSet, dialect: str) -> list[Any]:
    query = to_sql(rules, "data", dialect).rstrip().rstrip(";")
    ordered = f"SELECT stair_label FROM ({query}\n) AS s ORDER BY k"
    return [row[0] for row in con.execute(ordered).fetchall()]


@settings(max_examples=examples(300), deadline=None)
@given(st.text("0123456789. :abcdefx", max_size=16) | HOSTILE)
def test_an_address_is_what_the_standard_library_takes_for_one(text: str | None) -> None:
    """Leading zeros, blanks, ports and digits of other scripts make no address."""
    try:
        address: Any = ipaddress.IPv4Address(text if isinstance(text, str) else "")
    except ipaddress.AddressValueError:
        assert all(network_of(text, part) is None for part in NETWORKS)
        return
    for part in NETWORKS:
        network = network_of(text, part)
        assert network == str(ipaddress.ip_network(f"{address}{part}", strict=False))


@settings(max_examples=examples(60), deadline=None)
@given(rule_sets(), st.lists(HOSTILE, min_size=1, max_size=12))
def test_every_export_says_what_the_rules_say(rules: RuleSet, values: list[Any]) -> None:
    """Python, pandas, polars, DuckDB and SQLite, of hostile values: what is no address is missing,
    and never in a network because it begins alike."""
    expected = rules.predict({"a": values}).tolist()
    label = _run(to_python(rules))["label"]
    assert [label({"a": value}) for value in values] == expected
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    assert _run(to_pandas(rules))["label"](frame).tolist() == expected
    assert pandas_labels(rules, frame).tolist() == expected
    table = pl.DataFrame({"a": pl.Series(values, dtype=pl.String)})
    assert table.with_columns(found=polars_label(rules))["found"].to_list() == expected
    found = table.with_columns(found=_run(to_polars(rules))["LABEL"])["found"].to_list()
    assert found == expected
    rows = list(enumerate(values))
    with duckdb.connect() as con:
        con.execute("CREATE TABLE data (k INTEGER, a VARCHAR)")
        con.executemany("INSERT INTO data VALUES (?, ?)", rows)
        assert _asked(con, rules, "duckdb") == expected
    lite = sqlite3.connect(":memory:")
    lite.execute("CREATE TABLE data (k INTEGER, a TEXT COLLATE NOCASE)")
    lite.executemany("INSERT INTO data VALUES (?, ?)", rows)
    assert _asked(lite, rules, "sqlite") == expected
    lite.close()
    saved = from_json(to_json(Rulebook(rules, {})))
    assert saved.rules == rules
    assert str(saved.rules.rules[0]) == str(rules.rules[0])


def test_postgres_says_what_the_rules_say(postgres: Any) -> None:
    """The same where a server is there."""
    import psycopg

    cursor = psycopg.ClientCursor(postgres)
    cursor.execute("CREATE TEMP TABLE data (k integer, a text)")

    @settings(max_examples=examples(60), deadline=None)
    @given(rule_sets(), st.lists(HOSTILE, min_size=1, max_size=12))
    def hold(rules: RuleSet, values: list[Any]) -> None:
        cursor.execute("TRUNCATE data")
        cursor.executemany("INSERT INTO data VALUES (%s, %s)", list(enumerate(values)))
        assert _asked(cursor, rules, "postgres") == rules.predict({"a": values}).tolist()

    hold()
    cursor.execute("DROP TABLE data")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_database_is_asked_by_prefix(dialect: str) -> None:
    """An address of the network begins with its numbers, and is an address; ONNX and PMML cannot
    take one apart and say so."""
    clause = Among("a/24", ("205.174.165.0/24",), of="a")
    schema = Schema((Field("a/24", "category", "a", "/24"),))
    rules = RuleSet((Rule((clause,), 1),), (0, 1), schema, 0, (1.0, 1.0), 1)
    text = to_sql(rules, "data", dialect)
    assert "LIKE" in text
    assert "'205.174.165.%'" in text
    assert "STAIR_" not in text
    for ending in ("to_onnx", "to_pmml"):
        with pytest.raises(StairError, match='which network "a" is in'):
            getattr(Rulebook(rules, {}), ending)()


def test_words_name_the_column() -> None:
    """A field "Dst IP/24" is a part of the column "Dst IP", which is what a person knows."""
    one = Among("Dst IP/24", ("205.174.165.0/24",), of="Dst IP")
    two = Among("Dst IP/8", ("10.0.0.0/8", "11.0.0.0/8"), negated=True, missing=True, of="Dst IP")
    assert str(one) == '"Dst IP" in 205.174.165.0/24'
    assert str(two) == '"Dst IP" not in 10.0.0.0/8 or 11.0.0.0/8 or missing'
    assert reason(one, "205.174.165.0/24") == '"Dst IP" in 205.174.165.0/24'
    assert objection(one, "10.0.0.0/24") == '"Dst IP" in 10.0.0.0/24, not in 205.174.165.0/24'
    assert Rule((one, two), 1).length == 1
    plain = Among("Dst IP", ("10.0.0.1",))
    assert Rule((one, two, plain), 1).length == 1


def _flows(n: int = 1500, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    nets = [f"{a}.{b}.{c}" for a, b, c in random.integers(11, 200, (30, 3))]
    nets += ["205.174.165", "205.174.166"]
    place = random.integers(0, len(nets), n)
    hosts = random.integers(1, 255, n)
    address = [f"{nets[k]}.{h}" for k, h in zip(place, hosts, strict=True)]
    return {"Dst IP": np.array(address, dtype=object), "x": random.normal(size=n),
            "label": (place == 30).astype(int)}  # fmt: skip


@pytest.mark.parametrize("method", ["distilled", "stair", "refined"])
def test_a_network_is_found_and_no_address_is_listed(method: str) -> None:
    """`"Dst IP" in {175 values}` was rule 1. The narrowest of equally good networks is named. It
    was said that the column is left out, too, whose networks are used."""
    summary = stair.summarize(_flows(), labels="label", method=method, min_score=0.9, validate=0)
    assert summary.left_out == {}
    used = 'addresses in "Dst IP" hardly repeat: their networks are used, Dst IP/8, Dst IP/16, '
    assert summary.notes == (f"{used}Dst IP/24",)
    assert summary.score == 1.0
    for rule in summary.rules.outlier_rules:
        assert '"Dst IP" in 205.174.165.0/24' in str(rule)
    said = summary.explain({"Dst IP": "205.174.165.77", "x": 0.0})
    assert '"Dst IP" in 205.174.165.0/24' in str(said)
    labels = summary.rules.predict({"Dst IP": ["205.174.165.1", "205.174.166.1"], "x": [0.0, 0.0]})
    assert labels.tolist() == ["outlier", "inlier"]


@pytest.mark.parametrize("method", ["distilled", "stair"])
def test_data_that_does_not_fit_has_networks_too(tmp_path: Any, method: str) -> None:
    table = _flows(4000)
    pd.DataFrame(table).to_parquet(tmp_path / "t.parquet")
    summary = stair.summarize(
        tmp_path / "t.parquet", labels="label", method=method, engine="duckdb", min_score=0.9
    )
    assert summary.score == 1.0
    assert any('"Dst IP" in 205.174.165.0/24' in str(rule) for rule in summary.rules)
    small = stair.summarize(table, labels="label", method=method, min_score=0.9, validate=0)
    assert [rule.clauses for rule in summary.rules] == [rule.clauses for rule in small.rules]


def test_which_columns_are_addresses() -> None:
    """Nine of ten different values must be IPv4 addresses; IPv6 is left as it is, because no prefix
    of its text says which network it is in. Who names the kind gets a plain category."""
    table = _flows()
    kinds = {"Dst IP": "category"}
    names = [f.name for f in choose_fields(from_object(table))[0]]
    assert names == ["Dst IP/8", "Dst IP/16", "Dst IP/24", "x", "label"]
    assert next(f.name for f in choose_fields(from_object(table), kinds=kinds)[0]) == "Dst IP"
    table["Dst IP"][::20] = "localhost"
    summary = stair.summarize(table, labels="label", min_score=0.9, validate=0)
    assert any('75 rows have values of "Dst IP" that are no IPv4 address' in note
               for note in summary.notes)  # fmt: skip
    six = np.array([f"2001:db8::{k:x}" for k in range(1500)], dtype=object)
    _, left_out = choose_fields(from_object({"ip": six, "x": table["x"]}))
    assert left_out == {"ip": "all values differ"}
    often = np.array([f"10.0.{k % 9}.1" for k in range(900)], dtype=object)
    fields, left_out = choose_fields(from_object({"ip": often}))
    assert [f.name for f in fields] == ["ip", "ip/24"]
    assert left_out == {}


def test_a_text_with_a_zero_byte_is_no_address_in_sqlite() -> None:
    """Most of SQLite's functions read a text up to its first zero byte, so that what stands behind
    an address there was not seen, and the text was in a network."""
    values = ["10.0.1.5", "10.0.1.5\0", "10.0.1.5\0x"]
    field = Field("a/24", "category", "a", "/24", "text")
    rule = Rule((Among("a/24", ("10.0.1.0/24",), of="a"),), 1)
    rules = RuleSet((rule,), (0, 1), Schema((field,)), 0, (1.0, 1.0), 1)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE data (k INTEGER, a TEXT)")
    connection.executemany("INSERT INTO data VALUES (?, ?)", list(enumerate(values)))
    assert _asked(connection, rules, "sqlite") == rules.predict({"a": values}).tolist() == [1, 0, 0]
    connection.close()
