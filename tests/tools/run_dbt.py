"""Runs in the environment of dbt: builds one project of all cases and says what came of each."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def connected(order: dict[str, Any], folder: Path) -> Any:
    if order["dialect"] == "duckdb":
        import duckdb

        return duckdb.connect(str(folder / "cases.duckdb"))
    import psycopg2

    connection = psycopg2.connect(order["dsn"])
    connection.autocommit = True
    return connection


def fill(order: dict[str, Any], connection: Any) -> None:
    """The tables of all cases."""
    is_duckdb = order["dialect"] == "duckdb"
    cursor = connection.cursor()
    cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {order['schema']}")
    for case in order["cases"]:
        table = f"{order['schema']}.{case['table']}"
        columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in case["columns"])
        cursor.execute(f"CREATE TABLE {table} ({columns})")
        marks = ", ".join(["?" if is_duckdb else "%s"] * len(case["columns"]))
        cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", case["rows"])


def profile(order: dict[str, Any], folder: Path) -> dict[str, Any]:
    if order["dialect"] == "duckdb":
        return {"type": "duckdb", "path": str(folder / "cases.duckdb"), "schema": order["schema"],
                "threads": 2}  # fmt: skip
    words = dict(word.split("=", 1) for word in order["dsn"].split())
    return {
        "type": "postgres", "host": words["host"], "user": words["user"], "password": "",
        "port": 5432, "dbname": words["dbname"], "schema": order["schema"], "threads": 2,
    }  # fmt: skip


def main(folder: Path) -> None:
    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    connection = connected(order, folder)
    fill(order, connection)
    connection.close()
    project = folder / "project"
    for name, content in order["files"].items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content, encoding="utf-8", newline="")
    profiles = {"cases": {"target": "here", "outputs": {"here": profile(order, folder)}}}
    (folder / "profiles.yml").write_text(json.dumps(profiles), encoding="utf-8")
    os.chdir(project)
    words = [
        "--quiet",
        "build",
        "--profiles-dir",
        str(folder),
        "--profile",
        "cases",
        *order["words"],
    ]
    done = dbtRunner().invoke(words)
    results = json.loads((project / "target" / "run_results.json").read_text(encoding="utf-8"))
    states = {
        found["unique_id"].split(".")[2]: [found["status"], found["failures"], found["message"]]
        for found in results["results"]
    }
    connection = connected(order, folder)
    rows = {}
    for case in order["cases"]:
        cursor = connection.cursor()
        wanted = ", ".join(map(quoted, case["labelled"]))
        model = f"{order['schema']}.{case['table']}_labelled"
        cursor.execute(f"SELECT {wanted} FROM {model} ORDER BY place")
        rows[case["table"]] = [list(row) for row in cursor.fetchall()]
    answer = {"success": done.success, "states": states, "rows": rows}
    if done.exception is not None:
        answer["exception"] = str(done.exception)
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


main(Path(sys.argv[1]))
