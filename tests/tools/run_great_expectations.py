"""Runs in the environment of Great Expectations: which rows each expectation finds unexpected."""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def in_sqlite(cases: list[dict[str, Any]], folder: Path) -> Any:
    """A table for each case; NaN is missing there."""
    connection = sqlite3.connect(folder / "cases.db")
    for case in cases:
        columns = ", ".join(f"{quoted(name)} {type_}" for name, type_ in case["columns"])
        connection.execute(f"CREATE TABLE {case['table']} ({columns})")
        marks = ", ".join("?" * len(case["columns"]))
        connection.executemany(f"INSERT INTO {case['table']} VALUES ({marks})", case["rows"])
    connection.commit()
    connection.close()
    return CONTEXT.data_sources.add_sqlite("cases", connection_string="sqlite:///cases.db")


def frame_of(case: dict[str, Any]) -> pd.DataFrame:
    """The case as pandas has it, with the number of the rule of each row."""
    columns = {}
    for k, (name, type_) in enumerate(case["columns"]):
        values = [row[k] for row in case["rows"]]
        if type_.startswith("TIMESTAMP"):
            is_zoned = type_ == "TIMESTAMPTZ"
            columns[name] = pd.to_datetime(pd.Series(values), format="ISO8601", utc=is_zoned)
        else:
            columns[name] = pd.Series(values, dtype=float if type_ == "DOUBLE" else object)
    frame = pd.DataFrame(columns)
    space: dict[str, Any] = {"__name__": "exported"}
    exec(compile(case["export"]["code"], "<exported>", "exec"), space)
    frame[case["labelled"][1]] = space["rule_number"](frame)
    return frame


def found_in(batch: Any, suite: dict[str, Any]) -> dict[str, list[int]]:
    """The places of the unexpected rows of each rule, and whether all is as expected."""
    done = batch.validate(gx.ExpectationSuite(**suite), result_format="COMPLETE")
    places = {}
    for one in done.results:
        if not {"details", "unexpected_index_list"} & set(one.result):
            said = [each["exception_message"] for each in one.exception_info.values()]
            raise RuntimeError(f"{said}\n{suite}")
        rows = one.result.get("details", {}).get("unexpected_rows")
        found = (
            [r["place"] for r in rows] if rows is not None else one.result["unexpected_index_list"]
        )
        places[str(one.expectation_config.meta["stair_rule"])] = sorted(found)
        assert one.success == (not found)
    assert done.success == (not any(places.values()))
    return places


CONTEXT = gx.get_context(mode="ephemeral")


def main(folder: Path) -> None:
    order = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    answer: dict[str, Any] = {"sqlite": {}, "pandas": {}}
    bank = in_sqlite(order["sqlite"], folder)
    for case in order["sqlite"]:
        asset = bank.add_table_asset(case["table"], table_name=case["table"])
        batch = asset.add_batch_definition_whole_table("all").get_batch()
        answer["sqlite"][case["table"]] = found_in(batch, json.loads(case["export"]))
    frames = CONTEXT.data_sources.add_pandas("frames")
    whole = frames.add_dataframe_asset("frame").add_batch_definition_whole_dataframe("all")
    for case in order["pandas"]:
        batch = whole.get_batch({"dataframe": frame_of(case)})
        answer["pandas"][case["table"]] = found_in(batch, json.loads(case["export"]["suite"]))
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


main(Path(sys.argv[1]))
