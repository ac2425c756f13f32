"""Runs in the environment of Soda: how many rows fail each check, and which ones."""

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
from soda.sampler.sample_context import SampleContext
from soda.sampler.sampler import Sampler
from soda.scan import Scan


class Places(Sampler):
    """Keeps the column "place" of the rows that failed a check."""

    def __init__(self) -> None:
        self.found: dict[str, list[int]] = {}

    def store_sample(self, sample_context: SampleContext) -> None:
        names = [column.name for column in sample_context.sample.get_schema().columns]
        rows = sample_context.sample.get_rows()
        self.found[sample_context.check_name] = sorted(row[names.index("place")] for row in rows)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(connection: Any, case: dict[str, Any]) -> None:
    table = quoted(case["table"])
    columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in case["columns"])
    connection.execute(f"CREATE TABLE {table} ({columns})")
    marks = ", ".join("?" * len(case["columns"]))
    connection.executemany(f"INSERT INTO {table} VALUES ({marks})", case["rows"])


def main(folder: Path) -> None:
    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    connection = duckdb.connect()
    for case in order["cases"]:
        fill(connection, case)
    answer = {}
    for case in order["cases"]:
        scan = Scan()
        scan.set_data_source_name("cases")
        scan.add_duckdb_connection(connection, data_source_name="cases")
        scan.disable_telemetry()
        scan.sampler = Places()
        scan.add_sodacl_yaml_str(case["export"])
        code = scan.execute()
        answer[case["table"]] = {
            "code": code,
            "log": scan.get_error_logs_text(),
            "checks": [
                [check.name, check.outcome.value if check.outcome else None, check.check_value,
                 scan.sampler.found.get(check.name)]
                for check in scan._checks
            ],
        }  # fmt: skip
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


main(Path(sys.argv[1]))
