"""Databases for tests of SQL: PostgreSQL where there is a server, and a table of one column."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from stair.export.sql import to_sql
from stair.rules.rule_set import RuleSet


def postgres_dsn() -> str:
    """The server that STAIR_TEST_POSTGRES names; .ci/run starts one."""
    dsn = os.environ.get("STAIR_TEST_POSTGRES")
    if dsn is None:
        if "postgres" in os.environ.get("STAIR_TEST_REQUIRE", "").split(","):
            pytest.fail("PostgreSQL is required, but STAIR_TEST_POSTGRES names no server")
        pytest.skip("STAIR_TEST_POSTGRES names no PostgreSQL server")
    return dsn


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """A connection to it."""
    import psycopg

    with psycopg.connect(
        postgres_dsn(), autocommit=True, prepare_threshold=None, cursor_factory=psycopg.ClientCursor
    ) as connection:
        yield connection


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A database that knows the types of columns, as it is when nobody has set its time zone."""
    if request.param == "duckdb":
        import duckdb

        with duckdb.connect() as con:
            yield Database("duckdb", con)
    else:
        yield Database("postgres", request.getfixturevalue("postgres"))


class Database:
    """A table called data with a column, and what rules say of its rows, in their order."""

    def __init__(self, dialect: str, con: Any) -> None:
        self.dialect, self.con = dialect, con

    def fill(self, name: str, type_: str, values: Sequence[Any]) -> None:
        mark = "%s" if self.dialect == "postgres" else "?"
        self.con.execute("DROP TABLE IF EXISTS data")
        self.con.execute(f'CREATE TEMP TABLE data (place integer, "{name}" {type_})')
        for row in enumerate(values):
            self.con.execute(f"INSERT INTO data VALUES ({mark}, {mark})", row)

    def labels(self, rules: RuleSet) -> list[Any]:
        query = to_sql(rules, "data", self.dialect).rstrip().rstrip(";")
        asked = f"SELECT stair_label FROM ({query}\n) AS s ORDER BY place"
        return [label for (label,) in self.con.execute(asked).fetchall()]
